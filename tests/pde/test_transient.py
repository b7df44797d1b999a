from fractions import Fraction

import numpy as np
import pytest

from lattice import eigenvalue, lattice, system_of
from parasol.checks import ParasolError, ParasolWarning
from parasol.pde.esdirk import EMBEDDED, PLACES, STAGES
from parasol.pde.integrators import interpolation
from parasol.pde.transient import integrate, spectrum

PENDULUM = -0.3648477171  # u'' + 0.05 u' + sin u = 0, u(0) = 2, u'(0) = 0 at t = 10


def slopes(system, times, exact, steps, **options):
    found = [integrate(system, exact[0], times, step=step, **options) for step in steps]
    errors = np.array([np.max(np.abs(f.values - exact)) for f in found])
    return np.log(errors[:-1] / errors[1:]) / np.log(np.array(steps[:-1]) / steps[1:])


def heat():
    x, system = lattice()
    times = np.linspace(0, 0.2, 5)
    return system, times, np.exp(-eigenvalue() * times)[:, None] * np.sin(np.pi * x), {}


def damped_wave():
    x, system = lattice(order=2, damping=0.5)
    times = np.linspace(0, 2, 6)
    w = np.sqrt(eigenvalue() - 0.0625)
    factor = np.exp(-0.25 * times) * (np.cos(w * times) + 0.25 / w * np.sin(w * times))
    return system, times, factor[:, None] * np.sin(np.pi * x), {"velocity": 0 * x}


def allen_cahn():
    x, system = lattice(11, ends="slope", reaction=-1.0, nonlinear=lambda u: u**3, slope=lambda u: 3 * u**2)
    times = np.linspace(0, 3, 7)
    grown = 0.2 * np.exp(times) / np.sqrt(1 + 0.04 * (np.exp(2 * times) - 1))
    return system, times, grown[:, None] + 0 * x, {}


def moving_ends(order, viscosity):
    """u = sin(t + x) with values given at the ends; `viscosity` couples the velocities of neighbours."""
    n, times = 41, np.linspace(0, 2, 6)
    k = 2 * (1 - np.cos(1 / (n - 1))) * (n - 1) ** 2  # −u_xx on the lattice is k u

    def source(x, t):
        inertia = np.cos(t + x) if order == 1 else -np.sin(t + x)
        return inertia + viscosity * k * np.cos(t + x) + k * np.sin(t + x)

    x, system = lattice(
        n, order=order, viscosity=viscosity, source=source, boundary=lambda t: (np.sin(t), np.sin(t + 1))
    )
    options = {"velocity": np.cos(x)} if order == 2 else {}
    return system, times, np.sin(times[:, None] + x), options


def pendulum(n=11):
    return lattice(n, order=2, damping=0.05, ends="slope", nonlinear=np.sin, slope=np.cos)


def test_the_tableau_meets_its_order_conditions():
    def exact(values):
        return [Fraction(v).limit_denominator(10**13) for v in values]

    a, c, embedded = [exact(row) for row in STAGES], exact(PLACES), exact(EMBEDDED)

    def dot(p, q):
        return sum(float(x) * float(y) for x, y in zip(p, q, strict=True))

    ac = [dot(row, c) for row in a]
    powers = {k: [float(x) ** k for x in c] for k in (0, 1, 2, 3)}
    trees = [powers[0], c, powers[2], ac, powers[3], [x * float(y) for x, y in zip(ac, c, strict=True)]]
    trees += [[dot(row, powers[2]) for row in a], [dot(row, ac) for row in a]]
    wanted = np.array([1, 1 / 2, 1 / 3, 1 / 6, 1 / 4, 1 / 8, 1 / 12, 1 / 24])
    np.testing.assert_allclose([dot(a[-1], tree) for tree in trees], wanted, rtol=1e-13)
    np.testing.assert_allclose([dot(embedded, tree) for tree in trees[:4]], wanted[:4], rtol=1e-13)
    assert np.all(np.abs(np.array([dot(embedded, tree) for tree in trees[4:]]) - wanted[4:]) > 1e-5)
    np.testing.assert_allclose([float(sum(row)) for row in a], PLACES, atol=1e-14)
    np.testing.assert_allclose(ac, np.array(powers[2]) / 2, atol=1e-14)  # stage order 2
    assert PLACES[-1] == 1  # with the weights equal to the last stage: stiffly accurate
    # the slope of an algebraic unknown forgets an error of the step before: L-stable
    assert abs(np.linalg.solve(STAGES[1:, 1:], STAGES[1:, 0])[-1]) < 1e-13


