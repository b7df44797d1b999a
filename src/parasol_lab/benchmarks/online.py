"""The online phase measured: maps on the paper's three problems beside the floor, and how fast they answer."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse.linalg import splu
from threadpoolctl import threadpool_limits

from parasol import (
    Settings,
    Surrogate,
    accuracy,
    fit,
    load_problem,
    pod,
    reduce,
    sample,
    solve_many,
)
from parasol.fitting import NetworkRecipe, recipe_named
from parasol.pde import Model, discretize_with
from parasol.reduction import Snapshots, TimeReducedModel, as_snapshots, space_basis
from parasol.report import Facts
from parasol_lab.paper.baselines import field_recipes, measure_fields

_SHORT = 5000  # values in a field, up to which the time of all fields of the test set is measured
Stage = Callable[[str], Callable[[float], None] | None]
PROBLEMS = ("helmholtz", "sine-gordon", "schrodinger")
# what the paper reports for POD-DNN, in its metric
PAPER = {"helmholtz": 6.8e-4, "sine-gordon": 3.72e-2, "schrodinger": 9.9e-2}


def measure_online(
    problems=PROBLEMS,
    *,
    store: Path | None = None,
    jobs: int | None = None,
    quick: bool = False,
    paper: bool = False,
    fields: bool = False,
    progress: Stage,
) -> Facts:
    """All figures of the online phase.

    `store` keeps full solves between runs; `paper` adds the paper's own recipe, `fields` the networks without POD.
    """
    measured = {"helmholtz": _helmholtz, "sine-gordon": _sine_gordon, "schrodinger": _schrodinger}
    return {name: measured[name](_Run(store, jobs, quick, paper, fields, progress)) for name in problems}


@dataclass(frozen=True, eq=False)
class _Run:
    """What all measurements share."""

    store: Path | None
    jobs: int | None
    quick: bool
    paper: bool
    fields: bool
    progress: Stage
    rows: list[Facts] = field(default_factory=list)

    def few(self, n: int) -> int:
        """A number of samples, less of them in a quick run."""
        return max(24, n // 50) if self.quick else n

    def model(self, name: str, preset: str, small: dict[str, Any]) -> Model:
        """The model of a preset, small in a quick run."""
        problem = load_problem(name)
        return discretize_with(problem, Settings(**small) if self.quick else problem.settings[preset])

    def solve(self, model: Model, mus: np.ndarray, name: str) -> Snapshots:
        """Full solves, from the store where they are."""
        folder = None if self.store is None else self.store / f"{name}{'-quick' if self.quick else ''}"
        progress = self.progress(f"{name}: {len(mus)} full solves")
        return solve_many(model, mus, store=folder, jobs=self.jobs, progress=progress)

    def whole_fields(self, model: Model, parts: tuple[Snapshots, ...], *, epochs: int, batch_size: int) -> list[Facts]:
        """The networks without POD, where they are asked for."""
        if not self.fields:
            return []
        epochs = 20 if self.quick else epochs
        recipes = field_recipes(model, epochs=epochs, batch_size=batch_size, paper=self.paper)
        train, validation, truth = parts
        return measure_fields(recipes, model, train, validation, truth, self.progress)

    def add(self, case: str, name: str, surrogate: Surrogate, truth: Snapshots, n_solves: int) -> None:
        """Measure a surrogate and keep the row."""
        measured = accuracy(surrogate, truth)
        network = getattr(surrogate.map, "network", None)
        self.rows.append(
            {
                "case": case,
                "map": name,
                "pde_solves": n_solves,
                "n_modes": surrogate.basis.n_modes,
                "error": measured.mean,
                "max": float(np.max(measured.errors)),
                "projection": measured.projection,
                "over_projection": measured.mean / measured.projection,
                "fit_seconds": surrogate.facts["fit_seconds"],
                "n_weights": None if network is None else network.n_weights,
                "over_product": _over_product(surrogate, truth.mus) if truth.n_values <= _SHORT else None,
            }
        )

    def maps(self, case: str, recipes: dict[str, Any], train: Snapshots, truth: Snapshots, n_solves: int, **options):
        """Fit every recipe to the same snapshots."""
        last = None
        for name, recipe in recipes.items():
            progress = self.progress(f"{case}: {name}")
            last = fit(train, recipe, progress=progress, **options)
            self.add(case, name, last, truth, n_solves)
        return last


def _recipes(run: _Run, paper: Any, *names: str) -> dict[str, Any]:
    out = {name: recipe_named(name) for name in names}
    return {**out, "paper": paper} if run.paper else out


# ---- Helmholtz ------------------------------------------------------------------------------------------------------
def _helmholtz(run: _Run) -> Facts:
    with threadpool_limits(1):
        model = run.model("helmholtz", "paper", {"n_nodes": 300})
        n = run.few(10000)
        data = run.solve(model, sample(model, n, design="random", scale="linear", rng=10), "helmholtz-data")
        train, validation, truth = _parts(data, (0.6, 0.2, 0.2))
        lattice = run.solve(model, sample(model, (10, 10), design="lattice", scale="linear"), "helmholtz-lattice")
    seventeen = pod(lattice, tolerance=1e-6)
    n_solves = len(lattice) + len(train) + len(validation)
    recipes = _recipes(run, NetworkRecipe.paper(), "best", "compact", "polynomial", "linear")
    options = {"model": model, "validation": validation}
    run.maps("as many samples as the paper, its basis", recipes, train, truth, n_solves, basis=seventeen, **options)
    compact = fit(train, "compact", basis=seventeen, **options)
    rich = pod(train, n_modes=min(60, len(train) // 2))
    recipes = _recipes(run, NetworkRecipe.paper(), "best", "polynomial")
    run.maps(
        "as many samples as the paper, more modes",
        recipes,
        train,
        truth,
        len(train) + len(validation),
        basis=rich,
        **options,
    )
    for count, modes in ((30, 30), (100, 50)):
        snapshots = run.solve(model, sample(model, count, design="edges", rng=0), f"helmholtz-{count}")
        reduced = reduce(model, pod(snapshots, n_modes=modes))
        for name in ("best", "compact", "polynomial"):
            progress = run.progress(f"{count} full solves: {name}")
            run.add(f"{count} full solves in all", name, fit(reduced, name, progress=progress), truth, count)
    run.progress("timing")
    return {
        "rows": run.rows,
        "paper": PAPER["helmholtz"],
        "speed": _speed(model, compact, truth.mus, run),
        "fields": run.whole_fields(model, (train, validation, truth), epochs=2000, batch_size=100),
    }


def _parts(data: Snapshots, shares: tuple[float, ...]) -> Iterator[Snapshots]:
    """Consecutive parts."""
    ends = np.rint(np.cumsum((0.0, *shares)) * len(data)).astype(int).tolist()
    return (data.between(start, stop) for start, stop in itertools.pairwise(ends))


def _speed(model: Model, surrogate: Surrogate, mus: np.ndarray, run: _Run) -> Facts:
    """Fields in float32 against the bare product, one query against one matrix-vector product, both against SciPy's LU."""
    modes = surrogate.basis.modes.astype(np.float32)
    rows = np.ascontiguousarray(modes.T)
    c = surrogate.coefficients(mus).astype(np.float32)
    out = np.empty((len(mus), len(modes)), dtype=np.float32)
    with threadpool_limits(1):
        product, fields = _paired(
            lambda: np.matmul(c, rows, out=out), lambda: surrogate(mus, dtype=np.float32).lift(out)
        )
        vector, single = _paired(lambda: c[0] @ rows, lambda: surrogate(mus[0], dtype=np.float32).values, repeat=300)
        start = time.perf_counter()
        count = 10 if run.quick else 50
        for mu in mus[:count]:
            splu(model.operator(mu).tocsc()).solve(model.load(mu))
        full = (time.perf_counter() - start) / count
    return {
        "n_fields": len(mus),
        "product_seconds": product,
        "fields_seconds": fields,
        "over_product": fields / product,
        "one_microseconds": 1e6 * single,
        "one_product_microseconds": 1e6 * vector,
        "splu_each": full,
        "faster_than_splu": full * len(mus) / fields,
    }


