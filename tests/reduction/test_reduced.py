"""The reduced model and its certificate, against full solves and against dense linear algebra."""

import warnings

import numpy as np
import pytest
import sympy

import parasol as ps
from parasol.pde.discretize import discretize_with
from parasol.pde.problem import Settings
from parasol.reduction.affine import affine_form
from parasol.reduction.certificate import lanczos_margin, norm_after, operator_norm
from parasol.reduction.products import DiagonalRoot
from parasol.reduction.reduced import prepare
from parasol.runtime.basis import Basis
from parasol_lab.benchmarks.collocation import collocate

PERTURBATIONS = [0.0, 1e-1, 1e-4, 1e-8]


@pytest.fixture(scope="module")
def model():
    problem = ps.load_problem("helmholtz")
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=300))


@pytest.fixture(scope="module")
def truth(model):
    return ps.solve_many(model, ps.sample(model, 60, design="random", rng=5))


@pytest.fixture(scope="module")
def basis(model):
    return ps.pod(ps.solve_many(model, ps.sample(model, 40, rng=1)), n_modes=12)


@pytest.fixture(scope="module")
def reduced(model, basis):
    return ps.reduce(model, basis)


def errors_of(truth, basis, coefficients):
    return np.linalg.norm(truth.solutions - basis.lift(coefficients), axis=1)


def test_coefficients_are_the_minimisers_of_the_weighted_residual(model, basis, reduced):
    """Against NumPy's least squares on the whole system, weighted with a dense inverse."""
    for mu in ps.sample(model, 5, design="random", rng=2):
        theta = reduced.operator_theta(mu[None])
        frame = reduced.residuals[reduced.certificate.constants(theta).choice[0]]
        weighting = np.linalg.inv(model.operator(frame.mu).toarray())
        b, f = weighting @ (model.operator(mu) @ basis.modes), weighting @ model.load(mu)
        expected, *_ = np.linalg.lstsq(b, f)
        assert np.allclose(reduced.coefficients([mu])[0], expected, rtol=0, atol=1e-11 * np.linalg.norm(expected))
        small = reduced.operator(mu)
        assert small.shape[0] <= 3 * basis.n_modes + 1
        assert np.allclose(np.linalg.svd(small)[1], np.linalg.svd(b)[1], rtol=1e-9)
        c = np.ones(basis.n_modes)
        assert np.isclose(np.linalg.norm(reduced.load(mu) - small @ c), np.linalg.norm(f - b @ c), rtol=1e-10)


def test_error_is_that_of_the_projection(truth, basis, reduced):
    found = errors_of(truth, basis, reduced.coefficients(truth.mus)) / np.linalg.norm(truth.solutions, axis=1)
    assert np.mean(found) < 1.3 * np.mean(basis.projection_errors(truth.solutions))


@pytest.mark.parametrize("weighting", ["solve", *[pytest.param(w, marks=pytest.mark.slow) for w in ("rows", "none")]])
def test_bounds_hold_for_any_coefficients(model, truth, basis, weighting):
    reduced = ps.reduce(model, basis, weighting=weighting)
    rng = np.random.default_rng(0)
    best = reduced.solve(truth.mus)
    assert np.all(best.bounds.values >= errors_of(truth, basis, best.coefficients))
    projected = basis.project(truth.solutions)
    for strength in PERTURBATIONS:
        c = projected * (1 + strength * rng.standard_normal(projected.shape))
        bounds = reduced.certify(truth.mus, c)
        error = errors_of(truth, basis, c)
        assert np.all(bounds.values >= error)
        assert np.all(bounds.relative >= error / np.linalg.norm(truth.solutions, axis=1))
        if weighting == "solve":
            assert np.median(bounds.values / error) < 10


