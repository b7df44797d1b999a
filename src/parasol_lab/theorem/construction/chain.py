"""How exact every part of the network has to be so that the whole is: the ε-chain of the theorem, corrected and sharpened."""

from __future__ import annotations

from dataclasses import dataclass, replace

from parasol.checks import check_choice
from parasol_lab.theorem.construction.stability import Stability
from parasol_lab.theorem.networks.bounds import accuracies

CHAINS = ("sharp", "paper")
_BELOW_QUARTER = 0.2499  # accuracies of an inverse lie in (0, 1/4)
_MOST_CONTRACTION = 0.5  # by which a refinement makes an error smaller
_OF_CONTRACTION = 0.8  # of the error allowed: what is left of the first error at the end, the rest is noise of products


@dataclass(frozen=True)
class Chain:
    """Accuracies of all parts, and bounds of what is multiplied.

    Â = I − λ BᵀB,  G = λ (I − Â)⁻¹,  h = Bᵀf,  y = G h.
    """

    relaxation: float  # λ
    delta: float  # ||Â|| ≤ 1 − delta, error of the product BᵀB included
    operator_in_gram: float  # error of B where it makes BᵀB; 0 where B is exact
    operator_in_right: float  # error of B where it makes Bᵀf
    load: float  # error of f
    gram: float  # accuracy of the product BᵀB
    inverse: float  # accuracy of (I − Â)⁻¹
    right: float  # accuracy of the product Bᵀf
    final: float  # accuracy of the product G h
    operator_bound: float  # of ||B|| in BᵀB
    right_bounds: tuple[float, float]  # of ||B|| and ||f|| in Bᵀf
    final_bounds: tuple[float, float]  # of ||G|| and ||h||
    refinements: tuple[Refinement, ...] = ()  # of y; with any, `inverse` is how large ||I − X (I − Â)|| may be, G = λ X


@dataclass(frozen=True)
class Refinement:
    """y ← y + G r with r = h − (y − Â y) / λ: accuracies of the products Â y and G r, bounds of ||y|| and ||r||."""

    image: float
    update: float
    vector_bound: float
    residual_bound: float


def error_chain(
    constants: Stability,
    accuracy: float,
    *,
    kind: str = "sharp",
    relaxation: float = 2.0,
    exact_operator: bool = True,
    exact_load: bool = True,
    refinements: int = 0,
) -> Chain:
    """Accuracies such that ||y − network|| ≤ `accuracy` (absolute); λ = relaxation / (α² + β²), relaxation 1 or 2.

    "paper" is the chain of the paper's proof with its minima completed. "sharp" makes the same parts but bounds the error
    of BᵀB where it acts, on y = G h with ||y|| ≤ γ/β, instead of on the matrix G: (G − G')h = G' (change of BᵀB) y. It may
    have `refinements` of the vector y after a coarse inverse.

    >>> one = Stability(1.0, 0.5, 1.0, 0.5, (), 1.0, 1)
    >>> sharp, paper = error_chain(one, 0.01), error_chain(one, 0.01, kind="paper", relaxation=1.0)
    >>> bool(sharp.gram > 10 * paper.gram), sharp.relaxation == 2 * paper.relaxation
    (True, True)
    """
    check_choice(kind, CHAINS, "chain")
    make = _sharp if kind == "sharp" else _paper
    factor = relaxation / (constants.alpha**2 + constants.beta**2)
    chain = make(constants, accuracy, factor, exact_operator, exact_load)
    return _refined(chain, constants, accuracy, refinements) if refinements else chain


def _paper(c: Stability, eps: float, relaxation: float, exact_operator: bool, exact_load: bool) -> Chain:
    """The chain of `networks.bounds`, where errors of an exact B or f are left out."""
    alpha, beta, gamma = c.alpha, c.beta, c.gamma
    parts = accuracies(alpha, beta, gamma, min(eps, _BELOW_QUARTER), relaxation=relaxation * (alpha**2 + beta**2))
    in_gram, first = (0.0, 0.0) if exact_operator else (parts.gram_operator, parts.operator)
    second = 0.0 if exact_load else parts.load
    both = alpha + gamma + first + second  # the paper has one bound for two factors
    last = parts.inverse + beta**-2 + alpha * second + (gamma + second) * first + parts.moments + alpha * gamma
    return Chain(
        relaxation=relaxation,
        delta=parts.delta,
        operator_in_gram=in_gram,
        operator_in_right=first,
        load=second,
        gram=parts.gram,
        inverse=min(parts.neumann, _BELOW_QUARTER),
        right=parts.moments,
        final=parts.coefficients,
        operator_bound=alpha + in_gram,
        right_bounds=(both, both),
        final_bounds=(last, last),
    )


def _sharp(c: Stability, eps: float, relaxation: float, exact_operator: bool, exact_load: bool) -> Chain:
    alpha, beta, gamma = c.alpha, c.beta, c.gamma
    ratio = eps / (4 * gamma / beta)  # S / (β² − S), what the error S of BᵀB does to y
    error = beta**2 * ratio / (1 + ratio)
    in_gram = 0.0 if exact_operator else min(error / (5 * alpha), alpha / 2)  # 2 α e + e² ≤ S / 2
    noise = eps * beta**2 / (8 * (1 + ratio))
    first = 0.0 if exact_operator else noise / (3 * 1.5 * gamma)
    second = 0.0 if exact_load else min(noise / (3 * alpha), gamma / 2)
    third = noise - alpha * second - (gamma + second) * first
    inverse = min(eps / (2 * relaxation * (alpha * gamma + noise)), _BELOW_QUARTER)
    return Chain(
        relaxation=relaxation,
        delta=relaxation * (beta**2 - error),
        operator_in_gram=in_gram,
        operator_in_right=first,
        load=second,
        gram=error if exact_operator else error / 2,
        inverse=inverse,
        right=third,
        final=eps / 8,
        operator_bound=alpha + in_gram,
        right_bounds=(alpha + first, gamma + second),
        final_bounds=(1 / (beta**2 - error) + relaxation * inverse, alpha * gamma + noise),
    )


def _refined(chain: Chain, c: Stability, eps: float, count: int) -> Chain:
    """The same chain with a coarse inverse X and so many refinements of y, for the 5/8 ε that both had together.

    With C = I − Â and y* = λ C⁻¹ h: if ||I − X C|| ≤ r, then ||y_0 − y*|| ≤ r ||y*|| + noise, each refinement multiplies the
    error by r and adds ||X|| times the noise of Â y and that of G r. Noise is allowed to be larger where more refinements follow.
    """
    lam, delta, norm = chain.relaxation, chain.delta, 2 - chain.delta  # ||C|| ≤ 2 − δ
    largest, part = c.gamma / c.beta + 3 / 8 * eps, 5 / 8 * eps  # of ||y*||
    rate = min(_MOST_CONTRACTION, (_OF_CONTRACTION * part / largest) ** (1 / (count + 1)))
    inverse = (1 + rate) / delta  # of ||X||
    noises = [(part - rate ** (count + 1) * largest) / (count + 1) / rate**left for left in range(count, -1, -1)]
    error, steps = rate * largest + noises[0], []
    for noise in noises[1:]:
        image, update = noise / (2 * inverse), noise / 2
        steps.append(Refinement(image, update, largest + error, (norm * error + image) / lam))
        error = rate * error + noise
    bounds = (lam * inverse, chain.final_bounds[1])
    return replace(chain, inverse=rate, final=noises[0], final_bounds=bounds, refinements=tuple(steps))
