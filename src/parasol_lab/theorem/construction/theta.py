"""How a problem depends on its parameters, as far as networks can say it: polynomials and quotients of polynomials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from itertools import chain, product
from math import comb
from typing import Any

import numpy as np
import sympy

from parasol.errors import InputError
from parasol.pde import ParameterSpace

Terms = tuple[tuple[tuple[int, ...], float], ...]  # (exponents of the scalars, coefficient) of each monomial
_FAR = 10.0  # middles so many half widths from zero: beyond, polynomials about zero lose digits
_MOST_CELLS = 100_000  # to enclose a denominator
_LEAST, _MOST = 1e-290, 1e290  # between which numbers and their products with a few others are floats with all digits
_UNITS = 1e100  # ranges of parameters are between this and its inverse: their squares are floats


@dataclass(frozen=True)
class Local:
    """Numerator and denominator as polynomials in x, μ = middle + half x: no digits are lost in narrow ranges far from zero."""

    numerator: Terms
    denominator: Terms
    middle: tuple[float, ...]
    half: tuple[float, ...]

    def inside(self, mus: np.ndarray) -> np.ndarray:
        """x of parameter vectors, scalars first."""
        n = len(self.middle)
        return (mus[:, :n] - np.array(self.middle)) / np.array(self.half)


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
    local: Local | None = None  # the same about the middle of the box; None: the box was not known

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

    @property
    def at_middle(self) -> float:
        """An affine function's value at the middle of the box, or at zero where the box was not known."""
        return float(sum(c for exponents, c in self.about.numerator if not any(exponents)))

    @property
    def about(self) -> Local:
        """Its terms about the middle of the box, or about zero where the box was not known."""
        n = len(self.denominator[0][0])
        return self.local or Local(self.numerator, self.denominator, (0.0,) * n, (1.0,) * n)

    def __call__(self, mus: np.ndarray) -> np.ndarray:
        """Its values at parameter vectors (n, n_parameters), scalars first: (n,)."""
        x = self.about.inside(mus)
        return _values(self.about.numerator, x) / _values(self.about.denominator, x)

    def inside(self, x: np.ndarray, middle: np.ndarray, half: np.ndarray) -> np.ndarray:
        """Its values at x ∈ [−1, 1]^n, to which the box with this middle and half widths is moved: (n,)."""
        if self.local is None:
            return self(middle + half * x)
        return _values(self.local.numerator, x) / _values(self.local.denominator, x)

    def size(self, x: np.ndarray, middle: np.ndarray, half: np.ndarray) -> np.ndarray:
        """What its terms add up to there in absolute values, (n,): as large as what is rounded."""
        of, at = (self, middle + half * x) if self.local is None else (self.local, x)
        above, below = (_values(terms, at) for terms in (of.numerator, of.denominator))
        parts = [tuple((e, abs(c)) for e, c in terms) for terms in (of.numerator, of.denominator)]
        most_above, most_below = (_values(terms, np.abs(at)) for terms in parts)
        return most_above / np.abs(below) + np.abs(above) * (most_below - np.abs(below)) / below**2

    def below(self, x: np.ndarray, middle: np.ndarray, half: np.ndarray) -> np.ndarray:
        """Its denominator there: (n,)."""
        if self.local is None:
            return _values(self.denominator, middle + half * x)
        return _values(self.local.denominator, x)

    def ends(self, low: np.ndarray, high: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Bounds of the numerator and of the denominator over boxes, about the middle and, where digits suffice, about zero."""
        inside, local = (self.about.inside(low), self.about.inside(high)), self.about
        out = [_enclose(terms, *inside) for terms in (local.numerator, local.denominator)]
        if np.all(np.abs(local.middle) <= _FAR * np.array(local.half)):
            zero = [_enclose(terms, low, high) for terms in (self.numerator, self.denominator)]
            out = [(np.maximum(a[0], b[0]), np.minimum(a[1], b[1])) for a, b in zip(out, zero, strict=True)]
        return out

    def enclose(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds (n,) over boxes from low (n, n_scalars) to high; infinite where it may have a pole."""
        top, bottom = self.ends(low, high)
        if self.polynomial:
            return top
        free = (bottom[0] > 0) | (bottom[1] < 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            quotients = np.array([t / b for t in top for b in bottom])
        return np.where(free, quotients.min(axis=0), -np.inf), np.where(free, quotients.max(axis=0), np.inf)


def rational(expression, symbols: Sequence[sympy.Symbol], where: str, space: ParameterSpace | None = None) -> Rational:
    """An expression in the parameters as a quotient of polynomials, or the reason why it is none.

    >>> a = sympy.Symbol("a")
    >>> rational(sympy.sin(a), (a,), "the operator")
    Traceback (most recent call last):
    parasol.errors.InputError: sin(a) in the operator is neither a polynomial nor a quotient of polynomials in a: ...
    """
    expression = sympy.sympify(expression, strict=True)  # no text
    exact = expression.xreplace({number: sympy.Rational(number) for number in expression.atoms(sympy.Float)})
    parts = sympy.fraction(sympy.together(exact))
    try:
        polynomials = [sympy.Poly(part, *symbols) if symbols else sympy.Poly(part, sympy.Dummy()) for part in parts]
        terms = [[(tuple(map(int, e)), _fraction(c)) for e, c in p.terms()] for p in polynomials]
    except (sympy.PolynomialError, TypeError, ValueError):
        raise InputError(
            f"{expression} in {where} is neither a polynomial nor a quotient of polynomials in "
            f"{', '.join(map(str, symbols)) or 'nothing'}: no network here represents it. Declare a parameter for it instead."
        ) from None
    unit = max((c for _, c in terms[1]), key=abs)  # a number below the line goes above it
    terms = [[(e, c / unit) for e, c in part] for part in terms]
    _check_floats(terms, expression, symbols, where, space)
    above, below = (tuple((e, float(c)) for e, c in part) for part in terms)
    local = None if space is None or not space.scalars else _about_the_middle(terms, space)
    return Rational(above, below, str(expression), local)


def check_units(space: ParameterSpace) -> None:
    """Refuse parameters in units so small or large that their squares are no floats."""
    for scalar in space.scalars:
        largest = max(abs(scalar.low), abs(scalar.high))
        if largest > _UNITS or scalar.high - scalar.low < 1 / _UNITS:
            unit = 10.0 ** int(np.floor(np.log10(scalar.high - scalar.low if largest < 1 else largest)))
            raise InputError(
                f"the parameter {scalar.name} ranges from {scalar.low:g} to {scalar.high:g}: products of such numbers are no floats. "
                f"Measure it in units of {unit:g}: declare a parameter for {scalar.name}/{unit:g}."
            )


def check_numbers(thing: Any, where: str) -> None:
    """Refuse numbers in an equation or condition that floats cannot hold; parts of a term without parameters become matrices."""
    if isinstance(thing, sympy.Basic):
        for number in thing.atoms(sympy.Number):
            if number.is_finite and number != 0 and not abs(_log10(_fraction(number))) <= np.log10(_MOST):
                raise InputError(
                    f"a number near 1e{_log10(_fraction(number)):.0f} in {where} is none that floats hold ({_LEAST:g} to {_MOST:g}): it would "
                    "be read as 0 or as infinite. Use units in which coefficients are near 1, or leave the term out."
                )
    elif isinstance(thing, Mapping):
        for part in thing.values():
            check_numbers(part, where)
    elif isinstance(thing, list | tuple):
        for part in thing:
            check_numbers(part, where)
    elif is_dataclass(thing) and not isinstance(thing, type):
        for part in fields(thing):
            check_numbers(getattr(thing, part.name), where)


def _check_floats(parts, expression, symbols: Sequence[sympy.Symbol], where: str, space: ParameterSpace | None) -> None:
    """Refuse coefficients and powers that floats cannot hold: they would be read as 0 or as infinite."""
    most = () if space is None else np.abs(space.bounds).max(axis=0).tolist()
    for exponents, coefficient in [term for part in parts for term in part]:
        names = "*".join(f"{s}**{e}" if e > 1 else str(s) for s, e in zip(symbols, exponents, strict=False) if e) or "1"
        power = sum(e * np.log10(m) for m, e in zip(most, exponents, strict=False) if e)
        size = _log10(coefficient) if coefficient else 0.0
        if not np.log10(_LEAST) <= size <= np.log10(_MOST) or abs(power) > np.log10(_MOST):
            got = f"is about 1e{size:.0f}" if abs(power) <= np.log10(_MOST) else f"multiplies about 1e{power:.0f}"
            text = str(expression)
            raise InputError(
                f"the coefficient of {names} in {text if len(text) < 80 else text[:77] + '...'} in {where} {got}, which no float holds "
                f"({_LEAST:g} to {_MOST:g}). Declare the parameters in units in which they are near 1, or leave the term out."
            )


def _log10(number: Fraction) -> float:
    """The logarithm of the absolute value of a fraction, also of one that is no float."""
    above, below = abs(number.numerator), number.denominator
    shift = above.bit_length() - below.bit_length()
    scaled = Fraction(above, below) / Fraction(2) ** shift
    return float(np.log10(float(scaled)) + shift * np.log10(2))


def _fraction(number) -> Fraction:
    """A number of SymPy as a fraction; with 60 digits where it is none."""
    if not number.is_Rational:
        number = sympy.Rational(sympy.N(number, 60))  # a TypeError where it is complex
    return Fraction(int(number.p), int(number.q))


def _about_the_middle(parts: Sequence[Sequence[tuple[tuple[int, ...], Fraction]]], space: ParameterSpace) -> Local:
    """Polynomials moved to x ∈ [−1, 1]^n, exact but for one rounding of each coefficient."""
    middle, half = middle_and_half(space)
    moved = []
    for terms in parts:
        out: dict[tuple[int, ...], Fraction] = {}
        for exponents, coefficient in terms:
            for k in product(*[range(e + 1) for e in exponents]):
                part = coefficient
                for j, (e, i) in enumerate(zip(exponents, k, strict=True)):
                    part *= comb(e, i) * Fraction(middle[j]) ** (e - i) * Fraction(half[j]) ** i
                out[k] = out.get(k, Fraction(0)) + part
        moved.append(tuple((k, float(c)) for k, c in out.items() if c) or (((0,) * len(middle), 0.0),))
    return Local(moved[0], moved[1], middle, half)


def middle_and_half(space: ParameterSpace) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Middles of the ranges of all scalars, and how far their ends are from there at most."""
    low, high = np.asarray(space.bounds)
    middle = (low + high) / 2
    half = np.maximum(high - middle, middle - low)
    return tuple(middle.tolist()), tuple(half.tolist())


def denominator_range(function: Rational, space: ParameterSpace) -> tuple[float, float]:
    """Ends between which the denominator stays over the box, both of one sign; refused if it may vanish."""
    low, high = 0.0, 0.0
    for cuts in (1, 4, 16, 64):
        low, high = _ends(function, 1, space, cuts)
        if low > 0 or high < 0:
            return low, high
        if (4 * cuts) ** len(space.scalars) > _MOST_CELLS:
            break
    raise InputError(
        f"{function.text} may have a pole in the parameter box: its denominator goes from {low:.3g} to {high:.3g}. "
        "Narrow the ranges of the parameters."
    )


def numerator_bound(function: Rational, space: ParameterSpace) -> float:
    """A bound of the numerator's absolute value over the box."""
    return max(map(abs, _ends(function, 0, space, 1)))


def largest(function: Rational, space: ParameterSpace) -> float:
    """A bound of the function's absolute value over the box."""
    above = numerator_bound(function, space)
    return above if function.polynomial else above / min(map(abs, denominator_range(function, space)))


def _ends(function: Rational, part: int, space: ParameterSpace, cuts: int) -> tuple[float, float]:
    """Bounds of the numerator (0) or denominator (1) over the box, cut into so many cells along each axis."""
    n = len(space.scalars)
    low = np.stack(np.meshgrid(*[np.arange(cuts) / cuts] * n, indexing="ij"), axis=-1).reshape(-1, n)
    bottom, top = function.ends(space.from_unit(low), space.from_unit(low + 1 / cuts))[part]
    return float(np.min(bottom)), float(np.max(top))


def _degree(terms) -> int:
    return max((sum(exponents) for exponents, c in terms if c), default=0)


def _values(terms: Terms, x: np.ndarray) -> np.ndarray:
    """A polynomial at (n, n_scalars), real or complex: (n,)."""
    out = np.zeros(len(x), dtype=np.result_type(x, float))
    for exponents, coefficient in terms:
        out += coefficient * np.prod(x ** np.array(exponents), axis=1)
    return out


def _enclose(terms: Terms, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of a polynomial over boxes, monomial by monomial; rounding of the sum is outside of them."""
    total, size = np.zeros((2, len(low))), np.zeros(len(low))
    for exponents, coefficient in terms:
        range_ = np.full((2, len(low)), coefficient)
        for j, power in enumerate(exponents):
            if power:
                range_ = _multiplied(range_, _power(low[:, j], high[:, j], power))
        total += range_
        size += np.abs(range_).max(axis=0)
    rounding = np.finfo(float).eps * (len(terms) + 4 * max((len(e) for e, _ in terms), default=0)) * size
    return total[0] - rounding, total[1] + rounding


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
