"""Many solves: in this process, in several, or on any executor; kept in memory, or on disk so that a killed run resumes."""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cached_property
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from parasol.checks import ParasolError, ParasolWarning, check_count, check_finite, check_shape
from parasol.pde.evolution import Evolution
from parasol.pde.model import Model
from parasol.pde.steady import Solution
from parasol.reduction.store import (
    Chunk,
    Manifest,
    StoredChunk,
    claim,
    digest,
    fingerprint,
    no_addresses,
    prepare,
    read_manifest,
    stored_chunks,
    write_chunk,
)

_CHUNK_BYTES = 8e6  # large enough for disks, small enough to lose
_MOST_ROWS = 64
_N_CHUNKS = 32  # at least, where there are as many parameters: work for many hands, little lost by a kill
_UNKNOWN_ROWS = 16  # where the length of a solution is not known beforehand
_LONGEST = 1000  # characters of a reason
_QUOTED = 3  # reasons and warnings quoted in full
# what a solver may raise where the mathematics fails; anything else is a mistake in the solver and stops the run
_FAILURES = (ParasolError, ArithmeticError, np.linalg.LinAlgError, RuntimeError)
_MISTAKES = (NotImplementedError, RecursionError)


# ---- what comes out -------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Failure:
    """A parameter that could not be solved: its place among those asked for, and why."""

    index: int
    mu: np.ndarray
    reason: str


@dataclass(frozen=True, eq=False)
class Snapshots:
    """Solutions at many parameters, in memory or in a store; what could not be solved is in `failures`.

    >>> snapshots = as_snapshots([[1.0], [2.0]], [[3.0, 4.0], [6.0, 8.0]])
    >>> snapshots.solutions.shape, next(snapshots.blocks())[0]
    ((2, 2), array([3., 4.]))
    """

    mus: np.ndarray  # (n_samples, n_parameters), those that were solved
    failures: tuple[Failure, ...]
    fingerprint: str
    parts: tuple[Chunk | StoredChunk, ...]
    n_pending: int = 0  # not computed yet, in the store of a run that was stopped
    store: Path | None = None

    def __len__(self) -> int:
        return len(self.mus)

    def __repr__(self) -> str:
        notes = f", {len(self.failures)} failed" if self.failures else ""
        notes += f", {self.n_pending} still to be solved" if self.n_pending else ""
        return f"<Snapshots{f' in {self.store}' if self.store else ''}: {len(self)} of {self.n_values} values{notes}>"

    @property
    def n_values(self) -> int:
        """Length of one solution."""
        return max([_length(part) for part in self.parts], default=0)

    @property
    def solutions(self) -> np.ndarray:
        """(n_samples, n_values): values at the nodes, at all stored times for problems in time."""
        return self._arrays[0]

    @property
    def hidden(self) -> np.ndarray:
        """(n_samples, n_hidden): values at ghosts of steady models that have them."""
        return self._arrays[1]

    @cached_property
    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        merged = _merged(list(self.parts))
        return merged.solutions, merged.hidden

    def blocks(self) -> Iterator[np.ndarray]:
        """The solutions, some rows at a time; of a store no more than one chunk is in memory."""
        for part in self.parts:
            solutions = _loaded(part).solutions
            rows = len(solutions) if isinstance(part, StoredChunk) else _rows_of(solutions.shape[1])
            for start in range(0, len(solutions), max(rows, 1)):
                yield solutions[start : start + rows]


def as_snapshots(mus, solutions, *, hidden=None) -> Snapshots:
    """Solutions (n_samples, n_values) that came from elsewhere, at parameters (n_samples, n_parameters)."""
    mus = check_finite(check_shape(mus, (None, None), "mus"), "mus")
    solutions = check_finite(check_shape(solutions, (len(mus), None), "solutions"), "solutions")
    hidden = np.empty((len(mus), 0)) if hidden is None else check_shape(hidden, (len(mus), None), "hidden")
    chunk = Chunk(mus, np.ones(len(mus), dtype=bool), solutions, hidden, ())
    return Snapshots(mus, (), hashlib.sha256((digest(mus) + digest(solutions)).encode()).hexdigest(), (chunk,))


