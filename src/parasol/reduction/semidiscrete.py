"""A problem in time seen through few modes and few rows: small matrices, one per affine term, and a sampled N."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import linalg

from parasol.expressions import Function, as_function
from parasol.pde.rows import Varying
from parasol.reduction.affine import Theta, separated_operators
from parasol.reduction.constraints import Constraints, stored_times
from parasol.reduction.interpolation import fitting_points, interpolate
from parasol.reduction.sampled import SampledRows
from parasol.reduction.stepping import SmallSystems
from parasol.runtime.basis import slices
from parasol.runtime.rows import RowFunction

_MOST_ROWS = 500  # of a source that changes in time: beyond, it is interpolated
_FINE = 1e-10
_BLOCK = 2**24  # numbers of initial states worked on at a time


@dataclass(frozen=True, eq=False)
class Source:
    """A load that is not affine: its coefficient at some rows, and what a unit there does."""

    coefficient: RowFunction
    places: np.ndarray | None  # of function values in mu
    to_force: np.ndarray  # (n_rows, d)
    to_data: np.ndarray  # (n_rows, n_active)

    def factors(self, mus: np.ndarray, t: float) -> np.ndarray:
        """(n_samples, n_rows)."""
        values = self.coefficient(mus, t)
        return values if self.places is None else values * mus[:, self.places]


@dataclass(frozen=True, eq=False)
class InitialState:
    """Coefficients at the start from the formulas of u or u' at the nodes."""

    formulas: tuple[Function, ...]  # one per unknown, of coordinates and scalars
    points: np.ndarray  # (n_nodes, dimension)
    projection: np.ndarray  # (n_fields * n_nodes, d)

    @property
    def n_fields(self) -> int:
        """Number of unknown functions."""
        return len(self.formulas)

    def __call__(self, scalars: np.ndarray) -> np.ndarray:
        """(n_samples, d) for scalars (n_samples, n_scalars)."""
        out = np.empty((len(scalars), self.projection.shape[1]))
        for rows in slices(len(scalars), max(1, _BLOCK // len(self.projection))):
            out[rows] = self.values(scalars[rows]) @ self.projection
        return out

    def values(self, scalars: np.ndarray) -> np.ndarray:
        """The formulas at the nodes, (n_samples, n_fields * n_nodes)."""
        columns = [*self.points.T, *scalars.T[:, :, None]]
        shape = (len(scalars), len(self.points))
        return np.hstack([np.broadcast_to(formula(*columns), shape) for formula in self.formulas])


@dataclass(frozen=True, eq=False)
class SemiDiscrete:
    """M2(μ) c'' + M1(μ) c' + K(μ) c + N(c, t; μ) = f(t; μ), all of size d, for any parameters."""

    time_order: int
    in_time: tuple[tuple[int, Function, np.ndarray], ...]  # order, theta, (d, d)
    stiffness: np.ndarray  # (Q, d, d)
    stiffness_theta: Theta
    loads: np.ndarray  # (Q_f, d)
    load_data: np.ndarray  # (Q_f, n_active)
    load_theta: Theta
    of_data: np.ndarray  # (Q, n_active, d): K_q G seen through the test functions
    sources: tuple[Source, ...]
    nonlinear: tuple[SampledRows, ...]
    error: float  # of coefficients that the equation does not separate

    def data(self, mus: np.ndarray, t: float) -> np.ndarray:
        """The boundary data, (n_samples, n_active)."""
        out = self.load_theta(mus) @ self.load_data
        for source in self.sources:
            if np.any(source.to_data):
                out = out + source.factors(mus, t) @ source.to_data
        return out

    def systems(self, mus: np.ndarray) -> SmallSystems:
        """The small systems of some parameters."""
        theta, phi = self.stiffness_theta(mus), self.load_theta(mus)
        n, d = len(mus), self.loads.shape[1]
        scalars = mus[:, : self.stiffness_theta.n_scalars].T
        matrices = [np.zeros((1, d, d)), np.zeros((1, d, d))]
        for order, function, matrix in self.in_time:
            weight = np.broadcast_to(function(*scalars), (n,))
            matrices[order - 1] = matrices[order - 1] + _combined(weight[:, None], matrix[None])
        fixed = [s for s in self.sources if not s.coefficient.n_times]
        moving = [s for s in self.sources if s.coefficient.n_times]
        steady = phi @ self.loads + sum(s.factors(mus, 0.0) @ s.to_force for s in fixed)
        in_time = [s for s in moving if np.any(s.to_force)]

        def force(t: float) -> np.ndarray:
            return sum((s.factors(mus, t) @ s.to_force for s in in_time), start=steady)

        moves = any(np.any(s.to_data) for s in moving)
        kept = None if moves else self.data(mus, 0.0)

        def data(t: float) -> np.ndarray:
            return self.data(mus, t) if kept is None else kept

        @lru_cache(4)  # averaged steps ask for each time several times
        def pulled(t: float) -> np.ndarray:
            pulls = np.tensordot(data(t), self.of_data, axes=(1, 1))  # (n, Q, d)
            return np.einsum("nq,nqd->nd", theta, pulls)

        if not moves:
            steady = steady - pulled(0.0)

        def nonlinear(c: np.ndarray, t: float) -> np.ndarray:
            given = data(t)
            return sum(s.values(mus, c, t, given) @ s.lift for s in self.nonlinear)  # type: ignore[return-value]

        def jacobian(c: np.ndarray, t: float) -> np.ndarray:
            given = data(t)
            return sum(s.slopes(mus, c, t, given) @ s.lift for s in self.nonlinear).transpose(0, 2, 1)  # type: ignore[union-attr]

        return SmallSystems(
            mass=matrices[1] if self.time_order == 2 else 0.0,
            damping=matrices[0],
            stiffness=_combined(theta, self.stiffness),
            force=force,
            lifted=pulled if moves else None,
            nonlinear=nonlinear if self.nonlinear else None,
            jacobian=jacobian if self.nonlinear else None,
        )


def _combined(theta: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """Σ θ_q A_q, (n, d, d), or (1, d, d) where it is the same for all."""
    if np.all(theta == theta[:1]):
        theta = theta[:1]
    return np.tensordot(theta, matrices, axes=1)


def project(
    constraints: Constraints, modes: np.ndarray, tests: np.ndarray, collateral: np.ndarray | None
) -> SemiDiscrete:
    """The small system of modes (n_unknowns, d), tested with (n_unknowns, d), zero on the constraints' rows.

    `collateral` (n_nonlinear_rows, m) spans values of N on all its rows, part after part.
    """
    model, lift = constraints.model, constraints.lift
    mus = model.sample(200, rng=0)
    operators, operator_rows, errors = separated_operators(model, mus, _FINE)
    scalars = model.problem.parameter_symbols[0]
    formulas = model.terms.theta_functions
    sources = []
    for part in model.terms.varying_load:
        for moving in (True, False):
            inside = np.isin(part.positions, constraints.moving) == moving
            if np.any(inside):
                source, error = _source(constraints, part.take(np.flatnonzero(inside)), tests, mus)
                sources.append(source)
                errors.append(error)
    return SemiDiscrete(
        time_order=constraints.time_order,
        in_time=tuple(
            (order, as_function(theta, scalars), tests.T @ (model.terms.matrix(entries) @ modes))
            for order, theta, entries in model.terms.time_data
        ),
        stiffness=np.array([tests.T @ (a @ modes) for a in operators]),
        stiffness_theta=Theta(tuple(formulas[0]), tuple(operator_rows), len(scalars)),
        loads=model.terms.loads @ tests,
        load_data=model.terms.loads[:, constraints.active],
        load_theta=Theta(tuple(formulas[1]), (), len(scalars)),
        of_data=np.array([(tests.T @ (a @ lift)).T for a in operators]),
        sources=tuple(sources),
        nonlinear=() if collateral is None else _sampled(constraints, modes, tests, collateral),
        error=max(errors, default=0.0),
    )


def _source(constraints: Constraints, part: Varying, tests: np.ndarray, mus: np.ndarray) -> tuple[Source, float]:
    model, error = constraints.model, 0.0
    to_force = part.values[:, None] * tests[part.positions]
    to_data = part.values[:, None] * (part.positions[:, None] == constraints.active)
    if part.coefficient.n_times and len(part.positions) > _MOST_ROWS:
        times = stored_times(model)
        # in step with no period: a source may vanish at all stored times
        between = times[0] + (times[-1] - times[0]) * (np.arange(1, 21) * 0.6180339887498949 % 1.0)
        times = np.concatenate([times[:: max(1, len(times) // 20)], between])
        places = model.inputs.places(part.function, part.nodes)
        values = [part.coefficient(mus[:20], float(t)) for t in times]
        interpolation = interpolate(
            np.concatenate([v if places is None else v * mus[:20, places] for v in values]), tolerance=_FINE
        )
        part, error = part.take(interpolation.points), max(interpolation.error, np.finfo(float).tiny)
        to_force, to_data = interpolation.cardinal.T @ to_force, interpolation.cardinal.T @ to_data
    return Source(part.coefficient, model.inputs.places(part.function, part.nodes), to_force, to_data), error


def _sampled(constraints: Constraints, modes, tests, collateral) -> tuple[SampledRows, ...]:
    model = constraints.model
    rows = np.concatenate([part.rows for part in model.terms.nonlinear])
    points = np.sort(fitting_points(collateral))
    # a least-squares fit at more points than modes: interpolation at as many is up to three times worse
    through = linalg.pinv(collateral[points]).T @ (collateral.T @ tests[rows])
    out, start = [], 0
    for part in model.terms.nonlinear:
        here = (points >= start) & (points < start + len(part.rows))
        if np.any(here):
            few = part.take(points[here] - start)
            out.append(SampledRows.at(model, few, modes, through[here], constraints.lift))
        start += len(part.rows)
    return tuple(out)
