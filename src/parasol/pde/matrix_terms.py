"""Reading matrices, vectors, points and cells that somebody gives: checked before any work, put into one pattern."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy
from numpy.typing import ArrayLike
from scipy import sparse

from parasol.checks import check_finite, check_shape, unmasked
from parasol.errors import InputError
from parasol.expressions import Function, as_function, to_expression
from parasol.pde.equation import Time
from parasol.pde.inputs import Inputs
from parasol.pde.parameters import Parameter, ParameterSpace
from parasol.pde.quantities import QuantityRows
from parasol.pde.rows import Varying
from parasol.pde.sparse_direct import positive_definite, symmetric
from parasol.pde.sparse_pattern import Pattern, distances
from parasol.pde.terms import Terms
from parasol.runtime.products import MatrixProduct, Weights, check_weights
from parasol.runtime.rows import RowFunction
from parasol.space.mesh import MeshDomain
from parasol.space.nodes import Nodes

_SYMMETRIC = 1e-10  # relative to the largest entries of row and column
_ROUNDING = 1e-14  # of the diagonal: a stiffness matrix without constraints is positive by rounding alone
_N_TRIED = 400  # parameters at which each theta is looked at, half of them corners of the box
_MOST_TERMS = 10_000  # a mapping with more is a vector by mistake


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


Pairs = list[tuple[sympy.Expr, Any]]  # of a θ and a matrix, or a vector


@dataclass(frozen=True, eq=False)
class Given:
    """Matrices and vectors with their θ, checked: those of A and of f, of derivatives in time, of the start."""

    matrices: Pairs
    vectors: Pairs
    in_time: list[tuple[int, sympy.Expr, sparse.csr_array]]  # with their order
    start: list[Pairs]  # of u, and of u' where there is u''
    weights: Weights | None
    rows: QuantityRows

    @classmethod
    def read(cls, operators, loads, mass, damping, order, initial, product, quantities) -> Given:
        """What a user gave, or a clear error."""
        matrices = _square(operators, "operators")
        n = matrices[0][1].shape[0]
        in_time = _in_time(mass, damping, order, n)
        vectors = [
            (theta, as_vector(f, n, f"the vector of {theta}")) for theta, f in _terms(loads, "loads", bool(in_time))
        ]
        start = _start(initial, n, max((k for k, _, _ in in_time), default=0))
        weights = None if product is None else read_product(product, n)
        out = cls(matrices, vectors, in_time, start, weights, read_quantities(quantities, n))
        _ = out.symbols, out.time  # refused here
        return out

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return self.matrices[0][1].shape[0]

    @property
    def symbols(self) -> tuple[Parameter, ...]:
        """All parameters, in the order of their declaration."""
        pairs = [*self.matrices, *self.vectors, *[pair for part in self.start for pair in part]]
        thetas = [theta for theta, _ in pairs] + [theta for _, theta, _ in self.in_time]
        parameters: set[Any] = {s for theta in thetas for s in theta.free_symbols if isinstance(s, Parameter)}
        names = [p.name for p in parameters]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise InputError(f"two different parameters are called {twice.pop()}. Declare it once and use that symbol.")
        if not parameters:
            raise InputError("no theta depends on a parameter, so there is nothing to vary. Use ps.parameters(...).")
        return tuple(sorted(parameters, key=lambda p: p.rank))

    @property
    def inputs(self) -> Inputs:
        """What a parameter vector holds."""
        return Inputs(ParameterSpace(self.symbols), self.symbols, (), None)

    @property
    def time(self) -> Time:
        """The symbol of time in the loads, or one of its own."""
        times = {s for theta, _ in self.vectors for s in theta.free_symbols if isinstance(s, Time)}
        if len(times) > 1:
            raise InputError(f"the loads depend on two times, {' and '.join(map(str, times))}. Use one ps.time().")
        names = {p.name for p in self.symbols}
        if not times:
            return Time("t" if "t" not in names else next(f"t{i}" for i in range(1, 10**6) if f"t{i}" not in names))
        time = times.pop()
        if time.name in names:
            raise InputError(
                f"the time and a parameter are both called {time.name!r}. Call the parameter something else."
            )
        return time

    @property
    def equation(self) -> str:
        """The equation in letters: (A1 + a A2) u = f1."""

        def summed(letter: str, thetas: list[sympy.Expr]) -> str:
            terms = [f"{_as_factor(theta)}{letter}{i + 1}" for i, theta in enumerate(thetas)]
            joined = " + ".join(terms).replace("+ -", "- ")
            return f"({joined})" if len(terms) > 1 and letter != "f" else joined

        order = max((k for k, _, _ in self.in_time), default=0)
        rates = [(k, [theta for own, theta, _ in self.in_time if own == k]) for k in (2, 1)]
        moving = [f"{summed('M' if k == order else 'C', some)} u{chr(39) * k} + " for k, some in rates if some]
        left, right = summed("A", [theta for theta, _ in self.matrices]), summed("f", [t for t, _ in self.vectors])
        return "".join([*moving, f"{left} u = {right}"])

    def check_thetas(self, times: np.ndarray | None) -> None:
        """Refuse a θ that is complex, or not finite somewhere in the box, and a mass that is zero there."""
        space = ParameterSpace(self.symbols)
        tried = np.random.default_rng(0).random((_N_TRIED, len(self.symbols)))
        tried[: _N_TRIED // 2] = np.round(tried[: _N_TRIED // 2])  # corners
        tried[-1] = 0.5
        columns = [*space.from_unit(tried).T, np.resize(0.0 if times is None else times, _N_TRIED)]
        symbols, order = [*self.symbols, self.time], len(self.start)
        pairs = [("operators", theta) for theta, _ in self.matrices] + [("loads", theta) for theta, _ in self.vectors]
        pairs += [("initial", theta) for part in self.start for theta, _ in part]
        pairs += [("mass" if k == order else "damping", theta) for k, theta, _ in self.in_time]
        for name, theta in pairs:
            _check_theta(theta, name, symbols, columns)
        mass = [(theta, a) for k, theta, a in self.in_time if k == order]
        if mass and not any(a.nnz and theta != 0 for theta, a in mass):
            raise InputError(
                "the mass matrix is zero, so nothing changes in time. Leave mass= and times= out for a steady problem."
            )

    def on_all(self, put: sparse.csr_array) -> Given:
        """The same for all values: those that were eliminated have rows that say that they are zero."""
        fixed = _fixed(put)
        fixed.eliminate_zeros()
        matrices = [(theta, (put @ a @ put.T).tocsr()) for theta, a in self.matrices]
        # a row θ u = 0 says the same as u = 0, and needs no term of its own; in time constraints may not depend on μ
        steady = not self.in_time
        positive = [theta == 1 or (steady and getattr(theta, "low", 0.0) > 0) for theta, _ in matrices]
        if any(positive):
            theta, a = matrices[positive.index(True)]
            matrices[positive.index(True)] = (theta, (a + fixed).tocsr())
        elif fixed.nnz:
            matrices.append((sympy.S.One, fixed))
        return Given(
            matrices,
            [(theta, put @ f) for theta, f in self.vectors],
            [(k, theta, (put @ a @ put.T).tocsr()) for k, theta, a in self.in_time],
            [[(theta, put @ u) for theta, u in part] for part in self.start],
            _product_on(self.weights, put),
            QuantityRows(self.rows.names, self.rows.rows @ put.T),
        )

    def states(self, n_fields: int) -> tuple[AffineState, ...]:
        """The states at the start."""
        out = []
        for part in self.start:
            functions = tuple(as_function(theta, self.symbols) for theta, _ in part)
            out.append(AffineState(functions, np.array([u for _, u in part]).reshape(len(part), self.n), n_fields))
        return tuple(out)

    def terms(self, positions: np.ndarray | None, inputs: Inputs, time: Time | None) -> Terms:
        """All matrices in one pattern; loads whose θ holds the time are evaluated at every time."""
        n, union = self.n, sparse.csr_array((self.n, self.n))
        for a in (*[a for _, a in self.matrices], *[a for _, _, a in self.in_time]):
            union = union + abs(a)
        union.sort_indices()
        pattern = Pattern(union.indices, union.indptr, distances(union) if positions is None else positions)
        keys = np.repeat(np.arange(n), np.diff(union.indptr)) * n + union.indices

        def entries(a: sparse.csr_array) -> np.ndarray:
            out = np.zeros(len(keys))
            own = np.repeat(np.arange(n), np.diff(a.indptr)) * n + a.indices
            out[np.searchsorted(keys, own)] = a.data
            return out

        moving = [pair for pair in self.vectors if time is not None and pair[0].has(time)]
        steady = [pair for pair in self.vectors if time is None or not pair[0].has(time)]
        return Terms(
            inputs,
            pattern,
            tuple(theta for theta, _ in self.matrices),
            np.array([entries(a) for _, a in self.matrices]),
            tuple(theta for theta, _ in steady),
            np.array([f for _, f in steady]).reshape(len(steady), n),
            tuple((k, theta, entries(a)) for k, theta, a in self.in_time),
            (),
            tuple(_varying(theta, f, inputs, time) for theta, f in moving),  # type: ignore[arg-type]
            (),
        )


def _as_factor(theta: sympy.Expr) -> str:
    """A factor as people write it before a letter: nothing for 1, -2 a for a product, brackets around a sum."""
    text = str(theta).replace("**", "^").replace("*", " ")
    return "" if theta == 1 else "-" if theta == -1 else f"({text}) " if theta.is_Add or "/" in text else f"{text} "


def _check_theta(theta: sympy.Expr, name: str, symbols: list[Any], columns: list[np.ndarray]) -> None:
    """Refuse a θ that is no finite real number at some of these parameters and times, or between two of them."""

    def refuse(what: str, i: int) -> InputError:
        at = ", ".join(f"{s}={c[i]:g}" for s, c in zip(symbols, columns, strict=True) if s in theta.free_symbols)
        return InputError(f"{name}: the theta {theta} is {what} at {at}. Change it, or the ranges of its parameters.")

    if theta.has(sympy.I):
        raise InputError(f"{name}: the theta {theta} is complex. Give real and imaginary parts as two unknowns.")

    def values(part: sympy.Expr) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.broadcast_to(np.asarray(as_function(part, symbols)(*columns)), columns[0].shape)

    samples = values(theta)
    wrong = np.flatnonzero(~np.isfinite(samples) | (np.imag(samples) != 0))
    if len(wrong):
        raise refuse(f"{samples[wrong[0]]:g}", int(wrong[0]))
    for power in theta.atoms(sympy.Pow):
        if power.exp.is_negative and power.base.free_symbols:
            base = values(power.base)
            if np.min(base) < 0 < np.max(base):  # a root lies between, which samples seldom meet
                raise InputError(
                    f"{name}: the theta {theta} divides by zero where {power.base} = 0, which is in the box. Narrow the ranges."
                )


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
    pairs = [(theta, as_matrix(a, f"the matrix of {theta} in {name}")) for theta, a in _terms(given, name)]
    for theta, a in pairs:
        if a.shape != pairs[0][1].shape:
            raise InputError(
                f"the matrix of {theta} in {name} is {a.shape}, that of {pairs[0][0]} is {pairs[0][1].shape}."
            )
    return pairs


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
        out.append([(theta, as_vector(u, n, f"the initial state of {theta}")) for theta, u in terms])
    return out


def read_times(times: ArrayLike | None, moves: bool) -> np.ndarray | None:
    """The times to store, None of a steady problem."""
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
            f"{name}: the theta {theta} depends on {foreign[0]}, which is no parameter. Declare it with its range, like "
            f"({foreign[0]},) = ps.parameters({foreign[0]}=(0.1, 1.0)), and use the symbol that this returns."
        )
    return theta


def as_matrix(given: Any, name: str, *, zeros: bool = False) -> sparse.csr_array:
    """A real square matrix in CSR form, its columns in order; stored `zeros` stay or go."""
    try:
        dense = None if sparse.issparse(given) else np.asarray(unmasked(given))
        if dense is not None and dense.dtype.kind not in "fiubc":
            raise TypeError(dense.dtype)
        if np.iscomplexobj(given if dense is None else dense):
            raise InputError(f"{name} is complex. Give real and imaginary parts as two unknowns.")
        # floats before anything is added up: entries of int8 that stand twice would overflow
        out = sparse.csr_array(given.astype(float) if dense is None else dense.astype(float), copy=True)
    except InputError:
        raise
    except (TypeError, ValueError):
        kind = f" of {given.dtype}" if isinstance(given, np.ndarray) else ""
        raise InputError(f"{name} is a {type(given).__name__}{kind}. Give a sparse or dense matrix.") from None
    if out.ndim != 2 or out.shape[0] != out.shape[1] or not out.shape[0]:
        raise InputError(f"{name} has the shape {out.shape}: it must be square.")
    check_finite(out.data, name)
    out.sum_duplicates()
    if not zeros:
        out.eliminate_zeros()
    return out


def as_vector(given: Any, n: int, name: str) -> np.ndarray:
    """A real vector (n,)."""
    dense = given.toarray().ravel() if sparse.issparse(given) else np.asarray(unmasked(given))
    if dense.dtype.kind not in "fiub":
        raise InputError(f"{name} is of {dense.dtype}. Give real numbers.")
    return check_finite(check_shape(np.squeeze(dense) if dense.ndim == 2 else dense, (n,), name), name)


def read_product(given: Any, n: int) -> Weights:
    """Weights (n,) or a matrix."""
    if not sparse.issparse(given) and np.ndim(given) == 1:
        return check_weights(given, n)
    matrix = as_matrix(given, "the product")
    if matrix.shape != (n, n):
        raise InputError(f"the product is {matrix.shape} for {n} unknowns.")
    if not symmetric(matrix, _SYMMETRIC):
        gap = abs(matrix - matrix.T).max()
        raise InputError(f"the product is not symmetric, by up to {gap:.1e}. An inner product is: give X with X = X.T.")
    product = MatrixProduct.of(matrix)
    if not positive_definite(matrix - sparse.diags_array(_ROUNDING * matrix.diagonal())):
        raise InputError("the product is not positive definite. An inner product has xᵀ X x > 0 for all x but 0.")
    return product


def read_quantities(quantities: Mapping[str, ArrayLike], n: int) -> QuantityRows:
    """Weights (n,) of quantities by name."""
    if not isinstance(quantities, Mapping):
        raise InputError(f'quantities must map names to weights, like {{"mean": w}}, got {type(quantities).__name__}.')
    rows = [as_vector(weights, n, f"the quantity {name!r}") for name, weights in quantities.items()]
    return QuantityRows(tuple(map(str, quantities)), np.array(rows).reshape(len(rows), n))


def read_mesh(points: ArrayLike | None, cells: ArrayLike | None) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Points and cells, if they fit."""
    if points is None:
        if cells is not None:
            raise InputError("cells need the points that they join. Give points= too.")
        return None, None
    where = np.asarray(unmasked(points))
    where = check_finite(check_shape(where[:, None] if where.ndim == 1 else where, (None, None), "points"), "points")
    if not 1 <= where.shape[1] <= 3:
        hint = " Are they transposed?" if where.shape[0] <= 3 else ""
        raise InputError(f"points have shape {where.shape}, expected (n_points, dimension).{hint}")
    return where, None if cells is None else MeshDomain(where, unmasked(cells)).cells


