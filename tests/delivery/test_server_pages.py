"""What the server shows to people, several surrogates at once, and who may ask: in a browser and without one."""

import base64
import json
import re
import subprocess
from dataclasses import replace
from html import unescape

import httpx
import numpy as np
import pytest
import umbridge
from test_server import MUS, background, inside
from typer.testing import CliRunner

import parasol as ps
import served
from parasol.cli import app as command
from parasol.cli.serve import _names
from parasol.delivery import make_app
from parasol.delivery.page import explore as page
from parasol.delivery.server import app as server_app
from parasol.delivery.server.calls import ADDRESS, calls, example
from parasol.delivery.server.service import Limits, Service
from parasol.runtime.parameters import ParameterSpace
from parasol.runtime.ranges import range_of


def calls_in(html):
    """The programs in a page, by name."""
    found = re.findall(r'class="call"><h3>(.*?)</h3>.*?<code>(.*?)</code>', html, re.S)
    return {name: unescape(text) for name, text in found}


def run(code, **names):
    space = dict(names)
    exec(code, space)  # the page is ours
    return space


@pytest.fixture(scope="module")
def several():
    surrogates = {"helmholtz": served.steady(), "in-time": served.in_time()}
    with (
        background(surrogates, cors="https://example.org") as server,
        httpx.Client(base_url=server.address, timeout=30) as client,
    ):
        yield client


def test_the_front_page_is_the_explorer_with_calls_that_work(capsys):
    surrogate = served.steady()
    with background(surrogate) as server:
        front, docs = (httpx.get(f"{server.address}{path}") for path in ("/", "/docs"))
        explorer = ps.explore(surrogate).html
        assert front.headers["content-encoding"] == "gzip"
        plain = httpx.get(f"{server.address}/", headers={"accept-encoding": "identity"})
        assert ("content-encoding" not in plain.headers, plain.text) == (True, front.text)
        assert explorer.partition("<main")[2].rpartition("</body>")[0] in front.text
        for text in (front.text, docs.text):
            assert not re.findall(
                r"""(?:src|href)=["'](?!data:|docs|openapi\.json|\./|#)""", text
            )  # nothing from elsewhere
            assert "default-src 'none'" in text
        assert calls_in(front.text) == calls_in(docs.text)
        programs = {name: text.replace(ADDRESS, server.address) for name, text in calls_in(front.text).items()}
        assert list(programs) == ["curl", "Python", "NumPy", "UM-Bridge"]
        wanted = surrogate(example(Service(surrogate, Limits()))).values
        assert np.array_equal(run(programs["Python"])["answer"]["values"], wanted)
        assert np.allclose(run(programs["NumPy"])["values"], [wanted, wanted], rtol=1e-13)
        assert np.allclose(run(programs["UM-Bridge"])["model"]([MUS[0]])[0], surrogate(MUS[0]).values)
        by_curl = subprocess.run(["bash", "-c", programs["curl"]], capture_output=True, text=True)
        assert f'"values":[{wanted[0]!r},'.replace("np.float64(", "").replace(")", "") in by_curl.stdout
    assert capsys.readouterr().out


def test_examples_stay_inside_narrow_ranges_and_name_choices():
    surrogate = served.in_time()
    narrow = replace(surrogate, parameters=ParameterSpace((range_of("q", (1.2345678, 1.2345679)),)))
    assert 1.2345678 <= example(Service(narrow, Limits()))[0] <= 1.2345679
    material = replace(surrogate, parameters=ParameterSpace((range_of("m", ps.Choice("other", "it's")),)))
    texts = calls(Service(material, Limits()), False)
    body = subprocess.run(
        ["bash", "-c", texts["curl"].replace("curl", "printf '%s|'", 1)], capture_output=True, text=True
    )
    assert '|{"mus": {"m": "it\'s"}}|' in body.stdout


