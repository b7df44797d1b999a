"""Integrals over a domain and over parts of its boundary, as weights of the values at scattered nodes."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from parasol.errors import InputError, UnsuitableNodes
from parasol.space.by_region import of_regions
from parasol.space.geometry.pieces import arc_lengths, pieces, points_along
from parasol.space.neighbours import Cloud
from parasol.space.nodes import Nodes
from parasol.space.operators import differentiate
from parasol.space.stencils import Scheme
from parasol.space.volumes import cell_samples
from parasol.space.wrap import Wrap

_PIECES = 2  # pieces of an arc per spacing, with two Gauss points each
_GAUSS = np.array([-1.0, 1.0]) / np.sqrt(12.0)  # in units of a piece, from its middle
_SHELL, _LAYERS = 0.35, 4  # depth of the layer that measures areas in space, in spacings, and sampling cells across it


# every part asks again for the same nodes: points of the boundary, and on which parts they lie
_layers: WeakKeyDictionary[Nodes, SurfacePoints] = WeakKeyDictionary()
_parts: WeakKeyDictionary[Nodes, np.ndarray] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class SurfacePoints:
    """Points of a part of the boundary with weights: Σ w f(x) is the integral of f, Σ a·F(x) the flux of F through it.

    The vector a is w times the outward normal. A point on an edge stands for a piece of each face, with a normal of its
    own, so there |a| < |w|.
    """

    points: np.ndarray  # (n, dimension)
    weights: np.ndarray  # (n,)
    areas: np.ndarray  # (n, dimension)


def volume_weights(nodes: Nodes, scheme: Scheme) -> np.ndarray:
    """Weights (n_nodes,) of the integral over the domain, Σ_i ∫_cell u with u expanded to second order about its node.

    Small cells fill the domain; each belongs to the nearest node, whose derivatives are those of its stencil. What the
    border between two nodes' cells is counted to hardly matters, so the error is that of the small cells, cut at random
    by the boundary. A domain with regions is integrated region by region.
    """
    if nodes.touches is not None:
        total = np.zeros(nodes.n_nodes)
        for members, own in of_regions(nodes):
            total[members] += volume_weights(own, scheme)
        return total
    dimension, n = nodes.dimension, nodes.n_nodes
    wrap = Wrap.of(nodes.domain)
    axes = np.eye(dimension, dtype=int)
    pairs = [(i, j) for i in range(dimension) for j in range(i, dimension)]
    derivatives = [*(tuple(axis) for axis in axes), *(tuple(axes[i] + axes[j]) for i, j in pairs)]
    volumes, moments = np.zeros(n), np.zeros((len(derivatives), n))
    for samples in cell_samples(nodes):
        owner = samples.owner
        away = wrap.shortest(samples.centres - nodes.points[owner])
        volumes += samples.volume * np.bincount(owner, minlength=n)
        products = [away[:, i] * away[:, j] / (1 + (i == j)) for i, j in pairs]
        for row, value in zip(moments, [*away.T, *products], strict=True):
            row += samples.volume * np.bincount(owner, weights=value, minlength=n)
    slopes = differentiate(Cloud(nodes.points, nodes.domain), nodes.points, derivatives, scheme)
    return volumes + sum(slopes[a].T @ moment for a, moment in zip(derivatives, moments, strict=True))


def surface_points(nodes: Nodes, part: str | None) -> SurfacePoints:
    """Points and weights of the integral over a named part of the boundary, or over all of it for None.

    In one dimension the ends count 1 each. In the plane, Gauss points along the arcs, which are cut where the part begins
    and ends. In space, the boundary nodes with their share of the area, which is right to about a per cent.
    """
    domain = nodes.domain
    if part is not None and part not in domain.part_names:
        raise InputError(
            f"the domain has no boundary part {part!r}. Its parts are: {', '.join(domain.part_names) or 'none'}."
        )
    if not domain.part_names:
        raise InputError("the domain is periodic all around and has no boundary to integrate over.")
    if domain.dimension == 2:
        quadrature = _along_arcs(nodes, part)
    else:
        if nodes not in _layers:
            ends = SurfacePoints(nodes.boundary, np.ones(nodes.n_boundary), nodes.normals)
            _layers[nodes] = ends if domain.dimension == 1 else _through_layer(nodes)
        quadrature = _layers[nodes]
        if part is not None:
            if nodes not in _parts:
                _parts[nodes] = domain.parts(quadrature.points)
            on = _parts[nodes][:, domain.part_names.index(part)]
            quadrature = SurfacePoints(quadrature.points[on], quadrature.weights[on], quadrature.areas[on])
        quadrature = _lumped(nodes, quadrature) if domain.dimension == 3 and len(quadrature.points) else quadrature
    if not len(quadrature.points):
        raise UnsuitableNodes(
            f"nothing of the boundary lies on the part {part!r}, or too little for {nodes.n_nodes} nodes to see it. "
            "Check where it is, or use more nodes."
        )
    return quadrature


def _along_arcs(nodes: Nodes, part: str | None) -> SurfacePoints:
    """Two Gauss points on each of many equal pieces of the boundary, moved onto it; no piece is cut by a part's end."""
    domain = nodes.domain
    spacing = float(np.min(nodes.spacing[nodes.n_interior :]))
    points, weights = [np.empty((0, 2))], [np.empty(0)]
    for line, parts in itertools.chain.from_iterable(arc.lines() for arc in pieces(domain)):
        if part is not None and not parts[domain.part_names.index(part)]:
            continue
        length = arc_lengths(line)[-1]
        n = max(1, int(np.ceil(_PIECES * length / spacing)))
        points.append(points_along(line, (np.arange(n)[:, None] + 0.5 + _GAUSS).ravel() * length / n))
        weights.append(np.full(2 * n, length / (2 * n)))
    feet, weight = domain.project(np.concatenate(points)), np.concatenate(weights)
    return SurfacePoints(feet, weight, weight[:, None] * domain.normal(feet))


