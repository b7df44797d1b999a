"""The small least-squares system of a reduced model, built column by column with the full operators."""

from __future__ import annotations

import numpy as np

from parasol.pde.sparse_direct import Factors
from parasol.reduction.affine import AffineForm
from parasol.reduction.products import DiagonalRoot, MatrixRoot, Root
from parasol.reduction.stretch import Stretch
from parasol.runtime.residuals import WeightedResidual

_ROUNDING = 32 * np.finfo(float).eps  # relative, of a column of the small system
# times what a second solve changes: rounding of solves, and what a bound allows for it, here or on another machine
_USUAL, _MOST = 4, 16
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
        stretch: Stretch | None = None,
        *,
        unit: float = 1.0,
    ):
        """`factors` are those of A(mu), or None to weight with `rows` (n_unknowns,) alone; `root` is that of the product.

        With `stretch`, the same columns are also kept in that norm, for `strong`. All columns are multiplied by `unit`, such
        that norms of residuals can be added to norms of solutions.
        """
        self.form, self.mu, self.factors = form, mu, factors
        self.rows, self.root = rows, DiagonalRoot(root) if isinstance(root, np.ndarray) else root
        self.stretch, self.unit = stretch, unit
        self.precision, self.n_triangular = _ROUNDING, 0
        self.kept = [_Columns()] if stretch is None else [_Columns(), _Columns()]
        for kept, weighted in zip(self.kept, self._weighted(form.loads.T, form.load_errors), strict=True):
            kept.orthonormal, kept.triangle = np.linalg.qr(weighted)

    @property
    def triangle(self) -> np.ndarray:
        """The columns so far in an orthonormal basis, (n_rows, n_columns)."""
        return self.kept[0].triangle

    def add(self, *modes: np.ndarray) -> None:
        """Append the columns A_q v of one mode (n_unknowns,), or of several one after the other."""
        for mode in modes:
            self.extend(np.column_stack([a @ mode for a in self.form.operators]))

    def extend(self, columns: np.ndarray) -> None:
        """Append the columns A_1 v, A_2 v … of one mode v or of several, (n_unknowns, n * Q_A)."""
        errors = np.tile(self.form.operator_errors, columns.shape[1] // len(self.form.operators))
        for kept, weighted in zip(self.kept, self._weighted(columns, errors), strict=True):
            for column in weighted.T:
                kept.append(column)

    def _weighted(self, columns: np.ndarray, errors: np.ndarray) -> list[np.ndarray]:
        """R P b for every column b, and S R P b; what a second solve still changes is what rounding has done to the first."""
        columns = np.asfortranarray(columns)
        if self.factors is None:
            assert self.rows is not None
            out, changed = self.rows[:, None] * columns, np.zeros(columns.shape)
        else:
            solutions = self.factors.solve(columns)
            self.n_triangular += (1 + self.factors.refines) * columns.shape[1]
            if self.factors.refines:
                change = self.factors.solve(columns - self.factors.matrix @ solutions)
                out, changed = self.root.into(solutions + change), self.root.into(change)
            else:
                out = self.root.into(solutions)
                changed = np.zeros(out.shape)
        out, changed = self.unit * out, self.unit * changed
        outs = [out] if self.stretch is None else [out, self.stretch(out)]
        for kept, some, lost in zip(
            self.kept, outs, [changed] if self.stretch is None else [changed, self.stretch(changed)], strict=True
        ):
            size = np.linalg.norm(some, axis=0)
            moved = np.linalg.norm(lost, axis=0)
            if kept is self.kept[0] and np.any(size > 0):  # of a full solve, in the norm of the error
                rounding = _USUAL * moved[size > 0] / size[size > 0] + _ROUNDING
                self.precision = max(self.precision, float(np.max(rounding)))
            kept.noise = np.append(kept.noise, _MOST * moved + (_ROUNDING + errors) * size)
        return outs

    def residual(self) -> WeightedResidual:
        """That of the columns so far."""
        return self._residual(self.kept[0])

    def strong(self) -> WeightedResidual:
        """The same in the larger norm; refused without one."""
        return self._residual(self.kept[1])

    def _residual(self, kept: _Columns) -> WeightedResidual:
        counts = len(self.form.loads), len(self.form.operators)
        return WeightedResidual(self.mu, kept.triangle.copy(), kept.noise.copy(), *counts, self.precision)


class _Columns:
    """Columns in an orthonormal basis of their span, with what each may be off by."""

    def __init__(self):
        self.noise = np.empty(0)
        self.orthonormal = self.triangle = np.empty((0, 0))

    def append(self, column: np.ndarray) -> None:
        """Add one column; a direction of its own it gets only if more than rounding is left of it.

        A u = f for a solution u, so columns do depend on earlier ones, and their rest must not enter the basis.
        """
        known = self.orthonormal
        rest, parts = column, np.zeros(known.shape[1])
        for _ in range(2):  # twice is enough
            components = known.T @ rest
            rest = rest - known @ components
            parts += components
        left = float(np.linalg.norm(rest))
        entries = parts[:, None]
        if left > _DEPENDENT * np.linalg.norm(column):
            self.orthonormal = np.column_stack([known, rest / left])
            self.triangle = np.vstack([self.triangle, np.zeros((1, self.triangle.shape[1]))])
            entries = np.append(parts, left)[:, None]
        self.triangle = np.hstack([self.triangle, entries])
