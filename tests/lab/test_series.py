"""The Chebyshev construction: its certificate, its network, its bound, and the bound from below."""

import itertools
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import mpmath
import numpy as np
import plain_network
import pytest
import sympy
from numpy.polynomial import chebyshev
from scipy.optimize import minimize

import parasol as ps
from parasol.errors import NoCertificate
from parasol_lab import theorem
from parasol_lab.theorem import lower
from parasol_lab.theorem.construction import certificate, ellipse
from parasol_lab.theorem.construction import chebyshev as construction
from parasol_lab.theorem.construction.chebyshev import chebyshev_construction
from parasol_lab.theorem.construction.plan import Design, Plan
from parasol_lab.theorem.construction.stability import stability
from parasol_lab.theorem.construction.system import System
from parasol_lab.theorem.construction.theta import rational
from parasol_lab.theorem.growth import bound_of
from parasol_lab.theorem.networks import chebyshev as networks
from parasol_lab.theorem.networks.products import Wiring, product_network
from parasol_lab.theorem.networks.series_bound import series_bound, tensor_bound

NAMES = "abcd"


def system_of(ranges, functions=(), *, d=3, strength=0.4, seed=0, loaded=True):
    """B = Q + parts of each parameter and function, f random: a system that no equation is needed for."""
    rng = np.random.default_rng(seed)
    symbols = [sympy.Symbol(name) for name in NAMES[: len(ranges)]]
    space = ps.pde.ParameterSpace(ps.parameters(**dict(zip(NAMES, ranges, strict=False))))
    curved = tuple(
        rational(sympy.sympify(f, dict(zip(NAMES, symbols, strict=False))), symbols, "here", space) for f in functions
    )
    n, rows = len(ranges) + len(curved), 2 * d + 1
    parts = rng.normal(size=(n, rows, d))
    low, high = np.asarray(space.bounds)
    corners = np.array(list(itertools.product(*zip(low, high, strict=True))))
    sizes = [np.abs(corners[:, j]).max() for j in range(len(ranges))] + [np.abs(f(corners)).max() for f in curved]
    parts *= strength / (n * np.linalg.norm(parts, 2, axis=(1, 2)) * np.array(sizes))[:, None, None]
    loads = rng.normal(size=(1 + n, rows)) * np.r_[1.0, np.full(n, 0.5 if loaded else 0.0) / sizes][:, None]
    first = np.linalg.qr(rng.normal(size=(rows, d)))[0]
    return System(
        np.arange(len(ranges)),
        curved,
        np.array([first, *parts]),
        np.arange(n),
        loads,
        np.eye(d),
        space,
        len(ranges),
        "",
    )


def largest_error(system, answers, seed=0, starts=6):
    """By random parameters, corners, and a simplex search from the worst of them."""
    rng = np.random.default_rng(seed)
    low, high = np.asarray(system.parameters.bounds)
    mus = low + rng.random((1500, len(low))) * (high - low)
    mus = np.vstack([mus, list(itertools.product(*zip(low, high, strict=True)))])

    def error(points):
        points = np.clip(points, low, high)
        return np.linalg.norm(answers(points) - system.coefficients(points), axis=1)

    errors = error(mus)
    best = errors.max()
    for start in mus[np.argsort(-errors)[:starts]]:
        first = np.vstack([start, start + 0.05 * np.diag(high - low)])
        found = minimize(
            lambda mu: -error(mu[None])[0], start, method="Nelder-Mead", options={"initial_simplex": first}
        )
        best = max(best, -found.fun)
    return best


CASES = {
    "one": system_of([(0.2, 3.0)], strength=0.8),
    "one, a wide range": system_of([(0.01, 10.0)], strength=0.9),
    "one, a tiny range": system_of([(2.0, 2.0 + 1e-7)]),
    "one, rational": system_of([(0.5, 4.0)], ["1/(a + 0.1)"], strength=0.7),
    "two": system_of([(0.1, 4.0), (-1.0, 2.0)], strength=0.7),
    "two, polynomial": system_of([(-1.0, 2.0), (0.0, 1.0)], ["a**2*b", "a*b"], strength=0.6),
    "two, rational": system_of([(0.5, 2.0), (0.0, 1.0)], ["a/(2 - b)", "1/(a + b**2)"], strength=0.6),
    "two, one of no effect": system_of([(0.5, 2.0), (1.0, 2.0)], strength=0.0, loaded=False),
    "three": system_of([(0.5, 2.0), (0.0, 1.0), (-1.0, 1.0)], strength=0.6),
    "three, rational": system_of([(0.5, 2.0), (0.0, 1.0), (1.0, 2.0)], ["b/(a + c)"], d=2, strength=0.4),
    "four": system_of([(0.5, 2.0), (0.0, 1.0), (-1.0, 1.0), (3.0, 5.0)], d=2, strength=0.4),
}


@pytest.mark.parametrize(
    ("name", "accuracy"),
    [
        pytest.param(name, accuracy, marks=[pytest.mark.slow] if accuracy < 0.1 and name[:3] != "one" else [])
        for name in CASES
        for accuracy in (0.1, 1e-3)
    ],
)
def test_the_error_proven_is_never_exceeded_and_nearly_reached(name, accuracy):
    system = CASES[name]
    size = np.linalg.norm(system.coefficients(certificate.grid(system, [5] * system.n_parameters)), axis=1).max()
    built = chebyshev_construction(system, accuracy * size)
    assert built.bound <= accuracy * size
    found = largest_error(system, built.network)
    assert found <= built.bound * (1 + 1e-9)
    if built.n_terms > 2:
        assert found >= 0.2 * built.bound
    assert all(np.abs(w.data).max(initial=0) < 1e3 for w in built.network.weights[:-1]) or "tiny" in name


def shifted(low):
    """One parameter, of which only a − low counts: digits are lost where the network reads a."""
    system = system_of([(float(low), low + 3.0)], [f"a - {low}"], strength=0.8)
    system.operators[1], system.loads[1] = 0.0, 0.0
    return system


