"""Somebody's matrices as a model: A(mu) = sum_q theta_q(mu) A_q and f(mu) = sum_q theta_q(mu) f_q."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import sympy
from numpy.typing import ArrayLike
from scipy import sparse

from parasol.checks import check_choice, check_finite, check_positive, check_shape
from parasol.errors import InputError
from parasol.expressions import Function, as_function, to_expression
from parasol.pde.equation import Time
from parasol.pde.inputs import Inputs
from parasol.pde.layout import FieldLayout
from parasol.pde.model import Model
from parasol.pde.moments import Moments
from parasol.pde.parameters import FunctionParameter, Parameter, ParameterSpace
from parasol.pde.quantities import QuantityRows
from parasol.pde.rows import Varying
from parasol.pde.sparse_direct import BACKENDS, Pattern, distances
from parasol.pde.terms import Terms
from parasol.runtime.layout import AXES
from parasol.runtime.products import MatrixProduct, Weights, check_weights
from parasol.runtime.rows import RowFunction
from parasol.space.interpolation import weights_in_cells
from parasol.space.mesh import MeshDomain
from parasol.space.nodes import Nodes

_MOST_TERMS = 10_000  # a mapping with more is a vector by mistake


@dataclass(frozen=True, eq=False)
class MatrixProblem:
    """What is known of a problem of which only the matrices are given."""

    parameters: ParameterSpace
    symbols: tuple[Parameter, ...]
    names: tuple[str, ...]
    name: str = ""
    equation: str = ""
    quantities: tuple[str, ...] = ()
    dimension: int = 0
    time: Time | None = None
    times: np.ndarray | None = None
    time_order: int = 0
    # what the statement of a problem has, and matrices have not
    linear: ClassVar[bool] = True
    affine: ClassVar[bool] = True
    exact: ClassVar[None] = None
    forms: ClassVar[tuple] = ()
    all_forms: ClassVar[tuple] = ()
    settings: ClassVar[Mapping] = {}
    exact_solutions: ClassVar[Mapping] = {}

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Their names."""
        return AXES[: self.dimension]

    @property
    def words(self) -> dict[str, str]:
        """What people should still know of it when only a surrogate is left."""
        words = {"problem": self.name, "equation": self.equation}
        return {key: text for key, text in words.items() if text}

    @property
    def parameter_symbols(self) -> tuple[tuple[Parameter, ...], tuple[FunctionParameter, ...]]:
        """The numbers, and no functions."""
        return self.symbols, ()


@dataclass(frozen=True, eq=False)
class AffineState:
    """A state at the start, Σ θ_q(μ) u_q, or its coefficients Σ θ_q(μ) Pᵀ u_q."""

    thetas: tuple[Function, ...]  # of the scalars
    vectors: np.ndarray  # (Q, n_unknowns)
    n_fields: int
    few: np.ndarray | None = None  # (Q, d)

    def projected(self, projection: np.ndarray) -> AffineState:
        """The same with a projection (n_unknowns, d) to coefficients."""
        return replace(self, few=self.vectors @ projection)

    def _factors(self, scalars: np.ndarray) -> np.ndarray:
        columns = [np.broadcast_to(theta(*scalars.T), len(scalars)) for theta in self.thetas]
        return np.array(columns).reshape(len(self.thetas), len(scalars)).T

    def __call__(self, scalars: np.ndarray) -> np.ndarray:
        """Coefficients (n_samples, d) for scalars (n_samples, n_scalars)."""
        assert self.few is not None
        return self._factors(scalars) @ self.few

    def values(self, scalars: np.ndarray) -> np.ndarray:
        """The states, (n_samples, n_unknowns)."""
        return self._factors(scalars) @ self.vectors


@dataclass(frozen=True)
class PlacedLayout(FieldLayout):
    """Functions whose values stand at given places of a vector; −1 is a value that is zero."""

    places: Mapping[str, np.ndarray] = field(default_factory=dict)

    def fields(self, values: np.ndarray) -> dict[str, np.ndarray]:
        """The functions by name, each (..., n_points)."""
        values = np.asarray(values)
        return {name: np.where(at >= 0, values[..., at], 0.0) for name, at in self.places.items()}


