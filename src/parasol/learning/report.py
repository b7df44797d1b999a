"""What a run of `learn` did and how far it got: typed, as plain data for files, and as a table of two columns."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from parasol.errors import InputError
from parasol.fitting.fit import Accuracy
from parasol.runtime.plain import Plain
from parasol.runtime.provenance import Measured
from parasol.runtime.surrogate import Surrogate

LEVEL = 0.95  # of a conformal bound
PROVEN = 0.99  # part of the fresh parameters with proven constants, below which measurements have to agree


@dataclass(frozen=True)
class Comparison:
    """The estimated discretisation error of so many nodes; refined ones follow an indicator of the error."""

    n_nodes: int
    error: float
    refined: bool


@dataclass(frozen=True)
class Step:
    """The largest bound, or the error, after so many full solves."""

    solves: int
    bound: float | None = None
    error: float | None = None


@dataclass(frozen=True)
class Round:
    """One round of sampling: the best map after so many full solves, and its errors on solves it had not seen."""

    solves: int
    error: float  # the largest
    mean: float
    projection: float
    n_modes: int
    labels: str
    map: str


def measured_on(accuracy: Accuracy) -> Measured:
    """The errors of an accuracy in short."""
    return Measured(len(accuracy.errors), accuracy.mean, float(np.max(accuracy.errors)), accuracy.projection)


@dataclass(frozen=True)
class Evidence:
    """What the bound rests on: fresh solves and their failures, or residuals and the part of them that is proven."""

    level: float | None = None  # of a conformal bound
    n_failed: int | None = None  # solves in all
    n_failed_fresh: int | None = None  # of those that the bound was calibrated with
    n_tries: int | None = None  # sets of fresh solves
    basis_bound: float | None = None  # the largest at the candidates of the greedy search
    proven: float | None = None  # part of the fresh parameters
    probability: float | None = None  # that a probable bound holds, over its random vectors, for each parameter
    ratio: float | None = None  # of error and estimate at the worst of the fresh solves it was checked with; at least 1
    n_checked: int | None = None  # these solves
    n_fresh: int | None = None
    share: float | None = None  # part of the fresh parameters whose bound is below the tolerance
    n_factorizations: int | None = None  # of matrices, besides the full solves
    n_triangular: int | None = None  # triangular solves with factors at hand: duals and preconditioned columns


@dataclass(frozen=True, eq=False)
class Outcome:
    """A surrogate, whether it meets the tolerance, what kept it from that, and how it came about."""

    surrogate: Surrogate
    met: bool
    bound: float  # what was checked against the tolerance
    limit: str = ""
    history: tuple[Step | Round, ...] = ()
    evidence: Evidence = Evidence()
    measured: Measured | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LearnReport:
    """What `learn` promised, measured and spent; `surrogate.facts["learn"]` is its `to_dict()`."""

    met: bool
    tolerance: float
    total: bool
    bound: float
    certificate: (
        str  # "proven", "probable", from the "residual" with some constants guessed, "conformal" or "estimated"
    )
    limit: str
    discretisation_error: float | None
    n_nodes: int | None
    refined_nodes: bool
    comparisons: tuple[Comparison, ...]
    solves: int | None
    new_solves: int | None
    seconds_per_solve: float | None
    n_modes: int
    labels: str
    map: str
    seconds: float
    history: tuple[Step | Round, ...]
    notes: tuple[str, ...]
    evidence: Evidence = Evidence()
    resonance: str | None = None  # where the solutions grow, if that is the limit
    zero: str | None = None  # where they are zero, if that is the limit
    measured: Measured | None = None
    stages: dict[str, float] = field(default_factory=dict)  # seconds of each stage
    device: str | None = None  # "gpu" where full solves were made on one
    norm: str = ""  # that errors, bounds and estimates are relative in, in words

    def to_dict(self) -> Plain:
        """Plain data; what was not measured is left out. The measured errors have a place of their own in a file."""
        out = {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if f.name not in ("evidence", "resonance", "zero", "measured")
        }
        for name in ("stages", "norm", "device"):  # which reports of version 0.1.0 have not
            if not out[name]:
                del out[name]
        out |= {name: [_known(row) for row in out[name]] for name in ("comparisons", "history")}
        out |= {"notes": list(self.notes)} | _known(self.evidence)
        if self.evidence.proven is None:
            out["level"] = self.evidence.level
        places = {"resonance": self.resonance, "zero": self.zero}
        return out | {name: where for name, where in places.items() if where is not None}

    @classmethod
    def of(cls, surrogate: Surrogate) -> LearnReport:
        """The report of a surrogate that was learned, in memory or from a file."""
        held = surrogate.facts.get("learn")
        if not isinstance(held, dict):
            raise InputError("this surrogate was not made by learn: it has no report of it.")
        given = {f.name: held[f.name] for f in fields(cls) if f.name in held}
        rows = [(Round if "map" in row else Step)(**row) for row in held["history"]]
        evidence = Evidence(**{f.name: held[f.name] for f in fields(Evidence) if f.name in held})
        measured = surrogate.facts.get("measured")
        comparisons = tuple(Comparison(**row) for row in held["comparisons"])
        given |= {"comparisons": comparisons, "history": tuple(rows), "notes": tuple(held["notes"])}
        return cls(**given, evidence=evidence, measured=Measured(**measured) if measured else None)

    def rows(self) -> dict[str, str]:
        """A table of two columns."""
        kind = f"at level {self.evidence.level or 0:.2g}"
        if self.certificate == "residual":
            kind = f"proven at {100 * (self.evidence.proven or 0):.0f} % of them, elsewhere with guessed constants"
        elif self.certificate == "probable":
            kind = f"with a probability of {self.evidence.probability or 0:.4f} each"
        elif self.certificate in ("proven", "estimated"):
            kind = self.certificate
        norm = f" in {self.norm}" if self.norm.startswith("L2") else ""
        rows = {
            "tolerance": f"{self.tolerance:g}, {'met' if self.met else 'NOT met'}" + (", total" if self.total else ""),
            "bound": f"{beside(self.tolerance, self.bound)} relative{norm}, on fresh parameters, {kind}"
            if np.isfinite(self.bound)
            else "none",
        }
        if self.evidence.level and self.evidence.probability:
            rows["single bounds"] = (
                f"from random duals, with a probability of {self.evidence.probability:.2f} each; below the tolerance at "
                f"{100 * (self.evidence.share or 0):.3g} % of {self.evidence.n_fresh} parameters"
            )
        if self.measured:
            errors = self.measured
            rows["measured"] = f"mean {errors.mean:.1e}, max {errors.max:.1e} on {errors.n} fresh solves"
        if self.discretisation_error is not None:
            moved = ", moved to where the error is" if self.refined_nodes else ""
            rows["discretisation"] = f"about {self.discretisation_error:.1e} with {self.n_nodes} nodes{moved}"
        if self.solves is not None:
            old = self.solves - (self.new_solves or 0)
            rows["full solves"] = f"{self.solves}" + (f", {old} of them from the store" if old > 0 else "")
            rows["full solves"] += f", some on a {self.device.upper()}" if self.device else ""
        rows["choices"] = f"{self.n_modes} modes, labels from {self.labels}, map by {self.map}"
        if self.limit:
            rows["limited by"] = self.limit
        for i, note in enumerate(self.notes[:3]):
            rows[f"note {i + 1}" if i else "note"] = note
        longest = sorted(self.stages.items(), key=lambda pair: -pair[1])[:3]
        parts = ", ".join(f"{seconds:.3g} {name}" for name, seconds in longest)
        rows["seconds"] = f"{self.seconds:.3g}" + (f" ({parts})" if parts else "")
        return rows


def beside(tolerance: float, bound: float) -> str:
    """A bound in two digits, or in as many as tell it from the tolerance.

    >>> beside(1e-2, 3.4567e-3), beside(1e-2, 0.010035)
    ('3.5e-03', '1.004e-02')
    """
    texts = [f"{bound:.{digits}e}" for digits in range(1, 8)]
    return next((text for text in texts if float(text) != tolerance), texts[0])


def _known(part: Any) -> dict[str, Any]:
    return {name: value for name, value in asdict(part).items() if value is not None}
