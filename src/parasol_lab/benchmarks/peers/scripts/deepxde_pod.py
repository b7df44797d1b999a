"""DeepXDE: POD-DeepONet.

Settings: DeepXDE documentation, demo "Antiderivative operator from an aligned dataset" (Adam, learning rate 0.001, Glorot normal)
with `PODDeepONet` in place of `DeepONetCartesianProd`, as in the authors' comparison with FNO: modes without the mean, scaled by the
root of the number of values, outputs divided by the number of modes, two hidden layers of 128 with tanh, whole batches.
"""

import os

os.environ["DDE_BACKEND"] = "pytorch"
import deepxde as dde
import numpy as np


def fit(data, seed, n_modes, iterations):
    """Branch network of the scaled parameters, the modes as trunk."""
    dde.config.set_random_seed(seed)
    low, high = data.mus.min(axis=0), data.mus.max(axis=0)
    mean = data.solutions.mean(axis=0)
    modes = np.linalg.svd(data.solutions - mean, full_matrices=False)[2][:n_modes].T * np.sqrt(len(mean))
    inputs = ((data.mus - low) / (high - low)).astype(np.float32), data.nodes.astype(np.float32)
    values = data.solutions.astype(np.float32)
    net = dde.nn.PODDeepONet(modes.astype(np.float32), [2, 128, 128, n_modes], "tanh", "Glorot normal")
    shift = dde.backend.as_tensor(mean.astype(np.float32))
    net.apply_output_transform(lambda _, outputs: outputs / n_modes + shift)
    model = dde.Model(dde.data.TripleCartesianProd(inputs, values, inputs, values), net)
    model.compile("adam", lr=1e-3, metrics=["mean l2 relative error"], verbose=0)
    model.train(iterations=iterations, display_every=iterations, verbose=0)

    def predict(queries):
        return model.predict((((queries - low) / (high - low)).astype(np.float32), inputs[1]))

    return {"predict": predict, "n_modes": n_modes}
