"""Polynomials of several variables and the reciprocal of one as ReLU networks: what coefficients of equations are made of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from parasol.checks import check_finite, check_positive, check_shape
from parasol.errors import InputError
from parasol.fitting import Network
from parasol_lab.theorem.networks.assembly import BUILD, COUNT, Assembly
from parasol_lab.theorem.networks.calculus import with_input_map, with_output_map
from parasol_lab.theorem.networks.inverse import inverse, inverse_size
from parasol_lab.theorem.networks.products import MAX_LEVELS, Wiring, rounded_up
from parasol_lab.theorem.networks.sizes import Size

Exponents = tuple[int, ...]
Terms = Mapping[Exponents, float]


def polynomial(terms: Sequence[Terms], box, accuracy: float) -> Network:
    """x ↦ (p_1(x), …, p_k(x)), each within `accuracy` on the box; polynomials of degree one are one exact layer.

    terms: for each p_i the coefficients by exponents; box: (n_inputs, 2), lower and upper ends. A monomial of degree 2^s
    takes s products of smaller ones, and monomials that several polynomials share are computed once.

    >>> p = polynomial([{(1, 1): 3.0, (0, 0): 1.0}], [[0.0, 1.0], [0.0, 2.0]], 0.01)  # 1 + 3 x y
    >>> p([[0.5, 1.0]])
    array([[2.5]])
    >>> polynomial([{(1, 0): 3.0}, {(0, 0): 1.0}], [[0.0, 1.0], [0.0, 2.0]], 0.01)([[0.5, 1.0]])
    array([[1.5, 1. ]])
    """
    return _polynomial(BUILD, terms, box, accuracy)


def polynomial_size(terms: Sequence[Terms], box, accuracy: float) -> Size:
    """Size of `polynomial`, also of one that float64 does not resolve: its levels exceed MAX_LEVELS."""
    return _polynomial(COUNT, terms, box, accuracy)


def reciprocal(low: float, high: float, accuracy: float) -> Network:
    """x ↦ 1/x within `accuracy` for low ≤ x ≤ high, both of one sign.

    1/x = λ (1 − (1 − λx))^-1 with λ = 2 / (low + high), so |1 − λx| ≤ 1 − δ with δ = 2 low / (low + high) for positive ends.

    >>> reciprocal(1.0, 4.0, 0.01)([[2.0]]).round(1)
    array([[0.5]])
    """
    factor, delta, accuracy = _reciprocal(low, high, accuracy)
    net = inverse(1, delta, accuracy / abs(factor))
    return with_output_map(with_input_map(net, [[-factor]], [1.0]), [[factor]])


def reciprocal_size(low: float, high: float, accuracy: float) -> Size:
    """Size of `reciprocal`."""
    factor, delta, accuracy = _reciprocal(low, high, accuracy)
    size = inverse_size(1, delta, accuracy / abs(factor))
    return size if size.depth == 1 else replace(size, n_weights=size.n_weights + 2)  # the 1 of ±(1 − λx)


def _reciprocal(low: float, high: float, accuracy: float) -> tuple[float, float, float]:
    low, high = float(low), float(high)
    if not (math.isfinite(low) and math.isfinite(high) and low < high and low * high > 0):
        raise InputError(f"1/x has no bound on [{low}, {high}]. Use finite ends low < high of one sign.")
    nearest = low if low > 0 else high
    return 2 / (low + high), 2 * nearest / (low + high), check_positive(accuracy, "accuracy")


def _polynomial(make: Assembly, terms: Sequence[Terms], box, accuracy: float) -> Any:
    box = check_finite(check_shape(box, (None, 2), "box"), "box")
    n, accuracy = len(box), check_positive(accuracy, "accuracy")
    polynomials = [_checked(p, n) for p in terms]
    if not polynomials:
        raise InputError("no polynomials were given. Pass at least one.")
    scale = np.abs(box).max(axis=1)  # |x_i / scale_i| <= 1, and so are all monomials
    scale[scale == 0] = 1.0
    constant = np.array([p.get((0,) * n, 0.0) for p in polynomials])
    weights = [{e: c * float(np.prod(scale**e)) for e, c in p.items() if any(e)} for p in polynomials]
    stages = _stages({e for p in weights for e in p}, n)
    state = [tuple(int(i == j) for j in range(n)) for i in range(n)]
    if not stages:
        return make.affine(_matrix(polynomials, state), constant)
    levels = _least_levels(weights, stages, accuracy)
    if make is BUILD and levels > MAX_LEVELS:
        raise InputError(
            f"accuracy={accuracy:.3g} of these polynomials needs {levels} levels, float64 resolves {MAX_LEVELS}. "
            f"Use accuracy >= {rounded_up(_bound(weights, stages, MAX_LEVELS))}."
        )
    errors, net = dict.fromkeys(state, 0.0), None
    for s, stage in enumerate(stages):
        z = 1 + max(errors.values())
        errors = _off_by(errors, stage, levels, z)
        place = {e: i for i, e in enumerate(state)}
        left, right = (np.array([place[pair[k]] for pair in stage.values()]) for k in (0, 1))
        last = s == len(stages) - 1
        sums = _matrix(weights, list(stage)) if last else sparse.eye_array(len(stage))
        times = make.products(Wiring(len(state), left, right, sparse.csr_array(sums)), levels, z, z)
        if last:
            direct = _matrix(weights, state)
            parts = [times, make.affine(direct)] if direct.nnz else [times]
            step = make.add(*parts, bias=constant)
        else:
            later = {half for after in stages[s + 1 :] for pair in after.values() for half in pair}
            kept = [e for e in state if e in later or any(e in p for p in weights)]
            carry = sparse.csr_array(sparse.eye_array(len(state)))[[place[e] for e in kept]]
            step = make.beside(make.affine(carry), times) if kept else times
            state = kept + list(stage)
        net = make.select(step, sparse.diags_array(1 / scale)) if net is None else make.join(step, net)
    return net


def _checked(p: Terms, n: int) -> dict[Exponents, float]:
    for e, c in p.items():
        if len(e) != n or any(isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 0 for k in e):
            raise InputError(f"exponents {e!r} are not {n} whole numbers of at least 0, one for each variable.")
        if not math.isfinite(c):
            raise InputError(f"the coefficient of exponents {e!r} is {c}. Use finite numbers.")
    return {tuple(int(k) for k in e): float(c) for e, c in p.items() if c}


def _stages(wanted: set[Exponents], n: int) -> list[dict[Exponents, tuple[Exponents, Exponents]]]:
    """The products to compute, stage by stage: monomials of degree 2^s + 1 … 2^(s+1), each from its two halves."""
    halves: dict[Exponents, tuple[Exponents, Exponents]] = {}
    queue = [e for e in wanted if sum(e) > 1]
    while queue:
        e = queue.pop()
        if e in halves:
            continue
        letters = [i for i, k in enumerate(e) for _ in range(k)]
        # every other letter, so that even powers split into equal halves
        one, other = (tuple(part.count(i) for i in range(n)) for part in (letters[::2], letters[1::2]))
        halves[e] = (one, other)
        queue += [half for half in halves[e] if sum(half) > 1]
    n_stages = max((math.ceil(math.log2(sum(e))) for e in halves), default=0)
    by_stage = lambda s: sorted(e for e in halves if 2**s < sum(e) <= 2 ** (s + 1))  # noqa: E731
    return [{e: halves[e] for e in by_stage(s)} for s in range(n_stages)]


def _off_by(errors: dict, stage: dict, levels: int, z: float) -> dict:
    """What the monomials, at most 1 each, are off by after one more stage."""
    new = {
        e: errors[a] + errors[b] + errors[a] * errors[b] + z * z * 4.0 ** -(levels + 1) for e, (a, b) in stage.items()
    }
    return errors | new


def _least_levels(weights: list[dict], stages: list[dict], accuracy: float) -> int:
    levels = 1
    while _bound(weights, stages, levels) > accuracy:
        levels += 1
    return levels


def _bound(weights: list[dict], stages: list[dict], levels: int) -> float:
    """What the worst of the polynomials may be off by."""
    errors: dict = {half: 0.0 for pair in stages[0].values() for half in pair}
    errors |= {e: 0.0 for p in weights for e in p if sum(e) == 1}
    for stage in stages:
        errors = _off_by(errors, stage, levels, 1 + max(errors.values()))
    return max(sum(abs(c) * errors[e] for e, c in p.items()) for p in weights)


def _matrix(weights: list[dict], state: list[Exponents]) -> sparse.csr_array:
    """Coefficients of the polynomials by the monomials of a state."""
    return sparse.csr_array(np.array([[p.get(e, 0.0) for e in state] for p in weights]))
