"""
Elasticity by scikit-fem
========================

An angle bracket of any elastic material, by quadratic elements of scikit-fem: how far its tip moves, with a proven bound.
"""

import tempfile
from pathlib import Path

import numpy as np
import skfem as fem
from skfem.helpers import ddot, div, sym_grad

import parasol as ps

PAGE = Path(tempfile.gettempdir()) / "elasticity.html"

mesh = (
    fem.MeshTri.init_lshaped()
    .refined(3)
    .with_boundaries({"top": lambda x: x[1] > 1 - 1e-9, "end": lambda x: x[0] > 1 - 1e-9})
)
basis = fem.Basis(mesh, fem.ElementVector(fem.ElementTriP2()))
volume = fem.BilinearForm(lambda u, v, w: div(u) * div(v)).assemble(basis)
shear = fem.BilinearForm(lambda u, v, w: 2 * ddot(sym_grad(u), sym_grad(v))).assemble(basis)
pull = fem.LinearForm(lambda v, w: -1e-2 * v[1]).assemble(basis.boundary("end"))

free = basis.complement_dofs(basis.get_dofs("top"))  # clamped there
place = np.full(basis.N, -1)  # of each unknown among the free ones; -1 is held at zero
place[free] = np.arange(len(free))
right, up = basis.nodal_dofs
tip = np.zeros(basis.N)
tip[up[np.argmin(np.linalg.norm(mesh.p - [[1], [0]], axis=0))]] = 1

lam, mu = ps.parameters(lam=(0.5, 5.0), mu=(0.5, 2.0))  # Lamé's constants
part = [a[free][:, free] for a in (volume, shear)]
model = ps.AffineModel(
    {lam: part[0], mu: part[1]},
    {1: pull[free]},
    points=mesh.p.T,
    cells=mesh.t.T,
    fields={"right": place[right], "up": place[up]},
    product=part[0] + part[1],
    quantities={"tip": tip[free]},
    name="bracket",
)
surrogate = ps.learn(model, 1e-4)
ps.explore(surrogate, PAGE)

if __name__ == "__main__":
    for stiff in (0.5, 2.0):
        answer = surrogate(lam=1.0, mu=stiff)
        truth = fem.solve(*fem.condense(1.0 * volume + stiff * shear, pull, I=free))
        error = abs(answer.quantities["tip"] - truth @ tip) / abs(truth @ tip)
        print(
            f"mu = {stiff}: the tip moves by {answer.quantities['tip']:.5f}, off by {error:.0e}; field proven to {answer.bound:.0e}"
        )
        assert answer.bound_kind == "proven"
        assert answer.bound <= 1e-4
        assert error < 1e-6
        assert np.max(abs(answer["up"] - truth[up])) < 1e-4 * np.max(abs(truth))
    print(f"the page is {PAGE}")
