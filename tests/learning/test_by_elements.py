"""A surrogate learned from elements, or from a problem for which the program chooses them: saved, asked, checked."""

from types import SimpleNamespace

import numpy as np
import pytest

import parasol as ps
from parasol.errors import SolveFailed
from parasol.learning import comparing
from parasol.learning.comparing import compare, own_errors, worst_parameter
from parasol.pde.by_elements import elements_for
from parasol.pde.discretisation import error_of
from parasol.pde.problem import Settings
from parasol.pde.steady import field_norms
from parasol.reduction.by_estimate import ByEstimate
from parasol.reduction.greedy import greedy
from parasol.space.interpolation import _in_cells

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


@pytest.mark.slow
def test_singular_corners_are_learned_by_elements():
    (h,) = ps.parameters(h=(0.5, 3.0))
    ell = ps.Box((-1, -1), (1, 1)) - ps.Box((0, -1), (1, 0))
    problem = ps.Problem(ell, ps.Eq(-ps.laplacian(u), 1), ps.Robin(h, 1, h * x))
    surrogate = ps.learn(problem, tolerance=2e-2, n_nodes=300)
    assert surrogate.solver.elements is not None
    assert surrogate.solver.n_nodes == pytest.approx(300, rel=0.1)
    assert surrogate.facts["learn"]["norm"] == "L2 over the domain"
    np.testing.assert_array_equal(surrogate.basis.weights, surrogate.solver.product)


@pytest.mark.parametrize("kind", ["block", "disc", "line"])
def test_values_between_nodes_are_those_of_the_elements(kind, tmp_path):
    """Stencils through the nodes of graded elements were off by several times the field itself."""
    a, b = ps.parameters(a=(0.1, 10.0, "log"), b=(0.1, 10.0, "log"))
    if kind == "line":
        v = ps.unknown("v", x)
        domain, equation = ps.Box(0, 1), ps.Eq(-a * v.diff(x, 2) + b * v, 1)
    elif kind == "disc":
        domain, equation = ps.Disc().regions(core=ps.Disc(radius=0.5)), None
    else:
        domain, equation = ps.Box((0, 0), (1, 1)).regions(one=(x < 0.5) & (y < 0.5), two=(x > 0.5) & (y > 0.5)), None
    if equation is None:
        k = ps.by_region(core=a, otherwise=b) if kind == "disc" else ps.by_region(one=a, two=b, otherwise=1)
        equation = ps.Eq(-ps.divergence(k * ps.gradient(u)), 1)
    problem = ps.Problem(domain, equation, ps.Dirichlet(0))
    model = ps.discretize(problem, ps.scatter(domain, n_nodes=40 if kind == "line" else 200), method="elements")
    basis = ps.pod(ps.solve_many(model, ps.sample(model, 12)), n_modes=8)
    surrogate = ps.fit(ps.reduce(model, basis, n_anchors=1), "polynomial", n_labels=200)
    surrogate = ps.load(ps.save(surrogate, tmp_path / "s.parasol"))
    rng = np.random.default_rng(1)
    places = rng.random((300, 2)) if kind == "block" else rng.random((300, 1))
    if kind == "disc":
        angle, radius = 2 * np.pi * rng.random(300), 0.48 + 0.04 * rng.random(300)  # beside the interface
        places = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    answer = surrogate([0.3, 5.0])
    assert np.allclose(surrogate.restricted(points=places)([0.3, 5.0]).values, answer.at(places).ravel())
    assert np.allclose(surrogate.restricted(nodes=[5, 3])([0.3, 5.0]).values, answer.values[[5, 3]])
    found, wanted = answer.at(places).ravel(), model.weights_at(places) @ answer.values
    error = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
    assert error < (2e-4 if kind == "disc" else 1e-10)  # beside curved edges polynomials of other coordinates


def test_a_large_cell_beside_many_small_ones_is_found():
    """Its centre is not among the nearest ones."""
    small = [[1 + 0.01 * i, 1.0] for i in range(40)]
    nodes = np.array(
        [[0.0, 0.0], [9.0, 0.0], [0.0, 9.0], *[p for q in small for p in (q, [q[0], 1.01], [q[0] + 0.01, 1.0])]]
    )
    cells = np.array([[0, 1, 2], *[[3 + 3 * i, 4 + 3 * i, 5 + 3 * i] for i in range(40)]])
    points = np.array([[1.2, 0.9], [1.201, 1.002]])
    found = _in_cells(nodes, cells, points, np.arange(len(nodes))).toarray()
    assert set(np.flatnonzero(found[0])) == {0, 1, 2}
    assert set(np.flatnonzero(found[1])) == {63, 64, 65}
    assert np.allclose(found @ nodes, points)


