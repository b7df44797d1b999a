"""How large a coarse inverse and a refined vector can become (Proposition D of docs/theorem.md), with all constants.

The network has C = I − Â (symmetric, ‖Â‖ ≤ 1 − δ, its upper triangle) and h from networks that are given, and computes y with
‖y − λ C⁻¹ h‖ ≤ 5/8 ε for ‖λ C⁻¹ h‖ ≤ Y, λ ‖h‖ ≤ 2.4 Y. Every refinement halves the error.
"""

from __future__ import annotations

from math import ceil, floor, log2

from parasol_lab.theorem.networks.bounds import SizeBound
from parasol_lab.theorem.networks.schedule import doublings
from parasol_lab.theorem.networks.sizes import Size

_MOST_DOUBLINGS = 200


def refinements_needed(ratio: float) -> int:
    """K = ⌈log2(2 Y/ε)⌉ − 1 for ratio = Y/ε: after the first vector and K refinements 2^−(K + 1) Y ≤ ε/2 is left.

    >>> refinements_needed(100.0)
    7
    """
    return max(1, ceil(log2(2 * ratio)) - 1)


def coarse_inverse_bound(n: int, delta: float) -> SizeBound:
    """Bound the network X of symmetric (n, n) matrices with ‖I − X C‖ ≤ 1/2: l is the least with t_l ≥ 4, at least 1.

    L ≤ l (Λ + 2),  M ≤ l n² (n + 1) (14 Λ + 26),  Λ = log n + 1.125 log(1/δ) + ½ log l + 3.2,  l < ½ log(1/δ) + 1.6 where l > 1.

    >>> coarse_inverse_bound(17, 1e-3).n_weights
    9459742
    """
    size, steps = log2(n), _factors(delta)
    if steps == 1:  # s_0 (I + Â), one layer
        return SizeBound(1, n * (n + 1) // 2 + n)
    levels = size - 1.125 * log2(delta) + log2(steps) / 2 + 3.2
    return SizeBound(floor(steps * (levels + 2)), floor(steps * n**2 * (n + 1) * (14 * levels + 26)))


def refined_bound(n: int, delta: float, ratio: float, *, remainder: Size, right: Size) -> SizeBound:
    """Bound the network of T y, T any (n, n) matrix, with ratio = Y/ε, `remainder` for Â and `right` for h.

    With K = `refinements_needed`, Λ = ½ (log(K + 1) + 1.5 log n + log(1/δ)) + 3.5 and s = n² + 3 n, the rest after X has at most
    n² (14 (2K + 1) Λ + 3.5 K (K + 1) + 44 K + 22) + s ((4K + 2) Λ + ½ K (K + 1) + 24 K + 8) + 16 n K + 4 n² weights.
    """
    count, s, w = refinements_needed(ratio), n * n + 3 * n, n * (n + 1) // 2
    inverse = coarse_inverse_bound(n, delta)
    levels = (log2(count + 1) + 1.5 * log2(n) - log2(delta)) / 2 + 3.5
    products = 14 * (2 * count + 1) * levels + 3.5 * count * (count + 1) + 44 * count + 22
    waiting = (4 * count + 2) * levels + count * (count + 1) / 2 + 24 * count + 8
    rest = n * n * products + s * waiting + 16 * n * count + 4 * n * n
    before = max(remainder.depth + inverse.depth, right.depth)
    # Â waits beside X; its network, that of h and both ends of X are joined; the one of X and h that is there first waits
    joined = 2 * remainder.n_weights + 2 * right.n_weights + 14 * n * w + 8 * w + 2 * w * (inverse.depth + 2)
    joined += 2 * n * (before - right.depth + 2) + 4 * w * (before - remainder.depth - inverse.depth + 2)
    depth = before + (2 * count + 1) * (levels + 2) + count * (count + 1) / 4 + 2 * count + 1
    return SizeBound(floor(depth), floor(inverse.n_weights + joined + rest))


def _factors(delta: float) -> int:
    """The least l ≥ 1 with t_l = T_{2^l}(1 / (1 − δ)) ≥ 4."""
    steps = doublings(delta, _MOST_DOUBLINGS, symmetric=True)
    return max(1, next(k for k, step in enumerate(steps) if step.a <= 0.25))
