"""The operations that every fitted map is made of: plain arrays, their values and derivatives with NumPy alone.

An operation turns numbers (n, width) into numbers (n, other width). Its derivative is carried forward: `slopes` are those of
its input by the inputs of the whole map, (n_map_inputs, n, width), or (n, width) where each number depends on its own input
only, or None where it is that input. The forms of the same operations in ONNX and in JavaScript are in
delivery/onnx_graph.py and delivery/page/numbers.js, one entry for each class here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from parasol.checks import ParasolError, check_choice

MOST_LENGTHS = 12  # more inputs than this share one length scale of a kernel
_HIGHEST = 10_000  # degree of a polynomial
_SQRT3, _SQRT5 = math.sqrt(3.0), math.sqrt(5.0)
GELU = (math.sqrt(2 / math.pi), 0.044715)  # the usual approximation of x Φ(x) by a tanh
Slopes = np.ndarray | None


class Operation:
    """One step of a program; a new kind is a dataclass of arrays, texts and branches with these methods."""

    @property
    def n_inputs(self) -> int | None:
        """Numbers it takes; None where it takes any."""
        return None

    def n_outputs(self, width: int) -> int:
        """Numbers it gives for `width` numbers that it takes."""
        return width

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Values (n, n_outputs) of (n, n_inputs), in a new array."""
        raise NotImplementedError

    def forward(self, x: np.ndarray, slopes: Slopes) -> tuple[np.ndarray, Slopes]:
        """Values, and derivatives by the inputs of the map from those of x."""
        raise NotImplementedError

    @property
    def n_numbers(self) -> int:
        """How many weights and the like it has that are not zero; scalings do not count."""
        return 0

    @property
    def facts(self) -> dict[str, Any]:
        """What people may want to know of it, as plain values."""
        return {}

    def astype(self, dtype) -> Operation:
        """The same operation with numbers of another type."""
        changed = {f.name: _cast(getattr(self, f.name), dtype) for f in fields(self)}  # type: ignore[arg-type]
        return replace(self, **changed)  # type: ignore[type-var]


@dataclass(frozen=True, eq=False, repr=False)
class Log(Operation):
    """The natural logarithm of some columns; the others stay as they are."""

    columns: np.ndarray  # (n_columns,) int

    def __post_init__(self):
        _check(self.columns, 1, "iu", "columns of a logarithm")
        if len(np.unique(self.columns)) < len(self.columns) or np.min(self.columns, initial=0) < 0:
            raise ParasolError("the columns of a logarithm must be different and not negative.")

    def n_outputs(self, width: int) -> int:
        """As many as there are."""
        if np.max(self.columns, initial=0) >= width:
            raise ParasolError(f"a logarithm of column {self.columns.max()} is followed by {width} columns only.")
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
        return self(x), _scaled(slopes, rise)


@dataclass(frozen=True, eq=False, repr=False)
class Scale(Operation):
    """y = (x − shift) · scale + offset, column by column; a shift or offset that is None is zero."""

    scale: np.ndarray  # (width,)
    shift: np.ndarray | None = None
    offset: np.ndarray | None = None

    def __post_init__(self):
        _check(self.scale, 1, "f", "scale")
        for name in ("shift", "offset"):
            if getattr(self, name) is not None:
                _check(getattr(self, name), 1, "f", name, self.scale.shape)

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
        return self(x), _scaled(slopes, np.broadcast_to(self.scale, x.shape))

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
            raise ParasolError(
                f"a matrix is a {type(self.weights).__name__}. Use a NumPy array or scipy.sparse.csr_array."
            )
        if self.weights.ndim != 2 or self.weights.dtype.kind != "f":
            raise ParasolError(f"weights of shape {self.weights.shape} and type {self.weights.dtype} are no matrix.")
        if self.bias is not None:
            _check(self.bias, 1, "f", "bias", self.weights.shape[:1])

    @cached_property
    def is_sparse(self) -> bool:
        """Whether the matrix is stored as a sparse one; told without importing SciPy."""
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
    def facts(self) -> dict[str, Any]:
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
        return y, _scaled(slopes, BENDS[self.name].slope(x, y))


