"""A steady model as sums of functions of the parameter times fixed matrices and vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import sympy
from numpy.typing import ArrayLike
from scipy import sparse

from parasol.errors import InputError
from parasol.expressions import as_formula, as_function
from parasol.pde.matrix_functions import FunctionTerms
from parasol.pde.model import Model
from parasol.pde.rows import Varying
from parasol.reduction.interpolation import interpolate
from parasol.runtime.above import borrowed
from parasol.runtime.rows import RowFunction
from parasol.runtime.theta import Theta

_MOST_SINGLE_ROWS = 1000  # a function parameter with more values is interpolated


@dataclass(frozen=True, eq=False)
class AffineForm:
    """A(μ) = Σ_q θ_q(μ) A_q and f(μ) = Σ_q φ_q(μ) f_q.

    What the equation does not separate by itself is interpolated empirically.
    """

    operators: tuple[sparse.csr_array, ...]  # A_q
    loads: np.ndarray  # (Q_f, n_unknowns): f_q
    operator_theta: Theta
    load_theta: Theta
    operator_errors: np.ndarray  # (Q_A,) relative errors of interpolated terms, 0 for exact ones
    load_errors: np.ndarray  # (Q_f,)
    doubt: float = 0.0  # the probability that errors of sums fitted to samples are larger at another parameter

    @property
    def error(self) -> float:
        """The largest relative error of an interpolated coefficient over parameters it was not made from."""
        return float(max(np.max(self.operator_errors, initial=0.0), np.max(self.load_errors, initial=0.0)))

    @property
    def exact(self) -> bool:
        """Whether the sums are those of the model, not interpolants."""
        return self.error == 0.0

    def operator(self, mu: np.ndarray) -> sparse.csr_array:
        """A(μ) from its terms."""
        theta = self.operator_theta(mu[None])[0]
        return sparse.csr_array(sum(t * a for t, a in zip(theta, self.operators, strict=True)))


def affine_form(
    model: Model, mus: ArrayLike | None = None, *, tolerance: float = 1e-10, linear_part: bool = False
) -> AffineForm:
    """Write a steady linear model as sums of functions of μ times fixed arrays; of a nonlinear one the `linear_part`.

    Terms the equation separates are taken as they are. A coefficient that depends on x and μ together is interpolated
    empirically, to the relative `tolerance` over the parameter vectors `mus` (default: 200 random ones). A matrix that is a
    user's function is fitted to samples, with polynomials as θ (`fitted_sums`), as well as that goes. A load that is a
    function parameter on few rows, such as boundary values, becomes one term per row and stays exact.
    """
    if model.problem.time is not None:
        raise InputError("the problem depends on time: its reduced model is ps.reduce(model, basis, snapshots).")
    if model.terms.nonlinear and not linear_part:
        raise InputError("the problem is nonlinear: its reduced model is ps.reduce(model, basis, snapshots).")
    if not 0 < tolerance < 1:
        raise InputError(f"tolerance must be a relative error between 0 and 1, got {tolerance!r}.")
    if isinstance(model.terms, FunctionTerms):
        return _fitted_form(model, model.terms)
    if mus is None:
        mus = model.sample(200, rng=0)
    operators, operator_rows, operator_errors = separated_operators(model, mus, tolerance)
    loads, load_rows, load_errors = list(model.terms.loads), [], [0.0] * len(model.terms.loads)
    for part in model.terms.varying_load:
        if part.function is not None and len(part.positions) <= _MOST_SINGLE_ROWS:
            modes, chosen, error = np.eye(len(part.positions)), part, 0.0
        else:
            modes, chosen, error = interpolated_rows(model, part, mus, tolerance)
        load_rows.append(row_theta(model, chosen))
        load_errors += [error] * modes.shape[1]
        vectors = np.zeros((model.n_unknowns, modes.shape[1]))
        np.add.at(vectors, part.positions, modes * part.values[:, None])
        loads.extend(vectors.T)
    formulas = [tuple(as_formula(f) for f in functions) for functions in model.terms.theta_functions]
    n_scalars = len(model.parameters.scalars)
    return AffineForm(
        operators=tuple(operators),
        loads=np.array(loads).reshape(len(loads), model.n_unknowns),
        operator_theta=Theta(formulas[0], tuple(operator_rows), n_scalars),
        load_theta=Theta(formulas[1], tuple(load_rows), n_scalars),
        operator_errors=np.array(operator_errors),
        load_errors=np.array(load_errors),
    )


def _fitted_form(model: Model, terms: FunctionTerms) -> AffineForm:
    """Sums fitted to samples of a user's functions."""
    matrix, load = borrowed("fitted_sums")(model, terms)  # maps are fitted in a room above
    one = as_formula(as_function(sympy.S.One, model.inputs.scalars))
    thetas = [Theta((one,), (), len(model.parameters.scalars), part.theta) for part in (matrix, load)]
    return AffineForm(
        operators=tuple(terms.matrix(data) for data in (matrix.constant, *matrix.vectors)),
        loads=np.vstack([load.constant, load.vectors]),
        operator_theta=thetas[0],
        load_theta=thetas[1],
        operator_errors=matrix.errors,
        load_errors=load.errors,
        doubt=matrix.doubt + load.doubt,
    )


def separated_operators(model: Model, mus, tolerance: float) -> tuple[list, list, list[float]]:
    """The matrices A_q of a model; of those that are interpolated the functions of μ, for `Theta`; the error of each."""
    operators, rows, errors = list(model.terms.operators), [], [0.0] * len(model.terms.operator_data)
    for part in model.terms.varying_operator:
        modes, chosen, error = interpolated_rows(model, part, mus, tolerance)
        rows.append(row_theta(model, chosen))
        errors += [error] * modes.shape[1]
        for mode in modes.T:
            data = np.zeros(len(model.terms.pattern.indices))
            np.add.at(data, part.positions, mode[:, None] * part.values)
            operators.append(model.terms.matrix(data))
    return operators, rows, errors


def interpolated_rows(model: Model, part: Varying, mus, tolerance: float) -> tuple[np.ndarray, Varying, float]:
    """Cardinal vectors (n_rows, m), the contribution at the m chosen rows, and the error at parameters not used."""

    def values(at: np.ndarray) -> np.ndarray:
        places = model.inputs.places(part.function, part.nodes)
        coefficients = part.coefficient(at, 0.0)
        return coefficients if places is None else coefficients * at[:, places]

    interpolation = interpolate(values(mus), tolerance=tolerance)
    fresh = values(model.sample(max(50, len(mus) // 2), rng=1))
    gap = np.max(np.abs(fresh - interpolation.reconstruct(fresh[:, interpolation.points])), axis=1)
    size = np.max(np.abs(fresh), axis=1)
    unseen = float(np.max(np.divide(gap, size, out=np.zeros_like(gap), where=size > 0), initial=0.0))
    return (
        interpolation.cardinal,
        part.take(interpolation.points),
        max(interpolation.error, unseen, np.finfo(float).tiny),
    )


def row_theta(model: Model, part: Varying) -> tuple[RowFunction, np.ndarray | None]:
    """A contribution's coefficients as functions of μ, one per row, for `Theta`."""
    coefficient = replace(part.coefficient, function=as_formula(part.coefficient.function))
    return coefficient, model.inputs.places(part.function, part.nodes)
