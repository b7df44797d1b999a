"""
An inverse problem
==================

(a, k) of the Helmholtz equation from ten noisy values: by gradients and by MCMC on a surrogate, with the surrogate's own
error counted, compared with what full solves say.
"""

import time

import emcee
import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import least_squares

import parasol as ps

problem = ps.load_problem("helmholtz")
model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=800))
space, truth = problem.parameters, np.array([0.9, 1.4])

# %%
# What is seen
# ------------
# Ten sensors, at nodes; what they see comes from another, finer discretisation, with noise of
# 1 % of the largest value.

rng = np.random.default_rng(5)
sensors = model.nodes.points[rng.choice(model.nodes.n_interior, 10, replace=False)]
fine = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=1500, rng=1))
clean = fine.solve(truth).at(sensors)
noise = 0.01 * np.abs(fine.solve(truth).values).max()
seen = clean + noise * rng.standard_normal(10)

# %%
# The surrogate
# -------------
# 30 full solves, a reduced model, a map; then values at the sensors only.

start = time.perf_counter()
snapshots = ps.solve_many(model, ps.sample(model, 30, design="edges"))
surrogate = ps.fit(ps.reduce(model, ps.pod(snapshots, n_modes=24)), "polynomial", n_labels=1000)
at_sensors = surrogate.restricted(points=sensors)
built = time.perf_counter() - start

# %%
# The surrogate errs too: at a node by no more than its proven bound for the whole field. We count that as a second,
# independent error of each sensor, so a coarse surrogate would give a wider answer, not a wrong one.

slack = surrogate(ps.sample(model, 200, rng=2)).bounds.values.max()
deviation = np.hypot(noise, slack)
print(f"noise {noise:.1e}, bound of the surrogate {slack:.1e}")
assert slack < 0.1 * noise

# %%
# By gradients
# ------------
# Gauss-Newton steps with the exact derivatives of the surrogate, and the same through full solves, which is what the
# surrogate replaces; their derivatives are by differences.

low, high = space.bounds
middle = space.vector({})
start = time.perf_counter()
found = least_squares(
    lambda mu: (at_sensors(mu).values - seen) / deviation,
    middle,
    lambda mu: at_sensors.gradient(mu) / deviation,
    bounds=(low, high),
)
by_gradient = time.perf_counter() - start

start = time.perf_counter()
full = least_squares(lambda mu: (model.solve(mu).at(sensors) - seen) / deviation, middle, bounds=(low, high))
by_solves = time.perf_counter() - start
laplace = np.sqrt(np.diag(np.linalg.inv(full.jac.T @ full.jac)))  # standard deviations, if all were linear
print(
    f"gradient: a, k = {found.x.round(4)} in {1e3 * by_gradient:.0f} ms; full solves: {full.x.round(4)} in {by_solves:.1f} s"
)
assert np.all(np.abs(found.x - full.x) < 0.01 * laplace)
assert np.all(np.abs(found.x - truth) < 3 * laplace)

# %%
# By MCMC
# -------
# All walkers in one call; the prior is uniform in the box, on the parameters' own scales.


def log_posterior(unit, answers=None):
    """Log density at positions (n, 2) in the unit square."""
    inside = np.all((unit >= 0) & (unit <= 1), axis=1)
    values = at_sensors(space.from_unit(np.clip(unit, 0, 1))).values if answers is None else answers
    return np.where(inside, -0.5 * np.sum(((values - seen) / deviation) ** 2, axis=1), -np.inf)


start = time.perf_counter()
sampler = emcee.EnsembleSampler(32, 2, log_posterior, vectorize=True)
sampler.random_state = np.random.RandomState(0).get_state()  # emcee knows the old generator only
sampler.run_mcmc(space.to_unit(found.x[None]) + 0.01 * rng.standard_normal((32, 2)), 1000)
unit = sampler.get_chain(discard=200, flat=True)
chain = space.from_unit(unit)
by_mcmc = time.perf_counter() - start
mean, spread = chain.mean(axis=0), chain.std(axis=0)
print(
    f"posterior: a = {mean[0]:.3f} ± {spread[0]:.3f}, k = {mean[1]:.2f} ± {spread[1]:.2f}, {sampler.get_chain(flat=True).shape[0]} samples in {by_mcmc:.1f} s"
)
assert np.all(np.abs(mean - truth) < 3 * spread)
assert np.all((spread > 0.7 * laplace) & (spread < 1.4 * laplace))

# %%
# What full solves would have said: weigh a few of the samples by their exact densities.

few = unit[:: len(unit) // 150][:150]
exact = np.array([model.solve(mu).at(sensors) for mu in space.from_unit(few)])
weights = np.exp(log_posterior(few, exact) - log_posterior(few))
shift = (weights / weights.sum() - 1 / len(few)) @ space.from_unit(few)
print(
    f"full solves move the mean by {np.abs(shift / spread).max():.1e} standard deviations; the surrogate took {built:.1f} s"
)
assert np.all(np.abs(shift) < 0.01 * spread)

# %%
# The posterior:

figure = Figure(figsize=(6.4, 4.4), layout="constrained")
axes = figure.subplots()
axes.scatter(*chain[::10].T, s=3, alpha=0.3, color="#3b6ea5", label="posterior")
axes.plot(*truth, "k+", ms=14, mew=2, label="truth")
axes.set(xlabel="a", ylabel="k")
axes.legend(frameon=False)
figure  # noqa: B018

# %%
# The surrogate that was asked:

ps.explore(surrogate)
