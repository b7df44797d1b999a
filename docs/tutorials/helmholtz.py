"""
Helmholtz, from equation to page
================================

A diffracted wave on a flower-shaped domain, for any of two parameters: written down, solved once, learned, asked, checked
against full solves it has not seen, and given away as a page with sliders.
"""

# %%
# The equation is −u_xx − a u_yy − k u = −10 sin(8x(y − 1)) with u = 0 on the boundary. Parameters have ranges; what is
# learned is valid inside this box, and refused outside.

import numpy as np
from sympy import sin

import parasol as ps

x, y = ps.coordinates("x y")
a, k = ps.parameters(a=(0.1, 4.0), k=(0.0, 2.0))
u = ps.unknown("u", x, y)

helmholtz = ps.Problem(
    name="helmholtz",
    domain=ps.Star("0.8 + 0.1*(sin(6*theta) + sin(3*theta))"),
    equation=ps.Eq(-u.diff(x, 2) - a * u.diff(y, 2) - k * u, -10 * sin(8 * x * (y - 1))),
    boundary=ps.Dirichlet(0),
)

# %%
# One full solve
# --------------
# ``discretize`` chooses nodes, kernel and stencils, and finds from the equation that A(μ) = A0 + a A1 + k A2. Every choice
# can be made by hand; the second model has those of the paper that parasol began with.

model = ps.discretize(helmholtz)
papers = ps.discretize(
    helmholtz,
    ps.scatter(helmholtz.domain, n_nodes=1036, n_boundary=177, method="front", rng=0),
    kernel=ps.space.IMQ(3.0),
    degree=-1,
    stencil_size=50,
)
print("A(mu) =", " + ".join(f"{theta}·A{q}" for q, theta in enumerate(model.terms.operator_thetas)))
for solver in (papers, model):
    solution = solver.solve({"a": 0.927, "k": 1.697})
    print(
        f"{solver.n_nodes} nodes: largest u {solution.values.max():.4f}, estimated discretisation error {solution.discretisation:.0e}"
    )
assert [str(theta) for theta in model.terms.operator_thetas] == ["1", "a", "k"]
assert abs(solution.values.max() - 0.2795) < 1e-3

# %%
# The surrogate
# -------------
# ``tolerance`` is a relative error in the mean square over the nodes, against the full solve. ``learn`` decides how many
# full solves, modes and which map; the report says what it did.

surrogate = ps.learn(helmholtz, tolerance=1e-2)
report = surrogate.facts["learn"]
print(f"{report['solves']} full solves with {report['n_nodes']} nodes, {report['n_modes']} modes, met: {report['met']}")

# %%
# An answer has values at nodes, an estimate of its error that is near the error itself, and a bound with a word for how
# it is known. Here the word is *probable*: the bound holds with the stated probability.

answer = surrogate(a=0.927, k=1.697)
print(
    f"estimate {answer.estimate:.1e}, bound {answer.bound:.1e} ({answer.bound_kind}, probability {answer.probability:.4f})"
)
assert answer.bound <= 1e-2

# %%
answer.plot()

# %%
# Is it true?
# -----------
# Errors at thirty parameters that nothing was made from, by full solves with the surrogate's own nodes.

fresh = ps.solve_many(surrogate.solver, ps.sample(surrogate.parameters, 30, design="random", rng=5))
measured = ps.accuracy(surrogate, fresh)
answers = surrogate(fresh.mus)
ratio = answers.estimate / measured.errors
print(f"error: mean {measured.mean:.1e}, largest {measured.errors.max():.1e}; bound at most {answers.bound.max():.1e}")
print(f"estimate over error: {ratio.min():.2f} to {ratio.max():.2f}")
assert np.all(measured.errors <= answers.bound)
assert measured.errors.max() <= 1e-2
assert 0.3 < ratio.min() < ratio.max() < 3

# %%
# To others
# ---------
# ``ps.save(surrogate, "helmholtz.parasol")`` writes one file that loads with NumPy alone. With a path, ``explore`` writes
# one HTML file that opens from a mail attachment; this is that page.

ps.explore(surrogate)
