"""Bounds of quantities, of single unknown functions and of values at nodes, from solves that nothing else has seen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from parasol.errors import TooFewSamples
from parasol.fitting.gaussian_process import GaussianProcess
from parasol.fitting.units import field_errors
from parasol.pde.model import Model
from parasol.reduction.snapshots import Snapshots
from parasol.runtime.conformal import conformal_bound
from parasol.runtime.operations import Affine
from parasol.runtime.parts import CalibratedParts
from parasol.runtime.products import MatrixProduct, Weights
from parasol.runtime.program import Program, StoredMap
from parasol.runtime.surrogate import Surrogate

_FLAT = 1.0  # of the usual error, added everywhere: a few tested solves do not show where all others err
_FEWEST, _MOST_INPUTS = 60, 12  # samples and inputs for which errors are worth a map
_EXPLAINED = 0.9  # of the variance of logarithms of errors, that such a map may leave
_ROUNDED = 1 + 1e-6  # what rounding to single precision may take away


def with_parts(
    surrogate: Surrogate,
    fresh: Snapshots,
    rows: np.ndarray | None = None,
    *,
    level: float,
    tries: int = 1,
    n_failed: int = 0,
    labels: np.ndarray | None = None,
    weights: Weights | None = None,
    group: np.ndarray | None = None,
    tested: Snapshots | None = None,
) -> Surrogate:
    """The surrogate, which has a bound of the whole field, with those of its parts: each at the level, by itself.

    `rows` (n_quantities, n_values at one time) are the quantities, `labels` (n_values,) the unknown functions, in the
    inner product with `weights`. Rows of equal `group` count once, with the worst of them; failed solves are infinite errors.
    The shape of the band over the nodes is that of errors on `tested` solves, which are not fresh: it is flat without them.
    """
    widths = _profile(surrogate, tested, labels)
    worst: list[list[np.ndarray]] = [[], [], []]
    start = 0
    for gap, truth, scale, size in _gaps(surrogate, fresh):
        mus, start = fresh.mus[start : start + len(gap)], start + len(gap)
        if rows is not None and surrogate.quantities is not None:
            off = np.einsum("qi,nti->qnt", rows, gap.reshape(len(gap), -1, rows.shape[1]), optimize=True)
            off, wanted = surrogate.quantities.mixed(off, mus), surrogate.quantities.bounds(scale, mus)
            worst[0].append(np.max(_ratio(np.abs(off), wanted), axis=2).T)
        if labels is not None and isinstance(weights, np.ndarray):
            worst[1].append(_ratio(field_errors(gap, truth, labels, weights), (scale / size)[:, None]))
        worst[2].append(np.max(_ratio(np.abs(gap), widths * scale[:, None]), axis=1)[:, None])
    factors: list[np.ndarray | None] = []
    for parts in worst:
        scores = np.concatenate(parts) if parts else np.zeros((len(fresh), 0))
        if group is not None:
            places = np.unique(group, return_inverse=True)[1]
            scores = np.array([np.max(scores[places == place], axis=0) for place in range(places.max() + 1)])
        scores = np.concatenate([scores, np.full((n_failed, scores.shape[1]), np.inf)])
        quantiles = np.array([conformal_bound(column, level=level, tries=tries).quantile for column in scores.T])
        factors.append(quantiles if len(quantiles) and np.all(np.isfinite(quantiles)) else None)
    profile = None if factors[2] is None else (_ROUNDED * factors[2] * widths).astype(np.float32)
    return replace(surrogate, parts=CalibratedParts(factors[0], factors[1], profile))


def following(
    surrogate: Surrogate,
    difficulty: StoredMap,
    mus: np.ndarray,
    errors: np.ndarray,
    *,
    level: float,
    tries: int = 1,
    drawn: bool = True,
    group: np.ndarray | None = None,
) -> Surrogate:
    """The surrogate with a conformal bound that follows the difficulty; the errors of failed solves stand last.

    The difficulty is brought to the size of the errors, which changes no bound: it is then an estimate of them. Of rows of
    equal `group` the worst counts.
    """
    expected = np.exp(Program((*surrogate.features.operations, *difficulty.program.operations))(mus)[:, 0])
    typical = float(np.median(errors[: len(mus)] / expected))
    if not 0 < typical < np.inf:
        return surrogate
    shifted = Program((*difficulty.program.operations, Affine(np.ones((1, 1)), np.array([np.log(typical)]))))
    ratios = errors / np.concatenate([typical * expected, np.ones(len(errors) - len(mus))])
    if group is not None:
        places = np.unique(group, return_inverse=True)[1]
        worst = np.zeros(places.max() + 1)
        np.maximum.at(worst, places, ratios)
        ratios = worst
    conformal = conformal_bound(ratios, level=level, difficulty=np.ones(len(ratios)), tries=tries, drawn=drawn)
    return replace(surrogate, conformal=conformal, difficulty=StoredMap(shifted.folded(), difficulty.name))


def difficulty_of(x: np.ndarray, errors: np.ndarray, part: np.ndarray) -> StoredMap | None:
    """A map from features (n, p) to the logarithm of the errors (n,) that fits without the rows made; None where they do not follow x.

    Rows of equal `part` are left out together to see whether they do: a tenth of the variance at least has to be explained.
    """
    if len(x) < _FEWEST or x.shape[1] > _MOST_INPUTS or not np.median(errors) > 0:
        return None
    logs = np.log(np.maximum(errors, 0.01 * np.median(errors)))
    recipe, left = GaussianProcess("matern52", trend_degree=0), np.empty(len(x))
    with suppress(TooFewSamples, np.linalg.LinAlgError):
        for out in (part == k for k in np.unique(part)):
            left[out] = logs[out] - recipe.fit(x[~out], logs[~out, None]).predict(x[out])[:, 0]
        if np.var(left) < _EXPLAINED * np.var(logs):
            return StoredMap.of(recipe.fit(x, logs[:, None]))
    return None


def quantity_weights(solver: Any) -> np.ndarray | None:
    """Weights (n_quantities, n_values at one time) of a model's quantities; None of a solver that has none."""
    return solver.quantities.rows if isinstance(solver, Model) and solver.problem.quantities else None


