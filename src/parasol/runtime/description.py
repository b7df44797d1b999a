"""A surrogate described in plain values: what it answers, how large it is, what is known of its errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from parasol.runtime.program import map_name, program_of
from parasol.runtime.surrogate import Surrogate

Plain = dict[str, Any]  # numbers, texts, truth values, None, and lists and dicts of these: what JSON knows


def description(surrogate: Surrogate, path: str | Path | None = None) -> Plain:
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
        "functions": [{"name": f.name, "on": f.on, "law": str(f.distribution)} for f in space.functions],
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


def bound_words(surrogate: Surrogate, *, rigorous: bool) -> str:
    """What a bound of its errors means; `rigorous` where the constant behind it is proven."""
    if surrogate.reduced is not None:
        return "proven" if rigorous else "from the residual, with a stability constant that is estimated"
    if surrogate.conformal is not None:
        kind = f"{surrogate.conformal.level:.3g} likely, by" if surrogate.conformal.drawn else "estimated from"
        return f"{kind} {surrogate.conformal.n_calibration} solves kept aside"
    return "not known"


def _map_facts(surrogate: Surrogate) -> Plain:
    out: Plain = {"kind": map_name(surrogate.map)}
    program = program_of(surrogate.map)
    if program is not None:
        out |= {"widths": list(program.widths), "activation": None}
        out |= {"n_weights": program.n_weights, "dtype": str(program.dtype)}
        for op in program.all_operations:
            out |= op.facts
    error = getattr(surrogate.map, "error", getattr(surrogate.map, "validation_error", None))
    if isinstance(error, float):
        out["validation_error"] = error  # of samples not fitted to, by which it was chosen
    return out


def _bound_facts(surrogate: Surrogate) -> Plain:
    reduced, conformal = surrogate.reduced, surrogate.conformal
    if reduced is not None:
        words = "from the residual; each answer says whether its bound is proven"
        return {"kind": "certificate", "n_anchors": reduced.certificate.n_anchors, "meaning": words}
    if conformal is not None:
        about = {"level": conformal.level, "n_calibration": conformal.n_calibration, "quantile": conformal.quantile}
        return {"kind": "conformal" if conformal.drawn else "estimated", **about, "meaning": conformal.meaning}
    return {"kind": None, "meaning": bound_words(surrogate, rigorous=False)}


def _span(times: np.ndarray) -> Plain:
    return {"first": float(times[0]), "last": float(times[-1]), "count": len(times)}


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
