"""Which parameters to solve for: designs in the parameter box, and disjoint parts for training and testing."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats
from scipy.stats import qmc

from parasol.checks import check_choice, check_count
from parasol.errors import InputError
from parasol.runtime.parameters import ParameterSpace, parameter_space
from parasol.runtime.ranges import ParameterRange

_DESIGNS = ("sobol", "edges", "latin", "halton", "random", "lattice", "distribution")
_SCALES = ("linear", "log")


def sample(
    space: Any,
    n_samples: int | Sequence[int],
    *,
    design: str = "sobol",
    scale: str | Mapping[str, str] | None = None,
    rng: int | np.random.Generator | None = 0,
) -> np.ndarray:
    """Parameter vectors (n_samples, n_parameters) that fill the box of a parameter space, a dict of ranges, a problem or a model.

    "sobol" is a scrambled Sobol sequence, best with n_samples a power of two; "edges" the same drawn towards the ends of
    the ranges, where interpolation errs most: the one for few full solves. "latin" is a Latin hypercube, "halton" a
    scrambled Halton sequence, "random" independent and uniform; "lattice" takes all combinations of equidistant values,
    ends included, first parameter slowest, of a whole power n_samples or of a count for every parameter. "distribution"
    draws each parameter from the distribution it was declared by, others uniformly: for Monte Carlo. Distances are
    measured on each parameter's own scale, or on `scale`: "linear" or "log" for all, or by name. Function parameters of
    a model are drawn from their distributions, whatever the design.

    >>> from parasol.pde.parameters import ParameterSpace, parameters
    >>> space = ParameterSpace(parameters(a=(1, 100, "log"), k=(0, 2)))
    >>> sample(space, (3, 2), design="lattice")[::2, 0]
    array([  1.,  10., 100.])
    >>> sample(space, 4).shape
    (4, 2)
    """
    check_choice(design, _DESIGNS, "design")
    box = space if isinstance(space, ParameterSpace | Mapping) else getattr(space, "parameters", None)
    if not isinstance(box, ParameterSpace | Mapping):
        raise InputError(f"space must be a parameter space, a problem or a model, got {type(space).__name__}.")
    box = parameter_space(box)
    inputs = getattr(space, "inputs", None)  # of a model
    if box.functions and inputs is None:
        raise InputError(
            f"the function parameter {box.functions[0].name!r} is drawn at nodes, which a {type(space).__name__} does not "
            "have. Sample the model: sample(discretize(problem, nodes), n_samples)."
        )
    rng = _generator(rng)
    scaled = _rescaled(box, scale)
    n_scalars = len(scaled.scalars)
    if design == "lattice":
        counts, n_samples = _lattice_counts(n_samples, n_scalars)
        scalars = scaled.grid(*counts) if n_scalars else np.empty((n_samples, 0))
    else:
        if not isinstance(n_samples, int | np.integer):
            raise InputError(
                f"n_samples={n_samples!r} with design={design!r} must be one whole number. "
                'Counts for every parameter need design="lattice".'
            )
        n_samples = check_count(n_samples, "n_samples")
        unit = _unit(n_samples, n_scalars, "random" if design == "distribution" else design, rng)
        scalars = scaled.from_unit(unit)
        if design == "distribution":
            for j, p in enumerate(scaled.scalars):
                if p.distribution:
                    scalars[:, j] = _quantiles(p, unit[:, j])
    return np.hstack([scalars, *[f.distribution.sample(n_samples, inputs.points(f), rng) for f in box.functions]])  # type: ignore[union-attr]


def split(
    mus: Any, /, *, rng: int | np.random.Generator | None = None, **sizes: float | str | None
) -> dict[str, np.ndarray]:
    """Disjoint parts of the samples by name, each an ascending array of row indices, for parameters and solutions alike.

    `mus` is the samples or their number. A size is a count, a fraction of all samples between 0 and 1, or "rest" (or
    None) for one part that takes what is left. Without `rng` the parts follow each other; with it they are drawn.

    >>> parts = split(10, training=0.7, calibration=2, test="rest")
    >>> parts["calibration"], parts["test"]
    (array([7, 8]), array([9]))
    """
    n = check_count(mus, "number of samples") if np.ndim(mus) == 0 and not hasattr(mus, "__len__") else len(mus)
    counts = _part_counts(n, sizes)
    order = np.arange(n) if rng is None else _generator(rng).permutation(n)
    ends = np.cumsum([0, *counts.values()])
    return {name: np.sort(order[a:b]) for name, a, b in zip(counts, ends[:-1], ends[1:], strict=True)}


def _generator(rng) -> np.random.Generator:
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise InputError(f"rng={rng!r} must be a whole number from 0 on or a NumPy generator: rng=0.") from None


def _rescaled(box: ParameterSpace, scale) -> ParameterSpace:
    """The same box with other scales."""
    if scale is None:
        return box
    if isinstance(scale, str):
        scale = dict.fromkeys(box.names, check_choice(scale, _SCALES, "scale"))
    if not isinstance(scale, Mapping):
        raise InputError(f'scale={scale!r} must be "linear", "log", or a mapping from parameter names to these.')
    for name in scale:
        if name not in box.names:
            raise InputError(f"scale names {name!r}. The scalar parameters are: {', '.join(box.names) or 'none'}.")
    return ParameterSpace(tuple(replace(p, scale=scale.get(p.name) or p.scale) for p in box.scalars))


def _quantiles(p: ParameterRange, unit: np.ndarray) -> np.ndarray:
    """Quantiles of a parameter's distribution, cut off at the ends of its range."""
    try:
        call: Any = ast.parse(p.distribution, mode="eval").body
        family = getattr(stats, call.func.id)
        given = [ast.literal_eval(value) for value in call.args]
        named = {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}
        if not isinstance(family, stats.rv_continuous):
            raise AttributeError
        distribution = family(*given, **named)
    except (AttributeError, SyntaxError, TypeError, ValueError):
        raise InputError(f"{p.distribution!r} is no continuous distribution of SciPy, which {p.name} has.") from None
    low, high = distribution.cdf([p.low, p.high])
    return np.clip(distribution.ppf(low + unit * (high - low)), p.low, p.high)


