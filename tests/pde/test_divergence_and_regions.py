"""Divergence form and values by region, as they are read: fluxes, forms in each region, conditions on the flux."""

import pickle

import numpy as np
import pytest
import sympy
from sympy import Eq, Symbol, exp, sin

import parasol as ps
from parasol.cache.content import content_hash
from parasol.errors import InputError
from parasol.pde.fluxes import balance
from parasol.pde.regions import Region
from parasol.pde.text import equation_latex, equation_texts
from parasol.pde.vectors import Divergence

x, y = ps.coordinates("x y")
t = ps.time()
u, v = ps.unknowns("u v", x, y)
(m,) = ps.parameters(m=(0.1, 10.0, "log"))
nx, ny = ps.normal(x, y)


SQUARE = ps.Box((0, 0), (1, 1))
LAYERS = SQUARE.regions(left="x < 0.3", middle="x < 0.6")
K = ps.by_region(left=m, otherwise=1)


def problem(equation, boundary=None, domain=LAYERS, **options):
    equation = equation if isinstance(equation, list | sympy.Equality) else Eq(equation, 1)
    return ps.Problem(domain, equation, ps.Dirichlet(0) if boundary is None else boundary, **options)


def terms(form):
    return {(t.unknown, t.derivative): sympy.simplify(t.theta * t.coefficient) for t in form.operator}


# ---- divergence -----------------------------------------------------------------------------------------------------
def test_a_divergence_with_an_unknown_stays_one():
    d = ps.divergence((1 + x * m) * ps.gradient(u))
    assert isinstance(d, Divergence)
    assert (-2 * m * d).has(Divergence)
    assert str(d).startswith("div(")
    assert sympy.latex(d).startswith(r"\nabla")
    assert pickle.loads(pickle.dumps(d)) == d
    written = ((1 + x * m) * u.diff(x)).diff(x) + ((1 + x * m) * u.diff(y)).diff(y)
    assert sympy.expand(d.doit() - written) == 0
    assert sympy.expand(d.diff(m).doit() - written.diff(m)) == 0
    assert sympy.expand(d.diff(x).doit() - written.diff(x).doit()) == 0
    assert sympy.expand(d.subs(u, x**2 * y).doit() - written.subs(u, x**2 * y).doit()) == 0
    assert d.subs(m, 3) == d.xreplace({m: sympy.Integer(3)}) == ps.divergence((1 + 3 * x) * ps.gradient(u))
    assert sympy.expand(d.xreplace({u: v}) - ps.divergence((1 + x * m) * ps.gradient(v))) == 0
    assert d.subs(u, x**2 * y).subs(x, 2).doit() == written.subs(u, x**2 * y).doit().subs(x, 2)
    assert content_hash(d) != content_hash(written)


def test_a_divergence_is_read_as_what_it_stands_for():
    k = 2 + sin(x) * m + u**2
    for factor in (1, -3, m, 1 / (1 + x)):
        for flux in ((1 + m * x) * ps.gradient(u), k * ps.gradient(u), (x * u, y * u.diff(x))):
            kept = problem(factor * ps.divergence(flux, x, y) + u, domain=SQUARE)
            carried = problem(factor * ps.divergence(flux, x, y).doit() + u, domain=SQUARE)
            (one,), (other,) = kept.forms, carried.forms
            assert one.operator == other.operator
            assert one.source == other.source
            jets = {a.symbol: b.symbol for a, b in zip(one.jets, other.jets, strict=True)}
            assert one.nonlinear.xreplace(jets) == other.nonlinear


def test_a_divergence_of_a_solution_put_in_is_known():
    exact = exp(x) * y
    d = -ps.divergence((1 + x) * ps.gradient(u))
    read = problem(Eq(d, d.subs(u, exact)), ps.Dirichlet(exact), SQUARE, exact=exact)
    assert dict(read.balances[0].flux)[x] == (1 + x) * u.diff(x)
    assert ps.discretize(read, ps.scatter(SQUARE, n_nodes=300)).solve().error < 1e-4


