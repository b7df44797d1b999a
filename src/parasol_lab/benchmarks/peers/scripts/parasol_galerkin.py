"""parasol with the same matrices and the same snapshots: the reduced model, with its own bounds."""

import parasol as ps


def fit(data, seed, n_modes):
    """The least-squares reduced model of as many modes as are asked for."""
    a, k = ps.parameters(a=(0.1, 4.0, "log"), k=(0.0, 2.0))
    constant, first, second = data.operators
    model = ps.AffineModel({1: constant, a: first, k: second}, {1: data.load})
    reduced = ps.reduce(model, ps.pod(data.solutions, n_modes=n_modes))

    def predict(queries):
        return reduced.basis.lift(reduced.coefficients(queries))

    def bound(queries):
        return reduced.solve(queries).bounds.relative

    return {"predict": predict, "n_modes": reduced.n_modes, "bound": bound}
