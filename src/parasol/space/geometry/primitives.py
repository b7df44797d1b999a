"""Boxes and balls, with every answer by formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy

from parasol.checks import check_finite, check_positive, check_shape
from parasol.errors import InputError
from parasol.space.geometry.axes import AXES, axis_of
from parasol.space.geometry.domain import Arc, Domain

_FACES = (("left", "right"), ("bottom", "top"), ("back", "front"))


@dataclass(frozen=True, eq=False)
class Box(Domain):
    """Interval, rectangle or cuboid with corners `lower` and `upper`, some of its axes possibly periodic.

    Its parts are left, right (x), bottom, top (y), back, front (z). A periodic axis has no parts and no boundary.

    >>> square = Box((0, 0), (1, 1))
    >>> square.distance([[0.5, 0.25], [4.0, 5.0]]).tolist()
    [-0.25, 5.0]
    >>> Box((0, 0), (1, 1), periodic=("x",)).part_names
    ('bottom', 'top')
    """

    lower: np.ndarray | Sequence[float] | float
    upper: np.ndarray | Sequence[float] | float
    periodic: Sequence[str | int | sympy.Symbol] = ()

    def __post_init__(self):
        lower = _corner(self.lower, "lower")
        upper = _corner(self.upper, "upper")
        if lower.shape != upper.shape:
            raise InputError(f"lower has {lower.size} and upper {upper.size} coordinates. Give both as many.")
        if not (lower < upper).all():
            raise InputError(f"lower={lower.tolist()} is not below upper={upper.tolist()}. Every side needs a length.")
        try:
            given = (self.periodic,) if isinstance(self.periodic, int) else tuple(self.periodic)  # "xy" counts as x, y
        except TypeError:
            raise InputError(f"periodic={self.periodic!r} names no axes. Use for example periodic=('x',).") from None
        axes, symbols = set(), set()
        for axis in given:
            number = axis
            if isinstance(axis, str | sympy.Symbol):
                symbols.add(sympy.Symbol(axis) if isinstance(axis, str) else axis)
                number = axis_of(axis)
            if number is None or isinstance(number, bool) or number not in range(len(lower)):
                raise InputError(f"periodic axis {axis!r} is unknown. Use one of: {', '.join(AXES[: len(lower)])}.")
            axes.add(int(number))
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        object.__setattr__(self, "periodic", tuple(AXES[axis] for axis in sorted(axes)))
        object.__setattr__(self, "_symbols", frozenset(symbols))

    @property
    def dimension(self) -> int:
        return len(self.bounds[0])

    @cached_property
    def bounds(self) -> np.ndarray:
        return np.array([self.lower, self.upper])

    @property
    def symbols(self) -> frozenset[sympy.Basic]:
        """Symbols and letters by which the periodic axes were given."""
        return getattr(self, "_symbols", frozenset())  # not in a pickle, which was checked before

    @cached_property
    def periods(self) -> np.ndarray:
        wraps = np.array([axis in self.periodic for axis in AXES[: self.dimension]])
        return np.where(wraps, self.bounds[1] - self.bounds[0], 0.0)

    @property
    def part_names(self) -> tuple[str, ...]:
        """Faces of the axes that are not periodic."""
        return tuple(name for axis in self._axes for name in _FACES[axis])

    @cached_property
    def _axes(self) -> np.ndarray:
        return np.flatnonzero(self.periods == 0)

    def _depths(self, points: np.ndarray) -> np.ndarray:
        """How far inside each face, in part order: (n, n_parts), negative beyond the face."""
        inner = points[:, self._axes]
        lower, upper = self.bounds[:, self._axes]
        return np.stack([inner - lower, upper - inner], axis=2).reshape(len(points), 2 * len(self._axes))

    def contains(self, points) -> np.ndarray:
        return np.all(self._depths(self.check_points(points)) >= -1e-12 * self.size, axis=1)

    def distance(self, points) -> np.ndarray:
        """Signed distance to the faces, negative inside; -inf where there are no faces: (n,)."""
        points = self.check_points(points)
        if not len(self._axes):
            return np.full(len(points), -np.inf)
        depths = self._depths(points)
        beyond = np.linalg.norm(np.minimum(depths, 0), axis=1)
        return np.where(beyond > 0, beyond, -depths.min(axis=1))

    def project(self, points) -> np.ndarray:
        """Nearest point of the faces; periodic coordinates stay as they are: (n, dimension)."""
        points = self.check_points(points)
        if not len(self._axes):
            raise InputError("a box that is periodic along every axis has no boundary. Leave an axis out of periodic=.")
        lower, upper = self.bounds
        feet = np.where(self.periods > 0, points, np.clip(points, lower, upper))
        depths = self._depths(points)
        inside = np.flatnonzero((depths > 0).all(axis=1))
        face = np.argmin(depths[inside], axis=1)
        axis = self._axes[face // 2]
        feet[inside, axis] = self.bounds[face % 2, axis]
        return feet

    def parts(self, points) -> np.ndarray:
        points = self.check_points(points)
        if not len(self._axes):
            return np.zeros((len(points), 0), dtype=bool)
        return np.abs(self._depths(self.project(points))) <= 1e-11 * self.size

    def normal(self, points) -> np.ndarray:
        """Outward unit normal of the nearest face, at a corner of the first one in part order: (n, dimension)."""
        points = self.check_points(points)
        self.project(points[:0])  # says so if there is no boundary
        face = np.argmax(self.parts(points), axis=1)
        normals = np.zeros_like(points)
        normals[np.arange(len(points)), self._axes[face // 2]] = 2.0 * (face % 2) - 1.0
        return normals

    def volume(self) -> float:
        return float(np.prod(self.bounds[1] - self.bounds[0]))

    def _arcs(self) -> tuple[Arc, ...]:
        """Sides, counterclockwise; a side along a periodic axis is open where it wraps."""
        (a, b), (c, d) = self.bounds
        sides = {
            "bottom": [[a, b], [c, b]],
            "right": [[c, b], [c, d]],
            "top": [[c, d], [a, d]],
            "left": [[a, d], [a, b]],
        }
        return tuple(Arc(np.array(ends), closed=False) for name, ends in sides.items() if name in self.part_names)

    def _cloud(self, spacing: float, rng: np.random.Generator) -> np.ndarray:
        """Lattices on the faces, edges included: (m, 3). In 1 dimension: the end points."""
        lower, upper = self.bounds
        ticks = [np.linspace(a, b, 1 + int(np.ceil(4 * (b - a) / spacing))) for a, b in zip(lower, upper, strict=True)]
        faces = [np.zeros((0, self.dimension))]
        for axis in self._axes:
            for end in self.bounds[:, axis]:
                lattice = np.meshgrid(
                    *[np.array([end]) if k == axis else t for k, t in enumerate(ticks)], indexing="ij"
                )
                faces.append(np.stack([values.ravel() for values in lattice], axis=1))
        return np.unique(np.concatenate(faces), axis=0)


@dataclass(frozen=True, eq=False)
class Ball(Domain):
    """Interval, disc or ball around `center`.

    >>> Ball((0, 0, 0), 2.0).distance([[3.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).tolist()
    [1.0, -1.0]
    """

    center: np.ndarray | Sequence[float] | float
    radius: float

    def __post_init__(self):
        object.__setattr__(self, "center", _corner(self.center, "center"))
        object.__setattr__(self, "radius", check_positive(self.radius, "radius"))

    @property
    def dimension(self) -> int:
        return len(self.bounds[0])

    @cached_property
    def bounds(self) -> np.ndarray:
        center = np.asarray(self.center)
        return np.array([center - self.radius, center + self.radius])

    def contains(self, points) -> np.ndarray:
        return self.distance(points) <= 1e-12 * self.size

    def distance(self, points) -> np.ndarray:
        return np.linalg.norm(self.check_points(points) - self.center, axis=1) - self.radius

    def project(self, points) -> np.ndarray:
        return self.center + self.radius * self.normal(points)

    def normal(self, points) -> np.ndarray:
        """Unit vector away from the center; at the center itself, the first axis: (n, dimension)."""
        away = self.check_points(points) - self.center
        away[(away == 0).all(axis=1), 0] = 1.0
        return away / np.linalg.norm(away, axis=1, keepdims=True)

    def volume(self) -> float:
        """2 r, pi r^2 or 4/3 pi r^3."""
        return (2.0, np.pi, 4 / 3 * np.pi)[self.dimension - 1] * self.radius**self.dimension

    def _arcs(self) -> tuple[Arc, ...]:
        angle = 2 * np.pi * np.arange(4096) / 4096
        circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return (Arc(self.center + self.radius * circle, closed=True),)

    def _cloud(self, spacing: float, rng: np.random.Generator) -> np.ndarray:
        """A golden-angle spiral on the sphere: (m, 3). In 1 dimension: the end points."""
        if self.dimension == 1:
            return self.bounds.copy()
        # neighbours on the spiral are at most 3.6 / sqrt(n) apart, no place is further than 2.5 / sqrt(n) [measured]
        count = 16 + int(np.ceil((14.5 * self.radius / spacing) ** 2))
        k = np.arange(count)
        z = 1 - (2 * k + 1) / count
        turn = np.pi * (3 - np.sqrt(5)) * k
        rim = np.sqrt(1 - z**2)
        return self.center + self.radius * np.stack([rim * np.cos(turn), rim * np.sin(turn), z], axis=1)


def Disc(center: Sequence[float] = (0.0, 0.0), radius: float = 1.0) -> Ball:
    """The plane disc around `center`.

    >>> round(Disc().volume(), 6)
    3.141593
    """
    return Ball(check_shape(center, (2,), "center"), radius)


def _corner(value, name: str) -> np.ndarray:
    """A point of 1, 2 or 3 coordinates; a number counts as one coordinate."""
    point = check_finite(check_shape([value] if np.ndim(value) == 0 else value, (None,), name), name)
    if not 1 <= len(point) <= 3:
        raise InputError(f"{name} has {len(point)} coordinates. Use 1, 2 or 3.")
    return point.copy()
