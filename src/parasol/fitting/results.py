"""Other people's results: fields at parameters, with the places, times and names that belong to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from parasol.checks import (
    check_choice,
    check_finite,
    check_labels,
    check_shape,
    dates_refused,
    is_date,
    is_missing,
    unmasked,
)
from parasol.errors import InputError
from parasol.fitting.tables import number_of
from parasol.runtime.above import borrowed
from parasol.runtime.layout import AXES, Layout
from parasol.runtime.parameters import ParameterSpace, named_columns
from parasol.space.mesh import check_cells

Quantity = ArrayLike | Callable[[dict[str, np.ndarray]], float]


@dataclass(frozen=True, eq=False, repr=False)
class Results:
    """Results of n runs of somebody's program: `fields` by name at parameters `mus`, on `points` joined to `cells`.

    `mus` is a table with one row for each run: a data frame, a dict of columns, or an array (n, n_parameters). A field has
    the shape (n, nodes) or (n, nodes, components), with `times` (n, times, nodes) or (n, times, nodes, components); one of
    shape (n,), or (n, times), is a quantity. One array is the field u. `points` are (nodes, dimension), `cells`
    (n_cells, nodes of each) whole numbers: lines, triangles, quadrilaterals or tetrahedra, corners first.

    `weights` (nodes,) are those of the inner product in which errors are measured, 1 where they are left out. Rows that belong
    together have equal labels in `groups` (n,). `quantities` names further numbers of each run: weights (nodes,) or
    (all values of the run,) of its values, or a function of its fields by name, such as
    `lambda run: run["stress"].max()`; with `times` one number for all of them, or (times,). Runs with values that are not finite are refused, or left out with `missing="drop"`.

    >>> runs = Results({"load": [1.0, 2.0]}, {"u": [[0.0, 1.0], [0.0, 2.0]], "tip": [1.0, 2.0]}, points=[[0.0], [1.0]])
    >>> runs
    <Results of 2 runs at (load): u at 2 nodes; tip>
    """

    mus: Any
    fields: Any
    points: Any = None
    cells: Any = None
    _: KW_ONLY
    times: Any = None
    weights: Any = None
    groups: Any = None
    quantities: Mapping[str, Quantity] = field(default_factory=dict)
    missing: str = "refuse"
    parameters: tuple[str, ...] = field(init=False, default=())  # names of the columns of mus, where they have any
    labels: dict[str, tuple[str, ...]] = field(
        init=False, default_factory=dict
    )  # of columns of text, which hold places
    scalars: dict[str, np.ndarray] = field(init=False, default_factory=dict)  # (n,), or (n, times), by name
    dropped: tuple[int, ...] = field(init=False, default=())  # numbers of the runs that were left out

    def __post_init__(self):
        check_choice(self.missing, ("refuse", "drop"), "missing")
        parameters, mus, labels = _table(self.mus)
        points, times = self.points, self.times
        if points is not None:
            if np.ndim(points) == 1:
                raise InputError(
                    f"points has shape {np.shape(points)}, expected (n_nodes, dimension). On a line pass points[:, None]."
                )
            points = check_finite(check_shape(points, (None, None), "points"), "points")
        if times is not None:
            times = check_finite(check_shape(times, (None,), "times"), "times")
            if np.any(np.diff(times) <= 0):
                raise InputError(
                    "times do not increase from each to the next. Sort them and the fields, and give each once."
                )
        if self.cells is not None and points is None:
            raise InputError("cells need the points they join. Give points=, (nodes, dimension).")
        cells = None if self.cells is None else check_cells(points, self.cells)  # type: ignore[arg-type]
        fields, scalars = _sorted(self.fields, len(mus), points, times)
        groups = None if self.groups is None else check_labels(self.groups, len(mus), "groups", "runs")
        bad = _bad_rows(mus, {**fields, **scalars}, self.missing == "drop")
        kept = np.delete(np.arange(len(mus)), bad)
        own = {"mus": mus[kept], "fields": {name: values[kept] for name, values in fields.items()}}
        own |= {"points": points, "times": times, "cells": cells, "parameters": parameters, "dropped": tuple(bad)}
        own |= {"labels": labels, "groups": None if groups is None else groups[kept]}
        own |= {"scalars": {name: values[kept] for name, values in scalars.items()}}
        for name, value in own.items():
            object.__setattr__(self, name, value)
        _ = self.components  # of one name each
        if self.weights is not None:
            object.__setattr__(self, "weights", self._all_weights(self.weights))
        self._add_quantities()

    def _add_quantities(self) -> None:
        """Evaluate those that are functions, and look at the weights of the others."""
        if not isinstance(self.quantities, Mapping):
            raise InputError(
                f"quantities are a {type(self.quantities).__name__}. Give a dict of weights or functions by name."
            )
        twice = [name for name in self.quantities if name in self.scalars]
        if twice:
            raise InputError(f"there are two quantities {twice[0]!r}, one of them among the fields. Give another name.")
        scalars = {name: self._evaluated(name, f) for name, f in self.quantities.items() if callable(f)}
        bad = _bad_rows(self.mus, scalars, self.missing == "drop")
        kept = np.delete(np.arange(len(self)), bad)
        if bad:
            before = np.delete(np.arange(len(self) + len(self.dropped)), self.dropped)
            object.__setattr__(self, "dropped", tuple(sorted([*self.dropped, *before[bad].tolist()])))
            object.__setattr__(self, "mus", self.mus[kept])
            object.__setattr__(self, "groups", None if self.groups is None else self.groups[kept])
            object.__setattr__(self, "fields", {name: values[kept] for name, values in self.fields.items()})
            object.__setattr__(self, "scalars", {name: values[kept] for name, values in self.scalars.items()})
        self.scalars.update({name: values[kept] for name, values in scalars.items()})
        _ = self.functionals  # of the right length

    def __len__(self) -> int:
        return len(self.mus)

    def _repr_html_(self) -> str:
        return borrowed("view")(self)

    def __repr__(self) -> str:
        nodes = f"{', '.join(self.fields)} at {self.n_nodes} nodes" if self.fields else ""
        nodes += "" if self.times is None else f" and {len(self.times)} times"
        parts = "; ".join(part for part in (nodes, ", ".join(self.scalars)) if part)
        names = ", ".join(self.parameters) or f"{self.mus.shape[1]} parameters"
        return f"<Results of {len(self)} runs at ({names}): {parts}>"

    def __add__(self, other: Results) -> Results:
        """These runs and others of the same program, on the same mesh.

        >>> runs = Results({"a": [1.0]}, {"tip": [2.0]})
        >>> runs + Results({"a": [3.0]}, {"tip": [4.0]})
        <Results of 2 runs at (a): tip>
        """
        if not isinstance(other, Results):
            return NotImplemented
        for name in ("parameters", "components", "points", "cells", "times", "weights", "labels"):
            mine, its = getattr(self, name), getattr(other, name)
            if not (mine is its or (np.array_equal(mine, its) if isinstance(mine, np.ndarray) else mine == its)):
                raise InputError(f"the runs cannot be joined: they differ in their {name}.")
        if set(self.scalars) != set(other.scalars) or (self.groups is None) != (other.groups is None):
            raise InputError("the runs cannot be joined: they differ in their quantities or groups.")
        if self.mus.shape[1] != other.mus.shape[1]:
            raise InputError(f"the runs cannot be joined: {self.mus.shape[1]} and {other.mus.shape[1]} parameters.")
        for name in self.quantities.keys() & other.quantities.keys():
            mine, its = self.quantities[name], other.quantities[name]
            if callable(mine):
                mine, its = other._evaluated(name, mine), other.scalars[name]
            if callable(its) or not np.array_equal(mine, its):
                raise InputError(f"the runs cannot be joined: their quantities {name!r} are not the same.")
        same = copy(self)
        joined: dict[str, Any] = {"mus": np.concatenate([self.mus, other.mus])}
        for name in ("fields", "scalars"):
            mine, its = getattr(self, name), getattr(other, name)
            joined[name] = {key: np.concatenate([mine[key], its[key]]) for key in mine}
        if self.groups is not None:
            joined["groups"] = np.concatenate([self.groups, other.groups])
        for name, value in joined.items():
            object.__setattr__(same, name, value)
        return same

    def of_parameters(self, space: ParameterSpace) -> Results:
        """The same results with the columns of the space, in its order; columns without names are taken for these."""
        wanted = space.names
        if not self.parameters and self.mus.shape[1] != len(wanted):
            raise InputError(
                f"the parameters of the data have the shape {self.mus.shape}, expected (n_samples, {len(wanted)}): "
                f"{', '.join(wanted)}."
            )
        if self.parameters and set(wanted) != set(self.parameters):
            raise InputError(
                f"parameters names {', '.join(wanted)}, the table has the columns {', '.join(self.parameters)}. "
                "Name each column once, or leave it out of the table."
            )
        columns = self.mus[:, [self.parameters.index(name) for name in wanted]] if self.parameters else self.mus.copy()
        for j, p in enumerate(space.scalars):
            if p.name in self.labels:
                if not p.labels:
                    raise InputError(_text_column(p.name, self.labels[p.name]))
                columns[:, j] = p.numbers(np.array(self.labels[p.name])[columns[:, j].astype(int)])
        same = copy(self)
        for name, value in {"mus": columns, "parameters": wanted, "labels": {}}.items():
            object.__setattr__(same, name, value)
        return same

    def check_numbers(self) -> None:
        """Refuse columns of text that nobody has declared."""
        for name, labels in self.labels.items():
            raise InputError(_text_column(name, labels))

    @property
    def n_nodes(self) -> int:
        """Number of places that the fields have values at."""
        if not self.fields:
            return 0
        first = next(iter(self.fields.values()))
        return first.shape[1 if self.times is None else 2]

    @cached_property
    def components(self) -> dict[str, tuple[str, ...]]:
        """For each field the names of its components, which is its own where it is one number at each node."""
        out, axis = {}, 2 if self.times is None else 3
        for name, values in self.fields.items():
            n = values.shape[axis] if values.ndim > axis else 0
            marks = AXES[:n] if 0 < n <= len(AXES) else map(str, range(1, n + 1))
            out[name] = tuple(f"{name}_{mark}" for mark in marks) if n else (name,)
        names = [name for names in out.values() for name in names]
        if len(set(names)) < len(names):
            raise InputError(
                f"the components of the fields are called {', '.join(names)}. Give each field another name."
            )
        return out

    @property
    def layout(self) -> Layout:
        """Where and when the values are."""
        names = tuple(name for names in self.components.values() for name in names)
        n_points = 0 if self.points is None else len(self.points)
        return Layout(
            names=names,
            points=self.points,
            n_interior=n_points,
            times=self.times,
            cells=self.cells,
            vectors=self.vectors,
        )

    @property
    def vectors(self) -> tuple[tuple[str, int], ...]:
        """Fields and the numbers of their components, in the order of the values; () where each is one number."""
        counts = tuple((name, len(names)) for name, names in self.components.items())
        return counts if any(n > 1 for _, n in counts) else ()

    @property
    def values(self) -> np.ndarray:
        """All fields as rows (n, n_values): times slowest, then components, then nodes."""
        n, times = len(self), () if self.times is None else (len(self.times),)
        parts = [values.reshape(n, *times, self.n_nodes, -1) for values in self.fields.values()]
        whole = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)
        return np.ascontiguousarray(np.moveaxis(whole, -1, -2)).reshape(n, -1)

    @property
    def units(self) -> np.ndarray | None:
        """The number of the field that each value belongs to, (n_values,); None where there is one field."""
        if len(self.fields) == 1:
            return None
        counts = [len(names) * self.n_nodes for names in self.components.values()]
        return np.tile(np.repeat(np.arange(len(counts)), counts), 1 if self.times is None else len(self.times))

    @property
    def scalar_rows(self) -> tuple[np.ndarray, np.ndarray | None]:
        """All numbers as rows (n, times x names), times slowest, and which value is of which; None where there is one."""
        values, n = np.stack(list(self.scalars.values()), axis=-1), len(self.scalars)
        n_times = 1 if self.times is None else len(self.times)
        return values.reshape(len(self), -1), np.tile(np.arange(n), n_times) if n > 1 else None

    @property
    def functionals(self) -> dict[str, np.ndarray]:
        """The quantities that are weights of the values at one time, by name: (n_values at one time,)."""
        n_names = sum(map(len, self.components.values()))
        out = {}
        for name, given in self.quantities.items():
            if callable(given):
                continue
            weights = check_finite(check_shape(given, (None,), f"weights of the quantity {name!r}"), name)
            if len(weights) != n_names * self.n_nodes:
                raise InputError(
                    f"the quantity {name!r} has {len(weights)} weights, a run has {n_names} x {self.n_nodes} values"
                    f"{'' if self.times is None else ' at each time'}: {', '.join(self.fields)}."
                )
            out[name] = weights
        return out

    def _all_weights(self, given: Any) -> np.ndarray:
        """Weights of all values (n_values,), from those of the nodes."""
        weights = check_finite(check_shape(given, (None,), "weights"), "weights")
        n_times = 1 if self.times is None else len(self.times)
        n_values = n_times * sum(map(len, self.components.values())) * self.n_nodes
        if len(weights) not in (self.n_nodes, n_values):
            raise InputError(f"there are {len(weights)} weights for {self.n_nodes} nodes. Give one for each.")
        if np.any(weights <= 0):
            raise InputError(f"weight {int(np.argmin(weights))} is {weights.min():g}. Weights are positive.")
        return np.tile(weights, n_values // len(weights))

    def _evaluated(self, name: str, function: Callable[[dict[str, np.ndarray]], float]) -> np.ndarray:
        """A quantity of every run by the user's function of its fields, (n,), or (n, times)."""
        shape = () if self.times is None else (len(self.times),)
        out = np.empty((len(self), *shape))
        for i in range(len(self)):
            try:
                value = np.asarray(unmasked(function({key: values[i] for key, values in self.fields.items()})))
            except Exception as error:
                there = f" A run has the fields {', '.join(self.fields)}." if isinstance(error, KeyError) else ""
                raise InputError(f"the quantity {name!r} cannot be computed of run {i}: {error!r}.{there}") from error
            if value.dtype.kind not in "fiub" or value.shape not in ((), shape):
                raise InputError(
                    f"the quantity {name!r} of run {i} has shape {value.shape} of {value.dtype}. Its function must give one number."
                )
            out[i] = value
        return out


