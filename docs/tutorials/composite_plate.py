"""
A composite plate
=================

Stiff fibres in a soft matrix, pulled at one side: two displacements, five regions, and how stiff the plate is for any ratio
of the two materials.
"""

# %%
# A domain has named regions, a coefficient has a value for each, and what stands under ``divergence`` is the stress: it is
# continuous across the interfaces without a further word.

import numpy as np

import parasol as ps

x, y = ps.coordinates("x y")
p, q = ps.unknowns("p q", x, y)  # displacements
(ratio,) = ps.parameters(ratio=(1.0, 100.0, "log"))  # stiffness of the fibres over that of the matrix

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
    quantities={"top": ps.PointValue((0.5, 1), of="q")},
)

# %%
# Two discretisations that share nothing
# --------------------------------------
# Stencils of radial basis functions and finite elements read the same equation. Where they agree, both are probably right.

stencils = ps.discretize(problem, ps.scatter(plate, n_nodes=2000), method="stencils")
elements = ps.discretize(problem, ps.scatter(plate, n_nodes=400), method="elements")
points = np.random.default_rng(0).uniform(0.02, 0.98, (200, 2))
for value in (1.0, 10.0, 100.0):
    one, other = (m.solve({"ratio": value}).at(points) for m in (stencils, elements))
    gap = np.linalg.norm(one - other) / np.linalg.norm(other)
    print(f"fibres {value:g} times as stiff: stencils and elements agree to {gap:.0e}")
    assert gap < 5e-3

# %%
# The surrogate
# -------------
# A model of one's own choice is learned as it is; errors of elements are measured in L2 over the plate.

surrogate = ps.learn(model=elements, tolerance=1e-3)
print(f"{surrogate.facts['learn']['solves']} full solves, norm: {surrogate.facts['learn']['norm']}")
for value in (1.0, 10.0, 100.0):
    answer, truth = surrogate(ratio=value), elements.solve({"ratio": value})
    error = abs(answer.quantities["top"] / truth.quantities["top"] - 1)
    print(
        f"ratio {value:g}: the middle of the top moves by {answer.quantities['top']:.6f}, off by {error:.0e}; "
        f"whole field {answer.bound_kind} to {answer.bound:.0e}"
    )
    assert answer.bound <= 1e-3
    assert error < 1e-3

# %%
surrogate(ratio=20.0).plot()

# %%
# The page shows both displacements, with the interfaces of the regions.

ps.explore(surrogate)
