"""A wave carried through a periodic box by a wind, fading as it goes."""

import numpy as np
from sympy import cos, exp, pi, sin

import parasol as ps

x, y = ps.coordinates("x y")
t = ps.time()
wind, kappa = ps.parameters(wind=(-1.0, 1.0), kappa=(1e-3, 1e-1, "log"))
u = ps.unknown("u", x, y, t)

problem = ps.Problem(
    name="advection-diffusion",
    domain=ps.Box((0.0, 0.0), (1.0, 1.0), periodic=("x", "y")),
    equation=ps.Eq(u.diff(t) + wind * u.diff(x) + u.diff(y) / 2, kappa * ps.laplacian(u)),
    initial=sin(2 * pi * x) * cos(2 * pi * y),
    times=np.linspace(0, 1, 11),
    exact=exp(-8 * pi**2 * kappa * t) * sin(2 * pi * (x - wind * t)) * cos(2 * pi * (y - t / 2)),
)
