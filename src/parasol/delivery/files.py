"""Fields at the nodes as a file, steady or in time: text, NumPy arrays, or VTK's grids for ParaView."""

from __future__ import annotations

import base64
import io
import zipfile
from collections.abc import Container, Mapping
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np
from scipy.spatial import Delaunay, QhullError

from parasol.cache.disk import check_output, replacing
from parasol.errors import InputError
from parasol.pde.evolution import Evolution
from parasol.pde.steady import Solution
from parasol.space.geometry.domain import Domain
from parasol.space.mesh import MeshDomain
from parasol.space.nodes import Nodes

FIELD_SUFFIXES = (".csv", ".npy", ".npz", ".vtkhdf", ".vtu")
GRID_SUFFIXES = (".vtkhdf", ".vtu")  # of one parameter on a mesh
_VTK_TYPES = {1: 3, 2: 5, 3: 10}  # VTK_LINE, VTK_TRIANGLE, VTK_TETRA
_FLAT = 1e-4  # of the volume of the cube over the longest edge: thinner cells are rounding, not geometry
_BULGE = 0.25  # of its length: how far the middle of an edge between boundary nodes may lie outside, curvature included


def write_field(solution: Solution | Evolution, path: str | Path) -> Path:
    """Write the values at the nodes: `.csv`, `.npy`, `.npz`, `.vtkhdf` or `.vtu`, by the suffix of the path.

    `.csv` is a table with a header and 17 significant digits, one row per node: coordinates, then one column per unknown
    (x,y,p,q). In time one row per stored time and node, time first and slowest (t,x,y,u). `.npy` is the same table
    as an array. `.npz` repeats nothing: `points` (n_nodes, dimension), each unknown by its name (n_nodes,), and in time
    `times` (n_times,) and each unknown (n_times, n_nodes). `.vtkhdf` is an unstructured grid for ParaView, in time an
    animated one; `.vtu` one of a single moment. Fields of several components are vectors there. The file appears complete
    or not at all.
    """
    path = check_output(path, FIELD_SUFFIXES)
    write = {".csv": _write_csv, ".npy": _write_npy, ".npz": _write_npz, ".vtkhdf": _write_vtkhdf, ".vtu": _write_vtu}[
        path.suffix.lower()
    ]
    with replacing(path) as temporary:
        write(solution, temporary)
    return path


def table_of(solution: Solution | Evolution) -> tuple[list[str], np.ndarray]:
    """Names and columns: the time where there is one, coordinates, unknowns; time slowest."""
    problem, points = solution.model.problem, solution.model.nodes.points
    names, columns = [*map(str, problem.coordinates), *solution.fields], [points]
    times = _times(solution)
    if times is not None:
        names = [str(problem.time), *names]
        columns = [np.repeat(times, len(points)), np.tile(points, (len(times), 1))]
    return names, np.column_stack([*columns, *[values.ravel() for values in solution.fields.values()]])


def _times(solution: Solution | Evolution) -> np.ndarray | None:
    """The times (n_times,) of an evolution, the one time of a moment of it, None of a steady solution."""
    if isinstance(solution, Evolution):
        return solution.times
    return None if solution.time is None else np.array([float(solution.time)])


def _write_csv(solution: Solution | Evolution, path: Path) -> None:
    names, table = table_of(solution)
    np.savetxt(path, table, delimiter=",", header=",".join(names), comments="", fmt="%.17g", encoding="utf-8")


def _write_npy(solution: Solution | Evolution, path: Path) -> None:
    np.save(path, table_of(solution)[1], allow_pickle=False)


def _write_npz(solution: Solution | Evolution, path: Path) -> None:
    arrays = {"points": solution.model.nodes.points}
    times = _times(solution)
    if times is not None:
        arrays["times"] = times
    for name, values in solution.fields.items():
        arrays[free_name(name, arrays)] = values if times is None else values.reshape(len(times), -1)
    write_arrays(arrays, path)


def free_name(name: str, *taken: Container[str]) -> str:
    """The name, with as many marks as it needs to differ from those that are taken.

    >>> free_name("mus", ["mus", "mus_"]), free_name("u", ["mus"])
    ('mus__', 'u')
    """
    while any(name in others for others in taken):
        name += "_"
    return name


