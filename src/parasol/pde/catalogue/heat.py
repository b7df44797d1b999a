"""Heat in a square with cold walls: one mode that fades."""

import numpy as np
from sympy import exp, pi, sin

import parasol as ps

x, y = ps.coordinates("x y")
t = ps.time()
(kappa,) = ps.parameters(kappa=(0.01, 1.0, "log"))
u = ps.unknown("u", x, y, t)

_mode = sin(pi * x) * sin(pi * y)

problem = ps.Problem(
    name="heat",
    domain=ps.Box((0.0, 0.0), (1.0, 1.0)),
    equation=ps.Eq(u.diff(t), kappa * ps.laplacian(u)),
    boundary=ps.Dirichlet(0),
    initial=_mode,
    times=np.linspace(0, 0.5, 11),
    exact=exp(-2 * pi**2 * kappa * t) * _mode,
)
