"""From what was asked to points: place nodes for a spacing, and find the spacing that gives a count."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np

from parasol.errors import InputError, UnsuitableNodes
from parasol.space.boundary import Boundary, apportion, boundary_nodes, intervals
from parasol.space.fill import fill
from parasol.space.front import front
from parasol.space.geometry.domain import Domain
from parasol.space.interfaces import joints_of, with_interfaces
from parasol.space.relax import relax, repel, trim
from parasol.space.wrap import Depth, Wrap

# Interior nodes = a * integral of h^-dimension - b * boundary nodes: (a, b) measured in 2-D and 3-D. Only the first
# guess of the search for a count depends on them.
_DENSITY = {
    "fill": ((0.92, 0.6), (0.794, 0.45)),
    "front": ((0.915, 0.55), (0.0, 0.0)),
    "hexagonal": ((1.155, 0.8), (1.299, 0.8)),
}


_MOST = 2e7  # nodes; more do not fit into the memory of a usual machine


@dataclass(frozen=True)
class Field:
    """Wanted spacing h = scale * shape(x) + grade * depth, never below a fifth of its value at the boundary."""

    shape: Callable[[np.ndarray], np.ndarray]
    scale: float = 1.0
    grade: float = 0.0
    flat: bool = False  # the shape is constant
    free: bool = False  # the shape was not asked for

    def __call__(self, points: np.ndarray, depth: np.ndarray | float = 0.0) -> np.ndarray:
        """Spacing (n,) at (n, dimension) points that lie `depth` away from the boundary."""
        shape = np.asarray(self.shape(points), dtype=float)
        if shape.shape != (len(points),) or not (np.isfinite(shape).all() and (shape > 0).all()):
            raise InputError("spacing must return one positive number per point, shape (n,). Check the function.")
        h = self.scale * shape
        return h if self.grade == 0 else np.maximum(h + self.grade * depth, 0.2 * h)


@dataclass(frozen=True, eq=False)
class Draft:
    """Nodes before relaxation, with the spacing they were made for."""

    field: Field
    boundary: Boundary
    interior: np.ndarray


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything `scatter` was asked for but the count."""

    domain: Domain
    method: str
    field: Field
    n_boundary: int | None
    steps: int
    boundary_rng: np.random.Generator
    interior_rng: np.random.Generator
    depths: Depth

    def boundary(self, field: Field, *, steps: int = 20) -> Boundary:
        """Boundary nodes for a spacing, the same random numbers every time."""
        rng, regions = deepcopy(self.boundary_rng), self.domain.divided
        if regions is None:
            return boundary_nodes(self.domain, field, self.n_boundary, rng, steps=steps)
        joints = partial(joints_of, regions)
        boundary = boundary_nodes(self.domain, field, self.n_boundary, rng, steps=steps, joints=joints)
        return with_interfaces(regions, boundary, field, self.n_boundary, rng, steps=steps)

    def interior(self, field: Field, boundary: np.ndarray, limit: int | None = None) -> np.ndarray:
        """Interior points before relaxation; the same random numbers every time, so that the count varies smoothly."""
        rng = deepcopy(self.interior_rng)
        if self.domain.dimension == 1:
            return _between(self.domain, field)
        if self.method == "fill":
            return fill(self.domain, field, boundary, rng=rng, depths=self.depths, graded=field.grade != 0, limit=limit)
        if self.method == "front":
            points = self._front(field, rng)
        else:
            points = _hexagons(self.domain, float(field(self.domain.bounds).mean()), rng)
        # what a front leaves near the boundary is repaired by pushing, a lattice has to keep its distance
        margin, gap = (0.25, 0.5) if self.method == "front" else (0.5, 0.75)
        h = self.wanted(field, points)
        keep = self.depths.at_least(points, margin * h) >= margin * h
        if len(boundary):
            wrap = Wrap.of(self.domain)
            keep &= wrap.query(wrap.tree(boundary), points, 1)[0][:, 0] >= gap * h
        return points[keep]

    def wanted(self, field: Field, points: np.ndarray) -> np.ndarray:
        """The spacing at points; distances are asked for only if it depends on them."""
        return field(points) if field.grade == 0 else field(points, np.maximum(self.depths.exact(points), 0))

    def _front(self, field: Field, rng: np.random.Generator) -> np.ndarray:
        domain = self.domain
        edge = float(field(domain.bounds).max())
        bounds = domain.bounds + edge * np.array([[-1.0], [1.0]])  # the first rows are straight; they stay outside
        return front(bounds, edge if field.flat and field.grade == 0 else lambda x: self.wanted(field, x), rng=rng)

    def boundary_spacing(self, field: Field, boundary: Boundary) -> np.ndarray:
        """Spacing of the nodes on boundary and interfaces: as wanted, or as measured where their number was prescribed."""
        h, points = field(boundary.fixed), boundary.points
        if self.n_boundary is None or len(points) < 2:
            return h
        wrap = Wrap.of(self.domain)
        nearest = wrap.query(wrap.tree(points), points, 2)[0][:, 1]
        return h * float(np.median(nearest / h[: len(points)]))

    def relaxed(self, field: Field, interior: np.ndarray, boundary: np.ndarray, h_boundary: np.ndarray) -> np.ndarray:
        """Interior points evened out: all of them after a fill, those next to the boundary otherwise."""
        if self.domain.dimension == 1 or self.steps == 0:
            return interior
        h = self.wanted(field, interior)
        push = relax if self.method == "fill" else repel
        return push(self.domain, interior, h, boundary, h_boundary, steps=self.steps, depths=self.depths)


