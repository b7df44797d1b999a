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

from parasol.checks import ParasolError

VERSION = 1  # of the encoding: a hash of another version says nothing about the content
_PLAIN = (type(None), bool, int, float, complex, str, bytes, bytearray)
_COMMUTATIVE = (sympy.Add, sympy.Mul, sympy.And, sympy.Or, sympy.Max, sympy.Min)
_ABSTRACT = ("abc", "typing", "parasol")  # where classes come from that add only attributes to their objects
_WRAPPED = ("__func__", "fget", "func", "__wrapped__")  # where methods, properties and cached functions keep a function


def content_hash(thing) -> str:
    """SHA-256 of what a thing holds: class and every field of a dataclass, every attribute of another object.

    Dataclass fields with the metadata `{"hashed": False}` are left out: caches that change no answer. Functions and classes
    of the user count by their code and by what that code names; those of installed packages by their name, and files by
    their path. Mappings and sequences count in their order, parameters by name, range and order of declaration.

    >>> content_hash([1, "a"]) == content_hash([1, "a"]), content_hash([1, "a"]) == content_hash((1, "a"))
    (True, False)
    """
    encoder = _Encoder()
    try:
        root = encoder.digest(thing)
    except RecursionError:
        raise ParasolError(f"a {type(thing).__qualname__} is nested too deeply to be hashed by its content.") from None
    # where in a parameter vector a parameter stands: the order of declaration counts, not its number in this process
    ranked = [digest for _, _, digest in sorted(encoder.ranks, key=lambda ranked: ranked[:2])]
    return _join("content", VERSION, [root, *dict.fromkeys(ranked)]).hex()


def is_plain(thing) -> bool:
    """Whether an object of a user's class holds its attributes and nothing else, such as the items of a list."""
    packaged = (base for base in type(thing).__mro__ if base is not object and _is_packaged(base))
    return not _is_packaged(type(thing)) and all(b.__module__.partition(".")[0] in _ABSTRACT for b in packaged)


def attributes_of(thing) -> dict[str, Any]:
    """What an object holds by name, in alphabetical order: its attributes and slots, without values computed on demand."""
    slots = [name for kind in type(thing).__mro__ for name in np.atleast_1d(vars(kind).get("__slots__", ()))]
    held = {name: getattr(thing, name) for name in slots if hasattr(thing, name) and not name.startswith("__")}
    held |= getattr(thing, "__dict__", {})
    lazy = {
        n for kind in type(thing).__mro__ for n, v in vars(kind).items() if isinstance(v, functools.cached_property)
    }
    return {name: held[name] for name in sorted(held) if name not in lazy}


def _join(kind: str, head: object, parts: Iterable[bytes] = ()) -> bytes:
    """The hash of a kind of content, a short text and the hashes of the parts."""
    text = f"{kind} {head!r}".encode()
    return hashlib.sha256(len(text).to_bytes(8, "big") + text + b"".join(parts)).digest()


