"""A surrogate of data as an estimator of scikit-learn: in pipelines, in cross-validation, in searches over its settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from parasol.delivery.traced import required
from parasol.fitting.data import fit_snapshots
from parasol.fitting.maps import Recipe
from parasol.runtime.surrogate import Surrogate

try:
    from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin

    _BASES = (MultiOutputMixin, RegressorMixin, BaseEstimator)
except ImportError:  # the name can still be looked up and documented; whoever makes one reads what is missing
    _BASES = ()


class SurrogateRegressor(*_BASES):  # type: ignore[misc]
    """`ps.fit_snapshots` with the manners of scikit-learn: fit(X, y), predict(X), score(X, y); y is (n,) or (n, n_values).

    What is learned is `surrogate_`. With a `level` a part of the samples is kept aside for the bounds of `surrogate_(X)`, else
    there are none. `predict` answers outside the samples too, as regressors do; `surrogate_(X)` refuses there. It
    is searched over as others are:

        search = GridSearchCV(SurrogateRegressor(), {"recipe": ["polynomial", "gaussian process"]}).fit(X, fields)
    """

    surrogate_: Surrogate

    def __init__(
        self,
        recipe: str | Recipe = "best",
        *,
        tolerance: float | None = None,
        n_modes: int | None = None,
        level: float | None = None,
        ranges: Mapping[str, tuple] | None = None,
        random_state: int = 0,
    ):
        required("sklearn")
        self.recipe = recipe
        self.tolerance = tolerance
        self.n_modes = n_modes
        self.level = level
        self.ranges = ranges
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> SurrogateRegressor:
        """Learn from samples X (n, n_features), whose named columns are named parameters, and y."""
        options = {"dtype": float, "multi_output": True, "y_numeric": True, "ensure_min_samples": 4}
        data, values = required("sklearn.utils.validation").validate_data(self, X, y, **options)
        self._flat = values.ndim == 1
        values = values.reshape(len(values), -1)
        one = values.shape[1] == 1  # nothing to reduce
        named = all(name.isidentifier() for name in getattr(self, "feature_names_in_", [""]))
        self.surrogate_ = fit_snapshots(
            X if named else data,
            values,
            self.recipe,
            tolerance=None if one else self.tolerance,
            n_modes=1 if one else self.n_modes,
            level=self.level,
            ranges=self.ranges,
            rng=self.random_state,
        )
        return self

    def predict(self, X: Any) -> np.ndarray:
        """y of samples X (n, n_features)."""
        validation = required("sklearn.utils.validation")
        validation.check_is_fitted(self)
        data = validation.validate_data(self, X, dtype=float, reset=False)
        values = self.surrogate_(data, extrapolate=True).values
        return values[:, 0] if self._flat else values

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of all values together:  1 − Σ |y − ŷ|² / Σ |y − ȳ|², so that values which never change, as at a wall, do not count."""
        score = required("sklearn.metrics").r2_score
        return float(score(y, self.predict(X), sample_weight=sample_weight, multioutput="variance_weighted"))
