"""From rows that carry equations to sparse matrices, one per affine term."""

from __future__ import annotations

import numpy as np
import sympy

from parasol.errors import InputError
from parasol.expressions import as_function
from parasol.pde.blocks import Block, Points, Stencils
from parasol.pde.equation import Form, Jet, Term, Time, normal
from parasol.pde.given_jumps import offsets
from parasol.pde.inputs import Inputs
from parasol.pde.problem import Problem
from parasol.pde.rows import NonlinearRows, Varying
from parasol.pde.sparse_pattern import Pattern, distinct
from parasol.pde.terms import Terms
from parasol.runtime.rows import RowFunction
from parasol.space.kernels import MultiIndex
from parasol.space.nodes import Nodes
from parasol.space.operators import StencilReport, differentiate
from parasol.space.stencils import Scheme

_SCALE = sympy.Dummy("scale")  # of a block's rows


def assemble(
    problem: Problem, nodes: Nodes, places: Points, blocks: list[Block], scheme: Scheme
) -> tuple[Terms, StencilReport]:
    """The terms of the system, from the rows that carry the equations and the stencils at their points."""
    points = places.points
    n = len(points)
    size = n * len(problem.names)
    stencils = _stencils(places, blocks, scheme)
    # a row may carry several equations, such as the fluxes of two regions, whose stencils share some points
    entries = distinct(
        np.concatenate(
            [
                _entries(b, s, u, n, size).ravel()
                for b, s in zip(blocks, stencils, strict=True)
                for u in _present(b.form)
            ]
        )
    )
    indices = (entries % size).astype(np.int32)
    indptr = np.searchsorted(entries // size, np.arange(size + 1))
    matrices: dict[tuple[int, sympy.Expr], np.ndarray] = {}
    vectors: dict[sympy.Expr, np.ndarray] = {}
    varying_operator, varying_load, nonlinear = [], [], []
    jumps = offsets(problem, nodes)
    for block, stencil in zip(blocks, stencils, strict=True):
        positions = {u: np.searchsorted(entries, _entries(block, stencil, u, n, size)) for u in _present(block.form)}
        for term in block.form.operator:
            where, weights = positions[term.unknown], stencil.weights[term.derivative or ()]
            if term.separated and term.function is None:
                data = matrices.setdefault((term.time_order, term.theta), np.zeros(indptr[-1]))
                entries_of = _values(problem, term, points, block)[:, None] * weights
                data[where] += entries_of
                for jump in jumps:
                    if (jump.region, jump.unknown) == (block.region, term.unknown):
                        known = np.concatenate([jump.values, np.zeros(n - nodes.n_nodes)])  # ghosts are of one region
                        moved = vectors.setdefault(jump.theta * term.theta, np.zeros(size))
                        moved[block.rows] -= np.sum(entries_of * known[stencil.columns], axis=1)
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


def _entries(block: Block, stencil: Stencils, unknown: int, n: int, size: int) -> np.ndarray:
    """The entries of the matrix that the stencils of one unknown touch, (n_rows, width), numbered row by row."""
    return block.rows[:, None].astype(np.int64) * size + stencil.columns + unknown * n


def _present(form: Form) -> list[int]:
    """The unknowns that occur in a form."""
    return sorted({term.unknown for term in form.operator} | {jet.unknown for jet in form.jets})


def _stencils(places: Points, blocks: list[Block], scheme: Scheme) -> list[Stencils]:
    """The stencils of every block; equations of a system that hold at the same points share them."""
    shared: dict[tuple[int, bytes], list[Block]] = {}
    for block in blocks:
        if block.stencils is None:
            shared.setdefault((block.region, block.centers.tobytes()), []).append(block)
    stencils = {
        key: _stencils_at(places, group[0], sorted(set().union(*[_derivatives(b.form) for b in group])), scheme)
        for key, group in shared.items()
    }
    return [block.stencils or stencils[block.region, block.centers.tobytes()] for block in blocks]


def _derivatives(form: Form) -> set[MultiIndex]:
    return {t.derivative for t in form.operator if t.derivative is not None} | {jet.derivative for jet in form.jets}


def _stencils_at(places: Points, block: Block, wanted: list[MultiIndex], scheme: Scheme) -> Stencils:
    centers, cloud, members = block.centers, places.clouds[block.region], places.members[block.region]
    zero = (0,) * cloud.points.shape[1]
    slopes = [index for index in wanted if index != zero]
    if not slopes:
        return Stencils(centers[:, None], {zero: np.ones((len(centers), 1))}, np.empty(0))
    derivatives = differentiate(cloud, places.points[centers], slopes, scheme)
    columns = members[derivatives[slopes[0]].indices.reshape(len(centers), -1)]
    weights = {index: derivatives[index].data.reshape(columns.shape) for index in slopes}
    if zero in wanted:  # the value at a node is exact: no interpolation needed
        weights[zero] = (columns == centers[:, None]).astype(float)
    return Stencils(columns, weights, derivatives.condition)


def _values(problem: Problem, term: Term, points, block: Block) -> np.ndarray:
    return _evaluator(problem, term.coefficient, points, block)(np.empty(0), 0.0)


def _evaluator(problem: Problem, expression: sympy.Expr, points, block: Block, extra=()) -> RowFunction:
    """The function (mu, t, *columns) -> expression at the block's rows; `extra` symbols take the columns."""
    variables = problem.coordinates
    scalars = problem.parameter_symbols[0]
    columns = list(points[block.centers].T)
    symbols = list(variables)
    if block.normals is not None:
        symbols += normal(*variables)
        columns += list(block.normals.T)
    if block.scale is not None:
        expression, symbols, columns = expression * _SCALE, [*symbols, _SCALE], [*columns, block.scale]
    times = list(expression.atoms(Time))
    used = [p for p in scalars if p in expression.free_symbols]
    function = as_function(expression, [*symbols, *used, *times, *extra])
    return RowFunction(function, tuple(columns), tuple(scalars.index(p) for p in used), len(times))


def _varying(problem: Problem, term: Term, points, block: Block, positions, values) -> Varying:
    evaluate = _evaluator(problem, term.theta * term.coefficient, points, block)
    return Varying(evaluate, term.function, block.centers, positions, values)


def _nonlinear(problem: Problem, points, block: Block, stencil: Stencils, positions, n: int) -> NonlinearRows:
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
