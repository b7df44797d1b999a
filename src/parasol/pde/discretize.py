"""From a problem and nodes to sparse matrices, one per affine term."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import sympy

from parasol.checks import check_choice, check_positive
from parasol.errors import InputError, ParasolWarning, UnsuitableNodes
from parasol.expressions import as_function
from parasol.pde.equation import Form, Jet, Term, Time, normal
from parasol.pde.inputs import Inputs
from parasol.pde.model import Model
from parasol.pde.problem import Problem, Settings
from parasol.pde.rough import rough_places, singular_points
from parasol.pde.rows import NonlinearRows, Varying
from parasol.pde.sparse_direct import BACKENDS, Pattern
from parasol.pde.terms import Terms
from parasol.runtime.rows import RowFunction
from parasol.space.kernels import Kernel, MultiIndex
from parasol.space.neighbours import Cloud
from parasol.space.nodes import Nodes, ghosts, lattice, scatter
from parasol.space.operators import StencilReport, differentiate, simpler
from parasol.space.spacing import feature_spacing, graded_spacing
from parasol.space.stencils import Scheme, default_scheme

DEFAULT_N_NODES = {1: 200, 2: 2000, 3: 4000}


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of the system that carry one equation: where they stand and at which points it is evaluated."""

    form: Form
    rows: np.ndarray  # (n_rows,) row of the system
    centers: np.ndarray  # (n_rows,) point at which the equation is evaluated
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
    hyperviscosity: float = 0.0,
    step: float | None = None,
    integrator: str | None = None,
) -> Model:
    """Discretise a problem by RBF-FD on the given nodes (default: those of `nodes_for`).

    The kernel, the polynomial degree (−1: none) and the stencil size default to polyharmonic splines with polynomials.
    `neumann` says how conditions with derivatives are met: "ghosts" adds a node outside for each such boundary node
    and asks for the equation on the boundary too; "one-sided" spends the boundary node's row on the condition (lines and
    planes only: in space its errors scatter from 1e-2 to 1e-4 with the nodes, where ghosts give 1e-5).
    `hyperviscosity` c adds the damping c h³ Δ² to the state (to its velocity for second order in time), which transport on
    scattered nodes may need to be stable. `step` and `integrator` are what `solve` uses in time unless it is given others.
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem is {problem!r}. Pass a ps.Problem, for instance ps.load_problem('helmholtz').")
    if not (nodes is None or isinstance(nodes, Nodes)):
        raise InputError(f"nodes is {type(nodes).__name__}. Pass what ps.scatter or ps.lattice returns.")
    check_choice(neumann, ("ghosts", "one-sided"), "neumann")
    check_choice(solver, BACKENDS, "solver")
    if nodes is None:
        nodes = nodes_for(problem, Settings())
    if nodes.dimension != problem.domain.dimension:
        raise InputError(
            f"nodes have {nodes.dimension} coordinates but the problem's domain has {problem.domain.dimension}."
        )
    forms = problem.forms
    if hyperviscosity:
        forms = [_damped(problem, form, nodes, hyperviscosity) for form in forms]
    order = max(form.order for form in forms)
    scheme = default_scheme(nodes.dimension, kernel=kernel, degree=degree, stencil_size=stencil_size, order=order)
    cloud, blocks = _row_blocks(problem, forms, nodes, use_ghosts=neumann == "ghosts")
    terms, report = _assemble(problem, nodes, cloud, blocks, scheme)
    for reason in rough_places(problem, nodes):
        warnings.warn(reason, ParasolWarning, stacklevel=2)
    return Model(problem, nodes, scheme, report, terms, solver, step, integrator)


def nodes_for(problem: Problem, settings: Settings, *, rng=0) -> Nodes:
    """Scatter nodes as the settings say; in the plane, where nothing is said, finer where the boundary asks for it.

    Towards points where the solution is singular the spacing falls further.
    """
    domain = problem.domain
    n_nodes = DEFAULT_N_NODES[domain.dimension] if settings.n_nodes is None else settings.n_nodes
    if settings.method == "lattice":
        return lattice(domain, round(n_nodes ** (1 / domain.dimension)))
    spacing = None
    if settings.n_boundary is None and settings.method != "hexagonal" and domain.dimension == 2:
        singular = singular_points(problem, 0.3 * (domain.volume() / n_nodes) ** 0.5)
        if settings.method == "fill" and len(singular):
            chosen = {name: getattr(settings, name) for name in ("kernel", "degree", "stencil_size")}
            size = simpler(default_scheme(2, **chosen)).stencil_size
            spacing = graded_spacing(domain, singular, n_nodes=n_nodes, stencil_size=size)
        else:
            spacing = feature_spacing(domain)
    return scatter(
        domain,
        n_nodes=n_nodes,
        n_boundary=settings.n_boundary,
        method=settings.method,
        spacing=spacing,
        rng=rng,
    )


def discretize_with(problem: Problem, settings: Settings, *, rng=0, **options) -> Model:
    """Scatter nodes and discretise as the settings say."""
    chosen = {
        name: getattr(settings, name) for name in ("kernel", "degree", "stencil_size", "neumann", "step", "integrator")
    }
    return discretize(problem, nodes_for(problem, settings, rng=rng), **(chosen | options))


def _damped(problem: Problem, form: Form, nodes: Nodes, strength: float) -> Form:
    """The form with hyperviscosity, c h³ Δ², on every unknown whose time derivative it has."""
    if problem.time is None:
        raise InputError("hyperviscosity is for problems in time; this one is steady.")
    check_positive(strength, "hyperviscosity")
    size = strength * float(np.mean(nodes.spacing)) ** 3
    axes = 2 * np.eye(nodes.dimension, dtype=int)
    twice = Counter(tuple(int(i) for i in a + b) for a in axes for b in axes)
    orders = problem.time_orders
    moving = sorted({t.unknown for t in form.operator if 0 < t.time_order == orders[t.unknown]})
    extra = tuple(
        Term(sympy.S.One, sympy.Float(size * times), None, index, unknown, orders[unknown] - 1)
        for unknown in moving
        for index, times in twice.items()
    )
    return replace(form, operator=form.operator + extra)


def _row_blocks(
    problem: Problem, forms: Sequence[Form], nodes: Nodes, *, use_ghosts: bool
) -> tuple[Cloud, list[_Rows]]:
    """The equations on interior rows, one block of boundary rows per part and unknown; ghosts are appended to the points.

    A boundary node where some unknown has a condition on its slope gets a ghost. Its two rows of each unknown then carry
    the condition and the equation: a condition on the value stands in the node's row, one on the slope in the ghost's.
    In time, the rate of a value that is given is given too (`_with_known_rate`), or the ghost would follow from nothing.
    """
    names = nodes.domain.part_names
    _check_nodes(problem, nodes)
    n_unknowns = len(problem.names)
    values = np.array([[problem.conditions[name][j].states_value for name in names] for j in range(n_unknowns)])
    part = _parts(nodes, values)
    beyond = np.array(
        [_beyond(nodes, [problem.conditions[name][j] for name in names], part[j]) for j in range(n_unknowns)]
    )
    sloped = ~np.take_along_axis(values, part, axis=1) if len(names) else np.zeros_like(part, dtype=bool)
    if nodes.dimension == 3 and np.any(sloped) and not use_ghosts:
        raise InputError(
            'neumann="one-sided" is not accurate in 3 dimensions: errors scatter a hundredfold with the nodes. Use neumann="ghosts".'
        )
    haunted = np.any(sloped, axis=0) & use_ghosts
    boundary = np.arange(nodes.n_interior, nodes.n_nodes)
    ghost_of = nodes.n_nodes + np.cumsum(haunted) - 1
    points, anchors = nodes.points, nodes.points
    # the normal that stands in a condition is that of the side whose condition it is
    normals = np.take_along_axis(nodes.part_normals[None], part[:, :, None, None], axis=2)[:, :, 0]
    if np.any(haunted):
        # a ghost stands off along the normal of the condition in its row, the first where there are several
        outward = normals[np.argmax(sloped, axis=0), np.arange(nodes.n_boundary)]
        points = np.vstack([nodes.points, ghosts(replace(nodes, normals=outward), haunted)])
        anchors = np.vstack([nodes.points, nodes.boundary[haunted]])
    n = len(points)
    blocks = []
    for j, form in enumerate(forms):
        # the equation also holds at a boundary node with a ghost, in whichever of the two rows the condition leaves free
        known = haunted & ~sloped[j] & (problem.time is not None)
        at_boundary = np.where(sloped[j], boundary, ghost_of)[haunted & ~known]
        rows = np.concatenate([np.arange(nodes.n_interior), at_boundary])
        centers = np.concatenate([np.arange(nodes.n_interior), boundary[haunted & ~known]])
        blocks.append(_Rows(form, j * n + rows, centers, None))
        for p in np.unique(part[j, known]):
            here = known & (part[j] == p)
            given = _with_known_rate(form, problem.conditions[names[p]][j], problem.time)
            blocks.append(_Rows(given, j * n + ghost_of[here], boundary[here], normals[j, here]))
        condition_row = np.where(haunted & sloped[j], ghost_of, boundary)
        for p, name in enumerate(names):
            condition = problem.conditions[name][j]
            # where given values jump in the middle of a side, the node takes their mean
            jump = beyond[j] != part[j]
            shared = jump & ((part[j] == p) | (beyond[j] == p))
            for form, here in ((condition, (part[j] == p) & ~jump), (_halved(condition), shared)):
                if np.any(here):
                    blocks.append(_Rows(form, j * n + condition_row[here], boundary[here], normals[j, here]))
    thin = float(np.min(nodes.spacing[nodes.n_interior :])) if nodes.n_boundary else 0.0
    return Cloud(points, nodes.domain, anchors, singular_points(problem, thin)), blocks


def _with_known_rate(form: Form, condition: Form, t: Time) -> Form:
    """The equation where the condition gives the value of one unknown: its derivatives in time become a source."""
    if len(condition.operator) != 1 or condition.jets:
        return form  # the value depends on other unknowns
    value, operator, source = condition.operator[0], [], list(form.source)
    for term in form.operator:
        if term.time_order == 0 or term.unknown != value.unknown or any(term.derivative or ()):
            operator.append(term)
            continue
        for given in condition.source:
            rate = sympy.diff(given.coefficient / value.coefficient, t, term.time_order)
            if rate != 0:
                theta = term.theta * given.theta / value.theta
                source.append(Term(theta, -term.coefficient * rate, given.function, None))
    return replace(form, operator=tuple(operator), source=tuple(source))


def _check_nodes(problem: Problem, nodes: Nodes) -> None:
    """Refuse nodes of another domain, and parts of the boundary whose condition no node would carry."""
    domain, names = problem.domain, problem.domain.part_names
    alike = nodes.domain.part_names == names and np.array_equal(nodes.domain.periods, domain.periods)
    if alike and nodes.domain is not domain:
        alike = bool(np.all(domain.contains(nodes.interior)))
        if nodes.n_boundary:
            alike &= bool(np.max(np.abs(domain.distance(nodes.boundary))) < 1e-6 * domain.size)
    if not alike:
        raise InputError(
            "nodes were scattered in another domain than the problem's. Use ps.scatter(problem.domain, ...)."
        )
    asked = problem.boundary if isinstance(problem.boundary, Mapping) else {}
    for j, name in enumerate(names):
        if name in asked and not np.any(nodes.on_part[:, j]):
            raise UnsuitableNodes(
                f"the boundary part {name!r} has no node, so its condition would be lost. Use more nodes, or check where it is."
            )


def _parts(nodes: Nodes, values: np.ndarray) -> np.ndarray:
    """The part whose condition each boundary node takes for each unknown, (n_unknowns, n_boundary).

    `values` (n_unknowns, n_parts) says which conditions give a value. At a corner these go before conditions on a slope,
    those of the part that gives most values first: beside a clamped side, a side that may slip leaves the corner to it.
    """
    rank = 2 * np.sum(values, axis=0) + (np.arange(values.shape[1]) == nodes.part[:, None])
    part = np.tile(nodes.part, (len(values), 1))
    for j in range(len(values) if values.size else 0):
        gives = nodes.on_part & values[j]
        part[j] = np.where(np.any(gives, axis=1), np.argmax(gives * rank, axis=1), nodes.part)
    return part


def _beyond(nodes: Nodes, conditions: list[Form], part: np.ndarray) -> np.ndarray:
    """The part on the other side of each boundary node, where one given value ends and another begins: (n_boundary,).

    Elsewhere, in corners too, it is the node's own part, `part`. `conditions` are those of the parts on one unknown.
    """
    beyond, domain = part.copy(), nodes.domain
    values = np.array([form.states_value and form.linear for form in conditions], dtype=bool)
    rows = np.flatnonzero((nodes.on_part & values).sum(axis=1) > 1) if domain.dimension == 2 else ()
    if not len(rows):
        return beyond
    normal = nodes.part_normals[rows, part[rows]]
    step = 1e-6 * domain.size * np.stack([-normal[:, 1], normal[:, 0]], axis=1)
    sides = [domain.plain(domain.project(nodes.boundary[rows] + sign * step)) for sign in (1, -1)]
    smooth = np.all([np.sum(turned * normal, axis=1) > 1 - 1e-6 for _, turned in sides], axis=0)
    for row in np.flatnonzero(smooth):
        first = {int(np.argmax(parts[row])) for parts, _ in sides}  # the part that counts on either side
        other = first - {int(part[rows[row]])}
        if (
            len(first) == 2
            and len(other) == 1
            and conditions[min(other)].operator == conditions[part[rows[row]]].operator
        ):
            beyond[rows[row]] = min(other)
    return beyond


def _halved(form: Form) -> Form:
    """The linear form times one half, so that two of them in one row make their mean."""
    operator, source = (
        tuple(replace(term, coefficient=term.coefficient / 2) for term in terms)
        for terms in (form.operator, form.source)
    )
    return replace(form, operator=operator, source=source)


def _assemble(
    problem: Problem, nodes: Nodes, cloud: Cloud, blocks: list[_Rows], scheme: Scheme
) -> tuple[Terms, StencilReport]:
    points = cloud.points
    n = len(points)
    size = n * len(problem.names)
    stencils = _stencils(cloud, blocks, scheme)
    counts = np.zeros(size, dtype=np.int64)
    for block, stencil in zip(blocks, stencils, strict=True):
        counts[block.rows] = stencil.width * len(_present(block.form))
    indptr = np.concatenate([[0], np.cumsum(counts)])
    indices = np.empty(indptr[-1], dtype=np.int32)
    matrices: dict[tuple[int, sympy.Expr], np.ndarray] = {}
    vectors: dict[sympy.Expr, np.ndarray] = {}
    varying_operator, varying_load, nonlinear = [], [], []
    for block, stencil in zip(blocks, stencils, strict=True):
        positions = {}
        for slot, unknown in enumerate(_present(block.form)):
            columns = np.arange(slot * stencil.width, (slot + 1) * stencil.width)
            positions[unknown] = indptr[block.rows][:, None] + columns
            indices[positions[unknown]] = stencil.columns + unknown * n
        for term in block.form.operator:
            where, weights = positions[term.unknown], stencil.weights[term.derivative or ()]
            if term.separated and term.function is None:
                data = matrices.setdefault((term.time_order, term.theta), np.zeros(indptr[-1]))
                data[where] += _values(problem, term, points, block)[:, None] * weights
            elif term.time_order or term.coefficient.atoms(Time):  # the matrices are those of all times
                raise InputError(
                    f"the coefficient of a time derivative, {term.coefficient}, is not a function of parameters times one of x."
                )
            else:
                varying_operator.append(_varying(problem, term, points, block, where, weights))
        for term in block.form.source:
            if term.separated and term.function is None:
                data = vectors.setdefault(term.theta, np.zeros(size))
                data[block.rows] += _values(problem, term, points, block)
            else:
                varying_load.append(_varying(problem, term, points, block, block.rows, np.ones(len(block.rows))))
        if block.form.jets:
            nonlinear.append(_nonlinear(problem, points, block, stencil, positions, n))
    steady = {theta: data for (order, theta), data in matrices.items() if order == 0}
    terms = Terms(
        inputs=Inputs(problem.parameters, *problem.parameter_symbols, nodes),
        pattern=Pattern(indices, indptr.astype(np.int32), np.tile(points, (len(problem.names), 1))),
        operator_thetas=tuple(steady),
        operator_data=np.array(list(steady.values())).reshape(len(steady), indptr[-1]),
        load_thetas=tuple(vectors),
        loads=np.array(list(vectors.values())).reshape(len(vectors), size),
        time_data=tuple((order, theta, data) for (order, theta), data in matrices.items() if order > 0),
        varying_operator=tuple(varying_operator),
        varying_load=tuple(varying_load),
        nonlinear=tuple(nonlinear),
    )
    return terms, StencilReport.of(np.concatenate([s.condition for s in {id(s): s for s in stencils}.values()]))


def _present(form: Form) -> list[int]:
    """The unknowns that occur in a form."""
    return sorted({term.unknown for term in form.operator} | {jet.unknown for jet in form.jets})


@dataclass(frozen=True, eq=False)
class _Stencils:
    columns: np.ndarray  # (n_rows, width)
    weights: dict[MultiIndex, np.ndarray]  # each (n_rows, width)
    condition: np.ndarray

    @property
    def width(self) -> int:
        return self.columns.shape[1]


def _stencils(cloud: Cloud, blocks: list[_Rows], scheme: Scheme) -> list[_Stencils]:
    """The stencils of every block; equations of a system that hold at the same points share them."""
    shared: dict[bytes, list[_Rows]] = {}
    for block in blocks:
        shared.setdefault(block.centers.tobytes(), []).append(block)
    made = {
        key: _stencils_at(cloud, group[0].centers, sorted(set().union(*[_derivatives(b.form) for b in group])), scheme)
        for key, group in shared.items()
    }
    return [made[block.centers.tobytes()] for block in blocks]


def _derivatives(form: Form) -> set[MultiIndex]:
    return {t.derivative for t in form.operator if t.derivative is not None} | {jet.derivative for jet in form.jets}


def _stencils_at(cloud: Cloud, centers, wanted: list[MultiIndex], scheme: Scheme) -> _Stencils:
    zero = (0,) * cloud.points.shape[1]
    slopes = [index for index in wanted if index != zero]
    if not slopes:
        return _Stencils(centers[:, None], {zero: np.ones((len(centers), 1))}, np.empty(0))
    found = differentiate(cloud, cloud.points[centers], slopes, scheme)
    columns = found[slopes[0]].indices.reshape(len(centers), -1)
    weights = {index: found[index].data.reshape(columns.shape) for index in slopes}
    if zero in wanted:  # the value at a node is exact: no interpolation needed
        weights[zero] = (columns == centers[:, None]).astype(float)
    return _Stencils(columns, weights, found.condition)


def _values(problem: Problem, term: Term, points, block: _Rows) -> np.ndarray:
    return _evaluator(problem, term.coefficient, points, block)(np.empty(0), 0.0)


def _evaluator(problem: Problem, expression: sympy.Expr, points, block: _Rows, extra=()) -> RowFunction:
    """The function (mu, t, *columns) -> expression at the block's rows; `extra` symbols take the columns."""
    variables = problem.coordinates
    scalars = problem.parameter_symbols[0]
    columns = list(points[block.centers].T)
    symbols = list(variables)
    if block.normals is not None:
        symbols += normal(*variables)
        columns += list(block.normals.T)
    times = list(expression.atoms(Time))
    used = [p for p in scalars if p in expression.free_symbols]
    function = as_function(expression, [*symbols, *used, *times, *extra])
    return RowFunction(function, tuple(columns), tuple(scalars.index(p) for p in used), len(times))


