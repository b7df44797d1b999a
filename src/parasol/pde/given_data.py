"""What a problem gives at its boundary, at its interfaces and at its start, read as terms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import sympy
from sympy.core.function import AppliedUndef

from parasol.errors import InputError
from parasol.expressions import to_expression
from parasol.pde.conditions import Dirichlet, Jump, Neumann, Robin
from parasol.pde.equation import Form
from parasol.pde.fluxes import NORMAL_INSTEAD, NormalFlux, written_flux
from parasol.pde.parameters import Parameter
from parasol.pde.regions import Region

if TYPE_CHECKING:
    from parasol.pde.problem import Problem

REST = "*"  # key of a boundary mapping that stands for all parts not named
Condition = Dirichlet | Neumann | Robin | NormalFlux | sympy.Equality


def boundary_conditions(problem: Problem) -> dict[int | None, dict[str, tuple[Form, ...]]]:
    """The boundary conditions of each part, one per unknown, as terms, by the region whose boundary it is."""
    names = problem.domain.part_names
    given = problem.boundary
    if given is None:
        given = {}
    elif not isinstance(given, Mapping) or any(isinstance(key, AppliedUndef) for key in given):
        given = {REST: given}
    for key in given:
        if key != REST and key not in names:
            known = ", ".join(names) or "none"
            raise InputError(
                f"boundary names the part {key!r}, which the domain does not have. Its parts are: {known}."
            )
    for name in names:
        if name not in given and REST not in given:
            raise InputError(
                f"the boundary part {name!r} has no condition. Add one, or give '{REST}' for all parts not named."
            )
    return {
        region: {name: _conditions_on(problem, given.get(name, given.get(REST)), name, region) for name in names}
        for region in problem.region_places
    }


def _conditions_on(problem: Problem, conditions, name: str, region: int | None) -> tuple[Form, ...]:
    where = f"condition on {name!r}"
    if isinstance(conditions, Mapping):
        by_name = {str(getattr(key, "func", key)): condition for key, condition in conditions.items()}
        if set(by_name) != set(problem.names) or len(by_name) != len(conditions):
            raise InputError(
                f"the {where} is given for {', '.join(by_name)}, the unknowns are {', '.join(problem.names)}. Give one each."
            )
        conditions = [by_name[name] for name in problem.names]
    if not isinstance(conditions, list | tuple):
        conditions = (conditions,)
    if len(conditions) != len(problem.names):
        raise InputError(
            f"the {where} is {len(conditions)} condition(s) for {len(problem.names)} unknown(s) ({', '.join(problem.names)}). Give a list, one each."
        )
    forms = []
    for j, (u, condition) in enumerate(zip(problem.unknowns, conditions, strict=True)):
        if not isinstance(condition, Condition):
            raise InputError(
                f"the {where} is {condition!r}. Use ps.Dirichlet, ps.Neumann, ps.Robin, ps.NormalFlux or ps.Eq."
            )
        if isinstance(condition, NormalFlux):
            flux = written_flux(problem.balances[j], where, NORMAL_INSTEAD)
            equation = flux - to_expression(condition.value)
            if not flux.has(u):
                raise InputError(
                    f"the {where} of {u.func} is on the flux of equation {j + 1}, which does not contain {u.func}. Give "
                    "the equations in the order of the unknowns."
                )
        else:
            equation = condition if isinstance(condition, sympy.Equality) else condition.equation(u)
        form = problem.read(equation, where, region)
        if form.order > 1 or form.time_order > 0:
            raise InputError(f"the {where} has derivatives above order 1, or in time.")
        forms.append(form)
    return tuple(forms)


def interface_data(problem: Problem) -> dict[frozenset[int], tuple[tuple[Form, ...], tuple[Form, ...]]]:
    """The sources on interfaces, and the jumps there."""
    out = {}
    for pair, given in problem.interfaces.items():
        if not isinstance(pair, tuple) or len(set(pair)) != 2 or not set(pair) <= set(problem.region_names):
            raise InputError(
                f"interfaces names {pair!r}. Give the names of two regions, such as ('core', 'shell'); the regions "
                f"are: {', '.join(problem.region_names) or 'none'}."
            )
        given = given if isinstance(given, list | tuple) else [given]
        if len(given) != len(problem.names):
            raise InputError(f"the interface {pair} has {len(given)} source(s) for {len(problem.names)} unknown(s).")
        both = [each if isinstance(each, Jump) else Jump(0, each) for each in given]
        where = f"source on the interface {pair}"
        first, second = (problem.region_names.index(name) for name in pair)
        sign = 1 if first < second else -1
        sources = tuple(problem.read(-to_expression(each.flux), where, needs_unknown=False) for each in both)
        jumps = tuple(
            problem.read(sign * to_expression(each.value), f"jump at the interface {pair}", needs_unknown=False)
            for each in both
        )
        if any(form.operator or form.jets for form in (*sources, *jumps)):
            raise InputError(f"the {where} contains an unknown. Only known sources are understood there.")
        for j, (source, jump) in enumerate(zip(sources, jumps, strict=True)):
            if (source.source or jump.source) and not _flux_is_known(problem, j):
                raise InputError(
                    f"the {where} is on the flux of the equation of {problem.names[j]}, which is not known: second derivatives "
                    "stand outside of ps.divergence, or a factor stands before it. Write −ps.divergence(k*ps.gradient(u)) = f, "
                    "divided by the factor."
                )
        key = frozenset((first, second))
        if key in out:
            raise InputError(f"the {where} is given twice. Give it once.")
        out[key] = sources, jumps
    return out


def _flux_is_known(problem: Problem, j: int) -> bool:
    """Whether stencils and elements mean the same flux of an equation: that of −div F = f, grad u where it is −Δu = f."""
    known = problem.balances[j]
    if known is not None:
        return known.factor == 1
    for region in problem.region_places:
        form = problem.forms_in(region)[j]
        if any(sum(jet.derivative) > 1 for jet in form.jets):
            return False
        second: dict = {}
        for term in form.operator:
            if sum(term.derivative or ()) > 1:
                key = term.unknown, term.derivative
                second[key] = second.get(key, 0) + term.theta * term.coefficient * (term.function or 1)
        axes = range(len(problem.coordinates))
        if second != {(j, tuple(2 * int(a == b) for b in axes)): -1 for a in axes}:
            return False
    return True


def initial_states(problem: Problem) -> dict[str, tuple[sympy.Expr, ...]]:
    """For each unknown its state at the start, with the velocity for second order in time; empty for steady problems."""
    if problem.time is None:
        return {}
    given = problem.initial if isinstance(problem.initial, Mapping) else {problem.names[0]: problem.initial}
    out = {}
    for name, order in zip(problem.names, problem.time_orders, strict=True):
        shape = "(state, velocity)" if order == 2 else "a state"
        value = given.get(name)
        if value is None:
            raise InputError(f"the initial state of {name} is missing. Give initial=..., as {shape}.")
        parts = tuple(to_expression(v) for v in (value if isinstance(value, list | tuple) else (value,)))
        if len(parts) != max(1, order):
            raise InputError(
                f"the initial state of {name} has {len(parts)} part(s), an unknown of order {order} in time needs {shape}."
            )
        for part in parts:
            strange = part.free_symbols - set(problem.coordinates)
            if any(not isinstance(s, Parameter | Region) for s in strange):
                raise InputError(f"the initial state {part} of {name} depends on more than coordinates and parameters.")
        out[name] = parts
    return out
