"""A norm in which the matrices of a parametric problem are nearly normal, so that norms of their changes are small."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

_STEPS = 20  # of Arnoldi's method, for a spectral radius that needs no more than a digit
_FEW, _MANY = 50, 150  # directions that are looked for at first, and then
_ROUNDS = 4  # each in the norm of those before it
_SHARE = 1 / 3  # of the sum: the maps of several parameters are much alike
_MOST = 250  # directions in all
_PASSES = 2  # of subspace iteration: the directions need not be exact

Product = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Stretch:
    """S = I + V diag(s − 1) Vᵀ with orthonormal columns of V and all s ≥ 1, so that ‖x‖ ≤ ‖S x‖.

    >>> stretch = Stretch(np.eye(3)[:, :1], np.array([10.0]))
    >>> stretch(np.ones(3)).tolist(), stretch.undone(stretch(np.ones(3))).tolist()
    ([10.0, 1.0, 1.0], [1.0, 1.0, 1.0])
    """

    directions: np.ndarray  # (n_unknowns, r)
    factors: np.ndarray  # (r,)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """S x for x (n_unknowns,) or (n_unknowns, m)."""
        return x + self.directions @ ((self.directions.T @ x).T * (self.factors - 1.0)).T

    def undone(self, x: np.ndarray) -> np.ndarray:
        """S⁻¹ x, likewise."""
        return x + self.directions @ ((self.directions.T @ x).T * (1.0 / self.factors - 1.0)).T


def nearly_normal(maps: Sequence[tuple[Product, Product]], free: np.ndarray) -> Stretch | None:
    """The norm ‖S x‖ in which maps K, given by their products with blocks and those of Kᵀ, are not far from their spectra.

    S² = I + Σ KᵀK / ρ(K)² with the spectral radii ρ, of which only the large eigenvalues are kept: in it ‖K‖ ≤ ρ wherever
    ‖K²‖ ≤ ρ², and matrices of stencils have large norms in a few directions only: wild values next to the boundary and at
    ghosts, which they map to smooth functions. Where that does not hold, the same again in the norm that was found.
    Whatever is found, S ≥ I, so a bound of ‖S e‖ is one of ‖e‖. None where no eigenvalue is large.
    """
    rng = np.random.default_rng([0, 4])  # not that of the norms, whose starts may not know the map
    radii = [spectral_radius(apply, free * rng.standard_normal(len(free))) for apply, _ in maps]
    pairs = [(pair, radius) for pair, radius in zip(maps, radii, strict=True) if radius > 0]
    out = None
    for _ in range(_ROUNDS if pairs else 0):
        large_part = _large_part(pairs, free, out, rng)
        if large_part is None or (out is not None and len(out.factors) + len(large_part.factors) > _MOST):
            break
        out = large_part if out is None else _product(large_part, out)
    return out


def _large_part(
    pairs: list[tuple[tuple[Product, Product], float]],
    free: np.ndarray,
    known: Stretch | None,
    rng: np.random.Generator,
) -> Stretch | None:
    """The large eigenvalues of I + Σ KᵀK / ρ² in a known norm, by subspace iteration."""

    def squared(x: np.ndarray) -> np.ndarray:
        inner = x if known is None else known.undone(x)
        out = np.zeros_like(x)
        for (apply, transposed), radius in pairs:
            image = apply(inner)
            out += transposed(image if known is None else known(known(image))) / radius**2
        return free[:, None] * (out if known is None else known.undone(out))

    n_free = int(np.count_nonzero(free))
    large = 1.5 * len(pairs)  # of a smooth function, every K makes no more than ρ
    for n in (_FEW, _MANY):
        block, _ = np.linalg.qr(free[:, None] * rng.standard_normal((len(free), min(n + 10, n_free))))
        for _ in range(_PASSES):
            block, _ = np.linalg.qr(squared(block))
        values, rotation = np.linalg.eigh(block.T @ squared(block))
        kept = np.flatnonzero(values > large)
        if len(kept) < n or n >= n_free:
            break
    if not len(kept):
        return None
    directions, _ = np.linalg.qr(free[:, None] * (block @ rotation[:, kept]))  # orthonormal to rounding, for S⁻¹
    return Stretch(directions, np.sqrt(1.0 + _SHARE * values[kept]))


def _product(second: Stretch, first: Stretch) -> Stretch:
    """The symmetric S with ‖S x‖ = ‖S₂ S₁ x‖."""
    basis, _ = np.linalg.qr(np.hstack([first.directions, second.directions]))
    square = first(second(second(first(basis))))
    values, rotation = np.linalg.eigh(basis.T @ square)
    directions, _ = np.linalg.qr(basis @ rotation)
    return Stretch(directions, np.sqrt(np.maximum(values, 1.0)))


def spectral_radius(apply: Product, start: np.ndarray) -> float:
    """The largest modulus of an eigenvalue, about, by Arnoldi's method.

    >>> round(spectral_radius(lambda x: np.array([[0.0, 9.0], [0.0, 2.0]]) @ x, np.ones(2)), 6)
    2.0
    """
    known, small = [start / np.linalg.norm(start)], np.zeros((_STEPS + 1, _STEPS))
    for i in range(_STEPS):
        new = apply(known[-1][:, None])[:, 0]
        size = np.linalg.norm(new)
        for _ in range(2):
            for j, vector in enumerate(known):
                part = vector @ new
                small[j, i] += part
                new = new - part * vector
        small[i + 1, i] = np.linalg.norm(new)
        if small[i + 1, i] <= 1e-12 * size:
            break
        known.append(new / small[i + 1, i])
    return float(np.max(np.abs(np.linalg.eigvals(small[: i + 1, : i + 1]))))
