"""Nodes for a problem: how many and where, and whether given ones fit it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from parasol.errors import InputError, UnsuitableNodes
from parasol.pde.problem import Problem, Settings
from parasol.pde.rough import singular_points
from parasol.space.nodes import Nodes, lattice, scatter
from parasol.space.operators import simpler
from parasol.space.spacing import feature_spacing, graded_spacing
from parasol.space.stencils import default_scheme

DEFAULT_N_NODES = {1: 200, 2: 2000, 3: 4000}


def nodes_for(problem: Problem, settings: Settings, *, rng: int = 0) -> Nodes:
    """Scatter nodes as the settings say; in the plane, where nothing is said, finer where the boundary asks for it.

    Towards points where the solution is singular the spacing falls further; for systems only where values are given on
    both sides. Where tractions are given, nodes that crowd make stencils worse: a clamped plate 8e-2 instead of 5e-3 with
    4000 nodes (benchmarks/rough.py). Elements have corners of their own.
    """
    domain = problem.domain
    n_nodes = DEFAULT_N_NODES[domain.dimension] if settings.n_nodes is None else settings.n_nodes
    if settings.method == "lattice":
        return lattice(domain, round(n_nodes ** (1 / domain.dimension)))
    spacing = None
    if settings.n_boundary is None and settings.method != "hexagonal" and domain.dimension == 2:
        singular = singular_points(problem, 0.3 * (domain.volume() / n_nodes) ** 0.5, slopes=len(problem.names) == 1)
        if settings.method == "fill" and len(singular):
            chosen = {name: getattr(settings, name) for name in ("kernel", "degree", "stencil_size")}
            scheme = default_scheme(2, **chosen)
            near = scheme if domain.region_names else simpler(scheme)  # what `row_blocks` will take there
            spacing = graded_spacing(domain, singular, n_nodes=n_nodes, stencil_size=near.stencil_size)
        else:
            spacing = feature_spacing(domain)
    return scatter(
        domain, n_nodes=n_nodes, n_boundary=settings.n_boundary, method=settings.method, spacing=spacing, rng=rng
    )


def check_nodes(problem: Problem, nodes: Nodes) -> None:
    """Refuse nodes of another domain, and parts of the boundary whose condition no node would carry."""
    domain, names = problem.domain, problem.domain.part_names
    alike = nodes.domain.part_names == names and np.array_equal(nodes.domain.periods, domain.periods)
    alike = alike and nodes.domain.region_names == domain.region_names
    if alike and nodes.domain is not domain:
        alike = bool(np.all(domain.contains(nodes.interior)))
        if nodes.touches is not None:
            alike &= bool(np.all(nodes.touches[np.arange(nodes.n_interior), domain.region_of(nodes.interior)]))
        if nodes.n_boundary:
            alike &= bool(np.max(np.abs(domain.distance(nodes.boundary))) < 1e-6 * domain.size)
    if not alike:
        raise InputError(
            "nodes were scattered in another domain than the problem's. Use ps.scatter(problem.domain, ...)."
        )
    asked = problem.boundary if isinstance(problem.boundary, Mapping) else {}
    for j, name in enumerate(names):
        if name in asked and not np.any(nodes.on_part[:, j]):
            raise UnsuitableNodes(
                f"the boundary part {name!r} has no node, so its condition would be lost. Use more nodes, or check where it is: "
                "within 1e-9 of the domain's size < does not hold yet, so write x <= 0 rather than x < 1e-12."
            )
