"""The server says what the surrogate says, in every form, and refuses the rest with a reason."""

import io
import json
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

import malformed
import parasol as ps
import served
from parasol.cli import app as command
from parasol.delivery import make_app
from parasol.delivery.server import app as server_app
from parasol.delivery.server import formats, service
from parasol.delivery.server.service import Limits

MUS = [[0.9, 1.7], [3.0, 0.2], [0.1, 0.0]]


@pytest.fixture(scope="module")
def surrogate():
    return served.steady()


@pytest.fixture(scope="module")
def client(surrogate):
    with background(surrogate) as server, httpx.Client(base_url=server.address, timeout=30) as client:
        yield client


def background(surrogate, **options):
    return ps.serve(surrogate, port=0, background=True, **options)


def inside(app, method, path, **options):
    """One request to an application without a socket."""
    import asyncio

    async def ask():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client:
            return await client.request(method, path, **options)

    return asyncio.run(ask())


def npy(response):
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-npy"
    return np.load(io.BytesIO(response.content), allow_pickle=False)


def post(client, path, status=200, **body):
    response = client.post(path, json=body)
    assert response.status_code == status, response.text
    return response.json()


def test_values_bounds_and_quantities_are_those_of_python(client, surrogate):
    got, answer = post(client, "/v1/predict", mus=MUS, bounds=True, quantities=True), surrogate(MUS)
    assert np.array_equal(got["values"], answer.values)
    assert got["shape"] == [1, 1, 250]
    assert got["unknowns"] == ["u"]
    assert got["times"] is None
    assert got["extrapolated"] == [False] * 3
    assert np.array_equal(got["bounds"]["relative"], answer.bounds.relative)
    assert np.array_equal(got["bounds"]["absolute"], answer.bounds.values)
    assert got["bounds"]["rigorous"] == [True] * 3
    assert np.allclose(got["quantities"]["mean"], answer.values.mean(axis=1), rtol=1e-12)
    assert np.array_equal(got["quantity_bounds"]["last"], answer.quantity_bounds["last"])


def test_one_parameter_by_position_and_by_name(client, surrogate):
    one = post(client, "/v1/predict", mus=MUS[0], bounds=True)
    named = post(client, "/v1/predict", mus={"k": 1.7, "a": 0.9}, bounds=True)
    assert one == named
    assert np.array_equal(one["values"], surrogate(MUS[0]).values)
    assert one["bounds"]["relative"] == surrogate(MUS[0]).bound
    both = post(client, "/v1/predict", mus=[{"a": 0.9, "k": 1.7}, {"a": 3.0, "k": 0.2}])
    assert np.array_equal(both["values"], surrogate(MUS[:2]).values)


def test_selections(client, surrogate):
    nodes, points = [7, 3, 200], [[0.1, 0.2], [-0.3, 0.05]]
    got = post(client, "/v1/predict", mus=MUS, nodes=nodes)
    assert np.allclose(got["values"], surrogate(MUS).values[:, nodes], rtol=1e-13, atol=1e-15)
    got = post(client, "/v1/predict", mus=MUS, points=points)
    assert np.array_equal(got["values"], surrogate.restricted(points=points)(MUS).values)
    assert got["shape"] == [1, 1, 2]


def test_many_points_are_those_of_few(surrogate):
    points = 0.3 * np.random.default_rng(0).uniform(-1, 1, (5000, 2))
    points[7] = surrogate.layout.points[11]
    chosen = service.Service(surrogate, Limits()).selected({"points": points.tolist()})
    alone = surrogate.restricted(points=points[:10])
    assert np.allclose(chosen(MUS).values[:, :10], alone(MUS).values, rtol=1e-12, atol=1e-14)
    assert np.allclose(chosen(MUS).values[:, 7], surrogate(MUS).values[:, 11], rtol=1e-13, atol=1e-15)


