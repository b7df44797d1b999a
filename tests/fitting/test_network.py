"""Networks as plain data: values, derivatives, counts, types."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from parasol.checks import ParasolError
from parasol.fitting.network import ACTIVATIONS, Network
from parasol.runtime import program as programs


def random_network(activation, widths=(3, 5, 4, 2), *, skip=True, seed=0):
    rng = np.random.default_rng(seed)
    pairs = list(itertools.pairwise(widths))
    return Network(
        tuple(rng.standard_normal((m, n)) for n, m in pairs),
        tuple(rng.standard_normal(m) for _, m in pairs),
        activation,
        skip=rng.standard_normal((widths[-1], widths[0])) if skip else None,
        input_shift=rng.standard_normal(widths[0]),
        input_scale=rng.uniform(0.5, 2, widths[0]),
        output_shift=rng.standard_normal(widths[-1]),
        output_scale=rng.uniform(0.5, 2, widths[-1]),
    )


FORMULAS = {
    "relu": lambda h: np.where(h > 0, h, 0.0),
    "tanh": np.tanh,
    "silu": lambda h: h / (1 + np.exp(-h)),
    "gelu": lambda h: 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3))),
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_values_are_those_of_the_definition(activation):
    net = random_network(activation)
    for given_input in np.random.default_rng(1).standard_normal((5, 3)):
        x = (given_input - net.input_shift) * net.input_scale
        h = x
        for w, b in zip(net.weights[:-1], net.biases[:-1], strict=True):
            h = FORMULAS[activation](w @ h + b)
        raw = net.weights[-1] @ h + net.biases[-1] + net.skip @ x
        assert np.allclose(net([given_input])[0], net.output_shift + net.output_scale * raw, rtol=1e-13)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("widths", [(3, 5, 4, 2), (3, 2), (1, 7, 1)])
def test_jacobian_is_the_slope(activation, widths):
    net = random_network(activation, widths)
    x, step = np.random.default_rng(2).standard_normal((6, widths[0])), 1e-6
    slopes = [(net(x + step * e) - net(x - step * e)) / (2 * step) for e in np.eye(widths[0])]
    assert np.allclose(net.jacobian(x), np.stack(slopes, axis=-1), atol=1e-7)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=2, max_size=5), st.integers(0, 1000))
def test_counts(widths, seed):
    net = random_network("relu", tuple(widths), skip=False, seed=seed)
    assert net.depth == len(widths) - 1
    assert net.widths == tuple(widths)
    assert net.n_weights == sum(m * n + m for n, m in itertools.pairwise(widths))
    assert net(np.zeros((4, widths[0]))).shape == (4, widths[-1])


def test_float32_stays_float32_and_calling_changes_nothing():
    net = random_network("tanh").astype(np.float32)
    x = np.random.default_rng(0).standard_normal((10, 3))
    before = x.copy()
    first = net(x)
    assert first.dtype == np.float32
    assert np.array_equal(first, net(x))
    assert np.array_equal(x, before)
    assert np.allclose(first, random_network("tanh")(x), atol=1e-5)


def test_mistakes_are_told():
    w, b = np.ones((2, 3)), np.ones(2)
    with pytest.raises(ParasolError, match="activation='sine'"):
        Network((w,), (b,), "sine")
    with pytest.raises(ParasolError, match="followed by one with 3 inputs"):
        Network((w, w), (b, b), "relu")
    with pytest.raises(ParasolError, match="biases of shape"):
        Network((w,), (np.ones(3),), "relu")
    with pytest.raises(ParasolError, match="skip has shape"):
        Network((w,), (b,), "relu", skip=np.ones((1, 3)))
    with pytest.raises(ParasolError, match="inputs has shape"):
        Network((w,), (b,), "relu")(np.ones((4, 2)))
    with pytest.raises(ParasolError, match="one of each"):
        Network((), (), "relu")


def as_sparse(net, which=slice(None)):
    chosen = range(net.depth)[which]
    return replace(net, weights=tuple(sparse.csr_array(w) if i in chosen else w for i, w in enumerate(net.weights)))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("which", [slice(None), slice(0, 1), slice(1, None)])
def test_sparse_layers_are_the_same_map(activation, which, monkeypatch):
    dense = random_network(activation)
    dense.weights[1][::2] = 0.0
    net = as_sparse(dense, which)
    x = np.random.default_rng(3).standard_normal((17, 3))
    for block in (programs.SPARSE_BLOCK, 100):  # all at once, and two samples at a time
        monkeypatch.setattr(programs, "SPARSE_BLOCK", block)
        assert np.allclose(net(x), dense(x), rtol=1e-13, atol=1e-13)
        assert np.allclose(net.jacobian(x), dense.jacobian(x), rtol=1e-12, atol=1e-12)
    assert net(np.zeros((0, 3))).shape == (0, 2)
    assert np.allclose(net.folded()(x), dense(x), rtol=1e-12)
    assert np.allclose(net.folded().weights[0] @ np.eye(3), dense.folded().weights[0])
    assert net.astype(np.float32)(x).dtype == np.float32
    assert np.allclose(net.astype(np.float32)(x), dense(x), atol=1e-5)
    assert (net.n_weights, net.layer_weights) == (dense.n_weights, dense.layer_weights)
    assert net.is_sparse
    assert not dense.is_sparse


def test_one_sparse_layer_has_its_matrix_as_jacobian():
    net = Network((sparse.csr_array([[1.0, 0.0], [2.0, 3.0]]),), (np.zeros(2),), "relu", output_scale=[1.0, 10.0])
    assert np.array_equal(net.jacobian([[5.0, 5.0]]), [[[1.0, 0.0], [20.0, 30.0]]])
    assert np.array_equal(net.folded().weights[0].toarray(), [[1.0, 0.0], [20.0, 30.0]])


def test_stored_zeros_are_not_counted():
    w = sparse.csr_array(np.ones((2, 3)))
    w.data[:4] = 0.0
    net = Network((w, np.array([[0.0, 7.0]])), (np.array([1.0, 0.0]), np.zeros(1)), "relu")
    assert w.nnz == 6
    assert net.layer_weights == (3, 1)
    assert net.n_weights == 4


def test_what_layers_share_takes_memory_once():
    w, b = sparse.csr_array(np.eye(3)), np.zeros(3)
    one, many = Network((w,), (b,), "relu"), Network((w,) * 50, (b,) * 50, "relu")
    assert many.n_bytes == one.n_bytes == w.data.nbytes + w.indices.nbytes + w.indptr.nbytes + b.nbytes


def test_other_sparse_formats_are_refused():
    with pytest.raises(ParasolError, match="is a coo_array"):
        Network((sparse.coo_array(np.eye(2)),), (np.zeros(2),), "relu")
