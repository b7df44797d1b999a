"""How a solver reaches the processes of an executor: by the executor's own ways, never as a file.

Dask holds it as the result of a task, which it computes again where the worker with it has died. Others get it with every
chunk. Each process unpacks it once.
"""

from __future__ import annotations

import hashlib
import os
import platform
import socket
import threading
import time
import warnings
from concurrent.futures import Executor
from dataclasses import dataclass, field
from importlib.util import find_spec
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from threadpoolctl import threadpool_limits

from parasol import __version__
from parasol.errors import FileError, InputError

SEEN_WITHIN = 20.0  # seconds after which a file that another machine wrote should be visible on a shared file system


def environment() -> dict[str, str]:
    """The versions that have to be the same wherever one run computes: they decide the last digits, or more."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"parasol": __version__, "Python": python, "NumPy": np.__version__, "SciPy": scipy.__version__}


def check_environment(driver: dict[str, str], worker: dict[str, str], where: str) -> None:
    """Refuse a worker whose versions are not those of the run that it works for.

    >>> check_environment({"NumPy": "2.4.6"}, {"NumPy": "2.3.0"}, "a worker on node7")
    Traceback (most recent call last):
    parasol.errors.InputError: a worker on node7 has NumPy 2.3.0, this run has 2.4.6. Use the same environment everywhere.
    """
    for name, version in driver.items():
        if worker.get(name) != version:
            raise InputError(
                f"{where} has {name} {worker.get(name, 'of no known version')}, this run has {version}. "
                "Use the same environment everywhere."
            )


@dataclass(frozen=True)
class Sent:
    """What a worker has to know of a solver that reaches it as bytes, and of the store it writes to."""

    sha256: str
    folder: Path
    versions: dict[str, str] = field(default_factory=environment)

    def load(self, raw: bytes) -> Any:
        """The solver, unpacked by the first task of a process and kept for the others."""
        with _loading:
            if self.sha256 not in _loaded:
                check_environment(self.versions, environment(), f"a worker on {socket.gethostname()}")
                if not visible(self.folder):
                    raise FileError(
                        f"the store {self.folder} cannot be reached by a worker on {socket.gethostname()}. "
                        "Put it on a file system that all workers share."
                    )
                _loaded.clear()  # one model may be all that fits
                _loaded[self.sha256] = _unpacked(raw)
                # for good: threads of one worker that set and restore it would do so in any order
                _limits.append(threadpool_limits(1))
            return _loaded[self.sha256]


_loaded: dict[str, Any] = {}
_limits: list[Any] = []
_loading = threading.Lock()


def visible(path: Path) -> bool:
    """Whether a file that another machine wrote is there, after a while: shared file systems show it late."""
    end = time.monotonic() + SEEN_WITHIN
    while not path.exists():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
        if path.parent.is_dir():
            os.listdir(path.parent)  # makes NFS look again
    return True


def _unpacked(raw: bytes) -> Any:
    try:
        return ForkingPickler.loads(raw)  # type: ignore[attr-defined]
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"a worker on {socket.gethostname()} cannot load the solver: {error}. "
            "Start workers where its modules can be imported (PYTHONPATH)."
        ) from None


def packed(solver: Any, *, plainly: bool = False) -> bytes:
    """A solver as bytes: with cloudpickle, which Dask brings, functions of scripts and notebooks too, unless `plainly`."""
    try:
        if not plainly and find_spec("cloudpickle") is not None:
            import cloudpickle

            return cloudpickle.dumps(solver)
        return bytes(memoryview(ForkingPickler.dumps(solver)))
    except Exception as why:
        raise InputError(
            f"the solver cannot be sent to the executor's processes: {why}. Use jobs=n for processes of our own, which "
            f"need not send it on Linux, or define it at the top level of a module."
        ) from why


def sent(solver: Any, executor: Executor, folder: Path) -> tuple[Any, Sent]:
    """The solver as what tasks of this executor take for its bytes, and what workers check before they unpack it."""
    raw = packed(solver)
    about = Sent(hashlib.sha256(raw).hexdigest(), folder)
    client: Any = getattr(executor, "_client", None)
    if client is None:
        return raw, about
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Sending large graph"
        )  # once, and there is no other way that survives
        return client.submit(_held, raw, pure=False), about


def _held(raw: bytes) -> bytes:
    return raw


def width(executor: Executor | None) -> int:
    """How many tasks an executor works on at once, as far as it tells; 1 where it does not.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> width(ThreadPoolExecutor(3)), width(None)
    (3, 1)
    """
    client: Any = getattr(executor, "_client", None)  # of Dask, where it changes while workers come and go
    if client is not None:
        return max(sum(client.nthreads().values()), 1)
    known = getattr(executor, "num_workers", None) or getattr(executor, "_max_workers", None)
    return known if isinstance(known, int) and known > 0 else 1