def test_relative_bounds_are_relative_to_the_solution_not_to_the_answer(model):
    """An answer twice as long as the solution: its error over its own length would be half of what is true."""
    snapshots = ps.solve_many(model, ps.sample(model, 4, rng=3))
    reduced = ps.reduce(model, ps.pod(snapshots, n_modes=4), n_anchors=60)
    mus = snapshots.mus
    for factor in (0.9, 1.1, 1.9):
        bounds = reduced.certify(mus, factor * reduced.coefficients(mus))
        assert np.all(bounds.relative >= abs(factor - 1) * (1 - 1e-6))
        size = np.linalg.norm(factor * reduced.coefficients(mus), axis=1)
        finite = bounds.values < size
        assert np.allclose(bounds.relative[finite], (bounds.values / (size - bounds.values))[finite], rtol=1e-12)
        assert np.all(np.isinf(bounds.relative[~finite]))


def test_bound_at_a_snapshot_is_at_rounding(model):
    """The expanded square of the residual would stop at 1e-8."""
    snapshots = ps.solve_many(model, ps.sample(model, 8, rng=3))
    reduced = ps.reduce(model, ps.pod(snapshots, n_modes=8), n_anchors=20)
    answers = reduced.solve(snapshots.mus)
    assert np.max(answers.bounds.relative) < 1e-9
    assert np.all(answers.bounds.values >= errors_of(snapshots, reduced.basis, answers.coefficients))


def smallest(model, prepared, mu, k, free=None):
    """The smallest singular value of P_k A(mu) in the norm of the constants, from dense matrices."""
    free = ~model.terms.pattern.stated if free is None else free
    a, reference = (model.operator(m).toarray()[np.ix_(free, free)] for m in (mu, prepared.covered.preconditioners[k]))
    larger = np.eye(model.n_unknowns)
    if prepared.covered.stretch is not None:
        larger = prepared.covered.stretch(larger)
    larger = larger[np.ix_(free, free)]
    return np.linalg.svd(larger @ np.linalg.solve(reference, a) @ np.linalg.inv(larger), compute_uv=False)[-1]


def test_proven_constants_are_below_the_smallest_singular_value(model, reduced):
    """Against dense singular values in the norm of the constants, restricted to unknowns that carry an error."""
    mus = ps.sample(model, 12, design="random", rng=7)
    constants = reduced.certificate.constants(reduced.operator_theta(mus))
    assert np.all(constants.rigorous)
    prepared = prepare(model)
    assert np.array_equal(prepared.covered.certificate.norms, reduced.certificate.norms)
    assert prepared.covered.stretch is not None
    for mu, k, sigma in zip(mus, constants.choice, constants.sigma, strict=True):
        true = smallest(model, prepared, mu, k)
        assert 0.05 * true < sigma <= true


def test_the_norm_of_the_constants_is_no_less_than_that_of_the_error(model):
    """Bounds of ‖S e‖ are bounds of ‖e‖ only with S ≥ I; and S⁻¹ is its inverse."""
    stretch = prepare(model, n_anchors=3).covered.stretch
    dense = stretch(np.eye(model.n_unknowns))
    assert np.linalg.svd(dense, compute_uv=False)[-1] >= 1 - 1e-12
    assert np.allclose(stretch.undone(dense), np.eye(model.n_unknowns), atol=1e-10)
    assert np.allclose(dense, dense.T, atol=1e-10)


def test_few_anchors_are_not_called_rigorous(model, basis, truth):
    reduced = ps.reduce(model, basis, n_anchors=2)
    bounds = reduced.solve(truth.mus).bounds
    assert not np.all(bounds.rigorous)
    assert "rigorous" in repr(bounds)


def test_truncated_model_is_that_of_the_truncated_basis(model, basis, reduced, truth):
    fewer = reduced.truncated(5)
    fresh = ps.reduce(model, basis.truncated(5))
    assert np.allclose(fewer.coefficients(truth.mus), fresh.coefficients(truth.mus), rtol=1e-9, atol=1e-12)
    assert np.allclose(fewer.solve(truth.mus).bounds.values, fresh.solve(truth.mus).bounds.values, rtol=1e-6)


def test_operator_norm_is_below_the_norm_and_its_margin_above():
    """On the spectra Lanczos' method finds hardest: many singular values just below the largest one."""
    for spectrum in (np.linspace(0, 1, 400), 1 - np.linspace(0, 1, 400) ** 2, np.r_[1.0, np.full(399, 0.97)]):
        starts = np.random.default_rng(0).standard_normal((30, 400))
        values = [operator_norm(lambda x, s=spectrum: s * x, lambda y, s=spectrum: s * y, x)[0] for x in starts]
        assert max(values) <= 1 + 1e-12
        assert min(values) * lanczos_margin(400) >= 1