# ---- the flux of an equation ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("equation", "flux", "written"),
    [
        (-ps.divergence(K * ps.gradient(u)), K * u.diff(x), 1),
        (ps.divergence(K * ps.gradient(u)) + u, -K * u.diff(x), -1),  # as written it is K grad u too
        (Eq(u, ps.divergence(K * ps.gradient(u))), K * u.diff(x), 1),
        (-2 * m * ps.divergence(K * ps.gradient(u)), 2 * m * K * u.diff(x), 0),
        (-ps.divergence(K * ps.gradient(u)) + ps.divergence((x * u, u), x, y), K * u.diff(x) - x * u, 1),
        (-m * (ps.divergence(K * ps.gradient(u)) - u), m * K * u.diff(x), 0),
        (-x * ps.divergence(K * ps.gradient(u)), K * u.diff(x), 0),  # x times a function, not a flux x K grad u
        (-K * ps.divergence(K * ps.gradient(u)), K * u.diff(x), 0),
        (-ps.divergence((u.diff(x),), x) - ps.divergence((K * u.diff(y),), y), u.diff(x), 1),
    ],
)
def test_the_flux_is_known(equation, flux, written):
    found = balance(equation)
    assert found.written == written
    assert sympy.expand(dict(found.flux)[x] - flux) == 0
    left = equation.lhs - equation.rhs if isinstance(equation, Eq) else equation
    again = -found.factor * Divergence(dict(found.flux).values(), dict(found.flux).keys()) + found.rest
    assert sympy.expand((again - left).doit()) == 0


@pytest.mark.parametrize(
    "equation",
    [
        -ps.laplacian(u),
        ps.divergence(K * ps.gradient(u)) ** 2,
        sin(ps.divergence(K * ps.gradient(u))),
        -ps.divergence(ps.gradient(u)) + x * ps.divergence((K * u, u), x, y),
    ],
)
def test_no_flux_where_none_is_known(equation):
    assert balance(equation) is None


def test_fluxes_in_regions():
    read = problem(-ps.divergence(K * ps.gradient(u)))
    for region, k in enumerate((m, 1, 1)):
        assert terms(read.fluxes_in(region)[0]) == {(0, (1, 0)): k * nx, (0, (0, 1)): k * ny}
    plain = problem(-ps.divergence(m * ps.gradient(u)), domain=SQUARE)
    assert terms(plain.fluxes_in(None)[0]) == {(0, (1, 0)): m * nx, (0, (0, 1)): m * ny}
    assert problem(-ps.laplacian(u), domain=SQUARE).fluxes_in(None) == (None,)
    # all second derivatives outside: the slopes are continuous, whatever stands under the divergence
    assert problem(-ps.laplacian(u) + ps.divergence((x * u, u), x, y) + K * u).fluxes_in(0) == (None,)
    moving = problem(-ps.divergence(ps.gradient(u)) + ps.divergence((K * u, 0), x, y))
    assert terms(moving.fluxes_in(0)[0]) == {(0, (1, 0)): nx, (0, (0, 1)): ny, (0, (0, 0)): -m * nx}
    nonlinear = problem(-ps.divergence((K + u**2) * ps.gradient(u)))
    assert nonlinear.fluxes_in(1)[0].order == 1
    assert not nonlinear.fluxes_in(1)[0].linear


# ---- values by region -----------------------------------------------------------------------------------------------
def test_each_region_has_its_equation():
    source, reaction = ps.by_region(left=0.1, middle=x, otherwise=0), ps.by_region(middle=2, otherwise=0)
    read = problem(Eq(-ps.divergence(K * ps.gradient(u)) + reaction * u, source))
    assert read.region_names == ("left", "middle", "otherwise")
    for region, (k, c, f) in enumerate(((m, 0, 0.1), (1, 2, x), (1, 0, 0))):
        (form,) = read.forms_in(region)
        wanted = {(0, (2, 0)): -k, (0, (0, 2)): -k} | ({(0, (0, 0)): c} if c else {})
        assert terms(form) == wanted
        assert sum(t.theta * t.coefficient for t in form.source) == f  # to the last bit
    assert read.forms == read.forms_in(0) + read.forms_in(1) + read.forms_in(2)
    assert read.affine
    assert [p.name for p in read.parameters.scalars] == ["m"]
    assert read.time_order == 0


