"""Materials by region: exact solutions, rates, the balance of fluxes at interfaces."""

import numpy as np
import pytest
import sympy
from sympy import cos, cosh, log, pi, sinh, sqrt

import parasol as ps
from parasol.learning.rebuilding import rebuilt, record_of
from parasol.runtime.provenance import NodesRecord

x, y, z = ps.coordinates("x y z")


def error(problem, nodes, mu=None, **options):
    solution = ps.discretize(problem, nodes, **options).solve(mu)
    return solution.error


def test_two_layers_on_a_line_are_exact():
    (x,) = ps.coordinates("x")
    u = ps.unknown("u", x)
    domain = ps.Box(0.0, 1.0).regions(left=x < 0.5)
    k = ps.by_region(left=0.1, otherwise=1)
    problem = ps.Problem(domain, ps.Eq(-ps.divergence(k * ps.gradient(u)), 1), ps.Dirichlet(0))
    solution = ps.discretize(problem, ps.scatter(domain, n_nodes=100)).solve()
    assert solution.at(np.array([[0.5]]))[0] == pytest.approx(5 / 22, abs=1e-8)


def test_two_layers_on_a_ring():
    """1 + A cosh(s) in one, 2 + B cosh(s/√3) in the other, with s from the middle of each; it joins across the seam."""
    (x,) = ps.coordinates("x")
    u = ps.unknown("u", x)
    domain = ps.Box(0.0, 1.0, periodic="x").regions(low=ps.Box(0.2, 0.55))
    conditions = [
        [np.cosh(0.175), -np.cosh(0.325 / 3**0.5)],  # u, and k u' outward on both sides
        [np.sinh(0.175), 3**0.5 * np.sinh(0.325 / 3**0.5)],
    ]
    a, b = np.linalg.solve(conditions, [1, 0])
    k, source = ps.by_region(low=1, otherwise=3), ps.by_region(low=1, otherwise=2)
    nodes = ps.scatter(domain, n_nodes=80)
    solution = ps.discretize(ps.Problem(domain, ps.Eq(-ps.divergence(k * ps.gradient(u)) + u, source)), nodes).solve()
    s = nodes.points[:, 0]
    low, rest = 1 + a * np.cosh(s - 0.375), 2 + b * np.cosh(((s - 0.375) % 1 - 0.5) / 3**0.5)
    assert np.allclose(solution.values, np.where((s > 0.2 - 1e-9) & (s < 0.55 + 1e-9), low, rest), atol=1e-9)


def test_three_layers_on_a_line():
    (x,) = ps.coordinates("x")
    u = ps.unknown("u", x)
    domain = ps.Box(0.0, 1.0).regions(a=x < 0.3, b=x < 0.6)
    k1, k2, k3 = 1.0, 50.0, 0.02
    # u' k = q, u(0) = 0, u(1) = 1
    q = 1 / (0.3 / k1 + 0.3 / k2 + 0.4 / k3)
    exact = ps.by_region(a=q * x / k1, b=q * (0.3 / k1 + (x - 0.3) / k2), otherwise=1 - q * (1 - x) / k3)
    k = ps.by_region(a=k1, b=k2, otherwise=k3)
    problem = ps.Problem(domain, ps.Eq(-ps.divergence(k * ps.gradient(u)), 0), ps.Dirichlet(x), exact=exact)
    assert error(problem, ps.scatter(domain, n_nodes=200)) < 1e-9


def disc(core: float, shell: float):
    """r^3 cos 3φ inside, what matches it outside: u and k u_r are continuous at r = 1/2."""
    u = ps.unknown("u", x, y)
    a = sympy.Rational(1, 2)
    third, square = x**3 - 3 * x * y**2, x**2 + y**2
    ratio = sympy.nsimplify(core / shell)
    plus, minus = (1 + ratio) / 2, (1 - ratio) / 2 * a**6
    outside = third * (plus + minus / square**3)
    domain = ps.Disc().regions(core=ps.Disc(radius=0.5))
    k = ps.by_region(core=core, otherwise=shell)
    exact = ps.by_region(core=third, otherwise=outside)
    return ps.Problem(domain, ps.Eq(-ps.divergence(k * ps.gradient(u)), 0), ps.Dirichlet(outside), exact=exact)


