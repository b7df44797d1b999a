"""Solvers with residual(mu, u) and solve_transposed(mu, z): estimates that follow the parameter, against true errors."""

import warnings

import numpy as np
import pytest

import parasol as ps
from parasol.learning.report import LearnReport
from parasol.learning.residual_duals import with_duals
from parasol.learning.run import learn
from parasol.reduction.snapshots import as_snapshots
from parasol.runtime.duals import WIDTH

N = 40
X = (np.arange(N) + 0.5) / N
FACES = np.arange(N + 1) / N
D = N * (np.eye(N + 1, N) - np.eye(N + 1, N, -1))  # differences, with zero at both ends
BOX = {"a": (0.1, 1.0), "b": (0.1, 1.0)}


class Bars:
    """-(k u')' + wind u' = 1 with k = a and b in two parts, not symmetric."""

    parameters = BOX
    fingerprint = "bars"

    def matrix(self, mu):
        return D.T @ (np.where(FACES < 0.4, mu[0], mu[1])[:, None] * D) + 20 * N * (np.eye(N) - np.eye(N, k=-1))

    def load(self, mu):
        return np.ones(N)

    def solve(self, mu):
        return np.linalg.solve(self.matrix(mu), self.load(mu))

    def residual(self, mu, u):
        return self.load(mu) - self.matrix(mu) @ u

    def solve_transposed(self, mu, z):
        return np.linalg.solve(self.matrix(mu).T, z)


class Curved(Bars):
    """k = exp(a sin(3 x) + b x): no sum of a few terms."""

    fingerprint = "curved"

    def matrix(self, mu):
        return D.T @ (np.exp(3 * mu[0] * np.sin(3 * FACES) + mu[1] * FACES)[:, None] * D)

    def load(self, mu):
        return np.cos(3 * mu[1] * X)


class Confused(Bars):
    """Solves with the matrix itself instead of its transpose."""

    fingerprint = "confused"

    def solve_transposed(self, mu, z):
        return np.linalg.solve(self.matrix(mu), z)


def errors(solver, answers, mus):
    truth = np.array([solver.solve(mu) for mu in mus])
    return np.linalg.norm(answers.values - truth, axis=1) / np.linalg.norm(truth, axis=1)


def quietly(solver, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.errors.ParasolWarning)
        return learn(solver, 1e-3, recipe="polynomial", **options)


@pytest.mark.parametrize(
    ("kind", "rng"), [(Bars, 0), (Curved, 0), *[pytest.param(k, s, marks=pytest.mark.slow) for k in (Bars, Curved) for s in (1, 2, 3)]]
)  # fmt: skip
def test_estimates_follow_the_errors_and_bounds_hold(kind, rng, tmp_path):
    solver = kind()
    surrogate = quietly(solver, rng=rng)
    report = surrogate.facts["learn"]
    assert report["met"]
    assert (report["certificate"], report["level"]) == ("conformal", 0.95)  # the verdict is that of the fresh solves
    assert report["n_checked"] == 39
    assert report["share"] > 0.9
    assert "random duals" in LearnReport.of(surrogate).rows()["single bounds"]
    assert report["probability"] == pytest.approx(
        1 - 2.8e-4 - 2 / 40, abs=1e-4
    )  # two sets, the worst of 39 fresh solves
    mus = np.random.default_rng(5).uniform(0.1, 1.0, (300, 2))
    again = ps.load(ps.save(surrogate, tmp_path / "s.parasol"))  # NumPy and the file: the solver is not asked
    answers = again(mus)
    true = errors(solver, answers, mus)
    assert set(answers.bound_kind) == {"probable"}
    assert np.mean(true <= answers.bound) >= 0.95
    assert np.median(answers.bound / true) < 3.5
    ratios = answers.estimate / true
    assert np.quantile(ratios, 0.05) > 0.5
    assert np.quantile(ratios, 0.95) < 2.0
    assert np.array_equal(answers.bound, surrogate(mus).bound)


