"""Singular values and left singular vectors of snapshots: exact, by Gram matrix, randomised, and piece by piece.

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
_POWERS = 2  # of X Xᵀ in the randomised method
_SHARP = 1e-10  # what may be left of the directions that the randomised method does not see


@dataclass(frozen=True, eq=False)
class Factored:
    """Singular values, the energy they do not account for, and the first d left singular vectors on demand."""

    singular_values: np.ndarray  # (k,), decreasing
    lost_energy: float
    vectors: Callable[[int], np.ndarray]  # d -> (n_values, d), orthonormal


class Scaled:
    """Products with X = diag(root) Sᵀ, a block of values at a time."""

    def __init__(self, rows: np.ndarray, root: np.ndarray | None):
        self.rows, self.root = rows, root
        self.n, self.n_values = rows.shape

    def pieces(self, length: int | None = None) -> Iterable[tuple[slice, np.ndarray]]:
        """Blocks of rows of X, each (m, n), with the values they belong to."""
        for part in slices(self.n_values, length or max(4 * self.n, _BLOCK // self.n, 1)):
            block = self.rows[:, part].T
            yield part, block if self.root is None else self.root[part, None] * block

    def times(self, matrix: np.ndarray) -> np.ndarray:
        """X A, (n_values, k) of (n, k)."""
        out = np.empty((self.n_values, matrix.shape[1]))
        for part in slices(self.n_values, max(4 * self.n, _BLOCK // self.n, 1)):
            out[part] = self.rows[:, part].T @ matrix
        return out if self.root is None else np.multiply(out, self.root[:, None], out=out)

    def transposed_times(self, matrix: np.ndarray) -> np.ndarray:
        """Xᵀ A, (n, k) of (n_values, k)."""
        return self.rows @ (matrix if self.root is None else self.root[:, None] * matrix)


# ---- all at once ---------------------------------------------------------------------------------------------------
def direct(rows: np.ndarray, root: np.ndarray | None) -> Factored:
    """The singular value decomposition, by QR of blocks: X = Q R, R = A diag(s) Wᵀ, so V = X W diag(1/s).

    Q is never formed. The error of V, rounding · s_1/s_d, is that of any other way to compute it; its orthonormality
    is restored. With more snapshots than values the roles of rows and columns change, and W itself is V.
    """
    x = Scaled(rows, root)
    if x.n > x.n_values:
        length = max(4 * x.n_values, _BLOCK // x.n_values)
        return short((rows[part] for part in slices(x.n, length)), x.n_values, root)
    r = np.empty((0, x.n))
    for _, block in x.pieces():
        r = _triangle(r, block)
    _, s, wt = _svd(r)
    return Factored(s, 0.0, lambda d: _from_snapshots(x, s, wt.T, d))


def short(blocks: Iterable[np.ndarray], n_values: int, root: np.ndarray | None) -> Factored:
    """The exact decomposition of any number of short snapshots, in one pass: QR of Xᵀ, of which only R is kept."""
    r = np.empty((0, n_values))
    for block in blocks:
        r = _triangle(r, block if root is None else block * root)
    _, s, wt = _svd(r)
    return Factored(s, 0.0, lambda d: np.ascontiguousarray(wt[:d].T))


def gram(rows: np.ndarray, root: np.ndarray | None) -> Factored:
    """The method of snapshots: eigenvalues s² of Xᵀ X. Quick, but blind below s = 1e-8 s_1, for s² is rounded."""
    x = Scaled(rows, root)
    if x.n > x.n_values:
        product = np.zeros((x.n_values, x.n_values))
        for part in slices(x.n, max(x.n_values, _BLOCK // x.n_values)):
            block = np.asarray(rows[part] if root is None else rows[part] * root, dtype=float)
            product += block.T @ block
        squares, vectors = linalg.eigh(product, check_finite=False)
        return Factored(_roots(squares), 0.0, lambda d: np.ascontiguousarray(vectors[:, ::-1][:, :d]))
    product = np.zeros((x.n, x.n))
    for _, block in x.pieces():
        block = np.asarray(block, dtype=float)
        product += block.T @ block
    squares, vectors = linalg.eigh(product, check_finite=False)
    s = _roots(squares)
    return Factored(s, 0.0, lambda d: _from_snapshots(x, s, vectors[:, ::-1], d))


def randomized(
    rows: np.ndarray, root: np.ndarray | None, count: Callable[[Factored], int], n_guess: int, rng
) -> Factored | None:
    """Project onto the range of (X Xᵀ)² X Ω for a random Ω (Halko, Martinsson and Tropp 2011), wider until it is enough.

    `count` says how many modes are wanted of what was found. It is enough if the directions not seen are weaker than
    the last mode by a factor whose fifth power is below 1e-10. None where that takes half of all directions: then the
    decomposition itself is cheaper.
    """
    x = Scaled(rows, root)
    generator = np.random.default_rng(rng)
    most = min(x.n, x.n_values) // 2
    width = n_guess
    while width <= most:
        q = np.linalg.qr(x.times(generator.standard_normal((x.n, width))))[0]
        for _ in range(_POWERS):  # orthonormal in between, or the small directions drown in rounding
            q = np.linalg.qr(x.times(np.linalg.qr(x.transposed_times(q))[0]))[0]
        small = x.transposed_times(q).T
        left, s, _ = _svd(small)
        lost = sum(float(np.sum((block - q[part] @ small) ** 2)) for part, block in x.pieces())
        found = Factored(s, lost, lambda d, q=q, left=left: q @ left[:, :d])
        d = count(found)
        if d < width and s[-1] ** (2 * _POWERS + 1) <= _SHARP * s[d - 1] ** (2 * _POWERS + 1):
            return found
        width *= 2
    return None


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


def incremental(blocks: Iterable[np.ndarray], root: np.ndarray | None, budget: Budget) -> Factored:
    """Add blocks of snapshots to a decomposition, one after the other (Brand 2006), in the memory of one block.

    With X ≈ U diag(s) Wᵀ and new columns C = U L + J K, the small matrix [[diag(s), L], [0, K]] has the new singular
    values, and its left singular vectors turn [U J] into the new U.
    """
    u, s, energy, lost = np.empty((0, 0)), np.empty(0), 0.0, 0.0
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


def hierarchical(blocks: Iterable[np.ndarray], root: np.ndarray | None, budget: Budget) -> Factored:
    """Decompose blocks of snapshots alone and merge them in pairs: X = [U_1 s_1, U_2 s_2] has the same U and s.

    Every pair is a decomposition of few directions; pairs are merged as they become complete, so that the logarithm
    of the number of blocks is held at a time.
    """
    stack: list[_Node] = []
    for block in blocks:
        rows = np.asarray(block, dtype=float) if root is None else block * root
        stack.append(_reduced(rows, float(np.vdot(rows, rows)), 0.0, 0, budget))
        while len(stack) > 1 and stack[-1].level == stack[-2].level:
            stack.append(_merged(stack.pop(-2), stack.pop(), budget))
    while len(stack) > 1:
        stack.append(_merged(stack.pop(-2), stack.pop(), budget))
    rows, lost = stack[0].rows, stack[0].lost
    factored = direct(rows, None)
    return Factored(factored.singular_values, lost, factored.vectors)


@dataclass(frozen=True, eq=False)
class _Node:
    """A part of the snapshots as few rows (U diag(s))ᵀ, with the energy it had and has lost."""

    rows: np.ndarray
    energy: float
    lost: float
    level: int


def _merged(one: _Node, other: _Node, budget: Budget) -> _Node:
    rows = np.concatenate([one.rows, other.rows])
    level = max(one.level, other.level) + 1
    return _reduced(rows, one.energy + other.energy, one.lost + other.lost, level, budget)


def _reduced(rows: np.ndarray, energy: float, lost: float, level: int, budget: Budget) -> _Node:
    if energy == 0:
        return _Node(rows[:1], energy, lost, level)
    found = direct(rows, None)
    s = found.singular_values
    n_kept, lost = budget.kept(s, energy, lost)
    if n_kept == len(rows):
        return _Node(rows, energy, lost, level)
    return _Node(np.ascontiguousarray((found.vectors(n_kept) * s[:n_kept]).T), energy, lost, level)


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


def _from_snapshots(x: Scaled, s: np.ndarray, w: np.ndarray, d: int) -> np.ndarray:
    return orthonormalized(x.times(w[:, :d] / s[:d]))


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


def _roots(squares: np.ndarray) -> np.ndarray:
    return np.sqrt(np.maximum(squares[::-1], 0.0))
