"""Random fields that function-valued parameters are drawn from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from parasol.checks import check_positive, check_shape
from parasol.errors import InputError

_LARGEST = 128  # degree of spherical harmonics: 16641 of them
_LEFT = 1e-6  # part of the variance that modes of a GaussianField may leave at a point
_MOST_MODES = 2000


class RandomField(ABC):
    """A centred Gaussian field, f = sum_k xi_k m_k with independent standard normal xi_k."""

    @abstractmethod
    def modes(self, points: np.ndarray) -> np.ndarray:
        """The functions m_k at the points, (n_modes, n_points); their squared sum is the pointwise variance."""

    def sample(self, n_samples: int, points: np.ndarray, rng: int | np.random.Generator | None) -> np.ndarray:
        """Draw fields at the points, (n_samples, n_points)."""
        modes = self.modes(points)
        return np.random.default_rng(rng).standard_normal((n_samples, len(modes))) @ modes


def spherical_harmonics(points: np.ndarray, degree: int) -> np.ndarray:
    """Real orthonormal spherical harmonics up to `degree` in the directions of the points, ((degree+1)², n_points).

    Ordered by degree l, then m = −l..l:  Y_l0;  √2 (−1)^m Re Y_lm for m > 0;  √2 (−1)^m Im Y_l|m| for m < 0.

    >>> y = spherical_harmonics(np.array([[0.0, 0.0, 1.0]]), 1)[:, 0]
    >>> np.allclose(y**2 * 4 * np.pi, [1, 0, 3, 0])
    True
    """
    points = check_shape(points, (None, 3), "points")
    radius = np.linalg.norm(points, axis=1)
    z = np.clip(points[:, 2] / np.where(radius > 0, radius, 1.0), -1, 1)
    z = np.where(radius > 0, z, 0.0)  # the origin has no direction: any will do
    azimuth = np.arctan2(points[:, 1], points[:, 0])
    out = np.empty(((degree + 1) ** 2, len(points)))
    sectoral = np.full(len(points), np.sqrt(0.25 / np.pi))  # normalised P_mm without the phase (−1)^m
    for m in range(degree + 1):
        if m:
            sectoral = np.sqrt((2 * m + 1) / (2 * m)) * np.sqrt(1 - z**2) * sectoral
        before, here = np.zeros(len(points)), sectoral
        for l in range(m, degree + 1):  # noqa: E741
            if l > m:  # upwards in l, which is stable for the normalised functions
                a = np.sqrt((4 * l**2 - 1) / (l**2 - m**2))
                b = np.sqrt(((l - 1) ** 2 - m**2) / (4 * (l - 1) ** 2 - 1))
                before, here = here, a * (z * here - b * before)
            if m:
                out[l * l + l + m] = np.sqrt(2) * here * np.cos(m * azimuth)
                out[l * l + l - m] = np.sqrt(2) * here * np.sin(m * azimuth)
            else:
                out[l * l + l] = here
    return out


@dataclass(frozen=True)
class SphereField(RandomField):
    """The field N(0, (−Δ₀ + I)⁻²) on the unit sphere, its series cut after the given degree.

        f = sum_{l <= degree} sum_m xi_lm (l(l+1) + 1)⁻¹ Y_lm

    The covariance has the eigenvalues (l(l+1)+1)⁻², so the standard deviations are their square roots.

    >>> field = SphereField(degree=32)
    >>> variance = np.sum(field.modes(np.array([[0.0, 0.0, 1.0]])) ** 2)
    >>> print(f"{4 * np.pi * variance:.6f}")
    1.534765
    """

    degree: int = 8

    def __post_init__(self):
        if int(self.degree) != self.degree or not 0 <= self.degree <= _LARGEST:  # a file may come from anywhere
            raise InputError(f"degree={self.degree} of SphereField must be an integer from 0 to {_LARGEST}.")

    def modes(self, points: np.ndarray) -> np.ndarray:  # noqa: D102
        l = np.repeat(np.arange(self.degree + 1), 2 * np.arange(self.degree + 1) + 1)  # noqa: E741
        return spherical_harmonics(points, self.degree) / (l * (l + 1) + 1.0)[:, None]


@dataclass(frozen=True)
class GaussianField(RandomField):
    """A smooth field at points of any dimension, with covariance  deviation² exp(−|x − y|² / (2 length²)).

    The modes are the columns of a Cholesky factor with pivots, cut off where a millionth of the variance is left. They depend
    on all the points: the same seed draws other functions at other points.

    >>> field = GaussianField(length=0.5, deviation=2.0)
    >>> modes = field.modes(np.array([[0.0], [0.5]]))
    >>> bool(np.allclose(modes.T @ modes, [[4.0, 4 * np.exp(-0.5)], [4 * np.exp(-0.5), 4.0]]))
    True
    """

    length: float
    deviation: float = 1.0

    def __post_init__(self):
        for name in ("length", "deviation"):
            object.__setattr__(self, name, check_positive(getattr(self, name), f"{name} of GaussianField"))

    def modes(self, points: np.ndarray) -> np.ndarray:  # noqa: D102
        points = check_shape(points, (None, None), "points")
        modes = np.empty((min(len(points), _MOST_MODES), len(points)))
        left = np.ones(len(points))
        for k in range(len(modes)):
            pivot = int(np.argmax(left))
            if left[pivot] <= _LEFT:
                return self.deviation * modes[:k]
            squares = np.sum(((points - points[pivot]) / self.length) ** 2, axis=1)
            row = np.exp(-0.5 * squares) - modes[:k, pivot] @ modes[:k]
            modes[k] = row / np.sqrt(left[pivot])
            left = np.maximum(left - modes[k] ** 2, 0.0)
        if np.max(left, initial=0.0) > _LEFT:
            raise InputError(
                f"a GaussianField of length {self.length:g} has more than {_MOST_MODES} modes at these {len(points)} points. "
                "Take a larger length."
            )
        return self.deviation * modes
