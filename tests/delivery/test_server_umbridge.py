"""The real UM-Bridge client against a live server: values, gradients and sizes are those of the surrogate."""

import httpx
import numpy as np
import pytest
import umbridge

import parasol as ps
import served

MU = [0.9, 1.7]


@pytest.fixture(scope="module")
def surrogate():
    return served.steady()


@pytest.fixture(scope="module")
def url(surrogate):
    with ps.serve(surrogate, port=0, background=True) as server:
        yield server.address


@pytest.fixture(scope="module")
def model(url):
    return umbridge.HTTPModel(url, "field")


def test_models_and_sizes(url, model):
    assert umbridge.supported_models(url) == ["field", "quantities", "coefficients"]
    assert model.get_input_sizes() == [2]
    assert model.get_output_sizes() == [250]
    assert model.get_output_sizes({"points": [[0.1, 0.2]]}) == [1]
    assert umbridge.HTTPModel(url, "quantities").get_output_sizes() == [2]
    assert umbridge.HTTPModel(url, "coefficients").get_output_sizes() == [8]
    assert all([model.supports_evaluate(), model.supports_gradient()])
    assert all([model.supports_apply_jacobian(), model.supports_apply_hessian()])


def test_evaluate(url, model, surrogate):
    assert np.allclose(model([MU])[0], surrogate(MU).values, rtol=1e-12, atol=1e-15)
    config = {"points": [[0.1, 0.2], [0.0, 0.0]]}
    wanted = surrogate.restricted(**config)(MU).values
    assert np.allclose(model([MU], config)[0], wanted, rtol=1e-12)
    assert np.allclose(umbridge.HTTPModel(url, "coefficients")([MU])[0], surrogate.coefficients(MU), rtol=1e-14)
    quantities = umbridge.HTTPModel(url, "quantities")([MU])[0]
    assert np.allclose(quantities, list(surrogate(MU).quantities.values()), rtol=1e-12)


@pytest.mark.parametrize("name", ["field", "quantities", "coefficients"])
def test_derivatives_against_differences(url, name):
    model = umbridge.HTTPModel(url, name)
    rng, mu, step = np.random.default_rng(0), np.array(MU), 1e-5
    sens, vec = rng.normal(size=model.get_output_sizes()[0]), np.array([0.3, -0.7])
    value = lambda at: np.array(model([at.tolist()])[0])  # noqa: E731
    slope = lambda at: np.array(model.gradient(0, 0, [at.tolist()], sens.tolist()))  # noqa: E731
    along = (value(mu + step * vec) - value(mu - step * vec)) / (2 * step)
    assert np.allclose(model.apply_jacobian(0, 0, [MU], vec.tolist()), along, rtol=1e-5, atol=1e-7)
    found = [sens @ (value(mu + step * e) - value(mu - step * e)) / (2 * step) for e in np.eye(2)]
    assert np.allclose(slope(mu), found, rtol=1e-5, atol=1e-7)
    bent = np.array(model.apply_hessian(0, 0, 0, [MU], sens.tolist(), vec.tolist()))
    far = 1e-3  # another step than the server's, and of second order: the errors differ
    assert np.allclose(bent, (slope(mu + far * vec) - slope(mu - far * vec)) / (2 * far), rtol=1e-4, atol=1e-6)
    symmetric = [model.apply_hessian(0, 0, 0, [MU], sens.tolist(), e) for e in ([1.0, 0.0], [0.0, 1.0])]
    assert np.isclose(symmetric[0][1], symmetric[1][0], rtol=1e-6)


def test_corners_of_the_box_have_all_derivatives(model):
    sens = [1.0] * 250
    for corner in ([0.1, 0.0], [4.0, 2.0]):
        assert np.isfinite(model.apply_hessian(0, 0, 0, [corner], sens, [1.0, 1.0])).all()
    assert model.apply_hessian(0, 0, 0, [MU], sens, [0.0, 0.0]) == [0.0, 0.0]


