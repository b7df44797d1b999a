"""An answer of a surrogate reported: what was asked, what was answered, how wrong it can be."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from parasol.report.render import Facts, field_rows
from parasol.runtime.answer import Answer
from parasol.runtime.descriptions import bound_words
from parasol.runtime.reduced import Bounds


@dataclass(frozen=True, eq=False)
class AnswerReport:
    """What was asked, what was answered, how wrong it can be; of several parameters the extremes over all of them."""

    answer: Answer
    with_bounds: bool = False  # an answer of which nothing is known is an error then
    seconds: float = 0.0
    files: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @cached_property
    def bounds(self) -> Bounds | None:
        """Of the relative errors, where anything is known of them."""
        return self.answer.bounds if self.with_bounds or self.answer.surrogate.has_bounds else None

    @property
    def meaning(self) -> str:
        """What the bounds mean."""
        kinds = () if self.bounds is None else np.unique(self.answer.bound_kind).tolist()
        return bound_words(self.answer.surrogate, kinds)

    @property
    def estimates(self) -> np.ndarray | None:
        """Of the relative errors, (n_samples,), where there are random duals."""
        return None if self.answer.estimates is None else self.answer.estimates.relative

    @property
    def n_outside(self) -> int:
        """How many of the parameters lie where nothing is promised."""
        return int(np.count_nonzero(self.answer.extrapolated))

    @cached_property
    def fields(self) -> dict[str, np.ndarray]:
        """Values of each unknown function."""
        layout = self.answer.surrogate.layout
        values = np.reshape(self.answer.values, (len(self.answer.mus), layout.n_times, len(layout.names), -1))
        return {name: values[:, :, i] for i, name in enumerate(layout.names)}

    @property
    def quantity_bounds(self) -> dict[str, float]:
        """How far each quantity can be off at most."""
        known = {} if self.bounds is None else self.answer.quantity_bounds
        return {name: float(np.max(bound)) for name, bound in known.items()}

    @property
    def quantity_estimates(self) -> dict[str, float]:
        """By how much each quantity is typically off, the most of all parameters, where the residual has corrected it."""
        return {name: float(np.max(size)) for name, size in (self.answer.quantity_estimates or {}).items()}

    @property
    def discretisation(self) -> np.ndarray | None:
        """Estimates of the full solver's own error, (n_samples,)."""
        errors = self.answer.discretisation
        return None if errors is None else np.atleast_1d(errors)

    def to_dict(self) -> Facts:
        """The report as plain values."""
        answer, surrogate = self.answer, self.answer.surrogate
        layout, names = surrogate.layout, surrogate.parameters.names
        return {
            "problem": surrogate.provenance.problem,
            "n_samples": len(answer.mus),
            "parameters": {name: _range(answer.mus[:, j]) for j, name in enumerate(names)},
            "functions": [f.name for f in surrogate.parameters.functions],
            "n_values": surrogate.n_values,
            "n_times": None if layout.times is None else layout.n_times,
            "extrapolated": self.n_outside,
            "fields": {name: _range(values) for name, values in self.fields.items()},
            "norm": _range(_norms(answer)),
            "bound": None if self.bounds is None else _range(self.bounds.relative),
            "bound_is": self.meaning,
            "estimate": None if self.estimates is None else _range(self.estimates),
            "probability": self.answer.probability,
            "discretisation": None if self.discretisation is None else _range(self.discretisation),
            "quantities": {name: _range(value) for name, value in answer.quantities.items()},
            "quantity_bounds": self.quantity_bounds,
            "quantity_estimates": self.quantity_estimates,
            "seconds": self.seconds,
            "files": self.files,
            "warnings": self.warnings,
        }

    def rows(self) -> dict[str, str]:
        """The report in words."""
        answer, surrogate = self.answer, self.answer.surrogate
        rows = {"problem": surrogate.provenance.problem} if surrogate.provenance.problem else {}
        asked = [f"{name} {_words(answer.mus[:, j])}" for j, name in enumerate(surrogate.parameters.names)]
        asked += [f"{f.name}, a function" for f in surrogate.parameters.functions]
        rows["parameters"] = ", ".join(asked) or "none"
        if len(answer.mus) > 1:
            rows["samples"] = str(len(answer.mus))
        rows |= self.outside_rows() | field_rows(self.fields)
        return rows | self.error_rows() | {"seconds": f"{self.seconds:.2g}"}

    def outside_rows(self) -> dict[str, str]:
        """Says whether parameters lie where nothing is promised."""
        n_samples = len(self.answer.mus)
        which = f"{self.n_outside} of {n_samples}: " if n_samples > 1 else ""
        return {"outside the box": f"{which}nothing is promised there"} if self.n_outside else {}

    def error_rows(self) -> dict[str, str]:
        """How wrong the field can be; the quantities, and how far they can be off."""
        rows = {"relative error": "not known: there is no bound"}
        if self.bounds is not None:
            largest = float(np.max(self.bounds.relative))
            known = f"at most {largest:.1e} against its solver, {self.meaning}"
            rows["relative error"] = known if np.isfinite(largest) else "no bound here"
        if self.estimates is not None and np.isfinite(about := float(np.max(self.estimates))):
            rows["relative error"] = f"about {about:.1e}, {rows['relative error']}"
        if self.discretisation is not None:
            off = float(np.max(self.discretisation))
            known = f"about {off:.1e} of its solver against the equation, estimated"
            rows["discretisation error"] = known if np.isfinite(off) else "not known here"
        bounds, sizes = self.quantity_bounds, self.quantity_estimates
        for name, value in self.answer.quantities.items():
            off, about = bounds.get(name, np.inf), sizes.get(name, np.inf)
            known = {f"about {about:.1e}": about, f"at most {off:.1e}": off}
            parts = [words for words, size in known.items() if np.isfinite(size)]
            rows[name] = _words(value) + (f", off by {', '.join(parts)}" if parts else "")
            if len(parts) == 2:  # such a bound has a word of its own
                rows[name] += f" ({', '.join(np.unique(self.answer.quantity_bound_kind))})"
        return rows


def _norms(answer: Answer) -> np.ndarray:
    return np.linalg.norm(answer.coefficients, axis=1)  # the basis is orthonormal: that of the whole field


def _range(values: Any) -> Facts:
    return {"minimum": float(np.min(values)), "maximum": float(np.max(values))}


def _words(values: Any) -> str:
    low, high = np.min(values), np.max(values)
    return f"{low:.6g}" if low == high else f"from {low:.6g} to {high:.6g}"
