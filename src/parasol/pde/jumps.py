"""Functions that can jump: where they stand in an expression, and their derivative away from the jumps."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

import numpy as np
import sympy
from sympy.core.relational import Relational

_ROUNDING = 1e-9
_HUGE = 1e100
_CUTS = 33  # of a segment
_HALVINGS = 40

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
DIVERGENCE = "Write ps.divergence(k*ps.gradient(u)), whose flux is kept: its pieces become regions of the domain"


def jumping_parts(expression: sympy.Basic, symbols: Iterable[sympy.Basic]) -> list[sympy.Expr]:
    """The parts of an expression that can jump where the symbols vary, in a fixed order; a kink by Abs is no jump.

    >>> x, a = sympy.symbols("x a", real=True)
    >>> jumping_parts(sympy.exp(sympy.sign(x)) + sympy.sign(a) + abs(x), [x])
    [sign(x)]
    """
    symbols = set(symbols)
    parts = [part for part in expression.atoms(*JUMPING) if not _switches(part).isdisjoint(symbols)]
    return sorted(parts, key=sympy.default_sort_key)


def _switches(part: sympy.Expr) -> set[sympy.Basic]:
    """The symbols whose change can make it jump."""
    if not isinstance(part, sympy.Piecewise):
        return part.free_symbols
    switches = set().union(*[condition.free_symbols for _, condition in part.args])
    return set() if len(switches) == 1 and _joined(part, *switches) else switches


def _joined(part: sympy.Piecewise, s: sympy.Symbol) -> bool:
    """Whether pieces over intervals of s join with their first derivatives, as those of a spline do.

    Values alone would not do: (k u).diff(x, 2) has lost the kinks of a Piecewise k, where those of Abs leave a DiracDelta.
    """
    ends = set()
    for relation in set().union(*[condition.atoms(Relational) for _, condition in part.args]):
        gap = relation.lhs - relation.rhs
        rate = gap.diff(s)
        if not (rate.is_number and rate.is_nonzero):
            return False
        ends.add(float(-gap.subs(s, 0) / rate))
    cuts = sorted(ends)
    places = [cuts[0] - 1, *[(a + b) / 2 for a, b in itertools.pairwise(cuts)], cuts[-1] + 1]
    pieces = [next((e for e, condition in part.args if condition.subs(s, at) == True), None) for at in places]  # noqa: E712
    for cut, (left, right) in zip(cuts, itertools.pairwise(pieces), strict=True):
        for order in range(2 if left is not None and right is not None else 0):
            one, other = (sympy.expand(e.diff(s, order).subs(s, cut)) for e in (left, right))  # type: ignore[union-attr]
            gap, size = sympy.expand(one - other), abs(one) + abs(other) + 1
            if gap != 0 and not (gap.is_number and abs(gap) <= _ROUNDING * (size if size.is_number else 1)):
                return False
    return True


def jumps_between(function: Callable[[np.ndarray], np.ndarray], starts: np.ndarray, ends: np.ndarray) -> bool:
    """Whether a function of points (n, dimension) jumps somewhere on the segments from `starts` to `ends`.

    On each segment the steepest of some intervals is halved again and again: where the function is continuous, the
    difference of its values at both ends vanishes. It sees jumps that no part of a formula shows, as that of |x|/x.

    >>> left, right = np.full((9, 1), -1.0), np.linspace(0.5, 1.0, 9)[:, None]
    >>> [jumps_between(f, left, right) for f in (lambda p: np.sign(p[:, 0]), lambda p: np.tanh(1e4 * p[:, 0]))]
    [True, False]
    """

    def at(shares: np.ndarray) -> np.ndarray:
        points = starts[:, None] + shares[..., None] * (ends - starts)[:, None]
        values = function(points.reshape(-1, points.shape[-1])).reshape(shares.shape)
        return np.nan_to_num(values, nan=0.0, posinf=_HUGE, neginf=-_HUGE)

    if not len(starts):
        return False
    shares = np.tile(np.linspace(0, 1, _CUTS), (len(starts), 1))
    values = at(shares)
    steepest = np.argmax(np.abs(np.diff(values, axis=1)), axis=1)[:, None] + np.arange(2)
    (low, high), (below, above) = (np.take_along_axis(a, steepest, axis=1).T for a in (shares, values))
    rise = np.abs(above - below)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        value = at(middle[:, None])[:, 0]
        first = np.abs(value - below) >= np.abs(above - value)
        low, below = np.where(first, low, middle), np.where(first, below, value)
        high, above = np.where(first, middle, high), np.where(first, value, above)
    return bool(np.any((np.abs(above - below) > rise / 2) & (rise > 1e-6 * np.max(np.abs(values)))))


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
