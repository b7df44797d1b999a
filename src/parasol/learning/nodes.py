"""How many nodes a tolerance needs, and where: a coarse and a fine solution compared at a few parameters."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import KDTree

from parasol.errors import Exhausted, FileError, InputError, ParasolWarning, SolveFailed, UnsuitableNodes
from parasol.learning.report import Comparison
from parasol.learning.solves import Limits, Stage, used_up
from parasol.pde.discretize import DEFAULT_N_NODES, discretize, discretize_with
from parasol.pde.model import Model
from parasol.pde.problem import Problem, Settings
from parasol.pde.rough import rough_places
from parasol.space.neighbours import Cloud
from parasol.space.nodes import Nodes, scatter
from parasol.space.operators import differentiate
from parasol.space.spacing import feature_spacing
from parasol.space.stencils import Scheme

Spacing = Callable[[np.ndarray], np.ndarray]  # the relative one (n,) wanted at points (n, dimension)

# the difference of n and 2n nodes, times these, estimates the error of n nodes and that of 2n: right for errors that
# fall by a third, too large for the default schemes, whose errors fall by four in the plane
_COARSE, _FINE = 1.5, 0.5
_SLOWEST = 0.75  # ratio of successive differences from which the error of the finer nodes is still extrapolated
_OTHER = 1.5  # a second finer set for rough problems has so many times the nodes of the first
_MOST_DOUBLINGS = 4
_SLOW, _VERY_SLOW = 1.0, 5.0  # seconds of a solve: fewer parameters are compared
_N_RANDOM, _N_STEEPEST = 8, 2  # random parameters that are looked at, and how many of them are compared
_FINER_STEPS = 3e-6  # tolerance in time of the fine solution where steps adapt
_WORTH = 0.6  # nodes moved to where the indicator wants them are taken if they lower the error to this part
_SHARE = 0.5  # of the seconds allowed, for the choice of nodes
_COST = 3.0  # twice the nodes take about so many times as long, and finer steps in time twice that


@dataclass(frozen=True, eq=False)
class Discretised:
    """A model, the estimate of its relative discretisation error (None: not known), and the comparisons that led to it."""

    model: Any
    error: float | None
    history: tuple[Comparison, ...] = ()
    refined: bool = False  # nodes follow an indicator of the error
    seconds: float = 0.0  # of one full solve
    short: bool = False  # the seconds allowed ended the comparison

    @property
    def n_nodes(self) -> int | None:
        """Nodes of the model; None of a solver of one's own that has none."""
        return getattr(self.model, "n_nodes", None)


@dataclass(frozen=True, eq=False)
class Difference:
    """Relative differences of two discretisations, (n_parameters,), and where on the coarse nodes they are."""

    errors: np.ndarray
    local: np.ndarray  # (n_nodes,) root mean square over parameters, times and unknowns
    seconds: float  # of one coarse solve
    short: bool = False  # no time was left for more parameters

    @property
    def error(self) -> float:
        """The largest one."""
        return float(np.max(self.errors))


def choose_nodes(
    problem: Problem, aim: float, *, limits: Limits, n_nodes: int | None = None, rng: int = 0, stage: Stage
) -> Discretised:
    """A discretisation whose estimated relative error is at most `aim`, with as few nodes as that takes.

    Solutions with n and 2n nodes are compared at the middle and the corners of the box, n is doubled until the estimate
    is small enough. Where the first count is not enough, nodes are also moved to where the two solutions differ, and
    stay there if that pays. With `n_nodes` nothing is chosen, only estimated.

    Where the problem is known to be rough, errors fall slowly and change with the place of the nodes, and two solutions
    may agree by chance, or the finer one be the worse. There each is compared with two others.

    Where seconds are limited half of them go into the choice; then it ends with the best so far, whose error may not be
    known.
    """
    chosen: list[Discretised] = []
    try:
        chosen.extend(_choices(problem, aim, limits, n_nodes, rng, stage))
    except Exhausted:  # after the first: it is made whatever the time
        return replace(chosen[-1], short=True)
    return chosen[-1]


