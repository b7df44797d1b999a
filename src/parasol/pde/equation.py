"""SymPy expressions to terms: linear ones separated into theta(mu) times coefficient(x), the rest kept whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import sympy
from sympy.core.function import AppliedUndef

from parasol.checks import ParasolError
from parasol.expressions import as_function
from parasol.pde.parameters import FunctionParameter, Parameter
from parasol.space.geometry.domain import coordinate
from parasol.space.kernels import MultiIndex

_ROUNDING = 1e-9  # what a separated form may lose, as a part of the largest value


def coordinates(names: str) -> tuple[sympy.Symbol, ...]:
    """Symbols for the coordinates, in the order of the axes; each knows its axis, whatever its name.

    >>> x, y = coordinates("x y")
    """
    given = str(names).replace(",", " ").split()
    found = tuple(coordinate(name, axis) for axis, name in enumerate(given[:3])) if len(given) < 4 else ()
    if not 1 <= len(found) <= 3 or len(set(given)) != len(given) or not all(name.isidentifier() for name in given):
        raise ParasolError(f'coordinates("{names}") must name one, two or three different coordinates, like "x y".')
    return found


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
    >>> laplacian(unknown("u", x, t))
    Derivative(u(x, t), (x, 2))
    """
    return Time(name)


def unknown(name: str, *variables: sympy.Symbol) -> AppliedUndef:
    """The unknown function of the given coordinates, u(x, y): differentiate it with `u.diff(x, 2)`.

    >>> x, y = coordinates("x y")
    >>> unknown("u", x, y).diff(x, 2)
    Derivative(u(x, y), (x, 2))
    """
    if len(set(variables)) != len(variables) or not all(isinstance(v, sympy.Symbol) for v in variables):
        raise ParasolError(
            f'unknown("{name}") depends on {variables}. Give different coordinates: x, y = ps.coordinates("x y").'
        )
    if not variables:
        raise ParasolError(f'unknown("{name}") depends on nothing. Write unknown("{name}", x, y) with its coordinates.')
    return sympy.Function(name, real=True)(*variables)


def unknowns(names: str, *variables: sympy.Symbol) -> tuple[AppliedUndef, ...]:
    """Several unknown functions of the same coordinates, for systems of equations.

    >>> x, y = coordinates("x y")
    >>> unknowns("u v", x, y)
    (u(x, y), v(x, y))
    """
    return tuple(unknown(name, *variables) for name in names.replace(",", " ").split())


def normal(*variables: sympy.Symbol) -> tuple[sympy.Symbol, ...]:
    """Symbols for the components of the outward normal, for use in boundary data.

    >>> normal(*coordinates("x y"))
    (normal_x, normal_y)
    """
    return tuple(sympy.Symbol(f"normal_{v.name}", real=True) for v in variables)


def gradient(u: sympy.Expr, *variables: sympy.Symbol) -> tuple[sympy.Expr, ...]:
    """First derivatives along the coordinates (those of the unknown unless given)."""
    return tuple(u.diff(v) for v in variables or _variables(u))


def divergence(vector: Sequence[sympy.Expr], *variables: sympy.Symbol) -> sympy.Expr:
    """Sum of the derivatives of each component along its own coordinate.

    >>> x, y = coordinates("x y")
    >>> divergence((x**2, y), x, y)
    2*x + 1
    """
    return sympy.Add(*[component.diff(v) for component, v in zip(vector, variables, strict=True)])


def laplacian(u: sympy.Expr, *variables: sympy.Symbol) -> sympy.Expr:
    """Sum of the second derivatives along the coordinates (those of the unknown unless given).

    >>> x, y = coordinates("x y")
    >>> laplacian(x**2 + y**2, x, y)
    4
    """
    return sympy.Add(*[u.diff(v, 2) for v in variables or _variables(u)])


