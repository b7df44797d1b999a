"""A reduced model of whole trajectories: few full ones where the estimated error is largest, all others by reduced steps."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from parasol.errors import NoCertificate, ParasolWarning
from parasol.pde.esdirk import PLACES, STAGES
from parasol.reduction.bases_in_space import compressed_pod, with_ghosts
from parasol.reduction.by_estimate import ByEstimate
from parasol.reduction.constraints import Constraints
from parasol.reduction.duals import N_VECTORS, DualBuilder
from parasol.reduction.in_time import PROJECTIONS, TimeReducedModel, reduce_trajectories
from parasol.reduction.products import root_of_weights
from parasol.reduction.reduced import candidates_for, modes_on_unknowns
from parasol.reduction.residuals import ResidualBuilder
from parasol.reduction.snapshots import Snapshots
from parasol.reduction.space_time import Grid, Marching, SpaceTime, StoredRoot
from parasol.reduction.stepping import Inverses, Matrices
from parasol.runtime.basis import Basis, slices
from parasol.runtime.products import Weights, repeated, weighted
from parasol.runtime.reduced import ReducedModel

# at every candidate P_μ S_μ should be as near as this to the identity on the modes: duals in time are dear
_CLOSE = 0.1
_MOST_SNAPSHOTS, _MOST_PRECONDITIONERS, _ALIKE = 20, 6, 0.7
_N_WATCHED = 256
_BATCH = 64
_ROUNDING = 1e-12  # relative: a trajectory of which less is new brings no mode


class Steps:
    """A reduced model in time, asked for its states in all blocks of a grid, as coefficients of columns in space."""

    def __init__(self, system: SpaceTime, reduced: TimeReducedModel, lift: np.ndarray, weights: Weights | None):
        self.system, self.reduced = system, reduced
        self.columns = np.hstack([modes_on_unknowns(system.model, reduced.basis), lift])  # (n_unknowns, k): modes, lift
        values = system.model.layout.at_nodes(self.columns.T).T
        # lengths of coefficients in these columns are those of values at the nodes
        self.lengths = np.asarray(np.linalg.qr(root_of_weights(weights, len(values)).into(values), mode="r"))

    def coefficients(self, mus: np.ndarray, grid: Grid | None = None) -> np.ndarray:
        """(n_samples, n_blocks, k), boundary data last, with the same stages as the full steps, or on another grid."""
        grid = self.system.grid if grid is None else grid
        return np.concatenate([self._of_few(mus[rows], grid) for rows in slices(len(mus), _BATCH)])

    def drifts(self, mus: np.ndarray) -> np.ndarray:
        """How far the steps of the grid are from twice as many, relative, (n_samples,): by the reduced steps of both."""
        grid = self.system.grid.finer()
        fine = (self.coefficients(mus, grid)[:, grid.stored] @ self.lengths.T).reshape(len(mus), -1)
        gap, size = np.linalg.norm(self.stored(self.coefficients(mus)) - fine, axis=1), np.linalg.norm(fine, axis=1)
        return np.divide(gap, size, out=np.zeros(len(mus)), where=size > 0)

    def _of_few(self, mus: np.ndarray, grid: Grid) -> np.ndarray:
        small = self.reduced.system.systems(mus)
        times, hs = grid.times, grid.weights.diagonal() / STAGES[-1, -1]
        mass, stiffness = Matrices(small.damping), Matrices(small.stiffness)
        known: dict[float, Inverses] = {}
        c = self.reduced.initial[0](mus[:, : len(self.reduced.parameters.scalars)])
        out = np.empty((len(mus), grid.n_blocks, self.columns.shape[1]))
        out[:, 0, : c.shape[1]] = c
        for before in range(0, grid.n_blocks - 1, len(PLACES) - 1):
            h = float(hs[before + 1])
            if h not in known:
                known[h] = Inverses(small.damping + STAGES[-1, -1] * h * small.stiffness)
            rates, start = [small.load(float(times[before])) - stiffness @ c], mass @ c
            for i in range(1, len(PLACES)):
                load = small.load(float(times[before + i]))
                right = start + h * (STAGES[i, i] * load + sum(a * r for a, r in zip(STAGES[i], rates, strict=False)))
                c = np.asarray(known[h].solve(right))
                rates.append(load - stiffness @ c)
                out[:, before + i, : c.shape[1]] = c
        for b, t in enumerate(times):
            out[:, b, c.shape[1] :] = self.reduced.system.data(mus, float(t))
        return out

    def stored(self, coefficients: np.ndarray) -> np.ndarray:
        """Vectors (n_samples, n_times * k) as long as the values at nodes and stored times."""
        return (coefficients[:, self.system.grid.stored] @ self.lengths.T).reshape(len(coefficients), -1)


class InTimeByEstimate(ByEstimate):
    """A reduced model of whole trajectories that grows; the error of its answers is estimated by backward random duals."""

    model: SpaceTime  # type: ignore[assignment]

    def __init__(self, system: SpaceTime, *, weights: Weights | None = None, rng: int = 0):
        self.model, self.weights, self.n_factorizations = system, weights, 0
        self.constraints = Constraints.of(system.model)
        self.form, self.root = system.form, StoredRoot(system, weights)
        generator = np.random.default_rng([rng, 73])
        self.duals = DualBuilder(self.form, self.root, self.root.scale, generator, N_VECTORS)  # type: ignore[arg-type]
        self.builders: list[ResidualBuilder] = []
        self.candidates = candidates_for(system.model)
        self._theta = self.form.operator_theta(self.candidates)
        self._some = self._theta[:: max(1, len(self._theta) // _N_WATCHED)]
        self._missed = 1.0
        self.trajectories: list[np.ndarray] = []  # states without boundary data at the nodes, (n_blocks, n_values) each
        self.steps: Steps | None = None
        self.drift = 0.0  # how far steps of the grid and the model's own are apart, relative
        self.doubt = 0.0  # the probability that they are further apart at a random parameter

    def add_trajectory(self, mu: np.ndarray) -> np.ndarray:
        """Solve in full at mu, with duals if inverses are not interpolated well yet; the values at nodes and stored times."""
        factors = self.model.factors(mu)
        self.n_factorizations += 1
        unknowns = self.model.solve(mu, factors)
        size = np.linalg.norm(self.root.into(unknowns))
        if size > 0:
            self._keep(mu, unknowns / size, factors)
        return self.model.values(unknowns)

    def _keep(self, mu: np.ndarray, unknowns: np.ndarray, factors: Marching) -> None:
        layout, blocks = self.model.model.layout, unknowns.reshape(self.model.grid.n_blocks, -1)
        self.trajectories.append(layout.at_nodes(self.constraints.homogeneous(layout.at_nodes(blocks))))
        modes, left = self.duals.modes, unknowns
        for _ in range(2 if modes.shape[1] else 0):
            left = left - modes @ (self.root.into(modes).T @ self.root.into(left))
        new = np.linalg.norm(self.root.into(left))
        if new > _ROUNDING:
            self.duals.add_mode(left / new)
        if not self.duals.mus or (self._missed > _CLOSE and len(self.duals.mus) < _MOST_SNAPSHOTS):
            self.duals.add_snapshot(mu, factors)  # type: ignore[arg-type]
        self._missed = float(np.max(self.duals.steering().inverses(self._some)[1]))

    def reduce_steps(self, train: Snapshots, tolerance: float) -> None:
        """The reduced steps in the modes in space that leave `tolerance` of all trajectories so far."""
        n_steps = (self.model.grid.n_blocks - 1) // (len(PLACES) - 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ParasolWarning)  # how good they are is estimated
            basis = with_ghosts(compressed_pod(self.trajectories, tolerance, None, self.weights), self.constraints)
            options = {"tolerance": tolerance, "n_steps": n_steps}
            try:
                reduced = reduce_trajectories(self.model.model, basis, train, projection=PROJECTIONS[0], **options)
            except NoCertificate:  # the other one is dearer, and seldom better
                reduced = reduce_trajectories(self.model.model, basis, train, projection=PROJECTIONS[1], **options)
        self.steps = Steps(self.model, reduced, self.constraints.lift, self.weights)

    def look_at_steps(self, mus: np.ndarray) -> None:
        """Compare steps with finer ones at parameters (n, n_parameters) drawn at random, by the reduced steps of both.

        Twice the largest difference counts, for reduced steps are not the full ones. A new parameter is worse than all n of
        these with a probability of 1 / (n + 1).
        """
        assert self.steps is not None
        self.drift = max(self.drift, 2.0 * float(np.max(self.steps.drifts(mus))))
        self.doubt = 1.0 / (len(mus) + 1)

    def step_errors(self, mus: np.ndarray) -> np.ndarray:
        """Estimates of the relative errors of the reduced steps by the steering vectors, (n_samples,)."""
        assert self.steps is not None
        duals, form = self.duals.steering(), self.form
        x = self.steps.coefficients(mus)
        theta, phi = form.operator_theta(mus), form.load_theta(mus)
        a, missed = duals.inverses(theta)
        vectors = range(self.duals.n_sealed, self.duals.n_sealed + len(duals.blocks))
        seen = np.zeros((len(mus), len(duals.blocks)))
        for j, y in enumerate(self.duals.duals):
            some = y[vectors.start : vectors.stop]
            part = phi @ (form.loads @ some.T)
            for q, operator in enumerate(form.operators):
                part -= theta[:, q, None] * (x.reshape(len(x), -1) @ self._contracted(some, operator))
            seen += a[:, j, None] * part
        size = np.linalg.norm(self.steps.stored(x), axis=1)
        error = np.sqrt(np.mean(seen**2, axis=1)) / np.maximum(1.0 - missed, 1e-300)
        return np.divide(error, size, out=np.full(len(x), np.inf), where=size > 0)

    def _contracted(self, y: np.ndarray, operator) -> np.ndarray:
        """yᵀ A_q of all columns in all blocks, (n_blocks * k, n_vectors), for y (n_vectors, n_unknowns)."""
        assert self.steps is not None
        n_blocks, columns, out = self.model.grid.n_blocks, self.steps.columns, 0.0
        blocks = y.reshape(len(y), n_blocks, -1)
        for time, space in operator.parts:
            products = blocks @ (space @ columns)  # (n_vectors, n_blocks, k)
            out = out + (time.T @ products.transpose(1, 2, 0).reshape(n_blocks, -1))
        return np.reshape(out, (-1, len(y)))

    def finish(self, mus: np.ndarray, tolerance: float) -> Basis:
        """Modes of trajectories that leave `tolerance` of what the reduced steps say at these parameters, each of them."""
        assert self.steps is not None
        steps, system = self.steps, self.model
        x = steps.coefficients(mus)
        stored = steps.stored(x)
        size = np.linalg.norm(stored, axis=1)
        size[size == 0] = 1.0
        x, stored = x / size[:, None, None], stored / size[:, None]
        left, values, _ = np.linalg.svd(stored, full_matrices=False)
        tails = np.sqrt(np.cumsum((left * values)[:, ::-1] ** 2, axis=1)[:, ::-1])  # what the first modes leave
        n_modes = int(
            np.clip(
                np.count_nonzero(np.max(tails, axis=0) > tolerance), 1, np.count_nonzero(values > 1e-13 * values[0])
            )
        )
        few = (left[:, :n_modes] / values[:n_modes]).T @ x.reshape(len(x), -1)
        blocks = few.reshape(n_modes, system.grid.n_blocks, -1) @ steps.columns.T
        modes = blocks.reshape(n_modes, -1)
        weights = repeated(self.weights, len(system.grid.stored))
        values = system.values(modes)  # small singular values cost digits: orthonormal once more
        modes = np.linalg.solve(np.linalg.cholesky(weighted(values, weights) @ values.T), modes)
        self.duals.set_modes(np.ascontiguousarray(modes.T))
        self.complete(_CLOSE)
        self.builders = []
        for mu in self._preconditioners():
            builder = ResidualBuilder(self.form, mu, system.factors(mu), None, self.root)  # type: ignore[arg-type]
            builder.extend(self.duals.applied)
            self.builders.append(builder)
            self.n_factorizations += 1
        return Basis(system.values(modes).T.copy(), weights, n_snapshots=len(mus), method="pod")

    def _preconditioners(self) -> list[np.ndarray]:
        """Few of the parameters with duals, whose inverses serve for all candidates as far as one inverse can."""
        duals = self.duals.steering()
        chosen = [int(np.argmax(np.mean(duals._single(self._some, np.arange(len(duals.mus))), axis=0)))]
        while len(chosen) < _MOST_PRECONDITIONERS:
            left = duals.alone(self._some, np.array(chosen))
            worst = int(np.argmax(left))
            best = int(duals.nearest(self._some[worst : worst + 1], np.arange(len(duals.mus)))[0])
            if left[worst] <= _ALIKE or best in chosen:
                break
            chosen.append(best)
        return [duals.mus[k] for k in chosen]

    def reduced(self, basis: Basis) -> ReducedModel:
        """The reduced model of the final modes, with the steering duals."""
        return self._of_model(super().reduced(basis))

    def sealed(self, basis: Basis) -> ReducedModel:
        """The same with the sealed duals."""
        return self._of_model(super().sealed(basis))

    def _of_model(self, reduced: ReducedModel) -> ReducedModel:
        """Errors are against the model's own steps, from which those of the grid differ by `drift`, as far as was seen."""
        some = [replace(one, precision=max(one.precision, self.drift)) for one in reduced.residuals]
        duals = None if reduced.duals is None else replace(reduced.duals, doubt=reduced.duals.doubt + self.doubt)
        return replace(reduced, model=self.model.model, residuals=tuple(some), duals=duals)
