"""Which nodes a stencil takes: the nearest that can be seen, across periodic faces but not through walls."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import gamma

import numpy as np

from parasol.space.geometry.domain import Domain
from parasol.space.geometry.primitives import Ball, Box
from parasol.space.sight import OVERLAP, lifted, walk
from parasol.space.stencils import n_workers
from parasol.space.wrap import Depth, Wrap

_GRAZE = 0.25  # how deep, in units of the spacing, a line of sight may cut a corner of the outside
_FARTHEST = 27  # times as many nodes as wanted are looked at, no more


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points to take neighbours from. Ghost points lie outside the domain; their `anchors` are their boundary nodes."""

    points: np.ndarray  # (n, dimension)
    domain: Domain | None = None
    anchors: np.ndarray | None = None  # (n, dimension)
    singular: np.ndarray | None = None  # (m, 2) points of the plane near which stencils are simpler

    @property
    def wrap(self) -> Wrap:
        """How distances are measured."""
        zeros = np.zeros(self.points.shape[1])
        return Wrap(zeros, zeros) if self.domain is None else Wrap.of(self.domain)

    @cached_property
    def _farthest_anchor(self) -> float:
        """How far a ghost may be from its boundary node."""
        if self.anchors is None:
            return 0.0
        return float(np.max(np.linalg.norm(self.wrap.shortest(self.points - self.anchors), axis=1), initial=0.0))

    @cached_property
    def _lifted(self) -> tuple[np.ndarray, np.ndarray]:
        """Places from which the anchors are seen, (n, dimension), and how far those are from the boundary."""
        assert self.domain is not None
        anchors = self.points if self.anchors is None else self.anchors
        distance, _ = self.wrap.query(self.wrap.tree(anchors), anchors, min(4 * anchors.shape[1], len(anchors)))
        return lifted(self.domain, anchors, _GRAZE * _spacing(distance, anchors.shape[1]))

    def nearest(self, centers: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The `count` nearest visible points of every center: indices (n_centers, count), nearest first, and distances.

        Where fewer can be seen, hidden ones fill up; their distance is infinite.
        """
        wrap = self.wrap
        tree = wrap.tree(self.points)
        workers = n_workers(len(centers) // 1000)
        distance, index = wrap.query(tree, centers, count, workers=workers)
        if self.domain is None or not self.domain.part_names or is_convex(self.domain):
            return index, distance
        # a ball without boundary hides nothing: most centers are farther inside than what they look at is away
        reach = distance[:, -1] + self._farthest_anchor
        rows = np.flatnonzero(Depth(self.domain).at_least(centers, reach) < reach)
        room = _GRAZE * _spacing(distance[rows], centers.shape[1])
        eyes, free = np.empty_like(centers), np.empty(len(centers))
        eyes[rows], free[rows] = lifted(self.domain, centers[rows], room)
        far, candidates = distance[rows], index[rows]
        while True:
            hidden = self._hidden(centers[rows], eyes[rows], free[rows], candidates)
            some = np.flatnonzero(np.any(hidden, axis=1))
            rows, far, candidates = rows[some], np.where(hidden[some], np.inf, far[some]), candidates[some]
            order = np.argsort(far, axis=1, kind="stable")[:, :count]
            index[rows] = np.take_along_axis(candidates, order, axis=1)
            distance[rows] = np.take_along_axis(far, order, axis=1)
            rows = rows[np.isinf(distance[rows, -1])]
            more = min(3 * far.shape[1], len(self.points))
            if not len(rows) or more == far.shape[1] or more > _FARTHEST * count:
                return index, distance
            far, candidates = wrap.query(tree, centers[rows], more, workers=workers)

    def _hidden(self, centers: np.ndarray, eyes: np.ndarray, free: np.ndarray, index: np.ndarray) -> np.ndarray:
        """(n_centers, count) bool: points behind a wall. A ghost is seen where its boundary node is.

        Lines run from `eyes`, the lifted centers, which are `free` away from the boundary, to the lifted anchors.
        """
        domain = self.domain
        assert domain is not None
        anchors = self.points if self.anchors is None else self.anchors
        places, depth = self._lifted
        offsets = self.wrap.shortest(anchors[index] - centers[:, None, :])
        offsets += (places - anchors)[index] - (eyes - centers)[:, None, :]
        length = np.linalg.norm(offsets, axis=2)
        hidden = np.zeros(index.shape, dtype=bool)
        row, column = np.nonzero(length > free[:, None] + depth[index])
        if len(row) == 0:
            return hidden
        length, end_depth = length[row, column], depth[index[row, column]]
        direction = offsets[row, column] / length[:, None]
        far = length - OVERLAP * end_depth
        floor = 0.02 * np.minimum(free[row], end_depth)
        hidden[row, column] = (
            walk(domain, eyes[row], direction, free[row], far, np.maximum(floor, 1e-12 * length)) < far
        )
        return hidden


def _spacing(distance: np.ndarray, dimension: int) -> np.ndarray:
    """Mean distance of neighbours, (n,), from the distances (n, count) to the nearest ones, however these lie."""
    volume = np.pi ** (dimension / 2) / gamma(dimension / 2 + 1)
    return distance[:, -1] * (volume / distance.shape[1]) ** (1 / dimension)


def is_convex(domain: Domain) -> bool:
    """Whether every point sees every other. (A convex `Outline`, which stands for a domain, is one without parts.)"""
    return isinstance(domain, Domain) and isinstance(domain.unnamed, Box | Ball)
