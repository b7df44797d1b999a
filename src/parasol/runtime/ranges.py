"""One parameter: its name, its range and scale, or the values it may take."""

from __future__ import annotations

import keyword
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from parasol.checks import as_floats, check_choice
from parasol.errors import InputError

Ranges = Mapping[str, Any]  # {"a": (0.1, 4.0), "k": (1, 10, "log"), "n": Choice(1, 2, 4)}
ROUNDING = 1e-9  # of a range, by which a value may miss its end and still count as inside
SINGLE = 1e-7  # of the end itself, where zero is not inside, by which it may: what rounding to float32 does
_TAILS = 1e-6  # probability of a distribution without ends that is left out of its range, half at each end
_LOGARITHMIC = ("lognorm", "loguniform", "reciprocal")


def check_name(name: str) -> str:
    """Return `name` if it can be the name of a parameter."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise InputError(f"parameter name {name!r} is not a plain name. Use letters, digits and underscores.")
    return name


def check_range(name: str, low: Any, high: Any, scale: str) -> tuple[float, float]:
    """Return the ends of a range as floats if they are one."""
    check_choice(scale, ("linear", "log"), f"scale of parameter {name!r}")
    try:
        low, high = float(low), float(high)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"range of parameter {name!r} must be two numbers, got {low!r} and {high!r}.") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(f"range of parameter {name!r} is ({low:g}, {high:g}). Give a finite low < high.")
    if scale == "log" and low <= 0:
        raise InputError(f"range of parameter {name!r} starts at {low:g}. A log scale needs low > 0.")
    return low, high


def middle(low: float, high: float, scale: str) -> float:
    """The value half-way through a range, on its own scale.

    >>> middle(0.1, 10.0, "log")
    1.0
    """
    return math.sqrt(low * high) if scale == "log" else (low + high) / 2


@dataclass(frozen=True)
class ParameterRange:
    """A number that answers depend on: its name, its range, its scale ("linear" or "log").

    Where it was declared by a distribution of SciPy, that stands as text in `distribution`; answers do not depend on it.
    """

    of_range: ClassVar[tuple[str, ...]] = ("low", "high", "scale", "distribution", "choices")  # where, not what

    name: str
    low: float
    high: float
    scale: str = "linear"
    distribution: str = field(default="", metadata={"optional": True})  # such as "norm(1.0, 0.1)"
    # the values it may take, in order, where nothing lies between them; names of the values 0, 1, … where it has such
    choices: tuple[float, ...] = field(default=(), metadata={"optional": True})
    labels: tuple[str, ...] = field(default=(), metadata={"optional": True})

    def __post_init__(self):
        check_name(self.name)
        if not isinstance(self.distribution, str):
            raise InputError(f"the distribution of parameter {self.name!r} is kept as text, got {self.distribution!r}.")
        low, high = check_range(self.name, self.low, self.high, self.scale)
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        values = self.choices
        if values and (low != values[0] or high != values[-1] or any(a >= b for a, b in pairwise(values))):
            raise InputError(
                f"the choices of parameter {self.name!r} are not its values from {low:g} to {high:g}, in order."
            )
        if self.labels and not (values and all(value in range(len(self.labels)) for value in values)):
            raise InputError(f"the choices of parameter {self.name!r} are not those that have names.")

    def __str__(self) -> str:
        if self.choices:
            return f"{self.name} one of {', '.join(map(self.word, self.choices))}"
        drawn = f", {self.distribution}" if self.distribution else ""
        return f"{self.name} in [{self.low:g}, {self.high:g}]{' (log)' if self.scale == 'log' else ''}{drawn}"

    @property
    def middle(self) -> float:
        """The value half-way through the range, on the parameter's own scale; of choices the one in the middle."""
        return self.choices[len(self.choices) // 2] if self.choices else middle(self.low, self.high, self.scale)

    def word(self, value: float) -> str:
        """A value as people write it: by its name where it has one."""
        return self.labels[int(value)] if self.labels else f"{value:g}"

    def numbers(self, given: Any) -> np.ndarray:
        """Values as numbers, names among them by their places."""
        array = np.asarray(given)
        if not self.labels or array.dtype.kind not in "UOT":
            return as_floats(given, f"parameter {self.name}")
        places = {label: i for i, label in enumerate(self.labels)}
        unknown = [value for value in array.ravel().tolist() if isinstance(value, str) and value not in places]
        if unknown:
            raise InputError(f"parameter {self.name}={unknown[0]!r} is none of its choices: {', '.join(self.labels)}.")
        return np.array([places.get(v, v) for v in array.ravel().tolist()], dtype=float).reshape(array.shape)

    def nearest(self, values: np.ndarray) -> np.ndarray:
        """The choices that are nearest to values; the values themselves where there are no choices."""
        if not self.choices:
            return values
        known = np.asarray(self.choices)
        return known[np.argmin(np.abs(np.asarray(values)[..., None] - known), axis=-1)]

    @cached_property
    def misses(self) -> np.ndarray:
        """(n_choices,) by how much a value may miss each choice and still count as it: by rounding, and no more.

        >>> range_of("k", Choice(1e-12, 0.1, 1.0)).misses
        array([1.e-19, 1.e-09, 1.e-09])
        """
        known = np.asarray(self.choices)
        gaps = np.minimum(np.diff(known, prepend=-np.inf), np.diff(known, append=np.inf))
        near = np.where(known == 0, gaps, np.minimum(gaps, np.abs(known)))
        return np.minimum(SINGLE * near, ROUNDING * (self.high - self.low))

    def within(self, low: float, high: float) -> ParameterRange:
        """The same parameter between other ends."""
        kept = tuple(value for value in self.choices if low <= value <= high)
        return replace(self, low=low, high=high, choices=kept)


@dataclass(frozen=True, init=False)
class Choice:
    """Values that a parameter may take, with nothing between them: whole numbers, other numbers, or names.

    >>> print(range_of("material", Choice("steel", "brass")), range_of("n", Choice(8, 2, 4)), sep="; ")
    material one of steel, brass; n one of 2, 4, 8
    """

    values: tuple[Any, ...]

    def __init__(self, *values: Any):
        texts = [isinstance(value, str) for value in values]
        try:
            choices = values if all(texts) else tuple(sorted(float(value) for value in values))
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"choices are numbers or names, got {values!r}.") from None
        if not all(texts) and not all(map(math.isfinite, choices)):
            raise InputError(f"choices are finite numbers or names, got {values!r}.")
        if len(choices) < 2 or len(set(choices)) < len(choices) or any(texts) != all(texts):
            raise InputError(
                f'a choice has at least two values, all different, like Choice("steel", "brass"), got {values!r}.'
            )
        object.__setattr__(self, "values", choices)


