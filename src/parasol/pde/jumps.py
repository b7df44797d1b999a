"""Functions that can jump: where they stand in an expression, and their derivative away from the jumps."""

from __future__ import annotations

from collections.abc import Iterable

import sympy

# what SymPy differentiates as if it did not jump, to a delta function, or not at all
JUMPING = (
    sympy.Piecewise,
    sympy.sign,
    sympy.Heaviside,
    sympy.floor,
    sympy.ceiling,
    sympy.frac,
    sympy.Mod,
    sympy.atan2,
    sympy.arg,
    sympy.acot,
    sympy.DiracDelta,
)

INSTEAD = (
    "Use a coefficient that changes smoothly, such as (1 + tanh((x - s)/w))/2 over a width w that the nodes resolve"
)


def jumping_parts(expression: sympy.Basic, symbols: Iterable[sympy.Basic]) -> list[sympy.Expr]:
    """The parts of an expression that can jump where the symbols vary, a kink is none; in a fixed order.

    >>> x, a = sympy.symbols("x a", real=True)
    >>> jumping_parts(sympy.exp(sympy.sign(x)) + sympy.sign(a) + abs(x), [x])
    [sign(x)]
    """
    symbols = set(symbols)
    parts = [part for part in expression.atoms(*JUMPING) if not part.free_symbols.isdisjoint(symbols)]
    return sorted(parts, key=sympy.default_sort_key)


def slope(expression: sympy.Expr, symbol: sympy.Symbol) -> sympy.Expr:
    """The derivative away from jumps: what Newton's method needs where an expression jumps in the unknown.

    >>> u = sympy.Symbol("u", real=True)
    >>> slope(u * sympy.sign(u) + sympy.floor(u), u)
    sign(u)
    """
    derivative = expression.diff(symbol)
    steps = [
        part
        for part in derivative.atoms(sympy.DiracDelta, sympy.Derivative, sympy.Subs)
        if part.has(sympy.DiracDelta, sympy.floor, sympy.ceiling)
    ]
    return derivative.xreplace(dict.fromkeys(steps, sympy.S.Zero))
