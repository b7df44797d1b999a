"""Time-dependent problems: from an initial state to values at the requested times, checked on the way."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigs

from parasol.checks import Progress, check_choice, check_finite, check_positive, check_shape
from parasol.errors import InputError, ParasolWarning, SolveFailed
from parasol.pde.esdirk import esdirk4_adaptive
from parasol.pde.integrators import Rows, Run, State, consistent, worst
from parasol.pde.multistep import constant_steps
from parasol.pde.system import System

INTEGRATORS = ("averaged", "sbdf2", "esdirk4")
_TOLERANCE = 1e-5
LARGE_VIOLATION = 1e-2
_DENSE = 500
_MOST_SAMPLES = 200_000
MOST_GROWTH = np.log(1e6)


class Stepping(TypedDict, total=False):
    """The step and the integrator of `solve` where it is given no others, of problems in time."""

    step: float | None
    integrator: str | None


def check_stepping(in_time: bool, *, step: float | None = None, integrator: str | None = None) -> Stepping:
    """Both, None where not given; refused where nothing moves."""
    for option, value in (("step", step), ("integrator", integrator)):
        if value is not None and not in_time:
            raise InputError(f"{option}={value!r} is for problems in time, and this one is steady. Leave it out.")
    return {
        "step": None if step is None else check_positive(step, "step"),
        "integrator": None if integrator is None else check_choice(integrator, INTEGRATORS, "integrator"),
    }


@dataclass(frozen=True, eq=False)
class Trajectory:
    """States (n_times, n) at the requested times, and how they were found."""

    times: np.ndarray
    values: np.ndarray
    n_steps: int
    smallest_step: float
    largest_step: float
    n_factorizations: int
    rejected: int
    seconds: float
    integrator: str


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Extreme eigenvalues of L in u' = L u or u'' = L u (or of a mixture, by u'), after the constraints were eliminated.

    `growth` is the largest rate at which a solution grows: max Re λ, or max Re √λ less the damping's part.
    """

    time_order: int
    largest_real: float
    largest_imag: float
    spectral_radius: float
    growth: float
    kind: str  # "dense": all eigenvalues; "arnoldi": some extreme ones


def integrate(
    system: System,
    initial: np.ndarray,
    times: np.ndarray,
    *,
    velocity: np.ndarray | None = None,
    integrator: str | None = None,
    step: float | None = None,
    tolerance: float | None = None,
    relative: bool = False,
    progress: Progress = None,
) -> Trajectory:
    """Solve M2 u'' + M1 u' + K u + N(u, t) = f(t) from u(times[0]) = initial, u' = velocity where there is u''.

    Without `step`, "esdirk4" (order 4) chooses its steps so that the estimated errors of each unknown function add up to
    about tolerance × max |that function| over the run so far (1e-5 unless given); with `relative`, each step's error is
    held against its size then, so that a solution that decays keeps its digits. With `step`, steps are constant, the
    largest ones up to `step` that meet the requested times: "averaged" (order 2, N explicit) where there is u'',
    "sbdf2" (order 2, N explicit) where there is u' only, or "esdirk4" if named or where rows of both kinds are mixed.
    Where no constant step meets all times, "esdirk4" shortens its steps and the others interpolate by cubics.

    Constraint rows hold at every step and stage, nonlinear ones by Newton's method. Unknowns they fix are corrected at the
    start; those of them that are NaN in `initial` (values outside the domain) are found. An initial state that violates
    them by more than 1e-2 of an unknown's size is stored as given, with a warning. `velocity` counts for unknowns with
    u'' only. `progress` is called with the fraction done.

    >>> from parasol.pde.sparse_pattern import Pattern
    >>> pattern = Pattern(np.array([0]), np.array([0, 1]), np.zeros((1, 1)))
    >>> decay = System(pattern, np.ones(1), np.ones(1), np.zeros(1), lambda t: np.zeros(1))  # u' + u = 0
    >>> round(float(integrate(decay, [1.0], [0.0, 1.0]).values[-1, 0]), 5)
    0.36788
    """
    began = time.perf_counter()
    rows = Rows.of(system)
    integrator, step, tolerance = _choose(rows, integrator, step, tolerance)
    times = _check_times(times)
    duration = float(times[-1] - times[0])
    if step is not None and step > duration * (1 + 1e-9):
        raise InputError(f"step={step:g} is larger than the whole interval of length {duration:g}. Use a smaller one.")
    if relative and step is not None:
        raise InputError(f"relative is for adapted steps, but step={step:g} is given. Give a tolerance instead.")
    u, v = _check_start(rows, initial, velocity)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # the growth monitor speaks instead
        start, given = _consistent(rows, u, v, float(times[0]), duration)
        values = np.empty((len(times), system.n))
        values[0] = given
        size, scale = system.sizes(start.u), _scale(rows, start, duration)
        run = Run(rows, times, values, size, scale, integrator, _advice(integrator, step), progress)
        run.begin(start.t, start.u)
        if step is None:
            esdirk4_adaptive(run, start, tolerance, relative=relative)
            run.finish()
        else:
            n_steps = count_steps(times, step)
            looks = n_steps * (4 if integrator == "esdirk4" else 1)  # its stages see what happens within a step
            _warn_of_pulses(system, np.linspace(times[0], times[-1], min(looks, _MOST_SAMPLES) + 1), duration / n_steps)
            constant_steps(run, start, n_steps)
    return Trajectory(
        times,
        values,
        run.n_steps,
        run.smallest,
        run.largest,
        run.n_factorizations,
        run.rejected,
        time.perf_counter() - began,
        integrator,
    )