def test_selections_are_kept_within_bounds(surrogate, monkeypatch):
    kept = service.Service(surrogate, Limits())
    first = kept.selected({"nodes": [0]})
    assert kept.selected({"nodes": [0]}) is first
    for i in range(1, 40):
        kept.selected({"nodes": [i]})
    assert len(kept._cache) == 32
    assert kept.selected({"nodes": [0]}) is not first
    monkeypatch.setattr(service, "_MOST_NUMBERS", 100)  # 12 values of 8 modes
    kept.selected({"nodes": list(range(12))})
    assert len(kept._cache) == 1
    with pytest.raises(formats.Refusal, match="too many to select"):
        kept.selected({"nodes": list(range(13))})


def test_binary_in_and_out(client, surrogate):
    accept = {"accept": "application/x-npy"}
    got = npy(client.post("/v1/predict", json={"mus": MUS}, headers=accept))
    assert np.array_equal(got, surrogate(MUS).values)
    body = formats.write_npy(np.asfortranarray(MUS))
    headers = {"content-type": "application/x-npy", **accept}
    got = npy(client.post("/v1/predict", content=body, headers=headers, params={"dtype": "float32", "nodes": "[5]"}))
    assert got.dtype == np.float32
    assert np.array_equal(got, surrogate.restricted(nodes=[5])(MUS, dtype=np.float32).values)
    got = npy(client.post("/v1/gradient", content=body, headers=headers))
    assert np.array_equal(got, surrogate.gradient(MUS))
    refused = client.post("/v1/predict", json={"mus": MUS, "bounds": True}, headers=accept)
    assert refused.status_code == 422
    assert "one array" in refused.json()["error"]


def test_gradient_against_differences(client):
    got = np.array(post(client, "/v1/gradient", mus=[0.9, 1.7])["gradient"])
    assert got.shape == (250, 2)
    for j, step in enumerate(1e-5 * np.eye(2)):
        pair = [(np.array([0.9, 1.7]) + s * step).tolist() for s in (1, -1)]
        ahead, behind = np.array(post(client, "/v1/predict", mus=pair)["values"])
        assert np.allclose(got[:, j], (ahead - behind) / 2e-5, rtol=1e-5, atol=1e-7)


def test_bounds_and_quantities_have_their_own_routes(client, surrogate):
    answer = surrogate(MUS[0])
    got = post(client, "/v1/bounds", mus=MUS[0])
    assert got == {
        "relative": answer.bound,
        "absolute": answer.bounds.values[0],
        "rigorous": True,
        "bound_kind": "proven",
        "extrapolated": False,
    }
    got = post(client, "/v1/quantities", mus=MUS[0], bounds=True)
    assert got["quantities"] == answer.quantities
    assert got["quantity_bounds"] == answer.quantity_bounds


def test_info_nodes_and_health(client, surrogate):
    info = client.get("/v1/info").json()
    assert info["parameters"][0] == {"name": "a", "low": 0.1, "high": 4.0, "scale": "log"}
    assert info["n_values"] == 250
    assert info["bounds"] == "residual"  # which answers are proven is said with each
    assert info["facts"]["n_labels"] == 300
    assert info["quantities"] == ["mean", "last"]
    assert np.array_equal(client.get("/v1/nodes").json()["points"], surrogate.layout.points)
    assert client.get("/health").json() == {"status": "ok", "parasol": ps.__version__}


def test_inside_another_application(surrogate):
    from starlette.applications import Starlette
    from starlette.routing import Mount

    whole = Starlette(routes=[Mount("/helmholtz", make_app(surrogate))])
    got = inside(whole, "POST", "/helmholtz/v1/predict", json={"mus": MUS}).json()
    assert np.array_equal(got["values"], surrogate(MUS).values)
    assert inside(whole, "GET", "/helmholtz/health").status_code == 200
    assert inside(whole, "POST", "/helmholtz/InputSizes", json={"name": "field"}).json() == {"inputSizes": [2]}
    assert 'route="/v1/predict",status="200"} 1' in inside(whole, "GET", "/helmholtz/metrics").text