def write_arrays(arrays: Mapping[str, np.ndarray], path: Path) -> None:
    """Arrays by name as an `.npz`: not np.savez, which keeps names such as "file" for itself."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def _write_vtkhdf(solution: Solution | Evolution, path: Path) -> None:
    import h5py  # a quarter of a second that only this needs

    nodes = solution.model.nodes
    simplices = cells(nodes)
    points = np.zeros((nodes.n_nodes, 3))
    points[:, : nodes.dimension] = nodes.points
    arrays = {
        "NumberOfPoints": np.array([len(points)], dtype=np.int64),
        "NumberOfCells": np.array([len(simplices)], dtype=np.int64),
        "NumberOfConnectivityIds": np.array([simplices.size], dtype=np.int64),
        "Points": points,
        "Connectivity": simplices.ravel().astype(np.int64),
        "Offsets": np.arange(0, simplices.size + 1, nodes.dimension + 1, dtype=np.int64),
        "Types": np.full(len(simplices), _VTK_TYPES[nodes.dimension], dtype=np.uint8),
    }
    arrays |= {f"PointData/{name}": values for name, values in _point_data(solution).items()}
    for parameter, value in zip(solution.model.parameters.scalars, solution.mu, strict=False):
        arrays[f"FieldData/{parameter.name}"] = np.array([value])
    if isinstance(solution, Evolution):
        arrays |= _vtkhdf_steps(solution)
    # in memory first: HDF5 complains on its own account, past every handler, and does not survive a full disk
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        root = file.create_group("VTKHDF")
        root.attrs["Version"] = np.array([2, 0], dtype=np.int64)
        root.attrs.create("Type", b"UnstructuredGrid", dtype=h5py.string_dtype("ascii", len("UnstructuredGrid")))
        for name, array in arrays.items():
            root.create_dataset(name, data=array)
        if isinstance(solution, Evolution):
            root["Steps"].attrs["NSteps"] = np.int64(len(solution.times))
    path.write_bytes(buffer.getbuffer())


def _vtkhdf_steps(solution: Evolution) -> dict[str, np.ndarray]:
    """Where each time finds its data: all the same mesh and parameters, each its own part of the values."""
    n_times, n_nodes = len(solution.times), solution.model.n_nodes
    same, each = np.zeros(n_times, dtype=np.int64), np.arange(n_times, dtype=np.int64) * n_nodes
    arrays = {
        "Values": solution.times,
        "PartOffsets": same,
        "NumberOfParts": np.ones(n_times, dtype=np.int64),
        "PointOffsets": same,
        "CellOffsets": same[:, None],
        "ConnectivityIdOffsets": same[:, None],
    }
    arrays |= {f"PointDataOffsets/{name}": each for name in _point_data(solution)}
    for parameter in solution.model.parameters.scalars:
        arrays[f"FieldDataOffsets/{parameter.name}"] = same
        arrays[f"FieldDataSizes/{parameter.name}"] = np.ones((n_times, 2), dtype=np.int64)  # components, tuples
    return {f"Steps/{name}": array for name, array in arrays.items()}


def _point_data(solution: Solution | Evolution) -> dict[str, np.ndarray]:
    """Values (n_times * n_nodes,) of each unknown; of a field of several components (n_times * n_nodes, components), at least three."""
    parts = [values.ravel() for values in solution.fields.values()]
    vectors = getattr(solution.model, "vectors", ()) or [(name, 1) for name in solution.fields]
    out, start = {}, 0
    for name, n in vectors:
        own = np.column_stack(parts[start : start + n])
        out[name] = parts[start] if n == 1 else np.pad(own, ((0, 0), (0, max(0, 3 - n))))
        start += n
    return out


def _write_vtu(solution: Solution | Evolution, path: Path) -> None:
    if isinstance(solution, Evolution):
        raise InputError("a .vtu file holds one moment. Write .vtkhdf, which holds all, or take solution.at(t).")
    nodes, simplices = solution.model.nodes, cells(solution.model.nodes)
    points = np.pad(nodes.points, ((0, 0), (0, 3 - nodes.dimension)))
    kinds = np.full(len(simplices), _VTK_TYPES[nodes.dimension], dtype=np.uint8)
    scalars = zip(solution.model.parameters.scalars, solution.mu, strict=False)
    grid = [
        ("FieldData", [(p.name, np.array([value])) for p, value in scalars]),
        (f'Piece NumberOfPoints="{len(points)}" NumberOfCells="{len(simplices)}"', []),
        ("PointData", list(_point_data(solution).items())),
        ("Points", [("Points", points)]),
        (
            "Cells",
            [
                ("connectivity", simplices.ravel()),
                ("offsets", np.arange(1, len(simplices) + 1) * simplices.shape[1]),
                ("types", kinds),
            ],
        ),
    ]
    head = '<VTKFile type="UnstructuredGrid" version="1.0" byte_order="LittleEndian" header_type="UInt64"><UnstructuredGrid>'
    text = [head]
    for tag, arrays in grid:
        text += [f"<{tag}>", *[_data_array(name, values, tag == "FieldData") for name, values in arrays]]
        text += [] if tag.startswith("Piece") else [f"</{tag}>"]
    path.write_text("\n".join([*text, "</Piece>", "</UnstructuredGrid></VTKFile>", ""]), encoding="utf-8")


def _data_array(name: str, values: np.ndarray, tuples: bool) -> str:
    """An array in the words of VTK's XML: its length in bytes and its bytes, as base 64."""
    plain = {"f": ("Float64", "<f8"), "i": ("Int64", "<i8"), "u": ("UInt8", "u1")}[values.dtype.kind]
    raw = np.ascontiguousarray(values, dtype=plain[1]).tobytes()
    counts = f' NumberOfComponents="{values.shape[1]}"' if values.ndim == 2 else ""
    counts += f' NumberOfTuples="{len(values)}"' if tuples else ""
    text = base64.b64encode(len(raw).to_bytes(8, "little") + raw).decode("ascii")
    return f'<DataArray type="{plain[0]}" Name={quoteattr(name)}{counts} format="binary">{text}</DataArray>'


