"""Weights of RBF-FD stencils: small dense systems, batched."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from parasol.errors import InputError
from parasol.space.kernels import PHS, Kernel, MultiIndex, check_smooth_enough, monomials, n_monomials

_BATCH_BYTES = 2_000_000  # one batch of local systems stays in the processor's cache
_SPAN = 8  # batches a thread takes at a time, in the same memory: fresh memory costs as much as the arithmetic
_EPS = np.finfo(float).eps


@dataclass(frozen=True)
class Scheme:
    """How derivatives are approximated: a kernel, polynomials up to `degree` (−1: none), `stencil_size` neighbours."""

    kernel: Kernel
    degree: int
    stencil_size: int


@dataclass(frozen=True, eq=False)
class StencilWeights:
    """Weights (n_stencils, n_operators, stencil_size) and the estimated condition number of each local system."""

    weights: np.ndarray
    condition: np.ndarray


def default_scheme(
    dimension: int,
    *,
    kernel: Kernel | None = None,
    degree: int | None = None,
    stencil_size: int | None = None,
    order: int = 2,
) -> Scheme:
    """Fill in what was not chosen: polyharmonic splines with polynomials, stencils from degree and dimension.

    `order` is the highest derivative that will be asked for.

    >>> default_scheme(2, degree=4)
    Scheme(kernel=PHS(power=9), degree=4, stencil_size=39)
    """
    if not (kernel is None or isinstance(kernel, Kernel)):
        raise InputError(f"kernel is {kernel!r}. Pass a kernel such as ps.space.PHS(9) or ps.space.IMQ(3.0).")
    for name, value in (("degree", degree), ("stencil_size", stencil_size)):
        if not (value is None or (isinstance(value, int | np.integer) and not isinstance(value, bool))):
            raise InputError(f"{name}={value!r} must be a whole number.")
    if degree is None:
        degree = _DEFAULT_DEGREE[dimension] if kernel is None or isinstance(kernel, PHS) else -1
    if degree < -1:
        raise InputError(f"degree={degree} must be an integer >= -1, where -1 means no polynomials.")
    if kernel is None:
        # the smoothest spline that these polynomials make non-singular; above 9 conditioning eats the gain
        kernel = PHS(max(min(2 * degree + 1, 9), order + 1 + order % 2))
    if degree < kernel.minimal_degree:
        raise InputError(
            f"degree={degree} is too small for {kernel}, whose local systems may be singular. "
            f"Use degree >= {kernel.minimal_degree}."
        )
    if isinstance(kernel, PHS) and degree < order:
        raise InputError(
            f"degree={degree} is too small for derivatives of order {order}: splines converge by their polynomials only. "
            f"Use degree >= {order}."
        )
    count = n_monomials(dimension, degree)
    if stencil_size is None:
        stencil_size = max(math.ceil(2.6 * count), 2 * dimension + 1) if degree >= 0 else _NO_POLYNOMIALS[dimension]
    if stencil_size < max(count, 2):
        raise InputError(
            f"stencil_size={stencil_size} is too small for degree={degree} in {dimension} dimensions ({count} monomials). "
            f"Use stencil_size >= {2 * count}, or a smaller degree."
        )
    return Scheme(kernel, int(degree), int(stencil_size))


_DEFAULT_DEGREE = {1: 6, 2: 5, 3: 4}
_NO_POLYNOMIALS = {1: 7, 2: 50, 3: 50}


def stencil_weights(
    offsets: np.ndarray, derivatives: Sequence[MultiIndex], *, kernel: Kernel, degree: int
) -> StencilWeights:
    """Weights w with sum_j w_j u(x + offset_j) ≈ D^a u(x), for each a in `derivatives`.

        [ Phi  P ] [w]   [ D^a phi(0 − offset_j) ]
        [ Pᵀ   0 ] [l] = [ D^a p(0)              ]

    `offsets` (n_stencils, stencil_size, dimension) are the stencil's nodes relative to the evaluation point. Each
    stencil is scaled to unit radius first. A right-hand side with a known answer is solved along, and what it loses
    estimates the condition number.

    >>> line = np.array([[[0.0], [0.1], [-0.1]]])
    >>> stencil_weights(line, [(2,)], kernel=PHS(3), degree=2).weights.round(6)
    array([[[-200.,  100.,  100.]]])
    """
    check_smooth_enough(kernel, derivatives)
    n_stencils, size, dimension = offsets.shape
    rows = size + n_monomials(dimension, degree)
    batch = max(1, _BATCH_BYTES // (8 * rows * rows))
    starts = range(0, n_stencils, _SPAN * batch)
    # one block of memory per operator, so that a sparse matrix takes it over as it is
    weights = np.moveaxis(np.empty((len(derivatives), n_stencils, size)), 0, 1)
    condition = np.empty(n_stencils)

    def work(start: int) -> None:
        part = slice(start, start + _SPAN * batch)
        _solve_span(offsets[part], derivatives, kernel, degree, batch, weights[part], condition[part])

    workers = n_workers(len(starts))
    if workers == 1:
        for start in starts:
            work(start)
    else:
        from concurrent.futures import ThreadPoolExecutor

        from threadpoolctl import threadpool_limits

        # NumPy releases the interpreter lock in its linear algebra; its own threads would fight with ours
        with threadpool_limits(1), ThreadPoolExecutor(workers) as pool:
            list(pool.map(work, starts))
    return StencilWeights(weights, condition)


def n_workers(n_jobs: int) -> int:
    """Threads worth starting for `n_jobs` independent jobs: at most one per processor this process may use."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(allowed, n_jobs))


