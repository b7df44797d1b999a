"""Random duals of solvers of one's own: the error of every answer estimated from residual(mu, u) and solve_transposed(mu, z)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from parasol.errors import NoCertificate
from parasol.learning.by_residual import checked_residual, interpolated, transposed_solves
from parasol.reduction.in_time import Watch
from parasol.reduction.sampling import sample
from parasol.reduction.snapshots import Snapshots
from parasol.reduction.solvers import Solver, unwrapped
from parasol.runtime.duals import RandomDuals
from parasol.runtime.program import Program
from parasol.runtime.reduced import ReducedModel
from parasol.runtime.residuals import WeightedResidual
from parasol.runtime.surrogate import Surrogate
from parasol.runtime.theta import Theta

_N_SEALED, _N_STEERING = 20, 10  # random vectors: those that estimate, and those that combine inverses
_N_ANCHORS = (4, 8)  # parameters with duals; more where inverses are not combined well enough
_CLOSE, _USELESS = 0.1, 0.5  # how far combined inverses may be from the inverse, and where they are of no use
_FOLLOWS = 0.2  # relative: how far interpolated residuals of answers may be off
_N_TESTS = 4  # directions that the modes leave of solutions, by which inverses are tested too
_N_HELD = 12  # parameters that choose how factors are fitted
_MOST_EVALUATED = 300  # parameters at which residuals are evaluated
_ROUNDING = 1e-14
_CONSISTENT = 1e-4  # relative: by how much solves with the transposed matrix may miss those with the matrix


def offers_duals(solver: Any) -> bool:
    """Whether a solver of one's own evaluates residuals and solves with its transposed matrix."""
    return all(callable(getattr(unwrapped(solver), name, None)) for name in ("residual", "solve_transposed"))


def with_duals(
    solver: Solver,
    surrogate: Surrogate,
    train: Snapshots,
    fresh: Snapshots,
    *,
    doubt: float,
    rng: int = 0,
    watch: Watch = None,
) -> Surrogate:
    """The surrogate with a reduced model whose duals estimate its errors; `NoCertificate` says why there is none.

    For y_ij = A(μ_j)⁻ᵀ z_i of random z_i the small arrays y_ijᵀ A(μ) V and y_ijᵀ f(μ) are evaluated at some parameters, and are
    Σ θ_q(μ) of few fixed ones, θ being a map (as in `reduce_by_residual`). What this and the combined inverses miss is
    measured at `fresh` solves, drawn at random and seen by nothing else: another one is worse with probability `doubt`.
    """
    for n_anchors in _N_ANCHORS:
        builder = _Duals(solver, surrogate, train, n_anchors, rng, watch)
        reduced = builder.reduced()
        duals = reduced.duals
        assert duals is not None
        missed = float(np.max(duals.inverses(reduced.operator_theta(builder.held))[1]))
        if missed <= _CLOSE:
            break
    if missed > _USELESS:
        raise NoCertificate(f"inverses at {n_anchors} parameters are no inverse elsewhere: bounds stay calibrated")
    duals = replace(duals, ratio=builder.ratio(reduced, fresh), n_checked=len(fresh), doubt=doubt)
    reduced = replace(reduced, duals=duals)
    return replace(surrogate, reduced=reduced)


