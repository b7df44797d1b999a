"""How fast `surrogate.as_jax` answers where JAX runs: fields of the paper's Helmholtz size, float64, beside the product with V alone.

python benchmarks/functions.py            # NumPy and JAX are all it needs; a GPU is used where there is one
"""

import time

import jax
import numpy as np

from parasol.delivery.functions import as_jax
from parasol.runtime.basis import Basis
from parasol.runtime.expansions import Chebyshev
from parasol.runtime.features import Features
from parasol.runtime.layout import Layout
from parasol.runtime.operations import Activation, Affine
from parasol.runtime.parameters import ParameterSpace
from parasol.runtime.program import Program, StoredMap
from parasol.runtime.ranges import ParameterRange
from parasol.runtime.surrogate import Surrogate

jax.config.update("jax_enable_x64", True)
N_NODES, N_MODES, WIDTH = 1036, 17, 500


def surrogate(kind: str) -> Surrogate:
    """Two hidden layers of 500, or a polynomial of degree 10, and 17 modes at 1036 nodes, with random numbers in them."""
    rng = np.random.default_rng(0)
    shapes = ((WIDTH, 2), (WIDTH, WIDTH), (N_MODES, WIDTH))
    layers = [Affine(rng.standard_normal(s) / np.sqrt(s[1]), rng.standard_normal(s[0])) for s in shapes]
    program = Program((layers[0], Activation("silu"), layers[1], Activation("silu"), layers[2]))
    if kind == "polynomial":
        indices = np.array([(i, j) for i in range(11) for j in range(11 - i)])
        program = Program((Chebyshev(indices), Affine(rng.standard_normal((N_MODES, len(indices))))))
    basis = Basis(np.linalg.qr(rng.standard_normal((N_NODES, N_MODES)))[0])
    space = ParameterSpace((ParameterRange("a", 0.1, 4.0), ParameterRange("k", 0.0, 2.0)))
    features = Features(np.zeros(2, dtype=bool), np.array([2.05, 1.0]), np.array([1 / 1.95, 1.0]))
    return Surrogate(basis, StoredMap(program), features, space, Layout(("u",)))


def seconds(function, *given, n: int = 100) -> float:
    """The median time of a call."""
    jax.block_until_ready(function(*given))
    times = []
    for _ in range(n):
        start = time.perf_counter()
        jax.block_until_ready(function(*given))
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def repeated(function, mus, n: int = 50) -> float:
    """The time of a call among n that are compiled into one, so that starting them does not count."""

    def one(x, _):
        return x + 1e-12 * jax.numpy.abs(function(x)).max(axis=1, keepdims=True), None  # which needs every value

    loop = jax.jit(lambda x: jax.lax.scan(one, x, None, length=n)[0])
    return seconds(loop, mus, n=10) / n


def measure(kind: str) -> None:
    """One kind of map, for three numbers of queries."""
    fitted = surrogate(kind)
    function, coefficients = as_jax(fitted, extrapolate=True), as_jax(fitted, "coefficients", extrapolate=True)
    lifting = jax.numpy.asarray(fitted.basis.modes.T)
    lift, rng = jax.jit(lambda c: c @ lifting), np.random.default_rng(1)
    for n in (2000, 100_000, 1_000_000):
        mus = jax.numpy.asarray(rng.uniform([0.1, 0.0], [4.0, 2.0], (n, 2)))
        if n == 2000:
            gap = np.abs(np.asarray(function(mus)) - fitted(np.asarray(mus)).values).max()
            print(f"{kind}: NumPy and JAX differ by {gap:.1e}; 2000 fields in {1e3 * repeated(function, mus):.4f} ms")
        whole, inner = seconds(function, mus, n=20), seconds(coefficients, mus, n=20)
        product = seconds(lift, coefficients(mus), n=20)
        print(
            f"{n} fields called from Python: {1e3 * whole:.4f} ms (coefficients {1e3 * inner:.4f}, V c {1e3 * product:.4f}), "
            f"{8e-12 * n * N_NODES / whole:.3f} TB/s of fields"
        )


if __name__ == "__main__":
    print(jax.devices()[0].device_kind, jax.__version__)
    for each in ("network", "polynomial"):
        measure(each)
