"""Parameters by their names, and parameters and points from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from parasol.cache.disk import missing
from parasol.checks import check_finite
from parasol.errors import FileError, InputError
from parasol.fitting.tables import number_of
from parasol.fitting.tables import read_table as read_columns
from parasol.runtime.surrogate import Surrogate

INPUT_SUFFIXES = (".csv", ".npy")
_MAPPED = 2**24  # bytes of a file above which it is not read as a whole


def named_vector(surrogate: Surrogate, given: Mapping[str, float], *, rng=0) -> np.ndarray:
    """A parameter vector from named numbers (all, or none for the middle of every range) and functions drawn at random.

    The numbers may lie outside their ranges: the surrogate will say so.
    """
    space, layout = surrogate.parameters, surrogate.layout
    mu = space.ordered(given)
    if not space.functions:
        return mu
    if layout.points is None:
        raise InputError("this surrogate knows no nodes to draw functions at. Give whole vectors with --mus.")
    where = {"boundary": layout.points[layout.n_interior :], "domain": layout.points}
    rng = np.random.default_rng(rng)
    rng.random((1, len(space.scalars)))  # as a model does, so that the same seed draws the same functions
    return np.hstack([mu, *[f.distribution.sample(1, where[f.on], rng)[0] for f in space.functions]])


def read_table(path: str | Path, names: Sequence[str], width: int) -> np.ndarray:
    """A table of numbers (n_rows, width): `.npy`, or `.csv` with commas.

    Where a `.csv` begins with a line of names, its columns are found by `names`, whatever their order, and others are
    passed over; without one they are taken as they stand. `names` may be fewer than `width`: then there is no such line.
    """
    path = Path(path)
    if path.suffix.lower() not in INPUT_SUFFIXES:
        raise InputError(f"cannot read {str(path)!r}: give a .csv or a .npy file.")
    if not path.is_file():
        raise missing(path)
    try:
        table = _read_npy(path) if path.suffix.lower() == ".npy" else _read_csv(path, names, width)
    except FileError:
        raise
    except (ValueError, EOFError, MemoryError) as error:  # what the readers of NumPy raise
        raise FileError(f"cannot read {str(path)!r} as a table of numbers: {error}.") from None
    if table.ndim == 1 and len(table) == width:
        table = table[None]
    if table.ndim != 2 or table.shape[1] != width or not len(table):
        listed = f" ({', '.join(names)})" if len(names) == width else ""
        raise FileError(f"{str(path)!r} holds numbers of shape {table.shape}, expected (n_rows, {width}){listed}.")
    return check_finite(table, str(path), error=FileError)


def _read_npy(path: Path) -> np.ndarray:
    table = np.load(path, allow_pickle=False, mmap_mode="r" if path.stat().st_size > _MAPPED else None)
    if table.dtype.kind not in "iuf":
        raise FileError(f"{str(path)!r} holds {table.dtype}, not numbers.")
    return table.astype(float, copy=False)


def _read_csv(path: Path, names: Sequence[str], width: int) -> np.ndarray:
    with path.open(encoding="utf-8-sig") as file:  # spreadsheets begin a file with a mark of its encoding
        lines = [line for line in file if line.strip()]
    if not lines:
        raise FileError(f"{str(path)!r} is empty. Give one row of numbers for each.")
    first = [word.strip() for word in lines[0].split(",")]
    if None not in map(number_of, first):
        return np.loadtxt(lines, delimiter=",", ndmin=2)
    missing = [name for name in names if name not in first]
    if missing or len(names) != width:
        wanted = f"it has no column {missing[0]!r}" if missing else f"give {width} columns without names"
        raise FileError(f"{str(path)!r} begins with the names {', '.join(first)}: {wanted}.")
    if len(lines) < 2:
        raise FileError(f"{str(path)!r} has names but no rows. Give one row of numbers for each.")
    columns = read_columns(path)
    return np.column_stack([columns[name].astype(float) for name in names])
