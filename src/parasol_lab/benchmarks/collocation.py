"""Collocation at as many points as there are modes: what the reduced model is compared with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from parasol.errors import InputError
from parasol.pde import Model
from parasol.reduction import AffineForm, affine_form, modes_on_unknowns
from parasol.runtime import Basis


@dataclass(frozen=True, eq=False, repr=False)
class PointModel:
    """The equation asked for at d points only: Σ_q θ_q(μ) (A_q V)_p c = f_p, a d × d system per parameter.

    No optimality and no certificate of its own: hand the coefficients to `ReducedModel.certify`.
    """

    model: Model
    basis: Basis
    form: AffineForm
    points: np.ndarray  # (n_modes,) rows of the system that are asked for

    def __repr__(self) -> str:
        return f"<PointModel {self.basis.n_modes} modes>"

    def coefficients(self, mus, *, extrapolate: bool = False) -> np.ndarray:
        """c(μ) for parameter vectors (n_samples, n_parameters): (n_samples, n_modes)."""
        mus = self.model.check(mus, extrapolate=extrapolate)
        modes = modes_on_unknowns(self.model, self.basis)
        operators = np.array([(a[self.points] @ modes) for a in self.form.operators])
        matrices = np.tensordot(self.form.operator_theta(mus), operators, axes=1)
        right = self.form.load_theta(mus) @ self.form.loads[:, self.points]
        try:
            return np.linalg.solve(matrices, right[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:
            raise InputError(
                "the equation at the chosen points does not determine the coefficients. Use ps.reduce."
            ) from None


def collocate(model: Model, basis: Basis) -> PointModel:
    """Empirical reduced collocation: points where each mode differs most from its interpolant by those before it.

    They are the row pivots of Gaussian elimination. Rows that only state a value say nothing about the equation.
    """
    form = affine_form(model)
    free = np.flatnonzero(~model.terms.pattern.stated)
    order = linalg.lu(modes_on_unknowns(model, basis)[free], p_indices=True)[0]
    return PointModel(model, basis, form, free[np.argsort(order)[: basis.n_modes]])