def test_metrics_count(surrogate):
    app = make_app(surrogate)
    for mus in (MUS, MUS[0], [9.0, 9.0]):
        inside(app, "POST", "/v1/predict", json={"mus": mus})
    inside(app, "GET", "/nowhere/1")
    inside(app, "GET", "/nowhere/2")
    lines = inside(app, "GET", "/metrics").text.splitlines()
    assert 'parasol_requests_total{route="/v1/predict",status="200"} 2' in lines
    assert 'parasol_requests_total{route="/v1/predict",status="422"} 1' in lines
    assert 'parasol_requests_total{route="other",status="404"} 2' in lines
    assert 'parasol_parameters_total{route="/v1/predict"} 4' in lines
    assert 'parasol_request_seconds_bucket{route="/v1/predict",le="+Inf"} 3' in lines
    assert 'parasol_request_seconds_count{route="/v1/predict"} 3' in lines


@pytest.mark.parametrize(
    ("status", "words", "options"),
    [
        (422, r"a=9 is outside its range \[0.1, 4\]", {"json": {"mus": [9.0, 1.0]}}),
        (422, "mus must be a list of numbers", {"json": {"mus": ["0.9", "1.7"]}}),
        (422, "has length 1, expected 2: a, k", {"json": {"mus": [0.9]}}),
        (422, "must be a, k, got a", {"json": {"mus": {"a": 0.9}}}),
        (422, "unknown name 'mu'", {"json": {"mu": [0.9, 1.7]}}),
        (422, "no parameters", {"json": {}}),
        (422, "outside the domain", {"json": {"mus": [1, 1], "points": [[5, 5]]}}),
        (422, "whole numbers from 0 to 249", {"json": {"mus": [1, 1], "nodes": [250]}}),
        (422, "this one is steady", {"json": {"mus": [1, 1], "times": [0.0]}}),
        (422, "Select by one of them", {"json": {"mus": [1, 1], "points": [[0, 0]], "nodes": [0]}}),
        (422, "does not extrapolate", {"json": {"mus": [9, 1], "extrapolate": True}}),
        (422, "float64 or float32", {"json": {"mus": [1, 1], "dtype": "float16"}}),
        (422, "in the query and in the body", {"json": {"mus": [1, 1], "nodes": [0]}, "params": {"nodes": "[1]"}}),
        (422, "more than 200 entries", {"json": {"mus": [1, 1]}, "params": {"nodes": str([0] * 201)}}),
        (400, "it has NaN", {"content": b'{"mus": [NaN, 1]}', "headers": {"content-type": "application/json"}}),
        (
            400,
            "'mus' twice",
            {"content": b'{"mus": [1, 1], "mus": [2, 2]}', "headers": {"content-type": "application/json"}},
        ),
        (
            400,
            "'a' twice",
            {"content": b'{"mus": {"a": 1, "k": 1, "a": 2}}', "headers": {"content-type": "application/json"}},
        ),
        (415, "encoded as 'gzip'", {"json": {"mus": [1, 1]}, "headers": {"content-encoding": "gzip"}}),
        (400, "not an npy array", {"content": b"\x93NUMPY", "headers": {"content-type": "application/x-npy"}}),
        (415, "-H 'Content-Type: application/json'", {"data": {"mus": "1"}}),
        (406, "application/json, application/x-npy", {"json": {"mus": [1, 1]}, "headers": {"accept": "text/html"}}),
        (413, "10001 parameters", {"json": {"mus": [[1, 1]] * 10_001}}),
    ],
)
def test_refusals_say_what_is_wrong(client, status, words, options):
    response = client.post("/v1/predict", **options)
    assert response.status_code == status, response.text
    assert list(response.json()) == ["error"]
    assert re.search(words, response.json()["error"])
    assert "\n" not in response.json()["error"]


def test_unknown_routes_and_methods(client):
    assert "no '/v3'" in client.get("/v3").json()["error"]
    response = client.get("/v1/predict")
    assert response.status_code == 405
    assert response.headers["allow"] == "POST"


