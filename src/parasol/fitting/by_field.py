"""Several fields in one solution: one basis and map for all of them, or a basis and map for each where that errs less."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from parasol.checks import Progress
from parasol.fitting.calibration import difficulty_of
from parasol.fitting.choosing import BETTER, Choice, choose
from parasol.reduction.pod import pod
from parasol.runtime.basis import Basis
from parasol.runtime.features import Features, features_of
from parasol.runtime.operation import Operation
from parasol.runtime.operations import Affine, Log, Scale, Sum
from parasol.runtime.parameters import ParameterSpace
from parasol.runtime.plain import Plain
from parasol.runtime.program import Program, StoredMap, map_name, program_of
from parasol.runtime.surrogate import Surrogate


def fit_fields(
    basis: Basis,
    labels: np.ndarray,
    parameters: ParameterSpace,
    mus: np.ndarray,
    solutions: np.ndarray,
    group: np.ndarray | None = None,
    *,
    tolerance: float,
    rng: int = 0,
    progress: Progress = None,
) -> Surrogate:
    """A surrogate of fields, `labels` (n_values,), by the best maps: of one `basis`, or of one for each field to the tolerance.

    Both are compared by their errors on rows left out, in the inner product of the basis. One basis uses what fields have in common, which helps where
    samples are few. Bases of their own gain where fields depend on different parameters, or some are harder to predict: with a
    shared basis the hard one decides the map, and the modes that can be predicted, of all.
    """
    heard = (lambda _: None) if progress is None else progress
    samples: dict[str, Any] = {"group": group, "tolerance": tolerance, "rng": rng}
    whole = choose(basis, parameters, mus, solutions, **samples, progress=lambda done: heard(0.3 * done))
    parts: list[Choice] = []
    if not whole.best.at_floor(whole.rows):
        for label in range(int(labels.max()) + 1):
            here = labels == label
            own = pod(solutions[:, here], tolerance=tolerance, weights=basis.weights[here])  # type: ignore[index]
            parts.append(choose(own, parameters, mus, solutions[:, here], **samples))
            heard(0.3 + 0.3 * (label + 1) / (labels.max() + 1))
    seen = np.all([chosen.best.left_out for chosen in (whole, *parts)], axis=0)
    errors = np.sqrt(sum((part.errors * part.rows.sizes) ** 2 for part in parts)) / whole.rows.sizes
    fitting = {"rng": rng, "progress": lambda done: heard(0.6 + 0.4 * done)}
    if not parts or np.mean(errors[seen]) >= BETTER * np.mean(whole.errors[seen]):
        surrogate = whole.fit(parameters, mus, **fitting)
        return replace(surrogate, difficulty=whole.difficulty)
    own = [part.fit(parameters, mus, **fitting) for part in parts]
    joined, order = _joined_basis([part.basis for part in own], labels, basis)
    features = features_of(parameters, mus)
    facts = {**own[0].facts, "choice": {**_summary(parts), "one_basis": float(np.mean(whole.errors[seen]))}}
    facts["fit_seconds"] = sum(part.facts["fit_seconds"] for part in own)
    facts["logarithms"] = sorted({name for part in own for name in part.facts["logarithms"]})
    worst = np.max([part.errors for part in parts], axis=0)
    changed: dict[str, Any] = {"basis": joined, "features": features, "map": _joined_map(own, features, order)}
    expected = difficulty_of(features(mus)[seen], worst[seen], whole.rows.parts_of(seen))
    return replace(own[0], **changed, facts=facts, difficulty=expected)


def _summary(parts: list[Choice]) -> Plain:
    """The maps that were chosen, and each choice in the order of the fields."""
    maps = [part.facts["map"] for part in parts]
    return {"map": ", ".join(dict.fromkeys(maps)), "fields": [part.facts for part in parts]}


def _joined_basis(parts: list[Basis], labels: np.ndarray, whole: Basis) -> tuple[Basis, np.ndarray]:
    """Modes of one field that are zero in the others, by falling singular values, and the places they came from."""
    values = np.concatenate([part.singular_values[: part.n_modes] for part in parts])
    order = np.argsort(-values, kind="stable")
    modes, start = np.zeros((len(labels), len(values))), 0
    for label, part in enumerate(parts):
        modes[np.ix_(labels == label, np.arange(start, start + part.n_modes))] = part.modes
        start += part.n_modes
    total = sum(part.total_energy for part in parts)
    known: dict[str, Any] = {"singular_values": values[order], "total_energy": total, "method": "POD of each field"}
    known |= {"n_snapshots": whole.n_snapshots, "lost_energy": max(0.0, total - float(np.sum(values**2)))}
    return Basis(modes[:, order], whole.weights, **known), order


def _joined_map(parts: list[Surrogate], features: Features, order: np.ndarray) -> StoredMap:
    """One program that evaluates the map of each field and puts its coefficients in their places."""
    places, branches, start = np.argsort(order), [], 0
    for part in parts:
        program, n = program_of(part.map), part.basis.n_modes
        assert program is not None
        into = np.zeros((len(order), n))
        into[places[start : start + n], np.arange(n)] = 1.0
        *before, last = program.astype(np.float64).folded().operations
        if isinstance(last, Affine):
            ends = (Affine(into @ last.dense, None if last.bias is None else into @ last.bias),)
        else:
            ends = (last, Affine(into))
        branches.append((*_between(features, part.features), *before, *ends))
        start += n
    names = ", ".join(dict.fromkeys(map_name(part.map) for part in parts))
    return StoredMap(Program((Sum(tuple(branches)),)), names)


def _between(plain: Features, own: Features) -> tuple[Operation, ...]:
    """From the features of all fields to those of one, which has more logarithms; other columns stay as they are."""
    more = own.logs & ~plain.logs
    if not more.any():
        return ()
    back = Scale(np.where(more, 1 / plain.scale, 1.0), offset=np.where(more, plain.shift, 0.0))
    return (back, Log(np.flatnonzero(more)), Scale(np.where(more, own.scale, 1.0), np.where(more, own.shift, 0.0)))
