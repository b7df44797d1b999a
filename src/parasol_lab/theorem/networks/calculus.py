"""Networks made of networks: composition, identity, extension and parallel use, with layers shared instead of copied.

All of it is about ReLU networks without linear path and scalings (`network.folded()` removes scalings). Layers come out as
`scipy.sparse.csr_array`; a layer that does not change is the same object in the result.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from parasol.checks import check_count, check_shape
from parasol.errors import InputError
from parasol.fitting import Network


def affine(matrix, bias=None) -> Network:
    """x ↦ matrix · x + bias, one layer.

    >>> affine([[2.0, 0.0]], [1.0])([[3.0, 5.0]])
    array([[7.]])
    """
    w = clean(matrix)
    b = np.zeros(w.shape[0]) if bias is None else check_shape(bias, (w.shape[0],), "bias")
    return Network((w,), (b,), "relu")


def identity(n: int, depth: int) -> Network:
    """x ↦ x in R^n with `depth` layers: x = σ(x) − σ(−x), and what is not negative passes σ unchanged. M = 2·n·depth, or n.

    >>> identity(2, 3)([[1.0, -4.0]]), identity(2, 3).n_weights, identity(2, 1).n_weights
    (array([[ 1., -4.]]), 12, 2)
    """
    n, depth = check_count(n, "n"), check_count(depth, "depth")
    return extend(affine(_eye(n)), depth)


def concatenate(after: Network, before: Network) -> Network:
    """x ↦ after(before(x)) with the last layer of one multiplied into the first of the other: L = L₁ + L₂ − 1.

    The product of two sparse matrices may have many more non-zeros than they have; see `sparse_concatenate`.

    >>> concatenate(affine([[3.0]]), affine([[2.0]], [1.0]))([[1.0]])
    array([[9.]])
    """
    (w1, b1), (w2, b2) = _joint(after, before)
    middle = (clean(w1 @ w2), w1 @ b2 + b1)
    return _network([*_layers(before)[:-1], middle, *_layers(after)[1:]])


def sparse_concatenate(after: Network, before: Network) -> Network:
    """x ↦ after(before(x)) through σ(y) − σ(−y): L = L₁ + L₂ and M = M(after) + M(before) + ‖W₁(after)‖₀ + M_L(before).

    >>> double = sparse_concatenate(affine([[3.0]]), affine([[2.0]], [1.0]))
    >>> double([[1.0], [-1.0]]), double.depth, double.n_weights
    (array([[ 9.],
           [-3.]]), 2, 6)
    """
    (w1, b1), (w2, b2) = _joint(after, before)
    last = (_stack([w2, -w2]), np.concatenate([b2, -b2]))
    first = (_beside([w1, -w1]), b1)
    return _network([*_layers(before)[:-1], last, first, *_layers(after)[1:]])


def extend(network: Network, depth: int) -> Network:
    """The same map with `depth` layers: M grows by M_L + 2 · n_outputs · (layers added).

    >>> extend(affine([[5.0]]), 4)([[-1.0]])
    array([[-5.]])
    """
    extra = check_count(depth, "depth") - network.depth
    if extra < 0:
        raise InputError(f"a network of {network.depth} layers has no extension to {depth}. Use depth >= its own.")
    if extra == 0:
        return network
    layers = _layers(network)
    w, b = layers[-1]
    n = network.n_outputs
    eye, none = _eye(2 * n), np.zeros(2 * n)
    first, last = (_stack([w, -w]), np.concatenate([b, -b])), (_beside([_eye(n), -_eye(n)]), np.zeros(n))
    return _network([*layers[:-1], first, *[(eye, none)] * (extra - 1), last])


def parallel(*networks: Network) -> Network:
    """(x₁, …, x_k) ↦ (Φ₁(x₁), …, Φ_k(x_k)); the shorter ones are extended. M is the sum where depths agree.

    >>> parallel(affine([[2.0]]), affine([[3.0]]))([[1.0, 1.0]])
    array([[2., 3.]])
    """
    return _side_by_side(networks, sparse.block_diag)


def parallel_shared(*networks: Network) -> Network:
    """x ↦ (Φ₁(x), …, Φ_k(x)); the shorter ones are extended. M is the sum where depths agree.

    >>> parallel_shared(affine([[2.0]]), affine([[3.0]]))([[1.0]])
    array([[2., 3.]])
    """
    for network in networks[1:]:
        if network.n_inputs != networks[0].n_inputs:
            raise InputError(
                f"networks of {networks[0].n_inputs} and {network.n_inputs} inputs share none. Use parallel."
            )
    return _side_by_side(networks, lambda blocks, format: sparse.vstack(blocks, format=format))


def with_input_map(network: Network, matrix, bias=None) -> Network:
    """x ↦ Φ(matrix · x + bias): selects, repeats, scales and shifts inputs. No layer is added.

    >>> with_input_map(affine([[1.0, 1.0]]), [[1.0], [1.0]])([[4.0]])
    array([[8.]])
    """
    return concatenate(network, affine(matrix, bias))


def with_output_map(network: Network, matrix, bias=None) -> Network:
    """x ↦ matrix · Φ(x) + bias. No layer is added.

    >>> with_output_map(affine([[1.0]]), [[3.0]], [1.0])([[4.0]])
    array([[13.]])
    """
    return concatenate(affine(matrix, bias), network)


def add(*networks: Network, bias=None) -> Network:
    """x ↦ Φ₁(x) + … + Φ_k(x) + bias; the shorter ones are extended. No layer is added.

    >>> add(affine([[2.0]]), affine([[3.0]]), bias=[1.0])([[1.0]])
    array([[6.]])
    """
    if any(network.n_outputs != networks[0].n_outputs for network in networks):
        raise InputError(f"networks of {', '.join(str(n.n_outputs) for n in networks)} outputs have no sum.")
    every = parallel_shared(*networks)
    return with_output_map(every, _beside([_eye(networks[0].n_outputs)] * len(networks)), bias)


def clean(matrix) -> sparse.csr_array:
    """A matrix as csr_array of float64 without stored zeros; a clean one is returned as it is."""
    if not sparse.issparse(matrix):
        matrix = check_shape(matrix, (None, None), "matrix")
    elif _is_clean(matrix):
        return matrix
    out = sparse.csr_array(matrix, dtype=float, copy=True)  # the caller's matrix stays as it was
    out.sum_duplicates()
    out.eliminate_zeros()
    # SciPy's block operations return 64-bit positions, a third more memory than needed
    return sparse.csr_array((out.data, out.indices.astype(np.int32), out.indptr.astype(np.int32)), shape=out.shape)


def _is_clean(matrix) -> bool:
    types = isinstance(matrix, sparse.csr_array) and matrix.dtype == np.float64 and matrix.indices.dtype == np.int32
    return types and matrix.has_canonical_format and bool(np.all(matrix.data))


def _side_by_side(networks: tuple[Network, ...], first) -> Network:
    if not networks:
        raise InputError("no networks were given. Pass at least one.")
    depth = max(network.depth for network in networks)
    rows = list(zip(*[_layers(extend(network, depth)) for network in networks], strict=True))
    joined_layers: dict[tuple[int, ...], tuple] = {}  # layers that repeat in all networks are joined once
    layers = []
    for i, row in enumerate(rows):
        join = first if i == 0 else sparse.block_diag
        key = (min(i, 1), *(id(a) for layer in row for a in layer))
        if key not in joined_layers:
            joined_layers[key] = (
                clean(join([w for w, _ in row], format="csr")),
                np.concatenate([b for _, b in row]),
            )
        layers.append(joined_layers[key])
    return _network(layers)


def _layers(network: Network) -> list[tuple[sparse.csr_array, np.ndarray]]:
    """Matrices and biases of a network this calculus is about."""
    if network.activation != "relu" or network.skip is not None or network.folded() is not network:
        raise InputError(
            f"the calculus is about plain ReLU networks, got activation {network.activation!r}"
            f"{' with a linear path' if network.skip is not None else ''}. Use relu, no skip, and network.folded()."
        )
    return [(w if sparse.issparse(w) else clean(w), b) for w, b in zip(network.weights, network.biases, strict=True)]


def _joint(after: Network, before: Network):
    """The first layer of one and the last layer of the other."""
    if after.n_inputs != before.n_outputs:
        raise InputError(f"{before.n_outputs} outputs cannot be the {after.n_inputs} inputs of the next network.")
    return _layers(after)[0], _layers(before)[-1]


def _network(layers) -> Network:
    return Network(tuple(w for w, _ in layers), tuple(b for _, b in layers), "relu")


def _eye(n: int) -> sparse.csr_array:
    return sparse.csr_array(sparse.eye_array(n, format="csr"))


def _stack(blocks) -> sparse.csr_array:
    return clean(sparse.vstack(blocks, format="csr"))


def _beside(blocks) -> sparse.csr_array:
    return clean(sparse.hstack(blocks, format="csr"))
