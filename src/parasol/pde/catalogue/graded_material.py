"""Diffusion in a kidney-shaped body whose conductivity varies in space, with a heat flux through its rim."""

from sympy import cos, exp

import parasol as ps

x, y = ps.coordinates("x y")
nx, ny = ps.normal(x, y)
(a,) = ps.parameters(a=(0.0, 3.0))
u = ps.unknown("u", x, y)

_exact = exp(x) * cos(2 * y)


def _operator(v):
    conductivity = 1 + a * (x**2 + y**2)
    return -ps.divergence([conductivity * g for g in ps.gradient(v, x, y)], x, y) + v


problem = ps.Problem(
    name="graded-material",
    domain=ps.Curve(
        [(1.0, 0.0), (0.8, 0.6), (0.1, 0.75), (-0.7, 0.65), (-1.0, 0.1), (-0.75, -0.45), (-0.1, -0.3), (0.65, -0.5)]
    ),
    equation=ps.Eq(_operator(u), _operator(_exact)),
    boundary=ps.Neumann(nx * _exact.diff(x) + ny * _exact.diff(y)),
    exact=_exact,
)
