"""Triangles between the nodes of a plane domain, whose boundary edges know the true boundary and its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial import Delaunay, KDTree

from parasol.errors import InputError, UnsuitableNodes
from parasol.space.geometry.domain import Domain
from parasol.space.geometry.pieces import Pieces, arc_lengths, pieces, points_along
from parasol.space.nodes import Nodes

_THIN = 0.5  # in spacings: what is thinner is no piece of the boundary, as in `space.boundary`
_BENT = 0.15  # of its length, by which the boundary may leave an edge before the edge is halved
_ROUNDS = 40  # of halving edges that are missing or too bent
_FOLDED = 0.2  # of a triangle's area, by which curved edges may not shrink it anywhere below
_MOST = 3  # times as many vertices as nodes, at which it is given up
_OFF = 1e-3  # of the domain's size: what is farther from an arc, whose polyline is dense, does not lie on it
_MOSTLY = 0.8  # of the area of triangles between interfaces, that must be in one region
_FLAT = 1e-9  # height of a triangle over its longest side, below which it is three points on a line
_SAME = 1e-7  # of the domain's size: points nearer than this are one


@dataclass(frozen=True, eq=False)
class Triangles:
    """Triangles of a plane domain: corners, and the edges that may be curved with the points halfway along them.

    Every edge of the boundary belongs to one triangle and lies on one part; edges of interfaces lie between regions.
    """

    points: np.ndarray  # (n_points, 2)
    triangles: np.ndarray  # (n_triangles, 3) into points, counterclockwise
    region: np.ndarray  # (n_triangles,) index into domain.region_names, 0 where there are none
    edges: np.ndarray  # (n_edges, 2) into points: those on the boundary
    middles: np.ndarray  # (n_edges, 2): points of the boundary
    part: np.ndarray  # (n_edges,) index into domain.part_names
    inner_edges: np.ndarray  # (n_inner, 2) into points: those on interfaces
    inner_middles: np.ndarray  # (n_inner, 2): points of the interfaces


@dataclass(eq=False)
class _Chain:
    """Vertices along one arc, in order, with their lengths along it; of a closed arc the first one again at the end."""

    shape: Domain  # whose boundary the arc is a piece of
    arc: Pieces
    vertices: list[int]
    places: list[float]
    # of an arc of the domain's boundary, else empty: lengths at which its pieces begin, and the part of each, (n_pieces,)
    starts: np.ndarray
    parts: np.ndarray

    def points(self, places) -> np.ndarray:
        """The points of the arc at these lengths, (n, 2)."""
        places = np.atleast_1d(places)
        along = np.mod(places, self.arc.length) if self.arc.closed else places
        return self.shape.project(points_along(self.arc.points, along))

    @property
    def edges(self) -> np.ndarray:
        """(n_edges, 2) vertices."""
        return np.stack([self.vertices[:-1], self.vertices[1:]], axis=1)

    @property
    def middles(self) -> np.ndarray:
        """Lengths along the arc halfway along the edges, (n_edges,)."""
        return (np.array(self.places[1:]) + np.array(self.places[:-1])) / 2

    @property
    def edge_parts(self) -> np.ndarray:
        """The part of each edge, (n_edges,)."""
        along = np.mod(self.middles, self.arc.length) if self.arc.closed else self.middles
        return self.parts[np.searchsorted(self.starts, along, side="right") - 1]

    def insert(self, edge: int, place: float, vertex: int) -> None:
        """Put a vertex into an edge."""
        self.vertices.insert(edge + 1, vertex)
        self.places.insert(edge + 1, float(place))


def triangulate(nodes: Nodes) -> Triangles:
    """Delaunay triangles between the nodes of a plane domain; all of its boundary is made of their edges.

    Where an edge of the boundary is missing among the triangles, or the boundary is bent too much for it, as in narrow
    gaps and around small holes, a vertex is inserted in its middle.

    >>> from parasol.space.geometry.primitives import Box
    >>> from parasol.space.nodes import lattice
    >>> square = triangulate(lattice(Box((0, 0), (1, 1)), 5))
    >>> len(square.points), len(square.triangles), len(square.edges)
    (25, 32, 16)
    """
    domain = nodes.domain
    if domain.dimension != 2 or domain.periods.any() or not nodes.n_boundary:
        raise InputError("only a plane domain that is not periodic is cut into triangles.")
    outer, points = _chains(nodes)
    inner, points = _inner_chains(nodes, points)
    chains = [*outer, *inner]
    for _ in range(_ROUNDS):
        mesh = Delaunay(points)
        halved = [(chain, edge) for chain in chains for edge in _to_halve(chain, points, mesh).tolist()]
        if not halved:
            triangulation = _inside(domain, outer, inner, points, mesh)
            folded = np.flatnonzero(_folded(triangulation))
            if not len(folded):
                return triangulation
            first = np.cumsum([0, *[len(chain.edges) for chain in chains]])
            owners = np.searchsorted(first, folded, side="right") - 1
            halved = [(chains[k], int(e - first[k])) for k, e in zip(owners, folded, strict=True)]
        if len(points) > _MOST * nodes.n_nodes + 1000:
            break
        for chain, edge in reversed(halved):  # from the end of each chain, lest edges move before their turn
            place = float(chain.middles[edge])
            chain.insert(edge, place, len(points))
            points = np.concatenate([points, chain.points(place)])
    raise UnsuitableNodes(
        f"the boundary of the domain cannot be made of edges of triangles between these {nodes.n_nodes} nodes. "
        "Use more nodes."
    )


# ---- the boundary ----------------------------------------------------------------------------------------------------
def _chains(nodes: Nodes) -> tuple[list[_Chain], np.ndarray]:
    """The vertices along each arc of the boundary, and all vertices: also corners and ends of parts without a node."""
    domain, arcs = nodes.domain, pieces(nodes.domain)
    on_arcs, points = _along(arcs, nodes.points, np.arange(nodes.n_interior, nodes.n_nodes), _SAME * domain.size)
    chains = []
    for arc, (vertices, along) in zip(arcs, on_arcs, strict=True):
        chain = _Chain(domain, arc, vertices, along, *_kept(nodes, arc))
        for start in chain.starts[0 if arc.closed else 1 :] if len(chain.starts) > 1 else ():
            start += arc.length if start < along[0] else 0.0
            edge = int(np.searchsorted(chain.places, start)) - 1
            if np.min(np.abs(np.array(chain.places) - start)) > _SAME * domain.size:
                chain.insert(edge, start, len(points))
                points = np.concatenate([points, chain.points(start)])
        chains.append(chain)
    return chains, points


def _inner_chains(nodes: Nodes, points: np.ndarray) -> tuple[list[_Chain], np.ndarray]:
    """The vertices along each arc of an interface between regions, and all vertices."""
    divided = nodes.domain.divided
    if nodes.interfaces is None or divided is None:
        return [], points
    lines = divided.lines
    arcs = [Pieces(arc.line, arc.closed, np.array([0, len(arc.line) - 1]), np.ones((1, 1), bool)) for arc, _ in lines]
    some = np.unique(np.concatenate([nodes.interfaces.node, np.arange(nodes.n_nodes, len(points))]))
    on_arcs, points = _along(arcs, points, some, _SAME * nodes.domain.size)
    none = np.empty(0, dtype=int)
    chains = [
        _Chain(shape, arc, vertices, places, none, none)
        for (_, shape), arc, (vertices, places) in zip(lines, arcs, on_arcs, strict=True)
    ]
    return chains, points


def _along(arcs: Sequence[Pieces], points: np.ndarray, some: np.ndarray, tolerance: float):
    """Of `some` points those along each arc, in order, with their lengths along it, and all points.

    The ends of an arc are among them; they are appended to the points where there is none.
    """
    gaps, places = zip(*[_nearest(arc.points, points[some]) for arc in arcs], strict=True)
    owner = np.argmin(gaps, axis=0)
    on = np.min(gaps, axis=0) <= _OFF * np.linalg.norm(np.ptp(points, axis=0))
    at_ends = []
    for end in [arc.points[k] for arc in arcs if not arc.closed for k in (0, -1)]:  # a corner is the end of two arcs
        near = int(np.argmin(np.linalg.norm(points - end, axis=1)))
        if np.linalg.norm(points[near] - end) > tolerance:
            near, points = len(points), np.concatenate([points, [end]])
        at_ends.append(near)
    on_arcs = []
    free = on & ~np.isin(some, at_ends)
    for k, (arc, place) in enumerate(zip(arcs, places, strict=True)):
        own = np.flatnonzero((owner == k) & free)
        own = own[np.argsort(place[own])]
        vertices, along = [int(v) for v in some[own]], place[own].tolist()
        if not arc.closed:
            vertices, along = [at_ends.pop(0), *vertices, at_ends.pop(0)], [0.0, *along, arc.length]
        elif len(vertices) >= 3:
            vertices, along = [*vertices, vertices[0]], [*along, along[0] + arc.length]
        else:
            raise UnsuitableNodes(f"a closed curve of the boundary has {len(vertices)} nodes. Use more nodes.")
        on_arcs.append((vertices, along))
    return on_arcs, points


def _kept(nodes: Nodes, arc: Pieces) -> tuple[np.ndarray, np.ndarray]:
    """Where along an arc parts begin, and which: (n_pieces,) lengths and parts.

    What is thinner than half a spacing belongs to the piece before it, unless its part would be lost.
    """
    length = arc_lengths(arc.points)[arc.cuts]
    parts = np.argmax(arc.parts, axis=1)
    places = points_along(arc.points, (length[1:] + length[:-1]) / 2, arc_lengths(arc.points))
    spacing = nodes.spacing[nodes.n_interior + KDTree(nodes.boundary).query(places)[1]]
    every = np.concatenate([np.argmax(other.parts, axis=1) for other in pieces(nodes.domain)])
    rare = np.array([np.count_nonzero(every == part) == 1 for part in parts])
    thick = (np.diff(length) > _THIN * spacing) | rare
    thick[np.argmax(np.diff(length))] = True
    starts, parts = length[:-1][thick], parts[thick]
    if not arc.closed:
        starts[0] = 0.0
    new = np.append(True, parts[1:] != parts[:-1])
    starts, parts = starts[new], parts[new]
    if starts[0] > 0:  # a closed arc begins with the piece that ends it
        starts, parts = np.append(0.0, starts), np.append(parts[-1], parts)
    return starts, parts


def _nearest(line: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distance of points (n, 2) from a polyline, and the length along it of the nearest of its points: (n,) each."""
    start, way = line[:-1], np.diff(line, axis=0)
    square, along = np.maximum(np.sum(way**2, axis=1), 1e-300), arc_lengths(line)
    gap, place = np.empty(len(points)), np.empty(len(points))
    for some in np.array_split(np.arange(len(points)), 1 + len(points) * len(start) // 1_000_000):
        away = points[some, None] - start
        share = np.clip(np.einsum("nsd,sd->ns", away, way) / square, 0.0, 1.0)
        distance = np.linalg.norm(away - share[:, :, None] * way, axis=2)
        best = np.argmin(distance, axis=1)
        row = np.arange(len(some))
        gap[some], place[some] = distance[row, best], along[best] + share[row, best] * np.sqrt(square[best])
    return gap, place


def _to_halve(chain: _Chain, points: np.ndarray, mesh: Delaunay) -> np.ndarray:
    """The edges of a chain that are no edges of triangles, or from which the boundary is bent too far: ascending."""
    first, last = points[chain.edges[:, 0]], points[chain.edges[:, 1]]
    bend = np.linalg.norm(chain.points(chain.middles) - (first + last) / 2, axis=1)
    there = np.isin(_keys(chain.edges, len(points)), _keys(_sides(mesh.simplices), len(points)))
    return np.flatnonzero(~there | (bend > _BENT * np.linalg.norm(last - first, axis=1)))


def _sides(triangles: np.ndarray) -> np.ndarray:
    """The edges of triangles (n, 3), the one opposite corner 0, then 1, then 2 of all: (3 n, 2)."""
    return np.concatenate([triangles[:, pair] for pair in ((1, 2), (2, 0), (0, 1))])


def _keys(edges: np.ndarray, n_points: int) -> np.ndarray:
    """One number for each edge, whichever way it goes."""
    return np.min(edges, axis=1).astype(np.int64) * n_points + np.max(edges, axis=1)


# ---- the inside ------------------------------------------------------------------------------------------------------
def _inside(domain: Domain, outer: list[_Chain], inner: list[_Chain], points: np.ndarray, mesh: Delaunay) -> Triangles:
    """The triangles inside the domain: those that edges of the boundary separate from the outside."""
    edges = np.concatenate([chain.edges for chain in outer])
    middles = np.concatenate([chain.points(chain.middles) for chain in outer])
    part = np.concatenate([chain.edge_parts for chain in outer])
    inner_edges = np.concatenate([np.empty((0, 2), dtype=int), *[chain.edges for chain in inner]])
    inner_middles = np.concatenate([np.empty((0, 2)), *[chain.points(chain.middles) for chain in inner]])
    triangles = mesh.simplices.copy()
    turned = _area(points, triangles) < 0
    triangles[turned] = triangles[turned][:, [0, 2, 1]]
    longest = np.max(np.linalg.norm(np.diff(points[_sides(triangles)], axis=1), axis=2).reshape(3, -1), axis=0)
    triangles = triangles[2 * _area(points, triangles) > _FLAT * longest**2]

    keys, sides = _keys(edges, len(points)), _keys(_sides(triangles), len(points))
    owner = np.tile(np.arange(len(triangles)), 3)
    order = np.argsort(keys)
    on = np.flatnonzero(np.isin(sides, keys))
    edge = order[np.searchsorted(keys, sides[on], sorter=order)]
    # a triangle at an edge of the boundary is inside if its third corner is on the side the normal points away from
    third = points[triangles.T.ravel()[on]] - points[edges[edge]].mean(axis=1)
    way = points[edges[edge, 1]] - points[edges[edge, 0]]
    across = np.stack([way[:, 1], -way[:, 0]], axis=1)
    outward = across * np.sign(np.sum(across * domain.plain(middles)[1][edge], axis=1))[:, None]
    inner_side = np.sum(third * outward, axis=1) < 0

    group = _groups(sides, keys, owner)
    votes = [np.bincount(group[owner[on[some]]], minlength=group.max() + 1) for some in (inner_side, ~inner_side)]
    kept = triangles[(votes[0] > 0)[group]]
    unique, counts = np.unique(_keys(_sides(kept), len(points)), return_counts=True)
    if np.any((votes[0] > 0) & (votes[1] > 0)) or not np.array_equal(unique[counts == 1], np.sort(keys)):
        raise UnsuitableNodes(
            "the triangles between these nodes do not fit the boundary of the domain. Use more nodes, above all in "
            "narrow places."
        )
    region = _regions(domain, points, kept, _keys(inner_edges, len(points)))
    used = np.unique(kept)
    number = np.full(len(points), -1)
    number[used] = np.arange(len(used))
    return Triangles(
        points[used], number[kept], region, number[edges], middles, part, number[inner_edges], inner_middles
    )


def _groups(sides: np.ndarray, walls: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Numbers of the groups of triangles that share sides other than `walls`, (n_triangles,)."""
    free = np.flatnonzero(~np.isin(sides, walls))
    free = free[np.argsort(sides[free], kind="stable")]
    pair = np.flatnonzero(sides[free][1:] == sides[free][:-1])
    n = int(owner.max()) + 1
    graph = sparse.coo_array((np.ones(len(pair)), (owner[free[pair]], owner[free[pair + 1]])), shape=(n, n))
    return connected_components(graph, directed=False)[1]


def _regions(domain: Domain, points: np.ndarray, triangles: np.ndarray, walls: np.ndarray) -> np.ndarray:
    """The region of each triangle, (n_triangles,): that of most of those that no interface separates from it."""
    names = domain.region_names
    if not names:
        return np.zeros(len(triangles), dtype=int)
    group = _groups(_keys(_sides(triangles), len(points)), walls, np.tile(np.arange(len(triangles)), 3))
    votes = np.zeros((group.max() + 1, len(names)))
    area = _area(points, triangles)
    np.add.at(votes, (group, domain.region_of(points[triangles].mean(axis=1))), area)
    # curved edges may leave a little of a region on the other side of an interface, no more
    if np.any(np.max(votes, axis=1) < _MOSTLY * np.sum(votes, axis=1)):
        raise UnsuitableNodes("the triangles between these nodes do not fit the interfaces. Use more nodes.")
    return np.argmax(votes, axis=1)[group]


def _folded(mesh: Triangles) -> np.ndarray:
    """Which edges of the boundary and then of interfaces nearly fold a triangle over: (n_edges + n_inner,) bool.

    From a corner a quadratic edge leaves in the direction of its end plus four times what its middle is off.
    """
    corners = mesh.points[mesh.triangles]
    edges = np.concatenate([mesh.edges, mesh.inner_edges])
    middles = np.concatenate([mesh.middles, mesh.inner_middles])
    keys, sides = _keys(edges, len(mesh.points)), _keys(_sides(mesh.triangles), len(mesh.points))
    order = np.argsort(keys)
    on = np.isin(sides, keys)
    edge = np.where(on, order[np.minimum(np.searchsorted(keys, sides, sorter=order), len(keys) - 1)], -1)
    off = np.where(on[:, None], (middles - mesh.points[edges].mean(axis=1))[edge], 0.0).reshape(3, -1, 2)
    area = 2 * _area(mesh.points, mesh.triangles)
    worst = np.full(len(area), np.inf)
    for k in range(3):
        one, other = (k + 1) % 3, (k + 2) % 3  # the edge to `one` lies opposite `other`
        a = corners[:, one] - corners[:, k] + 4 * off[other]
        b = corners[:, other] - corners[:, k] + 4 * off[one]
        worst = np.minimum(worst, (a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]) / area)
    bad = np.tile(worst < _FOLDED, 3) & on
    return np.isin(np.arange(len(keys)), edge[bad])


def _area(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Signed areas, positive counterclockwise: (n_triangles,)."""
    one, other = points[triangles[:, 1]] - points[triangles[:, 0]], points[triangles[:, 2]] - points[triangles[:, 0]]
    return (one[:, 0] * other[:, 1] - one[:, 1] * other[:, 0]) / 2
