"""The facts about an exported model: as named plain values for JSON, as short texts for people."""

from __future__ import annotations

from dataclasses import asdict

from parasol.delivery.onnx_export import Export
from parasol.report.plain import Facts


def export_facts(made: Export) -> Facts:
    """What was exported, and how far it is from Python."""
    return asdict(made) | {"path": str(made.path)}


def export_rows(facts: Facts) -> dict[str, str]:
    """An export as a table of two columns."""
    inner = "" if facts["map_dtype"] == facts["dtype"] else f", {facts['map_dtype']} up to the coefficients"
    return {
        "input": f"mu (n, {facts['n_parameters']})",
        "output": f"u (n, {facts['n_values']})",
        "numbers": facts["dtype"] + inner,
        "difference": f"{facts['difference']:.1e} of the largest value, in {facts['checked_with']}",
        "size": f"{facts['n_bytes'] / 1e6:.3g} MB",
    }
