"""Sparse differentiation matrices from stencil weights."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from parasol.checks import ParasolWarning
from parasol.errors import UnsuitableNodes
from parasol.space.kernels import PHS, MultiIndex, n_monomials
from parasol.space.neighbours import Cloud
from parasol.space.stencils import Scheme, default_scheme, stencil_weights

_NARROW = 0.04  # by which such a 1 may be off
ILL_CONDITIONED = 1e12  # estimated; a known answer then comes back with fewer than four digits


@dataclass(frozen=True)
class StencilReport:
    """How well conditioned the local systems were."""

    n_stencils: int
    n_ill_conditioned: int
    median_condition: float
    worst_condition: float

    @classmethod
    def of(cls, condition: np.ndarray) -> StencilReport:
        """The report of the stencils with these (estimated) condition numbers."""
        if len(condition) == 0:
            return cls(0, 0, 0.0, 0.0)
        ill = int(np.count_nonzero(condition > ILL_CONDITIONED))
        return cls(len(condition), ill, float(np.median(condition)), float(np.max(condition)))


@dataclass(frozen=True, eq=False)
class Derivatives:
    """Matrices D^a of shape (n_centers, n_points), one per multi-index, and the condition of each stencil's system."""

    matrices: Mapping[MultiIndex, sparse.csr_array]
    condition: np.ndarray  # (n_centers,)

    def __getitem__(self, index: MultiIndex) -> sparse.csr_array:
        return self.matrices[index]


def differentiate(
    points: np.ndarray | Cloud, centers: np.ndarray, derivatives: Sequence[MultiIndex], scheme: Scheme
) -> Derivatives:
    """Matrices that take values at `points` to the derivatives D^a at `centers`.

    A `Cloud` of points knows its domain: neighbours are then taken across periodic faces and not through walls. All
    multi-indices of one center share a stencil and one factorisation; the index (0, ..., 0) is interpolation.
    Ill-conditioned stencils are reported by a warning, singular ones refused.

    >>> from parasol.space.kernels import PHS
    >>> x = np.linspace(0, 1, 11)[:, None]
    >>> d = differentiate(x, x, [(1,)], Scheme(PHS(3), 2, 5))
    >>> np.allclose(d[(1,)] @ x[:, 0] ** 2, 2 * x[:, 0])
    True
    """
    cloud = points if isinstance(points, Cloud) else Cloud(points)
    size, n_points = scheme.stencil_size, len(cloud.points)
    if size > n_points:
        raise UnsuitableNodes(
            f"stencils of {size} nodes need more than the {n_points} nodes there are. Use more nodes, or smaller stencils."
        )
    columns, distance = cloud.nearest(centers, size + (size < n_points))
    count = _whole_shells(distance, size, n_monomials(centers.shape[1], scheme.degree))
    _warn_of_leaks(distance, count, size)
    columns = columns[:, :size].astype(np.int32)
    weights = np.zeros((len(centers), len(derivatives), size))
    condition = np.empty(len(centers))
    for n in np.unique(count):
        here = np.flatnonzero(count == n) if len(np.unique(count)) > 1 else slice(None)
        weights[here, :, :n], condition[here] = _weights(cloud, centers[here], columns[here, :n], derivatives, scheme)
    simple = simpler(scheme, max(sum(a) for a in derivatives))
    near = _near_singular(cloud, centers, distance, simple.stencil_size) if simple is not scheme else np.empty(0, int)
    if len(near):
        weights[near] = 0.0
        k = simple.stencil_size
        weights[near, :, :k], condition[near] = _weights(cloud, centers[near], columns[near, :k], derivatives, simple)
    bad = _broken(weights, derivatives, scheme)
    for attempt in range(1, 7):  # regular nodes may be singular for polynomials: other neighbours, somewhat farther
        again = np.flatnonzero(bad | (condition > ILL_CONDITIONED)) if scheme.degree >= 0 else np.empty(0, dtype=int)
        if len(again) == 0:
            break
        tried = _others(cloud, centers[again], size, attempt)
        new_weights, new_condition = _weights(cloud, centers[again], tried, derivatives, scheme)
        better = new_condition < condition[again]
        at = again[better]
        columns[at], weights[at], condition[at] = tried[better], new_weights[better], new_condition[better]
        bad = _broken(weights, derivatives, scheme)
    if np.any(bad):
        raise UnsuitableNodes(
            f"{np.count_nonzero(bad)} of {len(bad)} stencils of {size} nodes are singular for degree={scheme.degree} "
            f"({n_monomials(centers.shape[1], scheme.degree)} monomials) and {scheme.kernel}. "
            f"Use a larger stencil_size, a smaller degree, or less regular nodes."
        )
    _warn_of_condition(StencilReport.of(condition), size, n_points)
    _warn_of_narrow_kernels(cloud, centers, columns, weights, derivatives, scheme)
    # the matrices share their columns: sorted, no use of one matrix can reorder those of another
    order = np.argsort(columns, axis=1)
    columns = np.take_along_axis(columns, order, axis=1)
    weights = np.take_along_axis(weights, order[:, None, :], axis=2)
    indptr = np.arange(0, len(centers) * size + 1, size, dtype=np.int32)
    shape = (len(centers), n_points)
    matrices = {
        a: sparse.csr_array((weights[:, j].ravel(), columns.ravel(), indptr), shape=shape)
        for j, a in enumerate(derivatives)
    }
    return Derivatives(matrices, condition)


