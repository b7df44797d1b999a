"""Functions unlike their distribution are told from draws of it."""

from dataclasses import replace

import numpy as np
import pytest

import parasol as ps
from parasol.delivery.server.formats import Refusal
from parasol.delivery.server.service import Limits, Service
from parasol.delivery.server.umbridge import answer
from parasol.runtime.conformal import ConformalBound
from parasol.runtime.distributions import largest_square
from parasol.runtime.quantities import Quantities


@pytest.fixture(scope="module")
def model():
    problem = ps.load_problem("schrodinger")
    return ps.discretize(problem, ps.scatter(problem.domain, n_nodes=300))


@pytest.fixture(scope="module")
def surrogate(model):
    snapshots = ps.solve_many(model, model.sample(12))
    fitted = ps.fit(snapshots, "linear", basis=ps.pod(snapshots, n_modes=6), model=model)
    return replace(fitted, conformal=ConformalBound(level=0.9, n_calibration=20, quantile=0.5))


def test_the_square_is_exceeded_as_rarely_as_said():
    from scipy.stats import chi2

    for n in (1, 9, 81, 1089):
        assert 1e-12 < chi2.sf(largest_square(n), n) < 1e-6


def test_draws_are_known_and_others_are_not(model, surrogate):
    drawn = model.sample(200, rng=3)
    assert not surrogate(drawn).extrapolated.any()
    assert np.all(surrogate(drawn).bound == 0.5)
    rough = np.random.default_rng(0).standard_normal((5, model.n_parameters)) * np.std(drawn)
    for mus in (4 * drawn[:5], drawn[:5] + 5, rough):
        answer = surrogate(mus)
        assert answer.extrapolated.all()
        assert np.isinf(answer.bound).all()
        assert np.isinf(surrogate(mus[0]).bound)
    # what a table with few digits leaves is no other shape
    assert not surrogate(drawn.round(4)).extrapolated.any()


def test_it_is_known_at_few_nodes_and_after_loading_too(model, surrogate, tmp_path):
    drawn = model.sample(2, rng=3)
    mus = np.vstack([drawn, drawn + 5])
    for other in (
        surrogate.restricted(nodes=[0, 5]),
        surrogate.restricted(points=np.zeros((1, 3))),
        ps.load(ps.save(surrogate, tmp_path / "model.parasol")),
    ):
        assert other(mus).extrapolated.tolist() == [False, False, True, True]
        assert other(mus).bound.tolist() == [0.5, 0.5, np.inf, np.inf]


def test_a_server_says_so_or_refuses(model, surrogate):
    mu = model.sample(1, rng=3)[0]
    service = Service(surrogate, Limits())
    asked = {"mus": [mu.tolist(), (mu + 5).tolist()], "bounds": True, "nodes": [0]}
    found = service.predict(service.question(asked, tuple(asked)), "application/json")
    assert found["extrapolated"].tolist() == [False, True]
    assert found["bounds"]["relative"].tolist() == [0.5, np.inf]
    # UM-Bridge has no word for it
    assert (
        len(answer({"field": (service, "field")}, "Evaluate", {"name": "field", "input": [mu.tolist()]})["output"][0])
        == 300
    )
    with pytest.raises(Refusal, match="unlike its distribution"):
        answer({"field": (service, "field")}, "Evaluate", {"name": "field", "input": [(mu + 5).tolist()]})
    bold = Service(surrogate, Limits(), extrapolate=True)
    answer(
        {"field": (bold, "field")},
        "Evaluate",
        {"name": "field", "input": [(mu + 5).tolist()], "config": {"extrapolate": True}},
    )


def test_a_quantity_of_nothing_is_never_off():
    readings = Quantities(("nothing", "all"), np.ones((2, 1, 1)), np.array([[0.0], [2.0]]))
    assert readings.bounds(np.array([np.inf, 3.0])).tolist() == [[[0.0], [0.0]], [[np.inf], [6.0]]]
