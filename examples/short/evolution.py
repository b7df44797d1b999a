"""
A front in time
===============

Time and nonlinearity are declared like everything else: a front that eats its way through a plate with a hole.
"""

import numpy as np

import parasol as ps

x, y = ps.coordinates("x y")
t = ps.time()
(speed,) = ps.parameters(speed=(1.0, 20.0))
u = ps.unknown("u", x, y, t)
plate = ps.Box((0, 0), (2, 1)) - ps.Disc((1, 0.5), 0.25)

problem = ps.Problem(
    domain=plate,
    equation=ps.Eq(u.diff(t), 0.02 * ps.laplacian(u) + speed * u * (1 - u)),
    boundary={"left": ps.Dirichlet(1), "*": ps.Neumann(0)},
    initial=(1 - x / 2) ** 12,
    times=np.linspace(0, 1, 11),
)
model = ps.discretize(problem, ps.scatter(plate, n_nodes=1200))
evolution = model.solve([10.0])
burnt = [float(np.mean(field > 0.5)) for field in evolution.fields["u"]]
print(f"{evolution.n_steps} steps of {evolution.integrator}; burnt: " + " ".join(f"{part:.0%}" for part in burnt))
print(f"u at (1.5, 0.5), t = 0.75: {evolution.at(0.75).at([[1.5, 0.5]])[0]:.4f}")
assert burnt == sorted(burnt)
assert evolution.values.min() + 1e-3 >= 0
assert evolution.values.max() <= 1 + 1e-3
