"""The error of a network against least squares: at corners, at random parameters, and where a search makes it largest."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from parasol.pde import Model
from parasol.report import Facts
from parasol_lab.theorem.construction.system import System

_N_TEST = 1000  # random parameters
_LARGE, _N_TEST_LARGE = 1_000_000, 200  # with so many weights one answer takes long, and fewer are asked for
_MOST_CORNERS = 10  # parameters whose corners are all tested
_STARTS = 8  # of the search: where the error is largest
_ROUNDS, _ROUNDS_LARGE = 40, 4
_TRIES = 8  # around each start and round
_SHRINK = 0.8

Answers = Callable[[np.ndarray], np.ndarray]


def unseen(model: Model, n_random: int, seed: int) -> tuple[np.ndarray, int]:
    """Corners of the box, if there are not too many, then random parameters; and the number of corners."""
    n_scalars = len(model.parameters.scalars)
    mus = model.sample(n_random, rng=seed + 1)
    if not 0 < n_scalars <= _MOST_CORNERS:
        return mus, 0
    corners = np.repeat(mus[:1], 2**n_scalars, axis=0)
    corners[:, :n_scalars] = model.parameters.grid(*[2] * n_scalars)
    return np.vstack([corners, mus]), len(corners)


def tested(
    system: System, answers: Answers, model: Model, *, n_weights: int, size: float, seed: int, progress
) -> Facts:
    """The largest and the mean error over corners and random parameters, and the largest that a search from there finds.

    Errors are relative to the largest ||c||, seen here or before (`size`).
    """
    n_random = _N_TEST if n_weights < _LARGE else _N_TEST_LARGE
    mus, n_corners = unseen(model, n_random, seed)
    exact = system.coefficients(mus)
    start, parts = time.perf_counter(), []
    for rows in np.array_split(np.arange(len(mus)), 20):
        parts.append(answers(mus[rows]))
        if progress is not None:
            progress((rows[-1] + 1) / len(mus))
    seconds = time.perf_counter() - start
    gaps = np.linalg.norm(np.concatenate(parts) - exact, axis=1)
    largest = float(np.max(np.linalg.norm(exact, axis=1)))
    scale = max(largest, size)
    rounds = _ROUNDS if n_weights < _LARGE else _ROUNDS_LARGE
    worst, searched, n_searched = _searched(system, answers, mus, gaps, rounds, seed)
    return {
        "error": searched / scale,
        "random_error": float(np.max(gaps)) / scale,
        "mean_error": float(np.mean(gaps)) / scale,
        "worst": worst[: len(model.parameters.scalars)].tolist(),
        "n_random": n_random,
        "n_corners": n_corners,
        "n_searched": n_searched,
        "largest_norm": largest,
        "seconds_per_query": seconds / len(mus),
    }


def _searched(
    system: System, answers: Answers, mus: np.ndarray, gaps: np.ndarray, rounds: int, seed: int
) -> tuple[np.ndarray, float, int]:
    """Climb from the worst parameters by random steps that grow smaller, along one axis or all; the box is never left."""
    rng, space = np.random.default_rng(seed), system.parameters
    n = len(space.scalars)
    order = np.argsort(-gaps)[:_STARTS]
    best, values = mus[order].copy(), gaps[order].copy()
    if not n:
        return best[0], float(values[0]), 0
    low, high = np.asarray(space.bounds)
    radius, count = 0.2, 0
    for _ in range(rounds):
        steps = radius * rng.standard_normal((len(best), _TRIES, n))
        steps[:, ::2] *= np.eye(n)[rng.integers(n, size=(len(best), (_TRIES + 1) // 2))]
        tries = np.repeat(best[:, None], _TRIES, axis=1)
        tries[..., :n] = np.clip(tries[..., :n] + steps * (high - low), low, high)
        flat = tries.reshape(-1, best.shape[1])
        errors = np.linalg.norm(answers(flat) - system.coefficients(flat), axis=1).reshape(tries.shape[:2])
        count += len(flat)
        top = np.argmax(errors, axis=1)
        rows = np.arange(len(best))
        better = errors[rows, top] > values
        best[better], values[better] = tries[rows, top][better], errors[rows, top][better]
        radius *= _SHRINK
    at = int(np.argmax(values))
    return best[at], float(values[at]), count
