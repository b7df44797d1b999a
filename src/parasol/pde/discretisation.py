"""How far one solve is from the solution of its equation, estimated from what it leaves of the equation between the nodes."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy
from scipy import sparse
from scipy.spatial import KDTree

from parasol.errors import ParasolWarning, SolveFailed, UnsuitableNodes
from parasol.expressions import Function, as_function
from parasol.pde.discretize import discretize
from parasol.pde.equation import Form
from parasol.pde.evolution import Evolution
from parasol.pde.given_jumps import offset_values
from parasol.pde.placing import nodes_for
from parasol.pde.problem import Problem, Settings
from parasol.pde.row_blocks import row_blocks
from parasol.pde.sparse_direct import Factors, random_signs
from parasol.pde.steady import Solution, field_norms, relative_error
from parasol.space.kernels import PHS, MultiIndex, n_monomials
from parasol.space.neighbours import Cloud
from parasol.space.nodes import Nodes, scatter
from parasol.space.operators import differentiate
from parasol.space.stencils import Scheme

if TYPE_CHECKING:
    from parasol.pde.model import Model

_PER_NODE = 3  # points in the cell of each inner node, beside the node itself
_RADIUS = 0.5  # of a node's cell, in distances to its neighbours
_PER_MONOMIAL = 1.5  # nodes of a stencil at least
_SIGNS = 2  # random signs that are tried
_FAST, _SINGULAR = 0.25, 1.3  # how changes from degree to degree go on: below this ratio geometrically, else by so much
_COARSE = 1.5  # as in `learning.nodes`: right for errors that fall by a third where nodes are doubled
_TOLERANCE = 1e-5  # of steps that adapt, where none was given


@dataclass(frozen=True, eq=False)
class _Sampled:
    """One equation at points between the nodes, each in the cell of the node whose row it belongs to."""

    region: int
    rows: np.ndarray  # (n_points,) row of the system
    points: np.ndarray  # (n_points, dimension)
    weights: dict[MultiIndex, sparse.csr_array]  # (n_points, n_nodes + n_ghosts)
    source: Function  # of coordinates and scalar parameters
    operator: tuple[tuple[int, MultiIndex, Function], ...]  # unknown, derivative, coefficient
    jets: tuple[tuple[int, MultiIndex], ...]
    nonlinear: Function  # of coordinates, scalar parameters and jets

    def residual(self, fields: np.ndarray, scalars: np.ndarray) -> np.ndarray:
        """Right-hand side less left-hand side at the points, of fields (n_fields, n_nodes + n_ghosts)."""
        known = [*self.points.T, *scalars]
        out = np.zeros(len(self.points)) + self.source(*known)
        for unknown, derivative, coefficient in self.operator:
            out -= coefficient(*known) * (self.weights[derivative] @ fields[unknown])
        if self.jets:
            out -= self.nonlinear(
                *known, *[self.weights[derivative] @ fields[unknown] for unknown, derivative in self.jets]
            )
        return out


@dataclass(frozen=True, eq=False)
class Probe:
    """The equation of a model once more, with polynomials of one degree more: at its nodes, and at points between them."""

    model: Model
    other: Model  # on the same nodes, with the same ghosts
    between: tuple[_Sampled, ...]

    def residuals(self, unknowns: np.ndarray, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What a solution (n_unknowns,) leaves of the equations: mean and standard deviation in the cell of each row."""
        at_nodes = -self.other.system(mu).residual(unknowns)
        count, total, square = np.ones_like(at_nodes), at_nodes.copy(), at_nodes**2
        fields, jumps = unknowns.reshape(self.model.layout.n_fields, -1), self.model.jumps
        seen = offset_values(self.model.problem, jumps, mu) if jumps else None
        for sampled in self.between:
            own = fields
            if seen is not None:
                own = fields + np.pad(seen[sampled.region], ((0, 0), (0, fields.shape[1] - self.model.n_nodes)))
            with np.errstate(all="ignore"):  # a formula may have no value at a point that is no node
                residual = sampled.residual(own, mu[: self.model.inputs.n_scalars])
            known = np.isfinite(residual)
            rows, residual = sampled.rows[known], residual[known]
            for sums, values in ((count, 1.0), (total, residual), (square, residual**2)):
                np.add.at(sums, rows, values)
        mean = total / count
        variance = np.maximum(square / count - mean**2, 0.0) * count / np.maximum(count - 1, 1)
        return mean, np.sqrt(variance)


