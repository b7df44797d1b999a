"""POD of a store in one process and by the processes of an executor: processor seconds, memory of the driver and of the largest process, difference.

    python benchmarks/pod_workers.py --snapshots 640 --values 200000 --json docs/results/pod-workers.json

Snapshots are 1/(1 + a + x²) over a random vector x, whose singular values fall by a factor of six or so; the store is made in a folder of its own and removed. Each way
runs in a process of its own. "seconds" are of the wall, which other programs change.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from scipy.linalg import subspace_angles

import parasol as ps


def fill(folder: Path, n: int, n_values: int) -> None:
    """Make the store."""
    x = np.random.default_rng(0).standard_normal(n_values) ** 2
    ps.solve_many(lambda mu: 1 / (1 + mu[0] + x), np.linspace(0.0, 3.0, n)[:, None], store=folder / "store")


def one(folder: Path, jobs: int) -> dict:
    """One way: `jobs` processes of an executor, or this one alone (0)."""
    snapshots = ps.reduction.open_snapshots(folder / "store")
    before, start = os.times(), time.perf_counter()
    if jobs:
        with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
            basis = ps.pod(snapshots, tolerance=1e-6, executor=pool)
    else:
        basis = ps.pod(snapshots, tolerance=1e-6, method="incremental")
    seconds, after = time.perf_counter() - start, os.times()
    np.save(folder / f"modes-{jobs}.npy", basis.modes)
    status = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return {
        "processes": jobs,
        "modes": basis.n_modes,
        "lost energy": basis.lost_energy / basis.total_energy,
        "cpu of the driver": after.user + after.system - before.user - before.system,
        "cpu of the others": after.children_user + after.children_system,
        "seconds": seconds,
        "MB of the driver": int(status.split()[1]) / 1024,
        "MB of the largest other": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024 if jobs else 0.0,
    }


def main() -> None:
    """Print a row for each way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--snapshots", type=int, default=200)
    parser.add_argument("--values", type=int, default=50_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(Path(options.one[0]), int(options.one[1]))))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        fill(folder, options.snapshots, options.values)
        results = {"snapshots": options.snapshots, "values": options.values, "ways": []}
        results["MB of the store"] = 8e-6 * options.snapshots * options.values
        for jobs in (0, 1, 2):
            command = [sys.executable, __file__, "--one", name, str(jobs)]
            row = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
            angle = subspace_angles(np.load(folder / "modes-0.npy"), np.load(folder / f"modes-{jobs}.npy")).max()
            results["ways"].append(row | {"angle to one process": float(angle)})
            print(json.dumps(results["ways"][-1], indent=1), flush=True)
        equal = (folder / "modes-1.npy").read_bytes() == (folder / "modes-2.npy").read_bytes()
        results["equal bytes with 1 and 2 processes"] = equal
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
