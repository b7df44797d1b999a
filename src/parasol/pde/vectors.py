"""Gradient, divergence and Laplacian of expressions, and vectors that multiply by scalars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import sympy
from sympy.core.function import AppliedUndef

from parasol.errors import InputError
from parasol.expressions import to_expression
from parasol.pde.equation import Time
from parasol.pde.jumps import INSTEAD, jumping_parts


class Vector(tuple):
    """The components of a vector along its `coordinates`: a tuple that can be added, multiplied by scalars and dotted.

    >>> x, y = sympy.symbols("x y", real=True)
    >>> 2 * Vector((x, y), (x, y)) + (1, 0)
    (2*x + 1, 2*y)
    >>> sympy.Matrix([[0, 1], [1, 0]]) * Vector((x, y), (x, y))
    (y, x)
    """

    coordinates: tuple[sympy.Symbol, ...]
    __array_ufunc__ = None  # NumPy's numbers leave the product to us

    def __new__(cls, components: Iterable, coordinates: Iterable[sympy.Symbol]):
        """Put the components together."""
        self = super().__new__(cls, [to_expression(c) for c in components])
        self.coordinates = tuple(coordinates)
        if len(self) != len(self.coordinates):
            raise InputError(f"a vector has {len(self)} components but {len(self.coordinates)} coordinates.")
        return self

    def __getnewargs__(self):
        return tuple(self), self.coordinates

    def dot(self, other: Sequence) -> sympy.Expr:
        """The scalar product, for instance with the normal or with a velocity."""
        return sympy.Add(*[a * b for a, b in zip(self, self._like(other), strict=True)])

    def __mul__(self, factor):
        if isinstance(factor, tuple | list):
            raise InputError("two vectors are multiplied. Write a.dot(b) for their scalar product.")
        if isinstance(factor, sympy.MatrixBase):
            raise InputError("a vector stands left of a matrix. Write matrix * vector.")
        factor = to_expression(factor)
        return Vector([factor * c for c in self], self.coordinates)

    def __rmul__(self, factor):
        if isinstance(factor, np.ndarray) and factor.ndim == 2:
            factor = sympy.Matrix(factor)
        if isinstance(factor, sympy.MatrixBase):
            return Vector(factor * sympy.Matrix(self), self.coordinates)
        return self * factor

    __rmatmul__ = __rmul__

    def __truediv__(self, factor):
        return self * (1 / to_expression(factor))

    def __neg__(self):
        return self * -1

    def __add__(self, other):
        return Vector([a + b for a, b in zip(self, self._like(other), strict=True)], self.coordinates)

    def __radd__(self, other):
        return self if isinstance(other, int) and other == 0 else self + other  # sum() starts from 0

    def __sub__(self, other):
        return self + -self._like(other)

    def __rsub__(self, other):
        return -self + other

    def _like(self, other) -> Vector:
        if not isinstance(other, Sequence | sympy.MatrixBase | sympy.Tuple) or len(other) != len(self):
            raise InputError(f"{other} is not a vector of {len(self)} components.")
        if isinstance(other, Vector) and other.coordinates != self.coordinates:
            raise InputError(f"{other} has the coordinates {other.coordinates}, not {self.coordinates}.")
        return Vector(other, self.coordinates)


def gradient(u: sympy.Expr, *variables: sympy.Symbol) -> Vector:
    """First derivatives along the coordinates (those of the unknown unless given), as a vector.

    >>> x, y = sympy.symbols("x y", real=True)
    >>> 3 * gradient(x**2 + y, x, y)
    (6*x, 3)
    """
    variables = variables or _variables([u], "gradient(f, x, y)")
    return Vector([to_expression(u).diff(v) for v in variables], variables)


def divergence(vector: Sequence[sympy.Expr], *variables: sympy.Symbol) -> sympy.Expr:
    """Sum of the derivatives of each component along its own coordinate (those of the vector's unknown unless given).

    A coefficient that jumps is refused: its derivative is not a function, and the flux through the jump would be lost.

    >>> x, y = sympy.symbols("x y", real=True)
    >>> divergence((x**2, y), x, y)
    2*x + 1
    >>> divergence(x * gradient(x + y**2, x, y))
    2*x + 1
    """
    if isinstance(vector, str) or not isinstance(vector, Sequence | sympy.MatrixBase | sympy.Tuple | np.ndarray):
        raise InputError(f"divergence takes a vector, got {vector}. Write divergence(k*ps.gradient(u)).")
    components = [to_expression(c) for c in vector]
    variables = variables or (
        vector.coordinates if isinstance(vector, Vector) else _variables(components, "divergence((f, g), x, y)")
    )
    if len(components) != len(variables):
        raise InputError(f"divergence got {len(components)} components for {len(variables)} coordinates {variables}.")
    for component in components:
        jumps = jumping_parts(component, variables) if component.has(AppliedUndef) else []
        if jumps:
            raise InputError(
                f"the flux under the divergence contains {jumps[0]}, which can jump: the condition that the flux is "
                f"continuous at the interface of two materials would be lost. {INSTEAD}."
            )
    return sympy.Add(*[component.diff(v) for component, v in zip(components, variables, strict=True)])


def laplacian(u: sympy.Expr, *variables: sympy.Symbol) -> sympy.Expr:
    """Sum of the second derivatives along the coordinates (those of the unknown unless given).

    >>> x, y = sympy.symbols("x y", real=True)
    >>> laplacian(x**2 + y**2, x, y)
    4
    """
    return sympy.Add(*[to_expression(u).diff(v, 2) for v in variables or _variables([u], "laplacian(f, x, y)")])


def _variables(expressions: Sequence[sympy.Expr], example: str) -> tuple[sympy.Symbol, ...]:
    unknowns = set().union(*[to_expression(e).atoms(AppliedUndef) for e in expressions])
    coordinates = {tuple(v for v in u.args if not isinstance(v, Time)) for u in unknowns}
    if len(coordinates) != 1:
        listed = ", ".join(map(str, expressions))
        raise InputError(f"the coordinates to differentiate {listed} by are not known. Name them: {example}.")
    return coordinates.pop()
