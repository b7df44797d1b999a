"""Diffusion whose conductivity grows with the temperature, on a star, with a known solution."""

from sympy import cos, sin

import parasol as ps

x, y = ps.coordinates("x y")
(strength,) = ps.parameters(strength=(0.0, 5.0))
u = ps.unknown("u", x, y)

_exact = sin(2 * x) * cos(y) + x / 2


def _operator(v):
    return -ps.divergence([(1 + strength * v**2) * g for g in ps.gradient(v, x, y)], x, y)


problem = ps.Problem(
    name="nonlinear-diffusion",
    domain=ps.Star("1 + 0.2*cos(4*theta)"),
    equation=ps.Eq(_operator(u), _operator(_exact)),
    boundary=ps.Dirichlet(_exact),
    exact=_exact,
)
