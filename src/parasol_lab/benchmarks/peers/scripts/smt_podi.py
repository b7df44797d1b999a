"""SMT: POD and Kriging of each coefficient.

Settings: SMT documentation, "Proper Orthogonal Decomposition + Interpolation (PODI)", first example, with a tolerance of 1 − 1e-10
in place of 0.9999, whose POD alone would leave one per cent. Its variance is one of the Gaussian processes: no bound.
"""

import numpy as np
from smt.applications import PODI


def fit(data, seed):
    """Kriging as PODI sets it up by default."""
    podi = PODI()
    podi.compute_pod(data.solutions.T, tol=1 - 1e-10, seed=seed)
    podi.set_training_values(data.mus)
    podi.train()

    def predict(queries):
        return podi.predict_values(queries).T

    def bound(queries):
        deviation = np.sqrt(np.sum(np.abs(podi.predict_variances(queries)), axis=0))
        return 1.96 * deviation / np.linalg.norm(podi.predict_values(queries), axis=0)

    return {"predict": predict, "n_modes": podi.get_n_modes(), "bound": bound}
