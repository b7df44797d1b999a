"""The linear last layer of a network, solved exactly: least squares with a ridge that data not used have chosen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parasol.fitting.ridge import RidgePath

_STRENGTHS = np.logspace(-16, 1, 35)  # √ridge over the largest singular value
_SLACK = 1.02  # the strongest ridge within 2 % of the smallest error is taken: small weights are worth a little error
_LINEAR_WEIGHTS = (1.0, 1e2, 1e4)  # how much cheaper the linear path may be than the neurons, where both fit the data


@dataclass(frozen=True, eq=False)
class LastLayer:
    """targets ≈ hidden @ weights + inputs @ skip + bias; `error` is the RMS error on data not used for the weights."""

    weights: np.ndarray  # (n_hidden, n_outputs)
    bias: np.ndarray  # (n_outputs,)
    skip: np.ndarray | None  # (n_inputs, n_outputs)
    ridge: float  # per sample
    linear_weight: float
    error: float

    def predict(self, hidden, inputs=None) -> np.ndarray:
        """Outputs (n, n_outputs)."""
        out = hidden @ self.weights + self.bias
        return out if self.skip is None else out + inputs @ self.skip


def solve_last_layer(
    hidden: np.ndarray,
    targets: np.ndarray,
    *,
    inputs: np.ndarray | None = None,
    validation: tuple[np.ndarray, ...] | None = None,
    like: LastLayer | None = None,
    noise: float = 1e-16,
) -> LastLayer:
    """Minimise ‖H W + X S + 1 b − Y‖² + n ridge (‖W‖² + ‖S‖²/w²), ridge (and w) chosen on data that were not used.

    hidden H (n, n_hidden), targets Y (n, n_outputs), inputs X (n, n_inputs) for the linear path or None.
    `validation` = (H, Y) or (H, X, Y) of other samples; without it the error of every sample predicted from all others
    decides, which a ridge regression knows without being repeated: rᵢ / (1 − hᵢᵢ).
    `like` takes the ridge per sample and w of another solution instead. `noise` is the rounding of the numbers the network will be evaluated in. Errors of that size in H cost
    n · noise² ‖W‖², so no ridge below n · noise² is tried: weights stay small enough for that precision.

    >>> x = np.linspace(-1, 1, 9)[:, None]
    >>> line = solve_last_layer(np.tanh(x), 1 + 2 * x, inputs=x)
    >>> float(line.bias[0].round(6)), float(line.skip[0, 0].round(6))
    (1.0, 2.0)
    """
    n, n_hidden = hidden.shape
    weights = (1.0,) if like is None else (like.linear_weight,)
    if inputs is not None and like is None and n < 3 * (n_hidden + inputs.shape[1]):
        weights = _LINEAR_WEIGHTS
    solutions = []
    for weight in weights:
        columns = hidden if inputs is None else np.hstack([hidden, weight * inputs])
        unseen = None
        if validation is not None:
            unseen = validation[0] if inputs is None else np.hstack([validation[0], weight * validation[1]])
        ridge = None if like is None else n * like.ridge
        solved, bias, ridge, error = _ridge(columns, targets, unseen, validation and validation[-1], noise, ridge)
        skip = None if inputs is None else weight * solved[n_hidden:]
        solutions.append(LastLayer(np.ascontiguousarray(solved[:n_hidden]), bias, skip, ridge / n, weight, error))
    return min(solutions, key=lambda last: last.error)


def _ridge(columns, targets, unseen, unseen_targets, noise, ridge):
    """Weights, bias, ridge and RMS error on unseen data of the best ridge regression."""
    n, path = len(columns), RidgePath(columns, targets)
    if not len(path.s):  # constant columns: nothing but the bias can be learned
        error = float(np.sqrt(np.mean((targets - path.y_mean) ** 2)))
        return np.zeros((columns.shape[1], targets.shape[1])), path.y_mean, 0.0, error
    ridges = np.unique(np.maximum((path.largest * _STRENGTHS) ** 2 if ridge is None else [ridge], n * noise**2))
    residuals = path.left_out if unseen is None else path.residuals(unseen, unseen_targets)
    errors = np.array([np.sqrt(np.mean(residuals(ridge) ** 2)) for ridge in ridges])
    chosen = int(np.flatnonzero(errors <= _SLACK * errors.min())[-1])
    return *path.coefficients(ridges[chosen]), float(ridges[chosen]), float(errors[chosen])
