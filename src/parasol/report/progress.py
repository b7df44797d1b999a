"""How long work gets on: the stage that runs, the time it takes and may still take, shown now and then by a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from html import escape
from importlib import import_module
from typing import Any

Share = Callable[[float], None]
Stage = Callable[[str], Share]

_KNOWN, _FACTOR = 0.05, 3.0  # share of a stage from which its end is foretold, if two speeds agree to this factor
_APART = 0.5  # seconds between what is remembered of a stage


def duration(seconds: float) -> str:
    """Seconds as people write them.

    >>> duration(8.4), duration(83), duration(7384)
    ('8 s', '1:23', '2:03:04')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}:{rest:02d}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


class Clock:
    """How far the stage that runs is, and when it may be done."""

    def __init__(self, now: Callable[[], float] = time.monotonic):
        self.now = now
        self.started = self.began = now()
        self.text = ""
        self.seen: list[tuple[float, float]] = []  # when so much of the stage was done

    def enter(self, text: str) -> bool:
        """Begin a stage; what stands behind a colon are details. Whether it is another one than before."""
        other = text.partition(":")[0] != self.text.partition(":")[0]
        self.text = text
        if other:
            self.began, self.seen = self.now(), []
        return other

    def done(self, fraction: float) -> None:
        """So much of the stage is done."""
        if self.seen and fraction < self.seen[-1][1]:  # a part that begins anew
            self.seen = []
        if len(self.seen) > 1 and self.now() - self.seen[-2][0] < _APART:
            self.seen.pop()
        self.seen.append((self.now(), min(max(fraction, 0.0), 1.0)))

    @property
    def left(self) -> tuple[float, float] | None:
        """Seconds until this stage is done, from, to: by its speed so far and by its latest; None where they disagree."""
        if len(self.seen) < 3 or not _KNOWN <= self.seen[-1][1] < 1:
            return None
        now, fraction = self.now(), self.seen[-1][1]
        when, before = next(pair for pair in self.seen if pair[0] >= (self.began + now) / 2 or pair is self.seen[-2])
        speeds = [fraction / max(now - self.began, 1e-3), (fraction - before) / max(now - when, 1e-3)]
        if min(speeds) <= 0 or max(speeds) > _FACTOR * min(speeds):
            return None
        return 0.8 * (1 - fraction) / max(speeds), 1.25 * (1 - fraction) / min(speeds)

    def words(self) -> str:
        """What stands behind the name of the stage: share, time so far, time to go."""
        parts = [f"{100 * self.seen[-1][1]:.0f} %"] if self.seen else []
        parts.append(duration(self.now() - self.started))
        left = self.left
        if left is not None and left[1] >= 1:
            low, high = duration(left[0]), duration(left[1])
            parts.append(f"{low} to {high} more" if low != high else f"{low} more")
        return ", ".join(parts)


class Shown:
    """A thread that shows the clock now and then; a subclass says how."""

    every = 1.0

    def __init__(self):
        self.clock, self.lock, self.ended = Clock(), threading.RLock(), threading.Event()
        self.ticking: threading.Thread | None = None

    def stage(self, text: str) -> Share:
        """Begin a stage."""
        if self.ticking is None:
            self.ticking = threading.Thread(target=self._tick, daemon=True)
            self.ticking.start()
        with self.lock:
            other = self.clock.enter(text)
            with suppress(OSError, ValueError):  # nobody reads it any more: no reason to end the work
                self.show(other=other)

        def share(fraction: float) -> None:
            with self.lock:
                self.clock.done(fraction)

        return share

    def _tick(self) -> None:
        with suppress(OSError, ValueError):
            while not self.ended.wait(self.every):
                with self.lock:
                    self.show(other=False)

    def show(self, *, other: bool) -> None:
        """Show the clock; `other` says that a stage has just begun."""
        raise NotImplementedError

    def end(self) -> None:
        """No more of it."""
        self.ended.set()
        if self.ticking is not None:
            self.ticking.join()


class _Cell(Shown):
    """One line below a cell of a notebook, which each stage replaces."""

    def __init__(self):
        super().__init__()
        self.shell: Any = import_module("IPython.display")  # which is there, for this runs in it
        self.shown = self.shell.display(self.shell.HTML(""), display_id=True)

    def show(self, *, other: bool) -> None:
        """Replace what the cell shows."""
        self.shown.update(self.shell.HTML(f"<code>{escape(self.clock.text)} ({self.clock.words()})</code>"))

    def end(self) -> None:
        """The last line stays, without a clock."""
        super().end()
        self.shown.update(self.shell.HTML(f"<code>done in {duration(self.clock.now() - self.clock.started)}</code>"))


@contextmanager
def notebook_progress() -> Iterator[Stage]:
    """Stages of long work on one line of a notebook."""
    cell = _Cell()
    try:
        yield cell.stage
    finally:
        cell.end()
