"""The full solves of one learning: counted, limited, and kept on disk so that nothing is solved twice."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from parasol.cache.content import content_hash
from parasol.cache.disk import publish
from parasol.checks import Progress, check_count, check_positive
from parasol.errors import Exhausted, FileError, InputError, ParasolWarning
from parasol.pde.model import Model
from parasol.pde.parameters import ParameterSpace
from parasol.reduction.fingerprints import Parts, difference, is_vouched_for, parts_of
from parasol.reduction.snapshots import (
    Failure,
    NothingSolved,
    Snapshots,
    as_snapshots,
    changed_answer,
    in_words,
    open_snapshots,
    solve_many,
)
from parasol.reduction.solvers import Solver
from parasol.reduction.store import VERSION, drop_damaged, n_chunks_in, read_manifest, read_mus, say_damaged
from parasol.reduction.travel import width

Stage = Callable[[str], Callable[[float], None] | None]
_APART = "apart_from_ranges"  # the hash of all that a solver is known by but where its parameters may lie
_BATCHES = "batch-*/manifest.json"
_ABOUT = "about.json"  # in the folder of a solver's solves: whose they are


def used_up(what: str) -> Exhausted:
    """The error that the full solves or the seconds allowed are used up."""
    return Exhausted(f"the {what} allowed are used up before anything was learned. Allow more.")


@dataclass
class Limits:
    """How many full solves and how many seconds a learning may take in all; it counts while it runs."""

    solves: int | None = None
    seconds: float | None = None
    started: float = field(default_factory=lambda: time.perf_counter())
    stages: dict[str, float] = field(default_factory=dict)  # seconds of each, but for the one that runs
    _running: tuple[str, float] = ("", 0.0)  # the stage that runs, and when it began

    def __post_init__(self):
        if self.solves is not None and check_count(self.solves, "solves") < 8:
            raise InputError(f"solves={self.solves} is too few to learn from. Allow at least 8.")
        if self.seconds is not None:
            check_positive(self.seconds, "seconds")

    def enter(self, stage: str) -> None:
        """Begin a stage and end the one before; what stands behind a colon in its name are details."""
        now, (name, began) = self.spent, self._running
        if name or now - began > 0.01:  # what happens before the first is checking
            self.stages[name or "checking"] = self.stages.get(name or "checking", 0.0) + now - began
        self._running = (stage.partition(":")[0], now)

    @property
    def spent(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.started

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return np.inf if self.seconds is None else self.seconds - self.spent


@dataclass(frozen=True, eq=False)
class Solved:
    """One full solve: values and values at ghosts, or the reason why there are none."""

    values: np.ndarray | None
    hidden: np.ndarray | None
    reason: str = ""


class SolveCache:
    """All full solves of one solver by parameter; asked twice, a parameter is solved once.

    With a `store` (a folder) each solve is on disk as soon as it is done, below the fingerprint of the solver: a
    learning that was stopped, however, asks the same questions again and gets the answers from there. Those answers
    count as solves too, so that the second run takes the same decisions as the first.
    """

    def __init__(
        self,
        solver: Solver,
        limits: Limits,
        *,
        store: str | os.PathLike[str] | None = None,
        jobs: int | None = None,
        executor: Executor | None = None,
        expected: float = 0.0,  # seconds of a solve, before the first
        stage: Stage | None = None,
        fingerprint: object = None,  # what the solver says it is known by
    ):
        self.solver, self.limits, self.expected = solver, limits, expected
        self.executor, self._jobs = executor, jobs or 1
        self.shared = executor is None  # whether there was work for more than one hand
        self._stage = stage or (lambda text: None)
        self.folder: Path | None = None
        self.parts = Parts()  # what the solver is known by
        self.not_reused = ""  # what the store holds that is of no use here, where it holds nothing else
        self.n_new, self.new_seconds = 0, 0.0
        self.device: str | None = None  # where some were solved, if not on the processor
        self._asked: set[bytes] = set()
        self._known: dict[bytes, Solved] = {}
        self._elsewhere: dict[bytes, Solved] = {}  # of the same problem with other ranges
        if store is not None:
            self.parts = parts_of(solver, fingerprint)
            self.folder = Path(store).expanduser().absolute() / f"solves-{self.parts.fingerprint[:16]}"
            self._open(self.folder)
            if not is_vouched_for(solver, fingerprint):
                self._repeat_one(self.folder)

    def stage(self, text: str) -> Progress:
        """Begin a stage, and tell how many full solves there are if it does not say so itself."""
        if self._asked and "full" not in text:
            text += f"{',' if ':' in text else ':'} {self.n_solves} full solves so far"
        return self._stage(text)

    def _open(self, folder: Path) -> None:
        """Read what the store holds of this solver, also with other ranges, or note why what it holds is not read."""
        self._known = _read(sorted(folder.glob(_BATCHES)))
        # a run that goes on learns from what the first one found, or it would ask other questions
        earlier = _about(folder / _ABOUT).get("earlier", None if self._known else self._same_but_ranges(folder)) or []
        solves = _read([folder.parent / path for path in earlier])
        self._elsewhere = {key: one for key, one in solves.items() if one.values is not None}
        if not self._known and not self._elsewhere:
            self.not_reused = _holds(folder.parent, self.parts, asks=not isinstance(self.solver, Model))
        self._begin(folder, earlier)

    def _begin(self, folder: Path, earlier: list[str]) -> None:
        """Make the folder, and say in it whose solves it has."""
        folder.mkdir(parents=True, exist_ok=True)
        apart = {_APART: self.parts.apart_from_ranges, "earlier": earlier} if self.parts.apart_from_ranges else {}
        about = json.dumps({"solver": in_words(self.solver), "parts": self.parts, **apart}, indent=1)
        publish(folder / _ABOUT, lambda path: path.write_text(about, encoding="utf-8"))

    def _repeat_one(self, folder: Path) -> None:
        """Repeat one of the solves that the store has and that is not zero; what it has is set aside where the answer is another.

        Files and programs that a solver uses may have changed, unseen.
        """
        known = next(
            ((key, one.values) for key, one in self._known.items() if one.values is not None and np.any(one.values)),
            None,
        )
        if known is None:
            return
        self.stage("repeating a solve that the store has")
        changed = changed_answer(self.solver, np.frombuffer(known[0]), known[1])
        if changed:
            folder.rename(folder.with_name(f"replaced-{folder.name.removeprefix('solves-')}-{time.time_ns():x}"))
            self.not_reused = (
                f"the store {folder.parent} holds {len(self._known)} full solves which are not reused, for the solver answers otherwise "
                f"now: {changed}. If its answers scatter by themselves, pass fingerprint=, a text: then they are reused."
            )
            self._known = {}
            self._begin(folder, [])

    def _same_but_ranges(self, folder: Path) -> list[str]:
        """Batches of solves in the store that are of the same problem with other ranges, as paths below it."""
        apart = self.parts.apart_from_ranges
        others = sorted(folder.parent.glob("solves-*")) if apart else []
        same = [other for other in others if other != folder and _about(other / _ABOUT).get(_APART) == apart]
        return [
            f"{other.name}/{path.relative_to(other).as_posix()}"
            for other in same
            for path in sorted(other.glob(_BATCHES))
        ]

    def earlier(self, space: ParameterSpace) -> Snapshots | None:
        """Solves of the same problem with other ranges that lie in this box, to learn from; None where there are none.

        They were asked for by another learning, for its own reasons: nothing is calibrated with them.
        """
        mus = np.array([np.frombuffer(key) for key in sorted(self._elsewhere)])
        mus = mus[space.inside(mus)] if len(mus) else mus
        if not len(mus):
            return None
        solved = [self._elsewhere[mu.tobytes()] for mu in mus]
        values, hidden = np.array([one.values for one in solved]), np.array([one.hidden for one in solved])
        return as_snapshots(mus, values, hidden=hidden)

    @property
    def salt(self) -> tuple[int, ...]:
        """What random numbers start from besides their seed where there are earlier solves, which may have the same one."""
        return tuple(bytes.fromhex(self.parts.fingerprint)) if self._elsewhere else ()

    @property
    def jobs(self) -> int:
        """Solves that are made at once, as many as the executor has workers now."""
        return self._jobs if self.executor is None else width(self.executor)

    @property
    def n_solves(self) -> int:
        """Full solves this learning asked for, whether the store had them or not."""
        return len(self._asked)

    @property
    def cost(self) -> float:
        """Seconds of one full solve by one of those that make them, as far as known."""
        return self.new_seconds / self.n_new if self.n_new else self.expected

    def affordable(self, n: int, *, reserve: int = 0) -> int:
        """How many of n more solves may be made when `reserve` of them are kept for later."""
        if self.limits.solves is not None:
            n = min(n, self.limits.solves - self.n_solves - reserve)
        if self.limits.seconds is not None and self.cost > 0:
            n = min(n, int(max(self.limits.left, 0.0) / self.cost * self.jobs) - reserve)
        return max(n, 0) if self.limits.left > 0 else 0

    def solve(self, mus: np.ndarray, purpose: str = "", *, at_least: int = 1) -> Snapshots:
        """Snapshots at the parameters (n, n_parameters) that could be solved, in their order; a purpose is a stage.

        Where the seconds are limited the clock is looked at on the way, and the last parameters may be left out, but
        for `at_least` so many.
        """
        mus = np.ascontiguousarray(mus, dtype=float)
        self._known |= {key: self._elsewhere[key] for mu in mus if (key := mu.tobytes()) in self._elsewhere}
        new = np.array(list({mu.tobytes(): mu for mu in mus if mu.tobytes() not in self._known}.values()))
        what = f"{len(new)} full solve{'s' if len(new) > 1 else ''}: {purpose}"
        progress = self.stage(what) if purpose and len(new) else None
        done = 0
        while done < len(new) and (done < at_least or self.limits.left > 0):
            size = self._piece(len(new) - done)
            self._solve(new[done : done + size], _scaled(progress, done / len(new), size / len(new)))
            done += size
        known = [(mu, self._known[mu.tobytes()]) for mu in mus if mu.tobytes() in self._known]
        self._asked.update(mu.tobytes() for mu, _ in known)
        solved = [(mu, one.values, one.hidden) for mu, one in known if one.values is not None]
        if not solved:
            raise NothingSolved(f"none of the {len(mus)} parameters could be solved: {known[0][1].reason}")
        rows, solutions, hidden = (np.array(column) for column in zip(*solved, strict=True))
        return as_snapshots(rows, solutions, hidden=hidden)

    def failures(self) -> np.ndarray:
        """Parameters that were asked for and could not be solved, (n, n_parameters)."""
        rows = [np.frombuffer(key) for key in self._asked if self._known[key].values is None]
        return np.array(sorted(rows, key=tuple)) if rows else np.empty((0, 0))

    def sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Parameters that were asked for and solved, (n, n_parameters), and the norms of their solutions, (n,)."""
        pairs = [(np.frombuffer(key), self._known[key].values) for key in sorted(self._asked)]
        solved = [(mu, np.linalg.norm(values)) for mu, values in pairs if values is not None]
        return np.array([mu for mu, _ in solved]), np.array([size for _, size in solved])

    def n_failed(self, mus: np.ndarray) -> int:
        """How many of these parameters were asked for and could not be solved."""
        keys = [mu.tobytes() for mu in np.ascontiguousarray(mus, dtype=float)]
        return sum(key in self._known and self._known[key].values is None for key in keys)

    def watched(self, progress: Progress) -> Progress:
        """A progress that ends the work when the seconds are used up; the same one where they are not limited."""
        if self.limits.seconds is None:
            return progress

        def look(fraction: float) -> None:
            if self.limits.left <= 0:
                raise used_up("seconds")
            if progress is not None:
                progress(fraction)

        return look

    def _piece(self, n: int) -> int:
        """How many of n solves to make before the clock is looked at again: a twentieth of the time allowed."""
        if self.limits.seconds is None:
            return n
        if not self.cost:
            return min(n, self.jobs)
        return min(n, max(self.jobs, int(self.limits.seconds / 20 / self.cost * self.jobs)))

    def reason(self, mu: np.ndarray) -> str:
        """Why a parameter could not be solved."""
        return self._known[np.ascontiguousarray(mu, dtype=float).tobytes()].reason

    def unknowns(self, model: Model, mu: np.ndarray) -> np.ndarray:
        """One solution with its values at ghosts, (n_unknowns,), as the greedy search wants it."""
        # the first solve is made even if choosing nodes took all the time: without it there is nothing to return
        first = self.n_solves == 0 and self.limits.seconds is not None and self.limits.seconds > self.cost
        if self.affordable(1) < 1 and mu.tobytes() not in self._known and not first:
            raise used_up("seconds" if self.limits.left <= 0 else "solves")
        solved = self.solve(mu[None])
        return model.layout.unknowns(solved.solutions[0], solved.hidden[0])

    def _solve(self, mus: np.ndarray, progress: Progress) -> None:
        path = None
        if self.folder is not None:
            path = self.folder / f"batch-{len(self._known):06d}-{content_hash(mus)[:12]}"
        start = time.perf_counter()
        # one solve is made here: it has nobody to share with, and need not wait for its way there and back
        hands: dict[str, Any] = {"jobs": min(self.jobs, len(mus))}
        if self.executor is not None:
            self.shared |= len(mus) > 1
            hands = {"executor": self.executor} if len(mus) > 1 else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ParasolWarning)  # failures are named once, at the end
            try:
                solved = solve_many(
                    self.solver,
                    mus,
                    store=path,
                    chunk_size=1,
                    **hands,
                    progress=progress,
                    extrapolate=True,
                    fingerprint=self.parts,  # of the solver as it was before the first solve
                )
            except NothingSolved as error:
                solved = None
                self._known |= _failed(error.failures)
        self.n_new += len(mus)
        self.new_seconds += (time.perf_counter() - start) * min(self.jobs, len(mus))  # of all hands together
        if solved is not None and solved.device != "cpu":
            self.device = solved.device
        if solved is not None:
            self._known |= _kept(solved)


