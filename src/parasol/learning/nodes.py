"""How many nodes a tolerance needs, and where: by what solves say of their errors, or by a second set of nodes."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import KDTree

from parasol.errors import Exhausted, InputError, ParasolWarning, SolveFailed, UnsuitableNodes
from parasol.learning.comparing import Difference, compare, require
from parasol.learning.refining import PROBE, SLOW, Level, Refinement, Spacing, has_estimate, no_use
from parasol.learning.report import Comparison
from parasol.learning.solves import Limits, Stage
from parasol.pde.by_elements import elements_for, finer_elements, wants_elements
from parasol.pde.discretize import discretize, discretize_with
from parasol.pde.model import Model
from parasol.pde.placing import DEFAULT_N_NODES
from parasol.pde.problem import Problem, Settings
from parasol.pde.rough import rough_places
from parasol.space.nodes import Nodes, scatter
from parasol.space.spacing import feature_spacing

# the difference of n and 2n nodes, times these, estimates the error of n nodes and that of 2n: right for errors that
# fall by a third, too large for the default schemes, whose errors fall by four in the plane
_COARSE, _FINE = 1.5, 0.5
_SLOWEST = 0.75  # ratio of successive differences from which the error of the finer nodes is still extrapolated
_OTHER = 1.5  # a second finer set for rough problems has so many times the nodes of the first
_ELEMENTS = 3.0  # times the nodes that elements are compared with: at singular points their errors fall by a third less
_MOST_DOUBLINGS = 4
_WORTH = 0.6  # nodes moved to where the indicator wants them are taken if they lower the error to this part
_SHARE = 0.5  # of the seconds allowed, for the choice of nodes


@dataclass(frozen=True, eq=False)
class Discretised:
    """A model, the estimate of its relative discretisation error (None: not known), and the comparisons that led to it."""

    model: Any
    error: float | None
    history: tuple[Comparison, ...] = ()
    refined: bool = False  # nodes follow an indicator of the error
    seconds: float = 0.0  # of one full solve
    short: bool = False  # the seconds allowed ended the comparison
    limit: str = ""  # in one line, why more nodes do not help, if they do not

    @property
    def n_nodes(self) -> int | None:
        """Nodes of the model; None of a solver of one's own that has none."""
        return getattr(self.model, "n_nodes", None)


def choose_nodes(
    problem: Problem, aim: float, *, limits: Limits, n_nodes: int | None = None, rng: int = 0, stage: Stage
) -> Discretised:
    """A discretisation whose estimated relative error is at most `aim`, with as few nodes as that takes.

    Steady problems are solved at the middle and the corners of the box and a few more parameters, and each solve says
    how far it is from the equation (`pde.discretisation`). Until the largest error is small enough more nodes are taken,
    where the error comes from; where that does not help it ends at once, with a warning that says so (`refining`).

    Problems in time, and functions known at the nodes alone, are solved with n and 2n nodes, and n is doubled
    until these agree. Where the problem is known to be rough, errors fall slowly and change with the place of the nodes,
    and two solutions may agree by chance, or the finer one be the worse. There each is compared with two others.

    With `n_nodes` nothing is chosen, only estimated. Where seconds are limited half of them go into the choice; then it
    ends with the best so far, whose error may not be known.
    """
    chosen: list[Discretised] = []
    try:
        chosen.extend(_choices(problem, aim, limits, n_nodes, rng, stage))
    except Exhausted:  # after the first: it is made whatever the time
        return replace(chosen[-1], short=True)
    if chosen[-1].limit:
        warnings.warn(chosen[-1].limit, ParasolWarning, stacklevel=2)
    return chosen[-1]


