"""What the server computes, without HTTP: requests as plain data are checked and bounded, then answered with arrays."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from parasol.checks import check_count
from parasol.delivery.server.formats import JSON, Refusal, Rows, numbers
from parasol.errors import InputError
from parasol.runtime.plain import Plain
from parasol.runtime.surrogate import Answer, Surrogate

SELECTORS = ("nodes", "points", "times")
_TYPES = {"float64": np.float64, "float32": np.float32}
_MOST_NUMBERS = 2**23  # rows times modes, in one selection and in all cached ones: 64 MiB in float64
_MOST_SELECTIONS = 32
_LIGHT = 2**13  # numbers that are computed and written in about a millisecond
_JSON_BYTES = 24  # of one number, at most


@dataclass(frozen=True)
class Limits:
    """What one request may cost; a request above a limit of size is refused with status 413 before it is computed."""

    body: int = 8 * 2**20  # bytes of a request
    response: int = 64 * 2**20  # bytes of an answer
    batch: int = 10_000  # parameter vectors
    points: int = 10_000  # selected points, nodes or times
    seconds: int = 30  # for a head to arrive, then for a body, and for each part of an answer to be taken
    requests: int = 256  # answered at a time; each may hold a body
    connections: int = 2000  # open at a time; above it, those that have waited longest for a request are closed

    def __post_init__(self):
        for name, value in vars(self).items():
            check_count(value, f"the limit {name!r}")


@dataclass(frozen=True, eq=False)
class Question:
    """A checked request: parameters, the surrogate restricted to the selection, and what else is asked for."""

    mus: np.ndarray  # (n_parameters,) or (n_samples, n_parameters)
    surrogate: Surrogate
    dtype: type
    bounds: bool
    quantities: bool
    extrapolate: bool

    @property
    def n_samples(self) -> int:
        """Number of parameter vectors."""
        return 1 if self.mus.ndim == 1 else len(self.mus)

    def answer(self) -> Answer:
        """The surrogate's answer."""
        return self.surrogate(self.mus, dtype=self.dtype, extrapolate=self.extrapolate)


