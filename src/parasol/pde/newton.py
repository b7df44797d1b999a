"""Steady nonlinear problems: damped Newton, and continuation in the parameter where Newton alone fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from parasol.checks import ParasolError, check_finite, check_positive, check_shape
from parasol.pde.sparse_direct import Factors, SingularMatrixError
from parasol.pde.system import System

_TINY_UPDATE = 1e-12  # a relative Newton update below this cannot be told from rounding
_SHORTEST = 1e-4  # damping below this means that the direction is of no use
_QUICK = 4  # Newton steps up to which the continuation dares a longer stride
_SHORTEST_STRIDE = 1e-4
_MOST_STRIDES = 60
_FOLD = 3.0  # the solution runs this much faster at the end of the path than at its start


@dataclass(frozen=True, eq=False)
class NewtonResult:
    """Where Newton's method ended: `history` holds the scaled residual at the guess and after every step."""

    values: np.ndarray  # (n,)
    converged: bool
    history: tuple[float, ...]
    n_steps: int
    reason: str


@dataclass(frozen=True, eq=False)
class SteadyResult:
    """A steady nonlinear solve: `path` holds the parameters at which Newton converged on the way, the last is mu."""

    values: np.ndarray  # (n,)
    newton: NewtonResult
    path: np.ndarray  # (n_path, n_parameters)
    histories: tuple[tuple[float, ...], ...]  # of every Newton run, failed ones too

    @property
    def n_steps(self) -> int:
        """Newton steps in all runs together."""
        return sum(len(history) - 1 for history in self.histories)


def newton(
    system: System, guess: np.ndarray, *, t: float = 0.0, tolerance: float = 1e-10, max_steps: int = 30
) -> NewtonResult:
    """Solve F(u) = K u + N(u) − f = 0 by Newton's method with damping.

    A step λ d with J d = −F is taken if the next simplified correction, with the same J, is shorter than d by the
    factor 1 − λ/4: this natural test does not change when rows are scaled. Residuals are measured row by row
    against the row sums of |J| and relative to the size of the terms |K| |u| + |N| + |f|. A last correction with
    the factors at hand is added for free.

    >>> from parasol.pde.sparse_direct import Pattern
    >>> pattern, zero = Pattern(np.array([0]), np.array([0, 1]), np.zeros((1, 1))), np.zeros(1)
    >>> square = System(pattern, zero, zero, zero, lambda t: 2 + zero, lambda u, t: u**2, lambda u, t: 2 * u)
    >>> newton(square, np.ones(1)).values  # u² = 2
    array([1.41421356])
    """
    u = check_finite(check_shape(guess, (system.n,), "guess"), "guess").copy()
    check_positive(tolerance, "tolerance")
    stiffness = system.matrix(system.stiffness)
    magnitude = abs(stiffness)
    load = system.load(t)

    def residual(state: np.ndarray) -> tuple[np.ndarray, float]:
        """F and its scaled size, relative to the terms it is made of."""
        part = 0.0 if system.nonlinear is None else system.nonlinear(state, t)
        out = stiffness @ state + part - load
        terms = np.max(weight * (magnitude @ np.abs(state) + np.abs(part) + np.abs(load)))
        return out, 0.0 if terms == 0 else float(np.max(weight * np.abs(out)) / terms)

    def result(converged: bool, reason: str) -> NewtonResult:
        return NewtonResult(u, converged, tuple(history), len(history) - 1, reason)

    # a state with values that overflow is refused below: no need to hear of it twice
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        weight = _row_weights(system, u, t)
        f, size = residual(u)
        history = [size]
        factors: Factors | None = None
        for _ in range(max_steps):
            if not np.isfinite(size):
                return result(False, "the residual is not finite")
            if size <= tolerance:
                break
            try:
                factors = system.factorize(jacobian_entries(system, u, t))
            except SingularMatrixError:
                return result(False, "Newton's matrix is singular")
            d = -factors.solve(f)
            length = float(np.linalg.norm(d))
            damping, accepted = 1.0, False
            while damping >= _SHORTEST:
                trial = u + damping * d
                f_new, size_new = residual(trial)
                if np.isfinite(size_new):
                    follow = float(np.linalg.norm(factors.solve(f_new)))
                    if follow <= (1 - damping / 4) * length or size_new <= tolerance:
                        accepted = True
                        break
                damping /= 2
            if not accepted:
                return result(False, f"no step along Newton's direction brings it closer (damping {damping:.0e})")
            u, f, size = trial, f_new, size_new
            history.append(size)
            if damping == 1.0 and length <= _TINY_UPDATE * np.linalg.norm(u):
                return result(True, "the update is at rounding")
        if size > tolerance:
            return result(False, f"{max_steps} steps were not enough (residual {size:.0e})")
        if factors is not None:
            trial = u - factors.solve(f)
            if residual(trial)[1] <= size:
                u = trial
        return result(True, "the residual is below the tolerance")


