"""Tables of runs: a line of names, a line for each run."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from parasol.errors import FileError, InputError

Field = TypeVar("Field")
Columns = dict[str, np.ndarray]
Read = tuple[Any, Columns, dict[str, Any]]  # parameters, fields, and what else `Results` takes


def read_table(path: Path) -> dict[str, np.ndarray]:
    """The columns of a table by name: numbers, or text where they are none."""
    text = _text(path)
    lines = [line for line in text.splitlines() if line.strip()]
    mark = next((m for m in ("\t", ";", ",") if lines and m in lines[0]), ",")
    rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=mark)]
    if len(rows) < 2:
        raise FileError(f"{str(path)!r} has no rows. It needs a line of names, and a line for each run.")
    names, rows = rows[0], rows[1:]
    if all(number_of(name) is not None for name in names):
        raise FileError(f"{str(path)!r} starts with numbers. Its first line must name the columns, such as a,k,drag.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise FileError(f"{str(path)!r} has two columns {twice!r}. Name each column once.")
    for i, row in enumerate(rows):
        if len(row) != len(names):
            raise FileError(f"row {i + 1} of {str(path)!r} has {len(row)} cells, its first line names {len(names)}.")
    out = {}
    for name, column in zip(names, zip(*rows, strict=True), strict=True):
        numbers = [number_of(cell) if cell else float("nan") for cell in column]
        commas = [cell for cell, number in zip(column, numbers, strict=True) if number is None and "," in cell]
        if commas and all(
            number is not None or number_of(cell.replace(",", ".")) is not None
            for cell, number in zip(column, numbers, strict=True)
        ):
            raise FileError(
                f"{str(path)!r} has numbers with commas in the column {name!r}, such as {commas[0]}: whether they are decimal "
                "is not known. Write decimal points."
            )
        out[name] = np.array(column) if None in numbers else np.array(numbers, dtype=float)
    return out


def number_of(cell: str) -> float | None:
    """The number that a text is; None where it is none."""
    try:
        return None if "_" in cell else float(cell)  # Python takes 1_2 for 12
    except ValueError:
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise FileError(f"{str(path)!r} is no text in UTF-8. Is it a table?") from None
    except OSError as error:
        raise FileError(f"{str(path)!r} cannot be read: {error.strerror}.") from None


def table_of(parameters: Any) -> Any:
    """The table of parameters that a file holds, or that is given."""
    if isinstance(parameters, str | os.PathLike):
        path = Path(parameters).expanduser()
        if not path.is_file():
            raise FileError(
                f"there is no table of parameters at {str(parameters)!r}. Give a .csv with a row for each run."
            )
        return read_table(path)
    return parameters


def is_names(parameters: Any) -> bool:
    """Whether these are names of columns, not a table of its own."""
    return isinstance(parameters, list | tuple) and all(isinstance(name, str) for name in parameters)


def chosen(fields: Mapping[str, Field], wanted: Sequence[str] | None) -> dict[str, Field]:
    """The fields that are wanted, by name; all where nothing is said."""
    if wanted is None:
        return dict(fields)
    absent = [name for name in wanted if name not in fields]
    if absent:
        raise InputError(f"there is no field {absent[0]!r}. There are: {', '.join(map(str, fields))}.")
    return {name: fields[name] for name in wanted}
