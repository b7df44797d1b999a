"""One call from an equation to a surrogate that meets a tolerance, with an account of what it took."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from parasol.cache.disk import claim
from parasol.checks import ParasolError, ParasolWarning, check_count, check_positive, check_progress
from parasol.errors import Exhausted, NoCertificate, SolveFailed
from parasol.fitting.descent import require_jax
from parasol.fitting.fit import fit_snapshots
from parasol.fitting.maps import fit_map
from parasol.fitting.recipes import recipe_named
from parasol.fitting.training import NetworkRecipe
from parasol.learning.nodes import Discretised, choose_nodes, estimated, rebuilding
from parasol.learning.proven import PROVEN, Outcome, check_box, learn_proven
from parasol.learning.sampled import LEVEL, learn_sampled
from parasol.learning.solves import Book, Limits, Stage
from parasol.learning.store import read_data, stored_nodes, write_nodes
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

    found: Discretised
    tolerance: float
    method: str
    n_solves: tuple[int, int]  # from, to

    @property
    def seconds(self) -> tuple[float, float]:
        """Seconds of the full solves, from, to."""
        return tuple(n * self.found.seconds for n in self.n_solves)  # type: ignore[return-value]

    def facts(self) -> dict[str, Any]:
        """The plan as plain data."""
        model, error = self.found.model, self.found.error
        nodes = getattr(model, "n_nodes", None)
        about = {"n_nodes": nodes, "discretisation_error": error, "refined": self.found.refined, "method": self.method}
        spent = {"seconds_per_solve": self.found.seconds, "solves": list(self.n_solves), "seconds": list(self.seconds)}
        return {"tolerance": self.tolerance, **about, **spent, "comparisons": list(self.found.history)}

    def rows(self) -> dict[str, str]:
        """The plan as a table of two columns."""
        error, each = self.found.error, self.found.seconds
        nodes = getattr(self.found.model, "n_nodes", None)
        rows = {"tolerance": f"{self.tolerance:g}", "method": self.method}
        if error is not None:
            rows["nodes"] = f"{nodes}, with a discretisation error of about {error:.1e}"
        rows["one full solve"] = f"{each:.2g} s"
        low, high = self.n_solves
        rows["full solves"] = f"{low} to {high} by a rough guess, {low * each:.2g} to {high * each:.2g} s on one core"
        return rows


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
    conformal bound that holds 95 times in 100. The account is `surrogate.facts["learn"]`. If the tolerance is not met
    within `solves` full solves or `seconds`, the best surrogate is returned with a warning that says how far it got and
    what limits it.

    `model` or `n_nodes` is the user's discretisation, `recipe` the map of his choice (as in `fit`). `problem` may also
    be a solver of one's own: an object with `solve(mu)` and `parameters`. `data` is (mus, solutions), an .npz file with
    these names, or a store of snapshots: then nothing is solved. With a `store` (a folder) every full solve is kept: a
    call that was stopped goes on, and one with a smaller tolerance uses what there is. Solves are reused where everything
    that can change an answer is the same; a solver of one's own whose attributes change while it works says by
    `fingerprint`, a text, which solves are its own. One run at a time uses a store. `progress` is told the stages.

    >>> import parasol as ps
    >>> x, y = ps.coordinates("x y")
    >>> u, (a,) = ps.unknown("u", x, y), ps.parameters(a=(1.0, 2.0))
    >>> plate = ps.Problem(ps.Disc(), ps.Eq(-a * ps.laplacian(u), 4), ps.Dirichlet(0))  # u = (1 − r²) / a
    >>> surrogate = learn(plate, 1e-3, n_nodes=200, recipe="polynomial")
    >>> surrogate.facts["learn"]["met"], surrogate.basis.n_modes
    (True, 1)
    """
    tolerance = _check_tolerance(tolerance)
    limits = Limits(solves, seconds)
    stage = check_progress(progress) or (lambda text: None)
    if jobs is not None:
        check_count(jobs, "jobs")
    if not isinstance(rng, int | np.integer) or isinstance(rng, bool) or rng < 0:
        raise ParasolError(f"rng={rng!r} must be a whole number from 0 on, such as rng=0.")
    recipe = None if recipe is None else _usable(recipe)
    found, book = None, None
    with _held(store):
        with _gathered() as notes:
            if data is None:
                found = _discretised(problem, model, n_nodes, tolerance, total, limits, rng, store, fingerprint, stage)
        if found is not None:
            expected = {"expected": found.seconds, "stage": stage, "fingerprint": fingerprint}
            book = Book(found.model, limits, store=store, jobs=jobs, **expected)
            if book.not_reused:
                warnings.warn(book.not_reused, ParasolWarning, stacklevel=2)
        with _gathered() as more:
            if found is None or book is None:
                outcome = _from_data(data, problem, tolerance, recipe, rng, stage)
            else:
                outcome = _outcome(found, _share(tolerance, found, total), book, recipe, rng)
    return _told(outcome, found, book, tolerance, total, limits, [*notes, *more])


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
    tolerance = _check_tolerance(tolerance)
    with _held(store), _gathered():
        limits, stage = Limits(), check_progress(progress) or (lambda text: None)
        found = _discretised(problem, model, n_nodes, tolerance, total, limits, rng, store, None, stage)
    # what the problems of the catalogue took (benchmarks/learn.py): solves per parameter and per digit
    work = max(len(found.model.parameters.scalars), 1) * max(1.0, -np.log10(tolerance))
    if found.model.parameters.functions:
        work *= 8
    proven = _provable(found.model)
    method = "greedy full solves, bounds from the residual" if proven else "batches of full solves, a conformal bound"
    guess = (14, int(14 + 5 * work)) if proven else (45, int(45 + 20 * work))
    return Plan(found, tolerance, method, guess)


