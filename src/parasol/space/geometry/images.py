"""A hole in a periodic box and its copies in the neighbouring periods."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from parasol.space.geometry.domain import Domain


@dataclass(frozen=True, eq=False)
class Images(Domain):
    """A hole in a periodic box, repeated in every period; `wraps` are the periods (dimension,), 0 where there is none.

    >>> from parasol.space.geometry.primitives import Disc
    >>> Images(Disc(radius=0.5), np.array([4.0, 0.0])).distance([[3.0, 0.0], [0.0, 3.0]]).tolist()
    [0.5, 2.5]
    """

    base: Domain
    wraps: np.ndarray

    @property
    def dimension(self) -> int:
        return self.base.dimension

    @property
    def bounds(self) -> np.ndarray:
        """Bounding box (2, dimension) of the hole itself."""
        return self.base.bounds

    @property
    def periods(self) -> np.ndarray:
        return self.wraps

    @property
    def part_names(self) -> tuple[str, ...]:
        return self.base.part_names

    def _home(self, points) -> np.ndarray:
        """The copy of each point, among all periods, that lies nearest to the hole: (n, dimension)."""
        points = self.check_points(points)
        # wrapped around the middle of the hole, then one period to either side
        middle = self.bounds.mean(axis=0)
        safe = np.where(self.wraps > 0, self.wraps, 1.0)
        home = np.where(self.wraps > 0, middle + np.mod(points - middle + safe / 2, safe) - safe / 2, points)
        images = np.array([home + image for image in neighbours(self.wraps)])
        away = np.array([self.base.distance(image) for image in images])
        return images[np.argmin(away, axis=0), np.arange(len(points))] if len(points) else home

    def contains(self, points) -> np.ndarray:
        return self.base.contains(self._home(points))

    def distance(self, points) -> np.ndarray:
        return self.base.distance(self._home(points))

    def project(self, points) -> np.ndarray:
        home = self._home(points)
        return self.base.project(home) + (self.check_points(points) - home)

    def normal(self, points) -> np.ndarray:
        return self.base.normal(self._home(points))

    def parts(self, points) -> np.ndarray:
        return self.base.parts(self._home(points))


def neighbours(periods: np.ndarray) -> np.ndarray:
    """Shifts to the neighbouring periods, no shift first: (3^k, dimension) with k periodic axes.

    >>> neighbours(np.array([2.0, 0.0])).tolist()
    [[0.0, 0.0], [2.0, 0.0], [-2.0, 0.0]]
    """
    return np.array(list(product(*[(0.0, p, -p) if p > 0 else (0.0,) for p in periods])))
