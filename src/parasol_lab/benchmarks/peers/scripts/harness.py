"""Runs one peer's script in the peer's own environment and measures it: `python harness.py REQUEST.json RESULT.json`.

NumPy and SciPy are all it needs. The script defines `fit(data, seed, **options)`, which returns a dictionary: `predict`, a
function from parameters (n, 2) to solutions (n, n_values); where there are any, `n_modes`, and `bound`, a function from
parameters to what the peer says about the relative error. A script of kind "solve" returns `solve`, a function from one
parameter to a solution, `values`, a function from that to values at `data.points`, and `n_unknowns`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from scipy import sparse

BATCH = 2000


def timed(work, *, repeat: int = 1, limit: float = 0.0):
    """What a function returns, and its least seconds, of the wall and of the processor, in `repeat` calls or `limit` seconds."""
    best, cpu, begin = np.inf, np.inf, time.perf_counter()
    for i in range(repeat):
        start, start_cpu = time.perf_counter(), time.process_time()
        value = work()
        best, cpu = min(best, time.perf_counter() - start), min(cpu, time.process_time() - start_cpu)
        if i and time.perf_counter() - begin > limit:
            break
    return value, {"seconds": best, "cpu_seconds": cpu}


def read(folder: Path, n_train: int | None) -> SimpleNamespace:
    """The arrays by name; of the training set the first `n_train`."""
    arrays = {path.stem: np.load(path) for path in folder.glob("*.npy")}
    for name in ("mus", "solutions"):
        arrays[name] = arrays.pop(f"train_{name}")[:n_train]
    operators = [sparse.load_npz(path) for path in sorted(folder.glob("operator*.npz"))]
    return SimpleNamespace(**arrays, operators=operators)


def relative(values: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Relative l2 errors of rows."""
    return np.linalg.norm(values - exact, axis=1) / np.linalg.norm(exact, axis=1)


def projection(solutions: np.ndarray, n_modes: int, test: np.ndarray) -> float:
    """Mean relative error of the projection on as many singular vectors of the same snapshots: no map into them does better."""
    modes = np.linalg.svd(solutions, full_matrices=False)[2][:n_modes]
    rest = test - (test @ modes.T) @ modes
    return float(np.mean(np.linalg.norm(rest, axis=1) / np.linalg.norm(test, axis=1)))


def learned(fit, data: SimpleNamespace, seed: int, options: dict) -> dict:
    """One fit: errors at the test parameters, times, what its bound is worth."""
    fitted, fit_time = timed(lambda: fit(data, seed, **options))
    predict, mus = fitted["predict"], data.test_mus
    batch = np.resize(mus, (BATCH, mus.shape[1]))
    predict(mus[:1])
    values, batch_time = timed(lambda: np.asarray(predict(batch)), repeat=3, limit=10.0)
    single_time = timed(lambda: predict(mus[:1]), repeat=200, limit=3.0)[1]
    errors = relative(values[: len(mus)], data.test_solutions[: len(values)])
    if not np.all(np.isfinite(errors)):
        raise ValueError("some predictions are not numbers")
    out = {"error": float(np.mean(errors)), "max": float(np.max(errors)), "fit": fit_time}
    out |= {"batch": batch_time, "single": single_time}
    if fitted.get("n_modes"):
        out["n_modes"] = int(fitted["n_modes"])
        out["projection"] = projection(data.solutions, out["n_modes"], data.test_solutions)
    if "bound" in fitted:
        bounds = np.ravel(fitted["bound"](mus))
        ratio = bounds / np.maximum(errors, 1e-300)
        out["bound"] = {"holds": float(np.mean(ratio >= 1)), "median_ratio": float(np.median(ratio))}
    return out


def solved(fit, data: SimpleNamespace, seed: int, options: dict) -> dict:
    """One discretisation: errors against the reference at the points, seconds of a solve at a further parameter."""
    fitted, fit_time = timed(lambda: fit(data, seed, **options))
    values = np.array([fitted["values"](fitted["solve"](mu)) for mu in data.solver_mus])
    # each time at a parameter that was not solved before: factors may be kept
    further = [mu + step * (1 - mu) for step in (0.01, 0.02) for mu in data.solver_mus]
    times = [timed(lambda mu=mu: fitted["solve"](mu))[1] for mu in further]
    single = {key: min(one[key] for one in times) for key in times[0]}
    errors = relative(values, data.reference)
    return {
        "error": float(np.mean(errors)),
        "errors": errors.tolist(),
        "max": float(np.max(errors)),
        "n_unknowns": int(fitted["n_unknowns"]),
        "fit": fit_time,
        "single": single,
    }


def main(request: dict) -> dict:
    """Import the script, fit and measure for each seed."""
    spec = importlib.util.spec_from_file_location("peer", request["script"])
    peer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(peer)
    data = read(Path(request["data"]), request["n_train"])
    measure = solved if request["kind"] == "solve" else learned
    runs = [measure(peer.fit, data, seed, request["options"]) for seed in request["seeds"]]
    return {"runs": runs, "python": platform.python_version()}


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(5)  # the machine may have other work
    warnings.filterwarnings("ignore")
    answer = main(json.loads(Path(sys.argv[1]).read_text()))
    Path(sys.argv[2]).write_text(json.dumps(answer))
