"""
Uncertainty and Sobol indices
=============================

Conductivities that are known up to a distribution: how uncertain is the mean temperature, and which of them matters? A
hundred thousand answers of a surrogate, against formulas.
"""

# %%
# A rod of two materials, cooled on the left. A parameter may be declared by a distribution of SciPy; its range leaves out a
# millionth of it.

import numpy as np
from matplotlib.figure import Figure
from SALib.analyze import sobol
from SALib.sample.sobol import sample
from scipy import stats

import parasol as ps

x, a, b = *ps.coordinates("x"), *ps.parameters(a=stats.norm(1.0, 0.05), b=(0.5, 2.0))
u = ps.unknown("u", x)
flux = ps.by_region(left=a, otherwise=b) * ps.gradient(u)
rod = ps.Problem(
    name="rod",
    domain=ps.Box(0, 1).regions(left=x < 0.5),
    equation=ps.Eq(-ps.divergence(flux), 1),
    boundary={"left": ps.Dirichlet(0), "right": ps.NormalFlux(0)},
    quantities={"mean": ps.Average()},
)
surrogate = ps.learn(rod, 1e-4)

# %%
# Uncertainty
# -----------
# ``design="distribution"`` draws each parameter from its distribution, b evenly. The mean is 7/24 / a + 1/24 / b.
# What Monte Carlo leaves is the sampling error, not the surrogate's: its bound is below 1e-4.

drawn = ps.sample(surrogate.parameters, 100_000, design="distribution", rng=0)
means = surrogate(drawn).quantities["mean"]
exact = 7 / 24 / drawn[:, 0] + 1 / 24 / drawn[:, 1]
print(
    f"mean temperature {means.mean():.4f} ± {means.std():.4f}; surrogate off by {np.abs(means / exact - 1).max():.0e} at most"
)
assert np.abs(means / exact - 1).max() < 1e-4

figure = Figure(figsize=(6.4, 3.6), layout="constrained")
axes = figure.subplots()
axes.hist(means, bins=80, density=True, color="#3b6ea5")
axes.set(xlabel="mean temperature", ylabel="density")
figure  # noqa: B018

# %%
# Which parameter matters
# -----------------------
# Sobol indices with SALib, a and b both even in 0.8 … 1.2, from 6144 answers.

space = {"num_vars": 2, "names": surrogate.parameters.names, "bounds": [[0.8, 1.2], [0.8, 1.2]]}
indices = sobol.analyze(space, surrogate(sample(space, 1024, seed=0)).quantities["mean"], seed=0)

# the two terms are alike but for their sizes, so that variances are as 49 to 1
print(f"a: {indices['S1'][0]:.4f}, b: {indices['S1'][1]:.4f}; exactly 0.98 and 0.02")
assert abs(indices["S1"][0] - 0.98) < 0.005
assert abs(indices["ST"][1] - 0.02) < 0.005

# %%
ps.explore(surrogate)
