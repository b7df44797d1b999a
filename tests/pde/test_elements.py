"""Elements behind the same model: orders of convergence, conditions on slopes, systems, time, parameters, quantities."""

import sys

import numpy as np
import pytest
import sympy
from sympy import cos, exp, sin

import parasol as ps
from parasol.errors import InputError

x, y = ps.coordinates("x y")
u, v = ps.unknowns("u v", x, y)
nx, ny = ps.normal(x, y)
EXACT = sin(2 * x + 1) * exp(y)
SLOPE = nx * EXACT.diff(x) + ny * EXACT.diff(y)
ALONG = -ny * EXACT.diff(x) + nx * EXACT.diff(y)
STAR = ps.Star("0.8 + 0.1*(sin(6*theta) + sin(3*theta))")
BOX = ps.Box((0, 0), (1, 1))


def poisson(w):
    return -w.diff(x, 2) - w.diff(y, 2)


def graded(w):
    k = 1 + x**2 + y / 3
    return -(k * w.diff(x)).diff(x) - (k * w.diff(y)).diff(y) + 3 * w.diff(x) + w


def anisotropic(w):
    return -w.diff(x, 2) - 3 * w.diff(y, 2) - w.diff(x, y) / 2 + w


def error(model, solution, exact=EXACT):
    """Relative error in L2."""
    samples = model.elements.inside
    values = np.einsum("lnm,nl->nm", samples.values, solution.values[model.elements.cell_nodes])
    true = sympy.lambdify((x, y), exact)(*np.moveaxis(samples.points, 2, 0))
    return np.sqrt(np.sum(samples.weights * (values - true) ** 2) / np.sum(samples.weights * true**2))


def solved(problem, n_corners, seed=0, **options):
    model = ps.discretize(
        problem, ps.scatter(problem.domain, n_nodes=n_corners, rng=seed), method="elements", **options
    )
    return model, model.solve()


