"""How fine the nodes should be where: finer at the boundary, finest where it bends into the domain."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.ndimage import map_coordinates
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from parasol.errors import InputError
from parasol.space.geometry.domain import Arc, Domain
from parasol.space.geometry.pieces import arc_lengths, points_along
from parasol.space.wrap import Wrap

# Chosen on the flower-shaped domain (docs/decisions/003), where the error sits at the concave pieces of the boundary.
_WALL = 0.6  # spacing at a straight wall, relative to that far inside
_BEND = 0.07  # how much a concave bend of one domain size refines
_GROWTH = 1.4  # increase of the relative spacing over one domain size
_TABLE = 160  # cells of the table along the longest side
_LEAST = 0.005  # relative spacing at a singular point, however many nodes there are
_REACH = 0.42  # of the distance from a singular point: the radius of a stencil
_NEAR, _SWEEPS = 12, 50  # neighbours over which shares of an error are averaged; how far a small spacing reaches
_ORDER, _FINEST = 4, 0.4  # how errors fall with the spacing; how much finer nodes become at a time
_CORNER = 60.0  # curvature that stands for a re-entrant corner, in units of 1 / domain size


def feature_spacing(domain: Domain) -> Callable[[np.ndarray], np.ndarray]:
    """A relative spacing h(x) for `scatter(domain, n_nodes=..., spacing=...)`, between about 0.1 and 1.

        h(x) = min(1, min over boundary points b of [ wall / (1 + bend · l · concavity(b)) + growth · |x − b| / l ])

    with l the size of the domain (square root of its area). A solution is roughest where the boundary bends into the
    domain, so nodes there are worth most. For domains of the plane.

    >>> from parasol.space.geometry.primitives import Ball
    >>> h = feature_spacing(Ball((0.0, 0.0), 1.0))
    >>> bool(h(np.array([[0.99, 0.0]]))[0] < h(np.array([[0.0, 0.0]]))[0])
    True
    """
    if domain.dimension != 2:
        raise InputError(
            f"feature_spacing is for domains of the plane, this one has {domain.dimension} dimensions. Use spacing=None."
        )
    size = domain.volume() ** 0.5
    lower, upper = domain.bounds
    step = float(np.max(upper - lower)) / _TABLE
    counts = np.ceil((upper - lower) / step).astype(int) + 1
    axes = [low + step * np.arange(n) for low, n in zip(lower, counts, strict=True)]
    grid = np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=1)
    # a box that is periodic all round has no boundary
    relative = _relative(domain, grid, size) if domain.part_names else np.ones(len(grid))
    table = np.minimum(relative, 1.0).reshape(counts)

    def spacing(points: np.ndarray) -> np.ndarray:
        return map_coordinates(table, ((points - lower) / step).T, order=1, mode="nearest")

    return spacing


def graded_spacing(
    domain: Domain, points: np.ndarray, *, n_nodes: int, stencil_size: int = 55, share: float = 0.2
) -> Callable[[np.ndarray], np.ndarray]:
    """`feature_spacing` that falls further towards singular points p (m, 2), to be scaled to `n_nodes` nodes:

        h(x) = min(feature(x), least + slope |x − p| / t),   t h(x) the spacing that n_nodes will have.

    The slope is such that a stencil reaches no further than 0.42 of the way to the singular point, since one that reaches
    past it is worth nothing (docs/decisions/035). So the more nodes there are, the closer they get to the singular point:
    `least` is as small as it can be with at most `share` more nodes than `feature_spacing` takes for the same spacing
    elsewhere.

    >>> from parasol.space.geometry.primitives import Box
    >>> corner = Box((-1, -1), (1, 1)) - Box((0, 0), (2, 2))
    >>> h, plain = graded_spacing(corner, np.zeros((1, 2)), n_nodes=4000), feature_spacing(corner)
    >>> [bool(h(x) < 0.5 * plain(x)) for x in (np.zeros((1, 2)), np.array([[-0.5, -0.5]]))]
    [True, False]
    """
    feature, points, wrap = feature_spacing(domain), domain.check_points(points), Wrap.of(domain)
    lower, upper = domain.bounds
    ticks = [np.linspace(a, b, 2 * _TABLE + 1)[1::2] for a, b in zip(lower, upper, strict=True)]
    grid = np.stack([a.ravel() for a in np.meshgrid(*ticks, indexing="ij")], axis=1)
    plain = domain.volume() * float(np.mean(feature(grid[domain.contains(grid)]) ** -2.0))  # nodes for a spacing of 1
    t = float(np.sqrt((1 + share) * plain / n_nodes))
    slope = _REACH / float(np.sqrt(stencil_size / np.pi))
    rate = max(slope / t, _GROWTH / domain.volume() ** 0.5)  # few nodes: no steeper than at any corner

    def distances(x: np.ndarray) -> np.ndarray:
        return np.array([np.linalg.norm(wrap.shortest(x - p), axis=1) for p in points])

    rays, area = _around(domain, points)
    away = distances(rays)
    area = np.where(np.argmin(away, axis=0) == np.repeat(np.arange(len(points)), len(rays) // len(points)), area, 0.0)
    before, away = feature(rays), away.min(axis=0)
    low, high = _LEAST, float(feature(points).max())
    for _ in range(40):
        least = float(np.sqrt(low * high))
        extra = area @ (np.minimum(before, least + rate * away) ** -2.0 - before**-2.0)
        low, high = (least, high) if extra > share * plain else (low, least)

    def spacing(x: np.ndarray) -> np.ndarray:
        return np.minimum(feature(x), high + rate * distances(x).min(axis=0))

    return spacing


def refining_factor(points: np.ndarray, shares: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """How much finer nodes should be at points, (n,) between 0.4 and 1, if given ones (m, dimension) share an error so.

    With shares η² (m,) of the square of an error that falls like h^p, p about 4, equal shares ask for

        h_new / h ∝ (η² / median)^(−1 / (2p + dimension)).

    >>> points = np.linspace(0, 1, 101)[:, None]
    >>> factor = refining_factor(points, np.where(points[:, 0] < 0.2, 1.0, 1e-4))
    >>> factor(np.array([[0.05], [0.8]])).round(2).tolist()
    [0.4, 1.0]
    """
    tree, near, _ = _neighbours(points)
    return _averaged(tree, near.shape[1], _factor(shares[near], points.shape[1]))


def refined_spacing(
    points: np.ndarray, shares: np.ndarray, *, n_nodes: int, steepest: float = 0.15
) -> Callable[[np.ndarray], np.ndarray]:
    """The spacing of given nodes (m, dimension) times `refining_factor`, scaled to `n_nodes` nodes.

    It grows by at most `steepest` times the distance: a stencil that spans nodes of very different spacing is worth little
    (docs/decisions/035).

    >>> points = np.linspace(0, 1, 101)[:, None]
    >>> h = refined_spacing(points, np.where(points[:, 0] < 0.2, 1.0, 1e-4), n_nodes=101)
    >>> bool(h(np.array([[0.05]])) < 0.5 * h(np.array([[0.8]])))
    True
    """
    (tree, near, distances), dimension = _neighbours(points), points.shape[1]
    before, factor = np.mean(distances[:, min(1, near.shape[1] - 1)][near], axis=1), _factor(shares[near], dimension)
    spacing = before * factor * (np.sum(factor ** float(-dimension)) / n_nodes) ** (1 / dimension)
    for _ in range(_SWEEPS):
        spacing = np.minimum(spacing, np.min(spacing[near] + steepest * distances, axis=1))
    return _averaged(tree, near.shape[1], spacing)


def _neighbours(points: np.ndarray) -> tuple[KDTree, np.ndarray, np.ndarray]:
    """A tree of the points (m, dimension), the nearest ones of each and their distances, (m, k)."""
    tree = KDTree(points)
    distances, near = tree.query(points, list(range(1, min(_NEAR, len(points)) + 1)))
    return tree, near, distances


def _factor(shares: np.ndarray, dimension: int) -> np.ndarray:
    """The factor of `refining_factor` (m,) from shares (m, k) of neighbours."""
    smooth = np.mean(shares, axis=1)
    typical = float(np.median(smooth)) or float(np.max(smooth)) or 1.0
    return np.clip((np.maximum(smooth, 1e-12 * typical) / typical) ** (-1 / (2 * _ORDER + dimension)), _FINEST, 1.0)


def _averaged(tree: KDTree, k: int, values: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """The mean of the values (m,) at the k nearest points."""
    return lambda x: np.mean(values[tree.query(x, list(range(1, k + 1)))[1]], axis=1)


def _around(domain: Domain, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places around each of the points (m, 2), ever denser towards them, (m k, 2), and the area each stands for, (m k,)."""
    edges = domain.size * np.geomspace(1e-6, 1.0, 121)
    radii, turns = np.sqrt(edges[1:] * edges[:-1]), 2 * np.pi * (np.arange(48) + 0.3) / 48
    circle = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    places = (points[:, None, None] + radii[:, None, None] * circle).reshape(-1, 2)
    area = np.repeat((edges[1:] ** 2 - edges[:-1] ** 2) * np.pi / 48, 48)
    return places, np.tile(area, len(points)) * domain.contains(domain.wrap(places))


