"""Triangles between the nodes of a plane domain, whose boundary edges know the true boundary and its parts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial import Delaunay, KDTree

from parasol.errors import InputError, UnsuitableNodes
from parasol.space.geometry.domain import Arc, Domain
from parasol.space.geometry.pieces import Pieces, arc_lengths, pieces, points_along
from parasol.space.nodes import Nodes

_THIN = 0.5  # in spacings: what is thinner is no piece of the boundary, as in `space.boundary`
_BENT = 0.15  # of its length, by which the boundary may leave an edge before the edge is halved
_ROUNDS = 40  # of halving edges that are missing or too bent
_FOLDED = 0.2  # of a triangle's area, by which curved edges may not shrink it anywhere below
_MOST = 3  # times as many vertices as nodes, at which it is given up
_FLAT = 1e-9  # height of a triangle over its longest side, below which it is three points on a line
_SAME = 1e-9  # of the domain's size: points nearer than this are one


@dataclass(frozen=True, eq=False)
class Triangles:
    """Triangles of a plane domain: corners, and the edges on the boundary with the points of it halfway along them.

    Every edge of the boundary belongs to one triangle and lies on one part. Where the domain has regions, every triangle
    lies in one of them, and the edges between two regions have points of the interface halfway along them.
    """

    points: np.ndarray  # (n_points, 2)
    triangles: np.ndarray  # (n_triangles, 3) into points, counterclockwise
    edges: np.ndarray  # (n_edges, 2) into points: those on the boundary
    middles: np.ndarray  # (n_edges, 2): points of the boundary
    part: np.ndarray  # (n_edges,) index into domain.part_names
    region: np.ndarray | None = None  # (n_triangles,) index into domain.region_names
    inner_edges: np.ndarray = field(default_factory=lambda: np.empty((0, 2), dtype=int))  # (k, 2): those on interfaces
    inner_middles: np.ndarray = field(default_factory=lambda: np.empty((0, 2)))  # (k, 2): points of the interfaces


@dataclass(eq=False)
class _Chain:
    """Vertices along one arc, in order, with their lengths along it; of a closed arc the first one again at the end."""

    arc: Pieces | Arc
    curve: Domain  # on whose boundary the arc lies
    vertices: list[int]
    places: list[float]
    starts: np.ndarray  # (n_pieces,) lengths at which its pieces begin, the first at or before 0
    parts: np.ndarray  # (n_pieces,) the part of each piece

    def points(self, places) -> np.ndarray:
        """The points of the boundary at these lengths, (n, 2)."""
        places = np.atleast_1d(places)
        along = np.mod(places, self.arc.length) if self.arc.closed else places
        return self.curve.project(points_along(_line_of(self.arc), along))

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
    inner, points = _interface_chains(nodes, points)
    chains = [*outer, *inner]
    for _ in range(_ROUNDS):
        mesh = Delaunay(points)
        halved = [(chain, edge) for chain in chains for edge in reversed(_to_halve(chain, points, mesh).tolist())]
        if not halved:
            found = _inside(domain, outer, inner, points, mesh)
            folded = _folded(found)
            if not np.any(folded):
                return found
            first = np.cumsum([0, *[len(chain.edges) for chain in chains]])
            owners = np.searchsorted(first, np.flatnonzero(folded), side="right") - 1
            halved = [(chains[k], int(e - first[k])) for k, e in zip(owners, np.flatnonzero(folded), strict=True)][::-1]
        if len(points) > _MOST * nodes.n_nodes + 1000:
            break
        for chain, edge in halved:  # from the end of each chain, lest edges move before their turn
            place = chain.middles[edge]
            chain.insert(edge, place, len(points))
            points = np.concatenate([points, chain.points(place)])
    raise UnsuitableNodes(
        f"the boundary of the domain cannot be made of edges of triangles between these {nodes.n_nodes} nodes. "
        "Use more nodes."
    )


# ---- the boundary ----------------------------------------------------------------------------------------------------
def _chains(nodes: Nodes) -> tuple[list[_Chain], np.ndarray]:
    """The vertices along each arc, and all vertices: the nodes, and corners and ends of parts that have no node."""
    domain, arcs = nodes.domain, pieces(nodes.domain)
    points, tolerance = nodes.points, _SAME * nodes.domain.size
    found = [_nearest(arc.points, nodes.boundary) for arc in arcs]
    owner = np.argmin([gap for gap, _ in found], axis=0)
    corner = np.zeros(nodes.n_boundary, dtype=bool)
    chains = []
    ends = np.array([arc.points[k] for arc in arcs if not arc.closed for k in (0, -1)]).reshape(-1, 2)
    for end in ends:  # a corner is the end of two arcs
        if np.min(np.linalg.norm(points[nodes.n_interior :] - end, axis=1)) > tolerance:
            points = np.concatenate([points, [end]])
    rim = KDTree(points[nodes.n_interior :])
    at_ends = rim.query(ends)[1] if len(ends) else np.empty(0, dtype=int)
    corner[at_ends[at_ends < nodes.n_boundary]] = True
    at_ends = list(nodes.n_interior + at_ends)
    for k, (arc, (_, places)) in enumerate(zip(arcs, found, strict=True)):
        own = np.flatnonzero((owner == k) & ~corner)
        own = own[np.argsort(places[own])]
        vertices, along = [int(v) for v in nodes.n_interior + own], places[own].tolist()
        if not arc.closed:
            vertices, along = [int(at_ends.pop(0)), *vertices, int(at_ends.pop(0))], [0.0, *along, arc.length]
        elif len(vertices) >= 3:
            vertices, along = [*vertices, vertices[0]], [*along, along[0] + arc.length]
        else:
            raise UnsuitableNodes(f"a closed curve of the boundary has {len(vertices)} nodes. Use more nodes.")
        chain = _Chain(arc, domain, vertices, along, *_kept(nodes, arc))
        for start in chain.starts[0 if arc.closed else 1 :] if len(chain.starts) > 1 else ():
            start += arc.length if start < along[0] else 0.0
            edge = int(np.searchsorted(chain.places, start)) - 1
            if np.min(np.abs(np.array(chain.places) - start)) > tolerance:
                chain.insert(edge, start, len(points))
                points = np.concatenate([points, chain.points(start)])
        chains.append(chain)
    return chains, points


def _interface_chains(nodes: Nodes, points: np.ndarray) -> tuple[list[_Chain], np.ndarray]:
    """The vertices along each interface, and all vertices: those of before, and ends of interfaces that have no node."""
    if nodes.interfaces is None:
        return [], points
    lines, tolerance = nodes.domain.divided.lines, _SAME * nodes.domain.size
    for arc, _ in lines:
        for end in () if arc.closed else arc.points[[0, -1]]:
            if np.min(np.linalg.norm(points - end, axis=1)) > 10 * tolerance:
                points = np.concatenate([points, [end]])
    tree = KDTree(points)
    at_ends = [tree.query(arc.points[[0, -1]])[1] if not arc.closed else np.empty(0, dtype=int) for arc, _ in lines]
    own = np.setdiff1d(nodes.interfaces.node, np.concatenate(at_ends))
    found = [_nearest(_line_of(arc), points[own]) for arc, _ in lines]
    owner = np.argmin([gap for gap, _ in found], axis=0)
    chains = []
    for k, ((arc, shape), (_, places), ends) in enumerate(zip(lines, found, at_ends, strict=True)):
        mine = np.flatnonzero(owner == k)
        mine = mine[np.argsort(places[mine])]
        vertices, along = own[mine].tolist(), places[mine].tolist()
        if not arc.closed:
            vertices, along = [int(ends[0]), *vertices, int(ends[1])], [0.0, *along, arc.length]
        elif len(vertices) >= 3:
            vertices, along = [*vertices, vertices[0]], [*along, along[0] + arc.length]
        else:
            raise UnsuitableNodes(f"a closed interface has {len(vertices)} nodes. Use more nodes.")
        chains.append(_Chain(arc, shape, vertices, along, np.zeros(1), np.zeros(1, dtype=int)))
    return chains, points


def _line_of(arc: Pieces | Arc) -> np.ndarray:
    """The whole polyline of an arc, for a closed one with its first point once more."""
    return arc.line if isinstance(arc, Arc) else arc.points


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
def _inside(domain: Domain, chains: list[_Chain], inner: list[_Chain], points: np.ndarray, mesh: Delaunay) -> Triangles:
    """The triangles inside the domain: those that edges of the boundary separate from the outside."""
    edges = np.concatenate([chain.edges for chain in chains])
    middles = np.concatenate([chain.points(chain.middles) for chain in chains])
    part = np.concatenate([chain.edge_parts for chain in chains])
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
    within = np.sum(third * outward, axis=1) < 0

    free = np.flatnonzero(~np.isin(sides, keys))
    free = free[np.argsort(sides[free], kind="stable")]
    pair = np.flatnonzero(sides[free][1:] == sides[free][:-1])
    graph = sparse.coo_array(
        (np.ones(len(pair)), (owner[free[pair]], owner[free[pair + 1]])), shape=(len(triangles),) * 2
    )
    group = connected_components(graph, directed=False)[1]
    votes = [np.bincount(group[owner[on[some]]], minlength=group.max() + 1) for some in (within, ~within)]
    kept = triangles[(votes[0] > 0)[group]]
    found = _keys(_sides(kept), len(points))
    unique, counts = np.unique(found, return_counts=True)
    if np.any((votes[0] > 0) & (votes[1] > 0)) or not np.array_equal(unique[counts == 1], np.sort(keys)):
        raise UnsuitableNodes(
            "the triangles between these nodes do not fit the boundary of the domain. Use more nodes, above all in "
            "narrow places."
        )
    used = np.unique(kept)
    number = np.full(len(points), -1)
    number[used] = np.arange(len(used))
    plain = Triangles(points[used], number[kept], number[edges], middles, part)
    if not domain.region_names:
        return plain
    return replace(
        plain,
        region=domain.region_of(plain.points[plain.triangles].mean(axis=1)),
        inner_edges=number[np.concatenate([np.empty((0, 2), dtype=int), *[chain.edges for chain in inner]])],
        inner_middles=np.concatenate([np.empty((0, 2)), *[chain.points(chain.middles) for chain in inner]]),
    )


def _folded(found: Triangles) -> np.ndarray:
    """Which edges of the boundary and of interfaces, curved as they are, nearly fold a triangle over: (n_edges + k,) bool.

    From a corner a quadratic edge leaves in the direction of its end plus four times what its middle is off.
    """
    corners = found.points[found.triangles]
    edges, middles = np.vstack([found.edges, found.inner_edges]), np.vstack([found.middles, found.inner_middles])
    keys, sides = _keys(edges, len(found.points)), _keys(_sides(found.triangles), len(found.points))
    order = np.argsort(keys)
    on = np.isin(sides, keys)
    edge = np.where(on, order[np.minimum(np.searchsorted(keys, sides, sorter=order), len(keys) - 1)], -1)
    off = np.where(on[:, None], (middles - found.points[edges].mean(axis=1))[edge], 0.0).reshape(3, -1, 2)
    area = 2 * _area(found.points, found.triangles)
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
