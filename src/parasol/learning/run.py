"""One call from an equation to a surrogate that meets a tolerance, with a report of what it took."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace

import numpy as np

from parasol.errors import InputError, MissingPackage, NoCertificate, ParasolError, ParasolWarning, SolveFailed
from parasol.fitting.choosing import choice_words
from parasol.fitting.data import fit_results
from parasol.fitting.descent import require_jax
from parasol.fitting.maps import Recipe, fit_map
from parasol.fitting.recipes import recipe_named
from parasol.fitting.training import NetworkRecipe
from parasol.learning.adding import Origin
from parasol.learning.estimates import with_discretisation
from parasol.learning.in_time import learn_in_time, memory_in_time
from parasol.learning.linear import check_box, learn_linear, n_solves
from parasol.learning.nodes import Discretised
from parasol.learning.report import LEVEL, Evidence, Outcome, Step
from parasol.learning.request import Hands, Request, discretised
from parasol.learning.sampled import learn_sampled
from parasol.learning.solves import Limits, SolveCache, Solver, Stage
from parasol.learning.store import Data, read_data
from parasol.learning.verdict import with_report
from parasol.pde.discretize import discretize
from parasol.pde.matrices import AffineModel
from parasol.pde.model import Model
from parasol.pde.parameters import ParameterSpace
from parasol.pde.problem import Problem
from parasol.reduction.sampling import sample
from parasol.reduction.snapshots import NothingSolved
from parasol.reduction.solvers import Solvable
from parasol.runtime.above import borrowed
from parasol.runtime.parameters import parameter_space
from parasol.runtime.plain import Plain
from parasol.runtime.ranges import Ranges
from parasol.runtime.surrogate import Surrogate
from parasol.space.nodes import scatter

log = logging.getLogger(__name__)

_N_TIMED = 5  # random parameters at which solves are timed for a plan
_N_LOOKED = 1024  # parameters at which a bound that differs is compared with the tolerance
_FEW_NODES = (60, 300, 600)  # by dimension, for a plan


@dataclass(frozen=True, eq=False)
class Plan:
    """What learning would do, before it does: the discretisation, the cost of a solve, the method, and a rough total."""

    discretised: Discretised
    tolerance: float
    method: str
    n_solves: tuple[int, int]  # from, to
    # seconds of everything, from, to, choosing the nodes included; None: not known
    whole: tuple[float, float] | None = None
    tried: bool = False  # whether the number of solves is what few nodes took, or a rough guess
    n_values: int = 0  # of a solution, as it is kept
    memory: tuple[float, float] | None = None  # bytes of this process at most, from, to; None: not known

    @property
    def found(self) -> Discretised:
        """The name of `discretised` until version 0.2."""
        warnings.warn("plan.found is now plan.discretised.", DeprecationWarning, stacklevel=2)
        return self.discretised

    @property
    def seconds(self) -> tuple[float, float]:
        """Seconds of the full solves, from, to."""
        return tuple(n * self.discretised.seconds for n in self.n_solves)  # type: ignore[return-value]

    @property
    def store_bytes(self) -> tuple[float, float]:
        """Bytes of a store with the full solves, from, to; measured: 1 kB (solved together) to 7 kB and the values each, and the nodes."""
        low, high = self.n_solves
        return low * (8 * self.n_values + 5e2), high * (8 * self.n_values + 7e3) + 1e5

    @property
    def file_bytes(self) -> tuple[float, float]:
        """Bytes of the surrogate's file, from, to: modes and nodes, as many modes as solves where it was tried, else fewer."""
        low, high = self.n_solves
        return 8.0 * self.n_values * (0.5 * low if self.tried else 3) + 5e3, 8.0 * self.n_values * (high + 4) + 5e5

    def facts(self) -> Plain:
        """The plan as plain data."""
        chosen = self.discretised
        return {
            "tolerance": self.tolerance,
            "n_nodes": chosen.n_nodes,
            "discretisation_error": chosen.error,
            "refined": chosen.refined,
            "method": self.method,
            "seconds_per_solve": chosen.seconds,
            "solves": list(self.n_solves),
            "seconds": list(self.seconds),
            "whole_seconds": None if self.whole is None else list(self.whole),
            "memory_bytes": None if self.memory is None else list(self.memory),
            "file_bytes": list(self.file_bytes),
            "store_bytes": list(self.store_bytes),
            "comparisons": [asdict(row) for row in chosen.history],
        }

    def rows(self) -> dict[str, str]:
        """The plan as a table of two columns."""
        chosen, (low, high), (least, most) = self.discretised, self.n_solves, self.seconds
        rows = {"tolerance": f"{self.tolerance:g}", "method": self.method}
        if chosen.error is not None:
            rows["nodes"] = f"{chosen.n_nodes}, with a discretisation error of about {chosen.error:.1e}"
        rows["one full solve"] = f"{chosen.seconds:.2g} s"
        how = ", as many as with few nodes" if self.tried else " by a rough guess"
        rows["full solves"] = f"{low} to {high}{how}, {least:.2g} to {most:.2g} s on one core"
        if self.whole is not None:
            rows["everything"] = f"{self.whole[0]:.2g} to {self.whole[1]:.2g} s"
        if self.memory is not None:
            rows["memory"] = f"{_megabytes(self.memory)}, what this took included"
        rows["file"] = f"{_megabytes(self.file_bytes)}; a store of the full solves {_megabytes(self.store_bytes)}"
        return rows