class Service:
    """A surrogate with limits and a cache of recent selections of nodes, points and times."""

    def __init__(self, surrogate: Surrogate, limits: Limits, extrapolate: bool = False):
        self.surrogate, self.limits, self.extrapolate = surrogate, limits, extrapolate
        self._cache: OrderedDict[bytes, Surrogate] = OrderedDict()
        self._lock = threading.Lock()

    @cached_property
    def middle(self) -> np.ndarray:
        """A parameter vector inside the box, for examples: the middle of every range, functions that vanish."""
        scalars = self.surrogate.parameters.vector({})
        return np.pad(scalars, (0, self.surrogate.n_parameters - len(scalars)))

    def question(self, given: Mapping[str, Any], allowed: tuple[str, ...]) -> Question:
        """The checked question in a JSON object (or in query and npy body), else 4xx with the reason."""
        for name in given:
            if name not in allowed:
                raise Refusal(422, f"unknown name {name[:40]!r}. This route knows: {', '.join(allowed)}.")
        if "mus" not in given:
            raise Refusal(422, 'there are no parameters. Send "mus": a vector, a list of vectors, or named values.')
        mus = given["mus"] if isinstance(given["mus"], np.ndarray) else self._vectors(given["mus"])
        if mus.ndim == 2 and len(mus) > self.limits.batch:
            raise Refusal(
                413, f"{len(mus)} parameters are more than {self.limits.batch} at once. Send several requests."
            )
        dtype = given.get("dtype", "float64")
        if not isinstance(dtype, str) or dtype not in _TYPES:
            raise Refusal(422, f"dtype must be float64 or float32, got {dtype!r}.")
        flags = {name: self.flag(given, name) for name in ("bounds", "quantities", "extrapolate")}
        return Question(mus, self.selected(given), _TYPES[dtype], **flags)

    def _vectors(self, value: Any) -> np.ndarray:
        if isinstance(value, dict):
            return self._named(value)
        if isinstance(value, list) and value and all(type(item) is dict for item in value):
            return np.array([self._named(item) for item in value])
        mus = numbers(value, "mus", (1, 2))
        if mus.shape[-1] != self.surrogate.n_parameters:
            names = ", ".join(self.surrogate.parameters.names) or "values of functions"
            raise Refusal(
                422, f"a parameter vector has length {mus.shape[-1]}, expected {self.surrogate.n_parameters}: {names}."
            )
        return mus

    def _named(self, values: Plain) -> np.ndarray:
        names = self.surrogate.parameters.names
        if len(names) != self.surrogate.n_parameters:
            raise Refusal(422, "this surrogate has functions among its parameters. Send vectors, functions by values.")
        if set(values) != set(names):
            got = ", ".join(values) or "nothing"
            raise Refusal(422, f"named parameters must be {', '.join(names)}, got {got[:80]}.")
        scalars = self.surrogate.parameters.scalars
        named = {p.name: p.numbers(values[p.name]).item() for p in scalars if p.labels and type(values[p.name]) is str}
        return numbers([(values | named)[name] for name in names], "mus", (1,))

    def flag(self, given: Mapping[str, Any], name: str) -> bool:
        """Whether a request asks for bounds, quantities or extrapolation, which there may not be."""
        value = given.get(name, False)
        if type(value) is not bool:
            raise Refusal(422, f"{name} must be true or false, got {value!r}.")
        if value and name == "extrapolate" and not self.extrapolate:
            raise Refusal(422, "this server does not extrapolate. Ask inside the box, or start it with --extrapolate.")
        if value and name == "bounds" and not self.surrogate.has_bounds:
            raise Refusal(422, "nothing is known about the errors of this surrogate. Ask without bounds.")
        if value and name == "quantities" and not self.surrogate.quantity_names:
            raise Refusal(422, "this surrogate has no quantities of interest. Ask without them.")
        return value

    def selected(self, given: Mapping[str, Any]) -> Surrogate:
        """The surrogate restricted to the selected nodes, points and times."""
        cached = self._cached(given)
        if cached is not None:
            return cached
        restricted = self._restricted({name: given[name] for name in SELECTORS if name in given})
        with self._lock:
            self._cache[_key(given)] = restricted
            while len(self._cache) > _MOST_SELECTIONS or sum(map(_size, self._cache.values())) > _MOST_NUMBERS:
                self._cache.popitem(last=False)
        return restricted

    def _cached(self, given: Mapping[str, Any]) -> Surrogate | None:
        if not any(name in given for name in SELECTORS):
            return self.surrogate
        key = _key(given)
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
            return self._cache.get(key)

    def _restricted(self, selection: Plain) -> Surrogate:
        if "nodes" in selection and "points" in selection:
            raise Refusal(422, "nodes and points are both given. Select by one of them.")
        chosen = {name: numbers(value, name, (2 if name == "points" else 1,)) for name, value in selection.items()}
        longest = max(map(len, chosen.values()))
        if longest > self.limits.points:
            raise Refusal(413, f"{longest} places are more than {self.limits.points} at once. Select fewer.")
        if "nodes" in chosen:
            nodes = chosen["nodes"]
            if np.any(nodes != np.rint(nodes)) or np.any(np.abs(nodes) > 2**53):
                raise Refusal(422, "nodes must be whole numbers: places in /v1/nodes, from 0.")
            chosen["nodes"] = nodes.astype(np.int64)
        places = chosen.get("nodes", chosen.get("points", range(n_places(self.surrogate))))
        times = chosen.get("times", range(self.surrogate.layout.n_times))
        n_values = len(times) * len(self.surrogate.layout.names) * len(places)
        if n_values * self.surrogate.basis.n_modes > _MOST_NUMBERS:
            raise Refusal(
                413, f"{n_values} values for each parameter are too many to select. Select fewer points or times."
            )
        return self.surrogate.restricted(**chosen)

    def check_size(self, n_numbers: int, kind: str = JSON, dtype: type = np.float64) -> None:
        """Refuse an answer that would be too long, before it is computed."""
        size = n_numbers * (_JSON_BYTES if kind == JSON else np.dtype(dtype).itemsize)
        if size > self.limits.response:
            raise Refusal(
                413,
                f"the answer would have about {size >> 20} MiB, more than {self.limits.response >> 20}. Send fewer "
                "parameters, or select nodes, points or times.",
            )

    def is_light(self, given: Mapping[str, Any]) -> bool:
        """Whether a question is answered faster than it is handed to another thread."""
        mus, surrogate = given.get("mus"), self._cached(given)
        n = len(mus) if isinstance(mus, list | np.ndarray) else 1
        return surrogate is not None and n * max(64, surrogate.n_values) <= _LIGHT

    def predict(self, question: Question, kind: str) -> Plain:
        """Fields, with bounds and quantities where asked for."""
        surrogate, layout = question.surrogate, question.surrogate.layout
        self.check_size(question.n_samples * surrogate.n_values, kind, question.dtype)
        answer = question.answer()
        out = {
            "values": _fields(question, answer),
            "unknowns": list(layout.names),
            "shape": [layout.n_times, len(layout.names), n_places(surrogate)],
            "times": layout.times,
            "extrapolated": answer.extrapolated,
        }
        bounds = {"bounds": _bounds(answer)} if question.bounds else {}
        return out | bounds | (_quantities(question, answer) if question.quantities else {})

    def gradient(self, question: Question, kind: str) -> Plain:
        """Derivatives of the values with respect to the parameters."""
        surrogate = question.surrogate
        self.check_size(question.n_samples * surrogate.n_values * surrogate.n_parameters, kind)
        answer = question.answer()
        return {"gradient": _gradients(question, answer), "extrapolated": answer.extrapolated}

    def bounds(self, question: Question, kind: str) -> Plain:
        """Bounds of the errors of whole fields, and estimates of these errors."""
        self.check_size(5 * question.n_samples, kind)
        answer = question.answer()
        return _bounds(answer) | {"extrapolated": answer.extrapolated}

    def quantities(self, question: Question, kind: str) -> Plain:
        """Quantities of interest without the fields."""
        n_wanted = len(self.surrogate.quantity_names) * self.surrogate.layout.n_times
        self.check_size(2 * question.n_samples * n_wanted, kind)
        answer = question.answer()
        return _quantities(question, answer) | {"extrapolated": answer.extrapolated}


