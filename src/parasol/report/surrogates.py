"""A surrogate as a table of two columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from parasol.runtime.description import Plain
from parasol.runtime.parameters import ParameterRange

# what has a row of its own; other facts are shown under "made"
_SAID = ("problem", "equation", "latex", "domain", "tolerance")


def surrogate_rows(facts: Plain) -> dict[str, str]:
    """A surrogate as a table of two columns."""
    rows: dict[str, str] = {}
    rows |= {name: str(facts[name]) for name in ("problem", "equation", "domain") if facts[name]}
    names = [str(ParameterRange(**p)) for p in facts["parameters"]]
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


def _account_rows(facts: Plain) -> dict[str, str]:
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


def error_text(bound: float, words: str) -> str:
    """A bound of a relative error in one line; `words` say how sure it is.

    >>> error_text(1e-3, "proven"), error_text(float("inf"), "0.9 likely")
    ('at most 1.0e-03 against its solver, proven', 'no bound here')
    """
    return f"at most {bound:.1e} against its solver, {words}" if np.isfinite(bound) else "no bound here"


def _map_text(facts: Plain) -> str:
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


def _bound_text(facts: Plain) -> str:
    if facts["kind"] == "certificate":
        return f"for each answer, from its residual; constants known at {facts['n_anchors']} parameters"
    if facts["kind"] == "conformal":
        return (
            f"{facts['quantile']:.1e} relative with probability {facts['level']:g}, by {facts['n_calibration']} solves"
        )
    if facts["kind"] == "estimated":
        return f"{facts['quantile']:.1e} relative, estimated from {facts['n_calibration']} solves"
    return "none: nothing is known about the errors"


def _answers_text(facts: Plain) -> str:
    names = ", ".join(facts["unknowns"])
    if facts["n_nodes"] is None:
        return f"{facts['n_values']} values of {names}"
    inner = facts["n_interior"]
    nodes = f"{facts['n_nodes']} = {inner} interior + {facts['n_nodes'] - inner} boundary nodes"
    span = facts["times"]
    when = f", at {span['count']} times {facts['time']} from {span['first']:g} to {span['last']:g}" if span else ""
    return f"{names} at {nodes} in {facts['dimension']}-D ({', '.join(facts['coordinates'])}){when}"


def _is_short(value: Any) -> bool:
    return not isinstance(value, dict | list) and len(str(value)) <= 40


def _number(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _size(value: Any) -> str:
    """An error in short; what a file has instead of one, as it is."""
    return f"{value:.1e}" if isinstance(value, int | float) else str(value)
