"""One training, several seeds: what a recipe reaches is a mean and a scatter; and what each reading of the paper reaches."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from parasol import Surrogate, fit
from parasol.errors import FileError, ParasolWarning
from parasol.pde import Model
from parasol.reduction import Snapshots
from parasol.report import Facts, write_json
from parasol.runtime import Basis, Features, features_of
from parasol_lab.paper.memory import Fitting, digest, read_map, write_map
from parasol_lab.paper.operator_nets import fit_together
from parasol_lab.paper.run import Run, measure, measure_surrogate
from parasol_lab.paper.together import Reading

_AT_ONCE = 2 * 10**8  # weights trained at once on a GPU
_BIG = 10**8  # weights of a network of which few seeds are trained
_FEW_SEEDS = 3  # of those, and of readings beside the simplest one; of those of a big network there is one


def over_seeds(measured: Sequence[Facts]) -> Facts:
    """The facts of the first seed with the mean error of all, its scatter (standard deviation) and every seed's own.

    >>> over_seeds([{"error": 1.0, "max_error": 2.0}, {"error": 3.0, "max_error": 5.0}])["scatter"]
    1.4142135623730951
    """
    out = {**measured[0]}
    errors = [facts["error"] for facts in measured]
    for key in ("error", "map_error", "last_error", "fit_seconds"):
        if all(facts.get(key) is not None for facts in measured):
            out[key] = float(np.mean([facts[key] for facts in measured]))
    scatter = float(np.std(errors, ddof=1)) if len(errors) > 1 else None
    largest = max(facts["max_error"] for facts in measured)
    return {**out, "max_error": largest, "scatter": scatter, "errors": errors, "n_seeds": len(errors)}


@dataclass(frozen=True, eq=False)
class Samples:
    """What networks are trained and judged on: snapshots for training, validation and test, in a basis or as they are."""

    model: Model
    train: Snapshots
    validation: Snapshots
    truth: Snapshots
    basis: Basis | None = None

    def features(self, reading: Reading) -> Features:
        """From parameters to inputs: as they are, or on the scale each parameter was declared with."""
        n = self.train.mus.shape[1]
        if reading.inputs != "log":
            return Features(np.zeros(n, dtype=bool), np.zeros(n), np.ones(n))
        return features_of(self.model.parameters, self.train.mus)

    def outputs(self, snapshots: Snapshots) -> np.ndarray:
        """Coefficients, or whole fields in single precision."""
        if self.basis is not None:
            return np.concatenate([self.basis.project(block) for block in snapshots.blocks()])
        return single(snapshots)

    def judge(self, predict: Callable[[np.ndarray], np.ndarray]) -> Facts:
        """Errors of fields on the test set, from predicted fields or coefficients."""
        if self.basis is None:
            errors, first = [], 0
            for block in self.truth.blocks():
                prediction = predict(self.truth.mus[first : first + len(block)])
                errors.append(np.linalg.norm(prediction - block, axis=1) / np.linalg.norm(block, axis=1))
                first += len(block)
            error = np.concatenate(errors)
        else:
            coefficients, size, floor = self._projected
            gap = np.linalg.norm(predict(self.truth.mus) - coefficients, axis=1) / size
            error = np.sqrt(gap**2 + floor**2)  # modes are orthonormal
            return {"error": float(np.mean(error)), "max_error": float(np.max(error)), "map_error": float(np.mean(gap))}
        return {"error": float(np.mean(error)), "max_error": float(np.max(error))}

    @property
    def floor(self) -> float:
        """The mean error of the projection on the basis."""
        return float(np.mean(self._projected[2]))

    @cached_property
    def _projected(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Coefficients of the test set, sizes of its fields, and what the basis leaves of them."""
        assert self.basis is not None
        parts = [
            (self.basis.project(block), np.linalg.norm(block, axis=1), self.basis.projection_errors(block))
            for block in self.truth.blocks()
        ]
        coefficients, sizes, floors = zip(*parts, strict=True)
        return np.concatenate(coefficients), np.concatenate(sizes), np.concatenate(floors)


