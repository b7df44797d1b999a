"""A parametric PDE: domain, equations, boundary conditions, initial state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import sympy
from sympy.core.function import AppliedUndef

from parasol.checks import ParasolError
from parasol.expressions import to_expression
from parasol.pde.equation import Form, Time, gradient, normal, read_equation
from parasol.pde.parameters import FunctionParameter, Parameter, ParameterSpace
from parasol.pde.quantities import Quantity, check_quantities
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
    places = [v for v in u.args if not isinstance(v, Time)]
    return sympy.Add(*[n * g for n, g in zip(normal(*places), gradient(u), strict=True)])


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
    neumann: str = "ghosts"
    step: float | None = None
    integrator: str | None = None


@dataclass(frozen=True)
class Problem:
    """A boundary-value problem, or its evolution in time, with parameters; linear or not, for one unknown or several.

    `equation` is one equation or a list of them, one per unknown, in the order of the unknowns' names unless `unknowns`
    says otherwise. `boundary` is a condition for the whole boundary, or a mapping from names of parts to conditions,
    where "*" stands for the parts not named; for several unknowns each part has a list of conditions, one per unknown.
    A condition may also be any equation `ps.Eq(...)` in the unknowns and their first derivatives.

    Where the unknowns depend on `ps.time()`, `initial` is the state at the start, (state, velocity) for equations of second
    order in time, a mapping from names to these for several unknowns; `times` are the times to store.
    `exact` is the exact solution where it is known; `settings` holds named choices for the discretisation; `quantities`
    names what is wanted of a solution: ps.Average(), ps.Integral(), ps.Flux(part), ps.PointValue(point).
    """

    domain: Domain
    equation: sympy.Equality | Sequence[sympy.Equality]
    boundary: object = None
    initial: object = None
    times: Sequence[float] | None = None
    exact: sympy.Expr | Mapping[str, sympy.Expr] | None = None
    name: str = ""
    settings: Mapping[str, Settings] = field(default_factory=dict)
    unknowns: tuple[AppliedUndef, ...] = ()
    quantities: Mapping[str, Quantity] = field(default_factory=dict)

    def __post_init__(self):
        if not isinstance(self.domain, Domain):
            raise ParasolError(f"domain is {self.domain!r}. Pass a domain such as ps.Disc() or ps.Box((0, 0), (1, 1)).")
        if not self.unknowns:
            object.__setattr__(self, "unknowns", _find_unknowns(self.equations))
        # a problem that cannot be read is refused when it is declared
        self._check_unknowns()
        self._check_time()
        _ = self.forms, self.conditions
        self._check_symbols()
        check_quantities(self.quantities, self.domain, self.names)

    @property
    def equations(self) -> tuple:
        """The equations, one per unknown."""
        many = isinstance(self.equation, Sequence) and not isinstance(self.equation, str)
        return tuple(self.equation) if many else (self.equation,)  # type: ignore[arg-type]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the unknowns."""
        return tuple(str(u.func) for u in self.unknowns)

    @property
    def coordinates(self) -> tuple[sympy.Symbol, ...]:
        """The coordinates, in order of the axes."""
        return tuple(v for v in self.unknowns[0].args if not isinstance(v, Time))

    @property
    def time(self) -> Time | None:
        """The symbol of time, None for a steady problem."""
        return next((v for v in self.unknowns[0].args if isinstance(v, Time)), None)

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        """The equations as terms."""
        forms = tuple(read_equation(equation, self.unknowns) for equation in self.equations)
        for form in forms:
            if form.order > 2:
                raise ParasolError(
                    "the equation has derivatives above order 2, which need more than one condition per boundary part."
                )
            if form.time_order > 2:
                raise ParasolError(
                    f"the equation has a time derivative of order {form.time_order}; up to 2 is understood."
                )
            for term in form.operator:
                if term.coefficient.atoms(Time):
                    raise ParasolError(
                        f"the coefficient {term.coefficient} of the operator depends on time; only sources and boundary data may."
                    )
        return forms

    @property
    def time_order(self) -> int:
        """Highest derivative in time, 0 for a steady problem."""
        return max(form.time_order for form in self.forms)

    @property
    def time_orders(self) -> tuple[int, ...]:
        """Highest derivative in time of each unknown."""
        terms = [term for form in self.forms for term in form.operator]
        return tuple(max((t.time_order for t in terms if t.unknown == j), default=0) for j in range(len(self.names)))

    @cached_property
    def conditions(self) -> dict[str, tuple[Form, ...]]:
        """The boundary conditions of each part, one per unknown, as terms."""
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
            if name not in given and REST not in given:
                raise ParasolError(
                    f"the boundary part {name!r} has no condition. Add one, or give '{REST}' for all parts not named."
                )
            out[name] = self._conditions_on(given.get(name, given.get(REST)), name)
        return out

    def _conditions_on(self, conditions, name: str) -> tuple[Form, ...]:
        where = f"condition on {name!r}"
        if not isinstance(conditions, list | tuple):
            conditions = (conditions,)
        if len(conditions) != len(self.names):
            raise ParasolError(
                f"the {where} is {len(conditions)} condition(s) for {len(self.names)} unknown(s) ({', '.join(self.names)}). Give a list, one each."
            )
        forms = []
        for u, condition in zip(self.unknowns, conditions, strict=True):
            if not isinstance(condition, Dirichlet | Neumann | Robin | sympy.Equality):
                raise ParasolError(f"the {where} is {condition!r}. Use ps.Dirichlet, ps.Neumann, ps.Robin or ps.Eq.")
            equation = condition if isinstance(condition, sympy.Equality) else condition.equation(u)
            form = read_equation(equation, self.unknowns, where=where)
            if form.order > 1 or form.time_order > 0:
                raise ParasolError(f"the {where} has derivatives above order 1, or in time.")
            forms.append(form)
        return tuple(forms)

    @cached_property
    def parameters(self) -> ParameterSpace:
        """All parameters that occur, in order of declaration."""
        symbols: set[sympy.Basic] = set()
        for form in [*self.forms, *[f for forms in self.conditions.values() for f in forms]]:
            symbols |= form.symbols
        for value in self.initial_states.values():
            symbols |= set().union(*[part.free_symbols for part in value])
        scalars = sorted((s for s in symbols if isinstance(s, Parameter)), key=lambda p: p.rank)
        functions = sorted((s for s in symbols if isinstance(s, FunctionParameter)), key=lambda p: p.rank)
        names = [p.name for p in scalars + functions]
        if len(set(names)) != len(names):
            raise ParasolError(
                f"two parameters have the same name: {', '.join(names)}. Declare each once and reuse it."
            )
        return ParameterSpace(tuple(scalars), tuple(functions))

    @cached_property
    def initial_states(self) -> dict[str, tuple[sympy.Expr, ...]]:
        """For each unknown its state at the start, with the velocity for second order in time; empty for steady problems."""
        if self.time is None:
            return {}
        given = self.initial if isinstance(self.initial, Mapping) else {self.names[0]: self.initial}
        out = {}
        for name, order in zip(self.names, self.time_orders, strict=True):
            shape = "(state, velocity)" if order == 2 else "a state"
            value = given.get(name)
            if value is None:
                raise ParasolError(f"the initial state of {name} is missing. Give initial=..., as {shape}.")
            parts = tuple(to_expression(v) for v in (value if isinstance(value, list | tuple) else (value,)))
            if len(parts) != max(1, order):
                raise ParasolError(
                    f"the initial state of {name} has {len(parts)} part(s), an unknown of order {order} in time needs {shape}."
                )
            for part in parts:
                strange = part.free_symbols - set(self.coordinates)
                if any(not isinstance(s, Parameter) for s in strange):
                    raise ParasolError(
                        f"the initial state {part} of {name} depends on more than coordinates and parameters."
                    )
            out[name] = parts
        return out

    def _check_unknowns(self) -> None:
        found = self.unknowns
        if len(found) != len(self.equations):
            listed = ", ".join(map(str, found))
            raise ParasolError(
                f"{len(self.equations)} equation(s) for {len(found)} unknown functions ({listed}). Give a list, one equation per unknown."
            )
        if len({u.args for u in found}) != 1:
            raise ParasolError(
                f"the unknowns {', '.join(map(str, found))} depend on different coordinates. Declare them alike."
            )
        if len(self.coordinates) != self.domain.dimension:
            raise ParasolError(
                f"{found[0]} has {len(self.coordinates)} coordinates but the domain has {self.domain.dimension}. "
                f"Declare the unknown with one coordinate per dimension (and ps.time() for time)."
            )

    def _check_time(self) -> None:
        if self.time is None:
            if self.initial is not None or self.times is not None:
                raise ParasolError(
                    "initial and times are for problems in time. Declare the unknown with ps.time(): ps.unknown('u', x, t)."
                )
            return
        if self.time_order == 0:
            raise ParasolError(f"{self.unknowns[0]} depends on time but the equation has no time derivative.")
        _ = self.initial_states

    def _check_symbols(self) -> None:
        taken = {v.name for v in (*self.unknowns[0].args, *normal(*self.coordinates))} | set(self.names)
        for p in (*self.parameters.scalars, *self.parameters.functions):
            if p.name in taken:
                raise ParasolError(
                    f"the parameter {p.name!r} has the name of a coordinate or an unknown. Call it something else."
                )
        for form in self.forms:
            for symbol in form.symbols:
                if symbol in normal(*self.coordinates):
                    raise ParasolError("the equation contains the normal, which exists on the boundary only.")
                if isinstance(symbol, FunctionParameter) and symbol.on == "boundary":
                    raise ParasolError(
                        f"the function parameter {symbol.name} is given on the boundary only but stands in the equation. Declare it with on='domain'."
                    )
        known = {*self.unknowns[0].args, *self.parameters.scalars}
        exact = (
            self.exact if isinstance(self.exact, Mapping) else {} if self.exact is None else {self.names[0]: self.exact}
        )
        if exact and set(exact) != set(self.names):
            raise ParasolError(
                f"exact is known for {', '.join(exact)}, the unknowns are {', '.join(self.names)}. Give all of them."
            )
        for expression in exact.values():
            strange = to_expression(expression).free_symbols - known
            if strange:
                raise ParasolError(
                    f"exact contains {', '.join(sorted(map(str, strange)))}, which the problem does not have."
                )

    @property
    def linear(self) -> bool:
        """Whether the unknowns enter linearly, in the equations and in the boundary conditions."""
        return all(form.linear for form in [*self.forms, *[f for forms in self.conditions.values() for f in forms]])

    @property
    def affine(self) -> bool:
        """Whether operator and right-hand side are sums of functions of the parameters times fixed matrices."""
        return all(form.affine for form in [*self.forms, *[f for forms in self.conditions.values() for f in forms]])

    def __repr__(self) -> str:
        return f"<Problem {self.name or self.equation}>"

    def _repr_html_(self) -> str:
        from parasol.pde.words import problem_html  # which needs this class

        return problem_html(self)

    def _repr_latex_(self) -> str:
        from parasol.pde.words import equation_latex

        lines = r" \\ ".join(equation_latex(self))
        return rf"$\displaystyle \begin{{gathered}} {lines} \end{{gathered}}$"


def _find_unknowns(equations) -> tuple[AppliedUndef, ...]:
    found: set[AppliedUndef] = set()
    for equation in equations:
        found |= set(getattr(equation, "atoms", lambda *_: ())(AppliedUndef))
    if not found:
        raise ParasolError("the equation does not contain an unknown. Declare one: u = ps.unknown('u', x, y).")
    return tuple(sorted(found, key=str))
