"""Maps in files of parasol 0.1.0 and 0.2.0.dev0, which kept each kind of map by its own fields: read as programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from parasol.errors import InputError
from parasol.runtime.expansions import Chebyshev, Radial
from parasol.runtime.operation import Operation
from parasol.runtime.operations import Activation, Affine, Scale, Sum
from parasol.runtime.program import Program, StoredMap


def _network(
    weights: tuple[Any, ...],
    biases: tuple[np.ndarray, ...],
    activation: str,
    skip: np.ndarray | None = None,
    **scalings: np.ndarray | None,
) -> Program:
    """Layers with an activation between them, a linear path beside them, scalings before and after."""
    if not weights or len(weights) != len(biases):
        raise InputError(f"{len(weights)} matrices and {len(biases)} biases: a layer has one of each.")
    kind = weights[0].dtype
    given = {name: np.asarray(value, dtype=kind) for name, value in scalings.items() if value is not None}
    layers: list[Operation] = []
    for w, b in zip(weights, biases, strict=True):
        layers += [Affine(w, b), Activation(activation)]
    body = tuple(layers[:-1])
    before = Scale(given.get("input_scale", np.ones(weights[0].shape[1], kind)), given.get("input_shift"))
    after = Scale(given.get("output_scale", np.ones(weights[-1].shape[0], kind)), None, given.get("output_shift"))
    return Program((before, *(body if skip is None else (Sum((body, (Affine(skip),))),)), after))


def _of_network(name: str) -> Callable[..., StoredMap]:
    """The reader of a kind that is a network and facts about it."""

    def read(network: Program, **facts: Any) -> StoredMap:
        error = facts.get("error", facts.get("validation_error"))
        return StoredMap(network, name, None if error is None else float(error), facts)

    return read


def _polynomial(
    indices: np.ndarray, coefficients: np.ndarray, shift: np.ndarray, scale: np.ndarray, error: float
) -> StoredMap:
    operations = (Scale(scale, shift), Chebyshev(indices), Affine(coefficients.T))
    return StoredMap(Program(operations), "FittedPolynomial", float(error))


def _process(
    kernel: str, centres: np.ndarray, lengths: np.ndarray, weights: np.ndarray, trend: StoredMap, **others: Any
) -> StoredMap:
    before, *polynomial = trend.program.operations
    kernels = (Radial(kernel, centres, lengths), Affine(weights.T))
    return StoredMap(Program((before, Sum((tuple(polynomial), kernels)))), "FittedProcess")


OLDER: dict[str, Callable[..., Any]] = {
    "Network": _network,
    "FittedPolynomial": _polynomial,
    "FittedProcess": _process,
    **{name: _of_network(name) for name in ("TrainedNetwork", "FittedLinear", "FittedNetwork", "ConstructedNetwork")},
}
