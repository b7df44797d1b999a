"""Terms that a polynomial keeps, and what they cost: learned as `learn` does, and with all terms. Processor time of one thread."""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import time
import warnings

import numpy as np

import parasol as ps
from parasol.learning import linear

CASES = (
    ("helmholtz", 1e-3), ("helmholtz", 1e-5), ("graded-material", 1e-3), ("advection-diffusion", 1e-3),
    ("elasticity", 1e-3), ("cooled-pipe", 1e-3), ("heat", 1e-3),
)  # fmt: skip


def seconds(answer, n: int) -> float:
    """Median of 25 measurements of n answers, for one."""
    out = []
    for _ in range(25):
        start = time.process_time()
        for _ in range(n):
            answer()
        out.append((time.process_time() - start) / n)
    return float(np.median(out))


def row(name: str, tolerance: float) -> str:
    """One learned surrogate, measured."""
    surrogate = ps.learn(ps.load_problem(name), tolerance, n_nodes=1000, recipe="polynomial")
    mus = ps.sample(surrogate.solver, 2000, design="random", rng=0)
    coefficients, modes = surrogate.coefficients(mus), np.ascontiguousarray(surrogate.basis.modes.T)
    ratio = seconds(lambda: surrogate(mus).values, 1) / seconds(lambda: coefficients @ modes, 1)
    one = 1e6 * seconds(lambda: surrogate(mus[0]).values, 200)
    return f"{len(surrogate.map.indices)} | {surrogate.facts['learn']['bound']:.3e} | {one:.0f} | {ratio:.1f} |"


def main() -> None:
    """Both in turns."""
    print(
        "| problem, tolerance | largest change, of the bound | terms | bound | one answer, µs | 2000 over the product |"
    )
    print("|---|---|---|---|---|---|")
    usual = linear._UNSEEN
    for name, tolerance in CASES:
        for unseen in (0.0, usual):
            linear._UNSEEN = unseen
            print(f"| {name}, {tolerance:g} | {unseen:g} | {row(name, tolerance)}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
