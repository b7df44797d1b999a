"""
Heat in time by scikit-fem
==========================

Heating a plate of two materials, in time: scikit-fem's mass and stiffness matrices, the bound by fresh solves.
"""

import tempfile
from pathlib import Path

import numpy as np
import skfem as fem
from scipy.sparse.linalg import expm
from skfem.helpers import dot, grad

import parasol as ps

PAGE = Path(tempfile.gettempdir()) / "heat.html"

mesh = fem.MeshTri.init_sqsymmetric().refined(3)
basis = fem.Basis(mesh, fem.ElementTriP1())
stiffness = fem.BilinearForm(lambda u, v, w: ((w.x[0] > 0.5) == w["right"]) * dot(grad(u), grad(v)))
mass = fem.BilinearForm(lambda u, v, w: u * v).assemble(basis)
heat = fem.LinearForm(lambda v, w: 1.0 * v).assemble(basis)
free = basis.complement_dofs(basis.get_dofs())  # the edge is held at 0
left, right = (stiffness.assemble(basis, right=i)[free][:, free] for i in (0, 1))
M, f = mass[free][:, free], heat[free]

a, b = ps.parameters(a=(0.1, 1.0), b=(0.1, 1.0))  # conductivities
model = ps.AffineModel(
    {a: left, b: right},
    {1: f},
    mass=M,
    times=np.linspace(0, 1, 6),  # from zero, as no initial= is given
    points=mesh.p.T,
    cells=mesh.t.T,
    free=free,
    product=M,
    quantities={"mean": f},
    name="heating",
)
surrogate = ps.learn(model, 1e-3)
ps.explore(surrogate, PAGE)

if __name__ == "__main__":
    mus = model.sample(10, rng=4)
    answers = surrogate(mus)
    errors = []
    for mu, mean in zip(mus, answers.quantities["mean"], strict=True):
        K = (mu[0] * left + mu[1] * right).toarray()
        steady = np.linalg.solve(K, f)
        exact = steady - expm(-np.linalg.solve(M.toarray(), K)) @ steady  # at t = 1
        errors.append(abs(mean[-1] / (exact @ f) - 1))
    print(
        f"{surrogate.facts['learn']['solves']} trajectories; mean temperature at t = 1 off by {max(errors):.0e} at most; "
        f"the field by {answers.estimate.max():.0e}, {answers.bound_kind[0]} bound {answers.bound.max():.0e}"
    )
    print(f"the page is {PAGE}")
    assert surrogate.facts["learn"]["met"]
    assert max(errors) < 1e-3
    assert answers.bound.max() < 1e-3
