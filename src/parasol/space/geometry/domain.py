"""What every domain answers: inside or not, how far, which way is out, what its boundary pieces are called."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import sympy

from parasol.checks import ParasolError, check_finite, check_shape
from parasol.expressions import as_function, parse

AXES = ("x", "y", "z")
_SAME = 1 - 1e-3  # cosine between normals of one side, a step apart
_NEARLY = 0.7  # the same within a spacing, over which a side may bend
_FARTHEST = 1e150  # the square of what is farther is no number any more
Condition = sympy.Basic | Callable[[np.ndarray], np.ndarray]  # which points belong to a part
Predicate = Condition | str  # the same as a reader may write it


class Coordinate(sympy.Symbol):
    """A coordinate that is not the x, y or z of its axis: a symbol that knows its axis, counted from 0.

    >>> Coordinate("r", 0), Coordinate("r", 0) == Coordinate("r", 1)
    (r, False)
    """

    axis: int

    def __new__(cls, name: str, axis: int):
        """Declare a coordinate."""
        self = sympy.Symbol.__xnew__(cls, name, real=True)
        self.axis = axis
        return self

    def __getnewargs_ex__(self):
        return (self.name, self.axis), {}

    def __getstate__(self):
        return None

    def _hashable_content(self):
        return (*super()._hashable_content(), self.axis)


def coordinate(name: str, axis: int) -> sympy.Symbol:
    """The symbol of an axis: x, y and z are ordinary symbols for the axes 0, 1 and 2."""
    return sympy.Symbol(name, real=True) if AXES[axis] == name else Coordinate(name, axis)


def axis_of(symbol: sympy.Basic) -> int | None:
    """The axis a symbol stands for: its own, else by its letter x, y, z; None for any other symbol."""
    if isinstance(symbol, Coordinate):
        return symbol.axis
    return AXES.index(str(symbol)) if str(symbol) in AXES else None


def axis_symbols(expression: sympy.Basic, dimension: int, what: str) -> list[sympy.Symbol]:
    """The symbols that stand for the axes in an expression, one for each; symbols of no axis are refused."""
    symbols: list = [sympy.Dummy() for _ in range(dimension)]
    used: dict[int, str] = {}
    for symbol in sorted(expression.free_symbols, key=str):
        axis = axis_of(symbol)
        if axis is None or axis >= dimension:
            raise ParasolError(
                f"{what} depends on {symbol}. Use only {', '.join(AXES[:dimension])}, or the symbols of ps.coordinates."
            )
        if axis in used:
            raise ParasolError(
                f"{what} has {used[axis]} and {symbol} for the same axis. Use the symbols of one ps.coordinates."
            )
        symbols[axis], used[axis] = symbol, str(symbol)
    return symbols


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
    def segments(self) -> tuple[np.ndarray, np.ndarray]:
        """Start and end point of each straight segment, both (n_segments, 2)."""
        if self.closed:
            return self.points, np.roll(self.points, -1, axis=0)
        return self.points[:-1], self.points[1:]

    @property
    def length(self) -> float:
        """Length of the polyline."""
        start, end = self.segments
        return float(np.linalg.norm(end - start, axis=1).sum())


class Domain(ABC):
    """A region of 1, 2 or 3 dimensions. Points are (n, dimension) arrays; distances are negative inside.

    `bounds` is (2, dimension): the corners of a bounding box. `a | b`, `a & b` and `a - b` combine domains.
    """

    dimension: int
    bounds: np.ndarray

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
            raise ParasolError(
                f"the domain reaches beyond the bounds of its g, at ({place}) for one. Enlarge bounds until g > 0 on "
                "their faces, or cut a shape without end, such as a cylinder, with & Box(...) that lies within them."
            )

    @property
    def symbols(self) -> frozenset[sympy.Basic]:
        """Symbols and letters that stand for axes in the formulas the domain was given."""
        return frozenset()

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
        raise ParasolError(
            f"only a plane domain has arcs, this one has dimension {self.dimension}. Use boundary_cloud."
        )

    def boundary_cloud(self, spacing: float, rng: np.random.Generator) -> np.ndarray:
        """Boundary points no further than spacing/4 from the next, in 3 dimensions: (m, 3). In 1: the ends."""
        raise ParasolError(f"this domain of dimension {self.dimension} has no boundary cloud. In the plane, use arcs.")

    def wrap(self, points: np.ndarray) -> np.ndarray:
        """Points with periodic coordinates moved into the bounding box; all others as they are: (n, dimension)."""
        periods = self.periods
        if not periods.any():
            return points
        lower, safe = self.bounds[0], np.where(periods > 0, periods, 1.0)
        return np.where(periods > 0, lower + np.mod(points - lower, safe), points)

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
            raise ParasolError("name either the whole boundary or its parts: named('hole') or named(inlet=x < 0.1).")
        if name is not None:
            return Named(self, ((str(name), None),))
        return Named(self, tuple((key, _readable(key, given, self.dimension)) for key, given in predicates.items()))

    def check_points(self, points) -> np.ndarray:
        """Points as a finite (n, dimension) float array, or a clear error."""
        points = check_finite(check_shape(points, (None, self.dimension), "points"), "points")
        if np.any(np.abs(points) > _FARTHEST):
            raise ParasolError(
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


@dataclass(frozen=True, eq=False)
class Named(Domain):
    """A domain whose boundary pieces have names; made by `Domain.named`. A condition of None holds everywhere."""

    base: Domain
    conditions: tuple[tuple[str, Condition | None], ...]

    @property
    def dimension(self) -> int:
        """Dimension of the domain."""
        return self.base.dimension

    @property
    def bounds(self) -> np.ndarray:
        """Bounding box (2, dimension)."""
        return self.base.bounds

    @property
    def periods(self) -> np.ndarray:
        """Period along each axis, 0 where the domain is not periodic: (dimension,)."""
        return self.base.periods

    @property
    def part_names(self) -> tuple[str, ...]:
        """New names first, then the names that were there."""
        names = [name for name, _ in self.conditions]
        if self._whole:
            return (names[0],) if self.base.part_names else ()
        return tuple(dict.fromkeys([*names, *self.base.part_names]))

    @property
    def symbols(self) -> frozenset[sympy.Basic]:
        """Symbols and letters that stand for axes in the conditions."""
        return self.base.symbols.union(*[getattr(given, "free_symbols", ()) for _, given in self.conditions])

    @property
    def _whole(self) -> bool:
        return any(condition is None for _, condition in self.conditions)

    @cached_property
    def _tests(self) -> list[Callable[[np.ndarray], np.ndarray]]:
        # what is nearer than this cannot be told apart: rounding far from the origin, or on the way to the boundary
        near = max(1e-9 * self.size, 8 * float(np.spacing(np.abs(self.bounds).max())))
        return [_compile(name, given, self.dimension, near) for name, given in self.conditions if given is not None]

    def contains(self, points) -> np.ndarray:
        """Whether each point is inside or, up to rounding, on the boundary: (n,) bool."""
        return self.base.contains(points)

    def distance(self, points) -> np.ndarray:
        """Signed distance to the boundary, negative inside: (n,)."""
        return self.base.distance(points)

    def project(self, points) -> np.ndarray:
        """Nearest boundary point of each point: (n, dimension)."""
        return self.base.project(points)

    def rough_distance(self, points: np.ndarray) -> np.ndarray:
        """Signed distance whose sign is exact and whose size is right to first order near the boundary: (n,)."""
        return self.base.rough_distance(points)

    def beside(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Signed distance (n,) and normal (n, dimension) of points close to the boundary."""
        return self.base.beside(points)

    def onto(self, points: np.ndarray) -> np.ndarray:
        """A point of the boundary close to each point that is close to it: (n, dimension)."""
        return self.base.onto(points)

    def volume(self) -> float:
        """Length, area or volume."""
        return self.base.volume()

    def arcs(self) -> tuple[Arc, ...]:
        """Boundary of a plane domain as dense polylines."""
        return self.base.arcs()

    def boundary_cloud(self, spacing: float, rng: np.random.Generator) -> np.ndarray:
        """Points of the boundary in 3 dimensions."""
        return self.base.boundary_cloud(spacing, rng)

    def open_ends(self) -> np.ndarray:
        """Points inside the domain where its boundary is missing: (n, dimension)."""
        return self.base.open_ends()

    def parts(self, points) -> np.ndarray:
        """Which named parts each boundary point lies on, those that begin at a corner included: (n, n_parts) bool."""
        points = self.check_points(points)
        if self._whole:
            return np.ones((len(points), len(self.part_names)), dtype=bool)
        # a condition such as x <= 0 holds in a corner of the unit square, yet only one of the two sides is meant
        return look_around(self, points)[0]

    def normal(self, points) -> np.ndarray:
        """Outward unit normal; at a corner, of a side that belongs to the first part there: (n, dimension)."""
        points = self.check_points(points)
        return self.base.normal(points) if self._whole else of_first(*look_around(self, points))

    def plain(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Parts (n, n_parts) and normals (n, dimension) of boundary points that are in no corner."""
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


def look_around(domain: Domain, points: np.ndarray, reach: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Parts (n, n_parts) of boundary points, and the normals (n, n_parts, dimension) of the sides these parts lie on.

    In a corner, what lies beside it decides: stepping off along each of its sides tells which parts begin there. With
    `reach` (n,) a part that ends within this distance of the corner, or of an edge near by, does not count.
    """
    foot = domain.project(points)
    parts, normal = domain.plain(foot)
    normals = np.repeat(normal[:, None], parts.shape[1], axis=1)
    if domain.dimension == 1 or not len(points):
        return parts, normals
    step = 1e-5 * domain.size
    steps = np.stack(around(normal))
    nudged = foot + step * steps
    beside = domain.project(nudged.reshape(-1, domain.dimension))
    seen, slant = (values.reshape(len(steps), len(foot), -1) for values in domain.plain(beside))
    beside = beside.reshape(slant.shape)
    back = nudged - beside
    # a neighbour that came back to the corner or to an edge, not straight down onto a side, tells nothing about sides
    slip = np.linalg.norm(back - np.sum(back * slant, axis=2, keepdims=True) * slant, axis=2)
    valid = (np.linalg.norm(beside - foot, axis=2) > 0.1 * step) & (slip < 0.1 * step)
    here = np.einsum("knd,nd->kn", slant, normal) > _SAME
    sharp = valid.any(axis=0) & ~here.all(axis=0)
    if reach is not None and domain.dimension == 3:
        smooth = np.flatnonzero(valid.any(axis=0) & ~sharp)
        parts[smooth] = _beside_edges(domain, foot[smooth], parts[smooth], normal[smooth], reach[smooth])
    if reach is not None and sharp.any():
        rows = np.flatnonzero(sharp)
        off, first = _into_sides(beside[:, rows] - foot[rows], slant[:, rows], valid[:, rows], _SAME)
        step, row = np.nonzero(first == np.arange(len(steps))[:, None])  # one for each side
        far = domain.project(foot[rows[row]] + reach[rows[row], None] * off[step, row])
        there, turned = domain.plain(far)
        # where the side itself ends or bends away before, the first step has to do
        same_side = np.sum(turned * slant[step, rows[row]], axis=1) > _NEARLY
        step, row, far, there, turned = (values[same_side] for values in (step, row, far, there, turned))
        if domain.dimension == 3:
            there = _beside_edges(domain, far, there, turned, reach[rows[row]])
        seen[step, rows[row]] = there
        seen[:, rows] = seen[first, rows]
    seen &= valid[:, :, None]
    # parts that meet in a smooth place, far from any corner, are told apart by the point itself
    corner = (sharp | (parts.sum(axis=1) > 1)) & seen.any(axis=(0, 2))
    parts[corner] = seen.any(axis=0)[corner]
    # of several sides of a part, the one with the point's own normal
    first = np.argmax(seen.astype(int) + (seen & here[:, :, None]), axis=0)
    rows = np.arange(len(foot))[:, None]
    elsewhere = corner[:, None] & parts & ~here[first, rows]
    normals[elsewhere] = slant[first, rows][elsewhere]
    return parts, normals


def of_first(parts: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """Of normals (n, n_parts, dimension), that of the first part each point lies on: (n, dimension)."""
    return np.take_along_axis(normals, np.argmax(parts, axis=1)[:, None, None], axis=1)[:, 0]


def _beside_edges(domain: Domain, foot, parts, normal, reach) -> np.ndarray:
    """Parts (n, n_parts) of surface points; where an edge is in reach, those of the side further from the edge."""
    ring = foot + reach[:, None] * np.stack([normal, *around(normal)])  # the first comes straight back
    there = domain.project(ring.reshape(-1, 3))
    turned = domain.normal(there).reshape(ring.shape)
    leaves = np.einsum("knd,nd->kn", turned, normal) < _NEARLY
    rows = np.flatnonzero(leaves.any(axis=0))
    if len(rows):
        steps = there.reshape(ring.shape)[:, rows] - foot[rows]
        inward = _into_sides(steps, turned[:, rows], np.ones((len(ring), len(rows)), dtype=bool), _NEARLY)[0][0]
        seen, turned = domain.plain(domain.project(foot[rows] + reach[rows, None] * inward))
        same_side = np.sum(turned * normal[rows], axis=1) > _NEARLY
        parts[rows] = np.where(same_side[:, None], seen, parts[rows])
    return parts


def _into_sides(steps, normals, valid, cosine: float) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors along the side on which each step from a corner ended, away from all other sides there.

    `steps` and `normals` are (n_steps, n, dimension), `valid` (n_steps, n); `cosine` tells sides apart. On an edge of two
    sides the way is square to the edge, so that what changes along the edge does not matter. Also returned is the first
    valid step onto the same side, (n_steps, n).
    """
    alike = np.einsum("knd,jnd->kjn", normals, normals) > cosine
    inward = np.einsum("kjn,jnd->knd", alike & valid, steps)
    if steps.shape[2] == 3:
        different = ~alike & valid
        other = np.argmax(different, axis=1)  # (n_steps, n)
        rows = np.arange(steps.shape[1])
        third = different & np.moveaxis(different[other, :, rows], 2, 1)
        along = np.cross(normals, normals[other, rows])
        size = np.linalg.norm(along, axis=2, keepdims=True)
        edge = different.any(axis=1) & ~third.any(axis=1)
        along = np.where(edge[:, :, None], along / np.maximum(size, 1e-300), 0.0)
        inward = inward - np.sum(inward * along, axis=2, keepdims=True) * along
    inward /= np.maximum(np.linalg.norm(inward, axis=2, keepdims=True), 1e-300)
    return inward, np.argmax(alike & valid, axis=1)


def around(normals: np.ndarray) -> list[np.ndarray]:
    """Steps (n, dimension) off points of a surface, 2 ways along it in the plane, 8 in space, each up and down a little.

    Down, a step beyond a convex edge comes back onto the other side; up, one beyond a re-entrant edge does.
    """
    if normals.shape[1] == 2:
        along = np.stack([-normals[:, 1], normals[:, 0]], axis=1)
        tangents = [along, -along]
    else:
        least = np.eye(3)[np.argmin(np.abs(normals), axis=1)]
        first = np.cross(normals, least)
        first /= np.linalg.norm(first, axis=1, keepdims=True)
        second = np.cross(normals, first)
        # 0.3 keeps them off the axes, along which the edges of boxes run
        angles = 0.3 + np.pi / 4 * np.arange(8)
        tangents = [np.cos(angle) * first + np.sin(angle) * second for angle in angles]
    return [tangent + sign * 0.5 * normals for tangent in tangents for sign in (-1, 1)]


def _readable(name: str, predicate: Predicate, dimension: int) -> Condition:
    """The condition as SymPy relation or function, or a clear error."""
    advice = "Use a relation such as x < 0.1, its text, or a function of points."
    if isinstance(predicate, bool | np.bool_):
        raise ParasolError(f"the condition for part {name!r} is just {bool(predicate)}, it names no place. {advice}")
    symbols = {axis: sympy.Symbol(axis, real=True) for axis in AXES[:dimension]}
    given = parse(predicate, symbols) if isinstance(predicate, str) else predicate
    if isinstance(given, sympy.Basic):
        axis_symbols(given, dimension, f"the condition for part {name!r}")
        if not isinstance(given, sympy.logic.boolalg.Boolean) or isinstance(given, sympy.Symbol):
            raise ParasolError(f"the condition for part {name!r} is {given}, which is neither true nor false. {advice}")
    elif not callable(given):
        raise ParasolError(f"the condition for part {name!r} is a {type(given).__name__}. {advice}")
    return given


def _compile(name: str, given: Condition, dimension: int, near: float) -> Callable[[np.ndarray], np.ndarray]:
    """A condition as a function of points. Relations allow for rounding: x <= 0 holds at x = 1e-17."""
    if isinstance(given, sympy.Basic):
        return _relation(given, axis_symbols(given, dimension, f"the condition for part {name!r}"), near)

    def test(points: np.ndarray) -> np.ndarray:
        answer = np.asarray(given(points))  # type: ignore[operator]
        if answer.shape != (len(points),):
            raise ParasolError(
                f"the condition for part {name!r} returned shape {answer.shape} for {len(points)} points. "
                f"Return one True or False per point."
            )
        return answer.astype(bool)

    return test


def _relation(given: sympy.Basic, symbols: list, near: float) -> Callable[[np.ndarray], np.ndarray]:
    """A relation as a function of points; lhs - rhs counts as 0 where it is no larger than its change over `near`."""
    several = isinstance(given, sympy.And | sympy.Or | sympy.Not)
    inner = [_relation(arg, symbols, near) for arg in given.args] if several else []
    match given:
        case sympy.And():
            return lambda points: np.all([test(points) for test in inner], axis=0)
        case sympy.Or():
            return lambda points: np.any([test(points) for test in inner], axis=0)
        case sympy.Not():
            return lambda points: ~inner[0](points)
    if not isinstance(given, sympy.core.relational.Relational):
        whole = as_function(given, symbols)
        return lambda points: whole(*points.T).astype(bool)
    function = as_function(given.lhs - given.rhs, symbols)  # type: ignore[operator]

    def sign(points: np.ndarray) -> np.ndarray:
        gap = function(*points.T)
        steps = near * np.eye(len(symbols))
        changes = [[np.abs(function(*(points + s).T) - gap) for s in (step, -step)] for step in steps]
        # of the two ways along an axis the calmer one: the other may cross a jump, or leave where the formula holds
        tolerance = np.max(np.nan_to_num(np.fmin(*np.moveaxis(np.array(changes), 1, 0)), posinf=0.0), axis=0)
        return np.where(np.abs(gap) <= tolerance, 0.0, np.sign(gap))

    match given:
        case sympy.Le():
            return lambda points: sign(points) <= 0
        case sympy.Lt():
            return lambda points: sign(points) < 0
        case sympy.Ge():
            return lambda points: sign(points) >= 0
        case sympy.Gt():
            return lambda points: sign(points) > 0
        case sympy.Eq():
            return lambda points: sign(points) == 0
        case _:
            return lambda points: np.abs(sign(points)) > 0  # not where the formula has no value


def _combine(kind: str, a: Domain, b: Domain) -> Domain:
    if not isinstance(b, Domain):
        return NotImplemented
    from parasol.space.geometry.combine import Combination  # combinations are domains themselves

    return Combination(kind, a, b)