HOSTILE = {
    "one mode": (system_of([(0.2, 3.0)], d=1, strength=0.8), 1e-8),
    "a pole just outside": (system_of([(0.0, 1.0)], ["1/(a + 0.05)"], strength=0.9), 1e-3),
    "five decades": (system_of([(1e-3, 1e2)], strength=0.9), 1e-6),
    "other units": (system_of([(1e-9, 4e-9), (1e12, 3e12)], ["a**2*b"], strength=0.7), 1e-4),
    "nearly singular": (system_of([(-1.0, 1.0)], strength=0.999999), 1e-6),
    "far from zero": (shifted(10**9), 1e-6),
    "farther from zero": (shifted(10**12), 1e-2),
    "beyond rounding": (system_of([(-1.0, 1.0)], strength=0.999999), 1e-12),
    "a pole too near": (system_of([(0.0, 1.0)], ["1/(a + 1e-8)"], strength=0.9), 1e-2),
    "far from zero, beyond rounding": (shifted(10**12), 1e-4),
}
REFUSED = ("beyond rounding", "a pole too near", "far from zero, beyond rounding")


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if "outside" in n else []) for n in HOSTILE])
def test_hostile_systems_are_proven_or_refused(name):
    system, accuracy = HOSTILE[name]
    allowed = accuracy * stability(system).size
    if name in REFUSED:
        with pytest.raises(NoCertificate, match="sk for a larger accuracy") as caught:
            chebyshev_construction(system, allowed)
        assert "\n" not in str(caught.value)
        assert ("rounding hides" in str(caught.value)) == (name != "a pole too near")
        assert ("Measure a from a value in its range" in str(caught.value)) == ("far" in name)
        return
    built = chebyshev_construction(system, allowed)
    assert largest_error(system, built.network, starts=2) <= built.bound <= allowed


def test_rounding_of_the_parameters_is_inside_the_certificate():
    for k in (3, 60):
        bounds = [np.array([[low], [low + 3.0]]) for low in (0.0, 1e9)]
        near, far = (construction.evaluation_rounding({(k,): 1.0}, each) for each in bounds)
        assert near < 1e-14 * k**2
        assert far > 1e8 * near
        x = 1e9 + np.r_[np.random.default_rng(0).uniform(0, 3, 200), np.linspace(0, 1e-5, 200)]
        scaled = 2 / 3 * x + (-2 / 3 * 1e9 - 1)  # as a layer computes it
        exact = np.array([float(2 * (sympy.Rational(v) - 10**9) / 3 - 1) for v in x])
        gap = np.abs(chebyshev.chebval(scaled, np.eye(k + 1)[k]) - chebyshev.chebval(exact, np.eye(k + 1)[k])).max()
        assert far / 30 < gap < far


def test_rounding_of_the_parameters_is_inside_what_is_said_of_a_network_without_squares():
    system = shifted(10**9)
    system.operators[2] = 0.0  # c is affine in a, and no square errs
    built = chebyshev_construction(system, 1e-3)
    mus = np.linspace(1e9, 1e9 + 3, 200)[:, None]
    found = np.linalg.norm(built.network(mus) - system.coefficients(mus), axis=1).max()
    assert built.levels == 0
    assert 10 * built.polynomial_error < found < built.bound


def common_factor(far, kappa):
    """B = (1 + a − far) L and f = (1 + a − far) g for a in [far, far + 1]: c is the same everywhere, L⁺ g."""
    rng = np.random.default_rng(0)
    q, w = np.linalg.qr(rng.normal(size=(7, 3)))[0], np.linalg.qr(rng.normal(size=(3, 3)))[0]
    part, load = (q * np.geomspace(1, 1 / kappa, 3)) @ w, rng.normal(size=7)
    space = ps.pde.ParameterSpace(ps.parameters(a=(far, far + 1)))
    arrays = np.array([1.5 * part, part]), np.array([0]), np.array([1.5 * load, load])
    centre = np.array([far + 0.5])
    system = System(np.array([0]), (), *arrays, np.eye(3), space, 1, "", centre=centre)
    return system, np.linalg.lstsq(part, load, rcond=None)[0]


@pytest.mark.parametrize("kappa", [10.0, 1000.0])
@pytest.mark.parametrize("far", [0.0, 1e3, 1e6, 1e9, 1e12])
def test_narrow_ranges_far_from_zero_are_as_good_as_near_ones(far, kappa):
    system, exact = common_factor(far, kappa)
    constants = stability(system)
    assert (1 - 2e-9) / kappa < constants.beta < 1 / kappa
    assert 2 < constants.alpha < 2 * (1 + 2e-9)
    near = common_factor(0.0, kappa)[0]
    for mine, other in zip(*[ellipse.ellipses(each, stability(each)) for each in (system, near)], strict=True):
        assert mine.axes == pytest.approx(other.axes, rel=1e-9)
        assert mine.largest == pytest.approx(other.largest, rel=1e-6)
    built = chebyshev_construction(system, 1e-5 * np.linalg.norm(exact))
    mus = np.linspace(far, far + 1, 50)[:, None]
    for found in (built.network(mus), system.coefficients(mus)):
        assert np.linalg.norm(found - exact, axis=1).max() <= built.bound


@pytest.mark.parametrize("far", [1e3, 1e6, 1e9])
def test_what_was_rounded_before_it_cancelled_is_inside_the_certificate(far):
    """Measured from zero B is (1 − far) L + a L, rounded: what is proven says how much is lost, or nothing is."""
    system, exact = common_factor(far, 100.0)
    part, load = system.operators[1], system.loads[1]
    rounded = replace(
        system,
        operators=np.array([(1 - far) * part + (far + 0.5) * part, part]),
        loads=np.array([(1 - far) * load + (far + 0.5) * load, load]),
        summed=(np.array([2 * far, 1.0]), np.array([2 * far, 1.0]) * np.linalg.norm(load)),
    )
    plain = replace(
        system, centre=0.0, operators=np.array([(1 - far) * part, part]), loads=np.array([(1 - far) * load, load])
    )
    mus = np.linspace(far, far + 1, 50)[:, None]
    for each in (rounded, plain):
        assert stability(each).beta < 0.01
        assert stability(each).alpha > 2
        bounds = []
        for accuracy in 10.0 ** -np.arange(1, 10):
            try:
                built = chebyshev_construction(each, accuracy * np.linalg.norm(exact))
            except NoCertificate:
                continue
            bounds.append(built.bound)
            for answers in (exact, each.coefficients(mus)):
                assert np.linalg.norm(built.network(mus) - answers, axis=1).max() <= built.bound
        assert len(bounds) < 9 or far == 1e3
    assert stability(rounded).beta < stability(system).beta


