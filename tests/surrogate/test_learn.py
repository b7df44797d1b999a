"""Learning to a tolerance: promises kept on fresh solves, limits, stores, the user's own solver and data."""

import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from sympy import exp, sin

import parasol as ps
from parasol.surrogate.learning.labels import teacher_for
from parasol.surrogate.learning.learn import account_rows, learn, plan
from parasol.surrogate.learning.nodes import choose_nodes, indicated_spacing
from parasol.surrogate.learning.region import between, cuts, shortened
from parasol.surrogate.learning.solves import Book, Limits

quick = {"recipe": "polynomial"}  # no network to train


@pytest.fixture(scope="module")
def layer():
    return ps.load_problem("reaction-layer")


@pytest.fixture(scope="module")
def learned(layer):
    return learn(layer, 1e-3, **quick)


class Wave:
    """A solver of one's own: sin(a t + b)."""

    parameters = ps.ParameterSpace(ps.parameters(a=(1.0, 3.0), b=(0.0, 1.0)))

    def __init__(self, stop_after=None):
        self.calls, self.stop_after = 0, stop_after

    @property
    def fingerprint(self):
        return "wave"

    def solve(self, mu):
        if self.stop_after is not None and self.calls >= self.stop_after:
            raise KeyboardInterrupt
        self.calls += 1
        return np.sin(mu[0] * np.linspace(0, 2, 30) + mu[1])


def test_proven_below_the_tolerance_on_solves_nobody_has_seen(layer, learned):
    account = learned.facts["learn"]
    model = learned.solver
    truth = ps.solve_many(model, ps.sample(model, 60, design="random", rng=123))
    errors = ps.accuracy(learned, truth).errors
    assert account["met"]
    assert account["certificate"] == "proven"
    assert not account["limit"]
    assert np.max(errors) <= account["bound"] <= 1e-3
    assert np.all(errors <= learned.certify(truth.mus).relative)
    assert learned.facts["measured"]["max"] <= account["bound"]
    # far fewer full solves than a table would need
    assert account["solves"] <= 30
    assert len(account["history"]) == learned.basis.n_modes
    assert "met" in account_rows(learned)["tolerance"]


def test_discretisation_estimate_is_above_the_true_error_and_not_far(learned):
    # the catalogue knows the exact solution
    exact = max(learned.solver.solve([nu]).error for nu in (1e-3, 2e-3, 0.03, 1.0))
    assert exact <= learned.facts["learn"]["discretisation_error"] <= 20 * exact
    assert learned.facts["learn"]["discretisation_error"] <= 1e-3


def test_total_bounds_the_error_against_the_exact_solution(layer):
    surrogate = learn(layer, 1e-3, total=True, **quick)
    account, model = surrogate.facts["learn"], surrogate.solver
    assert account["met"]
    assert account["bound"] + account["discretisation_error"] <= 1e-3
    for nu in (1e-3, 0.0123, 0.7):
        exact = model.exact(np.array([nu]))
        assert np.linalg.norm(surrogate([nu]).values - exact) <= 1e-3 * np.linalg.norm(exact)


def test_smaller_aims_take_more_nodes(layer):
    found = [choose_nodes(layer, aim, limits=Limits(), stage=lambda text: None) for aim in (1e-2, 1e-6)]
    assert found[0].model.n_nodes < found[1].model.n_nodes
    assert all(one.error <= aim for one, aim in zip(found, (1e-2, 1e-6), strict=True))


def test_nodes_go_where_the_error_is():
    nodes = ps.scatter(ps.Box((0.0, 0.0), (1.0, 1.0)), n_nodes=400)
    model = ps.discretize(ps.load_problem("boundary-layer"), nodes)
    spacing = indicated_spacing(model, np.where(nodes.points[:, 0] > 0.9, 1.0, 1e-3))
    h = spacing(np.array([[0.97, 0.5], [0.5, 0.5]]))
    assert h[0] < 0.6 * h[1]