@pytest.mark.parametrize(("core", "shell"), [(1000.0, 1.0), (1.0, 1000.0)])
def test_concentric_discs_converge(core, shell):
    problem = disc(core, shell)
    sizes = [500, 1000, 2000]
    errors = [error(problem, ps.scatter(problem.domain, n_nodes=n)) for n in sizes]
    slope = -2 * np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope > 3, errors
    assert errors[-1] < 5e-4


def test_heat_from_a_core_flows_out_through_the_shell():
    u = ps.unknown("u", x, y)
    domain = ps.Disc().regions(core=ps.Disc(radius=0.5))
    r = sqrt(x**2 + y**2)
    exact = ps.by_region(core=(0.25 - r**2) / 40 + log(2) / 8, otherwise=-log(r) / 8)
    k, heat = ps.by_region(core=10, otherwise=1), ps.by_region(core=1, otherwise=0)
    equation = ps.Eq(-ps.divergence(k * ps.gradient(u)), heat)
    quantities = {"out": ps.Flux(), "heat": ps.Integral(), "middle": ps.PointValue((0, 0))}
    problem = ps.Problem(domain, equation, ps.Dirichlet(0), exact=exact, quantities=quantities)
    solution = ps.discretize(problem, ps.scatter(domain, n_nodes=1500)).solve()
    assert solution.error < 3e-4
    assert solution.quantities["out"] == pytest.approx(-np.pi / 4, rel=2e-3)
    points = np.array([[0.49, 0.0], [0.51, 0.0]])
    assert solution.at(points) == pytest.approx([(0.25 - 0.49**2) / 40 + np.log(2) / 8, -np.log(0.51) / 8], rel=3e-4)


def layers(condition):
    """cos(πy) times hyperbolic functions that match at x = 0; insulated at y = 0 and 1."""
    u = ps.unknown("u", x, y)
    left, right = 5.0, 1.0
    both = sympy.nsimplify(left / right)
    exact = ps.by_region(
        left=cos(pi * y) * (cosh(pi * x) + sinh(pi * x)), otherwise=cos(pi * y) * (cosh(pi * x) + both * sinh(pi * x))
    )
    domain = ps.Box((-0.5, 0.0), (0.5, 1.0)).regions(left=x < 0)
    k = ps.by_region(left=left, otherwise=right)
    boundary = {"left": ps.Dirichlet(exact), "right": ps.Dirichlet(exact), "bottom": condition, "top": condition}
    return ps.Problem(domain, ps.Eq(-ps.divergence(k * ps.gradient(u)), 0), boundary, exact=exact)


@pytest.mark.parametrize("condition", [ps.NormalFlux(0), ps.Neumann(0)])
def test_an_interface_that_ends_at_an_insulated_side(condition):
    problem = layers(condition)
    sizes = [400, 1600]
    errors = [error(problem, ps.scatter(problem.domain, n_nodes=n)) for n in sizes]
    assert errors[1] < 1e-4
    assert errors[1] < errors[0] / 6, errors


def block():
    u = ps.unknown("u", x, y)
    domain = ps.Box((0, 0), (1, 1)).regions(
        a=ps.Box((0, 0), (0.5, 0.5)),
        b=ps.Box((0.5, 0), (1, 0.5)),
        c=ps.Box((0, 0.5), (0.5, 1)),
        d=ps.Box((0.5, 0.5), (1, 1)),
    )
    ks = ps.parameters(a=(0.1, 10.0), b=(0.1, 10.0), c=(0.1, 10.0), d=(0.1, 10.0))
    k = ps.by_region(**{str(p): p for p in ks})
    return ps.Problem(domain, ps.Eq(-ps.divergence(k * ps.gradient(u)), 1), ps.Dirichlet(0))


