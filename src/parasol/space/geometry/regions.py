"""A domain divided into named regions: which region a point is in, and the interfaces between regions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from operator import and_, or_, sub

import numpy as np
import sympy
from scipy.spatial import KDTree
from sympy.core.relational import GreaterThan, LessThan, StrictGreaterThan, StrictLessThan

from parasol.errors import InputError
from parasol.space.geometry.axes import axis_symbols
from parasol.space.geometry.combine import Combination
from parasol.space.geometry.conditions import Predicate, read_condition
from parasol.space.geometry.cutting import join
from parasol.space.geometry.domain import Arc, Domain, Wrapper
from parasol.space.geometry.implicit import Implicit
from parasol.space.geometry.pieces import insert
from parasol.space.geometry.primitives import Box

OTHERWISE = "otherwise"
_BEYOND = 0.0617  # by how much of its size the domain is left by shapes made from conditions, so that no sides coincide
_ORDERED = (LessThan, StrictLessThan, GreaterThan, StrictGreaterThan)
_ADVICE = "Use a domain, or a relation such as x < 0.5 or its text."
# in sizes of the domain: what is nearer to an interface lies on it; steps off it that tell what is beside it
ON, _OFF = 1e-9, 1e-7
_STRAIGHT = 0.9  # cosine of the turn of an interface that is no kink, 26 degrees


@dataclass(frozen=True, eq=False)
class Regions(Wrapper):
    """A domain divided into regions by shapes, domains or conditions, of which the first counts; made by `Domain.regions`."""

    base: Domain
    given: tuple[tuple[str, Domain | sympy.Basic], ...]

    def __post_init__(self):
        if self.base.region_names:
            raise InputError("the domain has regions already. Give all of them in one call of .regions(...).")
        if not self.given:
            raise InputError("regions needs at least one region: domain.regions(inclusion=ps.Disc(...)).")
        if OTHERWISE in dict(self.given):
            raise InputError(f'"{OTHERWISE}" is the name of what is in no other region. Use another name.')
        if self.periods.any() and not isinstance(self.base.unnamed, Box):
            raise InputError("regions in a periodic box with holes do not work yet. Leave out the holes or periodic=.")
        _ = self._cells  # so that an empty region is refused here
        self._check_seams()

    @property
    def divided(self) -> Regions:
        return self

    @property
    def symbols(self) -> frozenset[sympy.Basic]:
        of_shapes = [g.symbols if isinstance(g, Domain) else g.free_symbols for _, g in self.given]
        return self.base.symbols.union(*of_shapes)

    @cached_property
    def region_names(self) -> tuple[str, ...]:
        """The names given, in their order, then "otherwise" if anything is left."""
        names = tuple(name for name, _ in self.given)
        return names if self._cells[-1] is None else (*names, OTHERWISE)

    @property
    def region_domains(self) -> tuple[Domain, ...]:
        """Each region as a domain of its own."""
        return tuple(cell for cell in self._cells if cell is not None)

    @property
    def surroundings(self) -> tuple[Domain, ...]:
        """For each region the domain within which its points are neighbours: a periodic box as a whole goes round."""
        return (self.base.unnamed,) * len(self.region_names) if self.periods.any() else self.region_domains

    @cached_property
    def shapes(self) -> tuple[Domain, ...]:
        """The shape of each region that was given, as a domain; it may reach beyond this one and into earlier ones."""
        lower, upper = self.bounds
        room = Box(lower - _BEYOND * (upper - lower), upper + _BEYOND * (upper - lower))
        return tuple(g if isinstance(g, Domain) else _shape(name, g, room) for name, g in self.given)

    @cached_property
    def _cells(self) -> tuple[Domain | None, ...]:
        """The domain of every region, and what is left of the whole, None if nothing."""
        base = self.base.unnamed
        left: Domain | None = Box(*base.bounds) if self.periods.any() else base
        cells: list[Domain | None] = []
        for (name, _), shape in zip(self.given, self.shapes, strict=True):
            try:
                if left is None:
                    raise InputError
                cells.append(left & shape)
            except InputError:
                raise InputError(
                    f"nothing of the domain is in region {name!r}: its shape lies outside the domain, or within the "
                    f"regions given before it, or is too small to be seen. {_ADVICE}"
                ) from None
            try:
                left = left - shape
            except InputError:
                left = None
        return (*cells, left)

    def _check_seams(self) -> None:
        """Refuse regions that do not fit together across a periodic face."""
        lower, upper = self.bounds
        shares = np.mod(np.outer(np.arange(1, 4001), np.sqrt([2.0, 3.0, 5.0])[: self.dimension]), 1.0)
        for axis in np.flatnonzero(self.periods > 0):
            ends = [lower + shares * (upper - lower) for _ in range(2)]
            for points, end, step in zip(ends, self.bounds[:, axis], (1, -1), strict=True):
                points[:, axis] = end + step * _OFF * self.size
            one, other = (self._find(points) for points in ends)
            if np.any(one != other):
                raise InputError(
                    "the regions differ on the two sides of a periodic face, where no interface can be. "
                    "Move the period so that its faces lie within one region, or leave out periodic=."
                )

    def region_of(self, points) -> np.ndarray:
        return self._find(self.wrap(self.check_points(points)))

    def _find(self, points: np.ndarray) -> np.ndarray:
        region = np.full(len(points), len(self.shapes))
        for which, shape in reversed(list(enumerate(self.shapes))):
            region[shape.contains(points)] = which
        lost = np.flatnonzero(region == len(self.region_names))  # within rounding of a seam between regions
        if len(lost):
            region[lost] = np.argmin([shape.rough_distance(points[lost]) for shape in self.shapes], axis=0)
        return region

    @cached_property
    def lines(self) -> tuple[tuple[Arc, Domain], ...]:
        """The interfaces of a plane domain: smooth arcs between the points where interfaces meet, and the shape each bounds.

        The interface between two regions lies on the boundary of the shape of the first.
        """
        arcs: list[tuple[Arc, Domain]] = []
        for cell, shape in zip(self._cells, self.shapes, strict=False):
            assert isinstance(cell, Combination)
            own = len(cell._flat[0]) - len(_members(shape))
            pieces = [piece for piece, owner in zip(*cell._pieces, strict=True) if owner >= own]
            arcs += [(arc, shape) for arc in join(pieces, 1e-9 * self.size)]
        ends = self._ends(arcs)
        divided = []
        for arc, shape in arcs:
            on_it = ends[np.abs(shape.distance(ends)) < ON * self.size] if len(ends) else ends
            line, _, cuts = insert(arc.line, on_it, 1e-4 * self.size)
            if arc.closed and not len(cuts):
                divided.append((arc, shape))
                continue
            if arc.closed:  # begin at a cut
                line, cuts = np.concatenate([line[cuts[0] :], line[1 : cuts[0] + 1]]), cuts - cuts[0]
            stops = np.unique([0, *cuts, len(line) - 1])
            divided += [(Arc(line[a : b + 1], closed=False), shape) for a, b in pairwise(stops)]
        self._check_contact([arc for arc, _ in divided])
        return tuple(divided)

    def _check_contact(self, arcs: list[Arc]) -> None:
        """Refuse interfaces that touch each other or the boundary and do not end there: nodes would crowd, or see through."""
        if not arcs:
            return
        points = np.concatenate([arc.points for arc in arcs])
        owner = np.repeat(np.arange(len(arcs)), [len(arc.points) for arc in arcs])
        ends = [arc.points[[0, -1]] for arc in arcs if not arc.closed]
        far = KDTree(np.concatenate(ends)).query(points)[0] > 0.02 * self.size if ends else np.ones(len(points), bool)
        gap = np.full(len(points), np.inf)
        if self.base.part_names:
            gap = np.abs(self.base.rough_distance(self.wrap(points)))
        for k in np.unique(owner):  # samples are size / 2000 apart or less
            others = owner != k
            if others.any():
                reach = KDTree(points[others]).query(points[~others], distance_upper_bound=self.size / 2000)[0]
                gap[~others] = np.minimum(gap[~others], np.where(reach < self.size / 4000, reach, np.inf))
        close = np.flatnonzero(far & (gap < self.size / 4000))
        if len(close):
            place = ", ".join(f"{value:.3g}" for value in points[close[np.argmin(gap[close])]])
            raise InputError(
                f"an interface between regions touches another one or the boundary without ending there, near ({place}). "
                f"Move the shapes apart, or let them overlap."
            )

    @cached_property
    def joints(self) -> np.ndarray:
        """Where interfaces of a plane domain end: at each other, at kinks, at the boundary; (n, 2)."""
        return self._ends(self.lines)

    def kinks(self) -> np.ndarray:
        """Joints inside the domain, those left out where one interface goes on with hardly a turn: (n, 2)."""
        inner = self.joints[self.base.distance(self.joints) < -10 * ON * self.size] if len(self.joints) else self.joints
        ways = [(line[0], line[1] - line[0]) for arc, _ in self.lines for line in (arc.line, arc.line[::-1])]
        starts, along = (np.array(column).reshape(-1, 2) for column in zip(*ways, strict=True))
        along /= np.linalg.norm(along, axis=1, keepdims=True)
        near = KDTree(starts).query_ball_point(inner, 10 * ON * self.size)
        sharp = [len(group) != 2 or along[group[0]] @ along[group[1]] > -_STRAIGHT for group in near]
        return inner[np.array(sharp, dtype=bool)]

    @cached_property
    def places(self) -> np.ndarray:
        """The interfaces of a one-dimensional domain: (n, 1)."""
        ends = np.concatenate([shape.boundary_cloud(1.0, np.random.default_rng(0)) for shape in self.shapes])
        if self.base.part_names:
            ends = ends[self.base.distance(ends) < -ON * self.size]
        ends = np.sort(self.wrap(ends), axis=0)
        ends = ends[np.diff(ends[:, 0], prepend=-np.inf) > ON * self.size]
        sides = [self.region_of(ends + step * _OFF * self.size) for step in (-1, 1)]
        return ends[sides[0] != sides[1]]

    def walls(self, spacing: float | None = None) -> np.ndarray:
        """Points of the interfaces, in space no further than spacing/4 from the next, in the plane far denser: (m, dimension)."""
        if self.dimension == 1:
            return self.places
        if self.dimension == 2:
            return np.concatenate([np.zeros((0, 2)), *[arc.points for arc, _ in self.lines]])
        rng, clouds = np.random.default_rng(0), [np.zeros((0, 3))]
        for which, shape in enumerate(self.shapes):
            cloud = shape.boundary_cloud(self.size / 40 if spacing is None else spacing, rng)
            clouds.append(cloud[self.bounds_region(which, cloud, shape.normal(cloud))[0]])
        return np.concatenate(clouds)

    @cached_property
    def simple(self) -> bool:
        """True; refused are interfaces in space that meet each other: nodes are not placed where three regions meet."""
        spacing, rng = self.size / 40, np.random.default_rng(0)
        for which, shape in enumerate(self.shapes):
            cloud = shape.boundary_cloud(spacing, rng)
            on, other = self.bounds_region(which, cloud, shape.normal(cloud))
            cloud, other = cloud[on], other[on]
            pairs = KDTree(cloud).query_pairs(0.5 * spacing, output_type="ndarray")
            meet = pairs[other[pairs[:, 0]] != other[pairs[:, 1]]]
            if len(meet):
                names = [self.region_names[k] for k in (which, *other[meet[0]])]
                place = ", ".join(f"{value:.3g}" for value in cloud[meet[0, 0]])
                raise InputError(
                    f"the regions {', '.join(map(repr, names))} meet along a line near ({place}), and scatter cannot place "
                    f"nodes along such lines in space. Use a lattice on a box, or regions of which only two meet anywhere."
                )
        return True

    def bounds_region(self, which: int, points: np.ndarray, normals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether points of the boundary of a shape, off its corners, lie on an interface, and the region beyond: both (n,)."""
        sides = [points + sign * _OFF * self.size * normals for sign in (-1, 1)]
        inner, outer = (self.region_of(side) for side in sides)
        within = np.all([self.base.contains(self.wrap(side)) for side in sides], axis=0)
        return within & (inner == which) & (outer > which), outer

    def _ends(self, arcs) -> np.ndarray:
        """Where interfaces of a plane domain end, each place once, those on the boundary exactly there: (n, 2)."""
        ends = [arc.points[[0, -1]] for arc, _ in arcs if not arc.closed]
        if not ends:
            return np.zeros((0, 2))
        points = np.concatenate(ends)
        if self.base.part_names:
            near = np.abs(self.base.rough_distance(points)) < ON * self.size
            points[near] = self.base.project(points[near])
        same = KDTree(points).query_ball_point(points, 10 * ON * self.size)
        return points[np.unique([min(group) for group in same])]


