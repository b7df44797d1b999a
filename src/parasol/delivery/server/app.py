"""A surrogate over HTTP: predictions, gradients and bounds for programs, UM-Bridge for samplers, a page for people."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from parasol.delivery.server.service import Limits, Service
from parasol.delivery.server.umbridge import VERBS
from parasol.errors import InputError, NotInstalled
from parasol.runtime.surrogate import Surrogate

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_TAKEN = ("health", "docs", "metrics", "v1", "openapi.json", "Info", *VERBS)


def make_app(
    surrogate: Surrogate | Mapping[str, Surrogate],
    *,
    limits: Limits | None = None,
    extrapolate: bool = False,
    cors: str | Sequence[str] = (),
    token: str | None = None,
) -> Starlette:
    """The server as an ASGI application, for deployments that run their own ASGI server.

    Of several surrogates by name each has the routes of a single one below its name: /NAME/v1/predict. With
    `extrapolate`, requests may ask for parameters outside the box; otherwise they are refused. `cors` names the origins
    whose pages may ask, "*" all of them. With a `token`, all but /health is refused to those who do not send it.
    """
    missing = [name for name in ("starlette", "uvicorn") if not find_spec(name)]
    if missing:
        raise NotInstalled(f"serving needs {' and '.join(missing)}. Install it with: pip install 'parasol-pde[serve]'.")
    from parasol.delivery.server.access import Access  # these need Starlette
    from parasol.delivery.server.routes import Routes

    limits = limits or Limits()
    access = Access((cors,) if isinstance(cors, str) else tuple(cors), token)
    if not isinstance(surrogate, Mapping):
        return Routes(_service(surrogate, limits, extrapolate), limits, access).app()
    if not surrogate:
        raise InputError("there is nothing to serve. Pass at least one surrogate.")
    for name in surrogate:
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _TAKEN:
            raise InputError(
                f"a surrogate cannot be served as {name!r}. Use letters, digits, - and _, and none of the server's own "
                f"names ({', '.join(_TAKEN[:4])}, ...)."
            )
    return Routes({name: _service(each, limits, extrapolate) for name, each in surrogate.items()}, limits, access).app()


def _service(surrogate: Surrogate, limits: Limits, extrapolate: bool) -> Service:
    if not isinstance(surrogate, Surrogate):
        raise InputError(f"cannot serve a {type(surrogate).__name__}. Pass a surrogate.")
    service = Service(surrogate, limits, extrapolate)
    _ = surrogate(service.middle).values  # a surrogate that cannot answer should say so now
    return service


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
    surrogate: Surrogate | Mapping[str, Surrogate],
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    limits: Limits | None = None,
    extrapolate: bool = False,
    cors: str | Sequence[str] = (),
    token: str | None = None,
    announce: Callable[[str], None] | None = None,
    background: bool = False,
) -> Server:
    """Serve until interrupted, on this machine only unless another `host` is given; port 0 takes any free one.

    `announce` is called with the address as soon as requests are accepted. With `background` the server runs in a
    thread of this process and is returned at once: `with ps.serve(surrogate, port=0, background=True) as server: ...`
    asks it at `server.address`. What is served, to whom and within which limits: see `parasol.delivery.make_app`.
    """
    app = make_app(surrogate, limits=limits, extrapolate=extrapolate, cors=cors, token=token)
    from parasol.delivery.server.listening import http_server, listen  # needs uvicorn

    listener = listen(host, port)
    name, port = listener.getsockname()[:2]
    address = f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
    server = http_server(app, limits or Limits(), lambda: announce and announce(address))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    running = Server(address, server, thread)
    if background:
        thread.start()
        return running
    from threadpoolctl import threadpool_limits

    usual = sys.getswitchinterval()
    try:
        sys.setswitchinterval(usual / 10)  # the thread that listens waits less for those that compute
        with listener, threadpool_limits(1):  # requests run side by side: more threads of BLAS would only compete
            server.run(sockets=[listener])
    finally:
        sys.setswitchinterval(usual)
    return running


@contextmanager
def serving(surrogate: Surrogate | Mapping[str, Surrogate], **options) -> Iterator[str]:
    """The address of `serve(surrogate, background=True)`, as in 0.1.0."""
    with serve(surrogate, **{"port": 0, **options}, background=True) as server:
        yield server.address
