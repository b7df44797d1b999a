"""
A random field as parameter
===========================

The boundary values are a function drawn from a random field: the parameter is not a few numbers but a vector with a value
for each boundary node, and the surrogate is a map of functions.
"""

# %%
# −Δu + u = 0 in the unit ball with u = f on its surface; f is drawn from the spherical harmonics up to degree 3.

import numpy as np

import parasol as ps

x, y, z = ps.coordinates("x y z")
u = ps.unknown("u", x, y, z)
f = ps.FunctionParameter("f", ps.SphereField(degree=3))
problem = ps.Problem(
    name="random boundary values",
    domain=ps.Ball((0, 0, 0), 1.0),
    equation=ps.Eq(-ps.laplacian(u) + u, 0),
    boundary=ps.Dirichlet(f),
)
model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=600))
print(f"mu has {model.n_parameters} numbers: f at the nodes of the boundary")

# %%
# A constant function is a parameter like any other: then u = sinh(r) / (r sinh 1), in the middle 1 / sinh 1.

constant = model.solve(np.ones(model.n_parameters))
center = constant.at([[0.0, 0.0, 0.0]])[0]
print(f"u(0) for f = 1: {center:.6f}, exactly {1 / np.sinh(1):.6f}")
assert abs(center - 1 / np.sinh(1)) < 1e-4

# %%
# The surrogate
# -------------
# The solution is linear in f, which ``learn`` sees: about as many full solves as the field has directions, here 16. Errors
# are those of functions drawn from the field. A function that the field would hardly draw is marked ``extrapolated``,
# and refused unless that is asked for.

surrogate = ps.learn(model=model, tolerance=1e-2)
report = surrogate.facts["learn"]
print(
    f"{report['solves']} full solves, {report['n_modes']} modes, discretisation error about {report['discretisation_error']:.0e}"
)

drawn = model.sample(20, rng=11)
truth = np.array([model.solve(mu).values for mu in drawn])
answers = surrogate(drawn)
errors = np.linalg.norm(answers.values - truth, axis=1) / np.linalg.norm(truth, axis=1)
print(
    f"20 functions drawn anew: error at most {errors.max():.0e}, bound at most {answers.bound.max():.0e} ({answers.bound_kind[0]})"
)
assert errors.max() <= 1e-2
assert np.all(errors <= answers.bound)

rough = np.where(np.arange(model.n_parameters) % 2, 1.0, -1.0)  # jumps from node to node
print("a function that jumps from node to node is extrapolated:", surrogate(rough, extrapolate=True).extrapolated)
assert surrogate(rough, extrapolate=True).extrapolated

# %%
# Three cuts through the middle of the ball:

surrogate(drawn[0]).plot()

# %%
# On the page functions are drawn instead of set by sliders.

ps.explore(surrogate)
