"""Many solves: in this process, in several, or on any executor; kept in memory, or on disk so that a killed run resumes."""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from parasol.cache.content import content_hash
from parasol.checks import Progress, check_choice, check_count, check_finite, check_progress, check_shape
from parasol.devices import DEVICES
from parasol.errors import FileError, InputError, ParasolWarning, SolveFailed, Unhashable
from parasol.pde.model import Model
from parasol.reduction.batched import Batched, batched
from parasol.reduction.chunks import Chunk, StoredChunk, digest
from parasol.reduction.fingerprints import Parts, is_vouched_for, parts_of
from parasol.reduction.solvers import unwrapped
from parasol.reduction.store import Manifest, claim, prepare, read_manifest, stored_chunks
from parasol.reduction.workers import Task, solve_one, work_off
from parasol.runtime.parameters import named_columns

_CHUNK_BYTES = 8e6  # large enough for disks, small enough to lose
_MOST_ROWS = 64
_N_CHUNKS = 32  # at least, where there are as many parameters: work for many hands, little lost by a kill
_UNKNOWN_ROWS = 16  # where the length of a solution is not known beforehand
_QUOTED = 3  # reasons quoted in full
_SAME = 1e-5  # relative difference up to which an answer is still the one that was kept: programs of many processes round by chance


@dataclass(frozen=True, eq=False)
class Failure:
    """A parameter that could not be solved: its place among those asked for, and why."""

    index: int
    mu: np.ndarray
    reason: str