def test_digits_that_a_polynomial_loses_are_inside_the_certificate():
    """T_13 has coefficients of 3e4 whose sum is 1: what floats make of it is off by 4e-12."""
    symbol, space = sympy.Symbol("a"), ps.pde.ParameterSpace(ps.parameters(a=(-1.0, 1.0)))
    function = rational(sympy.chebyshevt(13, symbol), (symbol,), "here", space)
    points = np.cos(np.linspace(0, np.pi, 301))[:, None]
    lost = np.abs(function(points) - np.cos(13 * np.arccos(points[:, 0])))
    sizes = function.size(points, np.zeros(1), np.ones(1))
    assert 1e-12 < lost.max() < 4 * np.finfo(float).eps * sizes.max()
    quotient = rational(1 / (1 + symbol / 2), (symbol,), "here", space)
    assert quotient.size(points, np.zeros(1), np.ones(1)) == pytest.approx(
        (1 + 2 * np.maximum(-points[:, 0], 0) / (2 + points[:, 0])) / (1 + points[:, 0] / 2)
    )
    curved = system_of([(-1.0, 1.0)], ["a**2"])
    first, second = (
        certificate.polynomial_system(replace(curved, functions=(f,))).terms[0]
        for f in (function, rational(symbol**13, (symbol,), "here", space))
    )
    assert first > 50 * second


def test_rounding_of_what_cancels_in_a_residual_is_inside_the_certificate():
    """C c = h with ‖c‖ a million times ‖h‖: the residual is 0, and what floats make of it is rounding of C c, not of h."""
    system = certificate.polynomial_system(common_factor(0.0, 1e3)[0])
    smallest = np.linalg.eigh(system.gram[0])[1][:, 0]
    series = np.random.default_rng(0).normal(size=(9, 1)) * smallest
    shape = [len(series) + len(system.gram) - 1]
    gram, values = certificate.to_values(system.gram, shape), certificate.to_values(series, shape)
    right = certificate.to_series(np.einsum("nij,nj->ni", gram, values), 1)
    system = replace(system, right=right, terms=(0.0, 0.0))
    rounding = np.linalg.norm(system.residual(series), axis=-1).sum()
    assert 1e3 * np.finfo(float).eps * np.linalg.norm(right, axis=-1).sum() < rounding < system.noise(series)


def test_rounding_of_the_operator_acts_on_large_residuals():
    """f is orthogonal to B, so c = 0; of B off by δB it is (BᵀB)⁻¹ δBᵀ f, large where B is nearly singular."""
    system, _ = common_factor(0.0, 1e3)
    direction = np.linalg.qr(np.hstack([system.operators[1], np.eye(7)[:, :1]]))[0][:, 3]
    least = np.linalg.svd(system.operators[1])[2][-1]
    system = replace(
        system,
        loads=np.outer([1.5, 1.0], direction),
        summed=(np.array([1e4, 1.0]), np.zeros(2)),  # terms of 1e4 make B
    )
    lost = 1e4 * np.finfo(float).eps * np.outer(direction, least)
    moved = replace(system, operators=system.operators + np.array([lost, 0 * lost])).coefficients(np.zeros((1, 1)))
    proof = certificate.prove(certificate.polynomial_system(system), np.zeros((1, 3)), 1.0)
    assert 1e-7 < np.linalg.norm(moved) < proof.bound


def test_c_solves_its_polynomials():
    """D² BᵀB c = D² Bᵀf at any point: degrees of quotients and a change of basis are in them."""
    system = system_of([(0.5, 2.0), (-1.0, 1.0)], ["a**4/(a + 1)", "(a + b**3)/(b + 3)", "a*b**2"], strength=0.6)
    system = replace(system, back=np.array([[2.0, 1.0, 0.0], [0.0, 1.0, -1.0], [0.5, 0.0, 1.0]]))
    polynomials = certificate.polynomial_system(system)
    x = np.random.default_rng(1).uniform(-1, 1, (20, 2))
    gram, right = (
        np.array([chebyshev.chebval2d(*at, part) for at in x]) for part in (polynomials.gram, polynomials.right)
    )
    c = system.coefficients_inside(x)
    assert np.abs(np.einsum("nij,nj->ni", gram, c) - right).max() < 1e-12 * np.abs(right).max()
    larger = replace(polynomials, terms=(1e6 * polynomials.terms[0], 0.0))
    assert larger.gram_noise > 1e5 * polynomials.gram_noise
    assert larger.noise(np.ones((2, 2, 3))) > 1e5 * polynomials.noise(np.ones((2, 2, 3)))


def test_large_terms_that_cancel_are_refused():
    system = common_factor(0.0, 100.0)[0]
    cancelled = replace(system, summed=(np.array([1e14, 1.0]), np.array([1e14, 1.0])))
    with pytest.raises(NoCertificate, match="Write the equation so that large terms do not cancel"):
        stability(cancelled)


@pytest.mark.parametrize("name", ["one, rational", "two", "two, rational", "three"])
def test_a_proof_holds_for_any_polynomial(name):
    """Bad polynomials too: what is proven is above what is seen, what is refuted is really larger."""
    system, rng = CASES[name], np.random.default_rng(3)
    polynomials, n = certificate.polynomial_system(CASES[name]), len(CASES[name].parameters.scalars)
    low, high = np.asarray(system.parameters.bounds)
    x = rng.uniform(-1, 1, (400, n))
    x[: 2**n] = list(itertools.product((-1, 1), repeat=n))
    exact = system.coefficients(np.clip((low + high) / 2 + x * (high - low) / 2, low, high))
    for _ in range(3):
        series = certificate.interpolant(system, [3] * n)
        series = series + rng.normal(size=series.shape) * 10.0 ** -rng.integers(1, 4)
        values = series[None]
        for j in range(n):
            matrix = chebyshev.chebvander(x[:, j], series.shape[j] - 1)
            values = np.einsum("nk,nk...->n...", matrix, np.broadcast_to(values, (len(x), *values.shape[1:])))
        seen = np.linalg.norm(values - exact, axis=1).max()
        proof = certificate.prove(polynomials, series, 2 * seen)
        assert not proof.refuted
        assert seen <= proof.bound <= 2 * seen
        assert certificate.prove(polynomials, series, 0.9 * seen).refuted


