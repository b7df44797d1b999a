"""The discretisation of a surrogate made again from what its file holds."""

from __future__ import annotations

import numpy as np

from parasol.errors import FileError
from parasol.learning.nodes import discretize_on
from parasol.pde.by_elements import by_elements_again, mesh_facts
from parasol.pde.model import Model
from parasol.pde.problem import Problem, Settings
from parasol.runtime.provenance import NodesRecord
from parasol.space.nodes import Nodes
from parasol.space.stencils import Scheme


def record_of(model: Model) -> NodesRecord:
    """What a file must hold, besides points and stencils, to make the same model again."""
    nodes = model.nodes
    ghosts = model.n_unknowns > len(model.problem.names) * model.n_nodes
    beside = np.empty(0, dtype=int) if nodes.interfaces is None else np.unique(nodes.interfaces.node)
    node, part = np.nonzero(nodes.on_part & np.any(nodes.part_normals != nodes.normals[:, None], axis=2))
    return NodesRecord(
        neumann="ghosts" if ghosts else "one-sided",
        step=model.step,
        integrator=model.integrator,
        normals=nodes.normals,
        part=nodes.part,
        on_part=nodes.on_part,
        corners=np.column_stack([node, part, nodes.part_normals[node, part]]),
        spacing=nodes.spacing[nodes.n_interior :],
        at_interfaces=np.column_stack([beside, nodes.spacing[beside]]),
        elements=None if model.elements is None else mesh_facts(model.elements),
    )


def rebuilt(problem: Problem, points: np.ndarray, n_interior: int, scheme: Scheme, held: NodesRecord) -> Model:
    """The model that a record describes, for the same problem."""
    if held.elements is not None:
        return by_elements_again(problem, points, held.elements, step=held.step, integrator=held.integrator)
    n = len(points) - n_interior
    try:
        normals = np.array(held.normals, dtype=float).reshape(n, points.shape[1])
        part = np.array(held.part, dtype=int).reshape(n)
        on_part = np.array(held.on_part, dtype=bool).reshape(n, len(problem.domain.part_names))
        at_boundary = np.array(held.spacing, dtype=float).reshape(n)
        corners = np.array(held.corners, dtype=float).reshape(-1, 2 + points.shape[1])
        part_normals = np.repeat(normals[:, None], on_part.shape[1], axis=1)
        part_normals[corners[:, 0].astype(int), corners[:, 1].astype(int)] = corners[:, 2:]
        at_interfaces = np.array(held.at_interfaces, dtype=float).reshape(-1, 2)
        # ghosts depend on the spacing at the boundary and at interfaces; elsewhere it has done its work
        spacing = np.concatenate([np.full(n_interior, float(np.mean(at_boundary)) if n else 1.0), at_boundary])
        spacing[at_interfaces[:, 0].astype(int)] = at_interfaces[:, 1]
    except (TypeError, ValueError, IndexError):
        raise FileError(
            "the file's account of its boundary nodes does not fit the problem: is it another one?"
        ) from None
    nodes = Nodes(problem.domain, np.asarray(points), n_interior, normals, part, on_part, spacing, part_normals)
    chosen = {"kernel": scheme.kernel, "degree": scheme.degree, "stencil_size": scheme.stencil_size}
    steps = {"neumann": held.neumann, "step": held.step, "integrator": held.integrator}
    return discretize_on(problem, nodes, Settings(**chosen, **steps))
