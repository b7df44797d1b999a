"""Maps and formulas as plain data that the page's evaluators read."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from parasol.checks import ParasolError
from parasol.delivery.page.pack import Pack
from parasol.expressions import Function
from parasol.formulas import Formula
from parasol.surrogate.network import Network
from parasol.surrogate.polynomial import FittedPolynomial
from parasol.surrogate.process import FittedProcess

MOST_WEIGHTS = 1_000_000  # of a map: more is neither mailed nor evaluated while a slider moves


def map_program(fitted: Any, pack: Pack) -> dict:
    """A map from features to coefficients, for numbers.js; a kind the page cannot evaluate is refused."""
    for kind, write in _KINDS.items():
        if isinstance(fitted, kind):
            return write(fitted, pack)
    network = getattr(fitted, "network", None)
    if isinstance(network, Network):
        return _network(network, pack)
    raise ParasolError(
        f"a page cannot compute a {type(fitted).__name__}: it knows parasol's networks, polynomials and Gaussian processes. "
        "Fit one of parasol's recipes."
    )


def formula_tree(formula: Formula | Function) -> Any:
    """A formula as nested lists of names of operations, ["x", i] for its i-th variable, and numbers.

    >>> formula_tree(Formula("a**2 + 3*k", ("a", "k")))
    ['add', ['float_power', ['x', 0], 2.0], ['multiply', 3.0, ['x', 1]]]
    """
    if not isinstance(formula, Formula):
        raise ParasolError(f"the coefficient {str(formula.expression)[:80]} has no plain formula for a page.")
    return _listed(formula._tree)  # the tree that was checked when the formula was made


def _listed(tree) -> Any:
    if isinstance(tree, tuple):
        return [tree[0].__name__, *map(_listed, tree[1:])]
    if isinstance(tree, int):
        return ["x", tree]
    if not math.isfinite(tree):
        raise ParasolError("a formula has an infinite number in it, which a page cannot hold.")
    return tree


def _network(network: Network, pack: Pack) -> dict:
    _check_size(network.n_weights, f"a network of {network.n_weights} weights")
    kind = "f4" if network.dtype == np.float32 else "f8"
    layers = [
        {"weights": _matrix(w, pack, kind), "biases": pack.add(b, kind)}
        for w, b in zip(network.weights, network.biases, strict=True)
    ]
    names = ("input_shift", "input_scale", "output_shift", "output_scale")
    return {
        "kind": "network",
        "layers": layers,
        "activation": network.activation,
        "skip": None if network.skip is None else _matrix(network.skip, pack, kind),
        **{name: pack.add(getattr(network, name), kind) for name in names},
    }


def _matrix(matrix: Any, pack: Pack, kind: str) -> dict:
    """A matrix, or the entries of a sparse one where that is less."""
    if isinstance(matrix, np.ndarray):
        return pack.add(matrix, kind)
    sparse = matrix.tocsr()
    if 2 * sparse.nnz >= math.prod(sparse.shape):
        return pack.add(sparse.toarray(), kind)
    return {
        "shape": list(sparse.shape),
        "data": pack.add(sparse.data, kind),
        "indices": pack.places(sparse.indices),
        "indptr": pack.add(sparse.indptr, "i4"),
    }


def _polynomial(fitted: FittedPolynomial, pack: Pack) -> dict:
    _check_size(fitted.coefficients.size, f"a polynomial of {fitted.coefficients.size} coefficients")
    return {
        "kind": "polynomial",
        "indices": pack.places(fitted.indices),
        "degrees": [int(k) for k in fitted.indices.max(axis=0)],
        "coefficients": pack.add(fitted.coefficients),
        "shift": pack.add(fitted.shift),
        "scale": pack.add(fitted.scale),
    }


def _process(fitted: FittedProcess, pack: Pack) -> dict:
    _check_size(fitted.weights.size, f"a Gaussian process of {len(fitted.weights)} samples")
    return {
        "kind": "process",
        "kernel": fitted.kernel,
        "centres": pack.add(fitted.centres),
        "lengths": pack.add(fitted.lengths),
        "weights": pack.add(fitted.weights),  # large and of both signs: in single precision nothing would be left
        "trend": _polynomial(fitted.trend, pack),
    }


def _check_size(count: int, what: str) -> None:
    if count > MOST_WEIGHTS:
        raise ParasolError(
            f"{what} is too large for a page, which holds {MOST_WEIGHTS}. Fit a smaller map, or use parasol serve."
        )


_KINDS: dict[type, Callable[[Any, Pack], dict]] = {FittedPolynomial: _polynomial, FittedProcess: _process}