CASES = {
    "Dirichlet": (poisson, ps.Dirichlet(EXACT)),
    "Robin": (poisson, ps.Robin(2 + x, 3, (2 + x) * EXACT + 3 * SLOPE)),
    "Neumann, graded": (graded, ps.Neumann(SLOPE)),
    "Neumann, anisotropic": (anisotropic, ps.Neumann(SLOPE)),
    "oblique": (
        anisotropic,
        ps.Eq(nx * u.diff(x) + ny * u.diff(y) + (-ny * u.diff(x) + nx * u.diff(y)) / 4, SLOPE + ALONG / 4),
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("domain", [STAR, BOX], ids=["star", "box"])
def test_quadratic_elements_converge_with_order_three(case, domain):
    operator, condition = CASES[case]
    problem = ps.Problem(domain, ps.Eq(operator(u), operator(EXACT)), condition)
    errors = [np.mean([error(*solved(problem, n, seed)) for seed in (0, 1)]) for n in (100, 400)]
    assert errors[1] < 1.2e-4
    # from 100 to 400 corners the spacing halves; what is measured is 2.5 (oblique, box) to 4.5
    assert np.log2(errors[0] / errors[1]) > 2.4


@pytest.mark.parametrize(("degree", "least"), [(3, 3.8), (4, 3.8)])
def test_higher_degrees_are_as_good_as_the_quadratic_edges_allow(degree, least):
    problem = ps.Problem(ps.Disc(), ps.Eq(poisson(u), 1), ps.Dirichlet(0))
    exact = (1 - x**2 - y**2) / 4
    errors = [error(*solved(problem, n, degree=degree), exact) for n in (50, 200)]
    assert np.log2(errors[0] / errors[1]) > least


@pytest.mark.parametrize("condition", ["values", "flux", "slopes"])
@pytest.mark.parametrize("domain", [STAR, BOX], ids=["star", "box"])
def test_a_flux_may_hold_the_unknown_and_what_is_known(domain, condition):
    def flux(w):
        return (1 + y / 2) * w.diff(x) + (1 + x * y) * w + x**2, (1 + y / 2) * w.diff(y) - x * w + y

    known = flux(EXACT)
    conditions = {
        "values": ps.Dirichlet(EXACT),
        "flux": ps.NormalFlux(nx * known[0] + ny * known[1] + 3 * EXACT - 3 * u),
        "slopes": ps.Robin(2, 3, 2 * EXACT + 3 * SLOPE),
    }
    right = known[0].diff(x) + known[1].diff(y) - 5 * EXACT
    problem = ps.Problem(domain, ps.Eq(ps.divergence(flux(u)) - 5 * u, right), conditions[condition])
    assert error(*solved(problem, 200)) < 1e-4


@pytest.mark.parametrize(
    "domain",
    [ps.Disc() - ps.Disc((0.69, 0), 0.3), ps.Disc() - ps.Disc((0.35, 0), 0.66)],
    ids=["gap", "crescent"],
)
def test_slopes_in_a_narrow_gap(domain):
    """Normals of edges that bend past the middle of their triangle pointed inward: errors of 1e-2, and 2e-3 was said."""
    problem = ps.Problem(domain, ps.Eq(poisson(u) + u, poisson(EXACT) + EXACT), ps.Robin(1, 2, EXACT + 2 * SLOPE))
    model, solution = solved(problem, 200)
    assert error(model, solution) < 3e-6
    rim = model.elements.rim
    outward = domain.normal(rim.points.reshape(-1, 2)).reshape(rim.points.shape)
    assert np.min(np.sum(rim.normals * outward, axis=2)) > 0.999


def test_values_in_a_narrow_gap_are_those_of_the_cell_that_holds_the_place():
    """Where Newton's method from a bent cell beside the right one ended anywhere, values were off by 2e-2."""
    domain = ps.Disc() - ps.Disc((0.694, 0), 0.3)
    harmonic = exp(x) * cos(y)
    _, solution = solved(ps.Problem(domain, ps.Eq(poisson(u), 0), ps.Dirichlet(harmonic)), 200)
    turns, gaps = np.meshgrid(np.linspace(-0.3, 0.3, 401), [1e-6, 1e-5, 8.5e-5, 1e-3, 5e-3])
    px, py = (1 - gaps.ravel()) * np.cos(turns.ravel()), (1 - gaps.ravel()) * np.sin(turns.ravel())
    assert np.max(np.abs(solution.at(np.column_stack([px, py])) - np.exp(px) * np.cos(py))) < 2e-5


def test_a_factor_before_the_divergence_divides_what_is_beside_it():
    """With k u' = 1 − x², and c another function in each layer, one of them of a parameter."""
    (a,) = ps.parameters(a=(0.5, 2.0))
    domain = ps.Box((0, 0), (1, 1)).regions(left=x < 0.5)
    k, c = ps.by_region(left=1, otherwise=3), ps.by_region(left=2 + a * x * y, otherwise=-5 - sin(y))
    cubic = x - x**3 / 3
    exact = ps.by_region(left=cubic, otherwise=cubic / 3 + sympy.Rational(11, 36))
    slopes = ps.Neumann(ps.by_region(left=nx * cubic.diff(x), otherwise=nx * cubic.diff(x) / 3))
    equation = ps.Eq(-c * ps.divergence(k * ps.gradient(u)) + x * u.diff(y) + 2 * u, 2 * x * c + 2 * exact)
    problem = ps.Problem(domain, equation, {"left": ps.Dirichlet(exact), "*": slopes}, exact=exact)
    model = ps.discretize(problem, ps.scatter(domain, n_nodes=60), method="elements")
    assert model.solve({"a": 1.3}).error < 1e-5


def test_lines_converge_with_order_three_and_know_their_ends():
    (s,) = ps.coordinates("x")
    w = ps.unknown("w", s)
    exact = sin(3 * s)
    equation = ps.Eq(-((1 + s) * w.diff(s)).diff(s), -((1 + s) * exact.diff(s)).diff(s))
    problem = ps.Problem(
        ps.Box(0.0, 1.0), equation, {"left": ps.Dirichlet(0), "right": ps.Neumann(3 * cos(3))}, exact=exact
    )
    errors = [solved(problem, n)[1].error for n in (10, 40)]
    assert np.log2(errors[0] / errors[1]) / 2 > 2.8
    assert solved(problem, 10)[1].at([[0.123]])[0] == pytest.approx(np.sin(0.369), abs=4e-4)


@pytest.mark.parametrize("kind", [sin, cos])
def test_a_re_entrant_corner_is_as_good_with_slopes_as_with_values(kind):
    corner = ps.Box((-1, -1), (1, 1)) - ps.Box((0, -1), (1, 0))
    inner = lambda p: (np.abs(p[:, 0]) < 1e-9) & (p[:, 1] < 1e-9) | (np.abs(p[:, 1]) < 1e-9) & (p[:, 0] > -1e-9)  # noqa: E731
    domain = corner.named(inner=inner)
    angle = sympy.atan2(y, x)
    angle = sympy.Piecewise((angle, angle >= -1e-12), (angle + 2 * sympy.pi, True))
    exact = (x**2 + y**2) ** sympy.Rational(1, 3) * kind(2 * angle / 3)
    natural = ps.Neumann(0) if kind is cos else ps.Dirichlet(0)
    problem = ps.Problem(domain, ps.Eq(poisson(u), 0), {"inner": natural, "*": ps.Dirichlet(exact)}, exact=exact)
    errors = np.array([[solved(problem, n, seed)[1].error for seed in range(3)] for n in (80, 320)])
    assert np.max(errors[1]) < 1.5 * np.median(errors[1])
    assert np.max(errors[1]) < 1.7e-3  # stencils with as many nodes: 1e-2 to 4e-2 where slopes are given
    # like h^(4/3), as the singularity r^(2/3) lets it
    assert np.log2(np.median(errors[0]) / np.median(errors[1])) > 1.1


def stress(a, b, lam=1.3, shear=0.7):
    spread = a.diff(x) + b.diff(y)
    return lam * spread + 2 * shear * a.diff(x), shear * (a.diff(y) + b.diff(x)), lam * spread + 2 * shear * b.diff(y)


def balance(xx, xy, yy):
    return -xx.diff(x) - xy.diff(y), -xy.diff(x) - yy.diff(y)


def test_tractions_on_a_plate_with_a_hole():
    plate = (ps.Box((0, 0), (2, 1)) - ps.Disc((1, 0.5), 0.2)).named(left=x < 0.001)
    first, second = sin(x + 2 * y), cos(2 * x - y) + x * y
    ours, true = stress(u, v), stress(first, second)
    traction = {
        u: ps.Eq(nx * ours[0] + ny * ours[1], nx * true[0] + ny * true[1]),
        v: ps.Eq(nx * ours[1] + ny * ours[2], nx * true[1] + ny * true[2]),
    }
    problem = ps.Problem(
        plate,
        [ps.Eq(*sides) for sides in zip(balance(*ours), balance(*true), strict=True)],
        {"left": {u: ps.Dirichlet(first), v: ps.Dirichlet(second)}, "*": traction},
        exact={"u": first, "v": second},
    )
    errors = [solved(problem, n)[1].error for n in (100, 400)]
    assert errors[1] < 3e-5
    assert np.log2(errors[0] / errors[1]) > 2.8


@pytest.mark.slow
def test_heat_in_time_with_all_kinds_of_conditions():
    t = ps.time()
    w = ps.unknown("w", x, y, t)
    (k,) = ps.parameters(k=(0.5, 2.0))
    exact = cos(2 * t) * sin(2 * x + y) + x * t
    heat = lambda f: f.diff(t) - k * (f.diff(x, 2) + f.diff(y, 2))  # noqa: E731
    slope = nx * exact.diff(x) + ny * exact.diff(y)
    problem = ps.Problem(
        ps.Disc().named(right=x > 0),
        ps.Eq(heat(w), heat(exact)),
        {"right": ps.Robin(1, k, exact + k * slope), "*": ps.Dirichlet(exact)},
        initial=exact.subs(t, 0),
        times=np.linspace(0, 1, 3),
        exact=exact,
    )
    errors = []
    for n in (50, 200):
        model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=n), method="elements")
        errors.append(model.solve({"k": 0.8}, tolerance=1e-7).error)
    assert errors[1] < 6e-5
    assert np.log2(errors[0] / errors[1]) > 2.5