def test_what_is_not_invertible_is_not_proven(monkeypatch):
    monkeypatch.setattr(certificate, "_MOST_CELLS", 300)
    system = system_of([(-1.0, 1.0)], d=1, strength=0.0)
    system.operators[0] = 0.1 * system.operators[1] + 0.0
    system.operators[0][:, 0], system.operators[1][:, 0] = (
        0.3 * np.arange(1.0, 4.0),
        np.arange(1.0, 4.0),
    )  # B = 0 at a = −0.3
    with pytest.raises((NoCertificate, np.linalg.LinAlgError)):
        chebyshev_construction(system, 0.1)


def test_too_many_parameters_or_terms_are_refused(monkeypatch):
    system = system_of([(1.0, 2.0)] * 4)
    with pytest.raises(NoCertificate, match="at most 4"):
        chebyshev_construction(System(**(vars(system) | {"n_parameters": 5})), 0.1)
    monkeypatch.setattr(construction, "_MOST_NUMBERS", 1e4)
    with pytest.raises(NoCertificate, match="is not enough for this accuracy"):
        chebyshev_construction(system, 1e-9)


@pytest.mark.parametrize(
    "degrees",
    [(2,), (3,), (33,), (64,), (2, 2), (9, 5), (20, 17), (3, 2, 4), (9, 8, 5), (2, 3, 2, 2), (4, 4, 3, 5)],
    ids=str,
)
def test_networks_stay_below_the_bound_of_the_theorem(degrees):
    terms = list(itertools.product(*[range(n + 1) for n in degrees]))
    steps, p = networks.plan_steps(terms), len(degrees)
    rng = np.random.default_rng(1)
    for levels, d in ((1, 1), (6, 5)):
        every = dict.fromkeys(steps.of_squares, levels)
        coefficients = {k: rng.normal(size=d) for k in terms}
        network = networks.chebyshev_network(steps, every, coefficients, np.array([[0.5] * p, [2.0] * p]))
        bound = tensor_bound(degrees, levels, d)
        assert network.depth <= bound.depth
        assert network.n_weights <= bound.n_weights


@pytest.mark.parametrize(("p", "degree"), [(1, 13), (2, 6), (3, 3), (4, 2)])
@pytest.mark.parametrize("allowed", [0.5, 1e-4])
def test_squares_err_by_what_is_said_at_most(p, degree, allowed):
    rng = np.random.default_rng(p)
    terms = [k for k in itertools.product(range(degree + 1), repeat=p) if sum(k) <= degree + 1]
    coefficients = {k: rng.normal(size=2) for k in terms}
    weights = {k: float(np.linalg.norm(c)) for k, c in coefficients.items()}
    steps = networks.plan_steps(terms)
    levels = networks.least_levels(steps, weights, allowed)
    bounds = np.array([rng.uniform(-2, 0, p), rng.uniform(1, 3, p)])
    network = networks.chebyshev_network(steps, levels, coefficients, bounds)
    x = rng.uniform(-1, 1, (3000, p))
    x[: 2**p] = list(itertools.product((-1, 1), repeat=p))
    tables = [chebyshev.chebvander(x[:, j], degree) for j in range(p)]
    exact = sum(np.prod([tables[j][:, k[j]] for j in range(p)], axis=0)[:, None] * c for k, c in coefficients.items())
    found = np.linalg.norm(network((bounds.sum(0) + x * np.ptp(bounds, axis=0)) / 2) - exact, axis=1).max()
    assert 0.05 * allowed < found <= allowed


@pytest.mark.parametrize(
    ("term", "levels", "point"),
    [((4,), (1, 25), (0.0,)), ((1, 1), (1, 1, 1), (0.75, 0.25)), ((2, 2), (1, 1, 25, 25, 25), (0.0, 0.0))],
)
def test_what_squares_err_by_is_reached(term, levels, point):
    """T_2 is −1 − e at 0, and T_4 is off by 4e + 2e²; x y is farthest off where x and y are midpoints and (x + y)/2 is none."""
    steps = networks.plan_steps([term])
    every = dict(zip(steps.of_squares, levels, strict=True))
    p = len(term)
    network = networks.chebyshev_network(steps, every, {term: np.ones(1)}, np.array([[-1.0] * p, [1.0] * p]))
    exact = np.prod([np.cos(k * np.arccos(x)) for k, x in zip(term, point, strict=True)])
    said = networks.errors_of(steps, every).terms[term]
    assert abs(network(np.array([point]))[0, 0] - exact) == pytest.approx(said, rel=1e-9)


ANALYTIC = ("one", "one, a wide range", "one, rational", "two", "two, polynomial", "two, rational", "three, rational")


@pytest.mark.parametrize("name", ANALYTIC)
def test_c_is_analytic_and_as_small_as_said_in_the_ellipses(name):
    """At complex parameters on the ellipses, by complex arithmetic; and Chebyshev coefficients fall as they must."""
    system, rng = CASES[name], np.random.default_rng(2)
    constants = stability(system)
    low, high = np.asarray(system.parameters.bounds)
    by_cells = ellipse.ellipses(system, constants)
    by_degrees = [found for tau in (0.3, 0.9) for found in ellipse.explicit_ellipses(system, constants, tau)]
    assert len(by_cells) == 7
    assert len(by_degrees) == 2
    norms = np.linalg.norm(certificate.interpolant(system, [14 if len(low) < 3 else 9] * len(low)), axis=-1)
    for found in (*by_cells, *by_degrees):
        b, angles = np.array(found.axes), rng.uniform(0, 2 * np.pi, (300, len(low)))
        angles[:4] = np.array([0, 1, 2, 3])[:, None] * np.pi / 2
        zeta = np.sqrt(1 + b * b) * np.cos(angles) + 1j * b * np.sin(angles)
        xi = system.coordinates((low + high) / 2 + zeta * (high - low) / 2)
        operators, loads = system.operator(xi), system.load(xi)
        transposed = operators.transpose(0, 2, 1)  # not adjoint: c is analytic
        c = np.linalg.solve(transposed @ operators, transposed @ loads[:, :, None])
        assert np.linalg.norm(c, axis=1).max() <= found.largest
        for k in itertools.product(range(8), repeat=len(b)):
            assert norms[k] <= 2 ** np.count_nonzero(k) * found.largest * np.exp(-np.arcsinh(b) @ k)
    assert all(np.all(np.array(few.axes) < more.axes) for few, more in itertools.pairwise(by_cells))
    assert np.all(np.array(by_degrees[1].axes) < by_cells[5].axes)  # cells know more than α and β do


