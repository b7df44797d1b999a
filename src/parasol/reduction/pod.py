"""Proper orthogonal decomposition: snapshots to a basis by singular values."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from parasol.checks import check_choice, check_count, check_finite, check_shape
from parasol.errors import InputError, ParasolWarning
from parasol.reduction.factorizations import Budget, Factored, direct, incremental, short
from parasol.reduction.products import MatrixRoot
from parasol.runtime.basis import Basis, slices
from parasol.runtime.products import MatrixProduct, Weights, check_weights, energies

METHODS = ("svd", "incremental")
_IN_MEMORY = 2**27  # numbers of a stored set up to which it is read as a whole: 1 GB
_BLOCK = 2**22  # numbers that a block of snapshots should have: 32 MB, of which a few copies are made
_SHORT = 3000  # values up to which a triangle of that size takes any number of snapshots
_FINER = 1e-4  # part of the tolerance that may be lost on the way
_SLOW = 1e-2  # relative error with modes of half the snapshots above which more of them would not help
_TURNED = 1e-6  # angle by which what was lost on the way may turn the modes without a word


def pod(
    snapshots: Any,
    *,
    tolerance: float | None = None,
    n_modes: int | None = None,
    weights: ArrayLike | MatrixProduct | None = None,
    method: str | None = None,
    held_out: Any = None,
) -> Basis:
    """The basis V of the smallest dimension d with ||S − V Vᵀ X S|| <= tolerance ||S||, or of `n_modes` modes.

    By the singular values s_i of the snapshots in the inner product X, diag(weights) or a matrix: the smallest d with
    Σ_{i<=d} s_i² >= (1 − tolerance²) Σ s_i². No mean is subtracted. No basis of d modes leaves less of the snapshots.

    `snapshots`: rows (n, n_values), or an object with `blocks()` that gives them piece by piece, such as Snapshots.
    `held_out`: snapshots that are not used, for which the basis then knows its mean relative projection error.
    `method` need not be chosen. "svd" is exact, and taken where the snapshots fit in memory (1 GB) or are short (3000
    values, of any number of snapshots); it needs half their size besides. "incremental" is for sets too large for that:
    it adds block after block, in the memory of the modes and one block, and keeps to the tolerance.

    >>> basis = pod([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]], n_modes=1)
    >>> basis.modes.T, basis.singular_values, basis.energy_discarded
    (array([[0., 1.]]), array([4., 3.]), array([1. , 0.6, 0. ]))
    """
    tolerance, n_modes = _check_wish(tolerance, n_modes)
    if method is not None:
        check_choice(method, METHODS, "method")
    source = _Source(snapshots)
    weights = None if weights is None else check_weights(weights, source.n_values)
    turned = MatrixRoot(weights) if isinstance(weights, MatrixProduct) else None
    root = None if weights is None or turned is not None else np.sqrt(weights)  # type: ignore[arg-type]
    tally = _Tally(None if turned is not None else weights)
    given = source if turned is None else source.turned(turned)
    factored, method = _factor(given, root, tolerance, n_modes, method, tally)
    if tally.n < 2:
        raise InputError("one snapshot has nothing to be compared with. Use at least 2, better a hundred.")
    if tally.energy == 0:
        raise InputError("all snapshots are zero: there is no direction to keep. Check the problem's sources.")
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


# ---- where the snapshots are ---------------------------------------------------------------------------------------
class _Source:
    """Snapshots as one array where they fit in memory, and in blocks of rows in any case."""

    def __init__(self, given, name: str = "snapshots"):
        self.name, self.given = name, given
        self.array: np.ndarray | None = None
        self.hidden: np.ndarray | None = None
        if hasattr(given, "blocks"):
            first = self._rows(next(iter(given.blocks()), np.empty((0, 0))))
            self.n_values = first.shape[1]
            mus = getattr(given, "mus", None)
            n = None if mus is None else len(mus)
            if n is not None and n * self.n_values <= _IN_MEMORY and hasattr(given, "solutions"):
                self.array = self._rows(given.solutions)
            hidden = getattr(given, "hidden", None)
            if hidden is not None and np.shape(hidden)[1] > 0:
                self.hidden = check_shape(hidden, (None, None), "hidden")
        else:
            self.array = self._rows(given)
            self.n_values = self.array.shape[1]
        if self.n_values == 0 or (self.array is not None and len(self.array) == 0):
            raise InputError(f"{name} are empty: there is nothing to decompose. Solve at some parameters first.")

    def _rows(self, block) -> np.ndarray:
        """Rows (m, n_values) of floats, in the precision they have."""
        given = block
        try:
            block = np.asarray(given)
            block = block if block.dtype.kind == "f" else block.astype(float, casting="same_kind")
        except (TypeError, ValueError):
            of = f" of {given.dtype}" if isinstance(given, np.ndarray) else ""
            raise InputError(
                f"{self.name} must be real numbers, got {type(given).__name__}{of}. Give Snapshots, or rows of numbers."
            ) from None
        if block.ndim != 2:
            raise InputError(
                f"{self.name} have shape {block.shape}, expected (n_samples, n_values): samples on axis 0."
            )
        return block

    def whole(self) -> np.ndarray:
        """All rows in one array, also where they do not fit well: the caller has asked for it."""
        if self.array is None:
            given = getattr(self.given, "solutions", None)  # which joins them without a second copy
            self.array = self._rows(np.concatenate(list(self.given.blocks())) if given is None else given)
        return self.array

    def turned(self, root: MatrixRoot) -> _Source:
        """The same in coordinates in which the inner product of a matrix is the plain one; a block at a time if need be."""
        if self.array is None:
            return _Source(_Turned(self, root))
        return _Source(np.ascontiguousarray(root.into(self.array.T).T))

    def blocks(self) -> Iterator[np.ndarray]:
        """Blocks of a useful size: small ones are joined, large ones cut."""
        length = max(16, _BLOCK // self.n_values)
        if self.array is not None:
            length = max(2, min(length, -(-len(self.array) // 8)))
        waiting: list[np.ndarray] = []
        for block in [self.array] if self.array is not None else self.given.blocks():
            block = self._rows(block)
            if block.shape[1] != self.n_values:
                raise InputError(f"{self.name} come in blocks of {self.n_values} and {block.shape[1]} values.")
            for part in slices(len(block), length):
                if waiting and sum(map(len, waiting)) + part.stop - part.start > length:
                    yield _joined(waiting)
                    waiting = []
                waiting.append(block[part])
        if waiting:
            yield _joined(waiting)


@dataclass(frozen=True, eq=False)
class _Turned:
    """Blocks of snapshots in the coordinates of a matrix' square root."""

    source: _Source
    root: MatrixRoot

    def blocks(self) -> Iterator[np.ndarray]:
        """One after the other."""
        return (np.ascontiguousarray(self.root.into(block.T).T) for block in self.source.blocks())


