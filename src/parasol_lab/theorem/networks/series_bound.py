"""How large the Chebyshev construction can become: a bound from ellipses of analyticity, with all constants.

docs/theorem.md, section 8, holds the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import asinh, ceil, exp, log, log2, prod, tanh

from parasol_lab.theorem.networks.bounds import SizeBound


@dataclass(frozen=True)
class SeriesBound:
    """Degrees and levels of a series network, and its size at most."""

    degrees: tuple[int, ...]
    levels: int
    size: SizeBound


def series_bound(axes: Sequence[float], *, n_modes: int, largest: float, accuracy: float) -> SeriesBound:
    """Bound the network of a series of a function with ‖c‖ ≤ `largest` in ellipses with half minor axes b_j around [−1, 1]^p.

    `accuracy` is absolute, as `largest` is. ρ_j = b_j + √(1 + b_j²), so log ρ_j = asinh b_j.

    >>> series_bound([0.75], n_modes=1, largest=1.0, accuracy=0.01).degrees  # ρ = 2: half of 0.01 is left after 2^10 > 800
    (9,)
    """
    p, rates = len(axes), [asinh(b) for b in axes]
    total = largest / prod(tanh(rate / 2) for rate in rates)  # Σ_k of the bounds of ‖c_k‖
    rest = [4 * p * total / ((1 + exp(-rate)) * accuracy) for rate in rates]
    degrees = tuple(max(2, ceil(log(max(r, 1.0)) / rate) - 1) for r, rate in zip(rest, rates, strict=True))
    levels = max(1, ceil(log2(p * max(degrees) ** 2.1 * max(2.93 * total / accuracy, 11.8)) / 2))
    return SeriesBound(degrees, levels, tensor_bound(degrees, levels, n_modes))


def tensor_bound(degrees: Sequence[int], levels: int, n_modes: int) -> SizeBound:
    """Bound the network of all terms k_j ≤ degrees[j], each at least 2, whose squares all have so many levels."""
    p, m, terms = len(degrees), levels, prod(n + 1 for n in degrees)
    factors = terms - prod(degrees) if p > 1 else ceil(degrees[0] / 2) + 1  # terms that others are products of
    depth = (_doublings(max(degrees)) + _doublings(p)) * (m + 3) + 1
    waiting = 3 * (m + 3) * (_doublings(p) * factors + sum(n + _doublings(n) + 1 for n in degrees)) + p * (depth + 1)
    own = (7 * m + 6) * (terms + factors) + 5 * factors
    return SizeBound(depth, own + waiting + n_modes * (terms + 2 * factors + p + 1))


def _doublings(n: int) -> int:
    return ceil(log2(n)) if n > 1 else 0
