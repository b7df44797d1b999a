"""From labels to a surrogate: labels by a reduced model, by full solves, or from other people's data."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from threadpoolctl import threadpool_limits

from parasol import __version__
from parasol.checks import ParasolError, ParasolWarning, check_count, check_finite, check_progress, check_shape
from parasol.fitting.groups import drawn_at_random, group_labels
from parasol.fitting.layouts import layout_of
from parasol.fitting.maps import fit_map, predictions
from parasol.fitting.polynomial import Polynomial
from parasol.fitting.recipes import recipe_named
from parasol.fitting.units import field_errors, field_labels, field_weights, warn_of_fields, warn_of_units
from parasol.pde.model import Model
from parasol.pde.text import problem_words
from parasol.reduction.pod import pod
from parasol.reduction.sampling import sample
from parasol.reduction.snapshots import Snapshots, as_snapshots
from parasol.runtime.basis import Basis, slices
from parasol.runtime.conformal import calibrate
from parasol.runtime.features import Features, features_of
from parasol.runtime.parameters import ParameterRange, ParameterSpace, named_columns
from parasol.runtime.program import program_of
from parasol.runtime.quantities import quantities_of
from parasol.runtime.reduced import ReducedModel
from parasol.runtime.surrogate import Surrogate

_N_VALIDATION = 512
_CHANCE = 1e-3  # of a gap between the samples and the end of a range, below which it is not by chance
_FEWEST_FOR_LOGS = 30  # samples, below which only declared scales count


def fit(
    source,
    recipe="best",
    *,
    basis: Basis | None = None,
    model: Model | None = None,
    n_labels: int = 4096,
    validation: Snapshots | None = None,
    calibration: Snapshots | None = None,
    level: float = 0.95,
    rng: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Surrogate:
    """Fit a map from parameters to coefficients of a basis, and make a surrogate of it.

    `source` gives the labels: a reduced model (as many as wanted, almost free, certified where it can), or snapshots with
    a `basis`. A `model` names the parameters, the nodes, and solves for repairs; a linear reduced model brings its own. `recipe` is "best", "paper", another name, or any object with scikit-learn's `fit` and `predict`.
    `validation` snapshots decide when training has gone far enough; `calibration` snapshots, kept from everything else, give
    a conformal bound of the relative error at the `level`.
    """
    check_progress(progress)
    for name, given in {"validation": validation, "calibration": calibration}.items():
        if given is not None:
            _check_snapshots(given, name)
    if isinstance(source, Snapshots):
        if basis is None:
            raise ParasolError(
                "snapshots need the basis they are expressed in. Pass basis=ps.pod(snapshots, tolerance=...)."
            )
        for snapshots in (source, validation, calibration):
            if snapshots is not None and basis.n_values != snapshots.n_values:
                raise ParasolError(
                    f"the basis has {basis.n_values} values, the snapshots {snapshots.n_values}: "
                    "it belongs to another problem. Make it from snapshots of this one."
                )
        if model is not None:
            model.check(source.mus)
            _check_model(model, basis)
        parameters = model.parameters if model is not None else space_of(source.mus)
        labels = Labels(source.mus, project_all(basis, source))
        unseen = None if validation is None else Labels(validation.mus, project_all(basis, validation))
        origin = "full solves"
    else:
        for need in ("coefficients", "parameters", "basis"):
            if not hasattr(source, need):
                raise ParasolError(
                    f"source is {type(source).__name__}, which has no {need}. Pass a reduced model, or snapshots with a basis."
                )
        if hasattr(source, "times"):
            raise ParasolError(
                "a reduced model in time gives trajectories, not coefficients. Make snapshots of it, "
                "labels = ps.reduction.as_snapshots(mus, reduced.values(mus)), and fit(labels, basis=ps.pod(labels, ...), model=model)."
            )
        model = getattr(source, "model", None) if model is None else model
        parameters = source.parameters
        space = parameters if model is None else model
        sets = (sample(space, check_count(n_labels, "n_labels"), rng=rng), sample(space, _N_VALIDATION, rng=rng + 1))
        labels, unseen = (Labels(mus, _labelled(source, basis, mus)) for mus in sets)
        basis = source.basis if basis is None else basis
        origin = "reduced model"
    warn_of_fields(model, basis, labels.coefficients)
    # the certificate speaks of the reduced model's own basis
    reduced = source if isinstance(source, ReducedModel) and basis is source.basis else None
    surrogate = _surrogate(recipe, basis, parameters, labels, unseen, origin, rng, progress)
    surrogate = replace(_with_model(surrogate, model), reduced=reduced)
    return surrogate if calibration is None else calibrated(surrogate, calibration, level=level)


def fit_labels(
    mus: np.ndarray,
    coefficients: np.ndarray,
    basis: Basis,
    parameters: ParameterSpace,
    recipe="best",
    *,
    model: Model | None = None,
    origin: str = "full solves",
    rng: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Surrogate:
    """A surrogate from coefficients (n_samples, n_modes) at parameters (n_samples, n_parameters) that somebody computed."""
    check_progress(progress)
    labels = Labels(mus, check_shape(coefficients, (len(mus), basis.n_modes), "coefficients"))
    warn_of_fields(model, basis, labels.coefficients)
    surrogate = _surrogate(recipe, basis, parameters, labels, None, origin, rng, progress)
    return _with_model(surrogate, model)


def fit_snapshots(
    mus,
    solutions,
    recipe="best",
    *,
    tolerance: float | None = None,
    n_modes: int | None = None,
    ranges: Mapping[str, tuple] | None = None,
    weights: np.ndarray | None = None,
    quantities: Mapping[str, Any] | None = None,
    level: float | None = 0.95,
    groups=None,
    fields=None,
    rng: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Surrogate:
    """A surrogate of other people's data: solutions (n_samples, n_values) at parameters (n_samples, n_parameters).

    `ranges` names the parameters and says where they may lie, as in `parameters`: a=(0.1, 4.0) or a=(0.1, 4.0, "log"); left
    out, they are those of the data. Columns of a data frame are matched by name, those of an array stand in the order of
    `ranges`. The basis is a POD to `tolerance` (default 1e-4) or of `n_modes`. A fifth of the
    samples, chosen at random, is kept aside for a conformal bound at the `level`, which holds for parameters from the
    distribution of the samples, if these were drawn at random: of Sobol points or a Latin hypercube it is an estimate.
    None keeps none. Rows that belong together, the times of one trajectory for instance, have equal labels
    in `groups` (n_samples,): whole groups are kept aside, and the bound holds for all rows of a new group at the level.
    `quantities` names what is wanted of a solution: weights (n_values,) each.

    Values of different units, displacements and stresses for instance, have labels in `fields` (n_values,), equal in
    values of one field; solutions (n_samples, n_nodes, n_fields) need none. Each field is then scaled by its root mean
    square over the samples, the tolerance is that of all fields so scaled, and the bound is one of the relative error of
    each field. Answers have the values in the order given, as one row.
    """
    check_progress(progress)
    columns = named_columns(mus)
    if columns is not None:
        ranges = _ranges_of(columns, ranges)
        mus = np.column_stack([columns[name] for name in ranges])
    mus = check_finite(check_shape(mus, (None, None), "mus"), "mus")
    if np.ndim(solutions) == 3 and fields is None:
        fields = np.broadcast_to(np.arange(np.shape(solutions)[2]), np.shape(solutions)[1:]).ravel()
        solutions = np.asarray(solutions).reshape(len(solutions), -1)
    solutions = check_finite(check_shape(solutions, (len(mus), None), "solutions"), "solutions")
    labels_of_fields = field_labels(fields, solutions.shape[1])
    if len(mus) < 4:
        raise ParasolError(f"{len(mus)} samples are too few to learn from. Give at least 4.")
    parameters = space_of(mus, ranges)
    parameters.check(mus)
    parameters = _within_samples(parameters, mus)
    if level is not None and not (isinstance(level, float) and 0 < level < 1):
        raise ParasolError(f"level={level!r} must be a probability strictly between 0 and 1, such as 0.95, or None.")
    group = None if level is None else group_labels(mus, groups)
    n_aside, is_aside = 0, np.zeros(len(mus), dtype=bool)
    if group is not None and level is not None:
        n_groups = int(group.max()) + 1
        n_aside = _n_aside(n_groups, level)
        is_aside = np.isin(group, np.random.default_rng(rng).permutation(n_groups)[:n_aside])
    aside, train = np.flatnonzero(is_aside), np.flatnonzero(~is_aside)
    if labels_of_fields is not None:
        weights = field_weights(solutions[train], labels_of_fields, weights)
    warn_of_units(solutions, weights)
    if tolerance is None and n_modes is None:
        tolerance = 1e-4
    basis = pod(solutions[train], tolerance=tolerance, n_modes=n_modes, weights=weights)
    labels = Labels(mus[train], basis.project(solutions[train]))
    surrogate = _surrogate(recipe, basis, parameters, labels, None, "data", rng, progress)
    if quantities:
        rows = [check_shape(w, (basis.n_values,), f"weights of the quantity {n!r}") for n, w in quantities.items()]
        surrogate = replace(
            surrogate, quantities=quantities_of(tuple(quantities), np.array(rows), basis.modes, weights)
        )
    if n_aside == 0 or level is None or group is None:
        return surrogate
    errors = accuracy(surrogate, as_snapshots(mus[aside], solutions[aside]), fields=fields).errors
    worst = np.zeros(int(group.max()) + 1)
    np.maximum.at(worst, group[aside], errors)
    drawn = drawn_at_random(mus, parameters, group)
    return replace(surrogate, conformal=calibrate(worst[np.unique(group[aside])], level=level, drawn=drawn))


def _ranges_of(columns: Mapping[str, np.ndarray], ranges: Mapping[str, tuple] | None) -> Mapping[str, tuple]:
    """The ranges of named columns: as given, every column once, or those of the data."""
    if ranges is None:
        return {name: (float(np.min(values)), float(np.max(values))) for name, values in columns.items()}
    if set(ranges) != set(columns):
        raise ParasolError(
            f"ranges names {', '.join(ranges)}, the table has the columns {', '.join(columns)}. Name each column once."
        )
    return ranges


def _within_samples(parameters: ParameterSpace, mus: np.ndarray) -> ParameterSpace:
    """The box, answered only where there are samples: beyond them, inside the box, a level says nothing.

    A gap at the end of a range that n samples drawn from all of it would leave once in a thousand times is no chance.
    """
    unit = parameters.to_unit(mus)
    ends, beyond = [], []
    for j, p in enumerate(parameters.scalars):
        low, high = float(mus[:, j].min()), float(mus[:, j].max())
        # a value that comes again, as those of one trajectory do, was drawn once
        largest = min(0.1, 1 - _CHANCE ** (1 / len(np.unique(mus[:, j]))))
        short = (unit[:, j].min() > largest, unit[:, j].max() < 1 - largest)
        cut = low < high  # one value alone leaves no range to answer in
        ends.append((low if cut and short[0] else p.low, high if cut and short[1] else p.high))
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


def _n_aside(n: int, level: float) -> int:
    """A fifth of the samples, or as many as the level needs; none where that would leave too few to learn from."""
    needed = max(n // 5, int(np.ceil(level / (1 - level) - 1e-9)))
    if 2 * needed <= n:
        return needed
    warnings.warn(
        f"{n} samples are too few to keep aside the {needed} that a bound at level {level:g} needs: there will be none. "
        "Give more samples, or a lower level.",
        ParasolWarning,
        stacklevel=3,
    )
    return 0


def _surrogate(
    recipe, basis, parameters, labels: Labels, unseen: Labels | None, origin: str, rng, progress
) -> Surrogate:
    recipe = recipe_named(recipe)
    if len(labels.mus) < basis.n_modes:
        warnings.warn(
            f"{len(labels.mus)} samples for {basis.n_modes} coefficients: the last ones can hardly be learned. "
            "Give more samples, or a basis of fewer modes.",
            ParasolWarning,
            stacklevel=3,
        )
    features = _features(parameters, labels)
    start = time.perf_counter()
    with threadpool_limits(1):  # several BLAS threads gain little here, and lose tenfold when the machine is busy
        fitted = _fitted(recipe, features, labels, unseen, rng, progress)
    facts = {
        "recipe": type(recipe).__name__,
        "labels": origin,
        "n_labels": len(labels.mus),
        "logarithms": [p.name for p, log in zip(parameters.scalars, features.logs, strict=False) if log],
        "fit_seconds": time.perf_counter() - start,
    }
    return Surrogate(basis, fitted, features, parameters, facts=facts)


def _features(parameters: ParameterSpace, labels: Labels) -> Features:
    """Logarithms where scales ask for them, and of other wide ranges if a polynomial then errs less on samples kept aside."""
    plain, wide = (features_of(parameters, labels.mus, wide=choice) for choice in (False, True))
    if np.array_equal(plain.logs, wide.logs) or len(labels.mus) < _FEWEST_FOR_LOGS:
        return plain
    order = np.random.default_rng(0).permutation(len(labels.mus))[:600]
    train, test = order[: 2 * len(order) // 3], order[2 * len(order) // 3 :]
    errors = []
    for features in (plain, wide):
        fitted = Polynomial().fit(features(labels.mus[train]), labels.coefficients[train])
        gap = fitted.predict(features(labels.mus[test])) - labels.coefficients[test]
        errors.append(np.mean(np.linalg.norm(gap, axis=1)))
    return wide if errors[1] < errors[0] else plain


def _check_model(model: Model, basis: Basis) -> None:
    n_values = len(model.problem.names) * model.n_nodes
    if basis.n_values % n_values or (model.problem.time is None and basis.n_values != n_values):
        raise ParasolError(f"the basis has {basis.n_values} values, the model {n_values}: they do not belong together.")


@dataclass(frozen=True, eq=False)
class Labels:
    """What a map is fitted to: coefficients (n_samples, n_modes) at parameters (n_samples, n_parameters)."""

    mus: np.ndarray
    coefficients: np.ndarray


@dataclass(frozen=True, eq=False)
class Foreign:
    """Somebody's regressor, its predictions brought to the shape (n, n_outputs) and to floats."""

    inner: Any
    n_outputs: int

    def predict(self, x: np.ndarray) -> np.ndarray:
        """Coefficients of features."""
        return predictions(self.inner, x, self.n_outputs)


