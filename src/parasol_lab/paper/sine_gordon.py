"""The paper's second experiment: trajectories of the sine-Gordon equation, by networks with and without POD."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from scipy.spatial import KDTree

from parasol import Model, Settings, calibrate, load_problem, pod, reduce, sample
from parasol.pde import discretize_with
from parasol.reduction import Snapshots, TimeReducedModel, fingerprint, space_basis
from parasol.report import Facts
from parasol_lab.paper.baselines import field_recipes
from parasol_lab.paper.growth import OURS, PAPER, REDUCED, certificate_facts, network_points, point
from parasol_lab.paper.operator_nets import DirectNetwork
from parasol_lab.paper.run import RICH, Outcome, Run, measure, measure_fields, measure_full, measure_surrogate

SHOWN = np.array([0.097, -0.432])  # the parameter of the paper's figure
_SMALL = Settings(n_nodes=15**2, method="lattice", step=0.1, degree=4)
_LEVEL = 0.95
_N_CALIBRATION = 19  # the fewest that a bound at this level takes


def run_sine_gordon(run: Run) -> Outcome:
    """All of it: solvers, error budget, hypotheses, errors by number of trajectories."""
    model = run.model("default", _SMALL)
    mus = sample(model, sum(run.sizes[1:]), design="random", rng=run.rng(20))
    truth = run.part(model, mus, "test")
    solvers = {"RBF-FD": measure_full(model, truth, most=2 if run.quick else 4)}
    found = _few(run, model, truth, solvers) if run.few else _paper_data(run, model, mus, truth, solvers)
    key = (fingerprint(model), truth.mus, run.quick)
    facts = {
        "discretisation": run.memory.facts(("discretisation", *key), lambda: _discretisation(run, model, truth)),
        "hypotheses": run.memory.facts(("hypotheses", *key), lambda: _step_constants(run, model, truth)),
    }
    return replace(found, facts={**facts, **found.facts})


def _few(run: Run, model: Model, truth: Snapshots, solvers: dict[str, Facts]) -> Outcome:
    """Our way: spread trajectories for basis and map, a few more, kept from both, for a bound."""
    count = 24 if run.quick else run.stated.few
    spread = run.solve(model, sample(model, count, rng=run.rng(0)), f"sobol-{count}")
    aside = run.solve(model, sample(model, _N_CALIBRATION, design="random", rng=run.rng(22)), "calibration")
    basis = pod(spread, n_modes=min(24, count // 2))
    surrogate = calibrate(run.fit("POD-DNN", spread, run.our_recipe(), basis=basis, model=model), aside, level=_LEVEL)
    n_solves = len(spread) + len(aside)
    solvers["DNN"] = {"skipped": f"{count} trajectories are too few for a network without a basis; see --preset best"}
    solvers["POD-DNN"] = measure_surrogate(surrogate, truth, n_solves=n_solves, gpu=run.has_gpu)
    process = run.fit("Gaussian process", spread, "gaussian process", basis=basis, model=model)
    solvers["Gaussian process"] = measure_surrogate(process, truth, n_solves=count)
    growth = [
        _stepper_point(run, model, spread, truth, n, solvers) for n in ((12, count) if run.quick else (10, count))
    ]
    counts = (count,) if run.quick else (20, count)
    growth += network_points(run, model, spread, truth, counts, most=24, z_score=True)
    facts = {
        "growth": growth,
        "certificate": certificate_facts(surrogate, truth),
        "sizes": {"snapshots": 0, "train": count, "validation": 0, "calibration": len(aside), "test": len(truth)},
    }
    predictors = {"POD-DNN": lambda mus: surrogate(mus, extrapolate=True).values}
    spectra = {f"{count} trajectories": basis}
    return Outcome(model, basis, surrogate, solvers, n_solves, truth, predictors, facts, spectra)


def _paper_data(run: Run, model: Model, mus: np.ndarray, truth: Snapshots, solvers: dict[str, Facts]) -> Outcome:
    """The paper's data: 100 trajectories for the basis, 896 for the map; its recipe or ours."""
    drawn = sample(model, run.sizes[0], design="random", rng=run.rng(21))
    basis_set = run.solve(model, drawn, "snapshots")
    train, validation = (run.part(model, mus, name) for name in ("train", "validation"))
    n_solves = len(basis_set) + len(train) + len(validation)
    run.progress("bases")
    basis = pod(basis_set, tolerance=run.stated.tolerance)
    rich = pod(basis_set, n_modes=min(40, len(basis_set) // 2))
    solvers["DNN"] = {"skipped": "no GPU"}
    if run.has_gpu:
        recipe = DirectNetwork.paper(epochs=run.epochs, batch_size=run.stated.batch_size, device=run.device)
        if run.ours:
            made = field_recipes(model, epochs=run.epochs, batch_size=run.stated.batch_size, paper=False)
            recipe = replace(made["DNN without POD"], device=run.device)
        direct = run.fit_fields("DNN without POD", recipe, model, train, validation)
        solvers["DNN"] = measure_fields(direct, truth, n_solves=len(train) + len(validation))
    facts: Facts = {}
    if run.ours:  # the validation set is kept from training: it gives the bound
        surrogate = run.fit("POD-DNN", train, run.our_recipe(), basis=basis, model=model)
        surrogate = calibrate(surrogate, validation, level=_LEVEL if len(validation) >= _N_CALIBRATION else 0.9)
        facts["certificate"] = certificate_facts(surrogate, truth)
        more = run.fit(RICH, train, run.our_recipe(), basis=rich, model=model, validation=validation)
    else:
        options = {"model": model, "validation": validation}
        surrogate = run.fit("POD-DNN", train, run.paper_recipe(z_score=True), basis=basis, **options)
        more = run.fit(RICH, train, run.paper_recipe(z_score=True), basis=rich, **options)
        facts["their_scheme"] = _their_scheme(run, drawn)
    solvers["POD-DNN"] = measure_surrogate(surrogate, truth, n_solves=n_solves, gpu=run.has_gpu)
    solvers[RICH] = measure_surrogate(more, truth, n_solves=n_solves)
    counts = (32,) if run.quick else (20, 50, 100)
    growth = network_points(run, model, train, truth, counts, most=24, z_score=True)
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
        found = measure(lambda mus: reduced.values(mus, extrapolate=True), truth)
        return {**found, "n_modes": reduced.n_modes, "fit_seconds": seconds, "pde_solves": n}

    key = ("steps", fingerprint(model), tolerance, data.mus[:n], truth.mus)
    solvers["reduced model"] = run.memory.facts(key, stepped)
    return point(REDUCED, n, solvers["reduced model"])


# ---- the solver itself ----------------------------------------------------------------------------------------------
def _discretisation(run: Run, model: Model, truth: Snapshots) -> Facts:
    """The full solver against one with half the spacing and half the step, whose nodes contain ours."""
    problem = load_problem(run.problem)
    own = _SMALL if run.quick else problem.settings["default"]
    side = round(model.n_nodes**0.5)
    fine = discretize_with(problem, replace(own, n_nodes=(2 * side - 1) ** 2, step=own.step / 2))  # type: ignore[operator]
    mus = np.vstack([SHOWN, truth.mus[:1]])
    reference = run.solve(fine, mus, "fine")
    here = KDTree(fine.nodes.points).query(model.nodes.points)[1]
    solvers = {"error": model}
    if not run.quick:
        solvers["error_of_the_papers_scheme"] = discretize_with(problem, problem.settings["paper"])
    facts: Facts = {"reference": f"{fine.n_nodes} nodes, step {own.step / 2:g}", "n_parameters": len(mus)}  # type: ignore[operator]
    n_times = len(problem.times)  # type: ignore[arg-type]
    for key, solver in solvers.items():
        errors = []
        for mu, flat in zip(mus, reference.solutions, strict=True):
            wanted = flat.reshape(n_times, -1)[:, here]
            errors.append(np.linalg.norm(solver.solve(mu).values - wanted) / np.linalg.norm(wanted))
        facts[key] = float(np.mean(errors))
    return facts


def _their_scheme(run: Run, mus: np.ndarray) -> Facts:
    """How many modes the paper's own stencils ask for: bare IMQ, one-sided at the walls."""
    small = replace(_SMALL, degree=-1, kernel=load_problem(run.problem).settings["paper"].kernel, neumann="one-sided")
    model = run.model("paper", replace(small, stencil_size=25))
    basis = pod(run.solve(model, mus, "snapshots-paper-scheme"), tolerance=run.stated.tolerance)
    return {"scheme": str(model.scheme), "n_modes": basis.n_modes}


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
