"""What learning claims: levels after a second try, failed solves, who is met, limits in words, time."""

import time
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import parasol as ps
from parasol.errors import InputError
from parasol.fitting.fit import Accuracy
from parasol.learning import comparing, nodes, sampled, solves
from parasol.learning.comparing import box_corners
from parasol.learning.linear import _measured
from parasol.learning.nodes import choose_nodes
from parasol.learning.report import Evidence, Outcome
from parasol.learning.request import Request
from parasol.learning.run import learn
from parasol.learning.solves import Limits, SolveCache
from parasol.learning.verdict import _resonance, _zero, with_report
from parasol.pde.model import Model
from parasol.runtime.conformal import conformal_bound, highest_level
from parasol.runtime.parameters import ParameterSpace
from parasol.runtime.ranges import ParameterRange

quick = {"recipe": "polynomial"}  # no network to train
x, y = ps.coordinates("x y")
u, v = ps.unknown("u", x), ps.unknown("v", x, y)


class Wave:
    """A solver of one's own: sin(a t + b), where it does not fail; it may take its time."""

    parameters = ps.pde.ParameterSpace(ps.parameters(a=(1.0, 3.0), b=(0.0, 1.0)))
    fingerprint = "wave"

    def __init__(self, fails=lambda mu: False, seconds=0.0, size=lambda mu: 1.0):
        self.fails, self.seconds, self.size = fails, seconds, size
        self.n_solves = 0

    def solve(self, mu):
        time.sleep(self.seconds)
        self.n_solves += 1
        if self.fails(mu):
            raise ps.ParasolError("no solution")
        return self.size(mu) * np.sin(mu[0] * np.linspace(0, 2, 30) + mu[1])


# ---- levels ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("above", [0.02, 0.05, 0.1])
def test_the_level_holds_although_the_set_is_chosen_by_passing(monkeypatch, above):
    """Errors are uniform in [0, 1] whatever is learned, and the tolerance lies below the part `above` of them."""
    rng = np.random.default_rng(5)
    surrogate = learn(Wave(), 0.5, **quick)
    some = ps.reduction.as_snapshots(np.full((39, 2), [2.0, 0.5]), np.ones((39, 30)))
    monkeypatch.setattr(sampled, "next_batch", lambda *_: some)
    monkeypatch.setattr(sampled, "_round", lambda *_: np.zeros(4))  # the tests are always passed
    monkeypatch.setattr(sampled, "joined", lambda one, other: one)
    monkeypatch.setattr(sampled, "accuracy", lambda *_, **__: Accuracy(rng.random(39), np.zeros(39)))
    monkeypatch.setattr(SolveCache, "solve", lambda *_: some)
    bounds, met = [], []
    for _ in range(400):
        cache = SolveCache(Wave(), Limits())
        state = sampled.State(Wave(), 1 - above, cache, None, False, 0, Wave.parameters, some, best=surrogate)
        outcome = sampled._learned(state)
        bounds.append(outcome.surrogate.conformal.quantile)
        met.append(outcome.met)
        assert outcome.evidence.level == outcome.surrogate.conformal.level == 0.95
        assert state.n_fresh_sets <= 2
    assert np.mean(bounds) > 0.95  # the probability that a new error is below the bound, over all that is random
    assert 0 < np.mean(met) < 1


