"""The lemmas of the paper's section 3.1 as properties. Weights are small whole numbers, so that realisations agree exactly."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from parasol.checks import ParasolError
from parasol.fitting.network import Network
from parasol_lab.theorem.networks.calculus import (
    add,
    affine,
    clean,
    concatenate,
    extend,
    identity,
    parallel,
    parallel_shared,
    sparse_concatenate,
    with_input_map,
    with_output_map,
)
from parasol_lab.theorem.networks.sizes import (
    add_size,
    extend_size,
    identity_size,
    parallel_size,
    size_of,
    sparse_concatenate_size,
)

seeds = st.integers(0, 2**32 - 1)
widths = st.lists(st.integers(1, 5), min_size=2, max_size=5)
cheap = settings(max_examples=40, deadline=None)


def whole(rng, shape):
    """Whole numbers between −2 and 2, half of them zero."""
    return rng.integers(-2, 3, shape).astype(float) * rng.integers(0, 2, shape)


def random_network(sizes, seed, *, dense=False):
    rng = np.random.default_rng(seed)
    matrices = [whole(rng, (m, n)) for n, m in itertools.pairwise(sizes)]
    biases = tuple(whole(rng, m) for m in sizes[1:])
    return Network(tuple(w if dense else sparse.csr_array(w) for w in matrices), biases, "relu")


def points(network, seed=0, n=20):
    return np.random.default_rng(seed).integers(-8, 9, (n, network.n_inputs)) / 4


@cheap
@given(widths, widths, st.integers(1, 4), seeds, st.booleans())
def test_concatenation(first, second, joint, seed, dense):
    before, after = random_network([*first, joint], seed, dense=dense), random_network([joint, *second], seed + 1)
    x = points(before)
    want = after(before(x))
    plain, thin = concatenate(after, before), sparse_concatenate(after, before)
    assert np.array_equal(plain(x), want)
    assert np.array_equal(thin(x), want)
    assert plain.depth == after.depth + before.depth - 1
    assert thin.depth == after.depth + before.depth
    doubled = np.count_nonzero(after.weights[0].toarray()) + before.layer_weights[-1]
    assert thin.n_weights == after.n_weights + before.n_weights + doubled
    assert thin.n_weights <= 2 * after.n_weights + 2 * before.n_weights
    assert thin.layer_weights[: before.depth - 1] == before.layer_weights[:-1]
    assert thin.layer_weights[before.depth + 1 :] == after.layer_weights[1:]
    assert size_of(thin) == sparse_concatenate_size(size_of(after), size_of(before))
    if not dense:  # layers that stay are not copied
        assert all(a is b for a, b in zip(thin.weights, before.weights[:-1], strict=False))
        assert all(a is b for a, b in zip(thin.weights[before.depth + 1 :], after.weights[1:], strict=True))


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("depth", [1, 2, 3, 7])
def test_identity(n, depth):
    net = identity(n, depth)
    x = np.random.default_rng(0).standard_normal((30, n))
    assert np.array_equal(net(x), x)
    assert net.depth == depth
    assert net.n_weights == (n if depth == 1 else 2 * n * depth)
    assert size_of(net) == identity_size(n, depth)
    assert {value for w in net.weights for value in w.data} <= {-1.0, 1.0}


@cheap
@given(widths, st.integers(0, 4), seeds)
def test_extension(sizes, extra, seed):
    net = random_network(sizes, seed)
    longer = extend(net, net.depth + extra)
    assert np.array_equal(longer(points(net)), net(points(net)))
    assert longer.depth == net.depth + extra
    added = 0 if extra == 0 else net.layer_weights[-1] + 2 * net.n_outputs * extra
    assert longer.n_weights == net.n_weights + added
    assert size_of(longer) == extend_size(size_of(net), net.depth + extra)


@cheap
@given(st.lists(widths, min_size=1, max_size=3), seeds)
def test_parallel_with_own_inputs(shapes, seed):
    nets = [random_network(sizes, seed + i) for i, sizes in enumerate(shapes)]
    together = parallel(*nets)
    xs = [points(net, i) for i, net in enumerate(nets)]
    assert np.array_equal(together(np.hstack(xs)), np.hstack([net(x) for net, x in zip(nets, xs, strict=True)]))
    check_parallel_counts(together, nets)


@cheap
@given(st.lists(widths, min_size=1, max_size=3), st.integers(1, 4), seeds)
def test_parallel_with_shared_inputs(shapes, n_inputs, seed):
    nets = [random_network([n_inputs, *sizes], seed + i) for i, sizes in enumerate(shapes)]
    together, x = parallel_shared(*nets), points(nets[0])
    assert np.array_equal(together(x), np.hstack([net(x) for net in nets]))
    check_parallel_counts(together, nets)
    repeated = with_input_map(parallel(*nets), np.vstack([np.eye(n_inputs)] * len(nets)))
    assert repeated.layer_weights == together.layer_weights  # Lemma A.1 with equality


def check_parallel_counts(together, nets):
    depth = max(net.depth for net in nets)
    assert together.depth == depth
    assert together.n_weights == sum(extend(net, depth).n_weights for net in nets)
    most = 2 * sum(net.n_weights for net in nets) + 4 * depth * sum(net.n_outputs for net in nets)
    assert together.n_weights <= most
    if len({net.depth for net in nets}) == 1:
        assert together.n_weights == sum(net.n_weights for net in nets)
        assert together.layer_weights == tuple(np.sum([net.layer_weights for net in nets], axis=0))
    assert size_of(together) == parallel_size(*[size_of(net) for net in nets])


@cheap
@given(widths, seeds)
def test_a_row_after_and_a_selection_before_add_no_weights_to_any_layer(sizes, seed):
    rng, net = np.random.default_rng(seed), random_network(sizes, seed)
    row = whole(rng, (1, net.n_outputs))
    select = np.zeros((net.n_inputs, 3))
    select[np.arange(net.n_inputs), rng.integers(0, 3, net.n_inputs)] = rng.integers(-2, 3, net.n_inputs)
    after, before, x = with_output_map(net, row), with_input_map(net, select), points(net)
    assert np.array_equal(after(x), net(x) @ row.T)
    x = rng.integers(-8, 9, (20, 3)) / 4
    assert np.array_equal(before(x), net(x @ select.T))
    for made in (after, before):
        assert made.depth == net.depth
        assert all(mine <= its for mine, its in zip(made.layer_weights, net.layer_weights, strict=True))


@cheap
@given(st.lists(widths, min_size=1, max_size=3), seeds)
def test_sums(shapes, seed):
    rng = np.random.default_rng(seed)
    nets = []
    for i, sizes in enumerate(shapes):
        net = random_network([2, *sizes, 3], seed + i)
        nets.append(Network(net.weights, (*net.biases[:-1], np.zeros(3)), "relu"))
    bias, x = whole(rng, 3), points(nets[0])
    total = add(*nets, bias=bias)
    assert np.array_equal(total(x), sum(net(x) for net in nets) + bias)
    assert size_of(total) == add_size(*[size_of(net) for net in nets], n_biases=np.count_nonzero(bias))


def test_repeated_layers_are_joined_once():
    net = identity(3, 10)
    assert len({id(w) for w in net.weights}) == 3
    both = parallel(net, identity(2, 10))
    assert len({id(w) for w in both.weights}) == 3
    assert len({id(w) for w in parallel_shared(net, net).weights}) == 3


def test_affine_maps_shift_and_mix():
    net = with_output_map(with_input_map(identity(2, 3), [[1.0, 1.0], [0.0, 2.0]], [0.5, 0.0]), [[0.0, 3.0]], [-1.0])
    assert np.array_equal(net([[1.0, 2.0]]), [[11.0]])
    assert net.depth == 3


def test_clean_removes_zeros_and_leaves_its_argument():
    given_matrix = sparse.csr_array((np.array([0.0, 1.0, 2.0, 3.0]), ([0, 0, 1, 1], [0, 1, 1, 1])), shape=(2, 2))
    given_matrix.data[0] = 0.0
    made = clean(given_matrix)
    assert made.nnz == 2
    assert given_matrix.nnz == 3
    assert np.array_equal(made.toarray(), [[0.0, 1.0], [0.0, 5.0]])
    assert clean(made) is made


def test_mistakes_are_told():
    tanh = Network((np.ones((1, 1)),), (np.zeros(1),), "tanh")
    with pytest.raises(ParasolError, match="plain ReLU networks, got activation 'tanh'"):
        extend(tanh, 3)
    with pytest.raises(ParasolError, match="with a linear path"):
        extend(Network((np.ones((1, 1)),), (np.zeros(1),), "relu", skip=np.ones((1, 1))), 3)
    scaled = Network((np.ones((1, 1)),), (np.zeros(1),), "relu", input_shift=[1.0])
    with pytest.raises(ParasolError, match="folded"):
        extend(scaled, 3)
    assert np.array_equal(extend(scaled.folded(), 3)([[5.0]]), [[4.0]])
    with pytest.raises(ParasolError, match="2 outputs cannot be the 3 inputs"):
        concatenate(identity(3, 1), identity(2, 1))
    with pytest.raises(ParasolError, match="share none"):
        parallel_shared(identity(3, 1), identity(2, 1))
    with pytest.raises(ParasolError, match="no extension to 1"):
        extend(identity(3, 2), 1)
    with pytest.raises(ParasolError, match="no extension to 1"):
        extend_size(identity_size(3, 2), 1)
    with pytest.raises(ParasolError, match="no networks"):
        parallel()
    with pytest.raises(ParasolError, match="2, 3 outputs have no sum"):
        add(affine(np.ones((2, 1))), affine(np.ones((3, 1))))
    with pytest.raises(ParasolError, match="bias has shape"):
        affine([[1.0]], [1.0, 2.0])
    with pytest.raises(ParasolError, match="depth must be a whole number"):
        identity(2, 0)
