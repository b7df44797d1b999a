"""Duals of random vectors at the parameters that are solved anyway: what the estimate of errors is made of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from parasol.errors import InputError
from parasol.pde.sparse_direct import Factors
from parasol.reduction.affine import AffineForm
from parasol.runtime.duals import RandomDuals

N_VECTORS = 20  # that certify, sealed until the surrogate is made
_N_STEERING = 10  # that choose parameters, coefficients of the inverse, and when to stop
_N_TESTS, _MOST_TESTS = (
    4,
    16,
)  # smooth random functions by which inverses are tested besides the modes: of a snapshot, in all


class DualBuilder:
    """Collects y_ijᵀ f_q and y_ijᵀ A_q v_l for duals y_ij = A(μ_j)⁻ᵀ z_i, snapshot by snapshot and mode by mode.

    Two sets of vectors are solved with the same factors. The steering ones decide: where to solve, with which coefficients
    inverses are interpolated, when to stop. The sealed ones certify, and nothing that is made may depend on them.
    """

    def __init__(
        self,
        form: AffineForm,
        weights: np.ndarray,
        scale: np.ndarray,
        rng: np.random.Generator,
        n_vectors: int = N_VECTORS,
    ):
        """`weights` (n_unknowns,) is the inner product, 0 at unknowns that do not count; 1 / `scale` is their typical size."""
        if n_vectors < 4 or n_vectors % 2:
            raise InputError(f"an estimate takes an even number of at least 4 random vectors, got {n_vectors}.")
        self.form, self.weights, self.scale = form, weights, scale
        self.n_sealed = n_vectors
        self.rng = rng
        normal = rng.standard_normal((n_vectors + _N_STEERING, len(weights)))
        self.vectors = (np.sqrt(weights) * normal).T  # (n_unknowns, n_vectors), the sealed ones first
        self.mus: list[np.ndarray] = []
        self.duals: list[np.ndarray] = []  # (n_vectors, n_unknowns) each
        self.blocks: list[np.ndarray] = []  # (n_vectors, n_columns) each
        self.modes = np.empty((len(weights), 0))
        self.tests = np.empty((len(weights), 0))
        self.tested: list[np.ndarray] = []  # (n_steering, n_terms * n_tests) each: the blocks of the tests

    def add_snapshot(self, mu: np.ndarray, factors: Factors) -> None:
        """Solve all duals with the factors of A(mu)."""
        y = factors.solve_transposed(self.vectors)
        y += factors.solve_transposed(self.vectors - factors.matrix.T @ y)  # rounding, as far as it can be undone
        y = np.ascontiguousarray(y.T)
        columns = [y @ self.form.loads.T, *[self._columns(y, mode) for mode in self.modes.T]]
        self.mus.append(mu)
        self.duals.append(y)
        self.blocks.append(np.hstack(columns))
        self.tested.append(self._tests(y, self.tests))
        if self.tests.shape[1] < _MOST_TESTS:
            self._add_tests(factors)

    def _add_tests(self, factors: Factors) -> None:
        """Smooth functions A(μ_j)⁻¹ ω of random ω, of norm 1: a few modes alone would not resemble later errors.

        In each row ω has the size of what it balances, so that units do not matter.
        """
        rows = abs(factors.matrix) @ (1.0 / self.scale)
        tests = factors.solve(rows[:, None] * self.rng.standard_normal((len(rows), _N_TESTS)))
        tests /= np.sqrt(self.weights @ tests**2)
        self.tests = np.hstack([self.tests, tests])
        self.tested = [
            np.hstack([known, self._tests(y, tests)]) for known, y in zip(self.tested, self.duals, strict=True)
        ]

    def _tests(self, y: np.ndarray, tests: np.ndarray) -> np.ndarray:
        columns = [self._columns(y[self.n_sealed :], test) for test in tests.T]
        return np.hstack([np.empty((len(y) - self.n_sealed, 0)), *columns])

    def add_mode(self, mode: np.ndarray) -> None:
        """Append the columns of one mode (n_unknowns,)."""
        self.modes = np.column_stack([self.modes, mode])
        self.blocks = [np.hstack([b, self._columns(y, mode)]) for b, y in zip(self.blocks, self.duals, strict=True)]

    def _columns(self, y: np.ndarray, mode: np.ndarray) -> np.ndarray:
        return np.column_stack([y @ (a @ mode) for a in self.form.operators])

    @property
    def certifying(self) -> np.ndarray:
        """The sealed vectors, (n_unknowns, n)."""
        return self.vectors[:, : self.n_sealed]

    @property
    def deciding(self) -> np.ndarray:
        """The steering vectors, (n_unknowns, n)."""
        return self.vectors[:, self.n_sealed :]

    def steering(self) -> RandomDuals:
        """What the steering vectors see."""
        return self._duals(slice(self.n_sealed, None))

    def sealed(self) -> RandomDuals:
        """What the sealed vectors see; the coefficients of the inverse are those of the steering ones."""
        return self._duals(slice(None, self.n_sealed))

    def _duals(self, which: slice) -> RandomDuals:
        n_loads, n_terms = len(self.form.loads), len(self.form.operators)
        blocks = np.stack(self.blocks, axis=1)  # (n_vectors, m, n_columns)
        steering = np.concatenate([blocks[self.n_sealed :, :, n_loads:], np.stack(self.tested, axis=1)], axis=2)
        seen = steering.reshape(*steering.shape[:2], -1, n_terms)  # (i, j, l, q)
        # z_iᵀ v_l of the modes and the tests: ghosts have no weight
        wanted = self.deciding.T @ np.hstack([self.modes, self.tests])
        products = np.einsum("ijlq,iklp->qpjk", seen, seen, optimize=True)
        pairs = [(q, p) for q in range(n_terms) for p in range(q, n_terms)]
        return RandomDuals(
            mus=np.array(self.mus),
            normal=np.array([products[q, p] + products[p, q] if p > q else products[q, p] for q, p in pairs]),
            right=np.einsum("ijlq,il->qj", seen, wanted, optimize=True),
            size=float(np.sum(wanted**2)),
            blocks=blocks[which],
            n_loads=n_loads,
            n_terms=n_terms,
        )


def checked(duals: RandomDuals, vectors: np.ndarray, errors: np.ndarray, estimates: np.ndarray) -> RandomDuals:
    """The duals with the ratio between functionals z_iᵀ e of true errors (n, n_unknowns) and what was estimated, (n, K).

    What chance does is in neither of them: the vectors (n_unknowns, K) are the same.
    """
    true, seen = np.linalg.norm(errors @ vectors, axis=1), np.linalg.norm(estimates, axis=1)
    ratio = np.divide(true, seen, out=np.full(len(true), np.inf), where=seen > 0)
    return replace(duals, ratio=max(1.0, float(np.max(ratio, initial=1.0))), n_checked=len(errors))
