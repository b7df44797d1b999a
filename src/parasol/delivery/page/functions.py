"""Function parameters on the page: their modes, and samples to choose from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parasol.checks import check_count, check_finite, check_shape
from parasol.delivery.page.bounds import Span
from parasol.errors import InputError
from parasol.runtime.distributions import largest_square
from parasol.runtime.surrogate import Surrogate

_N_SAMPLES = 8  # functions to choose from


@dataclass(frozen=True, eq=False)
class PageFunction:
    """A function parameter: its modes, and samples (n_samples, n_modes) in their coordinates."""

    name: str
    on: str
    span: Span
    samples: np.ndarray
    given: bool  # by the caller, not drawn at random
    largest_square: float  # of its coordinates, where a bound that was calibrated on its distribution still counts


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
