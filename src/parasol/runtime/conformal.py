"""Error bounds that hold with a given probability, from errors measured on parameters kept aside."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from parasol.checks import check_count, check_shape
from parasol.errors import InputError


class Coverage(NamedTuple):
    """The probability that the bound of one calibration set holds: its mean over such sets, and 95 % of them between."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class ConformalBound:
    """The error of a new parameter is at most `quantile` (times its difficulty, if `normalised`) at the given level.

    Where the calibration parameters were not `drawn` at random there is no such probability, and the bound is an estimate.
    Where the errors are those of fits without the sample they are measured at (`refitted`), the distance of the answer from
    such fits comes on top: see `Jackknife`.
    """

    level: float
    n_calibration: int
    quantile: float
    normalised: bool = False
    drawn: bool = field(default=True, metadata={"optional": True})
    refitted: bool = field(default=False, metadata={"optional": True})

    def __post_init__(self):
        if not (0 < self.level < 1 and self.quantile >= 0):
            raise InputError(f"a bound of {self.quantile!r} at the level {self.level!r} makes no sense.")

    @property
    def coverage(self) -> Coverage:
        """How sure the level itself is with this number of calibration parameters."""
        return coverage(self.level, self.n_calibration)

    @property
    def meaning(self) -> str:
        """What the bound says, in one sentence."""
        times = " times its estimate" if self.normalised else ""
        aside = "kept aside"
        if self.refitted:
            times, aside = (
                ", and what the answer differs from fits without one of the samples",
                "left out one at a time",
            )
        if not self.drawn:
            return (
                f"An estimate: of {self.n_calibration} parameters {aside}, not drawn at random, a share of about {self.level:g} "
                f"have errors of at most {self.quantile:.3g}{times}. How often that holds for new ones is not known."
            )
        return (
            f"With probability at least {self.level:g} over the {self.n_calibration} calibration parameters and a new one "
            f"drawn from the same distribution, the error at the new one is at most {self.quantile:.3g}{times}; "
            "this does not hold for each single parameter."
        )

    def bound(self, difficulty: ArrayLike | None = None) -> float | np.ndarray:
        """The bound: one number, or (n,) of them for the difficulties (n,) of new parameters if normalised."""
        if self.normalised != (difficulty is not None):
            raise InputError(
                "the bound was calibrated with difficulties. Pass those of the new parameters."
                if self.normalised
                else "the bound was calibrated without difficulties. Pass none, or give them for the calibration as well."
            )
        if difficulty is None:
            return self.quantile
        out = self.quantile * _positive(np.asarray(difficulty, dtype=float), "difficulty")
        return float(out) if out.ndim == 0 else out


def conformal_bound(
    errors: ArrayLike, *, level: float = 0.95, difficulty: ArrayLike | None = None, tries: int = 1, drawn: bool = True
) -> ConformalBound:
    """Bound the error of a new parameter by an order statistic of errors (n,) at parameters not used in training.

    The bound is the ⌈(n + 1) level⌉-th smallest error. Nothing is assumed but that the new parameter is drawn from the
    same distribution as the calibration parameters. With `difficulty` (n,), positive guesses of how large each error may be, the
    ratios error / difficulty are ranked and the bound follows the difficulty of the new parameter. An evaluation that
    failed counts as an error of inf: leaving it out would make the bound too small.

    Who calibrates again because a first bound was too large chooses a lucky set, and the level is no longer true. Where
    up to `tries` sets may be used, and this is said of each of them beforehand, each is calibrated at 1 − (1 − level) / tries,
    and whichever is taken keeps the level (the probabilities of a miss add up).

    Parameters that were not `drawn` at random (a lattice, Sobol points, points chosen by earlier errors) give an estimate.

    >>> conformal_bound([5, 1, 3, 2, 4, 9, 7, 6, 8], level=0.9).bound()  # ⌈10 · 0.9⌉ = 9th of nine
    9.0
    """
    errors = check_shape(errors, (None,), "errors")
    n = len(errors)
    bad = np.count_nonzero(~(errors >= 0))
    if bad:
        raise InputError(
            f"errors has {bad} of {n} entries that are negative or NaN. Pass absolute values, and inf for what failed."
        )
    rank = _rank(level, n, tries)
    if difficulty is not None:
        errors = errors / _positive(check_shape(difficulty, (n,), "difficulty"), "difficulty")
    quantile = float(np.sort(errors)[rank - 1])
    return ConformalBound(float(level), n, quantile, difficulty is not None, drawn)


def highest_level(n: int, *, failed: int = 0, tries: int = 1) -> float:
    """The highest level that n errors, `failed` of them inf, can give a finite bound at; 0 where there is none.

    It is 1 − tries (failed + 1) / (n + 1), rounded down, or n errors would not be enough.

    >>> highest_level(9), highest_level(12), 12 / 13
    (0.9, 0.923076923076923, 0.9230769230769231)
    >>> highest_level(39, tries=2), highest_level(39, failed=1)
    (0.95, 0.95)
    """
    exact = 1 - check_count(tries, "tries") * Fraction(failed + 1, check_count(n, "n") + 1)
    level = max(float(exact), 0.0)
    while level > 0 and _exactly(level) > exact:
        level = math.nextafter(level, 0.0)
    return level


def coverage(level: float, n: int) -> Coverage:
    """The probability that a bound calibrated with n errors holds for a new parameter; it varies with the set.

    With k = ⌈(n + 1) level⌉ it follows the distribution Beta(k, n + 1 − k) if errors are distinct; repeated errors only raise it.

    >>> coverage(0.95, 19).mean
    0.95
    >>> print("{:.3f} {:.3f}".format(*coverage(0.95, 1000)[1:]))
    0.936 0.963
    """
    n = check_count(n, "n")
    rank = _rank(level, n)
    return Coverage(rank / (n + 1), _quantile(0.025, rank, n), _quantile(0.975, rank, n))


def _quantile(probability: float, rank: int, n: int) -> float:
    """That of Beta(rank, n + 1 − rank), which is at most x with the probability of `rank` or more successes in n trials."""
    k = np.arange(rank, n + 1)
    logs = np.array([math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in k.tolist()])
    low, high = 0.0, 1.0
    for _ in range(60):
        x = (low + high) / 2
        below = float(np.sum(np.exp(logs + k * math.log(x) + (n - k) * math.log1p(-x)))) < probability
        low, high = (x, high) if below else (low, x)
    return (low + high) / 2


def _rank(level: Any, n: int, tries: int = 1) -> int:
    if isinstance(level, bool) or not isinstance(level, int | float | np.floating) or not 0 < level < 1:
        raise InputError(f"level={level!r} must be a probability strictly between 0 and 1, such as 0.95.")
    exact = 1 - (1 - _exactly(float(level))) / check_count(tries, "tries")
    rank = math.ceil((n + 1) * exact)
    if rank > n:
        needed = math.ceil(exact / (1 - exact))
        raise InputError(
            f"level={level:g} needs at least {needed} calibration errors, got {n}. "
            "Solve for more parameters, or lower the level."
        )
    return rank


def _exactly(level: float) -> Fraction:
    return Fraction(repr(level))  # as it is written: in floats 100 · 0.55 is above 55, and the rank would be 56


def _positive(values: np.ndarray, name: str) -> np.ndarray:
    if not np.all(np.isfinite(values) & (values > 0)):
        raise InputError(f"{name} must be positive and finite everywhere. Add a small positive number to it.")
    return values
