"""Steps in time as one affine system, and the estimate by backward duals, against solutions computed otherwise."""

from dataclasses import replace

import numpy as np
import pytest
import sympy
from scipy import linalg, sparse

import parasol as ps
from parasol.errors import NoCertificate
from parasol.fitting.fit import surrogate_without_map
from parasol.learning import in_time
from parasol.learning.labels import relative
from parasol.learning.linear import fresh_parameters
from parasol.learning.solves import Limits, SolveCache
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


def test_the_sums_are_the_steps_also_where_equations_have_no_time_derivative():
    """What is interpolated says so: of a matrix, a load and a start that no formula separates."""
    (x,), t, (k, a) = ps.coordinates("x"), ps.time(), ps.parameters(k=(0.1, 1.0), a=(1.0, 3.0))
    u = ps.unknown("u", x, t)
    conditions = {"left": ps.Dirichlet(a * sympy.sin(t)), "right": ps.Neumann(0)}
    options = {"initial": sympy.sin(a * x) * x, "times": np.linspace(0, 1, 3)}

    def system(equation, options):
        rod = ps.Problem(ps.Box((0,), (1,)), equation, conditions, **options)
        return space_time(ps.discretize(rod, ps.scatter(rod.domain, n_nodes=41)), 1, 1)

    found = system(ps.Eq(u.diff(t), k * u.diff(x, 2) + a * sympy.exp(-t)), options)
    mu = np.array([0.4, 2.2])
    solved, form = found.solve(mu), found.form
    assert np.any(found.held)
    theta, phi = form.operator_theta(mu[None])[0], form.load_theta(mu[None])[0]
    left = sum(c * (s @ solved) for c, s in zip(theta, form.operators, strict=True)) - phi @ form.loads
    assert np.max(np.abs(left)) < 1e-8
    assert not np.any(form.operator_errors)
    plain = options | {"initial": x}
    other = system(ps.Eq(u.diff(t), k * u.diff(x, 2) + sympy.exp(-a * t * x)), plain).form
    assert np.any(other.load_errors)  # the source
    steep = system(ps.Eq(u.diff(t), sympy.exp(k * a * x) * u.diff(x, 2) + 1), plain).form
    assert np.any(steep.operator_errors)
    assert not np.any(steep.operator_errors[: len(steep.operators) - np.count_nonzero(steep.operator_errors)])
    for moving in ((k + t) * u.diff(x, 2), k * u.diff(x, 2) + sympy.cos(t) * u):
        with pytest.raises(NoCertificate, match="no affine system"):
            system(ps.Eq(u.diff(t), moving), plain)
    conditions["left"] = ps.Dirichlet(0)
    assert np.all(system(ps.Eq(u.diff(t), k * u.diff(x, 2)), options).form.load_errors)  # the start
    conditions["right"] = ps.Robin(1 + t, 1, 0)
    with pytest.raises(NoCertificate, match="no affine system"):
        system(ps.Eq(u.diff(t), k * u.diff(x, 2)), plain)


def test_what_the_steps_of_the_grid_miss_is_in_every_bound(monkeypatch):
    """One step between stored times is too few: errors are against the model's own steps, and the bound is above them."""
    model, train = rods(), np.array([[0.5, 1.0], [4.0, 5.0]])
    growing = InTimeByEstimate(space_time(model, 1, 0))
    snapshots = ps.solve_many(model, train)
    apart = relative(in_time._compare(growing, snapshots), snapshots.solutions, None)
    assert growing.drift == pytest.approx(np.max(apart))
    assert growing.drift > 1e-4
    growing.reduce_steps(snapshots, 1e-8)
    basis = growing.finish(model.sample(60, rng=0), 1e-8)
    growing.drift = 0.0
    cache = SolveCache(model, Limits())
    found = in_time._checked(growing, basis, snapshots, [1.0], model.sample(20, rng=1), cache, 0)
    gaps = growing.model.values(np.array([growing.model.solve(mu) for mu in found.checks.mus]))
    seen = np.max(relative(gaps, found.checks.solutions, None))
    # steps are looked at at 200 random parameters besides, by reduced steps of two grids
    assert growing.drift > seen
    assert found.sealed.duals.doubt == pytest.approx(1 / 201)
    corner = np.array([[4.0, 5.0]])
    at_corner = relative(
        growing.model.values(growing.model.solve(corner[0]))[None], exact(*corner[0]).ravel()[None], None
    )
    assert growing.steps.drifts(corner) == pytest.approx(at_corner, rel=0.2)
    mus = np.vstack([found.checks.mus, corner])
    truth = np.array([exact(*mu).ravel() for mu in mus])
    for reduced in (found.sealed, found.steering):
        c = reduced.coefficients(mus)
        errors = np.linalg.norm(truth - basis.lift(c), axis=1)
        assert np.all(reduced.certify(mus, c).values >= errors)
        assert np.all(reduced.estimate(mus, c).values >= growing.drift * np.linalg.norm(c, axis=1))
    # the answers are certified by vectors that decided nothing
    monkeypatch.setattr(in_time, "_basis", lambda *_: found)
    monkeypatch.setattr(in_time, "best_map", lambda basis, *_: surrogate_without_map(basis.steering))
    monkeypatch.setattr(in_time, "judged", lambda surrogate, *_: surrogate)
    assert in_time.learn_in_time(model, 1e-3, cache).reduced is found.sealed


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


