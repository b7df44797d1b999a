"""The whole map μ -> u as an ONNX model, for programs that know nothing of parasol."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from parasol import __version__
from parasol.cache.disk import check_output, replacing
from parasol.checks import check_choice
from parasol.delivery.onnx_graph import Graph, emit, require_onnx
from parasol.errors import InputError
from parasol.runtime.descriptions import ranges
from parasol.runtime.operations import Affine
from parasol.runtime.plain import Plain
from parasol.runtime.program import Program
from parasol.runtime.surrogate import Surrogate

EXPORT_SUFFIXES = (".onnx",)
TOLERANCES = {"float64": 1e-10, "float32": 1e-5}  # of what an export may differ from Python, over the largest value
_MOST_BYTES = 2**31 - 2**24  # a protocol buffer ends at 2 GiB
_MOST_DENSE = 2**28  # bytes that sparse layers may fill as dense ones
_N_CHECKED = 64
_MARGIN = 0.3  # of the tolerance: what the parameters that were checked may use of it


@dataclass(frozen=True)
class Export:
    """What was written, and how far it is from Python in float64: the largest difference over the largest value."""

    path: Path
    dtype: str  # of "mu", of "u", and of the lifting between
    map_dtype: str  # of the map from parameters to coefficients
    n_bytes: int
    n_parameters: int
    n_values: int
    difference: float
    checked_with: str

    def to_dict(self) -> Plain:
        """The report as plain values."""
        return asdict(self) | {"path": str(self.path)}

    def rows(self) -> dict[str, str]:
        """The report in words."""
        inner = "" if self.map_dtype == self.dtype else f", {self.map_dtype} up to the coefficients"
        return {
            "input": f"mu (n, {self.n_parameters})",
            "output": f"u (n, {self.n_values})",
            "numbers": self.dtype + inner,
            "difference": f"{self.difference:.1e} of the largest value, in {self.checked_with}",
            "size": f"{self.n_bytes / 1e6:.3g} MB",
        }


def export(surrogate: Surrogate, path: str | Path, *, dtype: str = "float64") -> Export:
    """Write u(μ) as an ONNX model with input "mu" (n, n_parameters) and output "u" (n, n_values), n being free.

    Input, output and the lifting V c have the type `dtype`. With "float32" the map has it too where that keeps the values
    to 1e-5 of the largest; where it cancels too much for that, it is computed in float64. The model does not know
    its box: it answers outside of it too. What the numbers mean stands in its metadata, as JSON: parameters with their
    ranges, unknowns, times, nodes, the equation. The file is compared with Python before it takes its place, in ONNX
    Runtime where that is installed, else in the reference implementation, and refused if it differs by more than 1e-10
    (float64) or 1e-5, or than ten times what a change in the last digits of μ does to the map in Python.
    """
    if not isinstance(surrogate, Surrogate):
        raise InputError(f"cannot export a {type(surrogate).__name__}. Pass a surrogate.")
    check_choice(dtype, tuple(TOLERANCES), "dtype")
    path = check_output(path, EXPORT_SUFFIXES)
    onnx = require_onnx()
    size = surrogate.n_values * surrogate.basis.n_modes * np.dtype(dtype).itemsize
    if size > _MOST_BYTES:
        raise InputError(
            f"the modes fill {size / 2**30:.1f} GiB, and an ONNX file ends at 2 GiB. Use dtype='float32', or export "
            "surrogate.restricted(times=..., nodes=...)."
        )
    trial = _Trial.of(surrogate, dtype)
    for kind in dict.fromkeys((dtype, "float64")):
        data = model_bytes(onnx, surrogate, dtype, kind)
        difference, who = trial.difference(data)
        if difference <= _MARGIN * TOLERANCES[dtype]:
            break
    if not difference <= max(TOLERANCES[dtype], 10 * trial.rounding):
        raise InputError(
            f"in {who} the exported model differs from Python by {difference:.1e} of the largest value, more than "
            f"{TOLERANCES[dtype]:g}. Fit another recipe."
        )
    with replacing(path) as temporary:
        temporary.write_bytes(data)
    return Export(path, dtype, kind, len(data), surrogate.n_parameters, surrogate.n_values, difference, who)


def model_bytes(onnx: Any, surrogate: Surrogate, dtype: str, map_dtype: str) -> bytes:
    """The serialised model, checked by ONNX itself."""
    kind = np.dtype(dtype).type
    graph = Graph(onnx, "mu", kind)
    check_dense(surrogate.program)
    x = graph.cast("mu", np.dtype(map_dtype).type)
    c = graph.cast(emit(graph, surrogate.program.operations, x, surrogate.n_parameters), kind)
    modes = surrogate.basis.modes if surrogate.readout is None else surrogate.readout
    graph.add("MatMul", c, modes.T, name="u")
    return graph.serialised(
        ("mu", surrogate.n_parameters), ("u", surrogate.n_values), np.dtype(dtype), metadata(surrogate)
    )


def metadata(surrogate: Surrogate) -> dict[str, str]:
    """What the numbers mean: one JSON text for each name."""
    layout, space = surrogate.layout, surrogate.parameters.answered
    out: Plain = {
        "parasol": __version__,
        "parameters": ranges(space.scalars),
        "functions": [{"name": f.name, "on": f.on} for f in space.functions],
        "unknowns": list(layout.names),
        "order of u": "times, slowest; unknowns; nodes",
        "times": None if layout.times is None else layout.times.tolist(),
        "nodes": None if layout.points is None else layout.points.tolist(),
        "units": "those of the problem as it was declared",
        **surrogate.provenance.words,
    }
    return {name: json.dumps(value, ensure_ascii=False) for name, value in out.items()}


def check_dense(program: Program) -> None:
    """Refuse sparse layers that would burst the file, before they do."""
    layers = [op.weights for op in program.all_operations if isinstance(op, Affine) and op.is_sparse]
    size = sum(8 * w.shape[0] * w.shape[1] for w in layers)
    if size > _MOST_DENSE:
        raise InputError(
            f"the sparse layers of this map fill {size / 2**30:.1f} GiB where their zeros are written out, which others "
            f"want; at most {_MOST_DENSE / 2**30:g} are. Export a trained map, or construct with fewer modes."
        )


@dataclass(frozen=True, eq=False)
class _Trial:
    """Parameters from the box, what Python answers to them, and by how much rounding alone changes that."""

    mus: np.ndarray
    values: np.ndarray
    rounding: float

    @classmethod
    def of(cls, surrogate: Surrogate, dtype: str) -> _Trial:
        features = surrogate.features
        x = np.random.default_rng(0).uniform(-1.0, 1.0, (_N_CHECKED, surrogate.n_parameters))
        mus = x / features.scale + features.shift
        mus[:, features.logs] = np.exp(mus[:, features.logs])
        mus = mus.astype(dtype)
        exact = mus.astype(float)
        # by its program: rounding to float32 may lead out of the box, and choices may be anything here
        values = surrogate.lift(surrogate.program(exact))
        moved = surrogate.lift(surrogate.program(exact * (1 + 4 * np.finfo(float).eps)))
        return cls(mus, values, _gap(moved, values))

    def difference(self, data: bytes) -> tuple[float, str]:
        """How far an exported model is from Python, and who computed it."""
        values, who = run_model(data, self.mus)
        return _gap(values, self.values), who


def _gap(values: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.max(np.abs(values - wanted))) / (float(np.max(np.abs(wanted))) or 1.0)


def run_model(data: bytes, mus: np.ndarray) -> tuple[np.ndarray, str]:
    """u (n, n_values) of an exported model at parameters (n, n_parameters) of its type, and which program computed it."""
    try:
        import onnxruntime
    except ImportError:
        from onnx import load_from_string
        from onnx.reference import ReferenceEvaluator

        return ReferenceEvaluator(load_from_string(data)).run(None, {"mu": mus})[0], "onnx.reference"  # type: ignore[index,return-value]
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    return session.run(["u"], {"mu": mus})[0], "ONNX Runtime"  # type: ignore[return-value]
