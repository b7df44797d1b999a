"""Steady nonlinear problems: damped Newton, and where that fails continuation from a linear problem or another parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from parasol.checks import check_finite, check_positive, check_shape
from parasol.errors import SolveFailed
from parasol.pde.sparse_direct import SingularMatrixError, random_signs
from parasol.pde.system import System

_TOLERANCE = 1e-10  # of a correction, relative to the solution
_SHORTEST = 1e-4  # damping below this means that the direction is of no use
_MOST_STEPS = 100  # from far away a term u^p shrinks u by the factor 1 − 1/p a step: 1e6 to 1 in 62 steps for p = 5
NOISE = 32.0  # roundings by which a correction may exceed its estimate from one draw of random signs
_QUICK = 4  # Newton steps up to which the next stride of a continuation is longer
_SHORTEST_STRIDE = 1e-4
_MOST_STRIDES = 60
# from a linear problem: the linear term added, relative to Newton's matrix, at first and last before 0, its factors from
# one step to the next at first, least and most, and how well and in how many Newton steps the problems between are solved
_LARGEST, _SMALLEST = 10.0, 1e-6
_SHRINK, _FASTEST, _SLOWEST = 0.3, 0.1, 0.97
_LOOSE, _FEW_STEPS = 1e-3, 8
_FOLD = 3.0  # the solution runs this much faster at the end of the path than at its start
_ADVICE = "Give solve(guess=...) the solution of a milder problem (a smaller load, a larger regularisation)"


@dataclass(frozen=True, eq=False)
class NewtonResult:
    """Where Newton's method ended.

    `history` holds the correction that is due, at the guess and after every step: the largest over the unknown
    functions, each relative to its own size. `noise` is how far rounding may move each unknown function. `start` says
    from where a solution was reached: a nonlinear problem may have others.
    """

    values: np.ndarray  # (n,)
    converged: bool
    history: tuple[float, ...]
    reason: str
    noise: np.ndarray  # (n_fields,)
    start: str = ""

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return max(len(self.history) - 1, 0)


def newton(
    system: System, guess: np.ndarray, *, tolerance: float = _TOLERANCE, max_steps: int = _MOST_STEPS
) -> NewtonResult:
    """Solve F(u) = K u + N(u) − f = 0 by Newton's method with damping.

    A step λ d with J d = −F is taken if the next simplified correction, with the same J, is shorter than d by the
    factor 1 − λ/4. It has converged when the full correction of each unknown function is below the tolerance, relative
    to the size of that function, or within the rounding of the residual; the correction is added all the same. Neither
    test changes when equations or unknowns are scaled, and neither looks at the residual, which is small relative to its
    terms wherever these are large (Deuflhard 2004, algorithm NLEQ-ERR).

    >>> from parasol.pde.sparse_pattern import Pattern
    >>> pattern, zero = Pattern(np.array([0]), np.array([0, 1]), np.zeros((1, 1))), np.zeros(1)
    >>> square = System(pattern, zero, zero, zero, lambda t: 2 + zero, lambda u, t: u**2, lambda u, t: 2 * u)
    >>> newton(square, np.ones(1)).values  # u² = 2
    array([1.41421356])
    """
    u = check_finite(check_shape(guess, (system.n,), "guess"), "guess").copy()
    check_positive(tolerance, "tolerance")
    n_fields = len(system.names)
    stiffness, load = system.matrix(system.stiffness), system.load(0.0)
    signs = random_signs(system.n)
    history: list[float] = []
    before = noise = np.zeros(n_fields)

    def result(converged: bool, reason: str) -> NewtonResult:
        return NewtonResult(u, converged, tuple(history), reason, noise)

    # a state with values that overflow is refused below, with its reason
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        f = system.residual(u)
        for _ in range(max_steps + 1):
            entries = jacobian_entries(system, u, 0.0)
            if not (np.all(np.isfinite(f)) and np.all(np.isfinite(entries))):
                return result(False, "the residual or its slope is not finite")
            try:
                factors = system.factorize(entries)
            except SingularMatrixError as error:
                why = str(error).partition(". ")[0].rstrip(".")
                return result(False, f"Newton's matrix is singular: linearised there, {why}")
            terms = abs(factors.matrix) @ np.repeat(system.sizes(u), system.n // n_fields)
            terms += np.abs(f + load - stiffness @ u) + np.abs(load)
            d, possible = factors.solve(np.column_stack([-f, signs * terms])).T
            # what the unknown would be if the terms of its equations did not cancel, and what their rounding makes of it
            possible = system.sizes(possible)
            noise = NOISE * np.finfo(float).eps * possible
            length, size = system.sizes(d), system.sizes(u + d)
            # an unknown that vanishes but for rounding is measured by what it was before the last full step
            scale = np.where(size > noise, size, np.maximum(possible, before))
            history.append(largest_ratio(length, scale))
            if np.all(length <= np.maximum(tolerance * scale, noise)):
                u = u + d
                return result(True, "the correction is below the tolerance")
            weight = np.maximum(_means(u, n_fields), _means(d, n_fields))

            def measure(v: np.ndarray) -> float:
                return float(np.linalg.norm(_ratios(np.maximum(_means(v, n_fields) - noise, 0.0), weight)))  # noqa: B023

            damping = 1.0
            while damping >= _SHORTEST:
                trial = u + damping * d
                f = system.residual(trial)
                follow = -factors.solve(f) if np.all(np.isfinite(f)) else np.full_like(f, np.inf)
                if measure(follow) <= (1 - damping / 4) * measure(d):
                    break
                damping /= 2
            else:
                return result(False, "no step along Newton's direction brings it closer")
            u, before = trial, system.sizes(u) if damping == 1.0 else np.zeros(n_fields)
            # the next correction with the same matrix ends it too, if this one was short enough to trust the matrix
            close = np.all(length <= np.maximum(np.sqrt(10 * tolerance) * scale, noise))
            if damping == 1.0 and close and np.all(system.sizes(follow) <= np.maximum(tolerance * scale, noise)):
                u = u + follow
                history.append(largest_ratio(system.sizes(follow), scale))
                return result(True, "the correction is below the tolerance")
        return result(False, f"{max_steps} steps were not enough (the next would be {history[-1]:.0e} of the solution)")


def _means(values: np.ndarray, n_fields: int) -> np.ndarray:
    """The root mean square of each unknown function, (n_fields,)."""
    return np.sqrt(np.mean(values.reshape(n_fields, -1) ** 2, axis=1))


def _ratios(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """first / second, where 0 / 0 is 0."""
    return np.divide(first, second, out=np.where(first > 0, np.inf, 0.0), where=second > 0)


def largest_ratio(first: np.ndarray, second: np.ndarray) -> float:
    """The largest of first / second, where 0 / 0 is 0."""
    return float(np.max(_ratios(first, second)))


def jacobian_entries(system: System, u: np.ndarray, t: float) -> np.ndarray:
    """Entries (nnz,) of K + N'(u)."""
    return system.stiffness if system.jacobian is None else system.stiffness + system.jacobian(u, t)


