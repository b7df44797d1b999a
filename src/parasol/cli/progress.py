"""Progress of long work on stderr: one line that moves on a terminal, elsewhere a line per stage; short work has none."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from parasol.report.progress import Shown, Stage

_SPINNER, _PLAIN_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"
_TICK = 0.1  # seconds between two pictures of the line
_AT_ONCE = 0.3  # seconds of work that need no line on a terminal
_SILENT, _REMINDER = 30.0, 30.0  # elsewhere: seconds before the first line, and between lines of one stage
_HIDE, _SHOW, _ERASE = "\x1b[?25l", "\x1b[?25h", "\r\x1b[2K"


@contextmanager
def stages(quiet: bool) -> Iterator[Stage]:
    """A function that says which stage begins, and returns one that says how much of it is done."""
    if quiet:
        yield lambda text: lambda fraction: None
        return
    moves = sys.stderr.isatty() and os.name != "nt" and os.environ.get("TERM") != "dumb"
    shown = _Moving() if moves else _Lines()
    try:
        yield shown.stage
    finally:
        shown.end()


class _Lines(Shown):
    """A line when a stage begins and now and then while it lasts, for files and pipes."""

    last = _SILENT - _REMINDER

    def show(self, *, other: bool) -> None:
        """Nothing in the first seconds; then each stage once, and again where it lasts."""
        spent = self.clock.now() - self.clock.started
        if spent < _SILENT or not (other or spent - self.last >= _REMINDER):
            return
        self.last = spent
        print(f"parasol: {self.clock.text} ({self.clock.words()})", file=sys.stderr, flush=True)


class _Moving(Shown):
    """A line at the bottom of a terminal, drawn anew several times a second; what others print goes above it."""

    every = _TICK

    def __init__(self):
        super().__init__()
        self.stream: TextIO = sys.stderr
        self.drawn, self.hidden, self.count, self.others = False, False, 0, [sys.stdout, sys.stderr]
        encoding = (self.stream.encoding or "").lower().replace("-", "")
        self.spinner = _SPINNER if encoding == "utf8" else _PLAIN_SPINNER
        sys.stdout, sys.stderr = _Above(sys.stdout, self), _Above(sys.stderr, self)  # type: ignore[assignment]

    def show(self, *, other: bool) -> None:
        """Draw the line, unless somebody is in the middle of one."""
        if self.clock.now() - self.clock.started < _AT_ONCE or not all(one.at_start for one in self._printing()):
            return
        self.count += 1
        sign, tail = self.spinner[self.count % len(self.spinner)], f" ({self.clock.words()})"
        width = max(20, _width(self.stream)) - 1
        room = width - len(tail) - 2
        text = self.clock.text if len(self.clock.text) <= room else self.clock.text[: max(room - 1, 0)] + "…"
        self.stream.write(("" if self.hidden else _HIDE) + _ERASE + f"{sign} {text}{tail}"[:width])
        self.stream.flush()
        self.drawn = self.hidden = True

    def erase(self) -> None:
        """Make room for what somebody prints."""
        if self.drawn:
            self.stream.write(_ERASE)
            self.stream.flush()
        self.drawn = False

    def _printing(self) -> list[_Above]:
        return [one for one in (sys.stdout, sys.stderr) if isinstance(one, _Above)]

    def end(self) -> None:
        """Leave the terminal as it was."""
        super().end()
        sys.stdout, sys.stderr = self.others
        with suppress(OSError, ValueError):
            self.erase()
            if self.hidden:
                self.stream.write(_SHOW)
                self.stream.flush()


class _Above:
    """A stream whose text appears above the moving line."""

    def __init__(self, stream: TextIO, line: _Moving):
        self._stream, self._line, self._process = stream, line, os.getpid()
        self.at_start = True

    def write(self, text: str) -> int:
        """Write, after the line has made room."""
        if os.getpid() != self._process:  # a forked worker has no line, and the lock may be held by a thread it has not
            return self._stream.write(text)
        with self._line.lock:
            self._line.erase()
            self.at_start = text.endswith("\n") if text else self.at_start
            return self._stream.write(text)

    def __getattr__(self, name: str):
        return getattr(self._stream, name)


def _width(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
