"""Learning a linear problem in time: few full trajectories where the estimated error of reduced steps is largest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from parasol.errors import NoCertificate
from parasol.fitting.fit import surrogate_without_map
from parasol.fitting.maps import Recipe
from parasol.fitting.units import field_weights, unknown_labels
from parasol.learning.labels import relative
from parasol.learning.linear import ReducedBasis, best_map, fresh_parameters, judged
from parasol.learning.report import Outcome
from parasol.learning.samples import joined
from parasol.learning.solves import SolveCache
from parasol.pde.model import Model
from parasol.reduction.by_estimate_in_time import InTimeByEstimate
from parasol.reduction.certificate import middle_of
from parasol.reduction.greedy import Greedy
from parasol.reduction.reduced import candidates_for
from parasol.reduction.sampling import sample
from parasol.reduction.snapshots import Snapshots
from parasol.reduction.space_time import SpaceTime, space_time
from parasol.runtime.basis import Basis
from parasol.runtime.products import Weights, first_part, repeated

_STEPS = 0.1  # part of the tolerance by which the steps of a grid may differ from those of a finer one
_PER_INTERVAL, _HALVINGS = (1, 2, 4, 8, 16), 3
_MOST_UNKNOWNS = 400_000  # of all blocks: the duals of one parameter then take 100 MB
# parts of the tolerance: of reduced steps, modes in space, modes of trajectories
_REDUCED, _SPACE, _MODES = 0.1, 0.02, 0.07
_ENOUGH = 0.8  # of the tolerance, for the bound of the reduced model: the map adds to it
_TIGHTER, _TRIES = 0.4, 3
_N_WATCHED, _N_LABELS = 250, 600
_FEWEST, _MOST, _CHECKS = 3, 40, 3
_KEPT = 100  # vectors of a whole trajectory that each one solved in full keeps (measured): duals and their combinations
_N_STEPS = 200  # random parameters at which steps are compared with finer ones
_TIMES = 20  # what all of it takes, in trajectories with their duals


def learn_in_time(
    model: Model, tolerance: float, cache: SolveCache, *, recipe: str | Recipe | None = None, rng: int = 0
) -> Outcome:
    """Stop when the probable bound of the answers is below the tolerance at all of 2000 parameters nobody has seen.

    Full trajectories are solved where the estimated error of reduced steps is largest. All other trajectories are those of
    the reduced steps: their modes in space and time make a reduced model of whole trajectories, whose errors are estimated
    by backward duals of random vectors, as those of steady problems. Maps are then tried from cheap to dear.
    """
    if model.parameters.functions or cache.affordable(_FEWEST + _CHECKS) < _FEWEST + _CHECKS:
        raise NoCertificate("functions among the parameters, or few full solves allowed: reduced steps need more.")
    fresh = fresh_parameters(model, rng)
    basis = _basis(model, tolerance, cache, fresh, rng)
    surrogate = best_map(basis, recipe, tolerance, fresh, cache, rng)
    cache.stage("the bound on fresh parameters")
    return judged(replace(surrogate, reduced=basis.sealed), basis, None, tolerance, fresh)


def memory_in_time(model: Model, n_solves: tuple[int, int]) -> tuple[float, float]:
    """Bytes that `learn_in_time` keeps for so many trajectories, from the coarsest steps to half as long ones."""
    sizes = [8.0 * _KEPT * space_time(model, k, _HALVINGS).n_unknowns for k in _PER_INTERVAL[:2]]
    # half as much again for the modes of all; from some trajectories on inverses are interpolated
    low, high = (size * (1.5 + min(n - _CHECKS, 6)) for size, n in zip(sizes, n_solves, strict=True))
    return low, high


def _basis(model: Model, tolerance: float, cache: SolveCache, fresh: np.ndarray, rng: int) -> ReducedBasis:
    """Trajectories, reduced steps, modes of trajectories; better ones where the bound of what they make is too large."""
    candidates = candidates_for(model)
    first = candidates[middle_of(model, candidates)]
    cache.stage("steps in time")
    system = _system(model, tolerance, candidates, first)
    train = cache.solve(first[None], "trajectories where the estimated error of reduced steps is largest")
    growing = InTimeByEstimate(system, weights=_weights(model, train), rng=rng)
    spent = cache.limits.spent
    _compare(growing, train)
    if cache.limits.left < _TIMES * (cache.limits.spent - spent):
        raise NoCertificate("too few seconds are left for duals of whole trajectories.")
    history: list[float] = []
    share = 1.0
    for _ in range(_TRIES):
        train = _trajectories(growing, train, candidates, share * tolerance, cache, history)
        cache.stage("modes of trajectories, and their duals")
        labels = sample(model, _N_LABELS, design="edges", rng=np.random.default_rng([rng, 74]))
        corners = candidates[: min(2 ** len(first), _N_WATCHED)]
        basis = growing.finish(np.vstack([corners, labels]), share * _MODES * tolerance)
        reduced_basis = _checked(growing, basis, train, history, fresh, cache, rng)
        if reduced_basis.greedy.history[-1] <= _ENOUGH * tolerance or cache.affordable(1, reserve=_CHECKS) < 1:
            break
        share *= _TIGHTER
    return reduced_basis


def _system(model: Model, tolerance: float, candidates: np.ndarray, middle: np.ndarray) -> SpaceTime:
    """The coarsest steps that twice as many do not change by more than a part of the tolerance, at corners and middle."""
    mus = np.vstack([middle, candidates[: min(2 ** len(model.parameters.scalars), 4)]])
    coarse, before = None, np.empty(0)
    for per_interval in _PER_INTERVAL:
        system = space_time(model, per_interval, _HALVINGS)
        if (system if coarse is None else coarse).n_unknowns > _MOST_UNKNOWNS:
            break
        values = system.values(np.array([system.solve(mu) for mu in mus]))
        weights = repeated(model.product, len(system.grid.stored))
        if coarse is not None and np.max(relative(before, values, weights)) <= _STEPS * tolerance:
            return coarse
        coarse, before = system, values
    raise NoCertificate(f"the steps in time that {tolerance:g} takes are too many unknowns to be one system.")


def _weights(model: Model, train: Snapshots) -> Weights | None:
    """The inner product at one time: the model's own, or one in which every unknown function counts alike."""
    labels = unknown_labels(model)
    if labels is None or model.product is not None:
        return model.product
    return first_part(field_weights(train.solutions, labels), len(model.problem.names) * model.n_nodes)


