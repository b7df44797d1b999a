"""Regions of a domain from a flux that is given by pieces: their conditions become regions, their values by region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sympy
from scipy.optimize import linprog
from sympy.core.function import AppliedUndef
from sympy.core.relational import GreaterThan, LessThan, StrictGreaterThan, StrictLessThan

from parasol.errors import InputError
from parasol.expressions import as_function
from parasol.pde.equation import Time
from parasol.pde.jumps import INSTEAD, jumping_parts
from parasol.pde.parameters import Parameter
from parasol.pde.regions import OTHERWISE, Region
from parasol.pde.vectors import Divergence
from parasol.space.geometry.domain import Domain

_Switch = tuple[sympy.Basic, ...]  # the conditions of a Piecewise, of which the first that holds counts
_SAMPLES = 20_000
_MOST = 64  # regions
_ROUNDING = 1e-9  # of the size of the domain
_ORDERED = (LessThan, StrictLessThan, GreaterThan, StrictGreaterThan)


def with_regions(
    equations: Sequence[sympy.Basic], domain: Domain, coordinates: Sequence[sympy.Symbol]
) -> tuple[list[sympy.Basic], Domain]:
    """Equations and domain, with regions where a flux is given by pieces: there its normal component is continuous.

    >>> from parasol.space.geometry.primitives import Box
    >>> x = sympy.Symbol("x", real=True)
    >>> flux = sympy.Piecewise((5, x < 0.5), (1, True)) * sympy.Function("u")(x).diff(x)
    >>> equations, domain = with_regions([Divergence([flux], [x])], Box(0.0, 1.0), [x])
    >>> equations[0].components[0], domain.region_names
    (([otherwise] + 5*[x < 0.5])*Derivative(u(x), x), ('x < 0.5', 'otherwise'))
    """
    rewritten = [_as_pieces(equation, coordinates) for equation in equations]
    switches: dict[_Switch, None] = {}
    for equation in rewritten:
        for flux in sorted(equation.atoms(Divergence), key=sympy.default_sort_key):
            pieces = [p for p in jumping_parts(flux.components, coordinates) if isinstance(p, sympy.Piecewise)]
            switches |= dict.fromkeys(_switch(piece) for piece in pieces)
    if not switches:
        return list(equations), domain
    for switch in switches:
        _check(switch, coordinates)
    if domain.region_names:
        raise InputError(
            f"the flux changes where {next(iter(switches))[0]}, beside the regions of the domain. Make that a region too, "
            "domain.regions(...), and give the values with ps.by_region(...)."
        )
    regions = _regions(list(switches), domain, coordinates)
    named = {str(r.condition): r.condition for r in regions if r.condition is not sympy.true}
    try:
        divided = domain.regions(**named) if named else domain
    except InputError as error:
        raise InputError(f"no regions can be made of the pieces of the flux under the divergence: {error}") from None
    if OTHERWISE in divided.region_names and len(named) == len(regions):
        raise InputError(
            f"the flux under the divergence has no value where none of {', '.join(named)} holds. Give one."
        )

    def by_region(piece: sympy.Piecewise) -> sympy.Expr:
        which = list(switches).index(_switch(piece))
        values = [piece.args[region.chosen[which]][0] for region in regions]
        if len(regions) == 1:
            return values[0]
        indicators = [
            Region(OTHERWISE, sorted(named)) if r.condition is sympy.true else Region(str(r.condition)) for r in regions
        ]
        return sympy.Add(*[value * indicator for value, indicator in zip(values, indicators, strict=True)])

    def known(part: sympy.Basic) -> bool:
        return isinstance(part, sympy.Piecewise) and _switch(part) in switches

    return [equation.replace(known, by_region) for equation in rewritten], divided if len(regions) > 1 else domain


def _switch(piece: sympy.Piecewise) -> _Switch:
    return tuple(condition for _, condition in piece.args)


def _as_pieces(equation: sympy.Basic, coordinates: Sequence[sympy.Symbol]) -> sympy.Basic:
    """The equation with steps under its divergences as pieces."""
    steps: dict[sympy.Basic, sympy.Basic] = {}
    for flux in equation.atoms(Divergence):
        for part in jumping_parts(flux.components, coordinates):
            if isinstance(part, sympy.Heaviside | sympy.sign) and not part.has(AppliedUndef):
                low = 0 if isinstance(part, sympy.Heaviside) else -1
                steps[part] = sympy.Piecewise((low, part.args[0] < 0), (1, True))
    return equation.xreplace(steps)


def _check(switch: _Switch, coordinates: Sequence[sympy.Symbol]) -> None:
    """Refuse conditions on more than the coordinates."""
    for condition in switch:
        if condition.has(AppliedUndef):
            raise InputError(
                f"the flux under the divergence changes where {condition}, at a place that depends on the solution: the "
                f"condition at the interface of two materials would be lost. {INSTEAD}."
            )
        moving = sorted(str(s) for s in condition.free_symbols if isinstance(s, Parameter | Time))
        if moving:
            raise InputError(
                f"the flux under the divergence changes where {condition}, at an interface of two materials that moves with "
                f"{', '.join(moving)}: geometry as a parameter is not supported yet. Fix the place, or use a coefficient "
                "that changes smoothly, such as (1 + tanh((x - s)/w))/2 over a width w that the nodes resolve."
            )
        strange = sorted(map(str, condition.free_symbols - set(coordinates)))
        if strange:
            raise InputError(
                f"the flux under the divergence changes where {condition}, and {', '.join(strange)} is no coordinate."
            )


@dataclass(frozen=True)
class _Piece:
    """A region: its condition, which counts where no earlier one holds, where it counts, and the piece of each switch."""

    condition: sympy.Basic
    exactly: sympy.Basic
    chosen: tuple[int, ...]


def _regions(switches: Sequence[_Switch], domain: Domain, coordinates: Sequence[sympy.Symbol]) -> list[_Piece]:
    """The regions that the pieces make, the last with the condition True where pieces cover everything.

    Pieces outside of the domain are left out if linear inequalities show that they are; other pieces that the geometry
    does not see are refused there. Where two functions by pieces overlap, regions are what samples or the geometry see.
    """
    points: np.ndarray | None = None
    regions: list[_Piece] = []
    for switch in switches:
        earlier = [sympy.Not(sympy.Or(*switch[:i])) for i in range(len(switch))]
        own = [_Piece(c, sympy.And(c, no), (i,)) for i, (c, no) in enumerate(zip(switch, earlier, strict=True))]
        own = [piece for piece in own if not _nowhere(piece.exactly, domain.bounds, coordinates)]
        if not regions:
            regions = own
            continue
        points = _samples(domain) if points is None else points
        both = [
            _Piece(sympy.And(a.condition, b.condition), sympy.And(a.exactly, b.exactly), a.chosen + b.chosen)
            for a in regions
            for b in own
        ]
        regions = [
            piece
            for piece in both
            if not _nowhere(piece.exactly, domain.bounds, coordinates)
            and _holds(piece.exactly, domain, points, coordinates)
        ]
        if len(regions) > _MOST:
            raise InputError(
                f"the flux under the divergence is given by pieces that make more than {_MOST} regions. Name regions with "
                "domain.regions(...), and give the values with ps.by_region(...)."
            )
    return regions


def _samples(domain: Domain) -> np.ndarray:
    low, high = domain.bounds
    points = low + (high - low) * np.random.default_rng(0).random((_SAMPLES, len(low)))
    return points[domain.contains(points)]


def _nowhere(condition: sympy.Basic, bounds: np.ndarray, coordinates: Sequence[sympy.Symbol]) -> bool:
    """Whether the linear inequalities that a condition contains leave nothing of the box."""
    if condition in (sympy.true, sympy.false):
        return condition is sympy.false
    rows, limits = [], []
    for part in sympy.And.make_args(condition):
        gap = part.lts - part.gts if isinstance(part, _ORDERED) else None
        slopes = [] if gap is None else [gap.diff(v) for v in coordinates]
        if gap is not None and all(slope.is_number for slope in slopes) and any(slopes):
            size = float(max(abs(slope) for slope in slopes))
            rows.append([float(slope) / size for slope in slopes] + [1.0])
            limits.append(-float(gap.xreplace(dict.fromkeys(coordinates, sympy.S.Zero))) / size)
    if not rows:
        return False
    sides = [*[(float(low), float(high)) for low, high in bounds.T], (None, None)]
    # how far inside of all of them a point of the box can be
    inside = linprog([0.0] * len(coordinates) + [-1.0], A_ub=rows, b_ub=limits, bounds=sides)
    return inside.status == 0 and -inside.fun <= _ROUNDING * float(np.ptp(bounds))


def _holds(condition: sympy.Basic, domain: Domain, points: np.ndarray, coordinates: Sequence[sympy.Symbol]) -> bool:
    """Whether a condition holds anywhere in the domain, as samples and the geometry see it."""
    if condition is sympy.true or np.any(as_function(condition, list(coordinates))(*points.T)):
        return True
    try:
        return bool(domain.regions(some=condition).region_names)
    except InputError:
        return False
