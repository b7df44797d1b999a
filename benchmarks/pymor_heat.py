"""The heat equation in a thermal block with the same matrices in parasol and in pyMOR, as its demo: implicit Euler there.

    OMP_NUM_THREADS=1 python benchmarks/pymor_heat.py [--pymor PYTHON] [--cells 50] [--tolerance 1e-3]

Two materials in [0.1, 1] as on a chessboard of 2 x 2 blocks, source 1, from zero to t = 1, stored at 11 times (pyMOR
stores its 50 steps). Errors are relative, in the H1 seminorm over all stored times: of the full model against BDF2 with
4000 steps, of the reduced one against the full model of the same program, at 10 random parameters. All times are CPU times.
See pymor_block.py.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import skfem as fem
from scipy import sparse
from scipy.sparse.linalg import splu

import parasol as ps
from pymor_block import cpu, matrices, spread

TIMES, STEPS, FINE, N_TEST = np.linspace(0, 1, 11), 50, 4000, 10
ROWS = {
    "full": "full model: error in time (median)",
    "full_seconds": "full model: s a trajectory",
    "offline_seconds": "offline, s of CPU time",
    "solves": "full trajectories",
    "modes": "modes",
    "h1": "error: median, largest",
    "ratio": "bound / error: least, median, largest",
    "kind": "bound",
    "query": "one query, ms",
    "batch": "200 queries, ms",
}


def reference(block: sparse.csr_array, mass: sparse.csr_array, load: np.ndarray) -> np.ndarray:
    """The solution at the stored times but the first, by BDF2 with fine steps, (10, n)."""
    h, every, out = 1 / FINE, FINE // (len(TIMES) - 1), []
    first, later = (splu(sparse.csc_matrix(c * mass + h * block)) for c in (1.0, 1.5))
    before, now = np.zeros_like(load), first.solve(h * load)
    for i in range(2, FINE + 1):
        before, now = now, later.solve(mass @ (2 * now - 0.5 * before) + h * load)
        if i % every == 0:
            out.append(now)
    return np.array(out)


def ours(blocks, mass, load, mesh, free, asked, mus: np.ndarray, truth: np.ndarray) -> dict:
    """What `learn` makes of it."""
    product = sparse.csr_array(sum(blocks))
    thetas = ps.parameters(a=(0.1, 1.0), b=(0.1, 1.0))
    mesh_words = {"points": mesh.p.T, "cells": mesh.t.T, "free": free}
    start = time.process_time()
    terms = dict(zip(thetas, blocks, strict=True))
    model = ps.AffineModel(terms, {1: load}, mass=mass, times=TIMES, product=product, **mesh_words)
    surrogate = ps.learn(model, asked.tolerance)
    seconds, account = time.process_time() - start, surrogate.facts["learn"]
    full = np.array([model.solve(mu).values[1:, free] for mu in mus])
    answers = surrogate(mus)
    fields = np.reshape(answers.values, (len(mus), len(TIMES), -1))[:, 1:, free]

    def norm(values: np.ndarray) -> np.ndarray:
        return np.sqrt([np.sum(v * (product @ v.T).T) for v in values])

    errors = norm(fields - full) / norm(full)
    return {
        "full": float(np.median(norm(full - truth) / norm(truth))),
        "full_seconds": cpu(lambda i: model.solve(mus[i % N_TEST]), 5),
        "offline_seconds": seconds,
        "solves": account["solves"],
        "modes": surrogate.basis.n_modes,
        "h1": spread(errors)[1:],
        "ratio": spread(answers.bound / errors),
        "kind": answers.bound_kind[0],
        "query": 1e3 * cpu(lambda i: surrogate(mus[i % N_TEST]), 20),
        "batch": 1e3 * cpu(lambda _: surrogate(np.resize(mus, (200, 2))), 3),
        "stages": account["stages"],
    }


def theirs(python: str, blocks, mass, load, asked, mus: np.ndarray, truth: np.ndarray) -> dict:
    """pyMOR's, from a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for name, matrix in zip(("block0", "block1", "mass"), (*blocks, mass), strict=True):
            sparse.save_npz(Path(folder, f"{name}.npz"), sparse.csc_matrix(matrix))
        np.savez(Path(folder, "rest.npz"), load=load, mus=mus, truth=truth, steps=STEPS, aim=asked.tolerance)
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        subprocess.run([python, str(Path(__file__).with_name("pymor_side.py")), folder], check=True, env=environment)
        return json.loads(Path(folder, "result.json").read_text())


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pymor", metavar="PYTHON", help="an interpreter that has pyMOR")
    parser.add_argument("--cells", type=int, default=50)
    parser.add_argument("--tolerance", type=float, default=1e-3)
    asked = parser.parse_args()
    four, load, mesh, free = matrices(asked.cells)
    blocks = [four[0] + four[3], four[1] + four[2]]
    whole = fem.BilinearForm(lambda u, v, w: u * v).assemble(fem.Basis(mesh, fem.ElementTriP1()))
    mass = sparse.csr_array(whole[free][:, free])
    mus = np.random.default_rng(2026).uniform(0.1, 1.0, (N_TEST, 2))
    truth = np.array([reference(mu[0] * blocks[0] + mu[1] * blocks[1], mass, load) for mu in mus])
    print(
        f"{len(load)} unknowns, parasol {ps.__version__}, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'not set')}"
    )
    results = {"parasol, learn": ours(blocks, mass, load, mesh, free, asked, mus, truth)}
    print(f"stages of learn: {results['parasol, learn']['stages']}")
    if asked.pymor:
        results["pyMOR, greedy"] = theirs(asked.pymor, blocks, mass, load, asked, mus, truth)
        print(results["pyMOR, greedy"]["settings"])
    print("\n".join(["| | " + " | ".join(results) + " |", "|" + "---|" * (len(results) + 1)]))
    for key, words in ROWS.items():
        cells = [result[key] for result in results.values()]
        texts = [one if isinstance(one, str) else ", ".join(f"{v:.3g}" for v in np.atleast_1d(one)) for one in cells]
        print(f"| {words} | " + " | ".join(texts) + " |")


if __name__ == "__main__":
    main()