def spaced(plan: Plan) -> Draft:
    """Nodes with the spacing asked for."""
    expected = _expected(plan)
    if expected > _MOST:
        raise InputError(f"this spacing would need about {expected:.1e} nodes. Use a wider one: {_MOST:.0e} at most.")
    boundary = plan.boundary(plan.field)
    interior = plan.interior(plan.field, boundary.fixed)
    if len(interior) == 0:
        extent = float(np.ptp(plan.domain.bounds, axis=0).max())
        h = float(plan.field(plan.domain.bounds).mean())
        enough = 0.8 * float(plan.depths.table.max())
        raise UnsuitableNodes(
            f"spacing={h:.3g} leaves no interior node in a domain of size {extent:.3g}; use spacing <= {enough:.2g}."
        )
    return Draft(plan.field, boundary, interior)


def _expected(plan: Plan) -> float:
    """About how many nodes the spacing asked for will give: the integral of h^-dimension."""
    field, depths = plan.field, plan.depths
    if field.flat and field.grade == 0:
        h = field(plan.domain.bounds)
    else:
        inside = depths.table > 0
        h = field(depths.centres[inside], depths.table[inside]) if inside.any() else field(plan.domain.bounds)
    return plan.domain.volume() * float(np.mean(h**-plan.domain.dimension))


