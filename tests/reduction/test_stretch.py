"""Constants in a larger norm: what they prove holds against dense matrices, and they prove the box of the catalogue."""

import numpy as np
import pytest

import parasol as ps
from parasol.reduction.reduced import prepare
from parasol.reduction.stretch import Stretch, nearly_normal, spectral_radius
from parasol.runtime.certificate import Certificate

N = 30


def family(seed, n_terms=3):
    """Matrices A_q with a dominant multiple of a common one, as of stencils, and θ of one anchor."""
    rng = np.random.default_rng(seed)
    base = np.eye(N) + 0.1 * rng.standard_normal((N, N))
    terms = [
        base @ np.diag(rng.uniform(0, 2, N)) + rng.choice([0.01, 0.3]) * rng.standard_normal((N, N))
        for _ in range(n_terms)
    ]
    return terms, rng.uniform(0.5, 2.0, n_terms), rng


def combined(theta, terms):
    return sum(t * a for t, a in zip(theta, terms, strict=True))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("fixed", [False, True])
def test_what_an_anchor_says_of_other_parameters_holds(seed, fixed):
    """|m| − x ≤ σ_min(A_j⁻¹ A(μ)) for centres and any s, and not by being far too small."""
    terms, there, rng = family(seed)
    changes = [np.linalg.solve(combined(there, terms), a) for a in terms]
    centres = np.array([np.trace(k) / N for k in changes])
    norms = np.array([np.linalg.norm(k - c * np.eye(N), 2) for k, c in zip(changes, centres, strict=True)])
    if fixed:  # the first coefficient is constant: its norm is not computed, and no multiple of A_j may need it
        norms[0] = centres[0] = 0.0
    known = Certificate(there[None], norms[None], np.ones((1, 1)), centres=centres[None])
    assert bool(known.multiples) != fixed
    thetas = there * 10.0 ** rng.uniform(-0.7, 0.7, (200, 1)) + 0.3 * rng.standard_normal((200, 3))
    if fixed:
        thetas[:, 0] = there[0]
    thetas = np.vstack([thetas, there + np.eye(3)[1] * np.linspace(-1, 3, 20)[:, None]])
    thetas = np.vstack([thetas, there + np.eye(3)[1] * 1e-3 * rng.standard_normal((5, 1))])
    middle, part = known.changes(thetas)
    lower = np.abs(middle[:, 0]) * (1 - part[:, 0])
    true = [np.linalg.svd(combined(t, changes), compute_uv=False)[-1] for t in thetas]
    assert np.all(lower <= np.array(true) * (1 + 1e-9))
    assert np.any(lower > 0.3 * np.array(true))
    found = known.constants(thetas)
    assert np.allclose(found.sigma[found.rigorous], lower[found.rigorous])


def test_a_change_along_a_centre_is_tight_and_a_common_factor_costs_nothing():
    """K = diag(0 … 2) has the centre 1: σ_min(1 + δK) = 1 for δ > 0, and so it is proven; without the centre, nothing at δ = 1/2."""
    known = Certificate(np.array([[1.0, 1.0]]), np.array([[0.0, 1.0]]), np.ones((1, 1)), centres=np.array([[0.0, 1.0]]))
    middle, part = known.changes(np.array([[1.0, 1.5], [1.0, 5.0], [1.0, 0.7]]))
    assert np.allclose(middle[:, 0] * (1 - part[:, 0]), [1.0, 1.0, 0.4])
    both = Certificate(np.array([[1.0, 2.0]]), np.array([[1.0, 3.0]]), np.ones((1, 1)), centres=np.zeros((1, 2)))
    middle, part = both.changes(np.array([[7.0, 14.0], [0.1, 0.2]]))  # seven times, and a tenth of, the anchor's matrix
    assert np.allclose(middle[:, 0], [7.0, 0.1])
    assert np.allclose(part, 0.0)


def test_an_operator_with_one_term_has_a_norm_of_zero_about_its_centre():
    """A(μ) = θ A: K = 1/θ_j exactly, and leaving the term out because its norm is zero would call σ = 1 proven."""
    known = Certificate(np.array([[2.0]]), np.zeros((1, 1)), np.ones((1, 1)), centres=np.array([[0.5]]))
    assert np.allclose(known.constants(np.array([[0.5], [8.0]])).sigma, [0.25, 4.0])


