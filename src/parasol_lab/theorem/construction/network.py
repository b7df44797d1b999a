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
from parasol_lab.theorem.construction.refinement import refined
from parasol_lab.theorem.construction.system import System
from parasol_lab.theorem.construction.theta import Rational, denominator_range, largest, numerator_bound
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
    symmetric_times,
    symmetric_times_size,
)
from parasol_lab.theorem.networks.products import product as scalar_product
from parasol_lab.theorem.networks.sizes import Size

Part = tuple[np.ndarray, np.ndarray]  # a constant and slopes (1 + n, ...), and the n coordinates these belong to


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
    symmetric_times = staticmethod(symmetric_times)
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
    symmetric_times = staticmethod(symmetric_times_size)
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


def assemble(kit: Any, system: System, chain: Chain, powers: str, given: tuple[Any, Any], *, symmetric: bool) -> Any:
    """μ ↦ c by kit = `Builder()` as a `Network`, by `Counter()` as its `Size`, given the `normal_equations` by the same kit.

    mult( λ inv(I − λ mult(Bᵀ, B)), mult(Bᵀ, f) ) by sparse concatenations, and T applied to the last layer. `symmetric`
    computes one triangle of all matrices. A chain with refinements has a coarse inverse and improves the vector.
    """
    d = system.n_modes
    remainder, right = given
    if not symmetric:
        inverted = kit.sparse(kit.inverse(d, chain.delta, chain.inverse, powers), remainder)
        both = kit.beside(kit.scaled(inverted, chain.relaxation), right)
        return kit.mapped(kit.sparse(kit.product(d, d, 1, chain.final, *chain.final_bounds), both), system.back)
    options = {"symmetric": True, "contraction": bool(chain.refinements)}
    inverse = kit.scaled(kit.inverse(d, chain.delta, chain.inverse, powers, **options), chain.relaxation)
    first = kit.symmetric_times(d, chain.final, *chain.final_bounds)
    if chain.refinements:
        return refined(kit, chain, (remainder, right), inverse, first, system.back)
    return kit.mapped(kit.sparse(first, kit.beside(kit.sparse(inverse, remainder), right)), system.back)


def normal_equations(kit: Any, system: System, chain: Chain, *, symmetric: bool, direct: bool) -> tuple[Any, Any]:
    """I − λ BᵀB and Bᵀf, whatever the refinements of the chain; `direct` by products of coordinates, not of matrices."""
    if direct and symmetric:
        return _quadratic(kit, system, chain)
    return _by_matrices(kit, system, chain, symmetric)


def _quadratic(kit: Any, system: System, chain: Chain) -> tuple[Any, Any]:
    """I − λ BᵀB (one triangle) and Bᵀf as polynomials of degree 2 in the coordinates: few products of scalars, many sums."""
    n, d = len(system.linear) + len(system.functions), system.n_modes
    operators = np.zeros((1 + n, system.n_rows, d))
    operators[0] = system.operators[0]
    operators[1 + system.touched] = system.operators[1:]
    squares = np.einsum("pri,qrj->ijpq", operators, operators)
    moments = np.einsum("pri,qr->ipq", operators, system.loads)
    corner = np.tril_indices(d)  # (j, i) with i ≤ j, j slowest: the upper triangle column by column
    relaxed = -chain.relaxation * squares[corner[1], corner[0]]
    relaxed[:, 0, 0] += np.eye(d)[corner]
    # ‖E‖₂ ≤ ‖E‖_F ≤ d max|E_ij|
    first = _forms(kit, system, relaxed, chain.relaxation * chain.gram / d, _in_gram(system, chain))
    return first, _forms(kit, system, moments, chain.right / d**0.5, _in_right(system, chain))


