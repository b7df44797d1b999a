"""The full solver's own error as a function of the parameters: estimated where it was solved, interpolated elsewhere."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from parasol.errors import SolveFailed, TooFewSamples
from parasol.fitting.gaussian_process import FittedProcess, GaussianProcess
from parasol.learning.solves import SolveCache
from parasol.pde.discretisation import changed_by_degree, error_of
from parasol.pde.model import Model
from parasol.pde.steady import l2_root, relative_error
from parasol.runtime.defects import Defects
from parasol.runtime.operations import Affine
from parasol.runtime.program import Program, StoredMap
from parasol.runtime.surrogate import Surrogate

_MOST = 24  # solves whose error is estimated, each at the cost of a factorisation
_FEWEST = 6  # from which an interpolation is worth it
_RANK = 1e-9  # relative: singular values of the solves' coefficients below are rounding
_PER_DEGREE = 4  # solves that one with elements of one degree more may take the time of
_MOST_FOLDS = 20  # into which solves are divided that are left out in turn
_FACTOR, _SHARE = 3.0, 0.75  # how near their errors are to be, and at what part of them
_LEAST = 1e-16  # an error of 0 has no logarithm
_ROUNDING = 1e-14  # of the largest solution: one that is smaller is zero, and has no relative error


def with_discretisation(surrogate: Surrogate, cache: SolveCache) -> Surrogate:
    """The surrogate with the discretisation error over its box, from the full solves that were made for it.

    With elements it is what one degree more changes, as a linear function of the solution (`_by_coefficients`). Else some
    solves that are far from each other are taken, at most 24, and the logarithm of the estimates is interpolated by
    a Gaussian process (`_between`); where that is no use, and with functions among the parameters, the largest estimate
    stands for all. Problems in time, solvers of one's own and nodes that are too few for the estimate leave the surrogate
    as it is.
    """
    model = cache.solver
    if not isinstance(model, Model) or model.problem.time is not None:
        return surrogate
    if not len(_not_zero(cache)) or cache.limits.left < 2 * _MOST * cache.cost:
        return surrogate
    error_map = None if model.elements is None else _by_coefficients(surrogate, model, cache)
    if error_map is not None:
        return replace(surrogate, discretisation=error_map)
    if model.elements is None and model.between is None:
        return surrogate
    mus, logs = _estimates(surrogate, model, cache)
    if not len(mus):
        return surrogate
    fitted = None
    if not surrogate.parameters.functions:
        with suppress(TooFewSamples):
            fitted = _between(surrogate.features(mus), logs)
    if fitted is None:
        fitted = _constant(surrogate, np.max(logs))
    return replace(surrogate, discretisation=StoredMap.of(fitted))


def _between(x: np.ndarray, logs: np.ndarray) -> FittedProcess | None:
    """A process through the logarithms at features (n, p); None where it does not predict those that are left out in turn.

    So where an error is next to nothing at some parameter alone: its logarithm has a pole there.
    """
    if len(x) < _FEWEST:
        return None

    def fitted(some: np.ndarray) -> FittedProcess:
        return GaussianProcess(kernel="matern52", trend_degree=0).fit(x[some], logs[some, None])

    left_out = [fitted(~one).predict(x[one])[0, 0] for one in np.eye(len(x), dtype=bool)]
    return fitted(np.arange(len(x))) if _near(np.array(left_out), logs) else None


def _near(predicted: np.ndarray, logs: np.ndarray) -> bool:
    """Whether enough of the errors with these logarithms are predicted to a factor."""
    return bool(np.mean(np.abs(predicted - logs) < np.log(_FACTOR)) >= _SHARE)


def _by_coefficients(surrogate: Surrogate, model: Model, cache: SolveCache) -> Defects | StoredMap | None:
    """What one degree more changes, as the linear function of the coefficients that fits the solves at hand.

    A solution u = Σ_j a_j u(μ_j) has about the error Σ_j a_j d(μ_j). Whether that is so is seen at solves that are left out
    in turn: where it is not, as across a resonance, the largest error stands for all. None where solves are too few.
    """
    basis, n_fields = surrogate.basis, len(model.problem.names)
    solutions, changes, errors = [], [], []
    for mu in _not_zero(cache):
        values = cache.unknowns(model, mu)
        with suppress(SolveFailed):  # rounding may make a matrix singular that was not
            change = changed_by_degree(model, values, mu) if cache.limits.left > _PER_DEGREE * cache.cost else None
            if change is None:
                return None
            size = np.linalg.norm(values)  # all solutions count the same
            solutions.append(values / size)
            changes.append(change / size)
            errors.append(max(relative_error(model, values, values + change), _LEAST))
    if len(solutions) < max(2, basis.n_modes):
        return None
    c, root = basis.project(np.array(solutions)), l2_root(model)
    by_field = root * np.reshape(changes, (len(changes), n_fields, -1))
    # lengths are all that matters: as many numbers for each change as there are changes
    rows = _lengths(by_field.transpose(1, 2, 0)).transpose(0, 2, 1)  # (n_fields, n_solves, ·)
    sizes = _lengths((root * basis.modes.T.reshape(-1, n_fields, model.n_nodes)).transpose(1, 2, 0))

    def fitted(some: np.ndarray) -> Defects:
        inverse = np.linalg.pinv(c[some], rcond=_RANK)  # (n_modes, n_some)
        return Defects(_lengths((inverse @ rows[:, some]).transpose(0, 2, 1)), sizes)

    fold, seen = np.arange(len(c)) % _MOST_FOLDS, np.empty(len(c))
    for k in range(min(len(c), _MOST_FOLDS)):
        seen[fold == k] = fitted(fold != k)(c[fold == k])
    near = _near(np.log(np.maximum(seen, _LEAST)), np.log(errors))
    return fitted(fold >= 0) if near else _constant(surrogate, float(np.log(np.max(errors))))


def _not_zero(cache: SolveCache) -> np.ndarray:
    """Parameters (n, n_parameters) that were solved and where the solution is not zero."""
    mus, sizes = cache.sizes()
    return mus[sizes > _ROUNDING * np.max(sizes, initial=0.0)] if len(mus) else mus


def _lengths(matrices: np.ndarray) -> np.ndarray:
    """Matrices R (n, ·, n_columns) with ‖R x‖ = ‖M x‖ for matrices M (n, n_rows, n_columns), of few rows."""
    return np.array([np.linalg.qr(matrix, mode="r") for matrix in matrices])


def _constant(surrogate: Surrogate, log: float) -> StoredMap:
    """A map that says the same of all parameters."""
    return StoredMap(Program((Affine(np.zeros((1, surrogate.n_parameters)), np.array([log])),)), "constant")


def largest(surrogate: Surrogate, n: int = 1000) -> float | None:
    """The largest estimate over the box, at random parameters and the corners; None where there is no map."""
    if surrogate.discretisation is None:
        return None
    space = surrogate.parameters.answered
    unit = np.random.default_rng(0).random((n, len(space.scalars)))
    unit[: n // 4] = np.round(unit[: n // 4])  # corners
    mus = np.zeros((n, surrogate.n_parameters))
    mus[:, : unit.shape[1]] = space.from_unit(unit)
    errors = surrogate.discretisation_errors(mus)
    return None if errors is None else float(np.max(errors))


def _estimates(surrogate: Surrogate, model: Model, cache: SolveCache) -> tuple[np.ndarray, np.ndarray]:
    """Parameters (n, n_parameters) and the logarithms (n,) of the estimates there, until the seconds are used up."""
    known = _not_zero(cache)
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
