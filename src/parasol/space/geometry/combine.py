"""Union, intersection and difference of domains."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial import KDTree

from parasol.checks import ParasolError, check_choice, check_positive
from parasol.space.geometry.cutting import SAMPLES, Cutter, join
from parasol.space.geometry.domain import Arc, Domain, look_around
from parasol.space.geometry.images import Images, neighbours
from parasol.space.geometry.implicit import nearer, slide, two_valleys

_IRRATIONAL = np.sqrt([2.0, 3.0, 5.0])
_WORDS = {"union": "|", "intersection": "&", "difference": "-"}


@dataclass(frozen=True, eq=False)
class Combination(Domain):
    """`a | b`, `a & b` or `a - b`. Names of parts are inherited; the same name on both means the same part.

    >>> from parasol.space.geometry.primitives import Box, Disc
    >>> plate = Box((-1, -1), (1, 1)) - Disc(radius=0.5).named("hole")
    >>> plate.part_names, plate.distance([[0.0, 0.0], [0.7, 0.0]]).round(12).tolist()
    (('left', 'right', 'bottom', 'top', 'hole'), [0.5, -0.2])
    """

    kind: str
    a: Domain
    b: Domain

    def __post_init__(self):
        check_choice(self.kind, tuple(_WORDS), "kind")
        a, b = self.a, self.b
        if a.dimension != b.dimension:
            raise ParasolError(f"cannot combine domains of dimension {a.dimension} and {b.dimension}.")
        if self.periods.any():
            wraps = self.periods > 0
            within = ((b.bounds[0] >= a.bounds[0]) & (b.bounds[1] <= a.bounds[1]))[wraps].all()
            if self.kind != "difference" or b.periods.any() or not within:
                raise ParasolError(
                    "a periodic box combines only as box - hole, the hole within one period and not periodic itself."
                )
        lower, upper = self.bounds
        if not (lower < upper).all():
            raise self._empty
        sample = lower + (upper - lower) * np.mod(np.outer(np.arange(1, 20_001), _IRRATIONAL[: self.dimension]), 1.0)
        if not self._inside(sample).any():
            _ = self._boundary  # a thin domain still has a boundary, an empty one complains

    @property
    def _empty(self) -> ParasolError:
        return ParasolError(f"a domain with no interior: nothing is left of the {self.kind} a {_WORDS[self.kind]} b.")

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.a.dimension

    @property
    def periods(self) -> np.ndarray:
        """Period along each axis, 0 where the domain is not periodic: (dimension,)."""
        return np.maximum(self.a.periods, self.b.periods)

    @cached_property
    def bounds(self) -> np.ndarray:
        """Bounding box (2, dimension)."""
        a, b = self.a.bounds, self.b.bounds
        if self.kind == "union":
            return np.array([np.minimum(a[0], b[0]), np.maximum(a[1], b[1])])
        if self.kind == "intersection":
            return np.array([np.maximum(a[0], b[0]), np.minimum(a[1], b[1])])
        return a.copy()

    @cached_property
    def _operands(self) -> tuple[Domain, Domain]:
        return self.a, Images(self.b, self.a.periods) if self.periods.any() else self.b

    @property
    def _flip(self) -> float:
        """Sign that turns b's outward normal into that of the combination."""
        return -1.0 if self.kind == "difference" else 1.0

    @property
    def _tolerance(self) -> float:
        return 1e-10 * self.size

    @property
    def part_names(self) -> tuple[str, ...]:
        """Names of both, each once."""
        return tuple(dict.fromkeys([*self.a.part_names, *self.b.part_names]))

    def _inside(self, points: np.ndarray) -> np.ndarray:
        """Inside, without care for points on the boundary: (n,) bool."""
        a, b = self._operands
        if self.kind == "union":
            return a.contains(points) | b.contains(points)
        if self.kind == "intersection":
            return a.contains(points) & b.contains(points)
        return a.contains(points) & ~b.contains(points)

    def contains(self, points) -> np.ndarray:
        """Whether each point is inside or, up to rounding, on the boundary: (n,) bool."""
        points = self.check_points(points)
        inside = self._inside(points)
        if self.kind == "difference":
            rest = np.flatnonzero(~inside)
            rest = rest[self.a.contains(points[rest])]
            inside[rest] = self._operands[1].distance(points[rest]) >= -1e-12 * self.size
        return inside

    def volume(self) -> float:
        """Length, area or volume, estimated to about 0.1 %; by formula for a hole that lies within."""
        if self.kind == "difference" and self._within:
            return self.a.volume() - self.b.volume()
        return super().volume()

    @cached_property
    def _within(self) -> bool:
        """Whether all of b's boundary lies in a."""
        if self.dimension == 2:
            sample = np.concatenate([arc.points for arc in self.b.arcs()])
        else:
            sample = self.b.boundary_cloud(self.size / 32, np.random.default_rng(0))
        return bool((self.a.distance(sample) <= 0).all())

    def _kept(self, points: np.ndarray, which: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For boundary points of one operand: do they bound the combination, by how much, do both boundaries coincide.

        Where the boundaries coincide, normals decide: two boxes side by side have no boundary between them.
        """
        mine, other = self._operands[which], self._operands[1 - which]
        gap = other.distance(points)
        keeps_outside = self.kind == "union" or (self.kind == "difference" and which == 0)
        gap = gap if keeps_outside else -gap
        kept = gap > self._tolerance
        both = np.flatnonzero(np.abs(gap) <= self._tolerance)
        coincide = np.zeros(len(points), dtype=bool)
        if not len(both):
            return kept, gap, coincide
        facing = self._flip * np.sum(mine.normal(points[both]) * other.normal(points[both]), axis=1)
        kept[both] = facing > -1 + 1e-6
        coincide[both] = np.abs(facing) > 1 - 1e-6
        return kept, gap, coincide

    def project(self, points) -> np.ndarray:
        """Nearest boundary point of each point: (n, dimension)."""
        points = self.check_points(points)
        if not len(points):
            return points.copy()
        feet = np.full((2, *points.shape), np.inf)
        for which, domain in enumerate(self._operands):
            if domain.part_names:
                feet[which] = domain.project(points)
        away = np.linalg.norm(feet - points, axis=2)
        first = np.argmin(away, axis=0)
        best = feet[first, np.arange(len(points))]
        # the boundary is a piece of the operands' boundaries, so the nearest of those, where it was not cut away, is it
        good = np.zeros((2, len(points)), dtype=bool)
        for which in range(2):
            rows = np.flatnonzero(first == which)
            good[which, rows] = self._kept(best[rows], which)[0]
        rows = np.flatnonzero(~good.any(axis=0))
        if len(rows):
            best[rows] = self._search(points[rows])
            for which in range(2):
                again = rows[np.isfinite(feet[which, rows, 0])]
                again = again[self._kept(feet[which, again], which)[0]]
                best[again] = nearer(points[again], best[again], feet[which, again])
        return best

    def _search(self, points: np.ndarray) -> np.ndarray:
        """Nearest boundary point: the best of a sample, then along the operand it lies on: (n, dimension)."""
        wrapped = self.wrap(points)
        shift = points - wrapped
        best = np.full_like(points, np.inf)
        for image in neighbours(self.periods):
            best = nearer(wrapped, best, self._search_plain(wrapped - image) + image)
        return best + shift

    def _search_plain(self, points: np.ndarray) -> np.ndarray:
        _, owner, spacing = self._boundary
        first, rows, second = two_valleys(self._tree, points, apart=4 * spacing)
        best = self._slid(points, first)
        if len(rows):
            best[rows] = nearer(points[rows], best[rows], self._slid(points[rows], second))
        edge = np.flatnonzero(owner == 2)
        if len(edge):
            _, near = self._edges.query(points)
            best = nearer(points, best, self._slid(points, edge[near]))
        return best

    def _slid(self, points: np.ndarray, index: np.ndarray) -> np.ndarray:
        """From samples to the nearest point of the same smooth piece, unless that was cut away: (n, dimension)."""
        sample, owner, spacing = self._boundary
        best = sample[index]
        if self.dimension == 1:
            return best
        for which in range(3):
            rows = np.flatnonzero(owner[index] == which)
            if not len(rows):
                continue
            if which == 2:
                onto, normal = self._onto_edge, self._edge_normals
            else:
                onto, normal = self._operands[which].project, self._operands[which].normal
            # the nearest sample is a step or two from the nearest point; what goes on beyond has passed a corner
            limit = 4 * spacing
            moved = slide(points[rows], best[rows], onto, normal, reach=spacing, size=self.size, limit=limit)
            if which == 2:
                kept = np.max([np.abs(d.distance(moved)) for d in self._operands], axis=0) <= self._tolerance
            else:
                kept = self._kept(moved, which)[0]
            kept &= np.linalg.norm(moved - best[rows], axis=1) <= limit
            best[rows[kept]] = moved[kept]
        return best

    @cached_property
    def _boundary(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Points of the boundary, which operand each belongs to (2: the edge between them), and their spacing."""
        if self.dimension == 1:
            points = self._cloud(1.0, np.random.default_rng(0))
            return points[0], points[1], self.size
        if self.dimension == 3:
            spacing = self.size / 32
            return *self._cloud(spacing, np.random.default_rng(0)), spacing / 4
        pieces, owners = self._pieces
        points = np.concatenate([arc.points for arc in pieces])
        return (
            points,
            np.concatenate([np.full(len(arc.points), k) for arc, k in zip(pieces, owners, strict=True)]),
            self.size / SAMPLES,
        )

    @cached_property
    def _tree(self) -> KDTree:
        return KDTree(self._boundary[0])

    @cached_property
    def _edges(self) -> KDTree:
        sample, owner, _ = self._boundary
        return KDTree(sample[owner == 2])

    def _plain(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Parts and normals of boundary points away from corners: (n, n_parts) bool, (n, dimension)."""
        names = self.part_names
        parts = np.zeros((len(points), len(names)), dtype=bool)
        normals = np.zeros_like(points)
        gaps = np.array([np.abs(domain.distance(points)) for domain in self._operands])
        limit = np.maximum(self._tolerance, gaps.min(axis=0))
        for which in (1, 0):
            domain = self._operands[which]
            rows = np.flatnonzero(gaps[which] <= limit)
            if not len(rows):
                continue
            columns = [names.index(name) for name in domain.part_names]
            parts[rows[:, None], columns] |= domain.parts(points[rows])
            normals[rows] = domain.normal(points[rows]) * (self._flip if which else 1.0)
        return parts, normals

    def _resolved(self, points) -> tuple[np.ndarray, np.ndarray]:
        points = self.check_points(points)
        foot = self.project(points)
        parts, normals = self._plain(foot)
        gaps = np.array([np.abs(domain.distance(foot)) for domain in self._operands])
        rows = np.flatnonzero((gaps <= self._tolerance).all(axis=0) | (parts.sum(axis=1) > 1))
        if len(rows):
            parts[rows], normals[rows] = look_around(self, foot[rows], self._plain)
        return parts, normals

    def parts(self, points) -> np.ndarray:
        """Which named parts each boundary point lies on: (n, n_parts) bool."""
        return self._resolved(points)[0]

    def normal(self, points) -> np.ndarray:
        """Outward unit normal; at a corner, of a side that belongs to the first part there: (n, dimension)."""
        return self._resolved(points)[1]

    def arcs(self) -> tuple[Arc, ...]:
        """The operands' arcs, cut where they leave the combined boundary, and joined where they go on smoothly."""
        if self.dimension != 2:
            return super().arcs()
        return tuple(join(self._pieces[0], 1e-9 * self.size))

    @cached_property
    def _pieces(self) -> tuple[list[Arc], list[int]]:
        """Pieces of the operands' arcs with the domain on their left, and the operand each belongs to."""
        pieces, owners = Cutter((self.a, self.b), self._kept, self._flip, self.size).pieces()
        if not pieces:
            raise self._empty
        return pieces, owners

    def boundary_cloud(self, spacing: float, rng: np.random.Generator) -> np.ndarray:
        """What is left of the operands' clouds, and points along the edges between them: (m, 3)."""
        spacing = check_positive(spacing, "spacing")
        if self.dimension == 2:
            return super().boundary_cloud(spacing, rng)
        return self._cloud(spacing, rng)[0]

    def _cloud(self, spacing: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        clouds, owners = [], []
        for which, domain in enumerate((self.a, self.b)):
            if not domain.part_names:
                continue
            cloud = domain.boundary_cloud(spacing, rng)
            kept, gap, coincide = self._kept(cloud, which)
            kept &= ~(coincide & (which == 1))
            clouds.append(cloud[kept])
            owners.append(np.full(kept.sum(), which))
            if self.dimension == 3:
                beside = cloud[(np.abs(gap) < spacing / 3) & ~coincide]
                edge = self._onto_edge(beside)
                off = np.max([np.abs(d.distance(edge)) for d in self._operands], axis=0)
                found = (off <= self._tolerance) & (np.linalg.norm(edge - beside, axis=1) < spacing)
                clouds.append(edge[found])
                owners.append(np.full(found.sum(), 2))
        points = np.concatenate(clouds)
        if not len(points):
            raise self._empty
        return points, np.concatenate(owners)

    def _onto_edge(self, points: np.ndarray) -> np.ndarray:
        """Newton's method for a point on both boundaries, from points close by: (n, 3)."""
        points = points.copy()
        for _ in range(8):
            gaps = np.stack([d.distance(points) for d in self._operands], axis=1)
            normals = np.stack([d.normal(points) for d in self._operands], axis=1)
            cosine = np.sum(normals[:, 0] * normals[:, 1], axis=1)
            sine2 = np.maximum(1 - cosine**2, 1e-6)
            weight = (gaps - cosine[:, None] * gaps[:, ::-1]) / sine2[:, None]
            step = np.einsum("nk,nkd->nd", weight, normals)
            length = np.linalg.norm(step, axis=1, keepdims=True)
            points -= step * np.minimum(1.0, 0.05 * self.size / np.maximum(length, 1e-300))
            if not len(points) or length.max() < 1e-14 * self.size:
                break
        return points

    def _edge_normals(self, points: np.ndarray) -> np.ndarray:
        """Two orthonormal vectors that span the normals of both boundaries: (n, 2, 3)."""
        one, other = (d.normal(points) for d in self._operands)
        other = other - np.sum(one * other, axis=1, keepdims=True) * one
        return np.stack([one, other / np.maximum(np.linalg.norm(other, axis=1, keepdims=True), 1e-12)], axis=1)
