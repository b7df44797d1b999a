"""What every domain answers: inside or not, how far, which way is out, what its boundary pieces are called."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from parasol.checks import check_finite, check_positive, check_shape
from parasol.errors import InputError
from parasol.runtime.above import borrowed
from parasol.space.geometry.conditions import Condition, Predicate, Test, compile_condition, read_condition
from parasol.space.geometry.corners import look_around, of_first
from parasol.space.wrap import Wrap

if TYPE_CHECKING:
    from parasol.space.geometry.regions import Regions

_FARTHEST = 1e150  # the square of what is farther is no number any more


@dataclass(frozen=True, eq=False)
class Arc:
    """One smooth piece of a plane boundary as a dense polyline of boundary points, in order along the curve.

    A closed arc has no corners and its last point joins its first. An open arc ends in corners, each shared with the
    end of another arc. Shapes: `points` is (m, 2).

    >>> Arc(np.array([[0.0, 0.0], [3.0, 4.0]]), closed=False).length
    5.0
    """

    points: np.ndarray
    closed: bool

    @property
    def line(self) -> np.ndarray:
        """The whole polyline: the points, and for a closed arc the first one once more (n_segments + 1, 2)."""
        return np.concatenate([self.points, self.points[:1]]) if self.closed else self.points

    @property
    def segments(self) -> tuple[np.ndarray, np.ndarray]:
        """Start and end point of each straight segment, both (n_segments, 2)."""
        return self.line[:-1], self.line[1:]

    @property
    def length(self) -> float:
        """Length of the polyline."""
        return float(np.linalg.norm(np.diff(self.line, axis=0), axis=1).sum())


class Domain(ABC):
    """A region of 1, 2 or 3 dimensions. Points are (n, dimension) arrays; distances are negative inside.

    `bounds` is (2, dimension): the corners of a bounding box. `a | b`, `a & b` and `a - b` combine domains.
    """

    dimension: int
    bounds: np.ndarray

    def _repr_html_(self) -> str:
        return borrowed("view")(self)

    @abstractmethod
    def contains(self, points) -> np.ndarray:
        """Whether each point is inside or, up to rounding, on the boundary: (n,) bool."""

    @abstractmethod
    def project(self, points) -> np.ndarray:
        """Nearest boundary point of each point: (n, dimension)."""

    @abstractmethod
    def normal(self, points) -> np.ndarray:
        """Outward unit normal at the nearest boundary point (at a corner, of one of its sides): (n, dimension)."""

    def distance(self, points) -> np.ndarray:
        """Signed distance to the boundary, negative inside: (n,)."""
        points = self.check_points(points)
        away = np.linalg.norm(points - self.project(points), axis=1)
        return np.where(self.contains(points), -away, away)

    def rough_distance(self, points: np.ndarray) -> np.ndarray:
        """Signed distance whose sign is exact and whose size is right to first order near the boundary: (n,)."""
        return self.distance(points)

    def beside(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Signed distance (n,) and normal (n, dimension) of points close to the boundary, right to first order there."""
        return self.distance(points), self.normal(points)

    def onto(self, points: np.ndarray) -> np.ndarray:
        """A point of the boundary close to each point that is close to it, though perhaps not the nearest one."""
        return self.project(points)

    @property
    def part_names(self) -> tuple[str, ...]:
        """Names of the pieces of the boundary."""
        return ("boundary",)

    def parts(self, points) -> np.ndarray:
        """Which named parts each boundary point lies on; a corner may lie on several: (n, n_parts) bool."""
        return np.ones((len(self.check_points(points)), 1), dtype=bool)

    def plain(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Parts (n, n_parts) and normals (n, dimension) of boundary points that are in no corner."""
        return self.parts(points), self.normal(points)

    def open_ends(self) -> np.ndarray:
        """Points inside the domain where its boundary is missing, none for a domain that can be used: (n, dimension)."""
        return np.zeros((0, self.dimension))

    def check_closed(self) -> None:
        """Refuse a domain that an inequality leaves open."""
        ends = self.open_ends()
        if len(ends):
            place = ", ".join(f"{value:.3g}" for value in ends[len(ends) // 2])
            raise InputError(
                f"the domain reaches beyond the bounds of its g, at ({place}) for one. Enlarge bounds until g > 0 on "
                "their faces, or cut a shape without end, such as a cylinder, with & Box(...) that lies within them."
            )

    @property
    def symbols(self) -> frozenset[sympy.Basic]:
        """Symbols and letters that stand for axes in the formulas the domain was given."""
        return frozenset()

    @property
    def unnamed(self) -> Domain:
        """The domain without the names that `named` gave to its boundary."""
        return self

    @property
    def region_names(self) -> tuple[str, ...]:
        """Names of the regions that `regions` divided the domain into; none of an undivided one."""
        return ()

    def region_of(self, points) -> np.ndarray:
        """Index into `region_names` of the region each point lies in, on an interface one of those beside it: (n,) int."""
        return np.zeros(len(self.check_points(points)), dtype=int)

    @property
    def divided(self) -> Regions | None:
        """The domain as `regions` divided it, without the names given to its boundary since."""
        return None

    @property
    def periods(self) -> np.ndarray:
        """Period along each axis, 0 where the domain is not periodic: (dimension,)."""
        return np.zeros(self.dimension)

    @property
    def size(self) -> float:
        """Length of the diagonal of the bounding box, the scale for tolerances."""
        return float(np.linalg.norm(self.bounds[1] - self.bounds[0]))

    def volume(self) -> float:
        """Length, area or volume; estimated to about 0.1 % where no formula is known."""
        self.check_closed()
        # the additive recurrence with the roots of x^(d+1) = x + 1 fills a box evenly without random numbers
        root = np.roots([1, *[0] * (self.dimension - 1), -1, -1])
        steps = np.abs(root[np.argmax(np.abs(root))]) ** -np.arange(1.0, self.dimension + 1)
        lower, upper = self.bounds
        points = lower + (upper - lower) * np.mod(0.5 + np.arange(200_000)[:, None] * steps, 1.0)
        return float(np.prod(upper - lower) * np.mean(self.contains(points)))

    def arcs(self) -> tuple[Arc, ...]:
        """Boundary of a plane domain as dense polylines."""
        if self.dimension != 2:
            raise InputError(
                f"only a plane domain has arcs, this one has dimension {self.dimension}. Use boundary_cloud."
            )
        return self._arcs()

    def _arcs(self) -> tuple[Arc, ...]:
        raise InputError(f"{type(self).__name__} does not say where its boundary is. Define arcs, or use ps.Implicit.")

    def boundary_cloud(self, spacing: float, rng: np.random.Generator) -> np.ndarray:
        """Boundary points no further than spacing/4 from the next, in 3 dimensions: (m, 3). In 1: the ends."""
        if self.dimension == 2:
            raise InputError("this domain of dimension 2 has no boundary cloud. In the plane, use arcs.")
        return self._cloud(check_positive(spacing, "spacing"), rng)

    def _cloud(self, spacing: float, rng: np.random.Generator) -> np.ndarray:
        raise InputError(
            f"{type(self).__name__} does not say where its boundary is. Define boundary_cloud, or use ps.Implicit."
        )

    def wrap(self, points: np.ndarray) -> np.ndarray:
        """Points with periodic coordinates moved into the bounding box; all others as they are: (n, dimension)."""
        return Wrap.of(self).fold(points)

    def named(self, name: str | None = None, /, **predicates: Predicate) -> Domain:
        """Name the whole boundary, or the pieces of it where conditions hold; what is left keeps its names.

        A condition is a SymPy relation or text, or a function of points (n, dimension) -> (n,) bool. The symbols of
        `ps.coordinates` stand for their axes; in text, and as other symbols, x, y, z stand for the axes in this order.

        >>> from parasol.space.geometry.primitives import Disc
        >>> disc = Disc().named(inlet="x <= 0")
        >>> disc.part_names, disc.parts([[-1.0, 0.0], [1.0, 0.0]]).tolist()
        (('inlet', 'boundary'), [[True, False], [False, True]])
        """
        if (name is None) == (not predicates):
            raise InputError("name either the whole boundary or its parts: named('hole') or named(inlet=x < 0.1).")
        if name is not None:
            return Named(self, ((str(name), None),))
        return Named(
            self, tuple((key, read_condition(key, given, self.dimension)) for key, given in predicates.items())
        )

    def regions(self, **shapes: Domain | Predicate) -> Domain:
        """Divide the domain into named regions, for materials and sources that differ between them.

        A shape is a domain or a condition as in `named`, but no function. Where two hold, the first counts; what is in
        none is the region "otherwise". Nodes are placed on the interfaces between the regions.

        >>> from parasol.space.geometry.primitives import Box, Disc
        >>> plate = Box((-1, -1), (1, 1)).regions(inclusion=Disc(radius=0.5), right="x > 0")
        >>> plate.region_names, plate.region_of([[0.1, 0.0], [0.9, 0.0], [-0.9, 0.0]]).tolist()
        (('inclusion', 'right', 'otherwise'), [0, 1, 2])
        """
        from parasol.space.geometry.regions import Regions, read_shape  # regions are combinations of domains

        return Regions(self, tuple((name, read_shape(name, given, self)) for name, given in shapes.items()))

    def check_points(self, points) -> np.ndarray:
        """Points as a finite (n, dimension) float array, or a clear error."""
        points = check_finite(check_shape(points, (None, self.dimension), "points"), "points")
        if np.any(np.abs(points) > _FARTHEST):
            raise InputError(
                f"points has the coordinate {np.abs(points).max():.3g}, too far off to measure a distance. "
                f"Keep coordinates below {_FARTHEST:g}."
            )
        return points

    def __or__(self, other: Domain) -> Domain:
        return _combine("union", self, other)

    def __and__(self, other: Domain) -> Domain:
        return _combine("intersection", self, other)

    def __sub__(self, other: Domain) -> Domain:
        return _combine("difference", self, other)

    def __getstate__(self) -> dict:
        # tables and compiled formulas are made again where they are needed: a pickle holds what defines the domain
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]


def _of_base(name: str) -> Any:
    """An attribute or a method that is the base's own."""
    return property(attrgetter(f"base.{name}"))


class Wrapper(Domain):
    """A domain that is another one, `base`, and knows something more about it."""

    base: Domain

    dimension, bounds, unnamed, periods, part_names, region_names, divided = map(
        _of_base, ("dimension", "bounds", "unnamed", "periods", "part_names", "region_names", "divided")
    )
    contains, distance, project, normal, rough_distance, beside, onto = map(
        _of_base, ("contains", "distance", "project", "normal", "rough_distance", "beside", "onto")
    )
    region_of, parts, plain, volume, arcs, boundary_cloud, open_ends = map(
        _of_base, ("region_of", "parts", "plain", "volume", "arcs", "boundary_cloud", "open_ends")
    )


@dataclass(frozen=True, eq=False)
class Named(Wrapper):
    """A domain whose boundary pieces have names; made by `Domain.named`. A condition of None holds everywhere."""

    base: Domain
    conditions: tuple[tuple[str, Condition | None], ...]

    @property
    def part_names(self) -> tuple[str, ...]:
        """New names first, then the names that were there."""
        names = [name for name, _ in self.conditions]
        if self._whole:
            return (names[0],) if self.base.part_names else ()
        return tuple(dict.fromkeys([*names, *self.base.part_names]))

    @property
    def symbols(self) -> frozenset[sympy.Basic]:
        return self.base.symbols.union(*[getattr(given, "free_symbols", ()) for _, given in self.conditions])

    @property
    def _whole(self) -> bool:
        return any(condition is None for _, condition in self.conditions)

    @cached_property
    def _tests(self) -> list[Test]:
        # what is nearer than this cannot be told apart: rounding far from the origin, or on the way to the boundary
        near = max(1e-9 * self.size, 8 * float(np.spacing(np.abs(self.bounds).max())))
        named = [(name, given) for name, given in self.conditions if given is not None]
        return [compile_condition(name, given, self.dimension, near) for name, given in named]

    def parts(self, points) -> np.ndarray:
        """Which named parts each boundary point lies on, those that begin at a corner included: (n, n_parts) bool."""
        points = self.check_points(points)
        if self._whole:
            return np.ones((len(points), len(self.part_names)), dtype=bool)
        # a condition such as x <= 0 holds in a corner of the unit square, yet only one of the two sides is meant
        return np.concatenate([look_around(self, some)[0] for some in _blocks(points)])

    def normal(self, points) -> np.ndarray:
        """Outward unit normal; at a corner, of a side that belongs to the first part there: (n, dimension)."""
        points = self.check_points(points)
        if self._whole:
            return self.base.normal(points)
        return np.concatenate([of_first(*look_around(self, some)) for some in _blocks(points)])

    def plain(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        names = self.part_names
        parts = np.zeros((len(points), len(names)), dtype=bool)
        old, normals = self.base.plain(points)
        if self._whole:
            return ~parts, normals
        wrapped = self.wrap(points)
        for (name, _), test in zip(self.conditions, self._tests, strict=True):
            parts[:, names.index(name)] |= test(wrapped)
        left = ~parts.any(axis=1)
        for column, name in enumerate(self.base.part_names):
            parts[left, names.index(name)] |= old[left, column]
        return parts, normals


def _blocks(points: np.ndarray) -> list[np.ndarray]:
    """Points in blocks that stay in the processor's cache with all that is seen around them: three times faster."""
    return np.array_split(points, 1 + len(points) // 4096)


def _combine(kind: str, a: Domain, b: Domain) -> Domain:
    if not isinstance(b, Domain):
        return NotImplemented
    if a.region_names or b.region_names:
        raise InputError(
            "a domain with regions cannot be combined: its regions would be lost. Combine first, then use .regions(...)."
        )
    from parasol.space.geometry.combine import Combination  # combinations are domains themselves

    return Combination(kind, a, b)