def read_places(given: ArrayLike, n: int, where: np.ndarray | None, name: str, free: ArrayLike | None) -> np.ndarray:
    """Where in a vector of n unknowns the values at the points stand, −1 for a value that is zero.

    With `free` they are places among all unknowns, of which those are left.
    """
    if where is None:
        raise InputError("fields={name: places} says where values at points stand. Give points= too.")
    at = np.asarray(unmasked(given))
    whole = at.shape == (len(where),) and at.dtype.kind in "iu" and at.min() >= -1
    if not whole or (free is None and at.max() >= n):
        most = f"to {n - 1}" if free is None else "on"
        raise InputError(
            f"the places of {name!r} must be {len(where)} whole numbers from -1 {most}, one for each point, "
            f"got shape {at.shape} of {at.dtype}."
        )
    return at.astype(np.int64) if free is None else placed_free(at.astype(np.int64), free, n, name)


def placed_free(places: np.ndarray, free: ArrayLike, n: int, name: str) -> np.ndarray:
    """Places among n unknowns that are left, from `places` among all of them: those that were eliminated are zero.

    >>> placed_free(np.array([0, 1, 2, -1]), [1, 2], 2, "u")
    array([-1,  0,  1, -1])
    """
    at = np.asarray(unmasked(free))
    if at.shape != (n,) or at.dtype.kind not in "iu" or at.min() < 0 or len(np.unique(at)) != n:
        raise InputError(
            f"free must be {n} different whole numbers from 0 on, one for each unknown, got shape {at.shape}."
        )
    left = np.full(max(int(places.max()), int(at.max())) + 2, -1)  # the last one is for places of -1
    left[at] = np.arange(n)
    return left[places]


