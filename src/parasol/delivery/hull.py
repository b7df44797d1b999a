"""The region that nodes fill, from the nodes and what a file keeps of their domain: enough for pictures and cells."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from parasol.runtime.outline import Outline, height
from parasol.space.geometry.domain import Arc, Domain
from parasol.space.outline import OutlinedDomain

# interior nodes that tell a boundary node where the inside is, boundary nodes that say how high a point lies
_N_NEAR = 6
_N_PLANE = 10  # boundary nodes through which a plane is laid
_BULGE = 0.1  # of the spacing: how far the region may lie above the planes, where these cut off an edge
_N_RIM = 4000  # points along a plane boundary, to find the nearest


class NodeHull(Domain):
    """A region is what its outline encloses, of segments, of discs, or of boxes and balls. Where none is known, inside is what lies beneath
    the planes through neighbouring boundary nodes, averaged: h(x) = Σ w_i (x − b_i)·n_i over the nearest of them is negative.

    The first `n_interior` nodes are interior. Without boundary nodes, or without interior ones, it is the bounding box.

    >>> square = np.array([[0.0, 0.0], [-1, -1], [0, -1], [1, -1], [1, 0], [1, 1], [0, 1], [-1, 1], [-1, 0]])
    >>> NodeHull(square, 1).contains([[0.9, 0.1], [1.8, 0.1]])
    array([ True, False])
    """

    def __init__(self, points: np.ndarray, n_interior: int, outline: Outline | None = None):
        self.points, self.n_interior, self.outline = points, n_interior, outline
        self.dimension = points.shape[1]
        self.bounds = np.array([points.min(axis=0), points.max(axis=0)]) if outline is None else outline.bounds
        self._segments = None if outline is None else outline.segments
        known = outline is not None and (outline.solid is not None or outline.discs is not None)
        self._outlined = OutlinedDomain(outline) if known and self._segments is None else None  # type: ignore[arg-type]
        self._whole = not (0 < n_interior < len(points) and self.dimension)
        rim = points[n_interior:] if self._segments is None else _along(self._segments)
        self._rim = cKDTree(rim) if rim.size else None
        if self._segments is not None or self._whole:
            return
        self._normals = _outward(rim, points[:n_interior])
        self._spacing = float(np.median(nearest_distances(points)))

    @property
    def periods(self) -> np.ndarray:  # noqa: D102
        return np.zeros(self.dimension) if self.outline is None else self.outline.periods

    def contains(self, points) -> np.ndarray:  # noqa: D102
        points = self.check_points(points)
        if self._segments is not None:
            return OutlinedDomain(self.outline).contains(points)  # type: ignore[arg-type]
        if self._outlined is not None:
            return self._outlined.contains(points)
        lower, upper = self.bounds
        inside = np.all((self.periods > 0) | ((points >= lower) & (points <= upper)), axis=1)
        if self._whole:
            return inside
        return inside & (self._height(points) <= 0)

    def distance(self, points) -> np.ndarray:  # noqa: D102
        if self._whole or self._segments is not None:
            return super().distance(points)
        points = self.check_points(points)
        if self._outlined is None:
            return self._height(points)
        solid = self._outlined.outline.solid
        return self._outlined.distance(points) if solid is None else height(solid, points)

    def _height(self, points: np.ndarray) -> np.ndarray:
        """How far points lie above the planes of the nearest boundary nodes, less what the region may bulge: (n,)."""
        rim = self.points[self.n_interior :]
        gaps, near = (a.reshape(len(points), -1) for a in self._rim.query(points, k=min(_N_NEAR, len(rim))))  # type: ignore[union-attr]
        weights = np.exp(-np.minimum((gaps**2 - gaps[:, :1] ** 2) / self._spacing**2, 700.0))
        weights /= weights.sum(axis=1, keepdims=True)
        height = np.einsum("nk,nki,nki->n", weights, points[:, None] - rim[near], self._normals[near])
        return height - _BULGE * self._spacing

    def project(self, points) -> np.ndarray:  # noqa: D102
        points = self.check_points(points)
        return np.clip(points, *self.bounds) if self._rim is None else self._rim.data[self._rim.query(points)[1]]

    def normal(self, points) -> np.ndarray:
        """Of the nearest piece of the boundary, or else away from its nearest point, as far as that has a direction."""
        points = self.check_points(points)
        if self._outlined is not None and self._outlined.outline.discs is not None:
            return self._outlined.normal(points)
        away = points - self.project(points)
        away = np.where(self.contains(points)[:, None], -away, away)
        return away / np.maximum(np.linalg.norm(away, axis=1, keepdims=True), 1e-300)

    def arcs(self) -> tuple[Arc, ...]:
        """The pieces of the outline, where it is known."""
        if self._segments is None:
            return ()
        start, end = self._segments[:, 0], self._segments[:, 1]
        breaks = 1 + np.flatnonzero(np.any(start[1:] != end[:-1], axis=1))
        return tuple(
            Arc(np.concatenate([part[:, 0], part[-1:, 1]]), closed=False) for part in np.split(self._segments, breaks)
        )


def nearest_distances(points: np.ndarray) -> np.ndarray:
    """Distance of each point to the next, (n,).

    >>> nearest_distances(np.array([[0.0], [1.0], [3.0]]))
    array([1., 1., 2.])
    """
    if len(points) < 2 or not points.shape[1]:
        return np.zeros(len(points))
    return cKDTree(points).query(points, k=2)[0][:, 1]


def _outward(rim: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """Unit normals at boundary nodes (m, dimension): of planes through neighbours, away from interior nodes nearby."""
    _, near = cKDTree(rim).query(rim, k=min(_N_PLANE, len(rim)))
    beside = rim[near.reshape(len(rim), -1)]
    _, _, axes = np.linalg.svd(beside - beside.mean(axis=1, keepdims=True))
    _, near = cKDTree(inner).query(rim, k=min(_N_NEAR, len(inner)))
    inward = np.mean(inner[near.reshape(len(rim), -1)] - rim[:, None], axis=1)
    normals = axes[:, -1]
    return np.where(np.sum(normals * inward, axis=1, keepdims=True) > 0, -normals, normals)


def _along(segments: np.ndarray) -> np.ndarray:
    """Points along segments (n, 2, 2), both ends among them, close together."""
    lengths = np.linalg.norm(segments[:, 1] - segments[:, 0], axis=1)
    counts = 1 + np.ceil(_N_RIM * lengths / max(float(lengths.sum()), 1e-300)).astype(int)
    parts = [s + (e - s) * np.linspace(0, 1, n)[:, None] for (s, e), n in zip(segments, counts, strict=True)]
    return np.concatenate(parts)