def _choices(
    problem: Problem, aim: float, limits: Limits, n_nodes: int | None, rng: int, stage: Stage
) -> Iterator[Discretised]:
    """Better and better discretisations, the last one good enough; Exhausted where the time does not suffice for the next."""
    left = _left_of(limits)
    settings = problem.settings.get("default", Settings())
    first = DEFAULT_N_NODES[problem.domain.dimension] // 2 if settings.n_nodes is None else settings.n_nodes
    n, spacing, history = n_nodes or first, None, []
    models: dict[tuple[int, bool], Model] = {}

    def build(count: int) -> Model:
        key = (count, spacing is not None)
        if key not in models:
            models[key] = _build(problem, settings, count, spacing, rng)
        return models[key]

    began = limits.spent
    rough, before = bool(rough_places(problem, build(n).nodes)), None
    yield Discretised(build(n), None)
    for level in range(_MOST_DOUBLINGS + 1):
        _require(left, 2 * (limits.spent - began))
        began = limits.spent
        stage(f"comparing {n} nodes with {2 * n}")
        coarse, fine = build(n), build(2 * n)
        _require(left, limits.spent - began if rough else 0.0)
        other = _build(problem, settings, round(_OTHER * 2 * n), spacing, rng + 1) if rough else None
        gap = _difference(coarse, fine, other, rng=rng, left=left)
        error = max(_COARSE, 1 / (1 - _ratio(gap, before))) * gap.error
        history.append(Comparison(coarse.n_nodes, error, spacing is not None))
        yield Discretised(coarse, error, tuple(history), spacing is not None, gap.seconds, gap.short)
        if n_nodes is not None or error <= aim:
            return
        if level == 0 and settings.method == "fill" and limits.left > 3 * (limits.spent - began):
            _require(left, limits.spent - began)
            stage(f"moving {n} nodes to where they are needed")
            wanted = indicated_spacing(coarse, gap.local)
            moved = _build(problem, settings, n, wanted, rng)
            again = _difference(moved, fine, other, rng=rng, left=left)
            history.append(Comparison(moved.n_nodes, _COARSE * again.error, True))
            if again.error <= _WORTH * gap.error:
                spacing, gap = wanted, again
                models[n, True] = moved
                yield Discretised(moved, _COARSE * again.error, tuple(history), True, again.seconds, again.short)
                if _COARSE * again.error <= aim:
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


def _require(left: Callable[[], float], seconds: float) -> None:
    if left() < seconds:
        raise used_up("seconds")


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
    try:
        gap = estimate(model, rng=rng, left=_left_of(limits))
    except Exhausted:
        return Discretised(model, None, short=True)
    return Discretised(model, gap.error, seconds=gap.seconds, short=gap.short)


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
    settings = model.problem.settings.get("default", Settings())
    scheme = model.scheme
    chosen = replace(settings, kernel=scheme.kernel, degree=scheme.degree, stencil_size=scheme.stencil_size)
    chosen = replace(chosen, step=model.step, integrator=model.integrator)

    spacing = _spacing_of(model.nodes) if refined else None

    def finer(times: float, seed: int) -> Model:
        return _build(model.problem, chosen, round(times * model.n_nodes), spacing, seed)

    other = finer(2 * _OTHER, rng + 1) if rough_places(model.problem, model.nodes) else None
    gap = _difference(model, finer(2, rng), other, rng=rng, mus=mus, left=left)
    return replace(gap, errors=_COARSE * gap.errors)


