"""Quantities of interest against integrals known by heart, on nodes and through surrogates, with their bounds."""

from dataclasses import replace

import numpy as np
import pytest

import parasol as ps
from parasol.pde.quantities import quantity_rows
from parasol.space.quadrature import surface_points
from parasol.space.stencils import default_scheme


def weights(quantity, nodes):
    return quantity_rows({"q": quantity}, nodes, default_scheme(nodes.dimension), ("u",)).rows[0]


def slope(n_nodes, errors):
    return np.polyfit(np.log(np.sqrt(n_nodes)), np.log(np.abs(errors)), 1)[0]


def test_integrals_over_the_disc_converge():
    counts, bump, flux = (200, 800, 3200), [], []
    for n in counts:
        nodes = ps.scatter(ps.Disc(), n_nodes=n)
        x, y = nodes.points.T
        bump.append(weights(ps.Integral(), nodes) @ (1 - x**2 - y**2) - np.pi / 2)
        flux.append(weights(ps.Flux(), nodes) @ np.exp(2 * x) - 4 * np.pi * 1.5906368546373291)  # ∫ Δe^2x = 4π I_1(2)
    assert abs(bump[-1]) < 2e-6
    assert abs(slope(counts, bump) + 2) < 0.3
    assert abs(flux[0]) < 1e-2
    assert abs(flux[-1]) < 1e-5
    assert slope(counts, flux) < -2


def test_means_integrals_and_fluxes_on_named_parts():
    pipe = ps.Disc().named("outside") - ps.Disc(radius=0.4).named("inside")
    nodes = ps.scatter(pipe, n_nodes=500)
    x, y = nodes.points.T
    r = np.hypot(x, y)
    assert weights(ps.Integral("inside"), nodes) @ np.ones(500) == pytest.approx(2 * np.pi * 0.4, abs=1e-6)
    assert weights(ps.Average("inside"), nodes) @ x**2 == pytest.approx(0.4**2 / 2, abs=1e-6)
    assert weights(ps.Average(), nodes).sum() == pytest.approx(1, abs=1e-12)
    for part, sign in (("outside", 1), ("inside", -1)):  # the flux of log r is 2π through every circle
        assert weights(ps.Flux(part), nodes) @ np.log(r) == pytest.approx(sign * 2 * np.pi, rel=1e-2)
    assert weights(ps.Flux("inside"), nodes) @ r**2 == pytest.approx(-4 * np.pi * 0.4**2, abs=1e-6)
    cx, _ = ps.coordinates("x y")
    found = weights(ps.Flux("outside", 3 * cx), nodes) @ (x * y**2)  # ∮ 3x · 3xy² = 9π/4
    assert found == pytest.approx(9 * np.pi / 4, abs=1e-4)


def test_one_dimension_and_periodic_boxes():
    line = ps.scatter(ps.Box(0.0, 2.0), n_nodes=60)
    x = line.points[:, 0]
    assert weights(ps.Integral(), line) @ np.exp(x) == pytest.approx(np.exp(2) - 1, abs=1e-6)
    assert weights(ps.Flux("left"), line) @ np.exp(x) == pytest.approx(-1, abs=1e-6)
    assert weights(ps.Flux(), line) @ np.exp(x) == pytest.approx(np.exp(2) - 1, abs=1e-6)
    assert weights(ps.PointValue(0.7), line) @ np.exp(x) == pytest.approx(np.exp(0.7), abs=1e-9)
    torus = ps.scatter(ps.Box((0, 0), (1, 1), periodic=("x", "y")), n_nodes=400)
    x, _ = torus.points.T
    assert weights(ps.Integral(), torus) @ np.cos(2 * np.pi * x) ** 2 == pytest.approx(0.5, abs=1e-4)
    with pytest.raises(ps.ParasolError, match="has no boundary"):
        weights(ps.Flux(), torus)


ROUND = {"x > 0.5": (2 / 3, 1.7320508075688772), "x < 0.5": (4 / 3, -1.7320508075688772)}  # length / π, flux of x


