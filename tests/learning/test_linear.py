"""Learning linear problems by estimated errors: resonances, winds from all sides, what is said and counted, files."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sympy import cos, exp, sin

import parasol as ps
from parasol.fitting.fit import surrogate_without_map
from parasol.learning import linear
from parasol.learning.linear import fresh_parameters, singular_between
from parasol.learning.report import LearnReport
from parasol.learning.solves import Limits, SolveCache
from parasol.runtime.duals import miss_probability

x, y = ps.coordinates("x y")
u = ps.unknown("u", x, y)
V = ps.unknown("v", x)


@pytest.fixture(autouse=True, scope="module")
def cheap_maps():
    """A polynomial or the reduced model: what takes long to train is tested elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("parasol.learning.linear.maps_to_try", lambda *_, **__: ("polynomial",))
        yield


def learned(problem, tolerance=1e-3, **options):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the discretisation error")
        return ps.learn(problem, tolerance, **options)


def measured(surrogate, n=100):
    """Relative errors on fresh solves, and the answers."""
    model = surrogate.solver
    mus = ps.sample(model, n, design="random", rng=321)
    answer = surrogate(mus)
    return ps.accuracy(surrogate, ps.solve_many(model, mus)).errors, answer


@pytest.fixture(scope="module")
def resonant():
    (k,) = ps.parameters(k=(15.0, 25.0))
    equation = ps.Eq(-ps.laplacian(u) - k * u, exp(x) * (1 + y))
    return learned(ps.Problem(ps.Box((0, 0), (1, 1)), equation, ps.Dirichlet(0)), n_nodes=300)


def test_across_a_resonance_the_reduced_model_answers(resonant):
    report = LearnReport.of(resonant)
    errors, answer = measured(resonant)
    assert report.met
    assert report.solves <= 10
    assert np.mean(errors <= 1e-3) >= 0.99
    assert np.all(errors <= answer.bound)
    assert set(answer.method) == {"reduced model"}
    assert set(answer.bound_kind) == {"probable"}
    assert any("changes its sign near k=19." in note for note in report.notes)  # 2 pi**2 = 19.74


def test_a_surrogate_without_a_map_goes_into_a_file_and_has_slopes(resonant, tmp_path):
    again = ps.load(ps.save(resonant, tmp_path / "s.parasol"))
    one, other = resonant(k=18.0), again(k=18.0)
    assert np.array_equal(one.values, other.values)
    assert one.estimate == other.estimate
    assert (one.bound, one.bound_kind, one.probability) == (other.bound, other.bound_kind, other.probability)
    assert again.map is None
    step = 1e-4
    slope = (again(k=18.0 + step).values - again(k=18.0 - step).values) / (2 * step)
    np.testing.assert_allclose(again.gradient([18.0])[:, 0], slope, rtol=1e-5, atol=1e-9)
    single = resonant([18.0], dtype=np.float32)
    assert single.estimate == pytest.approx(one.estimate, rel=0.5, abs=1e-6)
    assert resonant.restricted(nodes=[3, 4])(k=18.0).estimate == one.estimate
    with pytest.raises(ps.ParasolError, match="answers are those of the reduced model"):
        ps.export(resonant, tmp_path / "s.onnx")


@pytest.mark.slow
def test_winds_from_all_sides():
    nu, angle = ps.parameters(nu=(0.1, 1.0, "log"), angle=(0.0, 2 * np.pi))
    equation = ps.Eq(-nu * ps.laplacian(u) + cos(angle) * u.diff(x) + sin(angle) * u.diff(y), 1)
    annulus = ps.Disc(radius=1.0) - ps.Disc(radius=0.4)
    surrogate = learned(ps.Problem(annulus, equation, ps.Dirichlet(0)), 1e-2, n_nodes=150)
    report = LearnReport.of(surrogate)
    errors, answer = measured(surrogate)
    assert report.solves <= 40
    ratio = answer.estimate / errors
    assert 1 / 3 < np.min(ratio) < np.max(ratio) < 3
    assert np.all(errors <= answer.bound)


