"""The paper's experiments in full size, with all seeds and readings, in pieces of a few minutes on a machine with a GPU.

    python benchmarks/paper.py --seconds 560 --store STORE --to results

Call it again to go on: full solves, what every seed reached and half-done trainings are kept in the store; with `--seconds 0`
it only collects. After each call the folder --to holds results and reports of the finished runs, and every seed's result so
far; archives are cut into pieces (`cat known.tar.gz.* > known.tar.gz`). On another machine, where the store is gone,
`--known known.tar.gz` leaves out runs and trainings that were finished; full solves are made again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

JOBS = max(1, (os.cpu_count() or 2) - 1)
# lanes side by side: while one computes on the CPU, another has the GPU; the first one goes before the others on the CPU
LANES = (
    (("sine-gordon", "paper"), ("schrodinger", "paper")),
    (("sine-gordon", "best"), ("helmholtz", "paper")),
    (("schrodinger", "best"), ("helmholtz", "best")),
)
PIECE = 15 * 2**20  # bytes: what comes back from some machines is limited in size


def main() -> None:
    """Run what is left, for so many seconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=560.0, help="stop after so many")
    parser.add_argument("--store", required=True, type=Path, help="where everything is kept between calls")
    parser.add_argument("--to", required=True, type=Path, help="where results and reports are copied to")
    parser.add_argument("--known", type=Path, help="known.tar.gz of an earlier call: trainings to leave out")
    parser.add_argument(
        "--one-by-one", action="store_true", help="no two at once, so that nothing disturbs what is timed"
    )
    parser.add_argument("--quick", action="store_true", help="small versions, to see that everything runs")
    given = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # else it may be ignored here, and by all that is started
    store, end = (
        given.store.absolute(),
        time.monotonic() + given.seconds - 30,
    )  # half-done trainings take a while to write
    if given.known is not None and not store.exists():
        with tarfile.open(given.known) as archive:
            archive.extractall(store, filter="data")
    store.mkdir(parents=True, exist_ok=True)
    abreast = (tuple(run for runs in LANES for run in runs),) if given.one_by_one else LANES
    lanes = [Lane(runs, store, given.quick, nice=10 * (runs is not abreast[0])) for runs in abreast]
    while time.monotonic() < end and any([lane.go_on() for lane in lanes]):
        time.sleep(1)
    running = [lane for lane in lanes if lane.process is not None and lane.process.poll() is None]
    for lane in running:
        lane.process.send_signal(signal.SIGINT)  # as Ctrl-C does
    for lane in running:
        lane.end()
    collect(store, given.to)


class Lane:
    """Runs that follow each other; those that were finished in an earlier call are left out."""

    def __init__(self, runs: tuple[tuple[str, str], ...], store: Path, quick: bool, nice: int):
        self.store, self.quick, self.nice, self.now = store, quick, nice, ("", "")
        self.process: Any = None
        self.runs = [run for run in runs if not self._marker(run).exists()]

    def go_on(self) -> bool:
        """Start the next run where one has ended; whether there is anything left."""
        if self.process is not None:
            if self.process.poll() is None:
                return True
            print(f"{' '.join(self.now)}: ended with {self.process.returncode}", flush=True)
            if self.process.returncode == 0:
                self._marker(self.now).touch()
            self.process = None
        if not self.runs:
            return False
        self.now = self.runs.pop(0)
        print(f"{' '.join(self.now)}: begins", flush=True)
        given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        paths = os.pathsep.join(os.path.abspath(path) for path in given if path)  # the run has another folder
        environment = {
            **os.environ,
            "PYTHONPATH": paths,
            "PYTHONUNBUFFERED": "1",
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        }
        with (self.store / f"{'-'.join(self.now)}.log").open("ab") as log:
            self.process = subprocess.Popen(self._command(), stdout=log, stderr=log, env=environment, cwd=self.store)
        return True

    def end(self) -> None:
        """Wait until what is half-done is written."""
        try:
            self.process.wait(28)
        except subprocess.TimeoutExpired:
            self.process.kill()
        print(f"{' '.join(self.now)}: to be continued", flush=True)

    def _command(self) -> list[str]:
        problem, preset = self.now
        out = f"{problem}-{preset}"
        jobs = "1" if problem == "schrodinger" else str(JOBS)  # its solves take a millisecond
        words = [
            "nice",
            f"-n{self.nice}",
            sys.executable,
            "-m",
            "parasol_lab",
            "paper",
            problem,
            "--preset",
            preset,
            "--out",
            out,
            "--jobs",
            jobs,
        ]
        return [*words, *(["--readings"] if preset == "paper" else []), *(["--quick"] if self.quick else [])]

    def _marker(self, run: tuple[str, str]) -> Path:
        return self.store / f"{'-'.join(run)}.done"


def collect(store: Path, to: Path) -> None:
    """Results of finished runs, their reports, what is known for other machines, every seed's result, and the ends of all logs."""
    to.mkdir(parents=True, exist_ok=True)
    done = [path for path in sorted(store.iterdir()) if (path / "results.json").exists()]
    seeds = []
    for path in sorted((store / "snapshots" / "made").glob("*.json")):
        facts = json.loads(path.read_text())
        if "training" in facts:
            seeds.append(facts)
    (to / "seeds.json").write_text(json.dumps(seeds, indent=1))
    (to / "logs.txt").write_text(
        "\n".join(f"== {p.name}\n{p.read_text()[-3000:]}" for p in sorted(store.glob("*.log")))
    )
    (to / "results.json").write_text(
        json.dumps({path.name: json.loads((path / "results.json").read_text()) for path in done})
    )
    reports, known = store / "reports.tar.gz", store / "known.tar.gz"
    with tarfile.open(reports, "w:gz", compresslevel=4) as archive:
        for path in done:
            archive.add(path / "report.html", f"{path.name}.html")
    with tarfile.open(known, "w:gz", compresslevel=1) as archive:
        for path in (*store.glob("*.done"), *(store / "snapshots" / "made").glob("*")):
            if path.suffix != ".npz":  # half-done trainings
                archive.add(path, path.relative_to(store))
    for whole in (reports, known):
        raw = whole.read_bytes()
        for k in range(0, max(len(raw), 1), PIECE):
            (to / f"{whole.name}.{k // PIECE}").write_bytes(raw[k : k + PIECE])  # cat NAME.* > NAME
    print(f"finished: {', '.join(path.name for path in done) or 'none'}; {len(seeds)} seeds", flush=True)
    print(f"free on the disk: {shutil.disk_usage(store).free / 2**30:.0f} GiB", flush=True)


if __name__ == "__main__":
    main()