def _choices(
    problem: Problem, aim: float, limits: Limits, n_nodes: int | None, rng: int, stage: Stage
) -> Iterator[Discretised]:
    """Better and better discretisations, the last one good enough; Exhausted where the time does not suffice for the next."""
    left, began = _left_of(limits), limits.spent
    settings = problem.settings.get("default", Settings())
    first = DEFAULT_N_NODES[problem.domain.dimension] // 2 if settings.n_nodes is None else settings.n_nodes
    settings = replace(settings, n_nodes=n_nodes or first)
    elements = wants_elements(problem, settings, rng=rng)

    def build(count: int, spacing: Spacing | None = None) -> Model:
        return _build(problem, settings, count, spacing, rng, elements=elements)

    model = build(n_nodes or first)
    yield Discretised(model, None)
    require(left, PROBE * (limits.spent - began))
    rough, movable = bool(rough_places(problem, model.nodes, elements=elements)), settings.method == "fill"
    if not has_estimate(model):
        yield from _compared(
            model, build, aim, limits=limits, only=n_nodes is not None, rng=rng, rough=rough, stage=stage
        )
        return
    history: dict[tuple[int, bool], Comparison] = {}
    aim = aim if n_nodes is None else np.inf
    for level, limit in Refinement(build, aim, limits, left, movable, rough, rng, stage).levels(model):
        moved = level.spacing is not None
        history[level.n_nodes, moved] = Comparison(level.n_nodes, level.error, moved)
        yield _of(level, tuple(history.values()), limit)