def _megabytes(sizes: tuple[float, float]) -> str:
    low, high = (f"{1e-6 * size:.2g}" if size < 1e8 else f"{1e-6 * size:.0f}" for size in sizes)
    return f"{low} to {high} MB"


def _memory(n_solves: int, n_values: int) -> tuple[float, float] | None:
    """Bytes that learning will need: what choosing the nodes has taken, and some copies of the full solves besides."""
    try:
        import resource  # not on Windows
    except ImportError:
        return None
    peak = float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * (1 if sys.platform == "darwin" else 1024)
    return peak, 1.3 * peak + 10 * 8.0 * n_solves * n_values


def learn(
    problem: Problem | Solvable | None = None,
    tolerance: float = 1e-3,
    *,
    total: bool = False,
    solves: int | None = None,
    seconds: float | None = None,
    model: Model | None = None,
    n_nodes: int | None = None,
    recipe: str | Recipe | None = None,
    data: Data | None = None,
    parameters: ParameterSpace | Ranges | None = None,
    store: str | os.PathLike[str] | None = None,
    fingerprint: object = None,
    proof: bool = False,
    rng: int = 0,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: Stage | None = None,
) -> Surrogate:
    """From a problem to a surrogate whose relative error is below `tolerance` on parameters it has not seen.

    Nodes are chosen so that the estimated discretisation error is below the tolerance too; the tolerance itself is
    against the discrete solution, and `total=True` asks that both errors together stay below it. Linear problems, steady
    or with u' in time, get an estimate of every answer's error by random duals, and a probable bound from it, checked at 2000
    fresh parameters; steady ones with `proof=True` a bound from the residual, proven where its constants are. Others get a conformal bound that holds 95
    times in 100. The report is `surrogate.facts["learn"]`. If the tolerance is not met
    within `solves` full solves or `seconds`, the best surrogate is returned with a warning that says how far it got and
    what limits it.

    `model` or `n_nodes` is the user's discretisation, `recipe` the map of the user's choice (as in `fit`). `problem` may also
    be a solver of one's own: an object with `solve(mu)` and `parameters`, or a function of mu, with `parameters` given here as
    ranges by name, `{"a": (0.1, 4.0), "k": (1, 10, "log")}`. mu is a vector with one number per parameter, in that order. Where
    it raises `ps.errors.SolveFailed`, or an error as `solve_many` says, that parameter is recorded as failed. A linear solver
    that can evaluate `residual(mu, u)` = f(μ) − A(μ) u needs far fewer solves: its reduced model makes the labels (at the
    same mu many times in a row: it should keep its matrix). One that also has `solve_transposed(mu, z)` = A(μ)⁻ᵀ z gets
    estimates of every answer's error by random duals, and a probable bound from them.

    `data` is `ps.Results`, (mus, solutions), a file that `ps.read_results` reads, or a store of snapshots: then nothing is
    solved, and `parameters` are their ranges. With a `store` (a folder) every full solve is kept: a
    call that was stopped goes on, and one with a smaller tolerance uses what there is; with other ranges of the parameters,
    nonlinear problems and those in time learn from it too. Solves are reused where everything that can change an answer is
    the same; a solver of one's own whose attributes change while it works says by `fingerprint`, a text, which solves are
    its own. Without it one of its solves is repeated in each run, for files and programs that it uses are not seen: where
    the answer is another, what the store has is set aside. One run at a time uses a store. `progress` is called with each stage.
    Full solves that need not wait for each other are made by `jobs` processes, or by any `executor` of
    `concurrent.futures`, such as that of a Dask client or of mpi4py; with a store its workers write them there themselves.

    >>> import parasol as ps
    >>> x, y = ps.coordinates("x y")
    >>> u, (a,) = ps.unknown("u", x, y), ps.parameters(a=(1.0, 2.0))
    >>> plate = ps.Problem(ps.Disc(), ps.Eq(-a * ps.laplacian(u), 4), ps.Dirichlet(0))  # u = (1 − r²) / a
    >>> surrogate = learn(plate, 1e-3, n_nodes=200, recipe="polynomial")
    >>> surrogate.facts["learn"]["met"], surrogate.basis.n_modes
    (True, 1)
    """
    limits = Limits(solves, seconds)
    with _in_a_notebook(progress) as shown:
        given = (problem, tolerance, total, model, n_nodes, rng, store, fingerprint, limits, shown, parameters)
        return _learned(Request(*given), data, recipe, proof, Hands(jobs, executor))


