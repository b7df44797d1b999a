"""Quantities of interest in coefficients: what is read off a field without lifting it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from parasol.checks import check_finite, check_shape
from parasol.errors import InputError
from parasol.runtime.products import MatrixProduct, Weights
from parasol.runtime.theta import Theta


@dataclass(frozen=True, eq=False)
class Mixing:
    """Quantities whose weights depend on parameters, as sums of functionals that do not:  ℓ_μ = Σ_p θ_p(μ) ℓ_p."""

    theta: Theta  # θ_p
    owners: np.ndarray  # (n_parts,): the quantity that each functional ℓ_p is a part of

    def __post_init__(self):
        check_shape(self.owners, (self.theta.n_terms,), "owners of the parts of quantities")
        if self.owners.dtype.kind != "i" or not np.array_equal(np.unique(self.owners), np.arange(self.n_quantities)):
            raise InputError("the parts of quantities belong to quantities counted from 0, each of which has some.")

    @property
    def n_quantities(self) -> int:
        """Number of quantities."""
        return int(self.owners.max(initial=-1)) + 1

    def __call__(self, mus: np.ndarray) -> np.ndarray:
        """What each part counts for each quantity at parameters (n_samples, n_parameters): (n_samples, n_quantities, n_parts)."""
        return self.theta(mus)[:, None, :] * (self.owners == np.arange(self.n_quantities)[:, None])


def mixed(mix: np.ndarray | None, parts: np.ndarray) -> np.ndarray:
    """Parts (n_samples, n_parts, ...) as quantities (n_samples, n_quantities, ...); as they are where `mix` is None.

    >>> mixed(np.array([[[2.0, 3.0]]]), np.array([[10.0, 1.0]]))
    array([[23.]])
    """
    return parts if mix is None else np.einsum("nqp,np...->nq...", mix, parts)


@dataclass(frozen=True, eq=False)
class Quantities:
    """Linear functionals ℓ of a field V c, at every stored time:  ℓ(V c) = (ℓᵀV) c.

    `norms` are those of ℓ in the dual of the basis' norm, so that |ℓ(u) − ℓ(V c)| ≤ norm · ||u − V c||. Where weights depend
    on parameters, rows and norms are those of the parts that `mixing` sums; the norm of a sum is at most that of the norms.

    >>> total = Quantities(("total",), np.array([[[2.0, 1.0]]]), np.array([[3.0]]))
    >>> total(np.array([[10.0, 1.0]]))
    array([[[21.]]])
    """

    names: tuple[str, ...]
    rows: np.ndarray  # (n_parts, n_times, n_modes): a part is a quantity where there is no mixing
    norms: np.ndarray  # (n_parts, n_times)
    mixing: Mixing | None = field(default=None, metadata={"optional": True})

    def __post_init__(self):
        if len(set(self.names)) != len(self.names) or not all(isinstance(name, str) and name for name in self.names):
            raise InputError(f"quantities are named {', '.join(map(str, self.names))}. Give each a name of its own.")
        if self.mixing is not None and self.mixing.n_quantities != len(self.names):
            raise InputError(f"{len(self.names)} quantities are mixed from parts of {self.mixing.n_quantities}.")
        n_parts = len(self.names if self.mixing is None else self.mixing.owners)
        rows = check_finite(check_shape(self.rows, (n_parts, None, None), "rows"), "rows")
        norms = check_finite(check_shape(self.norms, rows.shape[:2], "norms"), "norms")
        if np.any(norms < 0):
            raise InputError("a norm of the quantities is negative.")
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "norms", norms)

    def __call__(self, coefficients: np.ndarray, mus: np.ndarray | None = None) -> np.ndarray:
        """The quantities of coefficients (n_samples, n_modes) at parameters: (n_quantities, n_samples, n_times)."""
        return self._mixed(np.einsum("qtd,nd->qnt", self.rows, coefficients, dtype=float), self.weighting(mus))

    def bounds(self, errors: np.ndarray, mus: np.ndarray | None = None) -> np.ndarray:
        """How far they can be off where fields are off by `errors` (n_samples,): (n_quantities, n_samples, n_times)."""
        mix, n = self.weighting(mus), len(errors)
        norms = (
            self.norms[:, None, :] if mix is None else self._mixed(np.repeat(self.norms[:, None], n, 1), np.abs(mix))
        )
        norms, errors = np.broadcast_arrays(norms, np.asarray(errors, dtype=float)[None, :, None])
        return np.multiply(norms, errors, out=np.zeros(norms.shape), where=norms > 0)  # 0, not 0 · ∞

    def weighting(self, mus: np.ndarray | None) -> np.ndarray | None:
        """What each part counts for each quantity, (n_samples, n_quantities, n_parts); None where parts are quantities."""
        if self.mixing is None:
            return None
        if mus is None:
            raise InputError("the weights of these quantities depend on parameters. Give the parameters too.")
        return self.mixing(mus)

    def mixed(self, parts: np.ndarray, mus: np.ndarray) -> np.ndarray:
        """Parts (n_parts, n_samples, n_times) as quantities at these parameters: (n_quantities, n_samples, n_times)."""
        return self._mixed(parts, self.weighting(mus))

    @staticmethod
    def _mixed(parts: np.ndarray, mix: np.ndarray | None) -> np.ndarray:
        return parts if mix is None else mixed(mix, parts.swapaxes(0, 1)).swapaxes(0, 1)

    def at(self, times: np.ndarray) -> Quantities:
        """The same at some of the times, given by their places."""
        return replace(self, rows=self.rows[:, times], norms=self.norms[:, times])


def quantities_of(
    names: tuple[str, ...],
    weights: np.ndarray,
    modes: np.ndarray,
    products: Weights | None,
    mixing: Mixing | None = None,
    *,
    norms: np.ndarray | None = None,
) -> Quantities:
    """Quantities from `weights` (n_parts, n_values at one time), modes (n_values, n_modes) and inner product weights.

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
        return Quantities(tuple(names), rows, np.repeat(norms[:, None], n_times, axis=1), mixing)
    if isinstance(products, MatrixProduct):
        raise InputError("quantities in an inner product that is a matrix need their norms in it.")
    inverse = np.ones((n_times, n_here)) if products is None else 1.0 / products.reshape(n_times, n_here)
    return Quantities(tuple(names), rows, np.sqrt(weights**2 @ inverse.T), mixing)
