"""Gaussian processes: smooth interpolation of few samples, with a standard deviation that says where they are missed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve, cholesky, lapack, solve_triangular
from scipy.optimize import minimize

from parasol.checks import Progress, check_choice, check_count
from parasol.errors import InputError, TooFewSamples
from parasol.fitting.maps import Pair, check_data
from parasol.fitting.polynomial import FittedPolynomial, Polynomial, terms
from parasol.runtime.expansions import KERNELS, Radial, RadialKernel, distances
from parasol.runtime.operations import Affine, Sum
from parasol.runtime.program import Program, ProgramMap, check_inputs

_ENOUGH = 300  # samples that settle length scales; the weights use all
MOST_LENGTHS = 40  # inputs that have a length scale each; more share one
_LENGTHS = (0.03, 300.0)  # of inputs scaled to [−1, 1]
_NUGGETS = (1e-15, 1e-2)  # of a kernel with k(x, x) = 1
_LIGHT = 1e5  # sum of the weights of an output over the largest sample: what cancellation costs is then no matter
_AS_GOOD = 1.05  # by which the error may grow for the sake of smaller weights
_MOST_BYTES = 8e9
# length, nugget: the likelihood may have two hills, rough and exact, smooth and noisy
_STARTS = ((0.7, 1e-13), (3.0, 1e-4))
_LEAST_SQUARE = 1e-15  # of a deviation over that of the prior: rounding


@dataclass(frozen=True, eq=False)
class FittedProcess(ProgramMap):
    """y = P(x) β + k(x, z) α with the trend P β a polynomial; `variance` is one number for all outputs together."""

    kernel: str
    centres: np.ndarray  # (n, p) scaled samples z
    lengths: np.ndarray  # (p,) of scaled inputs
    nugget: float
    variance: float
    weights: np.ndarray  # (n, d) α
    trend: FittedPolynomial
    reflectors: np.ndarray  # QR of the trend's terms, as LAPACK packs it
    taus: np.ndarray
    factor: np.ndarray  # (n − m, n − m) lower Cholesky factor of the covariance across the trend

    def __post_init__(self):
        _ = self.program  # which checks the parts

    @cached_property
    def program(self) -> Program:  # type: ignore[override]
        """Scaled inputs, then the trend beside the kernels of all samples."""
        before, *trend = self.trend.program.operations
        kernels = (Radial(self.kernel, self.centres, self.lengths), Affine(self.weights.T))
        return Program((before, Sum((tuple(trend), kernels))))

    def deviation(self, x) -> np.ndarray:
        """Standard deviation (n,) of the outputs together (Euclidean), the error of the trend included; never zero."""
        t = (check_inputs(x, len(self.lengths)) - self.trend.shift) * self.trend.scale
        z = self.centres / self.lengths
        value = KERNELS[self.kernel].value
        m = self.reflectors.shape[1]
        covariance = value(distances(z, z))
        k = value(distances(z, t / self.lengths))
        u = solve_triangular(self.reflectors[:m], terms(t, self.trend.indices).T, trans="T")
        u = _reflect(self.reflectors, self.taus, np.vstack([u, np.zeros((len(z) - m, len(t)))]), transpose=False)
        ku = covariance @ u
        across = _reflect(self.reflectors, self.taus, k - ku)[m:]
        gain = solve_triangular(self.factor, across, lower=True)
        square = 1.0 - 2.0 * np.sum(u * k, axis=0) + np.sum(u * ku, axis=0) - np.sum(gain**2, axis=0)
        square += self.nugget * np.sum(u * u, axis=0)
        return np.sqrt(self.variance * np.maximum(square, _LEAST_SQUARE))


@dataclass(frozen=True)
class GaussianProcess:
    """A polynomial trend plus a Gaussian process with covariance σ² (k(x, z) + nugget); lengths by maximum likelihood.

    Lengths of all inputs and the nugget are shared by all outputs, which are measured in one unit: with an orthonormal
    basis the error of coefficients is that of the field. The likelihood is the restricted one, of what is orthogonal to
    the trend. The trend is the polynomial of total degree `trend_degree`, or the one that leaving one sample out prefers:
    best where samples fill the box. It is then taken as known, so deviations are too small, and it goes astray where
    samples are missing; trend_degree=0 or 1 is safer there.

    The best map of few samples: 12 to 200 in one to six parameters. Where solutions bend sharply, "matern52" with
    trend_degree=1 errs four times less than "gaussian" (400 samples of a kink in two parameters).

    >>> x = np.linspace(-1, 1, 12)[:, None]
    >>> wave = GaussianProcess().fit(x, np.sin(3 * x))
    >>> bool(abs(wave.predict([[0.123]])[0, 0] - np.sin(0.369)) < 1e-6)
    True
    """

    kernel: str = "gaussian"
    trend_degree: int | None = None
    nugget: float | None = None
    n_iterations: int = 60

    def fit(
        self, x: ArrayLike, y: ArrayLike, *, validation: Pair = None, progress: Progress = None, rng: int = 0
    ) -> FittedProcess:
        """Fit inputs (n, p) to outputs (n, d)."""
        check_choice(self.kernel, tuple(KERNELS), "kernel")
        check_count(self.n_iterations, "n_iterations")
        if self.nugget is not None and not (np.isfinite(self.nugget) and self.nugget > 0):
            raise InputError(f"nugget={self.nugget!r} must be positive, or None to have it chosen.")
        x, y, _ = check_data(x, y, validation)
        if 8 * 4 * len(x) ** 2 > _MOST_BYTES:
            raise InputError(
                f"a Gaussian process of {len(x)} samples needs {32e-9 * len(x) ** 2:.0f} GB. Use Polynomial."
            )
        trend = self._trend(x, y)
        t = (x - trend.shift) * trend.scale
        few = np.random.default_rng(rng).permutation(len(x))[: max(_ENOUGH, 2 * len(trend.indices))]
        search = _Likelihood(KERNELS[self.kernel], t[few], y[few], trend.indices, self.nugget)
        theta = search.maximise(self.n_iterations, progress)
        lengths = search.lengths(theta)
        nugget = search.moderated(lengths, search.nugget(theta)) if self.nugget is None else self.nugget
        whole = search if len(few) == len(x) else _Likelihood(KERNELS[self.kernel], t, y, trend.indices, nugget)
        out = whole.fitted(self.kernel, lengths, nugget, trend)
        if progress is not None:
            progress(1.0)
        return out

    def _trend(self, x: np.ndarray, y: np.ndarray) -> FittedPolynomial:
        if self.trend_degree is not None:
            return Polynomial(self.trend_degree).fit(x, y)
        try:
            return Polynomial().fit(x, y)
        except TooFewSamples:  # too few samples for any slope
            return Polynomial(0).fit(x, y)


class _Likelihood:
    """−log of the restricted likelihood of Z = Q₂ᵀ Y with covariance M = Q₂ᵀ K Q₂, variance profiled out, per number."""

    def __init__(self, kernel: RadialKernel, t: np.ndarray, y: np.ndarray, indices: np.ndarray, nugget: float | None):
        self.kernel, self.t, self.y, self.given = kernel, t, y, nugget
        p = terms(t, indices)
        self.reflectors, self.taus, _, _ = lapack.dgeqrf(p)
        self.m = p.shape[1]
        self.z = _reflect(self.reflectors, self.taus, y)[self.m :]
        self.shared = t.shape[1] > MOST_LENGTHS
        self.squares = [] if self.shared else [(column[:, None] - column) ** 2 for column in t.T]

    def lengths(self, theta: np.ndarray) -> np.ndarray:
        return np.full(self.t.shape[1], np.exp(theta[0])) if self.shared else np.exp(theta[: self.t.shape[1]])

    def nugget(self, theta: np.ndarray) -> float:
        return float(np.exp(theta[-1])) if self.given is None else self.given

    def across(self, k: np.ndarray) -> np.ndarray:
        """Q₂ᵀ K Q₂."""
        k = _reflect(self.reflectors, self.taus, k)
        return _reflect(self.reflectors, self.taus, np.ascontiguousarray(k[self.m :].T))[self.m :].T

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        lengths, nugget = self.lengths(theta), self.nugget(theta)
        scaled = self.t / lengths
        s = distances(scaled, scaled)
        big, d = self.z.shape
        try:
            factor = _factor(self.across(self.kernel.value(s)), nugget)
        except np.linalg.LinAlgError:
            return np.inf, np.zeros_like(theta)
        b = cho_solve((factor, True), self.z)
        variance = max(float(np.sum(self.z * b)) / (big * d), np.finfo(float).tiny)
        value = 0.5 * np.log(variance) + np.sum(np.log(np.diag(factor))) / big
        inverse = cho_solve((factor, True), np.eye(big))
        g = 0.5 * (inverse - b @ b.T / (d * variance)) / big
        slope_nugget = nugget * np.trace(g)
        lifted = np.zeros((len(self.t), len(self.t)))
        lifted[self.m :, self.m :] = g
        lifted = _reflect(self.reflectors, self.taus, lifted, transpose=False)
        lifted = _reflect(self.reflectors, self.taus, np.ascontiguousarray(lifted.T), transpose=False)
        lifted *= -2.0 * self.kernel.slope(s)  # dk / d log ℓ_i = −2 k'(s) (Δ_i / ℓ_i)²
        if self.shared:
            slopes = [np.sum(lifted * s)]
        else:
            slopes = [np.sum(lifted * square) / length**2 for square, length in zip(self.squares, lengths, strict=True)]
        return value, np.array([*slopes, *([slope_nugget] if self.given is None else [])])

    def maximise(self, n_iterations: int, progress) -> np.ndarray:
        n_lengths = 1 if self.shared else self.t.shape[1]
        least = max(_NUGGETS[0], len(self.t) * np.finfo(float).eps)
        bounds = [tuple(np.log(_LENGTHS))] * n_lengths
        if self.given is None:
            bounds.append((np.log(least), np.log(_NUGGETS[1])))
        done, best = [0], (np.inf, np.zeros(len(bounds)))

        def objective(theta):
            nonlocal best
            value, slope = self(theta)
            if value < best[0]:
                best = (value, theta.copy())
            return (value if np.isfinite(value) else 1e10), slope

        def step(_):
            done[0] += 1
            if progress is not None:
                progress(min(done[0] / (2 * n_iterations + 1), 1.0))

        if not len(self.z) or not np.any(self.z):
            return np.array([0.0] * n_lengths + [np.log(least)] * (self.given is None))
        root = np.sqrt(self.t.shape[1]) if self.shared else 1.0
        for length, nugget in _STARTS:
            start = [np.log(length * root)] * n_lengths + [np.log(nugget)] * (self.given is None)
            start = np.clip(start, [b[0] for b in bounds], [b[1] for b in bounds])
            minimize(
                objective, start, jac=True, method="L-BFGS-B", bounds=bounds, callback=step,
                options={"maxiter": n_iterations, "ftol": 1e-6},
            )  # fmt: skip
        return best[1]

    def moderated(self, lengths: np.ndarray, nugget: float) -> float:
        """The largest nugget that leaves the samples as well predicted as they are by a smaller one, each by the others.

        Where the likelihood is flat, weights may be 1e8 times as large as the samples and cancel: answers lose eight digits.
        """
        scaled = self.t / lengths
        across = self.across(self.kernel.value(distances(scaled, scaled)))
        best, least = nugget, np.inf
        while nugget <= _NUGGETS[1] and len(self.z):
            factor = _factor(across, nugget)
            inverse = np.zeros((len(self.t), len(self.t)))
            inverse[self.m :, self.m :] = cho_solve((factor, True), np.eye(len(self.z)))
            inverse = _reflect(self.reflectors, self.taus, inverse, transpose=False)
            inverse = _reflect(self.reflectors, self.taus, np.ascontiguousarray(inverse.T), transpose=False)
            weights = inverse @ self.y
            error = float(np.linalg.norm(weights / np.diag(inverse)[:, None]))  # of each sample from all others
            if error > _AS_GOOD * least:
                break
            best, least = nugget, min(error, least)
            if np.abs(weights).sum(axis=0).max() <= _LIGHT * np.abs(self.y).max():
                break
            nugget *= 10.0
        return best

    def fitted(self, name: str, lengths, nugget: float, trend: FittedPolynomial) -> FittedProcess:
        scaled = self.t / lengths
        k = self.kernel.value(distances(scaled, scaled))
        factor = _factor(self.across(k), nugget)
        b = cho_solve((factor, True), self.z)
        variance = float(np.sum(self.z * b)) / max(len(self.z), 1)
        above = np.zeros_like(self.y)
        above[self.m :] = b
        weights = _reflect(self.reflectors, self.taus, above, transpose=False)
        gap = _reflect(self.reflectors, self.taus, self.y - k @ weights)[: self.m]
        beta = solve_triangular(self.reflectors[: self.m], gap)
        mean = FittedPolynomial(trend.indices, beta, trend.shift, trend.scale, trend.error)
        return FittedProcess(
            name, self.t, np.asarray(lengths), nugget, variance, weights, mean, self.reflectors, self.taus, factor
        )


def _factor(a: np.ndarray, nugget: float) -> np.ndarray:
    """Lower Cholesky factor of A + nugget I; a nugget lost in rounding is raised until there is one."""
    for jitter in nugget * np.array([1.0, 10.0, 100.0, 1e3]):
        try:
            return cholesky(a + jitter * np.eye(len(a)), lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            continue
    raise np.linalg.LinAlgError("not positive definite")


def _reflect(reflectors: np.ndarray, taus: np.ndarray, a: np.ndarray, transpose: bool = True) -> np.ndarray:
    """Qᵀ A, or Q A, of a QR decomposition kept as reflectors."""
    a = np.asfortranarray(a)
    work = max(1, a.shape[1]) * 64
    out, _, _ = lapack.dormqr("L", "T" if transpose else "N", reflectors, taus, a, work)
    return out
