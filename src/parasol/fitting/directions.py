"""Maps of inputs that are values of functions at many points, by the few directions in which samples differ."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from parasol.checks import Progress
from parasol.fitting.maps import Pair, Recipe, check_data, fit_map
from parasol.runtime.operations import Affine
from parasol.runtime.program import Program, StoredMap

_SMALL = 1e-6  # of the largest direction: rounding, no direction


@dataclass(frozen=True)
class FewDirections:
    """Another map, of the first `n_numbers` inputs as they are and of coordinates of the others: y = f(x₁, V (x₂ − x̄₂)).

    The rows of V are the directions in which samples differ most, `most` of them at most.

    >>> from parasol.fitting.polynomial import Polynomial
    >>> x = np.linspace(-1, 1, 9)[:, None] * [1.0, 2.0, 3.0]  # three inputs, one direction
    >>> square = FewDirections(Polynomial(2)).fit(x, x[:, :1] ** 2)
    >>> bool(abs(square.predict([[0.5, 1.0, 1.5]])[0, 0] - 0.25) < 1e-9)
    True
    """

    recipe: Recipe
    n_numbers: int = 0
    most: int = 40

    def fit(
        self, x: ArrayLike, y: ArrayLike, *, validation: Pair = None, progress: Progress = None, rng: int = 0
    ) -> StoredMap:
        """Fit inputs (n, p) to outputs (n, d)."""
        x, y, validation = check_data(x, y, validation)
        k, functions = self.n_numbers, x[:, self.n_numbers :]
        _, sizes, directions = np.linalg.svd(functions - functions.mean(axis=0), full_matrices=False)
        few = directions[sizes > _SMALL * sizes[0]][: self.most] * (np.sqrt(len(x)) / (sizes[0] or 1.0))
        weights = np.zeros((k + len(few), x.shape[1]))
        weights[:k, :k], weights[k:, k:] = np.eye(k), few
        into = Program((Affine(weights, np.append(np.zeros(k), -few @ functions.mean(axis=0))),))
        seen = None if validation is None else (into(validation[0]), validation[1])
        inner = StoredMap.of(fit_map(self.recipe, into(x), y, validation=seen, progress=progress, rng=rng))
        return replace(inner, program=Program((*into.operations, *inner.program.operations)))
