"""A fitted Gaussian process: its answers with NumPy alone, and how unsure it is of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from parasol.fitting.polynomial import FittedPolynomial, terms
from parasol.runtime.expansions import KERNELS, MOST_LENGTHS, Radial, RadialKernel, distances
from parasol.runtime.operations import Affine, Sum
from parasol.runtime.program import Program, ProgramMap, check_inputs

__all__ = ["KERNELS", "MOST_LENGTHS", "FittedProcess", "RadialKernel", "distances", "reflect"]

_LEAST_SQUARE = 1e-15  # of a deviation over that of the prior: rounding


@dataclass(frozen=True, eq=False)
class FittedProcess(ProgramMap):
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

    def __post_init__(self):
        _ = self.program  # which checks the parts

    @cached_property
    def program(self) -> Program:  # type: ignore[override]
        """Scaled inputs, then the trend beside the kernels of all samples."""
        before, *trend = self.trend.program.operations
        kernels = (Radial(self.kernel, self.centres, self.lengths), Affine(self.weights.T))
        return Program((before, Sum((tuple(trend), kernels))))

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


def reflect(reflectors: np.ndarray, taus: np.ndarray, a: np.ndarray, transpose: bool = True) -> np.ndarray:
    """Qᵀ A, or Q A, of a QR decomposition kept as reflectors."""
    from scipy.linalg import lapack

    a = np.asfortranarray(a)
    work = max(1, a.shape[1]) * 64
    out, _, _ = lapack.dormqr("L", "T" if transpose else "N", reflectors, taus, a, work)
    return out
