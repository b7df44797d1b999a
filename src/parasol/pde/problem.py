"""A parametric PDE: domain, equation, boundary conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import sympy
from sympy.core.function import AppliedUndef

from parasol.checks import ParasolError
from parasol.expressions import to_expression
from parasol.pde.equation import AXES, LinearForm, gradient, linear_form, normal
from parasol.pde.parameters import FunctionParameter, Parameter, ParameterSpace
from parasol.space.geometry.domain import Domain
from parasol.space.kernels import Kernel

REST = "*"  # key of a boundary mapping that stands for all parts not named


@dataclass(frozen=True)
class Dirichlet:
    """u = value on the boundary; the value is a number or an expression in coordinates and parameters."""

    value: object = 0

    def equation(self, u) -> sympy.Expr:
        """The condition as an expression that vanishes."""
        return u - to_expression(self.value)


@dataclass(frozen=True)
class Neumann:
    """n·grad u = value, with n the outward normal; `ps.normal(x, y)` gives its components for use in the value."""

    value: object = 0

    def equation(self, u) -> sympy.Expr:
        """The condition as an expression that vanishes."""
        return _normal_derivative(u) - to_expression(self.value)


@dataclass(frozen=True)
class Robin:
    """alpha u + beta n·grad u = value."""

    alpha: object
    beta: object
    value: object = 0

    def equation(self, u) -> sympy.Expr:
        """The condition as an expression that vanishes."""
        alpha, beta, value = (to_expression(v) for v in (self.alpha, self.beta, self.value))
        return alpha * u + beta * _normal_derivative(u) - value


def _normal_derivative(u) -> sympy.Expr:
    return sympy.Add(*[n * g for n, g in zip(normal(*u.args), gradient(u), strict=True)])


Condition = Dirichlet | Neumann | Robin | sympy.Equality


@dataclass(frozen=True)
class Settings:
    """Choices for a discretisation; what is None is chosen by the program."""

    n_nodes: int | None = None
    n_boundary: int | None = None
    method: str = "fill"
    kernel: Kernel | None = None
    degree: int | None = None
    stencil_size: int | None = None


@dataclass(frozen=True)
class Problem:
    """A linear boundary-value problem with parameters.

    `boundary` is one condition for the whole boundary, or a mapping from names of parts to conditions, where "*" stands
    for the parts not named. A condition may also be any equation `ps.Eq(...)` linear in u and its first derivatives.
    `exact` is the exact solution where it is known; `settings` holds named choices for the discretisation.
    """

    domain: Domain
    equation: sympy.Equality
    boundary: Condition | Mapping[str, Condition] | None = None
    exact: sympy.Expr | None = None
    name: str = ""
    settings: Mapping[str, Settings] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self):
        if not isinstance(self.domain, Domain):
            raise ParasolError(f"domain is {self.domain!r}. Pass a domain such as ps.Disc() or ps.Box((0, 0), (1, 1)).")
        self.form  # noqa: B018  a problem that cannot be read is refused when it is declared
        self.conditions  # noqa: B018

    @cached_property
    def unknown(self) -> AppliedUndef:
        """The unknown function."""
        found = sorted(getattr(self.equation, "atoms", lambda *_: [])(AppliedUndef), key=str)
        if not found:
            raise ParasolError("the equation does not contain an unknown. Declare one: u = ps.unknown('u', x, y).")
        if len(found) > 1:
            raise ParasolError(
                f"the equation has {len(found)} unknown functions ({', '.join(map(str, found))}); one is understood."
            )
        u = found[0]
        if len(u.args) != self.domain.dimension:
            raise ParasolError(
                f"{u} has {len(u.args)} coordinates but the domain has {self.domain.dimension}. "
                f"Declare the unknown with one coordinate per dimension (time is for the transient solver)."
            )
        return u

    @property
    def coordinates(self) -> tuple[sympy.Symbol, ...]:
        """The coordinates, in order of the axes."""
        return tuple(self.unknown.args)

    @cached_property
    def form(self) -> LinearForm:
        """The equation as separated terms."""
        form = linear_form(self.equation, self.unknown)
        if max(sum(t.derivative or ()) for t in form.operator) > 2:
            raise ParasolError(
                "the equation has derivatives above order 2, which need more than one condition per boundary part."
            )
        return form

    @cached_property
    def conditions(self) -> dict[str, LinearForm]:
        """The boundary condition of each part as separated terms."""
        names = self.domain.part_names
        given = self.boundary
        if given is None:
            given = {}
        elif not isinstance(given, Mapping):
            given = {REST: given}
        for key in given:
            if key != REST and key not in names:
                known = ", ".join(names) or "none"
                raise ParasolError(
                    f"boundary names the part {key!r}, which the domain does not have. Its parts are: {known}."
                )
        out = {}
        for name in names:
            condition = given.get(name, given.get(REST))
            if condition is None:
                raise ParasolError(
                    f"the boundary part {name!r} has no condition. Add one, or give '{REST}' for all parts not named."
                )
            out[name] = self._condition_form(condition, name)
        return out

    def _condition_form(self, condition, name: str) -> LinearForm:
        where = f"condition on {name!r}"
        if not isinstance(condition, Dirichlet | Neumann | Robin | sympy.Equality):
            raise ParasolError(f"the {where} is {condition!r}. Use ps.Dirichlet, ps.Neumann, ps.Robin or ps.Eq.")
        equation = condition if isinstance(condition, sympy.Equality) else condition.equation(self.unknown)
        form = linear_form(equation, self.unknown, where=where)
        if max(sum(t.derivative or ()) for t in form.operator) > 1:
            raise ParasolError(f"the {where} has derivatives above order 1.")
        return form

    @cached_property
    def parameters(self) -> ParameterSpace:
        """All parameters that occur, in order of declaration."""
        forms = [self.form, *self.conditions.values()]
        symbols: set[sympy.Basic] = set()
        for term in [t for form in forms for t in form.operator + form.source]:
            symbols |= term.theta.free_symbols | term.coefficient.free_symbols
            symbols |= {term.function} if term.function is not None else set()
        scalars = sorted((s for s in symbols if isinstance(s, Parameter)), key=lambda p: p.rank)
        functions = sorted((s for s in symbols if isinstance(s, FunctionParameter)), key=lambda p: p.rank)
        names = [p.name for p in scalars + functions]
        if len(set(names)) != len(names):
            raise ParasolError(
                f"two parameters have the same name: {', '.join(names)}. Declare each once and reuse it."
            )
        return ParameterSpace(tuple(scalars), tuple(functions))

    @property
    def affine(self) -> bool:
        """Whether operator and right-hand side are sums of functions of the parameters times fixed matrices."""
        return self.form.affine and all(form.affine for form in self.conditions.values())

    def __repr__(self) -> str:
        return f"<Problem {self.name or self.equation}>"


def axis_names(dimension: int) -> tuple[str, ...]:
    """Names of the axes for files and figures."""
    return AXES[:dimension]
