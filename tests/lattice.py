"""Small systems on a 1-D lattice by finite differences, whose solutions are known in closed form."""

import numpy as np
from scipy import sparse

from parasol.pde.sparse_pattern import Pattern
from parasol.pde.system import System


def system_of(stiffness, damping=None, mass=None, load=None, nonlinear=None, jacobian=None, full=False):
    """A system from matrices with any patterns, or the full one; `jacobian(u, t)` returns a matrix."""
    n = np.shape(stiffness)[0]
    given = [sparse.csr_array(m) if m is not None else sparse.csr_array((n, n)) for m in (stiffness, damping, mass)]
    pattern = sum((abs(m) > 0).astype(float) for m in given)
    # where a nonlinear part depends on its own unknown only, the diagonal is all it needs
    pattern = (pattern if nonlinear is None else pattern + sparse.eye_array(n)).tocsr()
    if full:
        pattern = sparse.csr_array(np.ones((n, n)))
    pattern.sort_indices()
    rows = np.repeat(np.arange(n), np.diff(pattern.indptr))

    def entries(matrix):
        return np.asarray(sparse.csr_array(matrix)[rows, pattern.indices]).ravel().astype(float)

    return System(
        Pattern(pattern.indices, pattern.indptr, np.arange(float(n))[:, None]),
        *[entries(m) for m in given],
        load or (lambda t: np.zeros(n)),
        nonlinear,
        None if jacobian is None else lambda u, t: entries(jacobian(u, t)),
    )


def lattice(
    n=41,
    *,
    order=1,
    damping=0.0,
    viscosity=0.0,
    diffusion=1.0,
    reaction=0.0,
    ends="value",
    boundary=lambda t: (0.0, 0.0),
    source=lambda x, t: 0.0 * x,
    nonlinear=None,
    slope=None,
):
    """Points x of [0, 1] and the system  u_tt (or u_t) + damping u_t − viscosity u_xxt = diffusion u_xx − reaction u − nonlinear(u) + source.

    `ends` says what `boundary` gives: the "value" or the "slope" along the outward normal.
    """
    x = np.linspace(0, 1, n)
    h = x[1]
    inner = np.ones(n)
    inner[[0, -1]] = 0.0
    second = sparse.diags_array(inner) @ sparse.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(n, n)) / h**2
    edge = sparse.lil_array((n, n))
    if ends == "value":
        edge[0, 0] = edge[n - 1, n - 1] = 1.0
    else:
        edge[0, :3] = edge[n - 1, [n - 1, n - 2, n - 3]] = np.array([1.5, -2.0, 0.5]) / h
    moving = sparse.diags_array(inner)

    def load(t):
        out = inner * source(x, t)
        out[[0, -1]] = boundary(t)
        return out

    drag = damping * moving - viscosity * second
    system = system_of(
        -diffusion * second + reaction * moving + edge.tocsr(),
        (moving + drag if order == 1 else drag) if order else None,
        moving if order == 2 else None,
        load,
        None if nonlinear is None else lambda u, t: inner * nonlinear(u),
        None if nonlinear is None else lambda u, t: sparse.diags_array(inner * slope(u)),
    )
    return x, system


def eigenvalue(n=41, mode=1):
    """Eigenvalue of −u_xx on the lattice for sin(mode π x)."""
    h = 1 / (n - 1)
    return 4 / h**2 * np.sin(mode * np.pi * h / 2) ** 2
