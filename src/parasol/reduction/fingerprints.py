"""What determines a solver's answers, as one hash: a store belongs to the solver that made it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from parasol import __version__
from parasol.cache.content import VERSION, attributes_of, content_hash, is_plain
from parasol.pde.model import Model
from parasol.pde.problem import Problem
from parasol.reduction.solvers import unwrapped

_SILENT = ("name", "exact", "settings", "quantities")  # fields of a problem that change none of its solutions
_NAMED = ("nodes", "scheme", "solver", "step", "integrator")  # fields of a model that are no matrices
_MOST_NAMED = 4
KIND = f"problem {VERSION} "  # what a fingerprint of a problem begins with; files of earlier versions have others


class Parts(dict[str, str]):
    """The hashes of what a solver is known by, by name.

    `apart_from_ranges` is one of all but where parameters may lie, of models whose solves are all that is learned from:
    what linear steady ones need besides, their factors, is not stored.
    """

    apart_from_ranges: str = ""

    @property
    def fingerprint(self) -> str:
        """Their common hash."""
        return content_hash(dict(self))


def fingerprint(solver: object, own: object = None) -> str:
    """The hash of what determines a solver's answers: of a model its problem, nodes and matrices, and parasol's version.

    Of another solver it is the code and everything the object holds, down to the globals that the code names; of installed
    packages only the names count, of files only the paths. A solver whose attributes change while it works, such as a counter, says itself what
    identifies it: by `own`, or by its attribute or method `fingerprint`.

    >>> fingerprint(len) == fingerprint(len), fingerprint(len) == fingerprint(max)
    (True, False)
    """
    return parts_of(solver, own).fingerprint


def parts_of(solver, own: object = None) -> Parts:
    """The hashes that a fingerprint is made of, by name: they tell what differs where two fingerprints do.

    Where `own` is such parts, they are taken as they are: those of a solver before it began to work.
    """
    if isinstance(own, Parts):
        return own
    space = getattr(solver, "parameters", None)
    solver = unwrapped(solver)
    if own is None and not isinstance(solver, type):
        own = getattr(solver, "fingerprint", None)
        own = own() if callable(own) else own
    parts: dict[str, Any]
    if isinstance(solver, Model):
        stated = _statement(solver.problem) if own is None else {"fingerprint": own}
        named = {name: getattr(solver, name) for name in _NAMED}
        rest = [getattr(solver, f.name) for f in fields(solver) if f.name not in ("problem", *_NAMED)]
        parts = {"version of parasol": __version__, **stated, "parameters": space, **named, "matrices": rest}
    elif own is not None:  # the columns of a parameter vector have to mean the same
        parts = {"fingerprint": own, "parameters": list(getattr(space, "names", ()))}
    elif is_plain(solver):
        held = {f"attribute {name}": value for name, value in attributes_of(solver).items()}
        parts = {"code": type(solver), **held, "parameters": space}
    else:
        parts = {"solver": solver, "parameters": space}
    hashes = Parts({name: content_hash({name: part}) for name, part in parts.items()})
    if isinstance(solver, Model) and own is None and (solver.problem.time is not None or not solver.problem.linear):
        hashes.apart_from_ranges = content_hash(parts, ranges=False)
    return hashes


def is_vouched_for(solver, own: object = None) -> bool:
    """Whether all that answers depend on is known: of a model, or by the word of whoever wrote the solver.

    Of other solvers the code is known and what they hold, not the content of files and programs that they use.
    """
    solver = unwrapped(solver)
    return own is not None or isinstance(solver, Model) or getattr(solver, "fingerprint", None) is not None


def problem_fingerprint(problem: Problem) -> str:
    """The hash of what a problem's solutions depend on; unlike that of a model the same on every machine.

    What a file keeps of its problem. `KIND` in front distinguishes it from the fingerprints of earlier versions.
    """
    return KIND + content_hash({**_statement(problem), "parameters": problem.parameters})


def difference(there: Mapping[str, str] | None, here: Mapping[str, str] | None) -> str:
    """Why two fingerprints differ, from their parts.

    >>> difference({"domain": "1", "times": "2"}, {"domain": "1", "times": "3"})
    'times differs'
    """
    if there is None or here is None:
        return "written by an earlier version of parasol"
    names = [name for name in {**there, **here} if there.get(name) != here.get(name)]
    # matrices follow from the rest
    names = [name for name in names if name != "matrices"] or names
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more} {'differs' if len(names) == 1 else 'differ'}"


def _statement(problem: Problem) -> dict[str, Any]:
    return {f.name: getattr(problem, f.name) for f in fields(problem) if f.name not in _SILENT}
