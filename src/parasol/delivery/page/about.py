"""What the page says of its model besides numbers: the problem in words, sizes, how it was made."""

from __future__ import annotations

import math

from parasol import __version__
from parasol.pde.model import Model
from parasol.pde.text import problem_words
from parasol.runtime.plain import Plain
from parasol.runtime.program import map_words
from parasol.runtime.provenance import Provenance
from parasol.runtime.surrogate import Surrogate

_ELSEWHERE = ("problem", "equation", "latex", "fingerprint", "rebuild")  # shown above, or of no use to a reader


def about(surrogate: Surrogate) -> Plain:
    """Name, equations, coordinates and facts of a surrogate, as plain data."""
    facts, solver, layout = surrogate.facts, surrogate.solver, surrogate.layout
    if isinstance(solver, Model):
        facts = problem_words(solver.problem) | facts
    provenance = Provenance.of(facts)
    return {
        "name": provenance.problem or "",
        "equations": [text for text in (provenance.equation or "").split("; ") if text],
        "coordinates": list(layout.axes) or ["index"],
        "time": layout.time,
        "n_modes": surrogate.basis.n_modes,
        "map": map_words(surrogate.map),
        "parasol": __version__,
        "facts": _flat({key: value for key, value in facts.items() if key not in _ELSEWHERE}),
    }


def _flat(facts: Plain, before: str = "") -> dict[str, str | int | float]:
    """Facts and the facts inside facts, one level of names.

    >>> _flat({"recipe": "Linear", "measured": {"mean": 0.5, "history": [1, 2]}})
    {'recipe': 'Linear', 'measured mean': 0.5}
    """
    out: dict[str, str | int | float] = {}
    for key, value in facts.items():
        name = f"{before}{key}".replace("_", " ")
        if isinstance(value, dict):
            out |= _flat(value, f"{name} ")
        elif isinstance(value, list | tuple) and value and all(isinstance(item, str) for item in value):
            out[name] = ", ".join(value)
        elif isinstance(value, bool):
            out[name] = "yes" if value else "no"
        elif isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
            out[name] = value
    return out