def test_a_wrong_transpose_is_noticed_and_bounds_stay_calibrated():
    solver = Confused()
    surrogate = quietly(solver)
    mus = np.random.default_rng(5).uniform(0.1, 1.0, (100, 2))
    answers = surrogate(mus)
    assert set(answers.bound_kind) == {"calibrated"}
    assert np.mean(errors(solver, answers, mus) <= answers.bound) >= 0.9
    assert any("bounds stay calibrated" in note for note in surrogate.facts["learn"]["notes"])


def test_a_transpose_that_is_a_little_wrong_is_noticed():
    solver = Bars()
    solver.solve_transposed = lambda mu, z: np.linalg.solve(solver.matrix(mu).T, 1.01 * z)
    surrogate = quietly(solver)
    assert surrogate.reduced is None
    assert any("not of the matrix of its residual" in note for note in surrogate.facts["learn"]["notes"])


def test_a_transposed_solve_of_another_length_is_said():
    solver = Bars()
    solver.solve_transposed = lambda mu, z: np.ones(3)
    surrogate = quietly(solver)
    assert surrogate.reduced is None
    assert any("solve_transposed(mu, z)" in note for note in surrogate.facts["learn"]["notes"])


def test_residuals_alone_keep_calibrated_bounds():
    solver = Bars()
    solver.solve_transposed = None
    assert set(quietly(solver)([[0.5, 0.5]]).bound_kind) == {"calibrated"}


def fitted(solver, weights=None):
    """A surrogate of forty solves, and these; parameters of ten more."""
    mus = np.random.default_rng(0).uniform(0.1, 1.0, (50, 2))
    train = as_snapshots(mus[:40], [solver.solve(mu) for mu in mus[:40]])
    options = {"ranges": BOX, "n_modes": 4, "level": None, "weights": weights}
    return ps.fit_snapshots(train.mus, train.solutions, "polynomial", **options), train, mus[40:]


def test_what_estimates_miss_at_fresh_solves_is_their_factor():
    """Fresh solves ten times as far away as they are: the random vectors see them just inside the factor."""
    solver = Bars()
    surrogate, train, mus = fitted(solver)
    c = surrogate.coefficients(mus)
    answers = surrogate.basis.lift(c)
    errors = 10 * (np.array([solver.solve(mu) for mu in mus]) - answers)
    found = with_duals(solver, surrogate, train, as_snapshots(mus, answers + errors), doubt=0.1).reduced
    assert found.duals.ratio > 5
    assert found.duals.probability == pytest.approx(0.9, abs=1e-3)
    vectors = np.random.default_rng([0, 73]).standard_normal((30, N))[:20]
    seen = np.linalg.norm(errors @ vectors.T, axis=1) / np.sqrt(20)
    estimates = found.estimate(mus, c)
    assert np.max(seen / (estimates.values * estimates.factor / WIDTH)) == pytest.approx(1.0)


def test_estimates_are_in_the_norm_of_the_weights():
    solver, weights = Bars(), np.where(X < 0.1, 1.0, 1e-6)
    surrogate, train, mus = fitted(solver, weights)
    truth = np.array([solver.solve(mu) for mu in mus])
    found = with_duals(solver, surrogate, train, as_snapshots(mus, truth), doubt=0.1).reduced
    c = surrogate.coefficients(mus)
    ratios = found.estimate(mus, c).values / np.sqrt((truth - surrogate.basis.lift(c)) ** 2 @ weights)
    assert 0.5 < np.median(ratios) < 2.0


def test_residuals_that_cannot_be_interpolated_are_refused():
    class Wild(Bars):
        def matrix(self, mu):
            return (2 + np.sin(300 * mu[0])) * np.eye(N) + mu[1] * D.T @ D / N**2

    surrogate, train, _ = fitted(Wild())
    with pytest.raises(ps.errors.NoCertificate, match="could be interpolated"):
        with_duals(Wild(), surrogate, train, train, doubt=0.1)
