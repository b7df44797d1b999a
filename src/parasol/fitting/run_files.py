"""Results from one file for each run: tables and arrays of NumPy, and which row of the parameters belongs to which file."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from parasol.checks import dates_refused, is_date, unmasked
from parasol.errors import FileError, InputError, ParasolWarning
from parasol.fitting.tables import Read, chosen, is_names, table_of
from parasol.runtime.layout import AXES
from parasol.runtime.parameters import named_columns

_FILES = ("file", "filename", "path")  # what a column with the names of files is called
_SAME = ("points", "cells", "times", "weights")  # what all runs have in common
_NUMBERS = ("case", "run", "sample", "simulation", "id")  # and one with the numbers in their names


def of_runs(paths: list[Path], read: Callable[[Path], dict[str, Any]], parameters: Any, wanted: Any) -> Read:
    """Results of one file for each run, which `read` gives as columns by name: x, y, z are the points, all others fields."""
    mus = None if parameters is None or is_names(parameters) else table_of(parameters)
    if mus is None:
        raise InputError(
            f"{len(paths)} files do not say their parameters. Give parameters=, a table with a row for each file."
        )
    paths, mus = matched(paths, mus)
    runs = [read(path) for path in paths]
    first = runs[0]
    axes = [name for name in AXES if name in first] if "points" not in first else []
    same = (*axes, *(name for name in _SAME if name in first))
    fields = chosen({name: first[name] for name in first if name not in same}, wanted)
    if not fields:
        raise FileError(f"{str(paths[0])!r} has no values besides its points.")
    for path, run in zip(paths, runs, strict=True):
        _check_alike(str(path), run, str(paths[0]), first, (*same, *fields))
        for name in same:
            if not _equal(run[name], first[name]):
                raise FileError(
                    f"{str(path)!r} has another {name!r} than {str(paths[0])!r}. All runs need the same points."
                )
    about: dict[str, Any] = {name: first[name] for name in _SAME if name in first}
    if axes:
        about["points"] = np.column_stack([first[name] for name in axes])
    return mus, {name: np.array([run[name] for run in runs], dtype=float) for name in fields}, about


def _check_alike(path: str, run: dict[str, Any], other: str, first: dict[str, Any], wanted: Sequence[str]) -> None:
    """Refuse a run that holds other things than the first, or no numbers where they are wanted."""
    if run.keys() != first.keys():
        name = min(run.keys() ^ first.keys())
        raise FileError(f"{path!r} and {other!r} do not hold the same: {name!r} is in one of them only.")
    for name in wanted:
        values = np.asarray(run[name])
        if is_date(values):
            raise dates_refused(f"{name!r} in {path!r}")
        if values.dtype.kind not in "fiub":
            raise FileError(f"{name!r} in {path!r} are no real numbers. Name those that are wanted in fields=.")
        if values.shape != np.shape(first[name]):
            raise FileError(
                f"{name!r} has shape {values.shape} in {path!r} and {np.shape(first[name])} in {other!r}. "
                "All runs need the same points."
            )


def _equal(mine: np.ndarray, its: np.ndarray) -> bool:
    """Whether places and times are the same but for the digits that a table was written with; cells to the last."""
    if mine.dtype.kind in "iub" and its.dtype.kind in "iub":
        return np.array_equal(mine, its)
    size = np.ptp(its) or np.max(np.abs(its), initial=0.0)  # far from zero, places differ in their last digits
    return bool(np.all(np.abs(mine - its) <= 1e-6 * size))


def matched(paths: list[Path], given: Any) -> tuple[list[Path], Any]:
    """The files in the order of the rows of the table, by a column of their names or numbers where there is one.

    The index of a data frame is one where it has a name.
    """
    table = dict(given) if isinstance(given, Mapping) else named_columns(given)
    if table is None:
        return paths, given
    index = getattr(given, "index", None)
    if isinstance(name := getattr(index, "name", None), str) and name.lower() in (*_FILES, *_NUMBERS):
        table = {name: np.asarray(index)} | table
    column = next((name for name in table if name.lower() in _FILES), None)
    numbered = None if column is not None else next((name for name in table if name.lower() in _NUMBERS), None)
    key = column or numbered
    if numbered is not None and not all(_is_whole(row) for row in np.asarray(table[numbered]).tolist()):
        column, numbered = numbered, None  # run_001, not 001 or 1
    if key is None:
        n_rows = len(next(iter(table.values())))
        if n_rows != len(paths):
            raise InputError(f"there are {len(paths)} files and {n_rows} rows of parameters. Give a row for each file.")
        return paths, table
    known: dict[str, list[Path]] = {}
    for path in paths:
        for name in [_number(path)] if column is None else _names(path):
            known.setdefault(name, []).append(path)
    rows = np.asarray(unmasked(table[key])).tolist()
    whole = [int(row) if column is None and _is_whole(row) else row for row in rows]
    wanted = [Path(str(row)).as_posix() for row in whole]
    wanted = [name if name in known else Path(name).name for name in wanted]  # where it was, on another machine
    wrong = [name for name in wanted if len(known.get(name, ())) != 1]
    if wrong:
        which, do = (
            ("several", "Name each file with its folder")
            if wrong[0] in known
            else ("none", "Add the file, or leave the row out")
        )
        raise FileError(
            f"the column {key!r} of the table of parameters names {wrong[0]!r}, which is {which} of the {len(paths)} "
            f"files. {do}."
        )
    if len(set(wanted)) < len(wanted):
        twice = next(name for name in wanted if wanted.count(name) > 1)
        raise FileError(f"the table of parameters names {twice!r} twice. Give one row for each file.")
    if len(wanted) < len(paths):
        used = {known[name][0] for name in wanted}
        rest = [path.name for path in paths if path not in used]
        some = ", ".join(rest[:3]) + (", …" if len(rest) > 3 else "")
        verb = "is" if len(rest) == 1 else "are"
        text = f"{len(rest)} of {len(paths)} files {verb} not in the table of parameters and left out: {some}."
        warnings.warn(text, ParasolWarning, stacklevel=6)
    left = {name: values for name, values in table.items() if name not in (column, numbered)}
    return [known[name][0] for name in wanted], left


def _is_whole(value: Any) -> bool:
    """Whether it is a whole number, or the text of one."""
    return value.isdecimal() if isinstance(value, str) else isinstance(value, Real) and float(value).is_integer()


def _names(path: Path) -> set[str]:
    """The ends of a path that may name it, with and without its suffix: case_1.vtu, run/case_1.vtu, …"""
    ends = [Path(*path.parts[-k:]) for k in range(1, len(path.parts) + 1)]
    return {each.as_posix() for end in ends for each in (end, end.with_suffix(""))}


def _number(path: Path) -> str:
    """The last number in the name of a file, or of its folder; else its name."""
    return str(int((re.findall(r"\d+", path.with_suffix("").as_posix()) or [-1])[-1]))
