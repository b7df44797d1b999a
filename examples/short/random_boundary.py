"""
Boundary values from a random field
===================================

A parameter that is a function: boundary values on the sphere drawn from a Gaussian field, one factorisation for all.
"""

import numpy as np

import parasol as ps

x, y, z = ps.coordinates("x y z")
u = ps.unknown("u", x, y, z)
f = ps.FunctionParameter("f", ps.SphereField(degree=8))
problem = ps.Problem(ps.Ball((0, 0, 0), 1.0), ps.Eq(-ps.laplacian(u) + u, 0), ps.Dirichlet(f))

model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=2000))
mus = model.sample(20, rng=0)  # (20, n_boundary): one value of f per boundary node
seconds = [model.solve(mu).seconds for mu in mus]
print(f"first solve {1e3 * seconds[0]:.0f} ms, the others {1e3 * np.median(seconds[1:]):.1f} ms")

constant = model.solve(np.ones(model.n_parameters))
center = constant.at([[0.0, 0.0, 0.0]])[0]
print(f"u(0) for f = 1: {center:.6f}, exactly 1/sinh(1) = {1 / np.sinh(1):.6f}")
assert abs(center - 1 / np.sinh(1)) < 1e-6