def block(n_nodes):
    """Four materials that meet in a point, which nodes are graded to."""
    names = ("sw", "se", "nw", "ne")
    low = zip(names, np.ndindex(2, 2), strict=True)
    quarters = {name: ps.Box((i / 2, j / 2), ((i + 1) / 2, (j + 1) / 2)) for name, (i, j) in low}
    materials = dict(zip(names, ps.parameters(**{name: (0.1, 10.0, "log") for name in names}), strict=True))
    domain = ps.Box((0, 0), (1, 1)).regions(**quarters)
    problem = ps.Problem(domain, ps.Eq(-ps.divergence(ps.by_region(**materials) * ps.gradient(u)), 1), ps.Dirichlet(0))
    return elements_for(problem, Settings(n_nodes=n_nodes))


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_volumes_of_nodes_integrate_squares(degree):
    """∫ x² over the unit square is 1/3, however the nodes crowd at a corner; a plain mean sees the corner alone."""
    domain = ps.Box((0, 0), (1, 1))
    corners = ps.scatter(domain, n_nodes=200, spacing=lambda p: 0.1 + np.linalg.norm(p, axis=1))
    problem = ps.Problem(domain, ps.Eq(-ps.laplacian(u), 1), ps.Dirichlet(0))
    model = ps.discretize(problem, corners, method="elements", degree=degree)
    weights, at = model.product, model.nodes.points[:, 0]
    assert np.all(weights > 0)
    assert np.sum(weights) == pytest.approx(1)
    assert weights @ at**2 == pytest.approx(1 / 3, rel=0.01)
    assert np.mean(at**2) < 0.28
    assert not np.any(greedy(model, n_modes=1).basis.weights != weights)


@pytest.mark.slow
def test_the_worst_parameter_of_the_box_is_found():
    """Errors are largest on a face of the box, where neither the corners nor a few random parameters look."""
    model = block(400)
    (mu,) = worst_parameter(model)
    largest = error_of(model, model.solve(mu).unknowns, mu)
    random = [error_of(model, model.solve(other).unknowns, other) for other in model.sample(40, rng=5)]
    assert largest > own_errors(model).error
    assert largest > max(random)


def test_another_attempt_has_the_same_choices_and_other_sealed_vectors():
    (a,) = ps.parameters(a=(0.5, 2.0))
    disc = ps.Problem(ps.Disc(), ps.Eq(-ps.laplacian(u) + a * u, 1), ps.Dirichlet(0))
    model = ps.discretize(disc, ps.scatter(disc.domain, n_nodes=100))
    one, same, other = (ByEstimate(model, weights=model.product, attempt=k).duals for k in (0, 0, 1))
    np.testing.assert_array_equal(one.certifying, same.certifying)
    np.testing.assert_array_equal(one.deciding, other.deciding)
    assert np.min(np.abs(one.certifying - other.certifying).max(axis=0)) > 0


def test_norms_are_those_over_the_domain():
    """||x|| over the unit square is 1/√3, and two discretisations are compared in that norm, however nodes crowd."""
    domain = ps.Box((0, 0), (1, 1))
    problem = ps.Problem(domain, ps.Eq(-ps.laplacian(u), 1), ps.Dirichlet(0))
    coarse, fine = (
        ps.discretize(
            problem,
            ps.scatter(domain, n_nodes=n, spacing=lambda p: 0.1 + np.linalg.norm(p, axis=1)),
            method="elements",
            degree=2,
        )
        for n in (60, 120)
    )
    assert field_norms(coarse, coarse.nodes.points[:, 0]) == pytest.approx([3**-0.5], rel=0.01)
    mu = coarse.vector()
    truth = fine.weights_at(coarse.nodes.points) @ fine.solve(mu).values
    squares = coarse.product @ np.stack([coarse.solve(mu).values - truth, truth], axis=1) ** 2
    assert compare(coarse, fine, mus=[mu]).error == pytest.approx(np.sqrt(squares[0] / squares[1]), rel=1e-6)


def test_the_worst_parameter_is_looked_for_around_the_worst_so_far(monkeypatch):
    """A steep peak on a face of the box; where nothing is solved or known, the search goes on."""
    asked = []

    def solve(mu, extrapolate):
        asked.append(mu)
        if len(asked) == 5:
            raise SolveFailed("no solution")
        return SimpleNamespace(unknowns=mu)

    def error(model, unknowns, mu):
        return np.inf if len(asked) == 7 else None if len(asked) == 9 else peak(mu)

    def peak(mu):
        return float(np.exp(-20 * ((mu[0] - 3.0) ** 2 + (mu[1] - 0.3) ** 2)))

    monkeypatch.setattr(comparing, "error_of", error)
    space = ps.pde.ParameterSpace(tuple(ps.parameters(a=(1.0, 3.0), b=(0.0, 1.0))))
    model = SimpleNamespace(parameters=space, vector=lambda: np.zeros(2), solve=solve)
    (mu,) = worst_parameter(model)
    known = [peak(mu) for i, mu in enumerate(asked) if i + 1 not in (5, 7, 9)]
    assert peak(mu) == max(known)
    assert peak(mu) > max(0.8, 1.1 * max(known[: len(asked) // 2 - 3]))
    assert worst_parameter(model, left=lambda: -1.0) == []