def start_state(system: System) -> np.ndarray:
    """Zero, but for the unknowns whose row states their value."""
    stated = system.pattern.stated
    u = np.zeros(system.n)
    diagonal = system.stiffness[system.pattern.indptr[:-1][stated]]
    u[stated] = system.load(0.0)[stated] / np.where(diagonal == 0, 1.0, diagonal)
    return u


def linear_state(system: System) -> np.ndarray:
    """For each unknown function the linear function closest to the values that rows state."""
    points, n_fields = system.pattern.points, system.pattern.n_fields
    centred = (points - np.mean(points, axis=0)) / (np.ptp(points, axis=0).max() or 1.0)
    monomials = np.column_stack([np.ones(len(points)), centred])
    out, stated = np.split(start_state(system), n_fields), np.split(system.pattern.stated, n_fields)
    for k, (values, known, here) in enumerate(zip(out, stated, np.split(monomials, n_fields), strict=True)):
        out[k] = here @ np.linalg.lstsq(here[known], values[known], rcond=1e-10)[0] if np.any(known) else values
    return np.concatenate(out)


def solve_steady_nonlinear(
    make_system: Callable[[np.ndarray], System],
    mu: np.ndarray,
    *,
    guess: np.ndarray | None = None,
    box: np.ndarray | None = None,
    names: Sequence[str] = (),
    doubt: Callable[[NewtonResult], str] = lambda result: "",
) -> NewtonResult:
    """Solve the problem at mu from the guess; if that fails, walk to mu from a parameter where it can be solved.

    Without a guess Newton starts from zero; if that fails, solutions are followed from a linear problem to this one, see
    `from_linear`, and what `doubt` says against the end of that path, if anything, refuses it. The walk to mu goes
    straight through the parameters, from the first of the box's middle, low and high corner at which a solution is
    found; `box` is (2, n_parameters). `names` are those of the parameters, for messages.
    """
    mu = np.atleast_1d(np.asarray(mu, dtype=float))

    def attempt(where: np.ndarray) -> NewtonResult:
        """A solution that says from where it was reached, or a failure whose reason says what was tried."""
        system = make_system(where)
        starts = {} if guess is None else {"the guess": np.asarray(guess, dtype=float)}
        if guess is None or where is not mu:
            starts["zero"] = start_state(system)
        tried = []
        for name, state in starts.items():
            result = newton(system, state)
            if result.converged:
                return replace(result, start=f"Newton from {name}")
            tried.append(f"Newton from {name} stopped after {result.n_steps} steps: {result.reason}")
        if "zero" in starts and system.nonlinear is not None:
            result, start = from_linear(system), "continuation from a linear problem"
            reason = doubt(result) if result.converged else result.reason
            if not reason:
                return replace(result, start=start)
            tried.append(f"{start} failed: {reason}")
        return replace(result, converged=False, reason="; ".join(tried))

    result = attempt(mu)
    if result.converged:
        return result
    failed = f"no solution found{_at(mu, names)}: {result.reason}"
    if box is None or len(mu) == 0:
        raise SolveFailed(
            f"{failed}. {_ADVICE}, or make such a number a parameter: solve then walks through its range."
        )
    low, high = check_shape(box, (2, len(mu)), "box")
    for anchor in ((low + high) / 2, low, high):
        if np.allclose(anchor, mu, rtol=1e-12, atol=0):
            continue
        result = attempt(anchor)
        if result.converged:
            start = f"continuation from {_at(anchor, names, '')}, there {result.start}"
            return _walk(make_system, anchor, mu, replace(result, start=start), failed, names)
    raise SolveFailed(f"{failed}; nor at the middle, low and high corner of the parameters. {_ADVICE}.")


