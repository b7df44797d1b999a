"""Radial kernels and all their derivatives, from one formula.

Write a kernel as a function of s = r²/2, phi(r) = F(s). Then, with d = x − x_j,

    D^a phi(|d|) = sum over j of  prod_i [ a_i! / (2^j_i j_i! (a_i − 2 j_i)!) d_i^(a_i − 2 j_i) ]  F^(|a| − |j|)(s),

so a kernel only has to supply the radial functions F^(k) = (1/r d/dr)^k phi.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from parasol.checks import check_choice, check_positive
from parasol.errors import InputError

MultiIndex = tuple[int, ...]


class Kernel(ABC):
    """A radial function with its radial derivatives."""

    @abstractmethod
    def radial(self, squared: np.ndarray, order: int, scale: float | np.ndarray) -> np.ndarray:
        """F^(order) at r² = `squared`, of the kernel r ↦ phi(scale·r); `scale` broadcasts against `squared`."""

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """Highest order of derivative that exists everywhere."""

    @property
    def minimal_degree(self) -> int:
        """Least polynomial degree that makes the interpolation system non-singular; −1: none needed."""
        return -1

    def derivative(self, offsets: np.ndarray, index: MultiIndex, scale: float | np.ndarray = 1.0) -> np.ndarray:
        """D^index phi at x − x_j = `offsets`, an array (..., dimension); the result has shape (...).

        >>> d = np.array([0.2, -0.6])
        >>> print(f"{IMQ(3.0).derivative(d, (2, 0)):.12f}")
        -0.698056529420
        """
        squared = np.sum(offsets * offsets, axis=-1)
        total = np.zeros(squared.shape)
        for halves in itertools.product(*[range(a // 2 + 1) for a in index]):
            factor = np.ones(())
            for axis, (a, j) in enumerate(zip(index, halves, strict=True)):
                coefficient = math.factorial(a) / (2**j * math.factorial(j) * math.factorial(a - 2 * j))
                factor = factor * coefficient
                if a > 2 * j:
                    factor = factor * offsets[..., axis] ** (a - 2 * j)
            total = total + factor * self.radial(squared, sum(index) - sum(halves), scale)
        return total


@dataclass(frozen=True)
class _Quadric(Kernel):
    """(1 + (eps r)²)^power."""

    epsilon: float
    power: ClassVar[float]

    def __post_init__(self):
        check_positive(self.epsilon, f"epsilon of {type(self).__name__}")

    @property
    def smoothness(self) -> float:
        return math.inf

    def radial(self, squared: np.ndarray, order: int, scale: float | np.ndarray) -> np.ndarray:
        e2 = (self.epsilon * scale) ** 2
        falling = math.prod(self.power - i for i in range(order))
        return falling * (2 * e2) ** order * (1 + e2 * squared) ** (self.power - order)


class IMQ(_Quadric):
    """Inverse multiquadric 1/√(1 + (εr)²), positive definite.

    >>> IMQ(3.0)
    IMQ(epsilon=3.0)
    """

    power = -0.5


class MQ(_Quadric):
    """Multiquadric √(1 + (εr)²), conditionally definite of order 1."""

    power = 0.5


class IQ(_Quadric):
    """Inverse quadratic 1/(1 + (εr)²), positive definite."""

    power = -1.0


class Gaussian(_Quadric):
    """exp(−(εr)²), positive definite."""

    def radial(self, squared: np.ndarray, order: int, scale: float | np.ndarray) -> np.ndarray:
        e2 = (self.epsilon * scale) ** 2
        return (-2 * e2) ** order * np.exp(-e2 * squared)


@dataclass(frozen=True)
class PHS(Kernel):
    """Polyharmonic spline r^power with an odd power: no shape parameter.

    >>> float(PHS(3).derivative(np.array([3.0, 4.0]), (0, 0)))
    125.0
    """

    power: int = 5

    def __post_init__(self):
        if self.power != int(self.power) or self.power < 1 or self.power % 2 == 0:
            raise InputError(
                f"power={self.power} of PHS must be an odd positive integer. Use PHS(3), PHS(5) or PHS(7)."
            )

    @property
    def smoothness(self) -> float:
        return self.power - 1

    @property
    def minimal_degree(self) -> int:
        return (self.power - 1) // 2

    def radial(self, squared: np.ndarray, order: int, scale: float | np.ndarray) -> np.ndarray:
        falling = math.prod(self.power - 2 * i for i in range(order)) * np.asarray(scale) ** self.power
        exponent = self.power - 2 * order
        if exponent < 0:
            # the offsets multiplying this vanish faster than it grows (smoothness was checked), so 0 is the limit
            inverse = np.zeros_like(squared)
            np.divide(1.0, squared, out=inverse, where=squared > 0)
            return falling * np.sqrt(inverse) ** -exponent
        value = np.sqrt(squared)
        for _ in range(exponent // 2):  # repeated products are several times faster than a float power
            value *= squared
        return falling * value if order or np.ndim(scale) or scale != 1 else value


@dataclass(frozen=True)
class Matern(Kernel):
    """Matérn function of order nu, z^nu K_nu(z) with z = εr, scaled to 1 at 0; positive definite.

    >>> math.isclose(Matern(2.0, nu=0.5).derivative(np.array([0.5]), (0,)), math.exp(-1))
    True
    """

    epsilon: float
    nu: float = 3.5

    def __post_init__(self):
        check_positive(self.epsilon, "epsilon of Matern")
        check_positive(self.nu, "nu of Matern")

    @property
    def smoothness(self) -> float:
        return math.ceil(2 * self.nu) - 1

    def radial(self, squared: np.ndarray, order: int, scale: float | np.ndarray) -> np.ndarray:
        from scipy import special

        e = np.asarray(self.epsilon * scale)
        z = np.sqrt(squared) * e
        nu = self.nu - order
        at_zero = 2 ** (nu - 1) * special.gamma(nu) if nu > 0 else 0.0
        tiny = z < 1e-100
        safe = np.where(tiny, 1.0, z)
        value = np.where(tiny, at_zero, safe**nu * special.kv(nu, safe))
        return (-(e**2)) ** order * value / (2 ** (self.nu - 1) * special.gamma(self.nu))


# Coefficients in rising powers of r of (1−r)^4(4r+1), (1−r)^6(35r²+18r+3)/3, (1−r)^8(32r³+25r²+8r+1)
_WENDLAND = {
    smooth: np.polynomial.polynomial.polymul(np.polynomial.polynomial.polypow([1, -1], power), factor)
    for smooth, power, factor in [(2, 4, [1, 4]), (4, 6, [1, 6, 35 / 3]), (6, 8, [1, 8, 25, 32])]
}


@dataclass(frozen=True)
class Wendland(Kernel):
    """Compactly supported Wendland function of the given smoothness (2, 4 or 6), zero from r = 1/ε on.

    Positive definite in up to three dimensions.

    >>> float(Wendland(1.0, smooth=2).derivative(np.array([0.5]), (0,)))
    0.1875
    """

    epsilon: float
    smooth: int = 4

    def __post_init__(self):
        check_positive(self.epsilon, "epsilon of Wendland")
        if self.smooth not in _WENDLAND:
            raise InputError(f"smooth={self.smooth} of Wendland is unknown. Use 2, 4 or 6.")

    @property
    def smoothness(self) -> float:
        return self.smooth

    def radial(self, squared: np.ndarray, order: int, scale: float | np.ndarray) -> np.ndarray:
        e = np.asarray(self.epsilon * scale)
        r = np.sqrt(squared) * e
        total = np.zeros(np.broadcast_shapes(r.shape, e.shape))
        positive = np.where(r > 0, r, 1.0)
        for power, coefficient in enumerate(_WENDLAND[self.smooth]):
            falling = coefficient * math.prod(power - 2 * i for i in range(order))
            exponent = power - 2 * order
            # terms with a negative power are multiplied by offsets that vanish faster: their limit at 0 is 0
            total = total + falling * np.where((r > 0) | (exponent == 0), positive**exponent, 0.0)
        return np.where(r < 1, e ** (2 * order) * total, 0.0)


_BY_NAME = {"imq": IMQ, "mq": MQ, "iq": IQ, "gaussian": Gaussian, "phs": PHS, "matern": Matern, "wendland": Wendland}


def kernel_from_text(text: str) -> Kernel:
    """Read a kernel as the command line writes it: a name, a colon, its numbers.

    >>> kernel_from_text("phs:7"), kernel_from_text("imq:3")
    (PHS(power=7), IMQ(epsilon=3.0))
    """
    name, _, rest = text.strip().lower().partition(":")
    check_choice(name, list(_BY_NAME), "kernel")
    try:
        numbers: list[float] = [float(part) for part in rest.split(",")] if rest else []
        if not all(math.isfinite(n) for n in numbers):
            raise ValueError
    except ValueError:
        raise InputError(f"kernel={text!r} has something that is not a number. Write it like imq:3 or phs:7.") from None
    integers = [int(n) if n.is_integer() and (name == "phs" or i == 1) else n for i, n in enumerate(numbers)]
    try:
        return _BY_NAME[name](*integers)
    except TypeError:
        raise InputError(
            f"kernel={text!r} has the wrong number of numbers. Write it like imq:3, phs:7 or matern:2,3.5."
        ) from None


def monomials(dimension: int, degree: int) -> list[MultiIndex]:
    """Exponents of all monomials up to `degree`, the constant first; C(degree + dimension, dimension) of them.

    >>> monomials(2, 1)
    [(0, 0), (1, 0), (0, 1)]
    """
    out: list[MultiIndex] = []
    for total in range(degree + 1):
        block = [e for e in itertools.product(range(total + 1), repeat=dimension) if sum(e) == total]
        out.extend(sorted(block, reverse=True))
    return out


def n_monomials(dimension: int, degree: int) -> int:
    """Number of monomials up to `degree`; 0 for degree −1."""
    return math.comb(degree + dimension, dimension) if degree >= 0 else 0


def check_smooth_enough(kernel: Kernel, indices: Sequence[MultiIndex]) -> None:
    """Refuse a kernel that has not the derivatives an operator needs."""
    order = max((sum(index) for index in indices), default=0)
    if order > kernel.smoothness:
        raise InputError(
            f"{kernel} has derivatives up to order {kernel.smoothness:g}, the operator needs order {order}. "
            f"Use PHS({order + 1 + order % 2}) or a smooth kernel such as IMQ."
        )