def _learned(request: Request, data: Data | None, recipe: str | Recipe | None, proof: bool, hands: Hands) -> Surrogate:
    """What `learn` does, once what is asked for is known to make sense."""
    problem = request.problem
    if proof and (
        data is not None or (isinstance(problem, Problem) and (problem.time is not None or not problem.linear))
    ):
        raise InputError("proof=True is for linear steady problems: nothing can be proven of this one. Leave it out.")
    recipe = None if recipe is None or (data is not None and recipe == "best") else _usable(recipe)
    chosen, cache = None, None
    with request.held():
        with _gathered(shown=data is not None) as notes:
            if data is None:
                chosen = discretised(request)
            else:
                outcome = _from_data(data, request, recipe)
        if chosen is not None:
            options = {"expected": chosen.seconds, "stage": request.stage, "fingerprint": request.fingerprint}
            cache = SolveCache(
                chosen.model, request.limits, store=request.store, jobs=hands.jobs, executor=hands.executor, **options
            )
            if cache.not_reused:
                warnings.warn(cache.not_reused, ParasolWarning, stacklevel=3)
            with _gathered() as more:
                outcome = _from_solves(chosen, request, cache, recipe, proof)
                request.stage("estimating the discretisation error")
                outcome = replace(outcome, surrogate=with_discretisation(outcome.surrogate, cache))
            notes += more
            if not cache.shared:
                warnings.warn(
                    "the executor had nothing to do: this problem's full solves are chosen one after the other.",
                    ParasolWarning,
                    stacklevel=3,
                )
    return with_report(outcome, request, chosen, cache, notes)


