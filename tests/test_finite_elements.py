import numpy as np
import pytest
from scipy.special import jn_zeros
from skfem import Basis, ElementTriP2, MeshTri2
from skfem.models.poisson import laplace, mass

import finite_elements as fe


def exact(x, y):
    return np.sin(3 * x) * np.cos(2 * y)


def points_inside(n):
    rng = np.random.default_rng(5)
    theta = rng.uniform(0, 2 * np.pi, n)
    return (fe.flower(theta) * np.sqrt(rng.uniform(0, 1, n)))[:, None] * np.column_stack([np.cos(theta), np.sin(theta)])


def points_on_boundary(n):
    theta = np.linspace(-4, 4, n)
    return fe.flower(theta)[:, None] * np.column_stack([np.cos(theta), np.sin(theta)])


@pytest.fixture(scope="module")
def meshes():
    return [fe.star_mesh(fe.flower, n) for n in (6, 10, 15)]


@pytest.mark.parametrize("order", [2, 3, 4])
def test_mean_error_falls_with_at_least_one_order_more_than_the_degree(meshes, order):
    a, k = 0.927, 1.697
    points = points_inside(4000)
    errors = []
    for mesh in meshes:
        u = fe.solve_helmholtz(a, k, mesh, order, source=lambda x, y: (9 + 4 * a - k) * exact(x, y), boundary=exact)
        errors.append(np.sqrt(np.mean((u.evaluate(points) - exact(*points.T)) ** 2)))
    slope = -np.polyfit(np.log([6, 10, 15]), np.log(errors), 1)[0]
    assert slope > order + 1 - 0.3
    # degrees 3 and 4 fall faster, 4.2 and 5.5: much of their error lies in the boundary triangles, of area O(h)
    assert order > 2 or slope < order + 1 + 0.3


@pytest.mark.parametrize(("a", "eigenvalue"), [(1.0, 10.28554), (0.1, 4.81097)])
def test_lowest_eigenvalue_of_the_flower(meshes, a, eigenvalue):
    # 10.285537 also by the method of fundamental solutions (200 sources, tension 7e-7)
    assert fe.lowest_eigenvalue(a, meshes[1], 4) == pytest.approx(eigenvalue, abs=1e-4)
    assert fe.lowest_eigenvalue(a, meshes[2]) == pytest.approx(eigenvalue, rel=2e-4)


def test_lowest_eigenvalue_of_the_disc_is_a_bessel_zero_squared():
    disc = fe.star_mesh(lambda theta: np.ones_like(theta), 6)
    assert fe.lowest_eigenvalue(1.0, disc, 4) == pytest.approx(jn_zeros(0, 1)[0] ** 2, rel=1e-7)


def test_flower_solution_is_that_of_fundamental_solutions(meshes):
    # a polynomial particular solution and 800 sources outside the flower, boundary values met to 4e-15
    points = np.array([[0, 0], [0.4, 0.3], [-0.3, 0.5], [0.2, -0.6]])
    values = [-0.00566113, 0.22748283, -0.21569898, 0.03754848]
    np.testing.assert_allclose(fe.solve_helmholtz(0.927, 1.697, meshes[2], 4).evaluate(points), values, atol=5e-7)


def test_degree_two_is_the_isoparametric_element_of_scikit_fem(meshes):
    space = fe.solve_helmholtz(1.0, 0.0, meshes[0]).space
    basis = Basis(MeshTri2(space.nodes.T.copy(), meshes[0].triangles.T.copy()), ElementTriP2(), intorder=6)
    np.testing.assert_allclose(basis.doflocs.T, space.nodes, atol=1e-14)
    np.testing.assert_allclose((space.xx + space.yy).toarray(), laplace.assemble(basis).toarray(), atol=1e-12)
    np.testing.assert_allclose(space.mass.toarray(), mass.assemble(basis).toarray(), atol=1e-14)


def test_evaluation_meets_nodes_and_boundary(meshes):
    for order in (2, 4):
        u = fe.solve_helmholtz(0.1, 2.0, meshes[0], order)
        np.testing.assert_allclose(u.evaluate(points_on_boundary(2000)), 0, atol=1e-6)
        corners = u.nodes[: len(meshes[0].vertices)]
        np.testing.assert_allclose(u.evaluate(corners), u.values[: len(corners)], atol=1e-12)
    with pytest.raises(ValueError, match="2 of 3 points lie outside"):
        u.evaluate([[0.0, 0.0], [0.0, 0.75], [3.0, 0.0]])


def test_meshes_have_the_counts_asked_for_and_good_triangles():
    for wanted in (1000, 2000):
        mesh = fe.star_mesh(fe.flower, fe.rings_for(wanted))
        assert abs(mesh.n_quadratic / wanted - 1) < 0.06
        assert mesh.quality.min() > 0.7
        assert mesh.quality.mean() > 0.95
    assert mesh.n_quadratic == len(fe.solve_helmholtz(1.0, 1.0, mesh).values)


def test_refinement_stays_on_the_curve_and_lowers_the_error(meshes):
    coarse = fe.solve_helmholtz(0.1, 2.0, meshes[0], 4)
    marked = np.flatnonzero(coarse.surplus() > 0.1 * coarse.surplus().max())
    finer = fe.refined(meshes[0], marked)
    rim = finer.vertices[-len(finer.angles) :]
    np.testing.assert_allclose(np.hypot(*rim.T), fe.flower(np.arctan2(rim[:, 1], rim[:, 0])), rtol=1e-12)
    points = points_inside(1000)
    truth = fe.solve_helmholtz(0.1, 2.0, meshes[2], 4).evaluate(points)
    before, after = (
        np.linalg.norm(fe.solve_helmholtz(0.1, 2.0, mesh, 4).evaluate(points) - truth) for mesh in (meshes[0], finer)
    )
    assert after < 0.3 * before
