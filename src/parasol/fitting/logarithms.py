"""Which parameters maps are given as logarithms: those declared so, and others where errors on samples left out become less."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache

import numpy as np

from parasol.errors import TooFewSamples
from parasol.fitting.polynomial import Polynomial
from parasol.runtime.features import Features, features_of, wide_columns
from parasol.runtime.parameters import ParameterSpace

_FEWEST = 30  # samples, below which only declared scales count
_ENOUGH = 600  # samples that settle it
_FEW = 300  # samples up to which each third of them is left out once; of more, one third tells as much
_CLEARLY = 0.9  # of the error without a logarithm, that it must come below
_FAR = 0.5  # of the error with none or all of them, that some must come below: of 34 samples the best of 16 choices came to 0.7 by chance
_SMALLEST = 1e-3  # of the usual size of a sample: relative to less no error is measured


def features_for(
    parameters: ParameterSpace, mus: np.ndarray, coefficients: np.ndarray, *, never: Collection[int] = ()
) -> Features:
    """Logarithms where scales ask for them, and of other wide ranges where a polynomial then errs clearly less on samples left out.

    Those in the columns `never` stay as they are. None or all of the others are taken, or some where that is far better: uniform
    samples of (0, 1) span decades by accident, beside others that do so by nature.
    """
    plain, wide = features_of(parameters, mus), [j for j in wide_columns(parameters) if j not in never]
    if not wide or len(mus) < _FEWEST:
        return plain
    order = np.random.default_rng(0).permutation(len(mus))[:_ENOUGH]
    mus, coefficients = mus[order], coefficients[order]
    sizes = np.linalg.norm(coefficients, axis=1)
    sizes = np.maximum(sizes, _SMALLEST * float(np.sqrt(np.mean(sizes**2))) or 1.0)
    part = np.arange(len(mus)) % 3

    @cache
    def error(columns: frozenset[int]) -> float:
        x = features_of(parameters, mus, more_logs=columns)(mus)
        gaps = []
        for out in (part == i for i in range(3 if len(mus) <= _FEW else 1)):
            seen = x[~out]
            try:
                fitted = Polynomial().fit(seen, coefficients[~out])
            except TooFewSamples:
                return np.inf
            out = out & np.all((x >= seen.min(axis=0)) & (x <= seen.max(axis=0)), axis=1)  # no others are asked for
            gaps.append(np.linalg.norm(fitted.predict(x[out]) - coefficients[out], axis=1) / sizes[out])
        gaps = np.concatenate(gaps)
        return float(np.mean(gaps)) if len(gaps) else np.inf

    return features_of(parameters, mus, more_logs=_chosen(wide, error))


def _chosen(wide: list[int], error: Callable[[frozenset[int]], float]) -> frozenset[int]:
    """None or all of the columns, or some where errors are far less: two may help together and neither alone."""
    none, every = frozenset[int](), frozenset(wide)
    usual = every if error(every) < _CLEARLY * error(none) else none
    some = min((_changed_singly(start, wide, error) for start in (none, every)), key=error)
    return some if error(some) < _FAR * error(usual) else usual


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