@pytest.mark.slow
def test_the_thermal_block_is_affine_with_one_term_per_material():
    problem = block()
    assert problem.domain.region_names == ("a", "b", "c", "d")
    assert problem.affine
    model = ps.discretize(problem, ps.lattice(problem.domain, 17))
    assert len(model.terms.operator_thetas) == 5
    # one material everywhere: −k Δu = 1 on the unit square, whose middle has u = 0.0736713 / k
    middle = model.solve({"a": 2.0, "b": 2.0, "c": 2.0, "d": 2.0}).at(np.array([[0.5, 0.5]]))[0]
    assert middle == pytest.approx(0.0736713 / 2, rel=5e-3)


@pytest.mark.slow
def test_concentric_balls_converge():
    u = ps.unknown("u", x, y, z)
    r = sqrt(x**2 + y**2 + z**2)
    domain = ps.Ball((0, 0, 0), 1.0).regions(core=ps.Ball((0, 0, 0), 0.5))
    # heat 1 in the core: k u_r = −r/3 there, −1/(24 r²) outside
    exact = ps.by_region(core=(0.25 - r**2) / 6000 + sympy.Rational(1, 24), otherwise=(1 / r - 1) / 24)
    k, heat = ps.by_region(core=1000, otherwise=1), ps.by_region(core=1, otherwise=0)
    problem = ps.Problem(domain, ps.Eq(-ps.divergence(k * ps.gradient(u)), heat), ps.Dirichlet(0), exact=exact)
    sizes = [1000, 4000]
    errors = [error(problem, ps.scatter(domain, n_nodes=n)) for n in sizes]
    slope = -3 * np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope > 2, errors


def test_heat_in_two_layers_goes_to_the_steady_state():
    (x,) = ps.coordinates("x")
    t = ps.time()
    u = ps.unknown("u", x, t)
    domain = ps.Box(0.0, 1.0).regions(left=x < 0.5)
    k = ps.by_region(left=0.1, otherwise=1)
    equation = ps.Eq(u.diff(t), ps.divergence(k * ps.gradient(u)) + 1)
    problem = ps.Problem(domain, equation, ps.Dirichlet(0), initial=0, times=[0, 10.0])
    model = ps.discretize(problem, ps.scatter(domain, n_nodes=60))
    middle = int(np.argmin(np.abs(model.nodes.points[:, 0] - 0.5)))
    assert model.solve().values[-1][middle] == pytest.approx(5 / 22, rel=3e-4)


def test_a_heated_interface():
    """A source on the interface of two layers: what flows out on both sides adds up to it."""
    (x,) = ps.coordinates("x")
    u = ps.unknown("u", x)
    domain = ps.Box(0.0, 1.0).regions(left=x < 0.25)
    (q,) = ps.parameters(q=(1.0, 9.0))
    k = ps.by_region(left=2, otherwise=3)
    middle = q / (2 / 0.25 + 3 / 0.75)
    exact = ps.by_region(left=middle * x / 0.25, otherwise=middle * (1 - x) / 0.75)
    equation = ps.Eq(-ps.divergence(k * ps.gradient(u)), 0)
    problem = ps.Problem(domain, equation, ps.Dirichlet(0), interfaces={("otherwise", "left"): q}, exact=exact)
    assert error(problem, ps.scatter(domain, n_nodes=100), {"q": 6.0}) < 1e-10
    with pytest.raises(ps.errors.InputError, match="names \\('left', 'core'\\)"):
        ps.Problem(domain, equation, ps.Dirichlet(0), interfaces={("left", "core"): q})


def lame():
    """A stiff disc in a soft ring under a radial pull: u_r = A r inside, B r + C / r outside; stress and u continuous."""
    p, q = ps.unknowns("p q", x, y)
    domain = ps.Disc().regions(core=ps.Disc(radius=0.5))
    first, second = ps.by_region(core=30.0, otherwise=2.0), ps.by_region(core=40.0, otherwise=1.0)
    trace, shear = first * (p.diff(x) + q.diff(y)), second * (p.diff(y) + q.diff(x))
    stress = [(trace + 2 * second * p.diff(x), shear), (shear, trace + 2 * second * q.diff(y))]
    # radial stress: 2 (λ + μ) A inside, 2 (λ + μ) B − 2 μ C / r² outside
    a, b, c = np.linalg.solve([[0.5, -0.5, -2.0], [140.0, -6.0, 8.0], [0.0, 1.0, 1.0]], [0.0, 0.0, 1.0])
    radial = ps.by_region(core=float(a), otherwise=float(b) + float(c) / (x**2 + y**2))
    return ps.Problem(
        domain,
        [ps.Eq(-ps.divergence(row, x, y), 0) for row in stress],
        {"*": {p: ps.Dirichlet(x), q: ps.Dirichlet(y)}},
        exact={"p": radial * x, "q": radial * y},
    )


