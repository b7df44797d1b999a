"""Boundary nodes: evenly along curves, over surfaces, with the normal and the part of every node."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise, product

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from parasol.errors import InputError, UnsuitableNodes
from parasol.space.fill import fibonacci, fill, independent
from parasol.space.geometry.axes import AXES
from parasol.space.geometry.corners import look_around
from parasol.space.geometry.pieces import insert, pieces, points_along
from parasol.space.geometry.primitives import Ball, Box
from parasol.space.relax import trim
from parasol.space.wrap import Wrap


@dataclass(frozen=True, eq=False)
class Boundary:
    """Boundary nodes with the parts each lies on, and for each of these the outward normal of the side it lies on."""

    points: np.ndarray  # (n, dimension)
    part: np.ndarray  # (n,) of several parts, the one to take unless there is a reason for another
    on_part: np.ndarray  # (n, n_parts)
    part_normals: np.ndarray  # (n, n_parts, dimension)
    # length and nodes of the closed curve or surface with fewest, if too few for its shape
    coarse: tuple[float, int] | None = None
    inside: np.ndarray | None = None  # (m, dimension) nodes on the interfaces between regions, placed like these

    @property
    def fixed(self) -> np.ndarray:
        """All nodes that are placed before the others: on the boundary, then on interfaces, (n + m, dimension)."""
        return self.points if self.inside is None else np.concatenate([self.points, self.inside])

    @property
    def normals(self) -> np.ndarray:
        """The normals of the nodes' own parts, (n, dimension)."""
        return self.part_normals[np.arange(len(self.part)), self.part] if len(self.part) else self.points


Spacing = Callable[[np.ndarray], np.ndarray]
Joints = Callable[[Spacing], np.ndarray]
_THIN = 0.5  # in spacings: what is thinner is no piece of the boundary
ROUND = 8  # nodes that a closed curve needs to be told from a polygon
_ROUND_IN_SPACE = 24  # and a closed surface from a polyhedron
_LINKED = 1.8  # spacings between neighbours on one surface


def boundary_nodes(
    domain, spacing: Spacing, n: int | None, rng: np.random.Generator, *, steps: int = 20, joints: Joints | None = None
) -> Boundary:
    """Place nodes on the boundary of a domain with the local spacing, or n of them with that density.

    `spacing` takes (m, dimension) points and returns (m,) positive lengths. Surface nodes are evened out by `steps` of
    repulsion. `joints` makes points (m, dimension) for a spacing; there is a node at each of them that lies on the boundary.
    """
    if domain.dimension == 1:
        return _ends(domain, n)
    if domain.dimension == 2:
        return _along_arcs(domain, spacing, n, None if joints is None else joints(spacing))
    points, h, _ = on_surface(domain, spacing, n, rng, steps=steps, joints=joints)
    return replace(describe(domain, points, h), coarse=smallest_surface(domain, points, h))


def describe(domain, points: np.ndarray, spacing: np.ndarray) -> Boundary:
    """Attach normals and parts to boundary points; `spacing` (n,) is their distance from the next.

    At a corner or an edge a part counts that goes on for half a spacing: a condition such as x > 0.999 is meant for one
    side of a square, though it also holds on the ends of two others.
    """
    if len(points) == 0:
        shape = 0, len(domain.part_names)
        return Boundary(
            points, np.zeros(0, dtype=int), np.zeros(shape, dtype=bool), np.zeros((*shape, domain.dimension))
        )
    if len(domain.part_names) == 1:
        return Boundary(points, np.zeros(len(points), dtype=int), domain.parts(points), domain.normal(points)[:, None])
    on_part, part_normals = look_around(domain, points, _THIN * spacing)
    return _none_lost(domain, Boundary(points, np.argmax(on_part, axis=1), on_part, part_normals))


def _none_lost(domain, boundary: Boundary) -> Boundary:
    """The boundary nodes, where a part too thin for any node of its own gets those that happen to lie on it."""
    lost = ~boundary.on_part.any(axis=0)
    if not lost.any():
        return boundary
    there, normals = look_around(domain, boundary.points)
    there &= lost
    part = np.where(there.any(axis=1), np.argmax(there, axis=1), boundary.part)
    part_normals = np.where(there[:, :, None], normals, boundary.part_normals)
    return replace(boundary, part=part, on_part=boundary.on_part | there, part_normals=part_normals)


