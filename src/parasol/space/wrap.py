"""Distances: across periodic axes, and from the boundary without asking the domain more often than needed."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.spatial import KDTree


class Wrap:
    """Nearest-neighbour questions in a box of which some axes may be periodic (period 0: an ordinary axis).

    >>> wrap = Wrap(lower=[0.0], periods=[1.0])
    >>> wrap.shortest(np.array([[0.9]]))
    array([[-0.1]])
    """

    def __init__(self, lower, periods):
        self.lower = np.asarray(lower, dtype=float)
        self.periods = np.asarray(periods, dtype=float)
        self.axes = np.flatnonzero(self.periods > 0)

    @classmethod
    def of(cls, domain) -> Wrap:
        """The wrap of a domain: its lower corner and its periods."""
        return cls(domain.bounds[0], domain.periods)

    def fold(self, points: np.ndarray) -> np.ndarray:
        """Bring (n, dimension) points back into the first period of each periodic axis."""
        if self.axes.size == 0:
            return points
        points, lower, periods = points.copy(), self.lower[self.axes], self.periods[self.axes]
        inside = np.mod(points[:, self.axes] - lower, periods)
        points[:, self.axes] = lower + np.where(inside >= periods, 0.0, inside)  # mod of -1e-20 rounds up to the period
        return points

    def shortest(self, difference: np.ndarray) -> np.ndarray:
        """Shortest representative of differences of points, shape (..., dimension)."""
        if self.axes.size:
            difference, periods = difference.copy(), self.periods[self.axes]
            difference[..., self.axes] -= periods * np.round(difference[..., self.axes] / periods)
        return difference

    def tree(self, points: np.ndarray) -> KDTree:
        """A k-d tree of `shifted` points; ask it with `query`, or about points shifted alike."""
        # unbalanced trees build twice as fast and scattered nodes need no balancing
        boxsize = self.periods if self.axes.size else None
        return KDTree(self.shifted(points), boxsize=boxsize, balanced_tree=False, compact_nodes=False)

    def query(self, tree: KDTree, points: np.ndarray, k: int, bound: float = np.inf, workers: int = 1):
        """Distances and indices, both (n, k), of the k nearest points of the tree; missing ones are at infinity."""
        distance, index = tree.query(self.shifted(points), k=k, distance_upper_bound=bound, workers=workers)
        return distance.reshape(len(points), k), index.reshape(len(points), k)

    def shifted(self, points: np.ndarray) -> np.ndarray:
        """Points as a tree wants them: where there are periodic axes, folded and counted from the lower corner."""
        if self.axes.size == 0:
            return points
        shifted = self.fold(points) - self.lower
        return np.where((self.periods > 0) & (shifted >= self.periods), 0.0, shifted)


class Depth:
    """Distance from the boundary, inwards positive, answered from a coarse table wherever a lower bound is enough.

    The signed distance is 1-Lipschitz, so depth(x) >= depth(c) - |x - c| for the centre c of the cell x lies in.
    `walls` are points (m, dimension), dense on interfaces inside the domain, that count like the boundary.
    """

    def __init__(self, domain, walls: np.ndarray | None = None):
        self.domain = domain
        self.walls = None if walls is None else Wrap.of(domain).tree(walls)
        self.n_asked = 0
        self._last: tuple[np.ndarray, np.ndarray] | None = None
        self.bounded = len(domain.part_names) > 0 or walls is not None
        extent = domain.bounds[1] - domain.bounds[0]
        counts = extent * (4096 / np.prod(extent)) ** (1 / domain.dimension)
        self.counts = np.maximum(np.round(counts), 4).astype(int)
        self.cell = extent / self.counts

    def exact(self, points: np.ndarray) -> np.ndarray:
        """Depth of (n, dimension) points; infinite where there is no boundary."""
        self.n_asked += len(points)
        if self._last is not None and np.array_equal(points, self._last[0]):  # the grid of a front, trial after trial
            return self._last[1]
        depth = self._depth(points)
        self._last = (points, depth)
        return depth

    @cached_property
    def centres(self) -> np.ndarray:
        """Cell centres over the bounding box, (n_cells, dimension)."""
        index = np.stack([i.ravel() for i in np.indices(self.counts)], axis=1)
        return self.domain.bounds[0] + (index + 0.5) * self.cell

    @cached_property
    def table(self) -> np.ndarray:
        """Depth of the cell centres, (n_cells,), negative outside."""
        return self._depth(self.centres)

    def _depth(self, points: np.ndarray) -> np.ndarray:
        depth = -self.domain.distance(points)
        if self.walls is None:
            return depth
        return np.minimum(depth, Wrap.of(self.domain).query(self.walls, points, 1)[0][:, 0])

    def at_least(self, points: np.ndarray, least: np.ndarray) -> np.ndarray:
        """Depth of (n, dimension) points where it may be below `least`; elsewhere a lower bound that is not."""
        if not self.bounded:
            return np.full(len(points), np.inf)
        if self.n_asked + len(points) < len(self.centres):
            return self.exact(points)
        index = np.clip(((points - self.domain.bounds[0]) / self.cell).astype(int), 0, self.counts - 1)
        flat = np.ravel_multi_index(tuple(index.T), tuple(self.counts))
        depth = self.table[flat] - np.linalg.norm(points - self.centres[flat], axis=1)
        unsure = np.flatnonzero(depth < least)
        depth[unsure] = self.exact(points[unsure])
        return depth


def in_cells(points: np.ndarray) -> np.ndarray:
    """Order (n,) of points that walks through cells of about 8 to and fro, so that neighbours sit close in memory."""
    n, dimension = points.shape
    if n < 2:
        return np.arange(n)
    lower, extent = points.min(axis=0), np.maximum(np.ptp(points, axis=0), 1e-300)
    side = (np.prod(extent) * 8 / n) ** (1 / dimension)
    index = ((points - lower) / max(side, 1e-300)).astype(np.int64)
    size = index.max(axis=0) + 1
    key = index[:, 0]
    for axis in range(1, dimension):
        key = key * size[axis] + np.where(key % 2 == 0, index[:, axis], size[axis] - 1 - index[:, axis])
    return np.argsort(key, kind="stable")
