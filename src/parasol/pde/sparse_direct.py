"""Sparse direct solves with one sparsity pattern and many values: analyse once, factorise often.

Rows that just state the value of their unknown (Dirichlet nodes) are eliminated, the others ordered by nested
dissection of the nodes' positions. SciPy's SuperLU then needs a fraction of the time of its default ordering.
"""

from __future__ import annotations

import logging
import os
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from parasol.checks import check_choice
from parasol.errors import NotInstalled, ParasolWarning, SolveFailed
from parasol.pde.sparse_iterative import Krylov, Stalled
from parasol.pde.sparse_pattern import Pattern

log = logging.getLogger(__name__)

BACKENDS = ("auto", "direct", "iterative", "superlu", "mkl")
# unknowns from which iterating is the better choice, by dimension: elimination grows like n² in space, like n^1.5 in the
# plane, where a factorisation also serves many right-hand sides; on a line it costs next to nothing
_ITERATE_FROM = {2: 200_000, 3: 20_000}
_ITERATE_UNPLACED = 100_000  # where positions are not known
# relative error of a known answer above which the matrix counts as singular to working precision
_SINGULAR = 1e-3
_TRIAL = 1e-10  # relative residual to which iterations are tried on a known answer at first
_SIGNED = 40_000  # unknowns up to which the sign of a determinant is worth an elimination
# row sums below this, relative to the sums of sizes, are zero but for the rounding of the weights
_CONSTANT = 1e-8


class SingularMatrixError(SolveFailed):
    """The matrix has no inverse to working precision."""