def test_unknowns_of_other_units_count_alike_in_trajectories():
    """v is a hundred thousand times u, and both are right to the tolerance."""
    (x,), t = ps.coordinates("x"), ps.time()
    u, v, (a,) = ps.unknown("u", x, t), ps.unknown("v", x, t), ps.parameters(a=(0.5, 2.0))
    equations = [ps.Eq(u.diff(t), a * u.diff(x, 2)), ps.Eq(v.diff(t), v.diff(x, 2) - 1e6 * u)]
    ends = {"*": {u: ps.Dirichlet(0), v: ps.Dirichlet(0)}}
    about = {"initial": {"u": sympy.sin(sympy.pi * x), "v": 1e6 * x * (1 - x)}, "times": [0.0, 0.1, 0.2]}
    problem = ps.Problem(ps.Box(0, 1), equations, ends, settings={"default": ps.Settings(step=0.01)}, **about)
    surrogate = ps.learn(problem, 1e-2, n_nodes=20, recipe="polynomial")
    assert surrogate.facts["learn"]["certificate"] == "probable"
    truth = ps.solve_many(surrogate.solver, ps.sample(surrogate.solver, 20, design="random", rng=5))
    answer, both = surrogate(truth.mus), truth.solutions.reshape(20, 3, 2, 20)
    gaps = answer.values.reshape(both.shape) - both
    errors = np.linalg.norm(gaps, axis=(1, 3)) / np.linalg.norm(both, axis=(1, 3))
    assert np.max(errors) < 1e-2
    assert np.all(np.max(errors, axis=1) <= 2 * answer.bound)


def test_samples_of_matrices_in_time_are_compared_in_the_product(monkeypatch):
    """Where the steps are too many for one system: the level is that of errors in the norm of the product, at all times."""
    n, one = 15, np.ones(15)
    mass = sparse.diags_array([one[1:], 4 * one, one[1:]], offsets=[-1, 0, 1]).tocsr() / 6
    stiff = sparse.diags_array([-one[1:], 2 * one, -one[1:]], offsets=[-1, 0, 1]).tocsr() * n**2
    (a,) = ps.parameters(a=(0.05, 1.0))
    about = {"mass": mass, "initial": one, "times": [0.0, 0.1, 0.2], "step": 0.02, "product": stiff}
    model = ps.AffineModel({a: stiff}, {1: mass @ one}, **about)
    monkeypatch.setattr(in_time, "_MOST_UNKNOWNS", 0)
    surrogate = ps.learn(model, 1e-2, recipe="polynomial")
    assert surrogate.facts["learn"]["certificate"] == "conformal"
    truth = ps.solve_many(model, ps.sample(model, 60, design="random", rng=5))
    answer, each = surrogate(truth.mus), (60, 3, n)

    def norm(values):
        return np.sqrt(np.einsum("kti,ij,ktj->k", values.reshape(each), stiff.toarray(), values.reshape(each)))

    errors = norm(answer.values - truth.solutions) / norm(truth.solutions)
    assert np.mean(errors <= answer.bound) > 0.88
    assert np.allclose(surrogate.basis.norm(truth.solutions), norm(truth.solutions))
