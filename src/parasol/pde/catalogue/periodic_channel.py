"""A wave carried along a channel that closes on itself: periodic in x, walls below and above."""

from sympy import cos, pi, sin

import parasol as ps

x, y = ps.coordinates("x y")
(speed,) = ps.parameters(speed=(0.0, 10.0))
u = ps.unknown("u", x, y)

_exact = sin(2 * pi * x) * cos(pi * y) + y


def _operator(v):
    return -ps.laplacian(v, x, y) + speed * (1 - y**2) * v.diff(x)


problem = ps.Problem(
    name="periodic-channel",
    domain=ps.Box((0.0, -1.0), (1.0, 1.0), periodic=("x",)),
    equation=ps.Eq(_operator(u), _operator(_exact)),
    boundary={"bottom": ps.Dirichlet(_exact), "top": ps.Neumann(_exact.diff(y))},
    exact=_exact,
)