def positive_definite(matrix: sparse.sparray) -> bool:
    """Whether all pivots of a symmetric matrix are positive, by elimination without exchanges.

    >>> positive_definite(sparse.csr_array([[2.0, 1.0], [1.0, 2.0]])), positive_definite(sparse.csr_array([[1.0, 2.0], [2.0, 1.0]]))
    (True, False)
    """
    options = {"permc_spec": "MMD_AT_PLUS_A", "diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
    try:
        factors = splu(sparse.csc_array(matrix), **options)
    except RuntimeError:  # a pivot of zero
        return False
    return bool(np.array_equal(factors.perm_r, factors.perm_c) and np.all(factors.U.diagonal() > 0))


def symmetric(matrix: sparse.csr_array, relative: float) -> bool:
    """Whether entries differ from those across the diagonal by rounding, beside the largest ones in their row and column.

    Unknowns may have units of their own: what is rounding in one part of a matrix is all there is in another.

    >>> symmetric(sparse.csr_array([[1e14, 0, 0], [0, 2, 1], [0, 1, 2]]), 1e-12)
    True
    >>> symmetric(sparse.csr_array([[1e14, 0, 0], [0, 2, 1], [0, 0, 2]]), 1e-12)
    False
    """
    gap, size = (matrix - matrix.T).tocoo(), abs(matrix).max(axis=1).toarray().ravel()
    return bool(np.all(np.abs(gap.data) <= relative * np.sqrt(size[gap.row]) * np.sqrt(size[gap.col])))


@dataclass(frozen=True, eq=False)
class Factors:
    """Factors of one matrix: `solve` answers for one right-hand side (n,) or several (n, m).

    What is factorised has its rows and columns scaled to entries of at most 1: unknowns of very different size, or
    equations in very different units, then cost no digits.
    """

    refines: ClassVar[bool] = True  # whether a second solve, with what is left, is worth it

    pattern: Pattern
    matrix: sparse.csr_array
    backend: str
    _inner: object  # has solve(); None when every row states its unknown
    _coupling: sparse.csr_array
    _diagonal: np.ndarray
    _rows: np.ndarray  # scale of each row that is left, in the order of `_order`
    _columns: np.ndarray  # of each column likewise
    _order: np.ndarray  # the unknowns that are left, in elimination order

    @property
    def method(self) -> str:
        """In words, how systems with this matrix are solved."""
        return self.backend

    def solve(self, right: np.ndarray, *, guess: np.ndarray | None = None, tolerance: float = 0.0) -> np.ndarray:
        """The solution u of A u = right. Iterations may start from a `guess` and stop at a relative residual `tolerance`."""
        stated, order = self.pattern.stated, self._order
        out = np.empty_like(right, dtype=float)
        out[stated] = (right[stated].T / self._diagonal).T
        if len(order):
            reduced = right[order] - self._coupling @ out[stated]
            reduced = np.asfortranarray((reduced.T * self._rows).T)
            start = None if guess is None else guess[order] / self._columns
            out[order] = (self._apply(reduced, "N", start, tolerance).T * self._columns).T
        return out

    def solve_transposed(self, right: np.ndarray) -> np.ndarray:
        """The solution u of Aᵀ u = right."""
        stated, order = self.pattern.stated, self._order
        out = np.empty_like(right, dtype=float)
        left = right[stated]
        if len(order):
            reduced = np.asfortranarray((right[order].T * self._columns).T)
            out[order] = (self._apply(reduced, "T").T * self._rows).T
            left = left - self._coupling.T @ out[order]
        out[stated] = (left.T / self._diagonal).T
        return out

    def _apply(
        self, right: np.ndarray, trans: str, guess: np.ndarray | None = None, tolerance: float = 0.0
    ) -> np.ndarray:
        return self._inner.solve(right, trans)  # type: ignore[attr-defined]

    @property
    def sign(self) -> int:
        """The sign of the determinant; 0 where the backend does not tell. Between opposite signs a matrix is singular."""
        signs = np.sign(self._diagonal)
        if self._inner is not None:
            if not hasattr(self._inner, "U"):
                return 0
            lu: Any = self._inner
            signs = np.concatenate([signs, np.sign(lu.U.diagonal()), [_parity(lu.perm_r) * _parity(lu.perm_c)]])
        return int(np.prod(signs))


@dataclass(frozen=True, eq=False)
class IterativeFactors(Factors):
    """In place of factors: iterations, and where these stall for a right-hand side the direct solver, with a word."""

    refines: ClassVar[bool] = False  # iterated as far as rounding allows

    _instead: list[Factors] = field(default_factory=list)  # the direct factors, once they were needed

    @property
    def method(self) -> str:
        """In words, how systems with this matrix are solved."""
        if self._instead:
            return self._instead[0].method
        inner: Any = self._inner
        return f"iterative: GMRES with multigrid, {inner.n_iterations} iterations"

    def solve(self, right: np.ndarray, *, guess: np.ndarray | None = None, tolerance: float = 0.0) -> np.ndarray:
        """The solution u of A u = right, iterated from the `guess` to a relative residual `tolerance`, 0: to rounding."""
        return self._or_directly(lambda f: Factors.solve(f, right, guess=guess, tolerance=tolerance))

    def solve_transposed(self, right: np.ndarray) -> np.ndarray:
        """The solution u of Aᵀ u = right."""
        return self._or_directly(lambda f: Factors.solve_transposed(f, right))

    def _or_directly(self, solve: Callable[[Factors], np.ndarray]) -> np.ndarray:
        if not self._instead:
            try:
                return solve(self)
            except Stalled as stalled:
                self._instead[:] = [_instead_of_iterations(self.pattern, self.matrix.data, stalled)]
        return solve(self._instead[0])

    def _apply(
        self, right: np.ndarray, trans: str, guess: np.ndarray | None = None, tolerance: float = 0.0
    ) -> np.ndarray:
        return self._inner.solve(right, trans, guess, tolerance)  # type: ignore[attr-defined]

    @property
    def sign(self) -> int:
        """The sign of the determinant, by elimination where that costs seconds; 0 for larger matrices."""
        return factorize(self.pattern, self.matrix.data).sign if len(self._order) <= _SIGNED else 0


def _instead_of_iterations(pattern: Pattern, data: np.ndarray, stalled: Stalled) -> Factors:
    """Factors in place of iterations that have stalled; refused where they would not fit into memory."""
    n, dimension = len(pattern.stated), pattern.points.shape[1]
    needed, memory = direct_bytes(n // pattern.n_fields, dimension) * pattern.n_fields**2, memory_bytes()
    if needed > memory:
        raise SolveFailed(
            f"iterations stalled ({stalled}), and elimination of {n} unknowns needs about {needed / 1e9:.0f} GB of the "
            f"{memory / 1e9:.0f} GB of this machine. Use fewer nodes."
        )
    warnings.warn(
        f"iterations stalled ({stalled}): solved directly instead. Choose solver='direct' to spare the attempt.",
        ParasolWarning,
        stacklevel=2,
    )
    factors = factorize(pattern, data)
    return replace(factors, backend=f"{factors.backend}, iterations stalled")


def direct_bytes(n: int, dimension: int) -> float:
    """About the memory that factors of n unknowns take, by what was measured: n^(4/3) in space, n log n below."""
    return 1e3 * n ** (4 / 3) if dimension > 2 else 680.0 * n * max(np.log2(n + 2), 1.0)


def memory_bytes() -> float:
    """The memory of this machine; infinite where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return np.inf


def _parity(permutation: np.ndarray) -> int:
    """1 for an even permutation, −1 for an odd one."""
    n = len(permutation)
    cycles = connected_components(sparse.csr_array((np.ones(n), (np.arange(n), permutation)), shape=(n, n)))[0]
    return -1 if (n - cycles) % 2 else 1


def chosen_solver(solver: str, n_unknowns: int, dimension: int | None) -> str:
    """The solver that a name asks for, "superlu", "mkl" or "iterative": "auto" goes by size and dimension (None: unknown).

    >>> chosen_solver("auto", 10_000, 2), chosen_solver("auto", 100_000, 3), chosen_solver("direct", 100_000, 3)
    ('superlu', 'iterative', 'superlu')
    """
    check_choice(solver, BACKENDS, "solver")
    if solver == "auto":
        least = _ITERATE_UNPLACED if dimension is None else _ITERATE_FROM.get(dimension, np.inf)
        solver = "iterative" if n_unknowns >= least else "direct"
        log.info("%d unknowns: %s solves", n_unknowns, solver)
    return "superlu" if solver == "direct" else solver


def factors_of(pattern: Pattern, data: np.ndarray, *, backend: str = "superlu") -> Factors:
    """Factors of the matrix with these values: the last ones, which stay with the pattern, or new ones."""
    for asked, known in pattern.last[:]:  # a copy: another thread may put its own factors there meanwhile
        if asked == backend and np.array_equal(known.matrix.data, data):
            return known
    factors = factorize(pattern, data, backend=backend)
    pattern.last[:] = [(backend, factors)]
    return factors


def factorize(pattern: Pattern, data: np.ndarray, *, backend: str = "superlu") -> Factors:
    """Factorise the matrix with these values, and try the factors on a right-hand side with a known answer.

    Falls back from iterations to elimination, from MKL to SuperLU, and from fast to full pivoting, when the trial fails;
    refuses a singular matrix and says what makes it so.
    """
    n = len(pattern.stated)
    backend = chosen_solver(backend, n, pattern.points.shape[1])
    matrix = sparse.csr_array((data, pattern.indices, pattern.indptr), shape=(n, n))
    if not np.all(np.isfinite(data)):
        raise SingularMatrixError(
            "the matrix has entries that are NaN or infinite. Check the coefficients at this parameter."
        )
    diagonal = data[pattern.indptr[:-1][pattern.stated]]
    if np.any(diagonal == 0):
        raise SingularMatrixError(
            "a row of the matrix is zero, such as that of a condition whose coefficient is 0. Check it at this parameter."
        )
    rows, columns = _scales(matrix, pattern.n_fields)
    if backend == "iterative" and not np.all(pattern.stated):
        try:
            return _iterating(pattern, matrix, diagonal, rows, columns)
        except Stalled as stalled:
            return _instead_of_iterations(pattern, data, stalled)
    order, (square, coupling) = pattern.order, pattern.blocks
    coupling = sparse.csr_array((data[coupling.data - 1], coupling.indices, coupling.indptr), shape=coupling.shape)
    block = sparse.csc_array((data[square.data - 1], square.indices, square.indptr), shape=square.shape)
    block.data *= rows[order][block.indices] * np.repeat(columns[order], np.diff(block.indptr))
    parts = coupling, diagonal, rows[order], columns[order], order
    known = columns * random_signs(n)
    right = matrix @ known
    for name, factor in _attempts(backend, pattern):
        try:
            factors = Factors(pattern, matrix, name, factor(block), *parts)
            lost = float(np.max(np.abs(factors.solve(right) - known) / columns))
        except (RuntimeError, ValueError, MemoryError) as error:  # what the backends raise for singular matrices
            log.info("%s could not factorise: %s", name, error)
            continue
        if lost < _SINGULAR:
            return factors
        log.info("%s lost a known answer (error %.1e), trying the next", name, lost)
    raise SingularMatrixError(_why_singular(matrix, rows, pattern.n_fields))


def _iterating(
    pattern: Pattern, matrix: sparse.csr_array, diagonal: np.ndarray, rows: np.ndarray, columns: np.ndarray
) -> IterativeFactors:
    """Iterations that have found a known answer: first to a few digits, and as far as rounding allows where these are lost."""
    left = np.flatnonzero(~pattern.stated)
    # multigrid wants a positive diagonal, whatever the sign in which an equation is written
    rows = rows * np.where(matrix.diagonal() < 0, -1.0, 1.0)
    some = matrix[left]
    block = some[:, left]
    block.data *= np.repeat(rows[left], np.diff(block.indptr)) * columns[left][block.indices]
    krylov = Krylov(block, left // (len(rows) // pattern.n_fields))
    coupling = some[:, np.flatnonzero(pattern.stated)]
    parts = coupling, diagonal, rows[left], columns[left], left
    factors = IterativeFactors(pattern, matrix, "iterative", krylov, *parts)
    known = columns * random_signs(len(rows))
    right = matrix @ known
    for tolerance in (_TRIAL, 0.0):
        lost = float(np.max(np.abs(Factors.solve(factors, right, tolerance=tolerance) - known) / columns))
        if lost < _SINGULAR:
            return factors
    log.info("iterations lost a known answer (error %.1e)", lost)
    raise Stalled(lost, krylov.n_iterations)  # elimination tells whether the matrix is singular


def random_signs(n: int) -> np.ndarray:
    """(n,) of 1 and −1 without a pattern, always the same."""
    return np.where(np.arange(n) * 2654435761 % 2**32 < 2**31, 1.0, -1.0)


def _scales(matrix: sparse.csr_array, n_fields: int) -> tuple[np.ndarray, np.ndarray]:
    """Factors (n,) for rows and columns that bring their largest entries to about 1; powers of two, so nothing is rounded.

    With several unknown functions their units come first, chosen so that what couples two of them is as large one way as
    the other, relative to the largest entries of each function in its own equation.
    """
    n, sizes, column = matrix.shape[0], np.abs(matrix.data), matrix.indices
    row = np.repeat(np.arange(n), np.diff(matrix.indptr))
    if n_fields > 1:
        length = n // n_fields
        own = _largest(row, sizes * (row // length == column // length), n)
        coupling = _largest(row // length * n_fields + column // length, sizes / own[row], n_fields**2)
        units = np.repeat(_units(coupling.reshape(n_fields, n_fields)), length)
    else:
        units = np.ones(n)
    rows = np.ldexp(1.0, -np.frexp(_largest(row, sizes * units[column], n))[1])
    return rows, np.ldexp(1.0, -np.frexp(_largest(column, sizes * rows[row], n))[1])


def _largest(group: np.ndarray, values: np.ndarray, n_groups: int) -> np.ndarray:
    """The largest value of each group, 1 where there is none above 0."""
    out = np.zeros(n_groups)
    np.maximum.at(out, group, values)
    return np.where(out > 0, out, 1.0)


def _units(coupling: np.ndarray) -> np.ndarray:
    """Units t (n_fields,) with coupling[f, g] t_g / t_f the same both ways, in the least-squares sense of logarithms."""
    n = len(coupling)
    left = np.array([np.eye(n)[g] - np.eye(n)[f] for f in range(n) for g in range(f)])
    right = np.array([np.log(coupling[g, f] / coupling[f, g]) / 2 for f in range(n) for g in range(f)])
    return np.exp(np.linalg.lstsq(left, right, rcond=None)[0])


def _why_singular(matrix: sparse.csr_array, rows: np.ndarray, n_fields: int) -> str:
    """What a matrix without an inverse says about its problem."""
    sizes = sparse.diags_array(rows) @ abs(matrix)
    empty = np.count_nonzero(sizes.sum(axis=1) == 0)
    if empty:
        return f"{empty} of the {len(rows)} equations have no term with an unknown left. Check their coefficients."
    for k in range(n_fields):
        one = np.repeat(np.arange(n_fields) == k, len(rows) // n_fields).astype(float)
        if np.all(np.abs(rows * (matrix @ one)) <= _CONSTANT * (sizes @ one)):
            which = f"unknown number {k + 1}" if n_fields > 1 else "the unknown"
            return (
                f"the equation and the conditions determine {which} only up to a constant: they contain its derivatives "
                "alone. Give the value on a part of the boundary, or use a Robin condition."
            )
    return (
        "the problem has no unique solution: with zero data it has solutions other than zero (an eigenvalue, a "
        "resonance, or conditions that are missing or contradict each other). Change the parameters, or the conditions."
    )


def _attempts(backend: str, pattern: Pattern):
    if len(pattern.order) == 0:
        return [("none", lambda block: None)]
    try:
        import pymklpardiso as mkl
    except ImportError:
        mkl = None
    if backend == "mkl" and mkl is None:
        raise NotInstalled("solver='mkl' needs MKL PARDISO. Install it with: pip install 'parasol-pde[mkl]'.")
    first = [("mkl", lambda block: _Pardiso(mkl, pattern, block))] if backend == "mkl" else []
    return [*first, ("superlu", _superlu_fast), ("superlu, full pivoting", _superlu_full)]


class _Pardiso:
    """One matrix in MKL PARDISO. The analysis is passed on, through the pattern, to the next matrix when this one is gone."""

    def __init__(self, mkl, pattern: Pattern, block: sparse.csc_array):
        rows = block.tocsr()
        rows.sort_indices()
        self._rows, self._mkl = rows, mkl
        try:
            self.solver = pattern._idle.pop()
        except IndexError:
            self.solver = mkl.PardisoSolver(rows, mkl.MTYPE_REAL_NONSYM)
        else:
            self.solver.refactor(rows.data)
        weakref.finalize(self, pattern._idle.append, self.solver)

    @cached_property
    def _transposed(self):
        return self._mkl.PardisoSolver(self._rows.T.tocsr(), self._mkl.MTYPE_REAL_NONSYM)

    def solve(self, right: np.ndarray, trans: str = "N") -> np.ndarray:
        return (self.solver if trans == "N" else self._transposed).solve(right)


def _superlu_fast(block: sparse.csc_array):
    # a diagonal that is not tiny is taken as pivot, which keeps the ordering and its small fill
    return splu(block, permc_spec="NATURAL", diag_pivot_thresh=1e-3, options={"SymmetricMode": True})


def _superlu_full(block: sparse.csc_array):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return splu(block)
