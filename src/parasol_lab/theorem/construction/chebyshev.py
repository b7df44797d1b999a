"""The Chebyshev construction: as few terms of the series of c(μ) as the certificate allows, then a network for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from parasol.errors import NoCertificate
from parasol.fitting import Network
from parasol_lab.theorem.construction.certificate import (
    MOST_PARAMETERS,
    PolynomialSystem,
    Proof,
    interpolant,
    polynomial_system,
    prove,
    to_values,
)
from parasol_lab.theorem.construction.system import System
from parasol_lab.theorem.networks.chebyshev import (
    chebyshev_network,
    errors_of,
    least_levels,
    plan_steps,
    total_error,
)

SMALLEST_ACCURACY = 1e-11  # below it rounding of the series is seen
_SHARES = ((0.85, 0.92), (0.7, 0.82), (0.5, 0.65))  # of the accuracy: for terms left out, and with entries left out too
_FULL_SHARE = 1e-2  # of the accuracy: the error of the series that terms are taken from
_LOOK = {
    1: 200,
    2: 40,
    3: 14,
    4: 8,
}  # points along each axis where a series is compared before it is proven, by parameters
_MOST_NUMBERS = 1e7  # of matrices on a grid at a time
_MOST_DEGREE = 400
_NOTICED = 0.02  # rounding that is so much of the error allowed is why a series does not end


class InputRounding(NoCertificate):
    """The digits of a parameter end before the accuracy is reached: its range is narrow and far from zero."""


@dataclass(frozen=True, eq=False)
class ChebyshevNetwork:
    """A network and what is proven of it: ‖c − network‖ ≤ `polynomial_error` + `network_error` on the whole box.

    Absolute errors, up to rounding, for which both parts have an allowance (see `certificate`, `evaluation_rounding`).
    """

    network: Network
    polynomial_error: float
    network_error: float
    n_terms: int
    degrees: tuple[int, ...]
    levels: int
    n_cells: int

    @property
    def bound(self) -> float:
        """What the network is off by at most."""
        return self.polynomial_error + self.network_error


def chebyshev_construction(system: System, allowed: float) -> ChebyshevNetwork:
    """The smallest network found whose error over the box is proven to be at most `allowed`."""
    n = len(system.parameters.scalars)
    if system.n_parameters > n or not 0 < n <= MOST_PARAMETERS:
        raise NoCertificate(
            f"{system.n_parameters} parameters are too many for a series, at most {MOST_PARAMETERS} are."
        )
    polynomials = polynomial_system(system)
    try:
        full = accurate_series(system, polynomials, _FULL_SHARE * allowed)
    except NoCertificate:  # rounding, or too many terms
        full = accurate_series(system, polynomials, 0.6 * _SHARES[-1][0] * allowed)
    best, failure = None, None
    for share in _SHARES:
        try:
            candidate = _with_shares(system, polynomials, full, allowed, *share)
        except NoCertificate as error:  # a share that leaves more for rounding may do
            failure = error
            continue
        if best is None or candidate.network.n_weights < best.network.n_weights:
            best = candidate
    if best is None:
        raise failure  # type: ignore[misc]
    return best


def accurate_series(system: System, polynomials: PolynomialSystem, allowed: float) -> np.ndarray:
    """An interpolant of c with a proven error of at most `allowed`, its degrees raised where its coefficients are large."""
    shape, rounding = np.full(polynomials.n_axes, 5), None
    while True:
        work = np.prod(shape + polynomials.right.shape[:-1], dtype=float) * system.n_modes**2
        if work > _MOST_NUMBERS or shape.max() > _MOST_DEGREE:
            if rounding is not None and rounding > _NOTICED * allowed:  # coefficients that are rounding never end
                raise InputRounding(_rounded(system, rounding, allowed))
            raise NoCertificate(
                f"a series of {int(np.prod(shape))} terms in {len(shape)} parameters is not enough for this accuracy. Narrow "
                "the ranges of the parameters or use fewer, or ask for a larger accuracy."
            )
        series = interpolant(system, shape)
        norms = np.linalg.norm(series, axis=-1)
        if rounding is None:
            rounding = evaluation_rounding(dict(np.ndenumerate(norms)), np.asarray(system.parameters.bounds))
            if rounding >= allowed / _FULL_SHARE:
                raise InputRounding(_rounded(system, rounding, allowed))
        tails = np.array([norms.take((-2, -1), axis=j).sum() for j in range(len(shape))])
        if tails.sum() <= allowed:
            try:
                if not prove(polynomials, series, allowed).refuted:
                    return series
            except NoCertificate:
                if np.all(tails <= 1e-14 * norms.sum()):  # rounding: more terms do not help
                    raise
        longer = tails > min(allowed / (2 * len(shape)), 0.5 * tails.max())
        shape = np.where(longer, np.ceil(1.4 * shape).astype(int), shape)


def _with_shares(
    system: System, polynomials: PolynomialSystem, full: np.ndarray, allowed: float, of_terms: float, of_entries: float
) -> ChebyshevNetwork:
    """Leave out terms, then single coefficients, as long as the certificate holds; the rest is for the network's squares."""
    norms = np.linalg.norm(full, axis=-1)
    order = np.argsort(-norms, axis=None, kind="stable")

    def largest_terms(count: int) -> np.ndarray:
        keep = np.zeros(norms.size, dtype=bool)
        keep[order[:count]] = True
        return _cut(np.where(keep.reshape(norms.shape)[..., None], full, 0.0))

    terms, _ = _fewest(largest_terms, norms.size, polynomials, full, of_terms * allowed)
    entries = np.sort(np.abs(terms[terms != 0]))[::-1]

    def largest_entries(count: int) -> np.ndarray:
        return _cut(np.where(np.abs(terms) >= entries[count - 1], terms, 0.0))

    series, proof = _fewest(largest_entries, len(entries), polynomials, full, of_entries * allowed)
    chosen = {tuple(int(i) for i in k): series[tuple(k)] for k in np.argwhere(np.any(series != 0, axis=-1))}
    chosen.setdefault((0,) * polynomials.n_axes, np.zeros(system.n_modes))
    steps = plan_steps(list(chosen))
    weights = {k: float(np.linalg.norm(vector)) for k, vector in chosen.items()}
    rounding = evaluation_rounding(weights, np.asarray(system.parameters.bounds))
    if proof.bound + rounding >= allowed:
        raise InputRounding(_rounded(system, rounding, allowed))
    levels = least_levels(steps, weights, allowed - proof.bound - rounding)
    network = chebyshev_network(steps, levels, chosen, np.asarray(system.parameters.bounds))
    return ChebyshevNetwork(
        network=network,
        polynomial_error=proof.bound,
        network_error=total_error(steps, errors_of(steps, levels), weights) + rounding,
        n_terms=len(chosen),
        degrees=tuple(m - 1 for m in series.shape[:-1]),
        levels=max(levels.values(), default=0),
        n_cells=proof.n_cells,
    )


