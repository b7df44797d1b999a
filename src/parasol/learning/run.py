"""One call from an equation to a surrogate that meets a tolerance, with a report of what it took."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from parasol.cache.disk import claim
from parasol.checks import ParasolError, ParasolWarning, check_count, check_positive, check_progress
from parasol.fitting.data import fit_snapshots
from parasol.fitting.descent import require_jax
from parasol.fitting.maps import fit_map
from parasol.fitting.recipes import recipe_named
from parasol.fitting.training import NetworkRecipe
from parasol.learning.nodes import Discretised, choose_nodes, estimated, rebuilding
from parasol.learning.proven import check_box, learn_proven
from parasol.learning.report import LEVEL, PROVEN, Evidence, LearnReport, Outcome, Step
from parasol.learning.sampled import learn_sampled
from parasol.learning.solves import Exhausted, Limits, SolveCache, Stage
from parasol.learning.store import NodesKey, read_data, stored_nodes, write_nodes
from parasol.pde.model import Model
from parasol.pde.parameters import ParameterSpace
from parasol.pde.problem import Problem
from parasol.pde.text import problem_words
from parasol.reduction.fingerprints import problem_fingerprint
from parasol.runtime.surrogate import Surrogate

_RESONANCE = 10.0  # times the size that the others would suggest: so large are solutions near a singular problem
_QUOTED, _LONGEST = 3, 120  # failures named in a warning, characters of a reason
_ADVICE = {
    "solves": "Allow more full solves.",
    "seconds": "Allow more time; with a store the solves made so far are kept.",
    "discretisation": "Give more nodes with n_nodes, or accept a larger error.",
    "projection": "The solutions need more modes than the solves made so far have: narrow the ranges of the parameters.",
    "confirmation": "The bound rests on guessed constants that full solves did not confirm.",
    "level": f"A bound at the level {LEVEL:g} takes more fresh solves at parameters drawn at random: allow more.",
    "failed solves": "Too many of the fresh solves for the bound failed: narrow the ranges to where there are solutions.",
    "resonance": "Narrow the ranges to one side of it.",
    "map": "The coefficients are hard to learn: narrow the ranges of the parameters, or allow more solves.",
}


@dataclass(frozen=True, eq=False)
class Plan:
    """What learning would do, before it does: the discretisation, the cost of a solve, the method, and a rough total."""

    discretised: Discretised
    tolerance: float
    method: str
    n_solves: tuple[int, int]  # from, to

    @property
    def found(self) -> Discretised:
        """The name of `discretised` until version 0.2."""
        warnings.warn("plan.found is now plan.discretised.", DeprecationWarning, stacklevel=2)
        return self.discretised

    @property
    def seconds(self) -> tuple[float, float]:
        """Seconds of the full solves, from, to."""
        return tuple(n * self.discretised.seconds for n in self.n_solves)  # type: ignore[return-value]

    def facts(self) -> dict[str, Any]:
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
            "comparisons": [asdict(row) for row in chosen.history],
        }

    def rows(self) -> dict[str, str]:
        """The plan as a table of two columns."""
        chosen, (low, high), (least, most) = self.discretised, self.n_solves, self.seconds
        rows = {"tolerance": f"{self.tolerance:g}", "method": self.method}
        if chosen.error is not None:
            rows["nodes"] = f"{chosen.n_nodes}, with a discretisation error of about {chosen.error:.1e}"
        rows["one full solve"] = f"{chosen.seconds:.2g} s"
        rows["full solves"] = f"{low} to {high} by a rough guess, {least:.2g} to {most:.2g} s on one core"
        return rows


@dataclass(frozen=True, eq=False)
class _Request:
    """What was asked for, checked before any work."""

    problem: Any
    tolerance: float
    total: bool = False
    model: Model | None = None
    n_nodes: int | None = None
    rng: int = 0
    store: Any = None
    fingerprint: object = None
    limits: Limits = field(default_factory=Limits)
    progress: Stage | None = None

    def __post_init__(self):
        if not check_positive(self.tolerance, "tolerance") < 1:
            raise ParasolError(
                f"tolerance={self.tolerance!r} is a relative error: give a number below 1, such as 1e-3."
            )
        check_progress(self.progress)
        if not isinstance(self.rng, int | np.integer) or isinstance(self.rng, bool) or self.rng < 0:
            raise ParasolError(f"rng={self.rng!r} must be a whole number from 0 on, such as rng=0.")

    @property
    def stage(self) -> Stage:
        return self.progress or (lambda text: None)

    def share(self, chosen: Discretised) -> float:
        """What the surrogate may err by: all of the tolerance, or with `total` what the discretisation leaves of it."""
        return self.tolerance - (min(chosen.error or 0.0, self.tolerance / 2) if self.total else 0.0)

    def held(self) -> AbstractContextManager[None]:
        """The store for one run at a time, from the beginning; nothing where there is none."""
        return nullcontext() if self.store is None else claim(Path(self.store).expanduser().absolute(), "store")


def learn(
    problem=None,
    tolerance: float = 1e-3,
    *,
    total: bool = False,
    solves: int | None = None,
    seconds: float | None = None,
    model: Model | None = None,
    n_nodes: int | None = None,
    recipe=None,
    data=None,
    store=None,
    fingerprint: object = None,
    rng: int = 0,
    jobs: int | None = None,
    progress: Stage | None = None,
) -> Surrogate:
    """From a problem to a surrogate whose relative error is below `tolerance` on parameters it has not seen.

    Nodes are chosen so that the estimated discretisation error is below the tolerance too; the tolerance itself is
    against the discrete solution, and `total=True` asks that both errors together stay below it. Linear steady problems
    get a bound from the residual, proven where its constants are, at every one of 2000 fresh parameters; others a
    conformal bound that holds 95 times in 100. The report is `surrogate.facts["learn"]`. If the tolerance is not met
    within `solves` full solves or `seconds`, the best surrogate is returned with a warning that says how far it got and
    what limits it.

    `model` or `n_nodes` is the user's discretisation, `recipe` the map of the user's choice (as in `fit`). `problem` may also
    be a solver of one's own: an object with `solve(mu)` and `parameters`. `data` is (mus, solutions), an .npz file with
    these names, or a store of snapshots: then nothing is solved. With a `store` (a folder) every full solve is kept: a
    call that was stopped goes on, and one with a smaller tolerance uses what there is. Solves are reused where everything
    that can change an answer is the same; a solver of one's own whose attributes change while it works says by
    `fingerprint`, a text, which solves are its own. One run at a time uses a store. `progress` is called with each stage.

    >>> import parasol as ps
    >>> x, y = ps.coordinates("x y")
    >>> u, (a,) = ps.unknown("u", x, y), ps.parameters(a=(1.0, 2.0))
    >>> plate = ps.Problem(ps.Disc(), ps.Eq(-a * ps.laplacian(u), 4), ps.Dirichlet(0))  # u = (1 − r²) / a
    >>> surrogate = learn(plate, 1e-3, n_nodes=200, recipe="polynomial")
    >>> surrogate.facts["learn"]["met"], surrogate.basis.n_modes
    (True, 1)
    """
    request = _Request(
        problem, tolerance, total, model, n_nodes, rng, store, fingerprint, Limits(solves, seconds), progress
    )
    if jobs is not None:
        check_count(jobs, "jobs")
    recipe = None if recipe is None else _usable(recipe)
    chosen, cache = None, None
    with request.held():
        with _gathered() as notes:
            if data is None:
                chosen = _discretised(request)
            else:
                outcome = _from_data(data, request, recipe)
        if chosen is not None:
            options = {"expected": chosen.seconds, "stage": request.stage, "fingerprint": fingerprint}
            cache = SolveCache(chosen.model, request.limits, store=store, jobs=jobs, **options)
            if cache.not_reused:
                warnings.warn(cache.not_reused, ParasolWarning, stacklevel=2)
            with _gathered() as more:
                outcome = _from_solves(chosen, request, cache, recipe)
            notes += more
    return _reported(outcome, request, chosen, cache, notes)


def plan(
    problem,
    tolerance: float = 1e-3,
    *,
    total: bool = False,
    model=None,
    n_nodes=None,
    rng: int = 0,
    store=None,
    progress=None,
) -> Plan:
    """What `learn` would do: it chooses the nodes and times a solve, nothing more."""
    request = _Request(problem, tolerance, total, model, n_nodes, rng, store, progress=progress)
    with request.held(), _gathered():
        chosen = _discretised(request)
    # what the problems of the catalogue took (benchmarks/learn.py): solves per parameter and per digit
    work = max(len(chosen.model.parameters.scalars), 1) * max(1.0, -np.log10(tolerance))
    if chosen.model.parameters.functions:
        work *= 8
    proven = _provable(chosen.model)
    method = "greedy full solves, bounds from the residual" if proven else "batches of full solves, a conformal bound"
    guess = (14, int(14 + 5 * work)) if proven else (45, int(45 + 20 * work))
    return Plan(chosen, tolerance, method, guess)


def failures_text(space: ParameterSpace, cache: SolveCache) -> str:
    """Which full solves failed and why, and what that means for the surrogate; empty where none did."""
    failed = cache.failures()
    if not len(failed):
        return ""
    values = [", ".join(f"{n}={v:.6g}" for n, v in zip(space.names, mu, strict=False)) for mu in failed]
    named = [f"{at or 'a function'} ({cache.reason(mu)[:_LONGEST]})" for at, mu in zip(values, failed, strict=True)]
    more = f" and {len(named) - _QUOTED} more" if len(named) > _QUOTED else ""
    text = f"{len(failed)} full solves failed, at {'; '.join(named[:_QUOTED])}{more}."
    if space.solved:
        pairs = zip(space.scalars, space.solved, strict=True)
        ranges = [f"{p.name} in [{a:.4g}, {b:.4g}]" for p, (a, b) in pairs if (a, b) != (p.low, p.high)]
        text += f" The surrogate answers for {', '.join(ranges)}; elsewhere it refuses unless extrapolate=True."
    inside = int(np.count_nonzero(space.inside(failed)))
    return text + (f" Around {inside} of them it answers all the same, without a solve to rely on." if inside else "")


def _usable(recipe):
    """The recipe, if it is one: known before the first solve, not after the last."""
    recipe = recipe_named(recipe)
    if isinstance(recipe, NetworkRecipe):
        require_jax()
    elif not type(recipe).__module__.startswith("parasol."):  # somebody's regressor: two outputs for three inputs
        x = np.random.default_rng(0).uniform(-1, 1, (24, 3))
        fit_map(recipe, x, np.stack([x.sum(axis=1), x[:, 0] ** 2], axis=1))
    return recipe


def _provable(model) -> bool:
    return isinstance(model, Model) and model.problem.time is None and model.problem.linear


def _discretised(request: _Request) -> Discretised:
    problem, model = request.problem, request.model
    if isinstance(problem, Model) and model is None:
        model = problem
    if model is not None:
        if not isinstance(model, Model):
            raise ParasolError(f"model is a {type(model).__name__}. Pass what ps.discretize returns.")
        if request.n_nodes is not None:
            raise ParasolError("both model and n_nodes are given. Give one: a model has its nodes.")
        _check_times(model.problem)
        request.stage(f"comparing {model.n_nodes} nodes with {2 * model.n_nodes}")
        return _in_time(estimated(model, limits=request.limits, rng=request.rng))
    if isinstance(problem, Problem):
        _check_times(problem)
        if not (problem.parameters.scalars or problem.parameters.functions):
            raise ParasolError(
                "the problem has no parameters, so there is nothing to learn. Solve it once: parasol solve."
            )
        return _chosen_nodes(problem, request)
    if callable(getattr(problem, "solve", None)) and isinstance(getattr(problem, "parameters", None), ParameterSpace):
        return Discretised(problem, None)
    raise ParasolError(
        f"problem is {problem!r}. Pass a ps.Problem, a model, or an object with solve(mu) and parameters (a ParameterSpace)."
    )


def _chosen_nodes(problem: Problem, request: _Request) -> Discretised:
    """The nodes of an earlier run with the same wish, or new ones, which are then kept."""
    aim = request.tolerance / 2 if request.total else request.tolerance
    key = NodesKey(aim, request.n_nodes, request.rng, request.fingerprint)
    known = None if request.store is None else stored_nodes(request.store, problem, key)
    if known is not None:
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
        raise ParasolError(
            "the problem does not say which times to store. Declare it with times=np.linspace(0, 1, 11)."
        )


def _from_solves(chosen: Discretised, request: _Request, cache: SolveCache, recipe) -> Outcome:
    tolerance, rng = request.share(chosen), request.rng
    try:
        if _provable(chosen.model):
            return _with_bound_from_residual(chosen.model, tolerance, cache, recipe, rng)
        return learn_sampled(chosen.model, tolerance, cache, recipe=recipe, rng=rng)
    except Exhausted as end:
        raise ParasolError(f"the {end.what} allowed are used up before anything was learned. Allow more.") from None


def _with_bound_from_residual(model: Model, tolerance: float, cache: SolveCache, recipe, rng: int) -> Outcome:
    """A bound from the residual where that meets the tolerance, else the better of it and a conformal one."""
    check_box(model, rng)
    proven = None
    try:
        proven = learn_proven(model, tolerance, cache, recipe=recipe, rng=rng)
        if proven.met or cache.affordable(20) < 20:
            return proven
        reason = f"the bound from the residual is {proven.bound:.1e}"
    except ParasolError as error:  # no certificate for this operator
        reason = str(error)
    try:
        other = learn_sampled(model, tolerance, cache, recipe=recipe, rng=rng)
    except (ParasolError, Exhausted):
        if proven is None:
            raise
        return proven  # what there is comes back, whatever ends the search for better
    if proven is not None and not other.met and other.bound >= proven.bound:
        return proven
    return replace(other, notes=(f"instead of a bound from the residual a conformal one: {reason}", *other.notes))


def _from_data(data, request: _Request, recipe) -> Outcome:
    mus, solutions = read_data(data)
    space = getattr(request.problem, "parameters", None)
    ranges = None
    if isinstance(space, ParameterSpace) and not space.functions:
        mus = np.asarray(space.ordered(mus), dtype=float)
        if mus.ndim != 2 or mus.shape[1] != len(space.scalars):
            raise ParasolError(
                f"the parameters of the data have the shape {mus.shape}, expected (n_samples, {len(space.scalars)}): "
                f"{', '.join(space.names)}."
            )
        ranges = {p.name: (p.low, p.high, p.scale) for p in space.scalars}
    progress = request.stage("fitting a network to the data")
    options = {"tolerance": request.tolerance / 10, "ranges": ranges, "rng": request.rng, "progress": progress}
    surrogate = fit_snapshots(mus, solutions, recipe or "best", **options)
    conformal = surrogate.conformal
    bound = float("inf") if conformal is None else conformal.quantile
    evidence = Evidence(level=None if conformal is None or not conformal.drawn else LEVEL)
    met = bound <= request.tolerance
    limit = "" if met else "level" if conformal is None else "map"
    return Outcome(surrogate, met, bound, limit, (Step(len(mus), error=bound),), evidence)


# ---- the report -----------------------------------------------------------------------------------------------------
@contextmanager
def _gathered() -> Iterator[list[str]]:
    """Warnings on the way are kept for the report, once each, not shown: they are about attempts."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ParasolWarning)
        yield notes
    notes += dict.fromkeys(" ".join(str(w.message).split()) for w in caught if issubclass(w.category, ParasolWarning))
    for other in caught:
        if not issubclass(other.category, ParasolWarning):
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)


