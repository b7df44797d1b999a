"""
A Bayesian inverse problem
==========================

A Bayesian inverse problem: two conductivities from five noisy temperatures, by MCMC on a surrogate, against exact quadrature.
"""

import emcee
import numpy as np

import parasol as ps

(x,), (a, b) = ps.coordinates("x"), ps.parameters(a=(0.5, 2.0), b=(0.5, 2.0))
u = ps.unknown("u", x)
flux = ps.by_region(left=a, otherwise=b) * ps.gradient(u)  # a rod of two materials, cooled on the left
boundary = {"left": ps.Dirichlet(0), "right": ps.NormalFlux(0)}
rod = ps.Problem(ps.Box(0, 1).regions(left=x < 0.5), ps.Eq(-ps.divergence(flux), 1), boundary)
sensors, noise = np.array([0.2, 0.4, 0.6, 0.8, 1.0]), 0.01


def exact(a, b):
    """Temperatures at the sensors, from the formula."""
    t = sensors - sensors**2 / 2
    return np.where(sensors < 0.5, t / a, 0.375 / a + (t - 0.375) / b)


rng = np.random.default_rng(0)
seen = exact(1.0, 1.2) + noise * rng.standard_normal(5)

surrogate = ps.learn(rod, 1e-4).restricted(points=sensors[:, None])


def log_posterior(mus):
    """Log density at (n, 2), uniform in the box before anything was seen."""
    gaps = (surrogate(mus, extrapolate=True).values - seen) / noise
    return np.where(surrogate.parameters.inside(mus), -0.5 * np.sum(gaps**2, axis=1), -np.inf)


sampler = emcee.EnsembleSampler(32, 2, log_posterior, vectorize=True)
sampler.random_state = np.random.RandomState(0).get_state()
sampler.run_mcmc(rng.uniform(0.9, 1.1, (32, 2)), 1000)
chain = sampler.get_chain(discard=200, flat=True)

# the same by quadrature of the formula
grid = np.stack(np.meshgrid(*2 * [np.linspace(0.5, 2.0, 401)]), axis=-1).reshape(-1, 2)
misfit = np.sum(((exact(*grid.T[:, :, None]) - seen) / noise) ** 2, axis=1)
weights = np.exp(-0.5 * (misfit - misfit.min()))
mean = weights @ grid / weights.sum()
spread = np.sqrt(weights @ (grid - mean) ** 2 / weights.sum())
for i, name in enumerate("ab"):
    print(f"{name} = {chain[:, i].mean():.3f} ± {chain[:, i].std():.3f}, exactly {mean[i]:.3f} ± {spread[i]:.3f}")
assert np.all(np.abs(chain.mean(axis=0) - mean) < 0.1 * spread)
assert np.all(np.abs(chain.std(axis=0) / spread - 1) < 0.1)
