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
