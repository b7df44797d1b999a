"""Problems to start from: one module each, written with the public interface only."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, overload

from parasol.cache.disk import missing
from parasol.errors import InputError, ParasolError, did_you_mean, place_of
from parasol.pde.model import Model
from parasol.pde.parameters import ParameterSpace
from parasol.pde.problem import Problem


def problem_names() -> list[str]:
    """Names of the problems in the catalogue."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))


@overload
def load_problem(name: str) -> Problem: ...
@overload
def load_problem(name: str, *, model: bool) -> Problem | Model: ...
def load_problem(name: str, *, model: bool = False) -> Problem | Model:
    """A problem by its catalogue name, or from a file: `path/to/file.py` or `path/to/file.py:variable`.

    With `model`, a model in a file will do too.

    >>> load_problem("helmholtz").parameters.names
    ('a', 'k')
    """
    source = load_source(name)
    if not isinstance(source, Problem | Model if model else Problem):
        raise InputError(
            f"{name!r} is of the class {type(source).__name__}: this needs an equation. Give a ps.Problem."
        )
    return source


def load_source(name: str) -> Any:
    """What can be learned from: a problem as `load_problem` finds it, or from a file a model or a solver of one's own.

    A solver is an object with `solve`, or a function, with the attribute `parameters`. A file without a name is one with a single
    problem, or with a single model or solver and no problem.
    """
    if name in problem_names():
        return importlib.import_module(f"{__name__}.{name.replace('-', '_')}").problem
    path, _, variable = name.partition(":") if ".py" in name else ("", "", "")
    if not path:
        if name.endswith(".parasol"):
            raise InputError(
                f"{name!r} is a surrogate, not a problem. Ask it: parasol predict {name}, or ps.load({name!r})."
            )
        near = did_you_mean(name, problem_names())
        advice = "Or give a file" if near else f"Use one of {', '.join(problem_names())}, or a file"
        raise InputError(f"unknown problem {name!r}. {near}{advice}: path/to/file.py[:name].")
    declared = _declared_in(Path(path))
    problems = {key: value for key, value in declared.items() if isinstance(value, Problem)}
    if variable:
        if variable not in declared:
            known, near = ", ".join(problems or declared) or "none", did_you_mean(variable, declared)
            raise InputError(f"{path!r} has no problem named {variable!r}. {near}It has: {known}.")
        return declared[variable]
    if not declared:
        raise InputError(
            f"{path!r} declares nothing to solve or learn. Declare a ps.Problem in it, or a function with `parameters`."
        )
    if len(problems) != 1 and (problems or len(declared) != 1):
        known = problems or declared
        raise InputError(f"{path!r} has {len(known)} problems ({', '.join(known)}). Say which: {path}:name.")
    return next(iter((problems or declared).values()))


def _declared_in(path: Path) -> dict[str, Any]:
    """All problems, models and solvers of a file, by name."""
    if not path.is_file():
        raise missing(path, "A problem is a name of the catalogue (parasol problems), or path/to/file.py[:name].")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{str(path)!r} is not a Python file. Give a .py file that declares a ps.Problem.")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        kind = "" if isinstance(error, ParasolError) else f"{type(error).__name__}: "
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        raise InputError(f"{place_of(error) or path}: {kind}{said or 'no reason given'}") from error
    return {key: value for key, value in vars(module).items() if _is_source(value)}


def _is_source(value: Any) -> bool:
    if isinstance(value, Problem | Model):
        return True
    if isinstance(value, type) or not (inspect.isfunction(value) or callable(getattr(value, "solve", None))):
        return False
    return isinstance(getattr(value, "parameters", None), ParameterSpace | Mapping)