def test_operator_norm_knows_when_it_is_exact():
    a = np.random.default_rng(0).standard_normal((60, 12))
    value, exact = operator_norm(lambda x: a @ x, lambda y: a.T @ y, np.ones(12))
    assert exact
    assert value == pytest.approx(np.linalg.norm(a, 2), rel=1e-12)


@pytest.mark.parametrize("rank", [1, 2, 7, 20])
def test_operator_norm_of_matrices_of_low_rank(rank):
    """Such as a parameter in the condition on a few boundary nodes: the left vectors end first."""
    rng = np.random.default_rng(rank)
    a = rng.standard_normal((50, rank)) @ rng.standard_normal((rank, 50))
    value, exact = operator_norm(lambda x: a @ x, lambda y: a.T @ y, rng.standard_normal(50))
    assert exact
    assert value == pytest.approx(np.linalg.norm(a, 2), rel=1e-9)


def test_a_parameter_in_the_condition_at_one_node():
    """Its matrix has rank one: constants called proven were up to eight times too large."""
    (x,) = ps.coordinates("x")
    u, (h,) = ps.unknown("u", x), ps.parameters(h=(0.05, 5.0))
    walls = {"left": ps.Robin(h, 1, 1), "right": ps.Dirichlet(0.2)}
    problem = ps.Problem(ps.Box((0.0,), (1.0,)), ps.Eq(-u.diff(x, 2), 1 + x), walls)
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=40))
    prepared = prepare(model, n_anchors=20)
    mus = ps.sample(model, 40, design="random", rng=1)
    constants = prepared.covered.certificate.constants(prepared.form.operator_theta(mus))
    assert np.mean(constants.rigorous) > 0.9
    everything = np.ones(model.n_unknowns, dtype=bool)
    for mu, k, sigma in zip(mus, constants.choice, constants.sigma, strict=True):
        assert sigma <= smallest(model, prepared, mu, k, everything) * (1 + 1e-9)


def test_a_term_without_effect_on_the_unknowns_that_carry_errors_has_norm_zero(model):
    nothing = 0 * model.terms.operators[0]
    assert (
        norm_after(
            model.factors([1.0, 1.0]), nothing, DiagonalRoot(np.ones(model.n_unknowns)), np.ones(model.n_unknowns)
        )
        == 0
    )


@pytest.mark.parametrize("width", [1e-4, 0.05])
def test_a_coefficient_that_changes_between_the_candidates_only_is_not_taken_for_constant(width):
    """Samples cannot show that a coefficient is constant: this one is 0 but for a narrow peak."""
    (x,) = ps.coordinates("x")
    u = ps.unknown("u", x)
    (a,) = ps.parameters(a=(0.0, 1.0))
    peak = sympy.Max(0, 1 - sympy.Abs(a - sympy.Rational(3, 7)) / width)
    problem = ps.Problem(ps.Box((0,), (1,)), ps.Eq(-u.diff(x, 2) + a * u - 9.55 * peak * u, 1 + x), ps.Dirichlet(0))
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=80))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)
        reduced = ps.greedy(model, tolerance=1e-3).reduced
    assert reduced.operator_theta.constant.tolist() == [True, False, False]
    mus = 3 / 7 + width * np.linspace(-1, 1, 21)[:, None]
    answers = reduced.solve(mus)
    truth = ps.solve_many(model, mus)
    error = np.linalg.norm(truth.solutions - answers.values, axis=1) / np.linalg.norm(truth.solutions, axis=1)
    assert np.all((answers.bounds.relative >= error) | ~answers.bounds.rigorous)


