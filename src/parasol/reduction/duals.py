"""Duals of random vectors at the parameters that are solved anyway: what the estimate of errors is made of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from parasol.errors import InputError
from parasol.pde.sparse_direct import Factors
from parasol.reduction.affine import AffineForm
from parasol.reduction.products import Root
from parasol.runtime.duals import TYPICAL, RandomDuals
from parasol.runtime.quantities import Mixing, mixed
from parasol.runtime.reduced import ReducedModel

N_VECTORS = 20  # that certify, sealed until the surrogate is made
_N_STEERING = 10  # that choose parameters, coefficients of the inverse, and when to stop
_SEEN = 1e-11  # relative errors below are rounding
# smooth random functions by which inverses are tested besides the modes: of a snapshot, in all
_N_TESTS, _MOST_TESTS = 4, 16


class DualBuilder:
    """Collects y_ijᵀ f_q and y_ijᵀ A_q v_l for duals y_ij = A(μ_j)⁻ᵀ z_i, snapshot by snapshot and mode by mode.

    Two sets of vectors are solved with the same factors. The steering ones decide: where to solve, with which coefficients
    inverses are interpolated, when to stop. The sealed ones certify, and nothing that is made may depend on them.
    """

    def __init__(
        self,
        form: AffineForm,
        root: Root,
        scale: np.ndarray,
        rng: np.random.Generator,
        n_vectors: int = N_VECTORS,
        outputs: np.ndarray | None = None,
        mixing: Mixing | None = None,
        sealed: np.random.Generator | None = None,
    ):
        """`root` is that of the inner product, 0 at unknowns that do not count; 1 / `scale` is their typical size.

        `outputs` (n_parts, n_unknowns) are quantities of interest, or parts that are mixed at each μ; their duals are
        solved too. Where earlier vectors have decided something, `sealed` draws others to certify.
        """
        if n_vectors < 4 or n_vectors % 2:
            raise InputError(f"an estimate takes an even number of at least 4 random vectors, got {n_vectors}.")
        self.form, self.root, self.scale = form, root, scale
        self.n_sealed, self.rng, self.mixing = n_vectors, rng, mixing
        normal = rng.standard_normal((n_vectors + _N_STEERING, len(scale)))
        if sealed is not None:
            normal[:n_vectors] = sealed.standard_normal((n_vectors, len(scale)))
        self.vectors = root.into_transposed(normal.T)  # (n_unknowns, n): the sealed ones, those that steer, quantities
        if outputs is not None:
            self.vectors = np.hstack([self.vectors, outputs.T])
        self.n_triangular = 0
        self.mus: list[np.ndarray] = []
        self.duals: list[np.ndarray] = []  # (n_vectors, n_unknowns) each
        self.blocks: list[np.ndarray] = []  # (n_vectors, n_columns) each
        self.modes, self.applied = np.empty((len(scale), 0)), np.empty((len(scale), 0))  # v_l, and all A_q v_l
        self.tests, self.applied_tests = np.empty((len(scale), 0)), np.empty((len(scale), 0))
        self.tested: list[np.ndarray] = []  # (n_vectors, n_tests * n_terms) each, of all vectors but the sealed ones

    def add_snapshot(self, mu: np.ndarray, factors: Factors) -> None:
        """Solve all duals with the factors of A(mu)."""
        y = factors.solve_transposed(self.vectors)
        if factors.refines:
            y += factors.solve_transposed(self.vectors - factors.matrix.T @ y)  # rounding, as far as it can be undone
        y = np.ascontiguousarray(y.T)
        self.n_triangular += (1 + factors.refines) * len(y)
        self.mus.append(mu)
        self.duals.append(y)
        self.blocks.append(np.hstack([y @ self.form.loads.T, y @ self.applied]))
        self.tested.append(y[self.n_sealed :] @ self.applied_tests)
        if self.tests.shape[1] < _MOST_TESTS:
            self._add_tests(factors)

    def _add_tests(self, factors: Factors) -> None:
        """Smooth functions A(μ_j)⁻¹ ω of random ω, of norm 1: a few modes alone would not resemble later errors.

        In each row ω has the size of what it balances, so that units do not matter.
        """
        rows = abs(factors.matrix) @ (1.0 / self.scale)
        tests = factors.solve(rows[:, None] * self.rng.standard_normal((len(rows), _N_TESTS)))
        self.n_triangular += _N_TESTS
        tests /= np.linalg.norm(self.root.into(tests), axis=0)
        self.tests, applied = np.hstack([self.tests, tests]), self._applied(tests)
        self.applied_tests = np.hstack([self.applied_tests, applied])
        pairs = zip(self.tested, self.duals, strict=True)
        self.tested = [np.hstack([known, y[self.n_sealed :] @ applied]) for known, y in pairs]

    @property
    def _steering(self) -> slice:
        return slice(self.n_sealed, self.n_sealed + _N_STEERING)

    def add_mode(self, mode: np.ndarray) -> None:
        """Append the columns of one mode (n_unknowns,)."""
        self.modes = np.column_stack([self.modes, mode])
        applied = self._applied(mode[:, None])
        self.applied = np.hstack([self.applied, applied])
        self.blocks = [np.hstack([b, y @ applied]) for b, y in zip(self.blocks, self.duals, strict=True)]

    def set_modes(self, modes: np.ndarray) -> None:
        """Other modes (n_unknowns, n) in place of those so far."""
        self.modes, self.applied = modes, self._applied(modes)
        self.blocks = [np.hstack([y @ self.form.loads.T, y @ self.applied]) for y in self.duals]

    def _applied(self, functions: np.ndarray) -> np.ndarray:
        """A_1 v_1, A_2 v_1 …, A_1 v_2 … of functions (n_unknowns, n): (n_unknowns, n * Q_A)."""
        return np.stack([a @ functions for a in self.form.operators], axis=2).reshape(len(functions), -1)

    @property
    def certifying(self) -> np.ndarray:
        """The sealed vectors, (n_unknowns, n)."""
        return self.vectors[:, : self.n_sealed]

    @property
    def deciding(self) -> np.ndarray:
        """The steering vectors, (n_unknowns, n)."""
        return self.vectors[:, self._steering]

    def steering(self) -> RandomDuals:
        """What the steering vectors see."""
        return self._duals(self._steering)

    def sealed(self) -> RandomDuals:
        """What the sealed vectors see; the coefficients of the inverse are those of the steering ones."""
        return self._duals(slice(None, self.n_sealed))

    def _duals(self, which: slice) -> RandomDuals:
        n_loads, n_terms = len(self.form.loads), len(self.form.operators)
        blocks = np.stack(self.blocks, axis=1)  # (n_vectors, m, n_columns)
        tested = np.stack(self.tested, axis=1)
        steering = np.concatenate([blocks[self._steering, :, n_loads:], tested[:_N_STEERING]], axis=2)
        seen = steering.reshape(*steering.shape[:2], -1, n_terms)  # (i, j, l, q)
        # z_iᵀ v_l of the modes and the tests: ghosts have no weight
        wanted = self.deciding.T @ np.hstack([self.modes, self.tests])
        products = np.einsum("ijlq,iklp->qpjk", seen, seen, optimize=True)
        pairs = [(q, p) for q in range(n_terms) for p in range(q, n_terms)]
        duals = RandomDuals(
            mus=np.array(self.mus),
            normal=np.array([products[q, p] + products[p, q] if p > q else products[q, p] for q, p in pairs]),
            right=np.einsum("ijlq,il->qj", seen, wanted, optimize=True),
            size=float(np.sum(wanted**2)),
            blocks=blocks[which],
            n_loads=n_loads,
            n_terms=n_terms,
            doubt=self.form.doubt,
        )
        return duals if len(blocks) == self._steering.stop else replace(duals, **self._outputs(blocks, tested))

    def _outputs(self, blocks: np.ndarray, tested: np.ndarray) -> dict[str, Any]:
        """What the duals of the quantities see."""
        rows = self.vectors[:, self._steering.stop :].T
        out = {"outputs": blocks[self._steering.stop :], "output_tests": tested[_N_STEERING:]}
        return out | {"output_rows": rows @ self.modes, "test_rows": rows @ self.tests}

    def checked(self, reduced: ReducedModel, mus: np.ndarray, solutions: np.ndarray) -> ReducedModel:
        """The reduced model; what its estimates missed at the worst of these solutions (n, n_unknowns) enters its factor.

        Functionals z_iᵀ e of the true errors are compared with what was estimated of them: chance is in neither, for the
        vectors are the same. Errors that are rounding say nothing.
        """
        duals = reduced.duals
        assert duals is not None
        c = reduced.coefficients(mus, extrapolate=True)
        errors = solutions - c @ self.modes.T
        size, whole = (np.linalg.norm(self.root.into(part.T), axis=0) for part in (errors, solutions))
        large = size > _SEEN * whole
        if not np.any(large):
            return reduced
        mus, c, errors = mus[large], c[large], errors[large]
        theta, phi = reduced.operator_theta(mus), reduced.load_theta(mus)
        functionals, missed = duals.functionals(theta, phi, c)
        inside = np.maximum(1.0 - missed, 1e-300)  # as the factor of an answer has it
        sealed = len(duals.blocks) == self.n_sealed
        true = np.linalg.norm(errors @ (self.certifying if sealed else self.deciding), axis=1)
        checked_duals = replace(
            duals, ratio=_largest(inside * true, np.linalg.norm(functionals, axis=1)), n_checked=len(mus)
        )
        if duals.outputs is not None:
            rows = self.vectors[:, self._steering.stop :].T
            mix = None if self.mixing is None else self.mixing(mus)
            change = duals.corrections(theta, phi, c, mix)
            gap = np.abs(mixed(mix, errors @ rows.T) - change.values)
            gap = np.where(gap > _SEEN * np.abs(mixed(mix, solutions[large] @ rows.T)), gap, 0.0)
            size = np.sqrt(np.mean(functionals**2, axis=1)) / inside
            checked_duals = replace(checked_duals, output_ratio=_largest(gap, TYPICAL * change.left * size[:, None]))
        return replace(reduced, duals=checked_duals)


def _largest(true: np.ndarray, seen: np.ndarray) -> float:
    """The largest ratio, at least 1; infinite where something is true that was not seen at all."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return max(1.0, float(np.max(np.where(true > 0, true / seen, 0.0))))
