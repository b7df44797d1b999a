"""Every kind of map through every runtime: Python, a file, derivatives, JAX, PyTorch, float32, ONNX, the page's JavaScript."""

import re
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from scipy import sparse

import parasol as ps
from hidden_layer import HiddenLayer
from parasol.delivery import onnx_export, onnx_graph, page
from parasol.delivery.page.contents import contents
from parasol.delivery.page.pack import Pack
from parasol.fitting.linear import FittedLinear
from parasol.fitting.network import Network
from parasol.fitting.polynomial import lower_set
from parasol.fitting.training import TrainedNetwork
from parasol.runtime import Activation, Affine, Chebyshev, Program, ProgramMap, Scale, Sum, container
from parasol.runtime.descriptions import description
from parasol.runtime.operations import OPERATIONS, Log
from parasol.runtime.program import StoredMap
from parasol_lab.theorem.construction.construct import ConstructedNetwork

NUMBERS = (Path(page.__file__).parent / "numbers.js").read_text()


# ---- a map that src knows nothing of ---------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Bent(ProgramMap):
    """tanh of some Chebyshev polynomials, combined, beside a linear path."""

    program: Program
    error: float


@dataclass(frozen=True)
class BentRecipe:
    degree: int = 4

    def fit(self, x, y):
        shift, scale = x.mean(axis=0), 1.0 / np.ptp(x, axis=0)
        indices = lower_set(np.ones(x.shape[1]), 1000, self.degree)[0]
        inner = np.random.default_rng(0).standard_normal((12, len(indices))) / len(indices)
        start = (Chebyshev(indices), Affine(inner), Activation("tanh"))
        t = Scale(scale, shift)(x)
        columns = np.hstack([Program((Scale(scale, shift), *start))(x), t, np.ones((len(x), 1))])
        c, *_ = np.linalg.lstsq(columns, y, rcond=1e-6)
        outer, path, bias = (np.ascontiguousarray(part.T) for part in np.split(c, [12, -1]))
        program = Program((Scale(scale, shift), Sum(((*start, Affine(outer, bias[:, 0])), (Affine(path),)))))
        return Bent(program, float(np.abs(program(x) - y).max()))


# ---- all maps --------------------------------------------------------------------------------------------------------
def some_network(activation, *, thin=False, dtype=float):
    rng = np.random.default_rng(1)
    w = [rng.standard_normal(shape) / np.sqrt(shape[1]) for shape in ((9, 3), (7, 9), (4, 7))]
    b = [rng.standard_normal(n) for n in (9, 7, 4)]
    if thin:
        w[1] = sparse.csr_array(w[1] * (w[1] > 0))
    skip = None if thin else rng.standard_normal((4, 3))
    return Network(tuple(w), tuple(b), activation, skip, b[0][:3], 1 + w[0][0] ** 2, b[2], 1 + b[2] ** 2).astype(dtype)


RECIPES = {
    "linear": ps.fitting.Linear(),
    "polynomial": ps.fitting.Polynomial(),
    "constant": ps.fitting.Polynomial(0),
    **{
        f"process {k}": ps.fitting.GaussianProcess(k, nugget=1e-2, trend_degree=1)
        for k in ("gaussian", "matern52", "matern32")
    },
    "process imq": ps.fitting.GaussianProcess("inverse multiquadric", nugget=1e-2, trend_degree=0),
    "kernel ridge": ps.fitting.KernelRidge(ridge=1e-2),
    "hidden layer": HiddenLayer(8),
    "a new kind": BentRecipe(),
}


def map_for_each_field():
    """As `fit_fields` joins maps: one with a logarithm of its own, each in its place among the coefficients."""
    rng = np.random.default_rng(2)
    logarithm = (Scale(np.ones(3), offset=np.array([0.0, 2.0, 0.0])), Log(np.array([1])), Scale(np.ones(3), np.ones(3)))
    place = [np.zeros((4, 2)), np.zeros((4, 2))]
    place[0][[0, 3], [0, 1]] = place[1][[2, 1], [0, 1]] = 1.0
    first = (*logarithm, Affine(rng.standard_normal((2, 3))), Activation("tanh"), Affine(place[0]))
    second = (Chebyshev(lower_set(np.ones(3), 1000, 2)[0]), Affine(place[1] @ rng.standard_normal((2, 10))))
    return StoredMap(Program((Sum((first, second)),)))


