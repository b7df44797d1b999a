"""Reduced models of solvers that can evaluate residual(mu, u) = f(mu) − A(mu) u: labels without a solve, and without a matrix."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from math import comb
from typing import Any

import numpy as np
from scipy.linalg import qr

from parasol.checks import as_floats
from parasol.errors import NoCertificate, ParasolWarning, TooFewSamples
from parasol.fitting.gaussian_process import GaussianProcess
from parasol.fitting.polynomial import Polynomial
from parasol.reduction.in_time import Watch
from parasol.reduction.pod import pod
from parasol.reduction.sampling import sample
from parasol.reduction.snapshots import Snapshots, as_snapshots
from parasol.reduction.solvers import Solver, unwrapped
from parasol.runtime.basis import Basis
from parasol.runtime.features import Features, features_of, wide_columns
from parasol.runtime.parameters import ParameterSpace
from parasol.runtime.program import StoredMap

_MODES = 0.01  # part of the tolerance left by the modes of all solves together
_SOLVED = 1e-6  # relative: a solution's own residual is below, or the residual is not that of the solver
_LINEAR = 1e-9  # relative: second difference in u
_LEAST = 1e-13  # of the largest singular value: components of the small systems below are rounding
# parameters at which interpolated small systems are tested: new ones, and ones like those before
_HELD_OUT, _FEW = 12, 4
_EXACT = 1e-10  # relative distance from which on no other map is tried
_MOST_EVALUATED = 300  # parameters at which residuals are evaluated
_AS_GOOD = 0.1  # of the tolerance: by which interpolation may change a reduced solution


@dataclass(frozen=True, eq=False)
class Reduced:
    """Coefficients (n, n_modes) at some parameters, and which of them are finite."""

    basis: Basis
    coefficients: np.ndarray
    converged: np.ndarray

    @property
    def values(self) -> np.ndarray:
        """The fields V c, (n, n_values)."""
        return self.basis.lift(self.coefficients)


@dataclass(frozen=True, eq=False)
class ResidualReducedModel:
    """c(μ) with Wᵀ residual(μ, V c) = 0: the small systems Wᵀ A(μ) V c = Wᵀ f(μ) are interpolated over the box.

    Each is Σ_q θ_q(μ) of a few fixed ones; θ is a map of the parameters, tested at others than it was fitted to.
    """

    basis: Basis
    features: Features
    factors: StoredMap  # features to θ
    parts: np.ndarray  # (n_parts, n_modes * (n_modes + 1)): rows of [Wᵀ A V, Wᵀ f]

    def solve(self, mus: np.ndarray, *, extrapolate: bool = False, watch: Watch = None) -> Reduced:
        """Reduced solutions at parameters (n, n_parameters)."""
        c = _solved(self.thetas(mus) @ self.parts, self.basis.n_modes)
        good = np.all(np.isfinite(c), axis=1)
        return Reduced(self.basis, np.where(good[:, None], c, 0.0), good)

    def thetas(self, mus: np.ndarray) -> np.ndarray:
        """θ(μ), (n, n_parts)."""
        return self.factors.predict(self.features(mus))

    def telling(self, mus: np.ndarray) -> np.ndarray:
        """As many of the parameters as there are parts, at which the systems tell all parts apart."""
        _, order = qr(self.thetas(mus).T, mode="r", pivoting=True)
        return mus[order[: len(self.parts)]]

    def distance(self, mus: np.ndarray, systems: np.ndarray) -> float:
        """The largest relative distance of its solutions from those of the systems as they are at these parameters."""
        exact = _solved(systems, self.basis.n_modes)
        gaps = np.linalg.norm(self.solve(mus).coefficients - exact, axis=1) / np.linalg.norm(exact, axis=1)
        return float(np.max(np.where(np.isfinite(gaps), gaps, np.inf)))


def offers_residual(solver: Any) -> bool:
    """Whether a solver of one's own can evaluate residuals."""
    return callable(getattr(unwrapped(solver), "residual", None))


