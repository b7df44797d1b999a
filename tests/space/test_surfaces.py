"""Surfaces of several closed components: each is turned by where it lies, not by how it was given."""

import numpy as np
import pytest

import parasol as ps

trimesh = pytest.importorskip("trimesh")
pytest.importorskip("igl")

UNIT, APART = ((0, 0, 0), (1, 1, 1)), ((2, 0, 0), (2.5, 1, 1))
HOLE, CORE = ((0.25, 0.25, 0.25), (0.75, 0.75, 0.75)), ((0.4, 0.4, 0.4), (0.6, 0.6, 0.6))


def _boxes(*given) -> tuple[np.ndarray, np.ndarray]:
    """Boxes, each (bounds, facing inward), as one mesh."""
    pieces = [trimesh.creation.box(bounds=bounds) for bounds, _ in given]
    for piece, (_, inward) in zip(pieces, given, strict=True):
        if inward:
            piece.invert()
    mesh = trimesh.util.concatenate(pieces)
    return np.array(mesh.vertices), np.array(mesh.faces)


def _points() -> np.ndarray:
    return np.random.default_rng(0).random((2000, 3)) * (3.0, 1.4, 1.4) - 0.2


def _within(points, bounds) -> np.ndarray:
    return np.all((points > bounds[0]) & (points < bounds[1]), axis=1)


@pytest.mark.parametrize("facing", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("second", ["apart", "cavity"])
def test_components_may_face_either_way(second, facing):
    other = APART if second == "apart" else HOLE
    solid = ps.Surface(_boxes((UNIT, facing[0]), (other, facing[1])))
    size = np.prod(np.subtract(other[1], other[0]))
    assert solid.volume() == pytest.approx(1 + size if second == "apart" else 1 - size)
    points = _points()
    expected = _within(points, UNIT) ^ _within(points, other)
    np.testing.assert_array_equal(solid.contains(points), expected)
    np.testing.assert_array_equal(solid.distance(points) < 0, expected)
    # normals point out of the solid: what is inside lies behind its foot, what is outside before it
    ahead = np.sum((points - solid.project(points)) * solid.normal(points), axis=1)
    assert (np.where(expected, -ahead, ahead) >= -1e-12).all()


@pytest.mark.parametrize("inward", [(False, False, False), (True, False, True), (False, True, True)])
def test_a_core_in_a_cavity_is_solid(inward):
    solid = ps.Surface(_boxes(*zip((UNIT, HOLE, CORE), inward, strict=True)))
    assert solid.volume() == pytest.approx(1 - 0.125 + 0.008)
    assert solid.contains([[0.1, 0.5, 0.5], [0.3, 0.5, 0.5], [0.5, 0.5, 0.5]]).tolist() == [True, False, True]


def test_integrals_and_solutions_over_two_components():
    """The second component faced inward: no nodes there, and integrals off by 28 %."""
    x, y, z = ps.coordinates("x y z")
    u = ps.unknown("u", x, y, z)
    exact = x**2 + y - 2 * z + x * y
    solid = ps.Surface(_boxes((UNIT, False), (APART, True)))
    problem = ps.Problem(solid, ps.Eq(-ps.laplacian(u), -2), ps.Dirichlet(exact), exact=exact)
    nodes = ps.scatter(solid, n_nodes=700, rng=0)
    assert 0.2 < np.mean(nodes.points[:, 0] > 1.5) < 0.5
    assert solid.contains(nodes.points).all()
    assert ps.discretize(problem, nodes, degree=2).solve([]).error < 1e-8


@pytest.mark.parametrize("inward", [False, True])
@pytest.mark.parametrize(
    "other",
    [
        ((0.5, 0.5, 0.5), (1.5, 1.5, 1.5)),  # a corner of each inside the other
        ((0.3, 0.3, -0.5), (0.6, 0.6, 1.5)),  # a bar right through: no corner of either inside the other
        ((1.0, 0.2, 0.2), (1.5, 0.8, 0.8)),  # face to face
    ],
)
def test_components_that_cut_or_touch_are_refused(other, inward):
    with pytest.raises(ps.ParasolError, match=r"touch or cut each other.*Surface\(a\) \| Surface\(b\)"):
        ps.Surface(_boxes((UNIT, False), (other, inward)))


def test_the_advice_for_overlapping_solids_works():
    joined = ps.Surface(_boxes((UNIT, False))) | ps.Surface(_boxes((((0.5, 0.5, 0.5), (1.5, 1.5, 1.5)), True)))
    assert joined.volume() == pytest.approx(1.875, rel=5e-3)


def test_every_component_must_be_closed_and_hold_something():
    vertices, triangles = _boxes((UNIT, False), (APART, False))
    with pytest.raises(ps.ParasolError, match="not a closed surface"):
        ps.Surface((vertices, triangles[:-1]))
    flat = np.array([(0, 0, 5), (1, 0, 5), (0, 1, 5)], dtype=float)
    both = np.concatenate([vertices, flat]), np.concatenate([triangles, [(16, 17, 18), (16, 18, 17)]])
    with pytest.raises(ps.ParasolError, match="no volume"):
        ps.Surface(both)


def test_fine_shells_and_scales():
    for scale, offset in ((1e-6, 0.0), (1e6, 3e6)):
        outer, inner = (
            trimesh.creation.icosphere(subdivisions=4),
            trimesh.creation.icosphere(subdivisions=4, radius=0.97),
        )
        mesh = trimesh.util.concatenate([outer, inner])
        shell = ps.Surface((np.array(mesh.vertices) * scale + offset, np.array(mesh.faces)))
        assert shell.volume() == pytest.approx((outer.volume - inner.volume) * scale**3, rel=1e-6)


@pytest.mark.slow
def test_a_cylinder_as_a_surface():
    cylinder = ps.Surface(trimesh.creation.cylinder(radius=1.0, height=1.0, sections=96))
    assert cylinder.volume() == pytest.approx(np.pi, rel=1e-3)
    nodes = ps.scatter(cylinder, n_nodes=400, rng=0)
    assert nodes.n_nodes == 400
