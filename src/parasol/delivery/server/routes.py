"""The server's routes: bodies are read within limits, answers written in the accepted form, errors said in JSON."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from parasol import __version__
from parasol.delivery.server import formats, umbridge
from parasol.delivery.server.access import Access
from parasol.delivery.server.formats import JSON, NPY, Refusal
from parasol.delivery.server.metrics import Metrics
from parasol.delivery.server.page import describe, docs_page, explorer_page, list_page
from parasol.delivery.server.responses import Page, error, response, streamed
from parasol.delivery.server.schema import BINARY, MOST_IN_QUERY, guarded, openapi, openapi_of_all, questions
from parasol.delivery.server.service import Limits, Service
from parasol.errors import ParasolError, reworded
from parasol.runtime.plain import Plain

_SMALL_BODY = 4096  # bytes that are parsed faster than handed to another thread
_WORDS = {"extrapolate": '"extrapolate": true, if the server was started so'}  # arguments of Python in a request
_REFUSED = (ParasolError, RecursionError)  # a body that could just be parsed may be nested too deeply to be quoted


class Routes:
    """The routes of one service, or of several by name, and the counts of their requests."""

    def __init__(self, services: Service | Mapping[str, Service], limits: Limits, access: Access):
        self._limits, self._access, self._metrics = limits, access, Metrics()
        self._workers = anyio.CapacityLimiter(min(4, max(2, os.cpu_count() or 1)))
        self._writer = anyio.CapacityLimiter(
            1
        )  # writing holds the interpreter: two would keep the listening thread waiting
        self._routes: list[Route] = []
        if isinstance(services, Service):
            self._serve("", services)
        else:
            self._serve_list(services)
            for name, service in services.items():
                self._serve(f"/{name}", service)

    def app(self) -> Starlette:
        """All routes as an application."""
        known = {route.path for route in self._routes}
        app = Starlette(
            routes=self._routes,
            exception_handlers={HTTPException: _no_route, Exception: _broken} | dict.fromkeys(_REFUSED, _refused),  # type: ignore[arg-type]
            middleware=self._access.middleware(self._metrics, known, self._limits.requests),
        )
        app.router.redirect_slashes = False
        return app

    def _serve(self, prefix: str, service: Service) -> None:
        """The routes of a service, below a prefix."""
        surrogate, layout, token = service.surrogate, service.surrogate.layout, self._access.token is not None
        schema = openapi(service) | ({"servers": [{"url": prefix}]} if prefix else {})
        schema = guarded(schema) if token else schema
        contents = {"/v1/info": describe(service), "/openapi.json": schema}
        if layout.points is not None:
            contents["/v1/nodes"] = {"points": layout.points, "n_interior": layout.n_interior}
        pages = {"/": partial(explorer_page, service, token), "/docs": partial(docs_page, schema, service, token)}
        self._constant(prefix, contents, pages)
        self._bridge(prefix, {name: (service, name) for name in umbridge.model_names(surrogate)})
        answers = {"/v1/predict": service.predict, "/v1/gradient": service.gradient}
        answers |= {"/v1/bounds": service.bounds, "/v1/quantities": service.quantities}
        for path, names in questions(service).items():
            answer = partial(_answer, service, path, names, answers[path])
            self._routes.append(_post(prefix + path, partial(self._question, service, path, prefix + path, answer)))

    def _serve_list(self, services: Mapping[str, Service]) -> None:
        """The list of several services, and their models under names such as helmholtz/field."""
        schema = openapi_of_all(services)
        schema = schema if self._access.token is None else guarded(schema)
        pages = {"/": partial(list_page, services), "/docs": partial(docs_page, schema)}
        self._constant("", {"/openapi.json": schema}, pages)
        models = {
            f"{name}/{model}": (service, model)
            for name, service in services.items()
            for model in umbridge.model_names(service.surrogate)
        }
        self._bridge("", models)
        self._routes += [_get(f"/{name}", _to_its_page) for name in services]

    def _constant(self, prefix: str, contents: Plain, pages: dict[str, Callable[[], str]]) -> None:
        """What never changes, and the counts."""
        self._routes.append(_get(f"{prefix}/metrics", self._counts))
        contents = contents | {"/health": {"status": "ok", "parasol": __version__}}
        for path, content in contents.items():
            self._routes.append(_get(prefix + path, partial(_fixed, formats.write_json(content))))
        self._routes += [_get(prefix + path, Page(make).answer) for path, make in pages.items()]

    def _bridge(self, prefix: str, models: Mapping[str, tuple[Service, str]]) -> None:
        """UM-Bridge for models by name."""
        about = formats.write_json({"protocolVersion": umbridge.PROTOCOL, "models": list(models)})
        self._routes.append(_get(f"{prefix}/Info", partial(_fixed, about)))
        for verb in umbridge.VERBS:
            path = f"{prefix}/{verb}"
            self._routes.append(_post(path, partial(self._protocol, models, verb, path)))

    async def _counts(self, request: Request) -> Response:
        return response(self._metrics.text().encode(), "text/plain; version=0.0.4; charset=utf-8")

    async def _question(self, service: Service, path: str, route: str, answer: Callable, request: Request) -> Response:
        """Answer at parameters, in the form that is accepted."""
        kind = formats.accepted(request.headers.get("accept", ""), (JSON, NPY) if path in BINARY else (JSON,))
        form = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
        if form not in (JSON, NPY):
            raise Refusal(415, f"the body is {form[:60]!r}. Send {JSON} (curl: -H 'Content-Type: {JSON}') or {NPY}.")
        query = _read_query(request)

        def read(body: bytes) -> Plain:
            given = formats.read_json(body) if form == JSON else {"mus": formats.read_npy(body)}
            for name in sorted(set(query) & set(given)):
                raise Refusal(422, f"{name[:40]!r} stands in the query and in the body. Say it once.")
            return query | given

        answered = self._compute(await self._body(request), read, partial(answer, kind), service.is_light)
        first, pieces, headers, n_samples = await answered
        self._metrics.parameters[route] += n_samples
        return streamed(first, pieces, kind, self._writer, headers)

    async def _protocol(
        self, models: Mapping[str, tuple[Service, str]], verb: str, route: str, request: Request
    ) -> Response:
        """UM-Bridge. Its many clients name the form of their bodies as they like."""

        def answer(given: Plain) -> tuple[bytes, Iterator[bytes]]:
            pieces = formats.json_pieces(umbridge.answer(models, verb, given))
            return formats.next_chunk(pieces), pieces

        def light(given: Plain) -> bool:
            config = given.get("config")
            return umbridge.find(models, given)[0].is_light(config if isinstance(config, dict) else {})

        body = await self._body(request)
        try:
            first, pieces = await self._compute(body, formats.read_json, answer, light)
        except _REFUSED as refusal:
            message = {"type": getattr(refusal, "kind", "InvalidInput"), "message": _reason(refusal)[1]}
            return response(formats.write_json({"error": message}), JSON, 400)
        self._metrics.parameters[route] += int(verb in umbridge.COMPUTED)
        return streamed(first, pieces, JSON, self._writer, {})

    async def _compute(
        self,
        body: bytes,
        read: Callable[[bytes], Plain],
        answer: Callable[[Plain], Any],
        light: Callable[[Plain], bool],
    ) -> Any:
        """Read a body and answer it: at once where that is quick, else in another thread."""

        def work(given: Plain | None) -> Any:
            with _no_overflow():
                return answer(read(body) if given is None else given)

        given = read(body) if len(body) <= _SMALL_BODY else None
        if given is not None and light(given):
            return work(given)
        return await anyio.to_thread.run_sync(work, given, limiter=self._workers)

    async def _body(self, request: Request) -> bytes:
        """The body, refused where it is too long or too slow; too long ones are read on a little, so that clients hear it."""
        limits, parts, size = self._limits, [], 0
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


def _get(path: str, answer: Callable) -> Route:
    return Route(path, answer, methods=["GET"])


def _post(path: str, answer: Callable) -> Route:
    return Route(path, answer, methods=["POST"])


async def _fixed(content: bytes, request: Request) -> Response:
    return response(content, JSON)


async def _to_its_page(request: Request) -> Response:
    """Links on a page are relative to its folder."""
    return RedirectResponse(f"{request.url.path.rpartition('/')[2]}/")


def _answer(
    service: Service, path: str, names: tuple[str, ...], answer: Callable, kind: str, given: Plain
) -> tuple[bytes, Iterator[bytes], dict[str, str], int]:
    """The first bytes of an answer, those that follow, its headers, and how many parameters it is for."""
    question = service.question(given, names)
    if kind == NPY and (question.bounds or question.quantities):
        raise Refusal(422, f"{kind} holds one array: no bounds or quantities beside it. Ask other routes, or for JSON.")
    content, headers = answer(question, kind), {}
    if kind == NPY:
        length, pieces = formats.npy_pieces(content["gradient" if path == "/v1/gradient" else "values"])
        headers["Content-Length"] = str(length)
    else:
        pieces = formats.json_pieces(content)
    n_extrapolated = int(np.count_nonzero(content["extrapolated"]))
    if n_extrapolated:  # a bare array has no place to say this
        headers["X-Extrapolated"] = str(n_extrapolated)
    return formats.next_chunk(pieces), pieces, headers, question.n_samples


def _reason(refusal: Exception) -> tuple[int, str]:
    """Status and message of a refusal."""
    if isinstance(refusal, RecursionError):
        return 400, "the body is nested too deeply. Send an object of plain lists."
    return getattr(refusal, "status", 422), formats.one_line(reworded(str(refusal), _WORDS))


async def _refused(request: Request, refusal: Exception) -> Response:
    return error(*_reason(refusal))


async def _no_route(request: Request, missing: HTTPException) -> Response:
    path = request.url.path[:60]
    messages = {404: f"there is no {path!r}. See /docs.", 405: f"{request.method} is not for {path!r}. See /docs."}
    return error(missing.status_code, messages.get(missing.status_code, str(missing.detail)), missing.headers)


async def _broken(request: Request, mistake: Exception) -> Response:
    return error(500, "the server made a mistake, which is in its log. Please report it.")


@contextmanager
def _no_overflow() -> Iterator[None]:
    """Far outside the box numbers overflow: the linear algebra notices that, or the checks of the result do."""
    try:
        with np.errstate(all="ignore"):
            yield
    except np.linalg.LinAlgError:
        raise Refusal(422, "the numbers overflow at these parameters. Ask inside the box.") from None


def _read_query(request: Request) -> Plain:
    """Options in the query, each as JSON (a bare word is a text)."""
    out: Plain = {}
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
