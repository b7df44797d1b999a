"""The server's routes: bodies are read within limits, answers written in the accepted form, errors said in JSON."""

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
from parasol.delivery.server import formats, umbridge
from parasol.delivery.server.formats import JSON, NPY, Refusal
from parasol.delivery.server.metrics import Metrics
from parasol.delivery.server.page import describe, page
from parasol.delivery.server.schema import BINARY, MOST_IN_QUERY, openapi, questions
from parasol.delivery.server.service import Service
from parasol.errors import ParasolError

_SMALL_BODY = 4096  # bytes that are parsed faster than handed to another thread
_HTML = "text/html; charset=utf-8"
_REFUSED = (ParasolError, RecursionError)  # a body that could just be parsed may be nested too deeply to be quoted


class Routes:
    """The routes of a service, and the counts of their requests."""

    def __init__(self, service: Service):
        self._service, self._metrics = service, Metrics()
        self._questions = questions(service)
        self._answers = {"/v1/predict": service.predict, "/v1/gradient": service.gradient}
        self._answers |= {"/v1/bounds": service.bounds, "/v1/quantities": service.quantities}
        self._workers = anyio.CapacityLimiter(min(4, max(2, os.cpu_count() or 1)))  # each may hold a whole answer

    def app(self) -> Starlette:
        """All routes as an application."""
        routes = [Route("/metrics", self._counts, methods=["GET"])]
        routes += [Route(path, partial(_constant, *it), methods=["GET"]) for path, it in self._constants().items()]
        routes += [Route(path, partial(self._question, path), methods=["POST"]) for path in self._questions]
        routes += [Route(f"/{verb}", partial(self._protocol, verb), methods=["POST"]) for verb in umbridge.VERBS]
        known = {route.path for route in routes}
        app = Starlette(
            routes=routes,
            exception_handlers={HTTPException: _no_route, Exception: _broken} | dict.fromkeys(_REFUSED, _refused),  # type: ignore[arg-type]
            middleware=[Middleware(_Counting, metrics=self._metrics, known=known, most=self._service.limits.requests)],
        )
        app.router.redirect_slashes = False
        return app

    def _constants(self) -> dict[str, tuple[bytes, str]]:
        """What never changes: bytes and their media type, by route."""
        surrogate, layout = self._service.surrogate, self._service.surrogate.layout
        facts, description = describe(self._service), openapi(self._service)
        contents = {"/v1/info": facts, "/openapi.json": description}
        contents["/Info"] = {"protocolVersion": umbridge.PROTOCOL, "models": umbridge.model_names(surrogate)}
        contents["/health"] = {"status": "ok", "parasol": __version__}
        if layout.points is not None:
            contents["/v1/nodes"] = {"points": layout.points, "n_interior": layout.n_interior}
        text = page(self._service, description, facts).encode()
        return {"/": (text, _HTML), "/docs": (text, _HTML)} | {
            path: (formats.write_json(content), JSON) for path, content in contents.items()
        }

    async def _counts(self, request: Request) -> Response:
        return _response(self._metrics.text().encode(), "text/plain; version=0.0.4; charset=utf-8")

    async def _question(self, path: str, request: Request) -> Response:
        """Answer at parameters, in the form that is accepted."""
        kind = formats.accepted(request.headers.get("accept", ""), (JSON, NPY) if path in BINARY else (JSON,))
        form = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
        if form not in (JSON, NPY):
            raise Refusal(415, f"the body is {form[:60]!r}. Send {JSON} (curl: -H 'Content-Type: {JSON}') or {NPY}.")
        query = _read_query(request)

        def read(body: bytes) -> dict[str, Any]:
            given = formats.read_json(body) if form == JSON else {"mus": formats.read_npy(body)}
            for name in sorted(set(query) & set(given)):
                raise Refusal(422, f"{name[:40]!r} stands in the query and in the body. Say it once.")
            return query | given

        answer = partial(self._answer, path, kind)
        content, n_samples, n_extrapolated = await self._compute(await self._body(request), read, answer)
        self._metrics.parameters[path] += n_samples
        # a bare array has no place to say this
        return _response(content, kind, headers={"X-Extrapolated": str(n_extrapolated)} if n_extrapolated else {})

    def _answer(self, path: str, kind: str, given: dict[str, Any]) -> tuple[bytes, int, int]:
        """The bytes of an answer, how many parameters it is for, and how many of them are extrapolated."""
        question = self._service.question(given, self._questions[path])
        if kind == NPY and (question.bounds or question.quantities):
            raise Refusal(
                422, f"{kind} holds one array: no bounds or quantities beside it. Ask other routes, or for JSON."
            )
        answer = self._answers[path](question, kind)
        array = answer["gradient" if path == "/v1/gradient" else "values"] if kind == NPY else None
        content = formats.write_json(answer) if array is None else formats.write_npy(array)
        return content, question.n_samples, int(np.count_nonzero(answer["extrapolated"]))

    async def _protocol(self, verb: str, request: Request) -> Response:
        """UM-Bridge. Its many clients name the form of their bodies as they like."""
        body = await self._body(request)
        try:
            content = await self._compute(
                body,
                formats.read_json,
                lambda given: formats.write_json(umbridge.answer(self._service, verb, given)),
                lambda given: given["config"] if isinstance(given.get("config"), dict) else {},
            )
        except _REFUSED as error:
            message = {"type": getattr(error, "kind", "InvalidInput"), "message": _reason(error)[1]}
            return _response(formats.write_json({"error": message}), JSON, 400)
        self._metrics.parameters[f"/{verb}"] += int(verb in umbridge.COMPUTED)
        return _response(content, JSON)

    async def _compute(
        self,
        body: bytes,
        read: Callable[[bytes], dict[str, Any]],
        answer: Callable[[dict[str, Any]], Any],
        options: Callable[[dict[str, Any]], dict[str, Any]] = lambda given: given,
    ) -> Any:
        """Read a body and answer it: at once where that is quick, else in another thread."""

        def work(given: dict[str, Any] | None) -> Any:
            with _no_overflow():
                return answer(read(body) if given is None else given)

        given = read(body) if len(body) <= _SMALL_BODY else None
        if given is not None and self._service.is_light(options(given)):
            return work(given)
        return await anyio.to_thread.run_sync(work, given, limiter=self._workers)

    async def _body(self, request: Request) -> bytes:
        """The body, refused where it is too long or too slow; too long ones are read on a little, so that clients hear it."""
        limits, parts, size = self._service.limits, [], 0
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

        app = self.app
        if self.open >= self.most:
            app = _error(503, "the server has too much to do at once. Ask again in a moment.", {"Retry-After": "1"})
        self.open += 1
        try:
            await app(scope, receive, watched)
        finally:
            self.open -= 1
            route = scope["path"].removeprefix(scope.get("root_path", ""))
            self.metrics.count(route if route in self.known else "other", status, time.perf_counter() - start)


