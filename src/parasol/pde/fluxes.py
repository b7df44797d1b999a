"""The flux of an equation: what stands under its divergence, and the boundary condition that gives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sympy
from sympy import Derivative
from sympy.core.function import AppliedUndef

from parasol.errors import InputError
from parasol.expressions import as_function
from parasol.pde.equation import Form, Time, difference, normal
from parasol.pde.jumps import jumping_parts
from parasol.pde.parameters import FunctionParameter, Parameter
from parasol.pde.regions import Region
from parasol.pde.separation import multiplied_out
from parasol.pde.vectors import Divergence, lost_flux
from parasol.space.by_region import derivatives_at
from parasol.space.elements import Elements
from parasol.space.geometry.domain import Domain
from parasol.space.nodes import Nodes
from parasol.space.quadrature import surface_points
from parasol.space.stencils import Scheme

NORMAL_INSTEAD = "write the condition with ps.Neumann or ps.Eq"
FLUX_INSTEAD = "say ps.Flux(part, coefficient=...), which is the integral of coefficient times n·grad u"
WRITE = "Write ps.divergence(k*ps.gradient(u)): its flux is continuous at the interfaces"


@dataclass(frozen=True)
class NormalFlux:
    """n·F = value, with F the flux of the equation, ps.divergence(F), and n the outward normal: the natural condition.

    For a system the condition of the j-th unknown is on the flux of the j-th equation, a traction where F is a stress.
    The value may contain the unknown, as heat transfer does: `ps.NormalFlux(h*(u_out - u))`.
    """

    value: object = 0


@dataclass(frozen=True)
class Balance:
    """An equation whose divergences are known:  − factor · div(flux) + rest = 0.

    `flux` maps coordinates to components. `factor` is 1 or depends on coordinates, regions, time or the unknowns; factors
    that depend on parameters alone are in the flux. `written` is ±1 where every divergence stands in the equation as it
    is, with at most a sign: then `written`·flux is the vector under the divergence as it was written. Else it is 0.
    """

    flux: tuple[tuple[sympy.Symbol, sympy.Expr], ...]
    factor: sympy.Expr
    rest: sympy.Expr
    written: int

    @property
    def normal_flux(self) -> sympy.Expr:
        """n·flux, with `ps.normal(...)` for the components of the normal."""
        return sympy.Add(*[component * normal(v)[0] for v, component in self.flux])


def balance(equation) -> Balance | None:
    """The flux of an equation, None where no divergence stands in it, or not as a sum of multiples of divergences.

    It is None too where second derivatives stand outside of the divergences: these have only a part of the flux.

    >>> x, a = sympy.Symbol("x", real=True), Parameter("a", 1, 2)
    >>> u = sympy.Function("u")(x)
    >>> balance(-a * Divergence((x * u.diff(x),), (x,)) + u).flux
    ((x, a*x*Derivative(u(x), x)),)
    """
    terms: list[tuple[sympy.Expr, sympy.Expr, Divergence]] = []  # constant factor, other factor, divergence
    rest = []
    for term in _terms(difference(equation)):
        factors = sympy.Mul.make_args(term)
        inside = [f for f in factors if f.has(Divergence)]
        if not inside:
            rest.append(term)
        elif len(inside) == 1 and isinstance(inside[0], Divergence):
            others = [f for f in factors if f is not inside[0]]
            fixed = [f for f in others if all(isinstance(s, Parameter) for s in f.free_symbols)]
            factor = sympy.Mul(*[f for f in others if f not in fixed])
            sign = -1 if factor.could_extract_minus_sign() else 1
            terms.append((sign * sympy.Mul(*fixed), sign * factor, inside[0]))
        else:
            return None
    if not terms or len({factor for _, factor, _ in terms}) != 1:
        return None
    flux: dict[sympy.Symbol, sympy.Expr] = {}
    for fixed, _, inner in terms:
        for v, component in zip(inner.coordinates, inner.components, strict=True):
            flux[v] = flux.get(v, sympy.S.Zero) - fixed * component
    left = sympy.Add(*rest)
    return None if _order(left.doit()) > 1 else Balance(tuple(flux.items()), terms[0][1], left, _written(terms))


def _order(expression: sympy.Expr) -> int:
    """Highest derivative in space of an unknown."""
    counts = [[n for v, n in part.variable_count if not isinstance(v, Time)] for part in expression.atoms(Derivative)]
    return max(map(sum, counts), default=0)


def _terms(expression: sympy.Expr) -> Sequence[sympy.Expr]:
    """The summands, after products with divergences are multiplied out."""
    return sympy.Add.make_args(multiplied_out(expression, lambda part: part.has(Divergence)))


def _written(terms: Sequence[tuple[sympy.Expr, sympy.Expr, Divergence]]) -> int:
    """The sign with which the flux was written; that of the gradient's, where others have divergences of their own."""
    if any(abs(fixed) != 1 or factor != 1 for fixed, factor, _ in terms):
        return 0
    steep = [fixed for fixed, _, inner in terms if inner.components.has(Derivative)]
    signs = {int(fixed) for fixed in steep or [fixed for fixed, _, _ in terms]}
    return -signs.pop() if len(signs) == 1 else 0