class _Encoder:
    """Hashes by content, each object once; an object within itself counts by how many levels up it is."""

    def __init__(self):
        self.known: dict[int, tuple[bytes, object]] = {}  # with the objects, so that nothing else gets their address
        self.open: dict[int, int] = {}
        self.dummies: dict[sympy.Dummy, int] = {}
        self.ranks: list[tuple[str, int, bytes]] = []  # of parameters and of unknowns, which are counted apart
        self.path: list[str] = []

    def digest(self, thing, name: str = "") -> bytes:
        """The hash of one thing; `name` is where it was found, for messages."""
        if type(thing) in _PLAIN:
            return _join(type(thing).__name__, thing)
        if id(thing) in self.known:
            return self.known[id(thing)][0]
        if id(thing) in self.open:
            return _join("within itself", len(self.open) - self.open[id(thing)])
        self.open[id(thing)] = len(self.open)
        if name:
            self.path.append(name)
        found = self._encode(thing)
        if name:
            self.path.pop()
        del self.open[id(thing)]
        self.known[id(thing)] = found, thing
        return found

    def _encode(self, thing) -> bytes:
        if type(thing) in (np.ndarray, np.memmap) or isinstance(thing, np.generic):
            return self._array(np.asarray(thing))
        if isinstance(thing, sympy.Basic):
            return self._expression(thing)
        if type(thing) in (list, tuple):
            return _join(type(thing).__name__, len(thing), [self.digest(item) for item in thing])
        if type(thing) in (dict, types.MappingProxyType):
            return self._mapping("mapping", thing)
        if type(thing) in (set, frozenset):
            return _join("set", len(thing), sorted(self._alone(item) for item in thing))
        if isinstance(thing, types.ModuleType):
            return self._module(thing)
        if isinstance(thing, types.CodeType):
            return self._code(thing)
        if isinstance(thing, types.FunctionType):
            return self._function(thing)
        if type(thing) is functools.partial:
            return _join("partial", "", [self.digest(part) for part in (thing.func, thing.args, thing.keywords)])
        if isinstance(thing, types.MethodType):
            return _join("method", thing.__func__.__name__, [self.digest(thing.__func__), self.digest(thing.__self__)])
        if isinstance(thing, types.BuiltinFunctionType):
            owner = None if isinstance(thing.__self__, types.ModuleType) else thing.__self__
            return _join("built-in", f"{thing.__module__}.{thing.__qualname__}", [self.digest(owner)])
        if isinstance(thing, type):
            return self._class(thing)
        if callable(thing) and callable(
            getattr(thing, "__wrapped__", None)
        ):  # cached or compiled: the function decides
            return _join("wrapped", type(thing).__qualname__, [self.digest(thing.__wrapped__)])
        return self._object(thing)

    def _alone(self, thing) -> bytes:
        """The hash of a member of a set, which must not depend on the members met before it."""
        inner = _Encoder()
        inner.ranks, inner.path = self.ranks, self.path
        return inner.digest(thing)

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
        if isinstance(symbol, sympy.Dummy):  # numbered in each process
            known["number"] = self.dummies.setdefault(symbol, len(self.dummies))
        head = (symbol.name, sorted(symbol.assumptions0.items()))
        found = _join("symbol", head, [self.digest(type(symbol)), self._mapping("knows", known)])
        if rank is not None:
            self.ranks.append(("symbol", rank, found))
        return found

    # ---- code -------------------------------------------------------------------------------------------------------
    def _function(self, function: types.FunctionType) -> bytes:
        name = f"{function.__module__}.{function.__qualname__}"
        if _is_installed(function):
            return _join("function", name)
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
        name = f"{kind.__module__}.{kind.__qualname__}"
        if isinstance(kind, UndefinedFunction):  # u of u(x, y)
            assumptions = dict(getattr(kind, "_kwargs", {}))
            rank = assumptions.pop("rank", None)  # the order of declaration counts, as with parameters
            head = (kind.__name__, sorted(assumptions.items()))
            digest = _join("unknown", head, [self.digest(getattr(kind, "_imp_", None))])
            if rank is not None:
                self.ranks.append(("unknown", rank, digest))
            return digest
        if _is_installed(kind):
            return _join("class", name)
        held = {}
        for owner in reversed(kind.__mro__[:-1]):
            if not _is_installed(owner):
                held |= {key: _function_of(value) for key, value in sorted(vars(owner).items()) if _counts(key, value)}
        bases = [self.digest(base) for base in kind.__mro__[1:] if _is_installed(base)]
        return _join("class", kind.__name__, [*bases, self._mapping("members", held)])

    def _module(self, module: types.ModuleType) -> bytes:
        if _is_installed(module):
            return _join("module", module.__name__)
        try:
            return _join("module", module.__name__, [inspect.getsource(module).encode()])
        except (OSError, TypeError):
            raise self._refused(module) from None

    # ---- objects ----------------------------------------------------------------------------------------------------
    def _object(self, thing) -> bytes:
        kind = self.digest(type(thing))
        if is_plain(thing):  # all it holds, whatever it says of itself
            return self._mapping("object", attributes_of(thing), kind.hex())
        if dataclasses.is_dataclass(thing):
            fields = [f for f in dataclasses.fields(thing) if f.metadata.get("hashed", True)]
            head = (kind.hex(), getattr(type(thing), "computed_by", ""))
            return self._mapping("fields", {f.name: getattr(thing, f.name) for f in fields}, head)
        return self._reduced(thing, kind)

    def _reduced(self, thing, kind: bytes) -> bytes:
        """What it says it can be made again from."""
        if thing is np.random.mtrand._rand:  # NumPy's global generator, which distributions hold and everybody moves
            return _join("object", "the global random state")
        try:
            reduce = copyreg.dispatch_table.get(type(thing))
            reduced = thing.__reduce_ex__(4) if reduce is None else reduce(thing)
            if isinstance(reduced, str):  # the name it can be imported by, such as "sin"
                # a ufunc does not know its module
                homes = [sys.modules.get(getattr(thing, "__module__", None) or "", np), *list(sys.modules.values())]
                if not any(_is_packaged(m) and vars(m).get(reduced) is thing for m in homes if hasattr(m, "__name__")):
                    raise AttributeError(reduced)
                return _join("global", reduced)
        except Exception:
            raise self._refused(thing) from None
        made: tuple[Any, ...] = (*reduced, None, None, None)
        make, arguments, state, items, pairs = made[:5]
        state = attributes_of(thing) if state is getattr(thing, "__dict__", None) and state is not None else state
        parts = [make, arguments, state, None if items is None else list(items), None if pairs is None else dict(pairs)]
        return _join("object", "", [kind, *[self.digest(part) for part in parts]])

    def _refused(self, thing) -> ParasolError:
        where = f" in {'.'.join(self.path)}" if self.path else ""
        return ParasolError(
            f"a {type(thing).__qualname__}{where} cannot be told from another by its content, so nothing can be kept under it. "
            f"Pass fingerprint=..., a text that changes whenever answers do."
        )


# ---- what is the user's and what is installed --------------------------------------------------------------------------
def _is_packaged(thing) -> bool:
    """Whether a module, function or class comes with Python or with a package."""
    module = thing if isinstance(thing, types.ModuleType) else sys.modules.get(getattr(thing, "__module__", None) or "")
    if module is None or module.__name__ == "__main__":
        return False
    top = module.__name__.partition(".")[0]
    if top in sys.stdlib_module_names or top == __name__.partition(".")[0]:
        return True
    place = getattr(module, "__file__", None) or ""
    return "site-packages" in place or "dist-packages" in place


def _is_installed(thing) -> bool:
    """Whether its name says what it is: a package's module, or what can be imported from one by its name."""
    if not _is_packaged(thing) or isinstance(thing, types.ModuleType):
        return _is_packaged(thing)
    found: Any = sys.modules[thing.__module__]
    for name in thing.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is thing


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