# ---- one dimension -------------------------------------------------------------------------------------------------
def intervals(domain) -> np.ndarray:
    """The (m, 2) intervals a one-dimensional domain consists of; one may reach beyond a period."""
    if not domain.part_names:
        return domain.bounds.T.copy()
    ends = np.sort(domain.boundary_cloud(domain.size, np.random.default_rng(0))[:, 0])
    ends = ends[np.diff(ends, prepend=-np.inf) > 1e-12 * domain.size]
    if domain.periods[0] > 0:
        ends = np.append(ends, ends[0] + domain.periods[0])
    inside = domain.contains(domain.wrap(((ends[1:] + ends[:-1]) / 2)[:, None]))
    return np.stack([ends[:-1][inside], ends[1:][inside]], axis=1)


def _ends(domain, n) -> Boundary:
    points = domain.wrap(intervals(domain).reshape(-1, 1)) if domain.part_names else np.empty((0, 1))
    if n is not None and n != len(points):
        raise InputError(f"n_boundary={n} does not fit: this line has {len(points)} ends. Leave it out.")
    return describe(domain, points, np.ones(len(points)))


# ---- two dimensions ------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Curve:
    """An arc as a dense polyline with its weighted length, the integral of ds/h."""

    points: np.ndarray
    weight: np.ndarray  # cumulative, starts at 0
    closed: bool

    def at(self, weight: np.ndarray) -> np.ndarray:
        """Points at weights (n,), which may go beyond the end of a closed curve."""
        weight = np.mod(weight, self.weight[-1]) if self.closed else weight
        return points_along(self.points, weight, self.weight)


def weighted_curve(line: np.ndarray, spacing: Spacing, wrap: Wrap) -> tuple[Curve, np.ndarray]:
    """The curve through the points of a polyline (m, dimension), and which of its points stand for these, (m,) int."""
    finer = max(1, int(np.ceil(400 / (len(line) - 1))))
    t = np.linspace(0, len(line) - 1, finer * (len(line) - 1) + 1)
    at = finer * np.arange(len(line))
    points = points_along(line, t, np.arange(len(line)))
    density = 1 / spacing(points)
    for _ in range(20):  # halve where the spacing changes within a segment that has room for a node
        steep = np.abs(np.diff(density)) * np.linalg.norm(np.diff(points, axis=0), axis=1) > 0.2
        if not steep.any():
            break
        halves = np.flatnonzero(steep) + 1
        middle = (points[halves - 1] + points[halves]) / 2
        points, density = np.insert(points, halves, middle, axis=0), np.insert(density, halves, 1 / spacing(middle))
        at = at + np.searchsorted(halves, at, side="right")
    length = np.linalg.norm(np.diff(points, axis=0), axis=1)
    weight = np.concatenate([[0], np.cumsum(length * (density[1:] + density[:-1]) / 2)])
    # a side of a periodic box starts and ends at the same place
    closed = bool(np.linalg.norm(wrap.shortest(points[-1] - points[0])) < 1e-12 * length.sum())
    return Curve(points, weight, closed), at


@dataclass(frozen=True, eq=False)
class _Run:
    """A stretch of a curve that lies on the same parts throughout."""

    curve: Curve
    start: float  # weight at which it begins
    weight: float
    parts: np.ndarray  # (n_parts,)

    @property
    def closed(self) -> bool:
        """Whether it is the whole of a closed curve."""
        return self.curve.closed and self.weight == self.curve.weight[-1]


def _runs(curve: Curve, starts: np.ndarray, parts: np.ndarray, thin: float) -> list[_Run]:
    """The pieces of a curve, those thinner than `thin` given to their longer neighbours."""
    weights = np.diff(np.append(starts, curve.weight[-1]))
    runs = [_Run(curve, *piece) for piece in zip(starts, weights, parts, strict=True)]
    while len(runs) > 1:
        n = len(runs)
        after = [(k, (k + 1) % n) for k in range(n if curve.closed else n - 1)]
        alike = next(((k, j) for k, j in after if np.all(runs[k].parts == runs[j].parts)), None)
        if alike is not None:
            k, j = alike
            together = curve.weight[-1] if n == 2 else runs[k].weight + runs[j].weight
            runs[k] = replace(runs[k], weight=together)
            runs.pop(j)
            continue
        k = int(np.argmin([run.weight for run in runs]))
        if runs[k].weight >= thin:
            break
        beside = [runs[j % n] for j in (k - 1, k + 1) if curve.closed or 0 <= j < n]
        runs[k] = replace(runs[k], parts=max(beside, key=lambda run: run.weight).parts)
    return runs


