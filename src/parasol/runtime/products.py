"""Inner products of solutions: weights of single values, or a symmetric sparse matrix."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from parasol.checks import check_count, check_finite, check_shape
from parasol.errors import InputError, NotInstalled
from parasol.runtime.above import borrowed

_BLOCK = 2**22  # numbers worked on at a time: 32 MB
_SYMMETRIC = 1e-10  # by which entries may differ from those across the diagonal, relative to the largest


@dataclass(frozen=True, eq=False)
class MatrixProduct:
    """The inner product uᵀ X v with a sparse matrix X in compressed rows, symmetric and positive on its diagonal.

    With `copies` it is the sum over as many parts of a vector, such as the states at several times.

    >>> product = MatrixProduct(np.array([0, 2, 4]), np.array([0, 1, 0, 1]), np.array([2.0, 1.0, 1.0, 2.0]))
    >>> product.applied(np.array([1.0, 0.0])), product.energies(np.array([[1.0, -1.0]]))
    (array([2., 1.]), array([2.]))
    """

    indptr: np.ndarray  # (n_values + 1,)
    indices: np.ndarray  # (n_entries,)
    data: np.ndarray  # (n_entries,)
    copies: int = 1

    def __post_init__(self):
        check_count(self.copies, "copies")
        n, entries = len(self.indptr) - 1, len(self.data)
        check_finite(check_shape(self.data, (None,), "the entries of a product"), "the entries of a product")
        check_shape(self.indices, (entries,), "the columns of a product")
        whole = all(part.ndim == 1 and part.dtype.kind in "iu" for part in (self.indptr, self.indices))
        # an empty row would have no diagonal, and the sums below would be wrong
        fits = n >= 1 and self.indptr[0] == 0 and self.indptr[-1] == entries and np.all(np.diff(self.indptr) > 0)
        if not (whole and fits and np.all((self.indices >= 0) & (self.indices < n))):
            raise InputError(f"the product is no matrix of {n} rows, each with an entry. Give a sparse square matrix.")
        if not np.all(self.diagonal > 0):
            raise InputError("the product is not positive: its diagonal is not. An inner product needs it to be.")
        probe = np.random.default_rng(0).standard_normal((2, n))
        one, other = (float(a @ self._summed(self.data, b)) for a, b in (probe, probe[::-1]))
        size = float(np.abs(probe[0]) @ self._summed(np.abs(self.data), np.abs(probe[1])))
        if abs(one - other) > _SYMMETRIC * size:
            raise InputError("the product is not symmetric. An inner product is: give X with X = X.T.")

    @property
    def n_values(self) -> int:
        """Length of a solution."""
        return self.copies * (len(self.indptr) - 1)

    @property
    def diagonal(self) -> np.ndarray:
        """That of X, (n_rows,)."""
        n = len(self.indptr) - 1
        row = np.repeat(np.arange(n), np.diff(self.indptr))
        out = np.zeros(n)
        here = row == self.indices
        np.add.at(out, row[here], self.data[here])
        return out

    def applied(self, solutions: np.ndarray) -> np.ndarray:
        """X u of each solution, (..., n_values)."""
        parts = solutions.reshape(-1, len(self.indptr) - 1)
        try:
            out = np.ascontiguousarray((self.matrix @ parts.T).T)
        except NotInstalled:  # ten times as slow
            out = np.empty(parts.shape)
            rows = max(1, _BLOCK // max(1, len(self.data)))
            for start in range(0, len(parts), rows):
                out[start : start + rows] = self._summed(self.data, parts[start : start + rows])
        return out.reshape(solutions.shape)

    @classmethod
    def of(cls, matrix: Any) -> MatrixProduct:
        """The product of one of SciPy's matrices in compressed rows."""
        matrix.sort_indices()
        return cls(matrix.indptr, matrix.indices, matrix.data)

    @cached_property
    def matrix(self) -> Any:
        """X, once however many copies there are, as one of SciPy's."""
        return borrowed("csr_array")((self.data, self.indices, self.indptr), shape=(len(self.indptr) - 1,) * 2)

    def _summed(self, data: np.ndarray, solutions: np.ndarray) -> np.ndarray:
        return np.add.reduceat(data * solutions[..., self.indices], self.indptr[:-1], axis=-1)

    def energies(self, solutions: np.ndarray) -> np.ndarray:
        """uᵀ X u of each solution, (...,)."""
        return np.maximum(np.einsum("...i,...i->...", solutions, self.applied(solutions), dtype=float), 0.0)


Weights = np.ndarray | MatrixProduct  # of an inner product


def check_weights(weights: ArrayLike | MatrixProduct, n_values: int) -> Weights:
    """An inner product of solutions of that length: positive weights (n_values,) as floats, or a matrix."""
    if isinstance(weights, MatrixProduct):
        if weights.n_values != n_values:
            raise InputError(f"the product has {weights.n_values} rows for solutions of {n_values} values.")
        return weights
    weights = check_finite(check_shape(weights, (n_values,), "weights"), "weights")
    bad = int(np.count_nonzero(weights <= 0))
    if bad:
        raise InputError(f"{bad} of {n_values} weights are not positive. An inner product needs positive weights.")
    return weights


def single_weights(weights: ArrayLike | MatrixProduct, n_values: int) -> np.ndarray:
    """An inner product that is one of weights, or a clear error."""
    product = check_weights(weights, n_values)
    if isinstance(product, MatrixProduct):
        raise InputError("an inner product that is a matrix cannot be used here. Give weights of single values.")
    return product


def repeated(weights: Weights | None, n: int) -> Weights | None:
    """The inner product of n parts, each in the given one."""
    if weights is None or n == 1:
        return weights
    if isinstance(weights, MatrixProduct):
        return replace(weights, copies=n * weights.copies)
    return np.tile(weights, n)


def first_part(weights: Weights | None, n_values: int) -> Weights | None:
    """The inner product of the first values, where it is the same for all parts of that length."""
    if isinstance(weights, MatrixProduct):
        return replace(weights, copies=n_values // (len(weights.indptr) - 1))
    return None if weights is None else weights[:n_values]


def weighted(solutions: np.ndarray, weights: Weights | None) -> np.ndarray:
    """X u of each solution, (..., n_values); the same array where there are no weights."""
    if weights is None:
        return solutions
    return weights.applied(solutions) if isinstance(weights, MatrixProduct) else solutions * weights


def worst_energies(solutions: np.ndarray, weights: Weights | None) -> np.ndarray:
    """The largest ||d||² of d with |d_i| = |u_i|, or a bound of it: |u|ᵀ |X| |u|, (...,). Rounding may have any signs.

    In an inner product of derivatives it is far more than ||u||².
    """
    if not isinstance(weights, MatrixProduct):
        return energies(solutions, weights)
    return replace(weights, data=np.abs(weights.data)).energies(np.abs(solutions))


def energies(solutions: np.ndarray, weights: Weights | None) -> np.ndarray:
    """||u||² = uᵀ X u of each solution, (...,) of (..., n_values); of weights with no copy of them."""
    if weights is None:
        return np.einsum("...i,...i->...", solutions, solutions, dtype=float)
    if isinstance(weights, MatrixProduct):
        return weights.energies(solutions)
    return np.einsum("...i,i,...i->...", solutions, weights, solutions, dtype=float)
