"""Steps in time of many small dense systems at once:  M2 c'' + M1 c' + K c + q(t) + N(c, t) = f(t)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from parasol.checks import ParasolError
from parasol.pde.esdirk import PLACES, STAGES
from parasol.pde.integrators import interpolation

_GAMMA = 0.25
_MOST_ITERATIONS = 12
_GROWTH = 1e8  # times the data: beyond, a state is given up


@dataclass(frozen=True, eq=False)
class SmallSystems:
    """One small system for each of n parameters; a matrix that is the same for all of them has length 1 on axis 0.

    `load(t)` is f − q, (n, d); `lifted(t)` is q alone, which boundary data add to K c. `nonlinear(c, t)` is (n, d),
    `jacobian(c, t)` its derivative (n, d, d); both are None for linear systems. `mass` is None where there is no u''.
    """

    mass: np.ndarray | None  # (n or 1, d, d)
    damping: np.ndarray  # (n or 1, d, d)
    stiffness: np.ndarray  # (n or 1, d, d)
    force: Callable[[float], np.ndarray]  # f(t)
    lifted: Callable[[float], np.ndarray]  # q(t)
    nonlinear: Callable[[np.ndarray, float], np.ndarray] | None = None
    jacobian: Callable[[np.ndarray, float], np.ndarray] | None = None

    def part(self, c: np.ndarray, t: float) -> np.ndarray | float:
        """N(c, t), 0 for linear systems."""
        return 0.0 if self.nonlinear is None else self.nonlinear(c, t)


def apply(matrices: np.ndarray, c: np.ndarray) -> np.ndarray:
    """A c for each of n vectors (n, d), with matrices (n, d, d) or one for all (1, d, d).

    >>> apply(np.array([[[0.0, 2.0], [1.0, 0.0]]]), np.array([[1.0, 5.0]]))
    array([[10.,  1.]])
    """
    return c @ matrices[0].T if len(matrices) == 1 else np.matmul(matrices, c[:, :, None])[:, :, 0]


def march(
    systems: SmallSystems,
    start: np.ndarray,
    velocity: np.ndarray | None,
    begin: float,
    step: float,
    n_steps: int,
    integrator: str,
) -> np.ndarray:
    """All levels (n_steps + 1, n, d) from c(begin) = start, by the rules of the full model's integrators.

    >>> one = np.ones((1, 1, 1))
    >>> zero = lambda t: np.zeros((1, 1))
    >>> decay = SmallSystems(None, one, one, zero, zero)  # c' + c = 0
    >>> round(float(march(decay, np.ones((1, 1)), None, 0.0, 0.1, 10, "esdirk4")[-1, 0, 0]), 6)
    0.367879
    """
    levels = np.empty((n_steps + 1, *start.shape))
    levels[0] = start
    duration = n_steps * step
    scale = _sizes(start) if velocity is None else _sizes(start) + duration * _sizes(velocity)
    method = {"averaged": _averaged, "sbdf2": _sbdf2, "esdirk4": _esdirk4}[integrator]
    with np.errstate(over="ignore", invalid="ignore"):  # what grows is told below
        for m, c in enumerate(method(systems, start, velocity, begin, step, n_steps), start=1):
            levels[m] = c
            size = _sizes(c)
            if not np.all(size <= _GROWTH * scale):
                scale = np.maximum(scale, _drive(systems, start, begin + (m - 1) * step, step, duration))
            if not np.all(size <= _GROWTH * scale):
                raise ParasolError(
                    f"the reduced steps grow beyond all bounds at t={begin + m * step:.6g}: the reduced model is unstable "
                    "there. Use more modes, another projection, or full solves."
                )
    return levels


def _sizes(c: np.ndarray) -> np.ndarray:
    """The largest |coefficient| of each sample, (n,)."""
    return np.max(np.abs(c), axis=1, initial=0.0)


def _drive(systems: SmallSystems, start: np.ndarray, t: float, step: float, duration: float) -> np.ndarray:
    """What the forces seen in the step from t make of c = 0 in the whole time, (n,)."""
    leading = systems.damping if systems.mass is None else systems.mass
    inverse, reach = np.linalg.inv(leading), duration if systems.mass is None else duration**2
    most = np.zeros(len(start))
    for s in t + PLACES * step:
        force = systems.force(s) - systems.lifted(s) - systems.part(0 * start, s)
        most = np.maximum(most, reach * _sizes(apply(inverse, np.where(np.isfinite(force), force, 0.0))))
    return most


def _averaged(systems: SmallSystems, start, velocity, begin, h, n_steps):
    """M2 (c⁺ − 2c + c⁻)/h² + M1 (c⁺ − c⁻)/(2h) + K (c⁺ + c⁻)/2 + N(c) = f; the first step as in the full model."""
    mass, damping, stiffness = systems.mass, systems.damping, systems.stiffness
    assert mass is not None
    inverse = np.linalg.inv(mass / h**2 + damping / (2 * h) + stiffness / 2)
    past = damping / (2 * h) - mass / h**2 - stiffness / 2
    now = 2 * mass / h**2
    lifted, after = systems.lifted(begin), systems.lifted(begin + h)
    pull = systems.force(begin) - systems.part(start, begin)
    d = 1e-5 * h * n_steps
    drift = (4 * systems.lifted(begin + d) - systems.lifted(begin + 2 * d) - 3 * lifted) / (2 * d)
    right = apply(now, start + h * velocity) + apply(damping, start) / h + h * (apply(stiffness, velocity) + drift)
    before, c = start, apply(inverse, (right + pull - after) / 2)
    yield c
    for m in range(1, n_steps):
        t = begin + m * h
        earlier, lifted, after = lifted, after, systems.lifted(t + h)
        right = apply(now, c) + apply(past, before) + systems.force(t) - systems.part(c, t) - (after + earlier) / 2
        before, c = c, apply(inverse, right)
        yield c


def _sbdf2(systems: SmallSystems, start, velocity, begin, h, n_steps):
    """M1 (3c⁺ − 4c + c⁻)/(2h) + K c⁺ + 2N(c) − N(c⁻) = f(t⁺), after one step of ESDIRK4."""
    c = next(_esdirk4(systems, start, velocity, begin, h, 1))
    yield c
    inverse = np.linalg.inv(1.5 / h * systems.damping + systems.stiffness)
    before, part_before, part = start, systems.part(start, begin), systems.part(c, begin + h)
    for m in range(2, n_steps + 1):
        t = begin + m * h
        right = apply(systems.damping, 2 * c - 0.5 * before) / h + systems.force(t) - systems.lifted(t)
        before, c = c, apply(inverse, right - (2 * part - part_before))
        yield c
        part_before, part = part, systems.part(c, t)


def _esdirk4(systems: SmallSystems, start, velocity, begin, h, n_steps):
    """Fixed steps of ESDIRK4, with stages solved for their slopes; the Jacobian is that of the step's begin."""
    g = _GAMMA * h
    mass, second = systems.mass, systems.mass is not None
    share = g if second else 1.0
    leading = systems.damping if mass is None else mass + g * systems.damping
    matrix = leading + share * g * systems.stiffness
    inverse = np.linalg.inv(matrix)

    def pull(c, t):
        return systems.force(t) - systems.lifted(t) - apply(systems.stiffness, c) - systems.part(c, t)

    c = start
    if second:
        v = velocity
        z = pull(c, begin) - apply(systems.damping, v)
    else:
        v, z = apply(np.linalg.inv(systems.damping), pull(c, begin)), None
    for m in range(n_steps):
        t = begin + m * h
        if systems.jacobian is not None:
            inverse = np.linalg.inv(matrix + share * g * systems.jacobian(c, t))
        slopes, forces = [v], [z]
        momentum = 0.0 if mass is None else apply(mass, v)
        for i in range(1, 6):
            known = c + h * sum(STAGES[i][j] * slopes[j] for j in range(i))
            carried = momentum + h * sum(STAGES[i][j] * forces[j] for j in range(i)) if second else 0.0
            slope = _stage(systems, known, carried, slopes[-1], t + PLACES[i] * h, g, share, leading, inverse, pull)
            slopes.append(slope)
            forces.append(None if mass is None else (apply(mass, slope) - carried) / g)
        c, v, z = known + g * slopes[-1], slopes[-1], forces[-1]
        yield c