def _through_layer(nodes: Nodes) -> SurfacePoints:
    """Feet of points in a thin layer inside the boundary, which measures its area.

    ∫_layer w(depth) dx with ∫ w = 1 and ∫ depth w = 0 is the area up to the square of the depth: to first order neither
    curvature nor edges count.
    """
    domain = nodes.domain
    depth = _SHELL * float(np.median(nodes.spacing[nodes.n_interior :]))
    lower, upper = domain.bounds
    counts = np.ceil((upper - lower) / (_LAYERS * depth)).astype(int)
    size = (upper - lower) / counts
    cells = np.stack([i.ravel() for i in np.indices(counts)], axis=1)
    children = np.stack([i.ravel() for i in np.indices((2, 2, 2))], axis=1)
    while size.max() > depth / _LAYERS:
        centres = lower + (cells + 0.5) * size
        cells = cells[np.abs(domain.distance(centres)) < depth + np.linalg.norm(size) / 2]
        cells = (2 * cells[:, None, :] + children).reshape(-1, 3)
        size = size / 2
    points = lower + (cells + np.random.default_rng(0).random(cells.shape)) * size
    points = points[domain.contains(points)]
    feet = domain.project(points)
    away = np.linalg.norm(points - feet, axis=1)
    feet, away = feet[away < depth], away[away < depth]
    weights = np.prod(size) * (4.0 - 6.0 * away / depth) / depth
    return SurfacePoints(feet, weights, weights[:, None] * domain.normal(feet))


def _lumped(nodes: Nodes, quadrature: SurfacePoints) -> SurfacePoints:
    """The same weights and areas gathered in a few points around each boundary node, four on each side it lies on.

    A point is the middle of what it stands for. The node itself in its place would be an error of first order along edges,
    where what it stands for lies to one side of it.
    """
    wrap = Wrap.of(nodes.domain)
    owner = wrap.query(wrap.tree(nodes.boundary), quadrature.points, 1)[1][:, 0]
    away = wrap.shortest(quadrature.points - nodes.boundary[owner])
    normals = quadrature.areas / quadrature.weights[:, None]
    axis = np.argmax(np.abs(normals), axis=1)
    side = 2 * axis + (np.take_along_axis(normals, axis[:, None], axis=1)[:, 0] > 0)
    octant = (away > 1e-9 * nodes.domain.size) @ [1, 2, 4]
    _, first, group = np.unique(8 * (6 * owner + side) + octant, return_index=True, return_inverse=True)
    weights, *areas = (np.bincount(group, v) for v in (quadrature.weights, *quadrature.areas.T))
    # the middle by the same weights leaves the integral of a linear function as it was; those deep in the layer count
    # negative, though, and where they prevail, in a corner of a cell with few points, the others have to do
    few = weights < 0.2 * np.bincount(group, np.abs(quadrature.weights))
    share = np.where(few[group], np.maximum(quadrature.weights, 1e-3 * quadrature.weights.max()), quadrature.weights)
    middle = np.stack([np.bincount(group, share * x) for x in away.T], axis=1) / np.bincount(group, share)[:, None]
    points = nodes.domain.project(nodes.boundary[owner[first]] + middle)
    return SurfacePoints(points, weights, np.stack(areas, axis=1))
