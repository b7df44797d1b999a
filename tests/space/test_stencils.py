import warnings

import numpy as np
import pytest

from parasol.checks import ParasolError, ParasolWarning
from parasol.space.geometry.primitives import Box
from parasol.space.kernels import IMQ, IQ, MQ, PHS, Gaussian, Matern, Wendland, monomials, n_monomials
from parasol.space.neighbours import Cloud
from parasol.space.nodes import scatter
from parasol.space.operators import StencilReport, differentiate
from parasol.space.stencils import Scheme, default_scheme, stencil_weights


def cloud(n, dimension, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (n, dimension))


def polynomial(points, exponent):
    return np.prod(points ** np.array(exponent), axis=1)


def polynomial_derivative(points, exponent, index):
    factor = np.ones(len(points))
    for axis, (e, a) in enumerate(zip(exponent, index, strict=True)):
        if a > e:
            return np.zeros(len(points))
        factor = factor * np.prod(np.arange(e - a + 1, e + 1)) * points[:, axis] ** (e - a)
    return factor


def test_three_points_on_a_line():
    line = np.array([[[0.0], [0.1], [-0.1]]])
    imq = stencil_weights(line, [(2,)], kernel=IMQ(1.0), degree=-1).weights[0, 0]
    np.testing.assert_allclose(imq, [-204.42383879, 102.21921391, 102.21921391], rtol=1e-9)
    assert imq.sum() == pytest.approx(0.014589, rel=1e-3)  # the plain kernel does not reproduce constants
    phs = stencil_weights(line, [(2,)], kernel=PHS(3), degree=2).weights[0, 0]
    np.testing.assert_allclose(phs, [-200, 100, 100], rtol=1e-11)


def test_plain_imq_misses_constants_on_a_lattice_by_the_known_amount():
    ticks = 0.25 * np.arange(-2, 3)
    block = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(1, 25, 2)
    weights = stencil_weights(block, [(2, 0), (0, 2)], kernel=IMQ(1.0), degree=-1).weights[0]
    assert weights.sum() == pytest.approx(-0.0219, abs=5e-5)


@pytest.mark.filterwarnings("ignore::parasol.checks.ParasolWarning")
@pytest.mark.parametrize(("dimension", "degree"), [(1, 6), (2, 0), (2, 2), (2, 5), (3, 2), (3, 4)])
@pytest.mark.parametrize(
    "kernel",
    [PHS(5), IMQ(150.0), MQ(150.0), IQ(150.0), Gaussian(200.0), Matern(300.0, 4.5), Wendland(80.0, 6)],
    ids=str,
)
def test_polynomials_are_reproduced(kernel, dimension, degree):
    if degree < kernel.minimal_degree:
        pytest.skip("needs polynomials")
    points = 0.01 * cloud(400, dimension)  # far from unit size: the scaling has to work
    derivatives = [i for i in monomials(dimension, 4) if sum(i) <= min(4, degree)]
    size = max(2 * n_monomials(dimension, degree), 2 * dimension + 1)
    found = differentiate(points, points[:20], derivatives, Scheme(kernel, degree, size))
    for index in derivatives:
        for exponent in monomials(dimension, degree):
            values = polynomial(points / 0.01, exponent)
            expected = polynomial_derivative(points[:20] / 0.01, exponent, index) * 100.0 ** sum(index)
            scale = np.abs(found[index].data).reshape(20, -1).sum(axis=1).max()
            assert np.max(np.abs(found[index] @ values - expected)) <= 1e-9 * scale


def test_a_variable_operator_is_a_combination_of_derivatives():
    x, y = cloud(600, 2).T
    points = np.column_stack([x, y])
    inner = np.flatnonzero(np.hypot(x, y) < 0.7)
    d = differentiate(points, points[inner], [(2, 0), (1, 1), (0, 3)], default_scheme(2, degree=6, order=3))
    u = np.exp(x) * np.sin(y)
    got = (1 + x[inner] ** 2) * (d[(2, 0)] @ u) + y[inner] * (d[(1, 1)] @ u) - d[(0, 3)] @ u
    expected = np.exp(x) * ((1 + x**2) * np.sin(y) + y * np.cos(y) + np.cos(y))
    np.testing.assert_allclose(got, expected[inner], atol=2e-3)


