"""Discretisation error of the flower-domain Helmholtz problem, beside quadratic finite elements with as many unknowns.

    python benchmarks/accuracy.py --json accuracy.json

The reference is a finite-element solution of order 4 on an adapted mesh (tests/finite_elements.py), which shares no
code with us. "at nodes" is the relative l2 error at the method's own nodes, where finite elements are at their best;
"anywhere" is the same at 4000 random points of the domain.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import parasol as ps
from finite_elements import reference, rings_for, solve_helmholtz, star_mesh
from parasol.pde.discretize import discretize_with

PARAMETERS = [(0.1, 2.0), (0.927, 1.697), (4.0, 2.0)]
COUNTS = (1000, 2000, 4000)


def relative(values: np.ndarray, exact: np.ndarray) -> float:
    """Relative l2 error."""
    return float(np.linalg.norm(values - exact) / np.linalg.norm(exact))


def row(name: str, nodes: np.ndarray, solve, points: np.ndarray) -> dict:
    """One line: `solve(mu)` returns values at the nodes and a function of points."""
    at_nodes, anywhere = [], []
    for mu in PARAMETERS:
        values, evaluate = solve(mu)
        exact = reference(*mu)
        at_nodes.append(relative(values, exact.evaluate(nodes)))
        anywhere.append(relative(evaluate(points), exact.evaluate(points)))
    return {"method": name, "unknowns": len(nodes), "at_nodes": at_nodes, "anywhere": anywhere}


def rbf_fd(name: str, problem, settings, points) -> dict:
    """Our own discretisation."""
    model = discretize_with(problem, settings)

    def solve(mu):
        solution = model.solve(mu)
        return solution.values, solution.at

    return row(name, model.nodes.points, solve, points)


def quadratic_elements(count: int, points) -> dict:
    """Isoparametric quadratic triangles."""
    mesh = star_mesh(n_rings=rings_for(count))
    nodes = solve_helmholtz(*PARAMETERS[0], mesh).nodes

    def solve(mu):
        solution = solve_helmholtz(*mu, mesh)
        return solution.values, solution.evaluate

    return row("quadratic elements", nodes, solve, points)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    options = parser.parse_args()
    problem = ps.load_problem("helmholtz")
    draws = np.random.default_rng(0).uniform(*problem.domain.bounds, (9000, 2))
    points = draws[problem.domain.distance(draws) < -1e-6][:4000]
    rows = [rbf_fd("paper: IMQ 3, 50 neighbours", problem, problem.settings["paper"], points)]
    for count in COUNTS:
        rows.append(rbf_fd("parasol, default", problem, ps.Settings(n_nodes=count), points))
        rows.append(quadratic_elements(count, points))
    heads = [f"({a:g}, {k:g})" for a, k in PARAMETERS]
    print(f"{'':30}{'unknowns':>9}   {'at nodes: ' + ' / '.join(heads):44}{'anywhere'}")
    for r in rows:
        numbers = ["  ".join(f"{e:.2e}" for e in r[key]) for key in ("at_nodes", "anywhere")]
        print(f"{r['method']:30}{r['unknowns']:9}   {numbers[0]:44}{numbers[1]}")
    if options.json:
        options.json.write_text(json.dumps({"parameters": PARAMETERS, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