def _split(runs: list[_Run], places: np.ndarray) -> list[_Run]:
    """Runs divided at places (m,), weights along their curve; a closed one that has but one of them begins there."""
    out = []
    for run in runs:
        total = run.curve.weight[-1]
        start = places[0] if run.closed and len(places) else run.start
        off = np.mod(places - start, total) if run.curve.closed else places - start
        inner = np.unique(off[(off > 1e-9 * total) & (off < run.weight - 1e-9 * total)])
        out += [replace(run, start=start + a, weight=b - a) for a, b in pairwise([0.0, *inner, run.weight])]
    return out


def _along_arcs(domain, spacing: Spacing, n: int | None, joints: np.ndarray | None) -> Boundary:
    wrap = Wrap.of(domain)
    arcs = pieces(domain)
    if joints is not None:
        parted = [insert(arc.points, joints, 1e-4 * domain.size) for arc in arcs]
        arcs = [replace(arc, points=p[0], cuts=p[1][arc.cuts]) for arc, p in zip(arcs, parted, strict=True)]
    curves = [weighted_curve(arc.points, spacing, wrap) for arc in arcs]
    if not curves:
        return describe(domain, np.empty((0, 2)), np.empty(0))
    unit = 1.0 if n is None else sum(curve.weight[-1] for curve, _ in curves) / n
    split = [
        _runs(curve, curve.weight[at[arc.cuts[:-1]]], arc.parts, _THIN * unit)
        for arc, (curve, at) in zip(arcs, curves, strict=True)
    ]
    if joints is not None:
        split = [
            _split(several, curve.weight[at[p[2]]])
            for several, (curve, at), p in zip(split, curves, parted, strict=True)
        ]
    runs = [run for several in split for run in several]
    total = np.array([run.weight for run in runs])
    least = np.array([3 if run.closed else 1 for run in runs])
    counts = np.maximum(np.round(total).astype(int), least) if n is None else apportion(total, least, n, "n_boundary")
    owner = np.repeat(np.arange(len(arcs)), [len(several) for several in split])
    around = [(arc.length, int(counts[owner == k].sum())) for k, arc in enumerate(arcs) if arc.closed]
    coarse = min([few for few in around if few[1] < ROUND], key=lambda few: few[::-1], default=None)
    smooth, parts, ends, beside, end_parts = [], [], [], [], []
    for run, m in zip(runs, counts, strict=True):
        step = run.weight / m
        inner = run.curve.at(run.start + step * np.arange(0 if run.closed else 1, m))
        smooth.append(inner)
        parts.append(np.tile(run.parts, (len(inner), 1)))
        if not run.closed:
            ends.append(run.curve.at(run.start + np.array([0.0, run.weight])))
            off = np.minimum(0.02 * step, 1e-6 * domain.size / spacing(ends[-1]))
            beside.append(run.curve.at(run.start + np.array([off[0], run.weight - off[1]])))
            end_parts += [run.parts, run.parts]
    points, on_part = domain.project(np.concatenate(smooth)), np.concatenate(parts)
    normals = domain.normal(points) if len(points) else points
    part, part_normals = np.argmax(on_part, axis=1), np.repeat(normals[:, None], on_part.shape[1], axis=1)
    if ends:
        # a corner is the end of two arcs but one node; each lends it its parts, and to these its normal
        corners, lent = np.concatenate(ends), np.array(end_parts)
        sides = domain.plain(domain.project(np.concatenate(beside)))[1]
        tolerance = 1e-8 * float(np.ptp(domain.bounds, axis=0).max())
        same = wrap.tree(corners).query_ball_point(wrap.shifted(corners), tolerance)
        first = np.array([min(group) for group in same])
        groups = [np.flatnonzero(first == c) for c in np.unique(first)]
        points = np.concatenate([points, corners[np.unique(first)]])
        part = np.concatenate([part, np.argmax(lent[np.unique(first)], axis=1)])
        on_part = np.concatenate([on_part, [lent[group].any(axis=0) for group in groups]])
        lenders = [group[np.argmax(lent[group], axis=0)] for group in groups]  # for each part the first side it is on
        part_normals = np.concatenate([part_normals, [sides[lender] for lender in lenders]])
    boundary = Boundary(wrap.fold(points), part, on_part, part_normals, coarse)
    return _none_lost(domain, boundary)


def apportion(total: np.ndarray, least: np.ndarray, n: int, name: str) -> np.ndarray:
    """Split n pieces over arcs in proportion to their lengths, each at least `least`, by largest remainders."""
    if n < least.sum():
        raise UnsuitableNodes(f"{name}={n} is too small for {len(least)} pieces of this domain. Use more.")
    pieces = least.copy()
    while pieces.sum() < n:
        missing = n - pieces.sum()
        wanted = np.maximum(total * n / total.sum() - pieces, 0)
        whole = np.floor(wanted * min(1.0, missing / max(wanted.sum(), 1e-300))).astype(int)
        if whole.sum() == 0:
            whole = np.zeros_like(pieces)
            whole[np.argsort(-(total / pieces), kind="stable")[: min(missing, len(pieces))]] = 1
        pieces = pieces + whole
    return pieces


