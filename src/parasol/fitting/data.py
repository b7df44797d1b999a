"""A surrogate of other people's data: what belongs together, what is kept aside, and where the samples reach."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.lib.recfunctions import unstructured_to_structured
from numpy.typing import ArrayLike

from parasol.checks import Progress, check_finite, check_progress, check_shape, unmasked
from parasol.errors import InputError, ParasolWarning
from parasol.fitting.by_field import fit_fields
from parasol.fitting.calibration import following, with_parts
from parasol.fitting.choosing import fit_rows
from parasol.fitting.empty_parts import warn_of_empty_parts
from parasol.fitting.fit import accuracy, space_of
from parasol.fitting.groups import drawn_at_random, group_labels, warn_of_contradictions
from parasol.fitting.jackknife import Samples, with_jackknife
from parasol.fitting.maps import Recipe
from parasol.fitting.results import Results
from parasol.fitting.units import field_labels, field_weights, warn_of_units
from parasol.reduction.pod import pod
from parasol.reduction.snapshots import Snapshots, as_snapshots
from parasol.runtime.conformal import conformal_bound
from parasol.runtime.layout import Layout
from parasol.runtime.parameters import ParameterSpace, named_columns
from parasol.runtime.quantities import quantities_of
from parasol.runtime.surrogate import Surrogate

_MOST_ASIDE = 100  # samples for the bound, unless the level needs more: others are of more use to the map
_RARE = 20  # a choice that one sample in so many has can be wrong each time, at the usual level
_CHANCE = 1e-3  # of a gap between the samples and the end of a range, below which it is not by chance


class AboutData(TypedDict, total=False):
    """What may be known of data; `fit_snapshots` says what each means."""

    ranges: Mapping[str, tuple] | None
    weights: np.ndarray | None
    quantities: Mapping[str, Any] | None
    groups: Any
    fields: Any
    layout: Layout


def fit_snapshots(
    mus: Any,
    solutions: ArrayLike,
    recipe: str | Recipe = "best",
    *,
    tolerance: float | None = None,
    n_modes: int | None = None,
    level: float | None = 0.95,
    rng: int = 0,
    progress: Progress = None,
    **about: Unpack[AboutData],
) -> Surrogate:
    """A surrogate of other people's data: solutions (n_samples, n_values) at parameters (n_samples, n_parameters).

    "best" is the map that errs least where samples are left out, from linear to network (see `fit_rows`); it may leave out modes
    that no map predicts, for noise or for want of samples. `ranges` names the parameters and says where they may lie, as in `parameters`: a=(0.1, 4.0) or a=(0.1, 4.0, "log"); left
    out, they are those of the data. Columns of a data frame are matched by name, those of an array stand in the order of
    `ranges`. The basis is a POD to `tolerance` (default 1e-4) or of `n_modes`, in the inner product with `weights` (n_values,).
    A fifth of the samples (100 at most, or what the level needs), chosen at random, is kept aside for a conformal bound at the `level`, which holds for parameters
    from the distribution of the samples, if these were drawn at random: of Sobol points or a Latin hypercube it is an
    estimate. None keeps none. Where too few would be left to learn from, all are, and fits that leave one out at a time give
    the bound: n samples allow a level of n / (n + 1) at most (see `Jackknife`). Rows that belong together, the times of one trajectory for instance, have equal labels in
    `groups` (n_samples,): whole groups are kept aside, and the bound holds for all rows of a new group at the level.
    `quantities` names what is wanted of a solution: weights (n_values,) each, or of the values at one time. A `layout` says
    where and when the values are; `Results` makes it.

    Values of different units, displacements and stresses for instance, have labels in `fields` (n_values,), equal in
    values of one field; solutions (n_samples, n_nodes, n_fields) need none. Each field is then scaled by its root mean
    square over the samples, the tolerance is that of all fields so scaled, and the bound is one of the relative error of
    each field. Answers have the values in the order given, as one row.
    """
    check_progress(progress)
    unknown = about.keys() - AboutData.__annotations__.keys()
    if unknown:
        raise TypeError(f"fit_snapshots() got an unexpected keyword argument {min(unknown)!r}")
    _check_level(level)
    mus, ranges = _columns(mus, about.get("ranges"))
    solutions, fields = _rows(solutions, about.get("fields"), len(mus))
    parameters = space_of(mus, ranges)
    _check_inside(parameters, mus)
    parameters = _within_samples(parameters, mus)
    choices = [bool(p.choices) for p in parameters.scalars]
    group = group_labels(mus, about.get("groups"), choices, quiet=level is None)
    if level is not None:
        warn_of_empty_parts(parameters, mus, group)
        warn_of_contradictions(mus, solutions, 1e-4 if tolerance is None else tolerance)
    aside = np.zeros(len(mus), dtype=bool)
    if group is not None and level is not None:
        n_groups = int(group.max()) + 1
        aside = np.isin(group, np.random.default_rng(rng).permutation(n_groups)[: _n_aside(n_groups, level)])
    weights, quantities = about.get("weights"), about.get("quantities")
    if fields is not None:
        weights = field_weights(solutions[~aside], fields, weights)
    warn_of_units(solutions, weights)
    if tolerance is None and n_modes is None:
        tolerance = 1e-4
    basis = pod(solutions[~aside], tolerance=tolerance, n_modes=n_modes, weights=weights)
    seen = (mus[~aside], solutions[~aside], None if group is None else group[~aside])
    options: dict[str, Any] = {"tolerance": tolerance, "rng": rng, "progress": progress}
    if recipe == "best" and fields is not None and tolerance is not None and fields.max() > 0:
        surrogate = fit_fields(basis, fields, parameters, *seen, **options)
    else:
        surrogate = fit_rows(recipe, basis, parameters, *seen, **options)
    basis, difficulty = surrogate.basis, surrogate.difficulty
    surrogate = replace(surrogate, layout=(layout := about.get("layout", Layout())), difficulty=None)
    rows = None
    if quantities:
        n_here = basis.n_values // layout.n_times
        rows = np.array([check_shape(w, (n_here,), f"weights of the quantity {n!r}") for n, w in quantities.items()])
        surrogate = replace(surrogate, quantities=quantities_of(tuple(quantities), rows, basis.modes, weights))
    if group is None or level is None:
        return surrogate
    drawn = drawn_at_random(mus, parameters, group)
    if not aside.any():
        space = space_of if ranges is None else (lambda _: parameters)
        allowed = {"level": level, "drawn": drawn, "tolerance": tolerance, "n_modes": n_modes, "rng": rng}
        return with_jackknife(surrogate, Samples(mus, solutions, group, fields, space), recipe, **allowed)
    held_out = as_snapshots(mus[aside], solutions[aside])
    surrogate = replace(surrogate, difficulty=difficulty)
    return _calibrated(surrogate, held_out, group[aside], fields, rows, level=level, drawn=drawn)


def _check_level(level: Any) -> None:
    if level is not None and not (isinstance(level, float) and 0 < level < 1):
        raise InputError(f"level={level!r} must be a probability strictly between 0 and 1, such as 0.95, or None.")


def _calibrated(
    surrogate: Surrogate,
    held_out: Snapshots,
    group: np.ndarray,
    fields: np.ndarray | None,
    rows: np.ndarray | None,
    *,
    level: float,
    drawn: bool,
) -> Surrogate:
    """The surrogate with bounds from what was kept aside, multiples of its difficulty: of a group the worst row counts."""
    errors, difficulty = accuracy(surrogate, held_out, fields=fields).errors, surrogate.difficulty
    surrogate = replace(surrogate, difficulty=None)
    labels, places = np.unique(group, return_inverse=True)
    worst = np.zeros(len(labels))
    np.maximum.at(worst, places, errors)
    parts: dict[str, Any] = {"level": level, "group": group}
    if fields is not None and len(surrogate.layout.fields) == fields.max() + 1:
        parts |= {"labels": fields, "weights": surrogate.basis.weights}
    plain = conformal_bound(worst, level=level, drawn=drawn)
    surrogate = replace(surrogate, conformal=plain, facts={**surrogate.facts, "calibrated_bound": plain.quantile})
    if difficulty is not None:
        options = {"level": level, "drawn": drawn, "group": group}
        surrogate = following(surrogate, difficulty, held_out.mus, errors, **options)
    return with_parts(surrogate, held_out, rows, **parts)


def fit_results(
    results: Results,
    recipe: str | Recipe = "best",
    *,
    tolerance: float | None = None,
    ranges: Mapping[str, tuple] | None = None,
    level: float | None = 0.95,
    rng: int = 0,
    progress: Progress = None,
) -> Surrogate:
    """A surrogate of results, as `fit_snapshots` makes it of arrays; it knows where and when their values are.

    Quantities that are no functionals of the fields have a map and bounds of their own, from the same runs.
    """
    results.check_numbers()
    for arrays in (results.fields, results.scalars):
        if arrays and not any(np.any(values) for values in arrays.values()):
            raise InputError(f"{', '.join(arrays)} is zero in all runs: there is nothing to learn. Leave it out.")
    mus: Any = results.mus
    if results.parameters:
        mus = unstructured_to_structured(results.mus, names=list(results.parameters))
    about: dict[str, Any] = {"tolerance": tolerance, "ranges": ranges, "level": level, "rng": rng}
    about["groups"] = results.groups
    scalars = None
    if results.scalars:
        layout = Layout(names=tuple(results.scalars), times=results.times)
        values, units = results.scalar_rows
        wanted = dict(zip(layout.names, np.eye(len(layout.names)), strict=True))
        scalars = fit_snapshots(mus, values, recipe, **about, fields=units, quantities=wanted, layout=layout)
    if not results.fields:
        assert scalars is not None
        return scalars
    about |= {"weights": results.weights, "fields": results.units, "quantities": results.functionals}
    surrogate = fit_snapshots(mus, results.values, recipe, progress=progress, **about, layout=results.layout)
    return replace(surrogate, scalars=scalars)


def _check_inside(parameters: ParameterSpace, mus: np.ndarray) -> None:
    """Refuse samples outside the ranges, by what is wrong with how many of them."""
    parameters.check_choices(mus)
    low, high = parameters.limits
    outside = np.any((mus < low) | (mus > high), axis=1)
    if np.any(outside):
        j = int(np.argmax(np.any((mus < low) | (mus > high), axis=0)))
        p, ends = parameters.scalars[j], (np.min(mus[:, j]), np.max(mus[:, j]))
        raise InputError(
            f"{np.count_nonzero(outside)} of {len(mus)} samples are outside the ranges: {p.name} reaches from {ends[0]:g} to "
            f"{ends[1]:g}, its range is [{p.low:g}, {p.high:g}]. Declare wider ranges, or leave these samples out."
        )


def _columns(mus, ranges: Mapping[str, tuple] | None) -> tuple[np.ndarray, Mapping[str, tuple] | None]:
    """Parameters (n_samples, n_parameters) in the order of the ranges, and the ranges."""
    columns = dict(mus) if isinstance(mus, Mapping) else named_columns(mus)
    if columns is not None:
        parts = {name: check_shape(column, (None,), f"the column {name!r}") for name, column in columns.items()}
        ranges = _ranges_of(parts, ranges)
        mus = np.column_stack([parts[name] for name in ranges])
    return check_finite(check_shape(mus, (None, None), "mus"), "mus"), ranges


def _rows(solutions, fields, n_samples: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Solutions (n_samples, n_values) and the labels of their fields, (n_values,) or None."""
    if np.ndim(solutions) == 3 and fields is None:
        fields = np.broadcast_to(np.arange(np.shape(solutions)[2]), np.shape(solutions)[1:]).ravel()
        solutions = np.asarray(unmasked(solutions)).reshape(len(solutions), -1)
    solutions = check_finite(check_shape(solutions, (n_samples, None), "solutions"), "solutions")
    labels = field_labels(fields, solutions.shape[1])
    if n_samples < 4:
        raise InputError(f"{n_samples} samples are too few to learn from. Give at least 4.")
    return solutions, labels