@dataclass(frozen=True, eq=False, init=False, repr=False)
class AffineModel(Model):
    """A linear model from matrices and vectors of one's own: A(μ) u = f(μ), A = Σ θ_q(μ) A_q, f = Σ θ_q(μ) f_q.

    `operators` and `loads` map each θ_q, a number or an expression in parameters (`ps.parameters`), to a sparse or dense
    matrix (n, n), symmetric or not, or to a vector (n,). Where two terms have the same θ, give pairs [(θ, A), ...].
    Constraints may be eliminated or not. `product` is the inner product that errors are measured in, a symmetric
    positive definite matrix or weights (n,); Euclidean if left out. `quantities` names linear quantities of the
    solution by their weights (n,).

    For pictures and values between points: `points` (n_points, dimension) and `cells` (n_cells, n_nodes), simplices or
    quadrilaterals, corners first. The vector u holds the values at the points, function after function where `fields`
    names several. Where constrained values were eliminated, `free` numbers those that are left; the others are zero.
    For other orders, and unknowns that belong to no point, `fields` maps each name to the places (n_points,) of its values
    in u, −1 for a value that is zero.

    In time, M u' + A u = f with `mass`, or M u'' + C u' + A u = f with `damping` (or `order=2`): matrices, or mappings from
    θ to matrices. `times` are those to store, the first is that of the `initial` state: a vector, a mapping from θ to
    vectors, zero if left out; for u'' a pair of state and velocity. A θ of `loads` may then depend on `ps.time()`.
    `step` and `integrator` are those of `solve`; steps are adapted if left out.

    >>> (a,) = (Parameter("a", 1.0, 3.0),)
    >>> model = AffineModel({1: np.eye(2), a: np.diag([1.0, 0.0])}, {1: np.array([2.0, 3.0])})
    >>> model.solve([1.0]).values, model.solve([3.0]).values
    (array([1., 3.]), array([0.5, 3. ]))
    """

    points: np.ndarray | None
    cells: np.ndarray | None
    places: Mapping[str, np.ndarray] | None
    weights: Weights | None
    rows: QuantityRows
    start: tuple[AffineState, ...]  # of u, and of u' where there is u''

    def __init__(
        self,
        operators: Mapping[Any, Any] | Iterable[tuple[Any, Any]],
        loads: Mapping[Any, Any] | Iterable[tuple[Any, Any]],
        *,
        points: ArrayLike | None = None,
        cells: ArrayLike | None = None,
        free: ArrayLike | None = None,
        fields: str | Sequence[str] | Mapping[str, ArrayLike] = "u",
        product: Any = None,
        quantities: Mapping[str, ArrayLike] | None = None,
        mass: Any = None,
        damping: Any = None,
        order: int | None = None,
        initial: Any = None,
        times: ArrayLike | None = None,
        step: float | None = None,
        integrator: str | None = None,
        name: str = "",
        solver: str = "superlu",
    ):
        matrices = _square(operators, "operators")
        n = matrices[0][1].shape[0]
        in_time = _in_time(mass, damping, order, n)
        vectors = [
            (theta, _vector(f, n, f"the vector of {theta}")) for theta, f in _terms(loads, "loads", bool(in_time))
        ]
        start = _start(initial, n, max((k for k, _, _ in in_time), default=0))
        some = [*matrices, *vectors, *[pair for part in start for pair in part]]
        thetas = [theta for theta, _ in some] + [theta for _, theta, _ in in_time]
        symbols, equation = _parameters(thetas), _words(matrices, vectors, in_time)
        weights, rows = None if product is None else _product(product, n), _rows(quantities or {}, n)
        where, found = _mesh(points, cells)
        names = (fields,) if isinstance(fields, str) else tuple(fields)
        if not names or not all(isinstance(one, str) and one for one in names):
            raise InputError(f"fields must name functions, got {fields!r}.")
        places = None
        if isinstance(fields, Mapping):
            places = {one: _places(at, n, where, one) for one, at in fields.items()}
        elif free is not None:
            put = _put(free, n, where, len(names))
            matrices = _with_constraints(matrices, put, own_term=bool(in_time))
            vectors = [(theta, put @ f) for theta, f in vectors]
            in_time = [(k, theta, (put @ a @ put.T).tocsr()) for k, theta, a in in_time]
            start = [[(theta, put @ u) for theta, u in some] for some in start]
            weights, rows = _product_on(weights, put), QuantityRows(rows.names, rows.rows @ put.T)
            n = put.shape[0]
        elif where is not None and n != len(names) * len(where):
            raise InputError(
                f"{n} unknowns are not {len(names)} value{'s' * (len(names) > 1)} at each of {len(where)} points. Say with "
                "free= which are left, or with fields={name: places} where they stand."
            )
        space, when = ParameterSpace(symbols), _times(times, bool(in_time))
        own = (names[0],) if places is not None else names
        problem = MatrixProblem(
            space,
            symbols,
            own,
            name,
            equation,
            tuple(rows.names),
            0 if where is None else where.shape[1],
            None if when is None else _time_of(vectors),
            when,
            len(start),
        )
        positions = None if where is None or places is not None else np.tile(where, (len(names), 1))
        inputs = Inputs(space, symbols, (), None)  # type: ignore[arg-type]
        made = {
            "problem": problem,
            "nodes": None if where is None or found is None else _nodes(where, found),
            "scheme": None,
            "report": None,
            "terms": _assembled(matrices, vectors, in_time, positions, inputs, problem.time),
            "solver": check_choice(solver, BACKENDS, "solver"),
            "step": None if step is None else check_positive(step, "step"),
            "integrator": integrator,
            "elements": None,
            "points": where,
            "cells": found,
            "places": places,
            "weights": weights,
            "rows": rows,
            "start": tuple(_state(some, n, symbols, len(own)) for some in start),
        }
        for key, value in made.items():
            object.__setattr__(self, key, value)

    def __repr__(self) -> str:
        terms = f"{len(self.terms.operator_thetas)} + {len(self.terms.load_thetas)} terms"
        called = f" {self.problem.name}" if self.problem.name else ""
        return f"<AffineModel{called}: {self.n_unknowns} unknowns, {terms} in {self.parameters}>"

    @property
    def product(self) -> Weights | None:
        """The inner product that errors are measured in; None is Euclidean."""
        return self.weights

    @property
    def n_nodes(self) -> int:
        """Values of each function in the vector of unknowns."""
        return self.n_unknowns // len(self.problem.names)

    @cached_property
    def layout(self) -> FieldLayout:
        """How the values of the functions stand in one vector."""
        if self.places is not None:
            return PlacedLayout(self.problem.names, self.n_unknowns, 0, self.places)
        return FieldLayout(self.problem.names, self.n_nodes, 0)

    @cached_property
    def quantities(self) -> QuantityRows:
        """The quantities of interest, as weights of the unknowns."""
        return self.rows

    def initial(self, mu: np.ndarray) -> list[np.ndarray]:
        """The state at the start, (n_unknowns,), and the velocity where there is u''."""
        return [state.values(mu[None, : self.inputs.n_scalars])[0] for state in self.start]

    @cached_property
    def _moments(self) -> Moments | None:
        """When something happens in the loads, None where they do not depend on time."""
        moving = [part.coefficient.function.expression for part in self.terms.varying_load]
        nowhere = [sympy.Dummy() for _ in range(self.terms.pattern.points.shape[1])]  # loads do not know the points
        return Moments.of(moving, self.problem.time, self.inputs.scalars, nowhere) if moving else None  # type: ignore[arg-type]

    @cached_property
    def finer(self) -> None:
        """There are no finer matrices."""
        return

    @cached_property
    def between(self) -> None:
        """Matrices say nothing of the equation between their points."""
        return

    def weights_at(self, points: np.ndarray) -> sparse.csr_array:
        """Weights (n_points, n_nodes) that turn values at the model's points into values at others, in its cells."""
        if self.points is None or self.cells is None:
            raise InputError("values between points need points= and cells=. Give them to ps.AffineModel.")
        return weights_in_cells(self.points, self.cells, points)


