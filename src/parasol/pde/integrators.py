"""Time integrators for  M2 u'' + M1 u' + K u + N(u, t) = f(t)  with constraint rows: averaged, SBDF2, ESDIRK4."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from parasol.checks import ParasolError
from parasol.pde.sparse_direct import Factors, SingularMatrixError
from parasol.pde.system import System

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

_GROWTH = 1e6  # times the scale of the data: beyond, a run counts as unstable
_MOST_STEPS = 200_000
_FACTORS_KEPT = 4  # step sizes near each other come and go; each set of factors is large
_MOST_ITERATIONS = 8
_SLOW = 0.3  # contraction of the stage iteration above which the Jacobian is renewed


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a system sorted by their order in time, with its matrices rid of stored zeros."""

    system: System
    of_entry: np.ndarray  # (nnz,) the row of each entry of the pattern
    second: np.ndarray  # (n,) bool: rows with u''
    first: np.ndarray  # (n,) bool: rows with u' but not u''
    constrained: np.ndarray  # (n,) bool
    stiffness: sparse.csr_array
    damping: sparse.csr_array
    mass: sparse.csr_array

    @classmethod
    def of(cls, system: System) -> Rows:
        """Sort the rows of a system."""
        of_entry = np.repeat(np.arange(system.n), np.diff(system.pattern.indptr))
        second = np.bincount(of_entry, weights=system.mass != 0, minlength=system.n) > 0
        constrained = system.constrained

        matrices = [_without_zeros(system, data) for data in (system.stiffness, system.damping, system.mass)]
        return cls(system, of_entry, second, ~second & ~constrained, constrained, *matrices)

    def by_order(self, second: float, first: float, constrained: float = 1.0) -> np.ndarray:
        """(n,) one of three numbers for each row."""
        return np.where(self.second, second, np.where(self.first, first, constrained))

    def nonlinear(self, u: np.ndarray, t: float) -> np.ndarray | float:
        """N(u, t), 0 for a linear system."""
        return 0.0 if self.system.nonlinear is None else self.system.nonlinear(u, t)

    def transfer(self, u: np.ndarray, t: float) -> Callable[[np.ndarray], np.ndarray]:
        """Solver with the matrix that takes the leading time derivative's rows and the constraints' linearisation."""
        system, row = self.system, self.of_entry
        entries = np.where(self.second[row], system.mass, np.where(self.first[row], system.damping, system.stiffness))
        if system.jacobian is not None:
            entries = entries + np.where(self.constrained[row], system.jacobian(u, t), 0.0)
        try:
            return splu(_without_zeros(system, entries).tocsc()).solve
        except RuntimeError:
            raise SingularMatrixError(
                "the boundary conditions do not determine the boundary unknowns from the interior ones at the start. "
                "Every unknown needs a time derivative or a boundary condition of its own."
            ) from None


def _without_zeros(system: System, entries: np.ndarray) -> sparse.csr_array:
    matrix = system.matrix(entries).copy()  # the pattern's own arrays must stay as they are
    matrix.eliminate_zeros()
    return matrix


@dataclass(frozen=True, eq=False)
class State:
    """A moment of a run: u, its derivative, and z = M2 u'' in the rows with u''."""

    t: float
    u: np.ndarray
    v: np.ndarray
    z: np.ndarray


