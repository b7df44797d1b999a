"""How evenly nodes fill their domain: separation, fill distance and the ratio of the two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import Delaunay

from parasol.space.nodes import Nodes
from parasol.space.wrap import Wrap


@dataclass(frozen=True, eq=False)
class Quality:
    """Measured evenness of a node set, lengths in units of the local wanted spacing h(x) unless said otherwise."""

    separation: float  # smallest distance of a node to its nearest neighbour, over h
    fill_distance: float  # radius of the largest empty ball centred in the domain, over h at the nearest node
    ratio: float  # separation / (2 fill_distance): hexagonal lattice 0.866, body-centred cubic 0.775
    mean_distance: float  # average distance to the nearest neighbour, over h
    separation_distance: float  # smallest distance between two nodes, in units of length
    largest_hole: float  # radius of the largest empty ball, in units of length
    nearest: np.ndarray  # (n_nodes,) distance of every node to its nearest neighbour, in units of length


def quality(nodes: Nodes) -> Quality:
    """Measure separation, fill distance and mesh ratio of scattered nodes.

    q = min_i |x_i - x_j| / h(x_i), fill = max_x min_i |x - x_i| / h(x_i) over x in the domain (attained at vertices of
    the Voronoi diagram, or on the boundary, where boundary nodes are dense enough not to matter), ratio = q / (2 fill).
    """
    return measure(nodes.points, nodes.spacing, nodes.domain)


def measure(points: np.ndarray, spacing: np.ndarray, domain) -> Quality:
    """`quality` of bare (n, dimension) points with (n,) wanted spacings."""
    wrap = Wrap.of(domain)
    nearest = wrap.query(wrap.tree(points), points, 2)[0][:, 1]
    radii, owner = _holes(points, wrap, domain)
    holes = radii / spacing[owner]
    separation = float((nearest / spacing).min())
    fill_distance = float(holes.max())
    return Quality(
        separation=separation,
        fill_distance=fill_distance,
        ratio=separation / (2 * fill_distance),
        mean_distance=float((nearest / spacing).mean()),
        separation_distance=float(nearest.min()),
        largest_hole=float(radii.max()),
        nearest=nearest,
    )


def _holes(points: np.ndarray, wrap: Wrap, domain):
    """Radii and an adjacent node of all locally largest empty balls centred in the domain."""
    owner = np.arange(len(points))
    cloud = wrap.fold(points)
    reach = 4 * (domain.volume() / len(points)) ** (1 / domain.dimension)
    for axis in wrap.axes:  # images beyond both ends of a periodic axis close the Delaunay triangulation there
        low, period = wrap.lower[axis], wrap.periods[axis]
        step = period * np.eye(domain.dimension)[axis]
        left, right = cloud[:, axis] < low + reach, cloud[:, axis] > low + period - reach
        cloud = np.concatenate([cloud, cloud[left] + step, cloud[right] - step])
        owner = np.concatenate([owner, owner[left], owner[right]])
    if domain.dimension == 1:
        order = np.argsort(cloud[:, 0])
        x = cloud[order, 0]
        centres, radii, adjacent = (x[1:, None] + x[:-1, None]) / 2, np.diff(x) / 2, owner[order[:-1]]
    else:
        simplices = Delaunay(cloud).simplices
        centres, radii = _circumcentres(cloud[simplices])
        adjacent = owner[simplices[:, 0]]
    span = domain.bounds[1] - domain.bounds[0]
    sane = ((centres >= domain.bounds[0] - 1e-12 * span) & (centres <= domain.bounds[1] + 1e-12 * span)).all(axis=1)
    inside = np.flatnonzero(sane)
    inside = inside[domain.contains(centres[inside])]
    return radii[inside], adjacent[inside]


def _circumcentres(corners: np.ndarray):
    """Centres (m, d) and radii (m,) of the balls through the corners (m, d + 1, d) of simplices."""
    edges = corners[:, 1:] - corners[:, :1]
    scale = np.abs(edges).max(axis=(1, 2))
    flat = (
        np.abs(np.linalg.det(edges)) < 1e-9 * scale ** edges.shape[2]
    )  # slivers on straight boundaries have no centre
    edges = np.where(flat[:, None, None], np.eye(edges.shape[2]), edges)
    offset = np.linalg.solve(edges, 0.5 * (edges**2).sum(axis=2, keepdims=True))[:, :, 0]
    centres = corners[:, 0] + np.where(flat[:, None], np.inf, offset)
    return centres, np.linalg.norm(offset, axis=1)