def _choose(rows: Rows, integrator, step, tolerance) -> tuple[str, float | None, float]:
    order, mixed = rows.system.time_order, np.any(rows.first) and np.any(rows.second)
    if order == 0:
        raise SolveFailed("the equation has no derivative in time. Solve it as a steady problem.")
    if integrator is None:
        integrator = "esdirk4" if step is None or mixed else "averaged" if order == 2 else "sbdf2"
    check_choice(integrator, INTEGRATORS, "integrator")
    if integrator == "averaged" and mixed:
        raise InputError("integrator='averaged' needs u'' in every equation, some have u' only. Use 'esdirk4'.")
    if integrator == "averaged" and order != 2:
        raise InputError(
            "integrator='averaged' is for equations with u'', this one has u' only. Use 'sbdf2' or 'esdirk4'."
        )
    if integrator == "sbdf2" and order != 1:
        raise InputError(
            "integrator='sbdf2' is for equations with u' only, this one has u''. Use 'averaged' or 'esdirk4'."
        )
    if step is not None and tolerance is not None:
        raise InputError(
            f"step={step} and tolerance={tolerance} exclude each other. Give one: steps are constant or adapted."
        )
    if step is None and integrator != "esdirk4":
        raise InputError(f"integrator={integrator!r} has constant steps. Give step, or use 'esdirk4' with a tolerance.")
    step = None if step is None else check_positive(step, "step")
    return integrator, step, _TOLERANCE if tolerance is None else check_positive(tolerance, "tolerance")


def _check_times(times) -> np.ndarray:
    times = check_finite(check_shape(times, (None,), "times"), "times")
    if len(times) < 2:
        raise InputError(f"times needs at least a first and a last time, got {len(times)}.")
    if np.any(np.diff(times) <= 0):
        i = int(np.argmax(np.diff(times) <= 0))
        raise InputError(f"times must increase, but times[{i + 1}]={times[i + 1]:g} follows {times[i]:g}. Sort them.")
    return times


