"""Arguments of the wrong kind: one clear line each, before any work."""

import numpy as np
import pytest

import parasol as ps
from parasol.pde.box import ParameterSpace, PlainParameter

MUS = np.linspace(0, 1, 40)[:, None]
VALUES = np.hstack([MUS, MUS**2, 1 + MUS])


class Solver:
    """Somebody's code, whose `nodes` are not those of a model."""

    nodes = 5
    parameters = ParameterSpace((PlainParameter("a", 0.5, 1.0),))

    def solve(self, mu):
        return np.array([mu[0], mu[0] ** 2, 1.0])


def test_a_solver_may_have_nodes_of_its_own():
    surrogate = ps.learn(Solver(), 1e-2)
    assert surrogate.layout.points is None
    assert np.allclose(surrogate([0.7]).values, [0.7, 0.49, 1.0], atol=1e-2)


@pytest.mark.parametrize("progress", [True, "bar"])
@pytest.mark.parametrize(
    "work",
    [
        lambda p: ps.fit_snapshots(MUS, VALUES, "linear", progress=p),
        lambda p: ps.learn(data=(MUS, VALUES), progress=p),
        lambda p: ps.learn(Solver(), progress=p),
        lambda p: ps.solve_many(Solver(), [[0.5]], progress=p),
        lambda p: ps.check(ps.fit_snapshots(MUS, VALUES, "linear", level=None), progress=p),
        lambda p: ps.fit(None, progress=p),
        lambda p: ps.greedy(None, n_modes=2, progress=p),
    ],
    ids=["fit_snapshots", "data", "learn", "solve_many", "check", "fit", "greedy"],
)
def test_progress_that_cannot_be_called(work, progress):
    with pytest.raises(ps.ParasolError, match="progress=.* cannot be called. Pass a function"):
        work(progress)


def test_accuracy_of_a_tuple():
    line = ps.fit_snapshots(MUS, VALUES, "linear", level=None)
    with pytest.raises(ps.ParasolError, match=r"truth is a tuple. Pass snapshots: ps.as_snapshots\(mus, solutions\)"):
        ps.accuracy(line, (MUS, VALUES))
    snapshots = ps.as_snapshots(MUS, VALUES)
    with pytest.raises(ps.ParasolError, match="calibration is a tuple"):
        ps.fit(snapshots, "linear", basis=ps.pod(snapshots, n_modes=2), calibration=(MUS, VALUES))
