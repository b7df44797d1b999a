"""Where the statement of a problem says that its solution is rough: jumps in the equation, corners, changes of condition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import sympy
from scipy.spatial import KDTree

from parasol.expressions import as_function
from parasol.pde.equation import Form, Time, normal
from parasol.pde.fluxes import coefficients
from parasol.pde.jumps import jumping_parts, jumps_between
from parasol.pde.parameters import Parameter
from parasol.pde.problem import Problem
from parasol.pde.regions import Region, by_region, in_region
from parasol.space.geometry.corners import around
from parasol.space.geometry.domain import Domain
from parasol.space.geometry.pieces import arc_lengths, pieces, points_along
from parasol.space.nodes import Nodes

_SHARES = (0.5, 0.25, 0.75)  # of the ranges of parameters and of time, where jumps are looked for
_ENDS = (0.5, 0.0, 1.0)  # and where a coefficient is steepest, if anywhere
# second difference of a coefficient over quarters of the way to a neighbour, of its largest value there
_UNRESOLVED = 0.05
_NEIGHBOURS, _PER_EDGE = 6, 4  # edges between nodes that are searched, in so many steps
_PER_BORDER = 12  # places looked at where two parts of a surface meet
_CLAMPED = np.pi / 3  # angle above which a clamped side of a body beside a free one makes a singular corner
_SINGULAR = 0.9  # exponent of r below which a corner is mentioned
_COUPLED = 0.76  # what that exponent is multiplied by for systems, where a value meets a slope
_ALONG = 0.25  # of the distance of two neighbours: how far from the boundary the middle between them may lie
# a place where parts of the boundary or its sides meet, the parts before and after it, the angle inside the domain
Meeting = tuple[np.ndarray, np.ndarray, np.ndarray, float]
_ASK = "Ask ps.learning.discretisation_error(model, mu) how large they are."
_AS_READ = (
    "It is read as b u_x, not as (b u)_x, whose flux is continuous and whose u jumps: SymPy loses that condition. "
    "With nondivergence=True this is taken as known. "
)


def rough_places(problem: Problem, nodes: Nodes, *, elements: bool = False) -> list[str]:
    """What limits the accuracy on these nodes whatever the scheme, as sentences; empty for an ordinary problem.

    Seen are jumps along the coordinates in the source and the coefficients of the equation, coefficients of second
    derivatives that bend within the spacing of the nodes, and the points in the plane or edges in space where the
    solution behaves like r^λ with λ < 1 because of the kind of the conditions beside them: slopes on both sides of a
    re-entrant corner, λ = π / angle, and a value beside a slope, λ = π / (2 angle). Corners between given values have
    such solutions too, but there the scheme converges evenly. Given values that jump along the boundary are seen as well,
    but for those that contain the normal. Of singular points `elements` need no warning: they converge evenly there.
    """
    meetings = _meetings(problem, nodes)
    return [
        *_jumps(problem, nodes),
        *_layers(problem, nodes),
        *_singular_points(problem, nodes, [] if elements else meetings),
        *_jumping_values(problem, nodes, meetings),
    ]


def rough_boundary(problem: Problem, nodes: Nodes) -> bool:
    """Whether solutions are singular at points or edges whatever the data, or given values jump along the boundary."""
    if nodes.n_boundary and len(singular_points(problem, float(np.min(nodes.spacing[nodes.n_interior :])))):
        return True
    meetings = _meetings(problem, nodes)
    reasons = [*_singular_points(problem, nodes, meetings), *_jumping_values(problem, nodes, meetings)]
    return bool(reasons)


def _meetings(problem: Problem, nodes: Nodes) -> list[Meeting]:
    """Where parts or sides of the boundary meet; nothing where one formula gives the values all round."""
    conditions = set(problem.conditions.values())
    alike = len(conditions) == 1 and all(form.states_value for forms in conditions for form in forms)
    if nodes.dimension == 1 or not nodes.n_boundary or alike:
        return []
    thin = float(np.min(nodes.spacing[nodes.n_interior :]))
    return list(_junctions(nodes.domain, thin) if nodes.dimension == 2 else _edges(nodes))


# ---- jumps in the equation ------------------------------------------------------------------------------------------
def _jumps(problem: Problem, nodes: Nodes) -> Iterator[str]:
    for outside in problem.outside_divergences if not problem.nondivergence else ():
        for coefficient in coefficients(outside, order=1):
            if coefficient.has(Region):
                yield (
                    f"a first derivative of the equation is multiplied by {coefficient}, which differs by region. "
                    f"{_AS_READ}Write ps.divergence((b*u, 0)) for that."
                )
                break
    for form in problem.forms:
        slopes = any(sum(jet.derivative) == 1 for jet in form.jets)
        parts = [(kind + " of a first derivative" * (order == 1), order, e) for kind, order, e in _sums(form)]
        parts.append(("nonlinear term" + " with a first derivative" * slopes, int(slopes), form.nonlinear))
        for what, order, expression in parts:
            if _jumps_along(problem, nodes, expression):
                culprit = min(map(str, jumping_parts(expression, problem.coordinates)), key=len)
                # where b is constant on its pieces, nothing distinguishes what is left of (b u).diff(x) from b u.diff(x)
                as_read = "" if order != 1 or problem.nondivergence else _AS_READ
                yield (
                    f"the {what} of the equation jumps along the coordinates, {culprit}: errors fall no faster than the "
                    f"spacing of the nodes, whatever the degree, and depend on how the nodes lie. {as_read}{_ASK}"
                )


def _sums(form: Form) -> Iterator[tuple[str, int, sympy.Expr]]:
    """The source and the coefficients, each in one piece, with the order of their derivative: jumps in terms may cancel."""
    sums: dict[tuple, sympy.Expr] = defaultdict(lambda: sympy.S.Zero)
    for kind, terms in (("source", form.source), ("coefficient", form.operator)):
        for term in terms:
            sums[kind, term.unknown, term.derivative or (), term.time_order] += term.theta * term.coefficient
    for (kind, _, derivative, _), expression in sums.items():
        yield kind, sum(derivative), expression


def _jumps_along(problem: Problem, nodes: Nodes, expression: sympy.Expr) -> bool:
    """Whether the expression jumps along the coordinates somewhere between the nodes."""
    if not jumping_parts(expression, problem.coordinates):
        return False
    places = _along_edges(nodes, _NEIGHBOURS)
    functions = _functions(problem, expression, _SHARES)
    return any(jumps_between(value, places[:, 0], places[:, -1]) for value in functions)


def _layers(problem: Problem, nodes: Nodes) -> Iterator[str]:
    """Coefficients of second derivatives that change within one spacing: smeared interfaces that no node sees."""
    second = [e for form in problem.forms for _, order, e in _sums(form) if order == 2]
    for expression in dict.fromkeys(second):
        if expression.free_symbols.isdisjoint(problem.coordinates):
            continue
        places = _along_edges(nodes, 2 * nodes.dimension)
        for value in _functions(problem, expression, _ENDS):
            values = value(places)
            size = np.max(np.abs(values), axis=1)
            bend = np.max(np.abs(np.diff(values, 2, axis=1)), axis=1)
            worst = int(np.argmax(bend / np.where(size > 0, size, 1.0)))
            if bend[worst] > _UNRESOLVED * size[worst]:
                yield (
                    f"the coefficient {str(expression)[:60]} of a second derivative changes near {_place(problem, places[worst, 0])} "
                    f"within the spacing of the nodes, which do not see how: the answer may be that of another equation. "
                    f"Use more nodes there, or a wider transition. {_ASK}"
                )
                break


def _along_edges(nodes: Nodes, count: int) -> np.ndarray:
    """Places between each node and its nearest neighbours, (n_edges, steps + 1, dimension)."""
    _, near = KDTree(nodes.points).query(nodes.points, min(count + 1, nodes.n_nodes))
    start, stop = nodes.points[np.repeat(near[:, 0], near.shape[1] - 1)], nodes.points[near[:, 1:].ravel()]
    shares = np.arange(_PER_EDGE + 1) / _PER_EDGE
    return start[:, None] + shares[:, None] * (stop - start)[:, None]


def _functions(problem: Problem, expression: sympy.Expr, shares) -> Iterator[Callable[[np.ndarray], np.ndarray]]:
    """The expression as functions of points (..., dimension), with parameters and time at these shares of their ranges."""
    own = expression.atoms(Region)
    others = sorted(expression.free_symbols - set(problem.coordinates) - own, key=str)
    names = problem.region_names if own else (None,)
    functions = [as_function(in_region(expression, name), [*problem.coordinates, *others]) for name in names]
    last = 1.0 if problem.times is None else float(problem.times[-1])

    def constant(symbol, share: float) -> float:
        if isinstance(symbol, Parameter):
            return symbol.low + share * (symbol.high - symbol.low)
        return share * last if isinstance(symbol, Time) else share

    for share in shares if others else shares[:1]:
        # NumPy's numbers, since a plain 0.0 has no inverse, not even infinity
        given = [np.float64(constant(symbol, share)) for symbol in others]

        def value(points: np.ndarray, given=given) -> np.ndarray:
            flat = points.reshape(-1, points.shape[-1])
            with np.errstate(all="ignore"):
                values = np.array([function(*flat.T, *given) for function in functions])
            region = problem.domain.region_of(flat) if own else 0
            return np.nan_to_num(values[region, np.arange(len(flat))]).reshape(points.shape[:-1])

        yield value


# ---- corners and changes of condition --------------------------------------------------------------------------------
def singular_reasons(problem: Problem, nodes: Nodes) -> list[str]:
    """Where in the plane conditions or materials meet so that solutions are singular, as sentences; see `rough_places`.

    Besides what `rough_places` says of conditions, corners where a clamped side of a body meets a free one, and points
    where interfaces meet or have a kink.
    """
    thin = float(np.min(nodes.spacing[nodes.n_interior :])) if nodes.n_boundary else 0.0
    meetings = list(_junctions(nodes.domain, thin)) if nodes.n_boundary else []
    reasons = [place for place, _ in _singular(problem, nodes, meetings)]
    if len(problem.names) > 1 and not reasons:
        values = np.array([[f.states_value for f in problem.conditions[name]] for name in nodes.domain.part_names])
        corners = [
            point
            for point, before, after, angle in meetings
            if angle > _CLAMPED and np.any(values[np.argmax(before)] != values[np.argmax(after)])
        ]
        if corners:
            reasons.append(f"conditions of another kind meet at {_place(problem, corners[0])}{_and_more(corners)}")
    if nodes.interfaces is not None:
        several = np.bincount(nodes.interfaces.node, minlength=nodes.n_nodes) > 1
        crossed = nodes.points[several]
        if len(crossed):
            reasons.append(f"interfaces meet or have a kink at {_place(problem, crossed[0])}{_and_more(crossed)}")
    return reasons


def singular_exponents(problem: Problem, nodes: Nodes) -> list[tuple[float, np.ndarray]]:
    """The points in the plane where the solution behaves like r^λ with λ < 1 in general, with λ: also corners of values.

    Where more than two materials meet λ depends on them; a half is taken.
    """
    thin = float(np.min(nodes.spacing[nodes.n_interior :])) if nodes.n_boundary else 0.0
    meetings = _junctions(nodes.domain, thin) if nodes.n_boundary else ()
    slopes, changes, corners = _exponents(problem, nodes, meetings, _share(problem))
    return [*slopes, *changes, *corners, *[(0.85, point) for point in _crossed(nodes)]]


def _share(problem: Problem) -> float:
    """What the exponent where a value meets a slope is over that of Laplace's equation.

    An elastic body that is clamped beside a free side has r^0.76 in a right angle, where a single unknown is smooth.
    """
    return 1.0 if len(problem.names) == 1 else _COUPLED


def _crossed(nodes: Nodes) -> np.ndarray:
    """Nodes where more than two materials meet, (n, dimension)."""
    if nodes.interfaces is None:
        return nodes.points[:0]
    counts = np.bincount(nodes.interfaces.node, minlength=nodes.n_nodes)
    return nodes.points[(counts > 2) & (nodes.touches.sum(axis=1) > 2)]  # type: ignore[union-attr]


def _singular_points(problem: Problem, nodes: Nodes, meetings: Iterable[Meeting]) -> Iterator[str]:
    instead = ' Elements converge evenly there: method="elements".' if nodes.dimension == 2 and problem.linear else ""
    for place, size in _singular(problem, nodes, meetings):
        yield (
            f"{place}: errors of {size} are usual at a few thousand nodes, and differ from one set of nodes to the next."
            f"{instead} {_ASK}"
        )


def _exponents(
    problem: Problem, nodes: Nodes, meetings: Iterable[Meeting], share: float = 1.0
) -> tuple[list, list, list]:
    """Exponents and points where slopes meet, where a slope meets a value, and where values meet, (λ, point) each.

    Where a slope meets a value λ is that of Laplace's equation times `share`.
    """
    slopes, changes, corners = [], [], []
    if max(form.order for form in problem.forms) < 2:
        return slopes, changes, corners
    values = np.array([[form.states_value for form in problem.conditions[name]] for name in nodes.domain.part_names])
    for point, before, after, angle in meetings:
        one, other = values[np.argmax(before)], values[np.argmax(after)]
        for pairs, here, exponent in (
            (slopes, ~one & ~other, np.pi / angle),
            (changes, one != other, share * np.pi / (2 * angle)),
            (corners, one & other, np.pi / angle),
        ):
            if np.any(here) and exponent < _SINGULAR:
                pairs.append((exponent, point))
    return slopes, changes, corners


def _singular(problem: Problem, nodes: Nodes, meetings: Iterable[Meeting]) -> Iterator[tuple[str, str]]:
    """Where conditions meet so that solutions are singular, in words, and how large errors of stencils are."""
    slopes, changes, _ = _exponents(problem, nodes, meetings)
    where = "corner" if nodes.dimension == 2 else "edge"
    for pairs, what, size in (
        (slopes, f"conditions on the slope meet in the re-entrant {where}", "some per cent or tens of them"),
        (changes, "a condition on the value meets one on the slope", "a per cent or more"),
    ):
        if pairs:
            exponent, at = min(pairs, key=lambda pair: pair[0])
            more = _and_more([point for _, point in pairs])
            yield (
                f"{what} at {_place(problem, at)}{more}, where solutions in general behave like r^{exponent:.2g}",
                size,
            )


# ---- values given on the boundary ------------------------------------------------------------------------------------
def _jumping_values(problem: Problem, nodes: Nodes, meetings: Iterable[Meeting]) -> Iterator[str]:
    """Given values that differ where two parts of the boundary meet, or jump within one."""
    for j, unknown in enumerate(problem.names):
        values = [_value_on(problem, name, j) for name in nodes.domain.part_names]
        places = [*_between_parts(problem, nodes, values, meetings), *_within_parts(problem, nodes, values)]
        if places:
            yield (
                f"the values given for {unknown} on the boundary jump at {_place(problem, places[0])}{_and_more(places)}, so "
                f"the solution does too: errors of a per cent of the jump are usual at a few thousand nodes, larger ones "
                f"beside it, and fluxes through the boundary there are infinite. Let a named part begin where values "
                f"jump, so that a node stands there. {_ASK}"
            )


def _value_on(problem: Problem, part: str, j: int) -> sympy.Expr | None:
    """The value that is given to one unknown on a part of the boundary, by region where it differs."""
    regions = range(len(problem.region_names)) if problem.region_names else (None,)
    values = [_given_value(problem.conditions_in(region)[part][j]) for region in regions]
    if len(set(values)) == 1 or None in values:
        return values[0]
    return by_region(**dict(zip(problem.region_names, values, strict=True)))


def _given_value(form: Form) -> sympy.Expr | None:
    """The value that a condition gives to one unknown as a formula in the coordinates, where it does."""
    if not form.states_value or form.nonlinear != 0 or len(form.operator) != 1 or form.operator[0].function is not None:
        return None
    factor = form.operator[0].theta * form.operator[0].coefficient
    terms = [t.theta * t.coefficient * (t.function or 1) / factor for t in form.source]
    return sympy.Add(*terms)


def _between_parts(problem: Problem, nodes: Nodes, values, meetings: Iterable[Meeting]) -> Iterator[np.ndarray]:
    """Where parts meet whose values differ there, at some parameter and time, by 1e-3 of what they ever differ by."""
    places: dict[sympy.Expr, list[np.ndarray]] = defaultdict(list)
    for point, before, after, _ in meetings:
        one, other = values[np.argmax(before)], values[np.argmax(after)]
        if one is not None and other is not None and one != other:
            places[one - other].append(point)
    sizes = [np.max(np.abs(next(_functions(problem, v, _ENDS))(nodes.boundary))) for v in values if v is not None]
    for gap, points in places.items():
        if gap.free_symbols & set(normal(*problem.coordinates)):
            continue  # the normal turns in a corner, and the values with it
        for difference in _functions(problem, gap, _ENDS):
            least = max(1e-3 * np.max(np.abs(difference(nodes.boundary))), 1e-9 * max(sizes))
            jumps = np.abs(difference(np.array(points))) > least
            if np.any(jumps):
                yield from np.array(points)[jumps]
                break


def _within_parts(problem: Problem, nodes: Nodes, values) -> Iterator[np.ndarray]:
    """Nodes beside which the value given on their part jumps."""
    for k, value in enumerate(values):
        if (
            value is None
            or nodes.dimension == 1
            or not (value.has(Region) or jumping_parts(value, problem.coordinates))
        ):
            continue
        here = np.flatnonzero(nodes.on_part[:, k])
        if len(here) < 2:
            continue
        points, normals = nodes.boundary[here], nodes.part_normals[here, k]
        _, near = KDTree(points).query(points, min(3 if nodes.dimension == 2 else 7, len(here)))
        start, stop = np.repeat(near[:, 0], near.shape[1] - 1), near[:, 1:].ravel()
        side = np.sum(normals[start] * normals[stop], axis=1) > 0.5  # not through a corner or a thin wall
        start, stop = points[start[side]], points[stop[side]]
        off = np.abs(nodes.domain.distance((start + stop) / 2)) if len(start) else np.empty(0)
        along = off < _ALONG * np.linalg.norm(stop - start, axis=1)  # not over a gap in the part, such as a wall's foot
        start, stop = start[along], stop[along]
        for function in _functions(problem, value, _SHARES):
            if jumps_between(function, start, stop):
                while len(start) > 1:  # down to one place to name
                    half = slice(len(start) // 2)
                    half = half if jumps_between(function, start[half], stop[half]) else slice(len(start) // 2, None)
                    start, stop = start[half], stop[half]
                yield start[0]
                break


def _edges(nodes: Nodes) -> Iterator[Meeting]:
    """Nodes of a surface near an edge or another part, their part and that one, and the angle inside the domain.

    Where normals turn by less than 60° the surface counts as smooth; by more than 120°, as two sides of a thin wall.
    """
    domain, between = nodes.domain, defaultdict(list)
    _, near = KDTree(nodes.boundary).query(nodes.boundary, min(7, nodes.n_boundary))
    bent = np.einsum("nd,nkd->nk", nodes.normals, nodes.normals[near]) < 0.7
    changed = (nodes.part[near] != nodes.part[:, None]) & ~bent
    # edges have nodes of their own, and a long step could pass through a thin wall; between parts there may be none
    for share, some in ((0.05, bent.any(axis=1)), (0.5, changed.any(axis=1))):
        points, normals = nodes.boundary[some], nodes.normals[some]
        reach = share * nodes.spacing[nodes.n_interior :][some, None]
        own = np.arange(len(domain.part_names)) == nodes.part[some, None]
        for step in around(normals) if np.any(some) else ():
            foot = domain.project(points + reach * step)
            parts, turned = domain.plain(foot)
            cosine = np.sum(normals * turned, axis=1)
            # each outside the tangent plane of the other: the edge between them is re-entrant
            rise = np.sum((foot - points) * (normals - turned), axis=1)
            turn = np.where(cosine < 0.5, np.sign(rise) * np.arccos(np.clip(cosine, -1.0, 1.0)), 0.0)
            edge = (turn != 0) & (cosine > -0.5) & (share < 0.5)
            yield from zip(points[edge], own[edge], parts[edge], np.pi + turn[edge], strict=True)
            first, other = np.argmax(own, axis=1), np.argmax(parts, axis=1)
            for k in np.flatnonzero((turn == 0) & (first != other)):
                between[int(first[k]), int(other[k])].append((points[k], reach[k] * step[k], own[k], parts[k]))
    # a few places of each border are enough: to find one exactly takes many projections
    some = [
        ways[i] for ways in between.values() for i in np.unique(np.linspace(0, len(ways) - 1, _PER_BORDER).astype(int))
    ]
    if some:
        points, steps, own, parts = (np.array(column) for column in zip(*some, strict=True))
        yield from zip(_border(domain, points, steps, own), own, parts, np.full(len(some), np.pi), strict=True)


def _border(domain: Domain, points: np.ndarray, steps: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Where along the steps from boundary points in the parts `own` (n, n_parts) another part begins."""
    low, high = np.zeros((len(points), 1)), np.ones((len(points), 1))
    for _ in range(20):
        middle = (low + high) / 2
        parts = domain.plain(domain.project(points + middle * steps))[0]
        still = (np.argmax(parts, axis=1) == np.argmax(own, axis=1))[:, None]
        low, high = np.where(still, middle, low), np.where(still, high, middle)
    return domain.project(points + low * steps)


