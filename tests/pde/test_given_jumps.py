"""Given jumps of the unknown and of the flux at interfaces, against solutions made by hand on both sides."""

import numpy as np
import pytest
from sympy import Eq, cos, exp, sin, sqrt

import parasol as ps
from parasol.cache.content import content_hash
from parasol.errors import InputError, UnsuitableNodes
from parasol.expressions import as_formula, as_function
from parasol.fitting.fit import surrogate_without_map
from parasol.fitting.layouts import layout_of
from parasol.reduction.by_estimate import ByEstimate
from parasol.reduction.greedy import search
from parasol.runtime.layout import GivenJumps
from parasol.runtime.theta import Theta
from parasol.space.interpolation import weights_by_region

x, y, z = ps.coordinates("x y z")
u = ps.unknown("u", x, y)
w = ps.unknown("w", x)
SQUARE = ps.Box((-1, -1), (1, 1)).regions(left=x < 0)
DISCS = ps.Disc().regions(core=ps.Disc(radius=0.5))
HALVES = exp(x) * cos(y), sin(x) * exp(y) / 2 + 2 * x * y  # both harmonic
K = 5, 1


def glued(domain, name, normal, boundary=None, halves=HALVES):
    """A harmonic function in the named region and another one outside, with what jumps in between."""
    one, other = halves
    exact = ps.by_region(**{name: one, "otherwise": other})
    flux = ps.by_region(**{name: K[0], "otherwise": K[1]}) * ps.gradient(u)
    out = sum(n * (K[0] * one.diff(v) - K[1] * other.diff(v)) for n, v in zip(normal, (x, y), strict=True))
    jump = {(name, "otherwise"): ps.Jump(one - other, out)}
    boundary = ps.Dirichlet(exact) if boundary is None else boundary
    return ps.Problem(domain, Eq(-ps.divergence(flux), 0), boundary, interfaces=jump, exact=exact)


def robin():
    """Values left and right, conditions of the third kind on the sides where the interface ends."""
    _, up = ps.normal(x, y)
    exact = ps.by_region(left=HALVES[0], otherwise=HALVES[1])
    slope = ps.by_region(left=up * HALVES[0].diff(y), otherwise=up * HALVES[1].diff(y))
    return {"left": ps.Dirichlet(exact), "right": ps.Dirichlet(exact), "*": ps.Robin(1, 1, exact + slope)}


R = sqrt(x**2 + y**2)
CASES = {
    "discs": lambda: glued(DISCS, "core", (x / R, y / R)),
    "square": lambda: glued(SQUARE, "left", (1, 0)),
    "ends": lambda: glued(SQUARE, "left", (1, 0), robin()),
}


@pytest.mark.parametrize("pair", [("low", "otherwise"), ("otherwise", "low")])
@pytest.mark.parametrize("method", ["stencils", "elements"])
def test_two_layers_in_one_dimension(method, pair):
    """−k u'' = 1 with u = 0 at both ends; the jump is u on the left less u on the right, whoever is named first."""
    w = ps.unknown("w", x)
    low, high, g, q = ps.parameters(low=(0.5, 2.0), high=(0.5, 5.0), g=(-1.0, 1.0), q=(-1.0, 1.0))
    domain = ps.Box(0, 1).regions(low=ps.Box(0, 0.4))
    k = ps.by_region(low=low, otherwise=high)
    sign = 1 if pair[0] == "low" else -1
    interfaces = {pair: ps.Jump(sign * g * (1 + x), q)}
    problem = ps.Problem(domain, Eq(-ps.divergence(k * ps.gradient(w)), 1), ps.Dirichlet(0), interfaces=interfaces)
    assert problem.affine
    model = ps.discretize(problem, ps.scatter(domain, n_nodes=60), method=method)
    places = np.array([[0.39999], [0.40001], [0.2], [0.9]])
    for mu in ([0.7, 3.0, 0.6, -0.3], [2.0, 0.5, -1.0, 1.0]):
        solution = model.solve(mu)
        assert solution.values == pytest.approx(layers(mu, model.nodes.points[:, 0]), abs=1e-11)
        assert solution.at(places) == pytest.approx(layers(mu, places[:, 0]), abs=1e-11)


