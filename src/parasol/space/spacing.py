"""How fine the nodes should be where: finer at the boundary, finest where it bends into the domain."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.ndimage import map_coordinates
from scipy.spatial.distance import cdist

from parasol.errors import InputError
from parasol.space.geometry.domain import Arc, Domain
from parasol.space.geometry.pieces import arc_lengths, points_along

# Chosen on the flower-shaped domain (docs/decisions/003), where the error sits at the concave pieces of the boundary.
_WALL = 0.6  # spacing at a straight wall, relative to that far inside
_BEND = 0.07  # how much a concave bend of one domain size refines
_GROWTH = 1.4  # increase of the relative spacing over one domain size
_TABLE = 160  # cells of the table along the longest side
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
