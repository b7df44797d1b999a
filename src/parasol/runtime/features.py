"""From parameters to what maps are trained on: numbers in [−1, 1], logarithms where a range spans decades."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from parasol.errors import InputError
from parasol.runtime.operation import Operation
from parasol.runtime.operations import Log, Scale
from parasol.runtime.parameters import ParameterSpace
from parasol.runtime.program import Program

_DECADE = 10.0


@dataclass(frozen=True, eq=False)
class Features:
    """x = (t − middle) / half with t = μ or log μ for scalars; values of functions divided by one number."""

    logs: np.ndarray  # (n_parameters,) bool
    shift: np.ndarray  # (n_parameters,)
    scale: np.ndarray  # (n_parameters,): x = (t − shift) * scale

    def __post_init__(self):
        for name in ("logs", "shift", "scale"):
            value = getattr(self, name)
            if np.shape(value) != np.shape(self.shift) or np.ndim(value) != 1 or not np.all(np.isfinite(value)):
                raise InputError(f"{name} of the features does not fit the others.")
        if np.asarray(self.logs).dtype != bool:
            raise InputError("logs of the features must be truth values.")
        for name in ("shift", "scale"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=float))

    def __call__(self, mus: np.ndarray) -> np.ndarray:
        """Features (n_samples, n_parameters) of parameter vectors of the same shape."""
        return self._program(np.asarray(mus, dtype=float))

    @cached_property
    def operations(self) -> tuple[Operation, ...]:
        """How they are computed: what a map's own operations come after."""
        logs = (Log(np.flatnonzero(self.logs)),) if self.logs.any() else ()
        return (*logs, Scale(self.scale, self.shift))

    @cached_property
    def _program(self) -> Program:
        return Program(self.operations)

    def slope(self, mus: np.ndarray) -> np.ndarray:
        """dx/dμ, diagonal, (n_samples, n_parameters)."""
        out = np.broadcast_to(self.scale, mus.shape).copy()
        out[:, self.logs] /= mus[:, self.logs]
        return out


def features_of(parameters: ParameterSpace, mus: np.ndarray, *, more_logs: Collection[int] = ()) -> Features:
    """Features of a space's parameter vectors, logarithmic where the parameter's scale says so, and in the columns `more_logs`.

    `mus` (n_samples, n_parameters) says how large the values of function parameters are.

    >>> from parasol.pde.parameters import parameters
    >>> space = ParameterSpace(parameters(a=(0.1, 4.0, "log"), k=(0.0, 2.0)))
    >>> features_of(space, np.empty((0, 2)))(np.array([[4.0, 0.0]])).round(12)
    array([[ 1., -1.]])
    """
    scalars = parameters.scalars
    n = mus.shape[1]
    logs = np.zeros(n, dtype=bool)
    shift, scale = np.zeros(n), np.ones(n)
    for j, p in enumerate(scalars):
        logs[j] = p.scale == "log" or j in more_logs
        low, high = (np.log(p.low), np.log(p.high)) if logs[j] else (p.low, p.high)
        shift[j], scale[j] = (low + high) / 2, 2 / (high - low)
    if n > len(scalars) and len(mus):
        scale[len(scalars) :] = 1.0 / (np.std(mus[:, len(scalars) :]) or 1.0)
    return Features(logs, shift, scale)


def wide_columns(parameters: ParameterSpace) -> list[int]:
    """Columns of scalars that are not on a logarithmic scale, but positive and of more than a decade.

    >>> from parasol.pde.parameters import parameters
    >>> wide_columns(ParameterSpace(parameters(a=(0.1, 4.0), b=(0.1, 4.0, "log"), k=(0.0, 2.0), s=(1.0, 2.0))))
    [0]
    """
    wide = (p.scale != "log" and p.low > 0 and p.high >= _DECADE * p.low for p in parameters.scalars)
    return [j for j, is_wide in enumerate(wide) if is_wide]
