"""ESDIRK4: implicit Runge-Kutta steps of order 4, fixed or adapted to a tolerance."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from parasol.errors import SolveFailed
from parasol.pde.integrators import Run, State, consistent, interpolation, worst
from parasol.pde.sparse_direct import SingularMatrixError

# ESDIRK4(3)6L[2]SA, the implicit half of ARK4(3)6L[2]SA (Kennedy & Carpenter 2003): order 4, stage order 2, stiffly
# accurate, L-stable, and all stages inside the step, so that loads are never asked for beyond the last time
STAGES = np.array(
    [
        [0, 0, 0, 0, 0, 0],
        [1 / 4, 1 / 4, 0, 0, 0, 0],
        [8611 / 62500, -1743 / 31250, 1 / 4, 0, 0, 0],
        [5012029 / 34652500, -654441 / 2922500, 174375 / 388108, 1 / 4, 0, 0],
        [15267082809 / 155376265600, -71443401 / 120774400, 730878875 / 902184768, 2285395 / 8070912, 1 / 4, 0],
        [82889 / 524892, 0, 15625 / 83664, 69875 / 102672, -2260 / 8211, 1 / 4],
    ]
)
PLACES = np.array([0, 1 / 2, 83 / 250, 31 / 50, 17 / 20, 1])
EMBEDDED = np.array(
    [4586570599 / 29645900160, 0, 178811875 / 945068544, 814220225 / 1159782912, -3700637 / 11593932, 61727 / 225920]
)
_GAMMA = 0.25

_MOST_STEPS = 200_000
_SWITCH = 1e-6  # steps shorter than this part of the duration look for a jump in time
_FACTORS_KEPT = 4  # step sizes near each other come and go; each set of factors is large
_MOST_ITERATIONS = 8
_NEGLIGIBLE = 1e-8  # of what an unknown may become: below, its digits do not count
_SLOW = 0.3  # contraction of the stage iteration above which the Jacobian is renewed


@dataclass(frozen=True, eq=False)
class Matrices:
    """What the stages of one step size need."""

    factors: Any  # of leading + weight (K + N')
    leading: Any  # M2 + g M1, or M1 in rows without u''
    share: Any  # g, 1 or 1/g of each row


@dataclass(frozen=True, eq=False)
class Step:
    """The state after a step, and the slopes and forces of its stages."""

    state: State
    h: float
    slopes: list
    forces: list
    matrices: Matrices


class Esdirk4:
    """ESDIRK4 steps with factors kept for each step size.

    With g = γh, S = u + h Σ a v and Z = M2 v + h Σ a z over the stages before, a stage U = S + g V solves
    (M2 + g M1 + g² K) V + g N(U) = Z + g (f − K S)      in rows with u'',
    (M1 + g K) V + N(U) = f − K S                        in rows with u' only,
    K V + N(U)/g = (f − K S)/g                           in constraints.
    To solve for the slope V and not for U keeps it free of cancellation at small steps.
    """

    def __init__(self, run: Run):
        self.run = run
        self.rows = run.rows
        self._kept: OrderedDict[float, Matrices] = OrderedDict()

    def matrices(self, h: float, state: State, *, renew: bool = False) -> Matrices:
        """Matrices for this step size, with the Jacobian where they were last computed."""
        if renew or h not in self._kept:
            rows, system, g = self.rows, self.rows.system, _GAMMA * h
            entries = system.stiffness
            if system.jacobian is not None:
                entries = entries + system.jacobian(state.u, state.t)
            leading = system.mass + rows.by_entry(g, 1.0) * system.damping
            factors = self.run.factorize(leading + rows.by_entry(g * g, g) * entries)
            self._kept[h] = Matrices(factors, rows.matrix(leading), rows.by_order(g, 1.0, 1 / g))
            if len(self._kept) > _FACTORS_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(h)
        return self._kept[h]

    def advance(self, state: State, h: float, until: float = np.inf) -> State:
        """The state after a step of a given size, or an error if its equations cannot be solved."""
        step = self.step(state, h, self.rows.fine, until)
        if step is None:
            raise SolveFailed(
                f"the stages of a step of size {h:.3g} at t={state.t:.6g} could not be solved: Newton did not converge. "
                "Use a smaller step."
            )
        return step.state

    def step(self, state: State, h: float, accuracy: float, until: float = np.inf) -> Step | None:
        """The step of size h, None if it fails.

        `accuracy` is the last correction, relative to each unknown's size, at which the iteration for a nonlinear stage
        stops. No load is asked for after the time `until`: the step may end where it jumps.
        """
        renewed = h not in self._kept
        for renew in (False, True):
            try:
                matrices = self.matrices(h, state, renew=renew)
            except SingularMatrixError:
                return None
            step = self._stages(state, h, accuracy, until, matrices, patient=renewed or renew)
            if step is not None or renewed:
                return step
        return None

    def errors(self, step: Step) -> tuple[np.ndarray, np.ndarray]:
        """Estimates of a step's errors in u and u', by the embedded formula."""
        gap = STAGES[5] - EMBEDDED
        error_u = step.h * sum(gap[j] * step.slopes[j] for j in range(6))
        error_z = step.h * sum(gap[j] * step.forces[j] for j in range(6))
        # dividing by the step's matrix takes out the stiff part, which the embedded formula overestimates
        right = error_z - step.matrices.share * (self.rows.stiffness @ error_u)
        error_v = step.matrices.factors.solve(right)
        return error_u + _GAMMA * step.h * error_v, error_v

    def _stages(self, state: State, h: float, accuracy, until, matrices: Matrices, *, patient: bool) -> Step | None:
        rows, system, g = self.rows, self.rows.system, _GAMMA * h
        momentum = rows.mass @ state.v
        slopes, forces, u = [state.v], [state.z], state.u
        for i in range(1, 6):
            a = STAGES[i]
            known = state.u + h * sum(a[j] * slopes[j] for j in range(i))
            carried = momentum + h * sum(a[j] * forces[j] for j in range(i))
            t = min(state.t + PLACES[i] * h, until)
            load = system.load(t)
            if system.nonlinear is None:
                v = matrices.factors.solve(carried + matrices.share * (load - rows.stiffness @ known))
            else:
                v = sum(w * slope for w, slope in zip(_guess(i), slopes, strict=True))
                v = self._iterate(v, known, carried, load, t, g, accuracy, matrices, patient)
                if v is None:
                    return None
            u = known + g * v
            slopes.append(v)
            forces.append((rows.mass @ v - carried) / g)
        if not np.all(np.isfinite(u)):
            return None
        return Step(State(state.t + h, u, slopes[-1], forces[-1]), h, slopes, forces, matrices)

    def _iterate(self, v, known, carried, load, t, g, accuracy, matrices: Matrices, patient) -> np.ndarray | None:
        rows, system, previous = self.rows, self.rows.system, np.inf
        for _ in range(4 * _MOST_ITERATIONS if patient else _MOST_ITERATIONS):
            u = known + g * v
            pull = load - rows.stiffness @ u - rows.nonlinear(u, t)
            residual = carried + matrices.share * pull - matrices.leading @ v
            if not np.all(np.isfinite(residual)):
                return None
            change = matrices.factors.solve(residual)
            v = v + change
            size, allowed = g * system.sizes(change), max(accuracy, 1e-14) * np.maximum(self.run.size, system.sizes(u))
            wrong = worst(size, allowed)
            ratio = wrong / previous if np.isfinite(previous) else 1.0
            if wrong <= 1 or wrong * ratio <= 1 - ratio:
                return v
            if ratio > (0.95 if patient else _SLOW) and np.isfinite(previous):
                return v if worst(size, np.maximum(allowed, rows.rounding(matrices.factors, u))) <= 1 else None
            previous = wrong
        return None


@cache
def _guess(i: int) -> np.ndarray:
    """Weights (i,) of the slopes before stage i in a first guess of its own: the parabola through the nearest three."""
    nearest = np.sort(np.argsort(np.abs(PLACES[:i] - PLACES[i]), kind="stable")[:3])
    weights = np.zeros(i)
    weights[nearest] = interpolation(list(PLACES[nearest]), PLACES[i])
    return weights


class Stops:
    """The times that steps must meet: requested ones, and those at which the data jump."""

    def __init__(self, run: Run):
        self.run, self.grid, self.switches = run, None, np.empty(0)
        if run.rows.system.moments is not None:
            self.grid, switches = run.rows.system.moments(float(run.times[0]), float(run.times[-1]))
            # one switch may stand in several formulas, and be a requested time, up to rounding
            switches = switches[np.diff(switches, prepend=-np.inf) > 4 * self._instant(switches)]
            asked = run.times[np.argmin(np.abs(run.times - switches[:, None]), axis=1)]
            self.switches = np.where(np.abs(asked - switches) <= 4 * self._instant(switches), asked, switches)
        self.times = np.union1d(run.times, self.switches)

    def next(self, t: float) -> tuple[float, float]:
        """The first one after t, and the last time before it at which the data are those of the way there."""
        stop = float(self.times[np.searchsorted(self.times, t, side="right")])
        return stop, stop - self._instant(stop) if stop in self.switches else np.inf

    def reached(self, state: State, stop: float) -> State:
        """The state at a stop; where the data jump, the one with which it goes on."""
        state = State(stop, state.u, state.v, state.z)
        if stop not in self.switches:
            return state
        after = stop + self._instant(stop)
        ahead = float(self.times[np.searchsorted(self.times, after)]) if after < self.times[-1] else np.inf
        again = consistent(self.run.rows, state.u, state.v, after, min(ahead - after, self.run.duration))
        self.run.restart(stop, again.u)
        return State(stop, again.u, again.v, again.z)

    def _instant(self, t):
        """A time in which nothing happens, as short as numbers allow."""
        return 1e-14 * (np.abs(t) + self.run.duration)

    def jumps(self, times: np.ndarray) -> np.ndarray:
        """Whether the data jump between neighbouring times, or within rounding of it."""
        near = self._instant(times)
        first, last = np.searchsorted(self.switches, times - 8 * near), np.searchsorted(self.switches, times + 8 * near)
        return last[1:] > first[:-1]


def esdirk4(run: Run, start: State, step: float) -> None:
    """Fixed steps of ESDIRK4, order 4, for u' and u'': equal ones from stop to stop, none longer than `step`."""
    method, stops = Esdirk4(run), Stops(run)
    state = stops.reached(start, start.t)
    for begin, end in pairwise(stops.times):
        count = max(1, int(np.ceil((end - begin) / step * (1 - 1e-6))))
        h = float(f"{(end - begin) / count:.11e}")  # rounded, so that equal steps are seen as such
        until = stops.next(float(begin))[1]
        for m in range(1, count + 1):
            state = method.advance(state, h, until)
            state = State(float(begin + m * (end - begin) / count), state.u, state.v, state.z)
            run.accept(state.t, state.u)
        state = stops.reached(state, float(end))