def _words(matrices, vectors, in_time) -> str:
    """The equation in letters: (A1 + a A2) u = f1."""

    def summed(letter: str, thetas: list[sympy.Expr]) -> str:
        factors = [("" if theta == 1 else f"{theta} " if theta.is_Atom else f"({theta}) ") for theta in thetas]
        return " + ".join(f"{factor}{letter}{i + 1}" for i, factor in enumerate(factors))

    rates = [(k, [theta for own, theta, _ in in_time if own == k]) for k in (2, 1)]
    moving = [
        f"({summed('MC'[2 - k] if len(in_time) > 1 else 'M', some)}) u{chr(39) * k} + " for k, some in rates if some
    ]
    steady = f"({summed('A', [theta for theta, _ in matrices])}) u = {summed('f', [theta for theta, _ in vectors])}"
    return "".join([*moving, steady]).replace("**", "^")


def _terms(given: Any, name: str, moves: bool = False) -> list[tuple[sympy.Expr, Any]]:
    """Pairs of a θ, as an expression, and what it multiplies; where it `moves` the time may be in it."""
    if not isinstance(given, Mapping | Iterable) or isinstance(given, np.ndarray | sparse.sparray | sparse.spmatrix):
        raise InputError(f"{name} must map each theta to its array, like {{1: A0, a: A1}}, got {type(given).__name__}.")
    pairs = list(given.items() if isinstance(given, Mapping) else given)
    if not pairs or len(pairs) > _MOST_TERMS or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise InputError(f"{name} must map each theta to its array, like {{1: A0, a: A1}}; there are {len(pairs)}.")
    return [(_theta(theta, name, moves), array) for theta, array in pairs]