@pytest.mark.parametrize("where", ROUND)
@pytest.mark.parametrize("n", [150, 230, 370])
def test_a_part_that_begins_inside_an_arc_is_cut_there(where, n):
    nodes = ps.scatter(ps.Disc().named(some=where), n_nodes=n)
    length, flux = ROUND[where]
    assert weights(ps.Integral("some"), nodes).sum() == pytest.approx(np.pi * length, abs=1e-6)
    assert weights(ps.Flux("some"), nodes) @ nodes.points[:, 0] == pytest.approx(flux, abs=2e-6)


def test_fluxes_over_such_a_part_converge():
    counts, errors = (150, 300, 600), []
    for n in counts:
        nodes = ps.scatter(ps.Disc().named(right="x > 0.5"), n_nodes=n)
        x, y = nodes.points.T
        # the flux of a harmonic function is the difference of its conjugate e^x sin y at the ends of the part
        exact = 2 * np.exp(0.5) * np.sin(np.sqrt(0.75))
        errors.append(weights(ps.Flux("right"), nodes) @ (np.exp(x) * np.cos(y)) - exact)
    assert abs(errors[0]) < 2e-4
    assert abs(errors[-1]) < 5e-6
    assert slope(counts, errors) < -3


X, Y = ps.coordinates("x y")
ANGLES = 2 * np.pi * np.arange(100) / 100
CUT = {  # domain, length of the part
    "around the start of the arc and elsewhere": (ps.Disc().named(some=abs(X) > 0.3), 4 * np.arccos(0.3)),
    "star": (ps.Star("1 + 0*theta").named(some=Y > 0.2), 2 * np.arccos(0.2)),
    "curve": (
        ps.Curve(np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)).named(some=Y < 0.2),
        2 * np.pi - 2 * np.arccos(0.2),
    ),
    "implicit": (
        ps.Implicit(X**2 + Y**2 - 1, bounds=((-1.1, -1.1), (1.1, 1.1))).named(some=X < -0.4),
        2 * np.arccos(0.4),
    ),
    "polygon, three of its sides": (ps.Polygon([(0, 0), (2, 0), (2, 1), (0, 1)]).named(some=X < 0.7), 2.4),
    "middle of a face": (ps.Box((0, 0), (1, 1)).named(some=(Y <= 0) & (X > 0.21) & (X < 0.55)), 0.34),
    "periodic face": (ps.Box((0, 0), (1, 1), periodic=("x",)).named(some=(Y <= 0) & (X > 0.21) & (X < 0.55)), 0.34),
    "sides and a hole": (
        (ps.Box((-1, -1), (1, 1)) - ps.Disc(radius=0.4)).named(some=X > 0.1),
        3.8 + 0.8 * np.arccos(0.25),
    ),
    "small": (ps.Disc((3e-6, 0), radius=1e-6).named(some=X > 3.5e-6), 2e-6 * np.pi / 3),
    "a function of points": (ps.Disc().named(some=lambda points: points[:, 0] > 0.5), 2 * np.pi / 3),
}


@pytest.mark.parametrize("case", CUT)
def test_lengths_of_parts_on_every_kind_of_domain(case):
    domain, length = CUT[case]
    nodes = ps.scatter(domain, n_nodes=100)
    assert surface_points(nodes, "some").weights.sum() == pytest.approx(length, rel=1e-6)


@pytest.mark.parametrize("domain", [ps.Disc(), ps.Ball((0, 0, 0), 1.0)])
def test_a_part_with_nothing_on_it_is_refused(domain):
    nodes = ps.scatter(domain.named(rim="x < 5"), n_nodes=200)
    with pytest.raises(ps.ParasolError, match="nothing of the boundary lies on the part 'boundary'"):
        weights(ps.Flux("boundary"), nodes)


@pytest.mark.parametrize(("n", "most"), [(200, 1.5e-2), pytest.param(800, 5e-3, marks=pytest.mark.slow)])
def test_fluxes_over_edges_in_space(n, most):
    box = ps.scatter(ps.Box((0, 0, 0), (1, 2, 1)), n_nodes=n)
    x, y, z = box.points.T
    # ∫ Δu = 2 (6 + 4 + 2 · 1/2): different through every face
    assert weights(ps.Flux(), box) @ (3 * x**2 + 2 * y**2 + z**3 / 3) == pytest.approx(22, rel=most)
    ball = ps.scatter(ps.Ball((0, 0, 0), 1.0) & ps.Box((-2, -2, 0), (2, 2, 2)), n_nodes=n)
    assert weights(ps.Flux(), ball) @ (ball.points**2).sum(axis=1) == pytest.approx(4 * np.pi, rel=most)


