"""The box of all parameter values, with NumPy alone: what an equation's symbols and a loaded file have in common."""

from __future__ import annotations

import keyword
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from parasol.checks import as_floats, check_choice, check_count, check_finite, check_shape, unmasked
from parasol.errors import InputError, ParasolError, did_you_mean
from parasol.runtime.above import borrowed
from parasol.runtime.random_fields import RandomField

Ranges = Mapping[str, Any]  # {"a": (0.1, 4.0), "k": (1, 10, "log"), "n": Choice(1, 2, 4)}
_TAILS = 1e-6  # probability of a distribution without ends that is left out of its range, half at each end
_LOGARITHMIC = ("lognorm", "loguniform", "reciprocal")
_ROUNDING = 1e-9  # of a range, by which a value may miss its end and still count as inside
_SINGLE = 1e-7  # of the end itself, where zero is not inside, by which it may: what rounding to float32 does


def check_name(name: str) -> str:
    """Return `name` if it can be the name of a parameter."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise InputError(f"parameter name {name!r} is not a plain name. Use letters, digits and underscores.")
    return name


def named_columns(table: Any) -> dict[str, np.ndarray] | None:
    """The columns of a data frame or structured array, the entries of a series, by name; None of what has no names."""
    if isinstance(table, np.ndarray) and table.dtype.names is not None:
        return {name: unmasked(table[name]) for name in table.dtype.names}
    labels = getattr(table, "columns", getattr(table, "index", None))
    if labels is None or callable(labels) or not hasattr(table, "__getitem__"):
        return None
    labels = list(labels)
    named = [isinstance(label, str | tuple) for label in labels]  # tuples are names in several levels
    if not any(named):
        return None
    if not all(isinstance(label, str) for label in labels):
        other = next(label for label in labels if not isinstance(label, str))
        raise InputError(
            f"the table of parameters has a column {other!r}, which is no name. Name each column by a text."
        )
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise InputError(f"the table of parameters has two columns {twice!r}. Name each column once.")
    return {label: np.asarray(table[label]) for label in labels}


def _along_one_dimension(dataset: Any, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The variables of an xarray dataset with these names; refused where they are not columns of one table."""
    columns = {name: dataset[name] for name in names if name in dataset.variables}
    dims = sorted({variable.dims for variable in columns.values() if variable.dims})
    if len(dims) > 1 or any(len(each) > 1 for each in dims):
        raise InputError(
            f"the parameters in the dataset have the dimensions {' and '.join(', '.join(map(str, d)) for d in dims)}. Give "
            "all of them on one: xarray's stack makes one of several."
        )
    return {name: np.asarray(variable) for name, variable in columns.items()}


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
        return np.minimum(_SINGLE * near, _ROUNDING * (self.high - self.low))

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


@dataclass(frozen=True)
class ParameterFunction:
    """A function that answers depend on, by its values at nodes: its name, the distribution of its samples, where it is given."""

    name: str
    distribution: RandomField
    on: str = "boundary"

    def __post_init__(self):
        check_name(self.name)
        check_choice(self.on, ("boundary", "domain"), f"on of the function parameter {self.name!r}")
        if not isinstance(self.distribution, RandomField):
            raise InputError(f"the distribution of the function {self.name!r} is a {type(self.distribution).__name__}.")

    def __str__(self) -> str:
        return f"{self.name}: a function on the {self.on}, {self.distribution}"


