"""Equations that cannot be solved here, or would be solved as others: what is missing, and what works instead."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sympy
from sympy.functions.elementary.trigonometric import TrigonometricFunction

from parasol.errors import InputError
from parasol.expressions import as_function
from parasol.pde.equation import Form
from parasol.pde.jumps import INSTEAD, jumping_parts, jumps_between
from parasol.pde.parameters import Parameter
from parasol.space.geometry.domain import Domain


def refuse_high_orders(forms: Sequence[Form]) -> None:
    """Refuse derivatives above second order, in space and in time."""
    order, in_time = (max(getattr(form, name) for form in forms) for name in ("order", "time_order"))
    if order > 2:
        raise InputError(
            f"the equation has derivatives of order {order}, above order 2, and an unknown has one condition on each "
            "boundary part only. Make the lower derivatives an unknown of their own: ps.laplacian(ps.laplacian(u)) = f is "
            "[ps.Eq(ps.laplacian(u), v), ps.Eq(ps.laplacian(v), f)], where a clamped edge has two conditions on u, "
            "[ps.Dirichlet(0), ps.Eq(ps.gradient(u).dot(ps.normal(x, y)), 0)]. Supported edges that meet in a re-entrant "
            "corner are the exception: there the two equations have another solution."
        )
    if in_time > 2:
        raise InputError(f"the equation has a time derivative of order {in_time}; up to 2 is understood.")


def refuse_saddle_points(forms: Sequence[Form], names: Sequence[str]) -> None:
    """Refuse a constraint on the derivatives of other unknowns, whose multiplier has no equation: incompressible flow.

    It is an equation of first order in unknowns that have second derivatives elsewhere, without an unknown that has none.
    """
    orders = [max(form.order_of(j) for form in forms) for j in range(len(names))]
    moving = {t.unknown for form in forms for t in form.operator if t.time_order}
    for number, form in enumerate(forms, start=1):
        present = [j for j in range(len(names)) if _occurs(form, j)]
        left = [j for j in range(len(names)) if j not in present and orders[j] < 2 and j not in moving]
        if form.order == 1 and not form.time_order and left and all(form.order_of(j) < orders[j] for j in present):
            raise InputError(
                f"equation {number} relates first derivatives of {', '.join(names[j] for j in present)} and leaves "
                f"{names[left[0]]} without an equation of its own: a saddle point, as of velocities and a pressure. A "
                "discretisation that is stable for it is missing. In the plane, use streamfunction and vorticity, "
                "[ps.Eq(-ps.laplacian(psi), omega), ps.Eq(-ps.laplacian(omega), f)], with two conditions on psi at a wall, "
                "its value and its slope; or give ps.learn a solver of your own."
            )


def _occurs(form: Form, unknown: int) -> bool:
    return any(t.unknown == unknown for t in form.operator) or any(j.unknown == unknown for j in form.jets)


def refuse_changing_orders(
    regions: Sequence[Sequence[Form]], names: Sequence[str], region_names: Sequence[str]
) -> None:
    """Refuse an unknown that has second derivatives in some regions only; `regions` are the equations in each."""
    for j, name in enumerate(names):
        orders = [max(form.order_of(j) for form in forms) for forms in regions]
        if min(orders) < max(orders) == 2:
            raise InputError(
                f"{name} has second derivatives, but none in the region {region_names[int(np.argmin(orders))]!r}: it would "
                "jump at the border of that region. Use a small coefficient instead of 0 there, or cut the region out of "
                "the domain."
            )


def refuse_poles(forms: Sequence[Form], domain: Domain, places: Sequence[sympy.Symbol]) -> None:
    """Refuse coefficients of second derivatives that jump at a pole, as |x|/x and atan(1/x) do, where samples show it."""
    coefficients = {t.coefficient for form in forms for t in form.operator if sum(t.derivative or ()) > 1}
    for coefficient in sorted(coefficients, key=str):
        powers = [p for p in coefficient.atoms(sympy.Pow) if not p.exp.is_nonnegative]
        if all(p.free_symbols.isdisjoint(places) for p in [*powers, *coefficient.atoms(TrigonometricFunction)]):
            continue
        if _jumps_inside(coefficient, domain, places):
            raise InputError(
                f"the equation has a second derivative times {coefficient}, which jumps or is infinite inside the "
                f"domain: if it is a material, the condition that the flux is continuous at the interface would be "
                f"lost. {INSTEAD}; or say nondivergence=True if no flux is meant and the equation holds as it stands."
            )


def refuse_lost_jumps(forms: Sequence[Form], domain: Domain, places: Sequence[sympy.Symbol]) -> None:
    """Refuse b u_x + b_x u with a b that jumps, which is what SymPy makes of (b u).diff(x).

    Where b is constant on its pieces there is no b_x to be seen, and b u_x is read as it stands: see `rough_places`.
    """
    for form in forms:
        values = sympy.Tuple(form.nonlinear, *[t.coefficient for t in form.operator if not any(t.derivative or ())])
        jets = [(term.derivative, term.coefficient) for term in form.operator]
        for index, coefficient in [*jets, *[(jet.derivative, form.nonlinear) for jet in form.jets]]:
            along = [v for v, order in zip(places, index or (), strict=False) if order == sum(index) == 1]
            for part in jumping_parts(coefficient, along):
                rate = part.diff(along[0])
                if not rate.is_number and values.has(rate) and _jumps_inside(part, domain, places):
                    raise InputError(
                        f"the equation has a first derivative times {part}, which jumps, beside the derivative of "
                        f"that: it was differentiated as if it did not jump, and the condition that the flux is "
                        f"continuous at the interface would be lost. {INSTEAD}; or say nondivergence=True if no flux "
                        "is meant and the equation holds as it stands."
                    )


def _jumps_inside(coefficient: sympy.Expr, domain: Domain, places: Sequence[sympy.Symbol]) -> bool:
    """Whether a coefficient jumps on segments through the domain, in the middle of the parameters' ranges."""
    low, high = domain.bounds
    points = low + (high - low) * np.random.default_rng(0).random((400, len(low)))
    points = points[domain.contains(points)]
    others = sorted(coefficient.free_symbols - set(places), key=str)
    function = as_function(coefficient, [*places, *others])
    middle = [s.middle if isinstance(s, Parameter) else 0.5 for s in others]
    return jumps_between(lambda p: function(*p.T, *middle), points[:-1], points[1:])
