"""How much of the box the constants of `proof=True` prove, and how far the proven bounds are above the errors.

    python benchmarks/proof.py [--nodes 500] [--modes 5] [--n 40] [PROBLEM ...]

For every problem: unknowns, factorisations and processor seconds of the constants, the part of 2000 sampled parameters that is proven,
and over n fresh full solves the least, median and largest ratio of proven bound and error of a reduced model with few modes
(so few that errors are far from rounding; those below 1e-9 are left out). `--nodes 0` takes the default nodes.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import sympy

import parasol as ps
from parasol.reduction.reduced import prepare

LINEAR = [
    "helmholtz",
    "cooled-pipe",
    "reaction-layer",
    "periodic-channel",
    "graded-material",
    "boundary-layer",
    "elasticity",
    "hollow-block",
]


def convection() -> ps.Problem:
    """Wind from changing directions: two parameters, not symmetric."""
    x, y = ps.coordinates("x y")
    u, (nu, b) = ps.unknown("u", x, y), ps.parameters(nu=(0.05, 1.0, "log"), b=(-1.0, 1.0))
    return ps.Problem(
        ps.Box((0, 0), (1, 1)), ps.Eq(-nu * ps.laplacian(u) + u.diff(x) + b * u.diff(y), 1), ps.Dirichlet(0)
    )


def three() -> ps.Problem:
    """Diffusion along x and y and reaction, each with its parameter."""
    x, y = ps.coordinates("x y")
    u = ps.unknown("u", x, y)
    a, b, c = ps.parameters(a=(0.2, 5.0, "log"), b=(0.2, 5.0, "log"), c=(0.0, 10.0))
    equation = ps.Eq(-a * u.diff(x, 2) - b * u.diff(y, 2) + c * u, sympy.exp(x) * (1 + y))
    return ps.Problem(ps.Box((0, 0), (1, 1)), equation, ps.Dirichlet(0))


def row(name: str, problem: ps.Problem, nodes: int, modes: int, n: int) -> str:
    """One line of the table."""
    model = ps.discretize(problem, *([ps.scatter(problem.domain, n_nodes=nodes)] if nodes else []))
    snapshots = ps.solve_many(model, ps.sample(model, 4 * modes))
    basis = ps.pod(snapshots, n_modes=modes)
    start = time.process_time()
    prepared = prepare(model)
    seconds = time.process_time() - start
    pde_modes = model.layout.unknowns(basis.modes.T, basis.hidden.T).T
    reduced = prepared.reduced(basis, prepared.builders(pde_modes))
    truth = ps.solve_many(model, ps.sample(model, n, design="random", rng=71))
    answers = reduced.solve(truth.mus)
    assert answers.bounds is not None
    error = np.linalg.norm(truth.solutions - answers.values, axis=1)
    seen = answers.bounds.rigorous & (error > 1e-9 * np.linalg.norm(truth.solutions, axis=1))
    ratio = answers.bounds.values[seen] / error[seen]
    quantiles = "{:.2f} {:.2f} {:.2f}".format(*np.quantile(ratio, [0, 0.5, 1])) if len(ratio) else "-"
    counts = f"{prepared.covered.n_factorizations:4d} {len(prepared.covered.preconditioners):4d}  {seconds:7.1f}"
    return f"{name:<18} {model.n_unknowns:6d}  {counts}  {100 * prepared.covered.proven:5.1f} %  {quantiles:>20}  ({np.median(error):.1e})"


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", default=[*LINEAR, "convection", "three"])
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--modes", type=int, default=4)
    parser.add_argument("--n", type=int, default=40)
    asked = parser.parse_args()
    warnings.simplefilter("ignore", ps.ParasolWarning)
    print(
        "problem            unknowns fact. prec. seconds   proven  bound/error min median max  (median error)",
        flush=True,
    )
    for name in asked.problems:
        nodes = min(asked.nodes, 200) if name == "reaction-layer" else asked.nodes
        own = {"convection": convection, "three": three}
        problem = own[name]() if name in own else ps.load_problem(name)
        print(row(name, problem, nodes, asked.modes, asked.n), flush=True)


if __name__ == "__main__":
    main()
