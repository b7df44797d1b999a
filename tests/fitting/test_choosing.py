import warnings

import numpy as np
import pytest

import parasol as ps
from parasol.fitting import choosing
from parasol.fitting.data import _n_aside
from parasol.fitting.groups import _different_without, _row_terms, group_labels
from parasol.fitting.kernel_ridge import KernelRidge
from parasol.fitting.linear import Linear
from parasol.reduction.pod import pod

X = np.linspace(0.0, 1.0, 60)


def rod(mus):
    """−(k u')' = 1 with log k = Σ_j μ_j cos(jπx) / j²: the flux is 1 − x, u its integral over k."""
    j = 1 + np.arange(mus.shape[1])
    return np.cumsum((1 - X) / np.exp(mus / j**2 @ np.cos(np.pi * j[:, None] * X)), axis=1) / len(X)


def waves(mus):
    """Three shapes."""
    a, b = mus.T[:, :, None]
    return 1 + a * np.sin(3 * X) + b**2 * np.cos(5 * X)


def kink(mus):
    """Two shapes whose coefficients bend."""
    a, b = mus.T[:, :, None]
    return 0.2 + np.sin(np.pi * X) * np.minimum(a, b) + X * np.maximum(a - b, 0)


def drawn(solve, n, p, seed=0):
    mus = np.random.default_rng(seed).uniform(0, 1, (n, p))
    return mus, solve(mus)


def error(surrogate, mus, truth):
    gap = surrogate.basis.lift(surrogate.coefficients(mus, extrapolate=True)) - truth
    return np.mean(np.linalg.norm(gap, axis=1) / np.linalg.norm(truth, axis=1))


def quietly(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)
        return ps.fit_snapshots(*args, **options)


@pytest.fixture
def no_jax(monkeypatch):
    monkeypatch.setattr(choosing, "find_spec", lambda name: None)


@pytest.mark.slow
def test_ten_inputs_take_a_process_and_train_nothing():
    mus, new = (np.random.default_rng(seed).uniform(-1, 1, (n, 10)) for seed, n in ((0, 160), (1, 100)))
    surrogate = quietly(mus, rod(mus), level=None)
    choice = surrogate.facts["choice"]
    assert choice["map"].startswith("gaussian process")
    assert "before training" in choice["not_tried"]["network"]
    assert error(surrogate, new, rod(new)) < 0.5 * error(
        quietly(mus, rod(mus), "polynomial", level=None), new, rod(new)
    )
    assert error(surrogate, new, rod(new)) < 1e-3


@pytest.mark.parametrize("seed", [0, 1])
def test_noise_leaves_few_modes_and_clean_data_all_of_them(seed, no_jax):
    mus, clean = drawn(waves, 120, 2, seed)
    noisy = clean + 0.02 * np.random.default_rng(seed + 9).standard_normal(clean.shape)
    with pytest.warns(ps.ParasolWarning, match="noise"):
        surrogate = ps.fit_snapshots(mus, noisy, level=None)
    new, all_modes = drawn(waves, 100, 2, seed + 5), quietly(mus, noisy, "gaussian process", level=None)
    assert all_modes.basis.n_modes > 50
    assert surrogate.basis.n_modes <= 4
    assert surrogate.facts["choice"]["modes_to_tolerance"] == all_modes.basis.n_modes
    assert error(surrogate, *new) < 0.9 * error(all_modes, *new)
    assert error(surrogate, *new) < 0.006
    same = quietly(mus, clean, level=None).basis
    assert np.array_equal(same.modes, pod(clean, tolerance=1e-4).modes)
    asked = quietly(mus, noisy, n_modes=20, level=None).basis
    assert asked.n_modes == 20


