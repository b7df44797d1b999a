"""Error against the number of full solves: the paper's network, ours and reduced models, from the same kind of data."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from parasol import Surrogate, pod
from parasol.checks import ParasolWarning
from parasol.pde import Model
from parasol.reduction import Preparation, Snapshots, fingerprint, modes_on_unknowns, prepare
from parasol.report import Facts
from parasol.runtime import Basis, ReducedModel
from parasol_lab.paper.memory import TimedModel
from parasol_lab.paper.run import Run, measure
from parasol_lab.paper.seeds import Samples, fit_seeds, train_seeds

PAPER, OURS, REDUCED = "POD-DNN, the paper's recipe", "POD-DNN, parasol", "reduced model, parasol"


def network_points(
    run: Run,
    model: Model,
    data: Snapshots,
    truth: Snapshots,
    counts: Iterable[int],
    *,
    most: int,
    ours: bool = True,
) -> list[Facts]:
    """The paper's network and, unless told not to, ours from n full solves in all, for several n.

    The paper's way keeps a quarter of them for validation and takes modes to its tolerance; ours takes `most` modes, or
    half as many as there are solves.
    """
    out = []
    for n in counts:
        seen, unseen = data.between(0, n - n // 4), data.between(n - n // 4, n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ParasolWarning)  # that so few snapshots do not resolve it is what is shown
            small = pod(seen, tolerance=run.stated.tolerance)
        samples = Samples(model, seen, unseen, truth, small)
        theirs = train_seeds(
            run, f"{PAPER}, {n} full solves", run.paper_network, run.simplest, samples, tried=False, mapped=False
        )
        out.append(point(PAPER, n, {**theirs.facts, "projection_error": samples.floor}))
        if ours:
            name, some = f"{OURS}, {n} full solves", data.between(0, n)
            rich = pod(some, n_modes=max(2, min(most, n // 2)))
            found = fit_seeds(run, name, some, run.our_recipe(), truth, n, basis=rich, model=model)[1]
            out.append(point(OURS, n, found))
    return out


def point(series: str, n_solves: int, facts: Facts) -> Facts:
    """One point of a curve."""
    kept = {key: facts.get(key) for key in ("scatter", "n_seeds")}
    return {
        "series": series,
        "n_solves": n_solves,
        "error": facts["error"],
        "floor": facts.get("projection_error"),
        **kept,
    }


# ---- reduced models -------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Reducer:
    """Reduced models of one model, whatever their basis; what they share is made when the first of them is."""

    run: Run
    model: Model
    n_anchors: int

    @cached_property
    def _prepared(self) -> Preparation:
        self.run.progress("constants of the error bounds")
        return prepare(self.model, n_anchors=self.n_anchors)

    def __call__(self, basis: Basis) -> TimedModel:
        """The reduced model of a basis; its seconds are with the constants where it was the first."""
        key = ("reduced", fingerprint(self.model), self.n_anchors, basis)
        return self.run.memory.reduced(
            key, lambda: self._prepared.reduced(basis, self._prepared.builders(modes_on_unknowns(self.model, basis)))
        )


def reduced_points(
    reducer: Reducer, data: Snapshots, truth: Snapshots, counts: Iterable[int], *, most: int
) -> list[Facts]:
    """The reduced model from n full solves, for several n."""
    models = [(n, reducer(pod(data.between(0, n), n_modes=min(n, most)))) for n in counts]
    return [point(REDUCED, n, measure_reduced(timed_model, truth, n)) for n, timed_model in models]


def reduced_fields(reduced: ReducedModel):
    """Fields by a reduced model."""
    return lambda mus: reduced.basis.lift(reduced.coefficients(mus, extrapolate=True))


def measure_reduced(timed_model: TimedModel, truth: Snapshots, n_solves: int) -> Facts:
    """A reduced model measured."""
    facts = measure(reduced_fields(timed_model.reduced), truth, basis=timed_model.reduced.basis)
    return {**facts, "fit_seconds": timed_model.seconds, "pde_solves": n_solves}


# ---- bounds ---------------------------------------------------------------------------------------------------------
def certificate_facts(surrogate: Surrogate, truth: Snapshots) -> Facts:
    """Bounds on the test set, from the residual or conformal, beside the errors they bound; `rigorous` is the proven part."""
    relative, rigorous, errors, first = [], [], [], 0
    for block in truth.blocks():
        answer = surrogate(truth.mus[first : first + len(block)], extrapolate=True)
        errors.append(np.linalg.norm(answer.values - block, axis=1) / np.linalg.norm(block, axis=1))
        relative.append(answer.bounds.relative)
        rigorous.append(answer.bounds.rigorous)
        first += len(block)
    error, bound = np.concatenate(errors), np.concatenate(relative)
    ratio = bound / np.maximum(error, np.finfo(float).tiny)
    facts = {
        "kind": "conformal" if surrogate.reduced is None else "residual",
        "largest_bound": float(np.max(bound)),
        "median_bound": float(np.median(bound)),
        "bound_over_error_least": float(np.min(ratio)),
        "bound_over_error_median": float(np.median(ratio)),
        "rigorous": float(np.mean(np.concatenate(rigorous))),
        "holds": float(np.mean(error <= bound)),
    }
    if surrogate.reduced is None and surrogate.conformal is not None:
        facts |= {"level": surrogate.conformal.level, "n_calibration": surrogate.conformal.n_calibration}
    return facts