@pytest.mark.parametrize(("above", "failing"), [(0.05, 0.03), (0.1, 0.03), (0.05, 0.0)])
def test_the_level_holds_although_the_box_is_cut_where_fresh_solves_fail(monkeypatch, above, failing):
    """At every border a part of the box fails anew: a set after a cut is one more that was chosen by its result."""
    rng = np.random.default_rng(6)
    surrogate = learn(Wave(), 0.5, **quick)
    some = ps.reduction.as_snapshots(np.full((39, 2), [2.0, 0.5]), np.ones((39, 30)))
    n_failed = []

    def solve(*_):
        n_failed.append(rng.binomial(39, failing))
        return some

    batch = ps.reduction.as_snapshots(some.mus, some.solutions)  # where maps disagree no solve fails
    monkeypatch.setattr(sampled, "next_batch", lambda *_: batch)
    monkeypatch.setattr(sampled, "_round", lambda *_: np.zeros(4))
    monkeypatch.setattr(sampled, "shrunk", lambda state, new: new is some and n_failed[-1] > 0)
    monkeypatch.setattr(sampled, "joined", lambda one, other: one)
    monkeypatch.setattr(sampled, "accuracy", lambda *_, **__: Accuracy(rng.random(39 - n_failed[-1]), np.zeros(1)))
    monkeypatch.setattr(SolveCache, "solve", solve)
    monkeypatch.setattr(SolveCache, "n_failed", lambda *_: n_failed[-1])
    missed, allowed = [], []
    for _ in range(600):
        n_failed.clear()
        cache = SolveCache(Wave(), Limits())
        state = sampled.State(Wave(), 1 - above, cache, None, False, 0, Wave.parameters, some, best=surrogate)
        outcome = sampled._learned(state)
        conformal = outcome.surrogate.conformal
        if conformal is not None:
            covered = min(conformal.quantile, 1.0) * (1 - failing)
            missed.append(1 - covered)
            allowed.append(1 - conformal.level)
        assert len(n_failed) <= 2  # sets of fresh solves, whatever became of them
    assert np.mean(missed) < np.mean(allowed)


def test_tries_share_what_the_level_leaves():
    errors = np.arange(1.0, 80.0)
    assert conformal_bound(errors, level=0.95).quantile == 76  # ⌈80 · 0.95⌉
    assert conformal_bound(errors, level=0.95, tries=2).quantile == 78  # ⌈80 · 0.975⌉
    assert conformal_bound(errors, level=0.95, tries=2).level == 0.95
    for n, failed, tries in [(39, 0, 2), (38, 0, 2), (39, 1, 1), (39, 3, 2), (19, 0, 1)]:
        level = highest_level(n, failed=failed, tries=tries)
        errors = np.concatenate([np.ones(n - failed), np.full(failed, np.inf)])
        assert np.isfinite(conformal_bound(errors, level=level, tries=tries).quantile)
        with pytest.raises(ps.ParasolError, match="calibration errors") if not failed else np.errstate():
            assert conformal_bound(errors, level=level + 1e-3, tries=tries).quantile == np.inf
    assert highest_level(4, failed=2, tries=2) == 0.0


def test_failed_solves_are_infinite_errors():
    fails = lambda mu: np.sin(1000 * mu[0]) > 0.7  # noqa: E731  a quarter of the box, nowhere an end of it
    with pytest.warns(ps.ParasolWarning) as said:
        surrogate = learn(Wave(fails), 1e-2, **quick)
    account = surrogate.facts["learn"]
    assert not account["met"]
    assert account["n_failed_fresh"] > 3
    assert account["level"] == pytest.approx(1 - account["n_tries"] * (account["n_failed_fresh"] + 1) / 40)
    assert account["bound"] <= 1e-2
    assert any("is below it, but at the level" in str(w.message) and "failed solves" in str(w.message) for w in said)


def test_chosen_points_calibrate_nothing(monkeypatch):
    monkeypatch.setattr(sampled, "_certify", lambda *_, **__: None)  # neither solves nor time left for it
    with pytest.warns(ps.ParasolWarning, match="there is no bound, limited by"):
        surrogate = learn(Wave(), 1e-9, solves=60, **quick)
    assert surrogate.conformal is None
    assert any("its largest error on" in note for note in surrogate.facts["learn"]["notes"])


def test_a_bound_below_the_tolerance_says_that_its_level_is_the_reason():
    with pytest.warns(
        ps.ParasolWarning, match=r"the bound .* is below it, but at the level 0\.\d+ instead of 0.95, limi"
    ):
        surrogate = learn(Wave(), 0.5, solves=20, **quick)
    assert surrogate.facts["learn"]["limit"] == "solves, then level"


