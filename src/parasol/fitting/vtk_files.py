"""Results from VTK files, one for each run, all on one mesh."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from parasol.errors import FileError, InputError, NotInstalled
from parasol.fitting.run_files import matched
from parasol.fitting.tables import Read, chosen, is_names, table_of
from parasol.runtime.layout import AXES

SUFFIXES = (".vtu", ".vtk", ".vtp", ".vts", ".vti", ".vtkhdf")


def of_meshes(paths: list[Path], parameters: Any, wanted: Sequence[str] | None) -> Read:
    """Results of one VTK file for each run."""
    try:
        import pyvista
    except ImportError:
        raise NotInstalled('VTK files are read with pyvista: pip install "parasol-pde[vtk]".') from None
    declared: list[str] = list(parameters) if is_names(parameters) else []
    mus = None if parameters is None or declared else table_of(parameters)
    paths, mus = (paths, None) if mus is None else matched(paths, mus)
    fields: dict[str, list[np.ndarray]] = {}
    points, cells, inside = np.empty((0, 3)), None, []
    for path in paths:
        try:
            mesh = pyvista.read(path)
        except Exception as error:
            raise FileError(f"{str(path)!r} cannot be read by pyvista: {error}.") from None
        if path is paths[0]:
            if not len(mesh.points):
                raise FileError(f"{str(path)!r} has no points, or is no VTK file.")
            points, cells = _mesh_of(mesh)
            names = list(chosen(dict(mesh.point_data), wanted))
            if not names:
                raise FileError(f"{str(path)!r} has no values at its points. Convert cell data to point data first.")
            fields, start = {name: [] for name in names}, np.array(mesh.points, dtype=float)
        gap = np.inf if len(mesh.points) != len(start) else np.max(np.abs(mesh.points - start), initial=0.0)
        if gap > 1e-6 * np.max(np.ptp(start, axis=0)):
            raise FileError(f"{str(path)!r} has another mesh than {str(paths[0])!r}. All runs need the same points.")
        joined = np.asarray(getattr(mesh, "cells", getattr(mesh, "faces", ())))  # nothing: a lattice
        if path is paths[0]:
            first = joined
        elif not np.array_equal(joined, first):
            raise FileError(f"{str(path)!r} joins the points to other cells than {str(paths[0])!r} does.")
        absent = [name for name in fields if name not in mesh.point_data]
        if absent:
            raise FileError(f"{str(path)!r} has no field {absent[0]!r}, {str(paths[0])!r} has.")
        for name, rows in fields.items():
            rows.append(np.array(mesh.point_data[name], dtype=float))
        inside.append({n: v for n, v in dict(mesh.field_data).items() if np.size(v) == 1})
        inside[-1] = {n: float(np.ravel(v)[0]) for n, v in inside[-1].items() if np.asarray(v).dtype.kind in "fiub"}
    if declared:
        silent = [(n, path) for path, own in zip(paths, inside, strict=True) for n in declared if n not in own]
        if silent:
            raise InputError(
                f"{str(silent[0][1])!r} does not say its parameter {silent[0][0]!r}. Give parameters=, a table with a row for each file."
            )
        mus = {n: [own[n] for own in inside] for n in declared}
    if mus is None:
        shared = [n for n in inside[0] if all(n in other for other in inside)]
        mus = {n: [own[n] for own in inside] for n in shared if len({own[n] for own in inside}) > 1}
        if not mus:
            raise InputError(
                "the files do not say their parameters. Give parameters=, a table with a row for each file."
            )
    arrays = {name: _flat(np.array(rows), points) for name, rows in fields.items()}
    return mus, arrays, {"points": points, "cells": cells}


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