def probe(model: Model) -> Probe | None:
    """The equation of a steady model between its nodes, None where its nodes are too few for it, or stand in elements."""
    other = richer_model(model) if model.problem.time is None else None
    if other is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParasolWarning)  # what is to be said of these nodes was said of the model
        try:
            return Probe(model, other, tuple(_sampled(model, other.scheme)))
        except UnsuitableNodes:
            return None


def richer_model(model: Model) -> Model | None:
    """The same problem on the same nodes with polynomials of one degree more; None where there is no such model."""
    if model.elements is not None:
        return None
    scheme, ghosts = richer(model), "ghosts" if model.layout.n_ghosts else "one-sided"
    chosen = {"kernel": scheme.kernel, "degree": scheme.degree, "stencil_size": scheme.stencil_size}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParasolWarning)
        try:
            return discretize(model.problem, model.nodes, neumann=ghosts, solver=model.solver, **chosen)
        except UnsuitableNodes:
            return None


def richer(model: Model) -> Scheme:
    """The model's scheme with polynomials of one degree more, on stencils as large if they suffice."""
    scheme, dimension = model.scheme, model.nodes.dimension
    degree, kernel = scheme.degree + 1, scheme.kernel
    if not isinstance(kernel, PHS):  # what a kernel without polynomials leaves is judged by splines with them
        order = max(form.order for form in model.problem.forms)
        degree = max(
            d for d in range(order + 1, 9) if d == order + 1 or 2 * n_monomials(dimension, d) <= scheme.stencil_size
        )
        kernel = PHS(min(2 * degree + 1, 9))
    return Scheme(
        kernel, degree, max(scheme.stencil_size, int(np.ceil(_PER_MONOMIAL * n_monomials(dimension, degree))))
    )


def discretisation(solution: Solution) -> float | None:
    """Estimate of the relative error of a steady solve against the equation's own solution; None where there is none.

    With u the solve and ρ(x) = f − L u what it leaves of the equation at points x between the nodes, derivatives there
    taken with one degree more, the errors d and e of

        A d = mean of ρ over the cell of each node,    A e = ± its standard deviation, signs at random

    are those of what the scheme misses evenly, and of what no scheme on these nodes could see: jumps, corners, layers.
    The estimate is (‖d‖² + ‖e‖²)^½ / ‖u‖ at the nodes, the largest over the unknown functions.
    """
    model, unknowns = solution.model, solution.unknowns
    return None if unknowns is None else error_of(model, unknowns, solution.mu)


def error_of(model: Model, unknowns: np.ndarray, mu: np.ndarray) -> float | None:
    """The same of a solution by its values at nodes and ghosts, (n_unknowns,)."""
    if model.elements is not None:
        return _by_degree(model, unknowns, mu)
    parts = _error_parts(model, unknowns, mu)
    return None if parts is None else _size(model, unknowns, parts[1])


@dataclass(frozen=True, eq=False)
class LocatedError:
    """The estimate of one solve's relative error, and where it comes from: the shares of its square, (n_nodes,)."""

    error: float
    shares: np.ndarray


