"""Plane domains inside a smooth closed curve: r(theta), or a curve through points."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import sympy
from scipy.interpolate import CubicSpline, make_interp_spline
from scipy.spatial import KDTree

from parasol.checks import check_finite, check_shape
from parasol.errors import InputError
from parasol.expressions import as_function, parse, to_expression
from parasol.space.geometry.domain import Arc, Domain
from parasol.space.geometry.polygon import area, check_loop, cross, crosses_itself


class Loop(Domain):
    """The inside of a smooth closed curve c(t), counterclockwise, t in [0, period).

    The nearest boundary point solves (c(t) - x) . c'(t) = 0: a table gives a bracket, Newton's method the rest.
    """

    dimension = 2

    @property
    @abstractmethod
    def _period(self) -> float: ...

    @abstractmethod
    def _curve(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Position, first and second derivative at t (n,): three (n, 2) arrays."""

    @cached_property
    def _table(self) -> tuple[np.ndarray, np.ndarray]:
        """Parameters and points, so dense that the tangent turns little from one to the next."""
        count = 4096
        while True:
            t = self._period * np.arange(count) / count
            points, tangents, _ = self._curve(t)
            after = np.roll(tangents, -1, axis=0)
            turn = np.arctan2(cross(tangents, after), np.sum(tangents * after, axis=1))
            if count >= 65536 or np.abs(turn).max() < 0.05:
                return t, points
            count *= 2

    @cached_property
    def _tree(self) -> KDTree:
        return KDTree(self._table[1])

    @cached_property
    def bounds(self) -> np.ndarray:
        """Bounding box (2, 2), with a margin for what the table of the curve may cut off."""
        points = self._table[1]
        margin = np.linalg.norm(np.diff(points, axis=0), axis=1).max() / 8
        return np.array([points.min(axis=0) - margin, points.max(axis=0) + margin])

    def _nearest(self, points: np.ndarray) -> np.ndarray:
        """Parameter of the nearest boundary point: (n,)."""
        t, samples = self._table
        near = np.asarray(self._tree.query(points, k=8)[1])
        best = self._refine(points, near[:, 0])
        # a second valley of the distance, somewhere else along the curve, may turn out deeper than the first
        apart = np.abs((near - near[:, :1] + len(t) // 2) % len(t) - len(t) // 2) > 8
        rows = np.flatnonzero(apart.any(axis=1))
        if len(rows):
            other = near[rows, np.argmax(apart[rows], axis=1)]
            # walk down to the bottom sample of that valley so that the bracket below holds
            for _ in range(16):
                around = (other[:, None] + np.arange(-1, 2)) % len(t)
                gaps = np.sum((samples[around] - points[rows, None]) ** 2, axis=2)
                other = around[np.arange(len(rows)), np.argmin(gaps, axis=1)]
            second = self._refine(points[rows], other)
            gap = [np.sum((self._curve(s)[0] - points[rows]) ** 2, axis=1) for s in (best[rows], second)]
            best[rows] = np.where(gap[1] < gap[0], second, best[rows])
        return best

    def _refine(self, points: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Newton's method for the nearest parameter, kept by bisection between two neighbours in the table: (n,)."""
        table = self._table[0]
        step = self._period / len(table)
        t = table[index].copy()
        low, high = t - step, t + step
        active = np.arange(len(t))
        for _ in range(60):
            s = t[active]
            c, d, dd = self._curve(s)
            away = c - points[active]
            slope = np.sum(away * d, axis=1)
            curvature = np.sum(d * d, axis=1) + np.sum(away * dd, axis=1)
            high[active] = np.where(slope > 0, s, high[active])
            low[active] = np.where(slope > 0, low[active], s)
            with np.errstate(divide="ignore", invalid="ignore"):
                new = s - slope / curvature
            bad = ~((new >= low[active]) & (new <= high[active]) & (curvature > 0))
            new = np.where(bad, 0.5 * (low[active] + high[active]), new)
            t[active] = np.where(slope == 0, s, new)
            active = active[np.abs(t[active] - s) > 1e-15 * self._period]
            if not len(active):
                break
        return t

    def _feet(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Nearest boundary points and outward normals there, both (n, 2)."""
        if not len(points):
            return points.copy(), points.copy()
        foot, tangent, _ = self._curve(self._nearest(points))
        normal = np.stack([tangent[:, 1], -tangent[:, 0]], axis=1)
        return foot, normal / np.linalg.norm(normal, axis=1, keepdims=True)

    def contains(self, points) -> np.ndarray:
        return self.distance(points) <= 1e-12 * self.size

    def distance(self, points) -> np.ndarray:
        points = self.check_points(points)
        foot, normal = self._feet(points)
        away = points - foot
        # x - p is a multiple of the normal, so its sign tells inside from outside
        return np.copysign(np.linalg.norm(away, axis=1), np.sum(away * normal, axis=1))

    def project(self, points) -> np.ndarray:
        return self._feet(self.check_points(points))[0]

    def normal(self, points) -> np.ndarray:
        return self._feet(self.check_points(points))[1]

    def _arcs(self) -> tuple[Arc, ...]:
        return (Arc(self._table[1].copy(), closed=True),)

    def volume(self) -> float:
        """Area 1/2 of the integral of x dy - y dx, like the length by the trapezoidal rule, which is spectrally accurate."""
        t = self._table[0]
        c, d, _ = self._curve(t)
        return float(0.5 * np.sum(cross(c - c.mean(axis=0), d)) * (self._period / len(t)))

    def perimeter(self) -> float:
        """Length of the curve."""
        t = self._table[0]
        return float(np.sum(np.linalg.norm(self._curve(t)[1], axis=1)) * (self._period / len(t)))


@dataclass(frozen=True, eq=False)
class Star(Loop):
    """The plane domain r < radius(theta) around `center`.

    `radius` is a formula in theta, a SymPy expression in one symbol, or a NumPy function of angles (n,) -> (n,).

    >>> flower = Star("0.8 + 0.1*(sin(6*theta) + sin(3*theta))")
    >>> round(flower.perimeter(), 6), round(flower.volume() / np.pi, 12)
    (5.805614, 0.65)
    """

    radius: str | sympy.Basic | float | Callable[[np.ndarray], np.ndarray]
    center: np.ndarray | Sequence[float] = (0.0, 0.0)

    def __post_init__(self):
        object.__setattr__(self, "center", check_finite(check_shape(self.center, (2,), "center"), "center").copy())
        radius = self.radius
        if isinstance(radius, str):
            radius = parse(radius, {"theta": sympy.Symbol("theta", real=True)})
        elif isinstance(radius, int | float):
            radius = to_expression(radius)
        if isinstance(radius, sympy.Basic):
            if len(radius.free_symbols) > 1:
                names = ", ".join(sorted(map(str, radius.free_symbols)))
                raise InputError(f"the radius {radius} has several symbols: {names}. Use one, the angle.")
            if not isinstance(radius, sympy.Expr):
                raise InputError(f"the radius {radius} is not a number. Use a formula in theta.")
        elif not callable(radius):
            raise InputError(f"radius is a {type(radius).__name__}. Use a formula in theta or a function of angles.")
        object.__setattr__(self, "radius", radius)
        # 360 degrees in uneven steps, so that a zero at a round angle is not the only one that can be seen
        values = self._polar[0](2 * np.pi * np.arange(7919) / 7919)
        if not np.isfinite(values).all() or values.min() <= 0:
            raise InputError(
                f"the radius is not a positive number at every angle, its least value is {values.min():.3g}. "
                "Add a constant, or use Curve or Implicit."
            )
        ends = self._polar[0](np.array([-np.pi, np.pi, 0.0, 2 * np.pi]))
        if max(abs(ends[0] - ends[1]), abs(ends[2] - ends[3])) > 1e-8 * values.max():
            raise InputError(
                "the radius does not repeat after 2 pi, the curve would be open. Use sin and cos of whole multiples."
            )

    @property
    def _period(self) -> float:
        return 2 * np.pi

    @cached_property
    def _polar(self) -> list[Callable[[np.ndarray], np.ndarray]]:
        """The radius and its first two derivatives as functions of the angle."""
        if isinstance(self.radius, sympy.Basic):
            formula = cast("sympy.Expr", self.radius)
            symbol = next(iter(formula.free_symbols), sympy.Symbol("theta", real=True))
            return [as_function(sympy.diff(formula, symbol, k), [symbol]) for k in range(3)]  # type: ignore[list-item]
        radius = self.radius

        def values(angle: np.ndarray) -> np.ndarray:
            answer = np.asarray(radius(angle), dtype=float)  # type: ignore[operator]
            if answer.shape not in ((), angle.shape):
                raise InputError(
                    f"radius returned shape {answer.shape} for {len(angle)} angles. Return one radius each."
                )
            return np.broadcast_to(answer, angle.shape)

        # positions come from the function itself, only derivatives from a spline through it
        angle = np.linspace(0, 2 * np.pi, 4097)
        samples = np.append(values(angle[:-1]), values(angle[:1]))
        if not np.isfinite(samples).all():
            return [values]
        spline = make_interp_spline(angle, samples, k=5, bc_type="periodic")
        slopes = [spline.derivative(k) for k in (1, 2)]
        return [values, *[lambda t, s=s: s(np.mod(t, 2 * np.pi)) for s in slopes]]

    def _curve(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        r, dr, ddr = (f(t) for f in self._polar)
        cos, sin = np.cos(t), np.sin(t)
        c = np.stack([r * cos, r * sin], axis=1) + self.center
        d = np.stack([dr * cos - r * sin, dr * sin + r * cos], axis=1)
        dd = np.stack([(ddr - r) * cos - 2 * dr * sin, (ddr - r) * sin + 2 * dr * cos], axis=1)
        return c, d, dd

    def contains(self, points) -> np.ndarray:
        away = self.check_points(points) - self.center
        angle = np.mod(np.arctan2(away[:, 1], away[:, 0]), 2 * np.pi)
        return np.hypot(away[:, 0], away[:, 1]) <= self._polar[0](angle) + 1e-12 * self.size


@dataclass(frozen=True, eq=False)
class Curve(Loop):
    """The inside of the smooth closed curve (periodic cubic spline) through points (m, 2), in either direction.

    >>> angle = 2 * np.pi * np.arange(40) / 40
    >>> round(Curve(np.stack([np.cos(angle), np.sin(angle)], axis=1)).volume() / np.pi, 5)
    1.0
    """

    points: np.ndarray | Sequence

    def __post_init__(self):
        points = check_loop(self.points, "a curve")
        if area(points) < 0:
            points = points[::-1]
        object.__setattr__(self, "points", points)
        _, table = self._table
        if crosses_itself(table):
            raise InputError("the curve through these points crosses itself. Give the points in order along the curve.")

    @cached_property
    def _spline(self) -> CubicSpline:
        closed = np.concatenate([self.points, self.points[:1]])  # type: ignore[index]
        chord = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(closed, axis=0), axis=1)))
        return CubicSpline(chord, closed, bc_type="periodic")

    @property
    def _period(self) -> float:
        return float(self._spline.x[-1])

    def _curve(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self._spline(t), self._spline(t, 1), self._spline(t, 2)
