"""Points where solutions are singular: found from the statement, and nodes graded towards them."""

import warnings

import numpy as np
import pytest
import sympy as sp

import parasol as ps
from parasol.pde.placing import nodes_for
from parasol.pde.rough import singular_points

X, Y = ps.coordinates("x y")
U = ps.unknown("u", X, Y)
LAPLACE = ps.Eq(-ps.laplacian(U), 0)
RADIUS = sp.sqrt(X**2 + Y**2)
ANGLE = sp.atan2(X - Y, -X - Y) + 3 * sp.pi / 4  # from the y-axis, over the box without its first quadrant
CORNER = RADIUS ** sp.Rational(2, 3) * sp.sin(2 * ANGLE / 3)
CHANGE = sp.sqrt(RADIUS) * sp.cos(sp.atan2(Y, X) / 2)


def corner(condition):
    domain = ps.Box((-1, -1), (1, 1)) - ps.Box((0, 0), (2, 2)).named("notch")
    return ps.Problem(domain, LAPLACE, {"notch": condition, "*": ps.Dirichlet(CORNER)})


def change():
    """A value beside a slope on a straight side, as in the problem of Motz."""
    domain = ps.Box((-1, 0), (1, 1)).named(free=(Y <= 0) & (X >= 0))
    return ps.Problem(domain, LAPLACE, {"free": ps.Neumann(0), "*": ps.Dirichlet(CHANGE)})


def error(problem, exact, n_nodes, seed):
    nodes = nodes_for(problem, ps.Settings(n_nodes=n_nodes), rng=seed)
    true = sp.lambdify((X, Y), exact, "numpy")(*nodes.points.T)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)  # that the solution is rough
        values = ps.discretize(problem, nodes).solve().values.ravel()
    return np.sqrt(np.mean((values - true) ** 2) / np.mean(true**2))


def test_singular_points_are_found_from_the_statement():
    for condition in (ps.Dirichlet(0), ps.Neumann(0)):
        assert np.abs(singular_points(corner(condition), 0.01)).max() < 1e-8
    assert np.abs(singular_points(change(), 0.01)).max() < 1e-8
    square = ps.Box((0, 0), (1, 1))
    mixed = {"left": ps.Dirichlet(0), "*": ps.Neumann(0)}
    assert len(singular_points(ps.Problem(square, LAPLACE, mixed), 0.01)) == 0  # in a right angle r^1 and r^3
    v = ps.unknown("v", X, Y)
    twice = {name: [condition, condition] for name, condition in mixed.items()}
    system = ps.Problem(square, [LAPLACE, ps.Eq(-ps.laplacian(v), U)], twice)
    assert len(singular_points(system, 0.01)) == 2  # a clamped side of a body that meets a free one
    first_order = ps.Problem(square, ps.Eq(U.diff(X) + U, 1), ps.Dirichlet(0))
    assert len(singular_points(first_order, 0.01)) == 0
    parts = square.regions(a=ps.Box((0, 0), (0.5, 0.5)), b=ps.Box((0.5, 0.5), (1, 1)), c=ps.Disc((0.8, 0.2), 0.1))
    found = singular_points(ps.Problem(parts, LAPLACE, ps.Dirichlet(0)), 0.01)
    assert found.tolist() == [[0.5, 0.5]]  # where interfaces cross, not where they end at the boundary


def test_nodes_without_singular_points_are_those_of_feature_spacing():
    problem = ps.Problem(ps.Disc() - ps.Disc(radius=0.3), LAPLACE, ps.Dirichlet(0))
    plain = ps.scatter(problem.domain, n_nodes=500, spacing=ps.space.feature_spacing(problem.domain), rng=3)
    assert np.array_equal(nodes_for(problem, ps.Settings(n_nodes=500), rng=3).points, plain.points)


def test_graded_nodes_are_even_and_as_many_as_asked_for():
    problem = corner(ps.Dirichlet(0))
    nodes = nodes_for(problem, ps.Settings(n_nodes=1500), rng=1)
    away = np.linalg.norm(nodes.points, axis=1)
    assert nodes.n_nodes == 1500
    assert nodes.spacing.min() < 0.05 * nodes.spacing.max()
    assert away[np.argmin(nodes.spacing)] < 1e-9
    nearest = np.linalg.norm(nodes.points[:, None] - nodes.points, axis=2) + 9 * np.eye(1500)
    ratio = nearest.min(axis=1) / nodes.spacing
    assert ratio.min() > 0.4
    assert ratio.max() < 1.6


@pytest.mark.parametrize(
    ("problem", "exact", "limit"), [pytest.param(corner, CORNER, 3e-4, marks=pytest.mark.slow), (change, CHANGE, 1e-3)]
)
def test_errors_at_singular_points_fall_with_the_nodes_for_every_seed(problem, exact, limit):
    """The spacing of `feature_spacing` alone gives about 1e-3 and 4e-3 at 2000 nodes and at 4000."""
    problem = problem(ps.Dirichlet(CORNER)) if problem is corner else problem()
    coarse, fine = (np.array([error(problem, exact, n, seed) for seed in range(3)]) for n in (600, 2400))
    assert fine.max() < limit
    assert np.log2(np.median(coarse) / np.median(fine)) > 1.4  # half the spacing
    assert fine.max() < 2.5 * np.median(fine)
