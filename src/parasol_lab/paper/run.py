"""What the paper's experiments share: where full solves and fitted maps are kept, and how a solver is measured."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from parasol import Surrogate, fit, load_problem, solve_many
from parasol.errors import InputError
from parasol.fitting import NetworkRecipe, recipe_named
from parasol.pde import Model, discretize_with
from parasol.reduction import Snapshots
from parasol.report import Facts
from parasol.runtime import Basis
from parasol_lab.paper.memory import Fitting, Memory, Remembered
from parasol_lab.paper.numbers import STATED, Stated
from parasol_lab.paper.operator_nets import DirectNetwork
from parasol_lab.paper.together import Reading, readings_from

Stage = Callable[[str], Callable[[float], None] | None]
Predict = Callable[[np.ndarray], np.ndarray]  # parameters (n, p) to fields (n, n_values)
PARTS = ("train", "validation", "test")
RICH = "POD-DNN, more modes"  # a solver of its own: the basis should not be the limit


@dataclass(frozen=True, eq=False)
class Run:
    """One run of one experiment: what is asked for, where things go, whom to tell."""

    problem: str
    preset: str
    out: Path
    store: Path
    progress: Stage
    jobs: int | None = None
    device: str = "auto"
    quick: bool = False
    seed: int = 0
    degree: int = 8  # of the boundary values in the Schrödinger problem
    seeds: int = 5  # of every training
    readings: bool = False  # whether other readings of the paper's training are tried

    @property
    def stated(self) -> Stated:
        """What the paper states."""
        return STATED[self.problem]

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Snapshots of the basis, training, validation and test samples."""
        s = self.stated
        return self.stated.quick if self.quick else (s.n_snapshots, s.n_train, s.n_validation, s.n_test)

    @property
    def epochs(self) -> int:
        """The paper's, few in a quick run."""
        return 20 if self.quick else self.stated.epochs

    @property
    def ours(self) -> bool:
        """Whether our training is asked for."""
        return self.preset != "paper"

    @property
    def few(self) -> bool:
        """Whether as few full solves as possible are asked for."""
        return self.preset == "few"

    def rng(self, stream: int) -> int:
        """A seed for one of the run's random draws."""
        return stream + 1000 * self.seed

    @cached_property
    def gpu(self) -> str | None:
        """The GPU that networks are trained on, by name, if there is one."""
        if self.device == "cpu":
            return None
        from parasol.fitting import descent

        device = descent.pick_device(self.device)
        return None if device.platform == "cpu" else device.device_kind

    @property
    def has_gpu(self) -> bool:
        """Whether networks can be trained on a GPU."""
        return self.gpu is not None

    @property
    def memory(self) -> Memory:
        """Where maps, reduced models and facts are kept for other runs."""
        return Memory(self.store / "made")

    def figure(self, name: str) -> Path:
        """Where a figure goes."""
        return self.out / "figures" / f"{name}.png"

    def model(self, preset: str, **small: Any) -> Model:
        """The problem discretised with a preset of its own; in a quick run the same scheme with what `small` names smaller."""
        problem = load_problem(self.problem)
        settings = problem.settings[preset]
        return discretize_with(problem, replace(settings, **small) if self.quick else settings)

    # ---- full solves ------------------------------------------------------------------------------------------------
    def solve(self, model: Model, mus: np.ndarray, name: str) -> Snapshots:
        """Full solves, from the store where they are."""
        marks = [self.problem, name, *(["quick"] if self.quick else []), *([f"seed{self.seed}"] if self.seed else [])]
        progress = self.progress(f"full solves: {len(mus)} for {name}")
        jobs = self.jobs or (1 if len(mus) < 200 or self.quick else _n_cpus())
        return solve_many(model, mus, store=self.store / "-".join(marks), jobs=jobs, progress=progress)

    def part(self, model: Model, mus: np.ndarray, name: str, prefix: str = "") -> Snapshots:
        """Training, validation or test samples of all parameters drawn; each is a store of its own."""
        ends = np.cumsum((0, *self.sizes[1:])).tolist()
        start, stop = list(itertools.pairwise(ends))[PARTS.index(name)]
        return self.solve(model, mus[start:stop], f"{prefix}{name}")

    # ---- fitted maps ------------------------------------------------------------------------------------------------
    def paper_network(self, reading: Reading) -> DirectNetwork:
        """The paper's network and training, to coefficients or to fields, in one reading of what it leaves open."""
        batch = self.stated.batch_size
        return DirectNetwork.paper(epochs=self.epochs, batch_size=batch, reading=reading, device=self.device)

    @property
    def simplest(self) -> Reading:
        """The simplest reading of the paper's training of POD-DNN, with the scaling that it states."""
        return Reading(outputs=self.stated.outputs)

    def others(self, base: Reading) -> list[Reading]:
        """Further readings to try, where they are asked for."""
        if self.ours or not self.readings:
            return []
        logs = any(p.scale == "log" for p in load_problem(self.problem).parameters.scalars)
        return readings_from(base, logs=logs)

    def our_recipe(self) -> NetworkRecipe:
        """Ours."""
        return NetworkRecipe.best(iterations=15, widths=(16, 40)) if self.quick else NetworkRecipe.best()

    def fit(self, name: str, source, recipe, *, rng: int | None = None, **options) -> Surrogate:
        """Fit a map to coefficients, or read it where the same one was fitted before."""
        notes: list[Fitting] = []
        progress = self.progress(f"fitting {name}")
        wrapped: Any = Remembered(recipe_named(recipe), self.memory.folder, notes.append)
        if self.quick and not isinstance(source, Snapshots):
            options = {"n_labels": 512, **options}
        surrogate = fit(source, wrapped, rng=self.seed if rng is None else rng, progress=progress, **options)
        facts = {"recipe": type(wrapped.recipe).__name__, "fit_seconds": notes[0].seconds, "device": notes[0].device}
        return replace(surrogate, facts={**surrogate.facts, **facts, "fitted_earlier": notes[0].earlier})


