"""scikit-learn: principal components, and a regressor from scaled parameters to them.

Settings: scikit-learn user guide, "Gaussian Processes" (a constant times an anisotropic RBF kernel with the
bounds of its first example, normalized targets), "Multiclass and multioutput algorithms" (a process for each component) and "Neural network models (supervised)" (standardized inputs; L-BFGS, which it prefers for small data
sets; no penalty, as the data have no noise).
"""

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def fit(data, seed, regressor, n_modes):
    """A pipeline whose targets are the principal components."""
    if regressor == "process":
        kernel = ConstantKernel() * RBF(np.ones(2), length_scale_bounds=(1e-2, 1e2))
        process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed)
        chosen = MultiOutputRegressor(process)
    else:
        sizes = {"hidden_layer_sizes": (100, 100), "activation": "tanh"}
        chosen = MLPRegressor(**sizes, solver="lbfgs", alpha=0.0, max_iter=2000, max_fun=20000, random_state=seed)
    pipeline = make_pipeline(StandardScaler(), chosen)
    model = TransformedTargetRegressor(pipeline, transformer=PCA(n_modes), check_inverse=False)
    model.fit(data.mus, data.solutions)
    return {"predict": model.predict, "n_modes": n_modes}