def located_error(model: Model, unknowns: np.ndarray, mu: np.ndarray) -> LocatedError | None:
    """`error_of` with what the equation at each node adds to it; None where there is no estimate.

    An error is not where it comes from: a corner spoils the solution far away. With A d = r and Aᵀ z = d

        ‖d‖² = Σ_i r_i z_i,

    so |r_i z_i| is the share of row i (Becker and Rannacher 2001). It costs one triangular solve more. Rows of ghosts
    count for the nearest node.
    """
    if model.elements is not None:
        return _located_by_degree(model, unknowns, mu)
    parts = _error_parts(model, unknowns, mu)
    if parts is None:
        return None
    right, errors, factors = parts
    layout = model.layout
    weights = np.zeros((layout.n_fields, layout.n_nodes + layout.n_ghosts))
    weights[:, : layout.n_nodes] = _per_size(model, layout.at_nodes(unknowns))[:, None]
    products = np.abs(right * factors.solve_transposed((weights.ravel() * errors).T).T)
    shares = (products[0] + np.mean(products[1:], axis=0)).reshape(weights.shape).sum(axis=0)
    places = model.terms.pattern.points[: len(shares)]
    return LocatedError(_size(model, unknowns, errors), gathered(places, shares, model.nodes.points))


def gathered(places: np.ndarray, amounts: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Amounts (n,) at places (n, dimension), each counted for the nearest of the points (m, dimension): (m,)."""
    return np.bincount(KDTree(points).query(places)[1], amounts, minlength=len(points))


def _error_parts(model: Model, unknowns: np.ndarray, mu: np.ndarray) -> tuple[np.ndarray, np.ndarray, Factors] | None:
    """What is left of the equations, (1 + n_signs, n_unknowns): mean and deviations; the errors these make; the factors."""
    prepared = model.between
    if prepared is None:
        return None
    mean, deviation = prepared.residuals(unknowns, mu)
    signs = random_signs(_SIGNS * len(mean)).reshape(_SIGNS, -1)
    right, factors = np.vstack([mean, signs * deviation]), _linearised(model, unknowns, mu)
    return right, factors.solve(right.T).T, factors


def _size(model: Model, unknowns: np.ndarray, errors: np.ndarray) -> float:
    """The relative size of the errors (1 + n_signs, n_unknowns)."""
    values = model.layout.at_nodes(unknowns)
    even, *random = [relative_error(model, values + model.layout.at_nodes(d), values) for d in errors]
    return float(np.hypot(even, np.sqrt(np.mean(np.square(random)))))


def _per_size(model: Model, values: np.ndarray) -> np.ndarray:
    """1 / ‖u‖² of each unknown function, (n_fields,), as in `relative_error`."""
    sizes = field_norms(model, values)
    return np.where(sizes > 0, sizes, np.max(sizes) or 1.0) ** -2.0


def evolution_error(evolution: Evolution) -> float | None:
    """Estimate of the relative error of a solve in time, over all stored times; None where there is none.

    The problem is integrated once more on twice as many nodes of the program's choice, in steps half as long or to a
    tenth of the tolerance; 1.5 times the difference at the nodes holds the errors in space and in time. (One degree more
    on the same nodes would do for what they resolve, and misses the most of what they do not.)
    """
    model, options = evolution.model, evolution.options
    fine = None if options is None else model.finer
    if fine is None or options is None:
        return None
    steps: dict[str, Any] = dict(options)
    if steps["step"] is not None:
        steps["step"] /= 2
    else:
        steps["tolerance"] = (steps["tolerance"] or _TOLERANCE) / 10
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParasolWarning)
        try:
            better = fine.solve(evolution.mu, extrapolate=True, times=evolution.times, **steps).values
        except SolveFailed:
            return None
    truth = (fine.weights_at(model.nodes.points) @ better.reshape(-1, fine.n_nodes).T).T.reshape(evolution.values.shape)
    return _COARSE * relative_error(model, evolution.values, truth)


def finer_model(model: Model) -> Model | None:
    """The same problem and scheme on twice as many nodes; None for functions known at the nodes, and for elements."""
    problem, scheme = model.problem, model.scheme
    if problem.parameters.functions or model.elements is not None:
        return None
    settings = replace(problem.settings.get("default", Settings()), n_nodes=2 * model.n_nodes, n_boundary=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParasolWarning)
        # waves have no friction: nodes that are finer at the walls give modes that grow
        even = problem.time_order == 2 and settings.method == "fill"
        nodes = (
            scatter(problem.domain, n_nodes=settings.n_nodes, rng=1) if even else nodes_for(problem, settings, rng=1)
        )
        chosen = {"kernel": scheme.kernel, "degree": scheme.degree, "stencil_size": scheme.stencil_size}
        ghosts = "ghosts" if model.layout.n_ghosts else "one-sided"
        return discretize(problem, nodes, neumann=ghosts, solver=model.solver, **chosen)


def _by_degree(model: Model, values: np.ndarray, mu: np.ndarray) -> float | None:
    """The estimate for elements: what one degree more on the same triangles changes.

    Where there is no degree more, the changes u₃ − u₂ and u₄ − u₃ are continued: as a geometric series where they fall
    fast, and else by the share of the last change that singular points leave (1.3, measured on the thermal block).
    """
    solved = {model.elements.degree: values}  # type: ignore[union-attr]
    solved |= {degree: _of_degree(model, degree, mu) for degree in model.other_degrees}
    degrees = sorted(solved)
    changes = [relative_error(model, solved[low], solved[high]) for low, high in itertools.pairwise(degrees)]
    if not changes:
        return None
    if degrees[-1] > model.elements.degree:  # type: ignore[union-attr]
        return changes[-1]
    ratio = changes[-1] / max(changes[0], 1e-300) if len(changes) > 1 else 1.0
    return changes[-1] * (ratio / (1 - ratio) if ratio < _FAST else _SINGULAR)


def _of_degree(model: Model, degree: int, mu: np.ndarray) -> np.ndarray:
    """The solution by elements of another degree on the same triangles, at the nodes of the model, (n_values,)."""
    other, weights = model.other_degrees[degree]
    values = other.solve(mu, extrapolate=True).values
    return other.interpolated(values, model.nodes.points, weights, mu, model.first_regions).ravel()


def changed_by_degree(model: Model, values: np.ndarray, mu: np.ndarray) -> np.ndarray | None:
    """What one degree more on the same triangles changes in a solution at the nodes, (n_values,); None without such elements."""
    degree = 0 if model.elements is None else model.elements.degree + 1
    known = degree > 1 and degree in model.other_degrees
    return _of_degree(model, degree, mu) - values if known else None


def _located_by_degree(model: Model, values: np.ndarray, mu: np.ndarray) -> LocatedError | None:
    """What the equation tested with each function of one degree more adds to the estimate for elements.

    r is what the solution leaves of those equations. It vanishes for test functions of the model's own degree, so that of
    the weights z only what these do not represent counts.
    """
    error = _by_degree(model, values, mu)
    degree = model.elements.degree + 1  # type: ignore[union-attr]
    if error is None or degree not in model.other_degrees:
        return None if error is None else LocatedError(error, np.full(model.n_nodes, error**2 / model.n_nodes))
    other, down = model.other_degrees[degree]
    n_fields, up = model.layout.n_fields, model.weights_at(other.nodes.points)
    start = model.interpolated(values, other.nodes.points, up, mu, other.first_regions).ravel()
    factors, right = _linearised(other, start, mu), -other.system(mu).residual(start)
    weights = other.product * np.repeat(_per_size(other, start), other.n_nodes)
    dual = factors.solve_transposed(weights * factors.solve(right)).reshape(n_fields, -1)
    inside = np.where(other.terms.pattern.stated.reshape(n_fields, -1), 0.0, dual)
    products = np.abs(right.reshape(n_fields, -1) * (dual - (up @ (down @ inside.T)).T)).sum(axis=0)
    return LocatedError(error, gathered(other.nodes.points, products, model.nodes.points))


def _linearised(model: Model, unknowns: np.ndarray, mu: np.ndarray) -> Factors:
    """Factors of the equations' derivative by the unknowns at a solution: the last ones, where those are of this matrix."""
    system = model.system(mu)
    if system.jacobian is None and model.terms.constant_operator:
        return model.factors(mu)
    return system.factorize(system.stiffness + (0.0 if system.jacobian is None else system.jacobian(unknowns, 0.0)))


def _sampled(model: Model, scheme: Scheme) -> Iterator[_Sampled]:
    """The equations at points between the nodes, but for those with functions known at the nodes alone.

    At interfaces between regions the equation stands in the rows of ghosts, and nothing is sampled.
    """
    nodes, problem = model.nodes, model.problem
    forms = [problem.forms_in(region) for region in range(len(problem.region_names)) or [None]]
    places, _ = row_blocks(problem, forms, nodes, use_ghosts=model.layout.n_ghosts > 0)
    n, (points, owner) = len(places.points), _points_between(nodes)
    own = np.zeros(len(points), dtype=int)
    if nodes.touches is not None:
        own = nodes.domain.region_of(points)
        own[~nodes.touches[owner, own] | (np.count_nonzero(nodes.touches[owner], axis=1) > 1)] = -1
    for region, (of_region, cloud, members) in enumerate(zip(forms, places.clouds, places.members, strict=True)):
        here = np.flatnonzero(own == region)
        known = [(j, f) for j, f in enumerate(of_region) if not f.symbols & set(problem.parameter_symbols[1])]
        wanted = sorted({index for _, form in known for _, index in _derivatives(form)})
        if not len(here) or not wanted:
            continue
        matrices = differentiate(cloud, points[here], wanted, scheme).matrices
        weights = {
            index: sparse.csr_array((m.data, members[m.indices], m.indptr), shape=(len(here), n))
            for index, m in matrices.items()
        }
        for j, form in known:
            yield _equation(problem, form, region, j * n + owner[here], points[here], weights)


def _equation(
    problem: Problem, form: Form, region: int, rows: np.ndarray, points: np.ndarray, weights: dict
) -> _Sampled:
    symbols = [*problem.coordinates, *problem.parameter_symbols[0]]

    def function(expression: sympy.Expr, extra: Sequence[sympy.Symbol] = ()) -> Function:
        return as_function(expression, [*symbols, *extra])

    jets = [jet.symbol for jet in form.jets]
    return _Sampled(
        region,
        rows,
        points,
        weights,
        function(sympy.Add(*[term.theta * term.coefficient for term in form.source])),
        tuple((term.unknown, term.derivative or (), function(term.theta * term.coefficient)) for term in form.operator),
        tuple((jet.unknown, jet.derivative) for jet in form.jets),
        function(form.nonlinear, jets),
    )


def _derivatives(form: Form) -> set[tuple[int, MultiIndex]]:
    return {(term.unknown, term.derivative or ()) for term in form.operator} | {
        (jet.unknown, jet.derivative) for jet in form.jets
    }


def _points_between(nodes: Nodes) -> tuple[np.ndarray, np.ndarray]:
    """Points spread over the cells of the inner nodes, always the same, and the node of each; those outside are left out."""
    rng, dimension, n = np.random.default_rng(0), nodes.dimension, nodes.n_interior
    share = (np.arange(_PER_NODE) + rng.random((n, _PER_NODE))) / _PER_NODE
    if dimension == 1:
        steps = 2 * share[..., None] - 1
    else:
        directions = np.zeros((_PER_NODE, dimension))  # evenly around a circle, which is turned at random
        angle = 2 * np.pi * np.arange(_PER_NODE) / _PER_NODE
        directions[:, 0], directions[:, 1] = np.cos(angle), np.sin(angle)
        turned = directions @ np.linalg.qr(rng.standard_normal((n, dimension, dimension)))[0]
        inner = 1 / (_PER_NODE + 1)  # of the cell, which the node itself speaks for
        steps = (inner + (1 - inner) * share[..., None]) ** (1 / dimension) * turned
    near = Cloud(nodes.points, nodes.domain).nearest(nodes.interior, min(2 * dimension + 1, nodes.n_nodes))[1][:, 1:]
    known = np.isfinite(near)  # but for those behind a wall
    spacing = np.sum(near, axis=1, where=known) / np.maximum(np.sum(known, axis=1), 1)
    points = nodes.interior[:, None] + _RADIUS * spacing[:, None, None] * steps
    points = nodes.domain.wrap(points.reshape(-1, dimension))
    inside = nodes.domain.contains(points)
    return points[inside], np.repeat(np.arange(n), _PER_NODE)[inside]
