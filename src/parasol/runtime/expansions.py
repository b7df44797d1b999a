"""Operations that expand a few inputs into many: Chebyshev products, and kernels around centres."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from parasol.checks import check_choice
from parasol.errors import InputError
from parasol.runtime.operation import Operation, Slopes, chained_slopes, check_array
from parasol.runtime.plain import Plain

FEW_COLUMNS = 12  # columns up to which squared distances are summed one by one
_HIGHEST = 10_000  # degree of a polynomial
_SQRT3, _SQRT5 = math.sqrt(3.0), math.sqrt(5.0)


@dataclass(frozen=True, eq=False, repr=False)
class Chebyshev(Operation):
    """Products of Chebyshev polynomials, y_t = Π_i T_{k_ti}(x_i), for degrees k given as whole numbers.

    >>> Chebyshev(np.array([[0, 0], [1, 0], [2, 1]]))(np.array([[0.5, 3.0]]))
    array([[ 1. ,  0.5, -1.5]])
    """

    indices: np.ndarray  # (n_terms, p)

    def __post_init__(self):
        check_array(self.indices, 2, "iu", "degrees of a polynomial")
        if not self.indices.size or self.indices.min() < 0:
            raise InputError("the degrees of a polynomial must be whole numbers that are not negative.")
        if self.indices.max() > _HIGHEST:
            raise InputError(f"a polynomial of degree {self.indices.max()} is too high. Allowed is {_HIGHEST}.")

    @property
    def n_inputs(self) -> int:
        """One for each column of the degrees."""
        return self.indices.shape[1]

    def n_outputs(self, width: int) -> int:
        """One for each term."""
        return len(self.indices)

    @property
    def facts(self) -> Plain:
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

    def _table_of_one(self, x: np.ndarray) -> np.ndarray:
        """The same for one vector, in Python's numbers: NumPy takes longer to be called than to compute so few."""
        inputs, counts, _ = self._plan
        point = x[0].tolist()
        now = [point[i] for i in inputs.tolist()]
        twice, before = [2.0 * t for t in now], [1.0] * len(now)
        values = [1.0, *now]
        for count in counts[1:]:
            now, before = [twice[j] * now[j] - before[j] for j in range(count)], now
            values += now
        return np.array(values)[:, None]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """All the products."""
        plain = type(x) is np.ndarray and x.dtype == np.float64  # JAX and PyTorch bring their own arrays
        table = self._table_of_one(x) if plain and len(x) == 1 else self._table(x)[0]
        rows = self._plan[2]
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
        return self(x), chained_slopes(slopes, self._partials(x), x, len(self.indices))


@dataclass(frozen=True)
class RadialKernel:
    """k and dk/ds as functions of s = Σ ((x_i − z_i) / ℓ_i)²."""

    value: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]


def _matern52(s: np.ndarray) -> np.ndarray:
    r = _SQRT5 * np.sqrt(s)
    return (1.0 + r + r * r / 3.0) * np.exp(-r)


def _matern52_slope(s: np.ndarray) -> np.ndarray:
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
        check_array(self.centres, 2, "f", "centres")
        check_array(self.lengths, 1, "f", "lengths", self.centres.shape[1:])
        if not np.all(self.lengths > 0):
            raise InputError("the lengths of a kernel must be positive.")

    @property
    def n_inputs(self) -> int:
        """One for each length."""
        return len(self.lengths)

    def n_outputs(self, width: int) -> int:
        """One for each centre."""
        return len(self.centres)

    @property
    def facts(self) -> Plain:
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
        return KERNELS[self.name].value(s), chained_slopes(slopes, partials, x, len(self.centres))


def distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Squared distances (n, m), without the cancellation of |a|² − 2ab + |b|² where columns are few."""
    if a.shape[1] > FEW_COLUMNS:
        out = np.sum(a**2, axis=1)[:, None] - 2.0 * (a @ b.T) + np.sum(b**2, axis=1)
        return np.maximum(out, 0.0)
    out = a[:, :1] - b[:, 0]
    out *= out
    for i in range(1, a.shape[1]):
        gap = a[:, i : i + 1] - b[:, i]
        gap *= gap
        out += gap
    return out
