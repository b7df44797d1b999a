"""Chunks of solves: what one worker does, and the hands that do it: here, processes of our own, anybody's executor."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
)
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import CalledProcessError, SubprocessError
from traceback import extract_tb

import numpy as np
from threadpoolctl import threadpool_limits

from parasol.checks import unmasked
from parasol.errors import (
    FileError,
    InputError,
    NotInstalled,
    ParasolError,
    ParasolWarning,
    SolveFailed,
    WorkerDied,
    place_of,
)
from parasol.pde.model import Model
from parasol.pde.steady import Solution
from parasol.reduction.batched import Batched
from parasol.reduction.chunks import Chunk, StoredChunk
from parasol.reduction.store import add_chunk
from parasol.reduction.travel import SEEN_WITHIN, Sent, packed, sent, visible

_LONGEST = 1000  # characters of a reason
_QUOTED = 3  # warnings quoted in full
_LOOK = 20.0  # seconds between looks at whether a cluster has workers
_ALONE = 300.0  # seconds without one, after which none is expected
_DEATHS = 3  # of workers in a row, without a chunk between them, after which it is not by chance
# what somebody's solver may raise where the mathematics fails; anything else is a mistake in it and stops the run
# a ParasolError and a LinAlgError are ValueErrors; a program that is run fails by its exit status, or by its time
_FAILURES = (ValueError, ArithmeticError, RuntimeError, SubprocessError)
_MISTAKES = (NotImplementedError, RecursionError, InputError, FileError, NotInstalled)


Ready = Mapping[bytes, np.ndarray]  # unknowns that were solved beforehand, by the bytes of their parameters
_NOTHING: Ready = {}


@dataclass(frozen=True, eq=False)
class Task:
    """One chunk to be solved."""

    index: int
    mus: np.ndarray
    n_values: int | None
    extrapolate: bool
    folder: Path | None
    fingerprint: str
    size: int  # rows that a chunk of this store has room for
    there: Chunk | StoredChunk | None  # the first rows of this chunk, where a store is extended


@dataclass(frozen=True, eq=False)
class Done:
    """A chunk that is solved, the warnings on the way, and how many of its parameters were solved in a batch."""

    index: int
    part: Chunk | StoredChunk
    warnings: tuple[tuple[type[Warning], str], ...]
    n_batched: int = 0


def _run(solver, task: Task, tick: Callable[[int], None] = lambda rows: None, ready: Ready = _NOTHING) -> Done:
    """Solve a chunk and write it, with one BLAS thread: the bytes must not depend on how many hands there are."""
    # recording warnings is not safe in threads; there they take their usual way
    record = threading.current_thread() is threading.main_thread()
    with threadpool_limits(1):
        return _recorded(solver, task, tick, record, ready)


def _run_sent(raw: bytes, sent: Sent, task: Task) -> Done:
    """The same in a process of somebody's executor, which keeps the solver, and one BLAS thread, for its next chunk."""
    loaded = sent.load(raw)
    record = _recording.acquire(blocking=False)  # one thread at a time: a worker may have several
    try:
        return _recorded(loaded, task, lambda rows: None, record)
    finally:
        if record:
            _recording.release()


_recording = threading.Lock()


def _recorded(solver, task: Task, tick: Callable[[int], None], record: bool, ready: Ready = _NOTHING) -> Done:
    with warnings.catch_warnings(record=True) if record else contextlib.nullcontext() as said:
        chunk = _solve_rows(solver, task, tick, ready)
    part = chunk if task.folder is None else add_chunk(task.folder, task.index, task.fingerprint, chunk, task.size)
    n_batched = sum(mu.tobytes() in ready for mu in _new(task))
    return Done(task.index, part, tuple(dict.fromkeys((w.category, str(w.message)) for w in said or ())), n_batched)


def _solve_rows(solver, task: Task, tick: Callable[[int], None], ready: Ready) -> Chunk:
    n_values, solved, solutions, hidden, reasons = task.n_values, [], [], [], []
    if task.there is not None:
        there = task.there.load()
        solved, solutions, hidden = list(there.solved), list(there.solutions), list(there.hidden)
        reasons = list(there.reasons)
        n_values = there.n_values or n_values
    for mu in task.mus[len(solved) :]:
        unknowns = ready.get(mu.tobytes())
        if unknowns is None:
            values, ghosts, reason = solve_one(solver, mu, task.extrapolate)
        else:
            values, ghosts, reason = solver.layout.at_nodes(unknowns), solver.layout.at_ghosts(unknowns), ""
        if not reason and n_values is not None and len(values) != n_values:
            reason = f"the solution has {len(values)} values, others have {n_values}"
        elif not reason and not (np.all(np.isfinite(values)) and np.all(np.isfinite(ghosts))):
            reason = "the solution has values that are NaN or infinite"
        solved.append(not reason)
        if reason:
            reasons.append(reason)
        else:
            n_values = len(values)
            solutions.append(values)
            hidden.append(ghosts)
        tick(len(solved))
    shape = (len(solutions), n_values or 0) if solutions else (0, 0)
    n_hidden = len(hidden[0]) if hidden else 0
    visible = np.array(solutions, dtype=float).reshape(shape)
    ghosts = np.array(hidden, dtype=float).reshape(len(solutions), n_hidden)
    return Chunk(task.mus, np.array(solved, dtype=bool), visible, ghosts, tuple(reasons))


