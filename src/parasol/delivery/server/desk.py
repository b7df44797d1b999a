"""What the server answers, without HTTP: requests as plain data in, arrays out, everything checked and bounded."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from parasol.checks import ParasolError
from parasol.delivery.server.wire import BYTES_PER_NUMBER, JSON, Limits, Refusal, numbers
from parasol.runtime.surrogate import Surrogate

SELECTORS = ("nodes", "points", "times")
_TYPES = {"float64": np.float64, "float32": np.float32}
_MOST_NUMBERS = 2**23  # of rows times modes, in one selection and in all that are kept: 64 MiB in float64
_MOST_SELECTIONS = 32
_AT_ONCE = 2**22  # weights of points by nodes are full matrices for a moment: 32 MiB
_LIGHT = 2**13  # numbers that are computed and written in about a millisecond


@dataclass(frozen=True, eq=False)
class Question:
    """A checked request: parameters, the surrogate of what was selected, and what is wanted besides."""

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


@dataclass(frozen=True, eq=False)
class Desk:
    """A surrogate with limits, and with the selections that were asked for lately."""

    surrogate: Surrogate
    limits: Limits
    extrapolate: bool = False

    @cached_property
    def _kept(self) -> OrderedDict[bytes, Surrogate]:
        return OrderedDict()

    @cached_property
    def _lock(self) -> threading.Lock:
        return threading.Lock()

    @cached_property
    def middle(self) -> np.ndarray:
        """A parameter vector inside the box, for examples: the middle of every range, functions that vanish."""
        scalars = self.surrogate.parameters.vector({})
        return np.pad(scalars, (0, self.surrogate.n_parameters - len(scalars)))

    @property
    def has_bounds(self) -> bool:
        """Whether anything is known about errors."""
        return self.surrogate.has_bounds

    def question(self, given: Mapping[str, Any], allowed: tuple[str, ...]) -> Question:
        """The question in a JSON object (or in query and npy body); 4xx with the reason where it is none."""
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
        flags = {name: self._flag(given, name) for name in ("bounds", "quantities", "extrapolate")}
        if flags["bounds"] and not self.has_bounds:
            raise Refusal(422, "nothing is known about the errors of this surrogate. Ask without bounds.")
        if flags["quantities"] and self.surrogate.quantities is None:
            raise Refusal(422, "this surrogate has no quantities of interest. Ask without them.")
        return Question(mus, self.selected(given), _TYPES[dtype], **flags)

    def vector(self, value: Any) -> np.ndarray:
        """One parameter vector from a list of numbers."""
        mu = numbers(value, "the parameter vector", (1,))
        if len(mu) != self.surrogate.n_parameters:
            raise Refusal(422, f"a parameter vector has length {len(mu)}, expected {self.surrogate.n_parameters}.")
        return mu

    def _vectors(self, value: Any) -> np.ndarray:
        if isinstance(value, dict):
            return self._named(value)
        if isinstance(value, list) and value and all(type(item) is dict for item in value):
            return np.array([self._named(item) for item in value])
        mus = numbers(value, "mus", (1, 2))
        if mus.shape[-1] != self.surrogate.n_parameters:
            names = ", ".join(self.surrogate.parameters.names) or "values of functions"
            raise Refusal(
                422,
                f"a parameter vector has length {mus.shape[-1]}, expected {self.surrogate.n_parameters}: {names}.",
            )
        return mus

    def _named(self, values: dict[str, Any]) -> np.ndarray:
        names = self.surrogate.parameters.names
        if len(names) != self.surrogate.n_parameters:
            raise Refusal(422, "this surrogate has functions among its parameters. Send vectors, functions by values.")
        if set(values) != set(names):
            got = ", ".join(values) or "nothing"
            raise Refusal(422, f"named parameters must be {', '.join(names)}, got {got[:80]}.")
        return numbers([values[name] for name in names], "mus", (1,))

    def _flag(self, given: Mapping[str, Any], name: str) -> bool:
        value = given.get(name, False)
        if type(value) is not bool:
            raise Refusal(422, f"{name} must be true or false, got {value!r}.")
        if name == "extrapolate" and value and not self.extrapolate:
            raise Refusal(422, "this server does not extrapolate. Ask inside the box, or start it with --extrapolate.")
        return value

    def allow_extrapolation(self, given: Mapping[str, Any]) -> bool:
        """Whether a request asks to leave the box, which the server has to allow."""
        return self._flag(given, "extrapolate")

    def selected(self, given: Mapping[str, Any]) -> Surrogate:
        """The surrogate of the selected nodes, points and times, made once and kept while it is asked for."""
        chosen = _selection(given)
        kept = self._known(chosen)
        if kept is not None:
            return kept
        made = self._select(chosen)
        with self._lock:
            self._kept[_key(chosen)] = made
            while len(self._kept) > _MOST_SELECTIONS or sum(map(_size, self._kept.values())) > _MOST_NUMBERS:
                self._kept.popitem(last=False)
        return made

    def _known(self, chosen: dict[str, Any]) -> Surrogate | None:
        """The surrogate of a selection if it need not be made."""
        if not chosen:
            return self.surrogate
        key = _key(chosen)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _select(self, chosen: dict[str, Any]) -> Surrogate:
        layout = self.surrogate.layout
        if "nodes" in chosen and "points" in chosen:
            raise Refusal(422, "nodes and points are both given. Select by one of them.")
        found = {name: numbers(value, name, (2 if name == "points" else 1,)) for name, value in chosen.items()}
        longest = max(len(values) for values in found.values())
        if longest > self.limits.points:
            raise Refusal(413, f"{longest} places are more than {self.limits.points} at once. Select fewer.")
        if "nodes" in found:
            if np.any(found["nodes"] != np.rint(found["nodes"])) or np.any(np.abs(found["nodes"]) > 2**53):
                raise Refusal(422, "nodes must be whole numbers: places in /v1/nodes, from 0.")
            found["nodes"] = found["nodes"].astype(np.int64)
        n_times = len(found["times"]) if "times" in found else layout.n_times
        n_places = len(found.get("nodes", found.get("points", ()))) or self.surrogate.n_values // (
            layout.n_times * len(layout.names)
        )
        rows = n_times * len(layout.names) * n_places
        if rows * self.surrogate.basis.n_modes > _MOST_NUMBERS:
            raise Refusal(
                413, f"{rows} values for each parameter are too many to select. Select fewer points or times."
            )
        if "points" not in found:
            return self.surrogate.restricted(**found)
        self._check_near(found["points"])
        points = found.pop("points")
        step = max(1, _AT_ONCE // (1 if layout.points is None else len(layout.points)))
        parts = [
            self.surrogate.restricted(points=points[start : start + step], **found)
            for start in range(0, len(points), step)
        ]
        if len(parts) == 1:
            return parts[0]
        shape = (n_times, len(layout.names), -1, self.surrogate.basis.n_modes)
        rows = np.concatenate([part.readout.reshape(shape) for part in parts], axis=2)  # type: ignore[union-attr]
        readout = np.ascontiguousarray(rows.reshape(-1, shape[-1]))
        made = replace(parts[0], readout=readout, layout=replace(parts[0].layout, points=points))
        vars(made)["distributions"] = self.surrogate.distributions  # as restricting does
        return made

    def _check_near(self, points: np.ndarray) -> None:
        """Refuse points away from all nodes: a file may not know its domain, and stencils would extrapolate wildly."""
        nodes = self.surrogate.layout.points
        if nodes is None or points.shape[1] != nodes.shape[1]:
            return  # what is wrong then is said by the surrogate
        tree, reach = self._tree
        far = tree.query(points)[0] > reach
        if np.any(far):
            raise Refusal(422, f"the point {points[far][0].tolist()} is far from all nodes. Ask inside the domain.")

    @cached_property
    def _tree(self) -> tuple[Any, float]:
        from scipy.spatial import cKDTree

        tree = cKDTree(self.surrogate.layout.points)
        gaps = tree.query(self.surrogate.layout.points, 2)[0][:, -1]
        return tree, 2 * float(np.max(gaps))

    def check_size(self, n_numbers: int, kind: str = JSON, *, width: int = 8) -> None:
        """Refuse an answer that would be too long, before it is computed."""
        size = n_numbers * BYTES_PER_NUMBER[kind] * (width if kind != JSON else 8) // 8
        if size > self.limits.response:
            raise Refusal(
                413,
                f"the answer would have about {size >> 20} MiB, more than {self.limits.response >> 20}. Send fewer "
                "parameters, or select nodes, points or times.",
            )

    def is_light(self, given: Mapping[str, Any]) -> bool:
        """Whether a question is answered faster than it is handed to another thread."""
        mus, surrogate = given.get("mus"), self._known(_selection(given))
        n = len(mus) if isinstance(mus, list | np.ndarray) else 1
        return surrogate is not None and n * max(64, surrogate.n_values) <= _LIGHT

    def values(self, question: Question, kind: str) -> dict[str, Any]:
        """Fields, with bounds and quantities where wanted."""
        surrogate = question.surrogate
        self.check_size(question.n_samples * surrogate.n_values, kind, width=np.dtype(question.dtype).itemsize)
        answer = surrogate(question.mus, dtype=question.dtype, extrapolate=question.extrapolate)
        if not np.isfinite(answer.values).all():
            raise ParasolError("the values are not finite. Ask inside the box.")
        layout = surrogate.layout
        n_places = surrogate.n_values // (layout.n_times * len(layout.names))
        out = {
            "values": answer.values,
            "unknowns": list(layout.names),
            "shape": [layout.n_times, len(layout.names), n_places],
            "times": None if layout.times is None else layout.times,
            "extrapolated": answer.extrapolated,
        }
        if question.bounds:
            out["bounds"] = _bounds(answer.bounds, answer.single)
        return out | (self._quantities(question, answer) if question.quantities else {})

    def gradient(self, question: Question, kind: str) -> dict[str, Any]:
        """Derivatives of the values by the parameters."""
        surrogate = question.surrogate
        self.check_size(question.n_samples * surrogate.n_values * surrogate.n_parameters, kind)
        found = surrogate.gradient(question.mus, extrapolate=question.extrapolate)
        if not np.isfinite(found).all():
            raise ParasolError("the derivatives are not finite. Ask inside the box.")
        answer = surrogate(question.mus, extrapolate=question.extrapolate)
        return {"gradient": found, "extrapolated": answer.extrapolated}

    def bounds(self, question: Question, kind: str) -> dict[str, Any]:
        """Bounds of the errors of whole fields."""
        self.check_size(3 * question.n_samples, kind)
        answer = question.surrogate(question.mus, extrapolate=question.extrapolate)
        return _bounds(answer.bounds, answer.single) | {"extrapolated": answer.extrapolated}

    def quantities(self, question: Question, kind: str) -> dict[str, Any]:
        """Quantities of interest without the fields."""
        rows = self.surrogate.quantities.rows  # type: ignore[union-attr]
        self.check_size(2 * question.n_samples * rows.shape[0] * rows.shape[1], kind)
        answer = question.surrogate(question.mus, extrapolate=question.extrapolate)
        return self._quantities(question, answer) | {"extrapolated": answer.extrapolated}

    @staticmethod
    def _quantities(question: Question, answer) -> dict[str, Any]:
        out = {"quantities": answer.quantities}
        if not all(np.isfinite(values).all() for values in answer.quantities.values()):
            raise ParasolError("the quantities are not finite. Ask inside the box.")
        return out | ({"quantity_bounds": answer.quantity_bounds} if question.bounds else {})


def _bounds(found, single: bool) -> dict[str, Any]:
    named = {"relative": found.relative, "absolute": found.values, "rigorous": found.rigorous}
    return {name: values[0] if single else values for name, values in named.items()}


def _size(surrogate: Surrogate) -> int:
    return 0 if surrogate.readout is None else surrogate.readout.size


def _selection(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in SELECTORS if name in given}


def _key(chosen: dict[str, Any]) -> bytes:
    return hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).digest()
