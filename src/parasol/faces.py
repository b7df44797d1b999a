"""The public names of a package: listed in its stub `__init__.pyi`, imported when first used.

Editors and type checkers read the stub, Python reads it here: one list. A name is written `from home import name as name`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def face(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package that has a stub.

    >>> import parasol
    >>> "learn" in dir(parasol), "sys" in dir(parasol)
    (True, False)
    """
    module = sys.modules[package]
    stub = ast.parse(Path(str(module.__file__)).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [line for line in stub.body if isinstance(line, ast.ImportFrom)]
    homes = {name.asname: (line.module or "", name.name) for line in imports for name in line.names if name.asname}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, original = homes[name]
        value = import_module(f"{home}.{original}") if home == package else getattr(import_module(home), original)
        setattr(module, name, value)
        return value

    return find, lambda: sorted(homes), sorted(homes)
