"""The axes of a domain and the symbols that stand for them."""

from __future__ import annotations

import sympy

from parasol.errors import InputError
from parasol.expressions import parse

AXES = ("x", "y", "z")


class Coordinate(sympy.Symbol):
    """A coordinate that is not the x, y or z of its axis: a symbol that knows its axis, counted from 0.

    >>> Coordinate("r", 0), Coordinate("r", 0) == Coordinate("r", 1)
    (r, False)
    """

    axis: int

    def __new__(cls, name: str, axis: int):
        """Declare a coordinate."""
        self = sympy.Symbol.__xnew__(cls, name, real=True)
        self.axis = axis
        return self

    def __getnewargs_ex__(self):
        return (self.name, self.axis), {}

    def __getstate__(self):
        return None

    def _hashable_content(self):
        return (*super()._hashable_content(), self.axis)


def coordinate(name: str, axis: int) -> sympy.Symbol:
    """The symbol of an axis: x, y and z are ordinary symbols for the axes 0, 1 and 2."""
    return sympy.Symbol(name, real=True) if AXES[axis] == name else Coordinate(name, axis)


def axis_of(symbol: sympy.Basic) -> int | None:
    """The axis a symbol stands for: its own, else by its letter x, y, z; None for any other symbol."""
    if isinstance(symbol, Coordinate):
        return symbol.axis
    return AXES.index(str(symbol)) if str(symbol) in AXES else None


def axis_symbols(expression: sympy.Basic, dimension: int, what: str) -> list[sympy.Symbol]:
    """The symbols that stand for the axes in an expression, one for each; symbols of no axis are refused."""
    symbols: list = [sympy.Dummy() for _ in range(dimension)]
    used: dict[int, str] = {}
    for symbol in sorted(expression.free_symbols, key=str):
        axis = axis_of(symbol)
        if axis is None or axis >= dimension:
            raise InputError(
                f"{what} depends on {symbol}. Use only {', '.join(AXES[:dimension])}, or the symbols of ps.coordinates."
            )
        if axis in used:
            raise InputError(
                f"{what} has {used[axis]} and {symbol} for the same axis. Use the symbols of one ps.coordinates."
            )
        symbols[axis], used[axis] = symbol, str(symbol)
    return symbols


def parse_in_axes(text: str, dimension: int) -> sympy.Basic:
    """Read a formula in x, y, z, as many of them as there are axes."""
    return parse(text, {axis: sympy.Symbol(axis, real=True) for axis in AXES[:dimension]})
