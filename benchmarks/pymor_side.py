"""pyMOR's part of benchmarks/pymor_block.py and pymor_heat.py, run by the interpreter of its own environment: `python pymor_side.py FOLDER`."""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pymor
from pymor.algorithms.greedy import rb_greedy
from pymor.algorithms.timestepping import ImplicitEulerTimeStepper
from pymor.core.logger import set_log_levels
from pymor.models.basic import InstationaryModel, StationaryModel
from pymor.operators.constructions import LincombOperator, VectorOperator
from pymor.operators.numpy import NumpyMatrixOperator
from pymor.parameters.functionals import ExpressionParameterFunctional, ProjectionParameterFunctional
from pymor.reductors.coercive import CoerciveRBReductor
from pymor.reductors.parabolic import ParabolicRBReductor
from scipy import sparse

TRAINING = 5  # values of each parameter in the training set
HEAT_TRAINING = 10  # the same for the heat equation, with two parameters
N_BATCH = 2000


def cpu(function, times):
    """Mean CPU seconds of a call."""
    function(0)
    start = time.process_time()
    for i in range(times):
        function(i)
    return (time.process_time() - start) / times


def spread(values):
    """Least, median, largest."""
    return [float(np.min(values)), float(np.median(values)), float(np.max(values))]


def greedy(blocks, load, product, **options):
    """The reductor and the result of the greedy search."""
    thetas = [ProjectionParameterFunctional("k", 4, i) for i in range(4)]
    operator = LincombOperator([NumpyMatrixOperator(block) for block in blocks], thetas)
    fom = StationaryModel(operator, VectorOperator(operator.range.from_numpy(load)), products={"h1": product})
    reductor = CoerciveRBReductor(
        fom,
        product=fom.h1_product,
        coercivity_estimator=ExpressionParameterFunctional("min(k)", fom.parameters),
        check_orthonormality=False,
    )
    training = fom.parameters.space(0.1, 1.0).sample_uniformly(TRAINING)
    return reductor, rb_greedy(fom, reductor, training, **options)


def judged(reductor, rom, product, mus, truth):
    """Errors, bounds and times of a reduced model."""
    mus = [rom.parameters.parse({"k": mu}) for mu in mus]
    n, many = len(mus), [mus[i % len(mus)] for i in range(N_BATCH)]
    small = [rom.solve(mu) for mu in mus]

    def energy(v):
        return np.sqrt(np.einsum("ij,ij->i", v, (product.matrix @ v.T).T))

    def bound(i, c):
        return float(rom.error_estimator.estimate_error(c, mus[i % n], rom)[0])

    gap = np.hstack([reductor.reconstruct(c).to_numpy() for c in small]).T - truth
    bounds = np.array([bound(i, c) for i, c in enumerate(small)])
    return {
        "modes": rom.solution_space.dim,
        "l2": spread(np.linalg.norm(gap, axis=1) / np.linalg.norm(truth, axis=1))[1:],
        "h1": spread(energy(gap) / energy(truth))[1:],
        "ratio": spread(bounds / energy(gap)),
        "proven": 1.0,
        "query": 1e6 * cpu(lambda i: rom.solve(mus[i % n]), 500),
        "lift": 1e6 * cpu(lambda i: reductor.reconstruct(small[i % n]), 500),
        "bound": 1e6 * cpu(lambda i: bound(i, small[i % n]), 500),
        "batch": 1e3 * cpu(lambda _: [rom.solve(mu) for mu in many], 1),
        "batch_bound": 1e3 * cpu(lambda _: [bound(i, rom.solve(mu)) for i, mu in enumerate(many)], 1),
    }


