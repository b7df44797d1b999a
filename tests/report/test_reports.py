"""Results as JSON, as a table and as a card: one set of words, and nothing heavy imported for an answer."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import parasol as ps
from parasol.delivery.answers import as_solution
from parasol.report.answers import AnswerReport
from parasol.report.render import as_json, table
from parasol.runtime.descriptions import SurrogateReport
from parasol.runtime.provenance import Measured, Provenance

KEPT = Path(__file__).parents[1] / "kept_files" / "0.2.0.dev0"


@pytest.fixture(scope="module")
def surrogate():
    return ps.load(KEPT / "polynomial.parasol")


@pytest.mark.parametrize("words", [["predict"], ["predict", "--json", "-"], ["info"], ["info", "--json", "-"]])
def test_asking_and_describing_import_neither_sympy_nor_scipy(words):
    code = (
        "import sys, parasol.cli\n"
        "try: parasol.cli.main()\n"
        "finally: print(*sorted({'sympy', 'scipy', 'rich', 'h5py', 'matplotlib'} & set(sys.modules)), file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", code, words[0], str(KEPT / "polynomial.parasol"), *words[1:]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "\n")
    assert "helmholtz" in done.stdout


@pytest.mark.parametrize("path", sorted(KEPT.glob("*.parasol")), ids=lambda path: path.stem)
def test_every_surrogate_and_its_answer_can_be_reported(path):
    surrogate = ps.load(path)
    about = SurrogateReport(surrogate, path)
    assert json.loads(as_json(about.to_dict()))["n_values"] == surrogate.n_values
    assert table(about.rows().items())
    if not surrogate.parameters.functions:
        mus = surrogate.parameters.answered.from_unit(np.full((2, surrogate.n_parameters), 0.5))
        report = AnswerReport(surrogate(mus))
        data = json.loads(as_json(report.to_dict()))
        assert data["fields"].keys() <= report.rows().keys()
        assert (data["bound"] is None) == (report.rows()["relative error"] == "not known: there is no bound")


def test_an_answer_reports_its_extremes_and_how_far_they_can_be_off(surrogate):
    answer = surrogate([[0.5, 0.5], [1.0, 1.5], [9.0, 1.0]], extrapolate=True)
    report = AnswerReport(answer)
    data, rows = report.to_dict(), report.rows()
    assert (data["n_samples"], data["extrapolated"]) == (3, 1)
    assert data["fields"]["u"] == {"minimum": answer.values.min(), "maximum": answer.values.max()}
    assert data["bound"]["maximum"] == np.max(answer.bound)
    assert data["quantity_bounds"] == {name: np.max(bound) for name, bound in answer.quantity_bounds.items()}
    assert rows["parameters"] == "a from 0.5 to 9, k from 0.5 to 1.5"
    assert rows["outside the box"] == "1 of 3: nothing is promised there"


def test_facts_of_another_type_count_as_not_known(surrogate):
    bad = {"problem": ["x"], "tolerance": "small", "learn": [1], "measured": {"mean": None}, "equation": 3}
    assert Provenance.of(bad) == Provenance()
    good = {"tolerance": np.float64(0.5), "measured": {"mean": 1, "max": 2.0, "n": 3}, "learn": {"met": np.True_}}
    assert Provenance.of(good) == Provenance(tolerance=0.5, measured=Measured(3, 1.0, 2.0), met=True)
    strange = replace(surrogate, facts=bad)
    assert json.loads(as_json(SurrogateReport(strange).to_dict()))["problem"] is None
    assert "promised" not in SurrogateReport(strange).rows()


def test_words_from_a_file_do_not_steer_the_terminal(surrogate):
    hostile = replace(surrogate, facts={"problem": "calm\x1b]0;owned\x07\r", "equation": "word " * 60})
    shown = table(SurrogateReport(hostile).rows().items(), width=60)
    assert not any(ord(c) < 32 and c != "\n" for c in shown)
    assert max(map(len, shown.splitlines())) <= 60
    assert "\x1b[1mproblem" in table(SurrogateReport(surrogate).rows().items(), bold=True)


def test_an_answer_as_a_solution_can_be_shown(surrogate):
    shown = as_solution(surrogate([0.5, 0.5]))._repr_html_()
    assert "<table>" in shown
    assert "residual" not in shown  # none was computed