def from_linear(system: System) -> NewtonResult:
    """Solve F(w) + κ A (w − u) = 0 for w, put w in place of u, and so on with κ from large, where it is linear, to 0.

    A is Newton's matrix at `linear_state` in the equations that are not linear, and the first u solves A u = A v with the
    other equations and conditions. Where slopes enter nonlinearly, as in the p-Laplace equation, A is an elliptic operator
    with constant coefficients: these are implicit steps in time of A u' + F(u) = 0, where changes spread at once and
    critical points of u, in which the equation degenerates, do no harm.
    """
    load, v = system.load(0.0), linear_state(system)
    some = ~system.pattern.stated if system.nonlinear_rows is None else system.nonlinear_rows
    row = np.repeat(np.arange(system.n), np.diff(system.pattern.indptr))
    with np.errstate(all="ignore"):
        added = np.where(some[row], jacobian_entries(system, v, 0.0), 0.0)
    matrix = system.matrix(added)
    try:
        u = system.factorize(np.where(some[row], added, system.stiffness)).solve(np.where(some, matrix @ v, load))
    except SingularMatrixError:
        return NewtonResult(v, False, (), "that has no unique solution", np.zeros(len(system.names)))
    with np.errstate(all="ignore"):
        needed = _row_sizes(system, jacobian_entries(system, u, 0.0))[some] / _row_sizes(system, added)[some]
    first = k = last = _LARGEST * float(np.max(needed))
    shrink = _SHRINK
    for _ in range(_MOST_STRIDES):
        pull = load + k * (matrix @ u)
        step = replace(system, stiffness=system.stiffness + k * added, load=lambda t, pull=pull: pull)
        result = newton(step, u, tolerance=_LOOSE if k > 0 else _TOLERANCE, max_steps=_FEW_STEPS)
        if result.converged and k == 0:
            return result
        if result.converged:
            u, last = result.values, k
            shrink = max(shrink**1.5, _FASTEST) if result.n_steps <= _QUICK else shrink
        else:
            shrink = np.sqrt(shrink)
            if shrink > _SLOWEST or k == first:
                break
        k = last * shrink if last * shrink > _SMALLEST * first else 0.0
    return replace(result, converged=False)


def _row_sizes(system: System, entries: np.ndarray) -> np.ndarray:
    """The largest |entry| of each row, (n,)."""
    return np.maximum.reduceat(np.abs(entries), system.pattern.indptr[:-1])


def _walk(make_system, anchor, mu, result: NewtonResult, failed: str, names: Sequence[str]) -> NewtonResult:
    """Follow the solution from that at the anchor to mu, in strides as long as Newton's method allows."""
    states, places = [result.values], [0.0]
    stride, place, reason, tries, start = 0.25, 0.0, "", 0, result.start
    speeds: list[float] = []
    while tries < _MOST_STRIDES and stride >= _SHORTEST_STRIDE:
        tries += 1
        target = min(1.0, place + stride)
        guess = states[-1]
        if len(states) > 1:
            guess = guess + (target - places[-1]) / (places[-1] - places[-2]) * (states[-1] - states[-2])
        system = make_system(anchor + target * (mu - anchor))
        # few steps only: near a path Newton is quick, and a long search may end on another branch
        result = newton(system, guess, max_steps=12)
        if not result.converged:
            stride, reason = (target - place) / 2, result.reason
            continue
        moved, size = (system.sizes(v) for v in (result.values - states[-1], result.values))
        speeds.append(largest_ratio(moved, size) / (target - place))
        places, states = [place, target], [states[-1], result.values]
        place = target
        if place == 1.0:
            return replace(result, start=start)
        stride *= 2 if result.n_steps <= _QUICK else 1
    fold = len(speeds) > 2 and speeds[-1] > _FOLD * speeds[0]
    why = (
        "where Newton's matrix becomes singular: is there a fold?" if fold else f"for Newton failed beyond ({reason})."
    )
    raise SolveFailed(
        f"{failed}; {start} stopped{_at(anchor + place * (mu - anchor), names)} after {tries} strides, {why} "
        "Choose parameters on this side, or give a guess."
    )


def _at(mu: np.ndarray, names: Sequence[str], at: str = " at ") -> str:
    """The parameters in words; nothing where there are none."""
    names = names or ([f"mu{i + 1}" for i in range(len(mu))] if len(mu) > 1 else ["mu"])
    return at + ", ".join(f"{n}={v:.5g}" for n, v in zip(names, mu, strict=False)) if len(mu) else ""
