"""Learning to a tolerance: promises kept on fresh solves, limits, stores, the user's own solver and data."""

import os
import re
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sympy import cos, exp, sin

import parasol as ps
from parasol.cache.disk import claim
from parasol.fitting.gaussian_process import GaussianProcess
from parasol.fitting.polynomial import Polynomial
from parasol.fitting.units import field_weights, unknown_labels
from parasol.learning import sampled
from parasol.learning.in_time import memory_in_time
from parasol.learning.labels import label_source, relative
from parasol.learning.nodes import choose_nodes, indicated_spacing
from parasol.learning.region import between, cuts, shortened
from parasol.learning.report import LearnReport
from parasol.learning.run import learn, plan
from parasol.learning.sampled import learn_sampled
from parasol.learning.solves import Limits, SolveCache
from parasol.learning.store import NodesKey
from parasol.learning.store import _path as nodes_path
from parasol.learning.verdict import failures_text
from parasol.pde.discretize import discretize_with
from parasol.reduction.fingerprints import difference, parts_of, problem_fingerprint

MUS = np.array([[1.0, 0.1], [2.0, 0.5], [3.0, 0.9]])
quick = {"recipe": "polynomial"}  # no network to train


@pytest.fixture(scope="module")
def layer():
    return ps.load_problem("reaction-layer")


@pytest.fixture(scope="module")
def learned(layer):
    return learn(layer, 1e-3, **quick)


class Wave:
    """A solver of one's own: sin(a t + b)."""

    parameters = ps.pde.ParameterSpace(ps.parameters(a=(1.0, 3.0), b=(0.0, 1.0)))

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


def test_below_the_tolerance_on_solves_nobody_has_seen(layer, learned):
    account = learned.facts["learn"]
    model = learned.solver
    truth = ps.solve_many(model, ps.sample(model, 60, design="random", rng=123))
    errors = ps.accuracy(learned, truth).errors
    assert account["met"]
    assert account["certificate"] == "probable"
    assert account["probability"] > 0.999
    assert not account["limit"]
    assert np.max(errors) <= account["bound"] <= 1e-3
    assert np.all(errors <= learned.certify(truth.mus).relative)
    assert learned.facts["measured"]["max"] <= account["bound"]
    report = LearnReport.of(learned)
    assert report.to_dict() == account
    assert report.measured.n == learned.facts["measured"]["n"]
    assert len(report.history) == account["solves"] - report.measured.n
    # far fewer full solves than a table would need
    assert account["solves"] <= 30
    assert len(account["history"]) == learned.basis.n_modes
    assert "met" in LearnReport.of(learned).rows()["tolerance"]


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


def test_without_seconds_one_solve_comes_back(layer):
    with pytest.warns(ps.ParasolWarning, match="not met.*limited by seconds"):
        surrogate = learn(layer, 1e-3, seconds=1e-6, n_nodes=60, **quick)
    assert surrogate.facts["learn"]["solves"] == 1
    assert surrogate.facts["learn"]["discretisation_error"] is None


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
    better = learn(finer, 1e-4, store=tmp_path, **quick)
    assert better.facts["learn"]["met"]
    assert finer.calls < better.facts["learn"]["solves"]


