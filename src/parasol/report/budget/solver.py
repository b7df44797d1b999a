"""The full solver behind a surrogate: in memory, or made again from what its file holds."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.spatial import KDTree

from parasol.errors import InputError, ParasolWarning
from parasol.learning.rebuilding import rebuilt
from parasol.pde.catalogue import load_problem, load_source, problem_names
from parasol.pde.problem import Problem
from parasol.pde.text import problem_words
from parasol.reduction.fingerprints import KIND, problem_fingerprint
from parasol.runtime.provenance import NodesRecord
from parasol.runtime.surrogate import Surrogate
from parasol.space.boundary import describe

_ASK = "Give the problem: --problem path/to/file.py[:name], in Python problem=... or model=..."


def solver_of(surrogate: Surrogate, problem: Any = None, model: Any = None) -> Any:
    """A solver of the same discrete problem the surrogate was made from; refused with one line where there is none."""
    if model is not None:
        return model
    problem = load_source(problem) if isinstance(problem, str) else problem
    if not isinstance(problem, Problem) and callable(getattr(problem, "solve", problem)):
        return problem
    if problem is None and surrogate.solver is not None:
        return surrogate.solver
    declared = _declared(surrogate, problem)
    layout, held = surrogate.layout, surrogate.provenance.nodes
    if layout.points is None or layout.scheme is None:
        raise InputError(
            "this surrogate knows no nodes: it was made from data. In Python, pass model= with your solver."
        )
    if declared.domain.dimension != layout.points.shape[1] or declared.names != tuple(layout.names):
        raise InputError(
            f"the problem has {declared.domain.dimension} dimensions and the unknowns {', '.join(declared.names)}, the "
            f"surrogate {layout.points.shape[1]} and {', '.join(layout.names)}: it is another problem."
        )
    if held is None:
        held = _guessed(declared, layout.points, layout.n_interior)
    solver = rebuilt(declared, layout.points, layout.n_interior, layout.scheme, held)
    known = surrogate.provenance.fingerprint
    if known is not None and not known.startswith(KIND):
        warnings.warn(
            "this surrogate was learned by an earlier version of parasol: that the problem is the same is taken on trust.",
            ParasolWarning,
            stacklevel=3,
        )
    elif known is not None and problem_fingerprint(declared) != known:
        raise InputError(
            "the solver made from this problem is not the one the surrogate was learned from: the domain, the equation, "
            "the boundary conditions, the parameters or the times have changed. Check against the problem it was learned from."
        )
    return solver


def _declared(surrogate: Surrogate, problem: Any) -> Problem:
    if isinstance(problem, Problem):
        return problem
    if problem is not None:
        raise InputError(f"problem is a {type(problem).__name__}. Pass a ps.Problem, its name, or the solver.")
    name, equation = surrogate.provenance.problem, surrogate.provenance.equation
    if name is None or name not in problem_names():
        said = f"its problem {name!r} is not in the catalogue" if name else "it does not say which problem it solves"
        fresh = "" if name else " One of results is measured on fresh ones: ps.accuracy(surrogate, results)."
        raise InputError(f"the solver of this surrogate cannot be made again: {said}. {_ASK}{fresh}")
    candidate = load_problem(name)
    if equation is not None and problem_words(candidate)["equation"] != equation:
        raise InputError(f"the catalogue's {name!r} has another equation than this surrogate. {_ASK}")
    return candidate


def _guessed(problem: Problem, points: np.ndarray, n_interior: int) -> NodesRecord:
    """What a file without an account of its nodes leaves open; exact where the boundary conditions state values."""
    if not all(form.states_value for forms in problem.conditions.values() for form in forms):
        raise InputError(
            "the file does not say where the ghosts of its boundary conditions were. In Python: check(surrogate, model=model)."
        )
    rim = points[n_interior:]
    spacing = KDTree(points).query(rim, 2)[0][:, 1] if len(rim) else np.empty(0)
    edge = describe(problem.domain, rim, spacing)
    return NodesRecord("one-sided", None, None, edge.normals, edge.part, edge.on_part, spacing)
