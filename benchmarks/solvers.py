"""Sparse direct solves of our own matrices: our elimination order against SciPy's default, MKL where installed.

    python benchmarks/solvers.py --json solvers.json

Milliseconds are the best of several; ratios are taken within this run. "first" includes the analysis of the pattern,
"again" is what every further parameter costs: factorise, check against a known answer, solve.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from scipy.sparse.linalg import splu
from threadpoolctl import threadpool_limits

import parasol as ps
from parasol.pde.discretize import discretize_with
from parasol.pde.sparse_direct import factorize
from parasol.pde.sparse_pattern import Pattern


def best(work, repeats: int) -> float:
    """Smallest wall time in milliseconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def measure(name: str, model) -> dict:
    """Time one model's matrix with every solver."""
    mu = model.vector()
    matrix, load = model.operator(mu), model.load(mu)
    data = matrix.data
    repeats = 3 if model.n_unknowns > 5000 else 10
    columns = matrix.tocsc()
    row = {"case": name, "n": model.n_unknowns, "nnz": int(matrix.nnz)}
    row["scipy default"] = best(lambda: splu(columns).solve(load), repeats)
    fresh = lambda: Pattern(model.terms.pattern.indices, model.terms.pattern.indptr, model.terms.pattern.points)  # noqa: E731
    row["ours, first"] = best(lambda: factorize(fresh(), data).solve(load), repeats)
    row["ours, again"] = best(lambda: factorize(model.terms.pattern, data).solve(load), repeats)
    try:
        row["mkl, again"] = best(lambda: factorize(model.terms.pattern, data, backend="mkl").solve(load), repeats)
    except ps.ParasolError:
        row["mkl, again"] = None
    row["residual"] = float(
        np.linalg.norm(matrix @ factorize(model.terms.pattern, data).solve(load) - load) / np.linalg.norm(load)
    )
    return row


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    options = parser.parse_args()
    flower, ball = ps.load_problem("helmholtz"), ps.load_problem("schrodinger")
    cases = [
        ("flower, paper", flower, flower.settings["paper"]),
        ("flower, default", flower, ps.Settings()),
        ("flower, 20000 nodes", flower, ps.Settings(n_nodes=20000)),
        ("ball, paper", ball, ball.settings["paper"]),
        ("ball, default", ball, ps.Settings()),
    ]
    rows = []
    with threadpool_limits(1):
        for name, problem, settings in cases:
            rows.append(measure(name, discretize_with(problem, settings)))
    print(
        f"{'':22}{'unknowns':>9}{'SciPy default':>15}{'ours first':>12}{'ours again':>12}{'MKL again':>11}{'speed-up':>10}{'residual':>10}"
    )
    for r in rows:
        mkl = f"{r['mkl, again']:9.1f}" if r["mkl, again"] else "-"
        speed = r["scipy default"] / r["ours, again"]
        print(
            f"{r['case']:22}{r['n']:9}{r['scipy default']:12.1f} ms{r['ours, first']:9.1f} ms{r['ours, again']:9.1f} ms{mkl:>11}{speed:9.1f}x{r['residual']:10.0e}"
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
