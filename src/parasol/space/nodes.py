"""Scattered nodes of a domain: made, counted, described."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np

from parasol.checks import ParasolError, check_choice, check_positive
from parasol.space.boundary import Boundary, apportion, boundary_nodes, describe, intervals
from parasol.space.fill import fill
from parasol.space.front import front
from parasol.space.geometry.domain import Domain
from parasol.space.geometry.primitives import Box
from parasol.space.relax import clip, repel, trim
from parasol.space.relax import relax as relax_all
from parasol.space.wrap import Depth, Wrap, in_cells

_METHODS = ("fill", "front", "hexagonal")
# Interior nodes = a * integral of h^-dimension - b * boundary nodes: a, b measured in 2-D and 3-D. Only the first guess of
# the search for a count depends on them.
_DENSITY = {
    "fill": ((0.92, 0.6), (0.794, 0.45)),
    "front": ((0.915, 0.75), (0.0, 0.0)),
    "hexagonal": ((1.155, 0.8), (1.299, 0.8)),
}


@dataclass(frozen=True, eq=False)
class Nodes:
    """Nodes of a domain, interior first, then boundary, with normals and parts of the boundary nodes."""

    domain: Domain
    points: np.ndarray  # (n_nodes, dimension)
    n_interior: int
    normals: np.ndarray  # (n_boundary, dimension), outward
    part: np.ndarray  # (n_boundary,) index into domain.part_names: the part whose normal is stored
    on_part: np.ndarray  # (n_boundary, n_parts) bool: all parts a node lies on
    spacing: np.ndarray  # (n_nodes,) local wanted spacing h(x)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.points)

    @property
    def n_boundary(self) -> int:
        """Number of boundary nodes."""
        return len(self.points) - self.n_interior

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.points.shape[1]

    @property
    def interior(self) -> np.ndarray:
        """Interior points, (n_interior, dimension)."""
        return self.points[: self.n_interior]

    @property
    def boundary(self) -> np.ndarray:
        """Boundary points, (n_boundary, dimension)."""
        return self.points[self.n_interior :]


def scatter(
    domain: Domain,
    *,
    n_nodes: int | None = None,
    spacing: float | Callable[[np.ndarray], np.ndarray] | None = None,
    n_boundary: int | None = None,
    method: str = "fill",
    grade: float | None = None,
    relax: int | None = None,
    rng: int | np.random.Generator = 0,
) -> Nodes:
    """Scatter nodes over a domain: so many of them, or so far apart.

    The wanted spacing is h(x) = h_b + grade * dist(x, boundary). With `spacing` h_b is given, a number or a function of
    (n, dimension) points; with `n_nodes` it is found so that the count is exact, and a function gives only its shape.
    With `n_nodes` and `n_boundary` both counts are exact: the second fixes h_b, then the grade follows.

    `method`: "fill" (any domain), "front" (plane, Fornberg and Flyer) or "hexagonal" (a regular lattice inside;
    body-centred cubic in space). `relax` is the number of repulsion steps: of all nodes for "fill", of those next to the
    boundary otherwise. The same `rng` seed gives the same bytes.

    >>> from parasol.space.geometry.primitives import Ball
    >>> nodes = scatter(Ball((0.0, 0.0), 1.0), n_nodes=500, rng=0)
    >>> nodes.n_nodes, bool(nodes.domain.contains(nodes.points).all())
    (500, True)
    """
    _check(domain, n_nodes, spacing, n_boundary, method, grade)
    rng = np.random.default_rng(rng)
    shape = spacing if callable(spacing) else (lambda points, h=float(spacing or 1.0): np.full(len(points), h))
    plan = _Plan(domain, method, _Field(shape, grade=grade or 0.0, shape_is_free=spacing is None, is_flat=not callable(spacing)), n_boundary, relax, *rng.spawn(2), Depth(domain))
    if n_nodes is None:
        return _spaced(plan)
    if domain.dimension == 1:
        return _line(plan, n_nodes)
    return _counted(plan, n_nodes)


def lattice(box: Domain, shape: tuple[int, ...] | int) -> Nodes:
    """Uniform tensor lattice on a box, faces included: shape[a] nodes along axis a.

    A periodic axis has its shape[a] nodes without the last layer, which is the first one again. Interior first; a node on
    an edge or corner lies on all parts that meet there and carries the normal of the first.

    >>> nodes = lattice(Box((-7.0, -7.0), (7.0, 7.0)), (57, 57))
    >>> nodes.n_interior == 55 * 55, nodes.n_boundary
    (True, 224)
    """
    base = box
    while hasattr(base, "base"):
        base = base.base  # type: ignore[attr-defined]
    if not isinstance(base, Box):
        raise ParasolError(f"a lattice needs a Box, got {type(base).__name__}. Use scatter for other domains.")
    counts = (shape,) * box.dimension if isinstance(shape, int) else tuple(shape)
    if len(counts) != box.dimension or any(int(n) != n or n < 3 for n in counts):
        raise ParasolError(f"shape={shape!r} does not fit: give {box.dimension} whole numbers of at least 3.")
    (lower, upper), periods = box.bounds, box.periods
    ticks = [np.linspace(a, b, int(n) + (p > 0))[: int(n)] for a, b, n, p in zip(lower, upper, counts, periods, strict=True)]
    steps = np.array([t[1] - t[0] for t in ticks])
    points = np.stack([t.ravel() for t in np.meshgrid(*ticks, indexing="ij")], axis=1)
    index = np.stack([i.ravel() for i in np.indices([len(t) for t in ticks])], axis=1)
    at_end = ((index == 0) | (index == np.array(counts) - 1)) & (periods == 0)
    outer = at_end.any(axis=1)
    edge = points[outer]
    # an edge node is described at a point a little way off, in the face of its first axis
    first = np.argmax(at_end[outer], axis=1)
    off = at_end[outer]
    off[np.arange(len(edge)), first] = False
    beside = edge + np.where(off, np.sign((lower + upper) / 2 - edge) * 1e-3 * steps, 0.0)
    described = describe(box, edge, beside, box.parts(edge) if len(edge) else None)
    return _assemble(box, points[~outer], described, np.full(len(points), float(steps.mean())))


def ghosts(nodes: Nodes, which: np.ndarray | None = None) -> np.ndarray:
    """Boundary nodes moved outward by the local spacing along their normals, (m, dimension).

    `which` selects boundary nodes: an (n_boundary,) mask or indices; all of them when left out.
    """
    h = nodes.spacing[nodes.n_interior :]
    points = nodes.boundary + h[:, None] * nodes.normals
    return points if which is None else points[which]


# ---- how it is done ------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Field:
    """Wanted spacing h = scale * shape(x) + grade * depth, never below a fifth of its value at the boundary."""

    shape: Callable[[np.ndarray], np.ndarray]
    scale: float = 1.0
    grade: float = 0.0
    shape_is_free: bool = False
    is_flat: bool = False

    def __call__(self, points: np.ndarray, depth: np.ndarray | float = 0.0) -> np.ndarray:
        shape = np.asarray(self.shape(points), dtype=float)
        if shape.shape != (len(points),) or not (np.isfinite(shape).all() and (shape > 0).all()):
            raise ParasolError("spacing must return one positive number per point, shape (n,). Check the function.")
        h = self.scale * shape
        return h if self.grade == 0 else np.maximum(h + self.grade * depth, 0.2 * h)


@dataclass(frozen=True, eq=False)
class _Plan:
    """Everything `scatter` was asked for but the count."""

    domain: Domain
    method: str
    field: _Field
    n_boundary: int | None
    steps: int | None
    boundary_rng: np.random.Generator
    interior_rng: np.random.Generator
    depths: Depth

    def boundary(self, field: _Field) -> Boundary:
        return boundary_nodes(self.domain, field, self.n_boundary, deepcopy(self.boundary_rng))

    def interior(self, field: _Field, boundary: np.ndarray, limit: int | None = None) -> np.ndarray:
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
        return points[clip(self.domain, points, self.wanted(field, points), boundary, depths=self.depths)]

    def wanted(self, field: _Field, points: np.ndarray) -> np.ndarray:
        """The spacing at points; distances are asked for only if it depends on them."""
        return field(points) if field.grade == 0 else field(points, np.maximum(self.depths.exact(points), 0))

    def _front(self, field: _Field, rng: np.random.Generator) -> np.ndarray:
        domain = self.domain
        edge = float(field(domain.bounds).max())
        bounds = domain.bounds + edge * np.array([[-1.0], [1.0]])  # the first rows are straight; they stay outside
        return front(bounds, float(edge) if field.is_flat and field.grade == 0 else lambda x: self.wanted(field, x), rng=rng)

    def relaxed(self, field: _Field, interior: np.ndarray, boundary: np.ndarray, h_boundary: np.ndarray) -> np.ndarray:
        if self.domain.dimension == 1 or self.steps == 0:
            return interior
        h = self.wanted(field, interior)
        push = relax_all if self.method == "fill" else repel
        options = {} if self.steps is None else {"steps": self.steps}
        return push(self.domain, interior, h, boundary, h_boundary, depths=self.depths, **options)


def _check(domain, n_nodes, spacing, n_boundary, method, grade) -> None:
    check_choice(method, _METHODS, "method")
    if n_nodes is None and spacing is None:
        raise ParasolError("scatter needs a count or a spacing: give n_nodes=1000 or spacing=0.05.")
    if n_nodes is not None and spacing is not None and not callable(spacing):
        raise ParasolError(f"n_nodes={n_nodes} and spacing={spacing} were both given. Leave one of them out.")
    if spacing is not None and not callable(spacing):
        check_positive(spacing, "spacing")
    for value, name in ((n_nodes, "n_nodes"), (n_boundary, "n_boundary")):
        if value is not None and (isinstance(value, bool) or int(value) != value or value < 1):
            raise ParasolError(f"{name} must be a positive whole number, got {value!r}.")
    if method == "front" and (domain.dimension != 2 or domain.periods.any()):
        raise ParasolError('method="front" works in the plane without periodic axes only. Use method="fill".')
    if method == "hexagonal" and (callable(spacing) or grade):
        raise ParasolError('method="hexagonal" has one spacing everywhere. Use method="fill" for a varying one.')
    if grade is not None and not np.isfinite(grade):
        raise ParasolError(f"grade must be a finite number, got {grade!r}.")
    if grade and len(domain.part_names) == 0:
        raise ParasolError("grade needs a boundary to count the distance from; this domain has none. Leave grade out.")
    if grade is not None and n_nodes is not None and n_boundary is not None:
        raise ParasolError("n_nodes and n_boundary together determine the grade. Leave grade or n_boundary out.")


def _assemble(domain, interior: np.ndarray, boundary: Boundary, spacing: np.ndarray) -> Nodes:
    points = np.concatenate([interior, boundary.points])
    return Nodes(domain, points, len(interior), boundary.normals, boundary.part, boundary.on_part, spacing)


def _finish(plan: _Plan, field: _Field, interior: np.ndarray, boundary: Boundary, h_boundary: np.ndarray) -> Nodes:
    interior = plan.relaxed(field, interior[in_cells(interior)], boundary.points, h_boundary)
    h = plan.wanted(field, interior)
    return _assemble(plan.domain, interior, boundary, np.concatenate([h, h_boundary]))


def _boundary_spacing(plan: _Plan, field: _Field, boundary: np.ndarray) -> np.ndarray:
    """Spacing of the boundary nodes: as wanted, or as measured where their number was prescribed."""
    h = field(boundary)
    if plan.n_boundary is None or len(boundary) < 2:
        return h
    wrap = Wrap.of(plan.domain)
    nearest = wrap.query(wrap.tree(boundary), boundary, 2)[0][:, 1]
    return h * float(np.median(nearest / h))


def _spaced(plan: _Plan) -> Nodes:
    boundary = plan.boundary(plan.field)
    interior = plan.interior(plan.field, boundary.points)
    if len(interior) == 0:
        extent = float(np.ptp(plan.domain.bounds, axis=0).max())
        h = float(plan.field(plan.domain.bounds).mean())
        enough = 0.8 * float(plan.depths.table.max())
        raise ParasolError(
            f"spacing={h:.3g} leaves no interior node in a domain of size {extent:.3g}; use spacing <= {enough:.2g}."
        )
    return _finish(plan, plan.field, interior, boundary, _boundary_spacing(plan, plan.field, boundary.points))


def _counted(plan: _Plan, n: int) -> Nodes:
    """Find the scale or the grade that gives slightly more than n nodes, remove the most crowded, relax.

    The count is modelled by the integral of h^-dimension and the number of boundary nodes; the density constant is corrected
    after each trial, for large n first on a sixteenth of the nodes.
    """
    domain, dimension = plan.domain, plan.domain.dimension
    inside = plan.depths.table > 0
    samples, depth = plan.depths.centres[inside], plan.depths.table[inside]
    volume = domain.volume()
    density, missing = _DENSITY[plan.method][dimension - 2]
    given = plan.boundary(plan.field) if plan.n_boundary is not None else None
    by_grade = given is not None and plan.field.shape_is_free and plan.method != "hexagonal"

    if by_grade:
        h_b = _boundary_spacing(plan, plan.field, given.points)
        flat = replace(plan.field, scale=float(np.median(h_b / plan.field(given.points))))

        def field_at(t: float) -> _Field:
            return replace(flat, grade=t)

        low, high = -0.95 * flat.scale / max(float(depth.max()), 1e-300), 50.0
    else:
        unit = float(np.prod(np.ptp(domain.bounds, axis=0))) ** (1 / dimension)

        def field_at(t: float) -> _Field:
            return replace(plan.field, scale=t)

        mean = float(plan.field(samples).mean())
        low, high = 1e-4 * unit / mean, 2 * unit / mean

    def expected(t: float, rim: float) -> float:
        h = field_at(t)(samples, depth)
        n_rim = rim * (1 if given is not None else t ** (1 - dimension))
        return density * volume * float(np.mean(h**-dimension)) + (1 - missing) * n_rim

    def solve(target: float, rim: float) -> float:
        a, b = low, high
        for _ in range(60):
            middle = (a + b) / 2 if by_grade else np.sqrt(a * b)
            a, b = (middle, b) if expected(middle, rim) > target else (a, middle)
        return float((a + b) / 2)

    targets = [n] if given is not None or n < 20_000 else [n // 16, n]
    rim = float(len(given.points)) if given is not None else 0.0
    if given is None and len(targets) == 1:
        t = solve(n, 0.0)
        rim = len(plan.boundary(field_at(t)).points) * t ** (dimension - 1)
    best = None
    for target in targets:
        slack = 0.3 * np.sqrt(target) + 0.003 * target + 1
        for _ in range(10):
            t = solve(target + slack, rim)
            field = field_at(t)
            boundary = given if given is not None else plan.boundary(field)
            rim = float(len(boundary.points)) * (1 if given is not None else t ** (dimension - 1))
            interior = plan.interior(field, boundary.points, limit=3 * n + 1000)
            total = len(boundary.points) + len(interior)
            if target < n:
                done = abs(total - target) < 0.2 * target
            else:
                if n <= total and len(boundary.points) < n and (best is None or total < best[0]):
                    best = total, field, boundary, interior
                done = n <= total <= n + 4 * slack
            if __import__("os").environ.get("DBG"): print("  search", target, t, total, density)
            lost = missing * len(boundary.points)
            modelled = expected(t, rim) - len(boundary.points)
            density *= np.clip((len(interior) + lost) / max(modelled + lost, 0.5), 0.5, 2.0)
            if done:
                break
    if best is None:
        raise ParasolError(f"n_nodes={n} is too small for this domain and its boundary nodes. Use more nodes.")
    _, field, boundary, interior = best
    h = plan.wanted(field, interior)
    interior = trim(domain, interior, h, boundary.points, n - len(boundary.points))
    h_boundary = _boundary_spacing(plan, field, boundary.points)
    return _finish(plan, field, interior, boundary, h_boundary)


def _between(domain, field: _Field, n: int | None = None) -> np.ndarray:
    """Interior nodes of a line at equal integrals of dx/h, n of them in all if given."""
    pieces = intervals(domain)
    periodic = domain.periods[0] > 0
    found, weights, grids = [], [], []
    for a, b in pieces:
        x = np.linspace(a, b, 4001)[:, None]
        depth = np.zeros(len(x)) if periodic else np.maximum(-domain.distance(x), 0)
        density = 1 / field(x, depth)
        weights.append(np.concatenate([[0], np.cumsum(np.diff(x[:, 0]) * (density[1:] + density[:-1]) / 2)]))
        grids.append(x[:, 0])
    total = np.array([w[-1] for w in weights])
    if n is None:
        counts = np.maximum(np.round(total).astype(int), 1)
    else:
        counts = apportion(total, np.full(len(pieces), 1 if periodic else 2), n + (0 if periodic else len(pieces)), "n_nodes")
    for weight, x, m in zip(weights, grids, counts, strict=True):
        inside = np.arange(0 if periodic else 1, m)
        found.append(np.interp(weight[-1] * inside / m, weight, x))
    return np.concatenate(found)[:, None]


def _line(plan: _Plan, n: int) -> Nodes:
    """n nodes on a line: the ends, and the rest between them."""
    boundary = plan.boundary(plan.field)
    length = plan.domain.volume()
    if n <= len(boundary.points):
        raise ParasolError(f"n_nodes={n} is too small: this line has {len(boundary.points)} ends. Use n_nodes >= 3.")
    mean = float(plan.field(plan.domain.bounds.mean(axis=0)[None]).mean())
    field = replace(plan.field, scale=length / n / mean)
    interior = _between(plan.domain, field, n - len(boundary.points))
    return _finish(plan, field, interior, boundary, field(boundary.points))


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
