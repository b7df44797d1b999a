"""Convection and diffusion in a square: the flow runs into a wall and leaves a layer as thin as the diffusivity."""

from sympy import exp, pi, sin, sqrt

import parasol as ps

x, y = ps.coordinates("x y")
(nu,) = ps.parameters(nu=(0.05, 1.0, "log"))
u = ps.unknown("u", x, y)

_root = sqrt(1 / (4 * nu**2) + pi**2)
_plus, _minus = 1 / (2 * nu) + _root, 1 / (2 * nu) - _root
_profile = (exp(_plus * (x - 1) + _minus) - exp(_minus * x)) / (exp(_minus - _plus) - 1)

problem = ps.Problem(
    name="boundary-layer",
    domain=ps.Box((0.0, 0.0), (1.0, 1.0)),
    equation=ps.Eq(-nu * ps.laplacian(u) + u.diff(x), 0),
    boundary={"left": ps.Dirichlet(sin(pi * y)), "*": ps.Dirichlet(0)},
    exact=_profile * sin(pi * y),
)