def _solve_span(offsets, derivatives, kernel: Kernel, degree: int, batch: int, weights, condition) -> None:
    """Fill `weights` and `condition`, one batch after the other in the same memory."""
    n_stencils, size, dimension = offsets.shape
    exponents = monomials(dimension, degree)
    rows = size + len(exponents)
    batch = min(batch, n_stencils)
    matrix = np.zeros((batch, rows, rows))
    right = np.zeros((batch, rows, len(derivatives) + 1))
    squared, difference = np.empty((2, batch, size, size))
    known = 1.0 - 2.0 * (np.arange(rows) * 2654435761 % 2**32 >= 2**31)  # signs without a pattern
    for j, index in enumerate(derivatives):
        if index in exponents:
            right[:, size + exponents.index(index), j] = math.prod(math.factorial(a) for a in index)
    # polyharmonic splines are scale-invariant; the others keep their shape parameter in the original units
    scaled = not isinstance(kernel, PHS)

    for start in range(0, n_stencils, batch):
        part = slice(start, start + batch)
        there = offsets[part]
        m = len(there)
        radius = np.sqrt(np.max(np.einsum("mji,mji->mj", there, there), axis=1))
        radius[radius == 0] = 1.0
        local = np.ascontiguousarray(np.moveaxis(there, 2, 0)) / radius[:, None]  # (dimension, m, size)

        a, b = matrix[:m], right[:m]
        _squared_distances(local, squared[:m], difference[:m])
        a[:, :size, :size] = kernel.radial(squared[:m], 0, radius[:, None, None] if scaled else 1.0)
        _polynomials(local, degree, a[:, size:, :size])
        a[:, :size, size:] = a[:, size:, :size].mT
        at_center = np.moveaxis(-local, 0, 2)  # x − x_j with x at the origin
        for j, index in enumerate(derivatives):
            b[:, :size, j] = kernel.derivative(at_center, index, radius[:, None] if scaled else 1.0)
        b[:, :, -1] = a @ known

        solution = _solve(a, b)
        lost = np.max(np.abs(solution[:, :, -1] - known), axis=1)
        condition[part] = np.where(np.isfinite(lost), lost / _EPS, np.inf)
        for j, index in enumerate(derivatives):
            np.divide(solution[:, :size, j], radius[:, None] ** sum(index), out=weights[part, j])


def _squared_distances(local, squared, difference) -> None:
    """|x_i − x_j|² for (dimension, m, size) points, written into `squared` (m, size, size)."""
    np.subtract(local[0][:, :, None], local[0][:, None, :], out=difference)
    np.multiply(difference, difference, out=squared)
    for x in local[1:]:
        np.subtract(x[:, :, None], x[:, None, :], out=difference)
        np.multiply(difference, difference, out=difference)
        np.add(squared, difference, out=squared)


def _polynomials(local, degree: int, out) -> None:
    """Monomials at (dimension, m, size) points, written into `out` (m, n_monomials, size)."""
    for row, factors in enumerate(_products(local.shape[0], degree)):
        if factors is None:
            out[:, row] = 1.0
        else:  # a monomial found before, times one coordinate
            lower, axis = factors
            np.multiply(out[:, lower], local[axis], out=out[:, row])


@functools.cache
def _products(dimension: int, degree: int) -> list[tuple[int, int] | None]:
    """For each monomial the number of one before it and of the coordinate whose product it is; None for the constant."""
    exponents = monomials(dimension, degree)
    products: list[tuple[int, int] | None] = []
    for exponent in exponents:
        axis = next((axis for axis, power in enumerate(exponent) if power), None)
        if axis is None:
            products.append(None)
        else:
            products.append((exponents.index((*exponent[:axis], exponent[axis] - 1, *exponent[axis + 1 :])), axis))
    return products


def _solve(matrix, right) -> np.ndarray:
    """Solutions of symmetric systems; NaN where one is singular."""
    try:
        return np.linalg.solve(matrix.mT, right)  # LAPACK wants columns: of a symmetric matrix these are the rows
    except np.linalg.LinAlgError:  # one singular system stops the whole batch: do them one by one
        solution = np.full_like(right, np.nan)
        for i in range(len(matrix)):
            try:
                solution[i] = np.linalg.solve(matrix[i], right[i])
            except np.linalg.LinAlgError:
                continue
        return solution
