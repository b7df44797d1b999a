"""Which parameters maps are given as logarithms: those declared so, and others where errors on samples left out become less."""

from __future__ import annotations

from functools import cache

import numpy as np

from parasol.errors import TooFewSamples
from parasol.fitting.polynomial import Polynomial
from parasol.runtime.features import Features, features_of, wide_columns
from parasol.runtime.parameters import ParameterSpace

_FEWEST = 30  # samples, below which only declared scales count
_ENOUGH = 600  # samples that settle it
_CLEARLY = 0.9  # of the error without a logarithm, that it must come below
_SMALLEST = 1e-3  # of the usual size of a sample: relative to less no error is measured


def features_for(parameters: ParameterSpace, mus: np.ndarray, coefficients: np.ndarray) -> Features:
    """Logarithms where scales ask for them, and of other wide ranges where a polynomial then errs clearly less on samples left out.

    Each wide column counts by itself: uniform samples of (0, 1) span decades by accident, beside others that do so by nature.
    """
    plain, wide = features_of(parameters, mus), wide_columns(parameters)
    if not wide or len(mus) < _FEWEST:
        return plain
    order = np.random.default_rng(0).permutation(len(mus))[:_ENOUGH]
    train, test = order[: 2 * len(order) // 3], order[2 * len(order) // 3 :]
    inside = np.all((mus[test] >= mus[train].min(axis=0)) & (mus[test] <= mus[train].max(axis=0)), axis=1)
    test = test[inside] if inside.any() else test
    sizes = np.linalg.norm(coefficients, axis=1)
    sizes = np.maximum(sizes, _SMALLEST * float(np.sqrt(np.mean(sizes**2))) or 1.0)[test]

    @cache
    def error(columns: frozenset[int]) -> float:
        features = features_of(parameters, mus, more_logs=columns)
        try:
            fitted = Polynomial().fit(features(mus[train]), coefficients[train])
        except TooFewSamples:
            return np.inf
        gaps = np.linalg.norm(fitted.predict(features(mus[test])) - coefficients[test], axis=1)
        return float(np.mean(gaps / sizes))

    none, all_of_them = (_changed_singly(frozenset(start), wide, error) for start in ((), wide))
    return features_of(
        parameters, mus, more_logs=all_of_them if error(all_of_them) < _CLEARLY * error(none) else none
    )


def _changed_singly(columns: frozenset[int], wide: list[int], error) -> frozenset[int]:
    """Columns put in where the error becomes clearly less, and taken out where it does not become clearly more.

    >>> helpful = lambda columns: 0.1 if 0 in columns else 1.0
    >>> sorted(_changed_singly(frozenset(), [0, 1], helpful)), sorted(_changed_singly(frozenset([0, 1]), [0, 1], helpful))
    ([0], [0])
    """
    for j in wide:
        without, with_it = columns - {j}, columns | {j}
        columns = with_it if error(with_it) < _CLEARLY * error(without) else without
    return columns
