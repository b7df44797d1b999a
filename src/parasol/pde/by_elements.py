"""A model by elements: nodes, triangles, conditions on values at the nodes they hold at, matrices."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from parasol.errors import FileError, InputError, MissingPackage, NotInstalled, ParasolWarning, UnsuitableNodes
from parasol.pde.elements import Given, assemble
from parasol.pde.model import Model
from parasol.pde.placing import DEFAULT_N_NODES, check_nodes, nodes_for
from parasol.pde.problem import Problem, Settings
from parasol.pde.rough import rough_places, singular_exponents, singular_reasons
from parasol.pde.row_blocks import condition_parts, halved, parts_beyond
from parasol.pde.sparse_direct import chosen_solver
from parasol.runtime.plain import Plain
from parasol.space.elements import DEFAULT_DEGREE, DEGREES, Elements, check_elements, make_elements
from parasol.space.nodes import Nodes, scatter
from parasol.space.operators import StencilReport
from parasol.space.spacing import feature_spacing
from parasol.space.stencils import default_scheme
from parasol.space.triangles import Triangles

Spacing = Callable[[np.ndarray], np.ndarray]
_FEWEST = 20  # corners
_REACH, _CLOSEST = 0.1, 1e-3  # of the domain's size: how far grading begins, and of that how close it goes on
_FEW = 200  # nodes on which it is tried whether elements can solve a problem
_HELD = ("triangles", "region", "edges", "middles", "part", "inner_edges", "inner_middles")  # of a mesh, in a file


def discretize_by_elements(
    problem: Problem,
    nodes: Nodes | None,
    degree: int | None,
    *,
    solver: str,
    step: float | None,
    integrator: str | None,
) -> Model:
    """Discretise a linear problem by Lagrange elements whose corners are the given nodes.

    Without nodes, the corners are as many as make about the usual number of nodes with those along the edges.
    """
    degree = DEFAULT_DEGREE.get(problem.domain.dimension, 2) if degree is None else degree
    check_elements(problem.domain, degree)
    if nodes is None:
        nodes = corners_for(problem, Settings(), degree)
    if nodes.dimension != problem.domain.dimension:
        raise InputError(f"nodes have {nodes.dimension} coordinates, the problem's domain {problem.domain.dimension}.")
    check_nodes(problem, nodes)
    model = _model(problem, make_elements(nodes, degree), solver=solver, step=step, integrator=integrator)
    for reason in rough_places(problem, model.nodes, elements=True):
        warnings.warn(reason, ParasolWarning, stacklevel=3)
    return model


def elements_instead(problem: Problem, nodes: Nodes, **options: Any) -> Model | None:
    """A model by elements where stencils on these nodes would be undependable, with a word that says so; else None."""
    reason = needs_elements(problem, nodes)
    try:
        return None if reason is None else discretize_by_elements(problem, None, None, **options)
    except UnsuitableNodes:
        return None


def wants_elements(problem: Problem, settings: Settings, *, rng: int = 0) -> bool:
    """Whether the problem needs elements and the settings do not ask for stencils."""
    asked = (settings.kernel, settings.degree, settings.stencil_size)
    free = settings.method == "fill" and all(choice is None for choice in asked) and problem.domain.dimension == 2
    return free and problem.time is None and needs_elements(problem, nodes_for(problem, settings, rng=rng)) is not None


def needs_elements(problem: Problem, nodes: Nodes) -> str | None:
    """Where stencils on these nodes would be undependable and elements are not, after a word that says so; else None.

    That is for steady linear problems in the plane at singular points: slopes at re-entrant corners, changes of condition,
    points where more than two materials meet. Where elements cannot be used the stencils' own warnings have to do.
    """
    if problem.domain.dimension != 2 or problem.domain.periods.any() or problem.time is not None or not problem.linear:
        return None
    reasons = singular_reasons(problem, nodes)
    if not reasons:
        return None
    try:
        check_elements(problem.domain, 2)  # first of all whether the package is there
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ParasolWarning)  # about nodes that nothing is solved on
            few = make_elements(corners_for(problem, Settings(n_nodes=_FEW), 2), 2)
            assemble(problem, few, list(_given(problem, few)))
    except NotInstalled as error:
        warnings.warn(
            f"{reasons[0]}. Stencils are used, which are inaccurate there; elements would be better, but {error}",
            MissingPackage,
            stacklevel=4,
        )
        return None
    except UnsuitableNodes:
        pass  # so few nodes do not show all regions or parts; more may
    except InputError:
        return None
    warnings.warn(
        f"{reasons[0]}: solved by elements, which converge evenly there, not by stencils. Say so yourself with "
        'method="elements", or choose method="stencils".',
        ParasolWarning,
        stacklevel=4,
    )
    return reasons[0]


def elements_for(
    problem: Problem, settings: Settings, *, spacing: Spacing | None = None, rng: int = 0, solver: str = "auto"
) -> Model:
    """Elements with about as many nodes as the settings say, their spacing times `spacing` where it is given."""
    degree = DEFAULT_DEGREE[problem.domain.dimension]
    elements = make_elements(corners_for(problem, settings, degree, finer=spacing, rng=rng), degree)
    return _model(problem, elements, solver=solver)


def _model(problem: Problem, elements: Elements, *, solver: str = "auto", step=None, integrator=None) -> Model:
    terms = assemble(problem, elements, list(_given(problem, elements)))
    solver = chosen_solver(solver, len(terms.pattern.points), elements.dimension)
    scheme = default_scheme(elements.dimension)  # for values between the nodes of a saved surrogate
    report = StencilReport.of(np.empty(0))
    return Model(problem, elements.nodes, scheme, report, terms, solver, step, integrator, elements)


# ---- the same again, or finer ----------------------------------------------------------------------------------------
def finer_elements(model: Model, n_nodes: int, *, rng=0) -> Model:
    """The model's problem by elements of the same degree with about so many nodes of the program's choice."""
    assert model.elements is not None
    settings, degree = model.problem.settings.get("default", Settings()), model.elements.degree
    elements = make_elements(corners_for(model.problem, replace(settings, n_nodes=n_nodes), degree, rng=rng), degree)
    return _model(model.problem, elements, solver=model.solver, step=model.step, integrator=model.integrator)


def of_degree(model: Model, degree: int) -> Model | None:
    """The model by elements of another degree on the same triangles, where there are such elements."""
    elements = model.elements
    if elements is None or degree not in DEGREES[elements.dimension]:
        return None
    other = replace(elements, degree=degree)
    return _model(model.problem, other, solver=model.solver, step=model.step, integrator=model.integrator)


def mesh_facts(elements: Elements) -> Plain:
    """What it takes, besides the nodes, to make the same elements again: numbers and lists."""
    mesh = elements.mesh
    lists = {name: getattr(mesh, name).tolist() for name in _HELD}
    return {"degree": elements.degree, "corners": elements.corners.tolist(), **lists}


def by_elements_again(problem: Problem, points: np.ndarray, held: Plain, *, step, integrator) -> Model:
    """The model of the elements that `mesh_facts` describes, with the nodes (n_nodes, dimension)."""
    try:
        width = problem.domain.dimension
        lists = {name: np.array(held[name]) for name in _HELD}
        lists |= {name: lists[name].reshape(-1, width) for name in ("inner_edges", "inner_middles")}
        lists["inner_edges"] = lists["inner_edges"].astype(int)
        elements = Elements(
            problem.domain, held["degree"], Triangles(np.asarray(points)[np.array(held["corners"], dtype=int)], **lists)
        )
        check_elements(problem.domain, elements.degree)
        fits = elements.nodes.points.shape == points.shape and np.allclose(elements.nodes.points, points, atol=1e-9)
    except (KeyError, TypeError, ValueError, IndexError):
        fits = False
    if not fits:
        raise FileError("the file's account of its elements does not fit the problem: is it another one?")
    return _model(problem, elements, step=step, integrator=integrator)


def corners_for(
    problem: Problem, settings: Settings, degree: int, *, finer: Spacing | None = None, rng: int = 0
) -> Nodes:
    """Scatter corners so that elements of this degree have about as many nodes as the settings say.

    They are graded to singular points; `finer` is a factor for the spacing beside that.
    By Euler's formula V corners in the plane, B of them on the boundary, make k² V − k (k − 1) B / 2 nodes at degree k.
    """
    dimension = problem.domain.dimension
    wanted = DEFAULT_N_NODES[dimension] if settings.n_nodes is None else settings.n_nodes
    settings = replace(settings, n_boundary=None, method="fill")
    if dimension == 1:
        return nodes_for(problem, replace(settings, n_nodes=1 + max(2, (wanted - 1) // degree)), rng=rng)
    few = nodes_for(problem, replace(settings, n_nodes=max(_FEWEST, round(wanted / degree**2))), rng=rng)
    usual = graded(problem, few, degree) or feature_spacing(problem.domain)
    spacing = usual if finer is None else (lambda points: usual(points) * finer(points))
    few = scatter(problem.domain, n_nodes=few.n_nodes, spacing=spacing, rng=rng)
    root = (degree - 1) / 2 * few.n_boundary / np.sqrt(few.n_nodes)  # B grows like the square root of V
    n_corners = ((root + np.sqrt(root**2 + 4 * wanted)) / (2 * degree)) ** 2
    return scatter(problem.domain, n_nodes=max(_FEWEST, round(n_corners)), spacing=spacing, rng=rng)


def graded(problem: Problem, nodes: Nodes, degree: int) -> Spacing | None:
    """A relative spacing that is finer towards points where solutions behave like r^λ, h ∝ r^(1 − λ / degree); else None.

    With it the error in energy is as on a smooth problem with as many nodes (Babuška, Kellogg and Pitkäranta 1979).
    """
    exponents = singular_exponents(problem, nodes)
    if not exponents:
        return None
    base, reach = feature_spacing(problem.domain), _REACH * problem.domain.size

    def spacing(points: np.ndarray) -> np.ndarray:
        out = np.ones(len(points))
        for exponent, place in exponents:
            away = np.clip(np.linalg.norm(points - place, axis=1) / reach, _CLOSEST, 1.0)
            out = np.minimum(out, away ** (1 - exponent / degree))
        return out * base(points)

    return spacing


def _given(problem: Problem, elements: Elements) -> Iterator[Given]:
    """The conditions that give values, at the nodes of their parts; those of a part go before slopes at its ends."""
    nodes, names, n_unknowns = elements.nodes, problem.domain.part_names, len(problem.names)
    regions = [None] if not problem.region_names else list(range(len(problem.region_names)))
    own = np.zeros(nodes.n_boundary) if nodes.touches is None else np.argmax(nodes.touches[nodes.n_interior :], axis=1)
    for region in regions:
        conditions = problem.conditions_in(region)
        values = np.array([[conditions[name][j].states_value for name in names] for j in range(n_unknowns)])
        part = condition_parts(nodes, values)
        for j in range(n_unknowns):
            beyond = parts_beyond(nodes, [conditions[name][j] for name in names], part[j])
            jump = beyond != part[j]  # where given values jump in the middle of a side, the node takes their mean
            for p in np.flatnonzero(values[j]):
                condition = conditions[names[p]][j]
                shared = jump & ((part[j] == p) | (beyond == p))
                for form, here in ((condition, (part[j] == p) & ~jump), (halved(condition), shared)):
                    here = here & (own == (region or 0))
                    if np.any(here):
                        yield Given(form, j, nodes.n_interior + np.flatnonzero(here), nodes.part_normals[here, p])
