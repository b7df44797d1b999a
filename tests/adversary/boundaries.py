"""Attacks on boundaries and nodes (section B of issue 13)."""

from __future__ import annotations

import numpy as np
import sympy
from sympy import Piecewise, atan2, cos, sin, sqrt

import parasol as ps
from adversary import problems as pr
from adversary.equations import interval
from adversary.families import Draw, family
from adversary.problems import Place, manufacture, near, require, right, smooth, solved


# ---- B1: corners -----------------------------------------------------------------------------------------------------
@family("B1a", n_cases=3)
def corner_normals(draw: Draw) -> str:
    """Sides named as users write them (x > .999 s): part and normal of a corner come from one side."""
    d = 3 if draw.seed % 3 == 2 else 2
    size = draw.turn([1.0, 1.0, 1.0, 1e-3, 1e3])
    place = pr.box(draw.rng, ps.coordinates("x y z"[: 2 * d - 1]), named="tolerance", size=size)
    u, exact = ps.unknown("u", *place.coordinates), smooth(draw.rng, place)
    kinds = {name: "neumann" for name in place.normals} | {"left": "dirichlet"}
    boundary = {part: pr.condition(draw.rng, place, part, u, exact, kind) for part, kind in kinds.items()}
    made = manufacture(place, [u], [exact], lambda v: -ps.laplacian(v, *place.coordinates), boundary)
    return f"{d}-D, size {size:g}: " + right(
        made, (600, 1500) if d == 3 else (1000, 2000, 4000), 5e-3 if d == 3 else 2e-4, every=True
    )


@family("B1a", n_cases=2)
def elastic_corners(draw: Draw) -> str:
    """Plane elasticity, clamped left, pulled on the other sides, sides named with a tolerance: data non-zero everywhere."""
    place = pr.box(draw.rng, ps.coordinates("x y"), named="tolerance")
    x, y = place.coordinates
    us = ps.unknowns("p q", x, y)
    exacts = [smooth(draw.rng, place) for _ in us]
    lam, mu = draw.uniform(0.5, 2), draw.uniform(0.5, 2)

    def stress(p, q):
        trace = lam * (p.diff(x) + q.diff(y))
        shear = mu * (p.diff(y) + q.diff(x))
        return ((trace + 2 * mu * p.diff(x), shear), (shear, trace + 2 * mu * q.diff(y)))

    def operators(p, q):
        return [-row[0].diff(x) - row[1].diff(y) for row in stress(p, q)]

    def pulled(part):  # the normal parasol finds against the one it should be
        m, n = ps.normal(x, y), place.normals[part]
        return [
            ps.Eq(r[0] * m[0] + r[1] * m[1], e[0] * n[0] + e[1] * n[1])
            for r, e in zip(stress(*us), stress(*exacts), strict=True)
        ]

    boundary = {part: pulled(part) for part in ("right", "bottom", "top")} | {"left": [ps.Dirichlet(e) for e in exacts]}
    made = manufacture(place, us, exacts, operators, boundary)
    return right(made, (800, 1600, 2400), 1e-3, every=True)


@family("B1b", n_cases=4)
def normal_in_a_value(draw: Draw) -> str:
    """A condition on values that contains the normal, beside conditions on slopes: Dirichlet(ny g), slip n·u = g."""
    kind = draw.turn(["dirichlet", "slip", "dirichlet 3d", "dirichlet scaled"])
    xs = ps.coordinates("x y z" if kind.endswith("3d") else "x y")
    place = pr.box(draw.rng, xs, size=1e4 if kind.endswith("scaled") else 1.0)
    n = ps.normal(*xs)
    if kind != "slip":
        u, exact = ps.unknown("u", *xs), smooth(draw.rng, place)
        kinds = {part: "neumann" for part in place.normals}
        boundary = {part: pr.condition(draw.rng, place, part, u, exact, k) for part, k in kinds.items()}
        for part, up in (("bottom", -1), ("top", 1)):
            boundary[part] = ps.Dirichlet(n[1] * exact * up)
        made = manufacture(place, [u], [exact], lambda v: -ps.laplacian(v, *xs), boundary)
        return f"{kind}: " + right(made, (500, 1500), 1e-2 if len(xs) == 3 else 1e-3)
    us = ps.unknowns("p q", *xs)
    exacts = [smooth(draw.rng, place) for _ in us]
    slip = ps.Eq(sum(m * v for m, v in zip(n, us, strict=True)), sum(m * v for m, v in zip(n, exacts, strict=True)))
    sides = {
        part: [pr.condition(draw.rng, place, part, v, e, "neumann") for v, e in zip(us, exacts, strict=True)]
        for part in place.normals
    }
    for part in ("bottom", "top"):
        sides[part] = [sides[part][0], slip]
    sides["left"] = [ps.Dirichlet(exacts[0]), sides["left"][1]]
    made = manufacture(place, us, exacts, lambda p, q: [-ps.laplacian(p, *xs) + q, -ps.laplacian(q, *xs) - p], sides)
    return f"{kind}: " + right(made, (500, 1500), 1e-3)


