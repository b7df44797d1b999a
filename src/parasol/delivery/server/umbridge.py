"""The UM-Bridge protocol (1.0, which 0.9 clients speak too): a surrogate as a model for samplers in any language.

Every model offered is y = R c(μ) with its own matrix R: the field, the quantities of interest, or the coefficients
themselves. So sensᵀ ∂y/∂μ = (sensᵀ R) ∂c/∂μ, and no derivative of a whole field is ever formed. What the residual may
add to a quantity (`Answer.quantities`) is left out here, so that values and slopes belong together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from parasol.delivery.server.formats import Refusal, numbers
from parasol.delivery.server.service import SELECTORS, Service
from parasol.runtime.program import program_of
from parasol.runtime.surrogate import Surrogate

PROTOCOL = 1.0
CONFIG = (*SELECTORS, "extrapolate")
COMPUTED = {  # what a request says besides the name of the model and the config
    "Evaluate": ("input",),
    "Gradient": ("input", "outWrt", "inWrt", "sens"),
    "ApplyJacobian": ("input", "outWrt", "inWrt", "vec"),
    "ApplyHessian": ("input", "outWrt", "inWrt1", "inWrt2", "sens", "vec"),
}
VERBS = {"ModelInfo": (), "InputSizes": (), "OutputSizes": (), **COMPUTED}
INDICES = ("outWrt", "inWrt", "inWrt1", "inWrt2")


def model_names(surrogate: Surrogate) -> list[str]:
    """The models a surrogate offers: `field`, `quantities` where there are any, `coefficients`."""
    return ["field", *([] if surrogate.quantities is None else ["quantities"]), "coefficients"]


def has_hessian(surrogate: Surrogate) -> bool:
    """Whether second derivatives mean something: the map has first ones, and they do not jump; the reduced model has none."""
    program = program_of(surrogate.map)
    kinks = program is not None and any(getattr(op, "name", None) == "relu" for op in program.all_operations)
    return callable(getattr(surrogate.map, "jacobian", None)) and not kinks


def answer(service: Service, verb: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to POST /{verb}, one of VERBS."""
    surrogate, name = service.surrogate, given.get("name")
    if name not in model_names(surrogate):
        known = ", ".join(model_names(surrogate))
        message = f"Model {str(name)[:40]!r} not supported by server. There are: {known}."
        raise Refusal(400, message, "ModelNotFound")
    if verb == "ModelInfo":
        return {"support": {**dict.fromkeys(COMPUTED, True), "ApplyHessian": has_hessian(surrogate)}}
    if verb == "InputSizes":
        return {"inputSizes": [surrogate.n_parameters]}
    config = given.get("config", {})
    if not isinstance(config, dict) or not set(config) <= set(CONFIG):
        raise Refusal(422, f"config must be an object with some of: {', '.join(CONFIG)}, got {str(config)[:80]}.")
    extrapolate = service.flag(config, "extrapolate")
    matrix = _matrix(service.selected(config), given["name"])
    if verb == "OutputSizes":
        return {"outputSizes": [len(matrix)]}
    mu = _parameter(surrogate, given)
    if (
        not extrapolate and surrogate.distributions.unlike(mu[None])[0]
    ):  # the protocol has no place to say so in an answer
        raise Refusal(422, "a function among the parameters is unlike its distribution. Ask for one drawn from it.")
    if verb in ("Evaluate", "ApplyJacobian"):
        service.check_size(len(matrix))
    if verb == "Evaluate":
        return {"output": [_finite(matrix @ surrogate.coefficients(mu, extrapolate=extrapolate))]}
    if verb == "ApplyJacobian":
        slopes = surrogate.jacobian(mu, extrapolate=extrapolate)
        return {"output": _finite(matrix @ (slopes @ _vector(given, "vec", len(mu))))}
    weights = _vector(given, "sens", len(matrix)) @ matrix
    if verb == "Gradient":
        return {"output": _finite(weights @ surrogate.jacobian(mu, extrapolate=extrapolate))}
    if not has_hessian(surrogate):
        why = "its slopes jump" if surrogate.map is not None else "the slopes of a reduced model are differences"
        raise Refusal(400, f"ApplyHessian not supported by model: {why}.", "UnsupportedFeature")
    surrogate.coefficients(mu, extrapolate=extrapolate)  # the differences leave the box by a little, μ must not
    return {"output": _finite(_hessian_action(surrogate, mu, weights, _vector(given, "vec", len(mu))))}


def _matrix(surrogate: Surrogate, name: str) -> np.ndarray:
    """The matrix R (n_outputs, n_modes) of a model."""
    if name == "coefficients":
        return np.eye(surrogate.basis.n_modes)
    if name == "quantities":
        return surrogate.quantities.rows.reshape(-1, surrogate.basis.n_modes)  # type: ignore[union-attr]
    return surrogate.basis.modes if surrogate.readout is None else surrogate.readout


def _parameter(surrogate: Surrogate, given: Mapping[str, Any]) -> np.ndarray:
    for name in INDICES:
        if type(given.get(name, 0)) is not int or given.get(name, 0) != 0:
            raise Refusal(422, f"{name} must be 0: there is one input and one output, got {str(given[name])[:40]}.")
    inputs = given.get("input")
    if not isinstance(inputs, list) or len(inputs) != 1:
        raise Refusal(422, f"input must be a list of one parameter vector, got {str(inputs)[:80]}.")
    mu = numbers(inputs[0], "the parameter vector", (1,))
    if len(mu) != surrogate.n_parameters:
        raise Refusal(422, f"a parameter vector has length {len(mu)}, expected {surrogate.n_parameters}.")
    return mu


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
    vector = numbers(given.get(name), name, (1,))
    if len(vector) != length:
        raise Refusal(422, f"{name} has {len(vector)} numbers, expected {length}.")
    return vector


def _finite(values: np.ndarray) -> list[float]:
    if not np.isfinite(values).all():
        raise Refusal(422, "the result is not finite. Ask inside the box, with numbers of reasonable size.")
    return values.tolist()