def solve_one(solver, mu: np.ndarray, extrapolate: bool) -> tuple[np.ndarray, np.ndarray, str]:
    """Values, hidden values and the reason for a failure, empty for success."""
    nothing = np.empty(0)
    ours = isinstance(solver, Model)
    options = {"extrapolate": extrapolate} if ours else {}
    try:
        solve: Callable = getattr(solver, "solve", solver)  # type: ignore[assignment]
        answer = solve(mu.copy(), **options)
    except _FAILURES as error:
        if isinstance(error, _MISTAKES) or (ours and not isinstance(error, SolveFailed)):
            raise
        return nothing, nothing, _reason(error)[:_LONGEST].encode("utf-8", "replace").decode()
    if isinstance(answer, Solution) and ours and answer.unknowns is not None:
        return solver.layout.at_nodes(answer.unknowns), solver.layout.at_ghosts(answer.unknowns), ""
    if not isinstance(answer, np.ndarray | Mapping):
        answer = getattr(answer, "flat", getattr(answer, "values", answer))
    try:
        values = np.asarray(unmasked(answer))
    except ValueError:  # rows of different lengths
        values = np.empty(0, dtype=object)
    if values.dtype.kind not in "biuf" or not values.size:
        raise InputError(
            f"the solver returned {type(answer).__name__} of {values.dtype} and shape {values.shape}, expected real numbers. "
            f"Return a NumPy array, or an object whose `values` is one."
        )
    return values.astype(float).reshape(-1), nothing, ""


def _reason(error: Exception) -> str:
    """Why a solve failed; of a program that was run, the last line it wrote to its standard error, if that was kept."""
    written = getattr(error, "stderr", None) if isinstance(error, SubprocessError) else None
    written = written.decode(errors="replace") if isinstance(written, bytes) else written
    lines = written.split("\n") if isinstance(written, str) else []
    said = next((line.strip() for line in reversed(lines) if line.strip()), "")
    if isinstance(error, CalledProcessError) and said:
        return f"the program ended with status {error.returncode}: {said}"
    steps = extract_tb(error.__traceback__)
    raised = bool(steps) and (steps[-1].line or "").startswith("raise")  # somebody chose these words: they suffice
    place = "" if raised else place_of(error)
    return (str(error) or type(error).__name__) + (f" ({type(error).__name__} in {place})" if place else "")


def work_off(
    solver, tasks, parts, executor, jobs: int, batches: Batched | None, progress: Callable[[int], None]
) -> int:
    """Run the tasks, put what comes back into `parts`; `progress` is called with the number of parameters done.

    Returns how many parameters were solved in batches.
    """
    rows = sum(len(part.mus) for part in parts.values())
    progress(rows)
    if not tasks:
        return 0
    folder, said, n_batched = tasks[0].folder, {}, 0
    kept = (
        f"Finished chunks are kept in {folder}; run again to resume."
        if folder
        else "Give a store to keep what is done."
    )
    if executor is not None:
        run = _hands(solver, executor, folder)
    else:
        serial = jobs == 1 or batches is not None
        run = _serial(solver, lambda n: progress(rows + n), batches) if serial else _pool(solver, jobs)
    waiting = list(tasks)
    try:
        while waiting:
            n_values = max([part.n_values for part in parts.values()], default=0) or waiting[0].n_values
            # while nobody knows how long solutions are, the first chunk that has one says it for all
            now, waiting = (waiting[:1], waiting[1:]) if n_values is None else (waiting, [])
            now = [replace(task, n_values=n_values) for task in now]
            with contextlib.closing(run(now)) as results:  # which ends the workers if something goes wrong here
                for done in results:
                    before = parts.get(done.index)
                    rows += len(done.part.mus) - (0 if before is None else len(before.mus))
                    parts[done.index] = done.part
                    said.update(dict.fromkeys(done.warnings))
                    n_batched += done.n_batched
                    progress(rows)
    except (BrokenExecutor, CancelledError) as error:
        guard = "" if sys.platform == "linux" else " A script needs `if __name__ == '__main__':` around its calls."
        why = str(error) or "the executor gave up its tasks"
        raise WorkerDied(f"a worker died ({why}): killed, or out of memory? {kept}{guard}") from error
    for category, text in list(said)[:_QUOTED]:
        warnings.warn(text, category, stacklevel=3)
    if len(said) > _QUOTED:
        warnings.warn(f"and {len(said) - _QUOTED} more warnings while solving.", ParasolWarning, stacklevel=3)
    return n_batched


