"""Least squares in few rows: the residual of a reduced problem, seen through the inverse of one matrix and one QR."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from parasol.pde.sparse_direct import Factors
from parasol.reduction.affine import AffineForm


@dataclass(frozen=True, eq=False)
class Frame:
    """The upper triangle R of a QR factorisation of  D P [f_1 … f_Qf, A_1 v_1 … A_Q v_1, A_1 v_2 …].

    P is the row weighting, D the square root of the inner product. The residual of coefficients c has the norm
    ||D P (f_μ − A_μ V c)|| = ||R z|| with the small vector z = [φ, −θ⊗c]: nothing of length N is left, nothing is
    squared, and no digits are lost. Leaving out the last columns leaves out the last modes.
    """

    mu: np.ndarray  # the parameter whose matrix gives the weighting
    triangle: np.ndarray  # (n_rows, Q_f + Q_A * n_modes)
    n_loads: int  # Q_f
    n_terms: int  # Q_A

    @property
    def n_modes(self) -> int:
        """Number of modes, d."""
        return (self.triangle.shape[1] - self.n_loads) // self.n_terms

    def truncated(self, n_modes: int) -> Frame:
        """The frame of the first modes."""
        size = self.n_loads + self.n_terms * n_modes
        return Frame(self.mu, self.triangle[:size, :size].copy(), self.n_loads, self.n_terms)

    @cached_property
    def _loads(self) -> np.ndarray:
        return np.ascontiguousarray(self.triangle[:, : self.n_loads].T)  # (Q_f, n_rows)

    @cached_property
    def _columns(self) -> np.ndarray:
        return np.ascontiguousarray(self.triangle[:, self.n_loads :].T)  # (n_modes * Q_A, n_rows)

    @cached_property
    def _normal(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The blocks of the normal equations: pairs (q ≤ q'), their matrices, and the right-hand sides."""
        d, terms = self.n_modes, self.n_terms
        blocks = self._columns.reshape(d, terms, -1)
        products = np.einsum("iqr,jpr->qpij", blocks, blocks, optimize=True)
        pairs = np.array([(q, p) for q in range(terms) for p in range(q, terms)])
        packed = [products[q, p] + products[p, q] if p > q else products[q, p] for q, p in pairs]
        right = np.einsum("fr,iqr->fqi", self._loads, blocks, optimize=True)
        return pairs, np.array(packed).reshape(len(pairs), d * d), right.reshape(self.n_loads * terms, d)

    def operators(self, theta: np.ndarray) -> np.ndarray:
        """B_μ = Σ θ_q R_q, (n_samples, n_rows, n_modes)."""
        blocks = self._columns.reshape(self.n_modes, self.n_terms, -1)
        return np.einsum("nq,iqr->nri", theta, blocks, optimize=True)

    def load(self, phi: np.ndarray) -> np.ndarray:
        """f_μ = Σ φ_q R_q, (n_samples, n_rows)."""
        return phi @ self._loads

    def residuals(self, theta: np.ndarray, phi: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """D P (f_μ − A_μ V c) in the few rows, (n_samples, n_rows)."""
        z = (coefficients[:, :, None] * theta[:, None, :]).reshape(len(theta), -1)
        return phi @ self._loads - z @ self._columns

    def rounding(self, theta: np.ndarray, phi: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """An upper estimate of what rounding adds to the norm of a residual, (n_samples,)."""
        loads = np.linalg.norm(self._loads, axis=1)
        columns = np.linalg.norm(self._columns, axis=1).reshape(self.n_modes, self.n_terms)
        terms = np.abs(phi) @ loads + np.sum(np.abs(coefficients) @ columns * np.abs(theta), axis=1)
        return 4 * np.finfo(float).eps * np.sqrt(self.triangle.shape[1]) * terms

    def solve(self, theta: np.ndarray, phi: np.ndarray) -> np.ndarray:
        """c = argmin ||D P (f_μ − A_μ V c)||, (n_samples, n_modes).

        Normal equations, whose condition the weighting keeps small, and one correction with the residual itself, which
        brings back the digits that squaring costs.
        """
        pairs, matrices, right = self._normal
        n, d = len(theta), self.n_modes
        normal = (theta[:, pairs[:, 0]] * theta[:, pairs[:, 1]]) @ matrices
        inverse = np.linalg.inv(normal.reshape(n, d, d))
        first = (phi[:, :, None] * theta[:, None, :]).reshape(n, -1) @ right
        coefficients = (inverse @ first[:, :, None])[:, :, 0]
        residual = self.residuals(theta, phi, coefficients)
        slope = (residual @ self._columns.T).reshape(n, d, self.n_terms)
        return coefficients + (inverse @ (slope @ theta[:, :, None]))[:, :, 0]


class FrameBuilder:
    """Collects the columns of a frame, mode by mode, and keeps them orthonormal; offline only."""

    def __init__(self, form: AffineForm, mu: np.ndarray, factors: Factors | None, rows: np.ndarray, scale: np.ndarray):
        """`factors` are those of A(mu), or None to weight with `rows` (n_unknowns,) alone; `scale` is D's diagonal."""
        self.form, self.mu, self.factors = form, mu, factors
        self.rows, self.scale = rows, scale
        self.orthonormal = np.empty((len(scale), 0))
        self.triangle = np.empty((0, 0))
        self._append(form.loads.T)

    def add(self, mode: np.ndarray) -> None:
        """Append the columns A_q v of one mode (n_unknowns,)."""
        self._append(np.column_stack([a @ mode for a in self.form.operators]))

    def _append(self, columns: np.ndarray) -> None:
        columns = np.asfortranarray(columns)
        scale, product = (self.rows, columns) if self.factors is None else (self.scale, self.factors.solve(columns))
        weighted = scale[:, None] * product
        known = self.orthonormal
        parts, corner, rest = np.zeros((known.shape[1], columns.shape[1])), np.eye(columns.shape[1]), weighted
        # columns may depend on earlier ones (A u = f for a solution u), and what is then left is rounding: repeated until
        # that, too, is orthogonal to all that was there
        for _ in range(4):
            found = known.T @ rest
            rest, triangle = np.linalg.qr(rest - known @ found)
            parts += found @ corner
            corner = triangle @ corner
        basis = rest
        self.orthonormal = np.hstack([self.orthonormal, basis])
        below = np.zeros((len(corner), self.triangle.shape[1]))
        self.triangle = np.block([[self.triangle, parts], [below, corner]])

    def frame(self) -> Frame:
        """The frame of the columns so far."""
        return Frame(self.mu, self.triangle.copy(), len(self.form.loads), len(self.form.operators))
