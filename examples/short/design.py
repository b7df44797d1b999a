"""
A design by gradients
=====================

A design by gradients: how much conductivity to pay for where, with JAX's derivatives of a surrogate's quantity in SciPy.
"""

import jax
import numpy as np
from scipy.optimize import minimize

import parasol as ps

jax.config.update("jax_enable_x64", True)

(x,), (a, b) = ps.coordinates("x"), ps.parameters(a=(0.2, 5.0, "log"), b=(0.2, 5.0, "log"))
u = ps.unknown("u", x)
flux = ps.by_region(left=a, otherwise=b) * ps.gradient(u)  # a rod of two materials, cooled on the left
rod = ps.Problem(
    domain=ps.Box(0, 1).regions(left=x < 0.5),
    equation=ps.Eq(-ps.divergence(flux), 1),
    boundary={"left": ps.Dirichlet(0), "right": ps.NormalFlux(0)},
    quantities={"mean": ps.Average()},
)
surrogate = ps.learn(rod, 1e-4)

quantities = surrogate.as_jax("quantities")
cost = jax.jit(jax.value_and_grad(lambda mu: quantities(mu)["mean"] + 0.2 * mu.sum()))  # warm is bad, material is dear
optimum = minimize(cost, [1.0, 1.0], jac=True, bounds=surrogate.parameters.bounds.T, method="L-BFGS-B", tol=1e-12)

# the mean is 7/24 / a + 1/24 / b
best = np.sqrt(np.array([7 / 24, 1 / 24]) / 0.2)
print(f"a, b = {optimum.x.round(4)} after {optimum.nfev} gradients, exactly {best.round(4)}")
assert np.allclose(optimum.x, best, rtol=1e-3)