def test_few_solves_give_the_best_there_is_and_say_so(layer):
    with pytest.warns(ps.ParasolWarning, match="not met.*limited by solves"):
        surrogate = learn(layer, 1e-9, solves=8, n_nodes=60, **quick)
    account = surrogate.facts["learn"]
    assert not account["met"]
    assert account["solves"] <= 8
    assert 1e-9 < account["bound"] < 1.0
    with pytest.warns(ps.ParasolWarning, match="limited by solves"):
        sampled = learn(Wave(), 1e-9, solves=20, **quick)
    assert sampled.facts["learn"]["solves"] <= 20
    assert sampled.conformal.level < 0.95  # as sure as the few solves allow


@pytest.mark.parametrize("solves", [15, 30, 36, 39])
def test_a_bound_comes_from_however_few_solves_are_left(solves):
    with pytest.warns(ps.ParasolWarning, match="not met"):
        surrogate = learn(Wave(), 1e-9, solves=solves, **quick)
    bound = surrogate.conformal
    assert bound.level == pytest.approx(bound.n_calibration / (bound.n_calibration + 1))


def test_no_seconds_is_an_error_in_one_line(layer):
    with pytest.raises(ps.ParasolError, match="seconds allowed are used up"):
        learn(layer, 1e-3, seconds=1e-6, n_nodes=60, **quick)


def test_a_solver_of_ones_own_gets_a_conformal_bound_that_holds():
    surrogate = learn(Wave(), 1e-3, **quick)
    account = surrogate.facts["learn"]
    assert account["met"]
    assert account["certificate"] == "conformal"
    assert surrogate.conformal.level == 0.95
    mus = np.random.default_rng(9).uniform([1, 0], [3, 1], (300, 2))
    truth = np.array([Wave().solve(mu) for mu in mus])
    errors = np.linalg.norm(surrogate(mus).values - truth, axis=1) / np.linalg.norm(truth, axis=1)
    assert np.mean(errors <= account["bound"]) > 0.85
    assert account["bound"] <= 1e-3


def test_a_stopped_run_goes_on_and_a_second_one_solves_nothing(tmp_path):
    whole = learn(Wave(), 1e-3, **quick)
    first = Wave(stop_after=13)
    with pytest.raises(KeyboardInterrupt):
        learn(first, 1e-3, store=tmp_path, **quick)
    second = Wave()
    surrogate = learn(second, 1e-3, store=tmp_path, **quick)
    assert first.calls == 13
    assert second.calls == whole.facts["learn"]["solves"] - 13
    third = Wave()
    again = learn(third, 1e-3, store=tmp_path, **quick)
    assert third.calls == 0
    assert again.facts["learn"]["new_solves"] == 0
    mus = Wave.parameters.grid(3, 3)
    assert np.array_equal(surrogate(mus).values, again(mus).values)
    assert np.array_equal(surrogate(mus).values, whole(mus).values)
    # a smaller tolerance starts from what is there
    finer = Wave()
    better = learn(finer, 1e-5, store=tmp_path, **quick)
    assert better.facts["learn"]["met"]
    assert finer.calls < better.facts["learn"]["solves"]


_SLOWLY = """
import sys, time
import numpy as np
import parasol as ps

class Slow:
    parameters = ps.ParameterSpace(ps.parameters(a=(1.0, 3.0), b=(0.0, 1.0)))
    fingerprint = "wave"

    def solve(self, mu):
        time.sleep(0.05)
        return np.sin(mu[0] * np.linspace(0, 2, 30) + mu[1])

ps.learn(Slow(), 1e-3, recipe="polynomial", store=sys.argv[1])
"""