def _check_start(rows: Rows, initial, velocity) -> tuple[np.ndarray, np.ndarray | None]:
    system = rows.system
    if initial is None:
        raise InputError("the initial state is missing. Give u at the first time.")
    u = check_shape(initial, (system.n,), "initial")
    _refuse_gaps(rows, u, "state", rows.leading)
    if system.time_order == 1:
        if velocity is not None:
            raise InputError("velocity is given, but the equation has u' only. Give the initial state alone.")
        return u, None
    if velocity is None:
        raise InputError(
            "the initial velocity is missing: the equation has u''. Give velocity, zeros for a start at rest."
        )
    v = check_shape(velocity, (system.n,), "velocity")
    _refuse_gaps(rows, v, "velocity", system.mass)
    return u, v


def _refuse_gaps(rows: Rows, values: np.ndarray, what: str, entries: np.ndarray) -> None:
    """Values may be missing where constraints give them, not where a time derivative starts from them."""
    system = rows.system
    needed = np.bincount(system.pattern.indices, weights=entries != 0, minlength=system.n) > 0
    missing = np.flatnonzero(needed & ~np.isfinite(values))
    if len(missing):
        name = system.names[missing[0] // (system.n // len(system.names))]
        place = ", ".join(f"{x:.6g}" for x in system.pattern.points[missing[0]])
        more = f" and {len(missing) - 1} other nodes" if len(missing) > 1 else ""
        raise SolveFailed(
            f"the initial {what} of {name} is {values[missing[0]]} at ({place}){more}. Give an expression that is "
            "finite there, such as Piecewise with the limit."
        )


def _consistent(rows: Rows, u: np.ndarray, v: np.ndarray | None, t: float, duration: float) -> tuple[State, np.ndarray]:
    """A start that meets the constraints, with u' and M2 u'' from the equation, and the state to store for it."""
    system = rows.system
    known = np.isfinite(u)
    given = np.where(known, u, 0.0)
    start = consistent(rows, given, v, t, duration)
    size = np.maximum(system.sizes(given), system.sizes(start.u))
    violation = worst(system.sizes(np.where(known, start.u - given, 0.0)), size)
    # jumps beside the boundary start waves as short as the spacing, which nothing damps
    waves = (
        "; waves as short as the spacing of the nodes start there, and take many steps" if np.any(rows.second) else ""
    )
    if violation > LARGE_VIOLATION:
        warnings.warn(
            f"the initial state violates the boundary conditions at t={t:g} by {violation:.1e} of its size; they hold "
            f"from the first step on{waves}.",
            ParasolWarning,
            stacklevel=3,
        )
    elif v is not None:
        second = np.repeat(np.any(rows.second.reshape(len(system.names), -1), axis=1), system.n // len(system.names))
        change = system.sizes(np.where(second & known & np.isfinite(v), start.v - v, 0.0))
        off = worst(change, np.maximum(system.sizes(np.nan_to_num(v)), size / duration))
        if off > LARGE_VIOLATION:
            warnings.warn(
                f"the initial velocity violates the boundary conditions at t={t:g}, whose rate of change differs by "
                f"{off:.1e} of its size{waves}.",
                ParasolWarning,
                stacklevel=3,
            )
    return start, np.where(known, given, start.u) if violation > LARGE_VIOLATION else start.u


def _scale(rows: Rows, start: State, duration: float) -> np.ndarray:
    """Size of the start of each unknown, with what its velocity makes of it, and of all unknowns together."""
    sizes = rows.system.sizes
    still = sizes(start.u) + (duration * sizes(start.v) if np.any(rows.second) else 0.0)
    return np.append(still, np.max(still))


def _advice(integrator: str, step: float | None) -> str:
    if integrator == "esdirk4":
        cure = "The discrete operator, or the equation itself, has growing solutions"
    else:
        cure = (
            f"Use a step smaller than {step:g} or integrator='esdirk4'; if it still grows, the discrete operator does"
        )
    return f"{cure}: for conditions on slopes use ghost nodes or a PHS kernel, for transport hyperviscosity."


def count_steps(times: np.ndarray, step: float) -> int:
    """Number of equal steps, none longer than `step`, that meets all requested times where that is possible."""
    since = times - times[0]
    least = max(1, int(np.ceil(since[-1] / step * (1 - 1e-9))))

    def meets(n: int) -> bool:
        at = since * (n / since[-1])
        return bool(np.all(np.abs(at - np.round(at)) < 1e-6))

    gaps = round(since[-1] / float(np.min(np.diff(times))))
    if gaps <= 1_000_000 and meets(gaps):
        return gaps * -(-least // gaps)
    return next((n for n in range(least, 4 * least) if meets(n)), least)


def _warn_of_pulses(system: System, at: np.ndarray, step: float) -> None:
    """Say so where data go up and down between the times of constant steps, or more often than these see."""
    if system.forcing is None or system.moments is None:
        return
    grid, _ = system.moments(float(at[0]), float(at[-1]))
    values, seen = system.forcing(grid), system.forcing(at)
    size = np.max(np.abs(values), axis=0, initial=0.0)
    ways = [np.sum(np.abs(np.diff(some, axis=0)), axis=0) for some in (values, seen)]  # up and down together
    missed = ways[0] - 1.5 * ways[1] - 0.5 * size
    if np.any(missed > 0):
        k = int(np.argmax(missed / np.maximum(size, 1e-300)))
        worst_at = grid[np.argmax(np.abs(values[:, k] - np.interp(grid, at, seen[:, k])))]
        warnings.warn(
            f"the data change near t={worst_at:.6g} within one step of {step:.3g}, which does not see it. Use a "
            "smaller step, or leave it to the program: without a step they are adapted to the data.",
            ParasolWarning,
            stacklevel=4,
        )


def spectrum(system: System) -> Spectrum:
    """Eigenvalues of the operator left when the constraints are eliminated, of the linear part.

    u' = L u decays if Re λ ≤ 0; u'' = L u stays bounded only if all λ are real and negative. With E the rows of the
    leading time derivative above those of the constraints, u = E⁻¹ (w, 0) and L w = −K E⁻¹ (w, 0). Where some rows have
    u'' and others u', eigenvalues are those of the system of first order, with u' as further unknowns.
    All eigenvalues are computed for up to 500 unknowns, else a few extreme ones.
    """
    rows = Rows.of(system)
    if system.time_order == 0:
        raise SolveFailed("the equation has no derivative in time, so it has no growth rate.")
    entries, rest = system.stiffness, np.zeros(system.n)
    solve = rows.transfer(rest, 0.0)
    if rows.bent:  # constraints are linearised, as in `solve`: their linear part alone may determine nothing
        part = system.jacobian(rest, 0.0)  # type: ignore[misc]
        entries = entries + np.where(rows.constrained[rows.of_entry], part, 0.0)
    if np.any(rows.first) and np.any(rows.second):
        eigenvalues, kind = _mixed(rows, system.matrix(entries), solve)
        return _summary(system.time_order, eigenvalues, eigenvalues, kind)
    moving = np.flatnonzero(~rows.constrained)
    operator = system.matrix(entries)[moving]

    def apply(w: np.ndarray) -> np.ndarray:
        padded = np.zeros((system.n, *w.shape[1:]))
        padded[moving] = w
        return -(operator @ solve(padded))

    size = len(moving)
    if size <= _DENSE:
        eigenvalues, kind = np.linalg.eigvals(apply(np.eye(size))), "dense"
    else:
        eigenvalues, kind = _extreme(apply, size), "arnoldi"
        # the ends of the spectrum hide what lies near zero, where slow growth sits: look there with an inverse
        shift = 1e-6 * float(np.max(np.abs(eigenvalues), initial=1.0))
        leading = system.mass if system.time_order == 2 else system.damping
        inverse, weight = system.factorize(entries + shift * leading).solve, system.matrix(leading)[moving]

        def apply_inverse(w: np.ndarray) -> np.ndarray:
            padded = np.zeros(system.n)
            padded[moving] = w
            return -(weight @ inverse(padded))

        eigenvalues = np.concatenate([eigenvalues, shift + 1 / _extreme(apply_inverse, size, ("LM",))])
    root = eigenvalues
    if system.time_order == 2:
        half = _uniform_damping(rows) / 2
        root = np.sqrt(eigenvalues.astype(complex) + half**2) - half
    return _summary(system.time_order, eigenvalues, root, kind)


def _summary(order: int, eigenvalues: np.ndarray, root: np.ndarray, kind: str) -> Spectrum:
    real, imag = np.real(eigenvalues), np.imag(eigenvalues)
    largest = float(np.max(real)), float(np.max(np.abs(imag))), float(np.max(np.abs(eigenvalues)))
    return Spectrum(order, *largest, float(np.max(np.real(root))), kind)


def _mixed(rows: Rows, stiffness, solve) -> tuple[np.ndarray, str]:
    """Eigenvalues of a system of first order for rows with u'' and rows with u' together.

    With q = M2 u and p = M2 u' in the former, r = M1 u in the latter: u = E⁻¹ (q, r, 0), u' = E⁻¹ (p, −K u, 0),
    q' = p, p' = −K u − M1 u', r' = −K u. A shift σ is inverted with the rows of σ² M2 + σ M1 + K.
    """
    system, second, first = rows.system, np.flatnonzero(rows.second), np.flatnonzero(rows.first)
    parts = np.cumsum([len(second), len(second)])

    def state_of(in_second: np.ndarray, in_first: np.ndarray) -> np.ndarray:
        padded = np.zeros((system.n, *in_second.shape[1:]))
        padded[second], padded[first] = in_second, in_first
        return solve(padded)

    def apply(w: np.ndarray) -> np.ndarray:
        q, p, r = np.split(w, parts)
        pull = -(stiffness @ state_of(q, r))
        speed = state_of(p, pull[first])
        return np.concatenate([p, pull[second] - (rows.damping @ speed)[second], pull[first]])

    size = 2 * len(second) + len(first)
    if size <= _DENSE:
        return np.linalg.eigvals(apply(np.eye(size))), "dense"
    eigenvalues = _extreme(apply, size)
    shift = 1e-6 * float(np.max(np.abs(eigenvalues), initial=1.0))
    inverse = system.factorize(stiffness.data + shift * system.damping + shift**2 * system.mass).solve

    def apply_inverse(w: np.ndarray) -> np.ndarray:
        q, p, r = np.split(w, parts)
        padded = np.zeros(system.n)
        padded[second], padded[first] = -p - (rows.damping @ state_of(q, r))[second] - shift * q, -r
        u = inverse(padded)
        before = (rows.mass @ u)[second]
        return np.concatenate([before, q + shift * before, (rows.damping @ u)[first]])

    return np.concatenate([eigenvalues, shift + 1 / _extreme(apply_inverse, size, ("LM",))]), "arnoldi"


def _uniform_damping(rows: Rows) -> float:
    """The number b for which M1 = b M2, 0 if there is none."""
    mass, damping = rows.system.mass, rows.system.damping
    b = float(np.sum(mass * damping) / np.sum(mass * mass))
    return b if np.allclose(damping, b * mass, rtol=1e-9, atol=1e-12 * float(np.max(np.abs(mass)))) else 0.0


def _extreme(apply: Callable[[np.ndarray], np.ndarray], size: int, ends=("LM", "LR", "LI")) -> np.ndarray:
    linear = LinearOperator((size, size), matvec=lambda w: apply(np.ravel(w)), dtype=float)  # type: ignore[call-arg]
    start = np.cos(np.arange(size) ** 2.0)  # any vector without a pattern; a fixed one gives the same answer twice
    eigenvalues = [np.empty(0, dtype=complex)]
    for which in ends:
        try:
            eigenvalues.append(
                eigs(linear, k=4, which=which, v0=start, tol=1e-3, maxiter=60, return_eigenvectors=False)
            )
        except ArpackNoConvergence as error:
            eigenvalues.append(error.eigenvalues)
        except ArpackError:
            continue
    return np.concatenate(eigenvalues)
