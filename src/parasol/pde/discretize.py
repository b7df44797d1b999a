"""From a problem and nodes to sparse matrices, one per affine term."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import sympy

from parasol.checks import ParasolError, check_choice
from parasol.expressions import as_function
from parasol.pde.equation import LinearForm, Term, normal
from parasol.pde.model import Model, Varying
from parasol.pde.problem import Problem, Settings
from parasol.pde.sparse_direct import BACKENDS, Pattern
from parasol.space.kernels import Kernel, MultiIndex
from parasol.space.nodes import Nodes, ghosts, scatter
from parasol.space.operators import StencilReport, differentiate
from parasol.space.spacing import feature_spacing
from parasol.space.stencils import Scheme, default_scheme
from parasol.space.wrap import Wrap

DEFAULT_N_NODES = {1: 200, 2: 2000, 3: 4000}


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of the system that carry one equation: where they stand, where they are evaluated, on which stencils."""

    form: LinearForm
    rows: np.ndarray  # (n_rows,) row of the system
    centers: np.ndarray  # (n_rows,) unknown at whose point the equation is evaluated
    normals: np.ndarray | None  # (n_rows, dimension)


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
    check_choice(solver, BACKENDS, "solver")
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
        n_nodes=DEFAULT_N_NODES[domain.dimension] if settings.n_nodes is None else settings.n_nodes,
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
        pattern=Pattern(indices, indptr.astype(np.int32), points),
        operator_thetas=tuple(matrices),
        load_thetas=tuple(vectors),
        operator_data=np.array(list(matrices.values())).reshape(len(matrices), indptr[-1]),
        loads=np.array(list(vectors.values())).reshape(len(vectors), n),
        varying_operator=tuple(varying_operator),
        varying_load=tuple(varying_load),
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


def _varying(problem, term: Term, points, block: _Rows, positions, values) -> Varying:
    return Varying(_coefficient(problem, term, points, block), term.function, block.centers, positions, values)


def _merge(reports: list[StencilReport]) -> StencilReport:
    total = sum(r.n_stencils for r in reports)
    median = (
        float(np.average([r.median_condition for r in reports], weights=[r.n_stencils for r in reports]))
        if total
        else 0.0
    )
    worst = max((r.worst_condition for r in reports), default=0.0)
    return StencilReport(total, sum(r.n_ill_conditioned for r in reports), median, worst)
