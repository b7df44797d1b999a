"""Squares and products: bounds that are attained, counts that are exact."""

import re

import numpy as np
import pytest

from parasol.checks import ParasolError
from parasol_lab.theorem.networks.arithmetic import (
    MAX_LEVELS,
    gram,
    gram_size,
    matrix_product,
    matrix_product_size,
    product,
    product_size,
    size_of,
    square,
    square_size,
    unpack,
)


def vec(matrices):
    """Column by column."""
    return np.swapaxes(matrices, -1, -2).reshape(*matrices.shape[:-2], -1)


def matr(vectors, n_rows):
    return np.swapaxes(vectors.reshape(len(vectors), -1, n_rows), -1, -2)


def spectral(rng, n, shape, norm):
    """Random matrices, matrices of rank one and multiples of orthogonal ones, all of one spectral norm."""
    made = rng.standard_normal((n, *shape))
    made[::3] = made[::3, :, :1] * made[::3, :1, :]
    u, _, v = np.linalg.svd(made[1::3], full_matrices=False)
    made[1::3] = u @ v
    return made * (norm / np.linalg.norm(made, 2, axis=(1, 2)))[:, None, None]


@pytest.mark.parametrize("levels", [1, 2, 3, 5, 9])
def test_square_is_the_broken_line_through_the_parabola(levels):
    net, grid = square(levels), np.arange(2**levels + 1) / 2**levels
    assert np.array_equal(net(grid[:, None])[:, 0], grid**2)
    middle = (grid[1:] + grid[:-1]) / 2
    assert np.array_equal(net(middle[:, None])[:, 0] - middle**2, np.full(2**levels, 4.0 ** -(levels + 1)))
    x = np.linspace(0, 1, 1237)
    assert np.allclose(net(x[:, None])[:, 0], np.interp(x, grid, grid**2), rtol=0, atol=1e-15)
    assert (net.depth, net.n_weights) == (levels + 1, 7 * levels - 2)
    assert size_of(net, levels) == square_size(levels)


@pytest.mark.parametrize("levels", [1, 2, 4, 7])
def test_product_attains_its_bound_and_never_passes_it(levels):
    z_x, z_y, rng = 3.0, 0.5, np.random.default_rng(levels)
    net, bound = product(levels, z_x, z_y), z_x * z_y * 4.0 ** -(levels + 1)
    u = 2.0 ** -(levels + 1)  # (a + b)/2 in the middle of a cell, (a − b)/2 at its end
    worst = net([[u * z_x, u * z_y], [u * z_x, -u * z_y]])[:, 0]
    assert np.array_equal(worst - [u * u * z_x * z_y, -u * u * z_x * z_y], [bound, -bound])
    xy = rng.uniform(-1, 1, (20_000, 2)) * [z_x, z_y]
    xy[:4] = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]]) * [z_x, z_y]
    assert np.max(np.abs(net(xy)[:, 0] - xy.prod(axis=1))) <= bound * (1 + 1e-12)
    assert np.array_equal(net(xy[:4])[:, 0], xy[:4].prod(axis=1))
    assert (net.depth, net.n_weights) == (levels + 2, 14 * levels + 8)
    assert size_of(net, levels) == product_size(levels)


def test_product_with_zero_is_exactly_zero():
    xy = np.random.default_rng(0).uniform(-1, 1, (1000, 2))
    xy[::2, 0], xy[1::2, 1] = 0.0, 0.0
    assert not np.any(product(11, 1.7, 0.3)(xy))
    shared = matrix_product(3, 4, 2, 1e-5, 1.3, 0.7)
    x = np.random.default_rng(0).uniform(-0.1, 0.1, (50, 20))
    x[:, 12:] = 0.0
    assert not np.any(shared(x))


def test_error_of_a_product_falls_by_four_with_each_level_until_float64_ends():
    xy = np.random.default_rng(0).uniform(-1, 1, (20_000, 2))
    errors = [np.max(np.abs(product(m)(xy)[:, 0] - xy.prod(axis=1))) for m in range(1, 23)]
    assert np.allclose(np.array(errors) * 4.0 ** np.arange(2, 24), 1.0, atol=0.02)
    last = np.max(np.abs(product(MAX_LEVELS)(xy)[:, 0] - xy.prod(axis=1)))
    assert last <= 4 * np.finfo(float).eps  # rounding, not the sawtooth: 4^-26 is one eps


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (2, 3, 4), (4, 2, 1), (5, 5, 5)])
@pytest.mark.parametrize("accuracy", [0.3, 1e-3, 1e-7])
def test_matrix_product(m, n, k, accuracy):
    rng, z_a, z_b = np.random.default_rng(0), 3.0, 0.5
    a, b = spectral(rng, 60, (m, n), z_a), spectral(rng, 60, (n, k), z_b)
    net, size = matrix_product(m, n, k, accuracy, z_a, z_b), matrix_product_size(m, n, k, accuracy, z_a, z_b)
    errors = matr(net(np.hstack([vec(a), vec(b)])), m) - a @ b
    assert np.max(np.linalg.norm(errors, axis=(1, 2))) <= accuracy
    assert size == size_of(net, size.levels)
    assert (net.depth, net.n_weights) == (size.levels + 2, m * n * k * (14 * size.levels + 8))
    reached = n * np.sqrt(m * k) * z_a * z_b * 4.0 ** -(size.levels + 1)
    assert reached <= accuracy
    assert 4 * reached > accuracy or size.levels == 1  # one level fewer would not do