def _joined(blocks: list[np.ndarray]) -> np.ndarray:
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


class _Tally:
    """Counts snapshots and their energy as they pass, and stops what is not finite."""

    def __init__(self, weights: Weights | None):
        self.weights, self.n, self.energy = weights, 0, 0.0

    def count(self, block: np.ndarray) -> np.ndarray:
        """The same block."""
        with np.errstate(over="ignore", invalid="ignore"):
            energy = float(np.sum(energies(block, self.weights)))
        if not np.isfinite(energy):
            check_finite(block, "snapshots")
            raise InputError("snapshots are so large that their squares overflow. Scale them.")
        self.n += len(block)
        self.energy += energy
        return block


# ---- which way -----------------------------------------------------------------------------------------------------
def _factor(source: _Source, root, tolerance, n_modes, method, tally: _Tally) -> tuple[Factored, str]:
    """Decompose, by the method asked for or the most accurate one that fits in memory."""
    in_pieces = map(tally.count, source.blocks())
    if method is None:
        method = "incremental" if source.array is None and source.n_values > _SHORT else "svd"
    if method == "incremental":
        # a count of modes says nothing of what may be lost: keep some more, and tell what it was
        budget = Budget((_FINER * tolerance) ** 2) if tolerance else Budget(0.0, most=4 * n_modes + 20)
        return incremental(in_pieces, root, budget), method
    if source.array is None and source.n_values <= _SHORT:
        return short(in_pieces, source.n_values, root), method
    rows = source.whole()
    for part in slices(len(rows), max(1, _BLOCK // source.n_values)):
        tally.count(rows[part])
    if tally.energy == 0 or len(rows) < 2:
        return Factored(np.zeros(1), 0.0, lambda d: np.zeros((source.n_values, d))), method
    return direct(rows, root), method


def _count(found: Factored, tolerance: float | None, n_modes: int | None) -> int:
    """Number of modes: as few as the tolerance allows, never more than the rank."""
    s = found.singular_values
    rank = max(1, int(np.count_nonzero(s > len(s) * np.finfo(float).eps * s[0])))
    if tolerance is None:
        return min(n_modes, rank)  # type: ignore[type-var]
    tail = np.cumsum([found.lost_energy, *s[::-1] ** 2])[::-1]
    return max(1, min(int(np.count_nonzero(tail > tolerance**2 * tail[0])), rank))


def _warn(found: Factored, method: str, tolerance, n_modes, d: int, n: int, n_values: int) -> None:
    s, messages = found.singular_values, []
    if n_modes is not None and d < n_modes:
        messages.append(f"n_modes={n_modes}, but the snapshots span {d} directions only: the basis has {d} modes.")
    turned = found.lost_energy / s[d - 1] ** 2
    if method == "incremental" and turned > _TURNED:
        messages.append(
            f'method="incremental" dropped energy on the way that turns the last modes by about {min(turned, 1):.0e}. '
            'Ask for more modes, or give a tolerance, or use method="svd".'
        )
    if tolerance is not None and 2 * d > min(n, n_values):
        what = f"{n} snapshots" if n <= n_values else f"{n_values} values"
        half = np.sqrt(
            (found.lost_energy + np.sum(s[min(n, n_values) // 2 :] ** 2)) / (found.lost_energy + np.sum(s**2))
        )
        needs = f"tolerance={tolerance:g} needs {d} modes of {what}"
        if half > _SLOW:
            messages.append(
                f"{needs}, and half as many leave {half:.1e}: the singular values decay too slowly to reduce. Use a looser "
                "tolerance or a smaller range of parameters; if d keeps growing with more snapshots, solutions lie near no "
                "small linear space and a nonlinear map is needed."
            )
        elif n <= n_values:
            messages.append(
                f"{needs}: the singular values decay, to {half:.1e} with half as many, but so few snapshots may not resolve "
                "the tolerance. Use more snapshots, or a looser tolerance."
            )
    for message in messages:
        warnings.warn(message, ParasolWarning, stacklevel=3)


# ---- what else the basis knows -------------------------------------------------------------------------------------
def _hidden_modes(source: _Source, basis: Basis) -> np.ndarray:
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
    source = _Source(held_out, "held_out")
    if source.n_values != basis.n_values:
        raise InputError(f"held_out has {source.n_values} values a row, the snapshots have {basis.n_values}.")
    errors = [basis.projection_errors(check_finite(block, "held_out")) for block in source.blocks()]
    if not errors:
        raise InputError("held_out is empty. Give snapshots that were not used, or leave it out.")
    return float(np.mean(np.concatenate(errors)))
