"""How many sawtooth levels each product of an inverse needs: the error of the whole, step by step, and the least levels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from parasol.errors import InputError
from parasol_lab.theorem.networks.products import MAX_LEVELS, levels_needed

_MOST_FACTORS = 80
_COUNTED_LEVELS = 500  # networks beyond float64 are counted too, to be compared with


@dataclass(frozen=True)
class Schedule:
    """Levels of the squares A_k of A_{k−1}, k = 1 … l−1, and of the products P_k of P_{k−1} (I + A_{k−1}), k = 2 … l.

    A_0 = A with ‖A‖₂ ≤ 1 − delta, P_1 = s_0 (I + A); P_l approximates (I − A)^-1 for (n, n) matrices. With s_k of `Doubling`,
    A_k = s_{k−1} A_{k−1}² − I/t_k and P_k = s_{k−1} P_{k−1} (I + A_{k−1}).
    """

    n: int
    delta: float
    squares: tuple[int, ...]
    products: tuple[int, ...]
    symmetric: bool = False  # A is, and only upper triangles are computed

    @property
    def n_factors(self) -> int:
        """l, the number of factors I + A_k."""
        return len(self.products) + 1

    @property
    def levels(self) -> int:
        """The most levels of one product."""
        return max([0, *self.squares, *self.products])

    @property
    def doublings(self) -> list[Doubling]:
        """What is known of A_0, …, A_l without errors."""
        return doublings(self.delta, self.n_factors, self.symmetric)


@dataclass(frozen=True)
class Doubling:
    """‖A_k‖₂ ≤ a and ‖P_k‖₂ ≤ p in exact arithmetic; A_{k+1} = s A_k² − shift I."""

    a: float
    p: float
    s: float
    shift: float


def doublings(delta: float, factors: int, symmetric: bool) -> list[Doubling]:
    """Norms and factors of A_0 … A_factors.

    Any A: s = 1, no shift, A_k = A^(2^k), P_k = Σ_{j<2^k} A^j. Symmetric A: A_k = T_{2^k}(A / (1 − δ)) / t_k with
    t_k = T_{2^k}(1 / (1 − δ)), so that T_2k = 2 T_k² − 1 gives s_k = 2 t_k² / t_{k+1} and the shift 1 / t_{k+1}; the norms are
    1 / t_k, which falls twice as fast in k. In both (I − A) P_k = I − A_k.
    """
    a, p, out = 1 - delta, 1.0, []
    for _ in range(factors + 1):
        s, shift, after = 1.0, 0.0, a * a
        if symmetric:  # t_{k+1} = 2 t² − 1
            shift = after = a * a / (2 - a * a)
            s = 2 / (2 - a * a)
        out.append(Doubling(a, p, s, shift))
        p = min(s * p * (1 + a), (1 + after) / delta) if symmetric else (1 - after) / delta
        a = after
    return out


@dataclass(frozen=True)
class Trace:
    """Norms that entries of the factors stay below, and what the result is off by at most."""

    squares: tuple[float, ...]  # of A_{k−1} as computed, where it is squared
    lefts: tuple[float, ...]  # of P_{k−1} as computed
    rights: tuple[float, ...]  # of I + A_{k−1} as computed
    bound: float  # of ‖(I − A)^-1 − P_l‖₂ in exact arithmetic
    contraction: float  # of ‖I − P_l (I − A)‖₂ in exact arithmetic: what a refinement of vectors multiplies errors by


def trace(schedule: Schedule) -> Trace:
    """The bounds of a schedule: e for what A_k is off by, d for what P_k is off by.

    e ← s (e (2a + e) + n² z² / 4^(m+1)) with a ≥ ‖A_k‖₂, z = a + e; d ← s (d (1 + a + e) + p e + n² z_P z_A / 4^(m+1)) with
    p ≥ ‖P_k‖₂. At the end the remainder ‖A_l‖₂ / δ is added, or ‖A_l‖₂ to (2 − δ) d, as ‖I − A‖₂ ≤ 2 − δ. Errors are measured in ‖·‖_F. Where only the
    upper triangle of P_{k−1} (I + A_{k−1}) is computed and mirrored, what came in may grow by √2, as the two factors commute
    only nearly; a square of a symmetric matrix is symmetric.

    >>> trace(Schedule(1, 0.5, (), ())).bound  # 1 + a instead of 1 / (1 − a), at a = 1/2
    0.5
    """
    n2, delta, factors = schedule.n**2, schedule.delta, schedule.n_factors
    e, d, mirror = 0.0, 0.0, math.sqrt(2) if schedule.symmetric else 1.0
    squares, lefts, rights = [], [], []
    exact = schedule.doublings
    for k in range(1, factors + 1):
        now = exact[k - 1]
        a, p = now.a, now.p
        after_d = 0.0
        if k > 1:
            lefts.append(p + d)
            rights.append(1 + a + e)
            own = n2 * lefts[-1] * rights[-1] * 4.0 ** -(schedule.products[k - 2] + 1)
            after_d = now.s * (mirror * (d * (1 + a + e) + p * e) + own)
        if k < factors:
            squares.append(a + e)
            e = now.s * (e * (2 * a + e) + n2 * squares[-1] ** 2 * 4.0 ** -(schedule.squares[k - 1] + 1))
        d = after_d
    a = exact[factors].a
    return Trace(tuple(squares), tuple(lefts), tuple(rights), d + a / delta, (2 - delta) * d + a)


@lru_cache(maxsize=512)
def least_levels(n: int, delta: float, accuracy: float, symmetric: bool = False, contraction: bool = False) -> Schedule:
    """The schedule with the fewest levels found for an accuracy; with more than MAX_LEVELS only if it has to be.

    The accuracy is that of the inverse, or with `contraction` that of its product with I − A.
    Every product may add the same to the final error, to first order; then levels are taken back while the bound allows it.
    """
    unit = 1.0 if contraction else delta
    remainders = [step.a / unit for step in doublings(delta, _MOST_FACTORS, symmetric)]
    fewest = max(1, next((k for k, rest in enumerate(remainders) if rest < accuracy), _MOST_FACTORS - 1))
    for most_levels in (MAX_LEVELS, _COUNTED_LEVELS):
        kind = (symmetric, contraction)
        tried = [_with_factors(n, delta, accuracy, factors, kind, most_levels) for factors in (fewest, fewest + 1)]
        schedules = [schedule for schedule in tried if schedule is not None]
        if schedules:
            return min(schedules, key=lambda s: sum(s.squares) + sum(s.products) + 2 * len(s.products))
    raise InputError(f"accuracy={accuracy:.3g} with delta={delta:.3g} is beyond counting. Use a larger accuracy.")


def smallest_accuracy(n: int, delta: float, symmetric: bool = False) -> float:
    """What float64 reaches: the bound with MAX_LEVELS everywhere and the best number of factors."""
    finest = [(MAX_LEVELS,) * k for k in range(60)]
    return 1.01 * min(trace(Schedule(n, delta, levels, levels, symmetric)).bound for levels in finest)


def _with_factors(
    n: int, delta: float, accuracy: float, factors: int, kind: tuple[bool, bool], most_levels: int
) -> Schedule | None:
    """The least levels with so many factors, None if that would take more than `most_levels`."""
    symmetric, contraction = kind
    exact = doublings(delta, factors, symmetric)
    rest = exact[factors].a
    budget = (accuracy - rest) / (2 - delta) if contraction else accuracy - rest / delta
    if budget <= 0:
        return None
    if factors == 1:
        return Schedule(n, delta, (), (), symmetric)
    # how much an error of A_k or P_k grows until the end, to first order
    mirror, of_p, of_a = math.sqrt(2) if symmetric else 1.0, [1.0] * (factors + 1), [0.0] * (factors + 1)
    for k in range(factors - 1, 0, -1):
        now = exact[k]
        of_p[k] = mirror * now.s * of_p[k + 1] * (1 + now.a)
        of_a[k] = now.s * (mirror * of_p[k + 1] * now.p + 2 * now.a * of_a[k + 1])
    share = budget / (2 * (factors - 1))
    before = dict(enumerate(exact, start=1))
    squares = {k: n * n * before[k].s * before[k].a ** 2 * of_a[k] for k in range(1, factors)}
    products = {k: n * n * before[k].s * before[k].p * (1 + before[k].a) * of_p[k] for k in range(2, factors + 1)}
    most = [*squares.values(), *products.values()]
    levels = [min(most_levels, levels_needed(m, share)) for m in most]

    def schedule(levels: list[int]) -> Schedule:
        return Schedule(n, delta, tuple(levels[: factors - 1]), tuple(levels[factors - 1 :]), symmetric)

    def error(levels: list[int]) -> float:
        bounds = trace(schedule(levels))
        return bounds.contraction if contraction else bounds.bound

    while error(levels) > accuracy:  # the terms of second order, or levels that were cut
        if min(levels) == most_levels:
            return None
        levels = [min(most_levels, m + 1) for m in levels]
    changed = True
    while changed:
        changed = False
        for j in sorted(range(len(levels)), key=lambda j: most[j] * 4.0 ** -levels[j]):
            fewer = [m - (i == j) for i, m in enumerate(levels)]
            if fewer[j] >= 1 and error(fewer) <= accuracy:
                levels, changed = fewer, True
    return schedule(levels)
