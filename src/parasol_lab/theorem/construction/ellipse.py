"""How far c(μ) is analytic beyond the box, proven: ellipses around each parameter's range, from ‖∂B B⁺‖ on cells.

For x in [−1, 1]^p and B affine in x, c is analytic and ‖c‖ ≤ (25/7) γ/β in the product of ellipses with half axes b_j and
√(1 + b_j²), if Σ_j w_j(x) ‖∂_j B B(x)⁺‖ ≤ 1/4 for all x, where w_j(x) = b_j √(1 − x_j² / (1 + b_j²)) is how far points of the
ellipse whose nearest point is x_j are from it (docs/theorem.md, section 8).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parasol.errors import NoCertificate
from parasol_lab.theorem.construction.system import System

_CHANGE = 0.2  # of B B_m⁺ within a cell, at most
_MOST_CELLS = 20_000
_LARGEST_AXIS = 4.0


@dataclass(frozen=True)
class Ellipses:
    """Half the minor axes b_j around [−1, 1] of each parameter."""

    axes: tuple[float, ...]
    n_cells: int


def ellipses(system: System, gamma: float) -> Ellipses | None:
    """Axes for a system that is affine in μ; None where it is not."""
    n = len(system.parameters.scalars)
    if system.functions or system.n_parameters > n:
        return None
    low, high = np.asarray(system.parameters.bounds)
    half = ((high - low) / 2)[system.linear]
    middle = ((low + high) / 2)[system.linear]
    slopes = np.zeros((n, *system.operators.shape[1:]))
    slopes[system.linear[system.touched]] = system.operators[1:] * half[system.touched, None, None]
    loads = np.zeros(n)
    loads[system.linear] = np.linalg.norm(system.loads[1:], axis=1) * half
    centre = system.operator(middle[None])[0]
    ends, norms = _cells(centre, slopes)
    nearest = np.where(ends[0] * ends[1] <= 0, 0.0, np.min(np.abs(ends), axis=0))  # (n_cells, n)
    axes = [_axis(nearest[:, j], norms[:, j], loads[j], gamma, n) for j in range(n)]
    return Ellipses(tuple(axes), len(norms))


def _axis(nearest: np.ndarray, norms: np.ndarray, load: float, gamma: float, n: int) -> float:
    """The largest b with b √(1 − x²/(1 + b²)) ‖∂B B⁺‖ ≤ 1/(4n) on all cells, and b ‖∂f‖ ≤ γ/(4n)."""

    def fits(b: float) -> bool:
        width = b * np.sqrt(1 - nearest**2 / (1 + b * b))
        return bool(np.all(width * norms <= 1 / (4 * n))) and b * load <= gamma / (4 * n)

    low, high = 0.0, _LARGEST_AXIS
    if fits(high):
        return high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _cells(centre: np.ndarray, slopes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cells that cover [−1, 1]^n, their ends (2, n_cells, n), and bounds (n_cells, n) of ‖∂_j B B⁺‖ on them."""
    n = len(slopes)
    queue, done, norms = [(-np.ones(n), np.ones(n))], [], []
    while queue:
        low, high = queue.pop()
        middle, half = (low + high) / 2, (high - low) / 2
        inverse = np.linalg.pinv(centre + np.tensordot(middle, slopes, axes=1))
        sizes = np.linalg.norm(slopes @ inverse, 2, axis=(1, 2))
        change = float(half @ sizes)
        if change <= _CHANGE:
            done.append((low, high))
            norms.append(sizes / (1 - change))
            continue
        if len(done) + len(queue) > _MOST_CELLS:
            raise NoCertificate(f"{_MOST_CELLS} cells are not enough to prove where c is analytic.")
        j = int(np.argmax(half * sizes))
        for side in (0, 1):
            ends = low.copy(), high.copy()
            ends[1 - side][j] = middle[j]
            queue.append(ends)
    return np.array(done).transpose(1, 0, 2), np.array(norms)
