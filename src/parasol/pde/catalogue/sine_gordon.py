"""Damped sine-Gordon equation: a perturbed line soliton in a box with free walls (the paper's second experiment)."""

import numpy as np
from sympy import atan, exp, sech, sin

import parasol as ps

x, y = ps.coordinates("x y")
t = ps.time()
beta, rho = ps.parameters(beta=(0.01, 0.1), rho=(-2.0, -0.2))
u = ps.unknown("u", x, y, t)

problem = ps.Problem(
    name="sine-gordon",
    domain=ps.Box((-7.0, -7.0), (7.0, 7.0)),
    equation=ps.Eq(u.diff(t, 2) + beta * u.diff(t), ps.laplacian(u) + rho * sin(u)),
    boundary=ps.Neumann(0),
    initial=(4 * atan(exp(x + 1 - 2 * sech(y + 7) - 2 * sech(y - 7))), 0),
    times=np.linspace(0, 10, 101),
    settings={
        "default": ps.Settings(n_nodes=57**2, method="lattice", degree=4, step=0.05),
        "paper": ps.Settings(
            n_nodes=57**2,
            method="lattice",
            kernel=ps.space.IMQ(1.0),
            degree=-1,
            stencil_size=25,
            neumann="one-sided",
            step=0.05,
        ),
    },
)
