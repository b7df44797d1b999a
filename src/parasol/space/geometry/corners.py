"""Corners and edges: which parts of the boundary meet in a point, and the normals of the sides these lie on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from parasol.space.geometry.domain import Domain

_SAME = 1 - 1e-3  # cosine between normals of one side, a step apart
_NEARLY = 0.7  # the same within a spacing, over which a side may bend


def look_around(domain: Domain, points: np.ndarray, reach: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Parts (n, n_parts) of boundary points, and the normals (n, n_parts, dimension) of the sides these parts lie on.

    In a corner, what lies beside it decides: stepping off along each of its sides tells which parts begin there. With
    `reach` (n,) a part that ends within this distance of the corner, or of an edge near by, does not count.
    """
    foot = domain.project(points)
    parts, normal = domain.plain(foot)
    normals = np.repeat(normal[:, None], parts.shape[1], axis=1)
    if domain.dimension == 1 or not len(points):
        return parts, normals
    step = 1e-5 * domain.size
    steps = np.stack(around(normal))
    nudged = foot + step * steps
    beside = domain.project(nudged.reshape(-1, domain.dimension))
    seen, slant = (values.reshape(len(steps), len(foot), -1) for values in domain.plain(beside))
    beside = beside.reshape(slant.shape)
    back = nudged - beside
    # a neighbour that came back to the corner or to an edge, not straight down onto a side, tells nothing about sides
    slip = np.linalg.norm(back - np.sum(back * slant, axis=2, keepdims=True) * slant, axis=2)
    valid = (np.linalg.norm(beside - foot, axis=2) > 0.1 * step) & (slip < 0.1 * step)
    here = np.einsum("knd,nd->kn", slant, normal) > _SAME
    sharp = valid.any(axis=0) & ~here.all(axis=0)
    if reach is not None and domain.dimension == 3:
        smooth = np.flatnonzero(valid.any(axis=0) & ~sharp)
        parts[smooth] = _beside_edges(domain, foot[smooth], parts[smooth], normal[smooth], reach[smooth])
    if reach is not None and sharp.any():
        rows = np.flatnonzero(sharp)
        off, first = _into_sides(beside[:, rows] - foot[rows], slant[:, rows], valid[:, rows], _SAME)
        step, row = np.nonzero(first == np.arange(len(steps))[:, None])  # one for each side
        far = domain.project(foot[rows[row]] + reach[rows[row], None] * off[step, row])
        there, turned = domain.plain(far)
        # where the side itself ends or bends away before, the first step has to do
        same_side = np.sum(turned * slant[step, rows[row]], axis=1) > _NEARLY
        step, row, far, there, turned = (values[same_side] for values in (step, row, far, there, turned))
        if domain.dimension == 3:
            there = _beside_edges(domain, far, there, turned, reach[rows[row]])
        seen[step, rows[row]] = there
        seen[:, rows] = seen[first, rows]
    seen &= valid[:, :, None]
    # parts that meet in a smooth place, far from any corner, are told apart by the point itself
    corner = (sharp | (parts.sum(axis=1) > 1)) & seen.any(axis=(0, 2))
    parts[corner] = seen.any(axis=0)[corner]
    # of several sides of a part, the one with the point's own normal
    first = np.argmax(seen.astype(int) + (seen & here[:, :, None]), axis=0)
    rows = np.arange(len(foot))[:, None]
    elsewhere = corner[:, None] & parts & ~here[first, rows]
    normals[elsewhere] = slant[first, rows][elsewhere]
    return parts, normals


def of_first(parts: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """Of normals (n, n_parts, dimension), that of the first part each point lies on: (n, dimension)."""
    return np.take_along_axis(normals, np.argmax(parts, axis=1)[:, None, None], axis=1)[:, 0]


def _beside_edges(domain: Domain, foot, parts, normal, reach) -> np.ndarray:
    """Parts (n, n_parts) of surface points; where an edge is in reach, those of the side further from the edge."""
    ring = foot + reach[:, None] * np.stack([normal, *around(normal)])  # the first comes straight back
    there = domain.project(ring.reshape(-1, 3))
    turned = domain.normal(there).reshape(ring.shape)
    leaves = np.einsum("knd,nd->kn", turned, normal) < _NEARLY
    rows = np.flatnonzero(leaves.any(axis=0))
    if len(rows):
        steps = there.reshape(ring.shape)[:, rows] - foot[rows]
        inward = _into_sides(steps, turned[:, rows], np.ones((len(ring), len(rows)), dtype=bool), _NEARLY)[0][0]
        seen, turned = domain.plain(domain.project(foot[rows] + reach[rows, None] * inward))
        same_side = np.sum(turned * normal[rows], axis=1) > _NEARLY
        parts[rows] = np.where(same_side[:, None], seen, parts[rows])
    return parts


def _into_sides(steps, normals, valid, cosine: float) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors along the side on which each step from a corner ended, away from all other sides there.

    `steps` and `normals` are (n_steps, n, dimension), `valid` (n_steps, n); `cosine` tells sides apart. On an edge of two
    sides the way is square to the edge, so that what changes along the edge does not matter. Also returned is the first
    valid step onto the same side, (n_steps, n).
    """
    alike = np.einsum("knd,jnd->kjn", normals, normals) > cosine
    inward = np.einsum("kjn,jnd->knd", alike & valid, steps)
    if steps.shape[2] == 3:
        different = ~alike & valid
        other = np.argmax(different, axis=1)  # (n_steps, n)
        rows = np.arange(steps.shape[1])
        third = different & np.moveaxis(different[other, :, rows], 2, 1)
        along = np.cross(normals, normals[other, rows])
        size = np.linalg.norm(along, axis=2, keepdims=True)
        edge = different.any(axis=1) & ~third.any(axis=1)
        along = np.where(edge[:, :, None], along / np.maximum(size, 1e-300), 0.0)
        inward = inward - np.sum(inward * along, axis=2, keepdims=True) * along
    inward /= np.maximum(np.linalg.norm(inward, axis=2, keepdims=True), 1e-300)
    return inward, np.argmax(alike & valid, axis=1)


def around(normals: np.ndarray) -> list[np.ndarray]:
    """Steps (n, dimension) off points of a surface, 2 ways along it in the plane, 8 in space, each up and down a little.

    Down, a step beyond a convex edge comes back onto the other side; up, one beyond a re-entrant edge does.
    """
    if normals.shape[1] == 2:
        along = np.stack([-normals[:, 1], normals[:, 0]], axis=1)
        tangents = [along, -along]
    else:
        least = np.eye(3)[np.argmin(np.abs(normals), axis=1)]
        first = np.cross(normals, least)
        first /= np.linalg.norm(first, axis=1, keepdims=True)
        second = np.cross(normals, first)
        # 0.3 keeps them off the axes, along which the edges of boxes run
        angles = 0.3 + np.pi / 4 * np.arange(8)
        tangents = [np.cos(angle) * first + np.sin(angle) * second for angle in angles]
    return [tangent + sign * 0.5 * normals for tangent in tangents for sign in (-1, 1)]
