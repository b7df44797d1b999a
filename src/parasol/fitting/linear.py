"""Linear least squares with a ridge chosen by leaving one sample out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from parasol.checks import Progress
from parasol.errors import InputError
from parasol.fitting.maps import Pair, check_data
from parasol.fitting.network import Network, NetworkMap
from parasol.fitting.ridge import RidgePath

_CANCELLED = 1e-10  # of the outputs: what rounding may take from a sum, if it never averages out
_STRENGTHS = np.logspace(0.0, -12.0, 25)  # √λ over the largest singular value; below, rounding spoils leverages
_NEARLY_BEST = 1.05  # of all ridges this close to the best, the largest: smaller coefficients, less cancellation


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
    The best map where solutions depend linearly on a function, and the quickest to answer.

    >>> line = Linear().fit([[0.0], [1.0], [2.0]], [[1.0], [3.0], [5.0]])
    >>> bool(abs(line.predict([[10.0]])[0, 0] - 21.0) < 1e-9)
    True
    """

    ridge: float | None = None

    def fit(
        self, x: ArrayLike, y: ArrayLike, *, validation: Pair = None, progress: Progress = None, rng: int = 0
    ) -> FittedLinear:
        """Fit inputs (n, p) to outputs (n, d)."""
        if self.ridge is not None and not (np.isfinite(self.ridge) and self.ridge >= 0):
            raise InputError(f"ridge={self.ridge!r} must be zero, positive, or None to have it chosen.")
        x, y, validation = check_data(x, y, validation)
        path = RidgePath(x, y)
        ridges = (path.largest * _STRENGTHS) ** 2 if self.ridge is None else np.array([float(self.ridge)])
        if validation is None:
            errors = [float(np.mean(np.linalg.norm(path.left_out(ridge), axis=1))) for ridge in ridges]
        else:
            errors = [_error(*path.coefficients(ridge), *validation) for ridge in ridges]
        pick = int(np.argmax(np.array(errors) <= _NEARLY_BEST * min(errors)))
        c, shift = path.coefficients(ridges[pick])
        if progress is not None:
            progress(1.0)
        return FittedLinear(Network((np.ascontiguousarray(c.T),), (shift,), "tanh"), float(ridges[pick]), errors[pick])


def _error(c: np.ndarray, shift: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    """The mean distance of x C + c from y; infinite where the sum is one of terms that cancel.

    Such coefficients fit these samples too, in this order of summation; another program, or a derivative, would show
    that their last digits mean nothing.
    """
    terms, size = (float(np.sqrt(np.mean(np.sum(v, axis=1)))) for v in (x**2 @ c**2, y**2))
    if np.finfo(float).eps * terms > _CANCELLED * size:
        return np.inf
    return float(np.mean(np.linalg.norm(x @ c + shift - y, axis=1)))
