"""Claims of order are tests of slopes: refine three times, fit the exponent."""

import numpy as np
import pytest
from sympy import cos, exp, sin

import parasol as ps


def slope(h, errors):
    return np.polyfit(np.log(h), np.log(errors), 1)[0]


def plane_problem(condition):
    x, y = ps.coordinates("x y")
    u = ps.unknown("u", x, y)
    exact = 2 + x - y / 2 + sin(3 * x + 1) * cos(2 * y - 1)  # without symmetry, nowhere zero on the boundary
    slope = x * exact.diff(x) + y * exact.diff(y)  # the disc's normal by its formula: a wrong one shows
    data = {
        "dirichlet": ps.Dirichlet(exact),
        "neumann": ps.Neumann(slope),
        "robin": ps.Robin(2 + x, 1, (2 + x) * exact + slope),
    }[condition]

    def operator(v):
        return -ps.laplacian(v, x, y) + v

    return ps.Problem(ps.Disc(), ps.Eq(operator(u), operator(exact)), data, exact=exact)


def space_problem(condition):
    x, y, z = ps.coordinates("x y z")
    u = ps.unknown("u", x, y, z)
    exact = 2 + x + exp(x) * sin(y + 2 * z + 1)
    flux = sum(a * b for a, b in zip((x, y, z), ps.gradient(exact, x, y, z), strict=True))
    data = ps.Dirichlet(exact) if condition == "dirichlet" else ps.Neumann(flux)

    def operator(v):
        return -ps.laplacian(v, x, y, z) + v

    return ps.Problem(ps.Ball((0, 0, 0), 1.0), ps.Eq(operator(u), operator(exact)), data, exact=exact)


def observed_order(problem, counts, **options):
    errors = []
    for count in counts:
        # two node sets per size: one alone scatters by a factor of two
        pairs = [
            ps.discretize(problem, ps.scatter(problem.domain, n_nodes=count, rng=seed), **options) for seed in (0, 1)
        ]
        errors.append(np.sqrt(np.prod([model.solve().error for model in pairs])))
    return slope(np.array(counts) ** (-1 / problem.domain.dimension), errors), errors


@pytest.mark.parametrize(
    ("condition", "degree"),
    [
        *[("dirichlet", p) for p in (2, 3, 4)],
        pytest.param("dirichlet", 6, marks=pytest.mark.slow),
        *[("neumann", p) for p in (2, 3, 5)],
        ("robin", 4),
    ],
)
def test_order_in_the_plane(condition, degree):
    order, errors = observed_order(plane_problem(condition), (700, 1400, 2800, 4200), degree=degree)
    assert order >= degree - 1 - 0.2, (order, errors)


@pytest.mark.parametrize("named", [False, True])
def test_order_on_a_box_with_another_condition_on_every_side(named):
    # parts named as users do: the expressions also hold on slivers of the neighbouring sides
    x, y = ps.coordinates("x y")
    u = ps.unknown("u", x, y)
    exact = 2 + x - y / 2 + sin(3 * x + 1) * cos(2 * y - 1)

    def operator(v):
        return -((1 + x**2) * v.diff(x)).diff(x) - 2 * v.diff(y, 2) + v.diff(x, y) / 2 + v.diff(y) + v

    sides = {
        "left": ps.Dirichlet(exact),
        "right": ps.Neumann(exact.diff(x)),
        "bottom": ps.Robin(1 + x, 2, (1 + x) * exact - 2 * exact.diff(y)),
        "top": ps.Eq(u.diff(y) + u.diff(x) / 3 + u, exact.diff(y) + exact.diff(x) / 3 + exact),
    }
    domain = ps.Box((0, 0), (1, 2))
    if named:
        domain = domain.named(left=x < 0.001, right=x > 0.999, top=y > 1.999)
    problem = ps.Problem(domain, ps.Eq(operator(u), operator(exact)), sides, exact=exact)
    order, errors = observed_order(problem, (700, 1400, 2800), degree=4)
    assert order >= 2.8, (order, errors)
    assert errors[-1] < 1e-5


@pytest.mark.parametrize(
    ("condition", "degree"),
    [
        ("dirichlet", 2),
        pytest.param("dirichlet", 3, marks=pytest.mark.slow),
        pytest.param("dirichlet", 4, marks=pytest.mark.slow),
        ("neumann", 2),
        pytest.param("neumann", 3, marks=pytest.mark.slow),
    ],
)
def test_order_in_space(condition, degree):
    order, errors = observed_order(space_problem(condition), (600, 1200, 2400, 4800), degree=degree)
    assert order >= degree - 1 - 0.2, (order, errors)


def test_a_plain_kernel_converges_while_its_condition_lasts():
    # ε h is kept fixed, so the condition stays and the order is lost: the error stalls; the polynomials cure that
    problem = plane_problem("dirichlet")
    errors = []
    for count in (400, 1600):
        nodes = ps.scatter(problem.domain, n_nodes=count)
        epsilon = 0.12 / np.median(nodes.spacing)
        errors.append(
            [
                ps.discretize(problem, nodes, kernel=ps.space.IMQ(epsilon), degree=p, stencil_size=40).solve().error
                for p in (-1, 4)
            ]
        )
    assert errors[1][1] < 0.1 * errors[0][1]
    assert errors[1][1] < errors[1][0]
