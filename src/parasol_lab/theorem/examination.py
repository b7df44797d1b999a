"""The theorem examined on a problem: its network built, counted, tested, and laid beside bounds and a trained network."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from parasol import Problem, Settings, Surrogate, pod, reduce, sample, save, solve_many
from parasol.checks import check_choice, check_count
from parasol.errors import InputError, NoCertificate, ParasolError, ParasolWarning
from parasol.fitting import NetworkRecipe
from parasol.pde import Model, discretize_with
from parasol.report import Facts, machine_facts
from parasol.runtime import Basis, Features, features_of
from parasol_lab.theorem.construction.construct import CONSTRUCTIONS, ConstructedNetwork, build, surrogate_of
from parasol_lab.theorem.construction.plan import Design, Plan, check_accuracy
from parasol_lab.theorem.construction.stability import stability
from parasol_lab.theorem.construction.system import (
    PRECONDITIONERS,
    System,
    check_provable,
    check_representable,
    reduced_system,
)
from parasol_lab.theorem.growth import BOUNDS, PAPER, SHARED, bound_of, growth, savings, size_facts
from parasol_lab.theorem.lower import lower_bound
from parasol_lab.theorem.testing import tested, unseen

Stage = Callable[[str], Callable[[float], None] | None]
NAMES = {
    "affine": "one affine layer after the right-hand side",
    "chebyshev": "Chebyshev series",
    "shared": "inverse with shared powers",
    "paper": "the paper's network",
}
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
    construction: str = "smallest",
    compress: bool = True,
    precondition: str = "solve",
    n_snapshots: int = 100,
    compare: bool = True,
    seed: int = 0,
    progress: Stage = lambda text: None,
) -> Examination:
    """Build the network of the theorem for a problem and test it: POD of `n_snapshots` solves, `n_modes` modes.

    `construction` is one of those of `construct`, or "all": then each is built that fits into memory, and the smallest is the
    surrogate. The error is the largest over all corners of the box, 1000 random parameters (200 for large networks) and a
    search from the worst of them, relative to the largest ||c||, against least squares by orthogonal factors. `compare` also
    counts how it grows, what each idea saves, and trains networks that are as good.
    """
    begin = time.perf_counter()
    check_accuracy(accuracy)
    check_choice(construction, (*CONSTRUCTIONS, "all"), "construction")
    check_choice(precondition, PRECONDITIONERS, "precondition")
    check_count(n_modes, "n_modes")
    if check_count(n_snapshots, "n_snapshots") < n_modes:
        raise InputError(f"n_snapshots={n_snapshots} cannot give n_modes={n_modes} modes. Solve at least as often.")
    check_provable(problem)
    progress("discretising")
    settings = problem.settings.get("paper", problem.settings.get("default", Settings()))
    model = discretize_with(problem, settings, rng=seed)
    check_representable(model)
    whole = _basis(model, n_modes, n_snapshots, seed, progress("solving"))
    basis = whole.truncated(n_modes)
    progress("bounding the operator over the box")
    options = {"compress": compress, "precondition": precondition}
    system = reduced_system(model, basis, **options)
    planned = Plan(system, stability(system), accuracy, Design.named("paper" if construction == "paper" else "shared"))
    constructed, facts = _built(planned, construction, model, seed, progress)
    rows = [*_bounds(planned), *_counted(planned, [row["construction"] for row in facts["built"]])]
    facts = {
        "problem": problem.name,
        "n_nodes": model.n_nodes,
        "n_modes": basis.n_modes,
        "n_parameters": model.n_parameters,
        "n_snapshots": n_snapshots,
        "accuracy": accuracy,
        "compress": compress,
        "precondition": precondition,
        "system": {"rows": system.n_rows, "form": system.form, "exact": system.exact_operator and system.exact_load},
        "constants": constants_facts(planned),
        **facts,
        "chain": None if planned.chain is None else asdict(planned.chain),
        "smallest_accuracy": None if planned.chain is None else planned.smallest_accuracy,
        "rows": [*rows, *facts["built"]],
        "savings": [],
        "growth": None,
    }
    error = facts["test"]["error"]
    if compare and planned.chain is not None:
        progress("counting")
        facts["savings"] = savings(model, basis, accuracy=accuracy)
        facts["growth"] = growth(planned, model, whole, options=options)
        facts["rows"] += _trained(planned.system, model, error, accuracy, seed, progress("training"))
    facts |= {"seconds": time.perf_counter() - begin, "peak_bytes": peak_bytes(), "machine": machine_facts()}
    surrogate = surrogate_of(constructed, model, basis)
    named = {"problem": problem.name, "pde_solves": n_snapshots, "error": error}
    return Examination(replace(surrogate, facts=surrogate.facts | named), planned, facts)


def _built(
    planned: Plan, construction: str, model: Model, seed: int, progress: Stage
) -> tuple[ConstructedNetwork, Facts]:
    """The network asked for, the smallest of several, and of each what it is and how large its error is."""
    names = (construction,) if construction != "all" else ("paper", "shared", "chebyshev")
    if planned.chain is None and planned.system.exact_load:
        names = names[:1]  # one affine layer, whatever is asked for
    best, rows, facts = None, [], {}
    for name in names:
        progress(f"building the network ({name})" if len(names) > 1 else "building the network")
        own = replace(planned, design=Design.named("paper" if name == "paper" else "shared"))
        try:
            constructed = build(own, name if planned.chain is not None else "smallest")
        except ParasolError as error:
            if len(names) == 1:
                raise
            rows.append(
                {"name": f"{NAMES[name]}, not built: {error}", "kind": "refused", "construction": name, "error": None}
            )
            continue
        scale = {"n_weights": constructed.network.n_weights, "size": planned.stability.size if planned.chain else 0.0}
        test = tested(planned.system, constructed.network, model, **scale, seed=seed, progress=progress("testing"))
        network = network_facts(constructed) | {"seconds_per_query": test.pop("seconds_per_query")}
        rows.append({"name": NAMES[constructed.construction], "kind": "built", "error": test["error"]} | network)
        if best is None or constructed.network.n_weights < best.network.n_weights:
            best, facts = constructed, {"network": network, "test": test}
    if best is None:
        raise NoCertificate(str(rows[-1]["name"]))
    return best, {"built": rows} | facts


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


def constants_facts(planned: Plan) -> Facts:
    """α, β, γ as they are, and how they were found."""
    constants = planned.stability
    return {
        "alpha": constants.alpha,
        "beta": constants.beta,
        "gamma": constants.gamma,
        "kappa": constants.kappa,
        "smallest_singular_value_seen": constants.smallest,
        "seen_at": list(constants.mu),
        "cells": constants.n_cells,
        "relaxation": None if planned.chain is None else planned.chain.relaxation,
        "delta": None if planned.chain is None else planned.chain.delta,
    }


def network_facts(constructed: ConstructedNetwork) -> Facts:
    """What was built and what is proven of it."""
    network = constructed.network
    return {
        "construction": constructed.construction,
        "depth": network.depth,
        "n_weights": network.n_weights,
        "levels": constructed.levels,
        "resolved": constructed.resolved,
        "proven": constructed.proven,
        "largest_weight": max(float(np.max(np.abs(w.data), initial=0.0)) for w in network.weights),
        "n_bytes": network.n_bytes,
        "build_seconds": constructed.seconds,
        **constructed.details,
    }


def _bounds(planned: Plan) -> list[Facts]:
    """Bounds of sizes for one system and accuracy, from above and from below."""
    if planned.chain is None:
        return []
    rows = []
    for kind, name in BOUNDS.items():
        bound = bound_of(planned, kind)
        if bound is not None:
            rows.append(
                {"name": name, "kind": "bound", "depth": bound.depth, "n_weights": bound.n_weights, "error": None}
            )
    least = lower_bound(planned.system, planned.accuracy * planned.stability.size)
    rows.append(
        {"name": "no ReLU network can have fewer weights", "kind": "lower", "depth": None, "error": None}
        | asdict(least)
    )
    return rows


def _counted(planned: Plan, built: list[str]) -> list[Facts]:
    """Networks by inverses that were not built."""
    rows = []
    for name, design in (("paper", PAPER), ("shared", SHARED)):
        if name in built or planned.chain is None:
            continue
        counted = size_facts(replace(planned, design=design))
        counts = {key: counted[key] for key in ("depth", "n_weights", "levels")}
        rows.append({"name": f"{NAMES[name]}, not built", "kind": "counted", **counts, "error": None})
    return rows


def _trained(system: System, model: Model, error: float, accuracy: float, seed: int, progress) -> list[Facts]:
    """The smallest trained networks that are as good as the built one was measured (tanh), or had to be (relu).

    "with logarithms" reads log μ where the parameter's scale says so and has a linear path; "plain" reads μ and has none, as
    the constructed networks do.
    """
    mus = sample(model, _N_LABELS, rng=seed + 2)
    fresh, _ = unseen(model, _N_LABELS, seed)
    labels, truth = system.coefficients(mus), system.coefficients(fresh)
    size = float(np.max(np.linalg.norm(truth, axis=1)))
    n = model.n_parameters
    logarithms, plain = features_of(model.parameters, mus), Features(np.zeros(n, dtype=bool), np.zeros(n), np.ones(n))
    wanted = (
        ("tanh with logarithms and a linear path", "tanh", logarithms, error, "measured of the built one"),
        ("relu with logarithms and a linear path", "relu", logarithms, accuracy, "asked for"),
        ("plain relu of mu", "relu", plain, accuracy, "asked for"),
    )
    rows, done = [], 0
    for name, activation, features, least, words in wanted:
        for widths in _WIDTHS:
            recipe = NetworkRecipe.compact(widths=widths, iterations=200, dtype="float64")
            recipe = replace(recipe, activation=activation, teacher=False, skip=features is logarithms)
            network = recipe.fit(features(mus), labels, rng=seed).network
            gap = float(np.max(np.linalg.norm(network(features(fresh)) - truth, axis=1))) / size
            done += 1
            if progress is not None:
                progress(done / (len(wanted) * len(_WIDTHS)))
            if gap <= least:
                break
        reached = "as good as was" if gap <= least else "not as good as was"
        sizes = {"depth": network.depth, "n_weights": network.n_weights, "error": gap}
        rows.append({"name": f"trained, {name}, {reached} {words}", "kind": "trained", **sizes})
    return rows


def save_examined(examination: Examination, path: str | Path, *, progress: Stage = lambda text: None) -> Path:
    """Save the surrogate, with a reduced model in it so that its answers have bounds."""
    progress("proving error bounds")
    surrogate = examination.surrogate
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