def test_values_by_region_behave():
    assert pickle.loads(pickle.dumps(K)) == K
    assert content_hash(K) != content_hash(ps.by_region(middle=m, otherwise=1))
    assert content_hash(Region("a", ("a", "b"))) != content_hash(Region("a", ("a", "c")))
    assert ps.by_region(otherwise=3) == 3
    assert K.diff(x) == 0
    assert K.diff(m) == Region("left")
    # a parameter or a coordinate of the same name is another symbol
    assert Symbol("left") != Region("left")
    read = problem(-ps.divergence(K * ps.gradient(u)))
    assert equation_texts(read) == ["-div(u_x*(m*[left] + [otherwise]), u_y*(m*[left] + [otherwise])) = 1"]
    assert r"\nabla\cdot" in equation_latex(read)[0]
    assert r"1_{\mathrm{left}}" in equation_latex(read)[0]
    assert pickle.loads(pickle.dumps(read)).forms == read.forms


def test_nonlinear_equations_systems_and_evolutions_differ_by_region():
    w = ps.unknown("w", x, y, t)
    heat = ps.Problem(
        LAYERS,
        Eq(ps.by_region(left=2, otherwise=1) * w.diff(t), ps.divergence(K * (1 + w**2) * ps.gradient(w))),
        ps.Dirichlet(0),
        initial=ps.by_region(left=1, middle=x, otherwise=m),
        times=[0, 1],
    )
    assert [form.operator[0].coefficient for form in heat.forms] == [2, 1, 1]
    points = np.array([[0.1, 0.5], [0.5, 0.5], [0.9, 0.5]])
    assert heat.evaluate(heat.initial_states["w"], points, np.array([7.0])).tolist() == [1.0, 0.5, 7.0]
    both = problem([-ps.divergence(K * ps.gradient(u)) + v, -ps.laplacian(v) + K * u], [ps.Dirichlet(0)] * 2)
    assert len(both.forms) == 6
    assert both.fluxes_in(0)[1] is None


def test_an_exact_solution_may_differ_by_region():
    read = problem(-ps.divergence(K * ps.gradient(u)), exact=ps.by_region(left=x, otherwise=1))
    at = np.array([[0.1, 0.5], [0.9, 0.5]])
    assert read.evaluate(read.exact_solutions.values(), at, np.array([1.0])).tolist() == [0.1, 1.0]


@pytest.mark.parametrize(
    ("k", "words"),
    [
        (ps.by_region(inclusion=2, otherwise=1), "region 'inclusion', which the domain does not have"),
        (ps.by_region(left=2, middle=1), "none for the region 'otherwise'"),
        (ps.by_region(left=2, middle=1, right=3), "'right', which the domain does not have"),
    ],
)
def test_regions_that_are_wrong_are_refused(k, words):
    for equation, options in (
        (-ps.divergence(k * ps.gradient(u)), {}),
        (Eq(-ps.laplacian(u), k), {}),
        (-ps.laplacian(u), {"boundary": ps.Dirichlet(k)}),
        (-ps.laplacian(u), {"boundary": {"*": Eq(u, k)}}),
        (-ps.laplacian(u), {"exact": k}),
    ):
        with pytest.raises(InputError, match=words):
            problem(equation, **options)
    with pytest.raises(InputError, match="Its regions are: none"):
        problem(-ps.divergence(k * ps.gradient(u)), domain=SQUARE)