@pytest.mark.parametrize("n", [8, 10, 14])
def test_with_few_solves_there_is_a_bound_at_the_level_they_allow(n):
    with pytest.warns(ps.ParasolWarning, match="not met"):
        surrogate = learn(Wave(), 1e-9, solves=n, **quick)
    account, fresh = surrogate.facts["learn"], surrogate.conformal.n_calibration
    assert account["solves"] == n
    assert fresh >= n // 4
    assert account["level"] == surrogate.conformal.level == highest_level(fresh)
    assert np.isfinite(surrogate([2.0, 0.5]).bound)


# ---- met ------------------------------------------------------------------------------------------------------------
def test_total_counts_both_errors():
    layer = ps.load_problem("reaction-layer")
    with pytest.warns(ps.ParasolWarning, match="and the discretisation error about .*limited by discretisation"):
        surrogate = learn(layer, 2e-3, total=True, n_nodes=25, **quick)
    account = surrogate.facts["learn"]
    assert account["bound"] <= 2e-3 < account["bound"] + account["discretisation_error"]
    assert not account["met"]
    request = Request(layer, 0.99, total=True)
    for part in (0.4, 0.7):  # each below the tolerance, together above it
        with pytest.warns(ps.ParasolWarning, match="is not met"):
            again = with_report(Outcome(surrogate, True, 0.7), request, nodes.Discretised(None, part), None, [])
        assert not again.facts["learn"]["met"]
    again = with_report(Outcome(surrogate, True, 0.7), request, nodes.Discretised(None, 0.2), None, [])
    assert again.facts["learn"]["met"]


def test_bounds_that_are_not_proven_must_agree_with_full_solves():
    layer = ps.load_problem("reaction-layer")
    surrogate = learn(layer, 1e-2, n_nodes=60, **quick)
    checks = ps.solve_many(surrogate.solver, ps.sample(surrogate.solver, 5, design="random", rng=1))
    error = _measured(Outcome(surrogate, True, 1.0, evidence=Evidence(proven=1.0)), checks).measured.max
    assert error > 0
    for proven, bound, met in [(0.5, 100 * error, True), (0.5, error / 2, False), (1.0, error / 2, True)]:
        outcome = _measured(Outcome(surrogate, True, bound, evidence=Evidence(proven=proven)), checks)
        assert outcome.met == met
        assert outcome.limit == ("" if outcome.met else "confirmation")
    assert not _measured(Outcome(surrogate, True, 1.0, evidence=Evidence(proven=0.5)), None).met
    assert _measured(Outcome(surrogate, True, 1.0, evidence=Evidence(proven=1.0)), None).met


# ---- discretisation -------------------------------------------------------------------------------------------------
def layers():
    """The layer is thin at the high end of the first of four parameters only."""
    pe, *c = ps.parameters(pe=(1.0, 5e4, "log"), c1=(0.0, 1.0), c2=(0.0, 1.0), c3=(0.0, 1.0))
    source = 1 + sum(one * x ** (j + 1) for j, one in enumerate(c))
    return ps.Problem(ps.Box(0.0, 1.0), ps.Eq(-u.diff(x, 2) / pe + u.diff(x), source), ps.Dirichlet(1 + x))


def test_every_parameter_is_probed_at_both_ends():
    chosen = choose_nodes(layers(), 1e-2, limits=Limits(), n_nodes=100, stage=lambda text: None)
    assert chosen.error > 0.1  # 0.0025 without the first at its high end
    for n in range(1, 20):
        corners = box_corners(n)
        assert len(np.unique(corners, axis=0)) == len(corners) == 2 ** min(n, 3)
        assert np.all(np.mean(corners, axis=0) == 0.5)
        assert np.all(corners[0:2].sum(axis=0)[:4] == 1)  # the first two are opposite, for slow solves


