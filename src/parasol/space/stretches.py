"""The boundary of a plane domain, cut where its named parts begin and end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parasol.space.geometry.domain import Arc, Domain

_FEWEST = 4  # places on an arc at which its parts are asked for
_HALVINGS = 36  # of the distance between two such places


@dataclass(frozen=True, eq=False)
class Stretch:
    """A piece of an arc, between two lengths along it, all of which lies on the same named parts.

    A stretch of a closed arc may begin before its last point and end after its first: there `stop` exceeds the length
    of the arc.
    """

    line: _Line  # of the whole arc
    start: float
    stop: float
    parts: np.ndarray  # (n_parts,) bool

    def at(self, length) -> np.ndarray:
        """Points of the polyline at lengths along the arc, (n, 2)."""
        return self.line.at(length)


def stretches(domain: Domain, step: float) -> list[list[Stretch]]:
    """The stretches of every arc, in order along it.

    Parts are asked for at places no further apart than `step`, and where they differ the cut is found by bisection: to
    rounding, but what is shorter than `step` may be missed.

    >>> from parasol.space.geometry.primitives import Disc
    >>> (found,) = stretches(Disc().named(right="x > 0.5"), 0.1)
    >>> [round(s.stop - s.start, 6) for s in found], [s.parts.tolist() for s in found]  # 4π/3 and 2π/3
    ([4.18879, 2.094395], [[False, True], [True, False]])
    """
    lines = [_Line.of(arc) for arc in domain.arcs()]
    places = [line.places(step) for line in lines]
    rows = _parts(domain, lines, places)
    before = [np.flatnonzero(np.any(row[1:] != row[:-1], axis=1)) for row in rows]
    low = [at[i] for at, i in zip(places, before, strict=True)]
    high = [at[i + 1] for at, i in zip(places, before, strict=True)]
    for _ in range(_HALVINGS if any(map(len, before)) else 0):
        middle = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
        now = _parts(domain, lines, middle)
        same = [np.all(row == all_[i], axis=1) for row, all_, i in zip(now, rows, before, strict=True)]
        low = [np.where(yes, m, a) for yes, m, a in zip(same, middle, low, strict=True)]
        high = [np.where(yes, b, m) for yes, m, b in zip(same, middle, high, strict=True)]
    return [line.stretches(*found) for line, *found in zip(lines, high, before, rows, strict=True)]


@dataclass(frozen=True, eq=False)
class _Line:
    points: np.ndarray  # (m, 2)
    lengths: np.ndarray  # (m,) along it
    closed: bool

    @classmethod
    def of(cls, arc: Arc) -> _Line:
        points = np.concatenate([arc.points, arc.points[:1]]) if arc.closed else arc.points
        lengths = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
        return cls(points, lengths, arc.closed)

    def at(self, length) -> np.ndarray:
        length = np.asarray(length, dtype=float)
        inside = np.where(length > self.lengths[-1], length - self.lengths[-1], length)
        return np.stack([np.interp(inside, self.lengths, x) for x in self.points.T], axis=1)

    def places(self, step: float) -> np.ndarray:
        """Lengths at which to ask for parts, never in a corner, where several meet; on a closed arc the first again."""
        whole = float(self.lengths[-1])
        n = max(_FEWEST, int(np.ceil(whole / step)))
        return (np.arange(n + self.closed) + 0.5) * whole / n

    def stretches(self, cuts: np.ndarray, before: np.ndarray, rows: np.ndarray) -> list[Stretch]:
        """What lies between the cuts, which come after the rows `before`."""
        whole = float(self.lengths[-1])
        ends, last = np.concatenate([[0.0], cuts, [whole]]), np.append(before, len(rows) - 1)
        if self.closed and len(cuts):  # the last cut is followed by the first one
            ends, last = np.append(cuts, cuts[0] + whole), np.append(before[1:], len(rows) - 1)
        return [Stretch(self, float(a), float(b), rows[i]) for a, b, i in zip(ends[:-1], ends[1:], last, strict=True)]


def _parts(domain: Domain, lines: list[_Line], lengths: list[np.ndarray]) -> list[np.ndarray]:
    """The parts at lengths along each line, asked for together."""
    points = np.concatenate([line.at(at) for line, at in zip(lines, lengths, strict=True)])
    return np.split(domain.parts(domain.project(points)), np.cumsum([len(at) for at in lengths])[:-1])
