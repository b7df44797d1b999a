"""The next full solve is always where the error may be largest: bases from as few solves as the tolerance needs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from parasol.checks import Progress, check_count, check_positive, check_progress
from parasol.errors import InputError, ParasolWarning
from parasol.pde.model import Model
from parasol.reduction.certificate import middle_of
from parasol.reduction.energy import energy_preparation
from parasol.reduction.products import Root, root_of
from parasol.reduction.reduced import ByBound, candidates_for, prepare
from parasol.runtime.basis import Basis
from parasol.runtime.products import Weights
from parasol.runtime.reduced import ReducedModel

_WATCHED = 200  # candidates, those with the largest errors, that are looked at after every solve
_ROUNDING = 1e-13  # a solution whose new part is smaller than this is in the span already


@dataclass(frozen=True, eq=False, repr=False)
class Greedy:
    """A reduced model made by greedy sampling, with the parameters solved at and the largest bound before each solve."""

    reduced: ReducedModel
    mus: np.ndarray  # (n_solves, n_parameters)
    history: tuple[float, ...]  # largest relative bound over the candidates with 1, 2, ... modes
    n_factorizations: int  # spent on the certificate or the duals, besides the full solves
    reached: bool  # whether the bound is below the tolerance at every candidate, proven or not
    proven: float = 1.0  # part of the candidates at which the constant behind the bound is proven

    @property
    def basis(self) -> Basis:
        """The basis the solutions span."""
        return self.reduced.basis

    @property
    def n_solves(self) -> int:
        """Number of full solves."""
        return len(self.mus)

    def __repr__(self) -> str:
        kind = "proven" if self.proven == 1.0 else f"proven at {100 * self.proven:.0f} %"
        return f"<Greedy {self.n_solves} full solves, largest relative bound {self.history[-1]:.1e} ({kind} of the candidates)>"


def greedy(
    model: Model,
    candidates: ArrayLike | None = None,
    *,
    tolerance: float | None = None,
    n_modes: int | None = None,
    weighting: str = "solve",
    weights: Weights | None = None,
    n_anchors: int = 100,
    max_solves: int = 200,
    solve: Callable[[np.ndarray], np.ndarray] | None = None,
    progress: Progress = None,
) -> Greedy:
    """Solve where the bound is largest, until it is below `tolerance` at every candidate or there are `n_modes`.

    Bounds are relative, min over c of ||f_μ − A_μ V c|| in the chosen weighting over a lower bound of σ_min, which is
    proven at the part `proven` of the candidates (n_candidates, n_parameters) and guessed at the others. Without
    candidates, spread ones are used, and it only stops once a fresh set of them asks for no further solve.
    `weighting="none"` is the residual of the bare rows: the classical greedy least-squares reduced collocation.
    `solve` may answer full solves instead of the model, (n_unknowns,) of mu: from a store, for instance.
    """
    if (tolerance is None) == (n_modes is None):
        raise InputError("greedy needs either tolerance or n_modes. Give one of them.")
    aim = 0.0 if tolerance is None else check_positive(tolerance, "tolerance")
    most = check_count(max_solves, "max_solves") if n_modes is None else check_count(n_modes, "n_modes")
    check_progress(progress)
    mus = None if candidates is None else model.check(candidates)
    if mus is not None and not len(mus):
        raise InputError("candidates is empty: there is nothing to choose from. Give at least one parameter vector.")
    check_some_load(model, candidates_for(model) if mus is None else mus)
    weights = model.product if weights is None else weights
    prepared = energy_preparation(model, weights) if weighting == "solve" else None
    if prepared is None:
        prepared = prepare(model, weights=weights, weighting=weighting, n_anchors=n_anchors)
    return search(ByBound(prepared), mus, aim=aim, most=most, solve=solve, progress=progress)


class Growing(Protocol):
    """A reduced model that grows by one mode at a time."""

    model: Model
    weights: Weights | None
    n_factorizations: int

    def add(self, mu: np.ndarray, mode: np.ndarray) -> None:
        """Append a mode (n_unknowns,), which the solution at mu has brought."""
        ...

    def reduced(self, basis: Basis) -> ReducedModel:
        """The reduced model of the modes so far, which the basis holds."""
        ...


def search(
    growing: Growing,
    candidates: np.ndarray | None = None,
    *,
    aim: float,
    most: int,
    least: int = 1,
    solve: Callable[[np.ndarray], np.ndarray] | None = None,
    progress: Progress = None,
    note: Callable[[list[float]], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Greedy:
    """The search of `greedy`: until the error may be `aim` at most, `most` solutions are in the basis, or `stop` says so.

    It takes `least` solutions unless the errors are rounding before. Solutions are orthonormalised twice.
    """
    model, weights = growing.model, growing.weights
    mus = candidates_for(model) if candidates is None else candidates
    draws = 0 if candidates is not None else 2  # of fresh candidates, once those at hand are satisfied
    modes = np.empty((model.n_unknowns, 0))
    root = root_of(model, weights, ghosts=False)
    chosen: list[np.ndarray] = []
    history: list[float] = []
    reduced, next_mu = None, mus[middle_of(model, mus)]
    bounds: np.ndarray | None = None
    exhausted = np.zeros(len(mus), dtype=bool)  # candidates whose solution has nothing new, zero for instance
    while True:
        mode = _new_direction(modes, _solve(model, next_mu, reduced, modes) if solve is None else solve(next_mu), root)
        if mode is not None:
            chosen.append(next_mu)
            modes = np.column_stack([modes, mode])
            growing.add(next_mu, mode)
            reduced = growing.reduced(_basis(model, modes, weights))
        if bounds is None or candidates is not None:
            bounds = _relative(reduced, mus, exhausted)
        else:
            bounds = _watched(reduced, mus, exhausted, bounds)
        enough = len(chosen) >= min(least, most) or mode is None
        while draws and enough and np.max(bounds) <= aim and reduced is not None:
            draws -= 1
            mus = candidates_for(model, 2 - draws)
            exhausted = np.zeros(len(mus), dtype=bool)
            bounds = _relative(reduced, mus, exhausted)
        if mode is not None:
            history.append(float(np.max(bounds)))
            if progress is not None:
                progress(_fraction(history, aim, len(chosen), most))
            if note is not None:
                note(history)
        if (enough and np.max(bounds) <= aim) or len(chosen) == most or np.all(exhausted):
            break
        if stop is not None and chosen and stop():
            break
        worst = int(np.argmax(bounds))
        exhausted[worst] = True  # once solved for, it is in the span
        next_mu = mus[worst]
    if reduced is None:
        raise InputError(
            "the solutions at all candidates are zero, or so small or large that their squares are no numbers. Check the load, "
            "or use other units."
        )
    # a candidate that brought nothing new was passed over in the search, but its bound counts
    history[-1] = float(np.max(_relative(reduced, mus, np.zeros(len(mus), dtype=bool))))
    proven = float(np.mean(reduced.solve(mus).bounds.rigorous))  # type: ignore[union-attr]
    result = Greedy(reduced, np.array(chosen), tuple(history), growing.n_factorizations, history[-1] <= aim, proven)
    if aim > 0 and not result.reached:
        warnings.warn(
            f"{result.n_solves} full solves left a relative bound of {history[-1]:.1e}, above the tolerance {aim:g}. "
            "Allow more with max_solves, or narrow the ranges of the parameters.",
            ParasolWarning,
            stacklevel=3,
        )
    return result


def check_some_load(model: Model, mus: np.ndarray) -> None:
    """Refuse a linear model whose right-hand sides are zero at all these parameters: so are its solutions."""
    if not any(np.any(model.load(mu)) for mu in mus):
        raise InputError(
            f"all sources and boundary values are zero at {len(mus)} parameters, so the solution is zero. Check the problem."
        )


def _relative(reduced: ReducedModel | None, mus: np.ndarray, exhausted: np.ndarray) -> np.ndarray:
    """Relative bounds at the candidates; 0 for those passed over, and where the error is rounding of the largest u."""
    if reduced is None:
        return np.where(exhausted, 0.0, np.inf)
    answers = reduced.solve(mus)
    bounds = answers.bounds
    size = np.max(np.linalg.norm(answers.coefficients, axis=1))
    settled = exhausted | (bounds.values <= _ROUNDING * size)  # type: ignore[union-attr]
    return np.where(settled, 0.0, bounds.relative)  # type: ignore[union-attr]


def _watched(reduced: ReducedModel | None, mus: np.ndarray, exhausted: np.ndarray, before: np.ndarray) -> np.ndarray:
    """As `_relative`, computed where errors were largest `before`, until no other was larger: these may only have fallen."""
    out, left = before.copy(), np.argsort(-before)
    largest = -np.inf
    while len(left) and before[left[0]] > max(largest, 0.0):
        top, left = left[:_WATCHED], left[_WATCHED:]
        out[top] = _relative(reduced, mus[top], exhausted[top])
        largest = max(largest, float(np.max(out[top])))
    return np.where(exhausted, 0.0, out)


def _solve(model: Model, mu: np.ndarray, reduced: ReducedModel | None, modes: np.ndarray) -> np.ndarray:
    """A full solve; where it iterates, from the answer of the reduced model so far."""
    guess = None
    if reduced is not None and model.solver == "iterative":
        guess = modes @ reduced.solve(mu[None], extrapolate=True, bounds=False).coefficients[0]
    return model.solve(mu, extrapolate=True, guess=guess).unknowns  # type: ignore[union-attr,return-value]


def _new_direction(modes: np.ndarray, unknowns: np.ndarray, root: Root) -> np.ndarray | None:
    """The part of a solution that is new, at unit norm; None if there is none. Ghosts ride along without weight."""
    size = np.linalg.norm(root.into(unknowns))
    left = unknowns
    for _ in range(2):  # once leaves a trace of what was there when little is new
        left = left - modes @ (modes.T @ root.applied(left))
    new = np.linalg.norm(root.into(left))
    return None if new <= _ROUNDING * size else left / new


def _basis(model: Model, modes: np.ndarray, weights: Weights | None) -> Basis:
    rows = modes.T
    return Basis(
        model.layout.at_nodes(rows).T,
        weights,
        model.layout.at_ghosts(rows).T,
        n_snapshots=modes.shape[1],
        method="greedy",
    )


def _fraction(history: list[float], aim: float, n_solves: int, most: int) -> float:
    """How much is done: in digits of the bound where a tolerance is asked for."""
    first = min(history[0], 1.0)
    if aim == 0.0 or not np.isfinite(history[0]) or first <= aim:
        return n_solves / most
    return float(np.clip(np.log(np.clip(history[-1], aim, first) / first) / np.log(aim / first), 0.0, 1.0))
