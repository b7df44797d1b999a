"""α, β, γ of the theorem over the whole parameter box: bounds that hold everywhere, not only where one has looked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from parasol.errors import InputError, NoCertificate
from parasol_lab.theorem.construction.system import LOST, System
from parasol_lab.theorem.construction.theta import largest

_SLACK = 0.03  # a bound may be this much worse than the best value seen
_MOST_CELLS = 200_000
_MOST_CORNERS = 64
_SINGULAR = 1e-10  # σ_min below this part of σ_max is rounding
_ROUNDING = 1e-9  # relative, added to every bound
_BATCH = 2048


@dataclass(frozen=True)
class Stability:
    """β ≤ σ(B_μ) ≤ α and ||f_μ|| ≤ γ for all μ in the box; proven up to rounding, by cells of the box.

    `smallest` is the least σ_min that was computed and `mu` where: β is 3 % below it at most, if the cells sufficed.
    """

    alpha: float
    beta: float
    gamma: float
    smallest: float
    mu: tuple[float, ...]
    size: float  # the largest ||c_μ|| seen: what accuracy is relative to
    n_cells: int

    @property
    def kappa(self) -> float:
        """α / β."""
        return self.alpha / self.beta

    def scaled(self, of_operator: float, of_load: float) -> Stability:
        """The constants after B and f are divided by these numbers."""
        alpha, beta, smallest = self.alpha / of_operator, self.beta / of_operator, self.smallest / of_operator
        return replace(self, alpha=alpha, beta=beta, smallest=smallest, gamma=self.gamma / of_load)


def stability(system: System) -> Stability:
    """Bounds of B and f over the box, by cutting it into cells until the bounds are 3 % sharp.

    In a cell with centre m, B_μ = (I + E) B_m with E = Σ_j (ξ_j − m_j) B_j B_m⁺, so that σ_min(B_μ) ≥ (1 − ||E||) σ_min(B_m);
    ||E||, ||B|| and ||f|| are convex in ξ, hence largest at corners.
    """
    gamma = _gamma(system)
    if gamma == 0:
        raise InputError(
            "the right-hand side is zero for all parameters, and so is the solution: there is nothing to approximate. "
            "Give the equation or its boundary a value."
        )
    if system.constant:
        values = np.linalg.svd(system.operators[0], compute_uv=False)
        lost = LOST * float(system.term_norms(np.zeros((1, len(system.loads) - 1)))[0][0])
        if values[-1] <= _SINGULAR * values[0] + lost:
            raise NoCertificate(_rank_deficient("all parameters", values[-1] / values[0]))
        top, bottom = float(values[0]) + lost, float(values[-1]) - lost
        return Stability(top, bottom, gamma, bottom, (), _size(system), 1)
    small = _few_rows(system)
    alpha, _, _ = _largest(system, lambda cells: _norms(small, cells))
    inverse, (seen, mu), count = _largest(system, lambda cells: _inverse_smallest(small, cells, alpha))
    lost = LOST * _summed(system)[0]
    beta = (1 - _ROUNDING) / inverse - lost
    if beta <= 0:
        raise NoCertificate(
            f"rounding hides whether the reduced operator has independent columns at {_named(system, mu)}: its terms are {lost / LOST:.1e} "
            f"and cancel, its smallest singular value is {1 / seen:.1e}. Write the equation so that large terms do not cancel."
        )
    return Stability(
        alpha=alpha * (1 + _ROUNDING) + lost,
        beta=beta,
        gamma=gamma,
        smallest=1.0 / seen,
        mu=tuple(mu.tolist()),
        size=_size(system),
        n_cells=count,
    )


@dataclass(frozen=True, eq=False)
class _Cells:
    """Boxes of parameters (n, n_scalars), their centres, and boxes of coordinates that enclose what they map to."""

    mus: np.ndarray
    middle: np.ndarray  # (n, n_coordinates)
    half: np.ndarray
    open: np.ndarray  # (n,) bool: nothing is known about what they map to

    @classmethod
    def of(cls, system: System, low: np.ndarray, high: np.ndarray) -> _Cells:
        space = system.parameters
        bottom, top = space.from_unit(low), space.from_unit(high)
        below, above = bottom[:, system.linear] - system.centre, top[:, system.linear] - system.centre
        ends = [*zip(below.T, above.T, strict=True)] + [f.enclose(bottom, top) for f in system.functions]
        first, last = (np.column_stack(side) for side in zip(*ends, strict=True))
        mus = space.from_unit((low + high) / 2)
        open_ = ~np.all(np.isfinite(first) & np.isfinite(last), axis=1)  # a quotient may have a pole there
        first[open_] = last[open_] = system.coordinates(mus[open_])
        return cls(mus, (first + last) / 2, (last - first) / 2, open_)

    def corners(self, used: np.ndarray) -> np.ndarray | None:
        """Directions (n_corners, n_used) of ±1 to the corners, opposite ones once; None where there are too many."""
        n = len(used)
        if 2**n > _MOST_CORNERS:
            return None
        return np.array(list(product((1.0,), *[(1.0, -1.0)] * (n - 1))))


def _largest(system: System, evaluate: Callable[[_Cells], tuple[np.ndarray, np.ndarray]]):
    """A bound of the largest value over the box, the largest value seen with its μ, and the number of cells."""
    n = len(system.parameters.scalars)
    low, high = np.zeros((1, n)), np.ones((1, n))
    best, where, settled, count = -np.inf, np.empty(n), -np.inf, 0
    while len(low):
        count += len(low)
        cells = _Cells.of(system, low, high)
        parts = [evaluate(_take(cells, rows)) for rows in np.array_split(np.arange(len(low)), 1 + len(low) // _BATCH)]
        seen, bound = (np.concatenate(column) for column in zip(*parts, strict=True))
        bound[cells.open] = np.inf
        top = int(np.argmax(seen))
        if seen[top] > best:
            best, where = float(seen[top]), cells.mus[top]
        open_ = bound > (1 + _SLACK) * best
        settled = max(settled, float(np.max(bound[~open_], initial=-np.inf)))
        if count > _MOST_CELLS and np.any(open_):
            top = int(np.argmax(bound))
            if np.isfinite(bound[top]):  # proven, if less sharp
                return max(settled, float(bound[top])), (best, where), count
            raise NoCertificate(
                f"{count} cells of the parameter box are not enough to prove that the reduced operator has independent "
                f"columns, for instance at {_named(system, cells.mus[top])}. Narrow the ranges, or use fewer parameters or modes."
            )
        low, high = _halves(low[open_], high[open_])
    return settled, (best, where), count


def _take(cells: _Cells, rows: np.ndarray) -> _Cells:
    return _Cells(cells.mus[rows], cells.middle[rows], cells.half[rows], cells.open[rows])


def _halves(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each cell cut across its longest side, the first of several."""
    rows, axis = np.arange(len(low)), np.argmax(high - low, axis=1) if len(low) else np.empty(0, dtype=int)
    middle = ((low + high) / 2)[rows, axis]
    left, right = high.copy(), low.copy()
    left[rows, axis], right[rows, axis] = middle, middle
    return np.concatenate([low, right]), np.concatenate([left, high])