def esdirk4_adaptive(run: Run, start: State, tolerance: float, *, relative: bool = False) -> None:
    """Steps of ESDIRK4 so that the estimated errors of each unknown add up to about tolerance × its size so far.

    With `relative`, each step's error is held against the unknown's size then, however small that has become.

    Wanted step sizes are the duration divided by powers of √2, so that factors serve again; near a requested
    time they are shortened so that a whole number of them leads there. (Interpolation would need slopes, and those of
    stiff components are too poor for it.)
    """
    method, stops, end, duration = Esdirk4(run), Stops(run), float(run.times[-1]), run.duration
    state = stops.reached(start, start.t)
    sizes = run.rows.system.sizes
    carried = abs(run.rows.mass).sum(axis=0) > 0  # unknowns whose velocity is part of the state
    quiet = _quiet(run, stops)
    outlook = _outlook(run, start, quiet)
    size, speed = np.maximum(run.size, _NEGLIGIBLE * outlook), sizes(np.where(carried, start.v, 0.0))
    level = _level(_first_step(run, start, tolerance), duration)
    tries = 0
    while state.t < end:
        tries += 1
        h, wait = duration * 2 ** (-level / 2), quiet(state.t)
        if wait < h:  # just before a pulse, one step leads to it
            h = wait if quiet(state.t + wait) < wait / 8 else duration * 2 ** (-_level(wait, duration) / 2)
        if level > 80 or tries > _MOST_STEPS:
            raise SolveFailed(
                f"the step size fell to {h:.1e} at t={state.t:.6g} after {tries} steps without meeting tolerance="
                f"{tolerance:g}. Does the solution blow up there? Raise the tolerance, or give a step."
            )
        stop, until = stops.next(state.t)
        ahead = stop - state.t
        if ahead < 8 * h:
            # rounded, so that equal steps are seen as such
            h = float(f"{ahead / np.ceil(ahead / h * (1 - 1e-6)):.11e}")
        step = method.step(state, h, 0.02 * tolerance, until)
        if step is None:
            run.rejected += 1
            level += 2
            continue
        after, (error_u, error_v) = step.state, method.errors(step)
        errors = np.array([sizes(error_u), sizes(np.where(carried, error_v, 0.0))])
        if relative:
            size, speed = sizes(state.u), sizes(np.where(carried, state.v, 0.0))
        past = np.array([size, np.maximum(speed, size / duration)])
        now = np.maximum(past, [sizes(after.u), sizes(np.where(carried, after.v, 0.0))])
        # the errors of all steps add up where nothing decays: each may take its share of the tolerance, and what the
        # unknown has grown by, so that one that starts from 0 need not be exact from the first step on
        share = min(1.0, max(1e-3, 2 * h / duration))
        allowed = tolerance * (share * now + now - past)
        error = worst(errors, allowed)
        if not error <= 1:
            lost = run.rows.rounding(method.matrices(h, state).factors, after.u)
            if h < _SWITCH * duration:
                # a source is switched on: the one step across it errs like h, of whatever there was
                lost = np.maximum(lost, 1e-3 * tolerance * outlook)
            error = worst(errors, np.maximum(allowed, [lost, lost / h]))
        factor = min(8.0, max(0.1, 0.9 * max(error, 1e-12) ** (-1 / 3))) if np.isfinite(error) else 0.1
        if not error <= 1:
            run.rejected += 1
            level = max(_level(h * factor, duration), level + 1)
            continue
        state, (size, speed) = after, now
        level = min(level, _level(h * factor, duration)) if factor > 1 else level
        if state.t > stop - 1e-3 * h:
            run.accept(stop, state.u)
            state = stops.reached(state, stop)
            if until < stop and stop < end:
                level = _level(_first_step(run, state, tolerance), duration)
        else:
            run.accept(state.t, state.u)