def _square(given: Any, name: str) -> list[tuple[sympy.Expr, sparse.csr_array]]:
    """Pairs of a θ and a matrix, all of one size."""
    found = [(theta, _matrix(a, f"the matrix of {theta} in {name}")) for theta, a in _terms(given, name)]
    for theta, a in found:
        if a.shape != found[0][1].shape:
            raise InputError(
                f"the matrix of {theta} in {name} is {a.shape}, that of {found[0][0]} is {found[0][1].shape}."
            )
    return found


def _in_time(mass: Any, damping: Any, order: int | None, n: int) -> list[tuple[int, sympy.Expr, sparse.csr_array]]:
    """The matrices of derivatives in time: their order, θ and entries."""
    if mass is None:
        if damping is not None or order is not None:
            raise InputError("damping= and order= are for problems in time. Give mass=, the matrix of the derivative.")
        return []
    order = (1 if damping is None else 2) if order is None else order
    if order not in (1, 2) or (damping is not None and order == 1):
        raise InputError(f"order={order!r}: mass multiplies u' (1) or u'' (2), and with damping it is u''.")
    parts = [(order, mass, "mass")] + ([] if damping is None else [(1, damping, "damping")])
    out = []
    for k, given, name in parts:
        terms = _square(given if isinstance(given, Mapping) else {1: given}, name)
        if terms[0][1].shape != (n, n):
            raise InputError(f"the matrix in {name} is {terms[0][1].shape} for {n} unknowns.")
        out += [(k, theta, a) for theta, a in terms]
    return out


def _start(initial: Any, n: int, order: int) -> list[list[tuple[sympy.Expr, np.ndarray]]]:
    """For u, and for u' where there is u'', pairs of a θ and a vector."""
    if order == 0:
        if initial is not None:
            raise InputError("initial= is for problems in time. Give mass= too, or leave it out.")
        return []
    pair = isinstance(initial, tuple | list) and len(initial) == 2 and order == 2
    parts = list(initial) if pair else [initial] + [None] * (order - 1)
    out = []
    for given in parts:
        given = np.zeros(n) if given is None else given
        terms = _terms(given if isinstance(given, Mapping) else {1: given}, "initial")
        out.append([(theta, _vector(u, n, f"the initial state of {theta}")) for theta, u in terms])
    return out


def _times(times: ArrayLike | None, moves: bool) -> np.ndarray | None:
    if not moves:
        if times is not None:
            raise InputError("times= are for problems in time. Give mass= too, or leave them out.")
        return None
    if times is None:
        raise InputError("the times to store are missing. Give times=np.linspace(0, 1, 11): the first is the start.")
    when = check_finite(check_shape(times, (None,), "times"), "times")
    if len(when) < 2 or not np.all(np.diff(when) > 0):
        raise InputError("times must increase, the start first and at least one more.")
    return when


def _time_of(vectors: list[tuple[sympy.Expr, np.ndarray]]) -> Time:
    """The symbol of time in the loads, or one of its own."""
    found = {s for theta, _ in vectors for s in theta.free_symbols if isinstance(s, Time)}
    if len(found) > 1:
        raise InputError(f"the loads depend on two times, {' and '.join(map(str, found))}. Use one ps.time().")
    return found.pop() if found else Time()


def _state(terms: list[tuple[sympy.Expr, np.ndarray]], n: int, symbols: tuple, n_fields: int) -> AffineState:
    functions = tuple(as_function(theta, symbols) for theta, _ in terms)
    return AffineState(functions, np.array([u for _, u in terms]).reshape(len(terms), n), n_fields)


