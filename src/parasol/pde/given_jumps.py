"""Given jumps of an unknown at interfaces: what its value on one side differs by from that on the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import sympy

from parasol.errors import InputError, UnsuitableNodes
from parasol.expressions import as_function
from parasol.space.nodes import Nodes

if TYPE_CHECKING:
    from parasol.pde.problem import Problem


@dataclass(frozen=True, eq=False)
class Offset:
    """θ(μ) · values: what one unknown in a region exceeds the values of nodes by, 0 but at some nodes on its interfaces.

    A node on an interface has one value, that of the region named first; stencils and elements of the other region see
    that value and the jump, which is known: so it enters the right-hand side.
    """

    theta: sympy.Expr
    unknown: int
    region: int
    values: np.ndarray  # (n_nodes,)
    formula: sympy.Expr  # of the coordinates: the same anywhere on these interfaces


def offsets(problem: Problem, nodes: Nodes) -> tuple[Offset, ...]:
    """The jumps of a problem at its nodes."""
    out = []
    for pair, forms in problem.interface_jumps.items():
        first, second = sorted(pair)
        assert nodes.touches is not None
        here = nodes.touches[:, first] & nodes.touches[:, second]
        crowded = np.flatnonzero(here & (np.count_nonzero(nodes.touches, axis=1) > 2))
        if len(crowded):
            place = ", ".join(f"{value:.3g}" for value in nodes.points[crowded[0]])
            raise UnsuitableNodes(
                f"more than two regions meet at ({place}), and {problem.names[0]} jumps there: which of its values is meant "
                "is not known. Given jumps are for interfaces that do not meet others."
            )
        for j, form in enumerate(forms):
            for term in form.source:
                values = np.zeros(nodes.n_nodes)
                values[here] = as_function(term.coefficient, problem.coordinates)(*nodes.points[here].T)
                out.append(Offset(term.theta, j, second, values, term.coefficient))
    return tuple(out)


def offset_values(
    problem: Problem, known: tuple[Offset, ...], mu: np.ndarray, points: np.ndarray | None = None
) -> np.ndarray:
    """The sums of the offsets at a parameter, (n_regions, n_unknowns, n_nodes); of the jumps' formulas at `points` if given."""
    n = len(known[0].values) if points is None else len(points)
    out, scalars = np.zeros((len(problem.region_names), len(problem.names), n)), problem.parameter_symbols[0]
    for offset in known:
        values = offset.values if points is None else as_function(offset.formula, problem.coordinates)(*points.T)
        out[offset.region, offset.unknown] += as_function(offset.theta, scalars)(*mu[: len(scalars)]) * values
    return out


def check_jumps(problem: Problem) -> None:
    """Refuse jumps of unknowns where the rest of the program would not see them."""
    jumps = [form for forms in problem.interface_jumps.values() for form in forms]
    if not jumps:
        return
    known = {*problem.coordinates, *problem.parameter_symbols[0]}
    for form in jumps:
        strange = sorted(str(s) for s in form.symbols - known)
        if strange or not all(term.separated and term.function is None for term in form.source):
            what = ", ".join(strange) or "parameters and coordinates that do not separate"
            raise InputError(
                f"a jump of {problem.names[0]} at an interface contains {what}. It may be a sum of functions of the parameters "
                "times functions of the coordinates."
            )
    for here, what in (
        (problem.time is not None, "problems in time"),
        (not problem.linear, "nonlinear problems"),
        (bool(problem.quantities), "problems with quantities of interest, which would not see the jump"),
        (not problem.affine, "coefficients that are no sum of functions of the parameters times functions of x"),
    ):
        if here:
            raise InputError(
                f"given jumps of {problem.names[0]} at interfaces are not for {what}. Leave these out, or subtract from the "
                "unknown in one of the regions a function that jumps, by hand."
            )