def jacobian_entries(system: System, u: np.ndarray, t: float) -> np.ndarray:
    """Entries (nnz,) of K + N'(u)."""
    return system.stiffness if system.jacobian is None else system.stiffness + system.jacobian(u, t)


def _row_weights(system: System, u: np.ndarray, t: float) -> np.ndarray:
    sums = abs(system.matrix(jacobian_entries(system, u, t))) @ np.ones(system.n)
    return 1.0 / np.where((sums > 0) & np.isfinite(sums), sums, 1.0)


def start_state(system: System, t: float = 0.0) -> np.ndarray:
    """Zero, but for the unknowns whose row states their value."""
    stated = system.pattern.stated
    u = np.zeros(system.n)
    diagonal = system.stiffness[system.pattern.indptr[:-1][stated]]
    u[stated] = system.load(t)[stated] / np.where(diagonal == 0, 1.0, diagonal)
    return u


def solve_steady_nonlinear(
    make_system: Callable[[np.ndarray], System],
    mu: np.ndarray,
    *,
    guess: np.ndarray | None = None,
    box: np.ndarray | None = None,
    names: Sequence[str] = (),
    tolerance: float = 1e-10,
    max_steps: int = 30,
) -> SteadyResult:
    """Solve the problem at mu from the guess; if that fails, walk to mu from a parameter where it can be solved.

    The walk goes straight through the parameters, from the first of the box's middle, low and high corner at which
    Newton converges; `box` is (2, n_parameters). Strides double after quick success and halve after failure, the
    secant predicts the next state. `names` are those of the parameters, for messages.
    """
    mu = np.atleast_1d(np.asarray(mu, dtype=float))
    system = make_system(mu)
    first = newton(system, start_state(system) if guess is None else guess, tolerance=tolerance, max_steps=max_steps)
    histories = [first.history]
    if first.converged:
        return SteadyResult(first.values, first, mu[None], tuple(histories))
    origin = "zero" if guess is None else "the guess"
    failed = f"no solution found at {_at(mu, names)}: Newton from {origin} stopped after {first.n_steps} steps: {first.reason}"
    if box is None or len(mu) == 0:
        raise ParasolError(f"{failed}. Give a guess nearer to the solution.")
    low, high = check_shape(box, (2, len(mu)), "box")
    for anchor in ((low + high) / 2, low, high):
        if np.allclose(anchor, mu, rtol=1e-12, atol=0):
            continue
        at_anchor = make_system(anchor)
        starts = [start_state(at_anchor)] if guess is None else [np.asarray(guess, dtype=float), start_state(at_anchor)]
        for start in starts:
            found = newton(at_anchor, start, tolerance=tolerance, max_steps=max_steps)
            histories.append(found.history)
            if found.converged:
                return _walk(make_system, anchor, mu, found, histories, failed, names, tolerance)
    raise ParasolError(f"{failed}; nor at the middle, low and high corner of the parameters. Give a guess.")


def _walk(make_system, anchor, mu, found, histories, failed, names, tolerance) -> SteadyResult:
    path, states, places = [anchor], [found.values], [0.0]
    stride, place, reason, tries = 0.25, 0.0, "", 0
    speeds: list[float] = []
    while tries < _MOST_STRIDES and stride >= _SHORTEST_STRIDE:
        tries += 1
        target = min(1.0, place + stride)
        where = anchor + target * (mu - anchor)
        guess = states[-1]
        if len(states) > 1:
            guess = guess + (target - places[-1]) / (places[-1] - places[-2]) * (states[-1] - states[-2])
        # few steps only: near a path Newton is quick, and a long search may end on another branch
        found = newton(make_system(where), guess, tolerance=tolerance, max_steps=12)
        histories.append(found.history)
        if not found.converged:
            stride, reason = (target - place) / 2, found.reason
            continue
        speeds.append(float(np.linalg.norm(found.values - states[-1])) / (target - place))
        path.append(where)
        places, states = [places[-1], target], [states[-1], found.values]
        place = target
        if place == 1.0:
            return SteadyResult(found.values, found, np.array(path), tuple(histories))
        stride *= 2 if found.n_steps <= _QUICK else 1
    fold = len(speeds) > 2 and speeds[-1] > _FOLD * speeds[0]
    why = (
        "where Newton's matrix becomes singular: is there a fold?" if fold else f"for Newton failed beyond ({reason})."
    )
    raise ParasolError(
        f"{failed}; continuation from {_at(anchor, names)} stopped at {_at(path[-1], names)} after {tries} strides, {why} "
        "Choose parameters on this side, or give a guess."
    )


def _at(mu: np.ndarray, names: Sequence[str]) -> str:
    names = names or ([f"mu{i + 1}" for i in range(len(mu))] if len(mu) > 1 else ["mu"])
    return ", ".join(f"{name}={value:.5g}" for name, value in zip(names, mu, strict=False)) or "no parameters"