def plan(
    problem: Problem | Solvable | None,
    tolerance: float = 1e-3,
    *,
    total: bool = False,
    model: Model | None = None,
    n_nodes: int | None = None,
    parameters: ParameterSpace | Ranges | None = None,
    rng: int = 0,
    store: str | os.PathLike[str] | None = None,
    progress: Stage | None = None,
) -> Plan:
    """What `learn` would do: it chooses the nodes and times some solves; linear problems are tried with few nodes.

    How many solves a tolerance takes hardly depends on the number of nodes.
    """
    request = Request(problem, tolerance, total, model, n_nodes, rng, store, progress=progress, parameters=parameters)
    with request.held(), _gathered():
        chosen = discretised(request)
    before = request.limits.spent  # what `learn` does too; trying with few nodes it does not
    # what the problems of the catalogue took (benchmarks/learn.py): solves per parameter and per digit
    work = max(len(chosen.model.parameters.scalars), 1) * max(1.0, -np.log10(tolerance))
    if chosen.model.parameters.functions:
        work *= 8
    n = None
    if _linear(chosen.model):
        request.stage("trying with few nodes")
        with _gathered(), suppress(NoCertificate):  # `learn` goes on with samples then
            n = n_solves(_coarse(chosen.model), request.share(chosen), rng)
    if n is None:
        return _planned(chosen, request, "batches of full solves, a conformal bound", work)
    guess = int(0.8 * n), int(np.ceil(1.25 * n))
    # measured: duals, reduced models and the estimate of each solve's own error take about four times a solve; a map a second
    whole = before + 0.7 * (5 * guess[0] * chosen.seconds), before + 1.5 * (5 * guess[1] * chosen.seconds + 2.0)
    size = chosen.model.n_unknowns  # type: ignore[union-attr]
    method = "full solves where the estimated error is largest"
    return Plan(chosen, tolerance, method, guess, whole, True, size, _memory(guess[1], size))


def _planned(chosen: Discretised, request: Request, method: str, work: float) -> Plan:
    """A plan for problems that are learned from samples: 39 fresh solves and, with a reduced model, few besides."""
    request.stage("timing some solves")
    cache = SolveCache(chosen.model, Limits(), expected=chosen.seconds)
    space = chosen.model if isinstance(chosen.model, Model) else chosen.model.parameters
    times, size = [], 0
    for mu in sample(space, _N_TIMED, design="random", rng=request.rng):
        before = cache.new_seconds
        with suppress(NothingSolved):  # the box will be cut where there are no solutions
            size = cache.solve(mu[None]).n_values
            times.append(cache.new_seconds - before)
    cost = float(np.mean(times)) if times else chosen.seconds
    reduced = isinstance(chosen.model, Model) and not chosen.model.parameters.functions
    n = (int(39 + 2 * work), int(1.3 * (39 + 5 * work))) if reduced else (45, int(45 + 20 * work))
    # measured (decision 044): reduced models and maps take a third of the solves' time and a few seconds
    before = request.limits.spent
    whole = before + 0.9 * n[0] * cost, before + 1.5 * n[1] * cost + 5.0
    memory = _memory(n[1], size)
    if reduced and _linear_in_time(chosen.model):  # decision 048: duals take ten times as long as the trajectories
        n, method = (6, int(6 + work)), "full trajectories where the estimated error of reduced steps is largest"
        whole = before + 5 * n[0] * cost, before + 15 * n[1] * cost + 5.0
        with suppress(NoCertificate):  # `learn` goes on with samples then
            duals, memory = memory_in_time(chosen.model, n), _memory(n[1], size)
            memory = memory and (memory[0] + duals[0], memory[1] + duals[1])
    chosen = replace(chosen, seconds=cost)
    return Plan(chosen, request.tolerance, method, n, whole, n_values=size, memory=memory)


def _coarse(model: Model) -> Model:
    """The same problem with few nodes; the model itself where it has few, or nodes of its own kind."""
    if isinstance(model, AffineModel):
        return model
    few = _FEW_NODES[model.nodes.domain.dimension - 1]
    if model.n_nodes <= 2 * few or model.elements is not None or model.nodes.touches is not None:
        return model
    try:
        return discretize(model.problem, scatter(model.problem.domain, n_nodes=few))
    except ParasolError:  # a thin part of the domain needs more
        return model


