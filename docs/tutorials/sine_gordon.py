"""
Time: the sine-Gordon equation
==============================

A damped nonlinear wave, u_tt + βu_t = Δu + ϱ sin u, declared like everything else: time steps and Newton's method are the
program's business, and the surrogate answers whole trajectories.
"""

# %%
# ``initial`` is the state and its velocity, ``times`` are those that are stored. The nodes are a coarse lattice here, so
# that the tutorial takes seconds, with constant steps; the catalogue's problem ``sine-gordon`` has the paper's nodes.

import numpy as np
from sympy import atan, exp, sech, sin

import parasol as ps

x, y = ps.coordinates("x y")
t = ps.time()
beta, rho = ps.parameters(beta=(0.01, 0.1), rho=(-1.5, -0.5))
u = ps.unknown("u", x, y, t)

soliton = ps.Problem(
    name="sine-gordon",
    domain=ps.Box((-7.0, -7.0), (7.0, 7.0)),
    equation=ps.Eq(u.diff(t, 2) + beta * u.diff(t), ps.laplacian(u) + rho * sin(u)),
    boundary=ps.Neumann(0),
    initial=(4 * atan(exp(x + 1 - 2 * sech(y))), 0),
    times=np.linspace(0, 5, 6),
    settings={"default": ps.Settings(step=0.1)},
)
model = ps.discretize(soliton, ps.lattice(soliton.domain, 25))
evolution = model.solve({"beta": 0.05, "rho": -1.0})
print(f"{evolution.n_steps} steps of {evolution.integrator}, values {evolution.values.shape} = (times, nodes)")
print(f"estimated error in space and time: {evolution.discretisation:.1e}")
assert evolution.values.shape == (6, 625)

# %%
# Learned from trajectories
# -------------------------
# The problem is nonlinear, so that the bound is *calibrated*: of new parameters, drawn evenly from the box, 95 in 100 have an
# error below it. It says nothing about a particular one. The whole trajectory counts as one vector.

surrogate = ps.learn(model=model, tolerance=2e-2)
report = surrogate.facts["learn"]
print(
    f"{report['solves']} trajectories, {report['n_modes']} modes, bound {report['bound']:.1e} at level {report['level']:g}"
)
assert report["met"]

# %%
# On trajectories it has not seen:

mus = ps.sample(surrogate.parameters, 20, design="random", rng=3)
truth = np.array([model.solve(mu).flat for mu in mus])
answers = surrogate(mus)
errors = np.linalg.norm(answers.values - truth, axis=1) / np.linalg.norm(truth, axis=1)
print(
    f"errors: median {np.median(errors):.1e}, largest {errors.max():.1e}; {np.sum(errors <= answers.bound)} of 20 below their bound"
)
assert np.median(errors) < 2e-2
assert np.sum(errors <= answers.bound) >= 16  # fewer with a probability of 0.3 %, if 95 in 100 is right

# %%
surrogate(beta=0.05, rho=-1.0).plot()

# %%
# The surrogate is better than the solver here: its error is far below the discretisation error that was estimated above.
# A tolerance below that would be precisely wrong; ``answer.total`` is the sum of both.

answer = surrogate(beta=0.05, rho=-1.0)
print(f"bound {answer.bound:.1e}, discretisation {answer.discretisation:.1e}, total {answer.total:.1e}")
ps.explore(surrogate)
