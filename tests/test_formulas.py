"""Formulas from files: arithmetic in bounded time, and nothing else."""

import time

import numpy as np
import pytest

import parasol as ps
from parasol.formulas import Formula


def test_huge_powers_are_infinite_at_once():
    start = time.perf_counter()
    assert Formula("9**9**9**9", ("a",))(2.0) == np.inf
    assert Formula("a**-2", ("a",))(2.0) == 0.25
    assert time.perf_counter() - start < 1.0


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
