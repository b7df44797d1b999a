"""Learning a linear steady problem: full solves where the estimated error is largest, then the cheapest map that is good enough."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np

from parasol.checks import ParasolWarning
from parasol.errors import Exhausted, SolveFailed
from parasol.fitting.fit import accuracy, fit, surrogate_without_map
from parasol.fitting.maps import Recipe
from parasol.fitting.polynomial import FittedPolynomial
from parasol.fitting.units import field_weights, unknown_labels
from parasol.learning.comparing import box_corners, probes
from parasol.learning.report import PROVEN, Evidence, Outcome, Step, measured_on
from parasol.learning.solves import Limits, SolveCache, Solver
from parasol.pde.model import Model
from parasol.pde.steady import describe
from parasol.reduction.by_estimate import ByEstimate
from parasol.reduction.certificate import middle_of
from parasol.reduction.energy import energy_preparation
from parasol.reduction.greedy import Greedy, check_some_load, search
from parasol.reduction.reduced import Preparation, candidates_for, prepare
from parasol.reduction.sampling import sample
from parasol.reduction.snapshots import Snapshots
from parasol.runtime.duals import miss_probability
from parasol.runtime.products import Weights
from parasol.runtime.reduced import ReducedModel
from parasol.runtime.surrogate import Surrogate

_BASIS = 0.8  # of the tolerance, for the basis; the map's error is in the span and adds in squares
_MAP = 0.9  # of the tolerance, by the steering vectors: the sealed ones may see a little more
_N_LABELS = (1024, 4096)
_FAR = 0.5  # a relative error
_UNSEEN = 1e-3  # of the largest bound: what terms of a polynomial may change that are left out
_N_FRESH, _N_FRESH_FUNCTIONS = 2000, 500
_MOST_CORNERS = 6  # parameters, up to which the corners are looked at too
# fresh full solves that the estimate is checked with: a fifth of the others, within these
_FEWEST_CHECKS, _MOST_CHECKS = 3, 6
# the second and later modes have the shapes of errors: without any, inverses are tested by nothing alike
_FEWEST_SOLVES = 4
_TOO_MUCH = 1.5  # ratio of error and estimate from which more duals are worth their cost
_CLOSER = 0.01  # how near to the identity interpolated inverses then come
# how far from it nothing that a few checks see says how the estimate is elsewhere; as many more are then made
_UNLIKE, _MORE_CHECKS, _MOST_DOUBT = 0.1, 20, 0.49
_MOST_SOLVES = 400
_HOPE = 5.0  # times that a network may be better than cheaper maps; measured: up to 3
_N_COMPARED = 64  # parameters at which one of them is changed, to see whether it matters
# matrices factorised for constants, and times that the error is made smaller for their sake
_PROOF_ANCHORS, _PROOF_TRIES = 100, 3
# where the sealed vectors see a little more than the tolerance, the error is made smaller by so much, once
_LITTLE, _SMALLER = 3.0, 0.6
_LEAST = 1e-9  # of the largest unknown: a smaller one may be rounding, and counts in the unit of the largest
TRAINING = 20.0  # seconds that must be left for a network


def maps_to_try(model: Solver, *, few: bool = False) -> tuple[str, ...]:
    """Names of recipes from cheap to dear: a matrix for functions, a network for numbers only where JAX can train one.

    Of `few` labels a network first where there is one, else a Gaussian process.
    """
    trains = bool(find_spec("jax") and find_spec("optax"))
    if getattr(model.parameters, "functions", ()):
        return ("linear", "best") if trains else ("linear",)
    if few:
        return ("best", "polynomial") if trains else ("gaussian process",)
    return ("polynomial", "gaussian process", "best") if trains else ("polynomial", "gaussian process")


def named(recipe: str | Recipe) -> str:
    """A recipe in words."""
    return recipe if isinstance(recipe, str) else type(recipe).__name__


@dataclass(frozen=True, eq=False)
class ReducedBasis:
    """What the search has found: reduced models with the duals that steer and with those that certify, and fresh solves."""

    greedy: Greedy
    steering: ReducedModel
    sealed: ReducedModel
    n_factorizations: int
    n_triangular: int
    checks: Snapshots | None  # that the estimate was checked with
    doubt: str = ""  # why it may be worse elsewhere, in words

    def after(self, before: ReducedBasis | None, *, looked: bool) -> ReducedBasis:
        """The same, with what the attempt before it has cost.

        Where its sealed vectors were `looked` at, and might have been taken, two sets may miss an error instead of one.
        """
        if before is None:
            return self
        counts = self.n_factorizations + before.n_factorizations, self.n_triangular + before.n_triangular
        sealed, duals = self.sealed, self.sealed.duals
        if looked and duals is not None and before.sealed.duals is not None:
            doubt = duals.doubt + miss_probability(len(before.sealed.duals.blocks))
            sealed = replace(sealed, duals=replace(duals, doubt=doubt))
        return replace(self, n_factorizations=counts[0], n_triangular=counts[1], sealed=sealed)


def learn_linear(
    model: Model,
    tolerance: float,
    cache: SolveCache,
    *,
    recipe: str | Recipe | None = None,
    proof: bool = False,
    rng: int = 0,
) -> Outcome:
    """Stop when the probable bound of the answers is below the tolerance at all of 2000 parameters nobody has seen.

    The basis takes eight tenths of the tolerance, the map the rest. Maps are tried from cheap to dear, on labels of the
    reduced model, and the first that is good enough is taken; if none is, the reduced model itself answers. All of this is
    decided by one set of random vectors, and the bound in the end is that of another: if it is a little too large, the
    search goes on, once, and a third set has the last word. With `proof`, constants are computed that prove bounds where
    they can.
    """
    fresh = fresh_parameters(model, rng)
    prepared = _constants(model, cache, proof or model.terms.constant_operator)
    aim, itself, before = tolerance, False, None
    for attempt in range(_PROOF_TRIES):
        basis = before = _basis(model, aim, cache, rng, attempt).after(before, looked=prepared is None)
        surrogate = best_map(basis, recipe, aim, fresh, cache, rng, itself=itself)
        cache.stage("the bound on fresh parameters")
        surrogate = replace(surrogate, reduced=basis.sealed)
        if prepared is None:
            worst = float(np.max(surrogate.certify(fresh).relative))
            once = attempt == 0 and recipe is None and basis.greedy.reached and cache.affordable(1) > 0
            if not (once and tolerance < worst <= _LITTLE * tolerance):
                break
            aim, itself = _SMALLER * aim, surrogate.map is None
            continue
        surrogate = replace(surrogate, reduced=_with_proof(basis.sealed, prepared))
        worst = _worst_proven(surrogate, fresh)
        if worst > tolerance and recipe is None and surrogate.map is not None:
            # maps were judged by an estimate; a better basis would not help one, and the reduced model needs none
            surrogate = surrogate_without_map(surrogate.reduced)  # type: ignore[arg-type]
            worst = _worst_proven(surrogate, fresh)
        if worst <= tolerance or cache.affordable(1) < 1 or not np.isfinite(worst):
            break
        # a proven bound is larger than the error: the error has to be smaller
        itself = surrogate.map is None
        aim *= max(0.7 * tolerance / worst, 0.01)
    return judged(surrogate, basis, prepared, tolerance, fresh)


def _worst_proven(surrogate: Surrogate, mus: np.ndarray) -> float:
    """The largest of the relative bounds that are proven."""
    bounds = surrogate.certify(mus)
    return float(np.max(bounds.relative[bounds.rigorous], initial=0.0))


def judged(
    surrogate: Surrogate, basis: ReducedBasis, prepared: Preparation | None, tolerance: float, fresh: np.ndarray
) -> Outcome:
    """What was learned, judged at the fresh parameters."""
    bounds = surrogate.certify(fresh)
    bound, duals = float(np.max(bounds.relative)), basis.sealed.duals
    assert duals is not None
    evidence = Evidence(
        basis_bound=basis.greedy.history[-1],
        proven=float(np.mean(bounds.rigorous)),
        probability=duals.probability,
        ratio=duals.ratio,
        n_checked=duals.n_checked,
        n_fresh=len(fresh),
        n_factorizations=basis.n_factorizations + (0 if prepared is None else prepared.covered.n_factorizations),
        n_triangular=basis.n_triangular,
        share=float(np.mean(bounds.relative <= tolerance)),
    )
    met = bound <= tolerance
    limit = "" if met else "projection" if basis.greedy.history[-1] > 0.5 * tolerance else "map"
    notes = _remarks(basis, tolerance, fresh)
    history = tuple(Step(i + 1, bound) for i, bound in enumerate(basis.greedy.history))
    return _measured(Outcome(surrogate, met, bound, limit, history, evidence, notes=notes), basis.checks)


def n_solves(model: Model, tolerance: float, rng: int) -> int:
    """How many full solves `learn_linear` would take with this model, found by making them."""
    cache = SolveCache(model, Limits())
    _basis(model, tolerance, cache, rng)
    return cache.n_solves


def check_box(model: Model, rng: int) -> None:
    """Refuse, before any work, a box on which the solution is zero or not unique; say where it grows beyond all bounds."""
    check_some_load(model, fresh_parameters(model, rng))
    corners = box_corners(len(model.parameters.scalars))
    mus = probes(model, rng)[: 1 if model.terms.constant_operator else 1 + len(corners)]
    signs = [model.factors(mu).sign for mu in mus]
    for mu, sign in zip(mus, signs, strict=True):
        if sign * signs[0] < 0:
            # not refused: a discrete operator may have a root that the equation has not, too narrow for any answer to meet
            near = describe(model, singular_between(model, mus[0], mu, signs[0]))
            warnings.warn(
                f"between {describe(model, mus[0])} and {describe(model, mu)} the discrete problem is singular (the "
                f"determinant changes its sign near {near}): near there solutions grow beyond all bounds. Narrow the ranges "
                "if the equation has such a resonance; if not, other nodes may have none.",
                ParasolWarning,
                stacklevel=2,
            )
            return


def singular_between(model: Model, low: np.ndarray, high: np.ndarray, sign: int) -> np.ndarray:
    """A parameter on the line between two at which the determinant changes its sign, to a hundredth of the line."""
    for _ in range(7):
        middle = (low + high) / 2
        try:
            same = model.factors(middle).sign * sign > 0
        except SolveFailed:  # to rounding it is here
            return middle
        if same:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def fresh_parameters(model: Solver, rng: int) -> np.ndarray:
    """Parameters that nothing was made from; the first ones are moved to the corners of the box, where errors are large."""
    n = _N_FRESH_FUNCTIONS if model.parameters.functions else _N_FRESH
    out = sample(model, n, design="random", rng=np.random.default_rng([rng, 71]))
    n_scalars = len(model.parameters.scalars)
    if 0 < n_scalars <= _MOST_CORNERS:
        out[: 2**n_scalars, :n_scalars] = model.parameters.grid(*[2] * n_scalars)
    return out


# ---- the basis ------------------------------------------------------------------------------------------------------
def _basis(model: Model, tolerance: float, cache: SolveCache, rng: int, attempt: int = 0) -> ReducedBasis:
    """The greedy search, and the check of its estimate; where solves or seconds run out, what there is until then."""
    most = max(cache.affordable(_MOST_SOLVES, reserve=_FEWEST_CHECKS), 1)
    head, aim = "full solves where the estimated error is largest", _BASIS * tolerance
    progress = cache.stage(head)
    spent, left = cache.limits.spent, max(cache.limits.left, 0.0)
    stop: Callable[[], bool] | None = None
    if cache.limits.seconds is not None:
        stop = lambda: cache.limits.spent - spent >= 0.6 * left  # noqa: E731
    solved: list[np.ndarray] = []

    def solve(mu: np.ndarray) -> np.ndarray:
        out = cache.unknowns(model, mu)
        solved.append(mu)
        return out

    growing = ByEstimate(model, weights=_weights(model, cache), rng=rng, attempt=attempt)
    note = lambda history: cache.stage(f"{head}: {len(history)}, bound {history[-1]:.1e}, wanted {aim:.1e}")  # noqa: E731
    options = {"aim": aim, "least": _FEWEST_SOLVES, "progress": progress, "note": note, "stop": stop}
    try:
        greedy = search(growing, most=most, solve=solve, **options)
    except Exhausted:
        if not solved:
            raise
        growing = ByEstimate(model, weights=growing.weights, rng=rng, attempt=attempt)
        greedy = search(
            growing, np.array(solved), most=len(solved), solve=lambda mu: cache.unknowns(model, mu), **options
        )
    if cache.limits.left > 0:
        growing.complete()
    return _checked(growing, greedy, cache, rng)


def _checked(growing: ByEstimate, greedy: Greedy, cache: SolveCache, rng: int) -> ReducedBasis:
    """The estimate compared with true errors at a few fresh solves; more duals where it missed too much."""
    model, checks = growing.model, None
    n = cache.affordable(int(np.clip(greedy.n_solves // 5, _FEWEST_CHECKS, _MOST_CHECKS)))
    if n:
        mus = sample(model, n, design="random", rng=np.random.default_rng([rng, 72]))
        checks = cache.solve(mus, "fresh ones to check the estimate")

    def compared(reduced: ReducedModel) -> ReducedModel:
        if checks is None:
            return reduced
        return growing.duals.checked(reduced, checks.mus, model.layout.unknowns(checks.solutions, checks.hidden))

    steering = compared(growing.reduced(greedy.basis))
    if steering.duals.ratio > _TOO_MUCH and cache.limits.left > 0:  # type: ignore[union-attr]
        growing.complete(_CLOSER)
        steering = compared(growing.reduced(greedy.basis))
    if growing.missed <= _UNLIKE and steering.duals.ratio <= _TOO_MUCH:  # type: ignore[union-attr]
        sealed, doubt = compared(growing.sealed(greedy.basis)), ""
    else:
        n_random = 0 if checks is None else len(checks)
        if more := cache.affordable(_MORE_CHECKS):
            mus = sample(model, more, design="random", rng=np.random.default_rng([rng, 74]))
            others = cache.solve(mus, "more fresh ones, for the estimate is in doubt")
            checks, n_random = others if checks is None else checks + others, len(others)
        steering, sealed = compared(growing.reduced(greedy.basis)), compared(growing.sealed(greedy.basis))
        # at a new parameter more is missed than at all of n others with this probability, whatever the reason
        chance, duals = min(1 / (n_random + 1), _MOST_DOUBT), sealed.duals
        assert duals is not None
        sealed = replace(sealed, duals=replace(duals, doubt=min(duals.doubt + chance, _MOST_DOUBT)))
        doubt = (
            f"the estimate rests on inverses that cannot be interpolated between the parameters of this box (off by "
            f"{growing.missed:.0%}): it was compared with {duals.n_checked} fresh full solves, and may be worse elsewhere"
        )
    return ReducedBasis(greedy, steering, sealed, growing.n_factorizations, growing.n_triangular, checks, doubt)


def _weights(model: Model, cache: SolveCache) -> Weights | None:
    """The inner product of the model, or for several unknowns one in which all are of one size, whatever their units.

    Their sizes are those of the solution in the middle of the box, the first that the greedy search asks for.
    """
    labels = unknown_labels(model)
    if labels is None:
        return model.product
    mus = candidates_for(model)
    solution = model.layout.at_nodes(cache.unknowns(model, mus[middle_of(model, mus)]))
    return field_weights(solution[None], labels, model.product, least=_LEAST)


def _remarks(basis: ReducedBasis, tolerance: float, fresh: np.ndarray) -> tuple[str, ...]:
    """What a user would want to know about the problem: parameters without effect, modes that a tolerance would take."""
    reduced, greedy = basis.steering, basis.greedy
    some, out = fresh[:_N_COMPARED], []
    if reduced.operator_theta.fitted is not None:
        out.append(
            f"operator(mu) is a sum of {reduced.operator_theta.n_terms} matrices fitted to samples, right to "
            f"{reduced.interpolation_error:.1e} at parameters it was not fitted to; bounds allow for that, and prove nothing"
        )
    if basis.doubt:
        out.append(basis.doubt)
    c = reduced.coefficients(some)
    size = np.linalg.norm(c, axis=1)
    for i, parameter in enumerate(reduced.parameters.scalars):
        moved = some.copy()
        moved[:, i] = np.roll(some[:, i], 1)
        if np.all(np.linalg.norm(reduced.coefficients(moved) - c, axis=1) <= 0.01 * tolerance * size):
            out.append(f"{parameter.name} has no effect on the solution beyond a hundredth of the tolerance")
    late = np.array(greedy.history[greedy.n_solves // 2 :])
    if not greedy.reached and len(late) > 4 and np.all(np.isfinite(late) & (late > 0)):
        slope = np.polyfit(np.arange(len(late)), np.log(late), 1)[0]
        more = np.log(late[-1] / (_BASIS * tolerance)) / max(-slope, 1e-9)
        many = f"about {greedy.n_solves + more:.0f} modes" if more < 1e4 else "more modes than can be had"
        out.append(
            f"the error falls slowly with the modes: {greedy.n_solves} leave {late[-1]:.1e}, the tolerance would take {many}"
        )
    return tuple(out)


# ---- the map --------------------------------------------------------------------------------------------------------
def best_map(
    basis: ReducedBasis,
    recipe: str | Recipe | None,
    tolerance: float,
    fresh: np.ndarray,
    cache: SolveCache,
    rng: int,
    *,
    itself: bool = False,
) -> Surrogate:
    """The first map that is good enough by the steering vectors, else the reduced model, or the map that was asked for.

    `itself` says that for a larger tolerance no map was.
    """
    reduced = basis.steering
    bare = None if recipe is not None else surrogate_without_map(reduced)
    if bare is not None and itself:
        return bare
    floor = float("inf") if bare is None else float(np.max(bare.certify(fresh).relative))
    best: tuple[float, Surrogate] | None = None
    hopeless = False  # whether cheap maps are far off at a hundredth of the box, as near a resonance: then all are
    assert reduced.model is not None
    for one, n_labels in _trials(reduced.model, recipe):
        if recipe is None and (
            cache.limits.left <= 0 or (one == "best" and (hopeless or cache.limits.left < TRAINING))
        ):
            continue
        if recipe is None and one == "best" and best is not None and best[0] > _HOPE * tolerance:
            continue
        if best is not None and best[0] <= 1.5 * basis.greedy.history[-1]:
            break  # the basis is the limit: no map would help
        stage = cache.stage(f"fitting a map: {named(one)} to {n_labels} labels")
        try:
            progress = stage if best is None else cache.watched(stage)
            surrogate = fit(reduced, one, n_labels=n_labels, rng=rng, progress=progress)
        except Exhausted:
            continue
        bounds = surrogate.certify(fresh).relative
        worst, hopeless = float(np.max(bounds)), bool(np.mean(bounds > _FAR) > 0.01)
        if best is None or worst < best[0]:
            best = (worst, surrogate)
        if worst <= _MAP * tolerance:
            short = _shortened(surrogate, _UNSEEN * worst, fresh)
            return short if np.max(short.certify(fresh).relative) <= _MAP * tolerance else surrogate
    if bare is not None and (best is None or floor < best[0]):
        return bare
    assert best is not None
    return best[1]


def _shortened(surrogate: Surrogate, change: float, mus: np.ndarray) -> Surrogate:
    """Without the terms of a polynomial that change its answers by less, relative: they make it slow and its file large."""
    if not isinstance(surrogate.map, FittedPolynomial):
        return surrogate
    least = float(np.min(np.linalg.norm(surrogate.coefficients(mus), axis=1)))
    return replace(surrogate, map=surrogate.map.shortened(change * least))


def _trials(model: Model, recipe: str | Recipe | None) -> Iterator[tuple[str | Recipe, int]]:
    """Recipes and numbers of labels, from cheap to dear."""
    few, many = _N_LABELS
    recipes = (recipe,) if recipe is not None else maps_to_try(model)
    yield from ((one, few) for one in recipes if one != "best" or len(recipes) == 1)
    # a Gaussian process takes the cube of the labels
    yield from ((one, many) for one in recipes if one not in ("best", "gaussian process") or len(recipes) == 1)
    yield from ((one, n) for one in recipes if one == "best" and len(recipes) > 1 for n in (few, many))


# ---- proof and measurement ------------------------------------------------------------------------------------------
def _constants(model: Model, cache: SolveCache, wanted: bool) -> Preparation | None:
    """Constants that prove bounds, and the preconditioners they belong to; where they are not wanted, if they cost little."""
    cache.stage("constants that prove the bound")
    cheap = energy_preparation(model, _weights(model, cache))
    if cheap is not None or not wanted:
        return cheap
    spent, left = cache.limits.spent, max(cache.limits.left, 0.0)
    stop = None if cache.limits.seconds is None else (lambda: cache.limits.spent - spent >= 0.25 * left)
    return prepare(model, weights=_weights(model, cache), n_anchors=_PROOF_ANCHORS, stop=stop)


def _with_proof(reduced: ReducedModel, prepared: Preparation) -> ReducedModel:
    """The reduced model with constants and preconditioners that prove its bounds, where they can."""
    modes = prepared.model.layout.unknowns(reduced.basis.modes.T, reduced.basis.hidden.T).T
    return replace(prepared.reduced(reduced.basis, prepared.builders(modes)), duals=reduced.duals)


def _measured(outcome: Outcome, checks: Snapshots | None) -> Outcome:
    """With the errors measured on the solves that the estimate was checked with: neither basis nor map has seen them.

    A bound that rests on an estimate has to agree with them, and is not confirmed where there are none.
    """
    proven = (outcome.evidence.proven or 0.0) >= PROVEN
    if checks is None:
        return outcome if proven else replace(outcome, met=False, limit=outcome.limit or "confirmation")
    measured = measured_on(accuracy(outcome.surrogate, checks))
    kept = proven or measured.max <= outcome.bound
    limit = outcome.limit if kept else "confirmation"
    return replace(outcome, met=outcome.met and kept, limit=limit, measured=measured)
