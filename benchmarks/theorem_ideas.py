"""What each idea saves in the network by inverses: weights with all of them, and with one left out or replaced.

python benchmarks/theorem_ideas.py --json docs/results/theorem-ideas.json

Newton's iteration X ← X + X (I − C X) after a coarse inverse is counted here and not built, because it saves nothing beside
refinements of the vector. Its residual obeys r ← r² + ‖C‖ (√2 ‖X‖ η₁ + η₂) with η₁, η₂ what the products C X (all entries)
and X (I − C X) (one triangle) are off by; ‖C‖ ≤ 2 − δ, ‖X‖ ≤ (1 + r) / δ. Early steps need few digits.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from itertools import pairwise
from unittest.mock import patch

import numpy as np
from scipy import sparse

import parasol as ps
from parasol.pde import discretize_with
from parasol.report import machine_facts, write_json
from parasol_lab.theorem.construction.network import Counter, normal_equations
from parasol_lab.theorem.construction.plan import Design, Plan
from parasol_lab.theorem.construction.stability import stability
from parasol_lab.theorem.construction.system import reduced_system
from parasol_lab.theorem.networks import schedule
from parasol_lab.theorem.networks.assembly import COUNT
from parasol_lab.theorem.networks.inverse import inverse_size
from parasol_lab.theorem.networks.products import Wiring, levels_needed, packed
from parasol_lab.theorem.networks.sizes import Size, affine_size
from theorem import problems

ACCURACIES = (1e-1, 1e-2, 1e-4, 1e-6)
MOST_NEWTON, MOST_REFINEMENTS = 4, 4


def newton_size(n: int, delta: float, rate: float, steps: int) -> Size:
    """Size of an inverse of symmetric matrices with ‖I − X (I − A)‖ ≤ rate: a coarse one, then so many steps of Newton's."""
    rates = [rate]
    for _ in range(steps):
        rates.insert(0, math.sqrt(rates[0] / 2))
    half = n * (n + 1) // 2
    first = inverse_size(n, delta, rates[0], symmetric=True, contraction=True)
    net = COUNT.beside(first, COUNT.identity(half, 1))
    i, t, j = (index.ravel() for index in np.indices((n, n, n)))
    full = sparse.csr_array((np.ones(n**3), (i + j * n, np.arange(n**3))))
    above = i <= j
    upper = sparse.csr_array((np.ones(above.sum()), (packed(i, j)[above], np.arange(above.sum()))))
    image = Wiring(2 * half, packed(i, t), half + packed(t, j), full)
    update = Wiring(half + n * n, packed(i, t)[above], (half + t + j * n)[above], upper)
    for before, after in pairwise(rates):
        last = after is rates[-1]
        norm = (1 + before) / delta
        of_image, of_update = after / (4 * (2 - delta) * math.sqrt(2) * norm), after / (4 * (2 - delta))
        kept = half if last else 2 * half
        products = COUNT.products(image, levels_needed(n * n * norm, of_image), 1.0, norm)
        net = COUNT.join(COUNT.beside(COUNT.identity(2 * half, 1), products), net)
        net = COUNT.join(affine_size(kept + n * n, kept + 2 * n * n, n), net)  # I − X + A X
        residual = before + of_image
        products = COUNT.products(update, levels_needed(n * n * norm * residual, of_update), norm, residual)
        net = COUNT.join(COUNT.beside(COUNT.identity(kept, 1), products), net)
        net = COUNT.join(affine_size(kept, kept + half), net)  # X + X R
    return net


class NewtonCounter(Counter):
    """Counts networks whose inverse ends with steps of Newton's iteration."""

    def __init__(self, steps: int):
        self.steps = steps

    def inverse(self, n, delta, accuracy, powers, *, symmetric, contraction) -> Size:
        """Without refinements the accuracy is that of the inverse, which `delta` times it is enough for."""
        return newton_size(n, delta, accuracy if contraction else delta * accuracy, self.steps)


def with_newton(planned: Plan, refinements: tuple[int, ...]) -> dict:
    """The smallest count with one to four steps of Newton's, and so many refinements of the vector."""
    best = {"n_weights": math.inf}
    given = None
    for count in refinements:
        chain = planned.chain_with(count)
        for steps in range(1, MOST_NEWTON + 1):
            kit = NewtonCounter(steps)
            given = given or normal_equations(kit, planned.scaled, chain, symmetric=True, direct=True)
            size = planned.assembled(kit, chain, given)
            if size.n_weights < best["n_weights"]:
                best = {"n_weights": size.n_weights, "depth": size.depth, "newton": steps, "refinements": count}
    return best


def counted(planned: Plan) -> dict[str, dict]:
    """Weights with all ideas, and with one left out or replaced."""

    def of(design: Design) -> dict:
        own = replace(planned, design=design)
        chain = own.chain
        return {
            "n_weights": own.size.n_weights,
            "depth": own.size.depth,
            "refinements": len(chain.refinements if chain else ()),
        }

    rows = {
        "all": of(Design()),
        "no refinement of the vector": of(Design(refinements=0)),
        "products of matrices for BᵀB": of(Design(direct=False)),
    }
    exact = schedule.doublings
    schedule.least_levels.cache_clear()
    with patch.object(schedule, "doublings", lambda delta, factors, symmetric: exact(delta, factors, False)):
        rows["A^2k instead of T_2k"] = of(Design())
    schedule.least_levels.cache_clear()
    rows["Newton instead of refinement"] = with_newton(planned, (0,))
    rows["Newton and refinement"] = with_newton(planned, tuple(range(1, MOST_REFINEMENTS + 1)))
    return rows


def table(results: list[dict]) -> str:
    """Markdown: problems and accuracies down, ideas across."""
    names = list(results[0]["ideas"])
    lines = ["| problem, modes | accuracy | " + " | ".join(names) + " |", "|" + "---|" * (2 + len(names))]
    for row in results:
        cells = [f"{row['ideas'][name]['n_weights']:.3g}" for name in names]
        cells[0] = f"**{cells[0]}** ({row['ideas'][names[0]]['refinements']} refinements)"
        lines.append(f"| {row['problem']}, {row['n_modes']} | {row['accuracy']:g} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Count and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="write the counts here")
    given = parser.parse_args()
    results = []
    for name, (problem, settings, n_modes) in problems().items():
        model = discretize_with(problem, settings, rng=0)
        basis = ps.pod(ps.solve_many(model, ps.sample(model, 100, rng=0)), n_modes=n_modes)
        for d in (5, n_modes) if name == "helmholtz" else (n_modes,):
            system = reduced_system(model, basis.truncated(d))
            constants = stability(system)
            for accuracy in ACCURACIES:
                ideas = counted(Plan(system, constants, accuracy, Design()))
                results.append({"problem": name, "n_modes": d, "accuracy": accuracy, "ideas": ideas})
    print(table(results))
    if given.json:
        write_json({"rows": results, "machine": machine_facts()}, given.json)


if __name__ == "__main__":
    main()