@family("B1", n_cases=6)
def every_side_its_own(draw: Draw) -> str:
    """Random operators with a random condition on every side, on every plane domain, at offsets and scales."""
    shape = draw.turn(pr.PLANE)
    scale = 1.0 if draw.seed < 8 else float(draw.rng.choice([1e-6, 1e-3, 1.0, 1e3, 1e6]))
    offset = 0.0 if draw.seed < 8 else float(draw.rng.choice([0.0, 0.0, 1.0, 100.0, 300.0])) * scale
    place = shape(draw.rng, ps.coordinates("x y"), centre=(offset, -offset / 2), size=scale)
    u, exact = ps.unknown("u", *place.coordinates), smooth(draw.rng, place)
    made = manufacture(place, [u], [exact], pr.operator(draw.rng, place), pr.conditions(draw.rng, place, [u], [exact]))
    return f"{shape.__name__} of size {scale:g} at {offset:g}: " + right(made, (500, 1800), 2e-3, slope=2.0)


@family("B1", n_cases=3)
def every_face_its_own(draw: Draw) -> str:
    """The same in space, on boxes and balls, and in one dimension."""
    shape = draw.turn([pr.box, pr.ball, interval])
    if shape is interval:
        place = interval(draw.turn([1.0, 1e-6, 1e6]))
    else:
        place = shape(draw.rng, ps.coordinates("x y z"), size=float(draw.turn([1.0, 1.0, 1.0, 1e5, 1e-5])))
    u, exact = ps.unknown("u", *place.coordinates), smooth(draw.rng, place, gentle=0.7)
    made = manufacture(place, [u], [exact], pr.operator(draw.rng, place), pr.conditions(draw.rng, place, [u], [exact]))
    return f"{shape.__name__} of size {place.size:g}: " + right(
        made, (600, 2000), 1e-2 if len(place.coordinates) == 3 else 1e-5
    )


@family("B1", n_cases=2)
def systems_with_mixed_conditions(draw: Draw) -> str:
    """Coupled systems, another kind of condition for each unknown on each side."""
    place = draw.turn(pr.PLANE)(draw.rng, ps.coordinates("x y"))
    xs = place.coordinates
    us = ps.unknowns("a b c"[: 2 * int(draw.rng.integers(2, 4)) - 1], *xs)
    exacts = [smooth(draw.rng, place) for _ in us]
    parts = [pr.operator(draw.rng, place) for _ in us]

    def operators(*vs):
        return [
            op(v) + vs[k - 1].diff(xs[k % 2]) / 2 + vs[k - 1] for k, (op, v) in enumerate(zip(parts, vs, strict=True))
        ]

    made = manufacture(place, us, exacts, operators, pr.conditions(draw.rng, place, us, exacts))
    return right(made, (500, 1500), 5e-3)


# ---- B2: thin walls --------------------------------------------------------------------------------------------------
def two_rooms(draw: Draw, d: int, width: float) -> Place:
    """A box cut in two by a slit."""
    xs = ps.coordinates("x y z"[: 2 * d - 1])
    at = draw.uniform(0.4, 0.6)
    low, high = at - width / 2, at + width / 2
    if d == 1:
        domain = ps.Box(0, 1) - ps.Box(low, high).named("slit")
    else:
        wall = ps.Box((low, *[-1] * (d - 1)), (high, *[2] * (d - 1))).named("slit")
        domain = ps.Box((0,) * d, (1,) * d) - wall
    x = xs[0]
    out = Piecewise((1, x < at), (-1, True))
    names = (("left", "right"), ("bottom", "top"), ("back", "front"))[:d]
    normals = {
        n: tuple(s if i == axis else 0 for i in range(d))
        for axis, pair in enumerate(names)
        for n, s in zip(pair, (-1, 1), strict=True)
    }
    return Place(domain, xs, normals | {"slit": (out, *[0] * (d - 1))}, (0.5,) * d, 0.5), at


