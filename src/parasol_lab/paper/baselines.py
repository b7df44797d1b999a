"""Networks that learn whole fields, measured on the same snapshots as POD-DNN: DNN without POD and DeepONets."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from parasol.fitting import Adam
from parasol.pde import Model
from parasol.reduction import Snapshots
from parasol.report import Facts
from parasol.runtime import features_of
from parasol_lab.paper.operator_nets import DeepONet, DirectNetwork, PodDeepONet
from parasol_lab.paper.run import Run
from parasol_lab.paper.seeds import single
from parasol_lab.paper.together import OURS, Reading


def field_recipes(model: Model, *, epochs: int, batch_size: int, paper: bool) -> dict[str, Any]:
    """DNN without POD (ours and the paper's), DeepONet and POD-DeepONet, with the paper's epochs and batches.

    In time the paper has no DeepONet, and ours would evaluate its trunk at 300 000 places in every step: left out there.
    """
    in_time = model.problem.time is not None
    out: dict[str, Any] = {
        "DNN without POD": DirectNetwork(stage=_stage(epochs // 8 if in_time else epochs, batch_size)),
    }
    if not in_time:
        out["DeepONet"] = DeepONet(_places(model), stage=_stage(epochs, batch_size))
        out["POD-DeepONet"] = PodDeepONet()
    if paper:
        out["DNN without POD, the paper's"] = DirectNetwork.paper(epochs=epochs, batch_size=batch_size)
    return out


def field_network(run: Run, model: Model, name: str) -> tuple[Callable[[Reading], Any], Reading]:
    """How "DNN" or "DeepONet" is made of a reading, and the reading to begin with: the paper's recipe, or ours.

    The paper says nothing about its DeepONet: 500-500 neurons in branch and trunk, as its other networks, and 128 terms.
    """
    epochs, batch = run.epochs, run.stated.batch_size
    if not run.ours:
        if name == "DNN":
            return run.paper_network, Reading()
        stage = Adam(epochs, batch, run.stated.learning_rate, "constant")
        options = {"activation": "relu", "last_layer": "trained", "device": run.device, "scale_points": False}
        return lambda reading: DeepONet(_places(model), stage=stage, reading=reading, **options), Reading()
    if not (run.quick or run.has_gpu):
        epochs //= 4  # minutes, not an hour, on a CPU
    recipes = field_recipes(model, epochs=epochs, batch_size=batch, paper=False)
    recipe = recipes["DNN without POD" if name == "DNN" else name]
    return lambda reading: replace(recipe, reading=reading, device=run.device), replace(OURS, inputs="log")


def _stage(epochs: int, batch_size: int) -> Adam:
    return Adam(epochs, batch_size, 1e-3, "cosine")


def _places(model: Model) -> np.ndarray:
    """Coordinates of every value of a field."""
    return np.tile(model.nodes.points, (len(model.problem.names), 1))


def measure_fields(
    recipes: Mapping[str, Any], model: Model, train: Snapshots, validation: Snapshots, truth: Snapshots, progress
) -> list[Facts]:
    """Fit each recipe to the fields in single precision, one copy of them, and measure it on the test set."""
    features = features_of(model.parameters, train.mus)
    fields = single(train)
    unseen = (features(validation.mus), single(validation))
    rows = []
    for name, recipe in recipes.items():
        start = time.perf_counter()
        fitted = recipe.fit(features(train.mus), fields, validation=unseen, progress=progress(name))
        seconds = time.perf_counter() - start
        errors, first = [], 0
        for block in truth.blocks():
            prediction = fitted.predict(features(truth.mus[first : first + len(block)]))
            errors.append(np.linalg.norm(prediction - block, axis=1) / np.linalg.norm(block, axis=1))
            first += len(block)
        error = np.concatenate(errors)
        rows.append(
            {
                "map": name,
                "error": float(np.mean(error)),
                "max": float(np.max(error)),
                "fit_seconds": seconds,
                "device": fitted.device,
            }
        )
    return rows
