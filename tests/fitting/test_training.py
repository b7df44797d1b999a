import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from parasol.checks import ParasolError, ParasolWarning
from parasol.fitting.last_layer import solve_last_layer
from parasol.fitting.training import Adam, NetworkRecipe, VariableProjection

pytest.importorskip("jax")
pytest.importorskip("optax")

from parasol.fitting import descent
from parasol_lab.paper.operator_nets import DeepONet, DirectNetwork, PodDeepONet

NODES = np.linspace(0, 1, 40)
QUICK = replace(NetworkRecipe.best(widths=(8, 20), iterations=40), teacher=False)
ADAM = NetworkRecipe((20, 20), (Adam(30, 20, 1e-2),), last_layer="trained")


def fields(x):
    """Solutions of a smooth family, all of its POD coefficients needed in turn."""
    return np.exp(-(1.5 + x[:, :1]) * NODES) / (2 + x[:, 1:] * np.sin(3 * NODES))


def draw(n, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (n, 2))


def relative(found, expected):
    return float(np.mean(np.linalg.norm(found - expected, axis=1) / np.linalg.norm(expected, axis=1)))


@pytest.fixture(scope="module")
def trained():
    x = draw(600)
    return replace(NetworkRecipe.best(widths=(12, 40), iterations=75), teacher=False).fit(x, fields(x))


def test_training_lowers_the_error_by_orders_and_generalises(trained):
    """The gradient stays right far below 1e-7, where a residual that is only rounded would drown it."""
    unseen = draw(300, 1)
    assert relative(trained.predict(unseen), fields(unseen)) < 1e-6
    first, last = trained.history[0]["validation"], min(h["validation"] for h in trained.history)
    assert last < 1e-2 * first
    assert trained.network.depth == 3
    assert trained.best_epoch > 0


@pytest.mark.slow
def test_validation_error_is_that_of_samples_unseen(trained):
    x, v = draw(300), draw(200, 2)
    net = QUICK.fit(x, fields(x), validation=(v, fields(v)))
    assert net.validation_error == pytest.approx(relative(net.predict(v), fields(v)), rel=1e-6)


def test_jacobian_against_differences(trained):
    x, h = draw(4, 3), 1e-4
    for j in range(2):
        e = h * np.eye(2)[j]
        slope = (trained.predict(x + e) - trained.predict(x - e)) / (2 * h)
        assert np.allclose(trained.jacobian(x)[:, :, j], slope, atol=1e-7)


