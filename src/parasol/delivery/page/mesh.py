"""What the page colours: cells between the nodes, with and without a domain that says where they may lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parasol.delivery.files import triangulate
from parasol.delivery.hull import NodeHull, nearest_distances
from parasol.delivery.page.pack import Pack
from parasol.errors import InputError
from parasol.runtime.layout import Layout
from parasol.space.geometry.domain import Domain
from parasol.space.mesh import MeshDomain, rim_of
from parasol.space.outline import OutlinedDomain

_IMAGES = 4  # spacings beyond a seam that are drawn


@dataclass(frozen=True, eq=False)
class Mesh:
    """Corners (n, dimension), the node each is at, cells of them (m, dimension + 1), and the boundary's pieces (k, dimension)."""

    points: np.ndarray
    owner: np.ndarray
    cells: np.ndarray
    rim: np.ndarray
    bounds: np.ndarray  # (2, dimension) what is shown: cells may reach beyond it across a seam
    interfaces: np.ndarray | None = None  # (l, dimension) between regions, once for each side
    images: bool = False  # whether corners are images across a seam
    smooth: bool = True  # whether fields are smooth between the nodes, but at interfaces; else linear in each cell
    curved: bool = True  # whether the boundary is, where its pieces meet at small angles

    def program(self, pack: Pack) -> dict:
        """The mesh for the page."""
        return {
            "dimension": self.points.shape[1],
            "points": pack.add(self.points),
            "owner": pack.places(self.owner),
            "cells": pack.places(self.cells),
            "rim": pack.places(self.rim),
            "interfaces": pack.places(self.rim[:0] if self.interfaces is None else self.interfaces),
            "bounds": self.bounds.tolist(),
            "images": self.images,
            "smooth": self.smooth,
            "curved": self.curved,
        }


def make_mesh(layout: Layout) -> Mesh:
    """Join the nodes of a layout to cells that fill its domain, or what a file keeps of it.

    >>> square = np.array([(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.5, 0.5)])
    >>> make_mesh(Layout(points=square)).cells.shape
    (4, 3)
    """
    points = np.asarray(layout.points)
    n_nodes, dimension = points.shape
    owner = np.arange(n_nodes)
    if layout.cells is not None and layout.outline is None:  # somebody's own
        own = MeshDomain(points, layout.cells)
        return Mesh(points, owner, own.simplices, own.rim, own.bounds, smooth=False, curved=False)
    if dimension == 1:
        order = np.argsort(points[:, 0])
        ends = np.array([points.min(axis=0), points.max(axis=0)])
        cells = np.column_stack([order[:-1], order[1:]])
        cells, points, owner = _split(cells, points, owner, layout)
        return Mesh(points, owner, cells, order[[0, -1], None], ends, smooth=not layout.jumps)
    if dimension > 3:
        raise InputError(f"a page draws in up to 3 dimensions, these nodes have {dimension}.")
    domain = layout.domain
    if domain is None:
        domain = NodeHull(points, layout.n_interior, layout.outline)
    bounds = np.array([points.min(axis=0), points.max(axis=0)])
    if np.any(domain.periods > 0):
        bounds = domain.bounds
        points, owner = _with_images(points, domain, _IMAGES * float(nearest_distances(points).max()))
    # where nobody said which nodes lie on the boundary, none is treated as if it did
    on_boundary = (owner >= layout.n_interior) & (layout.n_interior > 0)
    cells = triangulate(points, domain, on_boundary=on_boundary)
    if not len(cells):
        raise InputError(f"{n_nodes} nodes cannot be joined to cells in {dimension} dimensions. Use more nodes.")
    rim = rim_of(points, cells)
    if dimension == 3 and on_boundary.any():
        rim = rim[on_boundary[rim].all(axis=1)]  # flat cells left out inside make gaps, but no boundary
    images = len(points) > n_nodes
    whole, interfaces = cells, None
    cells, points, owner = _split(whole, points, owner, layout)
    if cells is not whole:
        interfaces, rim = _apart(rim_of(points, cells), rim, whole, cells)
    return Mesh(points, owner, cells, rim, bounds, interfaces, images, smooth=not layout.jumps)


def _with_images(points: np.ndarray, domain: Domain, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and their images beyond the seams, as far as `reach`, and the node each is at."""
    owner = np.arange(len(points))
    lower, upper = domain.bounds
    for axis in np.flatnonzero(domain.periods > 0):
        step = domain.periods[axis] * np.eye(points.shape[1])[axis]
        low, high = points[:, axis] < lower[axis] + reach, points[:, axis] > upper[axis] - reach
        points = np.concatenate([points, points[low] + step, points[high] - step])
        owner = np.concatenate([owner, owner[low], owner[high]])
    return points, owner


def _split(
    cells: np.ndarray, points: np.ndarray, owner: np.ndarray, layout: Layout
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells, corners and their nodes, the corners of interfaces once for each region: fields have kinks there.

    Where there is one region, they are returned as they are.
    """
    centres, region = points[cells].mean(axis=1), np.zeros(len(cells), dtype=int)
    for number, one in enumerate(layout.regions):
        region[OutlinedDomain(one.outline).contains(centres)] = number + 1
    if len(np.unique(region)) < 2:
        return cells, points, owner
    both = np.column_stack([np.repeat(region, cells.shape[1]), cells.ravel()])
    _, first, inverse = np.unique(both, axis=0, return_index=True, return_inverse=True)
    corners = cells.ravel()[first]
    return inverse.reshape(cells.shape), points[corners], owner[corners]


def _apart(faces: np.ndarray, rim: np.ndarray, joined: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Faces of cells that were split: those at interfaces, and those of the boundary as it was before."""
    before = np.zeros(int(cells.max()) + 1, dtype=int)
    before[cells.ravel()] = joined.ravel()
    outside = {tuple(sorted(face)) for face in rim.tolist()}
    is_outside = np.array([tuple(sorted(face)) in outside for face in before[faces].tolist()], dtype=bool)
    return faces[~is_outside], faces[is_outside]
