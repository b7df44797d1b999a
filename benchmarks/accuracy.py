"""Discretisation error of the flower-domain Helmholtz problem, beside finite elements of degree 2, 3, 4 with as many unknowns.

    python benchmarks/accuracy.py --json accuracy.json

The reference is a finite-element solution of order 4 on an adapted mesh (tests/finite_elements.py), which shares no
code with us. "at nodes" is the relative l2 error at the method's own nodes, where finite elements are at their best;
"anywhere" is the same at 4000 random points of the domain. "solve" is the time of a solve at a further parameter, matrix
and factorisation included, the best of several, by SuperLU on one core for both; "set-up" is what comes before the first:
nodes or mesh, stencils or integrals.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import parasol as ps
from finite_elements import EXACT, reference, solve_helmholtz, star_mesh
from parasol.pde.discretize import discretize_with

PARAMETERS = [(0.1, 2.0), (0.927, 1.697), (4.0, 2.0)]
COUNTS = (1000, 2000, 4000)


def relative(values: np.ndarray, exact: np.ndarray) -> float:
    """Relative l2 error."""
    return float(np.linalg.norm(values - exact) / np.linalg.norm(exact))


def row(name: str, nodes: np.ndarray, solve, points: np.ndarray, set_up: float) -> dict:
    """One line: `solve(mu)` returns values at the nodes and a function of points."""
    at_nodes, anywhere = [], []
    seconds = min(_seconds(lambda mu=mu: solve(mu)) for _ in range(3) for mu in PARAMETERS)
    for mu in PARAMETERS:
        values, evaluate = solve(mu)
        exact = reference(*mu)
        at_nodes.append(relative(values, exact.evaluate(nodes)))
        anywhere.append(relative(evaluate(points), exact.evaluate(points)))
    times = {"set_up": set_up, "solve": seconds}
    return {"method": name, "unknowns": len(nodes), "at_nodes": at_nodes, "anywhere": anywhere} | times


def _seconds(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def rbf_fd(name: str, problem, settings, points) -> dict:
    """Our own discretisation."""
    start = time.perf_counter()
    model = discretize_with(problem, settings)
    set_up = time.perf_counter() - start

    def solve(mu):
        solution = model.solve(mu)
        return solution.values, solution.at

    return row(name, model.nodes.points, solve, points, set_up)


def elements(count: int, degree: int, points) -> dict:
    """Triangles of a degree with about as many unknowns: quadratic ones isoparametric, the others with the exact curve."""
    curve = None if degree == 2 else EXACT
    rings = np.arange(3, 200)
    corners, triangles = 1 + 3 * rings * (rings + 1), 6 * rings**2
    edges = corners + triangles - 1
    unknowns = corners + (degree - 1) * edges + (degree - 1) * (degree - 2) // 2 * triangles
    start = time.perf_counter()
    mesh = star_mesh(n_rings=int(rings[np.argmin(abs(unknowns - count))]))
    nodes = solve_helmholtz(*PARAMETERS[0], mesh, degree, geometry=curve).nodes
    set_up = time.perf_counter() - start

    def solve(mu):
        solution = solve_helmholtz(*mu, mesh, degree, geometry=curve)
        return solution.values, solution.evaluate

    return row(f"elements of degree {degree}", nodes, solve, points, set_up)


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
        rows += [elements(count, degree, points) for degree in (2, 3, 4)]
    heads = [f"({a:g}, {k:g})" for a, k in PARAMETERS]
    print(f"{'':30}{'unknowns':>9}   {'at nodes: ' + ' / '.join(heads):44}{'anywhere':34}set-up s   solve ms")
    for r in rows:
        numbers = ["  ".join(f"{e:.2e}" for e in r[key]) for key in ("at_nodes", "anywhere")]
        times = f"{r['set_up']:8.2f}{1e3 * r['solve']:11.1f}"
        print(f"{r['method']:30}{r['unknowns']:9}   {numbers[0]:44}{numbers[1]:34}{times}")
    if options.json:
        options.json.write_text(json.dumps({"parameters": PARAMETERS, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
