"""
A bracket with a singular corner
================================

A bracket, clamped at its back and loaded at its tip: where it is singular, elements answer instead of stencils.
"""

import parasol as ps

x, y = ps.coordinates("x y")
p, q = ps.unknowns("p q", x, y)  # displacements
load, ratio = ps.parameters(load=(0.5, 2.0), ratio=(0.5, 3.0))  # the second: first Lamé constant over the second

shape = ps.Polygon([(0, 0), (0.3, 0), (0.3, 0.7), (1, 0.7), (1, 1), (0, 1)]) - ps.Disc((0.8, 0.85), 0.06)
bracket = shape.named(back=x <= 0, tip=x >= 1)
trace, shear = ratio * (p.diff(x) + q.diff(y)), p.diff(y) + q.diff(x)
stress = [(trace + 2 * p.diff(x), shear), (shear, trace + 2 * q.diff(y))]

problem = ps.Problem(
    name="bracket",
    domain=bracket,
    equation=[ps.Eq(-ps.divergence(row, x, y), 0) for row in stress],
    boundary={
        "back": {p: ps.Dirichlet(0), q: ps.Dirichlet(0)},
        "tip": {p: ps.NormalFlux(0), q: ps.NormalFlux(-load)},
        "*": {p: ps.NormalFlux(0), q: ps.NormalFlux(0)},
    },
    quantities={"sag": ps.PointValue((1, 1), of="q")},
)

if __name__ == "__main__":
    sags = [
        ps.discretize(problem, ps.scatter(bracket, n_nodes=n), method="elements")
        .solve({"load": 1, "ratio": 1})
        .quantities
        for n in (200, 800)
    ]
    print(f"the tip sags by {-sags[1]['sag']:.4f}; with a quarter of the nodes by {-sags[0]['sag']:.4f}")
    assert abs(sags[0]["sag"] / sags[1]["sag"] - 1) < 0.02
