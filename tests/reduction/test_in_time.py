"""Reduced steps in time against full solves: the scheme is the same, so only the modes may differ."""

import dataclasses

import numpy as np
import pytest
from sympy import cos, exp, pi, sin

import parasol as ps
from parasol.checks import ParasolError
from parasol.reduction import semidiscrete
from parasol.reduction.bases_in_space import pod_greedy, space_basis
from parasol.reduction.constraints import Constraints
from parasol.reduction.in_time import reduce_trajectories
from parasol.reduction.snapshots import as_snapshots
from parasol.reduction.stepping import SmallSystems, march
from parasol.runtime.basis import Basis

pytestmark = pytest.mark.filterwarnings("ignore::parasol.ParasolWarning")

(x,) = ps.coordinates("x")
t = ps.time()
a, b = ps.parameters(a=(0.5, 1.5), b=(0.1, 0.3))
u = ps.unknown("u", x, t)
TIMES = np.linspace(0, 0.4, 9)


def line(equation, boundary, initial, *, step=0.01, integrator=None, count=41, times=TIMES):
    problem = ps.Problem(ps.Box(0.0, 1.0), equation, boundary, initial=initial, times=times)
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=count))
    return dataclasses.replace(model, step=step, integrator=integrator)


HEAT = ps.Eq(u.diff(t), b * u.diff(x, 2) + a * sin(pi * x))
WAVE = ps.Eq(u.diff(t, 2) + b * u.diff(t), a * u.diff(x, 2))
FRONT = ps.Eq(u.diff(t) + u * u.diff(x), b * u.diff(x, 2) - a * u**3)
NON_AFFINE = ps.Eq(u.diff(t), exp(a * x) * b * u.diff(x, 2) + sin(3 * a * x * (1 + t)))
DECAY = ps.Eq(u.diff(t) + a * exp(3 * t) * (1 + x) * u, b * u.diff(x, 2))
THAW = ps.Eq(u.diff(t), (1 + a * t + b * x * sin(5 * t)) * u.diff(x, 2))
BUMP = x * (1 - x) * exp(a * x)
CASES = {
    "heat, sbdf2": line(HEAT, ps.Dirichlet(0), BUMP),
    "heat, esdirk4": line(HEAT, ps.Dirichlet(0), BUMP, integrator="esdirk4", step=0.05),
    "heat, steps between times": line(HEAT, ps.Dirichlet(0), BUMP, step=0.03, times=np.array([0, 0.1, 0.17, 0.4])),
    "wave, averaged": line(WAVE, ps.Dirichlet(0), (BUMP, b * sin(pi * x))),
    "wave, esdirk4": line(WAVE, ps.Dirichlet(0), (BUMP, sin(pi * x)), integrator="esdirk4"),
    "wave, moving walls": line(WAVE, ps.Dirichlet(sin(a * t) + x), (x, a)),
    "free walls": line(WAVE, ps.Neumann(0), (cos(pi * x), 0)),
    "driven walls": line(HEAT, ps.Neumann(b * cos(t)), cos(pi * x)),
    "front": line(FRONT, ps.Dirichlet(a * (1 - x) * cos(t)), a * (1 - x)),
    "front, esdirk4": line(FRONT, ps.Dirichlet(a * (1 - x)), a * (1 - x), integrator="esdirk4", step=0.05),
    "reaction that changes in time": line(DECAY, ps.Dirichlet(0), BUMP),
    "diffusion that changes in time": line(THAW, ps.Dirichlet(0), BUMP, step=0.02),
    "not affine": line(NON_AFFINE, ps.Dirichlet(0), sin(pi * x)),
}


def solved(model, n, rng=1):
    mus = model.sample(n, rng=rng)
    return as_snapshots(mus, np.array([model.solve(mu).flat for mu in mus]))


def from_trajectories(model, snapshots, basis_tolerance=None, *, n_modes=None, **options):
    basis = space_basis(model, snapshots, tolerance=basis_tolerance, n_modes=n_modes)
    return ps.reduce(model, basis, snapshots, **options)


def errors(found, expected):
    return np.linalg.norm(found - expected, axis=1) / np.linalg.norm(expected, axis=1)