# ---- quantities, functions, non-affine coefficients ----------------------------------------------------------------------
def test_quantities_are_integrals_of_the_shape_functions():
    problem = ps.Problem(
        ps.Disc().named(right=x > 0),
        ps.Eq(poisson(u), 1),
        ps.Dirichlet(x),
        quantities={
            "mean": ps.Average(),
            "whole": ps.Integral(),
            "on the right": ps.Integral("right"),
            "through the right": ps.Flux("right"),
            "weighted": ps.Flux("right", x),
            "there": ps.PointValue((0.3, 0.2)),
        },
    )
    # u = x + (1 − r²)/4, n·grad u = cos(angle) − 1/2
    true = {
        "mean": 1 / 8,
        "whole": np.pi / 8,
        "on the right": 2.0,
        "through the right": 2 - np.pi / 2,
        "weighted": np.pi / 2 - 1,
        "there": 0.3 + 0.87 / 4,
    }
    found = solved(problem, 200)[1].quantities
    for name in true:
        assert found[name] == pytest.approx(true[name], abs=2e-3 if name in ("through the right", "weighted") else 1e-5)


def test_coefficients_that_cannot_be_separated_are_evaluated_at_the_points_of_the_integrals():
    (a,) = ps.parameters(a=(0.5, 2.0))
    k = 1 / (1 + a * x**2)  # no sum of products
    exact = sin(x + y)
    diffusion = lambda w: -(k * w.diff(x)).diff(x) - (k * w.diff(y)).diff(y)  # noqa: E731
    slope = nx * exact.diff(x) + ny * exact.diff(y)
    problem = ps.Problem(
        BOX.named(right=x > 0.999),
        ps.Eq(diffusion(u) + u / (3 + a * x), diffusion(exact) + exact / (3 + a * x)),
        {"right": ps.Robin(1, 1 + sin(a * y), exact + (1 + sin(a * y)) * slope), "*": ps.Dirichlet(exact)},
        exact=exact,
    )
    model, solution = solved(problem, 200)
    assert not problem.affine
    assert solution.error < 1e-5
    assert model.solve({"a": 1.9}).error < 1e-5


