"""The error of an answer estimated without constants: random functionals of it, seen through an interpolated inverse."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from parasol.checks import check_shape
from parasol.errors import InputError
from parasol.runtime.quantities import mixed

# the random vectors miss the error by more than this factor with a probability that `miss_probability` says
WIDTH = 2.0
TYPICAL = 6.0  # an error of a quantity is taken to be less than so many times its typical size
RIDGE = 1e-13  # relative: keeps the small systems regular where two snapshots say the same
_BATCH = 512


def miss_probability(n_vectors: int) -> float:
    """P(χ²_K < K / w²), w = WIDTH, for an even number K of vectors: that their mean square is less than the error squared over w².

    >>> f"{miss_probability(20):.1e}"
    '2.8e-04'
    """
    half = n_vectors / (2.0 * WIDTH**2)
    term, total = 1.0, 1.0
    for k in range(1, n_vectors // 2):
        term *= half / k
        total += term
    return 1.0 - math.exp(-half) * total


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates of the errors ||u_μ − V c|| in the norm of the basis, and of the errors relative to ||u_μ||.

    The error exceeds `factor` times the estimate with a probability of at most 1 − `probability`, over the random vectors
    and for each parameter by itself. The factor holds what the interpolated inverse was seen to miss at fresh solves.
    """

    values: np.ndarray  # (n_samples,)
    relative: np.ndarray  # (n_samples,)
    factor: np.ndarray  # (n_samples,)
    probability: float


@dataclass(frozen=True, eq=False)
class Corrections:
    """What the residual says about errors of quantities ℓᵀ V c: the correction ℓᵀ P_μ r_μ, and what it leaves.

    What is left is ℓᵀ (I − P_μ A_μ) e; `left` is its typical size for ||e|| = 1, if e is to ℓ what modes and random smooth functions are.
    """

    values: np.ndarray  # (n_samples, n_quantities)
    left: np.ndarray  # (n_samples, n_quantities)


