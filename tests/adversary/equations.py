"""Attacks on the reading of the equation (section A of issue 13)."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import sympy
from sympy import Abs, DiracDelta, Heaviside, Max, Min, Piecewise, ceiling, cos, cosh, exp, floor, sign, sin

import parasol as ps
from adversary import problems as pr
from adversary.families import Draw, family
from adversary.problems import Wrong, deviation, manufacture, near, require, right, smooth, solved


def interval(length: float = 1.0, name: str = "x", centre: float = 0.5) -> pr.Place:
    """(0, length)."""
    (x,) = ps.coordinates(name)
    low = centre * length - length / 2
    normals = {"left": (-1,), "right": (1,)}
    return pr.Place(ps.Box(low, low + length), (x,), normals, (centre * length,), length / 2)


def square(draw: Draw, named: str | None = None) -> pr.Place:
    """A box in the plane."""
    return pr.box(draw.rng, ps.coordinates("x y"), named=named)


def jumping(kind: str, x, at: float, low: float, high: float):
    """A function that is `low` left of a place and `high` right of it, written in different ways."""
    return {
        "piecewise": Piecewise((low, x < at), (high, True)),
        "sign": (low + high) / 2 + (high - low) / 2 * sign(x - at),
        "heaviside": low + (high - low) * Heaviside(x - at),
        "floor": low + (high - low) * floor(x / (2 * at) + 0.5),
        "ceiling": high + (low - high) * (1 - ceiling(x / (2 * at) - 0.5)),
    }[kind]


# ---- A1: jumps -------------------------------------------------------------------------------------------------------
@family("A1", refused=True, n_cases=7)
def jump_in_the_highest_coefficient(draw: Draw) -> str:
    """-(a u')' = 1 with a jump in a: the exact two-layer solution, or a refusal; in 1-D and extended to 2-D."""
    kind = draw.turn(["piecewise", "piecewise 2d", "sign", "heaviside", "floor", "ceiling", "outside"])
    m, at, end = draw.uniform(0.05, 0.4), draw.uniform(0.3, 0.6), draw.uniform(0.5, 1.5)
    plane = kind.endswith("2d")
    xs = ps.coordinates("x y" if plane else "x")
    x = xs[0]
    a = jumping("piecewise" if kind in ("piecewise 2d", "outside") else kind, x, at, m, 1.0)
    # a u' = c - x, u(0) = 0.3, u(1) = end
    c = (end - 0.3 + at**2 / 2 / m + (1 - at**2) / 2) / (at / m + 1 - at)
    left = 0.3 + (c * x - x**2 / 2) / m
    exact = Piecewise((left, x < at), (left.subs(x, at) + c * (x - at) - (x**2 - at**2) / 2, True))
    u = ps.unknown("u", *xs)
    flux = [a * u.diff(v) for v in xs]
    equation = -sum(f.diff(v) for f, v in zip(flux, xs, strict=True))
    if kind == "outside":  # the same written as an operator in divergence form by the library
        equation = -ps.divergence(flux, *xs)
    domain = ps.Box((0, 0), (1, 1)) if plane else ps.Box(0, 1)
    problem = ps.Problem(domain, ps.Eq(equation, 1), ps.Dirichlet(exact))
    solution = ps.discretize(problem, ps.scatter(domain, n_nodes=600 if plane else 200)).solve()
    off = deviation(solution.values, pr.values(exact, xs, solution.model.nodes.points.T))
    require(off < 2e-2, f"a = {m} | 1 at x = {at} ({kind}): error {off:.2g}")
    return f"error {off:.1e}"


@family("A1", refused=True)
def jump_with_parameters(draw: Draw) -> str:
    """The thermal block: conductivities by parameters, jumping at a line; exact in layers."""
    (x, y), (m,) = ps.coordinates("x y"), ps.parameters(m=(0.1, 10.0))
    u, value = ps.unknown("u", x, y), draw.uniform(0.1, 0.5)
    a = Piecewise((m, x < 0.5), (1, True))
    slope = 1 / (0.5 / m + 0.5)
    exact = Piecewise((1 + slope * x / m, x < 0.5), (2 - slope * (1 - x), True))
    problem = ps.Problem(
        ps.Box((0, 0), (1, 1)), ps.Eq(ps.divergence([a * u.diff(x), a * u.diff(y)], x, y), 0), ps.Dirichlet(exact)
    )
    solution = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=600)).solve([value])
    off = deviation(solution.values, pr.values(exact.subs(m, value), (x, y), solution.model.nodes.points.T))
    require(off < 2e-2, f"layers m = {value} | 1: error {off:.2g}")
    return f"error {off:.1e}"


@family("A1", n_cases=5)
def jump_in_a_lower_coefficient(draw: Draw) -> str:
    """Jumps in convection and reaction are right: the exact solution is smooth, the source jumps with them."""
    place = interval() if draw.seed % 2 else square(draw)
    kind = draw.turn(["piecewise", "sign", "heaviside", "floor", "ceiling"])
    x, u = place.coordinates[0], ps.unknown("u", *place.coordinates)
    c = jumping(kind, x, draw.uniform(0.31, 0.62, 3), 1.0, 3.0)
    exact = smooth(draw.rng, place)
    made = manufacture(
        place,
        [u],
        [exact],
        lambda v: -ps.laplacian(v, *place.coordinates) + c * v + c * v.diff(x),
        pr.conditions(draw.rng, place, [u], [exact]),
    )
    return right(made, (400, 1200), 2e-3)


@family("A1", n_cases=3)
def kink_in_the_highest_coefficient(draw: Draw) -> str:
    """-div(k grad u) with a kink in k (Abs, Min, Max) and a smooth solution: its one derivative is right."""
    place = interval() if draw.seed % 2 else square(draw)
    xs, at = place.coordinates, draw.uniform(0.21, 0.62, 3)
    k = draw.turn([1 + Abs(xs[0] - at), Max(1 + xs[0], 1 + at), Min(2 + xs[0], 2 + at)])
    u, exact = ps.unknown("u", *xs), smooth(draw.rng, place)
    made = manufacture(
        place,
        [u],
        [exact],
        lambda v: -sum((k * v.diff(s)).diff(s) for s in xs),
        pr.conditions(draw.rng, place, [u], [exact]),
    )
    return right(made, (400, 1200), 2e-3)


@family("A1", refused=True, n_cases=4)
def point_load(draw: Draw) -> str:
    """A Dirac load, or the derivative of a jump: the exact hat, or a refusal."""
    (x,), kind = ps.coordinates("x"), draw.turn(["source", "coefficient", "twice", "kink twice"])
    u, at = ps.unknown("u", x), draw.uniform(0.3, 0.7, 3)
    if kind == "source":
        exact = Piecewise((1 + (1 - at) * x, x < at), (1 + at * (1 - x), True))
        equation = ps.Eq(-u.diff(x, 2), DiracDelta(x - at))
    elif kind == "coefficient":  # -u'' + δ u = 0, u(0) = 1, u(1) = 2: the slope b grows by u(at) = 1 + b at
        b = at / (1 + at * (1 - at))
        exact = Piecewise((1 + b * x, x < at), (1 + b * at + (b + 1 + b * at) * (x - at), True))
        equation = ps.Eq(-u.diff(x, 2) + DiracDelta(x - at) * u, 0)
    elif kind == "twice":  # a source written as the second derivative of a kink
        exact = 1 + x + Abs(x - at) / 2
        equation = ps.Eq(u.diff(x, 2), (Abs(x - at) / 2).diff(x, 2))
    else:
        exact = 1 + x + Max(x, at)
        equation = ps.Eq(u.diff(x, 2), Max(x, at).diff(x, 2))
    problem = ps.Problem(ps.Box(0, 1), equation, ps.Dirichlet(exact))
    solution = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=200)).solve()
    off = deviation(solution.values, pr.values(exact, (x,), solution.model.nodes.points.T))
    require(off < 2e-2, f"{kind} at {at}: error {off:.2g}")
    return f"error {off:.1e}"


@family("A1", n_cases=4)
def discontinuous_source(draw: Draw) -> str:
    """A source that jumps: the estimate of the discretisation error sees what the solution lacks."""
    d = 2 if draw.seed % 4 == 3 else 1
    xs, (m,) = ps.coordinates("x y"[: 2 * d - 1]), ps.parameters(m=(1.0, 2.0))
    x, u, at = xs[0], ps.unknown("u", *xs), draw.turn([sympy.Rational(1, 3), 0.5, draw.uniform(-0.5, 0.5, 3)])
    r2 = sum(v**2 for v in xs)
    if d == 1:
        steps, part = (
            jumping("piecewise", x, at, 0, 1),
            Piecewise((0, x < at), (-((x - at) ** 2) / 2, True)) + (1 + x) * (1 - at) ** 2 / 4,
        )
    else:
        spot = draw.uniform(0.1, 0.2)
        inside = (spot**2 - r2) / 4 - spot**2 / 2 * sympy.log(spot)
        steps, part = (
            Piecewise((1, r2 < spot**2), (0, True)),
            Piecewise((inside, r2 < spot**2), (-(spot**2) / 4 * sympy.log(r2), True)),
        )
    exact = (part + (2 + sum(xs)) / 1000) / m
    problem = ps.Problem(ps.Box((-1,) * d, (1,) * d), ps.Eq(-m * ps.laplacian(u), steps), ps.Dirichlet(exact))
    return f"{d}-D: " + pr.estimated(problem, exact, xs, m, **({} if d == 1 else {"n_nodes": 500}))


# ---- A2: switches ----------------------------------------------------------------------------------------------------
@family("A2", n_cases=4)
def switch_in_the_coordinates(draw: Draw) -> str:
    """A term that is c (u - b) on one side only, in the equation or in a condition."""
    place = interval() if draw.seed % 2 else square(draw)
    xs, c, b = place.coordinates, draw.uniform(2, 6), draw.uniform(0.5, 3)
    u, exact, at = ps.unknown("u", *xs), smooth(draw.rng, place), draw.uniform(0.1, 0.6, 3)

    def term(v):
        return Piecewise((c * (v - b), xs[-1] > at), (0, True))

    boundary = pr.conditions(draw.rng, place, [u], [exact], kinds=("dirichlet", "robin"))
    if draw.seed % 4 < 2:
        made = manufacture(place, [u], [exact], lambda v: -ps.laplacian(v, *xs) + term(v), boundary)
    else:
        slope = pr.flux(place, "right", exact)
        boundary["right"] = ps.Eq(pr.flux(place, "right", u) + u + term(u), slope + exact + term(exact))
        made = manufacture(place, [u], [exact], lambda v: -ps.laplacian(v, *xs), boundary)
    return right(made, (300, 900), 2e-3)


@family("A2", refused=True, n_cases=3)
def switch_in_the_unknown(draw: Draw) -> str:
    """Terms that switch with u: a constant above a threshold, a slope that changes, a reaction that sets in."""
    place = interval() if draw.seed % 2 else square(draw)
    xs, top = place.coordinates, draw.uniform(3, 10)
    u, exact = ps.unknown("u", *xs), smooth(draw.rng, place)
    low = draw.uniform(1.5, 2.5)

    def term(v):
        forms = [
            Piecewise((top, v > low), (0, True)),
            Piecewise((top * (v - low), v > low), (0, True)),
            Piecewise((v - 1, v < low), (3 * v - 1 - 2 * low, True)),
        ]
        return draw.turn(forms)

    boundary = pr.conditions(draw.rng, place, [u], [exact], kinds=("dirichlet", "robin"))
    made = manufacture(place, [u], [exact], lambda v: -ps.laplacian(v, *xs) + term(v), boundary)
    solution = solved(made, 600)
    off = pr.error(made, solution)
    require(not made.problem.linear, "a term that switches with u counts as linear")
    # where u crosses the threshold the source jumps as well: nodes beside it are off a little
    require(off < 3e-2, f"{term(sympy.Symbol('u'))}: error {off:.2g}")
    return f"error {off:.1e}"


@family("A2", n_cases=5)
def product_of_unknowns(draw: Draw) -> str:
    """Nonlinear terms of every shape: powers, products with derivatives, functions, quotients, constants inside."""
    place = square(draw)
    x, y = xs = place.coordinates
    u, exact = ps.unknown("u", *xs), smooth(draw.rng, place)
    terms = [
        lambda v: v**3 + 2 * v,
        lambda v: v * v.diff(x) + exp(-v),
        lambda v: (v - 1) ** 2 * (1 + x) + v.diff(y) ** 2,
        lambda v: v / (2 + v**2) + sympy.log(1 + v**2),
        lambda v: -((1 + v**2) * v.diff(x)).diff(x),
    ]
    term = draw.turn(terms)
    boundary = pr.conditions(draw.rng, place, [u], [exact], kinds=("dirichlet", "robin"))
    made = manufacture(place, [u], [exact], lambda v: -4 * ps.laplacian(v, *xs) + term(v), boundary)
    return right(made, (400, 1200), 2e-3, guess=None)


# ---- A3, A4: names ---------------------------------------------------------------------------------------------------
@family("A3", n_cases=3)
def unknowns_in_any_order(draw: Draw) -> str:
    """Two or three coupled unknowns whose names are in no alphabetical order, conditions per component."""
    names = draw.turn(["b a", "w p c", "z T A", "v u"]).split()
    place = square(draw)
    xs = place.coordinates
    us = ps.unknowns(" ".join(names), *xs)
    exacts = [smooth(draw.rng, place) for _ in us]

    def operators(*vs):
        return [-ps.laplacian(v, *xs) + (k + 1) * v + vs[(k + 1) % len(vs)].diff(xs[0]) for k, v in enumerate(vs)]

    made = manufacture(
        place,
        us,
        exacts,
        operators,
        pr.conditions(draw.rng, place, us, exacts, kinds=("dirichlet", "robin", "neumann")),
    )
    return right(made, (300, 900), 5e-3)


@family("A4", refused=True, n_cases=6)
def coordinates_in_any_order(draw: Draw) -> str:
    """y, x = coordinates("y x"): parts, implicit domains and coefficients of fluxes go by the problem's coordinates."""
    names, kind = draw.turn(
        [("y x", "named"), ("y x", "flux"), ("z y x", "named"), ("r z", "box"), ("y x", "implicit"), ("x z", "flux")]
    )
    xs = ps.coordinates(names)
    u = ps.unknown("u", *xs)
    place = (pr.ellipse if kind == "implicit" else pr.box)(draw.rng, xs)
    low, high = place.domain.bounds
    if kind == "named":
        normals = {"inlet" if part == "left" else part: n for part, n in place.normals.items()}
        place = replace(place, domain=place.domain.named(inlet=xs[0] <= float(low[0])), normals=normals)
    exact, coefficient = smooth(draw.rng, place), 2 + xs[0] + 3 * xs[1] ** 2
    quantities = {"flux": ps.Flux("left", coefficient=coefficient)} if kind == "flux" else {}
    first = next(iter(place.normals))
    boundary = {"*": ps.Dirichlet(exact), first: pr.condition(draw.rng, place, first, u, exact, "robin")}
    made = manufacture(
        place,
        [u],
        [exact],
        lambda v: -sum((k + 1) * v.diff(s, 2) for k, s in enumerate(xs)),
        boundary,
        quantities=quantities,
    )
    solution = solved(made, 800)
    off = pr.error(made, solution)
    require(off < 5e-3, f'coordinates("{names}"), {kind}: error {off:.2g}')
    if quantities:
        inflow = pr.line_integral(-coefficient * exact.diff(xs[0]), xs, low, (low[0], high[1]))
        return near("flux", solution.quantities["flux"], inflow, 1e-2)
    return f"error {off:.1e}"


# ---- A5: time in coefficients ----------------------------------------------------------------------------------------
@family("A5", refused=True, n_cases=4)
def time_in_coefficients(draw: Draw) -> str:
    """Coefficients that depend on time, in a condition or in the equation, with each integrator."""
    where = draw.turn(["robin", "equation", "eq", "reaction"])
    options = draw.turn([{}, {"step": 0.005}, {"step": 0.01, "integrator": "esdirk4"}])
    place, t = interval(), ps.time()
    (x,) = place.coordinates
    u, exact = ps.unknown("u", x, t), smooth(draw.rng, place, time=t)
    rate = 1 + draw.uniform(0.5, 2) * t
    slope = pr.flux(place, "right", exact)
    boundary = {"left": ps.Dirichlet(exact), "right": ps.Neumann(slope)}
    if where == "robin":
        boundary["right"] = ps.Robin(rate, 1, rate * exact + slope)
    if where == "eq":
        boundary["right"] = ps.Eq(u + rate * u.diff(x), exact + rate * slope)

    def operators(v):
        k = rate if where == "equation" else 1
        return v.diff(t) - 0.5 * k * v.diff(x, 2) + (rate * v if where == "reaction" else 0)

    made = manufacture(place, [u], [exact], operators, boundary, time=t, times=[0, 0.5, 1.0])
    return f"{where} {options}: " + right(made, (60, 120), 2e-3, **options)


# ---- A6: addition theorems -------------------------------------------------------------------------------------------
@family("A6", refused=True, n_cases=8)
def addition_theorems(draw: Draw) -> str:
    """Functions of x - a over wide ranges: separated or not, the coefficient keeps its digits everywhere."""
    function = draw.turn(
        [cosh, exp, lambda z: 2**z, lambda z: exp(-(z**2) / 2), lambda z: 2 + cos(z), lambda z: (z + 3) ** 4]
    )
    length = 40.0 if draw.seed < 12 else float(draw.rng.choice([1.0, 10.0, 30.0, 60.0, 300.0]))
    (x,), (a,) = ps.coordinates("x"), ps.parameters(a=(0.0, 16.0 if draw.seed < 6 else draw.uniform(0.5, 20)))
    place, u = interval(length), ps.unknown("u", x)
    c = function(x - a)
    # the source is not made of c, so that a wrong coefficient shows: u is largest where c is smallest
    shape = smooth(draw.rng, place)
    exact = shape / (1 + c)
    source = shape - exact.diff(x, 2)
    problem = ps.Problem(place.domain, ps.Eq(-u.diff(x, 2) + (1 + c) * u, source), ps.Dirichlet(exact))
    made = pr.Made(problem, {"u": exact}, place)
    # 1 / (1 + c) changes within a length of 1, wherever a puts it: on (0, 300) 800 nodes are too few by themselves (6e-2)
    model = ps.discretize(made.problem, ps.scatter(place.domain, n_nodes=max(800, int(20 * length))))
    worst = 0.0
    for part in (0.02, 0.5, 0.98):
        value = a.low + part * (a.high - a.low)
        worst = max(worst, pr.error(made, model.solve([value]), {a: value}))
    require(worst < 3e-4, f"{c} on (0, {length:g}), a in {a.low:g}, {a.high:g}: error {worst:.1e}")
    return f"{c}: error {worst:.0e}"


@family("A6", n_cases=4)
def parameters_in_every_form(draw: Draw) -> str:
    """Affine or not, products, quotients, powers of parameters and coordinates: the solve at mu is that of mu put in."""
    place = square(draw)
    xs = place.coordinates
    x = xs[0]
    a, k = ps.parameters(a=(0.5, 2.0), k=(0.1, 10.0, "log"))
    forms = [
        (1 + a * x**2, k * (x + a)),
        (1 / (1 + a + x**2), sympy.sqrt(k) * exp(a * x)),
        (exp(-((x - a) ** 2)) + 1, Min(k, 2) + Abs(a - 1)),
        (1 + Piecewise((a, k < 1), (2 * a, True)), (x + a) ** 3 / k),
    ]
    diffusion, reaction = draw.turn(forms)
    u, exact = ps.unknown("u", *xs), smooth(draw.rng, place) * (1 + a / 5) + sympy.log(k) / 5 * x
    boundary = pr.conditions(draw.rng, place, [u], [exact])
    made = manufacture(
        place, [u], [exact], lambda v: -ps.divergence([diffusion * v.diff(s) for s in xs], *xs) + reaction * v, boundary
    )
    model = ps.discretize(made.problem, ps.scatter(place.domain, n_nodes=800))
    worst = 0.0
    for _ in range(3):
        mu = {a: draw.uniform(0.5, 2), k: draw.uniform(0.1, 10)}
        worst = max(worst, pr.error(made, model.solve({"a": mu[a], "k": mu[k]}), mu))
    require(worst < 5e-3, f"{diffusion}, {reaction}: error {worst:.1e}")
    return f"error {worst:.1e}"


# ---- A7: inputs ------------------------------------------------------------------------------------------------------
def _bad_inputs(x, y, u):
    def solve(equation, boundary=None):
        problem = ps.Problem(ps.Box((0, 0), (1, 1)), equation, ps.Dirichlet(x) if boundary is None else boundary)
        return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=200)).solve()

    def missing_comma():
        a = ps.parameters(a=(0, 1))
        return solve(ps.Eq(-a * ps.laplacian(u), 1))

    return {
        "==": lambda: solve(-ps.laplacian(u) == 1),
        "text": lambda: solve("-laplacian(u) = 1"),
        "no equals sign": lambda: solve(["-u.diff(x, 2)", "1"]),
        "missing comma": missing_comma,
        "none": lambda: solve(None),
        "number": lambda: solve(ps.Eq(-ps.laplacian(u), float("nan"))),
        "array": lambda: solve(ps.Eq(-ps.laplacian(u), sympy.Symbol("f"))),
        "condition text": lambda: solve(ps.Eq(-ps.laplacian(u), 1), ps.Dirichlet("x")),
        "condition number": lambda: solve(ps.Eq(-ps.laplacian(u), 1), 0),
        "condition ==": lambda: solve(ps.Eq(-ps.laplacian(u), 1), u == 0),
        "other unknown": lambda: solve(ps.Eq(-ps.laplacian(u), ps.unknown("v", x, y))),
        "u uncalled": lambda: solve(ps.Eq(-ps.laplacian(sympy.Function("u")), 1)),
        "np.array": lambda: solve(ps.Eq(-ps.laplacian(u), 1), ps.Dirichlet(np.array([1.0, 2.0]))),
        "floor": lambda: solve(ps.Eq(-ps.laplacian(u) + floor(u).diff(x), 1)),
    }


