"""What an answer says of the full solver's own error: against exact solutions, from a file, in microseconds, in total."""

from dataclasses import replace

import numpy as np
import pytest

import parasol as ps

x, y = ps.coordinates("x y")


@pytest.fixture(scope="module")
def learned():
    return ps.learn(ps.load_problem("reaction-layer"), 1e-3, n_nodes=80)


@pytest.fixture(scope="module")
def mus():
    return np.geomspace(1e-3, 1.0, 15)[:, None]


def test_it_follows_the_error_over_the_box(learned, mus):
    answer = learned(mus)
    solutions = [learned.solver.solve(mu) for mu in mus]
    errors = np.array([solution.error for solution in solutions])
    assert np.max(errors) > 1e4 * np.min(errors)  # one number for the box would say nothing
    above = errors > 1e-9
    ratios = answer.discretisation[above] / errors[above]
    assert np.min(ratios) > 1 / 3
    assert np.max(ratios) < 3
    own = np.array([solution.discretisation for solution in solutions])
    assert np.max(np.abs(np.log(answer.discretisation / own))) < np.log(1.5)


def test_it_is_kept_in_a_file_and_files_without_it_load(learned, mus, tmp_path):
    path = ps.save(learned, tmp_path / "a.parasol")
    assert np.allclose(ps.load(path)(mus).discretisation, learned(mus).discretisation, rtol=1e-12)
    without = ps.load(ps.save(replace(learned, discretisation=None), tmp_path / "b.parasol"))
    known = learned.facts["learn"]["discretisation_error"]
    assert np.array_equal(without(mus).discretisation, np.full(len(mus), known))


def test_one_answer_has_one_number_and_a_total(learned):
    answer = learned(nu=0.01)
    assert isinstance(answer.discretisation, float)
    assert answer.total == answer.bound + answer.discretisation
    assert np.isinf(learned([2.0], extrapolate=True).discretisation)


def test_the_report_of_learning_takes_the_largest(learned, mus):
    assert learned.facts["learn"]["discretisation_error"] >= np.max(learned(mus).discretisation) / 1.01


def test_nothing_is_known_of_a_solver_of_one_s_own():
    class Wave:
        parameters = ps.ParameterSpace(ps.parameters(a=(1.0, 3.0)))

        def solve(self, mu):
            return np.sin(mu[0] * np.linspace(0, 2, 30))

    answer = ps.learn(Wave(), 1e-2, recipe="polynomial")([2.0])
    assert answer.discretisation is None
    assert answer.total is None


def test_nonlinear_problems_too():
    surrogate = ps.learn(ps.load_problem("nonlinear-diffusion"), 1e-2, n_nodes=300, recipe="polynomial")
    mus = np.array([[0.5], [2.0], [4.5]])
    errors = np.array([surrogate.solver.solve(mu).error for mu in mus])
    ratios = surrogate(mus).discretisation / errors
    assert np.all((ratios > 1 / 3) & (ratios < 3))
