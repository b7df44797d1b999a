"""Powers and inverses of matrices as ReLU networks: (I − A)^-1 ≈ Π_{i<l} (I + A^(2^i)) for ‖A‖₂ ≤ 1 − δ.

Two constructions. "paper": each factor has its own network for A^(2^i), with the tolerances of the paper's proof. "shared": the
state (P, A_i) is carried along, one step doing P ← P (I + A_i) and A_{i+1} ← A_i² side by side, each power computed once.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np
from scipy import sparse

from parasol.checks import check_choice, check_count, check_positive
from parasol.errors import InputError
from parasol.fitting import Network
from parasol_lab.theorem.networks.assembly import BUILD, COUNT, DEEP, Assembly
from parasol_lab.theorem.networks.products import (
    MAX_LEVELS,
    Wiring,
    levels_needed,
    matrix_wiring,
    packed,
    rounded_up,
    symmetric_wiring,
)
from parasol_lab.theorem.networks.schedule import Schedule, least_levels, smallest_accuracy, trace
from parasol_lab.theorem.networks.sizes import Size

POWERS = ("shared", "paper")


def power(n: int, exponent_log2: int, accuracy: float) -> Network:
    """vec A ↦ vec A^(2^j) within `accuracy` in ‖·‖_F, for ‖A‖₂ ≤ 1 and j = exponent_log2.

    Squares of squares: with A^(2^(j−1)) within ε/4 and its square within ε/4, ε/4 · (2 + ε/4) + ε/4 ≤ ε.

    >>> power(1, 2, 1e-3)([[0.5]]).round(3)
    array([[0.063]])
    """
    steps = _checked_power(n, exponent_log2, accuracy)
    excess = max([levels for levels, _ in steps], default=1) - MAX_LEVELS
    if excess > 0:
        raise InputError(
            f"accuracy={accuracy:.3g} of the power 2^{exponent_log2} needs {MAX_LEVELS + excess} levels, float64 resolves "
            f"{MAX_LEVELS}. Use accuracy >= {rounded_up(accuracy * 4.0**excess)}."
        )
    return _power(BUILD, n, steps)


def power_size(n: int, exponent_log2: int, accuracy: float) -> Size:
    """Size of `power`, also of one that float64 does not resolve: its levels exceed MAX_LEVELS."""
    return _power(COUNT, n, _checked_power(n, exponent_log2, accuracy))


def inverse(
    n: int,
    delta: float,
    accuracy: float,
    powers: str = "shared",
    *,
    symmetric: bool = False,
    contraction: bool = False,
    resolved: bool = True,
) -> Network:
    """vec A ↦ vec (I − A)^-1 within `accuracy` in ‖·‖₂, for (n, n) matrices with ‖A‖₂ ≤ 1 − delta.

    symmetric=True: A is symmetric and given by its upper triangle (as `gram` returns it), and so is the inverse; about half
    the weights. contraction=True: `accuracy` is that of ‖I − P (I − A)‖₂ for the P that comes out, which is coarser.
    resolved=False also builds what needs more levels than float64 resolves (see `product_network`).

    >>> inverse(1, 0.5, 1e-3)([[0.5], [-0.5]]).round(2)
    array([[2.  ],
           [0.67]])
    """
    return _inverse(BUILD if resolved else DEEP, n, delta, accuracy, powers, (symmetric, contraction))


def inverse_size(
    n: int,
    delta: float,
    accuracy: float,
    powers: str = "shared",
    *,
    symmetric: bool = False,
    contraction: bool = False,
) -> Size:
    """Size of `inverse`, also of one that float64 does not resolve: its levels exceed MAX_LEVELS."""
    return _inverse(COUNT, n, delta, accuracy, powers, (symmetric, contraction))


def n_factors(delta: float, accuracy: float) -> int:
    """The paper's l: factors that leave a remainder (1 − δ)^(2^l) / δ ≤ accuracy / 2.

    >>> n_factors(0.5, 0.1), n_factors(0.05, 0.01)
    (3, 8)
    """
    terms = math.log(0.5 * delta * accuracy) / math.log1p(-delta) + 1
    return max(1, math.ceil(math.log2(terms)))


def _inverse(make: Assembly, n: int, delta: float, accuracy: float, powers: str, kind: tuple[bool, bool]):
    check_count(n, "n")
    symmetric, contraction = kind
    check_choice(powers, POWERS, "powers")
    if check_positive(delta, "delta") >= 1:
        raise InputError(f"delta={delta} is not in (0, 1). It is how far ‖A‖₂ stays below 1.")
    accuracy = check_positive(accuracy, "accuracy")
    if powers == "shared":
        schedule = least_levels(n, float(delta), accuracy, symmetric, contraction)
        if make is BUILD and schedule.levels > MAX_LEVELS:
            least = smallest_accuracy(n, float(delta), symmetric)
            raise InputError(
                f"accuracy={accuracy:.3g} of the inverse of ({n}, {n}) matrices with delta={delta:.3g} needs "
                f"{schedule.levels} levels, float64 resolves {MAX_LEVELS}. Use accuracy >= {rounded_up(least)}, or a larger delta."
            )
        return _shared(make, schedule)
    if symmetric or contraction:
        raise InputError("the paper's construction does not use symmetry. Use powers='shared', or symmetric=False.")
    if accuracy >= 0.25:
        raise InputError(f"accuracy={accuracy} is not in (0, 1/4), where the paper's proof holds. Use less.")
    levels = _most_paper_levels(n, delta, accuracy)
    if make is BUILD and levels > MAX_LEVELS:
        raise InputError(
            f"accuracy={accuracy:.3g} with delta={delta:.3g} needs {levels} levels in the paper's construction, float64 "
            f"resolves {MAX_LEVELS}. Use {_reachable(n, delta, accuracy)}powers='shared'."
        )
    return _paper(make, n, delta, accuracy)


def _shared(make: Assembly, schedule: Schedule):
    """P_l of the state (P, A), l steps one after the other."""
    n, factors, z = schedule.n, schedule.n_factors, trace(schedule)
    width = n * (n + 1) // 2 if schedule.symmetric else n * n
    squared, times = _state_wirings(n, schedule.symmetric)
    eye = np.eye(n)[np.tril_indices(n)] if schedule.symmetric else np.eye(n).ravel()
    steps = schedule.doublings
    if factors == 1:
        return make.affine(steps[0].s * sparse.eye_array(width), steps[0].s * eye)

    def squared_once(k: int):
        """A_k of A_{k−1}."""
        step = make.products(
            _times(squared, steps[k - 1].s), schedule.squares[k - 1], z.squares[k - 1], z.squares[k - 1]
        )
        return make.add(step, bias=-steps[k - 1].shift * eye) if steps[k - 1].shift else step

    net = make.beside(make.affine(steps[0].s * sparse.eye_array(width), steps[0].s * eye), squared_once(1))
    for k in range(2, factors + 1):
        step = make.products(_times(times, steps[k - 1].s), schedule.products[k - 2], z.lefts[k - 2], z.rights[k - 2])
        if k < factors:
            square = squared_once(k)
            # the shorter one waits at its inputs, which are fewer numbers than its last layer has weights
            gap = step.depth - square.depth
            square = make.select(_waiting(make, square, width, gap), sparse.eye_array(width, 2 * width, k=width))
            step = make.beside(_waiting(make, step, 2 * width, -gap), square)
        net = make.join(step, net)
    return net


def _times(wiring: Wiring, factor: float) -> Wiring:
    """The same products, their sums multiplied by a factor."""
    return wiring if factor == 1 else replace(wiring, sums=sparse.csr_array(factor * wiring.sums))


@lru_cache(maxsize=8)
def _state_wirings(n: int, symmetric: bool) -> tuple[Wiring, Wiring]:
    """A² of A, and P (I + A) of the state (P, A), where the ones are biases."""
    if symmetric:
        half = n * (n + 1) // 2
        squared, times = symmetric_wiring(n), symmetric_wiring(n, right=half, n_inputs=2 * half)
        diagonal = half + packed(np.arange(n), np.arange(n))
    else:
        squared, times = _squared(n), matrix_wiring(n, n, n)
        diagonal = n * n + (n + 1) * np.arange(n)
    return squared, replace(times, shift=np.isin(times.right, diagonal).astype(float))


def _waiting(make: Assembly, net, n_inputs: int, layers: int):
    """The same map, so many layers later."""
    return make.join(net, make.identity(n_inputs, layers)) if layers > 0 else net


def _paper(make: Assembly, n: int, delta: float, accuracy: float):
    """Π_i = mult ⊙ P(Π_{i−1}, Φ¹ ⊙ Φ_{2^(i−1)}), all of them fed with vec A."""
    z = 3 + accuracy + 1 / delta
    net = _plus_identity(make, n)
    for i, (of_product, of_power) in enumerate(_paper_tolerances(delta, accuracy), start=2):
        power = _power(make, n, _power_steps(n, i - 1, of_power))
        factor = make.join(_plus_identity(make, n), power)
        times = make.products(matrix_wiring(n, n, n), levels_needed(n * n * z * z, of_product), z, z)
        net = make.join(times, make.beside(net, factor))
    return net


def _power(make: Assembly, n: int, steps: list[tuple[int, float]]):
    net = None
    for levels, z in steps:
        square = make.products(_squared(n), levels, z, z)
        net = square if net is None else make.join(square, net)
    return make.identity(n * n, 1) if net is None else net


def _power_steps(n: int, exponent_log2: int, accuracy: float) -> list[tuple[int, float]]:
    """Levels of each square and the bound of the entries it squares, first to last."""
    steps = []
    for j in range(exponent_log2, 0, -1):  # from the last square inwards; the first one has A itself
        allowed, z = (accuracy / 4, 1 + accuracy / 4) if j > 1 else (accuracy, 1.0)
        steps.append((levels_needed(n * n * z * z, allowed), z))
        accuracy /= 4
    return steps[::-1]


def _checked_power(n: int, exponent_log2: int, accuracy: float) -> list[tuple[int, float]]:
    n, accuracy = check_count(n, "n"), check_positive(accuracy, "accuracy")
    if isinstance(exponent_log2, bool) or not isinstance(exponent_log2, int | np.integer) or exponent_log2 < 0:
        raise InputError(f"exponent_log2 must be a whole number of at least 0, got {exponent_log2!r}.")
    if accuracy >= 1:
        raise InputError(f"accuracy={accuracy} is not in (0, 1). The power itself has a norm of at most 1.")
    return _power_steps(n, exponent_log2, accuracy)


def _paper_tolerances(delta: float, accuracy: float) -> list[tuple[float, float]]:
    """For i = 2, …, l: what the i-th product and the power in it may be off by."""
    factors = n_factors(delta, accuracy)
    shares = [5.0 ** (i - factors - 1) * accuracy / 2 for i in range(2, factors + 1)]
    return [(share, delta * share) for share in shares]


def _most_paper_levels(n: int, delta: float, accuracy: float) -> int:
    z, most = 3 + accuracy + 1 / delta, 1
    for i, (of_product, of_power) in enumerate(_paper_tolerances(delta, accuracy), start=2):
        steps = [levels for levels, _ in _power_steps(n, i - 1, of_power)]
        most = max(most, levels_needed(n * n * z * z, of_product), *steps)
    return most


def _reachable(n: int, delta: float, accuracy: float) -> str:
    """Advice: the least accuracy that is resolved, if there is one below 1/4."""
    while accuracy < 0.25 and _most_paper_levels(n, delta, accuracy) > MAX_LEVELS:
        accuracy *= 1.05
    return f"accuracy >= {rounded_up(accuracy)} or " if accuracy < 0.25 else ""


def _squared(n: int) -> Wiring:
    return matrix_wiring(n, n, n, right=0, n_inputs=n * n)


def _plus_identity(make: Assembly, n: int):
    return make.affine(sparse.eye_array(n * n), np.eye(n).ravel())