def _compared(
    model: Model,
    make: Callable[[int, Spacing | None], Model],
    aim: float,
    *,
    limits: Limits,
    only: bool,
    rng: int,
    rough: bool,
    stage: Stage,
) -> Iterator[Discretised]:
    """Better and better discretisations, from solutions with n and 2n nodes; `only` the error of the first if so asked."""
    left, problem = _left_of(limits), model.problem
    settings = problem.settings.get("default", Settings())
    n, spacing, history, before, began = model.n_nodes, None, [], None, limits.spent
    levels: list[Level] = []
    models: dict[tuple[int, bool], Model] = {(n, False): model}

    def build(count: int) -> Model:
        key = (count, spacing is not None)
        if key not in models:
            models[key] = make(count, spacing)
        return models[key]

    for level in range(_MOST_DOUBLINGS + 1):
        require(left, 2 * (limits.spent - began))
        began = limits.spent
        stage(f"comparing {n} nodes with {2 * n}")
        coarse, fine = build(n), build(2 * n)
        require(left, limits.spent - began if rough else 0.0)
        other = _build(problem, settings, round(_OTHER * 2 * n), spacing, rng + 1) if rough else None
        gap = _difference(coarse, fine, other, rng=rng, left=left)
        error = max(_COARSE, 1 / (1 - _ratio(gap, before))) * gap.error
        history.append(Comparison(coarse.n_nodes, error, spacing is not None))
        yield Discretised(coarse, error, tuple(history), spacing is not None, gap.seconds, gap.short)
        if only or error <= aim:
            return
        if level == 0 and settings.method == "fill" and limits.left > 3 * (limits.spent - began):
            require(left, limits.spent - began)
            stage(f"moving {n} nodes to where they are needed")
            wanted = indicated_spacing(coarse, gap.local)
            moved = make(n, wanted)
            again = _difference(moved, fine, other, rng=rng, left=left)
            history.append(Comparison(moved.n_nodes, _COARSE * again.error, True))
            if again.error <= _WORTH * gap.error:
                spacing, gap, coarse, error = wanted, again, moved, _COARSE * again.error
                models[n, True] = moved
                yield Discretised(moved, error, tuple(history), True, again.seconds, again.short)
                if error <= aim:
                    return
        levels.append(Level(coarse, gap, spacing, error))
        if len(levels) > 2 and all(a.gap.error < SLOW * b.gap.error for a, b in itertools.pairwise(levels[-3:])):
            limit = no_use(levels[-1], levels, aim)
            yield Discretised(coarse, error, tuple(history), spacing is not None, gap.seconds, gap.short, limit)
            return
        last = level == _MOST_DOUBLINGS or limits.left < 20 * gap.seconds
        # the next comparison takes about three times as long: half of the time is for what is learned then
        last |= limits.left - 3 * (limits.spent - began) < (limits.seconds or 0.0) / 2
        # at best a rough problem's error falls like the spacing: no use to double if that is not enough
        doublings = _MOST_DOUBLINGS + 1 - level
        last |= rough and _COARSE * gap.error * 2 ** (-doublings / problem.domain.dimension) > aim
        if _FINE * gap.error <= aim or last:
            fine = build(2 * n)
            if rough:
                error = _COARSE * _difference(fine, build(n), other, rng=rng, left=left).error
            else:
                with suppress(UnsuitableNodes, SolveFailed):  # half as many nodes may be too few
                    before = before or _difference(build(n // 2), build(n), rng=rng, left=left)
                ratio = _ratio(gap, before)
                error = max(_FINE, ratio / (1 - ratio)) * gap.error
            if error <= aim or last:
                history.append(Comparison(fine.n_nodes, error, spacing is not None))
                yield Discretised(fine, error, tuple(history), spacing is not None, 2.5 * gap.seconds, gap.short)
                return
        n, before = 2 * n, None if rough else gap


def _left_of(limits: Limits) -> Callable[[], float]:
    """Seconds left for the choice of nodes."""
    return lambda: limits.left - (1 - _SHARE) * (limits.seconds or 0.0)


def _difference(
    model: Model,
    *others: Model | None,
    rng: int,
    mus: Sequence[Any] | None = None,
    left: Callable[[], float] = lambda: np.inf,
) -> Difference:
    """The difference to another model, or the geometric mean of the differences to two.

    If all errors are multiples a, b, c of one function, then |a − b||a − c| = (|a − b|² + |a − c|² − |b − c|²) / 2,
    which is a² on the average where b and c have either sign, however large they are.
    """
    gaps = [compare(model, other, rng=rng, mus=mus, left=left) for other in others if other is not None]
    mean = float(np.exp(np.mean([np.log(max(gap.error, 1e-300)) for gap in gaps])))
    return replace(gaps[0], errors=gaps[0].errors * (mean / max(gaps[0].error, 1e-300)))


def _ratio(gap: Difference, before: Difference | None) -> float:
    """The factor q by which differences fall with each doubling: the last one then leaves the error q / (1 − q) of it."""
    return 0.0 if before is None else min(gap.error / max(before.error, 1e-300), _SLOWEST)


def estimated(model: Model, *, limits: Limits, rng: int = 0) -> Discretised:
    """A given model with an estimate of its discretisation error, if half of the seconds allowed suffice for one."""
    chosen, left = Discretised(model, None), _left_of(limits)
    try:
        require(left, 0.0)
        if not has_estimate(model):
            gap = estimate(model, rng=rng, left=left)
            return Discretised(model, gap.error, seconds=gap.seconds, short=gap.short)
        settings, rough = _settings_of(model), bool(rough_places(model.problem, model.nodes))

        def build(count: int, spacing: Spacing | None) -> Model:
            return _build(model.problem, settings, count, spacing, rng)

        levels = Refinement(build, np.inf, limits, left, movable=False, rough=rough, rng=rng, stage=lambda text: None)
        for level, _ in levels.levels(model):
            chosen = _of(level)
    except Exhausted:
        return replace(chosen, short=True)
    return chosen


def _of(level: Level, history: tuple[Comparison, ...] = (), limit: str = "") -> Discretised:
    gap = level.gap
    return Discretised(level.model, level.error, history, level.spacing is not None, gap.seconds, gap.short, limit)


def _settings_of(model: Model) -> Settings:
    """How to make a model like this one on other nodes."""
    settings, scheme = model.problem.settings.get("default", Settings()), model.scheme
    chosen = replace(settings, kernel=scheme.kernel, degree=scheme.degree, stencil_size=scheme.stencil_size)
    return replace(chosen, step=model.step, integrator=model.integrator)


def estimate(
    model: Model,
    *,
    rng: int = 0,
    mus: Sequence[Any] | None = None,
    refined: bool = False,
    left: Callable[[], float] = lambda: np.inf,
) -> Difference:
    """The discretisation error of a given model, from one with twice as many nodes of the program's choice.

    If the nodes of the model are `refined`, the others are finer at the same places.
    """
    chosen = _settings_of(model)
    spacing = _spacing_of(model.nodes) if refined else None

    def finer(times: float, seed: int) -> Model:
        if model.elements is not None:
            return finer_elements(model, round(_ELEMENTS * model.n_nodes), rng=seed)
        return _build(model.problem, chosen, round(times * model.n_nodes), spacing, seed)

    rough = model.elements is None and rough_places(model.problem, model.nodes)
    other = finer(2 * _OTHER, rng + 1) if rough else None
    gap = _difference(model, finer(2, rng), other, rng=rng, mus=mus, left=left)
    return replace(gap, errors=_COARSE * gap.errors)


def discretisation_error(model: Model, mu: ArrayLike | Mapping[str, Any] | None = None, *, rng: int = 0) -> float:
    """How far `model.solve(mu)` is from the solution of the equation: an estimate of its relative error, at the nodes.

    The problem is solved again with twice as many nodes, of the program's choice. The estimate has the size of the
    error, within a factor of about 3. It is what `learn` and `check` take, at one parameter.

    >>> import sympy
    >>> import parasol as ps
    >>> (x,) = ps.coordinates("x")
    >>> u = ps.unknown("u", x)
    >>> line = ps.Problem(ps.Box(0.0, 1.0), ps.Eq(-u.diff(x, 2), sympy.exp(x)), ps.Dirichlet(-sympy.exp(x)))
    >>> model = ps.discretize(line, ps.scatter(line.domain, n_nodes=20))
    >>> solution, exact = model.solve().values, -np.exp(model.nodes.points[:, 0])
    >>> true = np.linalg.norm(solution - exact) / np.linalg.norm(exact)
    >>> bool(1 / 3 < discretisation_error(model) / true < 3)
    True
    """
    if not isinstance(model, Model):
        raise InputError(f"model is a {type(model).__name__}. Pass what ps.discretize returns.")
    if model.problem.parameters.functions:
        raise InputError("a function parameter has values at these nodes only, so that no other nodes can be compared.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParasolWarning)  # what is said of other nodes was said of the model's own
        return estimate(model, rng=rng, mus=[mu]).error


def indicated_spacing(model: Model, local: np.ndarray) -> Spacing:
    """A relative spacing that is finer where the error is: h ∝ h₀ (error)^(−1/4), between 0.4 and 1.

    The fourth root is what equal errors everywhere ask of a scheme of order four.
    """
    nodes = model.nodes
    tree = KDTree(nodes.points)
    k = min(12, nodes.n_nodes)
    smooth = np.sqrt(np.mean(local[tree.query(nodes.points, k)[1]] ** 2, axis=1))
    typical = float(np.median(smooth)) or 1.0
    factor = np.clip((np.maximum(smooth, 1e-12 * typical) / typical) ** -0.25, 0.4, 1.0)
    base = feature_spacing(nodes.domain) if nodes.dimension == 2 else None

    def spacing(points: np.ndarray) -> np.ndarray:
        here = np.mean(factor[tree.query(points, k)[1].reshape(len(points), k)], axis=1)
        return here if base is None else here * base(points)

    return spacing


def _spacing_of(nodes: Nodes) -> Spacing:
    """The relative spacing that given nodes have: the distance of neighbours, averaged over a few of them."""
    tree = KDTree(nodes.points)
    near = tree.query(nodes.points, 2)[0][:, 1]
    k = min(12, nodes.n_nodes)
    return lambda points: np.mean(near[tree.query(points, k)[1].reshape(len(points), k)], axis=1)


def _build(
    problem: Problem, settings: Settings, n_nodes: int, spacing: Spacing | None, rng: int, *, elements: bool = False
) -> Model:
    chosen = replace(settings, n_nodes=n_nodes, n_boundary=None)
    if elements:
        return elements_for(problem, chosen, spacing=spacing, rng=rng)
    # waves have no friction: nodes that are finer at the walls give modes that grow, even ones do hardly
    even = problem.time_order == 2 and settings.method == "fill"
    if spacing is None and not even:
        return discretize_with(problem, chosen, rng=rng)
    return discretize_on(problem, scatter(problem.domain, n_nodes=n_nodes, spacing=spacing, rng=rng), chosen)


def discretize_on(problem: Problem, nodes: Nodes, settings: Settings) -> Model:
    """The problem on given nodes with the settings' scheme and steps in time."""
    names = ("kernel", "degree", "stencil_size", "neumann", "step", "integrator")
    return discretize(problem, nodes, **{name: getattr(settings, name) for name in names})