@pytest.mark.parametrize("name", CASES)
def test_with_all_modes_reduced_steps_are_the_full_ones(name, monkeypatch):
    monkeypatch.setattr(semidiscrete, "_MOST_ROWS", 20)
    model = CASES[name]
    constraints = Constraints.of(model)
    n_values = model.n_nodes
    # all that moves: unit vectors, completed by the constraints and orthonormalised
    states = model.layout.at_nodes(constraints.homogeneous(np.eye(n_values)))
    modes = np.linalg.svd(states)[2][: np.linalg.matrix_rank(states)].T
    hidden = model.layout.at_ghosts(constraints.homogeneous(modes.T)).T if model.n_unknowns > n_values else None
    snapshots = solved(model, 6)
    reduced = ps.reduce(model, Basis(modes, hidden=hidden), snapshots, tolerance=1e-13)
    # where all of the diffusion is in N, fitting it at its rows costs a digit
    limit = 1e-8 if name.startswith("diffusion") else 1e-9
    assert errors(reduced.values(snapshots.mus), snapshots.solutions).max() < limit


def test_conditions_with_coefficients_in_time_are_refused():
    wall = ps.Robin(1 + t, 1, a)
    with pytest.raises(ps.ParasolError, match="coefficient that depends on time"):
        Constraints.of(line(HEAT, wall, cos(pi * x)))


@pytest.mark.parametrize("name", ["heat, sbdf2", "wave, averaged", "wave, moving walls", "driven walls", "front"])
@pytest.mark.parametrize("projection", ["galerkin", "least-squares"])
def test_few_modes_reach_parameters_not_seen(name, projection):
    model = CASES[name]
    reduced = from_trajectories(model, solved(model, 12), 1e-5, projection=projection)
    assert reduced.n_modes < 25
    unseen = solved(model, 8, rng=2)
    assert errors(reduced.values(unseen.mus), unseen.solutions).mean() < 3e-4
    assert reduced.projection_error <= reduced.error < 1e-4


def test_a_soliton_on_a_coarse_lattice_with_ghosts():
    problem = ps.load_problem("sine-gordon")
    model = ps.discretize(problem, ps.lattice(problem.domain, 15), degree=2)
    model = dataclasses.replace(model, step=0.1)
    reduced = from_trajectories(model, solved(model, 12), 1e-4)
    unseen = solved(model, 5, rng=2)
    assert reduced.n_modes < 100
    assert errors(reduced.values(unseen.mus), unseen.solutions).mean() < 1e-3
    blocks = np.concatenate(list(reduced.blocks(unseen.mus)))
    np.testing.assert_allclose(blocks, reduced.values(unseen.mus))


def test_adapted_steps_become_constant_ones_that_are_fine_enough():
    problem = ps.load_problem("heat")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=200))
    reduced = from_trajectories(model, solved(model, 6), 1e-4)
    mus = model.sample(5, rng=3)
    exact = [np.concatenate([model.exact(mu, float(s)) for s in reduced.times]) for mu in mus]
    assert errors(reduced.values(mus), np.array(exact)).max() < 5e-3  # that of the stencils
    # the slowest decay is that of the first mode of the square
    np.testing.assert_allclose(reduced.growth(mus), -2 * np.pi**2 * mus[:, 0], rtol=1e-2)


def test_steps_may_be_coarser_than_modes():
    model = line(HEAT, ps.Dirichlet(0), BUMP, step=None)
    snapshots = solved(model, 3)
    basis = space_basis(model, snapshots, tolerance=1e-7)
    fine, coarse = (
        reduce_trajectories(model, basis, snapshots, tolerance=1e-7, step_tolerance=step) for step in (None, 1e-3)
    )
    assert coarse.n_steps < fine.n_steps
    mus = model.sample(5, rng=9)
    gap = np.linalg.norm(coarse.values(mus) - fine.values(mus), axis=1) / np.linalg.norm(fine.values(mus), axis=1)
    assert 1e-9 < np.max(gap) < 1e-3


def test_a_wave_does_not_grow():
    model = CASES["free walls"]
    reduced = from_trajectories(model, solved(model, 10), 1e-6)
    assert reduced.growth(model.sample(5)).max() < 1e-6


