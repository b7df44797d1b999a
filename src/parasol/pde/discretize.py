"""From a problem and nodes to sparse matrices, one per affine term."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy
from scipy import sparse

from parasol.checks import ParasolError, check_choice, check_finite
from parasol.expressions import as_function
from parasol.pde.equation import LinearForm, Term, normal
from parasol.pde.parameters import FunctionParameter, ParameterSpace
from parasol.pde.problem import Problem, Settings
from parasol.pde.sparse_direct import Factors, Pattern, factorize
from parasol.pde.steady import Solution, solve_steady
from parasol.space.kernels import Kernel, MultiIndex
from parasol.space.nodes import Nodes, ghosts, scatter
from parasol.space.operators import StencilReport, differentiate
from parasol.space.spacing import feature_spacing
from parasol.space.stencils import Scheme, default_scheme
from parasol.space.wrap import Wrap

log = logging.getLogger(__name__)

DEFAULT_N_NODES = {1: 200, 2: 2000, 3: 4000}


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of the system that carry one equation: where they stand, where they are evaluated, on which stencils."""

    form: LinearForm
    rows: np.ndarray  # (n_rows,) row of the system
    centers: np.ndarray  # (n_rows,) unknown at whose point the equation is evaluated
    normals: np.ndarray | None  # (n_rows, dimension)


@dataclass(frozen=True, eq=False)
class _Varying:
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
    n_unknowns: int
    operator_thetas: tuple[sympy.Expr, ...]
    load_thetas: tuple[sympy.Expr, ...]
    _points: np.ndarray  # (n_unknowns, dimension)
    _indices: np.ndarray
    _indptr: np.ndarray
    _operator_data: np.ndarray  # (Q_A, nnz)
    _loads: np.ndarray  # (Q_f, n_unknowns)
    _varying_operator: tuple[_Varying, ...]
    _varying_load: tuple[_Varying, ...]
    solver: str = "superlu"

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
        return not self._varying_operator and all(not theta.free_symbols for theta in self.operator_thetas)

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
        return tuple(self._matrix(data) for data in self._operator_data)

    @property
    def loads(self) -> np.ndarray:
        """The vectors f_q, (Q_f, n_unknowns)."""
        return self._loads

    def _matrix(self, data) -> sparse.csr_array:
        return sparse.csr_array((data, self._indices, self._indptr), shape=(self.n_unknowns, self.n_unknowns))

    def operator(self, mu) -> sparse.csr_array:
        """A(mu), sparse (n_unknowns, n_unknowns)."""
        mu = np.asarray(mu, dtype=float)
        data = self.operator_theta(mu[None])[0] @ self._operator_data
        for part in self._varying_operator:
            np.add.at(data, part.positions, self._factor(part, mu)[:, None] * part.values)
        return self._matrix(data)

    def load(self, mu) -> np.ndarray:
        """f(mu), (n_unknowns,)."""
        mu = np.asarray(mu, dtype=float)
        out = self.load_theta(mu[None])[0] @ self._loads
        for part in self._varying_load:
            np.add.at(out, part.positions, self._factor(part, mu) * part.values)
        return out

    def _factor(self, part: _Varying, mu: np.ndarray) -> np.ndarray:
        factor = part.coefficient(mu)
        if part.function is None:
            return factor
        first = self.nodes.n_interior if part.function.on == "boundary" else 0
        return factor * mu[self.function_slices[part.function]][part.nodes - first]

    @cached_property
    def _pattern(self) -> Pattern:
        return Pattern(self._indices, self._indptr, self._points)

    @cached_property
    def _constant_factors(self) -> Factors:
        return factorize(self._pattern, self.operator(np.zeros(self.n_parameters)).data, backend=self.solver)

    def factors(self, mu) -> Factors:
        """Factors of A(mu): a constant matrix is factorised once, the others share the elimination order."""
        if self.constant_operator:
            return self._constant_factors
        return factorize(self._pattern, self.operator(mu).data, backend=self.solver)

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