@dataclass(frozen=True, eq=False)
class Training:
    """Several seeds of one recipe: the map of the first, the facts of all, and what other readings gave."""

    map: Any  # None where it is too large to keep and was trained in an earlier run
    features: Features
    facts: Facts
    readings: list[Facts]

    def predict(self, mus: np.ndarray) -> np.ndarray:
        """Outputs at parameters (n, p)."""
        return self.map.predict(self.features(mus))


def train_seeds(
    run: Run,
    name: str,
    make: Callable[[Reading], Any],
    base: Reading,
    samples: Samples,
    *,
    tried: bool = True,
    mapped: bool = True,
) -> Training:
    """Train what `make` makes of a reading with every seed, in the base reading and, where asked for, in others.

    Each seed's result is kept: a run that was stopped goes on where it was. The map of the first seed is kept too, unless
    only errors are asked for (`mapped=False`).
    """
    others = run.others(base) if tried else []
    progress = run.progress(f"training {name}")
    recipe = make(base)
    counts = (
        samples.train.mus.shape[1],
        *recipe.widths,
        samples.train.n_values if samples.basis is None else samples.basis.n_modes,
    )
    n_weights = sum(a * b for a, b in pairwise(counts))
    big = n_weights > _BIG
    seeds = range(run.seed, run.seed + (min(run.seeds, _FEW_SEEDS) if big else run.seeds))
    few = seeds[: 1 if big else _FEW_SEEDS]
    jobs = [(base, seed) for seed in seeds] + [(reading, seed) for reading in others for seed in few]
    y, unseen = samples.outputs(samples.train), samples.outputs(samples.validation)
    common = digest(y, unseen, samples.train.mus, samples.validation.mus, samples.truth.mus)
    keys = [digest(common, make(reading), seed) for reading, seed in jobs]
    missing = [i for i, key in enumerate(keys) if _kept(run, key, mapped and i == 0, n_weights) is None]
    # on a CPU one after the other is as fast, and each is kept as soon as it is there; a quick run mostly compiles
    at_once = max(1, _AT_ONCE // n_weights) if run.has_gpu or run.quick else 1
    first = None
    for start in range(0, len(missing), at_once):
        some = missing[start : start + at_once]
        features = [samples.features(jobs[i][0]) for i in some]
        part = digest(*[keys[i] for i in some])
        maps = fit_together(
            [make(jobs[i][0]) for i in some],
            [f(samples.train.mus) for f in features],
            y,
            ([f(samples.validation.mus) for f in features], unseen),
            [jobs[i][1] for i in some],
            progress=progress,
            state=run.memory.folder / f"{part}.state.npz",
        )
        for i, of_kinds, f in zip(some, maps, features, strict=True):
            judged = {kind: samples.judge(lambda mus, m=m, f=f: m.predict(f(mus))) for kind, m in of_kinds.items()}
            best = of_kinds["best"]
            seed_facts = {
                **judged["best"],
                "fit_seconds": best.seconds,
                "device": best.device,
                "best_epoch": best.best_epoch,
            }
            seed_facts |= {
                "at_once": len(some),
                **({"last_error": judged["last"]["error"]} if "last" in judged else {}),
            }
            seed_facts |= {
                "problem": run.problem,
                "preset": run.preset,
                "training": name,
                "reading": str(jobs[i][0]),
                "seed": jobs[i][1],
                "epochs": recipe.stage.epochs,
            }
            # the map of a large network is not kept: that of the first seed trained in this run stands for it, in the base reading
            if i == 0 or (first is None and big and i < len(seeds)):
                first = best
            _keep(run, keys[i], seed_facts, best if mapped and i == 0 else None)
    kept = [_kept(run, key, mapped and i == 0, n_weights) for i, key in enumerate(keys)]
    facts: list[Facts] = [{**pair[0], "fitted_earlier": i not in missing} for i, pair in enumerate(kept) if pair]
    rows = []
    for reading in (base, *others):
        own = [seed_facts for (used, _), seed_facts in zip(jobs, facts, strict=True) if used == reading]
        rows.append({"solver": name, **over_seeds(own), "reading": str(reading)})
    shown = first if first is not None else kept[0][1]  # type: ignore[index]
    return Training(shown, samples.features(base), over_seeds(facts[: len(seeds)]), rows if others else [])


def seeded_surrogate(training: Training, samples: Samples, n_solves: int, *, gpu: bool) -> tuple[Surrogate, Facts]:
    """The surrogate of the first seed, and what all seeds measure."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParasolWarning)  # the linear map is replaced below
        linear = fit(samples.train, "linear", basis=samples.basis, model=samples.model)
    kept = {key: training.facts[key] for key in ("fit_seconds", "device", "fitted_earlier")}
    facts = {**linear.facts, **kept, "recipe": "DirectNetwork", "logarithms": []}
    surrogate = replace(linear, map=training.map, features=training.features, facts=facts)
    own = measure_surrogate(surrogate, samples.truth, n_solves=n_solves, gpu=gpu)
    return surrogate, {**own, **training.facts}


def seeded_fields(training: Training, samples: Samples, n_solves: int) -> Facts:
    """What all seeds of a network without a basis measure; its speed where the network is at hand."""
    facts: Facts = {
        **training.facts,
        "pde_solves": n_solves,
        "n_queries": len(samples.truth),
        "inference_seconds": None,
    }
    if training.map is None:
        return facts
    network = getattr(training.map, "network", getattr(training.map, "branch", None))
    own = measure(training.predict, samples.truth)
    return {**own, **facts, "inference_seconds": own["inference_seconds"], "n_weights": network.n_weights}  # type: ignore[union-attr]


def fit_seeds(run: Run, name: str, source: Any, recipe: Any, truth: Snapshots, n_solves: int, *, gpu=False, **options):
    """A map of our own to coefficients, fitted with every seed: the surrogate of the first, and what all measure."""
    first, measured = None, []
    for seed in range(run.seed, run.seed + run.seeds):
        surrogate = run.fit(name if run.seeds == 1 else f"{name}, seed {seed}", source, recipe, rng=seed, **options)
        first = surrogate if first is None else first
        measured.append(
            measure_surrogate(surrogate, truth, n_solves=n_solves, gpu=gpu and not measured, timed=not measured)
        )
    assert first is not None  # reproduce asks for at least one seed
    return first, over_seeds(measured)


def single(snapshots: Snapshots) -> np.ndarray:
    """All solutions in single precision, read a chunk at a time."""
    out, first = np.empty((len(snapshots), snapshots.n_values), dtype=np.float32), 0
    for block in snapshots.blocks():
        out[first : first + len(block)] = block
        first += len(block)
    return out


# ---- what is kept ---------------------------------------------------------------------------------------------------
def _keep(run: Run, key: str, facts: Facts, fitted: Any) -> None:
    run.memory.folder.mkdir(parents=True, exist_ok=True)
    if fitted is not None:
        write_map(run.memory.folder / f"{key}.parasol", fitted, Fitting(facts["fit_seconds"], facts["device"], False))
    write_json(facts, run.memory.folder / f"{key}.json")


def _kept(run: Run, key: str, with_map: bool, n_weights: int) -> tuple[Facts, Any] | None:
    """What an earlier run kept of a seed; large networks are not kept, what they measured is."""
    path = run.memory.folder / f"{key}.json"
    try:
        facts = json.loads(path.read_text())
        if not with_map:
            return facts, None
        map_path: Path = path.with_suffix(".parasol")
        if not map_path.exists():
            return (facts, None) if n_weights > _BIG else None
        return facts, read_map(map_path)[0]
    except (OSError, ValueError, FileError):  # not there, or damaged: it is trained again
        return None