@family("B2", refused=True, n_cases=6)
def slits(draw: Draw) -> str:
    """Two rooms with a slit thinner than the spacing between them, another solution in each."""
    d, width, kind = draw.turn(
        [
            (1, 0.01, "dirichlet"),
            (2, 0.02, "neumann"),
            (3, 0.02, "neumann"),
            (2, 0.01, "robin"),
            (2, 0.005, "neumann"),
            (1, 0.003, "neumann"),
        ]
    )
    if draw.seed > 5:
        width = 10 ** draw.uniform(-4, -1)
    place, at = two_rooms(draw, d, width)
    x = place.coordinates[0]
    one, other = smooth(draw.rng, place), 3 - smooth(draw.rng, place)
    u = ps.unknown("u", *place.coordinates)

    def sides(part):
        a, b = (
            pr.condition(np.random.default_rng(1), place, part, u, e, k)
            for e, k in ((one, kinds[part]), (other, kinds[part]))
        )
        join = lambda p, q: Piecewise((p, x < at), (q, True))  # noqa: E731
        if kinds[part] == "robin":
            return ps.Robin(a.alpha, a.beta, join(a.value, b.value))
        return type(a)(join(a.value, b.value))

    kinds = {part: "dirichlet" for part in place.normals} | {"slit": kind}
    operators = pr.operator(draw.rng, place)
    source = Piecewise((operators(one), x < at), (operators(other), True))
    problem = ps.Problem(place.domain, ps.Eq(operators(u), source), {part: sides(part) for part in place.normals})
    made = pr.Made(problem, {"u": Piecewise((one, x < at), (other, True))}, place)
    counts = {1: (30, 60), 2: (500, 1200), 3: (600, 1000)}[d]
    return f"{d}-D, width {width:.2g}, {kind}: " + right(made, counts, {1: 1e-3, 2: 5e-3, 3: 5e-2}[d], every=True)


@family("B2", refused=True, n_cases=3)
def baffles(draw: Draw) -> str:
    """A thin wall that ends inside the box: r^(k/2) jumps across it and is smooth but for the tip."""
    d, k = draw.turn([(2, 3), (2, 5), (3, 3)])
    width, tip = draw.turn([0.01, 0.01, 0.02]), draw.uniform(0.4, 0.6)
    xs = ps.coordinates("x y z"[: 2 * d - 1])
    x, y = xs[:2]
    wall = ps.Box((0.5 - width / 2, -1, *[-1] * (d - 2)), (0.5 + width / 2, tip, *[2] * (d - 2))).named("baffle")
    domain = ps.Box((0,) * d, (1,) * d) - wall
    radius = sqrt((x - 0.5) ** 2 + (y - (tip - width)) ** 2)
    angle = atan2(x - 0.5, y - (tip - width))  # from straight up, jumping straight down, inside the wall
    exact = 2 + x + radius ** sympy.Rational(k, 2) * sin(sympy.Rational(k, 2) * angle) * 2
    u = ps.unknown("u", *xs)
    problem = ps.Problem(
        domain,
        ps.Eq(-ps.laplacian(u), 0),
        {"baffle": ps.Neumann(_slope(exact, x, y, width, tip)), "*": ps.Dirichlet(exact)},
    )
    made = pr.Made(problem, {"u": exact}, Place(domain, xs, {}, (0.5,) * d, 0.5))
    # in space 2000 nodes are four widths apart, too far for a solution that turns around a tip one width across: 13 %
    return f"{d}-D, width {width}: " + right(made, (2000 if d == 2 else 6000,), 6e-2)


def _slope(exact, x, y, width, tip):
    """n·grad u on the wall, n into it: its sides are upright, its end is flat."""
    return Piecewise((-exact.diff(y), y > tip - 1e-9), (exact.diff(x), x < 0.5), (-exact.diff(x), True))


