"""The theorem examined on a problem: its network built, counted, tested, and laid beside bounds and a trained network."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from parasol import Model, Problem, Settings, Surrogate, pod, reduce, sample, save, solve_many
from parasol.checks import check_choice, check_count
from parasol.errors import InputError, ParasolWarning
from parasol.fitting import NetworkRecipe
from parasol.pde import discretize_with
from parasol.report import Facts, machine_facts
from parasol.runtime import Basis, features_of
from parasol_lab.theorem.construction.construct import (
    Design,
    Plan,
    build_surrogate,
    check_accuracy,
)
from parasol_lab.theorem.construction.stability import stability
from parasol_lab.theorem.construction.system import (
    PRECONDITIONERS,
    System,
    check_provable,
    check_representable,
    reduced_system,
)
from parasol_lab.theorem.growth import BOUNDS, PAPER, SHARED, bound_of, growth, savings, size_facts
from parasol_lab.theorem.networks.inverse import POWERS

Stage = Callable[[str], Callable[[float], None] | None]
_N_TEST = 1000  # random parameters
_LARGE, _N_TEST_LARGE = 15, 200  # with so many modes one answer takes long, and fewer are asked for
_MOST_CORNERS = 10  # parameters whose corners are all tested
_WIDTHS = ((4,), (8,), (16,), (8, 16), (16, 32), (32, 64))
_N_LABELS = 1000
_MORE_MODES = 20


@dataclass(frozen=True, eq=False)
class Examination:
    """The constructed surrogate and all that was found out about it, as plain values."""

    surrogate: Surrogate
    plan: Plan
    facts: Facts


def examine(
    problem: Problem,
    *,
    n_modes: int = 5,
    accuracy: float = 1e-2,
    powers: str = "shared",
    compress: bool = True,
    precondition: str = "solve",
    n_snapshots: int = 100,
    settings: Settings | None = None,
    compare: bool = True,
    seed: int = 0,
    progress: Stage = lambda text: None,
) -> Examination:
    """Build the network of the theorem for a problem and test it: POD of `n_snapshots` solves, `n_modes` modes.

    The error is the largest over all corners of the box and 1000 random parameters (200 for 15 modes and more), relative
    to the largest ||c||, against least squares by orthogonal factors. `compare` also counts how it grows, what each idea
    saves, and trains networks that are as good.
    """
    begin = time.perf_counter()
    check_accuracy(accuracy)
    check_choice(powers, POWERS, "powers")
    check_choice(precondition, PRECONDITIONERS, "precondition")
    check_count(n_modes, "n_modes")
    if check_count(n_snapshots, "n_snapshots") < n_modes:
        raise InputError(f"n_snapshots={n_snapshots} cannot give n_modes={n_modes} modes. Solve at least as often.")
    check_provable(problem)
    progress("discretising")
    if settings is None:
        settings = problem.settings.get("paper", problem.settings.get("default", Settings()))
    model = discretize_with(problem, settings, rng=seed)
    check_representable(model)
    whole = _basis(model, n_modes, n_snapshots, seed, progress("solving"))
    basis = whole.truncated(n_modes)
    progress("bounding the operator over the box")
    options = {"compress": compress, "precondition": precondition}
    system = reduced_system(model, basis, **options)
    planned = Plan(system, stability(system), accuracy, Design.named(powers))
    progress("building the network")
    surrogate = build_surrogate(planned, model, basis)
    tested = _tested(planned, surrogate, model, seed, progress("testing"))
    facts: Facts = {
        "problem": problem.name,
        "n_nodes": model.n_nodes,
        "n_modes": basis.n_modes,
        "n_snapshots": n_snapshots,
        "accuracy": accuracy,
        "powers": powers,
        "compress": compress,
        "precondition": precondition,
        "system": {"rows": system.n_rows, "form": system.form, "exact": system.exact_operator and system.exact_load},
        "constants": constants_facts(planned),
        "network": network_facts(planned, surrogate) | {"seconds_per_query": tested.pop("seconds_per_query")},
        "test": tested,
        "chain": None if planned.chain is None else asdict(planned.chain),
        "smallest_accuracy": None if planned.chain is None else planned.smallest_accuracy,
        "rows": _side_by_side(planned, surrogate, tested["error"]),
        "savings": [],
        "growth": None,
    }
    if compare and planned.chain is not None:
        progress("counting")
        facts["savings"] = savings(model, basis, accuracy=accuracy)
        facts["growth"] = growth(planned, model, whole, options=options)
        facts["rows"] += _trained(planned.system, model, tested["error"], accuracy, seed, progress("training"))
    facts |= {"seconds": time.perf_counter() - begin, "peak_bytes": peak_bytes(), "machine": machine_facts()}
    named = {"problem": problem.name, "pde_solves": n_snapshots, "error": tested["error"]}
    return Examination(replace(surrogate, facts=surrogate.facts | named), planned, facts)


def _basis(model: Model, n_modes: int, n_snapshots: int, seed: int, progress) -> Basis:
    """POD of solves; with some more modes than asked for, where there are, to see what they would cost."""
    snapshots = solve_many(model, sample(model, n_snapshots, rng=seed), progress=progress)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParasolWarning)  # fewer directions than that are no surprise
        whole = pod(snapshots, n_modes=min(max(n_modes, _MORE_MODES), n_snapshots))
    if whole.n_modes < n_modes:
        raise InputError(
            f"the solutions span {whole.n_modes} directions only, n_modes={n_modes} are too many. Ask for fewer."
        )
    return whole


def _unseen(model: Model, n_random: int, seed: int) -> tuple[np.ndarray, int]:
    """Corners of the box, if there are not too many, then random parameters; and the number of corners."""
    n_scalars = len(model.parameters.scalars)
    mus = model.sample(n_random, rng=seed + 1)
    if not 0 < n_scalars <= _MOST_CORNERS:
        return mus, 0
    corners = np.repeat(mus[:1], 2**n_scalars, axis=0)
    corners[:, :n_scalars] = model.parameters.grid(*[2] * n_scalars)
    return np.vstack([corners, mus]), len(corners)


def _tested(planned: Plan, surrogate: Surrogate, model: Model, seed: int, progress) -> Facts:
    """The largest and the mean error over corners and random parameters."""
    n_random = _N_TEST if planned.system.n_modes < _LARGE else _N_TEST_LARGE
    mus, n_corners = _unseen(model, n_random, seed)
    exact = planned.system.coefficients(mus)
    start, found = time.perf_counter(), []
    for rows in np.array_split(np.arange(len(mus)), 20):
        found.append(surrogate.coefficients(mus[rows]))
        if progress is not None:
            progress((rows[-1] + 1) / len(mus))
    seconds = time.perf_counter() - start
    gaps = np.linalg.norm(np.concatenate(found) - exact, axis=1)
    size = float(np.max(np.linalg.norm(exact, axis=1)))
    scale = max(size, planned.stability.size) if planned.chain is not None else size
    return {
        "error": float(np.max(gaps)) / scale,
        "mean_error": float(np.mean(gaps)) / scale,
        "worst": mus[int(np.argmax(gaps)), : len(model.parameters.scalars)].tolist(),
        "n_random": n_random,
        "n_corners": n_corners,
        "largest_norm": size,
        "seconds_per_query": seconds / len(mus),
    }


def constants_facts(planned: Plan) -> Facts:
    """α, β, γ as they are, and how they were found."""
    found = planned.stability
    return {
        "alpha": found.alpha,
        "beta": found.beta,
        "gamma": found.gamma,
        "kappa": found.kappa,
        "smallest_singular_value_seen": found.smallest,
        "seen_at": list(found.mu),
        "cells": found.n_cells,
        "relaxation": None if planned.chain is None else planned.chain.relaxation,
        "delta": None if planned.chain is None else planned.chain.delta,
    }


def network_facts(planned: Plan, surrogate: Surrogate) -> Facts:
    """What was built, and what had been counted before."""
    built = surrogate.map
    network = built.network  # type: ignore[attr-defined]
    return {
        "depth": network.depth,
        "n_weights": network.n_weights,
        "counted_depth": planned.size.depth,
        "counted_n_weights": planned.size.n_weights,
        "levels": planned.size.levels,
        "n_bytes": network.n_bytes,
        "counted_n_bytes": planned.size.n_bytes,
        "build_seconds": built.seconds,  # type: ignore[attr-defined]
    }


def _side_by_side(planned: Plan, surrogate: Surrogate, error: float) -> list[Facts]:
    """Bounds, counts and the network itself for one system and accuracy."""
    network = surrogate.map.network  # type: ignore[attr-defined]
    built = {"kind": "built", "depth": network.depth, "n_weights": network.n_weights, "error": error}
    if planned.chain is None:
        return [
            {"name": "one affine layer" if network.depth == 1 else "f by arithmetic, then one affine layer"} | built
        ]
    rows = []
    for kind, name in BOUNDS.items():
        bound = bound_of(planned, kind)
        rows.append({"name": name, "kind": "bound", "depth": bound.depth, "n_weights": bound.n_weights, "error": None})
    for name, design in (("the paper's network", PAPER), ("network with shared powers", SHARED)):
        if design.powers == planned.design.powers:
            rows.append({"name": name} | built)
            continue
        counted = size_facts(replace(planned, design=design))
        why = "" if counted["representable"] else f": {counted['levels']} levels, more than float64 resolves"
        counts = {key: counted[key] for key in ("depth", "n_weights")}
        rows.append({"name": f"{name}, not built{why}", "kind": "counted", **counts, "error": None})
    return rows


def _trained(system: System, model: Model, error: float, accuracy: float, seed: int, progress) -> list[Facts]:
    """The smallest trained networks that are as good as the built one was measured (tanh), or had to be (relu)."""
    mus = sample(model, _N_LABELS, rng=seed + 2)
    fresh, _ = _unseen(model, _N_TEST, seed)
    labels, truth = system.coefficients(mus), system.coefficients(fresh)
    features = features_of(model.parameters, mus)
    size = float(np.max(np.linalg.norm(truth, axis=1)))
    rows, done = [], 0
    for activation, wanted, words in (("tanh", error, "measured of the built one"), ("relu", accuracy, "asked for")):
        for widths in _WIDTHS:
            recipe = NetworkRecipe.compact(widths=widths, iterations=200, dtype="float64")
            recipe = replace(recipe, activation=activation, teacher=False)
            network = recipe.fit(features(mus), labels, rng=seed).network
            gap = float(np.max(np.linalg.norm(network(features(fresh)) - truth, axis=1))) / size
            done += 1
            if progress is not None:
                progress(done / (2 * len(_WIDTHS)))
            if gap <= wanted:
                break
        reached = "as good as was" if gap <= wanted else "not as good as was"
        rows.append(
            {
                "name": f"trained POD-DNN, {activation}, {reached} {words}",
                "kind": "trained",
                "depth": network.depth,
                "n_weights": network.n_weights,
                "error": gap,
            }
        )
    return rows


def save_examined(found: Examination, path: str | Path, *, progress: Stage = lambda text: None) -> Path:
    """Save the surrogate, with a reduced model in it so that its answers have bounds."""
    progress("proving error bounds")
    surrogate = found.surrogate
    if isinstance(surrogate.solver, Model):
        surrogate = replace(surrogate, reduced=reduce(surrogate.solver, surrogate.basis))
    progress("saving")
    return save(surrogate, path)


def peak_bytes() -> int | None:
    """The most memory this process has had, where the system says so."""
    try:
        import resource
        import sys
    except ImportError:  # Windows
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
