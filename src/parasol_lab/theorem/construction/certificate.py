"""A proof over the whole box that a polynomial is near c(μ): residuals as Chebyshev series, bounded on cells of the box.

C(x) c(x) = h(x) with C = BᵀB and h = Bᵀf. Where coefficients of the equation are quotients of polynomials, B and f are
multiplied by a common denominator D(x) ≠ 0: least squares do not change, and all of it is polynomial. So is the residual
s = h − C p of a polynomial p, and on a cell with series C = Σ_k C_k T_k, s = Σ_k s_k T_k in the cell's own coordinates

    ‖c − p‖ ≤ Σ_k ‖C_0⁻¹ s_k‖ / (1 − q),   q = Σ_{k≠0} ‖C_0⁻¹ C_k‖ + ‖I − C_0⁻¹ C_0‖ < 1,

because |T_k| ≤ 1. Cells are halved until that is small enough. No constant of the whole box enters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev

from parasol.errors import NoCertificate
from parasol_lab.theorem.construction.system import LOST, System
from parasol_lab.theorem.construction.theta import Rational, Terms, middle_and_half

MOST_PARAMETERS = 4
_MOST_CELLS = 6_000  # series that were proven needed 1600 at most; near a pole more cost minutes and proved nothing
_TRIMMED = 1e-4  # of the error allowed: what trailing terms of a series are replaced by their norms for
_CONTRACTION = 0.5  # cells with a larger q are halved along the axis that q comes from
_NEARLY = {1: 0.95, 2: 0.95, 3: 0.88, 4: 0.8}  # by parameters: of the error allowed, what counts as too large
_ROUNDING = 8 * np.finfo(float).eps  # of the largest values that series are made of, for each of their points


@dataclass(frozen=True, eq=False)
class PolynomialSystem:
    """C and h as Chebyshev series over [−1, 1]^p: `gram` (m_1, …, m_p, d, d) and `right` (m_1, …, m_p, d).

    `terms` are as large as C and h would be if the parts of B and f did not cancel. `lost` is what B and f are off by because the
    terms of the equation were rounded before they were added, and the largest residual, by which it acts on c twice.
    """

    gram: np.ndarray
    right: np.ndarray
    terms: tuple[float, float]
    lost: tuple[float, float, float]

    @property
    def n_axes(self) -> int:
        """p, the number of parameters."""
        return self.right.ndim - 1

    def noise(self, series: np.ndarray) -> float:
        """What rounding may have done to the terms of the residual of p, all together: so much at each point of its grid."""
        right = max(float(np.linalg.norm(self.right, axis=-1).sum()), self.terms[1])
        points = np.prod([m + n for m, n in zip(self.right.shape, series.shape[:-1], strict=False)], dtype=float)
        return _ROUNDING * float(points) * (self._matrices * float(np.linalg.norm(series, axis=-1).sum()) + right)

    def shaken(self, series: np.ndarray) -> tuple[float, float]:
        """What c is off by because B and f are, divided by 1/σ and by 1/σ², σ the least singular value of B.

        c(B + δB, f + δf) − c = B⁺ (δf − δB c) + (BᵀB)⁻¹ δBᵀ (f − B c) to first order.
        """
        of_operator, of_load, residual = self.lost
        return of_operator * float(np.linalg.norm(series, axis=-1).sum()) + of_load, of_operator * residual

    @property
    def gram_noise(self) -> float:
        """What rounding may have done to the terms of C, all together."""
        return _ROUNDING * float(np.prod(self.gram.shape[:-2], dtype=float)) * self._matrices

    @property
    def _matrices(self) -> float:
        return max(float(np.linalg.norm(self.gram, 2, axis=(-2, -1)).sum()), self.terms[0])

    def residual(self, series: np.ndarray) -> np.ndarray:
        """h − C p of a polynomial p (n_1, …, n_p, d) as a series, exact but for rounding."""
        shape = [m + n - 1 for m, n in zip(self.right.shape, series.shape[:-1], strict=False)]
        gram, right, values = (to_values(part, shape) for part in (self.gram, self.right, series))
        return to_series(right - np.einsum("...ij,...j->...i", gram, values), len(shape))


def polynomial_system(system: System) -> PolynomialSystem:
    """The normal equations of a system as polynomials on [−1, 1]^p; c itself is unchanged."""
    n = len(system.parameters.scalars)
    quotients, degree = common_denominator(system)
    shape = 2 * degree + 1
    x = points(shape)
    xi, (middle, half) = system.inside(x), map(np.array, middle_and_half(system.parameters))
    factor = np.ones(len(x))
    for quotient in quotients:
        factor = factor * quotient.below(x, middle, half)
    back = np.linalg.inv(system.back)
    operator, load = factor[:, None, None] * (system.operator(xi) @ back), factor[:, None] * system.load(xi)
    unit = float(np.max(np.abs(factor)))  # nothing but a common scale
    sizes, scale, change = system.term_sizes(x), np.abs(factor / unit), float(np.linalg.norm(back, 2))
    of_operator, of_load = (float(np.max(scale * part)) for part in replace(system, summed=None).term_norms(sizes))
    largest = float(np.max(np.linalg.norm(operator, 2, axis=(1, 2)))) / unit
    loads = float(np.max(np.linalg.norm(load, axis=1))) / unit
    terms = 2 * largest * of_operator * change, largest * of_load + of_operator * change * loads
    rounded = [LOST * float(np.max(scale * part)) for part in system.term_norms(np.abs(xi))]
    c = system.coefficients_inside(x)
    residuals = np.linalg.norm(load - np.einsum("nri,ni->nr", operator, c), axis=1)
    lost = rounded[0] * change, rounded[1], 2 * float(np.max(residuals)) / unit
    gram = np.einsum("nri,nrj->nij", operator, operator) / unit**2
    right = np.einsum("nri,nr->ni", operator, load) / unit**2
    first, second = (to_series(part.reshape(*shape, *part.shape[1:]), n) for part in (gram, right))
    return PolynomialSystem(first, second, terms, lost)


def common_denominator(system: System) -> tuple[list[Rational], np.ndarray]:
    """Functions whose denominators make D, so that D B and D f are polynomials in μ, and the degrees of those in each."""
    n = len(system.parameters.scalars)
    quotients = list({f.denominator: f for f in system.functions if not f.polynomial}.values())
    below = sum((degrees(f.denominator, n) for f in quotients), np.zeros(n, dtype=int))
    each = [below, *[below + (np.arange(n) == j) for j in system.linear]]
    each += [
        below + degrees(f.numerator, n) - (0 if f.polynomial else degrees(f.denominator, n)) for f in system.functions
    ]
    return quotients, np.max(each, axis=0)


def interpolant(system: System, shape) -> np.ndarray:
    """c as a Chebyshev series (n_1, …, n_p, d) that agrees with it at the points of a grid."""
    values = system.coefficients_inside(points(shape))
    return to_series(values.reshape(*shape, -1), len(shape))


def points(shape) -> np.ndarray:
    """Chebyshev points (n, p) of [−1, 1]^p, the last axis fastest."""
    axes = [_points(int(m)) for m in shape]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def grid(system: System, shape) -> np.ndarray:
    """Parameters (n, p) at Chebyshev points of the box, the last axis fastest."""
    bounds = np.asarray(system.parameters.bounds)
    low, high = bounds[0], bounds[1]
    middle, half = (low + high) / 2, (high - low) / 2
    axes = [np.clip(middle[j] + half[j] * _points(m), low[j], high[j]) for j, m in enumerate(shape)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


@dataclass(frozen=True, eq=False)
class Proof:
    """‖c − p‖ ≤ `bound` on the whole box, by so many cells; `refuted` where at some point it is larger, or nearly so."""

    bound: float
    n_cells: int
    refuted: bool


def prove(system: PolynomialSystem, series: np.ndarray, allowed: float) -> Proof:
    """Cover the box by cells on each of which ‖c − p‖ ≤ `allowed`, or find a point where it is not.

    The bound of the proof is the largest over the cells. An error seen that is nearly what is allowed (5 % less for two
    parameters) counts as too large: to prove less would take many cells. Raises NoCertificate where cells do not suffice.
    """
    nearly = _NEARLY[system.n_axes] * allowed
    queue = [
        _Cell(system.gram, system.residual(series), system.noise(series), system.gram_noise, system.shaken(series))
    ]
    worst, count = 0.0, 0
    while queue:
        cell = queue.pop()
        count += 1
        bound, scores, seen = cell.examined(allowed)
        if seen > nearly:
            return Proof(float(seen), count, refuted=True)
        if bound <= allowed:
            worst = max(worst, bound)
            continue
        if count > _MOST_CELLS:
            raise NoCertificate(
                f"{count} cells of the parameter box are not enough to prove the error of a polynomial. Narrow the ranges of the "
                "parameters, or ask for a larger accuracy."
            )
        queue += cell.trimmed(_TRIMMED * allowed).halves(int(np.argmax(scores)))
    return Proof(float(worst), count, refuted=False)


@dataclass(frozen=True, eq=False)
class _Cell:
    """The series of C and s in the coordinates of a cell, what was cut off from that of s, what C is off by, and B and f."""

    gram: np.ndarray
    residual: np.ndarray
    rest: float
    rough: float
    shaken: tuple[float, float]

    def examined(self, allowed: float) -> tuple[float, np.ndarray, float]:
        """A bound of ‖c − p‖, how much each axis contributes to it, and its value at the centre."""
        n, d = self.residual.ndim - 1, self.residual.shape[-1]
        middle = self.gram[(0,) * n]
        try:
            inverse = np.linalg.inv(middle)
        except np.linalg.LinAlgError:
            return np.inf, np.array(self.gram.shape[:n], dtype=float), 0.0
        norms = np.linalg.norm(inverse @ self.gram, 2, axis=(-2, -1))
        norms[(0,) * n] = np.linalg.norm(np.eye(d) - inverse @ middle, 2)
        parts = np.linalg.norm(self.residual @ inverse.T, axis=-1)
        size = float(np.linalg.norm(inverse, 2))
        rest = self.rest * size + 2 * (self.shaken[0] * size**0.5 + self.shaken[1] * size)
        if rest > allowed:
            raise NoCertificate("rounding hides the error of the series. Ask for a larger accuracy.")
        contraction, total = float(norms.sum()) + self.rough * size, float(parts.sum()) + rest
        by_gram, by_residual = (
            np.array([part.sum() - part.take(0, axis=j).sum() for j in range(n)]) for part in (norms, parts)
        )
        if self.rough * size > _CONTRACTION / 2:
            raise NoCertificate("rounding hides the inverse of the operator. Narrow the ranges of the parameters.")
        if contraction > _CONTRACTION:
            return np.inf if contraction >= 1 else total / (1 - contraction), by_gram, 0.0
        at = np.linalg.solve(_central(self.gram, n), _central(self.residual, n))
        return total / (1 - contraction), by_residual / allowed + by_gram, float(np.linalg.norm(at))

    def trimmed(self, negligible: float) -> _Cell:
        """Trailing terms of the residual that matter no more, replaced by their norms."""
        n, series, rest = self.residual.ndim - 1, self.residual, self.rest
        factor = float(np.linalg.norm(np.linalg.pinv(self.gram[(0,) * n]), 2))
        for axis in range(n):
            others = tuple(j for j in range(n) if j != axis)
            norms = np.linalg.norm(series, axis=-1).sum(axis=others)
            tail = np.cumsum(norms[::-1])[::-1]
            kept = max(2, int(np.searchsorted(-tail, -negligible / factor)))
            if kept < len(norms):
                rest += float(tail[kept])
                series = series.take(range(kept), axis=axis)
        return replace(self, residual=series, rest=rest)

    def halves(self, axis: int) -> list[_Cell]:
        """Two cells, cut across an axis."""
        return [
            replace(self, gram=_restricted(self.gram, axis, side), residual=_restricted(self.residual, axis, side))
            for side in (0, 1)
        ]


def _central(series: np.ndarray, n: int) -> np.ndarray:
    """The value of a series at the centre: T_k(0) = 1, 0, −1, 0, …"""
    for _ in range(n):
        signs = np.array([1.0, 0.0, -1.0, 0.0])[np.arange(len(series)) % 4]
        series = np.tensordot(signs, series, axes=1)
    return series


def _restricted(series: np.ndarray, axis: int, side: int) -> np.ndarray:
    """The series on one half of an axis, in that half's own coordinates."""
    matrix = _half(series.shape[axis])[side]
    return np.moveaxis(np.tensordot(matrix, series, axes=(1, axis)), 0, axis)