@family("B2", refused=True, n_cases=2)
def neighbouring_holes(draw: Draw) -> str:
    """Two round holes with a thin bridge between them, and a hole near the rim: conditions on slopes."""
    x, y = xs = ps.coordinates("x y")
    gap, r = draw.turn([0.02, 0.05]), 0.3
    a, b = r + gap / 2, -r - gap / 2
    domain = ps.Box((-1, -1), (1, 1)) - ps.Disc((a, 0.1), r).named("one") - ps.Disc((b, 0.1), r).named("two")
    normals = {"one": ((a - x) / r, (0.1 - y) / r), "two": ((b - x) / r, (0.1 - y) / r)}
    normals |= {"left": (-1, 0), "right": (1, 0), "bottom": (0, -1), "top": (0, 1)}
    place = Place(domain, xs, normals, (0.0, 0.0), 1.0)
    u, exact = ps.unknown("u", x, y), smooth(draw.rng, place)
    boundary = {"*": ps.Dirichlet(exact)} | {
        h: pr.condition(draw.rng, place, h, u, exact, "robin") for h in ("one", "two")
    }
    made = manufacture(place, [u], [exact], lambda v: -ps.laplacian(v, x, y), boundary)
    return f"bridge {gap}: " + right(made, (600, 1500), 1e-2)


# ---- B3: surfaces ----------------------------------------------------------------------------------------------------
def _cube(centre, half, inward=False):
    corners = np.array([(i, j, k) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)], dtype=float) * half + np.asarray(
        centre
    )
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    triangles = [t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))]
    return corners, np.array([t[::-1] for t in triangles] if inward else triangles)


@family("B3", refused=True, n_cases=6)
def surfaces_of_several_components(draw: Draw) -> str:
    """Cubes beside, inside and across one another, facing either way: the solid they mean, or a refusal."""
    kind = draw.turn(["beside inward", "cavity outward", "overlapping", "beside", "cavity", "all inward"])
    size = draw.turn([1.0, 1.0, 1e3, 1e-3])
    inner = draw.uniform(0.3, 0.4)
    second = {
        "beside": ((3, 0, 0), 0.8),
        "cavity": ((0.1, 0, 0), inner),
        "overlap": ((1, 0.5, 0), 0.8),
        "all": ((3, 0, 0), 0.8),
    }
    centre, half = next(v for key, v in second.items() if kind.startswith(key))
    flips = {
        "beside inward": (False, True),
        "cavity outward": (False, False),
        "cavity": (False, True),
        "all inward": (True, True),
    }.get(kind, (False, False))
    (v1, t1), (v2, t2) = _cube((0, 0, 0), 1.0, flips[0]), _cube(centre, half, flips[1])
    domain = ps.Surface((np.vstack([v1, v2]) * size, np.vstack([t1, t2 + 8])))
    volume = {"c": 8 - 8 * half**3, "b": 8 + 8 * half**3, "a": 8 + 8 * half**3, "o": 8 + 8 * 0.512 - 0.8 * 1.3 * 1.6}[
        kind[0]
    ]
    near("volume", domain.volume() / size**3, volume, 1e-6)
    xs = ps.coordinates("x y z")
    u = ps.unknown("u", *xs)
    place = Place(domain, xs, {}, (0.0, 0.0, 0.0), size)
    exact = smooth(draw.rng, place, gentle=0.5)
    problem = ps.Problem(
        domain,
        ps.Eq(-ps.laplacian(u), -ps.laplacian(exact, *xs)),
        ps.Dirichlet(exact),
        quantities={"volume": ps.Integral()},
    )
    made = pr.Made(problem, {"u": exact}, place)
    solution = solved(made, 800)
    off = pr.error(made, solution)
    require(off < 2e-2, f"{kind}: error {off:.1e}")
    near("weights", float(solution.model.quantities.rows.sum()) / size**3, volume, 5e-2)
    points = solution.model.nodes.points / size
    both = [np.max(np.abs(points - np.asarray(c)), axis=1) < h - 1e-6 for c, h in (((0, 0, 0), 1.0), (centre, half))]
    wanted = both[0] & ~both[1] if kind[0] == "c" else both[0] | both[1]
    inside = np.zeros(len(points), dtype=bool)
    inside[: solution.model.nodes.n_interior] = True
    require(bool(np.all(wanted[inside])), f"{kind}: {np.sum(~wanted[inside])} interior nodes lie outside the solid")
    if kind[0] in "ba":
        require(bool(np.any(both[1][inside])), f"{kind}: no node in the second cube")
    return f"{kind}: error {off:.1e}"