def test_limits_of_size(surrogate):
    small = make_app(surrogate, limits=Limits(body=1000, response=20_000, batch=5, points=3))
    for status, words, body in (
        (413, "more than 0 KiB|more than 1 KiB", {"mus": [[1.0, 1.0]] * 200}),
        (413, "more than 5 at once", {"mus": [[1.0, 1.0]] * 6}),
        (413, "the answer would have", {"mus": [[1.0, 1.0]] * 4}),
        (413, "more than 3 at once", {"mus": [1.0, 1.0], "nodes": [0, 1, 2, 3]}),
        (200, "values", {"mus": [[1.0, 1.0]] * 3}),
    ):
        response = inside(small, "POST", "/v1/predict", json=body)
        assert response.status_code == status
        assert re.search(words, response.text)
    accept = {"accept": "application/x-npy"}  # the same numbers are shorter in binary
    assert inside(small, "POST", "/v1/predict", json={"mus": [[1.0, 1.0]] * 4}, headers=accept).status_code == 200
    assert inside(small, "POST", "/v1/gradient", json={"mus": [[1.0, 1.0]] * 2}).status_code == 413
    with pytest.raises(ps.ParasolError, match="the limit 'batch'"):
        Limits(batch=0)


def test_a_long_body_is_heard_out(client):
    assert client.post("/v1/predict", content=bytes(20 * 2**20), headers={"content-type": "application/json"}).status_code == 413  # fmt: skip


def test_a_slow_body_is_cut_off(surrogate):
    with background(surrogate, limits=Limits(seconds=1)) as server:
        port = int(server.address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
            sock.sendall(
                b"POST /v1/predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{"
            )
            assert sock.recv(4096).startswith(b"HTTP/1.1 408")
            start = time.perf_counter()
            with suppress(ConnectionResetError, BrokenPipeError):  # who goes on dripping is cut off
                while time.perf_counter() < start + 8:
                    sock.sendall(b" ")
                    time.sleep(0.1)
            assert time.perf_counter() < start + 8


def test_half_sent_heads_keep_nobody_out_and_are_cut_off(surrogate):
    with background(surrogate, limits=Limits(seconds=1)) as server:
        port = int(server.address.rpartition(":")[2])
        held = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(300)]
        for sock in held:
            sock.sendall(b"GET /health HTTP/1.1\r\nHost:")
        assert httpx.get(f"{server.address}/health").status_code == 200
        with httpx.Client(base_url=server.address) as slow:  # a connection that is used now and then stays
            for _ in range(4):
                assert slow.get("/health").status_code == 200
                time.sleep(0.5)
        for sock in held:
            assert sock.recv(1) == b""
            sock.close()


def test_of_too_many_connections_the_longest_waiting_are_closed(surrogate):
    with background(surrogate, limits=Limits(connections=20)) as server:
        port = int(server.address.rpartition(":")[2])
        with httpx.Client(base_url=server.address) as early:
            assert early.get("/health").status_code == 200
            held = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(50)]
            for sock in held:
                sock.sendall(b"GET /health HTTP/1.1\r\n")
            assert httpx.get(f"{server.address}/health").status_code == 200
        for sock in held:
            sock.settimeout(0.2)
        alive = [_is_open(sock) for sock in held]
        assert alive[:29] == [False] * 29
        assert sum(alive) in (19, 20)
        for sock in held:
            sock.close()


def _is_open(sock):
    try:
        return sock.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False


def test_an_answer_that_nobody_takes_is_given_up(surrogate):
    with background(surrogate, limits=Limits(seconds=1)) as server:
        port = int(server.address.rpartition(":")[2])
        body = formats.write_npy(np.full((8000, 2), 1.0))  # an answer of 16 MB
        head = f"POST /v1/predict HTTP/1.1\r\nHost: x\r\nContent-Type: {formats.NPY}\r\nAccept: {formats.NPY}\r\nContent-Length: {len(body)}\r\n\r\n"
        for pause, complete in ((3.0, False), (0.0, True)):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
                sock.sendall(head.encode() + body)
                time.sleep(pause)
                got = 0
                with suppress(ConnectionResetError):
                    while got < 16_000_000 and (part := sock.recv(2**16)):
                        got += len(part)
                assert (got > 16_000_000) == complete


