"""Gray-Scott system: two substances that react and diffuse, and make patterns.

The ranges stay within one regime: beyond them lies the border where the spot dies out, and a solution no longer depends
continuously on the parameters, so that no surrogate follows it.
"""

import numpy as np
from sympy import exp

import parasol as ps

x, y = ps.coordinates("x y")
t = ps.time()
feed, kill = ps.parameters(feed=(0.03, 0.05), kill=(0.055, 0.06))
u, v = ps.unknowns("u v", x, y, t)

_spot = exp(-80 * ((x - 0.5) ** 2 + (y - 0.5) ** 2))

problem = ps.Problem(
    name="gray-scott",
    domain=ps.Box((0.0, 0.0), (1.0, 1.0), periodic=("x", "y")),
    equation=[
        ps.Eq(u.diff(t), 8e-5 * ps.laplacian(u) - u * v**2 + feed * (1 - u)),
        ps.Eq(v.diff(t), 4e-5 * ps.laplacian(v) + u * v**2 - (feed + kill) * v),
    ],
    initial={"u": 1 - _spot / 2, "v": _spot / 4},
    times=np.linspace(0, 200, 11),
)