@dataclass(frozen=True)
class ParameterSpace:
    """The box of all parameter values: scalars in order of declaration, then functions.

    Where full solves failed in a part of the box, `solved` has the range of each scalar in which they did not, and `why`
    what failed (empty where there were no samples): vectors outside of that are refused like those outside the box.

    >>> space = ParameterSpace((ParameterRange("a", 0.1, 4.0), ParameterRange("k", 0.0, 2.0)))
    >>> space.grid(3, 2).shape
    (6, 2)
    """

    scalars: tuple[ParameterRange, ...] = ()
    functions: tuple[ParameterFunction, ...] = ()
    solved: tuple[tuple[float, float], ...] = field(default=(), metadata={"optional": True})  # () is everywhere
    why: str = field(default="", metadata={"optional": True})

    def __post_init__(self):
        for name, kind in (("scalars", ParameterRange), ("functions", ParameterFunction)):
            declared = tuple(getattr(p, "declared", p) for p in getattr(self, name))  # a symbol knows its declaration
            for p in declared:
                if not isinstance(p, kind):
                    raise InputError(f"a parameter space is made of parameters, got a {type(p).__name__}.")
            object.__setattr__(self, name, declared)
        if self.solved and len(self.solved) != len(self.scalars):
            raise InputError(f"{len(self.solved)} ranges of solutions for {len(self.scalars)} parameters.")
        for p, (low, high) in zip(self.scalars, self.solved, strict=False):
            if not p.low <= low < high <= p.high:
                raise InputError(f"solutions from {low:g} to {high:g} are not in the range of {p.name}.")

    @cached_property
    def answered(self) -> ParameterSpace:
        """The part of the box in which full solves succeeded: all of it unless some failed."""
        if not self.solved:
            return self
        pairs = zip(self.scalars, self.solved, strict=True)
        return ParameterSpace(tuple(p.within(*ends) for p, ends in pairs), self.functions)

    def __str__(self) -> str:
        """The parameters and their ranges in one line.

        >>> print(ParameterSpace((ParameterRange("a", 0.1, 4.0, "log"), ParameterRange("k", 0.0, 2.0))))
        a in [0.1, 4] (log), k in [0, 2]
        """
        return ", ".join(map(str, (*self.scalars, *self.functions))) or "none"

    def _repr_html_(self) -> str:
        return borrowed("html")(self)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the scalar parameters."""
        return tuple(p.name for p in self.scalars)

    @property
    def bounds(self) -> np.ndarray:
        """(2, n_scalars): lower and upper ends."""
        return np.array([[p.low for p in self.scalars], [p.high for p in self.scalars]])

    @cached_property
    def limits(self) -> np.ndarray:
        """(2, n_scalars): the ends up to rounding, beyond which a value counts as outside."""
        low, high = self.bounds
        ends = np.abs([low, high])
        log = np.array([p.scale == "log" for p in self.scalars], dtype=bool)
        # where zero is not inside, an end may be tiny beside the width, and a value of its size far outside
        apart = (low > 0) | (high < 0)
        slack = np.broadcast_to(_ROUNDING * (high - low), ends.shape)
        slack = np.where(log, _ROUNDING * ends, np.where(apart, np.minimum(_SINGLE * ends, slack), slack))
        out = np.array([low - slack[0], high + slack[1]])
        out.setflags(write=False)
        return out

    def vector(self, values: Mapping[str, float], *, extrapolate: bool = False) -> np.ndarray:
        """Named values as a vector, inside the box unless `extrapolate`; without any, the middle of every range (of its part with solutions)."""
        return self.check(self._named(values)[None], extrapolate=extrapolate)[0]

    def ordered(self, given: Any) -> Any:
        """Parameters given by name, as an array with one column per parameter in this space's order; all else unchanged.

        Names come with a mapping (numbers, or columns of them), with the columns of a data frame, the index of a series,
        the fields of a structured array, the variables and coordinates of an xarray dataset. A table must have every
        parameter; its other columns are passed over.

        >>> space = ParameterSpace((ParameterRange("a", 0.1, 4.0), ParameterRange("k", 0.0, 2.0)))
        >>> space.ordered({"k": [1.0, 2.0], "a": 3.0})
        array([[3., 1.],
               [3., 2.]])
        """
        if hasattr(given, "data_vars"):
            given = _along_one_dimension(given, self.names)
        if isinstance(given, Mapping):
            return self._named(given)
        columns = named_columns(given)
        if columns is None:
            return given
        missing = [name for name in self.names if name not in columns]
        if missing or self.functions:
            wanted = f"it has no column {missing[0]!r}" if missing else "functions are given as plain vectors"
            raise InputError(f"the table of parameters has the columns {', '.join(columns)}: {wanted}.")
        return self._named({name: columns[name] for name in self.names})

    def _named(self, values: Mapping[str, Any]) -> np.ndarray:
        """(n_scalars,) of named numbers, or (n_samples, n_scalars) where some of them are columns; without any, the middle."""
        if len(values) != len(self.names) or not all(name in values for name in self.names):
            self._check_names(values)
        elif all(isinstance(values[name], float) for name in self.names):  # one query, where microseconds count
            return np.array([values[name] for name in self.names])
        try:
            columns = [p.numbers(values.get(p.name, p.middle)) for p in self.answered.scalars]
            return np.stack(np.broadcast_arrays(*columns), axis=-1) if columns else np.empty(0)
        except ParasolError:
            raise
        except (TypeError, ValueError):
            lengths = {name: np.size(value) for name, value in values.items() if np.size(value) != 1}
            if len(set(lengths.values())) > 1:
                said = ", ".join(f"{name} has {n}" for name, n in lengths.items())
                raise InputError(
                    f"columns of parameters have different lengths: {said}. Give as many of each."
                ) from None
            raise InputError(f"parameter values must be numbers, got {dict(values)}.") from None

    def _check_names(self, values: Mapping[str, Any]) -> None:
        """Refuse names that are no parameters, and some but not all of them."""
        for name in values:
            if name in [f.name for f in self.functions]:
                raise InputError(
                    f"{name!r} is a function: give its nodal values in a parameter vector, or a seed to draw it."
                )
            if name not in self.names:
                known = ", ".join(f"{p.name} in [{p.low:g}, {p.high:g}]" for p in self.scalars) or "none"
                near = did_you_mean(name, self.names)
                raise InputError(f"unknown parameter {name!r}. {near}This problem has: {known}.")
        left_out = [f"{p.name} in [{p.low:g}, {p.high:g}]" for p in self.scalars if p.name not in values]
        if values and left_out:
            verb = "is" if len(left_out) == 1 else "are"
            raise InputError(f"{', '.join(left_out)} {verb} missing. Give every parameter.")

    def check(self, mus: ArrayLike | Mapping[str, Any], *, extrapolate: bool = False) -> np.ndarray:
        """Scalar parameters (n_samples, n_scalars) as floats, refused outside the box unless `extrapolate`."""
        try:
            mus = check_finite(as_floats(self.ordered(mus)), "parameter")
        except ParasolError:
            raise
        except (TypeError, ValueError):
            raise InputError(f"parameters must be real numbers, got {mus!r}.") from None
        if mus.ndim != 2 or mus.shape[1] != len(self.scalars):
            raise InputError(
                f"mus has shape {mus.shape}, expected (n_samples, {len(self.scalars)}): {', '.join(self.names)}."
            )
        self.check_choices(mus)
        if not extrapolate and not self.inside(mus).all():
            low, high = self.limits
            for j, p in enumerate(self.scalars):
                outside = (mus[:, j] < low[j]) | (mus[:, j] > high[j])
                if np.any(outside):
                    value = mus[np.argmax(outside), j]
                    raise InputError(
                        f"parameter {p.name}={value:.10g} is outside its range [{p.low:g}, {p.high:g}]. "
                        f"Choose a value inside, declare a wider range, or pass extrapolate=True."
                    )
            low, high = self.answered.limits
            for j, (p, ends) in enumerate(zip(self.scalars, self.solved, strict=False)):
                outside = (mus[:, j] < low[j]) | (mus[:, j] > high[j])
                if np.any(outside):
                    value = mus[np.argmax(outside), j]
                    reason = f"full solves failed ({self.why})" if self.why else "there are no samples"
                    raise InputError(
                        f"parameter {p.name}={value:.10g} is in the part of its range [{p.low:g}, {p.high:g}] where "
                        f"{reason}. Choose a value in [{ends[0]:g}, {ends[1]:g}], or pass extrapolate=True."
                    )
        return mus

    def check_choices(self, mus: np.ndarray) -> None:
        """Refuse vectors (n_samples, n_parameters) with a value between the choices of a parameter."""
        for j, p in enumerate(self.scalars):
            if not p.choices:
                continue
            off = np.all(np.abs(mus[:, j, None] - np.asarray(p.choices)) > p.misses, axis=1)
            if np.any(off):
                raise InputError(
                    f"parameter {p.name}={mus[np.argmax(off), j]:.10g} is none of its choices: "
                    f"{', '.join(map(p.word, p.choices))}. Nothing is known between them."
                )

    def check_vectors(
        self, mus: ArrayLike | Mapping[str, Any], n_parameters: int, *, extrapolate: bool = False
    ) -> np.ndarray:
        """Whole parameter vectors (n_samples, n_parameters), scalars first; refused if of wrong length or outside the box."""
        mus = self.ordered(mus)
        row = mus if isinstance(mus, list | tuple) or (isinstance(mus, np.ndarray) and mus.ndim == 1) else ()
        if 0 < n_parameters == len(row) and np.ndim(row[:1]) == 1:
            raise InputError(
                f"mus has shape {(len(row),)}: that is one parameter vector. Write [mu] for a list of one."
            )
        mus = check_finite(check_shape(mus, (None, n_parameters), "mus"), "mus")
        self.check(mus[:, : len(self.scalars)], extrapolate=extrapolate)
        return mus

    def inside(self, mus: np.ndarray) -> np.ndarray:
        """Which of the vectors have all their scalars in the box where it has solutions, (n_samples,) bool."""
        low, high = self.answered.limits
        scalars = mus[:, : len(self.scalars)]
        return np.all((scalars >= low) & (scalars <= high), axis=1)

    def grid(self, *counts: int) -> np.ndarray:
        """All combinations of equidistant values (on each parameter's scale), ends included; first parameter slowest."""
        if len(counts) != len(self.scalars):
            raise InputError(
                f"grid got {len(counts)} counts for {len(self.scalars)} parameters ({', '.join(self.names)})."
            )
        counts = tuple(check_count(n, "a count of grid") for n in counts)
        unit = [np.linspace(0, 1, n) if n > 1 else np.array([0.5]) for n in counts]
        mesh = np.meshgrid(*unit, indexing="ij")
        return self.from_unit(np.column_stack([m.ravel() for m in mesh]))

    def from_unit(self, unit: np.ndarray) -> np.ndarray:
        """Map the unit cube (n_samples, n_scalars) to the box, on each parameter's scale."""
        out = np.empty(np.shape(unit))
        for j, p in enumerate(self.scalars):
            t = unit[:, j]
            if p.scale == "log":
                out[:, j] = np.exp((1 - t) * math.log(p.low) + t * math.log(p.high))
            else:
                out[:, j] = (1 - t) * p.low + t * p.high
            out[:, j] = np.select([t <= 0, t >= 1], [p.low, p.high], np.clip(out[:, j], p.low, p.high))
            if p.choices:  # each as often as the others
                places = np.minimum((len(p.choices) * t).astype(int), len(p.choices) - 1)
                out[:, j] = np.asarray(p.choices)[np.maximum(places, 0)]
        return out

    def to_unit(self, mus: np.ndarray) -> np.ndarray:
        """The inverse of `from_unit`: positions in the unit cube, on each parameter's scale.

        >>> space = ParameterSpace((ParameterRange("a", 0.1, 10.0, "log"), ParameterRange("k", 0.0, 2.0)))
        >>> space.to_unit(np.array([[1.0, 0.5]])).round(12)
        array([[0.5 , 0.25]])
        """
        out = np.empty(np.shape(mus))
        for j, p in enumerate(self.scalars):
            scaled = [np.log(v) if p.scale == "log" else v for v in (mus[:, j], p.low, p.high)]
            out[:, j] = (scaled[0] - scaled[1]) / (scaled[2] - scaled[1])
        return out


def parameter_space(given: Any) -> ParameterSpace:
    """The box that is declared by a dict of ranges, in its order, by parameters, or by a `ParameterSpace`.

    >>> print(parameter_space({"a": (0.1, 4.0), "k": (1, 10, "log")}))
    a in [0.1, 4], k in [1, 10] (log)
    """
    if isinstance(given, ParameterSpace):
        return given
    if isinstance(given, Mapping):
        return ParameterSpace(tuple(range_of(name, ends) for name, ends in given.items()))
    if isinstance(given, tuple | list):
        functions = [p for p in given if isinstance(getattr(p, "declared", p), ParameterFunction)]
        return ParameterSpace(tuple(p for p in given if p not in functions), tuple(functions))
    raise InputError(
        f'parameters must be ranges by name, like {{"a": (0.1, 4.0), "k": (1, 10, "log")}}, got a {type(given).__name__}.'
    )
