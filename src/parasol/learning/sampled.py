"""Learning where there is no proof: batches of full solves, each first a test and then a lesson, and fresh ones for a bound."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from parasol.errors import Exhausted, SolveFailed, TooFewSamples
from parasol.fitting.fit import Accuracy, accuracy, fit_labels, project_all
from parasol.fitting.gaussian_process import GaussianProcess
from parasol.fitting.maps import Recipe, fit_map
from parasol.fitting.training import NetworkRecipe
from parasol.fitting.units import field_weights, unknown_labels
from parasol.learning.comparing import box_corners
from parasol.learning.labels import LabelSource, Teacher, label_source
from parasol.learning.proven import TRAINING, maps_to_try, named
from parasol.learning.region import between, cuts, marked, shortened
from parasol.learning.report import LEVEL, Evidence, Outcome, Round, Step, measured_on
from parasol.learning.solves import SolveCache, Solver
from parasol.pde.model import Model
from parasol.pde.parameters import ParameterSpace
from parasol.reduction.pod import pod
from parasol.reduction.sampling import sample
from parasol.reduction.snapshots import NothingSolved, Snapshots, as_snapshots
from parasol.runtime.basis import Basis
from parasol.runtime.conformal import conformal_bound, highest_level
from parasol.runtime.features import features_of
from parasol.runtime.surrogate import Surrogate

_MODES = 0.1  # part of the tolerance that modes may leave of the training set
_TRIES = 2  # sets of fresh solves that may be calibrated with, each at half of 1 − LEVEL
_N_CALIBRATION = 39  # fresh solves in each, the fewest for that
_FEWEST = 4  # of them, where the number of solves is limited, and of first samples
_MOST_ROUNDS = 12
_PATIENCE = 3  # rounds without progress after which a map that was asked for is taken as it is
_N_CANDIDATES = 400
_LONGEST = 120  # characters of the reason of a failure
_ROUGH = GaussianProcess("matern52", trend_degree=1)  # for coefficients that bend sharply somewhere in the box
_FEW_FUNCTIONS = 200  # samples, below which only a matrix can be fitted to functions
_TEACHING = 60.0  # seconds that must be left for a reduced model and its labels
_SMALLEST = 1e-9  # of the largest unknown: one that is smaller may be rounding, and is not scaled
_TRUSTED = 0.3  # of the tolerance: a reduced model this good is what maps are fitted to
_USABLE = 0.7  # of the tolerance: one this good may do so where many solves did not make it better
_MOST, _NEARLY_ALL = 5 / 6, 0.98  # of a batch, and of the parameters at which two reduced models are compared
_FOLLOWS = 0.7  # of the tolerance: a map that follows it this closely, at all parameters compared, is good enough
_LABEL_MODES = 0.1  # of the tolerance, left by the modes of labels
_N_LABELS = (256, 1024, 4096)
_N_COMPARED = 1024  # fresh parameters at which a map is compared with the reduced model
_N_GAPS = 128  # parameters at which two reduced models are compared


@dataclass
class _State:
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
    tested: Snapshots | None = None  # what `best` was tested on, not used for it
    reduced: LabelSource | None = None  # made from the training set, where a reduced model is possible
    renewed: LabelSource | None = None  # the same with the last batch
    gaps: tuple[np.ndarray, np.ndarray] | None = None  # parameters, and how far the two are apart there
    usual: int = 0  # first samples where there is no reduced model: from there on, maps of full solves are tried
    short_of_maps: bool = False  # whether no map follows a reduced model that can be trusted: solves do not help
    n_fresh_sets: int = 0  # of fresh solves for the bound, each with its part of 1 − LEVEL, whatever became of it

    @property
    def weights(self) -> np.ndarray | None:
        """Of the inner product, (n_values,): every unknown function counts alike, whatever its unit."""
        labels = unknown_labels(self.model)
        return None if labels is None else field_weights(self.train.solutions, labels, least=_SMALLEST)

    def labels(self) -> tuple[Basis, np.ndarray]:
        """Modes of the training set and the coefficients of its solutions."""
        basis = pod(self.train, tolerance=_MODES * self.tolerance, weights=self.weights)
        return basis, project_all(basis, self.train)

    def sample(self, n: int, design: str, stream: int) -> np.ndarray:
        """Parameters of the box as it now is; functions are drawn from their distributions."""
        whole, n_scalars = self.model.parameters, len(self.space.scalars)
        source = self.model if whole.functions else whole
        mus = sample(source, n, design=design, rng=np.random.default_rng([self.rng, stream]))
        if n_scalars:  # the same points of the unit cube, whatever was cut off the box
            mus[:, :n_scalars] = self.space.from_unit(whole.to_unit(mus[:, :n_scalars]))
        return mus


def learn_sampled(
    model: Solver, tolerance: float, cache: SolveCache, *, recipe: str | Recipe | None = None, rng: int = 0
) -> Outcome:
    """Stop when a conformal bound at the level 0.95, from solves that nothing else has seen, is below the tolerance.

    Each round solves at a batch of parameters, which tests what was learned before and then joins it. Where the problem
    has a reduced model, made from the solves so far, a batch goes where the one before it changed that model most. Once it
    follows a batch to three tenths of the tolerance, and that batch would change it no more than that anywhere, maps are
    fitted to its labels, from cheap to dear, and the first that follows it at parameters they have not seen is taken. Without
    such a model batches go where two maps of the full solves disagree, which are then the labels.

    These tests decide when to calibrate, which is done twice at most: a first fresh set with an error above the
    tolerance becomes training data, and what the second one says is returned. Each of the two is calibrated at half of
    0.05, so that 0.95 holds of whichever is taken. A `recipe` is obeyed: where more solves no longer help it, the search
    ends.
    """
    state = _start(model, tolerance, cache, recipe, rng)
    outcome = _learned(state)
    failed = cache.failures()
    if state.space is model.parameters or not len(failed):
        return outcome
    # answers outside of what was learned are refused, and the declared box stays what it was declared
    box = marked(model.parameters, state.space, cache.reason(failed[0])[:_LONGEST])
    return replace(outcome, surrogate=replace(outcome.surrogate, parameters=box))


def _learned(state: _State) -> Outcome:
    cache, tolerance = state.cache, state.tolerance
    for number in range(_MOST_ROUNDS if state.reduced is None else 2 * _MOST_ROUNDS):
        n_batch = cache.affordable(_batch_size(state), reserve=_reserve(cache))
        batch = _batch(state, n_batch, number) if n_batch >= 2 else None
        if batch is None or not len(batch):
            break
        if _shrunk(state, batch):  # what was learned before is not tested on a box that is no more
            _join(state, batch)
            continue
        errors = _round(state, batch)
        good = np.max(errors) <= tolerance
        if state.n_fresh_sets == 0:  # the second set is the last one: it waits until nothing is above
            good |= np.quantile(errors, 0.8) <= 0.5 * tolerance
        if state.short_of_maps:
            break
        if good:
            last = state.n_fresh_sets >= _TRIES - 1 or cache.affordable(_N_CALIBRATION) < _N_CALIBRATION
            outcome = _certify(state, last=last)
            if outcome is not None and (outcome.met or last):
                return outcome
        _join(state, batch)
        if state.chosen and _stalled([row for row in state.history if isinstance(row, Round)]):
            break
    return _last(state)


def _batch_size(state: _State) -> int:
    """Few where each solve may be the last that a reduced model needs, more where maps need many."""
    n = len(state.train)
    if state.reduced is None or n >= state.usual:
        return max(4, n // 3)
    return max(2 if len(state.space.scalars) == 1 else 3, n // 4)


def _join(state: _State, batch: Snapshots) -> None:
    """The batch becomes training data, also of the reduced model if there is one."""
    state.train = joined(state.train, batch)
    if state.reduced is not None:
        state.reduced, state.renewed = state.renewed or _reduced(state, state.train), None


def _reduced(state: _State, train: Snapshots) -> LabelSource | None:
    state.cache.stage(f"making a reduced model from {len(train)} full solves")
    return label_source(state.model, train, state.tolerance, state.weights)


def _stalled(history: list[Round]) -> bool:
    """Whether the last rounds brought little although the modes would allow more: the map is the limit."""
    errors = [row.error for row in history]
    if len(errors) <= _PATIENCE:
        return False
    return min(errors[-_PATIENCE:]) > 0.7 * min(errors[:-_PATIENCE]) and history[-1].projection < 0.5 * errors[-1]


# ---- before the first round -----------------------------------------------------------------------------------------
def _start(model: Solver, tolerance: float, cache: SolveCache, recipe: str | Recipe | None, rng: int) -> _State:
    """The first samples: spread towards the ends of the ranges, with the corners; the box cut where solves fail."""
    space = model.parameters
    p = len(space.scalars)
    n = {0: 24, 1: 9, 2: 16, 3: 28}.get(p, 16 * p - 16)
    usual = maps_to_try(model, few=True)[0] if recipe is None else recipe
    state = _State(model, tolerance, cache, usual, recipe is not None, rng, space, None)  # type: ignore[arg-type]
    mus = state.sample(n, "edges", 0)
    if 1 <= p <= 3 and not space.functions:
        mus = np.vstack([space.grid(*[2] * p), mus])
    state.usual = len(mus)
    n = cache.affordable(len(mus), reserve=_reserve(cache))
    if cache.limits.solves is None and (cache.limits.seconds or 0.0) > _FEWEST * cache.cost:
        n = max(n, _FEWEST)  # even if choosing nodes took all the time: without these there is nothing to return
    if n < _FEWEST:
        raise Exhausted("too few full solves are allowed to learn anything. Allow more with solves or seconds.")
    if state.chosen and space.functions and not isinstance(recipe, NetworkRecipe):
        fit_map(recipe, mus[:n], mus[:n, :1])  # a map for which these are too many inputs says so before the solves
    if isinstance(model, Model) and not space.functions and cache.limits.left > _TEACHING:
        few = _few(space)[:n]
        state.train = cache.solve(few, "the first samples", at_least=_FEWEST)
        _cut(state)
        state.reduced = _reduced(state, state.train)
        if state.reduced is not None:
            return state
        mus = np.vstack([few, mus[len(few) :]])
    state.train = cache.solve(mus[:n], "the first samples", at_least=_FEWEST)
    _cut(state)
    return state


def _few(space: ParameterSpace) -> np.ndarray:
    """Parameters for a first reduced model: the middle and corners, or four in a row."""
    p = len(space.scalars)
    unit = np.linspace(0, 1, _FEWEST)[:, None] if p == 1 else np.vstack([box_corners(p), np.full((1, p), 0.5)])
    return space.from_unit(unit)


def _shrunk(state: _State, new: Snapshots) -> bool:
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


def _cut(state: _State) -> None:
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


# ---- one round ------------------------------------------------------------------------------------------------------
def _round(state: _State, batch: Snapshots) -> np.ndarray:
    """Fit to what is known, test on the batch; the errors of the best surrogate, which is noted."""
    trials: list[tuple[Surrogate, Accuracy]] = []
    if state.reduced is not None:
        if _trusted(state, batch):
            taught = _taught(state) if state.cache.limits.left > TRAINING else None
            if taught is not None:
                trials = [(taught[0], _score(state, taught[0], batch))]
                state.short_of_maps = taught[1] > state.tolerance
        if not trials and len(state.train) < state.usual:
            return np.ones(len(batch))  # there is no surrogate yet: its answers are 0
    if not trials:
        trials = _direct(state, batch)
    surrogate, score = min(trials, key=_worst)
    state.history.append(
        Round(
            solves=state.cache.n_solves,
            error=_worst((surrogate, score)),
            mean=score.mean,
            projection=float(np.max(score.projection_errors)),
            n_modes=surrogate.basis.n_modes,
            labels=surrogate.facts["labels"],
            map=surrogate.facts["recipe"],
        )
    )
    state.best, state.tested = surrogate, batch
    return score.errors


def _trusted(state: _State, batch: Snapshots) -> bool:
    """Whether the reduced model follows the batch, and the batch would not change it anywhere."""
    assert state.reduced is not None
    errors = float(np.quantile(state.reduced.errors(batch), _MOST, method="higher"))  # fresh solves decide in the end
    state.history.append(Step(state.cache.n_solves, error=errors))
    mus, changed = state.sample(_N_GAPS, "random", 500 + len(state.train)), np.inf
    state.renewed = _reduced(state, joined(state.train, batch))
    if state.renewed is not None:
        state.gaps = mus, state.renewed.gaps(state.reduced, mus)
        changed = np.quantile(state.gaps[1], _NEARLY_ALL, method="higher")
    many = len(state.train) >= state.usual
    return max(errors, changed) <= _TRUSTED * state.tolerance or (many and errors <= _USABLE * state.tolerance)


def _worst(trial: tuple[Surrogate, Accuracy]) -> float:
    return float(np.max(trial[1].errors))


def _direct(state: _State, batch: Snapshots) -> list[tuple[Surrogate, Accuracy]]:
    """Maps fitted to the full solves, with their errors on the batch."""
    recipes = (state.recipe,) if state.chosen else (GaussianProcess(), _ROUGH)
    direct = [_fitted(state, state.train.mus, None, recipe, "full solves") for recipe in recipes]
    trials = [(one, _score(state, one, batch)) for one in direct]
    least = min(map(_worst, trials))
    if least > state.tolerance or state.chosen or state.model.parameters.functions:
        return trials
    if state.cache.limits.left > TRAINING:
        network = _fitted(state, state.train.mus, None, state.recipe, "full solves")
        score = _score(state, network, batch)
        if np.max(score.errors) <= max(state.tolerance, 2 * least):
            return [(network, score)]  # what every export knows, as good for the purpose
    return trials


def _fitted(state: _State, mus: np.ndarray, teacher: Teacher | None, recipe: str | Recipe, origin: str) -> Surrogate:
    progress = state.cache.stage(f"fitting {named(recipe)} to {len(mus)} labels")
    layout = state.model if isinstance(state.model, Model) else None  # others may have nodes of their own kind
    basis, coefficients = state.labels() if teacher is None else (teacher.basis, teacher.coefficients)
    if state.model.parameters.functions and len(mus) < _FEW_FUNCTIONS and not state.chosen:
        recipe = "linear"
    options = {"model": layout, "origin": origin, "rng": state.rng, "progress": progress}
    return replace(fit_labels(mus, coefficients, basis, state.space, recipe, **options), solver=state.model)


def _taught(state: _State) -> tuple[Surrogate, float] | None:
    """The first map, from cheap to dear, that follows the reduced model at parameters it has not seen, or the best.

    With its largest distance from the reduced model there, which costs no full solve.
    """
    cache, source = state.cache, state.reduced
    assert source is not None
    best: tuple[Surrogate, float] | None = None
    try:
        truth = source.snapshots(state.sample(_N_COMPARED, "random", 8))
        mus = state.sample(_N_LABELS[-1], "edges", 7)  # evenly spread ones leave maps of wide ranges wrong at the ends
        for n_labels in _N_LABELS:
            cache.stage(f"{n_labels} labels by the reduced model")
            teacher = source.labels(mus[:n_labels], _LABEL_MODES * state.tolerance)
            if truth is None or teacher is None:
                return None
            for recipe in _recipes(state, n_labels):
                if best is not None and cache.limits.left < TRAINING:
                    return best
                surrogate = _fitted(state, teacher.mus, teacher, recipe, "reduced model")
                error = float(np.max(_score(state, surrogate, truth).errors))
                if best is None or error < best[1]:
                    best = surrogate, error
                if error <= _FOLLOWS * state.tolerance:
                    return best
    except SolveFailed:  # the steps of the reduced model grow beyond all bounds somewhere
        return None
    return best


def _recipes(state: _State, n_labels: int) -> tuple[str | Recipe, ...]:
    """The maps that are worth fitting to so many labels, from cheap to dear."""
    if state.chosen:
        return (state.recipe,)
    few, many = n_labels == _N_LABELS[0], n_labels == _N_LABELS[-1]
    networks = () if few or "best" not in maps_to_try(state.model) else ("best",)
    return ("polynomial", *(() if many else (GaussianProcess(),)), *(() if few else (_ROUGH,)), *networks)


def _batch(state: _State, n: int, number: int) -> Snapshots | None:
    """Solve at n parameters where what is known says least, none close to another or to what is known."""
    if state.model.parameters.functions:  # they have no box in which distances would mean much
        chosen = state.sample(_N_CANDIDATES, "random", 100 + number)[:n]
    else:
        candidates, gap = _doubts(state, number)
        chosen = candidates[_spread(state, candidates, gap, n)]
    try:
        return state.cache.solve(chosen, f"round {number + 1}, where {'maps' if state.reduced is None else 'reduced models'} disagree")
    except (NothingSolved, Exhausted):
        return None


def _doubts(state: _State, number: int) -> tuple[np.ndarray, np.ndarray]:
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
    smooth, rough = (recipe.fit(x, y).predict(at) for recipe in (GaussianProcess(), _ROUGH))
    size = np.linalg.norm(smooth, axis=1)
    return candidates, np.linalg.norm(smooth - rough, axis=1) / np.maximum(size, 1e-3 * np.max(size))


def _spread(state: _State, candidates: np.ndarray, gap: np.ndarray, n: int) -> list[int]:
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


def _score(state: _State, surrogate: Surrogate, truth: Snapshots) -> Accuracy:
    """Errors of the worst of the unknowns at each parameter."""
    return accuracy(surrogate, truth, fields=unknown_labels(state.model), weights=state.weights)


# ---- the bound ------------------------------------------------------------------------------------------------------
def _reserve(cache: SolveCache) -> int:
    """Full solves kept back for the bound where their number is limited."""
    limit = cache.limits.solves
    return 0 if limit is None and cache.limits.seconds is None else min(19, (limit or 60) // 3)


def _certify(state: _State, *, last: bool) -> Outcome | None:
    """The bound of the best surrogate from fresh solves, which become training data if it is not good enough.

    If this set is the `last` and the first as well, it may take the whole of 1 − LEVEL. Where solves of an earlier one
    fail at a border of the box, the box is cut: that set has been looked at and counts, and the bound waits for the next.
    """
    cache, surrogate = state.cache, state.best
    assert surrogate is not None
    n = cache.affordable(_N_CALIBRATION)
    if n < _FEWEST or state.n_fresh_sets == _TRIES:
        return None
    tries = 1 if last and state.n_fresh_sets == 0 else _TRIES
    mus = state.sample(n, "random", 1000 + state.n_fresh_sets)
    state.n_fresh_sets += 1
    try:
        fresh = cache.solve(mus, "fresh ones for the bound")
    except (NothingSolved, Exhausted):
        return None
    if not last and _shrunk(state, fresh):
        return None
    outcome = _bounded(state, surrogate, fresh, cache.n_failed(mus), tries)
    state.train, state.renewed = joined(state.train, fresh), None  # for the next round, if there is one
    return outcome


def _bounded(state: _State, surrogate: Surrogate, fresh: Snapshots, n_failed: int, tries: int) -> Outcome:
    """The surrogate with a bound from fresh solves drawn at random; those that failed count as infinite errors."""
    score = _score(state, surrogate, fresh)
    errors = np.concatenate([score.errors, np.full(n_failed, np.inf)])
    level, bound = min(LEVEL, highest_level(len(errors), failed=n_failed, tries=tries)), float("inf")
    if level > 0:
        surrogate = replace(surrogate, conformal=conformal_bound(errors, level=level, tries=tries))
        bound = surrogate.conformal.quantile  # type: ignore[union-attr]
    evidence = Evidence(level or None, len(state.cache.failures()), n_failed, state.n_fresh_sets)
    met = bound <= state.tolerance and level >= LEVEL
    limit = ""
    if not met and bound <= state.tolerance:
        limit = "failed solves" if n_failed else "level"
    elif not met:
        limit = "projection" if score.projection > 0.5 * score.mean else "map"
    return Outcome(surrogate, met, bound, limit, tuple(state.history), evidence, measured_on(score))


def _last(state: _State) -> Outcome:
    """When rounds, solves or seconds are used up: the best there is, with the bound that can still be had."""
    if state.best is None and state.reduced is not None and state.cache.limits.left > TRAINING:
        taught = _taught(state)
        state.best = None if taught is None else taught[0]
        state.tested = None
    if state.best is None:
        usual = state.recipe if state.chosen else "gaussian process"
        state.best = _fitted(state, state.train.mus, None, usual, "full solves")
        state.tested = None
    outcome = _certify(state, last=True)
    if outcome is not None:
        return outcome
    measured, note = None, "no solves were left to test it"
    if state.tested is not None:  # these were chosen, not drawn: no level can be calibrated with them
        measured = measured_on(_score(state, state.best, state.tested))
        note = f"no solves were left for a bound; its largest error on {measured.n} test solves is {measured.max:.1e}"
    history = tuple(state.history)
    return Outcome(state.best, False, float("inf"), "level", history, measured=measured, notes=(note,))


def joined(one: Snapshots, other: Snapshots) -> Snapshots:
    """Both sets of samples as one, a parameter of both once."""
    known = {mu.tobytes() for mu in one.mus}
    new = np.array([mu.tobytes() not in known for mu in other.mus], dtype=bool)
    parts = [(one.mus, one.solutions, one.hidden), (other.mus[new], other.solutions[new], other.hidden[new])]
    mus, solutions, hidden = (np.concatenate(pair) for pair in zip(*parts, strict=True))
    return as_snapshots(mus, solutions, hidden=hidden)
