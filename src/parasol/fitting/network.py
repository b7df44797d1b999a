"""A network is plain data: matrices, vectors, the name of an activation; its program evaluates it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from parasol.checks import check_choice
from parasol.errors import InputError
from parasol.runtime.operation import Operation
from parasol.runtime.operations import ACTIVATIONS, Activation, Affine, Scale, Sum
from parasol.runtime.program import Program, ProgramMap


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
            raise InputError(f"{len(self.weights)} matrices and {len(self.biases)} biases: a layer has one of each.")
        for w in self.weights:
            if _is_sparse(w) and getattr(w, "format", None) != "csr":
                raise InputError(f"a matrix is a {type(w).__name__}. Use a NumPy array or scipy.sparse.csr_array.")
        for before, after in zip(self.weights[:-1], self.weights[1:], strict=True):
            if after.shape[1] != before.shape[0]:
                raise InputError(
                    f"a layer with {before.shape[0]} outputs is followed by one with {after.shape[1]} inputs."
                )
        for w, b in zip(self.weights, self.biases, strict=True):
            if b.shape != (w.shape[0],):
                raise InputError(f"a layer with {w.shape[0]} outputs has biases of shape {b.shape}.")
        if self.skip is not None and self.skip.shape != (self.n_outputs, self.n_inputs):
            raise InputError(f"skip has shape {self.skip.shape}, expected {(self.n_outputs, self.n_inputs)}.")
        for name, length in (("input", self.n_inputs), ("output", self.n_outputs)):
            for what, neutral in (("shift", 0.0), ("scale", 1.0)):
                given = getattr(self, f"{name}_{what}")
                value = np.full(length, neutral, self.dtype) if given is None else np.asarray(given, dtype=self.dtype)
                if value.shape != (length,):
                    raise InputError(f"{name}_{what} has shape {value.shape}, expected ({length},).")
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
        return tuple(Affine(w, b).n_numbers for w, b in zip(self.weights, self.biases, strict=True))

    @property
    def is_sparse(self) -> bool:
        """Whether some matrix is stored as a sparse one; evaluating it then needs SciPy."""
        return self.program.is_sparse

    @property
    def n_bytes(self) -> int:
        """Bytes its matrices and biases take in memory; what several layers share is counted once."""
        arrays = [*self.biases, *([] if self.skip is None else [self.skip])]
        for w in self.weights:
            arrays += [w.data, w.indices, w.indptr] if _is_sparse(w) else [w]
        return sum(a.nbytes for a in {id(a): a for a in arrays}.values())

    def astype(self, dtype: DTypeLike) -> Network:
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
        """The same map with the scalings multiplied into the layers.

        >>> net = Network((np.array([[2.0]]),), (np.array([1.0]),), "relu", input_shift=[3.0], output_scale=[10.0])
        >>> net([[4.0]]), net.folded()([[4.0]]), net.folded().weights[0]
        (array([[30.]]), array([[30.]]), array([[20.]]))
        """
        before, after = self._scalings
        if before is None and after is None:
            return self
        weights: list[Any] = list(self.weights)
        biases: list[Any] = list(self.biases)
        skip = None if self.skip is None else Affine(self.skip)
        if before is not None:
            first = before.into(Affine(weights[0], biases[0]))
            weights[0], biases[0] = first.weights, first.bias
            skip = skip and before.into(skip)
        if skip is not None and skip.bias is not None:
            biases[-1] = biases[-1] + skip.bias
        if after is not None:
            last = after.onto(Affine(weights[-1], biases[-1]))
            weights[-1], biases[-1] = last.weights, last.bias
            skip = skip and Scale(after.scale).onto(skip)
        return Network(tuple(weights), tuple(biases), self.activation, skip and skip.weights)

    @cached_property
    def _scalings(self) -> tuple[Scale | None, Scale | None]:
        """Those of inputs and outputs, where there is something to scale."""
        before = Scale(self.input_scale, self.input_shift)
        after = Scale(self.output_scale, None, self.output_shift)
        return (
            before if np.any(self.input_shift) or np.any(self.input_scale != 1) else None,
            after if np.any(self.output_shift) or np.any(self.output_scale != 1) else None,
        )

    @cached_property
    def program(self) -> Program:
        """Its operations."""
        layers: list[Operation] = []
        for w, b in zip(self.weights, self.biases, strict=True):
            layers += [Affine(w, b), Activation(self.activation)]
        body = tuple(layers[:-1])
        before, after = self._scalings
        return Program(
            (
                *(() if before is None else (before,)),
                *(body if self.skip is None else (Sum((body, (Affine(self.skip),))),)),
                *(() if after is None else (after,)),
            )
        )

    def __call__(self, inputs: ArrayLike) -> np.ndarray:
        """Outputs (n, n_outputs) of inputs (n, n_inputs)."""
        return self.program(inputs)

    def jacobian(self, inputs: ArrayLike) -> np.ndarray:
        """Derivatives (n, n_outputs, n_inputs) of the outputs by the inputs; at kinks of relu the one from the right."""
        return self.program.jacobian(inputs)


class NetworkMap(ProgramMap):
    """A fitted map that is a network."""

    network: Network

    @property
    def program(self) -> Program:  # type: ignore[override]
        """That of the network."""
        return self.network.program


def _is_sparse(matrix) -> bool:
    """Whether a matrix is a sparse one, without importing SciPy to know: dense networks need NumPy alone."""
    return not isinstance(matrix, np.ndarray)