def reduce_by_residual(
    solver: Solver, train: Snapshots, tolerance: float, before: ResidualReducedModel | None = None, watch: Watch = None
) -> ResidualReducedModel:
    """The reduced model on the modes of some solves; `NoCertificate` says why there is none.

    W = V, as Galerkin does, or A(μ̄)⁻ᵀ V at one solved parameter μ̄ where the solver has `solve_transposed(mu, z)`: for matrices
    far from symmetric positive definite. Residuals are evaluated n_modes + 1 times in a row at each of some parameters: at
    up to 300, or where the factors θ of a model made `before` still do, at as many as there are of them and four more. `watch` is called at each.
    """
    residual = checked_residual(unwrapped(solver).residual, train)
    size = np.linalg.norm(train.solutions, axis=1)[:, None]
    alike = as_snapshots(train.mus, train.solutions / np.where(size > 0, size, 1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParasolWarning)  # how good the modes are will be measured
        basis = pod(alike, tolerance=_MODES * tolerance)
    modes, tests = basis.modes, basis.modes
    if callable(getattr(unwrapped(solver), "solve_transposed", None)):
        tests = transposed_solves(unwrapped(solver), train.mus[0], modes.T, watch).T

    def systems(mus: np.ndarray) -> np.ndarray:
        rows = []
        for mu in mus:
            if watch is not None:
                watch()
            load = residual(mu, np.zeros(len(modes)))
            columns = np.array([load - residual(mu, mode) for mode in modes.T])
            rows.append(np.concatenate([(tests.T @ columns.T).ravel(), tests.T @ load]))
        if not np.all(np.isfinite(rows)):
            raise NoCertificate("residual(mu, u) of the solver is not finite everywhere")
        return np.array(rows)

    space = solver.parameters
    n = min(_MOST_EVALUATED, 24 + 3 * comb(len(space.scalars) + 2, 2))
    seen, held = sample(space, n, design="edges", rng=0), sample(space, _HELD_OUT, design="random", rng=1)
    if before is not None:
        some, few = before.telling(seen), held[:_FEW]
        reduced = replace(before, basis=basis, parts=np.linalg.solve(before.thetas(some), systems(some)))
        if reduced.distance(few, systems(few)) <= _AS_GOOD * tolerance:
            return reduced
    exact = systems(held)
    reduced = interpolated(basis, space, seen, systems(seen), lambda model: model.distance(held, exact))
    gap = reduced.distance(held, exact)
    if not gap <= _AS_GOOD * tolerance:
        raise NoCertificate(f"residual(mu, u) of the solver could be interpolated over the box to {gap:.1e} only")
    return reduced


def checked_residual(residual: Callable[..., Any], train: Snapshots) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """The residual as an array, if it is one: of the right length, linear in u, and next to nothing at a solution."""

    def evaluated(mu: np.ndarray, u: np.ndarray) -> np.ndarray:
        return as_floats(residual(mu.copy(), u.copy())).reshape(-1)

    mu, u = train.mus[0], train.solutions[0]
    try:
        none, some, twice = (evaluated(mu, factor * u) for factor in (0.0, 1.0, 2.0))
        left = np.array([evaluated(*pair) for pair in zip(train.mus, train.solutions, strict=True)])
    except Exception as error:  # somebody's code
        text = f"residual(mu, u) of the solver raises {type(error).__name__}: {error}"
        raise NoCertificate(text) from error
    if some.shape != u.shape:
        raise NoCertificate(f"residual(mu, u) of the solver has {len(some)} values for {len(u)} unknowns")
    size = np.linalg.norm(none)
    if not np.linalg.norm(twice - 2 * some + none) <= _LINEAR * (size + np.linalg.norm(twice)):  # not a number, too
        raise NoCertificate("residual(mu, u) of the solver is not linear in u")
    if not np.all(np.linalg.norm(left, axis=1) <= _SOLVED * size):
        raise NoCertificate("residual(mu, u) of the solver does not vanish at its own solutions")
    return evaluated


def transposed_solves(own: Any, mu: np.ndarray, vectors: np.ndarray, watch: Watch = None) -> np.ndarray:
    """A(μ)⁻ᵀ z of vectors (n, n_unknowns), one after the other, by a user's solve_transposed(mu, z)."""
    out = []
    for z in vectors:
        if watch is not None:
            watch()
        try:
            out.append(as_floats(own.solve_transposed(mu.copy(), z.copy())).reshape(-1))
        except Exception as error:  # somebody's code
            text = f"solve_transposed(mu, z) of the solver raises {type(error).__name__}: {error}"
            raise NoCertificate(text) from error
        if out[-1].shape != z.shape or not np.all(np.isfinite(out[-1])):
            raise NoCertificate(f"solve_transposed(mu, z) of the solver has {len(out[-1])} values, or not finite ones")
    return np.array(out)


def interpolated(
    basis: Basis,
    space: ParameterSpace,
    mus: np.ndarray,
    systems: np.ndarray,
    distance: Callable[[ResidualReducedModel], float],
) -> ResidualReducedModel:
    """The small systems as a map of the parameters: of a few kinds of maps the one with the least distance."""
    _, sizes, parts = np.linalg.svd(systems, full_matrices=False)
    parts = parts[sizes > _LEAST * sizes[0]]
    plain = ParameterSpace(tuple(replace(s, scale="linear") for s in space.scalars))
    tried: list[tuple[float, ResidualReducedModel]] = []
    # matrices are most often polynomials in the parameters themselves; logarithms are for other ones
    for own, more in ((plain, ()), (space, wide_columns(space))):
        features = features_of(own, mus, more_logs=more)
        for recipe in (Polynomial(), GaussianProcess()):
            with suppress(TooFewSamples):
                fitted = StoredMap.of(recipe.fit(features(mus), systems @ parts.T))
                reduced = ResidualReducedModel(basis, features, fitted, parts)
                tried.append((distance(reduced), reduced))
                if tried[-1][0] < _EXACT:
                    return reduced
    if not tried:
        raise NoCertificate("residual(mu, u) of the solver could not be interpolated over the box")
    return min(tried, key=lambda pair: pair[0])[1]


def _solved(systems: np.ndarray, n_modes: int) -> np.ndarray:
    """Solutions (n, n_modes) of small systems, each a row [K, g]; not a number where one is singular."""
    matrices = systems[:, : n_modes**2].reshape(-1, n_modes, n_modes)
    out = np.full((len(systems), n_modes), np.nan)
    for c, matrix, right in zip(out, matrices, systems[:, n_modes**2 :], strict=True):
        try:
            c[:] = np.linalg.solve(matrix, right)
        except np.linalg.LinAlgError:
            continue
    return out
