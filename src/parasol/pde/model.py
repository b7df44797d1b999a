"""A discretised problem: matrices and vectors, one per affine term, and how to assemble and solve with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy
from scipy import sparse

from parasol.checks import ParasolError, check_finite
from parasol.expressions import as_function
from parasol.pde.parameters import FunctionParameter, ParameterSpace
from parasol.pde.problem import Problem
from parasol.pde.sparse_direct import Factors, Pattern, factorize
from parasol.pde.steady import Solution, solve_steady
from parasol.space.nodes import Nodes
from parasol.space.operators import StencilReport
from parasol.space.stencils import Scheme


@dataclass(frozen=True, eq=False)
class Varying:
    """A contribution that is assembled anew for every mu: coefficient(x, mu) · f(x) · values at `positions`."""

    coefficient: Callable[[np.ndarray], np.ndarray]  # mu -> (n_rows,)
    function: FunctionParameter | None
    nodes: np.ndarray  # (n_rows,) node whose value of the function is meant
    positions: np.ndarray  # entries of the matrix data (n_rows, stencil_size), or of the load (n_rows,)
    values: np.ndarray  # like positions


@dataclass(frozen=True, eq=False)
class Model:
    """A discretised problem  A(mu) u = f(mu),  A = sum_q theta_q(mu) A_q + ...,  f likewise.

    A parameter vector holds the scalar parameters, then the nodal values of each function parameter. Unknowns are the
    values at the nodes, then those at ghost nodes where there are any.
    """

    problem: Problem
    nodes: Nodes
    scheme: Scheme
    report: StencilReport
    pattern: Pattern
    operator_thetas: tuple[sympy.Expr, ...]
    load_thetas: tuple[sympy.Expr, ...]
    operator_data: np.ndarray  # (Q_A, nnz): the entries of A_q in the pattern
    loads: np.ndarray  # (Q_f, n_unknowns): the vectors f_q
    varying_operator: tuple[Varying, ...]
    varying_load: tuple[Varying, ...]
    solver: str = "superlu"

    @property
    def n_unknowns(self) -> int:
        """Number of unknowns: nodes and ghosts."""
        return len(self.pattern.points)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, ghosts not counted."""
        return self.nodes.n_nodes

    @property
    def parameters(self) -> ParameterSpace:
        """The problem's parameters."""
        return self.problem.parameters

    @property
    def affine(self) -> bool:
        """Whether A and f are sums of theta_q(mu) times fixed arrays (plus fixed multiples of function values in f)."""
        return self.problem.affine

    @property
    def constant_operator(self) -> bool:
        """Whether A does not depend on the parameters at all."""
        return not self.varying_operator and all(not theta.free_symbols for theta in self.operator_thetas)

    @cached_property
    def function_slices(self) -> dict[FunctionParameter, slice]:
        """Where in a parameter vector the nodal values of each function parameter stand."""
        out, start = {}, len(self.parameters.scalars)
        for function in self.parameters.functions:
            count = self.nodes.n_boundary if function.on == "boundary" else self.n_nodes
            out[function] = slice(start, start + count)
            start += count
        return out

    @property
    def n_parameters(self) -> int:
        """Length of a parameter vector."""
        return max([len(self.parameters.scalars), *[s.stop for s in self.function_slices.values()]])

    def function_points(self, function: FunctionParameter) -> np.ndarray:
        """The nodes at which a function parameter is given."""
        return self.nodes.boundary if function.on == "boundary" else self.nodes.points

    def check(self, mus, *, extrapolate: bool = False) -> np.ndarray:
        """Parameter vectors (n_samples, n_parameters) as floats; refused if of wrong length or outside the box."""
        mus = np.asarray(mus, dtype=float)
        if mus.ndim != 2 or mus.shape[1] != self.n_parameters:
            raise ParasolError(
                f"mus has shape {mus.shape}, expected (n_samples, {self.n_parameters}): "
                + ", ".join(
                    [
                        *self.parameters.names,
                        *[f"{f.name} at {s.stop - s.start} nodes" for f, s in self.function_slices.items()],
                    ]
                )
            )
        self.parameters.check(mus[:, : len(self.parameters.scalars)], extrapolate=extrapolate)
        return check_finite(mus, "mus")

    def sample(self, n_samples: int, rng=0) -> np.ndarray:
        """Random parameter vectors: scalars uniform on their scales, functions from their laws."""
        rng = np.random.default_rng(rng)
        scalars = self.parameters.from_unit(rng.random((n_samples, len(self.parameters.scalars))))
        drawn = [f.law.sample(n_samples, self.function_points(f), rng) for f in self.function_slices]
        return np.hstack([scalars, *drawn])

    def vector(self, values=None, rng=0) -> np.ndarray:
        """A parameter vector from named scalars (middle of the range where not named) and drawn functions."""
        mu = self.sample(1, rng)[0]
        mu[: len(self.parameters.scalars)] = self.parameters.vector(values or {})
        return mu

    @cached_property
    def _theta_functions(self):
        symbols = self.parameters.scalars
        return tuple([as_function(t, symbols) for t in thetas] for thetas in (self.operator_thetas, self.load_thetas))

    def operator_theta(self, mus: np.ndarray) -> np.ndarray:
        """theta_q at parameter vectors, (n_samples, Q_A)."""
        return self._thetas(self._theta_functions[0], mus)

    def load_theta(self, mus: np.ndarray) -> np.ndarray:
        """theta_q of the right-hand side, (n_samples, Q_f)."""
        return self._thetas(self._theta_functions[1], mus)

    def _thetas(self, functions, mus) -> np.ndarray:
        columns = [mus[:, j] for j in range(len(self.parameters.scalars))]
        shape = (len(mus), len(functions))
        if not columns:
            return np.broadcast_to(np.array([float(f()) for f in functions]), shape)
        return np.column_stack([f(*columns) for f in functions]) if functions else np.empty(shape)

    @property
    def operators(self) -> tuple[sparse.csr_array, ...]:
        """The matrices A_q."""
        return tuple(self._matrix(data) for data in self.operator_data)

    def _matrix(self, data) -> sparse.csr_array:
        return sparse.csr_array(
            (data, self.pattern.indices, self.pattern.indptr), shape=(self.n_unknowns, self.n_unknowns)
        )

    def operator(self, mu) -> sparse.csr_array:
        """A(mu), sparse (n_unknowns, n_unknowns)."""
        mu = np.asarray(mu, dtype=float)
        data = self.operator_theta(mu[None])[0] @ self.operator_data
        for part in self.varying_operator:
            np.add.at(data, part.positions, self._factor(part, mu)[:, None] * part.values)
        return self._matrix(data)

    def load(self, mu) -> np.ndarray:
        """f(mu), (n_unknowns,)."""
        mu = np.asarray(mu, dtype=float)
        out = self.load_theta(mu[None])[0] @ self.loads
        for part in self.varying_load:
            np.add.at(out, part.positions, self._factor(part, mu) * part.values)
        return out

    def _factor(self, part: Varying, mu: np.ndarray) -> np.ndarray:
        factor = part.coefficient(mu)
        if part.function is None:
            return factor
        first = self.nodes.n_interior if part.function.on == "boundary" else 0
        return factor * mu[self.function_slices[part.function]][part.nodes - first]

    @cached_property
    def _constant_factors(self) -> Factors:
        return factorize(self.pattern, self.operator(np.zeros(self.n_parameters)).data, backend=self.solver)

    def factors(self, mu) -> Factors:
        """Factors of A(mu): a constant matrix is factorised once, the others share the elimination order."""
        if self.constant_operator:
            return self._constant_factors
        return factorize(self.pattern, self.operator(mu).data, backend=self.solver)

    def exact(self, mu) -> np.ndarray | None:
        """The exact solution at the nodes, where the problem knows it."""
        if self.problem.exact is None:
            return None
        symbols = [*self.problem.coordinates, *self.parameters.scalars]
        return as_function(self.problem.exact, symbols)(*self.nodes.points.T, *mu[: len(self.parameters.scalars)])

    def solve(self, mu=None, *, extrapolate: bool = False) -> Solution:
        """Solve A(mu) u = f(mu); `mu` may be a vector or a mapping of names to values."""
        if mu is None or isinstance(mu, dict):
            mu = self.vector(mu)
        mu = np.atleast_1d(np.asarray(mu, dtype=float))
        return solve_steady(self, self.check(mu[None], extrapolate=extrapolate)[0])
