"""Random problems whose solution is known: domains with their normals, operators, data derived by SymPy, errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import sympy

import parasol as ps


class Wrong(AssertionError):
    """A wrong answer, or a right problem that was turned away."""


@dataclass(frozen=True)
class Place:
    """A domain with what is known of it without parasol: the outward normal on each part, its centre and its size."""

    domain: ps.space.Domain
    coordinates: tuple[sympy.Symbol, ...]
    normals: Mapping[str, tuple]  # part -> components, as expressions in the coordinates
    centre: tuple[float, ...]
    size: float
    flat: bool = True  # whether each part is straight: then a jump of the normal from part to part matters

    @property
    def relative(self) -> tuple[sympy.Expr, ...]:
        """Coordinates from about -1 to 1."""
        return tuple((v - c) / self.size for v, c in zip(self.coordinates, self.centre, strict=True))


@dataclass(frozen=True)
class Made:
    """A problem with its exact solution by name of the unknown."""

    problem: ps.Problem
    exact: Mapping[str, sympy.Expr]
    place: Place
    time: sympy.Symbol | None = None
    options: dict = field(default_factory=dict)


# ---- domains ---------------------------------------------------------------------------------------------------------
def box(rng, coordinates, *, centre=None, size=1.0, named: str | None = None) -> Place:
    """A box of random proportions; `named` is None (its own names) or "tolerance": sides as x > .999 s names them."""
    d = len(coordinates)
    half = size * np.round(rng.uniform(0.7, 1.0, d), 2)
    centre = np.zeros(d) if centre is None else np.broadcast_to(centre, d)
    domain = ps.Box(tuple(centre - half), tuple(centre + half))
    names = (("left", "right"), ("bottom", "top"), ("back", "front"))
    normals = {}
    for axis in range(d):
        for name, sign in zip(names[axis], (-1, 1), strict=True):
            normals[name] = tuple(sign if i == axis else 0 for i in range(d))
    if named == "tolerance":  # as users write it: the expression also holds on a sliver of the neighbouring sides
        x = coordinates[0]
        low, high = float(centre[0] - half[0]), float(centre[0] + half[0])
        sliver = float(rng.choice([0.0005, 0.005] if d == 2 else [0.005, 0.02])) * (high - low)
        domain = domain.named(left=x < low + sliver, right=x > high - sliver)
    return Place(domain, coordinates, normals, tuple(map(float, centre)), size)


def disc(rng, coordinates, *, centre=(0.0, 0.0), size=1.0, cut: bool = True) -> Place:
    """A disc whose right cap has a name of its own."""
    (x, y), (a, b) = coordinates, centre
    domain = ps.Disc(tuple(centre), size)
    out = ((x - a) / size, (y - b) / size)
    normals = {"boundary": out}
    if cut:
        domain = domain.named(cap=x > a + size * round(float(rng.uniform(-0.5, 0.6)), 2))
        normals = {"cap": out, "boundary": out}
    return Place(domain, coordinates, normals, tuple(centre), size, flat=False)


def annulus(rng, coordinates, *, centre=(0.0, 0.0), size=1.0) -> Place:
    """A disc with an eccentric hole that has a name."""
    (x, y), (a, b) = coordinates, centre
    r = size * round(float(rng.uniform(0.25, 0.4)), 2)
    p, q = a + 0.2 * size, b - 0.1 * size
    domain = ps.Disc(tuple(centre), size) - ps.Disc((p, q), r).named("hole")
    normals = {"boundary": ((x - a) / size, (y - b) / size), "hole": ((p - x) / r, (q - y) / r)}
    return Place(domain, coordinates, normals, tuple(centre), size, flat=False)


def star(rng, coordinates, *, centre=(0.0, 0.0), size=1.0) -> Place:
    """A star r(θ) = s (1 + a cos(kθ + b)); the normal by its formula."""
    (x, y), (p, q) = coordinates, centre
    a, k, b = round(float(rng.uniform(0.05, 0.15)), 2), int(rng.integers(2, 6)), round(float(rng.uniform(0, 6)), 2)
    domain = ps.Star(f"{size!r}*(1 + {a}*cos({k}*theta + {b}))", center=tuple(centre))
    angle = sympy.atan2(y - q, x - p)
    level = sympy.sqrt((x - p) ** 2 + (y - q) ** 2) - size * (1 + a * sympy.cos(k * angle + b))
    gradient = [level.diff(v) for v in (x, y)]
    length = sympy.sqrt(sum(g**2 for g in gradient))
    normals = {"boundary": tuple(g / length for g in gradient)}
    return Place(domain, coordinates, normals, tuple(centre), 1.15 * size, flat=False)


def ellipse(rng, coordinates, *, centre=(0.0, 0.0), size=1.0) -> Place:
    """An implicit ellipse, written in the coordinates of the problem."""
    (x, y), (p, q) = coordinates, centre
    a, b = size, size * round(float(rng.uniform(0.5, 0.8)), 2)
    level = ((x - p) / a) ** 2 + ((y - q) / b) ** 2 - 1
    domain = ps.Implicit(level, ((p - 1.1 * a, q - 1.1 * a), (p + 1.1 * a, q + 1.1 * a)))
    gradient = [level.diff(v) for v in (x, y)]
    length = sympy.sqrt(sum(g**2 for g in gradient))
    normals = {"boundary": tuple(g / length for g in gradient)}
    return Place(domain, coordinates, normals, tuple(centre), size, flat=False)


def polygon(rng, coordinates, *, centre=(0.0, 0.0), size=1.0, corners: int | None = None) -> Place:
    """A convex polygon with every side named by its distance from the line."""
    n = corners or int(rng.integers(3, 7))
    angles = np.sort(2 * np.pi * (np.arange(n) + rng.uniform(-0.2, 0.2, n)) / n)
    vertices = np.round(np.stack([np.cos(angles), np.sin(angles)], 1), 2) * size + np.asarray(centre)
    return sides_named(ps.Polygon(vertices.tolist()), vertices, coordinates, centre, size)


def l_shape(rng, coordinates, *, centre=(0.0, 0.0), size=1.0) -> Place:
    """A re-entrant corner, every side named."""
    vertices = np.array([(-1, -1), (1, -1), (1, 0.1), (0.2, 0.1), (0.2, 1), (-1, 1)]) * size + np.asarray(centre)
    return sides_named(ps.Polygon(vertices.tolist()), vertices, coordinates, centre, size)


def sides_named(domain, vertices, coordinates, centre, size) -> Place:
    """Names side0, side1, ... for the sides of a counterclockwise polygon, by expressions with a small tolerance."""
    x, y = coordinates
    names, normals = {}, {}
    for k, (a, b) in enumerate(zip(vertices, np.roll(vertices, -1, axis=0), strict=True)):
        along = (b - a) / np.linalg.norm(b - a)
        nx, ny = float(along[1]), float(-along[0])
        off = nx * (x - float(a[0])) + ny * (y - float(a[1]))
        at = float(along[0]) * (x - float(a[0])) + float(along[1]) * (y - float(a[1]))
        end = float(np.linalg.norm(b - a))
        near = 1e-6 * size
        names[f"side{k}"] = sympy.And(off > -near, off < near, at > -near, at < end + near)
        normals[f"side{k}"] = (nx, ny)
    last = f"side{len(vertices) - 1}"
    names.pop(last)  # what is not named keeps its name
    normals["boundary"] = normals.pop(last)
    named = domain.named(**names)
    return Place(named, coordinates, normals, tuple(centre), size)


def box_with_hole(rng, coordinates, *, centre=(0.0, 0.0), size=1.0) -> Place:
    """A box with a round hole."""
    (x, y), (p, q) = coordinates, centre
    r = size * round(float(rng.uniform(0.2, 0.45)), 2)
    outer = box(rng, coordinates, centre=centre, size=size)
    domain = outer.domain - ps.Disc((p, q), r).named("hole")
    return Place(domain, coordinates, {**outer.normals, "hole": ((p - x) / r, (q - y) / r)}, tuple(centre), size)


def ball(rng, coordinates, *, centre=(0.0, 0.0, 0.0), size=1.0) -> Place:
    """A ball with a named cap."""
    out = tuple((v - c) / size for v, c in zip(coordinates, centre, strict=True))
    domain = ps.Ball(tuple(centre), size).named(cap=coordinates[2] > centre[2] + 0.3 * size)
    return Place(domain, coordinates, {"cap": out, "boundary": out}, tuple(centre), size, flat=False)


PLANE = (box, disc, annulus, star, ellipse, polygon, l_shape, box_with_hole)


# ---- solutions, operators, conditions --------------------------------------------------------------------------------
def smooth(rng, place: Place, *, time=None, gentle: float = 1.0) -> sympy.Expr:
    """A smooth function that is nowhere the same: no zero data, no symmetry; of size 1 to 3."""
    xi = place.relative

    def wave(low, high):
        return sum(round(float(rng.uniform(low, high)) * float(rng.choice([-1, 1])), 2) * v for v in xi)

    shift = round(float(rng.uniform(0, 6)), 2)
    out = round(float(rng.uniform(1.5, 2.5)), 2) + wave(0.2, 0.6)
    moves = 0 if time is None else round(float(rng.uniform(0.5, 2)), 2) * time
    out += sympy.sin(gentle * wave(0.8, 1.8) + shift + moves) + 0.5 * sympy.exp(gentle * wave(0.3, 0.8) - moves / 2)
    return out


def operator(rng, place: Place, *, cross: bool = True) -> Callable[[sympy.Expr], sympy.Expr]:
    """A random elliptic operator with variable coefficients, convection and a cross derivative; reaction >= 0."""
    s, xs, xi = place.size, place.coordinates, place.relative
    k = 1 + 0.3 * sympy.sin(sum((i + 1) * v for i, v in enumerate(xi))) + round(float(rng.uniform(0, 1)), 2)
    b = [round(float(rng.uniform(-1.5, 1.5)), 2) / s * (1 + xi[-1]) for _ in xs]
    c = round(float(rng.uniform(0, 2)), 2) / s**2 * (2 + xi[0])
    d = round(float(rng.uniform(-0.6, 0.6)), 2) if cross and len(xs) > 1 else 0

    def apply(u):
        out = -sum((k * u.diff(v)).diff(v) for v in xs) + sum(f * u.diff(v) for f, v in zip(b, xs, strict=True)) + c * u
        return out + (d * u.diff(xs[0], xs[1]) if d else 0)

    return apply


def flux(place: Place, part: str, u: sympy.Expr) -> sympy.Expr:
    """n·grad u with the normal that the domain is known to have there, not the one parasol finds."""
    return sum(n * u.diff(v) for n, v in zip(place.normals[part], place.coordinates, strict=True))


def condition(rng, place: Place, part: str, u, exact: sympy.Expr, kind: str):
    """A condition of the given kind on one part, with data from the exact solution."""
    slope, s = flux(place, part, exact), place.size
    if kind == "dirichlet":
        return ps.Dirichlet(exact)
    if kind == "neumann":
        return ps.Neumann(slope)
    alpha = round(float(rng.uniform(0.5, 2)), 2) / s * (1.5 + place.relative[0] / 2)
    if kind == "robin":
        return ps.Robin(alpha, 1.5, alpha * exact + 1.5 * slope)
    # an oblique derivative, written out with the normal
    xs = place.coordinates
    n = ps.normal(*xs)
    tilt = [round(float(rng.uniform(-0.3, 0.3)), 2) for _ in xs]
    left = sum((m + t) * u.diff(v) for m, t, v in zip(n, tilt, xs, strict=True)) + alpha * u
    return ps.Eq(left, slope + sum(t * exact.diff(v) for t, v in zip(tilt, xs, strict=True)) + alpha * exact)


def conditions(rng, place: Place, unknowns: Sequence, exacts: Sequence, kinds=("dirichlet", "neumann", "robin", "eq")):
    """A condition per part and unknown, at least one of which states a value."""
    parts = [part for part in place.domain.part_names if part in place.normals]
    chosen = [[str(rng.choice(kinds)) for _ in parts] for _ in unknowns]
    for row in chosen:
        if not {"dirichlet", "robin", "eq"} & set(row):
            row[int(rng.integers(len(parts)))] = "dirichlet"
    out = {}
    for i, part in enumerate(parts):
        here = [
            condition(rng, place, part, u, e, chosen[j][i])
            for j, (u, e) in enumerate(zip(unknowns, exacts, strict=True))
        ]
        out[part] = here[0] if len(here) == 1 else here
    return out


def manufacture(
    place: Place, unknowns: Sequence, exacts: Sequence, operators: Callable, boundary, *, time=None, times=None, **more
) -> Made:
    """The problem whose solution is `exacts`: the right-hand side is the operators' value there."""
    left = operators(*unknowns)
    right = operators(*exacts)
    if not isinstance(left, (list, tuple)):
        left, right = [left], [right]
    equations = [ps.Eq(a, sympy.sympify(b).doit()) for a, b in zip(left, right, strict=True)]
    names = [str(u.func) for u in unknowns]
    known = dict(zip(names, exacts, strict=True))
    if time is not None:
        start = 0 if times is None else times[0]
        state = {n: e.subs(time, start) for n, e in known.items()}
        if any(eq.lhs.has(sympy.Derivative(u, (time, 2))) for eq in equations for u in unknowns):
            state = {n: (e.subs(time, start), e.diff(time).subs(time, start)) for n, e in known.items()}
        more |= {"initial": state if len(names) > 1 else state[names[0]], "times": times}
    problem = ps.Problem(
        place.domain,
        equations if len(names) > 1 else equations[0],
        boundary,
        exact=known if len(names) > 1 else known[names[0]],
        **more,
    )
    return Made(problem, known, place, time)


