"""The equation that is solved is the one that was written: jumps, switches, order of unknowns, coefficients in time."""

import dataclasses
import pickle

import numpy as np
import pytest
import sympy
from sympy import (
    Abs,
    Derivative,
    DiracDelta,
    Eq,
    Heaviside,
    Matrix,
    Max,
    Min,
    Mod,
    Piecewise,
    atan2,
    ceiling,
    cos,
    cosh,
    exp,
    floor,
    frac,
    log,
    sign,
    sin,
    sinh,
)

import parasol as ps
from parasol.checks import ParasolError
from parasol.expressions import as_function
from parasol.pde.equation import find_unknowns, read_equation

x, y = ps.coordinates("x y")
t = ps.time()
u = ps.unknown("u", x)
w = ps.unknown("w", x, y)
v = ps.unknown("v", x, t)
(m,) = ps.parameters(m=(0.1, 10.0))
LINE, SQUARE = ps.Box(0.0, 1.0), ps.Box((0, 0), (1, 1))
S = 0.37  # where things jump
SMOOTH = 1 + x**2 + sin(2 * x)


def line(equation, exact, boundary=None, **options):
    boundary = ps.Dirichlet(exact) if boundary is None else boundary
    return ps.Problem(LINE, equation, boundary, exact=exact, **options)


def error(problem, mu=None, n_nodes=100):
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=n_nodes)).solve(mu).error


def minus_laplacian(f):
    return -f.diff(x, 2)


def step(low, high):
    return Piecewise((low, x < S), (high, True))


# ---- coefficients that jump -----------------------------------------------------------------------------------------
JUMPS = [
    step(m, 1),
    Piecewise((m, x < m / 10), (1, True)),
    2 + sign(x - S),
    1 + Heaviside(x - S),
    3 + floor(2 * x),
    3 + ceiling(x - S),
    1 + frac(3 * x),
    1 + Mod(x, 0.3),
    exp(sign(x - S)),
    sin(step(1, 2)) ** 2 + 1,
    4 + atan2(x - S, -1),
]


@pytest.mark.parametrize("k", JUMPS, ids=str)
def test_materials_that_jump_are_refused_before_any_work(k):
    for flux in (-(k * u.diff(x)).diff(x), -k * u.diff(x, 2), -sympy.Derivative(k * u.diff(x), x)):
        with pytest.raises(ParasolError, match="material"):
            ps.Problem(LINE, Eq(flux, 1), ps.Dirichlet(0))
    with pytest.raises(ParasolError, match="material"):
        ps.Problem(LINE, Eq(u.diff(x, 2), 0), Eq(Derivative(k * u, x), 0))
    if k in (JUMPS[0], JUMPS[2], JUMPS[3], JUMPS[8], JUMPS[9]):  # pieces at known places: regions of the domain
        assert len(ps.Problem(LINE, Eq(ps.divergence(k * ps.gradient(u)), 1), ps.Dirichlet(0)).region_names) == 2
        return
    with pytest.raises(ParasolError, match="materials"):
        ps.Problem(LINE, Eq(ps.divergence(k * ps.gradient(u)), 1), ps.Dirichlet(0))


@pytest.mark.parametrize(
    "equation",
    [
        Eq(-u.diff(x, 2), DiracDelta(x - S)),
        Eq(-((Abs(x - S)) * u).diff(x, 2), 1),  # a kink differentiated twice
        Eq(-(Max(x, S) * u).diff(x, 2), 1),
        Eq(-(Piecewise((1, u < 0.5), (2, True)) * u.diff(x)).diff(x), 1),
        Eq(-((2 + sign(u)) * u.diff(x)).diff(x), 1),
        Eq(-(floor(u) * u.diff(x)).diff(x), 1),
        Eq(-Piecewise((u.diff(x), u.diff(x) < 1), (2 * u.diff(x), True)).diff(x), 1),
        Eq(Piecewise((-u.diff(x, 2), x < S), (-2 * u.diff(x, 2), True)), 1),
        Eq(-u.diff(x, 2) + Derivative(step(1, 2) * u, x), 1),
        Eq(-(u.diff(x, 2) ** 3) * step(1, 2), 1),
    ],
    ids=str,
)
def test_jumps_that_would_lose_a_flux_are_refused(equation):
    with pytest.raises(ParasolError, match="interface"):
        ps.Problem(LINE, equation, ps.Dirichlet(0))