def test_calls_with_many_parameters_are_short_and_work():
    mus = np.random.default_rng(0).random((300, 45))
    fields = np.column_stack([mus.sum(axis=1), mus[:, 0], np.ones(300)]) @ np.eye(3, 7)
    surrogate = ps.fit_snapshots(mus, fields, "polynomial", n_modes=2, level=None)
    with background(surrogate) as server:
        programs = calls(Service(surrogate, Limits()), False)
        assert list(programs) == ["Python", "NumPy", "UM-Bridge"]  # no shell takes a long one
        programs = {name: text.replace(ADDRESS, server.address) for name, text in programs.items()}
        assert len(run(programs["Python"])["answer"]["values"]) == 7
        assert run(programs["NumPy"])["values"].shape == (2, 7)
        run(programs["UM-Bridge"])


def test_the_command_serves_several_files(tmp_path, monkeypatch):
    got = {}

    def serve(surrogates, host, port, announce, **options):
        got.update(options, names=list(surrogates))
        announce("http://x:1")
        raise KeyboardInterrupt

    monkeypatch.setattr(server_app, "serve", serve)
    monkeypatch.setenv("PARASOL_TOKEN", "s3cret")
    files = [str(ps.save(served.in_time(), tmp_path / name)) for name in ("a.parasol", "b.parasol")]
    result = CliRunner().invoke(command, ["serve", *files, "--cors", "https://a.org", "--cors", "https://b.org"])
    assert result.exit_code == 0, result.output
    assert (got["names"], got["token"], got["cors"]) == (["a", "b"], "s3cret", ["https://a.org", "https://b.org"])
    assert f"http://x:1/b/ is {files[1]}" in result.stdout.replace("\n", "")
    assert "s3cret" not in result.output
    result = CliRunner().invoke(command, ["serve", *files, "--json", "-"])
    monkeypatch.setenv("PARASOL_TOKEN", "")  # must not be taken for none
    assert "PARASOL_TOKEN is empty" in CliRunner().invoke(command, ["serve", *files]).stderr
    assert json.loads(result.stdout)["surrogates"] == {"a": "http://x:1/a", "b": "http://x:1/b"}


def test_a_page_is_made_once(monkeypatch):
    made = []
    monkeypatch.setattr(page, "explore", lambda surrogate: made.append(1) or page.Page("<body>explorer</body>"))
    app = make_app(served.in_time())
    assert not made
    assert [inside(app, "GET", "/").text.count("explorer") for _ in range(2)] == [1, 1]
    assert made == [1]


def test_a_surrogate_that_is_too_large_for_a_page_is_told_in_words(monkeypatch):
    monkeypatch.setattr(page, "_MOST", 1000)
    text = inside(make_app(served.steady()), "GET", "/").text
    assert "There is no explorer of this surrogate: the page would have" in text
    assert "Choose fewer nodes: surrogate.restricted(nodes=...)." in text
    assert 'role="math"' in text
    assert list(calls_in(text)) == ["curl", "Python", "NumPy", "UM-Bridge"]


def test_several_surrogates_below_their_names(several):
    steady, in_time = served.steady(), served.in_time()
    got = several.post("/helmholtz/v1/predict", json={"mus": MUS}).json()
    assert np.array_equal(got["values"], steady(MUS).values)
    assert np.array_equal(
        several.post("/in-time/v1/predict", json={"mus": [1.5]}).json()["values"], in_time([1.5]).values
    )
    assert several.post("/v1/predict", json={"mus": MUS}).status_code == 404
    assert several.get("/in-time/v1/info").json()["n_values"] == 30
    front = several.get("/").text
    assert 'href="helmholtz/"' in front
    assert 'href="in-time/docs"' in front
    assert several.get("/helmholtz").headers["location"] == "helmholtz/"
    assert "There is no explorer" not in several.get("/helmholtz/").text
    paths = several.get("/openapi.json").json()["paths"]
    assert {"/helmholtz/v1/bounds", "/in-time/v1/predict", "/health"} <= set(paths)
    assert "/in-time/v1/bounds" not in paths
    assert several.get("/in-time/openapi.json").json()["servers"] == [{"url": "/in-time"}]
    for path in ("/Evaluate", "/ApplyHessian", "/in-time/Gradient"):
        example = paths[path]["post"]["requestBody"]["content"]["application/json"]["example"]
        assert several.post(path, json=example).status_code == 200, path
    names = [operation["operationId"] for item in paths.values() for operation in item.values()]
    assert len(set(names)) == len(names)
    for path, item in paths.items():
        assert set(item) == {"get"} or several.get(path).status_code == 405, path
    assert 'route="/helmholtz/v1/predict",status="200"} 1' in several.get("/metrics").text


