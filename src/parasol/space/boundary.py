"""Boundary nodes: evenly along curves, over surfaces, with the normal and the part of every node."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from parasol.checks import ParasolError
from parasol.space.fill import fibonacci, fill, independent
from parasol.space.geometry.domain import AXES, Arc
from parasol.space.geometry.primitives import Ball, Box
from parasol.space.relax import trim
from parasol.space.wrap import Wrap


@dataclass(frozen=True, eq=False)
class Boundary:
    """Boundary nodes with outward normals, the part each normal belongs to, and all parts a node lies on."""

    points: np.ndarray  # (n, dimension)
    normals: np.ndarray  # (n, dimension)
    part: np.ndarray  # (n,)
    on_part: np.ndarray  # (n, n_parts)
    coarse: tuple[float, int] | None = (
        None  # length and nodes of the closed curve with fewest, if too few for its shape
    )


Spacing = Callable[[np.ndarray], np.ndarray]
_ROUND = 8  # nodes that a closed curve needs to be told from a polygon


def boundary_nodes(domain, spacing: Spacing, n: int | None, rng: np.random.Generator, *, steps: int = 20) -> Boundary:
    """Place nodes on the boundary of a domain with the local spacing, or n of them with that density.

    `spacing` takes (m, dimension) points and returns (m,) positive lengths. Surface nodes are evened out by `steps` of
    repulsion.
    """
    if domain.dimension == 1:
        return _ends(domain, n)
    if domain.dimension == 2:
        return _along_arcs(domain, spacing, n)
    return _on_surface(domain, spacing, n, rng, steps)


def describe(domain, points, beside=None, on_part=None) -> Boundary:
    """Attach normals and parts, read off at `beside` (points just off the corners) where given."""
    beside = points if beside is None else beside
    if len(points) == 0:
        empty = np.empty((0, domain.dimension))
        return Boundary(empty, empty, np.empty(0, dtype=int), np.empty((0, len(domain.part_names)), dtype=bool))
    parts = domain.parts(beside)
    part = np.argmax(parts, axis=1)
    return Boundary(points, domain.normal(beside), part, parts if on_part is None else on_part | parts)


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
        raise ParasolError(f"n_boundary={n} does not fit: this line has {len(points)} ends. Leave it out.")
    return describe(domain, points)


# ---- two dimensions ------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class _Curve:
    """An arc as a dense polyline with its weighted length, the integral of ds/h."""

    points: np.ndarray
    weight: np.ndarray  # cumulative, starts at 0
    closed: bool

    def at(self, weight) -> np.ndarray:
        return np.stack([np.interp(weight, self.weight, x) for x in self.points.T], axis=1)


def _curve(arc, spacing: Spacing, wrap: Wrap) -> _Curve:
    points = np.asarray(arc.points, dtype=float)
    if arc.closed:
        points = np.concatenate([points, points[:1]])
    pieces = max(1, int(np.ceil(400 / (len(points) - 1))))
    t = np.linspace(0, len(points) - 1, pieces * (len(points) - 1) + 1)
    points = np.stack([np.interp(t, np.arange(len(points)), x) for x in points.T], axis=1)
    length = np.linalg.norm(np.diff(points, axis=0), axis=1)
    density = 1 / spacing(points)
    weight = np.concatenate([[0], np.cumsum(length * (density[1:] + density[:-1]) / 2)])
    # a side of a periodic box starts and ends at the same place
    closed = arc.closed or bool(np.linalg.norm(wrap.shortest(points[-1] - points[0])) < 1e-12 * length.sum())
    return _Curve(points, weight, closed)


def _along_arcs(domain, spacing: Spacing, n: int | None) -> Boundary:
    wrap = Wrap.of(domain)
    arcs = domain.arcs()
    curves = [_curve(arc, spacing, wrap) for arc in arcs]
    if not curves:
        return describe(domain, np.empty((0, 2)))
    total = np.array([c.weight[-1] for c in curves])
    least = np.array([3 if c.closed else 1 for c in curves])
    pieces = np.maximum(np.round(total).astype(int), least) if n is None else apportion(total, least, n, "n_boundary")
    few = [(int(m), arc.length) for arc, m in zip(arcs, pieces, strict=True) if arc.closed and m < _ROUND]
    coarse = min(few)[::-1] if few else None
    smooth, corner, corner_beside = [], [], []
    for curve, m in zip(curves, pieces, strict=True):
        step = curve.weight[-1] / m
        if curve.closed:
            smooth.append(curve.at(step * np.arange(m)))
            continue
        smooth.append(curve.at(step * np.arange(1, m)))
        corner.append(curve.points[[0, -1]])
        corner_beside.append(curve.at(np.array([0.02 * step, curve.weight[-1] - 0.02 * step])))
    points = domain.project(np.concatenate(smooth))
    if not corner:
        return replace(describe(domain, wrap.fold(points)), coarse=coarse)
    ends, beside = np.concatenate(corner), domain.project(np.concatenate(corner_beside))
    # a corner is the end of two arcs but one node; all its arcs lend it their parts
    tolerance = 1e-8 * float(np.ptp(domain.bounds, axis=0).max())
    same = wrap.tree(ends).query_ball_point(ends if wrap.axes.size == 0 else wrap.fold(ends) - wrap.lower, tolerance)
    first = np.array([min(group) for group in same])
    chosen = np.unique(first)
    parts = domain.parts(beside)
    on_part = np.array([parts[np.flatnonzero(first == c)].any(axis=0) for c in chosen])
    every = np.concatenate([points, ends[chosen]])
    on_part = np.concatenate([domain.parts(points), on_part]) if len(points) else on_part
    described = describe(domain, every, np.concatenate([points, beside[chosen]]), on_part)
    return replace(described, coarse=coarse)


def apportion(total: np.ndarray, least: np.ndarray, n: int, name: str) -> np.ndarray:
    """Split n pieces over arcs in proportion to their lengths, each at least `least`, by largest remainders."""
    if n < least.sum():
        raise ParasolError(f"{name}={n} is too small for {len(least)} pieces of this domain. Use more.")
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


def _on_surface(domain, spacing: Spacing, n: int | None, rng: np.random.Generator, steps: int) -> Boundary:
    shape = domain
    while hasattr(shape, "base"):  # a domain with renamed parts has the shape of the one below it
        shape = shape.base
    if isinstance(shape, Box):
        make = partial(_on_box, shape)
    elif isinstance(shape, Ball):
        make = partial(_on_ball, shape)
    else:
        make = partial(_on_cloud, shape)
    if n is None:
        (points, beside, n_fixed), scale = make(spacing, rng), 1.0
    else:
        points, beside, n_fixed, scale = _counted(domain, make, spacing, n, rng)
    h = scale * spacing(points)
    points[n_fixed:] = _spread(domain, points[n_fixed:], h[n_fixed:], points[:n_fixed], h[:n_fixed], steps)
    beside = np.concatenate([beside, points[n_fixed:]])
    return describe(domain, points, beside, domain.parts(points) if len(points) else None)


def _counted(domain, make, spacing: Spacing, n: int, rng: np.random.Generator):
    """Scale the spacing until slightly more than n surface nodes come out, then take the most crowded away."""
    seed = rng.spawn(1)[0]
    scale, best = 1.0, None
    for _ in range(12):
        points, beside, n_fixed = make(lambda x, s=scale: s * spacing(x), deepcopy(seed))
        if len(points) >= n and (best is None or len(points) < len(best[0])):
            best = points, beside, n_fixed, scale
        if best is not None and len(best[0]) <= 1.03 * n:
            break
        scale *= float(np.sqrt(len(points) / (n if isinstance(make.args[0], Ball) else 1.01 * n + 1)))
    if best is None or best[2] >= n:
        raise ParasolError(f"n_boundary={n} is too small for the edges of this domain. Use more boundary nodes.")
    points, beside, n_fixed, scale = best
    h = scale * spacing(points)
    kept = trim(domain, points[n_fixed:], h[n_fixed:], points[:n_fixed], n - n_fixed)
    return np.concatenate([points[:n_fixed], kept]), beside, n_fixed, scale


def _on_ball(ball: Ball, spacing: Spacing, rng: np.random.Generator):
    h = spacing(ball.center + ball.radius * fibonacci(200))
    if np.ptp(h) > 1e-9 * h.max():
        return _on_cloud(ball, spacing, rng)
    n = max(4, round(_DENSITY * 4 * np.pi * (ball.radius / h.mean()) ** 2))
    return ball.center + ball.radius * fibonacci(n), np.empty((0, 3)), 0


def _on_cloud(domain, spacing: Spacing, rng: np.random.Generator):
    """A dense cloud of boundary points, thinned at random until no two are too near."""
    wrap = Wrap.of(domain)
    h = float(spacing(domain.boundary_cloud(0.2 * float(np.ptp(domain.bounds, axis=0).min()), rng)).min())
    cloud = domain.boundary_cloud(h, rng)
    wanted = spacing(cloud)
    enough = rng.random(len(cloud)) < 1.5 * (h / wanted) ** 2  # where the spacing is wide a sparser cloud will do
    cloud = cloud[enough]
    # random thinning at radius r keeps 0.7 area/r^2 points, so this radius keeps 0.95 area/h^2
    radii = np.sqrt(0.7 / _DENSITY) * wanted[enough]
    rank = rng.permutation(len(cloud))
    kept = np.empty((0, 3))
    band = np.floor(np.log(radii / radii.min()) / np.log(1.5)).astype(int)
    for scale in np.unique(band):  # fine to wide, so that one search radius serves each
        some = np.flatnonzero(band == scale)
        if len(kept):
            some = some[wrap.query(wrap.tree(kept), cloud[some], 1)[0][:, 0] >= radii[some]]
        if some.size:
            kept = np.concatenate([kept, cloud[some[independent(cloud[some], radii[some], rank[some], wrap)]]])
    return kept, np.empty((0, 3)), 0


def _on_box(box: Box, spacing: Spacing, rng: np.random.Generator):
    """Corners, evenly divided edges, filled faces; the first two are fixed and come first."""
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
            curve = _curve(Arc(np.array([start, stop]), closed=False), spacing, wrap)
            pieces = max(1, round(float(curve.weight[-1])))
            edges.append(curve.at(np.linspace(0, curve.weight[-1], pieces + 1)[: pieces if curve.closed else None]))
    fixed = np.unique(np.concatenate(edges), axis=0)
    faces = [fixed]
    for axis in axes:
        plane = [a for a in range(3) if a != axis]
        names = [AXES[k] for k, a in enumerate(plane) if box.periods[a] > 0]
        face = Box(lower[plane], upper[plane], names)
        for end in (lower[axis], upper[axis]):
            rim = fixed[fixed[:, axis] == end][:, plane]

            def lift(points, plane=plane, axis=axis, end=end):
                out = np.full((len(points), 3), end)
                out[:, plane] = points
                return out

            # 0.98: a plane fill at r keeps 0.91 area/r^2 points
            faces.append(lift(fill(face, lambda p, _, lift=lift: 0.98 * spacing(lift(p)), rim, rng=rng)))
    beside = fixed.copy()
    if len(fixed):  # off the edge, into the face of the first axis
        inward = np.sign((lower + upper) / 2 - fixed) * 0.02 * spacing(fixed)[:, None]
        on_edge = ((fixed == lower) | (fixed == upper)) & (box.periods == 0)
        first = np.argmax(on_edge, axis=1)
        on_edge[np.arange(len(fixed)), first] = False
        beside += np.where(on_edge, inward, 0.0)
    return np.concatenate(faces), beside, len(fixed)


def _spread(domain, points, h, fixed, fixed_h, steps: int) -> np.ndarray:
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
