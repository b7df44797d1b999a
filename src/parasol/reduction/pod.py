"""Proper orthogonal decomposition: snapshots to a basis by singular values."""

from __future__ import annotations

import warnings
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from parasol.checks import check_choice, check_count, check_finite
from parasol.errors import InputError, ParasolWarning
from parasol.reduction.factorizations import Budget, Factored, direct, incremental, short
from parasol.reduction.pod_in_parts import decompose
from parasol.reduction.products import MatrixRoot
from parasol.reduction.sources import BLOCK, Source, Tally
from parasol.runtime.basis import Basis, slices
from parasol.runtime.products import MatrixProduct, check_weights

METHODS = ("svd", "incremental")
_SHORT = 3000  # values up to which a triangle of that size takes any number of snapshots
_FINER = 1e-4  # part of the tolerance that may be lost on the way
_SLOW = 1e-2  # relative error with modes of half the snapshots above which more of them would not help
_TELLING = 10  # snapshots or values from which the decay of the singular values can be seen
_TURNED = 1e-6  # angle by which what was lost on the way may turn the modes without a word
_LEAST = 1e-280  # squared, of all snapshots together: below, errors of a few digits are none any more


def pod(
    snapshots: Any,
    *,
    tolerance: float | None = None,
    n_modes: int | None = None,
    weights: ArrayLike | MatrixProduct | None = None,
    method: str | None = None,
    held_out: Any = None,
    executor: Executor | None = None,
) -> Basis:
    """The basis V of the smallest dimension d with ||S − V Vᵀ X S|| <= tolerance ||S||, or of `n_modes` modes.

    By the singular values s_i of the snapshots in the inner product X, diag(weights) or a matrix: the smallest d with
    Σ_{i<=d} s_i² >= (1 − tolerance²) Σ s_i². No mean is subtracted. No basis of d modes leaves less of the snapshots.

    `snapshots`: rows (n, n_values), or an object with `blocks()` that gives them piece by piece, such as Snapshots.
    `held_out`: snapshots that are not used, for which the basis then knows its mean relative projection error.
    `method` need not be chosen. "svd" is exact, and taken where the snapshots fit in memory (1 GB) or are short (3000
    values, of any number of snapshots); it needs half their size besides. "incremental" is for sets too large for that:
    it adds block after block, in the memory of the modes and one block, and keeps to the tolerance. The same is done by
    the processes of an `executor` of `concurrent.futures`, for snapshots in a store that they see: each takes some chunks,
    pairs of results are joined until one is left, and only the modes come here.

    >>> basis = pod([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]], n_modes=1)
    >>> basis.modes.T, basis.singular_values, basis.energy_discarded
    (array([[0., 1.]]), array([4., 3.]), array([1. , 0.6, 0. ]))
    """
    tolerance, n_modes = _check_wish(tolerance, n_modes)
    if method is not None:
        check_choice(method, METHODS, "method")
    if executor is not None:
        _check_parts(snapshots, weights, method, executor)
    source = Source(snapshots, read=executor is None)
    weights = None if weights is None else check_weights(weights, source.n_values)
    turned = MatrixRoot(weights) if isinstance(weights, MatrixProduct) else None
    root = None if weights is None or turned is not None else np.sqrt(weights)  # type: ignore[arg-type]
    tally = Tally(None if turned is not None else weights)
    given = source if turned is None else source.turned(turned)
    if executor is None:
        factored, method = _factor(given, root, tolerance, n_modes, method, tally)
    else:
        budget = _budget(tolerance, n_modes)
        factored, tally.n, tally.energy = decompose(snapshots, weights, root, budget, executor)  # type: ignore[arg-type]
        method = "incremental"
    if tally.n < 2:
        raise InputError("one snapshot has nothing to be compared with. Use at least 2, better a hundred.")
    if tally.energy == 0:
        raise InputError("all snapshots are zero: there is no direction to keep. Check the problem's sources.")
    if tally.energy < _LEAST:
        raise InputError("snapshots are so small that their squares underflow. Scale them.")
    d = _count(factored, tolerance, n_modes)
    _warn(factored, method, tolerance, n_modes, d, tally.n, source.n_values)
    modes = factored.vectors(d)
    peak = modes[np.argmax(np.abs(modes), axis=0), np.arange(d)]
    modes *= np.where(peak < 0, -1.0, 1.0)  # the sign is free: the largest entry is positive, whatever the method
    if root is not None:
        modes /= root[:, None]
    if turned is not None:
        modes = turned.back(modes)
    basis = Basis(
        modes=modes,
        weights=weights,
        singular_values=factored.singular_values,
        total_energy=tally.energy,
        n_snapshots=tally.n,
        method=method,
        lost_energy=factored.lost_energy,
    )
    if source.hidden is not None:
        basis = replace(basis, hidden=_hidden_modes(source, basis))
    if held_out is not None:
        basis = replace(basis, held_out_error=_mean_error(basis, held_out))
    return basis


def _check_wish(tolerance, n_modes) -> tuple[float | None, int | None]:
    if (tolerance is None) == (n_modes is None):
        raise InputError("pod needs either a tolerance or a number of modes: give tolerance=1e-6 or n_modes=20.")
    if n_modes is not None:
        return None, check_count(n_modes, "n_modes")
    try:
        tolerance = float(tolerance)
    except (TypeError, ValueError):
        raise InputError(f"tolerance must be a number between 0 and 1, got {tolerance!r}.") from None
    if not 0 < tolerance < 1:
        raise InputError(f"tolerance={tolerance:g} is not between 0 and 1. It is relative: use for example 1e-6.")
    return tolerance, None


