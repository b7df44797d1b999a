import numpy as np
import pytest
from sympy import Eq, exp, sin

import parasol as ps
from parasol.checks import ParasolError

x, y = ps.coordinates("x y")
t = ps.time()
u = ps.unknown("u", x, y, t)
DISC = ps.Disc()
HEAT = Eq(u.diff(t), ps.laplacian(u))
WAVE = Eq(u.diff(t, 2), ps.laplacian(u))


@pytest.mark.parametrize(
    ("equation", "initial", "message"),
    [
        (HEAT, None, "initial state of u is missing. Give initial=..., as a state"),
        (HEAT, (1, 0), "2 part"),
        (WAVE, 1, r"order 2 in time needs \(state, velocity\)"),
        (HEAT, t, "depends on more than coordinates"),
        (HEAT, "x", "neither a finite number nor an expression"),
        (Eq(ps.laplacian(u), 1), 1, "no time derivative"),
        (Eq(u.diff(t, 3), u), 1, "order 3"),
        (Eq(u * u.diff(t), ps.laplacian(u)), 1, "nonlinear in a time derivative"),
        (Eq((1 + t) * u.diff(t), ps.laplacian(u)), 1, "depends on time"),
    ],
)
def test_evolutions_that_are_refused_when_declared(equation, initial, message):
    with pytest.raises(ParasolError, match=message):
        ps.Problem(DISC, equation, ps.Dirichlet(0), initial=initial, times=[0, 1])


def test_initial_states_are_for_evolutions():
    v = ps.unknown("v", x, y)
    with pytest.raises(ParasolError, match="problems in time"):
        ps.Problem(DISC, Eq(ps.laplacian(v), 1), ps.Dirichlet(0), initial=1)
    with pytest.raises(ParasolError, match="condition on 'boundary' has derivatives"):
        ps.Problem(DISC, HEAT, Eq(u.diff(t), 0), initial=1)


@pytest.fixture(scope="module")
def cooling():
    problem = ps.Problem(DISC, HEAT, ps.Dirichlet(0), initial=1 - x**2 - y**2, times=np.linspace(0, 0.2, 5))
    return ps.discretize(problem, ps.scatter(DISC, n_nodes=200), degree=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"times": [0, 0.2, 0.1]}, "increas"),
        ({"times": [0.0]}, "time"),
        ({"step": -0.1}, "step"),
        ({"integrator": "euler"}, "euler"),
        ({"integrator": "averaged", "step": 0.1}, "averaged"),
    ],
)
def test_bad_ways_to_integrate(cooling, options, message):
    with pytest.raises(ParasolError, match=message):
        cooling.solve(**options)


def test_the_times_must_come_from_somewhere():
    problem = ps.Problem(DISC, HEAT, ps.Dirichlet(0), initial=1)
    with pytest.raises(ParasolError, match="times to store are missing"):
        ps.discretize(problem, ps.scatter(DISC, n_nodes=200), degree=3).solve()


def test_one_flat_vector_and_moments_in_between(cooling):
    evolution = cooling.solve()
    assert evolution.values.shape == (5, 200)
    assert evolution.flat.shape == (1000,)
    np.testing.assert_array_equal(evolution.at(0.1).values, evolution.values[2])
    fine = cooling.solve(times=[0.0, 0.075, 0.1])
    np.testing.assert_allclose(evolution.at(0.075).values, fine.values[1], atol=2e-3)
    with pytest.raises(ParasolError, match="outside the stored times"):
        evolution.at(1.0)
    assert "5 times" in repr(evolution)


def test_a_system_in_time_conserves_what_it_should():
    a, b = ps.unknowns("a b", x, y, t)
    (rate,) = ps.parameters(rate=(0.1, 5.0))
    problem = ps.Problem(
        ps.Box((0, 0), (1, 1), periodic="xy"),
        [Eq(a.diff(t), 0.1 * ps.laplacian(a) - rate * a * b), Eq(b.diff(t), 0.1 * ps.laplacian(b) + rate * a * b)],
        initial={"a": 1, "b": 0.1},
        times=np.linspace(0, 2, 5),
    )
    evolution = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=150), degree=3).solve([2.0], tolerance=1e-7)
    fields = evolution.fields
    np.testing.assert_allclose(fields["a"] + fields["b"], 1.1, atol=1e-6)
    logistic = 1.1 / (1 + 10 * np.exp(-2.0 * 1.1 * evolution.times))
    np.testing.assert_allclose(fields["b"].mean(axis=1), logistic, atol=1e-5)


def test_gray_scott_runs_and_stays_between_its_bounds():
    problem = ps.load_problem("gray-scott")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=600))
    evolution = model.solve([0.04, 0.06], times=[0.0, 50.0, 100.0])
    assert evolution.values.shape == (3, 1200)
    assert set(evolution.fields) == {"u", "v"}
    assert evolution.values.min() > -0.05
    assert evolution.values.max() < 1.05
    assert evolution.fields["v"][-1].max() > 0.05  # the reaction has not died


def test_boundary_data_may_move():
    exact = exp(-t) * sin(x + y)
    problem = ps.Problem(
        DISC,
        Eq(u.diff(t), ps.laplacian(u) + exact),
        ps.Dirichlet(exact),
        initial=exact.subs(t, 0),
        times=[0.0, 0.5, 1.0],
        exact=exact,
    )
    assert ps.discretize(problem, ps.scatter(DISC, n_nodes=300)).solve().error < 1e-5