_BAD = list(_bad_inputs(*ps.coordinates("x y"), ps.unknown("u", *ps.coordinates("x y"))))


@family("A7", refused=True, n_cases=len(_BAD))
def bad_inputs(draw: Draw) -> str:
    """What cannot be meant is refused in one clear line that names the mistake."""
    x, y = ps.coordinates("x y")
    name = draw.turn(_BAD)
    expected = {
        "==": r"==|Eq",
        "text": "text|string|Eq",
        "missing comma": "comma|tuple|a, *=",
    }.get(name, "")
    try:
        _bad_inputs(x, y, ps.unknown("u", x, y))[name]()
    except ps.ParasolError as refusal:
        require(bool(re.search(expected, str(refusal))), f"{name} is refused for another reason: {refusal}")
        raise
    raise Wrong(f"{name} was accepted")


@family("A7", refused=True, n_cases=3)
def functions_of_numpy(draw: Draw) -> str:
    """np.sin(x), np.exp(u), np.sqrt of an expression: what SymPy's function gives, or a refusal in one line."""
    place = interval()
    (x,) = place.coordinates
    u, exact = ps.unknown("u", x), smooth(draw.rng, place)
    numpys, sympys = draw.turn(
        [
            (lambda v: np.sin(3 * x) * v, lambda v: sin(3 * x) * v),
            (lambda v: np.exp(v), lambda v: exp(v)),
            (lambda v: np.sqrt(1 + v**2), lambda v: sympy.sqrt(1 + v**2)),
        ]
    )
    equation = ps.Eq(-u.diff(x, 2) + numpys(u), -exact.diff(x, 2) + sympys(exact))
    return right(pr.Made(ps.Problem(place.domain, equation, ps.Dirichlet(exact)), {"u": exact}, place), (60, 120), 1e-4)


