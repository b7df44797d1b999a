"""The region that somebody's cells cover."""

from itertools import pairwise

import numpy as np
import pytest

from parasol.space.mesh import MeshDomain


def ring(n=12):
    """Quadratic triangles between circles of radius 1/2 and 1: edges on the inner one bow into their cells."""
    places: dict[tuple, int] = {}

    def place(point):
        return places.setdefault(tuple(np.round(point, 12) + 0.0), len(places))

    def cell(*corners):
        points = [radius * np.array([np.cos(angle), np.sin(angle)]) for radius, angle in corners]
        middles = []
        for i, j in ((0, 1), (1, 2), (0, 2)):
            middle, radius = (points[i] + points[j]) / 2, corners[i][0]
            middles.append(middle * (radius / np.linalg.norm(middle) if radius == corners[j][0] else 1))
        return [place(point) for point in (*points, *middles)]

    turns = 2 * np.pi * np.arange(n + 1) / n
    cells = [cell((0.5, a), (0.5, b), (1.0, b)) for a, b in pairwise(turns)]
    cells += [cell((0.5, a), (1.0, b), (1.0, a)) for a, b in pairwise(turns)]
    return np.array(list(places)), np.array(cells)


@pytest.mark.parametrize("first", [0, -1], ids=["inner", "outer"])
def test_cells_with_curved_edges_are_cut_without_overlap(first):
    """With a cell that an edge bows into as the first one all cells were cut into five, one of them outside."""
    points, cells = ring()
    domain = MeshDomain(points, np.roll(cells, -first, axis=0))
    corners = points[domain.simplices]
    edges = corners[:, 1:] - corners[:, :1]
    polygon = 12 * np.sin(2 * np.pi / 24)  # of 24 corners, by its radius squared
    assert np.abs(np.linalg.det(edges)).sum() / 2 == pytest.approx(polygon * (1 - 0.25))
    assert len(domain.simplices) == 4 * len(cells)
    radii = np.linalg.norm(points[domain.rim], axis=2)
    assert len(radii) == 48
    assert np.allclose(np.minimum(np.abs(radii - 0.5), np.abs(radii - 1)), 0)


def test_the_nearest_point_of_the_rim_and_the_way_there():
    domain = MeshDomain([[0, 0], [2, 0], [2, 1], [0, 1]], [[0, 1, 2, 3]])
    points = np.array([[0.9, 0.2], [2.5, 0.5], [3.0, 2.0], [0.3, 0.5]])
    assert domain.project(points).tolist() == [[0.9, 0.0], [2.0, 0.5], [2.0, 1.0], [0.0, 0.5]]
    assert np.allclose(domain.normal(points), [[0, -1], [1, 0], np.sqrt([0.5, 0.5]), [-1, 0]])
    assert np.allclose(domain.distance(points), [-0.2, 0.5, np.sqrt(2), -0.3])


def test_cells_of_a_line_with_a_node_inside():
    domain = MeshDomain([[0.0], [1.0], [0.5], [3.0], [2.0]], [[0, 1, 2], [1, 3, 4]])
    assert domain.simplices.tolist() == [[0, 2], [2, 1], [1, 4], [4, 3]]
    assert domain.project([[0.6], [2.9]]).tolist() == [[0.0], [3.0]]
