"""All that a page computes with, from a surrogate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parasol.checks import check_count, check_finite, check_shape
from parasol.delivery.page.bounds import Span, bound_program
from parasol.delivery.page.lifting import lift_program
from parasol.delivery.page.mesh import make_mesh
from parasol.delivery.page.pack import Pack
from parasol.delivery.page.programs import formula_tree, map_program
from parasol.errors import InputError
from parasol.runtime.defects import Defects
from parasol.runtime.description import ranges
from parasol.runtime.distributions import largest_square
from parasol.runtime.products import MatrixProduct, Weights
from parasol.runtime.surrogate import Surrogate

_LARGEST = 5_000_000  # characters of a page that still takes its certificate along
_TEMPLATES = 100_000  # of them for what is not numbers
_N_SAMPLES = 8  # functions to choose from
_N_SLIDERS = 9  # modes of a function that can be moved
_N_SEEN, _N_LIFTED = 128, 16  # parameters looked at beforehand, and fields of them
_DIVERGING = 0.4  # how evenly values must lie about zero, as in other pictures


@dataclass(frozen=True, eq=False)
class PageFunction:
    """A function parameter: its modes, and samples (n_samples, n_modes) in their coordinates."""

    name: str
    on: str
    span: Span
    samples: np.ndarray
    given: bool  # by the caller, not drawn at random
    largest_square: float  # of its coordinates, where a bound that was calibrated on its distribution still counts


def contents(surrogate: Surrogate, samples, pack: Pack) -> dict[str, Any]:
    """The model for numbers.js and view.js; its arrays go into the pack."""
    layout, scalars = surrogate.layout, surrogate.parameters.answered.scalars
    modes = surrogate.basis.modes if surrogate.readout is None else surrogate.readout
    weights = surrogate.basis.weights if surrogate.readout is None else None
    n_nodes = len(modes) // (layout.n_times * len(layout.names))
    if layout.points is None:  # bare data: values in a row
        layout = replace(layout, points=np.arange(n_nodes, dtype=float)[:, None])
    functions = page_functions(surrogate, samples)
    coefficients = surrogate.coefficients(_seen(surrogate, functions))
    lifted = (coefficients[:_N_LIFTED] @ modes.T).reshape(-1, layout.n_times, len(layout.names), n_nodes)
    data: dict[str, Any] = {
        "parameters": ranges(scalars),
        "functions": _listed(functions, len(scalars), pack),
        "n_mu": surrogate.n_parameters,
        "map": None if surrogate.map is None else map_program(surrogate.operations, pack),
        "mesh": make_mesh(layout).program(pack),
        "lift": {
            "names": list(layout.names),
            "n_nodes": n_nodes,
            "times": [0.0] if layout.times is None else layout.times.tolist(),
            **lift_program(modes, weights, layout.n_times, _sizes(coefficients), pack),
        },
        "steady": layout.times is None,
        "diverging": _diverging(lifted),
        # a value is off by no more than the field is, over the root of its weight
        "least_weight": None if surrogate.readout is not None else _least(weights),
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
    spans = [function.span for function in functions]
    data["reduced"], data["bound"] = bound_program(surrogate, spans, pack, _LARGEST - _TEMPLATES - pack.size)
    return data


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


def page_functions(surrogate: Surrogate, samples) -> list[PageFunction]:
    """The function parameters in the order in which their values stand in a parameter vector."""
    layout, functions = surrogate.layout, surrogate.parameters.functions
    if not functions:
        if samples is not None:
            raise InputError("samples are for function parameters; this surrogate has none. Leave them out.")
        return []
    if layout.points is None or surrogate.readout is not None:
        raise InputError("a page of a function parameter needs the nodes. Explore the surrogate that was fitted.")
    given = samples is not None and np.ndim(samples) > 0
    if given and len(functions) > 1:
        raise InputError("samples can be given for one function parameter only. Give a number of them.")
    out, place = [], len(surrogate.parameters.scalars)
    for f in functions:
        points = layout.points[layout.n_interior :] if f.on == "boundary" else layout.points
        if given:
            modes, chosen = _coordinates(samples, len(points))
            vectors = [
                np.concatenate([surrogate.parameters.vector({}), row]) for row in np.asarray(samples, dtype=float)
            ]
            square = 0.0 if surrogate.distributions.unlike(np.array(vectors)).any() else largest_square(len(modes))
        else:
            count = _N_SAMPLES if samples is None else check_count(samples, "samples")
            modes = f.distribution.modes(points)
            chosen = np.random.default_rng(0).standard_normal((count, len(modes)))
            square = largest_square(len(modes))
        out.append(PageFunction(f.name, f.on, Span(place, modes), chosen, given, square))
        place += len(points)
    return out


def _coordinates(samples, n_points: int) -> tuple[np.ndarray, np.ndarray]:
    """Modes of given samples (n_samples, n_points), and the samples in units of standard deviations of their modes."""
    values = check_finite(check_shape(samples, (None, n_points), "samples"), "samples")
    left, sizes, modes = np.linalg.svd(values, full_matrices=False)
    kept = sizes > 1e-12 * np.max(sizes, initial=1e-300)
    root = np.sqrt(len(values))
    return modes[kept] * (sizes[kept] / root)[:, None], left[:, kept] * root


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


def _least(weights: Weights | None) -> float | None:
    """The least weight of a value, None where a matrix couples them."""
    if isinstance(weights, MatrixProduct):
        return None
    return 1.0 if weights is None else float(weights.min())