# ---- three dimensions ----------------------------------------------------------------------------------------------
# Nodes per area over h^2, so that evened-out nodes have their nearest neighbours about h away (hexagons: 1.155).
_DENSITY = 0.95


def on_surface(domain, spacing: Spacing, n: int | None, rng, *, steps: int, joints: Joints | None = None):
    """Nodes on a surface, (m, 3), their spacing (m,), and how many of them, the first, have to be where they are."""
    shape = domain.unnamed
    maker = _on_box if isinstance(shape, Box) else _on_ball if isinstance(shape, Ball) else _on_cloud
    make = partial(maker, shape, joints=joints)
    if n is None:
        (points, n_fixed), scale = make(spacing, rng), 1.0
    else:
        points, n_fixed, scale = _counted(domain, make, spacing, n, rng)
    h = scale * spacing(points)
    points[n_fixed:] = spread(domain, points[n_fixed:], h[n_fixed:], points[:n_fixed], h[:n_fixed], steps)
    return points, h, n_fixed


def smallest_surface(domain, points: np.ndarray, h: np.ndarray) -> tuple[float, int] | None:
    """Circumference and nodes of the closed surface with the fewest, if too few for its shape: a hole, for instance."""
    if not len(points):
        return None
    wrap = Wrap.of(domain)
    pairs = wrap.tree(points).query_pairs(_LINKED * float(h.max()), output_type="ndarray")
    gap = np.linalg.norm(wrap.shortest(points[pairs[:, 0]] - points[pairs[:, 1]]), axis=1)
    near = pairs[gap < _LINKED * np.maximum(h[pairs[:, 0]], h[pairs[:, 1]])]
    graph = sparse.coo_array((np.ones(len(near)), near.T), shape=(len(points),) * 2)
    surface = connected_components(graph, directed=False)[1]
    counts = np.bincount(surface)
    least = int(np.argmin(counts))
    if counts[least] >= _ROUND_IN_SPACE:
        return None
    own = surface == least
    return np.pi * float(np.ptp(points[own], axis=0).max() + h[own].mean()), int(counts[least])


def _counted(domain, make, spacing: Spacing, n: int, rng: np.random.Generator):
    """Scale the spacing until slightly more than n surface nodes come out, then take the most crowded away."""
    seed = rng.spawn(1)[0]
    scale, best = 1.0, None
    for _ in range(12):
        points, n_fixed = make(lambda x, s=scale: s * spacing(x), deepcopy(seed))
        if len(points) >= n and (best is None or len(points) < len(best[0])):
            best = points, n_fixed, scale
        if best is not None and len(best[0]) <= 1.03 * n:
            break
        scale *= float(np.sqrt(len(points) / (n if isinstance(make.args[0], Ball) else 1.01 * n + 1)))
    if best is None or best[1] >= n:
        raise UnsuitableNodes(f"n_boundary={n} is too small for the edges of this domain. Use more boundary nodes.")
    points, n_fixed, scale = best
    h = scale * spacing(points)
    kept = trim(domain, points[n_fixed:], h[n_fixed:], points[:n_fixed], n - n_fixed)
    return np.concatenate([points[:n_fixed], kept]), n_fixed, scale


def _on_ball(ball: Ball, spacing: Spacing, rng: np.random.Generator, joints: Joints | None = None):
    h = spacing(ball.center + ball.radius * fibonacci(200))
    if np.ptp(h) > 1e-9 * h.max() or (joints is not None and len(joints(spacing))):
        return _on_cloud(ball, spacing, rng, joints)
    n = max(4, round(_DENSITY * 4 * np.pi * (ball.radius / h.mean()) ** 2))
    return ball.center + ball.radius * fibonacci(n), 0


