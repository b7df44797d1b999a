"""Lagrange elements on triangles with curved edges, or on intervals: nodes, shape functions, values between nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial import Delaunay, KDTree

from parasol.errors import InputError, NotInstalled, UnsuitableNodes
from parasol.space.boundary import intervals
from parasol.space.geometry.domain import Domain
from parasol.space.geometry.polygon import cross
from parasol.space.interfaces import Interfaces
from parasol.space.kernels import MultiIndex
from parasol.space.nodes import Nodes
from parasol.space.triangles import Triangles, triangulate

DEGREES = {1: (2,), 2: (2, 3, 4)}  # by dimension
DEFAULT_DEGREE = {1: 2, 2: 3}
_BESIDE = 1e-3  # of an edge, from its end, where the normal of its side is taken
_ROUNDING = 1e-12  # of the domain's size, by which nodes on straight edges may be off the boundary
_NEAREST = 4  # edges of the boundary that a point beyond all straight triangles may belong to
_ON = 1e-9  # by which a place in the reference triangle may lie outside of it
_ROUGHLY = 1e-9  # of the domain's size, by which what Newton's method has found may miss the point
_STEPS = 8  # of Newton's method from a point to its place in a triangle, of which straight ones need one
_REFERENCE = {1: np.array([[0.0], [1.0]]), 2: np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])}


@dataclass(frozen=True, eq=False)
class Samples:
    """Points of cells or of boundary edges with weights for integrals, and the shape functions there.

    Σ weights · f(points) is the integral of f. n cells (or edges), m points in each.
    """

    points: np.ndarray  # (n, m, dimension)
    weights: np.ndarray  # (n, m)
    values: np.ndarray  # (n_local, n, m)
    slopes: np.ndarray  # (dimension, n_local, n, m)
    cells: np.ndarray  # (n,) the cell of each
    normals: np.ndarray | None = None  # (n, m, dimension), outward

    def take(self, rows: np.ndarray) -> Samples:
        """The same of some of the cells or edges only."""
        normals = None if self.normals is None else self.normals[rows]
        some = self.values[:, rows], self.slopes[:, :, rows]
        return Samples(self.points[rows], self.weights[rows], *some, self.cells[rows], normals)


@dataclass(frozen=True, eq=False)
class Elements:
    """Lagrange elements of one degree; their nodes are counted as in the `Nodes` they make, interior first."""

    domain: Domain
    degree: int
    mesh: Triangles

    def __getstate__(self) -> dict:  # tables are made again where they are needed
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __repr__(self) -> str:
        shape = "triangles" if self.dimension == 2 else "intervals"
        return f"{len(self.mesh.triangles)} {shape} of degree {self.degree}"

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.domain.dimension

    # ---- nodes ------------------------------------------------------------------------------------------------------
    @cached_property
    def _mesh_and_element(self) -> tuple[Any, Any]:
        """The mesh with curved edges and the element of scikit-fem."""
        skfem = require_elements()
        if self.dimension == 1:
            return skfem.MeshLine1(self.mesh.points.T.copy(), self.mesh.triangles.T.copy()), skfem.ElementLineP2()
        straight = skfem.MeshTri1(self.mesh.points.T.copy(), self.mesh.triangles.T.copy())
        curved = skfem.MeshTri2.from_mesh(straight)
        places = curved.doflocs.copy()
        for edges, middles in ((self.mesh.edges, self.mesh.middles), (self.mesh.inner_edges, self.mesh.inner_middles)):
            places[:, curved.dofs.facet_dofs[0, self._facets(curved, edges)]] = middles.T
        kinds = {2: skfem.ElementTriP2, 3: skfem.ElementTriP3, 4: skfem.ElementTriP4}
        return replace(curved, doflocs=places), kinds[self.degree]()

    def _facets(self, mesh, edges: np.ndarray) -> np.ndarray:
        """The numbers that scikit-fem gives to edges, (n_edges,)."""
        if self.dimension == 1:
            return edges[:, 0]
        n = len(self.mesh.points)
        known = np.min(mesh.facets, axis=0).astype(np.int64) * n + np.max(mesh.facets, axis=0)
        wanted = np.min(edges, axis=1).astype(np.int64) * n + np.max(edges, axis=1)
        order = np.argsort(known)
        return order[np.searchsorted(known, wanted, sorter=order)]

    @cached_property
    def _basis(self) -> Any:
        mesh, element = self._mesh_and_element
        return require_elements().Basis(mesh, element, intorder=2 * self.degree + 2)

    @cached_property
    def _edge_dofs(self) -> np.ndarray:
        """What scikit-fem counts on each edge of the boundary, ends first: (n_edges, n_on_edge)."""
        dofs, facets = self._basis.dofs, self._facets(self._mesh_and_element[0], self.mesh.edges)
        on_edges = dofs.facet_dofs[:, facets].T if self.dimension == 2 else np.empty((len(facets), 0), dtype=int)
        return np.hstack([dofs.nodal_dofs[0][self.mesh.edges], on_edges])

    @cached_property
    def _number(self) -> np.ndarray:
        """The node that each degree of freedom of scikit-fem is, (n_nodes,): interior ones first."""
        outer = np.zeros(self._basis.N, dtype=bool)
        outer[self._edge_dofs] = True
        number = np.empty(len(outer), dtype=np.int64)
        number[np.concatenate([np.flatnonzero(~outer), np.flatnonzero(outer)])] = np.arange(len(outer))
        return number

    @property
    def corners(self) -> np.ndarray:
        """The node that each corner of the mesh is, (n_corners,)."""
        return self._number[self._basis.dofs.nodal_dofs[0]]

    @cached_property
    def cell_nodes(self) -> np.ndarray:
        """The nodes of each cell, (n_cells, n_local)."""
        return self._number[self._basis.element_dofs].T

    @cached_property
    def cell_regions(self) -> np.ndarray:
        """The region of each cell, (n_cells,) index into domain.region_names."""
        return self.mesh.region

    @cached_property
    def nodes(self) -> Nodes:
        """All nodes of the elements, with the parts of the boundary that their edges lie on, and normals."""
        domain, edges = self.domain, self._number[self._edge_dofs]
        points = np.empty((self._basis.N, self.dimension))
        points[self._number] = self._basis.doflocs.T
        points[self.corners] = self.mesh.points  # to the last bit, so that elements made again are the same
        if self.degree > 2:  # formulas given on the boundary may have a branch there: no rounding across it
            rim = edges[:, 2:].ravel()
            on = domain.project(points[rim])
            near = np.linalg.norm(on - points[rim], axis=1) < _ROUNDING * domain.size
            points[rim[near]] = on[near]
        n_interior = len(points) - len(np.unique(edges))
        on_part = np.zeros((len(points) - n_interior, len(domain.part_names)), dtype=bool)
        normals = np.zeros((*on_part.shape, self.dimension))
        for column in range(edges.shape[1]):
            rows = edges[:, column] - n_interior
            places = points[edges[:, column]]
            if self.dimension == 2:  # an end may be a corner, where this edge has the normal of its own side
                places = domain.project(places + _BESIDE * (self.mesh.middles - places))
            on_part[rows, self.mesh.part] = True
            normals[rows, self.mesh.part] = domain.plain(places)[1]
        part = np.argmax(on_part, axis=1)
        own = normals[np.arange(len(part)), part]
        normals = np.where(on_part[:, :, None], normals, own[:, None])
        spacing = KDTree(points).query(points, 2)[0][:, 1]
        if not domain.region_names:
            return Nodes(domain, points, n_interior, own, part, on_part, spacing, normals)
        touches = np.zeros((len(points), len(domain.region_names)), dtype=bool)
        touches[self.cell_nodes, self.mesh.region[:, None]] = True
        # nodes along a curved interface lie on the edges that stand for it, not exactly on it
        table = Interfaces(np.empty(0, dtype=int), np.empty((0, 2), dtype=int), np.empty((0, self.dimension)))
        return Nodes(domain, points, n_interior, own, part, on_part, spacing, normals, touches, table)

    # ---- shape functions --------------------------------------------------------------------------------------------
    @cached_property
    def inside(self) -> Samples:
        """Points of the cells, at which integrals of polynomials of degree 2 `degree` + 2 are exact in straight ones."""
        basis = self._basis
        values = np.array([np.asarray(field[0]) for field in basis.basis])
        slopes = np.array([field[0].grad for field in basis.basis])
        points = np.moveaxis(np.asarray(basis.global_coordinates()), 0, 2)
        return Samples(points, basis.dx, values, np.moveaxis(slopes, 1, 0), np.arange(len(points)))

    @cached_property
    def rim(self) -> Samples:
        """Points of the edges of the boundary, in the order of `mesh.edges`."""
        return self._along(self.mesh.edges)

    def seam(self, pair: Collection[int]) -> Samples:
        """Points of the edges between two regions, with the normals out of one of them."""
        mesh, edges = self._mesh_and_element[0], self.mesh.inner_edges
        sides = np.sort(self.mesh.region[mesh.f2t[:, self._facets(mesh, edges)]], axis=0)
        return self._along(edges[np.all(sorted(pair) == sides.T, axis=1)])

    def _along(self, edges: np.ndarray) -> Samples:
        """Points of some edges."""
        mesh, element = self._mesh_and_element
        cells = mesh.f2t[0, self._facets(mesh, edges)]
        corners = mesh.t[:, cells].T
        local = np.argmax(corners[:, None, :] == edges[:, :, None], axis=2)  # (n_edges, ends)
        ends = _REFERENCE[self.dimension][local]  # (n_edges, ends, dimension)
        along, weights = np.zeros(1), np.ones(1)
        if self.dimension == 2:
            along, weights = np.polynomial.legendre.leggauss(self.degree + 2)
            along, weights = (along + 1) / 2, weights / 2
        places = ends[:, :1] + along[:, None] * (ends[:, -1:] - ends[:, :1])  # (n_edges, m, dimension)
        reference = np.moveaxis(places, 2, 0)
        mapping = mesh.mapping()
        shapes = [element.gbasis(mapping, reference, j, tind=cells)[0] for j in range(self._basis.Nbfun)]
        points = np.moveaxis(mapping.F(reference, tind=cells), 0, 2)
        if self.dimension == 1:
            normals = np.sign(points - np.mean(mesh.p[:, corners], axis=2).T[:, None])
            lengths = np.ones(points.shape[:2])
        else:
            way = np.einsum("abnm,nb->nma", mapping.DF(reference, tind=cells), ends[:, 1] - ends[:, 0])
            lengths = np.linalg.norm(way, axis=2)
            normals = np.stack([way[..., 1], -way[..., 0]], axis=2) / lengths[..., None]
            # outward is to the right of an edge that runs counterclockwise; a curved one may bend past the cell's middle
            first, second, third = mesh.p[:, corners].T
            turn = np.sign(cross(second - first, third - first))
            normals *= np.where((local[:, 1] - local[:, 0]) % 3 == 1, turn, -turn)[:, None, None]
        slopes = np.moveaxis(np.array([field.grad for field in shapes]), 1, 0)
        values = np.array([np.asarray(field) for field in shapes])
        return Samples(points, lengths * weights, values, slopes, cells, normals)

    @cached_property
    def integrals(self) -> np.ndarray:
        """The integrals of the shape functions over the domain, (n_nodes,)."""
        local = np.einsum("nm,lnm->nl", self.inside.weights, self.inside.values)
        return np.bincount(self.cell_nodes.ravel(), local.ravel(), minlength=self._basis.N)

    @cached_property
    def volumes(self) -> np.ndarray:
        """The part of the domain that each node stands for, (n_nodes,), positive: Σ volumes · u² is about ∫ u².

        Each cell's volume is divided in the ratio of ∫ φ² of its shape functions, of which no degree has one that is 0
        (Hinton, Rock and Zienkiewicz 1976).
        """
        local = np.einsum("nm,lnm->nl", self.inside.weights, self.inside.values**2)
        local *= (np.sum(self.inside.weights, axis=1) / np.sum(local, axis=1))[:, None]
        return np.bincount(self.cell_nodes.ravel(), local.ravel(), minlength=self._basis.N)

    # ---- values between nodes ---------------------------------------------------------------------------------------
    def weights_at(self, points: np.ndarray) -> sparse.csr_array:
        """Weights (n_points, n_nodes) that turn values at the nodes into values at points of the domain."""
        zero = (0,) * self.dimension
        return self.derivatives_at(points, [zero])[zero]

    def derivatives_at(
        self, points: np.ndarray, derivatives: Iterable[MultiIndex]
    ) -> dict[MultiIndex, sparse.csr_array]:
        """Matrices (n_points, n_nodes) of values or first derivatives of the shape functions at points of the domain."""
        mesh, element = self._mesh_and_element
        cells, places = self._places(points)
        shapes = [
            element.gbasis(mesh.mapping(), places.T[:, :, None], j, tind=cells)[0] for j in range(self._basis.Nbfun)
        ]
        rows, columns = np.repeat(np.arange(len(points)), len(shapes)), self.cell_nodes[cells].ravel()
        out = {}
        for index in derivatives:
            values = [np.asarray(s) if not sum(index) else s.grad[index.index(1)] for s in shapes]
            entries = (np.array(values)[:, :, 0].T.ravel(), (rows, columns))
            out[index] = sparse.csr_array(entries, shape=(len(points), self._basis.N))
        return out

    def _places(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The cell of each point and its place in the reference cell, (n,) and (n, dimension)."""
        mesh = self._mesh_and_element[0]
        if self.dimension == 1:
            low, high = np.min(mesh.p[0, mesh.t], axis=0), np.max(mesh.p[0, mesh.t], axis=0)
            cells = np.argmin(np.maximum(low - points, points - high), axis=1)
            return cells, self._inverted(points, cells)[0]
        simplex = self._finder.find_simplex(points)
        cells = np.where(simplex >= 0, self._cell_of_simplex[simplex], -1)
        places, depths = self._inverted(points, np.maximum(cells, 0))
        depths[cells < 0] = -np.inf
        # between a straight edge and a curved one: beside the boundary, an interface
        off = np.flatnonzero(depths < -_ON)
        if len(off):
            tried = [*self.rim.cells[_nearest(self.mesh.middles, points[off], _NEAREST)].T]
            if len(self.mesh.inner_edges):
                sides = mesh.f2t[:, self._facets(mesh, self.mesh.inner_edges)]
                tried += [*sides[:, _nearest(self.mesh.inner_middles, points[off], 1)[:, 0]]]
            for some in tried:
                others, deeper = self._inverted(points[off], some)
                better = deeper > depths[off]
                rows = off[better]
                cells[rows], places[rows], depths[rows] = some[better], others[better], deeper[better]
        return cells, places

    def _inverted(self, points: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The places in the reference cell that are mapped to the points (n, dimension), and their least barycentric
        coordinates (n,): −∞ where no place was found."""
        mapping = self._mesh_and_element[0].mapping()
        place = np.full((self.dimension, len(points), 1), 1 / (self.dimension + 1))
        for _ in range(_STEPS):
            gap = points.T[:, :, None] - mapping.F(place, tind=cells)
            place = place + np.einsum("abnm,bnm->anm", mapping.invDF(place, tind=cells), gap)
        off = np.max(np.abs(points.T[:, :, None] - mapping.F(place, tind=cells)), axis=(0, 2))
        place = place[:, :, 0].T
        depth = np.minimum(np.min(place, axis=1), 1 - np.sum(place, axis=1))
        return place, np.where(off <= _ROUGHLY * self.domain.size, depth, -np.inf)

    @cached_property
    def _finder(self) -> Delaunay:
        return Delaunay(self.mesh.points)

    @cached_property
    def _cell_of_simplex(self) -> np.ndarray:
        """The cell that each triangle of the finder is, −1 for those outside the domain."""
        known = {tuple(cell): k for k, cell in enumerate(np.sort(self._mesh_and_element[0].t.T, axis=1).tolist())}
        return np.array([known.get(tuple(cell), -1) for cell in np.sort(self._finder.simplices, axis=1).tolist()])


def _nearest(places: np.ndarray, points: np.ndarray, most: int) -> np.ndarray:
    """The nearest of some places (m, dimension), at most so many: (n_points, k) int."""
    return KDTree(places).query(points, min(most, len(places)))[1].reshape(len(points), -1)


def make_elements(nodes: Nodes, degree: int = 2) -> Elements:
    """Elements whose corners are the given nodes; more nodes of their own lie along the edges and inside."""
    check_elements(nodes.domain, degree)
    elements = Elements(nodes.domain, degree, triangulate(nodes) if nodes.dimension == 2 else _line(nodes))
    _check_orientation(elements)
    return elements


def check_elements(domain: Domain, degree: int) -> None:
    """Refuse domains that no elements are made for, degrees that they do not have, and a missing package."""
    if domain.dimension not in DEGREES:
        raise InputError('elements are for lines and planes; this domain is in space. Use method="stencils".')
    if domain.periods.any():
        raise InputError('elements do not know periodic domains. Use method="stencils".')
    if degree not in DEGREES[domain.dimension]:
        known = ", ".join(map(str, DEGREES[domain.dimension]))
        raise InputError(f"degree={degree!r} is none that elements have in {domain.dimension}-D. Use one of: {known}.")
    require_elements()


def require_elements() -> Any:
    """The package scikit-fem, or one line that says how to install it."""
    try:
        import skfem
    except ImportError:
        raise NotInstalled('method="elements" needs scikit-fem. Install it with: pip install scikit-fem.') from None
    return skfem


def _line(nodes: Nodes) -> Triangles:
    """Intervals between neighbouring nodes of a line."""
    order = np.argsort(nodes.points[:, 0])
    first, last = order[:-1], order[1:]
    middle = (nodes.points[first] + nodes.points[last])[:, 0] / 2
    cells = np.stack([first, last], axis=1)[
        np.any([(a < middle) & (middle < b) for a, b in intervals(nodes.domain)], axis=0)
    ]
    ends = np.arange(nodes.n_interior, nodes.n_nodes)[:, None]
    region, joints = np.zeros(len(cells), dtype=int), np.empty(0, dtype=int)
    if nodes.interfaces is not None:
        region, joints = nodes.domain.region_of(nodes.points[cells].mean(axis=1)), np.unique(nodes.interfaces.node)
    inner = joints[:, None], nodes.points[joints]
    return Triangles(nodes.points, cells, region, ends, nodes.boundary, nodes.part, *inner)


def _check_orientation(elements: Elements) -> None:
    """Refuse triangles that their curved edges fold over."""
    mesh = elements._mesh_and_element[0]
    corners = np.hstack([_REFERENCE[elements.dimension].T, elements._basis.X])
    sizes = mesh.mapping().detDF(corners)
    if np.any(np.min(sizes * np.sign(sizes[:, -1:]), axis=1) <= 0):
        raise UnsuitableNodes("triangles beside curved boundaries fold over. Use more nodes.")
