"""operator(mu) of a random material, −(e^g u')' = a, against a formula: linear elements on a line are exact at the nodes."""

import numpy as np
import pytest
from scipy import sparse

import parasol as ps
from parasol.fitting.directions import FewDirections
from parasol.fitting.gaussian_process import GaussianProcess
from parasol.reduction.fingerprints import fingerprint

N = 24
X = np.linspace(0, 1, N + 1)
CELLS = np.stack([np.arange(N), np.arange(1, N + 1)], axis=1)
FIELD = ps.GaussianField(length=0.4, deviation=0.3)
G = ps.FunctionParameter("g", FIELD, on="domain")
(A,) = ps.parameters(a=(1.0, 2.0))
MESH = {"points": X[:, None], "cells": CELLS, "free": np.arange(1, N)}


def material(mu):
    return np.exp((mu[1:-1] + mu[2:]) / 2)  # in the cells


def operator(mu):
    k = N * material(mu)
    return sparse.diags_array([-k[1:-1], k[:-1] + k[1:], -k[1:-1]], offsets=[-1, 0, 1])


def load(mu):
    return np.full(N - 1, mu[0] / N)


def exact(mu):
    """u' = a (c − x) / k in a cell with the material k, and c so that u(1) = 0."""
    weight, middle = 1 / (N * material(mu)), (X[1:] + X[:-1]) / 2
    c = np.sum(weight * middle) / np.sum(weight)
    return np.append(0.0, mu[0] * np.cumsum(weight * (c - middle)))


@pytest.fixture(scope="module")
def model():
    weights = np.full(N - 1, 1 / N)
    return ps.AffineModel(operator, load, parameters=(A, G), quantities={"mean": weights}, **MESH)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("darcy")


@pytest.fixture(scope="module")
def learned(model, store):
    return ps.learn(model, 0.03, store=store)


def test_mu_is_the_numbers_and_then_the_values_at_the_points(model):
    assert model.n_parameters == 1 + len(X)
    assert model.problem.equation == "A(a, g) u = f(a, g)"
    mus = ps.sample(model, 300, rng=3)
    assert np.array_equal(mus, ps.sample(model, 300, rng=3))
    covariance = 0.09 * np.exp(-0.5 * ((X[:, None] - X) / 0.4) ** 2)
    assert mus[:, 1:].T @ mus[:, 1:] / 300 == pytest.approx(covariance, abs=0.03)
    assert np.all((mus[:, 0] >= 1) & (mus[:, 0] <= 2))
    for mu in mus[:3]:
        solution = model.solve(mu)
        assert solution.values == pytest.approx(exact(mu), abs=1e-12)
        assert solution.quantities["mean"] == pytest.approx(np.mean(exact(mu)) * (N + 1) / N)


def test_the_calibrated_bound_holds_at_fresh_draws(model, learned):
    report = learned.facts["learn"]
    assert report["met"]
    assert report["certificate"] == "conformal"
    assert report["solves"] < 160
    assert any("depends on a function, g" in note for note in report["notes"])
    mus = model.sample(400, rng=5)
    truth = np.array([exact(mu) for mu in mus])
    answers = learned(mus)
    errors = np.linalg.norm(answers.values - truth, axis=1) / np.linalg.norm(truth, axis=1)
    assert set(answers.bound_kind) == {"calibrated"}
    assert np.mean(errors <= answers.bound) >= 0.9
    assert np.max(answers.bound) <= 0.03
    assert np.median(errors) < 0.01
    off = np.abs(answers.quantities["mean"] - truth.sum(axis=1) / N)
    assert np.mean(off <= answers.quantity_bounds["mean"]) >= 0.9


def test_files_know_the_distribution(model, learned, tmp_path):
    again = ps.load(ps.save(learned, tmp_path / "darcy.parasol"))
    mus = model.sample(5, rng=7)
    mus[0, 1:] = np.sin(40 * X)  # smooth functions are drawn, not this one
    mus[1, 1:] = 3.0  # ten deviations
    answers = again(mus)
    assert np.array_equal(answers.values, learned(mus).values)
    assert answers.extrapolated.tolist() == [True, True, False, False, False]
    assert np.isinf(answers.bound).tolist() == [True, True, False, False, False]
    assert again.parameters.functions[0].distribution == FIELD


