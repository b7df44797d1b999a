"""What is evaluated anew for every parameter: coefficients and nonlinear terms on some rows of the system."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from parasol.checks import ParasolError
from parasol.formulas import Formula

if TYPE_CHECKING:  # a loaded surrogate evaluates rows without SymPy
    from parasol.expressions import Function
    from parasol.pde.parameters import FunctionParameter


@dataclass(frozen=True, eq=False)
class RowFunction:
    """An expression in coordinates, normals, scalar parameters, time and further columns, at the points of some rows."""

    function: Function | Formula  # of coordinates and normals, then the scalars, the time if used, and further columns
    columns: tuple[np.ndarray, ...]  # coordinates and normals, each (n_rows,)
    places: tuple[int, ...]  # of the scalars in a parameter vector
    n_times: int  # how often the time is among the symbols: 0 or 1

    def __call__(self, mu: np.ndarray, t: float, *values: np.ndarray) -> np.ndarray:
        """(n_rows,) at one parameter; for parameters (n_samples, n_parameters) it is (n_samples, n_rows)."""
        scalars = [mu[..., j, None] for j in self.places]
        out = self.function(*self.columns, *scalars, *[t] * self.n_times, *values)
        if not values and not np.all(np.isfinite(out)):
            bad = np.count_nonzero(~np.isfinite(out))
            raise ParasolError(f"the coefficient {self.function.expression} is not finite at {bad} nodes.")
        return out if mu.ndim == 1 else np.broadcast_to(out, (len(mu), out.shape[-1]))

    def in_time(self, mu: np.ndarray, times: np.ndarray, *values: float) -> np.ndarray:
        """(n_times, n_rows) at one parameter, with the same further values in all rows."""
        scalars = [mu[j] for j in self.places]
        columns = [column[None] for column in self.columns]
        return self.function(*columns, *scalars, *[times[:, None]] * self.n_times, *values)

    def take(self, rows: np.ndarray) -> RowFunction:
        """The same at some of the rows only."""
        return replace(self, columns=tuple(column[rows] for column in self.columns))


@dataclass(frozen=True, eq=False)
class Varying:
    """A contribution that is assembled anew for every mu: coefficient(x, t, mu) · f(x) · values at `positions`."""

    coefficient: RowFunction
    function: FunctionParameter | None
    nodes: np.ndarray  # (n_rows,) node whose value of the function is meant
    positions: np.ndarray  # entries of the matrix data (n_rows, stencil_size), or of the load (n_rows,)
    values: np.ndarray  # like positions

    def take(self, rows: np.ndarray) -> Varying:
        """The contribution of some of the rows only."""
        return Varying(
            self.coefficient.take(rows), self.function, self.nodes[rows], self.positions[rows], self.values[rows]
        )


@dataclass(frozen=True, eq=False)
class NonlinearRows:
    """The nonlinear part of one equation on its rows, as a function of derivatives of the unknowns (jets)."""

    value: RowFunction  # (mu, t, *jets, *functions) -> (n_rows,)
    slopes: tuple[RowFunction, ...]  # its derivative by each jet
    functions: tuple[FunctionParameter, ...]
    nodes: np.ndarray  # (n_rows,) node whose values of the functions are meant
    rows: np.ndarray  # (n_rows,)
    columns: tuple[np.ndarray, ...]  # of each jet: (n_rows, stencil_size) unknowns
    weights: tuple[np.ndarray, ...]  # of each jet: (n_rows, stencil_size)
    positions: tuple[np.ndarray, ...]  # of each jet: entries of the matrix data

    def jets(self, u: np.ndarray) -> list[np.ndarray]:
        """The derivatives of u at the rows."""
        return [np.einsum("ij,ij->i", w, u[c]) for w, c in zip(self.weights, self.columns, strict=True)]

    def take(self, rows: np.ndarray) -> NonlinearRows:
        """The same on some of the rows only."""
        return NonlinearRows(
            self.value.take(rows),
            tuple(slope.take(rows) for slope in self.slopes),
            self.functions,
            self.nodes[rows],
            self.rows[rows],
            tuple(c[rows] for c in self.columns),
            tuple(w[rows] for w in self.weights),
            tuple(p[rows] for p in self.positions),
        )
