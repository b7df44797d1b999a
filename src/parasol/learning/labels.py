"""Labels that cost no full solve: reduced models of nonlinear problems and of problems in time."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from parasol.checks import ParasolWarning
from parasol.errors import NoCertificate, SolveFailed
from parasol.learning.by_residual import Reduced, ResidualReducedModel, offers_residual, reduce_by_residual
from parasol.learning.solves import Solver
from parasol.pde.model import Model
from parasol.reduction.bases_in_space import space_basis
from parasol.reduction.in_time import PROJECTIONS, TimeReducedModel, Watch, reduce_trajectories
from parasol.reduction.nonlinear import NonlinearReducedModel, NonlinearSolutions, reduce_nonlinear
from parasol.reduction.pod import pod
from parasol.reduction.snapshots import Snapshots, as_snapshots
from parasol.runtime.basis import Basis, slices
from parasol.runtime.products import Weights, energies, first_part, repeated

_MODES, _MODES_IN_TIME = 0.01, 0.02  # parts of the tolerance left of all solves together: of single ones more is left
_STEPS = 0.1  # part of the tolerance by which twice as many steps in time may change a trajectory
_BLOCK = 2**24  # numbers of values worked on at a time
_MOST_NUMBERS = 6e7  # of labels lifted to all values: half a gigabyte
_FEWEST_LIFTED = 64
_FEW = 8  # trajectories that show whether modes and coefficients are all there is to them


@dataclass(frozen=True, eq=False)
class Teacher:
    """Labels: coefficients (n, n_modes) of a basis at parameters (n, n_parameters)."""

    mus: np.ndarray
    coefficients: np.ndarray
    basis: Basis


@dataclass(frozen=True, eq=False)
class LabelSource:
    """A reduced model, of a nonlinear problem, of one in time or of a solver with residuals, asked for values and for labels."""

    reduced: NonlinearReducedModel | TimeReducedModel | ResidualReducedModel
    watch: Watch = None  # ends long work by an error when the time is up

    @property
    def slow(self) -> bool:
        """Whether an answer takes Newton's method in every step in time."""
        return isinstance(self.reduced, TimeReducedModel) and bool(self.reduced.system.nonlinear)

    def values(self, mus: np.ndarray) -> np.ndarray:
        """Values (n, n_values) as full solves have them; not a number where the reduced model has no answer."""
        if isinstance(self.reduced, TimeReducedModel):
            return self.reduced.values(mus, extrapolate=True, watch=self.watch)
        solved = _quiet(self.reduced, mus, self.watch)
        values = solved.values
        values[~solved.converged] = np.nan
        return values

    def snapshots(self, mus: np.ndarray) -> Snapshots | None:
        """Its values at those of the parameters that have an answer, as many as memory holds; None where few have one."""
        mus = mus[: max(_FEWEST_LIFTED, int(_MOST_NUMBERS / self._n_values))]
        values = self.values(mus)
        good = np.all(np.isfinite(values), axis=1)
        return as_snapshots(mus[good], values[good]) if np.mean(good) > 0.9 else None

    def gaps(self, other: LabelSource, mus: np.ndarray) -> np.ndarray:
        """||u − w|| / ||u|| between this reduced model and another, (n,); infinite where one of them has no answer."""
        out = np.empty(len(mus))
        for rows in slices(len(mus), max(1, _BLOCK // self._n_values)):
            try:
                out[rows] = relative(other.values(mus[rows]), self.values(mus[rows]), self.weights)
            except SolveFailed:  # the steps of one of them grow beyond all bounds
                out[rows] = np.inf
        return out

    def errors(self, truth: Snapshots) -> np.ndarray:
        """Relative errors on full solves, (n,), infinite where there is no answer."""
        try:
            return relative(self.values(truth.mus), truth.solutions, self.weights)
        except SolveFailed:
            return np.full(len(truth), np.inf)

    def labels(self, mus: np.ndarray, tolerance: float) -> Teacher | None:
        """Labels at those of the parameters that have an answer, in the fewest modes that leave `tolerance` of each.

        None where a tenth of the parameters has none.
        """
        reduced = self.reduced
        if not isinstance(reduced, TimeReducedModel):
            solved = _quiet(reduced, mus, self.watch)
            good = solved.converged
            if np.mean(good) <= 0.9:
                return None
            coefficients, small = _compressed(solved.coefficients[good], tolerance)
            modes, hidden = reduced.basis.modes @ small.modes, reduced.basis.hidden @ small.modes
            basis = replace(small, modes=modes, hidden=hidden, weights=reduced.basis.weights)
            return Teacher(mus[good], coefficients, basis)
        c = reduced.coefficients(mus, extrapolate=True, watch=self.watch)
        few = mus[:_FEW]
        if np.any(relative((c[:_FEW] @ reduced.basis.modes.T).reshape(len(few), -1), self.values(few)) > 1e-10):
            # boundary data, or a start that does not fit them: the labels as they are, as many as memory holds
            n = max(_FEWEST_LIFTED, int(_MOST_NUMBERS / self._n_values))
            coefficients, basis = _compressed(reduced.lift(c[:n], mus[:n]), tolerance, self.weights)
            return Teacher(mus[:n], coefficients, basis)
        # the modes in space are orthonormal, so that norms of coefficients are those of trajectories
        coefficients, small = _compressed(c.reshape(len(mus), -1), tolerance)
        shaped = small.modes.reshape(reduced.n_times, reduced.n_modes, small.n_modes)
        modes = np.einsum("nd,tdk->tnk", reduced.basis.modes, shaped, optimize=True).reshape(-1, small.n_modes)
        return Teacher(mus, coefficients, replace(small, modes=modes, weights=self.weights))

    @property
    def _n_values(self) -> int:
        return self.reduced.basis.n_values * getattr(self.reduced, "n_times", 1)

    @property
    def weights(self) -> Weights | None:
        """Of the inner product, (n_values,)."""
        weights = self.reduced.basis.weights
        return repeated(weights, getattr(self.reduced, "n_times", 1))


def label_source(
    model: Solver,
    train: Snapshots,
    tolerance: float,
    weights: Weights | None = None,
    watch: Watch = None,
    before: LabelSource | None = None,
) -> LabelSource | None:
    """The reduced model made from the training solves, with modes enough for the tolerance; None where there is none.

    `weights` (n_values,) are those of the inner product, the same at all times. `watch` is called on the way, now and
    whenever the reduced model is asked, and ends the work by an error. The one made `before` from fewer solves may save a
    part of the work.
    """
    if len(train) < 2:
        return None
    if not isinstance(model, Model):
        return _of_solver(model, train, tolerance, before, watch)
    make = _steady if model.problem.time is None else _in_time
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ParasolWarning)  # how good it is will be measured
            return LabelSource(make(model, train, tolerance, weights, watch), watch)
    except (NoCertificate, SolveFailed, np.linalg.LinAlgError):  # there is no reduced model, or it does not work here
        return None


def _of_solver(
    solver: Solver, train: Snapshots, tolerance: float, before: LabelSource | None, watch: Watch
) -> LabelSource | None:
    """The reduced model of a solver of one's own that offers residuals, with a warning where they are of no use."""
    if not offers_residual(solver) or solver.parameters.functions:
        return None
    known = None if before is None or not isinstance(before.reduced, ResidualReducedModel) else before.reduced
    try:
        return LabelSource(reduce_by_residual(solver, train, tolerance, known, watch), watch)
    except NoCertificate as error:
        warnings.warn(f"{error}: full solves alone are learned from.", ParasolWarning, stacklevel=2)
        return None


def relative(values: np.ndarray, truth: np.ndarray, weights: Weights | None = None) -> np.ndarray:
    """||u − w|| / ||u||, (n,) of (n, n_values) each, infinite where it is not a number.

    >>> relative(np.array([[3.0, 0.0], [np.nan, 1.0]]), np.array([[3.0, 4.0], [1.0, 1.0]]))
    array([0.8, inf])
    """
    size = np.sqrt(energies(truth, weights))
    gap = np.sqrt(energies(values - truth, weights)) / np.where(size > 0, size, 1.0)
    return np.where(np.isfinite(gap), gap, np.inf)


def _steady(
    model: Model, train: Snapshots, tolerance: float, weights: Weights | None, watch: Watch
) -> NonlinearReducedModel:
    size = np.sqrt(energies(train.solutions, weights))[:, None]
    size[size == 0] = 1.0
    # errors are relative: small solutions count as much as large ones
    alike = as_snapshots(train.mus, train.solutions / size, hidden=train.hidden / size)
    return reduce_nonlinear(model, train, pod(alike, tolerance=_MODES * tolerance, weights=weights), watch=watch)


def _in_time(
    model: Model, train: Snapshots, tolerance: float, weights: Weights | None, watch: Watch
) -> TimeReducedModel:
    weights = first_part(weights, len(model.problem.names) * model.n_nodes)
    modes = space_basis(model, train, tolerance=_MODES_IN_TIME * tolerance, weights=weights)
    options = {"tolerance": _MODES_IN_TIME * tolerance, "step_tolerance": _STEPS * tolerance, "watch": watch}
    try:
        return reduce_trajectories(model, modes, train, projection=PROJECTIONS[0], **options)
    except NoCertificate:  # the other one is dearer, and seldom better
        return reduce_trajectories(model, modes, train, projection=PROJECTIONS[1], **options)


def _quiet(
    reduced: NonlinearReducedModel | ResidualReducedModel, mus: np.ndarray, watch: Watch
) -> NonlinearSolutions | Reduced:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParasolWarning)  # what did not converge is seen by who asks
        return reduced.solve(mus, extrapolate=True, watch=watch)


def _compressed(rows: np.ndarray, tolerance: float, weights: Weights | None = None) -> tuple[np.ndarray, Basis]:
    """Coefficients of the rows in the fewest modes that leave at most `tolerance` of every row, and these modes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParasolWarning)  # there may be as many rows as wanted
        basis = pod(rows, tolerance=tolerance / 10, weights=weights)
    c, size = basis.project(rows), basis.norm(rows)
    left = np.maximum(size**2 - np.sum(c**2, axis=1), 0.0)[:, None]
    tails = np.sqrt(left + np.cumsum(c[:, ::-1] ** 2, axis=1)[:, ::-1]) / np.where(size > 0, size, 1.0)[:, None]
    # tails[:, k] is what the first k modes leave
    n_modes = max(1, int(np.count_nonzero(np.max(tails, axis=0) > tolerance)))
    return c[:, :n_modes], basis.truncated(n_modes)
