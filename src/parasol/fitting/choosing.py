"""Which map for data: cross-validated from cheap to dear, with as many modes as can be predicted."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from parasol.checks import Progress
from parasol.errors import InputError, ParasolWarning
from parasol.fitting.calibration import difficulty_of
from parasol.fitting.fit import Labels, surrogate_of
from parasol.fitting.gaussian_process import MOST_LENGTHS, GaussianProcess
from parasol.fitting.kernel_ridge import KernelRidge
from parasol.fitting.linear import Linear
from parasol.fitting.logarithms import features_for
from parasol.fitting.maps import Recipe, fit_map
from parasol.fitting.polynomial import Polynomial
from parasol.fitting.training import NetworkRecipe
from parasol.runtime.basis import Basis
from parasol.runtime.features import Features, features_of
from parasol.runtime.parameters import ParameterSpace
from parasol.runtime.plain import Plain
from parasol.runtime.program import StoredMap
from parasol.runtime.surrogate import Surrogate

_FOLDS = 5
_FEW = 600  # samples up to which each part is left out once; of more, two parts tell as much
_MOST_WITH_TREND = 1200  # samples above which a process with all terms of a polynomial takes half a minute
_MOST_CENTRES = 4000  # samples above which kernels of all of them take minutes
_FEWEST_FOR_NETWORKS = 80  # samples below which a network was never the best
_FEW_INPUTS = 12  # up to which a box holds most samples of a cloud, and components of the inputs gain nothing
_HOPE = 100.0  # times that training may lower the error of a network (measured: 15 to 140)
BETTER = 0.9  # of the error that a dearer map must come below
_AT_FLOOR = 1.2  # times the error of the projection: no map can do much better
_ROUNDING = 1e-12
_WELL_BELOW = 0.1  # of the tolerance of the basis
_AT_NOISE = 1.5  # times noise, by its median over modes: the mean of its squares is up to 1.5 times theirs
_FEWEST_OF_NOISE = 10  # modes not predicted that tell how large noise is
_SMALLEST = 1e-3  # of the usual size of a solution: relative to less no error is measured
_AS_GOOD = 1.02  # of the least squared error: fewer modes may leave so much
_NOT_PREDICTED = 0.8  # of the squared coefficients of modes left out, from which on they are not predicted
_PROCESS, _NETWORK = GaussianProcess(), NetworkRecipe.best()  # the dear ones


@dataclass(frozen=True)
class _Untrained:
    def fit(self, x: np.ndarray, y: np.ndarray, *, rng: int = 0) -> _Untrained:
        return replace(self, network=_NETWORK.untrained(x, y, rng=rng))

    network: Any = None

    def predict(self, x: np.ndarray) -> np.ndarray:
        return self.network(x)


@dataclass(frozen=True)
class Candidate:
    """A map to try, on how many of the parts that are left out."""

    name: str
    recipe: Recipe
    n_parts: int


@dataclass(frozen=True, eq=False)
class Rows:
    """What a choice may see: coefficients and sizes of solutions, and which rows belong together."""

    x: np.ndarray  # (n, p) features
    coefficients: np.ndarray  # (n, n_modes)
    rest: np.ndarray  # (n,) what the basis leaves of each solution
    sizes: np.ndarray  # (n,)
    part: np.ndarray  # (n,) whole numbers: rows of one part are left out together
    group: np.ndarray  # (n,) whole numbers: rows that belong together

    def parts_of(self, some: np.ndarray) -> np.ndarray:
        """Parts of some rows; those of one part are divided anew, by their groups."""
        part = self.part[some]
        return part if len(np.unique(part)) > 1 else _parts(self.group[some], 0)

    @property
    def floor(self) -> float:
        """The mean relative error of the projection."""
        return float(np.mean(self.rest / self.sizes))


@dataclass(frozen=True, eq=False)
class Tried:
    """A map, its squared relative errors in each coefficient of rows left out, and how many modes it predicts."""

    candidate: Candidate
    left_out: np.ndarray  # (n,) bool: the rows it was tried on
    squares: (
        np.ndarray
    )  # (n, n_modes to the tolerance): errors, or the coefficient itself of modes that are not predicted
    n_modes: int
    error: float  # mean relative error of these rows, with what the basis leaves of them

    def beats(self, other: Tried, share: float = BETTER) -> bool:
        """Whether it errs clearly less on the rows both were tried on, in the modes one of them predicts: others are noise."""
        rows, n = self.left_out & other.left_out, max(self.n_modes, other.n_modes)
        mine, yours = (float(np.mean(np.sqrt(t.squares[rows, :n].sum(axis=1)))) for t in (self, other))
        return mine < share * yours

    def at_floor(self, rows: Rows) -> bool:
        """Whether it errs as the projection does."""
        return self.error <= _AT_FLOOR * max(rows.floor, _ROUNDING)

    @property
    def at_noise(self) -> bool:
        """Whether errors in the modes predicted are as large as the others are: noise is alike in all of them."""
        squares = self.squares[self.left_out].mean(axis=0)
        noise = squares[self.n_modes :]
        if len(noise) < _FEWEST_OF_NOISE:
            return False
        return bool(squares[: self.n_modes].sum() <= _AT_NOISE**2 * self.n_modes * np.median(noise))


def fit_rows(
    recipe: str | Recipe,
    basis: Basis,
    parameters: ParameterSpace,
    mus: np.ndarray,
    solutions: np.ndarray,
    group: np.ndarray | None = None,
    *,
    tolerance: float | None = None,
    rng: int = 0,
    progress: Progress = None,
) -> Surrogate:
    """A surrogate of data by a recipe, or with "best" by the map that errs least where a fifth of the groups is left out.

    Maps are tried from cheap to dear: linear, polynomial, Gaussian processes (kernels in principal components of more than
    12 inputs), network. A dearer one is taken if it errs a tenth less; none is tried once the error is that of the projection.
    Logarithms of positive parameters of more than a decade, whose scale is not declared, are taken if maps of them err a tenth less.
    Where the basis was made to a `tolerance`, a network is not tried if a tenth of it is reached without, and modes are left out
    from where on coefficients are not predicted better than by zero, for noise or for want of samples. The choice is in
    `facts["choice"]`, the errors to be expected, by those of rows left out, in `difficulty`.
    """
    if recipe != "best":
        labels = Labels(mus, basis.project(solutions))
        return surrogate_of(recipe, basis, parameters, labels, None, "data", rng, progress)
    heard = (lambda _: None) if progress is None else progress
    samples = (mus, solutions, group)
    chosen = choose(basis, parameters, *samples, tolerance=tolerance, rng=rng, progress=lambda done: heard(0.5 * done))
    surrogate = chosen.fit(parameters, mus, rng=rng, progress=lambda done: heard(0.5 + 0.5 * done))
    return replace(surrogate, difficulty=chosen.difficulty)


@dataclass(frozen=True, eq=False)
class Choice:
    """The map that errs least on rows left out, what it saw, and what was tried besides."""

    basis: Basis
    rows: Rows
    features: Features
    best: Tried
    facts: Plain

    @property
    def errors(self) -> np.ndarray:
        """Relative errors (n,) of the rows, those that were left out with the map; what the basis leaves included."""
        return np.sqrt(self.best.squares.sum(axis=1) + (self.rows.rest / self.rows.sizes) ** 2)

    @property
    def difficulty(self) -> StoredMap | None:
        """The map from features to errors, where those of the rows left out follow them."""
        seen = self.best.left_out
        return difficulty_of(self.rows.x[seen], self.errors[seen], self.rows.parts_of(seen))

    def fit(self, parameters: ParameterSpace, mus: np.ndarray, *, rng: int, progress: Callable | None) -> Surrogate:
        """The map fitted to all rows, with the modes that it predicts."""
        n = self.best.n_modes
        if n < self.basis.n_modes:
            warnings.warn(
                f"the tolerance needs {self.basis.n_modes} modes, of which these samples predict {n}: the rest is noise, or "
                f"more than so few samples tell, and is left out. Errors of about {self.best.error:.1e} remain.",
                ParasolWarning,
                stacklevel=4,
            )
        basis, labels = self.basis.truncated(n), Labels(mus, self.rows.coefficients[:, :n])
        recipe = self.best.candidate.recipe
        options = {"features": self.features}
        surrogate = surrogate_of(recipe, basis, parameters, labels, None, "data", rng, progress, **options)
        return replace(surrogate, facts={**surrogate.facts, "choice": self.facts})


def choose(
    basis: Basis,
    parameters: ParameterSpace,
    mus: np.ndarray,
    solutions: np.ndarray,
    group: np.ndarray | None = None,
    *,
    tolerance: float | None = None,
    rng: int = 0,
    progress: Progress = None,
) -> Choice:
    """The choice that `fit_rows` makes with "best"."""
    coefficients = basis.project(solutions)
    sizes = basis.norm(solutions)
    rest = basis.projection_errors(solutions) * sizes
    sizes = np.maximum(sizes, _SMALLEST * float(np.sqrt(np.mean(sizes**2))) or 1.0)
    features = features_of(parameters, mus)
    group = np.arange(len(mus)) if group is None else group
    rows = Rows(features(mus), coefficients, rest, sizes, _parts(group, rng), group)
    cheap, dear = _candidates(*rows.x.shape)
    trials = _Trials(tolerance, rng, progress)
    outcome, logarithms = trials.of(cheap, rows, part=(0.0, 0.3)), None
    if outcome.best is None or not outcome.best.at_floor(rows):
        others = features_for(parameters, mus, coefficients)
        if np.any(others.logs != features.logs):
            other_rows = replace(rows, x=others(mus))
            other = trials.of(cheap, other_rows, part=(0.3, 0.5))
            needed = _needed(other, parameters, mus, other_rows, others, features, trials)
            if np.any(needed.logs != others.logs):
                others, other_rows = needed, replace(rows, x=needed(mus))
                other = trials.of(cheap, other_rows, part=(0.5, 0.6))
            names = [p.name for p, log in zip(parameters.scalars, others.logs & ~features.logs, strict=False) if log]
            kept = other.best is not None and (outcome.best is None or other.best.beats(outcome.best))
            logarithms = {"parameters": names, "kept": kept, "error": other.error, "without": outcome.error}
            if kept:
                rows, features, outcome = other_rows, others, other
    outcome = trials.of(dear, rows, outcome, part=(0.6, 1.0))
    best = outcome.best
    if best is None:
        raise InputError("no map can be fitted to these samples: " + "; ".join(outcome.not_tried.values()))
    facts = {"map": best.candidate.name, "errors": outcome.errors, "not_tried": outcome.not_tried, "floor": rows.floor}
    if logarithms is not None:
        facts["logarithms"] = logarithms
    if best.n_modes < basis.n_modes:
        facts["modes_to_tolerance"] = basis.n_modes
    return Choice(basis, rows, features, best, facts)


def _needed(
    outcome: _Outcome,
    parameters: ParameterSpace,
    mus: np.ndarray,
    rows: Rows,
    features: Features,
    plain: Features,
    trials: _Trials,
) -> Features:
    """Features without the logarithms that the best map does as well without: a polynomial may have proposed too many."""
    columns = np.flatnonzero(features.logs & ~plain.logs)
    if len(columns) < 2 or outcome.best is None:
        return features
    best = outcome.best
    for j in columns:
        fewer = features_of(parameters, mus, more_logs=np.setdiff1d(np.flatnonzero(features.logs), [j]))
        try:
            tried = _tried(best.candidate, replace(rows, x=fewer(mus)), trials.tolerance is not None, trials.rng)
        except (InputError, np.linalg.LinAlgError):
            continue
        if not best.beats(tried):
            best, features = tried, fewer
    return features


def choice_words(choice: Plain, names: tuple[str, ...] = ()) -> str:
    """The choice of a map as a sentence of the report; of several fields with a map each, by their `names`."""
    if "fields" in choice:
        said = [f"{name} {_scores(part)}" for name, part in zip(names, choice["fields"], strict=False)]
        return f"each field has a basis and a map of its own, chosen by errors on samples left out: {'; '.join(said)}."
    return f"the map was chosen by its errors on samples left out: {_scores(choice)}."


def _scores(choice: Plain) -> str:
    errors = dict(choice["errors"])
    parts = [f"{choice['map']} ({errors.pop(choice['map']):.1e})"]
    parts += [f"{name} ({error:.1e})" for name, error in errors.items()]
    words = ", ".join(parts + [f"{name} (not tried: {reason})" for name, reason in choice["not_tried"].items()])
    logs = choice.get("logarithms")
    if not logs:
        return words
    of = ", ".join(f"log {name}" for name in logs["parameters"])
    if logs["kept"]:
        without = "" if logs["without"] is None else f", where errors would be {logs['without']:.1e}"
        return f"{words}, all of {of} and not of {', '.join(logs['parameters'])}{without}"
    return f"{words}; with {of} none erred clearly less"


@dataclass(frozen=True, eq=False)
class _Outcome:
    """The best map so far, the errors of all that were tried, and why others were not."""

    best: Tried | None = None
    errors: dict[str, float] = field(default_factory=dict)
    not_tried: dict[str, str] = field(default_factory=dict)

    @property
    def error(self) -> float | None:
        return None if self.best is None else self.best.error


@dataclass(frozen=True)
class _Trials:
    """What all trials of a choice have in common."""

    tolerance: float | None
    rng: int
    progress: Progress

    def of(
        self, candidates: list[Candidate], rows: Rows, outcome: _Outcome | None = None, *, part: tuple[float, float]
    ) -> _Outcome:
        """The outcome, after these candidates too; they are that `part` of the work."""
        outcome = _Outcome() if outcome is None else outcome
        best, errors, not_tried = outcome.best, dict(outcome.errors), dict(outcome.not_tried)
        for i, candidate in enumerate(candidates):
            reason = _hopeless(candidate, rows, best, self.tolerance, self.rng)
            if reason is None:
                try:
                    tried = _tried(candidate, rows, self.tolerance is not None, self.rng)
                except (InputError, np.linalg.LinAlgError) as error:  # too few samples, or too many
                    reason = str(error)
                else:
                    errors[candidate.name] = tried.error
                    best = tried if best is None or tried.beats(best) else best
            if reason is not None:
                not_tried[candidate.name] = reason
            if self.progress is not None:
                self.progress(part[0] + (part[1] - part[0]) * (i + 1) / len(candidates))
        return _Outcome(best, errors, not_tried)


def _hopeless(candidate: Candidate, rows: Rows, best: Tried | None, tolerance: float | None, rng: int) -> str | None:
    """Why a map need not be tried; None where it is worth it."""
    if best is not None and best.at_floor(rows):
        return "errors are those of the projection already"
    dear = candidate.recipe is _NETWORK or candidate.recipe is _PROCESS
    if dear and best is not None and tolerance is not None and best.error <= _WELL_BELOW * tolerance:
        return "errors are well below the tolerance already"
    if candidate.recipe is not _NETWORK:
        return None
    if best is not None and best.at_noise:
        return "errors are those of the noise already"
    if not (find_spec("jax") and find_spec("optax")):
        return "JAX is not installed: pip install 'parasol-pde[train]'"
    if best is not None:
        untrained = _tried(Candidate("untrained", _Untrained(), 1), rows, False, rng)
        if best.beats(untrained, BETTER / _HOPE):
            return "before training it errs more than a hundred times as much"
    return None


def _candidates(n: int, n_inputs: int) -> tuple[list[Candidate], list[Candidate]]:
    """The maps worth trying on n samples, from cheap to dear; the dear ones apart."""
    many, once = (_FOLDS, _FOLDS) if n <= _FEW else (2, 1)
    cheap, dear = [Candidate("linear", Linear(), many)], []
    if n_inputs > _FEW_INPUTS:
        cheap.append(Candidate("kernel ridge", KernelRidge(), once))
    if n_inputs > MOST_LENGTHS:  # values of functions
        return cheap, dear
    cheap.append(Candidate("polynomial", Polynomial(), many))
    if n <= _MOST_CENTRES:
        cheap.append(Candidate("gaussian process", GaussianProcess(trend_degree=1), many))
        cheap.append(Candidate("rough gaussian process", GaussianProcess("matern52", trend_degree=1), many))
    if n <= _MOST_WITH_TREND:
        dear.append(Candidate("gaussian process and polynomial", _PROCESS, once))
    if n >= _FEWEST_FOR_NETWORKS:
        dear.append(Candidate("network", _NETWORK, 1))
    return cheap, dear


def _tried(candidate: Candidate, rows: Rows, fewer_modes: bool, rng: int) -> Tried:
    """Errors on the rows left out, with all modes, and again with those that are predicted where they are fewer."""
    n_modes, best = rows.coefficients.shape[1], None
    while True:
        left_out, squares = _squares(candidate, rows, n_modes, rng)
        left_out = left_out if left_out.any() else np.ones(len(left_out), dtype=bool)
        energy = (rows.coefficients / rows.sizes[:, None]) ** 2
        means = (v[left_out, :n_modes].mean(axis=0) for v in (squares, energy))
        kept = _n_predicted(*means) if fewer_modes else n_modes
        squares[:, kept:] = energy[:, kept:]
        errors = np.sqrt(squares.sum(axis=1) + (rows.rest / rows.sizes) ** 2)
        tried = Tried(candidate, left_out, squares, kept, float(np.mean(errors[left_out])))
        if best is None or tried.error <= best.error:
            best = tried
        if kept == n_modes or tried is not best:
            return best
        n_modes = kept  # noise in the others no longer decides lengths and ridges


def _squares(candidate: Candidate, rows: Rows, n_modes: int, rng: int) -> tuple[np.ndarray, np.ndarray]:
    """Which rows were left out, and the squared relative errors of the first coefficients there, the rest as it is."""
    x, y = rows.x, rows.coefficients[:, :n_modes]
    left_out, gaps = np.zeros(len(x), dtype=bool), rows.coefficients.copy()
    for part in range(min(candidate.n_parts, int(rows.part.max()) + 1)):
        out = rows.part == part
        with threadpool_limits(1):
            fitted = fit_map(candidate.recipe, x[~out], y[~out], rng=rng)
        gaps[out, :n_modes] = fitted.predict(x[out]) - y[out]
        left_out |= out & _within(x, x[~out])
    return left_out, (gaps / rows.sizes[:, None]) ** 2


def _within(x: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Rows inside the box of those seen. No others are asked for, and one of them far out would decide everything."""
    if x.shape[1] > _FEW_INPUTS:
        return np.ones(len(x), dtype=bool)
    return np.all((x >= seen.min(axis=0)) & (x <= seen.max(axis=0)), axis=1)