def test_steep_solutions_inside_the_box_are_compared():
    (a,) = ps.parameters(a=(0.0, 1.0))
    bump = 1 + 200 * a * (1 - a)  # a layer of the width 1 / bump, thinnest in the middle between the ends
    model = ps.discretize(
        ps.Problem(ps.Box(0.0, 1.0), ps.Eq(-u.diff(x, 2) + bump**2 * u, 0), ps.Dirichlet(1 + x)),
        ps.scatter(ps.Box(0.0, 1.0), n_nodes=30),
    )
    mus = comparing.probes(model, 3)
    looked, seconds, _ = comparing._looked_at(model, mus)
    compared = comparing._to_compare(model, looked, seconds, given=False)
    random = [at for at in looked if at >= 3]
    steepest = sorted(random, key=lambda at: abs(mus[at, 0] - 0.5))[:2]
    assert sorted(compared) == sorted([0, 1, 2, *steepest])
    slow = comparing._to_compare(model, looked, 2.0, given=False)
    assert slow[0] == 0  # the middle, here the steepest of all


def test_check_estimates_the_discretisation_afresh():
    surrogate = learn(ps.load_problem("reaction-layer"), 1e-2, n_nodes=60, **quick)
    account = surrogate.facts["learn"] | {"discretisation_error": 1e-12}
    found = ps.check(replace(surrogate, facts=surrogate.facts | {"learn": account}), n=3)
    assert found.refinement > 1e-6


# ---- limits ---------------------------------------------------------------------------------------------------------
def test_a_resonance_is_called_so():
    pole = lambda mu: 1 / ((mu[0] - 2.03) ** 2 + 1e-4)  # noqa: E731
    space = Wave.parameters
    for size, near in ((pole, "a=2, "), (lambda mu: np.exp(9 * mu[0]), "")):  # large at one end is not a resonance
        cache = SolveCache(Wave(size=size), Limits())
        cache.solve(space.grid(15, 2))
        assert _resonance(cache, space).startswith(near)
        assert bool(_resonance(cache, space)) == bool(near)
    with pytest.warns(ps.ParasolWarning, match=r"limited by resonance\. The solutions grow near a=.*Narrow"):
        learn(Wave(size=lambda mu: 1 / (mu[0] - 2.03 + 0.1 * mu[1])), 1e-4, solves=100, **quick)


def test_where_the_solution_is_zero_is_found():
    mus = np.random.default_rng(0).uniform(0, 2, (30, 2))
    for size, at in (
        (mus[:, 1], "q=0"),
        (2 - mus[:, 0], "k=2"),
        (mus[:, 0] + mus[:, 1], "k=0, q=0"),
        (1 + mus[:, 0], ""),
    ):
        found = ps.fit_snapshots(
            mus, size[:, None] * np.ones(4), "linear", ranges={"k": (0, 2), "q": (0, 2)}, level=None
        )
        assert _zero(found) == at


def test_where_a_corner_has_no_answer_nothing_is_known_of_zero():
    """The search came after all solves, and its failure would have lost them."""

    def coefficients(mus, *, extrapolate):
        raise InputError("the map predicts values that are not finite")

    space = ParameterSpace((ParameterRange("a", 0.0, 1.0),))
    assert _zero(SimpleNamespace(parameters=space, coefficients=coefficients)) == ""


@pytest.mark.slow
def test_a_solution_that_is_zero_at_an_end_is_called_so():
    k, q = ps.parameters(k=(1.0, 2.0), q=(0.0, 2.0))
    model = ps.AffineModel({1: np.eye(3), k: np.diag([1.0, 2.0, 3.0])}, {q: np.ones(3)})
    with pytest.warns(ps.ParasolWarning, match=r"limited by zero solution\. The solution is zero at q=0\. Relative"):
        surrogate = ps.learn(model, 1e-6, recipe="polynomial")
    report = ps.learning.LearnReport.of(surrogate)
    assert (report.limit, report.zero) == ("zero solution", "q=0")
    assert surrogate(k=1.5, q=1.0).bound < 1e-6


