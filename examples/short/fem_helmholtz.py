"""
A room with a resonance
=======================

Sound in a room with a resonance among the frequencies, by scikit-fem's matrices: `learn` says where, answers say how far to trust them.
"""

import re
import tempfile
from pathlib import Path

import numpy as np
import skfem as fem
from scipy.sparse.linalg import eigsh
from skfem.helpers import dot, grad

import parasol as ps

PAGE = Path(tempfile.gettempdir()) / "room.html"

mesh = fem.MeshQuad.init_tensor(np.linspace(0, 1, 21), np.linspace(0, 0.8, 17))
basis = fem.Basis(mesh, fem.ElementQuad2())
stiffness = fem.BilinearForm(lambda u, v, w: dot(grad(u), grad(v))).assemble(basis)
mass = fem.BilinearForm(lambda u, v, w: u * v).assemble(basis)
wall = fem.BilinearForm(lambda u, v, w: u * v).assemble(basis.boundary(lambda x: x[0] > 1 - 1e-9))
speaker = fem.LinearForm(lambda v, w: np.exp(-50 * ((w.x[0] - 0.2) ** 2 + (w.x[1] - 0.3) ** 2)) * v).assemble(basis)

k2, soft = ps.parameters(k2=(12.0, 20.0), soft=(0.0, 0.5))  # wavenumber squared; a soft wall at the right
model = ps.AffineModel(
    {1: stiffness, -k2: mass, soft: wall},
    {1: speaker},
    points=mesh.p.T,
    cells=mesh.t.T,
    fields={"pressure": basis.nodal_dofs[0]},
    product=stiffness + mass,
    name="room",
)
surrogate = ps.learn(model, 1e-3)
ps.explore(surrogate, PAGE)

if __name__ == "__main__":
    (note,) = surrogate.facts["learn"]["notes"]
    print(note)
    k, s = (float(re.search(rf"near.*{name}=([\d.]+\d)", note)[1]) for name in ("k2", "soft"))
    resonance = eigsh(stiffness + s * wall, k=1, M=mass, sigma=16)[0][0]
    print(f"the eigenvalue there is {resonance:.3f}")
    assert abs(k - resonance) < 0.05

    mus = model.sample(50, rng=3)
    answers = surrogate(mus)
    truth = np.array([fem.solve(stiffness - k * mass + s * wall, speaker) for k, s in mus])
    norm = surrogate.basis.norm
    errors = norm(surrogate.basis.lift(answers.coefficients) - truth) / norm(truth)
    near = np.argmax(norm(truth))
    print(
        f"{surrogate.facts['learn']['solves']} full solves; error at most {errors.max():.0e}, estimated {answers.estimate.max():.0e}, "
        f"{answers.bound_kind[0]} bound {answers.bound.max():.0e}; at k2 = {mus[near, 0]:.2f}, the loudest: {errors[near]:.0e}"
    )
    print(f"the page is {PAGE}")
    assert errors.max() <= 1e-3
    assert np.all(errors <= answers.bound)
    assert np.all(abs(np.log(answers.estimate / errors)) < np.log(3))
