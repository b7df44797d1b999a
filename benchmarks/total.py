"""The thermal block learned with `total=True`, against elements that share nothing with ours.

    python benchmarks/total.py [--n 50] [--tolerance 1e-3]

Four materials in [0.1, 10], on logarithmic scales, meet in the middle of the unit square. The tolerance is for the error
against the equation's solution: surrogate and discretisation together. References are of high degree on meshes graded to
the singular points (benchmarks/references.py); the error is measured at 1000 random points.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import replace

import numpy as np

import parasol as ps
import references
import rough


def main() -> None:
    """Learn it, measure it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=50)
    parser.add_argument("--tolerance", type=float, default=1e-3)
    asked = parser.parse_args()
    names = ("a", "b", "c", "d")
    whole = rough.block((1.0, 1.0, 1.0, 1.0)).problem
    materials = dict(zip(names, ps.parameters(**{name: (0.1, 10.0, "log") for name in names}), strict=True))
    u = whole.unknowns[0]
    problem = replace(whole, equation=ps.Eq(-ps.divergence(ps.by_region(**materials) * ps.gradient(u)), 1))
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)
        surrogate = ps.learn(problem, asked.tolerance, total=True)
    seconds, account = time.process_time() - start, surrogate.facts["learn"]
    print(
        f"met {account['met']}, {account['solves']} solves, {account['n_nodes']} nodes, {account['map']}, bound {account['bound']:.1e}, "
        f"discretisation about {account['discretisation_error']:.1e}, {seconds:.0f} s of CPU time"
    )
    points = np.random.default_rng(5).random((1000, 2))
    mus = ps.sample(surrogate.solver, asked.n, design="random", rng=11)
    errors, own = [], []
    for mu in mus:
        reference = references.thermal_block(mu)
        exact = reference(points)[0]
        errors.append(np.linalg.norm(surrogate(mu).at(points) - exact) / np.linalg.norm(exact))
        own.append(reference.error)
    print(
        f"against {asked.n} references, themselves off by {max(own):.1e} at most: error {np.median(errors):.1e} in the median, {max(errors):.1e} at most"
    )


if __name__ == "__main__":
    main()