def test_values_that_are_no_values_are_refused():
    with pytest.raises(InputError, match="no values"):
        ps.by_region()
    with pytest.raises(InputError, match="itself by region"):
        ps.by_region(left=K, otherwise=1)
    with pytest.raises(InputError, match="neither a finite number"):
        ps.by_region(left="2", otherwise=1)


@pytest.mark.parametrize(
    "equation",
    [
        -K * ps.laplacian(u),
        -(K * u.diff(x)).diff(x) - u.diff(y, 2),
        -((1 + K) * u.diff(x)).diff(x) - u.diff(y, 2),
        -ps.divergence(K * ps.gradient(u)).doit(),
        -ps.divergence(ps.gradient(u)) - K * u.diff(x, y),
        -(u.diff(x, 2) ** 3) * K - u.diff(y, 2),
    ],
)
def test_a_jump_outside_of_a_divergence_is_refused(equation):
    with pytest.raises(InputError, match=r"Write ps.divergence\(k\*ps.gradient\(u\)\)"):
        problem(equation)
    problem(equation, nondivergence=True)


def test_fluxes_that_are_ambiguous_are_refused():
    for within in (K * ps.gradient(u), K * u * ps.gradient(x, x, y)):
        with pytest.raises(InputError, match="together they are one flux"):
            problem(-ps.divergence(within) - ps.laplacian(u))
    # a kink of u in the equation of v, where its second derivatives stand outside of a divergence
    kinked = [-ps.divergence(K * ps.gradient(u)), -ps.laplacian(v) - ps.laplacian(u)]
    with pytest.raises(InputError, match="together they are one flux"):
        problem([Eq(left, 0) for left in kinked], [ps.Dirichlet(0)] * 2)
    kinked[1] = -ps.divergence(ps.gradient(v) + ps.gradient(u))
    problem([Eq(left, 0) for left in kinked], [ps.Dirichlet(0)] * 2)
    with pytest.raises(InputError, match="no derivatives of the unknown: where it is continuous, the unknown jumps"):
        problem(u + ps.divergence((K * u, u), x, y))
    w = ps.unknown("w", x, y, t)
    with pytest.raises(InputError, match="has a derivative in time"):
        ps.Problem(LAYERS, Eq(w.diff(t), ps.divergence(K * ps.gradient(w + w.diff(t)))), ps.Dirichlet(0), initial=0)
    for other in (x * ps.divergence((u, u), x, y), K * ps.divergence((u, u), x, y)):
        with pytest.raises(InputError, match="different factors"):
            problem(-ps.divergence(K * ps.gradient(u)) + other)
    with pytest.raises(InputError, match="different factors"):
        problem(sin(ps.divergence(K * ps.gradient(u))))
    # one factor for all of them: the divergence is a function, so the flux is continuous
    problem(-K * ps.divergence(K * ps.gradient(u)) + x)
    problem(-ps.divergence(ps.gradient(u)) - ps.laplacian(u) + K * u)


# ---- conditions on the flux -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("sign", [1, -1])
def test_the_normal_flux_is_that_under_the_divergence(sign):
    """Whether the equation is written with the divergence on the left or on the right, n·(K grad u) = g."""
    read = problem(Eq(sign * ps.divergence(K * ps.gradient(u)), x), ps.NormalFlux(m * (2 - u)))
    for region, k in enumerate((m, 1, 1)):
        (form,) = read.conditions_in(region)["left"]
        assert terms(form) == {(0, (1, 0)): k * nx, (0, (0, 1)): k * ny, (0, (0, 0)): m}
        assert [t.theta * t.coefficient for t in form.source] == [2 * m]
    assert read.conditions == read.conditions_in(0)


def test_conditions_differ_by_region():
    read = problem(-ps.laplacian(u), {"left": ps.Dirichlet(K), "*": ps.Robin(K, 1, 0)})
    assert [t.theta for t in read.conditions_in(0)["left"][0].source] == [m]
    assert terms(read.conditions_in(1)["right"][0])[0, (0, 0)] == 1


