"""Networks trained together are those trained alone, what was stopped goes on, and every seed's result is kept."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import parasol as ps
from parasol.fitting import Adam
from parasol_lab.paper import seeds
from parasol_lab.paper import together as together_module
from parasol_lab.paper.operator_nets import DeepONet, DirectNetwork, fit_together
from parasol_lab.paper.run import Run
from parasol_lab.paper.seeds import Samples, over_seeds, train_seeds
from parasol_lab.paper.together import OURS, Reading, readings_from

X = np.random.default_rng(0).uniform(0.5, 2.0, (60, 2))
Y = np.column_stack([3 + X[:, 0] ** 2, 100 * X[:, 1], np.full(60, 7.0)])
UNSEEN = np.random.default_rng(1).uniform(0.5, 2.0, (20, 2))
TRUE = np.column_stack([3 + UNSEEN[:, 0] ** 2, 100 * UNSEEN[:, 1], np.full(20, 7.0)])
NET = DirectNetwork(
    (16, 16), Adam(10, 20, 1e-2, "constant"), "relu", last_layer="trained", reading=Reading(), device="cpu"
)


def together(recipes, which, **options):
    n = len(recipes)
    return fit_together(recipes, [X] * n, Y, ([UNSEEN] * n, TRUE), which, **options)


@pytest.mark.slow
def test_together_as_alone():
    recipes = [NET, NET, replace(NET, reading=Reading("box", "z-score", "He", "relative squares"))]
    both = together(recipes, [0, 1, 1])
    alone = together(recipes[2:], [1])[0]
    for kind in ("best", "last"):
        assert np.allclose(both[2][kind].predict(UNSEEN), alone[kind].predict(UNSEEN), rtol=2e-3, atol=1e-2)
    assert not np.allclose(both[0]["best"].predict(UNSEEN), both[1]["best"].predict(UNSEEN), rtol=1e-2)


@pytest.mark.slow
def test_a_training_that_was_stopped_goes_on(tmp_path):
    def stop(done):
        if done >= 0.5:
            raise KeyboardInterrupt

    state = tmp_path / "made" / "state.npz"
    with pytest.raises(KeyboardInterrupt):
        together([NET], [3], progress=stop, state=state)
    with np.load(state) as file:
        half = dict(file)
    assert 0 < half["seconds"] < 100
    with open(state, "wb") as file:
        np.savez(file, **half | {"seconds": 1000.0})
    older = tmp_path / "older.npz"
    np.savez(older, **{name: half[name] for name in half if name != "seconds"})
    assert together([NET], [3], state=older)[0]["best"].seconds < 100
    calls = []
    continued = together([NET], [3], progress=calls.append, state=state)[0]
    assert calls[0] == 0.6  # half of it was there
    assert 1000 < continued["best"].seconds < 1100  # and its seconds count
    assert not state.exists()
    whole = together([NET], [3])[0]
    assert np.array_equal(continued["last"].predict(UNSEEN), whole["last"].predict(UNSEEN))
    assert continued["best"].history == whole["best"].history


def test_outputs_of_a_large_network_are_filled_up_and_nothing_else_changes(tmp_path, monkeypatch):
    def stop(done):
        if done >= 0.5:
            raise KeyboardInterrupt

    recipes = [NET, replace(NET, reading=Reading("box", "z-score", "He", "relative squares"))]
    plain, state = together(recipes, [0, 1]), tmp_path / "state.npz"
    with pytest.raises(KeyboardInterrupt):
        together(recipes, [0, 1], progress=stop, state=state)
    monkeypatch.setattr(together_module, "_LARGE", 1)
    for filled in (
        together(recipes, [0, 1]),
        together(recipes, [0, 1], state=state),
    ):  # from the start, and from a state without filling
        for one, other in zip(plain, filled, strict=True):
            assert other["last"].network.weights[-1].shape == (3, 16)
            assert np.allclose(one["last"].predict(UNSEEN), other["last"].predict(UNSEEN), rtol=1e-4)
            curves = [[(row["training"], row["validation"]) for row in map["last"].history] for map in (one, other)]
            assert np.allclose(*curves, rtol=1e-4)


@pytest.mark.slow
def test_the_weights_of_the_smallest_validation_error_are_kept():
    wild = replace(NET, stage=Adam(12, 20, 0.3, "constant"))
    best = together([wild], [3])[0]["best"]
    errors = {row["epoch"]: row["validation"] for row in best.history}
    assert best.best_epoch == min(errors, key=lambda epoch: errors[epoch]) < 12
    assert np.isclose(np.sqrt(np.mean((best.predict(UNSEEN) - TRUE) ** 2)), errors[best.best_epoch], rtol=1e-3)


def test_scales_and_first_weights_are_what_a_reading_says():
    raw = Reading().scaling(X, Y)
    assert np.array_equal(raw.inputs(X), X)
    assert np.array_equal(raw.outputs(Y), Y)
    scored = Reading(outputs="z-score").scaling(X, Y).outputs(Y)
    assert np.allclose(scored[:, :2].std(axis=0), 1)
    assert np.allclose(scored[:, 2], 0)
    assert np.isclose(np.sqrt(np.mean(OURS.scaling(X, Y).outputs(Y) ** 2)), 1)
    (weights, bias), _ = Reading().layers(np.random.default_rng(0), (100, 400, 1))
    assert 0.0999 < np.abs(weights).max() <= 0.1
    assert 0.09 < np.abs(bias).max() <= 0.1
    he, zero = Reading(initial="He").layers(np.random.default_rng(0), (100, 400))[0]
    assert np.isclose(he.std(), np.sqrt(2 / 100), rtol=0.02)
    assert not zero.any()


def test_readings_change_one_thing_at_a_time():
    for base in (Reading(), Reading(outputs="z-score")):
        others = readings_from(base, logs=True)
        assert len({*others, base}) == len(others) + 1
        for other in others[:-1]:
            assert sum(getattr(other, name) != getattr(base, name) for name in vars(base)) == 1


@pytest.mark.slow
def test_deeponet_of_raw_data_answers_as_it_was_trained():
    points = np.linspace(0, 2, 3)[:, None]
    recipe = DeepONet(
        points, 8, (16,), Adam(400, 20, 1e-2, "constant"), "tanh", last_layer="trained", reading=Reading(outputs="z-score"),
        device="cpu", scale_points=False,
    )  # fmt: skip
    trained = recipe.fit(X, Y, validation=(UNSEEN, TRUE))
    assert np.mean(np.abs(trained.predict(UNSEEN) - TRUE) / TRUE) < 0.05
    assert trained.history[-1]["validation"] < 0.3


@pytest.mark.slow
def test_every_seed_is_kept(tmp_path, monkeypatch):
    problem = ps.load_problem("helmholtz")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=120))
    data = ps.solve_many(model, ps.sample(model, 30, design="random", rng=0))
    basis = ps.pod(data, n_modes=3)
    samples = Samples(model, data.between(0, 16), data.between(16, 22), data.between(22, 30), basis)
    run = Run(
        "helmholtz", "paper", tmp_path, tmp_path, lambda text: None, device="cpu", quick=True, seeds=2, readings=True
    )

    def make(reading):
        return replace(NET, reading=reading)

    found = train_seeds(run, "POD-DNN", make, Reading(), samples)
    assert found.facts["n_seeds"] == len(found.facts["errors"]) == 2
    assert found.facts["errors"][0] != found.facts["errors"][1]
    answers = basis.lift(found.predict(samples.truth.mus))
    errors = np.linalg.norm(answers - samples.truth.solutions, axis=1) / np.linalg.norm(samples.truth.solutions, axis=1)
    assert np.isclose(errors.mean(), found.facts["errors"][0], rtol=1e-5)
    assert {row["reading"] for row in found.readings} == {
        str(r) for r in (Reading(), *readings_from(Reading(), logs=True))
    }
    monkeypatch.setattr(seeds, "fit_together", None)  # nothing is left to train
    again = train_seeds(run, "POD-DNN", make, Reading(), samples)
    assert again.facts["errors"] == found.facts["errors"]
    assert again.facts["fitted_earlier"]
    assert np.array_equal(again.predict(samples.truth.mus), found.predict(samples.truth.mus))
    monkeypatch.undo()
    more = train_seeds(replace(run, seeds=3, readings=False), "POD-DNN", make, Reading(), samples)
    assert more.facts["errors"][:2] == found.facts["errors"]
    assert more.facts["n_seeds"] == 3
    # a large network is not kept: that of a later seed stands for it while it is there, and errors remain
    for path in (tmp_path / "made").glob("*.parasol"):
        path.unlink()
    monkeypatch.setattr(seeds, "_BIG", 0)
    monkeypatch.setattr(seeds, "_FEW_SEEDS", 4)
    alone = replace(run, seeds=4, readings=False)
    assert train_seeds(alone, "POD-DNN", make, Reading(), samples).map is not None
    for path in (tmp_path / "made").glob("*.parasol"):
        path.unlink()
    monkeypatch.setattr(seeds, "fit_together", None)
    gone = train_seeds(alone, "POD-DNN", make, Reading(), samples)
    assert gone.map is None
    assert gone.facts["errors"][:3] == more.facts["errors"]
    monkeypatch.setattr(seeds, "_BIG", 10**8)  # where only errors are asked for, no map is missed
    errors = train_seeds(alone, "POD-DNN", make, Reading(), samples, mapped=False).facts["errors"]
    assert errors == gone.facts["errors"]


@pytest.mark.parametrize(("large", "counts"), [(10**8, (5, 3)), (0, (3, 1))])
def test_every_training_has_its_seeds(tmp_path, monkeypatch, large, counts):
    """Five of the first reading and three of the others, of large networks three and one, each with weights and an error of its own."""
    fields, begun = ps.reduction.as_snapshots(X, Y), []

    def fitted(recipes, xs, y, validation, which, **options):
        begun.extend(zip([recipe.reading for recipe in recipes], which, strict=True))
        return [
            {
                "best": SimpleNamespace(
                    predict=lambda x, k=k: (1.01 + k / 100) * Y, seconds=1.0, device="cpu", best_epoch=1
                )
            }
            for k in which
        ]

    monkeypatch.setattr(seeds, "fit_together", fitted)
    monkeypatch.setattr(seeds, "_BIG", large)
    samples = Samples(SimpleNamespace(parameters=ps.load_problem("helmholtz").parameters), fields, fields, fields)
    run = Run("helmholtz", "paper", tmp_path, tmp_path, lambda text: None, device="cpu", seeds=5, readings=True)
    found = train_seeds(run, "DNN", lambda reading: replace(NET, reading=reading), Reading(), samples, mapped=False)
    others = readings_from(Reading(), logs=True)
    first, rest = counts
    assert begun == [(Reading(), k) for k in range(first)] + [(other, k) for other in others for k in range(rest)]
    assert np.allclose(found.facts["errors"], [0.01, 0.02, 0.03, 0.04, 0.05][:first])
    assert [row["n_seeds"] for row in found.readings] == [first] + [rest] * len(others)
    assert [row["reading"] for row in found.readings] == [str(reading) for reading in (Reading(), *others)]


def test_all_seeds_count():
    found = over_seeds([{"error": e, "max_error": m} for e, m in ((1.0, 2.0), (2.0, 9.0), (6.0, 7.0))])
    assert (found["error"], found["max_error"], found["n_seeds"]) == (3.0, 9.0, 3)
    assert np.isclose(found["scatter"], np.sqrt((4 + 1 + 9) / 2))
    assert found["errors"] == [1.0, 2.0, 6.0]


def test_one_seed_has_no_scatter():
    assert over_seeds([{"error": 0.5, "max_error": 1.0}])["scatter"] is None
