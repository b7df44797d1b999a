"""Who may ask: a token, pages of other origins, and how many requests at a time."""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import time
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from parasol.delivery.server.metrics import Metrics
from parasol.delivery.server.responses import error
from parasol.errors import InputError


@dataclass(frozen=True)
class Access:
    """The origins whose pages may ask, and the token that every request but /health must bring; neither by default."""

    cors: tuple[str, ...] = ()
    token: str | None = None

    def __post_init__(self):
        for origin in self.cors:
            if origin != "*" and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/\s?#@]+", origin):
                raise InputError(f"{origin!r} is no origin. Write it like https://example.org:3000, or * for all.")
        if self.token is not None and not re.fullmatch(r"[!-~]+", self.token):
            raise InputError("a token has letters, digits and signs of ASCII, and no spaces. Choose another one.")

    def middleware(self, metrics: Metrics, known: set[str], most: int) -> list[Middleware]:
        """What a request passes before it is answered, outermost first."""
        out = [Middleware(_Counting, metrics=metrics, known=known, most=most)]
        if self.cors:
            allowed: dict[str, Any] = {"allow_origins": self.cors, "allow_methods": ["GET", "POST"]}
            allowed |= {"allow_headers": ["Authorization", "Content-Type"], "expose_headers": ["X-Extrapolated"]}
            out.insert(0, Middleware(CORSMiddleware, **allowed))  # outermost, so that a page can read every refusal
        if self.token is not None:
            out.append(Middleware(_Token, token=self.token))
        return out


class _Token:
    """Refuses requests without the token: `Authorization: Bearer TOKEN`, or, as browsers ask for it, as a password."""

    def __init__(self, app, token: str):
        self.app, self.token = app, token.encode()

    async def __call__(self, scope, receive, send) -> None:
        free = scope["type"] != "http" or scope["path"].endswith("/health")
        given = b"" if free else _given(Headers(scope=scope).get("authorization", ""))
        if free or hmac.compare_digest(given, self.token):
            await self.app(scope, receive, send)
            return
        how = "Send the header 'Authorization: Bearer TOKEN', or the token as the password of any user."
        what = "the token is wrong" if given else "this server asks for a token"
        await error(401, f"{what}. {how}", {"WWW-Authenticate": 'Basic realm="parasol: token as password"'})(
            scope, receive, send
        )


def _given(header: str) -> bytes:
    """The token in an Authorization header; nothing where there is none.

    >>> _given("Bearer abc"), _given("Basic " + base64.b64encode(b"me:abc").decode()), _given("abc")
    (b'abc', b'abc', b'')
    """
    scheme, _, value = header.strip().partition(" ")
    if scheme.lower() == "bearer":
        return value.strip().encode()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value.strip(), validate=True).partition(b":")[2]
        except (binascii.Error, ValueError):
            return b""
    return b""


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
            app = error(503, "the server has too much to do at once. Ask again in a moment.", {"Retry-After": "1"})
        self.open += 1
        try:
            await app(scope, receive, watched)
        finally:
            self.open -= 1
            route = scope["path"].removeprefix(scope.get("root_path", ""))
            self.metrics.count(route if route in self.known else "other", status, time.perf_counter() - start)