def _reported(
    outcome: Outcome, request: _Request, chosen: Discretised | None, cache: SolveCache | None, notes: list[str]
) -> Surrogate:
    """The surrogate with its report; a warning where the tolerance is not met."""
    surrogate, tolerance = outcome.surrogate, request.tolerance
    error = None if chosen is None else chosen.error
    met = outcome.met and (not request.total or (error is not None and outcome.bound + error <= tolerance))
    resonance = "" if met else _resonance(cache, surrogate.parameters)
    limit = "" if met else _limit(outcome, request, error, cache, resonance)
    failures = "" if cache is None else failures_text(surrogate.parameters, cache)
    report = LearnReport(
        met=met,
        tolerance=tolerance,
        total=request.total,
        bound=outcome.bound,
        certificate=_certificate(surrogate, outcome.evidence),
        limit=limit,
        discretisation_error=error,
        n_nodes=None if chosen is None else chosen.n_nodes,
        refined_nodes=chosen is not None and chosen.refined,
        comparisons=() if chosen is None else chosen.history,
        solves=None if cache is None else cache.n_solves,
        new_solves=None if cache is None else cache.n_new,
        seconds_per_solve=None if cache is None else cache.cost,
        n_modes=surrogate.basis.n_modes,
        labels=surrogate.facts["labels"],
        map=surrogate.facts["recipe"],
        seconds=request.limits.spent,
        history=outcome.history,
        notes=(*([failures] if failures else []), *[*outcome.notes, *notes][:8]),
        evidence=outcome.evidence,
        resonance=resonance if "resonance" in limit else None,
        measured=outcome.measured,
    )
    if failures:
        warnings.warn(failures, ParasolWarning, stacklevel=3)
    if not met:
        warnings.warn(_unmet(report), ParasolWarning, stacklevel=3)
    if error is not None and error > tolerance and not (request.total and not met):
        warnings.warn(
            f"the discretisation error is about {error:.1e}: so far is the full solver itself from the solution of the "
            f"equation, and the tolerance {tolerance:g} is against the full solver. {_ADVICE['discretisation']}",
            ParasolWarning,
            stacklevel=3,
        )
    facts = {**surrogate.facts, "tolerance": tolerance, "learn": report.to_dict()}
    if report.measured is not None:
        facts["measured"] = asdict(report.measured)
    if chosen is not None and isinstance(chosen.model, Model):
        problem = chosen.model.problem
        facts |= problem_words(problem)
        facts |= {"fingerprint": problem_fingerprint(problem), "rebuild": rebuilding(chosen.model)}
    return replace(surrogate, facts=facts)