def _on_cloud(domain, spacing: Spacing, rng: np.random.Generator, joints: Joints | None = None):
    """A dense cloud of boundary points, thinned at random until no two are too near; joints are fixed and come first."""
    wrap = Wrap.of(domain)
    h = float(spacing(domain.boundary_cloud(0.2 * float(np.ptp(domain.bounds, axis=0).min()), rng)).min())
    cloud = domain.boundary_cloud(h, rng)
    wanted = spacing(cloud)
    enough = rng.random(len(cloud)) < 1.5 * (h / wanted) ** 2  # where the spacing is wide a sparser cloud will do
    cloud = cloud[enough]
    # random thinning at radius r keeps 0.7 area/r^2 points, so this radius keeps 0.95 area/h^2
    radii = np.sqrt(0.7 / _DENSITY) * wanted[enough]
    rank = rng.permutation(len(cloud))
    kept = np.empty((0, 3)) if joints is None else joints(spacing)
    n_fixed = len(kept)
    band = np.floor(np.log(radii / radii.min()) / np.log(1.5)).astype(int)
    for scale in np.unique(band):  # fine to wide, so that one search radius serves each
        some = np.flatnonzero(band == scale)
        if len(kept):
            some = some[wrap.query(wrap.tree(kept), cloud[some], 1)[0][:, 0] >= radii[some]]
        if some.size:
            kept = np.concatenate([kept, cloud[some[independent(cloud[some], radii[some], rank[some], wrap)]]])
    return kept, n_fixed


def _on_box(box: Box, spacing: Spacing, rng: np.random.Generator, joints: Joints | None = None):
    """Corners, evenly divided edges, filled faces; the first two and the joints are fixed and come first."""
    given = np.empty((0, 3)) if joints is None else joints(spacing)
    wrap, (lower, upper) = Wrap.of(box), box.bounds
    axes = [axis for axis in range(3) if box.periods[axis] == 0]
    edges = [np.empty((0, 3))]
    for axis in range(3):
        others = [a for a in axes if a != axis]
        if len(others) < 2:
            continue
        for ends in product((0, 1), repeat=2):
            start = lower.copy()
            start[others] = box.bounds[list(ends), others]
            stop = start.copy()
            stop[axis] = upper[axis]
            on_edge = given[(given[:, others] == start[others]).all(axis=1)]
            stops = [start, *on_edge[np.argsort(on_edge[:, axis])], stop]
            for ends_of_piece in pairwise(stops):
                curve, _ = weighted_curve(np.array(ends_of_piece), spacing, wrap)
                count = max(1, round(float(curve.weight[-1])))
                edges.append(curve.at(np.linspace(0, curve.weight[-1], count + 1)[: count if curve.closed else None]))
    fixed = np.unique(np.concatenate([*edges, given]), axis=0)
    faces = [fixed]
    for axis in axes:
        plane = [a for a in range(3) if a != axis]
        names = [AXES[k] for k, a in enumerate(plane) if box.periods[a] > 0]
        face = Box(lower[plane], upper[plane], names)
        for end in (lower[axis], upper[axis]):
            rim = fixed[fixed[:, axis] == end][:, plane]
            lift = partial(np.insert, obj=axis, values=end, axis=1)
            # 0.98: a plane fill at r keeps 0.91 area/r^2 points
            faces.append(lift(fill(face, lambda p, _, lift=lift: 0.98 * spacing(lift(p)), rim, rng=rng)))
    return np.concatenate(faces), len(fixed)


def spread(domain, points, h, fixed, fixed_h, steps: int) -> np.ndarray:
    """Even out surface nodes by repulsion along the surface; nodes that would turn over an edge stay."""
    if len(points) < 2 or steps == 0:
        return points
    wrap = Wrap.of(domain)
    everything, h = np.concatenate([points, fixed]), np.concatenate([h, fixed_h])
    n, k = len(points), min(7, len(points) + len(fixed) - 1)
    normals = domain.normal(points)
    for step in range(steps):
        if step % 5 == 0:
            neighbours = wrap.query(wrap.tree(everything), everything[:n], k + 1)[1][:, 1:]
            start = everything[:n].copy()
        away = wrap.shortest(everything[:n, None, :] - everything[neighbours])
        square = np.maximum((away**2).sum(axis=2), 1e-12 * h[:n, None] ** 2)
        force = np.einsum("ijk,ij->ik", away, h[neighbours] ** 5 / square**3)
        force -= normals * (force * normals).sum(axis=1, keepdims=True)
        size = np.linalg.norm(force, axis=1)
        length = 0.2 * (1 - step / steps) * h[:n] * np.minimum(size, 1) / np.maximum(size, 1e-300)
        everything[:n] += force * length[:, None]
        if step % 5 < 4 and step < steps - 1:
            continue
        # back to the surface only now and then: a projection may be dear, small tangential moves lead little astray
        moved = domain.project(everything[:n])
        turned = domain.normal(moved)
        stays = (turned * normals).sum(axis=1) < 0.8
        moved[stays], turned[stays] = start[stays], normals[stays]
        everything[:n], normals = moved, turned
    return wrap.fold(everything[:n])
