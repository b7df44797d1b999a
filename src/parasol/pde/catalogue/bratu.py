"""Bratu's problem in a disc: heat made by an exponential reaction; no steady state once the rate is above 2."""

from sympy import exp, log, sqrt

import parasol as ps

x, y = ps.coordinates("x y")
(rate,) = ps.parameters(rate=(0.1, 2.5))
u = ps.unknown("u", x, y)

# the lower branch; it meets the upper one in a fold at rate = 2
_b = (4 - rate - 2 * sqrt(4 - 2 * rate)) / rate

problem = ps.Problem(
    name="bratu",
    domain=ps.Disc(),
    equation=ps.Eq(-ps.laplacian(u), rate * exp(u)),
    boundary=ps.Dirichlet(0),
    exact=log(8 * _b / (rate * (1 + _b * (x**2 + y**2)) ** 2)),
)
