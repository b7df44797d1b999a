"""Solids given by a closed triangulated surface, as an STL or OBJ file has it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from parasol.checks import check_finite, check_shape
from parasol.errors import FileError, InputError, NotInstalled
from parasol.space.geometry.domain import Domain


@dataclass(frozen=True, eq=False)
class Surface(Domain):
    """The solid inside a closed triangulated surface.

    `mesh` is the path of an STL or OBJ file, a `trimesh.Trimesh`, or a pair of vertices (n, 3) and triangles (m, 3).
    Needs `pip install 'parasol-pde[geometry]'`.

    >>> corners = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    >>> simplex = Surface((corners, [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]))
    >>> round(6 * simplex.volume(), 12), simplex.distance([[0.1, 0.2, 0.2], [0.2, 0.2, -3.0]]).round(12).tolist()
    (1.0, [-0.1, 3.0])
    """

    mesh: Any

    dimension = 3

    def __post_init__(self):
        _tools()
        vertices, triangles = _closed(self.mesh)
        # only the arrays stay: they are all that is needed, and they travel between processes
        object.__setattr__(self, "mesh", (vertices, triangles))

    @property
    def vertices(self) -> np.ndarray:
        """Corners of the triangles (n_vertices, 3)."""
        return self.mesh[0]

    @property
    def triangles(self) -> np.ndarray:
        """Numbers of the vertices of each triangle (n_triangles, 3), counterclockwise seen from outside."""
        return self.mesh[1]

    @cached_property
    def bounds(self) -> np.ndarray:
        return np.array([self.vertices.min(axis=0), self.vertices.max(axis=0)])

    @cached_property
    def _face_normals(self) -> np.ndarray:
        normals = _crosses(self.vertices, self.triangles)
        return normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)

    def _nearest(self, points) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Signed distance (n,), nearest triangle (n,) and nearest point (n, 3)."""
        points = self.check_points(points)
        if not len(points):
            return np.zeros(0), np.zeros(0, dtype=int), points.copy()
        igl, _ = _tools()
        # the winding number tells inside from outside even beside sharp edges, where pseudonormals are fragile
        kind = igl.SIGNED_DISTANCE_TYPE_WINDING_NUMBER
        signed, face, foot, _ = igl.signed_distance(np.ascontiguousarray(points), *self.mesh, sign_type=kind)
        return np.atleast_1d(signed), np.atleast_1d(face), np.reshape(foot, points.shape)

    def contains(self, points) -> np.ndarray:
        return self._nearest(points)[0] <= 1e-12 * self.size

    def distance(self, points) -> np.ndarray:
        return self._nearest(points)[0]

    def project(self, points) -> np.ndarray:
        return self._nearest(points)[2]

    def normal(self, points) -> np.ndarray:
        return self._face_normals[self._nearest(points)[1]]

    def volume(self) -> float:
        """Volume by the divergence theorem."""
        return _volume(self.vertices, self.triangles)

    def _cloud(self, spacing: float, rng: np.random.Generator) -> np.ndarray:
        """Lattices on the triangles, their edges and corners included: (m, 3)."""
        corners = self.vertices[self.triangles]
        edges = np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2)
        # a lattice with `parts` steps per side has no two neighbours further apart than the longest side / parts
        parts = np.maximum(1, np.ceil(4 * edges.max(axis=1) / spacing)).astype(int)
        cloud = []
        for count in np.unique(parts):
            i, j = np.meshgrid(np.arange(count + 1), np.arange(count + 1), indexing="ij")
            inside = (i + j) <= count
            weights = np.stack([i[inside], j[inside], (count - i - j)[inside]], axis=1) / count
            cloud.append(np.einsum("kc,tcd->tkd", weights, corners[parts == count]).reshape(-1, 3))
        points = np.concatenate(cloud)
        # neighbouring triangles share the points on their common edge
        _, first = np.unique(np.round(points / (1e-9 * self.size)), axis=0, return_index=True)
        return points[np.sort(first)]


def _tools():
    """The modules igl and trimesh, or what to install."""
    try:
        import igl
        import trimesh
    except ImportError:
        raise NotInstalled(
            "surfaces need libigl and trimesh. Install them: pip install 'parasol-pde[geometry]'."
        ) from None
    return igl, trimesh


