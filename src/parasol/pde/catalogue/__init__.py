"""Problems to start from: one module each, written with the public interface only."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from pathlib import Path

from parasol.errors import FileError, InputError, ParasolError
from parasol.pde.problem import Problem


def problem_names() -> list[str]:
    """Names of the problems in the catalogue."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))


def load_problem(name: str) -> Problem:
    """A problem by its catalogue name, or from a file: `path/to/file.py` or `path/to/file.py:variable`.

    >>> load_problem("helmholtz").parameters.names
    ('a', 'k')
    """
    if name in problem_names():
        return importlib.import_module(f"{__name__}.{name.replace('-', '_')}").problem
    path, _, variable = name.partition(":") if ".py" in name else ("", "", "")
    if not path:
        raise InputError(
            f"unknown problem {name!r}. Use one of {', '.join(problem_names())}, or path/to/file.py[:name]."
        )
    return _from_file(Path(path), variable)


def _from_file(path: Path, variable: str) -> Problem:
    if not path.is_file():
        raise FileError(f"there is no file {str(path)!r} to read a problem from.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{str(path)!r} is not a Python file. Give a .py file that declares a ps.Problem.")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ParasolError:
        raise
    except Exception as error:
        raise InputError(f"{str(path)!r} does not run: {type(error).__name__}: {error}") from error
    found = {key: value for key, value in vars(module).items() if isinstance(value, Problem)}
    if variable:
        if variable not in found:
            raise InputError(f"{str(path)!r} has no problem named {variable!r}. It has: {', '.join(found) or 'none'}.")
        return found[variable]
    if len(found) != 1:
        raise InputError(
            f"{str(path)!r} has {len(found)} problems ({', '.join(found) or 'none'}). Say which: {path}:name."
        )
    return next(iter(found.values()))
