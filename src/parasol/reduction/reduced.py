"""The reduced model: coefficients for thousands of parameters at a cost that does not know the number of nodes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from parasol.checks import ParasolError, ParasolWarning, check_choice, check_count, check_finite, check_shape
from parasol.pde.model import Model
from parasol.pde.parameters import ParameterSpace
from parasol.reduction.affine import AffineForm, Theta, affine_form
from parasol.reduction.basis import Basis, check_weights, slices
from parasol.reduction.certificate import Certificate, Constants, Cover, cover
from parasol.reduction.frames import Frame, FrameBuilder
from parasol.reduction.sampling import sample

_BATCH = 2048
_N_CANDIDATES = 2000


@dataclass(frozen=True, eq=False)
class Bounds:
    """Upper bounds of the error ||u_μ − V c|| for each parameter, in the norm of the basis.

    `rigorous` says where the constant behind the bound is proven: up to rounding, and to a margin of 5 % on norms found
    by Lanczos. Elsewhere it is guessed from the nearest parameter at which it was computed and from the basis.
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

    def __repr__(self) -> str:
        return (
            f"<ReducedModel {self.basis.n_modes} modes, {self.frames[0].triangle.shape[0]} rows, "
            f"{len(self.frames)} frames, {self.certificate.n_anchors} anchors>"
        )

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
            # norms of terms that do not change in the box are not known: outside it nothing is proven
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


@dataclass(frozen=True, eq=False)
class Workbench:
    """What all reduced models of one model share, whatever their basis: the affine form, the weightings, the constants."""

    model: Model
    form: AffineForm
    scale: np.ndarray  # (n_unknowns,) square root of the inner product; ghosts count like an average node
    rows: np.ndarray | None  # (n_unknowns,) weights of single rows, or None for weighting by solves
    candidates: np.ndarray  # (n_candidates, n_parameters), what was covered
    covered: Cover

    def builders(self, modes: np.ndarray) -> list[FrameBuilder]:
        """One builder per frame, with the modes (n_unknowns, n_modes) added."""
        out = []
        for mu in self.covered.frames:
            factors = self.model.factors(mu) if self.rows is None else None
            rows = np.ones_like(self.scale) if self.rows is None else self.rows
            builder = FrameBuilder(self.form, mu, factors, rows, self.scale)
            for mode in modes.T:
                builder.add(mode)
            out.append(builder)
        return out

    def reduced(self, basis: Basis, builders: list[FrameBuilder]) -> ReducedModel:
        """The reduced model of a basis whose modes the builders hold."""
        return ReducedModel(
            basis=basis,
            parameters=self.model.parameters,
            n_parameters=self.model.n_parameters,
            operator_theta=self.form.operator_theta,
            load_theta=self.form.load_theta,
            frames=tuple(builder.frame() for builder in builders),
            certificate=self.covered.certificate,
            interpolation_error=self.form.error,
            model=self.model,
        )


def prepare(
    model: Model,
    *,
    modes: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    weighting: str = "solve",
    n_anchors: int = 100,
    candidates: np.ndarray | None = None,
    tolerance: float = 1e-10,
    progress: Callable[[float], None] | None = None,
) -> Workbench:
    """Affine form, weightings and constants of a model, before any basis is known."""
    check_choice(weighting, ("solve", "rows", "none"), "weighting")
    check_count(n_anchors, "n_anchors")
    if not isinstance(model, Model):
        raise ParasolError(f"model is a {type(model).__name__}. Pass what ps.discretize returns, then the basis.")
    form = affine_form(model, tolerance=tolerance)
    scale = np.ones(model.n_unknowns)
    if weights is not None:
        weights = check_weights(weights, len(model.problem.names) * model.n_nodes)
        n_hidden = model.n_unknowns - len(weights)
        scale = np.sqrt(model.unknowns(weights, np.full(n_hidden, np.mean(weights))))
    # unknowns whose row states that they are 0 carry no error: they are left out of all norms
    silent = model.pattern.stated & ~np.any(form.loads != 0, axis=0)
    if modes is not None:
        silent &= ~np.any(modes != 0, axis=1)
    rows = None
    if weighting != "solve":
        middle = model.operator(model.vector())
        rows = np.ones(model.n_unknowns)
        if weighting == "rows":
            rows = 1.0 / np.sqrt(np.asarray(middle.multiply(middle).sum(axis=1)).ravel())
    if candidates is None:
        candidates = candidates_for(model)
    found = cover(
        model,
        form,
        candidates,
        scale=scale,
        free=(~silent).astype(float),
        rows=rows,
        n_anchors=n_anchors,
        progress=progress,
    )
    if form.exact and found.proven < 1:
        warnings.warn(
            f"error bounds are proven at {100 * found.proven:.0f} % of the parameters only: elsewhere they rest on a guessed "
            f"constant and say rigorous=False. Narrow the ranges of the parameters, or allow more than n_anchors={n_anchors}.",
            ParasolWarning,
            stacklevel=4,
        )
    return Workbench(model, form, scale, rows, candidates, found)


def candidates_for(model: Model, draw: int = 0) -> np.ndarray:
    """Parameters spread over the box, with its corners and its middle; functions as drawn."""
    n_scalars = len(model.parameters.scalars)
    spread = sample(model, _N_CANDIDATES, design="sobol", rng=draw)
    corners = model.parameters.grid(*[2] * n_scalars) if 0 < n_scalars <= 10 else np.empty((0, n_scalars))
    special = np.repeat(spread[:1], len(corners) + 1, axis=0)
    special[:-1, :n_scalars] = corners
    special[-1, :n_scalars] = model.parameters.vector({})
    return np.vstack([special, spread])


def reduce(
    model: Model,
    basis: Basis,
    *,
    weighting: str = "solve",
    n_anchors: int = 100,
    tolerance: float = 1e-10,
    progress: Callable[[float], None] | None = None,
) -> ReducedModel:
    """The reduced model of a steady linear model in a basis: coefficients and error bounds independent of N.

    `weighting` is what the residual is multiplied with before it is made least: "solve" with the inverse of the matrix
    at one of a few parameters, which makes the residual look like the error; "rows" with one number per row; "none".
    `n_anchors` parameters at most are spent on the constants of the certificate. Coefficients that the equation does not
    separate are interpolated to `tolerance`.
    """
    modes = modes_on_unknowns(model, basis)
    bench = prepare(
        model,
        modes=modes,
        weights=basis.weights,
        weighting=weighting,
        n_anchors=n_anchors,
        tolerance=tolerance,
        progress=progress,
    )
    return bench.reduced(basis, bench.builders(modes))


def modes_on_unknowns(model: Model, basis: Basis) -> np.ndarray:
    """The modes with their values at ghosts, (n_unknowns, n_modes), in the model's order; refused if they do not fit."""
    if not (isinstance(model, Model) and isinstance(basis, Basis)):
        got = f"{type(model).__name__} and {type(basis).__name__}"
        raise ParasolError(f"expected a model and a basis, in this order, got {got}.")
    n_values = len(model.problem.names) * model.n_nodes
    n_hidden = model.n_unknowns - n_values
    if basis.n_values != n_values or len(basis.hidden) != n_hidden:
        raise ParasolError(
            f"the basis has {basis.n_values} values and {len(basis.hidden)} hidden ones, the model {n_values} and "
            f"{n_hidden}. Make the basis from snapshots of this model (ps.solve_many, then ps.pod)."
        )
    return model.unknowns(basis.modes.T, basis.hidden.T).T
