"""The paper's first problem against an independent finite-element solution."""

import numpy as np
import pytest
from finite_elements import reference, rings_for, solve_helmholtz, star_mesh

import parasol as ps
from parasol.pde.discretize import discretize_with

PARAMETERS = [(0.1, 2.0), (0.927, 1.697), (4.0, 2.0)]


def relative(values, exact):
    return np.linalg.norm(values - exact) / np.linalg.norm(exact)


@pytest.fixture(scope="module")
def problem():
    return ps.load_problem("helmholtz")


@pytest.mark.parametrize("count", [1000, 2000])
def test_our_default_beats_quadratic_elements_with_as_many_unknowns(problem, count):
    mesh = star_mesh(n_rings=rings_for(count))
    model = discretize_with(problem, ps.Settings(n_nodes=count))
    assert model.n_nodes <= mesh.n_quadratic + 40
    for mu in PARAMETERS:
        exact = reference(*mu)
        elements = solve_helmholtz(*mu, mesh)
        ours = relative(model.solve(mu).values, exact.evaluate(model.nodes.points))
        # at their own nodes, where quadratic elements are at their best
        assert ours <= relative(elements.values, exact.evaluate(elements.nodes))


def test_the_error_of_the_paper_s_settings_is_what_we_say(problem):
    model = discretize_with(problem, problem.settings["paper"])
    errors = [relative(model.solve(mu).values, reference(*mu).evaluate(model.nodes.points)) for mu in PARAMETERS]
    assert 1e-3 < errors[0] < 3e-2
    assert 3e-4 < errors[1] < 6e-3
    assert 1e-3 < errors[2] < 1e-2