@pytest.mark.parametrize("name", ["cooled-pipe", "elasticity", "graded-material", "boundary-layer"])
def test_ghosts_systems_and_inhomogeneous_conditions(name):
    model = discretize_with(ps.load_problem(name), Settings(n_nodes=250))
    truth = ps.solve_many(model, ps.sample(model, 15, design="random", rng=4))
    basis = ps.pod(ps.solve_many(model, ps.sample(model, 16, rng=1)), tolerance=1e-6)
    reduced = ps.reduce(model, basis, n_anchors=30)
    answers = reduced.solve(truth.mus)
    error = errors_of(truth, basis, answers.coefficients)
    assert np.all(answers.bounds.values >= error)
    floor = np.mean(basis.projection_errors(truth.solutions))
    assert np.mean(error / np.linalg.norm(truth.solutions, axis=1)) < 1.3 * floor


def test_weighted_inner_product(model):
    """Bound and error are those of the weighted norm."""
    weights = ps.reduction.value_weights(model)
    snapshots = ps.solve_many(model, ps.sample(model, 20, rng=1))
    basis = ps.pod(snapshots, n_modes=8, weights=weights)
    truth = ps.solve_many(model, ps.sample(model, 20, design="random", rng=9))
    answers = ps.reduce(model, basis).solve(truth.mus)
    error = basis.norm(truth.solutions - answers.values)
    assert np.all(answers.bounds.values >= error)
    assert np.median(answers.bounds.values / error) < 10


def test_function_parameter_in_the_load():
    """A constant operator: least squares is the projection, and the bound is the error."""
    problem = ps.load_problem("schrodinger")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=500))
    basis = ps.pod(ps.solve_many(model, model.sample(30, rng=1)), n_modes=20)
    truth = ps.solve_many(model, model.sample(10, rng=2))
    answers = ps.reduce(model, basis).solve(truth.mus)
    assert np.allclose(answers.coefficients, basis.project(truth.solutions), atol=1e-9)
    error = errors_of(truth, basis, answers.coefficients)
    assert np.all((answers.bounds.values >= error) & (answers.bounds.values < 1.2 * error))


@pytest.mark.slow
def test_coefficient_that_mixes_space_and_parameter_is_interpolated():
    x, y = ps.coordinates("x y")
    u = ps.unknown("u", x, y)
    (s,) = ps.parameters(s=(0.2, 2.0))
    bump = sympy.exp(-s * (x**2 + y**2))
    problem = ps.Problem(ps.Disc(), ps.Eq(-ps.laplacian(u) + 5 * bump * u, 1 / (1 + s * x**2)), ps.Dirichlet(0))
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=1500))
    form = affine_form(model)
    assert 0 < form.error < 1e-9
    assert not form.exact
    mu = np.array([0.777])
    assert np.allclose(form.operator(mu).toarray(), model.operator(mu).toarray(), atol=1e-7)
    assert np.allclose(form.load_theta(mu[None])[0] @ form.loads, model.load(mu), atol=1e-7)
    basis = ps.pod(ps.solve_many(model, ps.sample(model, 10)), tolerance=1e-9)
    reduced = ps.reduce(model, basis)
    truth = ps.solve_many(model, ps.sample(model, 10, design="random", rng=3))
    answers = reduced.solve(truth.mus)
    error = errors_of(truth, basis, answers.coefficients)
    assert np.max(error / np.linalg.norm(truth.solutions, axis=1)) < 1e-7
    assert np.all(answers.bounds.values >= error)
    assert not np.any(answers.bounds.rigorous)


def test_error_of_an_interpolated_coefficient_counts_at_parameters_it_was_not_made_from():
    """A narrow bump whose centre moves: few samples interpolate themselves exactly and everything else badly."""
    s = ps.parameters(s=(0.0, 1.0))[0]
    model = box_problem(ps.Eq(-ps.laplacian(u) + u, sympy.exp(-500 * (x - s) ** 2)), n_nodes=200)
    form = affine_form(model, np.linspace(0.05, 0.95, 4)[:, None])
    assert form.error > 0.1


def test_collocation_at_points_reproduces_solutions_in_the_span(model):
    snapshots = ps.solve_many(model, ps.sample(model, 6, rng=3))
    points = collocate(model, ps.pod(snapshots, n_modes=6))
    found = points.coefficients(snapshots.mus)
    assert np.allclose(points.basis.lift(found), snapshots.solutions, atol=1e-8)


