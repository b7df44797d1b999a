"""
Learn, check, continue
======================

From an equation to a surrogate with a promised error, in one call; then its budget, and the same from a solver of one's own.
"""

import tempfile
from pathlib import Path

import numpy as np

import parasol as ps

(x,) = ps.coordinates("x")
nu, wind = ps.parameters(nu=(0.2, 1.0, "log"), wind=(0.0, 1.0))
u = ps.unknown("u", x)
chimney = ps.Problem(
    name="chimney",
    domain=ps.Box(0.0, 1.0),
    equation=ps.Eq(-nu * u.diff(x, 2) + wind * u.diff(x), 1),
    boundary={"left": ps.Dirichlet(0), "right": ps.Neumann(0)},
)

with tempfile.TemporaryDirectory() as folder:
    # nodes, full solves, modes and map are chosen; full solves are kept in the store
    surrogate = ps.learn(chimney, tolerance=1e-3, store=Path(folder) / "solves")
    account = surrogate.facts["learn"]
    print(f"{account['n_nodes']} nodes, {account['solves']} full solves, {account['n_modes']} modes")
    print(
        f"bound {account['bound']:.1e} ({account['certificate']}), discretisation {account['discretisation_error']:.1e}"
    )
    assert account["met"]
    assert account["bound"] <= 1e-3

    # measured on solves it has never seen, with the solver made again from the file
    path = ps.save(surrogate, Path(folder) / "chimney.parasol")
    budget = ps.check(ps.load(path), chimney, n=20)
    print(f"error at most {budget.errors.max():.1e}, of which projection {budget.projection_errors.max():.1e}")
    assert budget.holds
    assert budget.errors.max() <= 1e-3

    # a smaller tolerance goes on from the same solves
    finer = ps.learn(chimney, 1e-4, store=Path(folder) / "solves", model=surrogate.solver, recipe="polynomial")
    print(f"1e-4: {finer.facts['learn']['solves']} full solves, {finer.facts['learn']['new_solves']} of them new")
    assert finer.facts["learn"]["met"]
    assert finer.facts["learn"]["new_solves"] < finer.facts["learn"]["solves"]


class Spring:
    """Somebody's solver: the swing of a damped spring at 100 times."""

    parameters = ps.pde.ParameterSpace(ps.parameters(stiffness=(1.0, 4.0), damping=(0.1, 0.5)))

    def solve(self, mu):
        """Displacement (100,)."""
        stiffness, damping = mu
        t = np.linspace(0, 5, 100)
        return np.exp(-damping * t) * np.cos(np.sqrt(stiffness - damping**2) * t)


spring = ps.learn(Spring(), tolerance=1e-3, recipe="gaussian process")
print(spring.conformal.meaning)
assert spring.facts["learn"]["met"]
test = np.random.default_rng(5).uniform([1.0, 0.1], [4.0, 0.5], (200, 2))
truth = np.array([Spring().solve(mu) for mu in test])
errors = np.linalg.norm(spring(test).values - truth, axis=1) / np.linalg.norm(truth, axis=1)
assert np.mean(errors <= 1e-3) > 0.9
