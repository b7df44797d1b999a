"""A geometry file all the way to a solution."""

import pytest
from sympy import exp, sin

import parasol as ps

trimesh = pytest.importorskip("trimesh")
pytest.importorskip("igl")


@pytest.mark.slow
def test_laplace_in_a_torus_from_an_stl_file(tmp_path):
    path = tmp_path / "torus.stl"
    trimesh.creation.torus(1.0, 0.4, major_sections=48, minor_sections=24).export(path)
    x, y, z = ps.coordinates("x y z")
    u = ps.unknown("u", x, y, z)
    exact = sin(x) * exp(y) + z**2
    problem = ps.Problem(ps.Surface(path), ps.Eq(-ps.laplacian(u), -2), ps.Dirichlet(exact), exact=exact)
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=2000))
    assert model.solve().error < 1e-5
