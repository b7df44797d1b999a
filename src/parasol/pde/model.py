"""A discretised problem: matrices and vectors, one per affine term, and how to assemble and solve with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar

import numpy as np
import sympy
from scipy import sparse
from scipy.spatial import KDTree

from parasol import __version__
from parasol.checks import ParasolError, check_count, check_finite, check_shape
from parasol.expressions import Function, as_function
from parasol.pde.equation import Time
from parasol.pde.evolution import Evolution, evolve
from parasol.pde.moments import Moments
from parasol.pde.parameters import FunctionParameter, ParameterSpace
from parasol.pde.problem import Problem
from parasol.pde.quantities import QuantityRows, quantity_rows
from parasol.pde.rows import NonlinearRows, Varying
from parasol.pde.sparse_direct import Factors, Pattern, SingularMatrixError, factorize
from parasol.pde.steady import Solution, describe, solve_nonlinear, solve_steady
from parasol.pde.system import System
from parasol.pde.transient import spectrum
from parasol.space.nodes import Nodes
from parasol.space.operators import StencilReport
from parasol.space.stencils import Scheme

_WATCHED = 16  # rows of a load in time that are looked at beforehand
_SOME_VALUE = 0.7  # of unknowns, at which nonlinear terms are looked at; u (1 − u) vanishes at 0 and 1


@dataclass(frozen=True, eq=False)
class Model:
    """A discretised problem  A(mu) u = f(mu),  A = sum_q theta_q(mu) A_q + ...,  f likewise.

    In time, M2 u'' + M1 u' joins in, and where the problem is nonlinear N(u). A parameter vector holds the scalar
    parameters, then the nodal values of each function parameter. Unknowns are, for each unknown function, the values at
    the nodes, then those at ghost nodes where there are any.
    """

    computed_by: ClassVar[str] = f"parasol {__version__}"  # another version may solve otherwise

    problem: Problem
    nodes: Nodes
    scheme: Scheme
    report: StencilReport
    pattern: Pattern
    operator_thetas: tuple[sympy.Expr, ...]
    load_thetas: tuple[sympy.Expr, ...]
    operator_data: np.ndarray  # (Q_A, nnz): the entries of A_q in the pattern
    loads: np.ndarray  # (Q_f, n_unknowns): the vectors f_q
    time_data: tuple[tuple[int, sympy.Expr, np.ndarray], ...]  # (order in time, theta_q, entries in the pattern)
    varying_operator: tuple[Varying, ...]
    varying_load: tuple[Varying, ...]
    nonlinear: tuple[NonlinearRows, ...]
    solver: str = "superlu"
    step: float | None = None  # in time, unless `solve` is told otherwise
    integrator: str | None = None

    def __getstate__(self) -> dict:  # factors and compiled functions stay behind; they are made again where needed
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __repr__(self) -> str:
        return f"<Model {self.problem.name or 'of a problem'}: {self.n_unknowns} unknowns, {self.scheme}>"

    @property
    def n_unknowns(self) -> int:
        """Number of unknowns: values of all unknown functions at nodes and ghosts."""
        return len(self.pattern.points)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, ghosts not counted."""
        return self.nodes.n_nodes

    @property
    def parameters(self) -> ParameterSpace:
        """The problem's parameters."""
        return self.problem.parameters

    @cached_property
    def quantities(self) -> QuantityRows:
        """The problem's quantities of interest, as weights of a solution's values at one time."""
        return quantity_rows(self.problem.quantities, self.nodes, self.scheme, self.problem.names)

    @property
    def affine(self) -> bool:
        """Whether A and f are sums of theta_q(mu) times fixed arrays (plus fixed multiples of function values in f)."""
        return self.problem.affine

    @property
    def constant_operator(self) -> bool:
        """Whether A does not depend on the parameters at all."""
        return (
            not self.varying_operator
            and not self.nonlinear
            and all(not theta.free_symbols for theta in self.operator_thetas)
        )

    @cached_property
    def function_slices(self) -> dict[FunctionParameter, slice]:
        """Where in a parameter vector the nodal values of each function parameter stand."""
        out, start = {}, len(self.parameters.scalars)
        for function in self.problem.parameter_symbols[1]:
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
        mus = self.parameters.ordered(mus)
        try:
            mus = np.asarray(mus, dtype=float)
        except (TypeError, ValueError):
            raise ParasolError(f"parameters must be real numbers, got {mus!r}.") from None
        if mus.ndim != 2 or mus.shape[1] != self.n_parameters:
            raise ParasolError(
                f"mus has shape {mus.shape}, expected (n_samples, {self.n_parameters}): {self._meaning}."
            )
        self.parameters.check(mus[:, : len(self.parameters.scalars)], extrapolate=extrapolate)
        return check_finite(mus, "mus")

    @property
    def _meaning(self) -> str:
        """What the entries of a parameter vector are."""
        functions = [f"{f.name} at {s.stop - s.start} nodes" for f, s in self.function_slices.items()]
        return ", ".join([*self.parameters.names, *functions]) or "no parameters"

    def sample(self, n_samples: int, rng=0) -> np.ndarray:
        """Random parameter vectors: scalars uniform on their scales, functions from their laws."""
        n_samples = check_count(n_samples, "n_samples")
        rng = np.random.default_rng(rng)
        scalars = self.parameters.from_unit(rng.random((n_samples, len(self.parameters.scalars))))
        drawn = [f.distribution.sample(n_samples, self.function_points(f), rng) for f in self.function_slices]
        return np.hstack([scalars, *drawn])

    def vector(self, values=None, rng=0) -> np.ndarray:
        """A parameter vector from named scalars (middle of the range where not named) and drawn functions."""
        mu = self.sample(1, rng)[0]
        mu[: len(self.parameters.scalars)] = self.parameters.vector(values or {})
        return mu

    @cached_property
    def theta_functions(self) -> tuple[list[Function], list[Function]]:
        """The θ_q of A and of f as functions of the scalar parameters."""
        symbols = self.problem.parameter_symbols[0]
        first, second = self.operator_thetas, self.load_thetas
        return [as_function(t, symbols) for t in first], [as_function(t, symbols) for t in second]

    def operator_theta(self, mus: np.ndarray) -> np.ndarray:
        """theta_q at parameter vectors, (n_samples, Q_A)."""
        return self._thetas(self.theta_functions[0], mus)

    def load_theta(self, mus: np.ndarray) -> np.ndarray:
        """theta_q of the right-hand side, (n_samples, Q_f)."""
        return self._thetas(self.theta_functions[1], mus)

    def _thetas(self, functions, mus) -> np.ndarray:
        columns = [mus[:, j] for j in range(len(self.parameters.scalars))]
        shape = (len(mus), len(functions))
        if not columns:
            return np.broadcast_to(np.array([float(f()) for f in functions]), shape)
        return np.column_stack([f(*columns) for f in functions]) if functions else np.empty(shape)

    @property
    def operators(self) -> tuple[sparse.csr_array, ...]:
        """The matrices A_q."""
        return tuple(self.matrix(data) for data in self.operator_data)

    def matrix(self, data: np.ndarray) -> sparse.csr_array:
        """A sparse matrix from entries in the model's pattern."""
        # a copy of the pattern: what a user does to a matrix in place must not reach the model
        structure = (self.pattern.indices.copy(), self.pattern.indptr.copy())
        return sparse.csr_array((data.copy(), *structure), shape=(self.n_unknowns, self.n_unknowns))

    def operator(self, mu) -> sparse.csr_array:
        """A(mu), sparse (n_unknowns, n_unknowns)."""
        mu = check_shape(mu, (self.n_parameters,), "mu")
        data = self.operator_theta(mu[None])[0] @ self.operator_data
        for part in self.varying_operator:
            np.add.at(data, part.positions, self._factor(part, mu)[:, None] * part.values)
        return self.matrix(data)

    def load(self, mu, t: float = 0.0) -> np.ndarray:
        """f(mu), (n_unknowns,), at time t."""
        mu = check_shape(mu, (self.n_parameters,), "mu")
        out = self.load_theta(mu[None])[0] @ self.loads
        for part in self.varying_load:
            np.add.at(out, part.positions, self._factor(part, mu, t) * part.values)
        return out

    def _factor(self, part: Varying, mu: np.ndarray, t: float = 0.0) -> np.ndarray:
        factor = part.coefficient(mu, t)
        return factor if part.function is None else factor * self._function_values(part.function, part.nodes, mu)

    def _function_values(self, function: FunctionParameter, nodes: np.ndarray, mu: np.ndarray) -> np.ndarray:
        return mu[self.function_places(function, nodes)]

    def function_places(self, function: FunctionParameter | None, nodes: np.ndarray) -> np.ndarray | None:
        """Where in a parameter vector the values of a function at these nodes stand."""
        if function is None:
            return None
        first = self.nodes.n_interior if function.on == "boundary" else 0
        return self.function_slices[function].start + nodes - first

    def system(self, mu) -> System:
        """The discretised problem at one parameter, for Newton's method and for steps in time."""
        mu = np.asarray(mu, dtype=float)
        in_time = [np.zeros(len(self.pattern.indices)) for _ in range(2)]
        for order, theta, data in self.time_data:
            scalars = self.problem.parameter_symbols[0]
            in_time[order - 1] += float(as_function(theta, scalars)(*mu[: len(scalars)])) * data
        steady_load = None if self.load_moves else self.load(mu)
        return System(
            pattern=self.pattern,
            stiffness=self.operator(mu).data,
            damping=in_time[0],
            mass=in_time[1],
            load=(lambda t: self.load(mu, t)) if steady_load is None else (lambda t: steady_load),
            nonlinear=(lambda u, t: self._nonlinear_value(u, t, mu)) if self.nonlinear else None,
            jacobian=(lambda u, t: self._nonlinear_slope(u, t, mu)) if self.nonlinear else None,
            solver=self.solver,
            forcing=(lambda times: self._forcing(mu, times)) if self.moments else None,
            moments=(lambda first, last: self._grid(mu, first, last)) if self.moments else None,
            names=self.problem.names,
            nonlinear_rows=self._nonlinear_rows,
        )

    @cached_property
    def moments(self) -> Moments | None:
        """When something happens in what depends on time, None where nothing does."""
        forms = [*self.problem.forms, *[f for forms in self.problem.conditions.values() for f in forms]]
        parts = [e for form in forms for e in (form.nonlinear, *[term.coefficient for term in form.source])]
        moving = [part for part in parts if part.atoms(Time)]
        if not moving or self.problem.time is None:
            return None
        return Moments.of(moving, self.problem.time, self.problem.parameter_symbols[0], self.problem.coordinates)

    def _grid(self, mu: np.ndarray, first: float, last: float) -> tuple[np.ndarray, np.ndarray]:
        some = np.unique(np.linspace(0, self.n_nodes - 1, 4).astype(int))
        return self.moments.grid(mu[: len(self.parameters.scalars)], self.nodes.points[some], first, last)  # type: ignore[union-attr]

    def _forcing(self, mu: np.ndarray, times: np.ndarray) -> np.ndarray:
        """What depends on time in f, and in N at some values of u and its derivatives, at a few rows of every contribution."""
        loads = [part.coefficient for part in self.varying_load]
        parts = [(c, 0) for c in loads] + [(n.value, len(n.columns) + len(n.functions)) for n in self.nonlinear]
        values = [np.empty((len(times), 0))]
        for function, n_others in parts:
            if function.n_times:
                some = np.unique(np.linspace(0, len(function.columns[0]) - 1, _WATCHED).astype(int))
                values.append(function.take(some).in_time(mu, times, *[_SOME_VALUE] * n_others))
        return np.nan_to_num(np.hstack(values))

    @property
    def load_moves(self) -> bool:
        """Whether f depends on time."""
        forms = [*self.problem.forms, *[f for forms in self.problem.conditions.values() for f in forms]]
        return any(term.coefficient.atoms(Time) for form in forms for term in form.source)

    @cached_property
    def _nonlinear_rows(self) -> np.ndarray:
        out = np.zeros(self.n_unknowns, dtype=bool)
        for part in self.nonlinear:
            out[part.rows] = True
        return out

    def _nonlinear_value(self, u: np.ndarray, t: float, mu: np.ndarray) -> np.ndarray:
        out = np.zeros(self.n_unknowns)
        for part in self.nonlinear:
            functions = [self._function_values(f, part.nodes, mu) for f in part.functions]
            out[part.rows] = part.value(mu, t, *part.jets(u), *functions)
        return out

    def _nonlinear_slope(self, u: np.ndarray, t: float, mu: np.ndarray) -> np.ndarray:
        out = np.zeros(len(self.pattern.indices))
        for part in self.nonlinear:
            values = [*part.jets(u), *[self._function_values(f, part.nodes, mu) for f in part.functions]]
            for slope, weights, positions in zip(part.slopes, part.weights, part.positions, strict=True):
                out[positions] += slope(mu, t, *values)[:, None] * weights
        return out

    @cached_property
    def _constant_factors(self) -> Factors:
        return factorize(self.pattern, self.operator(np.zeros(self.n_parameters)).data, backend=self.solver)

    def factors(self, mu) -> Factors:
        """Factors of A(mu): a constant matrix is factorised once, the others share the elimination order."""
        if self.constant_operator:
            return self._constant_factors
        try:
            return factorize(self.pattern, self.operator(mu).data, backend=self.solver)
        except SingularMatrixError as error:
            raise SingularMatrixError(f"at {describe(self, mu)}: {error}") from None

    def growth(self, mu) -> float:
        """Fastest growth rate in time of the linear part at one parameter. It costs about as much as a solve."""
        return spectrum(self.system(mu)).growth

    @cached_property
    def first_growth(self) -> dict[bytes, float]:
        """`growth` at the parameter solved for first, by its bytes: who solves once pays for one."""
        return {}

    @cached_property
    def typical_growth(self) -> float:
        """The largest `growth` in the middle and at both ends of the parameters' ranges, where parameters are numbers.

        Infinite if there is none at one of these, where the equation may have lost its derivative in time.
        """
        low, high = self.parameters.bounds
        try:
            return max(self.growth(mu) for mu in ((self.vector(), low, high) if len(low) else (self.vector(),)))
        except ParasolError:
            return np.inf

    def fields(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """The unknown functions by name, each (..., n_nodes), from stacked values (..., n_fields * n_nodes)."""
        parts = np.split(np.asarray(values), len(self.problem.names), axis=-1)
        return dict(zip(self.problem.names, parts, strict=True))

    def at_nodes(self, unknowns: np.ndarray) -> np.ndarray:
        """Drop the ghosts: (..., n_unknowns) to (..., n_fields * n_nodes), the unknown functions one after the other."""
        n_fields = len(self.problem.names)
        shaped = unknowns.reshape(*unknowns.shape[:-1], n_fields, self.n_unknowns // n_fields)[..., : self.n_nodes]
        return shaped.reshape(*unknowns.shape[:-1], n_fields * self.n_nodes)

    def hidden(self, unknowns: np.ndarray) -> np.ndarray:
        """The values at ghosts alone: (..., n_unknowns) to (..., n_hidden)."""
        n_fields = len(self.problem.names)
        shaped = unknowns.reshape(*unknowns.shape[:-1], n_fields, self.n_unknowns // n_fields)[..., self.n_nodes :]
        return shaped.reshape(*unknowns.shape[:-1], self.n_unknowns - n_fields * self.n_nodes)

    def unknowns(self, values: np.ndarray, hidden: np.ndarray) -> np.ndarray:
        """Values at nodes (..., n_fields * n_nodes) and at ghosts (..., n_hidden) as (..., n_unknowns)."""
        n_fields = len(self.problem.names)
        parts = [part.reshape(*part.shape[:-1], n_fields, part.shape[-1] // n_fields) for part in (values, hidden)]
        return np.concatenate(parts, axis=-1).reshape(*values.shape[:-1], self.n_unknowns)

    def unknown_weights(self, weights: np.ndarray) -> np.ndarray:
        """Weights of an inner product for all unknowns, (n_unknowns,): at ghosts the mean of those of the same function."""
        n_fields = len(self.problem.names)
        n_ghosts = (self.n_unknowns - len(weights)) // n_fields
        return self.unknowns(weights, np.repeat(np.mean(weights.reshape(n_fields, -1), axis=1), n_ghosts))

    def evaluate(self, expressions, mu, t: float | None = None, points=None) -> np.ndarray:
        """Expressions in coordinates, scalar parameters and time, one per unknown, stacked over the points (the nodes)."""
        points = self.nodes.points if points is None else points
        scalars = self.problem.parameter_symbols[0]
        times = [self.problem.time] if self.problem.time is not None and t is not None else []
        symbols = [*self.problem.coordinates, *scalars, *times]
        columns = [*points.T, *mu[: len(scalars)], *([t] if times else [])]
        return np.concatenate([as_function(e, symbols)(*columns) for e in expressions])

    def exact(self, mu, t: float | None = None) -> np.ndarray | None:
        """The exact solution at the nodes, stacked like a solution's values, where the problem knows it."""
        known = self.problem.exact
        if known is None:
            return None
        return self.evaluate([known[n] for n in self.problem.names] if isinstance(known, Mapping) else [known], mu, t)

    def solve(self, mu=None, *, extrapolate: bool = False, guess=None, **in_time) -> Solution | Evolution:
        """Solve at one parameter: a vector, or a mapping of names to values.

        Steady problems return a `Solution`; nonlinear ones take a `guess` (n_fields * n_nodes,) to start Newton from.
        Problems in time return an `Evolution` and take `times`, `integrator`, `progress` and either `step` for constant
        steps or `tolerance` (1e-5) for adapted ones: the errors of each unknown in time stay below about tolerance × its
        largest size so far, or with `relative=True` × its size at the time. Adapted steps meet the times at which data
        switch, and find pulses of any width where the argument of a function of time vanishes or is extreme; an argument
        that does so twice within 1/4096 of the run may hide one.
        """
        if mu is None or isinstance(mu, Mapping):
            mu = self.vector(mu)
        mu = self.parameters.ordered(mu)
        if np.shape(np.atleast_1d(mu)) != (self.n_parameters,):
            raise ParasolError(f"mu has shape {np.shape(mu)}, expected ({self.n_parameters},): {self._meaning}.")
        mu = self.check([np.atleast_1d(mu)], extrapolate=extrapolate)[0]
        if self.problem.time is not None:
            return evolve(self, mu, **in_time)
        if in_time:
            raise ParasolError(f"{', '.join(in_time)} is for problems in time; this one is steady.")
        if not self.nonlinear:
            return solve_steady(self, mu)
        return solve_nonlinear(self, mu, guess=None if guess is None else self._with_ghosts(guess))

    def _with_ghosts(self, values) -> np.ndarray:
        """Extend nodal values to ghosts, which take the value of their boundary node: a guess, no more."""
        fields = check_shape(values, (len(self.problem.names) * self.n_nodes,), "guess").reshape(-1, self.n_nodes)
        extra = self.pattern.points[self.n_nodes : self.n_unknowns // len(self.problem.names)]
        nearest = KDTree(self.nodes.points).query(extra)[1] if len(extra) else np.empty(0, dtype=int)
        return np.hstack([fields, fields[:, nearest]]).ravel()
