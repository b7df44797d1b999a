"""The reduced model: coefficients for thousands of parameters at a cost that does not know the number of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from parasol.checks import check_finite, check_shape
from parasol.errors import InputError
from parasol.runtime.above import borrowed
from parasol.runtime.basis import Basis, slices
from parasol.runtime.certificate import Certificate, Constants
from parasol.runtime.duals import Estimates, RandomDuals
from parasol.runtime.min_theta import MinTheta
from parasol.runtime.parameters import ParameterSpace
from parasol.runtime.quantities import mixed
from parasol.runtime.residuals import WeightedResidual
from parasol.runtime.theta import Theta

_BATCH = 2048


@dataclass(frozen=True, eq=False)
class Bounds:
    """Upper bounds of the error ||u_μ − V c|| for each parameter, in the norm of the basis.

    `rigorous` says where the constant behind the bound is proven: for the discrete problem, up to rounding, and but for a
    probability of 1e-6 per norm that a random start of Lanczos' method misleads it (`certificate.lanczos_margin`).
    `probable` says where it is a multiple of an estimate by random vectors (`Estimates`), and exceeded with a stated
    probability only. Elsewhere the constant is guessed from the nearest parameter at which it was computed.
    """

    values: np.ndarray  # (n_samples,)
    relative: np.ndarray  # (n_samples,): bound of the error over ||u_μ||; infinite where the bound exceeds ||V c||
    rigorous: np.ndarray  # (n_samples,) bool
    probable: np.ndarray | None = None  # (n_samples,) bool; None: nowhere

    def __repr__(self) -> str:
        return (
            f"<Bounds of {len(self.values)} errors, at most {np.max(self.relative, initial=0.0):.1e} relative, "
            f"{np.count_nonzero(self.rigorous)} rigorous"
            f"{'' if self.probable is None else f', {np.count_nonzero(self.probable)} probable'}>"
        )


@dataclass(frozen=True, eq=False, repr=False)
class ReducedModel:
    """Least-squares reduced collocation: c(μ) = argmin ||P_k (A_μ V c − f_μ)||, P_k = A(μ_k)⁻¹ for the best of few μ_k.

    Errors are known by a certificate (a bound, proven where its constants are), by random duals (an estimate and a probable
    bound), or by both: then bounds are those of the certificate where it is rigorous, and probable elsewhere.
    """

    basis: Basis
    parameters: ParameterSpace
    n_parameters: int
    operator_theta: Theta
    load_theta: Theta
    residuals: tuple[WeightedResidual, ...]
    certificate: Certificate | MinTheta | None
    interpolation_error: float = 0.0  # of the coefficients that the equation does not separate
    model: Any | None = None  # the full model, for what the reduced one cannot do
    duals: RandomDuals | None = field(default=None, metadata={"optional": True})
    # the residuals in the larger norm that the certificate is about, where it is about one
    strong: tuple[WeightedResidual, ...] = field(default=(), metadata={"optional": True})

    def __post_init__(self):
        n_terms, n_loads = self.operator_theta.n_terms, self.load_theta.n_terms
        if self.certificate is not None:
            check_shape(self.certificate.thetas, (None, n_terms), "thetas of the certificate")
            check_shape(self.certificate.sigmas, (None, len(self.residuals)), "sigmas of the certificate")
        elif self.duals is None or len(self._preconditioners) != len(self.residuals):
            raise InputError("a reduced model needs a certificate, or duals at the parameters of its preconditioners.")
        duals = self.duals
        if duals is not None and (duals.n_loads, duals.n_terms, duals.n_modes) != (n_loads, n_terms, self.n_modes):
            raise InputError("the duals of the reduced model belong to another basis, or to another equation.")
        if self.strong and len(self.strong) != len(self.residuals):
            raise InputError(
                "a reduced model has as many residuals in its larger norm as in that of its basis, or none."
            )
        for residual in (*self.residuals, *self.strong):
            if (residual.n_loads, residual.n_terms, residual.n_modes) != (n_loads, n_terms, self.basis.n_modes):
                raise InputError("a residual of the reduced model belongs to another basis, or to another equation.")

    def __repr__(self) -> str:
        return (
            f"<ReducedModel {self.basis.n_modes} modes, {self.residuals[0].triangle.shape[0]} rows, "
            f"{len(self.residuals)} preconditioners, {self._known_by}>"
        )

    @property
    def _known_by(self) -> str:
        anchors = "" if self.certificate is None else f"{self.certificate.n_anchors} anchors"
        duals = "" if self.duals is None else f"{len(self.duals.blocks)} random duals"
        return ", ".join(filter(None, (anchors, duals)))

    def _repr_html_(self) -> str:
        return borrowed("html")(self)

    @property
    def n_modes(self) -> int:
        """Number of modes, d."""
        return self.basis.n_modes

    def truncated(self, n_modes: int) -> ReducedModel:
        """The reduced model of the first modes: nothing is computed anew."""
        basis = self.basis.truncated(n_modes)
        residuals, strong = (
            tuple(residual.truncated(n_modes) for residual in some) for some in (self.residuals, self.strong)
        )
        duals = None if self.duals is None else self.duals.truncated(n_modes)
        return replace(self, basis=basis, residuals=residuals, strong=strong, duals=duals)

    @cached_property
    def _preconditioners(self) -> np.ndarray:
        """For each preconditioner its place among the snapshots of the duals; those that have none are left out."""
        assert self.duals is not None
        places = [np.flatnonzero(np.all(self.duals.mus == residual.mu, axis=1))[:1] for residual in self.residuals]
        return np.concatenate(places)

    def coefficients(self, mus: ArrayLike | Mapping[str, Any], *, extrapolate: bool = False) -> np.ndarray:
        """c(μ) for parameter vectors (n_samples, n_parameters): (n_samples, n_modes)."""
        return self.solve(mus, extrapolate=extrapolate, bounds=False).coefficients

    def jacobian(self, mus: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Central differences of c(μ), (n_samples, n_modes, n_parameters), with `steps` (n_samples, n_parameters).

        Both sides take the preconditioner of μ: another would change c by a part of its error.
        """
        choice = self._constants(self.operator_theta(mus)).choice
        columns = []
        for i, step in enumerate(steps.T):
            ends = [mus.copy(), mus.copy()]
            for end, sign in zip(ends, (1.0, -1.0), strict=True):
                end[:, i] += sign * step
            one, other = (self._solved_by(choice, end) for end in ends)
            columns.append((one - other) / (2 * step)[:, None])
        return np.stack(columns, axis=-1)

    def _solved_by(self, choice: np.ndarray, mus: np.ndarray) -> np.ndarray:
        """c(μ) with given preconditioners, (n_samples, n_modes)."""
        out, theta, phi = np.empty((len(mus), self.n_modes)), self.operator_theta(mus), self.load_theta(mus)
        for k, here in _by_choice(choice):
            out[here] = self.residuals[k].solve(theta[here], phi[here])
        return out

    def solve(
        self, mus: ArrayLike | Mapping[str, Any], *, extrapolate: bool = False, bounds: bool = True
    ) -> ReducedSolutions:
        """Coefficients, and unless `bounds` is False bounds of their errors, for (n_samples, n_parameters)."""
        mus = self.check(mus, extrapolate=extrapolate)
        out = np.empty((len(mus), self.n_modes))
        error_bounds = _empty_bounds(len(mus)) if bounds else None
        for rows, theta, phi, constants in self._batches(mus):
            for k, here in _by_choice(constants.choice):
                c = self.residuals[k].solve(theta[here], phi[here])
                out[rows.start + here] = c
                if error_bounds is not None:
                    self._bound_into(error_bounds, rows.start + here, k, theta[here], phi[here], c, constants, here)
        if error_bounds is not None:
            error_bounds.probable[:] &= self.parameters.inside(mus)  # type: ignore[index]
        return ReducedSolutions(self.basis, mus, check_finite(out, "coefficients"), error_bounds)

    def certify(
        self, mus: ArrayLike | Mapping[str, Any], coefficients: ArrayLike, *, extrapolate: bool = False
    ) -> Bounds:
        """Bounds of ||u_μ − V c|| for any coefficients c (n_samples, n_modes), whoever computed them."""
        mus, coefficients = self._answers(mus, coefficients, extrapolate)
        bounds = _empty_bounds(len(mus))
        for rows, theta, phi, constants in self._batches(mus):
            for k, here in _by_choice(constants.choice):
                at = rows.start + here
                self._bound_into(bounds, at, k, theta[here], phi[here], coefficients[at], constants, here)
        bounds.probable[:] &= self.parameters.inside(mus)  # type: ignore[index]
        return bounds

    def estimate(
        self, mus: ArrayLike | Mapping[str, Any], coefficients: ArrayLike, *, extrapolate: bool = False
    ) -> Estimates:
        """Estimates of ||u_μ − V c|| for any coefficients c (n_samples, n_modes), whoever computed them."""
        if self.duals is None:
            raise InputError("this reduced model has no random duals to estimate errors with.")
        mus, c = self._answers(mus, coefficients, extrapolate)
        values, factor = self.duals.errors(self.operator_theta(mus), self.load_theta(mus), c)
        size = np.linalg.norm(c, axis=1)
        # what rounding leaves of a full solve is no error of the answer, and no estimate can see below it
        values = np.hypot(values, self.residuals[0].precision * size)
        relative = np.divide(values, size, out=np.full(len(c), np.inf), where=size > 0)
        return Estimates(values, relative, factor, self.duals.probability)

    def corrected(
        self, mus: np.ndarray, coefficients: np.ndarray, rows: np.ndarray, mix: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Corrections of quantities with ℓᵀ V = `rows` (n_parts, n_modes), `mixed` at each μ, and estimates of what they leave.

        Both are (n_samples, n_quantities); None where no duals of these quantities were made.
        """
        if self.duals is None or not self.duals.corrects(rows):
            return None
        theta, phi, c = self.operator_theta(mus), self.load_theta(mus), np.asarray(coefficients, dtype=float)
        corrections = self.duals.corrections(theta, phi, c, mix)
        sizes = mixed(None if mix is None else np.abs(mix), np.abs(c) @ np.abs(rows).T)
        rounding = self.residuals[0].precision * sizes  # as of a full solve
        return corrections.values, np.hypot(corrections.left * self.duals.errors(theta, phi, c)[0][:, None], rounding)

    def _answers(
        self, mus: ArrayLike | Mapping[str, Any], coefficients: ArrayLike, extrapolate: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        mus = self.check(mus, extrapolate=extrapolate)
        return mus, check_finite(check_shape(coefficients, (len(mus), self.n_modes), "coefficients"), "coefficients")

    def _bound_into(
        self,
        bounds: Bounds,
        at: np.ndarray,
        k: int,
        theta: np.ndarray,
        phi: np.ndarray,
        c: np.ndarray,
        constants: Constants,
        here: np.ndarray,
    ) -> None:
        weighting, rigorous = self.residuals[k], constants.rigorous[here]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            size = np.linalg.norm(c, axis=1)
            allowance = weighting.allowance(theta, phi, c)
            norm = np.linalg.norm(weighting.residuals(theta, phi, c), axis=1) + allowance
            if self.strong:
                strong, plain = self.strong[k], constants.plain[here]
                large = np.linalg.norm(strong.residuals(theta, phi, c), axis=1) + strong.allowance(theta, phi, c)
                norm = plain * norm + (1.0 - plain) * large
            bound = norm / constants.sigma[here]
            if self.duals is not None and not rigorous.all():
                open_cases = ~rigorous
                estimate, factor = self.duals.errors(theta[open_cases], phi[open_cases], c[open_cases])
                bound[open_cases] = factor * estimate + allowance[open_cases]
                bounds.probable[at[open_cases]] = True  # type: ignore[index]
            bound = np.where(np.isnan(bound), np.inf, bound)
            size -= np.minimum(bound, size)  # no more than ||u_μ||, for the modes are orthonormal
        bounds.values[at] = bound
        bounds.relative[at] = np.divide(bound, size, out=np.full(len(bound), np.inf), where=size > 0)
        bounds.rigorous[at] = rigorous

    def operator(self, mu: ArrayLike) -> np.ndarray:
        """B_μ = P_k A_μ V in the few rows of its preconditioner, (n_rows, n_modes)."""
        theta, _, residual = self._at(mu)
        return residual.operators(theta)[0]

    def load(self, mu: ArrayLike) -> np.ndarray:
        """P_k f_μ in the few rows of its preconditioner, (n_rows,)."""
        _, phi, residual = self._at(mu)
        return residual.load(phi)[0]

    def _at(self, mu: ArrayLike) -> tuple[np.ndarray, np.ndarray, WeightedResidual]:
        mus = self.check([np.atleast_1d(mu)])
        theta = self.operator_theta(mus)
        return theta, self.load_theta(mus), self.residuals[self._constants(theta).choice[0]]

    def _batches(self, mus: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray, Constants]]:
        for rows in slices(len(mus), _BATCH):
            theta = self.operator_theta(mus[rows])
            constants = self._constants(theta)
            # outside the declared ranges nothing is claimed, even where the theorem would still hold
            constants.rigorous[:] &= self.parameters.inside(mus[rows])
            yield rows, theta, self.load_theta(mus[rows]), constants

    def choice(self, theta: np.ndarray) -> np.ndarray:
        """The preconditioner for each θ (n_samples, Q_A), (n_samples,)."""
        if self.certificate is not None:
            return self.certificate.choice(theta)
        assert self.duals is not None
        return self.duals.nearest(theta, self._preconditioners)

    def _constants(self, theta: np.ndarray) -> Constants:
        """The preconditioner for each θ (n_samples, Q_A), with its constant where there is a certificate."""
        if self.certificate is not None:
            return self.certificate.constants(theta, () if self.duals is not None else self.residuals)
        choice = self.choice(theta)
        return Constants(choice, np.ones(len(theta)), np.zeros(len(theta), dtype=bool), np.ones(len(theta)))

    def check(self, mus: ArrayLike | Mapping[str, Any], *, extrapolate: bool = False) -> np.ndarray:
        """Parameter vectors as floats, refused if of wrong length or outside the box."""
        return self.parameters.check_vectors(mus, self.n_parameters, extrapolate=extrapolate)


@dataclass(frozen=True, eq=False, repr=False)
class ReducedSolutions:
    """Coefficients for many parameters, with bounds of their errors."""

    basis: Basis
    mus: np.ndarray  # (n_samples, n_parameters)
    coefficients: np.ndarray  # (n_samples, n_modes)
    bounds: Bounds | None = None

    def __repr__(self) -> str:
        return f"<ReducedSolutions for {len(self.mus)} parameters{'' if self.bounds is None else f', {self.bounds}'}>"

    @property
    def values(self) -> np.ndarray:
        """The fields V c, (n_samples, n_values), lifted when asked for."""
        return self.basis.lift(self.coefficients)


def _empty_bounds(n: int) -> Bounds:
    return Bounds(np.empty(n), np.empty(n), np.zeros(n, dtype=bool), np.zeros(n, dtype=bool))


def _by_choice(choices: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Each choice that occurs, with the rows that made it."""
    if len(choices) == 1:
        yield int(choices[0]), np.zeros(1, dtype=int)
        return
    order = np.argsort(choices, kind="stable")
    which, starts = np.unique(choices[order], return_index=True)
    yield from zip(which.tolist(), np.split(order, starts[1:]), strict=True)
