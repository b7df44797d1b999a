"""Matrices of scikit-fem to a surrogate whose error bound is proven, and its page: heat in four blocks of any material."""

import tempfile
from pathlib import Path

import numpy as np
import skfem as fem
from skfem.models.poisson import laplace, unit_load

import parasol as ps

PAGE = Path(tempfile.gettempdir()) / "thermal-block.html"

mesh = fem.MeshTri().refined(5)
basis = fem.Basis(mesh, fem.ElementTriP1())
x, y = mesh.p[:, mesh.t].mean(axis=1)  # centres of the triangles
quarters = [np.flatnonzero(2 * (x > 0.5) + (y > 0.5) == i) for i in range(4)]
free = basis.complement_dofs(basis.get_dofs())  # the boundary is held at 0
A = [laplace.assemble(basis.with_elements(quarter))[free][:, free] for quarter in quarters]
f = unit_load.assemble(basis)[free]

k = ps.parameters(k1=(0.1, 1), k2=(0.1, 1), k3=(0.1, 1), k4=(0.1, 1))
model = ps.AffineModel(
    dict(zip(k, A, strict=True)), {1: f}, points=mesh.p.T, cells=mesh.t.T, free=free,
    product=sum(A), quantities={"mean": f}, name="thermal block",
)  # fmt: skip
surrogate = ps.learn(model, 1e-4)
ps.explore(surrogate, PAGE)

if __name__ == "__main__":
    mus = model.sample(20, rng=1)
    answers = surrogate(mus)
    truth = np.array([np.linalg.solve(sum(m * a.toarray() for m, a in zip(mu, A, strict=True)), f) for mu in mus])
    norm = lambda v: np.sqrt(np.sum(v * (v @ sum(A)), axis=1))  # noqa: E731
    errors = norm(answers.values[:, free] - truth) / norm(truth)
    print(
        f"{surrogate.facts['learn']['solves']} full solves, error at most {errors.max():.1e}, proven {answers.bound.max():.1e}"
    )
    print(f"the page is {PAGE}")
    assert set(answers.bound_kind) == {"proven"}
    assert np.all(errors <= answers.bound)
    assert answers.bound.max() <= 1e-4
    assert np.allclose(answers.quantities["mean"], truth @ f, rtol=1e-6)
