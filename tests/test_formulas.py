"""Formulas from files: arithmetic in bounded time, and nothing else."""

import time

import numpy as np
import pytest
import sympy

import parasol as ps
from parasol.expressions import as_formula, as_function
from parasol.runtime.formulas import Formula


def test_huge_powers_are_infinite_at_once():
    start = time.process_time()
    assert Formula("9**9**9**9", ("a",))(2.0) == np.inf
    assert Formula("a**-2", ("a",))(2.0) == 0.25
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize(
    "text",
    [
        *[
            "(" * 3000 + "a" + ")" * 3000,
            "-" * 19_000 + "a",
            "a" + "+a" * 9000,
            "a" + "**a" * 6000,
            "9" * 19_999,
            "a" * 30_000,
        ],
        *[
            "__import__('os')",
            "a.b",
            "a[0]",
            "[a]*9",
            "'x'*9",
            "a if a else 1",
            "lambda: 1",
            "sin(a, a)",
            "Piecewise(a)",
            "Piecewise((a, a < 1, 2))",
            "a < 1 < 2",
            "a == 1",
            "Piecewise(" + "(a, a < 1)," * 250 + "(a, True))",
            "b",
            "a:=1",
            "\x00",
        ],
    ],
    ids=lambda text: text[:12],
)
def test_what_is_too_deep_too_long_or_no_arithmetic_is_refused(text):
    with pytest.raises(ps.ParasolError, match=r"cannot be used|too long"):
        Formula(text, ("a",))


a, k = sympy.symbols("a k")
SWITCHED = [
    sympy.Piecewise((a, a < k), (k**2, (a < 2) & (k > 0.5)), (3, True)),
    sympy.Piecewise((sympy.Piecewise((1, k >= 1), (2, True)), a <= 1), (a, True)),
    sympy.Piecewise((1, (a > 1.5) | (k > 1.5)), (0, True)) + sympy.Heaviside(a - k) * sympy.floor(3 * a),
    sympy.ceiling(a - k) + sympy.Heaviside(a - 1, 1),
]


@pytest.mark.parametrize("expression", SWITCHED, ids=str)
def test_switches_are_formulas_too(expression):
    mus = np.random.default_rng(0).uniform(0, 2, (2, 200))
    mus[:, :3] = 1.0  # on the edges
    formula = as_formula(as_function(expression, [a, k]))
    assert isinstance(formula, Formula)
    assert np.allclose(formula(*mus), as_function(expression, [a, k])(*mus), rtol=1e-14)


def test_a_surrogate_with_a_switch_in_its_parameters_is_saved(tmp_path):
    (x,) = ps.coordinates("x")
    (m,) = ps.parameters(m=(0.0, 1.0))
    u, rate = ps.unknown("u", x), sympy.Piecewise((1 + m, m < 0.5), (2 - m, True))
    problem = ps.Problem(ps.Box(0, 1), ps.Eq(-u.diff(x, 2) + rate * u, 1 + x), ps.Dirichlet(0))
    surrogate = ps.learn(problem, 1e-2, n_nodes=40, recipe="polynomial")
    again = ps.load(ps.save(surrogate, tmp_path / "switch.parasol"))
    assert np.array_equal(again([[0.3], [0.8]]).values, surrogate([[0.3], [0.8]]).values)
    assert np.array_equal(again([[0.3], [0.8]]).bound, surrogate([[0.3], [0.8]]).bound)


@pytest.mark.parametrize(
    "name", ["pi", "e", "E", "I", "t", "sin", "exp", "sqrt", "Abs", "Piecewise", "p0", "\N{MICRO SIGN}"]
)
def test_a_name_of_a_constant_or_a_function_is_a_name(name, tmp_path):
    (p,) = ps.parameters(**{name: (1.0, 2.0)})
    theta = sympy.pi * p + sympy.E * p**2 + sympy.exp(p) + sympy.sqrt(p) + sympy.sin(p) + sympy.Abs(p - 1.5)

    def truth(v):
        return np.pi * v + np.e * v**2 + np.exp(v) + np.sqrt(v) + np.sin(v) + abs(v - 1.5)

    function = as_function(theta, [p])
    assert np.isclose(function(1.3), truth(1.3), rtol=1e-14)
    assert isinstance(as_formula(function), Formula)
    assert np.isclose(as_formula(function)(1.3), truth(1.3), rtol=1e-14)
    stiff, gain = np.diag([2.0, 3.0]) - np.eye(2)[::-1], np.diag([1.0, 0.5])
    surrogate = ps.learn(ps.AffineModel({1: stiff, p: stiff, theta: gain}, {1: np.ones(2)}), 1e-6)
    ps.save(surrogate, tmp_path / "kept.parasol")
    right = np.linalg.solve(stiff * (1 + 1.3) + gain * truth(1.3), np.ones(2))
    for each in (surrogate, ps.load(tmp_path / "kept.parasol")):
        answer = each({name: 1.3})
        assert np.linalg.norm(answer.values - right) <= answer.bound * np.linalg.norm(right) + 1e-14


def test_two_names_that_python_reads_as_one_are_two():
    micro, greek = (sympy.Symbol(sign, real=True) for sign in ("\N{MICRO SIGN}", "\N{GREEK SMALL LETTER MU}"))
    function = as_function(micro - 2 * greek, [micro, greek])
    assert function(5.0, 1.0) == as_formula(function)(5.0, 1.0) == 3.0


def test_time_and_a_parameter_do_not_share_a_name():
    (p,) = ps.parameters(t=(1.0, 2.0))
    options = {"mass": np.eye(2), "times": [0.0, 0.5]}
    with pytest.raises(ps.ParasolError, match="the time and a parameter are both called 't'"):
        ps.AffineModel({p: np.eye(2)}, {ps.time(): np.ones(2)}, **options)
    model = ps.AffineModel({p: np.eye(2)}, {1: np.ones(2)}, **options)  # time has no name there
    assert np.allclose(model.solve([2.0]).values[-1], (1 - np.exp(-1.0)) / 2, rtol=1e-3)


def test_numbers_beyond_floats_are_said_to_be():
    a = sympy.Symbol("a")
    with pytest.raises(ps.ParasolError, match="has numbers beyond the range of floats"):
        as_function(10**400 * a, [a])(np.array([1e-200]))
