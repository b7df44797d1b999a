"""Learning a linear steady problem: greedy full solves, a map taught by the reduced model, bounds from the residual on fresh parameters."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec

import numpy as np

from parasol.checks import ParasolWarning
from parasol.errors import Exhausted
from parasol.fitting.fit import accuracy, fit
from parasol.fitting.maps import Recipe
from parasol.fitting.units import field_weights, unknown_labels
from parasol.learning.comparing import box_corners, probes
from parasol.learning.report import PROVEN, Evidence, Outcome, Step, measured_on
from parasol.learning.solves import SolveCache, Solver
from parasol.pde.model import Model
from parasol.pde.steady import describe
from parasol.reduction.certificate import middle_of
from parasol.reduction.greedy import Greedy, check_some_load, greedy, search
from parasol.reduction.reduced import candidates_for, prepare
from parasol.reduction.sampling import sample
from parasol.runtime.surrogate import Surrogate

_SHARES = (0.4, 0.1)  # of the tolerance, for the basis: the rest is the map's
_N_LABELS = (1024, 4096)
_N_FRESH, _N_FRESH_FUNCTIONS = 2000, 500
_N_MEASURED, _N_MEASURED_GUESSED = 12, 40
_MOST_SOLVES = 400
_N_ANCHORS, _FEWEST_ANCHORS = 100, 8
_LEAST = 1e-9  # of the largest unknown: a smaller one may be rounding, and counts in the unit of the largest
TRAINING = 20.0  # seconds that must be left for a network


def maps_to_try(model: Solver, *, few: bool = False) -> tuple[str, ...]:
    """Names of recipes, the preferred one first: a matrix for functions, a network for numbers where JAX can train one.

    Where it cannot, a polynomial, or of `few` labels a Gaussian process.
    """
    trains = bool(find_spec("jax") and find_spec("optax"))
    if getattr(model.parameters, "functions", ()):
        return ("linear", "best") if trains else ("linear",)
    if trains:
        return ("best", "polynomial")
    return ("gaussian process",) if few else ("polynomial", "gaussian process")


def named(recipe: str | Recipe) -> str:
    """A recipe in words."""
    return recipe if isinstance(recipe, str) else type(recipe).__name__


def learn_proven(
    model: Model, tolerance: float, cache: SolveCache, *, recipe: str | Recipe | None = None, rng: int = 0
) -> Outcome:
    """Stop when the bound of the map's answers is below the tolerance at all of 2000 parameters nobody has seen.

    The basis takes four tenths of the tolerance, the map the rest. If no map is good enough, it gets more labels, another
    recipe is tried, and at last a basis is made that needs a tenth only.
    """
    fresh = fresh_parameters(model, rng)
    recipes = maps_to_try(model) if recipe is None else (recipe,)
    if recipe is None and cache.limits.left < TRAINING and not model.parameters.functions:
        recipes = ("polynomial",)  # a network would not be done in time
    best: Outcome | None = None
    for share in _SHARES:
        try:
            chosen = _greedy(model, share * tolerance, cache)
        except Exhausted:
            if best is None:
                raise
            break
        history = tuple(Step(i + 1, bound) for i, bound in enumerate(chosen.history))
        surrogate, worst, proven = _best_map(chosen, recipes, tolerance, fresh, cache, rng)
        evidence = Evidence(
            basis_bound=chosen.history[-1],
            proven=proven,
            n_fresh=len(fresh),
            n_factorizations=chosen.n_factorizations,
        )
        limit = "" if worst <= tolerance else "projection" if chosen.history[-1] > 0.5 * tolerance else "map"
        outcome = Outcome(surrogate, worst <= tolerance, worst, limit, history, evidence)
        if best is None or outcome.bound < best.bound:
            best = outcome
        if best.met or cache.affordable(1) < 1:
            break
    assert best is not None
    return _measured(best, model, cache, rng)


def check_box(model: Model, rng: int) -> None:
    """Refuse, before any work, a box on which the solution is zero or not unique; say where it grows beyond all bounds."""
    check_some_load(model, fresh_parameters(model, rng))
    corners = box_corners(len(model.parameters.scalars))
    mus = probes(model, rng)[: 1 if model.terms.constant_operator else 1 + len(corners)]
    signs = [model.factors(mu).sign for mu in mus]
    for mu, sign in zip(mus, signs, strict=True):
        if sign * signs[0] < 0:
            # not refused: a discrete operator may have a root that the equation has not, too narrow for any answer to meet
            warnings.warn(
                f"between {describe(model, mus[0])} and {describe(model, mu)} the discrete problem is singular somewhere (the "
                "determinant changes its sign): near there solutions grow beyond all bounds. Narrow the ranges if the "
                "equation has such a resonance; if not, other nodes may have none.",
                ParasolWarning,
                stacklevel=2,
            )
            return


def fresh_parameters(model: Solver, rng: int) -> np.ndarray:
    """Parameters that nothing was made from."""
    n = _N_FRESH_FUNCTIONS if model.parameters.functions else _N_FRESH
    return sample(model, n, design="random", rng=np.random.default_rng([rng, 71]))


def _greedy(model: Model, tolerance: float, cache: SolveCache) -> Greedy:
    """The greedy search; where it runs out of solves or time, what there is until then."""
    solved: list[np.ndarray] = []

    def solve(mu: np.ndarray) -> np.ndarray:
        out = cache.unknowns(model, mu)
        solved.append(mu)
        return out

    most = max(cache.affordable(_MOST_SOLVES, reserve=min(_N_MEASURED, 3)), 1)
    progress = cache.stage("greedy search: full solves where the bound is largest")
    spent, left = cache.limits.spent, max(cache.limits.left, 0.0)

    def stop(part: float) -> Callable[[], bool] | None:
        """Whether a part of the time is used up."""
        return None if cache.limits.seconds is None else (lambda: cache.limits.spent - spent >= part * left)

    weights = None
    try:
        weights = _weights(model, cache)
        prepared = prepare(model, weights=weights, n_anchors=_N_ANCHORS, stop=stop(0.25))
        return search(prepared, aim=tolerance, most=most, solve=solve, progress=progress, stop=stop(0.6))
    except Exhausted:
        if not solved:
            raise
        known = list(solved)
        shorter = {"n_modes": len(known), "n_anchors": _FEWEST_ANCHORS, "weights": weights}
        return greedy(model, known, solve=lambda mu: cache.unknowns(model, mu), **shorter)


def _weights(model: Model, cache: SolveCache) -> np.ndarray | None:
    """For several unknowns an inner product in which all are of one size, whatever their units; None for one unknown.

    Their sizes are those of the solution in the middle of the box, the first that the greedy search asks for.
    """
    labels = unknown_labels(model)
    if labels is None:
        return None
    mus = candidates_for(model)
    solution = model.layout.at_nodes(cache.unknowns(model, mus[middle_of(model, mus)]))
    return field_weights(solution[None], labels, least=_LEAST)


def _best_map(
    chosen: Greedy, recipes: tuple, tolerance: float, fresh: np.ndarray, cache: SolveCache, rng: int
) -> tuple[Surrogate, float, float]:
    """The first map good enough, or the best one; its largest bound on fresh parameters, and the part that is proven."""
    best: tuple[Surrogate, float, float] | None = None
    for n_labels in _N_LABELS:
        for recipe in recipes:
            if best is not None and recipe == "best" and cache.limits.left < TRAINING:
                continue  # a network would not be done in time
            stage = cache.stage(f"fitting {named(recipe)} to {n_labels} labels")
            try:
                watched = stage if best is None else cache.watched(stage)  # what there is would be lost with the first
                surrogate = fit(chosen.reduced, recipe, n_labels=n_labels, rng=rng, progress=watched)
            except Exhausted:
                break
            bounds = surrogate.certify(fresh)
            worst = float(np.max(bounds.relative))
            if best is None or worst < best[1]:
                best = (surrogate, worst, float(np.mean(bounds.rigorous)))
            if worst <= tolerance or cache.limits.left <= 0:
                return best
        if cache.limits.left <= 0 or (best is not None and best[1] <= 1.5 * chosen.history[-1]):
            break  # the basis is the limit: no map would help
    assert best is not None
    return best


def _measured(outcome: Outcome, model: Model, cache: SolveCache, rng: int) -> Outcome:
    """With the errors measured on a few full solves that nothing was made from; on more where little is proven.

    A bound that rests on guessed constants at more than a hundredth of the parameters has to agree with these solves.
    """
    guessed = (outcome.evidence.proven or 0.0) < PROVEN
    n = cache.affordable(_N_MEASURED_GUESSED if guessed else _N_MEASURED)
    if not n:
        return replace(outcome, met=False, limit=outcome.limit or "confirmation") if guessed else outcome
    mus = sample(model, n, design="random", rng=np.random.default_rng([rng, 72]))
    measured = measured_on(accuracy(outcome.surrogate, cache.solve(mus, "to measure the error")))
    kept = not guessed or measured.max <= outcome.bound
    limit = outcome.limit if kept else "confirmation"
    return replace(outcome, met=outcome.met and kept, limit=limit, measured=measured)
