"""The full solver's own error as a function of the parameters: estimated where it was solved, interpolated elsewhere."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from parasol.errors import SolveFailed, TooFewSamples
from parasol.fitting.gaussian_process import GaussianProcess
from parasol.learning.solves import SolveCache
from parasol.pde.discretisation import error_of
from parasol.pde.model import Model
from parasol.runtime.operations import Affine
from parasol.runtime.program import Program, StoredMap
from parasol.runtime.surrogate import Surrogate

_MOST = 24  # solves whose error is estimated, each at the cost of a factorisation
_FEWEST = 6  # from which an interpolation is worth it
_LEAST = 1e-16  # an error of 0 has no logarithm


def with_discretisation(surrogate: Surrogate, cache: SolveCache) -> Surrogate:
    """The surrogate with a map of the discretisation error over its box, from the full solves that were made for it.

    Of these, some that are far from each other are taken, at most 24. The logarithm of the estimates is interpolated by
    a Gaussian process; functions among the parameters have no such map, the largest estimate stands for all. Problems
    in time, solvers of one's own and nodes that are too few for the estimate leave the surrogate as it is.
    """
    model = cache.solver
    if not isinstance(model, Model) or model.problem.time is not None:
        return surrogate
    if not len(cache.sizes()[0]) or cache.limits.left < 2 * _MOST * cache.cost or model.between is None:
        return surrogate
    mus, logs = _estimates(surrogate, model, cache)
    if not len(mus):
        return surrogate
    x = surrogate.features(mus)
    fitted = None
    if len(mus) >= _FEWEST and not surrogate.parameters.functions:
        with suppress(TooFewSamples):
            fitted = GaussianProcess(kernel="matern52", trend_degree=0).fit(x, logs[:, None])
    if fitted is None:
        program = Program((Affine(np.zeros((1, x.shape[1])), np.array([np.max(logs)])),))
        fitted = StoredMap(program, "constant")
    return replace(surrogate, discretisation=StoredMap.of(fitted))


def largest(surrogate: Surrogate, n: int = 1000) -> float | None:
    """The largest estimate over the box, at random parameters and the corners; None where there is no map."""
    if surrogate.discretisation is None:
        return None
    space = surrogate.parameters.answered
    unit = np.random.default_rng(0).random((n, len(space.scalars)))
    unit[: n // 4] = np.round(unit[: n // 4])  # corners
    mus = np.zeros((n, surrogate.n_parameters))
    mus[:, : unit.shape[1]] = space.from_unit(unit)
    found = surrogate.discretisation_errors(mus)
    return None if found is None else float(np.max(found))


def _estimates(surrogate: Surrogate, model: Model, cache: SolveCache) -> tuple[np.ndarray, np.ndarray]:
    """Parameters (n, n_parameters) and the logarithms (n,) of the estimates there, until the seconds are used up."""
    known = cache.sizes()[0]
    mus, logs = [], []
    for i in _far_apart(surrogate.features(known)):
        if cache.limits.left <= 0:
            break
        try:
            error = error_of(model, cache.unknowns(model, known[i]), known[i])
        except SolveFailed:  # rounding may make a matrix singular that was not
            continue
        if error is not None and np.isfinite(error):
            mus.append(known[i])
            logs.append(np.log(max(error, _LEAST)))
    return np.array(mus), np.array(logs)


def _far_apart(x: np.ndarray) -> list[int]:
    """Indices of points (n, p), each the farthest from all before it."""
    chosen = [int(np.argmin(np.sum(x**2, axis=1)))]  # the middle of the box first
    distance = np.full(len(x), np.inf)
    while len(chosen) < min(_MOST, len(x)):
        distance = np.minimum(distance, np.sum((x - x[chosen[-1]]) ** 2, axis=1))
        chosen.append(int(np.argmax(distance)))
    return chosen
