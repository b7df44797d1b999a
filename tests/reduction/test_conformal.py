import numpy as np
import pytest
from scipy.stats import binom

import parasol as ps
from parasol.checks import ParasolError
from parasol.runtime.conformal import conformal_bound, coverage, highest_level


def test_the_order_statistic_of_a_tiny_example():
    errors = [0.4, 0.1, 0.3, 0.2]
    assert conformal_bound(errors, level=0.8).bound() == 0.4  # ⌈5 · 0.8⌉ = 4th of four
    assert conformal_bound(errors, level=0.6).bound() == 0.3
    assert conformal_bound(errors, level=0.61).bound() == 0.4
    assert conformal_bound(errors, level=0.5).bound() == 0.3  # ⌈2.5⌉ = 3rd
    assert conformal_bound(range(1, 20)).quantile == 19
    assert conformal_bound(range(1, 40)).quantile == 38


@pytest.mark.parametrize("percent", range(1, 100))
def test_ranks_are_those_of_whole_numbers(percent):
    """With 99 errors the rank is the percentage itself: no rounding of floats may move it."""
    assert conformal_bound(np.arange(1, 100), level=percent / 100).quantile == percent


@pytest.mark.parametrize(("level", "n", "heavy"), [(0.9, 9, True), (0.9, 50, False), (0.5, 20, True)])
def test_simulated_coverage_is_the_level(level, n, heavy):
    """Over calibration sets and new parameters together the bound holds with probability k / (n + 1)."""
    rng, repetitions = np.random.default_rng(11), 20_000
    draws = rng.standard_normal((repetitions, n + 1))
    errors = np.exp(3 * draws) if heavy else np.abs(draws)
    held = np.mean([e[-1] <= conformal_bound(e[:-1], level=level).quantile for e in errors])
    expected = coverage(level, n).mean
    assert level <= expected < level + 1 / (n + 1)
    assert abs(held - expected) < 4 * np.sqrt(expected * (1 - expected) / repetitions)


def test_coverage_of_single_sets_follows_the_beta_law():
    rng, n, level = np.random.default_rng(12), 60, 0.9
    # errors uniform on [0, 1]: the bound is its own coverage
    actual = np.array([conformal_bound(e, level=level).quantile for e in rng.random((20_000, n))])
    law = coverage(level, n)
    assert np.mean(actual) == pytest.approx(law.mean, abs=2e-3)
    assert np.mean(actual < law.low) == pytest.approx(0.025, abs=0.005)
    assert np.mean(actual > law.high) == pytest.approx(0.025, abs=0.005)


def test_coverage_agrees_with_counting():
    """P(k-th smallest of n uniforms ≤ t) = P(at least k of n lie below t)."""
    law = coverage(0.95, 200)
    k = 191  # ⌈201 · 0.95⌉
    assert law.mean == pytest.approx(k / 201)
    assert binom.sf(k - 1, 200, law.low) == pytest.approx(0.025, rel=1e-6)
    assert binom.sf(k - 1, 200, law.high) == pytest.approx(0.975, rel=1e-6)
    assert conformal_bound(np.arange(200.0)).coverage == law


def test_difficulties_follow_the_errors():
    """Errors that grow with the parameter: normalised bounds hold as often and are shorter where the error is small."""
    rng = np.random.default_rng(13)
    mu = rng.uniform(0.01, 1.0, 4000)
    errors = mu * rng.random(4000)
    old, new = slice(0, 1000), slice(1000, 4000)
    plain, normalised = conformal_bound(errors[old]), conformal_bound(errors[old], difficulty=mu[old])
    bounds = normalised.bound(mu[new])
    assert isinstance(bounds, np.ndarray)
    assert np.mean(errors[new] <= bounds) == pytest.approx(0.95, abs=0.02)
    assert np.mean(bounds) < 0.9 * plain.bound()
    assert normalised.quantile == pytest.approx(0.95, abs=0.02)
    assert normalised.bound(2.0) == 2 * normalised.quantile
    with pytest.raises(ParasolError, match="Pass those of the new"):
        normalised.bound()
    with pytest.raises(ParasolError, match="calibrated without"):
        plain.bound(mu)


def test_failed_evaluations_count():
    errors = np.append(np.arange(38.0), np.inf)
    assert conformal_bound(errors).quantile == 37.0
    assert conformal_bound(np.append(errors[1:], np.inf)).quantile == np.inf


def test_meaning_says_what_holds_and_what_does_not():
    text = conformal_bound(np.arange(1, 100) / 1e5, level=0.9).meaning
    assert text.startswith("With probability at least 0.9 over the 99 calibration parameters")
    assert "at most 0.0009;" in text
    assert "not hold for each single parameter" in text
    assert "times its estimate" in conformal_bound(np.ones(99), difficulty=np.ones(99)).meaning


@pytest.mark.parametrize(("level", "needed"), [(0.95, 19), (0.9, 9), (0.99, 99), (0.5, 1), (0.999, 999), (0.97, 33)])
def test_too_few_errors_are_refused_with_the_number_needed(level, needed):
    assert conformal_bound(np.arange(needed), level=level).quantile == needed - 1
    with pytest.raises(ParasolError, match=f"needs at least {needed} calibration errors, got {needed - 1}"):
        conformal_bound(np.arange(needed - 1), level=level)


def test_the_highest_level_can_be_calibrated():
    for n in range(1, 200):
        level = highest_level(n)
        assert 0 <= n / (n + 1) - level < 1e-15
        assert conformal_bound(np.arange(n), level=level).quantile == n - 1
        assert coverage(level, n).mean == n / (n + 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: conformal_bound([-1.0] + [1.0] * 30), "1 of 31 entries that are negative or NaN"),
        (lambda: conformal_bound([np.nan] * 30), "inf for what failed"),
        (lambda: conformal_bound(np.ones((30, 2))), "shape"),
        (lambda: conformal_bound(np.ones(30), level=95), "between 0 and 1"),
        (lambda: conformal_bound(np.ones(30), level=1.0), "between 0 and 1"),
        (lambda: conformal_bound(np.ones(30), difficulty=np.ones(29)), r"difficulty has shape \(29,\)"),
        (lambda: conformal_bound(np.ones(30), difficulty=np.zeros(30)), "difficulty must be positive"),
        (lambda: coverage(0.95, 0), "at least 1"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ParasolError, match=message):
        call()


def test_the_old_way_to_bound_errors_still_works_and_says_so():
    with pytest.warns(DeprecationWarning, match="conformal_bound"):
        bound = ps.calibrate([5, 1, 3, 2, 4, 9, 7, 6, 8], level=0.9)
    assert bound.bound() == 9.0
