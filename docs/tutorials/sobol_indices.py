"""Which parameter matters: Sobol indices with SALib from 6144 answers of a surrogate."""

from SALib.analyze import sobol
from SALib.sample.sobol import sample

import parasol as ps

(x,), (a, b) = ps.coordinates("x"), ps.parameters(a=(0.5, 2.0), b=(0.5, 2.0))
u = ps.unknown("u", x)
flux = ps.by_region(left=a, otherwise=b) * ps.gradient(u)  # a rod of two materials, cooled on the left
rod = ps.Problem(
    domain=ps.Box(0, 1).regions(left=x < 0.5),
    equation=ps.Eq(-ps.divergence(flux), 1),
    boundary={"left": ps.Dirichlet(0), "right": ps.NormalFlux(0)},
    quantities={"mean": ps.Average()},
)
surrogate = ps.learn(rod, 1e-4)

space = {"num_vars": 2, "names": surrogate.parameters.names, "bounds": surrogate.parameters.bounds.T}
indices = sobol.analyze(space, surrogate(sample(space, 1024, seed=0)).quantities["mean"], seed=0)

# the mean is 7/24 / a + 1/24 / b, so that variances are as 49 to 1
print(f"a: {indices['S1'][0]:.4f}, b: {indices['S1'][1]:.4f}")
assert abs(indices["S1"][0] - 0.98) < 0.005
assert abs(indices["ST"][1] - 0.02) < 0.005
