"""The whole map as ONNX: the same numbers in another program, and a reason where there is no model."""

import dataclasses
import json
import sys
from itertools import pairwise

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator
from scipy import sparse

import estimated
import parasol as ps
from hidden_layer import HiddenLayer
from parasol.delivery import onnx_export
from parasol.fitting.linear import FittedLinear
from parasol.fitting.network import Network


@pytest.fixture(scope="module")
def surrogate(reduced):
    return ps.fit(reduced, "polynomial", n_labels=200)


def answered(path, mus, dtype):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(["u"], {"mu": mus.astype(dtype)})[0]


RECIPES = {
    "polynomial": ps.fitting.Polynomial(),
    "constant": ps.fitting.Polynomial(0),
    "linear": ps.fitting.Linear(),
    "matern52": ps.fitting.GaussianProcess("matern52"),
    "inverse multiquadric": ps.fitting.GaussianProcess("inverse multiquadric"),
    "tanh": HiddenLayer(),
    "silu": HiddenLayer(activation="silu"),
    "gelu": HiddenLayer(activation="gelu"),
}


def check_export(surrogate, mus, folder):
    for dtype, tolerance in (("float64", 1e-10), ("float32", 1e-5)):
        made = ps.export(surrogate, folder / "model.onnx", dtype=dtype)
        onnx.checker.check_model(onnx.load(made.path), full_check=True)
        wanted = surrogate(mus.astype(dtype).astype(float), extrapolate=True).values
        found = answered(made.path, mus, dtype)
        assert found.dtype == dtype
        assert np.max(np.abs(found - wanted)) < tolerance * np.max(np.abs(wanted))
        assert made.difference < tolerance
        assert made.checked_with == "ONNX Runtime"
        assert made.n_bytes == made.path.stat().st_size
        assert np.allclose(answered(made.path, mus[:1], dtype), found[:1], rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", RECIPES)
def test_onnx_runtime_says_what_python_says(name, reduced, model, tmp_path):
    check_export(ps.fit(reduced, RECIPES[name], n_labels=120), ps.sample(model, 40, rng=3), tmp_path)


@pytest.mark.parametrize("activation", ["relu", "tanh", "silu", "gelu"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_deep_networks_with_all_that_they_may_have(activation, dtype, surrogate, model, tmp_path):
    rng = np.random.default_rng(1)
    widths = (2, 20, 15, 8)
    weights = tuple(rng.standard_normal((b, a)) / np.sqrt(a) for a, b in pairwise(widths))
    biases = tuple(rng.standard_normal(b) for b in widths[1:])
    skip, shift, scale = rng.standard_normal((8, 2)), rng.standard_normal(8), rng.uniform(1, 2, 8)
    network = Network(weights, biases, activation, skip, np.array([0.1, 0.2]), np.array([0.9, 1.1]), shift, scale)
    fitted = FittedLinear(network.astype(dtype), 0.0, 0.0)
    check_export(dataclasses.replace(surrogate, map=fitted, reduced=None), ps.sample(model, 40, rng=3), tmp_path)


def test_the_reference_implementation_agrees(surrogate, model, tmp_path):
    made = ps.export(surrogate, tmp_path / "model.onnx")
    mus = ps.sample(model, 5, rng=4)
    (found,) = ReferenceEvaluator(onnx.load(made.path)).run(None, {"mu": mus})
    assert np.allclose(found, surrogate(mus).values, rtol=0, atol=1e-12)


def test_without_the_runtime_the_reference_implementation_compares(surrogate, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    made = ps.export(surrogate, tmp_path / "model.onnx")
    assert made.checked_with == "onnx.reference"
    assert made.difference < 1e-12


def test_a_map_that_magnifies_rounding_stays_in_float64_and_is_compared_with_its_own_rounding(
    reduced, surrogate, tmp_path
):
    # the weights of this process are beyond 1e8: the last digits of its answers are noise in Python too
    process = ps.fit(reduced, ps.fitting.GaussianProcess("gaussian", nugget=1e-14), n_labels=200)
    assert np.abs(process.map.weights).max() > 1e7
    made = ps.export(process, tmp_path / "process.onnx")
    assert made.difference < 1e-5
    made = ps.export(process, tmp_path / "process.onnx", dtype="float32")
    assert (made.dtype, made.map_dtype) == ("float32", "float64")
    assert made.difference < 1e-5
    calm = ps.export(surrogate, tmp_path / "polynomial.onnx", dtype="float32")
    assert calm.map_dtype == "float32"
    kinds = {array.data_type for array in onnx.load(calm.path).graph.initializer}
    assert onnx.TensorProto.DOUBLE not in kinds


def test_many_inputs_and_data_of_others(tmp_path):
    rng = np.random.default_rng(0)
    mus = rng.uniform(1.0, 2.0, (120, 14))
    solutions = np.sin(mus @ rng.standard_normal((14, 5)) / 10) @ rng.standard_normal((5, 30))
    for recipe in (ps.fitting.GaussianProcess("matern32", trend_degree=1), "polynomial"):
        surrogate = ps.fit_snapshots(mus, solutions, recipe, level=None)
        made = ps.export(surrogate, tmp_path / "model.onnx")
        assert np.allclose(answered(made.path, mus[:9], "float64"), surrogate(mus[:9]).values, rtol=0, atol=1e-9)
    assert made.n_parameters == 14


@pytest.mark.parametrize("recipe", [ps.fitting.Linear(), HiddenLayer(40)], ids=["linear", "network"])
def test_one_parameter_loses_nothing(recipe, tmp_path):
    # ONNX Runtime fuses a single factor into the product that follows, in single precision
    mus = np.linspace(0.3, 1.7, 40)[:, None]
    line = ps.fit_snapshots(mus, np.sin(mus * [1.0, 1.3, 0.7]), recipe, level=None)
    check_export(line, mus, tmp_path)


def test_the_metadata_say_what_the_numbers_mean(surrogate, model, tmp_path):
    made = ps.export(surrogate, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(made.path), providers=["CPUExecutionProvider"])
    told = {name: json.loads(text) for name, text in session.get_modelmeta().custom_metadata_map.items()}
    assert [p["name"] for p in told["parameters"]] == ["a", "k"]
    assert told["parameters"][0] == {"name": "a", "low": 0.1, "high": 4.0, "scale": "log"}
    assert told["unknowns"] == ["u"]
    assert told["equation"] == "-a*u_yy - k*u - u_xx = -10*sin(8*x*(y - 1))"
    assert told["times"] is None
    assert np.array_equal(told["nodes"], model.nodes.points)
    (given,), (wanted,) = session.get_inputs(), session.get_outputs()
    assert (given.name, given.shape, given.type) == ("mu", ["n", 2], "tensor(double)")
    assert (wanted.name, wanted.shape) == ("u", ["n", 250])


def test_restricted_surrogates(surrogate, model, tmp_path):
    some = surrogate.restricted(nodes=[7, 3])
    made = ps.export(some, tmp_path / "model.onnx")
    mus = ps.sample(model, 3)
    assert np.allclose(answered(made.path, mus, "float64"), surrogate(mus).values[:, [7, 3]], rtol=0, atol=1e-12)


def test_sparse_layers_are_written_out_or_refused(surrogate, model, tmp_path, monkeypatch):
    dense = np.diag(np.arange(1.0, 3.0))
    last = np.zeros((8, 2))
    last[0, 1] = 3.0
    network = Network((sparse.csr_array(dense), sparse.csr_array(last)), (np.ones(2), np.zeros(8)), "relu")
    constructed = dataclasses.replace(surrogate, map=FittedLinear(network, 0.0, 0.0), reduced=None)
    made = ps.export(constructed, tmp_path / "model.onnx")
    mus = ps.sample(model, 6)
    expected = 3.0 * np.maximum(2 * constructed.features(mus)[:, 1] + 1, 0.0)[:, None] * surrogate.basis.modes[:, 0]
    assert np.allclose(answered(made.path, mus, "float64"), expected, rtol=0, atol=1e-13)
    monkeypatch.setattr(onnx_export, "_MOST_DENSE", 8)
    with pytest.raises(ps.ParasolError, match="sparse layers of this map"):
        ps.export(constructed, tmp_path / "other.onnx")


def test_what_cannot_be_exported_says_why_and_leaves_nothing(surrogate, tmp_path, monkeypatch):
    class Mine:
        def predict(self, x):
            return np.zeros((len(x), 8))

    target = tmp_path / "model.onnx"
    foreign = dataclasses.replace(surrogate, map=Mine())
    with pytest.raises(ps.ParasolError, match="a map of kind Mine has no program"):
        ps.export(foreign, target)
    with pytest.raises(
        ps.ParasolError, match=r"the reduced model: no map was good enough.*cannot be exported. Fit a map"
    ) as said:
        ps.export(estimated.without_map(), target)
    assert "\n" not in str(said.value)
    with pytest.raises(ps.ParasolError, match=r"the suffix '.txt' is unknown. Use one of: .onnx"):
        ps.export(surrogate, tmp_path / "model.txt")
    with pytest.raises(ps.ParasolError, match="dtype"):
        ps.export(surrogate, target, dtype="float16")
    with pytest.raises(ps.ParasolError, match="cannot export a int"):
        ps.export(3, target)
    with monkeypatch.context() as patched:
        patched.setattr(onnx_export, "_MOST_BYTES", 10)
        with pytest.raises(ps.ParasolError, match="an ONNX file ends at 2 GiB"):
            ps.export(surrogate, target)
    with monkeypatch.context() as patched:
        wrong = np.ones((64, 250))
        patched.setattr(onnx_export, "run_model", lambda data, mus: (wrong, "a broken program"))
        with pytest.raises(ps.ParasolError, match="in a broken program the exported model differs from Python"):
            ps.export(surrogate, target)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ps.ParasolError, match=r"pip install 'parasol-pde\[onnx\]'"):
        ps.export(surrogate, target)
    assert list(tmp_path.iterdir()) == []


def test_choices_are_exported(tmp_path):
    """It was refused, for the parameters that the file is compared at lay between the choices."""
    rng = np.random.default_rng(0)
    mus = np.column_stack([rng.uniform(1, 2, 40), rng.choice([0.1, 0.2, 0.7], 40)])
    ranges = {"a": (1, 2), "m": ps.Choice(0.1, 0.2, 0.7)}
    surrogate = ps.fit_snapshots(mus, mus[:, :1] * mus[:, 1:] * [1.0, 2.0], "polynomial", ranges=ranges, level=None)
    for dtype in ("float64", "float32"):
        assert ps.export(surrogate, tmp_path / "m.onnx", dtype=dtype).difference < 1e-6
