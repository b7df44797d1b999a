"""A small Helmholtz model that the tests of this folder share."""

import pytest

import parasol as ps


@pytest.fixture(scope="session")
def model():
    problem = ps.load_problem("helmholtz")
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=250))


@pytest.fixture(scope="session")
def reduced(model):
    return ps.reduce(model, ps.pod(ps.solve_many(model, ps.sample(model, 20)), n_modes=8))