def _over_product(surrogate: Surrogate, mus: np.ndarray) -> float:
    """The time of fields in float32 over that of the bare product V·C, on one core."""
    rows = np.ascontiguousarray(surrogate.basis.modes.T, dtype=np.float32)
    c = surrogate.coefficients(mus).astype(np.float32)
    out = np.empty((len(mus), rows.shape[1]), dtype=np.float32)
    with threadpool_limits(1):
        times = _paired(lambda: np.matmul(c, rows, out=out), lambda: surrogate(mus, dtype=np.float32).lift(out), 8)
    return times[1] / times[0]


def _paired(first: Callable[[], object], second: Callable[[], object], repeat: int = 30) -> tuple[float, float]:
    """The best times of two functions that take turns: what disturbs one disturbs the other."""
    times = np.empty((2, repeat))
    for i in range(repeat):
        for k, run in enumerate((first, second)):
            start = time.perf_counter()
            run()
            times[k, i] = time.perf_counter() - start
    return float(times[0].min()), float(times[1].min())


# ---- sine-Gordon ----------------------------------------------------------------------------------------------------
def _sine_gordon(run: _Run) -> Facts:
    with threadpool_limits(1):
        model = run.model("sine-gordon", "default", {"n_nodes": 225, "method": "lattice", "step": 0.1, "degree": 4})
        n = run.few(1024)
        data = run.solve(model, sample(model, n, design="random", rng=20), "sine-gordon-data")
        basis_set = run.solve(model, sample(model, run.few(100), design="random", rng=21), "sine-gordon-pod")
        few = run.solve(model, sample(model, run.few(50), design="sobol", rng=0), "sine-gordon-50")
    train, validation, truth = _parts(data, (0.75, 0.125, 0.125))
    n_solves = len(basis_set) + len(train) + len(validation)
    options = {"model": model, "validation": validation}
    for case, wish in {
        "paper's tolerance": {"tolerance": 0.01},
        "more modes": {"n_modes": min(40, len(basis_set) // 2)},
    }.items():
        basis = pod(basis_set, **wish)
        recipe = NetworkRecipe.paper(epochs=2000, batch_size=16, z_score=True)
        recipes = _recipes(run, recipe, "best", "gaussian process", "polynomial", "linear")
        run.maps(case, recipes, train, truth, n_solves, basis=basis, **options)
    case = f"{len(few)} trajectories in all"
    basis = pod(few, n_modes=min(24, len(few) // 2))
    run.maps(
        f"{case}, as they are",
        _recipes(run, recipe, "best", "gaussian process"),
        few,
        truth,
        len(few),
        basis=basis,
        model=model,
    )
    run.progress(f"{case}: reduced stepper")
    start = time.perf_counter()
    reduced = reduce(model, space_basis(model, few, tolerance=1e-4), few)
    assert isinstance(reduced, TimeReducedModel)
    mus = sample(model, run.few(300), rng=5)
    labels = as_snapshots(mus, reduced.values(mus))
    stepper_facts = {"stepper_seconds": time.perf_counter() - start, "stepper_error": reduced.error}
    basis = pod(labels, n_modes=min(40, len(labels) // 2))
    run.maps(
        f"{case}, more by the reduced stepper",
        _recipes(run, recipe, "best", "gaussian process"),
        labels,
        truth,
        len(few),
        basis=basis,
        model=model,
    )
    fields = run.whole_fields(model, (train, validation, truth), epochs=2000, batch_size=16)
    return {"rows": run.rows, "paper": PAPER["sine-gordon"], **stepper_facts, "fields": fields}


# ---- Schrödinger ----------------------------------------------------------------------------------------------------
def _schrodinger(run: _Run) -> Facts:
    with threadpool_limits(1):
        model = run.model("schrodinger", "paper", {"n_nodes": 600})
        data = run.solve(model, model.sample(run.few(500), rng=30), "schrodinger-data")
        basis_set = run.solve(model, model.sample(run.few(300), rng=31), "schrodinger-pod")
    train, validation, truth = _parts(data, (0.6, 0.2, 0.2))
    recipes = _recipes(run, NetworkRecipe.paper(batch_size=10), "best", "linear")
    n_solves = len(basis_set) + len(train) + len(validation)
    basis = pod(basis_set, tolerance=0.03)
    run.maps("paper's tolerance", recipes, train, truth, n_solves, basis=basis, model=model, validation=validation)
    fields = run.whole_fields(model, (train, validation, truth), epochs=2000, batch_size=10)
    return {"rows": run.rows, "paper": PAPER["schrodinger"], "fields": fields}


def online_rows(facts: Facts) -> list[tuple[str, str]]:
    """The figures in words, for a table."""
    out = []
    for name, problem_facts in facts.items():
        out.append((name, f"the paper's POD-DNN: {problem_facts['paper']:.2e}"))
        for row in problem_facts["rows"]:
            out.append(
                (
                    f"  {row['case']}: {row['map']}",
                    f"error {row['error']:.2e} (max {row['max']:.1e}), projection {row['projection']:.2e}, ratio "
                    f"{row['over_projection']:.3f}, {row['n_modes']} modes, {row['pde_solves']} full solves, fit {row['fit_seconds']:.1f} s"
                    + (f", {row['over_product']:.1f} times V·C" if row["over_product"] else ""),
                )
            )
        out += _verdicts(problem_facts["rows"])
        for row in problem_facts["fields"]:
            out.append(
                (
                    f"  whole fields: {row['map']}",
                    f"error {row['error']:.2e} (max {row['max']:.1e}), fit {row['fit_seconds']:.1f} s on {row['device']}",
                )
            )
        speed = problem_facts.get("speed")
        if speed:
            out.append(
                (
                    f"  {speed['n_fields']} fields, float32, one core",
                    f"{1e3 * speed['fields_seconds']:.2f} ms, {speed['over_product']:.2f} times the bare product; one query "
                    f"{speed['one_microseconds']:.0f} µs (product {speed['one_product_microseconds']:.0f} µs); "
                    f"{speed['faster_than_splu']:.0f} times faster than SciPy's LU ({1e3 * speed['splu_each']:.1f} ms each)",
                )
            )
    return out


def _verdicts(rows: list[Facts]) -> list[tuple[str, str]]:
    """Where a simpler map is as good as our network, it is said."""
    out = []
    for case in dict.fromkeys(row["case"] for row in rows):
        here = {row["map"]: row for row in rows if row["case"] == case}
        simpler = [row for name, row in here.items() if name not in ("best", "compact", "paper")]
        if "best" not in here or not simpler:
            continue
        rival = min(simpler, key=lambda row: row["error"])
        if rival["error"] < 1.05 * here["best"]["error"]:
            words = (
                f"{rival['map']} does as well as the network, in {rival['fit_seconds']:.1f} s ({rival['error']:.2e})"
            )
            out.append((f"  {case}: simpler", words))
    return out
