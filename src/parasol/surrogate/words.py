"""The facts about a surrogate: as named plain values for JSON, as short texts for people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from parasol.pde.notebook import card, field_rows, is_plain_latex, range_text
from parasol.surrogate.program import map_name, program_of
from parasol.surrogate.surrogate import Answer, Surrogate

Facts = dict[str, Any]  # numbers, texts, truth values, None, and lists and dicts of these

# what has a row of its own; other facts are shown under "made"
_SAID = ("problem", "equation", "latex", "domain", "tolerance")


def model_facts(surrogate: Surrogate, path: str | Path | None = None) -> Facts:
    """What a surrogate is: what it answers, from which parameters, how large it is, what is known of its errors."""
    layout, space, basis = surrogate.layout, surrogate.parameters, surrogate.basis
    points = layout.points
    return {
        "file": None if path is None else str(path),
        "n_bytes": None if path is None else Path(path).stat().st_size,
        "problem": surrogate.facts.get("problem"),
        "equation": surrogate.facts.get("equation"),
        "domain": surrogate.facts.get("domain"),
        "unknowns": list(layout.names),
        "parameters": [
            {"name": p.name, "low": p.low, "high": p.high, "scale": p.scale} for p in space.answered.scalars
        ],
        "functions": [{"name": f.name, "on": f.on, "law": str(f.law)} for f in space.functions],
        "n_parameters": surrogate.n_parameters,
        "n_values": surrogate.n_values,
        "n_nodes": None if points is None else len(points),
        "n_interior": None if points is None else layout.n_interior,
        "dimension": None if points is None else points.shape[1],
        "coordinates": None if points is None else list(layout.axes),
        "times": None if layout.times is None else _span(layout.times),
        "time": None if layout.times is None else layout.time,
        "n_modes": basis.n_modes,
        "basis": {
            "method": basis.method,
            "n_snapshots": basis.n_snapshots,
            "weighted": basis.weights is not None,
            "held_out_error": basis.held_out_error,
            "energy_discarded": float(basis.energy_discarded[basis.n_modes])
            if len(basis.energy_discarded) > basis.n_modes
            else None,
        },
        "map": _map_facts(surrogate),
        "bound": _bound_facts(surrogate),
        "quantities": [] if surrogate.quantities is None else list(surrogate.quantities.names),
        "tolerance": surrogate.facts.get("tolerance"),
        "made": _plain(surrogate.facts),
    }


def model_rows(facts: Facts) -> dict[str, str]:
    """A surrogate as a table of two columns."""
    rows: dict[str, str] = {}
    rows |= {name: str(facts[name]) for name in ("problem", "equation", "domain") if facts[name]}
    names = [range_text(**p) for p in facts["parameters"]]
    names += [f"{f['name']}: a function on the {f['on']}, {f['law']}" for f in facts["functions"]]
    rows["parameters"] = ", ".join(names) or "none"
    rows["answers"] = _answers_text(facts)
    if facts["quantities"]:
        rows["quantities"] = ", ".join(facts["quantities"])
    basis = facts["basis"]
    kept = "" if not basis["n_snapshots"] else f" from {basis['n_snapshots']} snapshots"
    error = "" if basis["held_out_error"] is None else f", projection error {basis['held_out_error']:.1e}"
    rows["basis"] = f"{facts['n_modes']} modes by {basis['method']}{kept}{error}"
    rows["map"] = _map_text(facts["map"])
    rows["error bound"] = _bound_text(facts["bound"])
    rows |= _account_rows(facts)
    made = facts["made"]
    short = [f"{k.replace('_', ' ')} {_number(v)}" for k, v in made.items() if k not in _SAID and _is_short(v)]
    if short:
        rows["made"] = ", ".join(short)
    if isinstance(made.get("made_with"), dict):
        rows["made with"] = ", ".join(f"{name} {version}" for name, version in made["made_with"].items())
    if facts["file"]:
        rows["file"] = f"{facts['file']}, {facts['n_bytes'] / 1e6:.3g} MB"
    return rows


def _account_rows(facts: Facts) -> dict[str, str]:
    """What learning promised and found, where the surrogate was learned to a tolerance."""
    rows: dict[str, str] = {}
    account, measured = facts["made"].get("learn"), facts["made"].get("measured")
    if not isinstance(account, dict):
        account = {}
    if facts["tolerance"] is not None:
        met = {"True": ", met", "False": ", NOT met"}.get(str(account.get("met")), "")
        rows["promised"] = f"relative error {_number(facts['tolerance'])} against the discrete solution{met}"
    if isinstance(measured, dict) and {"mean", "max", "n"} <= measured.keys():
        rows["measured"] = (
            f"mean {_size(measured['mean'])}, max {_size(measured['max'])} on {measured['n']} fresh solves"
        )
    if account.get("discretisation_error") is not None:
        rows["discretisation error"] = f"about {_size(account['discretisation_error'])}"
    if account.get("solves") is not None:
        rows["full solves"] = str(account["solves"])
    return rows


def model_html(surrogate: Surrogate) -> str:
    """A surrogate for a notebook: the equations in LaTeX where they are known, then the table."""
    rows = model_rows(model_facts(surrogate))
    formulas = [text for text in str(surrogate.facts.get("latex") or "").split(r" \\ ") if text]
    if not all(map(is_plain_latex, formulas)):
        formulas = []
    if formulas:
        rows.pop("equation", None)
    return card(f"surrogate of {rows.pop('problem', 'data')}", rows, formulas=formulas)


def answer_html(answer: Answer) -> str:
    """An answer for a notebook; values and bounds are computed for a single parameter only."""
    surrogate, names = answer.surrogate, answer.surrogate.parameters.names
    rows = {"values": f"{'' if answer.single else f'{len(answer.mus)} × '}{surrogate.n_values}"}
    outside = int(np.count_nonzero(answer.extrapolated))
    if outside:
        rows["outside the box"] = f"{outside} of {len(answer.mus)}: nothing is promised there"
    rows["by"] = ", ".join(dict.fromkeys([answer.method] if isinstance(answer.method, str) else answer.method))
    if not answer.single:
        return card(f"answers to {len(answer.mus)} parameters", rows)
    rows |= field_rows({", ".join(surrogate.layout.names): answer.values})
    if surrogate.has_bounds:
        words = bound_words(surrogate, rigorous=bool(answer.bounds.rigorous.all()))
        rows["relative error"] = error_text(float(answer.bound), words)
    rows |= {name: f"{value:.6g}" for name, value in answer.quantities.items() if isinstance(value, float)}
    at = ", ".join(f"{name}={value:g}" for name, value in zip(names, answer.mus[0], strict=False))
    return card(f"answer at {at or 'a function'}", rows)


def error_text(bound: float, words: str) -> str:
    """A bound of a relative error in one line; `words` say how sure it is.

    >>> error_text(1e-3, "proven"), error_text(float("inf"), "0.9 likely")
    ('at most 1.0e-03 against its solver, proven', 'no bound here')
    """
    return f"at most {bound:.1e} against its solver, {words}" if np.isfinite(bound) else "no bound here"


def bound_words(surrogate: Surrogate, *, rigorous: bool) -> str:
    """What a bound of its errors means; `rigorous` where the constant behind it is proven."""
    if surrogate.reduced is not None:
        return "proven" if rigorous else "from the residual, with a stability constant that is estimated"
    if surrogate.conformal is not None:
        kind = f"{surrogate.conformal.level:.3g} likely, by" if surrogate.conformal.drawn else "estimated from"
        return f"{kind} {surrogate.conformal.n_calibration} solves kept aside"
    return "not known"


def _map_facts(surrogate: Surrogate) -> Facts:
    out: Facts = {"kind": map_name(surrogate.map)}
    program = program_of(surrogate.map)
    if program is not None:
        out |= {"widths": list(program.widths), "activation": None}
        out |= {"n_weights": program.n_weights, "dtype": str(program.dtype)}
        for op in program.all_operations:
            out |= op.facts
    for name in ("validation_error", "error"):
        if isinstance(getattr(surrogate.map, name, None), float):
            out[name] = getattr(surrogate.map, name)
    return out


def _map_text(facts: Facts) -> str:
    words = [facts["kind"]]
    if "widths" in facts and "n_terms" not in facts:
        shape = "-".join(map(str, facts["widths"]))
        words.append(f"{shape}{' ' + facts['activation'] if facts['activation'] else ''}")
    if "n_terms" in facts:
        words.append(f"{facts['n_terms']} terms of degree {facts['degree']}")
    if "n_centres" in facts:
        words.append(f"{facts['n_centres']} samples, {facts['kernel']}")
    if "n_weights" in facts:
        words.append(f"{facts['n_weights']} weights, {facts['dtype']}")
    if "validation_error" in facts:
        words.append(f"validation error {facts['validation_error']:.1e}")
    return ", ".join(words)


def _bound_facts(surrogate: Surrogate) -> Facts:
    reduced, conformal = surrogate.reduced, surrogate.conformal
    if reduced is not None:
        words = "from the residual; each answer says whether its bound is proven"
        return {"kind": "certificate", "n_anchors": reduced.certificate.n_anchors, "meaning": words}
    if conformal is not None:
        about = {"level": conformal.level, "n_calibration": conformal.n_calibration, "quantile": conformal.quantile}
        return {"kind": "conformal" if conformal.drawn else "estimated", **about, "meaning": conformal.meaning}
    return {"kind": None, "meaning": bound_words(surrogate, rigorous=False)}


def _bound_text(facts: Facts) -> str:
    if facts["kind"] == "certificate":
        return f"for each answer, from its residual; constants known at {facts['n_anchors']} parameters"
    if facts["kind"] == "conformal":
        return (
            f"{facts['quantile']:.1e} relative with probability {facts['level']:g}, by {facts['n_calibration']} solves"
        )
    if facts["kind"] == "estimated":
        return f"{facts['quantile']:.1e} relative, estimated from {facts['n_calibration']} solves"
    return "none: nothing is known about the errors"


def _answers_text(facts: Facts) -> str:
    names = ", ".join(facts["unknowns"])
    if facts["n_nodes"] is None:
        return f"{facts['n_values']} values of {names}"
    inner = facts["n_interior"]
    nodes = f"{facts['n_nodes']} = {inner} interior + {facts['n_nodes'] - inner} boundary nodes"
    span = facts["times"]
    when = f", at {span['count']} times {facts['time']} from {span['first']:g} to {span['last']:g}" if span else ""
    return f"{names} at {nodes} in {facts['dimension']}-D ({', '.join(facts['coordinates'])}){when}"


def _span(times: np.ndarray) -> Facts:
    return {"first": float(times[0]), "last": float(times[-1]), "count": len(times)}


def _is_short(value: Any) -> bool:
    return not isinstance(value, dict | list) and len(str(value)) <= 40


def _number(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _size(value: Any) -> str:
    """An error in short; what a file has instead of one, as it is."""
    return f"{value:.1e}" if isinstance(value, int | float) else str(value)


def _plain(value: Any) -> Any:
    """Nothing but what JSON knows."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return value.item()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