class NothingSolved(SolveFailed):
    """None of the parameters could be solved."""

    def __init__(self, text: str, failures: tuple[Failure, ...] = ()):
        super().__init__(text)
        self.failures = failures


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
    first: int = 0  # solved rows of the parts that come before these
    device: str = "cpu"  # "gpu" where this run solved there, all but those that failed a check

    def __len__(self) -> int:
        return len(self.mus)

    def __repr__(self) -> str:
        notes = f", {len(self.failures)} failed" if self.failures else ""
        notes += f", {self.n_pending} still to be solved" if self.n_pending else ""
        notes += f", solved on the {self.device.upper()}" if self.device != "cpu" else ""
        return f"<Snapshots{f' in {self.store}' if self.store else ''}: {len(self)} of {self.n_values} values{notes}>"

    @property
    def n_values(self) -> int:
        """Length of one solution."""
        return max([part.n_values for part in self.parts], default=0)

    @cached_property
    def solutions(self) -> np.ndarray:
        """(n_samples, n_values): values at the nodes, at all stored times for problems in time."""
        return self._joined("solutions")

    @cached_property
    def hidden(self) -> np.ndarray:
        """(n_samples, n_hidden): values at ghosts of steady models that have them."""
        return self._joined("hidden")

    def _joined(self, name: str) -> np.ndarray:
        widths = [part.n_values if name == "solutions" else part.n_hidden for part in self.parts]
        width, out, start = max(widths, default=0), None, 0
        if not width:
            return np.empty((len(self), 0))
        for rows in self._rows(name):
            if len(rows) == len(self):
                return rows
            out = np.empty((len(self), width)) if out is None else out
            out[start : start + len(rows)] = rows
            start += len(rows)
        return np.empty((0, width)) if out is None else out

    def blocks(self) -> Iterator[np.ndarray]:
        """The solutions, some rows at a time; of a store no more than one chunk is in memory."""
        for solutions in self._rows("solutions"):
            rows = len(solutions) if self.store else _rows_of(solutions.shape[1])
            for start in range(0, len(solutions), max(rows, 1)):
                yield solutions[start : start + rows]

    def _rows(self, name: str) -> Iterator[np.ndarray]:
        """One array of the parts, the rows that are these, one part after the other."""
        before, last = 0, self.first + len(self)
        for part in self.parts:
            count = int(np.count_nonzero(part.solved))
            rows = slice(max(self.first - before, 0), min(last - before, count))
            before += count
            if rows.start < rows.stop:
                yield part.rows(name)[rows]

    def __add__(self, other: Snapshots) -> Snapshots:
        """These and others of the same problem, in memory.

        >>> (as_snapshots([[1.0]], [[3.0, 4.0]]) + as_snapshots([[2.0]], [[6.0, 8.0]])).solutions.shape
        (2, 2)
        """
        if not isinstance(other, Snapshots):
            return NotImplemented
        shapes = [(s.mus.shape[1], s.n_values, s.hidden.shape[1]) for s in (self, other)]
        if shapes[0] != shapes[1]:
            raise InputError(
                f"{shapes[0][1]} values at {shapes[0][0]} parameters and {shapes[1][1]} values at {shapes[1][0]} do not "
                "belong together."
            )
        if self.fingerprint != other.fingerprint and not any(s._is_data for s in (self, other)):
            raise InputError("these are solutions of two different problems, by their fingerprints.")
        arrays = [np.concatenate([getattr(s, name) for s in (self, other)]) for name in ("mus", "solutions", "hidden")]
        joined = as_snapshots(arrays[0], arrays[1], hidden=arrays[2])
        same = self.fingerprint == other.fingerprint
        return replace(
            joined,
            failures=self.failures + other.failures,
            fingerprint=self.fingerprint if same else joined.fingerprint,
        )

    @property
    def _is_data(self) -> bool:
        """Whether the fingerprint is that of the values, not that of a solver."""
        return self.fingerprint == content_hash([self.mus, self.solutions, self.hidden])

    def between(self, start: int, stop: int) -> Snapshots:
        """Some consecutive ones, without copying or reading any.

        >>> as_snapshots([[1.0], [2.0], [3.0]], np.eye(3)).between(1, 3).mus.ravel()
        array([2., 3.])
        """
        if not 0 <= start < stop <= len(self):
            raise InputError(f"rows {start} to {stop} are not among the {len(self)} snapshots.")
        return replace(self, mus=self.mus[start:stop], first=self.first + start, failures=(), n_pending=0)

    def split(self, n_numbers: int) -> list[Snapshots]:
        """Consecutive ones in groups of about so many numbers; each knows its own chunks alone, none is read.

        >>> [len(some) for some in as_snapshots([[1.0], [2.0]], np.eye(2)).split(1)]
        [2]
        """
        groups: list[Snapshots] = []
        start = before = 0
        parts: list[Chunk | StoredChunk] = []
        for part in self.parts:
            before += int(np.count_nonzero(part.solved))
            parts.append(part)
            stop = int(np.clip(before - self.first, 0, len(self)))
            if stop > start and ((stop - start) * self.n_values >= n_numbers or stop == len(self)):
                count = sum(int(np.count_nonzero(one.solved)) for one in parts)
                first = max(self.first + start - (before - count), 0)
                some = replace(self, mus=self.mus[start:stop], first=first, parts=tuple(parts))
                groups.append(replace(some, failures=(), n_pending=0))
                start, parts = stop, []
            elif stop == 0:
                parts = []  # before the first of these
        return groups


def as_snapshots(mus: Any, solutions: ArrayLike, *, hidden: ArrayLike | None = None) -> Snapshots:
    """Solutions (n_samples, n_values) that came from elsewhere, at parameters (n_samples, n_parameters)."""
    mus = _unnamed(mus)
    solutions = check_finite(check_shape(solutions, (len(mus), None), "solutions"), "solutions")
    hidden = np.empty((len(mus), 0)) if hidden is None else check_shape(hidden, (len(mus), None), "hidden")
    chunk = Chunk(mus, np.ones(len(mus), dtype=bool), solutions, hidden, ())
    return Snapshots(mus, (), content_hash([mus, solutions, hidden]), (chunk,))