def _variables(expression: sympy.Expr) -> tuple[sympy.Symbol, ...]:
    found = expression.atoms(AppliedUndef)
    if not found:
        raise ParasolError(
            f"the coordinates to differentiate {expression} by are not known. Name them: laplacian(f, x, y)."
        )
    return tuple(v for v in min(found, key=str).args if not isinstance(v, Time))


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
    """The equation  sum of operator terms + nonlinear expression = sum of source terms."""

    operator: tuple[Term, ...]
    source: tuple[Term, ...]
    nonlinear: sympy.Expr = sympy.S.Zero
    jets: tuple[Jet, ...] = ()

    @property
    def linear(self) -> bool:
        """Whether the unknowns enter linearly."""
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

    @property
    def time_order(self) -> int:
        """Highest derivative in time."""
        return max((t.time_order for t in self.operator), default=0)

    @property
    def states_value(self) -> bool:
        """Whether it only speaks of values, not of slopes: a Dirichlet condition."""
        return self.order == 0

    @property
    def symbols(self) -> set[sympy.Basic]:
        """All symbols that occur, function parameters included."""
        out = set(self.nonlinear.free_symbols) - {jet.symbol for jet in self.jets}
        for term in self.operator + self.source:
            out |= term.theta.free_symbols | term.coefficient.free_symbols
            out |= {term.function} if term.function is not None else set()
        return out


def read_equation(equation, unknowns: AppliedUndef | Sequence[AppliedUndef], *, where: str = "equation") -> Form:
    """Split an equation into separated linear terms, source terms, and what is nonlinear in the unknowns.

    >>> x, y = coordinates("x y")
    >>> u = unknown("u", x, y)
    >>> a = Parameter("a", 0, 1)
    >>> form = read_equation(sympy.Eq(-u.diff(x, 2) - a*u.diff(y, 2), sympy.sin(x)), u)
    >>> [(t.theta, t.coefficient, t.derivative) for t in form.operator]
    [(1, -1, (2, 0)), (a, -1, (0, 2))]
    """
    unknowns = tuple(unknowns) if isinstance(unknowns, Sequence) else (unknowns,)
    variables = tuple(unknowns[0].args)
    places = tuple(v for v in variables if not isinstance(v, Time))
    names = ", ".join(str(u.func) for u in unknowns)
    expression = _difference(equation, where).doit()
    if expression.has(sympy.I, sympy.zoo, sympy.oo, sympy.nan):
        raise ParasolError(
            f"the {where} contains imaginary or infinite numbers. Only real, finite ones are understood."
        )
    jets: dict[tuple[int, MultiIndex, int], sympy.Symbol] = {}

    def jet(u: AppliedUndef, counts: dict) -> sympy.Symbol:
        index = tuple(int(counts.get(v, 0)) for v in places)
        in_time = sum(int(n) for v, n in counts.items() if isinstance(v, Time))
        return jets.setdefault((unknowns.index(u), index, in_time), sympy.Dummy(f"{u.func}{index}"))

    replaced = {}
    for derivative in expression.atoms(sympy.Derivative):
        if derivative.expr not in unknowns:
            raise ParasolError(
                f"the {where} differentiates {derivative.expr}, which is not an unknown ({names}). Write its derivative out."
            )
        replaced[derivative] = jet(derivative.expr, dict(derivative.variable_count))
    expression = expression.xreplace(replaced).xreplace({u: jet(u, {}) for u in unknowns})
    jets = {key: symbol for key, symbol in jets.items() if expression.has(symbol)}
    _check_symbols(expression, {*variables, *normal(*places)}, set(jets.values()), names, where)
    if not jets:
        raise ParasolError(f"the {where} does not contain the unknown {names}. Write it with {names} and derivatives.")

    linear: dict[tuple[int, MultiIndex, int], sympy.Expr] = {}
    known, nonlinear = sympy.S.Zero, sympy.S.Zero
    key_of = {symbol: key for key, symbol in jets.items()}
    for term in sympy.Add.make_args(
        _multiplied_out(expression, lambda part: not key_of.keys().isdisjoint(part.free_symbols))
    ):
        inside = [symbol for symbol in term.free_symbols if symbol in key_of]
        slope = term.diff(inside[0]) if len(inside) == 1 else None
        if not inside:
            known += term
        elif slope is not None and not slope.has(inside[0]):
            linear[key_of[inside[0]]] = linear.get(key_of[inside[0]], sympy.S.Zero) + slope
        elif any(key_of[symbol][2] for symbol in inside):
            raise ParasolError(f"the {where} is nonlinear in a time derivative. Solve it for that derivative first.")
        else:
            nonlinear += term
    operator = [
        Term(*part, derivative=index, unknown=u, time_order=in_time)
        for (u, index, in_time), coefficient in sorted(linear.items(), key=_rank)
        for part in _pieces(coefficient)
    ]
    source = [Term(*part, derivative=None) for part in _pieces(-known)]
    used = tuple(Jet(*key[:2], symbol) for key, symbol in sorted(jets.items(), key=_rank) if nonlinear.has(symbol))
    return Form(tuple(operator), tuple(source), nonlinear, used)


