"""Functions among the parameters, and whether they look like draws from their distributions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from parasol.runtime.parameters import ParameterSpace

_RARE = 1e-6  # chance that a function drawn from the distribution is taken for another
_LEFT_OVER = 0.01  # part of a usual function that may lie beside the modes: rounding in a file, not another shape


def largest_square(n_modes: int) -> float:
    """What |ξ|² of n standard normal numbers exceeds with probability 1e-6 at most:  n + 2 √(n t) + 2 t,  t = log 10⁶.

    >>> round(largest_square(1), 1)
    36.1
    """
    t = -math.log(_RARE)
    return n_modes + 2 * math.sqrt(n_modes * t) + 2 * t


@dataclass(frozen=True, eq=False)
class Distributions:
    """The functions of a parameter space at the nodes (n_nodes, dimension) where their values are given."""

    space: ParameterSpace
    points: np.ndarray | None
    n_interior: int

    @cached_property
    def _modes(self) -> list[np.ndarray]:
        points = np.empty((0, 0)) if self.points is None else self.points
        return [
            f.distribution.modes(points[self.n_interior :] if f.on == "boundary" else points)
            for f in self.space.functions
        ]

    @cached_property
    def _inverses(self) -> list[np.ndarray]:
        return [np.linalg.pinv(modes, rcond=1e-10) for modes in self._modes]

    def unlike(self, mus: np.ndarray) -> np.ndarray:
        """Which of the vectors (n_samples, n_parameters) hold a function its distribution would hardly draw, (n_samples,) bool.

        Nobody knows where there are no nodes: then none does.
        """
        out = np.zeros(len(mus), dtype=bool)
        if not self.space.functions or self.points is None:
            return out
        place = len(self.space.scalars)
        if place + sum(modes.shape[1] for modes in self._modes) != mus.shape[1]:
            return out
        for modes, inverse in zip(self._modes, self._inverses, strict=True):
            values = mus[:, place : place + modes.shape[1]]
            coordinates = values @ inverse
            beside = np.sum((values - coordinates @ modes) ** 2, axis=1)
            out |= np.sum(coordinates**2, axis=1) > largest_square(len(modes))
            out |= beside > _LEFT_OVER**2 * np.sum(modes**2)
            place += modes.shape[1]
        return out
