"""What was asked of `learn`, and the discretisation for it."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from parasol.cache.disk import claim
from parasol.checks import Progress, check_count, check_positive, check_progress
from parasol.errors import InputError, ParasolWarning
from parasol.learning.nodes import Discretised, choose_nodes, estimated
from parasol.learning.solves import Limits, Stage
from parasol.learning.store import NodesKey, stored_nodes, write_nodes
from parasol.pde.matrices import AffineModel
from parasol.pde.model import Model
from parasol.pde.problem import Problem
from parasol.reduction.solvers import Solvable, own_solver


@dataclass(frozen=True, eq=False)
class Request:
    """What was asked for, checked before any work."""

    problem: Problem | Solvable | None
    tolerance: float
    total: bool = False
    model: Model | None = None
    n_nodes: int | None = None
    rng: int = 0
    store: str | os.PathLike[str] | None = None
    fingerprint: object = None
    limits: Limits = field(default_factory=Limits)
    progress: Stage | None = None
    parameters: Any = None  # of a solver of one's own, or of data

    def __post_init__(self):
        if not check_positive(self.tolerance, "tolerance") < 1:
            raise InputError(f"tolerance={self.tolerance!r} is a relative error: give a number below 1, such as 1e-3.")
        if self.n_nodes is not None:
            check_count(self.n_nodes, "n_nodes")
        check_progress(self.progress)
        if not isinstance(self.rng, int | np.integer) or isinstance(self.rng, bool) or self.rng < 0:
            raise InputError(f"rng={self.rng!r} must be a whole number from 0 on, such as rng=0.")
        if self.parameters is not None and (self.model is not None or isinstance(self.problem, Problem | Model)):
            raise InputError("the problem declares its parameters itself. Leave parameters= out.")

    @property
    def stage(self) -> Stage:
        """What is called with the name of each stage."""

        def enter(text: str) -> Progress:
            self.limits.enter(text)
            return None if self.progress is None else self.progress(text)

        return enter

    def share(self, chosen: Discretised) -> float:
        """What the surrogate may err by: all of the tolerance, or with `total` what the discretisation leaves of it."""
        return self.tolerance - (min(chosen.error or 0.0, self.tolerance / 2) if self.total else 0.0)

    def held(self) -> AbstractContextManager[None]:
        """The store for one run at a time, from the beginning; nothing where there is none."""
        return nullcontext() if self.store is None else claim(Path(self.store).expanduser().absolute(), "store")


@dataclass(frozen=True)
class Hands:
    """Who makes full solves that need not wait for each other: processes of our own, or somebody's executor."""

    jobs: int | None = None
    executor: Executor | None = None

    def __post_init__(self):
        if self.jobs is not None:
            check_count(self.jobs, "jobs")
        if self.jobs is not None and self.executor is not None:
            raise InputError("both executor and jobs are given. Give one: jobs=4 for four processes here.")
        if self.executor is not None and not isinstance(self.executor, Executor):
            raise InputError(
                f"executor is a {type(self.executor).__name__}. Pass one of concurrent.futures, such as Dask's "
                "client.get_executor()."
            )


def discretised(request: Request) -> Discretised:
    """The model that was given, nodes that were chosen before or are chosen now, or a solver of one's own as it is."""
    problem, model = request.problem, request.model
    if isinstance(problem, Model) and model is None:
        model = problem
    if model is not None:
        if not isinstance(model, Model):
            raise InputError(f"model is a {type(model).__name__}. Pass what ps.discretize returns.")
        if request.n_nodes is not None:
            raise InputError("both model and n_nodes are given. Give one: a model has its nodes.")
        if isinstance(model, AffineModel):
            if request.total:
                raise InputError("total=True needs the equation: matrices do not tell how far they are from it.")
            return Discretised(model, None)
        _check_times(model.problem)
        request.stage(f"estimating the error of {model.n_nodes} nodes")
        return _in_time(estimated(model, limits=request.limits, rng=request.rng))
    if isinstance(problem, Problem):
        _check_times(problem)
        if not (problem.parameters.scalars or problem.parameters.functions):
            raise InputError(
                "the problem has no parameters, so there is nothing to learn. Solve it once: parasol solve."
            )
        return _chosen_nodes(problem, request)
    return Discretised(own_solver(problem, request.parameters), None)


def _chosen_nodes(problem: Problem, request: Request) -> Discretised:
    """The nodes of an earlier run of the same request, or new ones, which are then kept."""
    aim = request.tolerance / 2 if request.total else request.tolerance
    key = NodesKey(aim, request.n_nodes, request.rng, request.fingerprint)
    known = None if request.store is None else stored_nodes(request.store, problem, key)
    if known is not None:
        if known.limit:
            warnings.warn(known.limit, ParasolWarning, stacklevel=2)
        return known
    chosen = choose_nodes(
        problem, aim, limits=request.limits, n_nodes=request.n_nodes, rng=request.rng, stage=request.stage
    )
    if request.store is not None and not chosen.short:
        write_nodes(request.store, problem, key, chosen)
    return _in_time(chosen)


def _in_time(chosen: Discretised) -> Discretised:
    """The discretisation, with a warning where the seconds allowed ended the search for it, and its quantities computed."""
    if chosen.short:
        error = "is not known" if chosen.error is None else "is estimated at fewer parameters, or with fewer nodes"
        warnings.warn(
            f"half of the seconds allowed did not suffice to compare discretisations: the discretisation error {error}.",
            ParasolWarning,
            stacklevel=2,
        )
    if chosen.model.problem.quantities:
        _ = chosen.model.quantities  # what they cost belongs before the solves, which take what is left of the time
    return chosen


def _check_times(problem: Problem) -> None:
    if problem.time is not None and problem.times is None:
        raise InputError("the problem does not say which times to store. Declare it with times=np.linspace(0, 1, 11).")
