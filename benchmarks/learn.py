"""Learn every problem of the catalogue to a tolerance, and check each on full solves that nothing has seen.

    python benchmarks/learn.py [--tolerance 1e-3] [--n 50] [--out FILE.json] [PROBLEM ...]

Prints one line per problem: full solves, seconds, the bound promised, mean and largest error measured on n fresh solves
(relative, all values), estimate over error (least, median, largest) and the median of bound over error on the same where
the error is above 1e-11, the part of them with a proven bound, and the estimated discretisation error. Problems already in
the file are not learned again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np

import parasol as ps

COLUMNS = "problem               nodes  solves  seconds    bound      mean       max        share<=tol  discretisation     estimate/error  bound/error  certificate, labels, map"


def learned(name: str, tolerance: float, n: int) -> dict:
    """Learn one problem and measure it."""
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ps.ParasolWarning)
        surrogate = ps.learn(ps.load_problem(name), tolerance)
    seconds = time.perf_counter() - start
    account, model = surrogate.facts["learn"], surrogate.solver
    count = min(n, 12) if account["seconds_per_solve"] > 10 else n
    mus = model.sample(3 * count, np.random.default_rng(20260))
    truth = ps.solve_many(model, mus[surrogate.parameters.inside(mus)][:count])
    errors = ps.accuracy(surrogate, truth).errors
    answer, seen = surrogate(truth.mus), errors > 1e-11
    bounds = np.atleast_1d(answer.bound)[seen] / errors[seen] if surrogate.has_bounds else []
    estimates = [] if answer.estimate is None else answer.estimate[seen] / errors[seen]
    return {
        "problem": name,
        "n_nodes": account["n_nodes"],
        "solves": account["solves"],
        "seconds": seconds,
        "seconds_per_solve": account["seconds_per_solve"],
        "met": account["met"],
        "bound": account["bound"],
        "mean": float(np.mean(errors)),
        "max": float(np.max(errors)),
        "share": float(np.mean(errors <= tolerance)),
        "n": len(errors),
        "estimate": [float(q) for q in np.quantile(estimates, [0, 0.5, 1])] if len(estimates) else None,
        "within": float(np.mean((estimates > 1 / 3) & (estimates < 3))) if len(estimates) else None,  # type: ignore[operator]
        "effectivity": [float(q) for q in np.quantile(bounds, [0, 0.5])] if len(bounds) else None,
        "proven": float(np.mean(answer.bounds.rigorous)) if surrogate.has_bounds else 0.0,
        "stages": account["stages"],
        "factorisations": account.get("n_factorizations"),
        "discretisation": account["discretisation_error"],
        "n_modes": account["n_modes"],
        "certificate": account["certificate"],
        "labels": account["labels"],
        "map": account["map"],
        "warnings": [str(w.message) for w in said],
        "ranges": {p.name: [p.low, p.high] for p in surrogate.parameters.scalars},
    }


def line(row: dict) -> str:
    """One row of the table."""
    numbers = f"{row['bound']:.1e}    {row['mean']:.1e}    {row['max']:.1e}    {row['share']:10.2f}  {row['discretisation']:14.1e}"
    how = f"{row['certificate']}, {row['labels']}, {row['map']}"
    near = "{:.2f} {:.2f} {:.2f}".format(*row["estimate"]) if row.get("estimate") else "-"
    numbers += f"  {near:>16}" + (f"  {row['effectivity'][1]:11.1f}" if row.get("effectivity") else "            -")
    return f"{row['problem']:<20} {row['n_nodes']:6d}  {row['solves']:6d}  {row['seconds']:7.0f}    {numbers}  {how}"


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", default=ps.pde.problem_names())
    parser.add_argument("--tolerance", type=float, default=1e-3)
    parser.add_argument("--n", type=int, default=50)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    rows = json.loads(asked.out.read_text()) if asked.out and asked.out.exists() else {}
    print(COLUMNS, flush=True)
    for name in asked.problems:
        if name not in rows:
            rows[name] = learned(name, asked.tolerance, asked.n)
            if asked.out:
                asked.out.write_text(json.dumps(rows, indent=1))
        print(line(rows[name]), flush=True)
        if not (rows[name]["met"] and rows[name]["share"] >= 0.9):
            print(f"    NOT MET: {rows[name]['warnings']}", flush=True)


if __name__ == "__main__":
    main()
