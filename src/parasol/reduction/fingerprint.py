"""What determines a solver's answers, as one number: a store belongs to the solver that made it."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import re
import sys
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass

import numpy as np

from parasol.pde.model import Model


def fingerprint(solver) -> str:
    """SHA-256 of what determines a solver's answers: of a model its arrays, parameters and formulas.

    Other solvers may say it themselves by a `fingerprint`, an attribute or a method; else it is their code and their data,
    with the global names that the code uses: numbers, arrays, other functions and what these use in turn. Of installed
    modules only the name counts.

    >>> fingerprint(len) == fingerprint(len), fingerprint(len) == fingerprint(max)
    (True, False)
    """
    own = getattr(solver, "fingerprint", None)
    if own is not None:
        own = own() if callable(own) else own
        return hashlib.sha256(f"own {own}".encode()).hexdigest()
    found = hashlib.sha256()
    if isinstance(solver, Model):
        problem, pattern = solver.problem, solver.pattern
        _feed(found, [[p.name, p.low, p.high, p.scale] for p in solver.parameters.scalars])
        _feed(found, [[f.name, f.on] for f in solver.parameters.functions])
        _feed(found, [str(problem.equations), str(problem.boundary), str(problem.initial), problem.times])
        _feed(found, [solver.nodes.points, pattern.indices, pattern.indptr, pattern.points])
        _feed(found, [[str(t) for t in solver.operator_thetas], [str(t) for t in solver.load_thetas]])
        _feed(found, [solver.operator_data, solver.loads])
        _feed(found, [[order, str(theta), data] for order, theta, data in solver.time_data])
        for part in (*solver.varying_operator, *solver.varying_load):
            _feed(found, [str(part.function), part.nodes, part.positions, part.values])
        for rows in solver.nonlinear:
            _feed(found, [[str(f) for f in rows.functions], rows.nodes, rows.rows, rows.columns, rows.weights])
        _feed(found, [solver.solver, solver.step, solver.integrator])
    else:
        _feed(found, solver)
    return found.hexdigest()


def _feed(found, value, seen: dict | None = None) -> None:
    """Add a value to a hash: its type, its shape and what it holds, the same in every process."""
    seen = {} if seen is None else seen
    found.update(f"<{type(value).__module__}.{type(value).__qualname__}>".encode())
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        found.update(repr(value).encode() + b";")
        return
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufcSU":
        array = np.asarray(value)
        found.update(f"{array.dtype.str}{array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
        return
    if id(value) in seen:
        found.update(f"as {seen[id(value)][0]}".encode())
        return
    seen[id(value)] = len(seen), value  # kept, so that nothing else gets its id
    if isinstance(value, list | tuple | Mapping):
        items = [list(pair) for pair in value.items()] if isinstance(value, Mapping) else value
        found.update(f"{len(items)}:".encode())
        for item in items:
            _feed(found, item, seen)
    elif isinstance(value, functools.partial):
        _feed(found, [value.func, value.args, value.keywords], seen)
    elif inspect.isroutine(value):
        found.update(f"{value.__module__}.{value.__qualname__}".encode())
        with contextlib.suppress(OSError, TypeError):
            found.update(inspect.getsource(value).encode())
        cells = getattr(value, "__closure__", None) or ()
        owner = getattr(value, "__self__", None)
        held = [c.cell_contents for c in cells if not _is_empty(c)]
        _feed(found, [getattr(value, "__defaults__", None), held, None if inspect.ismodule(owner) else owner], seen)
        _feed(found, [getattr(value, "__kwdefaults__", None), _used(value)], seen)
    elif len(seen) > 1 and hasattr(value, "operator_data"):  # a model that the solver holds
        found.update(fingerprint(value).encode())
    elif inspect.ismodule(value):
        found.update(value.__name__.encode())
    elif isinstance(value, type):
        found.update(f"{value.__module__}.{value.__qualname__}".encode())
        _feed_class(found, value, seen)
    elif hasattr(value, "free_symbols") or isinstance(value, set | frozenset):
        found.update(str(sorted(map(str, value)) if isinstance(value, set | frozenset) else value).encode())
    else:
        _feed_class(found, type(value), seen)
        if is_dataclass(value):
            _feed(found, {f.name: getattr(value, f.name) for f in fields(value)}, seen)
        elif getattr(value, "__dict__", None) and (not _is_standard(value) or isinstance(value, types.SimpleNamespace)):
            # what was computed on demand is no part of it
            lazy = [n for n in vars(value) if isinstance(getattr(type(value), n, None), functools.cached_property)]
            _feed(found, {name: v for name, v in sorted(vars(value).items()) if name not in lazy}, seen)
        else:
            # such as a path, a ufunc or a logger: what else they hold is no part of an answer and may change
            found.update(no_addresses(repr(value)).encode())


def _feed_class(found, kind: type, seen: dict) -> None:
    """Add a class: its text, and what its methods and those of its parents use, unless it is an installed one."""
    with contextlib.suppress(OSError, TypeError):
        found.update(inspect.getsource(kind).encode())
    for owner in kind.__mro__:
        if _is_installed(owner):
            continue
        for name, member in sorted(vars(owner).items()):
            inner = [getattr(member, place, None) for place in ("__func__", "fget", "func")]  # of methods, properties
            member = inspect.unwrap(next((f for f in inner if inspect.isfunction(f)), member))
            plain = isinstance(member, bool | int | float | complex | str | bytes | np.ndarray | list | tuple | dict)
            if inspect.isfunction(member) or (plain and not name.startswith("__")):
                _feed(found, [name, member], seen)


def _used(function) -> dict:
    """The globals that a Python function's code and the functions within it name; none for an installed function."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or _is_installed(function):
        return {}
    known = getattr(inspect.unwrap(function), "__globals__", {})
    names, waiting = set(), [code]
    while waiting:
        code = waiting.pop()
        names.update(code.co_names)
        waiting += [constant for constant in code.co_consts if inspect.iscode(constant)]
    return {name: known[name] for name in sorted(names) if name in known}


def _is_installed(thing) -> bool:
    """Whether it comes from the standard library or a package: what it happens to hold is no business of the user's."""
    top = _origin(thing)
    place = getattr(sys.modules.get(top), "__file__", None) or ""
    ours = top == __name__.partition(".")[0]
    return ours or _is_standard(thing) or "site-packages" in place or "dist-packages" in place


def _is_standard(thing) -> bool:
    return _origin(thing) in sys.stdlib_module_names - {"__main__"}


def _origin(thing) -> str:
    """The first part of the name of the module that defines a function, a class or an object's class."""
    named = thing if isinstance(thing, type) or inspect.isroutine(thing) else type(thing)
    return str(getattr(named, "__module__", None) or "builtins").partition(".")[0]


def _is_empty(cell) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return True
    return False


def no_addresses(text: str) -> str:
    """Text without the places in memory that default representations show."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)
