"""The reduced model of a steady nonlinear problem: Newton's method in few rows and few unknowns, for many parameters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from parasol.checks import check_count, check_positive, check_shape
from parasol.errors import InputError, ParasolWarning
from parasol.pde.model import Model
from parasol.pde.newton import jacobian_entries
from parasol.pde.parameters import ParameterSpace
from parasol.pde.sparse_direct import Factors
from parasol.reduction.affine import AffineForm, Theta, affine_form
from parasol.reduction.interpolation import fitting_points, interpolate
from parasol.reduction.reduced import modes_on_unknowns
from parasol.reduction.residuals import ResidualBuilder
from parasol.reduction.sampled import SampledRows, nonlinear_values
from parasol.reduction.snapshots import Snapshots
from parasol.runtime.basis import Basis, slices
from parasol.runtime.products import single_weights
from parasol.runtime.residuals import WeightedResidual

_BATCH = 2**19  # numbers in the matrices of one batch: what a cache holds
_MOST_STEPS = 30
_SHORTEST = 1e-4  # damping below this means that the direction is of no use
_LAST_STEP = 1e-10  # a step this small, relative to the coefficients, is the last one
_N_STARTS = 3  # snapshots tried, the nearest first
_PART = 0.01  # of the typical error, spent on the fit of the nonlinear part
_FINEST, _COARSEST = 1e-11, 1e-4  # tolerances of that fit


@dataclass(frozen=True, eq=False)
class NonlinearSolutions:
    """Coefficients for many parameters, and whether they can be relied upon."""

    basis: Basis
    mus: np.ndarray  # (n_samples, n_parameters)
    coefficients: np.ndarray  # (n_samples, n_modes), finite also where Newton's method did not converge
    converged: np.ndarray  # (n_samples,) bool
    residual_norms: np.ndarray  # (n_samples,): of the weighted residual, an estimate of the error and not a bound
    n_steps: np.ndarray  # (n_samples,) int

    @property
    def values(self) -> np.ndarray:
        """The fields V c, (n_samples, n_values), lifted when asked for."""
        return self.basis.lift(self.coefficients)

    def __repr__(self) -> str:
        return f"<NonlinearSolutions at {len(self.mus)} parameters, {np.count_nonzero(self.converged)} converged>"


@dataclass(frozen=True, eq=False, repr=False)
class NonlinearReducedModel:
    """Least-squares reduced collocation of A_μ u + N(u; μ) = f_μ:  c(μ) = argmin ||P (A_μ V c + N(V c; μ) − f_μ)||.

    P is the inverse of the Jacobian at one snapshot, so that the residual looks like the error; N is evaluated at few
    rows and fitted with few collateral modes. An answer counts as converged if the last step was tiny and the Jacobian
    keeps its rank within the estimated error, which it loses at a fold. There is no constant here that would
    turn residuals into rigorous bounds: bounds come from `conformal`, calibrated on solves that were held out.
    """

    basis: Basis
    parameters: ParameterSpace
    n_parameters: int
    operator_theta: Theta
    load_theta: Theta
    residual: WeightedResidual  # its loads are those of the model, then the collateral modes
    sampled: tuple[SampledRows, ...]
    start_mus: np.ndarray  # (n_snapshots, n_parameters)
    start_coefficients: np.ndarray  # (n_snapshots, n_modes)
    interpolation_error: float  # largest relative error of the fit of N over all vectors it was made from

    def __repr__(self) -> str:
        rows = self.residual.triangle.shape[0]
        return f"<NonlinearReducedModel {self.n_modes} modes, {rows} rows, N at {self.n_points} points>"

    @property
    def n_modes(self) -> int:
        """Number of modes, d."""
        return self.basis.n_modes

    @property
    def n_points(self) -> int:
        """Number of rows at which the nonlinear part is evaluated."""
        return sum(len(part.lift) for part in self.sampled)

    def truncated(self, n_modes: int) -> NonlinearReducedModel:
        """The reduced model of the first modes: nothing is computed anew."""
        basis, residual = self.basis.truncated(n_modes), self.residual.truncated(n_modes)
        return replace(
            self,
            basis=basis,
            residual=residual,
            sampled=tuple(part.truncated(n_modes, len(residual.triangle)) for part in self.sampled),
            start_coefficients=self.start_coefficients[:, :n_modes],
        )

    def check(self, mus: ArrayLike | Mapping[str, Any], *, extrapolate: bool = False) -> np.ndarray:
        """Parameter vectors as floats, refused if of wrong length or outside the box."""
        return self.parameters.check_vectors(mus, self.n_parameters, extrapolate=extrapolate)

    def coefficients(self, mus: ArrayLike | Mapping[str, Any], *, extrapolate: bool = False) -> np.ndarray:
        """c(μ) for parameter vectors (n_samples, n_parameters): (n_samples, n_modes)."""
        return self.solve(mus, extrapolate=extrapolate).coefficients

    def solve(
        self, mus: ArrayLike | Mapping[str, Any], *, extrapolate: bool = False, watch: Callable[[], None] | None = None
    ) -> NonlinearSolutions:
        """Coefficients for (n_samples, n_parameters); a warning says how many did not converge, `converged` which.

        `watch` is called on the way, and may end it by an error.
        """
        solutions = self._solve(self.check(mus, extrapolate=extrapolate), watch)
        lost = np.flatnonzero(~solutions.converged)
        if len(lost):
            scalars = zip(self.parameters.names, solutions.mus[lost[0]], strict=False)
            where = ", ".join(f"{name}={value:.5g}" for name, value in scalars) or f"number {lost[0]}"
            warnings.warn(
                f"{len(lost)} of {len(solutions.mus)} reduced solves did not converge, the first at {where}: is there a "
                "solution, and are snapshots near? Leave out what is not `converged`, or solve it in full.",
                ParasolWarning,
                stacklevel=2,
            )
        return solutions

    def _solve(self, mus: np.ndarray, watch: Callable[[], None] | None = None) -> NonlinearSolutions:
        n = len(mus)
        coefficients = np.zeros((n, self.n_modes))
        converged, norms, n_steps = np.zeros(n, dtype=bool), np.full(n, np.inf), np.zeros(n, dtype=int)
        n_points = max(self.n_points, len(self.residual.triangle))
        for rows in slices(n, max(1, _BATCH // (n_points * self.n_modes))):
            here = np.arange(n)[rows]
            for start in self._starts(mus[rows]):
                if watch is not None:
                    watch()
                places = start[here - rows.start]
                batch = _Batch(self, mus[here])
                c, good, size, steps = batch.newton(self.start_coefficients[places])
                better = good | (size < norms[here])
                coefficients[here[better]], norms[here[better]] = c[better], size[better]
                converged[here], n_steps[here] = good, n_steps[here] + steps
                here = here[~good]
                if not len(here):
                    break
        return NonlinearSolutions(self.basis, mus, coefficients, converged, norms, n_steps)

    def _starts(self, mus: np.ndarray) -> Iterator[np.ndarray]:
        """The nearest snapshot of each parameter (n_samples,), then the next."""
        here, there = _features(self.parameters, mus, self.start_mus), _features(self.parameters, self.start_mus)
        distance = np.sum(here**2, axis=1)[:, None] - 2 * here @ there.T + np.sum(there**2, axis=1)
        order = np.argsort(distance, axis=1, kind="stable")[:, :_N_STARTS]
        yield from order.T


class _Batch:
    """Gauss-Newton for some parameters at once."""

    def __init__(self, reduced: NonlinearReducedModel, mus: np.ndarray):
        self.weighted, self.sampled, self.mus = reduced.residual, reduced.sampled, mus
        phi = reduced.load_theta(mus)
        self.theta = reduced.operator_theta(mus)
        self.phi = np.hstack([phi, np.zeros((len(mus), self.weighted.n_loads - phi.shape[1]))])
        # modes before rows, so that all samples together are one tall matrix
        self.operator = np.ascontiguousarray(self.weighted.operators(self.theta).transpose(0, 2, 1))
        self.least = 1e-8 * float(np.max(np.linalg.norm(reduced.start_coefficients, axis=1), initial=0.0))

    def residual(self, at: np.ndarray, c: np.ndarray) -> np.ndarray:
        """P (A V c + N(V c) − f) of the samples `at`, (n_at, n_rows)."""
        out = -self.weighted.residuals(self.theta[at], self.phi[at], c)
        for part in self.sampled:
            out += part.values(self.mus[at], c) @ part.lift
        return out

    def jacobian(self, at: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Its derivative by c, (n_at, n_modes, n_rows)."""
        out = self.operator[at].reshape(-1, self.operator.shape[2])
        for part in self.sampled:
            slopes = part.slopes(self.mus[at], c)
            out += slopes.reshape(-1, slopes.shape[2]) @ part.lift
        return out.reshape(len(at), *self.operator.shape[1:])

    def newton(self, start: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Coefficients, whether they converged, error estimates and steps taken, of each sample."""
        # states whose values overflow are refused below: no need to hear of them
        with np.errstate(all="ignore"):
            c, at = start.copy(), np.arange(len(start))
            settled, n_steps = np.zeros(len(c), dtype=bool), np.zeros(len(c), dtype=int)
            residual = self.residual(at, c)
            for _ in range(_MOST_STEPS):
                fine = np.all(np.isfinite(residual), axis=1)
                at, residual = at[fine], residual[fine]
                step, usable = _least_squares(self.jacobian(at, c[at]), residual)
                at, residual, step = at[usable], residual[usable], step[usable]
                if not len(at):
                    break
                n_steps[at] += 1
                last = np.linalg.norm(step, axis=1) <= _LAST_STEP * np.maximum(
                    np.linalg.norm(c[at], axis=1), self.least
                )
                c[at[last]] += step[last]
                settled[at[last]] = True
                at, residual = self._damped(c, at[~last], residual[~last], step[~last])
            trusted, size = self._trusted(c, settled)
        return c, trusted, size, n_steps

    def _damped(self, c, at, residual, step) -> tuple[np.ndarray, np.ndarray]:
        """Take the longest of the steps 1, ½, ¼ ... that brings the residual down; the samples that found one."""
        size = np.linalg.norm(residual, axis=1)
        new, waiting = np.full_like(residual, np.nan), np.arange(len(at))
        damping = 1.0
        while len(waiting) and damping >= _SHORTEST:
            trial = c[at[waiting]] + damping * step[waiting]
            trial_residual = self.residual(at[waiting], trial)
            # equality within rounding counts: close to the end steps shorten while the residual stays
            good = np.linalg.norm(trial_residual, axis=1) <= (1 + 1e-12) * size[waiting]
            c[at[waiting[good]]], new[waiting[good]] = trial[good], trial_residual[good]
            waiting = waiting[~good]
            damping /= 2
        kept = np.isfinite(new[:, 0])
        return at[kept], new[kept]

    def _trusted(self, c: np.ndarray, settled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Newton and Kantorovich's condition in the weakest direction, and estimates of the error.

        The weighted residual r, with what the collateral modes leave of N, estimates the error: at most ||r||/σ in the
        direction v of the least singular value σ. The solution is there if the Jacobian does not change by more than σ/2
        on the way: for x² − a this is exactly a ≥ 0, whatever x is.
        """
        every = np.arange(len(c))
        size = np.linalg.norm(self.residual(every, c), axis=1)
        for part in self.sampled:
            values = part.values(self.mus, c)
            missed = np.linalg.norm(values @ part.unseen.T, axis=1)  # type: ignore[union-attr]
            whole = np.linalg.norm(values, axis=1)
            share = np.divide(missed, whole, out=np.zeros(len(c)), where=whole > 0)
            size += share * np.linalg.norm(values @ part.lift, axis=1)
        size[~np.isfinite(size)] = np.inf
        at = np.flatnonzero(settled & np.isfinite(size))
        trusted = np.zeros(len(c), dtype=bool)
        if not len(at):
            return trusted, size
        jacobian = self.jacobian(at, c[at])
        finite = np.all(np.isfinite(jacobian), axis=(1, 2))
        at, jacobian = at[finite], jacobian[finite]
        squares, directions = np.linalg.eigh(jacobian @ jacobian.transpose(0, 2, 1))
        sigma, weakest = np.sqrt(np.maximum(squares[:, 0], 0.0)), directions[:, :, 0]
        shift = (size[at] / np.maximum(sigma, np.finfo(float).tiny))[:, None] * weakest
        worst = np.zeros(len(at))
        for sign in (1, -1):
            change = weakest[:, None, :] @ (self.jacobian(at, c[at] + sign * shift) - jacobian)
            worst = np.maximum(worst, np.linalg.norm(change[:, 0], axis=1))  # NaN stays, and is not trusted
        trusted[at] = worst <= sigma / 2
        return trusted, size


def _least_squares(jacobian: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """−(JᵀJ)⁻¹ Jᵀ r, (n, n_modes), and where it exists, for Jᵀ (n, n_modes, n_rows).

    The weighting keeps the condition of JᵀJ small, and the next step repairs what rounding spoils in this one.
    """
    normal = jacobian @ jacobian.transpose(0, 2, 1)
    diagonal = np.einsum("nii->ni", normal)
    usable = np.all(np.isfinite(diagonal), axis=1)
    normal[~usable] = np.eye(normal.shape[1])
    # far below rounding of the least singular value that matters; it keeps singular matrices invertible
    diagonal += 1e-15 * np.sum(diagonal, axis=1, keepdims=True) + np.finfo(float).tiny
    step = -np.linalg.solve(normal, jacobian @ residual[:, :, None])[:, :, 0]
    return step, usable & np.all(np.isfinite(step), axis=1)


def _features(space: ParameterSpace, mus: np.ndarray, reference: np.ndarray | None = None) -> np.ndarray:
    """Parameters for distances: scalars in the unit cube, functions relative to their spread over the reference."""
    n_scalars = len(space.scalars)
    functions = mus[:, n_scalars:]
    spread = (mus if reference is None else reference)[:, n_scalars:]
    size = float(np.sqrt(np.sum(np.var(spread, axis=0)))) or 1.0
    return np.hstack([space.to_unit(mus[:, :n_scalars]), functions / size])


# ---- offline --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class _Offline:
    """What does not change while the collateral modes do."""

    model: Model
    basis: Basis
    form: AffineForm
    modes: np.ndarray  # (n_unknowns, n_modes)
    scale: np.ndarray  # (n_unknowns,)
    centre: np.ndarray  # the parameter of the weighting
    factors: Factors
    start_mus: np.ndarray
    start_coefficients: np.ndarray

    def nonlinear_values(self, mus: np.ndarray, states: np.ndarray) -> list[np.ndarray]:
        """N(u; μ) of each part on its rows, (n_samples, n_rows), where it is finite."""
        return [v[np.all(np.isfinite(v), axis=1)] for v in nonlinear_values(self.model, mus, states)]

    def reduced(self, values: list[np.ndarray], tolerance: float) -> NonlinearReducedModel:
        """The reduced model whose collateral modes come from these values of N."""
        fits, errors = [], [0.0]
        for part, vectors in zip(self.model.terms.nonlinear, values, strict=True):
            fit = interpolate(vectors, tolerance=tolerance)
            errors.append(fit.error)
            # more points than modes: interpolation becomes a fit that shows its own error
            fits.append((part, fit.modes, fitting_points(fit.modes)))
        n_known = len(self.form.loads)
        collateral = np.zeros((sum(modes.shape[1] for _, modes, _ in fits), self.model.n_unknowns))
        ends = np.cumsum([0, *[modes.shape[1] for _, modes, _ in fits]])
        for (part, modes, _), start, stop in zip(fits, ends[:-1], ends[1:], strict=True):
            collateral[start:stop, part.rows] = modes.T
        errors = np.append(self.form.load_errors, np.zeros(len(collateral)))
        form = replace(self.form, loads=np.vstack([self.form.loads, collateral]), load_errors=errors)
        builder = ResidualBuilder(form, self.centre, self.factors, None, self.scale)
        builder.add(*self.modes.T)
        residual = builder.residual()
        columns = residual.triangle[:, n_known : residual.n_loads]
        sampled = []
        for (part, modes, points), start, stop in zip(fits, ends[:-1], ends[1:], strict=True):
            if len(points):
                fit = linalg.pinv(modes[points])
                lift, unseen = (columns[:, start:stop] @ fit).T, np.eye(len(points)) - modes[points] @ fit
                sampled.append(SampledRows.at(self.model, part.take(points), self.modes, lift, unseen=unseen))
        return NonlinearReducedModel(
            basis=self.basis,
            parameters=self.model.parameters,
            n_parameters=self.model.n_parameters,
            operator_theta=form.operator_theta,
            load_theta=form.load_theta,
            residual=residual,
            sampled=tuple(sampled),
            start_mus=self.start_mus,
            start_coefficients=self.start_coefficients,
            interpolation_error=max(errors),
        )


def reduce_nonlinear(
    model: Model,
    snapshots: Snapshots,
    basis: Basis,
    *,
    tolerance: float | None = None,
    n_training: int = 200,
    rng=0,
    watch: Callable[[], None] | None = None,
) -> NonlinearReducedModel:
    """The reduced model of a steady nonlinear model in a basis: coefficients at a cost independent of N.

    The nonlinear part is fitted from few rows (empirical interpolation, with half as many points again as modes), first over
    the snapshots, then to the relative `tolerance` also over reduced solutions at `n_training` random parameters, which
    costs no full solve. Without a `tolerance` it is a hundredth of the typical error that the basis leaves: more points
    would cost time and gain nothing. There are no rigorous error bounds: calibrate `conformal` on held-out solves.
    """
    if tolerance is not None and not check_positive(tolerance, "tolerance") < 1:
        raise InputError(f"tolerance must be a relative error between 0 and 1, got {tolerance!r}.")
    if n_training != 0:
        check_count(n_training, "n_training")
    modes = modes_on_unknowns(model, basis)
    if not len(snapshots):
        raise InputError("there are no snapshots. Solve at some parameters of this model first (ps.solve_many).")
    solutions = check_shape(snapshots.solutions, (len(snapshots), basis.n_values), "snapshots.solutions")
    hidden = check_shape(snapshots.hidden, (len(snapshots), len(basis.hidden)), "snapshots.hidden")
    mus, states = snapshots.mus, model.layout.unknowns(solutions, hidden)
    scale = np.ones(model.n_unknowns)
    if basis.weights is not None:
        scale = np.sqrt(model.layout.weights(single_weights(basis.weights, basis.n_values)))
    features = _features(model.parameters, mus)
    middle = int(np.argmin(np.sum((features - np.mean(features, axis=0)) ** 2, axis=1)))
    system = model.system(mus[middle])
    offline = _Offline(
        model=model,
        basis=basis,
        form=affine_form(model, linear_part=True),
        modes=modes,
        scale=scale,
        centre=mus[middle],
        factors=system.factorize(jacobian_entries(system, states[middle], 0.0)),
        start_mus=mus,
        start_coefficients=basis.project(solutions),
    )
    values = offline.nonlinear_values(mus, states)
    reduced = offline.reduced(values, _FINEST if tolerance is None else tolerance)
    if n_training == 0:
        return reduced
    training = reduced._solve(model.sample(n_training, rng=rng), watch)
    good = training.converged
    if tolerance is None and np.any(good):
        error = training.residual_norms[good] / np.maximum(np.linalg.norm(training.coefficients[good], axis=1), 1e-300)
        tolerance = float(np.clip(_PART * np.median(error), _FINEST, _COARSEST))
    lifted = training.coefficients[good] @ offline.modes.T
    more = offline.nonlinear_values(training.mus[good], lifted)
    values = [np.vstack(pair) for pair in zip(values, more, strict=True)]
    return offline.reduced(values, _FINEST if tolerance is None else tolerance)