# ---- errors ----------------------------------------------------------------------------------------------------------
def values(expression, symbols, columns) -> np.ndarray:
    """A SymPy expression at points, without parasol."""
    shape = np.broadcast_shapes(*[np.shape(c) for c in columns])
    with np.errstate(all="ignore"):
        return np.broadcast_to(sympy.lambdify(symbols, expression, "numpy")(*columns), shape).astype(float)


def deviation(found: np.ndarray, exact: np.ndarray) -> float:
    """The largest deviation over the largest value; infinite where the answer is not a number."""
    worst = float(np.max(np.abs(found - exact)) / (np.max(np.abs(exact)) or 1.0))
    return worst if np.isfinite(worst) else float("inf")


def error(made: Made, solution, mu: Mapping | None = None) -> float:
    """The largest relative error of any unknown at the nodes, at the last stored time; by name and by position."""
    points = solution.model.nodes.points
    symbols = [*made.place.coordinates, *(mu or {})]
    columns = [*points.T, *(mu or {}).values()]
    fields = solution.fields
    if made.time is not None:
        symbols.append(made.time)
        columns.append(float(solution.times[-1]) if hasattr(solution, "times") else solution.time)
        fields = {name: np.atleast_2d(field)[-1] for name, field in fields.items()}
    found = {n: deviation(fields[n], values(e, symbols, columns)) for n, e in made.exact.items()}
    stacked = np.atleast_2d(solution.values)[-1].reshape(len(found), -1)
    for k, e in enumerate(made.exact.values()):  # components in the declared order
        found[f"component {k}"] = deviation(stacked[k], values(e, symbols, columns))
    return max(found.values())


