"""Repulsion: move interior nodes until none is crowded, without touching the boundary nodes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from parasol.space.wrap import Depth, Wrap

_N_NEIGHBOURS = {1: 2, 2: 7, 3: 12}
_MARGIN = 0.5  # spacings between the boundary and the nodes that are pushed


def relax(
    domain,
    points: np.ndarray,
    spacing: np.ndarray,
    fixed: np.ndarray,
    fixed_spacing: np.ndarray,
    *,
    steps=20,
    depths=None,
) -> np.ndarray:
    """Even out all interior nodes by repulsion from their nearest neighbours.

    One step moves node i along F_i = sum_j (h_j / |d|)^5 d/|d|, d = x_i - x_j, over the nearest 7 (2-D) or 12 (3-D)
    nodes j, by at most 0.3 h_i and ever less; `fixed` nodes push but never move, and no node comes nearer to the
    boundary than h/2. Shapes: points (n, dimension), spacing (n,), fixed (m, dimension), fixed_spacing (m,).
    """
    # exponent 5 and these counts gave the best ratio of separation to fill distance among 3, 5, 7 and 6..18 neighbours
    k = _N_NEIGHBOURS[domain.dimension]
    lengths = 0.3 * (1 - np.arange(steps) / max(steps, 1))
    starts = [0, *(round(share * steps) for share in (0.15, 0.35, 0.65)), steps]  # steps shrink, so lists last longer
    rounds = [(k, lengths[a:b]) for a, b in pairwise(starts)]
    return _push(depths or Depth(domain), points, spacing, fixed, fixed_spacing, rounds)


def repel(
    domain,
    points: np.ndarray,
    spacing: np.ndarray,
    fixed: np.ndarray,
    fixed_spacing: np.ndarray,
    *,
    steps=20,
    depths=None,
) -> np.ndarray:
    """Even out only the nodes that have a boundary node among their neighbours (Fornberg and Flyer 2015).

    Two rounds of `steps`/2 pushes, with 16 and then 21 neighbours (28 and 36 in 3-D); push number q = 1, 2, ... moves
    by at most h/(q + 5). Every other node comes back bit for bit.
    """
    k = (28, 36) if domain.dimension == 3 else (16, 21)
    lengths = 1 / (np.arange(1, steps + 1) + 5.0)
    half = (steps + 1) // 2
    rounds = [(k[0], lengths[:half]), (k[1], lengths[half:])]
    return _push(depths or Depth(domain), points, spacing, fixed, fixed_spacing, rounds, only_near=True)


def _push(depths: Depth, points, spacing, fixed, fixed_spacing, rounds, *, only_near: bool = False) -> np.ndarray:
    """Rounds of pushes: each with a number of neighbours, which are looked up once, and the largest moves in spacings."""
    n = len(points)
    if n == 0 or (only_near and len(fixed) == 0):
        return points.copy()
    wrap = Wrap.of(depths.domain)
    everything = np.concatenate([points, fixed])
    h = np.concatenate([spacing, fixed_spacing])
    depth = depths.at_least(points, (_MARGIN + 0.5) * spacing)  # exact near the boundary, a lower bound elsewhere
    for k, lengths in rounds:
        k = min(k, len(everything) - 1)
        if k < 1 or len(lengths) == 0:
            continue
        neighbours = wrap.query(wrap.tree(everything), everything[:n], k + 1)[1][:, 1:]
        moving = np.flatnonzero((neighbours >= n).any(axis=1)) if only_near else np.arange(n)
        neighbours, h_here = np.ascontiguousarray(neighbours[moving].T), h[moving]
        weights = h[neighbours] ** 5
        for length in lengths:
            here = everything[moving]
            move = _forces(here, everything, neighbours, weights, h_here, wrap)
            size = np.sqrt((move**2).sum(axis=1))
            move *= (length * h_here * np.minimum(size, 1) / np.maximum(size, 1e-300))[:, None]
            everything[moving] = here + move
            # the distance is 1-Lipschitz, so only nodes that may have come too near are asked
            bound = depth[moving] - np.minimum(size, 1) * length * h_here
            asked = np.flatnonzero(bound < _MARGIN * h_here)
            if asked.size:
                least = _MARGIN * h_here[asked]
                bound[asked] = depths.at_least(here[asked] + move[asked], least + 0.5 * h_here[asked])
                near = asked[bound[asked] < least]
                before = depths.at_least(here[near], (_MARGIN + 0.5) * h_here[near])
                outwards = bound[near] < before  # a node that was too near already may move inwards
                back = near[outwards]
                everything[moving[back]] = here[back]
                bound[back] = before[outwards]
            depth[moving] = bound
        everything[:n] = wrap.fold(everything[:n])
    return everything[:n]


def _forces(here, everything, neighbours, weights, h, wrap: Wrap) -> np.ndarray:
    """sum_j (h_j / |d|)^5 d / |d| for every node, (n, dimension); neighbours and weights h_j^5 are (k, n)."""
    # one coordinate at a time and in blocks that stay in the processor's cache: four times faster than (n, k, dimension)
    force = np.empty_like(here)
    coordinates = [np.ascontiguousarray(x) for x in everything.T]
    for start in range(0, len(here), 4096):
        rows = slice(start, start + 4096)
        nearby = neighbours[:, rows]
        away = [here[rows, axis] - x[nearby] for axis, x in enumerate(coordinates)]
        for axis in wrap.axes:
            away[axis] -= wrap.periods[axis] * np.round(away[axis] / wrap.periods[axis])
        square = np.maximum(sum(d * d for d in away), 1e-12 * h[rows] ** 2)
        strength = weights[:, rows] / square**3
        for axis, d in enumerate(away):
            force[rows, axis] = (strength * d).sum(axis=0)
    return force


def trim(domain, points: np.ndarray, spacing: np.ndarray, fixed: np.ndarray, n: int) -> np.ndarray:
    """Keep n of the points by removing the most crowded ones, never two neighbours in one pass."""
    wrap = Wrap.of(domain)
    while len(points) > n:
        everything = np.concatenate([points, fixed])
        k = min(4, len(everything))
        distance, index = wrap.query(wrap.tree(everything), points, k)
        crowding = (spacing[:, None] / distance[:, 1:]).sum(axis=1)
        order = np.argsort(-crowding, kind="stable")
        excess = len(points) - n
        taken = np.zeros(len(everything), dtype=bool)
        removed = []
        for i in order[: 2 * excess]:
            if not taken[index[i]].any():
                taken[index[i]] = True
                removed.append(i)
                if len(removed) == excess:
                    break
        points, spacing = np.delete(points, removed, axis=0), np.delete(spacing, removed)
    return points
