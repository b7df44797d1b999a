"""Results from VTK files, one for each run, all on one mesh."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from parasol.errors import FileError, InputError, NotInstalled
from parasol.fitting.results import Results
from parasol.fitting.tables import chosen, table_of
from parasol.runtime.layout import AXES

SUFFIXES = (".vtu", ".vtk", ".vtp", ".vts", ".vti", ".vtkhdf")
_FILES = ("file", "filename", "path")  # what a column with the names of files is called


def of_meshes(paths: list[Path], parameters: Any, wanted: Sequence[str] | None, missing: str) -> Results:
    """Results of one VTK file for each run."""
    try:
        import pyvista
    except ImportError:
        raise NotInstalled('VTK files are read with pyvista: pip install "parasol-pde[vtk]".') from None
    mus = None if parameters is None else table_of(parameters)
    if isinstance(mus, dict):
        paths, mus = _matched(paths, mus)
    fields: dict[str, list[np.ndarray]] = {}
    points, cells, inside = np.empty((0, 3)), None, []
    for path in paths:
        try:
            mesh = pyvista.read(path)
        except Exception as error:
            raise FileError(f"{str(path)!r} cannot be read by pyvista: {error}.") from None
        if path is paths[0]:
            points, cells = _mesh_of(mesh)
            names = list(chosen(dict(mesh.point_data), wanted))
            if not names:
                raise FileError(f"{str(path)!r} has no values at its points. Convert cell data to point data first.")
            fields, start = {name: [] for name in names}, np.array(mesh.points, dtype=float)
        gap = np.inf if len(mesh.points) != len(start) else np.max(np.abs(mesh.points - start), initial=0.0)
        if gap > 1e-6 * np.max(np.ptp(start, axis=0)):
            raise FileError(f"{str(path)!r} has another mesh than {str(paths[0])!r}. All runs need the same points.")
        absent = [name for name in fields if name not in mesh.point_data]
        if absent:
            raise FileError(f"{str(path)!r} has no field {absent[0]!r}, {str(paths[0])!r} has.")
        for name, rows in fields.items():
            rows.append(np.array(mesh.point_data[name], dtype=float))
        inside.append({n: float(v[0]) for n, v in dict(mesh.field_data).items() if np.size(v) == 1 and np.isreal(v[0])})
    if mus is None:
        shared = [n for n in inside[0] if all(n in other for other in inside)]
        mus = {n: [own[n] for own in inside] for n in shared if len({own[n] for own in inside}) > 1}
        if not mus:
            raise InputError(
                "the files do not say their parameters. Give parameters=, a table with a row for each file."
            )
    return Results(
        mus, {n: _flat(np.array(rows), points) for n, rows in fields.items()}, points, cells, missing=missing
    )


def _matched(paths: list[Path], table: dict[str, Any]) -> tuple[list[Path], dict[str, Any]]:
    """The files in the order of the rows of the table, by a column of their names where there is one."""
    column = next((name for name in _FILES if name in table), None)
    if column is None:
        n_rows = len(next(iter(table.values())))
        if n_rows != len(paths):
            raise InputError(f"there are {len(paths)} files and {n_rows} rows of parameters. Give a row for each file.")
        return paths, table
    by_name = {path.name: path for path in paths} | {path.stem: path for path in paths}
    wanted = [Path(str(name)).name for name in table[column]]
    absent = [name for name in wanted if name not in by_name]
    if absent:
        raise FileError(f"the table of parameters names {absent[0]!r}, which is none of the {len(paths)} files.")
    return [by_name[name] for name in wanted], {n: v for n, v in table.items() if n != column}


def _mesh_of(mesh: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """Points (n, dimension), without coordinates that are the same everywhere, and triangles or tetrahedra."""
    points = np.array(mesh.points, dtype=float)
    varies = np.ptp(points, axis=0) > 1e-9 * np.max(np.ptp(points, axis=0))
    n = int(varies.sum())
    grid = mesh.cast_to_unstructured_grid()
    known = {1: (3,), 2: (22, 5), 3: (10,)}.get(
        n, ()
    )  # VTK's numbers of lines, triangles (six nodes, three), tetrahedra
    for _ in range(2):
        for kind in known:
            if set(grid.cells_dict) == {kind}:
                return points[:, varies], np.asarray(grid.cells_dict[kind])
        grid = grid.triangulate()
    return points[:, varies], None


def _flat(values: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Vectors of a plane mesh without their third component, which is zero."""
    if values.ndim == 3 and values.shape[2] == len(AXES) and points.shape[1] == 2 and not np.any(values[:, :, 2]):
        return values[:, :, :2]
    return values
