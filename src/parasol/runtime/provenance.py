"""How a surrogate was made, read from its facts: the one place that knows their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from parasol.runtime.plain import Plain

_AT_BOUNDARY = ("normals", "part", "on_part", "corners", "spacing")  # arrays of a NodesRecord


@dataclass(frozen=True)
class Measured:
    """Relative errors of a surrogate at n full solves that nothing was made from; the mean of the projection's."""

    n: int
    mean: float
    max: float
    projection: float | None = None


@dataclass(frozen=True, eq=False)
class NodesRecord:
    """What it takes, besides points and stencils, to make a discretisation again.

    A file may hold anything there, of any shape: `learning.rebuilding` sees whether it fits the problem.
    """

    neumann: str
    step: float | None
    integrator: str | None
    normals: ArrayLike  # (n_boundary, dimension)
    part: ArrayLike  # (n_boundary,)
    on_part: ArrayLike  # (n_boundary, n_parts)
    spacing: ArrayLike  # (n_boundary,)
    corners: ArrayLike = ()  # rows (node, part, normal): only at corners has a part another normal than the node
    at_interfaces: ArrayLike = ()  # rows (node, spacing) of the nodes on interfaces between regions
    elements: Plain | None = None  # the triangles, where there are elements instead of stencils

    def to_dict(self) -> Plain:
        """Numbers, texts and lists for a file."""
        boundary = {name: np.asarray(getattr(self, name)).tolist() for name in _AT_BOUNDARY}
        return {
            "neumann": self.neumann,
            "step": self.step,
            "integrator": self.integrator,
            "boundary": boundary,
            "interfaces": np.asarray(self.at_interfaces).tolist(),
            "elements": self.elements,
        }

    @classmethod
    def of(cls, held: Plain | None) -> NodesRecord | None:
        """Read `to_dict`; None where there is nothing. Files of 0.1.0 have no corners."""
        if held is None:
            return None
        boundary = {"corners": (), **(_typed(held, "boundary", dict) or {})}
        return cls(
            str(held.get("neumann")),
            _typed(held, "step", float),
            _typed(held, "integrator", str),
            **{name: boundary.get(name, "missing") for name in _AT_BOUNDARY},
            at_interfaces=_typed(held, "interfaces", list) or (),
            elements=_typed(held, "elements", dict),
        )


@dataclass(frozen=True)
class Provenance:
    """What the facts of a surrogate say of the problem behind it and of how it was learned; None where they do not.

    Facts come with a file and may hold anything: what has another type than it should counts as not known.
    """

    problem: str | None = None
    equation: str | None = None  # several are joined by "; "
    latex: str | None = None  # several are joined by r" \\ "
    domain: str | None = None
    tolerance: float | None = None  # promised
    measured: Measured | None = None
    errors: Mapping[str, float] = field(default_factory=dict)  # others that were measured when it was made, by name
    met: bool | None = None  # whether learning reached the tolerance
    total: bool = False  # whether the tolerance includes the discretisation
    solves: int | None = None
    discretisation_error: float | None = None
    refined_nodes: bool = False
    fingerprint: str | None = None  # of the problem
    nodes: NodesRecord | None = None

    @classmethod
    def of(cls, facts: Plain) -> Provenance:
        """Read the facts of a surrogate.

        >>> Provenance.of({"problem": "heat", "learn": {"met": True, "solves": "many"}}).solves is None
        True
        """
        learned = _typed(facts, "learn", dict) or {}
        errors = _typed(facts, "measured", dict) or {}
        mean, largest, projection = (_typed(errors, name, float) for name in ("mean", "max", "projection"))
        n = _typed(errors, "n", int)
        return cls(
            **{name: _typed(facts, name, str) for name in ("problem", "equation", "latex", "domain", "fingerprint")},
            tolerance=_typed(facts, "tolerance", float),
            measured=None if mean is None or largest is None or n is None else Measured(n, mean, largest, projection),
            errors={
                name: float(facts[name]) for name in facts if "error" in name and _typed(facts, name, float) is not None
            },
            met=_typed(learned, "met", bool),
            total=bool(_typed(learned, "total", bool)),
            solves=_typed(learned, "solves", int),
            discretisation_error=_typed(learned, "discretisation_error", float),
            refined_nodes=bool(_typed(learned, "refined_nodes", bool)),
            nodes=NodesRecord.of(_typed(facts, "rebuild", dict)),
        )

    @property
    def words(self) -> dict[str, str]:
        """Problem, equation and domain, as far as they are known."""
        known = {"problem": self.problem, "equation": self.equation, "domain": self.domain}
        return {name: text for name, text in known.items() if text}


def _typed(values: Plain, name: str, kind: type) -> Any:
    value = values.get(name)
    value = value.item() if isinstance(value, np.generic) else value
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value if isinstance(value, kind) and (kind is not int or not isinstance(value, bool)) else None
