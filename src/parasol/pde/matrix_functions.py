"""Somebody's functions operator(mu) and load(mu): matrices and vectors that no formula separates, assembled for every solve."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from parasol.errors import InputError, ParasolError, SolveFailed
from parasol.pde.equation import Time
from parasol.pde.inputs import Inputs, Points
from parasol.pde.matrix_terms import Given, as_matrix, as_vector, read_product, read_quantities
from parasol.pde.parameters import FunctionParameter, ParameterSpace, symbol_of
from parasol.pde.sparse_pattern import Pattern, distances
from parasol.pde.terms import Terms
from parasol.runtime.parameters import parameter_space

# random parameters whose matrices give the pattern, and parameters with all corners too
_N_LOOKED, _MOST_CORNERS = 8, 3
_GIVE = 'parameters={"a": (0.1, 4.0), "k": (1, 10, "log")}'


@dataclass(frozen=True, eq=False)
class MatrixFunctions:
    """A(μ) and f(μ) as a user's code returns them; `put` (n_all, n) places unknowns among values of which some are fixed at 0."""

    operator: Callable[[np.ndarray], Any]
    load: Any  # a function of μ, or a vector that does not depend on it
    names: tuple[str, ...]  # of the parameters
    n_scalars: int  # of them that are numbers, which stand first
    n: int  # unknowns of the user
    put: sparse.csr_array | None = None

    @property
    def n_all(self) -> int:
        """Unknowns, fixed ones included."""
        return self.n if self.put is None else self.put.shape[0]

    def matrix(self, mu: np.ndarray) -> sparse.csr_array:
        """A(μ), (n_all, n_all), sparse, zeros that the user stored included."""
        matrix = as_matrix(self._called(self.operator, mu), f"operator(mu) at {self._at(mu)}", zeros=True)
        if matrix.shape != (self.n, self.n):
            raise SolveFailed(f"operator(mu) is {matrix.shape} at {self._at(mu)}, for {self.n} unknowns.")
        if self.put is None:
            return matrix
        fixed = sparse.diags_array(1.0 - self.put.sum(axis=1))
        return sparse.csr_array(self.put @ matrix @ self.put.T + fixed)

    def vector(self, mu: np.ndarray) -> np.ndarray:
        """f(μ), (n_all,)."""
        given = self._called(self.load, mu) if callable(self.load) else self.load
        vector = as_vector(given, self.n, f"load(mu) at {self._at(mu)}")
        return vector if self.put is None else self.put @ vector

    def _called(self, function: Callable[[np.ndarray], Any], mu: np.ndarray) -> Any:
        try:
            return function(np.array(mu, dtype=float))  # a copy: what is done to it must not reach anybody else
        except ParasolError:
            raise
        except Exception as error:  # somebody's code
            name = "operator" if function is self.operator else "load"
            raise SolveFailed(f"{name}(mu) raises {type(error).__name__} at {self._at(mu)}: {error}") from error

    def _at(self, mu: np.ndarray) -> str:
        numbers = [f"{name}={value:.6g}" for name, value in zip(self.names[: self.n_scalars], mu, strict=False)]
        return ", ".join([*numbers, *[f"{name}=..." for name in self.names[self.n_scalars :]]])


@dataclass(frozen=True, eq=False)
class FunctionTerms(Terms):
    """A(μ) and f(μ) by a user's functions, in one pattern. Sums for a reduced model are fitted (`fitting.matrix_functions`)."""

    functions: MatrixFunctions

    @property
    def constant_operator(self) -> bool:
        """Nobody knows whether A depends on the parameters."""
        return False

    @cached_property
    def _keys(self) -> np.ndarray:
        return _keys(self.pattern.indices, self.pattern.indptr)

    def operator_entries(self, mu) -> np.ndarray:
        """The entries (nnz,) of A(mu), as the user's function returns them."""
        mu = self._vector(mu)
        matrix = self.functions.matrix(mu)
        out, keys = np.zeros(len(self._keys)), _keys(matrix.indices, matrix.indptr)
        places = np.minimum(np.searchsorted(self._keys, keys), len(out) - 1)
        known = self._keys[places] == keys
        if np.any(matrix.data[~known]):
            row, column = divmod(int(keys[~known][np.flatnonzero(matrix.data[~known])[0]]), matrix.shape[0])
            raise SolveFailed(
                f"operator(mu) has an entry at ({row}, {column}) that it had at none of the parameters looked at first. Return "
                "matrices of one pattern, with zeros stored where an entry vanishes."
            )
        out[places[known]] = matrix.data[known]
        return out

    def load(self, mu, t: float = 0.0) -> np.ndarray:
        """f(mu), (n_unknowns,), as the user's function returns it."""
        return self.functions.vector(self._vector(mu))