def _gaps(surrogate: Surrogate, truth: Snapshots) -> Iterator[tuple[np.ndarray, ...]]:
    """Errors (n, n_values), solutions, error scales (n,) and the norms of the answers, a block at a time."""
    coefficients = surrogate.coefficients(truth.mus, extrapolate=True)
    scales, sizes = surrogate.error_scales(truth.mus, coefficients), np.linalg.norm(coefficients, axis=1)
    start = 0
    for block in truth.blocks():
        here = slice(start, start + len(block))
        start = here.stop
        yield surrogate.basis.lift(coefficients[here]) - block, block, scales[here], sizes[here]


def _profile(surrogate: Surrogate, tested: Snapshots | None, labels: np.ndarray | None) -> np.ndarray:
    """The shape of errors over the values, (n_values,), in the size of the error scale."""
    n = surrogate.basis.n_values
    groups = np.zeros(n, dtype=int) if labels is None else labels
    squares = np.zeros(n)
    for gap, _, scale, _ in () if tested is None else _gaps(surrogate, tested):
        squares += np.sum(_ratio(gap, scale[:, None]) ** 2, axis=0) / len(tested)  # type: ignore[arg-type]
    usual = np.array([np.mean(squares[groups == label]) for label in range(groups.max() + 1)])[groups]
    if not np.all((usual > 0) & np.isfinite(usual)):
        weights = surrogate.basis.weights
        if isinstance(weights, MatrixProduct):
            weights = np.tile(weights.diagonal, weights.copies)
        return np.ones(n) if weights is None else 1 / np.sqrt(weights)
    return np.sqrt(squares + _FLAT**2 * usual)


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Their quotient, 0 where nothing is divided, infinite where it is divided by nothing."""
    above, below = np.broadcast_arrays(above, below)
    return np.divide(above, below, out=np.where(above == 0, 0.0, np.inf), where=below > 0)
