"""Constraints taken out of a problem in time: every state from the values that move and the boundary data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from parasol.checks import check_finite, check_shape
from parasol.errors import InputError, NoCertificate
from parasol.pde.integrators import Rows
from parasol.pde.model import Model
from parasol.pde.rows import Varying

INSTEAD = "Learn from full solves instead (ps.solve_many): a network needs no reduced model"


@dataclass(frozen=True, eq=False)
class Constraints:
    """u = E⁻¹ (M u, 0) + G f_c: E has the rows of the leading time derivative M and, below them, the constraints.

    The first part vanishes where boundary conditions fix u and has fitting values at ghosts; the second, the lift,
    carries the boundary data f_c and has M G = 0, so that only K G f_c joins the equation.
    """

    model: Model
    time_order: int
    moving: np.ndarray  # rows with a time derivative
    active: np.ndarray  # constraint rows that can have data other than 0
    lift: np.ndarray  # G, (n_unknowns, n_active)
    leading: object  # M, sparse
    solve: Callable[[np.ndarray], np.ndarray]  # E⁻¹

    @classmethod
    def of(cls, model: Model) -> Constraints:
        """The constraints of a model in time, or an error where they cannot be taken out once for all parameters."""
        if model.problem.time is None:
            raise InputError("the problem is steady: its reduced model is ps.reduce(model, basis).")
        rows = Rows.of(model.system(model.vector()))
        if np.any(rows.first) and np.any(rows.second):
            raise NoCertificate(f"some equations have u'' and others u' only: no reduced steps are offered. {INSTEAD}.")
        held = rows.constrained
        _refuse_varying(model, held)
        touched = np.any(model.terms.loads != 0, axis=0)
        for part in model.terms.varying_load:
            touched[part.positions] = True
        active = np.flatnonzero(touched & held)
        solve = rows.transfer(np.zeros(model.n_unknowns), 0.0)
        data = np.zeros((model.n_unknowns, len(active)))
        data[active, np.arange(len(active))] = 1.0
        order = 2 if np.any(rows.second) else 1
        leading = rows.mass if order == 2 else rows.damping
        lift = solve(data) if len(active) else data
        for matrix in [model.terms.matrix(data) for _, _, data in model.terms.time_data]:
            size = abs(matrix).max() * np.max(np.abs(lift), initial=0.0)
            if np.max(np.abs((matrix @ lift)[rows.second | rows.first]), initial=0.0) > 1e-8 * size:
                raise NoCertificate(f"a time derivative acts on values that boundary conditions fix. {INSTEAD}.")
        return cls(model, order, np.flatnonzero(~held), active, lift, leading, solve)

    def homogeneous(self, values: np.ndarray) -> np.ndarray:
        """E⁻¹ (M u, 0), (n, n_unknowns), of values at the nodes (n, n_fields * n_nodes)."""
        n_hidden = self.model.n_unknowns - values.shape[1]
        moved = self.leading @ self.model.layout.unknowns(values, np.zeros((len(values), n_hidden))).T  # type: ignore[operator]
        right = np.zeros_like(moved)
        right[self.moving] = moved[self.moving]
        return self.solve(np.asfortranarray(right)).T

    def data(self, mu: np.ndarray, times: np.ndarray) -> np.ndarray:
        """The boundary data f_c of one parameter, (n_times, n_active)."""
        if not len(self.active):
            return np.zeros((len(times), 0))
        if not self.model.terms.load_moves:
            return np.repeat(self.model.load(mu)[None, self.active], len(times), axis=0)
        return np.array([self.model.load(mu, float(t))[self.active] for t in times])

    def trajectories(self, snapshots):
        """Each parameter with its states without the lift, (n_times, n_unknowns), and its boundary data."""
        times = stored_times(self.model)
        n_values = len(self.model.problem.names) * self.model.n_nodes
        start = 0
        for block in snapshots.blocks():
            if block.shape[1] != len(times) * n_values:
                raise InputError(
                    f"snapshots have {block.shape[1]} values, the model {len(times)} times {n_values}. Solve them with "
                    "this model, at the problem's own times."
                )
            for mu, row in zip(snapshots.mus[start : start + len(block)], block, strict=True):
                values = check_finite(row.reshape(len(times), n_values), "snapshots")
                yield mu, self.homogeneous(values), self.data(mu, times)
            start += len(block)


def stored_times(model: Model) -> np.ndarray:
    """The times of a problem, (n_times,)."""
    if model.problem.times is None:
        raise InputError("the problem has no times of its own. Declare it with times=np.linspace(0, 10, 101).")
    return check_shape(model.problem.times, (None,), "times")


def _refuse_varying(model: Model, held: np.ndarray) -> None:
    """The constraints' left sides must be linear and the same for all parameters."""
    row_of = np.repeat(np.arange(model.n_unknowns), np.diff(model.terms.pattern.indptr))

    def touches(part: Varying) -> bool:
        return bool(np.any(held[row_of[part.positions]]))

    moves = any(
        theta.free_symbols and np.any(data[held[row_of]])
        for theta, data in zip(model.terms.operator_thetas, model.terms.operator_data, strict=True)
    )
    if moves or any(touches(part) for part in model.terms.varying_operator):
        raise NoCertificate(f"the left side of a boundary condition depends on the parameters. {INSTEAD}.")
    if any(np.any(held[part.rows]) for part in model.terms.nonlinear):
        raise NoCertificate(f"a boundary condition is nonlinear, or has a coefficient that depends on time. {INSTEAD}.")