@dataclass(frozen=True, eq=False)
class Accuracy:
    """Relative errors on a test set, in the paper's metric, beside those of the projection, which no map can beat."""

    errors: np.ndarray  # (n_samples,)
    projection_errors: np.ndarray  # (n_samples,)

    @property
    def mean(self) -> float:
        """The paper's figure: the mean of the relative l2 errors."""
        return float(np.mean(self.errors))

    @property
    def projection(self) -> float:
        """The same of the projection."""
        return float(np.mean(self.projection_errors))

    def __repr__(self) -> str:
        return f"<Accuracy mean {self.mean:.2e}, max {np.max(self.errors):.2e}, projection {self.projection:.2e}>"


def accuracy(surrogate: Surrogate, truth: Snapshots, *, fields=None, weights: np.ndarray | None = None) -> Accuracy:
    """Measure a surrogate on snapshots it has not seen, a chunk at a time; of `fields`, as in `fit_snapshots`, the worst.

    `weights` (n_values,) make all fields about 1 in size; left out, they are those of the basis.
    """
    _check_snapshots(truth, "truth")
    labels = field_labels(fields, surrogate.basis.n_values)
    weights = surrogate.basis.weights if weights is None else weights
    if labels is not None and weights is None:
        raise ParasolError("the surrogate was fitted without fields, so that their sizes are not known.")
    coefficients = surrogate.coefficients(truth.mus, extrapolate=True)
    errors, floors, start = [], [], 0
    for block in truth.blocks():
        stop = start + len(block)
        gap = surrogate.basis.lift(coefficients[start:stop]) - block
        errors.append(surrogate.basis.norm(gap) / surrogate.basis.norm(block))
        if labels is not None and weights is not None:
            errors[-1] = np.maximum(errors[-1], field_errors(gap, block, labels, weights))
        floors.append(surrogate.basis.projection_errors(block))
        start = stop
    return Accuracy(np.concatenate(errors), np.concatenate(floors))


