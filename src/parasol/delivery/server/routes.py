"""The server's routes: bodies read within limits, answers in the form that is accepted, every mistake told in JSON."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from parasol import __version__
from parasol.checks import ParasolError
from parasol.delivery.server import umbridge
from parasol.delivery.server.desk import Desk
from parasol.delivery.server.metrics import Metrics
from parasol.delivery.server.page import describe, page
from parasol.delivery.server.schema import MOST_IN_QUERY, openapi, questions
from parasol.delivery.server.wire import (
    JSON,
    NPY,
    Refusal,
    accepted,
    binary_kinds,
    one_line,
    parse_json,
    read_json,
    read_npy,
    write_arrow,
    write_json,
    write_npy,
)

_PROTOCOL_VERBS = ("ModelInfo", "InputSizes", "OutputSizes", "Evaluate", "Gradient", "ApplyJacobian", "ApplyHessian")
_SMALL_BODY = 4096  # bytes that are read and parsed faster than handed to another thread
_HEADERS = {"X-Content-Type-Options": "nosniff"}


class Routes:
    """Routes, bodies, forms of answers and counts around a desk."""

    def __init__(self, desk: Desk):
        self._desk, self._metrics = desk, Metrics()
        self._questions = questions(desk)
        self._answers = {"/v1/predict": desk.values, "/v1/gradient": desk.gradient}
        self._answers |= {"/v1/bounds": desk.bounds, "/v1/quantities": desk.quantities}
        both = (JSON, *binary_kinds())
        self._kinds: dict[str, tuple[str, ...]] = {"/v1/predict": both, "/v1/gradient": both}
        self._workers = anyio.CapacityLimiter(min(4, max(2, os.cpu_count() or 1)))  # each may hold a whole answer

    def app(self) -> Starlette:
        """All routes, with every mistake answered in JSON."""
        routes = [Route("/metrics", self._counts, methods=["GET"])]
        routes += [Route(path, partial(_constant, *it), methods=["GET"]) for path, it in self._made_once().items()]
        routes += [Route(path, partial(self._question, path), methods=["POST"]) for path in self._questions]
        routes += [Route(f"/{verb}", partial(self._protocol, verb), methods=["POST"]) for verb in _PROTOCOL_VERBS]
        known = {route.path for route in routes}
        handlers = {HTTPException: self._not_there, Exception: self._broken}
        handlers |= dict.fromkeys((Refusal, ParasolError, RecursionError), self._refused)
        app = Starlette(
            routes=routes,
            exception_handlers=handlers,  # type: ignore[arg-type]
            middleware=[Middleware(_Counting, metrics=self._metrics, known=known, most=self._desk.limits.requests)],
        )
        app.router.redirect_slashes = False
        return app

    def _made_once(self) -> dict[str, tuple[bytes, str]]:
        """What never changes: bytes and their form, by route."""
        facts, description = describe(self._desk), openapi(self._desk)
        text = page(self._desk, description, facts).encode()
        out = {"/": (text, "text/html; charset=utf-8"), "/docs": (text, "text/html; charset=utf-8")}
        plain_data = {"/v1/info": facts, "/openapi.json": description, "/Info": umbridge.info(self._desk)}
        plain_data["/health"] = {"status": "ok", "parasol": __version__}
        layout = self._desk.surrogate.layout
        if layout.points is not None:
            plain_data["/v1/nodes"] = {"points": layout.points, "n_interior": layout.n_interior}
        return out | {path: (write_json(data), JSON) for path, data in plain_data.items()}

    async def _counts(self, request: Request) -> Response:
        return _response(self._metrics.text().encode(), "text/plain; version=0.0.4; charset=utf-8")

    async def _question(self, path: str, request: Request) -> Response:
        """Answer parameters, in the form that is accepted."""
        kind = accepted(request.headers.get("accept", ""), self._kinds.get(path, (JSON,)))
        form = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
        if form not in (JSON, NPY):
            raise Refusal(415, f"the body is {form[:60]!r}. Send {JSON} (curl: -H 'Content-Type: {JSON}') or {NPY}.")
        query = _read_query(request)
        body = await self._body(request)
        given = _merged(query, _read(body, form)) if len(body) <= _SMALL_BODY else None

        def work() -> tuple[bytes, int, int]:
            asked = _merged(query, _read(body, form)) if given is None else given
            with _careful():
                return self._answer(path, asked, kind)

        found = await self._run(work, light=given is not None and self._desk.is_light(given))
        content, n_samples, n_extrapolated = found
        self._metrics.answered(path, n_samples)
        # an array alone could not say it
        return _response(content, kind, headers={"X-Extrapolated": str(n_extrapolated)} if n_extrapolated else {})

    def _answer(self, path: str, asked: Mapping[str, Any], kind: str) -> tuple[bytes, int, int]:
        """The bytes of an answer, how many parameters it is for, and how many of them are extrapolated."""
        question = self._desk.question(asked, self._questions[path])
        if kind != JSON and (question.bounds or question.quantities):
            raise Refusal(
                422, f"{kind} holds one array: no bounds or quantities beside it. Ask other routes, or for JSON."
            )
        found = self._answers[path](question, kind)
        counts = question.n_samples, int(np.count_nonzero(found["extrapolated"]))
        if kind == JSON:
            return write_json(found), *counts
        array = found["values" if "values" in found else "gradient"]
        if kind == NPY:
            return write_npy(array), *counts
        return write_arrow(array[None] if question.mus.ndim == 1 else array), *counts

    async def _protocol(self, verb: str, request: Request) -> Response:
        """UM-Bridge. Its clients are many, so the form of a body is not held against them."""
        body = await self._body(request)

        def work() -> bytes:
            with _careful():
                return write_json(umbridge.answer(self._desk, verb, read_json(body) if given is None else given))

        try:
            given = read_json(body) if len(body) <= _SMALL_BODY else None
            config = {} if given is None else given.get("config", {})
            light = given is not None and (not isinstance(config, dict) or self._desk.is_light(config))
            content = await self._run(work, light=light)
        except umbridge.ProtocolError as error:
            message = {"error": {"type": error.kind, "message": one_line(str(error))}}
            return _response(write_json(message), JSON, 400)
        except (Refusal, RecursionError) as error:  # of the body
            message = {"error": {"type": "InvalidInput", "message": _told(error)[1]}}
            return _response(write_json(message), JSON, 400)
        self._metrics.answered(f"/{verb}", int(verb in _PROTOCOL_VERBS[3:]))
        return _response(content, JSON)

    async def _run(self, work: Callable[[], Any], *, light: bool) -> Any:
        if light:
            return work()
        return await anyio.to_thread.run_sync(work, limiter=self._workers)

    async def _body(self, request: Request) -> bytes:
        """The body, refused where it is too long or too slow; too long ones are read on a little, so that clients hear it."""
        limits, parts, size = self._desk.limits, [], 0
        coding = request.headers.get("content-encoding", "identity").strip().lower()
        if coding != "identity":
            raise Refusal(415, f"the body is encoded as {coding[:40]!r}. Send it as it is.")
        try:
            async with asyncio.timeout(limits.seconds):
                async for part in request.stream():
                    size += len(part)
                    if size <= limits.body:
                        parts.append(part)
                    elif size > 4 * limits.body:
                        break
        except TimeoutError:
            raise Refusal(408, f"the body did not arrive in {limits.seconds} s. Send less, or faster.") from None
        except ClientDisconnect:
            raise Refusal(400, "the request ended before its body.") from None
        if size > limits.body:
            raise Refusal(413, f"the body has more than {limits.body >> 10} KiB. Send several requests.")
        return b"".join(parts)

    async def _refused(self, request: Request, error: Exception) -> Response:
        status, message = _told(error)
        return _response(write_json({"error": message}), JSON, status)

    async def _not_there(self, request: Request, error: Any) -> Response:
        path = request.url.path[:60]
        words = {404: f"there is no {path!r}. See /docs.", 405: f"{request.method} is not for {path!r}. See /docs."}
        message = words.get(error.status_code, str(error.detail))
        return _response(write_json({"error": one_line(message)}), JSON, error.status_code, error.headers)

    async def _broken(self, request: Request, error: Exception) -> Response:
        return _response(
            write_json({"error": "the server made a mistake, which is in its log. Please report it."}), JSON, 500
        )


class _Counting:
    """Counts every request with its status and its seconds; unknown paths share one name. Refuses too many at a time."""

    def __init__(self, app, metrics: Metrics, known: set[str], most: int):
        self.app, self.metrics, self.known, self.most, self.open = app, metrics, known, most, 0

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def watched(message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        app = self.app if self.open < self.most else _busy
        self.open += 1
        try:
            await app(scope, receive, watched)
        finally:
            self.open -= 1
            route = scope["path"].removeprefix(scope.get("root_path", ""))
            self.metrics.count(route if route in self.known else "other", status, time.perf_counter() - start)


async def _busy(scope, receive, send) -> None:
    message = {"error": "the server has too much to do at once. Ask again in a moment."}
    await _response(write_json(message), JSON, 503, {"Retry-After": "1"})(scope, receive, send)


async def _constant(content: bytes, kind: str, request: Request) -> Response:
    headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"} if "html" in kind else {}
    return _response(content, kind, headers=headers)


def _response(content: bytes, kind: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(content, status, {**_HEADERS, **(headers or {})}, media_type=kind)


def _told(error: Exception) -> tuple[int, str]:
    """Status and words of a refusal."""
    if isinstance(error, Refusal):
        return error.status, error.message
    if isinstance(error, RecursionError):  # read with little room to spare, then quoted or compared with none
        return 400, "the body is nested too deeply. Send an object of plain lists."
    return 422, one_line(str(error))


@contextmanager
def _careful() -> Iterator[None]:
    """Far outside the box numbers overflow: that is found in the result, or by the linear algebra, and refused."""
    try:
        with np.errstate(all="ignore"):
            yield
    except np.linalg.LinAlgError:
        raise Refusal(422, "the numbers overflow at these parameters. Ask inside the box.") from None


def _read(body: bytes, form: str) -> dict[str, Any]:
    return read_json(body) if form == JSON else {"mus": read_npy(body)}


def _merged(query: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    twice = sorted(set(query) & set(body))
    if twice:
        raise Refusal(422, f"{twice[0][:40]!r} stands in the query and in the body. Say it once.")
    return query | body


def _read_query(request: Request) -> dict[str, Any]:
    """Options in the query, each as JSON (a bare word is a text)."""
    out: dict[str, Any] = {}
    for name, text in request.query_params.multi_items():
        if name in out or name == "mus":
            why = "stands twice in the query" if name in out else "belongs in the body"
            raise Refusal(422, f"{name[:40]!r} {why}. See /docs.")
        try:
            out[name] = text if text in ("float64", "float32") else parse_json(text)
        except Refusal:
            raise Refusal(422, f"{name[:40]!r} in the query is not JSON: {text[:60]!r}.") from None
        if isinstance(out[name], list) and len(out[name]) > MOST_IN_QUERY:
            raise Refusal(422, f"{name[:40]!r} in the query has more than {MOST_IN_QUERY} entries. Send a JSON body.")
    return out