def _n_predicted(squares: np.ndarray, energy: np.ndarray) -> int:
    """The number of modes that leaves the least error, if what is beyond is not predicted; else all of them.

    `squares` (n_modes,) are the mean squared errors of coefficients, `energy` their mean squares: what is left of a mode
    that is predicted, and of one that is left out.

    >>> _n_predicted(np.array([0.01, 0.01, 1.1, 0.9]), np.array([9.0, 4.0, 1.0, 1.0]))
    2
    >>> _n_predicted(np.array([1e-6, 1e-6, 1e-6]), np.array([9.0, 4.0, 1e-4]))
    3
    """
    total = np.append(0.0, np.cumsum(squares)) + np.append(np.cumsum(energy[::-1])[::-1], 0.0)
    kept = max(1, int(np.argmax(total <= _AS_GOOD * total.min())))
    return kept if squares[kept:].sum() > _NOT_PREDICTED * energy[kept:].sum() else len(squares)


def _parts(group: np.ndarray, rng: int) -> np.ndarray:
    """A number 0 … 4 for each row, drawn at random, the same for rows of one group."""
    group = np.unique(group, return_inverse=True)[1]
    group = group if group.any() else np.arange(len(group))  # one group alone cannot be left out
    n_groups = int(group.max()) + 1
    return (np.random.default_rng(rng).permutation(n_groups) % min(_FOLDS, n_groups))[group]
