"""Modes for the page: in single precision, and in time as few shapes in space whose weights move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from parasol.delivery.page.pack import Pack
from parasol.runtime.products import Weights, energies, worst_energies

_TOLERANCE = 3e-7  # relative, of fields of usual size: what single precision leaves
_FIRST_RANK = 32
_SINGLE = float(np.finfo(np.float32).eps) / 2


@dataclass(frozen=True, eq=False)
class Shapes:
    """V[t] ≈ space @ evolution[t]: `space` (n_here, r) are orthonormal shapes, `evolution` (n_times, r, n_modes)."""

    space: np.ndarray
    evolution: np.ndarray

    def modes(self) -> np.ndarray:
        """V again, (n_times * n_here, n_modes)."""
        return (self.space @ self.evolution).reshape(-1, self.evolution.shape[2])


def lift_program(modes: np.ndarray, weights: Weights | None, n_times: int, sizes: np.ndarray, pack: Pack) -> dict:
    """The modes (n_values, n_modes) for numbers.js, and how much of each is lost on the way, in the norm of the basis.

    `sizes` (n_modes,) are the usual sizes of the coefficients: modes that hardly count need few digits.
    """
    with threadpool_limits(1):  # several BLAS threads lose tenfold when the machine is busy
        shapes = _shapes(modes, n_times, sizes) if n_times > 1 else None
    if shapes is None:
        kept = modes.astype(np.float32)
        out = {"modes": pack.add(kept, "f4")}
    else:
        shapes = Shapes(shapes.space.astype(np.float32), shapes.evolution.astype(np.float32))
        kept = Shapes(shapes.space.astype(float), shapes.evolution.astype(float)).modes()
        out = {"space": pack.add(shapes.space, "f4"), "evolution": pack.add(shapes.evolution, "f4")}
    loss = np.sqrt(energies((modes - kept).T, weights))
    loss += _SINGLE * np.sqrt(worst_energies(kept.T, weights))  # the field itself is rounded once more
    return out | {"loss": pack.add(loss)}


def _shapes(modes: np.ndarray, n_times: int, sizes: np.ndarray) -> Shapes | None:
    """Few shapes that span all times of all modes, by a random sketch that grows until it is enough; None if not fewer."""
    n_modes = modes.shape[1]
    here = modes.reshape(n_times, -1, n_modes)
    table = np.ascontiguousarray((here * sizes).transpose(1, 0, 2).reshape(here.shape[1], -1))  # (n_here, n_times * d)
    total = float(np.linalg.norm(table))
    generator = np.random.default_rng(0)
    rank = _FIRST_RANK
    while rank * (table.shape[0] + table.shape[1]) < 0.7 * table.size and total > 0:
        span = np.linalg.qr(table @ generator.standard_normal((table.shape[1], rank)))[0]
        span = np.linalg.qr(table @ np.linalg.qr(table.T @ span)[0])[0]  # once more: nearer to the best shapes
        small = span.T @ table
        left, values, _ = np.linalg.svd(small, full_matrices=False)
        if np.linalg.norm(table - span @ small) <= 0.5 * _TOLERANCE * total:
            tail = np.sqrt(np.cumsum(values[::-1] ** 2)[::-1])
            few = int(np.count_nonzero(tail > 0.5 * _TOLERANCE * total))
            space = span @ left[:, :few]
            return Shapes(space, np.einsum("nr,tnd->trd", space, here, optimize=True))
        rank *= 2
    return None
