"""The facts about an answer of a surrogate: as named plain values for JSON, as short texts for people."""

from __future__ import annotations

from typing import Any

import numpy as np

from parasol.report.plain import Facts
from parasol.report.surrogates import error_text
from parasol.runtime.answer import Answer
from parasol.runtime.description import bound_words


def answer_facts(
    answer: Answer, *, bounds: bool = False, seconds: float, files: list[str], warnings: list[str]
) -> Facts:
    """What was asked, what was answered, how wrong it can be; of several parameters the extremes over all of them.

    With `bounds` an answer of which nothing is known is an error.
    """
    surrogate, layout = answer.surrogate, answer.surrogate.layout
    names = surrogate.parameters.names
    values = np.reshape(answer.values, (len(answer.mus), layout.n_times, len(layout.names), -1))
    sizes = np.linalg.norm(answer.coefficients, axis=1)  # the basis is orthonormal: that of the whole field
    found = answer.bounds if bounds or surrogate.has_bounds else None
    return {
        "problem": surrogate.facts.get("problem"),
        "n_samples": len(answer.mus),
        "parameters": {name: _range(answer.mus[:, j]) for j, name in enumerate(names)},
        "functions": [f.name for f in surrogate.parameters.functions],
        "n_values": surrogate.n_values,
        "n_times": None if layout.times is None else layout.n_times,
        "extrapolated": int(np.count_nonzero(answer.extrapolated)),
        "fields": {name: _range(values[:, :, i]) for i, name in enumerate(layout.names)},
        "norm": _range(sizes),
        "bound": None if found is None else _range(found.relative),
        "bound_is": bound_words(surrogate, rigorous=found is not None and bool(found.rigorous.all())),
        "quantities": {name: _range(value) for name, value in answer.quantities.items()},
        "quantity_bounds": {
            name: float(np.max(bound)) for name, bound in (answer.quantity_bounds if found else {}).items()
        },
        "seconds": seconds,
        "files": files,
        "warnings": warnings,
    }


def answer_rows(facts: Facts) -> dict[str, str]:
    """An answer as a table of two columns: what, and the fact about it in words."""
    rows = {"problem": str(facts["problem"])} if facts["problem"] else {}
    several = facts["n_samples"] > 1
    told = [f"{name} {_words(found)}" for name, found in facts["parameters"].items()]
    rows["parameters"] = ", ".join([*told, *[f"{name}, a function" for name in facts["functions"]]]) or "none"
    if several:
        rows["samples"] = str(facts["n_samples"])
    if facts["extrapolated"]:
        which = f"{facts['extrapolated']} of {facts['n_samples']}: " if several else ""
        rows["outside the box"] = f"{which}nothing is promised there"
    rows |= {name: f"from {r['minimum']:.6g} to {r['maximum']:.6g}" for name, r in facts["fields"].items()}
    rows["norm"] = f"{_words(facts['norm'])} of the whole field"
    if facts["bound"] is None:
        rows["relative error"] = "not known: there is no bound"
    else:
        rows["relative error"] = error_text(facts["bound"]["maximum"], facts["bound_is"])
    for name, found in facts["quantities"].items():
        bound = facts["quantity_bounds"].get(name)
        rows[name] = _words(found) + ("" if bound is None or np.isinf(bound) else f", off by at most {bound:.1e}")
    return rows | {"seconds": f"{facts['seconds']:.2g}"}


def _range(values: Any) -> Facts:
    return {"minimum": float(np.min(values)), "maximum": float(np.max(values))}


def _words(found: Facts) -> str:
    low, high = found["minimum"], found["maximum"]
    return f"{low:.6g}" if low == high else f"from {low:.6g} to {high:.6g}"
