"""scikit-fem: elements of degree 2, 3 and 4 on a mesh that follows the curve.

Settings: scikit-fem documentation, "Getting started" for forms, `condense` and `solve`. Its meshes
have straight or quadratic edges, which would be the limit of elements of degree 4; the same class with a higher element is not.
"""

import dataclasses

import numpy as np
import skfem as fem
from curved_probes import curved_probes
from skfem.helpers import grad

ELEMENTS = {2: fem.ElementTriP2, 3: fem.ElementTriP3, 4: fem.ElementTriP4}


@fem.BilinearForm
def along(u, v, w):
    """Second derivatives by one coordinate, in weak form."""
    return grad(u)[w["axis"]] * grad(v)[w["axis"]]


@fem.BilinearForm
def mass(u, v, _):
    """The identity in weak form."""
    return u * v


@fem.LinearForm
def source(v, w):
    """The right-hand side."""
    return -10 * np.sin(8 * w.x[0] * (w.x[1] - 1)) * v


@dataclasses.dataclass(repr=False)
class CurvedMesh(fem.MeshTri2):
    """Triangles with edges of degree four."""

    elem: type = fem.ElementTriP4


def flower(refinements):
    """A hexagon, stretched along its rays; the middle stays as it is, so that the map is smooth there."""
    angles = np.arange(6) * np.pi / 3
    corners = np.hstack([np.zeros((2, 1)), 0.75 * np.array([np.cos(angles), np.sin(angles)])])
    cells = np.array([[0, 1 + i, 1 + (i + 1) % 6] for i in range(6)]).T
    mesh = CurvedMesh.from_mesh(fem.MeshTri(corners, cells).refined(refinements))
    angle, r = np.arctan2(*mesh.doflocs[::-1]), np.hypot(*mesh.doflocs)
    edge = 0.75 * np.cos(np.pi / 6) / np.cos(angle % (np.pi / 3) - np.pi / 6)
    curve = 0.8 + 0.1 * (np.sin(6 * angle) + np.sin(3 * angle))
    return dataclasses.replace(mesh, doflocs=mesh.doflocs * (1 + (r / edge) ** 3 * (curve / edge - 1)))


def fit(data, seed, degree, refinements):
    """Assemble once; a solve adds the matrices, eliminates the boundary and factorises."""
    basis = fem.Basis(flower(refinements), ELEMENTS[degree](), intorder=2 * degree + 2)
    first, second = (along.assemble(basis, axis=axis) for axis in (0, 1))
    identity, load, edge = mass.assemble(basis), source.assemble(basis), basis.get_dofs()
    probes = curved_probes(basis, data.points)

    def solve(mu):
        return fem.solve(*fem.condense(first + mu[0] * second - mu[1] * identity, load, D=edge))

    return {"solve": solve, "values": lambda u: probes @ u, "n_unknowns": basis.N}