def _kept(snapshots: Snapshots) -> dict[bytes, Solved]:
    """Solves and failures by parameter."""
    pairs = zip(snapshots.mus, snapshots.solutions, snapshots.hidden, strict=True)
    return {mu.tobytes(): Solved(values, hidden) for mu, values, hidden in pairs} | _failed(snapshots.failures)


def _failed(failures: tuple[Failure, ...]) -> dict[bytes, Solved]:
    return {np.asarray(f.mu, dtype=float).tobytes(): Solved(None, None, f.reason) for f in failures}


def _read(manifests: list[Path]) -> dict[bytes, Solved]:
    """All solves of these batches; one that is gone since has none, and what is damaged is left out with a warning."""
    solves: dict[bytes, Solved] = {}
    for folder in [manifest.parent for manifest in manifests if manifest.exists()]:
        try:
            about = read_manifest(folder)
            if about.version == VERSION and n_chunks_in(folder):
                say_damaged(drop_damaged(folder, about, read_mus(folder, about)))
        except FileError as error:
            say_damaged([str(error)])
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ParasolWarning)
            solves |= _kept(open_snapshots(folder))
    return solves


def _scaled(progress: Progress, start: float, part: float) -> Progress:
    """The progress of a part of the work, as that of the whole."""
    return None if progress is None else lambda fraction: progress(start + part * fraction)


def _holds(root: Path, parts: dict[str, str], *, asks: bool) -> str:
    """What a store holds of other solvers, and what tells the nearest of them from the one with these parts."""
    others = []
    for folder in root.glob("solves-*"):
        n = sum(n_chunks_in(batch) for batch in folder.glob("batch-*"))
        if n:
            about = _about(folder / _ABOUT)
            theirs = about.get("parts")
            gap = len(parts) + 1 if theirs is None else sum(theirs.get(key) != value for key, value in parts.items())
            others.append((gap, -n, str(about.get("solver", "another solver")), theirs))
    if not others:
        return ""
    _, count, solver, theirs = min(others, key=lambda other: other[:3])
    more = f" (and solves of {len(others) - 1} others)" if len(others) > 1 else ""
    advice = " If the answers are the same, pass fingerprint=, a text that changes when they do." if asks else ""
    return f"the store {root} holds {-count} full solves of {solver}{more}, which are not reused: {difference(theirs, parts)}.{advice}"


def _about(path: Path) -> dict:
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return about if isinstance(about, dict) and isinstance(about.get("parts"), dict) else {}