def range_of(name: str, given: Any) -> ParameterRange:
    """The parameter that (low, high), (low, high, "log") or a distribution of SciPy declares.

    >>> print(range_of("k", (1, 10, "log")))
    k in [1, 10] (log)
    """
    if isinstance(given, ParameterRange):
        return given
    if isinstance(given, Choice):
        labels = given.values if isinstance(given.values[0], str) else ()
        values = tuple(map(float, range(len(labels)))) if labels else given.values
        return ParameterRange(name, values[0], values[-1], choices=values, labels=labels)
    if hasattr(given, "ppf") or hasattr(given, "icdf"):
        return _range_of_distribution(name, given)
    if not isinstance(given, tuple | list) or len(given) not in (2, 3):
        raise InputError(f'parameter {name!r} got {given!r}. Write {name}=(low, high) or {name}=(low, high, "log").')
    return ParameterRange(name, *given)


def _range_of_distribution(name: str, given: Any) -> ParameterRange:
    """All values of a distribution that has two ends; of others the middle part, with a probability of 1 − 1e-6.

    The scale is logarithmic for distributions of logarithms.
    """
    family: Any = getattr(given, "dist", None)
    if not hasattr(family, "pdf"):
        raise InputError(
            f"parameter {name!r} got a {type(given).__name__}. Write a continuous distribution of numbers, frozen as in "
            f"{name}=scipy.stats.norm(1.0, 0.1)."
        )
    try:
        values = [*map(float, given.args)], {key: float(value) for key, value in given.kwds.items()}
        low, high = map(float, given.support())
        if not (math.isfinite(low) and math.isfinite(high)):
            low, high = float(given.ppf(_TAILS / 2)), float(given.isf(_TAILS / 2))
    except (TypeError, ValueError):
        raise InputError(f"the distribution of parameter {name!r} has no numbers as ends. Give it numbers.") from None
    text = ", ".join([*map(repr, values[0]), *[f"{key}={value!r}" for key, value in values[1].items()]])
    scale = "log" if family.name in _LOGARITHMIC and low > 0 else "linear"
    return ParameterRange(name, low, high, scale, f"{family.name}({text})")
