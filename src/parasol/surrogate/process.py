"""A fitted Gaussian process: its kernels, its answers with NumPy alone, and how unsure it is of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from parasol.surrogate.linear import check_inputs
from parasol.surrogate.polynomial import FittedPolynomial, terms

MOST_LENGTHS = 12  # more inputs than this share one length scale
_LEAST_SQUARE = 1e-15  # of a deviation over that of the prior: rounding
_SQRT3, _SQRT5 = np.sqrt(3.0), np.sqrt(5.0)


@dataclass(frozen=True)
class RadialKernel:
    """k and dk/ds as functions of s = Σ ((x_i − z_i) / ℓ_i)²."""

    value: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]


def _matern52(s):
    r = _SQRT5 * np.sqrt(s)
    return (1.0 + r + r * r / 3.0) * np.exp(-r)


def _matern52_slope(s):
    r = _SQRT5 * np.sqrt(s)
    return -5.0 / 6.0 * (1.0 + r) * np.exp(-r)


KERNELS = {
    "gaussian": RadialKernel(lambda s: np.exp(-0.5 * s), lambda s: -0.5 * np.exp(-0.5 * s)),
    "inverse multiquadric": RadialKernel(lambda s: (1.0 + s) ** -0.5, lambda s: -0.5 * (1.0 + s) ** -1.5),
    "matern52": RadialKernel(_matern52, _matern52_slope),
    "matern32": RadialKernel(
        lambda s: (1.0 + _SQRT3 * np.sqrt(s)) * np.exp(-_SQRT3 * np.sqrt(s)),
        lambda s: -1.5 * np.exp(-_SQRT3 * np.sqrt(s)),
    ),
}


@dataclass(frozen=True, eq=False)
class FittedProcess:
    """y = P(x) β + k(x, z) α with the trend P β a polynomial; `variance` is one number for all outputs together."""

    kernel: str
    centres: np.ndarray  # (n, p) scaled samples z
    lengths: np.ndarray  # (p,) of scaled inputs
    nugget: float
    variance: float
    weights: np.ndarray  # (n, d) α
    trend: FittedPolynomial
    reflectors: np.ndarray  # QR of the trend's terms, as LAPACK packs it
    taus: np.ndarray
    factor: np.ndarray  # (n − m, n − m) lower Cholesky factor of the covariance across the trend

    def predict(self, x) -> np.ndarray:
        """Outputs (n, d) of inputs (n, p)."""
        x = check_inputs(x, len(self.lengths))
        out = self.trend.predict(x)
        k = KERNELS[self.kernel].value(distances(self._scaled(x) / self.lengths, self.centres / self.lengths))
        return out + k @ self.weights

    def jacobian(self, x) -> np.ndarray:
        """Derivatives (n, d, p)."""
        x = check_inputs(x, len(self.lengths))
        out = self.trend.jacobian(x)
        t = self._scaled(x)
        g = 2.0 * KERNELS[self.kernel].slope(distances(t / self.lengths, self.centres / self.lengths))
        for i, (length, scale) in enumerate(zip(self.lengths, self.trend.scale, strict=True)):
            out[:, :, i] += (g * (t[:, i, None] - self.centres[:, i])) @ self.weights * (scale / length**2)
        return out

    def deviation(self, x) -> np.ndarray:
        """Standard deviation (n,) of the outputs together (Euclidean), the error of the trend included; never zero."""
        from scipy.linalg import solve_triangular

        t = self._scaled(check_inputs(x, len(self.lengths)))
        z = self.centres / self.lengths
        value = KERNELS[self.kernel].value
        m = self.reflectors.shape[1]
        covariance = value(distances(z, z))
        k = value(distances(z, t / self.lengths))
        u = solve_triangular(self.reflectors[:m], terms(t, self.trend.indices).T, trans="T")
        u = reflect(self.reflectors, self.taus, np.vstack([u, np.zeros((len(z) - m, len(t)))]), transpose=False)
        ku = covariance @ u
        across = reflect(self.reflectors, self.taus, k - ku)[m:]
        gain = solve_triangular(self.factor, across, lower=True)
        square = 1.0 - 2.0 * np.sum(u * k, axis=0) + np.sum(u * ku, axis=0) - np.sum(gain**2, axis=0)
        square += self.nugget * np.sum(u * u, axis=0)
        return np.sqrt(self.variance * np.maximum(square, _LEAST_SQUARE))

    def _scaled(self, x: np.ndarray) -> np.ndarray:
        return (x - self.trend.shift) * self.trend.scale


def distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Squared distances (n, m), without the cancellation of |a|² − 2ab + |b|²."""
    if a.shape[1] > MOST_LENGTHS:
        out = np.sum(a**2, axis=1)[:, None] - 2.0 * (a @ b.T) + np.sum(b**2, axis=1)
        return np.maximum(out, 0.0)
    out = np.zeros((len(a), len(b)))
    for left, right in zip(a.T, b.T, strict=True):
        gap = left[:, None] - right
        out += gap * gap
    return out


def reflect(reflectors: np.ndarray, taus: np.ndarray, a: np.ndarray, transpose: bool = True) -> np.ndarray:
    """Qᵀ A, or Q A, of a QR decomposition kept as reflectors."""
    from scipy.linalg import lapack

    a = np.asfortranarray(a)
    work = max(1, a.shape[1]) * 64
    out, _, _ = lapack.dormqr("L", "T" if transpose else "N", reflectors, taus, a, work)
    return out
