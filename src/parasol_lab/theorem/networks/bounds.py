"""How large the theorem's networks can become: bounds on depth and weights, with every constant written out.

docs/theorem.md holds the proofs. Notation: n = `n_modes`, N = `n_rows`, l = `n_factors`, and logarithms to base 2.

`kind` names a bound:

- "theorem": the paper's statement; its constants are not printed there, these are the ones we can prove;
- "counting": the same network, counted exactly; l² instead of 2^l;
- "shared": powers computed once and shared; l instead of l²;
- "kutyniok": Kutyniok, Petersen, Raslan and Schneider (2022) sum the powers one by one; their exponents, our constants;
- "requ": rectified quadratic units (Lei, Shi and Zeng 2022) multiply exactly; their exponents, our constants.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import floor, log1p, log2, sqrt

from parasol.checks import check_choice, check_count, check_positive
from parasol.errors import InputError
from parasol_lab.theorem.networks.inverse import n_factors

KINDS = ("theorem", "counting", "shared", "kutyniok", "requ")
LARGEST_ACCURACY = 0.25  # below it log2(log2(1/ε)) > 1, and every product network has at least one level


@dataclass(frozen=True)
class SizeBound:
    """A network of this kind has at most `depth` layers and at most `n_weights` non-zero weights and biases."""

    depth: int
    n_weights: int


@dataclass(frozen=True)
class Accuracies:
    """Who may err by how much so that the coefficients err by at most `accuracy` (the ε-chain of the proof).

    With A = I − λ BᵀB, ||A||₂ ≤ 1 − 2 `delta` before and ≤ 1 − `delta` after the errors in B and in the product.
    """

    scale: float  # λ
    delta: float  # of the network that inverts
    operator: float  # ε₁, of B in Bᵀf
    load: float  # ε₂, of f
    moments: float  # ε₃, of the product Bᵀf
    inverse: float  # ε₄, of (BᵀB)⁻¹
    coefficients: float  # ε₅, of the last product
    gram_operator: float  # ε₄,₁, of B in BᵀB
    gram: float  # ε₄,₂, of the product BᵀB
    neumann: float  # ε₄,₃, of the network that inverts


def accuracies(alpha: float, beta: float, gamma: float, accuracy: float, *, relaxation: float = 2.0) -> Accuracies:
    """Return the ε-chain for β ≤ σ(B) ≤ α, ||f||₂ ≤ γ, with λ = `relaxation` / (α² + β²); the paper has relaxation 1.

    >>> chain = accuracies(2.0, 1.0, 1.0, 0.01)
    >>> chain.scale, chain.delta, chain.neumann
    (0.4, 0.2, 0.0010416666666666667)
    """
    alpha, beta, gamma = (check_positive(v, n) for v, n in ((alpha, "alpha"), (beta, "beta"), (gamma, "gamma")))
    if beta >= alpha:
        raise InputError(f"beta={beta} must lie below alpha={alpha}: singular values lie between them.")
    accuracy = _check_accuracy(accuracy)
    if not 0 < relaxation <= 2 * (1 + 1e-12):  # a caller may have multiplied and divided by α² + β²
        raise InputError(f"relaxation must lie in (0, 2], got {relaxation}. 2 is best, the paper has 1.")
    scale = relaxation / (alpha**2 + beta**2)
    # the paper forgets the caps at 1/4: its lemmas hold for accuracies below it only
    inverse = min(accuracy / (6 * alpha * gamma), LARGEST_ACCURACY)
    both = (beta * sqrt(accuracy) / 4, sqrt(alpha * gamma) / 2)
    return Accuracies(
        scale=scale,
        delta=scale * beta**2 / 2,
        operator=min(accuracy * beta**2 / (12 * gamma), alpha / 4, *both),
        load=min(accuracy * beta**2 / (12 * alpha), gamma / 4, *both),
        moments=min(accuracy * beta**2 / 12, alpha * gamma / 4, LARGEST_ACCURACY),
        inverse=inverse,
        coefficients=accuracy / 3,
        gram_operator=min(
            inverse * beta**4 / (24 * alpha), beta**2 * sqrt(inverse) / 4, beta**2 / (12 * alpha), beta / 3
        ),
        gram=min(inverse * beta**4 / 12, beta**2 / 6, LARGEST_ACCURACY),
        neumann=min(inverse / (2 * scale), LARGEST_ACCURACY),
    )


@dataclass(frozen=True)
class _Product:
    """A (m × n) times B (n × k), ||A||₂ ≤ z_a and ||B||₂ ≤ z_b."""

    m: int
    n: int
    k: int
    accuracy: float
    z_a: float
    z_b: float

    def levels(self) -> float:
        """The levels ⌈½ log2(z_a z_b n √(mk) / ε)⌉ − 1 ≥ 1 of its sawteeth are at most this."""
        return max(1.0, log2(self.z_a * self.z_b * self.n * sqrt(self.m * self.k) / self.accuracy) / 2)

    def by_lemma(self) -> SizeBound:
        """The paper's lemma, L ≤ 1.5 x and M ≤ 14 mnk x, x = log2(1/ε) + log2(n √(mk)) + log2 max(1, Z)."""
        x = log2(max(1.0, self.z_a, self.z_b) * self.n * sqrt(self.m * self.k) / _check_accuracy(self.accuracy))
        return _bound(1.5 * x, 14 * self.m * self.n * self.k * x)


