"""What all integrators of  M2 u'' + M1 u' + K u + N(u, t) = f(t)  share: sorted rows, states, the account of a run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from parasol.checks import Progress
from parasol.errors import SolveFailed
from parasol.pde.sparse_direct import SingularMatrixError
from parasol.pde.system import System

_GROWTH = 1e6  # times the scale of the data: beyond, a run counts as unstable
_MOST_CORRECTIONS = 30
_LEAP = 1.6  # growth in one step above which one unknown's growth is not resolved by the steps


class Equations(ABC):
    """What integrators ask of a system, or of many small ones: matrices with `@`, and weights by the rows' order in time.

    States are (n,) for one system, (n_samples, d) for many small ones of size d, with one size for each sample.
    """

    system: Any
    stiffness: Any
    damping: Any
    mass: Any
    constrained: Any  # rows without a time derivative
    bent: Any  # whether N enters constraints
    fine = 1e-12  # relative size of the last correction of a stage where steps are constant

    def nonlinear(self, u: np.ndarray, t: float) -> np.ndarray | float:
        """N(u, t), 0 for a linear system."""
        return 0.0 if self.system.nonlinear is None else self.system.nonlinear(u, t)

    @abstractmethod
    def by_order(self, second: float, first: float, constrained: float = 1.0) -> Any:
        """One of three numbers for each row; see `by_entry` for the entries of a matrix."""

    @abstractmethod
    def by_entry(self, second: float, first: float, constrained: float = 1.0) -> Any:
        """One of three numbers for each entry of a matrix, by its row."""

    @abstractmethod
    def matrix(self, entries: np.ndarray) -> Any:
        """Entries such as those of `system.mass` as a matrix that multiplies states."""

    def averaging(self, before: float | None, t: float, after: float) -> np.ndarray | float:
        """What averaging K u over two levels makes of boundary data that are not in u: nothing where they are."""
        return 0.0

    def rounding(self, factors: Any, u: np.ndarray) -> np.ndarray:
        """What rounding does to each unknown in a solve, (n_names,): A⁻¹ (ε |A| |u|) with signs without a pattern.

        An unknown that is 0 by symmetry has errors of this size, however small the step.
        """
        signs = np.where(np.arange(u.shape[-1]) * 2654435761 % 2**32 < 2**31, 1.0, -1.0)
        lost = factors.solve(signs * (abs(factors.matrix) @ np.abs(u)))
        return 64 * np.finfo(float).eps * self.system.sizes(lost)


@dataclass(frozen=True, eq=False)
class Rows(Equations):
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
        matrices = [without_zeros(system, data) for data in (system.stiffness, system.damping, system.mass)]
        return cls(system, of_entry, second, ~second & ~constrained, constrained, *matrices)

    def by_order(self, second: float, first: float, constrained: float = 1.0) -> np.ndarray:
        """(n,) one of three numbers for each row."""
        return np.where(self.second, second, np.where(self.first, first, constrained))

    def by_entry(self, second: float, first: float, constrained: float = 1.0) -> np.ndarray:
        """(nnz,) one of three numbers for each entry of the pattern."""
        return self.by_order(second, first, constrained)[self.of_entry]

    def matrix(self, entries: np.ndarray) -> sparse.csr_array:
        """A sparse matrix from entries in the pattern, without stored zeros."""
        return without_zeros(self.system, entries)

    @property
    def leading(self) -> np.ndarray:
        """(nnz,) the entries of each row's highest time derivative, 0 in constraints."""
        row = self.of_entry
        first = np.where(self.first[row], self.system.damping, 0.0)
        return np.where(self.second[row], self.system.mass, first)

    @cached_property
    def bent(self) -> bool:
        """Whether N enters constraints."""
        if self.system.nonlinear is None:
            return False
        where = self.system.nonlinear_rows
        return bool(np.any(self.constrained if where is None else self.constrained & where))

    def transfer(self, u: np.ndarray, t: float) -> Callable[[np.ndarray], np.ndarray]:
        """Solver with the matrix that takes the leading time derivative's rows and the constraints' linearisation."""
        system, row = self.system, self.of_entry
        entries = self.leading + np.where(self.constrained[row], system.stiffness, 0.0)
        if self.bent:
            entries = entries + np.where(self.constrained[row], system.jacobian(u, t), 0.0)  # type: ignore[misc]
        try:
            return splu(without_zeros(system, entries).tocsc()).solve
        except RuntimeError:
            raise SingularMatrixError(
                "the boundary conditions do not determine the boundary unknowns from the interior ones at the start. "
                "Every unknown needs a time derivative or a boundary condition of its own."
            ) from None