def hard(name):
    """Problems at the edge, each with its tolerance and the most full solves it may take."""
    a, b = ps.parameters(a=(0.1, 10.0, "log"), b=(0.0, 5.0))
    (nu,), (wide,) = ps.parameters(nu=(1e-3, 1.0, "log")), ps.parameters(wide=(1e-4, 1e4, "log"))
    (k,), (t,) = ps.parameters(k=(5.0, 5.783)), ps.parameters(t=(1e-3, 1.0))
    v, disc = ps.unknown("v", x, y), ps.Disc()
    coupled = [ps.Eq(-ps.laplacian(u) + b * v, 1), ps.Eq(-a * ps.laplacian(v) - b * u, 1e6 * x)]
    cases = {
        "convection": (ps.Box((0, 0), (1, 1)), ps.Eq(-nu * ps.laplacian(u) + u.diff(x), 1), ps.Dirichlet(0)),
        "decades": (disc, ps.Eq(-ps.laplacian(u) + wide * u, 1 + x), ps.Dirichlet(0)),
        "near-singular": (disc, ps.Eq(-ps.laplacian(u) - k * u, 1 + x), ps.Dirichlet(0)),  # singular at 5.7832
        "system": (disc, coupled, [ps.Dirichlet(0), ps.Dirichlet(1e6 * y)]),
        "rounding": (disc, ps.Eq(-t * ps.laplacian(u), t * x**2 + 1), ps.Dirichlet(0)),
    }
    return ps.Problem(*cases[name])


@pytest.mark.parametrize("name", ["convection", "decades", "near-singular", "system", "rounding"])
def test_hard_cases(name):
    surrogate = learned(hard(name), n_nodes=150)
    errors, answer = measured(surrogate, 40)
    report = LearnReport.of(surrogate)
    assert report.met
    assert report.solves <= 40
    assert np.max(errors) <= 1e-3
    seen = errors > 1e-11
    assert np.all(errors <= answer.bound)
    ratio = answer.estimate[seen] / errors[seen]
    assert np.all((ratio > 1 / 3) & (ratio < 3))
    assert np.median(answer.bound[seen] / errors[seen]) < 4 if seen.any() else name == "rounding"


def test_what_is_solved_already_is_repaired_and_counted(resonant):
    answer = resonant(np.array([[16.0], [24.0]]), tolerance=1e-12)
    assert answer.method == ["full solve", "full solve"]
    assert np.all(answer.estimate == 0)


def test_the_report_counts_solves_factorisations_and_seconds(resonant):
    report = LearnReport.of(resonant)
    evidence = report.evidence
    assert evidence.probability == pytest.approx(1 - 2.8e-4, abs=1e-5)
    assert evidence.n_checked == report.measured.n == report.solves - report.n_modes
    assert evidence.ratio >= 1
    assert evidence.share == 1
    assert evidence.n_triangular > 60
    assert sum(report.stages.values()) == pytest.approx(report.seconds, abs=0.1)
    assert "full solves where the estimated error is largest" in report.stages
    assert "probability" in report.rows()["bound"]


def test_parameters_without_effect_are_named():
    a, b = ps.parameters(a=(1.0, 2.0), b=(1.0, 2.0))
    equation = ps.Eq(-a * ps.laplacian(u) + 1e-9 * b * u, 1)
    surrogate = learned(ps.Problem(ps.Disc(), equation, ps.Dirichlet(0)), n_nodes=100)
    notes = LearnReport.of(surrogate).notes
    assert any(note.startswith("b has no effect") for note in notes)
    assert not any(note.startswith("a has no effect") for note in notes)


def test_slow_decay_is_said_with_the_modes_it_would_take():
    (s,) = ps.parameters(s=(-0.6, 0.6))
    source = exp(-((x - s) ** 2 + y**2) / 0.02)
    problem = ps.Problem(ps.Disc(), ps.Eq(-ps.laplacian(u), source), ps.Dirichlet(0))
    with pytest.warns(ps.ParasolWarning, match="not met"):
        surrogate = ps.learn(problem, 1e-6, n_nodes=200, solves=12)
    assert any("the tolerance would take about" in note for note in LearnReport.of(surrogate).notes)


def test_a_fixed_matrix_is_proven_for_nothing():
    (s,) = ps.parameters(s=(0.5, 2.0))
    problem = ps.Problem(ps.Disc(), ps.Eq(-ps.laplacian(u), s + s**2 * x), ps.Dirichlet(0))
    surrogate = learned(problem, n_nodes=100)
    errors, answer = measured(surrogate, 10)
    assert set(answer.bound_kind) == {"proven"}
    assert np.all(errors <= answer.bound)
    assert LearnReport.of(surrogate).met