def placing(free: ArrayLike, n: int, where: np.ndarray | None, n_fields: int) -> sparse.csr_array:
    """What puts unknowns to their places among all values: (n_fields * n_points, n)."""
    if where is None:
        raise InputError("free= says at which points unknowns are left. Give points= too.")
    n_all, at = n_fields * len(where), np.asarray(unmasked(free))
    if at.shape != (n,) or at.dtype.kind not in "iu" or at.min() < 0 or at.max() >= n_all:
        raise InputError(f"free must be {n} whole numbers from 0 to {n_all - 1}, one for each unknown.")
    if len(np.unique(at)) != n:
        raise InputError("free names a point twice. Each unknown has a place of its own.")
    return sparse.csr_array((np.ones(n), (at, np.arange(n))), shape=(n_all, n))


def _fixed(put: sparse.csr_array) -> sparse.csr_array:
    """The identity on what is not put."""
    return sparse.csr_array(sparse.diags_array(1.0 - put.sum(axis=1)))


def _product_on(weights: Weights | None, put: sparse.csr_array) -> Weights | None:
    """The inner product of all values; what is zero may have any weight."""
    if weights is None:
        return None
    if isinstance(weights, np.ndarray):
        return put @ weights + _fixed(put).diagonal()
    return MatrixProduct.of((put @ weights.matrix @ put.T + _fixed(put)).tocsr())


def nodes_of(points: np.ndarray, cells: np.ndarray) -> Nodes:
    """The points as nodes of the region that the cells cover; all count as inner ones."""
    domain = MeshDomain(points, cells)
    size = np.ptp(points, axis=0).max() / max(len(points), 2) ** (1 / points.shape[1])
    empty = np.empty((0, points.shape[1]))
    none = np.empty(0, dtype=int)
    return Nodes(domain, points, len(points), empty, none, np.empty((0, 1), dtype=bool), np.full(len(points), size))


def _varying(theta: sympy.Expr, f: np.ndarray, inputs: Inputs, time: Time) -> Varying:
    """A load θ(t, μ) f on the rows where it is not zero."""
    rows = np.flatnonzero(f)
    nowhere = sympy.Dummy("row")  # one column tells how many rows there are
    function = as_function(theta, [nowhere, *inputs.scalars, time])
    coefficient = RowFunction(function, (np.zeros(len(rows)),), tuple(range(inputs.n_scalars)), 1)
    return Varying(coefficient, None, rows, rows, f[rows])
