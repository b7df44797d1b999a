"""
A Stokes cavity
===============

Two layers of oil under a moving lid: Stokes' equations by Taylor-Hood elements of scikit-fem, for any viscosities.
"""

import tempfile
from pathlib import Path

import numpy as np
import skfem as fem
from scipy.sparse import block_diag, bmat, coo_array, diags_array
from scipy.sparse.linalg import spsolve
from skfem.helpers import ddot, div, dot, grad

import parasol as ps

PAGE = Path(tempfile.gettempdir()) / "stokes-cavity.html"

mesh = fem.MeshTri.init_tensor(*2 * [np.sin(np.linspace(0, np.pi / 2, 17)) ** 2])  # fine at the walls
flow = fem.Basis(mesh, fem.ElementVector(fem.ElementTriP2()), intorder=4)
pressure = flow.with_element(fem.ElementTriP1())
layer = fem.BilinearForm(lambda u, v, w: ((w.x[1] > 0.5) == w["upper"]) * ddot(grad(u), grad(v)))
K = [layer.assemble(flow, upper=i) for i in (0, 1)]
B = -fem.BilinearForm(lambda u, q, w: div(u) * q).assemble(flow, pressure)
mass = fem.BilinearForm(lambda u, v, w: dot(u, v)).assemble(flow)
mass_p = fem.BilinearForm(lambda p, q, w: p * q).assemble(pressure)

# rows of constraints are kept, and say what their values are: the lid moves, walls do not, one pressure is zero
n, m = flow.N, pressure.N
lid = flow.get_dofs(lambda x: x[1] > 1 - 1e-9).all("u^1")
values = np.zeros(n + m)
values[lid] = 4 * flow.doflocs[0, lid] * (1 - flow.doflocs[0, lid])
held = np.isin(np.arange(n + m), np.append(flow.get_dofs().flatten(), n))
free, none = diags_array(1.0 - held), coo_array((m, m))
constant = free @ bmat([[None, B.T], [B, none]]) + diags_array(1.0 * held)
layers = [free @ block_diag([k, none]) for k in K]
middle = np.zeros(n + m)
middle[flow.nodal_dofs[0, np.argmin(np.linalg.norm(mesh.p - 0.5, axis=0))]] = 1

low, high = ps.parameters(low=(1, 10), high=(1, 10))  # viscosities
model = ps.AffineModel(
    {1: constant, low: layers[0], high: layers[1]},
    {1: values},
    points=mesh.p.T,
    cells=mesh.t.T,
    fields={"u": flow.nodal_dofs[0], "v": flow.nodal_dofs[1], "p": n + np.arange(m)},
    product=block_diag([K[0] + K[1] + mass, mass_p]),
    quantities={"middle": middle},
    name="cavity",
)
surrogate = ps.learn(model, 1e-4)
ps.explore(surrogate, PAGE)

if __name__ == "__main__":
    for mu in ([1.0, 1.0], [1.0, 10.0], [8.0, 2.0]):
        answer = surrogate(mu)
        truth = spsolve((constant + mu[0] * layers[0] + mu[1] * layers[1]).tocsc(), values)
        whole = surrogate.basis.lift(answer.coefficients)[0]  # all unknowns: answer.values has those at points
        error = surrogate.basis.norm(whole - truth) / surrogate.basis.norm(truth)
        print(
            f"viscosities {mu}: in the middle oil moves at {answer.quantities['middle']:.4f}; "
            f"error {error:.0e}, estimated {answer.estimate:.0e}, at most {answer.bound:.0e} ({answer.bound_kind})"
        )
        assert error <= answer.bound <= 1e-4
        assert abs(answer.quantities["middle"] - truth @ middle) < 1e-5
    print(f"the page is {PAGE}")
