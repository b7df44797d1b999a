"""Reduced models of nonlinear problems and in time look at the clock, and without them there is an answer still."""

import warnings

import numpy as np
import pytest

import parasol as ps
from parasol.errors import Exhausted
from parasol.learning import samples
from parasol.learning.labels import label_source
from parasol.learning.run import learn
from parasol.learning.solves import Limits, SolveCache, used_up

x, t = ps.coordinates("x")[0], ps.time("t")


def in_time():
    u, (a,) = ps.unknown("u", x, t), ps.parameters(a=(0.1, 1.0))
    return ps.Problem(
        ps.Box(0, 1), ps.Eq(u.diff(t), a * u.diff(x, 2) - u**3), ps.Dirichlet(0), initial=x * (1 - x), times=[0, 0.5, 1]
    )


def steady():
    u, (a,) = ps.unknown("u", x), ps.parameters(a=(0.1, 1.0))
    return ps.Problem(ps.Box(0, 1), ps.Eq(-u.diff(x, 2) + u**3, a), ps.Dirichlet(0))


class Clock:
    """It lets so many looks pass."""

    def __init__(self, n):
        self.left = n

    def __call__(self):
        self.left -= 1
        if self.left < 0:
            raise used_up("seconds")


@pytest.mark.parametrize("problem", [in_time(), steady()], ids=["in time", "steady"])
def test_a_reduced_model_ends_when_the_time_is_up(problem):
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=30))
    train = ps.solve_many(model, ps.sample(model, 4))
    clock = Clock(10**6)
    source = label_source(model, train, 1e-3, watch=clock)
    looks = 10**6 - clock.left
    assert looks > 0
    with pytest.raises(Exhausted):
        label_source(model, train, 1e-3, watch=Clock(looks - 1))
    clock.left = 0
    for ask in (source.values, lambda mus: source.labels(mus, 1e-3), source.snapshots):
        with pytest.raises(Exhausted):
            ask(train.mus)


@pytest.mark.parametrize(("limit", "said"), [({"seconds": 1e-3}, "seconds=0.001"), ({"solves": 9}, "solves=9")])
def test_a_map_that_the_limit_leaves_too_few_samples_for_says_which_limit(limit, said):
    ranges = {name: (0.0, 1.0) for name in "abcdef"[: 2 if "seconds" in limit else 6]}
    with pytest.raises(ps.ParasolError, match=rf"too few for a polynomial .* {said} allowed no more full solves\."):
        learn(lambda mu: np.cos(mu[0] + np.arange(5) * mu[1]), 1e-3, parameters=ranges, recipe="polynomial", **limit)


@pytest.mark.slow
@pytest.mark.parametrize("n", [3])
def test_without_time_for_reduced_models_there_is_a_surrogate_with_a_bound(monkeypatch, n):
    clock = Clock(n)
    monkeypatch.setattr(samples, "_watch", lambda cache: clock)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)
        surrogate = learn(in_time(), 1e-3, n_nodes=30, solves=30, recipe="polynomial")
    assert clock.left < 0
    assert np.isfinite(surrogate([0.5]).bound)
    assert surrogate.facts["labels"] == "full solves"


def test_time_is_kept_back_for_the_bound():
    cache = SolveCache(None, Limits(seconds=100.0), expected=0.1)
    look = samples._watch(cache)
    look()
    cache.limits.seconds = cache.limits.spent + 1.0
    cache.limits.started -= 0.8
    with pytest.raises(Exhausted):  # 19 solves take 1.9 seconds, of which 0.3 seconds are kept
        look()
    assert samples._watch(SolveCache(None, Limits())) is None
