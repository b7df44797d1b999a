"""A standing wave in a box with free walls."""

import numpy as np
from sympy import cos, pi, sqrt

import parasol as ps

x, y = ps.coordinates("x y")
t = ps.time()
(speed,) = ps.parameters(speed=(0.5, 2.0))
u = ps.unknown("u", x, y, t)

_mode = cos(pi * x) * cos(2 * pi * y)

problem = ps.Problem(
    name="wave",
    domain=ps.Box((0.0, 0.0), (1.0, 1.0)),
    equation=ps.Eq(u.diff(t, 2), speed**2 * ps.laplacian(u)),
    boundary=ps.Neumann(0),
    initial=(_mode, 0),
    times=np.linspace(0, 1, 21),
    exact=cos(sqrt(5) * pi * speed * t) * _mode,
)
