"""From labels to a surrogate: labels by a reduced model, by full solves, or from other people's data."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from parasol import __version__
from parasol.checks import Progress, check_count, check_progress, check_shape
from parasol.errors import InputError, ParasolWarning
from parasol.fitting.calibration import quantity_weights, with_parts
from parasol.fitting.groups import drawn_at_random, group_labels
from parasol.fitting.layouts import layout_of
from parasol.fitting.logarithms import features_for
from parasol.fitting.maps import Recipe, fit_map, predictions
from parasol.fitting.recipes import recipe_named
from parasol.fitting.results import Results
from parasol.fitting.units import field_errors, field_labels, warn_of_fields
from parasol.pde.matrices import AffineModel
from parasol.pde.model import Model
from parasol.pde.text import problem_words
from parasol.reduction.nonlinear import NonlinearReducedModel
from parasol.reduction.products import root_of
from parasol.reduction.sampling import sample
from parasol.reduction.snapshots import Snapshots, as_snapshots
from parasol.runtime.basis import Basis, slices
from parasol.runtime.conformal import conformal_bound
from parasol.runtime.features import Features, features_of
from parasol.runtime.parameters import ParameterSpace, parameter_space
from parasol.runtime.products import MatrixProduct, Weights, first_part
from parasol.runtime.program import program_of
from parasol.runtime.quantities import quantities_of
from parasol.runtime.ranges import ParameterRange
from parasol.runtime.reduced import ReducedModel
from parasol.runtime.surrogate import Surrogate

_N_VALIDATION = 512


def fit(
    source: Snapshots | ReducedModel | NonlinearReducedModel,
    recipe: str | Recipe = "best",
    *,
    basis: Basis | None = None,
    model: Model | None = None,
    n_labels: int = 4096,
    validation: Snapshots | None = None,
    calibration: Snapshots | None = None,
    level: float = 0.95,
    rng: int = 0,
    progress: Progress = None,
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
            raise InputError(
                "snapshots need the basis they are expressed in. Pass basis=ps.pod(snapshots, tolerance=...)."
            )
        for snapshots in (source, validation, calibration):
            if snapshots is not None and basis.n_values != snapshots.n_values:
                raise InputError(
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
                raise InputError(
                    f"source is {type(source).__name__}, which has no {need}. Pass a reduced model, or snapshots with a basis."
                )
        if hasattr(source, "times"):
            raise InputError(
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
    surrogate = surrogate_of(recipe, basis, parameters, labels, unseen, origin, rng, progress)
    surrogate = replace(_with_model(surrogate, model), reduced=reduced)
    return surrogate if calibration is None else calibrate(surrogate, calibration, level=level)


def surrogate_without_map(reduced: ReducedModel) -> Surrogate:
    """A surrogate whose answers are the reduced model's own."""
    model = reduced.model
    middle = sample(reduced.parameters if model is None else model, 2, rng=0)
    facts = {"recipe": "reduced model", "labels": "none", "n_labels": 0, "logarithms": [], "fit_seconds": 0.0}
    features = features_of(reduced.parameters, middle)
    surrogate = Surrogate(reduced.basis, None, features, reduced.parameters, reduced=reduced, facts=facts)
    return _with_model(surrogate, model)


def fit_labels(
    mus: np.ndarray,
    coefficients: np.ndarray,
    basis: Basis,
    parameters: ParameterSpace,
    recipe: str | Recipe = "best",
    *,
    model: Model | None = None,
    origin: str = "full solves",
    rng: int = 0,
    progress: Progress = None,
) -> Surrogate:
    """A surrogate from coefficients (n_samples, n_modes) at parameters (n_samples, n_parameters) that somebody computed."""
    check_progress(progress)
    labels = Labels(mus, check_shape(coefficients, (len(mus), basis.n_modes), "coefficients"))
    warn_of_fields(model, basis, labels.coefficients)
    surrogate = surrogate_of(recipe, basis, parameters, labels, None, origin, rng, progress)
    return _with_model(surrogate, model)


def surrogate_of(
    recipe,
    basis,
    parameters,
    labels: Labels,
    unseen: Labels | None,
    origin: str,
    rng,
    progress,
    *,
    features: Features | None = None,
) -> Surrogate:
    """Fit a recipe to labels of that origin, those `unseen` decide when training has gone far enough."""
    recipe = recipe_named(recipe)
    if len(labels.mus) < basis.n_modes:
        warnings.warn(
            f"{len(labels.mus)} samples for {basis.n_modes} coefficients: the last ones can hardly be learned. "
            "Give more samples, or a basis of fewer modes.",
            ParasolWarning,
            stacklevel=3,
        )
    features = features_for(parameters, labels.mus, labels.coefficients) if features is None else features
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


def _check_model(model: Model, basis: Basis) -> None:
    n_values = len(model.problem.names) * model.n_nodes
    if basis.n_values % n_values or (model.problem.time is None and basis.n_values != n_values):
        raise InputError(f"the basis has {basis.n_values} values, the model {n_values}: they do not belong together.")


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


