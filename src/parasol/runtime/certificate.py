"""How far a reduced solution can be from the full one: lower bounds of smallest singular values, at any parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from parasol.checks import check_shape
from parasol.errors import InputError
from parasol.runtime.residuals import WeightedResidual

LEAST = 0.05  # a proven constant below this part of its anchor's is of no use
SAFETY = 0.5  # on constants that are not proven


@dataclass(frozen=True, eq=False)
class Constants:
    """For each parameter: the preconditioner to use, a lower bound of its smallest singular value, and whether that is proven."""

    choice: np.ndarray  # (n_samples,) int
    sigma: np.ndarray  # (n_samples,)
    rigorous: np.ndarray  # (n_samples,) bool


@dataclass(frozen=True, eq=False)
class Certificate:
    """Lower bounds of σ_min(D P_k A_μ D⁻¹) from anchors μ_j at which norms were computed.

    σ_min(P_k A_μ) ≥ σ_min(P_k A_j) (1 − ρ_j(μ)) with ρ_j(μ) = Σ_q |θ_q(μ) − θ_q(μ_j)| ||A_j⁻¹ A_q||, since
    P_k A_μ = P_k A_j (I + A_j⁻¹ (A_μ − A_j)). The best anchor counts; where none proves enough, `constants` guesses and
    calls it not rigorous.
    """

    thetas: np.ndarray  # (n_anchors, Q_A)
    norms: np.ndarray  # (n_anchors, Q_A): ||A_j⁻¹ A_q||, with a margin
    sigmas: np.ndarray  # (n_anchors, n_preconditioners): lower bounds of σ_min(P_k A_j), 0 where not computed
    exact: bool = True  # whether the affine form is the model's own

    def __post_init__(self):
        shape = check_shape(self.thetas, (None, None), "thetas").shape
        check_shape(self.norms, shape, "norms")
        n_choices = check_shape(self.sigmas, (shape[0], None), "sigmas").shape[1]
        if not shape[0] or not n_choices or np.any(self.norms < 0) or np.any(self.sigmas < 0):
            raise InputError("a certificate needs an anchor and a preconditioner, and norms that are not negative.")

    @property
    def n_anchors(self) -> int:
        """Number of parameters at which norms were computed."""
        return len(self.thetas)

    def distances(self, theta: np.ndarray) -> np.ndarray:
        """ρ_j(μ), (n_samples, n_anchors)."""
        out = np.zeros((len(theta), self.n_anchors))
        for q in np.flatnonzero(np.any(self.norms > 0, axis=0)):
            gap = theta[:, q, None] - self.thetas[:, q]
            np.abs(gap, out=gap)
            gap *= self.norms[:, q]
            out += gap
        return out

    def constants(self, theta: np.ndarray, residuals: Sequence[WeightedResidual] = ()) -> Constants:
        """WeightedResidual, constant and rigour for θ (n_samples, Q_A).

        Where no anchor proves enough, the constant is that of the nearest one, halved, divided by 1 + ρ, and no more than
        half the smallest singular value on the basis itself, for which the `residuals` are needed.
        """
        choice = np.argmax(self.sigmas, axis=1)  # the best of each anchor
        sigma = self.sigmas[np.arange(self.n_anchors), choice]
        distance = self.distances(theta)
        lower = sigma * (1.0 - distance)
        best = np.argmax(lower, axis=1)
        proven = lower[np.arange(len(theta)), best]
        rigorous = proven >= LEAST * sigma[best]
        out = Constants(choice[best], proven, rigorous & self.exact)
        open_cases = np.flatnonzero(~rigorous)
        if len(open_cases):
            nearest = np.argmin(distance[open_cases], axis=1)
            guess = SAFETY * sigma[nearest] / (1.0 + distance[open_cases, nearest])
            out.choice[open_cases] = choice[nearest]
            for k in np.unique(out.choice[open_cases]) if residuals else ():
                here = out.choice[open_cases] == k
                guess[here] = np.minimum(guess[here], SAFETY * residuals[k].smallest(theta[open_cases[here]]))
            out.sigma[open_cases] = guess
        return out
