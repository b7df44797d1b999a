"""Full solves in batches on a GPU beside those of one core: milliseconds a solve, and how far the answers differ.

    python benchmarks/gpu_solves.py --json docs/results/gpu-solves.json

helmholtz on the flower with about 1036, 2000 and 4000 nodes. Both sides do what a full solve does: assemble, try the factors on
a known answer, solve, refine once, look at the residual and at rounding. "first" includes reaching the device and compiling.
`--device cpu` runs the same batches on JAX's CPU backend, which shows that they are right, not that they are fast.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import parasol as ps
from parasol.devices import pick_device
from parasol.reduction.batched import Batched

N_BATCHES = 3  # timed after the first


def compare(n_nodes: int, device, n_here: int, most: int) -> dict:
    """One size: a few solves here, several batches there."""
    problem = ps.load_problem("helmholtz")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=n_nodes))
    batches = Batched(model, device)
    size = min(batches.rows, most)
    mus = ps.sample(model, size * (1 + N_BATCHES), rng=5)
    with threadpool_limits(1):
        model.solve(mus[0])  # which orders the unknowns, once
        start = time.perf_counter()
        here = [model.solve(mu) for mu in mus[:n_here]]
        seconds_here = (time.perf_counter() - start) / n_here
    start = time.perf_counter()
    there = batches.solve(mus[:size])
    first = time.perf_counter() - start
    seconds_there = []
    for k in range(1, 1 + N_BATCHES):
        start = time.perf_counter()
        there |= batches.solve(mus[k * size : (k + 1) * size])
        seconds_there.append((time.perf_counter() - start) / size)
    pairs = [(u.unknowns, there[mu.tobytes()]) for mu, u in zip(mus, here, strict=False) if mu.tobytes() in there]
    gaps = [np.linalg.norm(a - b) / np.linalg.norm(a) for a, b in pairs]
    best = min(seconds_there)
    return {
        "nodes": model.n_nodes,
        "unknowns_of_a_dense_system": int(np.count_nonzero(~model.terms.pattern.stated)),
        "batch": size,
        "accepted": f"{len(there)} of {len(mus)}",
        "ms_here": 1e3 * seconds_here,
        "ms_there": 1e3 * best,
        "ms_there_median": 1e3 * float(np.median(seconds_there)),
        "ratio": seconds_here / best,
        "first_seconds": first,
        "largest_difference": max(gaps),
        "compared": len(gaps),
    }


def many(n_samples: int, device: str) -> dict:
    """`solve_many` as a user calls it, 1036 nodes, with all that it does besides."""
    problem = ps.load_problem("helmholtz")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=1036))
    mus = ps.sample(model, n_samples, rng=6)
    start = time.perf_counter()
    snapshots = ps.solve_many(model, mus, device=device)
    return {"solve_many": len(snapshots), "seconds": time.perf_counter() - start, "device": snapshots.device}


def main() -> None:
    """Print one row for each size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[1036, 2000, 4000])
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--here", type=int, default=8, help="solves on one core, of each size")
    parser.add_argument("--most", type=int, default=128, help="systems of a batch, at most")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    device = pick_device(options.device)
    facts: dict = {
        "device": str(device.device_kind),
        "processor": platform.processor() or platform.machine(),
        "rows": [],
    }
    for n in options.nodes:
        facts["rows"].append(compare(n, device, options.here, options.most))
        print(json.dumps(facts["rows"][-1], indent=1), flush=True)
    facts["as_called"] = [
        many(n, "auto" if options.device == "gpu" else "cpu")
        for n in ((100, 2000) if options.device == "gpu" else (50,))
    ]
    print(json.dumps(facts["as_called"]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
