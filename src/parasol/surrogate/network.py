"""A network is plain data: matrices, vectors, the name of an activation; NumPy evaluates it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from parasol.checks import ParasolError, check_choice, check_shape

ACTIVATIONS = ("relu", "tanh", "silu", "gelu")
BLOCK_NUMBERS = 2**21  # numbers in one layer's values of a block of samples through sparse layers: 16 MB


@dataclass(frozen=True, eq=False, repr=False)
class Network:
    """y = shift + scale · (W_L h_{L−1} + b_L + S x),  h_l = σ(W_l h_{l−1} + b_l),  h_0 = x = (input − shift) · scale.

    S is the linear path, absent where `skip` is None. Scalings left out are the identity. All arrays have one type.
    A matrix is a NumPy array or a `scipy.sparse.csr_array`: networks built by hand are mostly zeros.

    >>> double = Network((np.array([[1.0], [-1.0]]), np.array([[2.0, -2.0]])), (np.zeros(2), np.zeros(1)), "relu")
    >>> double([[3.0], [-1.0]])
    array([[ 6.],
           [-2.]])
    >>> double.depth, double.n_weights, double.widths
    (2, 4, (1, 2, 1))
    """

    weights: tuple[Any, ...]  # (n_out, n_in) each, arrays or csr_array
    biases: tuple[np.ndarray, ...]  # (n_out,) each
    activation: str
    skip: np.ndarray | None = None  # (n_outputs, n_inputs)
    input_shift: np.ndarray = field(default=None)  # type: ignore[assignment]  # (n_inputs,)
    input_scale: np.ndarray = field(default=None)  # type: ignore[assignment]
    output_shift: np.ndarray = field(default=None)  # type: ignore[assignment]  # (n_outputs,)
    output_scale: np.ndarray = field(default=None)  # type: ignore[assignment]

    def __post_init__(self):
        check_choice(self.activation, ACTIVATIONS, "activation")
        if not self.weights or len(self.weights) != len(self.biases):
            raise ParasolError(f"{len(self.weights)} matrices and {len(self.biases)} biases: a layer has one of each.")
        for w in self.weights:
            if _is_sparse(w) and getattr(w, "format", None) != "csr":
                raise ParasolError(f"a matrix is a {type(w).__name__}. Use a NumPy array or scipy.sparse.csr_array.")
        for before, after in zip(self.weights[:-1], self.weights[1:], strict=True):
            if after.shape[1] != before.shape[0]:
                raise ParasolError(
                    f"a layer with {before.shape[0]} outputs is followed by one with {after.shape[1]} inputs."
                )
        for w, b in zip(self.weights, self.biases, strict=True):
            if b.shape != (w.shape[0],):
                raise ParasolError(f"a layer with {w.shape[0]} outputs has biases of shape {b.shape}.")
        if self.skip is not None and self.skip.shape != (self.n_outputs, self.n_inputs):
            raise ParasolError(f"skip has shape {self.skip.shape}, expected {(self.n_outputs, self.n_inputs)}.")
        for name, length in (("input", self.n_inputs), ("output", self.n_outputs)):
            for what, neutral in (("shift", 0.0), ("scale", 1.0)):
                given = getattr(self, f"{name}_{what}")
                value = np.full(length, neutral, self.dtype) if given is None else np.asarray(given, dtype=self.dtype)
                if value.shape != (length,):
                    raise ParasolError(f"{name}_{what} has shape {value.shape}, expected ({length},).")
                object.__setattr__(self, f"{name}_{what}", value)

    def __repr__(self) -> str:
        widths = "-".join(str(width) for width in self.widths)
        return f"<Network {widths} {self.activation}, {self.n_weights} weights, {self.dtype}>"

    @property
    def dtype(self) -> np.dtype:
        """The type of all its numbers."""
        return self.weights[0].dtype

    @property
    def n_inputs(self) -> int:
        """Length of an input."""
        return self.weights[0].shape[1]

    @property
    def n_outputs(self) -> int:
        """Length of an output."""
        return self.weights[-1].shape[0]

    @property
    def widths(self) -> tuple[int, ...]:
        """Numbers of neurons, inputs and outputs included."""
        return (self.n_inputs, *[w.shape[0] for w in self.weights])

    @property
    def depth(self) -> int:
        """L, the number of layers, the last (affine) one included."""
        return len(self.weights)

    @property
    def n_weights(self) -> int:
        """M, the number of weights and biases that are not zero, those of the linear path included."""
        return sum(self.layer_weights) + (0 if self.skip is None else int(np.count_nonzero(self.skip)))

    @property
    def layer_weights(self) -> tuple[int, ...]:
        """M_1, …, M_L, the numbers of weights and biases of each layer that are not zero; stored zeros do not count."""
        return tuple(_count(w) + int(np.count_nonzero(b)) for w, b in zip(self.weights, self.biases, strict=True))

    @cached_property
    def is_sparse(self) -> bool:
        """Whether some matrix is stored as a sparse one; evaluating it then needs SciPy."""
        return any(_is_sparse(w) for w in self.weights)

    @property
    def n_bytes(self) -> int:
        """Bytes its matrices and biases take in memory; what several layers share is counted once."""
        arrays = [*self.biases, *([] if self.skip is None else [self.skip])]
        for w in self.weights:
            arrays += [w.data, w.indices, w.indptr] if _is_sparse(w) else [w]
        return sum(a.nbytes for a in {id(a): a for a in arrays}.values())

    def astype(self, dtype) -> Network:
        """The same network with numbers of another type."""
        names = ("input_shift", "input_scale", "output_shift", "output_scale")
        return replace(
            self,
            weights=tuple(w.astype(dtype) for w in self.weights),
            biases=tuple(b.astype(dtype) for b in self.biases),
            skip=None if self.skip is None else self.skip.astype(dtype),
            **{name: getattr(self, name).astype(dtype) for name in names},
        )

    def folded(self) -> Network:
        """The same map with the scalings multiplied into the layers: fewer passes over the numbers.

        >>> net = Network((np.array([[2.0]]),), (np.array([1.0]),), "relu", input_shift=[3.0], output_scale=[10.0])
        >>> net([[4.0]]), net.folded()([[4.0]]), net.folded().weights[0]
        (array([[30.]]), array([[30.]]), array([[20.]]))
        """
        if self._plain:
            return self
        weights, biases = list(self.weights), list(self.biases)
        shift, scale = self.input_shift * self.input_scale, self.output_scale[:, None]
        biases[0] = biases[0] - weights[0] @ shift
        weights[0] = _scale_columns(weights[0], self.input_scale)
        skip = None if self.skip is None else scale * self.skip * self.input_scale
        if self.skip is not None:
            biases[-1] = biases[-1] - self.skip @ shift
        weights[-1] = _scale_rows(weights[-1], self.output_scale)
        biases[-1] = self.output_scale * biases[-1] + self.output_shift
        return Network(tuple(weights), tuple(biases), self.activation, skip)

    @cached_property
    def _plain(self) -> bool:
        """Whether there is nothing to scale."""
        shifts, scales = (self.input_shift, self.output_shift), (self.input_scale, self.output_scale)
        return not any(np.any(a) for a in shifts) and all(np.all(a == 1) for a in scales)

    @cached_property
    def _columns(self) -> tuple[np.ndarray, ...]:
        """The matrices as they are multiplied from the right."""
        return tuple(np.ascontiguousarray(w.T) for w in self.weights)

    def __call__(self, inputs) -> np.ndarray:
        """Outputs (n, n_outputs) of inputs (n, n_inputs)."""
        x = self._scaled(inputs)
        if self.is_sparse:
            return self._in_blocks(x, self._sparse_values, 1)
        h = x
        for w, b in zip(self._columns[:-1], self.biases[:-1], strict=True):
            h = h @ w
            h += b
            _apply(self.activation, h)
        out = h @ self._columns[-1]
        out += self.biases[-1]
        return self._finished(out, x)

    def _finished(self, out: np.ndarray, x: np.ndarray) -> np.ndarray:
        """The linear path added and the scaling undone, in place."""
        if self.skip is not None:
            out += x @ self.skip.T
        if not self._plain:
            out *= self.output_scale
            out += self.output_shift
        return out

    def _sparse_values(self, x: np.ndarray) -> np.ndarray:
        h = np.ascontiguousarray(x.T)  # sparse matrices multiply from the left, many columns at once
        for w, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            h = w @ h
            h += b[:, None]
            _apply(self.activation, h)
        out = self.weights[-1] @ h
        out += self.biases[-1][:, None]
        return self._finished(np.ascontiguousarray(out.T), x)

    def _sparse_jacobian(self, x: np.ndarray) -> np.ndarray:
        n, p = x.shape
        h, slope = np.ascontiguousarray(x.T), np.repeat(np.eye(p, dtype=self.dtype)[:, None], n, axis=1)
        for w, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
            h = w @ h + b[:, None]
            slope = (w @ slope.reshape(-1, n * p)).reshape(-1, n, p)
            slope *= _slope(self.activation, h)[:, :, None]
            _apply(self.activation, h)
        out = (self.weights[-1] @ slope.reshape(-1, n * p)).reshape(-1, n, p)
        return out.transpose(1, 0, 2)

    def _in_blocks(self, x: np.ndarray, evaluate: Callable[[np.ndarray], np.ndarray], n_columns: int) -> np.ndarray:
        """Results of blocks of samples small enough for the widest layer, one after the other."""
        step = max(1, BLOCK_NUMBERS // (max(self.widths) * n_columns))
        return np.concatenate([evaluate(x[i : i + step]) for i in range(0, max(len(x), 1), step)])

    def jacobian(self, inputs) -> np.ndarray:
        """Derivatives (n, n_outputs, n_inputs) of the outputs by the inputs; at kinks of relu the one from the right."""
        x = self._scaled(inputs)
        if self.is_sparse:
            out = self._in_blocks(x, self._sparse_jacobian, self.n_inputs)
        else:
            h, slope = x, None
            for w, b in zip(self.weights[:-1], self.biases[:-1], strict=True):
                h = h @ w.T + b
                rise = _slope(self.activation, h)[:, :, None]
                slope = rise * (w if slope is None else w @ slope)
                _apply(self.activation, h)
            w = self.weights[-1]
            out = np.broadcast_to(w, (len(x), *w.shape)) if slope is None else w @ slope
        if self.skip is not None:
            out = out + self.skip
        return self.output_scale[:, None] * out * self.input_scale

    def _scaled(self, inputs) -> np.ndarray:
        inputs = np.asarray(inputs)
        if inputs.ndim != 2 or inputs.shape[1] != self.n_inputs:
            check_shape(inputs, (None, self.n_inputs), "inputs")
        inputs = inputs.astype(self.dtype, copy=False)
        return inputs if self._plain else (inputs - self.input_shift) * self.input_scale


def _is_sparse(matrix) -> bool:
    """Whether a matrix is a sparse one, told without importing SciPy: dense networks need NumPy alone."""
    return not isinstance(matrix, np.ndarray)


def _count(matrix) -> int:
    """Entries that are not zero, whether stored or not."""
    return int(matrix.count_nonzero()) if _is_sparse(matrix) else int(np.count_nonzero(matrix))


def _scale_rows(matrix, factors: np.ndarray):
    """diag(factors) · matrix."""
    if not _is_sparse(matrix):
        return factors[:, None] * matrix
    out = matrix.copy()
    out.data *= np.repeat(factors, np.diff(out.indptr))
    return out


def _scale_columns(matrix, factors: np.ndarray):
    """matrix · diag(factors)."""
    if not _is_sparse(matrix):
        return matrix * factors
    out = matrix.copy()
    out.data *= factors[out.indices]
    return out


def _apply(activation: str, h: np.ndarray) -> None:
    """σ(h), in place."""
    if activation == "relu":
        np.maximum(h, 0.0, out=h)
    elif activation == "tanh":
        np.tanh(h, out=h)
    elif activation == "silu":
        h *= _sigmoid(h)
    else:
        h *= 0.5 * (1.0 + np.tanh(_GELU[0] * (h + _GELU[1] * h**3)))


def _slope(activation: str, h: np.ndarray) -> np.ndarray:
    """σ'(h)."""
    if activation == "relu":
        return (h >= 0).astype(h.dtype)
    if activation == "tanh":
        return 1.0 - np.tanh(h) ** 2
    if activation == "silu":
        s = _sigmoid(h)
        return s * (1.0 + h * (1.0 - s))
    t = np.tanh(_GELU[0] * (h + _GELU[1] * h**3))
    return 0.5 * (1.0 + t) + 0.5 * h * (1.0 - t**2) * _GELU[0] * (1.0 + 3 * _GELU[1] * h**2)


_GELU = (np.sqrt(2 / np.pi), 0.044715)  # the usual approximation of x Φ(x) by a tanh
_sigmoid: Callable[[np.ndarray], np.ndarray] = lambda h: 0.5 * (1.0 + np.tanh(0.5 * h))  # noqa: E731  never overflows
