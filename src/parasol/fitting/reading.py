"""Results from the files that people have: tables, NumPy, HDF5, NetCDF and Zarr, folders of VTK files."""

from __future__ import annotations

import glob
import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from parasol.errors import FileError, InputError, NotInstalled
from parasol.fitting.results import Results
from parasol.fitting.run_files import of_runs
from parasol.fitting.tables import Columns, Read, chosen, is_names, read_table, table_of
from parasol.fitting.vtk_files import SUFFIXES, of_meshes

_TABLES = (".csv", ".tsv", ".txt")
_READ = (*_TABLES, ".npy", ".npz", ".h5", ".hdf5", ".nc", ".zarr", *SUFFIXES)
_ABOUT = ("points", "cells", "times", "weights", "groups")  # arrays that are no fields
_RUNS = ("sample", "run", "case", "simulation")  # what the dimension of the runs is called


def read_results(source: Any, parameters: Any = None, *, fields: Sequence[str] | None = None, **about: Any) -> Results:
    """Results from a file, a folder or a pattern of files (`case_*.vtu`), or an xarray dataset.

    - `.csv`: one row for each run; the columns named in `parameters` are the parameters, all others are quantities.
    - several of `.csv`, `.npz`, `.npy`, `.h5`: one file for each run, with its fields as columns or arrays by name, x, y and z (or
      `points`) where their values are; `parameters` is a table, as for VTK files.
    - `.npz`, `.h5`: arrays by name, as `Results` takes them: `mus` or one array for each parameter, `points`, `cells`, `times`,
      `weights`, `groups`, and fields. (`mus`, `solutions`) is one field.
    - `.nc`, `.zarr`, a dataset: the dimensions are sample (or run, case), time, and one or several of the nodes; the
      parameters are the coordinates of the samples. What `answer.to_xarray()` gives is one.
    - `.vtu`, `.vtk`, `.vtkhdf`, …: one file for each run, all on one mesh, read by pyvista; `parameters` is a table with a row
      for each, in the order of the numbers in their names, or matched by a column `file`, or one of numbers
      called `case` or `run`. Where the files say them, as single numbers among their field data, names will do.

    `parameters` is a list of names, or a table: a `.csv` file, a data frame, a dict of columns. `fields` names those that are
    wanted; left out, all are. What else `Results` takes (`points`, `quantities`, `weights`, `groups`, `missing`, …) goes there.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     table = Path(folder) / "runs.csv"
    ...     _ = table.write_text("speed,drag\\n1,2\\n2,8\\n3,18\\n")
    ...     read_results(table, ["speed"])
    <Results of 3 runs at (speed): drag>
    """
    unknown = about.keys() - {"quantities", "weights", "groups", "missing", "points", "cells", "times"}
    if unknown:
        raise TypeError(f"read_results() got an unexpected keyword argument {min(unknown)!r}")
    mus, arrays, known = _read(source, parameters, fields)
    return Results(mus, arrays, **(known | about))


def _read(source: Any, parameters: Any, fields: Sequence[str] | None) -> Read:
    if hasattr(source, "data_vars"):
        return _of_dataset(source, parameters, fields)
    paths = _paths(source)
    if len(paths) > 1 and isinstance(parameters, str | os.PathLike):  # a pattern may mean the table too
        paths = [path for path in paths if path.resolve() != Path(parameters).expanduser().resolve()]
    suffix = paths[0].suffix.lower()
    if suffix in SUFFIXES:
        return of_meshes(paths, parameters, fields)
    if len(paths) > 1 and suffix in (".nc", ".zarr"):
        raise InputError(f"{len(paths)} files of the kind {suffix} are given. Join them: xarray.open_mfdataset(…).")
    if len(paths) > 1 or suffix == ".npy":
        return of_runs(paths, _run_of, parameters, fields)
    if suffix in (".nc", ".zarr"):
        return _of_dataset(_opened(paths[0]), parameters, fields)
    columns = read_table(paths[0]) if suffix in _TABLES else dict(_arrays(paths[0]))
    return _of_arrays(columns, parameters, fields, paths[0])