MADE = {
    "a map for each field": map_for_each_field(),
    **{a: FittedLinear(some_network(a), 0.0, 0.0) for a in ("relu", "tanh", "silu", "gelu")},
    "trained in float32": TrainedNetwork(some_network("tanh", dtype="float32"), (), 0.0, "cpu", 0, 0.1),
    "constructed": ConstructedNetwork(some_network("relu", thin=True), "", 0.1, 0.1, 1.0, 1, True, 1.0, 0.0),
}


def drawn(n, seed, share=1.0):
    """Parameters in the middle `share` of the box, the first on a logarithmic scale."""
    low, high = np.array([[np.log(0.1), 2.0, -1.0], [np.log(10.0), 3.0, 1.0]])
    mus = (low + high) / 2 + share * (high - low) * np.random.default_rng(seed).uniform(-0.5, 0.5, (n, 3))
    return np.column_stack([np.exp(mus[:, 0]), mus[:, 1:]])


@pytest.fixture(scope="module")
def data():
    """Fields of three parameters: with two, a mistake in products of more of them would not show."""
    mus, x = drawn(90, 0), np.linspace(0, 1, 25)
    return mus, np.array([np.cos(x * b) * np.log1p(a) + x**2 * b + c * b * np.sin(2 * x) * a**0.3 for a, b, c in mus])


@pytest.fixture(scope="module", params=[*RECIPES, *MADE])
def surrogate(request, data):
    ranges = {"a": (0.1, 10.0, "log"), "b": (2.0, 3.0), "c": (-1.0, 1.0)}
    name, options = request.param, {"ranges": ranges, "n_modes": 4, "level": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)  # few modes, and samples that do not reach the corners
        if name in RECIPES:
            return ps.fit_snapshots(*data, RECIPES[name], **options)
        return replace(ps.fit_snapshots(*data, "linear", **options), map=MADE[name])


@pytest.fixture(scope="module")
def mus():
    return drawn(20, 7, 0.9)


def gap(found, wanted):
    return np.abs(np.asarray(found) - wanted).max() / np.abs(wanted).max()


# ---- one test for each runtime ---------------------------------------------------------------------------------------
def test_python_with_and_without_folding_and_from_a_file(surrogate, mus, tmp_path):
    wanted = surrogate.map.predict(surrogate.features(mus))
    if surrogate.map.program.dtype == np.float32:
        wanted = surrogate.map.program.astype(np.float64)(surrogate.features(mus))
    assert gap(surrogate(mus).coefficients, wanted) < 1e-12
    assert gap(surrogate(mus[:1]).coefficients, wanted[:1]) < 1e-12
    loaded = ps.load(ps.save(surrogate, tmp_path / "model.parasol"))
    assert np.array_equal(loaded(mus).coefficients, surrogate(mus).coefficients)
    assert np.array_equal(loaded(mus, dtype=np.float32).values, surrogate(mus, dtype=np.float32).values)
    facts, kept = (description(s)["map"] for s in (surrogate, loaded))
    assert facts == kept


def test_derivatives_are_those_of_a_complex_step(surrogate, mus):
    program = Program(tuple(op.astype(np.float64) for op in surrogate.operations))

    def slopes(j):
        x = mus + 1e-30j * np.eye(3)[j]
        for op in program.operations:
            x = op(x)
        return x.imag / 1e-30

    wanted = np.stack([slopes(j) for j in range(3)], axis=-1)
    for found in (program.jacobian(mus), surrogate.jacobian(mus)):
        assert np.abs(found - wanted).max() <= 1e-12 * np.abs(wanted).max()
    assert np.allclose(surrogate.jacobian(mus[3]), wanted[3], rtol=1e-11, atol=1e-11 * np.abs(wanted).max())


def test_jax_computes_the_same_compiled_and_differentiated(surrogate, mus):
    jax = pytest.importorskip("jax")
    ways = np.random.default_rng(3).standard_normal(mus.shape)
    with jax.enable_x64(True):
        values, slopes = jax.jvp(surrogate.as_jax(), (mus,), (ways,))
    assert gap(values, surrogate(mus).values) < 1e-12
    wanted = np.einsum("nvp,np->nv", surrogate.gradient(mus), ways)
    assert np.abs(np.asarray(slopes) - wanted).max() < 1e-11 * np.abs(values).max()


