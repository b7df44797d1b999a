"""Solvers of one's own: a function of mu, or an object with solve(mu), and the ranges of its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from parasol.errors import InputError
from parasol.runtime.parameters import ParameterSpace, parameter_space
from parasol.runtime.ranges import Ranges

_GIVE = 'parameters={"a": (0.1, 4.0), "k": (1, 10, "log")}'


class Solver(Protocol):
    """What is learned from: a model, or a solver of one's own."""

    @property
    def parameters(self) -> ParameterSpace:
        """What it depends on."""
        ...

    def solve(self, mu: Any, /) -> Any:
        """The solution at one parameter vector: an array, or something with `values`."""
        ...


class WithRanges(Protocol):
    """A solver of one's own that says what it depends on by a dict of ranges."""

    @property
    def parameters(self) -> Ranges:
        """What it depends on, as `{"a": (0.1, 4.0), "k": (1, 10, "log")}`: the order is that of the numbers in mu."""
        ...

    def solve(self, mu: np.ndarray, /) -> Any:
        """The solution at one parameter vector: an array, or something with `values`."""
        ...


Solvable = Solver | WithRanges | Callable[[np.ndarray], Any]


@dataclass(frozen=True, eq=False)
class OwnSolver:
    """A function of mu, or an object with `solve(mu)`, together with the box of its parameters.

    >>> solver = own_solver(lambda mu: mu[0] * np.arange(3), {"a": (0.0, 4.0)})
    >>> solver.solve(np.array([2.0])), str(solver.parameters)
    (array([0., 2., 4.]), 'a in [0, 4]')
    """

    source: Any
    parameters: ParameterSpace

    def solve(self, mu: np.ndarray) -> Any:
        """What the source returns at one parameter vector, in the order of the parameters."""
        return getattr(self.source, "solve", self.source)(mu)


def unwrapped(solver: Any) -> Any:
    """The user's own object or function behind a solver."""
    return solver.source if isinstance(solver, OwnSolver) else solver


def own_solver(given: Any, parameters: Any = None) -> Solver:
    """A solver of one's own with a `ParameterSpace`: the object itself where it has one, refused where it is none.

    `parameters` are ranges by name, in the order of the numbers in mu; left out, those of the attribute `parameters`.
    """
    if isinstance(given, type):
        raise InputError(f"the solver is the class {given.__name__}. Pass an object of it: {given.__name__}().")
    solve = getattr(given, "solve", given)
    if given is None or isinstance(given, str) or not callable(solve):
        raise InputError(
            f"problem is {_short(given)}. Pass a ps.Problem, such as ps.load_problem(name), a model, an object with solve(mu), "
            "or a function solve(mu); results of runs are given as data=."
        )
    own = getattr(given, "parameters", None)
    if parameters is not None and own is not None:
        raise InputError("the solver has an attribute parameters, and parameters= is given too. Keep one of them.")
    own = parameters if own is None else own
    if own is None:
        raise InputError(f"the parameters of {_name(given)} are not known. Pass {_GIVE}, in the order of mu.")
    space = parameter_space(own)
    if not (space.scalars or space.functions):
        raise InputError(f"{_name(given)} has no parameters, so there is nothing to learn. Pass {_GIVE}.")
    _check_takes_mu(solve, _name(given), space)
    return given if space is own and hasattr(given, "solve") and parameters is None else OwnSolver(given, space)


def _check_takes_mu(solve: Callable, name: str, space: ParameterSpace) -> None:
    """Refuse a function of several numbers before the first solve."""
    try:
        signature = inspect.signature(solve)
    except (TypeError, ValueError):  # written in C
        return
    try:
        signature.bind(None)
    except TypeError:
        names = ", ".join(space.names)
        raise InputError(
            f"{name}{signature} must take one argument: mu, a vector with {names}. Begin it with `{names} = mu`, "
            f"or pass lambda mu: {name}(*mu)."
        ) from None


def _name(given: Any) -> str:
    return getattr(given, "__qualname__", type(given).__qualname__)


def _short(given: Any) -> str:
    text = repr(given)
    return text if len(text) < 80 else f"a {type(given).__name__}"
