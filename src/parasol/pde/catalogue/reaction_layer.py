"""Reaction and diffusion on a line: the thinner the layer, the smaller the parameter."""

from sympy import cosh, sqrt

import parasol as ps

(x,) = ps.coordinates("x")
(nu,) = ps.parameters(nu=(1e-3, 1.0, "log"))
u = ps.unknown("u", x)

problem = ps.Problem(
    name="reaction-layer",
    domain=ps.Box(-1.0, 1.0),
    equation=ps.Eq(-nu * u.diff(x, 2) + u, 1),
    boundary=ps.Dirichlet(0),
    exact=1 - cosh(x / sqrt(nu)) / cosh(1 / sqrt(nu)),
)
