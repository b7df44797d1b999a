"""The facts about a problem and about a solve: as named plain values for JSON, as short texts for people."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib import import_module

import numpy as np

from parasol import __version__
from parasol.pde import catalogue
from parasol.pde.evolution import Evolution
from parasol.pde.problem import Problem
from parasol.pde.steady import Solution
from parasol.pde.text import domain_text, equation_texts
from parasol.report.plain import Facts
from parasol.runtime.parameters import ParameterRange


def problem_facts(name: str, problem: Problem) -> Facts:
    """What a problem of the catalogue is: its equations, where and when they hold, its parameters and its presets."""
    text = import_module(f"{catalogue.__name__}.{name.replace('-', '_')}").__doc__ or ""
    domain, parameters = problem.domain, problem.parameters
    return {
        "name": name,
        "description": text.strip().partition("\n")[0],
        "unknowns": list(problem.names),
        "equations": equation_texts(problem),
        "domain": domain_text(domain),
        "dimension": domain.dimension,
        "bounds": domain.bounds.tolist(),
        "periods": domain.periods.tolist(),
        "parts": list(domain.part_names),
        "time_order": problem.time_order,
        "times": None if problem.times is None else _span(problem.times),
        "parameters": [{"name": p.name, "low": p.low, "high": p.high, "scale": p.scale} for p in parameters.scalars],
        "functions": [{"name": f.name, "on": f.on, "law": str(f.distribution)} for f in parameters.functions],
        "linear": problem.linear,
        "affine": problem.affine,
        "exact": problem.exact is not None,
        "presets": list(problem.settings),
    }


def _span(times: Sequence[float] | np.ndarray) -> Facts:
    return {"first": float(times[0]), "last": float(times[-1]), "count": len(times)}


def solution_facts(
    solution: Solution | Evolution,
    *,
    given: Collection[str],
    seed: int,
    discretise_seconds: float,
    files: list[str],
    warnings: list[str],
) -> Facts:
    """What was solved, on which nodes, how well and how fast.

    `given` names the parameters the user chose; `files` and `warnings` are what the solve left behind.
    """
    model = solution.model
    in_time = isinstance(solution, Evolution)
    nodes, scheme, report, space = model.nodes, model.scheme, model.report, model.parameters
    functions = [f.name for f in space.functions]
    return {
        "parasol": __version__,
        "problem": model.problem.name or "; ".join(equation_texts(model.problem)),
        "parameters": {name: float(value) for name, value in zip(space.names, solution.mu, strict=False)},
        "left_to_middle": [name for name in space.names if name not in given],
        "functions_drawn": functions,
        "n_nodes": nodes.n_nodes,
        "n_interior": nodes.n_interior,
        "n_boundary": nodes.n_boundary,
        "n_ghosts": model.n_unknowns // len(model.problem.names) - nodes.n_nodes,
        "kernel": str(scheme.kernel),
        "degree": scheme.degree,
        "stencil_size": scheme.stencil_size,
        "n_ill_conditioned": report.n_ill_conditioned,
        "median_condition": report.median_condition,
        "worst_condition": report.worst_condition,
        "linear": model.problem.linear,
        "affine": model.problem.affine,
        "operator_terms": [str(theta) for theta in model.terms.operator_thetas],
        "load_terms": [*map(str, model.terms.load_thetas), *functions],
        "time_terms": [str(theta) for _, theta, _ in model.terms.time_data],
        "times": _span(solution.times) if in_time else None,
        "integrator": solution.integrator if in_time else None,
        "n_steps": solution.n_steps if in_time else None,
        "newton_corrections": [] if in_time else list(solution.history),
        "start": None if in_time else solution.start or None,
        "solver": model.solver if in_time else solution.backend,
        "solve_seconds": solution.seconds,
        "relative_residual": None if in_time else solution.residual_norm,
        "fields": {
            name: {"minimum": float(values.min()), "maximum": float(values.max())}
            for name, values in solution.fields.items()
        },
        "quantities": {name: np.asarray(value).tolist() for name, value in solution.quantities.items()},
        "error": solution.error,
        "seed": seed,
        "discretise_seconds": discretise_seconds,
        "files": files,
        "warnings": warnings,
    }


def problem_lines(facts: Facts) -> list[str]:
    """A problem in a few lines: what it is, the equations, where and when they hold, its parameters."""
    box = " × ".join(f"[{low:.3g}, {high:.3g}]" for low, high in zip(*facts["bounds"], strict=True))
    seams = [axis for axis, period in zip("xyz", facts["periods"], strict=False) if period]
    where = f"{facts['domain']} in {box}" + (f", periodic in {', '.join(seams)}" if seams else "")
    where += f", boundary: {', '.join(facts['parts']) or 'none'}"
    names = [str(ParameterRange(**p)) for p in facts["parameters"]]
    names += [f"{f['name']}: a function on the {f['on']}, {f['law']}" for f in facts["functions"]]
    presets = [name for name in facts["presets"] if name != "default"]
    return [
        facts["description"],
        *[text if len(text) <= 160 else text[:157] + "..." for text in facts["equations"]],
        where,
        *([f"in time: {_span_text(facts['times'])}"] if facts["times"] else []),
        ", ".join(names) or "no parameters",
        *([f"presets: {', '.join(presets)}"] if presets else []),
    ]


def _span_text(span: Facts) -> str:
    return f"{span['count']} stored times from {span['first']:g} to {span['last']:g}"


def solution_rows(facts: Facts) -> dict[str, str]:
    """A solve as a table of two columns: what, and the fact about it in words."""
    middle = facts["left_to_middle"]
    values = [f"{k} = {v:.6g}{' (middle of its range)' if k in middle else ''}" for k, v in facts["parameters"].items()]
    values += [f"{name}: a random function, seed {facts['seed']}" for name in facts["functions_drawn"]]
    ghosts = f", {facts['n_ghosts']} ghosts" if facts["n_ghosts"] else ""
    polynomials = f"degree {facts['degree']}" if facts["degree"] >= 0 else "no polynomials"
    ill = f", {facts['n_ill_conditioned']} ill-conditioned" if facts["n_ill_conditioned"] else ""
    rows = {
        "problem": facts["problem"],
        "parameters": ", ".join(values) or "none",
        "nodes": f"{facts['n_nodes']} = {facts['n_interior']} interior + {facts['n_boundary']} boundary{ghosts}",
        "stencils": f"{facts['kernel']}, {polynomials}, {facts['stencil_size']} nodes each",
        "stencil condition": f"median {facts['median_condition']:.1e}, worst {facts['worst_condition']:.1e}{ill}",
        "terms": _terms_text(facts),
        "seconds": f"{facts['discretise_seconds']:.3g} to discretise, {facts['solve_seconds']:.3g} to solve",
        "solver": facts["solver"],
    }
    if facts["times"]:
        rows["time"] = f"{_span_text(facts['times'])}, {facts['n_steps']} steps of {facts['integrator']}"
    elif facts["newton_corrections"]:
        last = ", ".join(f"{r:.1e}" for r in facts["newton_corrections"][-4:])
        rows["Newton"] = f"{len(facts['newton_corrections']) - 1} steps, last relative corrections {last}"
        rows["start"] = f"{facts['start']}; there may be other solutions"
    else:
        rows["relative residual"] = f"{facts['relative_residual']:.1e}"
    rows |= {name: f"from {f['minimum']:.6g} to {f['maximum']:.6g}" for name, f in facts["fields"].items()}
    for name, value in facts["quantities"].items():
        rows[name] = f"{value:.6g}" if isinstance(value, float) else f"{value[-1]:.6g} at the last time"
    return rows | {"relative error": _error_text(facts)}


def _terms_text(facts: Facts) -> str:
    if not facts["linear"]:
        return "nonlinear: in every step in time" if facts["times"] else "nonlinear: Newton"
    if not facts["affine"]:
        return "not affine: assembled anew for every parameter"
    kinds = {"operator": "operator_terms", "time": "time_terms", "load": "load_terms"}
    listed = {kind: ", ".join(facts[key]) for kind, key in kinds.items()}
    return "affine: " + "; ".join(f"{k}: {v or 'none'}" for k, v in listed.items() if v or k != "time")


def _error_text(facts: Facts) -> str:
    if facts["error"] is None:
        return "exact solution not known"
    over = " over all stored times" if facts["times"] else ""
    return f"{facts['error']:.2e} (l2{over}, against the exact solution)"