def _ranges_of(columns: Mapping[str, np.ndarray], ranges: Mapping[str, tuple] | None) -> Mapping[str, tuple]:
    """The ranges of named columns: as given, every column once, or those of the data."""
    if ranges is None:
        ranges = {name: (float(np.min(values)), float(np.max(values))) for name, values in columns.items()}
        for name, (low, high) in ranges.items():
            if low == high:
                raise InputError(f"the parameter {name!r} is {low:g} in all runs. Leave it out of the table.")
        return ranges
    if set(ranges) != set(columns):
        raise InputError(
            f"ranges names {', '.join(ranges)}, the table has the columns {', '.join(columns)}. Name each column once."
        )
    return ranges


def _within_samples(parameters: ParameterSpace, mus: np.ndarray) -> ParameterSpace:
    """The box, answered only where there are samples: beyond them, inside the box, a level says nothing.

    A gap at the end of a range that n samples drawn from all of it would leave once in a thousand times is no chance.
    """
    parameters = _without_unseen(parameters, mus)
    unit = parameters.to_unit(mus)
    ends, beyond = [], []
    for j, p in enumerate(parameters.scalars):
        low, high = float(mus[:, j].min()), float(mus[:, j].max())
        # a value that comes again, as those of one trajectory do, was drawn once
        largest = min(0.1, 1 - _CHANCE ** (1 / len(np.unique(mus[:, j]))))
        if low == high:  # what answers at others would be, no sample says
            raise InputError(
                f"all samples have {p.name}={p.word(low)}, its declared values are {p}. Leave the column out, or give samples with others."
            )
        short = (unit[:, j].min() > largest, unit[:, j].max() < 1 - largest)
        ends.append((low if short[0] else p.low, high if short[1] else p.high))
        if any(short):
            beyond.append(f"from {low:g} to {high:g} in {p.name}, its range is [{p.low:g}, {p.high:g}]")
    if not beyond:
        return parameters
    warnings.warn(
        f"the samples reach {'; '.join(beyond)}: beyond the samples neither answers nor bounds can be trusted, and the "
        "surrogate refuses unless extrapolate=True.",
        ParasolWarning,
        stacklevel=3,
    )
    return replace(parameters, solved=tuple(ends))


