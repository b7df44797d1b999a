"""What happens in a moment: pulses and switches in time, however short beside the whole run."""

import warnings

import numpy as np
import pytest
from sympy import Abs, And, Eq, Heaviside, Max, Piecewise, cosh, exp, pi, sin, sqrt

import parasol as ps

x, t = *ps.coordinates("x"), ps.time()
u = ps.unknown("u", x, t)
LINE = ps.Box(0.0, 1.0)
NODES = ps.scatter(LINE, n_nodes=40)
(s,) = ps.parameters(s=(0.1, 0.9))
A = 0.3137


def pulses(w):
    """Functions of time with the integral 1 over (0, 1)."""
    return {
        "Gaussian": exp(-(((t - A) / w) ** 2)) / (w * sqrt(pi)),
        "sech": 1 / cosh((t - A) / w) ** 2 / (2 * w),
        "Lorentz": w / pi / ((t - A) ** 2 + w**2),
        "box": Piecewise((1 / w, And(t > A, t < A + w)), (0, True)),
        "box by a distance": Piecewise((1 / w, Abs(t - A) < w / 2), (0, True)),
        "box by Heaviside": (Heaviside(t - A) - Heaviside(t - A - w)) / w,
        "roof": Max(0, 1 - Abs(t - A) / w) / w,
        "at the start": exp(-t / w) / w,
        "at a parameter": exp(-(((t - s) / w) ** 2)) / (w * sqrt(pi)),
        "in another time": exp(-(((sqrt(t) - sqrt(A)) / w) ** 2)) / (2 * sqrt(A) * w * sqrt(pi)),
        "two": (exp(-(((t - A) / w) ** 2)) + exp(-(((t - 0.8) / w) ** 2))) / (2 * w * sqrt(pi)),
        "train": exp(-((sin(4 * pi * (t - A)) / w) ** 2)) * pi / w / sqrt(pi),
    }


@pytest.mark.parametrize("width", [1e-5, 1e-9])
@pytest.mark.parametrize("kind", pulses(1.0))
def test_a_pulse_of_any_width_adds_its_integral(kind, width):
    """u' − u''/5 = g with slopes that the start has: u = 1 + x + ∫ g."""
    problem = ps.Problem(
        LINE,
        Eq(u.diff(t) - u.diff(x, 2) / 5, pulses(width)[kind]),
        {"left": ps.Neumann(-1), "right": ps.Neumann(1)},
        initial=1 + x,
        times=[0, 0.5, 1] if kind == "Gaussian" else [0, 1],
    )
    found = ps.discretize(problem, NODES).solve()
    assert np.max(np.abs(found.values[-1] - 2 - NODES.points[:, 0])) < 1e-4
    assert found.n_steps < 400


@pytest.mark.parametrize("integrator", ["sbdf2", "averaged", "esdirk4"])
def test_constant_steps_that_miss_a_pulse_are_said(integrator):
    order = 2 if integrator == "averaged" else 1

    def solve(source, step):
        problem = ps.Problem(
            LINE,
            Eq(u.diff(t, order) - u.diff(x, 2) / 5, source),
            ps.Dirichlet(1 + x),
            initial=(1 + x, 0) if order == 2 else 1 + x,
            times=[0, 1],
        )
        return ps.discretize(problem, ps.scatter(LINE, n_nodes=40)).solve(step=step, integrator=integrator)

    for source in (pulses(5e-4)["Gaussian"], sin(2000 * t)):
        with pytest.warns(ps.ParasolWarning, match=r"data change near t=.* within one step of 0.01"):
            solve(source, 0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for source in (pulses(0.05)["Gaussian"], pulses(0.2)["box"], sin(20 * t), Heaviside(t - A)):
            solve(source, 0.01)


def heated(at, first, points):
    """u of u_t = u_xx from 0, with u = 1 on both ends from time `first` on."""
    k = np.arange(1, 200, 2) * np.pi
    return 1 - np.sum(4 / k * np.sin(k * points[:, None]) * np.exp(-(k**2) * (at - first)), axis=1)


@pytest.mark.parametrize("first", [0.0, 0.01])
@pytest.mark.parametrize("options", [{"tolerance": 1e-6}, {"step": 2e-3, "integrator": "esdirk4"}])
def test_steps_meet_the_moment_at_which_boundary_values_jump(first, options):
    switched = Piecewise((0, t <= first), (1, True))
    nodes = ps.scatter(LINE, n_nodes=60)
    problem = ps.Problem(
        LINE, Eq(u.diff(t), u.diff(x, 2)), ps.Dirichlet(switched), initial=0, times=[0, first + 0.05, first + 0.1]
    )
    found = ps.discretize(problem, nodes).solve(**options)
    for at, values in zip(found.times[1:], found.values[1:], strict=True):
        assert np.max(np.abs(values - heated(at, first, nodes.points[:, 0]))) < 3e-5


def test_a_jump_in_the_force_leaves_the_velocity_continuous():
    """u'' = f(t) everywhere, u = 1 + x + ∬ f; a damped second unknown beside it has u' only."""
    force = Piecewise((2, t < A), (-4, t < 0.7), (0, True))
    problem = ps.Problem(
        LINE,
        Eq(u.diff(t, 2) - u.diff(x, 2) / 5, force),
        {"left": ps.Neumann(-1), "right": ps.Neumann(1)},
        initial=(1 + x, 1),
        times=[0, A, 0.7, 1],
    )
    found = ps.discretize(problem, ps.scatter(LINE, n_nodes=40)).solve()
    place, speed, wanted = 0.0, 1.0, []
    for length, f in ((A, 2), (0.7 - A, -4), (0.3, 0)):
        place, speed = place + speed * length + f * length**2 / 2, speed + f * length
        wanted.append(place)
    moved = found.values[1:] - 1 - found.model.nodes.points[:, 0]
    assert np.max(np.abs(moved - np.array(wanted)[:, None])) < 1e-8
    assert found.n_steps < 60


@pytest.mark.parametrize(
    ("kind", "term", "last"),
    [("Gaussian", u, 2 / np.e), ("box", u, 2 / np.e), ("Gaussian", u * (1 - u), 1 / (1 + np.e))],
)
def test_coefficients_with_a_pulse_are_seen(kind, term, last):
    """u' = −g(t) u with ∫ g = 1 in 1e-6: u falls to 1/e; and a logistic term, whose u/(1 − u) does so."""
    equation = Eq(u.diff(t) - u.diff(x, 2) / 5, -pulses(1e-6)[kind] * term)
    problem = ps.Problem(LINE, equation, ps.Neumann(0), initial=2 if term == u else 0.5, times=[0, 1])
    found = ps.discretize(problem, ps.scatter(LINE, n_nodes=40)).solve().values[-1]
    assert np.max(np.abs(found - last)) < 1e-4
