"""A Dask cluster by its address: one that runs already, or processes of this machine."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from parasol.errors import InputError, NotInstalled
from parasol.reduction.travel import check_environment, environment

LOCAL = "local"
_REACHED_WITHIN = 10.0  # seconds for a scheduler to answer
_WORKERS_WITHIN = 120.0  # seconds for the first worker to come
_FORMS = "Give tcp://host:8786, a scheduler file such as scheduler.json, or local"


@contextmanager
def cluster(address: str, *, jobs: int | None = None) -> Iterator[Executor]:
    """An executor on a Dask cluster: `tcp://host:8786`, the path of a scheduler file, or "local" for `jobs` processes here.

    Everything that can be known to be wrong is said before the work starts: no scheduler, no workers, versions that differ.
    """
    check_address(address)
    distributed: Any = _distributed()
    import dask.config

    with ExitStack() as stack:
        # quiet: what a worker that dies has to say is for logs, and our own words follow
        # patient: on a busy machine a worker takes long to start, and Dask does not replace one that was late; nor one
        # that is away, because it died again, 15 s after an earlier death
        patience = {"distributed.comm.timeouts.connect": "120s", "distributed.deploy.lost-worker-timeout": "365d"}
        stack.enter_context(dask.config.set({"distributed.scheduler.allowed-failures": 10, **patience}))
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        if address == LOCAL:
            client = stack.enter_context(_local(distributed, stack, jobs))
        else:
            client = stack.enter_context(_connected(distributed, address))
        _check_workers(client, address)
        yield client.get_executor(pure=False)


def check_address(address: str) -> None:
    """Refuse what cannot be the address of a cluster.

    >>> check_address("node7")
    Traceback (most recent call last):
    parasol.errors.InputError: cluster 'node7' is not an address. Give tcp://host:8786, a scheduler file such as scheduler.json, or local.
    """
    if address != LOCAL and "://" not in address and not address.endswith(".json"):
        raise InputError(f"cluster {address!r} is not an address. {_FORMS}.")
    if address.endswith(".json") and not Path(address).expanduser().is_file():
        raise InputError(
            f"there is no scheduler file {address!r}. `dask scheduler --scheduler-file {address}` writes it."
        )


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise NotInstalled("a cluster needs Dask. Install it with: pip install 'parasol-pde[cluster]'.") from None
    return distributed


def _local(distributed: Any, stack: ExitStack, jobs: int | None) -> Any:
    n = jobs or len(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1))
    options = {
        "n_workers": n,
        "threads_per_worker": 1,
        "dashboard_address": "127.0.0.1:0",
        "silence_logs": logging.CRITICAL,
    }
    return distributed.Client(stack.enter_context(distributed.LocalCluster(**options)))


def _connected(distributed: Any, address: str) -> Any:
    where = {"scheduler_file": address} if address.endswith(".json") else {"address": address}
    try:
        return distributed.Client(**where, timeout=_REACHED_WITHIN, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        why = str(error).splitlines()[0] if str(error) else "no answer"
        raise InputError(
            f"no Dask scheduler answers at {address} ({why}). Start one with `dask scheduler`, or correct the address."
        ) from None


def _check_workers(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=_WORKERS_WITHIN)
    except TimeoutError:
        raise InputError(
            f"the scheduler at {address} has no workers. Start some: `dask worker {address} --nthreads 1`."
        ) from None
    try:
        versions = client.run(environment)
    except Exception as error:  # whatever an environment without this parasol raises
        why = " ".join(str(error).split())
        raise InputError(
            f"the workers at {address} cannot run this parasol: {why}. Install the same one in their environment."
        ) from None
    here = environment()
    for worker, there in versions.items():
        check_environment(here, there, f"the worker {worker}")