def open_snapshots(path) -> Snapshots:
    """Read a store without its solver, complete or not: `n_pending` says how many parameters are still to be solved.

    Everything is verified; a store that is damaged, of a newer version, or not a store is refused with the reason.
    """
    path = Path(path).expanduser().absolute()
    manifest = read_manifest(path)
    return _snapshots(dict(stored_chunks(path, manifest)), manifest, path)


def split_unknowns(model: Model, unknowns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unknowns (..., n_unknowns) as values at nodes (..., n_fields * n_nodes) and at ghosts, field by field."""
    n_fields = len(model.problem.names)
    shaped = unknowns.reshape(*unknowns.shape[:-1], n_fields, -1)
    hidden = shaped[..., model.n_nodes :]
    return model.at_nodes(unknowns), hidden.reshape(*unknowns.shape[:-1], -1)


def join_unknowns(model: Model, values: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """The inverse of `split_unknowns`."""
    n_fields = len(model.problem.names)
    parts = [part.reshape(*part.shape[:-1], n_fields, -1) for part in (values, hidden)]
    return np.concatenate(parts, axis=-1).reshape(*values.shape[:-1], -1)


# ---- the verb -------------------------------------------------------------------------------------------------------
def solve_many(
    solver,
    mus,
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    store=None,
    chunk_size: int | None = None,
    progress: Callable[[float], None] | None = None,
    extrapolate: bool = False,
) -> Snapshots:
    """Solve at all parameters (n_samples, n_parameters), a chunk of `chunk_size` of them at a time.

    `solver` is a model, anything with `solve(mu)` that returns an array or has `values`, or a function of mu. The work is
    done here, by `jobs` processes, or by any executor of `concurrent.futures`: the numbers are the same to the last bit.
    With a `store` (a folder) every finished chunk is on disk at once, and a run that was stopped, however, goes on where
    it was when called again; more parameters may follow those it began with. A parameter at which the solver fails is
    recorded with the reason, and warned of, unless all fail. `progress` is called with the fraction that is done.

    >>> snapshots = solve_many(lambda mu: mu[0] * np.arange(3), [[1.0], [2.0]])
    >>> snapshots.solutions
    array([[0., 1., 2.],
           [0., 2., 4.]])
    """
    mus = _checked(solver, mus, extrapolate)
    if jobs is not None and executor is not None:
        raise ParasolError("both executor and jobs are given. Give one: jobs=4 for four processes here.")
    jobs = 1 if jobs is None else check_count(jobs, "jobs")
    n_values = _expected_length(solver)
    size = default_chunk_size(len(mus), n_values) if chunk_size is None else check_count(chunk_size, "chunk_size")
    names = tuple(getattr(getattr(solver, "parameters", None), "names", ()))
    manifest = Manifest(fingerprint(solver), _in_words(solver), names, len(mus), mus.shape[1], size, digest(mus))
    parts: dict[int, Chunk | StoredChunk] = {}
    with contextlib.ExitStack() as stack:
        folder = None if store is None else Path(store).expanduser().absolute()  # workers may stand elsewhere
        if folder is not None:
            stack.enter_context(claim(folder))
            manifest, found = prepare(folder, manifest, mus)
            parts.update(found)
        tasks = []
        for index in range(manifest.n_chunks):
            rows = mus[index * manifest.chunk_size : (index + 1) * manifest.chunk_size]
            there = parts.get(index)
            if there is None or len(there.mus) < len(rows):
                tasks.append(_Task(index, rows, n_values, extrapolate, folder, manifest.fingerprint, there))
        _work_off(solver, tasks, parts, executor, min(jobs, max(len(tasks), 1)), _Progress(progress, len(mus)), stack)
    snapshots = _snapshots(parts, manifest, folder)
    _report(snapshots, names)
    return snapshots


def default_chunk_size(n_samples: int, n_values: int | None) -> int:
    """Parameters per chunk: about 8 MB, at most 64, and few enough that there are 32 chunks.

    >>> default_chunk_size(2000, 1036), default_chunk_size(1024, 328149), default_chunk_size(100, 1036)
    (63, 3, 4)
    """
    rows = _UNKNOWN_ROWS if n_values is None else _rows_of(n_values)
    return min(rows, -(-n_samples // _N_CHUNKS))


def _rows_of(n_values: int) -> int:
    return int(np.clip(_CHUNK_BYTES // (8 * max(n_values, 1)), 1, _MOST_ROWS))


def _checked(solver, mus, extrapolate: bool) -> np.ndarray:
    if not callable(getattr(solver, "solve", solver)):
        raise ParasolError(f"solver is {solver!r}. Pass a model, an object with solve(mu), or a function of mu.")
    mus = np.ascontiguousarray(check_finite(check_shape(mus, (None, None), "mus"), "mus"))
    if not len(mus):
        raise ParasolError("mus is empty: there is nothing to solve. Give at least one parameter vector.")
    if isinstance(solver, Model):
        return solver.check(mus, extrapolate=extrapolate)
    space = getattr(solver, "parameters", None)
    if callable(getattr(space, "check", None)):
        space.check(mus, extrapolate=extrapolate)  # type: ignore[union-attr]
    return mus


def _expected_length(solver) -> int | None:
    """Values in a solution where that is known before solving."""
    if not isinstance(solver, Model):
        known = getattr(solver, "n_values", None)
        return None if known is None else check_count(known, "n_values of the solver")
    n_values = len(solver.problem.names) * solver.n_nodes
    if solver.problem.time is None:
        return n_values
    return None if solver.problem.times is None else n_values * len(solver.problem.times)


def _in_words(solver) -> str:
    text = repr(solver) if isinstance(solver, Model) else getattr(solver, "__qualname__", type(solver).__qualname__)
    return no_addresses(text)


# ---- one chunk ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class _Task:
    index: int
    mus: np.ndarray
    n_values: int | None
    extrapolate: bool
    folder: Path | None
    fingerprint: str
    there: Chunk | StoredChunk | None  # the first rows of this chunk, where a store is extended


@dataclass(frozen=True, eq=False)
class _Done:
    index: int
    part: Chunk | StoredChunk
    warnings: tuple[tuple[type[Warning], str], ...]


def _run(solver, task: _Task, tick: Callable[[int], None] = lambda rows: None) -> _Done:
    """Solve a chunk and write it, with one BLAS thread: the bytes must not depend on how many hands there are."""
    # recording warnings is not safe in threads; there they take their usual way
    record = threading.current_thread() is threading.main_thread()
    with _one_blas_thread(), warnings.catch_warnings(record=True) if record else contextlib.nullcontext() as said:
        chunk = _solve_rows(solver, task, tick)
    part = chunk if task.folder is None else write_chunk(task.folder, task.index, task.fingerprint, chunk)
    return _Done(task.index, part, tuple(dict.fromkeys((w.category, str(w.message)) for w in said or ())))


_blas = threading.Lock()
_limits: list[threadpool_limits] = []  # one entry for each chunk that is being solved in this process


@contextlib.contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Like `threadpool_limits(1)`, but threads that begin and end in any order restore what was there before."""
    with _blas:
        _limits.append(_limits[0] if _limits else threadpool_limits(1))
    try:
        yield
    finally:
        with _blas:
            limit = _limits.pop()
            if not _limits:
                limit.restore_original_limits()


def _solve_rows(solver, task: _Task, tick: Callable[[int], None]) -> Chunk:
    n_values, solved, solutions, hidden, reasons = task.n_values, [], [], [], []
    if task.there is not None:
        there = _loaded(task.there)
        solved, solutions, hidden = list(there.solved), list(there.solutions), list(there.hidden)
        reasons = list(there.reasons)
        n_values = _length(there) or n_values
    for mu in task.mus[len(solved) :]:
        values, ghosts, reason = _solve_one(solver, mu, task.extrapolate)
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


def _solve_one(solver, mu: np.ndarray, extrapolate: bool) -> tuple[np.ndarray, np.ndarray, str]:
    """Values, hidden values and the reason for a failure, empty for success."""
    nothing = np.empty(0)
    options = {"extrapolate": extrapolate} if isinstance(solver, Model) else {}
    try:
        solve: Callable = getattr(solver, "solve", solver)  # type: ignore[assignment]
        found = solve(mu.copy(), **options)
    except _FAILURES as error:
        if isinstance(error, _MISTAKES):
            raise
        text = str(error) or type(error).__name__
        return nothing, nothing, text[:_LONGEST].encode("utf-8", "replace").decode()
    if isinstance(found, Solution) and isinstance(solver, Model) and getattr(found, "unknowns", None) is not None:
        return *split_unknowns(solver, np.asarray(found.unknowns)), ""  # type: ignore[attr-defined]
    if not isinstance(found, np.ndarray):
        found = found.flat if isinstance(found, Evolution) else getattr(found, "flat", getattr(found, "values", found))
    values = np.asarray(found)
    if values.dtype.kind not in "biuf" or not values.size:
        raise ParasolError(
            f"the solver returned {type(found).__name__} of {values.dtype} and shape {values.shape}, expected real numbers. "
            f"Return a NumPy array, or an object whose `values` is one."
        )
    return values.astype(float).reshape(-1), nothing, ""


# ---- many chunks ----------------------------------------------------------------------------------------------------
class _Progress:
    """The fraction done, told when it grows."""

    def __init__(self, tell: Callable[[float], None] | None, n_samples: int):
        self.tell, self.n_samples = tell, n_samples

    def __call__(self, n_done: int) -> None:
        if self.tell is not None:
            self.tell(n_done / self.n_samples)


def _work_off(solver, tasks, parts, executor, jobs: int, progress: _Progress, stack: contextlib.ExitStack) -> None:
    """Run the tasks, put what comes back into `parts`."""
    rows = sum(len(part.mus) for part in parts.values())
    progress(rows)
    if not tasks:
        return
    folder, said = tasks[0].folder, {}
    kept = (
        f"Finished chunks are kept in {folder}; run again to resume."
        if folder
        else "Give a store to keep what is done."
    )
    run = _serial(solver, lambda n: progress(rows + n)) if executor is None and jobs == 1 else None
    if run is None:
        run = _submitting(solver, executor) if executor else stack.enter_context(_pool(solver, jobs))
    waiting = list(tasks)
    try:
        while waiting:
            n_values = max([_length(part) for part in parts.values()], default=0) or waiting[0].n_values
            # while nobody knows how long solutions are, the first chunk that has one says it for all
            now, waiting = (waiting[:1], waiting[1:]) if n_values is None else (waiting, [])
            now = [replace(task, n_values=n_values) for task in now]
            for done in run(now):
                before = parts.get(done.index)
                rows += len(done.part.mus) - (0 if before is None else len(before.mus))
                parts[done.index] = done.part
                said.update(dict.fromkeys(done.warnings))
                progress(rows)
    except BrokenExecutor as error:
        guard = "" if sys.platform == "linux" else " A script needs `if __name__ == '__main__':` around its calls."
        raise ParasolError(f"a worker died ({error}): killed, or out of memory? {kept}{guard}") from error
    for category, text in list(said)[:_QUOTED]:
        warnings.warn(text, category, stacklevel=3)
    if len(said) > _QUOTED:
        warnings.warn(f"and {len(said) - _QUOTED} more warnings while solving.", ParasolWarning, stacklevel=3)


def _serial(solver, tick):
    def run(tasks: list[_Task]) -> Iterator[_Done]:
        for task in tasks:
            first = 0 if task.there is None else len(task.there.mus)
            yield _run(solver, task, lambda n: tick(n - first))  # noqa: B023

    return run


def _submitting(solver, executor: Executor, function=_run):
    def run(tasks: list[_Task]) -> Iterator[_Done]:
        futures = [executor.submit(function, solver, task) for task in tasks]
        try:
            for future in as_completed(futures):
                yield future.result()
                futures.remove(future)  # with what it holds
        except (BrokenExecutor, ParasolError):
            raise
        except Exception as error:
            if function is _run and not isinstance(executor, ThreadPoolExecutor):
                _check_travels(solver, error)
            raise
        finally:
            for future in futures:
                future.cancel()

    return run


def _check_travels(solver, error: Exception) -> None:
    try:
        ForkingPickler.dumps(solver)
    except Exception as why:
        raise ParasolError(
            f"the solver cannot be sent to the executor's processes: {why}. Use jobs=n for processes of our own, which "
            f"need not send it on Linux, or define it at the top level of a module."
        ) from error


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


def _run_inherited(_, task: _Task) -> _Done:
    return _run(_inherited, task)


@contextlib.contextmanager
def _pool(solver, jobs: int):
    """Processes of our own: forked where that is safe, so that the solver need not travel."""
    # JAX has threads that do not survive a fork
    method = "fork" if sys.platform == "linux" and "jax" not in sys.modules else "spawn"
    if method == "spawn":
        _check_travels(solver, None)  # type: ignore[arg-type]
    context = multiprocessing.get_context(method)
    pool = ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(solver,))
    try:
        yield _submitting(None, pool, _run_inherited)
    except BaseException:
        # chunks in flight are given up: files appear when complete, so nothing is torn
        for process in list((getattr(pool, "_processes", None) or {}).values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


# ---- putting together -----------------------------------------------------------------------------------------------
def _loaded(part: Chunk | StoredChunk) -> Chunk:
    return part.load() if isinstance(part, StoredChunk) else part


def _length(part: Chunk | StoredChunk) -> int:
    """Values in a solution of this part, 0 where it has none."""
    return part.n_values if isinstance(part, StoredChunk) else part.solutions.shape[1]


def _merged(parts: list[Chunk | StoredChunk]) -> Chunk:
    """All parts as one, each let go (by this list) once it is copied."""
    if len(parts) == 1:
        return _loaded(parts[0])
    mus = np.concatenate([part.mus for part in parts])
    solved = np.concatenate([part.solved for part in parts])
    reasons = tuple(reason for part in parts for reason in part.reasons)
    solutions = hidden = None
    start, count = 0, np.count_nonzero(solved)
    parts.reverse()
    while parts:
        part = _loaded(parts.pop())
        stop = start + len(part.solutions)
        if stop > start:
            if solutions is None or hidden is None:
                solutions, hidden = (np.empty((count, a.shape[1])) for a in (part.solutions, part.hidden))
            solutions[start:stop], hidden[start:stop] = part.solutions, part.hidden
        start = stop
    nothing = np.empty((0, 0))
    return Chunk(
        mus, solved, nothing if solutions is None else solutions, nothing if hidden is None else hidden, reasons
    )


def _snapshots(found: dict[int, Chunk | StoredChunk], manifest: Manifest, folder: Path | None) -> Snapshots:
    failures, solved, n_there = [], [np.empty((0, manifest.n_parameters))], 0
    parts = [found[index] for index in sorted(found)]
    for index, part in sorted(found.items()):
        places = index * manifest.chunk_size + np.flatnonzero(~part.solved)
        rows = part.mus[~part.solved]
        failures += [Failure(int(i), mu, why) for i, mu, why in zip(places, rows, part.reasons, strict=True)]
        solved.append(part.mus[part.solved])
        n_there += len(part.mus)
    found.clear()  # so that in memory no part is held twice while they are joined
    kept = parts if folder is not None else [_merged(parts)]
    pending = manifest.n_samples - n_there
    return Snapshots(np.concatenate(solved), tuple(failures), manifest.fingerprint, tuple(kept), pending, folder)


def _report(snapshots: Snapshots, names: tuple[str, ...]) -> None:
    failures = snapshots.failures
    if not failures:
        return

    def told(failure: Failure) -> str:
        where = [f"{n}={v:.6g}" for n, v in zip(names, failure.mu, strict=False)]
        where = where or [f"{v:.6g}" for v in failure.mu[:4]] + ["..."] * (len(failure.mu) > 4)
        return f"number {failure.index} ({', '.join(where)}): {failure.reason}"

    if not len(snapshots):
        reasons = "; ".join(told(f) for f in failures[:_QUOTED])
        raise ParasolError(f"none of the {len(failures)} parameters could be solved. {reasons}")
    warnings.warn(
        f"{len(failures)} of {len(failures) + len(snapshots)} parameters could not be solved and are left out; {told(failures[0])}",
        ParasolWarning,
        stacklevel=3,
    )
