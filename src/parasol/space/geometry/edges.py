"""Edges, where the boundaries of two solids meet."""

from __future__ import annotations

import numpy as np

from parasol.space.geometry.domain import Domain


def onto_edge(points: np.ndarray, pair: tuple[Domain, Domain], size: float) -> np.ndarray:
    """Newton's method for a point on both boundaries, from points close by: (n, 3).

    `size` is the length that steps are small or large against.

    >>> from parasol.space.geometry.primitives import Ball, Box
    >>> onto_edge(np.array([[0.7, 0.0, 0.9]]), (Ball((0, 0, 1), 0.8), Box((-1, -1, -1), (1, 1, 1))), 1.0).round(9)
    array([[0.8, 0. , 1. ]])
    """
    points = points.copy()
    for _ in range(8):
        both = [d.beside(points) for d in pair]
        gaps, normals = (np.stack([found[k] for found in both], axis=1) for k in range(2))
        cosine = np.sum(normals[:, 0] * normals[:, 1], axis=1)
        sine2 = np.maximum(1 - cosine**2, 1e-6)
        weight = (gaps - cosine[:, None] * gaps[:, ::-1]) / sine2[:, None]
        step = np.einsum("nk,nkd->nd", weight, normals)
        length = np.linalg.norm(step, axis=1, keepdims=True)
        points -= step * np.minimum(1.0, 0.05 * size / np.maximum(length, 1e-300))
        if not len(points) or length.max() < 1e-14 * size:
            break
    return points


def edge_normals(points: np.ndarray, pair: tuple[Domain, Domain]) -> np.ndarray:
    """Two orthonormal vectors that span the normals of both boundaries: (n, 2, 3)."""
    one, other = (d.beside(points)[1] for d in pair)
    other = other - np.sum(one * other, axis=1, keepdims=True) * one
    return np.stack([one, other / np.maximum(np.linalg.norm(other, axis=1, keepdims=True), 1e-12)], axis=1)
