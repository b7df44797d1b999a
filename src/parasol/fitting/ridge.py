"""Ridge regression for every ridge at once, with the errors of samples left out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import qr, svd

_EPS = np.finfo(float).eps


class RidgePath:
    """Solutions C and c of min Σ |y − c − C a|² + λ |C|² for every λ ≥ 0, from one singular value decomposition.

    With centred A = U S Vᵀ the residuals are U D Uᵀ Y + (I − U Uᵀ) Y, D = λ / (S² + λ), and leaving sample i out makes
    them 1 / (1 − h_i) times as large, 1 − h = diag(U D Uᵀ + I − U Uᵀ) − 1/n.
    """

    def __init__(self, a: np.ndarray, y: np.ndarray):
        n = len(a)
        self.a_mean, self.y_mean = a.mean(axis=0), y.mean(axis=0)
        a, y = a - self.a_mean, y - self.y_mean
        if n > a.shape[1]:  # the singular values of R are those of A, at a fraction of the work
            q, r = qr(a, mode="economic", check_finite=False)
            u, s, vt = svd(r, check_finite=False)
            u = q @ u
        else:
            u, s, vt = svd(a, full_matrices=False, check_finite=False)
        keep = s > _EPS * max(s[0], np.finfo(float).tiny)
        keep[n - 1 :] = False  # centred rows have rank n − 1 at most; what is beyond is rounding
        self.u, self.s, self.vt = u[:, keep], s[keep], vt[keep]
        self.uty = self.u.T @ y
        fills = len(self.s) == n - 1  # nothing is left over but rounding
        self.rest = np.zeros_like(y) if fills else y - self.u @ self.uty
        self.free = np.zeros(n) if fills else np.maximum(1.0 - 1.0 / n - np.sum(self.u**2, axis=1), 0.0)

    @property
    def largest(self) -> float:
        """The largest singular value; 1 where all samples are the same."""
        return float(self.s[0]) if len(self.s) else 1.0

    def coefficients(self, ridge: float) -> tuple[np.ndarray, np.ndarray]:
        """C (n_columns, n_outputs) and c (n_outputs,)."""
        c = self.vt.T @ ((self.s / (self.s**2 + ridge))[:, None] * self.uty)
        return c, self.y_mean - self.a_mean @ c

    def left_out(self, ridge: float) -> np.ndarray:
        """The residual (n, n_outputs) of each sample when it is left out; right for λ > (1e-12 S₁)²."""
        shrink = ridge / (self.s**2 + ridge)
        left = self.u**2 @ shrink + self.free
        return ((self.u * shrink) @ self.uty + self.rest) / np.maximum(left, np.finfo(float).tiny)[:, None]

    def residuals(self, a: np.ndarray, y: np.ndarray) -> Callable[[float], np.ndarray]:
        """The residuals (m, n_outputs) of samples (A, y) that were not used, as a function of the ridge."""
        rotated, expected = (a - self.a_mean) @ self.vt.T, y - self.y_mean
        return lambda ridge: rotated @ ((self.s / (self.s**2 + ridge))[:, None] * self.uty) - expected
