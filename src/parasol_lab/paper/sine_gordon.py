"""The paper's second experiment: trajectories of the sine-Gordon equation, by networks with and without POD."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from scipy.spatial import KDTree

from parasol import Settings, calibrate, load_problem, pod, reduce, sample
from parasol.pde import Model, discretize_with
from parasol.reduction import Snapshots, TimeReducedModel, fingerprint, space_basis
from parasol.report import Facts
from parasol_lab.paper.baselines import field_network
from parasol_lab.paper.growth import OURS, PAPER, REDUCED, certificate_facts, network_points, point
from parasol_lab.paper.run import PARTS, RICH, Outcome, Run, measure, measure_full, measure_surrogate
from parasol_lab.paper.seeds import Samples, fit_seeds, seeded_fields, seeded_surrogate, train_seeds

SHOWN = np.array([0.097, -0.432])  # the parameter of the paper's figure
_LEVEL = 0.95
_N_CALIBRATION = 19  # the fewest that a bound at this level takes


def run_sine_gordon(run: Run) -> Outcome:
    """All of it: solvers, error budget, hypotheses, errors by number of trajectories."""
    model, data = solve_all(run)
    truth = data["test"]
    solvers = {"RBF-FD": measure_full(model, truth, most=2 if run.quick else 4)}
    outcome = _few(run, model, truth, solvers) if run.few else _paper_data(run, model, data, solvers)
    key = (fingerprint(model), truth.mus, run.quick)
    facts = {
        "step": model.step,
        "discretisation": run.memory.facts(("discretisation", *key), lambda: _discretisation(run, model, truth)),
        "hypotheses": run.memory.facts(("hypotheses", *key), lambda: _step_constants(run, model, truth)),
    }
    return replace(outcome, facts={**facts, **outcome.facts})


def _settings(run: Run, preset: str) -> Settings:
    """Ours ("default"), or the paper's stencils with the ghost nodes that its appendix recommends; small in a quick run."""
    settings = replace(load_problem(run.problem).settings[preset], neumann="ghosts")
    return replace(settings, n_nodes=15**2, step=0.1) if run.quick else settings


def solve_all(run: Run) -> tuple[Model, dict[str, Snapshots]]:
    """The model and its full solves by name: for the basis, training, validation and test."""
    model = discretize_with(load_problem(run.problem), _settings(run, "default" if run.ours else "paper"))
    prefix = "" if run.ours else "paper-"
    mus = sample(model, sum(run.sizes[1:]), design="random", rng=run.rng(20))
    data = {name: run.part(model, mus, name, prefix) for name in (("test",) if run.few else PARTS)}
    if not run.few:
        drawn = sample(model, run.sizes[0], design="random", rng=run.rng(21))
        data["snapshots"] = run.solve(model, drawn, f"{prefix}snapshots")
    return model, data


