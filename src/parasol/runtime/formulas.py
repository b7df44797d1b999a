"""Formulas as text, evaluated with NumPy alone: what a saved model needs of its equation."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from parasol.errors import FormulaError

_LONGEST = 20_000  # characters
_DEEPEST = 200
_FUNCTIONS = {
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "sign": np.sign,
    "Abs": np.abs,
    "Max": np.maximum,
    "Min": np.minimum,
    "floor": np.floor,
    "ceiling": np.ceil,
    "Heaviside": np.heaviside,
}
_CONSTANTS = {"pi": np.pi, "E": np.e}
_OPERATORS = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.true_divide,
    ast.Pow: np.float_power,
    ast.BitAnd: np.logical_and,
    ast.BitOr: np.logical_or,
}
_RELATIONS = {ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal}


def has_meaning(name: str) -> bool:
    """Whether a name in a formula is a constant or a function, so that no variable can have it.

    >>> has_meaning("pi"), has_meaning("a")
    (True, False)
    """
    return name in _FUNCTIONS or name in _CONSTANTS or name in ("Piecewise", "True", "False")


@dataclass(frozen=True, eq=False)
class Formula:
    """A formula in named variables, such as "a**2*sin(k)"; nothing in it is ever executed but arithmetic.

    >>> Formula("a**2 + k", ("a", "k"))(np.array([2.0, 3.0]), 1.0)
    array([ 5., 10.])
    >>> Formula("Max(0, a, k)", ("a", "k"))(np.array([2.0, -3.0]), np.array([1.0, -1.0]))
    array([2., 0.])
    >>> Formula("Piecewise((k, (a > 0) & (a < 3)), (2*k, True))", ("a", "k"))(np.array([2.0, 4.0]), 1.0)
    array([1., 2.])
    """

    text: str
    names: tuple[str, ...]

    def __post_init__(self):
        _ = self._tree  # what cannot be read is refused here

    def __getstate__(self) -> dict:
        return {"text": self.text, "names": self.names}

    @property
    def expression(self) -> str:
        """The text, for messages."""
        return self.text

    @property
    def constant(self) -> bool:
        """Whether no variable occurs in it."""
        return not _has_columns(self._tree)

    @cached_property
    def _tree(self) -> Any:
        if len(self.text) > _LONGEST:
            raise FormulaError(f"a formula of {len(self.text)} characters is too long. Allowed are {_LONGEST}.")
        try:
            tree = ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self._refused("the syntax is wrong") from None
        return self._read(tree, 0)

    def _read(self, node: ast.AST, depth: int) -> Any:
        """The tree as nested tuples: a number, a place among the columns, or a function and its arguments."""
        if depth > _DEEPEST:
            raise self._refused("it is too deeply nested")
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
            try:
                return float(node.value)
            except OverflowError:
                raise self._refused("a number in it is too large") from None
        if isinstance(node, ast.Name):
            if node.id in self.names:
                return self.names.index(node.id)
            if node.id in _CONSTANTS:
                return _CONSTANTS[node.id]
            raise self._refused(f"{node.id!r} is unknown")
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)], self._read(node.left, depth + 1), self._read(node.right, depth + 1)
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _RELATIONS:
            sides = node.left, node.comparators[0]
            return _RELATIONS[type(node.ops[0])], *[self._read(side, depth + 1) for side in sides]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Piecewise":
            return self._read_pieces(node, depth)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            inner = self._read(node.operand, depth + 1)
            return (np.negative, inner) if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
            function, given = _FUNCTIONS[node.func.id], [self._read(a, depth + 1) for a in node.args]
            if function is np.heaviside and len(given) == 1:
                given.append(0.5)  # at the jump, as SymPy has it
            if function in (np.maximum, np.minimum) and len(given) > 2:  # as SymPy writes them: of all that are given
                given = [reduce(lambda one, other: (function, one, other), given[:-1]), given[-1]]
            if node.keywords or len(given) != function.nin:
                raise self._refused(f"{node.func.id} takes {function.nin} arguments")
            return function, *given
        raise self._refused(f"{type(node).__name__} is not arithmetic")

    def _read_pieces(self, node: ast.Call, depth: int) -> Any:
        """Piecewise((value, condition), ..., (value, True)) as choices one after the other; NaN where none applies."""
        if len(node.args) > _DEEPEST:
            raise self._refused("it has too many pieces")
        out: object = np.nan
        for piece in reversed(node.args):
            if node.keywords or not isinstance(piece, ast.Tuple) or len(piece.elts) != 2:
                raise self._refused("a piece is a value and a condition")
            value, condition = piece.elts
            inner = self._read(value, depth + 1)
            always = isinstance(condition, ast.Constant) and condition.value is True
            out = inner if always else (np.where, self._read(condition, depth + 1), inner, out)
        return out

    def _refused(self, why: str) -> FormulaError:
        return FormulaError(f"the formula {self.text[:80]!r} cannot be used: {why}.")

    @property
    def simple(self) -> int | float | None:
        """The number of the name that it is, or the number that it is; None where there is something to compute.

        >>> Formula("b", ("a", "b")).simple, Formula("2", ("a",)).simple, Formula("2*a", ("a",)).simple
        (1, 2.0, None)
        """
        return None if isinstance(self._tree, tuple) else self._tree

    def __call__(self, *columns: ArrayLike) -> np.ndarray:
        """Values, broadcast over the columns: one array or number per name."""
        shape = np.broadcast_shapes(*[np.shape(c) for c in columns])
        with np.errstate(all="ignore"):
            values = np.broadcast_to(_evaluate(self._tree, columns), shape)
        return np.array(values, dtype=float) if isinstance(values, np.ndarray) else values  # of another library


def _has_columns(tree: Any) -> bool:
    return any(_has_columns(part) for part in tree[1:]) if isinstance(tree, tuple) else isinstance(tree, int)


def _evaluate(tree: Any, columns: Any) -> Any:
    if isinstance(tree, tuple):
        return tree[0](*[_evaluate(part, columns) for part in tree[1:]])
    return columns[tree] if isinstance(tree, int) else tree
