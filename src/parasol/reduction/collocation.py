"""Collocation at as many points as there are modes: the cheaper, less accurate variant of the reduced model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parasol.checks import ParasolError
from parasol.pde.model import Model
from parasol.pde.parameters import ParameterSpace
from parasol.reduction.affine import Theta, affine_form
from parasol.reduction.interpolation import select_points
from parasol.reduction.reduced import modes_on_unknowns
from parasol.runtime.basis import Basis


@dataclass(frozen=True, eq=False, repr=False)
class PointModel:
    """The equation asked for at d points only: Σ_q θ_q(μ) (A_q V)_p c = f_p, a d × d system per parameter.

    No optimality and no certificate of its own: hand the coefficients to `ReducedModel.certify`.
    """

    basis: Basis
    parameters: ParameterSpace
    points: np.ndarray  # (n_modes,) rows of the system that are asked for
    operator_theta: Theta
    load_theta: Theta
    operators: np.ndarray  # (Q_A, n_modes, n_modes)
    loads: np.ndarray  # (Q_f, n_modes)
    n_parameters: int

    def __repr__(self) -> str:
        return f"<PointModel {self.basis.n_modes} modes>"

    def coefficients(self, mus, *, extrapolate: bool = False) -> np.ndarray:
        """c(μ) for parameter vectors (n_samples, n_parameters): (n_samples, n_modes)."""
        mus = self.parameters.check_vectors(mus, self.n_parameters, extrapolate=extrapolate)
        matrices = np.tensordot(self.operator_theta(mus), self.operators, axes=1)
        right = self.load_theta(mus) @ self.loads
        try:
            return np.linalg.solve(matrices, right[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:
            raise ParasolError(
                "the equation at the chosen points does not determine the coefficients. Use ps.reduce."
            ) from None


def collocate(model: Model, basis: Basis) -> PointModel:
    """Empirical reduced collocation: points chosen by an interpolation pass over the modes, one row of A_q V each."""
    form = affine_form(model)
    modes = modes_on_unknowns(model, basis)
    # rows that only state a value say nothing about the equation
    free = np.flatnonzero(~model.pattern.stated)
    points = free[select_points(modes[free])]
    return PointModel(
        basis=basis,
        parameters=model.parameters,
        points=points,
        operator_theta=form.operator_theta,
        load_theta=form.load_theta,
        operators=np.array([(a[points] @ modes) for a in form.operators]),
        loads=form.loads[:, points],
        n_parameters=model.n_parameters,
    )