def _certificate(surrogate: Surrogate, evidence: Evidence) -> str:
    """What kind of bound it is, as in `LearnReport`."""
    if surrogate.reduced is None:
        return "conformal" if surrogate.conformal is None or surrogate.conformal.drawn else "estimated"
    return "proven" if (evidence.proven or 0.0) >= PROVEN else "residual"


def _unmet(report: LearnReport) -> str:
    """Why the tolerance is not met, how far from it the bound is, and what to do."""
    bound, error, level = report.bound, report.discretisation_error, report.evidence.level
    parts = report.limit.split(", then ")
    text = f"the bound is {bound:.1e}" if np.isfinite(bound) else "there is no bound"
    if "confirmation" in parts:
        text += " but not confirmed"
    elif bound <= report.tolerance and ("level" in parts or "failed solves" in parts):
        text = f"the bound {bound:.1e} is below it, but at the level {level:.2g} instead of {LEVEL:g}"
    if report.total:
        text += " and the discretisation error " + ("not known" if error is None else f"about {error:.1e}")
    near = f" The solutions grow near {report.resonance}." if "resonance" in parts else ""
    return (
        f"the tolerance {report.tolerance:g} is not met: {text}, limited by {report.limit}.{near} {_ADVICE[parts[0]]}"
    )