@pytest.mark.skipif(os.name != "posix", reason="kills as POSIX does")
def test_kill_loses_nothing_that_was_done(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", _SLOWLY, str(tmp_path)])
    deadline = time.monotonic() + 120
    while len(list(tmp_path.glob("*/*/chunk-*.h5"))) < 6 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = len(list(tmp_path.glob("*/*/chunk-*.h5")))
    solver = Wave()
    surrogate = learn(solver, 1e-3, store=tmp_path, **quick)
    assert kept >= 6
    assert solver.calls == surrogate.facts["learn"]["solves"] - kept


def test_greedy_solves_are_kept_too(layer, tmp_path):
    first, second = (learn(layer, 1e-3, store=tmp_path, **quick).facts["learn"] for _ in range(2))
    assert first["new_solves"] == first["solves"]
    assert second["new_solves"] == 0
    assert second["solves"] == first["solves"]
    assert second["bound"] == first["bound"]
    assert len(list(tmp_path.glob("nodes-*.npz"))) == 1


class Fold(Wave):
    """sqrt(0.6 − a) has no value beyond 0.6."""

    parameters = ps.ParameterSpace(ps.parameters(a=(0.0, 1.0)))
    fingerprint = "fold"

    def solve(self, mu):
        if mu[0] > 0.6:
            raise ps.ParasolError("no solution")
        return np.exp(-np.sqrt(0.6 - mu[0]) * np.linspace(1, 2, 20))


def test_the_box_ends_where_solutions_end():
    surrogate = learn(Fold(), 1e-2, **quick)
    (a,) = surrogate.parameters.scalars
    assert 0.58 < a.high <= 0.6
    assert a.low == 0.0
    assert "solves failed" in surrogate.facts["learn"]["notes"][0]
    with pytest.raises(ps.ParasolError):
        surrogate([0.8])


def test_cuts_take_the_side_that_loses_least():
    space = ps.ParameterSpace(ps.parameters(a=(0.0, 1.0), b=(0.0, 10.0)))
    solved = space.grid(5, 5)
    bad = solved[:, 1] > 7
    found = cuts(space, solved[~bad], solved[bad])
    assert len(found) == 1
    assert (found[0].axis, found[0].below, found[0].value) == (1, True, 0.5)
    assert between(space, found, solved[~bad])[0, 1] == pytest.approx(6.25)
    assert shortened(space, found).scalars[1].high == pytest.approx(5.0)


def test_reduced_models_teach_where_they_can_be_trusted():
    (x,) = ps.coordinates("x")
    u, (rate,) = ps.unknown("u", x), ps.parameters(rate=(0.1, 2.0))
    problem = ps.Problem(ps.Box(0.0, 1.0), ps.Eq(-u.diff(x, 2), rate * exp(u)), ps.Dirichlet(0))
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=40))
    train, test = (ps.solve_many(model, ps.sample(model, n, rng=n)) for n in (8, 5))
    draw = lambda n: ps.sample(model, n, rng=5)  # noqa: E731
    teacher = teacher_for(model, train, test, most_error=1e-4, tolerance=1e-4, draw=draw)
    assert teacher is not None
    assert len(teacher.mus) == 256
    truth = ps.solve_many(model, teacher.mus[:10]).solutions
    gap = np.linalg.norm(teacher.basis.lift(teacher.coefficients[:10]) - truth, axis=1)
    assert np.max(gap / np.linalg.norm(truth, axis=1)) < 1e-4
    assert teacher_for(model, train, test, most_error=1e-16, tolerance=1e-4, draw=draw) is None


