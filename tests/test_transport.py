"""Transport without diffusion on scattered nodes: unstable alone, stable with hyperviscosity, and it says so."""

import numpy as np
import pytest
from sympy import cos, exp, pi, sin

import parasol as ps

x, y = ps.coordinates("x y")
t = ps.time()
u = ps.unknown("u", x, y, t)
EXACT = exp(sin(2 * pi * (x - t))) * cos(2 * pi * (y - t / 2))


@pytest.fixture(scope="module")
def problem():
    return ps.Problem(
        domain=ps.Box((0, 0), (1, 1), periodic="xy"),
        equation=ps.Eq(u.diff(t) + u.diff(x) + u.diff(y) / 2, 0),
        initial=EXACT.subs(t, 0),
        times=np.linspace(0, 2, 3),
        exact=EXACT,
    )


def test_hyperviscosity_stabilises_and_the_error_converges(problem):
    errors = []
    for count in (400, 1600):
        nodes = ps.scatter(problem.domain, n_nodes=count)
        model = ps.discretize(problem, nodes, degree=4, hyperviscosity=0.01)
        assert model.growth([]) < 1e-9
        errors.append(model.solve().error)
    assert errors[1] < 0.3 * errors[0]
    assert errors[1] < 5e-3


def test_growth_is_announced(problem):
    nodes = ps.scatter(problem.domain, n_nodes=400)
    model = ps.discretize(problem, nodes, degree=4)
    with pytest.warns(ps.ParasolWarning, match="modes that grow"):
        model.solve(times=[0.0, 1.5])


def test_hyperviscosity_is_for_evolutions():
    with pytest.raises(ps.ParasolError, match="steady"):
        ps.discretize(ps.load_problem("helmholtz"), hyperviscosity=0.01)


def test_times_may_begin_after_the_initial_state(problem):
    nodes = ps.scatter(problem.domain, n_nodes=400)
    model = ps.discretize(problem, nodes, hyperviscosity=0.01)
    late = model.solve(times=[0.5, 1.0])
    assert late.times.tolist() == [0.5, 1.0]
    assert late.error < 0.05
    with pytest.raises(ps.ParasolError, match="before the initial state"):
        model.solve(times=[-1.0, 1.0])