def discretize(
    problem: Problem,
    nodes: Nodes | None = None,
    *,
    kernel: Kernel | None = None,
    degree: int | None = None,
    stencil_size: int | None = None,
    neumann: str = "ghosts",
    solver: str = "superlu",
) -> Model:
    """Discretise a problem by RBF-FD on the given nodes (default: nodes of our choice).

    The kernel, the polynomial degree (−1: none) and the stencil size default to polyharmonic splines with polynomials.
    `neumann` says how conditions with derivatives are met: "ghosts" adds a node outside for each such boundary node
    and asks for the equation on the boundary too; "one-sided" spends the boundary node's row on the condition.
    """
    check_choice(neumann, ("ghosts", "one-sided"), "neumann")
    if nodes is None:
        nodes = nodes_for(problem, Settings())
    if nodes.dimension != problem.domain.dimension:
        raise ParasolError(
            f"nodes have {nodes.dimension} coordinates but the problem's domain has {problem.domain.dimension}."
        )
    order = max(sum(t.derivative or ()) for t in problem.form.operator)
    scheme = default_scheme(nodes.dimension, kernel=kernel, degree=degree, stencil_size=stencil_size, order=order)
    points, blocks = _row_blocks(problem, nodes, use_ghosts=neumann == "ghosts")
    return _assemble(problem, nodes, points, blocks, scheme, solver)


def nodes_for(problem: Problem, settings: Settings, *, rng=0) -> Nodes:
    """Scatter nodes as the settings say; in the plane, where nothing is said, finer where the boundary asks for it."""
    domain = problem.domain
    free = settings.n_boundary is None and settings.method != "hexagonal"
    return scatter(
        domain,
        n_nodes=settings.n_nodes or DEFAULT_N_NODES[domain.dimension],
        n_boundary=settings.n_boundary,
        method=settings.method,
        spacing=feature_spacing(domain) if free and domain.dimension == 2 else None,
        rng=rng,
    )


def discretize_with(problem: Problem, settings: Settings, *, rng=0, **options) -> Model:
    """Scatter nodes and discretise as the settings say."""
    chosen = {"kernel": settings.kernel, "degree": settings.degree, "stencil_size": settings.stencil_size}
    return discretize(problem, nodes_for(problem, settings, rng=rng), **chosen, **options)


def _is_value(form: LinearForm) -> bool:
    return all(sum(term.derivative or ()) == 0 for term in form.operator)


def _row_blocks(problem: Problem, nodes: Nodes, *, use_ghosts: bool) -> tuple[np.ndarray, list[_Rows]]:
    """The equation on interior rows, one block of boundary rows per part; ghosts are appended to the points."""
    names = nodes.domain.part_names
    if problem.domain.part_names != names:
        raise ParasolError(
            "nodes were scattered in another domain than the problem's. Use ps.scatter(problem.domain, ...)."
        )
    forms = [problem.conditions[name] for name in names]
    values = np.array([_is_value(form) for form in forms], dtype=bool)
    part = nodes.part.copy()
    # a corner between a given value and a given slope takes the value
    prefers = nodes.on_part & values[None, :] if len(names) else nodes.on_part
    movable = np.any(prefers, axis=1) & ~values[part] if len(names) else np.zeros(0, dtype=bool)
    part[movable] = np.argmax(prefers[movable], axis=1)

    boundary = np.arange(nodes.n_interior, nodes.n_nodes)
    sloped = ~values[part] if len(names) else np.zeros(0, dtype=bool)
    points = nodes.points
    row_of = boundary.copy()
    pde_rows = np.arange(nodes.n_interior)
    if use_ghosts and np.any(sloped):
        points = np.vstack([points, ghosts(nodes, sloped)])
        row_of[sloped] = nodes.n_nodes + np.arange(np.count_nonzero(sloped))
        pde_rows = np.concatenate([pde_rows, boundary[sloped]])
    blocks = [_Rows(problem.form, pde_rows, pde_rows, None)]
    for j, form in enumerate(forms):
        here = part == j
        if np.any(here):
            blocks.append(_Rows(form, row_of[here], boundary[here], nodes.normals[here]))
    return points, blocks


