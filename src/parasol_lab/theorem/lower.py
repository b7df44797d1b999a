"""How small no ReLU network can be: a lower bound of the weights of any network that is near c(μ) on the box.

A network with b_l neurons that bend in its hidden layers is piecewise affine along a line, of at most Π (b_l + 1) pieces, and its
outputs lie in an affine space whose dimension is the number of neurons in the last hidden layer. A neuron that bends has two
weights, or a weight and a bias: with one weight alone it passes on what is not negative, or in the first layer bends at 0 only.
So a network needs many weights where c bends and where it fills many directions. What is required at samples is required of the
network on the box, so samples suffice for a proof here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from parasol_lab.theorem.construction.certificate import grid
from parasol_lab.theorem.construction.system import System

_DIRECTIONS = 3  # along which pieces are counted
_LINES = 3  # parallel to each axis
_MOST_POINTS = 4000  # on a line
_GRID = 1500  # points for widths
_ROUNDS = 40  # of weighting the points that are farthest
_SAFE = 1 + 1e-9  # rounding


@dataclass(frozen=True)
class LowerBound:
    """Any ReLU network within the accuracy has at least `n_weights` weights and biases that are not zero."""

    n_weights: int
    n_pieces: int  # along the line that bends most
    n_directions: int  # r: dimensions of an affine space that is near enough to c
    n_varying: int  # outputs that are not nearly constant


def weights_needed(n_pieces: int, n_directions: int, n_varying: int, *, zero_inside: bool = False) -> int:
    """The least number of weights: min over b of max(r, b) + b + 2 ⌈log2(K / (b + 1))⌉, and max(v, r) weights of outputs.

    b neurons of the last hidden layer bend; `zero_inside` says that the line crosses 0, where one piece more comes with one weight.

    >>> weights_needed(2, 1, 1)  # σ(x − 1/2): two weights and a bias
    3
    >>> weights_needed(2, 1, 1, zero_inside=True)  # σ(x) on [−1, 1]
    2
    """
    if n_pieces == 1:
        return n_varying
    pieces = n_pieces / 2 if zero_inside else n_pieces

    def neurons(bends: int) -> int:
        return max(n_directions, bends) + bends + 2 * max(0, math.ceil(math.log2(pieces / (bends + 1)) - 1e-12))

    return min(neurons(b) for b in range(n_pieces + 1)) + max(n_varying, n_directions)


def lower_bound(system: System, allowed: float) -> LowerBound:
    """A bound for all networks with ‖c − network‖ ≤ `allowed` on the box; values of functions are left as they are."""
    n = len(system.parameters.scalars)
    values = system.coefficients(grid(system, [max(3, round(_GRID ** (1 / n)))] * n))
    n_directions = _width(values, allowed)
    n_varying = int(np.sum(np.ptp(values, axis=0) > 2 * allowed * _SAFE))
    directions = np.linalg.svd(values - values.mean(axis=0), full_matrices=False)[2][:_DIRECTIONS]
    lines = [(axis, at) for axis in range(n) for at in np.repeat(np.linspace(0, 1, _LINES)[:, None], n, axis=1)]
    bends = [_bend(system, *line, directions) for line in lines]
    best = int(np.argmax(bends))  # lines along which c bends less need fewer pieces
    n_pieces = _pieces(system, *lines[best], directions, bends[best], allowed)
    low, high = np.asarray(system.parameters.bounds)[:, lines[best][0]]
    least = weights_needed(n_pieces, n_directions, n_varying, zero_inside=bool(low < 0 < high))
    return LowerBound(least, n_pieces, n_directions, n_varying)


def _bend(system: System, axis: int, at: np.ndarray, directions: np.ndarray) -> float:
    """The integral of the root of |second derivatives| along a line, roughly: pieces are about that over 4 √allowed."""
    values = _along(system, axis, at, _dense(200)) @ directions.T
    t = _dense(200)
    slopes = np.diff(values, axis=0) / np.diff(t)[:, None]
    return float(np.max(np.sum(np.sqrt(np.abs(np.diff(slopes, axis=0)) * (t[2:] - t[:-2])[:, None] / 2), axis=0)))


def _dense(count: int) -> np.ndarray:
    """Points of [0, 1], denser at its ends, where c often bends most."""
    return np.sin(np.pi / 2 * np.linspace(0, 1, count)) ** 2


def _pieces(system: System, axis: int, at: np.ndarray, directions: np.ndarray, bend: float, allowed: float) -> int:
    """Pieces of a broken line within `allowed` of c at points of a line: as long as they can be, one after the other."""
    count = int(np.clip(8 * bend / (4 * math.sqrt(allowed)), 200, _MOST_POINTS))
    t = _dense(count)
    values = _along(system, axis, at, t) @ directions.T
    start, pieces = 0, 0
    while start < count:
        pieces += 1
        length = 2
        while start + length < count and _straight(t, values, start, start + 2 * length, allowed):
            length *= 2
        low, high = start + length, min(count + 1, start + 2 * length)  # [start, low) is straight, [start, high) is not
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _straight(t, values, start, middle, allowed) else (low, middle)
        start = low
    return pieces


def _along(system: System, axis: int, at: np.ndarray, t: np.ndarray) -> np.ndarray:
    """c at points t of [0, 1] along a line parallel to an axis."""
    low, high = np.asarray(system.parameters.bounds)
    mus = np.repeat((low + at * (high - low))[None], len(t), axis=0)
    mus[:, axis] = low[axis] + t * (high[axis] - low[axis])
    return system.coefficients(np.clip(mus, low, high))


def _straight(t: np.ndarray, values: np.ndarray, start: int, stop: int, allowed: float) -> bool:
    """Whether an affine function is within `allowed` at the points start … stop − 1, for each direction."""
    t, values = t[start:stop], values[start:stop]
    return bool(len(t) <= 2 or all(_gap(t, y) <= allowed * _SAFE for y in values.T))


def _gap(t: np.ndarray, y: np.ndarray) -> float:
    """The least max |y − a − b t|, or a little less: half the least range of y − b t, which is convex in b."""
    slopes = np.diff(y) / np.diff(t)
    low, high = float(slopes.min()), float(slopes.max())

    def width(b: float) -> float:
        return float(np.ptp(y - b * t)) / 2

    for _ in range(60):
        first, second = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, second) if width(first) <= width(second) else (first, high)
    return width((low + high) / 2) - (high - low) / 2 * float(np.ptp(t))  # no slope is farther from the best one


def _width(values: np.ndarray, allowed: float) -> int:
    """The least n such that no proof here excludes an affine space of n dimensions within `allowed` of all values.

    The mean square of distances with any weights is at most the largest square, and least for principal directions.
    """
    weights, needed = np.full(len(values), 1 / len(values)), 0
    for _ in range(_ROUNDS):
        centred = (values - weights @ values) * np.sqrt(weights)[:, None]
        _, s, vt = np.linalg.svd(centred, full_matrices=False)
        tails = np.sqrt(np.cumsum((s**2)[::-1])[::-1])
        needed = max(needed, int(np.sum(tails > allowed * _SAFE)))
        rest = values - weights @ values
        rest = rest - (rest @ vt[:needed].T) @ vt[:needed]
        distances = np.linalg.norm(rest, axis=1)
        if not np.any(distances):
            break
        weights = weights * (distances + 1e-3 * distances.max())
        weights /= weights.sum()
    return needed