def accuracy(
    surrogate: Surrogate, truth: Snapshots | Results, *, fields: ArrayLike | None = None, weights: Weights | None = None
) -> Accuracy:
    """Measure a surrogate on snapshots or results it has not seen; of several fields, `fields` as in `fit_snapshots`, the worst.

    `weights` (n_values,) make all fields about 1 in size; left out, they are those of the basis. Fields and quantities of results
    go by their names; quantities with a map of their own count as fields do, where the results have them. Where the truth is
    zero everywhere, the error is relative to the mean size of the others.
    """
    if isinstance(truth, Results):
        results = truth.of_parameters(replace(surrogate.parameters, solved=()))
        values, units = _compared(surrogate, results)
        fields = units if fields is None else fields
        own = accuracy(surrogate, as_snapshots(results.mus, values), fields=fields, weights=weights)
        further = surrogate.scalars
        if further is None or not any(name in results.scalars for name in further.layout.names):
            return own
        more = accuracy(
            further,
            Results(dict(zip(results.parameters, results.mus.T, strict=True)), results.scalars, times=results.times),
        )
        errors = np.maximum(own.errors, more.errors)
        return Accuracy(errors, np.maximum(own.projection_errors, more.projection_errors))
    _check_snapshots(truth, "truth")
    labels = field_labels(fields, surrogate.basis.n_values)
    weights = surrogate.basis.weights if weights is None else weights
    if labels is not None and weights is None:
        raise InputError("the surrogate was fitted without fields, so that their sizes are not known.")
    coefficients = surrogate.coefficients(truth.mus, extrapolate=True)
    errors, floors, start = [], [], 0
    sizes = np.concatenate([surrogate.basis.norm(block) for block in truth.blocks()])
    if np.any(sizes == 0):
        sizes = np.where(sizes > 0, sizes, np.mean(sizes[sizes > 0]) if np.any(sizes) else 1.0)
    for block in truth.blocks():
        stop = start + len(block)
        gap = surrogate.basis.lift(coefficients[start:stop]) - block
        errors.append(surrogate.basis.norm(gap) / sizes[start:stop])
        if labels is not None and isinstance(weights, np.ndarray):
            errors[-1] = np.maximum(errors[-1], np.max(field_errors(gap, block, labels, weights), axis=1))
        floors.append(surrogate.basis.projection_errors(block))
        start = stop
    return Accuracy(np.concatenate(errors), np.concatenate(floors))


def _compared(surrogate: Surrogate, results: Results) -> tuple[np.ndarray, np.ndarray | None]:
    """The values (n, n_values) of results that a surrogate answers, in its order, and their fields; refused if of another kind."""
    layout = surrogate.layout
    for name, mine in (("points", layout.points), ("times", layout.times)):
        its = getattr(results, name)
        if mine is None or its is None:
            continue
        if mine.shape != its.shape or np.max(np.abs(mine - its)) > 1e-6 * np.max(np.abs(mine)):
            raise InputError(f"the results have other {name} than the surrogate. Give values at the same ones.")
    numbers = not results.fields or all(name in results.scalars for name in layout.fields)
    given = results.scalars if numbers else results.fields
    if len(layout.fields) == len(given) == 1:  # a single one may have another name
        given = dict.fromkeys(layout.fields, *given.values())
    absent = [name for name in layout.fields if name not in given]
    if absent:
        raise InputError(
            f"the results have no {absent[0]!r}, which the surrogate answers. They have: {', '.join(given)}."
        )
    chosen = {name: given[name] for name in layout.fields}
    selection = Results(results.mus, chosen, results.points, times=results.times)
    values, units = (selection.values, selection.units) if selection.fields else selection.scalar_rows
    if values.shape[1] != surrogate.basis.n_values:
        raise InputError(
            f"the results have {values.shape[1]} values in each run, the surrogate {surrogate.basis.n_values}."
        )
    return values, units


def _check_snapshots(given, name: str) -> None:
    if not isinstance(given, Snapshots):
        raise InputError(
            f"{name} is a {type(given).__name__}. Pass snapshots: ps.reduction.as_snapshots(mus, solutions)."
        )