def _check_text(name: str, column: np.ndarray) -> None:
    """Refuse text that was meant to be numbers: some cells of a column, or all of them with a decimal comma."""
    numbers = np.array([number_of(cell) is not None for cell in column])
    if 2 * np.count_nonzero(numbers) >= len(column) and not numbers.all():
        i = int(np.argmin(numbers))
        raise InputError(
            f"the column {name!r} of the parameters has {str(column[i])!r} in run {i}, counted from 0, where others have "
            'numbers. Write a number without a unit, or leave the cell empty and pass missing="drop".'
        )
    commas = [cell for cell in column.tolist() if "," in cell]
    if commas and all(number_of(cell.replace(",", ".", 1)) is not None for cell in column.tolist()):
        raise InputError(
            f"the column {name!r} of the parameters has decimal commas, such as {commas[0]!r}. Write points, or pass a data "
            'frame: pandas.read_csv(file, sep=";", decimal=",").'
        )


def _text_column(name: str, labels: tuple[str, ...]) -> str:
    known = ", ".join(map(repr, labels[:3])) + (", …" if len(labels) > 3 else "")
    return (
        f"the column {name!r} of the parameters is text ({known}). Leave it out, or declare its values and the ranges of "
        f"the others: parameters={{{name!r}: ps.Choice({known}), …}}."
    )


