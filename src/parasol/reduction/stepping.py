"""Many small dense systems  M2 c'' + M1 c' + K c + q(t) + N(c, t) = f(t)  for the integrators of `pde`, all at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from parasol.errors import SolveFailed
from parasol.pde.esdirk import PLACES
from parasol.pde.integrators import Equations, Run, State
from parasol.pde.multistep import constant_steps

_GROWTH = 1e8  # times the data: beyond, a state is given up


class Matrices:
    """A matrix for each of n vectors, or one for all, with `@`.

    >>> Matrices(np.array([[[0.0, 2.0], [1.0, 0.0]]])) @ np.array([[1.0, 5.0]])
    array([[10.,  1.]])
    """

    def __init__(self, entries: np.ndarray | float):
        self.entries = entries  # (n or 1, d, d), or 0

    def __matmul__(self, c: np.ndarray) -> np.ndarray | float:
        if not isinstance(self.entries, np.ndarray):
            return 0.0
        if len(self.entries) == 1:
            return c @ self.entries[0].T
        return np.matmul(self.entries, c[:, :, None])[:, :, 0]

    def __abs__(self) -> Matrices:
        return Matrices(np.abs(self.entries))


class Inverses:
    """The inverses of small matrices, in place of factors."""

    def __init__(self, entries: np.ndarray):
        self.matrix = Matrices(entries)
        self.solve = Matrices(np.linalg.inv(entries)).__matmul__


@dataclass(frozen=True, eq=False)
class SmallSystems:
    """One small system for each of n parameters; a matrix that is the same for all of them has length 1 on axis 0.

    `force(t)` is f and `lifted(t)` is q, which boundary data add to K c, both (n, d); `lifted` is None where q is part of
    the force since it does not change. `nonlinear(c, t)` is (n, d), `jacobian(c, t)` its derivative (n, d, d); both are
    None for linear systems. `mass` is 0 where there is no u''.
    """

    mass: np.ndarray | float  # (n or 1, d, d)
    damping: np.ndarray  # (n or 1, d, d)
    stiffness: np.ndarray  # (n or 1, d, d)
    force: Callable[[float], np.ndarray]
    lifted: Callable[[float], np.ndarray] | None = None
    nonlinear: Callable[[np.ndarray, float], np.ndarray] | None = None
    jacobian: Callable[[np.ndarray, float], np.ndarray] | None = None
    moments = None  # jumps of the data in time are not looked for

    @property
    def time_order(self) -> int:
        """2 where there is u'', else 1."""
        return 2 if isinstance(self.mass, np.ndarray) else 1

    def load(self, t: float) -> np.ndarray:
        """f − q, (n, d)."""
        return self.force(t) if self.lifted is None else self.force(t) - self.lifted(t)

    def sizes(self, c: np.ndarray) -> np.ndarray:
        """The largest |coefficient| of each sample, (n,)."""
        return np.max(np.abs(c), axis=1, initial=0.0)

    def factorize(self, entries: np.ndarray) -> Inverses:
        """What solves with matrices (n or 1, d, d)."""
        return Inverses(entries)


class SmallEquations(Equations):
    """Small systems as integrators see them: without constraints, and with boundary data that are not in c."""

    constrained = bent = False
    fine = 1e-11

    def __init__(self, system: SmallSystems):
        self.system = system
        self.stiffness, self.damping, self.mass = map(Matrices, (system.stiffness, system.damping, system.mass))

    def by_order(self, second: float, first: float, constrained: float = 1.0) -> float:
        """The number for equations of this order in time."""
        return second if self.system.time_order == 2 else first

    by_entry = by_order

    def matrix(self, entries: np.ndarray) -> Matrices:
        """Matrices of these entries."""
        return Matrices(entries)

    def averaging(self, before: float | None, t: float, after: float) -> np.ndarray | float:
        """q(t) less the mean of q at the times before and after; before the first step that goes by its slope."""
        lifted = self.system.lifted
        if lifted is None:
            return 0.0
        now, ahead = lifted(t), lifted(after)
        if before is not None:
            return now - (ahead + lifted(before)) / 2
        d = 1e-3 * (after - t)
        slope = (4 * lifted(t + d) - lifted(t + 2 * d) - 3 * now) / (2 * d)
        return now - ahead + (after - t) * slope

    def start(self, c: np.ndarray, velocity: np.ndarray | None, t: float) -> State:
        """The state from which steps begin, with c' and M2 c'' from the equation."""
        pull = self.system.load(t) - self.stiffness @ c - self.nonlinear(c, t)
        if velocity is None:
            return State(t, c, Inverses(self.system.damping).solve(pull), 0.0)  # type: ignore[arg-type]
        return State(t, c, velocity, pull - self.damping @ velocity)


class SmallRun(Run):
    """A run of small systems: growth is watched sample by sample."""

    look: Callable[[], None] | None = None  # whoever waits may end it after each step

    def _watch(self, t: float, u: np.ndarray, size: np.ndarray) -> None:
        if self.look is not None:
            self.look()
        if not np.all(size <= _GROWTH * self.scale):
            self.scale = np.maximum(self.scale, self._reach(t, u))
        if not np.all(size <= _GROWTH * self.scale):
            raise SolveFailed(
                f"the reduced steps grow beyond all bounds at t={t:.6g}: the reduced model is unstable there. Use more "
                "modes, another projection, or full solves."
            )

    def _reach(self, t: float, u: np.ndarray) -> np.ndarray:
        """What the forces seen in the last step make of c = 0 in the whole time, (n,)."""
        system, before = self.rows.system, self._levels[-1][0]
        solve = Inverses(system.mass if system.time_order == 2 else system.damping).solve
        most = np.zeros(len(u))
        for s in before + PLACES * (t - before):
            force = system.load(s) - self.rows.nonlinear(0 * u, s)
            reached = solve(np.where(np.isfinite(force), force, 0.0))
            most = np.maximum(most, self.duration**system.time_order * system.sizes(reached))
        return most


def march(
    systems: SmallSystems,
    start: np.ndarray,
    velocity: np.ndarray | None,
    times: np.ndarray,
    n_steps: int,
    integrator: str,
    out: np.ndarray | None = None,
    *,
    watch: Callable[[], None] | None = None,
) -> np.ndarray:
    """c at the times, (n_times, n, d), from c(times[0]) = start, by equal steps of the full model's integrators.

    `watch` is called after each step and may end it by an error.

    >>> one = np.ones((1, 1, 1))
    >>> zero = lambda t: np.zeros((1, 1))
    >>> decay = SmallSystems(0.0, one, one, zero)  # c' + c = 0
    >>> round(float(march(decay, np.ones((1, 1)), None, np.array([0.0, 1.0]), 10, "esdirk4")[-1, 0, 0]), 6)
    0.367879
    """
    values = np.empty((len(times), *start.shape)) if out is None else out
    values[0] = start
    size, duration = systems.sizes(start), float(times[-1] - times[0])
    scale = size if velocity is None else size + duration * systems.sizes(velocity)
    equations = SmallEquations(systems)
    run = SmallRun(equations, times, values, size, scale, integrator, advice="")
    run.look = watch
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # growth is reported by the run
        state = equations.start(start, velocity, float(times[0]))
        run.begin(state.t, state.u)
        constant_steps(run, state, n_steps)
    return values
