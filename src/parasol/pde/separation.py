"""Coefficients as sums of theta(mu) times coefficient(x), where that keeps the digits."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import sympy

from parasol.errors import InputError
from parasol.expressions import as_function
from parasol.pde.parameters import FunctionParameter, Parameter

Ranges = Mapping[sympy.Symbol, tuple[float, float]]

_ROUNDING = 1e-8  # what a separated form may lose at a point, as a part of the value there
_ZERO = 1e-12  # of the largest value: what is smaller is a zero, where a tenth of it may be lost
_SAMPLES = 500
_MOST_CORNERS = 1024


def separated(
    expression: sympy.Expr, ranges: Ranges | None = None
) -> list[tuple[sympy.Expr, sympy.Expr, FunctionParameter | None]]:
    """Write an expression as a sum of (theta(mu), coefficient(x), function parameter or None), grouped by theta.

    `ranges` are those of the coordinates. Addition theorems are used only where they keep the digits there.

    >>> x, a = sympy.Symbol("x", real=True), Parameter("a", 20, 21)
    >>> [(theta, c) for theta, c, _ in separated(sympy.exp(x - a), {x: (0.0, 40.0)})]
    [(exp(-a), exp(x))]
    >>> [(theta, c) for theta, c, _ in separated(sympy.cosh(x - a), {x: (0.0, 40.0)})]
    [(1, cosh(a - x))]
    """
    may_open = partial(_may_open, ranges=ranges)
    for split in (lambda part: part, partial(_split, ranges=ranges)):
        terms = _grouped(multiplied_out(expression, _has_parameters, split, may_open))
        if all(not coefficient.atoms(Parameter) for _, coefficient, _ in terms):
            return terms
    # a sum that could not be separated stays whole, as it was written: partial separation would help nobody
    if expression.atoms(FunctionParameter):
        return _grouped(multiplied_out(expression, lambda part: bool(part.atoms(FunctionParameter))))
    return [(sympy.S.One, expression, None)]


def multiplied_out(
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


def _may_open(power: sympy.Expr, *, ranges: Ranges | None) -> bool:
    return _mixed(power) and _keeps_digits(power, sympy.expand(power, deep=False), ranges)


def _split(part: sympy.Expr, *, ranges: Ranges | None) -> sympy.Expr:
    """A function of p(mu) + q(x) by its addition theorem, where there is one that keeps the digits."""
    power = part.is_Pow and part.args[0].is_positive and part.args[0].is_number
    known = isinstance(part, sympy.exp | sympy.sin | sympy.cos | sympy.sinh | sympy.cosh)
    if not (power or known) or not _mixed(part) or part.atoms(FunctionParameter):
        return part
    terms = sympy.Add.make_args(
        multiplied_out(part.args[-1], _has_parameters, may_open=partial(_may_open, ranges=ranges))
    )
    p = sympy.Add(*[t for t in terms if t.free_symbols and all(isinstance(s, Parameter) for s in t.free_symbols)])
    q = sympy.Add(*terms) - p
    if p == 0 or q.atoms(Parameter):
        return part
    if power or isinstance(part, sympy.exp):
        base = part.args[0] if power else sympy.E
        other = base**p * base**q
    else:
        a, b = sympy.symbols("a b", cls=sympy.Dummy)
        other = sympy.expand_trig(part.func(a + b)).subs({a: p, b: q})
    # the terms of sin and cos are at most 1 in size, as the functions themselves: nothing can cancel beyond that
    return other if isinstance(part, sympy.sin | sympy.cos) or _keeps_digits(part, other, ranges) else part


def _keeps_digits(part: sympy.Expr, other: sympy.Expr, ranges: Ranges | None) -> bool:
    """Whether two forms agree in floating point at the corners and at many points of the box they will be used in.

    That box is the product of the parameters' ranges and those of the coordinates. A symbol without a range, such as
    the time, may grow to any size: then the answer is no. Where no ranges are known at all, coordinates are taken from
    [-1, 1].
    """
    symbols = sorted(part.free_symbols, key=str)
    box = dict.fromkeys(symbols, (-1.0, 1.0)) if ranges is None else dict(ranges)
    box |= {s: (s.low, s.high) for s in symbols if isinstance(s, Parameter)}
    if not box.keys() >= set(symbols):
        return False
    ends = np.array([box[s] for s in symbols], dtype=float)  # (n_symbols, 2)
    corners = list(itertools.islice(itertools.product(*ends), _MOST_CORNERS))
    inside = ends[:, 0] + np.ptp(ends, axis=1) * np.random.default_rng(0).random((_SAMPLES, len(symbols)))
    written, rewritten = (as_function(form, symbols)(*np.vstack([corners, inside]).T) for form in (part, other))
    known = np.isfinite(written)
    written, rewritten = written[known], rewritten[known]
    zero = _ZERO * np.max(np.abs(written), initial=0.0)
    allowed = np.where(np.abs(written) <= zero, 0.1 * zero, _ROUNDING * np.abs(written))
    return bool(np.all(np.abs(rewritten - written) <= allowed))  # what is not finite is not allowed either


def _grouped(expression: sympy.Expr):
    groups: dict[tuple[sympy.Expr, FunctionParameter | None], sympy.Expr] = {}
    for term in sympy.Add.make_args(expression):
        theta, coefficient, function = sympy.S.One, sympy.S.One, None
        for factor in sympy.Mul.make_args(term):
            symbols = factor.free_symbols
            if isinstance(factor, FunctionParameter) and function is None:
                function = factor
            elif factor.atoms(FunctionParameter):
                raise InputError(
                    f"the function parameter in {term} enters nonlinearly. Only its multiples are understood."
                )
            elif symbols and all(isinstance(s, Parameter) for s in symbols):
                theta *= factor
            else:
                coefficient *= factor
        key = (theta, function)
        groups[key] = groups.get(key, sympy.S.Zero) + coefficient
    return [(theta, c, function) for (theta, function), c in groups.items() if sympy.expand(c) != 0]
