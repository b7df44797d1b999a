"""parasol without equations: the map that errs least where samples are left out, with a calibrated bound."""

import parasol as ps


def fit(data, seed, tolerance, ranges=None):
    """Defaults, but for the tolerance of the basis; `ranges` may say that a parameter is on a logarithmic scale."""
    surrogate = ps.fit_snapshots(data.mus, data.solutions, tolerance=tolerance, rng=seed, ranges=ranges)

    def predict(queries):
        return surrogate(queries, extrapolate=True).values

    def bound(queries):
        return surrogate(queries, extrapolate=True).bound

    return {"predict": predict, "n_modes": surrogate.basis.n_modes, "bound": bound}
