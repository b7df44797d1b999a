"""A composite plate: stiff fibres in a soft matrix, pulled; how stiff the plate is for any ratio of the two materials."""

import numpy as np

import parasol as ps

x, y = ps.coordinates("x y")
p, q = ps.unknowns("p q", x, y)  # displacements
(ratio,) = ps.parameters(ratio=(1.0, 100.0))  # stiffness of the fibres over that of the matrix

centres = [(0.25, 0.25), (0.75, 0.27), (0.27, 0.75), (0.74, 0.74)]
plate = ps.Box((0, 0), (1, 1)).regions(**{f"fibre{i}": ps.Disc(centre, 0.18) for i, centre in enumerate(centres)})
stiffness = ps.by_region(**{f"fibre{i}": ratio for i in range(len(centres))}, otherwise=1)
trace, shear = 1.5 * stiffness * (p.diff(x) + q.diff(y)), stiffness * (p.diff(y) + q.diff(x))
stress = [(trace + 2 * stiffness * p.diff(x), shear), (shear, trace + 2 * stiffness * q.diff(y))]

problem = ps.Problem(
    name="composite plate",
    domain=plate,
    equation=[ps.Eq(-ps.divergence(row, x, y), 0) for row in stress],
    boundary={
        "left": {p: ps.Dirichlet(0), q: ps.NormalFlux(0)},
        "right": {p: ps.Dirichlet(0.01), q: ps.NormalFlux(0)},
        "bottom": {p: ps.NormalFlux(0), q: ps.Dirichlet(0)},
        "top": {p: ps.NormalFlux(0), q: ps.NormalFlux(0)},
    },
)

if __name__ == "__main__":
    model = ps.discretize(problem, ps.scatter(plate, n_nodes=2000), method="stencils")
    independent = ps.discretize(problem, ps.scatter(plate, n_nodes=400), method="elements")
    points = np.random.default_rng(0).uniform(0.02, 0.98, (200, 2))
    for value in (1.0, 10.0, 100.0):
        one, other = (m.solve({"ratio": value}).at(points) for m in (model, independent))
        gap = np.linalg.norm(one - other) / np.linalg.norm(other)
        print(
            f"fibres {value:g} times as stiff: the top moves down by {-one[1].min():.5f}, elements agree to {gap:.0e}"
        )
        assert gap < 5e-3
