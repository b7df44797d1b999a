"""Conditions that say which points belong to a part of the boundary."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import sympy

from parasol.errors import InputError
from parasol.expressions import as_function
from parasol.space.geometry.axes import axis_symbols, parse_in_axes

Test = Callable[[np.ndarray], np.ndarray]  # of points (n, dimension): (n,) bool
Condition = sympy.Basic | Test
Predicate = Condition | str  # a condition as a user may write it
_HOLDS = {
    sympy.Le: np.less_equal,
    sympy.Lt: np.less,
    sympy.Ge: np.greater_equal,
    sympy.Gt: np.greater,
    sympy.Eq: np.equal,
    sympy.Ne: lambda sign, zero: np.abs(sign) > zero,  # not where the formula has no value
}


def read_condition(name: str, predicate: Predicate, dimension: int, *, of: str = "part") -> Condition:
    """The condition for a part of the boundary, or whatever else it is one `of`, as SymPy relation or function, or a clear error."""
    advice = "Use a relation such as x < 0.1, its text, or a function of points."
    if isinstance(predicate, bool | np.bool_):
        raise InputError(f"the condition for {of} {name!r} is just {bool(predicate)}, it names no place. {advice}")
    given = parse_in_axes(predicate, dimension) if isinstance(predicate, str) else predicate
    if isinstance(given, sympy.Basic):
        axis_symbols(given, dimension, f"the condition for {of} {name!r}")
        if not isinstance(given, sympy.logic.boolalg.Boolean) or isinstance(given, sympy.Symbol):
            raise InputError(f"the condition for {of} {name!r} is {given}, which is neither true nor false. {advice}")
    elif not callable(given):
        raise InputError(f"the condition for {of} {name!r} is a {type(given).__name__}. {advice}")
    return given


def compile_condition(name: str, given: Condition, dimension: int, near: float) -> Test:
    """A condition as a function of points. Relations allow for rounding: x <= 0 holds at x = 1e-17."""
    if isinstance(given, sympy.Basic):
        return _relation(given, axis_symbols(given, dimension, f"the condition for part {name!r}"), near)

    def test(points: np.ndarray) -> np.ndarray:
        answer = np.asarray(given(points))
        if answer.shape != (len(points),):
            raise InputError(
                f"the condition for part {name!r} returned shape {answer.shape} for {len(points)} points. "
                f"Return one True or False per point."
            )
        return answer.astype(bool)

    return test


def _relation(given: sympy.Basic, symbols: list, near: float) -> Test:
    """A relation as a function of points; lhs - rhs counts as 0 where it is no larger than its change over `near`."""
    if isinstance(given, sympy.Not):
        negated = _relation(given.args[0], symbols, near)
        return lambda points: ~negated(points)
    if isinstance(given, sympy.And | sympy.Or):
        inner = [_relation(arg, symbols, near) for arg in given.args]
        together = np.all if isinstance(given, sympy.And) else np.any
        return lambda points: together([test(points) for test in inner], axis=0)
    if not isinstance(given, sympy.core.relational.Relational):
        whole = as_function(given, symbols)
        return lambda points: whole(*points.T).astype(bool)
    function = as_function(given.lhs - given.rhs, symbols)  # type: ignore[operator]
    holds = next(holds for kind, holds in _HOLDS.items() if isinstance(given, kind))

    def relation(points: np.ndarray) -> np.ndarray:
        gap = function(*points.T)
        steps = near * np.eye(len(symbols))
        changes = [[np.abs(function(*(points + s).T) - gap) for s in (step, -step)] for step in steps]
        # of the two ways along an axis the calmer one: the other may cross a jump, or leave where the formula holds
        tolerance = np.max(np.nan_to_num(np.fmin(*np.moveaxis(np.array(changes), 1, 0)), posinf=0.0), axis=0)
        return holds(np.where(np.abs(gap) <= tolerance, 0.0, np.sign(gap)), 0.0)

    return relation