_DENSER = 0.75  # of the usual spacing: nodes that are no denser than this are not graded


def simpler(scheme: Scheme, order: int = 2) -> Scheme:
    """The scheme for nodes near singular points in the plane: two degrees less, at least 3, on their smaller stencils.

    High degrees do not help where the solution has no derivatives, and wide stencils reach past the singular point.

    >>> simpler(Scheme(PHS(9), 5, 55))
    Scheme(kernel=PHS(power=7), degree=3, stencil_size=26)
    """
    plain = default_scheme(2, degree=max(3, scheme.degree - 2))
    fits = isinstance(scheme.kernel, PHS) and scheme.degree > 3 and scheme.stencil_size > plain.stencil_size
    return plain if fits and order <= 2 else scheme


def _near_singular(cloud: Cloud, centers: np.ndarray, distance: np.ndarray, size: int) -> np.ndarray:
    """Rows of the centers within some ten spacings of a singular point, where nodes were made denser towards it."""
    if cloud.singular is None or not len(cloud.singular):
        return np.empty(0, dtype=int)
    away = np.min([np.linalg.norm(cloud.wrap.shortest(centers - p), axis=1) for p in cloud.singular], axis=0)
    radius = distance[:, size - 1]  # of the smaller stencils, 2.9 spacings
    return np.flatnonzero((away < 3.5 * radius) & (radius < _DENSER * np.median(radius)))


