"""Scattered nodes of a domain: made, counted, described."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

import numpy as np

from parasol.checks import check_choice, check_positive
from parasol.errors import InputError, ParasolWarning
from parasol.runtime.above import borrowed
from parasol.space.boundary import Boundary, describe
from parasol.space.counting import Draft, Field, Plan, counted, spaced
from parasol.space.geometry.domain import Domain
from parasol.space.geometry.primitives import Box
from parasol.space.interfaces import Interfaces, check_lattice, interfaces_at
from parasol.space.wrap import Depth, in_cells

_METHODS = ("fill", "front", "hexagonal")
_STEPS_OUT = 0.5 ** np.arange(5)  # how far ghosts stand off, in spacings: the first that a wall has room for


@dataclass(frozen=True, eq=False, repr=False)
class Nodes:
    """Nodes of a domain, interior first, then boundary, with normals and parts of the boundary nodes.

    >>> lattice(Box((0, 0), (1, 1)), 5)
    <Nodes 9 interior + 16 boundary in 2-D>
    """

    domain: Domain
    points: np.ndarray  # (n_nodes, dimension)
    n_interior: int
    normals: np.ndarray  # (n_boundary, dimension), outward
    part: np.ndarray  # (n_boundary,) index into domain.part_names: the part whose normal is stored
    on_part: np.ndarray  # (n_boundary, n_parts) bool: all parts a node lies on
    spacing: np.ndarray  # (n_nodes,) local wanted spacing h(x)
    # (n_boundary, n_parts, dimension): at a corner each part has the normal of its own side. None: `normals` for all
    part_normals: np.ndarray = None  # type: ignore[assignment]
    # of a domain with regions, found here if not given: (n_nodes, n_regions) bool, the regions in whose closure a node
    # lies, and the table of the nodes that lie on interfaces
    touches: np.ndarray | None = None
    interfaces: Interfaces | None = None

    def __post_init__(self):
        regions = getattr(self.domain, "divided", None)  # of a file, no more than the outline may be known
        if regions is not None and (self.touches is None or self.interfaces is None):
            touches, table = interfaces_at(regions, np.asarray(self.points), self.n_interior, np.asarray(self.spacing))
            object.__setattr__(self, "touches", touches)
            object.__setattr__(self, "interfaces", table)
        if self.part_normals is None:
            same = np.repeat(np.asarray(self.normals)[..., None, :], np.shape(self.on_part)[-1], axis=-2)
            object.__setattr__(self, "part_normals", same)
        # operators are made for these places: nodes that moved afterwards would silently not fit them
        for name in ("points", "normals", "part_normals"):
            view = np.asarray(getattr(self, name)).view()
            view.setflags(write=False)
            object.__setattr__(self, name, view)

    def _repr_html_(self) -> str:
        return borrowed("view")(self)

    def __repr__(self) -> str:
        return f"<Nodes {self.n_interior} interior + {self.n_boundary} boundary in {self.dimension}-D>"

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
    With `n_nodes` and `n_boundary` both counts are exact: the second fixes h_b, then the grade follows; where the
    boundary nodes are sparser than the inside has to be, the inside gets one spacing of its own.

    `method`: "fill" (any domain), "front" (plane, Fornberg and Flyer) or "hexagonal" (a regular lattice inside;
    body-centred cubic in space). `relax` is the number of repulsion steps: of all nodes for "fill", of those next to
    the boundary otherwise. Interfaces between regions get nodes as the boundary does, where they end first. The same `rng`
    seed gives the same bytes.

    >>> from parasol.space.geometry.primitives import Ball
    >>> nodes = scatter(Ball((0.0, 0.0), 1.0), n_nodes=500, rng=0)
    >>> nodes.n_nodes, bool(nodes.domain.contains(nodes.points).all())
    (500, True)
    """
    _check(domain, n_nodes, spacing, n_boundary, method, grade, relax)
    try:
        rng = np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise InputError(f"rng={rng!r} is no seed. Use a whole number of at least 0 or a NumPy generator.") from None
    shape = spacing if callable(spacing) else (lambda points, h=float(spacing or 1.0): np.full(len(points), h))
    field = Field(shape, grade=grade or 0.0, flat=not callable(spacing), free=spacing is None)
    boundary_rng, interior_rng = rng.spawn(2)
    steps = 20 if relax is None else int(relax)
    depths = Depth(domain, None if domain.divided is None else domain.divided.walls(_about(domain, n_nodes, field)))
    plan = Plan(domain, method, field, n_boundary, steps, boundary_rng, interior_rng, depths)
    draft = spaced(plan) if n_nodes is None else counted(plan, int(n_nodes))
    if draft.boundary.coarse is not None:
        length, count = draft.boundary.coarse
        warnings.warn(
            f"a hole or rim of circumference {length:.2g} gets {count} boundary nodes. "
            "Use more nodes, or a spacing that is smaller there.",
            ParasolWarning,
            stacklevel=2,
        )
    return _finish(plan, draft)


