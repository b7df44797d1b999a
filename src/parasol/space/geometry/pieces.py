"""The boundary of a plane domain as arcs, cut where one named part ends and another begins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from parasol.space.geometry.domain import Arc, Domain

_SAMPLES = 2000  # places along an arc where its parts are looked up
# a domain is asked again for every spacing
_pieces: WeakKeyDictionary[Domain, tuple[Pieces, ...]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Pieces:
    """An arc cut into pieces, each of which lies on the same parts throughout.

    `points` (m, 2) is the whole polyline, its first point repeated at the end of a closed one. Piece k goes from point
    `cuts[k]` to `cuts[k + 1]` and lies on `parts[k]`. A closed arc that was cut begins at a cut.
    """

    points: np.ndarray
    closed: bool
    cuts: np.ndarray  # (n_pieces + 1,) int
    parts: np.ndarray  # (n_pieces, n_parts) bool

    @property
    def length(self) -> float:
        """Length of the whole polyline."""
        return float(arc_lengths(self.points)[-1])

    def lines(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The polyline (m, 2) of every piece with its parts (n_parts,)."""
        for first, last, parts in zip(self.cuts[:-1], self.cuts[1:], self.parts, strict=True):
            yield self.points[first : last + 1], parts


def arc_lengths(line: np.ndarray) -> np.ndarray:
    """Lengths along a polyline (m, 2) at its points, from 0: (m,)."""
    return np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(line, axis=0), axis=1))])


def points_along(line: np.ndarray, at, places: np.ndarray | None = None) -> np.ndarray:
    """Points of a polyline (m, dimension) at lengths (n,) along it, or by other `places` (m,) of its points: (n, dimension)."""
    places = arc_lengths(line) if places is None else places
    return np.stack([np.interp(at, places, x) for x in line.T], axis=1)


def insert(line: np.ndarray, points: np.ndarray, tolerance: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A polyline (m, dimension) with points (n, dimension) near it made points of it.

    What is farther than the tolerance is left out, what is at a point of the polyline takes its place. Also returned are
    the new numbers of the old points (m,), and those of the points that were near, in order along the line.

    >>> line, old, new = insert(np.array([[0.0, 0.0], [2.0, 0.0]]), np.array([[1.0, 0.0], [5.0, 0.0]]), 1e-6)
    >>> line[:, 0].tolist(), old.tolist(), new.tolist()
    ([0.0, 1.0, 2.0], [0, 2], [1])
    """
    along = np.diff(line, axis=0)
    share = np.einsum("nkd,kd->nk", points[:, None] - line[:-1], along) / np.sum(along**2, axis=1)
    share = np.clip(share, 0.0, 1.0)
    gap = np.linalg.norm(line[:-1] + share[..., None] * along - points[:, None], axis=2)
    segment = np.argmin(gap, axis=1)
    rows = np.arange(len(points))
    near = gap[rows, segment] < tolerance
    places = (segment + share[rows, segment])[near]
    order = np.argsort(places, kind="stable")
    places, points = places[order], points[near][order]
    # a place whose distance from a point of the line is next to nothing is that point
    nearest = np.round(places).astype(int)
    same = np.linalg.norm(line[nearest] - points, axis=1) < 1e-3 * tolerance
    line = line.copy()
    line[nearest[same]] = points[same]
    places = np.where(same, nearest, places)
    index = np.concatenate([np.arange(len(line)), places[~same]])
    joined = np.argsort(index, kind="stable")
    old, new = (np.searchsorted(index[joined], values) for values in (np.arange(len(line)), np.unique(places)))
    return np.concatenate([line, points[~same]])[joined], old, new


def pieces(domain: Domain) -> tuple[Pieces, ...]:
    """The arcs of a plane domain, each with the places where its parts change.

    >>> from parasol.space.geometry.primitives import Disc
    >>> (circle,) = pieces(Disc().named(right="x > 0.6"))
    >>> circle.points[circle.cuts].round(6).tolist()
    [[0.6, 0.8], [0.6, -0.8], [0.6, 0.8]]
    """
    if domain not in _pieces:
        _pieces[domain] = tuple(_cut(domain, arc) for arc in domain.arcs())
    return _pieces[domain]


def _cut(domain: Domain, arc: Arc) -> Pieces:
    """Cut an arc where its parts change; what is shorter than a 2000th of it and not at an end may go unseen."""
    points = arc.line
    if len(domain.part_names) == 1:
        return Pieces(points, arc.closed, np.array([0, len(points) - 1]), np.ones((1, 1), dtype=bool))
    at = (np.arange(_SAMPLES) + 0.5) / _SAMPLES * (len(points) - 1)
    if not arc.closed:  # a part of a neighbouring side may reach round the corner just a little
        near = 1e-6 * domain.size / np.maximum(np.linalg.norm(np.diff(points, axis=0)[[0, -1]], axis=1), 1e-300)
        near = np.minimum(near, 0.5 * at[0])
        at = np.concatenate([near[:1], at, len(points) - 1 - near[1:]])

    def place(at: np.ndarray) -> np.ndarray:
        return points_along(points, at, np.arange(len(points)))

    parts = domain.plain(place(at))[0]
    if arc.closed:
        at, parts = np.append(at, at[0] + len(points) - 1), np.concatenate([parts, parts[:1]])
    changes = np.flatnonzero((parts[1:] != parts[:-1]).any(axis=1))
    if not len(changes):
        return Pieces(points, arc.closed, np.array([0, len(points) - 1]), parts[:1])
    low, high = at[changes], at[changes + 1]
    for _ in range(52):
        middle = (low + high) / 2
        there = domain.plain(domain.project(place(np.mod(middle, len(points) - 1))))[0]
        stays = (there == parts[changes]).all(axis=1)
        low, high = np.where(stays, middle, low), np.where(stays, high, middle)
    cut = np.mod((low + high) / 2, len(points) - 1) if arc.closed else (low + high) / 2
    order = np.argsort(cut)
    cut, masks = cut[order], parts[changes + 1][order]  # what begins at each cut
    inner = domain.project(place(cut))
    index = np.arange(len(points) - (1 if arc.closed else 0), dtype=float)
    clear = np.abs(index[:, None] - cut).min(axis=1) > 1e-9  # a cut at a point of the arc stands for it
    if not arc.closed:
        clear[[0, -1]] = True
    index = np.concatenate([index[clear], cut])
    along = np.argsort(index, kind="stable")
    line = np.concatenate([points[: len(clear)][clear], inner])[along]
    where = np.searchsorted(index[along], cut)
    if not arc.closed:
        ends = np.concatenate([[0], where, [len(line) - 1]])
        return Pieces(line, False, ends, np.concatenate([parts[:1], masks]))
    line = np.roll(line, -where[0], axis=0)
    ends = np.append(where - where[0], len(line))
    return Pieces(np.concatenate([line, line[:1]]), True, ends, masks)
