"""The comparison with other packages: what peers are given, what is measured of them, and that one's failure is nobody else's."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from typer.testing import CliRunner

from parasol.cli import app
from parasol.errors import FileError, InputError
from parasol_lab.benchmarks.peers import environments, runs, tables
from parasol_lab.benchmarks.peers.logarithm import with_logarithm
from parasol_lab.benchmarks.peers.problem import Split, write_problem
from parasol_lab.benchmarks.peers.registry import Peer, read_peers, select_peers

ROOT = Path(__file__).parents[2]
SPLIT = Split(train=(4, 8), test=5, n_nodes=150)
# knows the truth, and is wrong by a thousandth; counts how often it is run
FAKE = """
import pathlib
import numpy as np

def fit(data, seed, factor=1.001):
    with open(pathlib.Path(__file__).with_name("count"), "a") as count:
        count.write("x")
    lookup = {tuple(mu): u for mu, u in zip(data.test_mus, data.test_solutions)}
    def predict(mus):
        return np.array([factor * lookup[tuple(mu)] for mu in mus])
    return {"predict": predict, "n_modes": 3, "bound": lambda mus: np.full(len(mus), 2e-3)}
"""


def quiet(_):
    return None


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache that holds the full solves."""
    folder = tmp_path_factory.mktemp("peers")
    write_problem(folder / "data" / "helmholtz", SPLIT, quiet)
    return folder


def peer(folder: Path, name: str, script: str, **more) -> Peer:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(script)
    return Peer(**{"name": name, "environment": "parasol", "script": path, "kind": "data", "source": "a page", **more})


def measure(peers, cache, **options):
    return runs.measure_peers(peers, cache=cache, split=SPLIT, progress=quiet, **options)["rows"]


def test_peers_are_given_the_problem_itself(cache):
    folder = cache / "data" / "helmholtz"
    load, train, mus = (np.load(folder / f"{name}.npy") for name in ("load", "train_solutions", "train_mus"))
    blocks = [sparse.load_npz(folder / f"operator{i}.npz") for i in range(3)]
    for (a, k), u in zip(mus, train, strict=True):
        rest = (blocks[0] + a * blocks[1] + k * blocks[2]) @ u - load
        assert np.linalg.norm(rest) < 1e-9 * np.linalg.norm(load)
    test = np.load(folder / "test_mus.npy")
    assert len(mus) == 8
    assert len(test) == 5
    assert not {tuple(mu) for mu in mus} & {tuple(mu) for mu in test}
    before = (folder / "load.npy").stat().st_mtime_ns
    assert write_problem(folder, SPLIT, quiet) == json.loads((folder / "problem.json").read_text())["key"]
    assert (folder / "load.npy").stat().st_mtime_ns == before


@pytest.mark.slow
def test_what_is_measured_is_right_and_kept(cache, tmp_path):
    fake = peer(tmp_path, "fake", FAKE, seeds=2, bound="a promise")
    rows = measure([fake], cache)
    assert [row["n_solves"] for row in rows] == [4, 8]
    for row in rows:
        assert len(row["runs"]) == 2
        for run in row["runs"]:
            assert run["error"] == pytest.approx(1e-3, rel=1e-6)
            assert run["bound"] == {"holds": 1.0, "median_ratio": pytest.approx(2.0, rel=1e-6)}
            assert 0 < run["projection"] < 1
            assert run["fit"]["cpu_seconds"] <= run["fit"]["seconds"] + 0.1
    assert rows[0]["lines"] == 9
    count = tmp_path / "count"
    assert measure([fake], cache) == rows
    assert count.read_text() == 4 * "x"
    measure([fake], cache, again=True)
    assert count.read_text() == 8 * "x"
    shown = runs.measure_peers(
        [fake, peer(tmp_path, "new", FAKE + "# another\n")], cache=cache, split=SPLIT, known=True, progress=quiet
    )
    assert [row["peer"] for row in shown["rows"]] == ["fake", "fake"]
    assert shown["left_out"] == ["new, 4 solves", "new, 8 solves"]
    assert "Not measured in this run: new, 4 solves; new, 8 solves." in tables.markdown(shown)
    changed = peer(tmp_path, "fake", FAKE, seeds=2, options={"factor": 1.002})
    assert measure([changed], cache)[0]["runs"][0]["error"] == pytest.approx(2e-3, rel=1e-6)