def failures_text(space: ParameterSpace, book: Book) -> str:
    """Which full solves failed and why, and what that means for the surrogate; empty where none did."""
    failed = book.failures()
    if not len(failed):
        return ""
    values = [", ".join(f"{n}={v:.6g}" for n, v in zip(space.names, mu, strict=False)) for mu in failed]
    named = [f"{at or 'a function'} ({book.reason(mu)[:_LONGEST]})" for at, mu in zip(values, failed, strict=True)]
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


def _check_tolerance(tolerance) -> float:
    if not check_positive(tolerance, "tolerance") < 1:
        raise ParasolError(f"tolerance={tolerance!r} is a relative error: give a number below 1, such as 1e-3.")
    return float(tolerance)


def _provable(model) -> bool:
    return isinstance(model, Model) and model.problem.time is None and model.problem.linear


def _share(tolerance: float, found: Discretised, total: bool) -> float:
    """What the surrogate may err by: all of the tolerance, or with `total` what the discretisation leaves of it."""
    if not total:
        return tolerance
    return tolerance - min(found.error or 0.0, tolerance / 2)


def _held(store) -> AbstractContextManager[None]:
    """The store for one run at a time, from the beginning; nothing where there is none."""
    return nullcontext() if store is None else claim(Path(store).expanduser().absolute(), "store")