def _theta(given: Any, name: str, moves: bool) -> sympy.Expr:
    if isinstance(given, str):
        raise InputError(f"{name}: the theta {given!r} is a text. Use a number or an expression in ps.parameters(...).")
    try:
        theta = to_expression(given)
    except (TypeError, ValueError, sympy.SympifyError):
        raise InputError(f"{name}: {given!r} is no theta. Use a number or an expression in parameters.") from None
    known = (Parameter, Time) if moves else Parameter
    foreign = [s for s in theta.free_symbols if not isinstance(s, known)]
    if foreign:
        raise InputError(
            f"{name}: the theta {theta} depends on {foreign[0]}, which is no parameter. Declare it with ps.parameters(...)."
        )
    return theta


def _parameters(thetas: list[sympy.Expr]) -> tuple[Parameter, ...]:
    """All parameters, in the order of their declaration."""
    found: set[Any] = {s for theta in thetas for s in theta.free_symbols if isinstance(s, Parameter)}
    names = [p.name for p in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise InputError(f"two different parameters are called {twice.pop()}. Declare each once and use that symbol.")
    if not found:
        raise InputError("no theta depends on a parameter, so there is nothing to vary. Use ps.parameters(...).")
    return tuple(sorted(found, key=lambda p: p.rank))


def _matrix(given: Any, name: str) -> sparse.csr_array:
    try:
        out = sparse.csr_array(given)
    except (TypeError, ValueError):
        raise InputError(f"{name} is a {type(given).__name__}. Give a sparse or dense matrix.") from None
    if out.ndim != 2 or out.shape[0] != out.shape[1] or not out.shape[0]:
        raise InputError(f"{name} has the shape {out.shape}: it must be square.")
    if np.iscomplexobj(out.data):
        raise InputError(f"{name} is complex. Give real and imaginary parts as two unknowns.")
    out = out.astype(float)
    check_finite(out.data, name)
    out.sum_duplicates()
    out.eliminate_zeros()
    return out


def _vector(given: Any, n: int, name: str) -> np.ndarray:
    dense = given.toarray().ravel() if sparse.issparse(given) else np.asarray(given)
    if dense.dtype.kind not in "fiub":
        raise InputError(f"{name} is of {dense.dtype}. Give real numbers.")
    return check_finite(check_shape(np.squeeze(dense) if dense.ndim == 2 else dense, (n,), name), name)


def _product(given: Any, n: int) -> Weights:
    """Weights (n,) or a matrix."""
    if not sparse.issparse(given) and np.ndim(given) == 1:
        return check_weights(given, n)
    matrix = _matrix(given, "the product")
    if matrix.shape != (n, n):
        raise InputError(f"the product is {matrix.shape} for {n} unknowns.")
    matrix.sort_indices()
    return MatrixProduct(matrix.indptr, matrix.indices, matrix.data)


def _rows(quantities: Mapping[str, ArrayLike], n: int) -> QuantityRows:
    rows = [_vector(weights, n, f"the quantity {name!r}") for name, weights in quantities.items()]
    return QuantityRows(tuple(map(str, quantities)), np.array(rows).reshape(len(rows), n))


def _mesh(points: ArrayLike | None, cells: ArrayLike | None) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Points and cells, if they fit."""
    if points is None:
        if cells is not None:
            raise InputError("cells need the points that they join. Give points= too.")
        return None, None
    where = np.asarray(points, dtype=float)
    where = check_finite(check_shape(where[:, None] if where.ndim == 1 else where, (None, None), "points"), "points")
    if not 1 <= where.shape[1] <= 3:
        hint = " Are they transposed?" if where.shape[0] <= 3 else ""
        raise InputError(f"points have shape {where.shape}, expected (n_points, dimension).{hint}")
    return where, None if cells is None else MeshDomain(where, np.asarray(cells)).cells


def _places(given: ArrayLike, n: int, where: np.ndarray | None, name: str) -> np.ndarray:
    if where is None:
        raise InputError("fields={name: places} says where values at points stand. Give points= too.")
    at = np.asarray(given)
    if at.shape != (len(where),) or at.dtype.kind not in "iu" or at.min() < -1 or at.max() >= n:
        raise InputError(
            f"the places of {name!r} must be {len(where)} whole numbers from -1 to {n - 1}, one for each point, "
            f"got shape {at.shape} of {at.dtype}."
        )
    return at.astype(np.int64)


def _put(free: ArrayLike, n: int, where: np.ndarray | None, n_fields: int) -> sparse.csr_array:
    """What puts unknowns to their places among all values: (n_fields * n_points, n)."""
    if where is None:
        raise InputError("free= says at which points unknowns are left. Give points= too.")
    n_all, at = n_fields * len(where), np.asarray(free)
    if at.shape != (n,) or at.dtype.kind not in "iu" or at.min() < 0 or at.max() >= n_all:
        raise InputError(f"free must be {n} whole numbers from 0 to {n_all - 1}, one for each unknown.")
    if len(np.unique(at)) != n:
        raise InputError("free names a point twice. Each unknown has a place of its own.")
    return sparse.csr_array((np.ones(n), (at, np.arange(n))), shape=(n_all, n))


def _fixed(put: sparse.csr_array) -> sparse.csr_array:
    """The identity on what is not put."""
    return sparse.csr_array(sparse.diags_array(1.0 - put.sum(axis=1)))


def _with_constraints(matrices, put: sparse.csr_array, *, own_term: bool) -> list[tuple[sympy.Expr, sparse.csr_array]]:
    """The matrices on all values: those that were eliminated have rows that say that they are zero."""
    fixed = _fixed(put)
    fixed.eliminate_zeros()
    matrices = [(theta, (put @ a @ put.T).tocsr()) for theta, a in matrices]
    positive = [
        i for i, (theta, _) in enumerate(matrices) if theta == 1 or (getattr(theta, "low", 0.0) > 0 and not own_term)
    ]
    if positive:  # a row θ u = 0 says the same as u = 0, and needs no term of its own; in time it does
        theta, a = matrices[positive[0]]
        matrices[positive[0]] = (theta, (a + fixed).tocsr())
    elif fixed.nnz:
        matrices.append((sympy.S.One, fixed))
    return matrices


def _product_on(weights: Weights | None, put: sparse.csr_array) -> Weights | None:
    """The inner product of all values; what is zero may have any weight."""
    if weights is None:
        return None
    if isinstance(weights, np.ndarray):
        return put @ weights + _fixed(put).diagonal()
    inner = sparse.csr_array((weights.data, weights.indices, weights.indptr), shape=(put.shape[1],) * 2)
    return _product(put @ inner @ put.T + _fixed(put), put.shape[0])


def _nodes(points: np.ndarray, cells: np.ndarray) -> Nodes:
    """The points as nodes of the region that the cells cover; which of them lie on its boundary is not told apart."""
    domain = MeshDomain(points, cells)
    size = np.ptp(points, axis=0).max() / max(len(points), 2) ** (1 / points.shape[1])
    empty = np.empty((0, points.shape[1]))
    none = np.empty(0, dtype=int)
    return Nodes(domain, points, len(points), empty, none, np.empty((0, 1), dtype=bool), np.full(len(points), size))


def _assembled(matrices, vectors, in_time, positions: np.ndarray | None, inputs: Inputs, time: Time | None) -> Terms:
    """All matrices in one pattern; loads whose θ holds the time are evaluated at every time."""
    n = matrices[0][1].shape[0]
    union = sparse.csr_array((n, n))
    for a in (*[a for _, a in matrices], *[a for _, _, a in in_time]):
        union = union + abs(a)
    union.sort_indices()
    pattern = Pattern(union.indices, union.indptr, distances(union) if positions is None else positions)
    keys = np.repeat(np.arange(n), np.diff(union.indptr)) * n + union.indices

    def entries(a: sparse.csr_array) -> np.ndarray:
        out = np.zeros(len(keys))
        own = np.repeat(np.arange(n), np.diff(a.indptr)) * n + a.indices
        out[np.searchsorted(keys, own)] = a.data
        return out

    steady = [(theta, f) for theta, f in vectors if time is None or not theta.has(time)]
    moving = [(theta, f) for theta, f in vectors if time is not None and theta.has(time)]
    return Terms(
        inputs,
        pattern,
        tuple(theta for theta, _ in matrices),
        np.array([entries(a) for _, a in matrices]),
        tuple(theta for theta, _ in steady),
        np.array([f for _, f in steady]).reshape(len(steady), n),
        tuple((k, theta, entries(a)) for k, theta, a in in_time),
        (),
        tuple(_varying(theta, f, inputs, time) for theta, f in moving),  # type: ignore[arg-type]
        (),
    )


def _varying(theta: sympy.Expr, f: np.ndarray, inputs: Inputs, time: Time) -> Varying:
    """A load θ(t, μ) f on the rows where it is not zero."""
    rows = np.flatnonzero(f)
    nowhere = sympy.Dummy("row")  # one column tells how many rows there are
    function = as_function(theta, [nowhere, *inputs.scalars, time])
    coefficient = RowFunction(function, (np.zeros(len(rows)),), tuple(range(inputs.n_scalars)), 1)
    return Varying(coefficient, None, rows, rows, f[rows])