def test_loads_that_grow_beyond_the_box_count():
    """B is constant and f = x f_1: in the ellipses c grows with |x|, where f on the box says nothing of it."""
    system = system_of([(-1.0, 1.0)], strength=1e-9)
    system = replace(system, loads=system.loads * [[0.0], [1.0]])
    for found in ellipse.ellipses(system, stability(system)):
        (b,) = found.axes
        zeta = np.array([[np.sqrt(1 + b * b)], [1j * b]])
        c = np.linalg.pinv(system.operators[0]) @ system.load(zeta)[:, :, None]
        assert np.linalg.norm(c, axis=1).max() <= found.largest


def test_quotients_change_less_than_said():
    """Real and complex, near the zero of the denominator; along the real axis towards it, no less would do."""
    rng = np.random.default_rng(5)
    for slope, half, width in ((0.6, 0.5, 0.3), (0.6, 0.0, 0.9), (-0.4, 0.9, 0.2)):
        quotient = ellipse._Quotient(np.array([1.0, 0.5]), np.array([1.0, slope])).at(np.zeros((1, 1)))
        said = quotient.changes(np.full((1, 1), half), np.full((1, 1), width))[0]
        x = half * np.r_[-1.0, 1.0, rng.uniform(-1, 1, 500)]
        share = np.r_[1.0, 1.0, rng.random(500)]
        step = width * (
            share * np.r_[-1.0, 1.0, rng.choice([-1, 1], 500)] + 1j * (1 - share) * rng.choice([-1, 1], 502)
        )
        change = (1 + 0.5 * (x + step)) / (1 + slope * (x + step)) - (1 + 0.5 * x) / (1 + slope * x)
        assert np.max(np.abs(change.real) + np.abs(change.imag)) <= said * (1 + 1e-12)
    one_over = ellipse._Quotient(np.array([1.0]), np.array([1.0, 0.6])).at(np.zeros((1, 1)))
    said = one_over.changes(np.full((1, 1), 0.5), np.full((1, 1), 0.3))[0]
    assert said == pytest.approx(1 / (1 - 0.6 * 0.8) - 1 / (1 - 0.6 * 0.5))


@pytest.mark.parametrize(
    ("function", "singular", "reached"),
    [("a", 0.5j, 0.9), ("a**2", 0.5 + 0.5j, 0.75), ("1/(a + 1.5)", -1.5 + 2j, 0.19), ("a/(a + 3)", -0.6 + 1.2j, 0.6)],
)
def test_the_ellipse_nearly_reaches_the_singularity(function, singular, reached):
    """c = 1 / (1 + (2 ξ)²) for B = (1, 2 ξ), singular where ξ(a) = ± i/2 and nowhere else."""
    symbol, space = sympy.Symbol("a"), ps.pde.ParameterSpace(ps.parameters(a=(-1.0, 1.0)))
    xi = rational(sympy.sympify(function, {"a": symbol}), [symbol], "here", space)
    linear, functions = ([0], ()) if xi.affine else ([], (xi,))
    operators, loads = np.array([[[1.0], [0.0]], [[0.0], [2.0]]]), np.array([[1.0, 0.0], [0.0, 0.0]])
    parts = (np.array(linear, dtype=int), functions, operators, np.array([0]), loads, np.eye(1), space, 1, "")
    system = System(*parts)
    assert xi(np.array([[singular]]))[0] ** 2 == pytest.approx(-0.25)
    rho = max(abs(singular + np.sqrt(singular**2 - 1 + 0j) * sign) for sign in (1, -1))
    exact = (rho - 1 / rho) / 2
    found = ellipse.ellipses(system, stability(system))
    assert reached * exact <= found[-1].axes[0] < exact
    # the degree that is needed for an accuracy: an interpolant's coefficients fall no faster than ρ says
    bound = min(series_bound(e.axes, n_modes=1, largest=e.largest, accuracy=1e-6).degrees[0] for e in found)
    values = system.coefficients(np.cos(np.pi * (np.arange(400) + 0.5) / 400)[:, None])[:, 0]
    series = chebyshev.chebfit(np.cos(np.pi * (np.arange(400) + 0.5) / 400), values, 300)
    needed = np.flatnonzero(np.abs(series) > 1e-6)[-1]
    assert needed <= bound <= 6 * needed


@pytest.mark.parametrize("monomials", [1, 2])
def test_polynomials_change_less_than_markov_says(monomials):
    """|P(ζ) − P(x)|₁ ≤ Π T_g(1 + w) − 1 for |P| ≤ 1 on the box, reached by T_g at 1."""
    rng = np.random.default_rng(4)
    for _ in range(40):
        g = int(rng.integers(1, 6))
        series = np.eye(g + 1)[g] if monomials == 1 else rng.normal(size=g + 1)
        series = series / np.abs(chebyshev.chebval(np.linspace(-1, 1, 2001), series)).max()
        w, x = rng.uniform(0, 0.5), 1.0 if monomials == 1 else rng.uniform(-1, 1)
        share = 1.0 if monomials == 1 else rng.uniform(0, 1)
        change = chebyshev.chebval(x + w * (share + 1j * (1 - share)), series) - chebyshev.chebval(x, series)
        largest = np.cosh(g * np.arccosh(1 + w)) - 1
        assert abs(change.real) + abs(change.imag) <= largest * (1 + 1e-5)
        if monomials == 1:
            assert change.real == pytest.approx(largest)


def test_small_axes_by_degrees_keep_their_digits():
    """b of (4) for β/α = 1e-9, against 60 digits: never more, and no less than rounding asks."""
    for name in ("one", "two, polynomial"):
        system = CASES[name]
        constants = replace(stability(system), alpha=1e9, beta=1.0)
        (found,) = ellipse.explicit_ellipses(system, constants, 0.25)
        degrees = certificate.common_denominator(system)[1]
        used = int(np.count_nonzero(degrees))
        for axis, g in zip(found.axes, degrees.tolist(), strict=True):
            with mpmath.workdps(60):
                root = (1 + mpmath.mpf(1) / (4 * 10**9)) ** (mpmath.mpf(1) / used)
                exact = mpmath.cosh(mpmath.acosh(root) / g) - 1
                assert 0 < (exact - axis) / exact < 1e-11