def _whole_shells(distance: np.ndarray, size: int, monomials: int) -> np.ndarray:
    """How many of the nearest nodes each stencil takes, (n_centers,): those at equal distance all or not at all.

    On a lattice the last shell would otherwise be cut at random, and with it the symmetry of the solution. Nodes that
    are left out have the weight 0. `distance` has one column more than `size`, unless that is all nodes there are.
    Nodes behind a wall are at infinity: those that come last count as one shell, which is left out where it can be.
    """
    least = max(3 * size // 4, 3 * monomials // 2, 2)
    count = np.full(len(distance), size)
    if least >= size:  # nothing may be left out
        return count
    if distance.shape[1] == size:
        distance = np.column_stack([distance, 2 * distance[:, -1] + 1])
    cut = np.flatnonzero(distance[:, size] <= distance[:, size - 1] * (1 + 1e-9))
    complete = distance[cut, least:size] > distance[cut, least - 1 : size - 1] * (1 + 1e-9)
    last = least + complete.shape[1] - 1 - np.argmax(complete[:, ::-1], axis=1)
    count[cut] = np.where(complete.any(axis=1), last, size)
    return count


def _weights(cloud: Cloud, centers, columns, derivatives, scheme: Scheme) -> tuple[np.ndarray, np.ndarray]:
    offsets = cloud.points[columns]
    offsets -= centers[:, None, :]
    offsets = cloud.wrap.shortest(offsets)
    stencils = stencil_weights(offsets, derivatives, kernel=scheme.kernel, degree=scheme.degree)
    return stencils.weights, stencils.condition


def _others(cloud: Cloud, centers, size: int, attempt: int) -> np.ndarray:
    """Neighbours picked at random among more of the nearest, nearer ones preferred; the center's own point stays.

    On a lattice near means few steps away: where it is stretched, a ball holds too few layers along the longest steps.
    """
    steps = _lattice_steps(cloud.points)
    more = min((3 + attempt) * size // 2 if steps is None else 6 * size, len(cloud.points))
    index, distance = cloud.nearest(centers, more)
    if steps is not None:
        offsets = cloud.wrap.shortest(cloud.points[index] - centers[:, None, :])
        distance = np.where(np.isinf(distance), np.inf, np.linalg.norm(offsets / steps, axis=2))
    jitter = 0.0 if steps is not None and attempt == 1 else 0.4
    order = np.argsort(distance * (1 + jitter * np.random.default_rng(attempt).random(distance.shape)), axis=1)
    return np.take_along_axis(index, order[:, :size], axis=1)


def _lattice_steps(points: np.ndarray) -> np.ndarray | None:
    """The steps (dimension,) of a lattice, ghosts beside it included; None of scattered points."""
    steps = []
    for values in points.T:
        levels = np.unique(np.round(values / (np.ptp(values) or 1.0), 9))
        if len(levels) ** points.shape[1] > 8 * len(points) or len(levels) < 2:
            return None
        steps.append(float(np.median(np.diff(levels)) * np.ptp(values)))
    return np.array(steps)


def _warn(message: str) -> None:
    warnings.warn(message, ParasolWarning, stacklevel=4)  # where `differentiate` was called


def _warn_of_condition(report: StencilReport, size: int, n_points: int) -> None:
    if report.n_ill_conditioned:
        _warn(
            f"{report.n_ill_conditioned} of {report.n_stencils} stencils are ill-conditioned (worst {report.worst_condition:.0e}, "
            f"limit {ILL_CONDITIONED:.0e}): their weights may be wrong. Use other nodes, a smaller stencil, or a kernel that is less flat."
        )
    if 2 * size > n_points and n_points > 2:
        _warn(
            f"stencils of {size} nodes take more than half of the {n_points} there are: the solution is hardly resolved. Use more nodes."
        )


def _warn_of_narrow_kernels(cloud: Cloud, centers, columns, weights, derivatives, scheme: Scheme) -> None:
    """Say so where a kernel without polynomials is narrower than the spacing: D^a of x^a/a! should be 1.

    Its stencils are perfectly conditioned, and know nothing of their neighbours.
    """
    if all(sum(index) <= scheme.degree for index in derivatives) or not len(centers):
        return
    offsets = cloud.wrap.shortest(cloud.points[columns] - centers[:, None, :])
    for j, index in enumerate(derivatives):
        monomial = np.prod([offsets[:, :, k] ** n / math.factorial(n) for k, n in enumerate(index)], axis=0)
        value = float(np.median(np.sum(weights[:, j] * monomial, axis=1)))
        if abs(value - 1.0) > _NARROW:
            what = "a constant" if not any(index) else "a monomial"
            _warn(
                f"{scheme.kernel} is too narrow for the spacing of the nodes: a derivative of {what} that is 1 comes out as "
                f"{value:.2g}. Use a wider kernel (a smaller shape parameter), polynomials (degree=2), or more nodes."
            )
            return


def _warn_of_leaks(distance: np.ndarray, count: np.ndarray, size: int) -> None:
    """Say so where stencils take nodes that are hidden behind a wall, for want of others."""
    blind = np.count_nonzero(np.isinf(np.take_along_axis(distance, count[:, None] - 1, axis=1)))
    if blind:
        _warn(
            f"{blind} of {len(count)} stencils of {size} nodes find too few on their side of a wall and take others: "
            f"the solution may leak through. Use more nodes, or a smaller stencil."
        )


def _broken(weights: np.ndarray, derivatives: Sequence[MultiIndex], scheme: Scheme) -> np.ndarray:
    """Stencils that have no weights, or whose weights do not reproduce the constant they were built to."""
    bad = ~np.all(np.isfinite(weights), axis=(1, 2))
    if scheme.degree >= 0:
        for j, a in enumerate(derivatives):
            size = np.sum(np.abs(weights[:, j]), axis=1)
            defect = np.abs(np.sum(weights[:, j], axis=1) - (sum(a) == 0))
            bad |= ~(defect <= 1e-6 * np.maximum(size, 1e-300))
    return bad
