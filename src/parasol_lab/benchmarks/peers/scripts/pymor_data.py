"""pyMOR without equations: POD, and a map of the coefficients.

Settings: pyMOR documentation, "Tutorial: Model order reduction with machine learning methods": three hidden layers of 30
for the network, trained with the default restarts; for the kernel its Gaussian, with as many centres as samples and the
scaling that the page calls often useful.
"""

import numpy as np
from pymor.algorithms.ml.nn import FullyConnectedNN, NeuralNetworkRegressor
from pymor.algorithms.ml.vkoga import GaussianKernel, VKOGARegressor
from pymor.core.logger import set_log_levels
from pymor.parameters.base import Parameters
from pymor.reductors.data_driven import DataDrivenPODReductor
from pymor.tools.random import new_rng
from pymor.vectorarrays.numpy import NumpyVectorSpace
from sklearn.preprocessing import MinMaxScaler

set_log_levels({"pymor": "ERROR"})


def fit(data, seed, regressor):
    """POD to 1e-5, then the network or the kernel."""
    parameters = Parameters({"a": 1, "k": 1})
    mus = [parameters.parse({"a": a, "k": k}) for a, k in data.mus]
    snapshots = NumpyVectorSpace(data.solutions.shape[1]).from_numpy(data.solutions.T)
    if regressor == "network":
        chosen, scalers = NeuralNetworkRegressor(FullyConnectedNN(hidden_layers=[30, 30, 30])), {}
    else:
        chosen = VKOGARegressor(GaussianKernel(length_scale=1.0), criterion="fp", max_centers=len(mus), tol=1e-12)
        scalers = {"input_scaler": MinMaxScaler()}
    with new_rng(seed):
        reductor = DataDrivenPODReductor(mus, snapshots, regressor=chosen, pod_params={"l2_err": 1e-5}, **scalers)
        rom = reductor.reduce()

    def predict(queries):
        solved = [rom.solve(parameters.parse({"a": a, "k": k})) for a, k in queries]
        return np.hstack([reductor.reconstruct(u).to_numpy() for u in solved]).T

    return {"predict": predict, "n_modes": len(reductor.reduced_basis)}
