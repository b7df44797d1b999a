"""Answers streamed to a file, beside the same writer without a surrogate: what fraction of the disk's speed is reached.

    python benchmarks/streaming.py --queries 1000000 --folder /tmp --json docs/results/streaming.json

A surrogate of helmholtz with 1036 nodes (a polynomial of 12 modes) answers random parameters into a `.npy`; the writer alone writes
as many bytes of one block. Both run in turns, twice, each in a process of its own; the file is brought to the disk at the end, and
removed. Memory is the peak of the process, which counts the pages of the file of parameters, and what of it is its own. The file takes 8.3 kB a query: where 10^7 of them do not fit on the disk, use fewer `--nodes`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import parasol as ps
from parasol.delivery import streaming


def prepare(folder: Path, n: int, n_nodes: int) -> None:
    """Write the surrogate and the parameters."""
    problem = ps.load_problem("helmholtz")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=n_nodes))
    basis = ps.pod(ps.solve_many(model, ps.sample(model, 60)), n_modes=12)
    ps.save(ps.fit(ps.reduce(model, basis), "polynomial", n_labels=400), folder / "model.parasol")
    low, high = (
        np.array([p.low for p in problem.parameters.scalars]),
        np.array([p.high for p in problem.parameters.scalars]),
    )
    np.save(folder / "mus.npy", np.random.default_rng(0).uniform(low, high, (n, 2)))


def peak_memory() -> float:
    """The most memory of this process in MB; that of `resource` would count its parent's."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


class Watched:
    """The most memory of this process in MB that is its own, without pages of mapped files, looked at every 50 ms."""

    def __enter__(self) -> Watched:
        self.most, self._end = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._end.wait(0.05):
            lines = Path("/proc/self/status").read_text().splitlines()
            own = next(line for line in lines if line.startswith("RssAnon"))
            self.most = max(self.most, int(own.split()[1]) / 1024)


def one(what: str, folder: Path, n: int, jobs: int) -> dict:
    """Seconds and memory of one way to write the file."""
    path = folder / "u.npy"
    surrogate, mus = ps.load(folder / "model.parasol"), np.load(folder / "mus.npy", mmap_mode="r")[:n]
    before = peak_memory()
    start, cpu = time.perf_counter(), time.process_time()
    with Watched() as memory:
        if what == "answers":
            ps.write_answers(surrogate, mus, path, jobs=jobs)
        else:
            width, kind = surrogate.n_values, np.dtype(float)
            block, shape = np.random.default_rng(1).standard_normal((streaming._length(width), width)), (n, width)
            streaming.write_rows(path, lambda rows: block[: rows.stop - rows.start], shape, kind, jobs)
    written = time.perf_counter() - start
    fd = os.open(path, os.O_RDWR)
    os.fsync(fd)
    os.close(fd)
    seconds, size = time.perf_counter() - start, path.stat().st_size
    path.unlink()
    peak = peak_memory()
    facts = {"MB": 1e-6 * size, "MB/s": 1e-6 * size / seconds, "MB/s into the cache": 1e-6 * size / written}
    facts |= {"cpu s": time.process_time() - cpu, "MB memory": peak, "MB besides": peak - before}
    return facts | {"MB of its own": memory.most}


def main() -> None:
    """Print a row for each number of queries."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, nargs="+", default=[100_000])
    parser.add_argument("--nodes", type=int, default=1036)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--jobs", type=int, default=streaming._n_cores())
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        what, folder, n = options.one
        print(json.dumps(one(what, Path(folder), int(n), options.jobs)))
        return
    rows = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        prepare(Path(folder), max(options.queries), options.nodes)
        for n in options.queries:
            runs_of: dict[str, list[dict]] = {"answers": [], "writer alone": []}
            for _ in range(options.turns):
                for what, runs in runs_of.items():
                    command = [sys.executable, __file__, "--jobs", str(options.jobs), "--one", what, folder, str(n)]
                    runs.append(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
            best = {what: max(runs, key=lambda run: run["MB/s"]) for what, runs in runs_of.items()}
            fraction = best["answers"]["MB/s"] / best["writer alone"]["MB/s"]
            rows.append({"queries": n, "nodes": options.nodes, "jobs": options.jobs, "fraction": fraction, **best})
            print(json.dumps(rows[-1], indent=1), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