def layers(mu, at, s=0.4):
    """u = −x²/2k + a x on the left, −(x² − 1)/2k + b (x − 1) on the right."""
    low, high, g, q = mu
    rows = np.array([[s, 1 - s], [low, -high]])
    a, b = np.linalg.solve(rows, [1.4 * g + s**2 / (2 * low) - (s**2 - 1) / (2 * high), q])
    return np.where(at < s + 1e-12, -(at**2) / (2 * low) + a * at, -(at**2 - 1) / (2 * high) + b * (at - 1))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    ("method", "sizes"), [pytest.param("stencils", (400, 1600), marks=pytest.mark.slow), ("elements", (60, 240))]
)
def test_in_the_plane_the_order_is_that_of_smooth_problems(name, method, sizes):
    problem = CASES[name]()
    places = ps.scatter(problem.domain, n_nodes=300, rng=5).interior
    alone = np.abs(problem.domain.divided.shapes[0].distance(places)) > 1e-6
    errors, between, counts = [], [], []
    for n_nodes in sizes:
        nodes = ps.scatter(problem.domain, n_nodes=n_nodes, rng=1)
        model = ps.discretize(problem, nodes, method=method)
        solution = model.solve()
        errors.append(solution.error)
        true = problem.evaluate(problem.exact_solutions.values(), places[alone], np.empty(0))
        between.append(np.linalg.norm(solution.at(places[alone]) - true) / np.linalg.norm(true))
        counts.append(model.n_nodes)
        assert 1 / 3 < solution.discretisation / solution.error < 3
    step = np.log(counts[1] / counts[0]) / 2
    assert np.log(errors[0] / errors[1]) / step > 3
    assert np.log(between[0] / between[1]) / step > 2.5
    assert errors[1] < 1e-5


def test_kinks_of_an_interface():
    """Around a square inclusion: where the sides meet, the node's row is a balance."""
    domain = ps.Box((-1, -1), (1, 1)).regions(core=ps.Box((-0.5, -0.5), (0.5, 0.5)))
    one, other = HALVES[0], HALVES[0] - 1  # the fluxes balance where k is the same
    exact = ps.by_region(core=one, otherwise=other)
    equation = Eq(-ps.divergence(ps.by_region(core=1, otherwise=1) * ps.gradient(u)), 0)
    interfaces = {("core", "otherwise"): ps.Jump(1)}
    problem = ps.Problem(domain, equation, ps.Dirichlet(exact), interfaces=interfaces, exact=exact)
    errors = [ps.discretize(problem, ps.scatter(domain, n_nodes=n)).solve().error for n in (400, 1600)]
    assert errors[1] < errors[0] / 4 < 2e-4
    assert ps.discretize(problem, ps.scatter(domain, n_nodes=200), method="elements").solve().error < 1e-5


@pytest.mark.slow
def test_a_shell_in_space():
    """As accurate as the same without a jump, which converges (test_interfaces)."""
    w, r = ps.unknown("w", x, y, z), sqrt(x**2 + y**2 + z**2)
    domain = ps.Ball((0, 0, 0), 1.0).regions(core=ps.Ball((0, 0, 0), 0.5))
    # constant inside, 1/r outside: the flux that comes out of the interface is 1/r² = 4
    equation = Eq(-ps.divergence(ps.by_region(core=10, otherwise=1) * ps.gradient(w)), 0)
    errors = []
    for inside in (2, 3):
        interfaces = {("otherwise", "core"): ps.Jump(2 - inside, 4)}
        exact = ps.by_region(core=inside + 0 * x, otherwise=1 / r)
        problem = ps.Problem(domain, equation, ps.Dirichlet(1), interfaces=interfaces, exact=exact)
        errors.append(ps.discretize(problem, ps.scatter(domain, n_nodes=1500)).solve().error)
    assert errors[1] < 1.1 * errors[0] < 0.05


