"""A flux given by pieces makes regions of the domain, with the values that the pieces have there."""

import dataclasses
import pickle

import numpy as np
import pytest
import sympy
from sympy import Abs, Eq, Heaviside, Piecewise, exp, floor, sign

import parasol as ps
from parasol.errors import InputError
from parasol.expressions import as_function
from parasol.pde.regions import in_region

x, y = ps.coordinates("x y")
t = ps.time()
u = ps.unknown("u", x, y)
m, n = ps.parameters(m=(0.1, 10.0, "log"), n=(1.0, 2.0))
SQUARE = ps.Box((0, 0), (1, 1))


def step(low, high, condition=x < 0.4):
    return Piecewise((low, condition), (high, True))


def problem(k, domain=SQUARE, source=1, **options):
    return ps.Problem(domain, Eq(-ps.divergence(k * ps.gradient(u)), source), ps.Dirichlet(0), **options)


def disc(at, value):
    return step(value, 1, (x - at[0]) ** 2 + (y - at[1]) ** 2 < 0.01)


PIECES = {
    "step": (step(m, 1), 2),
    "inclusion": (step(m, 1, x**2 + y**2 < 0.25), 2),
    "block": (Piecewise((m, (x < 0.5) & (y < 0.5)), (2, x < 0.5), (3, y < 0.5), (n, True)), 4),
    "either": (step(m, 1, (x < 0.2) | (x > 0.8)), 2),
    "Heaviside": (1 + m * Heaviside(x - 0.3), 2),
    "sign in a function": (exp(sign(x + y - 1)), 2),
    "two cuts": (step(m, 1) * step(2, 1, y < 0.5), 4),
    "two cuts along one axis": (step(m, 1) * step(2, 1, x < 0.7), 3),
    "three discs": (disc((0.3, 0.3), m) * disc((0.7, 0.7), n) * disc((0.3, 0.7), 5), 4),
    "one in the other": (Piecewise((step(m, 7, y < 0.5), x < 0.5), (1, True)), 4),
    "kink": (step(1 + x, 1.8 - x), 2),
    "beyond the domain": (Piecewise((9, x < -5), (m, x < 0.5), (1, x < 3), (n, True)), 2),
    "thin": (Piecewise((1, x < 0.5), (m, x < 0.5001), (2, True)), 3),
}


@pytest.mark.parametrize("name", PIECES)
def test_each_region_has_the_value_of_its_piece(name):
    k, count = PIECES[name]
    read = problem(k)
    assert len(read.region_names) == count
    points = np.random.default_rng(0).random((500, 2))
    where = read.domain.region_of(points)
    wanted = as_function(k, [x, y, m, n])(*points.T, 3.0, 1.5)
    flux = dict(read.balances[0].flux)[x]
    for region, name in enumerate(read.region_names):
        here = points[where == region]
        found = in_region(flux, name).subs(u, x).doit()
        values = as_function(found, [x, y, m, n])(*here.T, 3.0, 1.5)
        np.testing.assert_allclose(values, wanted[where == region], rtol=1e-14)
    # what has its regions is declared again as it is
    again = dataclasses.replace(read, name="again")
    assert again.domain is read.domain
    assert again.forms == read.forms == pickle.loads(pickle.dumps(read)).forms


def test_sources_with_the_same_pieces_follow_them():
    read = problem(step(m, 1), source=step(3, 0) + step(1, 2, y < 0.5))
    assert read.region_names == ("x < 0.4", "otherwise")
    first, second = (sum(t.coefficient for t in read.forms_in(region)[0].source) for region in (0, 1))
    assert first - second == 3


def test_a_system_shares_its_regions():
    v = ps.unknown("v", x, y)
    k = step(m, 1)
    equations = [Eq(-ps.divergence(k * ps.gradient(w)), 1) for w in (u, v)]
    read = ps.Problem(SQUARE.named(west="x < 0.01"), equations, [ps.Dirichlet(0)] * 2)
    assert len(read.forms) == 4
    assert "west" in read.domain.part_names


def test_pieces_that_need_no_region_make_none():
    for k in (step(m, 1, x < 5), step(1, m, x < -5)):
        read = problem(k)
        assert read.domain is SQUARE
        assert read.forms_in(None)[0].operator[0].theta == m
    spline = sympy.interpolating_spline(2, x, [0, 0.2, 0.5, 0.7, 1], [1, 2, 1.5, 2, 1])
    assert problem(spline).region_names == ()


@pytest.mark.parametrize(
    ("k", "words"),
    [
        (step(1, 2, x < m / 10), "moves with m: geometry as a parameter is not supported yet"),
        (1 + Heaviside(x - m / 20), "moves with m: geometry as a parameter"),
        (Piecewise((m, x < 0.4), (2, x < 0.7)), "has no value where none of x < 0.4, x < 0.7 holds"),
        (step(m, 1, x**2 + y**2 < 1e-8), "no regions can be made of the pieces"),
        (step(m, 1, sympy.sin(x) * y > 1.5), "no regions can be made of the pieces"),
        (step(m, 1, x < sympy.Symbol("w")), "w is no coordinate"),
    ],
)
def test_pieces_that_are_no_regions_are_refused(k, words):
    with pytest.raises(InputError, match=words):
        problem(k)


