"""How far c(μ) is analytic beyond the box, proven: ellipses around each parameter's range.

B = B_0 + Σ_i ξ_i B_i and f = f_0 + Σ_i ξ_i f_i, where ξ_i are polynomials or quotients of polynomials in x ∈ [−1, 1]^p. With
|z|₁ = |Re z| + |Im z|, let w_j(x) be how far, in |·|₁, points of the ellipse with half axes b_j and a_j = √(1 + b_j²) are from the
point x_j of [−1, 1] that is nearest to them, and v_i(x) a bound of |ξ_i(ζ) − ξ_i(x)|₁ for |ζ_j − x_j|₁ ≤ w_j(x). If

    Σ_i v_i(x) ‖B_i B(x)⁺‖ ≤ τ < 1  and  Σ_i v_i(x) ‖f_i‖ ≤ φ < ∞  for all x,

then c is analytic and ‖c‖ ≤ (1 + τ) (γ + φ) / ((1 − τ)² β) in the product of the ellipses (docs/theorem.md, section 8). The v_i are
made of Taylor coefficients at centres of cells that cover the box. A pole that only f has ends the ellipses by φ: they are tried
with several limits of it, as φ enters by its logarithm and the axes by their inverse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import asinh, comb, expm1, inf, log1p, prod, sinh

import numpy as np

from parasol.errors import InputError
from parasol_lab.theorem.construction.certificate import common_denominator
from parasol_lab.theorem.construction.stability import Stability
from parasol_lab.theorem.construction.system import System
from parasol_lab.theorem.construction.theta import Local, Terms, denominator_range, middle_and_half

_CONTRACTIONS = (0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 0.95)  # τ
_LOADS = (3.0, 10.0, 100.0)  # φ / γ at most, where f limits the axes
_CHANGES = (0.2, 0.1, 0.05, 0.025)  # of B B_m⁺ and of f within a cell: as little as so many cells allow
_MOST_CELLS = 5_000
_BATCH = 256
_LARGEST_AXIS = 4.0
_STEPS = 40  # of bisections
_ROUNDING = 1e-12  # relative


@dataclass(frozen=True)
class Ellipses:
    """Half the minor axes b_j around [−1, 1] of each parameter, and a bound of ‖y‖, c = T y, in their product."""

    axes: tuple[float, ...]
    largest: float
    n_cells: int


def ellipses(system: System, constants: Stability) -> list[Ellipses]:
    """Axes for several τ and φ, by cells or, where those do not suffice, from α, β, γ and degrees alone.

    None where values of functions are among the parameters, or where c is not proven to be analytic beyond rounding.
    """
    if system.n_parameters > len(system.parameters.scalars):
        return []
    if not len(system.loads[1:]):  # c is the same everywhere
        p = len(system.parameters.scalars)
        return [Ellipses((_LARGEST_AXIS,) * p, constants.gamma / constants.beta, 0)]
    cells = _covered(system, constants.gamma)
    candidates = (
        [] if cells is None else [each for tau in _CONTRACTIONS for each in _axes(system, cells, constants, tau)]
    )
    if not candidates:
        candidates = [each for tau in _CONTRACTIONS for each in explicit_ellipses(system, constants, tau)]
    return [each for each in candidates if min(each.axes) > np.finfo(float).eps]  # an axis below rounding says nothing


def explicit_ellipses(system: System, constants: Stability, tau: float) -> list[Ellipses]:
    """Axes with Π_j T_{g_j}(1 + w_j) ≤ 1 + τ β/α where B and f have degrees g_j, after multiplication by a common denominator.

    By V. A. Markov derivatives of a polynomial bounded by α are at most α T_g⁽ᵏ⁾(1), so that it changes by at most
    α (Π_j T_{g_j}(1 + w_j) − 1). None where the denominator is not proven to have one sign.
    """
    quotients, degrees = common_denominator(system)
    try:
        ranges = [denominator_range(function, system.parameters) for function in quotients]
    except InputError:
        return []
    least, most = (prod(pick(map(abs, ends)) for ends in ranges) for pick in (min, max))
    alpha, beta, gamma = constants.alpha * most, constants.beta * least, constants.gamma * most
    used = int(np.count_nonzero(degrees))
    share = expm1(
        log1p(tau * beta / alpha) / max(1, used)
    )  # T_g(1 + w) − 1 = 2 sinh²(g asinh √(w/2)): digits of small w stay
    widths = [2 * sinh(asinh((share / 2) ** 0.5) / g) ** 2 * (1 - _ROUNDING) if g else inf for g in degrees.tolist()]
    axes = [min(w, 2.0) if w < inf else _LARGEST_AXIS for w in widths]  # up to 2, w(x) ≤ b
    return [Ellipses(tuple(axes), (1 + tau) * gamma * (1 + tau * beta / alpha) / ((1 - tau) ** 2 * beta), 1)]


def spread(b: np.ndarray | float, x: np.ndarray | float) -> np.ndarray:
    """w: how far points of an ellipse are in |·|₁ from their nearest point of [−1, 1], at least |x| from its middle.

    Above x that is the height b √(1 − x²/a²); beyond the ends a cos t − 1 + b sin t ≤ √(1 + 2 b²) − 1.

    >>> spread(0.75, np.array([0.0, 1.0])).round(4)
    array([0.75  , 0.4577])
    """
    height = b * np.sqrt(np.maximum(1 - np.square(x) / (1 + np.square(b)), 0.0))
    return np.maximum(height, np.sqrt(1 + 2 * np.square(b)) - 1)


@dataclass(frozen=True, eq=False)
class _Quotient:
    """A coordinate ξ = N / D of x by its coefficients: N and D (g_1 + 1, …, g_p + 1) about the centre of the box, or of cells."""

    above: np.ndarray
    below: np.ndarray

    @classmethod
    def of(cls, local: Local) -> _Quotient:
        return cls(_dense(local.numerator), _dense(local.denominator))

    def at(self, centres: np.ndarray) -> _Quotient:
        """|Taylor coefficients| (n_cells, g_1 + 1, …) at centres (n_cells, p)."""
        return _Quotient(np.abs(_taylor(self.above, centres)), np.abs(_taylor(self.below, centres)))

    def changes(self, half: np.ndarray, width: np.ndarray) -> np.ndarray:
        """v (n_cells,): |ξ(ζ) − ξ(x)|₁ at most, for |x_j − m_j| ≤ half_j and |ζ_j − x_j|₁ ≤ width_j; infinite if D may vanish.

        ΔP = Σ_k a_k ((η + δ)^k − η^k) ≤ Σ_k |a_k| ((half + width)^k − half^k), and Δξ = (ΔN − ξ ΔD) / (D + ΔD).
        """
        first = tuple([slice(None)] + [0] * half.shape[1])
        parts = []
        for absolute in (self.above, self.below):
            rest = absolute.copy()
            rest[first] = 0.0  # what does not change: its digits are not lost in the difference
            near = _majorant(rest, half)
            parts.append((absolute[first], near, _majorant(rest, half + width) - near))
        (above, top, of_above), (below, bottom, of_below) = parts
        least = below - bottom  # |D(x)| ≥ |D(m)| − Σ_{k≠0} |a_k| half^k
        with np.errstate(divide="ignore", invalid="ignore"):
            out = (of_above + (above + top) / least * of_below) / (least - of_below)
        return np.where((least > 0) & (least > of_below), out, inf)


@dataclass(frozen=True, eq=False)
class _Cover:
    """Cells of [−1, 1]^p with centres and half widths (n, p), coordinates there, and ‖B_i B(x)⁺‖ at most (n, n_coordinates)."""

    centres: np.ndarray
    half: np.ndarray
    norms: np.ndarray
    coordinates: tuple[_Quotient, ...]

    def changes(self, axes: np.ndarray) -> np.ndarray:
        """v_i on all cells, (n, n_coordinates)."""
        nearest = np.maximum(np.abs(self.centres) - self.half, 0.0)
        width = spread(axes, nearest)
        return np.stack([c.changes(self.half, width) for c in self.coordinates], axis=1)


def _axes(system: System, cells: _Cover, constants: Stability, tau: float) -> list[Ellipses]:
    """Axes with Σ_i v_i ‖B_i B⁺‖ ≤ τ: each alone as large as τ / p allows, then all by one factor; smaller where f needs it."""
    p, loads = cells.half.shape[1], np.linalg.norm(system.loads[1:], axis=1)[None]

    def of_operator(axes: np.ndarray) -> float:
        return float(np.max(_weighted(cells.changes(axes), cells.norms)))

    def of_load(axes: np.ndarray) -> float:
        return float(np.max(_weighted(cells.changes(axes), loads)))

    unit = np.array([_largest(lambda b, j=j: of_operator(b * np.eye(p)[j]) <= tau / p) for j in range(p)])
    factor = _largest(lambda s: of_operator(np.minimum(s * unit, _LARGEST_AXIS)) <= tau)
    axes = np.minimum(factor * unit, _LARGEST_AXIS)
    tried, more = [axes], of_load(axes)
    if not more <= min(_LOADS) * constants.gamma:
        tried = [_within(of_load, limit * constants.gamma, axes) for limit in _LOADS] + ([axes] if more < inf else [])
    return [
        Ellipses(
            tuple(each.tolist()),
            (1 + tau) * (constants.gamma + of_load(each)) / ((1 - tau) ** 2 * constants.beta),
            len(cells.half),
        )
        for each in tried
    ]


def _within(change: Callable[[np.ndarray], float], limit: float, most: np.ndarray) -> np.ndarray:
    """Axes ≤ `most` with a change ≤ limit: each alone as large as its share allows, then all by one factor."""
    p = len(most)
    unit = (
        np.array([_largest(lambda s, j=j: change(s * most * np.eye(p)[j]) <= limit / p, 1.0) for j in range(p)]) * most
    )
    factor = _largest(lambda s: change(np.minimum(s * unit, most)) <= limit)
    return np.minimum(factor * unit, most)


def _weighted(changes: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """Σ_i v_i norms_i; a coordinate that has no effect may be infinite."""
    return np.sum(np.where(norms > 0, changes, 0.0) * norms, axis=1)


def _largest(fits: Callable[[float], bool], most: float = _LARGEST_AXIS) -> float:
    low, high = 0.0, most
    if fits(high):
        return high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


@lru_cache(maxsize=8)
def _covered(system: System, gamma: float) -> _Cover | None:
    """Cells on which B and f change as little as is affordable, or None if even the coarsest are too many."""
    best = None
    for change in _CHANGES:
        cover = _cells(system, change, gamma)
        if cover is None:
            break
        best = cover
    return best


def _cells(system: System, change: float, gamma: float) -> _Cover | None:
    """Cells on each of which B(x) = (I + E) B(m) with ‖E‖ ≤ change, so that ‖B_i B(x)⁺‖ ≤ ‖B_i B(m)⁺‖ / (1 − ‖E‖).

    What is not affine in the load changes by γ times `change` at most, so that its own poles seem hardly nearer than they are.
    """
    p, loads = len(system.parameters.scalars), np.linalg.norm(system.loads[1:], axis=1)[None] / gamma
    loads[:, : len(system.linear)] = 0.0
    coordinates = [_Quotient.of(local) for local in _coordinates(system)]
    queue, done, count = [(np.zeros((1, p)), np.ones((1, p)))], [], 1
    while queue:
        middles, halves = queue.pop()
        here = [c.at(middles) for c in coordinates]
        norms = _norms(system, middles, len(coordinates))
        total = _changed(here, norms, halves)
        small = np.maximum(total, _changed(here, loads, halves)) <= change
        done.append((middles[small], halves[small], norms[small] / (1 - total[small])[:, None]))
        count += int(np.sum(~small))
        if count > _MOST_CELLS:
            return None
        each = np.stack(
            [np.maximum(*[_changed(here, part, halves * np.eye(p)[j]) for part in (norms, loads)]) for j in range(p)],
            axis=1,
        )[~small]
        axis = np.argmax(np.where(np.isinf(each), 1e300 * halves[~small], each), axis=1)
        parts = _halved(middles[~small], halves[~small], axis)
        queue += [tuple(part[i : i + _BATCH] for part in parts) for i in range(0, len(parts[0]), _BATCH)]
    centres, half, norms = (np.concatenate(parts) for parts in zip(*done, strict=True))
    return _Cover(centres, half, norms, tuple(c.at(centres) for c in coordinates))


def _norms(system: System, middles: np.ndarray, n_coordinates: int) -> np.ndarray:
    """‖B_i B(m)⁺‖ = ‖B_i R⁻¹‖ with B(m) = Q R, (n, n_coordinates)."""
    triangles = np.asarray(np.linalg.qr(system.operator(system.inside(middles)), mode="r"))
    out = np.zeros((len(middles), n_coordinates))
    for i, operator in zip(system.touched, system.operators[1:], strict=True):
        parts = np.linalg.solve(triangles.transpose(0, 2, 1), operator.T[None])
        out[:, i] = np.linalg.norm(parts, 2, axis=(1, 2))
    return out


def _changed(coordinates: list[_Quotient], norms: np.ndarray, width: np.ndarray) -> np.ndarray:
    """A bound of ‖(B(x) − B(m)) B(m)⁺‖ or of ‖f(x) − f(m)‖ / γ for |x − m| ≤ width; infinite where a denominator may vanish."""
    values = np.stack([c.changes(np.zeros_like(width), width) for c in coordinates], axis=1)
    return np.where(np.any(np.isinf(values), axis=1), inf, _weighted(values, norms))


def _halved(middles: np.ndarray, halves: np.ndarray, axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows, halves = np.arange(len(axis)), halves.copy()
    halves[rows, axis] /= 2
    step = np.zeros_like(middles)
    step[rows, axis] = halves[rows, axis]
    return np.concatenate([middles - step, middles + step]), np.concatenate([halves, halves])


def _coordinates(system: System) -> list[Local]:
    """All coordinates in terms of x ∈ [−1, 1]^p."""
    p, (middle, half) = len(system.parameters.scalars), middle_and_half(system.parameters)
    one: Terms = (((0,) * p, 1.0),)
    from_centre = np.array(middle)[system.linear] - system.centre
    entries = [
        (((0,) * p, constant), (tuple(int(i == j) for i in range(p)), half[j]))
        for j, constant in zip(system.linear.tolist(), from_centre.tolist(), strict=True)
    ]
    return [*[Local(terms, one, middle, half) for terms in entries], *[f.about for f in system.functions]]


def _dense(terms: Terms) -> np.ndarray:
    """Coefficients by exponents (g_1 + 1, …, g_p + 1)."""
    out = np.zeros(np.max([exponents for exponents, _ in terms], axis=0) + 1)
    for exponents, coefficient in terms:
        out[exponents] += coefficient
    return out


def _taylor(coefficients: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Coefficients about each centre (n, p) of a polynomial given about 0: (n, g_1 + 1, …, g_p + 1)."""
    out = np.broadcast_to(coefficients, (len(centres), *coefficients.shape))
    for j, size in enumerate(coefficients.shape):
        powers = centres[:, j, None] ** np.arange(size)  # (n, size)
        matrix = np.zeros((len(centres), size, size))
        for k in range(size):
            for e in range(k, size):
                matrix[:, k, e] = comb(e, k) * powers[:, e - k]
        out = np.moveaxis(np.einsum("nke,ne...->nk...", matrix, np.moveaxis(out, 1 + j, 1)), 1, 1 + j)
    return out


def _majorant(absolute: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """Σ_k |a_k| r^k, (n,)."""
    out = absolute
    for j in reversed(range(radii.shape[1])):
        powers = radii[:, j, None] ** np.arange(out.shape[-1])
        out = np.einsum("n...k,nk->n...", out, powers)
    return out