def _relative(domain: Domain, grid: np.ndarray, size: float) -> np.ndarray:
    """Relative spacing on the grid from the boundary's concavity."""
    pieces = [_along(arc, size / 150) for arc in domain.arcs()]
    points = np.vstack([points for points, _ in pieces])
    bend = np.vstack([bend for _, bend in pieces])
    # the centre of curvature of a concave piece lies outside, where the normal points
    concavity = np.maximum(np.sum(bend * domain.normal(points), axis=1), 0.0)
    concavity[_reentrant(domain, pieces, size)] = _CORNER / size
    at_wall = _WALL / (1 + _BEND * size * concavity)
    out = np.empty(len(grid))
    for start in range(0, len(grid), 4096):
        part = slice(start, start + 4096)
        out[part] = np.min(at_wall + _GROWTH / size * cdist(grid[part], points), axis=1)
    return out


def _along(arc: Arc, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Points at equal arc length and their curvature vectors, both (n, 2); an open arc keeps its ends."""
    length = arc_lengths(arc.line)[-1]
    n = max(8, int(length / step))
    points = points_along(arc.line, np.linspace(0.0, length, n + 1)[: n if arc.closed else n + 1])
    bend = (np.roll(points, 1, axis=0) - 2 * points + np.roll(points, -1, axis=0)) / (length / n) ** 2
    if not arc.closed:
        bend[[0, -1]] = 0.0
    return points, bend


def _reentrant(domain: Domain, pieces, size: float) -> np.ndarray:
    """Mask over all points: those within rounding of a corner where the domain's angle is above 180 degrees."""
    points = np.vstack([points for points, _ in pieces])
    ends = np.vstack([p[[0, -1]] for p, _ in pieces])
    inward = np.vstack([p[[1, -2]] - p[[0, -1]] for p, _ in pieces])
    inward /= np.linalg.norm(inward, axis=1, keepdims=True)
    mask = np.zeros(len(points), dtype=bool)
    for i, end in enumerate(ends):
        twins = np.flatnonzero(np.linalg.norm(ends - end, axis=1) < 1e-9 * size)
        between = inward[twins].sum(axis=0)
        # two sides that go straight on leave no direction between them
        if len(twins) == 2 and i == twins[0] and np.linalg.norm(between) > 0.1:
            probe = end + 1e-4 * size * between / np.linalg.norm(between)
            if domain.distance(probe[None])[0] > 1e-6 * size:
                mask |= np.linalg.norm(points - end, axis=1) < 1e-9 * size
    return mask
