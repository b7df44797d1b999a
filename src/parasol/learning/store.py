"""What learning keeps on disk besides full solves: the nodes it chose; and how it reads other people's data."""

from __future__ import annotations

import json
import os
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.recfunctions import unstructured_to_structured
from numpy.typing import ArrayLike

from parasol import __version__
from parasol.cache.content import content_hash
from parasol.cache.disk import publish
from parasol.errors import FileError, InputError, ParasolWarning
from parasol.fitting.reading import read_results
from parasol.fitting.results import Results
from parasol.learning.nodes import Discretised, discretize_on
from parasol.learning.report import Comparison
from parasol.pde.by_elements import by_elements_again, mesh_facts
from parasol.pde.problem import Problem, Settings
from parasol.reduction.snapshots import open_snapshots
from parasol.reduction.store import is_store, read_manifest
from parasol.space.nodes import Nodes

Data = Results | tuple[Any, ArrayLike] | str | os.PathLike[str]  # or (mus, solutions), or where they are
_ARRAYS = ("points", "normals", "part", "on_part", "spacing", "part_normals")


@dataclass(frozen=True)
class NodesKey:
    """What the choice of nodes depends on, besides the problem."""

    aim: float  # the discretisation error asked for
    n_nodes: int | None = None
    rng: int = 0
    fingerprint: object = None


def _path(store: str | os.PathLike[str], problem: Problem, key: NodesKey) -> Path:
    """One file for each problem, each key and each version."""
    return Path(store).expanduser().absolute() / f"nodes-{content_hash([__version__, problem, vars(key)])[:16]}.npz"


def write_nodes(store: str | os.PathLike[str], problem: Problem, key: NodesKey, chosen: Discretised) -> None:
    """Keep the nodes and the estimate; the file appears complete or not at all."""
    nodes, history = chosen.model.nodes, [asdict(row) for row in chosen.history]
    about = {"error": chosen.error, "history": history, "refined": chosen.refined, "seconds": chosen.seconds}
    about["limit"] = chosen.limit
    if chosen.model.elements is not None:
        about["elements"] = mesh_facts(chosen.model.elements)
    content: dict[str, Any] = {name: np.asarray(getattr(nodes, name)) for name in _ARRAYS}
    content |= {"n_interior": nodes.n_interior, "about": np.array(json.dumps(about))}

    def fill(path: Path) -> None:
        with open(path, "wb") as file:
            np.savez(file, **content)

    publish(_path(store, problem, key), fill)


def stored_nodes(store: str | os.PathLike[str], problem: Problem, key: NodesKey) -> Discretised | None:
    """The discretisation that was chosen for the same problem and key before."""
    path = _path(store, problem, key)
    if not path.is_file():
        return None
    try:
        held = _read(path, (*_ARRAYS, "n_interior", "about"))
    except FileError as error:
        warnings.warn(f"{error} The nodes are chosen anew.", ParasolWarning, stacklevel=2)
        return None
    about = json.loads(str(held["about"]))
    arrays: dict[str, Any] = {name: held[name] for name in _ARRAYS}
    if "elements" in about:
        model = by_elements_again(problem, held["points"], about["elements"], step=None, integrator=None)
    else:
        nodes = Nodes(problem.domain, n_interior=int(held["n_interior"]), **arrays)
        model = discretize_on(problem, nodes, problem.settings.get("default", Settings()))
    history = tuple(Comparison(**row) for row in about["history"])
    return Discretised(model, about["error"], history, about["refined"], about["seconds"], limit=about["limit"])


def read_data(data: Data, parameters: Sequence[str] | None = None) -> Results:
    """Results as given, (mus, solutions), a store of snapshots, or what `read_results` reads, with these parameters."""
    if isinstance(data, Results):
        return data
    if isinstance(data, str | os.PathLike):
        path = Path(data).expanduser()
        if is_store(path):
            snapshots, names = open_snapshots(path), read_manifest(path.absolute()).parameters
            named = len(names) == snapshots.mus.shape[1]  # not functions, nor a solver that names nothing
            mus = unstructured_to_structured(snapshots.mus, names=list(names)) if named else snapshots.mus
            return Results(mus, snapshots.solutions)
        return read_results(data, parameters)
    try:
        mus, solutions = data
    except (TypeError, ValueError):
        raise InputError(
            "data must be ps.Results, a pair (mus, solutions), a file that ps.read_results reads, or a store."
        ) from None
    return Results(mus, solutions)


def _read(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as file:
            missing = [name for name in names if name not in getattr(file, "files", ())]
            if missing:
                raise FileError(f"{str(path)!r} has no array {missing[0]!r}. It needs: {', '.join(names)}.")
            return {name: file[name] for name in names}
    except FileError:
        raise
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise FileError(f"{str(path)!r} cannot be read as an .npz file: {error}.") from None
