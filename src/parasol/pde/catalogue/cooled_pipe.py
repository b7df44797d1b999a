"""Heat conduction through the wall of a pipe: hot inside, cooled outside at a rate given by the Biot number."""

from sympy import log, sqrt

import parasol as ps

x, y = ps.coordinates("x y")
(biot,) = ps.parameters(biot=(0.1, 10.0, "log"))
u = ps.unknown("u", x, y)

INNER, OUTER = 0.4, 1.0
_slope = -biot / (1 / OUTER + biot * log(OUTER / INNER))

problem = ps.Problem(
    name="cooled-pipe",
    domain=ps.Disc(radius=OUTER).named("outside") - ps.Disc(radius=INNER).named("inside"),
    equation=ps.Eq(-ps.laplacian(u), 0),
    boundary={"inside": ps.Dirichlet(1), "outside": ps.Robin(biot, 1, 0)},
    quantities={"heat loss": ps.Flux("outside", -1), "skin": ps.Average("outside")},
    exact=1 + _slope * log(sqrt(x**2 + y**2) / INNER),
)
