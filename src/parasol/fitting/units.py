"""Fields of different units in one array: each is scaled by its own size, and the worst of them is the error."""

from __future__ import annotations

import warnings

import numpy as np

from parasol.checks import check_labels
from parasol.errors import InputError, ParasolWarning
from parasol.pde.model import Model
from parasol.runtime.basis import Basis
from parasol.runtime.jackknife import LEAST
from parasol.runtime.products import MatrixProduct, Weights, check_weights, energies, single_weights

_OTHER_UNIT = 1e3  # between the sizes of two groups of values, with nothing between, that make them fields of two units


def field_labels(fields, n_values: int) -> np.ndarray | None:
    """A whole number (n_values,) for each value, equal in values of one field; None where no fields are named.

    >>> field_labels(["u", "u", "sigma"], 3)
    array([1, 1, 0])
    """
    if fields is None:
        return None
    return np.unique(check_labels(fields, n_values, "fields", "values"), return_inverse=True)[1]


def unknown_labels(model) -> np.ndarray | None:
    """The labels of values by unknown function, (n_values,), as in `field_labels`; None where there is one function."""
    if not isinstance(model, Model) or len(model.problem.names) < 2:
        return None
    if model.elements is None and model.product is not None:  # somebody's own
        return None
    n_times = 1 if model.problem.times is None else len(model.problem.times)
    return np.tile(np.repeat(np.arange(len(model.problem.names)), model.n_nodes), n_times)


def field_weights(
    solutions: np.ndarray, labels: np.ndarray, weights: Weights | None = None, *, least: float = 0.0
) -> np.ndarray:
    """Weights (n_values,) of an inner product in which the root mean square of ||u|| over solutions is 1 for each field.

    A field smaller than `least` times the largest may be nothing but rounding, and gets the weights of the largest.

    >>> field_weights(np.array([[1e-4, 3e8, 4e8]]), np.array([0, 1, 1])).round(22)
    array([1.e+08, 4.e-18, 4.e-18])
    """
    given = np.ones(len(labels)) if weights is None else single_weights(weights, len(labels))
    parts = [_energy(solutions, given, labels == label) for label in range(int(labels.max()) + 1)]
    size = np.array([np.mean(part) for part in parts])
    for label in np.flatnonzero(size < 1e-290):
        if np.any(solutions[:, labels == label]):
            raise InputError(f"field {label}, counted from 0, is so small that its squares underflow. Scale it.")
    size[size <= least**2 * np.max(size)] = np.max(size) or 1.0  # of a field that is zero any weight will do
    return given / size[labels]


def field_errors(gap: np.ndarray, truth: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The relative error of each field, (n, n_fields) of (n, n_values), in the inner product of `field_weights`.

    A field that is less than a thousandth of its usual size at some parameter is taken for that thousandth there.
    """
    errors = []
    for label in range(int(labels.max()) + 1):
        size, error = (np.sqrt(_energy(values, weights, labels == label)) for values in (truth, gap))
        errors.append(error / np.maximum(size, LEAST))
    return np.stack(errors, axis=1)


def _energy(values: np.ndarray, weights: np.ndarray, here: np.ndarray) -> np.ndarray:
    return energies(values[:, here], weights[here])


def warn_of_fields(model: Model | None, basis: Basis, coefficients: np.ndarray) -> None:
    """An unknown that is much smaller than another hardly counts in the norm in which errors are measured."""
    if model is None or len(model.problem.names) < 2 or isinstance(basis.weights, MatrixProduct):
        return
    names = model.problem.names
    modes = basis.modes if basis.weights is None else basis.modes * np.sqrt(basis.weights)[:, None]
    triangle: np.ndarray = np.linalg.qr(coefficients / max(float(np.abs(coefficients).max()), 1e-300), mode="r")  # type: ignore[assignment]
    parts = modes.reshape(-1, len(names), model.n_nodes, basis.n_modes).transpose(1, 0, 2, 3)
    size = np.array([np.linalg.norm(part.reshape(-1, basis.n_modes) @ triangle.T) for part in parts])
    for i in np.flatnonzero((size > 0) & (size * _OTHER_UNIT < size.max())):
        large = names[int(np.argmax(size))]
        warnings.warn(
            f"{names[i]} is {size.max() / size[i]:.1e} times smaller than {large}: errors and bounds are those of {large}, "
            f"{names[i]} may be quite wrong. Measure it in a smaller unit.",
            ParasolWarning,
            stacklevel=4,
        )


def warn_of_units(solutions: np.ndarray, weights: Weights | None) -> None:
    """Values whose sizes fall into groups far apart are fields of different units, and only the largest is learned."""
    # divided first: the square of a large number may be no number any more
    largest = float(np.max(np.abs(solutions), initial=0.0))
    if largest == 0.0:
        return
    size = largest * np.sqrt(np.mean((solutions / largest) ** 2, axis=0))
    if weights is not None and not isinstance(weights, MatrixProduct):
        size = size * np.sqrt(check_weights(weights, solutions.shape[1]))  # type: ignore[arg-type]
    size = np.sort(size[size > 1e-15 * size.max()])  # what is smaller is rounding, of zero
    if len(size) < 2 or np.max(size[1:] / size[:-1]) <= _OTHER_UNIT:
        return
    cut = 1 + int(np.argmax(size[1:] / size[:-1]))
    warnings.warn(
        f"{cut} values are of size {size[cut - 1]:.1e} or less, {len(size) - cut} of size {size[cut]:.1e} or more, none between: "
        "errors and bounds are those of the large ones, the small ones may be quite wrong. Say which value is of "
        "which field with fields=, one label for each.",
        ParasolWarning,
        stacklevel=3,
    )
