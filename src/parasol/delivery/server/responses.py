"""Responses: short ones at once, long ones in chunks that are made while the client reads; errors in one line of JSON."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator, Callable, Iterator, Mapping

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from parasol.delivery.server import formats
from parasol.delivery.server.formats import CHUNK, JSON

HTML = "text/html; charset=utf-8"


def response(content: bytes, kind: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Bytes that are there already; long ones leave in chunks, so that it shows whether the client takes them."""
    headers = {"X-Content-Type-Options": "nosniff", **(headers or {})}
    if len(content) <= CHUNK:
        return Response(content, status, headers, media_type=kind)
    chunks = (content[start : start + CHUNK] for start in range(0, len(content), CHUNK))
    headers["Content-Length"] = str(len(content))
    return StreamingResponse(_at_once(chunks), status, headers, media_type=kind)


async def _at_once(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def streamed(
    first: bytes, pieces: Iterator[bytes], kind: str, writer: anyio.CapacityLimiter, headers: Mapping[str, str]
) -> Response:
    """An answer of which only the `first` chunk is made; the others are when the client has taken those before them."""
    if len(first) < CHUNK:
        return response(first, kind, headers=headers)

    async def chunks() -> AsyncIterator[bytes]:
        chunk = first
        while chunk:
            yield chunk
            chunk = await anyio.to_thread.run_sync(formats.next_chunk, pieces, limiter=writer)

    return StreamingResponse(chunks(), headers={"X-Content-Type-Options": "nosniff", **headers}, media_type=kind)


def error(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """A refusal in one line."""
    return response(formats.write_json({"error": formats.one_line(message)}), JSON, status, headers)


class Page:
    """A page for people, made when it is first asked for, and kept compressed."""

    def __init__(self, make: Callable[[], str]):
        self._make, self._lock, self._kept = make, anyio.Lock(), b""

    async def answer(self, request: Request) -> Response:
        """The page, compressed for those who can read that."""
        async with self._lock:
            if not self._kept:
                self._kept = await anyio.to_thread.run_sync(lambda: gzip.compress(self._make().encode(), 6))
        headers = {"Vary": "Accept-Encoding", "Referrer-Policy": "no-referrer"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            return response(self._kept, HTML, headers=headers | {"Content-Encoding": "gzip"})
        return response(await anyio.to_thread.run_sync(gzip.decompress, self._kept), HTML, headers=headers)