def _check_snapshots(given, name: str) -> None:
    if not isinstance(given, Snapshots):
        raise ParasolError(
            f"{name} is a {type(given).__name__}. Pass snapshots: ps.reduction.as_snapshots(mus, solutions)."
        )


def calibrated(surrogate: Surrogate, held_out: Snapshots, *, level: float = 0.95, fields=None) -> Surrogate:
    """The surrogate with a conformal bound of its relative errors, from snapshots that nothing else has seen.

    With `fields`, as in `fit_snapshots`, it is one of the errors of every field.
    """
    errors = accuracy(surrogate, held_out, fields=fields).errors
    drawn = drawn_at_random(held_out.mus, surrogate.parameters)
    return replace(surrogate, conformal=calibrate(errors, level=level, drawn=drawn))


def project_all(basis: Basis, snapshots: Snapshots) -> np.ndarray:
    """Coefficients of all snapshots, a chunk at a time."""
    return np.concatenate([basis.project(block) for block in snapshots.blocks()])


def space_of(mus: np.ndarray, ranges: Mapping[str, tuple] | None = None) -> ParameterSpace:
    """The box of parameters named by `ranges`, or that the data span."""
    n = mus.shape[1]
    if ranges is not None:
        if not isinstance(ranges, Mapping) or not all(isinstance(r, tuple | list) for r in ranges.values()):
            raise ParasolError(f"ranges must name the parameters, like {{'a': (0.1, 4.0)}}, got {ranges!r}.")
        if len(ranges) != n:
            raise ParasolError(f"ranges names {len(ranges)} parameters, mus has {n} columns. Name each column once.")
        return ParameterSpace(
            tuple(
                ParameterRange(name, *given[:2], scale=given[2] if len(given) > 2 else "linear")
                for name, given in ranges.items()
            )
        )
    low, high = mus.min(axis=0), mus.max(axis=0)
    if np.any(low == high):
        column = int(np.argmax(low == high))
        raise ParasolError(f"column {column} of mus has the same value {low[column]:g} in all samples. Leave it out.")
    return ParameterSpace(tuple(ParameterRange(f"p{j + 1}", low[j], high[j]) for j in range(n)))