@dataclass(eq=False)
class Run:
    """What a run writes down on its way: states at the requested times, counts, and the growth monitor."""

    rows: Rows
    times: np.ndarray
    values: np.ndarray  # (n_times, n); row 0 is filled
    scale: float  # size of the data
    integrator: str
    advice: str
    progress: Callable[[float], None] | None = None
    n_steps: int = 0
    n_factorizations: int = 0
    rejected: int = 0
    smallest: float = np.inf
    largest: float = 0.0
    started: float = field(default_factory=time.perf_counter)
    _stored: int = 1
    _levels: list = field(default_factory=list)

    @property
    def duration(self) -> float:
        """Length of the time interval."""
        return float(self.times[-1] - self.times[0])

    def factorize(self, data: np.ndarray) -> Factors:
        """Factors, counted."""
        self.n_factorizations += 1
        return self.rows.system.factorize(data)

    def begin(self, t: float, u: np.ndarray) -> None:
        """The state from which the run starts."""
        self._levels = [(t, u)]

    def accept(self, t: float, u: np.ndarray) -> None:
        """Take note of a state reached; stop if it has grown beyond all bounds."""
        before = self._levels[-1][0]
        self.n_steps += 1
        self.smallest, self.largest = min(self.smallest, t - before), max(self.largest, t - before)
        size = float(np.max(np.abs(u), initial=0.0))
        if not size <= _GROWTH * self.scale:
            grown = f"{size:.1e}" if np.isfinite(size) else "infinity"
            raise ParasolError(
                f"unstable: |u| grew to {grown} at t={t:.6g} (data of size {self.scale:.1e}, integrator "
                f"{self.integrator!r}). {self.advice}"
            )
        # four levels carry the cubic for times that steps do not meet, best used between the two in the middle
        self._levels = [*self._levels[-3:], (t, u)]
        if len(self._levels) == 4:
            self._store(self._levels[2][0])
        if self.progress is not None:
            self.progress(min(1.0, (t - self.times[0]) / self.duration))

    def finish(self) -> None:
        """Store what is left."""
        self._store(np.inf)

    def _store(self, until: float) -> None:
        near = 1e-9 * self.duration
        while self._stored < len(self.times) and self.times[self._stored] <= until + near:
            wanted = float(self.times[self._stored])
            exact = [u for t, u in self._levels if abs(t - wanted) <= near]
            if exact:
                self.values[self._stored] = exact[0]
            else:
                weights = interpolation([t for t, _ in self._levels], wanted)
                self.values[self._stored] = sum(w * u for w, (_, u) in zip(weights, self._levels, strict=True))
            self._stored += 1


def interpolation(ts: list[float], t: float) -> np.ndarray:
    """Weights of values at the times ts in the polynomial through them at t.

    >>> interpolation([0.0, 1.0, 2.0], 0.5).tolist()
    [0.375, 0.75, -0.125]
    """
    at = np.asarray(ts)
    gaps = at[:, None] - at + np.eye(len(at))
    return np.prod(np.where(np.eye(len(at), dtype=bool), 1.0, (t - at) / gaps), axis=1)


def averaged(run: Run, start: State, step: float, n_steps: int) -> None:
    """Fixed steps for u'': K averaged over the levels m+1 and m−1, N and f at m, constraints at m+1; order 2.

    M2 (u⁺ − 2u + u⁻)/h² + M1 (u⁺ − u⁻)/(2h) + K (u⁺ + u⁻)/2 + N(u) = f. The level before the first is
    u⁻ = u⁺ − 2h v; there the damping is written (u⁺ − u)/h, which spares a second matrix and keeps the order.
    Nonlinear constraints are taken at the extrapolated 2u − u⁻.
    """
    rows, system, h = run.rows, run.rows.system, step
    inner = ~rows.constrained
    row = rows.of_entry
    weight = np.where(inner, 0.5, 1.0)
    factors = run.factorize(system.mass / h**2 + system.damping / (2 * h) + weight[row] * system.stiffness)
    mass, damping, stiffness = rows.mass, rows.damping, rows.stiffness
    now = 2 * mass / h**2
    past = damping / (2 * h) - mass / h**2 - sparse.diags_array(0.5 * inner) @ stiffness
    load, part = system.load(start.t), rows.nonlinear(start.u, start.t)
    right = 0.5 * (now @ (start.u + h * start.v) + damping @ start.u / h + h * (stiffness @ start.v) + load - part)
    before, u = start.u, start.u
    guess = start.u + h * start.v
    for m in range(1, n_steps + 1):
        t = start.t + m * h
        if m > 1:
            right = now @ u + past @ before + load - part
            guess = 2 * u - before
        load = system.load(t)
        ends = load if system.nonlinear is None else load - rows.nonlinear(guess, t)
        before, u = u, factors.solve(np.where(inner, right, ends))
        run.accept(t, u)
        part = rows.nonlinear(u, t)


def sbdf2(run: Run, start: State, step: float, n_steps: int) -> None:
    """Fixed steps for u': backward differences, N extrapolated; order 2. The first step is one of ESDIRK4.

    M1 (3u⁺ − 4u + u⁻)/(2h) + K u⁺ + 2N(u) − N(u⁻) = f(t⁺).
    """
    rows, system, h = run.rows, run.rows.system, step
    inner = ~rows.constrained
    state = Esdirk4(run).advance(start, h)
    run.accept(state.t, state.u)
    factors = run.factorize(1.5 / h * system.damping + system.stiffness) if n_steps > 1 else None
    before, u = start.u, state.u
    part_before, part = rows.nonlinear(before, start.t), rows.nonlinear(u, start.t + h)
    for m in range(2, n_steps + 1):
        assert factors is not None
        t = start.t + m * h
        history = rows.damping @ (2 * u - 0.5 * before) / h
        right = np.where(inner, history, 0.0) + system.load(t) - (2 * part - part_before)
        before, u = u, factors.solve(right)
        run.accept(t, u)
        part_before, part = part, rows.nonlinear(u, t)