def coefficients(form: Form, order: int) -> list[sympy.Expr]:
    """The coefficients of derivatives of this order in space."""
    linear = [term.coefficient for term in form.operator if sum(term.derivative or ()) == order]
    return linear + [form.slope(jet) for jet in form.jets if sum(jet.derivative) == order]


def written_flux(flux: Balance | None, where: str, instead: str) -> sympy.Expr:
    """n·F with the F under the divergence as it was written; refused where that is not known, with what to do instead."""
    if flux is None:
        raise InputError(
            f"the {where} is on the flux of the equation, which has no ps.divergence, several with different factors, or "
            "second derivatives outside of it. Write the equation with ps.divergence(k*ps.gradient(u)) for all of them, or "
            f"{instead}."
        )
    if not flux.written:
        raise InputError(
            f"the {where} is on the flux of the equation, whose divergences have factors or opposite signs: whether "
            "these belong to the flux is not known. Write them under the divergence, or divide the equation by them, "
            f"or {instead}."
        )
    return flux.written * flux.normal_flux


@dataclass(frozen=True, eq=False)
class EquationFlux:
    """∫ n·F over a named part of the boundary, with F the flux of an equation as it was written.

    `forms` are n·F in every region.
    """

    part: str | None
    forms: Mapping[int | None, Form]
    coordinates: tuple[sympy.Symbol, ...]
    n_unknowns: int
    of: None = None

    def check(self, domain: Domain, name: str) -> None:
        """Refuse a flux that is not linear in the unknowns, or in every region no sum of functions of parameters and of x."""
        for form in self.forms.values():
            if form.jets or form.source or form.time_order:
                raise InputError(
                    f"the quantity {name!r} is the flux of the equation, which is not linear in the unknowns, has a part "
                    f"without them, or depends on time: it is no sum of weights times values. Instead, {FLUX_INSTEAD}."
                )
        if not any(form.affine for form in self.forms.values()):
            raise _not_separated(f"the quantity {name!r}", next(iter(self.forms.values())))

    def weights(self, nodes: Nodes, scheme: Scheme | Elements) -> dict[sympy.Expr, np.ndarray]:
        """Rows of the terms of n·F, summed over the part, (n_unknowns * n_nodes,), for each function θ(μ) before them."""
        surface = surface_points(nodes, self.part)
        regions = np.full(len(surface.points), -1)
        if None not in self.forms:
            regions = nodes.domain.region_of(surface.points)
        used = sorted({t.derivative for form in self.forms.values() for t in form.operator if t.derivative is not None})
        rows = derivatives_at(nodes, surface.points, used, scheme)
        out: dict[sympy.Expr, np.ndarray] = {}
        for region, form in self.forms.items():
            here = regions == (-1 if region is None else region)
            if np.any(here) and not form.affine:
                raise _not_separated(f"a flux through {self.part or 'the boundary'}", form)
            for term in form.operator if np.any(here) else ():
                # linear in the normal, which takes the place of its product with the area
                function = as_function(term.coefficient, [*self.coordinates, *normal(*self.coordinates)])
                factor = function(*surface.points[here].T, *surface.areas[here].T)
                own = out.setdefault(term.theta, np.zeros((self.n_unknowns, nodes.n_nodes)))
                own[term.unknown] += rows[term.derivative or ()][here].T @ factor
        return {theta: own.ravel() for theta, own in out.items()} or {
            sympy.S.One: np.zeros(self.n_unknowns * nodes.n_nodes)
        }


