"""Triangles between nodes: the whole domain, its boundary made of their edges, none folded by curved edges."""

import numpy as np
import pytest

import parasol as ps
from parasol.errors import InputError
from parasol.space.elements import make_elements
from parasol.space.triangles import triangulate

x, y = ps.coordinates("x y")
SQUARE = ps.Box((-1, -1), (1, 1))
DOMAINS = {
    "disc": (ps.Disc(), np.pi),
    "re-entrant corner": (SQUARE - ps.Box((0, -1), (1, 0)), 3.0),
    "hole": (ps.Box((0, 0), (2, 1)) - ps.Disc((1, 0.5), 0.2), 2 - 0.04 * np.pi),
    "slit": (SQUARE - ps.Box((0, -0.005), (1, 0.005)), 3.99),
    "baffle": (SQUARE - ps.Box((-0.01, -1), (0.01, 0.3)), 4 - 0.02 * 1.3),
    "cusps": (ps.Disc() - ps.Disc((0.5, 0), 0.7), 1.802912),
    "thin ring": (ps.Disc() - ps.Disc((0, 0), 0.97), np.pi * (1 - 0.97**2)),
}


@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("seed", [0, 1])
def test_triangles_fill_the_domain_and_their_edges_its_boundary(name, seed):
    domain, area = DOMAINS[name]
    nodes = ps.scatter(domain, n_nodes=900 if name == "thin ring" else 150, rng=seed)
    elements = make_elements(nodes, 2)
    mesh = elements.mesh
    sides = np.sort(np.concatenate([mesh.triangles[:, pair] for pair in ([0, 1], [1, 2], [2, 0])]), axis=1)
    found, counts = np.unique(sides, axis=0, return_counts=True)
    assert set(counts) == {1, 2}
    assert set(map(tuple, found[counts == 1])) == set(map(tuple, np.sort(mesh.edges, axis=1)))
    assert elements.inside.weights.sum() == pytest.approx(area, rel=2e-4)
    assert np.max(np.abs(domain.distance(mesh.middles))) < 1e-9
    # the divergence theorem holds only if the normals point outward everywhere
    rim = elements.rim
    assert np.sum(rim.weights[..., None] * rim.normals * rim.points) == pytest.approx(2 * area, rel=2e-4)


def test_edges_know_their_part_and_corners_the_parts_of_both_sides():
    domain = SQUARE.named(left=x < -0.999)
    nodes = make_elements(ps.scatter(domain, n_nodes=200), 2).nodes
    left = domain.part_names.index("left")
    on = nodes.on_part[:, left]
    assert np.all(np.abs(nodes.boundary[on, 0] + 1) < 1e-9)
    np.testing.assert_allclose(nodes.part_normals[on, left], [[-1.0, 0.0]] * np.count_nonzero(on), atol=1e-12)
    corner = np.flatnonzero(np.all(np.abs(nodes.boundary + 1) < 1e-9, axis=1))
    assert len(corner) == 1
    assert nodes.on_part[corner[0]].sum() == 2


def test_a_part_that_begins_between_nodes_gets_a_corner_there():
    domain = ps.Box((0, 0), (1, 1)).named(hot=lambda p: (p[:, 1] < 1e-9) & (p[:, 0] < 0.37))
    mesh = triangulate(ps.lattice(domain, 6))
    hot = mesh.edges[mesh.part == 0]
    ends = mesh.points[hot]
    assert np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1).sum() == pytest.approx(0.37, abs=1e-6)


def test_values_between_nodes_are_those_of_the_shape_functions():
    elements = make_elements(ps.scatter(ps.Disc(), n_nodes=200), 2)
    angle = np.linspace(0, 6, 50)
    places = np.concatenate([0.9999999 * np.stack([np.cos(angle), np.sin(angle)], axis=1), [[0.0, 0.0], [0.3, -0.2]]])
    values = lambda points: 1 + points[:, 0] - 2 * points[:, 1]  # noqa: E731
    # a linear function belongs to the elements, curved or not
    np.testing.assert_allclose(elements.weights_at(places) @ values(elements.nodes.points), values(places), atol=1e-12)


def test_periodic_domains_and_space_are_refused():
    with pytest.raises(InputError, match="periodic"):
        make_elements(ps.scatter(ps.Box((0, 0), (1, 1), periodic="x"), n_nodes=100), 2)
    with pytest.raises(InputError, match="in space"):
        make_elements(ps.scatter(ps.Ball((0, 0, 0), 1), n_nodes=200), 2)
