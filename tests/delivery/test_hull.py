"""The region of nodes whose domain is not known: the same cells as with it."""

import dataclasses

import numpy as np
import pytest

import parasol as ps
from parasol.delivery.files import cells
from parasol.delivery.hull import NodeHull, nearest_distances
from parasol.space.outline import outline_of

SHAPES = {
    "flower": ("helmholtz", 300),
    "ring": ("cooled-pipe", 250),
    "periodic": ("periodic-channel", 200),
    "ball": ("schrodinger", 400),
    "line": ("burgers", 40),
}


@pytest.fixture(scope="module", params=SHAPES)
def nodes(request):
    name, n_nodes = SHAPES[request.param]
    return ps.scatter(ps.load_problem(name).domain, n_nodes=n_nodes)


def cells_in(nodes, domain):
    return {tuple(sorted(cell)) for cell in cells(dataclasses.replace(nodes, domain=domain)).tolist()}


def test_cells_with_the_outline_are_those_of_the_domain(nodes):
    hull = NodeHull(nodes.points, nodes.n_interior, outline_of(nodes.domain))
    assert cells_in(nodes, hull) == cells_in(nodes, nodes.domain)


def test_cells_from_nodes_alone_hardly_differ(nodes):
    if nodes.domain.periods.any():
        pytest.skip("nodes do not say that they are periodic")
    wanted = cells_in(nodes, nodes.domain)
    assert len(cells_in(nodes, NodeHull(nodes.points, nodes.n_interior)) ^ wanted) <= 0.02 * len(wanted)


def test_inside_and_outside_of_a_ball():
    nodes = ps.scatter(ps.Ball((0, 0, 0), 1.0), n_nodes=500)
    hull = NodeHull(nodes.points, nodes.n_interior)
    direction = np.random.default_rng(0).standard_normal((200, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    step = np.median(nearest_distances(nodes.points))
    assert hull.contains((1 - 0.3 * step) * direction).all()
    assert not hull.contains((1 + 0.3 * step) * direction).any()
    assert np.max(np.abs(hull.distance(0.9 * direction) + 0.1)) < 0.3 * step


def test_a_cavity_is_as_smooth_as_the_domain():
    """Between nodes too: cuts through an answer of a file have the area of cuts through the domain."""
    domain = ps.load_problem("hollow-block").domain
    nodes = ps.scatter(domain, n_nodes=400)
    hull = NodeHull(nodes.points, nodes.n_interior, outline_of(domain))
    points = np.random.default_rng(0).uniform(-1.1, 1.1, (4000, 3))
    assert np.array_equal(hull.contains(points), domain.contains(points))
    near = points[np.abs(domain.distance(points)) < 0.1]
    along = np.sum(hull.normal(near) * domain.normal(near), axis=1)
    assert np.mean(along > 0.9) > 0.95  # but for points beside an edge, which has two normals


def test_nodes_without_a_boundary_fill_their_box():
    hull = NodeHull(np.array([[0.0, 0.0], [2.0, 1.0]]), 2)
    assert hull.contains([[1.0, 0.5], [3.0, 0.5]]).tolist() == [True, False]
    assert hull.arcs() == ()