def _assemble(problem, nodes: Nodes, points, blocks: list[_Rows], scheme: Scheme, solver: str) -> Model:
    n = len(points)
    stencils, reports = [], []
    for block in blocks:
        wanted = sorted({t.derivative for t in block.form.operator if t.derivative is not None})
        stencils.append(_block_stencils(points, block, wanted, scheme, nodes))
        reports += [stencils[-1].report] if stencils[-1].report else []
    counts = np.zeros(n, dtype=np.int64)
    for block, stencil in zip(blocks, stencils, strict=True):
        counts[block.rows] = stencil.columns.shape[1]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = np.empty(indptr[-1], dtype=np.int32)
    matrices: dict[sympy.Expr, np.ndarray] = {}
    vectors: dict[sympy.Expr, np.ndarray] = {}
    varying_operator, varying_load = [], []
    for block, stencil in zip(blocks, stencils, strict=True):
        positions = indptr[block.rows][:, None] + np.arange(stencil.columns.shape[1])
        indices[positions] = stencil.columns
        for term in block.form.operator:
            weights = stencil.weights[term.derivative]
            if term.separated and term.function is None:
                data = matrices.setdefault(term.theta, np.zeros(indptr[-1]))
                data[positions] += _values(problem, term, points, block)[:, None] * weights
            else:
                varying_operator.append(_varying(problem, term, points, block, positions, weights))
        for term in block.form.source:
            if term.separated and term.function is None:
                data = vectors.setdefault(term.theta, np.zeros(n))
                data[block.rows] += _values(problem, term, points, block)
            else:
                ones = np.ones(len(block.rows))
                varying_load.append(_varying(problem, term, points, block, block.rows, ones))
    return Model(
        problem=problem,
        nodes=nodes,
        scheme=scheme,
        report=_merge(reports),
        n_unknowns=n,
        operator_thetas=tuple(matrices),
        load_thetas=tuple(vectors),
        _points=points,
        _indices=indices,
        _indptr=indptr.astype(np.int32),
        _operator_data=np.array(list(matrices.values())).reshape(len(matrices), indptr[-1]),
        _loads=np.array(list(vectors.values())).reshape(len(vectors), n),
        _varying_operator=tuple(varying_operator),
        _varying_load=tuple(varying_load),
        solver=solver,
    )


@dataclass(frozen=True, eq=False)
class _Stencils:
    columns: np.ndarray  # (n_rows, stencil_size)
    weights: dict[MultiIndex, np.ndarray]  # each (n_rows, stencil_size)
    report: StencilReport | None


def _block_stencils(points, block: _Rows, wanted: list[MultiIndex], scheme: Scheme, nodes: Nodes) -> _Stencils:
    zero = (0,) * points.shape[1]
    slopes = [index for index in wanted if index != zero]
    if not slopes:
        return _Stencils(block.centers[:, None], {zero: np.ones((len(block.rows), 1))}, None)
    found = differentiate(points, points[block.centers], slopes, scheme, wrap=Wrap.of(nodes.domain))
    columns = found[slopes[0]].indices.reshape(len(block.rows), -1)
    weights = {index: found[index].data.reshape(columns.shape) for index in slopes}
    if zero in wanted:  # the value at a node is exact: no interpolation needed
        weights[zero] = (columns == block.centers[:, None]).astype(float)
    return _Stencils(columns, weights, found.report)


def _values(problem: Problem, term: Term, points, block: _Rows) -> np.ndarray:
    return _coefficient(problem, term, points, block)(np.empty(0))


def _coefficient(problem: Problem, term: Term, points, block: _Rows) -> Callable[[np.ndarray], np.ndarray]:
    """The function mu -> theta(mu) · coefficient(x, mu) at the block's rows (theta only where it is not separated out)."""
    variables = problem.coordinates
    scalars = problem.parameters.scalars
    expression = term.coefficient if term.separated and term.function is None else term.theta * term.coefficient
    columns = list(points[block.centers].T)
    symbols = list(variables)
    if block.normals is not None:
        symbols += normal(*variables)
        columns += list(block.normals.T)
    used = [p for p in scalars if p in expression.free_symbols]
    places = [scalars.index(p) for p in used]
    evaluate = as_function(expression, [*symbols, *used])

    def at(mu: np.ndarray) -> np.ndarray:
        values = evaluate(*columns, *[mu[j] for j in places])
        if not np.all(np.isfinite(values)):
            raise ParasolError(
                f"the coefficient {expression} is not finite at {np.count_nonzero(~np.isfinite(values))} nodes."
            )
        return values

    return at


def _varying(problem, term: Term, points, block: _Rows, positions, values) -> _Varying:
    return _Varying(_coefficient(problem, term, points, block), term.function, block.centers, positions, values)


def _merge(reports: list[StencilReport]) -> StencilReport:
    total = sum(r.n_stencils for r in reports)
    median = (
        float(np.average([r.median_condition for r in reports], weights=[r.n_stencils for r in reports]))
        if total
        else 0.0
    )
    worst = max((r.worst_condition for r in reports), default=0.0)
    return StencilReport(total, sum(r.n_ill_conditioned for r in reports), median, worst)
