"""The UM-Bridge protocol (1.0, which 0.9 clients speak too): a surrogate as a model for samplers in any language.

Every model offered is y = R c(μ) with its own matrix R: the field, the quantities of interest, or the coefficients
themselves. So sensᵀ ∂y/∂μ = (sensᵀ R) ∂c/∂μ, and no derivative of a whole field is ever formed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from parasol.checks import ParasolError
from parasol.delivery.server.desk import SELECTORS, Desk
from parasol.delivery.server.wire import Refusal, numbers
from parasol.runtime.program import program_of
from parasol.runtime.surrogate import Surrogate

PROTOCOL = 1.0
CONFIG = (*SELECTORS, "extrapolate")


class ProtocolError(Exception):
    """A request the protocol answers with a type and a message."""

    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.kind = kind


def model_names(surrogate: Surrogate) -> list[str]:
    """The models a surrogate offers: `field`, `quantities` where there are any, `coefficients`."""
    return ["field", *([] if surrogate.quantities is None else ["quantities"]), "coefficients"]


def has_hessian(surrogate: Surrogate) -> bool:
    """Whether second derivatives mean something: the map knows its slopes, and they have no jumps."""
    program = program_of(surrogate.map)
    kinks = program is not None and any(getattr(op, "name", None) == "relu" for op in program.all_operations)
    return callable(getattr(surrogate.map, "jacobian", None)) and not kinks


def info(desk: Desk) -> dict[str, Any]:
    """GET /Info."""
    return {"protocolVersion": PROTOCOL, "models": model_names(desk.surrogate)}


def answer(desk: Desk, verb: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to POST /{verb}: ModelInfo, InputSizes, OutputSizes, Evaluate, Gradient, ApplyJacobian, ApplyHessian."""
    name = given.get("name")
    if name not in model_names(desk.surrogate):
        known = ", ".join(model_names(desk.surrogate))
        raise ProtocolError("ModelNotFound", f"Model {str(name)[:40]!r} not supported by server. There are: {known}.")
    if verb == "ModelInfo":
        verbs = ("Evaluate", "Gradient", "ApplyJacobian")
        return {"support": {**dict.fromkeys(verbs, True), "ApplyHessian": has_hessian(desk.surrogate)}}
    if verb == "InputSizes":
        return {"inputSizes": [desk.surrogate.n_parameters]}
    try:
        return _computed(desk, verb, given)
    except Refusal as error:
        raise ProtocolError("InvalidInput", error.message) from None
    except ParasolError as error:
        raise ProtocolError("InvalidInput", str(error)) from None


def _computed(desk: Desk, verb: str, given: Mapping[str, Any]) -> dict[str, Any]:
    config = given.get("config", {})
    if not isinstance(config, dict) or not set(config) <= set(CONFIG):
        raise Refusal(422, f"config must be an object with some of: {', '.join(CONFIG)}, got {str(config)[:80]}.")
    extrapolate = desk.allow_extrapolation(config)
    matrix = _readout(desk, given["name"], config)
    if verb == "OutputSizes":
        return {"outputSizes": [len(matrix)]}
    for name in ("outWrt", "inWrt", "inWrt1", "inWrt2"):
        if type(given.get(name, 0)) is not int or given.get(name, 0) != 0:
            raise Refusal(422, f"{name} must be 0: there is one input and one output, got {str(given[name])[:40]}.")
    inputs = given.get("input")
    if not isinstance(inputs, list) or len(inputs) != 1:
        raise Refusal(422, f"input must be a list of one parameter vector, got {str(inputs)[:80]}.")
    mu = desk.vector(inputs[0])
    surrogate = desk.surrogate
    if (
        not extrapolate and surrogate.distributions.unlike(mu[None])[0]
    ):  # the protocol has no place to say so in an answer
        raise Refusal(422, "a function among the parameters is unlike its law. Ask for one as the law draws them.")
    if verb == "Evaluate":
        desk.check_size(len(matrix))
        return {"output": [_finite(matrix @ surrogate.coefficients(mu, extrapolate=extrapolate))]}
    if verb == "ApplyJacobian":
        desk.check_size(len(matrix))
        slopes = surrogate.jacobian(mu, extrapolate=extrapolate)
        return {"output": _finite(matrix @ (slopes @ _vector(given, "vec", len(mu))))}
    weights = _vector(given, "sens", len(matrix)) @ matrix
    if verb == "Gradient":
        return {"output": _finite(weights @ surrogate.jacobian(mu, extrapolate=extrapolate))}
    if not has_hessian(surrogate):
        raise ProtocolError("UnsupportedFeature", "ApplyHessian not supported by model: its slopes jump.")
    surrogate.coefficients(mu, extrapolate=extrapolate)  # the differences leave the box by a little, μ must not
    return {"output": _finite(_hessian_action(surrogate, mu, weights, _vector(given, "vec", len(mu))))}


def _readout(desk: Desk, name: str, config: Mapping[str, Any]) -> np.ndarray:
    """The matrix R (n_outputs, n_modes) of a model."""
    chosen = desk.selected(config)
    if name == "coefficients":
        return np.eye(chosen.basis.n_modes)
    if name == "quantities":
        return chosen.quantities.rows.reshape(-1, chosen.basis.n_modes)  # type: ignore[union-attr]
    return chosen.basis.modes if chosen.readout is None else chosen.readout


def _hessian_action(surrogate: Surrogate, mu: np.ndarray, weights: np.ndarray, vec: np.ndarray) -> np.ndarray:
    """Central differences of the gradient along `vec`, with a step that is small in the features of the map."""
    length = float(np.max(np.abs(surrogate.features.slope(mu[None])[0] * vec)))
    if length == 0:
        return np.zeros(len(mu))
    program = program_of(surrogate.map)
    step = np.cbrt(np.finfo(float if program is None else program.dtype).eps) / length
    ahead, behind = surrogate.jacobian(np.stack([mu + step * vec, mu - step * vec]), extrapolate=True)
    return weights @ (ahead - behind) / (2 * step)


def _vector(given: Mapping[str, Any], name: str, length: int) -> np.ndarray:
    found = numbers(given.get(name), name, (1,))
    if len(found) != length:
        raise Refusal(422, f"{name} has {len(found)} numbers, expected {length}.")
    return found


def _finite(values: np.ndarray) -> list[float]:
    if not np.isfinite(values).all():
        raise Refusal(422, "the result is not finite. Ask inside the box, with numbers of reasonable size.")
    return values.tolist()
