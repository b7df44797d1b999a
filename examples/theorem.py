"""
The theorem, for mathematicians
===============================

The paper proves that a ReLU network of bounded size maps parameters to reduced coefficients within any accuracy. Here that
network is built from the equation, counted before and tested after; nothing is trained.
The :doc:`proof, corrected </theorem>` has the statements and constants.
"""

import numpy as np

import parasol as ps
from parasol_lab import theorem

problem = ps.load_problem("helmholtz")
model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=600))
basis = ps.pod(ps.solve_many(model, ps.sample(model, 30)), n_modes=4)

# %%
# Counted before it is built
# --------------------------
# The construction approximates products by sawtooth functions, the inverse of BᵀB by a Neumann series of such products,
# and composes them. Its size follows from the equation's constants: α and β bound the singular values of B over the
# box, proven by enclosures on cells that cover it. What the paper's proof asks for, and what is enough:

paper = theorem.plan_construction(model, basis, accuracy=1e-2, powers="paper", compress=False, precondition="none")
ours = theorem.plan_construction(model, basis, accuracy=1e-2)
for name, plan in (("the paper's proof", paper), ("ours", ours)):
    print(
        f"{name}: {plan.system.n_rows} rows, condition {plan.stability.kappa:.0f}, {plan.size.depth} layers, "
        f"{plan.size.n_weights:,} weights, {plan.size.levels} sawtooth levels"
    )
assert not paper.representable  # more levels than float64 has digits for
assert ours.representable
assert ours.size.n_weights < paper.size.n_weights / 20

# %%
# Built
# -----
# It is a surrogate like any other, and has as many layers and weights as were counted.

surrogate = theorem.construct(model, basis, accuracy=1e-2, construction="shared")
network = surrogate.map.network
assert (network.depth, network.n_weights) == (ours.size.depth, ours.size.n_weights)

# %%
# Tested against least squares by orthogonal factors, at the corners of the box and at 300 random parameters:

mus = np.vstack([problem.parameters.grid(2, 2), ps.sample(model, 300, design="random")])
exact = ours.system.coefficients(mus)
error = np.max(np.linalg.norm(surrogate.coefficients(mus) - exact, axis=1)) / np.max(np.linalg.norm(exact, axis=1))
print(f"largest error: {error:.1e}, asked for {ours.accuracy:.0e}; float64 would reach {ours.smallest_accuracy:.0e}")
assert error <= 1e-2

# %%
# The smallest
# ------------
# A Chebyshev series of c(μ), whose residual is bounded on cells that cover the box, needs far fewer weights for the same
# proven accuracy. It is what ``construct`` builds when nothing else is asked for.

smallest = theorem.construct(model, basis, accuracy=1e-2)
error = np.max(np.linalg.norm(smallest.coefficients(mus) - exact, axis=1)) / np.max(np.linalg.norm(exact, axis=1))
print(f"{smallest.map.network.n_weights:,} weights, largest error: {error:.1e}")
assert error <= 1e-2
assert smallest.map.network.n_weights < network.n_weights / 50

# %%
# The network's answer, in float64. The weights are rational numbers that the equation determines.

surrogate([0.927, 1.697]).plot()

# %%
# The smallest network on a page:

surrogate = smallest
ps.explore(surrogate)

# %%
# How the number of weights grows with the accuracy and with the number of modes, beside the bounds of the theorem, is
# counted by ``parasol theorem helmholtz --modes 5 --accuracy 1e-2 --out theorem.png``.
