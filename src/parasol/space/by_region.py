"""Nodes of a domain with regions, region by region: what is smooth on each side of an interface is not smooth across it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from scipy import sparse

from parasol.errors import UnsuitableNodes
from parasol.space.elements import Elements
from parasol.space.kernels import MultiIndex
from parasol.space.neighbours import Cloud
from parasol.space.nodes import Nodes
from parasol.space.operators import differentiate
from parasol.space.stencils import Scheme
from parasol.space.surrounding import value_weights


def of_regions(nodes: Nodes) -> Iterator[tuple[np.ndarray, Nodes]]:
    """For each region the nodes in it and on its interfaces, as numbers (n_members,) and as nodes of the region's domain.

    Nodes on interfaces count as boundary nodes of a region; they have no parts and no normals.
    """
    assert nodes.touches is not None
    alone = np.count_nonzero(nodes.touches, axis=1) == 1
    inner = alone & (np.arange(nodes.n_nodes) < nodes.n_interior)
    regions = nodes.domain.divided
    assert regions is not None
    for own, domain in zip(nodes.touches.T, regions.region_domains, strict=True):
        members = np.concatenate([np.flatnonzero(own & inner), np.flatnonzero(own & ~inner)])
        n_interior = int(np.count_nonzero(own & inner))
        n_boundary, n_parts = len(members) - n_interior, len(domain.part_names)
        yield (
            members,
            Nodes(
                domain,
                nodes.points[members],
                n_interior,
                np.zeros((n_boundary, nodes.dimension)),
                np.zeros(n_boundary, dtype=int),
                np.zeros((n_boundary, n_parts), dtype=bool),
                nodes.spacing[members],
            ),
        )


def derivatives_at(
    nodes: Nodes, points: np.ndarray, derivatives: Sequence[MultiIndex], scheme: Scheme | Elements
) -> Mapping[MultiIndex, sparse.csr_array]:
    """Matrices (n_points, n_nodes) that take values at nodes to derivatives at points, each from nodes of its own region."""
    if isinstance(scheme, Elements):
        return scheme.derivatives_at(points, derivatives)
    if nodes.touches is None:
        return _derivatives(Cloud(nodes.points, nodes.domain), points, derivatives, scheme)
    region = nodes.domain.region_of(points)
    surroundings = nodes.domain.divided.surroundings  # type: ignore[union-attr]
    parts: dict[MultiIndex, list[sparse.coo_array]] = {index: [] for index in derivatives}
    for k, (members, own) in enumerate(of_regions(nodes)):
        here = np.flatnonzero(region == k)
        if not len(here):
            continue
        matrices = _derivatives(Cloud(own.points, surroundings[k]), points[here], derivatives, scheme)
        for index in derivatives:
            rows = matrices[index].tocoo()
            entries = (rows.data, (here[rows.row], members[rows.col]))
            parts[index].append(sparse.coo_array(entries, shape=(len(points), nodes.n_nodes)))
    return {index: sparse.csr_array(sum(some)) for index, some in parts.items()}


def _derivatives(
    cloud: Cloud, points: np.ndarray, derivatives: Sequence[MultiIndex], scheme: Scheme
) -> Mapping[MultiIndex, sparse.csr_array]:
    if len(derivatives) == 1 and not any(derivatives[0]):
        return {derivatives[0]: value_weights(cloud, points, scheme)}
    return differentiate(cloud, points, derivatives, scheme).matrices


def check_regions(nodes: Nodes, scheme: Scheme) -> None:
    """Refuse regions with too few nodes for a stencil of their own, or none inside."""
    if nodes.touches is None:
        return
    inside = np.asarray(np.any(nodes.touches[np.count_nonzero(nodes.touches, axis=1) == 1], axis=0))
    counts = np.count_nonzero(nodes.touches, axis=0)
    for name, count, some in zip(nodes.domain.region_names, counts, inside, strict=True):
        if not some:
            raise UnsuitableNodes(
                f"region {name!r} is too small or thin for stencils on these nodes: none lies inside it. Use more nodes, or "
                'method="elements".'
            )
        if count < scheme.stencil_size:
            raise UnsuitableNodes(
                f"the region {name!r} has {count} nodes, fewer than the {scheme.stencil_size} of a stencil, which may not "
                "look across an interface. Use more nodes, or a smaller spacing there."
            )
