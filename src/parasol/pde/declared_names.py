"""What must hold of the names in a problem: unknowns, coordinates, time and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from parasol.errors import InputError
from parasol.pde.equation import normal
from parasol.pde.parameters import FunctionParameter
from parasol.pde.regions import Region
from parasol.space.geometry.axes import axis_of

if TYPE_CHECKING:
    from parasol.pde.problem import Problem


def check_unknowns(problem: Problem) -> None:
    """Refuse unknowns that do not fit the equations, each other, or the domain."""
    unknowns = problem.unknowns
    if not unknowns:
        raise InputError("the equation does not contain an unknown. Declare one: u = ps.unknown('u', x, y).")
    if len(unknowns) != len(problem.equations):
        listed = ", ".join(map(str, unknowns))
        raise InputError(
            f"{len(problem.equations)} equation(s) for {len(unknowns)} unknown functions ({listed}). Give a list, one equation per unknown."
        )
    if len({u.args for u in unknowns}) != 1:
        raise InputError(
            f"the unknowns {', '.join(map(str, unknowns))} depend on different coordinates. Declare them alike."
        )
    if len(problem.coordinates) != problem.domain.dimension:
        raise InputError(
            f"{unknowns[0]} has {len(problem.coordinates)} coordinates but the domain has {problem.domain.dimension}. "
            f"Declare the unknown with one coordinate per dimension (and ps.time() for time)."
        )
    _check_axes(problem)


def _check_axes(problem: Problem) -> None:
    """Refuse a coordinate that stands for one axis in the unknown and for another elsewhere."""
    order = {v.name: axis for axis, v in enumerate(problem.coordinates)}
    declared = [axis_of(v) for v in problem.coordinates]
    used = set(problem.domain.symbols)
    for quantity in problem.quantities.values() if isinstance(problem.quantities, Mapping) else ():
        used |= getattr(getattr(quantity, "coefficient", None), "free_symbols", set())
    # y and z alone are the axes of a plane; y before x is a mistake, or misleads readers
    used |= set(problem.coordinates) if set(declared) == set(order.values()) else set()
    for symbol in sorted(used, key=str):
        axis = axis_of(symbol)
        if axis is not None and order.get(str(symbol), axis) != axis:
            names = " ".join(map(str, problem.coordinates))
            raise InputError(
                f"{symbol} stands for axis {axis + 1}, in {problem.unknowns[0]} for axis {order[str(symbol)] + 1}. "
                f'Use the symbols of ps.coordinates("{names}") everywhere, in this order.'
            )


def check_time(problem: Problem) -> None:
    """Refuse a start or times without time, and time without a derivative in it."""
    if problem.time is None:
        if problem.initial is not None or problem.times is not None:
            raise InputError(
                "initial and times are for problems in time. Declare the unknown with ps.time(): ps.unknown('u', x, t)."
            )
        return
    if problem.time_order == 0:
        raise InputError(f"{problem.unknowns[0]} depends on time but the equation has no time derivative.")
    _ = problem.initial_states


def check_symbols(problem: Problem) -> None:
    """Refuse names that stand for two things, and symbols that mean nothing where they stand."""
    taken = {v.name for v in (*problem.unknowns[0].args, *normal(*problem.coordinates))} | set(problem.names)
    for p in (*problem.parameters.scalars, *problem.parameters.functions):
        if p.name in taken:
            raise InputError(
                f"the parameter {p.name!r} has the name of a coordinate or an unknown. Call it something else."
            )
    for form in problem.forms:
        for symbol in form.symbols:
            if symbol in normal(*problem.coordinates):
                raise InputError("the equation contains the normal, which exists on the boundary only.")
            if isinstance(symbol, FunctionParameter) and symbol.on == "boundary":
                raise InputError(
                    f"the function parameter {symbol.name} is given on the boundary only but stands in the equation. Declare it with on='domain'."
                )
    known = {*problem.unknowns[0].args, *problem.parameter_symbols[0]}
    for expression in problem.exact_solutions.values():
        strange = expression.free_symbols - known - expression.atoms(Region)
        if strange:
            raise InputError(f"exact contains {', '.join(sorted(map(str, strange)))}, which the problem does not have.")
