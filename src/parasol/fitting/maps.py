"""Maps from features to coefficients, one interface for ours and anybody's, and which of them suits the data best."""

from __future__ import annotations

import copy
import inspect
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parasol.checks import ParasolError, check_count, check_shape
from parasol.fitting.kernel import GaussianProcess
from parasol.fitting.linear import Linear, check_data
from parasol.fitting.polynomial import Polynomial
from parasol.fitting.random_features import RandomFeatures

__all__ = ["Comparison", "GaussianProcess", "Linear", "Polynomial", "RandomFeatures", "Trial", "choose", "fit_map"]


@dataclass(frozen=True, eq=False)
class Trial:
    """How one recipe did on samples that it was not fitted to; `reason` says why a recipe that failed did."""

    name: str
    recipe: Any
    error: float  # mean over samples of |prediction − y| / |y|; inf if it failed
    spread: float  # standard deviation of that over the folds
    seconds: float  # of one fit
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Recipes from best to worst, each fitted `n_folds` times and judged by the samples left out."""

    trials: tuple[Trial, ...]
    n_samples: int
    n_folds: int

    @property
    def best(self) -> Trial:
        """The trial with the least error."""
        return self.trials[0]

    def __getitem__(self, name: str) -> Trial:
        for trial in self.trials:
            if trial.name == name:
                return trial
        raise ParasolError(f"no recipe is called {name!r}. There are: {', '.join(t.name for t in self.trials)}.")

    def verdict(self, name: str) -> str:
        """One sentence on how a recipe stands against the best of the others."""
        mine = self[name]
        others = [trial for trial in self.trials if trial is not mine]
        if not others:
            return f"{name} was compared with nothing: error {mine.error:.1e}."
        rival = others[0]
        if mine.error <= rival.error:
            return f"{name} is the best of {len(self.trials)}: {mine.error:.1e}, before {rival.name} with {rival.error:.1e}."
        if not np.isfinite(mine.error):
            return f"{name} failed ({mine.reason}); {rival.name} has an error of {rival.error:.1e}."
        times = "inf" if not rival.error else f"{mine.error / rival.error:.2g}"
        return (
            f"{rival.name} beats {name}: {rival.error:.1e} against {mine.error:.1e} ({times} times less) "
            f"in {rival.seconds:.2g} s instead of {mine.seconds:.2g} s."
        )

    def __str__(self) -> str:
        width = max(len("recipe"), *(len(trial.name) for trial in self.trials))
        lines = [f"{'recipe':<{width}}  {'error':>8}  {'spread':>8}  {'fit s':>8}"]
        for t in self.trials:
            row = f"{t.name:<{width}}  {t.error:8.1e}  {t.spread:8.1e}  {t.seconds:8.2g}"
            lines.append(f"{row}  {t.reason}".rstrip())
        return "\n".join(lines)


def choose(x, y, recipes: Sequence[Any] | Mapping[str, Any], *, folds: int = 5, rng=0, progress=None) -> Comparison:
    """Fit every recipe to all folds but one of inputs (n, p) and outputs (n, d), judge it by that one, and rank them.

    A recipe is anything with `fit(x, y)` that returns something with `predict(x)`, scikit-learn's regressors included;
    it is copied first, so a recipe that keeps what it learned is not changed. One that raises comes last with the reason.
    All see the same folds.

    >>> x = np.linspace(-1, 1, 20)[:, None]
    >>> choose(x, x**2, [Linear(), Polynomial()]).best.name
    'Polynomial'
    """
    x, y, _ = check_data(x, y)
    folds = check_count(folds, "folds")
    if not 2 <= folds <= len(x):
        raise ParasolError(f"folds={folds} must be between 2 and the number of samples, {len(x)}.")
    named = _named(recipes)
    parts = np.array_split(np.random.default_rng(rng).permutation(len(x)), folds)
    size = np.linalg.norm(y, axis=1)
    size = np.where(size > 0, size, np.mean(size) or 1.0)
    trials = []
    for done, (name, recipe) in enumerate(named.items()):
        errors, seconds, reason = [], [], ""
        for part in parts:
            kept = np.setdiff1d(np.arange(len(x)), part)
            start = time.perf_counter()
            try:
                fitted = fit_map(recipe, x[kept], y[kept], rng=rng)
                seconds.append(time.perf_counter() - start)
                gaps = np.linalg.norm(predictions(fitted, x[part], y.shape[1]) - y[part], axis=1) / size[part]
            except Exception as problem:  # anybody's code: whatever it raises must not lose the other results
                reason = f"{type(problem).__name__}: {problem}".splitlines()[0]
                break
            errors.append(gaps)
        if reason or not np.all(np.isfinite(np.concatenate(errors))):
            mean, spread = np.inf, np.inf
            reason = reason or "predictions are not finite"
        else:
            mean, spread = float(np.mean(np.concatenate(errors))), float(np.std([np.mean(e) for e in errors]))
        trials.append(Trial(name, recipe, mean, spread, float(np.mean(seconds)) if seconds else float("nan"), reason))
        if progress is not None:
            progress((done + 1) / len(named))
    return Comparison(tuple(sorted(trials, key=lambda trial: trial.error)), len(x), folds)


def fit_map(recipe, x, y, *, validation=None, progress=None, rng=0):
    """`recipe.fit(x, y)` of a copy of the recipe, with those of the options that its `fit` knows.

    A regressor that keeps what it learned in itself, as scikit-learn's do, is thereby left as it was.
    """
    if not callable(getattr(recipe, "fit", None)):
        raise ParasolError(f"{recipe!r} is no recipe: it has no method fit(x, y).")
    given = {"validation": validation, "progress": progress, "rng": rng}
    recipe = copy.deepcopy(recipe)
    try:
        known = inspect.signature(recipe.fit).parameters
    except (TypeError, ValueError):  # compiled code without a signature
        known = {}
    fitted = recipe.fit(x, y, **{name: value for name, value in given.items() if name in known})
    if not callable(getattr(fitted, "predict", None)):
        raise ParasolError(
            f"fit of {type(recipe).__name__} returned {type(fitted).__name__}, which has no method predict(x)."
        )
    return fitted


def predictions(fitted, x: np.ndarray, n_outputs: int) -> np.ndarray:
    """What a regressor from anywhere predicts, as floats (n, n_outputs)."""
    out = np.asarray(fitted.predict(x), dtype=float)
    if out.ndim == 1 and n_outputs == 1:  # scikit-learn drops the axis of a single output
        out = out[:, None]
    return check_shape(out, (len(x), n_outputs), "the prediction")


def _named(recipes) -> dict[str, Any]:
    if isinstance(recipes, Mapping):
        named = dict(recipes)
    else:
        named = {}
        for recipe in recipes:
            base = name = type(recipe).__name__
            while name in named:
                name = f"{base} {sum(other.split(' ')[0] == base for other in named) + 1}"
            named[name] = recipe
    if not named:
        raise ParasolError("there are no recipes to choose from. Pass some, such as [Linear(), Polynomial()].")
    return named