def test_esdirk4_is_stable_on_the_imaginary_axis():
    for y in np.geomspace(1e-2, 1e4, 200):
        growth = 1 + 1j * y * STAGES[-1] @ np.linalg.solve(np.eye(6) - 1j * y * STAGES, np.ones(6))
        assert abs(growth) <= 1 + 1e-12


def test_interpolation_is_exact_for_cubics():
    ts = [0.3, 0.5, 1.1, 1.2]
    assert abs(interpolation(ts, 0.9) @ np.array(ts) ** 3 - 0.9**3) < 1e-14


@pytest.mark.parametrize(
    ("case", "integrator", "order"),
    [
        (heat, "sbdf2", 2),
        (heat, "esdirk4", 4),
        (damped_wave, "averaged", 2),
        (damped_wave, "esdirk4", 4),
        (allen_cahn, "sbdf2", 2),
        (allen_cahn, "esdirk4", 4),
    ],
)
def test_observed_order_in_time(case, integrator, order):
    system, times, exact, options = case()
    steps = times[-1] / (20 if case is not allen_cahn else 30) / np.array([1, 2, 4])
    found = slopes(system, times, exact, steps, integrator=integrator, **options)
    assert abs(found[-1] - order) < 0.2, found


@pytest.mark.parametrize("viscosity", [0.0, 0.1])
@pytest.mark.parametrize(
    ("order", "integrator", "least"), [(1, "sbdf2", 2), (2, "averaged", 2), (1, "esdirk4", 3), (2, "esdirk4", 3)]
)
def test_order_with_boundary_data_that_move(order, integrator, least, viscosity):
    # stiff problems with moving ends see the stage order plus one of a Runge-Kutta method, so 3 for esdirk4
    system, times, exact, options = moving_ends(order, viscosity)
    steps = 0.1 / np.array([1, 2, 4])
    found = slopes(system, times, exact, steps, integrator=integrator, **options)
    assert found[-1] > least - 0.2, found
    final = integrate(system, exact[0], times, step=0.1, integrator=integrator, **options).values
    ends = np.stack([np.sin(times), np.sin(times + 1)], axis=1)
    np.testing.assert_allclose(final[:, [0, -1]], ends, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "error"), [({"step": 0.02}, 2e-4), ({"step": 0.1, "integrator": "esdirk4"}, 1e-6), ({}, 1e-5)]
)
def test_pendulum(options, error):
    x, system = pendulum()
    found = integrate(system, 2 + 0 * x, [0.0, 10.0], velocity=0 * x, **options)
    assert np.max(np.abs(found.values[-1] - PENDULUM)) < error
    assert np.ptp(found.values[-1]) < 1e-11  # a constant stays one
    assert found.n_factorizations <= 12


def test_pendulum_of_one_unknown():
    system = system_of([[0.0]], [[0.05]], [[1.0]], None, lambda u, t: np.sin(u), lambda u, t: [[np.cos(u[0])]])
    found = integrate(system, [2.0], [0, 10], velocity=[0.0], tolerance=1e-7)
    assert abs(found.values[-1, 0] - PENDULUM) < 2e-7


@pytest.mark.parametrize("tolerance", [1e-4, 1e-6])
@pytest.mark.parametrize(
    "case", [heat, damped_wave, allen_cahn, lambda: moving_ends(1, 0.1), lambda: moving_ends(2, 0.0)]
)
def test_adaptive_steps_meet_the_tolerance(case, tolerance):
    system, times, exact, options = case()
    found = integrate(system, exact[0], times, tolerance=tolerance, **options)
    assert np.max(np.abs(found.values - exact)) < tolerance * np.max(np.abs(exact))
    assert found.n_factorizations < found.n_steps


def test_the_step_follows_the_solution():
    # a fast transient, then the slow solution cos t: u' = −1000 (u − cos t) − sin t
    system = system_of([[1000.0]], [[1.0]], None, lambda t: np.array([1000 * np.cos(t) - np.sin(t)]))
    times = np.array([0.0, 1.0, 5.0, 10.0])
    found = integrate(system, [3.0], times, tolerance=1e-6)
    np.testing.assert_allclose(found.values[1:, 0], np.cos(times[1:]), atol=3e-6)
    assert found.largest_step > 300 * found.smallest_step
    assert found.n_steps < 500


def test_adapted_steps_meet_the_requested_times_with_few_factors():
    x, system = lattice(order=2)
    times = np.linspace(0, 20, 301)
    exact = np.cos(np.sqrt(eigenvalue()) * times)[:, None] * np.sin(np.pi * x)
    found = integrate(system, exact[0], times, velocity=0 * x, tolerance=1e-5)
    assert np.max(np.abs(found.values - exact)) < 1e-5
    assert found.n_factorizations <= 8


