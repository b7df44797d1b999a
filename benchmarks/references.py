"""Solutions of rough problems in the plane by scikit-fem, which share no code with us.

Squares of high degree shrink geometrically towards every singular point, on a grid in (s, t) that a patch bends into
the plane. Each problem is solved twice, the second time with a higher degree and more layers: how far the two differ is
what `Reference.error` says, an estimate from above of the error of the second. Solutions are kept under out/rough.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.sparse.linalg import splu
from skfem import Basis, BilinearForm, ElementQuadP, ElementVector, FacetBasis, LinearForm, MeshQuad
from skfem.element import ElementLineP1, ElementQuad1
from skfem.helpers import ddot, dot, eye, grad, sym_grad, trace
from skfem.mapping import MappingIsoparametric

KEPT = Path(__file__).parents[1] / "out" / "rough"
_VERSION = 1  # of the statements below: solutions of another are not taken from out/rough
_RATIO = 0.4  # of successive squares towards a singular point
_LEVELS = ((4, 0.75), (6, 1.0))  # degree, and which part of the layers, of the two solutions


def ticks(ends: Sequence[float], singular: Sequence[float], layers: int, longest: float) -> np.ndarray:
    """Ends of intervals with further ones between: at most `longest` apart, geometric towards singular ends."""
    out = [float(ends[0])]
    for a, b in pairwise(ends):
        towards = (a in singular, b in singular)
        halves = [(a, (a + b) / 2, True), ((a + b) / 2, b, False)] if all(towards) else [(a, b, towards[0])]
        for low, high, at_low in halves:
            width, own = high - low, [low, high]
            if any(towards):
                steps = width * _RATIO ** np.arange(layers, -1.0, -1.0)
                own = [low, *(low + steps)] if at_low else [*(high - steps[::-1]), high]
            for p, q in pairwise(own):
                out += np.linspace(p, q, int(np.ceil((q - p) / longest)) + 1)[1:].tolist()
    return np.array(out)


class Flat:
    """One patch that is the plane itself."""

    n_patches = 1

    def forward(self, k, s, t):
        """(x, y) of (s, t), and the four derivatives of x and y."""
        one, none = np.ones_like(s), np.zeros_like(s)
        return (s, t), ((one, none), (none, one))

    def inverse(self, points):
        """Patch and (s, t) of points (n, 2)."""
        return np.zeros(len(points), dtype=int), *points.T


class AroundAHole:
    """The square (−1, 1)² without a disc around the origin: four patches, s from the hole to a side, t along the side."""

    n_patches = 4

    def __init__(self, radius: float):
        self.radius = radius

    def forward(self, k, s, t):
        """(x, y) of (s, t), and the four derivatives of x and y."""
        angle = t * np.pi / 4
        cos, sin = np.cos(angle), np.sin(angle)
        r, by_s, by_t = self.radius + s * (1 / cos - self.radius), 1 / cos - self.radius, s * sin / cos**2 * np.pi / 4
        turn = angle + k * np.pi / 2
        c, z = np.cos(turn), np.sin(turn)
        spin = r * np.pi / 4
        return (r * c, r * z), ((by_s * c, by_t * c - spin * z), (by_s * z, by_t * z + spin * c))

    def inverse(self, points):
        """Patch and (s, t) of points (n, 2)."""
        angle = np.arctan2(points[:, 1], points[:, 0])
        k = np.round(angle / (np.pi / 2)).astype(int)
        t = (angle - k * np.pi / 2) / (np.pi / 4)
        s = (np.hypot(*points.T) - self.radius) / (1 / np.cos(t * np.pi / 4) - self.radius)
        return k % 4, s, t


class _Mapping(MappingIsoparametric):
    """From the unit square to each bent square, exactly."""

    def __init__(self, mesh: MeshQuad, shape, patch, corner, size):
        super().__init__(mesh, ElementQuad1(), ElementLineP1())
        self.shape, self.patch, self.corner, self.size = shape, patch, corner, size

    def _at(self, X, tind):
        which = slice(None) if tind is None else tind
        place = [self.corner[i][which, None] + self.size[i][which, None] * X[i] for i in (0, 1)]
        return self.shape.forward(self.patch[which, None], *np.broadcast_arrays(*place))

    def Fmap(self, i, X, tind=None):
        return self._at(X, tind)[0][i]

    def _J(self, i, j, X, tind=None):
        which = slice(None) if tind is None else tind
        return self._at(X, tind)[1][i][j] * self.size[j][which, None]

    def invF(self, x, tind=None):
        which = slice(None) if tind is None else tind
        _, *place = self.shape.inverse(x.reshape(2, -1).T)
        pairs = zip(place, self.corner, self.size, strict=True)
        return np.stack([(at.reshape(x.shape[1:]) - a[which, None]) / h[which, None] for at, a, h in pairs])


@dataclass(frozen=True, eq=False)
class Statement:
    """A problem for the elements: where, what, and what is given on the boundary."""

    grid: Callable[[float], tuple[np.ndarray, np.ndarray]]  # ticks in s and t, of which part of the layers
    form: Callable  # of trial, test and the points
    fixed: Sequence[tuple[Callable, float]]  # (where on the boundary, value)
    load: Callable | None = None  # of the test function and the points, inside
    pull: tuple[Callable, Callable] | None = None  # (where on the boundary, of the test function and the points)
    shape: Flat | AroundAHole = field(default_factory=Flat)
    outside: Callable | None = None  # squares that are left out, by their centres in (s, t)
    n_fields: int = 1

    def solved(self, degree: int, layers: float) -> Reference:
        """The solution with squares of one degree."""
        s, t = self.grid(layers)
        mesh, mapping, cells = self._mesh(s, t)
        scalar = ElementQuadP(degree)
        element = scalar if self.n_fields == 1 else ElementVector(scalar, self.n_fields)
        basis = Basis(mesh, element, mapping=mapping, intorder=2 * degree + 2)
        matrix = BilinearForm(self.form).assemble(basis).tocsc()
        load = np.zeros(basis.N) if self.load is None else LinearForm(self.load).assemble(basis)
        if self.pull is not None:
            facets = mesh.facets_satisfying(self.pull[0], boundaries_only=True)
            side = FacetBasis(mesh, element, mapping=mapping, facets=facets, intorder=2 * degree + 2)
            load = load + LinearForm(self.pull[1]).assemble(side)
        values, free = np.zeros(basis.N), np.ones(basis.N, dtype=bool)
        for where, value in self.fixed:
            facets = mesh.facets_satisfying(where, boundaries_only=True)
            free[basis.get_dofs(facets).flatten()] = False
            if value:  # the bubbles of edges vanish where the value is constant
                values[basis.nodal_dofs[:, np.unique(mesh.facets[:, facets])].ravel()] = value
        own = matrix[free][:, free]
        factors = splu(own, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=1e-3, options={"SymmetricMode": True})
        values[free] = factors.solve((load - matrix @ values)[free])
        at = np.linspace(0, 1, degree + 1)
        lattice = np.stack(np.meshgrid(at, at, indexing="ij")).reshape(2, -1)
        seen = Basis(mesh, element, mapping=mapping, quadrature=(lattice, np.ones(lattice.shape[1])))
        lattice_values = np.asarray(seen.interpolate(values)).reshape(self.n_fields, -1, lattice.shape[1])
        return Reference(self.shape, s, t, cells, lattice_values, basis.N)

    def _mesh(self, s: np.ndarray, t: np.ndarray):
        """Squares with equal axes in all, so that the sides they share run the same way in both."""
        i, j = (a.ravel() for a in np.meshgrid(np.arange(len(s) - 1), np.arange(len(t) - 1), indexing="ij"))
        if self.outside is not None:
            kept = ~self.outside((s[i] + s[i + 1]) / 2, (t[j] + t[j + 1]) / 2)
            i, j = i[kept], j[kept]
        cells = np.full((self.shape.n_patches, len(s) - 1, len(t) - 1), -1)
        corners, patch = [], np.repeat(np.arange(self.shape.n_patches), len(i))
        cells[patch, np.tile(i, self.shape.n_patches), np.tile(j, self.shape.n_patches)] = np.arange(len(patch))
        i, j = np.tile(i, self.shape.n_patches), np.tile(j, self.shape.n_patches)
        for a, b in ((0, 0), (1, 0), (1, 1), (0, 1)):
            corners.append(np.stack(self.shape.forward(patch, s[i + a], t[j + b])[0]))
        everywhere = np.concatenate(corners, axis=1)
        # the same corner comes from several squares, with other rounding from another patch
        _, first, number = np.unique(np.round(everywhere, 13) + 0.0, axis=1, return_index=True, return_inverse=True)
        mesh = MeshQuad(everywhere[:, first], number.reshape(4, -1), sort_t=False)
        size = (s[i + 1] - s[i], t[j + 1] - t[j])
        return mesh, _Mapping(mesh, self.shape, patch, (s[i], t[j]), size), cells


@dataclass(frozen=True, eq=False)
class Reference:
    """A solution by its values on a lattice of every square."""

    shape: Flat | AroundAHole
    s: np.ndarray
    t: np.ndarray
    cells: np.ndarray  # (n_patches, n_s, n_t), −1 where there is none
    values: np.ndarray  # (n_fields, n_cells, (degree + 1)²)
    n_unknowns: int
    error: float = np.nan  # estimate, relative to the largest value

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Values (n_fields, n) at points (n, 2)."""
        patch, *place = self.shape.inverse(np.asarray(points, dtype=float))
        degree = round(self.values.shape[2] ** 0.5) - 1
        number, weights = [], []
        for ends, at in zip((self.s, self.t), place, strict=True):
            cell = np.clip(np.searchsorted(ends, at, side="right") - 1, 0, len(ends) - 2)
            weights.append(_lagrange((at - ends[cell]) / np.diff(ends)[cell], degree))
            number.append(cell)
        cell = self.cells[patch, *number]
        # a point on the side of a square that is left out belongs to its neighbour
        for axis, step in ((0, -1), (0, 1), (1, -1), (1, 1)):
            for row in np.flatnonzero(cell < 0):
                ends, other = (self.s, self.t)[axis], [n[row] for n in number]
                other[axis] += step
                edge = ends[number[axis][row] + (step > 0)]
                if 0 <= other[axis] < len(ends) - 1 and abs(place[axis][row] - edge) < 1e-9:
                    neighbour = self.cells[patch[row], *other]
                    if neighbour >= 0:
                        cell[row] = neighbour
                        weights[axis][row] = _lagrange(np.array([1.0 if step < 0 else 0.0]), degree)[0]
        if np.any(cell < 0):
            raise ValueError(f"{np.count_nonzero(cell < 0)} points lie outside the reference's domain.")
        both = (weights[0][:, :, None] * weights[1][:, None, :]).reshape(len(points), -1)
        return np.einsum("fnk,nk->fn", self.values[:, cell], both)


