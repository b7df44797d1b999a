"""Inner products of solutions: weights that make sums over nodes and times integrals over space and time."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from parasol.checks import check_finite, check_shape
from parasol.errors import InputError
from parasol.pde.model import Model
from parasol.space.volumes import node_volumes


def time_weights(times) -> np.ndarray:
    """Weights (n_times,) of the trapezoidal rule; one moment alone has weight 1.

    >>> time_weights([0.0, 1.0, 3.0])
    array([0.5, 1.5, 1. ])
    """
    times = check_finite(check_shape(times, (None,), "times"), "times")
    steps = np.diff(times)
    if not len(times) or not np.all(steps > 0):
        raise InputError(f"times must increase, got {len(times)} of them. Give them in order and each once.")
    if len(times) == 1:
        return np.ones(1)
    return (np.append(steps, 0.0) + np.insert(steps, 0, 0.0)) / 2


def value_weights(model: Model, times: ArrayLike | None = None) -> np.ndarray:
    """Weights (n_values,) of a solution's values such that Σ w u² is the integral of all unknowns squared.

    In space the volumes of the nodes' cells, in time the trapezoidal rule over the stored `times`, those of the problem
    if left out. The order is that of a solution: times, in each the unknowns, in each the nodes.

    >>> from parasol.pde.catalogue import load_problem
    >>> from parasol.pde.discretize import discretize
    >>> from parasol.space.nodes import scatter
    >>> problem = load_problem("reaction-layer")
    >>> model = discretize(problem, scatter(problem.domain, n_nodes=60))
    >>> bool(np.isclose(value_weights(model).sum(), problem.domain.volume()))
    True
    """
    in_space = np.tile(node_volumes(model.nodes), len(model.problem.names))
    if model.problem.time is None:
        if times is not None:
            raise InputError("times are for problems in time; this one is steady.")
        return in_space
    times = model.problem.times if times is None else times
    if times is None:
        raise InputError("the stored times are missing. Give the times the snapshots were solved for.")
    return np.kron(time_weights(times), in_space)
