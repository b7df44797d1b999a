"""Whether the tolerance is met and what limits it: the report of a surrogate that was learned."""

from __future__ import annotations

import warnings
from dataclasses import asdict, replace
from itertools import product

import numpy as np

from parasol.checks import ParasolError, ParasolWarning
from parasol.learning.estimates import largest
from parasol.learning.nodes import Discretised
from parasol.learning.rebuilding import record_of
from parasol.learning.report import LEVEL, PROVEN, Evidence, LearnReport, Outcome, beside
from parasol.learning.request import Request
from parasol.learning.solves import SolveCache
from parasol.pde.matrices import AffineModel
from parasol.pde.model import Model
from parasol.pde.parameters import ParameterSpace
from parasol.pde.steady import norm_of
from parasol.pde.text import problem_words
from parasol.reduction.fingerprints import problem_fingerprint
from parasol.runtime.surrogate import Surrogate

_RESONANCE = 10.0  # times the size that the others would suggest: so large are solutions near a singular problem
_NOTHING = 1e-9  # of the largest solution: relative to less no answer is right
_MOST_CORNERS = 8  # parameters whose ends are all looked at together
_QUOTED, _LONGEST = 3, 120  # failures named in a warning, characters of a reason
_ADVICE = {
    "solves": "Allow more full solves.",
    "seconds": "Allow more time; with a store the solves made so far are kept.",
    "discretisation": "Give more nodes with n_nodes, or accept a larger error.",
    "projection": "The solutions need more modes than the solves made so far have: narrow the ranges of the parameters.",
    "confirmation": "The bound rests on an estimate that fresh full solves did not confirm.",
    "level": f"A bound at the level {LEVEL:g} takes more fresh solves at parameters drawn at random: allow more.",
    "failed solves": "Too many of the fresh solves for the bound failed: narrow the ranges to where there are solutions.",
    "resonance": "Narrow the ranges to one side of it.",
    "zero solution": "Relative to nothing every error is infinite: let the ranges end before that.",
    "map": "The coefficients are hard to learn: narrow the ranges of the parameters, or give more solves or results.",
}
_ADVICE_FOR_DATA = {
    "level": f"A bound at the level {LEVEL:g} takes more results, at parameters drawn at random.",
    "map": "The fields are hard to learn from these results: give more, or narrow the ranges of the parameters.",
}


def with_report(
    outcome: Outcome, request: Request, chosen: Discretised | None, cache: SolveCache | None, notes: list[str]
) -> Surrogate:
    """The surrogate with its report; a warning where the tolerance is not met."""
    surrogate, tolerance = outcome.surrogate, request.tolerance
    known = [e for e in (None if chosen is None else chosen.error, largest(surrogate)) if e is not None]
    error = max(known) if known else None  # by other nodes at a few parameters, and by what is left between the nodes
    met = outcome.met and (not request.total or (error is not None and outcome.bound + error <= tolerance))
    resonance = "" if met else _resonance(cache, surrogate.parameters)
    limit = "" if met else _limit(outcome, request, error, cache, resonance)
    zero = _zero(surrogate) if limit in ("map", "projection") and not np.isfinite(outcome.bound) else ""
    limit = "zero solution" if zero else limit
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
        device=None if cache is None else cache.device,
        n_modes=surrogate.basis.n_modes,
        labels=surrogate.facts["labels"],
        map=surrogate.facts["recipe"],
        seconds=request.limits.spent,
        stages=_stages(request),
        history=outcome.history,
        notes=(*([failures] if failures else []), *[*outcome.notes, *notes][:8]),
        evidence=outcome.evidence,
        resonance=resonance if "resonance" in limit else None,
        zero=zero or None,
        measured=outcome.measured,
        norm=norm_of(chosen.model) if chosen is not None and isinstance(chosen.model, Model) else "",
    )
    if failures:
        warnings.warn(failures, ParasolWarning, stacklevel=4)
    more = (None if chosen is None else chosen.limit) or _ADVICE["discretisation"]  # what stopped the choice of nodes
    if not met:
        warnings.warn(_unmet(report, more), ParasolWarning, stacklevel=4)
    if error is not None and error > tolerance and not (request.total and not met):
        warnings.warn(
            f"the discretisation error is about {error:.1e}: the full solver itself is that far from the solution of the "
            f"equation. The tolerance {tolerance:g} is met against the full solver only. {more[0].upper()}{more[1:]}"
            if met
            else f"the discretisation error is about {error:.1e}: the full solver itself is that far from the solution of "
            f"the equation. {more[0].upper()}{more[1:]}",
            ParasolWarning,
            stacklevel=4,
        )
    facts = {**surrogate.facts, "tolerance": tolerance, "learn": report.to_dict()}
    if report.measured is not None:
        facts["measured"] = asdict(report.measured)
    if chosen is not None and isinstance(chosen.model, Model):
        problem = chosen.model.problem
        facts |= problem_words(problem)
        if not isinstance(chosen.model, AffineModel):
            facts |= {"fingerprint": problem_fingerprint(problem), "rebuild": record_of(chosen.model).to_dict()}
    return replace(surrogate, facts=facts)


