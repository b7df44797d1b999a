"""Singular values and left singular vectors of snapshots: exact, or piece by piece.

Snapshots are rows (n, n_values); `root` (n_values,) is the square root of the weights or None. Everything is about the
matrix X = diag(root) Sᵀ, whose columns are the scaled snapshots, but X itself is never made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from parasol.runtime.basis import slices

_BLOCK = 2**21  # numbers worked on at a time: 16 MB stay near the processor
_NOISE = 1e-14  # singular values below this fraction of the largest are rounding


@dataclass(frozen=True, eq=False)
class Factored:
    """Singular values, the energy they do not account for, and the first d left singular vectors on demand."""

    singular_values: np.ndarray  # (k,), decreasing
    lost_energy: float
    vectors: Callable[[int], np.ndarray]  # d -> (n_values, d), orthonormal


# ---- all at once ---------------------------------------------------------------------------------------------------
def direct(rows: np.ndarray, root: np.ndarray | None) -> Factored:
    """The singular value decomposition, by QR of blocks: X = Q R, R = A diag(s) Wᵀ, so V = X W diag(1/s).

    Q is never formed. The error of V, rounding · s_1/s_d, is that of any other way to compute it; its orthonormality
    is restored. With more snapshots than values the roles of rows and columns change, and W itself is V.
    """
    n, n_values = rows.shape
    if n > n_values:
        length = max(4 * n_values, _BLOCK // n_values)
        return short((rows[part] for part in slices(n, length)), n_values, root)
    length = max(4 * n, _BLOCK // n, 1)
    r = np.empty((0, n))
    for part in slices(n_values, length):
        block = rows[:, part].T
        r = _triangle(r, block if root is None else root[part, None] * block)
    _, s, wt = _svd(r)

    def vectors(d: int) -> np.ndarray:
        out, turn = np.empty((n_values, d)), wt[:d].T / s[:d]
        for part in slices(n_values, length):
            out[part] = rows[:, part].T @ turn
        return orthonormalized(out if root is None else np.multiply(out, root[:, None], out=out))

    return Factored(s, 0.0, vectors)


def short(blocks: Iterable[np.ndarray], n_values: int, root: np.ndarray | None) -> Factored:
    """The exact decomposition of any number of short snapshots, in one pass: QR of Xᵀ, of which only R is kept."""
    r = np.empty((0, n_values))
    for block in blocks:
        r = _triangle(r, block if root is None else block * root)
    _, s, wt = _svd(r)
    return Factored(s, 0.0, lambda d: np.ascontiguousarray(wt[:d].T))


# ---- piece by piece ------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Budget:
    """How much of the energy seen so far may be dropped on the way, and how many directions are kept at most.

    Dropped parts are orthogonal to all that is kept, as combinations of snapshots; so errors add up in squares:
    ||S − V Vᵀ S||² <= Σ_{i>d} s_i² + lost energy. A budget of (tolerance/10⁴)² turns the modes by 1e-8 or so.
    """

    fraction: float
    most: int | None = None

    def kept(self, s: np.ndarray, energy: float, lost: float) -> tuple[int, float]:
        """How many of the singular values to keep, and the energy lost then."""
        tail = np.cumsum(s[::-1] ** 2)[::-1]  # tail[d] is dropped when d are kept
        n_kept = int(np.count_nonzero(tail > max(self.fraction * energy - lost, 0.0)))
        n_kept = max(1, min(n_kept, int(np.count_nonzero(s > _NOISE * s[0])), self.most or len(s)))
        return n_kept, lost + (float(tail[n_kept]) if n_kept < len(s) else 0.0)


def incremental(blocks: Iterable[np.ndarray], root: np.ndarray | None, budget: Budget, lost: float = 0.0) -> Factored:
    """Add blocks of snapshots to a decomposition, one after the other (Brand 2006), in the memory of one block.

    `lost` is energy that was dropped before, where blocks are decompositions themselves.

    With X ≈ U diag(s) Wᵀ and new columns C = U L + J K, the small matrix [[diag(s), L], [0, K]] has the new singular
    values, and its left singular vectors turn [U J] into the new U.
    """
    u, s, energy = np.empty((0, 0)), np.empty(0), lost
    for block in blocks:
        c = np.array(block.T if root is None else root[:, None] * block.T, dtype=float, order="F")
        energy += float(np.vdot(c, c))
        r = len(s)
        if r == 0 or r + c.shape[1] >= len(c):
            left, s, _ = _svd(c if r == 0 else np.hstack([u * s, c]))
        else:
            inside = u.T @ c
            c -= u @ inside
            again = u.T @ c  # once is not enough where c lies almost in U
            c -= u @ again
            j, k = linalg.qr(c, mode="economic", overwrite_a=True, check_finite=False)
            small = np.block([[np.diag(s), inside + again], [np.zeros((len(k), r)), k]])
            turn, s, _ = _svd(small)
            n_kept, lost = budget.kept(s, energy, lost)
            left = u @ turn[:r, :n_kept]
            left += j @ turn[r:, :n_kept]
            u, s = orthonormalized(left), s[:n_kept]
            continue
        n_kept, lost = budget.kept(s, energy, lost)
        u, s = left[:, :n_kept], s[:n_kept]
    return Factored(s, lost, lambda d: np.ascontiguousarray(u[:, :d]))


# ---- pieces of the above -------------------------------------------------------------------------------------------
def orthonormalized(vectors: np.ndarray) -> np.ndarray:
    """Orthonormal columns with the same leading spans; those that are orthonormal to rounding stay as they are."""
    for _ in range(2):
        product = vectors.T @ vectors
        defect = np.max(np.abs(product - np.eye(len(product))))
        if defect < 1e-14 * max(10, len(product)):
            return vectors
        if not defect < 0.1:
            break
        # V ← V R⁻¹ with Vᵀ V = Rᵀ R squares the defect, and is all matrix products
        vectors = vectors @ linalg.inv(linalg.cholesky(product))
    else:
        return vectors
    q, r = linalg.qr(vectors, mode="economic", check_finite=False)
    return q * np.where(np.diag(r) < 0, -1.0, 1.0)


def _triangle(r: np.ndarray, block: np.ndarray) -> np.ndarray:
    """R of [R; block]."""
    stacked = np.empty((len(r) + len(block), block.shape[1]), order="F")
    stacked[: len(r)], stacked[len(r) :] = r, block
    out = linalg.qr(stacked, mode="r", overwrite_a=True, check_finite=False)[0]
    return out[: block.shape[1]]


def _svd(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    try:
        return linalg.svd(matrix, full_matrices=False, check_finite=False)  # type: ignore[return-value]
    except linalg.LinAlgError:  # divide and conquer fails once in a blue moon; the older way does not
        return linalg.svd(matrix, full_matrices=False, check_finite=False, lapack_driver="gesvd")  # type: ignore[return-value]