def test_times_that_steps_cannot_meet_are_interpolated():
    system, _, _, options = damped_wave()
    x = np.linspace(0, 1, 41)
    times = np.array([0.0, 0.013, 0.5, 1.7072, 2.0])
    fine = integrate(system, np.sin(np.pi * x), times, tolerance=1e-9, **options)
    found = [integrate(system, np.sin(np.pi * x), times, step=s, **options) for s in (0.02, 0.01)]
    errors = [np.max(np.abs(f.values - fine.values), axis=1) for f in found]
    assert errors[0][1:].max() < 5e-3
    assert 3.3 < errors[0].max() / errors[1].max() < 4.7


def test_steps_divide_the_interval_between_stored_times():
    system, _, exact, _ = heat()
    found = integrate(system, exact[0], np.linspace(0, 0.2, 5), step=0.015)
    assert found.n_steps == 16
    np.testing.assert_allclose([found.smallest_step, found.largest_step], 0.0125)
    assert integrate(system, exact[0], [0.0, 0.1, 0.15], step=0.06).n_steps == 3


def test_wave_keeps_its_energy():
    x, system = lattice(order=2)
    stiffness = system.matrix(system.stiffness)
    start = np.exp(-100 * (x - 0.4) ** 2) * np.sin(np.pi * x)
    h, times = 0.005, np.arange(0, 801) * 0.005
    u = integrate(system, start, times, velocity=0 * x, step=h).values
    speed = (u[1:] - u[:-1]) / h
    stored = np.sum(u * (stiffness @ u.T).T, axis=1)
    energy = np.sum(speed**2, axis=1) + (stored[1:] + stored[:-1]) / 2  # what the averaged scheme conserves
    np.testing.assert_allclose(energy, energy[0], rtol=1e-8)


def test_rows_of_first_and_second_order_together():
    # u'' = −u + w, w' = −w
    system = system_of([[1.0, -1.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 0.0]])
    times = np.linspace(0, 5, 6)
    exact = np.stack([(np.exp(-times) + np.cos(times) + np.sin(times)) / 2, np.exp(-times)], axis=1)
    found = slopes(system, times, exact, [0.25, 0.125, 0.0625], integrator="esdirk4", velocity=[0.0, 0.0])
    assert abs(found[-1] - 4) < 0.2
    with pytest.raises(ParasolError, match="every equation"):
        integrate(system, exact[0], times, velocity=[0.0, 0.0], step=0.1, integrator="averaged")
    assert integrate(system, exact[0], times, velocity=[0.0, 0.0], step=0.1).integrator == "esdirk4"


def test_a_rough_start_is_smoothed_not_amplified():
    x, system = lattice(101)
    for options in ({"step": 0.01}, {"step": 0.01, "integrator": "esdirk4"}, {"tolerance": 1e-4}):
        with pytest.warns(ParasolWarning, match="violates the boundary conditions"):
            found = integrate(system, 1 + 0 * x, [0.0, 0.1, 0.2], **options)
        np.testing.assert_array_equal(found.values[0], 1)
        exact = sum(4 / (k * np.pi) * np.exp(-((k * np.pi) ** 2) * 0.2) * np.sin(k * np.pi * x) for k in (1, 3, 5))
        assert np.max(np.abs(found.values[2] - exact)) < 5e-3
        assert found.values.max() < 1.1
        np.testing.assert_allclose(found.values[1:, 0], 0, atol=1e-14)


def test_a_small_violation_is_mended_and_unknown_values_are_found():
    x, system = lattice()
    start = np.sin(np.pi * x)
    start[0] = 1e-5
    assert integrate(system, start, [0, 0.1]).values[0, 0] == 0
    x, system = lattice(ends="slope")
    start = np.cos(np.pi * x)
    start[[0, -1]] = np.nan
    found = integrate(system, start, [0, 0.1]).values
    assert abs(found[0, 0] - 1) < 1e-3
    assert np.all(np.isfinite(found))


@pytest.mark.parametrize(
    ("options", "advice"), [({"step": 0.01}, "step smaller"), ({"tolerance": 1e-3}, "growing solutions")]
)
def test_growth_is_reported(options, advice):
    x, system = lattice(order=2, diffusion=0.1, reaction=-100.0)
    with pytest.raises(ParasolError, match=f"unstable: .* at t=.*{advice}"):
        integrate(system, np.sin(np.pi * x), [0, 10], velocity=0 * x, **options)


