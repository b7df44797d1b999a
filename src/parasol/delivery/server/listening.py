"""Sockets and connections: what a client may keep open, and for how long."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from parasol.delivery.server.service import Limits
from parasol.errors import InputError

if TYPE_CHECKING:
    from starlette.applications import Starlette

_OTHER_FILES = 100  # open files that are no connections: libraries, the surrogate, standard streams
_QUEUE = 2048  # connections that the system may keep for us
_AT_ONCE = 64  # of these are accepted in one go; a thousand would keep all others waiting
_LONGEST_HEAD = 2**16  # bytes: selections may stand in the query


def http_server(app: Starlette, limits: Limits, ready: Callable[[], object]) -> uvicorn.Server:
    """A server that gives up connections that keep it waiting; uvicorn alone would wait for ever.

    `ready` is called when requests and interrupts are listened to.
    """
    waiting: dict[_Connection, None] = {}  # those without a complete head, the one that has waited longest first
    most = _most_connections(limits.connections)

    class _Connection(H11Protocol):
        taken = 0  # how often the client has taken what was sent to it

        def connection_made(self, transport) -> None:
            super().connection_made(transport)
            # asyncio does this only where the socket says that it is TCP, and Python's own do not; without it the end of
            # each answer waits 40 ms for the acknowledgement of its beginning
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            waiting[self] = None
            if len(self.connections) > most:
                longest = next(iter(waiting))
                del waiting[longest]
                longest.transport.abort()
            self._watch(None)

        def handle_events(self) -> None:
            super().handle_events()
            if not self._is_waiting:
                waiting.pop(self, None)
            elif not self.transport.is_closing():
                waiting.setdefault(self)

        def connection_lost(self, exc) -> None:
            waiting.pop(self, None)
            self._timer.cancel()
            super().connection_lost(exc)

        def resume_writing(self) -> None:
            self.taken += 1
            super().resume_writing()

        @property
        def _is_waiting(self) -> bool:
            """For the head of a request: the first, or one after an answer, be it in the midst of a body that was refused."""
            return self.cycle is None or self.cycle.response_complete

        def _watch(self, before) -> None:
            """Close a connection on which for some time no head was completed, or nothing of an answer was taken."""
            unsent = self.transport.get_write_buffer_size() > 0
            now = ("answer", self.taken) if unsent else ("head", self.cycle) if self._is_waiting else None
            if now is not None and now == before:
                self.transport.abort()
            else:
                self._timer = self.loop.call_later(limits.seconds / 2, self._watch, now)

    class _Server(uvicorn.Server):
        async def startup(self, sockets=None) -> None:
            await super().startup(sockets=sockets)
            for sock in sockets or ():
                sock.listen(_QUEUE)
            ready()

    return _Server(
        uvicorn.Config(
            app,
            log_level="error",
            access_log=False,
            ws="none",
            lifespan="off",
            server_header=False,
            proxy_headers=False,
            http=_Connection,
            backlog=_AT_ONCE,
            h11_max_incomplete_event_size=_LONGEST_HEAD,
            timeout_graceful_shutdown=5,
        )
    )


def _most_connections(wanted: int) -> int:
    """As many connections as the system lets this process have open, up to `wanted`."""
    try:
        import resource
    except ImportError:  # Windows counts sockets apart
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted + _OTHER_FILES:
        more = wanted + _OTHER_FILES if hard == resource.RLIM_INFINITY else min(wanted + _OTHER_FILES, hard)
        with suppress(ValueError, OSError):  # some systems allow less than they say
            resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
            soft = more
    return max(1, min(wanted, soft - _OTHER_FILES))


def listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections, or the reason in one line."""
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise InputError(f"port must be a whole number from 0 to 65535, got {port!r}.")
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server(address, family=family, backlog=_QUEUE, dualstack_ipv6=both)
    except (socket.gaierror, UnicodeError):
        message = f"there is no address {host!r} to listen at. Use 127.0.0.1, or 0.0.0.0 for all of this machine's."
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error
        message = f"cannot listen at {host}, port {port}: {why}. Choose another port, or 0 for any free one."
    raise InputError(message)
