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
from parasol.pde.parameters import FunctionParameter


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


class Divergence(sympy.Expr):
    """Sum of the derivatives of components along their coordinates, not carried out: the flux remains known.

    `.doit()` carries them out.

    >>> x = sympy.Symbol("x", real=True)
    >>> u = sympy.Function("u")(x)
    >>> (-3 * Divergence((x * u.diff(x),), (x,))).doit()
    -3*x*Derivative(u(x), (x, 2)) - 3*Derivative(u(x), x)
    """

    is_commutative = True

    def __new__(cls, components: Iterable[sympy.Expr], coordinates: Iterable[sympy.Symbol]):
        """Keep the components with their coordinates."""
        return super().__new__(cls, sympy.Tuple(*components), sympy.Tuple(*coordinates))

    @property
    def components(self) -> sympy.Tuple:
        """The components of the flux."""
        return self.args[0]  # type: ignore[return-value]

    @property
    def coordinates(self) -> sympy.Tuple:
        """The coordinate of each component."""
        return self.args[1]  # type: ignore[return-value]

    def doit(self, **hints) -> sympy.Expr:
        """The divergence with its derivatives carried out, inside each region."""
        components = self.components.doit(**hints) if hints.get("deep", True) else self.components
        return sympy.Add(*[c.diff(v) for c, v in zip(components, self.coordinates, strict=True)])

    def _eval_derivative(self, s: sympy.Symbol) -> sympy.Expr:
        return Divergence([c.diff(s) for c in self.components], self.coordinates)

    def _eval_subs(self, old, new):
        if old in self.coordinates and not isinstance(new, sympy.Symbol):  # a value at one place
            return self.doit().subs(old, new)
        return None

    def _sympystr(self, printer) -> str:
        return f"div({', '.join(printer.doprint(c) for c in self.components)})"

    def _latex(self, printer) -> str:
        return rf"\nabla\cdot\left({', '.join(printer.doprint(c) for c in self.components)}\right)"


def divergence(vector: Sequence[sympy.Expr], *variables: sympy.Symbol) -> sympy.Expr:
    """Sum of the derivatives of each component along its own coordinate (those of the vector's unknown unless given).

    With an unknown function inside, the derivatives are carried out when the equation is read (`.doit()`), so that the flux
    remains known: its normal component is continuous at the interfaces of regions, see `by_region`. Coefficients by pieces
    whose places are known (Piecewise, Heaviside, sign) make regions of the domain; others that jump are refused.

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
    for g in sorted(set().union(*[c.atoms(FunctionParameter) for c in components]), key=str):
        g.diff(variables[0])  # which is refused; SymPy does not ask g where it stands in a sum
    kept = Divergence(components, variables)
    if not kept.has(AppliedUndef):
        return kept.doit()
    for part in jumping_parts(kept.components, variables):
        # pieces between places that are known become regions when the problem is declared
        where = _switch(part)
        if where is None or where.has(AppliedUndef):
            raise InputError(lost_flux(part))
    return kept


def _switch(part: sympy.Expr) -> sympy.Basic | None:
    """On what it depends where the pieces are, of which regions can be made; None for other functions that jump."""
    if isinstance(part, sympy.Heaviside | sympy.sign):
        return part.args[0]
    return sympy.Tuple(*[c for _, c in part.args]) if isinstance(part, sympy.Piecewise) else None


def lost_flux(part: sympy.Expr) -> str:
    """Why a flux with this part, which jumps, is refused."""
    regions = "" if part.has(AppliedUndef) else ", or divide the domain, domain.regions(...), and use ps.by_region(...)"
    return (
        f"the flux under the divergence contains {part}, which can jump: the condition that the flux is continuous at the "
        f"interface of two materials would be lost. {INSTEAD}{regions}."
    )


def known_carried_out(expression: sympy.Basic) -> sympy.Basic:
    """The expression with the divergences of known functions carried out, as after an exact solution is put in."""
    known = [part for part in expression.atoms(Divergence) if not part.has(AppliedUndef)]
    return expression.xreplace({part: part.doit() for part in known})


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
