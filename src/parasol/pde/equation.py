"""SymPy expressions to terms: linear ones separated into theta(mu) times coefficient(x), the rest kept whole."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import sympy
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.core.function import AppliedUndef

from parasol.errors import InputError
from parasol.expressions import Symbols
from parasol.pde.jumps import DIVERGENCE, JUMPING, jumping_parts, slope
from parasol.pde.parameters import FunctionParameter, Parameter
from parasol.pde.regions import Region
from parasol.pde.separation import Ranges, multiplied_out, separated
from parasol.space.geometry.axes import coordinate
from parasol.space.kernels import MultiIndex

_declared = itertools.count()
_Key = tuple[int, MultiIndex, int]  # unknown, derivative in space, order in time


def coordinates(names: str) -> tuple[sympy.Symbol, ...]:
    """Symbols for the coordinates, in the order of the axes; each knows its axis, whatever its name.

    >>> x, y = coordinates("x y")
    """
    given = str(names).replace(",", " ").split()
    symbols = Symbols([coordinate(name, axis) for axis, name in enumerate(given[:3])], "coordinates")
    if not 1 <= len(given) <= 3 or len(set(given)) != len(given) or not all(name.isidentifier() for name in given):
        raise InputError(f'coordinates("{names}") must name one, two or three different coordinates, like "x y".')
    return symbols


class Time(sympy.Symbol):
    """The symbol of time; derivatives by it are evolution, not space."""

    def __new__(cls, name: str = "t"):
        """Declare a time."""
        return sympy.Symbol.__xnew__(cls, name, real=True)

    def __getnewargs_ex__(self):
        return (self.name,), {}

    def __getstate__(self):
        return None


def time(name: str = "t") -> Time:
    """The symbol of time, for unknowns that evolve: `u = ps.unknown("u", x, y, t)`.

    >>> x, t = *coordinates("x"), time()
    >>> unknown("u", x, t).diff(t)
    Derivative(u(x, t), t)
    """
    return Time(name)


def unknown(name: str, *variables: sympy.Symbol) -> AppliedUndef:
    """The unknown function of the given coordinates, u(x, y): differentiate it with `u.diff(x, 2)`.

    >>> x, y = coordinates("x y")
    >>> unknown("u", x, y).diff(x, 2)
    Derivative(u(x, y), (x, 2))
    """
    for given in variables:
        if isinstance(given, Symbols):
            given.unpack_first()
    if len(set(variables)) != len(variables) or not all(isinstance(v, sympy.Symbol) for v in variables):
        raise InputError(
            f'unknown("{name}") depends on {variables}. Give different coordinates: x, y = ps.coordinates("x y").'
        )
    if not variables:
        raise InputError(f'unknown("{name}") depends on nothing. Write unknown("{name}", x, y) with its coordinates.')
    if not isinstance(name, str) or not name.isidentifier():
        raise InputError(f"the name of an unknown is {name!r}. Use one plain name: unknown('u', x, y).")
    # the rank keeps the order of declaration, which SymPy would forget: it sorts by name
    return sympy.Function(name, real=True, rank=next(_declared))(*variables)


def unknowns(names: str, *variables: sympy.Symbol) -> tuple[AppliedUndef, ...]:
    """Several unknown functions of the same coordinates, for systems of equations.

    >>> x, y = coordinates("x y")
    >>> unknowns("u v", x, y)
    (u(x, y), v(x, y))
    """
    return Symbols((unknown(name, *variables) for name in names.replace(",", " ").split()), "unknowns")


def find_unknowns(equations: Sequence[sympy.Basic]) -> tuple[AppliedUndef, ...]:
    """The unknowns of equations in the order in which they were declared; one declared again is still the same.

    >>> x, y = coordinates("x y")
    >>> b, a = unknowns("b a", x, y)
    >>> find_unknowns([a + b, unknown("b", x, y).diff(x)])
    (b(x, y), a(x, y))
    """
    occurring = set().union(*[equation.atoms(AppliedUndef) for equation in equations])
    first: dict[tuple, AppliedUndef] = {}
    for u in sorted(occurring, key=lambda u: (getattr(u.func, "rank", -1), str(u))):
        first.setdefault((str(u.func), u.args), u)
    return tuple(first.values())


def with_unknowns(expression: sympy.Basic, unknowns: Sequence[AppliedUndef]) -> sympy.Basic:
    """The expression in these unknowns, where it has others of the same name and coordinates."""
    known = {(str(u.func), u.args): u for u in unknowns}
    others = {u: known.get((str(u.func), u.args), u) for u in expression.atoms(AppliedUndef)}
    return expression.xreplace({u: v for u, v in others.items() if u != v})


def normal(*variables: sympy.Symbol) -> tuple[sympy.Symbol, ...]:
    """Symbols for the components of the outward normal, for use in boundary data.

    >>> normal(*coordinates("x y"))
    (normal_x, normal_y)
    """
    return tuple(sympy.Symbol(f"normal_{v.name}", real=True) for v in variables)


@dataclass(frozen=True)
class Term:
    """theta(mu) · coefficient(x, t) · function(x) · D^derivative ∂t^time_order u, or a source where `derivative` is None.

    `unknown` counts the unknowns of a system. Where the program could not separate them, theta is 1 and the coefficient
    depends on mu as well.
    """

    theta: sympy.Expr
    coefficient: sympy.Expr
    function: FunctionParameter | None
    derivative: MultiIndex | None
    unknown: int = 0
    time_order: int = 0

    @property
    def separated(self) -> bool:
        """Whether the coefficient is free of parameters and of time."""
        return not self.coefficient.atoms(Parameter, Time)


@dataclass(frozen=True)
class Jet:
    """A derivative of an unknown inside a nonlinear expression, with the symbol that stands for it there."""

    unknown: int
    derivative: MultiIndex
    symbol: sympy.Symbol


@dataclass(frozen=True)
class Form:
    """The equation  sum of operator terms + nonlinear expression = sum of source terms.

    A term that is linear but has a coefficient that depends on time stands in the nonlinear expression as well, since
    the matrices of the operator are fixed in time.
    """

    operator: tuple[Term, ...]
    source: tuple[Term, ...]
    nonlinear: sympy.Expr = sympy.S.Zero
    jets: tuple[Jet, ...] = ()

    @property
    def linear(self) -> bool:
        """Whether the unknowns enter linearly, with coefficients that do not depend on time."""
        return not self.jets

    @property
    def affine(self) -> bool:
        """Whether it is linear and every term is a function of the parameters times one of the coordinates.

        A function parameter may be a source or boundary value, which is linear in its values, not a coefficient.
        """
        known = all(not term.coefficient.atoms(Parameter) for term in self.operator + self.source)
        return self.linear and known and all(term.function is None for term in self.operator)

    @property
    def order(self) -> int:
        """Highest derivative in space."""
        return max([sum(t.derivative or ()) for t in self.operator] + [sum(j.derivative) for j in self.jets], default=0)

    def order_of(self, unknown: int) -> int:
        """Highest derivative in space of one unknown."""
        linear = [sum(t.derivative or ()) for t in self.operator if t.unknown == unknown]
        return max(linear + [sum(j.derivative) for j in self.jets if j.unknown == unknown], default=0)

    @property
    def time_order(self) -> int:
        """Highest derivative in time."""
        return max((t.time_order for t in self.operator), default=0)

    @property
    def leading_moves(self) -> bool:
        """Whether the coefficient of a second derivative depends on time."""
        return any(sum(jet.derivative) > 1 and self.slope(jet).atoms(Time) for jet in self.jets)

    @property
    def states_value(self) -> bool:
        """Whether it contains values alone, no slopes: a Dirichlet condition."""
        return self.order == 0

    @property
    def symbols(self) -> set[sympy.Basic]:
        """All symbols that occur, function parameters included."""
        out = set(self.nonlinear.free_symbols) - {jet.symbol for jet in self.jets}
        for term in self.operator + self.source:
            out |= term.theta.free_symbols | term.coefficient.free_symbols
            out |= {term.function} if term.function is not None else set()
        return out

    def slope(self, jet: Jet) -> sympy.Expr:
        """The derivative of the nonlinear expression by one of its jets, away from jumps."""
        return slope(self.nonlinear, jet.symbol)


def enters_linearly(form: Form) -> bool:
    """Whether the unknowns enter linearly, with coefficients that may depend on time."""
    return _linear_parts(form.nonlinear, {jet.symbol for jet in form.jets}) is not None


def read_equation(
    equation,
    unknowns: AppliedUndef | Sequence[AppliedUndef],
    *,
    where: str = "equation",
    ranges: Ranges | None = None,
    nondivergence: bool = False,
    needs_unknown: bool = True,
) -> Form:
    """Split an equation into separated linear terms, source terms, and what is nonlinear in the unknowns.

    `ranges` are those of the coordinates, where they are known. `nondivergence` allows a coefficient of a second
    derivative to jump; else it is refused, since a flux with that coefficient has lost its condition at the jump.
    `needs_unknown` refuses what contains no unknown.

    >>> x, y = coordinates("x y")
    >>> u = unknown("u", x, y)
    >>> a = Parameter("a", 0, 1)
    >>> form = read_equation(sympy.Eq(-u.diff(x, 2) - a*u.diff(y, 2), sympy.sin(x)), u)
    >>> [(t.theta, t.coefficient, t.derivative) for t in form.operator]
    [(1, -1, (2, 0)), (a, -1, (0, 2))]
    """
    unknowns = tuple(unknowns) if isinstance(unknowns, Sequence) else (unknowns,)
    expression = _evaluated(with_unknowns(difference(equation, where), unknowns), where)
    if expression.has(sympy.I, sympy.zoo, sympy.oo, sympy.nan):
        raise InputError(f"the {where} contains imaginary or infinite numbers. Only real, finite ones are understood.")
    expression, key_of = _with_symbols(expression, unknowns, where)
    if needs_unknown and not key_of:
        names = ", ".join(str(u.func) for u in unknowns)
        raise InputError(f"the {where} does not contain the unknown {names}. Write it with {names} and derivatives.")
    linear: dict[_Key, sympy.Expr] = {}
    known, nonlinear = sympy.S.Zero, sympy.S.Zero
    of_second: list[sympy.Expr] = []  # nonlinear terms with second derivatives, then their coefficients in linear ones
    for term in sympy.Add.make_args(
        multiplied_out(expression, lambda part: not key_of.keys().isdisjoint(part.free_symbols))
    ):
        parts = _linear_parts(term, key_of.keys())
        if parts is None:
            inside = [key_of[symbol] for symbol in term.free_symbols if symbol in key_of]
            if any(in_time for _, _, in_time in inside):
                raise InputError(f"the {where} is nonlinear in a time derivative. Solve it for that derivative first.")
            if any(sum(index) > 1 for _, index, _ in inside):
                of_second.append(term)
            nonlinear += term
            continue
        known += parts.pop(sympy.S.One, sympy.S.Zero)
        for symbol, coefficient in parts.items():
            fixed, moving = _apart_in_time(coefficient) if not key_of[symbol][2] else (coefficient, sympy.S.Zero)
            linear[key_of[symbol]] = linear.get(key_of[symbol], sympy.S.Zero) + fixed
            nonlinear += moving * symbol
            of_second += [moving] if sum(key_of[symbol][1]) > 1 else []
    of_second += [coefficient for (_, index, _), coefficient in linear.items() if sum(index) > 1]
    if not nondivergence:
        _refuse_jumps(of_second, unknowns, key_of, where)
    operator = [
        Term(*part, derivative=index, unknown=u, time_order=in_time)
        for (u, index, in_time), coefficient in sorted(linear.items(), key=lambda item: _rank(item[0]))
        for part in separated(coefficient, ranges)
    ]
    source = [Term(*part, derivative=None) for part in separated(-known, ranges)]
    used = sorted((symbol for symbol in key_of if nonlinear.has(symbol)), key=lambda symbol: _rank(key_of[symbol]))
    return Form(tuple(operator), tuple(source), nonlinear, tuple(Jet(*key_of[s][:2], s) for s in used))


def _rank(key: _Key):
    unknown, index, in_time = key
    return (unknown, -in_time, -sum(index), tuple(-i for i in index))


def _with_symbols(
    expression: sympy.Expr, unknowns: tuple[AppliedUndef, ...], where: str
) -> tuple[sympy.Expr, dict[sympy.Symbol, _Key]]:
    """The expression with a symbol for every derivative of an unknown, and what these symbols stand for."""
    names, places = ", ".join(str(u.func) for u in unknowns), _places(unknowns)
    keys: dict[sympy.Expr, _Key] = {u: (j, (0,) * len(places), 0) for j, u in enumerate(unknowns)}
    for derivative in expression.atoms(sympy.Derivative):
        if derivative.expr not in unknowns:
            raise InputError(
                f"the {where} differentiates {derivative.expr}, which is not an unknown ({names}). Write its derivative out."
            )
        counts = dict(derivative.variable_count)
        in_time = sum(int(n) for v, n in counts.items() if isinstance(v, Time))
        keys[derivative] = unknowns.index(derivative.expr), tuple(int(counts.get(v, 0)) for v in places), in_time
    # real, since SymPy does not know that derivatives of u are, and then |u_x| has real and imaginary parts
    symbols = {key: sympy.Dummy(f"{unknowns[key[0]].func}{key[1]}", real=True) for key in keys.values()}
    expression = expression.xreplace({part: symbols[key] for part, key in keys.items()})
    key_of = {symbol: key for key, symbol in symbols.items() if expression.has(symbol)}
    _check_symbols(expression, {*unknowns[0].args, *normal(*places)}, key_of.keys(), names, where)
    return expression, key_of


def _places(unknowns: tuple[AppliedUndef, ...]) -> tuple[sympy.Symbol, ...]:
    """The coordinates of the unknowns without the time."""
    return tuple(v for v in unknowns[0].args if not isinstance(v, Time))


def _refuse_jumps(
    of_second: list[sympy.Expr], unknowns: tuple[AppliedUndef, ...], key_of: dict[sympy.Symbol, _Key], where: str
) -> None:
    """Refuse coefficients of second derivatives that jump in the coordinates or the unknowns."""
    places = _places(unknowns)
    slopes = {symbol for symbol, (_, index, _) in key_of.items() if sum(index)}
    for part in jumping_parts(sympy.Tuple(*of_second), {*places, *key_of}):
        # a flux that is continuous but has a kink in u_x, as with |u_x|, leaves sign(u_x) behind; one that jumps in
        # u_x by sign or Heaviside leaves a DiracDelta, which was refused
        if not isinstance(part, sympy.sign | sympy.Heaviside) or part.free_symbols.isdisjoint(slopes):
            written = {s: unknowns[u].diff(*zip(places, index, strict=True)) for s, (u, index, _) in key_of.items()}
            raise InputError(
                f"the {where} has a second derivative times {part.xreplace(written)}, a coefficient that jumps: if it is "
                "a material, the condition that the flux is continuous at the interface would be lost (kinks by Abs, Min "
                f"and Max are fine). {DIVERGENCE}; or say nondivergence=True if no flux is meant and the equation holds as "
                "it stands."
            )


def _linear_parts(expression: sympy.Expr, symbols: Collection[sympy.Basic]) -> dict[sympy.Basic, sympy.Expr] | None:
    """The coefficient of each symbol, and under 1 what is free of them, if the expression is linear in them; else None.

    It goes by the structure, not by derivatives: that of Piecewise((10, u > 0.5), (0, True)) by u is 0.
    """
    if expression.free_symbols.isdisjoint(symbols):
        return {sympy.S.One: expression}
    if expression in symbols:
        return {expression: sympy.S.One}
    if expression.is_Add:
        inner = [_linear_parts(part, symbols) for part in expression.args]
        join = sympy.Add
    elif expression.is_Mul:
        within = [f for f in expression.args if not f.free_symbols.isdisjoint(symbols)]
        inner = [_linear_parts(within[0], symbols)] if len(within) == 1 else [None]
        outer = sympy.Mul(*[f for f in expression.args if f is not within[0]])
        join = lambda coefficient: outer * coefficient  # noqa: E731
    elif isinstance(expression, sympy.Piecewise) and all(
        condition.free_symbols.isdisjoint(symbols) for _, condition in expression.args
    ):
        inner = [_linear_parts(piece, symbols) for piece, _ in expression.args]
        conditions = [condition for _, condition in expression.args]
        join = lambda *pieces: sympy.Piecewise(*zip(pieces, conditions, strict=True))  # noqa: E731
    else:
        return None
    if any(part is None for part in inner):
        return None
    keys = dict.fromkeys(key for part in inner for key in part)  # type: ignore[union-attr]
    return {key: join(*[part.get(key, sympy.S.Zero) for part in inner]) for key in keys}  # type: ignore[union-attr]


def _apart_in_time(coefficient: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr]:
    """The summands that do not depend on time, and those that do."""
    if not coefficient.atoms(Time):
        return coefficient, sympy.S.Zero
    terms = sympy.Add.make_args(multiplied_out(coefficient, lambda part: bool(part.atoms(Time))))
    moving = sympy.Add(*[term for term in terms if term.atoms(Time)])
    return sympy.Add(*terms) - moving, moving


def _evaluated(expression: sympy.Expr, where: str) -> sympy.Expr:
    """The expression with all derivatives carried out; those of functions that jump are refused, as are point loads."""
    _refuse_derivatives(expression, where)
    evaluated = expression.doit()
    if evaluated.has(sympy.DiracDelta):
        raise InputError(
            f"the {where} contains {min(evaluated.atoms(sympy.DiracDelta), key=str)}, a load on a point or interface, or "
            f"a coefficient that jumps and was differentiated: no node would see it, and a flux condition at the "
            f"interface of two materials would be lost. Spread it smoothly over a width that the nodes resolve."
        )
    for part in evaluated.atoms(ExprWithLimits, sympy.Subs, sympy.Limit):
        if part.has(AppliedUndef):
            raise InputError(
                f"the {where} contains {part}, which takes the unknown at other points. Only its values and derivatives at "
                "the point where the equation holds are understood."
            )
    # a remainder by floor, which NumPy and Newton's method can do
    return evaluated.replace(sympy.frac, lambda z: z - sympy.floor(z)).replace(
        sympy.Mod, lambda p, q: p - q * sympy.floor(p / q)
    )


def _refuse_derivatives(expression: sympy.Expr, where: str) -> None:
    """Refuse derivatives, still to be carried out, of functions that jump."""
    for derivative in expression.atoms(sympy.Derivative):
        jumps = jumping_parts(derivative.expr, set().union(*[v.free_symbols for v in derivative.variables]))
        if jumps:
            # an unevaluated derivative may show a symbol of SymPy's own
            written = [p for p in expression.atoms(*JUMPING) if p.func == jumps[0].func and not p.atoms(sympy.Dummy)]
            raise InputError(
                f"the {where} differentiates {min(written or jumps, key=str)}, a function that jumps: the condition that "
                f"the flux is continuous at the interface of two materials would be lost. {DIVERGENCE}."
            )


def difference(equation, where: str = "equation") -> sympy.Expr:
    """Left side minus right side, or one line that says why it is no equation."""
    if isinstance(equation, sympy.Equality) and all(isinstance(side, sympy.Expr) for side in equation.args):
        return equation.lhs - equation.rhs
    if isinstance(equation, bool):
        raise InputError(
            f"the {where} is {equation}: Python compared two sides with == or another sign. Write ps.Eq(left, right)."
        )
    if equation is sympy.true or equation is sympy.false:
        raise InputError(
            f"the {where} is simply {equation}, whatever the unknown is. Write ps.Eq(left, right) with the unknown in it."
        )
    if isinstance(equation, sympy.Expr):
        return equation
    if isinstance(equation, str):
        raise InputError(f"the {where} is the text {equation!r}. Write ps.Eq(left side, right side) with symbols.")
    raise InputError(f"the {where} is {equation!r}. Write ps.Eq(left side, right side).")


def _check_symbols(expression, allowed, jets, names: str, where: str) -> None:
    others = sorted(expression.atoms(AppliedUndef), key=str)
    if others:
        raise InputError(
            f"the {where} contains {others[0]}, which is neither an unknown ({names}) nor known. Write it as a formula."
        )
    known = Parameter | FunctionParameter | Region
    strange = [s for s in expression.free_symbols - allowed - set(jets) if not isinstance(s, known)]
    if strange:
        listed = ", ".join(sorted(str(s) for s in strange))
        raise InputError(
            f"the {where} contains {listed}, neither a coordinate of {names} nor a parameter. "
            f"Declare it with ps.parameters(...), or give it a number."
        )