def open_snapshots(path: str | os.PathLike[str]) -> Snapshots:
    """Read a store without its solver, complete or not: `n_pending` says how many parameters are still to be solved.

    A store that is damaged, of a newer version, or not a store is refused with the reason; values are verified when they
    are read. Others open it too: `xarray.open_zarr(path)`, `dask.array.from_zarr(path, "solutions")`.
    """
    path = Path(path).expanduser().absolute()
    manifest = read_manifest(path)
    return _snapshots(dict(stored_chunks(path, manifest)), manifest, path)


def solve_many(
    solver: Any,
    mus: Any,
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    store: str | os.PathLike[str] | None = None,
    chunk_size: int | None = None,
    progress: Progress = None,
    extrapolate: bool = False,
    fingerprint: object = None,
    device: str = "auto",
) -> Snapshots:
    """Solve at all parameters (n_samples, n_parameters), a chunk of `chunk_size` of them at a time.

    `solver` is a model, anything with `solve(mu)` that returns an array or has `values`, or a function of mu. The work is
    done here, by `jobs` processes, or by any executor of `concurrent.futures`, such as Dask's `client.get_executor()` or
    `mpi4py.futures.MPIPoolExecutor`: the numbers are the same to the last bit. With a store the workers of an executor
    write their chunks themselves, and only small facts travel back; all have to see its folder.
    With a `store` (a folder) every finished chunk is on disk at once, and a run that was stopped, however, goes on where
    it was when called again; more parameters may follow those it began with. A parameter at which the solver fails is
    recorded with the reason, and warned of, unless all fail: that is an error. To fail is to raise `ps.errors.SolveFailed`;
    a solver of your own may also raise another ValueError (such as a LinAlgError), an ArithmeticError or a RuntimeError.
    Anything else is a mistake and stops the run, as are parasol's InputError and FileError. `progress` is called with the
    fraction that is done. A store belongs to one solver, known by its code and what it holds; `fingerprint`, a text, says
    so instead, for solvers that change while they work. Files and programs that a solver uses are not seen: without
    `fingerprint` one of the solves that a store has is repeated, and the store refused where the answer is another.
    Where JAX sees a GPU, linear steady models of up to 4000 unknowns are solved there in batches (`device` "auto": if it is
    worth the start and neither jobs nor an executor are asked for; "gpu": on request; "cpu": never). Each answer has passed
    the checks of a solve here, from which it differs by rounding.

    >>> snapshots = solve_many(lambda mu: mu[0] * np.arange(3), [[1.0], [2.0]])
    >>> snapshots.solutions
    array([[0., 1., 2.],
           [0., 2., 4.]])
    """
    check_progress(progress)
    mus = _checked(solver, mus, extrapolate)
    jobs, batches = _hands(solver, len(mus), executor, jobs, device)
    n_values = _expected_length(solver)
    size = default_chunk_size(len(mus), n_values) if chunk_size is None else check_count(chunk_size, "chunk_size")
    names = tuple(getattr(getattr(solver, "parameters", None), "names", ()))
    identity = _identity(solver, fingerprint, needed=store is not None)
    about = (in_words(solver), names, len(mus), mus.shape[1], size, digest(mus))
    manifest = Manifest(identity.fingerprint, *about, dict(identity))
    parts: dict[int, Chunk | StoredChunk] = {}
    with contextlib.ExitStack() as stack:
        # held here as well: threads of an executor, which come and go, would otherwise set and restore it in any order
        stack.enter_context(threadpool_limits(1))
        folder = None if store is None else Path(store).expanduser().absolute()  # workers may stand elsewhere
        if folder is not None:
            stack.enter_context(claim(folder))
            manifest, chunks = prepare(folder, manifest, mus)
            parts.update(chunks)
            if not is_vouched_for(solver, fingerprint):
                _check_repeated(solver, chunks, folder)
        tasks = []
        for index in range(manifest.n_chunks):
            rows = mus[index * manifest.chunk_size : (index + 1) * manifest.chunk_size]
            there = parts.get(index)
            if there is None or len(there.mus) < len(rows):
                tasks.append(
                    Task(index, rows, n_values, extrapolate, folder, manifest.fingerprint, manifest.chunk_size, there)
                )
        done = (lambda n: None) if progress is None else (lambda n: progress(n / len(mus)))
        n_batched = work_off(solver, tasks, parts, executor, min(jobs, max(len(tasks), 1)), batches, done)
    snapshots = _snapshots(parts, manifest, folder)
    if batches is not None and n_batched:
        snapshots = replace(snapshots, device=batches.name)
    _report(snapshots, names)
    return snapshots


