"""Systems of equations that cannot be solved here: what is missing, and what works instead."""

from __future__ import annotations

from collections.abc import Sequence

from parasol.errors import InputError
from parasol.pde.equation import Form


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
