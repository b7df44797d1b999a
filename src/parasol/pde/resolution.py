"""Whether the nodes resolve a discrete solution: derivatives at some nodes, predicted from those at the others."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from parasol.checks import ParasolWarning
from parasol.space.neighbours import Cloud
from parasol.space.operators import differentiate

if TYPE_CHECKING:
    from parasol.pde.model import Model


def unpredicted(model: Model, unknowns: np.ndarray, noise: np.ndarray) -> float:
    """How far derivatives in the nonlinear terms are from what the scheme makes of their neighbours, of their range.

    Each node is left out once, together with others that are no neighbours of it; those next to the boundary are not
    predicted, for that would be extrapolation. A solution that is resolved has 1e-2 and less. Where a solution of the
    discrete problem approximates none of the equation it has 0.3 and more: slopes of 200 beside slopes of 5. What the
    `noise` (n_fields,) of the unknown functions can do to a derivative is allowed for.
    """
    points, domain, zero = model.nodes.points, model.nodes.domain, (0,) * model.nodes.dimension
    count, worst = 4 * model.nodes.dimension + 1, 0.0
    for part in model.terms.nonlinear:
        here = points[part.nodes]
        near, _ = Cloud(points, domain).nearest(here, min(count, len(points)))
        left = np.all(near < model.nodes.n_interior, axis=1)
        near, _ = Cloud(here, domain).nearest(here, min(count, len(here)))
        jets = np.array(part.jets(unknowns))
        field = [columns[0, 0] * len(noise) // len(unknowns) for columns in part.columns]
        rounding = [np.max(np.sum(np.abs(w), axis=1)) * noise[f] for w, f in zip(part.weights, field, strict=True)]
        span = np.maximum(np.ptp(jets, axis=1), rounding)[:, None]
        while np.any(left):
            out = np.zeros(len(here), dtype=bool)
            for i in np.flatnonzero(left):
                out[i] = not np.any(out[near[i]])
            left &= ~out
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ParasolWarning)  # said of the model's own stencils where it matters
                weights = differentiate(Cloud(here[~out], domain), here[out], [zero], model.scheme)[zero]
            gap = np.abs((weights @ jets[:, ~out].T).T - jets[:, out])
            gap = np.maximum(gap - np.array(rounding)[:, None], 0.0)
            worst = max(worst, float(np.max(np.divide(gap, span, out=np.zeros_like(gap), where=span > 0))))
    return worst