def box_problem(equation, boundary=None, n_nodes=300):
    problem = ps.Problem(BOX, equation, ps.Dirichlet(0) if boundary is None else boundary)
    return ps.discretize(problem, ps.scatter(BOX, n_nodes=n_nodes))


x, y = ps.coordinates("x y")
u = ps.unknown("u", x, y)
BOX = ps.Box((0, 0), (1, 1))


def checked_bounds(model, basis, mus, *, rigorous_only, **options):
    """Bounds are not below errors: for the reduced solution, zero, noise, and at corners and snapshots."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)
        reduced = ps.reduce(model, basis, **options)
    truth = ps.solve_many(model, mus)
    rng = np.random.default_rng(0)
    best = reduced.coefficients(mus)
    noise = [10.0**e * rng.standard_normal(best.shape) * np.abs(best).max() for e in (-12, -8, -4, 0)]
    for c in (best, basis.project(truth.solutions), 0 * best, *[best + n for n in noise]):
        bounds = reduced.certify(mus, c)
        error = errors_of(truth, basis, c)
        counts = bounds.rigorous if rigorous_only else np.ones(len(mus), dtype=bool)
        assert np.all((bounds.values >= error)[counts])
    return reduced


def test_bounds_know_what_an_ill_conditioned_matrix_does_to_solves():
    """Almost pure Neumann: a full solve is good to 1e-9 or so, and the bound must not promise more."""
    (k,) = ps.parameters(k=(1e-6, 1.0, "log"))
    model = box_problem(ps.Eq(-ps.laplacian(u) + k * u, sympy.exp(x)), ps.Neumann(0))
    snapshots = ps.solve_many(model, ps.sample(model, 20))
    basis = ps.pod(snapshots, n_modes=3)
    mus = np.vstack([ps.sample(model, 20, design="random", rng=4), snapshots.mus, [[1e-6], [1.0]]])
    checked_bounds(model, basis, mus, rigorous_only=True)


@pytest.mark.slow
def test_bounds_near_resonances_and_at_corners():
    k, a = ps.parameters(k=(5.0, 60.0), a=(0.9, 1.1))
    model = box_problem(ps.Eq(-u.diff(x, 2) - a * u.diff(y, 2) - k * u, sympy.exp(x) * (1 + y)))
    snapshots = ps.solve_many(model, ps.sample(model, 30))
    mus = np.vstack([snapshots.mus, ps.sample(model, (2, 2), design="lattice"), ps.sample(model, 30, rng=9)])
    checked_bounds(model, ps.pod(snapshots, n_modes=12), mus, rigorous_only=True)


@pytest.mark.slow
def test_guessed_constants_are_not_far_off_for_convection():
    nu, b = ps.parameters(nu=(1e-3, 0.1, "log"), b=(-1.0, 1.0))
    model = box_problem(ps.Eq(-nu * ps.laplacian(u) + u.diff(x) + b * u.diff(y), 1), n_nodes=400)
    basis = ps.pod(ps.solve_many(model, ps.sample(model, 40)), n_modes=15)
    mus = ps.sample(model, 60, design="random", rng=3)
    with pytest.warns(ps.ParasolWarning, match="% of 2005 sampled parameters"):
        reduced = ps.reduce(model, basis)
    truth = ps.solve_many(model, mus)
    answers = reduced.solve(mus)
    ratio = answers.bounds.values / errors_of(truth, basis, answers.coefficients)
    assert np.mean(ratio >= 1) > 0.95
    assert np.min(ratio) > 0.3


def test_worst_direction_does_not_beat_the_bound():
    """The error in the direction of the smallest singular value, from a dense factorisation, at every anchor's frame."""
    k, a = ps.parameters(k=(100.0, 200.0), a=(0.8, 1.2))
    model = box_problem(ps.Eq(-u.diff(x, 2) - a * u.diff(y, 2) - k * u, sympy.exp(x) * (1 + y)), n_nodes=200)
    bench = prepare(model, n_anchors=40)
    certificate = bench.covered.certificate
    anchors = [bench.candidates[i] for i in bench.covered.anchors]
    for mu, sigmas in zip(anchors, certificate.sigmas, strict=True):
        for k in np.flatnonzero(sigmas):
            assert sigmas[k] <= smallest(model, bench, mu, k)


