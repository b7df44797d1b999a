"""All that a page computes with, from a surrogate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from parasol.delivery.page.bounds import bound_program
from parasol.delivery.page.functions import PageFunction, page_functions
from parasol.delivery.page.lifting import lift_program
from parasol.delivery.page.mesh import make_mesh
from parasol.delivery.page.pack import Pack
from parasol.delivery.page.programs import formula_tree, map_program
from parasol.delivery.page.solves import full_solves
from parasol.runtime.defects import Defects
from parasol.runtime.descriptions import ranges
from parasol.runtime.layout import Layout
from parasol.runtime.parts import CalibratedParts
from parasol.runtime.products import MatrixProduct, Weights
from parasol.runtime.surrogate import Surrogate

_LARGEST = 5_000_000  # characters of a page that still takes its certificate along
_TEMPLATES = 100_000  # of them for what is not numbers
_N_SLIDERS = 9  # modes of a function that can be moved
_N_SEEN, _N_LIFTED = 128, 16  # parameters looked at beforehand, and fields of them
_MOVED = 0.1  # of the size of the domain, by which the picture is moved at most
_DIVERGING = 0.4  # how evenly values must lie about zero, as in other pictures


def contents(surrogate: Surrogate, samples, solves: int, pack: Pack) -> dict[str, Any]:
    """The model for numbers.js and view.js, with full solves to compare with; its arrays go into the pack."""
    layout, scalars = surrogate.layout, surrogate.parameters.answered.scalars
    modes = surrogate.basis.modes if surrogate.readout is None else surrogate.readout
    weights = surrogate.basis.weights if surrogate.readout is None else None
    n_nodes = len(modes) // (layout.n_times * len(layout.names))
    bare = layout.points is None
    if bare:  # values in a row
        layout = replace(layout, points=np.arange(n_nodes, dtype=float)[:, None])
    functions = page_functions(surrogate, samples)
    coefficients = surrogate.coefficients(_seen(surrogate, functions))
    lifted = (coefficients[:_N_LIFTED] @ modes.T).reshape(-1, layout.n_times, len(layout.names), n_nodes)
    data: dict[str, Any] = {
        "parameters": ranges(scalars),
        "functions": _listed(functions, len(scalars), pack),
        "n_mu": surrogate.n_parameters,
        "map": None if surrogate.map is None else map_program(surrogate.operations, pack),
        # bare data have no places between which they could be smooth
        "mesh": replace(make_mesh(layout), **({"smooth": False} if bare else {})).program(pack),
        "lift": {
            "names": list(layout.names),
            "n_nodes": n_nodes,
            "times": [0.0] if layout.times is None else layout.times.tolist(),
            **lift_program(modes, weights, layout.n_times, _sizes(coefficients), pack),
        },
        "steady": layout.times is None,
        "diverging": _diverging(lifted),
        "sizes": np.max(np.abs(lifted), axis=(0, 1, 3)).tolist(),  # of each unknown, usually
        # a value is off by no more than the field is, over the root of its weight; calibrated, by so many error scales
        "least_weight": None if surrogate.readout is not None else _least(weights, layout),
        "reach": _reach(surrogate.parts, layout),
    }
    data["quantities"] = _quantities(surrogate, pack)
    other = surrogate.scalars
    data["scalars"] = other and {
        "map": map_program(other.operations, pack),
        "quantities": _quantities(other, pack),
    }
    # the solver's own error: a program of its logarithm, by the coefficients, or one number for the whole box
    own, known = surrogate.discretisation, surrogate.provenance.discretisation_error
    data["discretisation"] = {"map": None, "defects": None, "constant": None if known is None else float(known)}
    if isinstance(own, Defects):
        data["discretisation"]["defects"] = {"changes": pack.add(own.changes), "sizes": pack.add(own.sizes)}
    elif own is not None:
        operations = (*surrogate.features.operations, *own.program.operations)
        data["discretisation"]["map"] = map_program(operations, pack)
    data["vectors"] = vectors(layout, lifted)
    data["solves"] = full_solves(surrogate, functions, solves, pack)
    spans = [function.span for function in functions]
    data["reduced"], data["bound"] = bound_program(surrogate, spans, pack, _LARGEST - _TEMPLATES - pack.size)
    return data


def vectors(layout: Layout, fields: np.ndarray) -> list[dict[str, Any]]:
    """Vectors of as many components as there are dimensions, and by how many times the picture is moved by each.

    Where nobody declared vectors, as many unknowns as there are dimensions may be one; the page offers it, no more.
    """
    dimension = 0 if layout.points is None else layout.points.shape[1]
    declared = layout.vectors or ((f"({', '.join(layout.names)})", len(layout.names)),)
    out, start = [], 0
    for name, n in declared:
        largest = float(np.max(np.abs(fields[:, :, start : start + n]), initial=0.0))
        if layout.points is not None and n == dimension > 1 and largest > 0:
            factor = _MOVED * float(np.max(np.ptp(layout.points, axis=0))) / largest
            power = 10.0 ** np.floor(np.log10(factor))
            times = power * max(k for k in (1, 2, 5) if k * power <= factor)
            out.append({"name": name, "first": start, "n": n, "factor": times, "declared": bool(layout.vectors)})
        start += n
    return out


def _quantities(surrogate: Surrogate, pack: Pack) -> dict[str, Any] | None:
    """Quantities as functionals of the coefficients; `factors` are those of calibrated bounds, one each."""
    wanted, parts = surrogate.quantities, surrogate.parts
    return wanted and {
        "names": list(wanted.names),
        "rows": pack.add(wanted.rows),
        "norms": pack.add(wanted.norms),
        "factors": None if parts is None or parts.quantities is None else parts.quantities.tolist(),
        "mixing": wanted.mixing
        and {
            "thetas": [formula_tree(formula) for formula in wanted.mixing.theta.formulas],
            "owners": wanted.mixing.owners.tolist(),
        },
    }


def _listed(functions: list[PageFunction], first: int, pack: Pack) -> list[dict]:
    """The functions for the page; `first` is the place of their coordinates among its inputs."""
    out = []
    for function in functions:
        n_modes = len(function.span.modes)
        out.append(
            {
                "name": function.name,
                "on": function.on,
                "input": first,
                "place": function.span.place,
                "modes": pack.add(function.span.modes),
                "samples": pack.add(function.samples),
                "n_sliders": min(_N_SLIDERS, n_modes),
                "given": function.given,
                "largest_square": function.largest_square,
            }
        )
        first += n_modes
    return out


def _seen(surrogate: Surrogate, functions: list[PageFunction]) -> np.ndarray:
    """Parameter vectors spread over the box, functions as drawn or given."""
    generator = np.random.default_rng(0)
    parts = [surrogate.parameters.answered.from_unit(generator.random((_N_SEEN, len(surrogate.parameters.scalars))))]
    for function in functions:
        rows = generator.integers(len(function.samples), size=_N_SEEN)
        parts.append(function.samples[rows] @ function.span.modes)
    return np.hstack(parts)


def _sizes(coefficients: np.ndarray) -> np.ndarray:
    """The usual size of each coefficient, none of them zero."""
    sizes = np.sqrt(np.mean(coefficients**2, axis=0))
    return np.maximum(sizes, 1e-12 * np.max(sizes, initial=1e-300))


def _diverging(fields: np.ndarray) -> list[bool]:
    """Whether the values of each unknown function lie evenly about zero, so that its colours should too."""
    low, high = fields.min(axis=(0, 1, 3)), fields.max(axis=(0, 1, 3))
    return [bool(a < 0 < b and min(-a, b) > _DIVERGING * max(-a, b)) for a, b in zip(low, high, strict=True)]


def _least(weights: Weights | None, layout: Layout) -> list[float] | None:
    """The least weight of a value of each unknown, None where a matrix couples them."""
    if isinstance(weights, MatrixProduct):
        return None
    if weights is None:
        return [1.0] * len(layout.names)
    return weights.reshape(layout.n_times, len(layout.names), -1).min(axis=(0, 2)).tolist()


def _reach(parts: CalibratedParts | None, layout: Layout) -> list[float] | None:
    """The largest factor of the band about the values of each unknown, see `Answer.band`; None where there is none."""
    if parts is None or parts.profile is None:
        return None
    return parts.profile.reshape(layout.n_times, len(layout.names), -1).max(axis=(0, 2)).tolist()
