"""
Proven bounds in three ways
===========================

From an equation to answers with proven error bounds, in three ways: POD, greedy, and data that nothing is known about.
"""

import numpy as np

import parasol as ps

problem = ps.load_problem("helmholtz")
model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=500))
truth = ps.solve_many(
    model, ps.sample(model, 200, design="random", rng=7)
)  # what we compare with, never shown to anyone


def relative_errors(values):
    """Relative l2 errors at the 200 parameters."""
    return np.linalg.norm(values - truth.solutions, axis=1) / np.linalg.norm(truth.solutions, axis=1)


# forty snapshots, their principal directions, and the equation itself asked for in few rows
snapshots = ps.solve_many(model, ps.sample(model, 40))
basis = ps.pod(snapshots, n_modes=20, held_out=truth)
reduced = ps.reduce(model, basis)
answers = reduced.solve(truth.mus)
errors = relative_errors(answers.values)
print(f"{basis.n_modes} modes: error {errors.mean():.1e}, projection {basis.held_out_error:.1e}")
print(
    f"proven bound over error: {np.min(answers.bounds.relative / errors):.1f} to {np.max(answers.bounds.relative / errors):.1f}"
)
assert errors.mean() < 1.3 * basis.held_out_error
assert np.all(errors <= answers.bounds.relative)

# the next solve where the bound is largest: certified to 1e-5 everywhere from few solves
greedy = ps.greedy(model, tolerance=1e-5)
answers = greedy.reduced.solve(truth.mus)
print(
    f"{greedy.n_solves} full solves: error at most {relative_errors(answers.values).max():.1e}, proven {answers.bounds.relative.max():.1e}"
)
assert greedy.n_solves <= 40
assert answers.bounds.relative.max() <= 1.2e-5

# coefficients from anywhere can be certified; without an equation, a calibration set gives a bound that holds 95 times in 100
guess = answers.coefficients + 1e-3
assert np.all(relative_errors(greedy.basis.lift(guess)) <= greedy.reduced.certify(truth.mus, guess).relative)
parts = ps.reduction.split(200, calibration=100, test=100)
bound = ps.runtime.conformal_bound(relative_errors(greedy.basis.lift(guess))[parts["calibration"]], level=0.95)
print(bound.meaning)
assert np.mean(relative_errors(greedy.basis.lift(guess))[parts["test"]] <= bound.quantile) >= 0.85
