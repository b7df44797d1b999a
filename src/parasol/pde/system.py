"""A discretised problem at one parameter:  M2 u'' + M1 u' + K u + N(u, t) = f(t),  rows without time are constraints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from parasol.pde.sparse_direct import Factors, factors_of
from parasol.pde.sparse_pattern import Pattern


@dataclass(frozen=True, eq=False)
class System:
    """Matrices with one sparsity pattern, a load and a nonlinear part, all at a fixed parameter.

    `stiffness`, `damping` and `mass` are the entries (nnz,) of K, M1 and M2 in the pattern. `nonlinear(u, t)` returns
    (n,), `jacobian(u, t)` its derivative's entries (nnz,) in the pattern; both are None for a linear problem. Boundary
    rows have no time derivative: they are constraints that hold at every time. The unknown functions `names` stand one
    after the other in u, each with as many values; `nonlinear_rows` (n,) says where N can differ from 0, None: anywhere.
    `forcing` gives what depends on time in f and N at a few rows, (n_times, n_rows) of times (n_times,); `moments(first,
    last)` gives times at which it should be looked at, ever closer where something happens, and those where it switches.
    """

    pattern: Pattern
    stiffness: np.ndarray
    damping: np.ndarray
    mass: np.ndarray
    load: Callable[[float], np.ndarray]
    nonlinear: Callable[[np.ndarray, float], np.ndarray] | None = None
    jacobian: Callable[[np.ndarray, float], np.ndarray] | None = None
    solver: str = "superlu"
    names: tuple[str, ...] = ("u",)
    nonlinear_rows: np.ndarray | None = None
    forcing: Callable[[np.ndarray], np.ndarray] | None = None
    moments: Callable[[float, float], tuple[np.ndarray, np.ndarray]] | None = None

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return len(self.pattern.points)

    @cached_property
    def time_order(self) -> int:
        """0 for a steady problem, else the highest derivative in time."""
        return 2 if np.any(self.mass) else 1 if np.any(self.damping) else 0

    @cached_property
    def constrained(self) -> np.ndarray:
        """(n,) bool: rows without a time derivative."""
        moving = (self.damping != 0) | (self.mass != 0)
        rows = np.repeat(np.arange(self.n), np.diff(self.pattern.indptr))
        return np.bincount(rows, weights=moving, minlength=self.n) == 0

    def sizes(self, u: np.ndarray) -> np.ndarray:
        """The largest |value| of each unknown function, (n_names,)."""
        return sizes(u, len(self.names))

    def matrix(self, data: np.ndarray) -> sparse.csr_array:
        """A sparse matrix from entries in the pattern."""
        return sparse.csr_array((data, self.pattern.indices, self.pattern.indptr), shape=(self.n, self.n))

    def factorize(self, data: np.ndarray) -> Factors:
        """Factors of the matrix with these entries; the elimination order is shared.

        The last factors are kept with the pattern: where a parameter does not enter the matrix, the next one finds them.
        """
        return factors_of(self.pattern, data, backend=self.solver)

    def residual(self, u: np.ndarray, t: float = 0.0) -> np.ndarray:
        """K u + N(u, t) − f(t), the residual of the steady problem."""
        out = self.matrix(self.stiffness) @ u - self.load(t)
        return out if self.nonlinear is None else out + self.nonlinear(u, t)


def sizes(values: np.ndarray, n_fields: int) -> np.ndarray:
    """The largest absolute value of each of the unknown functions that stand one after the other, (n_fields,)."""
    return np.abs(values.reshape(n_fields, -1)).max(axis=1)
