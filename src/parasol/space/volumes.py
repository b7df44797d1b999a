"""Volumes of the nodes' cells: the weights that turn sums over nodes into integrals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from parasol.space.nodes import Nodes
from parasol.space.wrap import Wrap

_PER_SPACING = {1: 128, 2: 16, 3: 7}  # sample points per distance to the next node, along each axis
_AT_ONCE = 2**19  # points asked about at a time


def node_volumes(nodes: Nodes) -> np.ndarray:
    """Volume of the part of the domain that is nearer to each node than to all others, (n_nodes,).

    Cells are counted out with sample points, several per spacing however much it varies: a node's volume is right to a
    few per cent, their sum is the domain's volume. All are positive. The same nodes give the same bytes.

    >>> from parasol.space.geometry.primitives import Box
    >>> from parasol.space.nodes import lattice
    >>> volumes = node_volumes(lattice(Box((0, 0), (1, 1)), 11))
    >>> round(float(volumes.sum()), 9), bool(abs(volumes[0] - 0.01) < 5e-4)  # an interior node has a cell of 0.1 x 0.1
    (1.0, True)
    """
    volumes, smallest = np.zeros(nodes.n_nodes), np.zeros(nodes.n_nodes)
    for samples in cell_samples(nodes):
        volumes += np.bincount(samples.owner, minlength=nodes.n_nodes) * samples.volume
        smallest = samples.smallest
    # a node in a sharp corner, or one of two in the same place, may have met no sample point
    volumes = np.where(volumes > 0, volumes, smallest)
    return volumes * (nodes.domain.volume() / volumes.sum())


@dataclass(frozen=True, eq=False)
class Samples:
    """Small cells that fill the domain: their centres, the node that each belongs to, and the volume of one."""

    centres: np.ndarray  # (n, dimension)
    owner: np.ndarray  # (n,)
    volume: float
    smallest: np.ndarray  # (n_nodes,) volume below which a node's cell may have met no point


def cell_samples(nodes: Nodes) -> Iterator[Samples]:
    """Sampling cells of the domain, several per spacing however much it varies, in blocks; the same ones every time."""
    domain, dimension = nodes.domain, nodes.dimension
    wrap = Wrap.of(domain)
    tree = wrap.tree(nodes.points)
    nearest = wrap.query(tree, nodes.points, 2)[0][:, 1] if nodes.n_nodes > 1 else nodes.spacing
    # on lattices with unequal steps the next node counts; two nodes almost in one place must not count for ever
    wanted = np.clip(nearest, 0.1 * nodes.spacing, nodes.spacing) / _PER_SPACING[dimension]
    # a ball of this radius around the node lies in the domain, so most points need not be asked about
    depth = np.zeros(nodes.n_nodes)
    depth[: nodes.n_interior] = -domain.distance(nodes.interior) if domain.part_names else np.inf
    if dimension < 3:
        wanted[nodes.n_interior :] /= 2  # cells cut by the boundary are small

    lower, extent = domain.bounds[0], np.ptp(domain.bounds, axis=0)
    counts = np.ceil(extent / (16 * wanted.max())).astype(int)
    size = extent / counts
    cells = np.stack([i.ravel() for i in np.indices(counts)], axis=1)
    children = np.stack([i.ravel() for i in np.indices((2,) * dimension)], axis=1)
    rng = np.random.default_rng(0)
    # halve the sampling cells until they are small against the spacing of the node they belong to
    while len(cells):
        divided = []
        for part in np.array_split(cells, 1 + len(cells) // _AT_ONCE):
            # somewhere in its cell: on lattices the centres would lie just between two nodes
            points = lower + (part + rng.random(part.shape)) * size
            away, owner = (column[:, 0] for column in wrap.query(tree, points, 1))
            coarse, unsure = size.max() > wanted[owner], away > depth[owner]
            kept = np.ones(len(part), dtype=bool)
            asked = unsure & coarse
            if asked.any():
                kept[asked] = domain.distance(points[asked]) < np.linalg.norm(size)
            asked = unsure & ~coarse
            if asked.any():
                kept[asked] = domain.contains(points[asked])
            divided.append(part[kept & coarse])
            fine = kept & ~coarse
            centres = lower + (part[fine] + 0.5) * size
            yield Samples(centres, owner[fine], float(np.prod(size)), wanted**dimension)
        cells = (2 * np.concatenate(divided)[:, None, :] + children).reshape(-1, dimension)
        size = size / 2