def test_space_modes_are_those_of_all_moments():
    model = CASES["heat, sbdf2"]
    snapshots = solved(model, 5)
    rows = snapshots.solutions.reshape(-1, model.n_nodes)
    _, s, expected = np.linalg.svd(rows, full_matrices=False)
    found = space_basis(model, snapshots, n_modes=4)
    np.testing.assert_allclose(found.singular_values[:4], s[:4], rtol=1e-7)
    np.testing.assert_allclose(np.abs(expected[:4] @ found.modes), np.eye(4), atol=1e-5)


def test_pod_greedy_makes_the_worst_trajectory_small():
    model = CASES["wave, averaged"]
    snapshots = solved(model, 15)
    found = pod_greedy(model, snapshots, tolerance=1e-3, per_step=2)
    rows = snapshots.solutions.reshape(15, -1, model.n_nodes)
    left = rows - (rows @ found.basis.modes) @ found.basis.modes.T
    direct = np.linalg.norm(left, axis=(1, 2)) / np.linalg.norm(rows, axis=(1, 2))
    assert direct.max() < 1.001e-3
    assert np.isclose(found.history[-1], direct.max(), rtol=1e-2)
    assert found.history[0] == pytest.approx(1.0)
    assert np.all(np.diff(found.history) <= 1e-12)
    assert found.basis.n_modes == 2 * len(found.chosen)
    fewer = pod_greedy(model, snapshots, n_modes=3)
    assert fewer.basis.n_modes == 3
    np.testing.assert_allclose(fewer.basis.modes.T @ fewer.basis.modes, np.eye(3), atol=1e-14)
    reduced = ps.reduce(model, found.basis, snapshots)
    assert reduced.error < 5e-3


@pytest.mark.parametrize(("integrator", "order"), [("averaged", 2), ("esdirk4", 4)])
def test_small_steps_have_the_order_of_the_scheme(integrator, order):
    def nothing(_):
        return np.zeros((2, 1))

    stiffness = np.array([[[1.0]], [[4.0]]])  # c'' + k c = 0: cosines of t and 2t
    systems = SmallSystems(np.ones((1, 1, 1)), np.zeros((1, 1, 1)), stiffness, nothing, nothing)
    wrong = []
    for n in (40, 80):
        end = march(systems, np.ones((2, 1)), np.zeros((2, 1)), np.array([0.0, 1.0]), n, integrator)[-1, :, 0]
        wrong.append(np.abs(end - np.cos([1.0, 2.0])).max())
    assert abs(np.log2(wrong[0] / wrong[1]) - order) < 0.3


def test_what_cannot_be_reduced_is_refused():
    robin = line(HEAT, ps.Robin(a, 1), BUMP)
    with pytest.raises(ps.ParasolError, match=r"depends on the parameters.*full solves"):
        Constraints.of(robin)
    bent = line(HEAT, {"left": ps.Eq(u.diff(x), u**4), "*": ps.Dirichlet(0)}, BUMP)
    with pytest.raises(ps.ParasolError, match=r"nonlinear.*full solves"):
        Constraints.of(bent)
    model = CASES["heat, sbdf2"]
    snapshots = solved(model, 3)
    with pytest.raises(ps.ParasolError, match="this model"):
        space_basis(model, as_snapshots(snapshots.mus, snapshots.solutions[:, :-1]), n_modes=2)
    pulse = line(WAVE, ps.Dirichlet(0), (exp(-100 * (x - 0.5) ** 2), 0))
    with pytest.raises(ps.ParasolError, match=r"miss the training trajectories.*full solves"):
        from_trajectories(pulse, solved(pulse, 3), n_modes=1)
    reduced = from_trajectories(model, snapshots, n_modes=3)
    with pytest.raises(ps.ParasolError, match="a="):
        reduced.coefficients([[9.0, 0.2]])


def test_the_name_of_version_0_1_still_works():
    model = CASES["heat, sbdf2"]
    snapshots = solved(model, 6)
    with pytest.warns(DeprecationWarning, match=r"use parasol\.reduce\(model, basis, snapshots\)"):
        before = ps.reduce_in_time(model, snapshots, tolerance=1e-5)
    now = from_trajectories(model, snapshots, 1e-5, tolerance=1e-5)
    np.testing.assert_array_equal(before.values(snapshots.mus), now.values(snapshots.mus))


