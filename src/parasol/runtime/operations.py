"""The operations that every fitted map is made of: plain arrays, their values and derivatives with NumPy alone.

`OPERATIONS` lists them, those of expansions.py included. Each has one more entry in delivery/onnx_graph.py, its form in ONNX,
and one in delivery/page/numbers.js, its form in JavaScript.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from parasol.checks import check_choice
from parasol.errors import InputError
from parasol.runtime.expansions import Chebyshev, Radial
from parasol.runtime.operation import Operation, Slopes, check_array, full_slopes, scaled_slopes
from parasol.runtime.plain import Plain

GELU = (math.sqrt(2 / math.pi), 0.044715)  # the usual approximation of x Φ(x) by a tanh


@dataclass(frozen=True, eq=False, repr=False)
class Log(Operation):
    """The natural logarithm of some columns; the others stay as they are."""

    columns: np.ndarray  # (n_columns,) int

    def __post_init__(self):
        check_array(self.columns, 1, "iu", "columns of a logarithm")
        if len(set(self.columns.tolist())) < len(self.columns) or np.min(self.columns, initial=0) < 0:
            raise InputError("the columns of a logarithm must be different and not negative.")

    def n_outputs(self, width: int) -> int:
        """As many as there are."""
        if np.max(self.columns, initial=0) >= width:
            raise InputError(f"a logarithm of column {self.columns.max()} is followed by {width} columns only.")
        return width

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """log x_j for the columns j."""
        out = x.copy()
        for column in self._views:
            np.log(x[:, column], out=out[:, column])
        return out

    @cached_property
    def _views(self) -> list[slice]:
        return [slice(j, j + 1) for j in self.columns.tolist()]

    def forward(self, x: np.ndarray, slopes: Slopes) -> tuple[np.ndarray, Slopes]:
        """1 / x_j for the columns j, and 1 for the others."""
        rise = np.ones_like(x)
        rise[:, self.columns] = 1.0 / x[:, self.columns]
        return self(x), scaled_slopes(slopes, rise)


@dataclass(frozen=True, eq=False, repr=False)
class Scale(Operation):
    """y = (x − shift) · scale + offset, column by column; a shift or offset that is None is zero."""

    scale: np.ndarray  # (width,)
    shift: np.ndarray | None = None
    offset: np.ndarray | None = None

    def __post_init__(self):
        check_array(self.scale, 1, "f", "scale")
        for name in ("shift", "offset"):
            if getattr(self, name) is not None:
                check_array(getattr(self, name), 1, "f", name, self.scale.shape)

    @property
    def n_inputs(self) -> int:
        """One for each scale."""
        return len(self.scale)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """(x − shift) · scale + offset."""
        if self.shift is None:
            out = x * self.scale
        else:
            out = x - self.shift
            out *= self.scale
        if self.offset is not None:
            out += self.offset
        return out

    def forward(self, x: np.ndarray, slopes: Slopes) -> tuple[np.ndarray, Slopes]:
        """The scale."""
        return self(x), scaled_slopes(slopes, np.broadcast_to(self.scale, x.shape))

    @cached_property
    def start(self) -> np.ndarray:
        """What becomes of zero."""
        return self(np.zeros((1, len(self.scale)), self.scale.dtype))[0]

    def into(self, affine: Affine) -> Affine:
        """One operation for this scaling and what follows."""
        weights, start = affine.weights, affine.weights @ self.start
        if affine.is_sparse:
            weights = weights.copy()
            weights.data *= self.scale[weights.indices]
        else:
            weights = weights * self.scale
        return Affine(weights, start if affine.bias is None else affine.bias + start)

    def onto(self, affine: Affine) -> Affine:
        """One operation for what comes before and this scaling."""
        weights = affine.weights
        if affine.is_sparse:
            weights = weights.copy()
            weights.data *= np.repeat(self.scale, np.diff(weights.indptr))
        else:
            weights = self.scale[:, None] * weights
        bias = self.start if affine.bias is None else self(affine.bias[None])[0]
        return Affine(weights, bias)


@dataclass(frozen=True, eq=False, repr=False)
class Affine(Operation):
    """y = W x + b; W is a NumPy array or a `scipy.sparse.csr_array`, which needs SciPy to be evaluated."""

    weights: Any  # (n_out, n_in)
    bias: np.ndarray | None = None  # (n_out,)

    def __post_init__(self):
        if self.is_sparse and getattr(self.weights, "format", None) != "csr":
            raise InputError(
                f"a matrix is a {type(self.weights).__name__}. Use a NumPy array or scipy.sparse.csr_array."
            )
        if self.weights.ndim != 2 or self.weights.dtype.kind != "f":
            raise InputError(f"weights of shape {self.weights.shape} and type {self.weights.dtype} are no matrix.")
        if self.bias is not None:
            check_array(self.bias, 1, "f", "bias", self.weights.shape[:1])

    @cached_property
    def is_sparse(self) -> bool:
        """Whether the matrix is stored as a sparse one, decided without importing SciPy."""
        return not isinstance(self.weights, np.ndarray)

    @property
    def n_inputs(self) -> int:
        """Columns of the matrix."""
        return self.weights.shape[1]

    def n_outputs(self, width: int) -> int:
        """Rows of the matrix."""
        return self.weights.shape[0]

    @property
    def n_numbers(self) -> int:
        """Weights and biases; stored zeros do not count."""
        weights = self.weights.count_nonzero() if self.is_sparse else np.count_nonzero(self.weights)
        return int(weights) + (0 if self.bias is None else int(np.count_nonzero(self.bias)))

    @cached_property
    def _columns(self) -> np.ndarray:
        """The matrix as it is multiplied from the right."""
        return np.ascontiguousarray(self.weights.T)

    @property
    def dense(self) -> np.ndarray:
        """The matrix with its zeros."""
        return self.weights.toarray() if self.is_sparse else self.weights

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """W x + b."""
        # sparse matrices multiply from the left; the transposed results stay as they are, so nothing is copied
        out = (self.weights @ x.T).T if self.is_sparse else x.dot(self._columns)
        if self.bias is not None:
            out += self.bias
        return out

    def forward(self, x: np.ndarray, slopes: Slopes) -> tuple[np.ndarray, Slopes]:
        """W times the slopes of x."""
        if slopes is None:
            out = np.repeat(self.dense.T[:, None], len(x), axis=1)
        elif slopes.ndim == 2:
            out = slopes.T[:, :, None] * self.dense.T[:, None]
        else:
            rows = slopes.reshape(-1, x.shape[1])
            out = (self.weights @ rows.T).T if self.is_sparse else rows.dot(self._columns)
            out = out.reshape(*slopes.shape[:2], -1)
        return self(x), out


@dataclass(frozen=True)
class _Bend:
    """σ(h), into `out` where given, and σ'(h) from h and σ(h)."""

    value: Callable[..., np.ndarray]
    slope: Callable[[np.ndarray, np.ndarray], np.ndarray]


