"""What the page knows about its errors: the certificate in few rows, or a level of probability."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from parasol.delivery.page.pack import Pack
from parasol.delivery.page.programs import formula_tree
from parasol.errors import FormulaError
from parasol.runtime.certificate import LEAST, SAFETY
from parasol.runtime.provenance import Provenance
from parasol.runtime.reduced import ReducedModel
from parasol.runtime.residuals import WeightedResidual
from parasol.runtime.surrogate import Surrogate
from parasol.runtime.theta import Theta


@dataclass(frozen=True, eq=False)
class Span:
    """A function parameter as the page knows it: values (n_modes, n_points) of its modes, from `place` on in μ."""

    place: int
    modes: np.ndarray


@dataclass(frozen=True, eq=False)
class Spanned:
    """Rows of an affine sum that are values of a function, at `places` in μ, times fixed `factors`."""

    function: int  # which of the spans
    places: np.ndarray
    factors: np.ndarray


def bound_program(surrogate: Surrogate, spans: list[Span], pack: Pack, room: int) -> dict:
    """The bound of a surrogate for numbers.js; a certificate only where it takes no more than `room` characters."""
    reason = ""
    if surrogate.reduced is not None:
        mine = Pack()
        mine.texts = list(pack.texts)
        try:
            found = _certificate(surrogate.reduced, spans, mine)
            if mine.size - pack.size <= room:
                pack.texts = mine.texts
                return found
            reason = f"The certificate takes {1e-6 * (mine.size - pack.size):.1f} MB and was left out of this page."
        except FormulaError as error:  # a coefficient that a page cannot compute
            reason = f"The certificate was left out of this page: {error}"
    if surrogate.conformal is not None and np.isfinite(surrogate.conformal.quantile):
        bound = surrogate.conformal
        return {
            "kind": "conformal",
            "quantile": bound.quantile,
            "level": bound.level if bound.drawn else None,
            "meaning": bound.meaning,
            "reason": reason,
        }
    return {"kind": "none", "reason": reason, "measured": _measured(surrogate.provenance)}


def _measured(made: Provenance) -> dict[str, float]:
    """Errors that were measured when it was made, by name."""
    errors = {} if made.measured is None else {f"{name} error": value for name, value in asdict(made.measured).items()}
    named = {**made.errors, **errors}
    return {
        name.replace("_", " "): value
        for name, value in named.items()
        if name != "n error" and value is not None and np.isfinite(value)
    }


def _certificate(reduced: ReducedModel, spans: list[Span], pack: Pack) -> dict:
    known = reduced.certificate
    spanned = _spanned(reduced.load_theta, spans)
    return {
        "kind": "certificate",
        "operators": _groups(reduced.operator_theta, {}, pack),
        "loads": _groups(reduced.load_theta, spanned, pack),
        "thetas": pack.add(known.thetas),
        "norms": pack.add(known.norms),
        "sigmas": pack.add(known.sigmas),
        "exact": bool(known.exact),
        "least": LEAST,  # one home for the rule by which a constant counts as proven
        "safety": SAFETY,
        "residuals": [_residual(residual, reduced.load_theta, spanned, spans, pack) for residual in reduced.residuals],
    }


def _spanned(theta: Theta, spans: list[Span]) -> dict[int, Spanned]:
    """The groups of rows, by number, in which a function's few coordinates can stand for its many values."""
    found = {}
    for g, (function, places) in enumerate(theta.rows):
        if places is None or function.places:
            continue
        for f, span in enumerate(spans):
            inside = (places >= span.place) & (places < span.place + span.modes.shape[1])
            if inside.all() and len(places) > len(span.modes):
                found[g] = Spanned(f, places, function(np.zeros(0), 0.0))
    return found


def _groups(theta: Theta, spanned: dict[int, Spanned], pack: Pack) -> list[dict]:
    """The functions of an affine sum: formulas, coefficients at single rows, spanned functions."""
    out: list[dict] = [{"formulas": [formula_tree(formula) for formula in theta.formulas]}]
    for g, (function, places) in enumerate(theta.rows):
        if g in spanned:
            known = spanned[g]
            span = {"function": known.function, "places": pack.places(known.places), "factors": pack.add(known.factors)}
            out.append({"span": span})
            continue
        rows = {
            "tree": formula_tree(function.function),
            "columns": pack.add(np.array(function.columns).reshape(len(function.columns), -1)),
            "scalars": list(function.places),
            "places": None if places is None else pack.places(places),
        }
        out.append({"rows": rows})
    return out


def _residual(
    residual: WeightedResidual, theta: Theta, spanned: dict[int, Spanned], spans: list[Span], pack: Pack
) -> dict:
    """The triangle, its columns one after the other; columns of spanned functions become those of their modes."""
    triangle, n_loads = residual.triangle, residual.n_loads
    if spanned:
        start = len(theta.formulas)
        loads = [triangle[:, :start]]
        for g, (function, _) in enumerate(theta.rows):
            part = triangle[:, start : start + len(function.columns[0])]
            start += part.shape[1]
            if g in spanned:
                known, span = spanned[g], spans[spanned[g].function]
                part = (part * known.factors) @ span.modes[:, known.places - span.place].T
            loads.append(part)
        n_loads = sum(part.shape[1] for part in loads)
        triangle = np.linalg.qr(np.hstack([*loads, triangle[:, residual.n_loads :]]))[1]
    n_rows, n_columns = triangle.shape
    columns = [triangle[: min(j + 1, n_rows), j] for j in range(n_columns)]
    return {
        "n_rows": n_rows,
        "n_loads": n_loads,
        "triangle": pack.add(np.concatenate(columns)),
        "load_noise": pack.add(residual.noise[: residual.n_loads]),
        "noise": pack.add(residual.noise[residual.n_loads :]),
        "precision": residual.precision,
    }
