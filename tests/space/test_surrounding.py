"""Values beside crowded nodes: from stencils that surround a place, or with a word."""

import numpy as np
import pytest

import parasol as ps
from parasol.errors import ParasolWarning
from parasol.space.neighbours import Cloud
from parasol.space.operators import differentiate
from parasol.space.stencils import default_scheme
from parasol.space.surrounding import value_weights

SCHEME = default_scheme(2, order=2)


def crowded(n_around):
    """A lattice on the unit square with a crowd of nodes in its middle."""
    line = (np.arange(n_around) + 0.5) / n_around
    around = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    crowd = 0.5 + 1e-3 * np.random.default_rng(0).uniform(-1, 1, (400, 2))
    return np.concatenate([around, crowd])


def test_beside_a_crowd_of_nodes_stencils_surround_the_place():
    nodes, place = crowded(20), np.array([[0.515, 0.509], [0.2, 0.3]])
    rows = value_weights(Cloud(nodes), place, SCHEME)
    plain = differentiate(Cloud(nodes), place, [(0, 0)], SCHEME)[0, 0]
    assert abs(plain).sum(axis=1)[0] > 1000
    assert abs(rows).sum(axis=1)[0] < 16
    assert (rows[[1]] != plain[[1]]).nnz == 0  # elsewhere nothing changes
    wave = lambda x: np.sin(3 * x[:, 0] + x[:, 1])  # noqa: E731
    assert np.max(np.abs(rows @ wave(nodes) - wave(place))) < 1e-4


def test_where_no_nodes_surround_a_place_it_is_said():
    nodes = crowded(20)[400:]
    with pytest.warns(ParasolWarning, match=r"no nodes surround 1 of 1 places, such as \(0\.52, 0\.51\)"):
        value_weights(Cloud(nodes), np.array([[0.52, 0.51]]), SCHEME)


def test_no_stencil_looks_through_a_thin_wall():
    domain = ps.Box((-1, -1), (1, 1)) - ps.Box((-1.5, -5e-4), (0.05, 5e-4))
    nodes = ps.scatter(domain, n_nodes=800)
    places = np.stack([np.linspace(-0.1, 0.2, 100), np.tile([0.01, -0.01], 50)], axis=1)
    rows = value_weights(Cloud(nodes.points, domain), places, default_scheme(2, stencil_size=55, degree=5)).tocoo()
    here, there = places[rows.row], nodes.points[rows.col]
    behind = (np.maximum(here[:, 0], there[:, 0]) < 0.05) & (here[:, 1] * there[:, 1] < 0)
    assert abs(rows).sum(axis=1).max() < 16
    assert not np.any(np.abs(rows.data[behind]) > 0)
