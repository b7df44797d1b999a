import numpy as np
import pytest
from scipy.spatial import ConvexHull, Voronoi

import parasol as ps
from parasol.space.volumes import node_volumes


def test_on_a_line_they_are_half_the_way_to_the_neighbours():
    nodes = ps.scatter(ps.Box((0.0,), (2.0,)), n_nodes=30, spacing=lambda x: 1 + x[:, 0])
    x = nodes.points[:, 0]
    order = np.argsort(x)
    edges = np.concatenate([[0.0], (x[order][1:] + x[order][:-1]) / 2, [2.0]])
    np.testing.assert_allclose(node_volumes(nodes)[order], np.diff(edges), rtol=0.02)


@pytest.mark.parametrize("dimension", [2, 3])
def test_a_lattice_has_whole_half_and_quarter_cells(dimension):
    nodes = ps.lattice(ps.Box((0,) * dimension, (1,) * dimension), 8)
    sides = np.count_nonzero((nodes.points == 0) | (nodes.points == 1), axis=1)
    volumes = node_volumes(nodes) * 7**dimension
    np.testing.assert_allclose(volumes, 0.5**sides, rtol=0.2)
    for count in range(dimension + 1):
        assert volumes[sides == count].mean() == pytest.approx(0.5**count, rel=0.02)


def test_a_lattice_with_unequal_steps():
    nodes = ps.lattice(ps.Box((0, 0), (1, 1)), (5, 41))
    sides = np.count_nonzero((nodes.points == 0) | (nodes.points == 1), axis=1)
    np.testing.assert_allclose(node_volumes(nodes) * 160, 0.5**sides, rtol=0.2)


def test_a_periodic_lattice_has_equal_cells():
    box = ps.load_problem("periodic-channel").domain
    nodes = ps.lattice(box, 12)
    inside = node_volumes(nodes)[: nodes.n_interior]
    np.testing.assert_allclose(inside, inside.mean(), rtol=0.05)


def test_clustered_nodes_agree_with_voronoi_s_cells():
    flower = ps.load_problem("helmholtz").domain
    nodes = ps.scatter(flower, n_nodes=600, n_boundary=120)  # the spacing grows inwards
    volumes, cells = node_volumes(nodes), Voronoi(nodes.points)
    ratios = []
    for i in range(nodes.n_interior):
        corners = cells.vertices[cells.regions[cells.point_region[i]]]
        if flower.contains(corners).all():
            ratios.append(volumes[i] / ConvexHull(corners).volume)
    assert len(ratios) > 400
    np.testing.assert_allclose(ratios, 1, atol=0.12)
    assert np.std(ratios) < 0.025
    assert np.mean(ratios) == pytest.approx(1, abs=0.005)


@pytest.mark.parametrize("name", ["cooled-pipe", "hollow-block", "advection-diffusion", "elasticity"])
def test_they_are_positive_and_sum_to_the_domain(name):
    domain = ps.load_problem(name).domain
    nodes = ps.scatter(domain, n_nodes=300)
    volumes = node_volumes(nodes)
    assert volumes.min() > 0
    assert volumes.sum() == pytest.approx(domain.volume(), rel=1e-12)
    np.testing.assert_array_equal(volumes, node_volumes(nodes))


def test_sums_become_integrals_where_nodes_are_clustered():
    nodes = ps.scatter(ps.Disc(), n_nodes=1500, spacing=lambda x: 0.2 + np.hypot(x[:, 0] - 1, x[:, 1]))
    x = nodes.points[:, 0]
    weighted = float(node_volumes(nodes) @ (1 + x) ** 2)
    assert weighted == pytest.approx(np.pi * 1.25, rel=0.01)  # ∫ 1 + x² over the disc
    assert np.pi * np.mean((1 + x) ** 2) > 1.5 * weighted  # without weights the cluster at x = 1 dominates
