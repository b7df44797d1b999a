"""Nodes on the interfaces between the regions of a domain: placed there, and described."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from parasol.errors import InputError, UnsuitableNodes
from parasol.space.boundary import ROUND, Boundary, Spacing, weighted_curve
from parasol.space.fill import fibonacci
from parasol.space.geometry.corners import around
from parasol.space.geometry.regions import ON, Regions
from parasol.space.sight import lifted
from parasol.space.wrap import Wrap

_ALONG = 1e-5  # in sizes of the domain: steps along an interface that tell what is beside a node
_TURNS = 2 * np.pi * (np.arange(36) + 0.3) / 36
_RING = {2: np.stack([np.cos(_TURNS), np.sin(_TURNS)], axis=1), 3: fibonacci(300)}  # directions of steps off a corner
_SAME = 0.97  # cosine between normals of one side: a kink of 14 degrees counts as smooth
_MERGE = 1e-8  # in sizes of the domain: nodes nearer to each other are one


@dataclass(frozen=True, eq=False)
class Interfaces:
    """Which nodes lie on interfaces between regions: one row for every node and piece of an interface that it lies on.

    A node on a smooth interface has one row, a kink two with the same sides, a point where four regions meet four.
    """

    node: np.ndarray  # (m,) int
    sides: np.ndarray  # (m, 2) int, the two regions, the first with the smaller index
    normals: np.ndarray  # (m, dimension) unit vectors from the first into the second

    def __post_init__(self):
        for name in ("node", "sides", "normals"):
            getattr(self, name).setflags(write=False)


# ---- what lies on interfaces ---------------------------------------------------------------------------------------
def interfaces_at(
    regions: Regions, points: np.ndarray, n_interior: int, spacing: np.ndarray
) -> tuple[np.ndarray, Interfaces]:
    """The regions that touch each node, (n_nodes, n_regions) bool, and the table of the nodes on interfaces.

    Along the boundary of each shape small steps are taken from every node on it; what lies on both sides there decides.
    """
    rows = [_beside(regions, which, points) for which in range(len(regions.shapes))]
    node, other, which = (np.concatenate(column) for column in zip(*[row[:3] for row in rows], strict=True))
    normals = np.concatenate([row[3] for row in rows])
    order = np.lexsort((other, which, node))
    table = Interfaces(node[order], np.stack([which, other], axis=1)[order], normals[order])
    touches = np.zeros((len(points), len(regions.region_names)), dtype=bool)
    touches[table.node[:, None], table.sides] = True
    plain = np.flatnonzero(~touches.any(axis=1))
    places, outer = points.copy(), plain[plain >= n_interior]
    if len(outer):
        places[outer] = lifted(regions.base.unnamed, points[outer], 1e-3 * spacing[outer])[0]
    touches[plain, regions.region_of(places[plain])] = True
    own = touches[touches.sum(axis=1) == 1].any(axis=0)
    if not own.all():
        name = regions.region_names[int(np.argmin(own))]
        raise UnsuitableNodes(
            f"region {name!r} is too small or thin for these nodes: none lies inside it. Use more nodes."
        )
    return touches, table


def _beside(regions: Regions, which: int, points: np.ndarray):
    """Node, region beyond, region, and normal of each piece of an interface on the boundary of one shape at each node."""
    shape, size = regions.shapes[which], regions.size
    here = np.flatnonzero(np.abs(shape.rough_distance(points)) <= ON * size)
    if not len(here):
        none = np.zeros(0, dtype=int)
        return none, none, none, np.zeros((0, regions.dimension))
    normal = shape.normal(points[here])
    if regions.dimension == 1:
        seen, outer = (values[None] for values in regions.bounds_region(which, points[here], normal))
        return _rows(here, which, normal, seen, outer, normal[None])
    valid, seen, outer, slant = _look(regions, which, points[here], np.stack(around(normal)))
    smooth = valid.all(axis=0)
    rows = [_rows(here[smooth], which, normal[smooth], *(v[:, smooth] for v in (seen, outer, slant)))]
    if not smooth.all():  # corners and edges: steps all around see sides at any angle
        ring = _RING[regions.dimension][:, None] + np.zeros_like(normal[~smooth])
        rows.append(
            _rows(here[~smooth], which, normal[~smooth], *_look(regions, which, points[here[~smooth]], ring)[1:])
        )
    return tuple(np.concatenate(column) for column in zip(*rows, strict=True))


def _look(regions: Regions, which: int, points: np.ndarray, steps: np.ndarray):
    """Small steps (n_steps, n, dimension) off points of the boundary of a shape: which led along one of its sides, which of
    these onto an interface, (n_steps, n) both, the region beyond, and the normals there."""
    shape, step = regions.shapes[which], _ALONG * regions.size
    nudged = points + step * steps
    feet = shape.project(nudged.reshape(-1, regions.dimension))
    slant = shape.normal(feet)
    seen, outer = (values.reshape(steps.shape[:2]) for values in regions.bounds_region(which, feet, slant))
    feet, slant = feet.reshape(steps.shape), slant.reshape(steps.shape)
    back = nudged - feet
    # a step that came back to a corner, and not straight down onto a side, tells nothing about sides
    slip = np.linalg.norm(back - np.sum(back * slant, axis=2, keepdims=True) * slant, axis=2)
    valid = (np.linalg.norm(feet - points, axis=2) > 0.1 * step) & (slip < 0.01 * step)
    return valid, valid & seen, outer, slant


def _rows(here, which: int, normal, seen, outer, slant):
    """One row for every node, region beyond and side of the shape among what was `seen` (n_steps, n)."""
    nodes, others, normals = [], [], []
    for k in np.flatnonzero(seen.any(axis=0)):
        for other in np.unique(outer[seen[:, k], k]):
            left = slant[seen[:, k] & (outer[:, k] == other), k]
            while len(left):
                alike = left @ left[0] > _SAME
                mean = left[alike].mean(axis=0)
                mean /= np.linalg.norm(mean)
                # the node's own normal is the exact one where it is that of this side
                normals.append(normal[k] if normal[k] @ mean > 1 - 1e-6 else mean)
                nodes.append(here[k])
                others.append(other)
                left = left[~alike]
    normals = np.array(normals).reshape(-1, normal.shape[1])
    return np.array(nodes, dtype=int), np.array(others, dtype=int), np.full(len(nodes), which), normals


# ---- nodes on interfaces -------------------------------------------------------------------------------------------
def with_interfaces(regions: Regions, boundary: Boundary, spacing: Spacing, n_boundary: int | None) -> Boundary:
    """Boundary nodes together with nodes on the interfaces, as dense as the boundary nodes are."""
    wrap, points = Wrap.of(regions), boundary.points
    if regions.dimension == 1:
        return replace(boundary, inside=regions.places)
    if n_boundary is not None and len(points) > 1:  # as dense as they came out
        nearest = wrap.query(wrap.tree(points), points, 2)[0][:, 1]
        scale = float(np.median(nearest / spacing(points)))
    else:
        scale = 1.0
    inside, coarse = _along_lines(regions, lambda x: scale * spacing(x), wrap)
    inside = wrap.fold(inside)
    known = np.concatenate([points, inside])
    same = wrap.tree(known).query_ball_point(wrap.shifted(inside), _MERGE * regions.size)
    first = np.array([min(group) for group in same], dtype=int)
    inside = inside[first == np.arange(len(inside)) + len(points)]
    both = [few for few in (boundary.coarse, coarse) if few is not None]
    return replace(boundary, inside=inside, coarse=min(both, key=lambda few: few[::-1], default=None))


def _along_lines(regions: Regions, spacing: Spacing, wrap: Wrap) -> tuple[np.ndarray, tuple[float, int] | None]:
    """Nodes at equal distances, in units of the spacing, along the interfaces of a plane domain, and at their ends."""
    found, coarse = [regions.joints], []
    for arc, shape in regions.lines:
        curve, _ = weighted_curve(arc.line, spacing, wrap)
        count = max(round(float(curve.weight[-1])), 3 if arc.closed else 1)
        at = curve.weight[-1] * np.arange(0 if arc.closed else 1, count) / count
        if len(at):
            found.append(shape.project(curve.at(at)))
        if arc.closed and count < ROUND:
            coarse.append((arc.length, count))
    return np.concatenate(found), min(coarse, key=lambda few: few[::-1], default=None)


def check_lattice(regions: Regions, ticks: list[np.ndarray]) -> None:
    """Refuse a lattice with these coordinates if an interface runs between its nodes."""
    walls = regions.walls()
    on_line = np.zeros(len(walls), dtype=bool)
    for axis, tick in enumerate(ticks):
        on_line |= np.abs(walls[:, [axis]] - tick).min(axis=1) <= ON * regions.size
    if not on_line.all():
        place = ", ".join(f"{value:.3g}" for value in walls[np.argmin(on_line)])
        raise InputError(
            f"an interface between regions runs between the nodes of the lattice, at ({place}) for one. "
            f"Choose the shape so that a line of nodes falls on it, or use scatter."
        )
