"""Polygons, and what any closed line of points has to satisfy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial import KDTree

from parasol.checks import check_finite, check_shape
from parasol.errors import InputError
from parasol.space.geometry.domain import Arc, Domain


@dataclass(frozen=True, eq=False)
class Polygon(Domain):
    """The inside of a simple polygon with vertices (m, 2), in either direction.

    >>> triangle = Polygon([(0, 0), (4, 0), (0, 3)])
    >>> triangle.volume(), triangle.distance([[1.0, 1.0], [1.0, -2.0]]).tolist()
    (6.0, [-1.0, 2.0])
    """

    vertices: np.ndarray | Sequence

    dimension = 2

    def __post_init__(self):
        vertices = check_loop(self.vertices, "a polygon")
        if crosses_itself(vertices):
            raise InputError("the polygon crosses or touches itself. Give the vertices in order along the boundary.")
        object.__setattr__(self, "vertices", vertices if area(vertices) > 0 else vertices[::-1].copy())

    @cached_property
    def bounds(self) -> np.ndarray:
        return np.array([np.min(self.vertices, axis=0), np.max(self.vertices, axis=0)])

    @cached_property
    def _sides(self) -> tuple[np.ndarray, np.ndarray]:
        start = np.asarray(self.vertices)
        return start, np.roll(start, -1, axis=0)

    def contains(self, points) -> np.ndarray:
        return self.distance(points) <= 1e-12 * self.size

    def distance(self, points) -> np.ndarray:
        points = self.check_points(points)
        away = np.linalg.norm(points - nearest_on_segments(points, *self._sides)[0], axis=1)
        return np.where(_even_odd(points, *self._sides), -away, away)

    def project(self, points) -> np.ndarray:
        return nearest_on_segments(self.check_points(points), *self._sides)[0]

    def normal(self, points) -> np.ndarray:
        """Outward unit normal of the nearest side, at a corner of the one listed first: (n, 2)."""
        start, end = self._sides
        along = (end - start)[nearest_on_segments(self.check_points(points), start, end)[1]]
        return np.stack([along[:, 1], -along[:, 0]], axis=1) / np.linalg.norm(along, axis=1, keepdims=True)

    def volume(self) -> float:
        """Area by the shoelace formula."""
        return area(np.asarray(self.vertices))

    def _arcs(self) -> tuple[Arc, ...]:
        """One arc per side, counterclockwise."""
        return tuple(Arc(np.array(ends), closed=False) for ends in zip(*self._sides, strict=True))


def nearest_on_segments(points: np.ndarray, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nearest point (n, 2) on straight segments, and the number (n,) of its segment, the first one where several tie.

    >>> nearest_on_segments(np.array([[1.0, 2.0]]), np.array([[0.0, 0.0]]), np.array([[3.0, 0.0]]))[0].tolist()
    [[1.0, 0.0]]
    """
    along = end - start
    length2 = np.sum(along**2, axis=1)
    feet = np.empty_like(points)
    number = np.empty(len(points), dtype=int)
    for part in _chunks(points, start):
        x = points[part]
        share = ((x @ along.T) - np.sum(start * along, axis=1)) / length2
        share = np.clip(share, 0.0, 1.0)
        gap_x = start[:, 0] + share * along[:, 0] - x[:, :1]
        gap_y = start[:, 1] + share * along[:, 1] - x[:, 1:]
        gap = np.hypot(gap_x, gap_y)
        least = gap.min(axis=1, keepdims=True)
        # a corner belongs to both its sides up to rounding: the side listed first is to win, not the luckier one
        best = np.argmax(gap <= least + 1e-13 * (least + np.sqrt(length2.max())), axis=1)
        s = np.take_along_axis(share, best[:, None], axis=1)
        # start and end are hit exactly, so that a corner is the same point from either side
        feet[part] = np.where(s < 1, start[best] + s * along[best], end[best])
        number[part] = best
    return feet, number


def _even_odd(points: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Whether a ray to the right crosses the sides an odd number of times: (n,) bool."""
    inside = np.zeros(len(points), dtype=bool)
    rise = end[:, 1] - start[:, 1]
    slope = (end[:, 0] - start[:, 0]) / np.where(rise == 0, 1.0, rise)
    for part in _chunks(points, start):
        x, y = points[part, :1], points[part, 1:]
        spans = (start[:, 1] > y) != (end[:, 1] > y)
        inside[part] = np.sum(spans & (x < start[:, 0] + (y - start[:, 1]) * slope), axis=1) % 2 == 1
    return inside


def _chunks(points: np.ndarray, segments: np.ndarray) -> list[slice]:
    """Pieces of the points that keep tables of (points, segments) to some tens of megabytes."""
    size = max(1, 2_000_000 // len(segments))
    return [slice(first, first + size) for first in range(0, len(points), size)]


def check_loop(points, name: str) -> np.ndarray:
    """Points (m, 2) without a repeated last one, or a clear error."""
    points = check_finite(check_shape(points, (None, 2), "points"), "points")
    if len(points) > 1 and np.array_equal(points[0], points[-1]):
        points = points[:-1]
    if len(points) < 3:
        raise InputError(f"{name} needs at least 3 different points, got {len(points)}.")
    size = float(np.linalg.norm(np.ptp(points, axis=0)))
    if np.linalg.norm(points - np.roll(points, 1, axis=0), axis=1).min() <= 1e-12 * size:
        raise InputError(f"{name} has the same point twice in a row. Remove one of them.")
    if abs(area(points)) <= 1e-12 * size**2:
        raise InputError(f"{name} through these {len(points)} points encloses no area. Give points around a region.")
    return points.copy()


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a_x b_y - a_y b_x of plane vectors (..., 2)."""
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def area(points: np.ndarray) -> float:
    """Area within a closed line of points (m, 2), negative if it runs clockwise.

    >>> area(np.array([[0.0, 0.0], [0.0, 3.0], [4.0, 0.0]]))
    -6.0
    """
    centered = points - points.mean(axis=0)
    return float(0.5 * np.sum(cross(centered, np.roll(centered, -1, axis=0))))


def crosses_itself(points: np.ndarray) -> bool:
    """Whether any two sides of a closed polygon meet that are not neighbours, or neighbours fold back."""
    n = len(points)
    along = np.roll(points, -1, axis=0) - points
    before = np.roll(along, 1, axis=0)
    scale = np.linalg.norm(along, axis=1) * np.linalg.norm(before, axis=1)
    if np.any((np.abs(cross(before, along)) <= 1e-14 * scale) & (np.sum(before * along, axis=1) < 0)):
        return True
    # sides that meet have midpoints no further apart than the longest side
    tree = KDTree(points + 0.5 * along)
    pairs = tree.query_pairs(np.linalg.norm(along, axis=1).max() * (1 + 1e-12), output_type="ndarray")
    i, j = pairs.T if len(pairs) else np.zeros((2, 0), dtype=int)
    apart = (j - i > 1) & (j - i < n - 1)
    i, j = i[apart], j[apart]
    p, q, r, s = points[i], along[i], points[j], along[j]
    sides = [cross(q, r - p), cross(q, r + s - p), cross(s, p - r), cross(s, p + q - r)]
    meet = (sides[0] * sides[1] <= 0) & (sides[2] * sides[3] <= 0)
    # collinear sides have all four zero and meet only if their extents overlap
    overlap = (
        np.maximum(np.minimum(p, p + q), np.minimum(r, r + s)) <= np.minimum(np.maximum(p, p + q), np.maximum(r, r + s))
    ).all(1)
    return bool(np.any(meet & overlap))
