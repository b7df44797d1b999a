"""Few samples: all of them are learned from, and fits that leave one out at a time give the bound."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from parasol.errors import ParasolWarning, TooFewSamples
from parasol.fitting.fit import Labels, accuracy, surrogate_of
from parasol.fitting.gaussian_process import GaussianProcess
from parasol.fitting.linear import Linear
from parasol.fitting.logarithms import features_for
from parasol.fitting.maps import Recipe
from parasol.fitting.polynomial import Polynomial
from parasol.fitting.recipes import recipe_named
from parasol.reduction.pod import pod
from parasol.reduction.products import root_of_weights
from parasol.reduction.snapshots import as_snapshots
from parasol.runtime.basis import Basis
from parasol.runtime.conformal import conformal_bound, highest_level
from parasol.runtime.jackknife import Jackknife
from parasol.runtime.operations import Affine
from parasol.runtime.parameters import ParameterSpace
from parasol.runtime.program import Program, StoredMap, program_of
from parasol.runtime.surrogate import Surrogate

_MOST = 64  # groups of samples left out: each of them is one more map in the file
_ROUNDING = 1e-12  # of the largest: directions of the samples that are smaller are none


@dataclass(frozen=True, eq=False)
class Samples:
    """Data as they are fitted to; rows of equal `group` are left out together."""

    mus: np.ndarray  # (n_samples, n_parameters)
    solutions: np.ndarray  # (n_samples, n_values)
    group: np.ndarray  # (n_samples,) whole numbers from 0 on
    fields: np.ndarray | None  # (n_values,) labels, where there are several
    space: Callable[[np.ndarray], ParameterSpace]  # of the parameters of the samples that a fit may see


def with_jackknife(
    surrogate: Surrogate,
    samples: Samples,
    recipe: str | Recipe,
    *,
    level: float,
    drawn: bool,
    tolerance: float | None,
    n_modes: int | None,
    rng: int,
) -> Surrogate:
    """The surrogate, fitted to all samples, with a bound from fits that leave out a group of them at a time.

    These need not be fitted as the surrogate was: what they differ from it is part of the bound. Where training takes long,
    Gaussian processes stand in. Each fit, its modes included, is a function of the set of its samples, as the proof
    of the level asks. The units of fields alone are those of all samples.
    """
    recipe = recipe_named(recipe)
    recipe = recipe if isinstance(recipe, Polynomial | GaussianProcess | Linear) else GaussianProcess()
    n_groups = int(samples.group.max()) + 1
    chosen = np.random.default_rng(rng).permutation(n_groups)[:_MOST]
    directions = _directions(surrogate.basis, samples.solutions)
    members, errors = [], []
    try:
        for group in chosen:
            out = samples.group == group
            fit = _fit_to(samples, ~out, recipe, surrogate.basis, tolerance, n_modes)
            truth = as_snapshots(samples.mus[out], samples.solutions[out])
            errors.append(float(np.max(accuracy(fit, truth, fields=samples.fields).errors)))
            members.append(_member(fit, directions))
    except TooFewSamples as error:
        _warn(f"{n_groups} samples are too few for an error bound: without one of them, {error}")
        return surrogate
    reached = min(level, highest_level(len(chosen)))
    if reached < level:
        _warn(
            f"{n_groups} samples are too few for a bound at level {level:g}: it is one at level {reached:.3g}, from fits that "
            "leave one of them out. Give more samples, or a lower level."
        )
    conformal = replace(conformal_bound(errors, level=reached, drawn=drawn), refitted=True)
    return replace(
        surrogate, conformal=conformal, jackknife=Jackknife(tuple(members), _norms(directions, samples.fields))
    )


def _fit_to(
    samples: Samples, rows: np.ndarray, recipe: Recipe, whole: Basis, tolerance: float | None, n_modes: int | None
) -> Surrogate:
    """A fit to some rows, in the order of their parameters: no other order may matter."""
    mus, solutions = samples.mus[rows], samples.solutions[rows]
    order = np.lexsort(mus.T)
    mus, solutions = mus[order], solutions[order]
    n_modes = None if n_modes is None else min(n_modes, *solutions.shape)
    with warnings.catch_warnings():  # what there is to say was said of the surrogate itself
        warnings.simplefilter("ignore", ParasolWarning)
        basis = pod(solutions, tolerance=tolerance, n_modes=n_modes, weights=whole.weights)
        labels, space = Labels(mus, basis.project(solutions)), samples.space(mus)
        # each fit is asked at all samples, where those that it has not seen may have no logarithm
        never = np.flatnonzero(np.min(samples.mus, axis=0) <= 0).tolist()
        features = features_for(space, mus, labels.coefficients, never=never)
        return surrogate_of(recipe, basis, space, labels, None, "data", 0, None, features=features)


def _directions(basis: Basis, solutions: np.ndarray) -> Basis:
    """The modes, and what the samples span besides them."""
    root = root_of_weights(basis.weights, basis.n_values)
    modes = root.into(basis.modes).T
    rest = root.into(solutions.T).T
    largest = np.linalg.norm(rest, axis=1).max()
    for _ in range(2):  # once more: what the first leaves of the modes is rounding of large numbers
        rest = rest - (rest @ modes.T) @ modes
    _, sizes, more = np.linalg.svd(rest, full_matrices=False)
    directions: np.ndarray = np.linalg.qr(np.vstack([modes, more[sizes > _ROUNDING * largest]]).T)[0]
    directions[:, : len(modes)] = modes.T
    return Basis(root.back(directions), basis.weights)


def _member(fit: Surrogate, directions: Basis) -> StoredMap:
    program = program_of(fit.map)
    assert program is not None
    into = Affine(directions.project(fit.basis.modes.T).T.copy())
    operations = (*fit.features.operations, *program.astype(np.float64).operations, into)
    return StoredMap(Program(operations), fit.facts["recipe"])


def _norms(directions: Basis, fields: np.ndarray | None) -> np.ndarray | None:
    """(n_fields, n, n): triangles whose products with coordinates are as long as each field."""
    if fields is None:
        return None
    root, n = root_of_weights(directions.weights, len(fields)), directions.n_modes
    modes = root.into(directions.modes)
    norms = np.zeros((int(fields.max()) + 1, n, n))
    for label, norm in enumerate(norms):
        triangle: np.ndarray = np.linalg.qr(modes[fields == label], mode="r")  # type: ignore[assignment]
        norm[: len(triangle)] = triangle
    return norms


def _warn(text: str) -> None:
    warnings.warn(text, ParasolWarning, stacklevel=4)