def evaluation_rounding(weights: Mapping[tuple[int, ...], float], bounds: np.ndarray) -> float:
    """An allowance for float64 where the network moves μ to x = 2 (μ − low) / (high − low) − 1 and sums terms of norms `weights`.

    A narrow range far from zero, such as [1e12, 1e12 + 3], loses digits there. |T_k'| ≤ k².
    """
    of_inputs = 1 + 2 * np.abs(bounds).max(axis=0) / (bounds[1] - bounds[0])
    return 4 * float(np.finfo(float).eps) * sum(w * (1 + float(np.square(k) @ of_inputs)) for k, w in weights.items())


def _rounded(system: System, rounding: float, allowed: float) -> str:
    """Why a narrow range far from zero is refused: what, got, do."""
    low, high = np.asarray(system.parameters.bounds)
    worst = int(np.argmax(np.maximum(np.abs(low), np.abs(high)) / (high - low)))
    name = system.parameters.names[worst]
    return (
        f"rounding hides the error of the series: float64 reads {name} between {low[worst]:.17g} and {high[worst]:.17g}, and its last "
        f"digit may change c by {rounding:.1e}, where {allowed:.1e} is allowed. Measure {name} from a value in its range "
        f"({name} = {low[worst]:g} + ...), or ask for a larger accuracy."
    )


def _fewest(
    candidate: Callable[[int], np.ndarray], most: int, polynomials: PolynomialSystem, full: np.ndarray, allowed: float
) -> tuple[np.ndarray, Proof]:
    """The candidate with the smallest count that is proven, by bisection; the one with `most` is known to be good enough."""
    shape = [_LOOK[polynomials.n_axes]] * polynomials.n_axes

    def proven(count: int) -> Proof | None:
        series = candidate(count)
        change = full.copy()
        change[tuple(slice(m) for m in series.shape)] -= series
        if np.max(np.linalg.norm(to_values(change, shape), axis=-1)) > allowed:  # no need of a proof
            return None
        try:
            proof = prove(polynomials, series, allowed)
        except NoCertificate:
            return None
        return None if proof.refuted else proof

    low, high, proof = 0, most, proven(most)
    if proof is None:
        raise NoCertificate("rounding hides the error of the series. Ask for a larger accuracy.")
    while high - low > max(1, high // 64):
        middle = (low + high) // 2 if high - low < 16 else max(low + 1, int((low + 1) ** 0.5 * high**0.5))
        better = proven(middle)
        low, high, proof = (low, middle, better) if better else (middle, high, proof)
    return candidate(high), proof  # type: ignore[return-value]


def _cut(series: np.ndarray) -> np.ndarray:
    """Without trailing zeros along the first axes."""
    used = np.argwhere(np.any(series != 0, axis=-1))
    ends = used.max(axis=0) + 1 if len(used) else np.ones(series.ndim - 1, dtype=int)
    return series[tuple(slice(end) for end in ends)]