def test_answers_of_many_rows_are_computed_while_they_are_sent(surrogate):
    asked = []
    full = np.random.default_rng(0).normal(size=(2000, 250))
    rows = formats.Rows(full.shape, np.float64, lambda part: asked.append(part.stop) or full[part])
    pieces = formats.json_pieces({"values": rows, "n": 1})
    first = formats.next_chunk(pieces)
    assert formats.CHUNK <= len(first) < 2 * formats.CHUNK
    assert asked[-1] < 400
    assert json.loads(first + b"".join(pieces)) == {"values": full.tolist(), "n": 1}
    mus = np.random.default_rng(0).uniform(0.2, 1.9, (700, 2))
    with background(surrogate, extrapolate=True) as server, httpx.Client(base_url=server.address) as client:
        for path, wanted in (("predict", surrogate(mus).values), ("gradient", surrogate.gradient(mus))):
            name = {"predict": "values"}.get(path, path)
            answer = client.post(f"/v1/{path}", json={"mus": mus.tolist()})
            assert answer.headers["transfer-encoding"] == "chunked"
            assert np.allclose(answer.json()[name], wanted, rtol=1e-12, atol=1e-14)
            assert answer.json()["extrapolated"] == [False] * 700
            array = client.post(f"/v1/{path}", json={"mus": mus.tolist()}, headers={"accept": formats.NPY})
            assert int(array.headers["content-length"]) == len(array.content)
            assert np.allclose(npy(array), wanted, rtol=1e-12, atol=1e-14)
            wild = client.post(f"/v1/{path}", json={"mus": [*mus.tolist(), [1.0, 1e60]], "extrapolate": True})
            assert wild.status_code == 422  # before anything is sent
        single = client.post(
            "/v1/predict", json={"mus": mus.tolist(), "dtype": "float32"}, headers={"accept": formats.NPY}
        )
        assert npy(single).dtype == np.float32
        assert np.allclose(npy(single), surrogate(mus).values, rtol=1e-3, atol=1e-3)
        long = client.post("/Evaluate", json={"name": "field", "input": [[0.9, 1.7]]}).json()["output"][0]
        assert np.allclose(long, surrogate([0.9, 1.7]).values, rtol=1e-12)


def test_values_that_may_overflow_are_refused_before_the_first_is_sent(surrogate):
    large = replace(surrogate.restricted(nodes=[1, 2]), readout=np.full((2, 8), -4.0))
    for dtype in (np.float64, np.float32):
        c = np.zeros((3, 8), dtype)
        c[1, :2] = 0.49 * np.finfo(dtype).max / 4
        service._check_products("values", large, c)
        c[1, :2] = 0.51 * np.finfo(dtype).max / 4
        with pytest.raises(ps.ParasolError, match="not finite, or nearly so"), np.errstate(over="ignore"):
            service._check_products("values", large, c)
    wild = service.Service(replace(large, readout=np.full((2, 8), 1e308)), Limits())
    question = wild.question({"mus": np.tile([0.1, 2.0], (5000, 1))}, ("mus",))
    for answer, what in ((wild.predict, "values"), (wild.gradient, "derivatives")):
        with (
            pytest.raises(ps.ParasolError, match=f"the {what} are not finite, or nearly so"),
            np.errstate(over="ignore"),
        ):
            answer(question, formats.NPY)


def test_answers_do_not_wait_for_acknowledgements(client):
    """Without TCP_NODELAY each answer on an open connection takes 40 ms."""
    port, seconds = client.base_url.port, []
    with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
        for _ in range(50):  # the first ones are acknowledged at once
            start = time.perf_counter()
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                answer += sock.recv(4096)
            seconds.append(time.perf_counter() - start)
    assert min(seconds[-20:]) < 0.03


def test_too_many_requests_at_a_time_are_told_to_come_back(surrogate):
    with background(surrogate, limits=Limits(requests=2)) as server:
        port = int(server.address.rpartition(":")[2])
        head = b"POST /v1/predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
        held = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(2)]
        for sock in held:
            sock.sendall(head)
        time.sleep(0.3)
        response = httpx.get(f"{server.address}/health")
        assert response.status_code == 503
        assert "Ask again" in response.json()["error"]
        for sock in held:
            sock.close()
        time.sleep(0.3)
        assert httpx.get(f"{server.address}/health").status_code == 200


