"""An ONNX graph while it is written, and how each operation of a map is written into it."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from parasol.errors import NotInstalled
from parasol.runtime.expansions import FEW_COLUMNS, Chebyshev, Radial
from parasol.runtime.operation import Operation
from parasol.runtime.operations import GELU, Activation, Affine, Log, Scale, Sum

_OPSET = 17  # ONNX Runtime 1.12 and later
_IR_VERSION = 8


def require_onnx() -> Any:
    """The package onnx, or advice how to install it."""
    try:
        import onnx
        import onnx.checker
        import onnx.numpy_helper
    except ImportError:
        raise NotInstalled("an export needs onnx. Install it with: pip install 'parasol-pde[onnx]'.") from None
    return onnx


class Graph:
    """Grows by one operation at a time; operands are names of earlier results, or arrays, which become constants.

    All operations exist in ONNX Runtime for float64 on a CPU (Erf, for one, does not).
    """

    def __init__(self, onnx: Any, given: str, kind: type):
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.types = {given: kind}

    def add(self, operation: str, *operands: str | np.ndarray | float, name: str = "", **attributes) -> str:
        """Append an operation and return the name of its result; constants take the type of the first operand."""
        kind = self.types[operands[0]]  # type: ignore[index]
        inputs = [operand if isinstance(operand, str) else self._constant(operand, kind) for operand in operands]
        name = name or f"t{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operation, inputs, [name], **attributes))
        self.types[name] = kind
        return name

    def _constant(self, value: np.ndarray | float, kind: type) -> str:
        array = np.asarray(value)
        array = array.astype(kind if array.dtype.kind == "f" else array.dtype, order="C")
        self.constants.append(self.onnx.numpy_helper.from_array(array, f"c{len(self.constants)}"))
        return self.constants[-1].name

    def cast(self, x: str, kind: type) -> str:
        """The same numbers in another type."""
        if self.types[x] == kind:
            return x
        out = self.add("Cast", x, to=self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind)))
        self.types[out] = kind
        return out

    def serialised(
        self, given: tuple[str, int], wanted: tuple[str, int], dtype: np.dtype, metadata: dict[str, str]
    ) -> bytes:
        """The model as bytes: one input and one output, (n, width) each, with n free."""
        helper = self.onnx.helper
        kind = helper.np_dtype_to_tensor_dtype(dtype)
        ends = [[helper.make_tensor_value_info(name, kind, ["n", width])] for name, width in (given, wanted)]
        graph = helper.make_graph(self.nodes, "parasol", *ends, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], producer_name="parasol")
        model.ir_version = _IR_VERSION
        helper.set_model_props(model, metadata)
        self.onnx.checker.check_model(model, full_check=True)
        return model.SerializeToString()


# ---- one entry for each operation of surrogate/operations.py ---------------------------------------------------------
def emit(graph: Graph, operations: tuple[Operation, ...], x: str, width: int) -> str:
    """Write operations after x, which has `width` columns, and return the name of their result."""
    for op in operations:
        x = EMITTERS[type(op)](graph, op, x, width)
        width = op.n_outputs(width)
    return x


def _log(graph: Graph, op: Log, x: str, width: int) -> str:
    # log x in some columns, x in the others, with no column taken apart: exact, since log 1 = 0
    chosen = np.zeros(width)
    chosen[op.columns] = 1.0
    one_elsewhere = graph.add("Add", graph.add("Mul", x, chosen), 1.0 - chosen)
    return graph.add("Add", graph.add("Log", one_elsewhere), graph.add("Mul", x, 1.0 - chosen))


def _scale(graph: Graph, op: Scale, x: str, width: int) -> str:
    x = x if op.shift is None else graph.add("Sub", x, op.shift)
    # one number is multiplied as a matrix: ONNX Runtime would fuse a factor into the next product, in single precision
    x = graph.add("MatMul", x, op.scale[:, None]) if width == 1 else graph.add("Mul", x, op.scale)
    return x if op.offset is None else graph.add("Add", x, op.offset)


def _affine(graph: Graph, op: Affine, x: str, width: int) -> str:
    x = graph.add("MatMul", x, op.dense.T)
    return x if op.bias is None else graph.add("Add", x, op.bias)


def _activation(graph: Graph, op: Activation, h: str, width: int) -> str:
    if op.name in ("relu", "tanh"):
        return graph.add(op.name.capitalize(), h)
    if op.name == "silu":
        inner = graph.add("Mul", h, 0.5)
    else:
        cube = graph.add("Mul", graph.add("Mul", h, h), h)
        inner = graph.add("Mul", graph.add("Add", h, graph.add("Mul", cube, GELU[1])), GELU[0])
    half = graph.add("Mul", graph.add("Add", graph.add("Tanh", inner), 1.0), 0.5)
    return graph.add("Mul", h, half)


def _chebyshev(graph: Graph, op: Chebyshev, t: str, width: int) -> str:
    """All T_0 ... T_m of all inputs by the recurrence, then the products picked from them."""
    powers = [graph.add("Add", graph.add("Mul", t, 0.0), 1.0), t]
    twice = graph.add("Add", t, t)
    for _ in range(2, int(op.indices.max()) + 1):
        powers.append(graph.add("Sub", graph.add("Mul", twice, powers[-1]), powers[-2]))
    table = graph.add("Concat", *powers, axis=1)
    inputs = np.flatnonzero(op.indices.any(axis=0)) if op.indices.any() else [0]
    factors = [graph.add("Gather", table, (op.indices[:, i] * width + i).astype(np.int64), axis=1) for i in inputs]
    return reduce(lambda product, factor: graph.add("Mul", product, factor), factors)


def _radial(graph: Graph, op: Radial, x: str, width: int) -> str:
    s = _squared_distances(graph, graph.add("Div", x, op.lengths), op.centres / op.lengths)
    if op.name == "gaussian":
        return graph.add("Exp", graph.add("Mul", s, -0.5))
    if op.name == "inverse multiquadric":
        return graph.add("Reciprocal", graph.add("Sqrt", graph.add("Add", s, 1.0)))
    r = graph.add("Mul", graph.add("Sqrt", s), float(np.sqrt(5.0 if op.name == "matern52" else 3.0)))
    factor = graph.add("Add", r, 1.0)
    if op.name == "matern52":
        factor = graph.add("Add", factor, graph.add("Mul", graph.add("Mul", r, r), 1.0 / 3.0))
    return graph.add("Mul", factor, graph.add("Exp", graph.add("Neg", r)))


def _squared_distances(graph: Graph, a: str, centres: np.ndarray) -> str:
    """|a − z|², (n, m), of rows a (n, p) and centres (m, p); differences first where inputs are few."""
    p = centres.shape[1]
    if p > FEW_COLUMNS:
        mine = graph.add("MatMul", graph.add("Mul", a, a), np.ones((p, 1)))
        cross = graph.add("MatMul", a, -2.0 * centres.T)
        total = graph.add("Add", graph.add("Add", mine, cross), np.sum(centres**2, axis=1))
        return graph.add("Relu", total)
    columns = [graph.add("Gather", a, np.array([i], dtype=np.int64), axis=1) for i in range(p)]
    gaps = [graph.add("Sub", column, centres[:, i]) for i, column in enumerate(columns)]
    return reduce(lambda one, other: graph.add("Add", one, other), [graph.add("Mul", gap, gap) for gap in gaps])


def _sum(graph: Graph, op: Sum, x: str, width: int) -> str:
    parts = [emit(graph, branch, x, width) for branch in op.branches]
    return reduce(lambda one, other: graph.add("Add", one, other), parts)


EMITTERS: dict[type[Operation], Callable[[Graph, Any, str, int], str]] = {
    Log: _log,
    Scale: _scale,
    Affine: _affine,
    Activation: _activation,
    Chebyshev: _chebyshev,
    Radial: _radial,
    Sum: _sum,
}