def calibrate(
    surrogate: Surrogate,
    held_out: Snapshots | Results | None = None,
    *,
    level: float = 0.95,
    fields: ArrayLike | None = None,
    **older: Any,
) -> Surrogate:
    """The surrogate with a conformal bound of its relative errors, from snapshots or results that nothing else has seen.

    With `fields`, as in `fit_snapshots`, it is one of the errors of every field; results say what theirs are. Errors in place of a surrogate, as in
    version 0.1.0, are turned into a bound by `ps.runtime.conformal_bound`.
    """
    if not isinstance(surrogate, Surrogate):
        warnings.warn(
            "calibrate takes a surrogate; for errors use parasol.runtime.conformal_bound.",
            DeprecationWarning,
            stacklevel=2,
        )
        return conformal_bound(surrogate, level=level, **older)  # type: ignore[return-value]
    if held_out is None or older:
        raise InputError("calibrate needs snapshots that nothing else has seen: ps.calibrate(surrogate, snapshots).")
    plain: dict[str, Any] = {"difficulty": None, "jackknife": None, "parts": None}  # of an earlier bound
    if isinstance(held_out, Results):
        return _calibrated_by_results(replace(surrogate, **plain), held_out, level)
    errors = accuracy(surrogate, held_out, fields=fields).errors
    drawn = drawn_at_random(held_out.mus, surrogate.parameters)
    surrogate = replace(surrogate, conformal=conformal_bound(errors, level=level, drawn=drawn), **plain)
    return with_parts(surrogate, held_out, quantity_weights(surrogate.solver), level=level)


def _calibrated_by_results(surrogate: Surrogate, results: Results, level: float) -> Surrogate:
    """The surrogate, without bounds of its own, with those from results: of runs that belong together the worst counts."""
    results = results.of_parameters(replace(surrogate.parameters, solved=()))
    values, units = _compared(surrogate, results)
    choices = [bool(p.choices) for p in surrogate.parameters.scalars]
    group = group_labels(results.mus, results.groups, choices)
    if group is None:
        raise InputError("a lattice of runs calibrates nothing. Give runs at parameters drawn at random.")
    fresh, further = as_snapshots(results.mus, values), surrogate.scalars
    errors = accuracy(surrogate, fresh, fields=units).errors
    worst = np.zeros(int(group.max()) + 1)
    np.maximum.at(worst, group, errors)
    drawn = drawn_at_random(results.mus, surrogate.parameters, group)
    conformal = conformal_bound(worst, level=level, drawn=drawn)
    facts = {**surrogate.facts, "calibrated_bound": conformal.quantile}
    if further is not None and all(name in results.scalars for name in further.layout.names):
        table = dict(zip(surrogate.parameters.names, results.mus.T, strict=True))
        numbers = {name: results.scalars[name] for name in further.layout.names}
        further = calibrate(further, Results(table, numbers, times=results.times, groups=group), level=level)
    surrogate = replace(surrogate, conformal=conformal, facts=facts, scalars=further)
    parts: dict[str, Any] = {"level": level, "group": group}
    if units is not None and len(surrogate.layout.fields) == units.max() + 1:
        parts |= {"labels": units, "weights": surrogate.basis.weights}
    known, names = results.functionals or {}, () if surrogate.quantities is None else surrogate.quantities.names
    rows = np.array([known[name] for name in names]) if names and all(name in known for name in names) else None
    return with_parts(surrogate, fresh, rows, **parts)


calibrated = calibrate  # its name in version 0.1.0


def project_all(basis: Basis, snapshots: Snapshots) -> np.ndarray:
    """Coefficients of all snapshots, a chunk at a time."""
    return np.concatenate([basis.project(block) for block in snapshots.blocks()])


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
        wanted = model.quantities
        norms = None
        if isinstance(basis.weights, MatrixProduct):
            root = root_of(model, first_part(basis.weights, model.n_unknowns))
            norms = np.linalg.norm(root.back_transposed(wanted.rows.T), axis=0)
        options = {"mixing": wanted.mixing, "norms": norms}
        quantities = quantities_of(wanted.names, wanted.rows, basis.modes, basis.weights, **options)
    versions = {"parasol": __version__, "numpy": np.__version__, "scipy": scipy.__version__}
    facts = {**problem_words(model.problem), **surrogate.facts, "made_with": versions}
    readout = None
    if isinstance(model, AffineModel) and model.places is not None:
        at_times = basis.modes.T.reshape(basis.n_modes, -1, model.n_unknowns)
        readout = np.stack(list(model.layout.fields(at_times).values()), axis=2).reshape(basis.n_modes, -1).T.copy()
    return replace(
        surrogate, layout=layout_of(model), solver=model, quantities=quantities, facts=facts, readout=readout
    )


def space_of(mus: np.ndarray, ranges: Mapping[str, tuple] | None = None) -> ParameterSpace:
    """The box of parameters named by `ranges`, or that the data span."""
    n = mus.shape[1]
    if ranges is not None:
        if not isinstance(ranges, Mapping):
            raise InputError(f"ranges must name the parameters, like {{'a': (0.1, 4.0)}}, got {ranges!r}.")
        if len(ranges) != n:
            raise InputError(f"ranges names {len(ranges)} parameters, mus has {n} columns. Name each column once.")
        return parameter_space(ranges)
    low, high = mus.min(axis=0), mus.max(axis=0)
    if np.any(low == high):
        column = int(np.argmax(low == high))
        raise InputError(f"column {column} of mus has the same value {low[column]:g} in all samples. Leave it out.")
    return ParameterSpace(tuple(ParameterRange(f"p{j + 1}", low[j], high[j]) for j in range(n)))
