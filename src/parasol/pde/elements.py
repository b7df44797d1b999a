"""From a problem and elements to sparse matrices, one per affine term, of the weak form of its equations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import sympy

from parasol.errors import InputError
from parasol.expressions import as_function
from parasol.pde.equation import Form, Time, normal
from parasol.pde.given_jumps import Offset, offsets
from parasol.pde.inputs import Inputs
from parasol.pde.parameters import Parameter
from parasol.pde.problem import Problem
from parasol.pde.rows import Varying
from parasol.pde.sparse_pattern import Pattern, distinct
from parasol.pde.terms import Terms
from parasol.pde.weak_form import WeakForm, WeakTerm, boundary_terms, weak_forms
from parasol.runtime.rows import RowFunction
from parasol.space.elements import Elements, Samples

_NONE = np.empty(0)  # the parameters of what has none
_STRAIGHT = 1e-9  # by which a normal may differ from that of a side along an axis


@dataclass(frozen=True, eq=False)
class Given:
    """A condition on the value of one unknown, at some nodes of the boundary; of two at one node the sum stands there."""

    form: Form
    unknown: int
    nodes: np.ndarray  # (n,)
    normals: np.ndarray  # (n, dimension)


def assemble(problem: Problem, elements: Elements, given: Sequence[Given]) -> Terms:
    """The terms of the discretised problem; `given` are the conditions on values, which stand in place of the equation.

    Where regions differ each has the weak form of its own equation: that fluxes go on through interfaces comes by itself.
    """
    regions = [None] if not problem.region_names else list(range(len(problem.region_names)))
    weak = {region: weak_forms(problem, region) for region in regions}
    _check_values(problem, given)
    builder = _Builder.of(problem, elements, weak, given)
    for region, forms in weak.items():
        inside, rim = elements.inside, np.ones(len(elements.mesh.edges), dtype=bool)
        if region is not None:
            inside = inside.take(np.flatnonzero(elements.cell_regions == region))
            rim = elements.cell_regions[elements.rim.cells] == region
        for equation, form in enumerate(forms):
            for term in form.terms:
                builder.add(equation, term, inside)
            conditions = {name: all_[equation] for name, all_ in problem.conditions_in(region).items()}
            for samples, terms in _sides(problem, elements, form, equation, conditions, rim):
                for term in terms:
                    builder.add(equation, term, samples)
    for pair, sources in problem.interface_sources.items():
        for equation, source in enumerate(sources):
            for term in source.source:
                builder.add(equation, WeakTerm(term.theta, term.coefficient, term.function), elements.seam(pair))
    for condition in given:
        builder.state(condition)
    return builder.terms()


def _check_values(problem: Problem, given: Sequence[Given]) -> None:
    for condition in given:
        if condition.form.jets or any(term.unknown != condition.unknown for term in condition.form.operator):
            raise InputError(
                f"elements need conditions that give the value of {problem.names[condition.unknown]} itself, linear in it and "
                'without other unknowns. Use method="stencils".'
            )


def _sides(
    problem: Problem,
    elements: Elements,
    weak: WeakForm,
    equation: int,
    conditions: Mapping[str, Form],
    here: np.ndarray,
) -> Iterator[tuple[Samples, tuple[WeakTerm, ...]]]:
    """Points of edges `here` (n_edges,) with the terms of the boundary integral, where conditions on slopes hold.

    Sides along an axis come apart: with the normal known, conditions need no more than its own component of the flux.
    """
    rim = elements.rim
    normals = rim.normals.reshape(len(rim.cells), -1, elements.dimension)  # type: ignore[union-attr]
    mean = normals.mean(axis=1)
    axis = np.argmax(np.abs(mean), axis=1)
    straight = np.abs(np.take_along_axis(normals, axis[:, None, None], axis=2)).min(axis=(1, 2)) > 1 - _STRAIGHT
    sign = np.sign(np.take_along_axis(mean, axis[:, None], axis=1)[:, 0]).astype(int)
    kind = np.where(straight, 2 * axis + (sign > 0), -1)
    for p, name in enumerate(problem.domain.part_names):
        if conditions[name].states_value:
            continue
        own = here & (elements.mesh.part == p)
        for k in np.unique(kind[own]):
            side = None if k < 0 else (int(k) // 2, 2 * (int(k) % 2) - 1)
            terms = boundary_terms(problem, weak, equation, conditions[name], part=name, side=side)
            yield rim.take(np.flatnonzero(own & (kind == k))), terms


@dataclass(eq=False)
class _Builder:
    """Matrices and vectors as they are added up, in one sparsity pattern."""

    problem: Problem
    elements: Elements
    indices: np.ndarray
    indptr: np.ndarray
    positions: dict[tuple[int, int], np.ndarray]  # of equation and unknown: (n_cells, n_local, n_local), −1: no entry
    rows: np.ndarray  # (n_unknowns,) bool: where the equation stands, not a given value
    matrices: dict[tuple[int, sympy.Expr], np.ndarray] = field(default_factory=dict)
    vectors: dict[sympy.Expr, np.ndarray] = field(default_factory=dict)
    varying_operator: list[Varying] = field(default_factory=list)
    varying_load: list[Varying] = field(default_factory=list)
    jumps: tuple[Offset, ...] = ()

    @classmethod
    def of(cls, problem: Problem, elements: Elements, weak: Mapping[int | None, Sequence[WeakForm]], given) -> _Builder:
        """An empty one; rows of given values hold their own unknown alone."""
        n, cells = elements.nodes.n_nodes, elements.cell_nodes
        size = n * len(problem.names)
        rows = np.ones(size, dtype=bool)
        for condition in given:
            rows[condition.unknown * n + condition.nodes] = False
        keys = {}
        for equation in range(len(problem.names)):
            present: set[int | None] = {equation}
            for region, forms in weak.items():
                present |= {t.unknown for t in forms[equation].terms} | {j for _, j, _ in forms[equation].flux}
                for conditions in problem.conditions_in(region).values():
                    present |= {t.unknown for t in conditions[equation].operator}
            for j in [j for j in present if j is not None]:
                row, column = equation * n + cells[:, :, None], j * n + cells[:, None, :]
                keys[equation, j] = np.where(rows[row], row.astype(np.int64) * size + column, -1)
        stated = np.flatnonzero(~rows).astype(np.int64)
        known = distinct(np.concatenate([*[key.ravel() for key in keys.values()], stated * size + stated]))
        known = known[known >= 0]
        indptr = np.concatenate([[0], np.cumsum(np.bincount(known // size, minlength=size))])
        positions = {pair: np.where(key < 0, -1, np.searchsorted(known, key)) for pair, key in keys.items()}
        builder = cls(problem, elements, (known % size).astype(np.int32), indptr.astype(np.int32), positions, rows)
        builder.jumps = offsets(problem, elements.nodes)
        return builder

    def add(self, equation: int, term: WeakTerm, samples: Samples) -> None:
        """One term of the integral over the samples."""
        if term.unknown is not None and not term.separated and (term.time_order or term.coefficient.atoms(Time)):
            raise InputError(  # the matrices are those of all times
                f"the coefficient of a time derivative, {term.coefficient}, is not a function of parameters times one of x."
            )
        n = self.elements.nodes.n_nodes
        test = samples.values if term.test is None else samples.slopes[term.test]
        if term.unknown is None:
            where = equation * n + self.elements.cell_nodes[samples.cells]
            where = np.where(self.rows[where], where, -1)
            products = np.moveaxis(test, 0, 2)  # (n, m, n_local)
        else:
            trial = samples.values if term.trial is None else samples.slopes[term.trial]
            where = self.positions[equation, term.unknown][samples.cells].reshape(len(samples.cells), -1)
            products = np.einsum("anm,bnm->nmab", test, trial).reshape(*samples.weights.shape, -1)
        products = products * samples.weights[:, :, None]
        if term.function is not None:
            self._add_function(term, samples, where, products)
        elif term.separated:
            values = self._function(term.coefficient, samples)(_NONE, 0.0).reshape(samples.weights.shape)
            local = np.einsum("nm,nmk->nk", values, products)
            if term.unknown is None:
                total = self.vectors.setdefault(term.theta, np.zeros(len(self.rows)))
            else:
                total = self.matrices.setdefault((term.time_order, term.theta), np.zeros(len(self.indices)))
                self._move_jumps(equation, term, samples.cells, local)
            total += np.bincount(where[where >= 0], local[where >= 0], minlength=len(total))
        else:
            self._add_varying(term, samples, where, products)

    def _move_jumps(self, equation: int, term: WeakTerm, cells: np.ndarray, local: np.ndarray) -> None:
        """What the elements of one region see of given jumps beside the values of nodes, to the right-hand side."""
        nodes, n = self.elements.cell_nodes[cells], self.elements.nodes.n_nodes
        matrices = local.reshape(len(nodes), nodes.shape[1], -1)
        for jump in self.jumps:
            if jump.unknown != term.unknown:
                continue
            known = np.where(self.elements.cell_regions[cells, None] == jump.region, jump.values[nodes], 0.0)
            rows, moved = equation * n + nodes, np.einsum("nab,nb->na", matrices, known)
            vector = self.vectors.setdefault(jump.theta * term.theta, np.zeros(len(self.rows)))
            vector -= np.bincount(rows[self.rows[rows]], moved[self.rows[rows]], minlength=len(vector))

    def _add_varying(self, term: WeakTerm, samples: Samples, where: np.ndarray, products: np.ndarray) -> None:
        """A coefficient that is evaluated anew for every parameter or time, at every point of the samples."""
        n, m, k = products.shape
        where, products = np.repeat(where, m, axis=0), products.reshape(n * m, k)
        products, where = np.where(where < 0, 0.0, products), np.maximum(where, 0)
        coefficient = self._function(term.theta * term.coefficient, samples)
        nowhere = np.zeros(n * m, dtype=int)
        if term.unknown is not None:
            self.varying_operator.append(Varying(coefficient, None, nowhere, where, products))
            return
        some = np.flatnonzero(products.ravel() != 0)
        row = some // k
        self.varying_load.append(
            Varying(coefficient.take(row), None, nowhere[row], where.ravel()[some], products.ravel()[some])
        )

    def _add_function(self, term: WeakTerm, samples: Samples, where: np.ndarray, products: np.ndarray) -> None:
        """A coefficient that is a function parameter: the function that the elements make of its values at the nodes."""
        if term.coefficient.atoms(Parameter, Time):
            raise InputError(
                f"elements need the factor {term.coefficient} of the function parameter {term.function} as a function of "
                'the parameters times one of the coordinates. Use method="stencils".'
            )
        values = self._function(term.coefficient, samples)(_NONE, 0.0).reshape(samples.weights.shape)
        local = np.einsum("nm,cnm,nmk->nck", values, samples.values, products)
        where = np.broadcast_to(where[:, None], local.shape)
        local, where = np.where(where < 0, 0.0, local), np.maximum(where, 0)
        nodes = np.broadcast_to(self.elements.cell_nodes[samples.cells][:, :, None], local.shape)
        if (
            term.function is not None and term.function.on == "boundary"
        ):  # the shape functions of other nodes vanish there, but for rounding
            local = np.where(nodes < self.elements.nodes.n_interior, 0.0, local)
        if term.unknown is None:
            some = np.flatnonzero(local)
            local, where, nodes = (array.ravel()[some] for array in (local, where, nodes))
        else:
            some = np.flatnonzero(np.any(local != 0, axis=2))
            local, where, nodes = (array.reshape(-1, local.shape[2])[some] for array in (local, where, nodes))
            nodes = nodes[:, 0]
        anywhere = np.zeros((len(some), self.elements.dimension))
        coefficient = _row_function(self.problem, term.theta, anywhere, None)
        target = self.varying_load if term.unknown is None else self.varying_operator
        target.append(Varying(coefficient, term.function, nodes, where, local))

    def state(self, given: Given) -> None:
        """A condition on values in the rows of some nodes of the boundary."""
        nodes = self.elements.nodes
        points, rows = nodes.points[given.nodes], given.unknown * nodes.n_nodes + given.nodes
        places = self.indptr[rows]  # the one entry of each of these rows
        ones = np.ones(len(rows))
        for term in given.form.operator:
            if term.separated and term.function is None:
                data = self.matrices.setdefault((0, term.theta), np.zeros(len(self.indices)))
                data[places] += _row_function(self.problem, term.coefficient, points, given.normals)(_NONE, 0.0)
            else:
                factor = _row_function(self.problem, term.theta * term.coefficient, points, given.normals)
                self.varying_operator.append(
                    Varying(factor, term.function, given.nodes, places[:, None], ones[:, None])
                )
        for term in given.form.source:
            if term.separated and term.function is None:
                vector = self.vectors.setdefault(term.theta, np.zeros(len(self.rows)))
                vector[rows] += _row_function(self.problem, term.coefficient, points, given.normals)(_NONE, 0.0)
            else:
                factor = _row_function(self.problem, term.theta * term.coefficient, points, given.normals)
                self.varying_load.append(Varying(factor, term.function, given.nodes, rows, ones))

    def _function(self, expression: sympy.Expr, samples: Samples) -> RowFunction:
        points = samples.points.reshape(-1, self.elements.dimension)
        normals = None if samples.normals is None else samples.normals.reshape(points.shape)
        return _row_function(self.problem, expression, points, normals)

    def terms(self) -> Terms:
        """What was added up."""
        problem, nodes = self.problem, self.elements.nodes
        steady = {theta: data for (order, theta), data in self.matrices.items() if order == 0}
        return Terms(
            inputs=Inputs(problem.parameters, *problem.parameter_symbols, nodes),
            pattern=Pattern(self.indices, self.indptr, np.tile(nodes.points, (len(problem.names), 1))),
            operator_thetas=tuple(steady),
            operator_data=np.array(list(steady.values())).reshape(len(steady), len(self.indices)),
            load_thetas=tuple(self.vectors),
            loads=np.array(list(self.vectors.values())).reshape(len(self.vectors), len(self.rows)),
            time_data=tuple((order, theta, data) for (order, theta), data in self.matrices.items() if order > 0),
            varying_operator=tuple(self.varying_operator),
            varying_load=tuple(self.varying_load),
            nonlinear=(),
        )


def _row_function(problem: Problem, expression: sympy.Expr, points: np.ndarray, normals) -> RowFunction:
    """The function (mu, t) -> expression at points (n, dimension), with normals there where there are any."""
    scalars, columns = problem.parameter_symbols[0], [*points.T]
    symbols = [*problem.coordinates]
    if normals is not None:
        symbols += normal(*problem.coordinates)
        columns += [*normals.T]
    times = list(expression.atoms(Time))
    used = [p for p in scalars if p in expression.free_symbols]
    function = as_function(expression, [*symbols, *used, *times])
    return RowFunction(function, tuple(columns), tuple(scalars.index(p) for p in used), len(times))
