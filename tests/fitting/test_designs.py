"""Samples that nobody drew at random: a level of probability is not promised of them."""

import warnings
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import qmc

import parasol as ps
from parasol.fitting.groups import _evenness, nearly_alike, spread_evenly
from parasol.learning.report import LearnReport
from parasol.runtime.descriptions import bound_words, description

ranges = {"a": (0.2, 1.0), "b": (1.0, 50.0, "log")}
space = ps.pde.ParameterSpace(ps.parameters(**ranges))


def field(mus):
    return np.exp(-np.outer(mus[:, 0], np.linspace(0, 2, 30))) + np.log(mus[:, 1:2]) * np.linspace(0, 1, 30)


DESIGNS = {
    "sobol": lambda n: qmc.Sobol(2, rng=7).random(n),
    "sobol without scrambling": lambda n: qmc.Sobol(2, scramble=False).fast_forward(1).random(n),
    "halton": lambda n: qmc.Halton(2, rng=7).random(n),
    "latin hypercube": lambda n: qmc.LatinHypercube(2, rng=7).random(n),
    "latin hypercube, optimised": lambda n: qmc.LatinHypercube(2, rng=7, optimization="random-cd").random(n),
    "middles of strata": lambda n: qmc.LatinHypercube(2, scramble=False, rng=7).random(n),
}


@pytest.mark.parametrize("design", DESIGNS)
def test_samples_spread_evenly_are_not_called_calibrated(design):
    mus = space.from_unit(DESIGNS[design](128))
    with pytest.warns(ps.ParasolWarning, match="more evenly than .* at random") as said:
        found = ps.fit_snapshots(mus, field(mus), "polynomial", ranges=ranges)
    assert len(said) == 1
    answer = found(mus[0])
    assert answer.bound_kind == "estimated"
    assert not answer.bounds.rigorous[0]
    assert 0 < answer.bound < 1
    for text in (found.conformal.meaning, bound_words(found, {"estimated"}), str(description(found)["bound"])):
        assert "estimate" in text
        assert "likely" not in text
        assert "probability at least" not in text


def test_the_word_survives_a_file_and_stands_in_the_account(tmp_path):
    mus = space.from_unit(DESIGNS["latin hypercube"](100))
    with pytest.warns(ps.ParasolWarning, match="evenly"):
        found = ps.fit_snapshots(mus, field(mus), "polynomial", ranges=ranges)
    assert ps.load(ps.save(found, tmp_path / "even.parasol"))(mus[0]).bound_kind == "estimated"
    learned = ps.learn(data=(mus, field(mus)), tolerance=1e-2, recipe="polynomial")
    account = learned.facts["learn"]
    assert account["certificate"] == "estimated"
    assert account["level"] is None
    assert any("evenly" in note for note in account["notes"])
    assert LearnReport.of(learned).rows()["bound"].endswith("estimated")


def test_evenness_is_seen_without_the_ranges_and_on_either_scale():
    unit = DESIGNS["latin hypercube"](100)
    assert spread_evenly(
        unit, ps.pde.ParameterSpace(ps.parameters(a=(-0.3, 1.0), b=(0.0, 2.0)))
    )  # wider than the samples
    logs = 10 ** (3 * unit)
    assert spread_evenly(logs, ps.pde.ParameterSpace(ps.parameters(a=(1.0, 1000.0), b=(1.0, 1000.0))))
    one_even = np.column_stack([np.random.default_rng(3).random(100), unit[:, 1]])
    assert spread_evenly(one_even, ps.pde.ParameterSpace(ps.parameters(a=(0.0, 1.0), b=(0.0, 1.0))))
    line = np.linspace(2.0, 3.0, 60)[:, None]  # a lattice of one column
    assert spread_evenly(line, ps.pde.ParameterSpace(ps.parameters(a=(2.0, 3.0))))


