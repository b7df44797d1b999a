"""The cases of the hostile examination, each with the number it was found with and the number now.

    python benchmarks/examination.py [CASE ...]

Every case solves what the examination solved and prints the error against an exact solution, or what the program says.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import sympy as sp

import parasol as ps

CASES = {}


def case(found: str):
    """Register a case with the number it was found with."""

    def register(function):
        CASES[function.__name__] = (function, found)
        return function

    return register


def said(make) -> str:
    """What the program answers or refuses, in a few words."""
    try:
        return str(make())
    except ps.ParasolError as error:
        return f"refused: {str(error)[:90]}"


@case("u(1/2) = 0.6875, exact 0.2273")
def a1_jump_in_a_material():
    """A jump in the coefficient of the highest derivative."""
    (x,), (m,) = ps.coordinates("x"), ps.parameters(m=(0.1, 1.0))
    u = ps.unknown("u", x)
    a = sp.Piecewise((m, x < 0.5), (1, True))
    return said(lambda: ps.Problem(ps.Box(0, 1), ps.Eq(-(a * u.diff(x)).diff(x), 1), ps.Dirichlet(0)))


@case("0.14")
def a2_switch_in_the_coordinates():
    """A term whose slope in u is constant, with a remainder."""
    (x,) = ps.coordinates("x")
    u, exact = ps.unknown("u", x), 1 + x + sp.sin(2 * x)

    def operator(v):
        return -v.diff(x, 2) + sp.Piecewise((5 * (v - 1), x > 0.5), (0, True))

    return _error(ps.Box(0, 1), operator, u, exact, ps.Dirichlet(exact), 200)


@case("0.37")
def a5_robin_with_time():
    """A coefficient in a condition that depends on time."""
    (x,), t = ps.coordinates("x"), ps.time()
    u = ps.unknown("u", x, t)
    exact = sp.exp(-t) * (1 + x**2)
    ends = {"left": ps.Dirichlet(exact), "right": ps.Robin(1 + t, 1, (1 + t) * exact + exact.diff(x))}
    problem = ps.Problem(
        ps.Box(0, 1),
        ps.Eq(u.diff(t) - u.diff(x, 2), exact.diff(t) - exact.diff(x, 2)),
        ends,
        initial=exact.subs(t, 0),
        times=[0, 1],
        exact=exact,
    )
    return f"{ps.discretize(problem, ps.scatter(problem.domain, n_nodes=50)).solve().error:.1e}"


@case("2e-4, 8e-3, 4e-3 at 1000, 2000, 8000 nodes")
def b1_corners_named_with_a_tolerance():
    """One side's condition, one side's normal; a manufactured solution in place of the unknown exact one."""
    x, y = ps.coordinates("x y")
    u, exact = ps.unknown("u", x, y), 2 + sp.sin(x + 2 * y) + x
    square = ps.Box((-1, -1), (1, 1)).named(left=x < -0.999, right=x > 0.999)
    slopes = {"right": exact.diff(x), "bottom": -exact.diff(y), "top": exact.diff(y)}
    boundary = {"left": ps.Dirichlet(exact)} | {name: ps.Neumann(slope) for name, slope in slopes.items()}
    return ", ".join(
        _error(square, lambda v: -ps.laplacian(v, x, y), u, exact, boundary, n) for n in (1000, 2000, 8000)
    )


@case("61 % in 1-D, 38 to 130 % in 2-D")
def b2_slits():
    """Two solutions on the two sides of a slit of 0.01."""
    out = []
    for dimension, n in ((1, 100), (2, 800)):
        xs = ps.coordinates("x y"[: 2 * dimension - 1])
        u = ps.unknown("u", *xs)
        exact = sp.Piecewise((1 + xs[0] ** 2, xs[0] < 0.5), (5 - sp.exp(xs[0]), True)) + sum(xs[1:])
        whole, slit = ((0.0,) * dimension, (1.0,) * dimension), ((0.495,) + (-1.0,) * (dimension - 1),)
        domain = ps.Box(*whole) - ps.Box(slit[0], (0.505,) + (2.0,) * (dimension - 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out.append(_error(domain, lambda v, xs=xs: -ps.laplacian(v, *xs), u, exact, ps.Dirichlet(exact), n))
    return ", ".join(out)


@case("11 %, 6.5 %, 4 % at 500, 2000, 8000 nodes")
def b4_flux_over_all_faces():
    """The flux of (x² + y² + z²)/6 over the unit box is 1."""
    x, y, z = ps.coordinates("x y z")
    u, exact = ps.unknown("u", x, y, z), (x**2 + y**2 + z**2) / 6
    box = ps.Box((0, 0, 0), (1, 1, 1))
    problem = ps.Problem(box, ps.Eq(-ps.laplacian(u), -1), ps.Dirichlet(exact), quantities={"flux": ps.Flux()})
    fluxes = [ps.discretize(problem, ps.scatter(box, n_nodes=n)).solve().quantities["flux"] for n in (500, 2000)]
    return ", ".join(f"{100 * abs(flux - 1):.2f} %" for flux in fluxes)


@case("error 1.13 with residual 4e-11")
def c1_newton_from_far_away():
    """−u'' + u⁵ from a guess of 1000."""
    (x,) = ps.coordinates("x")
    u, exact = ps.unknown("u", x), 1 + sp.sin(2 * x)
    problem = ps.Problem(
        ps.Box(0, 1), ps.Eq(-u.diff(x, 2) + u**5, -exact.diff(x, 2) + exact**5), ps.Dirichlet(exact), exact=exact
    )
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=100))
    return f"{model.solve(guess=np.full(100, 1e3)).error:.1e}"


@case("−1.37, the solution is 1.515")
def c4_between_stored_times():
    """The README's soliton at t = 7.5, stored at 0, 5, 10."""
    x, y = ps.coordinates("x y")
    t = ps.time()
    beta, rho = ps.parameters(beta=(0.01, 0.1), rho=(-2.0, -0.2))
    v = ps.unknown("v", x, y, t)
    problem = ps.Problem(
        ps.Box((-7, -7), (7, 7)),
        ps.Eq(v.diff(t, 2) + beta * v.diff(t), ps.laplacian(v) + rho * sp.sin(v)),
        ps.Neumann(0),
        initial=(2, 0),
        times=[0, 5, 10],
    )
    found = ps.discretize(problem, ps.lattice(problem.domain, 29)).solve([0.05, -1.0]).at(7.5)
    return f"{found.values.mean():.4f}"


def _error(domain, operator, u, exact, boundary, n_nodes: int) -> str:
    problem = ps.Problem(domain, ps.Eq(operator(u), operator(exact)), boundary, exact=exact)
    return f"{ps.discretize(problem, ps.scatter(domain, n_nodes=n_nodes)).solve().error:.1e}"


def main() -> None:
    """Print the cases asked for, or all."""
    for name in sys.argv[1:] or CASES:
        function, found = CASES[name]
        print(f"{name:34} was {found}\n{'':34} is  {function()}", flush=True)


if __name__ == "__main__":
    main()