def _lagrange(x: np.ndarray, degree: int) -> np.ndarray:
    """The Lagrange polynomials of equidistant points of [0, 1], (n, degree + 1)."""
    at = np.linspace(0, 1, degree + 1)
    out = np.ones((len(x), degree + 1))
    for k in range(degree + 1):
        for m in range(degree + 1):
            if m != k:
                out[:, k] *= (x - at[m]) / (at[k] - at[m])
    return out


def reference(name: str, statement: Statement, *key: object) -> Reference:
    """The solution of a statement, from out/rough if it is there; `key` tells it from others of the name."""
    grids = [axis.tolist() for _, part in _LEVELS for axis in statement.grid(part)]
    digest = hashlib.sha256(repr((_VERSION, _LEVELS, grids, key)).encode()).hexdigest()[:12]
    path = KEPT / f"{name}-{digest}.npz"
    if path.is_file():
        with np.load(path) as held:
            arrays = [held[part] for part in ("s", "t", "cells", "values")]
            return Reference(statement.shape, *arrays, int(held["n_unknowns"]), float(held["error"]))
    coarse, fine = (statement.solved(*level) for level in _LEVELS)
    rng = np.random.default_rng(0)
    chosen = np.argwhere(fine.cells >= 0)[rng.integers(np.count_nonzero(fine.cells >= 0), size=20_000)]
    patch, i, j = chosen.T
    s = fine.s[i] + np.diff(fine.s)[i] * rng.random(len(i))
    t = fine.t[j] + np.diff(fine.t)[j] * rng.random(len(j))
    points = np.column_stack(statement.shape.forward(patch, s, t)[0])
    at_fine = fine(points)
    error = float(np.max(np.abs(coarse(points) - at_fine)) / np.max(np.abs(at_fine)))
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {part: getattr(fine, part) for part in ("s", "t", "cells", "values", "n_unknowns")}
    np.savez(path, **arrays, error=error)
    return Reference(fine.shape, fine.s, fine.t, fine.cells, fine.values, fine.n_unknowns, error)


