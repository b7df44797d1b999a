"""Samples that leave much of their box empty are said to, and others are not."""

import warnings

import numpy as np
import pytest
from scipy.stats import norm

import parasol as ps
from parasol.fitting.empty_parts import empty_share

T = np.linspace(0, 1, 20)


def clusters(rng):
    return np.vstack([rng.normal(0.2, 0.03, (60, 2)), rng.normal(0.8, 0.03, (60, 2))])


def line(rng):
    a = rng.uniform(size=100)
    return np.column_stack([a, a + 1e-3 * rng.normal(size=100)])


def program(mus):
    return np.exp(-mus[:, :1] * T) + mus[:, 1:2] * T


def fitted(mus, **about):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        surrogate = ps.fit_snapshots(mus, program(mus), "polynomial", **about)
    return surrogate, [str(w.message) for w in said if "empty" in str(w.message)]


@pytest.mark.parametrize("draw", [clusters, line])
def test_of_new_parameters_in_the_box_few_would_be_within_the_bound(draw):
    mus = draw(np.random.default_rng(0))
    surrogate, (text,) = fitted(mus)
    assert "neither answers nor bounds can be trusted" in text
    new = np.random.default_rng(9).uniform(mus.min(axis=0), mus.max(axis=0), (300, 2))
    errors = np.linalg.norm(surrogate(new).values - program(new), axis=1) / np.linalg.norm(program(new), axis=1)
    assert np.mean(errors <= surrogate(new).bound) < 0.5  # what the warning is for


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_samples_that_fill_their_box_are_left_in_peace(scale):
    rng = np.random.default_rng(1)
    unit = rng.uniform(size=(80, 2))
    mus = unit if scale == "linear" else np.exp(6.9 * unit - 6.9)
    assert fitted(mus, ranges={"a": (1e-3, 1.0, scale), "b": (1e-3, 1.0, scale)} if scale == "log" else None)[1] == []


def test_trajectories_are_as_far_apart_as_their_parameters():
    rng = np.random.default_rng(2)
    runs, times = np.repeat(rng.uniform(size=12), 50), np.tile(np.linspace(0, 1, 50), 12)
    assert empty_share(np.column_stack([runs, times]), np.repeat(np.arange(12), 50)) < 0.1
    assert fitted(np.column_stack([runs, times]))[1] == []


def test_choices_and_parameters_with_a_distribution_are_not_counted():
    rng = np.random.default_rng(3)
    given = {"a": norm(0.5, 0.1), "b": norm(0.5, 0.1)}
    mus = np.clip(line(rng), 0.25, 0.75)
    assert len(fitted(mus)[1]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = ps.Results({"a": mus[:, 0], "b": mus[:, 1]}, {"u": mus[:, :1] + T})
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ps.learn(data=results, tolerance=0.1, parameters=given, recipe="polynomial")
    assert not [w for w in said if "empty" in str(w.message)]


@pytest.mark.parametrize("n_columns", [1, 2, 4, 8])
@pytest.mark.parametrize("n", [10, 30, 300])
def test_even_samples_leave_nothing_empty(n, n_columns):
    for seed in range(5):
        unit = np.random.default_rng(seed).uniform(size=(n, n_columns))
        assert empty_share(unit, np.arange(n)) < 0.1
    grid = np.linspace(0, 1, 3 if n_columns > 2 else 9)
    lattice = np.stack([g.ravel() for g in np.meshgrid(*[grid] * n_columns)], axis=1)
    assert empty_share(lattice, np.arange(len(lattice))) == 0