def singular_points(problem: Problem, thin: float, *, slopes: bool = True) -> np.ndarray:
    """Points of the plane where the solution is singular, like r^λ with λ < 1, whatever the data: (m, 2).

    These are re-entrant corners, places where a condition on the value meets one on the slope (for a system also in
    corners of 60° or more, where a clamped side of a body meets a free one), and inside a domain with regions the kinks of
    interfaces and the points where several meet. Parts of the boundary shorter than `thin` are no parts. Without `slopes`
    only those on whose sides nothing but values is given.
    """
    domain, points = problem.domain, []
    if domain.dimension != 2 or max(form.order for form in problem.forms) < 2:
        return np.zeros((0, 2))
    values = np.array([[form.states_value for form in problem.conditions[name]] for name in domain.part_names])
    for point, before, after, angle in _junctions(domain, thin) if domain.part_names else ():
        change = np.any(values[np.argmax(before)] != values[np.argmax(after)])
        least = np.pi / _SINGULAR if not change else _CLAMPED if len(problem.names) > 1 else np.pi / (2 * _SINGULAR)
        stated = np.all(values[np.argmax(before)]) and np.all(values[np.argmax(after)])
        if angle > least and (slopes or stated):
            points.append(point)
    if domain.divided is not None:
        points += list(domain.divided.kinks())
    return np.unique(np.array(points).reshape(-1, 2).round(12), axis=0)