@contextmanager
def _in_a_notebook(progress: Stage | None) -> Iterator[Stage | None]:
    """What was given, or where this runs in a notebook, progress on a line of its own."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if progress is not None or type(shell).__name__ != "ZMQInteractiveShell":
        yield progress
        return
    with borrowed("notebook_progress")() as stage:
        yield stage


def _usable(recipe: str | Recipe) -> Recipe:
    """The recipe, if it is one: known before the first solve, not after the last."""
    recipe = recipe_named(recipe)
    if isinstance(recipe, NetworkRecipe):
        require_jax()
    elif not type(recipe).__module__.startswith("parasol."):  # somebody's regressor: two outputs for three inputs
        x = np.random.default_rng(0).uniform(-1, 1, (24, 3))
        fit_map(recipe, x, np.stack([x.sum(axis=1), x[:, 0] ** 2], axis=1))
    return recipe


def _linear(model: Solver) -> bool:
    return isinstance(model, Model) and model.problem.time is None and model.problem.linear


def _linear_in_time(model: Solver) -> bool:
    return isinstance(model, Model) and model.problem.time is not None and model.problem.linear


def _from_solves(
    chosen: Discretised, request: Request, cache: SolveCache, recipe: Recipe | None, proof: bool
) -> Outcome:
    """Linear steady problems by their reduced model; others, and those without a solution somewhere, from samples."""
    model, tolerance, rng = chosen.model, request.share(chosen), request.rng
    reason = ""
    if _linear_in_time(model):
        try:
            return learn_in_time(model, tolerance, cache, recipe=recipe, rng=rng)
        except (NoCertificate, SolveFailed) as error:
            log.info("%s", error)  # samples serve as well
    if _linear(model):
        check_box(model, rng)
        try:
            return learn_linear(model, tolerance, cache, recipe=recipe, proof=proof, rng=rng)
        except (NoCertificate, SolveFailed) as error:
            reason = str(error)
    outcome = learn_sampled(model, tolerance, cache, recipe=recipe, rng=rng)
    if not reason:
        return outcome
    return replace(outcome, notes=(f"from samples instead of a reduced model: {reason}", *outcome.notes))


def _from_data(data: Data, request: Request, recipe: Recipe | None) -> Outcome:
    space, ranges = request.parameters, None
    if space is None:
        space = getattr(request.problem, "parameters", None)
    if space is not None:
        space = parameter_space(space)
    results = read_data(data, None if space is None else space.names)
    if isinstance(space, ParameterSpace) and not space.functions:
        results = results.of_parameters(space)
        ranges = {p.name: p for p in space.scalars}
    progress = request.stage("choosing a map for the data")
    options = {"tolerance": request.tolerance / 10, "ranges": ranges, "rng": request.rng, "progress": progress}
    surrogate = fit_results(results, recipe or "best", **options)
    surrogate = replace(surrogate, origin=Origin(results, request.tolerance, recipe, request.rng, space))
    conformal = surrogate.conformal
    bound = max(_largest(part, request.rng) for part in (surrogate, surrogate.scalars) if part is not None)
    level = None if conformal is None or not conformal.drawn else conformal.level
    met = bound <= request.tolerance and (level is None or level >= LEVEL)
    limit = "" if met else "level" if bound <= request.tolerance or conformal is None else "map"
    evidence = Evidence(level=level)
    choice = surrogate.facts.get("choice")
    notes = () if choice is None else (choice_words(choice, surrogate.layout.fields),)
    return Outcome(surrogate, met, bound, limit, (Step(len(results), error=bound),), evidence, notes=notes)


def _largest(surrogate: Surrogate, rng: int) -> float:
    """The bound of relative errors that a calibration gave for all parameters alike; infinite without one."""
    if surrogate.jackknife is not None:  # it differs from parameter to parameter
        return float(np.max(surrogate.certify(sample(surrogate.parameters.answered, _N_LOOKED, rng=rng)).relative))
    return surrogate.facts.get("calibrated_bound", float("inf"))


# ---- the report -----------------------------------------------------------------------------------------------------
@contextmanager
def _gathered(*, shown: bool = False) -> Iterator[list[str]]:
    """Warnings on the way are kept for the report, once each, not shown: they are about attempts.

    What is not installed concerns every attempt and is shown, and so is what is said of data, if they are `shown`.
    """
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ParasolWarning)
        yield notes
    loud = ParasolWarning if shown else MissingPackage
    said = {" ".join(str(w.message).split()): w.category for w in caught if issubclass(w.category, ParasolWarning)}
    for text, category in said.items():
        if issubclass(category, loud):
            warnings.warn(text, category, stacklevel=5)
    notes += [text for text, category in said.items() if not issubclass(category, MissingPackage)]
    for other in caught:
        if not issubclass(other.category, ParasolWarning):
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
