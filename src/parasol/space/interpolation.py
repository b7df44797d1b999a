"""Values between nodes, from stencils around any points."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import KDTree

from parasol.checks import check_finite, check_shape
from parasol.errors import InputError
from parasol.runtime.layout import Layout
from parasol.space.neighbours import Cloud
from parasol.space.outline import OutlinedDomain
from parasol.space.surrounding import value_weights

_NEAR = 12  # cells whose centres are nearest: mostly one of them contains a point
_ON = 1e-9  # by which a point may lie outside of its cell
_BESIDE = 1e-6  # by which it may lie outside of all, in barycentric coordinates: rounding


def interpolation_weights(layout: Layout, points) -> csr_array:
    """Weights (n_points, n_nodes) that turn values at the nodes of a field into values at points in its domain."""
    if layout.jumps:
        raise InputError(
            "the unknown of this surrogate jumps at interfaces, whose nodes have the value of one side: weights of nodes "
            "alone cannot answer between nodes. Ask the surrogate itself: surrogate(mu).at(points)."
        )
    return weights_by_region(layout, points)[0]


def weights_by_region(layout: Layout, points) -> tuple[csr_array, np.ndarray]:
    """Weights as in `interpolation_weights`, of nodes in the region of each point, and these regions (n_points,), −1 at nodes.

    Where unknowns jump at interfaces, a point whose side is not known for sure is refused.
    """
    if layout.points is None or (layout.scheme is None and layout.cells is None):
        what = "nodes" if layout.points is None else "cells between its nodes"
        raise InputError(
            f"this surrogate knows no {what}, so it cannot answer between them. Fit it from a model, or give cells."
        )
    if layout.jumps and layout.given_jumps is None:
        raise InputError(
            "the unknown of this surrogate jumps at interfaces, and the file of an earlier version does not say by how much: "
            "it cannot answer between nodes. Ask at the nodes, or learn it again."
        )
    points = check_finite(check_shape(np.atleast_2d(points), (None, layout.points.shape[1]), "points"), "points")
    if layout.scheme is None and layout.cells is not None:
        return weights_in_cells(layout.points, layout.cells, points), np.full(len(points), -1)
    # the domain is not part of a file, and answers must not change on the way through one
    known = layout.domain if layout.outline is None else OutlinedDomain(layout.outline)
    cloud = Cloud(layout.points, known)  # type: ignore[arg-type]
    tree = cloud.wrap.tree(layout.points)
    gap, node = (column[:, 0] for column in cloud.wrap.query(tree, points, 1))
    between = gap > 1e-12 * float(np.max(np.abs(layout.points)))
    inside = _contains(layout, points)
    if known is None:  # stencils would extrapolate wildly
        inside = gap <= 2 * np.max(cloud.wrap.query(tree, layout.points, 2)[0][:, -1])
    if not inside[between].all():
        raise InputError("some of the points lie outside the domain. Ask inside only.")
    at_nodes = np.flatnonzero(~between)  # a node has its own value, wherever its neighbours are
    shape = (len(points), len(layout.points))
    weights = csr_array((np.ones(len(at_nodes)), (at_nodes, node[at_nodes])), shape)
    regions = np.full(len(points), -1)
    for region, where, members, own in _by_region(layout, points, np.flatnonzero(between), cloud):
        regions[where] = region
        if layout.cells is not None:
            rows = _in_cells(layout.points, layout.cells, points[where], members).tocoo()
            weights = weights + csr_array((rows.data, (where[rows.row], rows.col)), shape)
            continue
        rows = value_weights(own, points[where], layout.scheme).tocoo()  # type: ignore[arg-type]
        weights = weights + csr_array((rows.data, (where[rows.row], members[rows.col])), shape)
    return weights, regions


def _by_region(layout: Layout, points: np.ndarray, asked: np.ndarray, cloud: Cloud) -> Iterator:
    """Which of the points asked for are in which region, with its nodes as numbers and as a cloud of their own."""
    if not layout.regions:
        if len(asked):
            yield 0, asked, np.arange(len(cloud.points)), cloud
        return
    domains = [OutlinedDomain(region.outline) for region in layout.regions]
    inside = np.array([domain.contains(points[asked]) for domain in domains])
    if points.shape[1] == 1:  # of a line an outline knows the ends only: between two nodes is the region of both
        order = np.argsort(cloud.points[:, 0])
        above = np.clip(np.searchsorted(cloud.points[order, 0], points[asked, 0]), 1, len(order) - 1)
        ends = order[above - 1], order[above]
        inside &= [np.isin(ends[0], region.members) & np.isin(ends[1], region.members) for region in layout.regions]
    unsure = np.flatnonzero(np.count_nonzero(inside, axis=0) != 1)
    if layout.jumps and len(unsure):
        place = ", ".join(f"{value:.6g}" for value in points[asked[unsure[0]]])
        raise InputError(
            f"({place}) lies so near to an interface where the unknown jumps that its side is not known. Ask farther from it, "
            "at a node, or a full solve: surrogate.solver.solve(mu).at(points)."
        )
    inside[-1] |= ~np.any(inside, axis=0)  # the whole domain contains them: within rounding of an interface
    first = np.argmax(inside, axis=0)
    for k, (region, domain) in enumerate(zip(layout.regions, domains, strict=True)):
        if np.any(first == k):
            yield k, asked[first == k], region.members, Cloud(cloud.points[region.members], domain)  # type: ignore[arg-type]


def weights_in_cells(nodes: np.ndarray, cells: np.ndarray, points: np.ndarray) -> csr_array:
    """Weights (n_points, n_nodes) of the polynomials through the nodes of the cells; refused where no cell is."""
    if np.any(depths(points, nodes, cells)[1] < -_BESIDE):
        raise InputError("some of the points lie outside the cells. Ask inside only.")
    return _in_cells(nodes, cells, points, np.arange(len(nodes)))


def depths(points: np.ndarray, nodes: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cell that each point is in, or least outside of, and its least barycentric coordinate there, both (n_points,)."""
    origin, inverse = straight_cells(nodes, cells)
    cell = _cell_of(points, nodes, cells, origin, inverse)
    local = np.einsum("nij,nj->ni", inverse[cell], points - origin[cell])
    return cell, np.minimum(np.min(local, axis=1), 1.0 - np.sum(local, axis=1))