def _table(mus: Any) -> tuple[tuple[str, ...], np.ndarray, dict[str, tuple[str, ...]]]:
    """Names and values (n, n_parameters) of a table of parameters; columns of text as places among their sorted texts."""
    columns = dict(mus) if isinstance(mus, Mapping) else named_columns(mus)
    if columns is None:
        table = _array(mus, "the table of parameters")
        if is_date(table):
            raise dates_refused("the parameters")
        if table.dtype.kind not in "fiub":
            raise InputError(f"the parameters are {table.dtype}, not numbers. Give (n, n_parameters) of numbers.")
        return (), check_shape(table, (None, None), "mus"), {}
    if not columns:
        raise InputError("the table of parameters has no columns.")
    labels: dict[str, tuple[str, ...]] = {}
    numbers: list[np.ndarray] = []
    for name, column in columns.items():
        values = _array(column, f"the column {name!r} of the parameters")
        if values.ndim != 1 or (numbers and len(values) != len(numbers[0])):
            raise InputError(
                f"the column {name!r} of the parameters has shape {values.shape}: one number for each run."
            )
        if is_date(values):
            raise dates_refused(f"the column {name!r} of the parameters")
        if values.dtype.kind == "U":
            _check_text(str(name), values)
        if values.dtype.kind == "O":
            values = _known_numbers(values)
        if values.dtype.kind not in "fiub":
            missing = np.array([is_missing(value) for value in values.tolist()], dtype=bool)
            known, places = np.unique(values[~missing].astype(str), return_inverse=True)
            values = np.full(len(values), np.nan)
            values[~missing] = places
            labels[str(name)] = tuple(known.tolist())
        numbers.append(values.astype(float))
    return tuple(map(str, columns)), np.column_stack(numbers), labels


