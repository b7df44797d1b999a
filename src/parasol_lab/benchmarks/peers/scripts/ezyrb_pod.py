"""EZyRB: POD, and one of its approximations of the coefficients.

Settings: EZyRB documentation, tutorial "Build and query a simple reduced order model" for radial basis functions (POD and RBF
with their defaults), and "Test several frameworks at once" for Gaussian processes (default) and the network: rank 10,
hidden layers of 50 and 10, ReLU, 30 000 epochs.
"""

import torch
from ezyrb import ANN, GPR, POD, RBF, Database, ReducedOrderModel


def fit(data, seed, approximation):
    """The reduced order model."""
    torch.manual_seed(seed)
    chosen = {
        "RBF": lambda: (POD("svd"), RBF()),
        "GPR": lambda: (POD("svd", rank=10), GPR()),
        "ANN": lambda: (POD("svd", rank=10), ANN([50, 10], torch.nn.ReLU(), 30000, frequency_print=100000)),
    }
    reduction, map_of_coefficients = chosen[approximation]()
    rom = ReducedOrderModel(Database(data.mus, data.solutions), reduction, map_of_coefficients).fit()

    return {"predict": rom.predict, "n_modes": reduction.modes.shape[1]}
