"""The constants behind error bounds: norms at well-chosen parameters, from which a certificate covers the box."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from parasol.errors import NoCertificate
from parasol.pde.model import Model
from parasol.pde.sparse_direct import Factors
from parasol.reduction.affine import AffineForm
from parasol.reduction.products import Root
from parasol.runtime.certificate import Certificate

_STEPS = 26  # of the bidiagonalisation; more cost two triangular solves each and narrow the margin
_RISK = 1e-6  # probability that one norm exceeds its margin, over the random start vector
ROUNDING = 1e-6  # margin of norms that are exact up to rounding
_MOST = 16  # preconditioners
_TOO_SMALL = 0.3  # an anchor whose nearest preconditioner leaves a smaller singular value becomes one itself


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
    right = [start / np.linalg.norm(start)]
    left: list[np.ndarray] = []
    alphas: list[float] = []
    betas: list[float] = []
    value = 0.0
    for _ in range(_STEPS):
        u = apply(right[-1])
        size = np.linalg.norm(u)
        u = _without(u, left)
        alphas.append(float(np.linalg.norm(u)))
        if alphas[-1] <= 1e-14 * size:  # nothing new on the left, as of a matrix of low rank: the last β still counts
            return float(np.linalg.norm(np.diag(alphas) + np.diag(betas, 1), 2)), True
        left.append(u / alphas[-1])
        v = transposed(left[-1])
        v = _without(v, right)
        betas.append(float(np.linalg.norm(v)))
        value = float(np.linalg.norm(np.diag(alphas) + np.diag(betas[:-1], 1), 2))
        if betas[-1] <= 1e-12 * value:
            return value, True
        right.append(v / betas[-1])
    return value, False


def _without(vector: np.ndarray, known: list[np.ndarray]) -> np.ndarray:
    """What a vector has besides known orthonormal ones."""
    if known:
        basis = np.array(known)
        for _ in range(2):  # where few singular values differ, little is left and once is not enough
            vector = vector - basis.T @ (basis @ vector)
    return vector


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
    factors: Factors, matrix: sparse.csr_array, root: Root, free: np.ndarray, *, rows: bool = False
) -> float:
    """An upper bound of ||R A_j⁻¹ B R⁻¹|| on vectors of the free unknowns, but for a probability `_RISK`.

    With `rows` it is that of ||R A_j⁻¹ B||.
    """
    transposed = matrix.T.tocsr()
    start = free * np.random.default_rng(0).standard_normal(len(free))  # no direction is missing from it
    back = (lambda x: x) if rows else root.back
    back_transposed = (lambda x: x) if rows else root.back_transposed
    value, exact = operator_norm(
        lambda x: root.into(factors.solve(matrix @ back(free * x))),
        lambda y: free * back_transposed(transposed @ factors.solve_transposed(root.into_transposed(y))),
        start,
    )
    if not np.isfinite(value):
        raise NoCertificate("a norm for the certificate could not be computed. Is the operator singular here?")
    return (1.0 + ROUNDING if exact else lanczos_margin(int(np.count_nonzero(free)))) * value


@dataclass(frozen=True, eq=False)
class Cover:
    """What `cover` found: the certificate, and the parameters whose matrices weight the residual."""

    certificate: Certificate
    preconditioners: tuple[np.ndarray, ...]
    anchors: tuple[int, ...]  # places of the anchors among the candidates
    proven: float  # the part of the candidates at which the constant is proven

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
    target: float = 0.15,
    progress: Callable[[float], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Cover:
    """Choose anchors, and preconditioners among them, until the constant is proven to exceed `target` at every candidate.

    It ends earlier with `n_anchors`, or where `stop` says so.

    The next anchor is always the candidate with the least proven constant. An anchor at which the preconditioners at hand
    leave a small singular value becomes one itself. With `rows` the residual is weighted row by row and there is one preconditioner.
    """
    thetas = form.operator_theta(candidates)
    pairs = zip(form.operators, form.operator_theta.constant, strict=True)
    terms = [None if fixed else a for a, fixed in pairs]
    places = unit_cube(model, candidates)
    chosen, preconditioners, weightings = [], [], []
    norms, sigmas = [], []

    def anchor(index: int) -> None:
        mu = candidates[index]
        factors = model.factors(mu)
        norms.append([0.0 if a is None else norm_after(factors, a, root, free) for a in terms])
        if rows is not None:
            if not preconditioners:
                preconditioners.append(index)
                weightings.append(sparse.csr_array(sparse.diags_array(1.0 / rows)))
            found = {0: 1.0 / norm_after(factors, weightings[0], root, free, rows=True)}
        else:
            found = {}
            if preconditioners:
                near = int(np.argmin(np.sum((places[preconditioners] - places[index]) ** 2, axis=1)))
                found[near] = 1.0 / norm_after(factors, weightings[near], root, free)
            if not preconditioners or (max(found.values()) < _TOO_SMALL and len(preconditioners) < _MOST):
                found[len(preconditioners)] = 1.0 - ROUNDING  # of the identity
                preconditioners.append(index)
                weightings.append(model.operator(mu))
        chosen.append(index)
        sigmas.append(found)

    anchor(middle_of(model, candidates))
    while True:
        table = np.zeros((len(chosen), len(preconditioners)))
        for j, found in enumerate(sigmas):
            for k, value in found.items():
                table[j, k] = value
        certificate = Certificate(thetas[chosen], np.array(norms), table, form.exact)
        lower = np.max(table.max(axis=1) * (1.0 - certificate.distances(thetas)), axis=1)
        lower[chosen] = np.inf  # more than at an anchor itself cannot be proven there
        worst = int(np.argmin(lower))
        if lower[worst] >= target or len(chosen) >= n_anchors or (stop is not None and stop()):
            proven = float(np.mean(certificate.constants(thetas).rigorous))
            return Cover(certificate, tuple(candidates[k] for k in preconditioners), tuple(chosen), proven)
        if progress is not None:
            progress(len(chosen) / n_anchors)
        anchor(worst)


def unit_cube(model: Model, mus: np.ndarray) -> np.ndarray:
    """The scalar parameters on their own scales, mapped to [0, 1]."""
    return model.parameters.to_unit(mus[:, : len(model.parameters.scalars)])


def middle_of(model: Model, mus: np.ndarray) -> int:
    """Which of the parameters is nearest to the middle of the box."""
    return int(np.argmin(np.sum((unit_cube(model, mus) - 0.5) ** 2, axis=1)))