def matrix_product_bound(
    m: int, n: int, k: int, *, accuracy: float, z_a: float = 1.0, z_b: float = 1.0, kind: str = "counting"
) -> SizeBound:
    """Bound the network for A B, A (m × n) and B (n × k) with ||A||₂ ≤ z_a, ||B||₂ ≤ z_b, to `accuracy` in ||·||₂.

    "counting": lev ≤ ½ log2(z_a z_b n √(mk) / ε), L = lev + 2, M = mnk (14 lev + 8). "theorem": the paper's lemma,
    L ≤ 1.5 x, M ≤ 14 mnk x with x = log2(1/ε) + log2(n √(mk)) + log2 max(1, z_a, z_b).

    >>> matrix_product_bound(1, 1, 1, accuracy=4**-5), matrix_product_bound(1, 1, 1, accuracy=4**-5, kind="theorem")
    (SizeBound(depth=7, n_weights=78), SizeBound(depth=15, n_weights=140))
    """
    check_choice(kind, ("counting", "theorem"), "kind")
    m, n, k = (check_count(v, name) for v, name in ((m, "m"), (n, "n"), (k, "k")))
    numbers = (check_positive(v, name) for v, name in ((accuracy, "accuracy"), (z_a, "z_a"), (z_b, "z_b")))
    part = _Product(m, n, k, *numbers)
    if kind == "theorem":
        return part.by_lemma()
    return _bound(part.levels() + 2, m * n * k * (14 * part.levels() + 8))


def power_bound(n: int, doublings: int, *, accuracy: float) -> SizeBound:
    """Bound the network for A^(2^j), j = `doublings`, ||A||₂ < 1, by repeated squaring.

    L ≤ j (½ log2(1/ε) + log2 n + j/2 + 2.6),  M ≤ n³ j (7 log2(1/ε) + 14 log2 n + 7 j + 31).
    """
    n, j, digits = check_count(n, "n"), check_count(doublings, "doublings"), -log2(_check_accuracy(accuracy))
    size = log2(n)
    return _bound(j * (digits / 2 + size + j / 2 + 2.6), n**3 * j * (7 * digits + 14 * size + 7 * j + 31))


def inverse_bound(n: int, delta: float, accuracy: float, *, kind: str = "shared") -> SizeBound:
    """Bound the network for (I − A)⁻¹, ||A||₂ ≤ 1 − `delta`, to `accuracy` in ||·||₂.

    >>> inverse_bound(5, 0.05, 0.01), inverse_bound(5, 0.05, 0.01, kind="counting").n_weights
    (SizeBound(depth=124, n_weights=431841), 1430962)
    """
    n, accuracy = check_count(n, "n"), _check_accuracy(accuracy)
    check_choice(kind, KINDS, "kind")
    if not 0 < delta < 1:
        raise InputError(f"delta must lie in (0, 1), got {delta}. It is the gap between ||A||₂ and 1.")
    steps = n_factors(delta, accuracy)
    digits, gap, size = -log2(accuracy), -log2(delta), log2(n)
    x = digits + gap + size + steps
    if kind == "theorem":
        return _bound(3 * steps * x, 43 * 2**steps * n**2 * (n + steps) * x)
    if kind == "kutyniok":
        terms = max(2.0, log2(delta * accuracy / 2) * log1p(1) / log1p(-delta))  # powers in the plain Neumann series
        y = digits + log2(terms) + size
        return _bound(5 * log2(terms) * y, 23 * terms * log2(terms) ** 2 * n**3 * y)
    if kind == "requ":
        return _bound(2 * steps, 24 * steps * (steps + 1) * n**3 + 40 * steps**2 * n**2)
    if steps == 1:  # I + A: one layer
        return SizeBound(1, n**2 + n)
    if kind == "shared":
        levels = digits / 2 + gap + size + log2(steps) / 2 + 2.1
        return _bound(steps * (levels + 2), 2 * steps * n**3 * (14 * levels + 26))
    depth = digits / 2 + gap + size + 1.17 * steps + 5  # per doubling
    powers = n**3 * steps**2 * (3.5 * digits + 3.5 * gap + 7 * size + 8.2 * steps + 19)
    products = n**3 * steps * (7 * digits + 14 * gap + 14 * size + 8.2 * steps + 73)
    return _bound(steps * depth, powers + products + n**2 * steps**2 * depth + 2 * n**2)


