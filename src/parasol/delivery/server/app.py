"""A surrogate over HTTP: predictions, gradients and bounds for programs, UM-Bridge for samplers, a page for people."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from parasol.checks import ParasolError
from parasol.delivery.server.desk import Desk
from parasol.delivery.server.wire import Limits, require_starlette
from parasol.runtime.surrogate import Surrogate

if TYPE_CHECKING:
    from starlette.applications import Starlette


def make_app(surrogate: Surrogate, *, limits: Limits | None = None, extrapolate: bool = False) -> Starlette:
    """The server as an ASGI application, for any server that runs one.

    With `extrapolate`, requests may ask for parameters outside the box; otherwise they are refused.
    """
    require_starlette()
    if not isinstance(surrogate, Surrogate):
        raise ParasolError(f"cannot serve a {type(surrogate).__name__}. Pass a surrogate.")
    desk = Desk(surrogate, limits or Limits(), extrapolate)
    _ = surrogate(desk.middle).values  # a surrogate that cannot answer should say so now
    from parasol.delivery.server.routes import Routes  # needs what has just been required

    return Routes(desk).app()


def serve(
    surrogate: Surrogate,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    limits: Limits | None = None,
    extrapolate: bool = False,
    announce: Callable[[str], None] | None = None,
) -> None:
    """Serve until interrupted, on this machine only unless another `host` is given; port 0 takes any free one.

    `announce` is called with the address as soon as requests are accepted.
    """
    from threadpoolctl import threadpool_limits

    app = make_app(surrogate, limits=limits, extrapolate=extrapolate)
    with _listening(host, port) as found, threadpool_limits(1):  # requests are many: threads of BLAS would only quarrel
        if announce is not None:
            announce(_address(found))
        _uvicorn(app, limits).run(sockets=[found])


@contextmanager
def serving(
    surrogate: Surrogate, *, limits: Limits | None = None, extrapolate: bool = False, port: int = 0
) -> Iterator[str]:
    """A server in a thread of this process while the block lasts; gives its address, on this machine only."""
    app = make_app(surrogate, limits=limits, extrapolate=extrapolate)
    with _listening("127.0.0.1", port) as found:
        server = _uvicorn(app, limits)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [found]}, daemon=True)
        thread.start()
        try:
            yield _address(found)
        finally:
            server.should_exit = True
            thread.join()


def _uvicorn(app: Starlette, limits: Limits | None):
    import h11
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

    seconds = (limits or Limits()).seconds

    class HeadsInTime(H11Protocol):
        """Closes a connection on which no head of a request has come to its end for some time: uvicorn would wait for ever."""

        def connection_made(self, transport) -> None:
            super().connection_made(transport)
            self._watch(None)

        def _watch(self, answered) -> None:
            waiting = self.conn.their_state is h11.IDLE
            if waiting and answered is not None and self.cycle is answered[0]:
                self.transport.close()
            elif not self.transport.is_closing():
                self.loop.call_later(seconds / 2, self._watch, (self.cycle,) if waiting else None)

    return uvicorn.Server(
        uvicorn.Config(
            app,
            log_level="error",
            access_log=False,
            ws="none",
            lifespan="off",
            server_header=False,
            proxy_headers=False,
            http=HeadsInTime,
            h11_max_incomplete_event_size=2**18,  # bytes of a head: selections may stand in the query
            timeout_graceful_shutdown=5,
        )
    )


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that accepts connections, or the reason in one line."""
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise ParasolError(f"port must be a whole number from 0 to 65535, got {port!r}.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise ParasolError(
            f"there is no address {host!r} to listen at. Use 127.0.0.1, or 0.0.0.0 for all of this machine's."
        ) from None
    with socket.socket(family, kind, protocol) as found:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind(address)
            found.listen(2048)
        except OSError as error:
            raise ParasolError(
                f"cannot listen at {host}, port {port}: {error.strerror or error}. Choose another port, or 0 for any free one."
            ) from None
        yield found


def _address(found: socket.socket) -> str:
    host, port = found.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