def test_areas_in_space_to_about_a_per_cent():
    cube = ps.scatter(ps.Box((0, 0, 0), (1, 1, 1)), n_nodes=400)
    x, y, _ = cube.points.T
    assert weights(ps.Integral("left"), cube).sum() == pytest.approx(1, abs=0.015)
    assert weights(ps.Average("right"), cube) @ y == pytest.approx(0.5, abs=0.01)
    assert weights(ps.Flux("right"), cube) @ x**2 == pytest.approx(2, abs=0.03)
    assert weights(ps.Integral(), cube) @ (x * y) == pytest.approx(0.25, abs=1e-4)


def test_what_makes_no_sense_is_refused_when_declared():
    problem = ps.load_problem("helmholtz")
    (b,) = ps.parameters(b=(0, 1))
    for wrong, message in {
        "mean": "must name what is wanted",
        ("q", 3): "Use ps.PointValue",
        ("", ps.Average()): "a name of its own",
        ("q", ps.Average("lid")): "over the part 'lid', which the domain does not have",
        ("q", ps.PointValue((5.0, 5.0))): "outside the domain",
        ("q", ps.PointValue((0.0,))): r"shape \(1, 1\), expected \(1, 2\)",
        ("q", ps.Average(of="w")): "The unknowns are: u",
        ("q", ps.Flux(coefficient=b)): "depends on b",
        ("q", ps.pde.Weighted([np.nan])): "NaN",
    }.items():
        with pytest.raises(ps.ParasolError, match=message):
            replace(problem, quantities=wrong if isinstance(wrong, str) else dict([wrong]))
    with pytest.raises(ps.ParasolError, match="of which unknown"):
        replace(ps.load_problem("elasticity"), quantities={"q": ps.Average()})


def test_several_unknowns_have_their_own():
    problem = ps.load_problem("elasticity")
    one, other = problem.names[:2]
    problem = replace(problem, quantities={"a": ps.PointValue(_inside(problem), of=one), "b": ps.Average(of=other)})
    nodes = ps.scatter(problem.domain, n_nodes=200)
    found = quantity_rows(problem.quantities, nodes, default_scheme(2), problem.names)
    assert found.names == ("a", "b")
    assert found.rows.shape == (2, len(problem.names) * 200)
    assert not found.rows[0, 200:].any()
    assert found.rows[1, 200:400].sum() == pytest.approx(1)
    assert not found.rows[1, :200].any()


def _inside(problem):
    return ps.scatter(problem.domain, n_nodes=100).interior[0]


@pytest.fixture(scope="module")
def pipe():
    problem = ps.load_problem("cooled-pipe")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=400))
    reduced = ps.reduce(model, ps.pod(ps.solve_many(model, ps.sample(model, 12)), n_modes=2))
    return ps.fit(reduced, "polynomial", n_labels=100)


def test_answers_have_quantities_within_their_bounds(pipe, tmp_path):
    mus = ps.sample(pipe.solver, 20, rng=5)
    answer, rows = pipe(mus), pipe.solver.quantities.rows
    assert list(answer.quantities) == ["heat loss", "skin"]
    for i, name in enumerate(answer.quantities):
        assert np.allclose(answer.quantities[name], answer.values @ rows[i], rtol=1e-12)
        truth = np.array([rows[i] @ pipe.solver.solve(mu).values for mu in mus])
        assert np.all(np.abs(answer.quantities[name] - truth) <= answer.quantity_bounds[name])
        assert np.all(answer.quantity_bounds[name] < 1e3 * answer.bounds.values)
    biot = mus[:, 0]
    assert np.allclose(answer.quantities["heat loss"], 2 * np.pi * biot / (1 + biot * np.log(2.5)), rtol=3e-3)
    one = pipe(mus[3])
    assert isinstance(one.quantities["skin"], float)
    assert one.quantities["skin"] == pytest.approx(answer.quantities["skin"][3], rel=1e-12)
    assert 0 < one.quantity_bounds["skin"] < 1e-4
    again = ps.load(ps.save(pipe, tmp_path / "pipe.parasol"))(mus)
    for name in answer.quantities:
        assert np.array_equal(again.quantities[name], answer.quantities[name])
        assert np.array_equal(again.quantity_bounds[name], answer.quantity_bounds[name])


