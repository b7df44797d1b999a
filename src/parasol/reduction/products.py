"""Square roots of inner products, X = Rᵀ R: what turns norms of solutions into Euclidean ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from parasol.errors import InputError
from parasol.pde.model import Model
from parasol.pde.sparse_pattern import distances, nested_dissection
from parasol.runtime.products import MatrixProduct, Weights, check_weights


class Root(Protocol):
    """R with X = Rᵀ R. Vectors stand in columns, (n,) or (n, m)."""

    scale: np.ndarray  # (n,) the norm of each unit vector

    def into(self, u: np.ndarray) -> np.ndarray:
        """R u."""
        ...

    def into_transposed(self, w: np.ndarray) -> np.ndarray:
        """Rᵀ w."""
        ...

    def back(self, w: np.ndarray) -> np.ndarray:
        """R⁻¹ w."""
        ...

    def back_transposed(self, u: np.ndarray) -> np.ndarray:
        """R⁻ᵀ u."""
        ...

    def applied(self, u: np.ndarray) -> np.ndarray:
        """X u."""
        ...


class DiagonalRoot:
    """R = diag(scale)."""

    def __init__(self, scale: np.ndarray):
        self.scale = scale

    def into(self, u: np.ndarray) -> np.ndarray:
        """R u."""
        return (u.T * self.scale).T

    def back(self, w: np.ndarray) -> np.ndarray:
        """R⁻¹ w."""
        return (w.T / self.scale).T

    def into_transposed(self, w: np.ndarray) -> np.ndarray:
        """Rᵀ w."""
        return self.into(w)

    def back_transposed(self, u: np.ndarray) -> np.ndarray:
        """R⁻ᵀ u."""
        return self.back(u)

    def applied(self, u: np.ndarray) -> np.ndarray:
        """X u."""
        return (u.T * self.scale**2).T


class MatrixRoot:
    """R = D^½ Lᵀ from X = L D Lᵀ, the unknowns in an order that keeps L sparse.

    L, D and X are at hand as sparse matrices, and their inverses by U⁻¹ = X⁻¹ L with U = D Lᵀ.

    >>> x = sparse.csr_array(np.array([[4.0, 2.0], [2.0, 10.0]]))
    >>> root = MatrixRoot(MatrixProduct.of(x))
    >>> float(np.sum(root.into(np.array([1.0, 1.0])) ** 2)), root.back(root.into(np.array([1.0, 2.0])))
    (18.0, array([1., 2.]))
    """

    refines = True  # as of factors

    def __init__(self, product: MatrixProduct, points: np.ndarray | None = None):
        self.matrix, self.copies = product.matrix, product.copies
        self.scale = np.tile(np.sqrt(product.diagonal), self.copies)
        self.order = nested_dissection(self.matrix, distances(self.matrix) if points is None else points)
        block = self.matrix[self.order][:, self.order].tocsc()
        try:
            self._factors = splu(block, permc_spec="NATURAL", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        except RuntimeError:
            raise InputError("the product is singular. An inner product is positive definite.") from None
        pivots = self._factors.U.diagonal()
        straight = np.array_equal(self._factors.perm_r, np.arange(len(pivots)))
        if not straight or not np.all(pivots > 0):
            raise InputError("the product is not positive definite. An inner product has xᵀ X x > 0 for all x but 0.")
        self._root = np.sqrt(pivots)

    @cached_property
    def _upper(self) -> sparse.csr_array:
        return sparse.csr_array(self._factors.U)

    @cached_property
    def _lower(self) -> sparse.csr_array:
        return sparse.csr_array(self._factors.L)

    def _each(self, map_ordered: Callable[[np.ndarray], np.ndarray], u: np.ndarray) -> np.ndarray:
        """A map of the unknowns in elimination order, of every part of the columns."""
        n = len(self.order)
        parts = u.reshape(self.copies, n, -1).transpose(1, 0, 2).reshape(n, -1)
        out = np.empty_like(parts)
        out[self.order] = map_ordered(parts[self.order])
        return out.reshape(n, self.copies, -1).transpose(1, 0, 2).reshape(u.shape)

    def into(self, u: np.ndarray) -> np.ndarray:
        """R u."""
        return self._each(lambda v: (self._upper @ v) / self._root[:, None], u)

    def into_transposed(self, w: np.ndarray) -> np.ndarray:
        """Rᵀ w."""
        return self._each(lambda v: self._lower @ (v * self._root[:, None]), w)

    def back(self, w: np.ndarray) -> np.ndarray:
        """R⁻¹ w."""
        return self._each(lambda v: self._solve(self._lower @ (v * self._root[:, None])), w)

    def back_transposed(self, u: np.ndarray) -> np.ndarray:
        """R⁻ᵀ u."""
        return self._each(lambda v: (self._upper @ self._solve(v)) / self._root[:, None], u)

    def solve(self, right: np.ndarray) -> np.ndarray:
        """X⁻¹ right."""
        return self._each(self._solve, right)

    def _solve(self, right: np.ndarray) -> np.ndarray:
        return self._factors.solve(np.asfortranarray(right))

    def applied(self, u: np.ndarray) -> np.ndarray:
        """X u."""
        n = len(self.order)
        parts = u.reshape(self.copies, n, -1)
        return np.stack([self.matrix @ part for part in parts]).reshape(u.shape)


def root_of_weights(weights: Weights | None, n_values: int) -> Root:
    """The root of an inner product of values, (n_values,) each."""
    if isinstance(weights, MatrixProduct):
        return MatrixRoot(weights)
    return DiagonalRoot(np.ones(n_values) if weights is None else np.sqrt(check_weights(weights, n_values)))  # type: ignore[arg-type]


def root_of(model: Model, weights: Weights | None, *, ghosts: bool = True) -> Root:
    """The root of the inner product on all unknowns: ghosts count like an average node, or not at all."""
    if isinstance(weights, MatrixProduct):
        return MatrixRoot(weights, model.terms.pattern.points)
    n_values = len(model.problem.names) * model.n_nodes
    given = np.ones(n_values) if weights is None else weights
    if ghosts:
        return DiagonalRoot(np.ones(model.n_unknowns) if weights is None else np.sqrt(model.layout.weights(given)))
    return DiagonalRoot(np.sqrt(model.layout.unknowns(given, np.zeros(model.n_unknowns - n_values))))
