"""What a first guess from the reduced model would save a learning whose solves are iterative: iterations and processor seconds.

    python benchmarks/guesses.py --nodes 16000 --json docs/results/guesses.json

As in `learn`, each parameter is the one of a set whose answer by the solves so far leaves the largest residual. It is solved from
nothing and from that answer, both to the end; the error of the guess is relative to the solution. What a solve does besides (the
hierarchy, a known answer, what rounding may move) is the same for both, and counted.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import parasol as ps


def answered(model, mu: np.ndarray, basis: np.ndarray) -> tuple[np.ndarray, float]:
    """The combination of the solutions (n, k) so far with the least residual, and how large that is."""
    load = model.load(mu)
    moved = model.operator(mu) @ basis
    coefficients = np.linalg.lstsq(moved, load)[0]
    return basis @ coefficients, float(np.linalg.norm(load - moved @ coefficients) / np.linalg.norm(load))


def solved(model, mu: np.ndarray, guess: np.ndarray | None) -> tuple[np.ndarray, float, int]:
    """The solution, processor seconds and iterations of the last solve to the end; nothing is kept from the solve before."""
    model.terms.pattern.last.clear()
    start = time.process_time()
    solution = model.solve(mu, guess=guess)
    seconds = time.process_time() - start
    return solution.unknowns, seconds, model.factors(mu)._inner.n_iterations


def main() -> None:
    """Print a row for each solve, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problem", default="helmholtz")
    parser.add_argument("--nodes", type=int, default=4000)
    parser.add_argument("--solves", type=int, default=10)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ps.ParasolWarning)
    problem = ps.load_problem(options.problem)
    rows, candidates = [], None
    with threadpool_limits(1):
        model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=options.nodes), solver="iterative")
        candidates = ps.sample(model, 40)
        solutions: list[np.ndarray] = []
        mu = candidates[0]
        for _ in range(options.solves):
            guess, error = None, 1.0
            if solutions:
                basis = np.linalg.qr(np.array(solutions).T)[0]
                residuals = [answered(model, one, basis)[1] for one in candidates]
                mu = candidates[int(np.argmax(residuals))]
                guess = answered(model, mu, basis)[0]
            values, plain, many = solved(model, mu, None)
            if guess is not None:
                error = float(np.linalg.norm(values - guess) / np.linalg.norm(values))
            _, guessed, fewer = solved(model, mu, guess)
            solutions.append(values)
            row = {"error of the guess": error, "cpu s": plain, "cpu s with it": guessed, "iterations": many}
            rows.append(row | {"iterations with it": fewer})
            print("  ".join(f"{name} {value:.3g}" for name, value in rows[-1].items()), flush=True)
    sums = {
        name: sum(row[name] for row in rows) for name in ("cpu s", "cpu s with it", "iterations", "iterations with it")
    }
    print(sums)
    if options.json:
        options.json.write_text(json.dumps({"nodes": model.n_nodes, "solves": rows, "sums": sums}, indent=1) + "\n")


if __name__ == "__main__":
    main()
