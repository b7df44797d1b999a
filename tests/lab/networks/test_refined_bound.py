"""Proposition D: what is built lies below its bound, and the tolerances of its proof leave what they should."""

from itertools import product
from math import log2

import numpy as np
import pytest

import parasol as ps
from parasol_lab.theorem.construction.plan import Design, Plan
from parasol_lab.theorem.construction.stability import Stability
from parasol_lab.theorem.construction.system import System
from parasol_lab.theorem.networks.inverse import inverse_size
from parasol_lab.theorem.networks.refined_bound import coarse_inverse_bound, refined_bound, refinements_needed
from parasol_lab.theorem.networks.schedule import Schedule, doublings, trace


@pytest.mark.parametrize("n", [1, 2, 3, 17])
def test_coarse_inverses_lie_below_their_bound(n):
    for delta in (0.99, 0.75, 0.6, 0.3, 0.1, 1e-2, 1e-3, 1e-6):
        counted = inverse_size(n, delta, 0.5, symmetric=True, contraction=True)
        bound = coarse_inverse_bound(n, delta)
        assert counted.depth <= bound.depth
        assert counted.n_weights <= bound.n_weights
        assert delta > 0.05 or bound.n_weights <= 4 * counted.n_weights


@pytest.mark.parametrize("delta", [0.6, 0.3, 0.1, 1e-2, 1e-4, 1e-6])
def test_the_levels_of_the_proof_leave_a_half(delta):
    """All squares to δ^2.25 / 64 and all products to δ^1.25 / (33 (l − 1)), in the recursions that the program uses."""
    for n in (1, 4, 30):
        steps = doublings(delta, 60, symmetric=True)
        factors = max(1, next(k for k, step in enumerate(steps) if step.a <= 0.25))
        assert factors < 1.6 - log2(delta) / 2
        levels = log2(n) - 1.125 * log2(delta) + log2(factors) / 2 + 3.2
        schedule = Schedule(n, delta, *[(int(np.floor(levels)),) * (factors - 1)] * 2, symmetric=True)
        found = trace(schedule)
        assert found.contraction <= 0.5
        assert all(z <= 1 for z in found.squares)
        assert all(z <= 1 / delta + 1 / 8 for z in found.lefts)


def plan(d, p, accuracy, kappa, seed=0):
    """A plan for a system with d modes and p parameters, with constants that only have to be consistent."""
    rng = np.random.default_rng(seed)
    space = ps.pde.ParameterSpace(ps.parameters(**{name: (0.5, 2.0) for name in "abc"[:p]}))
    operators, loads = rng.normal(size=(1 + p, 2 * d, d)), rng.normal(size=(1 + p, 2 * d))
    system = System(np.arange(p), (), operators, np.arange(p), loads, np.eye(d), space, p, "")
    return Plan(system, Stability(1.0, 1 / kappa, 1.0, 1 / kappa, (), 1.0, 1), accuracy, Design())


@pytest.mark.parametrize(("d", "p"), [(1, 1), (2, 3), (6, 2)])
@pytest.mark.parametrize("kappa", [1.5, 40.0])
def test_refined_networks_lie_below_their_bound(d, p, kappa):
    for accuracy in (0.2, 1e-3, 1e-9):
        planned = plan(d, p, accuracy, kappa)
        chain = planned.chain_with(refinements_needed(planned.ratio))
        assert chain.inverse == 0.5
        counted = planned.count(chain)
        given = dict(zip(("remainder", "right"), planned.normal_sizes, strict=True))
        bound = refined_bound(d, chain.delta, planned.ratio, **given)
        assert planned.size.n_weights <= counted.n_weights <= bound.n_weights <= 3 * counted.n_weights
        assert counted.depth <= bound.depth
        assert len(planned.chain.refinements) <= refinements_needed(planned.ratio)


def test_the_chain_asks_for_no_more_than_the_proof_says():
    for accuracy, kappa in product((0.2, 1e-4, 1e-10), (1.2, 30.0, 1e3)):
        planned = plan(2, 1, accuracy, kappa)
        count = refinements_needed(planned.ratio)
        chain, largest = planned.chain_with(count), planned.ratio * accuracy
        noises = [chain.final, *[2 * step.update for step in chain.refinements]]
        for k, noise in enumerate(noises):
            assert accuracy * 2.0 ** (count - k) / (8 * (count + 1)) <= noise * (1 + 1e-12)
            assert noise <= 0.75 * largest * 2.0**-k / (count + 1)
        for k, step in enumerate(chain.refinements, start=1):
            assert step.image == pytest.approx(noises[k] * chain.delta / 3)
            assert step.vector_bound <= 2.25 * largest
            assert step.residual_bound * chain.relaxation <= 5.25 * largest * 2.0**-k
        assert chain.relaxation * chain.final_bounds[1] <= 2.4 * largest
        assert chain.final_bounds[0] == pytest.approx(1.5 * chain.relaxation / chain.delta)


def test_growth_is_what_proposition_d_says():
    sizes = plan(4, 1, 1e-2, 5.0).normal_sizes
    given = dict(zip(("remainder", "right"), sizes, strict=True))
    digits = np.array([800.0, 900.0, 1000.0])
    weights = [refined_bound(4, 0.1, 2.0**t, **given).n_weights for t in digits]
    assert 1.85 < np.polyfit(np.log(digits), np.log(weights), 1)[0] < 2.05
    modes = np.array([100, 200, 400])
    inverse = [coarse_inverse_bound(int(n), 0.1).n_weights for n in modes]
    assert 3 < np.polyfit(np.log(modes), np.log(inverse), 1)[0] < 3.2
