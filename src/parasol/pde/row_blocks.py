"""Which row of the system carries which equation: the problem's own inside, conditions on the boundary and at interfaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import sympy

from parasol.errors import InputError
from parasol.pde.blocks import Block, Points
from parasol.pde.equation import Form, Term, Time
from parasol.pde.interfaces import conditions_of, interface_blocks, plan_interfaces
from parasol.pde.problem import Problem
from parasol.pde.rough import singular_points
from parasol.space.neighbours import Cloud
from parasol.space.nodes import Nodes, ghosts


def row_blocks(
    problem: Problem, forms: Sequence[Sequence[Form]], nodes: Nodes, *, use_ghosts: bool
) -> tuple[Points, list[Block]]:
    """The equations on interior rows, one block of boundary rows per part and unknown; ghosts are appended to the points.

    `forms` are the equations of each region. A boundary node where some unknown has a condition on its slope gets a
    ghost. Its two rows of each unknown then carry the condition and the equation: a condition on the value stands in the
    node's row, one on the slope in the ghost's. In time, the rate of a value that is given is given too
    (`_with_known_rate`), or the ghost would follow from nothing. For nodes where regions meet see `interface_blocks`.
    """
    names = nodes.domain.part_names
    kinds = [conditions_of(problem, 0, j) for j in range(len(problem.names))]
    values = np.array([[form.states_value for form in some] for some in kinds])
    part = condition_parts(nodes, values)
    beyond = np.array([parts_beyond(nodes, some, own) for some, own in zip(kinds, part, strict=True)])
    sloped = ~np.take_along_axis(values, part, axis=1) if len(names) else np.zeros_like(part, dtype=bool)
    if nodes.dimension == 3 and np.any(sloped) and not use_ghosts:
        raise InputError(
            'neumann="one-sided" is not accurate in 3 dimensions: errors scatter a hundredfold with the nodes. Use neumann="ghosts".'
        )
    touches = np.ones((nodes.n_nodes, 1), dtype=bool) if nodes.touches is None else nodes.touches
    alone = np.count_nonzero(touches, axis=1) == 1
    haunted = np.any(sloped, axis=0) & use_ghosts & alone[nodes.n_interior :]
    # the normal that stands in a condition is that of the side whose condition it is
    normals = np.take_along_axis(nodes.part_normals[None], part[:, :, None, None], axis=2)[:, :, 0]
    # a ghost stands off along the normal of the condition in its row, the first where there are several
    outward = normals[np.argmax(sloped, axis=0), np.arange(nodes.n_boundary)]
    # in time, the equations of both sides would give the node's rate of change twice: the balance alone is a constraint
    both_sides = use_ghosts and problem.time is None
    plan = plan_interfaces(
        nodes, sloped, lambda which: ghosts(replace(nodes, normals=outward), which), use_ghosts=both_sides
    )
    points, anchors, own = nodes.points, np.arange(nodes.n_nodes), touches
    if np.any(haunted):
        points = np.vstack([points, ghosts(replace(nodes, normals=outward), haunted)])
        anchors = np.concatenate([anchors, nodes.n_interior + np.flatnonzero(haunted)])
        own = touches[anchors]
    n_before, n = len(points), len(points) + len(plan.points)
    points, anchors = np.vstack([points, plan.points]), np.concatenate([anchors, plan.anchors])
    own = np.vstack([own, np.arange(own.shape[1]) == plan.regions[:, None]])
    inner, boundary = np.arange(nodes.n_interior), np.arange(nodes.n_interior, nodes.n_nodes)
    ghost_of = nodes.n_nodes + np.cumsum(haunted) - 1
    blocks = []
    for region, of_region in enumerate(forms):
        mine = (touches[:, region] & alone)[nodes.n_interior :]
        inside = inner[(touches[:, region] & alone)[: nodes.n_interior]]
        # a node with given values needs no equation: it takes those of one of the regions it lies in
        first = (np.argmax(touches, axis=1) == region)[nodes.n_interior :]
        for j, form in enumerate(of_region):
            # the equation also holds at a boundary node with a ghost, in whichever of the two rows the condition leaves free
            known = haunted & ~sloped[j] & (problem.time is not None)
            free = haunted & ~known & mine
            rows = np.concatenate([inside, np.where(sloped[j], boundary, ghost_of)[free]])
            centers = np.concatenate([inside, boundary[free]])
            blocks.append(Block(form, j * n + rows, centers, None, region))
            conditions = conditions_of(problem, region, j)
            for p in np.unique(part[j, known & mine]):
                here = known & mine & (part[j] == p)
                given = _with_known_rate(form, conditions[p], problem.time)
                blocks.append(Block(given, j * n + ghost_of[here], boundary[here], normals[j, here], region))
            condition_row = np.where(haunted & sloped[j], ghost_of, boundary)
            for p, condition in enumerate(conditions):
                # where given values jump in the middle of a side, the node takes their mean
                jump = beyond[j] != part[j]
                shared = jump & ((part[j] == p) | (beyond[j] == p))
                stated = mine | (first & ~sloped[j])
                for some, here in ((condition, (part[j] == p) & ~jump), (halved(condition), shared)):
                    here = here & stated
                    if np.any(here):
                        blocks.append(
                            Block(some, j * n + condition_row[here], boundary[here], normals[j, here], region)
                        )
    blocks += interface_blocks(problem, nodes, plan, part, sloped, n_before)
    return _points(problem, nodes, points, anchors, own), [block for block in blocks if len(block.rows)]


def _points(problem: Problem, nodes: Nodes, points: np.ndarray, anchors: np.ndarray, own: np.ndarray) -> Points:
    """The points with one cloud per region: `own` (n, n_regions) says whose they are, `anchors` (n,) are their nodes."""
    places = nodes.points[anchors]
    if nodes.touches is None:
        thin = float(np.min(nodes.spacing[nodes.n_interior :])) if nodes.n_boundary else 0.0
        cloud = Cloud(points, nodes.domain, places, singular_points(problem, thin))
        return Points(points, (cloud,), (np.arange(len(points)),))
    members = tuple(np.flatnonzero(column) for column in own.T)
    regions = nodes.domain.divided
    assert regions is not None
    clouds = tuple(Cloud(points[m], d, places[m]) for m, d in zip(members, regions.surroundings, strict=True))
    return Points(points, clouds, members)


def _with_known_rate(form: Form, condition: Form, t: Time) -> Form:
    """The equation where the condition gives the value of one unknown: its derivatives in time become a source."""
    if len(condition.operator) != 1 or condition.jets:
        return form  # the value depends on other unknowns
    value, operator, source = condition.operator[0], [], list(form.source)
    for term in form.operator:
        if term.time_order == 0 or term.unknown != value.unknown or any(term.derivative or ()):
            operator.append(term)
            continue
        for given in condition.source:
            rate = sympy.diff(given.coefficient / value.coefficient, t, term.time_order)
            if rate != 0:
                theta = term.theta * given.theta / value.theta
                source.append(Term(theta, -term.coefficient * rate, given.function, None))
    return replace(form, operator=tuple(operator), source=tuple(source))


def condition_parts(nodes: Nodes, values: np.ndarray) -> np.ndarray:
    """The part whose condition each boundary node takes for each unknown, (n_unknowns, n_boundary).

    `values` (n_unknowns, n_parts) says which conditions give a value. At a corner these go before conditions on a slope,
    those of the part that gives most values first: beside a clamped side, a side that may slip leaves the corner to it.
    """
    rank = 2 * np.sum(values, axis=0) + (np.arange(values.shape[1]) == nodes.part[:, None])
    part = np.tile(nodes.part, (len(values), 1))
    for j in range(len(values) if values.size else 0):
        gives = nodes.on_part & values[j]
        part[j] = np.where(np.any(gives, axis=1), np.argmax(gives * rank, axis=1), nodes.part)
    return part


def parts_beyond(nodes: Nodes, conditions: list[Form], part: np.ndarray) -> np.ndarray:
    """The part on the other side of each boundary node, where one given value ends and another begins: (n_boundary,).

    Elsewhere, in corners too, it is the node's own part, `part`. `conditions` are those of the parts on one unknown.
    """
    beyond, domain = part.copy(), nodes.domain
    values = np.array([form.states_value and form.linear for form in conditions], dtype=bool)
    rows = np.flatnonzero((nodes.on_part & values).sum(axis=1) > 1) if domain.dimension == 2 else ()
    if not len(rows):
        return beyond
    normal = nodes.part_normals[rows, part[rows]]
    step = 1e-6 * domain.size * np.stack([-normal[:, 1], normal[:, 0]], axis=1)
    sides = [domain.plain(domain.project(nodes.boundary[rows] + sign * step)) for sign in (1, -1)]
    smooth = np.all([np.sum(turned * normal, axis=1) > 1 - 1e-6 for _, turned in sides], axis=0)
    for row in np.flatnonzero(smooth):
        first = {int(np.argmax(parts[row])) for parts, _ in sides}  # the part that counts on either side
        other = first - {int(part[rows[row]])}
        if (
            len(first) == 2
            and len(other) == 1
            and conditions[min(other)].operator == conditions[part[rows[row]]].operator
        ):
            beyond[rows[row]] = min(other)
    return beyond


def halved(form: Form) -> Form:
    """The linear form times one half, so that two of them in one row make their mean."""
    operator, source = (
        tuple(replace(term, coefficient=term.coefficient / 2) for term in terms)
        for terms in (form.operator, form.source)
    )
    return replace(form, operator=operator, source=source)
