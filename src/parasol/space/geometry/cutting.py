"""Arcs of plane domains, cut to those that bound their combination."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.spatial import KDTree

from parasol.space.geometry.domain import Arc, Domain

SAMPLES = 2000  # points per diagonal of the bounding box on the arcs to be cut


class Verdict(NamedTuple):
    """What a combination says about boundary points of one of its domains, all (n,)."""

    kept: np.ndarray  # whether they bound the combination
    gap: np.ndarray  # how far they are from being cut away, negative where they are
    coincide: np.ndarray  # whether another domain's boundary runs along there
    repeats: np.ndarray  # whether that of an earlier domain does, which then stands for both


@dataclass(frozen=True, eq=False)
class Cutter:
    """Cuts the arcs of domains where `kept` says that they leave the boundary of the combination.

    `kept` takes boundary points of one domain and its number. `flips` are the signs that turn the domains' outward
    normals into those of the combination, `size` the length that lengths are small or large against.
    """

    domains: tuple[Domain, ...]
    kept: Callable[[np.ndarray, int], Verdict]
    flips: np.ndarray
    size: float

    def pieces(self) -> tuple[list[Arc], list[int]]:
        """Pieces of the arcs with the combination on their left, and the number of the domain each belongs to."""
        arcs = [domain.arcs() if domain.part_names else () for domain in self.domains]
        ends = [arc.points[[0, -1]] for several in arcs for arc in several if not arc.closed]
        corners = KDTree(np.concatenate(ends)) if ends else None
        pieces, owners = [], []
        for which, several in enumerate(arcs):
            for arc in several:
                arc_pieces = self._cut(self._dense(arc, which), which, corners)
                pieces += arc_pieces
                owners += [which] * len(arc_pieces)
        return pieces, owners

    def _dense(self, arc: Arc, which: int) -> Arc:
        """The arc with long segments divided, and turned so that the combination lies on its left."""
        domain = self.domains[which]
        start, end = arc.segments
        count = np.maximum(1, np.ceil(np.linalg.norm(end - start, axis=1) * SAMPLES / self.size)).astype(int)
        if count.max() > 1:
            segment = np.repeat(np.arange(len(start)), count)
            share = (np.arange(len(segment)) - np.repeat(np.cumsum(count) - count, count)) / count[segment]
            points = start[segment] + share[:, None] * (end - start)[segment]
            points[share > 0] = domain.project(points[share > 0])
            arc = Arc(points if arc.closed else np.concatenate([points, end[-1:]]), arc.closed)
        middle = len(arc.points) // 2
        along = arc.points[middle] - arc.points[middle - 1]
        normal = self.flips[which] * domain.normal(0.5 * (arc.points[middle] + arc.points[middle - 1])[None])[0]
        return arc if along[0] * normal[1] - along[1] * normal[0] < 0 else Arc(arc.points[::-1].copy(), arc.closed)

    def _cut(self, arc: Arc, which: int, corners: KDTree | None) -> list[Arc]:
        """The pieces of one arc that bound the combination, their ends exact."""
        points = arc.points
        kept, _, coincide, repeats = self.kept(points, which)
        lone = coincide & ~np.roll(coincide, 1) & ~np.roll(coincide, -1)
        kept[lone & np.roll(kept, 1) & np.roll(kept, -1)] = True
        kept &= ~repeats | lone
        if kept.all():
            return [arc]
        if arc.closed:
            turn = np.flatnonzero(~kept)[0]
            order = np.append(np.roll(np.arange(len(points)), -turn), turn)
            points, kept, coincide = points[order], kept[order], coincide[order]
        starts = np.flatnonzero(np.diff(np.concatenate([[False], kept])).astype(bool) & kept)
        stops = np.flatnonzero(np.diff(np.concatenate([kept, [False]])).astype(bool) & kept)
        inner = np.concatenate([starts, stops])
        outer = np.concatenate([starts - 1, stops + 1])
        open_end = (outer < 0) | (outer >= len(points))  # the arc's own end, nothing to cut
        outer[open_end] = inner[open_end]
        ends = self._crossings(points[inner], points[outer], which, coincide[outer] | coincide[inner], corners)
        ends[open_end] = points[inner[open_end]]
        pieces = []
        for k, (first, last) in enumerate(zip(starts, stops, strict=True)):
            piece = np.concatenate([ends[[k]], points[first : last + 1], ends[[k + len(starts)]]])
            steps = np.linalg.norm(np.diff(piece, axis=0), axis=1)
            if steps.sum() > 1e-9 * self.size:
                # a cut that fell on a sample leaves two equal points: the exact end stays
                long = steps > 1e-9 * self.size
                keep = np.concatenate([[True], long[:-1], [True]])
                keep[-2] &= long[-1]
                pieces.append(Arc(piece[keep], closed=False))
        return pieces

    def _crossings(self, inner, outer, which: int, together: np.ndarray, corners: KDTree | None) -> np.ndarray:
        """Where ways from kept boundary points to ones cut away leave the combined boundary: (n, 2)."""
        domain = self.domains[which]
        low, high = np.zeros((len(inner), 1)), np.ones((len(inner), 1))
        for _ in range(44):
            middle = 0.5 * (low + high)
            kept, gap, _, repeats = self.kept(domain.project(inner + middle * (outer - inner)), which)
            # where the boundaries run together for a while the gap is but rounding, elsewhere its sign is exact
            stays = np.where(together, kept & ~repeats, gap >= 0)[:, None]
            low, high = np.where(stays, middle, low), np.where(stays, high, middle)
        points = domain.project(inner + 0.5 * (low + high) * (outer - inner))
        if corners is not None:
            away, number = corners.query(points)
            points = np.where(away[:, None] < 1e-8 * self.size, corners.data[number], points)
        return points


def join(pieces: list[Arc], tolerance: float) -> list[Arc]:
    """Pieces joined where one ends, another begins and the direction is the same.

    >>> halves = [Arc(np.array([[x, 0.0], [x + 1, 0.0]]), closed=False) for x in (0.0, 1.0)]
    >>> [arc.points.tolist() for arc in join(halves, 1e-9)]
    [[[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]]
    """
    done = [arc for arc in pieces if arc.closed]
    open_arcs = [arc.points for arc in pieces if not arc.closed]
    while open_arcs:
        points = open_arcs.pop()
        k = 0
        while k < len(open_arcs):
            if _goes_on(points, open_arcs[k], tolerance):
                points, k = np.concatenate([points[:-1], open_arcs.pop(k)]), 0
            elif _goes_on(open_arcs[k], points, tolerance):
                points, k = np.concatenate([open_arcs.pop(k)[:-1], points]), 0
            else:
                k += 1
        closed = len(points) > 8 and _goes_on(points, points, tolerance)
        done.append(Arc(points[:-1] if closed else points, closed))
    return done


def _goes_on(one: np.ndarray, other: np.ndarray, tolerance: float) -> bool:
    """Whether `other` begins where `one` ends, in the same direction."""
    if np.linalg.norm(one[-1] - other[0]) > tolerance:
        return False
    before, after = one[-1] - one[-2], other[1] - other[0]
    lengths = np.linalg.norm(before) * np.linalg.norm(after)
    # two neighbouring chords of a dense smooth curve differ by far less than this angle
    return bool(before @ after > np.cos(0.01) * lengths)
