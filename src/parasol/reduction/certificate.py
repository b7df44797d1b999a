"""How far a reduced solution can be from the full one: lower bounds of smallest singular values, at any parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from parasol.checks import ParasolError, check_shape
from parasol.reduction.frames import Frame

if TYPE_CHECKING:  # a loaded surrogate has a certificate, and no SciPy perhaps
    from scipy import sparse

    from parasol.pde.model import Model
    from parasol.pde.sparse_direct import Factors
    from parasol.reduction.affine import AffineForm

_STEPS = 26  # of the bidiagonalisation; more cost two triangular solves each and narrow the margin
_RISK = 1e-6  # probability that one norm exceeds its margin, over the random start vector
_ROUNDING = 1e-6  # margin of norms that are exact up to rounding
_LEAST = 0.05  # a proven constant below this part of its anchor's is of no use
_FRAME_BELOW = 0.3  # an anchor whose nearest frame has a smaller singular value becomes a frame
_SAFETY = 0.5  # on constants that are not proven


@dataclass(frozen=True, eq=False)
class Constants:
    """For each parameter: the frame to use, a lower bound of its smallest singular value, and whether that is proven."""

    frame: np.ndarray  # (n_samples,) int
    sigma: np.ndarray  # (n_samples,)
    rigorous: np.ndarray  # (n_samples,) bool


@dataclass(frozen=True, eq=False)
class Certificate:
    """Lower bounds of σ_min(D P_k A_μ D⁻¹) from anchors μ_j at which norms were computed.

    σ_min(P_k A_μ) ≥ σ_min(P_k A_j) (1 − ρ_j(μ)) with ρ_j(μ) = Σ_q |θ_q(μ) − θ_q(μ_j)| ||A_j⁻¹ A_q||, since
    P_k A_μ = P_k A_j (I + A_j⁻¹ (A_μ − A_j)). The best anchor counts; where none proves enough, `constants` guesses and
    calls it not rigorous.
    """

    thetas: np.ndarray  # (n_anchors, Q_A)
    norms: np.ndarray  # (n_anchors, Q_A): ||A_j⁻¹ A_q||, with a margin
    sigmas: np.ndarray  # (n_anchors, n_frames): lower bounds of σ_min(P_k A_j), 0 where not computed
    exact: bool = True  # whether the affine form is the model's own

    def __post_init__(self):
        shape = check_shape(self.thetas, (None, None), "thetas").shape
        check_shape(self.norms, shape, "norms")
        n_frames = check_shape(self.sigmas, (shape[0], None), "sigmas").shape[1]
        if not shape[0] or not n_frames or np.any(self.norms < 0) or np.any(self.sigmas < 0):
            raise ParasolError("a certificate needs an anchor and a frame, and norms that are not negative.")

    @property
    def n_anchors(self) -> int:
        """Number of parameters at which norms were computed."""
        return len(self.thetas)

    def distances(self, theta: np.ndarray) -> np.ndarray:
        """ρ_j(μ), (n_samples, n_anchors)."""
        out = np.zeros((len(theta), self.n_anchors))
        for q in np.flatnonzero(np.any(self.norms > 0, axis=0)):
            gap = theta[:, q, None] - self.thetas[:, q]
            np.abs(gap, out=gap)
            gap *= self.norms[:, q]
            out += gap
        return out

    def constants(self, theta: np.ndarray, frames: Sequence[Frame] = ()) -> Constants:
        """Frame, constant and rigour for θ (n_samples, Q_A).

        Where no anchor proves enough, the constant is that of the nearest one, halved, divided by 1 + ρ, and no more than
        half the smallest singular value on the basis itself, for which the `frames` are needed.
        """
        frame = np.argmax(self.sigmas, axis=1)  # the best of each anchor
        sigma = self.sigmas[np.arange(self.n_anchors), frame]
        distance = self.distances(theta)
        lower = sigma * (1.0 - distance)
        best = np.argmax(lower, axis=1)
        proven = lower[np.arange(len(theta)), best]
        rigorous = proven >= _LEAST * sigma[best]
        out = Constants(frame[best], proven, rigorous & self.exact)
        open_cases = np.flatnonzero(~rigorous)
        if len(open_cases):
            nearest = np.argmin(distance[open_cases], axis=1)
            guess = _SAFETY * sigma[nearest] / (1.0 + distance[open_cases, nearest])
            out.frame[open_cases] = frame[nearest]
            for k in np.unique(out.frame[open_cases]) if frames else ():
                here = out.frame[open_cases] == k
                guess[here] = np.minimum(guess[here], _SAFETY * frames[k].smallest(theta[open_cases[here]]))
            out.sigma[open_cases] = guess
        return out


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
        u -= sum((w @ u) * w for w in left)
        alphas.append(float(np.linalg.norm(u)))
        if alphas[-1] <= 1e-14 * size:  # nothing new on the left, as of a matrix of low rank: the last β still counts
            return float(np.linalg.norm(np.diag(alphas) + np.diag(betas, 1), 2)), True
        left.append(u / alphas[-1])
        v = transposed(left[-1])
        v -= sum((w @ v) * w for w in right)
        betas.append(float(np.linalg.norm(v)))
        value = float(np.linalg.norm(np.diag(alphas) + np.diag(betas[:-1], 1), 2))
        if betas[-1] <= 1e-12 * value:
            return value, True
        right.append(v / betas[-1])
    return value, False


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


def norm_after(factors: Factors, matrix: sparse.csr_array, scale: np.ndarray, free: np.ndarray) -> float:
    """An upper bound of ||D A_j⁻¹ B|| on vectors of the free unknowns, D = diag(scale), but for a probability `_RISK`."""
    transposed = matrix.T.tocsr()
    start = free * np.random.default_rng(0).standard_normal(len(scale))  # no direction is missing from it
    value, exact = operator_norm(
        lambda x: scale * factors.solve(matrix @ (free * x)),
        lambda y: free * (transposed @ factors.solve_transposed(scale * y)),
        start,
    )
    if not np.isfinite(value):
        raise ParasolError("a norm for the certificate could not be computed. Is the operator singular here?")
    return (1.0 + _ROUNDING if exact else lanczos_margin(int(np.count_nonzero(free)))) * value


@dataclass(frozen=True, eq=False)
class Cover:
    """What `cover` found: the certificate, and the parameters whose matrices weight the residual."""

    certificate: Certificate
    frames: tuple[np.ndarray, ...]
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
    scale: np.ndarray,
    free: np.ndarray,
    rows: np.ndarray | None = None,
    n_anchors: int = 100,
    n_frames: int = 16,
    target: float = 0.15,
    progress: Callable[[float], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Cover:
    """Choose anchors, and frames among them, until the constant is proven to exceed `target` at every candidate.

    It ends earlier with `n_anchors`, or where `stop` says so.

    The next anchor is always the candidate with the least proven constant. An anchor at which the frames at hand have
    a small singular value becomes a frame itself. With `rows` the residual is weighted row by row and there is one frame.
    """
    from scipy import sparse

    thetas = form.operator_theta(candidates)
    unscaled = sparse.diags_array(1.0 / scale)
    terms = [
        None if fixed else sparse.csr_array(a @ unscaled)
        for a, fixed in zip(form.operators, form.operator_theta.constant, strict=True)
    ]
    places = unit_cube(model, candidates)
    chosen, frames, weightings = [], [], []
    norms, sigmas = [], []

    def anchor(index: int) -> None:
        mu = candidates[index]
        factors = model.factors(mu)
        norms.append([0.0 if a is None else norm_after(factors, a, scale, free) for a in terms])
        if rows is not None:
            if not frames:
                frames.append(index)
                weightings.append(sparse.csr_array(sparse.diags_array(1.0 / rows)))
            found = {0: 1.0 / norm_after(factors, weightings[0], scale, free)}
        else:
            found = {}
            if frames:
                near = int(np.argmin(np.sum((places[frames] - places[index]) ** 2, axis=1)))
                found[near] = 1.0 / norm_after(factors, weightings[near], scale, free)
            if not frames or (max(found.values()) < _FRAME_BELOW and len(frames) < n_frames):
                found[len(frames)] = 1.0 - _ROUNDING  # of the identity
                frames.append(index)
                weightings.append(sparse.csr_array(model.operator(mu) @ unscaled))
        chosen.append(index)
        sigmas.append(found)

    anchor(middle_of(model, candidates))
    while True:
        table = np.zeros((len(chosen), len(frames)))
        for j, found in enumerate(sigmas):
            for k, value in found.items():
                table[j, k] = value
        certificate = Certificate(thetas[chosen], np.array(norms), table, form.exact)
        lower = np.max(table.max(axis=1) * (1.0 - certificate.distances(thetas)), axis=1)
        lower[chosen] = np.inf  # more than at an anchor itself cannot be proven there
        worst = int(np.argmin(lower))
        if lower[worst] >= target or len(chosen) >= n_anchors or (stop is not None and stop()):
            proven = float(np.mean(certificate.constants(thetas).rigorous))
            return Cover(certificate, tuple(candidates[k] for k in frames), tuple(chosen), proven)
        if progress is not None:
            progress(len(chosen) / n_anchors)
        anchor(worst)


def unit_cube(model: Model, mus: np.ndarray) -> np.ndarray:
    """The scalar parameters on their own scales, mapped to [0, 1]."""
    return model.parameters.to_unit(mus[:, : len(model.parameters.scalars)])


def middle_of(model: Model, mus: np.ndarray) -> int:
    """Which of the parameters is nearest to the middle of the box."""
    return int(np.argmin(np.sum((unit_cube(model, mus) - 0.5) ** 2, axis=1)))