def _stages(request: Request) -> dict[str, float]:
    """Seconds of each stage, the last one ended."""
    request.limits.enter("report")
    return {name: round(seconds, 3) for name, seconds in request.limits.stages.items()}


def _certificate(surrogate: Surrogate, evidence: Evidence) -> str:
    """What kind of bound it is, as in `LearnReport`."""
    if surrogate.reduced is None or evidence.level is not None:  # duals of a solver come after the verdict
        return "conformal" if surrogate.conformal is None or surrogate.conformal.drawn else "estimated"
    if (evidence.proven or 0.0) >= PROVEN:
        return "proven"
    return "residual" if surrogate.reduced.duals is None else "probable"


def _unmet(report: LearnReport, more: str) -> str:
    """Why the tolerance is not met, how far from it the bound is, and what to do; `more` is about the nodes."""
    bound, error, level = report.bound, report.discretisation_error, report.evidence.level
    parts = report.limit.split(", then ")
    text = f"the bound is {beside(report.tolerance, bound)}" if np.isfinite(bound) else "there is no bound"
    if "confirmation" in parts:
        text += " but not confirmed"
    elif bound <= report.tolerance and ("level" in parts or "failed solves" in parts):
        text = f"the bound {bound:.1e} is below it, but at the level {level:.2g} instead of {LEVEL:g}"
    if report.total:
        text += " and the discretisation error " + ("not known" if error is None else f"about {error:.1e}")
    near = f" The solutions grow near {report.resonance}." if "resonance" in parts else ""
    near = f" The solution is zero at {report.zero}." if "zero solution" in parts else near
    known = _ADVICE if report.solves is not None else _ADVICE | _ADVICE_FOR_DATA
    advice = f"{more[0].upper()}{more[1:]}" if parts[0] == "discretisation" else known[parts[0]]
    return f"the tolerance {report.tolerance:g} is not met: {text}, limited by {report.limit}.{near} {advice}"


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


def _zero(surrogate: Surrogate) -> str:
    """At which end of which ranges the solutions are zero, as those of a load from 0 on; else empty."""
    space = surrogate.parameters
    if space.functions or not 1 <= len(space.scalars) <= _MOST_CORNERS:
        return ""
    corners = np.array(list(product(*((p.low, p.high) for p in space.scalars))))
    try:
        sizes = np.linalg.norm(surrogate.coefficients(corners, extrapolate=True), axis=1)
    except (ParasolError, np.linalg.LinAlgError):  # no answer in a corner, and nothing is known of zero there
        return ""
    gone = ~(sizes > _NOTHING * np.max(sizes))
    for j, p in enumerate(space.scalars):
        for end in (p.low, p.high):
            if gone.any() and np.array_equal(gone, corners[:, j] == end):
                return f"{p.name}={end:g}"
    return (
        ", ".join(f"{p.name}={v:g}" for p, v in zip(space.scalars, corners[np.argmax(gone)], strict=True))
        if gone.any()
        else ""
    )


def _limit(outcome: Outcome, request: Request, error: float | None, cache: SolveCache | None, resonance: str) -> str:
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