@dataclass(frozen=True, eq=False, repr=False)
class Chebyshev(Operation):
    """Products of Chebyshev polynomials, y_t = Π_i T_{k_ti}(x_i), for degrees k given as whole numbers.

    >>> Chebyshev(np.array([[0, 0], [1, 0], [2, 1]]))(np.array([[0.5, 3.0]]))
    array([[ 1. ,  0.5, -1.5]])
    """

    indices: np.ndarray  # (n_terms, p)

    def __post_init__(self):
        _check(self.indices, 2, "iu", "degrees of a polynomial")
        if not self.indices.size or self.indices.min() < 0:
            raise ParasolError("the degrees of a polynomial must be whole numbers that are not negative.")
        if self.indices.max() > _HIGHEST:
            raise ParasolError(f"a polynomial of degree {self.indices.max()} is too high. Allowed is {_HIGHEST}.")

    @property
    def n_inputs(self) -> int:
        """One for each column of the degrees."""
        return self.indices.shape[1]

    def n_outputs(self, width: int) -> int:
        """One for each term."""
        return len(self.indices)

    @property
    def facts(self) -> dict[str, Any]:
        """Its size."""
        return {"n_terms": len(self.indices), "degree": int(self.indices.sum(axis=1).max())}

    @cached_property
    def _plan(self) -> tuple[np.ndarray, list[int], list[np.ndarray]]:
        """Inputs that occur, the highest degrees first; how many have T_1, T_2, …; for each the rows its factors are in.

        The table of all T_k has a row of ones, then T_1 of all these inputs, then T_2 of those that have it, and so on.
        """
        degrees = self.indices.max(axis=0)
        inputs = np.argsort(-degrees, kind="stable")[: np.count_nonzero(degrees)]
        counts = [int(np.count_nonzero(degrees >= k)) for k in range(1, int(degrees.max()) + 1)]
        starts = np.cumsum([0, 1, *counts])[:-1]
        rows = [np.where(self.indices[:, i], starts[self.indices[:, i]] + j, 0) for j, i in enumerate(inputs)]
        return inputs, counts, rows

    def _table(self, x: np.ndarray, *, slopes: bool = False) -> tuple[np.ndarray, np.ndarray | None]:
        """All T_k(x_i) that occur, (n_rows, n), and their derivatives, by T_{k+1} = 2 x T_k − T_{k−1}."""
        inputs, counts, _ = self._plan
        t = x.T[inputs]
        one = np.ones((1, len(x)), x.dtype)
        values: list[Any] = [one, t] if counts else [one]
        rises: list[Any] = [0.0 * one, np.ones_like(t)] if counts else [0.0 * one]
        twice, now, before, rise, earlier = 2.0 * t, t, 1.0, rises[-1], np.zeros_like(t)
        for k, count in enumerate(counts[1:]):
            if count < counts[k]:
                twice, now, rise, earlier = twice[:count], now[:count], rise[:count], earlier[:count]
                before = before if k == 0 else before[:count]  # type: ignore[index]
            if slopes:
                rise, earlier = 2.0 * now + twice * rise - earlier, rise
                rises.append(rise)
            now, before = twice * now - before, now
            values.append(now)
        return np.concatenate(values), np.concatenate(rises) if slopes else None

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """All the products."""
        table, rows = self._table(x)[0], self._plan[2]
        if not rows:
            return np.ones((len(x), len(self.indices)), x.dtype)
        out = table[rows[0]]
        for row in rows[1:]:
            out *= table[row]
        return out.T

    def _partials(self, x: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Derivatives by each input that occurs: its number and (n, n_terms)."""
        table, rises = self._table(x, slopes=True)
        inputs, _, rows = self._plan
        assert rises is not None
        for i, mine in zip(inputs, rows, strict=True):
            out = rises[mine]
            for row in rows:
                if row is not mine:
                    out *= table[row]
            yield int(i), out.T

    def forward(self, x: np.ndarray, slopes: Slopes) -> tuple[np.ndarray, Slopes]:
        """One derivative for each input, as it depends on the inputs of the map."""
        return self(x), _chained(slopes, self._partials(x), x, len(self.indices))


@dataclass(frozen=True)
class RadialKernel:
    """k and dk/ds as functions of s = Σ ((x_i − z_i) / ℓ_i)²."""

    value: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]


def _matern52(s):
    r = _SQRT5 * np.sqrt(s)
    return (1.0 + r + r * r / 3.0) * np.exp(-r)


def _matern52_slope(s):
    r = _SQRT5 * np.sqrt(s)
    return -5.0 / 6.0 * (1.0 + r) * np.exp(-r)


KERNELS = {
    "gaussian": RadialKernel(lambda s: np.exp(-0.5 * s), lambda s: -0.5 * np.exp(-0.5 * s)),
    "inverse multiquadric": RadialKernel(lambda s: (1.0 + s) ** -0.5, lambda s: -0.5 * (1.0 + s) ** -1.5),
    "matern52": RadialKernel(_matern52, _matern52_slope),
    "matern32": RadialKernel(
        lambda s: (1.0 + _SQRT3 * np.sqrt(s)) * np.exp(-_SQRT3 * np.sqrt(s)),
        lambda s: -1.5 * np.exp(-_SQRT3 * np.sqrt(s)),
    ),
}


@dataclass(frozen=True, eq=False, repr=False)
class Radial(Operation):
    """y_j = k(Σ_i ((x_i − z_ji) / ℓ_i)²) of centres z and lengths ℓ, with a kernel by name."""

    name: str
    centres: np.ndarray  # (n_centres, p)
    lengths: np.ndarray  # (p,)

    def __post_init__(self):
        check_choice(self.name, tuple(KERNELS), "kernel")
        _check(self.centres, 2, "f", "centres")
        _check(self.lengths, 1, "f", "lengths", self.centres.shape[1:])
        if not np.all(self.lengths > 0):
            raise ParasolError("the lengths of a kernel must be positive.")

    @property
    def n_inputs(self) -> int:
        """One for each length."""
        return len(self.lengths)

    def n_outputs(self, width: int) -> int:
        """One for each centre."""
        return len(self.centres)

    @property
    def facts(self) -> dict[str, Any]:
        """Its name and size."""
        return {"n_centres": len(self.centres), "kernel": self.name}

    @property
    def n_numbers(self) -> int:
        """Coordinates of the centres."""
        return self.centres.size

    @cached_property
    def _scaled(self) -> np.ndarray:
        return self.centres / self.lengths

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """k at all centres."""
        return KERNELS[self.name].value(distances(x / self.lengths, self._scaled))

    def forward(self, x: np.ndarray, slopes: Slopes) -> tuple[np.ndarray, Slopes]:
        """One derivative for each input, as it depends on the inputs of the map."""
        s = distances(x / self.lengths, self._scaled)
        g = 2.0 * KERNELS[self.name].slope(s)
        partials = (
            (i, g * ((x[:, i, None] - self.centres[:, i]) / length**2)) for i, length in enumerate(self.lengths)
        )
        return KERNELS[self.name].value(s), _chained(slopes, partials, x, len(self.centres))


def distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Squared distances (n, m), without the cancellation of |a|² − 2ab + |b|² where columns are few."""
    if a.shape[1] > MOST_LENGTHS:
        out = np.sum(a**2, axis=1)[:, None] - 2.0 * (a @ b.T) + np.sum(b**2, axis=1)
        return np.maximum(out, 0.0)
    out = a[:, :1] - b[:, 0]
    out *= out
    for i in range(1, a.shape[1]):
        gap = a[:, i : i + 1] - b[:, i]
        gap *= gap
        out += gap
    return out


@dataclass(frozen=True, eq=False, repr=False)
class Sum(Operation):
    """The sum of what several branches, each a list of operations, make of the same numbers; an empty branch passes them on."""

    branches: tuple[tuple[Operation, ...], ...]

    def __post_init__(self):
        if not self.branches or not all(isinstance(branch, tuple) for branch in self.branches):
            raise ParasolError("a sum needs branches, each a tuple of operations.")
        check_operations(op for branch in self.branches for op in branch)

    @cached_property
    def n_inputs(self) -> int | None:  # type: ignore[override]
        """What the first branch that minds takes; the others are checked against it."""
        return next((width for width in map(first_width, self.branches) if width is not None), None)

    def n_outputs(self, width: int) -> int:
        """What all branches give."""
        found = {last_width(branch, width) for branch in self.branches}
        if len(found) > 1:
            raise ParasolError(f"the branches of a sum give {' and '.join(map(str, sorted(found)))} numbers.")
        return found.pop()

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
        total = _full(rise, y)
        for branch in self.branches[1:]:
            more, rise = forward(branch, x, slopes)
            y, total = y + more, total + _full(rise, more)
        return y, total


OPERATIONS: tuple[type[Operation], ...] = (Log, Scale, Affine, Activation, Chebyshev, Radial, Sum)


# ---- lists of operations ---------------------------------------------------------------------------------------------
def check_operations(operations) -> None:
    """Refuse what is no operation."""
    for operation in operations:
        if type(operation) not in OPERATIONS:
            raise ParasolError(f"a {type(operation).__name__} is no operation of a map.")


def first_width(operations: tuple[Operation, ...]) -> int | None:
    """Numbers that a list of operations takes: what comes before the first that minds keeps their number."""
    return next((width for width in (op.n_inputs for op in operations) if width is not None), None)


def last_width(operations: tuple[Operation, ...], width: int) -> int:
    """Numbers that a list of operations gives, after a look whether each one takes what the one before gives."""
    for op in operations:
        if op.n_inputs not in (None, width):
            raise ParasolError(f"{width} numbers meet a {type(op).__name__} with {op.n_inputs} inputs.")
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
    return np.ascontiguousarray(_full(slopes, y).transpose(1, 2, 0))


def _scaled(slopes: Slopes, rise: np.ndarray) -> np.ndarray:
    return rise if slopes is None else slopes * rise


def _full(slopes: Slopes, x: np.ndarray) -> np.ndarray:
    """Slopes of all numbers by all inputs, (n_inputs, n, width), zeros included."""
    if slopes is not None and slopes.ndim == 3:
        return slopes
    out = np.zeros((x.shape[1], *x.shape), x.dtype)
    every = np.arange(x.shape[1])
    out[every, :, every] = 1.0 if slopes is None else slopes.T
    return out


def _chained(slopes: Slopes, partials: Iterator[tuple[int, np.ndarray]], x: np.ndarray, width: int) -> np.ndarray:
    """The chain rule for an operation known by its derivatives (n, width) by some of its inputs."""
    out = np.zeros((x.shape[1] if slopes is None or slopes.ndim == 2 else len(slopes), len(x), width), x.dtype)
    for i, partial in partials:
        if slopes is None:
            out[i] = partial
        elif slopes.ndim == 2:
            out[i] = partial * slopes[:, i, None]
        else:
            out += slopes[:, :, i, None] * partial
    return out


def _cast(value: Any, dtype) -> Any:
    if isinstance(value, Operation):
        return value.astype(dtype)
    if isinstance(value, tuple):
        return tuple(_cast(item, dtype) for item in value)
    return value.astype(dtype, copy=False) if getattr(getattr(value, "dtype", None), "kind", "") == "f" else value


def _check(value: Any, ndim: int, kinds: str, name: str, shape: tuple[int, ...] | None = None) -> None:
    """Refuse what is no array of numbers of these kinds, or has another shape."""
    if not isinstance(value, np.ndarray) or value.ndim != ndim or value.dtype.kind not in kinds:
        got = f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
        raise ParasolError(
            f"the {name} must be an array of {ndim} axes of {'real' if kinds == 'f' else 'whole'} numbers, got {got}."
        )
    if shape is not None and value.shape != shape:
        raise ParasolError(f"the {name} must have shape {shape}, got {value.shape}.")
