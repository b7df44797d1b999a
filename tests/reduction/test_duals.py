"""Random duals: the estimate against true errors, its law over the random vectors, its units, corrected quantities."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from sympy import cos, sin

import parasol as ps
from parasol.errors import InputError
from parasol.reduction.by_estimate import ByEstimate
from parasol.reduction.duals import DualBuilder
from parasol.reduction.greedy import search
from parasol.runtime.duals import TYPICAL, WIDTH, RandomDuals, miss_probability
from parasol.runtime.reduced import ReducedModel

x, y = ps.coordinates("x y")
u = ps.unknown("u", x, y)
nu, angle = ps.parameters(nu=(0.1, 1.0, "log"), angle=(0.0, 6.3))


def wind():
    """Convection and diffusion in a disc: not symmetric, with ghosts on a part where the slope is given."""
    equation = ps.Eq(-nu * ps.laplacian(u) + 2 * cos(angle) * u.diff(x) + 2 * sin(angle) * u.diff(y), 1 + x)
    domain = ps.Disc().named(right=x > 0.5)
    quantities = {"mean": ps.Average(), "there": ps.PointValue((0.1, 0.3))}
    return ps.Problem(domain, equation, {"right": ps.Neumann(0), "*": ps.Dirichlet(y)}, quantities=quantities)


@pytest.fixture(scope="module")
def model():
    return ps.discretize(wind(), ps.scatter(wind().domain, n_nodes=200))


@pytest.fixture(scope="module")
def grown(model):
    growing = ByEstimate(model)
    found = search(growing, aim=1e-2, most=60, least=4)
    growing.complete()
    return growing, found


@pytest.fixture(scope="module")
def fresh(model):
    mus = ps.sample(model, 60, design="random", rng=5)
    return mus, np.array([model.solve(mu).unknowns for mu in mus])


def errors_of(growing, reduced, fresh, change=0.0):
    mus, solutions = fresh
    c = reduced.coefficients(mus)
    c = c * (1 + change * np.random.default_rng(0).standard_normal(c.shape))
    errors = solutions - c @ growing.duals.modes.T
    return c, errors, np.linalg.norm(growing.duals.root.into(errors.T), axis=0)


@pytest.mark.parametrize("change", [0.0, 0.05])  # the reduced model's own coefficients, and those of a bad map
def test_estimates_are_near_the_errors(grown, fresh, change):
    growing, found = grown
    reduced = growing.sealed(found.basis)
    c, _, errors = errors_of(growing, reduced, fresh, change)
    estimates = reduced.estimate(fresh[0], c)
    ratio = estimates.values / errors
    assert 1 / 3 < ratio.min() < ratio.max() < 3
    assert np.all(errors <= estimates.factor * estimates.values)
    assert np.allclose(estimates.relative, estimates.values / np.linalg.norm(c, axis=1))
    bounds = reduced.certify(fresh[0], c)
    assert bounds.probable.all()
    assert not bounds.rigorous.any()
    assert np.all(errors <= bounds.values)
    assert np.median(bounds.values / errors) < 4


def test_the_probability_that_vectors_miss_is_that_of_chi_square():
    for k in (4, 10, 20, 40):
        assert miss_probability(k) == pytest.approx(stats.chi2.cdf(k / WIDTH**2, k), rel=1e-6)


@pytest.mark.slow
def test_estimates_have_the_law_of_chi_square_over_the_vectors(model, grown, fresh):
    """The same surrogate with many draws of vectors: too small by the factor as often as said, and not more."""
    growing, found = grown
    mus, solutions = fresh[0][:8], fresh[1][:8]
    reduced = growing.sealed(found.basis)
    c, _, errors = errors_of(growing, reduced, (mus, solutions))
    factors = [model.factors(mu) for mu in growing.duals.mus]
    n_vectors, squares = 4, []  # few vectors miss often enough to be counted
    for draw in range(60):
        builder = DualBuilder(
            growing.form, growing.duals.root, growing.duals.scale, np.random.default_rng([draw, 1]), n_vectors
        )
        for mode in growing.duals.modes.T:
            builder.add_mode(mode)
        for mu, inverse in zip(growing.duals.mus, factors, strict=True):
            builder.add_snapshot(mu, inverse)
        theta, phi = reduced.operator_theta(mus), reduced.load_theta(mus)
        squares.append(n_vectors * (builder.sealed().errors(theta, phi, c)[0] / errors) ** 2)
    squares = np.array(squares)
    for column in squares.T:  # one parameter: 60 independent draws
        assert stats.kstest(column, "chi2", args=(n_vectors,)).pvalue > 1e-4
    missed = np.mean(squares < n_vectors / WIDTH**2)
    assert missed == pytest.approx(miss_probability(n_vectors), abs=0.06)


def test_the_sealed_vectors_are_others_than_those_that_decide(grown):
    growing, found = grown
    duals = growing.duals
    assert np.max(np.abs(np.corrcoef(duals.certifying.T, duals.deciding.T)[:20, 20:])) < 0.5
    # what is decided does not depend on the sealed ones
    again = ByEstimate(growing.model)
    again.duals.vectors[:, : again.duals.n_sealed] *= -3.0
    assert np.array_equal(search(again, aim=1e-2, most=60, least=4).mus, found.mus)
    sealed, steering = duals.sealed(), duals.steering()
    assert np.array_equal(sealed.normal, steering.normal)
    assert np.array_equal(sealed.right, steering.right)


def test_a_bad_interpolation_of_inverses_is_seen_and_enters_the_factor(model, grown, fresh):
    growing, found = grown
    whole = growing.sealed(found.basis)
    few = replace(
        whole.duals,
        mus=whole.duals.mus[:1],
        normal=whole.duals.normal[:, :1, :1],
        right=whole.duals.right[:, :1],
        blocks=whole.duals.blocks[:, :1],
        outputs=None,
    )
    theta = whole.operator_theta(fresh[0])
    assert np.max(few.inverses(theta)[1]) > 5 * np.max(whole.duals.inverses(theta)[1])
    one = replace(whole, duals=few, residuals=whole.residuals[:1])
    checked = growing.duals.checked(one, *fresh)
    assert checked.duals.n_checked == len(fresh[0])
    assert checked.duals.ratio > 1.2 > growing.duals.checked(whole, *fresh).duals.ratio
    c, _, errors = errors_of(growing, checked, fresh)
    assert np.all(errors <= checked.estimate(fresh[0], c).factor * checked.estimate(fresh[0], c).values)


def test_quantities_are_corrected(model, grown, fresh):
    growing, found = grown
    reduced = growing.duals.checked(growing.sealed(found.basis), *fresh)
    c, errors, _ = errors_of(growing, reduced, fresh)
    rows = model.layout.unknowns(model.quantities.rows, np.zeros((2, model.n_unknowns - model.n_nodes)))
    values, left = reduced.corrected(fresh[0], c, rows @ growing.duals.modes)
    assert reduced.corrected(fresh[0], c, rows[::-1] @ growing.duals.modes) is None  # other quantities, as many
    before, after = np.abs(errors @ rows.T), np.abs(errors @ rows.T - values)
    assert np.all(np.median(after, axis=0) < 0.1 * np.median(before, axis=0))
    assert np.all(after <= TYPICAL * reduced.duals.output_ratio * left)
    assert np.all(np.median(left / after, axis=0) < 30)
    assert np.all(np.quantile(left / after, 0.1, axis=0) > 0.3)


def test_a_truncated_model_keeps_its_estimate(grown, fresh):
    growing, found = grown
    part = growing.sealed(found.basis).truncated(5)
    c = part.coefficients(fresh[0])
    gap = fresh[1] - c @ growing.duals.modes[:, :5].T
    errors = np.linalg.norm(growing.duals.root.into(gap.T), axis=0)
    ratio = part.estimate(fresh[0], c).values / errors
    assert 1 / 3 < ratio.min() < ratio.max() < 3


def test_what_rounding_and_interpolation_may_add_is_in_the_bound(grown, fresh):
    growing, found = grown
    reduced = growing.sealed(found.basis)
    c = reduced.coefficients(fresh[0])
    noisy = replace(reduced, residuals=tuple(replace(r, noise=r.noise + 1e-3) for r in reduced.residuals))
    assert np.all(noisy.certify(fresh[0], c).values > reduced.certify(fresh[0], c).values + 1e-4)


def test_outside_the_box_nothing_is_probable(grown):
    growing, found = grown
    reduced = growing.sealed(found.basis)
    mus = np.array([[0.05, 1.0], [0.5, 1.0]])
    c = reduced.coefficients(mus, extrapolate=True)
    assert reduced.certify(mus, c, extrapolate=True).probable.tolist() == [False, True]


def test_parts_that_do_not_fit_are_refused(grown):
    growing, found = grown
    reduced = growing.sealed(found.basis)
    with pytest.raises(InputError, match="another basis"):
        replace(reduced, duals=reduced.duals.truncated(3))
    with pytest.raises(InputError, match="a certificate, or duals"):
        replace(reduced, duals=None)
    with pytest.raises(InputError, match="do not fit"):
        replace(reduced.duals, n_loads=reduced.duals.n_loads + 1)
    with pytest.raises(InputError, match="even number"):
        ByEstimate(growing.model, n_vectors=7)
    with pytest.raises(InputError, match="no random duals"):
        _without_duals(growing, found).estimate([[0.5, 1.0]], np.zeros((1, found.basis.n_modes)))
    assert isinstance(reduced.duals, RandomDuals)


def _without_duals(growing, found) -> ReducedModel:
    return ps.reduce(growing.model, found.basis, n_anchors=1)
