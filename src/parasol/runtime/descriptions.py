"""A surrogate described: what it answers, how large it is, what is known of its errors, how it was made."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from parasol.runtime.duals import WIDTH
from parasol.runtime.plain import Plain, plain
from parasol.runtime.program import map_name, map_words, program_of
from parasol.runtime.ranges import ParameterRange
from parasol.runtime.surrogate import Surrogate

# facts that have a row of their own; others are shown under "made"
_SAID = ("problem", "equation", "latex", "domain", "tolerance")


@dataclass(frozen=True, eq=False)
class SurrogateReport:
    """What a surrogate is, for people and for JSON; `path` is the file it comes from."""

    surrogate: Surrogate
    path: str | Path | None = None

    def to_dict(self) -> Plain:
        """All that is known of it."""
        surrogate, path = self.surrogate, self.path
        layout, space, basis, provenance = surrogate.layout, surrogate.parameters, surrogate.basis, surrogate.provenance
        points, times, discarded = layout.points, layout.times, basis.energy_discarded
        return {
            "file": None if path is None else str(path),
            "n_bytes": None if path is None else Path(path).stat().st_size,
            "problem": provenance.problem,
            "equation": provenance.equation,
            "domain": provenance.domain,
            "unknowns": list(layout.names),
            "parameters": ranges(space.answered.scalars),
            "functions": [{"name": f.name, "on": f.on, "law": str(f.distribution)} for f in space.functions],
            "n_parameters": surrogate.n_parameters,
            "n_values": surrogate.n_values,
            "n_nodes": None if points is None else len(points),
            "n_interior": None if points is None else layout.n_interior,
            "dimension": None if points is None else points.shape[1],
            "coordinates": None if points is None else list(layout.axes),
            "times": None if times is None else span(times),
            "time": None if times is None else layout.time,
            "n_modes": basis.n_modes,
            "basis": {
                "method": basis.method,
                "n_snapshots": basis.n_snapshots,
                "weighted": basis.weights is not None,
                "held_out_error": basis.held_out_error,
                "energy_discarded": float(discarded[basis.n_modes]) if len(discarded) > basis.n_modes else None,
            },
            "map": self._map(),
            "bound": self._bound(),
            "estimate": self._estimate(),
            "quantities": list(surrogate.quantity_names),
            "tolerance": provenance.tolerance,
            "made": plain(surrogate.facts),
        }

    def rows(self) -> dict[str, str]:
        """The same in words, by name."""
        surrogate, provenance, basis = self.surrogate, self.surrogate.provenance, self.surrogate.basis
        rows = provenance.words
        rows["parameters"] = str(surrogate.parameters.answered)
        rows["answers"] = self._answer_words()
        if surrogate.quantity_names:
            rows["quantities"] = ", ".join(surrogate.quantity_names)
        kept = f" from {basis.n_snapshots} snapshots" if basis.n_snapshots else ""
        error = "" if basis.held_out_error is None else f", projection error {basis.held_out_error:.1e}"
        rows["basis"] = f"{basis.n_modes} modes by {basis.method}{kept}{error}"
        rows["map"] = self._map_words()
        rows["error bound"] = self._bound_words()
        duals = self._estimate()
        if duals is not None:
            checked = f", checked with {duals['n_checked']} fresh solves" if duals["n_checked"] else ""
            rows["error estimate"] = (
                f"for each answer, by {duals['n_vectors']} random duals at {duals['n_parameters']} parameters{checked}"
            )
        if provenance.tolerance is not None:
            met = {True: ", met", False: ", NOT met", None: ""}[provenance.met]
            rows["promised"] = f"relative error {provenance.tolerance:.3g} against the discrete solution{met}"
        if provenance.measured is not None:
            errors = provenance.measured
            rows["measured"] = f"mean {errors.mean:.1e}, max {errors.max:.1e} on {errors.n} fresh solves"
        if provenance.discretisation_error is not None:
            rows["discretisation error"] = f"about {provenance.discretisation_error:.1e}"
        if provenance.solves is not None:
            rows["full solves"] = str(provenance.solves)
        others = {key: value for key, value in plain(surrogate.facts).items() if key not in _SAID}
        short = {
            key: f"{v:.3g}" if isinstance(v, float) else str(v)
            for key, v in others.items()
            if _is_short(v) and v not in ("none", 0)
        }
        if short:
            rows["made"] = ", ".join(f"{key.replace('_', ' ')} {words}" for key, words in short.items())
        if isinstance(others.get("made_with"), dict):
            rows["made with"] = ", ".join(f"{name} {version}" for name, version in others["made_with"].items())
        if self.path is not None:
            rows["file"] = f"{self.path}, {Path(self.path).stat().st_size / 1e6:.3g} MB"
        return rows

    def _map(self) -> Plain:
        fitted = self.surrogate.map
        out: Plain = {"kind": map_name(fitted)}
        program = program_of(fitted)
        if program is not None:
            out |= {"widths": list(program.widths), "activation": None}
            out |= {"n_weights": program.n_weights, "dtype": str(program.dtype)}
            for op in program.all_operations:
                out |= op.facts
        error = getattr(fitted, "error", getattr(fitted, "validation_error", None))
        if isinstance(error, float):
            out["validation_error"] = error  # of samples not fitted to, by which it was chosen
        return out

    def _map_words(self) -> str:
        about = self._map()
        words = [map_words(self.surrogate.map)]
        if "widths" in about and "n_terms" not in about:
            words.append(" ".join(["-".join(map(str, about["widths"])), *filter(None, [about["activation"]])]))
        if "n_terms" in about:
            words.append(f"{about['n_terms']} terms of degree {about['degree']}")
        if "n_centres" in about:
            words.append(f"{about['n_centres']} samples, {about['kernel']}")
        if "n_weights" in about:
            words.append(f"{about['n_weights']} weights, {about['dtype']}")
        if "validation_error" in about:
            words.append(f"validation error {about['validation_error']:.1e}")
        return ", ".join(words)

    def _bound(self) -> Plain:
        reduced, conformal = self.surrogate.reduced, self.surrogate.conformal
        if reduced is not None and reduced.certificate is None:
            meaning = bound_words(self.surrogate, {"probable"})
            return {"kind": "probable", "probability": reduced.duals.probability, "meaning": meaning}  # type: ignore[union-attr]
        if reduced is not None and reduced.certificate is not None:
            meaning = "from the residual; each answer says whether its bound is proven"
            return {"kind": "certificate", "n_anchors": reduced.certificate.n_anchors, "meaning": meaning}
        if conformal is not None:
            about = {"level": conformal.level, "n_calibration": conformal.n_calibration, "quantile": conformal.quantile}
            return {"kind": "conformal" if conformal.drawn else "estimated", **about, "meaning": conformal.meaning}
        return {"kind": None, "meaning": bound_words(self.surrogate, ())}

    def _estimate(self) -> Plain | None:
        """What the estimate of each answer's error is made of, and what may be concluded from it; None: there is none."""
        duals = None if self.surrogate.reduced is None else self.surrogate.reduced.duals
        return duals and {
            "n_vectors": len(duals.blocks),
            "n_parameters": len(duals.mus),
            "n_checked": duals.n_checked,
            "factor": WIDTH * duals.ratio,  # of a probable bound over its estimate, at least
            "probability": duals.probability,
        }

    def _bound_words(self) -> str:
        reduced, conformal = self.surrogate.reduced, self.surrogate.conformal
        if reduced is not None:
            probable = bound_words(self.surrogate, {"probable"})
            if reduced.certificate is None:
                return f"for each answer, a multiple of its estimated error, {probable}"
            known = f"constants known at {reduced.certificate.n_anchors} parameters"
            rest = (
                "" if reduced.duals is None else f"; where they prove nothing, a multiple of the estimate, {probable}"
            )
            return f"for each answer, from its residual; {known}{rest}"
        if conformal is None:
            return "none: nothing is known about the errors"
        size, n = f"{conformal.quantile:.1e} relative", conformal.n_calibration
        if conformal.normalised:
            size = f"{conformal.quantile:.2g} times the estimated error of each answer"
        if conformal.refitted:
            size += f", and what the answer differs from {n} fits without one of the samples,"
        if conformal.drawn:
            return f"{size} with probability {conformal.level:g}, by {n} solves"
        return f"{size}, estimated from {n} solves"

    def _answer_words(self) -> str:
        layout = self.surrogate.layout
        names = ", ".join(layout.names)
        if layout.points is None:
            return f"{self.surrogate.n_values} values of {names}"
        n_nodes, dimension = layout.points.shape
        nodes = f"{n_nodes} = {layout.n_interior} interior + {n_nodes - layout.n_interior} boundary nodes"
        if layout.scheme is None:  # somebody's own
            nodes = f"{n_nodes} points"
        when = ""
        if layout.times is not None:
            when = f", at {len(layout.times)} times {layout.time} from {layout.times[0]:g} to {layout.times[-1]:g}"
        return f"{names} at {nodes} in {dimension}-D ({', '.join(layout.axes)}){when}"