@pytest.mark.slow
def test_a_peer_that_fails_is_one_line_and_the_others_run(cache, tmp_path):
    wrong = "import no_such_package_anywhere\n"
    nan = FAKE.replace("factor * lookup", "np.nan * lookup").replace("x", "y")
    slow = "import time\n\ndef fit(data, seed):\n    time.sleep(60)\n"
    peers = [peer(tmp_path / n, n, text) for n, text in {"wrong": wrong, "nan": nan, "fake": FAKE}.items()]
    rows = measure(peers, cache)
    said = {row["peer"]: row.get("failed") for row in rows}
    assert "no_such_package_anywhere" in said["wrong"]
    assert "not numbers" in said["nan"]
    assert said["fake"] is None
    assert all("\n" not in words for words in said.values() if words)
    assert len(runs.failures({"rows": rows})) == 2
    shown = tables.markdown({"parasol": "0", "split": {"problem": "p", "n_nodes": 1, "n_test": 1}, "rows": rows})
    assert shown.count("no_such_package_anywhere") == 1
    late = measure([peer(tmp_path, "slow", slow)], cache, limit=3.0)
    assert late[0]["failed"] == "took more than 3 s. Give it more with --limit."


def test_seeds_that_were_finished_are_kept_and_the_next_run_goes_on(cache, tmp_path, monkeypatch):
    """The second of three takes too long at first."""
    asked, slow = [], [1]

    def ran(peer, request, cache, limit):
        (seed,) = request["seeds"]
        asked.append(seed)
        if seed in slow:
            raise environments.PeerTooSlow("took more than 3 s. Give it more with --limit.")
        return {"runs": [{"error": 0.1 * (seed + 1)}], "python": "3"}

    monkeypatch.setattr(runs, "run_peer", ran)
    one = peer(tmp_path, "one", FAKE + "# one\n", seeds=3)
    row = measure([one], cache)[0]
    assert [run["error"] for run in row["runs"]] == pytest.approx([0.1, 0.3])
    assert tables._error(row) == "2.0e-01 (1.0e-01 … 3.0e-01), 2 of 3 seeds"
    assert asked == [0, 1, 2] * 2
    shown = runs.measure_peers([one], cache=cache, split=SPLIT, known=True, progress=quiet)
    assert shown["rows"][0]["runs"] == row["runs"]
    slow.clear()
    row = measure([one], cache)[0]
    assert asked[6:] == [1, 1]
    assert [run["error"] for run in row["runs"]] == pytest.approx([0.1, 0.2, 0.3])
    assert "seeds" not in tables._error(row)


def test_some_are_given_the_logarithm(cache, tmp_path):
    folder = cache / "data" / "helmholtz"
    out = with_logarithm(folder, "one")
    for name in ("train_mus", "test_mus"):
        given, mus = np.load(out / f"{name}.npy"), np.load(folder / f"{name}.npy")
        assert np.allclose(np.exp(given[:, 0]), mus[:, 0])
        assert np.array_equal(given[:, 1], mus[:, 1])
    np.save(out / "test_mus.npy", np.zeros(3))
    assert np.load(with_logarithm(folder, "one") / "test_mus.npy").shape == (3,)
    assert np.load(with_logarithm(folder, "another") / "test_mus.npy").shape == (5, 2)
    text = FAKE.replace("    lookup", "    assert (data.mus[:, 0].min() < 0) == log\n    lookup").replace(
        "factor=1.001", "log"
    )
    text = text.replace("factor", "1.001")
    both = [peer(tmp_path, "fake", text, logarithm=log, options={"log": log}) for log in (True, False)]
    assert runs.failures({"rows": measure(both, cache)}) == []


def stub_python(monkeypatch, text: str) -> None:
    """In place of a virtual environment a shell script that notes that it was called."""

    def create(folder, with_pip):
        python = Path(folder, "bin", "python")
        python.parent.mkdir(parents=True)
        python.write_text(f"#!/bin/sh\n{text}\n")
        python.chmod(0o755)

    monkeypatch.setattr(environments.venv, "create", create)


@pytest.mark.skipif(os.name == "nt", reason="a shell script")
def test_an_environment_is_made_once_and_half_of_one_never_used(monkeypatch, tmp_path):
    wanted = tmp_path / "package.txt"
    wanted.write_text("package==1.0\n")
    stub_python(monkeypatch, "echo 'noise' >&2; echo 'ERROR: no matching distribution' >&2; exit 1")
    with pytest.raises(environments.PeerFailed, match=r"could not be installed: ERROR: no matching distribution$"):
        environments.interpreter(wanted, tmp_path)
    stub_python(monkeypatch, f"echo x >> {tmp_path}/calls")
    python = environments.interpreter(wanted, tmp_path)
    assert environments.interpreter(wanted, tmp_path) == python
    assert (tmp_path / "calls").read_text() == "x\n"
    wanted.write_text("package==2.0\n")
    assert environments.interpreter(wanted, tmp_path) != python
    stub_python(monkeypatch, "sleep 30")
    wanted.write_text("package==3.0\n")
    with pytest.raises(environments.PeerFailed, match="took more than"):
        environments.interpreter(wanted, tmp_path, timeout=0.2)


