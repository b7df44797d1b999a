"""RBF-FD weights and sparse matrices side by side with treverhines-rbf, in one run: seconds, errors, ratios.

    pip install treverhines-rbf          # compiles from source
    PYTHONPATH=src python benchmarks/weights.py --json weights.json

Both get the same nodes, kernel, polynomial degree and stencil size, and start from the nodes: neighbour search, weights,
sparse matrices. Ours runs twice: as it comes, with one thread per processor, and held to one processor; the peer as it
comes. They take turns and the best of `--repeat` rounds counts. Errors are those on sin(3x) cos(2y) (times e^z), all
nodes, relative to the largest derivative. Without the peer only our own timings are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

from parasol.space.geometry.primitives import Box
from parasol.space.kernels import PHS, MultiIndex
from parasol.space.nodes import scatter
from parasol.space.operators import differentiate
from parasol.space.stencils import Scheme, n_workers

try:
    from rbf.pde.fd import weight_matrix  # type: ignore[import-not-found]
except ImportError:
    weight_matrix = None


@dataclass(frozen=True)
class Case:
    """Second derivatives along each axis, or their sum, by one scheme."""

    dimension: int
    scheme: Scheme
    summed: bool  # the Laplacian as one matrix; otherwise D_xx, D_yy, ... as we store them

    @property
    def derivatives(self) -> list[MultiIndex]:
        """(2, 0, ...), (0, 2, ...), ..."""
        return [tuple(row) for row in (2 * np.eye(self.dimension, dtype=int)).tolist()]

    @property
    def name(self) -> str:
        """What the table calls it."""
        what = "Laplacian" if self.summed else "D_xx, D_yy" + ", D_zz" * (self.dimension == 3)
        s = self.scheme
        return f"{self.dimension}-D {what}, {s.kernel}, degree {s.degree}, {s.stencil_size} nodes"


CASES = [
    Case(2, Scheme(PHS(5), 4, 30), True),
    Case(2, Scheme(PHS(5), 4, 30), False),
    Case(2, Scheme(PHS(7), 5, 51), True),  # the degree of our default; its PHS(9) is unknown to the peer
    Case(2, Scheme(PHS(7), 5, 51), False),
    Case(3, Scheme(PHS(5), 2, 25), True),
    Case(3, Scheme(PHS(5), 3, 48), True),
]


def ours(case: Case, points: np.ndarray) -> list:
    """Our matrices: one call, one factorisation per stencil."""
    by_derivative = differentiate(points, points, case.derivatives, case.scheme)
    matrices = [by_derivative[index] for index in case.derivatives]
    return [sum(matrices[1:], start=matrices[0])] if case.summed else matrices


def theirs(case: Case, points: np.ndarray) -> list:
    """The peer's matrices, in one call as well: its `sum_terms=False` is faster than a call for each operator."""
    s = case.scheme
    options = {"phi": f"phs{s.kernel.power}", "order": s.degree, "sum_terms": case.summed}  # type: ignore[attr-defined]
    matrices = weight_matrix(points, points, s.stencil_size, case.derivatives, **options)  # type: ignore[misc]
    return [matrices] if case.summed else list(matrices)


@contextmanager
def one_processor():
    """Hold this thread, and those it starts, to one processor (Linux)."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def timed(build: Callable[[Case, np.ndarray], list], case: Case, points: np.ndarray) -> tuple[list, float, float]:
    """Matrices, wall seconds, CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    matrices = build(case, points)
    return matrices, time.perf_counter() - wall, time.process_time() - cpu


def error(case: Case, matrices: Sequence, points: np.ndarray) -> float:
    """Largest error over the nodes and the matrices, relative to the largest exact value."""
    u = np.sin(3 * points[:, 0]) * np.cos(2 * points[:, 1])
    factors = [-9.0, -4.0]
    if case.dimension == 3:
        u = u * np.exp(points[:, 2])
        factors.append(1.0)
    exact = [sum(factors) * u] if case.summed else [f * u for f in factors]
    return max(float(np.max(np.abs(m @ u - e)) / np.max(np.abs(e))) for m, e in zip(matrices, exact, strict=True))