def test_jumps_beside_the_time_are_refused():
    for k in (step(1, 2) * (1 + t), step(t, 1)):
        with pytest.raises(ParasolError, match="material"):
            ps.Problem(LINE, Eq(v.diff(t), k * v.diff(x, 2)), ps.Dirichlet(0), initial=0, times=[0, 1])
    with pytest.raises(ParasolError, match="material"):
        ps.Problem(LINE, Eq(v.diff(t), v.diff(x, 2) + step(1, 2) * v.diff(x, x, t)), ps.Dirichlet(0), initial=0)
    in_time = Piecewise((1, t < 0.5), (2 + x, True))  # jumps in time alone
    ps.Problem(LINE, Eq(v.diff(t), in_time * v.diff(x, 2)), ps.Dirichlet(0), initial=0, times=[0, 1])


def test_fluxes_of_first_order_that_jump_are_refused_where_that_can_be_seen_and_said_where_not():
    """SymPy makes b u' + b' u of (b u)', without the jump of b; of a b that is constant on its pieces it makes b u'."""
    hat, curved = Piecewise((1 + x, x < S), (1 + 2 * S - x, True)), step(1 + x, x**2)
    for flux in (curved * u, m * step(exp(x), 1) * u, curved * u**2 / 2, 3 * curved * (u + 1)):
        for lost in (flux.diff(x), Derivative(flux, x)):
            with pytest.raises(ParasolError, match="interface"):
                ps.Problem(LINE, Eq(minus_laplacian(u) + lost, 1), ps.Dirichlet(0))
        ps.Problem(LINE, Eq(minus_laplacian(u) + flux.diff(x), 1), ps.Dirichlet(0), nondivergence=True)
    with pytest.raises(ParasolError, match="interface"):
        ps.Problem(LINE, Eq(v.diff(t) - v.diff(x, 2) + (t * curved * v).diff(x), 1), ps.Dirichlet(0), initial=0)
    with pytest.raises(ParasolError, match="interface"):
        ps.Problem(SQUARE, Eq(-ps.laplacian(w) + (curved * y * w).diff(x) + (x * w).diff(y), 1), ps.Dirichlet(0))
    for flux in (step(1, 2) * u, curved * u, hat * u):
        kept = ps.Problem(LINE, Eq(ps.divergence((flux - u.diff(x),), x), 1), ps.Dirichlet(0))
        assert len(kept.region_names) == 2
    # a kink loses nothing
    left = [minus_laplacian(f) + (hat * f).diff(x) for f in (u, SMOOTH)]
    assert error(line(Eq(*left), SMOOTH)) < 1e-10
    constant = line(Eq(minus_laplacian(u) + (step(1, 2) * u).diff(x), 1), SMOOTH)
    nodes = ps.scatter(LINE, n_nodes=50)
    with pytest.warns(ps.ParasolWarning, match=r"read as b u_x, not as \(b u\)_x"):
        ps.discretize(constant, nodes)
    with pytest.warns(ps.ParasolWarning, match="jumps") as caught:
        ps.discretize(dataclasses.replace(constant, nondivergence=True), nodes)
    assert not any("(b u)_x" in str(w.message) for w in caught)


def test_a_thermal_block_is_refused():
    k = Piecewise((m, (x < 0.5) & (y < 0.5)), (1, True))
    with pytest.raises(ParasolError, match="nondivergence=True"):
        ps.Problem(SQUARE, Eq(-(k * w.diff(x)).diff(x) - (k * w.diff(y)).diff(y), 1), ps.Dirichlet(0))


