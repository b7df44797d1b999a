"""treverhines-rbf: nodes and RBF-FD weights of the Helmholtz equation.

Settings: RBF documentation, "RBF-FD", first example: nodes of minimal energy, odd polyharmonic splines, polynomials of at least the
order of the equation. The example's 20 nodes of degree 2 are raised to 30 of degree 4, in the direction that it recommends for accuracy.
"""

import numpy as np
from rbf.pde.fd import weight_matrix
from rbf.pde.nodes import min_energy_nodes
from scipy import sparse
from scipy.sparse.linalg import splu

OPTIONS = {"phi": "phs5", "order": 4}


def fit(data, seed, n_nodes):
    """Matrices once; a solve adds and factorises them."""
    np.random.seed(seed)  # noqa: NPY002
    angle = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    radius = 0.8 + 0.1 * (np.sin(6 * angle) + np.sin(3 * angle))
    corners = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    sides = np.column_stack([np.arange(400), np.roll(np.arange(400), -1)])
    nodes, groups, _ = min_energy_nodes(n_nodes, (corners, sides))
    inside = np.zeros(len(nodes))
    inside[groups["interior"]] = 1.0
    keep = sparse.diags_array(inside)
    along, across = (keep @ weight_matrix(nodes, nodes, 30, diff, **OPTIONS) for diff in ((2, 0), (0, 2)))
    load = -10 * np.sin(8 * nodes[:, 0] * (nodes[:, 1] - 1)) * inside
    values = weight_matrix(data.points, nodes, 30, (0, 0), **OPTIONS)

    def solve(mu):
        rest = sparse.diags_array(np.where(inside > 0, -mu[1], 1.0))
        return splu((rest - along - mu[0] * across).tocsc()).solve(load)

    return {"solve": solve, "values": lambda u: values @ u, "n_unknowns": len(nodes)}