def discretisation_error(model: Model, mu: ArrayLike | Mapping[str, Any] | None = None, *, rng: int = 0) -> float:
    """How far `model.solve(mu)` is from the solution of the equation: an estimate of its relative l2 error.

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


def compare(
    coarse: Model,
    fine: Model,
    *,
    rng: int = 0,
    mus: Sequence[Any] | None = None,
    left: Callable[[], float] = lambda: np.inf,
) -> Difference:
    """Solve with both at a few parameters; values of the fine one, with finer steps in time, taken at the coarse nodes.

    The parameters are `mus` where given, else those of `probes`. It ends when no seconds are `left`, and raises Exhausted
    if they do not suffice for one parameter.
    """
    zero = (0,) * coarse.nodes.dimension
    cloud = Cloud(fine.nodes.points, fine.nodes.domain)
    weights = differentiate(cloud, coarse.nodes.points, [zero], fine.scheme)[zero]
    options: dict[str, Any] = {}
    if coarse.problem.time is not None:
        steps = {"step": fine.step / 2, "integrator": fine.integrator} if fine.step else {"tolerance": _FINER_STEPS}
        options = {**steps, "times": coarse.problem.times}
    errors, local = [], np.zeros(coarse.n_nodes)
    pairs = list(zip(mus or probes(coarse, rng), mus or probes(fine, rng), strict=True))
    cost = _COST * (1 if coarse.problem.time is None else 2)
    until = left() / 2  # the first half is for a look with the coarse model, which says where to compare

    def more(each: float) -> bool:
        _require(left, cost * each)
        return not left() < until

    looked, seconds, reason = _looked_at(coarse, [mu for mu, _ in pairs], more)
    n_fields, began = len(coarse.problem.names), left()
    short = began < until and len(looked) < _enough(seconds, 9, 5, len(pairs))
    for done, at in enumerate(_to_compare(coarse, looked, seconds, given=mus is not None)):
        needed = (began - left()) / done if done else cost * seconds
        if left() < needed and not errors:
            raise used_up("seconds")
        if left() < needed:
            short = True
            break
        try:
            better = fine.solve(pairs[at][1], extrapolate=True, **options).values
        except SolveFailed as error:
            reason = str(error)
            continue
        coarse_values = looked[at].reshape(-1, n_fields, coarse.n_nodes)
        fine_values = (weights @ better.reshape(-1, fine.n_nodes).T).T.reshape(coarse_values.shape)
        size = np.linalg.norm(fine_values) or 1.0
        errors.append(np.linalg.norm(coarse_values - fine_values) / size)
        local += np.sum((coarse_values - fine_values) ** 2, axis=(0, 1)) / size**2
        if len(errors) >= _enough(seconds, 3, 2, len(pairs)):
            break
    if not errors:
        raise SolveFailed(f"no solution was found at any of {len(pairs)} parameters: {reason}")
    return Difference(np.array(errors), np.sqrt(local / len(errors)), seconds, short)


def _looked_at(
    model: Model, mus: Sequence[Any], more: Callable[[float], bool] = lambda each: True
) -> tuple[dict[int, np.ndarray], float, str]:
    """Solutions by number, of fewer parameters where solves are slow; seconds of one; why there are none elsewhere.

    After the first one it goes on only if there is time for `more` of so many seconds each.
    """
    solved, seconds, reason = {}, 0.0, ""
    for at, mu in enumerate(mus):
        if len(solved) >= _enough(seconds, 9, 5, len(mus)) or (solved and not more(seconds)):
            break
        try:
            start = time.perf_counter()
            solved[at] = model.solve(mu, extrapolate=True).values
            spent = time.perf_counter() - start
            seconds = min(seconds, spent) if len(solved) > 1 else spent
        except SolveFailed as error:  # no solution there, or none that is found
            reason = str(error)
    return solved, seconds, reason


def _enough(seconds: float, slow: int, very_slow: int, n: int) -> int:
    """How many of n parameters are worth solves of so many seconds."""
    return n if seconds <= _SLOW else slow if seconds <= _VERY_SLOW else very_slow


def _to_compare(model: Model, looked: dict[int, np.ndarray], seconds: float, *, given: bool) -> list[int]:
    """Which solutions are compared: all, of the random ones the steepest; where solves are slow, the steepest first."""
    distances, nearest = KDTree(model.nodes.points).query(model.nodes.points, 2)
    slopes = {}
    for at, values in looked.items():
        fields = values.reshape(-1, model.n_nodes)
        slope = (fields - fields[:, nearest[:, 1]]) / distances[:, 1]
        slopes[at] = np.linalg.norm(slope) / (np.linalg.norm(fields) or 1.0)
    steep = sorted(looked, key=lambda at: -slopes[at])
    if seconds > _SLOW:
        return steep
    n = len(model.parameters.scalars)
    first = 1 + len(box_corners(n))
    random = range(first, first + _N_RANDOM) if n and not given else range(0)
    flat = [at for at in steep if at in random][_N_STEEPEST:]
    return [at for at in looked if at not in flat]


def probes(model: Model, rng: int = 0) -> np.ndarray:
    """The middle of the box, corners (eight at most) and random ones, with drawn functions: the same whatever the nodes.

    Each parameter is low at half of the corners and high at the others.
    """
    n = len(model.parameters.scalars)
    middle = np.full((3 if model.parameters.functions else 1, n), 0.5)
    random = np.random.default_rng([rng, 13]).random((_N_RANDOM if n else 0, n))
    units = np.concatenate([middle[:1], box_corners(n), random, middle[1:]])
    out = model.sample(len(units), rng)
    out[:, :n] = model.parameters.from_unit(units)
    return out


def box_corners(n: int) -> np.ndarray:
    """Corners of the unit cube, (8, n) at most: all of them up to three dimensions, then an orthogonal array.

    >>> box_corners(2).tolist()
    [[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    >>> four = box_corners(4)  # whatever three parameters are chosen, each combination of their ends is there
    >>> [len(np.unique(np.delete(four, j, axis=1), axis=0)) for j in range(4)]
    [8, 8, 8, 8]
    """
    # column j is the parity of those bits of the row's number that a mask picks; beyond seven, columns repeat reversed
    masks = [(1, 2, 4, 7, 3, 5, 6)[j % 7] for j in range(n)]
    count = 2 ** min(n, 3)
    order = [
        at for half in range(count // 2) for at in (half, count - 1 - half)
    ]  # opposite corners one after the other
    rows = [[((row & mask).bit_count() + j // 7) % 2 for j, mask in enumerate(masks)] for row in order]
    return np.array(rows, dtype=float).reshape(len(rows), n)


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


def _build(problem: Problem, settings: Settings, n_nodes: int, spacing: Spacing | None, rng: int) -> Model:
    chosen = replace(settings, n_nodes=n_nodes, n_boundary=None)
    # waves have no friction: nodes that are finer at the walls give modes that grow, even ones do hardly
    even = problem.time_order == 2 and settings.method == "fill"
    if spacing is None and not even:
        return discretize_with(problem, chosen, rng=rng)
    return discretize_on(problem, scatter(problem.domain, n_nodes=n_nodes, spacing=spacing, rng=rng), chosen)


def discretize_on(problem: Problem, nodes: Nodes, settings: Settings) -> Model:
    """The problem on given nodes with the settings' scheme and steps in time."""
    names = ("kernel", "degree", "stencil_size", "neumann", "step", "integrator")
    return discretize(problem, nodes, **{name: getattr(settings, name) for name in names})


# ---- the same model again -------------------------------------------------------------------------------------------
def rebuilding(model: Model) -> dict[str, Any]:
    """What a file must hold, besides points and stencils, to make the same model again: numbers, texts and lists."""
    nodes = model.nodes
    ghosts = model.n_unknowns > len(model.problem.names) * model.n_nodes
    boundary = {"normals": nodes.normals, "part": nodes.part, "on_part": nodes.on_part}
    # only at corners does a part have another normal than the node: (node, part, normal)
    node, part = np.nonzero(nodes.on_part & np.any(nodes.part_normals != nodes.normals[:, None], axis=2))
    boundary |= {"corners": np.column_stack([node, part, nodes.part_normals[node, part]])}
    boundary |= {"spacing": nodes.spacing[nodes.n_interior :]}
    steps = {"step": model.step, "integrator": model.integrator}
    lists = {name: np.asarray(values).tolist() for name, values in boundary.items()}
    return {"neumann": "ghosts" if ghosts else "one-sided", **steps, "boundary": lists}


def rebuilt(problem: Problem, points: np.ndarray, n_interior: int, scheme: Scheme, held: dict[str, Any]) -> Model:
    """The model that `rebuilding` describes, for the same problem."""
    n, given = len(points) - n_interior, held["boundary"]
    try:
        normals = np.array(given["normals"], dtype=float).reshape(n, points.shape[1])
        part = np.array(given["part"], dtype=int).reshape(n)
        on_part = np.array(given["on_part"], dtype=bool).reshape(n, len(problem.domain.part_names))
        at_boundary = np.array(given["spacing"], dtype=float).reshape(n)
        corners = np.array(given.get("corners", ()), dtype=float).reshape(-1, 2 + points.shape[1])
        part_normals = np.repeat(normals[:, None], on_part.shape[1], axis=1)
        part_normals[corners[:, 0].astype(int), corners[:, 1].astype(int)] = corners[:, 2:]
    except (KeyError, TypeError, ValueError, IndexError):
        raise FileError(
            "the file's account of its boundary nodes does not fit the problem: is it another one?"
        ) from None
    # ghosts depend on the spacing at the boundary; inside it has done its work
    inside = np.full(n_interior, float(np.mean(at_boundary)) if n else 1.0)
    spacing = np.concatenate([inside, at_boundary])
    nodes = Nodes(problem.domain, np.asarray(points), n_interior, normals, part, on_part, spacing, part_normals)
    chosen = {"kernel": scheme.kernel, "degree": scheme.degree, "stencil_size": scheme.stencil_size}
    steps = {"neumann": held["neumann"], "step": held["step"], "integrator": held["integrator"]}
    return discretize_on(problem, nodes, Settings(**chosen, **steps))