def counted(plan: Plan, n: int) -> Draft:
    """Exactly n nodes: find the scale or the grade that gives slightly more, then remove the most crowded.

    The count is modelled by the integral of h^-dimension and the number of boundary nodes; its constant is corrected
    after each trial, for large n first on a sixteenth of the nodes.
    """
    if plan.domain.dimension == 1:
        return _on_line(plan, n)
    given = plan.boundary(plan.field) if plan.n_boundary is not None else None
    model = _Model.of(plan, given)
    if model.family.graded and model.expected(model.family.at(0.0), 0.0) < n:
        # the boundary nodes are sparser than the inside has to be: one spacing inside, not ever less towards the middle
        model.family = _scales(plan)
    best, trial = None, None
    for target in [n] if given is not None or n < 20_000 else [n // 16, n]:
        slack = 0.3 * np.sqrt(target) + 0.003 * target + 1
        for _ in range(12):
            t = model.solve(target + slack)
            if trial is None and given is None:  # the first guess knew nothing of the boundary nodes
                rough = 2 * t  # its number grows like t^(1 - dimension), so a coarse one tells
                model.note_boundary(rough, len(plan.boundary(model.family.at(rough), steps=0).points))
                t = model.solve(target + slack)
            field = model.family.at(t)
            boundary = given if given is not None else plan.boundary(field)
            trial = Draft(field, boundary, plan.interior(field, boundary.fixed, limit=3 * n + 1000))
            total = len(boundary.fixed) + len(trial.interior)
            model.correct(t, len(boundary.fixed), len(trial.interior))
            if target < n:
                if abs(total - target) < 0.2 * target:
                    break
                continue
            if total >= n > len(boundary.fixed) and (best is None or len(trial.interior) < len(best.interior)):
                best = trial
            if n <= total <= n + 4 * slack:
                break
            slack *= 1.5 if total < n else 1.0
    if best is None:
        best = _scanned(plan, model, given, n)
    h = plan.wanted(best.field, best.interior)
    kept = trim(plan.domain, best.interior, h, best.boundary.fixed, n - len(best.boundary.fixed))
    return replace(best, interior=kept)


def _scanned(plan: Plan, model: _Model, given: Boundary | None, n: int) -> Draft:
    """For a handful of nodes, where counts jump: try one spacing after the other, take the least excess."""
    best, enough = None, 0
    first = model.solve(0.4 * n)
    for t in first * 0.96 ** np.arange(50) if not model.family.graded else np.linspace(2.0, -0.5, 26):
        field = model.family.at(float(t))
        boundary = given if given is not None else plan.boundary(field)
        interior = plan.interior(field, boundary.fixed, limit=20 * n + 1000)
        total = len(boundary.fixed) + len(interior)
        if total >= n > len(boundary.fixed) and len(interior) and (best is None or total < enough):
            best, enough = Draft(field, boundary, interior), total
        elif best is None and len(interior) and total > n and (enough == 0 or total < enough):
            enough = total
    if best is None:
        advice = f"Use n_nodes >= {enough}" if enough else "Use more nodes, or fewer boundary nodes"
        raise UnsuitableNodes(f"n_nodes={n} is too small for this domain and its boundary nodes. {advice}.")
    return best


@dataclass(frozen=True)
class _Family:
    """The spacings among which one with the right count is sought; the count falls as t grows from low to high."""

    at: Callable[[float], Field]
    low: float
    high: float
    graded: bool


def _scales(plan: Plan) -> _Family:
    size = float(np.ptp(plan.domain.bounds, axis=0).max()) / float(plan.field(plan.domain.bounds).mean())
    return _Family(lambda t: replace(plan.field, scale=t), 1e-5 * size, 2 * size, graded=False)


def _grades(plan: Plan, boundary: Boundary) -> _Family:
    ratio = plan.boundary_spacing(plan.field, boundary) / plan.field(boundary.fixed)
    flat = replace(plan.field, scale=float(np.median(ratio)))
    return _Family(lambda t: replace(flat, grade=t), -1.0, 50.0, graded=True)


@dataclass(eq=False)
class _Model:
    """Predicts counts. Fixed boundary nodes are counted once; others are rim * t^(1 - dimension)."""

    family: _Family
    samples: np.ndarray
    depth: np.ndarray
    volume: float
    density: float
    missing: float
    rim: float
    fixed: bool

    @classmethod
    def of(cls, plan: Plan, given: Boundary | None) -> _Model:
        inside = plan.depths.table > 0
        samples, depth = plan.depths.centres[inside], plan.depths.table[inside]
        density = _DENSITY[plan.method][plan.domain.dimension - 2]
        if given is None:
            return cls(_scales(plan), samples, depth, plan.domain.volume(), *density, 0.0, False)
        by_grade = plan.field.free and plan.method != "hexagonal"
        family = _grades(plan, given) if by_grade else _scales(plan)
        return cls(family, samples, depth, plan.domain.volume(), *density, float(len(given.fixed)), True)

    def expected(self, field: Field, t: float) -> float:
        dimension = self.samples.shape[1]
        n_rim = self.rim if self.fixed else self.rim * t ** (1 - dimension)
        integral = self.volume * float(np.mean(field(self.samples, self.depth) ** -dimension))
        return self.density * integral + (1 - self.missing) * n_rim

    def solve(self, target: float) -> float:
        low, high = self.family.low, self.family.high
        for _ in range(60):
            middle = (low + high) / 2 if self.family.graded else float(np.sqrt(low * high))
            low, high = (middle, high) if self.expected(self.family.at(middle), middle) > target else (low, middle)
        return (low + high) / 2

    def note_boundary(self, t: float, n_boundary: int) -> None:
        if not self.fixed:
            self.rim = n_boundary * t ** (self.samples.shape[1] - 1)

    def correct(self, t: float, n_boundary: int, n_interior: int) -> None:
        self.note_boundary(t, n_boundary)
        predicted = self.expected(self.family.at(t), t) - (1 - self.missing) * n_boundary
        seen = n_interior + self.missing * n_boundary
        self.density *= float(np.clip(seen / max(predicted, 0.5), 0.5, 2.0))


def _between(domain, field: Field, n: int | None = None) -> np.ndarray:
    """Interior nodes of a line at equal integrals of dx/h, n of them in all if given."""
    pieces = intervals(domain)
    ring = not domain.part_names  # periodic, without ends
    if domain.divided is not None:
        pieces = _parted(pieces, domain.divided.places[:, 0], ring)
        ring = ring and not len(domain.divided.places)
    points, weights, grids = [], [], []
    for a, b in pieces:
        x = np.linspace(a, b, 4001)[:, None]
        depth = np.zeros(len(x)) if ring else np.maximum(-domain.distance(domain.wrap(x)), 0)
        density = 1 / field(domain.wrap(x), depth)
        weights.append(np.concatenate([[0], np.cumsum(np.diff(x[:, 0]) * (density[1:] + density[:-1]) / 2)]))
        grids.append(x[:, 0])
    total = np.array([w[-1] for w in weights])
    if n is None:
        counts = np.maximum(np.round(total).astype(int), 1)
    else:
        counts = apportion(total, np.full(len(pieces), 1 if ring else 2), n + (0 if ring else len(pieces)), "n_nodes")
    for weight, x, m in zip(weights, grids, counts, strict=True):
        inside = np.arange(0 if ring else 1, m)
        points.append(np.interp(weight[-1] * inside / m, weight, x))
    return domain.wrap(np.concatenate(points)[:, None])


def _parted(pieces: np.ndarray, places: np.ndarray, ring: bool) -> np.ndarray:
    """Intervals (m, 2) divided at interfaces (n,); a ring begins and ends at one."""
    if ring and len(places):
        period = pieces[0, 1] - pieces[0, 0]
        return np.stack([places, np.append(places[1:], places[0] + period)], axis=1)
    return np.array([cut for a, b in pieces for cut in pairwise([a, *places[(places > a) & (places < b)], b])])


def _on_line(plan: Plan, n: int) -> Draft:
    """n nodes on a line: the ends, and the rest between them at equal integrals of dx/h."""
    boundary = plan.boundary(plan.field)
    ends = len(boundary.fixed)
    if n <= ends:
        raise UnsuitableNodes(
            f"n_nodes={n} is too small: this line has {ends} ends and interfaces. Use n_nodes >= {ends + 1}."
        )
    mean = float(plan.field(plan.domain.bounds).mean())
    field = replace(plan.field, scale=plan.domain.volume() / n / mean)
    return Draft(field, boundary, _between(plan.domain, field, n - ends))


def _hexagons(domain, h: float, rng: np.random.Generator) -> np.ndarray:
    """Hexagonal (2-D) or body-centred cubic (3-D) lattice of nearest distance h over the bounding box.

    Body-centred, not face-centred: its ratio of separation to twice the fill distance is 0.775 against 0.707.
    """
    # a cell holds two nodes, one at its corner and one at its centre
    cell = h * (np.array([1.0, np.sqrt(3)]) if domain.dimension == 2 else np.full(3, 2 / np.sqrt(3)))
    lower, upper = domain.bounds
    extent = upper - lower
    periodic = domain.periods > 0
    fitted = np.where(periodic, extent / np.maximum(np.round(extent / cell), 1), cell)
    counts = np.where(periodic, np.round(extent / fitted), np.ceil(extent / fitted) + 1).astype(int)
    start = lower - fitted * rng.random(domain.dimension)
    corners = np.stack([g.ravel() for g in np.meshgrid(*[np.arange(c) for c in counts], indexing="ij")], axis=1)
    points = start + np.concatenate([corners * fitted, (corners + 0.5) * fitted])
    return Wrap.of(domain).fold(points)