def test_samplers_find_all_models_of_several_surrogates(several):
    url = str(several.base_url).rstrip("/")
    wanted = [
        "helmholtz/field",
        "helmholtz/quantities",
        "helmholtz/coefficients",
        "in-time/field",
        "in-time/coefficients",
    ]
    assert umbridge.supported_models(url) == wanted
    assert umbridge.supported_models(f"{url}/in-time") == ["field", "coefficients"]
    for name, surrogate, mu in (("helmholtz", served.steady(), MUS[0]), ("in-time", served.in_time(), [1.5])):
        assert np.allclose(umbridge.HTTPModel(url, f"{name}/field")([mu])[0], surrogate(mu).values, rtol=1e-12)
        assert np.allclose(umbridge.HTTPModel(f"{url}/{name}", "field")([mu])[0], surrogate(mu).values, rtol=1e-12)
    refused = several.post("/Evaluate", json={"name": "field", "input": [MUS[0]]}).json()["error"]
    assert refused["type"] == "ModelNotFound"
    assert "There are: helmholtz/field" in refused["message"]


def test_names_of_files_and_what_cannot_be_a_name(tmp_path):
    assert _names(["x/heat.parasol", "flow 2.parasol"]) == {"heat": "x/heat.parasol", "flow-2": "flow 2.parasol"}
    assert list(_names(["a/m.parasol", "b/m.parasol", "c.parasol"])) == ["a-m", "b-m", "c"]
    with pytest.raises(ps.ParasolError, match="two files would be served as 'a-m'"):
        _names(["a/m.parasol", "a/m.parasol"])
    for name in ("docs", "Evaluate", "a/b", "", "..", "é", 'x"y'):
        with pytest.raises(ps.ParasolError, match="cannot be served as"):
            make_app({name: served.in_time()})
    with pytest.raises(ps.ParasolError, match="nothing to serve"):
        make_app({})
    files = [str(ps.save(served.in_time(), tmp_path / name)) for name in ("docs.parasol", "b.parasol")]
    result = CliRunner().invoke(command, ["serve", *files])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "cannot be served as 'docs'" in result.stderr


def test_pages_of_named_origins_may_ask(several):
    ask = {"access-control-request-method": "POST", "access-control-request-headers": "content-type"}
    allowed = several.options("/helmholtz/v1/predict", headers={"origin": "https://example.org", **ask})
    assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (200, "https://example.org")
    other = several.options("/helmholtz/v1/predict", headers={"origin": "https://else.org", **ask})
    assert "access-control-allow-origin" not in other.headers
    refused = several.post("/helmholtz/v1/predict", json={}, headers={"origin": "https://example.org"})
    assert refused.status_code == 422
    assert refused.headers["access-control-allow-origin"] == "https://example.org"
    nobody = make_app(served.in_time())
    assert (
        "access-control-allow-origin"
        not in inside(nobody, "GET", "/health", headers={"origin": "https://a.org"}).headers
    )
    everybody = make_app(served.in_time(), cors="*")
    assert (
        inside(everybody, "GET", "/health", headers={"origin": "https://a.org"}).headers["access-control-allow-origin"]
        == "*"
    )
    for wrong in ("example.org", "https://example.org/", "https://a.org b"):
        with pytest.raises(ps.ParasolError, match="is no origin"):
            make_app(served.in_time(), cors=[wrong])