@pytest.mark.parametrize("where", ["source", "coefficient", "slope", "value"])
def test_function_parameters_are_what_the_elements_make_of_their_values(where):
    given = ps.FunctionParameter("f", ps.SphereField(2), on="boundary" if where in ("slope", "value") else "domain")
    exact = sin(x + 2 * y)
    parts = {"source": poisson(exact), "coefficient": 2 + x * y, "slope": EXACT, "value": exact}
    slope = nx * exact.diff(x) + ny * exact.diff(y)
    equation = {
        "source": ps.Eq(poisson(u), given),
        "coefficient": ps.Eq(poisson(u) + given * u, poisson(exact) + parts["coefficient"] * exact),
        "slope": ps.Eq(poisson(u), poisson(exact)),
        "value": ps.Eq(poisson(u), poisson(exact)),
    }[where]
    condition = {"slope": ps.Robin(1, 1, exact + slope - EXACT + given), "value": ps.Dirichlet(given)}.get(where)
    problem = ps.Problem(BOX, equation, condition or ps.Dirichlet(exact), exact=exact)
    model = ps.discretize(problem, ps.scatter(BOX, n_nodes=150), method="elements")
    values = sympy.lambdify((x, y), parts[where])(*model.inputs.points(given).T)
    assert model.solve(values).error < 1e-4