def test_too_few_stored_times_are_told():
    pulse = line(WAVE, ps.Dirichlet(0), (exp(-20 * (x - 0.5) ** 2), 0), times=np.array([0.0, 0.2, 0.4]))
    with pytest.warns(ps.ParasolWarning, match="Store more times"):
        from_trajectories(pulse, solved(pulse, 6), 1e-6)


def test_functions_as_parameters_join_in():
    y, z = ps.coordinates("y z")
    v = ps.unknown("v", x, y, z, t)
    f = ps.FunctionParameter("f", ps.SphereField(degree=1), on="domain")
    g = ps.FunctionParameter("g", ps.SphereField(degree=1), on="boundary")
    equation = ps.Eq(v.diff(t) + f * v**2 / 10, b * ps.laplacian(v) + cos(t) * f)
    problem = ps.Problem(ps.Ball((0, 0, 0), 1), equation, ps.Dirichlet(g), initial=0, times=np.linspace(0, 0.2, 6))
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=300), degree=2)
    model = dataclasses.replace(model, step=0.02)
    reduced = from_trajectories(model, solved(model, 40), 1e-5, tolerance=1e-4)
    unseen = solved(model, 4, rng=2)
    assert errors(reduced.values(unseen.mus), unseen.solutions).mean() < 2e-2
    assert reduced.error < 1e-3


def test_growth_of_reduced_steps_is_held_against_the_data():
    one = np.ones((1, 1, 1))

    def nothing(t):
        return np.zeros((2, 1))

    # exp(30 t) from 1e-9: nothing in sight of 1, and worthless
    start = np.array([[0.0], [1e-9]])
    with pytest.raises(ParasolError, match="grow beyond all bounds"):
        march(SmallSystems(0.0, one, -30 * one, nothing, nothing), start, None, np.array([0.0, 1.0]), 100, "esdirk4")
    # from 0, by a large force
    pushed = SmallSystems(0.0, one, 0 * one, lambda t: np.array([[1e12], [0.0]]), nothing)
    found = march(pushed, 0 * start, None, np.array([0.0, 1.0]), 10, "sbdf2")
    np.testing.assert_allclose(found[-1, :, 0], [1e12, 0.0], rtol=1e-9)


def test_reduced_stages_that_cannot_be_solved_are_refused():
    one = np.ones((1, 1, 1))

    def nothing(t):
        return np.zeros((1, 1))

    # a Jacobian that knows nothing of a stiff part: its iteration diverges
    wrong = SmallSystems(0.0, one, 0 * one, nothing, nothing, lambda c, t: 200 * c, lambda c, t: 0 * one)
    with pytest.raises(ParasolError, match="Newton did not converge"):
        march(wrong, np.ones((1, 1)), None, np.array([0.0, 1.0]), 10, "esdirk4")


def test_a_source_that_vanishes_at_all_stored_times_is_not_lost(monkeypatch):
    monkeypatch.setattr(semidiscrete, "_MOST_ROWS", 5)  # so that it is interpolated
    source = ps.Eq(u.diff(t), u.diff(x, 2) / 10 + t * (t - 1) * (t - 2) * (t - 3) * (t - 4) * exp(a * x))
    model = line(source, ps.Dirichlet(1 + x), 1 + x, step=0.05, times=np.arange(5.0))
    reduced = from_trajectories(model, solved(model, 8), 1e-6)
    mu = model.vector({"a": 1.3})
    assert errors(reduced.values([mu]), model.solve(mu).flat[None])[0] < 1e-3


@pytest.mark.parametrize("unit", [1.0, 1e-10])
def test_damping_that_acts_on_given_values_is_refused_in_any_unit(unit):
    inner = np.diag([0.0, 1.0, 1.0, 0.0])
    chain = unit * inner @ (2 * np.eye(4) - np.eye(4, k=1) - np.eye(4, k=-1))
    options = {"mass": unit * inner, "damping": chain, "times": [0.0, 1.0]}
    model = ps.AffineModel({a: chain, 1: np.eye(4) - inner}, {sin(t): np.eye(4)[0]}, **options)
    with pytest.raises(ps.errors.NoCertificate, match="a time derivative acts on values"):
        space_basis(model, ps.solve_many(model, [[1.0]]), n_modes=2)
