"""Nonlinear and time-dependent constraints (boundary conditions, algebraic equations) keep the order of every integrator."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sympy import Eq, cos, diff

import parasol as ps
from lattice import lattice, system_of
from parasol.checks import ParasolError
from parasol.pde.transient import integrate

CASES = [(1, "sbdf2", 2), (1, "esdirk4", 4), (2, "averaged", 2), (2, "esdirk4", 4)]


def slope_in_step(make, integrator, steps):
    errors = []
    for step in steps:
        values, exact = make(step, integrator)
        errors.append(np.max(np.abs(values - exact)))
    return np.log2(errors[-2] / errors[-1]), errors


def bent_ends(order, bend, bend_slope):
    """u = (1 + x/2 + x²) (1 + sin(3t)/2), exact on the lattice, with ∂u/∂n + bend(u, t) = g(t) at both ends."""
    x, system = lattice(11, order=order, ends="slope")
    inner = np.ones(11)
    inner[[0, -1]] = 0.0
    shape, steep = 1 + x / 2 + x**2, np.array([-0.5, 2.5])

    def grown(t, k=0):
        return [1 + np.sin(3 * t) / 2, 1.5 * np.cos(3 * t), -4.5 * np.sin(3 * t)][k]

    def load(t):
        out = shape * grown(t, order) - 2 * grown(t)
        ends = [0, -1]
        out[ends] = steep * grown(t) + bend(shape[ends] * grown(t), t)
        return out

    system = replace(
        system,
        load=load,
        nonlinear=lambda u, t: (1 - inner) * bend(u, t),
        jacobian=lambda u, t: _on_diagonal(system, (1 - inner) * bend_slope(u, t)),
    )
    times = np.linspace(0, 2, 5)

    def solve(step, integrator):
        velocity = {"velocity": shape * grown(0, 1)} if order == 2 else {}
        found = integrate(system, shape * grown(0), times, step=step, integrator=integrator, **velocity)
        return found.values, shape * grown(times)[:, None]

    return solve


def _on_diagonal(system, values):
    rows = np.repeat(np.arange(system.n), np.diff(system.pattern.indptr))
    return np.where(rows == system.pattern.indices, values[rows], 0.0)


@pytest.mark.parametrize(("order", "integrator", "least"), CASES)
@pytest.mark.parametrize(
    ("bend", "bend_slope"),
    [
        (lambda u, t: u**4, lambda u, t: 4 * u**3),  # radiation
        (lambda u, t: (1 + t) * u, lambda u, t: 1 + t + 0 * u),  # a linear condition whose coefficient moves
        (lambda u, t: np.exp(u) + np.cos(5 * t) * u, lambda u, t: np.exp(u) + np.cos(5 * t)),
    ],
)
def test_order_with_nonlinear_boundary_conditions(order, integrator, least, bend, bend_slope):
    # moving boundary data leave a stiff problem the stage order plus one of esdirk4
    least = 3 if least == 4 else least
    found, errors = slope_in_step(bent_ends(order, bend, bend_slope), integrator, 0.05 / np.array([1, 2, 4]))
    assert found > least - 0.25, errors
    assert errors[-1] < (2e-3 if least == 2 else 2e-6)


@pytest.mark.parametrize(("integrator", "order"), [("sbdf2", 2), ("esdirk4", 4)])
def test_order_with_a_nonlinear_algebraic_equation(integrator, order):
    # u' = −w with w + w³ = u (1 + t): along w = exp(−t), u = (w + w³)/(1 + t) and a source carries the rest
    def u(t):
        w = np.exp(-t)
        return (w + w**3) / (1 + t)

    def speed(t):
        w = np.exp(-t)
        return (-w - 3 * w**3) / (1 + t) - u(t) / (1 + t)

    system = replace(
        system_of(
            [[0.0, 1.0], [0.0, 1.0]],
            [[1.0, 0.0], [0.0, 0.0]],
            None,
            lambda t: np.array([speed(t) + np.exp(-t), 0.0]),
            lambda v, t: np.array([0.0, v[1] ** 3 - (1 + t) * v[0]]),
            lambda v, t: sparse.csr_array([[0.0, 0.0], [-(1 + t), 3 * v[1] ** 2]]),
            full=True,
        ),
        names=("u", "w"),
    )
    times = np.linspace(0, 2, 5)
    exact = np.stack([u(times), np.exp(-times)], axis=1)

    def solve(step, integrator):
        return integrate(system, exact[0], times, step=step, integrator=integrator).values, exact

    found, errors = slope_in_step(solve, integrator, 0.1 / np.array([1, 2, 4]))
    assert abs(found - order) < 0.3, errors


def test_order_with_a_coefficient_in_the_equation_that_moves():
    # u' + (1 + t) u = f with u = 2 + cos 3t: the moving coefficient is part of N(u, t)
    def solve(step, integrator):
        system = system_of(
            [[0.0]],
            [[1.0]],
            None,
            lambda t: np.array([-3 * np.sin(3 * t) + (1 + t) * (2 + np.cos(3 * t))]),
            lambda u, t: (1 + t) * u,
            lambda u, t: [[1 + t]],
        )
        times = np.linspace(0, 2, 5)
        return integrate(system, [3.0], times, step=step, integrator=integrator).values, 2 + np.cos(3 * times)[:, None]

    for integrator, order in (("sbdf2", 2), ("esdirk4", 4)):
        found, errors = slope_in_step(solve, integrator, 0.05 / np.array([1, 2, 4]))
        assert abs(found - order) < 0.3, errors


def test_radiation_on_scattered_nodes():
    x = ps.coordinates("x y")
    t = ps.time()
    u = ps.unknown("u", *x, t)
    exact = (1 + x[0] / 2 + x[1] ** 2 / 4) * (1 + cos(3 * t) / 4)
    n = ps.normal(*x)
    flux = sum(n[i] * diff(exact, x[i]) for i in range(2))
    domain = ps.Box((0, 0), (1, 1))
    problem = ps.Problem(
        domain,
        Eq(u.diff(t), ps.laplacian(u) + diff(exact, t) - sum(diff(exact, a, 2) for a in x)),
        Eq(sum(n[i] * u.diff(x[i]) for i in range(2)) + u**4, flux + exact**4),
        initial=exact.subs(t, 0),
        times=[0.0, 0.5, 1.0],
        exact=exact,
    )
    model = ps.discretize(problem, ps.scatter(domain, n_nodes=150), degree=3)
    errors = [model.solve(step=h).error for h in (0.02, 0.01)]
    assert 1.8 < np.log2(errors[0] / errors[1]) < 2.3, errors
    assert errors[1] < 1e-4


def test_a_constraint_that_cannot_be_solved_is_refused():
    # w² = 1 − t has no solution beyond t = 1
    system = replace(
        system_of(
            [[0.0, 1.0], [0.0, 0.0]],
            [[1.0, 0.0], [0.0, 0.0]],
            None,
            lambda t: np.array([0.0, 1.0 - t]),
            lambda v, t: np.array([0.0, v[1] ** 2]),
            lambda v, t: sparse.csr_array([[0.0, 0.0], [0.0, 2 * v[1]]]),
        ),
        names=("u", "w"),
    )
    for options in ({"step": 0.05}, {"step": 0.05, "integrator": "esdirk4"}, {}):
        with pytest.raises(ParasolError, match=r"Newton did not converge|step size fell|singular"):
            integrate(system, [0.0, 1.0], [0.0, 2.0], **options)


def test_a_start_from_which_constraints_have_no_solution_is_refused():
    # w² = −1
    system = replace(
        system_of(
            [[0.0, 1.0], [0.0, 0.0]],
            [[1.0, 0.0], [0.0, 0.0]],
            None,
            lambda t: np.array([0.0, -1.0]),
            lambda v, t: np.array([0.0, v[1] ** 2]),
            lambda v, t: sparse.csr_array([[0.0, 0.0], [0.0, 2 * v[1]]]),
        ),
        names=("u", "w"),
    )
    with pytest.raises(ParasolError, match="no solution near the state at t=0"):
        integrate(system, [0.0, 1.5], [0.0, 2.0])