def test_a_traction_is_the_flux_of_its_equation():
    young, strain = ps.by_region(left=m, otherwise=1), (u.diff(x), (u.diff(y) + v.diff(x)) / 2, v.diff(y))
    rows = [young * strain[0], young * strain[1]], [young * strain[1], young * strain[2]]
    read = problem([Eq(-ps.divergence(row, x, y), 0) for row in rows], [ps.NormalFlux(0), ps.NormalFlux(m)])
    first, second = read.conditions_in(0)["top"]
    assert terms(first) == {(0, (1, 0)): m * nx, (0, (0, 1)): m * ny / 2, (1, (1, 0)): m * ny / 2}
    assert terms(second) == {(0, (0, 1)): m * nx / 2, (1, (1, 0)): m * nx / 2, (1, (0, 1)): m * ny}
    assert [t.theta for t in second.source] == [m]


@pytest.mark.parametrize(
    ("equation", "words"),
    [
        (-ps.laplacian(u), "has no ps.divergence"),
        (-ps.laplacian(u) + ps.divergence((u, u), x, y), "second derivatives outside of it"),
        (-m * ps.divergence(ps.gradient(u)), "Write them under the divergence"),
        (-ps.divergence(ps.gradient(u)) / (1 + x), "Write them under the divergence"),
        (ps.divergence((u.diff(x),), x) - ps.divergence((u.diff(y),), y), "opposite signs"),
    ],
)
def test_a_flux_that_is_not_known_is_refused(equation, words):
    with pytest.raises(InputError, match=words):
        problem(equation, {"left": ps.Dirichlet(0), "*": ps.NormalFlux(0)}, SQUARE)


def test_heat_transfer_by_the_normal_flux_is_solved():
    """-(k u')' = 1 with k = 2 + x, u(0) = 0, k u'(1) = 3 (1/2 - u(1)); by hand: k u' = c - x."""
    (s,) = ps.coordinates("s")
    w = ps.unknown("w", s)
    conditions = {"left": ps.Dirichlet(0), "right": ps.NormalFlux(3 * (sympy.Rational(1, 2) - w))}
    read = ps.Problem(ps.Box(0.0, 1.0), Eq(-ps.divergence((2 + s) * ps.gradient(w)), 1), conditions)
    model = ps.discretize(read, ps.scatter(read.domain, n_nodes=60))
    rate = np.log(1.5)  # u = (c + 2) log((2 + s)/2) - s
    c = (2.5 + 3 - 6 * rate) / (1 + 3 * rate)
    at = model.nodes.points[:, 0]
    assert np.max(np.abs(model.solve().values - (c + 2) * np.log(1 + at / 2) + at)) < 1e-8


def test_a_first_derivative_by_region_is_said_to_be_read_as_it_stands():
    from parasol.pde.rough import rough_places

    nodes = ps.scatter(SQUARE, n_nodes=100)
    said = rough_places(problem(-ps.laplacian(u) + (K * u).diff(x)), nodes)
    assert any("read as b u_x" in line for line in said)
    flux = problem(-ps.divergence(ps.gradient(u)) + ps.divergence((K * u, 0), x, y))
    assert not any("read as b u_x" in line for line in rough_places(flux, nodes))


def test_a_region_without_second_derivatives_is_refused():
    with pytest.raises(InputError, match="u has second derivatives, but none in the region 'left'"):
        problem(-ps.divergence(ps.by_region(left=0, otherwise=1) * ps.gradient(u)) + u)
    both = [-ps.divergence(ps.by_region(left=0, otherwise=1) * ps.gradient(u)) - ps.divergence(ps.gradient(v)), v - u]
    with pytest.raises(InputError, match="u has second derivatives, but none in the region 'left'"):
        problem([Eq(left, 0) for left in both], [ps.Dirichlet(0)] * 2)


# ---- the flux as a quantity -----------------------------------------------------------------------------------------
def rows(read, nodes):
    from parasol.pde.quantities import quantity_rows
    from parasol.space.stencils import default_scheme

    return quantity_rows(read.functionals, nodes, default_scheme(2), read.names).rows


