"""The full solver's own error where it is a linear function of the solution: read off the coefficients of an answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parasol.checks import check_finite, check_shape
from parasol.errors import InputError


@dataclass(frozen=True, eq=False)
class Defects:
    """How far the full solve is from the equation's solution, relative: the largest of ‖D_f c‖ / ‖S_f c‖ over the unknowns f.

    D_f c is what a better discretisation changes in the unknown f of the field V c, up to a rotation, S_f c that unknown
    itself. An unknown that is 0 is measured against the largest.

    >>> Defects(np.array([[[0.1, 0.0]]]), np.array([[[1.0, 0.0], [0.0, 1.0]]]))(np.array([[3.0, 4.0]])).round(3)
    array([0.06])
    """

    changes: np.ndarray  # (n_unknown_functions, n_rows, n_modes): D_f
    sizes: np.ndarray  # (n_unknown_functions, n_rows, n_modes): S_f

    def __post_init__(self):
        n, _, n_modes = check_finite(check_shape(self.changes, (None, None, None), "changes"), "changes").shape
        check_finite(check_shape(self.sizes, (n, None, n_modes), "sizes"), "sizes")
        if not n:
            raise InputError("defects of no unknown function say nothing.")

    @property
    def n_modes(self) -> int:
        """Number of modes, d."""
        return self.changes.shape[2]

    def __call__(self, coefficients: np.ndarray) -> np.ndarray:
        """The estimates for coefficients (n_samples, n_modes), (n_samples,)."""
        c = np.asarray(coefficients, dtype=float)
        gaps, sizes = (np.linalg.norm(c @ rows.transpose(0, 2, 1), axis=2) for rows in (self.changes, self.sizes))
        sizes = np.where(sizes > 0, sizes, np.max(sizes, axis=0))
        return np.max(np.divide(gaps, sizes, out=np.full(gaps.shape, np.inf), where=sizes > 0), axis=0)
