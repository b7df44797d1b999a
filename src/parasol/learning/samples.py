"""The samples of a learning without a proof: the first ones, the box that failures leave of them, where the next ones go."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from parasol.errors import Exhausted, InputError, ParasolWarning
from parasol.fitting.fit import project_all
from parasol.fitting.gaussian_process import GaussianProcess
from parasol.fitting.maps import Recipe, fit_map
from parasol.fitting.training import NetworkRecipe
from parasol.fitting.units import field_weights, unknown_labels
from parasol.learning.by_residual import offers_residual
from parasol.learning.comparing import box_corners
from parasol.learning.labels import LabelSource, label_source
from parasol.learning.linear import maps_to_try
from parasol.learning.region import between, cuts, shortened
from parasol.learning.report import Round, Step
from parasol.learning.solves import SolveCache, Solver, used_up
from parasol.pde.model import Model
from parasol.pde.parameters import ParameterSpace
from parasol.reduction.pod import pod
from parasol.reduction.sampling import sample
from parasol.reduction.snapshots import NothingSolved, Snapshots, as_snapshots
from parasol.runtime.basis import Basis
from parasol.runtime.features import features_of
from parasol.runtime.products import Weights, repeated
from parasol.runtime.surrogate import Surrogate

_MODES = 0.1  # part of the tolerance that modes may leave of the training set
_N_CANDIDATES = 400
_TEACHING = 60.0  # seconds that must be left for a reduced model and its labels
_FOR_THE_BOUND = 0.3  # at most, of the seconds allowed, kept back for fresh solves
_SMALLEST = 1e-9  # of the largest unknown: one that is smaller may be rounding, and is not scaled
FEWEST = 4  # first samples, and fresh solves for a bound, where the number of solves is limited
ROUGH = GaussianProcess("matern52", trend_degree=1)  # for coefficients that bend sharply somewhere in the box


@dataclass
class State:
    """What is known while learning: the box, the samples, the best surrogate so far with its errors on a test."""

    model: Solver
    tolerance: float
    cache: SolveCache
    recipe: str | Recipe  # of the map: the one that was asked for, or one that is taken if it is good enough
    chosen: bool  # whether the recipe was asked for: then no other is used
    rng: int
    space: ParameterSpace
    train: Snapshots
    history: list[Round | Step] = field(default_factory=list)
    best: Surrogate | None = None
    likeliest: str | Recipe | None = None  # the map that erred least on the last batch, of those fitted to full solves
    tested: Snapshots | None = None  # what `best` was tested on, not used for it
    reduced: LabelSource | None = None  # made from the training set, where a reduced model is possible
    renewed: LabelSource | None = None  # the same with the last batch
    gaps: tuple[np.ndarray, np.ndarray] | None = None  # parameters, and how far the two are apart there
    usual: int = 0  # first samples where there is no reduced model: from there on, maps of full solves are tried
    short_of_maps: bool = False  # whether no map follows a reduced model that can be trusted: solves do not help
    n_earlier: int = 0  # of the training set: solves of the same problem with other ranges
    n_fresh_sets: int = 0  # of fresh solves for the bound, each with its part of 1 − LEVEL, whatever became of it

    @property
    def weights(self) -> Weights | None:
        """Of the inner product, (n_values,): the model's own, or one in which every unknown function counts alike."""
        product, labels = None, unknown_labels(self.model)
        if isinstance(self.model, Model) and self.model.product is not None:
            product = repeated(self.model.product, self.train.n_values // self.model.n_unknowns)
        return product if labels is None else field_weights(self.train.solutions, labels, product, least=_SMALLEST)

    def labels(self) -> tuple[Basis, np.ndarray]:
        """Modes of the training set and the coefficients of its solutions."""
        basis = pod(self.train, tolerance=_MODES * self.tolerance, weights=self.weights)
        return basis, project_all(basis, self.train)

    def sample(self, n: int, design: str, stream: int) -> np.ndarray:
        """Parameters of the box as it now is; functions are drawn from their distributions."""
        whole, n_scalars = self.model.parameters, len(self.space.scalars)
        source = self.model if whole.functions else whole
        mus = sample(source, n, design=design, rng=np.random.default_rng([self.rng, stream, *self.cache.salt]))
        if n_scalars:  # the same points of the unit cube, whatever was cut off the box
            mus[:, :n_scalars] = self.space.from_unit(whole.to_unit(mus[:, :n_scalars]))
        return mus


def first_samples(model: Solver, tolerance: float, cache: SolveCache, recipe: str | Recipe | None, rng: int) -> State:
    """The first samples, and the box cut where solves fail.

    A few for a reduced model, where there is one; else more, spread towards the ends of the ranges, with the corners.
    """
    space = model.parameters
    p = len(space.scalars)
    n = {0: 24, 1: 9, 2: 16, 3: 28}.get(p, 16 * p - 16)
    usual = maps_to_try(model, few=True)[0] if recipe is None else recipe
    state = State(model, tolerance, cache, usual, recipe is not None, rng, space, None)  # type: ignore[arg-type]
    mus = state.sample(n, "edges", 0)
    if 1 <= p <= 3 and not space.functions:
        mus = np.vstack([space.grid(*[2] * p), mus])
    state.usual = len(mus)
    n = cache.affordable(len(mus), reserve=reserve(cache))
    if cache.limits.solves is None and (cache.limits.seconds or 0.0) > FEWEST * cache.cost:
        n = max(n, FEWEST)  # even if choosing nodes took all the time: without these there is nothing to return
    if n < FEWEST:
        raise Exhausted("too few full solves are allowed to learn anything. Allow more with solves or seconds.")
    if state.chosen and space.functions and not isinstance(recipe, NetworkRecipe):
        fit_map(recipe, mus[:n], mus[:n, :1])  # a map for which these are too many inputs says so before the solves
    if (isinstance(model, Model) or offers_residual(model)) and not space.functions and cache.limits.left > _TEACHING:
        few = _few(space)[:n]
        with suppress(NothingSolved):  # more samples may find where there are solutions
            state.train = _with_earlier(state, cache.solve(few, "the first samples", at_least=FEWEST))
            _cut(state)
            state.reduced = reduced_model(state, state.train)
        if state.reduced is not None:
            return state
        mus = np.vstack([few, mus[len(few) :]])
    state.train = _with_earlier(state, cache.solve(mus[:n], "the first samples", at_least=FEWEST))
    _cut(state)
    return state


def _so_far(state: State) -> str:
    """The largest error on the last batch beside what is wanted, for people who wait."""
    errors = [row.error for row in state.history if row.error is not None]
    return f", error {errors[-1]:.1e} so far, wanted {state.tolerance:.1e}" if errors else ""


def _with_earlier(state: State, first: Snapshots) -> Snapshots:
    """The first samples, and what the store has of the same problem with other ranges: training data, never more."""
    earlier = state.cache.earlier(state.space)
    if earlier is None:
        return first
    warnings.warn(
        f"{len(earlier)} full solves of the same problem with other ranges, from the store, are learned from as well.",
        ParasolWarning,
        stacklevel=2,
    )
    state.n_earlier = len(earlier)
    return joined(first, earlier)


def reduced_model(state: State, train: Snapshots) -> LabelSource | None:
    """A reduced model made from these samples, or None where there is none, or no time for one."""
    state.cache.stage(f"making a reduced model from {len(train)} full solves")
    try:
        return label_source(state.model, train, state.tolerance, state.weights, _watch(state.cache), state.reduced)
    except Exhausted:
        return None


def _watch(cache: SolveCache) -> Callable[[], None] | None:
    """Ends work on reduced models when no more time is left than the solves take that are kept back for the bound."""
    if cache.limits.seconds is None:
        return None

    def look() -> None:
        if cache.limits.left < min(reserve(cache) * cache.cost, _FOR_THE_BOUND * (cache.limits.seconds or 0.0)):
            raise used_up("seconds")

    return look


def reserve(cache: SolveCache) -> int:
    """Full solves kept back for the bound where their number is limited."""
    limit = cache.limits.solves
    return 0 if limit is None and cache.limits.seconds is None else min(19, (limit or 60) // 3)


def _few(space: ParameterSpace) -> np.ndarray:
    """Parameters for a first reduced model: the middle and corners, or four in a row."""
    p = len(space.scalars)
    unit = np.linspace(0, 1, FEWEST)[:, None] if p == 1 else np.vstack([box_corners(p), np.full((1, p), 0.5)])
    return space.from_unit(unit)


def shrunk(state: State, new: Snapshots) -> bool:
    """Whether solves failed beside the new ones at a border of the box: it is cut, and the new ones join the training."""
    failed = state.cache.failures()
    if not len(failed) or not np.any(state.space.inside(failed)):
        return False
    before, train = state.space, state.train
    state.train = joined(train, new)
    _cut(state)
    if state.space is before:
        state.train = train
    return state.space is not before


def _cut(state: State) -> None:
    """Shorten the box to where there are solutions, if failures say so and less than half of the samples is lost."""
    cache, whole = state.cache, state.model.parameters
    failed = cache.failures()
    if not len(failed) or not whole.scalars or not np.any(state.space.inside(failed)):
        return
    for _ in range(8):
        mus = between(whole, cuts(whole, state.train.mus, cache.failures()), state.train.mus)
        if not len(mus) or cache.affordable(len(mus)) < len(mus):
            break
        try:
            state.train = joined(state.train, cache.solve(mus, "where solutions end"))
        except NothingSolved:  # the border moves inwards
            continue
        except Exhausted:
            break
    borders = cuts(whole, state.train.mus, cache.failures())
    space = shortened(whole, borders)
    inside = space.inside(state.train.mus)
    if not borders or (state.best is not None and np.count_nonzero(inside) < len(inside) / 2):
        return  # failures here and there inside: no border, and no box without them worth having
    state.space = space
    state.train = as_snapshots(
        state.train.mus[inside], state.train.solutions[inside], hidden=state.train.hidden[inside]
    )


def next_batch(state: State, n: int, number: int) -> Snapshots | None:
    """Solve at n parameters where what is known says least, none close to another or to what is known."""
    who = "maps" if state.reduced is None else "reduced models"
    if state.model.parameters.functions:  # they have no box in which distances would mean much
        chosen = state.sample(_N_CANDIDATES, "random", 100 + number)[:n]
    else:
        candidates, gap = _doubts(state, number)
        chosen = candidates[_spread(state, candidates, gap, n)]
    try:
        return state.cache.solve(chosen, f"round {number + 1}, where {who} disagree{_so_far(state)}")
    except (NothingSolved, Exhausted):
        return None


def _doubts(state: State, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Candidates, and by how much two reduced models, or else two maps, disagree there."""
    if state.reduced is not None and state.gaps is not None:
        inside = state.space.inside(state.gaps[0])
        candidates, gap = state.gaps[0][inside], state.gaps[1][inside]
        known = np.isfinite(gap)
        return candidates, np.where(known, gap, 10 * np.max(gap[known], initial=0.1))
    candidates = state.sample(_N_CANDIDATES, "random", 100 + number)
    if state.reduced is not None:
        return candidates, np.ones(len(candidates))
    features = features_of(state.space, state.train.mus)
    _, y = state.labels()
    # a smooth and a rough map of the same samples: where they part, the samples say too little
    x, at = features(state.train.mus), features(candidates)
    smooth, rough = (recipe.fit(x, y).predict(at) for recipe in (GaussianProcess(), ROUGH))
    size = np.linalg.norm(smooth, axis=1)
    return candidates, np.linalg.norm(smooth - rough, axis=1) / np.maximum(size, 1e-3 * np.max(size))


def _spread(state: State, candidates: np.ndarray, gap: np.ndarray, n: int) -> list[int]:
    """Indices of candidates by disagreement × distance to the nearest sample, one after the other."""
    features = features_of(state.space, state.train.mus)
    x, at = features(state.train.mus), features(candidates)
    gap = np.sqrt(gap / (np.max(gap) or 1.0)) + 0.05
    nearest = np.min(np.linalg.norm(at[:, None] - x[None], axis=2), axis=1)
    chosen: list[int] = []
    for _ in range(n):
        best = int(np.argmax(gap * nearest))
        chosen.append(best)
        nearest = np.minimum(nearest, np.linalg.norm(at - at[best], axis=1))
    return chosen


def joined(one: Snapshots, other: Snapshots) -> Snapshots:
    """Both sets of samples as one, a parameter of both once."""
    if one.solutions.shape[1] != other.solutions.shape[1]:
        raise InputError(
            f"the solver returned {one.solutions.shape[1]} values at some parameters and {other.solutions.shape[1]} at others. "
            "All solutions need the same length: the same mesh."
        )
    known = {mu.tobytes() for mu in one.mus}
    new = np.array([mu.tobytes() not in known for mu in other.mus], dtype=bool)
    parts = [(one.mus, one.solutions, one.hidden), (other.mus[new], other.solutions[new], other.hidden[new])]
    mus, solutions, hidden = (np.concatenate(pair) for pair in zip(*parts, strict=True))
    return as_snapshots(mus, solutions, hidden=hidden)
