"""SymPy expressions to the terms of a linear operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sympy
from sympy.core.function import AppliedUndef

from parasol.checks import ParasolError
from parasol.pde.parameters import FunctionParameter, Parameter
from parasol.space.kernels import MultiIndex

AXES = ("x", "y", "z")


def coordinates(names: str) -> tuple[sympy.Symbol, ...]:
    """Symbols for the coordinates, in the order of the axes.

    >>> x, y = coordinates("x y")
    """
    found = tuple(sympy.Symbol(name, real=True) for name in names.replace(",", " ").split())
    if not 1 <= len(found) <= 3 or len(set(found)) != len(found):
        raise ParasolError(f'coordinates("{names}") must name one, two or three different coordinates, like "x y".')
    return found


def unknown(name: str, *variables: sympy.Symbol) -> AppliedUndef:
    """The unknown function of the given coordinates, u(x, y): differentiate it with `u.diff(x, 2)`.

    >>> x, y = coordinates("x y")
    >>> unknown("u", x, y).diff(x, 2)
    Derivative(u(x, y), (x, 2))
    """
    if not variables:
        raise ParasolError(f'unknown("{name}") depends on nothing. Write unknown("{name}", x, y) with its coordinates.')
    return sympy.Function(name, real=True)(*variables)


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
    unknowns = expression.atoms(AppliedUndef)
    if not unknowns:
        raise ParasolError(
            f"the coordinates to differentiate {expression} by are not known. Name them: laplacian(f, x, y)."
        )
    return tuple(min(unknowns, key=str).args)


@dataclass(frozen=True)
class Term:
    """theta(mu) · coefficient(x) · field(x) · D^derivative u, or a source where `derivative` is None.

    Where the program could not separate them, theta is 1 and the coefficient depends on mu as well.
    """

    theta: sympy.Expr
    coefficient: sympy.Expr
    function: FunctionParameter | None
    derivative: MultiIndex | None

    @property
    def separated(self) -> bool:
        """Whether the coefficient is free of parameters."""
        return not self.coefficient.atoms(Parameter)


@dataclass(frozen=True)
class LinearForm:
    """The linear equation  sum of operator terms = sum of source terms."""

    operator: tuple[Term, ...]
    source: tuple[Term, ...]

    @property
    def affine(self) -> bool:
        """Whether every term is separated into a function of the parameters times one of the coordinates."""
        return all(term.separated for term in self.operator + self.source)


def linear_form(equation, u: AppliedUndef, *, where: str = "equation") -> LinearForm:
    """Split an equation, linear in `u` and its derivatives, into separated terms.

    >>> x, y = coordinates("x y")
    >>> u = unknown("u", x, y)
    >>> a = Parameter("a", 0, 1)
    >>> form = linear_form(sympy.Eq(-u.diff(x, 2) - a*u.diff(y, 2), sympy.sin(x)), u)
    >>> [(t.theta, t.coefficient, t.derivative) for t in form.operator]
    [(1, -1, (2, 0)), (a, -1, (0, 2))]
    """
    expression = _difference(equation, where).doit()
    variables = tuple(u.args)
    allowed = set(variables) | set(normal(*variables))
    jets: dict[MultiIndex, sympy.Symbol] = {}

    def jet(index: MultiIndex) -> sympy.Symbol:
        return jets.setdefault(index, sympy.Dummy("d" + "".join(map(str, index))))

    replaced = {}
    for derivative in expression.atoms(sympy.Derivative):
        if derivative.expr != u:
            raise ParasolError(
                f"the {where} differentiates {derivative.expr}, which is not the unknown {u.func}. Write its derivative out."
            )
        counts = dict(derivative.variable_count)
        replaced[derivative] = jet(tuple(int(counts.get(v, 0)) for v in variables))
    expression = expression.xreplace(replaced).xreplace({u: jet((0,) * len(variables))})
    jets = {index: symbol for index, symbol in jets.items() if expression.has(symbol)}
    _check_symbols(expression, allowed, set(jets.values()), u, where)
    if not jets:
        raise ParasolError(
            f"the {where} does not contain the unknown {u.func}. Write it with {u.func} and its derivatives."
        )

    operator: list[Term] = []
    for index, symbol in sorted(jets.items(), key=lambda item: (-sum(item[0]), tuple(-i for i in item[0]))):
        coefficient = sympy.expand(expression.diff(symbol))
        if coefficient.has(*jets.values()):
            raise ParasolError(
                f"the {where} is nonlinear in {u.func}. This is for the nonlinear solver; here {u.func} must enter linearly."
            )
        operator += [Term(*part, derivative=index) for part in _pieces(coefficient)]
    known = expression.xreplace(dict.fromkeys(jets.values(), sympy.S.Zero))
    source = [Term(*part, derivative=None) for part in _pieces(-known)]
    return LinearForm(tuple(operator), tuple(source))


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


def _check_symbols(expression, allowed, jets, u, where: str) -> None:
    others = [f for f in expression.atoms(AppliedUndef)]
    if others:
        raise ParasolError(
            f"the {where} contains {others[0]}, which is neither the unknown {u.func} nor known. Write it as a formula."
        )
    strange = [s for s in expression.free_symbols - allowed - jets if not isinstance(s, Parameter | FunctionParameter)]
    if strange:
        names = ", ".join(sorted(str(s) for s in strange))
        raise ParasolError(
            f"the {where} contains {names}, neither a coordinate of {u} nor a parameter. "
            f"Declare it with ps.parameters(...), or give it a number."
        )


def _pieces(expression: sympy.Expr) -> list[tuple[sympy.Expr, sympy.Expr, FunctionParameter | None]]:
    """Write an expression as a sum of (theta(mu), coefficient(x), function parameter or None), grouped by theta."""
    if expression == 0:
        return []
    for rewrite in (sympy.expand, lambda e: sympy.expand(e, trig=True)):
        found = _separate(rewrite(expression))
        if all(not coefficient.atoms(Parameter) for _, coefficient, _ in found):
            return found
    # a sum that could not be separated stays whole: partial separation would help nobody
    if expression.atoms(FunctionParameter):
        return found
    return [(sympy.S.One, expression, None)]


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
    return [(theta, coefficient, function) for (theta, function), coefficient in groups.items()]