def test_the_gap_of_a_broken_line_is_no_larger_than_it_is():
    """Three points of a parabola decide."""
    for scale in (1.0, 1e6):
        t = np.array([0.0, 1e-3, 0.5, 0.999, 1.0])
        exact = scale / 8
        assert exact * (1 - 1e-8) < lower._gap(t, scale * t**2) <= exact


def test_points_of_an_ellipse_are_as_near_as_said():
    rng = np.random.default_rng(5)
    for b in (0.01, 0.3, 1.0, 3.0):
        angles, shrink = rng.uniform(0, 2 * np.pi, 4000), rng.uniform(0, 1, 4000) ** 0.2
        points = shrink * (np.sqrt(1 + b * b) * np.cos(angles) + 1j * b * np.sin(angles))
        nearest = np.clip(points.real, -1, 1)
        far = np.abs(points.real - nearest) + np.abs(points.imag)
        ratio = far / ellipse.spread(b, nearest)
        assert 0.95 < ratio.max() <= 1 + 1e-12


def of_the_load_alone(function, ranges, *, strength=0.3):
    """The operator is affine; the function is in the load only."""
    system = system_of(ranges, [function], strength=strength)
    n = len(ranges)
    return replace(system, operators=system.operators[: 1 + n].copy(), touched=np.arange(n))


@pytest.mark.parametrize(
    ("function", "ranges", "poles"),
    [
        ("1/(a + 1)", [(0.0, 1.0)], (-3.0,)),
        ("1/(a + 0.01)", [(0.0, 1.0)], (-1.02,)),
        ("1/((a - 0.5)**2 + 0.01)", [(0.0, 1.0)], (0.2j,)),
        ("1/((a - 0.5)**2 + 1e-6)", [(0.0, 1.0)], (2e-3j,)),
        ("b/(a + 0.1)", [(0.0, 1.0), (1.0, 2.0)], (-1.2, None)),
        ("1/(3 + a) + 1/(2.5 - b)", [(-1.0, 1.0), (0.0, 2.0)], (-3.0, 1.5)),
    ],
)
def test_poles_of_the_load_alone_end_the_ellipses(function, ranges, poles):
    """Where only f has a pole, c has it too: at complex points of the ellipses c is finite and as small as said."""
    system, rng = of_the_load_alone(function, ranges), np.random.default_rng(6)
    constants = stability(system)
    found = ellipse.ellipses(system, constants)
    assert 7 <= len(found) <= 28
    middle, half = np.asarray(system.parameters.bounds).mean(axis=0), np.ptp(system.parameters.bounds, axis=0) / 2
    for each in found:
        b, angles = np.array(each.axes), rng.uniform(0, 2 * np.pi, (300, len(ranges)))
        angles[:4] = np.array([0, 1, 2, 3])[:, None] * np.pi / 2
        zeta = np.sqrt(1 + b * b) * np.cos(angles) + 1j * b * np.sin(angles)
        xi = system.coordinates(middle + zeta * half)
        operators, loads = system.operator(xi), system.load(xi)
        transposed = operators.transpose(0, 2, 1)
        c = np.linalg.solve(transposed @ operators, transposed @ loads[:, :, None])
        assert np.linalg.norm(c, axis=1).max() <= each.largest < np.inf
        assert series_bound(each.axes, n_modes=3, largest=each.largest, accuracy=1e-2).size.n_weights > 0
    for j, pole in enumerate(poles):
        if pole is not None:
            rho = max(abs(pole + np.sqrt(pole**2 - 1 + 0j) * sign) for sign in (1, -1))
            reached = max(each.axes[j] for each in found) / ((rho - 1 / rho) / 2)
            assert (0.3 if len(ranges) == 1 else 0.1) < reached < 1


def test_a_load_that_is_near_its_pole_has_cells_of_its_own():
    """The operator hardly changes, so that one cell would do for it."""
    near, far = (of_the_load_alone(f"1/(a + {s})", [(0.0, 1.0)], strength=1e-6) for s in ("0.01", "100"))
    few, many = (ellipse.ellipses(system, stability(system))[0] for system in (far, near))
    assert few.n_cells < 5 < 10 < many.n_cells
    assert few.axes[0] > 2


def test_a_solution_that_is_the_same_everywhere_has_a_bound():
    system = system_of([(0.0, 1.0)])
    nothing = np.array([], dtype=int)
    system = replace(system, linear=nothing, touched=nothing, operators=system.operators[:1], loads=system.loads[:1])
    (found,) = ellipse.ellipses(system, stability(system))
    assert found.largest >= np.linalg.norm(system.coefficients(np.array([[0.5]])))


def test_denominators_near_the_box_leave_small_ellipses_or_the_bound_by_degrees(monkeypatch):
    near = system_of([(0.0, 1.0)], ["1/(a + 0.01)"], strength=0.5)
    constants = stability(near)
    found = ellipse.ellipses(near, constants)
    pole = 2 * -0.01 - 1
    assert all(0 < e.axes[0] < np.sqrt(pole**2 - 1) for e in found)
    monkeypatch.setattr(ellipse, "_MOST_CELLS", 3)
    ellipse._covered.cache_clear()
    coarse = ellipse.ellipses(near, constants)
    assert [e.n_cells for e in coarse] == [1] * 7
    assert all(few.axes < more.axes for few, more in zip(coarse, found, strict=True))
    assert (
        ellipse.ellipses(near, replace(constants, beta=1e-20 * constants.alpha)) == []
    )  # below rounding: no bound, no crash
    ellipse._covered.cache_clear()