@dataclass(frozen=True, eq=False)
class Outcome:
    """What an experiment gives: its model and surrogate, a table of solvers, more facts, and how solvers are asked."""

    model: Model
    basis: Basis
    surrogate: Surrogate
    solvers: dict[str, Facts]
    pde_solves: int
    truth: Snapshots
    predictors: dict[str, Predict] = field(default_factory=dict)
    facts: Facts = field(default_factory=dict)
    spectra: dict[str, Basis] = field(default_factory=dict)


# ---- measuring ------------------------------------------------------------------------------------------------------
def measure(
    predict: Predict,
    truth: Snapshots,
    *,
    basis: Basis | None = None,
    quickly: Predict | None = None,
    timed: bool = True,
) -> Facts:
    """Errors in the paper's metric on samples not seen, and the seconds that answering all of them takes on the CPU.

    With a basis the error is split: what the modes cannot express, and what the map adds, orthogonal to it.
    `quickly` answers in single precision where that is how it would be used.
    """
    errors, floors, first = [], [], 0
    for block in truth.blocks():
        prediction = predict(truth.mus[first : first + len(block)])
        size = np.linalg.norm(block, axis=1)
        errors.append(np.linalg.norm(prediction - block, axis=1) / size)
        if basis is not None:
            floors.append(basis.projection_errors(block))
        first += len(block)
    error = np.concatenate(errors)
    if not np.all(np.isfinite(error)):
        raise InputError("a solver answered with numbers that are not finite. Run it again with another --seed.")
    facts: Facts = {
        "error": float(np.mean(error)),
        "max_error": float(np.max(error)),
        "inference_seconds": best_time(lambda: (quickly or predict)(truth.mus)) if timed else None,
        "n_queries": len(truth),
    }
    if basis is not None:
        floor = np.concatenate(floors)
        map_error = np.sqrt(np.maximum(error**2 - floor**2, 0.0))
        facts |= {"projection_error": float(np.mean(floor)), "map_error": float(np.mean(map_error))}
        facts["n_modes"] = basis.n_modes
    return facts


def measure_surrogate(
    surrogate: Surrogate, truth: Snapshots, *, n_solves: int, gpu: bool = False, timed: bool = True
) -> Facts:
    """A surrogate measured: its fields in single precision, as the paper's, its errors in double precision."""
    facts = measure(
        lambda mus: surrogate(mus, extrapolate=True).values,
        truth,
        basis=surrogate.basis,
        quickly=lambda mus: surrogate(mus, dtype=np.float32, extrapolate=True).values,
        timed=timed,
    )
    network = getattr(surrogate.map, "network", None)
    kept = {key: surrogate.facts[key] for key in ("fit_seconds", "device", "fitted_earlier")}
    facts |= {**kept, "n_weights": None if network is None else network.n_weights, "pde_solves": n_solves}
    if gpu and network is not None:
        x = surrogate.features(truth.mus)
        facts["gpu_inference_seconds"] = gpu_seconds(network, x, surrogate.basis.modes)
    return facts


def measure_full(model: Model, truth: Snapshots, *, most: int) -> Facts:
    """The full solver, which is the truth: seconds for all queries one after the other, from some of them."""
    mus = truth.mus[:most]
    model.solve(mus[0])  # what is made once is made
    with threadpool_limits(1):
        start = time.perf_counter()
        for mu in mus:
            model.solve(mu)
        each = (time.perf_counter() - start) / len(mus)
    return {"error": None, "inference_seconds": each * len(truth), "n_queries": len(truth), "timed_on": len(mus)}


def best_time(run: Callable[[], object], *, repeat: int = 7, at_most: float = 3.0) -> float:
    """The least of several times, fewer where they are long."""
    times: list[float] = []
    while len(times) < repeat and sum(times) < at_most:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def gpu_seconds(network, x: np.ndarray, modes: np.ndarray, device: str = "gpu") -> float:
    """Seconds for all fields on the GPU, compiled, in single precision, data and answers there."""
    from parasol.fitting import descent

    jax = descent.require_jax()
    plain = network.astype(np.float32).folded()
    with descent.computing("float32", device) as place:
        layers = [(jax.device_put(w.T, place), jax.device_put(b, place)) for w, b in zip(plain.weights, plain.biases, strict=True)]  # fmt: skip
        skip = None if plain.skip is None else jax.device_put(plain.skip.T, place)
        rows = jax.device_put(np.ascontiguousarray(modes.T, dtype=np.float32), place)
        inputs = jax.device_put(x.astype(np.float32), place)

        def fields(layers, skip, rows, inputs):
            c = descent.perceptron(layers, inputs, plain.activation)
            return (c if skip is None else c + inputs @ skip) @ rows

        compiled = jax.jit(fields)
        compiled(layers, skip, rows, inputs).block_until_ready()
        return best_time(lambda: compiled(layers, skip, rows, inputs).block_until_ready(), repeat=50)


def _n_cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
