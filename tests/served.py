"""Small surrogates for the tests of the server."""

from dataclasses import replace
from functools import cache

import numpy as np

import parasol as ps
from parasol.runtime.quantities import quantities_of
from parasol.runtime.surrogate import Layout


@cache
def steady():
    """Helmholtz with proven bounds and two quantities: the mean and the last value."""
    problem = ps.load_problem("helmholtz")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=250))
    reduced = ps.reduce(model, ps.pod(ps.solve_many(model, ps.sample(model, 20)), n_modes=8))
    surrogate = ps.fit(reduced, "polynomial", n_labels=300)
    modes = surrogate.basis.modes
    weights = np.stack([np.full(len(modes), 1 / len(modes)), np.eye(len(modes))[-1]])
    readings = quantities_of(("mean", "last"), weights, modes, surrogate.basis.weights)
    return replace(surrogate, quantities=readings)


@cache
def in_time():
    """Two unknowns at five nodes and three times, of one parameter; nothing is known about errors."""
    mus = np.linspace(1, 2, 12)[:, None]
    directions = np.linalg.qr(np.random.default_rng(0).normal(size=(30, 3)))[0]
    fields = np.column_stack([mus, mus**2, np.ones(12)]) @ directions.T
    surrogate = ps.fit_snapshots(mus, fields, "polynomial", n_modes=3, level=None)
    layout = Layout(("p", "q"), np.random.default_rng(1).random((5, 2)), times=np.array([0.0, 0.5, 1.0]))
    return replace(surrogate, layout=layout)
