"""A sparsity pattern with positions, analysed for elimination: rows that state their unknown, the order of the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra, maximum_bipartite_matching

if TYPE_CHECKING:
    from parasol.pde.sparse_direct import Factors

_LEAF = 32


@dataclass(frozen=True, eq=False)
class Pattern:
    """A square sparsity pattern in CSR form with the position of each unknown, analysed for elimination.

    `indices` and `indptr` describe n rows; `points` is (n, dimension).
    """

    indices: np.ndarray
    indptr: np.ndarray
    points: np.ndarray
    # the factors made last, with the solver that was asked for, for whoever asks for them again
    last: list[tuple[str, Factors]] = field(default_factory=list, metadata={"hashed": False})
    # MKL solvers that have analysed this pattern and serve no factors now
    _idle: list = field(default_factory=list, metadata={"hashed": False})

    def __getstate__(self) -> dict:  # factors belong to this process
        return {"indices": self.indices, "indptr": self.indptr, "points": self.points, "last": [], "_idle": []}

    @cached_property
    def stated(self) -> np.ndarray:
        """(n,) bool: rows whose only entry is their own diagonal."""
        n = len(self.indptr) - 1
        single = np.diff(self.indptr) == 1
        first = self.indices[np.minimum(self.indptr[:-1], len(self.indices) - 1)]
        return single & (first == np.arange(n))

    @cached_property
    def n_fields(self) -> int:
        """Number of unknown functions: each has one unknown at every point, and the points stand once for each."""
        n, most = len(self.points), int(np.count_nonzero(np.all(self.points == self.points[:1], axis=1)))
        # ghosts of two regions may stand at the same place: a point that occurs twice is not enough
        blocks = [(k, self.points.reshape(k, n // k, -1)) for k in range(2, most + 1) if n % k == 0]
        return max((k for k, block in blocks if np.all(block == block[0])), default=1)

    @cached_property
    def order(self) -> np.ndarray:
        """The unknowns that are left, in elimination order."""
        left = np.flatnonzero(~self.stated)
        ones = np.ones(len(self.indices), dtype=np.int8)
        graph = sparse.csr_array((ones, self.indices, self.indptr), shape=(len(self.stated),) * 2)[left][:, left]
        return left[nested_dissection(graph, self.points[left])]

    @cached_property
    def blocks(self) -> tuple[sparse.csc_array, sparse.csr_array]:
        """Positions in the data (counted from 1) of the ordered square block and of its coupling to stated unknowns."""
        n = len(self.stated)
        numbered = np.arange(1, len(self.indices) + 1)
        rows = sparse.csr_array((numbered, self.indices, self.indptr), shape=(n, n))[self.order].tocsc()
        return rows[:, self.order].tocsc(), rows[:, np.flatnonzero(self.stated)].tocsr()


def distinct(numbers: np.ndarray) -> np.ndarray:
    """The numbers (n,) that occur, in order.

    NumPy's `unique` puts integers into a table of hashes, which takes 50 times as long for the entries of a large matrix.

    >>> distinct(np.array([3, 1, 3, 2]))
    array([1, 2, 3])
    """
    numbers = np.sort(numbers)
    return numbers[np.diff(numbers, prepend=numbers[:1] - 1) > 0]


def nested_dissection(graph: sparse.csr_array, points: np.ndarray) -> np.ndarray:
    """Elimination order of a graph whose vertices have positions: halves first, their separator last, recursively.

    Each half is cut at the median of its longest side; the separator is a minimum vertex cover of the edges cut.

    >>> chain = sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(64, 64)).tocsr()
    >>> sorted(nested_dissection(chain, np.arange(64.0)[:, None])) == list(range(64))
    True
    """
    symmetric = (abs(graph) + abs(graph).T).tocsr()

    def dissect(ids: np.ndarray) -> list[np.ndarray]:
        along = points[ids, np.argmax(np.ptp(points[ids], axis=0))] if len(ids) > _LEAF else np.zeros(1)
        low = along <= np.median(along)
        if len(ids) <= _LEAF or np.all(low):
            return [ids]
        left, right = ids[low], ids[~low]
        in_left, in_right = _cover(symmetric[left][:, right])
        parts = [p for half in (left[~in_left], right[~in_right]) if len(half) for p in dissect(half)]
        return [*parts, left[in_left], right[in_right]]

    return np.concatenate(dissect(np.arange(len(points)))) if len(points) else np.empty(0, dtype=int)


def distances(graph: sparse.csr_array, n_landmarks: int = 4) -> np.ndarray:
    """Positions (n, n_landmarks) for unknowns that have none: the number of steps from vertices far from each other.

    >>> chain = sparse.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(5, 5)).tocsr()
    >>> distances(chain, 2).T
    array([[4., 3., 2., 1., 0.],
           [0., 1., 2., 3., 4.]])
    """
    symmetric = (abs(graph) + abs(graph).T).tocsr()
    columns: list[np.ndarray] = []
    far = 0
    for _ in range(n_landmarks + 1):
        steps = dijkstra(symmetric, unweighted=True, indices=far)
        steps = np.where(np.isfinite(steps), steps, 1.0 + np.max(steps, where=np.isfinite(steps), initial=0.0))
        columns.append(steps)
        far = int(np.argmax(steps if len(columns) == 1 else np.min(columns[1:], axis=0)))
    return np.column_stack(columns[1:])


def _cover(edges: sparse.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Minimum vertex cover of a bipartite graph, from a maximum matching (König)."""
    edges = edges.tocsr()
    partner = maximum_bipartite_matching(edges, perm_type="column")
    partner_of_column = np.full(edges.shape[1], -1)
    matched = np.flatnonzero(partner >= 0)
    partner_of_column[partner[matched]] = matched
    touched = np.diff(edges.indptr) > 0
    reached_row = touched & (partner < 0)
    reached_column = np.zeros(edges.shape[1], dtype=bool)
    frontier = np.flatnonzero(reached_row)
    while len(frontier):
        columns = np.unique(edges[frontier].indices)
        columns = columns[~reached_column[columns]]
        reached_column[columns] = True
        frontier = partner_of_column[columns]
        frontier = frontier[(frontier >= 0)]
        frontier = frontier[~reached_row[frontier]]
        reached_row[frontier] = True
    return touched & ~reached_row, reached_column
