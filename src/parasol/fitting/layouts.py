"""Where and when the solutions of a model are."""

from __future__ import annotations

import numpy as np

from parasol.expressions import as_formula, as_function
from parasol.pde.matrices import AffineModel
from parasol.pde.model import Model
from parasol.runtime.layout import AXES, GivenJumps, Layout, RegionNodes
from parasol.runtime.theta import Theta
from parasol.space.by_region import of_regions
from parasol.space.outline import outline_of


def layout_of(model: Model) -> Layout:
    """Where and when the solutions of a model are."""
    if isinstance(model, AffineModel):
        names = tuple(model.places) if model.places is not None else model.problem.names
        n_points = 0 if model.points is None else len(model.points)
        return Layout(
            names=names,
            points=model.points,
            n_interior=n_points,
            times=model.problem.times,  # type: ignore[arg-type]
            time="t" if model.problem.time is None else str(model.problem.time),
            cells=model.cells,
        )
    problem, nodes = model.problem, model.nodes
    named = tuple(map(str, problem.coordinates))
    return Layout(
        names=problem.names,
        points=nodes.points,
        n_interior=nodes.n_interior,
        scheme=model.scheme,
        times=None if problem.times is None else np.asarray(problem.times, dtype=float),
        domain=nodes.domain,
        outline=outline_of(nodes.domain),
        coordinates=() if named == AXES[: len(named)] else named,
        time="t" if problem.time is None else str(problem.time),
        regions=()
        if nodes.touches is None
        else tuple(RegionNodes(outline_of(own.domain), members) for members, own in of_regions(nodes)),
        cells=None if model.elements is None else model.elements.cell_nodes,
        jumps=bool(model.jumps),
        given_jumps=_jumps(model) if model.jumps else None,
    )


def _jumps(model: Model) -> GivenJumps:
    """The given jumps of a model, for values between its nodes."""
    scalars = model.inputs.scalars
    formulas = tuple(as_formula(as_function(jump.theta, scalars)) for jump in model.jumps)
    return GivenJumps(
        Theta(formulas, (), len(scalars)),
        np.array([jump.region for jump in model.jumps]),
        np.array([jump.unknown for jump in model.jumps]),
        np.array([jump.values for jump in model.jumps]),
    )