# ---- B4, B5, B6: quantities and parts --------------------------------------------------------------------------------
@family("B4", n_cases=2)
def fluxes_over_all_faces(draw: Draw) -> str:
    """∫ n·grad u over a box in space is ∫ Δu inside; over each face by Gauss's rule."""
    xs = ps.coordinates("x y z")
    place = pr.box(draw.rng, xs, size=float(draw.turn([1.0, 100.0])))
    u, exact = ps.unknown("u", *xs), smooth(draw.rng, place, gentle=0.7)
    names, some = tuple(place.normals), ("right", "bottom")
    quantities = {"all": ps.Flux()} | {part: ps.Flux(part) for part in some} | {f"in {p}": ps.Integral(p) for p in some}
    made = manufacture(place, [u], [exact], lambda v: -ps.laplacian(v, *xs), ps.Dirichlet(exact), quantities=quantities)
    got = solved(made, 1000).quantities
    size = sum(abs(_face(exact, place, p)) for p in names)
    for part in some:
        near(f"flux {part}", got[part], _face(exact, place, part), 2e-2, size / 6)
        near(f"integral {part}", got[f"in {part}"], _face(exact, place, part, value=True), 2e-2)
    return near("flux", got["all"], sum(_face(exact, place, p) for p in names), 1e-2, size / 2)


def _face(exact, place, part, value=False):
    """The flux, or the integral, over one face of a box."""
    low, high = (np.array(b, dtype=float) for b in place.domain.bounds)
    axis = next(i for i, n in enumerate(place.normals[part]) if n)
    end = high if place.normals[part][axis] > 0 else low
    low[axis] = high[axis] = end[axis]
    return pr.box_integral(exact if value else pr.flux(place, part, exact), place.coordinates, low, high)


@family("B5", n_cases=4)
def parts_inside_an_arc_or_edge(draw: Draw) -> str:
    """Quantities over parts that begin in the middle of an arc or of an edge."""
    kind = draw.turn(["disc", "edge", "disc", "polygon"])
    x, y = xs = ps.coordinates("x y")
    size = float(draw.turn([1.0, 1.0, 1e3]))
    u, cut = ps.unknown("u", x, y), draw.uniform(-0.55, 0.65) * size
    if kind == "disc":
        domain = ps.Disc((0, 0), size).named(heated=x > cut)
        angle = float(np.arccos(cut / size))
        place = Place(domain, xs, {}, (0.0, 0.0), size)
        exact = smooth(draw.rng, place)
        slope = (x * exact.diff(x) + y * exact.diff(y)) / size
        flux, integral = (pr.arc_integral(e, xs, (0, 0), size, -angle, angle) for e in (slope, exact))
        length = 2 * angle * size
    else:
        corners = [(-size, -size), (size, -size), (size, size), (-size, size)]
        domain = ps.Box(corners[0], corners[2]) if kind == "edge" else ps.Polygon(corners)
        domain = domain.named(heated=sympy.And(y <= -size, x > cut))
        place = Place(domain, xs, {}, (0.0, 0.0), size)
        exact, length = smooth(draw.rng, place), size - cut
        flux, integral = (pr.line_integral(e, xs, (cut, -size), (size, -size)) for e in (-exact.diff(y), exact))
    quantities = {"flux": ps.Flux("heated"), "integral": ps.Integral("heated"), "mean": ps.Average("heated")}
    made = manufacture(place, [u], [exact], lambda v: -ps.laplacian(v, *xs), ps.Dirichlet(exact), quantities=quantities)
    for n in (300, 500, 800):
        got = solved(made, n).quantities
        near(f"{kind} from {cut:g}, n={n}: integral", got["integral"], integral, 1e-4, length)
        near("mean", got["mean"], integral / length, 1e-4)
        said = near(f"{kind} from {cut:g}, n={n}: flux", got["flux"], flux, 5e-4, length / size)
    return said