def test_a_flux_without_coefficient_is_that_of_the_equation():
    """For u = x² + y and k = 1 + x, the flux k grad u through the right side of the unit square is 2 · 2 = 4."""
    nodes = ps.scatter(SQUARE, n_nodes=200)
    values, k = nodes.points[:, 0] ** 2 + nodes.points[:, 1], 1 + x
    wanted = {"own": ps.Flux("right"), "slope": ps.Flux("right", 1), "top": ps.Flux("top"), "all": ps.Flux()}
    for equation in (-ps.divergence(k * ps.gradient(u)), ps.divergence(k * ps.gradient(u)) + m * u):
        read = problem(equation, domain=SQUARE, quantities=wanted)
        assert rows(read, nodes) @ values == pytest.approx([4, 2, 1.5, 4 + 1.5 - 1.5], abs=1e-6)
    plain = problem(-k * ps.laplacian(u), domain=SQUARE, quantities=wanted)
    assert rows(plain, nodes) @ values == pytest.approx([2, 2, 1, 2], abs=1e-6)
    # the advective part belongs to the flux: 4 - ∫ (1 + y) dy
    flux = k * ps.gradient(u) - (u, 0)
    moving = problem(-ps.divergence(flux), domain=SQUARE, quantities={"own": ps.Flux("right")})
    assert rows(moving, nodes) @ values == pytest.approx([2.5], abs=1e-6)


def test_the_flux_of_a_system_is_the_traction():
    nodes = ps.scatter(SQUARE, n_nodes=200)
    stress = [2 * u.diff(x), u.diff(y) + v.diff(x)], [u.diff(y) + v.diff(x), 2 * v.diff(y)]
    equations = [Eq(-ps.divergence(row, x, y), 0) for row in stress]
    wanted = {name: ps.Flux("right", of=name) for name in ("u", "v")}
    read = problem(equations, [ps.Dirichlet(0)] * 2, SQUARE, quantities=wanted)
    at, up = nodes.points.T
    assert rows(read, nodes) @ np.concatenate([3 * at, at**2 + up]) == pytest.approx([6, 2], abs=1e-6)


@pytest.mark.parametrize(
    ("equation", "words"),
    [
        (-ps.divergence(sympy.exp(m * x) * ps.gradient(u)), r"depends on m not as a sum.*coefficient=\.\.\."),
        (-ps.divergence((1 + u**2) * ps.gradient(u)), "not linear in the unknowns"),
        (-ps.divergence(ps.gradient(u + x)), "a part without them"),
        (-2 * ps.divergence(ps.gradient(u)), "have factors"),
    ],
)
def test_a_flux_that_has_no_weights_is_refused(equation, words):
    with pytest.raises(InputError, match=words):
        problem(equation, domain=SQUARE, quantities={"out": ps.Flux("left")})
    problem(equation, domain=SQUARE, quantities={"out": ps.Flux("left", coefficient=1)})