def test_a_store_and_a_check_know_it(model, learned, store):
    assert ps.learn(model, 0.03, store=store).facts["learn"]["new_solves"] == 0
    other = ps.FunctionParameter("g", ps.GaussianField(0.4, 0.2), on="domain")
    another = ps.AffineModel(operator, load, parameters=(A, other), **MESH)
    moved = ps.AffineModel(operator, load, parameters=(A, G), **(MESH | {"points": X[:, None] ** 2}))
    assert len({fingerprint(one) for one in (model, another, moved)}) == 3
    found = ps.check(learned, model=model, n=40)
    assert np.mean(found.errors <= found.bounds) >= 0.9


def test_no_sum_is_fitted(model):
    basis = ps.pod(ps.solve_many(model, model.sample(6)), n_modes=2)
    for call in (lambda: ps.greedy(model, tolerance=1e-2), lambda: ps.reduce(model, basis)):
        with pytest.raises(ps.errors.NoCertificate, match="depends on a function, g"):
            call()
    assert "conformal" in ps.plan(model, 0.03).method
    assert ps.verify(model).ok


def test_a_space_of_functions_alone_and_failures_are_said():
    def fails(mu):
        if np.max(mu) > 0.6:
            raise RuntimeError("no mesh")
        return np.diag(np.exp(mu))

    space = ps.pde.ParameterSpace((), (ps.FunctionParameter("g", ps.GaussianField(0.4, 0.1), on="domain"),))
    model = ps.AffineModel(fails, np.ones(N + 1), parameters=space, points=X[:, None])
    assert model.solve(0.1 * X).values == pytest.approx(np.exp(-0.1 * X))
    with pytest.raises(ps.errors.SolveFailed, match=r"raises RuntimeError at g=\.\.\.: no mesh"):
        model.solve(X)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"parameters": (A, ps.FunctionParameter("g", FIELD))}, "a function on the boundary.*Declare it"),
        ({"parameters": (A, G), "points": None, "cells": None, "free": None}, "Give points= too"),
        ({"parameters": (A, ps.FunctionParameter("g", ps.SphereField(2), on="domain"))}, r"expected \(any, 3\)"),
        ({"parameters": (G,)}, r"load\(mu\) at g=\.\.\. has shape"),  # operator(mu) reads a number first
    ],
)
def test_what_does_not_fit_is_refused_when_it_is_built(options, words):
    with pytest.raises(ps.errors.InputError, match=words) as caught:
        ps.AffineModel(operator, load, **(MESH | options))
    assert "\n" not in str(caught.value)


def test_fields_of_too_many_modes_or_of_no_length_are_refused(monkeypatch):
    with pytest.raises(ps.errors.InputError, match="length of GaussianField must be positive"):
        ps.GaussianField(0.0)
    monkeypatch.setattr("parasol.runtime.random_fields._MOST_MODES", 20)
    with pytest.raises(ps.errors.InputError, match="more than 20 modes"):
        ps.GaussianField(1e-9).modes(np.arange(21.0)[:, None])


def test_maps_of_few_directions_bend_where_matrices_cannot():
    """y = exp(ξ₁) + k ξ₂² of functions that are two modes at 30 points; Gaussian processes alone know no slope of these."""
    rng = np.random.default_rng(0)
    modes = np.stack([np.ones(30), np.linspace(-1, 1, 30)])

    def drawn(n):
        xi, k = rng.standard_normal((n, 2)), rng.random(n)
        return np.column_stack([k, xi @ modes]), np.exp(xi[:, :1]) + k[:, None] * xi[:, 1:] ** 2

    (x, y), (fresh, truth) = drawn(80), drawn(200)
    fitted = FewDirections(GaussianProcess("matern52", trend_degree=1), n_numbers=1).fit(x, y)
    assert np.median(np.abs(fitted.predict(fresh) - truth)) < 0.05 * np.std(truth)
    step = 1e-3 * np.eye(31)[4]
    slope = (fitted.predict(fresh[:3] + step) - fitted.predict(fresh[:3] - step))[:, 0] / 2e-3
    assert fitted.jacobian(fresh[:3])[:, 0, 4] == pytest.approx(slope, rel=1e-2)
