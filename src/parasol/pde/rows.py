"""What is assembled anew for every parameter: coefficients and nonlinear terms on some rows of the system."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parasol.pde.parameters import FunctionParameter
from parasol.runtime.rows import RowFunction


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
