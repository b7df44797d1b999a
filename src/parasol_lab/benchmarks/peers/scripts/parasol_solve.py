"""parasol: one full solve with default settings."""

import sympy as sp

import parasol as ps


def fit(data, seed, n_nodes):
    """Nodes, stencils and matrices once; a solve adds and factorises them."""
    x, y = ps.coordinates("x y")
    a, k = ps.parameters(a=(0.1, 4.0, "log"), k=(0.0, 2.0))
    u = ps.unknown("u", x, y)
    problem = ps.Problem(
        domain=ps.Star("0.8 + 0.1*(sin(6*theta) + sin(3*theta))"),
        equation=ps.Eq(-u.diff(x, 2) - a * u.diff(y, 2) - k * u, -10 * sp.sin(8 * x * (y - 1))),
        boundary=ps.Dirichlet(0),
    )
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=n_nodes, rng=seed))
    return {"solve": model.solve, "values": lambda u: u.at(data.points), "n_unknowns": model.n_unknowns}
