"""Square roots of inner products, X = Rᵀ R: what turns norms of solutions into Euclidean ones."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from parasol.errors import InputError
from parasol.pde.model import Model
from parasol.pde.sparse_direct import distances, nested_dissection
from parasol.runtime.products import MatrixProduct, Weights


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

    into_transposed, back_transposed = into, back

    def applied(self, u: np.ndarray) -> np.ndarray:
        """X u."""
        return (u.T * self.scale**2).T


class MatrixRoot:
    """R = D^½ Lᵀ from X = L D Lᵀ, the unknowns in an order that keeps L sparse.

    L, D and X are at hand as sparse matrices, and their inverses by U⁻¹ = X⁻¹ L with U = D Lᵀ.

    >>> x = sparse.csr_array(np.array([[4.0, 2.0], [2.0, 10.0]]))
    >>> root = MatrixRoot(MatrixProduct(x.indptr, x.indices, x.data))
    >>> float(np.sum(root.into(np.array([1.0, 1.0])) ** 2)), root.back(root.into(np.array([1.0, 2.0])))
    (18.0, array([1., 2.]))
    """

    def __init__(self, product: MatrixProduct, points: np.ndarray | None = None):
        self.matrix = as_matrix(product)
        self.scale = np.sqrt(product.diagonal)
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

    def _placed(self, w: np.ndarray) -> np.ndarray:
        out = np.empty_like(w)
        out[self.order] = w
        return out

    def into(self, u: np.ndarray) -> np.ndarray:
        """R u."""
        return self._placed(((self._upper @ u[self.order]).T / self._root).T)

    def into_transposed(self, w: np.ndarray) -> np.ndarray:
        """Rᵀ w."""
        return self._placed(self._lower @ (w[self.order].T * self._root).T)

    def back(self, w: np.ndarray) -> np.ndarray:
        """R⁻¹ w."""
        return self._placed(self._solve(self._lower @ (w[self.order].T * self._root).T))

    def back_transposed(self, u: np.ndarray) -> np.ndarray:
        """R⁻ᵀ u."""
        return self._placed(((self._upper @ self._solve(u[self.order])).T / self._root).T)

    def solve(self, right: np.ndarray) -> np.ndarray:
        """X⁻¹ right."""
        return self._placed(self._solve(right[self.order]))

    def _solve(self, right: np.ndarray) -> np.ndarray:
        return self._factors.solve(np.asfortranarray(right))

    def applied(self, u: np.ndarray) -> np.ndarray:
        """X u."""
        return self.matrix @ u


def as_matrix(product: MatrixProduct) -> sparse.csr_array:
    """The matrix of a product, for SciPy."""
    return sparse.csr_array((product.data, product.indices, product.indptr), shape=(product.n_values,) * 2)


def root_of(model: Model, weights: Weights | None, *, ghosts: bool = True) -> Root:
    """The root of the inner product on all unknowns: ghosts count like an average node, or not at all."""
    if isinstance(weights, MatrixProduct):
        return MatrixRoot(weights, model.terms.pattern.points)
    n_values = len(model.problem.names) * model.n_nodes
    given = np.ones(n_values) if weights is None else weights
    if ghosts:
        return DiagonalRoot(np.ones(model.n_unknowns) if weights is None else np.sqrt(model.layout.weights(given)))
    return DiagonalRoot(np.sqrt(model.layout.unknowns(given, np.zeros(model.n_unknowns - n_values))))