def test_a_long_answer_keeps_nobody_waiting(surrogate):
    """JSON is written in pieces, so that the thread that listens gets its turn."""
    mus = np.random.default_rng(0).uniform(0.2, 1.9, (8000, 2)).tolist()
    # one client: each new one loads certificates, which takes longer than the answer
    with background(surrogate) as server, ThreadPoolExecutor(1) as pool, httpx.Client() as client:
        long = pool.submit(lambda: httpx.post(f"{server.address}/v1/predict", json={"mus": mus}, timeout=120))
        waits = []
        while not long.done():
            start = time.perf_counter()
            assert client.get(f"{server.address}/health", timeout=60).status_code == 200
            waits.append(time.perf_counter() - start)
        got = long.result().json()
    assert np.array_equal(got["values"], surrogate(mus).values)
    assert len(waits) > 5
    assert max(waits) < 0.5 * sum(waits)  # written in one piece it is nearly all of it


def test_a_long_body_keeps_nobody_waiting():
    """A parser that calls Python for its numbers can be interrupted; otherwise all threads wait for its end."""
    body = json.dumps({"mus": np.random.default_rng(0).random((100_000, 2)).tolist()}).encode()
    with ThreadPoolExecutor(1) as pool:
        long, n_turns = pool.submit(formats.read_json, body), 0
        while not long.done():
            time.sleep(0.001)
            n_turns += 1
    assert long.result() == json.loads(body)
    assert n_turns > 5


def test_extrapolation_where_the_server_allows_it(surrogate):
    app = make_app(surrogate, extrapolate=True)
    ask = lambda **body: inside(app, "POST", "/v1/predict", json=body)  # noqa: E731
    got = ask(mus=[[4.1, 1.0], [1.0, 1.0]], extrapolate=True, bounds=True).json()
    assert got["extrapolated"] == [True, False]
    for path in ("/v1/predict", "/v1/gradient"):  # an array has no place for it, its header has
        for mus, wanted in (([[4.1, 1.0], [1.0, 1.0]], "1"), ([4.1, 1.0], "1"), ([1.0, 1.0], None)):
            body, accept = {"mus": mus, "extrapolate": True}, {"accept": "application/x-npy"}
            assert inside(app, "POST", path, json=body, headers=accept).headers.get("x-extrapolated") == wanted
    gradient = inside(app, "POST", "/v1/gradient", json={"mus": [4.1, 1.0], "extrapolate": True}).json()
    assert gradient["extrapolated"] is True
    assert np.array_equal(got["values"], surrogate([[4.1, 1.0], [1.0, 1.0]], extrapolate=True).values)
    assert "outside its range" in ask(mus=[4.1, 1.0]).json()["error"]
    for wild in ([-1.0, 1.0], [1e300, 1.0], [1.0, -1e300], [1e-300, 1e150]):
        response = ask(mus=wild, extrapolate=True, bounds=True, quantities=True)
        assert response.status_code in (200, 422), wild
        assert "NaN" not in response.text


def test_in_time_without_bounds():
    surrogate = served.in_time()
    app = make_app(surrogate)
    ask = lambda path="/v1/predict", **body: inside(app, "POST", path, json=body)  # noqa: E731
    got = ask(mus=[1.5]).json()
    assert got["shape"] == [3, 2, 5]
    assert got["unknowns"] == ["p", "q"]
    assert np.array_equal(got["values"], surrogate([1.5]).values)
    late = ask(mus=[1.5], times=[1.0], nodes=[4]).json()
    assert late["times"] == [1.0]
    assert np.allclose(late["values"], np.reshape(got["values"], (3, 2, 5))[2, :, 4], rtol=1e-12)
    assert "not a stored time" in ask(mus=[1.5], times=[0.7]).json()["error"]
    assert "nothing is known about the errors" in ask(mus=[1.5], bounds=True).json()["error"]
    assert "no quantities" in ask(mus=[1.5], quantities=True).json()["error"]
    assert ask("/v1/bounds", mus=[1.5]).status_code == 404
    paths = inside(app, "GET", "/openapi.json").json()["paths"]
    assert "/v1/bounds" not in paths
    assert "/v1/quantities" not in paths


