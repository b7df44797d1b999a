"""One hash of the content of anything an answer may depend on: what is kept on disk is kept under it.

Equal content gives the same hash in every process; a change of any field, attribute, array, symbol, function body, closure
or global that a function names gives another. What cannot be hashed by its content is refused, never hashed by its address.
"""

from __future__ import annotations

import copyreg
import dataclasses
import functools
import hashlib
import inspect
import sys
import types
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import sympy
from sympy.core.function import UndefinedFunction

from parasol.errors import Unhashable

VERSION = 2  # of the encoding: a hash of another version says nothing about the content
_OWN = __name__.partition(".")[0]  # this package
_PLAIN = (type(None), bool, int, float, complex, str, bytes, bytearray)
_COMMUTATIVE = (sympy.Add, sympy.Mul, sympy.And, sympy.Or, sympy.Max, sympy.Min)
_ABSTRACT = ("abc", "typing", "parasol")  # where classes come from that add only attributes to their objects
_WRAPPED = ("__func__", "fget", "func", "__wrapped__")  # where methods, properties and cached functions keep a function


def content_hash(value: object, *, ranges: bool = True) -> str:
    """SHA-256 of what a value holds: class and every field of a dataclass, every attribute of another object.

    Dataclass fields with the metadata `{"hashed": False}` are left out: caches that change no answer. Functions and classes
    of the user count by their code and by what that code names; those of installed packages by their name, and files by
    their path. Mappings and sequences count in their order, parameters by name, range and order of declaration; the ranges
    do not count with `ranges=False`, where only the answers at given parameters matter.

    >>> content_hash([1, "a"]) == content_hash([1, "a"]), content_hash([1, "a"]) == content_hash((1, "a"))
    (True, False)
    """
    encoder = _Encoder(ranges)
    try:
        root = encoder.digest(value)
    except RecursionError:
        raise Unhashable(f"a {type(value).__qualname__} is nested too deeply to be hashed by its content.") from None
    # where in a parameter vector a parameter stands: the order of declaration counts, not its number in this process
    ranked = [digest for _, _, digest in sorted(encoder.ranks, key=lambda ranked: ranked[:2])]
    return _join("content", VERSION, [root, *dict.fromkeys(ranked)]).hex()


def is_plain(value) -> bool:
    """Whether an object of a user's class holds its attributes and nothing else, such as the items of a list."""
    packaged = (base for base in type(value).__mro__ if base is not object and _is_packaged(base))
    return not _is_packaged(type(value)) and all(b.__module__.partition(".")[0] in _ABSTRACT for b in packaged)


def attributes_of(value) -> dict[str, Any]:
    """What an object holds by name, in alphabetical order: its attributes and slots, without values computed on demand."""
    slots = [name for kind in type(value).__mro__ for name in np.atleast_1d(vars(kind).get("__slots__", ()))]
    held = {name: getattr(value, name) for name in slots if hasattr(value, name) and not name.startswith("__")}
    held |= getattr(value, "__dict__", {})
    lazy = {
        n for kind in type(value).__mro__ for n, v in vars(kind).items() if isinstance(v, functools.cached_property)
    }
    return {name: held[name] for name in sorted(held) if name not in lazy}


def _join(kind: str, head: object, parts: Iterable[bytes] = ()) -> bytes:
    """The hash of a kind of content, a short text and the hashes of the parts."""
    text = f"{kind} {head!r}".encode()
    return hashlib.sha256(len(text).to_bytes(8, "big") + text + b"".join(parts)).digest()