def test_gradient_of_variable_projection_against_differences():
    """Computed through the optimiser's first step: a step along the gradient lowers the loss at the predicted rate."""
    import jax

    x, rng = draw(50), np.random.default_rng(0)
    y = fields(x)[:, :3]
    hidden = [(rng.standard_normal((2, 4)), rng.standard_normal(4)), (rng.standard_normal((4, 5)), np.zeros(5))]

    def loss(layers):  # by another road: normal equations through NumPy's lstsq
        h = np.tanh(np.tanh(x @ layers[0][0] + layers[0][1]) @ layers[1][0] + layers[1][1])
        a = np.hstack([h, np.ones((50, 1)), x])
        return 0.5 * np.log(np.sum((a @ np.linalg.lstsq(a, y, rcond=None)[0] - y) ** 2) / 50)

    seen = {}

    def spy(evaluate, start, **_):
        seen["value"], seen["slope"] = evaluate(start)

    with pytest.MonkeyPatch.context() as patch, descent.computing("float64", "cpu"):
        patch.setattr("scipy.optimize.minimize", spy)
        stage, watch = VariableProjection(1, ridge=1e-30), descent.Watch()
        descent.variable_projection(hidden, x, y, stage, "tanh", skip=True, more=(x, y), validation=(x, y), watch=watch)
        flat, shaped = jax.flatten_util.ravel_pytree(hidden)
        assert seen["value"] == pytest.approx(loss(hidden), rel=1e-9)
        for k in (0, 9, 20, 33):
            h = 1e-5 * np.eye(len(flat))[k]
            up, down = (loss([tuple(map(np.asarray, layer)) for layer in shaped(flat + s * h)]) for s in (1, -1))
            assert seen["slope"][k] == pytest.approx((up - down) / 2e-5, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("recipe", [QUICK, replace(ADAM, dtype="float32", activation="relu", skip=False)])
def test_same_seed_same_network(recipe):
    x = draw(80)
    first, second = (recipe.fit(x, fields(x), rng=3) for _ in range(2))
    other = recipe.fit(x, fields(x), rng=4)
    assert all(np.array_equal(a, b) for a, b in zip(first.network.weights, second.network.weights, strict=True))
    assert not np.array_equal(first.network.weights[0], other.network.weights[0])


@pytest.mark.parametrize("scaling", ["global", "z-score"])
def test_adam_keeps_the_best_weights_on_validation(scaling):
    x, v = draw(200), draw(100, 1)
    net = replace(ADAM, output_scaling=scaling).fit(x, fields(x), validation=(v, fields(v)))
    errors = {h["epoch"]: h["validation"] for h in net.history}
    assert net.best_epoch == min(errors, key=errors.__getitem__)
    deviation = fields(x).std(axis=0)
    deviation[deviation < 1e-12] = 1.0  # the first node's values are all the same
    scale = deviation if scaling == "z-score" else np.sqrt(np.mean(fields(x).var(axis=0)))
    assert np.sqrt(np.mean(((net.predict(v) - fields(v)) / scale) ** 2)) == pytest.approx(
        min(errors.values()), rel=1e-6
    )
    assert errors[net.best_epoch] < 0.3 * net.history[0]["validation"]


def test_patience_stops_training():
    x = draw(60)
    noise = np.random.default_rng(0).standard_normal((60, 2))  # nothing to learn
    net = replace(ADAM, stages=(Adam(400, 20, 1e-2),), patience=20).fit(x, noise)
    assert net.history[-1]["epoch"] < 400
    assert net.history[-1]["epoch"] - net.best_epoch >= 20


@pytest.mark.slow
def test_targets_in_host_memory_give_as_good_a_network(monkeypatch):
    x = draw(200)
    recipe = replace(ADAM, stages=(Adam(60, 20, 1e-2),))
    resident = recipe.fit(x, fields(x)).validation_error
    monkeypatch.setattr(descent, "_RESIDENT", {"cpu": 0, "gpu": 0})
    assert recipe.fit(x, fields(x)).validation_error < 2 * resident


@pytest.mark.slow
def test_solving_the_last_layer_never_loses():
    x, v = draw(300), draw(200, 1)
    data = (x, fields(x))
    plain, solved = (
        replace(ADAM, last_layer=how).fit(*data, validation=(v, fields(v))).validation_error
        for how in ("trained", "solved")
    )
    assert solved < 0.3 * plain


@pytest.mark.slow
def test_a_linear_map_is_met_to_rounding_with_more_inputs_than_samples():
    """Boundary values to coefficients in the paper's last experiment: 585 inputs of rank 81."""
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((200, 12)) @ rng.standard_normal((12, 100))
    matrix = rng.standard_normal((100, 5))
    net = NetworkRecipe.best().fit(inputs[:60], inputs[:60] @ matrix)
    assert relative(net.predict(inputs[60:]), inputs[60:] @ matrix) < 1e-8


@pytest.mark.slow
def test_few_samples_are_taught_by_a_process():
    x, unseen = draw(30), draw(300, 1)
    recipe = NetworkRecipe.best(widths=(12, 40), iterations=50)
    taught, alone = (
        relative(r.fit(x, fields(x)).predict(unseen), fields(unseen)) for r in (recipe, replace(recipe, teacher=False))
    )
    assert taught < 0.5 * alone


@pytest.mark.slow
def test_single_precision_costs_only_its_rounding():
    x, unseen = draw(400), draw(200, 1)
    net = NetworkRecipe.compact(iterations=60).fit(x, fields(x))
    assert net.network.dtype == np.float32
    double = net.network.astype(np.float64)
    assert relative(net.predict(unseen), double(unseen)) < 3e-6


def test_constant_outputs_are_predicted():
    x = draw(30)
    y = np.full((30, 3), 2.5)
    assert np.array_equal(QUICK.fit(x, y).predict(x), y)
    assert np.allclose(DirectNetwork(widths=(4,), stage=Adam(2, 10)).fit(x, y).predict(x), y)
    mixed = np.column_stack([y, x])
    for scaling in ("global", "z-score"):
        assert relative(replace(QUICK, output_scaling=scaling).fit(x, mixed).predict(x), mixed) < 1e-5


def test_fewer_samples_than_outputs():
    x, unseen = draw(20), draw(100, 1)
    net = QUICK.fit(x, fields(x))
    assert relative(net.predict(unseen), fields(unseen)) < 0.05


def test_interruption_returns_the_best_so_far():
    x, calls = draw(100), []

    def stop(fraction):
        calls.append(fraction)
        if len(calls) == 3:
            raise KeyboardInterrupt

    for recipe in (ADAM, replace(QUICK, stages=(VariableProjection(40, check_every=5),))):
        calls.clear()
        with pytest.warns(ParasolWarning, match="interrupted"):
            net = recipe.fit(x, fields(x), progress=lambda f: stop(f))
        assert net.interrupted
        assert np.all(np.isfinite(net.predict(x)))


def test_progress_ends_at_one():
    x, calls = draw(60), []
    QUICK.fit(x, fields(x), progress=calls.append)
    assert calls == sorted(calls)
    assert calls[-1] == 1.0


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (draw(10), np.full((10, 2), np.nan), "NaN"),
        (draw(10), np.ones((9, 2)), "10 samples and y has 9"),
        (np.zeros((10, 2)), np.ones((10, 2)), "the same"),
    ],
)
def test_bad_data_in_one_line(x, y, message):
    points = np.zeros((2, 2))
    for recipe in (QUICK, DirectNetwork(), DeepONet(points), PodDeepONet()):
        with pytest.raises(ParasolError, match=message) as caught:
            recipe.fit(x, y)
        assert "\n" not in str(caught.value)


