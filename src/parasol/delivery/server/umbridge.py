"""The UM-Bridge protocol (1.0, which 0.9 clients speak too): a surrogate as a model for samplers in any language.

Every model offered is y = R c(μ) with its own matrix R: the field, the quantities of interest, or the coefficients
themselves. Quantities with a map of their own come after those of the field, as in `/v1/info`. So sensᵀ ∂y/∂μ = (sensᵀ R) ∂c/∂μ, and no derivative of a whole field is ever formed; where the weights of
quantities depend on parameters, R does too, and its derivative joins in by differences. What the residual may add to a
quantity (`Answer.quantities`) is left out here, so that values and slopes belong together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from parasol.delivery.server.formats import Refusal, numbers
from parasol.delivery.server.service import SELECTORS, Service, matrix
from parasol.runtime.plain import Plain
from parasol.runtime.program import program_of
from parasol.runtime.quantities import mixed
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
    return ["field", *(["quantities"] if surrogate.quantity_names else []), "coefficients"]


def _parts(surrogate: Surrogate, name: str) -> list[Surrogate]:
    """The surrogates whose outputs, one after the other, are those of a model."""
    if name != "quantities":
        return [surrogate]
    return [part for part in (surrogate, surrogate.scalars) if part is not None and part.quantities is not None]


def has_hessian(surrogate: Surrogate) -> bool:
    """Whether second derivatives mean something: the map has first ones, and they do not jump; the reduced model has none."""
    program = program_of(surrogate.map)
    kinks = program is not None and any(getattr(op, "name", None) == "relu" for op in program.all_operations)
    return callable(getattr(surrogate.map, "jacobian", None)) and not kinks


def find(models: Mapping[str, tuple[Service, str]], given: Mapping[str, Any]) -> tuple[Service, str]:
    """The service that a request names, and which of its models."""
    name = given.get("name")
    if not isinstance(name, str) or name not in models:
        message = f"Model {str(name)[:40]!r} not supported by server. There are: {', '.join(models)}."
        raise Refusal(400, message, "ModelNotFound")
    return models[name]


def answer(models: Mapping[str, tuple[Service, str]], verb: str, given: Mapping[str, Any]) -> Plain:
    """The answer to POST /{verb}, one of VERBS, of the services' models by the names they have here."""
    service, name = find(models, given)
    surrogate = service.surrogate
    if verb == "ModelInfo":
        twice = all(map(has_hessian, _parts(surrogate, name)))
        return {"support": {**dict.fromkeys(COMPUTED, True), "ApplyHessian": twice}}
    if verb == "InputSizes":
        return {"inputSizes": [surrogate.n_parameters]}
    config = given.get("config", {})
    if not isinstance(config, dict) or not set(config) <= set(CONFIG):
        raise Refusal(422, f"config must be an object with some of: {', '.join(CONFIG)}, got {str(config)[:80]}.")
    extrapolate = service.flag(config, "extrapolate")
    parts = _parts(service.selected(config), name)
    sizes = [_size(part, name) for part in parts]
    size = sum(sizes)
    if verb == "OutputSizes":
        return {"outputSizes": [size]}
    mu = _parameter(surrogate, given)
    if (
        not extrapolate and surrogate.distributions.unlike(mu[None])[0]
    ):  # the protocol has no place to say so in an answer
        raise Refusal(422, "a function among the parameters is unlike its distribution. Ask for one drawn from it.")
    if verb in ("Evaluate", "ApplyJacobian"):
        service.check_size(size)
    coefficients = [part.coefficients(mu, extrapolate=extrapolate) for part in parts]
    if verb == "Evaluate":
        values = [_matrix(part, name, mu) @ c for part, c in zip(parts, coefficients, strict=True)]
        return {"output": _finite(np.concatenate(values))[None]}
    if verb == "ApplyJacobian":
        vec, along = _vector(given, "vec", len(mu)), []
        for part, c in zip(parts, coefficients, strict=True):
            slopes = part.jacobian(mu, extrapolate=extrapolate)
            along.append(_matrix(part, name, mu) @ (slopes @ vec) + _moving(part, name, mu, c) @ vec)
        return {"output": _finite(np.concatenate(along))}
    senses = np.split(_vector(given, "sens", size), np.cumsum(sizes)[:-1])
    if verb == "Gradient":
        slopes = [_gradient(part, name, mu, sens, extrapolate) for part, sens in zip(parts, senses, strict=True)]
        return {"output": _finite(np.sum(slopes, axis=0))}
    if not all(map(has_hessian, parts)):
        why = "its slopes jump" if surrogate.map is not None else "the slopes of a reduced model are differences"
        raise Refusal(400, f"ApplyHessian not supported by model: {why}.", "UnsupportedFeature")
    # the differences leave the box by a little; μ does not, for its coefficients were computed
    vec = _vector(given, "vec", len(mu))
    actions = [_hessian_action(part, name, mu, sens, vec) for part, sens in zip(parts, senses, strict=True)]
    return {"output": _finite(np.sum(actions, axis=0))}


