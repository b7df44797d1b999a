import pickle

import numpy as np
import pytest
from scipy.interpolate import BarycentricInterpolator

from parasol.checks import ParasolError
from parasol.reduction.interpolation import Interpolation, interpolate

METHODS = ("qdeim", "greedy")
X = np.linspace(-1, 1, 300)


def gaussians(p):
    return np.exp(-(1 + 30 * p[:, :1]) * (X - (p[:, 1:] - 0.5)) ** 2)


def rational(p):
    return 1 / ((X - 1.5 - p[:, :1]) ** 2 + 0.05 + p[:, 1:])


def hyperbolas(p):
    return 1 / (1 + (0.01 + 10 * p[:, :1]) * (X + 1))


FAMILIES = {"gaussians": gaussians, "rational": rational, "hyperbolas": hyperbolas}


def draw(family, n=200, seed=0):
    return FAMILIES[family](np.random.default_rng(seed).random((n, 2)))


def errors(interpolation, vectors):
    rebuilt = interpolation.reconstruct(vectors[:, interpolation.points])
    return np.max(np.abs(vectors - rebuilt), axis=1) / np.max(np.abs(vectors), axis=1)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("tolerance", [1e-3, 1e-8, 1e-13])
def test_tolerance_is_met_where_trained_and_nearly_so_elsewhere(family, method, tolerance):
    trained = draw(family)
    found = interpolate(trained, tolerance=tolerance, method=method)
    assert found.error <= tolerance
    assert found.error == pytest.approx(errors(found, trained).max(), rel=1e-6, abs=1e-15)
    assert np.quantile(errors(found, draw(family, seed=1)), 0.9) <= 10 * tolerance
    assert len(set(found.points)) == found.n_points == found.modes.shape[1]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("method", METHODS)
def test_no_point_more_than_needed(family, method):
    trained = draw(family)
    found = interpolate(trained, tolerance=1e-6, method=method)
    fewer = interpolate(trained, n_points=found.n_points - 1, method=method)
    assert fewer.n_points == found.n_points - 1
    assert fewer.error > 1e-6


@pytest.mark.parametrize("family", FAMILIES)
def test_the_default_has_the_smallest_constant_and_mean_error(family):
    trained, unseen = draw(family), draw(family, seed=1)
    default = interpolate(trained, n_points=10)
    other = interpolate(trained, n_points=10, method="greedy")
    assert default.constant < other.constant
    assert errors(default, unseen).mean() < errors(other, unseen).mean()


@pytest.mark.parametrize("method", METHODS)
def test_interpolation_of_polynomials_is_that_of_lagrange(method):
    """In the span of polynomials there is one interpolant, whoever computes it."""
    rng = np.random.default_rng(3)
    found = interpolate(rng.standard_normal((20, 5)) @ np.vander(X, 5).T, method=method)
    assert found.n_points == 5
    values = rng.standard_normal(5)
    expected = BarycentricInterpolator(X[found.points], values)(X)
    assert np.allclose(found.reconstruct(values), expected, atol=1e-12 * found.constant)


def test_greedy_on_a_family_done_by_hand():
    """Relative to themselves both vectors are equally bad: the first is taken, then what it leaves of the second."""
    vectors = np.array([[1.0, 0.5, 0.0], [2.0, 2.0, 0.0]])
    found = interpolate(vectors, method="greedy", tolerance=0.0)
    # q1 = (1, ½, 0) at row 0; the other leaves (0, ½, 0)
    assert found.points.tolist() == [0, 1]
    assert np.allclose(found.modes.T, [[1, 0.5, 0], [0, 1, 0]])
    assert found.error == 0.0
    assert found.constant == 1.0


def test_the_constant_is_that_of_equidistant_parabolas():
    """Lagrange interpolation at −1, 0, 1 has the Lebesgue constant 5/4."""
    x = np.linspace(-1, 1, 401)
    parabola = Interpolation(np.vander(x, 3), np.array([0, 200, 400]), 0.0)
    assert parabola.constant == pytest.approx(1.25, abs=1e-12)