def _sigmoid(h: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + np.tanh(0.5 * h))  # never overflows


def _gelu_gate(h: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + np.tanh(GELU[0] * (h + GELU[1] * h**3)))


def _gelu_slope(h: np.ndarray, _: np.ndarray) -> np.ndarray:
    gate = _gelu_gate(h)
    return gate + 2.0 * h * gate * (1.0 - gate) * GELU[0] * (1.0 + 3 * GELU[1] * h**2)


def _silu_slope(h: np.ndarray, _: np.ndarray) -> np.ndarray:
    s = _sigmoid(h)
    return s * (1.0 + h * (1.0 - s))


BENDS = {
    "relu": _Bend(lambda h, out=None: np.maximum(h, 0.0, out=out), lambda h, _: (h >= 0).astype(h.dtype)),
    "tanh": _Bend(lambda h, out=None: np.tanh(h, out=out), lambda _, y: 1.0 - y * y),
    "silu": _Bend(lambda h, out=None: np.multiply(h, _sigmoid(h), out=out), _silu_slope),
    "gelu": _Bend(lambda h, out=None: np.multiply(h, _gelu_gate(h), out=out), _gelu_slope),
}
ACTIVATIONS = tuple(BENDS)


@dataclass(frozen=True, eq=False, repr=False)
class Activation(Operation):
    """σ of every number, by name; the derivative at the kink of relu is the one from the right."""

    name: str

    def __post_init__(self):
        check_choice(self.name, ACTIVATIONS, "activation")

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """σ(x)."""
        return BENDS[self.name].value(x)

    @property
    def facts(self) -> Plain:
        """Its name."""
        return {"activation": self.name}

    @cached_property
    def in_place(self) -> Callable[[np.ndarray], np.ndarray]:
        """σ(x) in the memory of x."""
        value = BENDS[self.name].value
        return lambda x: value(x, x)

    def forward(self, x: np.ndarray, slopes: Slopes) -> tuple[np.ndarray, Slopes]:
        """σ'(x) times the slopes of x."""
        y = self(x)
        return y, scaled_slopes(slopes, BENDS[self.name].slope(x, y))


