"""`parasol learn` and `check` of what is no equation: matrices, a model, a solver in a file."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from parasol.cli import app

FILE = """
import numpy as np
import parasol as ps
from scipy import sparse

n = 40
a, k = ps.parameters(a=(1.0, 4.0), k=(0.5, 2.0))
laplace = sparse.diags_array([-np.ones(n - 1), 2.0 * np.ones(n), -np.ones(n - 1)], offsets=(-1, 0, 1)).tocsr()
bar = ps.AffineModel({a: laplace, k: sparse.eye_array(n) / n}, {1: np.ones(n)}, name="bar")
other = ps.AffineModel({a: laplace, k: sparse.eye_array(n)}, {1: np.ones(n)})

def wave(mu):
    return mu[0] * np.sin(mu[1] * np.linspace(0, 1, 15))

wave.parameters = {"a": (1.0, 2.0), "k": (0.5, 1.0)}
T = np.ones(3)
"""
EQUATION = """
x, = ps.coordinates("x")
u = ps.unknown("u", x)
problem = ps.Problem(ps.Box(0.0, 1.0), ps.Eq(-a * u.diff(x, 2), 1), ps.Dirichlet(0))
"""


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(FILE)
    return tmp_path


def test_matrices_are_learned_and_checked(there):
    result = run("learn", "mine.py:bar", "--tolerance", "1e-4", "--out", "bar.parasol", "--json", "bar.json")
    assert result.exit_code == 0, result.output
    learned = json.loads((there / "bar.json").read_text())["learn"]
    assert learned["met"]
    assert learned["solves"] < 20
    result = run("check", "bar.parasol", "--problem", "mine.py:bar", "--n", 10, "--json", "-", "--quiet")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["error"]["max"] <= 1e-4
    result = run("check", "bar.parasol", "--problem", "mine.py:other", "--n", 10)
    assert result.exit_code == 1  # another model: its promise does not hold
    result = run("check", "bar.parasol", "--n", 10)
    assert result.exit_code == 2
    assert "--problem path/to/file.py[:name]" in result.stderr
    result = run("learn", "mine.py:bar", "--dry-run", "--json", "-", "--quiet")
    assert json.loads(result.stdout)["method"] == "full solves where the estimated error is largest"


def test_a_model_in_a_file_is_solved(there):
    result = run("solve", "mine.py:bar", "a=1", "k=1", "--json", "-", "--quiet")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["problem"] == "bar"
    laplace = 2 * np.eye(40) - np.eye(40, k=1) - np.eye(40, k=-1)
    exact = np.linalg.solve(laplace + np.eye(40) / 40, np.ones(40))
    assert found["fields"]["u"]["maximum"] == pytest.approx(exact.max(), rel=1e-10)
    result = run("solve", "mine.py:bar", "a=1", "k=1", "--solver", "iterative", "--json", "-", "--quiet")
    assert json.loads(result.stdout)["solver"].startswith("iterative")
    result = run("solve", "mine.py:bar", "--out", "u.csv")
    assert result.exit_code == 2
    assert "files need points=" in result.stderr.replace("\n", " ")


def test_a_solver_of_one_s_own_is_learned_and_checked(there):
    words = ("--tolerance", "1e-2", "--recipe", "polynomial", "--out", "wave.parasol")
    result = run("learn", "mine.py:wave", *words)
    assert result.exit_code == 0, result.output
    assert run("check", "wave.parasol", "--problem", "mine.py:wave", "--n", 10).exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("learn", "mine.py"), "has 3 problems (bar, other, wave). Say which: mine.py:name."),
        (("learn", "mine.py:T"), "has no problem named 'T'. It has: bar, other, wave."),
        (("learn", "mine.py:bar", "--total"), "--total needs the equation"),
        (("learn", "mine.py:bar", "--nodes", "50"), "Give one: a model has its nodes."),
        (("solve", "mine.py:bar", "--nodes", "50"), "--nodes is for equations, but a model has its nodes."),
        (("solve", "mine.py:wave", "a=1"), "this needs an equation"),
        (("theorem", "mine.py:bar", "--modes", "2"), "this needs an equation"),
    ],
)
def test_one_line_where_something_needs_the_equation(there, words, said):
    result = run(*words)
    assert result.exit_code == 2
    assert said in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.output
    assert not list(there.glob("*.parasol"))


def test_a_single_problem_is_found_beside_models(there):
    (there / "mine.py").write_text(FILE + EQUATION)
    result = run("solve", "mine.py", "a=2", "k=1", "--json", "-", "--quiet")
    assert "unknown parameter 'k'" in result.stderr  # of the problem, which has a alone


def test_a_surrogate_is_no_problem(there):
    assert "is a surrogate, not a problem. Ask it: parasol predict a.parasol" in run("solve", "a.parasol").stderr


def test_runs_with_missing_values_are_left_out_on_request(there):
    """The message advised missing="drop", which the command line had no word for."""
    rng, rows = np.random.default_rng(0), ["a,b,drag"]
    rows += [f"{a},{b},{'' if i == 7 else 1 + a + b}" for i, (a, b) in enumerate(rng.uniform(0, 1, (60, 2)))]
    (there / "runs.csv").write_text("\n".join(rows))
    words = ("learn", "--data", "runs.csv", "--parameters", "a,b", "--tolerance", "0.1", "--recipe", "linear")
    refused = run(*words)
    assert refused.exit_code == 2
    assert "run 7 (drag), counted from 0" in refused.stderr
    assert 'with --missing "drop"' in refused.stderr.replace("\n", " ")
    learned = run(*words, "--missing", "drop")
    assert learned.exit_code == 0
    assert "59 runs at (a, b): drag" in learned.stdout  # which columns were parameters
    assert "Use one of: refuse, drop." in run(*words, "--missing", "skip").stderr.replace("\n", " ")
    assert "Give --data too" in run("learn", "mine.py:bar", "--missing", "drop").stderr