def heat(blocks, mass, rest):
    """The heat equation: implicit Euler, the greedy search with the parabolic bound."""
    aim, steps, truth = float(rest["aim"]), int(rest["steps"]), rest["truth"]
    h1, l2 = (NumpyMatrixOperator(sparse.csc_matrix(a)) for a in (sum(blocks), mass))
    thetas = [ProjectionParameterFunctional("k", len(blocks), i) for i in range(len(blocks))]
    operator = LincombOperator([NumpyMatrixOperator(block) for block in blocks], thetas)
    fom = InstationaryModel(
        1.0,
        operator.source.zeros(1),
        operator,
        VectorOperator(operator.range.from_numpy(rest["load"])),
        mass=l2,
        time_stepper=ImplicitEulerTimeStepper(steps),
        products={"h1": h1, "l2": l2},
    )
    start = time.process_time()
    least = ExpressionParameterFunctional("min(k)", fom.parameters)
    reductor = ParabolicRBReductor(fom, product=fom.h1_product, coercivity_estimator=least)
    training = fom.parameters.space(0.1, 1.0).sample_uniformly(HEAT_TRAINING)
    greedy_data = rb_greedy(fom, reductor, training, rtol=aim, max_extensions=60)
    seconds, rom = time.process_time() - start, greedy_data["rom"]
    mus = [rom.parameters.parse({"k": mu}) for mu in rest["mus"]]
    full = [fom.solve(mu) for mu in mus]
    gaps = [reductor.reconstruct(rom.solve(mu)) - u for mu, u in zip(mus, full, strict=True)]
    own = np.array(
        [np.sqrt(np.sum(g.norm(h1) ** 2) / np.sum(u.norm(h1) ** 2)) for g, u in zip(gaps, full, strict=True)]
    )
    absolute = np.array([np.sqrt(np.sum(g.norm(h1)[1:] ** 2) / steps) for g in gaps])
    bounds = np.array([np.ravel(rom.estimate_error(mu))[-1] for mu in mus])
    every = steps // truth.shape[1]
    stored = np.array([u.to_numpy()[:, every::every].T for u in full])
    return {
        "full": float(np.median(whole_norm(stored - truth, h1.matrix) / whole_norm(truth, h1.matrix))),
        "full_seconds": cpu(lambda i: fom.solve(mus[i % len(mus)]), 5),
        "offline_seconds": seconds,
        "solves": greedy_data["extensions"],
        "modes": rom.solution_space.dim,
        "h1": spread(own)[1:],
        "ratio": spread(bounds / absolute),
        "kind": "proven",
        "query": 1e3 * cpu(lambda i: rom.solve(mus[i % len(mus)]), 20),
        "batch": 1e3 * cpu(lambda _: [rom.solve(mu) for mu in (mus * 200)[:200]], 1),
        "settings": f"pyMOR {pymor.__version__}: rb_greedy, ParabolicRBReductor, implicit Euler with {steps} steps, "
        f"{len(training)} training parameters, rtol {aim:g} of the first bound, at most 60 extensions, defaults otherwise",
    }


def whole_norm(values, matrix):
    """Norms in space and time of (n, n_times, n_values)."""
    return np.sqrt([np.sum(v * (matrix @ v.T).T) for v in values])


def main(folder):
    """Read the matrices, measure, write the results."""
    blocks = [sparse.load_npz(path) for path in sorted(folder.glob("block*.npz"))]
    rest = np.load(folder / "rest.npz")
    if (folder / "mass.npz").exists():
        result = heat(blocks, sparse.load_npz(folder / "mass.npz"), rest)
        (folder / "result.json").write_text(json.dumps(result))
        return
    modes, aim = int(rest["modes"]), float(rest["aim"])
    product = NumpyMatrixOperator(sparse.csc_matrix(sum(blocks)))
    ways = {
        f"pyMOR, greedy to {modes} modes": {"max_extensions": modes},
        f"pyMOR, greedy to {aim:g}": {"rtol": aim},
    }
    results = {}
    for name, options in ways.items():
        start = time.process_time()
        reductor, greedy_data = greedy(blocks, rest["load"], product, **options)
        results[name] = {"offline_seconds": time.process_time() - start, "solves": greedy_data["extensions"]}
        results[name] |= judged(reductor, greedy_data["rom"], product, rest["mus"], rest["truth"])
    results["settings"] = (
        f"pyMOR {pymor.__version__}: rb_greedy, CoerciveRBReductor (residual basis, min-theta), H1 product, "
        f"{TRAINING}^4 = {TRAINING**4} training parameters, rtol {aim:g} of the first bound, defaults otherwise"
    )
    (folder / "result.json").write_text(json.dumps(results))


if __name__ == "__main__":
    set_log_levels({"pymor": "WARN"})
    main(Path(sys.argv[1]))
