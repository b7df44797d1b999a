"""Where there are solutions: the largest part of the parameter box in which no solve failed."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from parasol.errors import SolveFailed
from parasol.runtime.parameters import ParameterSpace

_CLOSE = 0.01  # of a range: how well the border of the solvable part is found


@dataclass(frozen=True, eq=False)
class Cut:
    """One range shortened: parameter number `axis` stays below `value` if `below`, else above it."""

    axis: int
    value: float  # in the unit interval, on the parameter's own scale: the outermost that was solved
    failed: float  # the innermost that was not
    below: bool


def cuts(space: ParameterSpace, solved: np.ndarray, failed: np.ndarray) -> list[Cut]:
    """Shortened ranges without failures that lose few of the solved parameters (n, n_scalars).

    >>> from parasol.runtime.ranges import ParameterRange
    >>> space = ParameterSpace((ParameterRange("a", 0.0, 1.0),))
    >>> cut = cuts(space, np.array([[0.1], [0.5], [0.7]]), np.array([[0.8], [0.9]]))[0]
    >>> cut.value, cut.failed, cut.below
    (0.7, 0.8, True)
    """
    n = len(space.scalars)
    good, bad = space.to_unit(solved[:, :n]), space.to_unit(failed[:, :n])
    out: list[Cut] = []
    while len(bad):
        options = _options(good, bad)
        if not options:
            break
        cut = max(options, key=lambda pair: pair[0])[1]
        out.append(cut)
        sign = 1.0 if cut.below else -1.0
        good = good[sign * good[:, cut.axis] <= sign * cut.value]
        bad = bad[sign * bad[:, cut.axis] <= sign * cut.value]
    return out


def _options(good: np.ndarray, bad: np.ndarray) -> list[tuple[float, Cut]]:
    """Cuts just inside each failure, along each axis, with the failures they take for each solved parameter they lose."""
    options = []
    for axis, below in itertools.product(range(good.shape[1]), (True, False)):
        sign = 1.0 if below else -1.0
        g, b = sign * good[:, axis], sign * bad[:, axis]
        for edge in np.unique(b):
            kept = g[g < edge]
            if len(kept):
                worth = np.count_nonzero(b >= edge) / (len(g) - len(kept) + 1)
                options.append((worth, Cut(axis, float(sign * np.max(kept)), float(sign * edge), below)))
    return options


def between(space: ParameterSpace, borders: list[Cut], solved: np.ndarray) -> np.ndarray:
    """Parameters half-way between what was solved and what was not, one for each border that is not known well."""
    n = len(space.scalars)
    rows = []
    for cut in borders:
        if abs(cut.failed - cut.value) <= _CLOSE:
            continue
        units = space.to_unit(solved[:, :n])
        nearest = int(np.argmin(np.abs(units[:, cut.axis] - cut.value)))
        row = units[nearest].copy()
        row[cut.axis] = (cut.value + cut.failed) / 2
        rows.append(np.concatenate([space.from_unit(row[None])[0], solved[nearest, n:]]))
    return np.array(rows).reshape(len(rows), solved.shape[1])


def shortened(space: ParameterSpace, borders: list[Cut]) -> ParameterSpace:
    """The box after the cuts."""
    low, high = np.zeros(len(space.scalars)), np.ones(len(space.scalars))
    for cut in borders:
        (high if cut.below else low)[cut.axis] = cut.value
    if np.any(low >= high):
        narrow = [p.name for p, a, b in zip(space.scalars, low, high, strict=True) if a >= b]
        raise SolveFailed(
            f"full solves succeeded at one value of {', '.join(narrow)} only: there is nothing to learn. "
            f"Declare the range in which there are solutions."
        )
    ends = [space.from_unit(unit[None])[0] for unit in (low, high)]
    scalars = [
        replace(p, low=max(float(a), p.low), high=min(float(b), p.high))
        for p, a, b in zip(space.scalars, *ends, strict=True)
    ]
    return ParameterSpace(tuple(scalars), space.functions)


def marked(whole: ParameterSpace, part: ParameterSpace, why: str) -> ParameterSpace:
    """The declared box, with the part of it in which no solve failed."""
    solved = tuple((p.low, p.high) for p in part.scalars)
    return ParameterSpace(whole.scalars, whole.functions, solved, why)