def solved(made: Made, n_nodes: int, *, rng: int = 0, nodes=None, mu=None, **options):
    """Scatter, discretise, solve; options of discretize and of solve alike."""
    discrete = {
        k: options.pop(k) for k in ("degree", "neumann", "hyperviscosity", "kernel", "stencil_size") if k in options
    }
    nodes = ps.scatter(made.problem.domain, n_nodes=n_nodes, rng=rng) if nodes is None else nodes
    model = ps.discretize(made.problem, nodes, **discrete)
    return model.solve(mu, **options) if mu is not None else model.solve(**options)


def right(
    made: Made, counts: Sequence[int], limit: float, *, slope: float | None = None, rng: int = 0, every=False, **options
) -> str:
    """Solve at each count; the finest error (every one) must be below the limit, and the errors fall like h^slope."""
    errors = [error(made, solved(made, n, rng=rng, **options)) for n in counts]
    said = "errors " + ", ".join(f"{e:.1e}" for e in errors) + " at " + ", ".join(map(str, counts))
    require((max(errors) if every else errors[-1]) <= limit, f"{said}; limit {limit:.0e}")
    if slope is not None and errors[-1] > 1e-9:  # below, rounding takes over
        h = np.array(counts, dtype=float) ** (-1 / len(made.place.coordinates))
        rate = float(np.log(errors[0] / errors[-1]) / np.log(h[0] / h[-1]))
        said += f", slope {rate:.1f}"
        require(rate >= slope, f"{said}; wanted {slope}")
    return said