@pytest.mark.parametrize("seconds", [0.5, 1.5])
def test_seconds_end_inside_a_batch_and_the_best_comes_back(monkeypatch, seconds):
    solver = Wave()
    start = time.perf_counter()
    for module in (comparing, solves):  # a clock that only solves move
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: start + 0.02 * solver.n_solves))
    with pytest.warns(ps.ParasolWarning, match="not met"):
        surrogate = learn(solver, 1e-12, seconds=seconds, **quick)
    assert seconds / 0.04 < solver.n_solves <= seconds / 0.02 + 1
    assert surrogate([2.0, 0.5]).values.shape == (30,)


@pytest.mark.parametrize("seconds", [0.5, 3.0])
def test_seconds_end_inside_the_choice_of_nodes(monkeypatch, tmp_path, seconds):
    """All solves for it would take six seconds, on a clock that only solves move."""
    solve, start = Model.solve, time.perf_counter()
    clock = [start]

    def slow(self, *args, **options):
        clock[0] += 0.1 if self.n_nodes < 110 else 0.3
        return solve(self, *args, **options)

    monkeypatch.setattr(Model, "solve", slow)
    for module in (comparing, solves):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    with pytest.warns(ps.ParasolWarning, match="not met"):
        surrogate = learn(ps.load_problem("reaction-layer"), 1e-9, seconds=seconds, store=tmp_path, total=True, **quick)
    assert clock[0] - start < 1.1 * seconds + 0.1
    account = surrogate.facts["learn"]
    assert account["discretisation_error"] is not None  # the first solve says what it is
    assert not account["met"]
    assert any("half of the seconds allowed" in note for note in account["notes"])
    assert not list(tmp_path.glob("nodes-*"))  # with more time it would be better


def test_a_total_error_of_which_a_part_is_unknown_is_not_met():
    with pytest.warns(ps.ParasolWarning, match="discretisation error not known, limited by discretisation"):
        surrogate = learn(Wave(), 0.5, total=True, **quick)
    assert not surrogate.facts["learn"]["met"]


def test_a_solver_that_becomes_slow_does_not_hold_everybody_up():
    solver = Wave()
    cache = SolveCache(solver, Limits(seconds=0.4), expected=0.001)
    solver.seconds = 0.05
    found = cache.solve(np.column_stack([np.linspace(3, 1, 400), np.zeros(400)]))
    assert 0 < len(found) < 60  # of 400, which would take twenty seconds
    assert np.all(np.diff(found.mus[:, 0]) < 0)  # the first that were asked for, not the smallest
    assert cache.n_solves == len(found)


def test_a_map_that_was_asked_for_comes_back_although_it_is_not_good_enough():
    with pytest.warns(ps.ParasolWarning, match="not met"):
        surrogate = learn(ps.load_problem("reaction-layer"), 1e-9, n_nodes=40, recipe="linear")
    assert surrogate.reduced is not None


# ---- data -----------------------------------------------------------------------------------------------------------
def test_a_range_wider_than_the_data_is_not_covered_by_their_level():
    rng = np.random.default_rng(4)
    field = lambda mus: np.exp(np.outer(mus[:, 0] * mus[:, 1], np.linspace(0, 6, 20)))  # noqa: E731
    mus = rng.uniform(0.09, 0.91, (300, 2))  # less than a tenth of each range is missing, a third of the box
    with pytest.warns(ps.ParasolWarning, match=r"the samples reach from 0\.09.* in a, .*; from 0\.09.* in b"):
        surrogate = ps.fit_snapshots(mus, field(mus), "polynomial", ranges={"a": (0, 1), "b": (0, 1)})
    fresh = rng.random((400, 2))
    inside = np.all((fresh > mus.min(axis=0)) & (fresh < mus.max(axis=0)), axis=1)
    assert np.array_equal(surrogate(fresh, extrapolate=True).extrapolated, ~inside)
    with pytest.raises(ps.ParasolError, match="no samples"):
        surrogate([0.99, 0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ps.ParasolWarning)
        ps.fit_snapshots(fresh, field(fresh), "polynomial", ranges={"a": (0, 1), "b": (0, 1)})
