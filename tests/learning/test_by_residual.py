"""Solvers that offer residual(mu, u): reduced models without matrices, and what that saves."""

import warnings

import numpy as np
import pytest

import parasol as ps
from parasol.errors import Exhausted, NoCertificate
from parasol.learning.by_residual import reduce_by_residual
from parasol.learning.run import learn
from parasol.reduction.solvers import own_solver

N = 60
X = (np.arange(N) + 0.5) / N
D = N * (np.eye(N + 1, N) - np.eye(N + 1, N, -1))  # differences, with zero at both ends
FACES = np.arange(N + 1) / N


class Bars:
    """-(k u')' + wind u' = 1 with k = a, b, c in three parts, by finite differences; wind is not symmetric."""

    def __init__(self, wind=0.0, low=0.1):
        self.wind = wind
        self.parameters = {name: (low, 1.0) for name in "abc"}
        self.n_residuals = 0
        self.fingerprint = f"bars {wind}"

    def matrix(self, mu):
        k = np.asarray(mu)[np.minimum((3 * FACES).astype(int), 2)]
        return D.T @ (k[:, None] * D) + self.wind * N * (np.eye(N) - np.eye(N, k=-1))

    def load(self, mu):
        return np.ones(N)

    def solve(self, mu):
        return np.linalg.solve(self.matrix(mu), self.load(mu))

    def residual(self, mu, u):
        self.n_residuals += 1
        return self.load(mu) - self.matrix(mu) @ u


class Transposed(Bars):
    def solve_transposed(self, mu, z):
        return np.linalg.solve(self.matrix(mu).T, z)


class Curved(Bars):
    """k = exp(a sin(3 x) + b x), a load with c: no sum of a few terms."""

    def matrix(self, mu):
        return D.T @ (np.exp(mu[0] * np.sin(3 * FACES) + mu[1] * FACES)[:, None] * D)

    def load(self, mu):
        return np.cos(mu[2] * X)


def errors(solver, surrogate, n=200):
    mus = np.random.default_rng(11).uniform(0.1, 1.0, (n, 3))
    truth = np.array([solver.solve(mu) for mu in mus])
    return np.linalg.norm(surrogate(mus).values - truth, axis=1) / np.linalg.norm(truth, axis=1), mus


@pytest.mark.parametrize("kind", [Bars, Transposed])
def test_small_systems_are_those_of_the_matrices(kind):
    solver = kind(wind=0.5)
    space = own_solver(solver)
    train = ps.solve_many(space, ps.sample(space.parameters, 12))
    reduced = reduce_by_residual(space, train, 1e-4)
    assert len(reduced.parts) == 4  # three conductivities, and what does not depend on them
    V = W = reduced.basis.modes
    if kind is Transposed:
        W = np.linalg.solve(solver.matrix(train.mus[0]).T, V)
    mus = np.random.default_rng(2).uniform(0.1, 1.0, (20, 3))
    found = reduced.solve(mus)
    expected = [np.linalg.solve(W.T @ solver.matrix(mu) @ V, W.T @ solver.load(mu)) for mu in mus]
    assert np.all(found.converged)
    assert found.coefficients == pytest.approx(np.array(expected), rel=1e-8, abs=1e-10)
    # more modes: the factors are known, and few parameters are enough
    more = ps.solve_many(space, ps.sample(space.parameters, 20))
    solver.n_residuals = 0
    again = reduce_by_residual(space, more, 1e-4, reduced)
    assert solver.n_residuals == (again.basis.n_modes + 1) * (4 + 4) + 3 + len(more)
    truth = np.array([solver.solve(mu) for mu in mus])
    for one in (reduced, again):
        assert np.max(np.abs(one.solve(mus).values - truth)) < 1e-4 * np.max(truth)


@pytest.mark.slow
def test_a_residual_makes_few_solves_go_far():
    typical = {}
    for kind, solver in (("residual", Bars()), ("solve", Bars().solve)):
        options = {} if kind == "residual" else {"parameters": Bars().parameters}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ps.ParasolWarning)  # the tolerance is met by one of them
            surrogate = learn(solver, 1e-6, solves=40, recipe="polynomial", **options)
        gaps, _ = errors(Bars(), surrogate)
        typical[kind] = np.median(gaps)
        assert surrogate.facts["learn"]["solves"] <= 40
        assert surrogate.facts["labels"] == ("reduced model" if kind == "residual" else "full solves")
    assert typical["residual"] < 0.02 * typical["solve"]


@pytest.mark.parametrize(
    "solver", [Bars(wind=3.0), Transposed(wind=3.0), Curved()], ids=["wind", "transposed", "curved"]
)
def test_the_tolerance_is_met_and_bounds_hold(solver):
    surrogate = learn(solver, 1e-3, recipe="polynomial")
    account = surrogate.facts["learn"]
    assert account["met"]
    assert surrogate.facts["labels"] == "reduced model"
    gaps, mus = errors(solver, surrogate)
    assert np.mean(gaps <= 1e-3) > 0.95
    bounds = surrogate.certify(mus).relative
    assert np.mean(gaps <= bounds) > 0.85
    assert account["solves"] < 80
    assert solver.n_residuals < 6000


def _wrong(change):
    class Wrong(Bars):
        def residual(self, mu, u):
            return change(self, mu, u)

    return Wrong()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda self, mu, u: Bars.residual(self, mu, u)[1:], "has 59 values for 60 unknowns"),
        (lambda self, mu, u: Bars.residual(self, mu, u) * (1 + u @ u), "is not linear in u"),
        (lambda self, mu, u: Bars.residual(self, mu[::-1], u), "does not vanish at its own solutions"),
        (lambda self, mu, u: 1 / 0, "raises ZeroDivisionError"),
        (lambda self, mu, u: Bars.residual(self, mu, u) * (np.nan if mu[0] > 0.9 else 1), "is not finite everywhere"),
        (lambda self, mu, u: Bars.residual(self, mu, u) * np.sin(300 * mu[0] ** 2), "could be interpolated .* only"),
    ],
)
def test_a_residual_of_no_use_is_said_and_left_alone(change, said):
    solver = _wrong(change)
    train = ps.solve_many(own_solver(solver), [[0.5, 0.2, 0.3], [0.2, 0.9, 0.1]])
    with pytest.raises(NoCertificate, match=said):
        reduce_by_residual(own_solver(solver), train, 1e-3)
    with pytest.warns(ps.ParasolWarning, match="is not met"):
        surrogate = learn(solver, 1e-3, solves=16, recipe="polynomial")
    assert surrogate.facts["labels"] == "full solves"
    assert "full solves alone are learned from" in surrogate.facts["learn"]["notes"][-1]


def test_whoever_waits_may_end_the_work():
    solver = Bars()
    train = ps.solve_many(own_solver(solver), ps.sample(solver, 6))

    def watch():
        if solver.n_residuals > 50:
            raise Exhausted("the seconds are used up")

    with pytest.raises(Exhausted):
        reduce_by_residual(own_solver(solver), train, 1e-3, watch=watch)
    assert solver.n_residuals < 60