def test_samples_drawn_at_random_are_not_taken_for_a_design():
    """The chance is 1e-6 for each set: none of many sets is mistaken, and chances are what they are called."""
    rng = np.random.default_rng(11)
    unit = ps.pde.ParameterSpace(ps.parameters(a=(0.0, 1.0), b=(0.0, 1.0), c=(1e-3, 1.0)))
    draws = {
        "uniform": lambda n: rng.random((n, 3)),
        "rounded": lambda n: np.round(rng.random((n, 3)), 2),
        "few values": lambda n: rng.integers(0, 8, (n, 3)) / 8,
        "dependent": lambda n: rng.random((n, 1)) * np.ones(3),
        "normal": lambda n: np.clip(0.5 + 0.15 * rng.standard_normal((n, 3)), 0, 1),
        "log": lambda n: 10 ** (-3 * rng.random((n, 3))),
    }
    for draw in draws.values():
        assert not any(spread_evenly(draw(int(n)), unit) for n in rng.integers(4, 400, 25))
    chances = [_evenness(np.sort(rng.random(30))) for _ in range(500)]
    assert 0.25 < np.mean(np.array(chances) < 0.3) < 0.35
    assert np.mean(np.array(chances) < 0.01) < 0.02


def test_random_samples_keep_the_word():
    mus = space.from_unit(np.random.default_rng(5).random((128, 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ps.ParasolWarning)
        found = ps.fit_snapshots(mus, field(mus), "polynomial", ranges=ranges)
    assert found(mus[0]).bound_kind == "calibrated"
    assert "0.95 likely" in bound_words(found, {"estimated"})


def test_trajectories_at_times_of_a_lattice_are_judged_by_their_parameters():
    """The times repeat and nobody drew them; the level is for new trajectories, whose parameters count."""
    times = np.linspace(0, 1, 21)
    for draw, kind in (
        (np.random.default_rng(2).random((60, 1)), "calibrated"),
        (DESIGNS["sobol"](64)[:, :1], "estimated"),
    ):
        mus = np.column_stack([np.repeat(draw, 21), np.tile(times, len(draw))])
        with pytest.warns(ps.ParasolWarning, match="evenly") if kind == "estimated" else nullcontext():
            found = ps.fit_snapshots(mus, field(mus + 1), "polynomial", groups=np.repeat(np.arange(len(draw)), 21))
        assert found(mus[0]).bound_kind == kind


def test_a_calibration_set_of_a_design_is_not_called_calibrated():
    train, aside = (space.from_unit(np.random.default_rng(i).random((100, 2))) for i in (0, 1))
    found = ps.fit_snapshots(train, field(train), "polynomial", ranges=ranges, level=None)
    assert ps.calibrate(found, ps.reduction.as_snapshots(aside, field(aside)))(aside[0]).bound_kind == "calibrated"
    even = space.from_unit(DESIGNS["sobol"](64))
    with pytest.warns(ps.ParasolWarning, match="evenly"):
        again = ps.calibrate(found, ps.reduction.as_snapshots(even, field(even)))
    assert again(aside[0]).bound_kind == "estimated"
    assert replace(again, conformal=replace(again.conformal, drawn=True))(aside[0]).bound_kind == "calibrated"


@pytest.mark.parametrize(("copies", "change"), [(2, 1e-6), (4, 1e-4), (9, 1e-4)])
def test_runs_that_were_repeated_with_nearly_the_same_settings_are_not_learned_from_and_kept_aside(copies, change):
    points = np.linspace(0, 1, 30)

    def program(mus):
        switch = np.maximum(mus[:, :1] - 0.6, 0)
        return np.exp(-3 * mus[:, :1] * points) * np.cos(5 * mus[:, 1:] * points) + 0.3 * switch * np.sin(9 * points)

    covered = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        settings = np.repeat(rng.uniform(size=(20, 2)), copies, axis=0)
        mus = np.clip(settings + change * rng.normal(size=settings.shape), 0, 1)
        with pytest.warns(ps.ParasolWarning, match="nearly the same ones are kept together"):
            surrogate = ps.fit_snapshots(mus, program(mus), "polynomial", ranges={"a": (0, 1), "b": (0, 1)})
        new = rng.uniform(size=(400, 2))
        new = new[surrogate.parameters.inside(new)]
        answers, truth = surrogate(new), program(new)
        errors = np.linalg.norm(answers.values - truth, axis=1) / np.linalg.norm(truth, axis=1)
        covered.append(np.mean(errors <= answers.bound))
    assert np.mean(covered) > 0.93  # 0.01 to 0.1 where copies stood on both sides


@pytest.mark.parametrize("n_columns", [1, 2, 8])
@pytest.mark.parametrize("n", [8, 20, 200])
def test_random_samples_are_no_copies(n_columns, n):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        for mus in (rng.uniform(size=(n, n_columns)), np.exp(3 * rng.normal(size=(n, n_columns)))):
            assert len(np.unique(nearly_alike(mus))) == n


def test_learning_says_at_once_what_is_wrong_with_the_samples():
    """It was kept for the report, where nobody looked: a lattice ended as "no bound", and the advice was more full solves."""
    lattice = np.stack([g.ravel() for g in np.meshgrid(np.linspace(0.2, 1, 8), np.linspace(1, 50, 8))], axis=1)
    with pytest.warns(ps.ParasolWarning) as said:
        surrogate = ps.learn(data=(lattice, field(lattice)), tolerance=1e-1, parameters=ranges, recipe="polynomial")
    texts = [str(w.message) for w in said]
    assert sum("form a lattice" in text for text in texts) == 1
    assert any("takes more results, at parameters drawn at random" in text for text in texts)
    assert not any("fresh solves" in text for text in texts)
    with pytest.raises(ps.ParasolError, match=r"ps\.calibrate\(surrogate, results\)"):
        _ = surrogate([0.5, 10.0]).bound


def test_results_drawn_at_random_calibrate_a_lattice():
    """As the message advises; results instead of snapshots ended in an AttributeError."""
    rng = np.random.default_rng(0)
    lattice = np.stack([g.ravel() for g in np.meshgrid(np.linspace(0.2, 1, 8), np.linspace(1, 50, 8))], axis=1)
    names = [name for name in ranges]
    runs = lambda mus: ps.Results(  # noqa: E731
        dict(zip(names, mus.T, strict=True)),
        {"T": field(mus), "p": 1e6 * field(mus) ** 2, "most": field(mus).max(axis=1)},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)
        turned = {"b": ranges["b"], "a": ranges["a"]}  # columns are matched by name
        surrogate = ps.learn(data=runs(lattice), tolerance=1e-1, parameters=turned, recipe="polynomial")
    fresh = np.column_stack([rng.uniform(0.2, 1, 40), np.exp(rng.uniform(0, np.log(50), 40))])
    answers = ps.calibrate(surrogate, runs(fresh))({"a": fresh[:, 0], "b": fresh[:, 1]})
    assert answers.bound_kind == ["calibrated"] * 40
    for name, bound in answers.field_bounds.items():
        truth = runs(fresh).fields[name]
        errors = np.linalg.norm(answers[name] - truth, axis=1) / np.linalg.norm(truth, axis=1)
        assert np.mean(errors <= bound * (1 + 1e-9)) >= 0.95  # the calibration set itself
    off = np.abs(answers.quantities["most"] - field(fresh).max(axis=1))
    assert np.mean(off <= answers.quantity_bounds["most"] * (1 + 1e-9)) >= 0.95
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)
        with pytest.raises(ps.ParasolError, match="a lattice of runs calibrates nothing"):
            ps.calibrate(surrogate, runs(lattice))


def test_runs_that_contradict_one_another_are_named():
    mus = np.random.default_rng(1).uniform([0.2, 1.0], [1.0, 50.0], (60, 2))
    twice, values = np.vstack([mus, mus[7]]), field(mus)
    with pytest.warns(ps.ParasolWarning, match=r"rows 7 and 60, counted from 0, have the same parameters.* by 6.7e-01"):
        ps.fit_snapshots(twice, np.vstack([values, 3 * values[7]]), "polynomial", ranges=ranges)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ps.fit_snapshots(twice, np.vstack([values, values[7]]), "polynomial", ranges=ranges)
    assert not any("no map follows both" in str(w.message) for w in said)


def test_samples_outside_their_ranges_are_counted():
    """One was named, and the advice was an option that learning does not have."""
    mus = np.random.default_rng(1).uniform([0.2, 1.0], [1.0, 50.0], (60, 2))
    n = np.count_nonzero(mus[:, 0] > 0.5)
    for learned in (
        lambda: ps.fit_snapshots(mus, field(mus), "polynomial", ranges={"a": (0.2, 0.5), "b": (1.0, 50.0)}),
        lambda: ps.learn(data=(mus, field(mus)), tolerance=0.1, parameters={"a": (0.2, 0.5), "b": (1.0, 50.0)}),
    ):
        with pytest.raises(
            ps.ParasolError, match=rf"^{n} of 60 samples are outside the ranges: a reaches .* wider"
        ) as error:
            learned()
        assert "extrapolate" not in str(error.value)
