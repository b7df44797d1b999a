"""Systems in which some unknowns have u'', others u', others no time derivative at all."""

import re
import warnings

import numpy as np
import pytest
from sympy import Eq, cos, diff, exp, sin, sympify

import parasol as ps
from lattice import system_of
from parasol.checks import ParasolError
from parasol.pde import transient
from parasol.pde.integrators import Rows

(x,) = ps.coordinates("x")
t = ps.time()
u, v, p = ps.unknowns("u v p", x, t)
LINE = ps.Box((0,), (1,))
U = (1 + x + x**2 / 2) * (2 + sin(2 * t))
V = (3 - x / 2 + x**2) * (1 + exp(-t))
P = (2 + x**2) * (2 + cos(t))


def thermoelastic(**changes):
    """A bar that heats itself: u'' in one equation, v' and u' in the other; values at one end, slopes at the other."""
    equations = [
        Eq(u.diff(t, 2), u.diff(x, 2) - v.diff(x) + diff(U, t, 2) - diff(U, x, 2) + diff(V, x)),
        Eq(v.diff(t), v.diff(x, 2) - u.diff(x, t) + diff(V, t) - diff(V, x, 2) + diff(U, x, t)),
    ]
    n = ps.normal(x)[0]
    options = {
        "boundary": {
            "left": [ps.Dirichlet(U), ps.Dirichlet(V)],
            "right": [ps.Neumann(n * diff(U, x)), ps.Robin(1, 1, n * diff(V, x) + V)],
        },
        "initial": {"u": (U.subs(t, 0), diff(U, t).subs(t, 0)), "v": V.subs(t, 0)},
        "times": [0.0, 0.5, 1.0],
        "exact": {"u": U, "v": V},
        "unknowns": (u, v),
    }
    return ps.Problem(LINE, equations, **(options | changes))


def worst_error(evolution):
    exact = np.array([evolution.model.exact(evolution.mu, s) for s in evolution.times])
    return np.max(np.abs(evolution.values - exact))


def test_second_and_first_order_together():
    model = ps.discretize(thermoelastic(), ps.scatter(LINE, n_nodes=24), degree=3)
    errors = [worst_error(model.solve(step=h)) for h in (0.1, 0.05)]
    assert np.log2(errors[0] / errors[1]) > 2.2, errors  # slopes given at an end move: little more than the stage order
    assert errors[1] < 3e-6
    found = model.solve(tolerance=1e-6)
    assert worst_error(found) < 1e-5
    assert found.error < 2e-6
    np.testing.assert_allclose(
        found.at(0.75).fields["v"], model.layout.fields(model.exact(found.mu, 0.75))["v"], atol=1e-5
    )


def test_second_order_with_an_algebraic_unknown():
    # p'' is nowhere: −p_xx + p³ = u + g, beside u'' = u_xx − p + f
    equations = [
        Eq(u.diff(t, 2), u.diff(x, 2) - p + diff(U, t, 2) - diff(U, x, 2) + P),
        Eq(p**3 - p.diff(x, 2), u + P**3 - diff(P, x, 2) - U),
    ]
    problem = ps.Problem(
        LINE,
        equations,
        [ps.Dirichlet(U), ps.Dirichlet(P)],
        initial={"u": (U.subs(t, 0), diff(U, t).subs(t, 0)), "p": P.subs(t, 0)},
        times=[0.0, 0.5, 1.0],
        exact={"u": U, "p": P},
        unknowns=(u, p),
    )
    model = ps.discretize(problem, ps.scatter(LINE, n_nodes=24), degree=3)
    assert worst_error(model.solve(tolerance=1e-6)) < 1e-5
    errors = [worst_error(model.solve(step=h)) for h in (0.05, 0.025)]
    assert 1.75 < np.log2(errors[0] / errors[1]) < 2.5, errors


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        (
            {"u": U.subs(t, 0), "v": 1},
            r"state of u has 1 part\(s\), an unknown of order 2 in time needs \(state, velocity\)",
        ),
        ({"u": (1, 0), "v": (1, 0)}, r"state of v has 2 part\(s\), an unknown of order 1 in time needs a state"),
        ({"u": (1, 0)}, "state of v is missing. Give initial=..., as a state"),
    ],
)
def test_a_velocity_is_for_unknowns_of_second_order_only(initial, message):
    with pytest.raises(ParasolError, match=message):
        thermoelastic(initial=initial)


