"""The thermal block with the same matrices in parasol and in pyMOR: solves, errors, bounds, seconds.

    OMP_NUM_THREADS=1 python benchmarks/pymor_block.py [--pymor PYTHON] [--cells 142] [--modes 20] [--tolerance 1e-5] [--json FILE]

`PYTHON` is the interpreter of an environment of its own that has pyMOR (`python -m venv V && V/bin/pip install pymor`);
without it parasol is measured alone. Linear triangles of scikit-fem, (cells - 1)² unknowns, conductivities in [0.1, 1] of
2 x 2 blocks, source 1; errors are relative, in l2 and in the H1 seminorm, which is the inner product of both programs, at
50 random parameters whose solutions neither has computed (`scipy.sparse.linalg.spsolve`). All times are CPU times of one
process. pyMOR's part is benchmarks/pymor_side.py: its settings are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import skfem as fem
from scipy import sparse
from scipy.sparse.linalg import spsolve
from skfem.helpers import dot, grad

import parasol as ps

N_TEST, N_BATCH = 50, 2000
ROWS = {
    "offline_seconds": "offline, s of CPU time",
    "solves": "full solves",
    "modes": "modes",
    "l2": "l2 error: median, largest",
    "h1": "H1 error: median, largest",
    "ratio": "bound / error: least, median, largest",
    "proven": "bounds proven",
    "query": "coefficients of one query, µs",
    "lift": "lifting them, µs",
    "bound": "their bound, µs",
    "batch": f"{N_BATCH} queries, ms",
    "batch_bound": f"{N_BATCH} queries with bounds, ms",
}


def matrices(cells: int) -> tuple[list[sparse.csr_array], np.ndarray, fem.MeshTri, np.ndarray]:
    """Blocks and load without the boundary, the mesh, and which of its points are left."""
    line = np.linspace(0, 1, cells + 1)
    mesh = fem.MeshTri.init_tensor(line, line)
    basis = fem.Basis(mesh, fem.ElementTriP1())
    free = basis.complement_dofs(basis.get_dofs())
    blocks = []
    for right, top in ((0, 0), (0, 1), (1, 0), (1, 1)):
        whole = stiffness.assemble(basis, part=(right, top))
        blocks.append(sparse.csr_array(whole[free][:, free]))
    return blocks, fem.LinearForm(lambda v, w: 1.0 * v).assemble(basis)[free], mesh, free


@fem.BilinearForm
def stiffness(u, v, w):
    """The stiffness matrix of one block."""
    return ((w.x[0] > 0.5) == w["part"][0]) * ((w.x[1] > 0.5) == w["part"][1]) * dot(grad(u), grad(v))


def cpu(function: Callable[[int], object], times: int) -> float:
    """Mean CPU seconds of a call."""
    function(0)
    start = time.process_time()
    for i in range(times):
        function(i)
    return (time.process_time() - start) / times


def spread(values: np.ndarray) -> list[float]:
    """Least, median, largest."""
    return [float(np.min(values)), float(np.median(values)), float(np.max(values))]


def judged(reduced, product: sparse.csr_array, free: np.ndarray, mus: np.ndarray, truth: np.ndarray) -> dict:
    """Errors, bounds and times of a reduced model."""

    def energy(v: np.ndarray) -> np.ndarray:
        return np.sqrt(np.einsum("ij,ij->i", v, (product @ v.T).T))

    def one(i: int) -> np.ndarray:
        return mus[i % N_TEST : i % N_TEST + 1]

    solutions = reduced.solve(mus)
    gap = solutions.values[:, free] - truth
    l2, h1 = np.linalg.norm(gap, axis=1) / np.linalg.norm(truth, axis=1), energy(gap) / energy(truth)
    many = np.resize(mus, (N_BATCH, mus.shape[1]))
    c = [reduced.coefficients(one(i)) for i in range(N_TEST)]
    return {
        "modes": reduced.n_modes,
        "l2": spread(l2)[1:],
        "h1": spread(h1)[1:],
        "ratio": spread(solutions.bounds.values / energy(gap)),
        "proven": float(np.mean(solutions.bounds.rigorous)),
        "query": 1e6 * cpu(lambda i: reduced.coefficients(one(i)), 500),
        "lift": 1e6 * cpu(lambda i: reduced.basis.lift(c[0]), 500),
        "bound": 1e6 * cpu(lambda i: reduced.certify(one(i), c[i % N_TEST]), 500),
        "batch": 1e3 * cpu(lambda _: reduced.coefficients(many), 3),
        "batch_bound": 1e3 * cpu(lambda _: reduced.solve(many), 3),
    }


def ours(blocks, load, mesh, free, asked, mus: np.ndarray, truth: np.ndarray) -> dict[str, dict]:
    """Greedy search to a number of modes and to a tolerance, and `learn` with all that it does besides."""
    product, out = sparse.csr_array(sum(blocks)), {}
    thetas = ps.parameters(a=(0.1, 1.0), b=(0.1, 1.0), c=(0.1, 1.0), d=(0.1, 1.0))

    def affine_model() -> ps.AffineModel:
        terms = dict(zip(thetas, blocks, strict=True))
        return ps.AffineModel(terms, {1: load}, points=mesh.p.T, cells=mesh.t.T, free=free, product=product)

    ways = {
        f"parasol, greedy to {asked.modes} modes": lambda: ps.greedy(affine_model(), n_modes=asked.modes),
        f"parasol, greedy to {asked.tolerance:g}": lambda: ps.greedy(affine_model(), tolerance=asked.tolerance),
        f"parasol, learn to {asked.tolerance:g}": lambda: ps.learn(affine_model(), asked.tolerance),
    }
    for name, way in ways.items():
        start = time.process_time()
        outcome = way()
        seconds = time.process_time() - start
        learned = isinstance(outcome, ps.Surrogate)
        solves = outcome.facts["learn"]["solves"] if learned else outcome.n_solves
        out[name] = {"offline_seconds": seconds, "solves": solves}
        out[name] |= judged(outcome.reduced, product, free, mus, truth)
        if learned:
            out[name]["stages"] = outcome.facts["learn"]["stages"]
    return out


def theirs(python: str, blocks, load, asked, mus: np.ndarray, truth: np.ndarray) -> dict[str, dict]:
    """pyMOR's, from a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for i, block in enumerate(blocks):
            sparse.save_npz(Path(folder, f"block{i}.npz"), sparse.csc_matrix(block))
        np.savez(Path(folder, "rest.npz"), load=load, mus=mus, truth=truth, modes=asked.modes, aim=asked.tolerance)
        side = Path(__file__).with_name("pymor_side.py")
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        subprocess.run([python, str(side), folder], check=True, env=environment)
        return json.loads(Path(folder, "result.json").read_text())