def _discretised(problem, model, n_nodes, tolerance, total, limits, rng, store, fingerprint, stage) -> Discretised:
    if isinstance(problem, Model) and model is None:
        model = problem
    if model is not None:
        if not isinstance(model, Model):
            raise ParasolError(f"model is a {type(model).__name__}. Pass what ps.discretize returns.")
        if n_nodes is not None:
            raise ParasolError("both model and n_nodes are given. Give one: a model has its nodes.")
        _check_times(model.problem)
        stage(f"comparing {model.n_nodes} nodes with {2 * model.n_nodes}")
        return _in_time(estimated(model, limits=limits, rng=rng))
    if isinstance(problem, Problem):
        _check_times(problem)
        if not (problem.parameters.scalars or problem.parameters.functions):
            raise ParasolError(
                "the problem has no parameters, so there is nothing to learn. Solve it once: parasol solve."
            )
        aim = tolerance / 2 if total else tolerance
        key = {"aim": aim, "n_nodes": n_nodes, "rng": rng, "fingerprint": fingerprint}
        known = None if store is None else stored_nodes(store, problem, key)
        if known is not None:
            return known
        found = choose_nodes(problem, aim, limits=limits, n_nodes=n_nodes, rng=rng, stage=stage)
        if store is not None and not found.short:
            write_nodes(store, problem, key, found)
        return _in_time(found)
    if callable(getattr(problem, "solve", None)) and isinstance(getattr(problem, "parameters", None), ParameterSpace):
        return Discretised(problem, None)
    raise ParasolError(
        f"problem is {problem!r}. Pass a ps.Problem, a model, or an object with solve(mu) and parameters (a ParameterSpace)."
    )


def _in_time(found: Discretised) -> Discretised:
    """The discretisation, with a warning where the seconds allowed ended the search for it, and its quantities computed."""
    if found.short:
        error = "is not known" if found.error is None else "is estimated at fewer parameters, or with fewer nodes"
        warnings.warn(
            f"half of the seconds allowed did not suffice to compare discretisations: the discretisation error {error}.",
            ParasolWarning,
            stacklevel=2,
        )
    if found.model.problem.quantities:
        _ = found.model.quantities  # what they cost belongs before the solves, which take what is left of the time
    return found


def _check_times(problem: Problem) -> None:
    if problem.time is not None and problem.times is None:
        raise ParasolError(
            "the problem does not say which times to store. Declare it with times=np.linspace(0, 1, 11)."
        )


def _outcome(found: Discretised, tolerance: float, book: Book, recipe, rng: int) -> Outcome:
    if not _provable(found.model):
        return learn_sampled(found.model, tolerance, book, recipe=recipe, rng=rng)
    check_box(found.model, rng)
    reason, proven = "", None
    try:
        proven = learn_proven(found.model, tolerance, book, recipe=recipe, rng=rng)
        if proven.met or book.affordable(20) < 20:
            return proven
        reason = f"the bound from the residual is {proven.bound:.1e}"
    except (NoCertificate, SolveFailed) as error:  # no bound for this operator, or no solution somewhere
        reason = str(error)
    try:
        other = learn_sampled(found.model, tolerance, book, recipe=recipe, rng=rng)
    except (SolveFailed, Exhausted):
        if proven is None:
            raise
        return proven  # what there is comes back, whatever ends the search for better
    notes = [f"instead of a bound from the residual a conformal one: {reason}", *(other.facts or {}).get("notes", [])]
    other = replace(other, facts={**(other.facts or {}), "notes": notes})
    return other if proven is None or other.met or other.bound < proven.bound else proven


def _from_data(data, problem, tolerance: float, recipe, rng: int, stage: Stage) -> Outcome:
    mus, solutions = read_data(data)
    space = getattr(problem, "parameters", None)
    ranges = None
    if isinstance(space, ParameterSpace) and not space.functions:
        mus = np.asarray(space.ordered(mus), dtype=float)
        if mus.ndim != 2 or mus.shape[1] != len(space.scalars):
            raise ParasolError(
                f"the parameters of the data have the shape {mus.shape}, expected (n_samples, {len(space.scalars)}): "
                f"{', '.join(space.names)}."
            )
        ranges = {p.name: (p.low, p.high, p.scale) for p in space.scalars}
    surrogate = fit_snapshots(
        mus,
        solutions,
        recipe or "best",
        tolerance=tolerance / 10,
        ranges=ranges,
        rng=rng,
        progress=stage("fitting a network to the data"),
    )
    bound = float("inf") if surrogate.conformal is None else surrogate.conformal.quantile
    facts = {"level": None if surrogate.conformal is None or not surrogate.conformal.drawn else LEVEL}
    met = bound <= tolerance
    limit = "" if met else "level" if surrogate.conformal is None else "map"
    return Outcome(surrogate, met, bound, limit, ({"solves": len(mus), "error": bound},), facts)