def test_interpolation_weights_hit_the_nodes():
    points = cloud(200, 2)
    d = differentiate(points, points[:30], [(0, 0)], default_scheme(2))
    u = np.cos(3 * points[:, 0])
    np.testing.assert_allclose(d[(0, 0)] @ u, u[:30], atol=1e-10)


def test_the_condition_estimate_follows_the_condition_number():
    offsets = cloud(30, 2).reshape(1, 30, 2) * 0.3
    exact, estimated = [], []
    for epsilon in (8.0, 4.0, 2.0, 1.0):
        scaled = offsets[0] / np.linalg.norm(offsets[0], axis=1).max()
        radius = np.linalg.norm(offsets[0], axis=1).max()
        squared = np.sum((scaled[:, None] - scaled[None]) ** 2, axis=-1)
        exact.append(np.linalg.cond(IMQ(epsilon).radial(squared, 0, radius)))
        estimated.append(stencil_weights(offsets, [(2, 0)], kernel=IMQ(epsilon), degree=-1).condition[0])
    ratio = np.array(estimated) / np.array(exact)
    assert np.all(ratio < 10)
    assert np.all(ratio > 1e-4)
    assert estimated == sorted(estimated)


def test_ill_conditioned_stencils_are_announced():
    points = cloud(400, 2) * 0.3
    with pytest.warns(ParasolWarning, match="ill-conditioned"):
        found = differentiate(points, points[:50], [(2, 0)], Scheme(IMQ(0.3), -1, 40))
    report = StencilReport.of(found.condition)
    assert report.n_ill_conditioned > 0
    assert report.worst_condition > 1e12


def test_nodes_on_a_line_are_refused_for_polynomials_of_the_plane():
    points = np.column_stack([np.linspace(0, 1, 60), np.zeros(60)])
    with pytest.raises(ParasolError, match="singular"):
        differentiate(points, points[:5], [(2, 0)], Scheme(PHS(3), 2, 12))


def test_periodic_neighbours():
    x = np.arange(40)[:, None] / 40
    d = differentiate(Cloud(x, Box(0.0, 1.0, periodic="x")), x, [(1,)], Scheme(PHS(7), 4, 9))
    wave = np.sin(2 * np.pi * x[:, 0])
    np.testing.assert_allclose(d[(1,)] @ wave, 2 * np.pi * np.cos(2 * np.pi * x[:, 0]), atol=1e-4)


def test_default_schemes_grow_with_degree_and_dimension():
    sizes = [default_scheme(2, degree=p).stencil_size for p in (2, 3, 4, 5, 6)]
    assert sizes == sorted(sizes)
    assert all(size >= 2 * n_monomials(2, p) for size, p in zip(sizes, (2, 3, 4, 5, 6), strict=True))
    assert default_scheme(3).stencil_size >= 2 * n_monomials(3, default_scheme(3).degree)
    assert default_scheme(2, kernel=IMQ(3.0)).degree == -1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"degree": 3, "stencil_size": 7},
            r"stencil_size=7 is too small for degree=3 in 2 dimensions \(10 monomials\)",
        ),
        ({"degree": -2}, "degree=-2"),
        ({"kernel": PHS(7), "degree": 1}, "too small for PHS"),
    ],
)
def test_impossible_schemes_are_refused(options, message):
    with pytest.raises(ParasolError, match=message):
        default_scheme(2, **options)


def test_more_neighbours_than_nodes():
    points = cloud(10, 2)
    with pytest.raises(ParasolError, match="10 nodes there are"):
        differentiate(points, points, [(2, 0)], default_scheme(2))


@pytest.mark.parametrize("kernel", [IMQ(1e3), Gaussian(100.0), Wendland(100.0)])
def test_a_kernel_narrower_than_the_spacing_is_said(kernel):
    """Such stencils are perfectly conditioned, and 90 % wrong."""
    points = scatter(Box((0, 0), (1, 1)), n_nodes=400).points
    with pytest.warns(ParasolWarning, match="too narrow"):
        differentiate(points, points[:50], [(2, 0)], Scheme(kernel, -1, 30))


def test_kernels_of_the_paper_are_wide_enough():
    points = scatter(Box((0, 0), (1, 1)), n_nodes=400).points
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        differentiate(points, points[:50], [(2, 0), (0, 2)], Scheme(IMQ(3.0), -1, 50))


def test_splines_need_polynomials_of_the_order_of_the_equation():
    with pytest.raises(ParasolError, match="degree=1 is too small for derivatives of order 2"):
        default_scheme(2, degree=1)
