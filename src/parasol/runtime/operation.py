"""What an operation of a map program is, and how derivatives pass through one.

An operation turns numbers (n, width) into numbers (n, other width). Derivatives are carried forward: `slopes` are those of
the numbers by the inputs of the whole map, (n_map_inputs, n, width), or (n, width) where each number depends on its own input
only, or None where it is that input.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from parasol.errors import InputError
from parasol.runtime.plain import Plain

Slopes = np.ndarray | None


class Operation(ABC):
    """One step of a program; a new kind is a dataclass of arrays, texts and branches with these methods."""

    @property
    def n_inputs(self) -> int | None:
        """Numbers it takes; None where it takes any."""
        return None

    def n_outputs(self, width: int) -> int:
        """Numbers it gives for `width` numbers that it takes."""
        return width

    @abstractmethod
    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Values (n, n_outputs) of (n, n_inputs), in a new array."""

    @abstractmethod
    def forward(self, x: np.ndarray, slopes: Slopes) -> tuple[np.ndarray, Slopes]:
        """Values, and derivatives by the inputs of the map from those of x."""

    @property
    def n_numbers(self) -> int:
        """How many weights and the like it has that are not zero; scalings do not count."""
        return 0

    @property
    def facts(self) -> Plain:
        """What people may want to know of it, as plain values."""
        return {}

    def astype(self, dtype: DTypeLike) -> Operation:
        """The same operation with numbers of another type."""
        changed = {f.name: cast(getattr(self, f.name), dtype) for f in fields(self)}  # type: ignore[arg-type]
        return replace(self, **changed)  # type: ignore[type-var]


def scaled_slopes(slopes: Slopes, rise: np.ndarray) -> np.ndarray:
    """The chain rule for an operation that treats each number alone, with the derivative `rise` (n, width)."""
    return rise if slopes is None else slopes * rise


def full_slopes(slopes: Slopes, x: np.ndarray) -> np.ndarray:
    """Slopes of all numbers by all inputs, (n_inputs, n, width), zeros included."""
    if slopes is not None and slopes.ndim == 3:
        return slopes
    out = np.zeros((x.shape[1], *x.shape), x.dtype)
    every = np.arange(x.shape[1])
    out[every, :, every] = 1.0 if slopes is None else slopes.T
    return out


def chained_slopes(slopes: Slopes, partials: Iterator[tuple[int, np.ndarray]], x: np.ndarray, width: int) -> np.ndarray:
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


def cast(value: Any, dtype: DTypeLike) -> Any:
    """A part of an operation with its real numbers in another type."""
    if isinstance(value, Operation):
        return value.astype(dtype)
    if isinstance(value, tuple):
        return tuple(cast(item, dtype) for item in value)
    return value.astype(dtype, copy=False) if getattr(getattr(value, "dtype", None), "kind", "") == "f" else value


def check_array(value: Any, ndim: int, kinds: str, name: str, shape: tuple[int, ...] | None = None) -> None:
    """Refuse what is no array of numbers of these kinds, or has another shape."""
    if not isinstance(value, np.ndarray) or value.ndim != ndim or value.dtype.kind not in kinds:
        got = f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
        raise InputError(
            f"the {name} must be an array of {ndim} axes of {'real' if kinds == 'f' else 'whole'} numbers, got {got}."
        )
    if shape is not None and value.shape != shape:
        raise InputError(f"the {name} must have shape {shape}, got {value.shape}.")
