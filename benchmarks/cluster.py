"""Full solves on a Dask cluster of this machine: efficiency, and what a task costs besides its solves.

    python benchmarks/cluster.py --json docs/results/cluster.json

"overhead": chunks of one solve that takes no time, so that a task is all overhead: its way to a worker and back, its files. "efficiency":
helmholtz, chunk by chunk, here and by 1 and 2 workers: serial seconds / (workers × seconds), all in one run, workers warm. On a machine with
other work to do, seconds say little: processor seconds of the serial run and of the workers are given besides, and their ratio,
"cpu efficiency", is what the cluster itself costs. The model: with tasks of T seconds, t seconds of the scheduler for each and o of overhead
on the worker, n workers are busy as long as n <= T / t, at an efficiency of T / (T + o).
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np

import parasol as ps
from parasol.reduction.cluster import cluster


def nothing(mu: np.ndarray) -> np.ndarray:
    """A solve that takes no time."""
    return mu * np.ones(1000)


def cpu() -> float:
    """Processor seconds of this process so far."""
    return time.process_time()


def overhead(executor, folder: Path, n: int) -> dict:
    """Seconds that a task takes besides its solves: all in all, of the driver with its scheduler, of a worker."""
    mus = np.arange(1.0, n + 1)[:, None]
    ps.solve_many(nothing, mus[:20], store=folder / "warm", chunk_size=1, executor=executor)
    before, start, here = executor._client.run(cpu), time.perf_counter(), cpu()
    ps.solve_many(nothing, mus, store=folder / "tasks", chunk_size=1, executor=executor)
    seconds, driver = time.perf_counter() - start, cpu() - here
    workers = sum(executor._client.run(cpu).values()) - sum(before.values())
    here = cpu()
    ps.solve_many(nothing, mus, store=folder / "serial", chunk_size=1)
    each = {"seconds": seconds / n, "driver and scheduler cpu": driver / n, "worker cpu": workers / n}
    return {"tasks": n, **each, "serial cpu": (cpu() - here) / n}


def efficiency(executor, folder: Path, model, n: int, n_workers: int) -> dict:
    """The same solves here and on the workers."""
    mus = ps.sample(model, n)
    ps.solve_many(model, mus[:8], store=folder / "warm", chunk_size=1, executor=executor)
    start, here = time.perf_counter(), cpu()
    one = ps.solve_many(model, mus, store=folder / "serial", chunk_size=8)
    serial, serial_cpu = time.perf_counter() - start, cpu() - here
    before, start = executor._client.run(cpu), time.perf_counter()
    many = ps.solve_many(model, mus, store=folder / "many", chunk_size=8, executor=executor)
    seconds = time.perf_counter() - start
    workers = sum(executor._client.run(cpu).values()) - sum(before.values())
    assert one.solutions.tobytes() == many.solutions.tobytes()
    whole = {"workers": n_workers, "solves": n, "serial seconds": serial, "seconds": seconds}
    whole |= {"efficiency": serial / (n_workers * seconds), "serial cpu": serial_cpu, "workers' cpu": workers}
    return whole | {"cpu efficiency": serial_cpu / workers}


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=300)
    parser.add_argument("--solves", type=int, default=240)
    parser.add_argument("--nodes", type=int, default=4000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    problem = ps.load_problem("helmholtz")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=options.nodes))
    rows: dict = {"load before": os.getloadavg()[0], "cores": len(os.sched_getaffinity(0)), "nodes": model.n_nodes}
    for n_workers in (1, 2):
        with tempfile.TemporaryDirectory() as folder, cluster("local", jobs=n_workers) as executor:
            place = Path(folder)
            if n_workers == 2:
                rows["overhead"] = overhead(executor, place, options.tasks)
                (place / "warm").rename(place / "earlier")
                (place / "serial").rename(place / "earlier-serial")
            rows[f"efficiency {n_workers}"] = efficiency(executor, place, model, options.solves, n_workers)
    print(json.dumps(rows, indent=1))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