def test_coefficients_reconstruct_and_cardinal_agree_for_any_stack():
    found = interpolate(draw("gaussians"), n_points=12)
    values = draw("gaussians", 24, seed=2)[:, found.points].reshape(2, 3, 4, 12)
    assert found.coefficients(values).shape == (2, 3, 4, 12)
    assert found.reconstruct(values).shape == (2, 3, 4, 300)
    assert np.allclose(found.coefficients(values) @ found.modes.T, found.reconstruct(values), atol=1e-12)
    assert np.array_equal(found.reconstruct(values)[..., found.points], values)
    assert found.coefficients(values[0, 0, 0]).shape == (12,)
    with pytest.raises(ParasolError, match=r"expected \(\.\.\., 12\)"):
        found.reconstruct(np.zeros(11))


@pytest.mark.parametrize("method", METHODS)
def test_zero_one_and_dependent_vectors(method):
    zero = interpolate(np.zeros((3, 7)), method=method)
    assert (zero.n_points, zero.error, zero.constant) == (0, 0.0, 0.0)
    assert np.array_equal(zero.reconstruct(np.zeros((2, 0))), np.zeros((2, 7)))
    assert zero.coefficients(np.zeros((2, 0))).shape == (2, 0)
    one = interpolate([[0.0, -2.0, 1.0]], method=method)
    assert one.points.tolist() == [1]
    assert np.allclose(one.reconstruct([4.0]), [0.0, 4.0, -2.0])
    dependent = interpolate([[1.0, 2.0], [2.0, 4.0], [0.0, 0.0]], n_points=2, method=method)
    assert dependent.n_points == 1
    assert dependent.error < 1e-15


@pytest.mark.parametrize("method", METHODS)
def test_an_exhausted_rank_stops_and_says_what_was_reached(method):
    found = interpolate(draw("rational"), tolerance=0.0, method=method)
    assert found.n_points < 40
    assert 0 < found.error < 1e-13
    limited = interpolate(draw("rational"), tolerance=1e-10, n_points=4, method=method)
    assert limited.n_points == 4
    assert limited.error > 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_each_vector_counts_by_its_own_size_but_for_what_cancellation_left(method):
    vectors = draw("hyperbolas")
    sizes = 10.0 ** np.random.default_rng(0).uniform(-6, 6, (len(vectors), 1))
    plain, scaled = (
        interpolate(vectors, n_points=8, method=method),
        interpolate(sizes * vectors, n_points=8, method=method),
    )
    assert np.array_equal(plain.points, scaled.points)
    assert scaled.error == pytest.approx(plain.error, rel=1e-6)
    noise = 1e-17 * np.random.default_rng(1).standard_normal((50, 300))
    noisy = interpolate(np.vstack([vectors, noise]), tolerance=1e-8, method=method)
    assert noisy.error <= 1e-8
    assert abs(noisy.n_points - interpolate(vectors, tolerance=1e-8, method=method).n_points) <= 1


def test_a_pickled_interpolation_is_the_same():
    found = interpolate(draw("rational"), n_points=6)
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.reconstruct(np.arange(6.0)), found.reconstruct(np.arange(6.0)))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: interpolate([[1.0, np.nan]]), "1 entry of 2"),
        (lambda: interpolate(np.zeros((0, 3))), "at least one vector"),
        (lambda: interpolate([1.0, 2.0]), r"expected \(any, any\)"),
        (lambda: interpolate([[1.0]], method="pod"), "Use one of: qdeim, greedy"),
        (lambda: interpolate([[1.0]], tolerance=-1.0), "between 0 and 1"),
        (lambda: interpolate([[1.0]], tolerance=np.nan), "between 0 and 1"),
        (lambda: interpolate([[1.0]], n_points=0), "at least 1"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ParasolError, match=message):
        call()
