"""How exact every part of the network has to be so that the whole is: the ε-chain of the theorem, corrected and sharpened."""

from __future__ import annotations

from dataclasses import dataclass

from parasol.checks import check_choice
from parasol_lab.theorem.construction.stability import Stability
from parasol_lab.theorem.networks.bounds import accuracies

CHAINS = ("sharp", "paper")
_BELOW_QUARTER = 0.2499  # accuracies of an inverse lie in (0, 1/4)


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


def error_chain(
    constants: Stability,
    accuracy: float,
    *,
    kind: str = "sharp",
    relaxation: float = 2.0,
    exact_operator: bool = True,
    exact_load: bool = True,
) -> Chain:
    """Accuracies such that ||y − network|| ≤ `accuracy` (absolute); λ = relaxation / (α² + β²), relaxation 1 or 2.

    "paper" is the chain of the paper's proof with its minima completed. "sharp" makes the same parts but bounds the error
    of BᵀB where it acts, on y = G h with ||y|| ≤ γ/β, instead of on the matrix G: (G − G')h = G' (change of BᵀB) y.

    >>> one = Stability(1.0, 0.5, 1.0, 0.5, (), 1.0, 1)
    >>> sharp, paper = error_chain(one, 0.01), error_chain(one, 0.01, kind="paper", relaxation=1.0)
    >>> bool(sharp.gram > 10 * paper.gram), sharp.relaxation == 2 * paper.relaxation
    (True, True)
    """
    check_choice(kind, CHAINS, "chain")
    make = _sharp if kind == "sharp" else _paper
    return make(constants, accuracy, relaxation / (constants.alpha**2 + constants.beta**2), exact_operator, exact_load)


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