def line_integral(expression, coordinates, start, end) -> float:
    """An integral along a straight line by Gauss's rule."""
    at, weights = np.polynomial.legendre.leggauss(40)
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    points = start + (at[:, None] + 1) / 2 * (end - start)
    return float(weights @ values(expression, coordinates, points.T) * np.linalg.norm(end - start) / 2)


def arc_integral(expression, coordinates, centre, radius, low, high) -> float:
    """An integral along an arc from one angle to another."""
    at, weights = np.polynomial.legendre.leggauss(80)
    angle = low + (at + 1) / 2 * (high - low)
    points = np.asarray(centre) + radius * np.stack([np.cos(angle), np.sin(angle)], 1)
    return float(weights @ values(expression, coordinates, points.T) * radius * (high - low) / 2)


def box_integral(expression, coordinates, low, high) -> float:
    """An integral over a box, or over a face of one where low and high agree on an axis."""
    nodes, weights = np.polynomial.legendre.leggauss(30)
    ticks = [[a] if a == b else a + (nodes + 1) / 2 * (b - a) for a, b in zip(low, high, strict=True)]
    parts = [[1.0] if a == b else weights * (b - a) / 2 for a, b in zip(low, high, strict=True)]
    columns = [c.ravel() for c in np.meshgrid(*ticks, indexing="ij")]
    product = np.prod([c.ravel() for c in np.meshgrid(*parts, indexing="ij")], axis=0)
    return float(product @ values(expression, coordinates, columns))


