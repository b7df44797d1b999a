"""Static Schrödinger equation in the unit ball, its boundary values a random function (the paper's third experiment)."""

import parasol as ps

x, y, z = ps.coordinates("x y z")
u = ps.unknown("u", x, y, z)
f = ps.FunctionParameter("f", ps.SphereField(degree=8), on="boundary")

problem = ps.Problem(
    name="schrodinger",
    domain=ps.Ball((0.0, 0.0, 0.0), 1.0),
    equation=ps.Eq(-ps.laplacian(u) + u, 0),
    boundary=ps.Dirichlet(f),
    settings={"paper": ps.Settings(n_nodes=2276, n_boundary=585, kernel=ps.space.IMQ(1.0), degree=-1, stencil_size=50)},
)