@dataclass(frozen=True, eq=False)
class Matrices:
    """What the stages of one step size need."""

    factors: Factors  # of leading + weight (K + N')
    leading: sparse.csr_array  # M2 + g M1, or M1 in rows without u''
    share: np.ndarray  # (n,) g, 1 or 1/g


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
        # each stage's slope is first guessed by the parabola through the three nearest stages before it
        self._guess = [np.zeros(0)]
        for i in range(1, 6):
            nearest = np.sort(np.argsort(np.abs(PLACES[:i] - PLACES[i]), kind="stable")[:3])
            weights = np.zeros(i)
            weights[nearest] = interpolation(list(PLACES[nearest]), PLACES[i])
            self._guess.append(weights)

    def matrices(self, h: float, state: State, *, renew: bool = False) -> Matrices:
        """Matrices for this step size, with the Jacobian where they were last computed."""
        if renew or h not in self._kept:
            rows, system, g = self.rows, self.rows.system, _GAMMA * h
            entries = system.stiffness
            if system.jacobian is not None:
                entries = entries + system.jacobian(state.u, state.t)
            weight, damped = rows.by_order(g * g, g), rows.by_order(g, 1.0)
            leading = system.mass + damped[rows.of_entry] * system.damping
            factors = self.run.factorize(leading + weight[rows.of_entry] * entries)
            self._kept[h] = Matrices(factors, _without_zeros(system, leading), rows.by_order(g, 1.0, 1 / g))
            if len(self._kept) > _FACTORS_KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(h)
        return self._kept[h]

    def advance(self, state: State, h: float) -> State:
        """One step of a given size, or an error if its equations cannot be solved."""
        found = self.step(state, h, 1e-11 * self.run.scale)
        if found is None:
            raise ParasolError(
                f"the stages of a step of size {h:.3g} at t={state.t:.6g} could not be solved: Newton did not converge. "
                "Use a smaller step."
            )
        return found[0]

    def step(self, state: State, h: float, accuracy: float) -> tuple[State, np.ndarray, np.ndarray] | None:
        """The next state with estimates of the errors in u and u' (filtered by the step's matrix), None if it fails.

        `accuracy` is the size of the last correction at which the iteration for a nonlinear stage stops.
        """
        renewed = h not in self._kept
        for renew in (False, True):
            try:
                found = self._try(state, h, accuracy, self.matrices(h, state, renew=renew), patient=renewed or renew)
            except SingularMatrixError:
                return None
            if found is not None or renewed:
                return found
        return None

    def _try(self, state: State, h: float, accuracy: float, matrices: Matrices, *, patient: bool):
        rows, system, g = self.rows, self.rows.system, _GAMMA * h
        factors, share = matrices.factors, matrices.share
        momentum = rows.mass @ state.v
        slopes, forces, u = [state.v], [state.z], state.u
        for i in range(1, 6):
            a = STAGES[i]
            known = state.u + h * sum(a[j] * slopes[j] for j in range(i))
            carried = momentum + h * sum(a[j] * forces[j] for j in range(i))
            t = state.t + PLACES[i] * h
            load = system.load(t)
            if system.nonlinear is None:
                v = factors.solve(carried + share * (load - rows.stiffness @ known))
            else:
                v = sum(w * slope for w, slope in zip(self._guess[i], slopes, strict=True))
                v = self._iterate(v, known, carried, load, t, g, accuracy, matrices, patient)
                if v is None:
                    return None
            u = known + g * v
            slopes.append(v)
            forces.append((rows.mass @ v - carried) / g)
        if not np.all(np.isfinite(u)):
            return None
        gap = STAGES[5] - EMBEDDED
        error_u = h * sum(gap[j] * slopes[j] for j in range(6))
        error_z = h * sum(gap[j] * forces[j] for j in range(6))
        # dividing by the step's matrix takes out the stiff part, which the embedded formula overestimates
        error_v = factors.solve(error_z - share * (rows.stiffness @ error_u))
        return State(state.t + h, u, slopes[-1], forces[-1]), error_u + g * error_v, error_v

    def _iterate(self, v, known, carried, load, t, g, accuracy, matrices: Matrices, patient) -> np.ndarray | None:
        rows, previous = self.rows, np.inf
        for _ in range(_MOST_ITERATIONS):
            u = known + g * v
            pull = load - rows.stiffness @ u - rows.nonlinear(u, t)
            residual = carried + matrices.share * pull - matrices.leading @ v
            if not np.all(np.isfinite(residual)):
                return None
            change = matrices.factors.solve(residual)
            v = v + change
            size = g * float(np.max(np.abs(change), initial=0.0))
            ratio = size / previous if np.isfinite(previous) else 1.0
            floor = 1e-14 * float(np.max(np.abs(u), initial=0.0))
            if size <= max(accuracy, floor) or size * ratio <= accuracy * (1 - ratio):
                return v
            if ratio > (0.95 if patient else _SLOW) and np.isfinite(previous):
                return None
            previous = size
        return None


