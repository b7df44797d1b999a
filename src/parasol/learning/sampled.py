"""Learning from full solves alone: batches where the maps disagree, each first a test and then a lesson."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from parasol.checks import ParasolWarning
from parasol.errors import Exhausted
from parasol.fitting.fit import Accuracy, accuracy, fit_labels, project_all
from parasol.fitting.kernel import GaussianProcess
from parasol.fitting.maps import fit_map
from parasol.fitting.random_features import RandomFeatures
from parasol.fitting.training import NetworkRecipe
from parasol.fitting.units import field_weights, unknown_labels
from parasol.learning.labels import Teacher, teacher_for
from parasol.learning.proven import TRAINING, Outcome, maps_to_try, named
from parasol.learning.region import between, cuts, marked, shortened
from parasol.learning.solves import Book
from parasol.pde.model import Model
from parasol.pde.parameters import ParameterSpace
from parasol.reduction.pod import pod
from parasol.reduction.sampling import sample
from parasol.reduction.snapshots import NothingSolved, Snapshots, as_snapshots
from parasol.runtime.conformal import calibrate, highest_level
from parasol.runtime.features import features_of
from parasol.runtime.surrogate import Surrogate

LEVEL = 0.95
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
_TRUSTED = 0.7  # of the tolerance: a reduced model this good may teach


@dataclass
class _Course:
    """What is known while learning: the box, the samples, the best surrogate so far with its errors on a test."""

    model: Any
    tolerance: float
    book: Book
    recipe: Any  # of the map: the one that was asked for, or one that is taken if it is good enough
    chosen: bool  # whether the recipe was asked for: then no other is used
    rng: int
    space: ParameterSpace
    train: Snapshots
    history: list[dict[str, Any]] = field(default_factory=list)
    best: Surrogate | None = None
    tested: Snapshots | None = None  # what `best` was tested on, not used for it
    n_fresh_sets: int = 0  # of fresh solves for the bound, each with its part of 1 − LEVEL, whatever became of it
    notes: list[str] = field(default_factory=list)

    @property
    def weights(self) -> np.ndarray | None:
        """Of the inner product, (n_values,): every unknown function counts alike, whatever its unit."""
        labels = unknown_labels(self.model)
        return None if labels is None else field_weights(self.train.solutions, labels, least=_SMALLEST)

    def sample(self, n: int, design: str, stream: int) -> np.ndarray:
        """Parameters of the box as it now is; functions are drawn from their laws."""
        whole, n_scalars = self.model.parameters, len(self.space.scalars)
        source = self.model if whole.functions else whole
        mus = sample(source, n, design=design, rng=np.random.default_rng([self.rng, stream]))
        if n_scalars:  # the same points of the unit cube, whatever was cut off the box
            mus[:, :n_scalars] = self.space.from_unit(whole.to_unit(mus[:, :n_scalars]))
        return mus


def learn_sampled(model, tolerance: float, book: Book, *, recipe=None, rng: int = 0) -> Outcome:
    """Stop when a conformal bound at the level 0.95, from solves that nothing else has seen, is below the tolerance.

    Each round solves at a batch of parameters where two maps disagree most, which tests what was learned before and then
    joins it. Labels are the full solves, or where these are too few those of a reduced model that follows the test to
    seven tenths of the tolerance. These tests decide when to calibrate, which is done twice at most: a first fresh set
    with an error above the tolerance becomes training data, and what the second one says is returned. Each of the two is
    calibrated at half of 0.05, so that 0.95 holds of whichever is taken. A `recipe` is obeyed: where more solves no
    longer help it, the search ends.
    """
    course = _start(model, tolerance, book, recipe, rng)
    outcome = _learned(course)
    failed = book.failures()
    if course.space is model.parameters or not len(failed):
        return outcome
    # answers outside of what was learned are refused, and the declared box stays what it was declared
    box = marked(model.parameters, course.space, book.reason(failed[0])[:_LONGEST])
    return replace(outcome, surrogate=replace(outcome.surrogate, parameters=box))


def _learned(course: _Course) -> Outcome:
    book, tolerance = course.book, course.tolerance
    for number in range(_MOST_ROUNDS):
        n_batch = book.affordable(max(4, len(course.train) // 3), reserve=_reserve(book))
        batch = _batch(course, n_batch, number) if n_batch >= 2 else None
        if batch is None or not len(batch):
            break
        if _shrunk(course, batch):  # what was learned before is not tested on a box that is no more
            continue
        errors = _round(course, batch)
        good = np.max(errors) <= tolerance
        if course.n_fresh_sets == 0:  # the second set is the last one: it waits until nothing is above
            good |= np.quantile(errors, 0.8) <= 0.5 * tolerance
        if good:
            last = course.n_fresh_sets >= _TRIES - 1 or book.affordable(_N_CALIBRATION) < _N_CALIBRATION
            outcome = _certify(course, last=last)
            if outcome is not None and (outcome.met or last):
                return outcome
        course.train = joined(course.train, batch)
        if course.chosen and _stalled(course.history):
            break
    return _last(course)


def _stalled(history: list[dict[str, Any]]) -> bool:
    """Whether the last rounds brought little although the modes would allow more: the map is the limit."""
    errors = [row["error"] for row in history]
    if len(errors) <= _PATIENCE:
        return False
    return min(errors[-_PATIENCE:]) > 0.7 * min(errors[:-_PATIENCE]) and history[-1]["projection"] < 0.5 * errors[-1]


# ---- before the first round -----------------------------------------------------------------------------------------
def _start(model, tolerance: float, book: Book, recipe, rng: int) -> _Course:
    """The first samples: spread towards the ends of the ranges, with the corners; the box cut where solves fail."""
    space = model.parameters
    p = len(space.scalars)
    n = {0: 24, 1: 9, 2: 16, 3: 28}.get(p, 16 * p - 16)
    usual = maps_to_try(model)[0] if recipe is None else recipe
    course = _Course(model, tolerance, book, usual, recipe is not None, rng, space, None)  # type: ignore[arg-type]
    mus = course.sample(n, "edges", 0)
    if 1 <= p <= 3 and not space.functions:
        mus = np.vstack([space.grid(*[2] * p), mus])
    n = book.affordable(len(mus), reserve=_reserve(book))
    if book.limits.solves is None and (book.limits.seconds or 0.0) > _FEWEST * book.cost:
        n = max(n, _FEWEST)  # even if choosing nodes took all the time: without these there is nothing to return
    if n < _FEWEST:
        raise Exhausted("too few full solves are allowed to learn anything. Allow more with solves or seconds.")
    if course.chosen and space.functions and not isinstance(recipe, NetworkRecipe):
        fit_map(recipe, mus[:n], mus[:n, :1])  # a map for which these are too many inputs says so before the solves
    course.train = book.solve(mus[:n], "the first samples", at_least=_FEWEST)
    _cut(course)
    return course


def _shrunk(course: _Course, new: Snapshots) -> bool:
    """Whether solves failed beside the new ones at a border of the box: it is cut, and the new ones join the training."""
    failed = course.book.failures()
    if not len(failed) or not np.any(course.space.inside(failed)):
        return False
    before, train = course.space, course.train
    course.train = joined(train, new)
    _cut(course)
    if course.space is before:
        course.train = train
    return course.space is not before


def _cut(course: _Course) -> None:
    """Shorten the box to where there are solutions, if failures say so and less than half of the samples is lost."""
    book, whole = course.book, course.model.parameters
    failed = book.failures()
    if not len(failed) or not whole.scalars or not np.any(course.space.inside(failed)):
        return
    for _ in range(8):
        found = cuts(whole, course.train.mus, book.failures())
        mus = between(whole, found, course.train.mus)
        if not len(mus) or book.affordable(len(mus)) < len(mus):
            break
        try:
            course.train = joined(course.train, book.solve(mus, "where solutions end"))
        except NothingSolved:  # the border moves inwards
            continue
        except Exhausted:
            break
    found = cuts(whole, course.train.mus, book.failures())
    space = shortened(whole, found)
    inside = space.inside(course.train.mus)
    if not found or (course.best is not None and np.count_nonzero(inside) < len(inside) / 2):
        return  # failures here and there inside: no border, and no box without them worth having
    course.space = space
    course.train = as_snapshots(
        course.train.mus[inside], course.train.solutions[inside], hidden=course.train.hidden[inside]
    )


# ---- one round ------------------------------------------------------------------------------------------------------
def _round(course: _Course, batch: Snapshots) -> np.ndarray:
    """Fit to the training set, test on the batch; the errors of the best surrogate, which is noted."""
    worst = lambda pair: float(np.max(pair[1].errors))  # noqa: E731
    recipes = (course.recipe,) if course.chosen else (GaussianProcess(), _ROUGH)
    direct = [_fitted(course, course.train.mus, None, recipe, "full solves") for recipe in recipes]
    trials = [(one, _score(course, one, batch)) for one in direct]
    least = min(map(worst, trials))
    if least > course.tolerance:
        taught = _taught(course, batch)
        if taught is not None:
            trials.append((taught, _score(course, taught, batch)))
    elif not course.chosen and not course.model.parameters.functions and course.book.limits.left > TRAINING:
        network = _fitted(course, course.train.mus, None, course.recipe, "full solves")
        found = _score(course, network, batch)
        if np.max(found.errors) <= max(course.tolerance, 2 * least):
            trials = [(network, found)]  # what every export knows, as good for the purpose
    surrogate, found = min(trials, key=worst)
    row = {"solves": course.book.n_solves, "error": float(np.max(found.errors)), "mean": found.mean}
    row |= {"projection": float(np.max(found.projection_errors)), "n_modes": surrogate.basis.n_modes}
    course.history.append(row | {"labels": surrogate.facts["labels"], "map": surrogate.facts["recipe"]})
    course.best, course.tested = surrogate, batch
    return found.errors


def _fitted(course: _Course, mus, teacher: Teacher | None, recipe, origin: str) -> Surrogate:
    told = course.book.stage(f"fitting {named(recipe)} to {len(mus)} labels")
    layout = course.model if isinstance(course.model, Model) else None  # others may have nodes of their own kind
    if teacher is not None:
        basis, coefficients = teacher.basis, teacher.coefficients
    else:
        basis = pod(course.train, tolerance=_MODES * course.tolerance, weights=course.weights)
        coefficients = project_all(basis, course.train)
    if course.model.parameters.functions and len(mus) < _FEW_FUNCTIONS and not course.chosen:
        recipe = "linear"
    out = fit_labels(
        mus, coefficients, basis, course.space, recipe, model=layout, origin=origin, rng=course.rng, progress=told
    )
    return replace(out, solver=course.model)


def _taught(course: _Course, batch: Snapshots) -> Surrogate | None:
    """A map fitted to labels of a reduced model, if there is one that follows the batch closely enough."""
    if course.book.limits.left < _TEACHING:
        return None
    course.book.stage("making a reduced model for labels")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParasolWarning)
        teacher = teacher_for(
            course.model,
            course.train,
            batch,
            most_error=_TRUSTED * course.tolerance,
            tolerance=course.tolerance,
            draw=lambda n: course.sample(n, "sobol", 7),
        )
    if teacher is None:
        return None
    return _fitted(course, teacher.mus, teacher, course.recipe, "reduced model")


def _batch(course: _Course, n: int, number: int) -> Snapshots | None:
    """Solve at n parameters where two maps disagree most, none close to another or to what is known."""
    candidates = course.sample(_N_CANDIDATES, "random", 100 + number)
    # functions have no box in which distances would mean much
    chosen = candidates[:n] if course.model.parameters.functions else candidates[_spread(course, candidates, n)]
    try:
        return course.book.solve(chosen, f"round {number + 1}, where maps disagree")
    except (NothingSolved, Exhausted):
        return None


def _spread(course: _Course, candidates: np.ndarray, n: int) -> list[int]:
    """Indices of candidates by disagreement × distance to the nearest sample, one after the other."""
    train = course.train
    features = features_of(course.space, train.mus)
    basis = pod(train, tolerance=_MODES * course.tolerance, weights=course.weights)
    y = project_all(basis, train)
    # two maps that share nothing but the samples: where they part, the samples say too little
    x, at = features(train.mus), features(candidates)
    found = [recipe.fit(x, y).predict(at) for recipe in (GaussianProcess(), RandomFeatures())]
    size = np.linalg.norm(found[0], axis=1)
    gap = np.linalg.norm(found[0] - found[1], axis=1) / np.maximum(size, 1e-3 * np.max(size))
    gap = np.sqrt(gap / (np.max(gap) or 1.0)) + 0.05
    nearest = np.min(np.linalg.norm(at[:, None] - x[None], axis=2), axis=1)
    chosen: list[int] = []
    for _ in range(n):
        best = int(np.argmax(gap * nearest))
        chosen.append(best)
        nearest = np.minimum(nearest, np.linalg.norm(at - at[best], axis=1))
    return chosen


def _score(course: _Course, surrogate: Surrogate, truth: Snapshots) -> Accuracy:
    """Errors of the worst of the unknowns at each parameter."""
    return accuracy(surrogate, truth, fields=unknown_labels(course.model), weights=course.weights)


# ---- the bound ------------------------------------------------------------------------------------------------------
def _reserve(book: Book) -> int:
    """Full solves kept back for the bound where their number is limited."""
    limit = book.limits.solves
    return 0 if limit is None and book.limits.seconds is None else min(19, (limit or 60) // 3)


def _certify(course: _Course, *, last: bool) -> Outcome | None:
    """The bound of the best surrogate from fresh solves, which become training data if it is not good enough.

    If this set is the `last` and the first as well, it may take the whole of 1 − LEVEL. Where solves of an earlier one
    fail at a border of the box, the box is cut: that set has been looked at and counts, and the bound waits for the next.
    """
    book, surrogate = course.book, course.best
    assert surrogate is not None
    n = book.affordable(_N_CALIBRATION)
    if n < _FEWEST or course.n_fresh_sets == _TRIES:
        return None
    tries = 1 if last and course.n_fresh_sets == 0 else _TRIES
    mus = course.sample(n, "random", 1000 + course.n_fresh_sets)
    course.n_fresh_sets += 1
    try:
        fresh = book.solve(mus, "fresh ones for the bound")
    except (NothingSolved, Exhausted):
        return None
    if not last and _shrunk(course, fresh):
        return None
    outcome = _bounded(course, surrogate, fresh, book.n_failed(mus), tries)
    course.train = joined(course.train, fresh)  # for the next round, if there is one
    return outcome


def _bounded(course: _Course, surrogate: Surrogate, fresh: Snapshots, n_failed: int, tries: int) -> Outcome:
    """The surrogate with a bound from fresh solves drawn at random; those that failed count as infinite errors."""
    found = _score(course, surrogate, fresh)
    errors = np.concatenate([found.errors, np.full(n_failed, np.inf)])
    level, bound = min(LEVEL, highest_level(len(errors), failed=n_failed, tries=tries)), float("inf")
    if level > 0:
        surrogate = replace(surrogate, conformal=calibrate(errors, level=level, tries=tries))
        bound = surrogate.conformal.quantile  # type: ignore[union-attr]
    measured = {"n": len(fresh), "mean": found.mean, "max": float(np.max(found.errors))}
    facts = {"measured": measured | {"projection": found.projection}, "level": level or None, "notes": course.notes}
    facts |= {"n_failed": len(course.book.failures()), "n_failed_fresh": n_failed, "n_tries": course.n_fresh_sets}
    met = bound <= course.tolerance and level >= LEVEL
    limit = ""
    if not met and bound <= course.tolerance:
        limit = "failed solves" if n_failed else "level"
    elif not met:
        limit = "projection" if found.projection > 0.5 * found.mean else "map"
    return Outcome(surrogate, met, bound, limit, tuple(course.history), facts)


def _last(course: _Course) -> Outcome:
    """When rounds, solves or seconds are used up: the best there is, with the bound that can still be had."""
    if course.best is None:
        usual = course.recipe if course.chosen else "gaussian process"
        course.best = _fitted(course, course.train.mus, None, usual, "full solves")
        course.tested = None
    outcome = _certify(course, last=True)
    if outcome is not None:
        return outcome
    facts: dict[str, Any] = {"notes": [*course.notes, "no solves were left to test it"], "level": None}
    if course.tested is not None:  # these were chosen, not drawn: no level can be calibrated with them
        found = _score(course, course.best, course.tested)
        measured = {"n": len(course.tested), "mean": found.mean, "max": float(np.max(found.errors))}
        said = f"no solves were left for a bound; its largest error on {measured['n']} test solves is {measured['max']:.1e}"
        facts |= {"measured": measured | {"projection": found.projection}, "notes": [*course.notes, said]}
    return Outcome(course.best, False, float("inf"), "level", tuple(course.history), facts)


def joined(one: Snapshots, other: Snapshots) -> Snapshots:
    """Both sets of samples as one, a parameter of both once."""
    known = {mu.tobytes() for mu in one.mus}
    new = np.array([mu.tobytes() not in known for mu in other.mus], dtype=bool)
    parts = [(one.mus, one.solutions, one.hidden), (other.mus[new], other.solutions[new], other.hidden[new])]
    mus, solutions, hidden = (np.concatenate(pair) for pair in zip(*parts, strict=True))
    return as_snapshots(mus, solutions, hidden=hidden)