def _known_numbers(values: np.ndarray) -> np.ndarray:
    """Objects that are numbers or missing, as floats; others as they are."""
    given = [np.nan if is_missing(value) else value for value in values.tolist()]
    return np.array(given, dtype=float) if all(isinstance(value, Real) for value in given) else values


def _array(given: Any, what: str) -> np.ndarray:
    try:
        return np.asarray(unmasked(given))
    except ValueError:  # rows of different lengths
        raise InputError(f"{what} has rows of different lengths. Each run needs the same number of values.") from None


def _sorted(
    given: Any, n: int, points: np.ndarray | None, times: np.ndarray | None
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Fields and numbers by name, with the shapes that points and times ask for."""
    given = dict(given) if isinstance(given, Mapping) else {"u": given}
    first = 1 if times is None else 2  # the axis of the nodes
    fields, scalars, n_nodes = {}, {}, None if points is None else len(points)
    for name, values in given.items():
        array = _array(values, f"the field {name!r}")
        if is_date(array):
            raise dates_refused(f"the field {name!r}")
        if array.dtype.kind not in "fiub":
            raise InputError(
                f"the field {name!r} is {'complex' if array.dtype.kind == 'c' else 'text'}, not real numbers."
            )
        if not array.ndim or len(array) != n:
            raise InputError(
                f"the field {name!r} has shape {array.shape} for {n} runs: the first axis is that of the runs."
            )
        if times is not None and (array.ndim < 2 or array.shape[1] != len(times)):
            raise InputError(
                f"the field {name!r} has shape {array.shape}, there are {len(times)} times: give (n, times, …)."
            )
        if array.ndim == first:
            scalars[str(name)] = array.astype(float)
            continue
        if array.ndim > first and n_nodes is None:
            if array.ndim > first + 1 and times is None:
                raise InputError(
                    f"the field {name!r} has shape {array.shape}: are axes 1 and 2 nodes and components, or times and "
                    "nodes? Give points= (nodes, dimension), or times=."
                )
            n_nodes = array.shape[first]
        if array.ndim > first + 2 or array.shape[first] != n_nodes:
            where = "(n, nodes)" if times is None else "(n, times, nodes)"
            raise InputError(
                f"the field {name!r} has shape {array.shape}, there are {n_nodes} nodes: give {where}, with components last."
            )
        fields[str(name)] = array.astype(float, copy=False)
    if not fields and not scalars:
        raise InputError("there are no fields. Give an array, or a dict of arrays by name.")
    return fields, scalars


def _bad_rows(mus: np.ndarray, columns: Mapping[str, np.ndarray], drop: bool) -> list[int]:
    """Numbers of the runs with values that are not finite, refused unless they are to be dropped."""
    bad: dict[int, str] = {int(i): "the parameters" for i in np.flatnonzero(~np.isfinite(mus).all(axis=1))}
    for name, values in columns.items():
        rows = np.flatnonzero(~np.isfinite(values.reshape(len(values), -1)).all(axis=1))
        bad |= {int(i): name for i in rows if int(i) not in bad}
    if bad and not drop:
        some = ", ".join(f"{i} ({name})" for i, name in sorted(bad.items())[:5])
        more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
        runs, verb = ("run", "has") if len(bad) == 1 else ("runs", "have")
        raise InputError(
            f"{runs} {some}{more}, counted from 0, {verb} values that are missing or not finite. Mend them, or leave the "
            f'{runs} out with missing="drop".'
        )
    return sorted(bad)
