"""Linear least squares with a ridge chosen by leaving one sample out; the other maps end in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import svd

from parasol.checks import ParasolError, check_finite, check_shape
from parasol.networks.network import Network

_EPS = np.finfo(float).eps
_NEARLY_BEST = 1.05  # of all ridges this close to the best, the largest: smaller coefficients, less cancellation


def check_data(x, y, validation=None) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray] | None]:
    """Inputs (n, p) and outputs (n, d) as finite floats of at least two different samples; validation alike."""
    x = check_finite(check_shape(x, (None, None), "x"), "x")
    y = check_finite(check_shape(y, (None, None), "y"), "y")
    if len(x) != len(y):
        raise ParasolError(f"x has {len(x)} samples and y has {len(y)}. Pass one row of outputs for each row of inputs.")
    if not x.shape[1] or not y.shape[1]:
        raise ParasolError(f"x has shape {x.shape} and y has shape {y.shape}. A map needs an input and an output.")
    if len(x) < 2:
        raise ParasolError(f"a map cannot be fitted to {len(x)} sample{'' if len(x) else 's'}. Pass at least 2.")
    if not np.any(np.ptp(x, axis=0)):
        raise ParasolError(f"all {len(x)} rows of x are the same. Pass samples of different parameters.")
    if validation is None:
        return x, y, None
    try:
        x_val, y_val = validation
    except (TypeError, ValueError):
        raise ParasolError("validation must be a pair (x, y) of inputs and outputs.") from None
    x_val = check_finite(check_shape(x_val, (None, x.shape[1]), "validation x"), "validation x")
    y_val = check_finite(check_shape(y_val, (len(x_val), y.shape[1]), "validation y"), "validation y")
    if not len(x_val):
        raise ParasolError("validation has no samples. Pass some, or validation=None to leave one out instead.")
    return x, y, (x_val, y_val)


def check_inputs(x, n_inputs: int) -> np.ndarray:
    """Inputs (n, n_inputs) of a fitted map as floats."""
    if np.ndim(x) == 2 and np.shape(x)[1] != n_inputs:
        raise ParasolError(f"x has {np.shape(x)[1]} columns, but the map was fitted to {n_inputs} inputs.")
    return check_shape(x, (None, n_inputs), "x")


class RidgePath:
    """Solutions C and c of min Σ |y − c − C a|² + λ |C|² for every λ ≥ 0, from one singular value decomposition.

    With centred A = U S Vᵀ the residuals are U D Uᵀ Y + (I − U Uᵀ) Y, D = λ / (S² + λ), and leaving sample i out makes
    them 1 / (1 − h_i) times as large, 1 − h = diag(U D Uᵀ + I − U Uᵀ) − 1/n. Where U spans everything, both vanish with λ
    and their ratio has a limit, which is what an interpolating map is judged by.
    """

    def __init__(self, a: np.ndarray, y: np.ndarray):
        self.a_mean, self.y_mean = a.mean(axis=0), y.mean(axis=0)
        y = y - self.y_mean
        u, s, vt = svd(a - self.a_mean, full_matrices=False, check_finite=False)
        keep = s > _EPS * s[0] if len(s) and s[0] > 0 else np.zeros(len(s), dtype=bool)
        keep[len(a) - 1 :] = False  # centred rows have rank n − 1 at most; what is beyond is rounding
        self.u, self.s, self.vt = u[:, keep], s[keep], vt[keep]
        self.uty = self.u.T @ y
        self.fills = len(self.s) == len(a) - 1
        self.rest = np.zeros_like(y) if self.fills else y - self.u @ self.uty
        free = 1.0 - 1.0 / len(a) - np.sum(self.u**2, axis=1)
        self.free = np.zeros(len(a)) if self.fills else np.maximum(free, 0.0)

    @property
    def ridges(self) -> np.ndarray:
        """λ worth trying, from rounding to the largest singular value, the largest first."""
        largest = self.s[0] if len(self.s) else 1.0
        return (largest * np.logspace(0.0, np.log10(_EPS), 33)) ** 2

    def coefficients(self, ridge: float) -> tuple[np.ndarray, np.ndarray]:
        """C (n_columns, n_outputs) and c (n_outputs,)."""
        c = self.vt.T @ ((self.s / (self.s**2 + ridge))[:, None] * self.uty)
        return c, self.y_mean - self.a_mean @ c

    def leave_one_out(self, ridge: float) -> float:
        """Root mean square over samples of the error (Euclidean over outputs) when a sample is left out."""
        shrink = 1.0 / (self.s**2 + ridge) if self.fills else ridge / (self.s**2 + ridge)
        left = (self.u**2) @ shrink + self.free
        residual = (self.u * shrink) @ self.uty + self.rest
        left = np.maximum(left, np.finfo(float).tiny)
        return float(np.sqrt(np.mean(np.sum(residual**2, axis=1) / left**2)))

    def error(self, ridge: float, validation) -> float:
        """The same measure: of validation = (A, y) if given, else of leaving one sample out."""
        if validation is None:
            return self.leave_one_out(ridge)
        c, shift = self.coefficients(ridge)
        gap = validation[0] @ c
        gap += shift
        gap -= validation[1]
        return float(np.sqrt(np.mean(np.sum(gap**2, axis=1))))

    def best(self, validation=None) -> tuple[float, float]:
        """The ridge with the least error, or a larger one that is as good, and its error."""
        ridges = self.ridges
        errors = np.array([self.error(ridge, validation) for ridge in ridges])
        pick = int(np.argmax(errors <= _NEARLY_BEST * errors.min()))
        return float(ridges[pick]), float(errors[pick])


@dataclass(frozen=True, eq=False)
class FittedLinear:
    """y = C x + c, as a network of one layer; `ridge` and the root mean square `error` it was chosen by."""

    network: Network
    ridge: float
    error: float

    def predict(self, x) -> np.ndarray:
        """Outputs (n, d) of inputs (n, p)."""
        return self.network(check_inputs(x, self.network.n_inputs))

    def jacobian(self, x) -> np.ndarray:
        """Derivatives (n, d, p)."""
        return self.network.jacobian(check_inputs(x, self.network.n_inputs))


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
        ridge, error = path.best(validation) if self.ridge is None else (self.ridge, path.error(self.ridge, validation))
        c, shift = path.coefficients(ridge)
        if progress is not None:
            progress(1.0)
        return FittedLinear(Network((np.ascontiguousarray(c.T),), (shift,), "tanh"), float(ridge), error)
