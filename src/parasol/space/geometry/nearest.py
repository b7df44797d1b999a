"""The nearest point of a boundary, from a sample of it: along a smooth side, or along the edge where two sides meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.spatial import KDTree

from parasol.space.geometry.domain import Domain


def from_samples(
    tree: KDTree, points: np.ndarray, refine: Callable[[np.ndarray, np.ndarray], np.ndarray], *, apart: float
) -> np.ndarray:
    """Nearest boundary points (n, dimension), refined from the nearest of the samples in a tree.

    `refine` takes points and the number of a sample for each. Where two pieces of boundary are almost equally near, the
    nearer sample need not lie on the nearer piece: a second one is tried, further than `apart` from the first.
    """
    count = min(8, tree.n)
    near = tree.query(points, k=count)[1].reshape(len(points), count)
    gaps = np.linalg.norm(tree.data[near] - tree.data[near[:, :1]], axis=2)
    rows = np.flatnonzero(gaps.max(axis=1) > apart)
    feet = refine(points, near[:, 0])
    if len(rows):
        second = near[rows, np.argmax(gaps[rows] > apart, axis=1)]
        feet[rows] = nearer(points[rows], feet[rows], refine(points[rows], second))
    return feet


def nearer(points: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Whichever of two candidates is nearer to each point: (n, dimension)."""
    closer = np.sum((other - points) ** 2, axis=1) < np.sum((one - points) ** 2, axis=1)
    return np.where(closer[:, None], other, one)


def slide(
    points: np.ndarray,
    start: np.ndarray,
    onto: Callable[[np.ndarray], np.ndarray],
    normals: Callable[[np.ndarray], np.ndarray],
    *,
    reach: float,
    size: float,
    limit: float = np.inf,
) -> np.ndarray:
    """Move `start` along a surface to the nearest point p: the tangential part of x - p is followed until it vanishes.

    Minimises |x - p|^2 over the surface; the step length is that of Barzilai and Borwein (1988). `onto` returns points
    near the surface to it, `normals` gives one unit normal at each point or, for an edge where surfaces meet, two
    orthonormal ones: (m, n_normals, dimension). A point that has come further than `limit` is left where it is.
    """

    def tangential(x: np.ndarray, p: np.ndarray) -> np.ndarray:
        directions = normals(p)
        return (x - p) - np.einsum("nk,nkd->nd", np.einsum("nd,nkd->nk", x - p, directions), directions)

    best = onto(start)
    # what could not be put back on the surface stays where it started
    lost = np.linalg.norm(best - start, axis=1) > 2 * reach
    best[lost] = start[lost]
    residual = tangential(points, best)
    away = np.linalg.norm(points - best, axis=1)
    factor = np.full(len(points), 0.5)
    active = np.arange(len(points))
    for _ in range(100):
        active = active[np.linalg.norm(residual[active], axis=1) > 1e-12 * (size + away[active])]
        if not len(active):
            break
        x, p, r = points[active], best[active], residual[active]
        step = factor[active, None] * r
        step *= np.minimum(1.0, reach / np.maximum(np.linalg.norm(step, axis=1, keepdims=True), 1e-300))
        q = onto(p + step)
        gap = np.linalg.norm(x - q, axis=1)
        better = gap <= away[active] * (1 + 1e-13) + 1e-15 * size  # rounding must not reject the last steps
        rq = tangential(x, q)
        s, y = q - p, rq - r
        bend = -np.sum(s * y, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            new = np.where(bend > 0, np.sum(s * s, axis=1) / bend, 2 * factor[active])
        factor[active] = np.where(better, np.clip(new, 1e-4, 1e4), 0.25 * factor[active])
        moved = active[better]
        best[moved], residual[moved], away[moved] = q[better], rq[better], gap[better]
        active = active[(factor[active] > 1e-8) & (np.linalg.norm(best[active] - start[active], axis=1) <= limit)]
    return best


def onto_edge(points: np.ndarray, pair: Sequence[Domain], size: float) -> np.ndarray:
    """Newton's method for a point on both boundaries, from points close by: (n, 3).

    `size` is the length that steps are small or large against.

    >>> from parasol.space.geometry.primitives import Ball, Box
    >>> onto_edge(np.array([[0.7, 0.0, 0.9]]), (Ball((0, 0, 1), 0.8), Box((-1, -1, -1), (1, 1, 1))), 1.0).round(9)
    array([[0.8, 0. , 1. ]])
    """
    points = points.copy()
    for _ in range(8):
        both = [d.beside(points) for d in pair]
        gaps, normals = (np.stack([gap_and_normal[k] for gap_and_normal in both], axis=1) for k in range(2))
        cosine = np.sum(normals[:, 0] * normals[:, 1], axis=1)
        sine2 = np.maximum(1 - cosine**2, 1e-6)
        weight = (gaps - cosine[:, None] * gaps[:, ::-1]) / sine2[:, None]
        step = np.einsum("nk,nkd->nd", weight, normals)
        length = np.linalg.norm(step, axis=1, keepdims=True)
        points -= step * np.minimum(1.0, 0.05 * size / np.maximum(length, 1e-300))
        if not len(points) or length.max() < 1e-14 * size:
            break
    return points


def side_normals(points: np.ndarray, sides: Sequence[Domain]) -> np.ndarray:
    """Orthonormal vectors that span the normals of one boundary, or of two that meet there: (n, n_sides, dimension)."""
    one, *others = (d.beside(points)[1] for d in sides)
    if not others:
        return one[:, None]
    other = others[0] - np.sum(one * others[0], axis=1, keepdims=True) * one
    return np.stack([one, other / np.maximum(np.linalg.norm(other, axis=1, keepdims=True), 1e-12)], axis=1)
