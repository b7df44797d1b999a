"""From a problem and nodes to sparse matrices, one per affine term."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
import sympy

from parasol.checks import check_choice, check_positive
from parasol.errors import InputError, ParasolWarning
from parasol.pde.assembly import assemble
from parasol.pde.by_elements import discretize_by_elements, elements_instead
from parasol.pde.equation import Form, Term
from parasol.pde.model import Model
from parasol.pde.placing import check_nodes, nodes_for
from parasol.pde.problem import Problem, Settings
from parasol.pde.rough import rough_places
from parasol.pde.row_blocks import row_blocks
from parasol.pde.sparse_direct import BACKENDS, chosen_solver
from parasol.pde.transient import Stepping, check_stepping
from parasol.space.by_region import check_regions
from parasol.space.kernels import Kernel
from parasol.space.nodes import Nodes
from parasol.space.stencils import default_scheme


def discretize(
    problem: Problem,
    nodes: Nodes | None = None,
    *,
    method: str | None = None,
    kernel: Kernel | None = None,
    degree: int | None = None,
    stencil_size: int | None = None,
    neumann: str = "ghosts",
    solver: str = "auto",
    hyperviscosity: float = 0.0,
    **stepping: Unpack[Stepping],
) -> Model:
    """Discretise a problem by RBF-FD stencils on the given nodes (default: those of `nodes_for`), or by elements.

    With `method="elements"`, of a linear problem on a line or in the plane, by Lagrange elements of `degree` (3; on a line 2) on
    triangles with the nodes for corners; their own nodes, also along the edges, are those of the model. With no method and
    no nodes that is done, with a word, where a steady problem in the plane has singular points. Of `method="stencils"`:
    The kernel, the polynomial degree (−1: none) and the stencil size default to polyharmonic splines with polynomials.
    `neumann` says how conditions with derivatives are met: "ghosts" adds a node outside for each such boundary node
    and asks for the equation on the boundary too; "one-sided" spends the boundary node's row on the condition (lines and
    planes only: in space its errors scatter from 1e-2 to 1e-4 with the nodes, where ghosts give 1e-5).
    `hyperviscosity` c adds the damping c h³ Δ² to the state (to its velocity for second order in time), which transport on
    scattered nodes may need to be stable. `solver` is "direct" (elimination by SuperLU), "iterative" (GMRES with multigrid, to
    the same residual; where it stalls, elimination takes over with a word), "mkl", or "auto", which iterates from 20 000
    unknowns in space and 200 000 in the plane. `step` and `integrator` are what `solve` uses in time unless it is given others.
    """
    if not isinstance(problem, Problem):
        raise InputError(f"problem is {problem!r}. Pass a ps.Problem, for instance ps.load_problem('helmholtz').")
    if not (nodes is None or isinstance(nodes, Nodes)):
        raise InputError(f"nodes is {type(nodes).__name__}. Pass what ps.scatter or ps.lattice returns.")
    check_choice(method or "stencils", ("stencils", "elements"), "method")
    check_choice(neumann, ("ghosts", "one-sided"), "neumann")
    check_choice(solver, BACKENDS, "solver")
    steps = check_stepping(problem.time is not None, **stepping)
    of_stencils = kernel is not None or stencil_size is not None or hyperviscosity
    if method == "elements":
        if of_stencils:
            raise InputError("kernel, stencil_size and hyperviscosity are for stencils. Leave them out with elements.")
        return discretize_by_elements(problem, nodes, degree, solver=solver, **steps)
    if nodes is None:
        nodes = nodes_for(problem, Settings())
        free = method is None and not of_stencils and degree is None
        model = elements_instead(problem, nodes, solver=solver, **steps) if free else None
        if model is not None:
            return model
    if nodes.dimension != problem.domain.dimension:
        raise InputError(
            f"nodes have {nodes.dimension} coordinates but the problem's domain has {problem.domain.dimension}."
        )
    regions = range(len(problem.region_names)) or [None]
    forms = [problem.forms_in(region) for region in regions]
    if hyperviscosity:
        forms = [[_damped(problem, form, nodes, hyperviscosity) for form in some] for some in forms]
    order = max(form.order for some in forms for form in some)
    scheme = default_scheme(nodes.dimension, kernel=kernel, degree=degree, stencil_size=stencil_size, order=order)
    check_nodes(problem, nodes)
    check_regions(nodes, scheme)
    places, blocks = row_blocks(problem, forms, nodes, use_ghosts=neumann == "ghosts")
    terms, report = assemble(problem, nodes, places, blocks, scheme)
    for reason in rough_places(problem, nodes):
        warnings.warn(reason, ParasolWarning, stacklevel=2)
    solver = chosen_solver(solver, len(terms.pattern.points), nodes.dimension)
    return Model(problem, nodes, scheme, report, terms, solver, **steps)


def discretize_with(problem: Problem, settings: Settings, *, rng: int = 0, **options: Any) -> Model:
    """Scatter nodes and discretise as the settings say."""
    chosen = {
        name: getattr(settings, name) for name in ("kernel", "degree", "stencil_size", "neumann", "step", "integrator")
    }
    return discretize(problem, nodes_for(problem, settings, rng=rng), **(chosen | options))


def _damped(problem: Problem, form: Form, nodes: Nodes, strength: float) -> Form:
    """The form with hyperviscosity, c h³ Δ², on every unknown whose time derivative it has."""
    if problem.time is None:
        raise InputError("hyperviscosity is for problems in time; this one is steady.")
    check_positive(strength, "hyperviscosity")
    size = strength * float(np.mean(nodes.spacing)) ** 3
    axes = 2 * np.eye(nodes.dimension, dtype=int)
    twice = Counter(tuple(int(i) for i in a + b) for a in axes for b in axes)
    orders = problem.time_orders
    moving = sorted({t.unknown for t in form.operator if 0 < t.time_order == orders[t.unknown]})
    extra = tuple(
        Term(sympy.S.One, sympy.Float(size * times), None, index, unknown, orders[unknown] - 1)
        for unknown in moving
        for index, times in twice.items()
    )
    return replace(form, operator=form.operator + extra)
