"""Domains given by an inequality g(x) < 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import cast

import numpy as np
import sympy
from scipy.spatial import KDTree

from parasol.checks import check_finite, check_shape
from parasol.errors import InputError
from parasol.expressions import as_function
from parasol.space.geometry.axes import AXES, axis_symbols, parse_in_axes
from parasol.space.geometry.domain import Arc, Domain
from parasol.space.geometry.nearest import from_samples, slide

_CELLS = {1: 4096, 2: 400, 3: 64}  # lattice cells per axis of the first look at the boundary


@dataclass(frozen=True, eq=False)
class Implicit(Domain):
    """The domain g(x) < 0 inside the box `bounds` = (lower corner, upper corner), its boundary assumed smooth.

    `function` is a formula in x, y, z, a SymPy expression in these or in the symbols of `ps.coordinates`, or a function
    of points (n, dimension) -> (n,). What reaches beyond its bounds, such as a cylinder, has no lids of its own: cut it
    with a domain that ends within the bounds.

    >>> disc = Implicit("x**2 + y**2 - 1", bounds=((-2, -2), (2, 2)))
    >>> disc.distance([[2.0, 0.0], [0.0, 0.5]]).round(10).tolist()
    [1.0, -0.5]
    >>> from parasol.space.geometry.primitives import Box
    >>> pipe = Implicit("x**2 + y**2 - 1", bounds=((-2, -2, 0), (2, 2, 3)))
    >>> cylinder = pipe.named("wall") & Box((-2, -2, 0), (2, 2, 3))
    >>> cylinder.distance([[0.0, 0.0, 2.5], [2.0, 0.0, 1.0]]).round(10).tolist()
    [-0.5, 1.0]
    """

    function: str | sympy.Basic | Callable[[np.ndarray], np.ndarray]
    bounds: np.ndarray | Sequence

    def __post_init__(self):
        given = [[b] if np.ndim(b) == 0 else b for b in self.bounds]
        bounds = check_finite(check_shape(given, (2, None), "bounds"), "bounds").copy()
        if not 1 <= bounds.shape[1] <= 3:
            raise InputError(f"bounds has {bounds.shape[1]} coordinates. Use 1, 2 or 3.")
        if not (bounds[0] < bounds[1]).all():
            raise InputError(
                f"the lower bounds {bounds[0].tolist()} are not below the upper bounds {bounds[1].tolist()}."
            )
        object.__setattr__(self, "bounds", bounds)
        names = ", ".join(AXES[: self.dimension])
        function = parse_in_axes(self.function, self.dimension) if isinstance(self.function, str) else self.function
        if isinstance(function, sympy.Basic):
            if not isinstance(function, sympy.Expr):
                raise InputError(f"{function} is no function g of {names}. Give g where g < 0 is the inside.")
            axis_symbols(function, self.dimension, f"g = {function}")
        elif not callable(function):
            raise InputError(f"g is a {type(function).__name__}. Use a formula in {names} or a function of points.")
        object.__setattr__(self, "function", function)
        _ = self._sample  # so that a domain without interior is refused here

    @property
    def dimension(self) -> int:
        return np.shape(self.bounds)[1]

    @property
    def symbols(self) -> frozenset[sympy.Basic]:
        return frozenset(getattr(self.function, "free_symbols", ()))

    @cached_property
    def _formulas(self) -> list[Callable[..., np.ndarray]]:
        """g and its derivatives as functions of the columns."""
        function = cast("sympy.Expr", self.function)
        symbols = axis_symbols(function, self.dimension, f"g = {function}")
        return [as_function(f, symbols) for f in (function, *[sympy.diff(function, s) for s in symbols])]

    def _value(self, points: np.ndarray) -> np.ndarray:
        """g at the points; where it is not a number, the point counts as outside: (n,)."""
        if isinstance(self.function, sympy.Basic):
            values = self._formulas[0](*points.T)
        else:
            values = np.asarray(self.function(points), dtype=float)  # type: ignore[operator]
            if values.shape != (len(points),):
                raise InputError(
                    f"g returned shape {values.shape} for {len(points)} points. Return one number per point."
                )
        return np.where(np.isnan(values), np.inf, values)

    def _inside(self, points: np.ndarray) -> np.ndarray:
        """g < 0 within the bounds, whatever else g may do outside them: (n,) bool."""
        lower, upper = np.asarray(self.bounds)
        margin = 1e-9 * self.size
        return (self._value(points) < 0) & ((points >= lower - margin) & (points <= upper + margin)).all(axis=1)

    def _gradient(self, points: np.ndarray) -> np.ndarray:
        """Gradient of g, never quite zero: (n, dimension)."""
        if isinstance(self.function, sympy.Basic):
            gradient = np.stack([f(*points.T) for f in self._formulas[1:]], axis=1)
        else:
            step = 6e-6 * self.size * np.eye(self.dimension)
            gradient = np.stack(
                [(self._value(points + e) - self._value(points - e)) / (2 * e.sum()) for e in step], axis=1
            )
        gradient = np.where(np.isfinite(gradient), gradient, 0.0)
        gradient[~gradient.any(axis=1), 0] = 1e-150  # its square is still a number
        return gradient

    @cached_property
    def _ticks(self) -> list[np.ndarray]:
        """Coordinates of a lattice that reaches a little beyond the bounds."""
        lower, upper = np.asarray(self.bounds)
        below, above = np.where(self._faces[0], 0.0, 1.03e-2) * (upper - lower)
        cells = _CELLS[self.dimension]
        return [np.linspace(a, b, cells + 1) for a, b in zip(lower - below, upper + above, strict=True)]

    def _flips(self, lattice: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """Which points of a lattice (..., dimension) are inside, and which of its edges along each axis cross the boundary."""
        inside = self._inside(lattice.reshape(-1, self.dimension)).reshape(lattice.shape[:-1])
        return inside, [np.logical_xor(*_ends(inside, axis - self.dimension)) for axis in range(self.dimension)]

    def _zeros(self, lattice: np.ndarray, axis: int, flips: np.ndarray) -> np.ndarray:
        """Boundary points on those edges of a lattice along an axis that cross the boundary: (n, dimension)."""
        low, high = (ends[flips] for ends in _ends(lattice, axis - self.dimension - 1))
        inside = self._inside(low)
        for _ in range(52):
            middle = 0.5 * (low + high)
            same = (self._inside(middle) == inside)[:, None]
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        return 0.5 * (low + high)

    @cached_property
    def _crossings(self) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
        """Lattice points inside, and for each axis the lattice edges that cross the boundary and the places where."""
        lattice = np.stack(np.meshgrid(*self._ticks, indexing="ij"), axis=-1)
        inside, flips = self._flips(lattice)
        return inside, flips, [self._zeros(lattice, axis, cut) for axis, cut in enumerate(flips)]

    @cached_property
    def _sample(self) -> np.ndarray:
        """Boundary points for a first guess: (m, dimension)."""
        points = np.concatenate(self._crossings[2])
        if not len(points):
            raise InputError(
                "a domain with no interior: g < 0 nowhere within the bounds, or everywhere. Check g and bounds."
            )
        return points

    @cached_property
    def _faces(self) -> tuple[np.ndarray, np.ndarray]:
        """Which faces of the bounds the domain goes beyond, (2, dimension) bool, and points of these faces inside it."""
        bounds, axes = np.asarray(self.bounds), range(self.dimension)
        ticks = [np.linspace(a, b, 65) for a, b in bounds.T]
        beyond, inside = np.zeros((2, self.dimension), dtype=bool), [np.zeros((0, self.dimension))]
        for side, axis in product(range(2), axes):
            face = np.meshgrid(*[bounds[side, [k]] if k == axis else ticks[k] for k in axes], indexing="ij")
            points = np.stack([values.ravel() for values in face], axis=1)
            points = points[self.beside(points)[0] < -1e-9 * self.size]
            beyond[side, axis] = len(points) > 0
            inside.append(points)
        return beyond, np.concatenate(inside)

    def open_ends(self) -> np.ndarray:
        """Points inside the domain where it goes beyond its bounds: (n, dimension)."""
        return self._faces[1]

    @cached_property
    def _tree(self) -> KDTree:
        return KDTree(self._sample)

    @cached_property
    def _slope(self) -> float:
        """A typical |grad g| on the boundary, to turn lengths into values of g."""
        return float(np.median(np.linalg.norm(self._gradient(self._sample), axis=1)))

    def contains(self, points) -> np.ndarray:
        points = self.check_points(points)
        lower, upper = np.asarray(self.bounds)
        near = ((points >= lower - 1e-9 * self.size) & (points <= upper + 1e-9 * self.size)).all(axis=1)
        inside = np.zeros(len(points), dtype=bool)
        inside[near] = self._value(points[near]) <= 1e-12 * self.size * self._slope
        return inside

    def onto(self, points: np.ndarray) -> np.ndarray:
        """Down or up the gradient until g = 0, from points that are close already: (n, dimension)."""
        points = points.copy()
        active = np.arange(len(points))
        for _ in range(20):
            gradient = self._gradient(points[active])
            step = self._value(points[active]) / np.sum(gradient**2, axis=1)
            step = np.where(np.isfinite(step), step, 0.0)[:, None] * gradient
            length = np.linalg.norm(step, axis=1, keepdims=True)
            step *= np.minimum(1.0, 0.02 * self.size / np.maximum(length, 1e-300))
            points[active] -= step
            active = active[length[:, 0] > 1e-15 * self.size]
            if not len(active):
                break
        return points

    def project(self, points) -> np.ndarray:
        """Nearest boundary point, where x - p is parallel to grad g(p): (n, dimension)."""
        points = self.check_points(points)
        feet = points.copy()
        rows = np.flatnonzero(np.abs(self.rough_distance(points)) > 1e-14 * self.size)  # the others are there already
        if len(rows):
            feet[rows] = self._nearest(points[rows])
        return feet

    def _nearest(self, points: np.ndarray) -> np.ndarray:
        if self.dimension == 1:
            return self._sample[self._tree.query(points)[1]]
        reach = 4 * float(np.max(np.ptp(np.asarray(self.bounds), axis=0))) / _CELLS[self.dimension]

        def refine(x: np.ndarray, index: np.ndarray) -> np.ndarray:
            start = self._sample[index]
            return slide(x, start, self.onto, lambda p: self._unit(p)[:, None], reach=reach, size=self.size)

        return from_samples(self._tree, points, refine, apart=reach)

    def _unit(self, points: np.ndarray) -> np.ndarray:
        gradient = self._gradient(points)
        return gradient / np.linalg.norm(gradient, axis=1, keepdims=True)

    def rough_distance(self, points: np.ndarray) -> np.ndarray:
        """Signed distance g / |grad g|, and positive beyond the bounds: (n,)."""
        value = self.beside(points)[0]
        lower, upper = np.asarray(self.bounds)
        beyond = np.maximum(lower - points, points - upper).max(axis=1)
        return np.where(beyond > 1e-9 * self.size, np.maximum(np.abs(value), beyond), value)

    def beside(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradient = self._gradient(points)
        steepness = np.linalg.norm(gradient, axis=1)
        return self._value(points) / steepness, gradient / steepness[:, None]

    def normal(self, points) -> np.ndarray:
        return self._unit(self.project(points))

    def _arcs(self) -> tuple[Arc, ...]:
        return tuple(Arc(self._fill(line, closed), closed) for line, closed in self._lines)

    def _fill(self, line: np.ndarray, closed: bool) -> np.ndarray:
        """The polyline without near-duplicates, halved until it has 4000 points."""
        shortest = 0.2 * self.size / _CELLS[2]
        keep = np.linalg.norm(line - np.roll(line, 1, axis=0), axis=1) > shortest
        if not closed:
            keep[-2] &= keep[-1] or len(line) == 2
            keep[[0, -1]] = True
        line = line[keep] if keep.sum() > 8 else line
        while len(line) < 4000:
            middle = self.onto(0.5 * (line + np.roll(line, -1, axis=0)))
            line = np.stack([line, middle], axis=1).reshape(-1, 2)
            line = line if closed else line[:-1]
        return line

    @cached_property
    def _lines(self) -> list[tuple[np.ndarray, bool]]:
        """Marching squares: boundary points on lattice edges, joined within cells into polylines.

        All are closed but those that go beyond the bounds.
        """
        x, y = self._ticks
        inside, flips, points = self._crossings
        # the four edges of each cell: bottom, right, top, left, as numbers of their boundary point or -1
        across, up = (np.where(cut, np.cumsum(cut).reshape(cut.shape) - 1, -1) for cut in flips)
        up[flips[1]] += len(points[0])
        cells = np.stack([across[:, :-1], up[1:], across[:, 1:], up[:-1]], axis=-1).reshape(-1, 4)
        cut = (cells >= 0).sum(axis=1)
        two = cells[cut == 2]
        pairs = two[two >= 0].reshape(-1, 2)
        saddle = np.flatnonzero(cut == 4)
        if len(saddle):
            i, j = np.divmod(saddle, len(y) - 1)
            middle = self._value(0.5 * np.stack([x[i] + x[i + 1], y[j] + y[j + 1]], axis=1)) < 0
            # a middle like the lower left corner joins it to the upper right one: bottom goes with right, top with left
            like = (middle == inside[i, j])[:, None]
            b, r, t, left = cells[saddle].T
            one = np.where(like, np.stack([b, r], 1), np.stack([b, left], 1))
            other = np.where(like, np.stack([t, left], 1), np.stack([r, t], 1))
            pairs = np.concatenate([pairs, one, other])
        return _link(self._sample, pairs)

    def _cloud(self, spacing: float, rng: np.random.Generator) -> np.ndarray:
        """Boundary points on the edges of a fine lattice: (m, 3). In 1 dimension: the end points."""
        if self.dimension == 1:
            return self._sample.copy()
        # points of a curved surface on the edges of a lattice are at most one cell from the next [measured]
        finer = np.ceil(1.03 * 5 * np.ptp(np.asarray(self.bounds), axis=0) / (spacing * _CELLS[3])).astype(int)
        return self._sample.copy() if finer.max() <= 1 else self._divided(finer)

    def _divided(self, finer: np.ndarray) -> np.ndarray:
        """Boundary points on the edges of the lattice `finer` (3,) times as fine, looked for near the boundary: (m, 3)."""
        corners = np.array([t[0] for t in self._ticks])
        step = np.array([t[1] for t in self._ticks]) - corners
        # every cell a point of the boundary lies in, and their neighbours: what is nearer to the boundary than a cell
        home = np.unique(np.floor((self._sample - corners) / step).astype(int), axis=0)
        around = np.stack(np.meshgrid(*[np.arange(-1, 2)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
        cells = np.unique(np.clip(home[:, None] + around, 0, _CELLS[3] - 1).reshape(-1, 3), axis=0)
        inner = np.stack(np.meshgrid(*[np.arange(n + 1) for n in finer], indexing="ij"), axis=-1) * (step / finer)
        points = []
        for some in np.array_split(cells, 1 + len(cells) * np.prod(finer + 1) // 2_000_000):  # some tens of megabytes
            lattice = (corners + some * step)[:, None, None, None] + inner
            for axis, flips in enumerate(self._flips(lattice)[1]):
                for side in {0, 1, 2} - {axis}:  # the next cell begins with this face
                    flips[(slice(None),) * (side + 1) + (-1,)] = False
                points.append(self._zeros(lattice, axis, flips))
        return np.concatenate(points)


def _ends(values: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Values at the two ends of each lattice edge along an axis."""
    along = np.moveaxis(values, axis, 0)
    return np.moveaxis(along[:-1], 0, axis), np.moveaxis(along[1:], 0, axis)


def _link(points: np.ndarray, pairs: np.ndarray) -> list[tuple[np.ndarray, bool]]:
    """Polylines from pairs of neighbouring points, each with whether it is closed. A point has two partners, an end one."""
    partners: list[list[int]] = [[] for _ in points]
    for one, other in pairs.tolist():
        partners[one].append(other)
        partners[other].append(one)
    ends = [k for k, several in enumerate(partners) if len(several) == 1]
    lines, seen = [], [False] * len(points)
    for first in [*ends, *range(len(points))]:
        line, here = [], None if seen[first] else first
        while here is not None:
            seen[here] = True
            line.append(here)
            here = next((k for k in partners[here] if not seen[k]), None)
        closed = len(partners[first]) == 2
        if len(line) > (2 if closed else 1):
            lines.append((points[line], closed))
    return lines
