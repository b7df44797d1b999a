"""Answers whose bounds exceed a tolerance, made again by the reduced model, and where that is not enough by full solves."""

from __future__ import annotations

import numpy as np

from parasol.errors import InputError
from parasol.runtime.answer import Answer


def repaired(answer: Answer, tolerance: float) -> Answer:
    """The answer with relative bounds of at most `tolerance`; its `method` says how each one came about."""
    surrogate, mus, c = answer.surrogate, answer.mus, answer.coefficients.copy()
    method = np.zeros(len(mus), dtype=int)
    relative = surrogate.certify(mus, c, extrapolate=True).relative
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
        for i in bad:
            beyond = answer.outside is not None and answer.outside[i]
            solution = surrogate.solver.solve(mus[i], **({"extrapolate": True} if beyond else {}))
            solved[int(i)] = np.asarray(getattr(solution, "flat", getattr(solution, "values", solution)), dtype=float)
        method[bad] = 2
    return Answer(surrogate, mus, c, answer.single, answer.outside, method, solved)
