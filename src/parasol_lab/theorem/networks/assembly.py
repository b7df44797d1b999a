"""One plan, two uses: the same steps carried out on networks (BUILD) or on their sizes alone (COUNT)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from parasol_lab.theorem.networks import calculus, products, sizes


@dataclass(frozen=True)
class Assembly:
    """The steps larger networks are made of; each takes and returns networks, or sizes."""

    affine: Callable[..., Any]  # matrix, bias
    identity: Callable[..., Any]  # n, depth
    products: Callable[..., Any]  # wiring, levels, z_left, z_right
    join: Callable[..., Any]  # after, before: sparse concatenation
    beside: Callable[..., Any]  # several that have the same inputs
    add: Callable[..., Any]  # several that have the same inputs and outputs, bias=
    select: Callable[..., Any]  # a network and a matrix with at most one non-zero in each row and column, before it


def _affine_size(matrix, bias=None) -> sizes.Size:
    w = calculus.clean(matrix)
    return sizes.affine_size(w.shape[0], w.nnz, 0 if bias is None else int(np.count_nonzero(bias)))


def _added_size(*parts: sizes.Size, bias) -> sizes.Size:
    return sizes.add_size(*parts, n_biases=int(np.count_nonzero(bias)))


def _selected_size(size: sizes.Size, matrix: sparse.csr_array) -> sizes.Size:
    return size  # no weight comes or goes where every input is used once (Lemma A.1 of Kutyniok et al., with equality)


BUILD = Assembly(
    calculus.affine,
    calculus.identity,
    products.product_network,
    calculus.sparse_concatenate,
    calculus.parallel_shared,
    calculus.add,
    calculus.with_input_map,
)
DEEP = replace(BUILD, products=partial(products.product_network, resolved=False))  # also what float64 does not resolve
COUNT = Assembly(
    _affine_size,
    sizes.identity_size,
    products.product_network_size,
    sizes.sparse_concatenate_size,
    sizes.parallel_size,
    _added_size,
    _selected_size,
)
