"""NumPy code on arrays of JAX and PyTorch: what is written once for NumPy runs there too, compiled and differentiated.

NumPy hands each of its functions to an argument that asks for it (`__array_ufunc__`, `__array_function__`). A `Traced` array asks,
and calls the function of the same name in the other library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from parasol.errors import NotInstalled

_PACKAGES = {"sklearn": "scikit-learn"}  # whose names are not those of their modules
_UNUSED = ("optimize", "dtype")  # what NumPy's code asks for that changes no result in float64


@dataclass(frozen=True)
class Library:
    """Another library of arrays."""

    find: Callable[[tuple[str, ...]], Callable[..., Any]]  # its functions by NumPy's names
    array: Callable[[Any], Any]  # one of its arrays from one of NumPy's
    number: Callable[[float], Any]  # what its functions take for a number
    zeros: Callable[[Any, tuple[int, ...]], Any]  # of the kind of another of its arrays
    put: Callable[[Any, Any, Any], Any]  # an array with some entries replaced


def jax_library() -> Library:
    """JAX, whose names are NumPy's."""
    jnp = required("jax.numpy")

    def find(path: tuple[str, ...]) -> Any:
        return getattr(jnp.linalg if path[0] == "linalg" else jnp, path[-1])

    def put(array: Any, key: Any, value: Any) -> Any:
        return array.at[key].set(value)

    return Library(find, jnp.asarray, lambda number: number, lambda like, shape: jnp.zeros(shape), put)


_TORCH = {
    "power": "pow",
    "max": "amax",
    "min": "amin",
    "equal": "eq",
    "invert": "bitwise_not",
    "take_along_axis": "take_along_dim",
}
_TORCH_OPTIONS = {"axis": "dim", "keepdims": "keepdim"}


def torch_library(device: Any, kept: tuple[np.ndarray, ...] = ()) -> Library:
    """PyTorch on a device, with the names that differ; the arrays `kept` go to the device once."""
    torch = required("torch")
    there = {id(array): torch.tensor(array, device=device) for array in kept}

    def find(path: tuple[str, ...]) -> Callable[..., Any]:
        function = getattr(torch.linalg if path[0] == "linalg" else torch, _TORCH.get(path[-1], path[-1]))
        return lambda *given, **options: function(*given, **{_TORCH_OPTIONS.get(k, k): v for k, v in options.items()})

    def put(array: Any, key: Any, value: Any) -> Any:
        out = array.clone()  # autograd may still need the old entries
        out[key] = value
        return out

    def array(value: Any) -> Any:
        return there[id(value)] if id(value) in there else torch.tensor(value, device=device)

    def number(value: float) -> Any:
        return torch.tensor(value, dtype=torch.float64, device=device)

    return Library(find, array, number, lambda like, shape: like.new_zeros(shape), put)


def required(name: str) -> Any:
    """A package, or one line that says how to install it."""
    try:
        return import_module(name)
    except ImportError:
        package = _PACKAGES.get(name.partition(".")[0], name.partition(".")[0])
        raise NotInstalled(f"this needs {package}, which is not installed. Use pip install {package}.") from None


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of another library that NumPy's functions take, give, and write into.

    Writing replaces the array behind it: what was computed from the old one keeps it. A part that was taken by numbers and slices
    writes into what it was taken from, as NumPy's views do; one that was taken by an array of places is a copy.
    """

    def __init__(self, value: Any, library: Library, source: tuple[Traced, Any] | None = None):
        self.value, self.library, self._source = value, library, source

    dtype = np.dtype(float)
    shape = property(lambda self: tuple(self.value.shape))
    ndim = property(lambda self: len(self.value.shape))
    T = property(lambda self: self._new(self.value.T))

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError("NumPy code made a plain array of a traced one: its derivatives would be lost.")

    def __bool__(self) -> bool:
        raise TypeError("NumPy code decides by the value of a traced array, which is not known yet.")

    def _new(self, value: Any) -> Traced:
        return Traced(value, self.library)

    def _raw(self, given: Any) -> Any:
        """What the other library's functions take."""
        if isinstance(given, Traced):
            return given.value
        if isinstance(given, np.ndarray | np.generic):
            given = np.asarray(given)
            if given.dtype.kind == "f" and given.dtype != float:
                given = given.astype(float)
            return self.library.array(np.ascontiguousarray(given) if given.ndim else given)
        return type(given)(map(self._raw, given)) if isinstance(given, list | tuple) else given

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *given: Any, out: Any = None, **options: Any) -> Any:
        if method != "__call__" or options:
            return NotImplemented
        operands = [self.library.number(g) if isinstance(g, int | float) else self._raw(g) for g in given]
        value = self.library.find((ufunc.__name__,))(*operands)
        target = None if out is None else out[0]
        return target._assign(value) if isinstance(target, Traced) else self._new(value)

    def __array_function__(self, function: Any, types: Any, given: tuple, options: dict[str, Any]) -> Any:
        if function is np.shape:
            return given[0].shape
        if function is np.empty_like:
            return self._new(self.library.zeros(self.value, options["shape"]))
        path = (*function.__module__.split(".")[1:], function.__name__)
        options = {name: self._raw(value) for name, value in options.items() if name not in _UNUSED}
        return self._new(self.library.find(path)(*self._raw(given), **options))

    def _assign(self, value: Any) -> Traced:
        self.value = value
        if self._source is not None:
            self._source[0][self._source[1]] = self
        return self

    def __getitem__(self, key: Any) -> Traced:
        keys = key if isinstance(key, tuple) else (key,)
        copied = any(isinstance(k, np.ndarray | list | Traced) for k in keys)  # as NumPy does: no view
        return Traced(self.value[key], self.library, None if copied else (self, key))

    def __setitem__(self, key: Any, given: Any) -> None:
        self._assign(self.library.put(self.value, key, self._raw(given)))

    def copy(self) -> Traced:
        """The same array; writing into one of them leaves the other as it is."""
        return self._new(self.value)

    def reshape(self, *shape: int) -> Traced:
        """The same entries in another shape."""
        return self._new(self.value.reshape(*shape))

    def swapaxes(self, one: int, other: int) -> Traced:
        """Two axes exchanged."""
        return self._new(self.value.swapaxes(one, other))

    def dot(self, other: Any) -> Any:
        """The product of matrices."""
        return self @ other

    def min(self, axis: int) -> Any:
        """The least entries along an axis."""
        return np.min(self, axis=axis)  # type: ignore[call-overload]

    def max(self, axis: int) -> Any:
        """The largest entries along an axis."""
        return np.max(self, axis=axis)  # type: ignore[call-overload]