@family("A7", refused=True, n_cases=4)
def rough_functions_of_the_unknown(draw: Draw) -> str:
    """Abs(u), sign(u), Max(u, c), floor(u): right, or refused in one line."""
    place = interval()
    (x,) = place.coordinates
    u, exact = ps.unknown("u", x), smooth(draw.rng, place) - 1
    term = draw.turn(
        [lambda v: Abs(v - 1) * 3, lambda v: 5 * sign(v - 1), lambda v: Max(v, 1) * 4, lambda v: floor(2 * v)]
    )
    made = manufacture(place, [u], [exact], lambda v: -v.diff(x, 2) + term(v), ps.Dirichlet(exact))
    return right(made, (100, 300), 2e-2)


@family("A7", n_cases=3)
def divergence_form(draw: Draw) -> str:
    """ps.divergence(k * ps.gradient(u)) with a smooth k, in every spelling, is -div(k grad u)."""
    place = square(draw)
    x, y = xs = place.coordinates
    u, exact, k = ps.unknown("u", *xs), smooth(draw.rng, place), 2 + sin(x + 2 * y)
    spelled = draw.turn(
        [
            lambda v: ps.divergence(k * ps.gradient(v)),
            lambda v: ps.divergence([k * g for g in ps.gradient(v)], *xs),
            lambda v: ps.divergence((k * v.diff(x), k * v.diff(y)), x, y),
        ]
    )
    equation = ps.Eq(-spelled(u), -sum((k * exact.diff(s)).diff(s) for s in xs))
    problem = ps.Problem(place.domain, equation, pr.conditions(draw.rng, place, [u], [exact]))
    return right(pr.Made(problem, {"u": exact}, place), (400, 1200), 2e-3)


