import warnings
from dataclasses import replace

import numpy as np
import pytest
from sympy import Eq, Rational, cos, diff, exp, log, sin, sqrt

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
    np.testing.assert_allclose(evolution.at(0.075).values, fine.values[1], atol=1e-6)
    assert evolution.at(0.075) is evolution.at(0.075)  # integrated once
    with pytest.raises(ParasolError, match="outside the stored times"):
        evolution.at(1.0)
    assert "5 times" in repr(evolution)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, 1e-4),
        ({"step": 0.02}, 5e-3),
        ({"step": 0.25, "integrator": "esdirk4"}, 5e-2),
        ({"times": [1.0, 2.0, 4.0], "tolerance": 1e-4}, 1e-3),  # the initial state itself is not stored
    ],
)
def test_between_stored_times_the_solution_is_integrated_not_guessed(options, error):
    # far fewer stored times than the solution has periods: no interpolation could see them
    exact = (2 + x / 2 - y) * (2 + cos(9 * t))
    problem = ps.Problem(
        DISC,
        Eq(u.diff(t, 2), ps.laplacian(u) + diff(exact, t, 2)),
        ps.Dirichlet(exact),
        initial=(exact.subs(t, 0), 0),
        times=[0.0, 2.0, 4.0],
        exact=exact,
    )
    evolution = ps.discretize(problem, ps.scatter(DISC, n_nodes=60), degree=2).solve(**options)
    for moment in (evolution.times[0] + 0.013, 3.1):
        found = evolution.at(moment)
        assert found.time == moment
        assert found.error < error


def test_extrapolation_in_time_is_said():
    a = ps.parameters(a=(1.0, 2.0))[0]
    equation = Eq(u.diff(t), a * ps.laplacian(u))
    problem = ps.Problem(DISC, equation, ps.Dirichlet(0), initial=1 - x**2 - y**2, times=[0.0, 0.1])
    model = ps.discretize(problem, ps.scatter(DISC, n_nodes=60), degree=2)
    assert model.solve([2.5], extrapolate=True).extrapolated
    assert not model.solve([2.0]).extrapolated


def test_between_stored_times_with_the_step_of_the_model(cooling):
    model = replace(cooling, step=0.01, integrator="esdirk4")
    for moment in (0.004, 0.075):  # the first is earlier than one step
        np.testing.assert_allclose(model.solve().at(moment).values, cooling.solve().at(moment).values, atol=1e-4)


def test_between_stored_times_where_the_problem_has_none(cooling):
    problem = ps.Problem(DISC, HEAT, ps.Dirichlet(0), initial=1 - x**2 - y**2)
    model = ps.discretize(problem, cooling.nodes, degree=3)
    found = model.solve(times=[0.3, 0.5])  # the first of them is the start
    np.testing.assert_allclose(found.at(0.4).values, cooling.solve().at(0.1).values, atol=1e-6)


def test_values_that_were_not_integrated_are_known_at_stored_times_only(cooling):
    evolution = replace(cooling.solve(), options=None)
    np.testing.assert_array_equal(evolution.at(0.1).values, evolution.values[2])
    with pytest.raises(ParasolError, match=r"t=0.075 is not among the stored times \(the nearest is 0.(05|1)\)"):
        evolution.at(0.075)


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        ({"a": sin(x) / x, "b": 1}, r"initial state of a is nan at \(0, 0.125\) and 6 other nodes"),
        ({"a": 1, "b": 1 / x}, r"initial state of b is (inf|zoo|nan) at \(0"),
        ({"a": 1, "b": log(x - Rational(1, 2))}, "initial state of b is nan"),
    ],
)
def test_initial_values_that_are_not_numbers_are_refused(initial, message):
    a, b = ps.unknowns("a b", x, y, t)
    box = ps.Box((-0.5, 0), (0.5, 1))
    problem = ps.Problem(
        box,
        [Eq(a.diff(t), ps.laplacian(a)), Eq(b.diff(t), ps.laplacian(b))],
        [ps.Dirichlet(1), ps.Dirichlet(1)],
        initial=initial,
        times=[0, 1],
    )
    with pytest.raises(ParasolError, match=message), np.errstate(all="ignore"):
        ps.discretize(problem, ps.lattice(box, 9), degree=2).solve()


