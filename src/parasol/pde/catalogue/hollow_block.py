"""Reaction and diffusion in a block with a spherical cavity, insulated in the cavity up to a known flux."""

from sympy import cos, sin

import parasol as ps

x, y, z = ps.coordinates("x y z")
nx, ny, nz = ps.normal(x, y, z)
(reaction,) = ps.parameters(reaction=(0.0, 5.0))
u = ps.unknown("u", x, y, z)

_exact = sin(x + 2 * y) * cos(z)
_flux = sum(n * g for n, g in zip((nx, ny, nz), ps.gradient(_exact, x, y, z), strict=True))

problem = ps.Problem(
    name="hollow-block",
    domain=ps.Box((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0)) - ps.Ball((0.0, 0.0, 0.0), 0.5).named("cavity"),
    equation=ps.Eq(-ps.laplacian(u) + reaction * u, (6 + reaction) * _exact),
    boundary={"cavity": ps.Neumann(_flux), "*": ps.Dirichlet(_exact)},
    exact=_exact,
)