# ---- beyond the list of the issue ------------------------------------------------------------------------------------
@family("A new", refused=True, n_cases=4)
def unknown_at_other_places(draw: Draw) -> str:
    """An integral of u, or u' at one place, is not u here: right, or refused; integrals over something else are right."""
    (x,), k = ps.coordinates("x"), sympy.Symbol("k")
    u, c = ps.unknown("u", x), draw.uniform(0.5, 2)
    exact = 1 + c * x**2
    term, value = draw.turn(
        [
            (sympy.Integral(u, (x, 0, 1)), 1 + c / 3),
            (u.diff(x).subs(x, 1), 2 * c),
            (sympy.Subs(u.diff(x), x, 0), 0),
            (sympy.Integral(u * k, (k, 0, 1)), exact / 2),
        ]
    )
    problem = ps.Problem(ps.Box(0, 1), ps.Eq(-u.diff(x, 2) + 3 * term, -2 * c + 3 * value), ps.Dirichlet(exact))
    return right(pr.Made(problem, {"u": exact}, interval()), (60, 120), 1e-4)


@family(
    "A new",
    refused=True,
    warned=True,
    n_cases=7,
)
def jumps_in_disguise(draw: Draw) -> str:
    """A conductivity that jumps, or changes within less than the spacing, however it is written."""
    (x,) = ps.coordinates("x")
    s, m = x - draw.uniform(0.3, 0.7, 3), draw.uniform(0.05, 0.3)
    at = -float(s.subs(x, 0))
    steps = [
        s / Abs(s),
        sympy.tanh(1e4 * s),
        2 * sympy.atan2(s, 0) / sympy.pi,
        sympy.erf(1e4 * s),
        Max(-1, Min(1, 1e5 * s)),
        2 / (1 + exp(-1000 * s)) - 1,
        s / sympy.sqrt(s**2),
    ]
    a = (1 + m) / 2 + (1 - m) / 2 * draw.turn(steps)
    c = (0.7 + at**2 / 2 / m + (1 - at**2) / 2) / (at / m + 1 - at)
    left = 0.3 + (c * x - x**2 / 2) / m
    exact = Piecewise((left, x < at), (left.subs(x, at) + c * (x - at) - (x**2 - at**2) / 2, True))
    u = ps.unknown("u", x)
    problem = ps.Problem(ps.Box(0, 1), ps.Eq(-(a * u.diff(x)).diff(x), 1), ps.Dirichlet(exact))
    made = pr.Made(problem, {"u": exact}, interval())
    return right(made, (200,), 2e-2)