@pytest.mark.parametrize("method", ["stencils", "elements"])
def test_a_surrogate_answers_on_both_sides(method, tmp_path):
    """Two layers on a line against their solution by hand; a jump of another sign would be off by all of it."""
    w = ps.unknown("w", x)
    low, high, g, q = ps.parameters(low=(0.5, 2.0), high=(0.5, 5.0), g=(-1.0, 1.0), q=(-1.0, 1.0))
    domain = ps.Box(0, 1).regions(low=ps.Box(0, 0.4))
    equation = Eq(-ps.divergence(ps.by_region(low=low, otherwise=high) * ps.gradient(w)), 1)
    interfaces = {("low", "otherwise"): ps.Jump(g * (1 + x), q)}
    problem = ps.Problem(domain, equation, ps.Dirichlet(0), interfaces=interfaces)
    model = ps.discretize(problem, ps.scatter(domain, n_nodes=60), method=method)
    growing = ByEstimate(model)
    surrogate = surrogate_without_map(growing.reduced(search(growing, aim=1e-9, most=8).basis))
    places = np.array([[0.39999], [0.40001], [0.4], [0.4 + 1e-11], [0.2], [0.9]])
    mus = np.array([[0.7, 3.0, 0.6, -0.3], [2.0, 0.5, -1.0, 1.0]])
    for known in (surrogate, ps.load(ps.save(surrogate, tmp_path / "s.parasol"))):
        found = known(mus).at(places)
        assert found == pytest.approx(np.array([layers(mu, places[:, 0]) for mu in mus]), abs=1e-7)
        assert known(mus[1]).at(places) == pytest.approx(found[1])


@pytest.mark.slow
def test_a_surrogate_has_the_jump_between_nodes_too(tmp_path):
    m, g = ps.parameters(m=(0.5, 5.0), g=(-1.0, 1.0))
    equation = Eq(-ps.divergence(ps.by_region(core=m, otherwise=1) * ps.gradient(u)), 1 + x)
    problem = ps.Problem(DISCS, equation, ps.Dirichlet(0), interfaces={("core", "otherwise"): ps.Jump(g * y)})
    surrogate = ps.learn(problem, 1e-3, recipe="polynomial")
    assert surrogate.facts["learn"]["met"]
    assert surrogate.facts["learn"]["discretisation_error"] < 1e-3
    loaded = ps.load(ps.save(surrogate, tmp_path / "s.parasol"))
    for mu in surrogate.solver.sample(5, rng=2):
        full = surrogate.solver.solve(mu)
        answer = loaded(mu)
        assert np.linalg.norm(answer.values - full.values) < 1e-3 * np.linalg.norm(full.values)
        assert answer.discretisation == pytest.approx(full.discretisation, rel=0.5)
        places = np.array([[0.0, 0.4999], [0.0, 0.5001], [0.1, 0.1], [-0.6, 0.3]])
        for found in (full.at(places), answer.at(places)):
            assert found[0] - found[1] == pytest.approx(0.5 * mu[1], abs=1e-3)
        assert answer.at(places) == pytest.approx(full.at(places), abs=2e-3)
    with pytest.raises(InputError, match="its side is not known"):
        loaded(mu).at([[0.5 * np.cos(0.3), 0.5 * np.sin(0.3) + 1e-9]])
    with pytest.raises(InputError, match="cannot answer between nodes"):
        loaded.restricted(points=[[0.1, 0.1]])
    assert np.max(ps.check(surrogate, n=3).errors) < 1e-3