def _varying(problem: Problem, term: Term, points, block: _Rows, positions, values) -> Varying:
    evaluate = _evaluator(problem, term.theta * term.coefficient, points, block)
    return Varying(evaluate, term.function, block.centers, positions, values)


def _nonlinear(problem: Problem, points, block: _Rows, stencil: _Stencils, positions, n: int) -> NonlinearRows:
    form = block.form
    symbols = [jet.symbol for jet in form.jets]
    functions = [f for f in problem.parameter_symbols[1] if f in form.nonlinear.free_symbols]
    extra = [*symbols, *functions]
    # a value at a node needs no stencil: its one entry is enough
    own = np.argmax(stencil.columns == block.centers[:, None], axis=1)[:, None]

    def entries(array: np.ndarray, jet: Jet) -> np.ndarray:
        return array if sum(jet.derivative) else np.take_along_axis(array, own, axis=1)

    return NonlinearRows(
        value=_evaluator(problem, form.nonlinear, points, block, extra),
        slopes=tuple(_evaluator(problem, form.slope(jet), points, block, extra) for jet in form.jets),
        functions=tuple(functions),
        nodes=block.centers,
        rows=block.rows,
        columns=tuple(entries(stencil.columns, jet) + jet.unknown * n for jet in form.jets),
        weights=tuple(entries(stencil.weights[jet.derivative], jet) for jet in form.jets),
        positions=tuple(entries(positions[jet.unknown], jet) for jet in form.jets),
    )