_SLOWLY = """
import sys, time
import numpy as np
import parasol as ps

class Slow:
    parameters = ps.pde.ParameterSpace(ps.parameters(a=(1.0, 3.0), b=(0.0, 1.0)))
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
    while len(list(tmp_path.glob("*/*/receipts/[!.]*.json"))) < 6 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = len(list(tmp_path.glob("*/*/receipts/[!.]*.json")))
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
    (nodes,) = tmp_path.glob("nodes-*.npz")
    raw = bytearray(nodes.read_bytes())
    raw[700] ^= 1
    nodes.write_bytes(raw)
    again = learn(layer, 1e-3, store=tmp_path, **quick).facts["learn"]
    assert "Bad CRC-32 for file 'points.npy'. The nodes are chosen anew." in again["notes"][0]
    assert again["new_solves"] == 0
    with pytest.warns(ps.ParasolWarning, match="not reused: "):  # a word of the user's makes another problem of it
        other = learn(layer, 1e-3, store=tmp_path, fingerprint="as of today", **quick).facts["learn"]
    assert other["new_solves"] == first["solves"]
    assert len(list(tmp_path.glob("nodes-*.npz"))) == 2


class Fold(Wave):
    """sqrt(0.6 − a) has no value beyond 0.6."""

    parameters = ps.pde.ParameterSpace(ps.parameters(a=(0.0, 1.0)))
    fingerprint = "fold"

    def solve(self, mu):
        if mu[0] > 0.6:
            raise ps.ParasolError("no solution")
        return np.exp(-np.sqrt(0.6 - mu[0]) * np.linspace(1, 2, 20))


def test_the_declared_box_stays_and_answers_end_where_solutions_end(tmp_path):
    said = r"\d+ full solves failed, at a=0\.\d+ \(no solution\).* answers for a in \[0, 0\.\d+\]; elsewhere it refuses"
    with pytest.warns(ps.ParasolWarning, match=said):
        surrogate = learn(Fold(), 1e-2, **quick)
    assert re.match(said, surrogate.facts["learn"]["notes"][0])
    ps.save(surrogate, tmp_path / "fold.parasol")
    for one in (surrogate, ps.load(tmp_path / "fold.parasol")):
        assert one.parameters.bounds.tolist() == [[0.0], [1.0]]
        ((low, high),) = one.parameters.solved
        assert low == 0.0
        assert 0.58 < high <= 0.6
        assert not one([high]).extrapolated
        with pytest.raises(
            ps.ParasolError, match=r"a=0\.8 .*where full solves failed \(no solution\).*extrapolate=True"
        ):
            one([0.8])
        answer = one([[0.3], [0.8]], extrapolate=True)
        assert answer.extrapolated.tolist() == [False, True]
        assert np.isinf(answer.bounds.relative).tolist() == [False, True]
        with pytest.raises(ps.ParasolError, match=r"outside its range \[0, 1\]"):
            one([1.2])
    assert surrogate.parameters.vector({})[0] == pytest.approx(high / 2)  # the middle of the part with solutions
    report = ps.check(surrogate, n=20)
    assert report.n_failed == 0


class Corner(Wave):
    """No solutions beyond a diagonal, where one box after the other still has some without; slow to be seen."""

    parameters = ps.pde.ParameterSpace(ps.parameters(a=(1.0, 3.0), b=(0.0, 1.0)))
    fingerprint = "corner"

    def solve(self, mu):
        if mu[0] + mu[1] > 3.3:
            raise ps.ParasolError("beyond the diagonal")
        return super().solve(mu)


def test_no_failed_solve_lies_where_a_surrogate_answers():
    with pytest.warns(ps.ParasolWarning, match="beyond the diagonal") as said:
        surrogate = learn(Corner(), 1e-2, **quick)
    assert surrogate.facts["learn"]["met"]
    assert "all the same" not in str(said[0].message)
    (_, a), (_, b) = surrogate.parameters.solved
    assert a + b < 3.4
    assert (a - 1) * b > 1.2  # and not much of the box is given away


class Narrow(Fold):
    """Solutions in a small part of the range only."""

    fingerprint = "narrow"

    def solve(self, mu):
        if not 0.3 < mu[0] < 0.7:
            raise ps.ParasolError("no solution")
        return np.sin(mu[0] * np.linspace(1, 2, 20))


def test_a_small_part_with_solutions_is_found_and_learned():
    with pytest.warns(ps.ParasolWarning, match="answers for a in"):
        surrogate = learn(Narrow(), 1e-2, **quick)
    assert surrogate.facts["learn"]["met"]
    assert surrogate.parameters.solved[0] == pytest.approx((0.3, 0.7), abs=0.015)


class Late(Wave):
    """Fails at large a, but not before the fresh solves for the bound."""

    fingerprint = "late"

    def solve(self, mu):
        out = super().solve(mu)
        if self.calls > 26 and mu[0] > 2.8:
            raise ps.ParasolError("too late")
        return out


def test_a_failure_among_the_fresh_solves_for_the_bound_cuts_the_box_too():
    with pytest.warns(ps.ParasolWarning, match=r"too late.*answers for a in \[1, 2\.") as said:
        surrogate = learn(Late(), 0.3, **quick)
    account = surrogate.facts["learn"]
    assert len(account["history"]) == 2  # what was solved for the bound joins the samples, and is learned
    assert account["n_tries"] == 2  # the set that showed where to cut has spent its part of the level
    assert (account["met"], account["level"], account["n_failed_fresh"]) == (True, 0.95, 0)
    assert "all the same" not in str(said[0].message)
    assert surrogate.facts["measured"]["n"] == 39  # all of them from the box that is left


class Gap(Wave):
    """No solutions in the middle: no box around it would help."""

    parameters = ps.pde.ParameterSpace(ps.parameters(a=(1.0, 3.0), b=(0.0, 1.0)))
    fingerprint = "gap"

    def solve(self, mu):
        if np.hypot(mu[0] - 2, mu[1] - 0.5) < 0.05:
            raise np.linalg.LinAlgError("singular")
        return super().solve(mu)


def test_failures_inside_the_box_are_named():
    cache = SolveCache(Gap(), Limits())
    cache.solve(np.array([[1.0, 0.0], [2.0, 0.5]]))
    text = failures_text(Gap.parameters, cache)
    assert text.startswith("1 full solves failed, at a=2, b=0.5 (singular).")
    assert "Around 1 of them it answers all the same" in text


def test_cuts_take_the_side_that_loses_least():
    space = ps.pde.ParameterSpace(ps.parameters(a=(0.0, 1.0), b=(0.0, 10.0)))
    solved = space.grid(5, 5)
    bad = solved[:, 1] > 7
    found = cuts(space, solved[~bad], solved[bad])
    assert len(found) == 1
    assert (found[0].axis, found[0].below, found[0].value) == (1, True, 0.5)
    assert between(space, found, solved[~bad])[0, 1] == pytest.approx(6.25)
    assert shortened(space, found).scalars[1].high == pytest.approx(5.0)


def test_both_ends_of_a_range_may_fail():
    space = ps.pde.ParameterSpace(ps.parameters(a=(0.0, 1.0)))
    rows = np.linspace(0, 1, 11)[:, None]
    good = (rows[:, 0] > 0.25) & (rows[:, 0] < 0.65)
    found = cuts(space, rows[good], rows[~good])
    assert shortened(space, found).bounds[:, 0] == pytest.approx([0.3, 0.6])
    space = ps.pde.ParameterSpace(ps.parameters(a=(0.0, 1.0), b=(0.0, 1.0)))
    rows = space.grid(9, 9)
    good = np.abs(rows.sum(axis=1) - 1) < 0.8  # two opposite corners fail
    box = shortened(space, cuts(space, rows[good], rows[~good]))
    assert not np.any(box.inside(rows[~good]))
    assert np.prod(np.diff(box.bounds, axis=0)) > 0.3
    space, rows = ps.pde.ParameterSpace(ps.parameters(a=(0.0, 1.0))), np.linspace(0, 1, 11)[:, None]
    with pytest.raises(ps.ParasolError, match="at one value of a only"):
        shortened(space, cuts(space, rows[:1], rows[1:]))


def test_labels_of_a_reduced_model_follow_the_full_one():
    (x,) = ps.coordinates("x")
    u, (rate,) = ps.unknown("u", x), ps.parameters(rate=(0.1, 2.0))
    problem = ps.Problem(ps.Box(0.0, 1.0), ps.Eq(-u.diff(x, 2), rate * exp(u)), ps.Dirichlet(0))
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=40))
    train, test = (ps.solve_many(model, ps.sample(model, n, rng=n)) for n in (8, 10))
    source = label_source(model, train, 1e-4)
    assert source is not None
    assert np.max(source.errors(test)) < 1e-5
    labels = source.labels(test.mus, 1e-4)
    assert labels is not None
    assert labels.basis.n_modes < source.reduced.n_modes  # no more than the tolerance needs
    assert np.max(relative(labels.basis.lift(labels.coefficients), test.solutions)) < 1.2e-4
    assert np.max(source.gaps(source, test.mus)) == 0.0
    other = label_source(model, ps.solve_many(model, [[0.1], [2.0]]), 1e-4)
    assert source.gaps(other, test.mus) == pytest.approx(other.errors(test), rel=0.1)  # the other one's error


@pytest.mark.parametrize("wall", [0, sin(3 * ps.time())])
def test_in_time_the_labels_of_a_reduced_model_follow_the_full_one(wall):
    (x,), t = ps.coordinates("x"), ps.time()
    u, (k,) = ps.unknown("u", x, t), ps.parameters(k=(0.1, 1.0))
    heat, start = ps.Eq(u.diff(t), k * u.diff(x, 2)), sin(3.14159265 * x)
    problem = ps.Problem(ps.Box(0.0, 1.0), heat, ps.Dirichlet(wall), initial=start, times=np.linspace(0, 0.5, 6))
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=30))
    train, test = (ps.solve_many(model, ps.sample(model, n, rng=n)) for n in (8, 6))
    source = label_source(model, train, 1e-3)
    assert source is not None
    assert np.max(source.errors(test)) < 1e-4
    labels = source.labels(test.mus, 1e-3)
    assert labels is not None
    assert np.max(relative(labels.basis.lift(labels.coefficients), test.solutions)) < 1.1e-3
    assert source.snapshots(test.mus).solutions == pytest.approx(test.solutions, abs=1e-3)


def test_two_fields_of_different_units_count_alike_in_a_reduced_model_in_time():
    (x,), t = ps.coordinates("x"), ps.time()
    (u, v), (k,) = ps.unknowns("u v", x, t), ps.parameters(k=(0.1, 1.0))
    heat = [ps.Eq(u.diff(t), k * u.diff(x, 2) + 1e-6 * v), ps.Eq(v.diff(t), v.diff(x, 2) + 1e6 * k * u)]
    conditions, start = [ps.Dirichlet(0), ps.Dirichlet(0)], {"u": sin(3.14159265 * x), "v": 0}
    problem = ps.Problem(ps.Box(0.0, 1.0), heat, conditions, initial=start, times=np.linspace(0, 0.5, 6))
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=30))
    train, test = (ps.solve_many(model, ps.sample(model, n, rng=n)) for n in (5, 6))
    weights = field_weights(train.solutions, unknown_labels(model))
    source = label_source(model, train, 1e-3, weights)
    labels = source.labels(test.mus, 1e-3)
    gap = labels.basis.lift(labels.coefficients) - test.solutions
    for name in range(2):
        here = unknown_labels(model) == name
        assert np.max(np.linalg.norm(gap[:, here], axis=1) / np.linalg.norm(test.solutions[:, here], axis=1)) < 5e-3


def heated(*, low=0.02, high=1.0, fastest=10.0, condition=None):
    """A rod heated by cos(ω t), cold at its ends and at first."""
    (x,), t = ps.coordinates("x"), ps.time()
    u, (k, omega) = ps.unknown("u", x, t), ps.parameters(k=(low, high, "log"), omega=(1.0, fastest))
    heat, times = ps.Eq(u.diff(t) - k * u.diff(x, 2), cos(omega * t)), np.linspace(0, 2, 21)
    ends = ps.Dirichlet(0) if condition is None else condition(k)
    problem = ps.Problem(ps.Box(0.0, 1.0), heat, ends, initial=0, times=times)
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=60))


@pytest.mark.parametrize("rng", [1])
@pytest.mark.slow
def test_heat_in_two_parameters_takes_a_dozen_solves_besides_those_of_the_bound(rng):
    model = heated()
    surrogate = learn(model, 1e-3, rng=rng)
    account = surrogate.facts["learn"]
    assert account["met"]
    assert account["labels"] == "reduced model"
    assert account["solves"] - 39 <= 12
    truth = ps.solve_many(model, ps.sample(model, 30, rng=77))
    assert np.max(ps.accuracy(surrogate, truth).errors) < 1e-3


@pytest.mark.slow
def test_where_there_is_no_reduced_model_maps_of_full_solves_are_learned():
    model = heated(low=0.5, fastest=2.0, condition=lambda k: ps.Robin(k, 1, 0))
    assert label_source(model, ps.solve_many(model, ps.sample(model, 2)), 1e-2) is None
    account = learn(model, 2e-2, **quick).facts["learn"]
    assert account["met"]
    assert account["labels"] == "full solves"


@pytest.mark.slow
def test_a_reduced_model_stays_on_the_side_of_a_fold_where_there_are_solutions():
    """−u'' = rate eᵘ on (0, 1) has a solution up to rate = 3.5138."""
    (x,) = ps.coordinates("x")
    u, (rate,) = ps.unknown("u", x), ps.parameters(rate=(0.1, 5.0))
    problem = ps.Problem(ps.Box(0.0, 1.0), ps.Eq(-u.diff(x, 2), rate * exp(u)), ps.Dirichlet(0))
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=40))
    with pytest.warns(ps.ParasolWarning, match="full solves failed"):
        surrogate = learn(model, 1e-3)
    account = surrogate.facts["learn"]
    assert account["met"]
    assert account["labels"] == "reduced model"
    assert 3.2 < surrogate.parameters.solved[0][1] < 3.514
    truth = ps.solve_many(model, np.linspace(0.2, 3.2, 20)[:, None])
    assert np.quantile(ps.accuracy(surrogate, truth).errors, 0.95) < 1e-3


def test_no_fresh_solve_was_ever_chosen(monkeypatch):
    """What decides where to solve and when to stop never meets the parameters of the bound."""
    drawn, sample = {}, sampled.State.sample

    def spy(state, n, design, stream):
        out = sample(state, n, design, stream)
        drawn.setdefault("fresh" if 1000 <= stream < 1000 + 2 else "other", []).extend(out[:, 0].tolist())
        return out

    monkeypatch.setattr(sampled.State, "sample", spy)
    model = heated()
    learn_sampled(model, 1e-2, SolveCache(model, Limits()), recipe=GaussianProcess())
    assert len(drawn["fresh"]) == 39
    assert len(drawn["other"]) > 1000
    assert not set(drawn["fresh"]) & set(drawn["other"])


@pytest.mark.slow
def test_if_no_map_follows_the_reduced_model_no_more_is_solved(monkeypatch):
    monkeypatch.setattr(sampled, "_N_LABELS", (64,))
    with pytest.warns(ps.ParasolWarning, match="limited by map"):
        surrogate = learn(heated(), 1e-4, recipe="linear")
    account = surrogate.facts["learn"]
    assert account["solves"] <= 12 + 39
    assert account["bound"] > 1e-4  # of the linear map, and measured
    truth = ps.solve_many(surrogate.solver, ps.sample(surrogate.solver, 20, rng=5))
    assert np.mean(ps.accuracy(surrogate, truth).errors <= account["bound"]) >= 0.8


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
        (tmp_path / "other.npz", "there are no fields"),
        (tmp_path / "text.npz", "cannot be read"),
        (tmp_path / "none.npz", "there are no results"),
        (3, "a pair"),
    ):
        with pytest.raises(ps.ParasolError, match=message):
            learn(None, data=data)


def test_a_plan_learns_nothing(layer):
    found = plan(layer, 1e-3)
    assert found.facts()["n_nodes"] == found.discretised.model.n_nodes
    assert found.n_solves[0] < found.n_solves[1]
    assert found.discretised.error <= 1e-3
    assert "estimated error" in found.method
    assert "conformal" in plan(Wave()).method


def test_a_plan_for_a_nonlinear_problem_predicts_the_whole(tmp_path):
    x = ps.coordinates("x")[0]
    u, (a,) = ps.unknown("u", x), ps.parameters(a=(0.1, 10.0, "log"))
    bent = ps.Problem(ps.Box(0, 1), ps.Eq(-u.diff(x, 2) + u**3, a), ps.Dirichlet(0))
    found = plan(bent, 1e-3, n_nodes=40)
    learned = learn(bent, 1e-3, n_nodes=40, recipe="polynomial", store=tmp_path / "store")
    made = learned.facts["learn"]["solves"]
    low, high = found.n_solves
    facts, written = found.facts(), ps.save(learned, tmp_path / "bent.parasol").stat().st_size
    assert facts["file_bytes"][0] < written < facts["file_bytes"][1]
    kept = sum(path.stat().st_size for path in (tmp_path / "store").rglob("*") if path.is_file())
    least, most = facts["store_bytes"]
    assert least * made / low < kept < most * made / high + 1e5  # of as many solves as it was
    assert 5e7 < facts["memory_bytes"][0] < facts["memory_bytes"][1] < 1e11
    assert {"memory", "file"} <= found.rows().keys()
    assert low / 2 < made < 2 * high
    assert high < 2 * low
    assert found.whole[0] > low * found.discretised.seconds / 2 > 0  # the solves are counted in
    assert found.whole[1] > found.whole[0]
    assert "rough guess" in found.rows()["full solves"]
    assert "everything" in found.rows()


def test_a_plan_in_time_counts_what_duals_of_whole_trajectories_keep():
    model = discretize_with(ps.load_problem("heat"), ps.Settings(n_nodes=120))
    planned = plan(model, 1e-2)
    low, high = memory_in_time(model, planned.n_solves)
    assert (
        low == 8 * 100 * 120 * (1 + 13 * 5) * 4.5
    )  # three trajectories and what is made of them, in 13 steps of 5 stages
    peak = planned.memory[0] - low
    assert planned.memory[1] == pytest.approx(1.3 * peak + 80 * planned.n_solves[1] * planned.n_values + high)


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


def test_a_cache_solves_once_and_remembers_failures():
    solver = Fold()
    cache = SolveCache(solver, Limits(solves=10))
    mus = np.array([[0.1], [0.5], [0.9]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(cache.solve(mus, "test")) == 2
        assert len(cache.solve(mus, "test")) == 2
    assert (cache.n_solves, cache.n_new) == (3, 3)
    assert cache.failures().tolist() == [[0.9]]
    assert cache.affordable(20) == 7
    with pytest.raises(ps.ParasolError, match="none of the 1"):
        cache.solve(mus[2:], "test")


def test_what_is_affordable_counts_hands_once():
    class Slow(Fold):
        def solve(self, mu):
            time.sleep(0.2)
            return mu * np.ones(3)

    with ThreadPoolExecutor(2) as executor:
        cache = SolveCache(Slow(), Limits(seconds=100.0), executor=executor)
        cache.solve(np.linspace(0.1, 0.9, 4)[:, None])
        assert cache.cost >= 0.2  # of one of the two, though a solve ended every 0.1 s
        assert cache.affordable(10**6) <= 2 * 100.0 / 0.2


# ---- what a store may be used for -----------------------------------------------------------------------------------
def plate(*, domain=None, boundary=None, source=1, ranges=None, order=("a", "b"), settings=None, on="x <= -0.5"):
    x, y = ps.coordinates("x y")
    declared = {"a": (1.0, 2.0), "b": (0.5, 1.0)} | (ranges or {})
    numbers = dict(zip(order, ps.parameters(**{name: declared[name] for name in order}), strict=True))
    u = ps.unknown("u", x, y)
    domain = ps.Disc().named(inlet=on) if domain is None else domain
    boundary = {"inlet": ps.Dirichlet(0), "*": ps.Neumann(numbers.get("b", 1))} if boundary is None else boundary
    options = {} if settings is None else {"settings": {"default": ps.Settings(**settings)}}
    return ps.Problem(domain, ps.Eq(-numbers["a"] * ps.laplacian(u), source), boundary, **options)


def block(hole):
    domain = ps.Box((-1.0, -1.0), (1.0, 1.0)) - ps.Disc(hole, 0.3)
    return {"domain": domain, "boundary": ps.Dirichlet(ps.coordinates("x y")[0]), "order": ("a",)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (block((0.4, 0.0)), block((-0.4, 0.3)), "domain"),  # the same bounding box
        ({"order": ("a",)}, {"order": ("a",), "on": "x <= 0.5"}, "domain"),  # a moved boundary part
    ],
)
def test_a_store_gives_what_a_fresh_run_gives_whatever_has_changed(tmp_path, before, after, said):
    wish = {"tolerance": 1e-2, "n_nodes": 100, "recipe": "polynomial"}
    learn(plate(**before), store=tmp_path, **wish)
    fresh = learn(plate(**after), **wish)
    with pytest.warns(ps.ParasolWarning, match=rf"holds \d+ full solves of <Model .* not reused: {said}, .* differ"):
        stored = learn(plate(**after), store=tmp_path, **wish)
    mu = fresh.parameters.vector({})
    assert np.array_equal(fresh.layout.points, stored.layout.points)
    assert np.array_equal(fresh(mu).values, stored(mu).values)
    with warnings.catch_warnings():  # of its own solves the store makes use
        warnings.filterwarnings("error", ".*not reused", ps.ParasolWarning)
        again = learn(plate(**after), store=tmp_path, **wish)
    assert again.facts["learn"]["new_solves"] == 0
    assert np.array_equal(again(mu).values, stored(mu).values)


@pytest.mark.parametrize(
    ("after", "named"),
    [
        ({"domain": ps.Box((-1.0, -1.0), (1.0, 1.0)).named(inlet="x <= -0.5")}, "domain, "),
        ({"boundary": {"inlet": ps.Dirichlet(1), "*": ps.Neumann(0)}}, "boundary, parameters differ"),
        ({"source": 2}, "equation differs"),
        ({"order": ("b", "a")}, "parameters differs"),  # the columns of a parameter vector change places
        ({"ranges": {"a": (1.0, 4.0)}}, "equation, parameters differ"),
        ({"settings": {"degree": 3}}, "scheme differs"),
    ],
)
def test_whatever_changes_an_answer_changes_the_names_in_the_store(tmp_path, after, named):
    problems = [plate(), plate(), plate(**after)]
    chosen = [ps.Settings(n_nodes=100), ps.Settings(n_nodes=100), ps.Settings(n_nodes=100, **after.get("settings", {}))]
    models = [discretize_with(problem, settings) for problem, settings in zip(problems, chosen, strict=True)]
    paths = [nodes_path(tmp_path, problem, NodesKey(1e-2)) for problem in problems]
    assert paths[0] == paths[1] != paths[2]
    parts = [parts_of(model) for model in models]
    assert parts[0] == parts[1]
    assert difference(parts[0], parts[2]).startswith(named)
    if "settings" not in after:
        found = [problem_fingerprint(problem) for problem in problems]
        assert found[0] == found[1] != found[2]
    assert nodes_path(tmp_path, problems[0], NodesKey(1e-3)) != paths[0]


def test_the_distribution_of_a_function_is_part_of_the_nodes_that_are_kept(tmp_path):
    x, y, z = ps.coordinates("x y z")
    u = ps.unknown("u", x, y, z)
    paths = set()
    for degree in (2, 2, 6):
        g = ps.FunctionParameter("g", ps.SphereField(degree))
        problem = ps.Problem(ps.Ball((0, 0, 0), 1.0), ps.Eq(-ps.laplacian(u), 0), ps.Dirichlet(g))
        paths.add(nodes_path(tmp_path, problem, NodesKey(1e-2)))
    assert len(paths) == 2


def test_other_times_are_another_problem(tmp_path):
    (x,), t = ps.coordinates("x"), ps.time()
    u, (k,) = ps.unknown("u", x, t), ps.parameters(k=(0.1, 1.0))

    def heat(times):
        problem = ps.Problem(
            ps.Box(0.0, 1.0), ps.Eq(u.diff(t), k * u.diff(x, 2)), ps.Dirichlet(0), initial=sin(3 * x), times=times
        )
        return ps.discretize(problem, ps.lattice(problem.domain, 30))

    ps.solve_many(heat((0.0, 0.1)), [[0.5]], store=tmp_path / "s")
    with pytest.raises(ps.ParasolError, match=r"belongs to another problem.*times differs"):
        ps.solve_many(heat((0.0, 0.2)), [[0.5]], store=tmp_path / "s")


class Counting(Wave):
    """A solver that changes while it works."""

    fingerprint = None
    log: list

    def __init__(self, runs=0):
        super().__init__()
        self.runs = runs

    def solve(self, mu):
        self.runs += 1
        return super().solve(mu)


def test_a_solver_that_changes_says_what_it_is_known_by(tmp_path):
    def opened(store, runs=0, **options):
        cache = SolveCache(Counting(runs), Limits(), store=tmp_path / store, **options)
        cache.solve(MUS)
        return cache

    assert opened("a").not_reused == ""
    silent = opened("a", runs=3)
    assert silent.n_new == 3
    assert re.search(
        r"holds 3 full solves of Counting, which are not reused: attribute runs differs", silent.not_reused
    )
    assert "pass fingerprint=" in silent.not_reused
    opened("b", fingerprint="wave 1")
    again = opened("b", runs=77, fingerprint="wave 1")
    assert (again.n_new, again.not_reused) == (0, "")
    other = opened("b", fingerprint="wave 2")
    assert "not reused: fingerprint differs" in other.not_reused
    # parameters that change places make another solver, whatever it says
    swapped = Counting()
    swapped.parameters = ps.pde.ParameterSpace(ps.parameters(b=(0.0, 1.0), a=(1.0, 3.0)))
    assert "parameters differs" in SolveCache(swapped, Limits(), store=tmp_path / "b", fingerprint="wave 1").not_reused


def test_learning_says_what_it_does_not_reuse(tmp_path):
    SolveCache(Counting(), Limits(), store=tmp_path).solve(MUS)
    with pytest.warns(ps.ParasolWarning, match="holds 3 full solves of Counting"):
        learn(Counting(5), 0.5, store=tmp_path, fingerprint="wave", **quick)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ps.ParasolWarning)
        again = learn(Counting(9), 0.5, store=tmp_path, fingerprint="wave", **quick)
    assert again.facts["learn"]["new_solves"] == 0


def test_a_batch_that_was_stopped_is_resumed_by_a_solver_that_has_changed(tmp_path):
    solver = Counting()
    solver.stop_after = 2
    with pytest.raises(KeyboardInterrupt):
        SolveCache(solver, Limits(), store=tmp_path, fingerprint="wave").solve(MUS)
    second = Counting(runs=5)
    SolveCache(second, Limits(), store=tmp_path, fingerprint="wave").solve(MUS)
    assert second.calls == 1


def test_solves_of_an_earlier_version_are_left_alone_and_said_to_be(tmp_path):
    SolveCache(Wave(), Limits(), store=tmp_path).solve(MUS)
    (folder,) = tmp_path.glob("solves-*")
    old = folder.rename(tmp_path / "solves-0123456789abcdef")
    (old / "about.json").unlink()  # version 0.1.0 wrote none
    names = sorted(str(p) for p in old.rglob("*"))
    cache = SolveCache(Wave(), Limits(), store=tmp_path)
    assert (
        "holds 3 full solves of another solver, which are not reused: written by an earlier version" in cache.not_reused
    )
    assert sorted(str(p) for p in old.rglob("*")) == names
    SolveCache(Counting(), Limits(), store=tmp_path).solve(MUS)
    nearest = SolveCache(Counting(3), Limits(), store=tmp_path).not_reused
    assert re.search(r"3 full solves of Counting \(and solves of 1 others\), .*: attribute runs differs", nearest)


def test_a_second_run_on_one_store_is_refused_before_it_begins(tmp_path):
    with claim(tmp_path), pytest.raises(ps.ParasolError, match=rf"another run \(process {os.getpid()}"):
        learn(ps.load_problem("reaction-layer"), 1e-3, store=tmp_path, progress=pytest.fail)
    assert not list(tmp_path.glob("nodes-*"))


# ---- the map that was asked for -------------------------------------------------------------------------------------
@pytest.mark.parametrize(("recipe", "kind"), [("polynomial", "Polynomial"), ("linear", "Linear")])
def test_a_recipe_is_obeyed_where_full_solves_are_all_there_is(recipe, kind):
    solver = Wave()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)  # a linear map does not meet it
        surrogate = learn(solver, 1e-2, recipe=recipe)
    assert surrogate.facts["recipe"] == kind
    assert {row["map"] for row in surrogate.facts["learn"]["history"]} == {kind}
    assert surrogate.facts["learn"]["met"] == (recipe == "polynomial")
    assert solver.calls < 200  # a map that cannot do it is not fed for ever


class Speechless:
    def fit(self, x, y):
        return None


@pytest.mark.parametrize("recipe", ["polinomial", 3, Speechless()])
def test_a_wrong_recipe_is_found_before_the_first_solve(recipe):
    solver = Wave()
    with pytest.raises(ps.ParasolError):
        learn(solver, 1e-2, recipe=recipe)
    assert solver.calls == 0


def test_a_recipe_is_obeyed_for_functions_too_or_refused_before_the_first_solve():
    x, y, z = ps.coordinates("x y z")
    u, g = ps.unknown("u", x, y, z), ps.FunctionParameter("g", ps.SphereField(1))
    problem = ps.Problem(ps.Ball((0, 0, 0), 1.0), ps.Eq(ps.laplacian(u), u**3), ps.Dirichlet(g))
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=120), degree=2, stencil_size=30)
    cache = SolveCache(model, Limits(solves=40))
    with pytest.raises(ps.ParasolError, match="too few for a polynomial"):
        learn_sampled(model, 1e-1, cache, recipe=Polynomial())
    assert cache.n_solves == 0
    outcome = learn_sampled(model, 1e-1, cache, recipe=GaussianProcess())
    assert {row.map for row in outcome.history} == {"GaussianProcess"}
    assert outcome.surrogate.facts["recipe"] == "GaussianProcess"


def test_what_depends_on_functions_in_a_curved_way_is_learned():
    """Δu = u³ with random boundary values: a matrix is no map of these, and their values at nodes depend on each other."""
    x, y, z = ps.coordinates("x y z")
    u, g = ps.unknown("u", x, y, z), ps.FunctionParameter("g", ps.SphereField(1))
    problem = ps.Problem(ps.Ball((0, 0, 0), 1.0), ps.Eq(ps.laplacian(u), u**3), ps.Dirichlet(g))
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=120), degree=2, stencil_size=30)
    outcome = learn_sampled(model, 1e-2, SolveCache(model, Limits(solves=100)))
    assert outcome.met
    assert {row.map for row in outcome.history} == {"FewDirections"}
    mus = model.sample(40, rng=3)
    truth = np.array([model.solve(mu).values for mu in mus])
    errors = np.linalg.norm(outcome.surrogate(mus).values - truth, axis=1) / np.linalg.norm(truth, axis=1)
    assert np.mean(errors <= outcome.bound) >= 0.9


def test_a_recipe_is_obeyed_when_there_is_no_time_for_a_round():
    with pytest.warns(ps.ParasolWarning, match="not met"):
        surrogate = learn(Wave(), 1e-9, solves=16, **quick)
    assert surrogate.facts["recipe"] == "Polynomial"


def test_without_jax_there_are_maps_that_need_no_training(monkeypatch, layer):
    monkeypatch.setattr("parasol.learning.linear.find_spec", lambda name: None)
    for problem, options, kind in ((layer, {"n_nodes": 60}, "Polynomial"), (Wave(), {}, "GaussianProcess")):
        report = LearnReport.of(learn(problem, 1e-2, **options))
        assert (report.met, report.map) == (True, kind)


def test_no_module_hides_a_public_name():
    """`parasol.learning.learn` is the function, whatever was imported before."""
    code = (
        "import parasol, parasol.learning, parasol.fitting; parasol.learn; parasol.fit; parasol.learning.learn.__call__"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    for package in (ps.learning, ps.fitting):
        modules = {path.stem for path in Path(package.__file__).parent.glob("*.py")}
        assert {name for name in dir(package) if name in modules} <= {"descent"}  # which is public as a module
