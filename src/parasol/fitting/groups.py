"""What rows of data are samples of: which belong together, and whether they can have been drawn at random.

A level of probability holds for new groups, not for new rows of groups that were seen, and only of random samples.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from parasol.checks import check_labels
from parasol.errors import ParasolWarning
from parasol.runtime.parameters import ParameterSpace

_FEWEST_ROWS, _MOST_COPIES, _MOST_COLUMNS = 8, 12, 5
_RATIO = 0.02  # of distances to two neighbours, one after the other
_ALIKE = 0.01  # of a range, by which copies of a setting differ at most
_CHANCE = 1e-6  # that random samples are taken for a design


def group_labels(
    mus: np.ndarray, groups=None, choices: Sequence[bool] = (), *, quiet: bool = False
) -> np.ndarray | None:
    """A whole number (n_samples,) for each row, equal in rows that belong together; None of a lattice.

    Without `groups` every row stands for itself, but those with equal parameters, or nearly equal ones (`nearly_alike`), belong
    together: a run given twice must not be learned from and kept aside. Rows that repeat in all but exactly one column (the times of one trajectory) are groups too. Where several columns can be left out so, the rows are a lattice, chosen by nobody at
    random, and no level can be calibrated with them. Both are said, unless `quiet`. Columns that are `choices` repeat by
    chance and tell nothing.

    >>> group_labels(np.array([[1.0, 0.0], [1.0, 0.5], [2.0, 0.0], [2.0, 0.25]]), ["a", "a", "b", "b"])
    array([0, 0, 1, 1])
    """
    if groups is not None:
        labels = check_labels(groups, len(mus), "groups", "samples")
        return np.unique(labels, return_inverse=True)[1]
    terms = _row_terms(mus)
    _, first, again = np.unique(terms.sum(axis=1), return_index=True, return_inverse=True)
    repeated = []
    for column, n_different in enumerate(_different_without(terms) if mus.shape[1] > 1 else ()):
        if 2 * n_different <= len(first) and not (choices and all(np.delete(choices, column))):
            labels = np.unique(np.delete(mus, column, axis=1), axis=0, return_inverse=True)[1].ravel()
            repeated.append((column, labels))
    if len(repeated) > 1:
        _warn(
            quiet,
            "the samples form a lattice, which nobody drew at random: no error bound can be calibrated with them. "
            "Calibrate with others, drawn at random, by ps.calibrate(surrogate, results), or pass groups=range(n) if each "
            "row was drawn so.",
        )
        return None
    if repeated:
        column, labels = repeated[0]
        _warn(
            quiet,
            f"{len(mus)} rows repeat in all columns but column {column}: they are taken for {labels.max() + 1} groups, and error "
            "bounds hold for whole new groups. Say otherwise with groups=, one label for each row, or declare columns of few "
            "values as ps.Choice.",
        )
        return labels
    if len(first) < len(mus) and not (choices and all(choices)):
        _warn(
            quiet,
            f"{len(mus)} rows have {len(first)} different parameters: rows with the same ones are kept together, and error "
            "bounds hold for new parameters. Pass groups=range(n) if each row was drawn by itself.",
        )
        return again
    labels = np.arange(len(mus)) if choices and all(choices) else nearly_alike(mus)
    if labels.max(initial=-1) + 1 < len(mus):
        _warn(
            quiet,
            f"{len(mus)} rows have {labels.max() + 1} parameters with small changes: rows with nearly the same ones are kept "
            "together, and error bounds hold for new parameters. Pass groups=range(n) if each row was drawn by itself.",
        )
    return labels


def nearly_alike(mus: np.ndarray) -> np.ndarray:
    """A whole number (n_samples,) for each row, equal in rows whose parameters are copies of each other up to small changes.

    Of independent samples the distance to the k-th nearest one is below r times that to the next with the probability
    r^k on a line, r^(kd) in d dimensions, whatever their distribution. Where that is so of half of all rows for an r of
    1/50, they are copies: runs that were repeated, say, with settings that were read off again.

    >>> settings = np.array([0.1, 0.3, 0.7, 0.8])
    >>> nearly_alike(np.append(settings, settings + 1e-6)[:, None])
    array([0, 1, 2, 3, 0, 1, 2, 3], dtype=int32)
    """
    from scipy.sparse import coo_array  # here: they take a while to import
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import KDTree

    alone, width = np.arange(len(mus)), np.ptp(mus, axis=0)
    if len(mus) < _FEWEST_ROWS or not np.any(width > 0):
        return alone
    unit = (mus - mus.min(axis=0))[:, width > 0] / width[width > 0]
    if unit.shape[1] > _MOST_COLUMNS:  # copies are near each other in any direction
        unit = unit @ np.random.default_rng(0).normal(size=(unit.shape[1], _MOST_COLUMNS))
    tree = KDTree(unit)
    far = tree.query(unit, 2 + min(_MOST_COPIES, max(1, len(unit) // 6)))[0][:, 1:]  # (n, k): from the nearest on
    near, beyond = far[:, :-1], far[:, 1:]
    alike = near < _RATIO * beyond
    k = int(np.argmax(np.sum(alike, axis=0)))
    if 2 * np.sum(alike[:, k]) < len(mus):
        return alone
    near, beyond = near[alike[:, k], k], beyond[alike[:, k], k]
    reach = np.sqrt(np.quantile(near, 0.9) * np.quantile(beyond, 0.1))
    i, j = tree.query_pairs(reach, output_type="ndarray").T
    return connected_components(coo_array((np.ones(len(i)), (i, j)), shape=(len(mus), len(mus))))[1]


def warn_of_contradictions(mus: np.ndarray, solutions: np.ndarray, tolerance: float) -> None:
    """A warning where rows with equal parameters differ by more than ten times the tolerance: no map follows both."""
    sums = _row_terms(mus).sum(axis=1)
    order = np.argsort(sums, kind="stable")
    same = np.flatnonzero(sums[order][1:] == sums[order][:-1])
    pairs = np.column_stack([order[same], order[same + 1]])  # neighbours among the equal ones
    sizes = [np.linalg.norm(solutions[pair], axis=1).max() for pair in pairs]
    gaps = [np.linalg.norm(solutions[i] - solutions[j]) for i, j in pairs]
    off = np.array([gap / size if size > 0 else 0.0 for gap, size in zip(gaps, sizes, strict=True)])
    if len(off) and np.max(off) > 10 * tolerance:
        i, j = sorted(pairs[int(np.argmax(off))])
        warnings.warn(
            f"rows {i} and {j}, counted from 0, have the same parameters, but their values differ by {np.max(off):.1e}, "
            "relative to the larger: no map follows both. Leave the wrong one out, or add the parameter in which they "
            "differ; if it is noise, errors cannot become smaller.",
            ParasolWarning,
            stacklevel=3,
        )


def _warn(quiet: bool, text: str) -> None:
    if not quiet:
        warnings.warn(text, ParasolWarning, stacklevel=4)


def _row_terms(mus: np.ndarray) -> np.ndarray:
    """Whole numbers (n_samples, n_parameters) modulo 2⁶⁴ whose sums are equal in equal rows.

    Sorting the rows themselves takes a minute for 1000 rows of 841 columns.
    """
    codes = np.stack([np.unique(column, return_inverse=True)[1].ravel() for column in mus.T], axis=1).astype(np.uint64)
    return codes * np.random.default_rng(0).integers(1, 2**64, mus.shape[1], dtype=np.uint64)


def _different_without(terms: np.ndarray) -> list[int]:
    """How many rows are different when each column in turn is left out."""
    whole = terms.sum(axis=1)
    return [len(np.unique(whole - term)) for term in terms.T]


def drawn_at_random(mus: np.ndarray, parameters: ParameterSpace, groups: np.ndarray | None = None) -> bool:
    """Whether samples can have been drawn at random; a warning where they were not. Of `groups`, one row of each counts."""
    scalars = mus[:, : len(parameters.scalars)]
    drawn = np.ones(scalars.shape[1], dtype=bool)
    if groups is not None:
        _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
        change = np.max(np.abs(scalars - scalars[first][inverse]), axis=0)
        drawn = change <= _ALIKE * np.ptp(scalars, axis=0)  # others, such as times, change within a group
        scalars = scalars[first]
    if not spread_evenly(scalars, parameters, drawn):
        return True
    warnings.warn(
        "the samples fill their ranges more evenly than samples drawn at random do, as Sobol points, Latin hypercubes and "
        "lattices do: the error bound is an estimate, without a probability. Draw samples at random for a calibrated one.",
        ParasolWarning,
        stacklevel=3,
    )
    return False


def spread_evenly(mus: np.ndarray, parameters: ParameterSpace, columns: np.ndarray | None = None) -> bool:
    """Whether some column of mus (n, n_scalars) fills its range more evenly than random samples would once in 1e6 times.

    The largest distance D of the empirical distribution from the even one is about 1 / √n of random samples and 1 / n of
    stratified ones; its distribution is known (Kolmogorov). Ranges are the declared ones and those of the samples, whose
    ends are left out, for what lies between is even again; scales are linear and logarithmic. Where samples have another
    distribution than one of these, D is larger and nothing is noticed.
    """
    n_tests = 4 * len(parameters.scalars)
    for j, p in enumerate(parameters.scalars):
        if columns is not None and not columns[j]:
            continue
        values = np.sort(mus[:, j])
        for scale in (np.asarray, np.log) if min(p.low, values[0]) > 0 else (np.asarray,):
            x = scale(values)
            for inner, low, high in ((x, scale(p.low), scale(p.high)), (x[1:-1], x[0], x[-1])):
                if len(inner) and low < high and _evenness((inner - low) / (high - low)) < _CHANCE / n_tests:
                    return True
    return False


def _evenness(unit: np.ndarray) -> float:
    """The probability that as many numbers drawn at random from the unit interval are spread as evenly as these, sorted."""
    from scipy.stats import kstwo  # here: it takes a second to import

    n = len(unit)
    steps = np.arange(n + 1) / n
    return float(kstwo.cdf(max(np.max(steps[1:] - unit), np.max(unit - steps[:-1])), n))