def _rank(item):
    unknown, index, in_time = item[0]
    return (unknown, -in_time, -sum(index), tuple(-i for i in index))


def _difference(equation, where: str) -> sympy.Expr:
    if isinstance(equation, sympy.Equality):
        return equation.lhs - equation.rhs
    if equation is sympy.true or equation is sympy.false or isinstance(equation, bool):
        raise ParasolError(
            f"the {where} is simply {equation}: both sides are known. Write Eq(left, right) with the unknown in it."
        )
    if isinstance(equation, sympy.Expr):
        return equation
    raise ParasolError(f"the {where} is {equation!r}. Write ps.Eq(left side, right side).")


def _check_symbols(expression, allowed, jets, names: str, where: str) -> None:
    others = sorted(expression.atoms(AppliedUndef), key=str)
    if others:
        raise ParasolError(
            f"the {where} contains {others[0]}, which is neither an unknown ({names}) nor known. Write it as a formula."
        )
    strange = [s for s in expression.free_symbols - allowed - jets if not isinstance(s, Parameter | FunctionParameter)]
    if strange:
        listed = ", ".join(sorted(str(s) for s in strange))
        raise ParasolError(
            f"the {where} contains {listed}, neither a coordinate of {names} nor a parameter. "
            f"Declare it with ps.parameters(...), or give it a number."
        )


def _pieces(expression: sympy.Expr) -> list[tuple[sympy.Expr, sympy.Expr, FunctionParameter | None]]:
    """Write an expression as a sum of (theta(mu), coefficient(x), function parameter or None), grouped by theta."""
    for split in (lambda part: part, _split):
        found = _separate(_multiplied_out(expression, _has_parameters, split, _may_open))
        if all(not coefficient.atoms(Parameter) for _, coefficient, _ in found):
            return found
    # a sum that could not be separated stays whole, as it was written: partial separation would help nobody
    if expression.atoms(FunctionParameter):
        return _separate(_multiplied_out(expression, lambda part: bool(part.atoms(FunctionParameter))))
    return [(sympy.S.One, expression, None)]


def _multiplied_out(
    expression: sympy.Expr,
    opens: Callable[[sympy.Expr], bool],
    rewrite: Callable[[sympy.Expr], sympy.Expr] = lambda part: part,
    may_open: Callable[[sympy.Expr], bool] = lambda part: True,
) -> sympy.Expr:
    """Multiply out sums that contain what `opens`; all else, and every function's argument, stays as it was written.

    `sympy.expand` would turn exp(-(x - a)**2/w**2) into a product whose factors overflow.
    """
    held: dict[sympy.Expr, sympy.Dummy] = {}

    def hold(part: sympy.Expr) -> sympy.Expr:
        return part if part.is_Atom else held.setdefault(part, sympy.Dummy())

    def hide(part: sympy.Expr) -> sympy.Expr:
        if not opens(part):
            return hold(part)
        if part.is_Add or part.is_Mul:
            return part.func(*[hide(p) for p in part.args])
        if part.is_Pow and part.exp.is_Integer and part.exp > 1 and may_open(part):  # type: ignore[operator]
            return hide(part.base) ** part.exp
        other = rewrite(part)
        return hold(part) if other == part else hide(other)

    shown = sympy.expand(hide(expression))
    return shown.xreplace({dummy: part for part, dummy in held.items()})


