"""Parts of the box that samples leave empty: a level holds for parameters drawn as the samples were, and for no others."""

from __future__ import annotations

import warnings

import numpy as np

from parasol.errors import ParasolWarning
from parasol.runtime.parameters import ParameterSpace

_FEWEST_ROWS, _MOST_COLUMNS = 10, 10  # with more columns, such as the values of a field, the box says nothing
_FAR = 3.0  # times as far as 95 of 100 samples are from the others: of samples drawn evenly no part is
_N_POINTS, _N_ROWS = 2000, 500
_MOST_NEIGHBOURS = 8192  # asked for each row, of which those in its own group do not count: that bounds the memory
_MUCH = 0.4  # of the box; samples drawn on a logarithmic scale or from a normal distribution leave up to 0.3


def warn_of_empty_parts(parameters: ParameterSpace, mus: np.ndarray, group: np.ndarray | None) -> None:
    """A warning where much of the answered box is far from all samples."""
    columns = [j for j, p in enumerate(parameters.scalars) if not p.choices and not p.distribution]
    if len(mus) < _FEWEST_ROWS or not columns or len(columns) > _MOST_COLUMNS:
        return
    ends = parameters.to_unit(np.asarray(parameters.answered.bounds))[:, columns]
    unit = (parameters.to_unit(mus)[:, columns] - ends[0]) / (ends[1] - ends[0])
    share = empty_share(unit, np.arange(len(mus)) if group is None else group)
    if share > _MUCH:
        warnings.warn(
            f"the samples leave {share:.0%} of the box of their ranges empty, as samples do that hang together or come in "
            "clusters: there neither answers nor bounds can be trusted. Sample these parts too, or ask for parameters like "
            "those of the samples only.",
            ParasolWarning,
            stacklevel=3,
        )


def empty_share(unit: np.ndarray, group: np.ndarray) -> float:
    """The share of the unit box that is far from all samples (n, n_columns), compared with their own distances between groups.

    >>> diagonal = np.linspace(0, 1, 100)
    >>> empty_share(np.column_stack([diagonal, diagonal]), np.arange(100)) > 0.5
    True
    """
    from scipy.spatial import KDTree  # here: it takes a while to import

    rng, tree = np.random.default_rng(0), KDTree(unit)
    rows = rng.permutation(len(unit))[:_N_ROWS]
    nearest = np.full(len(rows), np.inf)
    most, k = min(_MOST_NEIGHBOURS, len(unit)), 2
    while np.any(left := np.isinf(nearest)) and k < 4 * most:
        gaps, places = tree.query(unit[rows[left]], min(k, most))
        others = np.where(group[places] == group[rows[left]][:, None], np.inf, gaps)
        nearest[left] = others.min(axis=1)
        k *= 4
    far = _FAR * float(np.quantile(nearest, 0.95))
    return float(np.mean(tree.query(rng.random((_N_POINTS, unit.shape[1])))[0] > far))
