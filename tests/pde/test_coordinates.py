"""A coordinate stands for its axis, whatever it is called."""

import pickle

import numpy as np
import pytest
import sympy

import parasol as ps


def _problem(names, **options):
    """-div grad u = f on a wide box whose first axis is the first name; every side has other data."""
    a, b = ps.coordinates(names)
    u = ps.unknown("u", a, b)
    exact = sympy.exp(a / 2) * sympy.sin(1 + b) + a * b**2
    domain = ps.Box((0, 0), (2, 1)).named(inlet=a <= 0, floor=b <= 0, lid=sympy.And(b >= 1, a > 0.7))
    boundary = {
        "inlet": ps.Dirichlet(exact),
        "floor": ps.Neumann(-exact.diff(b)),
        "lid": ps.Robin(1, 1, exact + exact.diff(b)),
        "top": ps.Dirichlet(exact),
        "right": ps.Neumann(exact.diff(a)),
        "*": ps.Dirichlet(0),
    }
    return ps.Problem(domain, ps.Eq(-ps.laplacian(u), -ps.laplacian(exact, a, b)), boundary, exact=exact, **options)


@pytest.mark.parametrize("names", ["x y", "y x", "r s", "z x", "y z"])
def test_domains_parts_and_quantities_use_the_coordinates_of_the_problem(names):
    a, b = ps.coordinates(names)
    quantities = {"out": ps.Flux("right", coefficient=1 + b), "lid": ps.Flux("lid", coefficient=a)}
    problem = _problem(names, quantities=quantities)
    solution = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=500)).solve()
    assert solution.error < 1e-5
    slope_a, slope_b = problem.exact.diff(a), problem.exact.diff(b)
    right = sympy.lambdify(b, ((1 + b) * slope_a).subs(a, 2))
    lid = sympy.lambdify(a, (a * slope_b).subs(b, 1))
    at, weight = np.polynomial.legendre.leggauss(20)
    found = solution.quantities
    assert found["out"] == pytest.approx(np.sum(weight / 2 * right((at + 1) / 2)), rel=1e-4)
    ends = 0.7 + 1.3 * (at + 1) / 2
    assert found["lid"] == pytest.approx(np.sum(weight * 0.65 * lid(ends)), rel=5e-3)


@pytest.mark.parametrize("names", ["x y", "y x", "r s"])
def test_implicit_domains_and_periodic_axes(names):
    a, b = ps.coordinates(names)
    ellipse = ps.Implicit(a**2 / 4 + b**2 - 1, bounds=((-2.1, -1.1), (2.1, 1.1)))
    assert ellipse.contains([[1.9, 0.0], [0.0, 1.05]]).tolist() == [True, False]
    assert (ellipse.named(tip=a > 1.5) & ps.Box((-3, -3), (3, 3))).parts([[2.0, 0.0]])[0].tolist()[0]
    assert ps.Box((0, 0), (1, 1), periodic=(b,)).periods.tolist() == [0.0, 1.0]
    u = ps.unknown("u", a, b)
    ps.Problem(ps.Box((0, 0), (1, 1), periodic=(b,)), ps.Eq(ps.laplacian(u) - u, 1), ps.Dirichlet(0))


def test_text_speaks_of_x_y_z_in_this_order():
    r, s = ps.coordinates("r s")
    u = ps.unknown("u", r, s)
    domain = ps.Box((0, 0), (2, 1)).named(inlet="x <= 0")
    ps.Problem(domain, ps.Eq(ps.laplacian(u), 1), ps.Dirichlet(0))
    with pytest.raises(ps.ParasolError, match="r"):
        ps.Box((0, 0), (1, 1)).named(inlet="r <= 0")
    with pytest.raises(ps.ParasolError, match="depends on q"):
        ps.Box((0, 0), (1, 1)).named(inlet=sympy.Symbol("q") <= 0)
    with pytest.raises(ps.ParasolError, match="depends on z"):
        ps.Box((0, 0), (1, 1)).named(inlet=sympy.Symbol("z") <= 0)


def _swapped(domain=None, **options):
    y, x = ps.coordinates("y x")
    u = ps.unknown("u", y, x)
    box = ps.Box((0, 0), (2, 1))
    return ps.Problem(box if domain is None else domain(box), ps.Eq(ps.laplacian(u), 1), ps.Dirichlet(0), **options)


@pytest.mark.parametrize(
    "domain",
    [
        lambda box: box.named(inlet="x <= 0"),
        lambda box: box.named(inlet=sympy.Symbol("y", real=True) <= 0),
        lambda box: box.named(inlet=ps.coordinates("x y")[1] <= 0),
        lambda box: (box - ps.Implicit("x**2 + y**2 - 0.01", bounds=((-1, -1), (1, 1)))).named(a=lambda p: p[:, 0] < 1),
        lambda box: ps.Box((0, 0), (2, 1), periodic="x"),
    ],
    ids=["text", "symbol", "coordinates", "implicit", "periodic"],
)
def test_a_letter_that_means_two_axes_is_refused(domain):
    _swapped()
    with pytest.raises(ps.ParasolError, match=r"[xy] stands for axis \d, in u\(y, x\) for axis \d"):
        _swapped(domain)


def test_the_order_of_an_unknown_is_that_of_its_coordinates():
    x, y, z = ps.coordinates("x y z")
    box = ps.Box((0, 0), (2, 1))
    u = ps.unknown("u", y, x)
    with pytest.raises(ps.ParasolError, match="stands for axis"):
        ps.Problem(box, ps.Eq(ps.laplacian(u), 1), ps.Dirichlet(0))
    u = ps.unknown("u", y, z)  # two of three are the axes of a plane
    ps.Problem(box, ps.Eq(ps.laplacian(u), 1), ps.Dirichlet(0))
    with pytest.raises(ps.ParasolError, match="stands for axis"):
        ps.Problem(box.named(a=y < 1), ps.Eq(ps.laplacian(u), 1), ps.Dirichlet(0))
    with pytest.raises(ps.ParasolError, match="stands for axis"):
        _swapped(quantities={"q": ps.Flux(coefficient=x)})
    with pytest.raises(ps.ParasolError, match="same axis"):
        box.named(a=x + ps.coordinates("y x")[0] < 1)


def test_coordinates_are_symbols():
    x, y = ps.coordinates("x y")
    assert (x, y) == sympy.symbols("x y", real=True)
    r, s = ps.coordinates("r s")
    assert r == ps.coordinates("r s")[0]
    assert r != ps.coordinates("s r")[1]
    for symbol in (r, s, sympy.sin(r) * s):
        again = pickle.loads(pickle.dumps(symbol))
        assert again == symbol
        assert hash(again) == hash(symbol)
    assert r.is_real
    assert pickle.loads(pickle.dumps(r)).axis == 0


def test_nodes_and_solutions_travel_with_named_coordinates():
    problem = pickle.loads(pickle.dumps(_problem("r s")))
    assert ps.discretize(problem, ps.scatter(problem.domain, n_nodes=300)).solve().error < 1e-4