def _without_unseen(parameters: ParameterSpace, mus: np.ndarray) -> ParameterSpace:
    """The box without choices between others that no sample has: nothing is known of these."""
    scalars = list(parameters.scalars)
    for j, p in enumerate(scalars):
        low, high = float(mus[:, j].min()), float(mus[:, j].max())
        counts = {value: np.count_nonzero(p.nearest(mus[:, j]) == value) for value in p.choices}
        unseen = tuple(value for value, n in counts.items() if n == 0 and low < value < high)
        if unseen:
            scalars[j] = replace(p, choices=tuple(value for value in p.choices if value not in unseen))
            words = ", ".join(map(p.word, unseen))
            _warn(
                f"no sample has {p.name}={words}: the surrogate does not answer there. Give samples, or leave it out."
            )
        for value, n in counts.items():
            if 0 < n * _RARE <= len(mus):
                _warn(
                    f"{n} of {len(mus)} samples have {p.name}={p.word(value)}: errors there are hardly seen, and bounds, which "
                    "hold for choices as often as the samples have them, may not hold for this one. Give more of them."
                )
    return replace(parameters, scalars=tuple(scalars))


def _warn(text: str) -> None:
    warnings.warn(text, ParasolWarning, stacklevel=5)


def _n_aside(n: int, level: float) -> int:
    """A fifth of the samples up to 100, or as many as the level needs; none where that would leave too few to learn from."""
    needed = max(min(n // 5, _MOST_ASIDE), int(np.ceil(level / (1 - level) - 1e-9)))
    return needed if 2 * needed <= n else 0