def test_a_map_has_no_terms_that_its_bounds_do_not_see():
    a, k = ps.parameters(a=(0.1, 4.0, "log"), k=(0.0, 2.0))
    equation = ps.Eq(-u.diff(x, 2) - a * u.diff(y, 2) - k * u, 1e-6 * sin(8 * x * (y - 1)))  # in a unit of its own
    surrogate = learned(ps.Problem(ps.Disc(), equation, ps.Dirichlet(0)), 1e-2, n_nodes=150)
    assert len(surrogate.map.indices) < 100  # of 300 to 500
    whole = replace(surrogate, map=ps.fit(surrogate.reduced, "polynomial", n_labels=1024).map)
    mus = ps.sample(surrogate.solver, 500, design="random", rng=7)
    gaps = np.linalg.norm(surrogate(mus).values - whole(mus).values, axis=1) / np.linalg.norm(whole(mus).values, axis=1)
    assert len(whole.map.indices) > 300
    assert np.max(gaps) <= 1.1e-3 * LearnReport.of(surrogate).bound
    np.testing.assert_allclose(surrogate(mus).bound, whole(mus).bound, rtol=0.01)


def test_proof_on_request():
    surrogate = learned(ps.load_problem("reaction-layer"), n_nodes=60, recipe="polynomial", proof=True)
    answer = surrogate(np.linspace(0.01, 1, 20)[:, None])
    assert set(answer.bound_kind) == {"proven"}
    assert np.all(answer.estimate <= 2 * answer.bound)  # the bound is nearly the error, which an estimate may exceed
    without = replace(surrogate, reduced=replace(surrogate.reduced, duals=None))
    assert without([0.5]).estimate is None
    assert without([0.5]).probability is None


def test_what_is_to_be_proven_is_proven_below_the_tolerance():
    surrogate = learned(ps.load_problem("reaction-layer"), 1e-2, n_nodes=60, proof=True)
    report = LearnReport.of(surrogate)
    assert report.met
    assert report.certificate == "proven"
    with pytest.raises(ps.ParasolError, match="proof=True is for linear steady"):
        ps.learn(ps.load_problem("bratu"), 1e-2, proof=True)


def test_quantities_are_corrected_and_their_bounds_hold(tmp_path):
    a, k = ps.parameters(a=(0.5, 4.0), k=(1.0, 2.0))
    wanted = {"mean": ps.Average(), "there": ps.PointValue((0.3, 0.4)), "flux": ps.Flux()}
    problem = ps.Problem(
        ps.Disc(), ps.Eq(-a * ps.laplacian(u) + k * u.diff(x), 1 + x), ps.Robin(k, 1, y), quantities=wanted
    )
    made = learned(problem, 1e-2, n_nodes=150)
    model, surrogate = made.solver, ps.load(ps.save(made, tmp_path / "q.parasol"))
    mus = ps.sample(model, 30, design="random", rng=2)
    answer, truth = surrogate(mus), [model.solve(mu).quantities for mu in mus]
    raw = surrogate.quantities(answer.coefficients)
    assert set(answer.quantity_bound_kind) == {"estimated"}
    # at a parameter that was solved the error is rounding, and no bound is smaller than that
    solved = surrogate(surrogate.reduced.duals.mus[0])
    assert all(solved.quantity_bounds[name] > 1e-16 * abs(solved.quantities[name]) for name in wanted)
    for i, name in enumerate(wanted):
        true = np.array([row[name] for row in truth])
        error = np.abs(answer.quantities[name] - true)
        assert np.median(error) < 0.2 * np.median(np.abs(raw[i, :, 0] - true))
        assert np.mean(error <= answer.quantity_bounds[name]) >= 0.95
        assert np.median(answer.quantity_bounds[name] / error) < 60
        assert answer.quantity_estimates[name].shape == error.shape


def test_a_resonance_met_exactly_ends_the_search_for_it(monkeypatch):
    (k,) = ps.parameters(k=(5.0, 15.0))
    problem = ps.Problem(ps.Box(0, 1), ps.Eq(-V.diff(x, 2) - k * V, 1), ps.Dirichlet(0))  # singular at 9.87
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=30))
    usual = type(model).factors

    def factors(self, mu):
        if abs(mu[0] - 9.6875) < 1e-9:  # one of the middles
            raise ps.errors.SolveFailed("singular to rounding")
        return usual(self, mu)

    low, high = np.array([10.0]), np.array([5.0])
    assert abs(singular_between(model, low, high, usual(model, low).sign)[0] - 9.87) < 0.05
    monkeypatch.setattr(type(model), "factors", factors)
    assert singular_between(model, low, high, usual(model, low).sign)[0] == 9.6875


