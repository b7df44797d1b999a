"""pyMOR's part of benchmarks/pymor_block.py, run by the interpreter of its own environment: `python pymor_side.py FOLDER`."""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pymor
from pymor.algorithms.greedy import rb_greedy
from pymor.core.logger import set_log_levels
from pymor.models.basic import StationaryModel
from pymor.operators.constructions import LincombOperator, VectorOperator
from pymor.operators.numpy import NumpyMatrixOperator
from pymor.parameters.functionals import ExpressionParameterFunctional, ProjectionParameterFunctional
from pymor.reductors.coercive import CoerciveRBReductor
from scipy import sparse

TRAINING = 5  # values of each parameter in the training set
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


def main(folder):
    """Read the matrices, measure, write the results."""
    blocks = [sparse.load_npz(folder / f"block{i}.npz") for i in range(4)]
    rest = np.load(folder / "rest.npz")
    modes, aim = int(rest["modes"]), float(rest["aim"])
    product = NumpyMatrixOperator(sparse.csc_matrix(sum(blocks)))
    ways = {
        f"pyMOR, greedy to {modes} modes": {"max_extensions": modes},
        f"pyMOR, greedy to {aim:g}": {"rtol": aim},
    }
    results = {}
    for name, options in ways.items():
        start = time.process_time()
        reductor, found = greedy(blocks, rest["load"], product, **options)
        results[name] = {"offline_seconds": time.process_time() - start, "solves": found["extensions"]}
        results[name] |= judged(reductor, found["rom"], product, rest["mus"], rest["truth"])
    results["settings"] = (
        f"pyMOR {pymor.__version__}: rb_greedy, CoerciveRBReductor (residual basis, min-theta), H1 product, "
        f"{TRAINING}^4 = {TRAINING**4} training parameters, rtol {aim:g} of the first bound, defaults otherwise"
    )
    (folder / "result.json").write_text(json.dumps(results))


if __name__ == "__main__":
    set_log_levels({"pymor": "WARN"})
    main(Path(sys.argv[1]))