def _not_separated(what: str, form: Form) -> InputError:
    names = sorted({str(s) for s in form.symbols if isinstance(s, Parameter | FunctionParameter)})
    return InputError(
        f"{what} is the flux of the equation, which depends on {', '.join(names)} not as a sum of functions of numbers times "
        f"functions of the coordinates, or has such a coefficient: its weights cannot be kept. Instead, {FLUX_INSTEAD}."
    )


def outside_divergences(equation) -> sympy.Expr:
    """The equation without its divergences."""
    expression = difference(equation)
    return expression.xreplace(dict.fromkeys(expression.atoms(Divergence), sympy.S.Zero))


def refuse_jumping_fluxes(equation, coordinates: Sequence[sympy.Symbol]) -> None:
    """Refuse a flux under a divergence that jumps along the coordinates and has no regions."""
    for flux in equation.atoms(Divergence) if isinstance(equation, sympy.Basic) else ():
        for part in jumping_parts(flux.components, coordinates):
            raise InputError(lost_flux(part))


def refuse_lost_fluxes(
    equations: Sequence, outside: Sequence[Form], unknowns: Sequence[AppliedUndef], *, nondivergence: bool
) -> None:
    """Refuse values by region that multiply second derivatives outside of a divergence, or leave the flux ambiguous.

    `outside` are the equations without their divergences, as terms.
    """
    regional = [[part for part in equation.atoms(Divergence) if part.has(Region)] for equation in equations]
    bent = {d.expr for parts in regional for part in parts for d in part.atoms(Derivative)}  # with a kink at interfaces
    for equation, form, parts in zip(equations, outside, regional, strict=True):
        for coefficient in coefficients(form, order=2):
            if coefficient.has(Region) and not nondivergence:
                raise InputError(
                    f"the equation has a second derivative times {coefficient}, which differs by region, outside of a "
                    f"divergence: the condition that the flux is continuous at the interfaces would be lost. {WRITE}; or "
                    "say nondivergence=True if no flux is meant and the equation holds as it stands."
                )
        second = {u for j, u in enumerate(unknowns) if form.order_of(j) > 1}
        if second and (parts or second & bent):
            raise InputError(
                f"{min(map(str, second))} has second derivatives outside of a divergence, beside a divergence whose flux "
                "differs by region: together they are one flux. Write all second derivatives under ps.divergence."
            )
        flux_balance = balance(equation)
        if flux_balance is None and any(
            part.has(Region) for part in _terms(difference(equation)) if part.has(Divergence)
        ):
            raise InputError(
                "the equation has values by region and divergences that are multiplied by different factors: which flux is "
                f"continuous at the interfaces is not known. {WRITE}, with the factor under the divergence."
            )
        if parts and flux_balance is not None:
            _refuse_fluxes_without_slopes(flux_balance)


def _refuse_fluxes_without_slopes(flux_balance: Balance) -> None:
    """Refuse a flux by region that has no derivatives of unknowns: these would jump at the interfaces."""
    flux = flux_balance.normal_flux.doit()
    if _order(flux) == 0:
        raise InputError(
            "the flux under the divergence differs by region and has no derivatives of the unknown: where it is continuous, "
            "the unknown jumps, which is not understood. Add diffusion to the flux, or write the terms as they stand, "
            "b*u.diff(x)."
        )
    if any(isinstance(v, Time) for part in flux.atoms(Derivative) for v in part.variables):
        raise InputError(
            "the flux under the divergence differs by region and has a derivative in time, which is not understood at "
            "interfaces. Make that derivative an unknown of its own."
        )