def without_zeros(system: System, entries: np.ndarray) -> sparse.csr_array:
    """A sparse matrix from entries in the pattern, without stored zeros."""
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

    rows: Any  # Rows, or other equations
    times: np.ndarray
    values: np.ndarray  # (n_times, n), or (n_times, n_samples, d); row 0 is filled
    size: np.ndarray  # (n_names,) largest |value| of each unknown so far
    scale: np.ndarray  # (n_names + 1,) size of the data of each unknown, and of all of them together
    integrator: str
    advice: str
    progress: Progress = None
    n_steps: int = 0
    n_factorizations: int = 0
    rejected: int = 0
    smallest: float = np.inf
    largest: float = 0.0
    _stored: int = 1
    _levels: list = field(default_factory=list)
    _sizes: list = field(default_factory=list)  # of the unknowns at the last steps

    @property
    def duration(self) -> float:
        """Length of the time interval."""
        return float(self.times[-1] - self.times[0])

    def factorize(self, data: np.ndarray) -> Any:
        """Factors, counted."""
        self.n_factorizations += 1
        return self.rows.system.factorize(data)

    def begin(self, t: float, u: np.ndarray) -> None:
        """The state from which the run starts."""
        self._levels, self._sizes = [(t, u)], [self.rows.system.sizes(u)]

    def accept(self, t: float, u: np.ndarray) -> None:
        """Take note of a state reached; stop if it has grown beyond all bounds."""
        before = self._levels[-1][0]
        self.n_steps += 1
        self.smallest, self.largest = min(self.smallest, t - before), max(self.largest, t - before)
        size = self.rows.system.sizes(u)
        self._watch(t, u, size)
        self.size = np.maximum(self.size, size)
        self._sizes = [*self._sizes[-20:], size]
        # four levels carry the cubic for times that steps do not meet, best used between the two in the middle
        self._levels = [*self._levels[-3:], (t, u)]
        if len(self._levels) == 4:
            self._store(self._levels[2][0])
        if self.progress is not None:
            self.progress(min(1.0, (t - self.times[0]) / self.duration))

    def _watch(self, t: float, u: np.ndarray, size: np.ndarray) -> None:
        """Refuse a state that has grown beyond all that was seen to drive it, and any one unknown that does so in leaps.

        One unknown may well grow from a trace beside larger ones, in many small steps; what explicit steps that are too
        long do to it takes few.
        """
        names, size = self.rows.system.names, np.append(size, np.max(size))
        for k in np.flatnonzero(~(size <= _GROWTH * self.scale)):
            alone, finite = k < len(names), np.isfinite(size[k])
            if alone and finite and size[k] <= _LEAP ** len(self._sizes) * self._sizes[0][k]:
                continue
            if finite:
                self.scale[k] = max(self.scale[k], self._drive(int(k), t, u))
            if not size[k] <= _GROWTH * self.scale[k]:
                name = names[k if alone else int(np.argmax(size[:-1]))]
                grown = f"{size[k]:.1e}" if finite else "infinity"
                raise SolveFailed(
                    f"unstable: |{name}| grew to {grown} at t={t:.6g} (data of size {self.scale[k]:.1e}, integrator "
                    f"{self.integrator!r}). {self.advice}"
                )

    def _drive(self, k: int, t: float, u: np.ndarray) -> float:
        """What f and the other unknowns make of unknown k (of all where k is their number) in the whole time.

        That is the rate of change that the equations give where the unknown itself is 0, times the duration. Only times
        that the last step has seen count: a load that vanishes at all of them has moved nothing.
        """
        rows, system, before = self.rows, self.rows.system, self._levels[-1][0]
        own = np.ones(u.shape, dtype=bool)
        if k < len(system.names):
            own = np.arange(system.n) // (system.n // len(system.names)) == k
        others = np.where(own, 0.0, u)
        try:
            solve = rows.transfer(u, t)
        except SingularMatrixError:
            return 0.0
        most = 0.0
        for s in np.linspace(before, t, 6):
            pull = system.load(float(s)) - rows.stiffness @ others - rows.nonlinear(others, float(s))
            reached = solve(rows.by_order(self.duration**2, self.duration) * np.where(np.isfinite(pull), pull, 0.0))
            most = max(most, float(np.max(np.abs(reached[own]))))
        return most

    def restart(self, t: float, u: np.ndarray) -> None:
        """The last state reached is to be another, since the data have just jumped."""
        self._levels[-1] = (t, u)

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