def read_shape(name: str, given: Domain | Predicate, whole: Domain) -> Domain | sympy.Basic:
    """The shape of a region, a domain or a condition, or a clear error."""
    if isinstance(given, Domain):
        if given.dimension != whole.dimension:
            raise InputError(
                f"region {name!r} has dimension {given.dimension}, the domain {whole.dimension}. {_ADVICE}"
            )
        return given
    if callable(given) or not isinstance(given, sympy.Basic | str | bool | np.bool_):
        raise InputError(f"region {name!r} is a {type(given).__name__}, which does not say where it ends. {_ADVICE}")
    condition = read_condition(name, given, whole.dimension, of="region")
    assert isinstance(condition, sympy.Basic)
    return condition


def _shape(name: str, condition: sympy.Basic, room: Box) -> Domain:
    """The places within `room` where a condition holds."""
    if isinstance(condition, sympy.Or):
        return reduce(or_, [_shape(name, arg, room) for arg in condition.args])
    if isinstance(condition, sympy.Not):
        return sub(room, _shape(name, condition.args[0], room))
    parts = condition.args if isinstance(condition, sympy.And) else (condition,)
    (lower, upper), others, straight = room.bounds.copy(), [], False
    for part in parts:
        limit = _limit(part, room.dimension) if isinstance(part, _ORDERED) else None
        if limit is not None:
            axis, value, below = limit
            lower[axis], upper[axis] = (
                (lower[axis], min(value, upper[axis])) if below else (max(value, lower[axis]), upper[axis])
            )
            straight = True
        elif isinstance(part, _ORDERED):
            others.append(Implicit(part.lts - part.gts, room.bounds))  # type: ignore[operator]
        elif isinstance(part, sympy.And | sympy.Or | sympy.Not):
            others.append(_shape(name, part, room))
        else:
            raise InputError(f"region {name!r} is given by {part}, which is no inequality. {_ADVICE}")
    if not (lower < upper).all():
        raise InputError(f"region {name!r} is empty within the domain: {condition} holds nowhere. {_ADVICE}")
    return reduce(and_, [Box(lower, upper), *others] if straight else others)


def _limit(relation: sympy.Basic, dimension: int) -> tuple[int, float, bool] | None:
    """Axis, value and side of a relation such as x < 0.5, None for others."""
    gap = sympy.expand(relation.lts - relation.gts)  # type: ignore[attr-defined]
    symbols = axis_symbols(gap, dimension, "a region")
    used = [axis for axis, symbol in enumerate(symbols) if symbol in gap.free_symbols]
    if len(used) != 1 or not gap.diff(symbols[used[0]]).is_number:
        return None
    slope = gap.diff(symbols[used[0]])
    return used[0], float(-gap.subs(symbols[used[0]], 0) / slope), bool(slope > 0)


def _members(shape: Domain) -> tuple[Domain, ...]:
    """The domains that an intersection with this one has of it."""
    return shape._flat[0] if isinstance(shape, Combination) and shape.kind != "union" else (shape,)