def test_groups_are_never_split(monkeypatch):
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(20), 4)
    mus = np.column_stack([rng.uniform(0, 1, 20)[group], rng.uniform(0, 1, 80)])
    seen, real = [], choosing.fit_map
    monkeypatch.setattr(choosing, "fit_map", lambda recipe, x, y, rng: seen.append(x) or real(recipe, x, y, rng=rng))
    surrogate = quietly(mus, waves(mus), groups=group, level=None)
    features = surrogate.features(mus)
    assert len(seen) >= 10
    for x in seen:
        used = np.array([np.any(np.all(x == row, axis=1)) for row in features])
        whole = {bool(used[group == label].all()) for label in range(20)}
        assert all(used[group == label].all() or not used[group == label].any() for label in range(20))
        assert whole == {True, False}


def test_rows_kept_aside_are_never_seen(no_jax):
    mus, solutions = drawn(waves, 100, 2)
    aside = np.random.default_rng(3).permutation(100)[: _n_aside(100, 0.95)]
    other = solutions.copy()
    other[aside] *= 3.0
    first, second = (quietly(mus, u, rng=3) for u in (solutions, other))
    new = drawn(waves, 10, 2, seed=1)[0]
    assert np.array_equal(first.coefficients(new, extrapolate=True), second.coefficients(new, extrapolate=True))
    assert first.facts["choice"] == second.facts["choice"]
    assert second.conformal.quantile > 0.5
    other[np.setdiff1d(np.arange(100), aside)[0]] *= 3.0
    assert quietly(mus, other, rng=3).facts["choice"] != first.facts["choice"]


def test_without_jax_no_network_is_tried_and_this_is_said(no_jax):
    surrogate = quietly(*drawn(kink, 90, 2), level=None)
    assert "JAX" in surrogate.facts["choice"]["not_tried"]["network"]
    assert surrogate.facts["choice"]["map"] == "rough gaussian process"


def test_the_report_names_the_choice():
    mus, solutions = drawn(waves, 100, 2)
    heard = []
    surrogate = ps.learn(
        data=(mus, solutions), tolerance=1e-2, recipe="best", progress=lambda stage: heard.append(stage)
    )
    notes = surrogate.facts["learn"]["notes"]
    assert any(note.startswith("the map was chosen") and "linear" in note for note in notes)
    again = ps.learn(data=(mus, solutions), tolerance=1e-2)
    assert again.facts["choice"] == surrogate.facts["choice"]
    new = drawn(waves, 10, 2, seed=1)[0]
    assert np.array_equal(*(s.coefficients(new, extrapolate=True) for s in (surrogate, again)))


def test_kernel_ridge_knows_its_errors_without_a_sample():
    rng = np.random.default_rng(0)
    z, y, ridge = rng.standard_normal((12, 3)), rng.standard_normal((12, 2)), 0.1
    found = KernelRidge(ridge=ridge)._left_out(z, y, 1.0)
    k = np.exp(-0.5 * np.sum((z[:, None] - z) ** 2, axis=2) / found.length**2)
    gaps = []
    for i in range(12):
        rest = np.delete(np.arange(12), i)
        weights = np.linalg.solve(k[np.ix_(rest, rest)] + ridge * np.eye(11), y[rest])
        gaps.append(np.linalg.norm(y[i] - k[i, rest] @ weights))
    assert found.error == pytest.approx(np.mean(gaps), rel=1e-10)


def test_functions_as_inputs_are_reduced():
    rng = np.random.default_rng(0)
    amplitudes = rng.standard_normal((300, 4)) / [1, 2, 3, 4]
    a = amplitudes @ np.sin(np.pi * np.arange(1, 5)[:, None] * np.linspace(0, 1, 80))
    a += 0.1 * rng.standard_normal(a.shape)  # what no map needs
    mus, solutions = a, rod(np.tanh(amplitudes))
    surrogate = quietly(mus[:200], solutions[:200], level=None)
    assert surrogate.facts["choice"]["map"] == "kernel ridge"
    assert surrogate.map.n_components < 60
    line = quietly(mus[:200], solutions[:200], Linear(), level=None)
    assert error(surrogate, mus[200:], solutions[200:]) < 0.6 * error(line, mus[200:], solutions[200:])