@pytest.mark.slow
def test_more_columns_than_unknowns():
    """Many interpolated terms: rows that are but rounding must not enter the small system."""
    b, a = ps.parameters(b=(0.5, 2.0), a=(0.2, 0.8))
    load = 1 / (1 + 20 * ((x - a) ** 2 + (y - a) ** 2))
    model = box_problem(ps.Eq(-u.diff(x, 2) - b * u.diff(y, 2) + 5 * load * u, load), n_nodes=150)
    basis = ps.pod(ps.solve_many(model, ps.sample(model, 64)), n_modes=20)
    mus = ps.sample(model, 20, design="random", rng=2)
    reduced = checked_bounds(model, basis, mus, rigorous_only=False, n_anchors=12)
    assert reduced.residuals[0].triangle.shape[1] > 150 >= reduced.residuals[0].triangle.shape[0]
    truth = ps.solve_many(model, mus)
    found = errors_of(truth, basis, reduced.coefficients(mus)) / np.linalg.norm(truth.solutions, axis=1)
    assert np.mean(found) < 1.3 * np.mean(basis.projection_errors(truth.solutions))
    fewer = reduced.truncated(8)
    fresh = ps.reduce(model, basis.truncated(8), n_anchors=12)
    assert np.allclose(fewer.coefficients(mus), fresh.coefficients(mus), atol=1e-10)


@pytest.mark.slow
def test_coarse_interpolation_is_part_of_the_bound():
    (c,) = ps.parameters(c=(0.2, 0.8))
    model = box_problem(ps.Eq(-ps.laplacian(u) + 50 * u / (1 + 20 * ((x - c) ** 2 + (y - 0.5) ** 2)), 1))
    basis = ps.pod(ps.solve_many(model, ps.sample(model, 20)), n_modes=8)
    checked_bounds(model, basis, ps.sample(model, 20, rng=5), rigorous_only=False, tolerance=1e-3)


def test_nothing_is_proven_outside_the_box(reduced):
    assert not np.any(reduced.solve([[4.2, 1.0]], extrapolate=True).bounds.rigorous)


def test_huge_coefficients_have_a_huge_bound(reduced):
    assert np.all(reduced.certify([[1.0, 1.0]], np.full((1, 12), 1e200)).values > 1e190)


def test_mistakes_are_told(model, reduced):
    with pytest.raises(ps.ParasolError, match="outside its range"):
        reduced.solve([[99.0, 1.0]])
    assert reduced.solve([[4.1, 1.0]], extrapolate=True).coefficients.shape == (1, 12)
    with pytest.raises(ps.ParasolError, match="one parameter vector"):
        reduced.solve([1.0, 1.0])
    with pytest.raises(ps.ParasolError, match="coefficients has shape"):
        reduced.certify([[1.0, 1.0]], np.zeros((1, 3)))
    with pytest.raises(ps.ParasolError, match="NaN"):
        reduced.certify([[1.0, 1.0]], np.full((1, 12), np.nan))
    with pytest.raises(ps.ParasolError, match="snapshots of this model"):
        ps.reduce(model, Basis(np.eye(5)[:, :2]))
    with pytest.raises(ps.ParasolError, match="weighting='rowz'"):
        prepare(model, weighting="rowz")
    with pytest.raises(ps.ParasolError, match="in this order"):
        ps.reduce(reduced.basis, model)
    with pytest.raises(ps.ParasolError, match="n_anchors must be"):
        ps.reduce(model, reduced.basis, n_anchors=0)
    with pytest.raises(ps.ParasolError, match="tolerance must be"):
        ps.reduce(model, reduced.basis, tolerance=-1)
    with pytest.raises(ps.ParasolError, match="nonlinear"):
        collocate(discretize_with(ps.load_problem("bratu"), Settings(n_nodes=150)), reduced.basis)
    with pytest.raises(ps.ParasolError, match="nonlinear"):
        prepare(discretize_with(ps.load_problem("bratu"), Settings(n_nodes=100)))
    with pytest.raises(ps.ParasolError, match="time"):
        prepare(discretize_with(ps.load_problem("heat"), Settings(n_nodes=100)))
