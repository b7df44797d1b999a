"""The constants behind error bounds: norms at well-chosen parameters, from which a certificate covers the box."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from parasol.checks import Progress
from parasol.errors import NoCertificate
from parasol.pde.model import Model
from parasol.pde.sparse_direct import Factors
from parasol.reduction.affine import AffineForm
from parasol.reduction.products import Root
from parasol.reduction.stretch import Product, Stretch, nearly_normal
from parasol.runtime.certificate import Certificate

_STEPS = 26  # of the bidiagonalisation; more cost two triangular solves each and narrow the margin
_RISK = 1e-6  # probability that one norm exceeds its margin, over the random start vector
ROUNDING = 1e-6  # margin of norms that are exact up to rounding
_MOST = 24  # preconditioners
# part of the norm: an anchor whose nearest preconditioner leaves a smaller singular value becomes one itself
_TOO_SMALL = 0.6
_WORTH = 0.05  # a centre closer to zero, relative to the norm, is not worth a second norm
_PATIENCE, _GAIN = 16, 0.005  # so many anchors have to reach so much more of the candidates
_REFERENCES, _DIRECTIONS = 3, 4  # parameters, and changes of the matrix at each, that the norm is made for


def operator_norm(
    apply: Callable[[np.ndarray], np.ndarray], transposed: Callable[[np.ndarray], np.ndarray], start: np.ndarray
) -> tuple[float, bool]:
    """The largest singular value of a map given by its products, from below, and whether it is exact.

    Golub and Kahan's bidiagonalisation with full orthogonalisation, for a fixed number of steps. It is exact where the
    Krylov space of the start is exhausted before that.

    >>> a = np.diag([3.0, 2.0, 1.0])
    >>> value, exact = operator_norm(lambda x: a @ x, lambda y: a.T @ y, np.ones(3))
    >>> round(value, 6), exact
    (3.0, True)
    >>> a = np.outer([3.0, 4.0], [0.0, 0.0, 2.0])  # of rank one
    >>> value, exact = operator_norm(lambda x: a @ x, lambda y: a.T @ y, np.ones(3))
    >>> round(value, 6), exact
    (10.0, True)
    """
    krylov = _bidiagonalised(apply, transposed, start)
    return krylov.value, krylov.exact


class _Krylov(NamedTuple):
    """A map over a few right vectors: K R = L B with orthonormal rows of R and L and a bidiagonal B."""

    value: float
    exact: bool
    left: list[np.ndarray]
    bidiagonal: np.ndarray
    right: list[np.ndarray]

    @property
    def middle(self) -> float:
        """The middle of the numerical range of a square map, about: of its part over the right vectors."""
        small = np.array(self.right) @ np.array(self.left).T @ self.bidiagonal
        ends = np.linalg.eigvalsh((small + small.T) / 2)
        return float(ends[0] + ends[-1]) / 2


def _bidiagonalised(
    apply: Callable[[np.ndarray], np.ndarray], transposed: Callable[[np.ndarray], np.ndarray], start: np.ndarray
) -> _Krylov:
    right = [start / np.linalg.norm(start)]
    left: list[np.ndarray] = []
    alphas: list[float] = []
    betas: list[float] = []
    value = 0.0
    for _ in range(_STEPS):
        u = apply(right[-1])
        size = np.linalg.norm(u)
        for _ in range(2):  # once leaves rounding, which counts where little else is left
            u -= sum((w @ u) * w for w in left)
        alphas.append(float(np.linalg.norm(u)))
        if alphas[-1] <= 1e-14 * size:  # nothing new on the left, as of a matrix of low rank: the last β still counts
            bidiagonal = np.diag(alphas) + np.diag(betas, 1)
            return _Krylov(float(np.linalg.norm(bidiagonal, 2)), True, [*left, u], bidiagonal, right)
        left.append(u / alphas[-1])
        v = transposed(left[-1])
        for _ in range(2):
            v -= sum((w @ v) * w for w in right)
        betas.append(float(np.linalg.norm(v)))
        bidiagonal = np.diag(alphas) + np.diag(betas[:-1], 1)
        value = float(np.linalg.norm(bidiagonal, 2))
        if betas[-1] <= 1e-12 * value:
            return _Krylov(value, True, left, bidiagonal, right)
        right.append(v / betas[-1])
    return _Krylov(value, False, left, bidiagonal, right[:-1])


def lanczos_margin(n: int) -> float:
    """The factor by which a largest singular value can exceed what `_STEPS` steps found, but for a probability `_RISK`.

    k steps from a start that is uniform on the sphere of n dimensions find the largest eigenvalue of B Bᵀ up to the
    relative error ε with probability 1 − 1.648 √n exp(−√ε (2k − 1)) (Kuczyński and Woźniakowski 1992, theorem 4.1),
    whatever the spectrum.

    >>> round(lanczos_margin(1000), 2)
    1.07
    """
    root = np.log(1.648 * np.sqrt(n) / _RISK) / (2 * _STEPS - 1)
    return float(1.0 / np.sqrt(1.0 - root**2))


def norm_after(
    factors: Factors,
    matrix: sparse.csr_array,
    root: Root,
    free: np.ndarray,
    stretch: Stretch | None = None,
    rng: np.random.Generator | None = None,
    *,
    rows: bool = False,
) -> float:
    """An upper bound of ||S R A_j⁻¹ B R⁻¹ S⁻¹|| on vectors of the free unknowns, but for a probability `_RISK`.

    With `rows` it is that of ||S R A_j⁻¹ B S⁻¹||.
    """
    products = _products(factors, matrix, root, free, stretch, rows=rows)
    return _norm_after(products, free, rng or np.random.default_rng(0))[0]


def centred_norm(
    factors: Factors,
    matrix: sparse.csr_array,
    root: Root,
    free: np.ndarray,
    stretch: Stretch | None,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """A number c and an upper bound of ||K − c|| for the map K of `norm_after`, which is less than ||K|| where c ≠ 0.

    Of a map with the spectrum 0 … κ that is the half, and σ_min(1 + δK) ≥ |1 + δc| − |δ| ||K − c|| ≥ 1 for all δ ≥ 0.
    """
    apply, transposed = _products(factors, matrix, root, free, stretch)
    plain, krylov = _norm_after((apply, transposed), free, rng)
    middle = krylov.middle
    shifted = lambda x: apply(x) - middle * (free * x)  # noqa: E731
    if abs(middle) < _WORTH * plain:
        return 0.0, plain
    # another start: the centre was found from the first one, and the margin is for starts that do not know the map
    norm, _ = _norm_after((shifted, lambda y: transposed(y) - middle * (free * y)), free, rng)
    return (middle, norm) if norm < plain else (0.0, plain)


def _products(
    factors: Factors,
    matrix: sparse.csr_array,
    root: Root,
    free: np.ndarray,
    stretch: Stretch | None,
    *,
    rows: bool = False,
) -> tuple[Product, Product]:
    """x → S R A_j⁻¹ B R⁻¹ S⁻¹ x on the free unknowns and its transpose, for vectors or blocks of them; of `rows` no R⁻¹."""
    there = matrix.T.tocsr()
    more: Product = (lambda x: x) if stretch is None else stretch
    less: Product = (lambda x: x) if stretch is None else stretch.undone

    back: Product = (lambda x: x) if rows else root.back
    back_transposed: Product = (lambda x: x) if rows else root.back_transposed

    def apply(x: np.ndarray) -> np.ndarray:
        return more(root.into(factors.solve(matrix @ back(less((free * x.T).T)))))

    def transposed(y: np.ndarray) -> np.ndarray:
        pulled = there @ factors.solve_transposed(root.into_transposed(more(y)))
        return less((free * back_transposed(pulled).T).T)

    return apply, transposed


def _norm_after(products: tuple[Product, Product], free: np.ndarray, rng: np.random.Generator) -> tuple[float, _Krylov]:
    """The norm with its margin, and what it was found from."""
    start = free * rng.standard_normal(len(free))  # no direction is missing from it
    krylov = _bidiagonalised(*products, start)
    if not np.isfinite(krylov.value):
        raise NoCertificate("a norm for the certificate could not be computed. Is the operator singular here?")
    margin = 1.0 + ROUNDING if krylov.exact else lanczos_margin(int(np.count_nonzero(free)))
    return margin * krylov.value, krylov


@dataclass(frozen=True, eq=False)
class Cover:
    """What `cover` found: the certificate, and the parameters whose matrices weight the residual."""

    certificate: Certificate
    preconditioners: tuple[np.ndarray, ...]
    anchors: tuple[int, ...]  # places of the anchors among the candidates
    proven: float  # the part of the candidates at which the constant is proven
    stretch: Stretch | None = None  # of the norm that the constants are about; None: none

    @property
    def n_factorizations(self) -> int:
        """Matrices factorised for the norms."""
        return len(self.anchors)


def cover(
    model: Model,
    form: AffineForm,
    candidates: np.ndarray,
    *,
    root: Root,
    free: np.ndarray,
    rows: np.ndarray | None = None,
    n_anchors: int = 100,
    target: float = 0.35,
    progress: Progress = None,
    stop: Callable[[], bool] | None = None,
) -> Cover:
    """Choose anchors, and preconditioners among them, until the constant is proven to exceed `target` at every candidate.

    It ends earlier with `n_anchors`, where many anchors together bring little, as near a resonance, or where `stop` says so.

    The next anchor is the candidate with the least proven constant, or any with too little, in turn. An anchor at which the preconditioners at hand
    leave a small singular value becomes one itself. With `rows` the residual is weighted row by row and there is one preconditioner.
    """
    anchors = _Anchors(model, form, candidates, root, free, rows)
    for index in anchors.begin(n_anchors):
        anchors.add(index)
    reached: list[float] = []
    rng = np.random.default_rng([0, 2])
    while True:
        certificate = anchors.certificate()
        lower = certificate.quality(anchors.thetas)
        if rows is not None:  # the size of a row weighting means nothing
            lower /= np.max(certificate.sigmas)
        reached.append(float(np.mean(lower >= target)))
        lower[anchors.chosen] = np.inf  # more than at an anchor itself cannot be proven there
        worst = int(np.argmin(lower))
        stalled = len(reached) > _PATIENCE and reached[-1] - reached[-1 - _PATIENCE] < _GAIN
        if lower[worst] >= target or len(anchors.chosen) >= n_anchors or stalled or (stop is not None and stop()):
            proven = float(np.mean(certificate.constants(anchors.thetas).rigorous))
            weights = tuple(candidates[k] for k in anchors.preconditioners)
            return Cover(certificate, weights, tuple(anchors.chosen), proven, anchors.stretch)
        if progress is not None:
            progress(len(anchors.chosen) / n_anchors)
        # where nothing can be proven, as near a resonance, the worst are all in one place: every other anchor is any open one
        open_cases = np.flatnonzero(lower < target)
        anchors.add(worst if len(anchors.chosen) % 2 else int(rng.choice(open_cases)))


class _Anchors:
    """The anchors so far, with their norms."""

    def __init__(self, model: Model, form: AffineForm, candidates: np.ndarray, root: Root, free, rows):
        self.model, self.form, self.candidates = model, form, candidates
        self.root, self.free, self.rows = root, free, rows
        self.thetas, self.places = form.operator_theta(candidates), unit_cube(model, candidates)
        constant = form.operator_theta.constant
        # that A(μ) is a multiple of A_j and a rest helps only where several coefficients change: then all norms are needed
        every = np.count_nonzero(~constant) > 1
        self.terms = [a if every or not fixed else None for a, fixed in zip(form.operators, constant, strict=True)]
        self.varying = [a for a, fixed in zip(self.terms, constant, strict=True) if a is not None and not fixed]
        self.stretch: Stretch | None = None
        # every norm has a start of its own, so that none knows its map: earlier norms chose the anchor, and others the centre
        self.rng = np.random.default_rng([0, 1])
        self.kept: dict[int, Factors] = {}  # of the references
        self.chosen, self.preconditioners, self.weightings = [], [], []
        self.norms, self.centres, self.sigmas, self.own = [], [], [], []

    def begin(self, n_anchors: int) -> list[int]:
        """The first anchors: the middle, and the parameters farthest from all others; they decide the norm."""
        out = [middle_of(self.model, self.candidates)]
        if self.rows is not None or not self.varying:
            return out
        for _ in range(min(n_anchors, _REFERENCES) - 1):
            gaps = np.min(np.sum((self.places[:, None] - self.places[out]) ** 2, axis=2), axis=1)
            if np.max(gaps) > 0:
                out.append(int(np.argmax(gaps)))
        rng, maps = np.random.default_rng([0, 3]), []
        for index in out:
            self.kept[index] = self.model.factors(self.candidates[index])
            changes = self.varying
            if len(changes) > _DIRECTIONS:
                others = self.thetas[rng.integers(len(self.thetas), size=_DIRECTIONS)] - self.thetas[index]
                changes = [self.form_of(change) for change in others if np.any(change)]
            maps += [_products(self.kept[index], change, self.root, self.free, None) for change in changes]
        self.stretch = nearly_normal(maps, self.free)
        return out

    def form_of(self, theta: np.ndarray) -> sparse.csr_array:
        """Σ θ_q A_q."""
        return sparse.csr_array(sum(t * a for t, a in zip(theta, self.form.operators, strict=True)))

    def add(self, index: int) -> None:
        """Compute the norms at a candidate."""
        factors = self.kept.pop(index, None) or self.model.factors(self.candidates[index])
        pairs = [
            (0.0, 0.0) if a is None else centred_norm(factors, a, self.root, self.free, self.stretch, self.rng)
            for a in self.terms
        ]
        self.centres.append([centre for centre, _ in pairs])
        self.norms.append([norm for _, norm in pairs])
        sigmas, own = self._weighted(index, factors)
        self.chosen.append(index)
        self.sigmas.append(sigmas)
        self.own.append(own)

    def _weighted(self, index: int, factors: Factors) -> tuple[dict[int, float], int]:
        """σ_min(P_k A_j) for the preconditioners that are tried, and which of them is A_j⁻¹ itself, −1 for none."""
        options = {"rows": self.rows is not None}
        norm = lambda matrix: norm_after(factors, matrix, self.root, self.free, self.stretch, self.rng, **options)  # noqa: E731
        if self.rows is not None:
            if not self.preconditioners:
                self.preconditioners.append(index)
                self.weightings.append(sparse.csr_array(sparse.diags_array(1.0 / self.rows)))
            return {0: 1.0 / norm(self.weightings[0])}, -1
        sigmas: dict[int, float] = {}
        far = False
        if self.preconditioners:
            near = int(np.argmin(np.sum((self.places[self.preconditioners] - self.places[index]) ** 2, axis=1)))
            sigmas[near] = 1.0 / norm(self.weightings[near])
            far = len(self.preconditioners) < _MOST and sigmas[near] < _TOO_SMALL * self._size(near, index)
        own = -1
        if not self.preconditioners or far:
            own = len(self.preconditioners)
            sigmas = {own: 1.0 - ROUNDING}  # of the identity; a larger one of another only says that it is larger
            self.preconditioners.append(index)
            self.weightings.append(self.model.operator(self.candidates[index]))
        return sigmas, own

    def _size(self, k: int, index: int) -> float:
        """An upper bound of ||P_k A_j|| at a candidate j: a bound can be too large by that over σ_min(P_k A_j)."""
        j = self.own.index(k)
        row = Certificate(
            self.thetas[[self.chosen[j]]],
            np.array([self.norms[j]]),
            np.ones((1, 1)),
            centres=np.array([self.centres[j]]),
        )
        middle, part = row.changes(self.thetas[[index]])
        return float(abs(middle[0, 0]) * (1.0 + part[0, 0]))

    def certificate(self) -> Certificate:
        """What the anchors prove."""
        table = np.zeros((len(self.chosen), len(self.preconditioners)))
        for j, sigmas in enumerate(self.sigmas):
            for k, value in sigmas.items():
                table[j, k] = value
        return Certificate(
            self.thetas[self.chosen],
            np.array(self.norms),
            table,
            self.form.exact,
            centres=np.array(self.centres) if self.varying else None,
            own=np.array(self.own) if self.stretch is not None else None,
        )


def unit_cube(model: Model, mus: np.ndarray) -> np.ndarray:
    """The scalar parameters on their own scales, mapped to [0, 1]."""
    return model.parameters.to_unit(mus[:, : len(model.parameters.scalars)])


def middle_of(model: Model, mus: np.ndarray) -> int:
    """Which of the parameters is nearest to the middle of the box."""
    return int(np.argmin(np.sum((unit_cube(model, mus) - 0.5) ** 2, axis=1)))