def _fitted(recipe, features: Features, labels: Labels, unseen: Labels | None, rng: int, progress):
    """Fit the recipe; a regressor from elsewhere gets features and coefficients only."""
    x, y = features(labels.mus), labels.coefficients
    validation = None if unseen is None else (features(unseen.mus), unseen.coefficients)
    fitted = fit_map(recipe, x, y, validation=validation, rng=rng, progress=progress)
    return fitted if program_of(fitted) is not None else Foreign(fitted, y.shape[1])


def _labelled(source, basis: Basis | None, mus: np.ndarray) -> np.ndarray:
    """Labels by a reduced model, in its own basis or projected to another."""
    if basis is None:
        return source.coefficients(mus)
    return np.concatenate([basis.project(source.solve(mus[rows]).values) for rows in slices(len(mus), 64)])


def _with_model(surrogate: Surrogate, model: Model | None) -> Surrogate:
    """The surrogate with what its model knows: nodes and times, quantities, the problem in words."""
    if model is None:
        return surrogate
    quantities, basis = None, surrogate.basis
    if model.problem.quantities:
        quantities = quantities_of(model.quantities.names, model.quantities.rows, basis.modes, basis.weights)
    versions = {"parasol": __version__, "numpy": np.__version__, "scipy": scipy.__version__}
    facts = {**problem_words(model.problem), **surrogate.facts, "made_with": versions}
    return replace(surrogate, layout=layout_of(model), solver=model, quantities=quantities, facts=facts)
