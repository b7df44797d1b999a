"""A reduced basis: the few directions that solutions span, and the inner product in which they are orthonormal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from parasol.checks import check_count, check_finite, check_shape
from parasol.errors import InputError
from parasol.runtime.above import borrowed
from parasol.runtime.products import MatrixProduct, Weights, check_weights, energies, weighted, worst_energies

_MOST_DEFECT = 1e-8  # beyond it projections are visibly not projections
_BLOCK = 2**22  # numbers worked on at a time: 32 MB


@dataclass(frozen=True, eq=False, repr=False)
class Basis:
    """Modes V with Vᵀ X V = I, where X is the inner product: diag(weights), a matrix, or Euclidean without weights.

    `hidden` holds the rows of unknowns that users never see (ghost nodes), combined like the modes. `singular_values`
    are all that are known, often more than there are modes; a basis not made by singular values has none. The energy
    is Σ ||u||² over the snapshots, `lost_energy` the part of it that no known singular value accounts for.

    >>> basis = Basis(np.array([[1.0], [0.0], [0.0]]))
    >>> basis.project([3.0, 4.0, 0.0]), basis.lift([3.0]), basis.projection_errors([[3.0, 4.0, 0.0]])
    (array([3.]), array([3., 0., 0.]), array([0.8]))
    """

    modes: np.ndarray  # (n_values, n_modes)
    weights: np.ndarray | MatrixProduct | None = None  # (n_values,)
    hidden: np.ndarray = None  # type: ignore[assignment]  # (n_hidden, n_modes); none where left out
    singular_values: np.ndarray = None  # type: ignore[assignment]  # (n_known,); none where left out
    total_energy: float = float("nan")
    n_snapshots: int = 0
    method: str = "given"
    held_out_error: float | None = None  # mean relative projection error of snapshots that were not used
    lost_energy: float = 0.0

    def __post_init__(self):
        modes = check_finite(check_shape(self.modes, (None, None), "modes"), "modes")
        n_values, n_modes = modes.shape
        if n_modes > n_values:
            raise InputError(f"{n_modes} modes of {n_values} values cannot be orthonormal. Are they transposed?")
        weights = None if self.weights is None else check_weights(self.weights, n_values)
        hidden = np.empty((0, n_modes)) if self.hidden is None else check_shape(self.hidden, (None, n_modes), "hidden")
        known = np.empty(0) if self.singular_values is None else self.singular_values
        known = check_shape(known, (None,), "singular_values")
        defect = orthonormality_defect(modes, weights)
        if defect > _MOST_DEFECT:
            raise InputError(
                f"the modes are not orthonormal in their inner product: |VᵀXV − I| is {defect:.1e}. "
                "Use pod, or orthonormalise them (numpy.linalg.qr)."
            )
        for name, value in {"modes": modes, "weights": weights, "hidden": hidden, "singular_values": known}.items():
            if isinstance(
                value, np.ndarray
            ):  # a basis that changed afterwards would silently not fit what was computed with it
                value = value.view()
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        product = "" if self.weights is None else ", weighted"
        return f"<Basis {self.n_modes} modes of {self.n_values} values by {self.method}{product}>"

    def _repr_html_(self) -> str:
        return borrowed("html")(self)

    @property
    def n_modes(self) -> int:
        """Number of modes, d."""
        return self.modes.shape[1]

    @property
    def n_values(self) -> int:
        """Length of a solution."""
        return self.modes.shape[0]

    def project(self, solutions: ArrayLike) -> np.ndarray:
        """Coefficients Vᵀ X u, (n, n_modes) of (n, n_values); (n_modes,) of one solution."""
        solutions = self._check(solutions, self.n_values, "solutions")
        if self.weights is None:
            return solutions @ self.modes
        if solutions.ndim == 1:
            return weighted(solutions, self.weights) @ self.modes
        out = np.empty((len(solutions), self.n_modes))
        for rows in self._row_blocks(len(solutions)):
            out[rows] = weighted(solutions[rows], self.weights) @ self.modes
        return out

    def lift(self, coefficients: ArrayLike) -> np.ndarray:
        """Solutions V c, (n, n_values) of (n, n_modes); (n_values,) of one vector of coefficients."""
        return self._check(coefficients, self.n_modes, "coefficients") @ self.modes.T

    def norm(self, solutions: ArrayLike) -> np.ndarray:
        """||u|| in the basis' inner product, (n,) of (n, n_values); a number of one solution."""
        solutions = self._check(solutions, self.n_values, "solutions")
        return np.sqrt(energies(solutions, self.weights))

    def projection_errors(self, solutions: ArrayLike) -> np.ndarray:
        """||u − V Vᵀ X u|| / ||u||, (n,) of (n, n_values), the least any coefficients can leave; 0 where u is 0."""
        solutions = self._check(solutions, self.n_values, "solutions")
        if solutions.ndim == 1:
            return self.projection_errors(solutions[None])[0]
        out = np.empty(len(solutions))
        for rows in self._row_blocks(len(solutions)):
            block = solutions[rows]
            size = self.norm(block)
            gap = self.norm(block - self.lift(self.project(block)))
            out[rows] = gap / np.where(size > 0, size, 1.0)
        return out

    @cached_property
    def rounding(self) -> float:
        """The largest norm of a mode whose values have any signs: what rounding of values can do is so much larger."""
        return float(np.sqrt(np.max(worst_energies(self.modes.T, self.weights))))

    @property
    def energy_discarded(self) -> np.ndarray:
        """The relative error sqrt(Σ_{i>d} s_i² / Σ s_i²) of the snapshots for d = 0 ... n_known, (n_known + 1,).

        Summed from the small end, so that it is right down to rounding in s rather than in s².

        >>> Basis(np.eye(3)[:, :1], singular_values=np.array([4.0, 3.0])).energy_discarded
        array([1. , 0.6, 0. ])
        """
        if not len(self.singular_values):
            return np.ones(1)
        tail = np.cumsum([self.lost_energy, *self.singular_values[::-1] ** 2])[::-1]
        return np.sqrt(tail / tail[0])

    def truncated(self, n_modes: int) -> Basis:
        """The basis of the first `n_modes` modes. The error on held-out snapshots has to be measured anew."""
        if check_count(n_modes, "n_modes") > self.n_modes:
            raise InputError(f"n_modes={n_modes} is more than the {self.n_modes} modes of this basis. Ask for fewer.")
        if n_modes == self.n_modes:
            return self
        return replace(self, modes=self.modes[:, :n_modes], hidden=self.hidden[:, :n_modes], held_out_error=None)

    def _row_blocks(self, n: int) -> Iterator[slice]:
        return slices(n, max(1, _BLOCK // self.n_values))

    @staticmethod
    def _check(values: ArrayLike, length: int, name: str) -> np.ndarray:
        """One vector (length,) or several (n, length), as floats."""
        if np.ndim(values) == 1:
            return check_shape(values, (length,), name)
        return check_shape(values, (None, length), name)


def orthonormality_defect(modes: np.ndarray, weights: Weights | None) -> float:
    """Largest entry of |VᵀXV − I|."""
    n_values, n_modes = modes.shape
    if isinstance(weights, MatrixProduct):
        return float(np.max(np.abs(weighted(modes.T, weights) @ modes - np.eye(n_modes)), initial=0.0))
    gram = np.zeros((n_modes, n_modes))
    for rows in slices(n_values, max(1, _BLOCK // max(1, n_modes))):
        block = modes[rows]
        gram += block.T @ (block if weights is None else weights[rows, None] * block)
    return float(np.max(np.abs(gram - np.eye(n_modes)), initial=0.0))


def slices(n: int, length: int) -> Iterator[slice]:
    """0 ... n cut into slices of the given length, the last one shorter."""
    return (slice(start, min(start + length, n)) for start in range(0, n, length))