def test_infinite_bounds_are_null():
    assert json.loads(formats.write_json(formats.plain({"b": np.array([1.0, np.inf]), "c": np.inf}))) == {
        "b": [1.0, None],
        "c": None,
    }


def test_many_at_once(client, surrogate):
    mus = np.random.default_rng(1).uniform(0.2, 1.9, (60, 2))
    with ThreadPoolExecutor(12) as pool:
        got = list(pool.map(lambda mu: post(client, "/v1/predict", mus=mu.tolist(), points=[[0.1, 0.2]]), mus))
    wanted = surrogate.restricted(points=[[0.1, 0.2]])(mus).values
    assert np.allclose([g["values"] for g in got], wanted, rtol=1e-12, atol=1e-14)


def test_malformed_requests_never_break_it(client):
    rng = np.random.default_rng(0)
    for _ in range(300):
        bad = malformed.draw(rng)
        response = client.request(bad.method, bad.path, content=bad.content, headers=bad.headers)
        assert 400 <= response.status_code < 500, (bad.why, bad.path, bad.content[:200], response.text)
    for path in malformed.POSTS:  # what they are made from is fine
        assert client.post(path, json=malformed.GOOD).status_code == 200


def test_what_cannot_be_served_or_listened_to(surrogate, tmp_path):
    with pytest.raises(ps.ParasolError, match="cannot serve a str"):
        make_app("model.parasol")  # type: ignore[arg-type]
    with pytest.raises(ps.ParasolError, match="0 to 65535"):
        ps.serve(surrogate, port=70_000)
    with pytest.raises(ps.ParasolError, match="no address 'no host'"):
        ps.serve(surrogate, host="no host")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ps.ParasolError, match=f"port {port}: Address already in use"):
            ps.serve(surrogate, port=port)
        result = CliRunner().invoke(
            command, ["serve", str(ps.save(surrogate, tmp_path / "m.parasol")), "--port", str(port)]
        )
        assert result.exit_code == 2
        assert result.stderr.count("\n") == 1
        assert "Choose another port" in result.stderr


def test_advice_where_the_extra_is_missing(surrogate, monkeypatch):
    monkeypatch.setattr(server_app, "find_spec", lambda name: None)
    with pytest.raises(ps.ParasolError, match=r"parasol-pde\[serve\]"):
        make_app(surrogate)


def test_the_command_serves_and_ends_cleanly(surrogate, tmp_path):
    path, places = ps.save(surrogate, tmp_path / "m.parasol"), tmp_path / "places.json"
    words = [sys.executable, "-m", "parasol", "serve", str(path), "--port", "0", "--json", str(places)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            first = process.stdout.readline() + process.stdout.readline()  # type: ignore[union-attr]
            address = json.loads(places.read_text())["address"]
            assert address.startswith("http://127.0.0.1:")
            assert address in first
            got = httpx.post(f"{address}/v1/predict", json={"mus": MUS}, timeout=30).json()
            assert np.array_equal(got["values"], surrogate(MUS).values)
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=20)
        finally:
            process.kill()
    assert process.returncode == 0, err
    assert "/docs" in first
    assert out.endswith("stopped\n")
    assert err == ""


def test_a_background_server_ends_with_its_block(surrogate):
    with background(surrogate) as server:
        assert httpx.get(f"{server.address}/health").status_code == 200
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server.address}/health")
    with pytest.warns(DeprecationWarning, match=r"use parasol.serve\(surrogate, background=True\)"):
        serving = ps.serving  # type: ignore[attr-defined]
    with serving(surrogate) as url:
        assert httpx.get(f"{url}/health").status_code == 200


def test_points_far_from_all_nodes_where_the_domain_is_not_known(surrogate):
    unknown = replace(surrogate, layout=replace(surrogate.layout, domain=None, outline=None))
    inside, outside = [[0.1, 0.2]], [[0.1, 0.2], [5.0, 5.0]]
    assert np.allclose(unknown.restricted(points=inside)(MUS).values, surrogate.restricted(points=inside)(MUS).values)
    with pytest.raises(ps.ParasolError, match="outside the domain"):
        unknown.restricted(points=outside)
