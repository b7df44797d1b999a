"""What the page knows about its errors: the reduced model in few numbers, or a level of probability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from parasol.delivery.page.pack import Pack
from parasol.delivery.page.programs import formula_tree, map_program
from parasol.errors import FormulaError, InputError
from parasol.runtime.certificate import LEAST, SAFETY, Certificate
from parasol.runtime.duals import RIDGE, TYPICAL, WIDTH, RandomDuals
from parasol.runtime.jackknife import LEAST as LEAST_FIELD
from parasol.runtime.jackknife import Jackknife
from parasol.runtime.min_theta import MinTheta
from parasol.runtime.provenance import Provenance
from parasol.runtime.quantities import Quantities
from parasol.runtime.reduced import ReducedModel
from parasol.runtime.residuals import WeightedResidual
from parasol.runtime.surrogate import Surrogate
from parasol.runtime.theta import Theta

_ANSWERING = 10_000_000  # characters of a reduced model that answers in place of a map


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


def bound_program(surrogate: Surrogate, spans: list[Span], pack: Pack, room: int) -> tuple[dict | None, dict]:
    """The reduced model of a surrogate for reduced.js, and its bound for numbers.js.

    Triangles prove (and answer where there is no map), duals estimate: of both as much as takes no more than `room`
    characters, rather the duals than the proof. Without any of them there is no reduced model.
    """
    reason, reduced, answers, largest = "", surrogate.reduced, surrogate.map is None, 0
    for triangles, duals in _choices(reduced, answers):
        assert reduced is not None
        mine = Pack()
        mine.texts = list(pack.texts)
        try:
            payload = _reduced(reduced, spans, mine, triangles=triangles, duals=duals, wanted=surrogate.quantities)
        except FormulaError as error:  # a coefficient that a page cannot compute
            reason = f"The error bound was left out of this page: {error}"
            break
        size = mine.size - pack.size
        largest = max(largest, size)
        proves = triangles and payload["certificate"] is not None
        if size <= (max(room, _ANSWERING) if answers and not duals else room):
            pack.texts = mine.texts
            reason = _left_out(reduced, proves, duals, largest)
            if proves or duals:
                return payload, {"kind": "certificate" if proves else "probable", "reason": reason}
            return payload, {"kind": "none", "reason": reason, "measured": _measured(surrogate.provenance)}
        reason = f"It takes {1e-6 * size:.1f} MB." if answers else _left_out(reduced, False, False, largest)
    if answers:
        raise InputError(
            f"the answers are those of the reduced model, which a page cannot compute. {reason} Use parasol serve, or fit a "
            "map: ps.fit(surrogate.reduced, ...)."
        )
    if surrogate.conformal is not None and np.isfinite(surrogate.conformal.quantile):
        bound, difficulty = surrogate.conformal, surrogate.difficulty
        return None, {
            "kind": "conformal",
            "quantile": bound.quantile,
            "difficulty": difficulty
            and map_program((*surrogate.features.operations, *difficulty.program.operations), pack),
            "jackknife": _jackknife(surrogate.jackknife, pack),
            "level": bound.level if bound.drawn else None,
            "meaning": bound.meaning,
            "reason": reason,
        }
    return None, {"kind": "none", "reason": reason, "measured": _measured(surrogate.provenance)}


def _jackknife(fits: Jackknife | None, pack: Pack) -> dict | None:
    """Fits without one of the samples, and the norms of fields: see `Jackknife.bounds`."""
    return fits and {
        "members": [map_program(member.program.operations, pack) for member in fits.members],
        "norms": [pack.add(norm) for norm in (() if fits.norms is None else fits.norms)],
        "least": LEAST_FIELD,
    }


def _choices(reduced: ReducedModel | None, answers: bool) -> list[tuple[bool, bool]]:
    """Whether to take triangles, and duals, the most first; what answers needs its triangles."""
    if reduced is None:
        return []
    proves = reduced.certificate is not None
    choices = [(proves or answers, True), (answers, True)] if reduced.duals is not None else []
    return list(dict.fromkeys([*choices, *[(True, False)] * (proves or answers)]))


def _left_out(reduced: ReducedModel, proves: bool, duals: bool, size: int) -> str:
    missing = ["certificate"] if reduced.certificate is not None and not proves else []
    missing += ["estimate of the error"] if reduced.duals is not None and not duals else []
    words = f"Left out to keep this page small: {', '.join(missing)} ({1e-6 * size:.1f} MB in all)."
    return words if missing else ""


def _measured(provenance: Provenance) -> dict[str, float]:
    """Errors that were measured when it was made, by name."""
    measured = provenance.measured
    errors = {} if measured is None else {f"{name} error": value for name, value in asdict(measured).items()}
    named = {**provenance.errors, **errors}
    return {
        name.replace("_", " "): value
        for name, value in named.items()
        if name != "n error" and value is not None and np.isfinite(value)
    }


def _reduced(
    reduced: ReducedModel, spans: list[Span], pack: Pack, *, triangles: bool, duals: bool, wanted: Quantities | None
) -> dict:
    known, theta = reduced.certificate, reduced.load_theta
    spanned = _spanned(theta, spans)

    def of_modes(columns: np.ndarray) -> np.ndarray:
        return _of_modes(columns, theta, spanned, spans)

    return {
        "operators": _groups(reduced.operator_theta, {}, pack),
        "loads": _groups(theta, spanned, pack),
        "certificate": None if known is None else _certificate(known, pack),
        "nearest": None if known is not None else _nearest(reduced, pack),
        "residuals": [_residual(residual, of_modes if triangles else None, pack) for residual in reduced.residuals],
        "strong": [_residual(residual, of_modes, pack) for residual in reduced.strong] if triangles else [],
        "duals": _duals(reduced.duals, of_modes, wanted, pack) if duals and reduced.duals is not None else None,
    }


def _certificate(known: Certificate | MinTheta, pack: Pack) -> dict:
    """The constants of the bound."""
    if isinstance(known, MinTheta):
        return {"thetas": pack.add(known.thetas), "embeddings": pack.add(known.embeddings)}
    return {
        "thetas": pack.add(known.thetas),
        "norms": pack.add(known.norms),
        "sigmas": pack.add(known.sigmas),
        "centres": None if known.centres is None else pack.add(known.centres),
        "own": None if known.own is None else pack.add(known.own.astype(float)),
        "multiples": list(known.multiples),
        "exact": bool(known.exact),
        "least": LEAST,  # one home for the rule by which a constant counts as proven
        "safety": SAFETY,
    }


def _nearest(reduced: ReducedModel, pack: Pack) -> dict:
    """What decides between the preconditioners where no constants do: see `RandomDuals.nearest`."""
    duals, places = reduced.duals, reduced._preconditioners
    assert duals is not None
    return {"squares": pack.add(duals.normal[:, places, places]), "right": pack.add(duals.right[:, places])}


def _duals(
    duals: RandomDuals, of_modes: Callable[[np.ndarray], np.ndarray], wanted: Quantities | None, pack: Pack
) -> dict:
    """The random duals and those of the quantities, columns of spanned functions as those of their modes."""

    def blocks(columns: np.ndarray) -> dict:
        n, m, n_columns = columns.shape
        return pack.add(of_modes(columns.reshape(n * m, n_columns)).reshape(n, m, -1))

    outputs = None
    if wanted is not None and duals.outputs is not None and duals.corrects(wanted.rows[:, 0]):
        outputs = {
            "blocks": blocks(duals.outputs),
            "tests": pack.add(duals.output_tests),
            "test_rows": pack.add(duals.test_rows),
            "slack": TYPICAL * duals.output_ratio / WIDTH,
        }
    return {
        "normal": pack.add(duals.normal),
        "right": pack.add(duals.right),
        "size": duals.size,
        "ridge": RIDGE,
        "blocks": blocks(duals.blocks),
        "outputs": outputs,
        "factor": WIDTH * duals.ratio,  # what the inverses leave of the identity comes on top
        "probability": duals.probability,
    }


def _spanned(theta: Theta, spans: list[Span]) -> dict[int, Spanned]:
    """The groups of rows, by number, in which a function's few coordinates can stand for its many values."""
    spanned = {}
    for g, (function, places) in enumerate(theta.rows):
        if places is None or function.places:
            continue
        for f, span in enumerate(spans):
            inside = (places >= span.place) & (places < span.place + span.modes.shape[1])
            if inside.all() and len(places) > len(span.modes):
                spanned[g] = Spanned(f, places, function(np.zeros(0), 0.0))
    return spanned


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
    if theta.fitted is not None:
        out.append({"fitted": map_program(theta.fitted.operations, pack)})
    return out