class _Encoder:
    """Hashes by content, each object once; an object within itself counts by how many levels up it is."""

    def __init__(self, ranges: bool = True):
        self.ranges = ranges
        self.known: dict[int, tuple[bytes, object]] = {}  # with the objects, so that nothing else gets their address
        self.open: dict[int, int] = {}
        self.dummies: dict[sympy.Dummy, int] = {}
        self.ranks: list[tuple[str, int, bytes]] = []  # of parameters and of unknowns, which are counted apart
        self.path: list[str] = []

    def digest(self, value, name: str = "") -> bytes:
        """The hash of one value; `name` says where it stands, for messages."""
        if type(value) in _PLAIN:
            return _join(type(value).__name__, value)
        if id(value) in self.known:
            return self.known[id(value)][0]
        if id(value) in self.open:
            return _join("within itself", len(self.open) - self.open[id(value)])
        self.open[id(value)] = len(self.open)
        if name:
            self.path.append(name)
        digest = self._encode(value)
        if name:
            self.path.pop()
        del self.open[id(value)]
        self.known[id(value)] = digest, value
        return digest

    def _encode(self, value) -> bytes:
        if type(value) in (np.ndarray, np.memmap) or isinstance(value, np.generic):
            return self._array(np.asarray(value))
        if isinstance(value, sympy.Basic):
            return self._expression(value)
        if type(value) in (list, tuple):
            return _join(type(value).__name__, len(value), [self.digest(item) for item in value])
        if type(value) in (dict, types.MappingProxyType):
            return self._mapping("mapping", value)
        if type(value) in (set, frozenset):
            return _join("set", len(value), sorted(self._alone(item) for item in value))
        if isinstance(value, types.ModuleType):
            return self._module(value)
        if isinstance(value, types.CodeType):
            return self._code(value)
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if type(value) is functools.partial:
            return _join("partial", "", [self.digest(part) for part in (value.func, value.args, value.keywords)])
        if isinstance(value, types.MethodType):
            return _join("method", value.__func__.__name__, [self.digest(value.__func__), self.digest(value.__self__)])
        if isinstance(value, types.BuiltinFunctionType):
            owner = None if isinstance(value.__self__, types.ModuleType) else value.__self__
            return _join("built-in", f"{value.__module__}.{value.__qualname__}", [self.digest(owner)])
        if isinstance(value, type):
            return self._class(value)
        if callable(value) and callable(getattr(value, "__wrapped__", None)):  # cached or compiled: the function counts
            return _join("wrapped", type(value).__qualname__, [self.digest(value.__wrapped__)])
        return self._object(value)

    def _alone(self, value) -> bytes:
        """The hash of a member of a set, which must not depend on the members met before it."""
        inner = _Encoder(self.ranges)
        inner.ranks, inner.path = self.ranks, self.path
        return inner.digest(value)

    def _mapping(self, kind: str, held: Mapping, head: object = "") -> bytes:
        pairs = [part for key, value in held.items() for part in (self.digest(key), self.digest(value, str(key)))]
        return _join(kind, (head, len(held)), pairs)

    def _array(self, array: np.ndarray) -> bytes:
        head = f"{array.dtype.descr if array.dtype.names else array.dtype.str} {array.shape}"
        if array.dtype.hasobject:
            return _join("objects", head, [self.digest(item) for item in array.ravel().tolist()])
        flat = np.ascontiguousarray(array).reshape(-1)
        raw = flat.view(np.uint8).data if flat.nbytes else b""
        return _join("array", head, [hashlib.sha256(raw).digest()])

    # ---- SymPy ------------------------------------------------------------------------------------------------------
    def _expression(self, e: sympy.Basic) -> bytes:
        if isinstance(e, sympy.Symbol):
            return self._symbol(e)
        kind, parts = self.digest(type(e)), [self.digest(a) for a in e.args]
        if isinstance(e, sympy.Float):
            return _join("number", (e._mpf_, e._prec))
        if not e.args:
            return _join("atom", sympy.srepr(e), [kind])
        return _join("expression", len(parts), [kind, *(sorted(parts) if isinstance(e, _COMMUTATIVE) else parts)])

    def _symbol(self, symbol: sympy.Symbol) -> bytes:
        """A symbol by its name, its assumptions and what else it knows, such as the range of a parameter."""
        known = dict(getattr(symbol, "__dict__", {}))
        rank = known.pop("rank", None)
        if not self.ranges:
            known = {name: held for name, held in known.items() if name not in getattr(symbol, "of_range", ())}
        if isinstance(symbol, sympy.Dummy):  # numbered in each process
            known["number"] = self.dummies.setdefault(symbol, len(self.dummies))
        head = (symbol.name, sorted(symbol.assumptions0.items()))
        digest = _join("symbol", head, [self.digest(type(symbol)), self._mapping("knows", known)])
        if rank is not None:
            self.ranks.append(("symbol", rank, digest))
        return digest

    # ---- code -------------------------------------------------------------------------------------------------------
    def _function(self, function: types.FunctionType) -> bytes:
        if _is_installed(function):
            return _join("function", _name(function))
        cells = [c.cell_contents for c in function.__closure__ or () if not _is_empty(c)]
        parts: list = [function.__code__, function.__defaults__, function.__kwdefaults__, vars(function)]
        names = _names(function.__code__)
        used = {n: _read(function.__globals__[n], names) for n in sorted(names) if n in function.__globals__}
        digests = [*[self.digest(part) for part in parts], self.digest(cells), self._mapping("uses", used)]
        return _join("function", function.__name__, digests)

    def _code(self, code: types.CodeType) -> bytes:
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        return _join("code", (counts, names, code.co_code), [self.digest(constant) for constant in code.co_consts])

    def _class(self, kind: type) -> bytes:
        if isinstance(kind, UndefinedFunction):  # u of u(x, y)
            assumptions = dict(getattr(kind, "_kwargs", {}))
            rank = assumptions.pop("rank", None)  # the order of declaration counts, as with parameters
            head = (kind.__name__, sorted(assumptions.items()))
            digest = _join("unknown", head, [self.digest(getattr(kind, "_imp_", None))])
            if rank is not None:
                self.ranks.append(("unknown", rank, digest))
            return digest
        if _is_installed(kind):
            return _join("class", _name(kind))
        held = {}
        for owner in reversed(kind.__mro__[:-1]):
            if not _is_installed(owner):
                held |= {key: _function_of(value) for key, value in sorted(vars(owner).items()) if _counts(key, value)}
        bases = [self.digest(base) for base in kind.__mro__[1:] if _is_installed(base)]
        return _join("class", kind.__name__, [*bases, self._mapping("members", held)])

    def _module(self, module: types.ModuleType) -> bytes:
        if _is_installed(module):
            return _join("module", module.__name__)
        # its text would not tell what it takes from other modules, nor what was set since
        held = {name: member for name, member in sorted(vars(module).items()) if not name.startswith("__")}
        return self._mapping("module", held, module.__name__)

    # ---- objects ----------------------------------------------------------------------------------------------------
    def _object(self, value) -> bytes:
        kind = self.digest(type(value))
        if is_plain(value):  # all its attributes, whatever it defines for copies
            return self._mapping("object", attributes_of(value), kind.hex())
        if dataclasses.is_dataclass(value):
            fields = [f for f in dataclasses.fields(value) if f.metadata.get("hashed", True)]
            fields = [f for f in fields if self.ranges or f.name not in getattr(value, "of_range", ())]
            head = (kind.hex(), getattr(type(value), "computed_by", ""))
            return self._mapping("fields", {f.name: getattr(value, f.name) for f in fields}, head)
        return self._reduced(value, kind)

    def _reduced(self, value, kind: bytes) -> bytes:
        """An object by what it can be built again from: the arguments of its constructor, its state, its items."""
        if value is np.random.mtrand._rand:  # NumPy's global generator, which distributions hold and everybody moves
            return _join("object", "the global random state")
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            reduced = value.__reduce_ex__(4) if reduce is None else reduce(value)
            if isinstance(reduced, str):  # the name it can be imported by, such as "sin"
                # a ufunc does not know its module
                homes = [sys.modules.get(getattr(value, "__module__", None) or "", np), *list(sys.modules.values())]
                if not any(_is_packaged(m) and vars(m).get(reduced) is value for m in homes if hasattr(m, "__name__")):
                    raise AttributeError(reduced)
                return _join("global", reduced)
        except Exception:
            raise self._refused(value) from None
        padded: tuple[Any, ...] = (*reduced, None, None, None)
        make, arguments, state, items, pairs = padded[:5]
        state = attributes_of(value) if state is getattr(value, "__dict__", None) and state is not None else state
        parts = [make, arguments, state, None if items is None else list(items), None if pairs is None else dict(pairs)]
        return _join("object", "", [kind, *[self.digest(part) for part in parts]])

    def _refused(self, value) -> Unhashable:
        where = f" in {'.'.join(self.path)}" if self.path else ""
        return Unhashable(
            f"a {type(value).__qualname__}{where} cannot be hashed by its content, so its results cannot be stored. "
            f"Pass fingerprint=..., a text that changes whenever answers do."
        )