def _hands(solver, n_samples: int, executor, jobs: int | None, device: str) -> tuple[int, Batched | None]:
    """How many processes of our own solve, and whether a GPU does; refused where two of them are asked for."""
    check_choice(device, DEVICES, "device")
    if jobs is not None and executor is not None:
        raise InputError("both executor and jobs are given. Give one: jobs=4 for four processes here.")
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise InputError(
            f"executor is a {type(executor).__name__}. Pass one of concurrent.futures, such as Dask's client.get_executor()."
        )
    jobs = 1 if jobs is None else check_count(jobs, "jobs")
    if device == "gpu" and (executor is not None or jobs > 1):
        raise InputError(
            'device="gpu" is for solves in this process. Leave out jobs and executor, or use device="cpu".'
        )
    alone = executor is None and jobs == 1
    return jobs, batched(solver, n_samples, device if alone else "cpu")


def _identity(solver, own, *, needed: bool) -> Parts:
    """What the solver is known by; nothing where nothing is kept and it cannot be identified."""
    try:
        return parts_of(solver, own)
    except Unhashable:
        if needed:
            raise
        return Parts()


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
        raise InputError(f"solver is {solver!r}. Pass a model, an object with solve(mu), or a function of mu.")
    space = getattr(solver, "parameters", None)
    if callable(getattr(space, "ordered", None)):
        mus = space.ordered(mus)  # type: ignore[union-attr]
    mus = np.ascontiguousarray(_unnamed(mus))
    if not len(mus):
        raise InputError("mus is empty: there is nothing to solve. Give at least one parameter vector.")
    if isinstance(solver, Model):
        return solver.check(mus, extrapolate=extrapolate)
    if callable(getattr(space, "check", None)):
        space.check(mus, extrapolate=extrapolate)  # type: ignore[union-attr]
    return mus


def _unnamed(mus) -> np.ndarray:
    """Parameters by their position; a table with names is refused where nobody knows which of them comes first."""
    columns = named_columns(mus)
    if columns is not None:
        raise InputError(
            f"mus has the columns {', '.join(columns)}, but the names of the parameters are not known here. "
            "Pass an array with its columns in the order of the parameters."
        )
    return check_finite(check_shape(mus, (None, None), "mus"), "mus")


def _expected_length(solver) -> int | None:
    """Values in a solution where that is known before solving."""
    if not isinstance(solver, Model):
        known = getattr(unwrapped(solver), "n_values", None)
        return None if known is None else check_count(known, "n_values of the solver")
    n_values = len(solver.problem.names) * solver.n_nodes
    if solver.problem.time is None:
        return n_values
    return None if solver.problem.times is None else n_values * len(solver.problem.times)


def changed_answer(solver, mu: np.ndarray, values: np.ndarray) -> str:
    """How the answer of a solver at mu differs from the one that was kept; nothing where it is the same to 1e-5.

    >>> changed_answer(lambda mu: mu, np.array([2.0]), np.array([2.0])), changed_answer(lambda mu: mu, np.array([2.0]), np.ones(1))
    ('', 'at [2.] they are 1 apart, relatively')
    """
    now, _, reason = solve_one(solver, mu, extrapolate=True)
    place = np.array2string(mu, precision=6, threshold=6)
    if reason:
        return f"at {place} it fails now: {reason}"
    if now.shape != values.shape:
        return f"at {place} it has {now.size} values now, {values.size} are kept"
    gap, size = float(np.linalg.norm(now - values)), float(np.linalg.norm(values))
    return "" if gap <= _SAME * size else f"at {place} they are {gap / size if size else np.inf:.2g} apart, relatively"