# ---- which way -----------------------------------------------------------------------------------------------------
def _factor(source: Source, root, tolerance, n_modes, method, tally: Tally) -> tuple[Factored, str]:
    """Decompose, by the method asked for or the most accurate one that fits in memory."""
    in_pieces = map(tally.count, source.blocks())
    if method is None:
        method = "incremental" if source.array is None and source.n_values > _SHORT else "svd"
    if method == "incremental":
        return incremental(in_pieces, root, _budget(tolerance, n_modes)), method
    if source.array is None and source.n_values <= _SHORT:
        return short(in_pieces, source.n_values, root), method
    rows = source.whole()
    for part in slices(len(rows), max(1, BLOCK // source.n_values)):
        tally.count(rows[part])
    if tally.energy == 0 or len(rows) < 2:
        return Factored(np.zeros(1), 0.0, lambda d: np.zeros((source.n_values, d))), method
    return direct(rows, root), method


def _budget(tolerance: float | None, n_modes: int | None) -> Budget:
    """What may be lost on the way: a count of modes says nothing of that, so keep some more, and tell what it was."""
    return Budget((_FINER * tolerance) ** 2) if tolerance else Budget(0.0, most=4 * (n_modes or 0) + 20)


def _check_parts(snapshots, weights, method: str | None, executor) -> None:
    """Refuse what the processes of an executor cannot do."""
    if not callable(getattr(executor, "submit", None)):
        raise InputError(
            f"executor is a {type(executor).__name__}. Pass one of concurrent.futures, such as Dask's client.get_executor()."
        )
    if getattr(snapshots, "store", None) is None:
        raise InputError("executor is for snapshots in a store, these are in memory. Leave executor out.")
    if isinstance(weights, MatrixProduct) or (weights is not None and np.ndim(weights) != 1):
        raise InputError("executor is for weights of single values, not for a matrix. Leave executor out.")
    if method not in (None, "incremental"):
        raise InputError(f'executor goes with method="incremental", not with {method!r}. Leave one of them out.')


def _count(factored: Factored, tolerance: float | None, n_modes: int | None) -> int:
    """Number of modes: as few as the tolerance allows, never more than the rank."""
    s = factored.singular_values
    rank = max(1, int(np.count_nonzero(s > len(s) * np.finfo(float).eps * s[0])))
    if tolerance is None:
        return min(n_modes, rank)  # type: ignore[type-var]
    tail = np.cumsum([factored.lost_energy, *s[::-1] ** 2])[::-1]
    return max(1, min(int(np.count_nonzero(tail > tolerance**2 * tail[0])), rank))


def _warn(factored: Factored, method: str, tolerance, n_modes, d: int, n: int, n_values: int) -> None:
    s, messages = factored.singular_values, []
    if n_modes is not None and d < n_modes:
        messages.append(f"n_modes={n_modes}, but the snapshots span {d} directions only: the basis has {d} modes.")
    turned = factored.lost_energy / s[d - 1] ** 2
    if method == "incremental" and turned > _TURNED:
        messages.append(
            f'method="incremental" dropped energy on the way that turns the last modes by about {min(turned, 1):.0e}. '
            'Ask for more modes, or give a tolerance, or use method="svd".'
        )
    if tolerance is not None and 2 * d > min(n, n_values):
        what = f"{n} snapshots" if n <= n_values else f"{n_values} values"
        half = np.sqrt(
            (factored.lost_energy + np.sum(s[min(n, n_values) // 2 :] ** 2)) / (factored.lost_energy + np.sum(s**2))
        )
        needs = f"tolerance={tolerance:g} needs {d} modes of {what}"
        if half > _SLOW and min(n, n_values) >= _TELLING:
            messages.append(
                f"{needs}, and half as many leave {half:.1e}: the singular values decay too slowly to reduce. Use a looser "
                "tolerance or a smaller range of parameters; if d keeps growing with more snapshots, solutions lie near no "
                "small linear space and a nonlinear map is needed."
            )
        elif n <= n_values:
            decay = f"the singular values decay, to {half:.1e} with half as many, but " if half <= _SLOW else ""
            messages.append(
                f"{needs}: {decay}so few snapshots may not resolve the tolerance. Use more snapshots, or a looser tolerance."
            )
    for message in messages:
        warnings.warn(message, ParasolWarning, stacklevel=3)


# ---- what else the basis knows -------------------------------------------------------------------------------------
def _hidden_modes(source: Source, basis: Basis) -> np.ndarray:
    """Hᵀ C (Cᵀ C)⁻¹: V = S C (Cᵀ C)⁻¹ with the coefficients C, so hidden rows H of S are combined in the same way."""
    hidden, start = np.asarray(source.hidden), 0
    if len(hidden) != basis.n_snapshots:
        raise InputError(f"there are {len(hidden)} rows of hidden values for {basis.n_snapshots} snapshots.")
    out, products = np.zeros((hidden.shape[1], basis.n_modes)), np.zeros((basis.n_modes, basis.n_modes))
    scale = basis.singular_values[: basis.n_modes]
    for block in source.blocks():
        coefficients = basis.project(block) / scale  # Cᵀ C = diag(s²) but for rounding, so this is almost orthonormal
        out += hidden[start : start + len(block)].T @ coefficients
        products += coefficients.T @ coefficients
        start += len(block)
    return check_finite(np.linalg.solve(products, out.T).T / scale, "hidden values of the snapshots")


def _mean_error(basis: Basis, held_out) -> float:
    source = Source(held_out, "held_out")
    if source.n_values != basis.n_values:
        raise InputError(f"held_out has {source.n_values} values a row, the snapshots have {basis.n_values}.")
    errors = [basis.projection_errors(check_finite(block, "held_out")) for block in source.blocks()]
    if not errors:
        raise InputError("held_out is empty. Give snapshots that were not used, or leave it out.")
    return float(np.mean(np.concatenate(errors)))
