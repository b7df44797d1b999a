"""An ONNX graph while it is written: operations in order, and the constants they need."""

from __future__ import annotations

from typing import Any

import numpy as np

from parasol.checks import ParasolError
from parasol.surrogate.process import MOST_LENGTHS

_OPSET = 17  # ONNX Runtime 1.12 and later
_IR_VERSION = 8
_SQRT3, _SQRT5 = np.sqrt(3.0), np.sqrt(5.0)
_GELU = (np.sqrt(2 / np.pi), 0.044715)  # as in networks/network.py


def require_onnx() -> Any:
    """The package onnx, or advice how to install it."""
    try:
        import onnx
        import onnx.checker
        import onnx.numpy_helper
    except ImportError:
        raise ParasolError("an export needs onnx. Install it with: pip install 'parasol-pde[onnx]'.") from None
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

    def affine(self, x: str, shift: np.ndarray, scale: np.ndarray) -> str:
        """(x − shift) · scale.

        One number is multiplied as a matrix: ONNX Runtime would fuse a factor into the next product, in single precision.
        """
        centred = self.add("Sub", x, shift)
        return self.add("MatMul", centred, scale[:, None]) if len(scale) == 1 else self.add("Mul", centred, scale)

    def activation(self, name: str, h: str) -> str:
        """σ(h), composed as networks/network.py does."""
        if name in ("relu", "tanh"):
            return self.add(name.capitalize(), h)
        if name == "silu":
            inner = self.add("Mul", h, 0.5)
        else:
            cube = self.add("Mul", self.add("Mul", h, h), h)
            inner = self.add("Mul", self.add("Add", h, self.add("Mul", cube, _GELU[1])), _GELU[0])
        half = self.add("Mul", self.add("Add", self.add("Tanh", inner), 1.0), 0.5)
        return self.add("Mul", h, half)

    def squared_distances(self, a: str, centres: np.ndarray) -> str:
        """|a − z|², (n, m), of rows a (n, p) and centres (m, p); differences first where inputs are few."""
        p = centres.shape[1]
        if p > MOST_LENGTHS:
            mine = self.add("MatMul", self.add("Mul", a, a), np.ones((p, 1)))
            cross = self.add("MatMul", a, -2.0 * centres.T)
            total = self.add("Add", self.add("Add", mine, cross), np.sum(centres**2, axis=1))
            return self.add("Relu", total)
        total = None
        for i in range(p):
            column = self.add("Gather", a, np.array([i], dtype=np.int64), axis=1)
            gap = self.add("Sub", column, centres[:, i])
            square = self.add("Mul", gap, gap)
            total = square if total is None else self.add("Add", total, square)
        assert total is not None
        return total

    def kernel(self, name: str, s: str) -> str:
        """k of squared distances, by the names of surrogate/process.py."""
        if name == "gaussian":
            return self.add("Exp", self.add("Mul", s, -0.5))
        if name == "inverse multiquadric":
            return self.add("Reciprocal", self.add("Sqrt", self.add("Add", s, 1.0)))
        if name not in ("matern32", "matern52"):
            raise ParasolError(f"a Gaussian process with the kernel {name!r} cannot be exported. Fit another recipe.")
        r = self.add("Mul", self.add("Sqrt", s), _SQRT5 if name == "matern52" else _SQRT3)
        factor = self.add("Add", r, 1.0)
        if name == "matern52":
            factor = self.add("Add", factor, self.add("Mul", self.add("Mul", r, r), 1.0 / 3.0))
        return self.add("Mul", factor, self.add("Exp", self.add("Neg", r)))

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