@family("B5", warned=True, n_cases=2)
def data_that_jump_on_an_edge(draw: Draw) -> str:
    """Dirichlet data that jump in the middle of an edge: the angle around that place is harmonic."""
    x, y = xs = ps.coordinates("x y")
    cut = draw.uniform(-0.5, 0.5, 3)
    domain = ps.Box((-1, 0), (1, 1)).named(heated=sympy.And(y <= 0, x > cut))
    angle = atan2(y, x - cut) / sympy.pi
    exact = 1 + x / 2 + angle
    u = ps.unknown("u", x, y)
    boundary = {"heated": ps.Dirichlet(1 + x / 2), "bottom": ps.Dirichlet(2 + x / 2), "*": ps.Dirichlet(exact)}
    problem = ps.Problem(domain, ps.Eq(-ps.laplacian(u), 0), boundary)
    off = []
    for n in (500, 1500, 4000):
        solution = ps.discretize(problem, ps.scatter(domain, n_nodes=n)).solve()
        points = solution.model.nodes.points
        far = np.hypot(points[:, 0] - cut, points[:, 1]) > 0.3
        off.append(float(np.max(np.abs(solution.values - pr.values(exact, xs, points.T))[far])))
    said = f"jump at {cut}: errors beyond 0.3 of it " + ", ".join(f"{e:.1e}" for e in off)
    require(off[-1] < 5e-3 and off[1] < 2e-2, said)
    return said


@family("B6", n_cases=4)
def parts_at_every_scale(draw: Draw) -> str:
    """Conditions of any dimension (a product of coordinates, an angle) name the same part at every scale."""
    s = float(draw.turn([1e-8, 1e9, 1e-5, 1e6]))
    x, y = xs = ps.coordinates("x y")
    kinds = [
        (x * y > 0.2 * s**2, 2 * (np.pi / 2 - np.arcsin(0.4))),
        (atan2(y, x) > 1, np.pi - 1),
        (x**2 > 0.5 * s**2, np.pi),
        (x**3 * y > 0.1 * s**4, None),
    ]
    condition, angle = draw.turn(kinds)
    if angle is None:
        theta = (np.arange(10**5) + 0.5) * 2 * np.pi / 10**5
        angle = float(np.mean(np.cos(theta) ** 3 * np.sin(theta) > 0.1) * 2 * np.pi)
    domain = ps.Disc((0, 0), s).named(part=condition)
    u = ps.unknown("u", x, y)
    place = Place(domain, xs, {"part": (x / s, y / s), "boundary": (x / s, y / s)}, (0.0, 0.0), s)
    exact = smooth(draw.rng, place)
    boundary = {"part": ps.Dirichlet(exact), "boundary": pr.condition(draw.rng, place, "boundary", u, exact, "neumann")}
    made = manufacture(
        place, [u], [exact], lambda v: -ps.laplacian(v, *xs), boundary, quantities={"length": ps.Integral("part")}
    )
    solution = solved(made, 500)
    off = pr.error(made, solution)
    near(f"{condition}: length", float(solution.model.quantities.rows.sum()) / s, angle, 1e-2)
    on = np.mean(solution.model.nodes.on_part[:, 0])
    near(f"{condition}: boundary nodes", float(on), angle / 2 / np.pi, 0.1)
    require(off < 1e-3, f"{condition}: error {off:.1e}")
    return f"{condition}: error {off:.1e}"


# ---- B7, B8 ----------------------------------------------------------------------------------------------------------
@family("B7", refused=True, n_cases=4)
def natural_condition_at_a_notch(draw: Draw) -> str:
    """Box minus a quarter, slopes given on the notch, r^(2/3): the estimate sees the error, or it is said."""
    x, y = xs = ps.coordinates("x y")
    (m,) = ps.parameters(m=(1.0, 2.0))
    u = ps.unknown("u", x, y)
    domain = ps.Box((-1, -1), (1, 1)) - ps.Box((0, -2), (2, 0)).named("notch")
    angle = atan2(y, x)  # from 0 (the notch's top) to 3π/2, shifted so that the cut is in the notch
    angle = Piecewise((angle, angle >= 0), (angle + 2 * sympy.pi, True))
    exact = (x**2 + y**2) ** sympy.Rational(1, 3) * cos(2 * angle / 3) / m
    problem = ps.Problem(domain, ps.Eq(-m * ps.laplacian(u), 0), {"notch": ps.Neumann(0), "*": ps.Dirichlet(exact)})
    return pr.estimated(problem, exact, xs, m, limit=1e-2, n_nodes=(500, 1000, 2000)[draw.seed % 3], rng=draw.seed)


