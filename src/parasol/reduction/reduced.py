"""Making a reduced model: affine form, weightings, constants of the certificate; `online` has the model itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from parasol.checks import Progress, check_choice, check_count
from parasol.errors import InputError, ParasolWarning
from parasol.pde.model import Model
from parasol.reduction.affine import AffineForm, affine_form
from parasol.reduction.certificate import Cover, cover
from parasol.reduction.products import Root, root_of
from parasol.reduction.residuals import ResidualBuilder
from parasol.reduction.sampling import sample
from parasol.runtime.basis import Basis
from parasol.runtime.certificate import Certificate
from parasol.runtime.duals import RandomDuals
from parasol.runtime.products import MatrixProduct, Weights, check_weights
from parasol.runtime.reduced import ReducedModel

_N_CANDIDATES = 2000


@dataclass(frozen=True, eq=False)
class Preparation:
    """What all reduced models of one model share, whatever their basis: the affine form, the weightings, the constants."""

    model: Model
    form: AffineForm
    weights: Weights | None  # (n_values,) of the inner product
    root: Root  # of the inner product; ghosts count like an average node
    rows: np.ndarray | None  # (n_unknowns,) weights of single rows, or None for weighting by solves
    candidates: np.ndarray  # (n_candidates, n_parameters), what was covered
    covered: Cover

    def builders(self, modes: np.ndarray) -> list[ResidualBuilder]:
        """One builder per preconditioner, with the modes (n_unknowns, n_modes) added."""
        out = []
        for mu in self.covered.preconditioners:
            factors = self.model.factors(mu) if self.rows is None else None
            builder = ResidualBuilder(self.form, mu, factors, self.rows, self.root, self.covered.stretch)
            builder.add(*modes.T)
            out.append(builder)
        return out

    def reduced(self, basis: Basis, builders: list[ResidualBuilder]) -> ReducedModel:
        """The reduced model of a basis whose modes the builders hold."""
        return assembled(self.model, self.form, basis, builders, certificate=self.covered.certificate)


def assembled(
    model: Model,
    form: AffineForm,
    basis: Basis,
    builders: list[ResidualBuilder],
    *,
    certificate: Certificate | None = None,
    duals: RandomDuals | None = None,
) -> ReducedModel:
    """The reduced model of a basis whose modes the builders hold, with what is known of its errors."""
    return ReducedModel(
        basis=basis,
        parameters=model.parameters,
        n_parameters=model.n_parameters,
        operator_theta=form.operator_theta,
        load_theta=form.load_theta,
        residuals=tuple(builder.residual() for builder in builders),
        strong=tuple(builder.strong() for builder in builders if builder.stretch is not None),
        certificate=certificate,
        interpolation_error=form.error,
        model=model,
        duals=duals,
    )


class ByBound:
    """A reduced model that grows, and whose errors are bounded by the constants of a preparation."""

    def __init__(self, prepared: Preparation):
        self.prepared, self.model, self.weights = prepared, prepared.model, prepared.weights
        self.n_factorizations = prepared.covered.n_factorizations
        self.builders = prepared.builders(np.empty((self.model.n_unknowns, 0)))

    def add(self, mu: np.ndarray, mode: np.ndarray) -> None:
        """Append a mode (n_unknowns,)."""
        for builder in self.builders:
            builder.add(mode)

    def reduced(self, basis: Basis) -> ReducedModel:
        """The reduced model of the modes so far, which the basis holds."""
        return self.prepared.reduced(basis, self.builders)


def prepare(
    model: Model,
    *,
    modes: np.ndarray | None = None,
    weights: Weights | None = None,
    weighting: str = "solve",
    n_anchors: int = 100,
    candidates: np.ndarray | None = None,
    tolerance: float = 1e-10,
    progress: Progress = None,
    stop: Callable[[], bool] | None = None,
) -> Preparation:
    """Affine form, weightings and constants of a model, before any basis is known."""
    check_choice(weighting, ("solve", "rows", "none"), "weighting")
    check_count(n_anchors, "n_anchors")
    if not isinstance(model, Model):
        raise InputError(f"model is a {type(model).__name__}. Pass what ps.discretize returns, then the basis.")
    form = affine_form(model, tolerance=tolerance)
    if weights is not None:
        weights = check_weights(weights, len(model.problem.names) * model.n_nodes)
    root = root_of(model, weights)
    # unknowns whose row states that they are 0 carry no error: they are left out of all norms
    silent = model.terms.pattern.stated & ~np.any(form.loads != 0, axis=0)
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
    covered = cover(
        model,
        form,
        candidates,
        root=root,
        free=np.ones(model.n_unknowns) if isinstance(weights, MatrixProduct) else (~silent).astype(float),
        rows=rows,
        n_anchors=n_anchors,
        progress=progress,
        stop=stop,
    )
    if form.exact and covered.proven < 1:
        warnings.warn(
            f"error bounds are proven at {100 * covered.proven:.3g} % of {len(candidates)} sampled parameters: elsewhere they rest "
            f"on a guessed constant and say rigorous=False. Narrow the ranges of the parameters, or allow more than n_anchors={n_anchors}.",
            ParasolWarning,
            stacklevel=4,
        )
    return Preparation(model, form, weights, root, rows, candidates, covered)


def candidates_for(model: Model, draw: int = 0) -> np.ndarray:
    """Parameters spread over the box, with its corners and its middle; functions as drawn."""
    n_scalars = len(model.parameters.scalars)
    spread = sample(model, _N_CANDIDATES, design="sobol", rng=draw)
    corners = model.parameters.grid(*[2] * n_scalars) if 0 < n_scalars <= 10 else np.empty((0, n_scalars))
    special = np.repeat(spread[:1], len(corners) + 1, axis=0)
    special[:-1, :n_scalars] = corners
    special[-1, :n_scalars] = model.parameters.vector({})
    return np.vstack([special, spread])


def reduce_linear(
    model: Model,
    basis: Basis,
    *,
    weighting: str = "solve",
    n_anchors: int = 100,
    tolerance: float = 1e-10,
    progress: Progress = None,
) -> ReducedModel:
    """The reduced model of a steady linear model in a basis: coefficients and error bounds independent of N.

    `weighting` is what the residual is multiplied with before it is made least: "solve" with the inverse of the matrix
    at one of a few parameters, which makes the residual look like the error; "rows" with one number per row; "none".
    `n_anchors` parameters at most are spent on the constants of the certificate. Coefficients that the equation does not
    separate are interpolated to `tolerance`.
    """
    modes = modes_on_unknowns(model, basis)
    prepared = prepare(
        model,
        modes=modes,
        weights=basis.weights,
        weighting=weighting,
        n_anchors=n_anchors,
        tolerance=tolerance,
        progress=progress,
    )
    return prepared.reduced(basis, prepared.builders(modes))


def modes_on_unknowns(model: Model, basis: Basis) -> np.ndarray:
    """The modes with their values at ghosts, (n_unknowns, n_modes), in the model's order; refused if they do not fit."""
    if not (isinstance(model, Model) and isinstance(basis, Basis)):
        got = f"{type(model).__name__} and {type(basis).__name__}"
        raise InputError(f"expected a model and a basis, in this order, got {got}.")
    n_values = len(model.problem.names) * model.n_nodes
    n_hidden = model.n_unknowns - n_values
    if basis.n_values != n_values or len(basis.hidden) != n_hidden:
        verb = "ps.pod" if model.problem.time is None else "ps.reduction.space_basis"
        raise InputError(
            f"the basis has {basis.n_values} values and {len(basis.hidden)} hidden ones, the model {n_values} and "
            f"{n_hidden}. Make the basis from snapshots of this model (ps.solve_many, then {verb})."
        )
    return model.layout.unknowns(basis.modes.T, basis.hidden.T).T
