"""Squares and products as ReLU networks: the sawtooth, sums of products of inputs, matrix products.

A matrix enters and leaves column by column: entry (i, t) of an (m, n) matrix is input i + t·m.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import sparse

from parasol.checks import check_count, check_positive
from parasol.errors import InputError
from parasol.fitting import Network
from parasol_lab.theorem.networks.calculus import clean
from parasol_lab.theorem.networks.sizes import Size

MAX_LEVELS = 25  # off by 4^-26 = 2^-52 of the largest product: rounding is as large, and one level more changes nothing

# One level maps (g, v, q) to (2g − 4v, σ(2g − 4v − ½), 4q + 8v): g is the s-fold hat, v = σ(g − ½), and
# q = 4^s f_s − g, which starts at 0 and only grows, so it needs no second neuron and never cancels.
_LEVEL = np.array([[2.0, -4.0, 0.0], [2.0, -4.0, 0.0], [0.0, 8.0, 4.0]])
_BEND = np.array([0.0, -0.5, 0.0])


def square(levels: int) -> Network:
    """x ↦ f_m(x) on [0, 1], the broken line through x² at the multiples of 2^-m: 0 ≤ f_m(x) − x² ≤ 4^-(m+1).

    f_m(x) = x − Σ_{s=1}^m g_s(x) / 4^s with g_s the s-fold hat function (Yarotsky 2017). L = m + 1, M = 7m − 2.

    >>> square(1)([[0.0], [0.25], [0.5], [1.0]]).ravel(), square(3).depth, square(3).n_weights
    (array([0.   , 0.125, 0.25 , 1.   ]), 4, 19)
    """
    levels = check_levels(levels)
    start = (clean(np.ones((2, 1))), _BEND[:2].copy())
    return _network([start, *_saw(levels, 1), (_read(levels, sparse.eye_array(1)), np.zeros(1))])


def square_size(levels: int) -> Size:
    """Size of `square`."""
    m = check_count(levels, "levels")
    return Size(m + 1, 7 * m - 2, m, 2, 3 if m > 1 else 2, 1, 3 * m)


def product(levels: int, z_x: float = 1.0, z_y: float = 1.0) -> Network:
    """(x, y) ↦ x·y within z_x·z_y / 4^(levels + 1), for |x| ≤ z_x and |y| ≤ z_y; zero where x or y is.

    xy = z_x z_y [ (|a + b|/2)² − (|a − b|/2)² ] with a = x/z_x, b = y/z_y: both squares err upwards. L = m + 2, M = 14m + 8.

    >>> product(3)([[0.5, -0.25], [0.0, 0.3]]).ravel(), product(3).depth, product(3).n_weights
    (array([-0.125,  0.   ]), 5, 50)
    """
    return product_network(_pair(), levels, z_x, z_y)


def product_size(levels: int) -> Size:
    """Size of `product`."""
    return product_network_size(_pair(), levels, 1.0, 1.0)


def matrix_product(
    m: int, n: int, k: int, accuracy: float, z_a: float, z_b: float, *, resolved: bool = True
) -> Network:
    """(vec A, vec B) ↦ vec AB within `accuracy` in ‖·‖_F, for A (m, n), B (n, k), ‖A‖₂ ≤ z_a, ‖B‖₂ ≤ z_b.

    One scalar product for each (i, t, j), their entries at most the norms: L = levels + 2, M = mnk (14 levels + 8).

    >>> net = matrix_product(1, 2, 1, 0.1, 1.0, 1.0)  # a scalar product of vectors
    >>> net([[0.5, 0.25, 0.5, -0.5]]), net.n_weights
    (array([[0.125]]), 72)
    """
    levels = _matrix_levels(m, n, k, accuracy, z_a, z_b, resolved=resolved)
    return product_network(matrix_wiring(m, n, k), levels, z_a, z_b, resolved=resolved)


def matrix_product_size(m: int, n: int, k: int, accuracy: float, z_a: float, z_b: float) -> Size:
    """Size of `matrix_product`, also of one that float64 does not resolve: its levels exceed MAX_LEVELS."""
    levels = _matrix_levels(m, n, k, accuracy, z_a, z_b, resolved=False)
    return product_network_size(matrix_wiring(m, n, k), levels, z_a, z_b)


@dataclass(frozen=True, eq=False)
class Wiring:
    """Which inputs are multiplied and which products are added: output = Σ_p sums[:, p] · x[left_p] · (x[right_p] + shift_p)."""

    n_inputs: int
    left: np.ndarray  # (n_products,)
    right: np.ndarray  # (n_products,)
    sums: sparse.csr_array  # (n_outputs, n_products)
    shift: np.ndarray | None = None  # (n_products,)


def product_network(wiring: Wiring, levels: int, z_left: float, z_right: float, *, resolved: bool = True) -> Network:
    """The network of a wiring: each product is off by at most z_left · z_right / 4^(levels + 1).

    |x[left]| ≤ z_left and |x[right] + shift| ≤ z_right. The middle layers are one and the same object. More levels than
    MAX_LEVELS are refused unless resolved=False: hats are exact in binary, so they do no harm, but rounding is the error then.
    """
    levels = check_levels(levels) if resolved else check_count(levels, "levels")
    z_left, z_right = check_positive(z_left, "z_x"), check_positive(z_right, "z_y")
    which, sign = _branches(wiring, z_left, z_right)  # the squares of (a + b)/2 and (a − b)/2
    n, rows = len(which), np.arange(2 * len(which))
    both = np.repeat([1.0, -1.0], n)  # |t| = σ(t) + σ(−t)
    values = np.concatenate([both * (0.5 / z_left), both * np.tile(sign, 2) * (0.5 / z_right)])
    columns = np.concatenate([np.tile(wiring.left[which], 2), np.tile(wiring.right[which], 2)])
    first = clean(sparse.coo_array((values, (np.tile(rows, 2), columns)), shape=(2 * n, wiring.n_inputs)))
    start = np.zeros(2 * n) if wiring.shift is None else values[2 * n :] * np.tile(wiring.shift[which], 2)
    absolute = (_repeat(np.ones((2, 2)), n), np.repeat(_BEND[:2], n))
    difference = sparse.coo_array((sign * (z_left * z_right), (which, np.arange(n))), shape=(len(wiring.left), n))
    last = (_read(levels, wiring.sums @ sparse.csr_array(difference)), np.zeros(wiring.sums.shape[0]))
    return _network([(first, start), absolute, *_saw(levels, n), last])


def product_network_size(wiring: Wiring, levels: int, z_left: float, z_right: float) -> Size:
    """Size of `product_network`: where an input is multiplied by itself, a + b is one weight and a − b is left out."""
    m, (which, _) = check_count(levels, "levels"), _branches(wiring, z_left, z_right)
    n, n_outputs = len(which), wiring.sums.shape[0]
    itself = 2 * len(wiring.left) - n
    n_sums = int(np.diff(sparse.csc_array(wiring.sums).indptr)[which].sum())
    shifted = 0 if wiring.shift is None else 2 * int(np.count_nonzero(wiring.shift[which]))
    first, last = 4 * n - 2 * itself, (3 if m > 1 else 2) * n_sums
    inside = 5 * n + (6 * n + 7 * n * (m - 2) if m > 1 else 0)
    return Size(m + 2, first + shifted + inside + last, m, first, last, n_outputs, (3 * m + 1) * n + n_outputs)


def _branches(wiring: Wiring, z_left: float, z_right: float) -> tuple[np.ndarray, np.ndarray]:
    """Product and sign of each square. Those of one product lie side by side: where equal they cancel without rounding."""
    which, sign = np.repeat(np.arange(len(wiring.left)), 2), np.tile([1.0, -1.0], len(wiring.left))
    if z_left == z_right and wiring.shift is None:  # x·x is one square
        keep = (sign > 0) | (wiring.left[which] != wiring.right[which])
        which, sign = which[keep], sign[keep]
    return which, sign


def matrix_wiring(
    m: int, n: int, k: int, *, left: int = 0, right: int | None = None, n_inputs: int | None = None
) -> Wiring:
    """The wiring of A·B where vec A begins at input `left` and vec B at input `right`; of A·A where both are one."""
    m, n, k = check_count(m, "m"), check_count(n, "n"), check_count(k, "k")
    right = m * n if right is None else right
    j, i, t = (index.ravel() for index in np.meshgrid(np.arange(k), np.arange(m), np.arange(n), indexing="ij"))
    sums = sparse.csr_array((np.ones(i.size), (i + j * m, np.arange(i.size))), shape=(m * k, i.size))
    return Wiring(n * (m + k) if n_inputs is None else n_inputs, left + i + t * m, right + t + j * n, sums)


def gram(n_rows: int, n: int, accuracy: float, z: float) -> Network:
    """vec B ↦ BᵀB within `accuracy` in ‖·‖_F, for B (n_rows, n), ‖B‖₂ ≤ z; half the products of `matrix_product`.

    Only the upper triangle comes out, column by column: entry (i, j), i ≤ j, is output i + j(j+1)/2 (see `unpack`).

    >>> gram(1, 2, 1e-3, 5.0)([[3.0, 4.0]]).round(2)
    array([[ 9., 12., 16.]])
    """
    return product_network(_gram_wiring(n_rows, n), _matrix_levels(n, n_rows, n, accuracy, z, z), z, z)


def gram_size(n_rows: int, n: int, accuracy: float, z: float) -> Size:
    """Size of `gram`, also of one that float64 does not resolve."""
    levels = _matrix_levels(n, n_rows, n, accuracy, z, z, resolved=False)
    return product_network_size(_gram_wiring(n_rows, n), levels, z, z)


def _gram_wiring(n_rows: int, n: int) -> Wiring:
    j, i, t = (index.ravel() for index in np.meshgrid(np.arange(n), np.arange(n), np.arange(n_rows), indexing="ij"))
    i, j, t = (index[i <= j] for index in (i, j, t))
    sums = sparse.csr_array((np.ones(i.size), (packed(i, j), np.arange(i.size))), shape=(n * (n + 1) // 2, i.size))
    return Wiring(n_rows * n, t + i * n_rows, t + j * n_rows, sums)


def symmetric_wiring(n: int, *, right: int = 0, n_inputs: int | None = None) -> Wiring:
    """The wiring of the upper triangle of A·B for symmetric A and B given by theirs, A's first, B's from input `right`."""
    j, i, t = (index.ravel() for index in np.meshgrid(np.arange(n), np.arange(n), np.arange(n), indexing="ij"))
    i, j, t = (index[i <= j] for index in (i, j, t))
    half = n * (n + 1) // 2
    sums = sparse.csr_array((np.ones(i.size), (packed(i, j), np.arange(i.size))), shape=(half, i.size))
    return Wiring(half if n_inputs is None else n_inputs, packed(i, t), right + packed(t, j), sums)


def symmetric_times(n: int, accuracy: float, z_a: float, z_x: float) -> Network:
    """(A, x) ↦ A x within `accuracy`, for a symmetric A (n, n) given by its upper triangle, ‖A‖₂ ≤ z_a, ‖x‖ ≤ z_x.

    >>> symmetric_times(2, 1e-3, 5.0, 2.0)([[3.0, 4.0, 0.0, 1.0, 1.0]]).round(2)  # ((3, 4), (4, 0)) times (1, 1)
    array([[7., 4.]])
    """
    return product_network(_times_wiring(n), _matrix_levels(n, n, 1, accuracy, z_a, z_x), z_a, z_x)


def symmetric_times_size(n: int, accuracy: float, z_a: float, z_x: float) -> Size:
    """Size of `symmetric_times`, also of one that float64 does not resolve."""
    levels = _matrix_levels(n, n, 1, accuracy, z_a, z_x, resolved=False)
    return product_network_size(_times_wiring(n), levels, z_a, z_x)


@lru_cache(maxsize=32)
def _times_wiring(n: int) -> Wiring:
    half, (i, t) = n * (n + 1) // 2, (index.ravel() for index in np.indices((n, n)))
    sums = sparse.csr_array((np.ones(n * n), (i, np.arange(n * n))), shape=(n, n * n))
    return Wiring(half + n, packed(i, t), half + t, sums)


def packed(i, j):
    """Where entry (i, j) of a symmetric matrix is among those of its upper triangle, column by column.

    >>> packed([0, 1, 0, 1], [0, 0, 1, 1])
    array([0, 1, 1, 2])
    """
    low, high = np.minimum(i, j), np.maximum(i, j)
    return low + high * (high + 1) // 2


def unpack(n: int) -> sparse.csr_array:
    """The (n², n(n+1)/2) matrix that makes vec A of the upper triangle of a symmetric A."""
    i, j = (index.ravel() for index in np.meshgrid(np.arange(n), np.arange(n)))
    return sparse.csr_array((np.ones(n * n), (i + j * n, packed(i, j))), shape=(n * n, n * (n + 1) // 2))


def levels_needed(most: float, accuracy: float) -> int:
    """The fewest levels m ≥ 1 with most / 4^(m + 1) ≤ accuracy, whether float64 resolves them or not.

    >>> levels_needed(1.0, 4.0**-5), levels_needed(1025.0, 1.0), levels_needed(1.0, 2.0)
    (4, 5, 1)
    """
    return max(1, math.ceil(0.5 * math.log2(most / accuracy)) - 1) if most > accuracy else 1


def rounded_up(value: float) -> str:
    """Two digits that are not below the value: what a user is told to ask for has to work.

    >>> rounded_up(0.06501), rounded_up(120.0)
    ('0.066', '1.2e+02')
    """
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.ceil(value / unit * (1 - 1e-12)) * unit:.2g}"


def check_levels(levels: int) -> int:
    """Return `levels` if float64 resolves them."""
    if check_count(levels, "levels") > MAX_LEVELS:
        raise InputError(
            f"levels={levels} is more than float64 resolves. Use levels <= {MAX_LEVELS}: "
            f"products are then within {4.0 ** -(MAX_LEVELS + 1):.1g} of the largest."
        )
    return int(levels)


def _matrix_levels(m: int, n: int, k: int, accuracy: float, z_a: float, z_b: float, *, resolved: bool = True) -> int:
    m, n, k = check_count(m, "m"), check_count(n, "n"), check_count(k, "k")
    # ‖E‖₂ ≤ ‖E‖_F ≤ √(mk) · max|E_ij|, and each of the mk entries adds up n products
    most = n * math.sqrt(m * k) * check_positive(z_a, "z_a") * check_positive(z_b, "z_b")
    levels = levels_needed(most, check_positive(accuracy, "accuracy"))
    if resolved and levels > MAX_LEVELS:
        raise InputError(
            f"accuracy={accuracy:.3g} of a product of ({m}, {n}) and ({n}, {k}) matrices needs {levels} levels, more than "
            f"float64 resolves. Use accuracy >= {rounded_up(most * 4.0 ** -(MAX_LEVELS + 1))}."
        )
    return levels


def _pair() -> Wiring:
    return Wiring(2, np.array([0]), np.array([1]), sparse.csr_array(np.ones((1, 1))))


def _saw(levels: int, n: int) -> list[tuple[sparse.csr_array, np.ndarray]]:
    """The layers from (g, v) of level 0 to (g, v, q) of level `levels` − 1, for n squares at once."""
    if levels == 1:
        return []
    bend = np.repeat(_BEND, n)
    middle = (_repeat(_LEVEL, n), bend)
    return [(_repeat(_LEVEL[:, :2], n), bend), *[middle] * (levels - 2)]


def _read(levels: int, sums) -> sparse.csr_array:
    """sums · f_m from the last state: 4^m f_m = q + g one level on = 2g + 4v + 4q."""
    weights = np.array([[2.0, 4.0, 4.0]] if levels > 1 else [[2.0, 4.0]]) * 4.0**-levels
    return clean(sparse.kron(weights, sums, format="csr"))


def _repeat(matrix: np.ndarray, n: int) -> sparse.csr_array:
    return clean(sparse.kron(matrix, sparse.eye_array(n), format="csr"))


def _network(layers) -> Network:
    return Network(tuple(w for w, _ in layers), tuple(b for _, b in layers), "relu")
