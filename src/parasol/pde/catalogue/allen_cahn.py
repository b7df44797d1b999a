"""Allen-Cahn equation: a front between two phases that travels along a channel."""

import numpy as np
from sympy import sqrt, tanh

import parasol as ps

x, y = ps.coordinates("x y")
t = ps.time()
(width,) = ps.parameters(width=(0.1, 0.3))
u = ps.unknown("u", x, y, t)

_front = (1 - tanh((x - 3 * width * t / sqrt(2)) / (2 * sqrt(2) * width))) / 2

problem = ps.Problem(
    name="allen-cahn",
    domain=ps.Box((-1.5, 0.0), (2.5, 1.0)),
    equation=ps.Eq(u.diff(t), width**2 * ps.laplacian(u) + u - u**3),
    boundary={"left": ps.Dirichlet(_front), "right": ps.Dirichlet(_front), "*": ps.Neumann(0)},
    initial=_front.subs(t, 0),
    times=np.linspace(0, 2, 11),
    exact=_front,
)
