"""Weights of RBF-FD stencils: small dense systems, batched."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from parasol.checks import ParasolError
from parasol.space.kernels import PHS, Kernel, MultiIndex, check_smooth_enough, monomials, n_monomials

_BATCH_BYTES = 4_000_000  # one batch of local systems stays in the processor's cache
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
    Scheme(kernel=PHS(power=9), degree=4, stencil_size=36)
    """
    if degree is None:
        degree = _DEFAULT_DEGREE[dimension] if kernel is None or isinstance(kernel, PHS) else -1
    if int(degree) != degree or degree < -1:
        raise ParasolError(f"degree={degree} must be an integer >= -1, where -1 means no polynomials.")
    if kernel is None:
        # the smoothest spline that these polynomials make non-singular; above 9 conditioning eats the gain
        kernel = PHS(max(min(2 * degree + 1, 9), order + 1 + order % 2))
    if degree < kernel.minimal_degree:
        raise ParasolError(
            f"degree={degree} is too small for {kernel}, whose local systems may be singular. "
            f"Use degree >= {kernel.minimal_degree}."
        )
    count = n_monomials(dimension, degree)
    if stencil_size is None:
        stencil_size = max(math.ceil(2.4 * count), 2 * dimension + 1) if degree >= 0 else _NO_POLYNOMIALS[dimension]
    if stencil_size < max(count, 2):
        raise ParasolError(
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
    starts = range(0, n_stencils, batch)
    weights = np.empty((n_stencils, len(derivatives), size))
    condition = np.empty(n_stencils)

    def work(start: int) -> None:
        part = slice(start, start + batch)
        weights[part], condition[part] = _solve_batch(offsets[part], derivatives, kernel, degree)

    workers = os.cpu_count() or 1
    if workers == 1 or len(starts) < 2:
        for start in starts:
            work(start)
    else:  # NumPy releases the interpreter lock in its linear algebra; its own threads would fight with ours
        with threadpool_limits(1), ThreadPoolExecutor(workers) as pool:
            list(pool.map(work, starts))
    return StencilWeights(weights, condition)


def _solve_batch(offsets, derivatives, kernel: Kernel, degree: int) -> tuple[np.ndarray, np.ndarray]:
    m, size, dimension = offsets.shape
    radius = np.sqrt(np.max(np.sum(offsets * offsets, axis=-1), axis=-1))
    radius = np.where(radius > 0, radius, 1.0)
    # polyharmonic splines are scale-invariant; the others keep their shape parameter in the original units
    scale = 1.0 if isinstance(kernel, PHS) else radius[:, None, None]
    local = np.ascontiguousarray(np.moveaxis(offsets / radius[:, None, None], -1, 0))  # (dimension, m, size)
    exponents = monomials(dimension, degree)
    rows = size + len(exponents)

    matrix = np.zeros((m, rows, rows))
    squared = np.zeros((m, size, size))
    for column in local:
        difference = column[:, :, None] - column[:, None, :]
        np.multiply(difference, difference, out=difference)
        squared += difference
    matrix[:, :size, :size] = kernel.radial(squared, 0, scale)
    powers = [[np.ones_like(local[0])] for _ in range(dimension)]
    for axis in range(dimension):
        for _ in range(degree):
            powers[axis].append(powers[axis][-1] * local[axis])
    for column, exponent in enumerate(exponents):
        value = powers[0][exponent[0]]
        for axis in range(1, dimension):
            if exponent[axis]:
                value = value * powers[axis][exponent[axis]]
        matrix[:, :size, size + column] = value
        matrix[:, size + column, :size] = value

    right = np.zeros((m, rows, len(derivatives) + 1))
    at_center = -np.moveaxis(local, 0, -1)  # x − x_j with x at the origin
    center_scale = scale if np.ndim(scale) == 0 else radius[:, None]
    for j, index in enumerate(derivatives):
        right[:, :size, j] = kernel.derivative(at_center, index, center_scale)
        if index in exponents:
            right[:, size + exponents.index(index), j] = math.prod(math.factorial(a) for a in index)
    known = 1.0 - 2.0 * (np.arange(rows) * 2654435761 % 2**32 >= 2**31)  # signs without a pattern
    right[:, :, -1] = matrix @ known

    try:
        solution = np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:  # one singular system stops the whole batch: do them one by one
        solution = np.full_like(right, np.nan)
        for i in range(m):
            try:
                solution[i] = np.linalg.solve(matrix[i], right[i])
            except np.linalg.LinAlgError:
                continue
    lost = np.max(np.abs(solution[:, :, -1] - known), axis=1)
    condition = np.where(np.isfinite(lost), lost / _EPS, np.inf)
    order = np.array([sum(index) for index in derivatives], dtype=float)
    weights = np.moveaxis(solution[:, :size, :-1], 1, 2) * radius[:, None, None] ** -order[None, :, None]
    return weights, condition
