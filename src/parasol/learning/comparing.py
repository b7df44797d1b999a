"""A coarse and a fine solution compared at a few parameters: middle, corners and random ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from parasol.errors import SolveFailed
from parasol.learning.solves import used_up
from parasol.pde.discretisation import error_of, located_error
from parasol.pde.model import Model
from parasol.pde.steady import l2_root

_SLOW, _VERY_SLOW = 1.0, 5.0  # seconds of a solve: fewer parameters are compared
_N_RANDOM, _N_STEEPEST = 8, 2  # random parameters that are looked at, and how many of them are compared
_N_SEARCHED = 24  # parameters in the box, and as many around the worst of them, from so far away to so many times less
_WIDEST, _NARROWER = 0.4, 0.2
_FINER_STEPS = 3e-6  # tolerance in time of the fine solution where steps adapt
_COST = 3.0  # twice the nodes take about so many times as long, and finer steps in time twice that


@dataclass(frozen=True, eq=False)
class Difference:
    """Relative differences of two discretisations, or errors of one, (n_parameters,), and where on the nodes they are."""

    errors: np.ndarray
    local: np.ndarray  # (n_nodes,) root mean square over parameters, times and unknowns
    seconds: float  # of one coarse solve
    short: bool = False  # no time was left for more parameters
    solved: dict[int, np.ndarray] = field(default_factory=dict)  # of errors of one: values, by number of the parameter

    @property
    def error(self) -> float:
        """The largest one."""
        return float(np.max(self.errors))


def require(left: Callable[[], float], seconds: float) -> None:
    """Refuse to go on where fewer seconds are left."""
    if left() < seconds:
        raise used_up("seconds")


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
    weights = fine.weights_at(coarse.nodes.points)
    options: dict[str, Any] = {}
    if coarse.problem.time is not None:
        steps = {"step": fine.step / 2, "integrator": fine.integrator} if fine.step else {"tolerance": _FINER_STEPS}
        options = {**steps, "times": coarse.problem.times}
    errors, local = [], np.zeros(coarse.n_nodes)
    root = l2_root(coarse)
    pairs = [(mu, mu) for mu in mus] if mus else _probed_by_both(coarse, fine, rng)
    cost = _COST * (1 if coarse.problem.time is None else 2)
    until = left() / 2  # the first half is for a look with the coarse model, which says where to compare

    def more(each: float) -> bool:
        require(left, cost * each)
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
        if fine.jumps:
            mu = fine.inputs.check_one(pairs[at][1], extrapolate=True)
            values = fine.interpolated(better, coarse.nodes.points, weights, mu, coarse.first_regions)
        else:
            values = (weights @ better.reshape(-1, fine.n_nodes).T).T
        fine_values = values.reshape(coarse_values.shape)
        size = np.linalg.norm(root * fine_values) or 1.0
        errors.append(np.linalg.norm(root * (coarse_values - fine_values)) / size)
        local += np.sum((root * (coarse_values - fine_values)) ** 2, axis=(0, 1)) / size**2
        if len(errors) >= _enough(seconds, 3, 2, len(pairs)):
            break
    if not errors:
        raise SolveFailed(f"no solution was found at any of {len(pairs)} parameters: {reason}")
    return Difference(np.array(errors), np.sqrt(local / len(errors)), seconds, short)


def own_errors(
    model: Model,
    *,
    rng: int = 0,
    left: Callable[[], float] = lambda: np.inf,
    only: Sequence[int] | None = None,
    more: Sequence[np.ndarray] = (),
) -> Difference:
    """What each solve at the `probes`, or `only` those of these numbers, says of its own error, and where that comes from.

    Some `more` parameters come first. After the first parameter it ends when no seconds are `left`.
    """
    errors, shares, reason, mus = [], np.zeros(model.n_nodes), "", [*more, *probes(model, rng)]
    each, seconds, solved = np.inf, np.inf, {}
    for at in range(len(mus)) if only is None else only:
        if errors and (len(errors) >= _enough(seconds, 9, 5, len(mus)) or left() < each):
            break
        start = time.perf_counter()
        try:
            solution = model.solve(mus[at], extrapolate=True)
            seconds = min(seconds, time.perf_counter() - start)
            estimate = located_error(model, solution.unknowns, solution.mu)  # type: ignore[union-attr]
        except SolveFailed as error:
            reason = str(error)
            continue
        each = min(each, time.perf_counter() - start)
        if estimate is not None and np.isfinite(estimate.error):
            errors.append(estimate.error)
            shares += estimate.shares
            solved[at] = solution.values
    if not errors:
        raise SolveFailed(f"no solution was found at any of {len(mus)} parameters: {reason}")
    short = len(errors) < _enough(seconds, 9, 5, len(mus)) and left() < each
    return Difference(np.array(errors), np.sqrt(shares / len(errors)), seconds, short, solved)


def worst_parameter(model: Model, *, rng: int = 0, left: Callable[[], float] = lambda: np.inf) -> list[np.ndarray]:
    """A parameter (n_parameters,) whose solve has about the largest error of all, or none; at the cost of some solves.

    Half of them are anywhere in the box, the others around the worst so far, nearer and nearer. Where several materials
    meet, the errors at random parameters and in corners are far below the largest.
    """
    n, space, generator = len(model.parameters.scalars), model.parameters, np.random.default_rng([rng, 17])
    place, worst, largest, each = np.full(n, 0.5), [], 0.0, 0.0
    for i in range(2 * _N_SEARCHED if n else 0):
        unit = generator.random(n)
        if i >= _N_SEARCHED:
            radius = _WIDEST * _NARROWER ** (i / _N_SEARCHED - 1)
            unit = np.clip(place + radius * (2 * unit - 1), 0.0, 1.0)
        start, mu = time.perf_counter(), model.vector()
        mu[:n] = space.from_unit(unit[None])[0]
        if left() < 2 * each or each > _SLOW:
            break
        with suppress(SolveFailed):
            error = error_of(model, model.solve(mu, extrapolate=True).unknowns, mu)  # type: ignore[union-attr,arg-type]
            if error is not None and largest < error < np.inf:
                place, worst, largest = unit, [mu], error
        each = time.perf_counter() - start
    return worst


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
    """The middle of the box, corners (eight at most) and random ones, with drawn functions.

    Each parameter is low at half of the corners and high at the others. Drawn functions depend on the nodes where the modes of
    their distribution do.
    """
    n = len(model.parameters.scalars)
    middle = np.full((3 if model.parameters.functions else 1, n), 0.5)
    random = np.random.default_rng([rng, 13]).random((_N_RANDOM if n else 0, n))
    units = np.concatenate([middle[:1], box_corners(n), random, middle[1:]])
    out = model.sample(len(units), rng)
    out[:, :n] = model.parameters.from_unit(units)
    return out


def _probed_by_both(coarse: Model, fine: Model, rng: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The probes of two models of one problem; each function is drawn once, at the nodes of both."""
    pair = probes(coarse, rng), probes(fine, rng)
    draws = np.random.default_rng(rng)
    draws.random((len(pair[0]), coarse.inputs.n_scalars))  # as in a sample of one model
    for function, here in coarse.inputs.slices.items():
        points = np.concatenate([coarse.inputs.points(function), fine.inputs.points(function)])
        drawn = function.distribution.sample(len(pair[0]), points, draws)
        pair[0][:, here], pair[1][:, fine.inputs.slices[function]] = np.split(drawn, [here.stop - here.start], axis=1)
    return list(zip(*pair, strict=True))


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
