"""Claims of order are tests of slopes: refine three times, fit the exponent."""

import numpy as np
import pytest
from sympy import cos, exp, sin

import parasol as ps


def slope(h, errors):
    return np.polyfit(np.log(h), np.log(errors), 1)[0]


def plane_problem(condition):
    x, y = ps.coordinates("x y")
    nx, ny = ps.normal(x, y)
    u = ps.unknown("u", x, y)
    exact = sin(3 * x) * cos(2 * y)
    data = {
        "dirichlet": ps.Dirichlet(exact),
        "neumann": ps.Neumann(nx * exact.diff(x) + ny * exact.diff(y)),
        "robin": ps.Robin(2, 1, 2 * exact + nx * exact.diff(x) + ny * exact.diff(y)),
    }[condition]

    def operator(v):
        return -ps.laplacian(v, x, y) + v

    return ps.Problem(ps.Disc(), ps.Eq(operator(u), operator(exact)), data, exact=exact)


def space_problem(condition):
    x, y, z = ps.coordinates("x y z")
    n = ps.normal(x, y, z)
    u = ps.unknown("u", x, y, z)
    exact = exp(x) * sin(y + z)
    flux = sum(a * b for a, b in zip(n, ps.gradient(exact, x, y, z), strict=True))
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
    [*[("dirichlet", p) for p in (2, 3, 4, 5, 6)], *[("neumann", p) for p in (2, 3, 4, 5)], ("robin", 4)],
)
def test_order_in_the_plane(condition, degree):
    order, errors = observed_order(plane_problem(condition), (700, 1400, 2800, 5600), degree=degree)
    assert order >= degree - 1 - 0.2, (order, errors)


@pytest.mark.parametrize(
    ("condition", "degree"), [("dirichlet", 2), ("dirichlet", 3), ("dirichlet", 4), ("neumann", 2), ("neumann", 3)]
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
                ps.discretize(problem, nodes, kernel=ps.IMQ(epsilon), degree=p, stencil_size=40).solve().error
                for p in (-1, 4)
            ]
        )
    assert errors[1][1] < 0.1 * errors[0][1]
    assert errors[1][1] < errors[1][0]
