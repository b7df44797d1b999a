"""How the theorem's networks grow with accuracy and modes, and what each idea saves: counted exactly, nothing built."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from parasol.errors import NoCertificate
from parasol.pde import Model
from parasol.report import Facts
from parasol.runtime import Basis
from parasol_lab.theorem.construction.chain import error_chain
from parasol_lab.theorem.construction.ellipse import Ellipses, ellipses
from parasol_lab.theorem.construction.network import Counter, parameter_networks
from parasol_lab.theorem.construction.plan import Design, Plan
from parasol_lab.theorem.construction.stability import Stability, stability
from parasol_lab.theorem.construction.system import System, reduced_system
from parasol_lab.theorem.networks.bounds import SizeBound, map_bound
from parasol_lab.theorem.networks.refined_bound import refined_bound, refinements_needed
from parasol_lab.theorem.networks.series_bound import series_bound

PAPER = Design.named("paper")
SHARED = Design.named("shared")
BOUNDS = {
    "theorem": "the paper's bound, its constants made explicit",
    "counting": "sharper bound of the paper's network",
    "shared": "sharper bound with shared powers",
    "kutyniok": "bound of Kutyniok et al., with constants made explicit",
    "requ": "bound of the ReQU construction, with constants made explicit",
    "refined": "bound of a coarse inverse and a refined vector",
    "chebyshev": "bound of the Chebyshev construction",
}
CURVES = {  # what is counted over accuracies and over modes
    "bound_theorem": "the paper's bound",
    "bound_counting": "sharper bound, paper's network",
    "paper": "the paper's network, counted",
    "bound_shared": "sharper bound, shared powers",
    "shared": "shared powers, counted",
    "bound_refined": "bound, refined vector",
    "bound_chebyshev": "bound, Chebyshev series",
}
_ACCURACIES = tuple(2.0**-k for k in (4, 7, 12, 20, 32, 64, 128, 256, 512))
_FITTED = 2.0**-64  # exponents are fitted to accuracies from here on: before, constants hide them
_MODES = (2, 3, 4, 5, 6, 8, 10, 12, 14, 17, 20)
_FITTED_MODES = 5


def bound_of(planned: Plan, kind: str) -> SizeBound | None:
    """A bound of the size of the network for this system and accuracy, with the parameter networks that it needs.

    None for "chebyshev" where values of functions are among the parameters.
    """
    if kind == "chebyshev":
        return _series_bound(planned, planned.system.n_modes)
    if kind == "refined":
        return _refined_bound(replace(planned, design=SHARED))
    c, system = planned.constants, planned.scaled
    exact = {"exact_operator": system.exact_operator, "exact_load": system.exact_load}
    chain = error_chain(c, planned.accuracy, kind="paper", **exact)
    operator, load = (SizeBound(s.depth, s.n_weights) for s in parameter_networks(Counter(), system, chain))
    return map_bound(
        kind,
        n_modes=system.n_modes,
        n_rows=system.n_rows,
        alpha=c.alpha,
        beta=c.beta,
        gamma=c.gamma,
        accuracy=planned.accuracy,
        operator=operator,
        load=load,
    )


def _weights(planned: Plan, kind: str) -> int | None:
    bound = bound_of(planned, kind)
    return None if bound is None else bound.n_weights


def _series_bound(planned: Plan, n_modes: int) -> SizeBound | None:
    """The smallest of the bounds for several ellipses."""
    own, system = planned.stability, planned.system
    change = float(np.linalg.norm(system.back, 2))
    given = {"n_modes": n_modes, "accuracy": planned.accuracy * own.size}
    bounds = [series_bound(e.axes, largest=e.largest * change, **given).size for e in _ellipses(system, own)]
    return min(bounds, key=lambda bound: bound.n_weights, default=None)


def _refined_bound(planned: Plan) -> SizeBound:
    """Proposition D, with the networks of BᵀB and Bᵀf as they are counted."""
    remainder, right = planned.normal_sizes
    delta = planned.chain_with(refinements_needed(planned.ratio)).delta
    return refined_bound(planned.system.n_modes, delta, planned.ratio, remainder=remainder, right=right)


@lru_cache(maxsize=8)
def _ellipses(system: System, constants: Stability) -> list[Ellipses]:
    return ellipses(system, constants)


def savings(model: Model, basis: Basis, *, accuracy: float) -> list[Facts]:
    """The paper's network, then one idea after the other; then our network with one of the first two left out.

    Each with its rows, κ, δ of the inverse, L, M, levels, whether float64 resolves it, and the paper's bound of M.
    """
    systems: dict[tuple[bool, str], tuple[System, Stability]] = {}

    def row(name: str, compress: bool, precondition: str, design: Design, normalise: bool = True) -> Facts:
        key = (compress, precondition)
        if key not in systems:
            system = reduced_system(model, basis, compress=compress, precondition=precondition)
            systems[key] = system, stability(system)
        planned = Plan(*systems[key], accuracy, design, normalise)
        facts = {"name": name, "rows": planned.system.n_rows, "kappa": planned.stability.kappa}
        return facts | size_facts(planned) | {"bound_theorem": _weights(planned, "theorem")}

    return [
        row("the paper's: all rows, as they are", False, "none", PAPER, normalise=False),
        row("+ divided by alpha", False, "none", PAPER),
        row("+ rows compressed by QR", True, "none", PAPER),
        row("+ preconditioned by A(middle)^-1", True, "solve", PAPER),
        row("+ lambda = 2/(alpha^2 + beta^2)", True, "solve", replace(PAPER, relaxation=2.0)),
        row("+ errors bounded where they act", True, "solve", replace(PAPER, relaxation=2.0, chain="sharp")),
        row("+ powers shared", True, "solve", replace(SHARED, symmetric=False, direct=False)),
        row("+ one triangle of symmetric matrices", True, "solve", replace(SHARED, direct=False, refinements=0)),
        row("+ products of parameters instead of matrices", True, "solve", replace(SHARED, refinements=0)),
        row("+ a coarse inverse and a refined vector", True, "solve", SHARED),
        row("all of it, but rows not compressed", False, "solve", SHARED),
        row("all of it, but not preconditioned", True, "none", SHARED),
        row("all of it, but V R^-1 instead of A(middle)^-1", True, "basis", SHARED),
    ]


def size_facts(planned: Plan) -> Facts:
    """What is counted of a plan."""
    size = planned.size
    return {
        "delta": None if planned.chain is None else planned.chain.delta,
        "depth": size.depth,
        "n_weights": size.n_weights,
        "levels": size.levels,
        "representable": planned.representable,
    }


def growth(planned: Plan, model: Model, basis: Basis, *, options: Facts) -> Facts:
    """M of both constructions by inverses and of four bounds over accuracies and over modes, with fitted exponents.

    Over modes the constants α, β, γ stay those of the plan, so that the exponent is that of d alone; `real_kappa` repeats
    the count with the constants of each d. `basis` may have more modes than the plan; `options` are those of the system.
    """
    over_accuracy = [_counts(replace(planned, accuracy=a), planned) | {"accuracy": a} for a in _ACCURACIES]
    over_modes = []
    for d in [d for d in _MODES if d <= basis.n_modes]:
        system = reduced_system(model, basis.truncated(d), **options)
        try:
            own = stability(system)
        except NoCertificate:  # modes that are only rounding
            break
        same = replace(planned, system=system, stability=_units(planned.stability, system, planned.system))
        counts = _counts(same, planned)
        real = Plan(system, own, planned.accuracy, SHARED)
        over_modes.append(counts | {"n_modes": d, "real_kappa": {"kappa": own.kappa, "n_weights": real.size.n_weights}})
    digits = [-np.log2(row["accuracy"]) for row in over_accuracy]
    late = [row["accuracy"] <= _FITTED for row in over_accuracy]
    many = [row["n_modes"] >= _FITTED_MODES for row in over_modes]
    modes = [row["n_modes"] for row in over_modes]
    return {
        "over_accuracy": over_accuracy,
        "over_modes": over_modes,
        "exponent_of_log": {name: _slope(digits, over_accuracy, name, late) for name in CURVES},
        "exponent_of_modes": {name: _slope(modes, over_modes, name, many) for name in CURVES},
    }


def _counts(planned: Plan, reference: Plan) -> Facts:
    """M of both constructions, and of bounds; that of the series with the ellipses of `reference`."""
    series = _series_bound(replace(reference, accuracy=planned.accuracy), planned.system.n_modes)
    return {
        "bound_chebyshev": None if series is None else series.n_weights,
        "shared": replace(planned, design=SHARED).size.n_weights,
        "paper": replace(planned, design=PAPER).size.n_weights,
        **{f"bound_{kind}": _weights(planned, kind) for kind in ("theorem", "counting", "shared", "refined")},
    }


def _units(constants: Stability, other: System, own: System) -> Stability:
    """The same normalised constants for a system in other coordinates."""
    change = float(np.linalg.norm(other.back, 2) / np.linalg.norm(own.back, 2))
    return replace(constants, size=constants.size * change)


def _slope(x: list, rows: list[Facts], name: str, used: list[bool]) -> float | None:
    """The exponent p of M ~ x^p by least squares in logarithms."""
    pairs = [(np.log(a), np.log(row[name])) for a, row, use in zip(x, rows, used, strict=True) if use and row[name]]
    if len(pairs) < 2:
        return None
    first, second = np.array(pairs).T
    return float(np.polyfit(first, second, 1)[0])
