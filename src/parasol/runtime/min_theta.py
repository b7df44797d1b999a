"""Error bounds of symmetric problems: every term is positive semidefinite, so that one factor bounds the whole sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from parasol.checks import check_finite, check_shape
from parasol.errors import InputError
from parasol.runtime.certificate import Constants
from parasol.runtime.residuals import WeightedResidual


@dataclass(frozen=True, eq=False)
class MinTheta:
    """||e|| ≤ C_k ||r||_{A_k⁻¹} / α_k(μ), where A_k = Σ_q θ_kq A_q, α_k(μ) = min_q θ_q(μ) / θ_kq and ||u|| ≤ C_k ||u||_{A_k}.

    With symmetric positive semidefinite A_q, A_μ ≥ α_k(μ) A_k; a term without energy has θ_kq = 0 and does not count. Residuals have to be measured in the norm of A_k⁻¹, or in C_k
    times that norm, with 1 for C_k here: then they have the unit of a solution, whatever the unit of the equation is. Of several references the one with the least ratio of largest
    and smallest θ_q(μ) / θ_kq counts.

    >>> constants = MinTheta(np.array([[1.0, 1.0]]), np.array([1.0])).constants(np.array([[0.5, 2.0], [-1.0, 1.0]]))
    >>> constants.sigma, constants.rigorous
    (array([0.5, 0. ]), array([ True, False]))
    """

    thetas: np.ndarray  # (n_references, Q_A), positive; 0 for terms that do not count
    embeddings: np.ndarray  # (n_references,): the C_k, or 1 where residuals are multiplied by them

    def __post_init__(self):
        n = check_finite(check_shape(self.thetas, (None, None), "thetas"), "thetas").shape[0]
        check_finite(check_shape(self.embeddings, (n,), "embeddings"), "embeddings")
        counted = self.thetas > 0
        if not n or np.any(self.thetas < 0) or not counted[0].any() or np.any(counted != counted[0]):
            raise InputError("the references of a bound by the least theta are positive, for the same terms.")
        if np.any(self.embeddings <= 0):
            raise InputError("the constants of a bound by the least theta are positive.")

    @property
    def n_anchors(self) -> int:
        """Number of references."""
        return len(self.thetas)

    @property
    def sigmas(self) -> np.ndarray:
        """(n_references, n_references): each has a preconditioner of its own."""
        return np.eye(len(self.thetas))

    def choice(self, theta: np.ndarray) -> np.ndarray:
        """The reference for θ (n_samples, Q_A), (n_samples,)."""
        ratio = self._ratios(theta)
        least, most = ratio.min(axis=2), ratio.max(axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.argmin(np.where(least > 0, most / least, np.inf), axis=1)

    def _ratios(self, theta: np.ndarray) -> np.ndarray:
        counted = self.thetas[0] > 0
        return theta[:, None, counted] / self.thetas[:, counted]

    def constants(self, theta: np.ndarray, residuals: Sequence[WeightedResidual] = ()) -> Constants:
        """The reference for θ (n_samples, Q_A), α_k / C_k, and where it is positive."""
        choice, least = self.choice(theta), self._ratios(theta).min(axis=2)
        alpha = least[np.arange(len(theta)), choice]
        sigma = np.maximum(alpha, 0.0) / self.embeddings[choice]
        return Constants(choice, sigma, alpha > 0, np.ones(len(theta)))