def _junctions(domain: Domain, step: float) -> Iterator[Meeting]:
    """Points where parts or arcs meet, the parts before and after them, and the angle inside the domain.

    What is shorter than half a `step` is no part.
    """
    ends: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # corner, unit vector along the arc away from it, parts
    for arc in pieces(domain):
        # a piece of an arc thinner than the spacing is no piece, see `space.boundary`; the end of a thin wall is an arc
        lines = sorted(arc.lines(), key=lambda piece: arc_lengths(piece[0])[-1])
        kept = [(line, parts) for line, parts in arc.lines() if arc_lengths(line)[-1] > step / 2] or lines[-1:]
        after = kept[1:] + kept[:1] if arc.closed else kept[1:]
        for (_, one), (line, other) in zip(kept, after, strict=False):
            if np.any(one != other):
                yield line[0], one, other, np.pi
        if kept and not arc.closed:
            for line, parts in ((arc.points, kept[0][1]), (arc.points[::-1], kept[-1][1])):
                corner, beside = points_along(line, [0.0, 0.1 * min(step, arc.length)])
                ends.append((corner, (beside - corner) / np.linalg.norm(beside - corner), parts))
    if not ends:
        return
    corners = np.array([corner for corner, _, _ in ends])
    for i, j in KDTree(corners).query_pairs(1e-8 * domain.size):
        (corner, one, before), (_, other, after) = ends[i], ends[j]
        angle = float(np.arccos(np.clip(one @ other, -1.0, 1.0)))
        between = corner + 1e-3 * step * (one + other) / max(float(np.linalg.norm(one + other)), 1e-12)
        yield corner, before, after, angle if domain.contains(between[None])[0] else 2 * np.pi - angle


def _and_more(points: Iterable[np.ndarray]) -> str:
    others = len({tuple(point) for point in points}) - 1
    return f" (and at {others} more)" if others else ""


def _place(problem: Problem, point: np.ndarray) -> str:
    size = problem.domain.size
    return ", ".join(
        f"{name} = {0.0 if abs(value) < 1e-9 * size else value:.4g}"
        for name, value in zip(problem.coordinates, point, strict=True)
    )