def _norms(small: System, cells: _Cells) -> tuple[np.ndarray, np.ndarray]:
    """||B|| at the centres, and its largest value over the cells."""
    seen = np.linalg.norm(small.operator(small.coordinates(cells.mus)), 2, axis=(1, 2))
    half = cells.half[:, small.touched]
    signs = cells.corners(small.touched)
    if signs is None:
        slack = half @ np.linalg.norm(small.operators[1:], 2, axis=(1, 2))
        return seen, np.linalg.norm(small.operator(cells.middle), 2, axis=(1, 2)) + slack
    out = np.zeros(len(seen))
    for sign in (*signs, *-signs):
        xi = cells.middle.copy()
        xi[:, small.touched] += sign * half
        out = np.maximum(out, np.linalg.norm(small.operator(xi), 2, axis=(1, 2)))
    return seen, out


def _inverse_smallest(small: System, cells: _Cells, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """1 / σ_min(B) at the centres, and its largest value over the cells."""
    seen = np.linalg.svd(small.operator(small.coordinates(cells.mus)), compute_uv=False)[:, -1]
    worst = int(np.argmin(seen))
    if seen[worst] <= _SINGULAR * alpha:
        raise NoCertificate(_rank_deficient(_named(small, cells.mus[worst]), seen[worst] / alpha))
    _, s, vt = np.linalg.svd(small.operator(cells.middle), full_matrices=False)
    bottom = np.maximum(s[:, -1], np.finfo(float).tiny)
    # B_j B_m⁺ has the norm of B_j V S⁻¹
    back = vt.transpose(0, 2, 1) / np.maximum(s, np.finfo(float).tiny)[:, None, :]
    half = cells.half[:, small.touched]
    signs = cells.corners(small.touched)
    if signs is None:
        norms = np.linalg.norm(small.operators[None, 1:] @ back[:, None], 2, axis=(2, 3))
        change = np.sum(half * norms, axis=1)
    else:
        change = np.zeros(len(half))
        for sign in signs:
            step = np.tensordot(sign * half, small.operators[1:], axes=1)
            change = np.maximum(change, np.linalg.norm(step @ back, 2, axis=(1, 2)))
    with np.errstate(divide="ignore"):
        return 1.0 / seen, 1.0 / (bottom * np.maximum(1.0 - change, 0.0))


def _summed(system: System) -> tuple[float, float]:
    """A bound over the box of what the terms of B and of f add up to in norms."""
    ends = np.asarray(system.parameters.bounds)[:, system.linear] - system.centre
    most = np.array(
        [*np.abs(ends).max(axis=0), *[largest(function, system.parameters) for function in system.functions]]
    )
    of_operator, of_load = system.term_norms(most[None])
    return float(of_operator[0]), float(of_load[0])


def _gamma(system: System) -> float:
    """A bound of ||f|| over the box; values of function parameters have none."""
    if system.n_parameters > len(system.parameters.scalars):
        return np.inf
    small = _few_load_rows(system)
    used = np.flatnonzero(np.any(small[1:] != 0, axis=1))
    if not len(used):
        return float(np.linalg.norm(small[0])) * (1 + _ROUNDING)

    def evaluate(cells: _Cells) -> tuple[np.ndarray, np.ndarray]:
        def norm(xi: np.ndarray) -> np.ndarray:
            return np.linalg.norm(small[0] + xi @ small[1:], axis=1)

        signs = cells.corners(used)
        if signs is None:
            return norm(system.coordinates(cells.mus)), norm(cells.middle) + cells.half @ np.linalg.norm(
                small[1:], axis=1
            )
        out = np.zeros(len(cells.mus))
        for sign in (*signs, *-signs):
            xi = cells.middle.copy()
            xi[:, used] += sign * cells.half[:, used]
            out = np.maximum(out, norm(xi))
        return norm(system.coordinates(cells.mus)), out

    return _largest(system, evaluate)[0] * (1 + _ROUNDING) + LOST * _summed(system)[1]


def _size(system: System) -> float:
    """The largest ||c|| at the corners and at a lattice: no more than the largest of all."""
    space = system.parameters
    n_scalars = len(space.scalars)
    if system.n_parameters > n_scalars:
        return 1.0  # values of functions have no bound; what is linear in them is exact anyway
    count = max(2, round(1000 ** (1 / n_scalars)))
    many = count**n_scalars > _MOST_CELLS
    mus = (
        space.from_unit(np.random.default_rng(0).random((1000, n_scalars)))
        if many
        else space.grid(*[count] * n_scalars)
    )
    return float(np.max(np.linalg.norm(system.coefficients(mus), axis=1)))


def _few_rows(system: System) -> System:
    """The same B up to an orthogonal factor from the left, in at most n_modes rows per term: singular values are the same."""
    if system.n_rows <= system.operators.shape[0] * system.n_modes:
        return system
    triangle = np.linalg.qr(np.hstack(list(system.operators)), mode="r")
    blocks = np.array(np.split(triangle, len(system.operators), axis=1))
    return replace(system, operators=blocks, loads=np.zeros((len(system.loads), blocks.shape[1])))


def _few_load_rows(system: System) -> np.ndarray:
    """The loads up to an orthogonal factor, in no more rows than there are loads."""
    if system.n_rows <= len(system.loads):
        return system.loads
    return np.asarray(np.linalg.qr(system.loads.T, mode="r")).T


def _named(system: System, mu: np.ndarray) -> str:
    return ", ".join(f"{name}={value:.6g}" for name, value in zip(system.parameters.names, mu, strict=False))


def _rank_deficient(where: str, ratio: float) -> str:
    return (
        f"the reduced operator has dependent columns at {where}: its smallest singular value is {ratio:.1e} of the largest, "
        "so beta = 0. Narrow the ranges of the parameters, or use fewer modes."
    )
