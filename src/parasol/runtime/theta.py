"""The functions of the parameters in an affine sum, evaluated with NumPy alone where they are formulas."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from parasol.errors import InputError
from parasol.runtime.program import Program
from parasol.runtime.rows import RowFunction, ScalarFunction


@dataclass(frozen=True, eq=False)
class Theta:
    """The functions θ_q(μ) of one sum: formulas in the scalars, coefficients at single rows, then what was fitted to samples."""

    formulas: tuple[ScalarFunction, ...]
    rows: tuple[tuple[RowFunction, np.ndarray | None], ...] = ()  # with the places of function values in mu, or None
    n_scalars: int = 0
    fitted: Program | None = field(default=None, metadata={"optional": True})  # of the scalars

    def __post_init__(self):
        if self.fitted is not None and self.fitted.n_inputs != self.n_scalars:
            raise InputError(f"a fitted theta takes {self.fitted.n_inputs} numbers for {self.n_scalars} parameters.")

    @property
    def n_terms(self) -> int:
        """Number of functions, Q."""
        n_fitted = 0 if self.fitted is None else self.fitted.n_outputs
        return len(self.formulas) + sum(len(function.columns[0]) for function, _ in self.rows) + n_fitted

    @property
    def constant(self) -> np.ndarray:
        """(Q,) bool: whose formula holds no parameter. Decided from the expression: samples may miss where it changes."""
        formulas = [function.constant for function in self.formulas]
        return np.array([*formulas, *[False] * (self.n_terms - len(formulas))], dtype=bool)

    def __call__(self, mus: np.ndarray) -> np.ndarray:
        """θ_q at parameter vectors (n_samples, n_parameters): (n_samples, Q)."""
        out = np.empty_like(mus, dtype=float, order="C", shape=(len(mus), self.n_terms))
        scalars = mus[:, : self.n_scalars].T
        for q, formula in enumerate(self.formulas):
            simple = getattr(formula, "simple", None)  # most are: a parameter, or 1
            out[:, q] = formula(*scalars) if simple is None else scalars[simple] if type(simple) is int else simple
        start = len(self.formulas)
        for function, places in self.rows:
            stop = start + len(function.columns[0])
            values = function(mus, 0.0)
            out[:, start:stop] = values if places is None else values * mus[:, places]
            start = stop
        if self.fitted is not None:
            out[:, start:] = self.fitted(mus[:, : self.n_scalars])
        return out
