"""
Two hundred result files
========================

Files of somebody's finite-element program and a table of the parameters they were computed with: a page with the deformed
plate, and the largest stress with its error.
"""

# %%
# Somebody's program
# ------------------
# It stands for any: an elastic plate with a stiffer disc in it, held at the left, pulled at the right. It leaves 200
# files ``case_*.vtu`` and a table ``parameters.csv``.

import tempfile
from pathlib import Path

import numpy as np
import pyvista
import skfem as fem
from skfem.helpers import ddot, div, sym_grad

import parasol as ps

FOLDER = Path(tempfile.mkdtemp(prefix="plate-"))

mesh = fem.MeshTri.init_tensor(np.linspace(0, 2, 29), np.linspace(0, 1, 15)).with_boundaries(
    {
        "held": lambda x: x[0] < 1e-9,
        "end": lambda x: x[0] > 2 - 1e-9,
    }
)
basis = fem.Basis(mesh, fem.ElementVector(fem.ElementTriP1()))
to_nodes = fem.Basis(mesh, fem.ElementTriP1(), quadrature=basis.quadrature)
x, y = mesh.p[:, mesh.t].mean(axis=1)
disc = fem.Basis(mesh, basis.elem, elements=np.flatnonzero(np.hypot(x - 1, y - 0.5) < 0.3))
elastic = fem.BilinearForm(lambda u, v, w: 1.2e11 * div(u) * div(v) + 1.6e11 * ddot(sym_grad(u), sym_grad(v)))
plate, added = elastic.assemble(basis), elastic.assemble(disc)
right, up = (fem.LinearForm(lambda v, w, k=k: 1e8 * v[k]).assemble(basis.boundary("end")) for k in (0, 1))


def run(ratio: float, angle: float) -> tuple[np.ndarray, np.ndarray]:
    """Displacement (n_nodes, 2) in metres and von Mises stress (n_nodes,) in pascals, the disc `ratio` times as stiff."""
    load = np.cos(angle) * right + np.sin(angle) * up
    u = fem.solve(*fem.condense(plate + (ratio - 1) * added, load, D=basis.get_dofs("held")))
    stiff = np.ones((mesh.nelements, 1))
    stiff[disc.tind] = ratio
    strain = np.array(sym_grad(basis.interpolate(u)))
    stress = stiff * (1.6e11 * strain + 1.2e11 * np.eye(2)[:, :, None, None] * np.trace(strain))
    (xx, xy), (_, yy) = stress
    return u[basis.nodal_dofs].T, to_nodes.project(np.sqrt(xx**2 - xx * yy + yy**2 + 3 * xy**2))


rng = np.random.default_rng(0)
ratios, angles = np.exp(rng.uniform(0, np.log(10), 200)), rng.uniform(0, 0.5, 200)
for i, (ratio, angle) in enumerate(zip(ratios, angles, strict=True)):
    flat = np.column_stack([mesh.p.T, np.zeros(mesh.nvertices)])
    grid = pyvista.UnstructuredGrid({pyvista.CellType.TRIANGLE: mesh.t.T}, flat)
    grid.point_data["u"], grid.point_data["mises"] = run(ratio, angle)
    grid.save(FOLDER / f"case_{i}.vtu")
table = np.column_stack([ratios, angles])
np.savetxt(FOLDER / "parameters.csv", table, delimiter=",", header="ratio,angle", comments="", fmt="%.17g")

# %%
# What its user writes
# --------------------
# Fields keep their names and units, each with an error of its own. The largest stress is no linear function of the field:
# it gets a map and a calibrated bound of its own. The parameters were drawn at random, which is what makes the bounds
# *calibrated*; from a lattice of runs they would be called *estimated*.

wanted = {"largest stress": lambda case: case["mises"].max()}
results = ps.read_results(FOLDER, FOLDER / "parameters.csv", quantities=wanted)
print(results)
surrogate = ps.learn(data=results, tolerance=5e-2, parameters={"ratio": (1, 10, "log"), "angle": (0, 0.5)})

# %%
# Against forty runs that it has not seen:

fresh = np.column_stack([np.exp(rng.uniform(0, np.log(10), 40)), rng.uniform(0, 0.5, 40)])
answer, truth = surrogate(fresh), [run(*mu) for mu in fresh]
u, mises = np.array([u for u, _ in truth]), np.array([stress for _, stress in truth])
off = np.linalg.norm(answer["mises"] - mises, axis=1) / np.linalg.norm(mises, axis=1)
print(f"stress: off by {off.max():.1e} at most, bound {answer.field_bounds['mises'].max():.1e}")
most = np.abs(answer.quantities["largest stress"] - mises.max(axis=1))
bar = answer.quantity_bounds["largest stress"]
print(f"largest stress: off by {most.max():.1e} Pa at most, bound {bar.max():.1e} Pa, of {mises.max():.1e} Pa")
assert surrogate.facts["learn"]["met"]
assert np.mean(off <= answer.field_bounds["mises"]) > 0.85
assert np.mean(most <= bar) > 0.85
assert bar.max() < 0.05 * mises.max()
assert np.abs(answer["u"] - u).max() < 1e-2 * np.abs(u).max()

# %%
surrogate(ratio=5.0, angle=0.3).plot()

# %%
# The plate as it is and as it is deformed, the largest stress ± its bound. Where would five more runs help most?

print(ps.suggest(surrogate, 5))
ps.explore(surrogate)