def test_the_verdict_looks_at_the_corners_of_the_box():
    """Errors are largest there, and random parameters never meet them."""
    problem = ps.load_problem("helmholtz")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=100))
    fresh = fresh_parameters(model, 0)
    assert len(fresh) == 2000
    assert {tuple(mu) for mu in model.parameters.grid(2, 2)} <= {tuple(mu) for mu in fresh}


def small():
    """(A + a B) u = f, not symmetric: nothing is proven for nothing."""
    (a,) = ps.parameters(a=(0.5, 4.0))
    line = np.diag([2.0] * 12) - np.diag([1.0] * 11, 1) - np.diag([0.3] * 11, -1)
    return ps.AffineModel({1: line, a: np.diag(np.linspace(0, 3, 12)) + np.diag([0.5] * 11, 1)}, {1: np.ones(12)})


def test_sealed_vectors_that_were_looked_at_count_in_the_probability():
    model = small()
    cache = SolveCache(model, Limits())
    first, second = (linear._basis(model, 1e-2, cache, 0, attempt) for attempt in (0, 1))
    miss = miss_probability(len(first.sealed.duals.blocks))
    assert second.after(None, looked=True) is second
    for looked, doubt in ((True, 2 * miss), (False, miss)):
        both = second.after(first, looked=looked)
        assert both.sealed.duals.probability == pytest.approx(1 - doubt, abs=1e-12)
        assert both.n_factorizations == first.n_factorizations + second.n_factorizations
        assert both.n_triangular == first.n_triangular + second.n_triangular


@pytest.mark.parametrize("better", [True, False])
def test_the_search_goes_on_once_with_other_sealed_vectors(better, monkeypatch):
    """Whether the second look is good enough or not, there is no third, and the probability is that of two."""
    attempts, real, sealed = [], linear._basis, []

    def rough(model, aim, cache, rng, attempt=0):
        attempts.append((attempt, aim))
        sealed.append(real(model, 1e-6 if better and attempt else 0.5, cache, rng, attempt))
        return sealed[-1]

    monkeypatch.setattr(linear, "_basis", rough)
    monkeypatch.setattr(linear, "best_map", lambda basis, *_, **__: surrogate_without_map(basis.steering))
    monkeypatch.setattr(linear, "_LITTLE", 1e9)
    model = small()
    outcome = linear.learn_linear(model, 1e-5, SolveCache(model, Limits()))
    assert [attempt for attempt, _ in attempts] == [0, 1]
    assert attempts[1][1] < attempts[0][1]
    assert outcome.met == better
    duals = outcome.surrogate.reduced.duals
    assert duals.blocks is sealed[1].sealed.duals.blocks
    assert duals.probability == outcome.evidence.probability
    assert duals.probability == pytest.approx(1 - 2 * miss_probability(len(duals.blocks)), abs=1e-12)


def test_where_inverses_cannot_be_interpolated_the_probability_is_that_of_fresh_solves():
    """A diffusion that changes its sign in the box is singular at some hundred parameters, each seen from next to it only."""
    (shift,) = ps.parameters(shift=(-0.5, 0.5))
    flux = (shift + x) * ps.gradient(V)
    problem = ps.Problem(ps.Box(0.0, 1.0), ps.Eq(-ps.divergence(flux), 1), ps.Dirichlet(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)  # nothing is met
        surrogate = ps.learn(problem, 1e-3, n_nodes=150)
    mus = surrogate.solver.sample(600, rng=4)
    answer, truth = surrogate(mus), np.array([surrogate.solver.solve(mu).values for mu in mus])
    errors = np.linalg.norm(answer.values - truth, axis=1) / np.linalg.norm(truth, axis=1)
    probability = np.min(answer.probability)
    assert 0.9 < probability < 0.96  # 20 solves, of which a new parameter is the worst with 1 in 21
    assert np.mean(errors <= answer.bound) >= probability  # 0.93 of 0.9997 with three solves
    assert any("may be worse elsewhere" in note for note in LearnReport.of(surrogate).notes)
