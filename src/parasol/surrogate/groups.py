"""Which rows of data belong together: a level holds for new groups, not for new rows of groups that were seen."""

from __future__ import annotations

import warnings

import numpy as np

from parasol.checks import ParasolError, ParasolWarning


def group_labels(mus: np.ndarray, groups=None) -> np.ndarray | None:
    """A whole number (n_samples,) for each row, equal in rows that belong together; None of a lattice.

    Without `groups` every row stands for itself, unless rows repeat in all but exactly one column (the times of one
    trajectory): these are groups. Where several columns can be left out so, the rows are a lattice, chosen by nobody at
    random, and no level can be calibrated with them.

    >>> group_labels(np.array([[1.0, 0.0], [1.0, 0.5], [2.0, 0.0], [2.0, 0.25]]), ["a", "a", "b", "b"])
    array([0, 0, 1, 1])
    """
    if groups is not None:
        groups = np.asarray(groups)
        if groups.shape != (len(mus),):
            raise ParasolError(f"groups has shape {groups.shape}: give one label for each of the {len(mus)} samples.")
        return np.unique(groups, return_inverse=True)[1]
    repeated = []
    for column in range(mus.shape[1] if mus.shape[1] > 1 else 0):
        labels = np.unique(np.delete(mus, column, axis=1), axis=0, return_inverse=True)[1].ravel()
        if 2 * (labels.max() + 1) <= len(mus):
            repeated.append((column, labels))
    if len(repeated) > 1:
        warnings.warn(
            "the samples form a lattice, which nobody drew at random: no error bound can be calibrated with them. "
            "Give samples drawn at random, or groups=range(n) if each row was.",
            ParasolWarning,
            stacklevel=3,
        )
        return None
    if repeated:
        column, labels = repeated[0]
        warnings.warn(
            f"{len(mus)} rows repeat in all columns but column {column}: they are taken for {labels.max() + 1} groups, and error "
            "bounds hold for whole new groups. Say otherwise with groups=, one label for each row.",
            ParasolWarning,
            stacklevel=3,
        )
        return labels
    return np.arange(len(mus))