# ---- the problems ---------------------------------------------------------------------------------------------------
def _elastic(u, v, w):
    """Both of Lamé's constants are 1."""
    strain = sym_grad(u)
    return ddot(2 * strain + eye(trace(strain), 2), sym_grad(v))


def _laplace(u, v, w):
    return dot(grad(u), grad(v))


def plate(radius: float) -> Reference:
    """The square (−1, 1)² with a hole (none where the radius is 0), clamped left, pulled right by 1 or, without hole, y."""

    def around(part):
        layers = round(14 * part)
        return ticks((0, 0.2, 1), (1,), layers, 0.2), ticks((-1, 1), (-1, 1), layers, 0.2)

    def square(part):
        both = ticks((-1, 1), (-1, 1), round(14 * part), 0.34)
        return both, both

    def left(p):
        return p[0] < -1 + 1e-9

    def right(p):
        return p[0] > 1 - 1e-9

    pull = (right, (lambda v, w: v[0]) if radius else (lambda v, w: w.x[1] * v[0]))
    shape = AroundAHole(radius) if radius else Flat()
    stated = Statement(around if radius else square, _elastic, [(left, 0.0)], pull=pull, shape=shape, n_fields=2)
    return reference("hole" if radius else "square", stated, radius)


def cantilever(length: float) -> Reference:
    """The beam (0, length) × (0, 1), clamped left, pulled down by 1 at its end."""

    def grid(part):
        layers = round(14 * part)
        return ticks((0, 1, length), (0,), layers, 0.34), ticks((0, 1), (0, 1), layers, 0.34)

    pull = (lambda p: p[0] > length - 1e-9, lambda v, w: -v[1])
    return reference(
        "cantilever", Statement(grid, _elastic, [(lambda p: p[0] < 1e-9, 0.0)], pull=pull, n_fields=2), length
    )


