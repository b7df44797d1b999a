"""The reduced model: coefficients for thousands of parameters at a cost that does not know the number of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from parasol.checks import ParasolError, check_finite, check_shape
from parasol.pde.box import ParameterSpace
from parasol.pde.notebook import card, parameter_text
from parasol.reduction.basis import Basis, slices
from parasol.reduction.certificate import Certificate, Constants
from parasol.reduction.frames import Frame
from parasol.reduction.theta import Theta

if TYPE_CHECKING:  # a loaded reduced model has no full one, and needs NumPy alone
    from parasol.pde.model import Model

_BATCH = 2048


@dataclass(frozen=True, eq=False)
class Bounds:
    """Upper bounds of the error ||u_μ − V c|| for each parameter, in the norm of the basis.

    `rigorous` says where the constant behind the bound is proven: for the discrete problem, up to rounding, and but for a
    probability of 1e-6 per norm that a random start of Lanczos' method misleads it (`certificate.lanczos_margin`).
    Elsewhere the constant is guessed from the nearest parameter at which it was computed and from the basis.
    """

    values: np.ndarray  # (n_samples,)
    relative: np.ndarray  # (n_samples,): bound of the error over ||u_μ||; infinite where the bound exceeds ||V c||
    rigorous: np.ndarray  # (n_samples,) bool

    def __repr__(self) -> str:
        return (
            f"<Bounds of {len(self.values)} errors, at most {np.max(self.relative, initial=0.0):.1e} relative, "
            f"{np.count_nonzero(self.rigorous)} rigorous>"
        )


@dataclass(frozen=True, eq=False, repr=False)
class ReducedModel:
    """Least-squares reduced collocation: c(μ) = argmin ||P_k (A_μ V c − f_μ)||, P_k = A(μ_k)⁻¹ for the best of few μ_k."""

    basis: Basis
    parameters: ParameterSpace
    n_parameters: int
    operator_theta: Theta
    load_theta: Theta
    frames: tuple[Frame, ...]
    certificate: Certificate
    interpolation_error: float = 0.0  # of the coefficients that the equation does not separate
    model: Model | None = None  # the full model, for what the reduced one cannot do

    def __post_init__(self):
        n_terms, n_loads = self.operator_theta.n_terms, self.load_theta.n_terms
        check_shape(self.certificate.thetas, (None, n_terms), "thetas of the certificate")
        check_shape(self.certificate.sigmas, (None, len(self.frames)), "sigmas of the certificate")
        for frame in self.frames:
            if (frame.n_loads, frame.n_terms, frame.n_modes) != (n_loads, n_terms, self.basis.n_modes):
                raise ParasolError("a frame of the reduced model belongs to another basis, or to another equation.")

    def __repr__(self) -> str:
        return (
            f"<ReducedModel {self.basis.n_modes} modes, {self.frames[0].triangle.shape[0]} rows, "
            f"{len(self.frames)} frames, {self.certificate.n_anchors} anchors>"
        )

    def _repr_html_(self) -> str:
        rows = {
            "parameters": parameter_text(self.parameters),
            "least squares": f"{self.frames[0].triangle.shape[0]} rows, {self.operator_theta.n_terms} + "
            f"{self.load_theta.n_terms} terms, {len(self.frames)} frames",
            "error bound": f"from the residual; constants known at {self.certificate.n_anchors} parameters",
        }
        if self.interpolation_error:
            rows["interpolation error"] = f"{self.interpolation_error:.1e} of the coefficients of the equation"
        return card(f"reduced model of {self.n_modes} modes", rows)

    @property
    def n_modes(self) -> int:
        """Number of modes, d."""
        return self.basis.n_modes

    def truncated(self, n_modes: int) -> ReducedModel:
        """The reduced model of the first modes: nothing is computed anew."""
        basis = self.basis.truncated(n_modes)
        return replace(self, basis=basis, frames=tuple(frame.truncated(n_modes) for frame in self.frames))

    def coefficients(self, mus, *, extrapolate: bool = False) -> np.ndarray:
        """c(μ) for parameter vectors (n_samples, n_parameters): (n_samples, n_modes)."""
        return self.solve(mus, extrapolate=extrapolate, bounds=False).coefficients

    def solve(self, mus, *, extrapolate: bool = False, bounds: bool = True) -> ReducedSolutions:
        """Coefficients, and unless told otherwise bounds of their errors, for (n_samples, n_parameters)."""
        mus = self.check(mus, extrapolate=extrapolate)
        out = np.empty((len(mus), self.n_modes))
        found = _empty_bounds(len(mus)) if bounds else None
        for rows, theta, phi, constants in self._batches(mus):
            for frame, here in _by_frame(constants.frame):
                c = self.frames[frame].solve(theta[here], phi[here])
                out[rows.start + here] = c
                if found is not None:
                    self._bound_into(found, rows.start + here, frame, theta[here], phi[here], c, constants, here)
        return ReducedSolutions(self.basis, mus, check_finite(out, "coefficients"), found)

    def certify(self, mus, coefficients, *, extrapolate: bool = False) -> Bounds:
        """Bounds of ||u_μ − V c|| for any coefficients c (n_samples, n_modes), whoever computed them."""
        mus = self.check(mus, extrapolate=extrapolate)
        coefficients = check_finite(check_shape(coefficients, (len(mus), self.n_modes), "coefficients"), "coefficients")
        found = _empty_bounds(len(mus))
        for rows, theta, phi, constants in self._batches(mus):
            for frame, here in _by_frame(constants.frame):
                at = rows.start + here
                self._bound_into(found, at, frame, theta[here], phi[here], coefficients[at], constants, here)
        return found

    def _bound_into(self, found: Bounds, at, frame: int, theta, phi, c, constants: Constants, here) -> None:
        weighting = self.frames[frame]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            residual = np.linalg.norm(weighting.residuals(theta, phi, c), axis=1)
            bound = (residual + weighting.allowance(theta, phi, c)) / constants.sigma[here]
            bound = np.where(np.isnan(bound), np.inf, bound)
            size = np.linalg.norm(c, axis=1)
            size -= np.minimum(bound, size)  # no more than ||u_μ||, for the modes are orthonormal
        found.values[at] = bound
        found.relative[at] = np.divide(bound, size, out=np.full(len(bound), np.inf), where=size > 0)
        found.rigorous[at] = constants.rigorous[here]

    def operator(self, mu) -> np.ndarray:
        """B_μ = P_k A_μ V in the few rows of its frame, (n_rows, n_modes)."""
        theta, _, frame = self._at(mu)
        return frame.operators(theta)[0]

    def load(self, mu) -> np.ndarray:
        """P_k f_μ in the few rows of its frame, (n_rows,)."""
        _, phi, frame = self._at(mu)
        return frame.load(phi)[0]

    def _at(self, mu) -> tuple[np.ndarray, np.ndarray, Frame]:
        mus = self.check([np.atleast_1d(mu)])
        theta = self.operator_theta(mus)
        return theta, self.load_theta(mus), self.frames[self.certificate.constants(theta).frame[0]]

    def _batches(self, mus: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray, Constants]]:
        for rows in slices(len(mus), _BATCH):
            theta = self.operator_theta(mus[rows])
            constants = self.certificate.constants(theta, self.frames)
            # outside the declared ranges nothing is claimed, even where the theorem would still hold
            constants.rigorous[:] &= self.parameters.inside(mus[rows])
            yield rows, theta, self.load_theta(mus[rows]), constants

    def check(self, mus, *, extrapolate: bool = False) -> np.ndarray:
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
    return Bounds(np.empty(n), np.empty(n), np.zeros(n, dtype=bool))


def _by_frame(frames: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Each frame that occurs, with the rows that use it."""
    order = np.argsort(frames, kind="stable")
    which, starts = np.unique(frames[order], return_index=True)
    yield from zip(which.tolist(), np.split(order, starts[1:]), strict=True)
