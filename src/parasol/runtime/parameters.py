"""The box of all parameter values, with NumPy alone: what an equation's symbols and a loaded file have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from parasol.checks import as_floats, check_choice, check_count, check_finite, check_shape, unmasked
from parasol.errors import InputError, ParasolError, did_you_mean
from parasol.runtime.above import borrowed
from parasol.runtime.random_fields import RandomField
from parasol.runtime.ranges import ROUNDING, SINGLE, ParameterRange, check_name, range_of


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
        slack = np.broadcast_to(ROUNDING * (high - low), ends.shape)
        slack = np.where(log, ROUNDING * ends, np.where(apart, np.minimum(SINGLE * ends, slack), slack))
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