# ---- the account ----------------------------------------------------------------------------------------------------
@contextmanager
def _gathered() -> Iterator[list[str]]:
    """Warnings on the way are told in the account, once each, not shown: they are about attempts."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ParasolWarning)
        yield notes
    notes += dict.fromkeys(" ".join(str(w.message).split()) for w in caught if issubclass(w.category, ParasolWarning))
    for other in caught:
        if not issubclass(other.category, ParasolWarning):
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)


def _told(outcome: Outcome, found, book, tolerance: float, total: bool, limits: Limits, notes: list[str]) -> Surrogate:
    """The surrogate with its account; a warning where the tolerance is not met."""
    surrogate, about = outcome.surrogate, dict(outcome.facts or {})
    error = None if found is None else found.error
    sum_of_both = outcome.bound + (error or 0.0)
    met = outcome.met and (not total or (error is not None and sum_of_both <= tolerance))
    resonance = "" if met else _resonance(book, surrogate.parameters)
    limit = _limit(outcome, met, error, total, tolerance, book, limits, resonance)
    model = None if found is None else found.model
    account = {
        "met": met,
        "tolerance": tolerance,
        "total": total,
        "bound": outcome.bound,
        "certificate": _certificate(surrogate, about),
        "limit": limit,
        "discretisation_error": error,
        "n_nodes": getattr(model, "n_nodes", None),
        "refined_nodes": bool(found and found.refined),
        "comparisons": [] if found is None else list(found.history),
        "solves": None if book is None else book.n_solves,
        "new_solves": None if book is None else book.n_new,
        "seconds_per_solve": None if book is None else book.cost,
        "n_modes": surrogate.basis.n_modes,
        "labels": surrogate.facts["labels"],
        "map": surrogate.facts["recipe"],
        "seconds": limits.spent,
        "history": list(outcome.history),
        "notes": [*about.pop("notes", []), *notes][:8],
        **{key: value for key, value in about.items() if key != "measured"},
    }
    if "resonance" in limit:
        account["resonance"] = resonance
    failures = "" if book is None else failures_text(surrogate.parameters, book)
    if failures:
        account["notes"] = [failures, *account["notes"]]
        warnings.warn(failures, ParasolWarning, stacklevel=3)
    facts = {**surrogate.facts, "tolerance": tolerance, "learn": account}
    if "measured" in about:
        facts["measured"] = about["measured"]
    if isinstance(model, Model):
        facts |= problem_words(model.problem)
        facts |= {"fingerprint": problem_fingerprint(model.problem), "rebuild": rebuilding(model)}
    if not met:
        warnings.warn(_unmet(account), ParasolWarning, stacklevel=3)
    if error is not None and error > tolerance and not (total and not met):
        warnings.warn(
            f"the discretisation error is about {error:.1e}: so far is the full solver itself from the solution of the "
            f"equation, and the tolerance {tolerance:g} is against the full solver. {_ADVICE['discretisation']}",
            ParasolWarning,
            stacklevel=3,
        )
    return replace(surrogate, facts=facts)


def _certificate(surrogate: Surrogate, about: dict[str, Any]) -> str:
    """What kind of bound it is: "proven", from the "residual" with some constants guessed, "conformal" or "estimated"."""
    if surrogate.reduced is None:
        return "conformal" if surrogate.conformal is None or surrogate.conformal.drawn else "estimated"
    return "proven" if about.get("proven", 0.0) >= PROVEN else "residual"


def _unmet(account: dict[str, Any]) -> str:
    """Why the tolerance is not met, how far from it the bound is, and what to do."""
    bound, limit, error, level = (
        account["bound"],
        account["limit"],
        account["discretisation_error"],
        account.get("level"),
    )
    parts = limit.split(", then ")
    text = f"the bound is {bound:.1e}" if np.isfinite(bound) else "there is no bound"
    if "confirmation" in parts:
        text += " but not confirmed"
    elif bound <= account["tolerance"] and ("level" in parts or "failed solves" in parts):
        text = f"the bound {bound:.1e} is below it, but at the level {level:.2g} instead of {LEVEL:g}"
    if account["total"]:
        text += " and the discretisation error " + ("not known" if error is None else f"about {error:.1e}")
    near = f" The solutions grow near {account['resonance']}." if "resonance" in parts else ""
    return f"the tolerance {account['tolerance']:g} is not met: {text}, limited by {limit}.{near} {_ADVICE[parts[0]]}"


def _resonance(book: Book | None, space: ParameterSpace) -> str:
    """Where a solution is out of all proportion to the others, not just larger at one end of a range; else empty."""
    if book is None or not space.scalars:
        return ""
    mus, sizes = book.sizes()
    if len(sizes) < 2 * len(space.scalars) + 6 or np.min(sizes) <= 0:
        return ""
    trend = np.column_stack([np.ones(len(mus)), space.to_unit(mus[:, : len(space.scalars)])])
    logs = np.log(sizes)
    excess = logs - trend @ np.linalg.lstsq(trend, logs)[0]
    if np.max(excess) <= np.log(_RESONANCE):
        return ""
    return ", ".join(f"{p.name}={v:.6g}" for p, v in zip(space.scalars, mus[np.argmax(excess)], strict=False))


def _limit(
    outcome: Outcome, met: bool, error, total: bool, tolerance: float, book, limits: Limits, resonance: str
) -> str:
    """What keeps the error above the tolerance: a budget first, then the part of the error that is too large."""
    if met:
        return ""
    inner = outcome.limit or "map"
    if resonance and inner in ("map", "projection"):  # more time or solves would not help
        return "resonance"
    if total and (error is None or error > tolerance / 2):
        return "discretisation"
    if limits.left <= (0.0 if book is None else 2 * book.cost):
        return f"seconds, then {inner}"
    if book is not None and limits.solves is not None and book.affordable(4) < 4:
        return f"solves, then {inner}"
    return inner


def account_rows(surrogate: Surrogate) -> dict[str, str]:
    """The account of a learned surrogate as a table of two columns."""
    a = surrogate.facts.get("learn")
    if not isinstance(a, dict):
        raise ParasolError("this surrogate was not made by learn: it has no account of it.")
    kind = f"at level {a.get('level') or 0:.2g}"
    if a["certificate"] == "residual":
        kind = f"proven at {100 * a['proven']:.0f} % of them, elsewhere with guessed constants"
    elif a["certificate"] in ("proven", "estimated"):
        kind = a["certificate"]
    rows = {
        "tolerance": f"{a['tolerance']:g}, {'met' if a['met'] else 'NOT met'}" + (", total" if a["total"] else ""),
        "bound": f"{a['bound']:.1e} relative, on fresh parameters, {kind}" if np.isfinite(a["bound"]) else "none",
    }
    measured = surrogate.facts.get("measured")
    if measured:
        rows["measured"] = f"mean {measured['mean']:.1e}, max {measured['max']:.1e} on {measured['n']} fresh solves"
    if a["discretisation_error"] is not None:
        moved = ", moved to where the error is" if a["refined_nodes"] else ""
        rows["discretisation"] = f"about {a['discretisation_error']:.1e} with {a['n_nodes']} nodes{moved}"
    if a["solves"] is not None:
        old = a["solves"] - a["new_solves"]
        rows["full solves"] = f"{a['solves']}" + (f", {old} of them from the store" if old > 0 else "")
    rows["choices"] = f"{a['n_modes']} modes, labels from {a['labels']}, map by {a['map']}"
    if a["limit"]:
        rows["limited by"] = a["limit"]
    for i, note in enumerate(a["notes"][:3]):
        rows[f"note {i + 1}" if i else "note"] = note
    rows["seconds"] = f"{a['seconds']:.0f}"
    return rows