def _quiet(run: Run, stops: Stops) -> Callable[[float], float]:
    """How far ahead of a time the data change by half of their largest value, switches aside: no step should be longer.

    Error estimates see what the stages see. A pulse that begins and ends between them was never there.
    """
    grid = stops.grid
    if run.rows.system.forcing is None or grid is None:
        return lambda t: np.inf
    values = run.rows.system.forcing(grid)
    changes = np.abs(np.diff(values, axis=0)) / np.maximum(np.max(np.abs(values), axis=0, initial=0.0), 1e-300)
    changes[stops.jumps(grid)] = 0.0
    change = np.concatenate([[0.0], np.cumsum(np.max(changes, axis=1, initial=0.0))])

    def quiet(t: float) -> float:
        place = np.searchsorted(change, np.interp(t, grid, change) + 0.5, side="right")
        return max(float(grid[place]) - t, 1e-11 * run.duration) if place < len(grid) else np.inf

    return quiet


def _outlook(run: Run, start: State, quiet: Callable[[float], float]) -> np.ndarray:
    """How far the forces of the run may move each unknown from its start, (n_names,), by one long implicit step each.

    What lasts for less than a tenth of the run counts for less.

    Digits of what is far smaller than that cost steps and are worth nothing: a source that comes late leaves next to
    nothing before, which need not be followed in its own proportions.
    """
    rows, system, duration = run.rows, run.rows.system, run.duration
    offsets = np.arange(1, 33) * 0.6180339887498949 % 1.0  # spread evenly, and in step with no period
    stored = run.times[np.unique(np.linspace(0, len(run.times) - 1, 17).astype(int))]
    entries = system.stiffness + system.damping / duration + system.mass / duration**2
    if system.jacobian is not None:
        entries = entries + system.jacobian(start.u, start.t)
    still = rows.stiffness @ start.u
    moments = [start.t] if system.forcing is None else [*stored, *(run.times[0] + duration * offsets)]
    pulls = [
        min(1.0, 10 * quiet(t) / duration) * (system.load(t) - still - rows.nonlinear(start.u, t))
        for t in map(float, moments)
    ]
    try:
        moved = run.factorize(entries).solve(np.array(pulls).T)
    except SingularMatrixError:
        return np.zeros(len(system.names))
    return np.max([sizes for sizes in map(system.sizes, moved.T) if np.all(np.isfinite(sizes))], axis=0, initial=0.0)


def _level(h: float, duration: float) -> int:
    """The number k for which the duration divided by √2ᵏ is the largest step up to h; a tenth of it at most."""
    return max(7, int(np.ceil(2 * np.log2(duration / h) - 1e-9)))


def _first_step(run: Run, start: State, tolerance: float) -> float:
    """A guess by the rates of change at the start, of each unknown against its size, or what it soon will be."""
    sizes, duration = run.rows.system.sizes, run.duration
    speed = sizes(start.v)
    heaviest = np.maximum.reduceat(np.abs(run.rows.system.mass), run.rows.system.pattern.indptr[:-1])
    push = sizes(start.z / np.where(run.rows.second, heaviest, 1.0))
    size = np.maximum.reduce([run.size, 1e-3 * duration * speed, 1e-3 * duration**2 * push])
    rate = max(worst(speed, size), np.sqrt(worst(push, size)))
    return min(0.2 * tolerance ** (1 / 4) / rate if rate > 0 else np.inf, 0.1 * duration)
