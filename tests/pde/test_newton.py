import numpy as np
import pytest
from scipy.optimize import brentq

from lattice import lattice
from parasol.checks import ParasolError
from parasol.pde.newton import newton, solve_steady_nonlinear, start_state

FOLD = 3.513830719


def bratu(mu, n=101):
    """−u'' = λ exp(u), u = 0 at both ends: two solutions below the fold, none above."""

    def force(u):
        return -mu[0] * np.exp(u)

    return lattice(n, order=0, nonlinear=force, slope=force)[1]


def bratu_exact(lam, x):
    """u = −2 log(cosh(θ (x − ½)) / cosh(θ/2)), λ = 2 (θ/cosh(θ/2))², the lower branch."""
    theta = brentq(lambda s: 2 * (s / np.cosh(s / 2)) ** 2 - lam, 0.0, 2.3994)
    return -2 * np.log(np.cosh(theta * (x - 0.5)) / np.cosh(theta / 2))


def interior_layer(mu, n=201):
    """mu² u'' = u³ − u from −1 to 1: zero is a state from which Newton does not find the thin layers."""
    return lattice(
        n,
        order=0,
        diffusion=mu[0] ** 2,
        nonlinear=lambda u: u**3 - u,
        slope=lambda u: 3 * u**2 - 1,
        boundary=lambda t: (-1.0, 1.0),
    )[1]


def test_newton_converges_quadratically():
    found = newton(bratu([3.0]), np.zeros(101), tolerance=1e-13)
    assert found.converged
    sizes = np.array(found.history)
    sizes = sizes[(sizes < 0.3) & (sizes > 1e-13)]
    orders = np.log(sizes[2:] / sizes[1:-1]) / np.log(sizes[1:-1] / sizes[:-2])
    assert len(orders) >= 1
    assert orders[-1] > 1.7


def test_bratu_agrees_with_its_formula_to_second_order():
    errors = []
    for n in (21, 41, 81):
        x = np.linspace(0, 1, n)
        errors.append(np.max(np.abs(newton(bratu([2.0], n), np.zeros(n)).values - bratu_exact(2.0, x))))
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(slopes, 2, atol=0.1)


def test_the_answer_is_better_than_the_tolerance_asks():
    loose, tight = (newton(bratu([2.0]), np.zeros(101), tolerance=t).values for t in (1e-8, 1e-14))
    assert np.max(np.abs(loose - tight)) < 1e-9


def test_a_linear_problem_takes_one_step():
    x, system = lattice(order=0, source=lambda x, t: np.ones_like(x))
    found = newton(system, np.zeros(len(x)))
    assert found.converged
    assert found.n_steps == 1
    np.testing.assert_allclose(found.values, x * (1 - x) / 2, atol=1e-12)


def test_scaling_rows_changes_nothing():
    system = bratu([3.0])
    weights = 10.0 ** np.linspace(-6, 6, system.n)
    row = np.repeat(np.arange(system.n), np.diff(system.pattern.indptr))
    scaled = type(system)(
        system.pattern,
        weights[row] * system.stiffness,
        system.damping,
        system.mass,
        lambda t: weights * system.load(t),
        lambda u, t: weights * system.nonlinear(u, t),
        lambda u, t: weights[row] * system.jacobian(u, t),
    )
    plain, other = newton(system, np.zeros(101)), newton(scaled, np.zeros(101))
    assert other.n_steps == plain.n_steps
    np.testing.assert_allclose(other.values, plain.values, atol=1e-10)


def test_damping_saves_what_full_steps_lose():
    def build(k):
        return lattice(
            101,
            order=0,
            diffusion=1e-3,
            nonlinear=lambda u: np.arctan(k * (u - 0.3)),
            slope=lambda u: k / (1 + (k * (u - 0.3)) ** 2),
            boundary=lambda t: (1.0, -1.0),
        )[1]

    system = build(50.0)
    u = start_state(system)
    for _ in range(30):  # the same without damping wanders for ever
        u = u - system.factorize(system.stiffness + system.jacobian(u, 0.0)).solve(system.residual(u))
    assert np.linalg.norm(system.residual(u)) > 1e-3
    found = newton(system, start_state(system))
    assert found.converged
    assert np.linalg.norm(system.residual(found.values)) < 1e-8


@pytest.mark.parametrize(("guess", "reason"), [(800.0, "not finite"), (10.0, "direction|not enough")])
def test_failures_have_a_reason(guess, reason):
    found = newton(bratu([1.0]), np.full(101, guess))
    assert not found.converged
    assert any(part in found.reason for part in reason.split("|"))


def test_a_singular_matrix_is_a_failure_with_a_reason():
    _, system = lattice(order=0, ends="slope", source=lambda x, t: np.ones_like(x))
    found = newton(system, np.zeros(41))
    assert not found.converged
    assert "singular" in found.reason


def test_continuation_reaches_what_newton_does_not():
    hard = np.array([0.02])
    assert not newton(interior_layer(hard), start_state(interior_layer(hard))).converged
    zero = start_state(interior_layer(hard))
    found = solve_steady_nonlinear(interior_layer, hard, guess=zero, box=np.array([[0.02], [1.0]]))
    assert found.converged
    assert found.start == "continuation from mu=0.51, there Newton from the guess"
    x = np.linspace(0, 1, 201)
    assert np.max(np.abs(found.values - np.tanh((x - 0.5) / (0.02 * np.sqrt(2))))) < 0.02


def test_the_fold_is_seen_and_reported():
    with pytest.raises(ParasolError, match=r"lambda=3\.6.*stopped at lambda=3\.51.*is there a fold\?"):
        solve_steady_nonlinear(bratu, np.array([3.6]), box=np.array([[1.0], [4.0]]), names=["lambda"])
    found = solve_steady_nonlinear(bratu, np.array([FOLD - 0.002]), box=np.array([[1.0], [4.0]]))
    assert found.converged


def test_without_a_box_the_failure_says_from_where_and_after_how_many_steps():
    with pytest.raises(ParasolError, match=r"mu=3\.6: Newton from zero stopped after \d+ steps"):
        solve_steady_nonlinear(bratu, np.array([3.6]))
    with pytest.raises(ParasolError, match="guess has shape"):
        newton(bratu([1.0]), np.zeros(3))