def estimated(problem, exact, coordinates, parameter, limit: float = 1e-3, **options) -> str:
    """For rough problems: the estimate of the discretisation error is of its size, and a plain solve has said something.

    `plan` holds the estimate that `learn` and `check` go by; an error above the limit needs a ParasolWarning beside the answer.
    """
    plan = ps.plan(problem, 1e-3, **options)
    model, off = plan.discretised.model, 0.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # what was chosen: stencils at the nodes of elements would be another discretisation, which nobody estimated
        again = model if model.elements is not None else ps.discretize(problem, model.nodes)
        for value in (parameter.low, parameter.high):
            wanted = values(exact.subs(parameter, value), coordinates, model.nodes.points.T)
            found = again.solve([value]).values
            off = max(off, float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted)))
    said = f"error {off:.1e}, estimated {plan.discretised.error:.1e} at {model.n_nodes} nodes"
    require(off <= max(limit / 3, 3 * plan.discretised.error), f"{said}: the estimate does not see it")
    spoken = any(issubclass(w.category, ps.ParasolWarning) for w in caught)
    require(off <= limit or spoken, f"{said}: discretize and solve say nothing")
    return said


def require(holds: bool, words: str) -> None:
    """Complain where something does not hold."""
    if not holds:
        raise Wrong(words)


def near(name: str, found: float, exact: float, limit: float, scale: float | None = None) -> str:
    """A number near the exact one, relative to its size."""
    off = abs(found - exact) / (scale or abs(exact) or 1.0)
    said = f"{name} {found:.8g} exact {exact:.8g}, off by {off:.1e}"
    require(bool(off <= limit), f"{said}; limit {limit:.0e}")
    return said
