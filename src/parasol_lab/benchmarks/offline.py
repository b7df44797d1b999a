"""The offline phase measured on the paper's Helmholtz problem: bases, reduced models, certificates, sampling, speed."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.linalg import subspace_angles
from threadpoolctl import threadpool_limits

from parasol import discretize, greedy, load_problem, pod, reduce, sample, scatter, solve_many
from parasol.checks import ParasolWarning
from parasol.pde import Model, discretize_with
from parasol.reduction import METHODS, Snapshots
from parasol.report import Facts
from parasol.runtime import Basis, ReducedModel
from parasol_lab.benchmarks.collocation import collocate

TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)
PERTURBATIONS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)


def measure_offline(*, quick: bool = False, progress: Callable[[str], Callable[[float], None] | None]) -> Facts:
    """All figures of the offline phase; `quick` is a small version that shows that everything runs."""
    n_test, sizes = (50, (200, 400)) if quick else (2000, (1000, 20000))
    problem = load_problem("helmholtz")
    with threadpool_limits(1):
        progress("discretising")
        paper = problem.settings["paper"]
        model = discretize_with(problem, replace(paper, n_nodes=300, n_boundary=80) if quick else paper)
        tests = sample(model, n_test, design="random", scale="linear", rng=1)
        start = time.perf_counter()
        truth = solve_many(model, tests, progress=progress(f"{n_test} full solves"))
        full_seconds = time.perf_counter() - start
        lattice = solve_many(model, sample(model, (10, 10), design="lattice", scale="linear"))
        progress("bases")
        basis = pod(lattice, tolerance=1e-6)
        facts: Facts = {
            "n_nodes": model.n_nodes,
            "n_test": n_test,
            "full_solves": {"seconds": full_seconds, "each": full_seconds / n_test},
            "pod": _pod_facts(model, lattice, truth, basis),
        }
        progress("reduced models")
        reduced = reduce(model, basis)
        facts["reduced"] = _reduced_facts(model, basis, reduced, truth)
        facts["certificate"] = _certificate_facts(reduced, truth)
        facts["online"] = _online_facts(reduced, tests, full_seconds)
        progress("greedy bases")
        facts["greedy"] = _greedy_facts(model, truth)
        facts["adaptive"] = _adaptive_facts(model, truth)
        facts["growth"] = [_growth_facts(n, n_test, progress(f"{n} nodes")) for n in sizes]
    return facts


def relative_errors(truth: Snapshots, basis: Basis, coefficients: np.ndarray) -> np.ndarray:
    """||u − V c|| / ||u|| for each test parameter."""
    return np.linalg.norm(truth.solutions - basis.lift(coefficients), axis=1) / np.linalg.norm(truth.solutions, axis=1)


def _spread(errors: np.ndarray) -> Facts:
    return {"mean": float(np.mean(errors)), "max": float(np.max(errors))}


def _pod_facts(model: Model, lattice: Snapshots, truth: Snapshots, basis: Basis) -> Facts:
    random = solve_many(model, sample(model, 100, design="random", scale="linear", rng=2))
    angles = {}
    for method in METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ParasolWarning)  # where each loses accuracy is what is measured here
            other = pod(lattice, n_modes=10, method=method)
        angles[method] = float(np.max(subspace_angles(basis.modes[:, :10], other.modes)))
    solutions = lattice.solutions
    left = np.linalg.norm(solutions - basis.lift(basis.project(solutions)))
    return {
        "n_modes": {f"{t:.0e}": pod(lattice, tolerance=t).n_modes for t in TOLERANCES},
        "n_modes_random": {f"{t:.0e}": pod(random, tolerance=t).n_modes for t in TOLERANCES},
        "projection_error": _spread(basis.projection_errors(truth.solutions)),
        "tail_identity": abs(left / (basis.energy_discarded[basis.n_modes] * np.linalg.norm(solutions)) - 1),
        "orthonormality": float(np.max(np.abs(basis.modes.T @ basis.modes - np.eye(basis.n_modes)))),
        "angles": angles,
    }


def _reduced_facts(model: Model, basis: Basis, reduced: ReducedModel, truth: Snapshots) -> Facts:
    floor = float(np.mean(basis.projection_errors(truth.solutions)))
    models = {
        "solve": reduced,
        "rows": reduce(model, basis, weighting="rows"),
        "none": reduce(model, basis, weighting="none"),
    }
    coefficients = {name: other.coefficients(truth.mus) for name, other in models.items()}
    coefficients["points"] = collocate(model, basis).coefficients(truth.mus)
    out: Facts = {"n_rows": len(reduced.residuals[0].triangle), "n_preconditioners": len(reduced.residuals)}
    for name, c in coefficients.items():
        errors = relative_errors(truth, basis, c)
        out[name] = {**_spread(errors), "over_projection": float(np.mean(errors)) / floor}
    return out


def _certificate_facts(reduced: ReducedModel, truth: Snapshots) -> Facts:
    basis, size = reduced.basis, np.linalg.norm(truth.solutions, axis=1)
    rng = np.random.default_rng(3)
    best = reduced.solve(truth.mus)
    cases = {"reduced model": best.coefficients}
    projected = basis.project(truth.solutions)
    for strength in PERTURBATIONS:
        noise = rng.standard_normal(projected.shape)
        cases[f"{strength:.0e}"] = projected + strength * size[:, None] * noise / np.linalg.norm(noise, axis=1)[:, None]
    certificate = reduced.certificate
    out: Facts = {"n_anchors": 0 if certificate is None else certificate.n_anchors, "cases": {}}
    for name, c in cases.items():
        bounds = reduced.certify(truth.mus, c)
        ratio = bounds.values / (relative_errors(truth, basis, c) * size)
        out["cases"][name] = {
            "least": float(np.min(ratio)),
            "median": float(np.median(ratio)),
            "largest": float(np.max(ratio)),
            "rigorous": float(np.mean(bounds.rigorous)),
        }
    return out


def _online_facts(reduced: ReducedModel, mus: np.ndarray, full_seconds: float) -> Facts:
    seconds = _best_time(lambda: reduced.solve(mus))
    return {
        "seconds": seconds,
        "microseconds_each": 1e6 * seconds / len(mus),
        "faster_than_full": full_seconds / seconds,
        "single_query_microseconds": 1e6 * _best_time(lambda: reduced.solve(mus[:1]), repeat=50),
    }


def _best_time(run: Callable[[], object], repeat: int = 5) -> float:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def _greedy_facts(model: Model, truth: Snapshots) -> Facts:
    candidates = sample(model, (32, 16), design="lattice", scale="linear")
    out: Facts = {}
    for weighting in ("none", "rows", "solve"):
        search = greedy(model, candidates, n_modes=17, weighting=weighting)
        errors = relative_errors(truth, search.basis, search.reduced.coefficients(truth.mus))
        floor = float(np.mean(search.basis.projection_errors(truth.solutions)))
        out[weighting] = {**_spread(errors), "projection": floor}
    return out


def _adaptive_facts(model: Model, truth: Snapshots) -> Facts:
    start = time.perf_counter()
    search = greedy(model, tolerance=1e-5)
    seconds = time.perf_counter() - start
    answers = search.reduced.solve(truth.mus)
    return {
        "n_solves": search.n_solves,
        "n_factorizations": search.n_factorizations,
        "seconds": seconds,
        "certified": float(np.max(answers.bounds.relative)),  # type: ignore[union-attr]
        "rigorous": float(np.mean(answers.bounds.rigorous)),  # type: ignore[union-attr]
        "error": _spread(relative_errors(truth, search.basis, answers.coefficients)),
    }


def _growth_facts(n_nodes: int, n_queries: int, progress) -> Facts:
    """Time per query at a number of nodes: coefficients and bounds, nothing lifted."""
    problem = load_problem("helmholtz")
    model = discretize(problem, scatter(problem.domain, n_nodes=n_nodes))
    snapshots = solve_many(model, sample(model, 20, design="sobol"), progress=progress)
    reduced = reduce(model, pod(snapshots, n_modes=17), n_anchors=8)
    mus = sample(model, n_queries, design="random", rng=4)
    return {"n_nodes": n_nodes, "microseconds_each": 1e6 * _best_time(lambda: reduced.solve(mus)) / n_queries}


def offline_rows(facts: Facts) -> list[tuple[str, str]]:
    """The figures in words, for a table."""
    pods, reduced, online = facts["pod"], facts["reduced"], facts["online"]
    adaptive, certificate = facts["adaptive"], facts["certificate"]
    perturbed = [case for name, case in certificate["cases"].items() if name != "reduced model"]
    own = certificate["cases"]["reduced model"]

    def both(errors: Facts) -> str:
        return f"mean {errors['mean']:.2e}, max {errors['max']:.2e}"

    rows = [
        (
            "problem",
            f"Helmholtz, the paper's discretisation, {facts['n_nodes']} nodes, {facts['n_test']} test parameters",
        ),
        ("modes by tolerance, 10 x 10 lattice", ", ".join(f"{t}: {d}" for t, d in pods["n_modes"].items())),
        ("modes by tolerance, 100 random", ", ".join(f"{t}: {d}" for t, d in pods["n_modes_random"].items())),
        ("largest angle to the direct SVD's modes", ", ".join(f"{m} {a:.0e}" for m, a in pods["angles"].items())),
        ("projection error (the floor)", both(pods["projection_error"])),
    ]
    names = {
        "solve": "least squares, residual times an inverse",
        "rows": "least squares, rows scaled",
        "none": "least squares, bare rows",
        "points": "collocation at as many points as modes",
    }
    for key, name in names.items():
        rows.append((name, f"{both(reduced[key])}, {reduced[key]['over_projection']:.3f} of the floor"))
    for key, case in facts["greedy"].items():
        rows.append((f"greedy, 17 modes, weighting {key}", f"{both(case)}, projection {case['projection']:.2e}"))
    rows += [
        (
            "certificate: bound over error",
            f"least {own['least']:.2f}, median {own['median']:.2f}, largest {own['largest']:.1f}; "
            f"rigorous for {100 * own['rigorous']:.0f} %, {certificate['n_anchors']} anchors",
        ),
        (
            "the same, coefficients perturbed by 1e-1 ... 1e-8",
            f"least {min(c['least'] for c in perturbed):.2f}, medians {min(c['median'] for c in perturbed):.2f} to "
            f"{max(c['median'] for c in perturbed):.2f}, largest {max(c['largest'] for c in perturbed):.1f}",
        ),
        (
            "online, coefficients and bounds",
            f"{online['microseconds_each']:.1f} µs each in a batch, {online['single_query_microseconds']:.0f} µs alone, "
            f"{online['faster_than_full']:.0f} times faster than full solves "
            f"({1e3 * facts['full_solves']['each']:.1f} ms each)",
        ),
        (
            "time per query by number of nodes",
            ", ".join(f"{g['n_nodes']}: {g['microseconds_each']:.1f} µs" for g in facts["growth"]),
        ),
        (
            "adaptive to a bound of 1e-5",
            f"{adaptive['n_solves']} full solves and {adaptive['n_factorizations']} factorisations for the constants in "
            f"{adaptive['seconds']:.0f} s; bound {adaptive['certified']:.1e} ({100 * adaptive['rigorous']:.0f} % rigorous), "
            f"error {both(adaptive['error'])}",
        ),
    ]
    return rows
