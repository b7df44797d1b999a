"""Bounds of the explorer page where they are not small: there a relative bound and an absolute one are two things."""

from dataclasses import replace

import numpy as np
import pytest

import parasol as ps
from parasol.runtime.conformal import ConformalBound


@pytest.fixture(scope="module")
def coarse(model):
    """Two modes: errors of some percent, and bounds of more."""
    reduced = ps.reduce(model, ps.pod(ps.solve_many(model, ps.sample(model, 12)), n_modes=2))
    return ps.fit(reduced, "polynomial", n_labels=100)


def test_a_large_bound_is_relative_to_the_least_that_the_solution_can_be(show, coarse, model):
    tab, mus = show(coarse), ps.sample(model, 12, rng=3)
    answer = coarse(mus)
    known = np.isfinite(answer.bound)
    assert np.any(answer.bound[known] > 0.05)
    for mu, relative, value in zip(mus, answer.bound, answer.bounds.values, strict=True):
        found = tab.evaluate("x => window.parasol.answer(x).bound", mu.tolist())
        size = np.linalg.norm(coarse(mu).coefficients)
        assert found["value"] == pytest.approx(value, rel=1e-3)
        if np.isfinite(relative):
            assert found["relative"] == pytest.approx(relative, rel=1e-2)
            assert found["relative"] == pytest.approx(found["value"] / (size - found["value"]), rel=1e-6)
        else:
            assert found["relative"] is None or found["relative"] == np.inf


def test_a_calibrated_bound_of_the_value_is_one_of_the_solution(show, coarse):
    """|u - a| <= q |u| and |u| <= |a| + q |u| give |u - a| <= q / (1 - q) |a|."""
    likely = replace(coarse, reduced=None, conformal=ConformalBound(level=0.9, n_calibration=40, quantile=0.2))
    tab, mu = show(likely), [1.0, 1.0]
    found = tab.evaluate("x => window.parasol.answer(x).bound", mu)
    assert found["relative"] == pytest.approx(0.2, rel=1e-4)
    assert found["value"] == pytest.approx(likely.certify([mu]).values[0], rel=1e-4)
    assert found["value"] == pytest.approx(0.25 * np.linalg.norm(likely(mu).coefficients), rel=1e-4)
