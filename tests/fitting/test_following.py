"""Bounds of data follow the parameters where errors do, at their level; and stay one number where errors do not."""

import numpy as np
import pytest

import parasol as ps

X = np.linspace(0, 1, 20)


def field(mus):
    """What b brings in changes faster with a than samples tell."""
    a, b = mus[:, :1], mus[:, 1:]
    return np.exp(-a * X) + 0.3 * b**2 * np.sin(300 * a) * X


def drawn(n, seed):
    return np.random.default_rng(seed).uniform([1.0, 0.0], [3.0, 1.0], (n, 2))


@pytest.fixture(scope="module")
def fitted():
    mus = drawn(160, 2)
    with pytest.MonkeyPatch.context() as without:
        without.setattr("parasol.fitting.choosing.find_spec", lambda name: None)  # a network takes long
        return ps.fit_snapshots(mus, field(mus), ranges={"a": (1, 3), "b": (0, 1)})


def test_bounds_are_larger_where_errors_are(fitted):
    fresh = drawn(1000, 50)
    answer, truth = fitted(fresh), field(fresh)
    errors = np.linalg.norm(answer.values - truth, axis=1) / np.linalg.norm(truth, axis=1)
    assert fitted.difficulty is not None
    assert np.mean(errors <= answer.bound) > 0.9
    easy = fresh[:, 1] < 0.4
    assert np.median(answer.bound[easy]) < 0.5 * np.median(answer.bound[~easy])
    assert answer.bound_kind[0] == "calibrated"
    plain = fitted.facts["calibrated_bound"]
    assert np.mean(errors <= plain) > 0.9  # what `learn` compares with a tolerance
    assert np.min(answer.bound) < plain < np.max(answer.bound)


def test_it_is_a_part_of_the_file(fitted, tmp_path):
    loaded = ps.load(ps.save(fitted, tmp_path / "f.parasol"))
    mus = drawn(5, 60)
    assert np.array_equal(loaded(mus).bound, fitted(mus).bound)
    assert np.all(loaded(mus).estimate > 0)


def test_the_worst_row_of_a_group_counts():
    """Three rows for each value of a, two of them without any error: the bound covers the third."""
    from parasol.fitting.calibration import following
    from parasol.runtime.operations import Affine
    from parasol.runtime.program import Program, StoredMap

    mus = drawn(120, 3)
    surrogate = ps.fit_snapshots(mus, field(mus), "linear", level=None, ranges={"a": (1, 3), "b": (0, 1)})
    one = StoredMap(Program((Affine(np.zeros((1, 2)), np.zeros(1)),)), "constant")
    errors, group = np.tile([0.0, 0.0, 1.0], 40), np.repeat(np.arange(40), 3)
    errors[:-1:3] = 1e-9
    for labels, wanted in ((group, 1.0), (None, 1.0)):
        made = following(surrogate, one, mus, errors, level=0.95, group=labels)
        assert made.certify(mus[:1]).relative[0] == pytest.approx(wanted)
    assert following(surrogate, one, mus, errors, level=0.95, group=group).conformal.n_calibration == 40


def test_where_errors_do_not_follow_there_is_one_number():
    rng = np.random.default_rng(4)
    mus = rng.random((200, 2))
    angle = np.linspace(0, 2 * np.pi, 30, endpoint=False) + mus[:, :1]
    noisy = np.cos(angle) + 0.02 * rng.standard_normal((200, 30))  # of the same size everywhere
    with pytest.warns(ps.ParasolWarning, match="noise"):
        surrogate = ps.fit_snapshots(mus, noisy)
    assert surrogate.difficulty is None
    assert np.ptp(surrogate(mus[:20]).bound) == 0


@pytest.mark.slow
def test_learning_compares_the_bound_for_all_parameters_and_groups_count_once(monkeypatch):
    """Three rows for each parameter drawn: the calibration counts the drawn ones, and `learn` reports a relative error."""
    monkeypatch.setattr("parasol.fitting.choosing.find_spec", lambda name: None)
    mus = np.repeat(drawn(120, 5), 3, axis=0)
    mus[:, 0] += np.tile([0.0, 1e-3, 2e-3], 120)  # beside each other
    group = np.repeat(np.arange(120), 3)
    results = ps.Results({"a": mus[:, 0], "b": mus[:, 1]}, field(mus), groups=group)
    with pytest.warns(ps.ParasolWarning, match="tolerance"):
        surrogate = ps.learn(data=results, tolerance=1e-2, parameters={"a": (1, 3.01), "b": (0, 1)})
    assert surrogate.difficulty is not None
    assert surrogate.conformal.n_calibration == 24  # groups, not rows
    assert surrogate.facts["learn"]["bound"] == surrogate.facts["calibrated_bound"] != surrogate.conformal.quantile