def difference(first: Sequence, second: Sequence) -> tuple[float, float]:
    """Largest difference of the weights relative to the largest weight, and the share of rows it is taken over.

    Rows with other neighbours (ties between equally distant nodes are broken at will) are left out.
    """
    worst, share = 0.0, 1.0
    for a, b in zip(first, second, strict=True):
        a, b = a.tocsr().copy(), b.tocsr().copy()
        a.eliminate_zeros()
        b.eliminate_zeros()
        same = abs((a != 0).astype(int) - (b != 0).astype(int)).sum(axis=1) == 0
        apart = abs(a - b).max(axis=1).toarray().ravel()[same]
        worst = max(worst, float(np.max(apart) / np.max(np.abs(a.data))))
        share = min(share, float(np.mean(same)))
    return worst, share


def measure(case: Case, points: np.ndarray, repeat: int) -> dict:
    """Everything about one case; the runs take turns."""
    best: dict[str, dict] = {}
    agree = None
    if weight_matrix is not None:
        theirs(case, points[:1000])  # the peer derives and compiles its kernels at the first use: not counted
    for _ in range(repeat):
        runs = {"parasol": timed(ours, case, points)}
        with one_processor():
            runs["parasol, one processor"] = timed(ours, case, points)
        if weight_matrix is not None:
            runs["treverhines-rbf"] = timed(theirs, case, points)
            agree = difference(runs["parasol"][0], runs["treverhines-rbf"][0])
        for who, (matrices, wall, cpu) in runs.items():
            entry = best.setdefault(who, {"wall_s": np.inf, "cpu_s": np.inf, "error": error(case, matrices, points)})
            entry["wall_s"] = min(entry["wall_s"], wall)
            entry["cpu_s"] = min(entry["cpu_s"], cpu)
    result = {"case": case.name, "n_nodes": len(points), "runs": best}
    if agree is not None:
        peer, alone = best["treverhines-rbf"], best["parasol, one processor"]
        result["difference"], result["same_stencils"] = agree
        result["speedup"] = peer["wall_s"] / best["parasol"]["wall_s"]
        result["speedup_one_processor"] = peer["wall_s"] / alone["wall_s"]
        result["speedup_cpu"] = peer["cpu_s"] / alone["cpu_s"]
    return result


def report(result: dict) -> None:
    """Print one case."""
    print(f"{result['case']}, {result['n_nodes']} nodes")
    for who, run in result["runs"].items():
        print(f"  {who:24s} {run['wall_s']:7.2f} s   {run['cpu_s']:7.2f} CPU s   error {run['error']:.2e}")
    if "speedup" in result:
        print(
            f"  {result['speedup']:.2f} times faster, on one processor {result['speedup_one_processor']:.2f} "
            f"(CPU time {result['speedup_cpu']:.2f}); weights differ by {result['difference']:.0e} "
            f"where the neighbours are the same ({100 * result['same_stencils']:.2f} % of the rows)"
        )
    print(flush=True)


def main() -> None:
    """Print the table, and write it where asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the numbers here")
    parser.add_argument("--nodes", type=int, default=100_000, help="number of nodes")
    parser.add_argument("--repeat", type=int, default=3, help="rounds, of which the best counts")
    options = parser.parse_args()
    if weight_matrix is None:
        print("treverhines-rbf is not installed: only our own timings")
    threads = {
        "parasol": n_workers(options.nodes),
        "treverhines-rbf": "1 of its own; linear algebra may use "
        + str(max((lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"), default=1)),
    }
    print("threads:", "; ".join(f"{who} {count}" for who, count in threads.items()), end="\n\n")
    points = {d: scatter(Box((0.0,) * d, (1.0,) * d), n_nodes=options.nodes, rng=0).points for d in (2, 3)}
    results = []
    for case in CASES:
        results.append(measure(case, points[case.dimension], options.repeat))
        report(results[-1])
    if options.json:
        machine = {"machine": platform.machine(), "python": platform.python_version(), "numpy": np.__version__}
        content = {"machine": machine, "threads": threads, "results": results}
        options.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