def _size(surrogate: Surrogate, name: str) -> int:
    """Number of outputs of a model."""
    if name == "quantities":
        wanted = surrogate.quantities
        return len(wanted.names) * wanted.rows.shape[1]  # type: ignore[union-attr]
    return surrogate.basis.n_modes if name == "coefficients" else surrogate.n_values


def _matrix(surrogate: Surrogate, name: str, mu: np.ndarray) -> np.ndarray:
    """The matrix R (n_outputs, n_modes) of a model."""
    if name == "coefficients":
        return np.eye(surrogate.basis.n_modes)
    if name == "quantities":
        wanted = surrogate.quantities
        assert wanted is not None
        mix = wanted.weighting(mu[None])
        return mixed(mix, wanted.rows[None])[0].reshape(-1, surrogate.basis.n_modes)
    return matrix(surrogate)


def _moving(surrogate: Surrogate, name: str, mu: np.ndarray, c: np.ndarray) -> np.ndarray:
    """(∂R/∂μ) c, (n_outputs, n_parameters), by central differences; 0 where R is the same for all parameters."""
    out = np.zeros((_size(surrogate, name), len(mu)))
    wanted = surrogate.quantities
    if name == "quantities" and wanted is not None and wanted.mixing is not None:
        for i, step in enumerate(np.cbrt(np.finfo(float).eps) / np.abs(surrogate.features.slope(mu[None])[0])):
            ends = mu + step * np.eye(len(mu))[i] * np.array([[1.0], [-1.0]])
            ahead, behind = np.moveaxis(wanted(np.stack([c, c]), ends), 1, 0)
            out[:, i] = ((ahead - behind) / (2 * step)).ravel()
    return out


def _gradient(surrogate: Surrogate, name: str, mu: np.ndarray, sens: np.ndarray, extrapolate: bool) -> np.ndarray:
    """sensᵀ ∂y/∂μ, (n_parameters,)."""
    c = surrogate.coefficients(mu, extrapolate=extrapolate)
    slopes = surrogate.jacobian(mu, extrapolate=extrapolate)
    return (sens @ _matrix(surrogate, name, mu)) @ slopes + sens @ _moving(surrogate, name, mu, c)


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


def _hessian_action(surrogate: Surrogate, name: str, mu: np.ndarray, sens: np.ndarray, vec: np.ndarray) -> np.ndarray:
    """Central differences of the gradient along `vec`, with a step that is small in the features of the map."""
    length = float(np.max(np.abs(surrogate.features.slope(mu[None])[0] * vec)))
    if length == 0:
        return np.zeros(len(mu))
    program = program_of(surrogate.map)
    step = np.cbrt(np.finfo(float if program is None else program.dtype).eps) / length
    ahead, behind = (_gradient(surrogate, name, mu + sign * step * vec, sens, True) for sign in (1.0, -1.0))
    return (ahead - behind) / (2 * step)


def _vector(given: Mapping[str, Any], name: str, length: int) -> np.ndarray:
    vector = numbers(given.get(name), name, (1,))
    if len(vector) != length:
        raise Refusal(422, f"{name} has {len(vector)} numbers, expected {length}.")
    return vector


def _finite(values: np.ndarray) -> np.ndarray:
    if not np.isfinite(values).all():
        raise Refusal(422, "the result is not finite. Ask inside the box, with numbers of reasonable size.")
    return values