def _few(run: Run, model: Model, truth: Snapshots, solvers: dict[str, Facts]) -> Outcome:
    """Our way: spread trajectories for basis and map, a few more, kept from both, for a bound."""
    count = 24 if run.quick else run.stated.few
    spread = run.solve(model, sample(model, count, rng=run.rng(0)), f"sobol-{count}")
    aside = run.solve(model, sample(model, _N_CALIBRATION, design="random", rng=run.rng(22)), "calibration")
    basis = pod(spread, n_modes=min(24, count // 2))
    n_solves = len(spread) + len(aside)
    surrogate, solvers["POD-DNN"] = fit_seeds(
        run, "POD-DNN", spread, run.our_recipe(), truth, n_solves, gpu=run.has_gpu, basis=basis, model=model
    )
    surrogate = calibrate(surrogate, aside, level=_LEVEL)
    solvers["DNN"] = {
        "skipped": f'{count} trajectories are too few for a network without a basis: the preset "best" has one'
    }
    process = run.fit("Gaussian process", spread, "gaussian process", basis=basis, model=model)
    solvers["Gaussian process"] = measure_surrogate(process, truth, n_solves=count)
    growth = [
        _stepper_point(run, model, spread, truth, n, solvers) for n in ((12, count) if run.quick else (10, count))
    ]
    counts = (count,) if run.quick else (20, count)
    growth += network_points(run, model, spread, truth, counts, most=24)
    facts = {
        "growth": growth,
        "certificate": certificate_facts(surrogate, truth),
        "sizes": {"snapshots": count, "train": count, "validation": 0, "calibration": len(aside), "test": len(truth)},
    }
    predictors = {"POD-DNN": lambda mus: surrogate(mus, extrapolate=True).values}
    spectra = {f"{count} trajectories": basis}
    return Outcome(model, basis, surrogate, solvers, n_solves, truth, predictors, facts, spectra)


def _paper_data(run: Run, model: Model, data: dict[str, Snapshots], solvers: dict[str, Facts]) -> Outcome:
    """As many trajectories as the paper: 100 for the basis, 896 for the map; its stencils and recipe, or ours."""
    basis_set, train, validation, truth = (data[name] for name in ("snapshots", *PARTS))
    n_fields = len(train) + len(validation)
    n_solves = len(basis_set) + n_fields
    run.progress("bases")
    basis = pod(basis_set, tolerance=run.stated.tolerance)
    rich = pod(basis_set, n_modes=min(40, len(basis_set) // 2))
    whole, reduced, richer = (Samples(model, train, validation, truth, of) for of in (None, basis, rich))
    largest = np.max(np.abs(reduced.outputs(train)), axis=0)
    facts: Facts = {"coefficients": [float(np.min(largest)), float(np.max(largest))]}
    if run.ours:  # the validation set is kept from training: it gives the bound
        options = {"recipe": run.our_recipe(), "truth": truth, "n_solves": n_solves, "model": model}
        surrogate, solvers["POD-DNN"] = fit_seeds(run, "POD-DNN", train, basis=basis, gpu=run.has_gpu, **options)
        surrogate = calibrate(surrogate, validation, level=_LEVEL if len(validation) >= _N_CALIBRATION else 0.9)
        facts["certificate"] = certificate_facts(surrogate, truth)
        _, solvers[RICH] = fit_seeds(run, RICH, train, basis=rich, validation=validation, **options)
    else:
        trained = train_seeds(run, "POD-DNN", run.paper_network, run.simplest, reduced)
        surrogate, solvers["POD-DNN"] = seeded_surrogate(trained, reduced, n_solves, gpu=run.has_gpu)
        more = train_seeds(run, RICH, run.paper_network, run.simplest, richer, tried=False)
        _, solvers[RICH] = seeded_surrogate(more, richer, n_solves, gpu=False)
        facts["readings"] = trained.readings
    solvers["DNN"] = {"skipped": "no GPU"}
    if run.has_gpu:  # each of its trainings takes minutes
        direct = train_seeds(run, "DNN", *field_network(run, model, "DNN"), whole)
        solvers["DNN"] = seeded_fields(direct, whole, n_fields)
        facts["readings"] = facts.get("readings", []) + direct.readings
    counts = (32,) if run.quick else (20, 50, 100)
    growth = network_points(run, model, train, truth, counts, most=24)
    growth.append(point(OURS if run.ours else PAPER, n_solves, solvers[RICH]))
    growth += [_stepper_point(run, model, train, truth, n, {}) for n in ((12,) if run.quick else (10, 30))]
    predictors = {"POD-DNN": lambda mus: surrogate(mus, extrapolate=True).values}
    spectra = {f"{len(basis_set)} trajectories, d = {basis.n_modes}": basis, f"the same, d = {rich.n_modes}": rich}
    return Outcome(model, basis, surrogate, solvers, n_solves, truth, predictors, {"growth": growth, **facts}, spectra)


def _stepper_point(
    run: Run, model: Model, data: Snapshots, truth: Snapshots, n: int, solvers: dict[str, Facts]
) -> Facts:
    """The reduced model in time from n trajectories; the last one goes into the table of solvers."""
    tolerance = 1e-2 if run.quick else 1e-4

    def stepped() -> Facts:
        run.progress(f"reduced steps from {n} trajectories")
        start = time.perf_counter()
        few = data.between(0, n)
        reduced = reduce(model, space_basis(model, few, tolerance=tolerance), few, tolerance=tolerance)
        assert isinstance(reduced, TimeReducedModel)
        seconds = time.perf_counter() - start
        facts = measure(lambda mus: reduced.values(mus, extrapolate=True), truth)
        return {**facts, "n_modes": reduced.n_modes, "fit_seconds": seconds, "pde_solves": n}

    key = ("steps", fingerprint(model), tolerance, data.mus[:n], truth.mus)
    solvers["reduced model"] = run.memory.facts(key, stepped)
    return point(REDUCED, n, solvers["reduced model"])


# ---- the solver itself ----------------------------------------------------------------------------------------------
def _discretisation(run: Run, model: Model, truth: Snapshots) -> Facts:
    """The full solver, and others on the same nodes, against one with half the spacing and half the step, whose nodes contain theirs."""
    problem = load_problem(run.problem)
    own, theirs = _settings(run, "default"), _settings(run, "paper")
    side = round(model.n_nodes**0.5)
    step = float(own.step or 0.0) / 2
    fine = discretize_with(problem, replace(own, n_nodes=(2 * side - 1) ** 2, step=step))
    mus = np.vstack([SHOWN, truth.mus[:1]])
    reference = run.solve(fine, mus, "fine")
    here = KDTree(fine.nodes.points).query(model.nodes.points)[1]
    n_times = len(problem.times)  # type: ignore[arg-type]

    def error(solver: Model) -> float:
        wanted = [flat.reshape(n_times, -1)[:, here] for flat in reference.solutions]
        gaps = [
            np.linalg.norm(solver.solve(mu).values - w) / np.linalg.norm(w) for mu, w in zip(mus, wanted, strict=True)
        ]
        return float(np.mean(gaps))

    facts: Facts = {
        "error": error(model),
        "reference": f"{fine.n_nodes} nodes, step {step:g}",
        "n_parameters": len(mus),
    }
    if not run.quick:
        schemes = {
            "IMQ as the paper states it, ghost nodes": theirs,
            "the same, one-sided at the walls": replace(theirs, neumann="one-sided"),
            "the same with ghost nodes and a constant added": replace(theirs, degree=0),
            "polyharmonic splines with polynomials, ghost nodes": own,
        }
        facts["schemes"] = {name: error(discretize_with(problem, scheme)) for name, scheme in schemes.items()}
    return facts


def _step_constants(run: Run, model: Model, truth: Snapshots) -> Facts:
    """Singular values of the matrix of a step in time on modes in space, times h², over the range of the damping."""
    run.progress("constants of a step in time")
    basis = space_basis(model, truth.between(0, min(8, len(truth))), tolerance=1e-3)
    modes = model.layout.unknowns(basis.modes.T, basis.hidden.T).T
    h = float(model.step)  # type: ignore[arg-type]
    values = []
    mus = model.parameters.grid(3, 2)
    for mu in mus:
        system = model.system(mu)
        data = h**2 * system.stiffness / 2 + h * system.damping / 2 + system.mass
        values.append(np.linalg.svd(system.matrix(data) @ modes, compute_uv=False))
    alpha, beta = float(np.max(values)), float(np.min(values))
    step = {"alpha": alpha, "beta": beta, "alpha_over_beta": alpha / beta, "n_modes_in_space": basis.n_modes}
    return {"n_parameters_tried": len(mus), "step": step}
