"""Linear least squares with a ridge chosen by leaving one sample out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import svd

from parasol.checks import ParasolError
from parasol.fitting.maps import check_data
from parasol.fitting.network import Network, NetworkMap

_EPS = np.finfo(float).eps
_CANCELLED = 1e-10  # of the outputs: what rounding may take from a sum, if it never averages out
_SAFE = 1e-12  # below it rounding spoils the leverages of samples that the fit hangs on
_RELATIVE_RIDGES = np.logspace(0.0, np.log10(_EPS), 33)  # √λ over the largest singular value
_NEARLY_BEST = 1.05  # of all ridges this close to the best, the largest: smaller coefficients, less cancellation


class RidgePath:
    """Solutions C and c of min Σ |y − c − C a|² + λ |C|² for every λ ≥ 0, from one singular value decomposition.

    With centred A = U S Vᵀ the residuals are U D Uᵀ Y + (I − U Uᵀ) Y, D = λ / (S² + λ), and leaving sample i out makes
    them 1 / (1 − h_i) times as large, 1 − h = diag(U D Uᵀ + I − U Uᵀ) − 1/n.
    """

    def __init__(self, a: np.ndarray, y: np.ndarray):
        self.a_mean, self.y_mean = a.mean(axis=0), y.mean(axis=0)
        y = y - self.y_mean
        u, s, vt = svd(a - self.a_mean, full_matrices=False, check_finite=False)
        keep = s > _EPS * s[0] if len(s) and s[0] > 0 else np.zeros(len(s), dtype=bool)
        keep[len(a) - 1 :] = False  # centred rows have rank n − 1 at most; what is beyond is rounding
        self.u, self.s, self.vt = u[:, keep], s[keep], vt[keep]
        self.uty = self.u.T @ y
        fills = len(self.s) == len(a) - 1  # nothing is left over but rounding
        self.rest = np.zeros_like(y) if fills else y - self.u @ self.uty
        free = 1.0 - 1.0 / len(a) - np.sum(self.u**2, axis=1)
        self.free = np.zeros(len(a)) if fills else np.maximum(free, 0.0)

    @property
    def ridges(self) -> np.ndarray:
        """λ worth trying, from rounding to the largest singular value, the largest first."""
        largest = self.s[0] if len(self.s) else 1.0
        return (largest * _RELATIVE_RIDGES) ** 2

    def coefficients(self, ridge: float) -> tuple[np.ndarray, np.ndarray]:
        """C (n_columns, n_outputs) and c (n_outputs,)."""
        c = self.vt.T @ ((self.s / (self.s**2 + ridge))[:, None] * self.uty)
        return c, self.y_mean - self.a_mean @ c

    def leave_one_out(self, ridge: float) -> float:
        """Mean over samples of the error (Euclidean over outputs) when a sample is left out; right for λ > (1e-12 S₁)²."""
        shrink = ridge / (self.s**2 + ridge)
        left = (self.u**2) @ shrink + self.free
        residual = (self.u * shrink) @ self.uty + self.rest
        return float(np.mean(np.linalg.norm(residual, axis=1) / np.maximum(left, np.finfo(float).tiny)))

    def error(self, ridge: float, a: np.ndarray, y: np.ndarray) -> float:
        """The same measure for samples (A, y) that were not used; infinite where the sum is one of terms that cancel.

        Such coefficients fit these samples too, in this order of summation; another program, or a derivative, would show
        that their last digits mean nothing.
        """
        c, shift = self.coefficients(ridge)
        terms, size = (float(np.sqrt(np.mean(np.sum(v, axis=1)))) for v in (a**2 @ c**2, y**2))
        if _EPS * terms > _CANCELLED * size:
            return np.inf
        return float(np.mean(np.linalg.norm(a @ c + shift - y, axis=1)))


@dataclass(frozen=True, eq=False)
class FittedLinear(NetworkMap):
    """y = C x + c, as a network of one layer; `error` is the mean over samples left out that `ridge` was chosen by."""

    network: Network
    ridge: float
    error: float


@dataclass(frozen=True)
class Linear:
    """y = C x + c by least squares with a penalty λ |C|²; λ is chosen by leaving one sample out, or by validation.

    Where samples are fewer than inputs, or lie in a subspace, the smallest C is taken, so a linear map is met to rounding.

    >>> line = Linear().fit([[0.0], [1.0], [2.0]], [[1.0], [3.0], [5.0]])
    >>> bool(abs(line.predict([[10.0]])[0, 0] - 21.0) < 1e-9)
    True
    """

    ridge: float | None = None

    def fit(self, x, y, *, validation=None, progress=None, rng=0) -> FittedLinear:
        """Fit inputs (n, p) to outputs (n, d)."""
        if self.ridge is not None and not (np.isfinite(self.ridge) and self.ridge >= 0):
            raise ParasolError(f"ridge={self.ridge!r} must be zero, positive, or None to have it chosen.")
        x, y, validation = check_data(x, y, validation)
        path = RidgePath(x, y)
        ridges = path.ridges[_RELATIVE_RIDGES >= _SAFE] if self.ridge is None else np.array([float(self.ridge)])
        errors = [path.leave_one_out(r) if validation is None else path.error(r, *validation) for r in ridges]
        pick = int(np.argmax(np.array(errors) <= _NEARLY_BEST * min(errors)))
        c, shift = path.coefficients(ridges[pick])
        if progress is not None:
            progress(1.0)
        return FittedLinear(Network((np.ascontiguousarray(c.T),), (shift,), "tanh"), float(ridges[pick]), errors[pick])