def test_pytorch_computes_the_same_and_its_derivatives(surrogate, mus):
    torch = pytest.importorskip("torch")
    function, given = surrogate.as_torch(), torch.tensor(mus, requires_grad=True)
    values = function(given)
    values[:, 3].sum().backward()
    assert gap(values.detach().numpy(), surrogate(mus).values) < 1e-12
    slopes, values = given.grad.numpy(), values.detach().numpy()
    assert np.abs(slopes - surrogate.gradient(mus)[:, 3]).max() < 1e-11 * np.abs(values).max()


def test_float32_is_close(surrogate, mus):
    wanted = surrogate(mus).coefficients
    single = surrogate.map.program.astype(np.float64).folded().astype(np.float32)
    found = single(surrogate.features(mus))
    assert found.dtype == np.float32
    assert gap(found, wanted) < 1e-5
    assert surrogate(mus, dtype=np.float32).coefficients.dtype == np.float32
    assert gap(surrogate(mus, dtype=np.float32).coefficients, wanted) < 1e-5
    if surrogate.map.program.dtype == np.float32:  # it is computed so, not rounded afterwards
        assert np.array_equal(surrogate(mus, dtype=np.float32).coefficients, found)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-5)])
def test_onnx(surrogate, mus, dtype, tolerance):
    found, who = onnx_export.run_model(onnx_export.model_bytes(onnx, surrogate, dtype, dtype), mus.astype(dtype))
    assert who == "ONNX Runtime"
    assert gap(found, surrogate(mus.astype(dtype).astype(float)).values) < tolerance


@pytest.fixture(scope="module")
def tab(browser):
    found = browser.new_page()
    found.add_script_tag(content=NUMBERS)
    yield found
    found.close()


def test_the_page(surrogate, mus, tab):
    pack = Pack()
    model = contents(surrogate, None, 0, pack)
    found = tab.evaluate(
        """([model, texts, mus]) => {
            const made = Numbers.makeModel(Numbers.decode(texts)(model));
            return mus.map((mu) => [made.coefficients(mu), made.answer(mu).values].map((part) => Array.from(part)));
        }""",
        [model, pack.texts, mus.tolist()],
    )
    assert gap([c for c, _ in found], surrogate(mus).coefficients) < 1e-12
    assert gap([values for _, values in found], surrogate(mus).values) < 1e-5


# ---- a new kind, and a new operation ---------------------------------------------------------------------------------
def test_a_new_kind_of_map_needs_nothing_but_its_own_file(data, mus, tmp_path, monkeypatch):
    surrogate = ps.fit_snapshots(*data, BentRecipe(), n_modes=4, level=None)
    assert surrogate.map.error < 0.3 * np.abs(surrogate.basis.project(data[1])).max()
    path = ps.save(surrogate, tmp_path / "bent.parasol")
    loaded = ps.load(path)
    assert repr(loaded) == repr(surrogate)
    assert "Bent" in repr(loaded)
    assert loaded.map.error == surrogate.map.error
    assert np.array_equal(ps.load(ps.save(loaded, tmp_path / "again.parasol"))(mus).values, surrogate(mus).values)
    assert ps.export(loaded, tmp_path / "bent.onnx").difference < 1e-12
    assert ps.delivery.write_page(loaded, tmp_path / "bent.html").stat().st_size > 1000
    monkeypatch.setattr(container, "VERSION", 2)  # as in parasol 0.1
    with pytest.raises(ps.ParasolError, match=r"version 3 of the format.*newer than this parasol.*Update parasol"):
        ps.load(path)


def test_every_operation_has_its_three_forms():
    names = {operation.__name__ for operation in OPERATIONS}
    assert set(onnx_graph.EMITTERS) == set(OPERATIONS)
    table = re.search(r"const PROGRAM = \{(.*?)\n  \};", NUMBERS, re.DOTALL)
    assert set(re.findall(r"^    (\w+)(?:\(op, x\)|:)", table[1], re.MULTILINE)) == names
    assert all(container._KINDS[operation.__name__] is operation for operation in OPERATIONS)