def test_what_is_not_understood_is_refused():
    (m,) = ps.parameters(m=(0.5, 2.0))
    equation = Eq(-ps.divergence(ps.by_region(left=m, otherwise=1) * ps.gradient(u)), 1)

    def problem(jump, equation=equation, domain=SQUARE, **more):
        return ps.Problem(domain, equation, ps.Dirichlet(0), interfaces={("left", "otherwise"): jump}, **more)

    with pytest.raises(InputError, match="quantities of interest"):
        problem(ps.Jump(1), quantities={"mean": ps.Average()})
    with pytest.raises(InputError, match="do not separate"):
        problem(ps.Jump(exp(m * y**2)))
    with pytest.raises(InputError, match="contains an unknown"):
        problem(ps.Jump(u))
    with pytest.raises(InputError, match="nonlinear"):
        problem(ps.Jump(1), Eq(-ps.divergence(ps.by_region(left=m, otherwise=1) * ps.gradient(u)) + u**3, 1))
    with pytest.raises(InputError, match="contains normal_x"):
        problem(ps.Jump(ps.normal(x, y)[0]))
    t = ps.time()
    w = ps.unknown("w", x, y, t)
    heat = Eq(w.diff(t), ps.divergence(ps.by_region(left=m, otherwise=1) * ps.gradient(w, x, y), x, y))
    with pytest.raises(InputError, match="in time"):
        problem(ps.Jump(1), heat, initial=0, times=[0.0, 1.0])
    three = ps.Box((-1, -1), (1, 1)).regions(left=x < 0, above=y > 0)
    crossing = Eq(-ps.divergence(ps.by_region(left=m, above=2, otherwise=1) * ps.gradient(u)), 1)
    with pytest.raises(UnsuitableNodes, match="more than two regions meet at"):
        ps.discretize(problem(ps.Jump(1), crossing, three), ps.scatter(three, n_nodes=400))
    # a jump of 0 is none, and a source alone is what it was
    assert not problem(ps.Jump(0, 1)).interface_jumps
    plain, same = (
        ps.discretize(problem(j), ps.scatter(SQUARE, n_nodes=300)).solve([1.0]).values for j in (1, ps.Jump(0, 1))
    )
    assert np.array_equal(plain, same)
    assert len({content_hash(problem(j)) for j in (ps.Jump(1), ps.Jump(2), ps.Jump(1, 1))}) == 3


@pytest.mark.parametrize(
    "left",
    [-2 * w.diff(x, 2), w.diff(x, 2), (2 - x) * ps.divergence(ps.gradient(w)), -w.diff(x, 2) * (1 + w)],
    ids=["twice", "sign", "factor", "nonlinear"],
)
def test_a_source_needs_a_flux_that_is_written_out(left):
    """With −2 w'' = 0 and a source of 1 at 1/2 stencils had 1/4 there and elements 1/8; with −(2 − x) div −1/4."""
    domain = ps.Box(0, 1).regions(left=x < 0.5)
    with pytest.raises(InputError, match="or a factor stands before it"):
        ps.Problem(domain, Eq(left, 0), ps.Dirichlet(0), interfaces={("left", "otherwise"): 1})


@pytest.mark.parametrize("method", ["stencils", "elements"])
@pytest.mark.parametrize("left", [-w.diff(x, 2), -ps.divergence(ps.gradient(w))], ids=["plain", "divergence"])
def test_a_source_in_the_middle_of_a_line(left, method):
    domain = ps.Box(0, 1).regions(left=x < 0.5)
    problem = ps.Problem(domain, Eq(left, 0), ps.Dirichlet(0), interfaces={("left", "otherwise"): 1})
    model = ps.discretize(problem, ps.scatter(domain, n_nodes=60), method=method)
    assert np.allclose(model.solve().values, np.minimum(model.nodes.points, 1 - model.nodes.points)[:, 0] / 2)


def test_each_unknown_has_its_own_jump_in_its_own_region():
    a, b = ps.parameters(a=(0.0, 5.0), b=(0.0, 5.0))
    theta = Theta(tuple(as_formula(as_function(one, (a, b))) for one in (a, b)), (), 2)
    jumps = GivenJumps(theta, np.array([0, 1]), np.array([0, 1]), np.array([[1.0, 10.0], [100.0, 1000.0]]))
    found = jumps.seen(np.array([[2.0, 3.0]]), np.eye(2), np.array([0, 1]), 2)
    assert found.tolist() == [[[2.0, 0.0], [0.0, 3000.0]]]


def test_a_place_whose_side_is_not_known_is_refused():
    (g,) = ps.parameters(g=(-1.0, 1.0))
    jump = {("core", "otherwise"): ps.Jump(g)}
    problem = ps.Problem(DISCS, Eq(-ps.laplacian(u), 1), ps.Dirichlet(0), interfaces=jump)
    layout = layout_of(ps.discretize(problem, ps.scatter(DISCS, n_nodes=200), degree=2))
    near = 0.5 * np.array([[np.cos(0.3), np.sin(0.3)]])
    with pytest.raises(InputError, match="its side is not known"):
        weights_by_region(layout, near * (1 + 1e-9))
    weights, regions = weights_by_region(layout, np.concatenate([0.9 * near, 1.1 * near]))
    assert regions.tolist() == [0, 1]
    assert weights.sum(axis=1) == pytest.approx(1.0)
