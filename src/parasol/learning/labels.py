"""Labels that cost no full solve: reduced models of nonlinear problems and of problems in time, where they can be trusted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from parasol.errors import NoCertificate, SolveFailed
from parasol.learning.solves import Solver
from parasol.pde.model import Model
from parasol.reduction.in_time import TimeReducedModel, reduce_trajectories
from parasol.reduction.nonlinear import reduce_nonlinear
from parasol.reduction.pod import pod
from parasol.reduction.pod_greedy import space_basis
from parasol.reduction.snapshots import Snapshots
from parasol.runtime.basis import Basis

_FEWEST = 6  # training solves from which a reduced model is worth trying
_MODES = 0.1  # part of the tolerance that the modes of labels may leave
_MOST_NUMBERS = 6e7  # of labels lifted to all values: half a gigabyte


@dataclass(frozen=True, eq=False)
class Teacher:
    """Labels: coefficients (n, n_modes) of a basis at parameters (n, n_parameters)."""

    mus: np.ndarray
    coefficients: np.ndarray
    basis: Basis


def teacher_for(
    model: Solver,
    train: Snapshots,
    test: Snapshots,
    *,
    most_error: float,
    tolerance: float,
    draw: Callable[[int], np.ndarray],
) -> Teacher | None:
    """Labels of a reduced model made from the training solves, or None where it errs by more than `most_error` on the test.

    A sixth of the test may err by more: fresh solves decide in the end. `draw` gives parameters to label.
    """
    if not isinstance(model, Model) or len(train) < _FEWEST:
        return None
    n_labels = 256 if len(model.parameters.scalars) == 1 else 1024
    try:
        make = _steady if model.problem.time is None else _in_time
        return make(model, train, test, most_error, tolerance, draw(n_labels))
    except (NoCertificate, SolveFailed, np.linalg.LinAlgError):  # there is no reduced model, or it does not work here
        return None


def _errors(values: np.ndarray, test: Snapshots) -> np.ndarray:
    return np.linalg.norm(values - test.solutions, axis=1) / np.linalg.norm(test.solutions, axis=1)


def _trusted(errors: np.ndarray, most: float) -> bool:
    return bool(np.quantile(errors, 5 / 6) <= most)


def _steady(
    model: Model, train: Snapshots, test: Snapshots, most: float, tolerance: float, mus: np.ndarray
) -> Teacher | None:
    basis = pod(train, tolerance=_MODES * tolerance)
    reduced = reduce_nonlinear(model, train, basis)
    if not _trusted(_errors(reduced.solve(test.mus).values, test), most):
        return None
    labels = reduced.solve(mus)
    good = labels.converged
    return Teacher(mus[good], labels.coefficients[good], basis) if np.mean(good) > 0.9 else None


def _in_time(
    model: Model, train: Snapshots, test: Snapshots, most: float, tolerance: float, mus: np.ndarray
) -> Teacher | None:
    modes = space_basis(model, train, tolerance=tolerance / 5)
    reduced = reduce_trajectories(model, modes, train, tolerance=tolerance / 5)
    if not _trusted(_errors(reduced.values(test.mus), test), most):
        return None
    if reduced.lifted.shape[1]:  # boundary data: the labels as they are, as many as memory holds
        mus = mus[: max(64, int(_MOST_NUMBERS / train.n_values))]
        values = reduced.values(mus)
        basis = pod(values, tolerance=_MODES * tolerance)
        return Teacher(mus, basis.project(values), basis)
    return _compact(reduced, mus, _MODES * tolerance)


def _compact(reduced: TimeReducedModel, mus: np.ndarray, tolerance: float) -> Teacher:
    """Modes of whole trajectories from their coefficients: the modes in space are orthonormal, so norms are the same."""
    c = reduced.coefficients(mus)
    small = pod(c.reshape(len(mus), -1), tolerance=tolerance)
    shaped = small.modes.reshape(reduced.n_times, reduced.n_modes, small.n_modes)
    modes = np.einsum("nd,tdk->tnk", reduced.basis.modes, shaped, optimize=True).reshape(-1, small.n_modes)
    spectrum = {"singular_values": small.singular_values, "total_energy": small.total_energy}
    basis = Basis(modes, **spectrum, n_snapshots=len(mus), method="svd")
    return Teacher(mus, small.project(c.reshape(len(mus), -1)), basis)
