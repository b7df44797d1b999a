"""Answers whose bounds exceed a tolerance, made again by the reduced model, and where that is not enough by full solves."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np

from parasol.checks import as_floats
from parasol.errors import InputError, ParasolError, SolveFailed
from parasol.runtime.answer import Answer


def repaired(answer: Answer, tolerance: float) -> Answer:
    """The answer with relative bounds of at most `tolerance`; its `method` says how each one came about."""
    surrogate, mus, c = answer.surrogate, answer.mus, answer.coefficients.copy()
    method = np.zeros(len(mus), dtype=int)
    relative = surrogate.bounds_of(mus, c, extrapolate=True).relative
    bad = np.flatnonzero(~(relative <= tolerance))  # those that are not numbers, too
    if len(bad) and surrogate.reduced is not None:
        better = surrogate.reduced.solve(mus[bad], extrapolate=True)
        c[bad], method[bad] = better.coefficients, 1
        bad = bad[~(better.bounds.relative <= tolerance)]  # type: ignore[union-attr]
    solved: dict[int, np.ndarray] = {}
    if len(bad):
        if surrogate.solver is None:
            raise InputError(
                f"{len(bad)} of {len(mus)} answers cannot be brought below {tolerance:g} without full solves, and this "
                "surrogate has no solver at hand. Use dataclasses.replace(surrogate, solver=model)."
            )
        takes_it = "extrapolate" in signature(surrogate.solver.solve).parameters  # solvers of one's own do not
        for i in bad:
            beyond = answer.outside is not None and bool(answer.outside[i])
            solution = surrogate.solver.solve(mus[i], **({"extrapolate": True} if beyond and takes_it else {}))
            solved[int(i)] = solution_values(solution, surrogate.basis.n_values)
        method[bad] = 2
    return Answer(surrogate, mus, c, answer.single, answer.outside, method, solved)


def solution_values(solution: Any, n_values: int) -> np.ndarray:
    """The values of a full solve, (n_values,): they are answered with a bound of zero, so nothing else may pass."""
    given = solution
    if not isinstance(given, np.ndarray):
        given = getattr(given, "flat", getattr(given, "values", given))
    try:
        values = as_floats(given).reshape(-1)
    except ParasolError:
        raise
    except (TypeError, ValueError):
        values = np.empty(0)
    if solution is None or values.shape != (n_values,):
        raise InputError(
            f"the solver returned {type(solution).__name__} of shape {np.shape(values)}, expected {n_values} real numbers. "
            "Pass the solver that the surrogate was learned from."
        )
    if not np.isfinite(values).all():
        raise SolveFailed("the full solve has values that are NaN or infinite: there is no answer at this parameter.")
    return values
