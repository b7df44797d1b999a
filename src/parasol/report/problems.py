"""What a notebook shows of a problem and of its solutions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import singledispatch

import sympy

from parasol.pde.evolution import Evolution
from parasol.pde.problem import Dirichlet, Neumann, Problem, Robin
from parasol.pde.steady import Solution, describe
from parasol.pde.text import equation_latex, problem_words
from parasol.report.notebook import card, field_rows


@singledispatch
def problem_html(thing) -> str:
    """A card about a problem or a solution of it."""
    raise TypeError(f"a {type(thing).__name__} has no view for notebooks.")


@problem_html.register
def _(problem: Problem) -> str:
    """A problem for a notebook: the equations in LaTeX, where and when they hold, its conditions and parameters."""
    rows = {"domain": problem_words(problem)["domain"]}
    seams = [str(v) for v, period in zip(problem.coordinates, problem.domain.periods, strict=True) if period]
    if seams:
        rows["domain"] += f", periodic in {', '.join(seams)}"
    if problem.boundary is not None:
        rows["conditions"] = _conditions_text(problem.boundary)
    rows["parameters"] = str(problem.parameters)
    if problem.time is not None:
        span = (
            ""
            if problem.times is None
            else f", {len(problem.times)} times, {problem.times[0]:g} to {problem.times[-1]:g}"
        )
        rows["in time"] = f"order {problem.time_order}{span}"
    rows["kind"] = (
        f"{'linear' if problem.linear else 'nonlinear'}, {'' if problem.affine else 'not '}affine in the parameters"
    )
    if problem.quantities:
        rows["quantities"] = ", ".join(problem.quantities)
    return card(problem.name or "problem", rows, formulas=equation_latex(problem))


@problem_html.register
def _(solution: Solution) -> str:
    rows = field_rows(solution.fields)
    rows |= {"residual": f"{solution.residual_norm:.1e}", "seconds": f"{solution.seconds:.2g}"}
    if solution.start:
        rows["start"] = f"{solution.start}; there may be other solutions"
    if solution.error is not None:
        rows["error"] = f"{solution.error:.1e} against the exact solution"
    at = describe(solution.model, solution.mu) + ("" if solution.time is None else f", t={solution.time:g}")
    return card(f"{solution.model.problem.name or 'solution'} at {at}", rows)


@problem_html.register
def _(evolution: Evolution) -> str:
    times = evolution.times
    rows = field_rows(evolution.fields)
    rows["times"] = f"{len(times)} from {times[0]:g} to {times[-1]:g}"
    rows |= {"steps": f"{evolution.n_steps} of {evolution.integrator}", "seconds": f"{evolution.seconds:.2g}"}
    return card(f"{evolution.model.problem.name or 'evolution'} at {describe(evolution.model, evolution.mu)}", rows)


def _conditions_text(conditions) -> str:
    """Conditions as they were declared: one, one for each unknown, or by part."""
    if isinstance(conditions, Mapping):
        return "; ".join(f"{part}: {_conditions_text(condition)}" for part, condition in conditions.items())
    if isinstance(conditions, Sequence):
        return ", ".join(map(_conditions_text, conditions))
    if isinstance(conditions, sympy.Equality):
        return f"{conditions.lhs} = {conditions.rhs}"
    if isinstance(conditions, Dirichlet | Neumann | Robin):
        return f"{type(conditions).__name__}({', '.join(str(value) for value in vars(conditions).values())})"
    return str(conditions)
