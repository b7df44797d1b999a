"""A surrogate learned from elements, or from a problem for which the program chooses them: saved, asked, checked."""

import numpy as np
import pytest

import parasol as ps

x, y = ps.coordinates("x y")
u = ps.unknown("u", x, y)


def test_a_surrogate_of_elements_is_certified_saved_and_checked(tmp_path):
    a, h = ps.parameters(a=(0.5, 2.0), h=(0.5, 3.0))
    domain = ps.Box((0, 0), (1, 1)).named(right=x > 0.999)
    problem = ps.Problem(
        domain,
        ps.Eq(-u.diff(x, 2) - a * u.diff(y, 2), 10 * y),
        {"right": ps.Robin(h, 1, h), "*": ps.Neumann(0)},
        quantities={"mean": ps.Average(), "there": ps.PointValue((0.3, 0.4))},
    )
    model = ps.discretize(problem, ps.scatter(domain, n_nodes=60), method="elements")
    surrogate = ps.learn(model, tolerance=1e-3, proof=True)
    full, answer = model.solve([0.8, 1.1]), surrogate(a=0.8, h=1.1)
    error = np.linalg.norm(answer.values - full.values) / np.linalg.norm(full.values)
    assert answer.bound_kind == "proven"
    assert error <= answer.bound <= 1e-3
    assert answer.quantities["mean"] == pytest.approx(full.quantities["mean"], rel=1e-3)
    ps.save(surrogate, tmp_path / "box.parasol")
    loaded = ps.load(tmp_path / "box.parasol")
    np.testing.assert_array_equal(loaded(a=0.8, h=1.1).values, answer.values)
    places = np.random.default_rng(0).random((50, 2))
    np.testing.assert_allclose(loaded(a=0.8, h=1.1).at(places), full.at(places), rtol=1e-2)
    # made again from the file: triangles, not stencils on their nodes
    assert np.max(ps.check(loaded, problem=problem, n=5).errors) < 1e-3


def test_singular_corners_are_learned_by_elements():
    (h,) = ps.parameters(h=(0.5, 3.0))
    ell = ps.Box((-1, -1), (1, 1)) - ps.Box((0, -1), (1, 0))
    problem = ps.Problem(ell, ps.Eq(-ps.laplacian(u), 1), ps.Robin(h, 1, h * x))
    surrogate = ps.learn(problem, tolerance=2e-2, n_nodes=300)
    assert surrogate.solver.elements is not None
    assert surrogate.solver.n_nodes == pytest.approx(300, rel=0.1)