def lattice(box: Domain, shape: tuple[int, ...] | int) -> Nodes:
    """Uniform tensor lattice on a box, faces included: shape[a] nodes along axis a.

    A periodic axis has its shape[a] nodes without the last layer, which is the first one again. Interior first; a node
    on an edge or corner lies on all parts that meet there, with the normal of each. Interfaces between regions have to run
    along the lines of the lattice.

    >>> nodes = lattice(Box((-7.0, -7.0), (7.0, 7.0)), (57, 57))
    >>> nodes.n_interior == 55 * 55, nodes.n_boundary
    (True, 224)
    """
    base = box.unnamed if isinstance(box, Domain) else box
    if not isinstance(base, Box):
        raise InputError(f"a lattice needs a Box, got {type(base).__name__}. Use scatter for other domains.")
    counts = tuple(shape) if np.iterable(shape) else (shape,) * box.dimension
    if len(counts) != box.dimension or not all(_whole(n, 3) for n in counts) or isinstance(shape, float):
        raise InputError(f"shape={shape!r} does not fit: give {box.dimension} whole numbers of at least 3.")
    (lower, upper), periods = box.bounds, box.periods
    ticks = [
        np.linspace(a, b, int(n) + (p > 0))[: int(n)] for a, b, n, p in zip(lower, upper, counts, periods, strict=True)
    ]
    steps = np.array([t[1] - t[0] for t in ticks])
    points = np.stack([t.ravel() for t in np.meshgrid(*ticks, indexing="ij")], axis=1)
    index = np.stack([i.ravel() for i in np.indices([len(t) for t in ticks])], axis=1)
    at_end = ((index == 0) | (index == np.array(counts) - 1)) & (periods == 0)
    outer = at_end.any(axis=1)
    if box.divided is not None:
        check_lattice(box.divided, ticks)
    described = describe(box, points[outer], np.full(outer.sum(), float(steps.min())))
    return _assemble(box, points[~outer], described, np.full(len(points), float(steps.mean())))


def ghosts(nodes: Nodes, which: np.ndarray | None = None) -> np.ndarray:
    """Boundary nodes moved outward by the local spacing along their normals, (m, dimension).

    At a re-entrant corner one side's normal runs along the other side, where the next boundary node is: there a ghost
    moves away from both sides. In a wall thinner than about two spacings it moves less, so that it meets neither the
    ghosts nor the nodes of the wall's other side. `which` selects boundary nodes: an (n_boundary,) mask or indices; all of
    them when left out.
    """
    chosen = slice(None) if which is None else which
    h, points, normals = nodes.spacing[nodes.n_interior :][chosen], nodes.boundary[chosen], nodes.normals[chosen]
    # a wall too thin for any of the steps below is passed: still shorter steps would cost the stencils their digits
    places = points + 0.25 * h[:, None] * normals
    domain, left = nodes.domain, np.arange(len(points))
    for share in _STEPS_OUT:
        step = share * h[left]
        trial = points[left] + step[:, None] * normals[left]
        for _ in range(domain.dimension - 1):
            missing = step - domain.distance(trial)
            rows = np.flatnonzero(missing > 0.4 * step)
            trial[rows] += missing[rows, None] * domain.normal(trial[rows])
        beyond = points[left] + 1.5 * (trial - points[left])
        fits = (domain.distance(trial) >= 0.9 * step) & (domain.distance(beyond) >= 1.4 * step)
        places[left[fits]] = trial[fits]
        left = left[~fits]
    return places


