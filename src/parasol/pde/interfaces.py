"""Where regions meet: u is continuous there, and the fluxes of the regions balance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from parasol.errors import InputError
from parasol.pde.blocks import Block
from parasol.pde.cross_points import cross_point_blocks, fans
from parasol.pde.equation import Form, read_equation
from parasol.pde.problem import Neumann, Problem
from parasol.space.nodes import Nodes


@dataclass(frozen=True, eq=False)
class InterfacePlan:
    """Ghosts beyond the interfaces: each side of a smooth piece has one, on the other side, among its own points only.

    Where pieces meet (cross points, kinks) the solution is singular in general, and there are none.
    """

    table: np.ndarray  # (m,) rows of nodes.interfaces whose nodes have a ghost on either side
    ended: (
        np.ndarray
    )  # (m,) bool: the interface ends here at the outer boundary, whose condition has a ghost for either side
    balanced: np.ndarray  # (k,) the other nodes where regions meet, unless their value is given: one row each
    points: np.ndarray  # (n_ghosts, dimension): (m, 2) beyond the interface, then (ended, 2) beyond the boundary
    regions: np.ndarray  # (n_ghosts,) whose ghosts they are
    anchors: np.ndarray  # (n_ghosts,) their nodes


def plan_interfaces(nodes: Nodes, sloped: np.ndarray, ghosts_at, *, use_ghosts: bool) -> InterfacePlan:
    """Decide which nodes on interfaces get ghosts.

    `sloped` (n_unknowns, n_boundary) says where the condition on the boundary is one on the slope; `ghosts_at` gives the
    places of ghosts beyond the outer boundary for (n_boundary,) masks.
    """
    table = nodes.interfaces
    if table is None:
        none = np.empty(0, dtype=int)
        return InterfacePlan(none, none.astype(bool), none, np.empty((0, nodes.dimension)), none, none)
    n_pieces = np.bincount(table.node, minlength=nodes.n_nodes)
    outer = np.arange(nodes.n_nodes) >= nodes.n_interior
    all_sloped, some_sloped = (np.ones(nodes.n_nodes, dtype=bool) for _ in range(2))
    all_sloped[outer], some_sloped[outer] = np.all(sloped, axis=0), np.any(sloped, axis=0)
    smooth = use_ghosts & (n_pieces == 1) & all_sloped
    rows = np.flatnonzero(smooth[table.node])
    node, ended = table.node[rows], outer[table.node[rows]]
    step = nodes.spacing[node, None] * table.normals[rows]
    beyond = np.stack([nodes.points[node] + step, nodes.points[node] - step], axis=1).reshape(-1, nodes.dimension)
    at_ends = np.zeros(nodes.n_boundary, dtype=bool)
    at_ends[node[ended] - nodes.n_interior] = True
    place = np.zeros((nodes.n_boundary, nodes.dimension))
    if np.any(ended):
        place[at_ends] = ghosts_at(at_ends)
    outside = np.repeat(place[node[ended] - nodes.n_interior], 2, axis=0)
    sides = table.sides[rows]
    return InterfacePlan(
        rows,
        ended,
        np.flatnonzero((n_pieces > 0) & some_sloped & ~smooth),
        np.concatenate([beyond, outside]),
        np.concatenate([sides.ravel(), sides[ended].ravel()]),
        np.concatenate([np.repeat(node, 2), np.repeat(node[ended], 2)]),
    )


def interface_blocks(
    problem: Problem, nodes: Nodes, plan: InterfacePlan, part: np.ndarray, sloped: np.ndarray, n_before: int
) -> Iterator[Block]:
    """The rows of nodes where regions meet, unless a value is given there; ghosts of the plan are numbered from `n_before`.

    A node on a smooth piece has its own row and those of its two ghosts, for the balance of the fluxes and the equation on
    both sides. Where a piece ends at the boundary, two ghosts more take the condition on either side. Where several pieces
    meet inside, the node's row is a balance over its surroundings (`cross_points`). Elsewhere all conditions are summed in
    the node's row.
    """
    table, n = nodes.interfaces, n_before + len(plan.points)
    if table is None:
        return
    node, sides, normals = table.node[plan.table], table.sides[plan.table], table.normals[plan.table]
    beyond = n_before + np.arange(2 * len(node)).reshape(-1, 2)
    outside = n_before + 2 * len(node) + np.arange(2 * np.count_nonzero(plan.ended)).reshape(-1, 2)
    on_boundary = node[plan.ended] - nodes.n_interior
    several = np.bincount(table.node, minlength=nodes.n_nodes) > 1
    crossing = plan.balanced[several[plan.balanced] & (plan.balanced < nodes.n_interior)]
    around = fans(nodes, crossing) if len(crossing) else None
    for j, known in enumerate(problem.balances):
        # without a divergence nothing jumps but sources, and slopes are continuous
        by_elements = crossing if known is not None else crossing[:0]
        if around is not None and len(by_elements):
            yield from cross_point_blocks(problem, nodes, around, j, n)
        yield from _sources(problem, nodes, by_elements, sloped, j, n)
        for region in range(nodes.touches.shape[1]):
            for side, sign in ((0, 1.0), (1, -1.0)):
                here = sides[:, side] == region
                if not np.any(here):
                    continue
                flux = normal_flux(problem, region, j)
                yield Block(flux, j * n + node[here], node[here], sign * normals[here], region)
                equation = problem.forms_in(region)[j]
                yield Block(equation, j * n + beyond[here, side], node[here], None, region)
                own = here[plan.ended]
                for p, form in enumerate(conditions_of(problem, region, j)):
                    some = own & (part[j, on_boundary] == p)
                    if np.any(some):
                        outward = nodes.part_normals[on_boundary[some], p]
                        rows = j * n + outside[some, side]
                        yield Block(form, rows, nodes.n_interior + on_boundary[some], outward, region)
            summed = np.setdiff1d(plan.balanced, by_elements)
            yield from _balances(problem, nodes, summed, part, sloped, j, region, n)


def _sources(
    problem: Problem, nodes: Nodes, left_out: np.ndarray, sloped: np.ndarray, j: int, n: int
) -> Iterator[Block]:
    """The sources on interfaces, in the rows where the fluxes of two sides balance."""
    table = nodes.interfaces
    given = np.concatenate([np.zeros(nodes.n_interior, dtype=bool), ~sloped[j]])
    for pair, forms in problem.interface_sources.items():
        here = np.all(table.sides == sorted(pair), axis=1) & ~given[table.node] & ~np.isin(table.node, left_out)
        node = table.node[here]
        yield Block(forms[j], j * n + node, node, table.normals[here], min(pair))


def _balances(
    problem, nodes: Nodes, balanced: np.ndarray, part, sloped, j: int, region: int, n: int
) -> Iterator[Block]:
    """What one region contributes to the rows in which all conditions of a node are summed."""
    given = np.concatenate([np.zeros(nodes.n_interior, dtype=bool), ~sloped[j]])
    here = balanced[(nodes.touches[:, region] & ~given)[balanced]]
    if not len(here):
        return
    outward = np.zeros_like(nodes.points)
    table = nodes.interfaces
    for side, sign in ((0, 1.0), (1, -1.0)):
        own = table.sides[:, side] == region
        np.add.at(outward, table.node[own], sign * table.normals[own])
    yield Block(normal_flux(problem, region, j), j * n + here, here, outward[here], region)
    on_boundary = here[here >= nodes.n_interior] - nodes.n_interior
    for p, form in enumerate(conditions_of(problem, region, j)):
        some = on_boundary[part[j, on_boundary] == p]
        if len(some):
            rows = nodes.n_interior + some
            yield Block(form, j * n + rows, rows, nodes.part_normals[some, p], region)


def conditions_of(problem: Problem, region: int, j: int) -> list[Form]:
    """The conditions on one unknown of all parts of the boundary, beside this region."""
    conditions = problem.conditions_in(region if problem.region_names else None)
    return [conditions[name][j] for name in problem.domain.part_names]


def normal_flux(problem: Problem, region: int, j: int) -> Form:
    """What balances at the interfaces of a region: n·F, the normal flux of the equation of one unknown.

    An equation without a divergence has coefficients of second derivatives that do not jump, so that n·grad u balances.
    """
    flux = problem.fluxes_in(region)[j]
    if flux is None:
        return read_equation(Neumann(0).equation(problem.unknowns[j]), problem.unknowns, where="flux")
    if flux.order < 1:
        raise InputError(
            f"the flux in the equation of {problem.names[j]} has no derivative in the region "
            f"{problem.region_names[region]!r}, so that nothing is known of the slopes at its interfaces. Regions are for "
            "equations with diffusion; a conductivity may be small but not 0."
        )
    return flux