@dataclass(frozen=True, eq=False, repr=False)
class Sum(Operation):
    """The sum of what several branches, each a list of operations, make of the same numbers; an empty branch passes them on."""

    branches: tuple[tuple[Operation, ...], ...]

    def __post_init__(self):
        if not self.branches or not all(isinstance(branch, tuple) for branch in self.branches):
            raise InputError("a sum needs branches, each a tuple of operations.")
        check_operations(op for branch in self.branches for op in branch)

    @cached_property
    def n_inputs(self) -> int | None:  # type: ignore[override]
        """What the first branch that minds takes; the others are checked against it."""
        return next((width for width in map(first_width, self.branches) if width is not None), None)

    def n_outputs(self, width: int) -> int:
        """What all branches give."""
        sizes = {last_width(branch, width) for branch in self.branches}
        if len(sizes) > 1:
            raise InputError(f"the branches of a sum give {' and '.join(map(str, sorted(sizes)))} numbers.")
        return sizes.pop()

    @cached_property
    def _steps(self) -> tuple[tuple[Callable, ...], ...]:
        return tuple(steps(branch) for branch in self.branches)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """One branch after the other."""
        first, *others = self._steps
        out = run(first, x) if first else x.copy()
        for branch in others:
            out += run(branch, x)
        return out

    def forward(self, x: np.ndarray, slopes: Slopes) -> tuple[np.ndarray, Slopes]:
        """Sums of the slopes of the branches."""
        y, rise = forward(self.branches[0], x, slopes)
        total = full_slopes(rise, y)
        for branch in self.branches[1:]:
            more, rise = forward(branch, x, slopes)
            y, total = y + more, total + full_slopes(rise, more)
        return y, total


OPERATIONS: tuple[type[Operation], ...] = (Log, Scale, Affine, Activation, Chebyshev, Radial, Sum)


# ---- lists of operations ---------------------------------------------------------------------------------------------
def check_operations(operations: Any) -> None:
    """Refuse what is no operation."""
    for operation in operations:
        if type(operation) not in OPERATIONS:
            raise InputError(f"a {type(operation).__name__} is no operation of a map.")


def first_width(operations: tuple[Operation, ...]) -> int | None:
    """Numbers that a list of operations takes: what comes before the first that minds keeps their number."""
    return next((width for width in (op.n_inputs for op in operations) if width is not None), None)


def last_width(operations: tuple[Operation, ...], width: int) -> int:
    """Numbers that a list of operations gives, after a look whether each one takes what the one before gives."""
    for op in operations:
        if op.n_inputs not in (None, width):
            raise InputError(f"{width} numbers meet a {type(op).__name__} with {op.n_inputs} inputs.")
        width = op.n_outputs(width)
    return width


def widths(operations: tuple[Operation, ...], width: int) -> Iterator[int]:
    """Numbers of values after each operation that may change it, along the first branches."""
    for op in operations:
        if isinstance(op, Sum):
            yield from widths(op.branches[0], width)
        elif isinstance(op, Affine | Chebyshev | Radial):
            yield op.n_outputs(width)
        width = op.n_outputs(width)


def flat(operations: tuple[Operation, ...]) -> Iterator[Operation]:
    """All operations, those of branches included."""
    for op in operations:
        yield op
        for branch in getattr(op, "branches", ()):
            yield from flat(branch)


def steps(operations: tuple[Operation, ...]) -> tuple[Callable[[np.ndarray], np.ndarray], ...]:
    """The functions that compute a list of operations; what is not the first has its numbers for itself."""
    return tuple(op.in_place if i and isinstance(op, Activation) else op for i, op in enumerate(operations))


def run(functions: tuple[Callable[[np.ndarray], np.ndarray], ...], x: np.ndarray) -> np.ndarray:
    """One after the other."""
    for function in functions:
        x = function(x)
    return x


def forward(operations: tuple[Operation, ...], x: np.ndarray, slopes: Slopes = None) -> tuple[np.ndarray, Slopes]:
    """Values and slopes after all of the operations."""
    for op in operations:
        x, slopes = op.forward(x, slopes)
    return x, slopes


def jacobian(operations: tuple[Operation, ...], x: np.ndarray) -> np.ndarray:
    """Derivatives (n, n_outputs, n_inputs)."""
    y, slopes = forward(operations, x)
    return np.ascontiguousarray(full_slopes(slopes, y).transpose(1, 2, 0))
