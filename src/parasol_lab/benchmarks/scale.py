"""Growth with the number of nodes: seconds and memory of every stage, the exponent beside the ideal, and what a plan predicts."""

from __future__ import annotations

import gc
import json
import multiprocessing
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from parasol import discretize, explore, fit, learn, load_problem, plan, pod, reduce, sample, save, scatter, solve_many
from parasol.checks import ParasolWarning, check_count
from parasol.errors import InputError
from parasol.report import Facts

STAGES = ("nodes", "weights", "solve", "snapshots", "pod", "reduce", "learn", "query", "file", "page")
# the exponent of a method that looks at every value a bounded number of times; none can be better, for all are written
IDEAL = dict.fromkeys(STAGES, 1.0)
SIZES = (1000, 2000, 4000)
_N_SNAPSHOTS = 8  # enough for times; the basis of a surrogate that is used takes more
_N_QUERIES = 100
_TOLERANCE = 1e-2
_ANCHORS = 4  # of the constants of the reduced model's bounds, as few as show the growth


def measure_scale(
    sizes: Sequence[int] = SIZES,
    *,
    problem: str = "helmholtz",
    limit: float = 60.0,
    add_to: str | Path | None = None,
    progress: Callable[[str], Callable[[float], None] | None],
) -> Facts:
    """Every stage at every size, each size in a process of its own; a stage that would take more than `limit` seconds is left out.

    `add_to` is a file of what another run returned, for the same problem: its sizes, all smaller, stand before these.
    """
    rows: list[Facts] = [] if add_to is None else _rows_before(Path(add_to), problem)
    known = [row["asked"] for row in rows]
    sizes = sorted({*known, *[check_count(n, "size") for n in sizes]})
    if len(sizes) < 2:
        raise InputError("growth needs two sizes or more. Give them as --sizes 1000,2000,4000.")
    if sizes[: len(known)] != known:
        raise InputError(f"--add-to has sizes up to {known[-1]} already. Give larger ones, or measure all again.")
    load_problem(problem)  # refuses a wrong name before any work
    for n in sizes[len(known) :]:
        progress(f"{problem}, {n} nodes")
        skipped = {stage: cost for stage in STAGES if (cost := _foreseen(rows, stage, n)) > limit}
        rows.append({"asked": n} | _apart(_measured, problem, n, sorted(skipped)) | {"skipped": skipped})
        if "learn" not in skipped:
            progress(f"{problem}, {n} nodes: learning")
            rows[-1]["stages"]["learn"] = _apart(_learned, problem, n)
            progress(f"{problem}, {n} nodes: planning")
            rows[-1]["plan"] = _apart(_planned, problem, n)
    exponents = {stage: _exponent(rows, stage) for stage in STAGES}
    return {
        "problem": problem,
        "sizes": sizes,
        "rows": rows,
        "exponents": {k: v for k, v in exponents.items() if v},
        "ideal": IDEAL,
    }


def _rows_before(path: Path, problem: str) -> list[Facts]:
    """The rows of an earlier run."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        rows = sorted(facts["rows"], key=lambda row: row["asked"])
        if facts["problem"] == problem:
            return rows
        why = f"is of {facts['problem']}, not of {problem}"
    except OSError as error:
        why = f"cannot be read ({error.strerror})"
    except (ValueError, KeyError, TypeError):
        why = "is no JSON file of `parasol bench scale`"
    raise InputError(f"--add-to: {path} {why}. Give what --json wrote.")


def _apart(function: Callable[..., Facts], *arguments: Any) -> Facts:
    """What a function returns in a fresh process, whose memory at its largest is then its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


class Clock:
    """Seconds, of the wall and of the processor, and the memory at its largest so far, by stage."""

    def __init__(self) -> None:
        self.stages: dict[str, Facts] = {}

    def __call__(self, stage: str, work: Callable[[], Any], each: int = 1) -> Any:
        """Run a stage; its figures are per one of `each`."""
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        out = work()
        seconds = {"seconds": (time.perf_counter() - wall) / each, "cpu_seconds": (time.process_time() - cpu) / each}
        self.stages[stage] = {**seconds, "peak_bytes": peak_bytes()}
        return out


def peak_bytes() -> float:
    """Memory of this process at its largest."""
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * (1 if sys.platform == "darwin" else 1024)


