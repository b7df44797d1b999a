"""The theorem made executable: the smallest ReLU network μ ↦ c(μ) built from the equation, exact to a given accuracy."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parasol import Surrogate
from parasol.checks import check_choice
from parasol.errors import NoCertificate
from parasol.fitting import Network, NetworkMap, layout_of
from parasol.pde import Model
from parasol.runtime import Basis, Features, ReducedModel
from parasol_lab.theorem.construction.chebyshev import SMALLEST_ACCURACY, InputRounding, chebyshev_construction
from parasol_lab.theorem.construction.plan import Plan, plan_construction

CONSTRUCTIONS = ("smallest", "chebyshev", "shared", "paper")


@dataclass(frozen=True, eq=False)
class ConstructedNetwork(NetworkMap):
    """A network that was not trained but built, and what was proven about it: its error is at most `proven` · `largest`.

    Proven in exact arithmetic; `resolved` says whether float64 has enough digits for all its products.
    """

    network: Network
    construction: str  # "affine", "chebyshev", "shared" or "paper"
    accuracy: float  # what was asked for
    proven: float
    largest: float  # the largest ||c|| seen in the box
    levels: int
    resolved: bool
    kappa: float  # α / β
    seconds: float
    details: dict[str, Any] = field(default_factory=dict)


def construct(
    model: Model,
    basis: Basis,
    *,
    accuracy: float,
    construction: str = "smallest",
    compress: bool = True,
    precondition: str = "solve",
    reference=None,
    reduced: ReducedModel | None = None,
) -> Surrogate:
    """The surrogate whose map is a network of the theorem: no training, no data beside the basis, a proven accuracy.

    `construction`: "chebyshev" computes a series of c(μ), "shared" and "paper" invert BᵀB (see `Design`), "smallest" takes
    the first or the second, whichever has fewer weights. Other options are those of `plan_construction`. With a `reduced`
    model of the same basis its answers have error bounds.
    """
    check_choice(construction, CONSTRUCTIONS, "construction")
    planned = plan_construction(
        model,
        basis,
        accuracy=accuracy,
        powers="paper" if construction == "paper" else "shared",
        compress=compress,
        precondition=precondition,
        reference=reference,
    )
    return surrogate_of(build(planned, construction), model, basis, reduced=reduced)


def build(planned: Plan, construction: str) -> ConstructedNetwork:
    """The network of a system and accuracy by one of the constructions; `planned` is the one by inverses."""
    if construction == "chebyshev":
        return _by_series(planned)
    if construction == "smallest" and not (planned.chain is None and planned.system.exact_load):
        try:
            series = _by_series(planned)
        except InputRounding:
            if not planned.representable:  # inverses would say how many levels, not why
                raise
            return _by_inverses(planned)
        except NoCertificate:  # many parameters, or near rounding: inverses do not mind
            return _by_inverses(planned)
        if series.network.n_weights <= planned.size.n_weights:
            return series
    return _by_inverses(planned)


def _by_series(planned: Plan) -> ConstructedNetwork:
    if planned.accuracy < SMALLEST_ACCURACY:
        raise NoCertificate(
            f"accuracy={planned.accuracy:g} is below the rounding of a series. Ask for accuracy >= {SMALLEST_ACCURACY:g}."
        )
    start, size = time.perf_counter(), planned.stability.size
    series = chebyshev_construction(planned.system, planned.accuracy * size)
    parts = {"polynomial_error": series.polynomial_error / size, "network_error": series.network_error / size}
    counts = {"n_terms": series.n_terms, "degrees": list(series.degrees), "n_cells": series.n_cells}
    return _constructed(planned, "chebyshev", series.network, series.levels, start, series.bound / size, parts | counts)


def _by_inverses(planned: Plan) -> ConstructedNetwork:
    start = time.perf_counter()
    network = planned.build()
    name = "affine" if planned.chain is None else planned.design.powers
    return _constructed(planned, name, network, planned.size.levels, start, planned.accuracy, {})


def _constructed(planned: Plan, name: str, network: Network, levels: int, start: float, proven: float, details):
    return ConstructedNetwork(
        network=network,
        construction=name,
        accuracy=planned.accuracy,
        proven=proven,
        largest=planned.stability.size,
        levels=levels,
        resolved=name == "chebyshev" or planned.representable,
        kappa=planned.stability.kappa,
        seconds=time.perf_counter() - start,
        details=details,
    )


def surrogate_of(
    constructed: ConstructedNetwork, model: Model, basis: Basis, *, reduced: ReducedModel | None = None
) -> Surrogate:
    """The surrogate of a constructed network."""
    n = model.n_parameters
    same = Features(np.zeros(n, dtype=bool), np.zeros(n), np.ones(n))  # the network reads the parameters as they are
    facts = {"recipe": "construction", "labels": "none", "n_labels": 0, "logarithms": []}
    facts |= {"fit_seconds": constructed.seconds}
    return Surrogate(basis, constructed, same, model.parameters, layout_of(model), reduced, solver=model, facts=facts)


def build_surrogate(planned: Plan, model: Model, basis: Basis, *, reduced: ReducedModel | None = None) -> Surrogate:
    """The surrogate of a plan by inverses."""
    return surrogate_of(_by_inverses(planned), model, basis, reduced=reduced)