# ---- what is the user's and what is installed --------------------------------------------------------------------------
def _is_packaged(value) -> bool:
    """Whether a module, function or class comes with Python or with a package."""
    module = value if isinstance(value, types.ModuleType) else sys.modules.get(getattr(value, "__module__", None) or "")
    if module is None or module.__name__ == "__main__":
        return False
    top = module.__name__.partition(".")[0]
    if top in sys.stdlib_module_names or top == _OWN:
        return True
    place = getattr(module, "__file__", None) or ""
    return "site-packages" in place or "dist-packages" in place


def _is_installed(value) -> bool:
    """Whether its name says what it is: a package's module, or what can be imported from one by its name."""
    if not _is_packaged(value) or isinstance(value, types.ModuleType):
        return _is_packaged(value)
    named: Any = sys.modules[value.__module__]
    for name in value.__qualname__.split("."):
        named = getattr(named, name, None)
    return named is value


def _name(value) -> str:
    """The name of an installed function or class; that of parasol's own does not change when they move to another module."""
    module = _OWN if value.__module__.partition(".")[0] == _OWN else value.__module__
    return f"{module}.{value.__qualname__}"


def _names(code: types.CodeType) -> set[str]:
    """The global names and attributes that a function's code and the functions within it use."""
    out = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            out |= _names(constant)
    return out


def _read(value, names: set[str]):
    """A global as the code reads it: of a user's module the members that the code names."""
    if not isinstance(value, types.ModuleType) or _is_installed(value):
        return value
    return {name: _read(vars(value)[name], names - {name}) for name in sorted(names) if name in vars(value)}


def _function_of(member):
    """The function within a method, a property or a cached function."""
    return next((f for f in (getattr(member, n, None) for n in _WRAPPED) if inspect.isfunction(f)), member)


def _counts(name: str, member) -> bool:
    """Whether a member of a class can matter: all but what Python itself puts there."""
    if isinstance(member, types.MemberDescriptorType | types.GetSetDescriptorType) or name == "_abc_impl":
        return False
    return not name.startswith("__") or inspect.isfunction(_function_of(member))


def _is_empty(cell) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return True
    return False
