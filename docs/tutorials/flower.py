"""The equation is the program: Helmholtz on a flower, step by step, every step replaceable."""

from sympy import sin

import parasol as ps

x, y = ps.coordinates("x y")
a, k = ps.parameters(a=(0.1, 4.0), k=(0.0, 2.0))
u = ps.unknown("u", x, y)

helmholtz = ps.Problem(
    domain=ps.Star("0.8 + 0.1*(sin(6*theta) + sin(3*theta))"),
    equation=ps.Eq(-u.diff(x, 2) - a * u.diff(y, 2) - k * u, -10 * sin(8 * x * (y - 1))),
    boundary=ps.Dirichlet(0),
)
nodes = ps.scatter(helmholtz.domain, n_nodes=1036, n_boundary=177, method="front", rng=0)
model = ps.discretize(helmholtz, nodes, kernel=ps.space.IMQ(3.0), degree=-1, stencil_size=50)  # the paper's choices
best = ps.discretize(helmholtz)  # ours

print("A(mu) =", " + ".join(f"{theta}·A{q}" for q, theta in enumerate(model.terms.operator_thetas)))
for solver in (model, best):
    solution = solver.solve([0.927, 1.697])
    print(
        f"{solver.n_nodes} nodes: u in [{solution.values.min():.4f}, {solution.values.max():.4f}], residual {solution.residual_norm:.0e}"
    )
assert [str(theta) for theta in model.terms.operator_thetas] == ["1", "a", "k"]
assert abs(solution.values.max() - 0.2795) < 1e-3