def _compare(growing: InTimeByEstimate, solved: Snapshots) -> np.ndarray:
    """Full trajectories by the grid's steps, (n, n_values); how far they are from the model's own is kept."""
    trajectories = np.array([growing.add_trajectory(mu) for mu in solved.mus])
    weights = repeated(growing.weights, len(growing.model.grid.stored))
    growing.drift = max(growing.drift, float(np.max(relative(trajectories, solved.solutions, weights))))
    return trajectories


def _trajectories(
    growing: InTimeByEstimate,
    train: Snapshots,
    candidates: np.ndarray,
    tolerance: float,
    cache: SolveCache,
    history: list[float],
) -> Snapshots:
    """More of them, until the estimated error of the reduced steps is a small part of the tolerance at all candidates."""
    watched = candidates[: _N_WATCHED + 2 ** len(growing.model.parameters.scalars)]
    while True:
        growing.reduce_steps(train, _SPACE * tolerance)
        errors = growing.step_errors(watched)
        errors[[bool(np.any(np.all(train.mus == mu, axis=1))) for mu in watched]] = 0.0
        history.append(float(np.max(errors)))
        enough = len(train) >= _FEWEST and history[-1] <= _REDUCED * tolerance
        if enough or len(train) >= _MOST or cache.affordable(1, reserve=_CHECKS) < 1:
            return train
        cache.stage(f"full trajectories: {len(train)}, estimate {history[-1]:.1e}, wanted {_REDUCED * tolerance:.1e}")
        solved = cache.solve(watched[np.argmax(errors)][None])
        _compare(growing, solved)
        train = joined(train, solved)


def _checked(
    growing: InTimeByEstimate,
    basis: Basis,
    train: Snapshots,
    history: list[float],
    fresh: np.ndarray,
    cache: SolveCache,
    rng: int,
) -> ReducedBasis:
    """The estimate compared with true errors at a few fresh trajectories; what it missed enters its factor."""
    mus = sample(growing.model.model, _CHECKS, design="random", rng=np.random.default_rng([rng, 72]))
    checks = cache.solve(mus, "fresh ones to check the estimate")
    truth = np.array([growing.model.solve(mu) for mu in checks.mus])
    weights = repeated(growing.weights, len(growing.model.grid.stored))
    gap = relative(growing.model.values(truth), checks.solutions, weights)
    growing.drift = max(growing.drift, float(np.max(gap)))
    random = np.random.default_rng([rng, 75])
    growing.look_at_steps(sample(growing.model.model, _N_STEPS, design="random", rng=random))
    steering, sealed = (
        growing.duals.checked(reduced, checks.mus, truth) for reduced in (growing.reduced(basis), growing.sealed(basis))
    )
    worst = float(np.max(surrogate_without_map(steering).certify(fresh).relative))
    greedy = Greedy(steering, train.mus, (*history, worst), growing.n_factorizations, worst <= _ENOUGH, 0.0)
    return ReducedBasis(greedy, steering, sealed, growing.n_factorizations, growing.n_triangular, checks)
