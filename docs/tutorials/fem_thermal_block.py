"""
Matrices from scikit-fem
========================

Heat in four blocks of any material: matrices of a finite-element code become a surrogate whose error bound is proven.
"""

# %%
# scikit-fem assembles one matrix for each block. Any code will do that can write A(μ) = Σ θ_q(μ) A_q.

import numpy as np
import skfem as fem
from skfem.models.poisson import laplace, unit_load

import parasol as ps

mesh = fem.MeshTri().refined(5)
basis = fem.Basis(mesh, fem.ElementTriP1())
x, y = mesh.p[:, mesh.t].mean(axis=1)  # centres of the triangles
quarters = [np.flatnonzero(2 * (x > 0.5) + (y > 0.5) == i) for i in range(4)]
free = basis.complement_dofs(basis.get_dofs())  # the boundary is held at 0
A = [laplace.assemble(basis.with_elements(quarter))[free][:, free] for quarter in quarters]
f = unit_load.assemble(basis)[free]

# %%
# The factors are symbols, so that parameters are matched by name. ``product`` is the inner product of errors: here the
# energy of all blocks, so that errors are those of the gradient (H¹ seminorm), not of the values. ``points``,
# ``cells`` and ``free`` are for pictures: they say where the unknowns stand on the mesh.

k = ps.parameters(k1=(0.1, 1), k2=(0.1, 1), k3=(0.1, 1), k4=(0.1, 1))
model = ps.AffineModel(
    dict(zip(k, A, strict=True)), {1: f}, points=mesh.p.T, cells=mesh.t.T, free=free,
    product=sum(A), quantities={"mean": f}, name="thermal block",
)  # fmt: skip
print(ps.verify(model))
surrogate = ps.learn(model, 1e-4)

# %%
# The matrices are symmetric and positive semidefinite and the factors positive: the least of their ratios bounds the
# stability constant, and every bound is *proven*. Against solves by NumPy:

mus = model.sample(20, rng=1)
answers = surrogate(mus)
truth = np.array([np.linalg.solve(sum(m * a.toarray() for m, a in zip(mu, A, strict=True)), f) for mu in mus])
norm = lambda v: np.sqrt(np.sum(v * (v @ sum(A)), axis=1))  # noqa: E731
errors = norm(answers.values[:, free] - truth) / norm(truth)
print(
    f"{surrogate.facts['learn']['solves']} full solves, error at most {errors.max():.1e}, proven {answers.bound.max():.1e}"
)
assert set(answers.bound_kind) == {"proven"}
assert np.all(errors <= answers.bound)
assert answers.bound.max() <= 1e-4
assert np.allclose(answers.quantities["mean"], truth @ f, rtol=1e-6)

# %%
surrogate(k1=0.1, k2=1.0, k3=0.5, k4=0.2).plot()

# %%
# The page, on the mesh of scikit-fem:

ps.explore(surrogate)