def test_rows_are_compared_without_each_column():
    rng = np.random.default_rng(0)
    for _ in range(20):
        mus = rng.integers(0, 3, (rng.integers(2, 30), rng.integers(2, 5))).astype(float)
        exact = [len(np.unique(np.delete(mus, j, axis=1), axis=0)) for j in range(mus.shape[1])]
        assert _different_without(_row_terms(mus)) == exact


def test_scales_of_fields_are_those_of_the_rows_seen():
    mus, solutions = drawn(waves, 100, 2)
    aside = np.random.default_rng(3).permutation(100)[: _n_aside(100, 0.95)]
    other = solutions.copy()
    other[aside, :30] *= 50.0
    fields = np.repeat([0, 1], 30)
    first, second = (quietly(mus, u, "linear", rng=3, fields=fields).basis.weights for u in (solutions, other))
    assert np.array_equal(first, second)


def test_of_modes_left_out_the_whole_counts():
    """A second mode of which a line tells a tenth is left out: what remains of it is all of it, not nine tenths."""
    rng = np.random.default_rng(0)
    x, noise = rng.uniform(-1, 1, (400, 1)), rng.standard_normal((400, 2))
    coefficients = np.column_stack([20 * x[:, 0] + 4 * noise[:, 0], 0.7 * x[:, 0] + noise[:, 1]])
    rows = choosing.Rows(x, coefficients, np.zeros(400), np.ones(400), np.arange(400) % 5, np.arange(400))
    tried = choosing._tried(choosing.Candidate("linear", Linear(), 5), rows, True, 0)
    assert tried.n_modes == 1
    assert np.allclose(tried.squares[:, 1], coefficients[:, 1] ** 2)


def test_trajectories_with_a_choice_among_their_parameters_are_groups():
    rng = np.random.default_rng(0)
    draws = np.column_stack([rng.integers(0, 3, 10), rng.uniform(0, 1, 10)])
    mus = np.column_stack([np.repeat(draws, 4, axis=0), rng.uniform(0, 1, 40)])
    with pytest.warns(ps.ParasolWarning, match="10 groups"):
        labels = group_labels(mus, choices=[True, False, False])
    assert np.unique(labels, return_counts=True)[1].tolist() == [4] * 10


def test_a_dearer_map_must_be_clearly_better_and_rows_far_out_do_not_count():
    candidate, out = choosing.Candidate("linear", Linear(), 5), np.ones(10, dtype=bool)
    cheap, same, good = (choosing.Tried(candidate, out, np.full((10, 1), e**2), 1, e) for e in (1.0, 0.95, 0.85))
    assert not same.beats(cheap)
    assert good.beats(cheap)
    x = np.append(np.linspace(0, 1, 49), 9.0)[:, None]
    rows = choosing.Rows(x, x, np.zeros(50), np.ones(50), np.arange(50) % 5, np.arange(50))
    left_out = choosing._squares(candidate, rows, 1, 0)[0]
    assert np.flatnonzero(~left_out).tolist() == [0, 49]  # the ends: without them they are outside


def test_of_many_samples_too_errors_are_seen_to_follow_the_parameters():
    """Dear maps are tried on one part of many samples; rows of this part alone say whether errors follow, whole groups left out."""
    x, group = np.linspace(-1, 1, 400)[:, None], np.random.default_rng(0).permutation(400) // 2
    rows = choosing.Rows(x, x, np.zeros(400), np.ones(400), group % 5, group)
    seen = rows.part == 0
    parts = rows.parts_of(seen)
    assert len(set(parts)) == 5
    assert all(len(set(parts[group[seen] == label])) == 1 for label in set(group[seen]))
    assert np.array_equal(rows.parts_of(rows.part < 2), rows.part[rows.part < 2])
    candidate = choosing.Candidate("process", choosing.GaussianProcess(), 1)
    best = choosing.Tried(candidate, seen, np.exp(6 * x), 1, 1.0)
    difficulty = choosing.Choice(None, rows, None, best, {}).difficulty
    assert difficulty.predict(x)[-1, 0] - difficulty.predict(x)[0, 0] == pytest.approx(6.0, abs=1.0)


