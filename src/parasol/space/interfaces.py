"""Nodes on the interfaces between the regions of a domain: placed there, and described."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product

import numpy as np
from scipy.spatial import KDTree

from parasol.errors import InputError, UnsuitableNodes
from parasol.space.boundary import ROUND, Boundary, Spacing, on_surface, smallest_surface, spread, weighted_curve
from parasol.space.fill import fibonacci, independent
from parasol.space.geometry.corners import around
from parasol.space.geometry.domain import Domain
from parasol.space.geometry.nearest import onto_edge
from parasol.space.geometry.primitives import Box
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
    own = touches.any(axis=0)  # elements need no node inside a thin region; for stencils see `by_region.check_regions`
    if not own.all():
        name = regions.region_names[int(np.argmin(own))]
        raise UnsuitableNodes(f"region {name!r} is too small or thin for these nodes: none lies in it. Use more nodes.")
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
    smooth = np.all(valid & (np.einsum("knd,nd->kn", slant, normal) > 0.999), axis=0)
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
def joints_of(regions: Regions, spacing: Spacing) -> np.ndarray:
    """Where interfaces meet the boundary, nodes of both: all such points in the plane, as many as needed in space."""
    if regions.dimension == 3:
        return np.concatenate([_rim(regions, which, spacing) for which in range(len(regions.shapes))])
    return regions.joints if regions.dimension == 2 else regions.places[:0]


def with_interfaces(
    regions: Regions,
    boundary: Boundary,
    spacing: Spacing,
    n_boundary: int | None,
    rng: np.random.Generator,
    *,
    steps: int,
) -> Boundary:
    """Boundary nodes together with nodes on the interfaces, as dense as the boundary nodes are."""
    wrap, points = Wrap.of(regions), boundary.points
    if regions.dimension == 1:
        return replace(boundary, inside=regions.places)
    scale = 1.0
    if n_boundary is not None and len(points) > 1:  # as dense as they came out
        nearest = wrap.query(wrap.tree(points), points, 2)[0][:, 1]
        scale = float(np.median(nearest / spacing(points)))
    place = _along_lines if regions.dimension == 2 else partial(_on_surfaces, rng=rng, steps=steps)
    inside, coarse = place(regions, lambda x: scale * spacing(x))
    inside = wrap.fold(inside)
    known = np.concatenate([points, inside])
    same = wrap.tree(known).query_ball_point(wrap.shifted(inside), _MERGE * regions.size)
    first = np.array([min(group) for group in same], dtype=int)
    inside = inside[first == np.arange(len(inside)) + len(points)]
    both = [few for few in (boundary.coarse, *coarse) if few is not None]
    return replace(boundary, inside=inside, coarse=min(both, key=lambda few: few[::-1], default=None))


def _along_lines(regions: Regions, spacing: Spacing) -> tuple[np.ndarray, list[tuple[float, int]]]:
    """Nodes at equal distances, in units of the spacing, along the interfaces of a plane domain, and at their ends."""
    nodes, coarse = [regions.joints], []
    for arc, shape in regions.lines:
        curve, _ = weighted_curve(arc.line, spacing, Wrap.of(regions))
        count = max(round(float(curve.weight[-1])), 3 if arc.closed else 1)
        at = curve.weight[-1] * np.arange(0 if arc.closed else 1, count) / count
        if len(at):
            nodes.append(shape.project(curve.at(at)))
        if arc.closed and count < ROUND:
            coarse.append((arc.length, count))
    return np.concatenate(nodes), coarse


def _on_surfaces(regions: Regions, spacing: Spacing, *, rng: np.random.Generator, steps: int):
    """Nodes on the interfaces of a domain in space, those on its boundary too."""
    _ = regions.simple
    nodes, coarse = [], []
    for which, shape in enumerate(regions.shapes):
        rim = _rim(regions, which, spacing)
        points, h, n_fixed = on_surface(shape, spacing, None, rng, steps=0, joints=lambda _, rim=rim: rim)
        on, _ = regions.bounds_region(which, points, shape.normal(points))
        if regions.base.part_names:
            low = on & (regions.base.distance(points) > -0.4 * h)  # nodes of the rim stand for these
            lost = (
                points[low & (Wrap.of(regions).query(KDTree(rim), points, 1)[0][:, 0] > 3 * h)]
                if len(rim)
                else points[low]
            )
            if len(lost):
                place = ", ".join(f"{value:.3g}" for value in lost[0])
                raise UnsuitableNodes(
                    f"an interface between regions comes nearer to the boundary than nodes can stand, near ({place}). "
                    f"Use more nodes, move the shapes apart, or let them overlap."
                )
            on &= ~low
        fixed = np.concatenate([rim, points[:n_fixed][on[:n_fixed]]])
        free = points[n_fixed:][on[n_fixed:]]
        free = spread(shape, free, spacing(free), fixed, spacing(fixed), steps)
        nodes += [fixed, free]
        if not len(rim):
            coarse.append(
                smallest_surface(shape, *(np.concatenate(v) for v in ((fixed, free), (spacing(fixed), spacing(free)))))
            )
    return np.concatenate(nodes), coarse


def _rim(regions: Regions, which: int, spacing: Spacing) -> np.ndarray:
    """Nodes along the lines in space where one interface ends at the boundary, those on edges of a box first: (m, 3)."""
    base, shape, rng = regions.base.unnamed, regions.shapes[which], np.random.default_rng(0)
    if not base.part_names:
        return np.zeros((0, 3))
    least = float(np.min(spacing(base.boundary_cloud(regions.size / 10, rng))))
    corners, line = _ends_at_boundary(regions, which, int(np.ceil(np.log2(regions.size / least))))
    wanted = spacing(line)
    if len(corners):
        apart = KDTree(corners).query(line)[0] >= 0.75 * wanted
        line, wanted = line[apart], wanted[apart]
    if not len(line):
        return corners
    # random thinning of a line at radius r leaves points 1.34 r apart
    kept = line[independent(line, 0.75 * wanted, rng.permutation(len(line)), Wrap.of(regions))]
    onto = partial(onto_edge, pair=(shape, base), size=regions.size)
    return np.concatenate([corners, _on_faces(base, _even(kept, corners, spacing, lambda p: base.project(onto(p))))])


@lru_cache(maxsize=32)  # asked again for every spacing that is tried
def _ends_at_boundary(regions: Regions, which: int, level: int) -> tuple[np.ndarray, np.ndarray]:
    """Where an interface in space meets the edges of a box (m, 3), and dense points of the lines where it ends (n, 3)."""
    base, shape, size = regions.base.unnamed, regions.shapes[which], regions.size
    apart = 0.5 * size / 2**level
    cloud = shape.boundary_cloud(apart, np.random.default_rng(0))
    cloud = cloud[np.abs(base.rough_distance(cloud)) < apart]
    line = onto_edge(cloud, (shape, base), size)
    line = base.project(line[np.linalg.norm(line - cloud, axis=1) < 4 * apart])
    line = line[np.abs(shape.distance(line)) < ON * size]
    # what lies a small step along the interface, away from the boundary, tells whether it is one there
    outward, normal = base.normal(line), shape.normal(line)
    into = np.sum(outward * normal, axis=1, keepdims=True) * normal - outward
    beside = shape.project(
        line + _ALONG * size * into / np.maximum(np.linalg.norm(into, axis=1, keepdims=True), 1e-300)
    )
    line = line[regions.bounds_region(which, beside, shape.normal(beside))[0]]
    line = line[
        np.unique(np.round(line / (0.25 * apart)), axis=0, return_index=True)[1]
    ]  # one point per small cell will do
    return _edge_crossings(regions, which), line


def _even(points: np.ndarray, fixed: np.ndarray, spacing: Spacing, onto) -> np.ndarray:
    """Points of a line in space pushed apart along it."""
    n = len(points)
    everything = np.concatenate([points, fixed])
    if n < 2:
        return points
    for step in range(20):
        h = spacing(everything[:n])
        away = (
            everything[:n, None]
            - everything[KDTree(everything).query(everything[:n], min(4, len(everything)))[1][:, 1:]]
        )
        square = np.maximum(np.sum(away**2, axis=2), 1e-12 * h[:, None] ** 2)
        force = np.einsum("nkd,nk->nd", away, h[:, None] ** 5 / square**3)
        size = np.linalg.norm(force, axis=1)
        move = force * (0.2 * (1 - step / 20) * h * np.minimum(size, 1) / np.maximum(size, 1e-300))[:, None]
        everything[:n] = onto(everything[:n] + move)
    return everything[:n]


def _on_faces(base: Domain, points: np.ndarray) -> np.ndarray:
    """Points with the coordinate of a face of a box where they lie on it but for rounding: on an edge they have two."""
    if isinstance(base, Box):
        for limit in base.bounds:
            near = (np.abs(points - limit) <= ON * base.size) & (base.periods == 0)
            points = np.where(near, limit, points)
    return points


def _edge_crossings(regions: Regions, which: int) -> np.ndarray:
    """Where an interface meets an edge of a box, or a corner of one that it goes through, each place once: (m, 3)."""
    box, shape = regions.base.unnamed, regions.shapes[which]
    if not isinstance(box, Box):
        return np.zeros((0, 3))
    lower, upper = box.bounds
    crossings = [np.zeros((0, 3))]
    for axis in range(3):
        others = [a for a in range(3) if a != axis]
        if any(box.periods[a] > 0 for a in others):
            continue
        for ends in product((0, 1), repeat=2):
            line = np.tile(lower, (2001, 1))
            line[:, others] = box.bounds[list(ends), others]
            line[:, axis] = np.linspace(lower[axis], upper[axis], 2001)
            gap = shape.rough_distance(line)
            crossings.append(line[[0, -1]][np.abs(gap[[0, -1]]) <= ON * regions.size])
            line, gap = (values[np.abs(gap) > ON * regions.size] for values in (line, gap))  # the edge may lie in it
            turns = (gap[1:] < 0) != (gap[:-1] < 0)
            low, high = line[:-1][turns], line[1:][turns]
            for _ in range(52):
                middle = 0.5 * (low + high)
                same = ((shape.rough_distance(middle) < 0) == (shape.rough_distance(low) < 0))[:, None]
                low, high = np.where(same, middle, low), np.where(same, high, middle)
            inner = low + 1e-6 * regions.size * (0.5 * (lower + upper) - low)  # a little inside the box
            beside = shape.project(inner)
            crossings.append(low[regions.bounds_region(which, beside, shape.normal(beside))[0]])
    return np.unique(_on_faces(box, np.concatenate(crossings)), axis=0)


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
