"""Somebody's matrices as a model: A(mu) = sum_q theta_q(mu) A_q and f(mu) = sum_q theta_q(mu) f_q."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import sympy
from numpy.typing import ArrayLike
from scipy import sparse

from parasol.checks import check_choice, check_finite, check_shape
from parasol.errors import InputError
from parasol.expressions import to_expression
from parasol.pde.inputs import Inputs
from parasol.pde.layout import FieldLayout
from parasol.pde.model import Model
from parasol.pde.parameters import FunctionParameter, Parameter, ParameterSpace
from parasol.pde.quantities import QuantityRows
from parasol.pde.sparse_direct import BACKENDS, Pattern, distances
from parasol.pde.terms import Terms
from parasol.runtime.layout import AXES
from parasol.runtime.products import MatrixProduct, Weights, check_weights
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
    # what the statement of a problem has, and matrices have not
    time: None = None
    times: None = None
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
        name: str = "",
        solver: str = "superlu",
    ):
        matrices = [(theta, _matrix(a, f"the matrix of {theta}")) for theta, a in _terms(operators, "operators")]
        n = matrices[0][1].shape[0]
        vectors = [(theta, _vector(f, n, f"the vector of {theta}")) for theta, f in _terms(loads, "loads")]
        for theta, a in matrices:
            if a.shape != (n, n):
                raise InputError(f"the matrix of {theta} is {a.shape}, that of {matrices[0][0]} is {(n, n)}.")
        symbols = _parameters([theta for theta, _ in (*matrices, *vectors)])
        equation = _words(matrices, vectors)
        weights = None if product is None else _product(product, n)
        rows = _rows(quantities or {}, n)
        where, found = _mesh(points, cells)
        names = (fields,) if isinstance(fields, str) else tuple(fields)
        if not names or not all(isinstance(one, str) and one for one in names):
            raise InputError(f"fields must name functions, got {fields!r}.")
        places = None
        if isinstance(fields, Mapping):
            places = {one: _places(at, n, where, one) for one, at in fields.items()}
        elif free is not None:
            matrices, vectors, weights, rows = _with_constraints(
                matrices, vectors, weights, rows, free, where, len(names)
            )
            n = matrices[0][1].shape[0]
        elif where is not None and n != len(names) * len(where):
            raise InputError(
                f"{n} unknowns are not {len(names)} value{'s' * (len(names) > 1)} at each of {len(where)} points. Say with "
                "free= which are left, or with fields={name: places} where they stand."
            )
        space = ParameterSpace(symbols)
        own = (names[0],) if places is not None else names
        dimension = 0 if where is None else where.shape[1]
        problem = MatrixProblem(space, symbols, own, name, equation, tuple(rows.names), dimension)
        positions = None if where is None or places is not None else np.tile(where, (len(names), 1))
        made = {
            "problem": problem,
            "nodes": None if where is None or found is None else _nodes(where, found),
            "scheme": None,
            "report": None,
            "terms": _assembled(matrices, vectors, positions, Inputs(space, symbols, (), None)),  # type: ignore[arg-type]
            "solver": check_choice(solver, BACKENDS, "solver"),
            "step": None,
            "integrator": None,
            "elements": None,
            "points": where,
            "cells": found,
            "places": places,
            "weights": weights,
            "rows": rows,
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

    @cached_property
    def between(self) -> None:
        """Matrices say nothing of the equation between their points."""
        return

    def weights_at(self, points: np.ndarray) -> sparse.csr_array:
        """Weights (n_points, n_nodes) that turn values at the model's points into values at others, in its cells."""
        if self.points is None or self.cells is None:
            raise InputError("values between points need points= and cells=. Give them to ps.AffineModel.")
        return weights_in_cells(self.points, self.cells, points)


def _words(matrices: list[tuple[sympy.Expr, Any]], vectors: list[tuple[sympy.Expr, Any]]) -> str:
    """The equation in letters: (A1 + a A2) u = f1."""
    sums = []
    for letter, terms in (("A", matrices), ("f", vectors)):
        factors = [("" if theta == 1 else f"{theta} " if theta.is_Atom else f"({theta}) ") for theta, _ in terms]
        sums.append(" + ".join(f"{factor}{letter}{i + 1}" for i, factor in enumerate(factors)))
    return f"({sums[0]}) u = {sums[1]}".replace("**", "^")


def _terms(given: Any, name: str) -> list[tuple[sympy.Expr, Any]]:
    """Pairs of a θ, as an expression, and what it multiplies."""
    if not isinstance(given, Mapping | Iterable) or isinstance(given, np.ndarray | sparse.sparray | sparse.spmatrix):
        raise InputError(f"{name} must map each theta to its array, like {{1: A0, a: A1}}, got {type(given).__name__}.")
    pairs = list(given.items() if isinstance(given, Mapping) else given)
    if not pairs or len(pairs) > _MOST_TERMS or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise InputError(f"{name} must map each theta to its array, like {{1: A0, a: A1}}; there are {len(pairs)}.")
    return [(_theta(theta, name), array) for theta, array in pairs]


