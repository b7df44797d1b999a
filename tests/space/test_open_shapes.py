"""Inequalities without end, cut by a domain that closes them: cylinders, cones, strips."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import parasol as ps
from parasol.space.quadrature import surface_points

x, y, z = ps.coordinates("x y z")
BOX = ((-2, -2, 0), (2, 2, 1))


def pipe(bounds=BOX, radius: float = 1.0) -> ps.space.Domain:
    return ps.Implicit(x**2 + y**2 - radius**2, bounds=bounds).named("wall")


def cylinder(bounds=BOX) -> ps.space.Domain:
    return pipe(bounds) & ps.Box(*BOX)


def from_cylinder(points: np.ndarray) -> np.ndarray:
    """Signed distance to the cylinder of radius 1 between z = 0 and z = 1."""
    beyond = np.stack([np.hypot(points[:, 0], points[:, 1]) - 1, np.abs(points[:, 2] - 0.5) - 0.5])
    return np.where((beyond < 0).all(axis=0), beyond.max(axis=0), np.linalg.norm(np.maximum(beyond, 0), axis=0))


@pytest.mark.parametrize("bounds", [BOX, ((-1, -1, 0), (1, 1, 1)), ((-1.5, -2, -3), (2, 1.2, 5))])
def test_the_distance_to_a_cylinder_is_exact(bounds):
    points = np.random.default_rng(1).uniform((-1.4, -1.4, -0.4), (1.4, 1.4, 1.4), (3000, 3))
    domain = cylinder(bounds)
    assert np.abs(domain.distance(points) - from_cylinder(points)).max() < 1e-12
    assert np.abs(from_cylinder(domain.project(points))).max() < 1e-12
    assert domain.volume() == pytest.approx(np.pi, rel=3e-3)


@pytest.mark.parametrize(("scale", "shift"), [(1e6, 0.0), (1e-6, 0.0), (1.0, 1e3)])
def test_cylinders_of_any_size_and_place(scale, shift):
    bounds = scale * np.array(BOX, dtype=float) + shift
    round_wall = ps.Implicit(((x - shift) / scale) ** 2 + ((y - shift) / scale) ** 2 - 1, bounds=bounds)
    domain = round_wall & ps.Box(*bounds)
    points = np.random.default_rng(2).uniform((-1.4, -1.4, -0.4), (1.4, 1.4, 1.4), (500, 3))
    assert np.abs(domain.distance(scale * points + shift) / scale - from_cylinder(points)).max() < 1e-10


@pytest.fixture(scope="module")
def nodes() -> ps.space.Nodes:
    return ps.scatter(cylinder(), n_nodes=400)


@pytest.mark.slow
def test_nodes_of_a_cylinder_know_their_side(nodes):
    names, (a, b, c) = nodes.domain.part_names, nodes.boundary.T
    sides = {"wall": np.abs(np.hypot(a, b) - 1) < 1e-9, "back": np.abs(c) < 1e-9, "front": np.abs(c - 1) < 1e-9}
    outward = {"wall": np.stack([a, b, 0 * c], axis=1), "back": np.array([0, 0, -1.0]), "front": np.array([0, 0, 1.0])}
    assert (sides["wall"] & sides["front"]).sum() > 10  # the rim has nodes of its own
    for name in names:
        on = sides.get(name, np.zeros(len(a), dtype=bool))
        assert (nodes.on_part[:, names.index(name)] == on).all()
        if on.any():
            normals = np.broadcast_to(outward[name], (len(a), 3))
            assert np.abs(nodes.part_normals[on, names.index(name)] - normals[on]).max() < 1e-9


@pytest.mark.parametrize(("part", "area"), [("wall", 2 * np.pi), ("back", np.pi), ("front", np.pi), (None, 4 * np.pi)])
@pytest.mark.slow
def test_areas_of_a_cylinder(nodes, part, area):
    assert surface_points(nodes, part).weights.sum() == pytest.approx(area, rel=1e-2)


@pytest.mark.slow
def test_poisson_on_a_cylinder(nodes):
    """Slopes on the wall, values on the lids: as good as on a box, and the errors fall."""
    u, exact = ps.unknown("u", x, y, z), 2 + sp.sin(x + y / 2) * sp.exp(z / 2) + x * z + x**2
    problem = ps.Problem(
        nodes.domain,
        ps.Eq(-ps.laplacian(u), -ps.laplacian(exact, x, y, z)),
        {"wall": ps.Neumann(x * exact.diff(x) + y * exact.diff(y)), "*": ps.Dirichlet(exact)},
        quantities={"flux": ps.Flux()},
        exact=exact,
    )
    coarse = ps.discretize(replace(problem, quantities={}), ps.scatter(nodes.domain, n_nodes=150)).solve()
    fine = ps.discretize(problem, nodes).solve()
    assert fine.error < 1e-5
    assert fine.error < coarse.error / 3
    assert fine.quantities["flux"] == pytest.approx(2 * np.pi, rel=1e-2)  # the integral of the Laplacian


# ---- other shapes ------------------------------------------------------------------------------------------------------
CUBE = ((-2, -2, -2), (2, 2, 2))
SHAPES = {
    "cone": (
        lambda: (
            ps.Implicit(x**2 + y**2 - (1 - z) ** 2, bounds=((-2, -2, -0.5), (2, 2, 0.9))).named("wall") & ps.Box(*BOX)
        ),
        None,
    ),
    "blunt cone": (
        lambda: (
            ps.Implicit(x**2 + y**2 - (1 - z) ** 2, bounds=((-2, -2, -0.5), (2, 2, 0.9))).named("wall")
            & ps.Box((-2, -2, 0), (2, 2, 0.5))
        ),
        np.pi / 3 * 7 / 8,
    ),
    "two pipes": (lambda: pipe(CUBE) & ps.Implicit(x**2 + z**2 - 1, bounds=CUBE), 16 / 3),
    "half a pipe": (
        lambda: pipe(CUBE) & ps.Implicit(x, bounds=CUBE).named("cut") & ps.Box(*BOX),
        np.pi / 2,
    ),
    "drilled": (lambda: ps.Box((-1, -1, 0), (1, 1, 1)) - pipe(CUBE, 0.5), 4 - np.pi / 4),
    "pipe less a box": (lambda: pipe(CUBE) & ps.Box(*BOX) - ps.Box((0, -2, -1), (2, 2, 2)), np.pi / 2),
    "alone": (lambda: pipe(), None),
    "box too long": (lambda: pipe() & ps.Box((-2, -2, -1), (2, 2, 1)), None),
    "blind hole": (lambda: ps.Box(*CUBE) - pipe(), None),
    "union": (lambda: pipe() | ps.Box((-2, -2, -1), (2, 2, 0)), None),
    "union of a pipe between two boxes": (
        lambda: pipe() | ps.Box((-2, -2, -1), (2, 2, 0)) | ps.Box((-2, -2, 1), (2, 2, 2)),
        32 + np.pi,
    ),
    "strip": (lambda: ps.Implicit(y**2 - 0.09, bounds=((0, -1), (1, 1))) & ps.Box((0, -1), (1, 1)), 0.6),
    "strip alone": (lambda: ps.Implicit(y**2 - 0.09, bounds=((0, -1), (1, 1))), None),
    "half line": (lambda: ps.Implicit(x - 0.5, bounds=(0, 1)) & ps.Box(0, 1), 0.5),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_without_end_are_closed_or_refused(shape):
    make, volume = SHAPES[shape]
    domain = make()
    if volume is not None:
        assert domain.volume() == pytest.approx(volume, rel=4e-3)
        return
    u = ps.unknown("u", *[x, y, z][: domain.dimension])
    for use in (
        domain.volume,
        lambda: ps.scatter(domain, n_nodes=100),
        lambda: ps.Problem(domain, ps.Eq(-ps.laplacian(u), 1), ps.Dirichlet(0)),
    ):
        with pytest.raises(ps.ParasolError, match="reaches beyond the bounds"):
            use()


@pytest.mark.parametrize("shape", ["blunt cone", "two pipes", "drilled", "pipe less a box"])
def test_projections_end_on_the_boundary_and_no_nearer_point_of_it_is_known(shape):
    domain = SHAPES[shape][0]()
    points = np.random.default_rng(3).uniform(*domain.bounds, (400, 3))
    feet, cloud = domain.project(points), domain.boundary_cloud(0.2, np.random.default_rng(0))
    assert np.abs(domain.distance(feet)).max() < 1e-9
    away = np.linalg.norm(points - feet, axis=1)
    known = np.linalg.norm(points[:, None] - cloud, axis=2).min(axis=1)
    assert (away <= known + 1e-9).all()
    assert (away >= known - 0.1).all()


@pytest.mark.parametrize("lower", [pytest.param((0, 0), marks=pytest.mark.slow), (-0.5, -1)])
def test_a_wave_on_a_strip(lower):
    """The curve ends on the bounds, which are the sides of the box, or beyond them."""
    upper = (2 - lower[0], 1 - lower[1])
    wave = ps.Implicit(y - 0.2 * sp.sin(3 * x) - 0.5, bounds=(lower, upper)).named("wave")
    domain = wave & ps.Box((0, 0), (2, 1))
    assert len(domain.arcs()) == 4
    u, exact = ps.unknown("u", x, y), 2 + sp.sin(x + y) + x * y**2
    problem = ps.Problem(
        domain,
        ps.Eq(-ps.laplacian(u), -ps.laplacian(exact, x, y)),
        ps.Dirichlet(exact),
        quantities={"flux": ps.Flux(), "length": ps.Integral("left")},
        exact=exact,
    )
    solution = ps.discretize(problem, ps.scatter(domain, n_nodes=300)).solve()
    t = np.linspace(0, 2, 401)
    top = 0.5 + 0.2 * np.sin(3 * t)
    s = (np.arange(100) + 0.5) / 100 * top[:, None]
    inner = np.mean(-2 * np.sin(t[:, None] + s) + 2 * t[:, None], axis=1) * top
    assert solution.error < 1e-6
    assert solution.quantities["flux"] == pytest.approx(np.trapezoid(inner, t), abs=1e-4)
