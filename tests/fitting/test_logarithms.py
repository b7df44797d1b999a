"""Which logarithms maps are given: those that make errors on samples left out clearly less, and no others."""

import numpy as np
import pytest

import parasol as ps
from parasol.fitting.logarithms import _chosen, features_for
from parasol.runtime.parameters import ParameterSpace
from parasol.runtime.ranges import ParameterRange

WIDE = ParameterSpace((ParameterRange("a", 0.1, 20.0), ParameterRange("b", 0.0, 1.0)))


def drawn(n, seed):
    rng = np.random.default_rng(seed)
    mus = np.column_stack([rng.uniform(0.1, 20.0, n), rng.uniform(0.0, 1.0, n)])
    power = np.log(mus[:, :1]) * mus[:, 1:]
    return mus, np.hstack([power, power**2])


@pytest.mark.parametrize(("n", "logs"), [(29, False), (30, True)])
def test_too_few_samples_settle_nothing(n, logs):
    assert features_for(WIDE, *drawn(n, 4)).logs.tolist() == [logs, False]


def test_samples_beyond_the_others_do_not_count():
    """Without the logarithm, errors of a polynomial beyond the samples it was fitted to hid that it is exact with it."""
    assert features_for(WIDE, *drawn(30, 4)).logs.tolist() == [True, False]
    mus, _ = drawn(30, 4)
    assert not features_for(WIDE, mus, mus @ [[1.0, 2.0], [3.0, 4.0]]).logs.any()


@pytest.mark.parametrize(
    ("errors", "taken"),
    [
        ((1.0, 0.95, 0.95, 0.91), ""),  # less, but not clearly
        ((1.0, 0.95, 0.95, 0.89), "01"),
        ((1.0, 0.2, 1.0, 0.48), "0"),
        ((1.0, 0.3, 1.0, 0.48), "01"),  # one alone is better, as it may be by chance
        ((1.0, 2.0, 2.0, 0.5), "01"),  # only together
        ((0.5, 2.0, 2.0, 0.49), ""),  # together, and hardly better than none
        ((0.1, 2.0, 2.0, 0.5), ""),
    ],
)
def test_logarithms_are_taken_where_errors_become_clearly_less(errors, taken):
    table = dict(zip(("", "0", "1", "01"), errors, strict=True))
    columns = _chosen([0, 1], lambda columns: table["".join(map(str, sorted(columns)))])
    assert "".join(map(str, sorted(columns))) == taken


def test_no_logarithms_are_tried_where_nothing_is_left_to_gain():
    mus, _ = drawn(40, 1)
    surrogate = ps.fit_snapshots(mus, 1.0 + mus @ [[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]], n_modes=2, level=None)
    assert surrogate.facts["choice"]["map"] == "linear"
    assert "logarithms" not in surrogate.facts["choice"]


def test_few_samples_one_of_which_has_no_logarithm():
    """The fit without it took the logarithm, and was then asked at zero: data were refused for a reason that was none."""
    rng = np.random.default_rng(0)
    a, b = np.exp(rng.uniform(np.log(0.01), np.log(10.0), 34)), rng.random(34)
    a[5] = 0.0
    power = np.log(a + 1e-3)
    surrogate = ps.fit_snapshots(np.column_stack([a, b]), np.column_stack([power * (1 + b), power**2 + b, b]))
    assert surrogate.facts["logarithms"] == []
    assert surrogate.jackknife is not None
    assert np.all(np.isfinite(surrogate([[0.0, 0.5], [1.0, 0.5]]).bound))


def test_some_of_many_are_not_taken_by_chance():
    """Four parameters that deserve a logarithm alike; taking what errs least on 34 samples took all four in one draw of ten."""
    t = np.linspace(0, 1, 30)
    powers = np.array([np.ones(30), t, t**2, np.sin(3 * t) ** 2])
    wide = ParameterSpace(tuple(ParameterRange(name, 0.1, 1.0) for name in "abcd"))
    taken = []
    for seed in range(10):
        mus = np.exp(np.random.default_rng(seed).uniform(np.log(0.1), 0.0, (34, 4)))
        taken.append(int(features_for(wide, mus, 1 / (mus @ powers)).logs.sum()))
    assert taken.count(4) >= 5
