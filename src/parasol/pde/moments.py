"""When something happens in time: the moments that formulas name, however short what happens there."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import sympy
from sympy.core.relational import Relational

from parasol.errors import FormulaError
from parasol.expressions import Function, as_function
from parasol.pde.equation import Time

_SAMPLES = 4096  # of what functions of time are taken of, which changes more slowly than they do
_HALVINGS = 60
_OCTAVES = 0.5 ** np.arange(13, 47)  # distances from a moment that are looked at, of the whole time
_MOST = 1000  # moments


@dataclass(frozen=True, eq=False)
class Moments:
    """What the functions of time in some expressions are taken of, and what switches between their pieces.

    A pulse exp(−((t − a)/w)²) is short, but its argument is not: it is largest at a, and from there the pulse is seen
    whatever w is. So moments are where the arguments of functions and powers of time vanish or are extreme.
    """

    arguments: tuple[Function, ...]  # of time, scalars and coordinates, with their derivatives in time
    switches: tuple[Function, ...]  # of time and scalars: they change their value where another piece begins

    @classmethod
    def of(cls, expressions: Iterable[sympy.Expr], time: Time, scalars: Sequence, coordinates: Sequence) -> Moments:
        """Collect them from expressions in time, scalars and coordinates.

        >>> t = Time()
        >>> found = Moments.of([sympy.exp(-(t - 1)**2) * sympy.Heaviside(3 - t)], t, [], [])
        >>> [str(f.expression) for f in found.switches]
        ['Heaviside(3 - t, 0)']
        """
        inside: set[sympy.Expr] = set()
        switches: set[sympy.Expr] = set()
        for part in {part for e in expressions for part in sympy.preorder_traversal(e) if part.has(time)}:
            if isinstance(part, Relational):
                gaps = [part.lhs - part.rhs]
            elif isinstance(part, sympy.Max | sympy.Min):
                gaps = [a - b for a, b in itertools.combinations(part.args, 2)]
            elif isinstance(part, sympy.Heaviside | sympy.sign | sympy.Abs):
                gaps = [part.args[0]]
            else:
                gaps = []
            arguments = part.args if isinstance(part, sympy.Function | sympy.Pow) else ()
            inside |= {*gaps, *[a for a in arguments if isinstance(a, sympy.Expr)]}
            switches |= {sympy.Heaviside(gap, 0) for gap in gaps}
            if isinstance(part, sympy.floor | sympy.ceiling):
                switches.add(part)
        rates = {e.diff(time) for e in inside}
        symbols = [time, *scalars, *coordinates]
        return cls(_compiled(inside | rates, time, symbols), _compiled(switches, time, [time, *scalars]))

    def grid(self, scalars: np.ndarray, points: np.ndarray, first: float, last: float) -> tuple[np.ndarray, np.ndarray]:
        """Times from first to last, ever closer near moments, and the switches between them.

        Arguments that depend on the coordinates are looked at in some points (n, dimension).
        """
        even = np.linspace(first, last, _SAMPLES + 1)
        at = [
            _changes(lambda t, f=f, p=p: f(t, *scalars, *p) > 0, even)
            for f in self.arguments
            for p in (points if set(f.symbols[1 + len(scalars) :]) & f.expression.free_symbols else points[:1])
        ]
        moments = np.unique(np.concatenate([[first, last], *at]))
        moments = moments[np.unique(np.linspace(0, len(moments) - 1, _MOST).astype(int))]
        near = moments[:, None] + (last - first) * np.concatenate([-_OCTAVES, [0.0], _OCTAVES])
        fine = np.unique(np.clip(np.concatenate([even, near.ravel()]), first, last))
        changes = [_changes(lambda t, f=f: f(t, *scalars), fine) for f in self.switches]
        return fine, np.unique(np.concatenate([[], *changes]))


def _compiled(expressions: Iterable[sympy.Expr], time: Time, symbols: Sequence) -> tuple[Function, ...]:
    out = []
    for expression in sorted(expressions, key=sympy.default_sort_key):
        if expression.has(time) and expression.free_symbols <= set(symbols):
            try:
                out.append(as_function(expression, symbols))
            except FormulaError:  # a derivative that is no function
                continue
    return tuple(out)


def _changes(function: Callable[[np.ndarray], np.ndarray], times: np.ndarray) -> np.ndarray:
    """Where a function of time takes another value between neighbouring times, to the last digit.

    >>> _changes(lambda t: t > 0.3, np.array([0.0, 0.2, 1.0])).round(12).tolist()
    [0.3]
    """
    with np.errstate(all="ignore"):
        values = function(times)
        cells = np.flatnonzero(values[1:] != values[:-1])
        low, high, before = times[cells], times[cells + 1], values[cells]
        for _ in range(_HALVINGS if len(cells) else 0):
            middle = (low + high) / 2
            same = function(middle) == before
            low, high = np.where(same, middle, low), np.where(same, high, middle)
    return high
