"""Few samples of one's own: bounds from fits that leave one out, over many draws, and what they are made of."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import parasol as ps
from parasol.errors import InputError
from parasol.fitting.jackknife import Samples, _fit_to
from parasol.fitting.polynomial import Polynomial
from parasol.learning.run import learn
from parasol.runtime.conformal import conformal_bound
from parasol.runtime.descriptions import bound_words

t = np.linspace(0, 1, 20)


def field(mus):
    """Hard for a parabola at one end, with a size that changes threefold."""
    return np.exp(1.5 * mus[:, :1] * t) + np.abs(mus[:, :1] - 0.6)


def quietly(mus, solutions, recipe, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)
        return ps.fit_snapshots(mus, solutions, recipe, ranges={"a": (0.0, 1.0)}, **options)


@pytest.mark.parametrize(
    ("n", "level", "truth"),
    [pytest.param(9, 0.9, field, marks=pytest.mark.slow), (12, 0.6, field), (5, 0.5, lambda m: 1 + m * t)],
)
def test_the_level_holds_over_many_draws(n, level, truth):
    """Also for a map that passes through its samples, whose own errors there say nothing."""
    rng, covered, without = np.random.default_rng(n), [], []
    for _ in range(200):
        mus, new = rng.random((n, 1)), rng.random((1, 1))
        noise = 0.01 * rng.standard_normal((n + 1, 20)) * rng.exponential(size=(n + 1, 1))
        values = truth(np.vstack([mus, new])) + noise
        surrogate = quietly(mus, values[:n], Polynomial(degree=2), level=level)
        assert surrogate.conformal.level == level
        answer = surrogate(new[0], extrapolate=True)
        error = np.linalg.norm(values[n] - answer.values) / np.linalg.norm(values[n])
        covered.append(error <= answer.bound)
        seen = ps.accuracy(surrogate, ps.reduction.as_snapshots(mus, values[:n])).errors
        without.append(error <= conformal_bound(seen, level=level).quantile)
    assert np.mean(covered) >= level - 2 * np.sqrt(level * (1 - level) / 200)
    assert np.mean(without) < level  # errors at the samples seen are no bound


def test_the_level_is_what_the_samples_allow_and_says_so(tmp_path):
    mus = np.random.default_rng(0).random((9, 1))
    with pytest.warns(
        ps.ParasolWarning, match=r"9 samples are too few for a bound at level 0.95: it is one at level 0.9,"
    ):
        surrogate = ps.fit_snapshots(mus, field(mus), "gaussian process", ranges={"a": (0.0, 1.0)})
    answer = surrogate([[0.4], [0.5]])
    assert answer.bound_kind == ["calibrated"] * 2
    assert answer.bound[0] != answer.bound[1]  # it follows the parameter
    assert np.all(answer.bound > surrogate.conformal.quantile)
    assert bound_words(surrogate, ()) == "0.9 likely, by 9 solves left out one at a time"
    assert "differs from fits without one of the samples" in surrogate.conformal.meaning
    again = ps.load(ps.save(surrogate, tmp_path / "few.parasol"))
    assert np.array_equal(again([[0.4], [0.5]]).bound, answer.bound)
    assert (tmp_path / "few.parasol").stat().st_size < 100_000
    with pytest.raises(InputError, match="leave one sample out"):
        replace(surrogate, jackknife=None)


def test_nineteen_samples_have_the_usual_level_and_many_are_kept_aside_as_before():
    rng = np.random.default_rng(1)
    for n, level, refitted in [(19, 0.95, True), (37, 0.95, True), (38, 0.95, False)]:
        mus = rng.random((n, 1))
        with warnings.catch_warnings():
            warnings.simplefilter("error", ps.ParasolWarning)
            surrogate = ps.fit_snapshots(mus, field(mus), "gaussian process", ranges={"a": (0.0, 1.0)})
        assert (surrogate.conformal.level, surrogate.conformal.refitted) == (level, refitted)
        assert surrogate.facts["n_labels"] == (n if refitted else n - 19)


def test_groups_are_left_out_together_and_every_field_counts():
    rng = np.random.default_rng(2)
    mus, groups = np.repeat(rng.random((10, 1)), 3, axis=0), np.repeat(np.arange(10), 3)
    mus = np.hstack([mus, np.tile([[0.0], [0.5], [1.0]], (10, 1))])
    one = np.exp(mus[:, :1] * t) + mus[:, 1:]
    values = np.stack([one, 1e6 * np.sin(3 * mus[:, :1] * t)], axis=2)
    surrogate = ps.fit_snapshots(mus, values, Polynomial(degree=2), groups=groups, level=0.9)
    assert surrogate.conformal.n_calibration == 10
    assert surrogate.jackknife.norms.shape[0] == 2
    # by hand: the distance of each field, in its own unit, from the fit without one group
    mu = np.array([[0.5, 0.5]])
    bound = surrogate(mu).bound[0]
    far, quantile = 0.0, surrogate.conformal.quantile
    for group in range(10):
        rest = groups != group
        fit = ps.fit_snapshots(mus[rest], values[rest], Polynomial(degree=2), level=None)
        gap = (fit(mu, extrapolate=True).values - surrogate(mu).values).reshape(-1, 2)
        size = fit(mu, extrapolate=True).values.reshape(-1, 2)
        far = max(far, *(np.linalg.norm(gap, axis=0) / np.linalg.norm(size, axis=0)))
    assert bound == pytest.approx(quantile + (1 + quantile) * far, rel=0.02)


def test_learn_says_what_the_level_is():
    mus = np.random.default_rng(3).random((12, 1))
    data = (mus, 1 + mus * t)
    with pytest.warns(ps.ParasolWarning, match=r"is below it, but at the level 0.92 instead of 0.95"):
        surrogate = learn(data=data, tolerance=0.5, recipe="polynomial")
    account = surrogate.facts["learn"]
    assert account["level"] == pytest.approx(12 / 13)
    assert account["bound"] < 0.5
    assert not account["met"]
    mus = np.random.default_rng(3).random((24, 1))
    account = learn(data=(mus, 1 + mus * t), tolerance=0.5, recipe="polynomial").facts["learn"]
    assert account["met"]
    assert account["level"] == 0.95


def test_the_order_of_the_samples_decides_nothing():
    """Each fit is a function of the set of its samples: whether a logarithm helps is tried on thirds of them, in some order."""
    rng = np.random.default_rng(7)
    mus = rng.uniform(0.1, 10, (33, 1))
    values = np.log(mus) + 0.6 * mus * t + 0.2 * mus**2
    whole, logs = ps.pod(values, tolerance=1e-4), set()
    for turned in (rng.permutation(33) for _ in range(8)):
        space = ps.pde.ParameterSpace(ps.parameters(a=(0.1, 10.0)))
        samples = Samples(mus[turned], values[turned], turned, None, lambda _, space=space: space)
        fit = _fit_to(samples, np.ones(33, dtype=bool), Polynomial(), whole, 1e-4, None)
        logs.add(bool(fit.features.logs[0]))
    assert len(logs) == 1


def test_the_worst_row_of_a_group_counts():
    """Against lines by hand, fitted without one pair of rows at a time."""
    mus = np.random.default_rng(2).random((12, 1))
    values, groups = 1 + mus**3, np.repeat(np.arange(6), 2)
    surrogate = quietly(mus, values, Polynomial(degree=1), level=0.8, groups=groups)
    errors = []
    for group in range(6):
        out = groups == group
        line = np.polyfit(mus[~out, 0], values[~out, 0], 1)
        errors.append(np.max(np.abs(np.polyval(line, mus[out, 0]) / values[out, 0] - 1)))
    assert np.isclose(surrogate.conformal.quantile, np.sort(errors)[5], rtol=1e-9)  # ⌈7 · 0.8⌉ = 6th of six


def test_a_map_that_one_sample_less_is_too_few_for_has_no_bound():
    mus = np.random.default_rng(0).random((8, 3))
    with pytest.warns(
        ps.ParasolWarning, match="8 samples are too few for an error bound: without one of them, 7 samples"
    ):
        surrogate = ps.fit_snapshots(mus, 1 + mus @ np.ones((3, 4)), "polynomial")
    assert not surrogate.has_bounds
