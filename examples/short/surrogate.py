"""
Thirty full solves, every step by hand
======================================

Thirty full solves, a network on the floor, a bound with every answer, one file; then the same from bare data.
"""

import tempfile
from pathlib import Path

import numpy as np

import parasol as ps

problem = ps.load_problem("helmholtz")
model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=800))
truth = ps.solve_many(model, ps.sample(model, 200, design="random", rng=7))  # for comparison only

# the reduced model teaches: 4096 labels from 30 full solves
snapshots = ps.solve_many(model, ps.sample(model, 30, design="edges"))
surrogate = ps.fit(ps.reduce(model, ps.pod(snapshots, n_modes=30)))
accuracy = ps.accuracy(surrogate, truth)
print(f"{len(snapshots)} full solves: error {accuracy.mean:.1e}, projection {accuracy.projection:.1e}")
assert accuracy.mean < 1.1 * accuracy.projection < 1e-6

# every answer can say how wrong it is, and be repaired where that is not enough
answer = surrogate(truth.mus)
assert np.all(accuracy.errors <= answer.bound)
strict = surrogate(truth.mus, tolerance=3e-7)
print({method: strict.method.count(method) for method in set(strict.method)})
assert np.all(strict.bound <= 3e-7)

# one file, answers without JAX and without the solver
with tempfile.TemporaryDirectory() as folder:
    path = ps.save(surrogate, Path(folder) / "helmholtz.parasol")
    print(f"{path.stat().st_size / 1e6:.1f} MB")
    assert np.array_equal(ps.load(path)(truth.mus).values, answer.values)

# nothing but data: a fifth is kept aside, and the bound holds 95 times in 100
data = ps.fit_snapshots(truth.mus, truth.solutions, tolerance=1e-5, ranges={"a": (0.1, 4.0, "log"), "k": (0.0, 2.0)})
print(data.conformal.meaning)
fresh = ps.accuracy(data, snapshots)
bounds = data(snapshots.mus, extrapolate=True).bound  # they follow the parameters
assert np.median(bounds) < 1e-2
assert np.median(fresh.errors) < np.median(bounds)
