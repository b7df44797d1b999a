"""A small sample of damaged and hostile files; `make stress` tries many."""

from artifact_fuzz import MUTATIONS, fuzz


def test_damaged_and_hostile_files_are_refused_or_answer():
    counts = fuzz(150)
    fates = {key[1] for key in counts if isinstance(key, tuple)}
    assert fates == {"refused", "loaded"}
    for mutation in set(MUTATIONS):
        assert counts[mutation.__name__, "refused"] > 0