class _Duals:
    """Duals at a few of the solved parameters, and the small arrays over the box."""

    def __init__(self, solver: Solver, surrogate: Surrogate, train: Snapshots, n_anchors: int, rng: int, watch: Watch):
        own, basis = unwrapped(solver), surrogate.basis
        self.surrogate, self.space, self.modes = surrogate, surrogate.parameters, basis.modes
        residual = checked_residual(own.residual, train)
        weights = np.ones(len(self.modes)) if basis.weights is None else basis.weights
        if not isinstance(weights, np.ndarray):
            raise NoCertificate("random duals of a solver know inner products by weights only")
        normal = np.random.default_rng([rng, 73]).standard_normal((_N_SEALED + _N_STEERING, len(self.modes)))
        self.vectors = normal * np.sqrt(weights)
        left = train.solutions - basis.project(train.solutions) @ self.modes.T
        self.tests = np.linalg.svd(left, full_matrices=False)[2][:_N_TESTS].T
        self.anchors = _far_apart(train.mus, self.space.to_unit(train.mus), n_anchors)
        rows = [transposed_solves(own, mu, self.vectors, watch) for mu in self.anchors]
        solution = train.solutions[np.flatnonzero(np.all(train.mus == self.anchors[0], axis=1))[0]]
        there = np.abs(self.vectors) @ np.abs(solution)
        gap = np.abs(self.vectors @ solution - rows[0] @ residual(self.anchors[0], 0.0 * solution))
        if np.any(gap > _CONSISTENT * there):  # zᵀ u = yᵀ f
            raise NoCertificate(
                "solve_transposed(mu, z) of the solver is not of the matrix of its residual: bounds stay calibrated"
            )
        rows.append(
            transposed_solves(own, self.anchors[0], (weights[:, None] * self.modes).T, watch)
        )  # coordinates of A⁻¹ r
        tests, columns = np.vstack(rows), np.hstack([self.modes, self.tests])

        def systems(mus: np.ndarray) -> np.ndarray:
            products = []
            for mu in mus:
                if watch is not None:
                    watch()
                load = residual(mu, np.zeros(len(columns)))
                applied = np.array([load, *[load - residual(mu, column) for column in columns.T]])
                products.append((tests @ applied.T).ravel())
            return np.array(products)

        p = len(self.space.scalars)
        design = sample(self.space, _MOST_EVALUATED, design="edges", rng=0)
        self.held = sample(self.space, _N_HELD, design="random", rng=1)
        exact, known, n = systems(self.held), np.empty((0, tests.shape[0] * (1 + columns.shape[1]))), 24 + 3 * p * p
        size = float(np.max(np.abs(exact)))
        while True:
            n = min(n, _MOST_EVALUATED)
            known = np.vstack([known, systems(design[len(known) : n])])
            distance = lambda one: float(np.max(np.abs(one.thetas(self.held) @ one.parts - exact)) / size)  # noqa: E731
            self.fitted = interpolated(basis, self.space, design[:n], known, distance)
            self.parts = self.fitted.parts.reshape(len(self.fitted.parts), len(tests), -1)  # (Q, n_rows, 1 + n_columns)
            gap = self._gap(exact.reshape(len(exact), len(tests), -1))
            if gap <= _FOLLOWS:
                return
            if n == _MOST_EVALUATED:
                raise NoCertificate(
                    f"residuals of answers could be interpolated to {gap:.1e} only: bounds stay calibrated"
                )
            n *= 2

    def _gap(self, exact: np.ndarray) -> float:
        """How far residuals of answers, as the steering vectors see them, are from what they are, relative, at the worst."""
        c = self.surrogate.coefficients(self.held)
        z = np.concatenate([np.ones((len(c), 1)), -c], axis=1)
        n = len(self.vectors)
        steering = np.concatenate([np.arange(j * n + _N_SEALED, (j + 1) * n) for j in range(len(self.anchors))])
        fitted = np.tensordot(self.fitted.thetas(self.held), self.parts, 1)
        residuals, true = (np.einsum("nrc,nc->nr", s[:, steering, : z.shape[1]], z) for s in (fitted, exact))
        sizes = np.linalg.norm(true, axis=1)
        return float(np.max(np.linalg.norm(residuals - true, axis=1) / np.where(sizes > 0, sizes, 1.0)))

    def reduced(self) -> ReducedModel:
        """The reduced model with sealed duals."""
        operations = (*self.fitted.features.operations, *self.fitted.factors.program.operations)
        theta = Theta((), (), len(self.space.scalars), Program(operations))
        q, d, m = len(self.parts), self.modes.shape[1], len(self.anchors)
        n_vectors = len(self.vectors)
        by_vector = self.parts[:, : m * n_vectors].reshape(q, m, n_vectors, -1)  # (q, j, i, column)
        columns = self.parts[..., : 1 + d].transpose(1, 2, 0).reshape(self.parts.shape[1], -1)  # loads, then A_q v_l
        blocks = columns[: m * n_vectors].reshape(m, n_vectors, -1).transpose(1, 0, 2)
        seen = by_vector[:, :, _N_SEALED:, 1:].transpose(2, 1, 3, 0)  # (i, j, l, q) of the steering vectors
        wanted = self.vectors[_N_SEALED:] @ np.hstack([self.modes, self.tests])
        products = np.einsum("ijlq,iklp->qpjk", seen, seen, optimize=True)
        pairs = [(a, b) for a in range(q) for b in range(a, q)]
        duals = RandomDuals(
            mus=self.anchors,
            normal=np.array([products[a, b] + products[b, a] if b > a else products[a, b] for a, b in pairs]),
            right=np.einsum("ijlq,il->qj", seen, wanted, optimize=True),
            size=float(np.sum(wanted**2)),
            blocks=np.ascontiguousarray(blocks[:_N_SEALED]),
            n_loads=q,
            n_terms=q,
        )
        triangle = np.ascontiguousarray(columns[m * n_vectors :])
        residual = WeightedResidual(self.anchors[0], triangle, np.zeros(triangle.shape[1]), q, q, _ROUNDING)
        basis, n = self.surrogate.basis, self.surrogate.n_parameters
        return ReducedModel(basis, self.space, n, theta, theta, (residual,), None, duals=duals)

    def ratio(self, reduced: ReducedModel, fresh: Snapshots) -> float:
        """Errors at fresh solves over their estimates, by the same random vectors: the largest, at least 1."""
        c, theta = self.surrogate.coefficients(fresh.mus), reduced.operator_theta(fresh.mus)
        assert reduced.duals is not None
        functionals, missed = reduced.duals.functionals(theta, theta, c)
        true = np.linalg.norm((fresh.solutions - c @ self.modes.T) @ self.vectors[:_N_SEALED].T, axis=1)
        ratios = (1.0 - missed) * true / np.maximum(np.linalg.norm(functionals, axis=1), np.finfo(float).tiny)
        return max(1.0, float(np.max(ratios)))


def _far_apart(mus: np.ndarray, unit: np.ndarray, n: int) -> np.ndarray:
    """Some of the parameters, the first nearest to the middle of the box, each the farthest from all before it."""
    chosen = [int(np.argmin(np.sum((unit - 0.5) ** 2, axis=1)))]
    while len(chosen) < min(n, len(mus)):
        gaps = np.min([np.sum((unit - unit[k]) ** 2, axis=1) for k in chosen], axis=0)
        chosen.append(int(np.argmax(gaps)))
    return mus[chosen]