def consistent(rows: Rows, u: np.ndarray, v: np.ndarray | None, t: float, ahead: float) -> State:
    """The state nearest to u that meets the constraints, with u' and M2 u'' from the equation just after t.

    `v` is the velocity, of which only that of unknowns with u'' counts; the data change smoothly for a time `ahead`.
    """
    system, held = rows.system, rows.constrained
    solve, load = rows.transfer(u, t), system.load(t)
    for _ in range(_MOST_CORRECTIONS if rows.bent else 1):
        change = solve(np.where(held, load - rows.stiffness @ u - rows.nonlinear(u, t), 0.0))
        u = u + change
        if not rows.bent or worst(system.sizes(change), 1e-12 * system.sizes(u)) <= 1:
            break
        solve = rows.transfer(u, t)
    else:
        # rounding may keep corrections above that; larger ones mean that there is no solution near the given state
        if not worst(system.sizes(change), 1e-8 * system.sizes(u)) <= 1:
            raise SolveFailed(
                f"the nonlinear boundary conditions or algebraic equations have no solution near the state at t={t:g}: "
                "Newton did not converge. Give an initial state closer to them."
            )
    # one-sided second-order difference: the load is not asked for before the first time
    d = 1e-5 * ahead
    part = rows.nonlinear(u, t)
    drift = (
        4 * (system.load(t + d) - rows.nonlinear(u, t + d))
        - (system.load(t + 2 * d) - rows.nonlinear(u, t + 2 * d))
        - 3 * (load - part)
    ) / (2 * d)
    pull = load - part - rows.stiffness @ u
    momentum = 0.0 if v is None else rows.mass @ np.where(np.isfinite(v), v, 0.0)
    slope = solve(np.where(held, drift, np.where(rows.first, pull, momentum)))
    return State(t, u, slope, np.where(rows.second, pull - rows.damping @ slope, 0.0))


def interpolation(ts: list[float], t: float) -> np.ndarray:
    """Weights of values at the times ts in the polynomial through them at t.

    >>> interpolation([0.0, 1.0, 2.0], 0.5).tolist()
    [0.375, 0.75, -0.125]
    """
    at = np.asarray(ts)
    gaps = at[:, None] - at + np.eye(len(at))
    return np.prod(np.where(np.eye(len(at), dtype=bool), 1.0, (t - at) / gaps), axis=1)


def worst(errors: np.ndarray, allowed: np.ndarray) -> float:
    """The largest ratio of errors to what is allowed; an error of 0 is always allowed.

    >>> worst(np.array([0.0, 1.0]), np.array([0.0, 2.0]))
    0.5
    """
    # called several times in every stage: what is not divided needs no care for warnings, and integrators silence the rest
    return float(np.divide(errors, allowed, out=np.zeros(errors.shape), where=errors != 0).max(initial=0.0))
