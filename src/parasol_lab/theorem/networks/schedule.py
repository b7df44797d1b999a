"""How many sawtooth levels each product of an inverse needs: the error of the whole, step by step, and the least levels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from parasol.errors import InputError
from parasol_lab.theorem.networks.products import MAX_LEVELS, levels_needed

_COUNTED_LEVELS = 500  # networks beyond float64 are counted too, to be compared with


@dataclass(frozen=True)
class Schedule:
    """Levels of the squares A_k = A_{k−1}², k = 1 … l−1, and of the products P_k = P_{k−1} (I + A_{k−1}), k = 2 … l.

    A_0 = A with ‖A‖₂ ≤ 1 − delta, P_1 = I + A; P_l approximates (I − A)^-1 for (n, n) matrices.
    """

    n: int
    delta: float
    squares: tuple[int, ...]
    products: tuple[int, ...]
    symmetric: bool = False  # A is, and only upper triangles are computed

    @property
    def n_factors(self) -> int:
        """l, the number of factors I + A^(2^i)."""
        return len(self.products) + 1

    @property
    def levels(self) -> int:
        """The most levels of one product."""
        return max([0, *self.squares, *self.products])


@dataclass(frozen=True)
class Trace:
    """Norms that entries of the factors stay below, and what the result is off by at most."""

    squares: tuple[float, ...]  # of A_{k−1} as computed, where it is squared
    lefts: tuple[float, ...]  # of P_{k−1} as computed
    rights: tuple[float, ...]  # of I + A_{k−1} as computed
    bound: float  # of ‖(I − A)^-1 − P_l‖₂ in exact arithmetic


def trace(schedule: Schedule) -> Trace:
    """The bounds of a schedule: e for what A_k is off by, d for what P_k is off by.

    e ← e (2a + e) + n² z² / 4^(m+1) with a = (1 − δ)^(2^k), z = a + e; d ← d (1 + a + e) + p e + n² z_P z_A / 4^(m+1) with
    p = ‖P_k‖₂ ≤ (1 − a) / δ. At the end the remainder (1 − δ)^(2^l) / δ is added. Errors are measured in ‖·‖_F. Where only the
    upper triangle of P_{k−1} (I + A_{k−1}) is computed and mirrored, what came in may grow by √2, as the two factors commute
    only nearly; a square of a symmetric matrix is symmetric.

    >>> trace(Schedule(1, 0.5, (), ())).bound  # 1 + a instead of 1 / (1 − a), at a = 1/2
    0.5
    """
    n2, delta, factors = schedule.n**2, schedule.delta, schedule.n_factors
    a, e, d, mirror = 1 - delta, 0.0, 0.0, math.sqrt(2) if schedule.symmetric else 1.0
    squares, lefts, rights = [], [], []
    for k in range(1, factors + 1):
        p = (1 - a) / delta  # of P_{k−1}
        after_d = 0.0
        if k > 1:
            lefts.append(p + d)
            rights.append(1 + a + e)
            own = n2 * lefts[-1] * rights[-1] * 4.0 ** -(schedule.products[k - 2] + 1)
            after_d = mirror * (d * (1 + a + e) + p * e) + own
        if k < factors:
            squares.append(a + e)
            e = e * (2 * a + e) + n2 * squares[-1] ** 2 * 4.0 ** -(schedule.squares[k - 1] + 1)
        a, d = a * a, after_d
    return Trace(tuple(squares), tuple(lefts), tuple(rights), d + a / delta)


@lru_cache(maxsize=512)
def least_levels(n: int, delta: float, accuracy: float, symmetric: bool = False) -> Schedule:
    """The schedule with the fewest levels found for an accuracy; with more than MAX_LEVELS only if it has to be.

    Every product may add the same to the final error, to first order; then levels are taken back while the bound allows it.
    """
    fewest = max(1, math.ceil(math.log2(max(1.0, math.log(delta * accuracy) / math.log1p(-delta)))))
    for most_levels in (MAX_LEVELS, _COUNTED_LEVELS):
        tried = [_with_factors(n, delta, accuracy, factors, symmetric, most_levels) for factors in (fewest, fewest + 1)]
        found = [schedule for schedule in tried if schedule is not None]
        if found:
            return min(found, key=lambda s: sum(s.squares) + sum(s.products) + 2 * len(s.products))
    raise InputError(f"accuracy={accuracy:.3g} with delta={delta:.3g} is beyond counting. Use a larger accuracy.")


def smallest_accuracy(n: int, delta: float, symmetric: bool = False) -> float:
    """What float64 reaches: the bound with MAX_LEVELS everywhere and the best number of factors."""
    finest = [(MAX_LEVELS,) * k for k in range(60)]
    return 1.01 * min(trace(Schedule(n, delta, levels, levels, symmetric)).bound for levels in finest)


def _with_factors(
    n: int, delta: float, accuracy: float, factors: int, symmetric: bool, most_levels: int
) -> Schedule | None:
    """The least levels with so many factors, None if that would take more than `most_levels`."""
    norms = [(1 - delta) ** (2**k) for k in range(factors + 1)]
    budget = accuracy - norms[factors] / delta
    if budget <= 0:
        return None
    if factors == 1:
        return Schedule(n, delta, (), (), symmetric)
    # how much an error of A_k or P_k grows until the end, to first order
    mirror, of_p, of_a = math.sqrt(2) if symmetric else 1.0, [1.0] * (factors + 1), [0.0] * (factors + 1)
    for k in range(factors - 1, 0, -1):
        of_p[k] = mirror * of_p[k + 1] * (1 + norms[k])
        of_a[k] = mirror * of_p[k + 1] * (1 - norms[k]) / delta + 2 * norms[k] * of_a[k + 1]
    share = budget / (2 * (factors - 1))
    squares = {k: n * n * norms[k - 1] ** 2 * of_a[k] for k in range(1, factors)}
    products = {k: n * n * (1 - norms[k - 1]) / delta * (1 + norms[k - 1]) * of_p[k] for k in range(2, factors + 1)}
    most = [*squares.values(), *products.values()]
    levels = [min(most_levels, levels_needed(m, share)) for m in most]

    def schedule(levels: list[int]) -> Schedule:
        return Schedule(n, delta, tuple(levels[: factors - 1]), tuple(levels[factors - 1 :]), symmetric)

    while trace(schedule(levels)).bound > accuracy:  # the terms of second order, or levels that were cut
        if min(levels) == most_levels:
            return None
        levels = [min(most_levels, m + 1) for m in levels]
    changed = True
    while changed:
        changed = False
        for j in sorted(range(len(levels)), key=lambda j: most[j] * 4.0 ** -levels[j]):
            fewer = [m - (i == j) for i, m in enumerate(levels)]
            if fewer[j] >= 1 and trace(schedule(fewer)).bound <= accuracy:
                levels, changed = fewer, True
    return schedule(levels)