def test_bound_of_the_matrix_product_is_attained():
    m, n, k, z = 3, 4, 2, 2.0
    levels = matrix_product_size(m, n, k, 1e-2, z, z).levels
    entry = z * 2.0 ** -(levels + 1)  # every scalar product is then as wrong as it can be, in the same direction
    a, b = np.full((1, m, n), entry), np.full((1, n, k), entry)
    error = matr(matrix_product(m, n, k, 1e-2, z, z)(np.hstack([vec(a), vec(b)])), m) - a @ b
    assert np.isclose(np.linalg.norm(error), n * np.sqrt(m * k) * z * z * 4.0 ** -(levels + 1), rtol=1e-12)


def test_counts_of_the_notes_improved():
    size = matrix_product_size(5, 5, 5, 1e-3, 3.0, 3.0)
    assert (size.levels, size.depth, size.n_weights) == (8, 10, 15_000)  # 17 500 with six neurons per square


def test_matrix_times_vector():
    rng = np.random.default_rng(4)
    a, b = spectral(rng, 40, (4, 3), 2.0), spectral(rng, 40, (3, 1), 5.0)
    net = matrix_product(4, 3, 1, 1e-4, 2.0, 5.0)
    out = net(np.hstack([vec(a), b[:, :, 0]]))
    assert np.max(np.linalg.norm(out - np.einsum("sij,sj->si", a, b[:, :, 0]), axis=1)) <= 1e-4
    size = matrix_product_size(4, 3, 1, 1e-4, 2.0, 5.0)
    assert size == size_of(net, size.levels)


@pytest.mark.parametrize(("n_rows", "n"), [(1, 1), (7, 4), (3, 5)])
def test_gram_matrix_with_half_the_products(n_rows, n):
    b = spectral(np.random.default_rng(n), 60, (n_rows, n), 3.0)
    net, size = gram(n_rows, n, 1e-3, 3.0), gram_size(n_rows, n, 1e-3, 3.0)
    full = matr(net(vec(b)) @ unpack(n).T, n)
    assert np.max(np.linalg.norm(full - np.swapaxes(b, 1, 2) @ b, axis=(1, 2))) <= 1e-3
    assert size == size_of(net, size.levels)
    whole = matrix_product_size(n, n_rows, n, 1e-3, 3.0, 3.0)
    assert whole.levels == size.levels
    # one square instead of two for x·x, and one product for x·y and y·x: half the squares, less what reads x twice
    assert 2 * size.n_weights == whole.n_weights - 4 * n_rows * n


def test_layers_are_shared():
    net, size = matrix_product(4, 4, 4, 1e-9, 1.0, 1.0), matrix_product_size(4, 4, 4, 1e-9, 1.0, 1.0)
    assert len({id(w) for w in net.weights}) == 5
    assert net.depth == 18
    assert net.n_bytes < 0.4 * size.n_bytes
    copies = sum(w.data.nbytes + w.indices.nbytes + w.indptr.nbytes + b.nbytes for w, b in zip(net.weights, net.biases, strict=True))  # fmt: skip
    assert 0.9 * size.n_bytes < copies <= size.n_bytes


def test_mistakes_are_told():
    with pytest.raises(ParasolError, match=f"levels=40 is more than float64 resolves. Use levels <= {MAX_LEVELS}"):
        square(40)
    with pytest.raises(ParasolError, match="levels must be a whole number"):
        product(0)
    with pytest.raises(ParasolError, match="z_x must be positive"):
        product(3, -1.0)
    with pytest.raises(ParasolError, match="accuracy must be positive"):
        matrix_product(2, 2, 2, 0.0, 1.0, 1.0)
    with pytest.raises(ParasolError, match="n must be a whole number"):
        matrix_product_size(2, 0, 2, 0.1, 1.0, 1.0)
    with pytest.raises(ParasolError, match="more than float64 resolves") as told:
        matrix_product(3, 3, 3, 1e-20, 1.0, 1.0)
    assert matrix_product_size(3, 3, 3, 1e-20, 1.0, 1.0).levels > MAX_LEVELS
    advice = float(re.search(r"accuracy >= (\S+)\.$", str(told.value)).group(1))
    assert matrix_product(3, 3, 3, advice, 1.0, 1.0).depth == MAX_LEVELS + 2
