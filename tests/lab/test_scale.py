"""Growth: exponents of costs that are known, the figure, and bad input."""

import json

import pytest
from typer.testing import CliRunner

from parasol.cli import app
from parasol.errors import InputError
from parasol_lab.benchmarks import scale


def row(n, **stages):
    costs = {k: {"seconds": v, "cpu_seconds": v, "peak_bytes": 1e6 * n} for k, v in stages.items()}
    return {"n_nodes": n, "solver": "superlu", "stages": costs, "skipped": {}}


@pytest.fixture
def facts():
    rows = [row(n, nodes=1e-5 * n, solve=1e-8 * n**1.5, learn=1e-3 * n) for n in (1000, 4000, 16000)]
    rows[0]["plan"] = {"cpu_seconds": [0.8, 1.5], "memory_bytes": [5e8, 2e9]}
    del rows[2]["stages"]["learn"]
    rows[2]["skipped"] = {"learn": 77.0}
    exponents = {stage: found for stage in scale.STAGES if (found := scale._exponent(rows, stage))}
    return {"problem": "made up", "rows": rows, "exponents": exponents, "ideal": scale.IDEAL}


def test_exponents_are_those_of_the_costs(facts):
    assert facts["exponents"]["nodes"]["cpu_seconds"] == pytest.approx(1.0)
    assert facts["exponents"]["solve"]["cpu_seconds"] == pytest.approx(1.5)
    assert facts["exponents"]["solve"]["peak_bytes"] == pytest.approx(1.0)
    assert "page" not in facts["exponents"]


def test_what_a_stage_will_take_is_foreseen_by_the_sizes_before(facts):
    assert scale._foreseen(facts["rows"], "solve", 64000) == pytest.approx(1e-8 * 64000**1.5)
    assert scale._foreseen(facts["rows"][:1], "solve", 64000) == 0.0
    assert scale._foreseen(facts["rows"], "learn", 64000) == pytest.approx(4 * 77)  # left out before, so again


def test_rows_and_figure(facts, tmp_path):
    rows = dict(scale.scale_rows(facts))
    assert rows["solve"].startswith("grows like n^1.50, ideal n^1;")
    assert (
        rows["planned, 1000 nodes"] == "0.8 to 1.5 s of processor time, learn took 1; 500 to 2e+03 MB, learn took 1e+03"
    )
    assert rows["left out, 16000 nodes"] == "learn: about 77 s expected"
    assert scale.draw_scale(facts, tmp_path / "growth.png").stat().st_size > 10_000


def test_a_run_goes_on_with_another(facts, tmp_path, monkeypatch):
    monkeypatch.setattr(scale, "_apart", lambda function, problem, n, *rest: row(n, nodes=1e-5 * n))
    for one in facts["rows"]:
        one["asked"] = one["n_nodes"]
    path = tmp_path / "earlier.json"
    path.write_text(json.dumps(facts | {"problem": "helmholtz"}))
    found = scale.measure_scale([64000], add_to=path, progress=lambda words: None)
    assert found["sizes"] == [1000, 4000, 16000, 64000]
    assert found["rows"][3]["stages"]["nodes"]["cpu_seconds"] == pytest.approx(0.64)
    assert found["rows"][3]["skipped"]["learn"] == pytest.approx(4 * 77)  # as it was left out before
    assert found["exponents"]["nodes"]["cpu_seconds"] == pytest.approx(1.0)
    for problem, sizes, said in (("heat", [64000], "not of heat"), ("helmholtz", [2000], "sizes up to 16000 already")):
        with pytest.raises(InputError, match=said):
            scale.measure_scale(sizes, problem=problem, add_to=path, progress=lambda words: None)
    for text, said in (("{", "no JSON file"), ("[]", "no JSON file"), (None, "cannot be read")):
        path.unlink() if text is None else path.write_text(text)
        with pytest.raises(InputError, match=said):
            scale.measure_scale([64000], add_to=path, progress=lambda words: None)


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--sizes", "many"], "is no list of numbers"), (["--sizes", "1000"], "two sizes"), (["nowhere"], "nowhere")],
)
def test_bad_input_is_one_line(words, said):
    result = CliRunner().invoke(app, ["bench", "scale", *words])
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_page_that_is_refused_loses_nothing(monkeypatch):
    def refused(surrogate, page):
        raise InputError("the page would have 102 MB.")

    monkeypatch.setattr(scale, "explore", refused)
    found = scale._measured("helmholtz", 150, ["reduce"])
    assert found["refused"] == {"page": "the page would have 102 MB."}
    assert list(found["stages"]) == ["nodes", "weights", "solve", "snapshots", "pod", "query", "file"]
    one = {**found, "asked": 150, "skipped": {}}
    shown = scale.scale_rows({"problem": "helmholtz", "rows": [one], "exponents": {}, "ideal": scale.IDEAL})
    assert ("left out, 150 nodes", "page: the page would have 102 MB.") in shown


@pytest.mark.slow
def test_small_sizes_end_to_end(tmp_path):
    found = scale.measure_scale((300, 900), progress=lambda words: None)
    for stage in scale.STAGES:
        assert found["exponents"][stage]["cpu_seconds"] < 3
    for one in found["rows"]:
        low, high = one["plan"]["memory_bytes"]
        assert low / 2 < one["stages"]["learn"]["peak_bytes"] < 2 * high
        low, high = one["plan"]["cpu_seconds"]  # seconds of the wall depend on what else runs
        assert low / 2 < one["stages"]["learn"]["cpu_seconds"] < 2 * high
