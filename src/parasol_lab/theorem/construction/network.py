"""The network of the theorem, put together once: out of networks it is the network, out of sizes its size."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from parasol.fitting import Network
from parasol_lab.theorem.construction.chain import Chain
from parasol_lab.theorem.construction.system import System
from parasol_lab.theorem.construction.theta import Rational, denominator_range, numerator_bound
from parasol_lab.theorem.networks import calculus, sizes
from parasol_lab.theorem.networks.inverse import inverse, inverse_size
from parasol_lab.theorem.networks.polynomials import polynomial, polynomial_size, reciprocal, reciprocal_size
from parasol_lab.theorem.networks.products import (
    gram,
    gram_size,
    levels_needed,
    matrix_product,
    matrix_product_size,
    product_size,
)
from parasol_lab.theorem.networks.products import product as scalar_product
from parasol_lab.theorem.networks.sizes import Size


class Builder:
    """Makes networks; resolved=False also such with more levels than float64 resolves."""

    def __init__(self, *, resolved: bool = True):
        self.product = partial(matrix_product, resolved=resolved)
        self.inverse = partial(inverse, resolved=resolved)

    affine = staticmethod(calculus.affine)
    identity = staticmethod(calculus.identity)
    sparse = staticmethod(calculus.sparse_concatenate)
    beside = staticmethod(calculus.parallel_shared)
    apart = staticmethod(calculus.parallel)
    select = staticmethod(calculus.with_input_map)
    mapped = staticmethod(calculus.with_output_map)
    gram = staticmethod(gram)
    polynomial = staticmethod(polynomial)
    reciprocal = staticmethod(reciprocal)
    times = staticmethod(scalar_product)

    @staticmethod
    def scaled(network: Network, factor: float, shift: np.ndarray | None = None) -> Network:
        """x ↦ factor Φ(x) + shift."""
        return calculus.with_output_map(network, factor * sparse.eye_array(network.n_outputs, format="csr"), shift)


class Counter:
    """Makes the sizes of those networks."""

    identity = staticmethod(sizes.identity_size)
    sparse = staticmethod(sizes.sparse_concatenate_size)
    beside = staticmethod(sizes.parallel_size)
    apart = staticmethod(sizes.parallel_size)
    product = staticmethod(matrix_product_size)
    gram = staticmethod(gram_size)
    inverse = staticmethod(inverse_size)
    polynomial = staticmethod(polynomial_size)
    reciprocal = staticmethod(reciprocal_size)

    @staticmethod
    def affine(matrix: np.ndarray, bias: np.ndarray) -> Size:
        """Size of one layer."""
        return sizes.affine_size(len(bias), int(np.count_nonzero(matrix)), int(np.count_nonzero(bias)))

    @staticmethod
    def select(size: Size, matrix: np.ndarray) -> Size:
        """A choice of inputs changes no count."""
        return size

    @staticmethod
    def times(levels: int, z_x: float, z_y: float) -> Size:
        """Size of one product."""
        return product_size(levels)

    @staticmethod
    def scaled(size: Size, factor: float, shift: np.ndarray | None = None) -> Size:
        """The shift adds its entries to the biases, of which there are none before."""
        extra = 0 if shift is None else int(np.count_nonzero(shift))
        return replace(size, n_weights=size.n_weights + extra, last=size.last + extra)

    @staticmethod
    def mapped(size: Size, matrix: np.ndarray) -> Size:
        """Every output of the last product has as many weights, each alone in its column; there are no biases."""
        last = size.last // size.n_outputs * int(np.count_nonzero(matrix))
        return replace(size, n_weights=size.n_weights - size.last + last, last=last, n_outputs=len(matrix))


def assemble(kit: Any, system: System, chain: Chain, powers: str, *, symmetric: bool, direct: bool) -> Any:
    """μ ↦ c by kit = `Builder()` as a `Network`, by `Counter()` as its `Size`.

    mult( λ inv(I − λ mult(Bᵀ, B)), mult(Bᵀ, f) ) by sparse concatenations, and T applied to the last layer. `symmetric`
    computes one triangle of BᵀB and of all that is made of it. `direct` computes BᵀB and Bᵀf, where they are quadratic in μ,
    from the products of parameters instead of those of matrices.
    """
    d = system.n_modes
    if direct and symmetric and system.exact_operator and system.exact_load:
        remainder, right = _quadratic(kit, system, chain)
        options = {"symmetric": True}
    else:
        remainder, right, options = _by_matrices(kit, system, chain, symmetric)
    inverted = kit.sparse(kit.inverse(d, chain.delta, chain.inverse, powers, **options), remainder)
    both = kit.beside(kit.scaled(inverted, chain.relaxation), right)
    return kit.mapped(kit.sparse(kit.product(d, d, 1, chain.final, *chain.final_bounds), both), system.back)


def _quadratic(kit: Any, system: System, chain: Chain) -> tuple[Any, Any]:
    """I − λ BᵀB (one triangle) and Bᵀf as polynomials of degree 2 in μ: few products of scalars, many sums."""
    n, d = len(system.linear), system.n_modes
    operators = np.zeros((1 + n, system.n_rows, d))
    operators[0] = system.operators[0]
    operators[1 + system.touched] = system.operators[1:]
    squares = np.einsum("pri,qrj->ijpq", operators, operators)
    moments = np.einsum("pri,qr->ipq", operators, system.loads)
    corner = np.tril_indices(d)  # (j, i) with i ≤ j, j slowest: the upper triangle column by column
    relaxed = -chain.relaxation * squares[corner[1], corner[0]]
    relaxed[:, 0, 0] += np.eye(d)[corner]
    places = [tuple(int(j == i) for j in range(system.n_parameters)) for i in system.linear]
    exponents = [(0,) * system.n_parameters, *places]
    box = system.parameters.bounds.T

    def network(arrays: np.ndarray, accuracy: float) -> Any:
        terms = []
        for array in arrays:
            entry: dict = {}
            for (i, first), (j, second) in product(enumerate(exponents), repeat=2):
                key = tuple(a + b for a, b in zip(first, second, strict=True))
                entry[key] = entry.get(key, 0.0) + float(array[i, j])
            terms.append(entry)
        return kit.polynomial(terms, box, accuracy)

    # ‖E‖₂ ≤ ‖E‖_F ≤ d max|E_ij|
    first = network(relaxed, chain.relaxation * chain.gram / d)
    return first, network(moments, chain.right / d**0.5)


def _by_matrices(kit: Any, system: System, chain: Chain, symmetric: bool) -> tuple[Any, Any, dict]:
    """I − λ BᵀB and Bᵀf by products of matrices."""
    d, rows, bound = system.n_modes, system.n_rows, chain.operator_bound
    operator, load = (system.operators, system.touched), (system.loads, np.arange(len(system.loads) - 1))
    transposed = (system.operators.transpose(0, 2, 1), system.touched)
    allowed = _allowed(system, operator, chain.operator_in_gram)
    if symmetric:
        squares, ones = kit.gram(rows, d, chain.gram, bound), np.eye(d)[np.tril_indices(d)]
        entries, options = _entries(kit, system, [operator], allowed), {"symmetric": True}
    else:
        squares, ones = kit.product(d, rows, d, chain.gram, bound, bound), np.eye(d).ravel()
        entries, options = _entries(kit, system, [transposed, operator], allowed), {}
    remainder = kit.scaled(kit.sparse(squares, entries), -chain.relaxation, ones)
    allowed = min(_allowed(system, operator, chain.operator_in_right), _allowed(system, load, chain.load))
    entries = _entries(kit, system, [transposed, load], allowed)
    return remainder, kit.sparse(kit.product(d, rows, 1, chain.right, *chain.right_bounds), entries), options


def parameter_networks(kit: Any, system: System, chain: Chain) -> tuple[Any, Any]:
    """μ ↦ vec B and μ ↦ f, as exact as the chain asks for: what the theorem assumes to be given."""
    operator, load = (system.operators, system.touched), (system.loads, np.arange(len(system.loads) - 1))
    allowed = _allowed(system, operator, min(chain.operator_in_gram, chain.operator_in_right))
    first = _entries(kit, system, [operator], allowed)
    return first, _entries(kit, system, [load], _allowed(system, load, chain.load))


def assemble_linear(kit: Any, system: System, accuracy: float) -> Any:
    """μ ↦ c where B does not depend on μ: c = T B⁺ f, one affine layer after the coordinates."""
    loads = system.loads @ (system.back @ np.linalg.pinv(system.operators[0])).T
    part = (loads, np.arange(len(loads) - 1))
    return _entries(kit, system, [part], _allowed(system, part, accuracy))


Part = tuple[np.ndarray, np.ndarray]  # a constant and slopes (1 + n, ...), and the n coordinates these belong to


def _entries(kit: Any, system: System, parts: list[Part], accuracy: float) -> Any:
    """μ ↦ vec of each part in turn, where every coordinate may be off by `accuracy`."""
    n_linear, n_curved = len(system.linear), len(system.functions)
    matrices, biases = [], []
    for arrays, places in parts:
        columns = arrays.transpose(0, *range(arrays.ndim - 1, 0, -1)).reshape(len(arrays), -1)  # column by column
        matrix = np.zeros((columns.shape[1], n_linear + n_curved))
        matrix[:, places] = columns[1:].T
        matrices.append(matrix)
        biases.append(columns[0])
    matrix, bias = np.vstack(matrices), np.concatenate(biases)
    used = np.any(matrix != 0, axis=0)
    linear, curved = np.flatnonzero(used[:n_linear]), np.flatnonzero(used[n_linear:])
    choose = np.eye(system.n_parameters)[system.linear[linear]]
    if not len(curved):
        return kit.affine(matrix[:, linear] @ choose, bias)
    coordinates = _curved(kit, system, [system.functions[j] for j in curved], accuracy)
    if len(linear):
        coordinates = kit.beside(kit.affine(choose, np.zeros(len(linear))), coordinates)
    return kit.sparse(kit.affine(matrix[:, used], bias), coordinates)


def _allowed(system: System, part: Part, error: float) -> float:
    """How far each curved coordinate may be off so that Σ_j |change of ξ_j| ||slope_j|| ≤ error."""
    slopes = [slope for slope, j in zip(part[0][1:], part[1], strict=True) if j >= len(system.linear)]
    total = sum(float(np.linalg.norm(slope, 2)) for slope in slopes)
    return error / total if total else np.inf


def _curved(kit: Any, system: System, functions: list[Rational], accuracy: float) -> Any:
    """μ ↦ the functions that are not affine, each within `accuracy`; polynomials share their monomials."""
    box = system.parameters.bounds.T
    outputs = [f for f in functions if f.polynomial]
    networks = [kit.polynomial([dict(f.numerator) for f in outputs], box, accuracy)] if outputs else []
    for function in [f for f in functions if not f.polynomial]:
        networks.append(_quotient(kit, function, system, accuracy))
        outputs.append(function)
    together = kit.beside(*networks) if len(networks) > 1 else networks[0]
    if system.n_parameters > len(box):
        together = kit.select(together, np.eye(len(box), system.n_parameters))
    order = [outputs.index(f) for f in functions]
    if order == sorted(order):
        return together
    return kit.sparse(kit.affine(np.eye(len(order))[order], np.zeros(len(order))), together)


def _quotient(kit: Any, function: Rational, system: System, accuracy: float) -> Any:
    """μ ↦ n(μ) / d(μ): polynomials, then the reciprocal, then the product; a quarter of the error each."""
    space = system.parameters
    (low, high), most = denominator_range(function, space), numerator_bound(function, space)
    nearest = min(abs(low), abs(high))
    of_reciprocal = accuracy / (4 * most)
    of_polynomials = min(
        nearest / 2, accuracy / (4 * (2 / nearest + of_reciprocal)), accuracy * nearest**2 / (8 * most)
    )
    above, below = dict(function.numerator), dict(function.denominator)
    first = kit.polynomial([above, below], space.bounds.T, of_polynomials)
    pad = of_polynomials
    second = kit.apart(kit.identity(1, 1), kit.reciprocal(low - pad, high + pad, of_reciprocal))
    z = most + of_polynomials, 2 / nearest + of_reciprocal
    return kit.sparse(kit.sparse(kit.times(levels_needed(z[0] * z[1], accuracy / 4), *z), second), first)
