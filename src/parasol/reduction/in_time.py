"""The reduced model of a problem in time: the full model's steps with few modes and few rows, for many parameters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from parasol.checks import check_choice, check_positive, check_shape
from parasol.errors import InputError, NoCertificate, ParasolWarning, SolveFailed
from parasol.expressions import as_function
from parasol.pde.matrices import AffineModel, AffineState
from parasol.pde.model import Model
from parasol.pde.parameters import ParameterSpace
from parasol.pde.transient import LARGE_VIOLATION, count_steps
from parasol.reduction.bases_in_space import compressed_pod, space_basis
from parasol.reduction.constraints import INSTEAD, Constraints, stored_times
from parasol.reduction.reduced import modes_on_unknowns
from parasol.reduction.sampled import nonlinear_values
from parasol.reduction.semidiscrete import InitialState, SemiDiscrete, project
from parasol.reduction.stepping import march
from parasol.runtime.basis import Basis, slices

Watch = Callable[[], None] | None  # called on the way: whoever waits may end the work by an error
PROJECTIONS = ("galerkin", "least-squares")
_BATCH = 2**19  # numbers in the matrices of one batch: they stay in the cache
_BLOCK = 2**24  # numbers of a block of lifted solutions
_MOST_DOUBLINGS = 8
_TOLERANCE, _FINEST = 1e-4, 1e-8  # where the basis does not know what it leaves, and at least
_FAR = 10  # times what the modes allow: beyond, something other than the modes is missing
_MOST_ERROR = 0.1  # of the training trajectories: beyond, the reduced steps are worth nothing


@dataclass(frozen=True, eq=False, repr=False)
class TimeReducedModel:
    """u(t; μ) ≈ V c(t; μ) + G f_c(t; μ), with c from the full model's own time steps, projected.

    `error` and `projection_error` are mean relative errors of the trajectories it was made from, over all times and
    nodes: of the reduced steps, and of the best that the modes allow.
    """

    basis: Basis  # in space: (n_fields * n_nodes, d)
    parameters: ParameterSpace
    n_parameters: int
    system: SemiDiscrete
    initial: tuple[InitialState | AffineState, ...]  # of u, and of u' where there is u''
    lifted: np.ndarray  # G at the nodes, (n_fields * n_nodes, n_active): what boundary data add
    held: np.ndarray  # (n_fields * n_nodes,) bool: nodes without a time derivative
    times: np.ndarray  # (n_times,)
    step: float
    n_steps: int
    integrator: str
    projection: str
    error: float = float("nan")
    projection_error: float = float("nan")

    def __repr__(self) -> str:
        points = sum(len(s.lift) for s in self.system.nonlinear)
        sampled = f", N at {points} rows" if points else ""
        return f"<TimeReducedModel {self.n_modes} modes{sampled}, {self.n_steps} steps of {self.integrator}>"

    @property
    def n_modes(self) -> int:
        """Number of modes in space, d."""
        return self.basis.n_modes

    @property
    def n_times(self) -> int:
        """Number of stored times."""
        return len(self.times)

    def check(self, mus: ArrayLike | Mapping[str, Any], *, extrapolate: bool = False) -> np.ndarray:
        """Parameter vectors as floats, refused if of wrong length or outside the box."""
        return self.parameters.check_vectors(mus, self.n_parameters, extrapolate=extrapolate)

    def coefficients(
        self, mus: ArrayLike | Mapping[str, Any], *, extrapolate: bool = False, watch: Watch = None
    ) -> np.ndarray:
        """c at the stored times, (n_samples, n_times, d), for parameters (n_samples, n_parameters)."""
        mus = self.check(mus, extrapolate=extrapolate)
        out = np.empty((len(mus), self.n_times, self.n_modes))
        start = [state(mus[:, : len(self.parameters.scalars)]) for state in self.initial]
        for rows in slices(len(mus), max(8, _BATCH // self.n_modes**2)):
            c, v = start[0][rows], start[1][rows] if len(start) > 1 else None
            values = out[rows].transpose(1, 0, 2)
            march(self.system.systems(mus[rows]), c, v, self.times, self.n_steps, self.integrator, values, watch=watch)
        return out

    def lift(self, coefficients: ArrayLike, mus: ArrayLike | None = None) -> np.ndarray:
        """Values at all stored times and nodes (n_samples, n_times * n_fields * n_nodes), as `Evolution.flat`.

        Boundary data other than 0 are added for the parameters `mus`, which may be left out where there are none.
        """
        c = check_shape(coefficients, (None, self.n_times, self.n_modes), "coefficients")
        out = c @ self.basis.modes.T
        if self.lifted.shape[1]:
            if mus is None:
                raise InputError("the boundary has data: give the parameters too, lift(coefficients, mus).")
            mus = check_shape(mus, (len(c), self.n_parameters), "mus")
            for k, t in enumerate(self.times):
                out[:, k] += self.system.data(mus, float(t)) @ self.lifted.T
        if mus is not None and np.any(self.held):
            # as full solves do: a start that violates the boundary conditions is stored as given
            given = self.initial[0].values(np.asarray(mus)[:, : len(self.parameters.scalars)])
            gap, *sizes = (
                np.max(np.abs(part).reshape(len(c), self.initial[0].n_fields, -1), axis=2)
                for part in ((given - out[:, 0]) * self.held, given, out[:, 0])
            )
            wrong = np.flatnonzero(np.any(gap > LARGE_VIOLATION * np.maximum(*sizes), axis=1))
            at = np.ix_(wrong, np.flatnonzero(self.held))
            out[:, 0][at] = given[at]
        return out.reshape(len(c), -1)

    def blocks(
        self, mus: ArrayLike | Mapping[str, Any], *, extrapolate: bool = False, watch: Watch = None
    ) -> Iterator[np.ndarray]:
        """Values for many parameters, some rows at a time."""
        mus = self.check(mus, extrapolate=extrapolate)
        for rows in slices(len(mus), max(1, _BLOCK // (self.n_times * self.basis.n_values))):
            yield self.lift(self.coefficients(mus[rows], extrapolate=True, watch=watch), mus[rows])

    def values(
        self, mus: ArrayLike | Mapping[str, Any], *, extrapolate: bool = False, watch: Watch = None
    ) -> np.ndarray:
        """Values (n_samples, n_times * n_fields * n_nodes) for parameters (n_samples, n_parameters)."""
        mus = self.check(mus, extrapolate=extrapolate)
        out = np.empty((len(mus), self.n_times * self.basis.n_values))
        start = 0
        for block in self.blocks(mus, extrapolate=True, watch=watch):
            out[start : start + len(block)] = block
            start += len(block)
        return out

    def growth(self, mus: ArrayLike | Mapping[str, Any]) -> np.ndarray:
        """Fastest growth rate in time of the linear part, (n_samples,): max Re λ of the reduced equation."""
        mus = self.check(mus, extrapolate=True)
        systems, d = self.system.systems(mus), self.n_modes
        parts = [np.broadcast_to(a, (len(mus), d, d)) for a in (systems.damping, systems.stiffness)]
        if systems.time_order == 1:
            return np.max(np.real(np.linalg.eigvals(-np.linalg.solve(*parts))), axis=1)
        mass = np.broadcast_to(systems.mass, (len(mus), d, d))
        damping, stiffness = (np.linalg.solve(mass, part) for part in parts)
        eye = np.broadcast_to(np.eye(d), (len(mus), d, d))
        companion = np.block([[np.zeros_like(eye), eye], [-stiffness, -damping]])
        return np.max(np.real(np.linalg.eigvals(companion)), axis=1)


def reduce_trajectories(
    model: Model,
    basis: Basis,
    snapshots,
    *,
    tolerance: float | None = None,
    projection: str | None = None,
    n_steps: int | None = None,
    step_tolerance: float | None = None,
    watch: Watch = None,
) -> TimeReducedModel:
    """A reduced model in time from some trajectories: the full model's scheme and step, projected on modes in space.

    After the constraints are eliminated, M2 u'' + M1 u' + K u + N(u) = f is tested with the modes themselves
    ("galerkin"), or with the step's matrix applied to them ("least-squares": the least residual of a step at the middle
    parameter). Unless `projection` says which, Galerkin is kept where it follows the training trajectories to five
    times what the modes allow, else the better of both. N is fitted at 1.5 times as many rows as its own modes, which
    leave `tolerance` of its values (default: what the basis leaves of the snapshots it was made from, else 1e-4).

    A model with a step of its own keeps it; one with adapted steps gets constant ones of ESDIRK4, as many as change
    the training trajectories by less than `step_tolerance`, a tenth of the tolerance where left out. The only error is
    then that of the reduction.

    Worth it for sine-Gordon (57 × 57 nodes, 101 times, 30 trajectories, 20 others to test): tolerance 1e-4 takes 66 modes
    and N at 254 rows, errs by 1.9e-4 over space and time (4.6e-4 at worst; the modes alone 1.2e-4). The coefficients of
    a trajectory in a batch of 500 come about 140 times as fast as a full solve, all its values at the nodes 20 to 40
    times. Tolerance 1e-5 gives 2.2e-5, at 64 times. Ten trajectories give 2.5e-4, five 1.8e-3: `error` is that of the
    training trajectories and flatters where they are few.

    Refused, with full solves as the way out: boundary conditions that are nonlinear or whose left sides depend on the
    parameters, mixtures of u'' and u', and reduced steps that miss their own training trajectories by 10 %. Where they
    miss them by ten times what the modes allow there is a warning: mostly too few times were stored for the modes to
    know what happens between them (Gray-Scott with 11 times: 4e-3 instead of 1e-4). `watch` is called on the way, and
    may end it by an error.
    """
    if tolerance is None:
        known = len(basis.singular_values) >= basis.n_modes
        tolerance = float(np.clip(basis.energy_discarded[basis.n_modes], _FINEST, 0.1)) if known else _TOLERANCE
    check_positive(tolerance, "tolerance")
    if projection is not None:
        check_choice(projection, PROJECTIONS, "projection")
    training = _Training.of(Constraints.of(model), snapshots, basis, tolerance, watch)
    best: TimeReducedModel | None = None
    reasons = []
    for kind in PROJECTIONS if projection is None else (projection,):
        try:
            reduced = training.reduced(kind, n_steps, step_tolerance or 0.1 * tolerance, watch)
        except SolveFailed as error:
            reasons.append(str(error))
            continue
        if best is None or reduced.error < best.error:
            best = reduced
        if best.error <= max(5 * best.projection_error, tolerance):
            break
    if best is None or not best.error <= _MOST_ERROR:
        what = f"miss the training trajectories by {best.error:.0%}" if best else f"fail ({reasons[0]})"
        raise NoCertificate(f"the reduced steps with {basis.n_modes} modes {what}. Use more modes. Or: {INSTEAD}.")
    if best.error > _FAR * max(best.projection_error, tolerance):
        warnings.warn(
            f"the reduced steps miss the training trajectories by {best.error:.1e}, the modes by "
            f"{best.projection_error:.1e}: between the stored times, or at other rows of N, solutions leave what was seen. "
            f"Store more times, or lower the tolerance. {INSTEAD}.",
            ParasolWarning,
            stacklevel=3,
        )
    return best


def reduce_in_time(
    model: Model, snapshots, *, tolerance=1e-4, n_modes=None, basis=None, nonlinear_tolerance=None, **options
) -> TimeReducedModel:
    """What `ps.reduce_in_time` was in version 0.1.0: basis and reduced model in one."""
    if basis is None:
        basis = space_basis(model, snapshots, tolerance=None if n_modes else tolerance, n_modes=n_modes or None)
    return reduce_trajectories(model, basis, snapshots, tolerance=nonlinear_tolerance or tolerance, **options)


@dataclass(frozen=True, eq=False)
class _Training:
    """What all projections of one model on one basis share."""

    constraints: Constraints
    basis: Basis
    modes: np.ndarray  # (n_unknowns, d)
    metric: np.ndarray  # (n_unknowns,)
    collateral: np.ndarray | None
    mus: np.ndarray
    coefficients: np.ndarray  # (n_samples, n_times, d), the best
    sizes: np.ndarray  # (n_samples,) of the trajectories
    missing: np.ndarray  # (n_samples,) what the modes cannot represent

    @classmethod
    def of(cls, constraints: Constraints, snapshots, basis: Basis, tolerance: float, watch: Watch = None) -> _Training:
        model, times = constraints.model, stored_times(constraints.model)
        modes = modes_on_unknowns(model, basis)
        mus, coefficients, sizes, missing = [], [], [], []

        def passing() -> Iterator[np.ndarray]:
            for mu, states, data in constraints.trajectories(snapshots):
                if watch is not None:
                    watch()
                values = model.layout.at_nodes(states)
                c = basis.project(values)
                mus.append(mu)
                coefficients.append(c)
                missing.append(np.linalg.norm(basis.norm(values - basis.lift(c))))
                whole = states + data @ constraints.lift.T
                sizes.append(np.linalg.norm(basis.norm(model.layout.at_nodes(whole))))
                if model.terms.nonlinear:
                    yield np.hstack(nonlinear_values(model, [mu] * len(times), whole, times))

        collateral = compressed_pod(passing(), tolerance, None).modes if model.terms.nonlinear else None
        if collateral is None:
            for _ in passing():
                pass
        if not mus:
            raise InputError("snapshots are empty: there is nothing to learn from. Solve at some parameters first.")
        # equations of stencils are weighted like values; those of matrices have their weights in them
        plain = basis.weights is None or isinstance(model, AffineModel)
        metric = np.ones(model.n_unknowns) if plain else model.layout.weights(basis.weights)  # type: ignore[arg-type]
        return cls(
            constraints,
            basis,
            modes,
            metric,
            collateral,
            np.array(mus),
            np.array(coefficients),
            np.where(np.array(sizes) > 0, sizes, 1.0),
            np.array(missing),
        )

    def reduced(self, kind: str, n_steps: int | None, step_tolerance: float, watch: Watch = None) -> TimeReducedModel:
        """The reduced model of one projection, with its error."""
        model, times = self.constraints.model, stored_times(self.constraints.model)
        order, duration = self.constraints.time_order, float(times[-1] - times[0])
        free = model.step is None or any(form.leading_moves for form in model.problem.forms)
        integrator = model.integrator or ("esdirk4" if free else "averaged" if order == 2 else "sbdf2")
        fixed = n_steps is not None or model.step is not None
        count = n_steps or count_steps(times, model.step or duration / max(8, len(times) - 1))

        def system(count: int) -> SemiDiscrete:
            return project(self.constraints, self.modes, self._tests(kind, duration / count), self.collateral)

        reduced = TimeReducedModel(
            basis=self.basis,
            parameters=model.parameters,
            n_parameters=model.n_parameters,
            system=system(count),
            initial=self._initial(),
            lifted=self._lifted(),
            held=model.layout.at_nodes(~np.isin(np.arange(model.n_unknowns), self.constraints.moving)),
            times=times,
            step=duration / count,
            n_steps=count,
            integrator=integrator,
            projection=kind,
        )
        c = reduced.coefficients(self.mus, extrapolate=True, watch=watch)
        for _ in range(0 if fixed else _MOST_DOUBLINGS):
            count *= 2
            reduced = replace(reduced, step=duration / count, n_steps=count)
            if kind == "least-squares":  # the test functions know the step
                reduced = replace(reduced, system=system(count))
            before, c = c, reduced.coefficients(self.mus, extrapolate=True, watch=watch)
            if np.max(np.linalg.norm(c - before, axis=(1, 2)) / self.sizes) <= step_tolerance:
                break
        gaps = np.hypot(np.linalg.norm(c - self.coefficients, axis=(1, 2)), self.missing) / self.sizes
        return replace(reduced, error=float(np.mean(gaps)), projection_error=float(np.mean(self.missing / self.sizes)))

    def _lifted(self) -> np.ndarray:
        lift = self.constraints.lift
        return self.constraints.model.layout.at_nodes(lift.T).T if lift.size else np.zeros((self.basis.n_values, 0))

    def _tests(self, kind: str, h: float) -> np.ndarray:
        """Test functions (n_unknowns, d), zero on constraints."""
        moving = self.constraints.moving
        columns = self.modes
        if kind == "least-squares":
            system = self.constraints.model.system(self.constraints.model.vector())
            data = system.stiffness + 2 / h * system.damping
            if self.constraints.time_order == 2:
                data = system.stiffness / 2 + system.damping / (2 * h) + system.mass / h**2
            columns = h**self.constraints.time_order * (system.matrix(data) @ self.modes)
        out = np.zeros_like(self.modes)
        out[moving] = self.metric[moving, None] * columns[moving]
        return out

    def _initial(self) -> tuple[InitialState | AffineState, ...]:
        model, moving = self.constraints.model, self.constraints.moving
        few = self.modes[moving]
        weighted = self.metric[moving, None] * few
        whole = np.zeros_like(self.modes)
        whole[moving] = linalg.solve(few.T @ weighted, weighted.T, assume_a="pos").T
        projection = model.layout.at_nodes(whole.T).T
        if isinstance(model, AffineModel):
            return tuple(given.projected(projection) for given in model.start)
        symbols = [*model.problem.coordinates, *model.problem.parameter_symbols[0]]
        states = model.problem.initial_states
        return tuple(
            InitialState(
                tuple(as_function((*states[name], 0 * states[name][0])[i], symbols) for name in model.problem.names),
                model.nodes.points,
                projection,
            )
            for i in range(self.constraints.time_order)
        )
