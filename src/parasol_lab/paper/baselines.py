"""Networks that learn whole fields, measured on the same snapshots as POD-DNN: DNN without POD and DeepONets."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from parasol import Model
from parasol.reduction import Snapshots
from parasol.report import Facts
from parasol.runtime import features_of
from parasol_lab.paper.operator_nets import DeepONet, DirectNetwork, PodDeepONet


def field_recipes(model: Model, *, epochs: int, batch_size: int, paper: bool) -> dict[str, Any]:
    """DNN without POD (ours and the paper's), DeepONet and POD-DeepONet, with the paper's epochs and batches.

    In time the paper has no DeepONet, and ours would evaluate its trunk at 300 000 places in every step: left out there.
    """
    in_time = model.problem.time is not None
    out: dict[str, Any] = {
        "DNN without POD": DirectNetwork(stage=_stage(epochs // 4 if in_time else epochs, batch_size)),
    }
    if not in_time:
        out["DeepONet"] = DeepONet(_places(model), stage=_stage(epochs, batch_size))
        out["POD-DeepONet"] = PodDeepONet()
    if paper:
        out["DNN without POD, the paper's"] = DirectNetwork.paper(epochs=epochs, batch_size=batch_size)
    return out


def _stage(epochs: int, batch_size: int):
    from parasol.fitting import Adam

    return Adam(epochs, batch_size, 1e-3, "cosine")


def _places(model: Model) -> np.ndarray:
    """Coordinates of every value of a field."""
    return np.tile(model.nodes.points, (len(model.problem.names), 1))


def measure_fields(
    recipes: Mapping[str, Any], model: Model, train: Snapshots, validation: Snapshots, truth: Snapshots, progress
) -> list[Facts]:
    """Fit each recipe to the fields in single precision, one copy of them, and measure it on the test set."""
    features = features_of(model.parameters, train.mus)
    fields = _single(train)
    unseen = (features(validation.mus), _single(validation))
    rows = []
    for name, recipe in recipes.items():
        start = time.perf_counter()
        fitted = recipe.fit(features(train.mus), fields, validation=unseen, progress=progress(name))
        seconds = time.perf_counter() - start
        errors, first = [], 0
        for block in truth.blocks():
            found = fitted.predict(features(truth.mus[first : first + len(block)]))
            errors.append(np.linalg.norm(found - block, axis=1) / np.linalg.norm(block, axis=1))
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


def _single(snapshots: Snapshots) -> np.ndarray:
    out = np.empty((len(snapshots), snapshots.n_values), dtype=np.float32)
    first = 0
    for block in snapshots.blocks():
        out[first : first + len(block)] = block
        first += len(block)
    return out