def esdirk4(run: Run, start: State, step: float, n_steps: int) -> None:
    """Fixed steps of ESDIRK4: order 4, for u' and u''."""
    method, state = Esdirk4(run), start
    for m in range(1, n_steps + 1):
        state = method.advance(state, step)
        state = State(start.t + m * step, state.u, state.v, state.z)
        run.accept(state.t, state.u)


def esdirk4_adaptive(run: Run, start: State, tolerance: float) -> None:
    """Steps of ESDIRK4 so that their estimated errors add up to about tolerance × the size of u seen so far.

    Wanted step sizes are the duration divided by powers of √2, so that factors serve again; near a requested
    time they are shortened so that a whole number of them leads there. (Interpolation would need slopes, and those of
    stiff components are too poor for it.)
    """
    method, state, end, duration = Esdirk4(run), start, float(run.times[-1]), run.duration
    size = max(float(np.max(np.abs(start.u), initial=0.0)), 1e-3 * run.scale)
    speed = max(float(np.max(np.abs(start.v), initial=0.0)), size / duration)
    heaviest = float(np.max(np.abs(run.rows.system.mass), initial=0.0)) or 1.0
    level = _level(_first_step(run, start, size, tolerance), duration)
    tries = 0
    while state.t < end - 1e-12 * duration:
        tries += 1
        h = duration * 2 ** (-level / 2)
        if level > 80 or tries > _MOST_STEPS:
            raise ParasolError(
                f"the step size fell to {h:.1e} at t={state.t:.6g} after {tries} steps without meeting tolerance="
                f"{tolerance:g}. Does the solution blow up there? Raise the tolerance, or give a step."
            )
        ahead = float(run.times[np.searchsorted(run.times, state.t + 1e-9 * duration)]) - state.t
        if ahead < 8 * h:
            h = float(
                f"{ahead / np.ceil(ahead / h * (1 - 1e-6)):.11e}"
            )  # rounded, so that equal steps are seen as such
        found = method.step(state, h, 0.02 * tolerance * size)
        if found is None:
            run.rejected += 1
            level += 2
            continue
        after, error_u, error_v = found
        size_now = max(size, float(np.max(np.abs(after.u))))
        speed_now = max(speed, float(np.max(np.abs(after.v))))
        kick = float(np.max(np.abs(run.rows.mass @ error_v))) / heaviest
        worst = max(float(np.max(np.abs(error_u))) / size_now, kick / speed_now)
        # the errors of all steps add up where nothing decays: each may take its share of the tolerance
        error = worst / (tolerance * min(1.0, max(1e-3, 2 * h / duration)))
        factor = min(8.0, max(0.1, 0.9 * max(error, 1e-12) ** (-1 / 3)))
        if error > 1:
            run.rejected += 1
            level = max(_level(h * factor, duration), level + 1)
            continue
        state, size, speed = after, size_now, speed_now
        run.accept(state.t, state.u)
        level = min(level, _level(h * factor, duration)) if factor > 1 else level


def _level(h: float, duration: float) -> int:
    """The number k for which the duration divided by √2ᵏ is the largest step up to h; a tenth of it at most."""
    return max(7, int(np.ceil(2 * np.log2(duration / h) - 1e-9)))


def _first_step(run: Run, start: State, size: float, tolerance: float) -> float:
    rate = float(np.max(np.abs(start.v), initial=0.0)) / size
    if np.any(run.rows.second):
        heaviest = float(np.max(np.abs(run.rows.system.mass)))
        rate = max(rate, np.sqrt(float(np.max(np.abs(start.z), initial=0.0)) / heaviest / size))
    return min(0.2 * tolerance ** (1 / 4) / rate if rate > 0 else np.inf, 0.1 * run.duration)
