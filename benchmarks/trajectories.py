"""Trajectories of the damped sine-Gordon equation: seconds each, where they go, error, memory.

    python benchmarks/trajectories.py --json trajectories.json

One core. Random parameters in the paper's box; errors over all 101 stored times at (0.05, -1) against finite differences
on a finer lattice (tests/soliton_reference.py), which share no code with us.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import parasol as ps
from parasol.pde.discretize import discretize_with
from soliton_reference import soliton


def measure(name: str, count: int) -> dict:
    """Time `count` trajectories of a preset."""
    problem = ps.load_problem("sine-gordon")
    model = discretize_with(problem, problem.settings[name])
    place = np.rint((model.nodes.points + 7) / 0.25).astype(int)
    expected = soliton(0.05, -1.0)[:, place[:, 0], place[:, 1]]
    evolution = model.solve([0.05, -1.0])
    error = float(np.linalg.norm(evolution.values - expected) / np.linalg.norm(expected))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    profile = cProfile.Profile()
    start = time.perf_counter()
    for mu in model.sample(count, rng=0):
        profile.runcall(model.solve, mu)
    seconds = (time.perf_counter() - start) / count
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    total = sum(row[2] for row in stats.values())

    def share(*words: str) -> float:
        return sum(row[2] for key, row in stats.items() if any(w in key[2] for w in words)) / total

    return {
        "preset": name,
        "seconds": seconds,
        "per_second": 1 / seconds,
        "hours_for_1124": 1124 * seconds / 3600,
        "triangular_solves": share("'solve' of 'SuperLU'"),
        "factorisations": share("gstrf"),
        "error": error,
        "one_trajectory_mb": evolution.values.nbytes / 1e6,
        "memory_grown_mb": grown / 1e3,
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    parser.add_argument("--count", type=int, default=10, help="trajectories to time")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ps.ParasolWarning)
    with threadpool_limits(1):
        rows = [measure(name, options.count) for name in ("default", "paper")]
    for r in rows:
        print(
            f"{r['preset']:8} {r['seconds']:.2f} s a trajectory, {r['per_second']:.1f} a second, 1124 in {60 * r['hours_for_1124']:.0f} min; "
            f"{r['triangular_solves']:.0%} triangular solves, {r['factorisations']:.0%} factorisations; error {r['error']:.1e}; "
            f"memory grew by {r['memory_grown_mb']:.0f} MB over {options.count} runs (one is {r['one_trajectory_mb']:.1f} MB)"
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