@pytest.mark.parametrize("method", ["stencils", "elements"])
def test_a_stiff_disc_in_a_soft_ring(method):
    problem = lame()
    errors = [error(problem, ps.scatter(problem.domain, n_nodes=n), method=method) for n in (300, 1200)]
    assert errors[1] < 2e-4, errors
    assert errors[1] < errors[0] / 7, errors  # order 3 in the spacing


def test_a_conductivity_that_depends_on_the_temperature_by_region():
    """k = k0 (1 + u) in each layer: with w = u + u²/2 the problem is linear, and w k0 matches as two layers do."""
    (x,) = ps.coordinates("x")
    u = ps.unknown("u", x)
    domain = ps.Box(0.0, 1.0).regions(left=x < 0.5)
    k = ps.by_region(left=0.1, otherwise=1) * (1 + u)
    problem = ps.Problem(domain, ps.Eq(-ps.divergence(k * ps.gradient(u)), 1), ps.Dirichlet(0))
    solution = ps.discretize(problem, ps.scatter(domain, n_nodes=120)).solve()
    assert solution.at(np.array([[0.5]]))[0] == pytest.approx(np.sqrt(1 + 2 * 5 / 22) - 1, abs=1e-7)


@pytest.mark.parametrize("method", ["stencils", "elements"])
def test_a_heated_ring_between_two_materials(method):
    """A source on a circle: what it gives off flows out through the ring around it alone."""
    u = ps.unknown("u", x, y)
    domain = ps.Disc().regions(core=ps.Disc(radius=0.5))
    k = ps.by_region(core=7, otherwise=2)
    exact = ps.by_region(core=log(2) / 4, otherwise=-log(sqrt(x**2 + y**2)) / 4)  # 2 u_r = −1/2 at r = 1/2: q = 1
    equation = ps.Eq(-ps.divergence(k * ps.gradient(u)), 0)
    problem = ps.Problem(domain, equation, ps.Dirichlet(0), interfaces={("core", "otherwise"): 1}, exact=exact)
    assert error(problem, ps.scatter(domain, n_nodes=600), method=method) < 1e-3


def test_a_saved_answer_between_nodes_keeps_to_its_side_of_the_interface(tmp_path):
    u = ps.unknown("u", x, y)
    domain = ps.Disc().regions(core=ps.Disc(radius=0.5))
    (a,) = ps.parameters(a=(1.0, 2.0))
    r = sqrt(x**2 + y**2)
    k, heat = ps.by_region(core=10, otherwise=1), ps.by_region(core=a, otherwise=0)
    problem = ps.Problem(domain, ps.Eq(-ps.divergence(k * ps.gradient(u)), heat), ps.Dirichlet(0))
    surrogate = ps.learn(problem, 1e-2, n_nodes=800, recipe="polynomial")
    points = np.array([[0.47, 0.01], [0.0, 0.49], [0.51, 0.0], [-0.53, 0.01]])
    outside = np.array([float(-log(r).subs({x: px, y: py}) / 8) for px, py in points[2:]])
    inside = np.array([float(((0.25 - r**2) / 40 + log(2) / 8).subs({x: px, y: py})) for px, py in points[:2]])
    exact = 1.5 * np.concatenate([inside, outside])
    answer = surrogate({"a": 1.5})
    assert answer.at(points) == pytest.approx(exact, rel=2e-3)
    ps.save(surrogate, tmp_path / "heat.parasol")
    again = ps.load(tmp_path / "heat.parasol")({"a": 1.5})
    np.testing.assert_array_equal(again.at(points), answer.at(points))


