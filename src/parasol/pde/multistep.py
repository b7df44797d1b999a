"""Fixed steps with one factorisation: averaged over two levels for u'', SBDF2 for u'; constraints by Newton's method."""

from __future__ import annotations

import numpy as np

from parasol.errors import SolveFailed
from parasol.pde.esdirk import Esdirk4, esdirk4
from parasol.pde.integrators import Run, State, worst
from parasol.pde.sparse_direct import Factors

_FINE = 1e-12  # relative size of the last correction where steps are constant
_MOST_CORRECTIONS = 20  # of Newton's method for constraints
_SLOW = 0.3  # contraction of the stage iteration above which the Jacobian is renewed


class Semilinear:
    """Solves A u = right in the moving rows and K u + N(u, t) = f(t) in the constraints, with factors that are kept.

    Where N enters constraints they are solved by Newton's method: extrapolated values there feed their own errors, and
    the order is lost. A's entries in the constraints' rows are those of K; their Jacobian is renewed where it must be.
    """

    def __init__(self, run: Run, entries: np.ndarray, u: np.ndarray, t: float):
        self.run, self.entries = run, entries
        self.matrix, self.bent = run.rows.matrix(entries), run.rows.bent
        self.factors = self._factorize(u, t)

    def _factorize(self, u: np.ndarray, t: float) -> Factors:
        if not self.bent:
            return self.run.factorize(self.entries)
        rows = self.run.rows
        slope = rows.system.jacobian(u, t)
        return self.run.factorize(self.entries + np.where(rows.constrained[rows.of_entry], slope, 0.0))

    def solve(self, right: np.ndarray, load: np.ndarray, guess: np.ndarray, t: float) -> np.ndarray:
        """The state at time t, at which f is `load`."""
        rows, system, held = self.run.rows, self.run.rows.system, self.run.rows.constrained
        if not self.bent:
            return self.factors.solve(right if held is False else np.where(held, load, right))
        u, previous = guess, np.inf
        for _ in range(_MOST_CORRECTIONS):
            change = self.factors.solve(np.where(held, load - rows.nonlinear(u, t), right) - self.matrix @ u)
            u = u + change
            size, allowed = system.sizes(change), _FINE * np.maximum(self.run.size, system.sizes(u))
            wrong = worst(size, allowed)
            if wrong <= 1:
                return u
            if not np.isfinite(wrong):
                break
            if wrong > _SLOW * previous:
                if worst(size, np.maximum(allowed, rows.rounding(self.factors, u))) <= 1:
                    return u
                self.factors = self._factorize(u, t)
            previous = wrong
        raise SolveFailed(
            f"the nonlinear boundary conditions or algebraic equations could not be solved at t={t:.6g}: Newton did not "
            "converge. Use a smaller step."
        )


def averaged(run: Run, start: State, step: float, n_steps: int) -> None:
    """Fixed steps for u'': K averaged over the levels m+1 and m−1, N and f at m, constraints at m+1; order 2.

    M2 (u⁺ − 2u + u⁻)/h² + M1 (u⁺ − u⁻)/(2h) + K (u⁺ + u⁻)/2 + N(u) = f. The level before the first is
    u⁻ = u⁺ − 2h v; there the damping is written (u⁺ − u)/h, which spares a second matrix and keeps the order.
    """
    rows, system, h = run.rows, run.rows.system, step
    entries = system.mass / h**2 + system.damping / (2 * h) + rows.by_entry(0.5, 0.5) * system.stiffness
    now = rows.matrix(2 * system.mass / h**2)
    past = rows.matrix(system.damping / (2 * h) - system.mass / h**2 - rows.by_entry(0.5, 0.5, 0.0) * system.stiffness)
    u, v, t = start.u, start.v, start.t
    pull = system.load(t) - rows.nonlinear(u, t) + rows.averaging(None, t, t + h)
    right = 0.5 * (now @ (u + h * v) + rows.damping @ u / h + h * (rows.stiffness @ v) + pull)
    guess = u + h * v
    equations = Semilinear(run, entries, guess, t + h)
    for m in range(1, n_steps + 1):
        earlier, t, later = t, start.t + m * h, start.t + (m + 1) * h
        load = system.load(t)
        before, u = u, equations.solve(right, load, guess, t)
        run.accept(t, u)
        if m < n_steps:
            pull = load - rows.nonlinear(u, t) + rows.averaging(earlier, t, later)
            right = now @ u + past @ before + pull
            guess = 2 * u - before


def sbdf2(run: Run, start: State, step: float, n_steps: int) -> None:
    """Fixed steps for u': backward differences, N extrapolated; order 2. The first step is one of ESDIRK4.

    M1 (3u⁺ − 4u + u⁻)/(2h) + K u⁺ + 2N(u) − N(u⁻) = f(t⁺), and K u⁺ + N(u⁺) = f(t⁺) in constraints.
    """
    rows, system, h = run.rows, run.rows.system, step
    state = Esdirk4(run).advance(start, h)
    run.accept(state.t, state.u)
    if n_steps == 1:
        return
    before, u = start.u, state.u
    part_before, part = rows.nonlinear(before, start.t), rows.nonlinear(u, start.t + h)
    equations = Semilinear(run, 1.5 / h * system.damping + system.stiffness, u, start.t + h)
    for m in range(2, n_steps + 1):
        t = start.t + m * h
        load = system.load(t)
        right = rows.damping @ (2 * u - 0.5 * before) / h + load - (2 * part - part_before)
        before, u = u, equations.solve(right, load, 2 * u - before, t)
        run.accept(t, u)
        part_before, part = part, rows.nonlinear(u, t)


def constant_steps(run: Run, start: State, n_steps: int) -> None:
    """A whole run of equal steps by the run's integrator."""
    step = run.duration / n_steps
    if run.integrator == "esdirk4":
        esdirk4(run, start, step)
    else:
        {"averaged": averaged, "sbdf2": sbdf2}[run.integrator](run, start, step, n_steps)
    run.finish()