def _resonance(cache: SolveCache | None, space: ParameterSpace) -> str:
    """Where a solution is out of all proportion to the others, not just larger at one end of a range; else empty."""
    if cache is None or not space.scalars:
        return ""
    mus, sizes = cache.sizes()
    if len(sizes) < 2 * len(space.scalars) + 6 or np.min(sizes) <= 0:
        return ""
    trend = np.column_stack([np.ones(len(mus)), space.to_unit(mus[:, : len(space.scalars)])])
    logs = np.log(sizes)
    excess = logs - trend @ np.linalg.lstsq(trend, logs)[0]
    if np.max(excess) <= np.log(_RESONANCE):
        return ""
    return ", ".join(f"{p.name}={v:.6g}" for p, v in zip(space.scalars, mus[np.argmax(excess)], strict=False))


def _limit(outcome: Outcome, request: _Request, error: float | None, cache: SolveCache | None, resonance: str) -> str:
    """What keeps the error above the tolerance: a budget first, then the part of the error that is too large."""
    inner, limits = outcome.limit or "map", request.limits
    if resonance and inner in ("map", "projection"):  # more time or solves would not help
        return "resonance"
    if request.total and (error is None or error > request.tolerance / 2):
        return "discretisation"
    if limits.left <= (0.0 if cache is None else 2 * cache.cost):
        return f"seconds, then {inner}"
    if cache is not None and limits.solves is not None and cache.affordable(4) < 4:
        return f"solves, then {inner}"
    return inner


def account_rows(surrogate: Surrogate) -> dict[str, str]:
    """The report of a learned surrogate as a table of two columns."""
    return LearnReport.of(surrogate).rows()
