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
from parasol.pde.declared_names import check_symbols, check_time, check_unknowns
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
    Balance,
    EquationFlux,
    NormalFlux,
    balance,
    outside_divergences,
    refuse_jumping_fluxes,
    refuse_lost_fluxes,
    written_flux,
)
from parasol.pde.given_data import boundary_conditions, initial_states, interface_data
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
from parasol.space.geometry.domain import Domain
from parasol.space.kernels import Kernel

_compiled = lru_cache(maxsize=256)(
    as_function
)  # a state takes longer to compile than to evaluate, and every solve asks


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
    gives sources on interfaces, `{("core", "shell"): q}` with a list of sources for several unknowns: the fluxes of both
    sides add up to q, Σ n·F = q with outward normals, where the equation is written as −div F = f (or −Δu = f, with
    F = grad u; no factor stands before the divergence). With `ps.Jump(g, q)` in place of q the unknown itself jumps, u in
    the core less u in the shell is g; values at nodes on the interface are those of the region that the domain names first.

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
        check_unknowns(self)
        self._recognise_regions()
        check_regions(self._statements, self.region_names)
        check_time(self)
        _ = self.forms, self.conditions, self.interface_sources
        check_symbols(self)
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
    def region_places(self) -> tuple[int | None, ...]:
        """The places of the regions in `region_names`, None for the domain as a whole where it has none."""
        return tuple(range(len(self.region_names))) or (None,)

    def _name_of(self, region: int | None) -> str | None:
        return None if region is None else self.region_names[region]

    @property
    def _statements(self) -> list[sympy.Basic]:
        """All expressions in which values may differ by region."""
        given = [self.boundary, self.initial, self.exact, self.interfaces]
        statements: list[sympy.Basic] = [e for e in self.equations if isinstance(e, sympy.Basic)]
        while given:
            part = given.pop()
            if isinstance(part, sympy.Basic):
                statements.append(part)
            elif isinstance(part, Mapping):
                given += part.values()
            elif isinstance(part, list | tuple):
                given += part
            elif isinstance(part, Dirichlet | Neumann | Robin | NormalFlux | Jump):
                given += vars(part).values()
        return statements

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
        return tuple(self.read(part, "equation", needs_unknown=False) for part in parts)

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
            if equation is None
            else self.read(
                equation.rest / equation.factor, "equation beside its divergence", region, needs_unknown=False
            )
            for equation in self.balances
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
            forms = {r: self.read(flux, f"quantity {name!r}", r, needs_unknown=False) for r in self.region_places}
            own[name] = EquationFlux(quantity.part, forms, self.coordinates, len(self.names))
            own[name].check(self.domain, name)
        return {**self.quantities, **own}

    def conditions_in(self, region: int | None) -> dict[str, tuple[Form, ...]]:
        """The boundary conditions of each part, one per unknown, where the boundary is that of a region."""
        return self._conditions[region]

    @cached_property
    def _forms(self) -> dict[int | None, tuple[Form, ...]]:
        return {
            region: tuple(self.read(equation, "equation", region) for equation in self.equations)
            for region in self.region_places
        }

    @cached_property
    def _fluxes(self) -> dict[int | None, tuple[Form | None, ...]]:
        def flux(equation: Balance | None, region: int | None) -> Form | None:
            return None if equation is None else self.read(equation.normal_flux, "flux", region, needs_unknown=False)

        return {region: tuple(flux(equation, region) for equation in self.balances) for region in self.region_places}

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
        return interface_data(self)

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        """The equations as terms; those of all regions, one region after the other, where the domain has some."""
        forms = tuple(form for region in self.region_places for form in self.forms_in(region))
        refuse_high_orders(forms)
        for region in self.region_places:
            refuse_saddle_points(self.forms_in(region), self.names)
        for form in forms:
            for term in form.operator:
                if term.coefficient.atoms(Time):
                    raise InputError(
                        f"the coefficient {term.coefficient} of a time derivative depends on time. Divide the equation by it."
                    )
        refuse_changing_orders([self.forms_in(region) for region in self.region_places], self.names, self.region_names)
        if not self.nondivergence:
            refuse_poles(forms, self.domain, self.coordinates)
            refuse_lost_jumps(forms, self.domain, self.coordinates)
        if self.outside_divergences:
            refuse_lost_fluxes(
                self.equations, self.outside_divergences, self.unknowns, nondivergence=self.nondivergence
            )
        return forms

    def read(self, equation, where: str, region: int | None = None, *, needs_unknown: bool = True) -> Form:
        """An equation or an expression as terms, inside a region of `region_names`; `where` is for messages."""
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
        return self._conditions[self.region_places[0]]

    @cached_property
    def _conditions(self) -> dict[int | None, dict[str, tuple[Form, ...]]]:
        return boundary_conditions(self)

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
        return initial_states(self)

    @property
    def all_forms(self) -> list[Form]:
        """The equations and the boundary conditions of all parts, as terms."""
        conditions = [form for region in self.region_places for f in self.conditions_in(region).values() for form in f]
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
