"""Answers to any number of parameters, computed by all cores straight into a `.npy` file, in the memory of some blocks."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from parasol.cache.disk import check_output, replacing
from parasol.checks import Progress, check_count, check_progress
from parasol.errors import WriteFailed
from parasol.runtime.basis import slices
from parasol.runtime.plain import Plain
from parasol.runtime.surrogate import Surrogate

_BLOCK = 2**20  # numbers of a block, 8 MB: large for the disk, small beside the memory
_MOST_ROWS = 2**14


@dataclass(frozen=True)
class Written:
    """Answers in a file: how many, how long they are, how many lie outside the ranges, and the time it took."""

    path: Path
    n_samples: int
    n_values: int
    n_extrapolated: int
    n_bytes: int
    seconds: float

    def to_dict(self) -> Plain:
        """As plain values."""
        rate = self.n_bytes / max(self.seconds, 1e-9)
        whole = {"n_samples": self.n_samples, "n_values": self.n_values, "extrapolated": self.n_extrapolated}
        return whole | {
            "bytes": self.n_bytes,
            "seconds": self.seconds,
            "bytes_per_second": rate,
            "files": [str(self.path)],
        }

    def rows(self) -> dict[str, str]:
        """In words."""
        rate = 1e-6 * self.n_bytes / max(self.seconds, 1e-9)
        rows = {"answers": f"{self.n_samples}, of {self.n_values} values each"}
        if self.n_extrapolated:
            rows["outside the ranges"] = f"{self.n_extrapolated}: nothing is promised of these"
        rows["time"] = f"{self.seconds:.2g} s, {1e6 * self.seconds / max(self.n_samples, 1):.2g} µs an answer"
        rows["file"] = f"{1e-6 * self.n_bytes:.4g} MB, {rate:.0f} MB/s"
        return rows


def write_answers(
    surrogate: Surrogate,
    mus: ArrayLike,
    path: str | os.PathLike[str],
    *,
    dtype: type = np.float64,
    extrapolate: bool = False,
    jobs: int | None = None,
    progress: Progress = None,
) -> Written:
    """Write the answers to parameters (n_samples, n_parameters) to a `.npy` file (n_samples, n_values), block by block.

    The numbers are those of `surrogate(mus).values` up to rounding, but neither they nor a memory-mapped `mus` need fit in
    memory: `ps.write_answers(surrogate, np.load("mus.npy", mmap_mode="r"), "u.npy")`. `jobs` threads compute, as many as there
    are cores unless told otherwise. All parameters are checked, and the space on the disk, before the first is answered; the
    file appears when it is complete.

    >>> import tempfile, parasol as ps
    >>> mus = np.linspace(1, 2, 9)[:, None]
    >>> line = ps.fit_snapshots(mus, mus * [1.0, 2.0, 3.0], "polynomial")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = write_answers(line, [[1.25], [1.5]], f"{folder}/u.npy")
    ...     np.load(written.path).round(6), written.n_extrapolated
    (array([[1.25, 2.5 , 3.75],
           [1.5 , 3.  , 4.5 ]]), 0)
    """
    check_progress(progress)
    start, kind = time.perf_counter(), np.dtype(dtype)
    path = check_output(Path(path), (".npy",))
    n_threads = _n_cores() if jobs is None else check_count(jobs, "jobs")
    mus = surrogate.parameters.ordered(mus)
    mus = mus if isinstance(mus, np.ndarray) and mus.ndim == 2 else surrogate.check(mus, extrapolate=extrapolate)
    n, n_values = len(mus), surrogate.n_values
    n_outside = sum(surrogate.n_outside(mus[rows], extrapolate=extrapolate) for rows in slices(n, _MOST_ROWS))

    buffers = threading.local()  # fresh memory for every block would cost as much as what is computed into it

    def answered(rows: slice) -> np.ndarray:
        answer = surrogate(mus[rows], dtype=dtype, extrapolate=extrapolate)
        if not hasattr(buffers, "block"):
            buffers.block = np.empty((_length(n_values), n_values), dtype=kind)
        return answer.lift(buffers.block[: len(answer.mus)])

    _check_room(path, n * n_values * kind.itemsize)
    with replacing(path) as temporary:
        n_bytes = write_rows(temporary, answered, (n, n_values), kind, n_threads, progress)
    return Written(path, n, n_values, n_outside, n_bytes, time.perf_counter() - start)


def write_rows(
    path: Path,
    block: Callable[[slice], np.ndarray],
    shape: tuple[int, int],
    kind: np.dtype,
    n_threads: int,
    progress: Progress = None,
) -> int:
    """Write a `.npy` of this shape from blocks of rows, each computed and written by one of the threads; its size in bytes."""
    n, n_values = shape
    with open(path, "wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_2_0(file, header)
        first, row = file.tell(), kind.itemsize * n_values
        file.truncate(first + n * row)

        def write(rows: slice) -> int:
            raw = np.ascontiguousarray(block(rows), dtype=kind).data.cast("B")
            place = first + rows.start * row
            while raw.nbytes:  # the system may take less than all
                taken = os.pwrite(file.fileno(), raw, place)
                raw, place = raw[taken:], place + taken
            return rows.stop - rows.start

        with threadpool_limits(1), ThreadPoolExecutor(n_threads) as pool:
            done = 0
            for count in _in_any_order(pool, write, slices(n, _length(n_values)), 2 * n_threads):
                done += count
                if progress is not None:
                    progress(done / n)
    return first + n * row


def _in_any_order(
    pool: ThreadPoolExecutor, work: Callable[[slice], int], pieces: Iterator[slice], most: int
) -> Iterator[int]:
    """What the work returns for each piece, at most so many of them under way; the first error ends it."""
    under_way: set[Future[int]] = set()
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: [future.cancel() for future in under_way])
        for piece in pieces:
            under_way.add(pool.submit(work, piece))
            if len(under_way) >= most:
                done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        while under_way:
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)


def _length(n_values: int) -> int:
    """Rows of a block."""
    return int(np.clip(_BLOCK // max(n_values, 1), 1, _MOST_ROWS))


def _n_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _check_room(path: Path, n_bytes: int) -> None:
    free = shutil.disk_usage(path.parent).free
    if n_bytes > free:
        raise WriteFailed(
            f"cannot write {str(path)!r}: it takes {1e-9 * n_bytes:.3g} GB, and {1e-9 * free:.3g} GB are free. "
            "Choose another place, or ask for fewer parameters or values."
        )