async def _constant(content: bytes, kind: str, request: Request) -> Response:
    headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"} if kind == _HTML else {}
    return _response(content, kind, headers=headers)


def _response(content: bytes, kind: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(content, status, {"X-Content-Type-Options": "nosniff", **(headers or {})}, media_type=kind)


def _error(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return _response(formats.write_json({"error": formats.one_line(message)}), JSON, status, headers)


def _reason(error: Exception) -> tuple[int, str]:
    """Status and message of a refusal."""
    if isinstance(error, RecursionError):
        return 400, "the body is nested too deeply. Send an object of plain lists."
    return getattr(error, "status", 422), formats.one_line(str(error))


async def _refused(request: Request, error: Exception) -> Response:
    return _error(*_reason(error))


async def _no_route(request: Request, error: HTTPException) -> Response:
    path = request.url.path[:60]
    messages = {404: f"there is no {path!r}. See /docs.", 405: f"{request.method} is not for {path!r}. See /docs."}
    return _error(error.status_code, messages.get(error.status_code, str(error.detail)), error.headers)


async def _broken(request: Request, error: Exception) -> Response:
    return _error(500, "the server made a mistake, which is in its log. Please report it.")


@contextmanager
def _no_overflow() -> Iterator[None]:
    """Far outside the box numbers overflow: the linear algebra notices that, or the checks of the result do."""
    try:
        with np.errstate(all="ignore"):
            yield
    except np.linalg.LinAlgError:
        raise Refusal(422, "the numbers overflow at these parameters. Ask inside the box.") from None


def _read_query(request: Request) -> dict[str, Any]:
    """Options in the query, each as JSON (a bare word is a text)."""
    out: dict[str, Any] = {}
    for name, text in request.query_params.multi_items():
        if name in out or name == "mus":
            why = "stands twice in the query" if name in out else "belongs in the body"
            raise Refusal(422, f"{name[:40]!r} {why}. See /docs.")
        try:
            out[name] = text if text in ("float64", "float32") else formats.parse_json(text)
        except Refusal:
            raise Refusal(422, f"{name[:40]!r} in the query is not JSON: {text[:60]!r}.") from None
        if isinstance(out[name], list) and len(out[name]) > MOST_IN_QUERY:
            raise Refusal(422, f"{name[:40]!r} in the query has more than {MOST_IN_QUERY} entries. Send a JSON body.")
    return out