@dataclass(frozen=True, eq=False)
class GivenFunctions(Given):
    """Functions in place of matrices with their θ."""

    declared: Inputs
    functions: MatrixFunctions

    @classmethod
    def of(cls, operator: Callable, load: Any, inputs: Inputs, product: Any, quantities: Any) -> GivenFunctions:
        """What a user gave, tried once in the middle of the box, or a clear error."""
        middle = inputs.vector()
        try:
            n = as_matrix(operator(middle.copy()), "operator(mu)").shape[0]
            names = tuple(p.name for p in (*inputs.scalars, *inputs.functions))
            given = MatrixFunctions(operator, load, names, inputs.n_scalars, n)
            if isinstance(load, Mapping):
                raise InputError("loads with theta belong to operators with theta. Give load(mu), or one vector.")
            given.vector(middle)
        except ParasolError as error:
            raise InputError(str(error)) from error
        except Exception as error:  # somebody's code
            at = f"mu={middle}" if not inputs.functions else f"mu with shape {middle.shape}"
            raise InputError(f"operator(mu) raises {type(error).__name__} at {at}: {error}") from error
        weights = None if product is None else read_product(product, n)
        return cls([], [], [], [], weights, read_quantities(quantities, n), inputs, given)

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return self.functions.n_all

    @property
    def inputs(self) -> Inputs:
        """What a parameter vector holds."""
        return self.declared

    @property
    def time(self) -> Time:
        """One of its own."""
        return Time()

    @property
    def equation(self) -> str:
        """The equation in letters."""
        names = ", ".join(self.functions.names)
        return f"A({names}) u = f({names})" if callable(self.functions.load) else f"A({names}) u = f"

    def check_thetas(self, times: np.ndarray | None) -> None:
        """There are none."""

    def on_all(self, put: sparse.csr_array) -> GivenFunctions:
        """The same for all values: those that were eliminated have rows that say that they are zero."""
        rest = super().on_all(put)
        return replace(self, weights=rest.weights, rows=rest.rows, functions=replace(self.functions, put=put))

    def terms(self, positions: np.ndarray | None, inputs: Inputs, time: Time | None) -> Terms:
        """The union of some matrices' patterns."""
        space, n, p = inputs.space, self.n, inputs.n_scalars
        tried = inputs.sample(_N_LOOKED)
        corners = space.grid(*[2] * p) if 0 < p <= _MOST_CORNERS else np.empty((0, p))
        union = sparse.csr_array(sparse.eye_array(n))
        for mu in [*[np.append(few, tried[0, p:]) for few in (space.vector({}), *corners)], *tried]:
            matrix = self.functions.matrix(mu)
            matrix.data = np.ones(len(matrix.data))
            union = sparse.csr_array(union + matrix)
        union.sort_indices()
        pattern = Pattern(union.indices, union.indptr, distances(union) if positions is None else positions)
        none, empty = np.empty((0, len(union.indices))), np.empty((0, n))
        return FunctionTerms(inputs, pattern, (), none, (), empty, (), (), (), (), self.functions)


def read_inputs(given: Any, points: np.ndarray | None) -> Inputs:
    """What mu holds, from ranges by name, from parameters, or from a space: numbers, then functions at the points."""
    if given is None:
        raise InputError(f"the parameters of operator(mu) are not known. Pass {_GIVE}, in the order of mu.")
    space = parameter_space(given)
    if not (space.scalars or space.functions):
        raise InputError(f"operator(mu) has no parameters, so there is nothing to vary. Pass {_GIVE}.")
    for function in space.functions:
        if function.on == "boundary":
            raise InputError(
                f"{function.name} is a function on the boundary, but which points are on it is not known. Declare it with "
                'on="domain": its values at all points are then in mu.'
            )
        if points is None:
            raise InputError(f"{function.name} is a function: mu holds its values at the points. Give points= too.")
    scalars = tuple(map(symbol_of, space.scalars))
    functions = tuple(FunctionParameter(f.name, f.distribution, on=f.on) for f in space.functions)
    where = None if points is None else Points(points)
    return Inputs(ParameterSpace(scalars, functions), scalars, functions, where if functions else None)


def _keys(indices: np.ndarray, indptr: np.ndarray) -> np.ndarray:
    """Places row * n + column of the entries of a square sparse matrix."""
    n = len(indptr) - 1
    return np.repeat(np.arange(n), np.diff(indptr)) * n + indices