def _quiet() -> None:
    warnings.simplefilter("ignore", ParasolWarning)


def _measured(problem_name: str, n: int, skipped: Sequence[str]) -> Facts:
    """All stages but learn at one size."""
    _quiet()
    clock, problem, refused = Clock(), load_problem(problem_name), {}
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        nodes = clock("nodes", lambda: scatter(problem.domain, n_nodes=n, rng=0))
        model = clock("weights", lambda: discretize(problem, nodes))
        solution = clock("solve", lambda: model.solve(model.vector()))
        mus = sample(model, _N_SNAPSHOTS)
        if "snapshots" not in skipped:
            snapshots = clock("snapshots", lambda: solve_many(model, mus), _N_SNAPSHOTS)
            basis = clock("pod", lambda: pod(snapshots, n_modes=_N_SNAPSHOTS))
            if "reduce" not in skipped:
                clock("reduce", lambda: reduce(model, basis, n_anchors=_ANCHORS))
            surrogate = fit(snapshots, "linear", basis=basis, model=model)
            queries = sample(model, _N_QUERIES, design="random", rng=1)
            clock("query", lambda: surrogate(queries).values, _N_QUERIES)
            file, page = Path(folder, "surrogate.parasol"), Path(folder, "page.html")
            clock("file", lambda: save(surrogate, file))
            clock.stages["file"]["bytes"] = file.stat().st_size
            try:
                clock("page", lambda: explore(surrogate, page))
                clock.stages["page"]["bytes"] = page.stat().st_size
            except InputError as error:  # no page is that large; what was measured before is kept
                refused["page"] = str(error)
    facts = {"n_unknowns": model.n_unknowns, "solver": solution.backend, "residual": solution.residual_norm}
    facts["refused"] = refused
    return {"n_nodes": model.n_nodes, **facts, "stages": clock.stages}


def _learned(problem_name: str, n: int) -> Facts:
    _quiet()
    clock = Clock()
    with threadpool_limits(1):
        clock("learn", lambda: learn(load_problem(problem_name), _TOLERANCE, n_nodes=n))
    return clock.stages["learn"]


def _planned(problem_name: str, n: int) -> Facts:
    """What a plan predicts, before anything is learned; its seconds also times the share of a processor that it had."""
    _quiet()
    clock = Clock()
    with threadpool_limits(1):
        facts = clock("plan", lambda: plan(load_problem(problem_name), _TOLERANCE, n_nodes=n)).facts()
    share = clock.stages["plan"]["cpu_seconds"] / clock.stages["plan"]["seconds"]
    seconds = facts["whole_seconds"]
    return {
        "seconds": seconds,
        "cpu_seconds": [share * value for value in seconds],
        "memory_bytes": facts["memory_bytes"],
    }


def _cost(row: Facts, stage: str) -> float | None:
    stage_facts = row["stages"].get(stage)
    return None if stage_facts is None else max(stage_facts["cpu_seconds"], 1e-6)


def _foreseen(rows: list[Facts], stage: str, n: int) -> float:
    """Seconds that a stage is expected to take at n nodes, by the two sizes before; 0 where nothing is known."""
    known = [(row["n_nodes"], cost) for row in rows if (cost := _cost(row, stage)) is not None]
    if rows and stage in rows[-1]["skipped"]:  # left out before: at least as much more as there are more nodes
        return rows[-1]["skipped"][stage] * n / rows[-1]["n_nodes"]
    if len(known) < 2:
        return 0.0
    (a, first), (b, second) = known[-2:]
    power = float(np.clip(np.log(second / first) / np.log(b / a), 1.0, 3.0))
    return second * (n / b) ** power * (_N_SNAPSHOTS if stage == "snapshots" else 1)


def _exponent(rows: list[Facts], stage: str) -> Facts | None:
    """The exponents of time and of memory, by least squares of logarithms over all sizes."""
    known = [(row["n_nodes"], row["stages"][stage]) for row in rows if stage in row["stages"]]
    if len(known) < 2:
        return None
    n = np.log([size for size, _ in known])
    slopes = {}
    for name in ("cpu_seconds", "peak_bytes", "bytes"):
        values = [facts.get(name) for _, facts in known]
        if all(values):
            slopes[name] = float(np.polyfit(n, np.log(values), 1)[0])
    return slopes