def _closed(given) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and outward triangles of a closed surface, or a clear error."""
    _, trimesh = _tools()
    if isinstance(given, str | Path):
        name = str(given)
        if not Path(given).is_file():
            raise FileError(f"there is no file {name!r}. Give the path of an STL or OBJ file.")
        try:
            mesh = trimesh.load(given, force="mesh")
        except Exception:  # readers fail in their own many ways, and name the last one they tried, not the reason
            raise FileError(
                f"{name!r} is not a readable STL or OBJ file: it is damaged, cut off or of another format. Export it again."
            ) from None
    elif isinstance(given, trimesh.Trimesh):
        name, mesh = "the mesh", given
    elif isinstance(given, tuple | list) and len(given) == 2:
        name = "the mesh"
        vertices = check_finite(check_shape(given[0], (None, 3), "vertices"), "vertices")
        triangles = check_shape(given[1], (None, 3), "triangles").astype(int)
        if len(triangles) and not (triangles.min() >= 0 and triangles.max() < len(vertices)):
            raise InputError(f"triangles name vertices outside 0 .. {len(vertices) - 1}.")
        mesh = trimesh.Trimesh(vertices, triangles, process=True)
    else:
        raise InputError(
            f"a surface cannot be made from a {type(given).__name__}. Give a file, a mesh, or (vertices, triangles)."
        )
    if not isinstance(mesh, trimesh.Trimesh) or not len(mesh.faces):
        raise InputError(f"{name} holds no triangles. Give an STL or OBJ file with a closed surface.")
    mesh = mesh.copy()
    mesh.merge_vertices()
    if not np.isfinite(mesh.vertices).all():
        raise InputError(f"{name} has vertices that are not finite numbers. Repair the surface first.")
    if not mesh.is_watertight:
        raise InputError(
            f"{name} is not a closed surface: it has holes or loose edges. Repair it, for example with trimesh.repair."
        )
    vertices = np.array(mesh.vertices, dtype=float)
    return vertices, _oriented(vertices, np.array(mesh.faces, dtype=np.int64), name)


def _oriented(vertices: np.ndarray, triangles: np.ndarray, name: str) -> np.ndarray:
    """Triangles whose normals point out of the solid, each closed component for itself: (n_triangles, 3).

    A component inside an even number of others bounds solid, one inside an odd number a cavity, whichever way it faced.
    """
    igl, _ = _tools()
    triangles, label = igl.bfs_orient(triangles)
    triangles = np.ascontiguousarray(triangles, dtype=np.int64)
    members = [np.flatnonzero(label == k) for k in range(label.max() + 1)]
    for rows in members:
        corners = vertices[triangles[rows]]
        extent = float(np.ptp(corners.reshape(-1, 3), axis=0).max())
        volume = _volume(vertices, triangles[rows])
        if abs(volume) <= 1e-12 * extent**3:
            raise InputError(f"{name} encloses no volume. Give the surface of a solid.")
        if volume < 0:
            triangles[rows] = triangles[rows, ::-1]
    depth = np.zeros(len(members), dtype=int)
    bounds = [
        (vertices[triangles[rows]].min(axis=(0, 1)), vertices[triangles[rows]].max(axis=(0, 1))) for rows in members
    ]
    for i, j in permutations(range(len(members)), 2):
        if np.any(bounds[i][0] > bounds[j][1]) or np.any(bounds[i][1] < bounds[j][0]):
            continue
        inner, outer = triangles[members[i]], triangles[members[j]]
        if _pierced(vertices, inner, outer):
            raise InputError(
                f"{name} has pieces that touch or cut each other. Make each a Surface and join them: Surface(a) | Surface(b)."
            )
        depth[i] += igl.winding_number(vertices, outer, vertices[inner[:1]].mean(axis=1))[0] > 0.5
    cavity = depth[label] % 2 == 1
    triangles[cavity] = triangles[cavity, ::-1]
    return triangles


def _pierced(vertices: np.ndarray, one: np.ndarray, other: np.ndarray) -> bool:
    """Whether an edge of one closed surface meets a triangle of another (Möller and Trumbore 1997)."""
    edges = np.unique(np.sort(one[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
    start, along = vertices[edges[:, 0]], vertices[edges[:, 1]] - vertices[edges[:, 0]]
    a, b, c = np.moveaxis(vertices[other], 1, 0)
    middle = (a + b + c) / 3
    radius = np.sqrt(np.max([np.sum((p - middle) ** 2, axis=1) for p in (a, b, c)], axis=0))
    reach = np.linalg.norm(along, axis=1) / 2 + radius.max()
    near = KDTree(middle).query_ball_point(start + along / 2, reach * (1 + 1e-9))
    edge = np.repeat(np.arange(len(edges)), [len(rows) for rows in near])
    triangle = np.array([row for rows in near for row in rows], dtype=int)
    apart = np.all(edges[edge][:, :, None] != other[triangle][:, None, :], axis=(1, 2))  # a shared corner is no cut
    edge, triangle = edge[apart], triangle[apart]
    p, q, d, s = b[triangle] - a[triangle], c[triangle] - a[triangle], along[edge], start[edge] - a[triangle]
    across = np.cross(d, q)
    determinant = np.sum(p * across, axis=1)
    lengths = np.linalg.norm(p, axis=1) * np.linalg.norm(q, axis=1) * np.linalg.norm(d, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        u = np.sum(s * across, axis=1) / determinant
        v = np.sum(d * np.cross(s, p), axis=1) / determinant
        t = np.sum(q * np.cross(s, p), axis=1) / determinant
        inside = np.min([u, v, 1 - u - v, t, 1 - t], axis=0) >= -1e-9
    return bool(np.any(inside & (np.abs(determinant) > 1e-12 * lengths)))


def _crosses(vertices: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Normals of the triangles, as long as twice their area: (n_triangles, 3)."""
    a, b, c = np.moveaxis(vertices[triangles], 1, 0)
    return np.cross(b - a, c - a)


def _volume(vertices: np.ndarray, triangles: np.ndarray) -> float:
    centered = vertices - vertices.mean(axis=0)
    return float(np.sum(centered[triangles[:, 0]] * _crosses(centered, triangles)) / 6)
