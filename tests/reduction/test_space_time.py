"""Steps in time as one affine system, and the estimate by backward duals, against solutions computed otherwise."""

from dataclasses import replace

import numpy as np
import pytest
import sympy
from scipy import linalg

import parasol as ps
from parasol.errors import NoCertificate
from parasol.learning.linear import fresh_parameters
from parasol.reduction.by_estimate_in_time import InTimeByEstimate
from parasol.reduction.space_time import space_time

TIMES = np.array([0.0, 0.1, 0.3, 0.5])
A0 = np.diag([2.0] * 12) - np.diag([1.0] * 11, 1) - np.diag([1.0] * 11, -1)
A1 = np.diag(np.linspace(0.0, 3.0, 12)) + np.diag([0.5] * 11, 1)
MASS = np.diag(np.linspace(1.0, 2.0, 12)) + np.diag([0.2] * 11, -1)
START, FORCE = np.sin(np.arange(1.0, 13)), np.ones(12)


def rods(**options) -> ps.AffineModel:
    """M u' + (A0 + a A1) u = cos(w t) f from a multiple of a start: not symmetric, with everything that varies."""
    a, w = ps.parameters(a=(0.5, 4.0), w=(1.0, 5.0))
    given = {"mass": MASS, "times": TIMES, "initial": {a: START}} | options
    return ps.AffineModel({1: A0, a: A1}, {sympy.cos(w * ps.time()): FORCE}, **given)


def exact(a: float, w: float) -> np.ndarray:
    """By matrix exponentials of (u, cos wt, sin wt), (n_times, 12)."""
    inverse = np.linalg.inv(MASS)
    whole = np.zeros((14, 14))
    whole[:12, :12], whole[:12, 12] = -inverse @ (A0 + a * A1), inverse @ FORCE
    whole[12, 13], whole[13, 12] = -w, w
    start = np.concatenate([a * START, [1.0, 0.0]])
    return np.array([(linalg.expm(whole * t) @ start)[:12] for t in TIMES])


def test_marching_solves_the_affine_system_and_converges_at_order_four():
    model, mu = rods(), np.array([3.0, 4.0])
    errors = []
    for per_interval in (1, 2, 4):
        system = space_time(model, per_interval, 2)
        found = system.values(system.solve(mu)).reshape(len(TIMES), -1)
        errors.append(np.max(np.abs(found - exact(*mu))))
    assert errors[-1] < 1e-5
    assert np.all(np.log2(np.array(errors[:-1]) / errors[1:]) > 3.3)
    solved = system.solve(mu)
    theta, phi = system.form.operator_theta(mu[None])[0], system.form.load_theta(mu[None])[0]
    left = sum(t * (s @ solved) for t, s in zip(theta, system.form.operators, strict=True)) - phi @ system.form.loads
    assert np.max(np.abs(left)) < 1e-10
    factors = system.factors(mu)
    w = np.random.default_rng(0).standard_normal((system.n_unknowns, 2))
    assert np.allclose(factors.matrix @ factors.solve(w), w)
    assert np.allclose(factors.matrix.T @ factors.solve_transposed(w), w)


def test_boundary_data_and_an_initial_state_that_depends_on_parameters():
    (x,), t, (k, a) = ps.coordinates("x"), ps.time(), ps.parameters(k=(0.1, 1.0), a=(1.0, 3.0))
    u = ps.unknown("u", x, t)
    equation = ps.Eq(u.diff(t), k * u.diff(x, 2) + a * sympy.exp(-t))
    conditions = {"left": ps.Dirichlet(a * sympy.sin(t)), "right": ps.Neumann(0)}
    rod = ps.Problem(ps.Box((0,), (1,)), equation, conditions, initial=sympy.sin(a * x) * x, times=np.linspace(0, 1, 6))
    model = ps.discretize(rod, ps.scatter(rod.domain, n_nodes=41))
    system = space_time(model, 4, 3)
    for mu in ([0.1, 3.0], [1.0, 1.0], [0.4, 2.2]):
        truth = model.solve(mu, tolerance=1e-8).flat
        found = system.values(system.solve(np.array(mu)))
        assert np.linalg.norm(found - truth) < 2e-4 * np.linalg.norm(truth)


def test_reduced_steps_are_the_full_ones_where_modes_are_enough():
    model = rods(initial=None)
    growing = InTimeByEstimate(space_time(model, 2, 2))
    mus = np.array([[0.5, 1.0], [4.0, 5.0], [2.0, 3.0]])
    for mu in mus:
        growing.add_trajectory(mu)
    growing.reduce_steps(ps.solve_many(model, mus), 1e-12)
    blocks = growing.steps.coefficients(mus) @ growing.steps.columns.T
    full = np.array([growing.model.solve(mu) for mu in mus])
    assert np.allclose(blocks.reshape(3, -1), full, atol=1e-8)
    assert np.max(growing.step_errors(mus)) < 1e-6


def test_estimates_are_near_the_errors_and_bounds_above_them():
    model = rods()
    ratios = []
    for seed in range(3):
        growing = InTimeByEstimate(space_time(model, 2, 2), rng=seed)
        train = np.array([[0.5, 1.0], [4.0, 5.0]])
        for mu in train:
            growing.add_trajectory(mu)
        growing.reduce_steps(ps.solve_many(model, train), 1e-3)
        basis = growing.finish(model.sample(100, rng=seed), 1e-2)
        reduced = growing.sealed(basis)
        mus = model.sample(30, rng=10 + seed)
        truth = growing.model.values(np.array([growing.model.solve(mu) for mu in mus]))
        errors = np.linalg.norm(truth - basis.lift(reduced.coefficients(mus)), axis=1)
        assert np.median(errors / np.linalg.norm(truth, axis=1)) > 1e-4  # something to estimate
        c = reduced.coefficients(mus)
        ratios.append(reduced.estimate(mus, c).values / errors)
        assert np.all(reduced.certify(mus, c).values >= errors)
    assert np.min(ratios) > 0.4
    assert np.max(ratios) < 2.5


def test_what_is_no_affine_system_is_refused():
    with pytest.raises(NoCertificate, match="u''"):
        space_time(rods(initial=None, order=2))


@pytest.mark.slow
def test_learning_takes_few_trajectories_and_meets_the_tolerance(tmp_path):
    model = rods()
    surrogate = ps.learn(model, 1e-3, recipe="polynomial")
    account = surrogate.facts["learn"]
    assert account["met"]
    assert account["certificate"] == "probable"
    assert account["solves"] <= 12
    mus = fresh_parameters(model, 5)[:100]
    truth = np.array([exact(*mu).ravel() for mu in mus])
    answer = surrogate(mus)
    errors = np.linalg.norm(answer.values - truth, axis=1) / np.linalg.norm(truth, axis=1)
    assert np.max(errors) <= 1e-3
    assert np.mean(answer.bound >= errors) >= 0.99
    assert np.all((answer.estimate / errors > 0.2) & (answer.estimate / errors < 10))
    # the reduced model by itself, from a file
    ps.save(replace(surrogate, map=None), tmp_path / "rods.npz")
    loaded = ps.load(tmp_path / "rods.npz")
    by_reduced = loaded(mus)
    assert set(by_reduced.method) == {"reduced model"}
    assert set(by_reduced.bound_kind) == {"probable"}
    assert np.max(np.linalg.norm(by_reduced.values - truth, axis=1) / np.linalg.norm(truth, axis=1)) <= 1e-3
