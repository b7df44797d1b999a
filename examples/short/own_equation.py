"""
Another equation in ten lines
=============================

Another equation on another domain in ten lines: heat in a plate with two holes, one of them cooled by a fluid.
"""

from sympy import exp

import parasol as ps

x, y = ps.coordinates("x y")
biot, source = ps.parameters(biot=(0.1, 100.0, "log"), source=(0.0, 5.0))
u = ps.unknown("u", x, y)
plate = ps.Box((0, 0), (3, 1)) - ps.Disc((0.8, 0.5), 0.2).named("hot") - ps.Disc((2.2, 0.5), 0.2).named("cooled")
problem = ps.Problem(
    domain=plate,
    equation=ps.Eq(-ps.divergence([(1 + x / 3) * g for g in ps.gradient(u)], x, y), source * exp(-x)),
    boundary={"hot": ps.Dirichlet(1), "cooled": ps.Robin(biot, 1, 0), "*": ps.Neumann(0)},
)

coarse, fine = (
    ps.discretize(problem, ps.scatter(plate, n_nodes=n, spacing=ps.space.feature_spacing(plate))) for n in (1000, 4000)
)
mu = {"biot": 10.0, "source": 1.0}
probe = [[1.5, 0.5]]
answer, check = coarse.solve(mu).at(probe)[0], fine.solve(mu).at(probe)[0]
print(f"u at the middle of the plate: {answer:.6f} with 1000 nodes, {check:.6f} with 4000")
assert abs(answer - check) < 5e-4
