"""Values between nodes, from stencils around any points."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array

from parasol.checks import check_finite, check_shape
from parasol.errors import InputError
from parasol.runtime.layout import Layout
from parasol.space.neighbours import Cloud
from parasol.space.operators import differentiate
from parasol.space.outline import OutlinedDomain


def interpolation_weights(layout: Layout, points) -> csr_array:
    """Weights (n_points, n_nodes) that turn values at the nodes of a field into values at points in its domain."""
    if layout.points is None or layout.scheme is None:
        raise InputError("this surrogate knows no nodes, so it cannot answer between them. Fit it from a model.")
    points = check_finite(check_shape(np.atleast_2d(points), (None, layout.points.shape[1]), "points"), "points")
    # the domain is not part of a file, and answers must not change on the way through one
    known = layout.domain if layout.outline is None else OutlinedDomain(layout.outline)
    cloud = Cloud(layout.points, known)  # type: ignore[arg-type]
    tree = cloud.wrap.tree(layout.points)
    gap, node = (found[:, 0] for found in cloud.wrap.query(tree, points, 1))
    between = gap > 1e-12 * float(np.max(np.abs(layout.points)))
    inside = _contains(layout, points)
    if known is None:  # stencils would extrapolate wildly
        inside = gap <= 2 * np.max(cloud.wrap.query(tree, layout.points, 2)[0][:, -1])
    if not inside[between].all():
        raise InputError("some of the points lie outside the domain. Ask inside only.")
    at_nodes = np.flatnonzero(~between)  # a node has its own value, wherever its neighbours are
    shape = (len(points), len(layout.points))
    weights = csr_array((np.ones(len(at_nodes)), (at_nodes, node[at_nodes])), shape)
    zero = (0,) * layout.points.shape[1]
    for where, members, own in _by_region(layout, points, np.flatnonzero(between), cloud):
        rows = differentiate(own, points[where], [zero], layout.scheme)[zero].tocoo()
        weights = weights + csr_array((rows.data, (where[rows.row], members[rows.col])), shape)
    return weights


def _by_region(layout: Layout, points: np.ndarray, asked: np.ndarray, cloud: Cloud) -> Iterator:
    """Which of the points asked for are in which region, with its nodes as numbers and as a cloud of their own."""
    if not layout.regions:
        if len(asked):
            yield asked, np.arange(len(cloud.points)), cloud
        return
    left = asked
    for k, region in enumerate(layout.regions):
        domain = OutlinedDomain(region.outline)
        # the whole domain contains them, so that the last region has what is left: within rounding of an interface
        inside = domain.contains(points[left]) | (k + 1 == len(layout.regions))
        if inside.any():
            yield left[inside], region.members, Cloud(cloud.points[region.members], domain)  # type: ignore[arg-type]
        left = left[~inside]


def _contains(layout: Layout, points: np.ndarray) -> np.ndarray:
    """Which points (n, dimension) lie in the domain, as far as it is known: (n,) bool."""
    if layout.domain is not None:
        return layout.domain.distance(points) <= 1e-9 * layout.domain.size
    return (
        np.ones(len(points), dtype=bool) if layout.outline is None else OutlinedDomain(layout.outline).contains(points)
    )
