"""A surrogate over HTTP: predictions, gradients and bounds for programs, UM-Bridge for samplers, a page for people."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from parasol.delivery.server.service import Limits, Service
from parasol.errors import InputError, NotInstalled
from parasol.runtime.surrogate import Surrogate

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette


def make_app(surrogate: Surrogate, *, limits: Limits | None = None, extrapolate: bool = False) -> Starlette:
    """The server as an ASGI application, for deployments that run their own ASGI server.

    With `extrapolate`, requests may ask for parameters outside the box; otherwise they are refused.
    """
    missing = [name for name in ("starlette", "uvicorn") if not find_spec(name)]
    if missing:
        raise NotInstalled(f"serving needs {' and '.join(missing)}. Install it with: pip install 'parasol-pde[serve]'.")
    if not isinstance(surrogate, Surrogate):
        raise InputError(f"cannot serve a {type(surrogate).__name__}. Pass a surrogate.")
    service = Service(surrogate, limits or Limits(), extrapolate)
    _ = surrogate(service.middle).values  # a surrogate that cannot answer should say so now
    from parasol.delivery.server.routes import Routes  # needs Starlette

    return Routes(service).app()


@dataclass(frozen=True, eq=False)
class Server(AbstractContextManager["Server"]):
    """A server that runs in a thread of this process until it is closed, or until the end of a `with` block."""

    address: str
    _server: uvicorn.Server
    _thread: threading.Thread

    def close(self) -> None:
        """Answer what was asked, then stop."""
        self._server.should_exit = True
        self._thread.join()

    def __exit__(self, *error) -> None:
        self.close()


def serve(
    surrogate: Surrogate,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    limits: Limits | None = None,
    extrapolate: bool = False,
    announce: Callable[[str], None] | None = None,
    background: bool = False,
) -> Server:
    """Serve until interrupted, on this machine only unless another `host` is given; port 0 takes any free one.

    `announce` is called with the address as soon as requests are accepted. With `background` the server runs in a
    thread of this process and is returned at once: `with ps.serve(surrogate, port=0, background=True) as server: ...`
    asks it at `server.address`.
    """
    app = make_app(surrogate, limits=limits, extrapolate=extrapolate)
    listener = _listening(host, port)
    server = _uvicorn(app, limits or Limits())
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    name, port = listener.getsockname()[:2]
    running = Server(f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}", server, thread)
    if background:
        if announce is not None:
            announce(running.address)
        thread.start()
        return running
    from threadpoolctl import threadpool_limits

    begin = server.startup

    async def startup(sockets=None) -> None:
        """Announced when signals are listened to already: an interrupt that follows at once is not lost."""
        await begin(sockets=sockets)
        if announce is not None:
            announce(running.address)

    server.startup = startup  # type: ignore[method-assign]
    with listener, threadpool_limits(1):  # requests run side by side: more threads of BLAS would only compete
        server.run(sockets=[listener])
    return running


@contextmanager
def serving(surrogate: Surrogate, **options) -> Iterator[str]:
    """The address of `serve(surrogate, background=True)`, as in 0.1.0."""
    with serve(surrogate, **{"port": 0, **options}, background=True) as server:
        yield server.address


def _uvicorn(app: Starlette, limits: Limits) -> uvicorn.Server:
    import h11
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class HeadsInTime(H11Protocol):
        """Closes a connection on which no head of a request was completed for some time; uvicorn would wait for ever."""

        def connection_made(self, transport) -> None:
            super().connection_made(transport)
            self._watch(None)

        def _watch(self, answered) -> None:
            waiting = self.conn.their_state is h11.IDLE
            if waiting and answered is not None and self.cycle is answered[0]:
                self.transport.close()
            elif not self.transport.is_closing():
                self.loop.call_later(limits.seconds / 2, self._watch, (self.cycle,) if waiting else None)

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


def _listening(host: str, port: int) -> socket.socket:
    """A socket that accepts connections, or the reason in one line."""
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise InputError(f"port must be a whole number from 0 to 65535, got {port!r}.")
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
        return socket.create_server(address, family=family, backlog=2048, dualstack_ipv6=both)
    except (socket.gaierror, UnicodeError):
        message = f"there is no address {host!r} to listen at. Use 127.0.0.1, or 0.0.0.0 for all of this machine's."
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error
        message = f"cannot listen at {host}, port {port}: {why}. Choose another port, or 0 for any free one."
    raise InputError(message)
