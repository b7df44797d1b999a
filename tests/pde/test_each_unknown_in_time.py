"""Errors in time are held against each unknown's own size, whatever the others' sizes are."""

import warnings

import numpy as np
import pytest
from sympy import Eq, Piecewise, cos, diff, exp, pi, sin

import parasol as ps
from parasol.checks import ParasolError, ParasolWarning

(x,) = ps.coordinates("x")
t = ps.time()
T, c, w = ps.unknowns("T c w", x, t)
LINE = ps.Box((0,), (1,))


def solved(equations, exact, names, *, times=(0.0, 1.0, 2.0), n_nodes=24, conditions=None, **options):
    problem = ps.Problem(
        LINE,
        equations,
        conditions or [ps.Dirichlet(e) for e in exact],
        initial={name: e.subs(t, 0) for name, e in zip(names, exact, strict=True)},
        times=times,
        exact=dict(zip(names, exact, strict=True)),
        unknowns=tuple(u for u in (T, c, w) if str(u.func) in names),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return ps.discretize(problem, ps.scatter(LINE, n_nodes=n_nodes), degree=3).solve(**options)


def errors(evolution):
    out = {}
    for name, found in evolution.fields.items():
        exact = np.array(
            [evolution.model.layout.fields(evolution.model.exact(evolution.mu, s))[name] for s in evolution.times]
        )
        out[name] = np.max(np.abs(found - exact)) / (np.max(np.abs(exact)) or 1.0)
    return out


def hot_and_thin(size, weight=1, **options):
    """T of size 300 that moves slowly and c of any size that moves fast; c's equation times `weight`."""
    hot = (300 + 20 * x**2) * (1 + cos(t) / 10)
    thin = size * (1 + x / 2) * (2 + cos(15 * t))
    equations = [
        Eq(T.diff(t), T.diff(x, 2) + diff(hot, t) - diff(hot, x, 2)),
        Eq(weight * (c.diff(t) - c.diff(x, 2) / 10 + T * c / 300), weight * (diff(thin, t) + hot * thin / 300)),
    ]
    return solved(equations, [hot, thin], ("T", "c"), **options)


def test_a_small_unknown_is_as_accurate_as_a_large_one_and_its_scale_does_not_matter():
    tolerance, found = 1e-4, {}
    for size, weight in ((1.0, 1), (1e8, 1), (1e-10, 1e6)):
        evolution = hot_and_thin(size, weight, tolerance=tolerance, times=(0.0, 1.0))
        found[size, weight] = errors(evolution)
        assert found[size, weight]["c"] < tolerance, (size, found)
        assert found[size, weight]["T"] < tolerance
        assert evolution.n_steps < 200
    for each in found.values():
        assert abs(each["c"] / found[1.0, 1]["c"] - 1) < 0.05, found


@pytest.mark.parametrize("options", [{"step": 0.02}, {"step": 0.02, "integrator": "esdirk4"}])
def test_constant_steps_do_not_see_the_scale_either(options):
    thick, thin = (errors(hot_and_thin(size, **options))["c"] for size in (1.0, 1e-10))
    assert abs(thin / thick - 1) < 1e-3


def test_the_reported_error_is_that_of_the_worst_unknown():
    evolution = hot_and_thin(1e-8, step=0.02)
    assert evolution.error > 0.3 * errors(evolution)["c"] > 1e-4


def test_an_unknown_that_starts_from_zero():
    # w is 0 and at rest at the start, driven through c, which is 0 there too: w = t³/6 (1 + x)
    chain = [1 + x, t * (1 + x), t**3 / 6 * (1 + x)]
    equations = [
        Eq(T.diff(t), T.diff(x, 2)),
        Eq(c.diff(t), c.diff(x, 2) + T),
        Eq(w.diff(t), w.diff(x, 2) + c**2 / (2 * T)),
    ]
    found = solved(equations, chain, ("T", "c", "w"))
    assert max(errors(found).values()) < 1e-5
    assert found.n_steps < 200


@pytest.mark.parametrize("options", [{}, {"step": 0.05}, {"step": 0.05, "integrator": "esdirk4"}])
@pytest.mark.parametrize("nonlinear", [0, 1])
def test_an_unknown_that_is_zero_does_not_stall_the_steps(nonlinear, options):
    # w = 0: T and c are alike but for a factor that rounding sees
    wave = (1 + x / 2) * (2 + cos(3 * t))
    equations = [
        Eq(T.diff(t), T.diff(x, 2) + diff(wave, t)),
        Eq(c.diff(t), c.diff(x, 2) + diff(wave / 3, t)),
        Eq(w.diff(t), w.diff(x, 2) + T - 3 * c + nonlinear * w * T),
    ]
    exact = [wave, wave / 3, 0 * x]
    # a nonlinear condition for w, met by 0
    conditions = [ps.Dirichlet(wave), ps.Dirichlet(wave / 3), Eq(w + nonlinear * w * T, 0)]
    found = solved(equations, exact, ("T", "c", "w"), conditions=conditions, **options)
    assert np.max(np.abs(found.fields["w"])) < 1e-9
    assert max(errors(found).values()) < (1e-5 if not options else 3e-3)
    assert found.n_steps < 200


def test_digits_of_a_decaying_solution_where_asked():
    decay = (2 + x) * exp(-8 * t)
    equations = [Eq(T.diff(t), T.diff(x, 2) - 8 * T)]
    last = [errors_at_end(solved(equations, [decay], ("T",), relative=r)) for r in (False, True)]
    assert last[0] > 1e-4
    assert last[1] < 2e-5
    with pytest.raises(ParasolError, match="relative is for adapted steps"):
        solved(equations, [decay], ("T",), relative=True, step=0.1)


def errors_at_end(evolution):
    exact = evolution.model.exact(evolution.mu, evolution.times[-1])
    return np.max(np.abs(evolution.values[-1] - exact)) / np.max(np.abs(exact))


@pytest.mark.parametrize("options", [{}, {"step": 0.01}, {"step": 1.0, "integrator": "esdirk4"}])
def test_a_load_that_vanishes_at_the_stored_times_is_no_instability(options):
    problem = ps.Problem(
        LINE,
        Eq(T.diff(t) - T.diff(x, 2) / 10, sin(pi * t) * sin(pi * x)),
        ps.Dirichlet(0),
        initial=0,
        times=[0.0, 1.0, 2.0],
    )
    found = ps.discretize(problem, ps.scatter(LINE, n_nodes=40)).solve(**options)
    k = np.pi**2 / 10
    factor = (np.pi + np.pi * np.exp(-k)) / (k**2 + np.pi**2)
    exact = factor * np.sin(np.pi * found.model.nodes.points[:, 0])
    assert np.max(np.abs(found.values[1] - exact)) < (0.05 if options.get("step") == 1.0 else 2e-4)


@pytest.mark.filterwarnings("ignore:the discretised operator")
def test_leaps_of_a_small_unknown_are_seen_and_growth_from_a_trace_is_not_refused():
    def model(rate, damping, trace):
        equations = [
            Eq(T.diff(t), T.diff(x, 2)),
            Eq(c.diff(t), c.diff(x, 2) + rate * c * (1 - c) - damping * c * T / 300),
        ]
        problem = ps.Problem(
            LINE,
            equations,
            {part: [ps.Dirichlet(300 + x), ps.Neumann(0)] for part in LINE.part_names},
            initial={"T": 300 + x, "c": trace},
            times=[0.0, 1.0],
            unknowns=(T, c),
        )
        return ps.discretize(problem, ps.scatter(LINE, n_nodes=40), neumann="one-sided")

    # an explicit term that is too stiff for the steps makes c grow from 1e-10 to 1e6 times that, far below T
    with pytest.raises(ParasolError, match=r"unstable: \|c\| grew to .*e-0.*Use a step smaller than 0.05"):
        model(0, 500, 1e-10).solve(step=0.05)
    # logistic growth from a trace to half its limit
    trace = 1e-9
    logistic = 1 / (1 + (1 / trace - 1) * np.exp(-20))
    for options, error in (({}, 1e-3), ({"step": 0.002}, 2e-2)):
        found = model(20, 0, trace).solve(**options).fields["c"][-1]
        assert np.max(np.abs(found / logistic - 1)) < error


def test_a_source_that_comes_late_does_not_need_the_digits_of_what_was_before():
    # exp(−500) at the start, and steps that follow its growth from there would be too many
    pulse = exp(-20 * (t - 5) ** 2)
    problem = ps.Problem(
        LINE,
        Eq(T.diff(t), T.diff(x, 2) / 10 + pulse * (1 + x)),
        ps.Neumann(0),
        initial=0,
        times=[0.0, 10.0],
    )
    found = ps.discretize(problem, ps.scatter(LINE, n_nodes=40)).solve()
    # the mean of u is the integral of the mean source
    assert abs(found.values[-1].mean() / (1.5 * np.sqrt(np.pi / 20)) - 1) < 1e-3
    assert found.n_steps < 400


@pytest.mark.parametrize("size", [1.0, 1e-9])
def test_nonlinear_conditions_of_a_small_unknown(size):
    # (∂c/∂n)/size + (c/size)³ beside T = 300; constant steps, order 2
    hot = (300 + 20 * x**2) * (1 + cos(t) / 10)
    thin = size * (1 + x / 2) * (2 + cos(3 * t))
    n = ps.normal(x)[0]
    equations = [
        Eq(T.diff(t), T.diff(x, 2) + diff(hot, t) - diff(hot, x, 2)),
        Eq(c.diff(t), c.diff(x, 2) + diff(thin, t)),
    ]
    conditions = [
        ps.Neumann(n * diff(hot, x)),
        Eq(n * c.diff(x) / size + (c / size) ** 3, n * diff(thin, x) / size + (thin / size) ** 3),
    ]
    problem = ps.Problem(
        LINE,
        equations,
        conditions,
        initial={"T": hot.subs(t, 0), "c": thin.subs(t, 0)},
        times=[0.0, 1.0],
        exact={"T": hot, "c": thin},
        unknowns=(T, c),
    )
    model = ps.discretize(problem, ps.scatter(LINE, n_nodes=24), degree=3)
    found = [errors(model.solve(step=h)) for h in (0.05, 0.025)]
    assert 1.7 < np.log2(found[0]["c"] / found[1]["c"]) < 2.4, found
    assert found[1]["c"] < 5e-3
    assert errors(model.solve(step=0.05, integrator="esdirk4"))["c"] < 3e-5


def test_a_small_unknown_that_violates_its_conditions_is_named_by_a_warning():
    problem = ps.Problem(
        LINE,
        [Eq(T.diff(t), T.diff(x, 2)), Eq(c.diff(t), c.diff(x, 2))],
        [ps.Dirichlet(300 + x), ps.Dirichlet(1e-6)],
        initial={"T": 300 + x, "c": 2e-6},
        times=[0.0, 1.0],
        unknowns=(T, c),
    )
    model = ps.discretize(problem, ps.scatter(LINE, n_nodes=24), degree=3)
    with pytest.warns(ParasolWarning, match="violates the boundary conditions at t=0 by 5.0e-01"):
        found = model.solve(step=0.1)
    assert np.max(np.abs(found.fields["c"][-1] / 1e-6 - 1)) < 1e-3


@pytest.mark.parametrize("width", [3e-3, 3e-4])
def test_a_short_pulse_is_not_stepped_over(width):
    """∫ 100 exp(−((t − ½)/w)²) dt = 100 w √π is added to u everywhere; steps adapted to what is seen would be a tenth long."""
    nodes, slopes = ps.scatter(LINE, n_nodes=30), {"left": ps.Neumann(-1), "right": ps.Neumann(1)}
    pulse = 100 * exp(-(((t - 0.5) / width) ** 2))
    problem = ps.Problem(LINE, Eq(T.diff(t) - T.diff(x, 2) / 5, pulse), slopes, initial=x, times=[0, 1])
    last = ps.discretize(problem, nodes).solve().values[-1]
    assert np.allclose(last, nodes.points[:, 0] + 100 * width * np.sqrt(np.pi), rtol=0, atol=2e-4 * 100 * width)


@pytest.mark.parametrize("before", [0, 1])
def test_a_source_may_be_switched_on_and_off(before):
    """u' = 1 from 0.35 to 0.7 while slopes vanish: u = before + 0.35 in the end, from rest or not."""
    nodes = ps.scatter(LINE, n_nodes=20)
    source = Piecewise((1, (t > 0.35) & (t < 0.7)), (0, True))
    problem = ps.Problem(LINE, Eq(T.diff(t) - T.diff(x, 2), source), ps.Neumann(0), initial=before, times=[0, 0.5, 1])
    found = ps.discretize(problem, nodes).solve().values
    assert np.allclose(found, np.array([0, 0.15, 0.35])[:, None] + before, rtol=0, atol=1e-4)
