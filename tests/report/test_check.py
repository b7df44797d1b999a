"""The error budget: parts that add up, promises kept and broken, solvers made again from a file; the commands."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import parasol as ps
from parasol.cli import app
from parasol.report.budget.check import check
from parasol.report.budget.figure import draw_budget
from parasol.report.budget.solver import solver_of

_OWN = """
import parasol as ps
(x,) = ps.coordinates("x")
(nu,) = ps.parameters(nu=(0.8, 1.0))
u = ps.unknown("u", x)
problem = ps.Problem(ps.Box(0.0, 1.0), ps.Eq(-nu * u.diff(x, 2) + u, RIGHT), BOUNDARY)
"""


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def learned():
    return ps.learn(ps.load_problem("reaction-layer"), 1e-3, recipe="polynomial")


@pytest.fixture(scope="module")
def path(learned, tmp_path_factory):
    return ps.save(learned, tmp_path_factory.mktemp("check") / "layer.parasol")


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A problem that is in no catalogue, with a condition on the slope, in a file; and its surrogate."""
    folder = tmp_path_factory.mktemp("own")
    ends = '{"left": ps.Dirichlet(0), "right": ps.Neumann(0)}'
    (folder / "own.py").write_text(_OWN.replace("RIGHT", "1").replace("BOUNDARY", ends))
    (folder / "other.py").write_text(_OWN.replace("RIGHT", "2").replace("BOUNDARY", ends))
    problem = ps.load_problem(str(folder / "own.py"))
    surrogate = ps.learn(problem, 1e-3, recipe="polynomial", n_nodes=60)
    ps.save(surrogate, folder / "own.parasol")
    return folder


def test_the_solver_of_a_file_is_the_same_to_the_last_bit(learned, path):
    again = solver_of(ps.load(path))
    mu = np.array([0.0123])
    assert np.array_equal(again.solve(mu).values, learned.solver.solve(mu).values)


def test_the_fingerprint_of_a_file_of_version_0_1_0_says_nothing_and_that_is_said(path):
    file = ps.load(path)
    old = replace(file, facts={**file.facts, "fingerprint": "0123456789abcdef" * 4})
    with pytest.warns(ps.ParasolWarning, match="taken on trust"):
        assert solver_of(old).n_nodes == solver_of(file).n_nodes


def test_parts_add_up_and_are_what_they_say(learned, path):
    budget = check(ps.load(path), n=20)
    truth = np.array([learned.solver.solve(mu).values for mu in budget.mus])
    size = np.linalg.norm(truth, axis=1)
    errors = np.linalg.norm(learned(budget.mus).values - truth, axis=1) / size
    basis = learned.basis
    gaps = np.linalg.norm(truth - truth @ basis.modes @ basis.modes.T, axis=1) / size
    np.testing.assert_allclose(budget.errors, errors, rtol=1e-8)
    np.testing.assert_allclose(budget.projection_errors, gaps, rtol=1e-6)
    np.testing.assert_allclose(np.hypot(budget.projection_errors, budget.map_errors), errors, rtol=1e-8)
    assert budget.holds
    assert budget.coverage == 1.0
    assert np.min(budget.effectivity) >= 1.0
    assert budget.worst[0] == np.argmax(errors)
    # the exact solution is known: both estimates are of its order
    exact = max(learned.solver.solve([nu]).error for nu in (1e-3, 0.03, 1.0))
    assert 0.2 * exact <= budget.kernel <= 20 * exact
    assert exact <= budget.discretisation <= 20 * exact
    assert budget.to_dict()["error"]["max"] == np.max(budget.errors)