def scale_rows(facts: Facts) -> list[tuple[str, str]]:
    """The figures in words, for a table."""
    rows = [("problem", f"{facts['problem']}, {', '.join(str(row['n_nodes']) for row in facts['rows'])} nodes")]
    for stage in STAGES:
        known = [(row["n_nodes"], row["stages"][stage]) for row in facts["rows"] if stage in row["stages"]]
        if not known:
            continue
        times = ", ".join(f"{1e3 * cost['cpu_seconds']:.3g}" for _, cost in known)
        slopes = facts["exponents"].get(stage) or {}
        words = f"grows like n^{slopes['cpu_seconds']:.2f}, ideal n^{facts['ideal'][stage]:g}; " if slopes else ""
        rows.append((stage, f"{words}{times} ms of processor time"))
    solvers = {row["n_nodes"]: row["solver"] for row in facts["rows"]}
    rows.append(("solver", "; ".join(f"{n}: {solver}" for n, solver in solvers.items())))
    peaks = [f"{1e-6 * max(c['peak_bytes'] for c in row['stages'].values()):.0f}" for row in facts["rows"]]
    rows.append(("memory at most", f"{', '.join(peaks)} MB"))
    for row in facts["rows"]:
        if "cpu_seconds" in row.get("plan", {}):
            compared = [
                _compared(row, "cpu_seconds", "cpu_seconds", 1.0, "s of processor time"),
                _compared(row, "memory_bytes", "peak_bytes", 1e-6, "MB"),
            ]
            rows.append((f"planned, {row['n_nodes']} nodes", "; ".join(compared)))
        for stage, words in row.get("refused", {}).items():
            rows.append((f"left out, {row['n_nodes']} nodes", f"{stage}: {words}"))
        for stage, cost in row["skipped"].items():
            if stage in row["stages"]:  # nodes, weights and one solve are measured in any case
                continue
            rows.append((f"left out, {row['n_nodes']} nodes", f"{stage}: about {cost:.0f} s expected"))
    return rows


def _compared(row: Facts, planned: str, measured: str, unit: float, name: str) -> str:
    low, high = (unit * value for value in row["plan"][planned])
    return f"{low:.3g} to {high:.3g} {name}, learn took {unit * row['stages']['learn'][measured]:.3g}"


def draw_scale(facts: Facts, path: str | Path) -> Path:
    """Seconds of every stage over the number of nodes, on logarithmic axes, with lines of slope 1."""
    from parasol.cache import check_output, replacing
    from parasol.report import FIGURE_SUFFIXES, INK, require_matplotlib

    figure_class = require_matplotlib()
    path = check_output(path, FIGURE_SUFFIXES)
    figure = figure_class(figsize=(11.5, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    sizes = [row["n_nodes"] for row in facts["rows"]]
    markers = "osv^D*XPhp"
    for k, stage in enumerate(STAGES):
        known = [(row["n_nodes"], row["stages"][stage]) for row in facts["rows"] if stage in row["stages"]]
        if not known:
            continue
        slopes = facts["exponents"].get(stage)
        label = f"{stage}, n^{slopes['cpu_seconds']:.2f}" if slopes else stage
        style = {"color": f"C{k}", "marker": markers[k], "ms": 5, "lw": 1.5, "label": label}
        left.plot([n for n, _ in known], [cost["cpu_seconds"] for _, cost in known], **style)
        right.plot([n for n, _ in known], [1e-6 * cost["peak_bytes"] for _, cost in known], **style)
    for axes, title in ((left, "processor seconds"), (right, "memory at most until then, MB")):
        axes.set(xscale="log", yscale="log", xlabel="nodes", title=title)
        low, high = axes.get_ylim()
        for start in 10.0 ** np.arange(np.floor(np.log10(low)) - 2, np.ceil(np.log10(high)) + 1):
            axes.plot(sizes, start * np.array(sizes) / sizes[0], color=INK, lw=0.5, alpha=0.25, zorder=0)
        axes.set_ylim(low, high)
        axes.grid(alpha=0.2)
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*left.get_legend_handles_labels(), fontsize=8, frameon=False, loc="outside right center")
    figure.suptitle(f"{facts['problem']}: growth with the number of nodes; thin lines grow like n", fontsize=11)
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=150, bbox_inches="tight", pad_inches=0.12)
    return path
