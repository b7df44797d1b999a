"""The small least-squares system of a reduced model, built column by column with the full operators."""

from __future__ import annotations

import numpy as np

from parasol.pde.sparse_direct import Factors
from parasol.reduction.affine import AffineForm
from parasol.reduction.products import DiagonalRoot, MatrixRoot, Root
from parasol.runtime.residuals import WeightedResidual

_ROUNDING = 32 * np.finfo(float).eps  # relative, of a column of the small system
_DEPENDENT = 1e-13  # a column whose new part is smaller, relative to itself, depends on the others


class ResidualBuilder:
    """Collects the columns of a weighted residual, mode by mode, and keeps them orthonormal; offline only."""

    def __init__(
        self,
        form: AffineForm,
        mu: np.ndarray,
        factors: Factors | MatrixRoot | None,
        rows: np.ndarray | None,
        root: Root | np.ndarray,
    ):
        """`factors` are those of A(mu), or None to weight with `rows` (n_unknowns,) alone; `root` is that of the product."""
        self.form, self.mu, self.factors = form, mu, factors
        self.rows, self.root = rows, DiagonalRoot(root) if isinstance(root, np.ndarray) else root
        self.precision, self.n_triangular = _ROUNDING, 0
        self.noise = np.empty(0)
        weighted = self._weighted(form.loads.T, form.load_errors)
        self.orthonormal, self.triangle = np.linalg.qr(weighted)

    def add(self, mode: np.ndarray) -> None:
        """Append the columns A_q v of one mode (n_unknowns,)."""
        columns = np.column_stack([a @ mode for a in self.form.operators])
        for column in self._weighted(columns, self.form.operator_errors).T:
            self._append(column)

    def _weighted(self, columns: np.ndarray, errors: np.ndarray) -> np.ndarray:
        """R P b for every column b; what a second solve still changes is what rounding has done to the first."""
        columns = np.asfortranarray(columns)
        if self.factors is None:
            assert self.rows is not None
            out = self.rows[:, None] * columns
            lost = np.zeros(columns.shape[1])
        else:
            found = self.factors.solve(columns)
            change = self.factors.solve(columns - self.factors.matrix @ found)
            self.n_triangular += 2 * columns.shape[1]
            out = self.root.into(found + change)
            lost = 4 * np.linalg.norm(self.root.into(change), axis=0)
        size = np.linalg.norm(out, axis=0)
        lost += (_ROUNDING + errors) * size
        if np.any(size > 0):
            self.precision = max(self.precision, float(np.max(lost[size > 0] / size[size > 0] - errors[size > 0])))
        self.noise = np.append(self.noise, lost)
        return out

    def _append(self, column: np.ndarray) -> None:
        """Add one column; a direction of its own it gets only if more than rounding is left of it.

        A u = f for a solution u, so columns do depend on earlier ones, and their rest must not enter the basis.
        """
        known = self.orthonormal
        rest, parts = column, np.zeros(known.shape[1])
        for _ in range(2):  # twice is enough
            found = known.T @ rest
            rest = rest - known @ found
            parts += found
        left = float(np.linalg.norm(rest))
        entries = parts[:, None]
        if left > _DEPENDENT * np.linalg.norm(column):
            self.orthonormal = np.column_stack([known, rest / left])
            self.triangle = np.vstack([self.triangle, np.zeros((1, self.triangle.shape[1]))])
            entries = np.append(parts, left)[:, None]
        self.triangle = np.hstack([self.triangle, entries])

    def residual(self) -> WeightedResidual:
        """That of the columns so far."""
        counts = len(self.form.loads), len(self.form.operators)
        return WeightedResidual(self.mu, self.triangle.copy(), self.noise.copy(), *counts, self.precision)