def _of_modes(columns: np.ndarray, theta: Theta, spanned: dict[int, Spanned], spans: list[Span]) -> np.ndarray:
    """Columns (n, Q_f + ...) of an affine form, those of spanned functions replaced by columns of their modes."""
    start = len(theta.formulas)
    parts = [columns[:, :start]]
    for g, (function, _) in enumerate(theta.rows):
        part = columns[:, start : start + len(function.columns[0])]
        start += part.shape[1]
        if g in spanned:
            known, span = spanned[g], spans[spanned[g].function]
            part = (part * known.factors) @ span.modes[:, known.places - span.place].T
        parts.append(part)
    return np.hstack([*parts, columns[:, start:]])


def _residual(residual: WeightedResidual, of_modes: Callable[[np.ndarray], np.ndarray] | None, pack: Pack) -> dict:
    """The noise, and with `of_modes` the triangle, its columns one after the other."""
    out = {
        "load_noise": pack.add(residual.noise[: residual.n_loads]),
        "noise": pack.add(residual.noise[residual.n_loads :]),
        "precision": residual.precision,
    }
    if of_modes is None:
        return out | {"triangle": None}
    triangle = of_modes(residual.triangle)
    if triangle.shape != residual.triangle.shape:  # columns were combined
        triangle = np.linalg.qr(triangle)[1]
    n_rows, n_columns = triangle.shape
    columns = [triangle[: min(j + 1, n_rows), j] for j in range(n_columns)]
    n_loads = n_columns - residual.n_terms * residual.n_modes
    return out | {"n_rows": n_rows, "n_loads": n_loads, "triangle": pack.add(np.concatenate(columns))}