def test_what_moves_in_time_is_refused():
    w = ps.unknown("w", x, y, t)
    equation = Eq(w.diff(t), ps.divergence(step(1, 2, x < t) * ps.gradient(w)))
    with pytest.raises(InputError, match="moves with t"):
        ps.Problem(SQUARE, equation, ps.Dirichlet(0), initial=0)


@pytest.mark.parametrize("k", [1 + floor(2 * x), 2 + sign(u), step(1, 2, u < 0.5), Abs(x) * step(1, 2, u.diff(x) < 1)])
def test_other_jumps_under_a_divergence_are_refused_at_once(k):
    with pytest.raises(InputError, match="materials"):
        ps.divergence(k * ps.gradient(u))


def test_pieces_beside_regions_are_refused():
    with pytest.raises(InputError, match=r"changes where x < 0.4, beside the regions.*by_region"):
        problem(step(m, 1), SQUARE.regions(top="y > 0.5"))


# ---- solved ----------------------------------------------------------------------------------------------------------
def test_two_layers_by_pieces_are_solved():
    """-(k u')' = 1, k = 0.1 | 1: u(1/2) = 5/22, and what flows out is what is produced."""
    (s,) = ps.coordinates("s")
    w = ps.unknown("w", s)
    flux = Piecewise((0.1, s < 0.5), (1, True)) * ps.gradient(w)
    wanted = {"middle": ps.PointValue(0.5), "out": ps.Flux()}
    layers = ps.Problem(ps.Box(0.0, 1.0), Eq(-ps.divergence(flux), 1), ps.Dirichlet(0), quantities=wanted)
    solution = ps.discretize(layers, ps.scatter(layers.domain, n_nodes=61)).solve()
    assert np.squeeze(solution.quantities["middle"]) == pytest.approx(5 / 22, abs=1e-10)
    assert np.squeeze(solution.quantities["out"]) == pytest.approx(-1, abs=1e-10)


def test_heat_transfer_beside_a_region_and_a_nonlinear_material_are_solved():
    """n·(k grad u) is 1 everywhere: u = x | 1/2 + (x - 1/2)/m, and for k (1 + u) the same of u + u²/2."""
    k = step(1, m, x < 0.5)
    level = step(x, 0.5 + (x - 0.5) / m, x < 0.5)
    end = sympy.Rational(1, 2) + 1 / (2 * m)
    for factor, exact, last in ((1, level, end), (1 + u, sympy.sqrt(1 + 2 * level) - 1, sympy.sqrt(1 + 2 * end) - 1)):
        read = ps.Problem(
            SQUARE,
            Eq(-ps.divergence(k * factor * ps.gradient(u)), 0),
            {"left": ps.Dirichlet(0), "right": ps.NormalFlux(1 + 2 * (last - u)), "*": ps.NormalFlux(0)},
            exact=exact,
        )
        model = ps.discretize(read, ps.scatter(read.domain, n_nodes=300))
        assert max(model.solve([mu]).error for mu in (0.1, 10.0)) < (1e-10 if factor == 1 else 1e-3)


def test_a_state_by_region_evolves():
    """Two halves at 1 and 0 and insulated end at their mean, weighted by what they hold: 3 of 4 parts at 1."""
    (s,) = ps.coordinates("s")
    w = ps.unknown("w", s, t)
    halves = ps.Box(0.0, 1.0).regions(one=s < 0.5)
    holds, state = ps.by_region(one=3, otherwise=1), ps.by_region(one=1, otherwise=0)
    flux = ps.by_region(one=1, otherwise=5) * ps.gradient(w)
    read = ps.Problem(
        halves, Eq(holds * w.diff(t), ps.divergence(flux)), ps.NormalFlux(0), initial=state, times=[0.0, 20.0]
    )
    end = ps.discretize(read, ps.scatter(halves, n_nodes=61)).solve().values[-1]
    assert np.ptp(end) < 1e-4
    assert np.mean(end) == pytest.approx(0.75, abs=0.02)  # nodes see the jump of the start to their spacing


def test_nodes_of_the_undivided_domain_are_refused():
    read = problem(step(5, 1, x < 0.5))
    elsewhere = SQUARE.regions(**{"x < 0.5": x < 0.4})
    for domain in (SQUARE, elsewhere):
        with pytest.raises(InputError, match=r"Use ps.scatter\(problem.domain"):
            ps.discretize(read, ps.scatter(domain, n_nodes=300))
    again = SQUARE.regions(**{"x < 0.5": x < 0.5})
    ps.discretize(read, ps.scatter(again, n_nodes=300))