def _whole(value, least: int) -> bool:
    """Whether the value is a whole number, and not too small."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    return float(value).is_integer() and float(value) >= least


def _check(domain, n_nodes, spacing, n_boundary, method, grade, relax) -> None:
    if not isinstance(domain, Domain):
        raise InputError(f"scatter needs a domain, got {domain!r}. Use for example Disc() or Box((0, 0), (1, 1)).")
    domain.check_closed()
    check_choice(method, _METHODS, "method")
    if n_nodes is None and spacing is None:
        raise InputError("scatter needs a count or a spacing: give n_nodes=1000 or spacing=0.05.")
    if n_nodes is not None and spacing is not None and not callable(spacing):
        raise InputError(f"n_nodes={n_nodes} and spacing={spacing} were both given. Leave one of them out.")
    if spacing is not None and not callable(spacing):
        check_positive(spacing, "spacing")
    for value, name in ((n_nodes, "n_nodes"), (n_boundary, "n_boundary")):
        if value is not None and not _whole(value, 1):
            raise InputError(f"{name} must be a positive whole number, got {value!r}.")
    if relax is not None and not _whole(relax, 0):
        raise InputError(f"relax must be a number of steps, 0 or more, got {relax!r}.")
    if n_boundary is not None and not domain.part_names:
        raise InputError(f"n_boundary={n_boundary} was given, but this domain has no boundary. Leave it out.")
    if n_nodes is not None and n_boundary is not None and n_boundary >= n_nodes:
        raise InputError(f"n_nodes={n_nodes} is too small for n_boundary={n_boundary}. It counts all nodes.")
    if method == "front" and (domain.dimension != 2 or domain.periods.any()):
        raise InputError('method="front" works in the plane without periodic axes only. Use method="fill".')
    if grade is not None and not (isinstance(grade, Real) and np.isfinite(float(grade))):
        raise InputError(f"grade must be a finite number, got {grade!r}.")
    if method == "hexagonal" and (callable(spacing) or grade):
        raise InputError('method="hexagonal" has one spacing everywhere. Use method="fill" for a varying one.')
    if grade and len(domain.part_names) == 0:
        raise InputError("grade needs a boundary to count the distance from; this domain has none. Leave grade out.")
    if grade is not None and n_nodes is not None and n_boundary is not None:
        raise InputError("n_nodes and n_boundary together determine the grade. Leave grade or n_boundary out.")


def _about(domain: Domain, n_nodes: int | None, field: Field) -> float:
    """The least spacing there will be in space, roughly."""
    if n_nodes is not None:
        return 0.6 * (domain.volume() / n_nodes) ** (1 / domain.dimension)
    lower, upper = domain.bounds
    shares = np.stack([i.ravel() for i in np.indices((9,) * domain.dimension)], axis=1) / 8
    return float(field(lower + shares * (upper - lower)).min())


def _assemble(domain, interior: np.ndarray, boundary: Boundary, spacing: np.ndarray) -> Nodes:
    points = np.concatenate([interior, boundary.points])
    described = boundary.normals, boundary.part, boundary.on_part
    return Nodes(domain, points, len(interior), *described, spacing, boundary.part_normals)


def _finish(plan: Plan, draft: Draft) -> Nodes:
    """Sort the interior nodes so that neighbours sit close in memory, relax them, note the spacing."""
    h_boundary = plan.boundary_spacing(draft.field, draft.boundary)
    interior = draft.interior[in_cells(draft.interior)]
    interior = plan.relaxed(draft.field, interior, draft.boundary.fixed, h_boundary)
    if draft.boundary.inside is not None:  # the relaxed ones stay off the interfaces, those on them come last
        n = len(draft.boundary.points)
        h = np.concatenate([plan.wanted(draft.field, interior), h_boundary[n:], h_boundary[:n]])
        return _assemble(plan.domain, np.concatenate([interior, draft.boundary.inside]), draft.boundary, h)
    h = plan.wanted(draft.field, interior)
    return _assemble(plan.domain, interior, draft.boundary, np.concatenate([h, h_boundary]))
