"""Fitted maps that are not fitted twice: the same recipe on the same numbers is read from a file."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from parasol import __version__
from parasol.checks import ParasolError
from parasol.delivery.artifact import load, save
from parasol.pde.parameters import ParameterSpace
from parasol.reduction.basis import Basis
from parasol.surrogate.features import Features
from parasol.surrogate.operator_nets import TrainedOperator
from parasol.surrogate.surrogate import Surrogate
from parasol.surrogate.training import Adam

_MOST_BYTES = 2**28  # larger maps are fitted again: the network without POD of a problem in time has 0.7 GB


@dataclass(frozen=True)
class Fitting:
    """How a map was fitted: seconds of the fit itself, where, and whether that was in an earlier run."""

    seconds: float
    device: str
    earlier: bool


@dataclass(frozen=True, eq=False)
class Remembered:
    """A recipe that looks in a folder before it fits, and leaves there what it has fitted; `note` is told how it went.

    Ctrl-C ends a training early and keeps what there is; here it ends the run, for half-trained maps are not results.
    """

    recipe: Any
    folder: Path
    note: Callable[[Fitting], None]

    def fit(self, x, y, *, validation=None, progress=None, rng: int = 0):
        """The fitted map of inputs (n, p) and outputs (n, d)."""
        path = self.folder / f"{self._key(x, y, validation, rng)}.parasol"
        if path.exists():
            try:
                fitted, fitting = _read(path)
            except ParasolError:  # damaged, or of another version: it is fitted again
                path.unlink()
            else:
                self.note(fitting)
                return fitted
        start = time.perf_counter()
        fitted = self.recipe.fit(x, y, validation=validation, progress=progress, rng=rng)
        if _interrupted(self.recipe, fitted):
            raise KeyboardInterrupt
        fitting = Fitting(time.perf_counter() - start, getattr(fitted, "device", "cpu"), False)
        self.folder.mkdir(parents=True, exist_ok=True)
        _write(path, fitted, fitting)
        self.note(fitting)
        return fitted

    def _key(self, x, y, validation, rng: int) -> str:
        found = hashlib.sha256(f"{__version__} {self.recipe!r} {rng}".encode())
        for array in (x, y, *(validation or ())):
            found.update(str((array.shape, array.dtype)).encode())
            for start in range(0, len(array), 64):
                found.update(np.ascontiguousarray(array[start : start + 64]).tobytes())
        return found.hexdigest()[:32]


def _interrupted(recipe, fitted) -> bool:
    stage = getattr(recipe, "stage", None)
    if isinstance(fitted, TrainedOperator) and isinstance(stage, Adam) and recipe.patience is None and fitted.history:
        return fitted.history[-1]["epoch"] < stage.epochs and np.isfinite(fitted.history[-1]["training"])
    return getattr(fitted, "interrupted", False)


def _write(path: Path, fitted, fitting: Fitting) -> None:
    facts: dict[str, Any] = {"seconds": fitting.seconds, "device": fitting.device}
    network = getattr(fitted, "network", getattr(fitted, "branch", None))
    if network is not None and network.dtype.itemsize * sum(w.size for w in network.weights) > _MOST_BYTES:
        return
    if isinstance(fitted, TrainedOperator):
        rest = {"values": fitted.values, "shift": fitted.shift, "error": fitted.validation_error}
        facts |= {**rest, "branch": fitted.branch, "best_epoch": fitted.best_epoch}
        fitted = None
    whole: Any = fitted  # an operator is in the facts
    nothing = Features(np.zeros(0, dtype=bool), np.zeros(0), np.zeros(0))
    save(Surrogate(Basis(np.eye(1)), whole, nothing, ParameterSpace(()), facts=facts), path)


def _read(path: Path) -> tuple[Any, Fitting]:
    found = load(path)
    facts = found.facts
    fitting = Fitting(facts["seconds"], facts["device"], True)
    if "branch" not in facts:
        return found.map, fitting
    rest = (None, (), facts["seconds"], facts["device"], facts["best_epoch"], facts["error"])
    return TrainedOperator(facts["branch"], facts["values"], facts["shift"], *rest), fitting
