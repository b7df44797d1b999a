"""The paper's theorem as a network one can hold: built from the equation, counted before, tested after."""

import numpy as np

import parasol as ps
from parasol_lab import theorem

problem = ps.load_problem("helmholtz")
model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=600))
basis = ps.pod(ps.solve_many(model, ps.sample(model, 30)), n_modes=4)

# what the paper's proof asks for, and what is enough: nothing is built yet
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

# built, it is a surrogate like any other, only that nothing was trained
surrogate = theorem.construct(model, basis, accuracy=1e-2)
network = surrogate.map.network
assert (network.depth, network.n_weights) == (ours.size.depth, ours.size.n_weights)

mus = np.vstack([problem.parameters.grid(2, 2), ps.sample(model, 300, design="random")])
exact = ours.system.coefficients(mus)  # least squares by orthogonal factors
error = np.max(np.linalg.norm(surrogate.coefficients(mus) - exact, axis=1)) / np.max(np.linalg.norm(exact, axis=1))
print(f"largest error: {error:.1e}, asked for {ours.accuracy:.0e}; float64 would reach {ours.smallest_accuracy:.0e}")
assert error <= 1e-2