def test_a_layer_thinner_than_the_spacing_is_for_elements():
    """It resists as much as the rest: u at its left side is a half of 1 / (2 − width)."""
    u, width = ps.unknown("u", x, y), 0.003
    domain = ps.Box((0, 0), (1, 1)).regions(layer=(x > 0.5) & (x < 0.5 + width))
    k = ps.by_region(layer=width, otherwise=1)
    sides = {"left": ps.Dirichlet(0), "right": ps.Dirichlet(1), "*": ps.NormalFlux(0)}
    problem = ps.Problem(domain, ps.Eq(-ps.divergence(k * ps.gradient(u)), 0), sides)
    nodes = ps.scatter(domain, n_nodes=300)
    with pytest.raises(ps.ParasolError, match="'layer' is too small or thin for stencils"):
        ps.discretize(problem, nodes, method="stencils")
    solution = ps.discretize(problem, nodes, method="elements").solve()
    assert solution.at(np.array([[0.5, 0.5]]))[0] == pytest.approx(0.5 / (2 - width), rel=1e-6)


def test_a_model_with_regions_is_made_again_from_its_record():
    problem = disc(1000.0, 1.0)
    spacing = ps.space.feature_spacing(problem.domain)  # that of the ghosts at interfaces is not that of the boundary
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=400, spacing=spacing), method="stencils")
    held = NodesRecord.of(record_of(model).to_dict())
    again = rebuilt(problem, model.nodes.points, model.nodes.n_interior, model.scheme, held)
    np.testing.assert_array_equal(again.terms.operator_data, model.terms.operator_data)


def test_interfaces_that_meet_at_the_boundary():
    """Three wedges of the same material, with three different conditions on what flows out below: u is smooth."""
    u = ps.unknown("u", x, y)
    nx, ny = ps.normal(x, y)
    right, left = ps.Polygon([(0, 0), (1, 0), (1, 1)]), ps.Polygon([(0, 0), (-1, 1), (-1, 0)])
    domain = ps.Box((-1, 0), (1, 1)).regions(right=right, left=left)
    exact = sympy.exp(x) * cos(y)
    k, h = ps.by_region(right=2, left=2, otherwise=2), ps.by_region(right=1, left=5, otherwise=3)
    below = ps.NormalFlux(2 * (nx * exact.diff(x) + ny * exact.diff(y)) + h * (exact - u))
    conditions = {"bottom": below, "*": ps.Dirichlet(exact)}
    problem = ps.Problem(domain, ps.Eq(-ps.divergence(k * ps.gradient(u)), 0), conditions, exact=exact)
    solution = ps.discretize(problem, ps.scatter(domain, n_nodes=120), degree=3).solve()
    assert solution.error < 2e-4
    assert np.max(np.abs(solution.values - 1)[np.all(solution.model.nodes.points == 0, axis=1)]) < 4e-4


def test_fluxes_with_a_coefficient_by_region_and_weights_of_one_s_own():
    u = ps.unknown("u", x, y)
    domain = ps.Box((0, 0), (1, 1)).regions(low=x < 0.5)
    exact = ps.by_region(low=3 * x + y, otherwise=x + 1 + y)
    weights = np.arange(150) / 150
    quantities = {
        "top": ps.Flux("top", ps.by_region(low=2, otherwise=x)),  # u_y = 1
        "right": ps.Flux("right", ps.by_region(low=2, otherwise=5 * y)),  # u_x = 1
        "own": ps.pde.Weighted(weights),
    }
    equation = ps.Eq(-ps.divergence(ps.by_region(low=1, otherwise=3) * ps.gradient(u)), 0)
    problem = ps.Problem(domain, equation, ps.Dirichlet(exact), quantities=quantities)
    solution = ps.discretize(problem, ps.scatter(domain, n_nodes=150)).solve()
    wanted = {"top": 1 + 0.375, "right": 2.5, "own": weights @ solution.values}
    assert solution.quantities == pytest.approx(wanted, rel=1e-3)
