"""A hidden layer drawn at random, a linear path, and a last layer by least squares: a network without training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parasol.checks import check_choice, check_count, check_positive
from parasol.fitting.linear import RELATIVE_RIDGES, NetworkMap, RidgePath, check_data, nearly_best
from parasol.fitting.network import ACTIVATIONS, Network

_START, _SCALES = 0.5, (0.0625, 16.0)
_MOST_FEATURES = 800
_LEAST_FEATURES = 400
_FOLDS = 5
_FEW, _MANY = 200, 1000


@dataclass(frozen=True, eq=False)
class FittedNetwork(NetworkMap):
    """A network with the `error` and the weight `scale` it was chosen by."""

    network: Network
    scale: float
    ridge: float
    error: float


@dataclass(frozen=True)
class RandomFeatures:
    """y = C σ(W x + b) + S x + c with W and b drawn at random, and C, S, c by least squares with a ridge.

    Rows of W are normal with deviation `scale` over √p, and σ(W x + b) bends where W x + b is 0: at a point drawn
    uniformly from the samples' box. The ridge is chosen by samples kept aside, or by validation, and so is the scale if
    None. By default there are twice as many features as samples, 400 at least and 800 at most.

    >>> x = np.linspace(-1, 1, 50)[:, None]
    >>> wave = RandomFeatures().fit(x, np.sin(3 * x))
    >>> bool(abs(wave.predict([[0.123]])[0, 0] - np.sin(0.369)) < 1e-6)
    True
    """

    n_features: int | None = None
    scale: float | None = None
    activation: str = "tanh"

    def fit(self, x, y, *, validation=None, progress=None, rng=0) -> FittedNetwork:
        """Fit inputs (n, p) to outputs (n, d)."""
        check_choice(self.activation, ACTIVATIONS, "activation")
        if self.n_features is not None:
            check_count(self.n_features, "n_features")
        x, y, validation = check_data(x, y, validation)
        n_features = self.n_features or int(np.clip(2 * len(x), _LEAST_FEATURES, _MOST_FEATURES))
        low, high = x.min(axis=0), x.max(axis=0)
        shift, slope = (low + high) / 2, 2.0 / np.where(high > low, high - low, 2.0)
        t = (x - shift) * slope
        check = None if validation is None else ((validation[0] - shift) * slope, validation[1])
        rng = np.random.default_rng(rng)
        directions = rng.standard_normal((n_features, x.shape[1])) / np.sqrt(x.shape[1])
        offsets = -np.sum(directions * rng.uniform(-1.0, 1.0, directions.shape), axis=1)
        splits = _splits(len(x), n_features, rng)

        def columns(scale, points):
            hidden = Network((scale * directions, identity), (scale * offsets, zeros), self.activation)
            return np.hstack([hidden(points), points])

        identity, zeros = np.eye(n_features), np.zeros(n_features)

        def attempt(scale):
            a = columns(scale, t)
            errors = np.zeros(len(RELATIVE_RIDGES))
            for fitted, held in splits:
                path = RidgePath(a[fitted], y[fitted])
                aside = (a[held], y[held]) if check is None else (columns(scale, check[0]), check[1])
                errors += [path.error(ridge, *aside) / len(splits) for ridge in path.ridges]
            pick = nearly_best(errors)
            return float(errors[pick]), float(RELATIVE_RIDGES[pick])

        scale = _START if self.scale is None else check_positive(self.scale, "scale")
        error, relative = attempt(scale)
        for factor in (2.0, 0.5) if self.scale is None else ():  # downhill, one way or the other
            first = scale
            while _SCALES[0] <= scale * factor <= _SCALES[1]:
                other = attempt(scale * factor)
                if other[0] >= error:
                    break
                scale, (error, relative) = scale * factor, other
            if progress is not None:
                progress(0.4 if factor > 1 else 0.8)
            if scale != first:
                break
        path = RidgePath(columns(scale, t), y)
        ridge = float((relative * path.s[0]) ** 2)
        c, c0 = path.coefficients(ridge)
        network = Network(
            (scale * directions, np.ascontiguousarray(c[:n_features].T)), (scale * offsets, c0), self.activation,
            skip=np.ascontiguousarray(c[n_features:].T), input_shift=shift, input_scale=slope,
        )  # fmt: skip
        if progress is not None:
            progress(1.0)
        return FittedNetwork(network, scale, ridge, error)


def _splits(n: int, n_features: int, rng) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to fit and rows to judge by: five folds of few samples, three of more, one split of many.

    Not the formula for leaving one out: with as many features as samples its leverages are 1 up to rounding.
    """
    order = rng.permutation(n)
    if n <= _MANY:
        return [(np.setdiff1d(order, held), held) for held in np.array_split(order, min(_FOLDS if n <= _FEW else 3, n))]
    n_fitted = min(max(1000, 2 * n_features), n - n // _FOLDS)
    return [(order[:n_fitted], order[n_fitted : n_fitted + _MANY])]