def test_environments_do_not_mix(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    cleaned = environments.clean_environment()
    assert "PYTHONPATH" not in cleaned
    assert cleaned["OMP_NUM_THREADS"] == "1"


def test_every_peer_has_a_script_a_page_and_pinned_versions():
    peers = read_peers()
    assert len({one.name for one in peers}) == len(peers)
    for one in peers:
        assert one.script.exists()
        assert one.lines > 5
        assert one.source
        if one.requirements is not None:
            lines = one.requirements.read_text().split()
            assert all("==" in line and "+" not in line for line in lines), one.requirements
    assert {one.name for one in select_peers(peers, ["PyMOR"])} >= {"pyMOR, network", "pyMOR, Galerkin"}
    with pytest.raises(InputError, match=r"no peer 'pymorr'. Use the beginnings of names: parasol, pyMOR"):
        select_peers(peers, ["pymorr"])


def row(name: str, error, *, seconds: float = 1.0, n: int | None = 100, kind: str = "data") -> dict:
    times = {"seconds": 9.0, "cpu_seconds": seconds}
    each = [{"error": e, "fit": times, "single": times, "batch": times} for e in np.atleast_1d(error)]
    about = {"lines": 7, "bound_kind": "none", "source": "s", "versions": "v"}
    return {"peer": name, "kind": kind, "n_solves": n, "runs": each, **about}


def test_tables_say_who_is_ahead():
    rows = [row("we", 1e-5, seconds=2.0), row("they", [1e-3, 3e-3]), row("we", 1e-4, n=500), row("they", 1e-6, n=500)]
    facts = {"parasol": "1", "split": {"problem": "helmholtz", "n_nodes": 9, "n_test": 5}, "rows": rows}
    text = tables.markdown(facts)
    assert "| they | 100 | 2.0e-03 (1.0e-03 … 3.0e-03) | – | – | 1 | 1e+03 | 1e+06 | none | 7 |" in text
    assert "error, 100 solves: **we**; fit, 100 solves: **they**" in text
    assert "error, 500 solves: **they**" in text
    shown = tables.peers_rows(facts)
    assert ("  error, 500 solves", "best: they") in shown


def test_rows_are_put_into_those_of_an_earlier_run():
    split = {"key": "k", "n_test": 5}
    rows = [row("SMT, PODI", 1e-2), row("pyMOR, network", 1e-3), row("of before", 1.0)]
    before = {"split": split, "rows": rows, "left_out": ["SMT, PODI, 500 solves", "other, 100 solves"], "parasol": "1"}
    more = {"split": split, "rows": [row("SMT, PODI", 1e-4, n=500), row("pyMOR, network", 1e-5)], "parasol": "2"}
    found = runs.joined(before, more | {"left_out": []})
    shown = [(one["peer"], one["n_solves"], tables.mean(one, "error")) for one in found["rows"]]
    assert shown == [
        ("pyMOR, network", 100, 1e-5),
        ("SMT, PODI", 100, 1e-2),
        ("SMT, PODI", 500, 1e-4),
        ("of before", 100, 1.0),
    ]
    assert found["left_out"] == ["other, 100 solves"]
    assert found["parasol"] == "2"
    with pytest.raises(InputError, match="other full solves"):
        runs.joined(before, more | {"split": {**split, "key": "l"}})
    assert (
        runs.joined(before, more | {"split": {**split, "asked": "in other words"}, "left_out": []})["rows"]
        == found["rows"]
    )


def test_only_what_is_between_the_marks_is_written(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{tables.BEGIN}\nold\n{tables.END}\nafter\n")
    facts = {"parasol": "1", "split": {"problem": "p", "n_nodes": 9, "n_test": 5}, "rows": [row("we", 1e-5)]}
    tables.write_page(facts, tables.check_page(page))
    first = page.read_text()
    assert first.startswith("before\n")
    assert first.endswith("\nafter\n")
    assert "old" not in first
    tables.write_page(facts, page)
    assert page.read_text() == first
    (tmp_path / "other.md").write_text("nothing")
    for wrong in ("other.md", "gone.md"):
        with pytest.raises(InputError, match="has no place for the tables"):
            tables.check_page(tmp_path / wrong)


def test_wrong_words_are_one_line(tmp_path):
    def run(*words):
        return CliRunner().invoke(app, ["bench", "peers", *map(str, words)])

    for words, part in [(("nobody",), "no peer 'nobody'"), (("--from", tmp_path / "no.json"), "cannot read")]:
        result = run(*words)
        assert result.exit_code == 2
        assert part in result.stderr
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(FileError, match="holds no peers"):
        runs.read_facts(tmp_path / "other.json")


def test_the_page_shows_what_was_measured():
    """`parasol bench peers --from docs/results/peers.json --page docs/peers.md` writes it."""
    facts = runs.read_facts(ROOT / "docs" / "results" / "peers.json")
    page = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
    shown = page.partition(tables.BEGIN)[2].partition(tables.END)[0].strip()
    assert shown == tables.markdown(facts)