def _check_repeated(solver, chunks: Mapping[int, StoredChunk], folder: Path) -> None:
    """Repeat the first solve that a store has and that is not zero: files and programs that a solver uses may have changed, unseen."""
    solved = (zip(c.mus[c.solved], c.rows("solutions"), strict=True) for _, c in sorted(chunks.items()))
    known = next((pair for pairs in solved for pair in pairs if np.any(pair[1])), None)
    if known is None:
        return
    changed = changed_answer(solver, *known)
    if changed:
        raise FileError(
            f"the snapshot store {folder} holds other answers than the solver gives now: {changed}. If a file or a program that "
            "it uses has changed, choose another path. If its answers scatter by themselves, begin a store with fingerprint=, a text."
        )


def in_words(solver) -> str:
    """A solver in a few words, the same in every process."""
    solver = unwrapped(solver)
    text = repr(solver) if isinstance(solver, Model) else getattr(solver, "__qualname__", type(solver).__qualname__)
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)


def _merged(parts: list[Chunk | StoredChunk]) -> Chunk:
    """All parts as one, each let go (by this list) once it is copied."""
    if len(parts) == 1:
        return parts[0].load()
    mus = np.concatenate([part.mus for part in parts])
    solved = np.concatenate([part.solved for part in parts])
    reasons = tuple(reason for part in parts for reason in part.reasons)
    arrays, start = [np.empty((0, 0)), np.empty((0, 0))], 0
    parts.reverse()
    while parts:
        part = parts.pop().load()
        stop = start + len(part.solutions)
        if start == 0 < stop:
            arrays = [np.empty((np.count_nonzero(solved), a.shape[1])) for a in (part.solutions, part.hidden)]
        if start < stop:
            arrays[0][start:stop], arrays[1][start:stop] = part.solutions, part.hidden
        start = stop
    return Chunk(mus, solved, arrays[0], arrays[1], reasons)


def _snapshots(chunks: dict[int, Chunk | StoredChunk], manifest: Manifest, folder: Path | None) -> Snapshots:
    failures, solved, n_there = [], [np.empty((0, manifest.n_parameters))], 0
    parts = [chunks[index] for index in sorted(chunks)]
    for index, part in sorted(chunks.items()):
        places = index * manifest.chunk_size + np.flatnonzero(~part.solved)
        rows = part.mus[~part.solved]
        failures += [Failure(int(i), mu, why) for i, mu, why in zip(places, rows, part.reasons, strict=True)]
        solved.append(part.mus[part.solved])
        n_there += len(part.mus)
    chunks.clear()  # so that in memory no part is held twice while they are joined
    kept = parts if folder is not None else [_merged(parts)]
    pending = manifest.n_samples - n_there
    return Snapshots(np.concatenate(solved), tuple(failures), manifest.fingerprint, tuple(kept), pending, folder)


def _report(snapshots: Snapshots, names: tuple[str, ...]) -> None:
    failures = snapshots.failures
    if not failures:
        return

    def quoted(failure: Failure) -> str:
        where = [f"{n}={v:.6g}" for n, v in zip(names, failure.mu, strict=False)]
        where = where or [f"{v:.6g}" for v in failure.mu[:4]] + ["..."] * (len(failure.mu) > 4)
        return f"number {failure.index} ({', '.join(where)}): {failure.reason}"

    if not len(snapshots):
        reasons = "; ".join(quoted(f) for f in failures[:_QUOTED])
        raise NothingSolved(f"none of the {len(failures)} parameters could be solved. {reasons}", failures)
    warnings.warn(
        f"{len(failures)} of {len(failures) + len(snapshots)} parameters could not be solved and are left out; {quoted(failures[0])}",
        ParasolWarning,
        stacklevel=3,
    )
