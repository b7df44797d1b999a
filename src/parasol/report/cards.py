"""What a notebook shows of what is solved and learned from."""

from __future__ import annotations

from functools import singledispatch

from parasol.fitting.results import Results
from parasol.pde.model import Model
from parasol.report.budget.check import Budget
from parasol.report.render import card
from parasol.space.geometry.domain import Domain
from parasol.space.nodes import Nodes


@singledispatch
def view(value) -> str:
    """What a notebook shows of a domain, nodes, a model, results or an error budget."""
    raise TypeError(f"a {type(value).__name__} has no view for notebooks.")


@view.register
def _(domain: Domain) -> str:
    lower, upper = domain.bounds
    ends = " × ".join(f"[{a:g}, {b:g}]" for a, b in zip(lower, upper, strict=True))
    rows = {"dimension": str(domain.dimension), "in": ends}
    return card(type(domain).__name__.lower(), rows)


@view.register
def _(nodes: Nodes) -> str:
    rows = {"interior": str(nodes.n_interior), "boundary": str(nodes.n_boundary), "dimension": str(nodes.dimension)}
    rows["spacing"] = f"{nodes.spacing.min():.2g} to {nodes.spacing.max():.2g}"
    return card(f"{nodes.n_nodes} nodes", rows)


@view.register
def _(model: Model) -> str:
    problem = model.problem
    rows = {"unknowns": f"{model.n_unknowns} of {', '.join(problem.names)}", "parameters": str(model.parameters)}
    if model.nodes is not None:
        rows["nodes"] = str(model.n_nodes)
    if problem.quantities:
        rows["quantities"] = ", ".join(problem.quantities)
    return card(f"discretised {problem.name or 'problem'}", rows)


@view.register
def _(results: Results) -> str:
    rows = {"runs": str(len(results)), "parameters": ", ".join(results.parameters) or str(results.mus.shape[1])}
    rows |= {name: f"{' × '.join(map(str, values.shape[1:]))} values" for name, values in results.fields.items()}
    if results.scalars:
        rows["quantities"] = ", ".join(results.scalars)
    return card("results", rows)


@view.register
def _(budget: Budget) -> str:
    return card("error budget", budget.rows())