def n_places(surrogate: Surrogate) -> int:
    """Number of nodes or points of each unknown at each time."""
    return surrogate.n_values // (surrogate.layout.n_times * len(surrogate.layout.names))


def _bounds(answer: Answer) -> Plain:
    bounds = answer.bounds
    named: Plain = {"relative": bounds.relative, "absolute": bounds.values, "rigorous": bounds.rigorous}
    named["bound_kind"] = [answer.bound_kind] if answer.single else answer.bound_kind
    if answer.estimates is not None:
        named["estimate"] = answer.estimates.relative
    if answer.discretisation is not None:
        named["discretisation"] = np.atleast_1d(answer.discretisation)
    return {name: values[0] if answer.single else values for name, values in named.items()}


def _quantities(question: Question, answer: Answer) -> Plain:
    _check_finite("quantities", *answer.quantities.values())
    bounds: Plain = {}
    if question.bounds:
        bounds = {"quantity_bounds": answer.quantity_bounds, "quantity_bound_kind": answer.quantity_bound_kind}
        if answer.quantity_estimates is not None:
            bounds["quantity_estimates"] = answer.quantity_estimates
    return {"quantities": answer.quantities, **bounds}


def _fields(question: Question, answer: Answer) -> np.ndarray | Rows:
    """The values of an answer; those of many parameters are computed while they are written."""
    c, surrogate = answer.coefficients, question.surrogate
    if answer.single or len(c) * surrogate.n_values <= _LIGHT:
        _check_finite("values", answer.values)
        return answer.values
    _check_products("values", surrogate, c)
    return Rows((len(c), surrogate.n_values), c.dtype.type, lambda rows: surrogate.lift(c[rows]))


def _gradients(question: Question, answer: Answer) -> np.ndarray | Rows:
    """The derivatives of the values; those at many parameters are computed while they are written."""
    surrogate, mus = question.surrogate, question.mus
    slopes = surrogate.jacobian(mus, extrapolate=question.extrapolate)
    if answer.single:
        _check_finite("derivatives", gradient := matrix(surrogate) @ slopes)
        return gradient
    _check_products("derivatives", surrogate, np.moveaxis(slopes, 1, 2))
    shape = (len(mus), surrogate.n_values, surrogate.n_parameters)
    return Rows(shape, np.float64, lambda rows: matrix(surrogate) @ slopes[rows])


def matrix(surrogate: Surrogate) -> np.ndarray:
    """R of the values R c, (n_values, n_modes)."""
    return surrogate.basis.modes if surrogate.readout is None else surrogate.readout


def _check_products(name: str, surrogate: Surrogate, c: np.ndarray) -> None:
    """Refuse R c, c (..., n_modes), that may overflow, before any of it is sent: |R c| <= max |R| Σ |c|."""
    most = float(np.abs(matrix(surrogate)).max()) * float(np.abs(c).sum(axis=-1, dtype=float).max())
    if not most < np.finfo(c.dtype).max:
        raise InputError(f"the {name} are not finite, or nearly so. Ask inside the box.")


def _check_finite(name: str, *arrays: np.ndarray) -> None:
    if not all(np.isfinite(array).all() for array in arrays):
        raise InputError(f"the {name} are not finite. Ask inside the box.")


def _size(surrogate: Surrogate) -> int:
    return 0 if surrogate.readout is None else surrogate.readout.size


def _key(given: Mapping[str, Any]) -> bytes:
    selection = {name: given[name] for name in SELECTORS if name in given}
    return hashlib.sha256(json.dumps(selection).encode()).digest()