# ---- the model's other uses ------------------------------------------------------------------------------------------
def test_terms_are_affine_and_the_reduced_model_is_certified():
    a, h = ps.parameters(a=(0.5, 2.0), h=(0.5, 2.0))
    problem = ps.Problem(
        BOX.named(right=x > 0.999),
        ps.Eq(-u.diff(x, 2) - a * u.diff(y, 2), 1),
        {"right": ps.Robin(h, 1, h), "*": ps.Dirichlet(0)},
    )
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=60), method="elements")
    assert set(model.terms.operator_thetas) == {sympy.S.One, a, h}
    found = ps.greedy(model, tolerance=1e-5)
    assert found.reached
    assert found.proven == 1.0
    mu = [0.77, 1.23]
    exact = model.solve(mu).values
    gap = np.linalg.norm(found.reduced.solve([mu]).values[0] - exact) / np.linalg.norm(exact)
    assert gap < 1e-5


def test_the_number_of_nodes_is_about_the_usual_one():
    problem = ps.Problem(STAR, ps.Eq(poisson(u), 1), ps.Dirichlet(0))
    for degree in (2, 3, 4):
        assert ps.discretize(problem, method="elements", degree=degree).n_nodes == pytest.approx(2000, rel=0.02)


REFUSED = {
    "nonlinear": (ps.Problem(BOX, ps.Eq(poisson(u) + u**3, 1), ps.Dirichlet(0)), {}, "linear"),
    "not its flux": (
        ps.Problem(
            BOX, [ps.Eq(poisson(u), 0), ps.Eq(poisson(v), 0)], {"*": {u: ps.Dirichlet(0), v: ps.Eq(u.diff(x), 0)}}
        ),
        {},
        "does not state the flux",
    ),
    "along the boundary": (
        ps.Problem(ps.Disc(), ps.Eq(poisson(u), 1), ps.Eq(-ny * u.diff(x) + nx * u.diff(y), 0)),
        {},
        "does not state the flux",
    ),
    "other unknowns": (
        ps.Problem(BOX, [ps.Eq(poisson(u), 0), ps.Eq(poisson(v), 0)], {"*": {u: ps.Eq(u - v, 0), v: ps.Dirichlet(1)}}),
        {},
        "value of u itself",
    ),
    "jumps": (
        ps.Problem(
            BOX,
            ps.Eq(-sympy.Piecewise((1, x < 0.5), (2, True)) * u.diff(x, 2) - u.diff(y, 2), 1),
            ps.Dirichlet(0),
            nondivergence=True,
        ),
        {},
        "derivative of",
    ),
    "degree": (ps.Problem(BOX, ps.Eq(poisson(u), 1), ps.Dirichlet(0)), {"degree": 5}, "degree=5"),
    "kernel": (ps.Problem(BOX, ps.Eq(poisson(u), 1), ps.Dirichlet(0)), {"stencil_size": 30}, "stencil_size"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_elements_cannot_do_is_refused_with_a_line(case):
    problem, options, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        ps.discretize(problem, ps.scatter(problem.domain, n_nodes=60), method="elements", **options)


def test_without_the_package_the_line_says_how_to_install_it(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "skfem", None)
    problem = ps.Problem(BOX, ps.Eq(poisson(u), 1), ps.Dirichlet(0))
    with pytest.raises(ps.errors.NotInstalled, match=r"pip install scikit-fem"):
        ps.discretize(problem, method="elements")


# ---- materials -------------------------------------------------------------------------------------------------------
def test_two_layers_are_exact():
    (s,) = ps.coordinates("x")
    w = ps.unknown("w", s)
    domain = ps.Box(0.0, 1.0).regions(slow=s < 0.5)
    k = ps.by_region(slow=sympy.Rational(1, 10), otherwise=1)
    problem = ps.Problem(domain, ps.Eq(-ps.divergence(k * ps.gradient(w)), 1), ps.Dirichlet(0))
    _, solution = solved(problem, 9)
    assert solution.at([[0.5]])[0] == pytest.approx(5 / 22, abs=1e-12)


@pytest.mark.parametrize("inner", [1000.0, 0.001])
def test_concentric_discs_with_a_jump_converge_with_order_three(inner):
    domain = ps.Disc().regions(inner=ps.Disc((0, 0), 0.5))
    k = ps.by_region(inner=inner, otherwise=1)
    problem = ps.Problem(domain, ps.Eq(-ps.divergence(k * ps.gradient(u)), 1), ps.Dirichlet(0))
    errors = []
    for n in (100, 400):
        model, solution = solved(problem, n)
        square = np.sum(model.nodes.points**2, axis=1)
        exact = np.where(square > 0.25, (1 - square) / 4, 3 / 16 + (0.25 - square) / (4 * inner))
        errors.append(np.linalg.norm(solution.values - exact) / np.linalg.norm(exact))
    assert errors[1] < 8e-5
    assert np.log2(errors[0] / errors[1]) > 3


def test_the_thermal_block_has_one_term_for_each_material():
    a, b, c, d = ps.parameters(a=(0.1, 10), b=(0.1, 10), c=(0.1, 10), d=(0.1, 10))
    quarters = {"sw": ((0, 0), (0.5, 0.5)), "se": ((0.5, 0), (1, 0.5)), "nw": ((0, 0.5), (0.5, 1))}
    domain = BOX.regions(**{name: ps.Box(*corners) for name, corners in quarters.items()})
    k = ps.by_region(sw=a, se=b, nw=c, otherwise=d)
    problem = ps.Problem(domain, ps.Eq(-ps.divergence(k * ps.gradient(u)), 1), ps.Dirichlet(0))
    nodes = ps.scatter(domain, n_nodes=100)
    model = ps.discretize(problem, nodes, method="elements")
    assert set(model.terms.operator_thetas) == {a, b, c, d, sympy.S.One}
    # each material once on every cell: with equal ones it is Poisson's equation
    plain = ps.Problem(BOX, ps.Eq(poisson(u), 1), ps.Dirichlet(0))
    other = ps.discretize(plain, ps.scatter(BOX, n_nodes=400), method="elements").solve()
    np.testing.assert_allclose(model.solve([2, 2, 2, 2]).at([[0.5, 0.5]]), other.at([[0.5, 0.5]]) / 2, rtol=1e-4)
    # swapping the materials across a diagonal reflects the solution
    one, two = (model.solve(mu).at([[0.3, 0.6], [0.6, 0.3]]) for mu in ([0.2, 3, 5, 1], [0.2, 5, 3, 1]))
    np.testing.assert_allclose(one, two[::-1], rtol=2e-2)


def test_the_condition_on_the_flux_is_the_natural_one():
    a, h = ps.parameters(a=(0.1, 10), h=(0.5, 2))
    exact = sin(x + y)
    slope = nx * exact.diff(x) + ny * exact.diff(y)
    k = a * (1 + x**2)
    problem = ps.Problem(
        ps.Disc(),
        ps.Eq(-ps.divergence(k * ps.gradient(u)), -(k * exact.diff(x)).diff(x) - (k * exact.diff(y)).diff(y)),
        ps.NormalFlux(k * slope + h * (exact - u)),
        exact=exact,
    )
    model, solution = solved(problem, 200)
    assert solution.error < 1e-4
    assert set(model.terms.operator_thetas) == {a, h}


# ---- the program's own choice ----------------------------------------------------------------------------------------
ELL = ps.Box((-1, -1), (1, 1)) - ps.Box((0, -1), (1, 0))
RADIATING = ps.Problem(ELL, ps.Eq(poisson(u), 1), {"*": ps.Robin(1, 1, x)})


@pytest.mark.slow
def test_slopes_at_a_re_entrant_corner_are_solved_by_elements_with_a_word():
    with pytest.warns(ps.ParasolWarning, match="re-entrant corner .* solved by elements"):
        model = ps.discretize(RADIATING)
    assert model.elements is not None
    assert model.n_nodes == pytest.approx(2000, rel=0.02)


@pytest.mark.slow
def test_nodes_or_a_method_of_one_s_own_are_kept():
    nodes = ps.scatter(ELL, n_nodes=300)
    with pytest.warns(ps.ParasolWarning, match='method="elements"'):
        assert ps.discretize(RADIATING, nodes).elements is None
    with pytest.warns(ps.ParasolWarning):
        assert ps.discretize(RADIATING, method="stencils").elements is None


def test_without_the_package_stencils_are_used_and_the_word_says_how_to_install_it(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "skfem", None)
    with pytest.warns(ps.ParasolWarning, match=r"pip install scikit-fem"):
        assert ps.discretize(RADIATING).elements is None


def test_elements_are_made_again_to_the_last_bit():
    import json

    from parasol.cache.content import content_hash
    from parasol.pde.by_elements import by_elements_again, mesh_facts

    domain = ps.Disc().regions(inner=ps.Disc((0.1, 0), 0.5))
    k = ps.by_region(inner=2, otherwise=1)
    problem = ps.Problem(domain, ps.Eq(-ps.divergence(k * ps.gradient(u)), 1), ps.Dirichlet(0))
    model, solution = solved(problem, 80)
    held = json.loads(json.dumps(mesh_facts(model.elements)))
    again = by_elements_again(problem, model.nodes.points, held, step=None, integrator=None)
    assert content_hash(again.nodes) == content_hash(model.nodes)
    np.testing.assert_array_equal(again.solve().values, solution.values)
    with pytest.raises(ps.errors.FileError, match="does not fit"):
        by_elements_again(problem, model.nodes.points[:-1], held, step=None, integrator=None)


def test_conditions_on_values_with_factors_that_cannot_be_separated():
    (a,) = ps.parameters(a=(0.5, 2.0))
    factor = 1 + exp(a * x * y)
    condition = ps.Eq(factor * u, factor * EXACT)
    problem = ps.Problem(STAR, ps.Eq(poisson(u), poisson(EXACT)), condition, exact=EXACT)
    model = ps.discretize(problem, ps.scatter(STAR, n_nodes=100, rng=0), method="elements")
    assert model.solve({"a": 1.3}).error < 1e-5


def test_of_the_highest_degree_the_estimate_is_continued_from_lower_ones():
    problem = ps.Problem(BOX, ps.Eq(poisson(u), poisson(EXACT)), ps.Dirichlet(EXACT), exact=EXACT)
    _, solution = solved(problem, 100, degree=4)
    assert solution.error < 1e-7
    assert solution.discretisation == pytest.approx(solution.error, rel=0.5)


def test_the_estimate_of_the_error_compares_with_finer_elements():
    problem = ps.Problem(ELL, ps.Eq(poisson(u), 1), {"*": ps.Robin(1, 1, x)})
    model, solution = solved(problem, 100)
    fine = ps.discretize(problem, ps.scatter(ELL, n_nodes=1500), method="elements", degree=3).solve()
    true = fine.at(model.nodes.points)
    error = np.linalg.norm(solution.values - true) / np.linalg.norm(true)
    assert 1 / 3 < ps.learning.discretisation_error(model) / error < 3


def test_without_the_package_a_thin_region_is_left_to_stencils(monkeypatch):
    """So few corners as elements are tried on do not show the region; that the package is missing comes first."""
    from parasol.pde.by_elements import needs_elements
    from parasol.pde.placing import nodes_for

    x, y = ps.coordinates("x y")
    u = ps.unknown("u", x, y)
    domain = ps.Box((0, 0), (20, 4)).regions(die=ps.Box((8, 1.6), (12, 2.0)))
    k = ps.by_region(die=9, otherwise=1)
    problem = ps.Problem(domain, ps.Eq(-ps.divergence(k * ps.gradient(u)), 1), ps.Dirichlet(0))
    nodes = nodes_for(problem, ps.Settings(n_nodes=2500))
    monkeypatch.setitem(sys.modules, "skfem", None)
    with pytest.warns(ps.ParasolWarning, match="pip install scikit-fem"):
        assert needs_elements(problem, nodes) is None
