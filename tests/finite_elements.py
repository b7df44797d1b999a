"""Curved finite elements on a star-shaped domain: a second, independent road to the solution of the flower problem.

    −u_xx − a u_yy − k u = f  inside,      u = g  on the boundary curve r(θ)      (g = 0 unless given)

Vertices lie on rings, the outermost at equal arc lengths on the curve; a boundary triangle bends along the curve,

    F(λ) = Σ λ_i v_i + λ_a λ_b Σ_j c_j (λ_b − λ_a)^j,      j = 0 … geometry − 2,

where a, b are its two ends on the boundary. `geometry=2` is the isoparametric quadratic triangle. The coefficient c_j
is of size h^{j+2}, so every derivative of F scales as an optimal-order element needs it. Nothing here imports parasol.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.sparse.linalg import eigsh, splu
from scipy.spatial import Delaunay, KDTree
from skfem import Basis, BilinearForm, ElementTriP1, ElementTriP2, ElementTriP3, ElementTriP4, LinearForm, MeshTri1
from skfem.element import ElementH1
from skfem.mapping import MappingIsoparametric

ELEMENTS = {1: ElementTriP1, 2: ElementTriP2, 3: ElementTriP3, 4: ElementTriP4}
# a boundary edge of degree 10 leaves the curve by about 1e-9 on the coarsest mesh in use: exact, for our purposes
EXACT = 10
SLOPES = np.array([[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]])  # of the three barycentric coordinates


def flower(theta):
    """Radius of the flower, r(θ) = 0.8 + 0.1 (sin 6θ + sin 3θ)."""
    return 0.8 + 0.1 * (np.sin(6 * theta) + np.sin(3 * theta))


def flower_source(x, y):
    """Right-hand side of the flower problem, f = −10 sin(8 x (y − 1))."""
    return -10 * np.sin(8 * x * (y - 1))


@dataclass(frozen=True, eq=False)
class StarMesh:
    """Triangles of a star-shaped domain, one curved side on each boundary triangle."""

    radius: Callable
    vertices: np.ndarray  # (n_vertices, 2), the n_boundary boundary ones last
    triangles: np.ndarray  # (n_triangles, 3), each row ascending: degree 3 and 4 share their edge unknowns that way
    angles: np.ndarray  # (n_boundary,)

    @property
    def n_quadratic(self) -> int:
        """Number of quadratic nodes, vertices and edge midpoints, boundary included: V + E = 2 V + T − 1."""
        return 2 * len(self.vertices) + len(self.triangles) - 1

    @cached_property
    def quality(self) -> np.ndarray:
        """4√3 area / Σ side² of each straight triangle: 1 when equilateral, 0 when flat, shape (n_triangles,)."""
        corners = self.vertices[self.triangles]
        sides = corners - np.roll(corners, 1, axis=1)
        area = 0.5 * abs(sides[:, 0, 0] * sides[:, 1, 1] - sides[:, 0, 1] * sides[:, 1, 0])
        return 4 * np.sqrt(3) * area / np.sum(sides**2, axis=(1, 2))


def star_mesh(radius: Callable = flower, n_rings: int = 12, *, n_sectors: int = 6) -> StarMesh:
    """Mesh the star with `n_rings` rings of `n_sectors`, 2 `n_sectors`, … vertices: 1 + m n (2 n + 1) quadratic nodes.

    The unit disc is blended into the star, radius s ((1 − s²) r₀ + s² r(θ)), then the inner vertices move to make the
    triangles alike: they minimise the symmetric Dirichlet energy Σ |J|² + |J⁻¹|² against the equilateral triangle of
    mean area, and edges flip to Delaunay ones, which leaves all counts as they are.

    >>> star_mesh(lambda theta: 1 + 0 * theta, 9).n_quadratic
    1027
    """
    boundary = _equal_arcs(radius, n_sectors * n_rings)
    rim, phase = radius(boundary), 2 * np.pi * np.arange(n_sectors * n_rings + 1) / (n_sectors * n_rings)
    lag = np.append(boundary, boundary[0] + 2 * np.pi) - phase
    vertices = [np.zeros((1, 2))]
    for ring in range(1, n_rings + 1):
        s = ring / n_rings
        angle = 2 * np.pi * np.arange(n_sectors * ring) / (n_sectors * ring)
        blended = (1 - s**2) * rim.mean() + s**2 * np.interp(angle, phase, np.append(rim, rim[0]))
        angle = angle + (1 - s**2) * lag.mean() + s**2 * np.interp(angle, phase, lag)
        vertices.append(s * blended[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]))
    vertices = np.concatenate(vertices)
    vertices[-len(boundary) :] = rim[:, None] * np.column_stack([np.cos(boundary), np.sin(boundary)])
    return _even_mesh(radius, vertices, _ring_triangles(n_rings, n_sectors), boundary)


def _even_mesh(radius, vertices, triangles, angles) -> StarMesh:
    """Move the inner vertices and flip edges to Delaunay ones in turn, until no edge wants to flip."""
    n_inner = len(vertices) - len(angles)
    for _ in range(6):
        vertices = _even_out(vertices, triangles, n_inner)
        flipped = _delaunay(vertices, n_inner)
        # a boundary that Delaunay triangles would cut, or a tip they would cut off, keeps the triangles it has
        cut = len(flipped) != len(triangles) or np.any(np.all(flipped >= n_inner, axis=1))
        if cut or _same(flipped, triangles):
            break
        triangles = flipped
    return StarMesh(radius, vertices, np.sort(triangles, axis=1), angles)


def _delaunay(vertices, n_inner) -> np.ndarray:
    """Delaunay triangles, counter-clockwise, whose centroid lies within the polygon of the boundary vertices."""
    triangles = Delaunay(vertices).simplices
    corners = vertices[triangles]
    clockwise = np.linalg.det(corners[:, 1:] - corners[:, :1]) < 0
    triangles[clockwise] = triangles[clockwise, ::-1]
    centre, rim = corners.mean(axis=1), vertices[n_inner:]
    angles = np.unwrap(np.arctan2(rim[:, 1], rim[:, 0]))
    turn = (np.arctan2(centre[:, 1], centre[:, 0]) - angles[0]) % (2 * np.pi) + angles[0]
    last = np.searchsorted(angles, turn, side="right") % len(rim)
    along, off = rim[last] - rim[last - 1], centre - rim[last - 1]
    return triangles[along[:, 0] * off[:, 1] - along[:, 1] * off[:, 0] > 0]


def _same(one, other) -> bool:
    first, second = (np.unique(np.sort(triangles, axis=1), axis=0) for triangles in (one, other))
    return np.array_equal(first, second)


def refined(mesh: StarMesh, marked) -> StarMesh:
    """Split the triangles numbered `marked`, and neighbours as needed; new boundary vertices move onto the curve."""
    finer = MeshTri1(mesh.vertices.T.copy(), mesh.triangles.T.copy()).refined(np.asarray(marked))
    rim = finer.boundary_nodes()
    order = np.append(np.setdiff1d(np.arange(finer.nvertices), rim), rim)
    vertices, triangles = finer.p.T[order], np.argsort(order)[finer.t.T]
    angles = np.arctan2(vertices[-len(rim) :, 1], vertices[-len(rim) :, 0])
    vertices[-len(rim) :] = mesh.radius(angles)[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    return StarMesh(mesh.radius, vertices, np.sort(triangles, axis=1), angles)


def rings_for(n_quadratic: int, *, n_sectors: int = 6) -> int:
    """Return the number of rings whose mesh has nearest to `n_quadratic` quadratic nodes.

    >>> rings_for(1000), rings_for(2000), rings_for(4000)
    (9, 13, 18)
    """
    rings = np.arange(1, 500)
    return int(rings[np.argmin(abs(1 + n_sectors * rings * (2 * rings + 1) - n_quadratic))])


def _equal_arcs(radius, n) -> np.ndarray:
    """Angles of `n` points of the curve, equal arc lengths apart."""
    theta = np.linspace(0, 2 * np.pi, 20 * n + 2001)
    curve = radius(theta)[:, None] * np.column_stack([np.cos(theta), np.sin(theta)])
    length = np.append(0, np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1)))
    return np.interp(length[-1] * np.arange(n) / n, length, theta)


def _ring_triangles(n_rings, n_sectors) -> np.ndarray:
    """Join ring i − 1 to ring i: in every sector i triangles point inwards and i − 1 outwards, counter-clockwise."""
    out = []
    for i in range(1, n_rings + 1):
        start = 1 + n_sectors * i * (i - 1) // 2
        before = 1 + n_sectors * (i - 1) * (i - 2) // 2 if i > 1 else 0
        for sector in range(n_sectors):
            outer = start + (sector * i + np.arange(i + 1)) % (n_sectors * i)
            inner = before + (sector * (i - 1) + np.arange(i)) % max(n_sectors * (i - 1), 1)
            out.append(np.column_stack([outer[:-1], outer[1:], inner]))
            out.append(np.column_stack([inner[1:], inner[:-1], outer[1:-1]]))
    return np.concatenate(out)


def _even_out(vertices, triangles, n_inner) -> np.ndarray:
    """Move the first `n_inner` vertices to the least symmetric Dirichlet energy; no triangle turns over."""

    def sides(points):
        return np.stack(
            [points[triangles[:, 1]] - points[triangles[:, 0]], points[triangles[:, 2]] - points[triangles[:, 0]]],
            axis=2,
        )

    areas = 0.5 * np.linalg.det(sides(vertices))
    if areas.min() <= 0:
        raise ValueError(
            f"{np.sum(areas <= 0)} triangles are turned over: the star is too far from a disc. Use more rings."
        )
    # lengths in units of the mean triangle's side, because the minimiser's first step is of size one
    side = np.sqrt(4 / np.sqrt(3) * areas.mean())
    rim = vertices[n_inner:] / side
    inverse = np.linalg.inv([[1.0, 0.5], [0.0, np.sqrt(0.75)]])
    # the three rows of a triangle's force come from its Jacobian; a sparse sum gathers them at the vertices
    rows = csr_array(
        (np.ones(triangles.size), (triangles.T.ravel(), np.arange(triangles.size))),
        shape=(len(vertices), triangles.size),
    )

    def energy(inner):
        points = np.concatenate([inner.reshape(-1, 2), rim])
        J = sides(points) @ inverse
        det = J[:, 0, 0] * J[:, 1, 1] - J[:, 0, 1] * J[:, 1, 0]
        if det.min() < 1e-3:  # beyond the barrier: a value the line search steps back from
            return 1e10 * len(det), np.zeros_like(inner)
        square = np.sum(J**2, axis=(1, 2))
        cofactor = np.stack([J[:, 1, 1], -J[:, 1, 0], -J[:, 0, 1], J[:, 0, 0]], axis=1).reshape(-1, 2, 2)
        stress = 2 * J * (1 + det**-2)[:, None, None] - 2 * (square * det**-3)[:, None, None] * cofactor
        force = stress @ inverse.T
        gradient = rows @ np.concatenate([-force.sum(axis=2), force[:, :, 0], force[:, :, 1]])
        return np.sum(square * (1 + det**-2)), gradient[:n_inner].ravel()

    options = {"maxiter": 300, "maxcor": 20}
    best = minimize(energy, vertices[:n_inner].ravel() / side, jac=True, method="L-BFGS-B", options=options).x
    return np.concatenate([side * best.reshape(-1, 2), vertices[n_inner:]])


class CurvedMapping(MappingIsoparametric):
    """The map F of this module's first lines, in scikit-fem's terms."""

    def __init__(self, mesh: StarMesh, geometry: int):
        super().__init__(MeshTri1(mesh.vertices.T.copy(), mesh.triangles.T.copy()), ElementTriP1())
        self.corners = mesh.vertices[mesh.triangles].transpose(2, 1, 0)  # (2, 3, n_triangles)
        n_inner = len(mesh.vertices) - len(mesh.angles)
        on_curve = mesh.triangles >= n_inner
        self.curved = on_curve.sum(axis=1) == 2
        # rows are ascending, so the two boundary vertices are the last two of a curved triangle
        self.ends = np.array([1, 2])
        self.bend = np.zeros((2, len(mesh.triangles), geometry - 1))
        a, b = (mesh.angles[mesh.triangles[self.curved, i] - n_inner] for i in self.ends)
        turn = (b - a + np.pi) % (2 * np.pi) - np.pi
        tau = np.cos(np.pi * (2 * np.arange(geometry - 1) + 1) / (2 * (geometry - 1)))
        t = (1 + tau) / 2
        theta = a[:, None] + turn[:, None] * t
        curve = mesh.radius(theta) * np.array([np.cos(theta), np.sin(theta)])
        first, last = (self.corners[:, i, self.curved][:, :, None] for i in self.ends)
        gap = (curve - (1 - t) * first - t * last) / (t * (1 - t))
        self.bend[:, self.curved] = gap @ np.linalg.inv(np.vander(tau, increasing=True)).T

    def Fmap(self, i, X, tind=None):
        corners, bend, (l0, la, lb) = self._pieces(i, X, tind)
        return l0 * corners[0] + la * corners[1] + lb * corners[2] + la * lb * _polynomial(bend, lb - la)

    def _J(self, i, j, X, tind=None):
        corners, bend, (_, la, lb) = self._pieces(i, X, tind)
        da, db = SLOPES[1, j], SLOPES[2, j]
        value, slope = _polynomial(bend, lb - la), _polynomial(bend[..., 1:] * np.arange(1, bend.shape[-1]), lb - la)
        affine = SLOPES[0, j] * corners[0] + da * corners[1] + db * corners[2]
        return affine + (da * lb + db * la) * value + la * lb * (db - da) * slope

    def _pieces(self, i, X, tind):
        which = slice(None) if tind is None else tind
        return self.corners[i][:, which, None], self.bend[i][which][:, None], (1 - X[0] - X[1], X[0], X[1])

    def locate(self, points) -> tuple[np.ndarray, np.ndarray]:
        """Triangle of each point, (n,), and the point's place in the reference triangle, (2, n)."""
        _, near = KDTree(self.corners.mean(axis=1).T).query(points, k=min(16, self.corners.shape[2]))
        triangle = np.ravel(near)
        point = np.repeat(np.arange(len(points)), len(triangle) // max(len(points), 1))
        origin, sides = self.corners[:, 0], self.corners[:, 1:] - self.corners[:, :1]
        inverse = np.linalg.inv(sides.transpose(2, 0, 1))
        X = np.einsum("nij,nj->in", inverse[triangle], points[point] - origin[:, triangle].T)
        # a bent side leaves its chord by much less than a third of the triangle's height
        keep = np.minimum(X.min(axis=0), 1 - X.sum(axis=0)) > -0.3
        point, triangle, X = point[keep], triangle[keep], X[:, keep]
        bent, step = np.flatnonzero(self.curved[triangle]), np.zeros_like(X)
        for _ in range(12):
            tind, at = triangle[bent], X[:, bent, None]
            miss = points[point[bent]].T[:, :, None] - np.array([self.Fmap(i, at, tind) for i in (0, 1)])
            J = np.array([[self._J(i, j, at, tind)[:, 0] for j in (0, 1)] for i in (0, 1)])
            step[:, bent] = np.linalg.solve(J.transpose(2, 0, 1), miss.transpose(1, 0, 2))[:, :, 0].T
            X[:, bent] = np.clip(X[:, bent] + step[:, bent], -0.5, 1.5)
        converged = abs(step).max(axis=0) < 1e-9
        depth = np.where(converged, np.minimum(X.min(axis=0), 1 - X.sum(axis=0)), -1)
        order = np.lexsort([depth, point])
        best = order[np.append(np.diff(point[order]) > 0, True)] if len(order) else order
        lost = len(points) - np.sum(depth[best] > -1e-6)
        if lost:
            raise ValueError(
                f"{lost} of {len(points)} points lie outside the star. Evaluate within it or on its boundary."
            )
        X = np.clip(X[:, best], 0, 1)
        return triangle[best], X / np.maximum(X.sum(axis=0), 1)


def _polynomial(coefficients, tau):
    """Σ_j c_j τ^j, coefficients along the last axis, by Horner's rule."""
    out = np.zeros(np.broadcast_shapes(coefficients.shape[:-1], np.shape(tau)))
    for c in np.moveaxis(coefficients, -1, 0)[::-1]:
        out = out * tau + c
    return out


@dataclass(frozen=True, eq=False)
class Solution:
    """A finite-element function: its nodes, its values there, and its value anywhere in the star."""

    space: Space
    values: np.ndarray  # (n_nodes,)

    @property
    def nodes(self) -> np.ndarray:
        """Where the values are taken, boundary included, shape (n_nodes, 2)."""
        return self.space.nodes

    def evaluate(self, points) -> np.ndarray:
        """Values at `points`, (n, 2), inside the star or on its boundary, shape (n,).

        A point is carried to the reference triangle by the exact curve, not by the element's own polynomial side, so
        that boundary points meet boundary values; the two differ by no more than the element's error, h^(order + 1).
        """
        triangle, X = _mapping(self.space.mesh, EXACT).locate(np.asarray(points, dtype=float))
        dofs = self.space.dofs[:, triangle]
        return np.sum([self.values[d] * self.space.element.lbasis(X, i)[0] for i, d in enumerate(dofs)], axis=0)

    def surplus(self) -> np.ndarray:
        """Largest |u − I u| on each triangle, I the interpolation one degree lower: where it is large, refine."""
        high = self.space.element
        low = ELEMENTS[high.maxdeg - 1]()
        up = np.array([low.lbasis(high.doflocs.T, i)[0] for i in range(len(low.doflocs))]).T
        down = np.array([high.lbasis(low.doflocs.T, i)[0] for i in range(len(high.doflocs))]).T
        local = self.values[self.space.dofs]
        return abs(local - up @ (down @ local)).max(axis=0)


@dataclass(frozen=True, eq=False)
class Space:
    """Elements of one degree on a mesh, and everything of the problem that a and k leave alone."""

    mesh: StarMesh
    element: ElementH1
    dofs: np.ndarray  # (n_local, n_triangles)
    nodes: np.ndarray  # (n_nodes, 2)
    inside: np.ndarray  # (n_nodes,) bool
    xx: csr_array  # ∫ u_x v_x
    yy: csr_array  # ∫ u_y v_y
    mass: csr_array  # ∫ u v
    load: np.ndarray  # ∫ f v


def solve_helmholtz(
    a: float,
    k: float,
    mesh: StarMesh,
    order: int = 2,
    *,
    geometry: int | None = None,
    source: Callable = flower_source,
    boundary: Callable | None = None,
) -> Solution:
    """Solve −u_xx − a u_yy − k u = `source`, u = `boundary` on the curve, both functions of x and y (none: zero).

    Elements have degree `order` (1 to 4) and sides of degree `geometry`, by default the same: isoparametric.
    """
    space = _space(mesh, order, max(order, 2) if geometry is None else geometry, source)
    inside, values = space.inside, np.zeros(len(space.nodes))
    if boundary is not None:
        values[~inside] = boundary(*space.nodes[~inside].T)
    matrix = (space.xx + a * space.yy - k * space.mass).tocsr()
    # symmetric, and definite below the first eigenvalue: an ordering for that costs a fraction of the default one
    factor = splu(
        matrix[inside][:, inside].tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.01,
        options={"SymmetricMode": True},
    )
    values[inside] = factor.solve((space.load - matrix @ values)[inside])
    return Solution(space, values)


def lowest_eigenvalue(a: float, mesh: StarMesh, order: int = 2) -> float:
    """Least λ with −u_xx − a u_yy = λ u inside and u = 0 on the boundary."""
    space = _space(mesh, order, max(order, 2), flower_source)
    stiffness, mass = (
        matrix.tocsr()[space.inside][:, space.inside].tocsc() for matrix in (space.xx + a * space.yy, space.mass)
    )
    start = np.ones(mass.shape[0])  # the same start gives the same digits
    return float(eigsh(stiffness, k=1, M=mass, sigma=0, v0=start, return_eigenvectors=False)[0])


@lru_cache(maxsize=64)
def reference(a: float, k: float) -> Solution:
    """Flower solution good to about 5e-8 for a from 0.1 to 4: quartic elements on the exact curve, kept per (a, k)."""
    return solve_helmholtz(a, k, _reference_mesh(), 4, geometry=EXACT)


@lru_cache(maxsize=1)
def _reference_mesh() -> StarMesh:
    """A mesh refined where either end of a's range needs it: at a = 0.1 top and bottom notches are almost corners."""
    mesh = star_mesh(flower, 20)
    for _ in range(4):
        surplus = np.maximum(*(solve_helmholtz(a, 2.0, mesh, 4, geometry=EXACT).surplus() for a in (0.1, 4.0)))
        mesh = refined(mesh, np.flatnonzero(surplus > max(0.15 * surplus.max(), 8e-7)))
    return mesh


@lru_cache(maxsize=4)
def _mapping(mesh, geometry) -> CurvedMapping:
    return CurvedMapping(mesh, geometry)


@lru_cache(maxsize=4)
def _space(mesh, order, geometry, source) -> Space:
    # two degrees beyond the mass matrix of straight triangles: bent ones and the source are no polynomials
    mapping = _mapping(mesh, geometry)
    element = ELEMENTS[order]()
    basis = Basis(mapping.mesh, element, mapping=mapping, intorder=2 * order + 2)
    inside = np.ones(basis.N, dtype=bool)
    inside[basis.get_dofs().flatten()] = False
    forms = (lambda u, v, w: u.grad[0] * v.grad[0], lambda u, v, w: u.grad[1] * v.grad[1], lambda u, v, w: u * v)
    xx, yy, mass = (BilinearForm(form).assemble(basis) for form in forms)
    load = LinearForm(lambda v, w: source(*w.x) * v).assemble(basis)
    return Space(mesh, element, basis.element_dofs, basis.doflocs.T.copy(), inside, xx, yy, mass, load)