def _unit(n: int, dimension: int, design: str, rng: np.random.Generator) -> np.ndarray:
    """Points (n, dimension) of the unit cube."""
    if dimension == 0:
        return np.empty((n, 0))
    if design == "random":
        return rng.random((n, dimension))
    if design == "latin":
        return qmc.LatinHypercube(dimension, rng=rng).random(n)
    if design == "halton":
        return qmc.Halton(dimension, rng=rng).random(n)
    if dimension > qmc.Sobol.MAXDIM:
        raise InputError(
            f'design="{design}" knows {qmc.Sobol.MAXDIM} parameters at most, got {dimension}. Use design="latin".'
        )
    # the start of a longer sequence: balanced where n is a power of two, still well spread elsewhere
    points = qmc.Sobol(dimension, rng=rng).random_base2((n - 1).bit_length())[:n]
    # half-way to the distribution of Chebyshev points, which alone would thin out the middle
    return points if design == "sobol" else 0.5 * points + 0.25 * (1 - np.cos(np.pi * points))


def _lattice_counts(n_samples, dimension: int) -> tuple[tuple[int, ...], int]:
    """Counts for every parameter, and their product."""
    if isinstance(n_samples, tuple | list | np.ndarray):
        if len(n_samples) != dimension:
            raise InputError(
                f"n_samples has {len(n_samples)} counts for {dimension} scalar parameters. Give one for each."
            )
        counts = tuple(check_count(n, "a count of n_samples") for n in n_samples)
        return counts, math.prod(counts)
    n = check_count(n_samples, "n_samples")
    if dimension == 0:
        return (), n
    root = round(n ** (1 / dimension))
    if root**dimension != n:
        low = root if root**dimension < n else root - 1
        raise InputError(
            f"a lattice of {dimension} parameters cannot have n_samples={n}. Use {low**dimension} ({low} values each) "
            f"or {(low + 1) ** dimension} ({low + 1} values each), or give a count for each parameter."
        )
    return (root,) * dimension, n


def _part_counts(n: int, sizes: Mapping[str, object]) -> dict[str, int]:
    if not sizes:
        raise InputError('split needs parts. Write split(mus, training=0.8, test="rest").')
    counts: dict[str, int] = {}
    rest: list[str] = []
    portion = 0.0  # of the fractions so far: rounding their sum instead of each keeps the total
    for name, size in sizes.items():
        if size is None or (isinstance(size, str) and size == "rest"):
            rest.append(name)
            counts[name] = 0
        elif isinstance(size, int | np.integer) and not isinstance(size, bool) and size > 0:
            counts[name] = int(size)
        elif isinstance(size, float | np.floating) and 0 < size < 1:
            counts[name] = round(n * (portion + float(size))) - round(n * portion)
            portion += float(size)
        else:
            raise InputError(
                f'the part {name!r} has size {size!r}. Use a count of at least 1, a fraction between 0 and 1, or "rest".'
            )
    if len(rest) > 1:
        raise InputError(f"the parts {' and '.join(rest)} are both to take the rest. Give all but one a size.")
    if portion > 1 + 1e-9:
        raise InputError(f"the fractions add up to {portion:.6g}, more than 1. Make them smaller.")
    taken = sum(counts.values())
    if taken > n:
        wanted = ", ".join(f"{name}: {count}" for name, count in counts.items() if name not in rest)
        raise InputError(f"the parts need {taken} samples ({wanted}), but there are {n}. Make them smaller.")
    for name in rest:
        counts[name] = n - taken
    empty = [name for name, count in counts.items() if count == 0]
    if empty:
        raise InputError(f"the part {empty[0]!r} would be empty with {n} samples. Take more samples or a larger part.")
    return counts
