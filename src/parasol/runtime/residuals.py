"""Least squares in few rows: the residual of a reduced problem, seen through the inverse of one matrix and one QR."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from parasol.checks import check_shape
from parasol.errors import InputError, SolveFailed

_WIDE, _WIDER = 4000, 64  # columns it may have in any case, and per row


@dataclass(frozen=True, eq=False)
class WeightedResidual:
    """The upper triangle R of a QR factorisation of  D P [f_1 … f_Qf, A_1 v_1 … A_Q v_1, A_1 v_2 …].

    P is the row weighting, D the square root of the inner product. The residual of coefficients c has the norm
    ||D P (f_μ − A_μ V c)|| = ||R z|| with the small vector z = [φ, −θ⊗c]: nothing of length N is left, nothing is
    squared, and no digits are lost. Leaving out the last columns leaves out the last modes.
    """

    mu: np.ndarray  # the parameter whose matrix gives the weighting
    triangle: np.ndarray  # (n_rows, n_columns), n_columns = Q_f + Q_A * n_modes
    noise: np.ndarray  # (n_columns,) what each column may be off by: rounding in the solves, interpolated coefficients
    n_loads: int  # Q_f
    n_terms: int  # Q_A
    precision: float  # relative error that rounding leaves in a full solve

    def __post_init__(self):
        n_rows, n_columns = check_shape(self.triangle, (None, None), "triangle").shape
        check_shape(self.noise, (n_columns,), "noise")
        if self.n_loads < 0 or self.n_terms < 1 or n_columns != self.n_loads + self.n_terms * self.n_modes:
            raise InputError(
                f"a residual of {n_columns} columns cannot have {self.n_loads} loads, {self.n_terms} terms."
            )
        if n_columns > max(_WIDE, _WIDER * n_rows):  # normal equations would take all memory
            raise InputError(f"a residual of {n_rows} rows and {n_columns} columns is too wide.")

    @property
    def n_modes(self) -> int:
        """Number of modes, d."""
        return (self.triangle.shape[1] - self.n_loads) // self.n_terms

    def truncated(self, n_modes: int) -> WeightedResidual:
        """The same for the first modes."""
        size = self.n_loads + self.n_terms * n_modes
        columns = self.triangle[:, :size]
        n_rows = 1 + int(np.max(np.flatnonzero(np.any(columns != 0, axis=1)), initial=0))
        return replace(self, triangle=columns[:n_rows].copy(), noise=self.noise[:size])

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

    def allowance(self, theta: np.ndarray, phi: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """What rounding and interpolation may add to the norm of a residual, and to a full solve, (n_samples,)."""
        loads, columns = self.noise[: self.n_loads], self.noise[self.n_loads :].reshape(self.n_modes, self.n_terms)
        size = np.abs(coefficients)
        terms = np.abs(phi) @ loads + np.sum((size @ columns) * np.abs(theta), axis=1)
        return terms + self.precision * np.linalg.norm(coefficients, axis=1)

    def smallest(self, theta: np.ndarray) -> np.ndarray:
        """The smallest singular value of D P A_μ V, (n_samples,): no lower bound for all vectors can be larger."""
        pairs, matrices, _ = self._normal
        normal = (theta[:, pairs[:, 0]] * theta[:, pairs[:, 1]]) @ matrices
        values = np.linalg.eigvalsh(normal.reshape(len(theta), self.n_modes, self.n_modes))
        return np.sqrt(np.maximum(values[:, 0], 0.0))

    def solve(self, theta: np.ndarray, phi: np.ndarray) -> np.ndarray:
        """c = argmin ||D P (f_μ − A_μ V c)||, (n_samples, n_modes).

        Normal equations, whose condition the weighting keeps small, and one correction with the residual itself, which
        brings back the digits that squaring costs.
        """
        pairs, matrices, right = self._normal
        n, d = len(theta), self.n_modes
        normal = (theta[:, pairs[:, 0]] * theta[:, pairs[:, 1]]) @ matrices
        try:
            inverse = np.linalg.inv(normal.reshape(n, d, d))
        except np.linalg.LinAlgError:
            raise SolveFailed(
                "the reduced operator is singular at one of these parameters: the equation has no unique solution there."
            ) from None
        first = (phi[:, :, None] * theta[:, None, :]).reshape(n, -1) @ right
        coefficients = (inverse @ first[:, :, None])[:, :, 0]
        residual = self.residuals(theta, phi, coefficients)
        slope = (residual @ self._columns.T).reshape(n, d, self.n_terms)
        return coefficients + (inverse @ (slope @ theta[:, :, None]))[:, :, 0]
