"""The paper's first experiment: the Helmholtz equation in a flower, by full solves, greedy collocation and networks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from parasol import Settings, Surrogate, greedy, load_problem, pod, sample
from parasol.pde import Model, discretize_with
from parasol.reduction import Snapshots, fingerprint
from parasol.report import Facts
from parasol_lab.paper.baselines import field_network
from parasol_lab.paper.growth import (
    OURS,
    PAPER,
    Reducer,
    certificate_facts,
    measure_reduced,
    network_points,
    point,
    reduced_fields,
    reduced_points,
)
from parasol_lab.paper.run import RICH, Outcome, Run, measure_full
from parasol_lab.paper.seeds import Samples, fit_seeds, seeded_fields, seeded_surrogate, train_seeds
from parasol_lab.paper.theory import hypotheses

SHOWN = np.array([0.927, 1.697])  # the parameter of the paper's figure
_MANY = 60  # modes, where the error of the basis should not be the limit


def run_helmholtz(run: Run) -> Outcome:
    """All of it: solvers, error budget, hypotheses, errors by number of full solves."""
    model = run.model("paper", n_nodes=300, n_boundary=95)
    mus = sample(model, sum(run.sizes[1:]), design="random", scale="linear", rng=run.rng(10))
    truth = run.part(model, mus, "test")
    reducer = Reducer(run, model, 20 if run.quick else 100)
    solvers = {"RBF-FD": measure_full(model, truth, most=10 if run.quick else 50)}
    outcome = (
        _few(run, model, reducer, truth, solvers) if run.few else _paper_data(run, model, reducer, mus, truth, solvers)
    )
    run.progress("hypotheses of the theorem")
    box = np.vstack([model.parameters.grid(2, 2), sample(model, 64 if run.quick else 512, scale="linear")])
    facts = {
        "discretisation": run.memory.facts(
            ("discretisation", fingerprint(model), truth.mus, run.quick), lambda: _discretisation(run, model, truth)
        ),
        "hypotheses": hypotheses(model, outcome.basis, box),
        **outcome.facts,
    }
    return replace(outcome, facts=facts)


def _few(run: Run, model: Model, reducer: Reducer, truth: Snapshots, solvers: dict[str, Facts]) -> Outcome:
    """Our way: a few full solves towards the edges of the box, the reduced model labels, the network learns, bounds hold."""
    count = 20 if run.quick else run.stated.few
    snapshots = run.solve(model, sample(model, count, design="edges", rng=run.rng(0)), f"edges-{count}")
    basis = pod(snapshots, n_modes=count)
    timed_model = reducer(basis)
    solvers["LS-RRBFM"], predictors = _greedy(run, model, truth, basis.n_modes)
    solvers["DNN"] = {
        "skipped": f'{count} full solves are too few for a network without a basis: the preset "best" has one'
    }
    surrogate, solvers["POD-DNN"] = fit_seeds(
        run, "POD-DNN", timed_model.reduced, run.our_recipe(), truth, count, gpu=run.has_gpu
    )
    solvers["reduced model"] = measure_reduced(timed_model, truth, count)
    predictors |= {"POD-DNN": _predict(surrogate), "reduced model": reduced_fields(timed_model.reduced)}
    counts = (10, count) if run.quick else (10, 15, 20, count)
    growth = reduced_points(reducer, snapshots, truth, counts, most=_MANY)
    growth += network_points(run, model, snapshots, truth, (count,), most=_MANY, ours=False)
    growth.append(point(OURS, count, solvers["POD-DNN"]))  # the one of the table, taught by the reduced model
    facts = {
        "growth": growth,
        "certificate": certificate_facts(surrogate, truth),
        "labels": surrogate.facts["n_labels"],
    }
    spectra = {f"{count} full solves, towards the edges": basis}
    return Outcome(model, basis, surrogate, solvers, count, truth, predictors, facts, spectra)


def _paper_data(run: Run, model: Model, reducer: Reducer, mus, truth: Snapshots, solvers: dict[str, Facts]) -> Outcome:
    """As many samples as the paper: a lattice for the basis, random samples to train on; its recipe or ours."""
    side = round(run.sizes[0] ** 0.5)
    lattice = run.solve(model, sample(model, (side, side), design="lattice", scale="linear"), "lattice")
    train, validation = (run.part(model, mus, name) for name in ("train", "validation"))
    n_rich = len(train) + len(validation)
    n_solves = len(lattice) + n_rich
    run.progress("bases")
    basis = pod(lattice, tolerance=run.stated.tolerance)
    rich = pod(train, n_modes=min(_MANY, len(train) // 2))
    solvers["LS-RRBFM"], predictors = _greedy(run, model, truth, basis.n_modes)
    whole, reduced = (Samples(model, train, validation, truth, of) for of in (None, basis))
    direct = train_seeds(run, "DNN", *field_network(run, model, "DNN"), whole)
    solvers["DNN"] = seeded_fields(direct, whole, n_rich)
    timed_model = reducer(basis)
    facts: Facts = {"readings": direct.readings}
    if run.ours:
        options = {"model": model, "validation": validation, "recipe": run.our_recipe(), "truth": truth}
        surrogate, solvers["POD-DNN"] = fit_seeds(
            run, "POD-DNN", train, n_solves=n_solves, gpu=run.has_gpu, basis=basis, **options
        )
        _, solvers[RICH] = fit_seeds(run, RICH, train, n_solves=n_rich, basis=rich, **options)
        solvers["reduced model"] = measure_reduced(timed_model, truth, len(lattice))
    else:
        trained = train_seeds(run, "POD-DNN", run.paper_network, run.simplest, reduced)
        surrogate, solvers["POD-DNN"] = seeded_surrogate(trained, reduced, n_solves, gpu=run.has_gpu)
        facts["readings"] += trained.readings
    surrogate = replace(surrogate, reduced=timed_model.reduced)
    predictors |= {"DNN": direct.predict, "POD-DNN": _predict(surrogate)}
    counts = (40,) if run.quick else (100, 300, 1000)
    growth = network_points(run, model, train, truth, counts, most=_MANY)
    growth.append(point(PAPER, n_solves, solvers["POD-DNN"]) if not run.ours else point(OURS, n_rich, solvers[RICH]))
    counts = (10, 20) if run.quick else (10, 15, 20, 30, 50, 100)
    edges = run.solve(model, sample(model, counts[-1], design="edges", rng=run.rng(0)), f"edges-{counts[-1]}")
    growth += reduced_points(reducer, edges, truth, counts, most=45)
    facts |= {"growth": growth, "certificate": certificate_facts(surrogate, truth)}
    spectra = {f"{len(lattice)} on a lattice": basis, f"{len(train)} at random": rich}
    return Outcome(model, basis, surrogate, solvers, n_solves, truth, predictors, facts, spectra)


def _greedy(run: Run, model: Model, truth: Snapshots, n_modes: int):
    """LS-RRBFM: greedy sampling by the residual of the bare rows, and least squares of the same rows."""
    progress = run.progress("LS-RRBFM: greedy basis")
    candidates = sample(model, (8, 8) if run.quick else (32, 16), design="lattice", scale="linear")
    options = {"n_modes": n_modes, "weighting": "none", "n_anchors": 20 if run.quick else 100}
    key = ("greedy", fingerprint(model), options, candidates)
    timed_model = run.memory.reduced(key, lambda: greedy(model, candidates, progress=progress, **options).reduced)
    return measure_reduced(timed_model, truth, timed_model.reduced.n_modes), {
        "LS-RRBFM": reduced_fields(timed_model.reduced)
    }


def _predict(surrogate: Surrogate):
    return lambda mus: surrogate(mus, extrapolate=True).values


def _discretisation(run: Run, model: Model, truth: Snapshots) -> Facts:
    """The full solver itself against one on many more nodes with our own stencils, at some parameters."""
    run.progress("the discretisation's own error")
    problem = load_problem("helmholtz")
    n_fine = 1500 if run.quick else 8000
    fine = discretize_with(problem, Settings(n_nodes=n_fine))
    mus = np.vstack([SHOWN, truth.mus[: 2 if run.quick else 7]])
    errors = [_gap(model, fine, mu) for mu in mus]
    return {
        "error": float(np.mean(errors)),
        "max_error": float(np.max(errors)),
        "at_shown": errors[0],
        "n_parameters": len(mus),
        "reference": f"{fine.n_nodes} nodes, {fine.scheme.kernel} with polynomials of degree {fine.scheme.degree}",
    }


def _gap(model: Model, fine: Model, mu: np.ndarray) -> float:
    solution: Any = fine.solve(mu)
    reference = solution.at(model.nodes.points)
    return float(np.linalg.norm(model.solve(mu).values - reference) / np.linalg.norm(reference))
