"""Ways to a POD basis: seconds and accuracy of every variant, for the sizes of the paper's snapshots.

    python benchmarks/pod.py --json pod.json

Snapshots have a known spectrum s_i = 10^(-i/2), so that the basis is known exactly. "angle" is the largest angle between
the spaces, "numpy" is numpy.linalg.svd of the same snapshots. Seconds are the best of several, on one thread unless
--threads says otherwise; memory is what is allocated at most besides the snapshots, in their size.
"""

from __future__ import annotations

import argparse
import json
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import parasol as ps
from parasol.reduction.pod import METHODS, pod

SIZES = ((100, 1036), (6000, 1036), (100, 328149), (1024, 32814))
TOLERANCE = 3e-6  # between two singular values


def snapshots(n: int, n_values: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, n_values) with singular values 10^(-i/2), and their left singular vectors."""
    rng = np.random.default_rng(0)
    k = min(n, n_values, 30)
    left = np.linalg.qr(rng.standard_normal((n_values, k)))[0]
    right = np.linalg.qr(rng.standard_normal((n, k)))[0]
    return (right * 10.0 ** (-np.arange(k) / 2)) @ left.T, left


def angle(one: np.ndarray, other: np.ndarray) -> float:
    """Sine of the largest angle between two spaces given by orthonormal columns."""
    return float(np.linalg.norm(one - other @ (other.T @ one), 2))


def best(work, repeats: int):
    """Smallest wall time in seconds, and the answer."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        answer = work()
        times.append(time.perf_counter() - start)
    return min(times), answer


def measure(n: int, n_values: int) -> list[dict]:
    """Every variant on snapshots of one size."""
    rows, left = snapshots(n, n_values)
    repeats = 3 if n * n_values < 1e7 else 2
    seconds, exact = best(lambda: np.linalg.svd(rows, full_matrices=False)[2], repeats)
    out = [{"n": n, "n_values": n_values, "method": "numpy", "seconds": seconds}]
    out[0] |= {"d": 12, "angle": angle(exact[:12].T, left[:, :12])}
    for method in METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ps.ParasolWarning)
            work = lambda method=method: pod(rows, tolerance=TOLERANCE, method=method)  # noqa: E731
            seconds, basis = best(work, repeats)
            tracemalloc.start()
            work()
            peak = tracemalloc.get_traced_memory()[1] / rows.nbytes
            tracemalloc.stop()
        d = basis.n_modes
        row = {"n": n, "n_values": n_values, "method": method, "seconds": seconds, "d": d, "memory": peak}
        row["angle"] = angle(basis.modes, left[:, :d])
        row["excess"] = float(
            np.linalg.norm(rows - basis.lift(basis.project(rows))) / np.sqrt(np.sum(10.0 ** -np.arange(d, 30)))
        )
        out.append(row)
    return out


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    rows = []
    print(f"{'snapshots':>16}  {'method':14}{'seconds':>9}{'d':>4}{'angle':>10}{'error/best':>12}{'memory':>8}")
    with threadpool_limits(options.threads):
        for n, n_values in SIZES:
            for r in measure(n, n_values):
                rows.append(r)
                more = f"{r['excess']:12.6f}{r['memory']:8.2f}" if "memory" in r else ""
                print(f"{n:6} x {n_values:7}  {r['method']:14}{r['seconds']:9.3f}{r['d']:4}{r['angle']:10.0e}{more}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
