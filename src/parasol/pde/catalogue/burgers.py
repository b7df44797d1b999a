"""Viscous Burgers equation: a smooth step that travels along a line."""

import numpy as np
from sympy import tanh

import parasol as ps

(x,) = ps.coordinates("x")
t = ps.time()
(nu,) = ps.parameters(nu=(0.02, 0.2, "log"))
u = ps.unknown("u", x, t)

_step = 0.5 - 0.4 * tanh(0.4 * (x - 0.5 * t) / (2 * nu))

problem = ps.Problem(
    name="burgers",
    domain=ps.Box(-1.0, 1.5),
    equation=ps.Eq(u.diff(t) + u * u.diff(x), nu * u.diff(x, 2)),
    boundary=ps.Dirichlet(_step),
    initial=_step.subs(t, 0),
    times=np.linspace(0, 1, 11),
    exact=_step,
)