def test_mistakes_have_the_types_of_the_protocol(url, model):
    with pytest.raises(Exception, match=r"type InvalidInput: parameter a=9 is outside its range"):
        model([[9.0, 1.0]])
    with pytest.raises(Exception, match=r"type InvalidInput: a parameter vector has length 1, expected 2"):
        model([[1.0]])
    with pytest.raises(Exception, match=r"type InvalidInput: config must be an object with some of: nodes"):
        model([MU], {"level": 0})
    with pytest.raises(Exception, match="InvalidInput: sens has 2 numbers, expected 250"):
        model.gradient(0, 0, [MU], [1.0, 1.0])
    with pytest.raises(Exception, match="InvalidInput: outWrt must be 0"):
        model.gradient(1, 0, [MU], [1.0] * 250)
    with pytest.raises(Exception, match="not supported by server"):
        umbridge.HTTPModel(url, "forward")
    response = httpx.post(f"{url}/Evaluate", json={"name": "forward", "input": [MU]})
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "ModelNotFound"
    assert httpx.post(f"{url}/Evaluate", content=b"{").json()["error"]["type"] == "InvalidInput"


def test_a_client_that_hopes_for_shared_memory_falls_back(url, surrogate, capsys):
    model = umbridge.HTTPModel(url, "coefficients", use_shmem=True)
    assert np.allclose(model([MU])[0], surrogate.coefficients(MU), rtol=1e-14)
    assert "Using HTTP instead" in capsys.readouterr().out


def test_kinks_have_no_second_derivative():
    from dataclasses import replace

    from parasol.delivery.server.umbridge import has_hessian
    from parasol.fitting.linear import FittedLinear
    from parasol.fitting.network import Network

    smooth = Network((np.ones((3, 2)), np.ones((8, 3))), (np.zeros(3), np.zeros(8)), "tanh")
    surrogate = served.steady()
    assert has_hessian(replace(surrogate, map=FittedLinear(smooth, 0.0, 0.0)))
    assert not has_hessian(replace(surrogate, map=FittedLinear(replace(smooth, activation="relu"), 0.0, 0.0)))


def test_choices_by_name_and_quantities_with_a_map_of_their_own():
    """The model "quantities" has all of them, in the order of /v1/info: those of the field came alone before."""
    rng = np.random.default_rng(0)
    a, m = rng.uniform(1, 2, 80), rng.choice(["p", "q"], 80)
    size = a * np.where(m == "q", 2.0, 1.0)
    runs = ps.Results(
        {"a": a, "m": m}, {"u": size[:, None] * [1.0, 2.0], "tip": size**2}, quantities={"sum": [1.0, 1.0]}
    )
    ranges = {"a": (1, 2), "m": ps.Choice("p", "q")}
    surrogate = ps.learn(data=runs, parameters=ranges, tolerance=1e-2, recipe="gaussian process")
    with ps.serve(surrogate, background=True, port=0) as server, httpx.Client(base_url=server.address) as client:
        named = client.post("/v1/quantities", json={"mus": {"a": 1.5, "m": "q"}}).json()["quantities"]
        assert named == pytest.approx(surrogate(a=1.5, m="q").quantities)
        refused = client.post("/v1/quantities", json={"mus": {"a": 1.5, "m": "x"}})
        assert (refused.status_code, "none of its choices" in refused.json()["error"]) == (422, True)
        assert client.get("/v1/info").json()["quantities"] == ["sum", "tip"]
        ask = {"name": "quantities", "input": [[1.5, 1.0]], "outWrt": 0, "inWrt": 0, "inWrt1": 0, "inWrt2": 0}
        assert client.post("/Evaluate", json=ask).json()["output"][0] == pytest.approx([9.0, 9.0], rel=1e-2)
        assert client.post("/OutputSizes", json={"name": "quantities"}).json() == {"outputSizes": [2]}
        slopes = client.post("/ApplyJacobian", json=ask | {"vec": [1.0, 0.0]}).json()["output"]
        assert slopes == pytest.approx([6.0, 12.0], rel=1e-2)
        down = client.post("/Gradient", json=ask | {"sens": [1.0, 10.0]}).json()["output"]
        assert down[0] == pytest.approx(slopes[0] + 10 * slopes[1])
        bent = client.post("/ApplyHessian", json=ask | {"sens": [0.0, 1.0], "vec": [1.0, 0.0]}).json()["output"]
        assert bent[0] == pytest.approx(8.0, rel=0.1)