def description(surrogate: Surrogate, path: str | Path | None = None) -> Plain:
    """What a surrogate is: what it answers, from which parameters, how large it is, what is known of its errors."""
    return SurrogateReport(surrogate, path).to_dict()


def bound_words(surrogate: Surrogate, kinds: Collection[str]) -> str:
    """What bounds of its errors mean; `kinds` are those of the answers (`Answer.bound_kind`), of which the weakest counts."""
    if surrogate.reduced is not None:
        duals, kinds = surrogate.reduced.duals, set(kinds)
        if kinds == {"proven"}:
            return "proven"
        if duals is not None and kinds <= {"proven", "probable"}:
            some = "partly proven, elsewhere " if "proven" in kinds else ""
            return f"{some}probable: holds with probability {duals.probability:.4f} for each parameter"
        if duals is not None:
            return "estimated: nothing is claimed outside the box"
        return "from the residual, with a stability constant that is estimated"
    if surrogate.conformal is not None:
        kind = f"{surrogate.conformal.level:.3g} likely, by" if surrogate.conformal.drawn else "estimated from"
        aside = "left out one at a time" if surrogate.conformal.refitted else "kept aside"
        return f"{kind} {surrogate.conformal.n_calibration} solves {aside}"
    return "not known"


def ranges(scalars: Iterable[ParameterRange]) -> list[Plain]:
    """Names, ranges and scales of parameters; of choices the values, and their names."""
    entries: list[Plain] = []
    for p in scalars:
        entries.append({"name": p.name, "low": p.low, "high": p.high, "scale": p.scale})
        if p.choices:
            entries[-1]["choices"] = list(p.choices)
            entries[-1]["words"] = [p.word(value) for value in p.choices]
    return entries


def span(times: Sequence[float] | np.ndarray) -> Plain:
    """The first and the last of some times, and how many there are."""
    return {"first": float(times[0]), "last": float(times[-1]), "count": len(times)}


def _is_short(value: Any) -> bool:
    return not isinstance(value, dict | list) and len(str(value)) <= 40