def test_the_bound_grows_as_it_should():
    digits = np.array([200.0, 400.0, 800.0])
    for p in (1, 2, 3):
        sizes = [series_bound([0.5] * p, n_modes=1, largest=1.0, accuracy=2.0**-t).size.n_weights for t in digits]
        assert p + 0.7 < np.polyfit(np.log(digits), np.log(sizes), 1)[0] < p + 1.05
    few, many = (series_bound([0.5], n_modes=d, largest=1.0, accuracy=1e-2).size.n_weights for d in (1, 1001))
    terms = series_bound([0.5], n_modes=1, largest=1.0, accuracy=1e-2).degrees[0] + 1
    assert many - few == 1000 * (terms + 2 * (-(-(terms - 1) // 2) + 1) + 2)


# ---- from below ------------------------------------------------------------------------------------------------------
def test_pieces_of_a_parabola():
    t = np.linspace(0, 1, 4001)
    assert lower._gap(t, t**2) == pytest.approx(1 / 8, rel=1e-6)
    assert lower._gap(t, 3 * t + 1) == pytest.approx(0, abs=1e-12)
    space = ps.pde.ParameterSpace(ps.parameters(a=(0.0, 1.0)))
    square = rational(sympy.Symbol("a") ** 2, [sympy.Symbol("a")], "here")
    loads = np.array([[0.0], [0.0], [1.0]])
    nothing = np.array([], dtype=int)
    system = System(np.array([0]), (square,), np.ones((1, 1, 1)), nothing, loads, np.eye(1), space, 1, "")
    for allowed in (1e-2, 1e-4):
        bound = lower.lower_bound(system, allowed)
        exact = 1 / np.sqrt(8 * allowed)  # at finitely many points a little fewer will do
        assert 0.85 * exact <= bound.n_pieces <= np.ceil(exact)
        assert (bound.n_directions, bound.n_varying) == (1, 1)
        network = chebyshev_construction(system, allowed).network
        assert bound.n_weights <= network.n_weights


def test_the_lower_bound_is_below_what_exists():
    for name in ("one", "two"):
        system = CASES[name]
        for allowed in (0.1, 3e-2):
            bound = lower.lower_bound(system, allowed)
            assert bound.n_weights <= chebyshev_construction(system, allowed).network.n_weights


def of_one_square(low, high):
    """c(a) = (a − m)² on a range with the middle m."""
    symbol, space = sympy.Symbol("a"), ps.pde.ParameterSpace(ps.parameters(a=(low, high)))
    square = rational((symbol - sympy.Rational(low + high) / 2) ** 2, [symbol], "here", space)
    loads, nothing = np.array([[0.0], [0.0], [1.0]]), np.array([], dtype=int)
    return System(np.array([0]), (square,), np.ones((1, 1, 1)), nothing, loads, np.eye(1), space, 1, "")


def test_what_a_constant_or_a_bend_at_zero_can_do_is_not_counted():
    for allowed, varying in ((0.51, 0), (0.49, 1)):  # c is between 0 and 1: 1/2 is within 0.51
        assert lower.lower_bound(of_one_square(-1.0, 1.0), allowed).n_varying == varying
    across, beside = (lower.lower_bound(of_one_square(*ends), 1e-3) for ends in ((-1.0, 1.0), (1.0, 3.0)))
    assert across.n_pieces == beside.n_pieces
    assert across.n_weights < beside.n_weights
    for pieces, directions, varying in ((2, 1, 1), (5, 4, 3), (1000, 3, 5)):
        each = [max(directions, b) + b + 2 * max(0, int(np.ceil(np.log2(pieces / (b + 1))))) for b in range(pieces)]
        assert lower.weights_needed(pieces, directions, varying) == min(each) + max(varying, directions)


def test_the_width_of_a_cross_is_what_it_is():
    """± e_i in d dimensions, moved: no affine space of n dimensions is nearer to all of them than √(1 − n/d), and one is as near."""
    cross = np.vstack([np.eye(5), -np.eye(5)]) + 7.0
    for n in range(5):
        least = np.sqrt(1 - n / 5)
        assert lower._width(cross, 1.001 * least) == n
        assert lower._width(cross, 0.999 * least) == n + 1


def test_networks_that_lie_on_the_lower_bound_and_none_below():
    """σ(x − 1/2) has 3 weights, σ(x) 2. All networks of few weights have the pieces that their weights allow, and no more."""
    assert lower.weights_needed(2, 1, 1) == 3
    assert lower.weights_needed(2, 1, 1, zero_inside=True) == 2
    rng, x, most = np.random.default_rng(0), np.linspace(0.1, 4.1, 4001), {}
    for _ in range(1200):
        widths = rng.integers(1, 3, rng.integers(1, 4))
        y, weights = x[None], 0
        for width in (*widths, 1):
            w = rng.choice([0.0, 1.0, -1.0, 2.0, -2.0], (width, len(y)), p=[0.4, 0.15, 0.15, 0.15, 0.15])
            bias = rng.choice([0.0, -1.0, 1.0, -0.5, 3.0], width) if rng.random() < 0.7 else np.zeros(width)
            weights += np.count_nonzero(w) + np.count_nonzero(bias)
            last = w @ y + bias[:, None]
            y = np.maximum(last, 0)
        slopes = np.diff(last[0]) / np.diff(x)
        changes = np.flatnonzero(np.abs(np.diff(slopes)) > 1e-6)
        pieces = 1 + int(np.sum(np.diff(changes, prepend=-9) > 1))  # a bend between two points changes two slopes
        if pieces > 1:
            assert weights >= lower.weights_needed(pieces, 1, 1)
            most[pieces] = min(most.get(pieces, 99), weights)
    assert most[2] == 3
    assert len(most) >= 3


# ---- files and digits ------------------------------------------------------------------------------------------------
def test_counts_and_answers_by_a_separate_program(tmp_path):
    x, y = ps.coordinates("x y")
    a, k = ps.parameters(a=(1.0, 2.0), k=(0.0, 1.0))
    u = ps.unknown("u", x, y)
    problem = ps.Problem(ps.Disc(), ps.Eq(-0.03 * a * ps.laplacian(u) + (1 + k) * u, 1 + k * x), ps.Dirichlet(0))
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=110))
    basis = ps.pod(ps.solve_many(model, model.sample(12)), n_modes=2)
    for name in ("smallest", "shared"):
        surrogate = theorem.construct(model, basis, accuracy=0.05, construction=name)
        network = surrogate.map.network
        path = ps.save(surrogate, tmp_path / f"{name}.parasol")
        script = [sys.executable, str(Path(plain_network.__file__)), str(path)]
        printed = subprocess.run(script, check=True, capture_output=True, text=True, env={}).stdout
        assert printed.split() == [str(network.depth), str(network.n_weights)]
        layers = plain_network.layers_of(path)
        for mu in model.sample(3):
            np.testing.assert_allclose(plain_network.run(layers, mu), surrogate.coefficients(mu), atol=1e-12)


def test_levels_beyond_the_mantissa_do_no_harm():
    from scipy import sparse

    wiring = Wiring(2, np.array([0]), np.array([1]), sparse.csr_array(np.ones((1, 1))))
    pairs = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    for levels in (26, 36, 60):
        found = product_network(wiring, levels, 1.0, 1.0, resolved=False)(pairs)[:, 0]
        assert np.abs(found - pairs[:, 0] * pairs[:, 1]).max() < 4e-16


# ---- one line each ---------------------------------------------------------------------------------------------------
def test_the_change_of_a_quotient_is_reached():
    """1/(1.2 + x) on [−0.9, −0.1], 0.2 beyond: the worst point is −0.9 − 0.2."""
    quotient = ellipse._Quotient(np.array([1.0]), np.array([1.2, 1.0])).at(np.array([[-0.5]]))
    change = quotient.changes(np.array([[0.4]]), np.array([[0.2]]))[0]
    assert change == pytest.approx(1 / (0.3 - 0.2) - 1 / 0.3)
    assert quotient.changes(np.array([[0.4]]), np.array([[0.3]]))[0] == np.inf


def test_cells_bound_what_they_cover():
    """‖B_i B(x)⁺‖ and how far points of the ellipse are, at points of each cell, not only at its centre."""
    system, rng = CASES["two"], np.random.default_rng(8)
    cover = ellipse._cells(system, 0.2, stability(system).gamma)
    assert cover is not None
    wide = np.array([1.0, 0.5])
    changes = cover.changes(wide)
    for cell in range(0, len(cover.half), 3):
        x = np.array(cover.centres[cell] + rng.choice([-1, 0, 1], (9, 2)) * cover.half[cell])
        for point, b in zip(x, system.operator(system.inside(x)), strict=True):
            exact = [np.linalg.norm(part @ np.linalg.pinv(b), 2) for part in system.operators[1:]]
            assert np.all(exact <= cover.norms[cell] * (1 + 1e-12))
            least = np.ptp(system.parameters.bounds, axis=0) / 2 * ellipse.spread(wide, point)
            assert np.all(changes[cell] >= least * (1 - 1e-12))


def test_the_bound_in_the_ellipses_is_the_one_of_the_theorem():
    system = CASES["one"]
    constants = stability(system)
    half = np.ptp(system.parameters.bounds) / 2
    for tau, found in zip(ellipse._CONTRACTIONS, ellipse.ellipses(system, constants), strict=True):
        change = half * ellipse.spread(found.axes[0], 0.0) * np.linalg.norm(system.loads[1])
        exact = (1 + tau) * (constants.gamma + change) / ((1 - tau) ** 2 * constants.beta)
        assert found.largest == pytest.approx(exact, rel=1e-9)
    (by_degrees,) = ellipse.explicit_ellipses(system, constants, 0.5)
    more = 1 + constants.beta / (2 * constants.alpha)
    assert by_degrees.largest == pytest.approx(1.5 * more * constants.gamma / (0.25 * constants.beta))


@pytest.mark.parametrize("axes", [(0.75,), (0.3, 2.0), (1.0, 0.5, 0.1)])
def test_the_bound_of_the_series_is_the_one_of_the_theorem(axes):
    """Section 8 of docs/theorem.md, written once more."""
    p, eps, d, log = len(axes), 1e-4, 7, np.log2
    rho = [b + np.sqrt(1 + b * b) for b in axes]
    w = 3.0 * np.prod([(r + 1) / (r - 1) for r in rho])
    n = [max(2, int(np.ceil(np.log(4 * p * w / ((1 + 1 / r) * eps)) / np.log(r))) - 1) for r in rho]
    m = int(np.ceil(log(p * max(n) ** 2.1 * max(2.93 * w / eps, 11.8)) / 2))
    terms = int(np.prod([k + 1 for k in n]))
    factors = terms - int(np.prod(n)) if p > 1 else int(np.ceil(n[0] / 2)) + 1
    rounds, last = [int(np.ceil(log(k))) for k in n], int(np.ceil(log(p)))
    depth = (max(rounds) + last) * (m + 3) + 1
    waiting = 3 * (m + 3) * (last * factors + sum(n) + sum(rounds) + p) + p * (depth + 1)
    weights = (7 * m + 6) * (terms + factors) + 5 * factors + waiting + d * (terms + 2 * factors + p + 1)
    bound = series_bound(axes, n_modes=d, largest=3.0, accuracy=eps)
    assert (bound.degrees, bound.levels) == (tuple(n), m)
    assert (bound.size.depth, bound.size.n_weights) == (depth, weights)


def test_the_bound_does_not_depend_on_coordinates_of_the_operator():
    """c = T y for a hundred times as large T and the same c: B and f in other units."""
    system = CASES["one"]
    bounds = []
    for unit in (1.0, 100.0):
        other = replace(system, operators=unit * system.operators, back=unit * np.eye(3))
        bounds.append(bound_of(Plan(other, stability(other), 1e-2, Design.named("shared")), "chebyshev"))
    assert bounds[0] == bounds[1]


def test_what_a_cell_leaves_out_is_in_its_bound():
    polynomials = certificate.polynomial_system(CASES["one"])
    series = certificate.interpolant(CASES["one"], [9])
    residual = polynomials.residual(series)
    cell = certificate._Cell(polynomials.gram, residual, 0.0, 0.0, (0.0, 0.0))
    trimmed = cell.trimmed(1e3)
    left_out = np.linalg.norm(residual[len(trimmed.residual) :], axis=-1).sum()
    assert trimmed.rest == pytest.approx(left_out)
    assert left_out > 0
    cell = cell.halves(0)[0].halves(0)[1].halves(0)[0].halves(0)[1]
    inverse = np.linalg.norm(np.linalg.inv(cell.gram[0]), 2)
    (sharp, _, _), (rough, _, _) = (replace(cell, rough=r).examined(1e9) for r in (0.0, 0.2 / inverse))
    assert np.isfinite(sharp)
    assert rough > 1.2 * sharp
    with pytest.raises(NoCertificate, match="rounding hides the inverse"):
        replace(cell, rough=0.3 / inverse).examined(1e9)
