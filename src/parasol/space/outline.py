"""What a file keeps of a domain: enough to tell, with NumPy alone, which points lie outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parasol.checks import ParasolError, check_finite, check_shape

if TYPE_CHECKING:
    from parasol.space.geometry.domain import Domain

_MOST = 2000  # segments kept of a boundary
_AT_ONCE = 2**21  # pairs of points and segments looked at together


@dataclass(frozen=True, eq=False)
class Outline:
    """The bounding box of a domain, its periods, and in the plane its boundary as straight segments.

    A domain in space is remembered by its box alone, and so is one with periodic axes: points that lie in the box but
    outside of the domain are not recognised there.

    >>> ends = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> triangle = Outline(np.array([[0.0, 0.0], [1.0, 1.0]]), np.zeros(2), np.stack([ends, np.roll(ends, -1, 0)], 1))
    >>> triangle.contains([[0.2, 0.2], [0.8, 0.8], [0.5, 0.5], [2.0, 0.0]])
    array([ True, False,  True, False])
    """

    bounds: np.ndarray  # (2, dimension)
    periods: np.ndarray  # (dimension,), 0 where not periodic
    segments: np.ndarray | None = None  # (n_segments, 2, 2): start and end of each
    slack: float = 0.0  # how far the boundary may lie from the segments

    part_names = ()  # no walls are known to those who look for neighbours

    def __post_init__(self):
        bounds = check_finite(check_shape(self.bounds, (2, None), "bounds"), "bounds")
        periods = check_finite(check_shape(self.periods, (bounds.shape[1],), "periods"), "periods")
        if not np.all(bounds[0] < bounds[1]) or np.any(periods < 0) or not 0 <= self.slack < np.inf:
            raise ParasolError("the outline of the domain is no outline: its box is empty, or a number in it negative.")
        if self.segments is not None:
            check_finite(check_shape(self.segments, (None, 2, 2), "segments"), "segments")

    def contains(self, points) -> np.ndarray:
        """Whether each point is inside, or as near to the boundary as its segments are: (n,) bool."""
        points = check_shape(points, (None, self.bounds.shape[1]), "points")
        reach = self.slack + 1e-9 * float(np.linalg.norm(self.bounds[1] - self.bounds[0]))
        low, high = self.bounds
        inside = np.all((self.periods > 0) | ((points >= low - reach) & (points <= high + reach)), axis=1)
        if self.segments is None:
            return inside
        for part in np.array_split(np.flatnonzero(inside), 1 + inside.sum() * len(self.segments) // _AT_ONCE):
            inside[part] = self._enclosed(points[part, None, :], reach)
        return inside

    def _enclosed(self, points: np.ndarray, reach: float) -> np.ndarray:
        """Inside by the number of segments that a ray to the right crosses, or within reach of one: (n,) of (n, 1, 2)."""
        assert self.segments is not None
        start, end = self.segments[:, 0], self.segments[:, 1]
        along, away = end - start, points - start
        above = points[..., 1] >= start[:, 1]
        crossing = above != (points[..., 1] >= end[:, 1])
        left = along[:, 0] * away[..., 1] - along[:, 1] * away[..., 0] > 0
        odd = np.count_nonzero(crossing & (left == above), axis=1) % 2 == 1
        part = np.sum(along * away, axis=2) / np.maximum(np.sum(along * along, axis=1), 1e-300)
        gap = away - np.clip(part, 0.0, 1.0)[..., None] * along
        return odd | (np.min(np.sum(gap * gap, axis=2), axis=1) <= reach**2)


def outline_of(domain: Domain) -> Outline:
    """The outline of a domain.

    >>> from parasol.space.geometry.primitives import Disc
    >>> disc = outline_of(Disc())
    >>> disc.contains([[0.0, 0.99999], [0.0, 1.0001]]), bool(disc.slack < 1e-5)
    (array([ True, False]), True)
    """
    bounds, periods = np.array(domain.bounds, dtype=float), np.array(domain.periods, dtype=float)
    if domain.dimension != 2 or periods.any():
        return Outline(bounds, periods)
    arcs = [np.concatenate([arc.points, arc.points[:1]]) if arc.closed else arc.points for arc in domain.arcs()]
    step = 1 + sum(len(arc) for arc in arcs) // _MOST
    segments, slack = [], 0.0
    for arc in arcs:
        kept = np.append(np.arange(0, len(arc) - 1, step), len(arc) - 1)
        segments.append(np.stack([arc[kept[:-1]], arc[kept[1:]]], axis=1))
        start, end = (np.repeat(ends, np.diff(kept), axis=0) for ends in (arc[kept[:-1]], arc[kept[1:]]))
        along, away = end - start, arc[:-1] - start
        height = np.abs(along[:, 0] * away[:, 1] - along[:, 1] * away[:, 0])
        slack = max(slack, float(np.max(height / np.maximum(np.linalg.norm(along, axis=1), 1e-300))))
    return Outline(bounds, periods, np.concatenate(segments), slack)