def markdown(results: dict[str, dict]) -> str:
    """A table, one column for each way."""
    lines = ["| | " + " | ".join(results) + " |", "|" + "---|" * (len(results) + 1)]
    for key, words in ROWS.items():
        cells = [", ".join(written(key, v) for v in np.atleast_1d(result[key])) for result in results.values()]
        lines.append(f"| {words} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def written(key: str, value: float) -> str:
    """A number as it stands in the table."""
    if key in ("l2", "h1"):
        return f"{value:.1e}"
    return f"{value:.0%}" if key == "proven" else f"{value:.3g}"


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pymor", metavar="PYTHON", help="an interpreter that has pyMOR")
    parser.add_argument("--cells", type=int, default=142)
    parser.add_argument("--modes", type=int, default=20)
    parser.add_argument("--tolerance", type=float, default=1e-5)
    parser.add_argument("--json", metavar="FILE")
    asked = parser.parse_args()
    blocks, load, mesh, free = matrices(asked.cells)
    mus = np.random.default_rng(2026).uniform(0.1, 1.0, (N_TEST, 4))
    truth = np.array(
        [spsolve(sparse.csc_matrix(sum(m * a for m, a in zip(mu, blocks, strict=True))), load) for mu in mus]
    )
    print(
        f"{len(load)} unknowns, parasol {ps.__version__}, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'not set')}"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)
        results = ours(blocks, load, mesh, free, asked, mus, truth)
    if asked.pymor:
        peer = theirs(asked.pymor, blocks, load, asked, mus, truth)
        print(peer.pop("settings"))
        results |= peer
    print(markdown(results))
    for name, result in results.items():
        if "stages" in result:
            print(f"stages of {name}: {result['stages']}")
    if asked.json:
        Path(asked.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
