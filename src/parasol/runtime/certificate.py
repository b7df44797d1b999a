"""How far a reduced solution can be from the full one: lower bounds of smallest singular values, at any parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from parasol.checks import check_shape
from parasol.errors import InputError
from parasol.runtime.residuals import WeightedResidual

LEAST = 0.05  # a proven constant below this part of its anchor's is of no use
SAFETY = 0.5  # on constants that are not proven
_FEW_TERMS = 8  # beyond which A(μ) is split at s = 1 only


@dataclass(frozen=True, eq=False)
class Constants:
    """For each parameter: the preconditioner to use, a lower bound of its smallest singular value, and whether that is proven.

    `plain` is the part of 1/σ with which the residual counts in the norm of the error; the rest counts in the larger norm
    that the certificate is about, where it is about one.
    """

    choice: np.ndarray  # (n_samples,) int
    sigma: np.ndarray  # (n_samples,)
    rigorous: np.ndarray  # (n_samples,) bool
    plain: np.ndarray  # (n_samples,)


@dataclass(frozen=True, eq=False)
class Certificate:
    """Lower bounds of σ_min(S D P_k A_μ D⁻¹ S⁻¹) from anchors μ_j at which norms were computed.

    With K_q = A_j⁻¹ A_q, numbers c_q (`centres`), any s and δ_q = θ_q(μ) − s θ_q(μ_j):
    A_j⁻¹ A_μ = m + X with m = s + Σ δ_q c_q and ||X|| ≤ x = Σ |δ_q| ||K_q − c_q||. So σ_min(P_k A_μ) ≥ σ_min(P_k A_j) (|m| − x).
    The best anchor counts; where none proves enough, `constants` guesses and calls it not rigorous.

    Where P_k is A_j⁻¹ itself (`own`), e = ρ/m + (m + X)⁻¹ (−X) ρ/m for ρ = P_k r, so ||e|| ≤ (||ρ|| + y/(1 − y) ||Sρ||) / |m| with y = x/|m|:
    the larger norm of S counts with a part y only.
    """

    thetas: np.ndarray  # (n_anchors, Q_A)
    norms: np.ndarray  # (n_anchors, Q_A): ||K_q − c_q||, with a margin; 0 also where θ_q is constant
    sigmas: np.ndarray  # (n_anchors, n_preconditioners): lower bounds of σ_min(P_k A_j), 0 where not computed
    exact: bool = True  # whether the affine form is the model's own
    centres: np.ndarray | None = field(default=None, metadata={"optional": True})  # (n_anchors, Q_A); None: 0
    own: np.ndarray | None = field(default=None, metadata={"optional": True})  # (n_anchors,) preconditioner, or -1

    def __post_init__(self):
        shape = check_shape(self.thetas, (None, None), "thetas").shape
        check_shape(self.norms, shape, "norms")
        n_choices = check_shape(self.sigmas, (shape[0], None), "sigmas").shape[1]
        if self.centres is not None:
            check_shape(self.centres, shape, "centres")
        if self.own is not None:
            check_shape(self.own, shape[:1], "own")
        if not shape[0] or not n_choices or np.any(self.norms < 0) or np.any(self.sigmas < 0):
            raise InputError("a certificate needs an anchor and a preconditioner, and norms that are not negative.")

    @property
    def n_anchors(self) -> int:
        """Number of parameters at which norms were computed."""
        return len(self.thetas)

    @property
    def multiples(self) -> tuple[int, ...]:
        """The terms q at which A(μ) may be split into the multiple s = θ_q(μ) / θ_q(μ_j) of A_j and a rest; none but s = 1 where
        a norm is 0: it may belong to a constant coefficient, and then it was not computed."""
        if self.centres is None or np.any(self.norms == 0) or self.thetas.shape[1] > _FEW_TERMS:
            return ()
        return tuple(range(self.thetas.shape[1]))

    def changes(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """m and y = x/|m| for every anchor, (n_samples, n_anchors) each, with the s at which |m| − x is largest."""
        middle, spread = self._split(theta, 1.0)
        for q in self.multiples:
            # |m| − x is concave in s wherever m > 0, with corners at these s
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = theta[:, q, None] / self.thetas[:, q]
            ratio = np.where(np.isfinite(ratio) & (ratio > 0), ratio, 1.0)
            m, x = self._split(theta, ratio)
            better = np.abs(m) - x > np.abs(middle) - spread
            middle, spread = np.where(better, m, middle), np.where(better, x, spread)
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(middle == 0, np.inf, spread / np.abs(middle))
        return middle, part

    def _split(self, theta: np.ndarray, multiple: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
        middle, spread = np.zeros((2, len(theta), self.n_anchors))
        middle += multiple
        centred = False if self.centres is None else self.centres != 0
        for q in np.flatnonzero(np.any((self.norms > 0) | centred, axis=0)):
            gap = theta[:, q, None] - multiple * self.thetas[:, q]
            if self.centres is not None:
                middle += gap * self.centres[:, q]
            np.abs(gap, out=gap)
            gap *= self.norms[:, q]
            spread += gap
        return middle, spread

    def quality(self, theta: np.ndarray) -> np.ndarray:
        """How much the best anchor proves, between 0 and 1, (n_samples,): σ_min(P_k A_j) (1 − y); less than 0 for nothing."""
        return np.max(self.sigmas.max(axis=1) * (1.0 - self.changes(theta)[1]), axis=1)

    def choice(self, theta: np.ndarray) -> np.ndarray:
        """The preconditioner of `constants`, (n_samples,), by functions that other libraries have too."""
        choice = np.argmax(self.sigmas, axis=1)
        part = self.changes(theta)[1]
        best = np.argmax(self.sigmas[np.arange(self.n_anchors), choice] * (1.0 - part), axis=1)
        enough = np.take_along_axis(part, best[:, None], 1)[:, 0] <= 1.0 - LEAST
        return np.take_along_axis(choice, np.where(enough, best, np.argmin(part, axis=1)), 0)

    def constants(self, theta: np.ndarray, residuals: Sequence[WeightedResidual] = ()) -> Constants:
        """WeightedResidual, constant and rigour for θ (n_samples, Q_A).

        Where no anchor proves enough, the constant is that of the nearest one, halved, divided by 1 + y, and no more than
        half the smallest singular value on the basis itself, for which the `residuals` are needed.
        """
        choice = np.argmax(self.sigmas, axis=1)  # the best of each anchor
        sigma = self.sigmas[np.arange(self.n_anchors), choice]
        middle, part = self.changes(theta)
        lower = sigma * (1.0 - part)
        rows, best = np.arange(len(theta)), np.argmax(lower, axis=1)
        proven, left = lower[rows, best] * np.abs(middle[rows, best]), 1.0 - part[rows, best]
        rigorous = left >= LEAST
        plain = np.zeros(len(theta)) if self.own is None else np.where(self.own[best] == choice[best], left, 0.0)
        out = Constants(choice[best], proven, rigorous & self.exact, plain)
        open_cases = np.flatnonzero(~rigorous)
        if len(open_cases):
            nearest = np.argmin(part[open_cases], axis=1)
            guess = SAFETY * sigma[nearest] / (1.0 + part[open_cases, nearest])
            out.choice[open_cases] = choice[nearest]
            for k in np.unique(out.choice[open_cases]) if residuals else ():
                here = out.choice[open_cases] == k
                guess[here] = np.minimum(guess[here], SAFETY * residuals[k].smallest(theta[open_cases[here]]))
            out.sigma[open_cases] = guess
            out.plain[open_cases] = 0.0
        return out