def _in_cells(nodes: np.ndarray, cells: np.ndarray, points: np.ndarray, members: np.ndarray) -> csr_array:
    """Weights (n_points, n_nodes) of the polynomials through the nodes of the cells, of those cells that have members only.

    Of a cell with curved edges it is the polynomial in the coordinates of its straight corners.
    """
    kept = np.zeros(len(nodes), dtype=bool)
    kept[members] = True
    cells = cells[np.all(kept[cells], axis=1)]
    dimension = nodes.shape[1]
    origin, inverse = straight_cells(nodes, cells)
    cell = _cell_of(points, nodes, cells, origin, inverse)
    degree = {1: cells.shape[1] - 1, 2: int(np.sqrt(2 * cells.shape[1])) - 1, 3: 1}[dimension]
    powers = [p for p in np.ndindex(*(degree + 1,) * dimension) if sum(p) <= degree]
    monomials = lambda x: np.stack([np.prod(x**p, axis=-1) for p in powers], axis=-1)  # noqa: E731
    used, which = np.unique(cell, return_inverse=True)
    local = np.einsum("cij,cnj->cni", inverse[used], nodes[cells[used]] - origin[used][:, None])
    at = monomials(np.einsum("nij,nj->ni", inverse[cell], points - origin[cell]))
    values = np.linalg.solve(np.swapaxes(monomials(local), 1, 2)[which], at[:, :, None])[:, :, 0]
    rows = np.repeat(np.arange(len(points)), cells.shape[1])
    return csr_array((values.ravel(), (rows, cells[cell].ravel())), (len(points), len(nodes)))


def straight_cells(nodes: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first corner of each cell, and the inverse of the matrix of its edges there."""
    corners = nodes[cells[:, : nodes.shape[1] + 1]]
    return corners[:, 0], np.linalg.inv(np.swapaxes(corners[:, 1:] - corners[:, :1], 1, 2))


def _cell_of(
    points: np.ndarray, nodes: np.ndarray, cells: np.ndarray, origin: np.ndarray, inverse: np.ndarray
) -> np.ndarray:
    """The cell that contains each point, or that it is least outside of, (n_points,)."""

    def depth(at: np.ndarray, some: np.ndarray) -> np.ndarray:
        """The least barycentric coordinate of points (n, 1 or m) in cells (n, m)."""
        local = np.einsum("nmij,nmj->nmi", inverse[some], at - origin[some])
        return np.minimum(np.min(local, axis=2), 1.0 - np.sum(local, axis=2))

    centres = np.mean(nodes[cells[:, : nodes.shape[1] + 1]], axis=1)
    near = KDTree(centres).query(points, min(_NEAR, len(cells)))[1].reshape(len(points), -1)
    inside = depth(points[:, None], near)
    out, missed = near[np.arange(len(points)), np.argmax(inside, axis=1)], np.max(inside, axis=1) < -_ON
    every = np.arange(len(cells))
    for i in np.flatnonzero(missed):  # a large cell beside small ones, or beyond a curved edge
        out[i] = int(np.argmax(depth(points[i][None, None], every[None])[0]))
    return out


def _contains(layout: Layout, points: np.ndarray) -> np.ndarray:
    """Which points (n, dimension) lie in the domain, as far as it is known: (n,) bool."""
    if layout.domain is not None:
        return layout.domain.distance(points) <= 1e-9 * layout.domain.size
    return (
        np.ones(len(points), dtype=bool) if layout.outline is None else OutlinedDomain(layout.outline).contains(points)
    )