@dataclass(frozen=True, eq=False)
class RandomDuals:
    """||e||² ≈ (1/K) Σ_i (z_iᵀ P_μ r_μ)² with the residual r_μ = f_μ − A_μ V c and P_μ = Σ_j a_j(μ) A(μ_j)⁻¹ ≈ A_μ⁻¹.

    The z_i are normally distributed with the inner product as covariance, so that E (z_iᵀ e)² = ||e||². All that is kept are
    y_ijᵀ f_q and y_ijᵀ A_q v_l of the duals y_ij = A(μ_j)⁻ᵀ z_i. The coefficients a(μ) make P_μ A_μ as close to the identity
    as they can on the modes, seen by vectors other than the z_i: given e, the sum over i has a χ² law.
    """

    mus: np.ndarray  # (n_snapshots, n_parameters): the μ_j
    normal: np.ndarray  # (n_pairs, n_snapshots, n_snapshots): of the least squares for a, by pairs q ≤ p of terms
    right: np.ndarray  # (Q_A, n_snapshots)
    size: float  # sum of squares of what a has to reproduce
    blocks: np.ndarray  # (K, n_snapshots, Q_f + Q_A * n_modes), columns in the order of WeightedResidual
    n_loads: int  # Q_f
    n_terms: int  # Q_A
    ratio: float = 1.0  # error over estimate, beyond chance, at the worst of the fresh solves it was checked with
    n_checked: int = 0  # these solves
    # (n_quantities, n_snapshots, n_columns): the same of quantities in place of the z_i
    outputs: np.ndarray | None = None
    output_rows: np.ndarray | None = None  # (n_quantities, n_modes): the quantities of the modes
    output_tests: np.ndarray | None = None  # (n_quantities, n_snapshots, n_tests * Q_A): the same of random functions
    test_rows: np.ndarray | None = None  # (n_quantities, n_tests): the quantities of these functions
    output_ratio: float = 1.0  # error over the bound, of the worst quantity at these solves; at least 1
    # probabilities besides: that a matrix fitted to samples is further off than was allowed for, over random parameters;
    # that vectors looked at before these, which might have been taken, had missed the error
    doubt: float = field(default=0.0, metadata={"optional": True})

    def __post_init__(self):
        k, m, columns = check_shape(self.blocks, (None, None, None), "blocks").shape
        check_shape(self.mus, (m, None), "mus of the duals")
        check_shape(self.normal, (self.n_terms * (self.n_terms + 1) // 2, m, m), "normal matrices of the duals")
        check_shape(self.right, (self.n_terms, m), "right-hand sides of the duals")
        if k < 2 or k % 2 or not m or self.n_loads < 0 or self.n_terms < 1 or (columns - self.n_loads) % self.n_terms:
            raise InputError(
                f"duals of shape {self.blocks.shape} do not fit {self.n_loads} loads, {self.n_terms} terms."
            )
        if self.outputs is not None:
            n = len(check_shape(self.outputs, (None, m, columns), "duals of the quantities"))
            check_shape(self.output_rows, (n, self.n_modes), "quantities of the modes")
            n_tests = check_shape(self.test_rows, (n, None), "quantities of the tests").shape[1]
            check_shape(self.output_tests, (n, m, n_tests * self.n_terms), "duals of the quantities on the tests")
        if not (self.ratio >= 1.0 and self.output_ratio >= 1.0) or not self.size > 0.0:
            raise InputError("the factor of an estimate is at least 1, and its vectors are not zero.")
        if not 0.0 <= self.doubt < 0.5:
            raise InputError(f"doubt={self.doubt!r} is no small probability.")

    @property
    def n_modes(self) -> int:
        """Number of modes, d."""
        return (self.blocks.shape[2] - self.n_loads) // self.n_terms

    @property
    def probability(self) -> float:
        """That an error is at most the factor times its estimate, over the random vectors, and parameters where in doubt."""
        return 1.0 - miss_probability(len(self.blocks)) - self.doubt

    def truncated(self, n_modes: int) -> RandomDuals:
        """The same for the first modes."""
        size = self.n_loads + self.n_terms * n_modes
        outputs = None if self.outputs is None else self.outputs[:, :, :size].copy()
        rows = None if self.output_rows is None else self.output_rows[:, :n_modes].copy()
        return replace(self, blocks=self.blocks[:, :, :size].copy(), outputs=outputs, output_rows=rows)

    @cached_property
    def _pairs(self) -> np.ndarray:
        return np.array([(q, p) for q in range(self.n_terms) for p in range(q, self.n_terms)])

    @cached_property
    def _columns(self) -> np.ndarray:
        return np.ascontiguousarray(self.blocks.reshape(-1, self.blocks.shape[2]).T)  # (n_columns, K * n_snapshots)

    def _systems(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Normal matrices (n_samples, m, m) and right-hand sides (n_samples, m)."""
        m = len(self.mus)
        weights = theta[:, self._pairs[:, 0]] * theta[:, self._pairs[:, 1]]
        return (weights @ self.normal.reshape(len(self.normal), -1)).reshape(-1, m, m), theta @ self.right

    def inverses(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """a(μ), (n_samples, n_snapshots), and how far P_μ A_μ is from the identity on the modes, relative, (n_samples,)."""
        normal, right = self._systems(theta)
        scale = np.sqrt(np.einsum("njj->nj", normal))  # one size for all snapshots
        scale = np.where(scale > 0, scale, 1.0)
        normal = normal / (scale[:, :, None] * scale[:, None, :]) + RIDGE * np.eye(len(self.mus))
        a = np.linalg.solve(normal, (right / scale)[:, :, None])[:, :, 0] / scale
        left = 1.0 - np.sum(a * right, axis=1) / self.size
        return a, np.sqrt(np.clip(left, 0.0, 1.0))

    def _single(self, theta: np.ndarray, choices: np.ndarray) -> np.ndarray:
        """What multiples of the single inverses `choices` reproduce, relative, (n_samples, n_choices)."""
        normal, right = self._systems(theta)
        square = np.einsum("njj->nj", normal)[:, choices]
        return right[:, choices] ** 2 / (np.where(square > 0, square, np.inf) * self.size)

    def nearest(self, theta: np.ndarray, choices: np.ndarray) -> np.ndarray:
        """Which of the `choices` among the snapshots has by itself the inverse nearest to that of A_μ, (n_samples,)."""
        return np.argmax(self._single(theta, choices), axis=1)

    def alone(self, theta: np.ndarray, choices: np.ndarray) -> np.ndarray:
        """How far the nearest of the `choices` by itself is from the inverse of A_μ on the modes, relative, (n_samples,)."""
        return np.sqrt(np.clip(1.0 - np.max(self._single(theta, choices), axis=1), 0.0, 1.0))

    def errors(self, theta: np.ndarray, phi: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Estimates of ||u_μ − V c|| for coefficients (n_samples, n_modes), and the factors that go with them, (n_samples,)."""
        out, missed = np.empty(len(c)), np.empty(len(c))
        for start in range(0, len(c), _BATCH):
            rows = slice(start, start + _BATCH)
            functionals, missed[rows] = self.functionals(theta[rows], phi[rows], c[rows])
            with np.errstate(over="ignore", invalid="ignore"):
                out[rows] = np.sqrt(np.mean(functionals**2, axis=1))
        with np.errstate(divide="ignore"):
            return out, WIDTH * self.ratio / (1.0 - missed)

    def functionals(self, theta: np.ndarray, phi: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """z_iᵀ P_μ r_μ, (n_samples, K), and how far P_μ A_μ is from the identity, (n_samples,)."""
        a, missed = self.inverses(theta)
        with np.errstate(over="ignore", invalid="ignore"):
            return self._seen(self._columns, theta, phi, c, a), missed

    def corrects(self, rows: np.ndarray) -> bool:
        """Whether the duals are those of the quantities with ℓᵀ V = `rows` (n_quantities, n_modes)."""
        known = self.output_rows
        if known is None or known.shape != rows.shape:
            return False
        sizes = np.max(np.abs(known), axis=1, initial=0.0)  # each has a unit of its own
        return bool(np.all(np.abs(known - rows) <= 1e-6 * sizes[:, None]))

    def corrections(
        self, theta: np.ndarray, phi: np.ndarray, c: np.ndarray, mix: np.ndarray | None = None
    ) -> Corrections:
        """Of the quantities, for coefficients (n_samples, n_modes), or of sums `mix` of them (`mixed`)."""
        assert self.outputs is not None
        n, m = len(self.outputs), len(self.mus)
        a, _ = self.inverses(theta)
        values = mixed(mix, self._seen(self.outputs.reshape(n * m, -1).T, theta, phi, c, a))
        left = np.zeros_like(values)
        # modes have the shapes of errors, but a(μ) was fitted to them: few of them would look better than they are
        for wanted, seen in (
            (self.output_rows, self.outputs[:, :, self.n_loads :]),
            (self.test_rows, self.output_tests),
        ):
            blocks = seen.reshape(n, m, -1, self.n_terms)  # type: ignore[union-attr]
            gaps = wanted - np.einsum("nj,ojlq,nq->nol", a, blocks, theta, optimize=True)  # type: ignore[operator]
            left = np.maximum(left, np.sqrt(np.mean(mixed(mix, gaps) ** 2, axis=2)))
        return Corrections(values, left)

    def _seen(
        self, columns: np.ndarray, theta: np.ndarray, phi: np.ndarray, c: np.ndarray, a: np.ndarray
    ) -> np.ndarray:
        """Functionals of P_μ r_μ, (n_samples, n), from their columns (n_columns, n * n_snapshots)."""
        z = np.concatenate([phi, -(c[:, :, None] * theta[:, None, :]).reshape(len(c), -1)], axis=1)
        seen = (z @ columns).reshape(len(c), -1, len(self.mus))
        return (seen @ a[:, :, None])[:, :, 0]