@pytest.mark.parametrize("bent", [False, True], ids=["linear", "nonlinear constraint"])
def test_the_spectrum_of_a_mixture(monkeypatch, bent):
    # w'' + 3 w' + k w − 2 z = 0, z' + w' + 1.5 z + w = 0, with many numbers k; q = z + w is algebraic
    n, rng = 60, np.random.default_rng(0)
    a = 4 + rng.random(n)
    eye, zero = np.eye(n), np.zeros((n, n))
    stiffness = np.block([[np.diag(a), -2 * eye, zero], [eye, 1.5 * eye, zero], [eye, eye, -eye]])
    damping = np.block([[3 * eye, zero, zero], [eye, eye, zero], [zero, zero, zero]])
    mass = np.block([[eye, zero, zero], [zero, zero, zero], [zero, zero, zero]])
    system = system_of(stiffness, damping, mass)
    if bent:  # q + q³ = z + w, whose slope at rest is the same
        held = np.zeros_like(stiffness)
        held[2 * n :], stiffness[2 * n :] = stiffness[2 * n :], 0.0

        def cube(s):
            return np.concatenate([np.zeros(2 * n), s[2 * n :] ** 3])

        system = system_of(
            stiffness,
            damping,
            mass,
            nonlinear=lambda s, t: held @ s - cube(s),
            jacobian=lambda s, t: held - 3 * np.diag(np.concatenate([np.zeros(2 * n), s[2 * n :] ** 2])),
            full=True,
        )
    exact = np.concatenate(
        [np.linalg.eigvals([[0, 1, 0], [-k, -3, 2], [-1, -1, -1.5]]) for k in a]  # of (w, w', z)
    )
    for dense in (1000, 10):
        monkeypatch.setattr(transient, "_DENSE", dense)
        found = transient.spectrum(system)
        assert found.kind == ("dense" if dense > 10 else "arnoldi")
        assert abs(found.growth - np.max(exact.real)) < 1e-3
        assert abs(found.spectral_radius - np.max(np.abs(exact))) < 1e-2
    # every value, of the operator and of its inverse, is an eigenvalue
    rows = Rows.of(system)
    linear = system.stiffness + (system.jacobian(np.zeros(system.n), 0.0) if bent else 0.0)
    values, _ = transient._mixed(rows, system.matrix(linear), rows.transfer(np.zeros(system.n), 0.0))
    assert len(values) > 12
    assert np.max(np.min(np.abs(values[:, None] - exact), axis=1)) < 1e-2


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ((U, diff(U, t)), None),
        ((U + 1, diff(U, t)), "initial state violates .* waves as short as the spacing"),
        ((U, diff(U, t) + 1), "initial velocity violates .* waves as short as the spacing"),
        ((U, 0), "initial velocity violates"),
        ((U, diff(U, t) + x * (1 - x) ** 2), None),
    ],
)
def test_a_start_that_sets_off_short_waves_is_said(start, words):
    """Values and rates that differ from those of the boundary make kinks that travel: a wave takes 500 steps instead of 14."""
    initial = {"u": tuple(sympify(part).subs(t, 0) for part in start), "v": V.subs(t, 0)}
    model = ps.discretize(thermoelastic(initial=initial, times=[0.0, 1.0]), ps.scatter(LINE, n_nodes=40))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.solve(step=0.1)
    said = [str(w.message) for w in caught if "violates" in str(w.message)]
    assert len(said) == (words is not None)
    assert words is None or re.search(words, said[0])