def _theta(given: Any, name: str) -> sympy.Expr:
    if isinstance(given, str):
        raise InputError(f"{name}: the theta {given!r} is a text. Use a number or an expression in ps.parameters(...).")
    try:
        theta = to_expression(given)
    except (TypeError, ValueError, sympy.SympifyError):
        raise InputError(f"{name}: {given!r} is no theta. Use a number or an expression in parameters.") from None
    foreign = [s for s in theta.free_symbols if not isinstance(s, Parameter)]
    if foreign:
        raise InputError(
            f"{name}: the theta {theta} depends on {foreign[0]}, which is no parameter. Declare it with ps.parameters(...)."
        )
    return theta


def _parameters(thetas: list[sympy.Expr]) -> tuple[Parameter, ...]:
    """All parameters, in the order of their declaration."""
    found: set[Any] = set().union(*[theta.free_symbols for theta in thetas])
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


def _with_constraints(matrices, vectors, weights, rows: QuantityRows, free, where, n_fields: int):
    """Unknowns that were eliminated, as rows that say that they are zero."""
    if where is None:
        raise InputError("free= says at which points unknowns are left. Give points= too.")
    n, n_all = matrices[0][1].shape[0], n_fields * len(where)
    free = np.asarray(free)
    if free.shape != (n,) or free.dtype.kind not in "iu" or free.min() < 0 or free.max() >= n_all:
        raise InputError(f"free must be {n} whole numbers from 0 to {n_all - 1}, one for each unknown.")
    if len(np.unique(free)) != n:
        raise InputError("free names a point twice. Each unknown has a place of its own.")
    fixed = np.setdiff1d(np.arange(n_all), free)
    put = sparse.csr_array((np.ones(n), (free, np.arange(n))), shape=(n_all, n))
    matrices = [(theta, (put @ a @ put.T).tocsr()) for theta, a in matrices]
    identity = sparse.csr_array((np.ones(len(fixed)), (fixed, fixed)), shape=(n_all, n_all))
    positive = [i for i, (theta, _) in enumerate(matrices) if theta == 1 or getattr(theta, "low", 0.0) > 0]
    if positive:  # a row θ u = 0 says the same as u = 0, and needs no term of its own
        theta, a = matrices[positive[0]]
        matrices[positive[0]] = (theta, (a + identity).tocsr())
    elif len(fixed):
        matrices.append((sympy.S.One, identity))
    vectors = [(theta, put @ f) for theta, f in vectors]
    if isinstance(weights, np.ndarray):
        weights = put @ weights + identity.diagonal()
    elif weights is not None:
        inner = sparse.csr_array((weights.data, weights.indices, weights.indptr), shape=(n, n))
        weights = _product(put @ inner @ put.T + identity, n_all)
    return matrices, vectors, weights, QuantityRows(rows.names, rows.rows @ put.T)


def _nodes(points: np.ndarray, cells: np.ndarray) -> Nodes:
    """The points as nodes of the region that the cells cover; which of them lie on its boundary is not told apart."""
    domain = MeshDomain(points, cells)
    size = np.ptp(points, axis=0).max() / max(len(points), 2) ** (1 / points.shape[1])
    empty = np.empty((0, points.shape[1]))
    none = np.empty(0, dtype=int)
    return Nodes(domain, points, len(points), empty, none, np.empty((0, 1), dtype=bool), np.full(len(points), size))


def _assembled(matrices, vectors, positions: np.ndarray | None, inputs: Inputs) -> Terms:
    """All matrices in one pattern."""
    n = matrices[0][1].shape[0]
    union = sparse.csr_array((n, n))
    for _, a in matrices:
        union = union + abs(a)
    union.sort_indices()
    pattern = Pattern(union.indices, union.indptr, distances(union) if positions is None else positions)
    keys = np.repeat(np.arange(n), np.diff(union.indptr)) * n + union.indices
    data = np.zeros((len(matrices), len(keys)))
    for row, (_, a) in zip(data, matrices, strict=True):
        own = np.repeat(np.arange(n), np.diff(a.indptr)) * n + a.indices
        row[np.searchsorted(keys, own)] = a.data
    loads = np.array([f for _, f in vectors])
    thetas = [tuple(theta for theta, _ in some) for some in (matrices, vectors)]
    return Terms(inputs, pattern, thetas[0], data, thetas[1], loads, (), (), (), ())
