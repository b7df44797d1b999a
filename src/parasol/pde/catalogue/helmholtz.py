"""Helmholtz equation with an anisotropic diffusion on a flower-shaped domain (the paper's first experiment)."""

from sympy import sin

import parasol as ps

x, y = ps.coordinates("x y")
a, k = ps.parameters(a=(0.1, 4.0, "log"), k=(0.0, 2.0))
u = ps.unknown("u", x, y)

problem = ps.Problem(
    name="helmholtz",
    domain=ps.Star("0.8 + 0.1*(sin(6*theta) + sin(3*theta))"),
    equation=ps.Eq(-u.diff(x, 2) - a * u.diff(y, 2) - k * u, -10 * sin(8 * x * (y - 1))),
    boundary=ps.Dirichlet(0),
    quantities={"average": ps.Average(), "at the centre": ps.PointValue((0.0, 0.0))},
    settings={
        "paper": ps.Settings(
            n_nodes=1036, n_boundary=177, method="front", kernel=ps.space.IMQ(3.0), degree=-1, stencil_size=50
        )
    },
)
