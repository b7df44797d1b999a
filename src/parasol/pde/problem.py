"""A parametric PDE: domain, equations, boundary conditions, initial state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
import sympy
from sympy.core.function import AppliedUndef

from parasol.errors import InputError
from parasol.expressions import as_function, to_expression
from parasol.pde.conditions import Dirichlet, Jump, Neumann, Robin
from parasol.pde.equation import (
    Form,
    Time,
    difference,
    enters_linearly,
    find_unknowns,
    normal,
    read_equation,
    with_unknowns,
)
from parasol.pde.fluxes import (
    FLUX_INSTEAD,
    NORMAL_INSTEAD,
    Balance,
    EquationFlux,
    NormalFlux,
    balance,
    outside_divergences,
    refuse_jumping_fluxes,
    refuse_lost_fluxes,
    written_flux,
)
from parasol.pde.given_jumps import check_jumps
from parasol.pde.parameters import FunctionParameter, Parameter, ParameterSpace
from parasol.pde.quantities import Flux, Quantity, check_quantities
from parasol.pde.recognise import with_regions
from parasol.pde.refusals import (
    refuse_changing_orders,
    refuse_high_orders,
    refuse_lost_jumps,
    refuse_poles,
    refuse_saddle_points,
)
from parasol.pde.regions import Region, check_regions, in_region
from parasol.pde.vectors import Divergence, known_carried_out
from parasol.runtime.above import borrowed
from parasol.space.geometry.axes import axis_of
from parasol.space.geometry.domain import Domain
from parasol.space.kernels import Kernel

_compiled = lru_cache(maxsize=256)(
    as_function
)  # a state takes longer to compile than to evaluate, and every solve asks
REST = "*"  # key of a boundary mapping that stands for all parts not named


Condition = Dirichlet | Neumann | Robin | NormalFlux | sympy.Equality


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

    `equation` is one equation or a list of them, one per unknown. `boundary` is a condition for the whole boundary, or a
    mapping from names of parts to conditions, where "*" stands for the parts not named. For several unknowns each part
    has a mapping from unknowns to conditions, {u: ..., v: ...}, or a list of conditions, one per unknown, in the order in
    which the unknowns were declared, or in that of `unknowns` where it is given; answers have the same order.
    A condition may also be any equation `ps.Eq(...)` in the unknowns and their first derivatives.

    A coefficient of a second derivative must not jump in the coordinates or the unknowns: SymPy differentiates a flux
    k u_x with a jump in k as if there were none, and the condition that the flux is continuous is lost. With
    `nondivergence=True` equations hold as they stand, k u_xx with no flux behind it, and k may jump. A coefficient b of a
    first derivative may jump: b u_x is meant as it stands. (b u).diff(x) is refused where the pieces of b are not
    constant; where they are, SymPy makes b u_x of it, and `discretize` warns that this is what is solved.

    Coefficients, sources, conditions and initial states may differ by the regions of the domain, `ps.by_region(...)`; a
    coefficient of second derivatives only under `ps.divergence`, whose flux is continuous at the interfaces. `interfaces`
    gives sources on interfaces, {("core", "shell"): q} with a list of sources for several unknowns: the fluxes of both
    sides add up to q, Σ n·F = q with outward normals, where the equation is −div F = f. With `ps.Jump(g, q)` in place of q
    the unknown itself jumps, u in the core less u in the shell is g; values at nodes on the interface are those of the
    region that the domain names first.

    Where the unknowns depend on `ps.time()`, `initial` is the state at the start, (state, velocity) for equations of second
    order in time, a mapping from names to these for several unknowns; `times` are the times to store.
    `exact` is the exact solution where it is known; `settings` holds named choices for the discretisation; `quantities`
    names what is wanted of a solution: ps.Average(), ps.Integral(), ps.Flux(part), ps.PointValue(point).
    """

    domain: Domain
    equation: sympy.Basic | Sequence[sympy.Basic]  # `ps.Eq(...)` is an Equality; type checkers see less of it
    boundary: object = None
    initial: object = None
    times: Sequence[float] | np.ndarray | None = None
    exact: sympy.Expr | Mapping[str, sympy.Expr] | None = None
    name: str = ""
    settings: Mapping[str, Settings] = field(default_factory=dict)
    unknowns: tuple[AppliedUndef, ...] = ()
    quantities: Mapping[str, Quantity] = field(default_factory=dict)
    nondivergence: bool = False
    interfaces: Mapping[tuple[str, str], object] = field(default_factory=dict)

    def __post_init__(self):
        if not isinstance(self.domain, Domain):
            raise InputError(f"domain is {self.domain!r}. Pass a domain such as ps.Disc() or ps.Box((0, 0), (1, 1)).")
        self.domain.check_closed()
        given = tuple(self.unknowns) or find_unknowns([difference(e) for e in self.equations])
        object.__setattr__(self, "unknowns", given)
        # a problem that cannot be read is refused when it is declared
        self._check_unknowns()
        self._recognise_regions()
        check_regions(self._statements, self.region_names)
        self._check_time()
        _ = self.forms, self.conditions, self.interface_sources
        self._check_symbols()
        check_jumps(self)
        check_quantities(self.quantities, self.domain, self.names)
        _ = self.functionals

    @property
    def equations(self) -> tuple:
        """The equations, one per unknown."""
        many = isinstance(self.equation, Sequence) and not isinstance(self.equation, str)
        equations = tuple(self.equation) if many else (self.equation,)  # type: ignore[arg-type]
        return tuple(
            with_unknowns(known_carried_out(e), self.unknowns) if isinstance(e, sympy.Basic) else e for e in equations
        )

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

    def _recognise_regions(self) -> None:
        """Make regions of the pieces by which a flux is given; domain and equations are then those with the regions."""
        equations, domain = with_regions(self.equations, self.domain, self.coordinates)
        if equations != list(self.equations):
            object.__setattr__(self, "domain", domain)
            object.__setattr__(self, "equation", equations if len(equations) > 1 else equations[0])

    # ---- regions ----------------------------------------------------------------------------------------------------
    @property
    def region_names(self) -> tuple[str, ...]:
        """The regions of the domain, () where it has none."""
        return self.domain.region_names

    @property
    def _regions(self) -> tuple[int | None, ...]:
        """The places of the regions in `region_names`, None for the domain as a whole where it has none."""
        return tuple(range(len(self.region_names))) or (None,)

    def _name_of(self, region: int | None) -> str | None:
        return None if region is None else self.region_names[region]

    @property
    def _statements(self) -> list[sympy.Basic]:
        """All expressions in which values may differ by region."""
        given = [self.boundary, self.initial, self.exact, self.interfaces]
        found: list[sympy.Basic] = [e for e in self.equations if isinstance(e, sympy.Basic)]
        while given:
            part = given.pop()
            if isinstance(part, sympy.Basic):
                found.append(part)
            elif isinstance(part, Mapping):
                given += part.values()
            elif isinstance(part, list | tuple):
                given += part
            elif isinstance(part, Dirichlet | Neumann | Robin | NormalFlux | Jump):
                given += vars(part).values()
        return found

    @cached_property
    def balances(self) -> tuple[Balance | None, ...]:
        """The divergence of each equation, with its flux; None where it has none, or second derivatives outside of it."""
        return tuple(balance(equation) for equation in self.equations)

    @cached_property
    def outside_divergences(self) -> tuple[Form, ...]:
        """The equations without their divergences, as terms, where values differ by region; else none."""
        if not any(equation.has(Region) for equation in self.equations):
            return ()
        parts = [outside_divergences(equation) for equation in self.equations]
        return tuple(self._read(part, "equation", needs_unknown=False) for part in parts)

    def forms_in(self, region: int | None) -> tuple[Form, ...]:
        """The equations inside a region of `region_names`, as terms; of the whole domain where it has no regions."""
        return self._forms[region]

    def fluxes_in(self, region: int | None) -> tuple[Form | None, ...]:
        """The normal flux n·F of each equation inside a region, a form of first order.

        F is such that the equation is  − factor · div F + rest = 0, see `balances`. It is None where there is no
        divergence, or second derivatives stand outside of it: then their coefficients are the same in all regions.
        """
        return self._fluxes[region]

    def rests_in(self, region: int | None) -> tuple[Form | None, ...]:
        """What stands beside the divergence of each equation inside a region, rest / factor in  −div F + rest / factor = 0."""
        return tuple(
            None
            if found is None
            else self._read(found.rest / found.factor, "equation beside its divergence", region, needs_unknown=False)
            for found in self.balances
        )

    @cached_property
    def functionals(self) -> dict[str, Quantity]:
        """The quantities of interest; fluxes are those of the equations that have a divergence, or have their own coefficient."""
        own = {}
        for name, quantity in self.quantities.items():
            j = self.names.index(quantity.of) if isinstance(quantity, Flux) and quantity.of else 0
            if not isinstance(quantity, Flux):
                continue
            if quantity.coefficient is None and self.equations[j].has(Divergence):
                flux = written_flux(self.balances[j], f"quantity {name!r}", FLUX_INSTEAD)
            elif used := quantity.factor.atoms(Parameter):
                strange = sorted(str(p) for p in used - set(self.parameter_symbols[0]))
                if strange:
                    raise InputError(
                        f"the coefficient of the quantity {name!r} depends on {strange[0]}, and the problem does not. "
                        "Multiply afterwards."
                    )
                slopes = [self.unknowns[j].diff(v) for v in self.coordinates]
                flux = quantity.factor * sum(n * s for n, s in zip(normal(*self.coordinates), slopes, strict=True))
            else:
                continue
            forms = {r: self._read(flux, f"quantity {name!r}", r, needs_unknown=False) for r in self._regions}
            own[name] = EquationFlux(quantity.part, forms, self.coordinates, len(self.names))
            own[name].check(self.domain, name)
        return {**self.quantities, **own}

    def conditions_in(self, region: int | None) -> dict[str, tuple[Form, ...]]:
        """The boundary conditions of each part, one per unknown, where the boundary is that of a region."""
        return self._conditions[region]

    @cached_property
    def _forms(self) -> dict[int | None, tuple[Form, ...]]:
        return {
            region: tuple(self._read(equation, "equation", region) for equation in self.equations)
            for region in self._regions
        }

    @cached_property
    def _fluxes(self) -> dict[int | None, tuple[Form | None, ...]]:
        def flux(found: Balance | None, region: int | None) -> Form | None:
            return None if found is None else self._read(found.normal_flux, "flux", region, needs_unknown=False)

        return {region: tuple(flux(found, region) for found in self.balances) for region in self._regions}

    @cached_property
    def interface_sources(self) -> dict[frozenset[int], tuple[Form, ...]]:
        """The sources on the interfaces between two regions, by the places of these in `region_names`: one per unknown."""
        return {key: forms for key, (forms, _) in self._at_interfaces.items()}

    @cached_property
    def interface_jumps(self) -> dict[frozenset[int], tuple[Form, ...]]:
        """By how much unknowns in the second region exceed those in the first, by the places of the regions: as sources."""
        return {key: forms for key, (_, forms) in self._at_interfaces.items() if any(form.source for form in forms)}

    @cached_property
    def _at_interfaces(self) -> dict[frozenset[int], tuple[tuple[Form, ...], tuple[Form, ...]]]:
        """The sources on interfaces, and the jumps there."""
        out = {}
        for pair, given in self.interfaces.items():
            if not isinstance(pair, tuple) or len(set(pair)) != 2 or not set(pair) <= set(self.region_names):
                raise InputError(
                    f"interfaces names {pair!r}. Give the names of two regions, such as ('core', 'shell'); the regions "
                    f"are: {', '.join(self.region_names) or 'none'}."
                )
            given = given if isinstance(given, list | tuple) else [given]
            if len(given) != len(self.names):
                raise InputError(f"the interface {pair} has {len(given)} source(s) for {len(self.names)} unknown(s).")
            both = [each if isinstance(each, Jump) else Jump(0, each) for each in given]
            where = f"source on the interface {pair}"
            first, second = (self.region_names.index(name) for name in pair)
            sign = 1 if first < second else -1
            sources = tuple(self._read(-to_expression(each.flux), where, needs_unknown=False) for each in both)
            jumps = tuple(
                self._read(sign * to_expression(each.value), f"jump at the interface {pair}", needs_unknown=False)
                for each in both
            )
            if any(form.operator or form.jets for form in (*sources, *jumps)):
                raise InputError(f"the {where} contains an unknown. Only known sources are understood there.")
            key = frozenset((first, second))
            if key in out:
                raise InputError(f"the {where} is given twice. Give it once.")
            out[key] = sources, jumps
        return out

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        """The equations as terms; those of all regions, one region after the other, where the domain has some."""
        forms = tuple(form for region in self._regions for form in self.forms_in(region))
        refuse_high_orders(forms)
        for region in self._regions:
            refuse_saddle_points(self.forms_in(region), self.names)
        for form in forms:
            for term in form.operator:
                if term.coefficient.atoms(Time):
                    raise InputError(
                        f"the coefficient {term.coefficient} of a time derivative depends on time. Divide the equation by it."
                    )
        refuse_changing_orders([self.forms_in(region) for region in self._regions], self.names, self.region_names)
        if not self.nondivergence:
            refuse_poles(forms, self.domain, self.coordinates)
            refuse_lost_jumps(forms, self.domain, self.coordinates)
        if self.outside_divergences:
            refuse_lost_fluxes(
                self.equations, self.outside_divergences, self.unknowns, nondivergence=self.nondivergence
            )
        return forms

    def _read(self, equation, where: str, region: int | None = None, *, needs_unknown: bool = True) -> Form:
        refuse_jumping_fluxes(equation, self.coordinates)
        bounds = self.domain.bounds
        ranges = {v: (float(low), float(high)) for v, low, high in zip(self.coordinates, *bounds, strict=True)}
        ranges |= dict.fromkeys(normal(*self.coordinates), (-1.0, 1.0))
        return read_equation(
            in_region(equation, self._name_of(region)) if isinstance(equation, sympy.Basic) else equation,
            self.unknowns,
            where=where,
            ranges=ranges,
            nondivergence=self.nondivergence,
            needs_unknown=needs_unknown,
        )

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
        """The boundary conditions of each part, one per unknown, as terms.

        Where they differ by region, those in the first: `conditions_in` has all.
        """
        return self._conditions[self._regions[0]]

    @cached_property
    def _conditions(self) -> dict[int | None, dict[str, tuple[Form, ...]]]:
        names = self.domain.part_names
        given = self.boundary
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
            region: {name: self._conditions_on(given.get(name, given.get(REST)), name, region) for name in names}
            for region in self._regions
        }

    def _conditions_on(self, conditions, name: str, region: int | None) -> tuple[Form, ...]:
        where = f"condition on {name!r}"
        if isinstance(conditions, Mapping):
            by_name = {str(getattr(key, "func", key)): condition for key, condition in conditions.items()}
            if set(by_name) != set(self.names) or len(by_name) != len(conditions):
                raise InputError(
                    f"the {where} is given for {', '.join(by_name)}, the unknowns are {', '.join(self.names)}. Give one each."
                )
            conditions = [by_name[name] for name in self.names]
        if not isinstance(conditions, list | tuple):
            conditions = (conditions,)
        if len(conditions) != len(self.names):
            raise InputError(
                f"the {where} is {len(conditions)} condition(s) for {len(self.names)} unknown(s) ({', '.join(self.names)}). Give a list, one each."
            )
        forms = []
        for j, (u, condition) in enumerate(zip(self.unknowns, conditions, strict=True)):
            if not isinstance(condition, Condition):
                raise InputError(
                    f"the {where} is {condition!r}. Use ps.Dirichlet, ps.Neumann, ps.Robin, ps.NormalFlux or ps.Eq."
                )
            if isinstance(condition, NormalFlux):
                flux = written_flux(self.balances[j], where, NORMAL_INSTEAD)
                equation = flux - to_expression(condition.value)
                if not flux.has(u):
                    raise InputError(
                        f"the {where} of {u.func} is on the flux of equation {j + 1}, which does not contain {u.func}. Give "
                        "the equations in the order of the unknowns."
                    )
            else:
                equation = condition if isinstance(condition, sympy.Equality) else condition.equation(u)
            form = self._read(equation, where, region)
            if form.order > 1 or form.time_order > 0:
                raise InputError(f"the {where} has derivatives above order 1, or in time.")
            forms.append(form)
        return tuple(forms)

    @cached_property
    def parameters(self) -> ParameterSpace:
        """All parameters that occur, in order of declaration."""
        return ParameterSpace(*self.parameter_symbols)

    @cached_property
    def parameter_symbols(self) -> tuple[tuple[Parameter, ...], tuple[FunctionParameter, ...]]:
        """The symbols of the parameters that occur, numbers and functions, in order of declaration."""
        symbols: set[sympy.Basic] = set()
        for form in self.all_forms:
            symbols |= form.symbols
        for value in self.initial_states.values():
            symbols |= set().union(*[part.free_symbols for part in value])
        scalars = sorted((s for s in symbols if isinstance(s, Parameter)), key=lambda p: p.rank)
        functions = sorted((s for s in symbols if isinstance(s, FunctionParameter)), key=lambda p: p.rank)
        names = [p.name for p in scalars + functions]
        if len(set(names)) != len(names):
            raise InputError(f"two parameters have the same name: {', '.join(names)}. Declare each once and reuse it.")
        return tuple(scalars), tuple(functions)

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
                raise InputError(f"the initial state of {name} is missing. Give initial=..., as {shape}.")
            parts = tuple(to_expression(v) for v in (value if isinstance(value, list | tuple) else (value,)))
            if len(parts) != max(1, order):
                raise InputError(
                    f"the initial state of {name} has {len(parts)} part(s), an unknown of order {order} in time needs {shape}."
                )
            for part in parts:
                strange = part.free_symbols - set(self.coordinates)
                if any(not isinstance(s, Parameter | Region) for s in strange):
                    raise InputError(
                        f"the initial state {part} of {name} depends on more than coordinates and parameters."
                    )
            out[name] = parts
        return out

    def _check_unknowns(self) -> None:
        found = self.unknowns
        if not found:
            raise InputError("the equation does not contain an unknown. Declare one: u = ps.unknown('u', x, y).")
        if len(found) != len(self.equations):
            listed = ", ".join(map(str, found))
            raise InputError(
                f"{len(self.equations)} equation(s) for {len(found)} unknown functions ({listed}). Give a list, one equation per unknown."
            )
        if len({u.args for u in found}) != 1:
            raise InputError(
                f"the unknowns {', '.join(map(str, found))} depend on different coordinates. Declare them alike."
            )
        if len(self.coordinates) != self.domain.dimension:
            raise InputError(
                f"{found[0]} has {len(self.coordinates)} coordinates but the domain has {self.domain.dimension}. "
                f"Declare the unknown with one coordinate per dimension (and ps.time() for time)."
            )
        self._check_axes()

    def _check_axes(self) -> None:
        """Refuse a coordinate that stands for one axis in the unknown and for another elsewhere."""
        order = {v.name: axis for axis, v in enumerate(self.coordinates)}
        declared = [axis_of(v) for v in self.coordinates]
        used = set(self.domain.symbols)
        for quantity in self.quantities.values() if isinstance(self.quantities, Mapping) else ():
            used |= getattr(getattr(quantity, "coefficient", None), "free_symbols", set())
        # y and z alone are the axes of a plane; y before x is a mistake, or misleads readers
        used |= set(self.coordinates) if set(declared) == set(order.values()) else set()
        for symbol in sorted(used, key=str):
            axis = axis_of(symbol)
            if axis is not None and order.get(str(symbol), axis) != axis:
                names = " ".join(map(str, self.coordinates))
                raise InputError(
                    f"{symbol} stands for axis {axis + 1}, in {self.unknowns[0]} for axis {order[str(symbol)] + 1}. "
                    f'Use the symbols of ps.coordinates("{names}") everywhere, in this order.'
                )

    def _check_time(self) -> None:
        if self.time is None:
            if self.initial is not None or self.times is not None:
                raise InputError(
                    "initial and times are for problems in time. Declare the unknown with ps.time(): ps.unknown('u', x, t)."
                )
            return
        if self.time_order == 0:
            raise InputError(f"{self.unknowns[0]} depends on time but the equation has no time derivative.")
        _ = self.initial_states

    def _check_symbols(self) -> None:
        taken = {v.name for v in (*self.unknowns[0].args, *normal(*self.coordinates))} | set(self.names)
        for p in (*self.parameters.scalars, *self.parameters.functions):
            if p.name in taken:
                raise InputError(
                    f"the parameter {p.name!r} has the name of a coordinate or an unknown. Call it something else."
                )
        for form in self.forms:
            for symbol in form.symbols:
                if symbol in normal(*self.coordinates):
                    raise InputError("the equation contains the normal, which exists on the boundary only.")
                if isinstance(symbol, FunctionParameter) and symbol.on == "boundary":
                    raise InputError(
                        f"the function parameter {symbol.name} is given on the boundary only but stands in the equation. Declare it with on='domain'."
                    )
        known = {*self.unknowns[0].args, *self.parameter_symbols[0]}
        for expression in self.exact_solutions.values():
            strange = expression.free_symbols - known - expression.atoms(Region)
            if strange:
                raise InputError(
                    f"exact contains {', '.join(sorted(map(str, strange)))}, which the problem does not have."
                )

    @property
    def all_forms(self) -> list[Form]:
        """The equations and the boundary conditions of all parts, as terms."""
        conditions = [form for region in self._regions for f in self.conditions_in(region).values() for form in f]
        sources = [form for both in self._at_interfaces.values() for forms in both for form in forms]
        return [*self.forms, *conditions, *sources]

    @property
    def exact_solutions(self) -> dict[str, sympy.Expr]:
        """The exact solution of each unknown, empty where it is not known."""
        given = self.exact if isinstance(self.exact, Mapping) else {self.names[0]: self.exact}
        if self.exact is not None and set(given) != set(self.names):
            raise InputError(
                f"exact is known for {', '.join(given)}, the unknowns are {', '.join(self.names)}. Give all of them."
            )
        return {} if self.exact is None else {name: to_expression(given[name]) for name in self.names}

    def evaluate(
        self,
        expressions: Iterable[sympy.Expr],
        points: np.ndarray,
        mu: np.ndarray,
        t: float | None = None,
        regions: np.ndarray | None = None,
    ) -> np.ndarray:
        """Expressions in coordinates, scalar parameters and time, one after the other, at points (n, dimension).

        On interfaces they are those of one of the regions beside it, of `regions` (n,) where given.
        """
        scalars = self.parameter_symbols[0]
        times = [] if self.time is None or t is None else [self.time]
        symbols, columns = (*self.coordinates, *scalars, *times), [*points.T, *mu[: len(scalars)], *[t] * len(times)]

        def values(expression: sympy.Expr) -> np.ndarray:
            if not expression.has(Region):
                return _compiled(expression, symbols)(*columns)
            inside = [_compiled(in_region(expression, name), symbols)(*columns) for name in self.region_names]
            own = self.domain.region_of(points) if regions is None else regions
            return np.array(inside)[own, np.arange(len(points))]

        return np.concatenate([values(e) for e in expressions])

    @property
    def linear(self) -> bool:
        """Whether the unknowns enter linearly, in the equations and in the boundary conditions."""
        return all(enters_linearly(form) for form in self.all_forms)

    @property
    def affine(self) -> bool:
        """Whether operator and right-hand side are sums of functions of the parameters times fixed matrices."""
        return all(form.affine for form in self.all_forms)

    def __repr__(self) -> str:
        return f"<Problem {self.name or self.equation}>"

    def _repr_html_(self) -> str:
        return borrowed("problem_html")(self)

    def _repr_latex_(self) -> str:
        from parasol.pde.text import equation_latex  # which needs this class

        lines = r" \\ ".join(equation_latex(self))
        return rf"$\displaystyle \begin{{gathered}} {lines} \end{{gathered}}$"
