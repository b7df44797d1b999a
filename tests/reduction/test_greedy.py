"""Greedy sampling: certified where it says so, from few solves."""

import numpy as np
import pytest

import parasol as ps
from parasol.pde.discretize import discretize_with
from parasol.pde.problem import Settings


@pytest.fixture(scope="module")
def model():
    problem = ps.load_problem("helmholtz")
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=300))


def relative(truth, values):
    return np.linalg.norm(truth.solutions - values, axis=1) / np.linalg.norm(truth.solutions, axis=1)


def test_bounds_below_the_tolerance_at_fresh_parameters_from_few_solves(model):
    found = ps.greedy(model, tolerance=1e-4)
    assert found.reached
    assert found.n_solves <= 25
    truth = ps.solve_many(model, ps.sample(model, 100, design="random", scale="linear", rng=11))
    answers = found.reduced.solve(truth.mus)
    assert np.max(answers.bounds.relative) < 1.5e-4  # parameters between the candidates
    assert np.all(relative(truth, answers.values) <= answers.bounds.relative)


def test_solutions_at_the_chosen_parameters_are_exact_and_the_bound_falls(model):
    candidates = ps.sample(model, (12, 6), design="lattice")
    found = ps.greedy(model, candidates, n_modes=14)
    assert found.basis.n_modes == found.n_solves == len(found.history) == 14
    assert np.allclose(found.basis.modes.T @ found.basis.modes, np.eye(14), atol=1e-13)
    truth = ps.solve_many(model, found.mus)
    assert np.max(relative(truth, found.reduced.solve(found.mus).values)) < 1e-11
    assert found.history[4] > 100 * found.history[13]
    assert len({tuple(mu) for mu in found.mus}) == 14


@pytest.mark.slow
def test_bare_residual_is_the_classical_method(model):
    """Worse than the weighted one, but a sound reduced basis method all the same."""
    candidates = ps.sample(model, (16, 8), design="lattice")
    truth = ps.solve_many(model, ps.sample(model, 40, design="random", rng=2))
    errors = {
        weighting: np.mean(
            relative(
                truth, ps.greedy(model, candidates, n_modes=12, weighting=weighting).reduced.solve(truth.mus).values
            )
        )
        for weighting in ("none", "solve")
    }
    assert errors["solve"] < errors["none"] < 5e-3


def test_span_exhausted_ends_the_search():
    """Two affine terms in the load only: the solutions span two dimensions."""
    x, y = ps.coordinates("x y")
    u = ps.unknown("u", x, y)
    (a,) = ps.parameters(a=(1.0, 2.0))
    problem = ps.Problem(ps.Disc(), ps.Eq(-ps.laplacian(u), 1 + a * x), ps.Dirichlet(0))
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=150))
    found = ps.greedy(model, n_modes=6)
    assert found.n_solves == 2
    assert found.history[-1] < 1e-10


def test_a_zero_solution_at_a_corner_does_not_end_the_search():
    x, y = ps.coordinates("x y")
    u = ps.unknown("u", x, y)
    f, a = ps.parameters(f=(0.0, 1.0), a=(0.1, 4.0))
    problem = ps.Problem(ps.Box((0, 0), (1, 1)), ps.Eq(-u.diff(x, 2) - a * u.diff(y, 2), f * (1 + x)), ps.Dirichlet(0))
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=200))
    found = ps.greedy(model, tolerance=1e-4)
    assert found.reached
    assert found.n_solves > 3


def test_a_tolerance_out_of_reach_is_told(model):
    with pytest.warns(ps.ParasolWarning, match="above the tolerance"):
        assert not ps.greedy(model, tolerance=1e-6, max_solves=3).reached


def test_ghost_nodes_ride_along():
    model = discretize_with(ps.load_problem("cooled-pipe"), Settings(n_nodes=250))
    found = ps.greedy(model, tolerance=1e-6)
    truth = ps.solve_many(model, ps.sample(model, 10, design="random", rng=3))
    assert found.reached
    assert np.max(relative(truth, found.reduced.solve(truth.mus).values)) < 1e-6


def test_mistakes_are_told(model):
    with pytest.raises(ps.ParasolError, match="either tolerance or n_modes"):
        ps.greedy(model)
    with pytest.raises(ps.ParasolError, match="outside its range"):
        ps.greedy(model, [[50.0, 1.0]], n_modes=2)
    with pytest.raises(ps.ParasolError, match="candidates is empty"):
        ps.greedy(model, np.empty((0, 2)), n_modes=2)
    with pytest.raises(ps.ParasolError, match="weights has shape"):
        ps.greedy(model, n_modes=2, weights=np.ones(3))


def test_how_much_of_a_search_is_done_is_a_number_for_every_bound():
    from parasol.reduction.greedy import _fraction

    assert _fraction([1.0, 0.0], 1e-2, 2, 10) == 1.0
    assert _fraction([1.0, 0.1], 1e-2, 2, 10) == pytest.approx(0.5)
    assert _fraction([5.0, 3.0], 1.0, 2, 10) == pytest.approx(0.2)
    assert _fraction([np.inf, 1.0], 1e-2, 2, 10) == pytest.approx(0.2)