@family("B8", refused=True, n_cases=4)
def one_sided_in_space(draw: Draw) -> str:
    """neumann="one-sided" on a box in space: as good for every seed of the nodes, or refused."""
    xs = ps.coordinates("x y z")
    place = pr.box(draw.rng, xs)
    u, exact = ps.unknown("u", *xs), smooth(draw.rng, place, gentle=0.7)
    boundary = {part: pr.condition(draw.rng, place, part, u, exact, "neumann") for part in place.normals} | {
        "left": ps.Dirichlet(exact)
    }
    made = manufacture(place, [u], [exact], lambda v: -ps.laplacian(v, *xs), boundary)
    errors = [pr.error(made, solved(made, 1500, rng=4 * draw.seed + k, neumann="one-sided")) for k in range(4)]
    said = "errors " + ", ".join(f"{e:.1e}" for e in errors)
    require(max(errors) < 5e-3, said)
    return said


@family("B8", n_cases=3)
def lattices(draw: Draw) -> str:
    """A lattice with slopes all around, in every dimension, is solved."""
    d = draw.turn([3, 2, 1])
    place = pr.box(draw.rng, ps.coordinates("x y z"[: 2 * d - 1]))
    u, exact = ps.unknown("u", *place.coordinates), smooth(draw.rng, place, gentle=0.7)
    boundary = {part: pr.condition(draw.rng, place, part, u, exact, "neumann") for part in place.normals}
    made = manufacture(place, [u], [exact], lambda v: v - ps.laplacian(v, *place.coordinates), boundary)
    nodes = ps.lattice(place.domain, {1: 80, 2: 24, 3: 10}[d])
    off = pr.error(made, solved(made, 0, nodes=nodes))
    require(off < 1e-2, f"{d}-D: error {off:.1e}")
    return f"{d}-D: error {off:.1e}"


@family("B8", n_cases=2, refused=True)
def cylinders(draw: Draw) -> str:
    """A cylinder cut to length by a box, with the same conditions on mantle and ends: right, or refused with other advice."""
    xs = ps.coordinates("x y z")
    x, y = xs[:2]
    tall = draw.turn([1.0, 2.0])
    domain = ps.Implicit(x**2 + y**2 - 1, ((-1.2, -1.2, -tall - 0.5), (1.2, 1.2, tall + 0.5))) & ps.Box(
        (-2, -2, -tall), (2, 2, tall)
    )
    place = Place(domain, xs, {}, (0.0, 0.0, 0.0), 1.5)
    u, exact = ps.unknown("u", *xs), smooth(draw.rng, place, gentle=0.6)
    made = manufacture(
        place, [u], [exact], lambda v: -ps.laplacian(v, *xs), ps.Dirichlet(exact), quantities={"one": ps.Integral()}
    )
    solution = solved(made, 1200)
    near("volume", float(solution.model.quantities.rows.sum()), 2 * np.pi * tall, 2e-2)
    off = pr.error(made, solution)
    require(off < 1e-2, f"error {off:.1e}")
    return f"error {off:.1e}"


