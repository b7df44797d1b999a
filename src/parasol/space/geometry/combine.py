"""Union, intersection and difference of domains."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.spatial import KDTree

from parasol.checks import check_choice
from parasol.errors import InputError, ParasolError
from parasol.space.geometry.corners import look_around, of_first
from parasol.space.geometry.cutting import SAMPLES, Cutter, Verdict, join
from parasol.space.geometry.domain import Arc, Domain
from parasol.space.geometry.images import Images, neighbours
from parasol.space.geometry.nearest import from_samples, nearer, onto_edge, side_normals, slide

_IRRATIONAL = np.sqrt([2.0, 3.0, 5.0])
_WORDS = {"union": "|", "intersection": "&", "difference": "-"}


@dataclass(frozen=True, eq=False)
class Combination(Domain):
    """`a | b`, `a & b` or `a - b`. Names of parts are inherited; the same name on both means the same part.

    Chains such as a - b - c are answered from their members at once, not one level after the other.

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
            raise InputError(f"cannot combine domains of dimension {a.dimension} and {b.dimension}.")
        if self.periods.any():
            wraps = self.periods > 0
            within = ((b.bounds[0] >= a.bounds[0]) & (b.bounds[1] <= a.bounds[1]))[wraps].all()
            if self.kind != "difference" or b.periods.any() or not within:
                raise InputError(
                    "a periodic box combines only as box - hole, the hole within one period and not periodic itself."
                )
        lower, upper = self.bounds
        if not (lower < upper).all():
            raise self._empty
        sample = lower + (upper - lower) * np.mod(np.outer(np.arange(1, 20_001), _IRRATIONAL[: self.dimension]), 1.0)
        if not any(self.contains(some).any() for some in np.split(sample, [100])):  # the first few mostly suffice
            _ = self._boundary  # a thin domain still has a boundary, an empty one complains

    @property
    def _empty(self) -> ParasolError:
        return InputError(f"a domain with no interior: nothing is left of the {self.kind} a {_WORDS[self.kind]} b.")

    @property
    def dimension(self) -> int:
        return self.a.dimension

    @property
    def periods(self) -> np.ndarray:
        return np.maximum(self.a.periods, self.b.periods)

    @property
    def symbols(self) -> frozenset:
        return self.a.symbols | self.b.symbols

    @cached_property
    def bounds(self) -> np.ndarray:
        a, b = self.a.bounds, self.b.bounds
        if self.kind == "union":
            return np.array([np.minimum(a[0], b[0]), np.maximum(a[1], b[1])])
        if self.kind == "intersection":
            return np.array([np.maximum(a[0], b[0]), np.minimum(a[1], b[1])])
        return a.copy()

    @cached_property
    def _flat(self) -> tuple[tuple[Domain, ...], np.ndarray]:
        """The domains this one is made of, and for each +1, or -1 where its outside counts.

        A union is wherever any of them holds, all else where all of them hold: a - b - c, for one, is in a, not in b,
        not in c. Without this every level of a chain would ask the one below several times.
        """

        def members(domain: Domain, kinds: tuple[str, ...]) -> tuple[tuple[Domain, ...], np.ndarray]:
            if isinstance(domain, Combination) and domain.kind in kinds:
                return domain._flat
            return (domain,), np.ones(1)

        alike = ("union",) if self.kind == "union" else ("intersection", "difference")
        some, signs = members(self.a, alike)
        others, other_signs = members(self.b, ("union",) if self.kind == "difference" else alike)
        if self.kind == "difference":
            other_signs = -other_signs
        return (*some, *others), np.concatenate([signs, other_signs])

    @cached_property
    def _operands(self) -> tuple[Domain, ...]:
        """The domains of `_flat`, holes repeated in every period where there are periods."""
        members, signs = self._flat
        if not self.periods.any():
            return members
        return tuple(Images(d, self.periods) if sign < 0 else d for d, sign in zip(members, signs, strict=True))

    @property
    def _flips(self) -> np.ndarray:
        """Signs that turn the operands' outward normals into those of the combination: (n_operands,)."""
        return self._flat[1]

    @property
    def _tolerance(self) -> float:
        return 1e-10 * self.size

    @property
    def part_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.a.part_names, *self.b.part_names]))

    def contains(self, points) -> np.ndarray:
        points = self.check_points(points)
        if self.kind == "union":
            return np.any([domain.contains(points) for domain in self._operands], axis=0)
        inside = np.ones(len(points), dtype=bool)
        for domain, flip in zip(self._operands, self._flips, strict=True):
            within = domain.contains(points)
            if flip > 0:
                inside &= within
                continue
            rows = np.flatnonzero(inside & within)  # in the hole, or just on its rim
            inside[rows] = domain.distance(points[rows]) >= -1e-12 * self.size
        return inside

    def volume(self) -> float:
        """Length, area or volume, estimated to about 0.1 %; by formula for holes that lie within and apart."""
        (whole, *holes), flips = self._flat
        if (flips[1:] < 0).all() and self._intact:
            return whole.volume() - sum(hole.volume() for hole in holes)
        return super().volume()

    @cached_property
    def _intact(self) -> bool:
        """Whether no operand's boundary was cut."""
        return all(
            (self._kept(_sampled(domain, self.size), which).gap >= 0).all()
            for which, domain in reversed(list(enumerate(self._flat[0])))
            if domain.part_names
        )

    def _gaps(self, points: np.ndarray) -> np.ndarray:
        """By how much each operand lets the points bound the combination, negative where it cuts them: (k, n)."""
        signs = np.ones(len(self._operands)) if self.kind == "union" else -self._flips
        return signs[:, None] * np.array([domain.rough_distance(points) for domain in self._operands])

    def open_ends(self) -> np.ndarray:
        """Points inside the domain where an operand's boundary is missing and no other operand closes it."""
        left = []
        for which, domain in enumerate(self._flat[0]):
            ends = domain.open_ends()
            left.append(ends[(np.delete(self._gaps(ends), which, axis=0) > self._tolerance).all(axis=0)])
        return np.concatenate(left)

    def _kept(self, points: np.ndarray, which: int) -> Verdict:
        """Whether boundary points of one operand bound the combination.

        Where boundaries coincide, normals decide: two boxes side by side have no boundary between them.
        """
        gaps = self._gaps(points)
        gaps[which] = np.inf
        gap = gaps.min(axis=0)
        kept = gap >= -self._tolerance
        coincide, repeats = np.zeros((2, len(points)), dtype=bool)
        both = np.flatnonzero(np.abs(gap) <= self._tolerance)
        mine = self._operands[which].normal(points[both]) if len(both) else points[both]
        for other in range(len(gaps)):
            here = np.flatnonzero(np.abs(gaps[other, both]) <= self._tolerance)
            if len(here):
                rows = both[here]
                normal = self._operands[other].normal(points[rows])
                facing = self._flips[which] * self._flips[other] * np.sum(mine[here] * normal, axis=1)
                kept[rows] &= facing > -1 + 1e-6
                coincide[rows] |= np.abs(facing) > 1 - 1e-6
                repeats[rows] |= (np.abs(facing) > 1 - 1e-6) & (other < which)
        return Verdict(kept, gap, coincide, repeats)

    def project(self, points) -> np.ndarray:
        points = self.check_points(points)
        if not len(points):
            return points.copy()
        feet = np.full((len(self._operands), *points.shape), np.inf)
        for which, domain in enumerate(self._operands):
            if domain.part_names:
                feet[which] = domain.project(points)
        away = np.linalg.norm(feet - points, axis=2)
        first = np.argmin(away, axis=0)
        best = feet[first, np.arange(len(points))]
        # the boundary is a piece of the operands' boundaries, so the nearest of those, where it was not cut away, is it
        good = np.zeros(len(points), dtype=bool)
        for which in np.unique(first):
            rows = np.flatnonzero(first == which)
            good[rows] = self._kept(best[rows], which).kept
        rows = np.flatnonzero(~good)
        if len(rows):
            best[rows] = self._search(points[rows])
            for which in range(len(feet)):
                again = rows[away[which, rows] < np.linalg.norm(best[rows] - points[rows], axis=1)]
                again = again[self._kept(feet[which, again], which).kept]
                best[again] = feet[which, again]
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
        best = from_samples(self._tree, points, self._slid, apart=4 * self._boundary[2])
        edge, tree = self._edges
        if len(edge):
            best = nearer(points, best, self._slid(points, edge[tree.query(points)[1]]))
        return best

    def _slid(self, points: np.ndarray, index: np.ndarray) -> np.ndarray:
        """From samples to the nearest point of the same smooth piece, unless that was cut away: (n, dimension)."""
        sample, owner, spacing = self._boundary
        best = sample[index]
        if self.dimension == 1:
            return best
        for one, other in np.unique(owner[index], axis=0):
            rows = np.flatnonzero((owner[index] == (one, other)).all(axis=1))
            sides = [self._operands[k] for k in dict.fromkeys((one, other))]
            onto = sides[0].onto if one == other else partial(onto_edge, pair=sides, size=self.size)
            normal = partial(side_normals, sides=sides)
            # the nearest sample is a step or two from the nearest point; what goes on beyond has passed a corner
            limit = 4 * spacing
            moved = slide(points[rows], best[rows], onto, normal, reach=spacing, size=self.size, limit=limit)
            kept = self._kept(moved, one).kept if one == other else self._on_edge(moved, one, other)
            kept &= np.linalg.norm(moved - best[rows], axis=1) <= limit
            best[rows[kept]] = moved[kept]
        return best

    def _on_edge(self, points: np.ndarray, one: int, other: int) -> np.ndarray:
        """Whether points lie on the boundaries of both operands and no other cuts them away: (n,) bool."""
        gaps = self._gaps(points)
        return (np.abs(gaps[[one, other]]).max(axis=0) <= self._tolerance) & (gaps.min(axis=0) >= -self._tolerance)

    @cached_property
    def _boundary(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Points of the boundary, the operands each belongs to (n, 2), two different ones on an edge, and spacing."""
        if self.dimension == 1:
            return *self._owned_cloud(1.0, np.random.default_rng(0)), self.size
        if self.dimension == 3:
            spacing = self.size / 32
            return *self._owned_cloud(spacing, np.random.default_rng(0)), spacing / 4
        pieces, owners = self._pieces
        points = np.concatenate([arc.points for arc in pieces])
        owner = np.repeat(owners, [len(arc.points) for arc in pieces])
        return points, np.stack([owner, owner], axis=1), self.size / SAMPLES

    @cached_property
    def _tree(self) -> KDTree:
        return KDTree(self._boundary[0])

    @cached_property
    def _edges(self) -> tuple[np.ndarray, KDTree]:
        """Those points of the boundary that lie on edges: their numbers and their tree."""
        sample, owner, _ = self._boundary
        edge = np.flatnonzero(owner[:, 0] != owner[:, 1])
        return edge, KDTree(sample[edge])

    def plain(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        names = self.part_names
        parts = np.zeros((len(points), len(names)), dtype=bool)
        normals = np.zeros_like(points)
        gaps = np.abs(self._gaps(points))
        limit = np.maximum(self._tolerance, gaps.min(axis=0))
        for which, domain in reversed(list(enumerate(self._operands))):
            rows = np.flatnonzero(gaps[which] <= limit)
            if not len(rows):
                continue
            columns = [names.index(name) for name in domain.part_names]
            parts[rows[:, None], columns] |= domain.parts(points[rows])
            normals[rows] = domain.normal(points[rows]) * self._flips[which]
        return parts, normals

    def _resolved(self, points) -> tuple[np.ndarray, np.ndarray]:
        points = self.check_points(points)
        foot = self.project(points)
        parts, normals = self.plain(foot)
        rows = np.flatnonzero(((np.abs(self._gaps(foot)) <= self._tolerance).sum(axis=0) > 1) | (parts.sum(axis=1) > 1))
        if len(rows):
            parts[rows], of_parts = look_around(self, foot[rows])
            normals[rows] = of_first(parts[rows], of_parts)
        return parts, normals

    def parts(self, points) -> np.ndarray:
        return self._resolved(points)[0]

    def normal(self, points) -> np.ndarray:
        """Outward unit normal; at a corner, of a side that belongs to the first part there: (n, dimension)."""
        return self._resolved(points)[1]

    def _arcs(self) -> tuple[Arc, ...]:
        """The operands' arcs, cut where they leave the combined boundary, and joined where they go on smoothly."""
        return tuple(join(self._pieces[0], 1e-9 * self.size))

    @cached_property
    def _pieces(self) -> tuple[list[Arc], list[int]]:
        """Pieces of the operands' arcs with the domain on their left, and the operand each belongs to."""
        pieces, owners = Cutter(self._flat[0], self._kept, self._flips, self.size).pieces()
        if not pieces:
            raise self._empty
        return pieces, owners

    def _cloud(self, spacing: float, rng: np.random.Generator) -> np.ndarray:
        return self._owned_cloud(spacing, rng)[0]

    def _owned_cloud(self, spacing: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """What is left of the operands' clouds, points along the edges between them, and whose they are (m, 2)."""
        clouds, owners = [], []
        for which, domain in enumerate(self._flat[0]):
            if not domain.part_names:
                continue
            cloud = domain.boundary_cloud(spacing, rng)
            verdict = self._kept(cloud, which)
            clouds.append(cloud[verdict.kept & ~verdict.repeats])
            owners.append((which, which))
            if self.dimension == 3:
                beside = cloud[(np.abs(verdict.gap) < spacing / 3) & ~verdict.coincide]
                gaps = np.abs(self._gaps(beside))
                for other in range(len(gaps)):
                    near = beside[gaps[other] < spacing / 3]
                    if other == which or not len(near):
                        continue
                    edge = onto_edge(near, (self._operands[which], self._operands[other]), self.size)
                    on_edge = self._on_edge(edge, which, other) & (np.linalg.norm(edge - near, axis=1) < spacing)
                    clouds.append(edge[on_edge])
                    owners.append((which, other))
        points = np.concatenate(clouds)
        if not len(points):
            raise self._empty
        return points, np.repeat(owners, [len(cloud) for cloud in clouds], axis=0)


def _sampled(domain: Domain, size: float) -> np.ndarray:
    """Points all over the boundary of a domain, dense against `size`: (m, dimension)."""
    if domain.dimension == 2:
        return np.concatenate([arc.points for arc in domain.arcs()])
    return domain.boundary_cloud(min(size, domain.size) / 32, np.random.default_rng(0))
