"""Advancing front of Fornberg and Flyer: nodes laid from the bottom of a rectangle upwards, two dimensions."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from math import atan2, cos, pi, sin

import numpy as np

_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)


def front(
    bounds: np.ndarray, spacing: Callable[[np.ndarray], np.ndarray] | float, *, rng: np.random.Generator
) -> np.ndarray:
    """Cover a rectangle with nodes about h(x) apart (Fornberg and Flyer 2015), (n, 2).

    A front of possible places is kept from left to right. The lowest becomes a node; the places within h of it go, and
    five new ones take their seats on the circle of radius h between the two that stay. About 0.915 area/h^2 nodes.
    `bounds` is (2, 2): lower and upper corner; `spacing` a number or a function of (m, 2) points.

    >>> n = len(front(np.array([[0.0, 0.0], [1.0, 1.0]]), 0.05, rng=np.random.default_rng(0)))
    >>> 0.88 < n * 0.05**2 < 0.95
    True
    """
    (left, bottom), (right, top) = ((float(v) for v in row) for row in bounds)
    radius, smallest = _table(bounds, spacing)
    n_start = int(np.ceil(5 * (right - left) / smallest)) + 1
    xs = np.linspace(left, right, n_start).tolist()
    ys = (bottom + 1e-3 * smallest * rng.random(n_start)).tolist()  # jitter: the lowest place is unique
    before = list(range(-1, n_start - 1))
    after = [*range(1, n_start), -1]
    alive = [True] * n_start
    heap = list(zip(ys, range(n_start), strict=True))
    heapify(heap)
    nodes = []
    while heap:
        y, i = heappop(heap)
        if not alive[i]:
            continue
        if y > top:
            break
        x = xs[i]
        nodes.append((x, y))
        r = radius(x, y)
        square = r * r
        alive[i] = False
        a = before[i]
        while a >= 0 and (xs[a] - x) ** 2 + (ys[a] - y) ** 2 < square:
            alive[a] = False
            a = before[a]
        b = after[i]
        while b >= 0 and (xs[b] - x) ** 2 + (ys[b] - y) ** 2 < square:
            alive[b] = False
            b = after[b]
        angle = atan2(ys[a] - y, xs[a] - x) if a >= 0 else pi
        other = atan2(ys[b] - y, xs[b] - x) if b >= 0 else 0.0
        if angle < -pi / 2:  # the left neighbour lies below: the way over the top is the longer one
            angle += 2 * pi
        last = a
        for share in _SHARES:
            turn = angle - share * (angle - other)
            px = x + r * cos(turn)
            if left <= px <= right:
                py = y + r * sin(turn)
                new = len(xs)
                xs.append(px)
                ys.append(py)
                alive.append(True)
                before.append(last)
                after.append(-1)
                if last >= 0:
                    after[last] = new
                heappush(heap, (py, new))
                last = new
        if last >= 0:
            after[last] = b
        if b >= 0:
            before[b] = last
    return np.array(nodes).reshape(-1, 2)


def _table(bounds: np.ndarray, spacing) -> tuple[Callable[[float, float], float], float]:
    """The spacing as a quick function of two floats (bilinear in a table), and its smallest value."""
    if not callable(spacing):
        h = float(spacing)
        return (lambda x, y: h), h
    (left, bottom), (right, top) = bounds
    size = max(right - left, top - bottom)
    nx, ny = (max(2, int(np.ceil(150 * extent / size))) for extent in (right - left, top - bottom))
    grid = np.stack(
        np.meshgrid(np.linspace(left, right, nx + 1), np.linspace(bottom, top, ny + 1), indexing="ij"), axis=-1
    )
    values = np.asarray(spacing(grid.reshape(-1, 2)), dtype=float).reshape(nx + 1, ny + 1)
    table = values.tolist()
    left, bottom, sx, sy = float(left), float(bottom), nx / float(right - left), ny / float(top - bottom)

    def radius(x: float, y: float) -> float:
        u, v = (x - left) * sx, (y - bottom) * sy
        i, j = min(max(int(u), 0), nx - 1), min(max(int(v), 0), ny - 1)
        u, v = u - i, v - j
        here, there = table[i], table[i + 1]
        return (1 - u) * ((1 - v) * here[j] + v * here[j + 1]) + u * ((1 - v) * there[j] + v * there[j + 1])

    return radius, float(values.min())
