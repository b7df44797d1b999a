"""POD of a store by many processes: each decomposes some chunks, pairs are joined until one is left.

A part is decomposed as S₁ᵀ ≈ U₁ diag(s₁) W₁ᵀ, and of it only U₁ diag(s₁) is kept, in a file of the store. Two of these side by
side have the singular values and left singular vectors of both parts together (Himpe, Leibner and Rave 2018). What a
truncation drops is orthogonal, as combinations of snapshots, to what others drop, so that errors add up in squares. Parts
and pairs follow from the store alone: the result is the same to the last bit with any number of processes.
"""

from __future__ import annotations

import shutil
import tempfile
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.lib import format as numpy_format
from threadpoolctl import threadpool_limits

from parasol.cache.disk import publish
from parasol.errors import FileError, WorkerDied, WriteFailed
from parasol.reduction.factorizations import Budget, Factored, incremental
from parasol.reduction.snapshots import Snapshots
from parasol.reduction.sources import Source, Tally
from parasol.reduction.travel import SEEN_WITHIN, visible
from parasol.runtime.products import Weights

_PART = 2**25  # numbers of a part: 256 MB, of which a block is in memory at a time
_EARLY = 0.5  # of what may be lost, the share that parts may lose before they are joined


@dataclass(frozen=True)
class Part:
    """A decomposition in a file: the rows diag(s) Uᵀ, (rank, n_values), of `n` snapshots with so much energy."""

    path: Path
    n: int
    energy: float
    lost: float


def decompose(
    snapshots: Snapshots, weights: Weights | None, root: np.ndarray | None, budget: Budget, executor: Executor
) -> tuple[Factored, int, float]:
    """The decomposition, the number of snapshots and their energy. The executor's processes alone read snapshots."""
    store = snapshots.store
    assert store is not None
    try:
        folder = Path(tempfile.mkdtemp(prefix=".pod-", dir=store))
    except OSError as error:
        raise WriteFailed(
            f"cannot write in {str(store)!r}: {error.strerror}. Leave executor out: then nothing is written."
        ) from error
    try:
        early = replace(budget, fraction=_EARLY * budget.fraction)
        groups = snapshots.split(_PART)
        given = [(folder / f"0-{k}.npy", some, weights, root, early) for k, some in enumerate(groups)]
        parts = _all([executor.submit(_of_chunks, *each) for each in given], store)
        level = 0
        while len(parts) > 1:
            level += 1
            pairs = [
                (folder / f"{level}-{k}.npy", parts[2 * k : 2 * k + 2], budget) for k in range(-(-len(parts) // 2))
            ]
            parts = _all([executor.submit(_joined, *pair) for pair in pairs], store)
        rows = np.load(parts[0].path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    s = np.linalg.norm(rows, axis=1)
    factored = Factored(s, parts[0].lost, lambda d: np.ascontiguousarray((rows[:d] / s[:d, None]).T))
    return factored, parts[0].n, parts[0].energy


def _of_chunks(path: Path, snapshots: Snapshots, weights: Weights | None, root, budget: Budget) -> Part:
    """Decompose some chunks of a store."""
    tally = Tally(weights)
    with threadpool_limits(1):  # the bytes must not depend on who computes them
        factored = incremental(map(tally.count, Source(snapshots, read=False).blocks()), root, budget)
        return _written(path, factored, tally.n, tally.energy)


def _joined(path: Path, parts: list[Part], budget: Budget) -> Part:
    """One decomposition of those of two parts."""
    if len(parts) == 1:
        return parts[0]
    energy, lost = sum(part.energy for part in parts), sum(part.lost for part in parts)
    with threadpool_limits(1):
        factored = incremental((np.load(part.path) for part in parts), None, budget, lost)
        return _written(path, factored, sum(part.n for part in parts), energy)


def _written(path: Path, factored: Factored, n: int, energy: float) -> Part:
    s = factored.singular_values
    rows = np.ascontiguousarray(factored.vectors(len(s)).T * s[:, None])

    def fill(temporary: Path) -> None:
        with temporary.open("wb") as file:
            numpy_format.write_array_header_1_0(file, numpy_format.header_data_from_array_1_0(rows))
            file.write(rows.data)  # `save` would not say why it cannot

    publish(path, fill, advice="The snapshots are as they were.")
    return Part(path, n, energy, factored.lost_energy)


def _all(futures: list[Future], store: Path) -> list[Part]:
    """What the tasks return, in their order; they end where one of them fails."""
    try:
        parts = [future.result() for future in futures]
    except Exception as error:
        for future in [one for one in futures if not one.cancel()]:
            future.exception()  # waits: those at work would write into a folder that is being removed
        if isinstance(error, BrokenExecutor | CancelledError) or type(error).__name__ == "KilledWorker":
            raise WorkerDied(
                f"a worker died ({error or 'the executor gave up its tasks'}): killed, or out of memory? The snapshots are kept; run again."
            ) from error
        raise
    finally:
        for future in futures:
            future.cancel()
    for part in parts:
        if not visible(part.path):
            raise FileError(
                f"a worker wrote {part.path}, but it is not here after {SEEN_WITHIN:g} s. Put {store} on a file system that all share."
            )
    return parts
