"""A bound for answers learned from few samples, none of which could be kept aside: by fits that leave one out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parasol.checks import check_finite, check_shape
from parasol.errors import InputError
from parasol.runtime.program import StoredMap

LEAST = 1e-3  # of its usual size: relative to less than that no error of a field is measured


@dataclass(frozen=True, eq=False)
class Jackknife:
    """Fits û_i to all samples but the i-th, in coordinates of which the first are those of the surrogate's modes.

    With Q the ⌈(n + 1) level⌉-th smallest of the errors ‖u_i − û_i(μ_i)‖ / ‖u_i‖, a new solution u lies within Q ‖u‖ of one of
    the û_j(μ), with a probability of at least the level (jackknife-minmax: Barber, Candès, Ramdas, Tibshirani 2021, theorem 3;
    the proof compares numbers only, and holds for any error). The answer û(μ) of all samples, however it was fitted, then has

        ‖u − û‖ / ‖u‖ ≤ Q + (1 + Q) max_j ‖û − û_j‖ / ‖û_j‖.

    The same of every field where there are several, each at least `LEAST` in size.

    >>> from parasol.runtime.operations import Affine
    >>> from parasol.runtime.program import Program
    >>> fits = [StoredMap(Program((Affine(np.array([[slope]])),))) for slope in (1.0, 1.25)]
    >>> Jackknife(tuple(fits)).bounds(np.array([[2.0]]), np.array([[2.0]]), 0.5)  # 0.5 + 1.5 · 0.5 / 2.5
    array([0.8])
    """

    members: tuple[StoredMap, ...]  # from parameters (n, n_parameters) to coordinates (n, n_coordinates)
    norms: np.ndarray | None = None  # (n_fields, n_coordinates, n_coordinates): ‖N g‖ is the norm of a field

    def __post_init__(self):
        if not self.members or not all(isinstance(member, StoredMap) for member in self.members):
            raise InputError("the members of a jackknife must be maps, one for each sample left out.")
        if len({(member.program.n_inputs, member.program.n_outputs) for member in self.members}) > 1:
            raise InputError("the members of a jackknife have inputs or outputs of different lengths.")
        if self.norms is not None:
            n = self.n_coordinates
            check_finite(check_shape(self.norms, (None, n, n), "norms of a jackknife"), "norms of a jackknife")

    @property
    def n_coordinates(self) -> int:
        """Length of what a member gives."""
        return self.members[0].program.n_outputs

    def bounds(self, mus: np.ndarray, coefficients: np.ndarray, quantile: float) -> np.ndarray:
        """Bounds (n,) of the relative errors of answers with coefficients (n, n_modes)."""
        own = np.zeros((len(mus), self.n_coordinates))
        own[:, : coefficients.shape[1]] = coefficients
        far = np.zeros(len(mus))
        for member in self.members:
            other = member.program(mus)
            far = np.maximum(far, _ratio(other - own, other, 0.0))
            for norm in () if self.norms is None else self.norms:
                far = np.maximum(far, _ratio((other - own) @ norm.T, other @ norm.T, (1 + quantile) * LEAST))
        return quantile + (1 + quantile) * far


def _ratio(gap: np.ndarray, of: np.ndarray, least: float) -> np.ndarray:
    above, below = np.linalg.norm(gap, axis=1), np.maximum(np.linalg.norm(of, axis=1), least)
    return np.divide(above, below, out=np.where(above > 0, np.inf, 0.0), where=below > 0)