@pytest.fixture
def cheap_maps(monkeypatch):
    """Those that are fitted in no time."""
    few = [choosing.Candidate("linear", Linear(), 5), choosing.Candidate("polynomial", choosing.Polynomial(), 5)]
    monkeypatch.setattr(choosing, "_candidates", lambda n, n_inputs: (few, []))


def power(mus):
    """u = log(a) and its square, times straight lines in b."""
    a, b = np.log(mus[:, :1]), mus[:, 1:2]
    return 3 + a * X + 0.3 * a**2 * X**2 + b * (1 - X)


def test_a_logarithm_nobody_declared_is_taken_where_it_errs_less(cheap_maps, tmp_path):
    rng = np.random.default_rng(0)
    mus = np.column_stack([10.0 ** rng.uniform(-3, 2, 80), rng.uniform(1e-3, 1, 80)])
    surrogate = quietly(mus, power(mus), ranges={"a": (1e-3, 1e2), "b": (1e-3, 1.0)}, level=None)
    assert surrogate.facts["logarithms"] == ["a"]  # b spans decades too, but its logarithm is of no use
    said = surrogate.facts["choice"]["logarithms"]
    assert said["kept"]
    assert said["parameters"] == ["a"]
    assert said["error"] < 0.1 * said["without"]
    assert "all of log a and not of a, where errors would be" in choosing.choice_words(surrogate.facts["choice"])
    declared = quietly(mus, power(mus), ranges={"a": (1e-3, 1e2, "log"), "b": (1e-3, 1.0)}, level=None)
    new = np.column_stack([10.0 ** rng.uniform(-2.9, 1.9, 50), rng.uniform(0.1, 0.9, 50)])
    assert error(surrogate, new, power(new)) <= 1.1 * error(declared, new, power(new)) + 1e-12
    assert "logarithms" not in declared.facts["choice"]
    ps.save(surrogate, tmp_path / "it.parasol")
    loaded = ps.load(tmp_path / "it.parasol")
    assert np.array_equal(loaded.coefficients(new), surrogate.coefficients(new))
    assert loaded.facts["logarithms"] == ("a",)


def test_a_logarithm_that_is_not_clearly_better_is_not_taken(cheap_maps, monkeypatch):
    """A polynomial proposes; the maps that are used decide."""
    mus, solutions = drawn(kink, 80, 2)
    with_log = choosing.features_of
    monkeypatch.setattr(choosing, "features_for", lambda parameters, mus, _: with_log(parameters, mus, more_logs=[0]))
    surrogate = quietly(mus + 0.01, solutions, ranges={"a": (0.01, 1.01), "b": (0.01, 1.01)}, level=None)
    said = surrogate.facts["choice"]["logarithms"]
    assert not said["kept"]
    assert not surrogate.features.logs.any()
    assert surrogate.facts["logarithms"] == []
    assert "; with log a none erred clearly less" in choosing.choice_words(surrogate.facts["choice"])


def test_of_too_many_logarithms_those_that_gain_nothing_are_dropped(cheap_maps, monkeypatch):
    """A polynomial proposed both; the map that is taken needs one of them."""
    with_log = choosing.features_of
    both = lambda parameters, mus, _: with_log(parameters, mus, more_logs=[0, 1])  # noqa: E731
    monkeypatch.setattr(choosing, "features_for", both)
    rng = np.random.default_rng(0)
    mus = np.column_stack([10.0 ** rng.uniform(-3, 2, 60), rng.uniform(1e-3, 1, 60)])
    surrogate = quietly(mus, power(mus), ranges={"a": (1e-3, 1e2), "b": (1e-3, 1.0)}, level=None)
    assert surrogate.facts["logarithms"] == ["a"]
    assert surrogate.facts["choice"]["logarithms"]["parameters"] == ["a"]
