"""Boundary conditions: a value, a slope, or both."""

from __future__ import annotations

from dataclasses import dataclass

import sympy

from parasol.expressions import to_expression
from parasol.pde.equation import normal
from parasol.pde.vectors import gradient


@dataclass(frozen=True)
class Dirichlet:
    """u = value on the boundary; the value is a number or an expression in coordinates and parameters."""

    value: object = 0

    def equation(self, u: sympy.Expr) -> sympy.Expr:
        """The condition as an expression that vanishes."""
        return u - to_expression(self.value)


@dataclass(frozen=True)
class Neumann:
    """n·grad u = value, with n the outward normal; `ps.normal(x, y)` gives its components for use in the value."""

    value: object = 0

    def equation(self, u: sympy.Expr) -> sympy.Expr:
        """The condition as an expression that vanishes."""
        return _normal_derivative(u) - to_expression(self.value)


@dataclass(frozen=True)
class Robin:
    """alpha u + beta n·grad u = value."""

    alpha: object
    beta: object
    value: object = 0

    def equation(self, u: sympy.Expr) -> sympy.Expr:
        """The condition as an expression that vanishes."""
        alpha, beta, value = (to_expression(v) for v in (self.alpha, self.beta, self.value))
        return alpha * u + beta * _normal_derivative(u) - value


@dataclass(frozen=True)
class Jump:
    """At the interface of two regions (first, second): u in the first less u in the second is `value`, and Σ n·F = `flux`.

    F is such that the equation is −div F = f, n the normal out of each region: the fluxes of both sides add up to `flux`.
    """

    value: object = 0
    flux: object = 0


def _normal_derivative(u) -> sympy.Expr:
    slopes = gradient(u)
    return slopes.dot(normal(*slopes.coordinates))