def _has_parameters(part: sympy.Expr) -> bool:
    return bool(part.atoms(Parameter, FunctionParameter))


def _mixed(part: sympy.Expr) -> bool:
    """Whether parameters and other symbols occur in it."""
    kinds = {isinstance(s, Parameter) for s in part.free_symbols}
    return len(kinds) == 2


def _may_open(power: sympy.Expr) -> bool:
    return _mixed(power) and _trusted(power, sympy.expand(power, deep=False))


def _split(part: sympy.Expr) -> sympy.Expr:
    """A function of p(mu) + q(x) by its addition theorem, where there is one that keeps the digits."""
    power = part.is_Pow and part.args[0].is_positive and part.args[0].is_number
    known = isinstance(part, sympy.exp | sympy.sin | sympy.cos | sympy.sinh | sympy.cosh)
    if not (power or known) or not _mixed(part) or part.atoms(FunctionParameter):
        return part
    terms = sympy.Add.make_args(_multiplied_out(part.args[-1], _has_parameters, may_open=_may_open))
    p = sympy.Add(*[t for t in terms if t.free_symbols and all(isinstance(s, Parameter) for s in t.free_symbols)])
    q = sympy.Add(*terms) - p
    if p == 0 or q.atoms(Parameter):
        return part
    if isinstance(part, sympy.sin | sympy.cos):
        a, b = (sympy.sin, sympy.cos) if isinstance(part, sympy.sin) else (sympy.cos, sympy.sin)
        sign = 1 if isinstance(part, sympy.sin) else -1
        other = a(p) * sympy.cos(q) + sign * b(p) * sympy.sin(q)
    elif isinstance(part, sympy.sinh | sympy.cosh):
        a, b = (sympy.sinh, sympy.cosh) if isinstance(part, sympy.sinh) else (sympy.cosh, sympy.sinh)
        other = a(p) * sympy.cosh(q) + b(p) * sympy.sinh(q)
    else:
        base = part.args[0] if power else sympy.E
        other = base**p * base**q
    return other if _trusted(part, other) else part


def _trusted(part: sympy.Expr, other: sympy.Expr) -> bool:
    """Whether two forms agree in floating point, for parameters in their ranges and the rest in these or in [-1, 1].

    The domain is not known here; what cancels or overflows does so where coordinates are as large as parameters.
    """
    symbols = sorted(part.free_symbols, key=str)
    ranges = [(s.low, s.high) for s in symbols if isinstance(s, Parameter)]
    rng = np.random.default_rng(0)
    forms = [as_function(form, symbols) for form in (part, other)]
    for low, high in [(-1.0, 1.0), *ranges]:
        columns = [rng.uniform(*((s.low, s.high) if isinstance(s, Parameter) else (low, high)), 64) for s in symbols]
        written, rewritten = (form(*columns) for form in forms)
        known = np.isfinite(written)
        scale = np.max(np.abs(written[known]), initial=0.0)
        if not np.all(np.abs(rewritten[known] - written[known]) <= _ROUNDING * scale):  # nor what is not finite
            return False
    return True


def _separate(expression: sympy.Expr):
    groups: dict[tuple[sympy.Expr, FunctionParameter | None], sympy.Expr] = {}
    for term in sympy.Add.make_args(expression):
        theta, coefficient, function = sympy.S.One, sympy.S.One, None
        for factor in sympy.Mul.make_args(term):
            symbols = factor.free_symbols
            if isinstance(factor, FunctionParameter) and function is None:
                function = factor
            elif factor.atoms(FunctionParameter):
                raise ParasolError(
                    f"the function parameter in {term} enters nonlinearly. Only its multiples are understood."
                )
            elif symbols and all(isinstance(s, Parameter) for s in symbols):
                theta *= factor
            else:
                coefficient *= factor
        key = (theta, function)
        groups[key] = groups.get(key, sympy.S.Zero) + coefficient
    return [(theta, c, function) for (theta, function), c in groups.items() if sympy.expand(c) != 0]
