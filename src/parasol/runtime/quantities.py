"""Quantities of interest in coefficients: what is read off a field without lifting it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parasol.checks import check_finite, check_shape
from parasol.errors import InputError
from parasol.runtime.products import MatrixProduct, Weights


@dataclass(frozen=True, eq=False)
class Quantities:
    """Linear functionals ℓ of a field V c, at every stored time:  ℓ(V c) = (ℓᵀV) c.

    `norms` are those of ℓ in the dual of the basis' norm, so that |ℓ(u) − ℓ(V c)| ≤ norm · ||u − V c||.

    >>> total = Quantities(("total",), np.array([[[2.0, 1.0]]]), np.array([[3.0]]))
    >>> total(np.array([[10.0, 1.0]]))
    array([[[21.]]])
    """

    names: tuple[str, ...]
    rows: np.ndarray  # (n_quantities, n_times, n_modes)
    norms: np.ndarray  # (n_quantities, n_times)

    def __post_init__(self):
        if len(set(self.names)) != len(self.names) or not all(isinstance(name, str) and name for name in self.names):
            raise InputError(f"quantities are named {', '.join(map(str, self.names))}. Give each a name of its own.")
        rows = check_finite(check_shape(self.rows, (len(self.names), None, None), "rows"), "rows")
        norms = check_finite(check_shape(self.norms, rows.shape[:2], "norms"), "norms")
        if np.any(norms < 0):
            raise InputError("a norm of the quantities is negative.")
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "norms", norms)

    def __call__(self, coefficients: np.ndarray) -> np.ndarray:
        """The quantities of coefficients (n_samples, n_modes): (n_quantities, n_samples, n_times)."""
        return np.einsum("qtd,nd->qnt", self.rows, coefficients, dtype=float)

    def bounds(self, errors: np.ndarray) -> np.ndarray:
        """How far they can be off where fields are off by `errors` (n_samples,): (n_quantities, n_samples, n_times)."""
        norms, errors = np.broadcast_arrays(self.norms[:, None, :], np.asarray(errors, dtype=float)[None, :, None])
        return np.multiply(norms, errors, out=np.zeros(norms.shape), where=norms > 0)  # 0, not 0 · ∞

    def at(self, times: np.ndarray) -> Quantities:
        """The same at some of the times, given by their places."""
        return Quantities(self.names, self.rows[:, times], self.norms[:, times])


def quantities_of(
    names: tuple[str, ...],
    weights: np.ndarray,
    modes: np.ndarray,
    products: Weights | None,
    *,
    norms: np.ndarray | None = None,
) -> Quantities:
    """Quantities from `weights` (n_quantities, n_values at one time), modes (n_values, n_modes) and inner product weights.

    Of an inner product that is a matrix, the `norms` (n_quantities,) of the quantities have to be known, (ℓᵀ X⁻¹ ℓ)^½.

    >>> two_times = quantities_of(("sum",), np.array([[1.0, 1.0]]), np.eye(4)[:, :3], None)
    >>> two_times.rows[0], two_times.norms.round(3)
    (array([[1., 1., 0.],
           [0., 0., 1.]]), array([[1.414, 1.414]]))
    """
    n_here = weights.shape[1]
    if not n_here or len(modes) % n_here:
        raise InputError(f"quantities of {n_here} values do not fit modes of {len(modes)} values.")
    n_times = len(modes) // n_here
    rows = np.einsum("qi,tid->qtd", weights, modes.reshape(n_times, n_here, -1), optimize=True)
    if norms is not None:
        return Quantities(tuple(names), rows, np.repeat(norms[:, None], n_times, axis=1))
    if isinstance(products, MatrixProduct):
        raise InputError("quantities in an inner product that is a matrix need their norms in it.")
    inverse = np.ones((n_times, n_here)) if products is None else 1.0 / products.reshape(n_times, n_here)
    return Quantities(tuple(names), rows, np.sqrt(weights**2 @ inverse.T))
