import pickle

import numpy as np
import pytest
from sympy import Eq, Function, Symbol, cos, cosh, exp, pi, sin

import parasol as ps
from parasol.checks import ParasolError
from parasol.expressions import as_function
from parasol.pde.equation import read_equation

x, y = ps.coordinates("x y")
u = ps.unknown("u", x, y)
a, k = ps.parameters(a=(0.1, 4.0), k=(0.0, 2.0))


def operator_terms(equation):
    return {(t.theta, t.derivative): t.coefficient for t in read_equation(equation, u).operator}


def test_the_paper_s_operator_has_three_affine_terms():
    form = read_equation(Eq(-u.diff(x, 2) - a * u.diff(y, 2) - k * u, -10 * sin(8 * x * (y - 1))), u)
    assert form.affine
    assert [(t.theta, t.coefficient, t.derivative) for t in form.operator] == [
        (1, -1, (2, 0)),
        (a, -1, (0, 2)),
        (k, -1, (0, 0)),
    ]
    assert [(t.theta, t.derivative) for t in form.source] == [(1, None)]


def test_a_divergence_is_expanded():
    terms = operator_terms(Eq(ps.divergence([(1 + a * x**2) * g for g in ps.gradient(u)], x, y), 0))
    assert terms == {(1, (2, 0)): 1, (a, (2, 0)): x**2, (1, (0, 2)): 1, (a, (0, 2)): x**2, (a, (1, 0)): 2 * x}


def test_mixed_and_high_derivatives():
    assert operator_terms(Eq(ps.laplacian(ps.laplacian(u)), 1)) == {(1, (4, 0)): 1, (1, (2, 2)): 2, (1, (0, 4)): 1}


@pytest.mark.parametrize("data", [exp(a + x), sin(a + k * 0 + x), (a + x) ** 2, 1 / (1 + a) * sin(x)])
def test_sums_and_products_are_separated(data):
    assert read_equation(Eq(u, data), u).affine


@pytest.mark.parametrize("data", [exp(a * x), sin(a * x), 1 / (a + x)])
def test_what_cannot_be_separated_is_said(data):
    form = read_equation(Eq(u, data), u)
    assert not form.affine
    assert len(form.source) == 1


def test_separated_terms_add_up_to_the_equation():
    rng = np.random.default_rng(0)
    data = (1 + a * x) ** 2 * sin(k + y) + exp(a - x)
    form = read_equation(Eq(u, data), u)
    for _ in range(5):
        at = dict(zip((x, y, a, k), rng.random(4), strict=True))
        total = sum((t.theta * t.coefficient).subs(at) for t in form.source)
        assert float(total) == pytest.approx(float(data.subs(at)), rel=1e-12)


def test_what_does_not_separate_stays_as_it_was_written():
    data = exp(-((x - a) ** 2 + (y - a) ** 2) / 0.06**2)
    form = read_equation(Eq(-ps.laplacian(u), data + 2 * sin(x)), u)
    assert [(t.theta, t.coefficient) for t in form.source] == [(1, data + 2 * sin(x))]
    coefficient = exp(-((x - a) ** 2) / 0.01**2)
    form = read_equation(Eq(coefficient * (ps.laplacian(u) + u), 0), u)
    assert {t.coefficient for t in form.operator} == {coefficient}


(far,) = ps.parameters(far=(100.0, 101.0))


@pytest.mark.parametrize(
    ("data", "low", "high"),
    [
        (exp(-1000 * (x + a)), -1, 1),
        (exp(20 * (x - far)), 100, 101),
        ((x - far) ** 8, 100, 101),
        (cosh(20 * (x - a)), 0, 4),
    ],
)
def test_separation_that_would_cost_the_digits_is_left_alone(data, low, high):
    form = read_equation(Eq(u, data), u, ranges={x: (low, high)})
    assert [(t.theta, t.coefficient) for t in form.source] == [(1, data)]


@pytest.mark.parametrize(
    ("data", "n_terms"),
    [(sin(30 * (x + a)), 2), (cos(pi * (x - a)), 2), ((1 + a) ** 20 * sin(x), 1), (2 ** (a + x) * (x + y) ** 9, 1)],
)
def test_separated_terms_keep_the_digits(data, n_terms):
    form = read_equation(Eq(u, data), u)
    assert form.affine
    assert len(form.source) == n_terms
    columns = [np.linspace(0, 1, 50), np.linspace(0, 1, 50), np.linspace(0.1, 4, 50)]
    values = sum(as_function(t.theta * t.coefficient, [x, y, a])(*columns) for t in form.source)
    np.testing.assert_allclose(values, as_function(data, [x, y, a])(*columns), atol=1e-11 * np.max(np.abs(values)))


def test_coefficients_that_cancel_leave_no_term():
    assert operator_terms(Eq(((x + 1) ** 2 - x**2 - 2 * x - 1) * u.diff(x, 2) + a * u, 1)) == {(a, (0, 0)): 1}


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        (Eq(x, 1), "does not contain the unknown"),
        (Eq(ps.laplacian(u), Symbol("q")), "contains q"),
        (Eq(u, u), "simply True"),
        (Eq(u, Function("v")(x)), "v\\(x\\)"),
        ("u = 1", "Write ps.Eq"),
    ],
)
def test_equations_that_are_refused(equation, message):
    with pytest.raises(ParasolError, match=message):
        read_equation(equation, u)


def test_coordinates_and_unknown_are_checked():
    with pytest.raises(ParasolError, match="one, two or three"):
        ps.coordinates("x y z t")
    with pytest.raises(ParasolError, match="depends on nothing"):
        ps.unknown("u")


def test_parameters_know_their_range_and_survive_a_copy():
    (b,) = ps.parameters(b=(0.1, 10.0, "log"))
    assert b.middle == pytest.approx(1.0)
    expression = pickle.loads(pickle.dumps(b * a + sin(b)))
    assert expression == b * a + sin(b)
    (other,) = ps.parameters(b=(0.1, 10.0, "log"))
    assert other != b  # two declarations are two parameters


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"a": (1.0, 1.0)}, "low < high"),
        ({"a": (0.0, 1.0, "log")}, "low > 0"),
        ({"a": (0.0, 1.0, "sqrt")}, "sqrt"),
        ({"a": 3.0}, r"a=\(low, high\)"),
        ({"a": ("x", 1.0)}, "two numbers"),
    ],
)
def test_bad_ranges(ranges, message):
    with pytest.raises(ParasolError, match=message):
        ps.parameters(**ranges)


def test_parameter_space_keeps_the_order_of_declaration():
    z2, a2 = ps.parameters(z2=(0, 1), a2=(0, 1))
    problem = ps.Problem(ps.Disc(), Eq(-ps.laplacian(u) + a2 * u, z2), ps.Dirichlet(0))
    assert problem.parameters.names == ("z2", "a2")
    grid = problem.parameters.grid(2, 3)
    np.testing.assert_allclose(grid[:3], [[0, 0], [0, 0.5], [0, 1]])


def test_log_scales_are_respected():
    (b,) = ps.parameters(b=(0.01, 100.0, "log"))
    problem = ps.Problem(ps.Disc(), Eq(-ps.laplacian(u), b), ps.Dirichlet(0))
    np.testing.assert_allclose(problem.parameters.grid(5)[:, 0], [0.01, 0.1, 1, 10, 100], rtol=1e-12)