# solutions of equations that jump at S, all with a continuous slope and with different values at both ends
ONE_SIDE = x - S
ALLOWED = {
    "source": (Eq(minus_laplacian(u), step(0, -4)), step(1 + ONE_SIDE, 1 + ONE_SIDE + 2 * ONE_SIDE**2)),
    "reaction": (Eq(minus_laplacian(u) + step(0, 4) * u, 0), step(1 + 2 * ONE_SIDE, exp(2 * ONE_SIDE))),
    "convection": (
        Eq(minus_laplacian(u) + 2 * Heaviside(x - S) * u.diff(x), 0),
        step(1 + ONE_SIDE, (1 + exp(2 * ONE_SIDE)) / 2),
    ),
    "kink": (
        Eq(-((1 + Abs(x - S)) * u.diff(x)).diff(x), 1),
        step(x - (1 - S) * log(1 + S - x), -x + (3 - S) * log(1 - S + x) + 2 * S),
    ),
    "kink by Max": (
        Eq(-((1 + Max(0, x - S)) * u.diff(x)).diff(x), 1),
        step(2 * x - x**2 / 2, -x + (3 - S) * log(1 - S + x) + 3 * S - S**2 / 2),
    ),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_jumps_in_lower_terms_and_kinks_are_right(name):
    equation, exact = ALLOWED[name]
    coarse, fine = (error(line(equation, exact), n_nodes=n) for n in (60, 240))
    assert fine < 1e-3
    assert fine < coarse / 3  # order 1 at least: the solution is not smooth


def test_smooth_solutions_do_not_feel_jumps_in_lower_terms():
    for b in (step(3, -2), 2 + sign(x - S), floor(3 * x), Mod(x, 0.2), frac(2 * x)):
        left = [minus_laplacian(f) + b * f.diff(x) + b * f for f in (u, SMOOTH)]
        assert error(line(Eq(*left), SMOOTH)) < 1e-10


def test_functions_of_parameters_may_jump():
    theta = Piecewise((m, m < 1), (1 / m, True)) + sign(m - 1) / 2
    problem = line(Eq(-(theta * u.diff(x)).diff(x), 2), 1 + x * (2 - x) / theta)
    assert problem.affine
    for mu in (0.9, 1.1, 4.0):
        assert error(problem, [mu]) < 1e-10


def test_nondivergence_form_is_solved_where_it_is_meant():
    exact = 1 + x - step(x**2 / 4, x**2 / 2 - S * x / 2 + S**2 / 4)
    problem = line(Eq(-step(2, 1) * u.diff(x, 2), 1), exact, nondivergence=True)
    assert error(problem, n_nodes=240) < error(problem, n_nodes=60) / 3 < 1e-4
    assert pickle.loads(pickle.dumps(problem)).nondivergence
    with pytest.raises(ParasolError, match="nondivergence"):
        dataclasses.replace(problem, nondivergence=False)
    with pytest.raises(ParasolError, match="interface"):
        dataclasses.replace(problem, equation=Eq(-((1 + Heaviside(x - S)) * u.diff(x)).diff(x), 1))


def test_a_flux_with_a_kink_in_the_slope_is_right():
    def flux(f):
        return (1 + Abs(f.diff(x))) * f.diff(x)

    exact = 2 + x - (x - S) ** 2  # its slope changes sign
    problem = line(Eq(-flux(u).diff(x), 2 * (1 + 2 * Abs(exact.diff(x)))), exact)
    model = ps.discretize(problem, ps.scatter(LINE, n_nodes=60))
    assert model.solve(guess=2 + model.nodes.points[:, 0]).error < 1e-9


def test_equal_coefficients_in_all_pieces_do_not_jump():
    equation = Eq(Piecewise((-u.diff(x, 2), x < S), (-u.diff(x, 2) + 4 * u, True)), 0)
    assert error(line(equation, ALLOWED["reaction"][1]), n_nodes=240) < 1e-3
    read_equation(Eq(Heaviside(x) * u.diff(x, 2) + (1 - Heaviside(x)) * u.diff(x, 2), 1), u)


@pytest.mark.parametrize(
    "k", [2 + Abs(x - S) / (x - S), 4 + sympy.atan(1 / (x - S)), 1 / (x - S), (x - S) / Abs(x - S)]
)
def test_jumps_at_poles_are_refused(k):
    with pytest.raises(ParasolError, match="material"):
        ps.Problem(LINE, Eq(-ps.divergence(k * ps.gradient(u)), 1), ps.Dirichlet(0))
    ps.Problem(LINE, Eq(-k * u.diff(x, 2), 1), ps.Dirichlet(0), nondivergence=True)


def test_smooth_coefficients_with_poles_elsewhere_and_splines_are_right():
    spline = sympy.interpolating_spline(2, x, [0, 0.2, 0.5, 0.7, 1], [1, 2, 1.5, 2, 1])
    assert isinstance(spline, Piecewise)
    for k in (
        spline,
        1 / (x + m),
        sympy.tanh((x - S) / 0.001) + 2,
        sympy.tan(x) + 1,
        sympy.sqrt(Abs(x - S)) + 1 / (1 + x),
    ):
        ps.Problem(LINE, Eq(-ps.divergence(k * ps.gradient(u)), 1), ps.Dirichlet(0))
    # the flux is spline * exact' = 2 - x
    problem = ps.Problem(
        LINE, Eq(-ps.divergence(spline * ps.gradient(u)), 1), {"left": ps.Dirichlet(1), "right": Eq(u.diff(x), 1)}
    )
    model = ps.discretize(problem, ps.scatter(LINE, n_nodes=200))
    at = np.linspace(0, 1, 20001)
    slope = (2 - at) / as_function(spline, [x])(at)
    exact = 1 + np.concatenate([[0], np.cumsum((slope[1:] + slope[:-1]) / 2) * at[1]])
    assert np.max(np.abs(model.solve().values - np.interp(model.nodes.points[:, 0], at, exact))) < 1e-3
    linear = sympy.interpolating_spline(1, x, [0, S, 1], [1, 2, 1])  # whose kink (k u).diff(x, 2) would lose
    with pytest.raises(ParasolError, match="material"):
        ps.Problem(LINE, Eq(-(linear * u).diff(x, 2), 1), ps.Dirichlet(0))
    in_parameters = Piecewise((x + 1, m < 1), (2 + x**2, True))
    read_equation(Eq(-(in_parameters * u.diff(x)).diff(x), 1), u)  # is not refused


# ---- linear means linear --------------------------------------------------------------------------------------------
SWITCHES = {
    "shifted": (lambda f: Piecewise((5 * (f - 1), x > 0.5), (0, True)), True),
    "in two derivatives": (lambda f: Piecewise((f.diff(x) - 1, x > 0.5), (3 * f + 2, True)), True),
    "switch": (lambda f: Piecewise((10, f > 1.5), (0, True)), False),
    "Abs": (lambda f: Abs(f - 2), False),
    "sign": (lambda f: sign(f - 2), False),
    "floor": (lambda f: floor(3 * f), False),
    "Heaviside": (lambda f: Heaviside(f - 2), False),
    "frac": (lambda f: 5 * f - frac(5 * f), False),
    "Mod": (lambda f: 3 * f - Mod(f, 0.3), False),
    "Min": (lambda f: Min(f, 2), False),
}


@pytest.mark.parametrize("name", SWITCHES)
def test_no_part_of_a_term_is_lost(name):
    term, linear = SWITCHES[name]
    left = [minus_laplacian(f) + term(f) for f in (u, SMOOTH)]
    problem = line(Eq(*left), SMOOTH)
    assert problem.linear is linear
    assert error(problem) < 1e-10


def test_no_part_of_a_condition_is_lost():
    for term in (SWITCHES["shifted"][0], lambda f: 3 * f + Abs(f - 2)):
        left = [f.diff(x) + term(f) for f in (u, SMOOTH)]
        conditions = {"left": ps.Dirichlet(SMOOTH), "right": Eq(*left)}
        assert error(line(Eq(minus_laplacian(u), minus_laplacian(SMOOTH)), SMOOTH, conditions)) < 1e-10


# ---- the order of unknowns ------------------------------------------------------------------------------------------
EXACT = {"a": 1 + x + y**2, "b": exp(x) - 3 * y}


def system(names: str, given: str):
    unknowns = dict(zip(names, ps.unknowns(" ".join(names), x, y), strict=True))
    a, b = unknowns["a"], unknowns["b"]

    def left(a, b):
        return {
            "a": -a.diff(x, 2) - a.diff(y, 2) + b,
            "b": -b.diff(x, 2) - b.diff(y, 2) + 2 * a,
        }

    equations = {name: Eq(left(a, b)[name], left(EXACT["a"], EXACT["b"])[name]) for name in names}
    each = {name: ps.Dirichlet(EXACT[name]) for name in names}
    conditions = {
        "list": list(each.values()),
        "unknowns": {unknowns[name]: condition for name, condition in sorted(each.items())},
        "names": {"left": list(each.values()), "*": dict(sorted(each.items()))},
    }
    return ps.Problem(SQUARE, list(equations.values()), conditions[given], exact=EXACT)


@pytest.mark.parametrize("given", ["list", "unknowns", "names"])
def test_unknowns_keep_the_order_in_which_they_were_declared(given):
    problems = [system(names, given) for names in ("ab", "ba")]  # both declared before either is solved
    nodes = ps.scatter(SQUARE, n_nodes=200)
    for problem, names in zip(problems, (("a", "b"), ("b", "a")), strict=True):
        solution = ps.discretize(pickle.loads(pickle.dumps(problem)), nodes).solve()
        assert problem.names == tuple(solution.fields) == names
        assert solution.error < 1e-6
        np.testing.assert_allclose(
            solution.at([[0.3, 0.6]])[:, 0], [float(EXACT[n].subs({x: 0.3, y: 0.6})) for n in names], rtol=1e-5
        )


def test_an_unknown_declared_again_is_the_same():
    q, p = ps.unknown("q", x, y), ps.unknown("p", x, y)
    again = ps.unknown("q", x, y)
    assert find_unknowns([p + again, q]) == (q, p)
    equations = [Eq(-ps.laplacian(q) + again, 1), Eq(-ps.laplacian(p), again.diff(x))]
    problem = ps.Problem(SQUARE, equations, [Eq(again + p, 0), ps.Dirichlet(1)])
    assert problem.names == ("q", "p")
    assert ps.Problem(SQUARE, equations, [ps.Dirichlet(0)] * 2, unknowns=(p, q)).names == ("p", "q")
    with pytest.raises(ParasolError, match="given for q, the unknowns are q, p"):
        ps.Problem(SQUARE, equations, {q: ps.Dirichlet(0)})


# ---- coefficients in time -------------------------------------------------------------------------------------------
MOVING = exp(-t) * (1 + x**2) + sin(x + t)
(NORMAL,) = ps.normal(x)


def robin(alpha, beta):
    return ps.Robin(alpha, beta, alpha * MOVING + beta * NORMAL * MOVING.diff(x))


def heat(f):
    return f.diff(t) - f.diff(x, 2)


def reaction(f):
    return f.diff(t) - 0.2 * f.diff(x, 2) + exp(t) * (1 + x) * f


def diffusion(f):
    return f.diff(t) - (1 + t + x * sin(t)) * f.diff(x, 2) + cos(3 * t) * f.diff(x)


def wave(f):
    return f.diff(t, 2) - 2 * f.diff(x, 2) + cos(t) * f


def in_time(operator, boundary):
    start = [MOVING.subs(t, 0), MOVING.diff(t).subs(t, 0)]
    problem = ps.Problem(
        LINE,
        Eq(operator(v), operator(MOVING)),
        boundary,
        initial=start if operator is wave else start[0],
        exact=MOVING,
        times=[0, 0.5, 1.0],
    )
    return ps.discretize(problem, ps.scatter(LINE, n_nodes=40))


@pytest.mark.parametrize(
    ("operator", "boundary", "integrator", "order"),
    [
        # time-dependent boundary data cost "esdirk4" up to one order, with constant coefficients as well
        (heat, robin(1 + t, 1), "esdirk4", 3.2),
        (heat, robin(exp(t), 2 + cos(t)), "esdirk4", 3.2),
        (diffusion, ps.Dirichlet(MOVING), "esdirk4", 3.2),
        (reaction, {"left": robin(1 + t, 1), "right": ps.Dirichlet(MOVING)}, "sbdf2", 1.9),
        (wave, {"left": robin(1 + t, 1), "right": ps.Dirichlet(MOVING)}, "averaged", 1.9),
    ],
)
def test_coefficients_in_time_keep_the_order(operator, boundary, integrator, order):
    model = in_time(operator, boundary)
    assert model.problem.linear
    assert not model.problem.affine
    steps = (0.1, 0.05) if integrator == "esdirk4" else (0.02, 0.01)
    errors = [model.solve(step=step, integrator=integrator).error for step in steps]
    assert errors[-1] < (1e-7 if integrator == "esdirk4" else 1e-4)
    assert np.log2(errors[0] / errors[1]) > order


def test_without_boundaries_coefficients_in_time_keep_order_four():
    ring = ps.Box(0.0, 1.0, periodic="x")
    exact = exp(-t) * sin(2 * sympy.pi * (x - t))
    left = [f.diff(t) + (1 + t) * f.diff(x) - 0.01 * exp(t) * f.diff(x, 2) for f in (v, exact)]
    problem = ps.Problem(ring, Eq(*left), initial=exact.subs(t, 0), exact=exact, times=[0, 0.5])
    model = ps.discretize(problem, ps.scatter(ring, n_nodes=100))
    coarse, fine = (model.solve(step=h, integrator="esdirk4").values[-1] for h in (0.05, 0.025))
    finest = model.solve(step=0.003125, integrator="esdirk4").values[-1]
    assert np.linalg.norm(coarse - finest) / np.linalg.norm(fine - finest) > 2**3.8


def test_no_matrix_is_frozen_in_time():
    model = in_time(diffusion, robin(1 + t, 1))
    assert not any(part.coefficient.n_times for part in model.terms.varying_operator)
    with pytest.raises(ParasolError, match="extrapolates"):
        model.solve(step=0.01, integrator="sbdf2")
    assert model.solve(step=0.05).integrator == "esdirk4"
    with pytest.raises(ParasolError, match="time derivative depends on time"):
        in_time(lambda f: (1 + t) * f.diff(t) - f.diff(x, 2), ps.Dirichlet(MOVING))


def test_conditions_in_time_alone_do_not_hide_growth():
    # with no part of the conditions free of time, the spectrum of more than 500 unknowns needs their linearisation
    problem = ps.Problem(
        LINE, Eq(v.diff(t), v.diff(x, 2)), ps.Robin(exp(t), exp(2 * t), 0), initial=1 + x, times=[0, 1e-3]
    )
    model = ps.discretize(problem, ps.scatter(LINE, n_nodes=510))
    assert model.growth(model.vector()) < 10


# ---- addition theorems ----------------------------------------------------------------------------------------------
c, d = ps.parameters(c=(0.0, 40.0), d=(0.0, 16.0))


@pytest.mark.parametrize(
    ("source", "length", "affine"),
    [
        (cosh(x - d), 40.0, False),
        (cosh(x - d), 1.0, True),
        (cosh(x - c), 40.0, False),
        (sinh((x - c) / 20), 40.0, True),
        (exp(x - c), 40.0, True),
        (exp(10 * (c - x)), 40.0, True),
        (exp(30 * (x - c)), 40.0, False),
        (sin(1000 * (x - c)), 40.0, True),
        ((x - c) ** 2, 40.0, True),
        ((x - c) ** 2, 1e9, True),
        ((x + c) ** 8, 40.0, True),
        ((x - c) ** 8, 40.0, False),
    ],
    ids=str,
)
def test_addition_theorems_keep_the_digits_where_they_are_used(source, length, affine):
    problem = ps.Problem(ps.Box(0.0, length), Eq(-u.diff(x, 2), source), ps.Dirichlet(source))
    assert problem.affine is affine
    at = [np.linspace(0, length, 101)[:, None], np.linspace(0, 16, 41)]
    for terms in (problem.forms[0].source, problem.conditions["right"][0].source):
        (p,) = source.atoms(ps.pde.Parameter)
        rewritten = sum(term.theta * term.coefficient for term in terms)
        written, rewritten = (as_function(e, [x, p])(*at) for e in (source, rewritten))
        written, rewritten = written[np.isfinite(written)], rewritten[np.isfinite(written)]
        allowed = np.maximum(1e-7 * np.abs(written), 1e-13 * np.max(np.abs(written)))
        assert np.all(np.abs(written - rewritten) <= allowed)


def test_the_time_has_no_range_to_trust():
    problem = ps.Problem(LINE, Eq(v.diff(t) - v.diff(x, 2), cosh(t - c)), ps.Dirichlet(0), initial=0, times=[0, 1])
    assert [s.coefficient for s in problem.forms[0].source] == [cosh(t - c)]


# ---- what people write ----------------------------------------------------------------------------------------------
def test_a_divergence_finds_its_coordinates():
    k = 1 + x * y + m
    written = -(k * w.diff(x)).diff(x) - (k * w.diff(y)).diff(y)
    assert sympy.expand((-ps.divergence(k * ps.gradient(w)) - written).doit()) == 0
    assert sympy.expand((ps.divergence([k * g for g in ps.gradient(w)], x, y) + written).doit()) == 0
    assert sympy.expand((ps.divergence([k * g for g in ps.gradient(w)]) + written).doit()) == 0
    assert ps.divergence(2 * ps.gradient(x**2 + y**2, x, y)) == 8
    assert ps.divergence(ps.gradient(v) * 3).doit() == 3 * v.diff(x, 2)
    assert ps.divergence(np.eye(2) @ ps.gradient(w)).doit() == 1.0 * w.diff(x, 2) + 1.0 * w.diff(y, 2)
    slanted = Matrix([[1, x], [0, 2]]) * ps.gradient(w)
    assert ps.divergence(slanted) == ps.divergence((w.diff(x) + x * w.diff(y), 2 * w.diff(y)), x, y)
    exact = exp(x) * cos(y) + 2
    problem = ps.Problem(
        SQUARE,
        Eq(-ps.divergence((1 + x * y) * ps.gradient(w)), -ps.divergence((1 + x * y) * ps.gradient(exact, x, y))),
        ps.Dirichlet(exact),
        exact=exact,
    )
    assert error(problem, n_nodes=300) < 1e-5


def test_vectors_behave():
    g = ps.gradient(w)
    a, b = g
    assert (a, b) == g == (g[0], g[1]) == (w.diff(x), w.diff(y))
    assert -g / 2 + (1, y) - [0, y] == (1 - a / 2, -b / 2)
    assert (1, y) - g == (1 - a, y - b)
    assert g * 2 == 2 * g == sum([g, g])
    assert np.float64(2) * g == (2.0 * a, 2.0 * b)
    assert g.dot((x, 3)) == x * a + 3 * b
    assert pickle.loads(pickle.dumps(g)).coordinates == (x, y)
    for wrong in (lambda: g * g, lambda: g + 1, lambda: g - (1, 2, 3), lambda: g + ps.gradient(u), lambda: g * "k"):
        with pytest.raises(ParasolError):
            wrong()
    for wrong in (w, "w", 3):
        with pytest.raises(ParasolError, match="takes a vector"):
            ps.divergence(wrong)
    with pytest.raises(ParasolError, match="1 components for 2 coordinates"):
        ps.divergence((x,), x, y)
    with pytest.raises(ParasolError, match="are not known"):
        ps.divergence((x, y))


def test_numpy_functions_are_those_of_sympy():
    assert np.sin(np.pi * x) == sin(np.pi * x)
    assert np.exp(-m * u) + np.abs(x) + np.arctan(2 * x) == exp(-m * u) + Abs(x) + sympy.atan(2 * x)
    assert list(np.sqrt(np.array([x, u]))) == [sympy.sqrt(x), sympy.sqrt(u)]
    assert list(np.array([1, 2]) * x + np.float64(0.5) * x) == [1.5 * x, 2.5 * x]
    # what NumPy could do without us is as it was
    assert (np.float64(1) < x, x >= np.int64(2), np.float64(1) == x) == (x > 1.0, x >= 2, False)
    assert [np.float64(3) - x, np.float64(2) ** x, 1 / x * np.float64(3)] == [3.0 - x, 2.0**x, 3.0 / x]
    assert np.add.reduce(np.array([x, u])) == np.dot(np.array([x, u]), [1, 1]) == x + u
    with pytest.raises(TypeError):
        np.isfinite(x)
    with pytest.raises(TypeError, match="truth value"):
        _ = np.array([1.0, 2.0]) < x
    left = [minus_laplacian(f) + np.exp(x) * f for f in (u, SMOOTH)]
    assert error(line(Eq(*left), SMOOTH)) < 1e-10


@pytest.mark.parametrize(
    ("equation", "boundary", "message"),
    [
        (-u.diff(x, 2) == 1, ps.Dirichlet(0), r"Python compared .* Write ps\.Eq"),
        ([-u.diff(x, 2) == 1], ps.Dirichlet(0), r"Python compared .* Write ps\.Eq"),
        ("-u'' = 1", ps.Dirichlet(0), r"the text .* Write ps\.Eq"),
        (["-u'' = 1"], ps.Dirichlet(0), r"the text .* Write ps\.Eq"),
        (None, ps.Dirichlet(0), r"the equation is None\. Write ps\.Eq"),
        (Eq(-u.diff(x, 2) + sympy.Integral(u, (x, 0, 1)), 1), ps.Dirichlet(0), "at other points"),
        (Eq(-u.diff(x, 2) + sympy.Subs(u.diff(x), x, 0.5), 1), ps.Dirichlet(0), "at other points"),
        (np.array([u.diff(x, 2)]), ps.Dirichlet(0), r"Write ps\.Eq"),
        (Eq(-u.diff(x, 2), 1), u == 0, r"ps\.Eq"),
        (Eq(-u.diff(x, 2), 1), "u = 0", r"ps\.Dirichlet"),
    ],
)
def test_equations_that_are_none(equation, boundary, message):
    with pytest.raises(ParasolError, match=message):
        ps.Problem(LINE, equation, boundary)


def test_tuples_that_were_not_unpacked_say_so():
    a, both = ps.parameters(a=(0, 1)), ps.parameters(a=(0, 1), b=(0, 1))
    uses = [
        lambda: a * u,
        lambda: u * a,
        lambda: 1 + a,
        lambda: x - a,
        lambda: 2**a,
        lambda: -a,
        lambda: a < 1,
        lambda: np.float64(2) * a,
        lambda: sin(a),
        lambda: Eq(u, a),
        lambda: ps.Problem(LINE, Eq(-u.diff(x, 2), 1), ps.Dirichlet(a)),
        lambda: a.diff(x),
    ]
    for use in uses:
        with pytest.raises(ParasolError, match=r"Unpack it where it is declared: a, = ps\.parameters"):
            use()
    with pytest.raises(ParasolError, match=r"x, = ps\.coordinates"):
        ps.unknown("u", ps.coordinates("x"))
    with pytest.raises(ParasolError, match=r"u, = ps\.unknowns"):
        ps.unknowns("u", x).diff(x)
    with pytest.raises(ParasolError, match=r"a, b = ps\.parameters"):
        both * x
    assert a + both == (*a, *both)
    assert pickle.loads(pickle.dumps(both)) == both == sympy.Tuple(*both)
