"""Thin walls: no stencil looks through them, and ghosts stand clear of each other in them."""

import warnings

import numpy as np
import pytest
from scipy.spatial import KDTree

import parasol as ps
from parasol.space.neighbours import Cloud
from parasol.space.nodes import ghosts
from parasol.space.operators import differentiate
from parasol.space.stencils import Scheme

PLACE = 0.47


def _parted(dimension: int, width: float, beyond: float) -> ps.space.Domain:
    """The unit box cut in two by a wall that ends at the faces or goes beyond them."""
    lower, upper = np.full(dimension, -beyond), np.full(dimension, 1 + beyond)
    lower[0], upper[0] = PLACE - width / 2, PLACE + width / 2
    return ps.Box(np.zeros(dimension), np.ones(dimension)) - ps.Box(lower, upper).named("wall")


@pytest.mark.parametrize(
    ("dimension", "n_nodes", "width"),
    [(1, 60, 1e-1), (1, 60, 1e-6), *[(2, 300, w) for w in (1e-1, 1e-2, 1e-4, 1e-6)], (3, 250, 1e-2), (3, 250, 1e-6)],
)
@pytest.mark.parametrize("beyond", [0.0, 0.1])
def test_no_stencil_looks_through_a_wall(dimension, n_nodes, width, beyond):
    domain = _parted(dimension, width, beyond)
    nodes = ps.scatter(domain, n_nodes=n_nodes, rng=0)
    places = np.concatenate([nodes.points, ghosts(nodes)])
    anchors = np.concatenate([nodes.points, nodes.boundary])
    rng = np.random.default_rng(0)
    centers = np.concatenate([nodes.points, domain.bounds[0] + rng.random((50, dimension))])
    centers = centers[domain.contains(centers)]
    index, distance = Cloud(places, domain, anchors).nearest(centers, 2 * dimension + 9)
    left = anchors[:, 0] < PLACE
    assert left.any()
    assert (~left).any()
    assert np.isfinite(distance).all()  # and there were enough on either side
    assert (left[index] == (centers[:, 0] < PLACE)[:, None]).all()


def test_many_centers_most_of_them_far_inside_do_not_look_through_a_wall():
    domain = _parted(2, 1e-4, 0.1)
    points = np.random.default_rng(0).random((6000, 2))  # more than are asked for their distance one by one
    points = points[domain.contains(points)]
    index, distance = Cloud(points, domain).nearest(points, 12)
    left = points[:, 0] < PLACE
    assert np.isfinite(distance).all()
    assert (left[index] == left[:, None]).all()


@pytest.mark.parametrize("thin", [False, True])
def test_every_piece_of_the_outside_blocks_the_view(thin):
    """Two walls on one line: what faces what at the first and the last piece of outside tells nothing."""
    domain = ps.Box((0, 0), (1, 1)) - ps.Box((0.4, -1), (0.4 + (1e-4 if thin else 0.04), 0.9))
    domain = domain - ps.Box((0.6, 0.1), (0.6 + (1e-4 if thin else 0.04), 2))
    points = np.array([[0.3, 0.5], [0.5, 0.5], [0.7, 0.5], [0.5, 0.95], [0.5, 0.05]])
    index, distance = Cloud(points, domain).nearest(points, 5)
    sees = [set(row[np.isfinite(away)].tolist()) for row, away in zip(index, distance, strict=True)]
    assert 1 in sees[3]
    assert 1 in sees[4]
    assert not sees[0] & {1, 2, 4}
    assert not sees[2] & {0, 1, 3}
    assert not sees[1] & {0, 2}


def test_a_convex_hole_may_be_grazed():
    """Neighbours on the rim of a hole see each other although their chord cuts it; those across do not."""
    domain = ps.Box((-1, -1), (1, 1)) - ps.Disc(radius=0.5)
    angle = 2 * np.pi * np.arange(32) / 32
    rim = 0.5 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    index, distance = Cloud(rim, domain).nearest(rim, 32)
    steps = np.abs((index - np.arange(32)[:, None] + 16) % 32 - 16)
    assert np.isfinite(distance[steps <= 2]).all()
    assert np.isinf(distance[steps >= 8]).all()


@pytest.mark.parametrize("width", [3.0, 2.0, 1.5, 1.0, 0.7, 0.5, 0.25, 0.1])
def test_ghosts_meet_nothing(width):
    """Widths in spacings: at 2 the ghosts of both faces would meet, at 1 each would fall on a node of the other face."""
    h = 0.05
    domain = ps.Box((0, 0), (1, 1)) - ps.Box((0.5, -1), (0.5 + width * h, 0.6)).named("wall")
    nodes = ps.scatter(domain, spacing=h, rng=0)
    places = np.concatenate([nodes.points, ghosts(nodes)])
    assert KDTree(places).query(places, k=2)[0][:, 1].min() > 0.05 * h


def test_ghosts_of_a_reentrant_corner_keep_apart():
    domain = ps.Box((-1, -1), (1, 1)) - ps.Box((0, -2), (2, 0)).named("notch")
    nodes = ps.scatter(domain, n_nodes=500, rng=0)
    places = np.concatenate([nodes.points, ghosts(nodes)])
    assert KDTree(places).query(places, k=2)[0][:, 1].min() > 0.4 * nodes.spacing.min()
    assert (domain.distance(ghosts(nodes)) > 0.4 * nodes.spacing.min()).all()


@pytest.mark.parametrize(
    "domain", [ps.Disc(), ps.Box((0, 0, 0), (1, 1, 1)), ps.Box(0, 1), ps.Disc() - ps.Disc(radius=0.4)]
)
def test_ghosts_stand_off_by_the_spacing_where_there_is_room(domain):
    nodes = ps.scatter(domain, n_nodes=300, rng=0)
    h = nodes.spacing[nodes.n_interior :]
    np.testing.assert_allclose(ghosts(nodes), nodes.boundary + h[:, None] * nodes.normals, atol=1e-12)


def test_a_line_has_all_its_pieces():
    line = ps.Box(0, 1) - ps.Box(0.3, 0.3 + 1e-6) - ps.Box(0.6, 0.7)
    nodes = ps.scatter(line, n_nodes=40, rng=0)
    np.testing.assert_allclose(np.sort(nodes.boundary[:, 0]), [0, 0.3, 0.3 + 1e-6, 0.6, 0.7, 1])
    ring = ps.Box(0, 1, periodic=("x",)) - ps.Box(0.3, 0.4)
    nodes = ps.scatter(ring, n_nodes=40, rng=0)
    np.testing.assert_allclose(np.sort(nodes.boundary[:, 0]), [0.3, 0.4])
    assert nodes.n_nodes == 40
    assert ring.contains(nodes.points).all()


def test_too_few_nodes_on_one_side_are_said():
    domain = _parted(2, 0.01, 0.1)
    points = np.random.default_rng(0).random((60, 2))
    points[:, 0] = np.where(np.arange(60) < 6, 0.4 * points[:, 0], 0.5 + 0.5 * points[:, 0])
    scheme = Scheme(ps.space.PHS(3), 1, 12)
    with pytest.warns(ps.ParasolWarning, match="6 of 60 stencils of 12 nodes find too few"):
        differentiate(Cloud(points, domain), points, [(1, 0)], scheme)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ps.ParasolWarning)
        differentiate(Cloud(points[6:], domain), points[6:], [(1, 0)], scheme)
