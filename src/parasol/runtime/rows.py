"""Coefficients of an equation at the points of some rows, evaluated anew for every parameter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from parasol.errors import SolveFailed


class ScalarFunction(Protocol):
    """A function of numbers or arrays that knows the expression it computes and whether that holds a parameter."""

    @property
    def expression(self) -> Any:
        """What it computes."""
        ...

    @property
    def constant(self) -> bool:
        """Whether no parameter occurs in it."""
        ...

    def __call__(self, *values: Any) -> Any:
        """The values of the expression, broadcast."""
        ...


@dataclass(frozen=True, eq=False)
class RowFunction:
    """An expression in coordinates, normals, scalar parameters, time and further columns, at the points of some rows."""

    function: ScalarFunction  # of coordinates and normals, then the scalars, the time if used, and further columns
    columns: tuple[np.ndarray, ...]  # coordinates and normals, each (n_rows,)
    places: tuple[int, ...]  # of the scalars in a parameter vector
    n_times: int  # how often the time is among the symbols: 0 or 1

    def __call__(self, mu: np.ndarray, t: float, *values: np.ndarray) -> np.ndarray:
        """(n_rows,) at one parameter; for parameters (n_samples, n_parameters) it is (n_samples, n_rows)."""
        scalars = [mu[..., j, None] for j in self.places]
        out = self.function(*self.columns, *scalars, *[t] * self.n_times, *values)
        if not values and isinstance(out, np.ndarray) and not np.all(np.isfinite(out)):
            bad = np.count_nonzero(~np.isfinite(out))
            raise SolveFailed(f"the coefficient {self.function.expression} is not finite at {bad} nodes.")
        return out if mu.ndim == 1 else np.broadcast_to(out, (len(mu), out.shape[-1]))

    def in_time(self, mu: np.ndarray, times: np.ndarray, *values: float) -> np.ndarray:
        """(n_times, n_rows) at one parameter, with the same further values in all rows."""
        scalars = [mu[j] for j in self.places]
        columns = [column[None] for column in self.columns]
        return self.function(*columns, *scalars, *[times[:, None]] * self.n_times, *values)

    def take(self, rows: np.ndarray) -> RowFunction:
        """The same at some of the rows only."""
        return replace(self, columns=tuple(column[rows] for column in self.columns))
