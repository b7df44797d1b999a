"""A server tells the estimate beside the bound, and serves a reduced model that has no map."""

from dataclasses import replace

import httpx
import numpy as np
import pytest
import umbridge

import estimated
import parasol as ps
from parasol.delivery.server.service import Limits
from parasol.delivery.server.umbridge import has_hessian
from parasol.runtime.defects import Defects

MUS = [[0.35, 1.4], [0.9, 1.7], [3.5, 1.1]]


@pytest.fixture(scope="module", params=["with_map", "without_map", "proven"])
def surrogate(request):
    return getattr(estimated, request.param)()


@pytest.fixture(scope="module")
def url(surrogate):
    with ps.serve(surrogate, port=0, background=True, extrapolate=True, limits=Limits(batch=100)) as server:
        yield server.address


def post(url, path, **body):
    response = httpx.post(f"{url}{path}", json=body, timeout=30)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize("options", [{}, {"dtype": "float32"}, {"nodes": [1, 7]}, {"points": [[0.1, 0.2]]}])
def test_answers_are_those_of_python(url, surrogate, options):
    dtype = np.float32 if "dtype" in options else np.float64
    chosen = {name: value for name, value in options.items() if name != "dtype"}
    answer = (surrogate.restricted(**chosen) if chosen else surrogate)(MUS, dtype=dtype)
    got = post(url, "/v1/predict", mus=MUS, bounds=True, **options)
    close = 1e-5 if "dtype" in options else 1e-9
    assert np.allclose(got["values"], answer.values, rtol=close, atol=close * np.abs(answer.values).max())
    assert np.allclose(got["bounds"]["estimate"], answer.estimate, rtol=close)
    assert np.allclose(got["bounds"]["relative"], answer.bound, rtol=close)
    assert got["bounds"]["bound_kind"] == answer.bound_kind
    assert got["bounds"]["rigorous"] == [kind == "proven" for kind in answer.bound_kind]


def test_one_parameter_and_one_outside(url, surrogate):
    got, answer = post(url, "/v1/bounds", mus=MUS[0]), surrogate(MUS[0])
    assert (got["estimate"], got["bound_kind"]) == (pytest.approx(answer.estimate, rel=1e-9), answer.bound_kind)
    beyond = post(url, "/v1/bounds", mus=[5.0, 1.0], extrapolate=True)
    assert (beyond["bound_kind"], beyond["extrapolated"]) == ("estimated", True)


def test_the_solver_s_own_error_is_told_too():
    """It is 1e-3 of the answer where one knows how, and nothing where one does not."""
    known, n = estimated.with_map(), 10
    defects = Defects(1e-3 * np.eye(n)[None], np.eye(n)[None])
    for surrogate in (replace(known, discretisation=defects), known):
        with ps.serve(surrogate, port=0, background=True) as server:
            for mus in (MUS, MUS[0]):
                got = post(server.address, "/v1/bounds", mus=mus)
                assert ("discretisation" in got) == (surrogate is not known)
                assert got.get("discretisation", 1e-3) == pytest.approx(np.full(len(MUS), 1e-3) if mus is MUS else 1e-3)


def test_quantities_are_corrected_and_said_how_far(url, surrogate):
    got, answer = post(url, "/v1/quantities", mus=MUS, bounds=True), surrogate(MUS)
    for name in ("average", "at the centre"):
        assert np.allclose(got["quantities"][name], answer.quantities[name], rtol=1e-9)
        assert np.allclose(got["quantity_estimates"][name], answer.quantity_estimates[name], rtol=1e-9)
        assert np.allclose(got["quantity_bounds"][name], answer.quantity_bounds[name], rtol=1e-9)
    assert got["quantity_bound_kind"] == answer.quantity_bound_kind


def test_the_description_tells_the_probability(url, surrogate):
    about = httpx.get(f"{url}/v1/info").json()
    assert about["estimate"]["probability"] == surrogate(MUS).probability
    assert about["bounds"] == ("probable" if surrogate.reduced.certificate is None else "residual")
    assert about["map"] == ("reduced model" if surrogate.map is None else "FittedPolynomial")
    schema = httpx.get(f"{url}/openapi.json").json()["paths"]["/v1/bounds"]["post"]["responses"]["200"]
    assert {"estimate", "bound_kind"} <= set(schema["content"]["application/json"]["schema"]["properties"])


def test_samplers_get_values_and_slopes_without_a_map():
    surrogate = estimated.without_map()
    mu, step, sens = np.array(MUS[0]), 1e-4, [1.0, -2.0]
    with ps.serve(surrogate, port=0, background=True) as server:
        model = umbridge.HTTPModel(server.address, "quantities")
        rows = surrogate.quantities.rows[:, 0]  # without what the residual adds: values and slopes belong together
        assert np.allclose(model([MUS[0]])[0], rows @ surrogate.coefficients(MUS[0]), rtol=1e-9)
        slope = model.gradient(0, 0, [MUS[0]], sens)
        value = lambda at: sens @ rows @ surrogate.coefficients(at)  # noqa: E731
        found = [(value(mu + step * e) - value(mu - step * e)) / (2 * step) for e in np.eye(2)]
        assert np.allclose(slope, found, rtol=1e-5, atol=1e-9)
        gradient = post(server.address, "/v1/gradient", mus=MUS[0])["gradient"]
        assert np.allclose(gradient, surrogate.gradient(MUS[0]), rtol=1e-9, atol=1e-9)
        assert not model.supports_apply_hessian()
        assert not has_hessian(surrogate)
        asked = {"name": "quantities", "input": [MUS[0]], "outWrt": 0, "inWrt1": 0, "inWrt2": 0}
        refused = httpx.post(f"{server.address}/ApplyHessian", json={**asked, "sens": sens, "vec": [1.0, 0.0]})
        assert refused.status_code == 400
        assert refused.json()["error"]["message"].endswith("the slopes of a reduced model are differences.")
