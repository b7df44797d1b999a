"""Map programs: what they compute, what folding keeps, and what is refused."""

from functools import reduce

import numpy as np
import pytest
from numpy.polynomial.chebyshev import chebval
from scipy import sparse

from parasol.checks import ParasolError
from parasol.runtime import Activation, Affine, Chebyshev, Log, Program, Radial, Scale, Sum
from parasol.runtime import program as programs

RNG = np.random.default_rng(5)


def matrix(*shape):
    return RNG.standard_normal(shape)


def thin(*shape):
    return sparse.csr_array(matrix(*shape) * (matrix(*shape) > 0))


PROGRAMS = {
    "activation of the inputs": (Activation("gelu"), Scale(matrix(3) ** 2, matrix(3), matrix(3))),
    "logarithms": (Log(np.array([2, 0])), Scale(matrix(3), matrix(3)), Affine(matrix(2, 3), matrix(2))),
    "logarithms of sums": (Affine(np.abs(matrix(4, 3))), Log(np.array([1])), Activation("silu"), Affine(thin(2, 4))),
    "kernels of a hidden layer": (
        Affine(matrix(3, 3)),
        Activation("tanh"),
        Sum(((Radial("gaussian", matrix(5, 3), np.ones(3)), Affine(matrix(2, 5))), (Affine(thin(2, 3), matrix(2)),))),
        Scale(matrix(2), matrix(2), matrix(2)),
    ),
    "polynomials of a layer": (Affine(matrix(2, 3)), Chebyshev(np.array([[0, 0], [3, 1], [0, 4]])), Activation("tanh")),
    "residual": (
        Sum(((), (Affine(thin(3, 3), matrix(3)), Activation("tanh")))),
        Activation("silu"),
        Affine(matrix(2, 3)),
    ),
    "a scaled sum": (
        Scale(matrix(3), matrix(3)),
        Sum(((Affine(thin(2, 3)),), (Affine(matrix(2, 3), matrix(2)),))),
        Scale(matrix(2), None, matrix(2)),
    ),
    "kernels of the inputs": (Radial("gaussian", matrix(5, 3), np.full(3, 2.0)), Affine(matrix(2, 5))),
    "polynomials of the inputs": (Chebyshev(np.array([[0, 0, 0], [2, 0, 1]])), Affine(matrix(2, 2))),
    "many inputs of a kernel": (Affine(matrix(14, 3)), Radial("matern52", matrix(6, 14), np.full(14, 3.0))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_slopes_folding_blocks_and_types(name, monkeypatch):
    program, x = Program(PROGRAMS[name]), RNG.uniform(0.5, 2.0, (7, 3))
    before = x.copy()
    y, slopes, folded = program(x), program.jacobian(x), program.folded()
    step = 1e-6
    wanted = np.stack([(program(x + step * e) - program(x - step * e)) / (2 * step) for e in np.eye(3)], axis=-1)
    assert y.shape == (7, program.n_outputs)
    assert np.allclose(slopes, wanted, rtol=1e-5, atol=1e-7 * np.abs(wanted).max())
    size = np.abs(y).max()
    assert np.abs(folded(x) - y).max() < 1e-13 * size
    assert np.allclose(folded.jacobian(x), slopes, rtol=1e-11, atol=1e-12 * np.abs(slopes).max())
    assert np.allclose(program.astype(np.float32)(x), y, atol=1e-5 * size)
    assert program.astype(np.float32)(x).dtype == program.astype(np.float32).jacobian(x).dtype == np.float32
    for kind in ("BLOCK", "SPARSE_BLOCK"):
        monkeypatch.setattr(programs, kind, 400)
    assert np.allclose(program(x), y, rtol=1e-13, atol=1e-13 * size)
    assert np.allclose(program.jacobian(x), slopes, rtol=1e-12, atol=1e-13)
    assert program(np.zeros((0, 3))).shape == (0, program.n_outputs)
    assert np.array_equal(x, before)


def test_chebyshev_products_are_those_of_numpy():
    indices = RNG.integers(0, 9, (30, 4)) % np.array([3, 9, 1, 2])  # of different degrees, one of them none
    x = RNG.uniform(-1.5, 1.5, (6, 4))
    factors = [np.stack([chebval(x[:, i], np.eye(9)[k]) for k in indices[:, i]], axis=1) for i in range(4)]
    assert np.allclose(Chebyshev(indices)(x), reduce(np.multiply, factors), rtol=1e-12)


def test_folding_leaves_a_shift_that_digits_depend_on():
    narrow = Program((Scale(np.array([2e6]), np.array([1000.0])), Affine(np.array([[1.0]]), np.array([0.5]))))
    assert len(narrow.folded().operations) == 2
    x = np.array([[1000.0 + 3e-7]])
    assert narrow.folded()(x) == narrow(x)
    twice = Program((Scale(np.array([2e6]), np.array([1000.0])), Scale(np.array([0.1]))))
    assert len(twice.folded().operations) == 1
    assert np.allclose(twice.folded()(x), twice(x), rtol=1e-15)


def test_sizes():
    program = Program(
        (Affine(thin(4, 3), np.array([0.0, 1.0, 2.0, 0.0])), Radial("matern32", matrix(5, 4), np.ones(4)))
    )
    assert program.n_weights == program.operations[0].weights.nnz + 2 + 20
    assert program.widths == (3, 4, 5)
    assert program.widest == 5
    assert program.is_sparse
    assert "3 to 5 numbers: Affine, Radial" in repr(program)


def nested(depth):
    return reduce(lambda inner, _: Sum(((inner,), ())), range(depth), Affine(np.eye(2)))


def test_deep_branches_cost_no_more_than_they_are():
    assert np.array_equal(Program((nested(40),))(np.ones((1, 2))), [[41.0, 41.0]])


SINGLE = Affine(np.ones((2, 2), np.float32))
MISTAKES = {
    "nothing in the operations": lambda: Program(()),
    "says how many inputs": lambda: Program((Activation("relu"),)),
    "must be a tuple, not a list": lambda: Program([Affine(np.eye(2))]),
    "a str is no operation": lambda: Program(("Affine",)),
    "a Program is no operation": lambda: Sum(((Program((SINGLE,)),),)),
    "needs branches": lambda: Sum(()),
    "each a tuple": lambda: Sum((SINGLE,)),
    "2 numbers meet a Affine with 3 inputs": lambda: Program((Affine(np.eye(2)), Affine(np.ones((2, 3))))),
    "branches of a sum give 2 and 3 numbers": lambda: Program((Sum(((SINGLE,), (Affine(np.ones((3, 2))),))),)),
    "numbers of different types": lambda: Program((SINGLE, Affine(np.eye(2)))),
    "activation='sine'": lambda: Activation("sine"),
    "kernel='sinc'": lambda: Radial("sinc", np.eye(2), np.ones(2)),
    "lengths of a kernel must be positive": lambda: Radial("gaussian", np.eye(2), np.zeros(2)),
    "lengths must have shape": lambda: Radial("gaussian", np.eye(2), np.ones(3)),
    "whole numbers that are not negative": lambda: Chebyshev(np.array([[-1]])),
    "axes of whole numbers, got float64": lambda: Chebyshev(np.eye(2)),
    "degree 10001 is too high": lambda: Chebyshev(np.array([[10001]])),
    "different and not negative": lambda: Log(np.array([1, 1])),
    "logarithm of column 2": lambda: Program((Log(np.array([2])), Affine(np.eye(2)))),
    "shift must have shape": lambda: Scale(np.ones(2), np.ones(3)),
    "scale must be an array of 1 axes of real numbers, got str": lambda: Scale("1"),
    "bias must have shape": lambda: Affine(np.eye(2), np.ones(3)),
    "are no matrix": lambda: Affine(np.ones(3)),
    "a matrix is a str": lambda: Affine("eye"),
    "inputs has shape": lambda: Program((Affine(np.eye(2)),))(np.ones((4, 3))),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_what_makes_no_program_is_refused(message):
    with pytest.raises(ParasolError, match=message):
        MISTAKES[message]()


@pytest.mark.parametrize("seed", range(20))
def test_one_vector_has_the_same_polynomials_as_the_first_of_two(seed):
    rng = np.random.default_rng(seed)
    degrees = rng.integers(0, rng.integers(1, 12), (20, rng.integers(1, 5)))
    degrees[:, rng.random(degrees.shape[1]) < 0.3] = 0  # inputs that do not occur
    x = rng.uniform(-1.2, 1.2, (2, degrees.shape[1]))
    expand = Chebyshev(degrees)
    np.testing.assert_array_equal(expand(x[:1]), expand(x)[:1])
