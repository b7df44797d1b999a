"""The default map for data beside each map by itself, on ten data sets: errors on solutions never seen, seconds, modes.

    PYTHONPATH=src python benchmarks/data.py                   # all of them; --only noise darcy, --maps linear polynomial
    PYTHONPATH=src python benchmarks/data.py --json data.json

Every data set is given to `fit_snapshots` as it is: by default, and with each recipe by its name. The error is the mean relative
l2 error on 200 solutions at new parameters of the same distribution, without noise. "best" in the last column is the error
of the default over the least of all maps tried. Darcy: −∇·(a∇u) = 1 on the unit square, u = 0 on its boundary, a = 12 where a Gaussian
random field with covariance (−Δ + 9)⁻² (Neumann) is positive, else 3; by five-point finite volumes on 85 × 85 points, of
which every third is kept: 29 × 29 inputs and outputs. It is kept in the folder for temporary files.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.fft import idctn
from scipy.sparse.linalg import spsolve

from parasol.fitting.data import fit_snapshots
from parasol.fitting.gaussian_process import GaussianProcess
from parasol.fitting.training import NetworkRecipe

X = np.linspace(0.0, 1.0, 101)
N_TEST = 200


@dataclass(frozen=True, eq=False)
class Case:
    """A data set and solutions to test on."""

    mus: np.ndarray
    solutions: np.ndarray
    test_mus: np.ndarray
    test: np.ndarray
    options: dict = field(default_factory=dict)


def sampled(solve: Callable[[np.ndarray], np.ndarray], n: int, box, seed: int = 0, noise: float = 0.0) -> Case:
    """Solutions at n random parameters of the box, with noise relative to their root mean square, and tests without."""
    low, high = np.array(box, dtype=float).T
    rng = np.random.default_rng(seed)
    mus, test = (rng.uniform(low, high, (count, len(low))) for count in (n, N_TEST))
    u = solve(mus)
    u = u + noise * np.sqrt(np.mean(u**2)) * rng.standard_normal(u.shape)
    return Case(mus, u, test, solve(test))


def bump(mus: np.ndarray) -> np.ndarray:
    """A smooth hill with a place and a width, above a slope."""
    c, w, s = mus.T[:, :, None]
    return 1.0 / (1.0 + ((X - c) / w) ** 2) + s * X


def rod(mus: np.ndarray) -> np.ndarray:
    """−(k u')' = 1, u(0) = 0, k u'(1) = 0 with log k = Σ_j μ_j cos(jπx) / j²: u = ∫ (1 − x) / k."""
    j = 1 + np.arange(mus.shape[1])
    slope = (1 - X) / np.exp(mus / j**2 @ np.cos(np.pi * j[:, None] * X))
    return np.concatenate([np.zeros((len(mus), 1)), np.cumsum((slope[:, 1:] + slope[:, :-1]) / 200, axis=1)], axis=1)


def kink(mus: np.ndarray) -> np.ndarray:
    """Contact: a rod that is stopped by an obstacle when the load is large enough."""
    a, b = mus.T[:, :, None]
    return np.sin(np.pi * X) * np.minimum(a, b) + 0.3 * X * np.maximum(a - b, 0) + 0.2


def front(mus: np.ndarray) -> np.ndarray:
    """A front of width 0.03 somewhere."""
    c, h = mus.T[:, :, None]
    return 1 + h * np.tanh((X - c) / 0.03)


def waves(mus: np.ndarray) -> np.ndarray:
    """Three shapes, their coefficients smooth."""
    a, b = mus.T[:, :, None]
    return 1 + a * np.sin(3 * X) + b**2 * np.cos(5 * X) + 0.3 * np.exp(a * b) * X


def layer(mus: np.ndarray) -> np.ndarray:
    """−ε u'' + u = s, u(0) = u(1) = 0."""
    e, s = mus.T[:, :, None]
    k = 1 / np.sqrt(e)
    return s * (1 - (np.exp(-k * X) + np.exp(-k * (1 - X))) / (1 + np.exp(-k)))


def decay(mus: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Heat with two modes at start; conductivity and the share of the second."""
    k, s = mus.T[:, :, None]
    t = t[:, None]
    return np.exp(-k * t) * np.sin(np.pi * X) + s * np.exp(-4 * k * t) * np.sin(2 * np.pi * X) + 0.1


def trajectories(n: int) -> Case:
    """Rows (k, s, t): 8 times of each of n trajectories, with a column that says which."""
    rng = np.random.default_rng(5)

    def drawn(count: int, times: int) -> tuple[np.ndarray, np.ndarray]:
        mus = np.repeat(rng.uniform([0.2, 0.0], [3.0, 1.0], (count, 2)), times, axis=0)
        t = rng.uniform(0, 1, len(mus))
        return np.column_stack([mus, t]), decay(mus, t)

    (mus, u), (test, truth) = drawn(n, 8), drawn(N_TEST, 1)
    return Case(mus, u, test, truth, {"groups": np.repeat(np.arange(n), 8)})


def darcy(n: int = 1000) -> Case:
    """Two-valued Darcy flow; kept in the folder for temporary files."""
    path = Path(tempfile.gettempdir()) / f"parasol-darcy-{n}.npz"
    if not path.exists():
        rng = np.random.default_rng(0)
        pairs = [_darcy(rng) for _ in range(n + N_TEST)]
        np.savez(path, a=np.array([a for a, _ in pairs]), u=np.array([u for _, u in pairs]))
    with np.load(path) as stored:
        a, u = stored["a"], stored["u"]
    return Case(a[:n], u[:n], a[n:], u[n:], {"tolerance": 3e-3})


def _darcy(rng, n: int = 85) -> tuple[np.ndarray, np.ndarray]:
    k = np.pi**2 * np.add.outer(np.arange(n) ** 2, np.arange(n) ** 2)
    modes = rng.standard_normal((n, n)) / (k + 9.0)
    modes[0, 0] = 0.0
    a = np.where(idctn(modes, type=2, norm="ortho") >= 0, 12.0, 3.0)
    across, along = (a[1:, 1:-1] + a[:-1, 1:-1]) / 2, (a[1:-1, 1:] + a[1:-1, :-1]) / 2
    here = np.arange((n - 2) ** 2).reshape(n - 2, n - 2)
    middle = across[1:] + across[:-1] + along[:, 1:] + along[:, :-1]
    pairs = ((here[:-1], here[1:], across[1:-1]), (here[:, :-1], here[:, 1:], along[:, 1:-1]))
    rows = [here, *(v for i, j, _ in pairs for v in (i, j))]
    columns = [here, *(v for i, j, _ in pairs for v in (j, i))]
    values = [middle, *(-w for _, _, w in pairs for _ in range(2))]
    flat = [np.concatenate([v.ravel() for v in part]) for part in (values, rows, columns)]
    u = np.zeros((n, n))
    matrix = sp.csc_array((flat[0], (flat[1], flat[2])))
    u[1:-1, 1:-1] = spsolve(matrix, np.full(here.size, 1.0 / (n - 1) ** 2)).reshape(here.shape)
    return a[::3, ::3].ravel(), u[::3, ::3].ravel()


CASES: dict[str, Callable[[], Case]] = {
    "smooth, 3 inputs": lambda: sampled(bump, 150, [(0.3, 0.7), (0.3, 0.6), (0, 1)]),
    "10 inputs": lambda: sampled(rod, 200, [(-1, 1)] * 10),
    "kink": lambda: sampled(kink, 300, [(0, 1), (0.2, 0.8)]),
    "front": lambda: sampled(front, 300, [(0.2, 0.8), (0.5, 1)]),
    "2 % noise": lambda: sampled(waves, 150, [(0, 1), (0, 1)], noise=0.02),
    "20 samples": lambda: sampled(layer, 20, [(0.02, 0.5), (1, 2)]),
    "2000 samples": lambda: sampled(bump, 2000, [(0.2, 0.8), (0.1, 0.6), (0, 1)]),
    "log scale": lambda: sampled(lambda m: layer(np.column_stack([10 ** m[:, 0], m[:, 1]])), 150, [(-3, 2), (1, 2)]),
    "times": lambda: trajectories(100),
    "darcy": darcy,
}
MAPS = {
    "default": "best",
    "linear": "linear",
    "polynomial": "polynomial",
    "process": GaussianProcess(trend_degree=1),
    "rough process": GaussianProcess("matern52", trend_degree=1),
    "process, polynomial": "gaussian process",
    "kernel ridge": "kernel ridge",
    "network": NetworkRecipe.best(),
}


def measure(case: Case, recipe) -> dict:
    """Error, seconds, modes and bound of one map."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        surrogate = fit_snapshots(case.mus, case.solutions, recipe, **case.options)
        seconds = time.perf_counter() - start
        gap = surrogate.basis.lift(surrogate.coefficients(case.test_mus, extrapolate=True)) - case.test
    errors = np.linalg.norm(gap, axis=1) / np.linalg.norm(case.test, axis=1)
    out = {"error": float(np.mean(errors)), "seconds": seconds, "modes": surrogate.basis.n_modes}
    if surrogate.conformal is not None:
        out["bound"] = surrogate.facts.get("calibrated_bound", surrogate.conformal.quantile)
    return {**out, "choice": surrogate.facts.get("choice")}


def main() -> None:
    """Print a row for each data set, and write all numbers where asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the numbers here")
    parser.add_argument("--only", nargs="*", help="data sets by the beginning of their names")
    parser.add_argument("--maps", nargs="*", default=list(MAPS), help="maps by name")
    options = parser.parse_args()
    results = {}
    print("| data | taken | modes | seconds | " + " | ".join(options.maps) + " | over the best |")
    for name, make in CASES.items():
        if options.only and not name.startswith(tuple(options.only)):
            continue
        case, row = make(), {}
        for who in options.maps:
            try:
                row[who] = measure(case, MAPS[who])
            except ValueError as error:
                row[who] = {"refused": str(error)}
        results[name] = row
        errors = {who: numbers["error"] for who, numbers in row.items() if "error" in numbers}
        cells = [f"{errors[who]:.1e} ({row[who]['seconds']:.1f} s)" if who in errors else "" for who in options.maps]
        ours = row.get("default", {"choice": None})
        head = [ours["choice"]["map"], str(ours["modes"]), f"{ours['seconds']:.1f}"] if ours["choice"] else ["", "", ""]
        over = f"{errors['default'] / min(errors.values()):.2f}" if "default" in errors else ""
        print("| " + " | ".join([name, *head, *cells, over]) + " |", flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
