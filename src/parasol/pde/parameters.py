"""Parameters as symbols of an equation: numbers with ranges, functions with distributions."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import sympy

from parasol.errors import InputError
from parasol.expressions import Symbols
from parasol.runtime.parameters import ParameterFunction, ParameterSpace
from parasol.runtime.random_fields import RandomField
from parasol.runtime.ranges import ParameterRange, range_of

__all__ = ["FunctionParameter", "Parameter", "ParameterSpace", "parameters"]

_declared = itertools.count()


class Parameter(sympy.Symbol):
    """A number the equation depends on: a symbol that knows its range and its scale ("linear" or "log").

    >>> a = Parameter("a", 0.1, 10.0, scale="log")
    >>> a.low, a.high, a.middle
    (0.1, 10.0, 1.0)
    """

    low: float
    high: float
    scale: str
    rank: int  # order of declaration, which is the order in a parameter vector
    distribution: str = ""  # of SciPy, as text, where it was declared by one
    of_range = (
        "low",
        "high",
        "scale",
        "distribution",
    )  # where it may lie: solutions at a given value do not depend on it

    def __new__(
        cls,
        name: str,
        low: float,
        high: float,
        *,
        scale: str = "linear",
        distribution: str = "",
        rank: int | None = None,
    ):
        """Declare a parameter; `rank` is for copies only."""
        declared = ParameterRange(name, low, high, scale, distribution)
        self = sympy.Symbol.__xnew__(cls, name, real=True)
        self.low, self.high, self.scale = declared.low, declared.high, scale
        if distribution:
            self.distribution = distribution
        self.rank = next(_declared) if rank is None else rank
        return self

    def __getnewargs_ex__(self):
        options = {"scale": self.scale, "distribution": self.distribution, "rank": self.rank}
        return (self.name, self.low, self.high), options

    def __getstate__(self):
        return None

    def _hashable_content(self):
        return (*super()._hashable_content(), self.low, self.high, self.scale, self.distribution, self.rank)

    @property
    def declared(self) -> ParameterRange:
        """What is known of the number, without the symbol."""
        return ParameterRange(self.name, self.low, self.high, self.scale, self.distribution)

    @property
    def middle(self) -> float:
        """The value half-way through the range, on the parameter's own scale."""
        return self.declared.middle


class FunctionParameter(sympy.Symbol):
    """A function the equation depends on, given by its values at the nodes of the boundary or of the whole domain.

    `distribution` is the random field its samples are drawn from.
    """

    distribution: RandomField
    on: str
    rank: int

    def __new__(cls, name: str, distribution: RandomField, *, on: str = "boundary", rank: int | None = None):
        """Declare a function-valued parameter; `rank` is for copies only."""
        if not isinstance(distribution, RandomField):
            raise InputError(
                f"the function parameter {name!r} needs a random field to be drawn from, got {distribution!r}. Use ps.SphereField(8), or ps.GaussianField(0.3)."
            )
        ParameterFunction(name, distribution, on)  # which checks the rest
        self = sympy.Symbol.__xnew__(cls, name, real=True)
        self.distribution, self.on = distribution, on
        self.rank = next(_declared) if rank is None else rank
        return self

    def __getnewargs_ex__(self):
        return (self.name, self.distribution), {"on": self.on, "rank": self.rank}

    def __getstate__(self):
        return None

    def _hashable_content(self):
        return (*super()._hashable_content(), self.on, self.rank)

    @property
    def declared(self) -> ParameterFunction:
        """What is known of the function, without the symbol."""
        return ParameterFunction(self.name, self.distribution, self.on)

    @property
    def law(self) -> RandomField:
        """The name of `distribution` in version 0.1.0; it goes with the next version."""
        warnings.warn("parameter.law has a new name: use parameter.distribution.", DeprecationWarning, stacklevel=2)
        return self.distribution

    def diff(self, *symbols: Any, **assumptions: Any) -> sympy.Expr:
        """Refuse derivatives by coordinates: only nodal values are known."""
        for given in symbols:
            s, times = given if isinstance(given, tuple | sympy.Tuple) else (given, 1)
            if times and isinstance(s, sympy.Symbol) and not isinstance(s, sympy.Dummy | Parameter | FunctionParameter):
                raise InputError(
                    f"the function parameter {self.name} is differentiated by {s}, but only its nodal values are known. "
                    f"Write the equation so that {self.name} stands outside of derivatives."
                )
        return super().diff(*symbols, **assumptions)


def parameters(**ranges: Sequence[Any] | Any) -> tuple[Parameter, ...]:
    """Declare parameters by keyword: `a=(0.1, 4.0)`, `a=(0.1, 4.0, "log")`, or `a=scipy.stats.norm(1, 0.1)`.

    The range of a distribution is all of it, or where it has no end the middle part that is left out with a probability of
    1e-6. In this range answers and bounds hold as in any other; `sample(..., design="distribution")` draws from it.

    >>> a, k = parameters(a=(0.1, 4.0), k=(0.0, 2.0))
    >>> k.name, k.high
    ('k', 2.0)
    """
    return Symbols([symbol_of(range_of(name, given)) for name, given in ranges.items()], "parameters")


def symbol_of(p: ParameterRange) -> Parameter:
    """The symbol of a number that was declared; a choice has none, for symbols have values between any two."""
    if p.choices:
        raise InputError(
            f"parameter {p.name!r} is a choice: equations and matrices take ranges. Give {p.name}=(low, high), or learn from "
            f"a function or from results, parameters={{{p.name!r}: ps.Choice(…)}}."
        )
    return Parameter(p.name, p.low, p.high, scale=p.scale, distribution=p.distribution)
