"""Which nodes a stencil takes: the nearest that can be seen, across periodic faces but not through walls."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from parasol.checks import ParasolWarning
from parasol.space.geometry.domain import Domain, Named
from parasol.space.geometry.primitives import Ball, Box
from parasol.space.stencils import n_workers
from parasol.space.wrap import Wrap

_SAMPLES = np.linspace(0.05, 0.95, 19)  # where a line of sight is looked at
_GRAZE = 0.25  # how deep, in units of the spacing, it may cut a corner of the outside


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points to take neighbours from. Ghost points lie outside the domain; their `anchors` are their boundary nodes."""

    points: np.ndarray  # (n, dimension)
    domain: Domain | None = None
    anchors: np.ndarray | None = None  # (n, dimension)

    @property
    def wrap(self) -> Wrap:
        """How distances are measured."""
        zeros = np.zeros(self.points.shape[1])
        return Wrap(zeros, zeros) if self.domain is None else Wrap.of(self.domain)

    def nearest(self, centers: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        """The `count` nearest visible points of every center: indices (n_centers, count), nearest first, and distances.

        Where fewer can be seen the nearest hidden ones fill up.
        """
        wrap = self.wrap
        tree = wrap.tree(self.points)
        workers = n_workers(len(centers) // 1000)
        distance, index = wrap.query(tree, centers, count, workers=workers)
        if self.domain is None or not self.domain.part_names or _convex(self.domain):
            return index, distance
        blocked = np.flatnonzero(np.any(self._hidden(centers, index, distance), axis=1))
        if len(blocked):
            more = min(3 * count, len(self.points))
            far, candidates = wrap.query(tree, centers[blocked], more, workers=workers)
            hidden = self._hidden(centers[blocked], candidates, far)
            blind = np.count_nonzero(np.sum(~hidden, axis=1) < count)
            if blind:
                warnings.warn(
                    f"{blind} of {len(centers)} stencils of {count} nodes find too few on their side of a wall and take others: "
                    f"the solution may leak through. Use more nodes, or a smaller stencil.",
                    ParasolWarning,
                    stacklevel=3,
                )
            order = np.argsort(np.where(hidden, np.inf, far), axis=1, kind="stable")[:, :count]
            index[blocked] = np.take_along_axis(candidates, order, axis=1)
            distance[blocked] = np.take_along_axis(far, order, axis=1)
        return index, distance

    def _hidden(self, centers: np.ndarray, index: np.ndarray, distance: np.ndarray) -> np.ndarray:
        """(n_centers, count) bool: points behind a wall.

        A line of sight stays inside if the balls around its ends that touch the boundary cover it. Otherwise it is
        sampled: it is blocked where it goes deep outside, or leaves and re-enters through walls that face each other.
        """
        domain = self.domain
        assert domain is not None
        anchors = self.points if self.anchors is None else self.anchors
        offsets = self.wrap.shortest(anchors[index] - centers[:, None, :])
        length = np.linalg.norm(offsets, axis=2)
        depth_of_center = np.maximum(-domain.distance(centers), 0.0)
        depth_of_point = np.maximum(-domain.distance(anchors), 0.0)
        row, column = np.nonzero(length > depth_of_center[:, None] + depth_of_point[index])
        hidden = np.zeros(index.shape, dtype=bool)
        if len(row) == 0:
            return hidden
        lines = centers[row, None, :] + _SAMPLES[None, :, None] * offsets[row, column][:, None, :]
        outside = ~domain.contains(lines.reshape(-1, lines.shape[2])).reshape(lines.shape[:2])
        leaves = np.flatnonzero(np.any(outside, axis=1))
        if len(leaves):
            out, lines, row, column = outside[leaves], lines[leaves], row[leaves], column[leaves]
            depth = np.zeros(out.shape)
            depth[out] = domain.distance(lines[out])
            each = np.arange(len(out))
            entry = domain.normal(lines[each, np.argmax(out, axis=1)])
            reentry = domain.normal(lines[each, out.shape[1] - 1 - np.argmax(out[:, ::-1], axis=1)])
            facing = np.sum(entry * reentry, axis=1) < 0
            spacing = distance[row, min(1, distance.shape[1] - 1)]
            hidden[row, column] = facing | (np.max(depth, axis=1) > _GRAZE * spacing)
        return hidden


def _convex(domain: Domain) -> bool:
    """Whether every point sees every other."""
    while isinstance(domain, Named):
        domain = domain.base
    return isinstance(domain, Box | Ball)
