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

_IMAGES = 4  # spacings beyond a seam that are drawn


@dataclass(frozen=True, eq=False)
class Mesh:
    """Corners (n, dimension), the node each is at, cells of them (m, dimension + 1), and the boundary's pieces (k, dimension)."""

    points: np.ndarray
    owner: np.ndarray
    cells: np.ndarray
    rim: np.ndarray
    bounds: np.ndarray  # (2, dimension) what is shown: cells may reach beyond it across a seam

    def program(self, pack: Pack) -> dict:
        """The mesh for the page."""
        return {
            "dimension": self.points.shape[1],
            "n_nodes": int(self.owner.max()) + 1,  # corners beyond them are images across a seam
            "points": pack.add(self.points),
            "owner": pack.places(self.owner),
            "cells": pack.places(self.cells),
            "rim": pack.places(self.rim),
            "bounds": self.bounds.tolist(),
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
        return Mesh(points, owner, own.simplices, own.rim, own.bounds)
    if dimension == 1:
        order = np.argsort(points[:, 0])
        ends = np.array([points.min(axis=0), points.max(axis=0)])
        return Mesh(points, owner, np.column_stack([order[:-1], order[1:]]), order[[0, -1], None], ends)
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
    return Mesh(points, owner, cells, rim, bounds)


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
