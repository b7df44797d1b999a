"""Domains and their outlines: which points lie outside, and where walls stand between neighbouring nodes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from scipy.spatial import KDTree

from parasol.checks import check_shape
from parasol.runtime.outline import Outline, height
from parasol.space.geometry.combine import Combination
from parasol.space.geometry.domain import Domain, Wrapper
from parasol.space.geometry.primitives import Ball, Box
from parasol.space.neighbours import is_convex
from parasol.space.wrap import Wrap

_MOST = 2000  # segments kept of a boundary
_AT_ONCE = 2**21  # pairs of points and segments looked at together
_DISCS = 8000  # about as many points are kept of a surface in space
_NEAR = 8  # pieces of the boundary among which the nearest is looked for
_OFF = 0.02  # of the spacing of points on a surface: those nearer to an edge are left out
_MARGIN = 1.2  # the boundary may lie farther from its pieces than where that was measured
_FARTHER = 0.05  # weight of the distance against that of the direction, where several pieces are about as near


@dataclass(frozen=True, eq=False)
class OutlinedDomain:
    """A domain of which no more is known than its outline: it answers what those who look for neighbours ask a domain.

    Which points lie inside is exact in space too where the domain is a solid of boxes and balls.

    >>> ends = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> outline = Outline(np.array([[0.0, 0.0], [1.0, 1.0]]), np.zeros(2), np.stack([ends, np.roll(ends, -1, 0)], 1))
    >>> triangle = OutlinedDomain(outline)
    >>> triangle.contains([[0.2, 0.2], [0.8, 0.8], [0.5, 0.5], [2.0, 0.0]])
    array([ True, False,  True, False])
    >>> triangle.distance(np.array([[0.1, 0.5], [-0.3, -0.4]]))
    array([-0.1,  0.5])
    """

    outline: Outline

    @property
    def bounds(self) -> np.ndarray:
        """The box around it, (2, dimension)."""
        return self.outline.bounds

    @property
    def periods(self) -> np.ndarray:
        """Of each axis, 0 where it is not periodic."""
        return self.outline.periods

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.outline.dimension

    @property
    def part_names(self) -> tuple[str, ...]:
        """Those who look for neighbours look for walls where a boundary has a name."""
        return (
            ()
            if self.outline.convex or (self.outline.segments is None and self.outline.discs is None)
            else ("boundary",)
        )

    def contains(self, points) -> np.ndarray:
        """Whether each point is inside, or as near to the boundary as its pieces are: (n,) bool."""
        points = check_shape(points, (None, self.dimension), "points")
        size = float(np.linalg.norm(self.outline.bounds[1] - self.outline.bounds[0]))
        if self.outline.solid is not None:
            return height(self.outline.solid, points) <= 1e-9 * size
        reach = self.outline.slack + 1e-9 * size
        low, high = self.outline.bounds
        inside = np.all((self.outline.periods > 0) | ((points >= low - reach) & (points <= high + reach)), axis=1)
        if self.outline.discs is not None:
            inside[inside] = self.distance(points[inside]) <= reach - self.outline.slack
        if self.outline.segments is None:
            return inside
        for part in np.array_split(np.flatnonzero(inside), 1 + inside.sum() * len(self.outline.segments) // _AT_ONCE):
            inside[part] = self._enclosed(points[part, None, :], reach)
        return inside

    def distance(self, points) -> np.ndarray:
        """Signed distance to the pieces, moved outwards by the slack: all of the domain has a negative one, (n,)."""
        return self._nearest(points)[0] - self.outline.slack

    def normal(self, points) -> np.ndarray:
        """Outward unit normal of the nearest piece of the boundary: (n, dimension)."""
        return self._pieces[1][self._nearest(points)[1]]

    def _nearest(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Signed distances (n,) to the boundary, and its nearest pieces (n,)."""
        centres, normals, radii, same, tree, wrap = self._pieces
        if not len(points):
            return np.zeros(0), np.zeros(0, dtype=int)
        _, index = wrap.query(tree, points, min(_NEAR, len(centres)))
        away = wrap.shortest(points[:, None, :] - centres[index])
        height = np.einsum("nki,nki->nk", away, normals[index])
        aside = np.sqrt(np.maximum(np.einsum("nki,nki->nk", away, away) - height**2, 0.0))
        gap = np.hypot(height, np.maximum(aside - radii[index], 0.0))
        least = gap.min(axis=1, keepdims=True)
        # Beside an edge the nearest piece may be seen from its rim, and its normal does not tell inside from outside:
        # of those about as near the one that is seen most from above does.
        steep = np.abs(height) / np.maximum(gap, 1e-300) - _FARTHER * (gap - least) / same
        best = np.argmax(np.where(gap <= least + same, steep, -np.inf), axis=1)[:, None]
        sign = np.where(np.take_along_axis(height, best, 1) > 0, 1.0, -1.0)
        return (sign * least)[:, 0], np.take_along_axis(index, best, 1)[:, 0]

    @cached_property
    def _pieces(self):
        """Centres, outward normals and radii of all pieces, the distance below which two are equally near, their tree."""
        wrap = Wrap(self.outline.bounds[0], self.outline.periods)
        if self.outline.discs is not None:
            assert self.outline.normals is not None
            assert self.outline.radii is not None
            same = max(float(self.outline.radii.max()), 1e-300)
            return (
                self.outline.discs,
                self.outline.normals,
                self.outline.radii,
                same,
                wrap.tree(self.outline.discs),
                wrap,
            )
        assert self.outline.segments is not None
        size = float(np.linalg.norm(self.outline.bounds[1] - self.outline.bounds[0]))
        start, end = self.outline.segments[:, 0], self.outline.segments[:, 1]
        length = np.linalg.norm(end - start, axis=1)
        centres, normals, radii = _divided(start[length > 0], end[length > 0], length.sum() / _MOST)
        # which side is outside is asked a little off the middle of each piece, less than the width of any slit
        inwards = np.empty(len(centres), dtype=bool)
        for part in np.array_split(np.arange(len(centres)), 1 + len(centres) * len(start) // _AT_ONCE):
            inwards[part] = self._odd((centres + 1e-7 * size * normals)[part, None, :])
        normals = np.where(inwards[:, None], -normals, normals)
        return centres, normals, radii, 1e-9 * size, wrap.tree(centres), wrap

    def _enclosed(self, points: np.ndarray, reach: float) -> np.ndarray:
        """Inside the segments, or within reach of one: (n,) of (n, 1, 2)."""
        assert self.outline.segments is not None
        start, end = self.outline.segments[:, 0], self.outline.segments[:, 1]
        inside = self._odd(points)
        rest = np.flatnonzero(~inside)  # distances are asked of those only that are not inside anyway: they cost most
        along, away = end - start, points[rest] - start
        part = np.sum(along * away, axis=2) / np.maximum(np.sum(along * along, axis=1), 1e-300)
        gap = away - np.clip(part, 0.0, 1.0)[..., None] * along
        inside[rest] = np.min(np.sum(gap * gap, axis=2), axis=1) <= reach**2
        return inside

    def _odd(self, points: np.ndarray) -> np.ndarray:
        """Inside by the number of segments that a ray to the right crosses: (n,) of (n, 1, 2)."""
        assert self.outline.segments is not None
        start, end = self.outline.segments[:, 0], self.outline.segments[:, 1]
        above = points[..., 1] >= start[:, 1]
        # few segments are as high as a point
        row, column = np.nonzero(above != (points[..., 1] >= end[:, 1]))
        along, away = (end - start)[column], points[row, 0] - start[column]
        left = along[:, 0] * away[:, 1] - along[:, 1] * away[:, 0] > 0
        return np.bincount(row, weights=left == above[row, column], minlength=len(points)) % 2 == 1


def _solid(domain: Domain) -> tuple | None:
    """The domain as `height` reads it; None of one that is not made of boxes and balls."""
    if isinstance(domain, Wrapper):
        return _solid(domain.base)
    if isinstance(domain, Box):
        return None if domain.periods.any() else ("box", np.array(domain.lower), np.array(domain.upper))
    if isinstance(domain, Ball):
        return ("ball", np.array(domain.center), float(domain.radius))
    if not isinstance(domain, Combination):
        return None
    one, other = _solid(domain.a), _solid(domain.b)
    return None if one is None or other is None else (domain.kind, one, other)


@lru_cache(maxsize=8)  # learning fits many surrogates on one domain
def outline_of(domain: Domain) -> Outline:
    """The outline of a domain.

    >>> from parasol.space.geometry.primitives import Disc
    >>> disc = outline_of(Disc())
    >>> OutlinedDomain(disc).contains([[0.0, 0.99999], [0.0, 1.0001]]), bool(disc.slack < 1e-5)
    (array([ True, False]), True)
    """
    bounds, periods = np.array(domain.bounds, dtype=float), np.array(domain.periods, dtype=float)
    convex = is_convex(domain)
    if domain.dimension == 1 or not domain.part_names:
        return Outline(bounds, periods, convex=convex)
    if domain.dimension == 3:
        rng = np.random.default_rng(0)
        spacing = 0.2 * float(np.ptp(bounds, axis=0).min())
        spacing *= (len(domain.boundary_cloud(spacing, rng)) / _DISCS) ** 0.5
        centres, probes = domain.boundary_cloud(spacing, rng), domain.boundary_cloud(0.83 * spacing, rng)
        rough = Outline(bounds, periods, None, 0.0, convex, *_discs(domain, centres, spacing), _solid(domain))
    else:
        arcs = [np.concatenate([arc.points, arc.points[:1]]) if arc.closed else arc.points for arc in domain.arcs()]
        step = 1 + sum(len(arc) for arc in arcs) // _MOST
        kept = [np.append(np.arange(0, len(arc) - 1, step), len(arc) - 1) for arc in arcs]
        ends = [np.stack([arc[k[:-1]], arc[k[1:]]], axis=1) for arc, k in zip(arcs, kept, strict=True)]
        segments = np.concatenate(ends)
        start, end = segments[:, 0], segments[:, 1]
        centres, _, half = _divided(start, end, np.linalg.norm(end - start, axis=1).sum() / _MOST)
        probes = np.concatenate([domain.project(centres), *arcs])
        if periods.any():  # inside is not what the segments enclose
            rough = Outline(bounds, periods, None, 0.0, convex, centres, domain.normal(centres), half)
        else:
            rough = Outline(bounds, periods, segments, 0.0, convex)
    return replace(rough, slack=_MARGIN * max(0.0, float(OutlinedDomain(rough).distance(probes).max())))


def _discs(domain: Domain, cloud: np.ndarray, spacing: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centres (m, 3), normals (m, 3) and radii (m,) of discs that cover a surface, from its cloud of points.

    A point on an edge, where sides meet, has the normal of one of them, which says of few points whether they are
    inside. It is moved a little to either side. No disc reaches across an edge.
    """
    reach = _OFF * spacing

    def seen(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Normals, and which of the points are no nearer than `reach` to an edge."""
        normals = domain.normal(points)
        clear = [np.abs(domain.distance(points + step * normals)) > 0.9 * reach for step in (reach, -reach)]
        return normals, clear[0] & clear[1]

    normals, smooth = seen(cloud)
    edge, step = cloud[~smooth], 3 * reach * normals[~smooth]
    beside = domain.project(np.concatenate([edge + step, edge - step]))
    more, fine = seen(beside)
    centres, normals = (np.concatenate(pair) for pair in ((cloud[smooth], beside[fine]), (normals[smooth], more[fine])))
    # no point of the surface is further than a quarter of the spacing from the next of the cloud
    radii = np.full(len(centres), 0.25 * spacing + reach)
    if len(edge):
        radii = np.minimum(radii, KDTree(edge).query(centres)[0])
    return centres, normals.astype(np.float32), radii.astype(np.float32)


def _divided(start: np.ndarray, end: np.ndarray, longest: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Segments cut to pieces no longer than `longest`: their centres (m, 2), unit normals (m, 2), half lengths (m,)."""
    length = np.linalg.norm(end - start, axis=1)
    count = np.maximum(1, np.ceil(length / longest)).astype(int)
    along = np.repeat((end - start) / count[:, None], count, axis=0)
    number = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    centres = np.repeat(start, count, axis=0) + (number + 0.5)[:, None] * along
    half = 0.5 * np.linalg.norm(along, axis=1)
    normals = np.stack([along[:, 1], -along[:, 0]], axis=1) / np.maximum(2 * half, 1e-300)[:, None]
    return centres, normals, half