def test_a_token_guards_all_but_health(monkeypatch):
    app = make_app({"m": served.in_time()}, token="s3cret", cors="*")
    ask = lambda path, header="", **more: inside(app, "GET", path, headers={"authorization": header, **more})  # noqa: E731
    basic = lambda text: "Basic " + base64.b64encode(text.encode()).decode()  # noqa: E731
    assert [ask(path).status_code for path in ("/health", "/m/health")] == [200, 200]
    told = ask("/openapi.json", "Bearer s3cret").json()
    assert [told["security"], told["paths"]["/m/health"]["get"]["security"]] == [[{"token": []}], []]
    for path in (
        "/",
        "/docs",
        "/openapi.json",
        "/metrics",
        "/Info",
        "/m/",
        "/m/v1/info",
        "/health/",
        "/nowhere",
    ):
        assert ask(path).status_code == 401, path
    for wrong in (
        "s3cret",
        "Bearer",
        "Bearer s3cre",
        "Bearer s3crett",
        "Basic s3cret",
        basic("s3cret"),
        basic("s3cret:"),
        "Bearer é",
    ):
        assert ask("/m/v1/info", wrong.encode()).status_code == 401, wrong
    for right in ("Bearer s3cret", "bearer s3cret", basic("anybody:s3cret"), basic(":s3cret")):
        assert ask("/m/v1/info", right).status_code == 200, right
    refused = ask("/m/v1/info", origin="https://a.org")
    assert refused.json() == {
        "error": "this server asks for a token. Send the header 'Authorization: Bearer TOKEN', or the token as the "
        "password of any user."
    }
    assert refused.headers["www-authenticate"].startswith("Basic ")
    assert refused.headers["access-control-allow-origin"] == "*"
    for wrong in ("", "with space", "é"):
        with pytest.raises(ps.ParasolError, match="a token has"):
            make_app(served.in_time(), token=wrong)
    monkeypatch.setenv("PARASOL_TOKEN", "s3cret")
    with background(served.in_time(), token="s3cret") as server:
        page = httpx.get(f"{server.address}/docs", headers={"authorization": "Bearer s3cret"}).text
        programs = {name: text.replace(ADDRESS, server.address) for name, text in calls_in(page).items()}
        assert run(programs["Python"])["answer"]["shape"] == [3, 2, 5]
        assert run(programs["NumPy"])["values"].shape == (2, 30)
        assert len(run(programs["UM-Bridge"])["model"]([[1.5]])[0]) == 30
        assert '"values":[' in subprocess.run(["bash", "-c", programs["curl"]], capture_output=True, text=True).stdout


def test_the_pages_in_a_browser(browser, several):
    window, problems = browser.new_page(viewport={"width": 390, "height": 844}), []
    window.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    window.on("pageerror", lambda error: problems.append(str(error)))
    address = str(several.base_url)
    fits = "document.documentElement.scrollWidth <= innerWidth"
    window.goto(address)
    assert window.evaluate(fits)
    window.click("text=in-time")
    window.wait_for_selector(".call")
    assert window.url.split("#")[0] == f"{address}/in-time/".replace("//in", "/in")
    window.click("text=All routes")
    window.wait_for_selector("details")
    assert window.evaluate(fits)
    assert f"curl {address.rstrip('/')}/in-time/v1/predict" in window.inner_text(".call code")
    route = window.locator("details", has_text="/v1/predict")
    route.locator("summary").click()
    assert window.evaluate(fits)
    for body, words in (('{"mus": [1.5]}', "200, "), ('{"mus": [9]}', "outside its range")):
        route.locator("textarea").fill(body)
        route.locator("button").click()
        window.wait_for_function(
            "words => document.querySelector('details[open] output').textContent.includes(words)", arg=words
        )
    window.goto(f"{address}/helmholtz/docs")
    for form in range(window.locator("form.try").count()):  # every example works
        window.evaluate("i => document.querySelectorAll('form.try')[i].requestSubmit()", form)
    window.wait_for_function(
        "() => [...document.querySelectorAll('output')].every(o => o.textContent.includes('ms, '))"
    )
    answers = window.evaluate("[...document.querySelectorAll('output')].map(o => o.textContent.slice(0, 300))")
    assert [text for text in answers if not text.startswith("200")] == []
    window.close()
    assert [text for text in problems if "422" not in text] == []
