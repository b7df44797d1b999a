"""What takes long is not done twice: fitted maps, reduced models and facts are read where the same were made before."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from parasol import __version__
from parasol.cache import content_hash
from parasol.errors import FileError
from parasol.fitting import FittedLinear, Network, TrainedNetwork
from parasol.report import Facts, write_json
from parasol.runtime import ReducedModel, pack, unpack
from parasol_lab.paper.operator_nets import TrainedOperator

_FORM = "parasol-memory"
_KEPT: dict[str, Any] = {
    kind.__name__: kind for kind in (TrainedNetwork, FittedLinear, TrainedOperator)
}  # with networks in them
_LEFT_OUT: dict[str, Any] = {"history": (), "trunk": None}  # and what stands there instead
_MOST_BYTES = 2**28  # larger maps are fitted again: the network without POD of a problem in time has 0.7 GB


@dataclass(frozen=True)
class Memory:
    """A folder of results; a key is everything that a result depends on: texts, numbers, arrays."""

    folder: Path

    def facts(self, key: tuple, make: Callable[[], Facts]) -> Facts:
        """Facts made by `make`, or those of an earlier run."""
        path = self.folder / f"{digest(*key)}.json"
        if path.exists():
            try:
                return json.loads(path.read_text())
            except ValueError:  # damaged: made again
                path.unlink()
        facts = make()
        self.folder.mkdir(parents=True, exist_ok=True)
        write_json(facts, path)
        return facts

    def reduced(self, key: tuple, make: Callable[[], ReducedModel]) -> TimedModel:
        """A reduced model made by `make`, or that of an earlier run, with the seconds it took."""
        path = self.folder / f"{digest(*key)}.parasol"
        if path.exists():
            try:
                return unpack(path, lambda reduced, facts: TimedModel(reduced, facts["seconds"]), form=_FORM)
            except FileError:  # damaged, or of another version: made again
                path.unlink()
        start = time.perf_counter()
        reduced = make()
        timed_model = TimedModel(reduced, time.perf_counter() - start)
        self.folder.mkdir(parents=True, exist_ok=True)
        pack(timed_model.reduced, path, form=_FORM, facts={"seconds": timed_model.seconds})
        return timed_model


@dataclass(frozen=True, eq=False)
class TimedModel:
    """A reduced model and the seconds that making it took."""

    reduced: ReducedModel
    seconds: float


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
                fitted, fitting = read_map(path)
            except FileError:  # damaged, or of another version: it is fitted again
                path.unlink()
            else:
                self.note(fitting)
                return fitted
        start = time.perf_counter()
        fitted = self.recipe.fit(x, y, validation=validation, progress=progress, rng=rng)
        if getattr(fitted, "interrupted", False):
            raise KeyboardInterrupt
        fitting = Fitting(time.perf_counter() - start, getattr(fitted, "device", "cpu"), False)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_map(path, fitted, fitting)
        self.note(fitting)
        return fitted

    def _key(self, x, y, validation, rng: int) -> str:
        return digest(self.recipe, rng, x, y, validation)


def digest(*parts) -> str:
    """One name for everything a result depends on, and for the version that computes with it."""
    return content_hash([__version__, *parts])[:32]


def write_map(path: Path, fitted, fitting: Fitting) -> None:
    """Keep a fitted map, unless it is too large."""
    network = getattr(fitted, "network", getattr(fitted, "branch", None))
    if network is not None and network.dtype.itemsize * sum(w.size for w in network.weights) > _MOST_BYTES:
        return
    kept: Any = fitted
    if type(fitted).__name__ in _KEPT:
        parts = {f.name: getattr(fitted, f.name) for f in fields(fitted) if f.name not in _LEFT_OUT}
        kept = {"kind": type(fitted).__name__} | {name: _plain(part) for name, part in parts.items()}
    pack(kept, path, form=_FORM, facts={"seconds": fitting.seconds, "device": fitting.device})


def read_map(path: Path) -> tuple[Any, Fitting]:
    """A map kept by `write_map`."""

    def build(kept: Any, facts: Facts) -> tuple[Any, Fitting]:
        fitting = Fitting(facts["seconds"], facts["device"], True)
        if isinstance(kept, dict):
            kind = _KEPT[kept.pop("kind")]
            kept = {name: Network(**part) if isinstance(part, dict) else part for name, part in kept.items()}
            absent = {f.name: _LEFT_OUT[f.name] for f in fields(kind) if f.name in _LEFT_OUT}
            kept = kind(**kept, **absent)
        return kept, fitting

    return unpack(path, build, form=_FORM)


def _plain(part: Any) -> Any:
    """A network as the mapping of its parts, anything else as it is."""
    return {f.name: getattr(part, f.name) for f in fields(part)} if isinstance(part, Network) else part