def baffle(half: float, top: float) -> Reference:
    """1 left, 0 right of a box (−1, 1)² with an insulated baffle |x| < half, y < top, insulated elsewhere."""

    def grid(part):
        layers = round(16 * part)
        return ticks((-1, -half, half, 1), (-half, half), layers, 0.34), ticks((-1, top, 1), (top,), layers, 0.34)

    fixed = [(lambda p: p[0] < -1 + 1e-9, 1.0), (lambda p: p[0] > 1 - 1e-9, 0.0)]
    stated = Statement(grid, _laplace, fixed, outside=lambda s, t: (np.abs(s) < half) & (t < top))
    return reference("baffle", stated, half, top)


def motz() -> Reference:
    """Motz's problem: 0 on y = 0, x < 0, 500 on x = 1, insulated elsewhere, in (−1, 1) × (0, 1)."""

    def grid(part):
        layers = round(20 * part)
        return ticks((-1, 0, 1), (0,), layers, 0.34), ticks((0, 1), (0,), layers, 0.34)

    fixed = [(lambda p: (p[1] < 1e-9) & (p[0] < 0), 0.0), (lambda p: p[0] > 1 - 1e-9, 500.0)]
    return reference("motz", Statement(grid, _laplace, fixed))


def thermal_block(mu: Sequence[float]) -> Reference:
    """−div(k grad u) = 1 in the unit square, u = 0 around it; k in the quarters: below left, right, above left, right."""
    k = np.asarray(mu, dtype=float)

    def grid(part):
        both = ticks((0, 0.25, 0.5, 0.75, 1), (0, 0.5, 1), round(22 * part), 0.2)
        return both, both

    def conduction(u, v, w):
        return k[(w.x[0] > 0.5) + 2 * (w.x[1] > 0.5)] * dot(grad(u), grad(v))

    stated = Statement(grid, conduction, [(lambda p: np.ones(p.shape[1], dtype=bool), 0.0)], load=lambda v, w: v)
    return reference("block", stated, tuple(k.tolist()))