@pytest.mark.parametrize("seed", range(5))
def test_the_larger_norm_counts_for_what_the_change_of_the_matrix_does(seed):
    """‖e‖ ≤ (plain ‖ρ‖ + (1 − plain) ‖Sρ‖) / σ for the ρ that is worst: large where S is, and mapped to where it is not."""
    rng = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(rng.standard_normal((N, N)))
    stretch = Stretch(basis[:, :1], np.array([50.0]))
    change = 40.0 * np.outer(basis[:, 1], basis[:, 0])  # ‖K‖ = 40, and 0.8 in the larger norm
    larger = stretch(np.eye(N))
    norm = np.linalg.norm(larger @ change @ np.linalg.inv(larger), 2)
    assert norm == pytest.approx(0.8)
    known = Certificate(np.array([[0.0]]), np.array([[norm]]), np.ones((1, 1)), own=np.array([0]))
    theta = np.linspace(-1, 1, 9)[:, None]
    found = known.constants(theta)
    assert np.all(found.rigorous)
    tight = []
    for delta, sigma, plain in zip(theta[:, 0], found.sigma, found.plain, strict=True):
        for weighted in (basis[:, 0], basis[:, 1], rng.standard_normal(N)):
            error = np.linalg.norm(np.linalg.solve(np.eye(N) + delta * change, weighted))
            bound = (plain * np.linalg.norm(weighted) + (1 - plain) * np.linalg.norm(stretch(weighted))) / sigma
            assert error <= bound * (1 + 1e-12)
            tight.append(error / bound)
            if delta and weighted is basis[:, 0]:
                assert error > np.linalg.norm(weighted) / sigma  # in the small norm alone it would be false
    assert max(tight) > 0.5
    other = Certificate(np.array([[0.0]]), np.array([[norm]]), np.ones((1, 1)), own=np.array([-1]))
    assert not np.any(other.constants(theta).plain)  # of a preconditioner that is not the anchor's all counts


def test_the_norm_is_made_of_the_directions_in_which_a_map_is_far_from_normal():
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(rng.standard_normal((200, 200)))
    change = np.diag(rng.uniform(0, 1, 200)) + 300 * basis[:, :3] @ basis[:, 3:6].T
    free = np.ones(200)
    radius = spectral_radius(lambda x: change @ x, rng.standard_normal(200))
    stretch = nearly_normal([(lambda x: change @ x, lambda x: change.T @ x)], free)
    assert stretch is not None
    assert np.all(stretch.factors >= 1)
    dense = stretch(np.eye(200))
    after = np.linalg.norm(dense @ change @ np.linalg.inv(dense), 2)
    assert np.linalg.norm(change, 2) > 290
    assert after < 4 * radius
    symmetric = np.diag(rng.uniform(0, 1, 200))
    assert nearly_normal([(lambda x: symmetric @ x, lambda x: symmetric @ x)], free) is None


MOST = {"helmholtz": 3, "cooled-pipe": 3, "reaction-layer": 3, "periodic-channel": 3, "graded-material": 10}


@pytest.mark.slow
@pytest.mark.parametrize("name", MOST)
def test_the_box_is_proven_and_bounds_are_near_the_errors(name):
    problem = ps.load_problem(name)
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=200 if name == "reaction-layer" else 250))
    basis = ps.pod(ps.solve_many(model, ps.sample(model, 12)), n_modes=2 if name == "graded-material" else 3)
    prepared = prepare(model)
    assert prepared.covered.proven == 1
    assert prepared.covered.n_factorizations <= 20
    covered = prepared.covered
    for j, place in enumerate(
        covered.anchors
    ):  # an anchor whose inverse is there is seen through it: the bound is sharpest
        own = [k for k, mu in enumerate(covered.preconditioners) if np.array_equal(mu, prepared.candidates[place])]
        assert not own or np.flatnonzero(covered.certificate.sigmas[j]).tolist() == own
    reduced = ps.reduce(model, basis)
    truth = ps.solve_many(model, ps.sample(model, 30, design="random", rng=5))
    answers = reduced.solve(truth.mus)
    error = np.linalg.norm(truth.solutions - answers.values, axis=1)
    assert np.all(answers.bounds.rigorous)
    assert np.all(answers.bounds.values >= error)
    assert np.median(answers.bounds.values / error) <= MOST[name]


def test_a_constant_operator_has_its_constant_for_one_factorisation():
    x, y = ps.coordinates("x y")
    u, (s,) = ps.unknown("u", x, y), ps.parameters(s=(0.2, 0.8))
    problem = ps.Problem(ps.Box((0, 0), (1, 1)), ps.Eq(-ps.laplacian(u), s * x + s**2 * y), ps.Dirichlet(0))
    covered = prepare(ps.discretize(problem, ps.scatter(problem.domain, n_nodes=150))).covered
    assert (covered.n_factorizations, covered.proven, covered.stretch) == (1, 1.0, None)
