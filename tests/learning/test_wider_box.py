"""The same store with other ranges: earlier solves are learned from, nothing is calibrated with them, problems never mix."""

import warnings

import numpy as np
import pytest

import parasol as ps
from parasol.cache.content import content_hash
from parasol.learning.run import learn
from parasol.learning.solves import SolveCache

x = ps.coordinates("x")[0]
u = ps.unknown("u", x)


def problem(high, power=3, low=0.0):
    a, b = ps.parameters(a=(0.1, high, "log"), b=(low, 3.0))
    return ps.Problem(ps.Box(0, 1), ps.Eq(-u.diff(x, 2) + b * u**power, a * (1 + x)), ps.Dirichlet(0))


def account(one, store, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)
        surrogate = learn(one, 1e-2, n_nodes=30, recipe="polynomial", store=store, **options)
    report = surrogate.facts["learn"]
    earlier = [int(note.split()[0]) for note in report["notes"] if "with other ranges" in note]
    return surrogate, report, earlier[0] if earlier else 0


@pytest.fixture
def fresh(monkeypatch):
    """The parameters of all fresh sets, in the order of the runs."""
    drawn, solve = [], SolveCache.solve

    def spy(self, mus, purpose="", **options):
        if "fresh" in purpose:
            drawn.append(np.array(mus))
        return solve(self, mus, purpose, **options)

    monkeypatch.setattr(SolveCache, "solve", spy)
    return drawn


@pytest.mark.slow
def test_a_wider_box_goes_on_from_what_is_there(tmp_path, fresh):
    _, first, none = account(problem(10.0), tmp_path)
    assert none == 0
    wide, second, earlier = account(problem(20.0), tmp_path)
    assert earlier == first["solves"]
    assert second["met"]
    # the same places of the unit cube, stretched, would be where the map was fitted to
    unit = [one.to_unit(mus) for one, mus in zip((problem(10.0).parameters, wide.parameters), fresh[-2:], strict=True)]
    assert not np.any(np.all(np.isclose(unit[0][:, None], unit[1][None]), axis=2))
    assert np.mean(fresh[-1][:, 0] > 10.0) > 0  # drawn from all of the new box
    model = wide.solver
    truth = ps.solve_many(model, ps.sample(model, 100, design="random", rng=8))
    assert np.mean(ps.accuracy(wide, truth).errors <= wide(truth.mus).bound) >= 0.9
    # both runs, asked again, find all they ask for
    for high, known in ((10.0, 0), (20.0, earlier)):
        _, again, n = account(problem(high), tmp_path)
        assert (again["new_solves"], n) == (0, known)


@pytest.mark.slow
def test_a_narrower_box_learns_from_what_lies_in_it_and_other_problems_from_nothing(tmp_path):
    _, first, _ = account(problem(10.0), tmp_path)
    _, _, inside = account(problem(10.0, low=1.0), tmp_path)
    assert 0 < inside < first["solves"]
    for other in (problem(20.0, power=5), problem(20.0, power=1)):
        with pytest.warns(ps.ParasolWarning, match="not reused"):
            surrogate = learn(other, 1e-2, n_nodes=30, recipe="polynomial", store=tmp_path)
        assert not any("other ranges" in note for note in surrogate.facts["learn"]["notes"])
    with pytest.warns(ps.ParasolWarning, match="not reused"):  # other nodes are another problem
        surrogate = learn(problem(20.0), 1e-2, n_nodes=40, recipe="polynomial", store=tmp_path)
    assert not any("other ranges" in note for note in surrogate.facts["learn"]["notes"])


def test_hashes_apart_from_ranges():
    one, wider, steeper = problem(10.0), problem(20.0), problem(10.0, power=5)
    free = [content_hash(p, ranges=False) for p in (one, wider, steeper)]
    assert free[0] == free[1] != free[2]
    assert content_hash(one) != content_hash(wider)
    a, b = ps.parameters(a=(0.0, 1.0), b=(0.0, 1.0))
    assert content_hash(a - 2 * b, ranges=False) != content_hash(b - 2 * a, ranges=False)
