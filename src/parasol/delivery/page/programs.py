"""Maps and formulas as plain data that the page's evaluators read."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np

from parasol.delivery.page.pack import Pack
from parasol.errors import FormulaError, InputError
from parasol.runtime.formulas import Formula
from parasol.runtime.operation import Operation
from parasol.runtime.operations import flat
from parasol.runtime.rows import ScalarFunction

MOST_WEIGHTS = 1_000_000  # of a map: more is neither mailed nor evaluated while a slider moves


def map_program(operations: tuple[Operation, ...], pack: Pack) -> list[dict]:
    """A map as numbers.js runs it: for each operation its kind and its parts, arrays in the type that they have."""
    count = sum(op.n_numbers for op in flat(operations))
    if count > MOST_WEIGHTS:
        raise InputError(
            f"a map of {count} weights is too large for a page, which holds {MOST_WEIGHTS}. Fit a smaller map, or use "
            "parasol serve."
        )
    return _written(operations, pack)


def _written(part: Any, pack: Pack) -> Any:
    if isinstance(part, Operation):
        parts = {f.name: _written(getattr(part, f.name), pack) for f in fields(part)}  # type: ignore[arg-type]
        return {"kind": type(part).__name__, **parts}
    if isinstance(part, tuple):
        return [_written(item, pack) for item in part]
    if part is None or isinstance(part, str):
        return part
    if part.dtype.kind in "iu":
        return pack.places(part)
    return _matrix(part, pack, "f4" if part.dtype == np.float32 else "f8")


def formula_tree(formula: ScalarFunction) -> Any:
    """A formula as nested lists of names of operations, ["x", i] for its i-th variable, and numbers.

    >>> formula_tree(Formula("a**2 + 3*k", ("a", "k")))
    ['add', ['float_power', ['x', 0], 2.0], ['multiply', 3.0, ['x', 1]]]
    """
    if not isinstance(formula, Formula):
        raise FormulaError(f"the coefficient {str(formula.expression)[:80]} has no plain formula for a page.")
    return _listed(formula._tree)  # the tree that was checked when the formula was made


def _listed(tree) -> Any:
    if isinstance(tree, tuple):
        return [tree[0].__name__, *map(_listed, tree[1:])]
    if isinstance(tree, int):
        return ["x", tree]
    if not math.isfinite(tree):
        raise FormulaError("a formula has an infinite number in it, which a page cannot hold.")
    return tree


def _matrix(matrix: Any, pack: Pack, kind: str) -> dict:
    """An array, or the entries of a sparse matrix where that is less."""
    if isinstance(matrix, np.ndarray):
        return pack.add(matrix, kind)
    if 2 * matrix.nnz >= math.prod(matrix.shape):
        return pack.add(matrix.toarray(), kind)
    return {
        "shape": list(matrix.shape),
        "data": pack.add(matrix.data, kind),
        "indices": pack.places(matrix.indices),
        "indptr": pack.add(matrix.indptr, "i4"),
    }