def test_fresh_parameters_change_with_the_seed_alone(learned):
    one, same, other = (check(learned, n=5, rng=seed).mus for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.any(one == other)


def test_a_promise_that_does_not_hold(learned):
    budget = check(learned, n=10, tolerance=1e-7)
    assert not budget.holds
    assert "exceed the promised 1e-07" in budget.broken
    assert "exceed" in budget.rows()["promise"]


def test_a_conformal_promise_may_miss_a_few_times():
    class Wave:
        parameters = ps.pde.ParameterSpace(ps.parameters(a=(1.0, 3.0)))

        def solve(self, mu):
            return np.sin(mu[0] * np.linspace(0, 2, 30))

    surrogate = ps.learn(Wave(), 1e-3, recipe="polynomial")
    budget = check(surrogate, n=40)
    assert budget.level == 0.95
    assert budget.holds
    assert budget.refinement is None
    # a bound ten times too small is found out
    from dataclasses import replace

    small = replace(surrogate.conformal, quantile=np.median(budget.errors) / 10)
    broken = check(replace(surrogate, conformal=small), n=40)
    assert not broken.holds
    assert "exceed their bound" in broken.broken


def test_figure(learned, tmp_path):
    budget = check(learned, n=5)
    assert draw_budget(budget, tmp_path / "b.png").stat().st_size > 5000
    axes = draw_budget(budget).axes
    assert [label.get_text() for label in axes[0].get_yticklabels()][::-1] == [
        "discretisation",
        "projection",
        "map",
        "error",
        "estimate",
        "bound",
    ]
    assert np.array_equal(axes[1].lines[0].get_ydata(), np.sort(budget.errors))


def test_words_follow_from_the_points(learned):
    """No figure says that a promise holds above points that exceed it."""
    budget = check(learned, n=10)
    assert budget.verdict == "holds: all 10 errors are within the promised 0.001 and their bounds"
    second = float(np.sort(budget.errors)[-2])
    # a promise at level 0.9 from 20 calibration solves, which one of the errors exceeds
    missed = replace(budget, tolerance=second, bounds=None, rigorous=None, level=0.9, n_calibration=20)
    assert missed.holds
    assert missed.verdict == f"1 of 10 errors exceed the promised {second:g}; up to {missed.allowed} may, at level 0.9"
    figure = draw_budget(missed)
    assert figure.get_suptitle() == missed.verdict
    (ring,) = [line for line in figure.axes[1].lines if line.get_label() == "1 above the promise"]
    assert ring.get_ydata().tolist() == [np.max(budget.errors)]
    broken = draw_budget(replace(missed, n_calibration=None, level=1.0))
    assert broken.get_suptitle().startswith("the promise does not hold: 1 of 10 errors exceed")
    total = replace(budget, total=True)
    line = next(line for line in draw_budget(total).axes[1].lines if line.get_label().startswith("promised"))
    assert line.get_ydata()[0] == pytest.approx(1e-3 - total.discretisation)


def test_report_of_a_check(path, tmp_path):
    done = run("check", path, "--n", 4, "--out", tmp_path / "b.html", "-q")
    assert done.exit_code == 0, done.output
    text = (tmp_path / "b.html").read_text(encoding="utf-8")
    top = text[: text.index("<nav")]
    assert "<math" in top
    assert "<svg" in top
    assert "The promise holds: all 4 errors are within the promised 0.001" in text
    assert 'srcdoc="&lt;!doctype' in text
    assert not re.search(r"(?:src|href)=\"(?!data:|#)|url\((?!#)", text.partition("srcdoc")[0])
    assert list(tmp_path.iterdir()) == [tmp_path / "b.html"]


def test_command(path, tmp_path):
    done = run("check", path, "--n", 5, "--out", tmp_path / "b.png", "--json", tmp_path / "b.json")
    assert done.exit_code == 0, done.output
    assert "holds" in done.output
    assert (tmp_path / "b.png").exists()
    assert json.loads((tmp_path / "b.json").read_text())["n"] == 5
    assert run("check", path, "--n", 5, "--tolerance", "1e-8", "-q").exit_code == 1


def test_problem_in_a_file(own):
    done = run("check", own / "own.parasol", "--n", 4)
    assert done.exit_code == 2
    assert "--problem" in done.output
    assert len(done.output.strip().splitlines()) == 1
    done = run("check", own / "own.parasol", "--n", 4, "--problem", own / "own.py")
    assert done.exit_code == 0, done.output
    done = run("check", own / "own.parasol", "--n", 4, "--problem", own / "other.py")
    assert done.exit_code == 2
    assert "not the one the surrogate was learned from" in done.output
    done = run("check", own / "own.parasol", "--n", 4, "--problem", "helmholtz")
    assert done.exit_code == 2
    assert "another problem" in done.output


def test_surrogates_that_were_not_learned(own):
    layer = ps.load_problem("reaction-layer")
    model = ps.discretize(layer, ps.scatter(layer.domain, n_nodes=80))
    snapshots = ps.solve_many(model, ps.sample(model, 10))
    plain = ps.fit(snapshots, "polynomial", basis=ps.pod(snapshots, n_modes=5), model=model)
    ps.save(plain, own / "plain.parasol")
    # conditions on values: the same solver from points and stencils alone
    budget = check(ps.load(own / "plain.parasol"), layer, n=5)
    expected = ps.accuracy(plain, ps.solve_many(model, budget.mus)).errors
    np.testing.assert_allclose(budget.errors, expected, rtol=1e-6)
    assert budget.tolerance is None
    assert budget.bounds is None
    assert budget.holds
    data = ps.fit_snapshots(snapshots.mus, snapshots.solutions, "polynomial", level=None)
    with pytest.raises(ps.ParasolError, match=r"does not say which problem.*ps\.accuracy\(surrogate, results\)"):
        check(data)
    with pytest.raises(ps.ParasolError, match="made from data"):
        check(data, layer)
    assert check(data, model=model, n=5).errors.shape == (5,)
    with pytest.raises(ps.ParasolError, match="cannot check a int"):
        check(3)


def test_learn_command(own, tmp_path):
    out, store = tmp_path / "m.parasol", tmp_path / "store"
    wish = ["learn", own / "own.py", "--nodes", 60, "--recipe", "polynomial", "--store", store, "--out", out]
    plan = run(*wish, "--dry-run", "--json", "-")
    assert plan.exit_code == 0
    assert json.loads(plan.output)["n_nodes"] == 60
    assert not out.exists()
    done = run(*wish, "--tolerance", "1e-13", "--solves", 8, "--json", tmp_path / "m.json")
    assert done.exit_code == 3, done.output
    account = json.loads((tmp_path / "m.json").read_text())["learn"]
    assert not account["met"]
    assert "solves" in account["limit"]
    assert "NOT met" in done.output
    assert ps.load(out).facts["learn"]["met"] is False
    done = run(*wish, "-q")
    assert done.exit_code == 0, done.output
    account = ps.load(out).facts["learn"]
    assert account["met"]
    assert account["new_solves"] < account["solves"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["learn"], "nothing to learn"),
        (["learn", "no-such-problem"], "unknown problem"),
        (["learn", "helmholtz", "--tolerance", "3"], "below 1"),
        (["learn", "helmholtz", "--out", "no/such/folder/m.parasol"], "no directory"),
        (["learn", "--data", "none.npz"], "no results"),
        (["check", "none.parasol"], "no file"),
    ],
)
def test_wrong_input_is_one_line(arguments, message):
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.output
    assert len(done.output.strip().splitlines()) == 1


def test_an_interrupted_command_says_how_to_go_on(own, tmp_path, monkeypatch):
    from parasol.learning import run as learning

    def stop(*given, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(learning, "learn", stop)
    done = run("learn", own / "own.py", "--store", tmp_path, "--out", tmp_path / "m.parasol")
    assert done.exit_code == 130
    assert "no new full solve was finished" in done.output