@pytest.mark.slow
def test_quantities_do_not_look_across_interfaces():
    """u = k⁻¹ x joined at the interfaces: slopes 1, 1/2 and 1/4 where k is 1, 2 and 4, so that the flux is 1 everywhere."""
    nodes, k = ps.scatter(LAYERS, n_nodes=400), ps.by_region(left=1, middle=2, otherwise=4)
    at = nodes.points[:, 0]
    values = np.interp(at, [0, 0.3, 0.6, 1], [0, 0.3, 0.45, 0.55])
    wanted = {
        "through": ps.Flux("right"),
        "bottom": ps.Flux("bottom"),
        "slope": ps.Flux("left", coefficient=1),
        "weighted": ps.Flux("right", coefficient=ps.by_region(otherwise=8, left=0)),
        "beside": ps.PointValue((0.31, 0.5)),
        "below": ps.Integral("bottom"),
        "over": ps.Integral(),
    }
    read = problem(-ps.divergence(k * ps.gradient(u)), quantities=wanted)
    below = 0.3**2 / 2 + 0.3 * (0.3 + 0.45) / 2 + 0.4 * (0.45 + 0.55) / 2
    assert rows(read, nodes) @ values == pytest.approx([1, 0, -1, 2, 0.305, below, below], abs=1e-5)
    round_, counts, errors = ps.Box((-1, -1), (1, 1)).regions(inclusion=ps.Disc(radius=0.5)), (400, 1600), []
    for count in counts:
        inner = ps.scatter(round_, n_nodes=count)
        cone = np.minimum(np.linalg.norm(inner.points, axis=1) - 0.5, 0)
        mean = problem(-ps.laplacian(u), domain=round_, quantities={"mean": ps.Average()})
        errors.append(abs(float((rows(mean, inner) @ cone)[0]) + np.pi / 96))
    assert errors[1] < errors[0] < 1e-4  # 7e-4 with stencils across the interface
    # what does not separate may stand in the flux of regions that the part does not touch
    odd = ps.by_region(left=sympy.exp(m * x), otherwise=1)
    read = problem(-ps.divergence(odd * ps.gradient(u)), quantities={"right": ps.Flux("right")})
    assert rows(read, nodes) @ at == pytest.approx([1], abs=1e-6)
    read = problem(-ps.divergence(odd * ps.gradient(u)), quantities={"left": ps.Flux("left")})
    with pytest.raises(InputError, match="through left is the flux of the equation, which depends on m not as a sum"):
        rows(read, nodes)
    with pytest.raises(InputError, match="'rim', which the domain does not have"):
        problem(-ps.laplacian(u), quantities={"out": ps.Flux(coefficient=ps.by_region(rim=1, otherwise=0))})


def test_a_condition_on_the_flux_of_another_unknown_is_refused():
    equations = [Eq(-ps.divergence(ps.gradient(w)), 0) for w in (v, u)]
    with pytest.raises(InputError, match="of u is on the flux of equation 1, which does not contain u"):
        problem(equations, [ps.NormalFlux(u), ps.Dirichlet(0)], SQUARE)
    problem(equations[::-1], [ps.NormalFlux(u), ps.Dirichlet(0)], SQUARE)


def test_regions_in_a_periodic_box_go_round():
    """u = (x - 1/2) sin(2πy) / k has the flux (x - 1/2) ∇ sin + sin e_x, continuous at x = 1/2."""
    box, k = ps.Box((0, 0), (1, 1), periodic=("y",)).regions(one=x < 0.5), ps.by_region(one=1, otherwise=4)
    wave = (x - 0.5) * sin(2 * sympy.pi * y)
    equation = Eq(-ps.divergence(k * ps.gradient(u)), 4 * sympy.pi**2 * wave)
    read = problem(
        equation, ps.Dirichlet(wave / k), box, exact=wave / k, quantities={"point": ps.PointValue((0.75, 1.0))}
    )
    coarse, fine = (ps.discretize(read, ps.scatter(box, n_nodes=n)).solve() for n in (400, 1600))
    assert coarse.error < 1e-4
    assert fine.error < coarse.error / 8
    assert abs(float(np.squeeze(fine.quantities["point"]))) < 1e-6


def test_values_that_jump_at_the_end_of_an_interface_are_said_to():
    from parasol.pde.rough import rough_places

    nodes = ps.scatter(LAYERS, n_nodes=400)
    for value, jumps in ((ps.by_region(left=2, otherwise=1), True), (ps.by_region(left=x, otherwise=0.3), False)):
        read = problem(-ps.divergence(K * ps.gradient(u)), {"bottom": ps.Dirichlet(value), "*": ps.NormalFlux(0)})
        said = [line for line in rough_places(read, nodes) if "values given for u on the boundary jump" in line]
        assert all("jump at x = 0.3" in line for line in said)  # at a node beside it
        assert bool(said) == jumps