def _forms(kit: Any, system: System, arrays: np.ndarray, accuracy: float, of_coordinates: float) -> Any:
    """μ ↦ Σ_pq arrays[:, p, q] ξ_p ξ_q with ξ_0 = 1, each within `accuracy` for coordinates that are off by `of_coordinates`."""
    used = np.any(arrays, axis=(0, 1)) | np.any(arrays, axis=(0, 2))
    places = np.flatnonzero(used[1:])
    curved = places[places >= len(system.linear)] - len(system.linear)
    if len(curved):
        bounds = [np.abs(system.parameters.bounds[:, j]).max() for j in system.linear[places[: -len(curved)]]]
        bounds += [largest(system.functions[j], system.parameters) + of_coordinates for j in curved]
        box, inputs = np.outer(bounds, (-1.0, 1.0)), list(range(len(places)))
    else:
        box, inputs = system.parameters.bounds.T, system.linear[places].tolist()
    exponents = [tuple(int(j == i) for j in range(len(box))) for i in (-1, *inputs)]
    pairs = list(product(enumerate([0, *(1 + places)]), repeat=2))
    terms = []
    for array in arrays:
        entry: dict = {}
        for (i, p), (j, q) in pairs:
            key = tuple(a + b for a, b in zip(exponents[i], exponents[j], strict=True))
            entry[key] = entry.get(key, 0.0) + float(array[p, q])
        terms.append(entry)
    forms = kit.polynomial(terms, box, accuracy)
    if not len(curved):
        return forms
    return kit.sparse(forms, _coordinates(kit, system, places[: -len(curved)], curved, of_coordinates))


def _by_matrices(kit: Any, system: System, chain: Chain, symmetric: bool) -> tuple[Any, Any]:
    """I − λ BᵀB and Bᵀf by products of matrices."""
    d, rows, bound = system.n_modes, system.n_rows, chain.operator_bound
    operator, load = _parts(system)
    transposed = (system.operators.transpose(0, 2, 1), system.touched)
    allowed = _in_gram(system, chain)
    if symmetric:
        squares, ones = kit.gram(rows, d, chain.gram, bound), np.eye(d)[np.tril_indices(d)]
        entries = _entries(kit, system, [operator], allowed)
    else:
        squares, ones = kit.product(d, rows, d, chain.gram, bound, bound), np.eye(d).ravel()
        entries = _entries(kit, system, [transposed, operator], allowed)
    remainder = kit.scaled(kit.sparse(squares, entries), -chain.relaxation, ones)
    entries = _entries(kit, system, [transposed, load], _in_right(system, chain))
    return remainder, kit.sparse(kit.product(d, rows, 1, chain.right, *chain.right_bounds), entries)


def _parts(system: System) -> tuple[Part, Part]:
    """B and f."""
    return (system.operators, system.touched), (system.loads, np.arange(len(system.loads) - 1))


def _in_gram(system: System, chain: Chain) -> float:
    """What each curved coordinate may be off by in BᵀB."""
    return _allowed(system, _parts(system)[0], chain.operator_in_gram)


def _in_right(system: System, chain: Chain) -> float:
    """What each curved coordinate may be off by in Bᵀf."""
    operator, load = _parts(system)
    return min(_allowed(system, operator, chain.operator_in_right), _allowed(system, load, chain.load))


def parameter_networks(kit: Any, system: System, chain: Chain) -> tuple[Any, Any]:
    """μ ↦ vec B and μ ↦ f, as exact as the chain asks for: what the theorem assumes to be given."""
    operator, load = _parts(system)
    allowed = _allowed(system, operator, min(chain.operator_in_gram, chain.operator_in_right))
    first = _entries(kit, system, [operator], allowed)
    return first, _entries(kit, system, [load], _allowed(system, load, chain.load))


def assemble_linear(kit: Any, system: System, accuracy: float) -> Any:
    """μ ↦ c where B does not depend on μ: c = T B⁺ f, one affine layer after the coordinates."""
    loads = system.loads @ (system.back @ np.linalg.pinv(system.operators[0])).T
    part = (loads, np.arange(len(loads) - 1))
    return _entries(kit, system, [part], _allowed(system, part, accuracy))


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
    if not len(curved):
        return kit.affine(matrix[:, linear] @ np.eye(system.n_parameters)[system.linear[linear]], bias)
    return kit.sparse(kit.affine(matrix[:, used], bias), _coordinates(kit, system, linear, curved, accuracy))


def _coordinates(kit: Any, system: System, linear: np.ndarray, curved: np.ndarray, accuracy: float) -> Any:
    """μ ↦ some of the coordinates that are entries of μ, then some of the functions, each within `accuracy`."""
    coordinates = _curved(kit, system, [system.functions[j] for j in curved], accuracy)
    if not len(linear):
        return coordinates
    choose = np.eye(system.n_parameters)[system.linear[linear]]
    return kit.beside(kit.affine(choose, np.zeros(len(linear))), coordinates)


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
