"""The paper's first problem against an independent finite-element solution."""

import numpy as np
import pytest
from scipy.sparse.linalg import eigs

import parasol as ps
from finite_elements import reference, rings_for, solve_helmholtz, star_mesh
from parasol.pde.discretize import discretize_with

PARAMETERS = [(0.1, 2.0), (0.927, 1.697), (4.0, 2.0)]


def relative(values, exact):
    return np.linalg.norm(values - exact) / np.linalg.norm(exact)


@pytest.fixture(scope="module")
def problem():
    return ps.load_problem("helmholtz")


@pytest.mark.parametrize("count", [1000])  # benchmarks/accuracy.py has more
@pytest.mark.slow
def test_our_default_beats_quadratic_elements_with_as_many_unknowns(problem, count):
    mesh = star_mesh(n_rings=rings_for(count))
    models = [discretize_with(problem, ps.Settings(n_nodes=count), rng=seed) for seed in range(3)]
    assert count <= mesh.n_quadratic
    for mu in PARAMETERS:
        exact, elements = reference(*mu), solve_helmholtz(*mu, mesh)
        ours = [relative(model.solve(mu).values, exact.evaluate(model.nodes.points)) for model in models]
        # at their own nodes, where quadratic elements are at their best
        theirs = relative(elements.values, exact.evaluate(elements.nodes))
        assert np.exp(np.mean(np.log(ours))) <= theirs


@pytest.mark.slow
def test_the_error_of_the_paper_s_settings_is_what_we_say(problem):
    model = discretize_with(problem, problem.settings["paper"])
    errors = [relative(model.solve(mu).values, reference(*mu).evaluate(model.nodes.points)) for mu in PARAMETERS]
    assert 1e-3 < errors[0] < 3e-2
    assert 3e-4 < errors[1] < 6e-3
    assert 1e-3 < errors[2] < 1e-2


@pytest.mark.parametrize(("a", "lowest"), [(1.0, 10.285537), (0.1, 4.81097)])
def test_the_lowest_eigenvalue_is_that_of_finite_elements(problem, a, lowest):
    # far from the parameters' range of k, 0 to 2: the operator is nowhere singular
    model = discretize_with(problem, ps.Settings(n_nodes=4000))
    inner = np.arange(model.nodes.n_interior)
    matrix = model.operator([a, 0.0])[inner][:, inner].tocsc()
    found = eigs(matrix, k=1, sigma=0.9 * lowest, return_eigenvectors=False)[0]
    assert abs(found.imag) < 1e-8
    assert found.real == pytest.approx(lowest, rel=2e-5)
