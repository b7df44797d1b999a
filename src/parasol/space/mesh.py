"""The region that somebody's cells cover."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial import Delaunay, KDTree

from parasol.checks import check_finite, check_shape, unmasked
from parasol.errors import InputError
from parasol.space.geometry.domain import Arc, Domain
from parasol.space.interpolation import depths, straight_cells

_NODES = {1: (2, 3), 2: (3, 4, 6, 10, 15), 3: (4,)}  # of the cells that are known, by dimension
_ON = 1e-6  # by which a point may lie outside of its cell, in barycentric coordinates: rounding
_FLAT = 1e-12  # of the cube of its longest side: so little volume has no cell


def check_cells(points: np.ndarray, cells: object) -> np.ndarray:
    """Cells (n_cells, n_nodes of each) of points (n_points, dimension), corners first, or a clear error.

    Quadrilaterals are cut in two.

    >>> check_cells(np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), [[0, 1, 2, 3]]).tolist()
    [[0, 1, 2], [0, 2, 3]]
    """
    cells = np.asarray(unmasked(cells))
    dimension, n_points = points.shape[1], len(points)
    if cells.ndim != 2 or cells.dtype.kind not in "iu" or not len(cells):
        raise InputError(f"cells have shape {cells.shape} of {cells.dtype}: give whole numbers (n_cells, n_nodes).")
    known = _NODES.get(dimension, ())
    if cells.shape[1] not in known:
        hint = " Are they transposed?" if cells.shape[0] in known else ""
        raise InputError(
            f"cells of {cells.shape[1]} nodes in {dimension} dimensions are not known: {known} nodes are.{hint}"
        )
    if cells.min() < 0 or cells.max() >= n_points:
        raise InputError(f"cells name the points {cells.min()} to {cells.max()}, there are 0 to {n_points - 1}.")
    if dimension == 2 and cells.shape[1] == 4:
        cells = np.concatenate([cells[:, [0, 1, 2]], cells[:, [0, 2, 3]]])
    corners = points[cells[:, : dimension + 1]]
    edges = corners[:, 1:] - corners[:, :1]
    flat = np.abs(np.linalg.det(edges)) <= _FLAT * np.max(np.abs(edges), axis=(1, 2)) ** dimension
    if np.any(flat):
        raise InputError(f"{np.count_nonzero(flat)} of {len(cells)} cells have no volume. Do they fit the points?")
    return cells.astype(np.int64)


def rim_of(points: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Faces (k, dimension) that belong to one cell only; in space counterclockwise seen from outside."""
    size = cells.shape[1]
    faces = np.concatenate([np.delete(cells, i, axis=1) for i in range(size)])
    opposite = np.concatenate([cells[:, i] for i in range(size)])
    _, first, count = np.unique(np.sort(faces, axis=1), axis=0, return_index=True, return_counts=True)
    faces, opposite = faces[first[count == 1]], opposite[first[count == 1]]
    if size == 4:
        a, b, c = (points[faces[:, k]] for k in range(3))
        inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), points[opposite] - a) > 0
        faces[inward] = faces[inward][:, [0, 2, 1]]
    return faces


@dataclass(frozen=True, eq=False)
class MeshDomain(Domain):
    """What cells cover; cells with curved edges count with straight ones.

    >>> square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> MeshDomain(square, np.array([[0, 1, 2]])).contains([[0.9, 0.1], [0.1, 0.9]])
    array([ True, False])
    """

    points: np.ndarray  # (n_points, dimension)
    cells: np.ndarray  # (n_cells, n_nodes of each)

    def __post_init__(self):
        points = check_finite(check_shape(self.points, (None, None), "points"), "points")
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "cells", check_cells(points, self.cells))

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """Number of coordinates."""
        return self.points.shape[1]

    @cached_property
    def bounds(self) -> np.ndarray:  # type: ignore[override]
        """(2, dimension)."""
        return np.array([self.points.min(axis=0), self.points.max(axis=0)])

    @cached_property
    def simplices(self) -> np.ndarray:
        """Segments, triangles or tetrahedra (n, dimension + 1) with all nodes of the cells as corners."""
        n = self.cells.shape[1]
        if n == self.dimension + 1:
            return self.cells
        origin, inverse = straight_cells(self.points, self.cells[:1])
        local = (self.points[self.cells[0]] - origin) @ inverse[0].T
        if self.dimension == 1:
            order = np.argsort(local[:, 0])
            inner = np.column_stack([order[:-1], order[1:]])
        else:
            degree = int(np.sqrt(2 * n)) - 1
            local = np.rint(degree * local) / degree  # the nodes of a curved cell lie beside these places
            inner = Delaunay(local).simplices
            corners = local[inner]
            inner = inner[np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1])) > 1e-6]
        return self.cells[:, inner].reshape(-1, self.dimension + 1)

    @cached_property
    def rim(self) -> np.ndarray:
        """Faces (n, dimension) of one simplex only, as numbers of points."""
        return rim_of(self.points, self.simplices)

    def contains(self, points) -> np.ndarray:  # noqa: D102
        return depths(self.check_points(points), self.points, self.cells)[1] >= -_ON

    def project(self, points) -> np.ndarray:
        """The nearest point of the boundary; in space the nearest of its nodes."""
        points = self.check_points(points)
        if self.dimension != 2:
            own = self.points[np.unique(self.rim)]
            return own[KDTree(own).query(points)[1]]
        start, end = self.points[self.rim[:, 0]], self.points[self.rim[:, 1]]
        along = end - start
        out = np.empty_like(points)
        for i, point in enumerate(points):
            t = np.clip(np.sum((point - start) * along, axis=1) / np.sum(along**2, axis=1), 0.0, 1.0)
            nearest = start + t[:, None] * along
            out[i] = nearest[np.argmin(np.sum((nearest - point) ** 2, axis=1))]
        return out

    def normal(self, points) -> np.ndarray:
        """Away from the nearest boundary point, as far as that has a direction: pictures ask for no more."""
        points = self.check_points(points)
        away = points - self.project(points)
        away = np.where(self.contains(points)[:, None], -away, away)
        return away / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-300)

    def _arcs(self) -> tuple[Arc, ...]:
        return tuple(Arc(self.points[edge], closed=False) for edge in self.rim)
