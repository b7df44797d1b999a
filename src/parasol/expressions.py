"""Text to mathematics to vectorised functions, without executing anybody's text."""

from __future__ import annotations

import ast
import builtins
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import count
from operator import add, mul, pow, sub, truediv

import numpy as np
import sympy
from sympy.core.sympify import converter
from sympy.printing.str import StrPrinter

from parasol.errors import FormulaError, InputError, ParasolError
from parasol.runtime.formulas import Formula, has_meaning
from parasol.runtime.rows import ScalarFunction

_NAMES = "sin cos tan asin acos atan atan2 sinh cosh tanh exp log sqrt sign Heaviside sech Min Max"
_FUNCTIONS = {name: getattr(sympy, name) for name in _NAMES.split()} | {
    "abs": sympy.Abs,
    "arctan": sympy.atan,
    "arctan2": sympy.atan2,
}
_CONSTANTS = {"pi": sympy.pi, "e": sympy.E}
_BINARY = {ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.Div: truediv, ast.Pow: pow}
_COMPARE = {ast.Lt: sympy.Lt, ast.LtE: sympy.Le, ast.Gt: sympy.Gt, ast.GtE: sympy.Ge}


def parse(text: str, symbols: Mapping[str, sympy.Basic]) -> sympy.Basic:
    """Read a formula in the given symbols. Only arithmetic, comparisons and known functions are understood.

    `sympy.sympify` would execute what it is given; this walks the syntax tree instead.

    >>> theta = sympy.Symbol("theta", real=True)
    >>> parse("0.8 + sin(6*theta)", {"theta": theta})
    sin(6*theta) + 0.8
    >>> parse("__import__('os')", {})
    Traceback (most recent call last):
    parasol.errors.FormulaError: cannot read the formula "__import__('os')": unknown function "__import__". Use numbers, ...
    """

    def fail(why: str):
        known = ", ".join([*symbols, *_CONSTANTS])
        return FormulaError(
            f'cannot read the formula "{_short(text)}": {why}. '
            f"Use numbers, + - * / **, comparisons, {known}, and the functions {', '.join(sorted(_FUNCTIONS))}."
        )

    def walk(node: ast.AST):
        match node:
            case ast.Expression(body=body):
                return walk(body)
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return sympy.Integer(value) if isinstance(value, int) else sympy.Float(value)
            case ast.Name(id=name):
                if name in symbols:
                    return symbols[name]
                if name in _CONSTANTS:
                    return _CONSTANTS[name]
                raise fail(f'unknown name "{name}"')
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -walk(operand)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return walk(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                left, right = walk(left), walk(right)
                if isinstance(op, ast.Pow) and right.is_number and abs(float(right)) > 100:
                    raise fail("a power above 100")
                return _BINARY[type(op)](left, right)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
                return _COMPARE[type(op)](walk(left), walk(right))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                if name not in _FUNCTIONS:
                    raise fail(f'unknown function "{name}"')
                return _FUNCTIONS[name](*[walk(a) for a in args])
        raise fail("it is not plain arithmetic")

    try:
        expression = walk(ast.parse(text.strip(), mode="eval"))
    except ParasolError:
        raise
    except SyntaxError:
        raise fail("the syntax is wrong") from None
    except (RecursionError, MemoryError):
        raise fail("it is too long or too deeply nested") from None
    except (ZeroDivisionError, OverflowError):
        raise fail("a number in it is not finite") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise fail(str(error)) from None
    if expression.has(sympy.zoo, sympy.nan, sympy.oo, -sympy.oo):
        raise fail("a number in it is not finite")
    return expression


def _short(text: object) -> str:
    """The text in one line, cut off where it goes on and on."""
    line = " ".join(str(text).split())
    return line if len(line) <= 80 else line[:77] + "..."


class Symbols(tuple):
    """Symbols declared together: a tuple to unpack, which says so where it is used as if it were a symbol.

    >>> a = Symbols([sympy.Symbol("a")], "parameters")
    >>> 2 * a
    Traceback (most recent call last):
    parasol.errors.InputError: (a,) is a tuple, not a symbol. Unpack it where it is declared: a, = ps.parameters(...).
    """

    declared_by: str
    __array_ufunc__ = None  # NumPy's numbers leave the product to us

    def __new__(cls, symbols, declared_by: str):
        """Put the symbols together; `declared_by` is the function that declares them."""
        self = super().__new__(cls, symbols)
        self.declared_by = declared_by
        return self

    def __getnewargs__(self):
        return tuple(self), self.declared_by

    def unpack_first(self, *_):
        """Refuse to be used as a symbol."""
        names = ", ".join(str(symbol.func if symbol.args else symbol) for symbol in self)
        names += "," if len(self) == 1 else ""
        raise InputError(
            f"({names}) is a tuple, not a symbol. Unpack it where it is declared: {names} = ps.{self.declared_by}(...)."
        )

    __mul__ = __rmul__ = __sub__ = __rsub__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = unpack_first
    __neg__ = __pos__ = __abs__ = __float__ = diff = unpack_first

    def __add__(self, other):
        return tuple(self) + other if isinstance(other, tuple) else self.unpack_first()

    def __radd__(self, other):
        return other + tuple(self) if isinstance(other, tuple) else self.unpack_first()

    def __lt__(self, other):
        return super().__lt__(other) if isinstance(other, tuple) else self.unpack_first()

    def __gt__(self, other):
        return super().__gt__(other) if isinstance(other, tuple) else self.unpack_first()

    def __le__(self, other):
        return super().__le__(other) if isinstance(other, tuple) else self.unpack_first()

    def __ge__(self, other):
        return super().__ge__(other) if isinstance(other, tuple) else self.unpack_first()


# SymPy's functions ask here what a tuple of symbols is: sin((a,)) fails without a reason
converter[Symbols] = lambda some: some.unpack_first() if len(some) == 1 else sympy.Tuple(*some)


# np.sin(x) asks a SymPy expression x for a method sin and, as there is none, fails with an obscure error; so there is one. Methods
# only add to what SymPy and NumPy do: __array_ufunc__ would change comparisons with NumPy's numbers.
_NUMPY_NAMES = "sin cos tan sinh cosh tanh exp log sqrt arcsin arccos arctan arcsinh arccosh arctanh"
for _name in _NUMPY_NAMES.split():
    _function = getattr(sympy, _name.replace("arc", "a"))
    setattr(sympy.Expr, _name, lambda self, _function=_function: _function(self))


def to_expression(value) -> sympy.Expr:
    """A number or a SymPy expression as an expression; text is refused, since reading it could execute it."""
    if isinstance(value, sympy.Expr):
        return value
    if isinstance(value, Symbols):
        value.unpack_first()
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return sympy.Integer(int(value))
    if isinstance(value, float | np.floating) and np.isfinite(value):
        return sympy.Float(float(value))
    raise InputError(f"{value!r} is neither a finite number nor an expression. Write it with SymPy symbols.")


_MODULES = ["scipy", "numpy"]


@cache
def _names_of_numpy() -> frozenset[str]:
    """All names that mean something in a compiled expression: e, pi, sin, ..."""
    return frozenset(sympy.lambdify([], sympy.S.One, modules=_MODULES).__globals__) | set(dir(builtins))


def _renamed(
    expression: sympy.Basic, symbols: Sequence[sympy.Symbol], taken: Callable[[str], bool]
) -> tuple[sympy.Basic, list[sympy.Symbol]]:
    """The same with other names for symbols whose own would be read as something else: a constant, a function, another symbol.

    In a text pi*sin(x) it is the name alone that tells the number from a parameter called pi.
    """
    names = [symbol.name for symbol in symbols]
    known = {*names, *(symbol.name for symbol in expression.free_symbols)}
    fresh = (name for i in count() if (name := f"p{i}") not in known)
    out = []
    for symbol, name in zip(symbols, names, strict=True):
        # Python reads identifiers in their normal form: two signs for the Greek mu are one name to it
        other = taken(name) or names.count(name) > 1 or not name.isidentifier() or _normal(name) != name
        out.append(sympy.Symbol(next(fresh), **symbol.assumptions0) if other else symbol)
    changed = {old: new for old, new in zip(symbols, out, strict=True) if old is not new}
    return (expression.xreplace(changed) if changed else expression), out


def _normal(name: str) -> str:
    return unicodedata.normalize("NFKC", name)


@dataclass(frozen=True, eq=False)
class Function:
    """A SymPy expression as a NumPy function of its symbols' columns."""

    expression: sympy.Basic
    symbols: tuple[sympy.Symbol, ...]

    def __getstate__(self) -> dict:  # what is compiled cannot go to another process, what it is made from can
        return {"expression": self.expression, "symbols": self.symbols}

    @property
    def constant(self) -> bool:
        """Whether none of its symbols occurs in it."""
        return not self.expression.free_symbols

    @cached_property
    def _compiled(self) -> Callable[..., np.ndarray]:
        try:
            expression, symbols = _renamed(self.expression, self.symbols, lambda name: name in _names_of_numpy())
            return sympy.lambdify(symbols, expression, modules=_MODULES)
        except (RecursionError, MemoryError, SyntaxError):
            raise FormulaError(
                "a formula is too long or too deeply nested to be compiled. Give a function instead."
            ) from None

    def __call__(self, *columns) -> np.ndarray:
        """The values, broadcast over the columns: one array or number per symbol."""
        shape = np.broadcast_shapes(*[np.shape(c) for c in columns])
        try:
            with np.errstate(all="ignore"):
                values = np.asarray(self._compiled(*columns))
        except NameError:
            raise FormulaError(
                f"{_short(self.expression)} has a function without numbers. Use ordinary functions."
            ) from None
        except OverflowError:
            raise FormulaError(
                f"{_short(self.expression)} has numbers beyond the range of floats. Use other units."
            ) from None
        if np.iscomplexobj(values):
            if np.any(np.abs(np.imag(values)) > 1e-12 * np.maximum(1.0, np.abs(np.real(values)))):
                raise FormulaError(
                    f"{_short(self.expression)} has complex values. Write it so that it is real everywhere."
                )
            values = np.real(values)
        kind = bool if values.dtype == bool else float
        return np.array(np.broadcast_to(values, shape), dtype=kind)


def as_function(expression: sympy.Basic, symbols: Sequence[sympy.Symbol]) -> Function:
    """Turn a SymPy expression into a NumPy function of the symbols' columns that always broadcasts.

    The result takes one array per symbol and returns an array of their common shape, constants included.

    >>> x, y = sympy.symbols("x y")
    >>> as_function(sympy.Integer(3), [x, y])(np.zeros(2), np.ones(2))
    array([3., 3.])
    """
    function = Function(expression, tuple(symbols))
    function._compiled  # noqa: B018  what cannot be compiled is refused here, not at its first use
    return function


class _Exact(StrPrinter):
    """Prints numbers so that they are read back to the last bit."""

    def _print_Float(self, expr) -> str:
        return repr(float(expr))


def as_formula(function: ScalarFunction) -> ScalarFunction:
    """The same as a formula that needs no SymPy to be evaluated; as it was where there is none.

    >>> x = sympy.Symbol("x")
    >>> as_formula(as_function(x / 3 + sympy.Float(0.1), [x])).text
    'x/3 + 0.1'
    """
    if not isinstance(function, Function):
        return function
    expression, symbols = _renamed(function.expression, function.symbols, has_meaning)
    try:
        return Formula(_Exact().doprint(expression), tuple(symbol.name for symbol in symbols))
    except FormulaError:
        return function