def test_in_time_the_labels_of_a_reduced_model_follow_the_full_one():
    (x,), t = ps.coordinates("x"), ps.time()
    u, (k,) = ps.unknown("u", x, t), ps.parameters(k=(0.1, 1.0))
    times = np.linspace(0, 0.5, 6)
    problem = ps.Problem(
        ps.Box(0.0, 1.0), ps.Eq(u.diff(t), k * u.diff(x, 2)), ps.Dirichlet(0), initial=sin(3.14159265 * x), times=times
    )
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=30))
    train, test = (ps.solve_many(model, ps.sample(model, n, rng=n)) for n in (8, 4))
    teacher = teacher_for(
        model, train, test, most_error=1e-3, tolerance=1e-3, draw=lambda n: ps.sample(model, n, rng=5)
    )
    assert teacher is not None
    truth = ps.solve_many(model, teacher.mus[:6]).solutions
    gap = np.linalg.norm(teacher.basis.lift(teacher.coefficients[:6]) - truth, axis=1)
    assert np.max(gap / np.linalg.norm(truth, axis=1)) < 1e-3
    surrogate = learn(problem, 1e-3, model=model, **quick)
    assert surrogate.facts["learn"]["met"]
    assert surrogate.layout.n_times == 6


def test_data_instead_of_a_solver(tmp_path):
    mus = ps.sample(Wave.parameters, 200, rng=3)
    solutions = np.array([Wave().solve(mu) for mu in mus])
    np.savez(tmp_path / "data.npz", mus=mus, solutions=solutions)
    pair = learn(None, 1e-3, data=(mus, solutions), **quick)
    file = learn(Wave(), 1e-3, data=tmp_path / "data.npz", **quick)
    assert pair.facts["learn"]["met"]
    assert pair.facts["learn"]["solves"] is None
    assert file.parameters.names == ("a", "b")
    assert pair.parameters.names == ("p1", "p2")
    with pytest.warns(ps.ParasolWarning, match="not met"):
        learn(None, 1e-14, data=(mus, solutions), **quick)
    np.savez(tmp_path / "other.npz", mus=mus)
    (tmp_path / "text.npz").write_text("no numbers")
    for data, message in (
        (tmp_path / "other.npz", "no array 'solutions'"),
        (tmp_path / "text.npz", "cannot be read"),
        (tmp_path / "none.npz", "there is no data"),
        (3, "a pair"),
    ):
        with pytest.raises(ps.ParasolError, match=message):
            learn(None, data=data)


def test_a_plan_learns_nothing(layer):
    found = plan(layer, 1e-3)
    assert found.facts()["n_nodes"] == found.found.model.n_nodes
    assert found.n_solves[0] < found.n_solves[1]
    assert found.found.error <= 1e-3
    assert "residual" in found.road
    assert "conformal" in plan(Wave()).road


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tolerance": 2.0}, "below 1"),
        ({"tolerance": -1e-3}, "positive"),
        ({"problem": 3}, "problem is 3"),
        ({"rng": "seed"}, "rng="),
        ({"solves": 3}, "at least 8"),
        ({"model": 1}, "model is a int"),
    ],
)
def test_wrong_input(layer, arguments, message):
    with pytest.raises(ps.ParasolError, match=message):
        learn(**({"problem": layer} | arguments))


def test_model_and_nodes_are_one_choice(layer):
    model = ps.discretize(layer, ps.scatter(layer.domain, n_nodes=50))
    with pytest.raises(ps.ParasolError, match="both model and n_nodes"):
        learn(layer, model=model, n_nodes=50)
    (x,) = ps.coordinates("x")
    u = ps.unknown("u", x)
    with pytest.raises(ps.ParasolError, match="no parameters"):
        learn(ps.Problem(ps.Box(0.0, 1.0), ps.Eq(-u.diff(x, 2), 1), ps.Dirichlet(0)))


def test_a_book_solves_once_and_remembers_failures():
    solver = Fold()
    book = Book(solver, Limits(solves=10))
    mus = np.array([[0.1], [0.5], [0.9]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(book.solve(mus, "test")) == 2
        assert len(book.solve(mus, "test")) == 2
    assert (book.n_solves, book.n_new) == (3, 3)
    assert book.failures().tolist() == [[0.9]]
    assert book.affordable(20) == 7
    with pytest.raises(ps.ParasolError, match="none of the 1"):
        book.solve(mus[2:], "test")
