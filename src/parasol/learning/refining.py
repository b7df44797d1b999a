"""Nodes by what each solve says of its own error: more of them where the error comes from, while that helps."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial import KDTree

from parasol.errors import ParasolWarning, SolveFailed, UnsuitableNodes
from parasol.learning.comparing import Difference, own_errors, require, worst_parameter
from parasol.learning.solves import Limits, Stage
from parasol.pde.discretisation import gathered
from parasol.pde.model import Model
from parasol.pde.rough import rough_boundary
from parasol.pde.steady import relative_error
from parasol.space.spacing import refined_spacing, refining_factor

Spacing = Callable[[np.ndarray], np.ndarray]  # the relative one (n,) wanted at points (n, dimension)

# times the estimates of solves: half of these are below the error, one in ten by more than 1.5; for elements at singular
# points most are, down to 0.46
_SAFETY, _SAFETY_ELEMENTS = 1.5, 2.0
PROBE = 4.0  # times what the model itself took, for the equation between its nodes
_ORDER = 4.0  # of errors in the spacing, until it is observed
_LEAST, _TWICE, _MOST = 1.4, 2.0, 4.0  # times the nodes for the next level: at least, after a step in vain, at most
_RESERVE = 1.2  # times the nodes that the observed order asks for
_N_BESIDE, _SLOWEST = 3, 0.75  # parameters where levels are compared, and how slowly errors fall at most
_NEAR = 12  # neighbours over which the error is averaged to say where it is
SLOW = 1.3  # fall of the error for twice the nodes below which a step counts as none
_SURE = 20.0  # part of the aim below which an estimate needs no second set of nodes beside it
_NONE = 0.05  # rate that would take any number of nodes
_LAST = 32  # times the first number of nodes


@dataclass(frozen=True, eq=False)
class Level:
    """A model with the errors of its own solves."""

    model: Model
    gap: Difference
    spacing: Spacing | None = None  # that it was made with; None: the usual one
    observed: float = 0.0  # error by the difference to the level before

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.model.n_nodes

    @property
    def error(self) -> float:
        """The largest over the parameters, on the safe side."""
        return max(safety(self.model) * self.gap.error, self.observed)

    @property
    def estimates(self) -> dict[int, float]:
        """What the solves say of their errors, by number of the parameter, the largest first."""
        pairs = zip(self.gap.solved, self.gap.errors.tolist(), strict=True)
        return dict(sorted(pairs, key=lambda one: -one[1]))

    def beside(self, before: Level) -> Level:
        """The level with its error by the difference δ to the one before, at those parameters where the errors are largest.

        If errors fall by the factor q as the estimates do, whatever share of the errors these see, δ leaves q / (1 − q) of
        itself. So slow convergence is observed whose reason is not to be seen between the nodes.
        """
        estimates, earlier = self.estimates, before.estimates
        worst = [at for at in estimates if at in earlier][:_N_BESIDE]
        weights, n_fields = self.model.weights_at(before.model.nodes.points), self.model.layout.n_fields
        errors = [0.0]
        for at in worst:
            values = (weights @ self.gap.solved[at].reshape(n_fields, -1).T).T.ravel()
            ratio = min(estimates[at] / max(earlier[at], 1e-300), _SLOWEST)
            errors.append(ratio / (1 - ratio) * relative_error(before.model, before.gap.solved[at], values))
        return replace(self, observed=float(max(errors)))

    def finer(self, n_nodes: int) -> Spacing:
        """The spacing of about `n_nodes` nodes that would all contribute alike; of elements, a factor for the usual one."""
        points, shares = self.model.nodes.points, self.gap.local**2
        if self.model.elements is None:
            return refined_spacing(points, shares, n_nodes=n_nodes)
        corners, before = points[self.model.elements.corners], self.spacing
        factor = refining_factor(corners, gathered(points, shares, corners))
        return factor if before is None else (lambda x: factor(x) * before(x))


def safety(model: Model) -> float:
    """By how much estimates of solves are multiplied, so that errors are seldom larger."""
    return _SAFETY if model.elements is None else _SAFETY_ELEMENTS


def has_estimate(model: Model) -> bool:
    """Whether what each solve says of its own error is what to choose nodes by.

    It is not in time, with functions that are known at the nodes alone, with given jumps, and for stencils where what is
    rough is not in the equation: corners that nodes are graded to (2 to 7 times the error), values that jump along the
    boundary (a third).
    """
    problem = model.problem
    if model.jumps:
        return False
    if model.elements is not None:
        return bool(model.other_degrees)
    if problem.time is not None or rough_boundary(problem, model.nodes):
        return False
    functions = set(problem.parameter_symbols[1])
    return not any(form.symbols & functions for form in problem.forms) and model.between is not None


@dataclass(frozen=True, eq=False)
class Refinement:
    """What refining needs to know: how to build a model, when to stop, and what may be changed."""

    build: Callable[[int, Spacing | None], Model]
    aim: float  # infinite: the error of the first model is all that is wanted
    limits: Limits
    left: Callable[[], float]
    movable: bool  # nodes may follow the error
    rough: bool  # errors fall slowly, and everybody knows it
    rng: int
    stage: Stage

    def levels(self, model: Model) -> Iterator[tuple[Level, str]]:
        """Levels from a first model on until the error of one is at most the aim; at the end why it is not, if it is not.

        How many nodes come next is predicted from how the error fell. They follow the shares in the error, but for a step
        after one that did not help. It ends where two steps in turn lower the error by less than a factor of 1.3 for
        twice the nodes, at 32 times the first number, and where a rough problem will not be good enough there.
        """
        first, spacing, slow, path, done = model, None, 0, [], []
        more: list[np.ndarray] = []
        if model.elements is not None and np.isfinite(self.aim):
            self.stage("looking for the parameter with the largest error")
            more = worst_parameter(model, rng=self.rng, left=self.left)
        most = _LAST * first.n_nodes
        while True:
            began = self.limits.spent
            self.stage(f"estimating the error of {model.n_nodes} nodes")
            here = Level(model, own_errors(model, rng=self.rng, left=self.left, more=more), spacing)
            yield here, ""
            sure = here.error <= self.aim / _SURE and np.isfinite(self.aim)
            if not (sure or self.rough or model.elements is not None):
                path = path or self._coarser(here)
                here = here.beside(path[-1]) if path else here
                yield here, ""
            path.append(here)
            done.append(here)
            if here.error <= self.aim:
                return
            rate = max(_rate(path[-2:]), _rate(path[-3:]))
            slow = slow + 1 if model is not first and _rate(path[-2:]) < np.log2(SLOW) else 0
            needed = here.n_nodes * (here.error / self.aim) ** (1 / rate) if rate > _NONE else np.inf
            in_vain = self.rough and model is not first and needed > most
            if slow == 2:  # none of them can be trusted more than the others
                largest = max(level.error for level in done[-3:])
                yield replace(_best(done), observed=largest), no_use(here, done, self.aim)
                return
            if in_vain or here.n_nodes > 0.9 * most:
                yield _best(done), no_use(here, done, self.aim, needed)
                return
            careful = slow or (self.rough and model is first)
            times = float(np.clip(_RESERVE * needed / here.n_nodes, _LEAST, _TWICE if careful else _MOST))
            cost = times * (1 + 1 / PROBE) * (self.limits.spent - began)
            # half of the time is for what is learned then
            if self.limits.left - cost < (self.limits.seconds or 0.0) / 2 or self.limits.left < 20 * here.gap.seconds:
                best = _best(done)
                yield replace(best, gap=replace(best.gap, short=True)), ""
                return
            require(self.left, cost)
            n_nodes = round(min(times * here.n_nodes, most))
            spacing = here.finer(n_nodes) if self.movable and not slow else None
            try:
                model = self.build(n_nodes, spacing)
            except UnsuitableNodes:  # a spacing that follows the error may leave a part of the boundary without nodes
                if spacing is None:
                    raise
                model, spacing = self.build(n_nodes, None), None

    def _coarser(self, first: Level) -> list[Level]:
        """A level with half the nodes of the first, to see how the largest errors fall; none where these are too few."""
        n_nodes, worst = first.n_nodes // 2, list(first.estimates)[:_N_BESIDE]
        require(self.left, 0.0)
        self.stage(f"estimating the error of {n_nodes} nodes")
        with warnings.catch_warnings(), suppress(UnsuitableNodes, SolveFailed):
            warnings.simplefilter("ignore", ParasolWarning)
            coarse = self.build(n_nodes, None)
            if coarse.between is not None:
                return [Level(coarse, own_errors(coarse, rng=self.rng, left=self.left, only=worst))]
        return []


def _rate(levels: Sequence[Level]) -> float:
    """r in error ∝ n_nodes^(−r), as the first and the last have it; before there are two, that of smooth problems.

    The middle one over the parameters, which does not change with one where a matrix happens to be sensitive.
    """
    first, last = levels[0], levels[-1]
    before, after = first.estimates, last.estimates
    falls = [np.log(max(before[at], 1e-300) / max(after[at], 1e-300)) for at in before if at in after]
    if len(levels) == 1 or not falls:
        return _ORDER / last.model.nodes.dimension
    return float(np.median(falls) / max(np.log(last.n_nodes / first.n_nodes), _NONE))


def _best(levels: Sequence[Level]) -> Level:
    """The one with the fewest nodes whose error is close to the least."""
    least = min(level.error for level in levels)
    return min((level for level in levels if level.error <= SLOW * least), key=lambda level: level.n_nodes)


def no_use(here: Level, levels: Sequence[Level], aim: float, needed: float = np.inf) -> str:
    """One line: that refinement does not converge, or how many nodes it would take; where the error sits; what to do."""
    if np.isinf(needed):
        history = ", ".join(f"{level.error:.1e} with {level.n_nodes}" for level in levels[-3:])
        text = f"refinement does not converge: the error is about {history} nodes."
    else:
        text = f"the error is about {here.error:.1e} with {here.n_nodes} nodes, and {aim:.1e} would take about {needed:.1g}."
    model, shares = here.model, here.gap.local**2
    near = KDTree(model.nodes.points).query(model.nodes.points, list(range(1, min(_NEAR, len(shares)) + 1)))[1]
    names, place = model.problem.coordinates, model.nodes.points[np.argmax(np.mean(shares[near], axis=1))]
    where = ", ".join(f"{name}={value + 0.0:.3g}" for name, value in zip(names, place.round(6), strict=True))
    advice = "Give nodes that are finer there (ps.scatter(..., spacing=...))"
    if model.elements is None and model.problem.linear and model.nodes.dimension == 2 and model.problem.time is None:
        advice += ', use method="elements"'
    return f"{text} Most of it comes from near {where}. {advice}, or make what jumps there the border of a region."
