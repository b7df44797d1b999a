"""Many solves: in this process, in several, or on any executor; kept in memory, or on disk so that a killed run resumes."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import multiprocessing
import multiprocessing.connection
import multiprocessing.reduction
import os
import re
import signal
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import sympy
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
    prepare,
    read_manifest,
    stored_chunks,
    write_chunk,
)

_CHUNK_BYTES = 8e6  # large enough for disks, small enough to lose
_MOST_ROWS = 64
_N_CHUNKS = 32  # at least, where there are as many parameters: work for many hands, little lost by a kill
_UNKNOWN_ROWS = 16  # where the length of a solution is not known beforehand
_SHOWN = 3  # reasons and warnings quoted in full


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
        notes = [f"{len(self.failures)} failed"] if self.failures else []
        notes += [f"{self.n_pending} still to be solved"] if self.n_pending else []
        where = f" in {self.store}" if self.store else ""
        return f"<Snapshots{where}: {len(self)} of {self.n_values} values{''.join(f', {n}' for n in notes)}>"

    @property
    def n_values(self) -> int:
        """Length of one solution."""
        for part in self.parts:
            if part.solved.any():
                return part.n_values if isinstance(part, StoredChunk) else part.solutions.shape[1]
        return 0

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
        if len(self.parts) == 1 and isinstance(self.parts[0], Chunk):
            return self.parts[0].solutions, self.parts[0].hidden
        merged = _merge([_load(part) for part in ()], self.parts)
        return merged.solutions, merged.hidden

    def blocks(self) -> Iterator[np.ndarray]:
        """The solutions, some rows at a time: one chunk of the store, which is all of it that memory holds then."""
        for part in self.parts:
            solutions = _load(part).solutions
            rows = len(solutions) if isinstance(part, StoredChunk) else default_chunk_size(10**9, solutions.shape[1])
            for start in range(0, len(solutions), max(rows, 1)):
                yield solutions[start : start + rows]


def as_snapshots(mus, solutions, *, hidden=None) -> Snapshots:
    """Solutions (n_samples, n_values) that came from elsewhere, at parameters (n_samples, n_parameters)."""
    mus = check_finite(check_shape(mus, (None, None), "mus"), "mus")
    solutions = check_finite(check_shape(solutions, (len(mus), None), "solutions"), "solutions")
    hidden = np.empty((len(mus), 0)) if hidden is None else check_shape(hidden, (len(mus), None), "hidden")
    chunk = Chunk(mus, np.ones(len(mus), dtype=bool), solutions, hidden, ())
    return Snapshots(mus, (), digest(mus) + digest(solutions), (chunk,))
