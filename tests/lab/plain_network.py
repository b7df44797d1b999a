"""Reads the network out of a .parasol file and runs it: zip, JSON, NumPy arrays, affine maps and max(0, ·), nothing else.

python plain_network.py FILE prints the number of layers and of numbers that are not zero.
"""

import io
import json
import sys
import zipfile

import numpy as np


def layers_of(path):
    """Dense matrices and biases of all layers."""
    with zipfile.ZipFile(path) as archive:
        fields = json.loads(archive.read("manifest.json"))["content"]["fields"]

        def array(entry):
            return np.load(io.BytesIO(archive.read(f"arrays/{entry['array']:04d}.npy")))

        def matrix(entry):
            if "array" in entry:
                return array(entry)
            out = np.zeros(entry["shape"])
            data, columns, ends = map(array, entry["csr"])
            for row in range(len(out)):
                for place in range(ends[row], ends[row + 1]):
                    out[row, columns[place]] += data[place]
            return out

        layers, activations = [], 0
        for operation in fields["map"]["fields"]["program"]["fields"]["operations"]:
            if operation["kind"] == "Affine":
                layers.append((matrix(operation["fields"]["weights"]), array(operation["fields"]["bias"])))
            else:
                assert (operation["kind"], operation["fields"]["name"]) == ("Activation", "relu")
                activations += 1
                assert activations == len(layers)
        assert activations == len(layers) - 1
        features = fields["features"]["fields"]
        for name, neutral in (("logs", False), ("shift", 0.0), ("scale", 1.0)):
            assert (array(features[name]) == neutral).all()
    return layers


def run(layers, x):
    """The output for one input."""
    for number, (w, b) in enumerate(layers):
        x = [sum(w[i, j] * x[j] for j in range(len(x))) + b[i] for i in range(len(b))]
        if number < len(layers) - 1:
            x = [max(0.0, value) for value in x]
    return np.array(x)


def count(layers):
    """Weights and biases that are not zero."""
    return sum(int((w != 0).sum() + (b != 0).sum()) for w, b in layers)


if __name__ == "__main__":
    found = layers_of(sys.argv[1])
    print(len(found), count(found))
