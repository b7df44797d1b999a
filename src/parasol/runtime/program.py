"""A fitted map as a program, a short list of operations: every other form of the map is made from it.

NumPy runs it, here; files hold it; its derivatives and its float32 form come from it; ONNX and the page are written from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from parasol.checks import check_shape
from parasol.errors import InputError
from parasol.runtime.operation import Operation
from parasol.runtime.operations import (
    Affine,
    Scale,
    Sum,
    check_operations,
    first_width,
    flat,
    jacobian,
    last_width,
    run,
    steps,
    widths,
)
from parasol.runtime.plain import Plain

BLOCK = 2**19  # bytes in the widest values of a block of samples: what stays in the processor's cache
SPARSE_BLOCK = 2**24  # the same through sparse layers, whose entries are read once for all samples of a block
_GENTLE = 16.0  # times the width of the box that its middle may be away from zero, for a shift to go into a bias


@dataclass(frozen=True, eq=False, repr=False)
class Program:
    """y = f_k(… f_2(f_1(x))): inputs (n, n_inputs) to outputs (n, n_outputs); all of its real numbers have one type.

    >>> from parasol.runtime.operations import Activation
    >>> double = Program((Affine(np.array([[1.0], [-1.0]])), Activation("relu"), Affine(np.array([[2.0, -2.0]]))))
    >>> double([[3.0], [-1.0]])
    array([[ 6.],
           [-2.]])
    >>> double.jacobian([[3.0]]), double.n_weights, double.widths
    (array([[[2.]]]), 4, (1, 2, 1))
    """

    operations: tuple[Operation, ...]

    def __post_init__(self):
        if not isinstance(self.operations, tuple):
            raise InputError(f"the operations of a map must be a tuple, not a {type(self.operations).__name__}.")
        check_operations(self.operations)
        if not self.n_inputs:
            raise InputError("nothing in the operations of a map says how many inputs it has.")
        last_width(self.operations, self.n_inputs)
        if len({a.dtype for a in self._arrays if a.dtype.kind == "f"}) > 1:
            raise InputError("the operations of a map have numbers of different types. Use astype on them.")

    def __repr__(self) -> str:
        names = ", ".join(type(op).__name__ for op in self.operations)
        return (
            f"<Program of {self.n_inputs} to {self.n_outputs} numbers: {names}; {self.n_weights} weights, {self.dtype}>"
        )

    @cached_property
    def n_inputs(self) -> int:
        """Length of an input."""
        return first_width(self.operations) or 0

    @cached_property
    def n_outputs(self) -> int:
        """Length of an output."""
        return last_width(self.operations, self.n_inputs)

    @property
    def widths(self) -> tuple[int, ...]:
        """Numbers of values that stand between its matrices and the like, inputs and outputs included."""
        return (self.n_inputs, *widths(self.operations, self.n_inputs))

    @cached_property
    def widest(self) -> int:
        """The largest number of values that stand between two operations, branches included."""
        inner = [op.n_outputs(op.n_inputs) for op in self.all_operations if op.n_inputs is not None]
        return max(self.n_inputs, *inner)

    @cached_property
    def is_sparse(self) -> bool:
        """Whether some matrix is stored as a sparse one; evaluating it then needs SciPy."""
        return any(isinstance(op, Affine) and op.is_sparse for op in self.all_operations)

    @cached_property
    def all_operations(self) -> tuple[Operation, ...]:
        """The operations, those of branches included."""
        return tuple(flat(self.operations))

    @cached_property
    def _arrays(self) -> list[Any]:
        parts = [part for op in self.all_operations for part in vars(op).values()]
        return [part for part in parts if hasattr(part, "dtype")]

    @cached_property
    def dtype(self) -> np.dtype:
        """The type of its real numbers."""
        return next((a.dtype for a in self._arrays if a.dtype.kind == "f"), np.dtype(float))

    @property
    def n_weights(self) -> int:
        """Weights, biases and coordinates of centres that are not zero; scalings do not count."""
        return sum(op.n_numbers for op in self.all_operations)

    def __call__(self, x: ArrayLike) -> np.ndarray:
        """Outputs (n, n_outputs) of inputs (n, n_inputs)."""
        return self._in_blocks(self._checked(x), self._values, self.widest)

    def jacobian(self, x: ArrayLike) -> np.ndarray:
        """Derivatives (n, n_outputs, n_inputs) of the outputs by the inputs; at kinks of relu the one from the right."""
        width = 2 * self.widest * self.n_inputs  # slopes before and after an operation
        return self._in_blocks(self._checked(x), partial(jacobian, self.operations), width)

    def astype(self, dtype: DTypeLike) -> Program:
        """The same program with numbers of another type."""
        return self if self.dtype == dtype else Program(tuple(op.astype(dtype) for op in self.operations))

    def folded(self) -> Program:
        """The same map with scalings multiplied into the matrices beside them: fewer passes over the numbers.

        >>> program = Program((Scale(np.array([2.0]), np.array([1.0])), Affine(np.array([[3.0]]), np.array([4.0]))))
        >>> folded = program.folded()
        >>> folded.operations[0].weights, folded.operations[0].bias, len(folded.operations)
        (array([[6.]]), array([-2.]), 1)
        """
        return Program(_folded(self.operations))

    @cached_property
    def _values(self) -> Callable[[np.ndarray], np.ndarray]:
        return partial(run, steps(self.operations))

    def _checked(self, x: ArrayLike) -> np.ndarray:
        x = np.asarray(x)
        if x.ndim != 2 or x.shape[1] != self.n_inputs:
            check_shape(x, (None, self.n_inputs), "inputs")
        return x.astype(self.dtype, copy=False)

    def _in_blocks(self, x: np.ndarray, evaluate: Callable[[np.ndarray], np.ndarray], width: int) -> np.ndarray:
        """Results of blocks of samples, one after the other, where each sample fills `width` numbers."""
        if len(x) == 1:
            return evaluate(x)
        step = max(1, (SPARSE_BLOCK if self.is_sparse else BLOCK) // (width * self.dtype.itemsize))
        if len(x) <= step:
            return evaluate(x)
        return np.concatenate([evaluate(x[i : i + step]) for i in range(0, len(x), step)])


class ProgramMap:
    """A fitted map that has a program: how it answers, whoever fitted it. A new map needs no more than this."""

    program: Program

    def predict(self, x: ArrayLike) -> np.ndarray:
        """Outputs (n, d) of inputs (n, p)."""
        return self.program(check_inputs(x, self.program.n_inputs))

    def jacobian(self, x: ArrayLike) -> np.ndarray:
        """Derivatives (n, d, p)."""
        return self.program.jacobian(check_inputs(x, self.program.n_inputs))


@dataclass(frozen=True, eq=False)
class StoredMap(ProgramMap):
    """A map as files hold it: its program, the name of its kind, and the numbers and texts its kind knew about it.

    `error` is the one it was chosen by, where there is one.
    """

    program: Program
    name: str = "StoredMap"
    error: float | None = None
    facts: Plain = field(default_factory=dict, metadata={"optional": True})

    def __post_init__(self):
        if not isinstance(self.program, Program):
            raise InputError(f"the program of a map is a {type(self.program).__name__}.")
        if not isinstance(self.facts, dict):
            raise InputError(f"the facts of a map are a {type(self.facts).__name__}.")

    @classmethod
    def of(cls, fitted: Any) -> StoredMap:
        """What a file keeps of a map that has a program."""
        error = getattr(fitted, "error", getattr(fitted, "validation_error", None))
        names = [f.name for f in fields(type(fitted))] if is_dataclass(type(fitted)) else []
        facts = {name: getattr(fitted, name) for name in names}
        facts = {name: value for name, value in facts.items() if isinstance(value, bool | int | float | str)}
        return cls(fitted.program, map_name(fitted), None if error is None else float(error), facts)


def check_inputs(x: ArrayLike, n_inputs: int) -> np.ndarray:
    """Inputs (n, n_inputs) of a fitted map as floats."""
    if np.ndim(x) == 2 and np.shape(x)[1] != n_inputs:
        raise InputError(f"x has {np.shape(x)[1]} columns, but the map was fitted to {n_inputs} inputs.")
    return check_shape(x, (None, n_inputs), "x")


def program_of(fitted: Any) -> Program | None:
    """The program of a map; None for a regressor from elsewhere, which has none."""
    program = getattr(fitted, "program", None)
    return program if isinstance(program, Program) else None


def map_name(fitted: Any) -> str:
    """The kind of a map, as people and files call it; None stands for the reduced model itself."""
    if fitted is None:
        return "reduced model"
    return fitted.name if isinstance(fitted, StoredMap) else type(fitted).__name__


def map_words(fitted: Any) -> str:
    """The kind of a map in words: what its name says but for the class.

    >>> class FittedKernelRidge: ...
    >>> map_words(FittedKernelRidge()), map_words(None)
    ('kernel ridge', 'reduced model')
    """
    name = map_name(fitted)
    if name == "FittedProcess":
        return "Gaussian process"
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
    return re.sub(r"^(fitted|trained) | map$", "", apart)


# ---- folding ---------------------------------------------------------------------------------------------------------
def _folded(operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
    out: list[Operation] = []
    for op in operations:
        if isinstance(op, Sum):
            op = Sum(tuple(map(_folded, op.branches)))
        merged = _merged(out[-1], op) if out else None
        if merged is None:
            out.append(op)
        else:
            out[-1] = merged
    return tuple(_one_bias(op) for op in out)


def _one_bias(op: Operation) -> Operation:
    """A sum of affine ends with all that they add in the first of them."""
    if not isinstance(op, Sum) or not all(b and isinstance(b[-1], Affine) for b in op.branches):
        return op
    ends: list[Any] = [branch[-1] for branch in op.branches]
    biases = [end.bias for end in ends if end.bias is not None]
    bias = np.sum(biases, axis=0) if biases else None
    pairs = enumerate(zip(op.branches, ends, strict=True))
    return Sum(tuple((*b[:-1], Affine(end.weights, None if i else bias)) for i, (b, end) in pairs))


def _merged(first: Operation, second: Operation) -> Operation | None:
    """One operation for two, where one of them scales; None where there is none."""
    if isinstance(first, Scale):
        if isinstance(second, Scale):  # the differences to the first shift are still taken first
            offset = np.zeros_like(first.scale) if first.offset is None else first.offset
            return Scale(first.scale * second.scale, first.shift, second(offset[None])[0])
        # numbers far from zero beside their own range: the difference is taken first, or its digits are lost
        if np.max(np.abs(first.start), initial=0.0) > _GENTLE:
            return None
        if isinstance(second, Affine):
            return first.into(second)
        if isinstance(second, Sum) and all(b and isinstance(b[0], Affine) for b in second.branches):
            return Sum(tuple((first.into(b[0]), *b[1:]) for b in second.branches))  # type: ignore[arg-type]
    if isinstance(second, Scale):
        if isinstance(first, Affine):
            return second.onto(first)
        if isinstance(first, Sum) and all(b and isinstance(b[-1], Affine) for b in first.branches):
            parts = [second, *[Scale(second.scale)] * (len(first.branches) - 1)]  # what is added is added once
            pairs = zip(first.branches, parts, strict=True)
            return Sum(tuple((*b[:-1], part.onto(b[-1])) for b, part in pairs))  # type: ignore[arg-type]
    return None
