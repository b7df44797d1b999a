"""The terms of the discretised equations: arrays with their factors theta_q(mu), and rows evaluated for every parameter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy
from scipy import sparse

from parasol.checks import check_shape
from parasol.expressions import Function, as_function
from parasol.pde.inputs import Inputs
from parasol.pde.rows import NonlinearRows, Varying
from parasol.pde.sparse_pattern import Pattern

_WATCHED = 16  # rows of a contribution that are looked at when it depends on time
_SOME_VALUE = 0.7  # of unknowns, at which nonlinear terms are looked at; u (1 − u) vanishes at 0 and 1


@dataclass(frozen=True, eq=False)
class Terms:
    """A(mu) = sum_q theta_q(mu) A_q + varying rows,  f(mu, t) likewise,  M2 and M1 in time, N(u, t; mu)."""

    inputs: Inputs
    pattern: Pattern  # of all matrices
    operator_thetas: tuple[sympy.Expr, ...]
    operator_data: np.ndarray  # (Q_A, nnz): the entries of A_q in the pattern
    load_thetas: tuple[sympy.Expr, ...]
    loads: np.ndarray  # (Q_f, n_unknowns): the vectors f_q
    time_data: tuple[tuple[int, sympy.Expr, np.ndarray], ...]  # (order in time, theta_q, entries in the pattern)
    varying_operator: tuple[Varying, ...]
    varying_load: tuple[Varying, ...]
    nonlinear: tuple[NonlinearRows, ...]

    @property
    def constant_operator(self) -> bool:
        """Whether A does not depend on the parameters at all."""
        free = any(theta.free_symbols for theta in self.operator_thetas)
        return not (free or self.varying_operator or self.nonlinear)

    @property
    def load_moves(self) -> bool:
        """Whether f depends on time."""
        return any(part.coefficient.n_times for part in self.varying_load)

    @cached_property
    def theta_functions(self) -> tuple[list[Function], ...]:
        """The θ_q of A, of f and of the matrices in time, as functions of the scalar parameters."""
        thetas = (self.operator_thetas, self.load_thetas, [theta for _, theta, _ in self.time_data])
        return tuple([as_function(theta, self.inputs.scalars) for theta in some] for some in thetas)

    def operator_theta(self, mus: np.ndarray) -> np.ndarray:
        """θ_q of A at parameter vectors, (n_samples, Q_A)."""
        return self._thetas(self.theta_functions[0], mus)

    def load_theta(self, mus: np.ndarray) -> np.ndarray:
        """θ_q of f at parameter vectors, (n_samples, Q_f)."""
        return self._thetas(self.theta_functions[1], mus)

    def _thetas(self, functions: list[Function], mus: np.ndarray) -> np.ndarray:
        columns = mus[:, : self.inputs.n_scalars].T
        values = [np.broadcast_to(f(*columns), len(mus)) for f in functions]
        return np.array(values).reshape(len(functions), len(mus)).T

    @property
    def operators(self) -> tuple[sparse.csr_array, ...]:
        """The matrices A_q."""
        return tuple(self.matrix(data) for data in self.operator_data)

    def matrix(self, data: np.ndarray) -> sparse.csr_array:
        """A sparse matrix from entries in the pattern."""
        # a copy of the pattern: what a user does to a matrix in place must not reach the model
        structure = (self.pattern.indices.copy(), self.pattern.indptr.copy())
        return sparse.csr_array((data.copy(), *structure), shape=(len(self.pattern.points),) * 2)

    def operator_entries(self, mu) -> np.ndarray:
        """The entries (nnz,) of A(mu)."""
        mu = self._vector(mu)
        data = self.operator_theta(mu[None])[0] @ self.operator_data
        for part in self.varying_operator:
            np.add.at(data, part.positions, self._factor(part, mu)[:, None] * part.values)
        return data

    def load(self, mu, t: float = 0.0) -> np.ndarray:
        """f(mu), (n_unknowns,), at time t."""
        mu = self._vector(mu)
        out = self.load_theta(mu[None])[0] @ self.loads
        for part in self.varying_load:
            np.add.at(out, part.positions, self._factor(part, mu, t) * part.values)
        return out

    def time_entries(self, mu, order: int) -> np.ndarray:
        """The entries (nnz,) of the matrix that multiplies the time derivative of this order."""
        out = np.zeros(len(self.pattern.indices))
        thetas = self._thetas(self.theta_functions[2], self._vector(mu)[None])[0]
        for theta, (own, _, data) in zip(thetas, self.time_data, strict=True):
            if own == order:
                out += theta * data
        return out

    def _vector(self, mu) -> np.ndarray:
        return check_shape(mu, (self.inputs.n_parameters,), "mu")

    def _factor(self, part: Varying, mu: np.ndarray, t: float = 0.0) -> np.ndarray:
        places = self.inputs.places(part.function, part.nodes)
        factor = part.coefficient(mu, t)
        return factor if places is None else factor * mu[places]

    # ---- nonlinear rows ---------------------------------------------------------------------------------------------
    @cached_property
    def nonlinear_rows(self) -> np.ndarray:
        """(n_unknowns,) bool: where N can differ from 0."""
        out = np.zeros(len(self.pattern.points), dtype=bool)
        for part in self.nonlinear:
            out[part.rows] = True
        return out

    def nonlinear_value(self, u: np.ndarray, t: float, mu: np.ndarray) -> np.ndarray:
        """N(u, t), (n_unknowns,)."""
        out = np.zeros(len(self.pattern.points))
        for part in self.nonlinear:
            out[part.rows] += part.value(mu, t, *self._arguments(part, u, mu))
        return out

    def nonlinear_slope(self, u: np.ndarray, t: float, mu: np.ndarray) -> np.ndarray:
        """The entries (nnz,) of the derivative of N by u."""
        out = np.zeros(len(self.pattern.indices))
        for part in self.nonlinear:
            arguments = self._arguments(part, u, mu)
            for slope, weights, positions in zip(part.slopes, part.weights, part.positions, strict=True):
                out[positions] += slope(mu, t, *arguments)[:, None] * weights
        return out

    def _arguments(self, part: NonlinearRows, u: np.ndarray, mu: np.ndarray) -> list[np.ndarray]:
        """Derivatives of u and values of function parameters at the rows, as the row functions take them."""
        return [*part.jets(u), *[mu[self.inputs.places(f, part.nodes)] for f in part.functions]]

    # ---- time -------------------------------------------------------------------------------------------------------
    def forcing(self, mu: np.ndarray, times: np.ndarray) -> np.ndarray:
        """What depends on time in f, and in N at some values of u and its derivatives, at a few rows of every contribution."""
        loads = [(part.coefficient, 0) for part in self.varying_load]
        parts = [*loads, *[(n.value, len(n.columns) + len(n.functions)) for n in self.nonlinear]]
        values = [np.empty((len(times), 0))]
        for function, n_others in parts:
            if function.n_times:
                some = np.unique(np.linspace(0, len(function.columns[0]) - 1, _WATCHED).astype(int))
                values.append(function.take(some).in_time(mu, times, *[_SOME_VALUE] * n_others))
        return np.nan_to_num(np.hstack(values))
