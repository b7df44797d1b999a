import itertools

import numpy as np
import pytest
import sympy

from parasol.checks import ParasolError
from parasol.space.kernels import (
    IMQ,
    IQ,
    MQ,
    PHS,
    Gaussian,
    Matern,
    Wendland,
    check_smooth_enough,
    kernel_from_text,
    monomials,
    n_monomials,
)

PLANE = np.array([0.2, -0.6])
SPACE = np.array([0.2, -0.6, 0.3])


def laplacian(kernel, offset, times=1):
    axes = [tuple(2 * np.eye(len(offset), dtype=int)[i]) for i in range(len(offset))]
    terms = itertools.product(axes, repeat=times)
    return sum(kernel.derivative(offset, tuple(np.sum(term, axis=0))) for term in terms)


@pytest.mark.parametrize(
    ("kernel", "values"),
    [
        (IMQ(3.0), [0.466252404120157, -0.182446592916583, -0.69805652941997, -0.642529305488836, 0.317298422463623]),
        (MQ(3.0), [2.14476105895272, 0.839254327416282, 3.86786776983156, 0.985211601749549, 5.10850460166433]),
        (
            Gaussian(3.0),
            [0.0273237224472926, -0.0983654008102532, -0.137711561134355, -1.06234632875073, 2.55750042106658],
        ),
    ],
)
def test_plane_values_computed_by_sympy_elsewhere(kernel, values):
    got = [kernel.derivative(PLANE, index) for index in [(0, 0), (1, 0), (2, 0), (1, 1)]] + [laplacian(kernel, PLANE)]
    np.testing.assert_allclose(got, values, rtol=1e-13)


def test_biharmonic_values():
    assert laplacian(IMQ(3.0), PLANE, 2) == pytest.approx(-10.0002985794419, rel=1e-13)
    assert laplacian(IMQ(1.0), SPACE, 2) == pytest.approx(2.59290371822845, rel=1e-13)
    assert laplacian(PHS(5), SPACE, 2) == pytest.approx(252, rel=1e-13)
    assert laplacian(PHS(3), SPACE) == pytest.approx(8.4, rel=1e-13)


def radial_formula(kernel, r):
    match kernel:
        case IMQ(epsilon=e):
            return 1 / sympy.sqrt(1 + (e * r) ** 2)
        case MQ(epsilon=e):
            return sympy.sqrt(1 + (e * r) ** 2)
        case IQ(epsilon=e):
            return 1 / (1 + (e * r) ** 2)
        case Gaussian(epsilon=e):
            return sympy.exp(-((e * r) ** 2))
        case PHS(power=m):
            return r**m
        case Matern(epsilon=e, nu=3.5):
            z = e * r
            return sympy.exp(-z) * (1 + z + sympy.Rational(2, 5) * z**2 + z**3 / 15)
        case Wendland(epsilon=e, smooth=4):
            z = e * r
            return (1 - z) ** 6 * (35 * z**2 + 18 * z + 3) / 3
        case Wendland(epsilon=e, smooth=6):
            z = e * r
            return (1 - z) ** 8 * (32 * z**3 + 25 * z**2 + 8 * z + 1)


@pytest.mark.parametrize(
    "kernel",
    [IMQ(1.3), MQ(1.3), IQ(1.3), Gaussian(1.3), PHS(7), PHS(9), Matern(1.3, 3.5), Wendland(0.7, 4), Wendland(0.7, 6)],
    ids=str,
)
def test_every_derivative_up_to_order_four_matches_sympy(kernel):
    x = sympy.symbols("x y z", real=True)
    formula = radial_formula(kernel, sympy.sqrt(sum(v**2 for v in x)))
    indices = [i for i in monomials(3, 4) if i[0] >= i[1] >= i[2]]
    for index in indices:
        derivative = formula
        for variable, times in zip(x, index, strict=True):
            derivative = derivative.diff(variable, times) if times else derivative
        expected = float(derivative.subs(dict(zip(x, map(sympy.Float, SPACE), strict=True))).evalf(30))
        assert kernel.derivative(SPACE, index) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kernel", [PHS(5), Matern(2.0, 3.5), Wendland(1.0, 4)], ids=str)
def test_derivatives_at_the_centre_are_limits(kernel):
    near = kernel.derivative(np.array([1e-7, 0.0]), (2, 0))
    assert kernel.derivative(np.zeros(2), (2, 0)) == pytest.approx(near, abs=1e-4)
    assert kernel.derivative(np.zeros(2), (1, 0)) == 0


@pytest.mark.parametrize("kernel", [IMQ(2.0), PHS(5), Matern(2.0), Wendland(0.5)], ids=str)
def test_scale_stretches_the_argument(kernel):
    assert kernel.derivative(SPACE, (0, 0, 0), 1.5) == pytest.approx(
        kernel.derivative(1.5 * SPACE, (0, 0, 0)), rel=1e-12
    )
    assert kernel.derivative(SPACE, (1, 1, 0), 1.5) == pytest.approx(
        1.5**2 * kernel.derivative(1.5 * SPACE, (1, 1, 0)), rel=1e-12
    )


def test_monomials_are_counted():
    assert [n_monomials(2, p) for p in (-1, 0, 1, 2, 5)] == [0, 1, 3, 6, 21]
    assert all(len(monomials(n, p)) == n_monomials(n, p) for n in (1, 2, 3) for p in (0, 3, 6))


def test_bad_kernels_say_what_to_do():
    with pytest.raises(ParasolError, match="positive"):
        IMQ(0.0)
    with pytest.raises(ParasolError, match="odd"):
        PHS(4)
    with pytest.raises(ParasolError, match="Use PHS"):
        check_smooth_enough(PHS(3), [(4, 0)])
    with pytest.raises(ParasolError, match="unknown"):
        kernel_from_text("cubic:3")
    with pytest.raises(ParasolError, match="not a number"):
        kernel_from_text("imq:three")
    with pytest.raises(ParasolError, match="wrong number"):
        kernel_from_text("imq")
    assert kernel_from_text("matern:2,3.5") == Matern(2.0, 3.5)
