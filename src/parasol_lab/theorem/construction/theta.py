"""How a problem depends on its parameters, as far as networks can say it: polynomials and quotients of polynomials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, product
from math import comb

import numpy as np
import sympy

from parasol import ParameterSpace
from parasol.errors import InputError

Terms = tuple[tuple[tuple[int, ...], float], ...]  # (exponents of the scalars, coefficient) of each monomial
_MOST_CELLS = 100_000  # to enclose a denominator


@dataclass(frozen=True)
class Rational:
    """A function of the scalar parameters that is a quotient of two polynomials.

    >>> a, k = sympy.symbols("a k")
    >>> half = rational(a * k / 2, (a, k), "theta")
    >>> half(np.array([[2.0, 3.0]])), half.affine
    (array([3.]), False)
    """

    numerator: Terms
    denominator: Terms
    text: str

    @property
    def polynomial(self) -> bool:
        """Whether there is nothing to divide by."""
        return _degree(self.denominator) == 0

    @property
    def affine(self) -> bool:
        """Whether it is a constant plus multiples of the parameters."""
        return self.polynomial and _degree(self.numerator) <= 1

    @property
    def constant(self) -> bool:
        """Whether it is the same for all parameters."""
        return self.polynomial and _degree(self.numerator) == 0

    def slopes(self) -> tuple[float, np.ndarray]:
        """Constant and coefficients of the parameters of an affine function."""
        n = len(self.denominator[0][0])
        out = np.zeros(n + 1)
        for exponents, coefficient in self.numerator:
            out[1 + exponents.index(1) if any(exponents) else 0] += coefficient
        return float(out[0]), out[1:]

    def __call__(self, mus: np.ndarray) -> np.ndarray:
        """Its values at parameter vectors (n, n_parameters), scalars first: (n,)."""
        return values(self.numerator, mus) / values(self.denominator, mus)

    def enclose(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds (n,) over boxes from low (n, n_scalars) to high; infinite where it may have a pole."""
        top, bottom = _enclose(self.numerator, low, high), _enclose(self.denominator, low, high)
        if self.polynomial:
            return top
        free = (bottom[0] > 0) | (bottom[1] < 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            quotients = np.array([t / b for t in top for b in bottom])
        return np.where(free, quotients.min(axis=0), -np.inf), np.where(free, quotients.max(axis=0), np.inf)


def rational(expression, symbols: Sequence[sympy.Symbol], where: str) -> Rational:
    """An expression in the parameters as a quotient of polynomials, or the reason why it is none.

    >>> a = sympy.Symbol("a")
    >>> rational(sympy.sin(a), (a,), "the operator")
    Traceback (most recent call last):
    parasol.errors.InputError: sin(a) in the operator is neither a polynomial nor a quotient of polynomials in a: ...
    """
    parts = sympy.fraction(sympy.together(expression))
    try:
        polynomials = [sympy.Poly(part, *symbols) if symbols else sympy.Poly(part, sympy.Dummy()) for part in parts]
        terms = [tuple((tuple(map(int, e)), float(c)) for e, c in p.terms()) for p in polynomials]
    except (sympy.PolynomialError, TypeError, ValueError):
        raise InputError(
            f"{expression} in {where} is neither a polynomial nor a quotient of polynomials in "
            f"{', '.join(map(str, symbols)) or 'nothing'}: no network here represents it. Declare a parameter for it instead."
        ) from None
    if _degree(terms[1]) == 0:  # a number below the line goes above it
        below = terms[1][0][1]
        terms = [tuple((e, c / below) for e, c in terms[0]), ((terms[1][0][0], 1.0),)]
    return Rational(terms[0], terms[1], str(expression))


def centred(terms: Terms, space: ParameterSpace) -> np.ndarray:
    """Coefficients of a polynomial in x, μ = middle + half x: entry k belongs to Π x_j^k_j. Exact but for one rounding each.

    >>> from parasol import parameters
    >>> centred((((2,), 1.0), ((1,), -2e9), ((0,), 1e18)), ParameterSpace(parameters(a=(1e9 - 1, 1e9 + 3))))  # (a − 1e9)²
    array([1., 4., 4.])
    """
    ends = [(Fraction(float(low)), Fraction(float(high))) for low, high in np.asarray(space.bounds).T]
    middles, halves = [(a + b) / 2 for a, b in ends], [(b - a) / 2 for a, b in ends]
    n = len(ends)
    degrees = np.max([(0,) * n, *[exponents[:n] for exponents, c in terms if c]], axis=0)
    out = np.full(degrees + 1, Fraction(0), dtype=object)
    for exponents, coefficient in terms:
        for k in product(*[range(e + 1) for e in exponents[:n]]) if coefficient else ():
            part = Fraction(coefficient)
            for j, (e, i) in enumerate(zip(exponents, k, strict=False)):
                part *= comb(e, i) * middles[j] ** (e - i) * halves[j] ** i
            out[k] += part
    return out.astype(float)


def denominator_range(function: Rational, space: ParameterSpace) -> tuple[float, float]:
    """Ends between which the denominator stays over the box, both of one sign; refused if it may vanish."""
    low, high = 0.0, 0.0
    for cuts in (1, 4, 16, 64):
        low, high = _ends(function.denominator, space, cuts)
        if low * high > 0:
            return low, high
        if (4 * cuts) ** len(space.scalars) > _MOST_CELLS:
            break
    raise InputError(
        f"{function.text} may have a pole in the parameter box: its denominator goes from {low:.3g} to {high:.3g}. "
        "Narrow the ranges of the parameters."
    )


def numerator_bound(function: Rational, space: ParameterSpace) -> float:
    """A bound of the numerator's absolute value over the box."""
    return max(map(abs, _ends(function.numerator, space, 1)))


def largest(function: Rational, space: ParameterSpace) -> float:
    """A bound of the function's absolute value over the box."""
    above = numerator_bound(function, space)
    return above if function.polynomial else above / min(map(abs, denominator_range(function, space)))


def _ends(terms: Terms, space: ParameterSpace, cuts: int) -> tuple[float, float]:
    """Bounds of a polynomial over the box, cut into so many cells along each axis."""
    n = len(space.scalars)
    low = np.stack(np.meshgrid(*[np.arange(cuts) / cuts] * n, indexing="ij"), axis=-1).reshape(-1, n)
    bottom, top = _enclose(terms, space.from_unit(low), space.from_unit(low + 1 / cuts))
    return float(np.min(bottom)), float(np.max(top))


def _degree(terms: Terms) -> int:
    return max((sum(exponents) for exponents, c in terms if c), default=0)


def values(terms: Terms, mus: np.ndarray) -> np.ndarray:
    """A polynomial at parameter vectors (n, n_parameters), real or complex: (n,)."""
    out = np.zeros(len(mus), dtype=np.result_type(mus, float))
    for exponents, coefficient in terms:
        out += coefficient * np.prod(mus[:, : len(exponents)] ** np.array(exponents), axis=1)
    return out


def _enclose(terms: Terms, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of a polynomial over boxes, monomial by monomial."""
    total = np.zeros((2, len(low)))
    for exponents, coefficient in terms:
        range_ = np.full((2, len(low)), coefficient)
        for j, power in enumerate(exponents):
            if power:
                range_ = _multiplied(range_, _power(low[:, j], high[:, j], power))
        total += range_
    return total[0], total[1]


def _power(low: np.ndarray, high: np.ndarray, power: int) -> np.ndarray:
    """The range of x^power over intervals, exactly."""
    ends = np.sort([low**power, high**power], axis=0)
    if power % 2 == 0:
        ends[0] = np.where((low < 0) & (high > 0), 0.0, ends[0])
    return ends


def _multiplied(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    products = np.array([x * y for x in a for y in b])
    return np.array([products.min(axis=0), products.max(axis=0)])


def distinct(functions: Sequence[Rational]) -> list[Rational]:
    """Each function once, constants and affine ones left out, in order."""
    return list(dict.fromkeys(f for f in chain(functions) if not f.affine))
