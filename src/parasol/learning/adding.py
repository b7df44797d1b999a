"""More data for a surrogate that was learned from data: where to sample next, and learning again with what came."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parasol.checks import check_count
from parasol.errors import InputError
from parasol.fitting.maps import Recipe
from parasol.fitting.results import Results
from parasol.reduction.sampling import sample
from parasol.runtime.parameters import ParameterSpace
from parasol.runtime.surrogate import Surrogate

_N_CANDIDATES = 4096


@dataclass(frozen=True, eq=False)
class Origin:
    """What a surrogate of data was learned from, and how: as long as it is in memory, not in its file."""

    results: Results
    tolerance: float
    recipe: str | Recipe | None
    rng: int
    parameters: ParameterSpace | None  # as declared; None: the ranges are those of the data


def updated(surrogate: Surrogate, more: Results) -> Surrogate:
    """The surrogate learned again, from the results it had and `more` of the same kind."""
    from parasol.learning.run import learn  # which makes what this takes

    origin = surrogate.origin
    if not isinstance(origin, Origin):
        raise InputError(
            "the data that the surrogate was learned from are not at hand: a file does not hold them. Learn from all: "
            "ps.learn(data=old + more)."
        )
    if not isinstance(more, Results):
        raise InputError(
            f"further data are a {type(more).__name__}. Give ps.Results, of the same fields and parameters."
        )
    declared = origin.parameters
    both = origin.results + (
        more.of_parameters(declared or surrogate.parameters) if origin.results.parameters else more
    )
    return learn(data=both, tolerance=origin.tolerance, parameters=declared, recipe=origin.recipe, rng=origin.rng)


def suggest(surrogate: Surrogate, n: int, *, data: Results | None = None, rng: int = 0) -> np.ndarray:
    """Parameters (n, n_parameters) at which further runs would help most, one after the other.

    Each is the one of 4096 spread over the box where the error to be expected, times the distance to the nearest run that
    there is or was suggested before it, is largest. Where no estimate of the error follows the parameters, it is the point
    farthest from all runs. `data` are the runs there are, if the surrogate comes from a file, which does not hold them.

    >>> from parasol.fitting.data import fit_snapshots
    >>> mus = np.array([[0.0], [0.1], [0.2], [0.3], [1.0]])
    >>> line = fit_snapshots(mus, mus * [1.0, 2.0], "linear", level=None)
    >>> suggest(line, 1, data=Results(mus, mus * [1.0, 2.0])).round(2)
    array([[0.65]])
    """
    check_count(n, "n")
    space = surrogate.parameters
    if space.functions:
        raise InputError("where to sample next is suggested for numbers, not for functions among the parameters.")
    if data is not None and not isinstance(data, Results):
        raise InputError(f"data is a {type(data).__name__}. Give the runs there are, as ps.Results.")
    runs = data if data is not None else getattr(surrogate.origin, "results", None)
    candidates = sample(replace(space, solved=()), _N_CANDIDATES, rng=rng)
    expected = _expected(surrogate, candidates)
    if runs is None and np.ptp(expected) == 0:
        raise InputError(
            "the runs that the surrogate was learned from are not at hand. Give them: suggest(..., data=results)."
        )
    unit = space.to_unit(candidates)
    apart = np.full(len(candidates), np.inf)
    if runs is not None:
        known = runs.of_parameters(space) if runs.parameters else runs
        for mu in space.to_unit(known.mus):
            apart = np.minimum(apart, np.linalg.norm(unit - mu, axis=1))
    apart[~np.isfinite(apart)] = 1.0
    chosen: list[int] = []
    for _ in range(n):
        chosen.append(int(np.argmax(expected * apart)))
        apart = np.minimum(apart, np.linalg.norm(unit - unit[chosen[-1]], axis=1))
    return candidates[chosen]


def _expected(surrogate: Surrogate, mus: np.ndarray) -> np.ndarray:
    """The relative error to be expected at each parameter, where that is known; else one number."""
    errors: Any = surrogate.estimate(mus, extrapolate=True)
    if errors is None and surrogate.jackknife is not None:
        errors = surrogate.certify(mus, extrapolate=True)
    if errors is None:
        return np.ones(len(mus))
    sizes = np.asarray(errors.relative, dtype=float)
    return np.where(np.isfinite(sizes), sizes, np.max(sizes[np.isfinite(sizes)], initial=1.0))
