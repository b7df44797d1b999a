"""Sparse iterative solves: GMRES with algebraic multigrid, iterated until rounding stops it.

The matrices are those of scattered nodes: rows of the equation with a dominant diagonal, which multigrid smooths well, and
rows of conditions on slopes at ghosts, whose diagonal is small. The latter, and all rows that touch their unknowns, form a
strip along the boundary which is solved exactly after each multigrid cycle.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import solve_triangular
from scipy.sparse.linalg import splu

_CYCLE = 50  # iterations between restarts, each with the residual computed afresh
_MOST_CYCLES = 16
_GAIN = 0.1  # a whole cycle that leaves more of the residual has stalled
_DIGITS = 1e-9  # what one cycle reduces the residual to at most: beyond that the recurrence is no longer the residual
_FLOOR = 0.05  # of the rounding of the residual: what is left of it then does not show
_ROUNDING = 4.0  # times the estimate of its rounding, below which a residual is rounding
_WEAK = (
    0.15  # share of the diagonal in the sum of sizes of its row, of the same unknown function; inside it is 0.18 to 0.4
)
_WIDEST = 0.4  # share of the unknowns that the strip may have
_REACH = (
    0.0,
    0.1,
    1.0,
)  # share of its diagonal above which a row touches the unknown of a weak one: the first that fits
_COARSEST = 300


class Stalled(Exception):
    """Iterations that do not reach what rounding allows; says how far they came."""

    def __init__(self, residual: float, n_iterations: int):
        super().__init__(f"relative residual {residual:.0e} after {n_iterations} iterations")


class Krylov:
    """Solves with one square matrix (n, n), whose diagonal is positive where it is not small; `fields` (n,) numbers the functions.

    `n_iterations` is the count of the last solve to the end. The residual of a solution is as small as rounding allows, so that it
    serves wherever that of a direct solver does; where that is not reached, `Stalled` is raised.
    """

    def __init__(self, block: sparse.csr_array, fields: np.ndarray):
        self.block, self.fields, self.n_iterations = sparse.csr_matrix(block), fields, 0

    @cached_property
    def multigrid(self) -> Multigrid:
        """The preconditioner of the matrix."""
        return Multigrid(self.block, self.fields)

    @cached_property
    def _transposed(self) -> tuple[sparse.csr_matrix, Callable[[np.ndarray], np.ndarray]]:
        block = sparse.csr_matrix(self.block.T)
        return block, self.multigrid.transposed(block)

    def solve(self, right: np.ndarray, trans: str = "N", guess=None, tolerance: float = 0.0) -> np.ndarray:
        """Solutions of right-hand sides (n,) or (n, m), to the relative residual `tolerance` or as far as rounding allows."""
        matrix, precondition = (self.block, self.multigrid.apply) if trans == "N" else self._transposed
        if right.ndim == 1:
            return self._one(matrix, precondition, right, guess, tolerance)
        columns = [self._one(matrix, precondition, np.ascontiguousarray(b), guess, tolerance) for b in right.T]
        return np.array(columns).reshape(right.shape[::-1]).T

    def _one(self, matrix, precondition, right: np.ndarray, guess: np.ndarray | None, tolerance: float) -> np.ndarray:
        size, eps = float(np.linalg.norm(right)), np.finfo(float).eps
        if not np.isfinite(size):  # as elimination answers
            return np.full_like(right, np.nan)
        x, residual, total = np.zeros_like(right), right, 0
        if guess is not None and np.all(np.isfinite(guess)):
            started = right - matrix @ guess
            if np.linalg.norm(started) < size:
                x, residual = guess, started
        left, squares, polished = float(np.linalg.norm(residual)), None, False
        for _ in range(_MOST_CYCLES):
            rounding = eps * (
                size if squares is None else float(np.linalg.norm(np.sqrt(squares @ x**2) + np.abs(right)))
            )
            # a residual as small as rounding may still be smooth, and then moves the solution by more than rounding does
            if left <= max(tolerance * size, rounding if polished else 0.0):
                return x
            aim = max(_FLOOR * rounding, 0.5 * tolerance * size, _DIGITS * left)
            polished = squares is not None and aim == _FLOOR * rounding
            change, count = gmres(matrix, precondition, residual, aim)
            total += count
            self.n_iterations = total if tolerance < eps else self.n_iterations
            better = x + change
            residual = right - matrix @ better
            before, left = left, float(np.linalg.norm(residual))
            if tolerance < eps and squares is None:
                squares = sparse.csr_matrix((matrix.data**2, matrix.indices, matrix.indptr), shape=matrix.shape)
                rounding = eps * float(np.linalg.norm(np.sqrt(squares @ better**2) + np.abs(right)))
            if left <= max(tolerance * size, _FLOOR * rounding):
                return better
            if not left <= _GAIN * before:  # little is gained: either the rest is rounding, or iterations are of no use
                if not min(left, before) <= _ROUNDING * rounding:
                    break
                return better if left < before else x
            x = better
        raise Stalled(left / size, total)


@np.errstate(over="ignore", invalid="ignore")
def gmres(matrix, precondition: Callable[[np.ndarray], np.ndarray], right: np.ndarray, aim: float, most: int = _CYCLE):
    """One cycle of GMRES, preconditioned from the right: what it adds to the solution, and the number of iterations.

    It ends when the norm of the residual is below `aim`. Orthogonalised twice, so that the recurrence keeps its digits.

    >>> change, count = gmres(np.diag([1.0, 2.0]), lambda r: r, np.array([1.0, 2.0]), 1e-14)
    >>> np.round(change, 12), count
    (array([1., 1.]), 2)
    """
    n, norm = len(right), float(np.linalg.norm(right))
    most = min(most, n)
    basis = np.empty((most + 1, n))
    basis[0] = right / norm
    triangle, turned = np.zeros((most + 1, most)), np.zeros(most + 1)
    turns = np.zeros((most, 2))
    turned[0], k = norm, 0
    for k in range(most):
        v = matrix @ precondition(basis[k])
        column = basis[: k + 1] @ v
        v = v - column @ basis[: k + 1]
        again = basis[: k + 1] @ v
        v = v - again @ basis[: k + 1]
        column, length = column + again, float(np.linalg.norm(v))
        if not np.isfinite(length):  # the preconditioner is no approximate inverse, and grows beyond all numbers
            break
        for i in range(k):
            c, s = turns[i]
            column[i], column[i + 1] = c * column[i] + s * column[i + 1], c * column[i + 1] - s * column[i]
        hypotenuse = float(np.hypot(column[k], length))
        if hypotenuse == 0.0:
            break
        turns[k] = column[k] / hypotenuse, length / hypotenuse
        column[k] = hypotenuse
        triangle[: k + 1, k] = column
        turned[k + 1], turned[k] = -turns[k, 1] * turned[k], turns[k, 0] * turned[k]
        if abs(turned[k + 1]) <= aim or length <= np.finfo(float).eps * hypotenuse:
            k += 1
            break
        basis[k + 1] = v / length
    else:
        k = most
    if k == 0:
        return np.zeros(n), 1
    return precondition(solve_triangular(triangle[:k, :k], turned[:k]) @ basis[:k]), k


class Multigrid:
    """An approximate inverse: a V-cycle of classical multigrid for each unknown function, then the strip, solved exactly."""

    def __init__(self, block: sparse.csr_matrix, fields: np.ndarray):
        self.block = block
        weak = _weak_rows(block, fields)
        touch = _largest_at(block, weak)
        strips = (np.flatnonzero(weak | (touch > least * np.abs(block.diagonal()))) for least in _REACH)
        self.strip = strip = next((one for one in strips if len(one) <= _WIDEST * len(weak)), np.arange(0))
        weak &= len(strip) > 0
        try:
            self._strip = splu(sparse.csc_matrix(block[strip][:, strip])) if len(strip) else None
        except RuntimeError as error:  # a singular strip
            raise Stalled(1.0, 0) from error
        inside = ~weak
        self.parts = [np.flatnonzero(inside & (fields == k)) for k in np.unique(fields)]
        self.parts = [part for part in self.parts if len(part)]
        self.whole = len(self.parts) == 1 and len(self.parts[0]) == len(weak)
        self.hierarchies = [_hierarchy(block if self.whole else block[part][:, part]) for part in self.parts]
        self._cycles = [hierarchy.aspreconditioner() for hierarchy in self.hierarchies]

    def apply(self, right: np.ndarray) -> np.ndarray:
        """An approximate solution of A x = right."""
        out = self._cycled(self.block, self._cycles, right, np.zeros_like(right))
        if self._strip is not None:
            out[self.strip] += self._strip.solve((right - self.block @ out)[self.strip])
        return out

    def _cycled(self, matrix, cycles, right: np.ndarray, out: np.ndarray) -> np.ndarray:
        if self.whole:
            return cycles[0] @ right
        for k, (part, cycle) in enumerate(zip(self.parts, cycles, strict=True)):
            left = right if k == 0 and not np.any(out) else right - matrix @ out
            out[part] += cycle @ left[part]
        return out

    def transposed(self, matrix: sparse.csr_matrix) -> Callable[[np.ndarray], np.ndarray]:
        """The same for Aᵀ, which is `matrix`: the strip first, then the cycles of the transposed hierarchies."""
        cycles = [_transposed(hierarchy).aspreconditioner() for hierarchy in self.hierarchies]

        def apply(right: np.ndarray) -> np.ndarray:
            out = np.zeros_like(right)
            if self._strip is not None:
                out[self.strip] = self._strip.solve(right[self.strip], "T")
            return self._cycled(matrix, cycles, right, out)

        return apply


def _weak_rows(block: sparse.csr_matrix, fields: np.ndarray) -> np.ndarray:
    """(n,) bool: rows whose diagonal is small beside the other entries of the same unknown function."""
    n = len(fields)
    sizes = np.abs(block.data)
    row = np.repeat(np.arange(n, dtype=block.indices.dtype), np.diff(block.indptr))
    if np.any(fields != fields[0]):
        sizes = sizes * (fields[row] == fields[block.indices])
    return block.diagonal() <= _WEAK * np.bincount(row, sizes, minlength=n)


def _largest_at(block: sparse.csr_matrix, weak: np.ndarray) -> np.ndarray:
    """(n,): the largest entry of each row at the unknowns of weak rows, by size; 0 where it has none."""
    return abs(block[:, np.flatnonzero(weak)]).max(axis=1).toarray().ravel() if np.any(weak) else np.zeros(len(weak))


def _hierarchy(block: sparse.csr_matrix) -> Any:
    """Coarser and coarser systems (Ruge and Stüben), by negative couplings: positive ones of wide stencils do not smooth.

    Measured on wide stencils: 22 to 33 iterations, with couplings taken by their size 55 to 168.
    """
    from pyamg import ruge_stuben_solver

    strength = ("classical", {"theta": 0.25, "norm": "min"})
    return ruge_stuben_solver(sparse.csr_matrix(block), strength=strength, max_coarse=_COARSEST)


def _transposed(hierarchy: Any) -> Any:
    """The hierarchy of the transposed matrix, with the same transfers between levels."""
    from pyamg.multilevel import MultilevelSolver
    from pyamg.relaxation.smoothing import change_smoothers

    levels = []
    for known in hierarchy.levels:
        level = MultilevelSolver.Level()
        level.A = sparse.csr_matrix(known.A.T)
        if hasattr(known, "P"):
            level.P, level.R = sparse.csr_matrix(known.R.T), sparse.csr_matrix(known.P.T)
        levels.append(level)
    out = MultilevelSolver(levels, coarse_solver="pinv")
    smoother = ("gauss_seidel", {"sweep": "symmetric"})
    change_smoothers(out, smoother, smoother)
    return out