def test_quantities_of_full_solves_are_those_of_the_full_solve(pipe):
    repaired = pipe([1.0], tolerance=1e-15)
    assert repaired.method == "full solve"
    truth = pipe.solver.quantities.rows @ pipe.solver.solve([1.0]).values
    assert np.allclose(list(repaired.quantities.values()), truth, rtol=1e-12)
    loss = pipe.solver.solve([1.0]).quantities["heat loss"]
    assert loss == pytest.approx(2 * np.pi / (1 + np.log(2.5)), rel=3e-3)
    assert repaired.quantity_bounds["skin"] == 0


def test_quantities_in_time():
    problem = replace(ps.load_problem("heat"), quantities={"mean": ps.Average(), "left": ps.Flux("left")})
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=200))
    solved = model.solve([0.1])
    assert solved.quantities["mean"].shape == (11,)
    assert solved.quantities["mean"][10] == pytest.approx(solved.at(0.5).quantities["mean"], rel=1e-12)
    snapshots = ps.solve_many(model, ps.sample(model, 8))
    for product in (None, ps.reduction.value_weights(model)):
        basis = ps.pod(snapshots, n_modes=6, weights=product)
        surrogate = ps.fit(snapshots, "polynomial", basis=basis, model=model)
        answer = surrogate([[0.1], [0.2]])
        assert answer.quantities["mean"].shape == (2, 11)
        fields = answer.values.reshape(2, 11, -1)
        assert np.allclose(answer.quantities["left"], fields @ model.quantities.rows[1], rtol=1e-9, atol=1e-12)
        # the dual norm is met by the field that the quantity is the inner product with
        worst = np.zeros((11, 200))
        worst[4] = model.quantities.rows[0] / (1.0 if product is None else product.reshape(11, -1)[4])
        size = basis.norm(worst.ravel())
        assert surrogate.quantities.norms[0, 4] == pytest.approx(worst[4] @ model.quantities.rows[0] / size, rel=1e-12)
    assert surrogate([0.1]).quantities["mean"].shape == (11,)
    late = surrogate.restricted(times=[0.25, 0.5])([0.1])
    assert np.array_equal(late.quantities["mean"], surrogate([0.1]).quantities["mean"][[5, 10]])


def test_quantities_of_other_people_s_data():
    mus = np.linspace(0, 1, 30)[:, None]
    solutions = np.hstack([np.sin(mus), np.cos(mus), mus])
    surrogate = ps.fit_snapshots(mus, solutions, "polynomial", quantities={"sum": np.ones(3)}, n_modes=3, level=None)
    assert surrogate([0.3]).quantities["sum"] == pytest.approx(np.sin(0.3) + np.cos(0.3) + 0.3, abs=1e-6)
    with pytest.raises(ps.ParasolError, match=r"expected \(3,\)"):
        ps.fit_snapshots(mus, solutions, "polynomial", quantities={"sum": np.ones(4)}, n_modes=3, level=None)


def test_fluxes_over_edges_are_not_of_first_order():
    """Nodes on an edge stand for strips that lie to one side of them: with the slope taken at the node 0.9 % off."""
    half, wave, growth = (
        np.array([0.7, 0.95, 0.97]),
        np.array([0.847, -0.945, -0.966]),
        np.array([-0.21, -0.56, -0.294]),
    )
    nodes = ps.scatter(ps.Box(-half, half), n_nodes=1000)
    points, areas = (getattr(surface_points(nodes, None), name) for name in ("points", "areas"))
    # u = sin(k·x + 2.53) + exp(q·x) / 2
    slopes = np.cos(points @ wave + 2.53)[:, None] * wave + 0.5 * np.exp(points @ growth)[:, None] * growth
    source = -wave @ wave * np.sin(2.53) * np.prod(2 * np.sin(wave * half) / wave)
    source += 0.5 * growth @ growth * np.prod(2 * np.sinh(growth * half) / growth)
    assert np.sum(areas * slopes) == pytest.approx(source, rel=4e-3)