def test_an_explicit_part_with_a_step_too_long_is_reported():
    x, system = lattice(nonlinear=lambda u: 100 * u, slope=lambda u: 100 + 0 * u)
    with pytest.raises(ParasolError, match=r"unstable: .*integrator 'sbdf2'.*smaller than 0.1"):
        integrate(system, np.sin(np.pi * x), [0, 10], step=0.1)
    found = integrate(system, np.sin(np.pi * x), [0, 10], step=0.005)
    assert np.max(np.abs(found.values[-1])) < 1e-10
    # overflow on the way is no warning of NumPy's but the same message
    _, system = lattice(order=2, nonlinear=lambda u: 100 * u**3, slope=lambda u: 300 * u**2)
    with pytest.raises(ParasolError, match="unstable"):
        integrate(system, 5 * np.sin(np.pi * x), [0, 10], velocity=0 * x, step=0.1)


def test_blow_up_in_finite_time_stops_the_run():
    system = system_of([[0.0]], [[1.0]], None, None, lambda u, t: -(u**2), lambda u, t: [[-2 * u[0]]])
    with pytest.raises(ParasolError, match=r"unstable|step size fell"):
        integrate(system, [1.0], [0, 2])


@pytest.mark.parametrize("n", [41, 1601])
def test_spectrum(n):
    exact = 20 - eigenvalue(n)
    found = spectrum(lattice(n, reaction=-20.0)[1])
    assert found.kind == ("dense" if n == 41 else "arnoldi")
    assert abs(found.largest_real - exact) < 1e-2
    assert found.growth == found.largest_real
    assert abs(found.spectral_radius / (eigenvalue(n, n - 2) - 20) - 1) < 1e-2
    found = spectrum(lattice(n, order=2, reaction=-20.0, damping=1.0)[1])
    assert found.largest_imag < 1e-3
    assert abs(found.growth - (np.sqrt(0.25 + exact) - 0.5)) < 1e-2


def test_the_spectrum_sees_complex_eigenvalues():
    # u'' = L u with L = [[−1, −1], [1, −1]]: eigenvalues −1 ± i, so √λ has a positive real part
    system = system_of([[1.0, 1.0], [-1.0, 1.0]], None, np.eye(2))
    found = spectrum(system)
    assert abs(found.largest_imag - 1) < 1e-12
    assert abs(found.growth - np.sqrt(-1 + 1j).real) < 1e-12


def test_progress_runs_from_zero_to_one():
    system, times, exact, _ = heat()
    for options in ({}, {"step": 0.01}):
        seen = []
        integrate(system, exact[0], times, progress=seen.append, **options)
        assert seen == sorted(seen)
        assert abs(seen[-1] - 1) < 1e-12


@pytest.mark.parametrize(
    ("order", "changes", "message"),
    [
        (1, {"initial": None}, "initial state is missing"),
        (1, {"initial": np.zeros(3)}, "initial has shape"),
        (1, {"velocity": np.zeros(41)}, "u' only"),
        (2, {}, "initial velocity is missing"),
        (1, {"times": [0, 1, 1]}, "must increase"),
        (1, {"times": [0, np.nan]}, "NaN"),
        (1, {"times": [0]}, "first and a last"),
        (1, {"step": -1}, "step must be positive"),
        (1, {"step": 2}, "larger than the whole interval"),
        (1, {"tolerance": 0}, "tolerance must be positive"),
        (1, {"step": 0.1, "tolerance": 1e-3}, "exclude each other"),
        (1, {"integrator": "rk4"}, "integrator='rk4' is unknown"),
        (1, {"integrator": "averaged", "step": 0.1}, "this one has u' only"),
        (2, {"integrator": "sbdf2", "step": 0.1}, "this one has u''"),
        (1, {"integrator": "sbdf2"}, "Give step"),
        (0, {}, "no derivative in time"),
    ],
)
def test_bad_input(order, changes, message):
    _, system = lattice(order=order)
    arguments = {"initial": np.zeros(41), "times": [0, 1]} | changes
    with pytest.raises(ParasolError, match=message):
        integrate(system, **arguments)


def test_single_steps_meet_times_that_constant_ones_do_not():
    system, _, _, options = damped_wave()
    x = np.linspace(0, 1, 41)
    times = np.array([0.0, 0.37, 0.5, 1.7072, 2.0])
    fine = integrate(system, np.sin(np.pi * x), times, tolerance=1e-10, **options)
    found = [
        integrate(system, np.sin(np.pi * x), times, step=s, integrator="esdirk4", **options) for s in (0.25, 0.125)
    ]
    errors = [np.max(np.abs(f.values - fine.values)) for f in found]
    assert found[0].largest_step <= 0.25
    assert errors[0] < 2e-3
    assert np.log2(errors[0] / errors[1]) > 3.3, errors