def test_a_velocity_that_is_not_a_number_is_refused():
    problem = ps.Problem(DISC, WAVE, ps.Dirichlet(0), initial=(0, sqrt(x)), times=[0, 1])
    with pytest.raises(ParasolError, match="initial velocity of u is nan"), np.errstate(all="ignore"):
        ps.discretize(problem, ps.scatter(DISC, n_nodes=100), degree=2).solve()


def test_initial_values_may_be_undefined_at_ghosts_and_where_conditions_give_them():
    # √(1.01 − r²)⁵ has no value at ghosts, z² log z none at the end with a given value
    initial = sqrt(Rational(101, 100) - x**2 - y**2) ** 5
    problem = ps.Problem(DISC, HEAT, ps.Neumann(0), initial=initial, times=[0.0, 0.1])
    with np.errstate(all="ignore"):
        found = ps.discretize(problem, ps.scatter(DISC, n_nodes=150), degree=3).solve()
    assert np.all(np.isfinite(found.values))
    z = ps.coordinates("z")[0]
    w = ps.unknown("w", z, t)
    line = ps.Box((0,), (1,))
    problem = ps.Problem(line, Eq(w.diff(t), w.diff(z, 2)), ps.Dirichlet(0), initial=z**2 * log(z), times=[0.0, 0.1])
    with np.errstate(all="ignore"):
        found = ps.discretize(problem, ps.scatter(line, n_nodes=40)).solve()
    assert np.max(np.abs(found.values[0, -2:])) < 1e-12


def test_growth_belongs_to_its_parameter():
    (rate,) = ps.parameters(rate=(0.0, 10.0))
    problem = ps.Problem(
        DISC, Eq(u.diff(t), ps.laplacian(u) + rate * u), ps.Dirichlet(0), initial=1 - x**2 - y**2, times=[0.0, 1.0]
    )
    model = ps.discretize(problem, ps.scatter(DISC, n_nodes=100), degree=3)
    low, high = model.growth([6.0]), model.growth([9.0])
    assert abs(high - low - 3) < 1e-6
    assert model.growth([6.0]) == low
    assert model.typical_growth == model.growth([10.0])  # the middle would not show it
    # which parameter was asked for first does not decide on the warning
    for order in (1, -1):
        model = ps.discretize(problem, model.nodes, degree=3)
        for mu, warned in ((9.5, True), (6.0, False))[::order]:
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                model.solve([mu], times=[0.0, 1.0])
            assert bool(seen) == warned, mu


def test_who_solves_once_pays_for_one_spectrum(monkeypatch):
    asked = []
    growth = ps.pde.Model.growth
    monkeypatch.setattr(ps.pde.Model, "growth", lambda self, mu: asked.append(mu[0]) or growth(self, mu))
    (rate,) = ps.parameters(rate=(0.0, 1.0))
    problem = ps.Problem(
        DISC, Eq(u.diff(t), ps.laplacian(u) + rate * u), ps.Dirichlet(0), initial=1 - x**2 - y**2, times=[0.0, 0.1]
    )
    model = ps.discretize(problem, ps.scatter(DISC, n_nodes=60), degree=3)
    for mu in (0.3, 0.3, 0.8, 0.6):
        model.solve([mu])
    assert asked == [0.3, 0.5, 0.0, 1.0]


def test_an_end_of_the_ranges_without_a_derivative_in_time_is_no_reason_to_refuse_others():
    (lag,) = ps.parameters(lag=(0.0, 1.0))
    exact = (2 + x - y / 2) * exp(-t)
    problem = ps.Problem(
        DISC,
        Eq(lag * u.diff(t) - ps.laplacian(u), lag * diff(exact, t)),
        ps.Dirichlet(exact),
        initial=exact.subs(t, 0),
        times=[0.0, 1.0],
        exact=exact,
    )
    assert ps.discretize(problem, ps.scatter(DISC, n_nodes=80), degree=2).solve([0.5]).error < 1e-4


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