@lru_cache(maxsize=256)
def _half(n: int) -> np.ndarray:
    """The matrices (2, n, n) that give the coefficients of Σ a_k T_k((x ∓ 1)/2)."""
    x = _points(n)
    return np.array([_transform(n) @ chebyshev.chebvander((x + shift) / 2, n - 1) for shift in (-1.0, 1.0)])


@lru_cache(maxsize=256)
def _points(n: int) -> np.ndarray:
    """Chebyshev points of the first kind, symmetric to the last digit."""
    return np.sin(np.pi * (2 * np.arange(n) + 1 - n) / (2 * n))


@lru_cache(maxsize=256)
def _transform(n: int) -> np.ndarray:
    """The matrix from values at the n points to n coefficients."""
    matrix = 2 / n * chebyshev.chebvander(_points(n), n - 1).T
    matrix[0] /= 2
    return matrix


def to_series(values: np.ndarray, n_axes: int) -> np.ndarray:
    """Values on a grid of Chebyshev points to coefficients, along the first axes."""
    for axis in range(n_axes):
        values = np.moveaxis(np.tensordot(_transform(values.shape[axis]), values, axes=(1, axis)), 0, axis)
    return values


def to_values(series: np.ndarray, shape) -> np.ndarray:
    """Coefficients to values on a grid of `shape`, along the first axes."""
    for axis, m in enumerate(shape):
        matrix = chebyshev.chebvander(_points(m), series.shape[axis] - 1)
        series = np.moveaxis(np.tensordot(matrix, series, axes=(1, axis)), 0, axis)
    return series


def degrees(terms: Terms, n: int) -> np.ndarray:
    """The degree of a polynomial in each of n parameters."""
    return np.max(
        [np.zeros(n, dtype=int), *[np.array(exponents[:n], dtype=int) for exponents, c in terms if c]], axis=0
    )
