"""A problem reported: its equations, where and when they hold, its conditions, parameters and presets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from importlib import import_module

import sympy

from parasol.pde import catalogue
from parasol.pde.evolution import Evolution
from parasol.pde.problem import Dirichlet, Neumann, Problem, Robin
from parasol.pde.steady import Solution, describe
from parasol.pde.text import domain_text, equation_latex, equation_texts
from parasol.report.render import Facts, card
from parasol.report.solutions import SolveReport, span_words
from parasol.runtime.descriptions import ranges, span


@dataclass(frozen=True, eq=False)
class ProblemReport:
    """What a problem is; its name in the catalogue is that of the module that describes it."""

    problem: Problem
    name: str

    @property
    def text(self) -> str:
        """What the catalogue says of it in one sentence."""
        text = import_module(f"{catalogue.__name__}.{self.name.replace('-', '_')}").__doc__ or ""
        return text.strip().partition("\n")[0]

    def to_dict(self) -> Facts:
        """The report as plain values."""
        problem, domain, parameters = self.problem, self.problem.domain, self.problem.parameters
        return {
            "name": self.name,
            "description": self.text,
            "unknowns": list(problem.names),
            "equations": equation_texts(problem),
            "domain": domain_text(domain),
            "dimension": domain.dimension,
            "bounds": domain.bounds.tolist(),
            "periods": domain.periods.tolist(),
            "parts": list(domain.part_names),
            "time_order": problem.time_order,
            "times": None if problem.times is None else span(problem.times),
            "parameters": ranges(parameters.scalars),
            "functions": [{"name": f.name, "on": f.on, "law": str(f.distribution)} for f in parameters.functions],
            "linear": problem.linear,
            "affine": problem.affine,
            "exact": problem.exact is not None,
            "presets": list(problem.settings),
        }

    def lines(self) -> list[str]:
        """The report in a few lines, as the catalogue is listed."""
        problem, parameters = self.problem, self.problem.parameters
        presets = [name for name in problem.settings if name != "default"]
        known = parameters.scalars or parameters.functions
        return [
            self.text,
            *[text if len(text) <= 160 else text[:157] + "..." for text in equation_texts(problem)],
            f"{_where(problem)}, boundary: {', '.join(problem.domain.part_names) or 'none'}",
            *([] if problem.times is None else [f"in time: {span_words(problem.times)}"]),
            str(parameters) if known else "no parameters",
            *([f"presets: {', '.join(presets)}"] if presets else []),
        ]

    def rows(self) -> dict[str, str]:
        """The report in words."""
        problem = self.problem
        rows = {"domain": _where(problem)}
        if problem.boundary is not None:
            rows["conditions"] = _condition_words(problem.boundary)
        rows["parameters"] = str(problem.parameters)
        if problem.time is not None:
            times = "" if problem.times is None else f", {span_words(problem.times)}"
            rows["in time"] = f"order {problem.time_order}{times}"
        affine = "affine" if problem.affine else "not affine"
        rows["kind"] = f"{'linear' if problem.linear else 'nonlinear'}, {affine} in the parameters"
        if problem.quantities:
            rows["quantities"] = ", ".join(problem.quantities)
        return rows


def _where(problem: Problem) -> str:
    """The domain, its box, and the axes along which it is periodic."""
    domain = problem.domain
    box = " × ".join(f"[{low:.3g}, {high:.3g}]" for low, high in domain.bounds.T)
    seams = [str(v) for v, period in zip(problem.coordinates, domain.periods, strict=True) if period]
    return f"{domain_text(domain)} in {box}" + (f", periodic in {', '.join(seams)}" if seams else "")


def _condition_words(conditions) -> str:
    """Conditions as they were declared: one, one for each unknown, or by part."""
    if isinstance(conditions, Mapping):
        return "; ".join(f"{part}: {_condition_words(condition)}" for part, condition in conditions.items())
    if isinstance(conditions, Sequence):
        return ", ".join(map(_condition_words, conditions))
    if isinstance(conditions, sympy.Equality):
        return f"{conditions.lhs} = {conditions.rhs}"
    if isinstance(conditions, Dirichlet | Neumann | Robin):
        return f"{type(conditions).__name__}({', '.join(str(value) for value in vars(conditions).values())})"
    return str(conditions)


@singledispatch
def problem_html(value) -> str:
    """What a notebook shows of a problem or of a solution of it."""
    raise TypeError(f"a {type(value).__name__} has no view for notebooks.")


@problem_html.register
def _(problem: Problem) -> str:
    return card(
        problem.name or "problem", ProblemReport(problem, problem.name).rows(), formulas=equation_latex(problem)
    )


@problem_html.register(Solution)
@problem_html.register(Evolution)
def _(solution: Solution | Evolution) -> str:
    at = describe(solution.model, solution.mu)
    if isinstance(solution, Solution) and solution.time is not None:
        at += f", t={solution.time:g}"
    rows = SolveReport(solution).outcome_rows() | {"seconds": f"{solution.seconds:.2g}"}
    return card(f"{solution.model.problem.name or 'solution'} at {at}", rows)