# ---- cells ---------------------------------------------------------------------------------------------------------
def cells(nodes: Nodes) -> np.ndarray:
    """Segments, triangles or tetrahedra between the nodes that fill the domain: (n_cells, dimension + 1) indices.

    Delaunay cells whose centroid lies in the domain; none reaches across a hole, a notch or the seam of a period.

    >>> from parasol.space.geometry.primitives import Box
    >>> from parasol.space.nodes import lattice
    >>> cells(lattice(Box((0, 0), (1, 1)), 3)).shape
    (8, 3)
    """
    _, _, simplices = wrapped_cells(nodes)
    return simplices[(simplices < nodes.n_nodes).all(axis=1)]


def wrapped_cells(nodes: Nodes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes and their images beyond periodic faces (m, dimension), the node each is an image of (m,), and cells of all.

    Without periodic axes these are the nodes themselves, 0..n-1, and `cells(nodes)`. With them the cells cover the
    whole box and a little more, which is what a picture wants.
    """
    points, owner = nodes.points, np.arange(nodes.n_nodes)
    reach = 4 * float(nodes.spacing.max())
    (lower, upper), periods = nodes.domain.bounds, nodes.domain.periods
    for axis in np.flatnonzero(periods > 0):
        step = periods[axis] * np.eye(nodes.dimension)[axis]
        low, high = points[:, axis] < lower[axis] + reach, points[:, axis] > upper[axis] - reach
        points = np.concatenate([points, points[low] + step, points[high] - step])
        owner = np.concatenate([owner, owner[low], owner[high]])
    return points, owner, triangulate(points, nodes.domain, on_boundary=owner >= nodes.n_interior)


def triangulate(points: np.ndarray, domain: Domain, *, on_boundary: np.ndarray) -> np.ndarray:
    """Delaunay cells of points in a domain that lie in it: (n_cells, dimension + 1).

    `on_boundary` (n,) marks boundary points: an edge between two of them must not leave the domain by more than
    the curvature of the boundary explains.
    """
    dimension = points.shape[1]
    if isinstance(domain, MeshDomain) and len(points) == len(domain.points):  # somebody's own cells
        return _positive(domain.simplices.copy(), points)
    if dimension == 1:
        order = np.argsort(points[:, 0])
        simplices = np.column_stack([order[:-1], order[1:]])
    else:
        try:
            simplices = Delaunay(points).simplices.astype(np.int64)
        except QhullError:
            raise InputError(
                f"{len(points)} nodes cannot be joined to cells in {dimension} dimensions. Use more nodes."
            ) from None
    simplices, corners = _positive(simplices, points), points[simplices]
    signed = np.linalg.det(corners[:, 1:] - corners[:, :1])
    pairs = [(i, j) for i in range(dimension + 1) for j in range(i)]
    longest = np.max([np.linalg.norm(corners[:, i] - corners[:, j], axis=1) for i, j in pairs], axis=0)
    keep = np.abs(signed) > _FLAT * longest**dimension
    simplices, corners = simplices[keep], corners[keep]
    simplices = simplices[domain.contains(corners.mean(axis=1))]
    return simplices[~_crossing(points, simplices, domain, on_boundary)]


def _positive(simplices: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The cells with the orientation that VTK wants; Delaunay gives either."""
    corners = points[simplices]
    signed = np.linalg.det(corners[:, 1:] - corners[:, :1])
    simplices[signed < 0, -2:] = simplices[signed < 0, :-3:-1]
    return simplices


def _crossing(points: np.ndarray, simplices: np.ndarray, domain: Domain, on_boundary: np.ndarray) -> np.ndarray:
    """(n_cells,) bool: cells with an edge from boundary to boundary through the outside."""
    size = simplices.shape[1]
    pairs = np.array([(i, j) for i in range(size) for j in range(i)])
    edges = np.sort(simplices[:, pairs], axis=2)  # (n_cells, n_edges, 2)
    where = np.nonzero(on_boundary[edges].all(axis=2))
    unique, inverse = np.unique(edges[where], axis=0, return_inverse=True)
    start, end = points[unique[:, 0]], points[unique[:, 1]]
    outside = (
        domain.distance((start + end) / 2) > _BULGE * np.linalg.norm(end - start, axis=1)
        if len(unique)
        else np.zeros(0, bool)
    )
    crossing = np.zeros(edges.shape[:2], dtype=bool)
    crossing[where] = outside[inverse.ravel()]
    return np.asarray(crossing.any(axis=1))