def test_no_gpu_where_one_is_demanded():
    import jax

    if jax.default_backend() != "cpu":
        pytest.skip("there is one")
    with pytest.raises(ParasolError, match='device="cpu"'):
        replace(QUICK, device="gpu").fit(draw(20), fields(draw(20)))


def test_no_jax(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ParasolError, match=r"pip install 'parasol-pde\[train\]'"):
        QUICK.fit(draw(20), fields(draw(20)))


def test_settings_need_no_jax():
    code = "import sys, parasol.fitting.training, parasol_lab.paper.operator_nets; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_double_precision_stays_inside():
    import jax.numpy as jnp

    QUICK.fit(draw(30), fields(draw(30)))
    assert jnp.ones(1).dtype == jnp.float32


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"widths": ()}, "no hidden layer"),
        ({"widths": (0,)}, "widths"),
        ({"last_layer": "trained"}, "variable projection"),
        ({"dtype": "float16"}, "dtype"),
        ({"stages": ()}, "trains nothing"),
    ],
)
def test_bad_settings(change, message):
    with pytest.raises(ParasolError, match=message):
        replace(QUICK, **change)


def test_ridge_of_the_last_layer_is_the_best_for_unseen_samples():
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((30, 1))
    a, b = rng.standard_normal((40, 30)), rng.standard_normal((500, 30))
    noisy = a @ truth + rng.standard_normal((40, 1))
    unseen = (b, b @ truth)
    errors = {
        r: np.sqrt(np.mean((solve_last_layer(a, noisy, like=last(r)).predict(b) - unseen[1]) ** 2)) for r in RIDGES
    }
    for chosen in (solve_last_layer(a, noisy, validation=unseen), solve_last_layer(a, noisy)):
        assert np.sqrt(np.mean((chosen.predict(b) - unseen[1]) ** 2)) < 1.15 * min(errors.values())


RIDGES = np.logspace(-4, 1, 30)


def last(ridge):
    return replace(solve_last_layer(np.eye(3), np.eye(3)), ridge=ridge, linear_weight=1.0)


def test_leaving_one_out_is_what_it_says():
    rng = np.random.default_rng(1)
    a, y = rng.standard_normal((12, 5)), rng.standard_normal((12, 2))
    found = solve_last_layer(a, y)
    gaps = []
    for i in range(12):
        rest = np.arange(12) != i
        like = replace(found, ridge=found.ridge * 12 / 11)
        gaps.append(solve_last_layer(a[rest], y[rest], like=like).predict(a[i : i + 1])[0] - y[i])
    # the mean taken off is that of 11 samples here, and of 12 in the formula, which knows it
    assert np.sqrt(np.mean(np.square(gaps))) == pytest.approx(found.error, rel=1e-8)


@pytest.mark.slow
def test_deeponet_learns_the_fields():
    x, unseen = draw(300), draw(100, 1)
    recipe = DeepONet(NODES[:, None], n_terms=16, widths=(40, 40), stage=Adam(100, 50, 3e-3), last_layer="trained")
    plain = recipe.fit(x, fields(x))
    solved = replace(recipe, last_layer="solved").fit(x, fields(x))
    assert relative(plain.predict(unseen), fields(unseen)) < 0.03
    assert relative(solved.predict(unseen), fields(unseen)) < 0.5 * relative(plain.predict(unseen), fields(unseen))
    assert plain.trunk is not None
    assert plain.trunk(NODES[:, None]).shape == (40, 16)
    h = 1e-2
    slope = (solved.predict(unseen[:3] + np.array([h, 0])) - solved.predict(unseen[:3] - np.array([h, 0]))) / (2 * h)
    assert np.allclose(solved.jacobian(unseen[:3])[:, :, 0], slope, atol=2e-3)


@pytest.mark.parametrize("wide", [False, True])
def test_pod_deeponet_stands_on_the_projection(wide):
    x, unseen = draw(30 if wide else 300), draw(100, 1)
    centred = fields(x) - fields(x).mean(axis=0)
    modes = np.linalg.svd(centred, full_matrices=False)[2][:4]
    gap = fields(unseen) - fields(x).mean(axis=0)
    floor = np.mean(np.linalg.norm(gap - gap @ modes.T @ modes, axis=1) / np.linalg.norm(fields(unseen), axis=1))
    net = PodDeepONet(4, QUICK).fit(x, fields(x))
    assert np.allclose(np.abs(net.values.T @ modes.T), np.eye(4), atol=1e-8)
    assert relative(net.predict(unseen), fields(unseen)) < (3 if wide else 1.05) * floor


@pytest.mark.slow
def test_direct_network_reads_single_precision_and_memory_maps(tmp_path):
    x, unseen = draw(200), draw(100, 1)
    stored = np.memmap(tmp_path / "fields", dtype=np.float32, mode="w+", shape=(200, 40))
    stored[:] = fields(x)
    recipe = DirectNetwork(widths=(30, 30), stage=Adam(100, 50, 3e-3))
    net = recipe.fit(x, stored)
    assert net.network.widths == (2, 30, 30, 40)
    assert relative(net.predict(unseen), fields(unseen)) < 1e-3
    assert recipe.fit(x, stored, validation=(unseen, fields(unseen))).validation_error < 1e-3