@family("B", n_cases=2)
def integrals_over_domains(draw: Draw) -> str:
    """Averages and integrals over the inside of plane domains, at offsets and scales, against Green's theorem."""
    shape = draw.turn([pr.disc, pr.box, pr.annulus, pr.box_with_hole])
    size = float(draw.turn([1.0, 1e-3, 1e3]))
    place = shape(draw.rng, ps.coordinates("x y"), centre=(size * 3, size), size=size)
    xs = place.coordinates
    u, exact = ps.unknown("u", *xs), smooth(draw.rng, place)
    made = manufacture(
        place,
        [u],
        [exact],
        lambda v: -ps.laplacian(v, *xs),
        ps.Dirichlet(exact),
        quantities={"one": ps.Integral(), "all": ps.Flux()},
    )
    coarse, fine = (solved(made, n) for n in (400, 1600))
    # ∫ Δu inside is the flux through the boundary: two roads that share no weights
    laplacian = pr.values(ps.laplacian(exact, *xs), xs, fine.model.nodes.points.T)
    inside = float(fine.model.quantities.rows[0] @ laplacian)
    scale = float(np.sum(np.abs(fine.model.quantities.rows[0] * laplacian)))
    near("coarse", coarse.quantities["one"], fine.quantities["one"], 1e-3)
    return near("flux", fine.quantities["all"], inside, 2e-3, scale)


# ---- beyond the list of the issue ------------------------------------------------------------------------------------
@family(
    "B new",
    warned=True,
    refused=True,
    n_cases=2,
)
def small_holes_in_space(draw: Draw) -> str:
    """A hole smaller than the spacing, with a condition on slopes: right, or said."""
    xs = ps.coordinates("x y z")
    x = xs[0]
    r, centre = draw.turn([0.1, 0.04]), (0.3, 0.1, draw.uniform(-0.2, 0.2))
    domain = ps.Ball((0, 0, 0), 1.0) - ps.Ball(centre, r).named("hole")
    away = [v - c for v, c in zip(xs, centre, strict=True)]
    exact = 1 + x / 2 + r / sqrt(sum(a**2 for a in away))
    slope = -sum(a / r * exact.diff(v) for a, v in zip(away, xs, strict=True))
    u = ps.unknown("u", *xs)
    problem = ps.Problem(domain, ps.Eq(-ps.laplacian(u), 0), {"hole": ps.Neumann(slope), "*": ps.Dirichlet(exact)})
    return right(pr.Made(problem, {"u": exact}, Place(domain, xs, {}, (0.0,) * 3, 1.0)), (1000,), 0.1)


@family(
    "B new",
    refused=True,
    warned=True,
    n_cases=4,
)
def kernels_that_do_not_fit(draw: Draw) -> str:
    """Kernels narrower than the spacing, polynomials below the order of the operator: right, refused or said."""
    options = draw.turn(
        [
            {"kernel": ps.space.Gaussian(100.0)},
            {"degree": 1},
            {"kernel": ps.space.IMQ(1e3)},
            {"kernel": ps.space.Wendland(100.0)},
        ]
    )
    place = pr.box(draw.rng, ps.coordinates("x y"))
    u, exact = ps.unknown("u", *place.coordinates), smooth(draw.rng, place)
    made = manufacture(place, [u], [exact], lambda v: -ps.laplacian(v, *place.coordinates), ps.Dirichlet(exact))
    return f"{options}: " + right(made, (400, 1600), 5e-3, **options)


@family("B new", n_cases=3)
def anywhere_in_the_domain(draw: Draw) -> str:
    """solution.at and PointValue between the nodes, up to the boundary, and beside a thin wall."""
    kind = draw.turn(["l", "slit", "disc"])
    if kind == "slit":
        place, at = two_rooms(draw, 2, 0.02)
        x, y = place.coordinates
        exact = Piecewise((1 + x + y**2 - x**2, x < at), (5 - y + x * y, True))
    else:
        place = (pr.l_shape if kind == "l" else pr.disc)(draw.rng, ps.coordinates("x y"))
        exact = smooth(draw.rng, place)
    xs = place.coordinates
    u = ps.unknown("u", *xs)
    points = draw.rng.uniform(*place.domain.bounds, (2000, 2))
    points = points[place.domain.contains(points)]
    problem = ps.Problem(
        place.domain,
        ps.Eq(-ps.laplacian(u), -ps.laplacian(exact, *xs)),
        ps.Dirichlet(exact),
        quantities={"p": ps.PointValue(tuple(points[0]))},
    )
    solution = solved(pr.Made(problem, {"u": exact}, place), 800)
    wanted = pr.values(exact, xs, points.T)
    off = pr.deviation(solution.at(points), wanted)
    require(off < 1e-3, f"{kind}: {off:.1e} between the nodes")
    near("point", solution.quantities["p"], float(wanted[0]), 1e-3)
    return f"{kind}: {off:.1e}"
