"""Learning where there is no proof: batches of full solves, each first a test and then a lesson, and fresh ones for a bound."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import replace

import numpy as np

from parasol.errors import Exhausted, NoCertificate, ParasolWarning, SolveFailed, TooFewSamples
from parasol.fitting.calibration import following, quantity_weights, with_parts
from parasol.fitting.directions import FewDirections
from parasol.fitting.fit import Accuracy, accuracy, fit_labels
from parasol.fitting.gaussian_process import GaussianProcess
from parasol.fitting.maps import Recipe
from parasol.fitting.polynomial import Polynomial
from parasol.fitting.units import unknown_labels
from parasol.learning.labels import Teacher, relative
from parasol.learning.linear import TRAINING, maps_to_try, named
from parasol.learning.region import marked
from parasol.learning.report import LEVEL, Evidence, Outcome, Round, Step, measured_on
from parasol.learning.residual_duals import offers_duals, with_duals
from parasol.learning.samples import (
    FEWEST,
    ROUGH,
    State,
    first_samples,
    joined,
    next_batch,
    reduced_model,
    reserve,
    shrunk,
)
from parasol.learning.solves import SolveCache, Solver, used_up
from parasol.pde.model import Model
from parasol.reduction.snapshots import NothingSolved, Snapshots
from parasol.runtime.conformal import conformal_bound, highest_level
from parasol.runtime.features import features_of, wide_columns
from parasol.runtime.program import StoredMap
from parasol.runtime.surrogate import Surrogate

_N_DOUBTS, _N_DOUBTS_SLOW = 512, 64  # parameters at which the errors to be expected are looked at
_MOST_NUMBERS = 2e7  # of their values at a time
_N_SHARED = 2000  # parameters at which single bounds are compared with the tolerance
_FOLDS = 5  # parts of the solves, each left out once to choose a map where none was tested
_TRIES = 2  # sets of fresh solves that may be calibrated with, each at half of 1 − LEVEL
_N_CALIBRATION = 39  # fresh solves in each, the fewest for that
_FEWEST_ONLY = 2  # where it is the only one: a bound at a level of two thirds, said to be one, is better than none
_MOST_ROUNDS, _SMALL_ROUNDS = 12, 6  # the small ones before maps of full solves are worth trying
_GIVEN_UP = 3  # times the usual number of first samples: a reduced model that cannot be trusted then is left alone
_PATIENCE = 3  # rounds without progress after which a map that was asked for is taken as it is
_LONGEST = 120  # characters of the reason of a failure
_MOST_DIRECTIONS, _PER_DIRECTION = 40, 3  # of functions, each a length of a Gaussian process, and samples for each
_TRUSTED = 0.3  # of the tolerance: a reduced model this good is what maps are fitted to
_USABLE = 0.7  # of the tolerance: one this good may do so where many solves did not make it better
_MOST, _NEARLY_ALL = 5 / 6, 0.98  # of a batch, and of the parameters at which two reduced models are compared
_FOLLOWS = 0.7  # of the tolerance: a map that follows it this closely, at all parameters compared, is good enough
_LABEL_MODES = 0.1  # of the tolerance, left by the modes of labels
_N_LABELS = (256, 1024, 4096)
_N_COMPARED = 1024  # fresh parameters at which a map is compared with the reduced model
_N_COMPARED_SLOW = 256  # the same for reduced models that are nonlinear and in time, which take longer
_STREAM = 10**6  # of random numbers for these: no parameter of a fresh set may ever be among them
# parameters at which two reduced models are compared; fewer where steps take Newton's method
_N_GAPS, _N_GAPS_SLOW = 256, 64


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
    state, limits = first_samples(model, tolerance, cache, recipe, rng), cache.limits
    try:
        outcome = _learned(state)
    except TooFewSamples as error:
        if limits.seconds is None and limits.solves is None:
            raise
        allowed = f"solves={limits.solves}" if limits.seconds is None else f"seconds={limits.seconds:g}"
        raise TooFewSamples(f"{error} {allowed} allowed no more full solves.") from None
    failed = cache.failures()
    if state.space is model.parameters or not len(failed):
        return outcome
    # answers outside of what was learned are refused, and the declared box stays what it was declared
    box = marked(model.parameters, state.space, cache.reason(failed[0])[:_LONGEST])
    return replace(outcome, surrogate=replace(outcome.surrogate, parameters=box))


def _learned(state: State) -> Outcome:
    cache, tolerance = state.cache, state.tolerance
    for number in range(_MOST_ROUNDS + (0 if state.reduced is None else _SMALL_ROUNDS)):
        n_batch = cache.affordable(_batch_size(state), reserve=reserve(cache))
        batch = next_batch(state, n_batch, number) if n_batch >= 2 else None
        if batch is None or not len(batch):
            break
        if shrunk(state, batch):  # what was learned before is not tested on a box that is no more
            if state.reduced is not None:
                state.reduced, state.gaps = reduced_model(state, state.train), None
            continue
        try:
            errors = _round(state, batch)
        except Exhausted:  # no time for the reduced model: what it would have been made from is learned from directly
            state.train, state.reduced = joined(state.train, batch), None
            break
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


def _batch_size(state: State) -> int:
    """Few where each solve may be the last that a reduced model needs, more where maps need many."""
    n = max(len(state.train) - state.n_earlier, 1)
    if state.reduced is None or n >= state.usual:
        return max(4, n // 3)
    return max(2 if len(state.space.scalars) == 1 else 3, n // 4)


def _join(state: State, batch: Snapshots) -> None:
    """The batch becomes training data, also of the reduced model if there is one."""
    state.train = joined(state.train, batch)
    if state.reduced is not None:
        state.reduced, state.renewed = state.renewed or reduced_model(state, state.train), None


def _stalled(history: list[Round]) -> bool:
    """Whether the last rounds brought little although the modes would allow more: the map is the limit."""
    errors = [row.error for row in history]
    if len(errors) <= _PATIENCE:
        return False
    return min(errors[-_PATIENCE:]) > 0.7 * min(errors[:-_PATIENCE]) and history[-1].projection < 0.5 * errors[-1]


# ---- one round ------------------------------------------------------------------------------------------------------
def _round(state: State, batch: Snapshots) -> np.ndarray:
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
        if not trials and len(state.train) >= _GIVEN_UP * state.usual:
            state.reduced = None
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


def _trusted(state: State, batch: Snapshots) -> bool:
    """Whether the reduced model follows the batch, and the batch would not change it anywhere."""
    assert state.reduced is not None
    errors = float(np.quantile(state.reduced.errors(batch), _MOST, method="higher"))  # fresh solves decide in the end
    state.history.append(Step(state.cache.n_solves, error=errors))
    n_gaps, changed = _N_GAPS_SLOW if state.reduced.slow else _N_GAPS, np.inf
    mus = state.sample(n_gaps, "random", _STREAM + len(state.train))
    state.renewed = reduced_model(state, joined(state.train, batch))
    if state.renewed is not None:
        state.gaps = mus, state.renewed.gaps(state.reduced, mus)
        changed = np.quantile(state.gaps[1], _NEARLY_ALL, method="higher")
    many = len(state.train) >= state.usual
    return max(errors, changed) <= _TRUSTED * state.tolerance or (many and errors <= _USABLE * state.tolerance)


def _worst(trial: tuple[Surrogate, Accuracy]) -> float:
    return float(np.max(trial[1].errors))


def _direct(state: State, batch: Snapshots) -> list[tuple[Surrogate, Accuracy]]:
    """Maps fitted to the full solves, with their errors on the batch."""
    recipes = (state.recipe,) if state.chosen else (GaussianProcess(), ROUGH)
    if state.model.parameters.functions and not state.chosen:
        recipes = _of_functions(state)
    direct = [_fitted(state, state.train.mus, None, recipe, "full solves") for recipe in recipes]
    trials = [(one, _score(state, one, batch)) for one in direct]
    least = min(map(_worst, trials))
    state.likeliest = recipes[[_worst(trial) for trial in trials].index(least)]
    if least > state.tolerance or state.chosen or state.model.parameters.functions:
        return trials
    if state.cache.limits.left > TRAINING:
        network = _fitted(state, state.train.mus, None, state.recipe, "full solves")
        score = _score(state, network, batch)
        if np.max(score.errors) <= max(state.tolerance, 2 * least):
            return [(network, score)]  # what every export knows, as good for the purpose
    return trials


def _of_functions(state: State) -> tuple[str | Recipe, ...]:
    """Maps of functions: a matrix, and others of the directions in which they differ most, as many as the samples allow."""
    k = len(state.space.scalars)
    n = min(_MOST_DIRECTIONS, len(state.train) // _PER_DIRECTION - 1) - k
    return ("linear", *[FewDirections(recipe, k, n) for recipe in (GaussianProcess(), ROUGH) if n > 0])


def _fitted(state: State, mus: np.ndarray, teacher: Teacher | None, recipe: str | Recipe, origin: str) -> Surrogate:
    progress = state.cache.stage(f"fitting {named(recipe)} to {len(mus)} labels")
    layout = state.model if isinstance(state.model, Model) else None  # others may have nodes of their own kind
    basis, coefficients = state.labels() if teacher is None else (teacher.basis, teacher.coefficients)
    options = {"model": layout, "origin": origin, "rng": state.rng, "progress": progress}
    return replace(fit_labels(mus, coefficients, basis, state.space, recipe, **options), solver=state.model)


def _taught(state: State) -> tuple[Surrogate, float] | None:
    """The first map, from cheap to dear, that follows the reduced model at parameters it has not seen, or the best.

    With its largest distance from the reduced model there, which costs no full solve.
    """
    cache, source = state.cache, state.reduced
    assert source is not None
    best: tuple[Surrogate, float] | None = None
    try:
        n_compared = _N_COMPARED_SLOW if source.slow else _N_COMPARED
        truth = source.snapshots(state.sample(n_compared, "random", 8))
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
    except Exhausted:
        return best
    return best


def _recipes(state: State, n_labels: int) -> tuple[str | Recipe, ...]:
    """The maps that are worth fitting to so many labels, from cheap to dear."""
    if state.chosen:
        return (state.recipe,)
    few, many = n_labels == _N_LABELS[0], n_labels == _N_LABELS[-1]
    networks = () if few or "best" not in maps_to_try(state.model) else ("best",)
    return (Polynomial(relative=True), *(() if many else (GaussianProcess(),)), *(() if few else (ROUGH,)), *networks)


def _score(state: State, surrogate: Surrogate, truth: Snapshots) -> Accuracy:
    """Errors of the worst of the unknowns at each parameter."""
    return accuracy(surrogate, truth, fields=unknown_labels(state.model), weights=state.weights)


# ---- the bound ------------------------------------------------------------------------------------------------------
def _certify(state: State, *, last: bool) -> Outcome | None:
    """The bound of the best surrogate from fresh solves, which become training data if it is not good enough.

    If this set is the `last` and the first as well, it may take the whole of 1 − LEVEL. Where solves of an earlier one
    fail at a border of the box, the box is cut: that set has been looked at and counts, and the bound waits for the next.
    """
    cache, surrogate = state.cache, state.best
    assert surrogate is not None
    n = cache.affordable(_N_CALIBRATION)
    tries = 1 if last and state.n_fresh_sets == 0 else _TRIES
    if n < (_FEWEST_ONLY if tries == 1 else FEWEST) or state.n_fresh_sets == _TRIES:
        return None
    mus = state.sample(n, "random", 1000 + state.n_fresh_sets)
    state.n_fresh_sets += 1
    try:
        fresh = cache.solve(mus, "fresh ones for the bound")
    except (NothingSolved, Exhausted):
        return None
    if not last and shrunk(state, fresh):
        state.renewed = None
        return None
    outcome = _bounded(state, surrogate, fresh, cache.n_failed(mus), tries)
    state.train, state.renewed = joined(state.train, fresh), None  # for the next round, if there is one
    return outcome


def _bounded(state: State, surrogate: Surrogate, fresh: Snapshots, n_failed: int, tries: int) -> Outcome:
    """The surrogate with a bound from fresh solves drawn at random; those that failed count as infinite errors."""
    score = _score(state, surrogate, fresh)
    errors = np.concatenate([score.errors, np.full(n_failed, np.inf)])
    level, bound = min(LEVEL, highest_level(len(errors), failed=n_failed, tries=tries)), float("inf")
    if level > 0:
        plain = conformal_bound(errors, level=level, tries=tries)
        bound, difficulty = plain.quantile, _difficulty(state, surrogate)
        surrogate = replace(surrogate, conformal=plain)
        if difficulty is not None:
            surrogate = following(surrogate, difficulty, fresh.mus, errors, level=level, tries=tries)
        labels, rows = unknown_labels(state.model), quantity_weights(state.model)
        options = {"labels": labels, "weights": state.weights, "tested": state.tested}
        surrogate = with_parts(surrogate, fresh, rows, level=level, tries=tries, n_failed=n_failed, **options)
    evidence = Evidence(level or None, len(state.cache.failures()), n_failed, state.n_fresh_sets)
    doubt = tries * (1 + n_failed) / (len(errors) + 1)  # that another parameter is worse than all of these
    if level >= LEVEL and offers_duals(state.model) and not state.model.parameters.functions:
        surrogate, evidence = _with_duals(state, surrogate, fresh, doubt, evidence)
    met = bound <= state.tolerance and level >= LEVEL
    limit = ""
    if not met and bound <= state.tolerance:
        limit = "failed solves" if n_failed else "level"
    elif not met:
        limit = "projection" if score.projection > 0.5 * score.mean else "map"
    return Outcome(surrogate, met, bound, limit, tuple(state.history), evidence, measured_on(score))


def _with_duals(
    state: State, surrogate: Surrogate, fresh: Snapshots, doubt: float, evidence: Evidence
) -> tuple[Surrogate, Evidence]:
    """Estimates by random duals where the solver offers what they take, with what they rest on; else a warning says why not."""
    state.cache.stage("random duals, that estimate errors")

    def watch() -> None:
        if state.cache.limits.left <= 0:
            raise used_up("seconds")

    try:
        surrogate = with_duals(state.model, surrogate, state.train, fresh, doubt=doubt, rng=state.rng, watch=watch)
    except NoCertificate as error:
        warnings.warn(f"{error}.", ParasolWarning, stacklevel=2)
        return surrogate, evidence
    except (Exhausted, TooFewSamples):
        return surrogate, evidence
    duals = surrogate.reduced.duals  # type: ignore[union-attr]
    assert duals is not None
    bounds = surrogate.certify(state.sample(_N_SHARED, "random", _STREAM - 2)).relative
    share = {"n_fresh": len(bounds), "share": float(np.mean(bounds <= state.tolerance))}
    known = {"probability": duals.probability, "ratio": duals.ratio, "n_checked": duals.n_checked}
    return surrogate, replace(evidence, **known, **share)


def _difficulty(state: State, surrogate: Surrogate) -> StoredMap | None:
    """A map of the logarithm of the errors to be expected, made without any of the fresh solves; None: no reduced model.

    What a map and the last batch of solves change at some parameters: |map − reduced model| and |renewed − reduced model|.
    """
    old, new = state.reduced, state.renewed
    if old is None or new is None or state.model.parameters.functions or state.cache.limits.left <= 0:
        return None
    most = max(_N_DOUBTS_SLOW, int(_MOST_NUMBERS / surrogate.basis.n_values))
    mus = state.sample(min(_N_DOUBTS_SLOW if old.slow else _N_DOUBTS, most), "random", _STREAM - 1)
    try:
        by_map = relative(
            surrogate.basis.lift(surrogate.coefficients(mus, extrapolate=True)), old.values(mus), old.weights
        )
        doubts = np.hypot(by_map, new.gaps(old, mus))
    except (SolveFailed, Exhausted):
        return None
    known = np.isfinite(doubts) & (doubts > 0)
    if np.mean(known) < 0.9:
        return None
    floor = 0.01 * np.median(doubts[known])
    logs = np.log(np.maximum(doubts[known], floor))
    with suppress(TooFewSamples):
        x = surrogate.features(mus[known])
        return StoredMap.of(GaussianProcess("matern52", trend_degree=0).fit(x, logs[:, None]))
    return None


def _likeliest(state: State) -> str | Recipe:
    """The map that was asked for, or of a smooth and a rough one that which errs less where a fifth of the solves is left out."""
    if state.model.parameters.functions and not state.chosen:
        return state.likeliest or "linear"
    if state.chosen or len(state.train) < 2 * _FOLDS:
        return state.recipe if state.chosen else "gaussian process"
    _, y = state.labels()
    x = features_of(state.space, state.train.mus, more_logs=wide_columns(state.space))(state.train.mus)
    fold = np.random.default_rng([state.rng, len(x)]).permutation(len(x)) % _FOLDS

    def left_out(recipe: GaussianProcess) -> float:
        gaps = [recipe.fit(x[fold != i], y[fold != i]).predict(x[fold == i]) - y[fold == i] for i in range(_FOLDS)]
        return float(np.sqrt(sum(np.sum(gap**2) for gap in gaps)))

    return min((GaussianProcess(), ROUGH), key=left_out)


def _last(state: State) -> Outcome:
    """When rounds, solves or seconds are used up: the best there is, with the bound that can still be had."""
    if state.best is None and state.reduced is not None and state.cache.limits.left > TRAINING:
        taught = _taught(state)
        state.best = None if taught is None else taught[0]
        state.tested = None
    before = state.best, state.tested
    testable = state.n_fresh_sets < _TRIES and state.cache.affordable(FEWEST) == FEWEST
    if state.best is None or (testable and state.best.facts["labels"] == "full solves"):
        # of all the solves, those of the last test too: what comes next tests it with others
        state.best, state.tested = _fitted(state, state.train.mus, None, _likeliest(state), "full solves"), None
    outcome = _certify(state, last=True)
    if outcome is not None:
        return outcome
    if before[0] is not None:  # which was tested at least
        state.best, state.tested = before
    assert state.best is not None
    measured, note = None, "no solves were left to test it"
    if state.tested is not None:  # these were chosen, not drawn: no level can be calibrated with them
        measured = measured_on(_score(state, state.best, state.tested))
        note = f"no solves were left for a bound; its largest error on {measured.n} test solves is {measured.max:.1e}"
    history = tuple(state.history)
    return Outcome(state.best, False, float("inf"), "level", history, measured=measured, notes=(note,))