def _paths(source: Any) -> list[Path]:
    """The files that are meant, in the order of the numbers in their names."""
    if isinstance(source, str | os.PathLike):
        path = Path(source).expanduser()
        if path.is_dir() and path.suffix.lower() != ".zarr":
            paths = [p for p in path.iterdir() if p.suffix.lower() in SUFFIXES]
            paths = paths or [p for p in path.iterdir() if p.suffix.lower() in (".npy", ".npz")]
        else:
            paths = [path] if path.exists() else [Path(p) for p in glob.glob(str(path))]
    elif isinstance(source, Sequence):
        paths = [Path(p).expanduser() for p in source]
    else:
        raise InputError(f"results are read from files or an xarray dataset, got a {type(source).__name__}.")
    if not paths:
        raise FileError(
            f"there are no results at {str(source)!r}. Give a file, a folder, or a pattern such as case_*.vtu."
        )
    kinds = sorted({p.suffix.lower() for p in paths})
    if len(kinds) > 1 or kinds[0] not in _READ:
        raise FileError(
            f"files of the kind {' and '.join(kinds)} cannot be read as results. Known are {', '.join(_READ)}."
        )
    numbers = lambda p: [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", str(p))]  # noqa: E731
    return paths if not isinstance(source, str | os.PathLike) else sorted(paths, key=numbers)


def _arrays(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    """Arrays by name of an .npz or an HDF5 file."""
    try:
        if path.suffix.lower() == ".npz":
            if not zipfile.is_zipfile(path):  # NumPy would advise to trust it as a pickle
                raise ValueError("it is no archive of arrays. Name a file by what it holds: .csv, .npy, .h5")
            with np.load(path, allow_pickle=False) as file:
                yield from ((name, file[name]) for name in file.files)
        else:
            import h5py

            with h5py.File(path) as file:
                yield from ((name, item[()]) for name, item in file.items() if isinstance(item, h5py.Dataset))
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise FileError(f"{str(path)!r} cannot be read as {path.suffix.lower()}: {error}.") from None


def _run_of(path: Path) -> Columns:
    """What the file of one run holds, by name; the one array of an .npy file is u."""
    if path.suffix.lower() in _TABLES:
        return dict(read_table(path))
    if path.suffix.lower() != ".npy":
        return dict(_arrays(path))
    try:
        return {"u": np.load(path, allow_pickle=False)}
    except (OSError, ValueError, EOFError) as error:
        raise FileError(f"{str(path)!r} cannot be read as .npy: {error}.") from None


def _of_arrays(arrays: Columns, parameters: Any, wanted: Sequence[str] | None, path: Path) -> Read:
    about: Columns = {name: arrays.pop(name) for name in _ABOUT if name in arrays and arrays[name].ndim}
    mus = arrays.pop("mus", None)
    if is_names(parameters) and mus is not None:
        if np.shape(mus)[1:] != (len(parameters),):
            raise InputError(
                f"mus in {str(path)!r} has shape {np.shape(mus)}, parameters names {', '.join(parameters)}."
            )
        mus = dict(zip(parameters, mus.T, strict=True))
    elif is_names(parameters):
        absent = [name for name in parameters if name not in arrays]
        if absent:
            raise InputError(f"{str(path)!r} has no {absent[0]!r}. It has: {', '.join(arrays)}.")
        mus = {name: arrays.pop(name) for name in parameters}
    elif parameters is not None:
        mus = table_of(parameters)
    if mus is None:
        raise InputError(
            f"which of {', '.join(arrays)} in {str(path)!r} are parameters? Name them: parameters=[…], or call one array mus."
        )
    if set(arrays) == {"solutions"}:
        arrays = {"u": arrays["solutions"]}
    return mus, chosen(arrays, wanted), about


# ---- xarray ---------------------------------------------------------------------------------------------------------
def _opened(path: Path) -> Any:
    try:
        import xarray
    except ImportError:
        raise NotInstalled(f'{path.suffix} files are read with xarray: pip install "parasol-pde[xarray]".') from None
    try:
        return xarray.open_zarr(path) if path.suffix.lower() == ".zarr" else xarray.open_dataset(path)
    except ImportError as error:
        raise NotInstalled(f"{str(path)!r} cannot be read: {error}") from None
    except (OSError, ValueError) as error:
        raise FileError(f"{str(path)!r} cannot be read as {path.suffix.lower()}: {error}.") from None


def _of_dataset(data: Any, parameters: Any, wanted: Sequence[str] | None) -> Read:
    """Results of an xarray dataset, by the names of its dimensions."""
    named = is_names(parameters)
    runs = next(map(str, data[parameters[0]].dims), None) if named and parameters[0] in data else None
    if runs is None:
        runs = next((name for name in _RUNS if name in data.sizes), None)
    if runs is None:
        known = ", ".join(map(str, data.sizes))
        raise InputError(
            f"which dimension of the dataset ({known}) is that of the runs? Call it sample, or name parameters."
        )
    if parameters is None:
        parameters, named = [str(n) for n, c in data.coords.items() if c.dims == (runs,) and n != runs], True
    absent = [name for name in parameters if name not in data] if named else []
    if absent or len(parameters) == 0:
        what = f"no variable {absent[0]!r}" if absent else f"no coordinates along {runs!r}"
        raise InputError(f"the dataset has {what} to be a parameter. It has: {', '.join(map(str, data.variables))}.")
    mus = {name: data[name].values for name in parameters} if named else table_of(parameters)
    when = next((name for name in ("time", "t") if name in data.sizes), None)
    fields = {str(n): v for n, v in data.data_vars.items() if runs in v.dims and v.dtype.kind in "fiu" and n not in mus}
    fields = chosen(fields, wanted)
    places = dict.fromkeys(d for v in fields.values() for d in v.dims if d not in (runs, when))
    first = [runs] if when is None else [runs, when]
    steady = [n for n, v in fields.items() if when is not None and when not in v.dims]
    if steady:
        raise InputError(
            f"{steady[0]!r} has no {when!r}, other fields do. Name the fields that belong together in fields=."
        )
    arrays = {}
    for name, values in fields.items():
        own = [d for d in places if d in values.dims]
        if own and len(own) < len(places):
            raise InputError(
                f"{name!r} has the dimensions {values.dims}, others have {tuple(places)}. Name fields= of one kind."
            )
        ordered = values.transpose(*first, *own)
        arrays[name] = ordered.values.reshape(*ordered.shape[: len(first)], *([-1] if own else []))
    times = data[when].values if when is not None else None
    if times is not None and times.dtype.kind == "m":
        times = times / np.timedelta64(1, "s")
    return mus, arrays, {"points": _places(data, list(places)), "times": times}


def _places(data: Any, places: list[Any]) -> np.ndarray | None:
    """Points (n_nodes, dimension): coordinates of one dimension of nodes, or all combinations of those of a grid."""
    if len(places) == 1:
        columns = [
            c.values for n, c in data.coords.items() if c.dims == (places[0],) and c.dtype.kind in "fiu" and n != "node"
        ]
        numbers = [c.dtype.kind != "f" and np.array_equal(np.sort(c), c.min() + np.arange(len(c))) for c in columns]
        if not all(numbers):  # beside coordinates, the numbers of nodes are none
            columns = [column for column, numbered in zip(columns, numbers, strict=True) if not numbered]
        return np.column_stack(columns) if columns else None
    if not places or any(place not in data.coords for place in places):
        return None
    grid = np.meshgrid(*[data[place].values for place in places], indexing="ij")
    return np.column_stack([part.ravel() for part in grid])
