"""Nonlinear problems and problems in time: errors to be expected, which calibrated bounds follow."""

from dataclasses import replace

import numpy as np
import pytest

import parasol as ps
from parasol.errors import InputError
from parasol.fitting.calibration import following
from parasol.runtime.operations import Affine
from parasol.runtime.program import Program, StoredMap

x = ps.coordinates("x")[0]
u = ps.unknown("u", x)
a, b = ps.parameters(a=(0.1, 10.0, "log"), b=(0.0, 3.0))


@pytest.fixture(scope="module")
def learned():
    problem = ps.Problem(ps.Box(0, 1), ps.Eq(-u.diff(x, 2) + b * u**3, a * (1 + x)), ps.Dirichlet(0))
    return ps.learn(problem, 1e-2, n_nodes=30, recipe="polynomial")


@pytest.mark.slow
def test_bounds_follow_the_errors_to_be_expected(learned, tmp_path):
    again = ps.load(ps.save(learned, tmp_path / "s.parasol"))
    model = learned.solver
    truth = ps.solve_many(model, ps.sample(model, 200, design="random", rng=12))
    errors, answer = ps.accuracy(again, truth).errors, again(truth.mus)
    assert set(answer.bound_kind) == {"calibrated"}
    assert np.ptp(np.log(answer.bound)) > 1  # they differ by more than a factor of e over the box
    assert np.mean(errors <= answer.bound) >= 0.9  # 0.95 over all calibration sets
    assert 1 / 3 < np.median(answer.estimate / errors) < 3
    assert np.corrcoef(np.log(answer.estimate), np.log(errors))[0, 1] > 0.5
    found = answer.estimates
    np.testing.assert_allclose(found.factor * found.relative, answer.bound)
    assert found.probability == 0.95
    # a bound that is the same everywhere is larger where errors are small
    constant = learned.facts["learn"]["bound"]
    assert np.median(answer.bound / errors) < np.median(constant / errors)
    assert learned.facts["learn"]["met"] == (constant <= 1e-2)


def test_outside_the_box_there_is_no_bound(learned):
    assert learned([20.0, 1.0], extrapolate=True).bound == np.inf


def test_a_bound_and_its_difficulties_belong_together(learned):
    with pytest.raises(InputError, match="difficulties"):
        replace(learned, difficulty=None)
    with pytest.raises(InputError, match="difficulties"):
        replace(learned, conformal=replace(learned.conformal, normalised=False))


def test_the_level_holds_whatever_the_difficulties_say(learned):
    """A useless map of difficulties makes bounds wide or narrow, never wrong more often than said."""
    rng, hits = np.random.default_rng(3), []
    wild = StoredMap(Program((Affine(np.array([[3.0, -2.0]]), np.array([0.5])),)), "wild")
    plain = replace(learned, conformal=None, difficulty=None, parts=None)
    for _ in range(300):
        mus = learned.parameters.from_unit(rng.random((40, 2)))
        errors = rng.exponential(1e-3, 40) * mus[:, 0]
        made = following(plain, wild, mus[:39], errors[:39], level=0.95, tries=2)
        hits.append(errors[39] <= made.certify(mus[39:]).relative[0])
    assert 0.95 < np.mean(hits) < 1  # 39 of 40 are expected
