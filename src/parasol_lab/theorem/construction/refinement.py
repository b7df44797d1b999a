"""A coarse inverse and a vector that is refined: y ← y + G (h − (y − Â y) / λ), two products of a matrix and a vector each.

A product of matrices takes d³ scalar products, one with a vector d². So the digits of the accuracy are paid for where they
are cheap, and the inverse need only be good enough for the refinements to converge.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parasol_lab.theorem.construction.chain import Chain


def refined(kit: Any, chain: Chain, given: tuple[Any, Any], inverse: Any, first: Any, back: np.ndarray) -> Any:
    """μ ↦ T y from given = (Â, h), all matrices by their upper triangles; `inverse` makes G of Â and `first` y of (G, h)."""
    remainder, right = given
    n = len(back)
    half = n * (n + 1) // 2
    sizes = {"inverse": half, "remainder": half, "right": n}
    net = kit.beside(kit.sparse(kit.beside(inverse, kit.identity(half, 1)), remainder), right)
    net = kit.sparse(_with(kit, sizes, first, "inverse", "right"), net)
    sizes = sizes | {"vector": n}
    for step in chain.refinements:
        last = step is chain.refinements[-1]
        image = kit.symmetric_times(n, step.image, 1.0, step.vector_bound)  # ||Â|| ≤ 1
        net = kit.sparse(_with(kit, sizes, image, "remainder", "vector"), net)
        kept = ["inverse", "vector"] if last else list(sizes)
        signs = {"right": 1.0, "vector": -1 / chain.relaxation, "product": 1 / chain.relaxation}
        net = kit.sparse(_sums(kit, sizes | {"product": n}, kept, signs), net)
        update = kit.symmetric_times(n, step.update, chain.final_bounds[0], step.residual_bound)
        inside = {name: sizes[name] for name in kept} | {"residual": n}
        kept = ["vector"] if last else list(sizes)
        net = kit.sparse(_with(kit, inside, update, "inverse", "residual", kept=kept), net)
        if last:
            return kit.sparse(kit.affine(np.hstack([back, back]), np.zeros(n)), net)
        others = [name for name in sizes if name != "vector"]
        net = kit.sparse(_sums(kit, sizes | {"product": n}, others, {"vector": 1.0, "product": 1.0}), net)
    return net


def _with(
    kit: Any, sizes: dict[str, int], product: Any, left: str, right: str, *, kept: list[str] | None = None
) -> Any:
    """The state, or some of it, and after it the product of two of its parts."""
    kept = list(sizes) if kept is None else kept
    waiting = kit.select(kit.identity(sum(sizes[name] for name in kept), 1), _rows(sizes, kept))
    return kit.beside(waiting, kit.select(product, _rows(sizes, [left, right])))


def _sums(kit: Any, sizes: dict[str, int], kept: list[str], factors: dict[str, float]) -> Any:
    """One layer: parts of the state, and after them a sum of parts."""
    total = sum(factor * _rows(sizes, [name]) for name, factor in factors.items())
    matrix = np.vstack([_rows(sizes, kept), total])
    return kit.affine(matrix, np.zeros(len(matrix)))


def _rows(sizes: dict[str, int], names: list[str]) -> np.ndarray:
    """The matrix that chooses parts of a state."""
    ends = dict(zip(sizes, np.cumsum(list(sizes.values())), strict=True))
    places = [np.arange(ends[name] - sizes[name], ends[name]) for name in names]
    return np.eye(sum(sizes.values()))[np.concatenate(places)]