def map_bound(
    kind: str,
    *,
    n_modes: int,
    n_rows: int,
    alpha: float,
    beta: float,
    gamma: float,
    accuracy: float,
    operator: SizeBound,
    load: SizeBound,
) -> SizeBound:
    """Bound the network μ ↦ c_μ = (BᵀB)⁻¹ Bᵀ f for β ≤ σ(B_μ) ≤ α and ||f_μ||₂ ≤ γ, to `accuracy` (absolute) in ||·||₂.

    `operator` and `load` bound the networks μ ↦ B_μ (N × n) and μ ↦ f_μ (N) at the accuracies of the ε-chain.
    """
    check_choice(kind, KINDS, "kind")
    n, rows = check_count(n_modes, "n_modes"), check_count(n_rows, "n_rows")
    if rows < n:
        raise InputError(f"n_rows={rows} is below n_modes={n}: B cannot have full column rank. Use fewer modes.")
    chain = accuracies(alpha, beta, gamma, accuracy, relaxation=2 if kind in ("shared", "requ") else 1)
    inverse = inverse_bound(n, chain.delta, chain.neumann, kind=kind)
    gram = _Product(n, rows, n, chain.gram, alpha + chain.gram_operator, alpha + chain.gram_operator)
    moments = _Product(n, rows, 1, chain.moments, alpha + chain.operator, gamma + chain.load)
    last = _Product(n, n, 1, chain.coefficients, chain.inverse + beta**-2, 2 * alpha * gamma)
    if kind != "shared":  # the paper bounds both factors by one number, the sum
        moments, last = (replace(part, z_a=part.z_a + part.z_b, z_b=part.z_a + part.z_b) for part in (moments, last))
    if kind in ("theorem", "kutyniok"):
        products = [part.by_lemma() for part in (gram, moments, last)]
        return _compose_by_lemmas(n, rows, inverse, products, operator, load)
    if kind == "requ":
        return _compose_exact_products(n, rows, inverse, operator, load)
    levels = [part.levels() for part in (gram, moments, last)]
    steps = n_factors(chain.delta, chain.neumann)
    first = 8 * n**3 * (1 if kind == "shared" else steps) + 2 * n**2  # weights in the first layer of the inverse
    return _compose_by_counting(n, rows, inverse, first, levels, operator, load)


def _compose_by_lemmas(n, rows, inverse, products, operator, load) -> SizeBound:
    """The last display of the paper's proof before its constants are hidden; 32 M(B) where it prints 8."""
    gram, moments, last = products
    deepest = max(operator.depth, load.depth)
    depth = inverse.depth + gram.depth + operator.depth
    weights = 2 * inverse.n_weights + 4 * gram.n_weights + 8 * operator.n_weights + 2 * n
    return _bound(
        last.depth + depth + moments.depth + operator.depth + load.depth,
        2 * last.n_weights
        + 4 * weights
        + 8 * moments.n_weights
        + 16 * (operator.n_weights + load.n_weights)
        + 32 * (rows * n + rows) * deepest
        + 8 * (n**2 + n) * max(depth, moments.depth + deepest),
    )


def _compose_by_counting(n, rows, inverse, first, levels, operator, load) -> SizeBound:
    """Every sparse concatenation adds the first layer after it and the last layer before it once, and no more."""
    gram, moments, last = levels
    deepest = max(operator.depth, load.depth)
    depth = last + 2 + max(inverse.depth + gram + 2 + operator.depth, moments + 2 + deepest)
    scalars = rows * n**2 * (14 * gram + 22) + rows * n * (14 * moments + 22) + n**2 * (14 * last + 16)
    gap = abs(operator.depth - load.depth)
    waiting = 2 * (rows * n if operator.depth < load.depth else rows) * (gap + 2) if gap else 0
    # of the two factors of the last product one waits for the other: Bᵀf (n values), else the inverse (n²)
    waiting += 2 * n * (depth + 2) + 2 * n**2 * (max(0, moments + load.depth - operator.depth) + 2)
    ends = first + 6 * n**3  # the first and the last layer of the inverse, counted twice
    return _bound(
        depth, inverse.n_weights + ends + scalars + 2 * n + 6 * operator.n_weights + 2 * load.n_weights + waiting
    )


def _compose_exact_products(n, rows, inverse, operator, load) -> SizeBound:
    """ReQU: a product has 2 layers and no error; kept values cost 20 per layer, connections 4 times a layer."""
    deepest = max(operator.depth, load.depth)
    depth = 2 + max(inverse.depth + 2 + operator.depth, 2 + deepest)
    waiting = 20 * n * depth + 40 * rows * n * abs(operator.depth - load.depth)
    products = 48 * (rows * n**2 + rows * n + n**2) + 16 * (n**2 + n)
    return _bound(depth, inverse.n_weights + products + waiting + 15 * operator.n_weights + 5 * load.n_weights)


def _bound(depth: float, n_weights: float) -> SizeBound:
    return SizeBound(floor(depth), floor(n_weights))  # counts are whole numbers


def _check_accuracy(accuracy: float) -> float:
    if not 0 < accuracy <= LARGEST_ACCURACY:
        raise InputError(f"accuracy must lie in (0, 1/4], got {accuracy}. The theorem holds there.")
    return float(accuracy)
