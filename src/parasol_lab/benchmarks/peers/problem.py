"""What every peer is given: one folder of arrays with the Helmholtz problem's full solves, their split, and its matrices."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from parasol import Settings, __version__, load_problem, sample, solve_many
from parasol.cache import content_hash, publish
from parasol.pde import Model, discretize_with

Stage = Callable[[str], Callable[[float], None] | None]
_POINTS = 4000  # random points of the domain at which solvers are compared
# where solvers are compared with each other: the ends of the range of a, and the paper's example
SOLVER_MUS = ((0.1, 2.0), (0.927, 1.697), (4.0, 2.0))


@dataclass(frozen=True)
class Split:
    """How many full solves there are to learn from, and how many to test on."""

    train: tuple[int, ...] = (100, 500)
    test: int = 2000
    n_nodes: int | None = None  # None: the paper's nodes

    @classmethod
    def quick(cls) -> Split:
        """A small version, to see that everything runs."""
        return cls(train=(60,), test=100, n_nodes=300)


def write_problem(folder: Path, split: Split, progress: Stage) -> str:
    """Write the arrays unless they are there; returns their key, which changes with the data.

    Parameters are drawn at random from the ranges as the problem declares them, a on its logarithmic scale; peers are given
    a and k themselves. The first `n` of the training set are those of a run with `n` full solves. The operator is A_0 + a A_1 + k A_2 with rows for the boundary, the load is f.
    """
    # by the text of this file too, which says how the data are drawn
    asked = content_hash([Path(__file__).read_text(), split.train, split.test, split.n_nodes, __version__])
    manifest = folder / "problem.json"
    if manifest.exists() and (known := json.loads(manifest.read_text())).get("asked") == asked:
        return known["key"]
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("reference.*"):  # of other points
        old.unlink()
    problem = load_problem("helmholtz")
    settings = problem.settings["paper"] if split.n_nodes is None else Settings(n_nodes=split.n_nodes)
    n_train = max(split.train)
    with threadpool_limits(1):
        model = discretize_with(problem, settings)
        mus = sample(model, n_train + split.test, design="random", rng=10)
        done = progress(f"{len(mus)} full solves for all peers")
        solutions = solve_many(model, mus, progress=done).solutions
    low, high = problem.domain.bounds
    draws = np.random.default_rng(0).uniform(low, high, (3 * _POINTS, 2))
    points = draws[problem.domain.distance(draws) < -1e-6][:_POINTS]
    arrays = {
        "train_mus": mus[:n_train],
        "train_solutions": solutions[:n_train],
        "test_mus": mus[n_train:],
        "test_solutions": solutions[n_train:],
        "nodes": model.nodes.points,
        "points": points,
        "solver_mus": np.array(SOLVER_MUS),
        "load": model.load(mus[0]),
    }
    blocks = [sparse.csc_matrix(block) for block in _blocks(model)]
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", values)
    for i, block in enumerate(blocks):
        sparse.save_npz(folder / f"operator{i}.npz", block)
    key = content_hash([arrays, [(block.data, block.indices, block.indptr) for block in blocks]])
    facts = {"key": key, "asked": asked, "problem": "helmholtz", "n_nodes": model.n_nodes, "n_test": split.test}
    publish(manifest, lambda path: path.write_text(json.dumps(facts)))
    return key


def _blocks(model: Model) -> list[Any]:
    """A_0, A_1, A_2 of the operator, which is affine in (a, k), from its values at three parameters."""
    first, more_a, more_k = (model.operator(np.array(mu)) for mu in ((1.0, 0.0), (2.0, 0.0), (1.0, 1.0)))
    return [2 * first - more_a, more_a - first, more_k - first]