def _stage(systems, known, carried, slope, t, g, share, leading, inverse, pull) -> np.ndarray:
    if systems.nonlinear is None:
        return apply(inverse, carried + share * pull(known, t))
    for _ in range(_MOST_ITERATIONS):
        u = known + g * slope
        change = apply(inverse, carried + share * pull(u, t) - apply(leading, slope))
        slope = slope + change
        size, whole = g * _sizes(change), _sizes(u + g * change)
        if np.all(size <= 1e-11 * whole):
            return slope
    if np.all(size <= 1e-7 * whole) or not np.all(np.isfinite(size)):  # what grows is told by `march`
        return slope
    raise ParasolError(
        f"the stages of the reduced steps could not be solved at t={t:.6g}: Newton did not converge. Use more steps (a "
        "smaller step of the model), or full solves."
    )


def picks(times: np.ndarray, step: float, n_steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Levels and weights, both (n_times, 4), by which values at the times follow from those at the steps: cubics.

    >>> picks(np.array([0.0, 0.5]), 0.25, 4)[0][:, 0].tolist()
    [0, 2]
    """
    levels, weights = np.zeros((len(times), 4), dtype=int), np.zeros((len(times), 4))
    for i, t in enumerate((times - times[0]) / step):
        nearest = round(float(t))
        if abs(t - nearest) < 1e-6 or n_steps < 3:
            levels[i], weights[i, 0] = min(nearest, n_steps), 1.0
        else:
            levels[i] = np.arange(4) + np.clip(int(t) - 1, 0, n_steps - 3)
            weights[i] = interpolation(list(levels[i].astype(float)), float(t))
    return levels, weights