def _serial(solver, tick, batches: Batched | None):
    """Here, one after the other; with `batches`, as many chunks as make a batch are solved at once before."""

    def run(tasks: list[Task]) -> Generator[Done]:
        tried: set[int] = set()
        ready = _NOTHING
        for k, task in enumerate(tasks):
            first = 0 if task.there is None else len(task.there.mus)
            if batches is not None and task.index not in tried:
                some = _next_batch(tasks[k:], batches.rows)
                tried.update(one.index for one in some)
                ready = batches.solve(np.concatenate([_new(one) for one in some]))
            yield _run(solver, task, lambda n: tick(n - first), ready)  # noqa: B023

    return run


def _new(task: Task) -> np.ndarray:
    """The parameters of a chunk that are still to be solved."""
    return task.mus[0 if task.there is None else len(task.there.mus) :]


def _next_batch(tasks: list[Task], rows: int) -> list[Task]:
    """The first tasks, as many as make a batch, at least one."""
    ends = np.cumsum([len(_new(task)) for task in tasks])
    return tasks[: max(int(np.searchsorted(ends, rows, side="right")), 1)]


def _hands(solver, executor: Executor, folder: Path | None):
    """Somebody's executor; where there is a store its processes keep the solver from task to task."""
    if folder is None or isinstance(executor, ThreadPoolExecutor):
        return _submitting(executor, _run, solver)
    return _submitting(executor, _run_sent, *sent(solver, executor, folder))


def _submitting(executor: Executor, function, *given):
    """Runs function(*given, task) for each task."""

    def run(tasks: list[Task]) -> Generator[Done]:
        futures = {executor.submit(function, *given, task) for task in tasks}
        try:
            for future in _ended(futures.copy(), executor):
                done = _result(future)
                if function is _run_sent:
                    _check_seen(done)
                futures.remove(future)  # with what it holds
                yield done
        except (BrokenExecutor, CancelledError, ParasolError):
            raise
        except Exception:
            if function is _run and not isinstance(executor, ThreadPoolExecutor):
                packed(given[0], plainly=True)  # says why where it cannot travel
            raise
        finally:
            for future in futures:
                future.cancel()

    return run


def _ended(futures: set[Future], executor: Executor) -> Generator[Future]:
    """Futures as they end; broken where Dask's workers are gone and none has come for long: it would wait for ever."""
    client, left_alone = getattr(executor, "_client", None), 0.0
    while futures:
        try:
            for future in as_completed(futures.copy(), timeout=None if client is None else _LOOK):
                futures.discard(future)
                yield future
        except TimeoutError:
            left_alone = 0.0 if client.nthreads() else left_alone + _LOOK  # type: ignore[union-attr]
            if left_alone >= _ALONE:
                raise BrokenExecutor(f"no worker is left, and none came within {_ALONE:g} s") from None


def _result(future) -> Done:
    """What a task returned; Dask's word for a task during which worker after worker has died is ours too."""
    try:
        return future.result()
    except Exception as error:
        if type(error).__name__ == "KilledWorker":
            raise BrokenExecutor(f"{error.args[0]} was given up after several deaths") from error
        raise


def _check_seen(done: Done) -> None:
    """What a worker wrote has to be here too, or the two look at different disks."""
    path = getattr(done.part, "path", None)
    if path is not None and not visible(path):
        raise FileError(
            f"a worker wrote {path}, but it is not here after {SEEN_WITHIN:g} s. Put the store on a file system that all share."
        )


_inherited = None  # the solver, in worker processes of our own


def _begin(solver) -> None:
    """Set up a worker process: it knows the solver, leaves Ctrl-C to its parent and does not outlive it."""
    global _inherited
    _inherited = solver
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def follow() -> None:
            multiprocessing.connection.wait([parent.sentinel])
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()


def _run_inherited(task: Task) -> Done:
    return _run(_inherited, task)


def _pool(solver, jobs: int):
    """Processes of our own: forked where that is safe, so that the solver need not travel; dead ones are replaced."""
    # JAX has threads that do not survive a fork
    method = "fork" if sys.platform == "linux" and "jax" not in sys.modules else "spawn"
    if method == "spawn":
        packed(solver, plainly=True)
    context = multiprocessing.get_context(method)

    def run(tasks: list[Task]) -> Generator[Done]:
        left, deaths = {task.index: task for task in tasks}, 0
        while left:
            pool = ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(solver,))
            try:
                for done in _submitting(pool, _run_inherited)(list(left.values())):
                    del left[done.index]
                    deaths = 0
                    yield done
            except BrokenExecutor:
                deaths += 1
                if deaths == _DEATHS:
                    raise
            except BaseException:
                # chunks in flight are given up: files appear when complete, so nothing is torn
                for process in list((getattr(pool, "_processes", None) or {}).values()):
                    process.terminate()
                raise
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    return run
