"""A full solve reported: what was solved, on which nodes, how well and how fast."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from parasol import __version__
from parasol.pde.evolution import Evolution
from parasol.pde.matrices import MatrixProblem
from parasol.pde.steady import Solution, norm_of
from parasol.pde.text import equation_texts
from parasol.report.render import Facts, field_rows
from parasol.runtime.descriptions import span
from parasol.space.operators import StencilReport
from parasol.space.stencils import Scheme


@dataclass(frozen=True, eq=False)
class SolveReport:
    """What was solved, on which nodes, how well and how fast, and what it left behind."""

    solution: Solution | Evolution
    given: Collection[str] = ()  # parameters that the user chose
    seed: int = 0
    discretise_seconds: float = 0.0
    files: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    estimate: bool = False  # of the discretisation error, which takes longer than the solve

    @property
    def evolution(self) -> Evolution | None:
        """The solution, where it is one in time."""
        return self.solution if isinstance(self.solution, Evolution) else None

    @property
    def problem(self) -> str:
        """What was solved: its name, or else its equations."""
        problem = self.solution.model.problem
        equations = [str(problem.equation)] if isinstance(problem, MatrixProblem) else equation_texts(problem)
        return problem.name or "; ".join(equations)

    @property
    def parameters(self) -> dict[str, float]:
        """Numbers by name."""
        names = self.solution.model.parameters.names
        return {name: float(value) for name, value in zip(names, self.solution.mu, strict=False)}

    @property
    def functions(self) -> list[str]:
        """Parameters that are functions, drawn at random."""
        return [f.name for f in self.solution.model.parameters.functions]

    @property
    def left_to_middle(self) -> list[str]:
        """Parameters that the user did not choose."""
        return [name for name in self.solution.model.parameters.names if name not in self.given]

    @cached_property
    def error(self) -> float | None:
        """Against the exact solution, where that is known."""
        return self.solution.error

    @cached_property
    def discretisation(self) -> float | None:
        """Estimate of the error against the equation's own solution; None where there is none."""
        return self.solution.discretisation if self.estimate and isinstance(self.solution, Solution) else None

    @property
    def solver(self) -> str:
        """How linear systems were solved."""
        return self.solution.model.solver if isinstance(self.solution, Evolution) else self.solution.backend

    @property
    def n_ghosts(self) -> int:
        """Nodes outside the domain."""
        return self.solution.model.layout.n_ghosts

    @property
    def terms(self) -> dict[str, list[str]]:
        """The parameters' functions that multiply what is assembled once."""
        terms = self.solution.model.terms
        return {
            "operator": [str(theta) for theta in terms.operator_thetas],
            "time": [str(theta) for _, theta, _ in terms.time_data],
            "load": [*map(str, terms.load_thetas), *self.functions],
        }

    def to_dict(self) -> Facts:
        """The report as plain values."""
        solution, evolution, model = self.solution, self.evolution, self.solution.model
        steady = None if isinstance(solution, Evolution) else solution
        # matrices of one's own may have no nodes, and know no stencils
        nodes, scheme, report, terms = model.nodes, model.scheme, model.report, self.terms
        stencils = ("kernel", "degree", "stencil_size", "n_ill_conditioned", "median_condition", "worst_condition")
        return {
            "parasol": __version__,
            "problem": self.problem,
            "parameters": self.parameters,
            "extrapolated": self.solution.extrapolated,
            "left_to_middle": self.left_to_middle,
            "functions_drawn": self.functions,
            "n_nodes": None if nodes is None else nodes.n_nodes,
            "n_interior": None if nodes is None else nodes.n_interior,
            "n_boundary": None if nodes is None else nodes.n_boundary,
            "n_ghosts": self.n_ghosts,
            **dict.fromkeys(stencils),
            **({} if scheme is None else self._stencils(scheme, report)),
            "elements": None if model.elements is None else str(model.elements),
            "linear": model.problem.linear,
            "affine": model.problem.affine,
            "operator_terms": terms["operator"],
            "load_terms": terms["load"],
            "time_terms": terms["time"],
            "times": None if evolution is None else span(evolution.times),
            "integrator": None if evolution is None else evolution.integrator,
            "n_steps": None if evolution is None else evolution.n_steps,
            "newton_corrections": [] if steady is None else list(steady.history),
            "start": None if steady is None else steady.start or None,
            "solver": self.solver,
            "solve_seconds": solution.seconds,
            "relative_residual": None if steady is None else steady.residual_norm,
            "fields": {
                name: {"minimum": float(values.min()), "maximum": float(values.max())}
                for name, values in solution.fields.items()
            },
            "quantities": {name: np.asarray(value).tolist() for name, value in solution.quantities.items()},
            "error": self.error,
            "discretisation": self.discretisation,
            "seed": self.seed,
            "discretise_seconds": self.discretise_seconds,
            "files": self.files,
            "warnings": self.warnings,
        }

    def _stencils(self, scheme: Scheme, report: StencilReport) -> Facts:
        """What stencils are made of, and how well conditioned they are."""
        return {
            "kernel": str(scheme.kernel),
            "degree": scheme.degree,
            "stencil_size": scheme.stencil_size,
            "n_ill_conditioned": report.n_ill_conditioned,
            "median_condition": report.median_condition,
            "worst_condition": report.worst_condition,
        }

    def _stencil_rows(self, scheme: Scheme, report: StencilReport) -> dict[str, str]:
        """The same in words."""
        polynomials = f"degree {scheme.degree}" if scheme.degree >= 0 else "no polynomials"
        ill = f", {report.n_ill_conditioned} ill-conditioned" if report.n_ill_conditioned else ""
        return {
            "stencils": f"{scheme.kernel}, {polynomials}, {scheme.stencil_size} nodes each",
            "stencil condition": f"median {report.median_condition:.1e}, worst {report.worst_condition:.1e}{ill}",
        }

    def rows(self) -> dict[str, str]:
        """The report in words."""
        model, middle = self.solution.model, self.left_to_middle
        nodes, scheme = model.nodes, model.scheme
        values = [f"{k} = {v:.6g}{' (middle of its range)' if k in middle else ''}" for k, v in self.parameters.items()]
        values += [f"{name}: a random function, seed {self.seed}" for name in self.functions]
        ghosts = f", {self.n_ghosts} ghosts" if self.n_ghosts else ""
        if scheme is None:
            where = {"unknowns": str(model.n_unknowns)}
        else:
            where = {"nodes": f"{nodes.n_nodes} = {nodes.n_interior} interior + {nodes.n_boundary} boundary{ghosts}"}
            where |= {} if model.elements is not None else self._stencil_rows(scheme, model.report)
        if model.elements is not None:
            where["elements"] = str(model.elements)
        rows = {
            "problem": self.problem,
            "parameters": ", ".join(values) or "none",
            **({"outside the box": "the problem declares other ranges"} if self.solution.extrapolated else {}),
            **where,
            "terms": self._term_words(),
            "seconds": f"{self.discretise_seconds:.3g} to discretise, {self.solution.seconds:.3g} to solve",
            "solver": self.solver,
        }
        return rows | self.outcome_rows()

    def outcome_rows(self) -> dict[str, str]:
        """How the solve went, the ranges of its fields, its quantities and its error."""
        solution, rows = self.solution, {}
        if isinstance(solution, Evolution):
            rows["time"] = f"{span_words(solution.times)}, {solution.n_steps} steps of {solution.integrator}"
        elif solution.history:
            last = ", ".join(f"{r:.1e}" for r in solution.history[-4:])
            rows["Newton"] = f"{len(solution.history) - 1} steps, last relative corrections {last}"
            rows["start"] = f"{solution.start}; there may be other solutions"
        elif solution.time is None and solution.backend != "surrogate":  # else none was computed
            rows["relative residual"] = f"{solution.residual_norm:.1e}"
        rows |= field_rows(solution.fields)
        for name, value in solution.quantities.items():
            rows[name] = f"{value[-1]:.6g} at the last time" if isinstance(value, np.ndarray) else f"{value:.6g}"
        rows["relative error"] = "exact solution not known"
        if self.error is not None:
            over = "" if self.evolution is None else " over all stored times"
            norm = "l2" if solution.model.elements is None else norm_of(solution.model)
            rows["relative error"] = f"{self.error:.2e} ({norm}{over}, against the exact solution)"
        if self.discretisation is not None:
            rows["discretisation error"] = f"about {self.discretisation:.1e} against the equation's solution, estimated"
        return rows

    def _term_words(self) -> str:
        model = self.solution.model
        if not model.problem.linear:
            return "nonlinear: Newton" if self.evolution is None else "nonlinear: in every step in time"
        if not model.problem.affine:
            return "not affine: assembled anew for every parameter"
        listed = {kind: ", ".join(terms) for kind, terms in self.terms.items()}
        return "affine: " + "; ".join(f"{k}: {v or 'none'}" for k, v in listed.items() if v or k != "time")


def span_words(times: Sequence[float] | np.ndarray) -> str:
    """Stored times in words."""
    return f"{len(times)} stored times from {times[0]:g} to {times[-1]:g}"
