"""How every command begins and ends: the few words it is called with, errors in one line, signals, the exit status."""

from __future__ import annotations

import _thread
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from parasol.errors import ParasolError, WriteFailed, place_of, reworded

# the commands as the help shows them: in the order in which they are needed
OWN = {
    "From an equation to a surrogate": ("problems", "solve", "learn"),
    "What a surrogate is for": ("predict", "check", "info", "explore", "serve", "export"),
}
DEBUG = "PARASOL_DEBUG"  # set to 1, errors come with the whole traceback
_COMPLETION = "_PARASOL_COMPLETE"  # set by the shell when it asks for completions
_WELCOME = """parasol: write down a parametric PDE, get a surrogate that answers any parameter and says how wrong it can be.

  parasol problems                                           # what there is to start from
  parasol solve helmholtz a=0.927 k=1.697                    # one full solve
  parasol learn reaction-layer --out layer.parasol           # learn from many: seconds
  parasol predict layer.parasol                              # ask it, with a bound of the error
  parasol --help                                             # all commands
"""


_running: list[Callable[[], Mapping[str, str]]] = []  # how arguments of Python are given to the running command


class Terminated(SystemExit):
    """SIGTERM: everything is left in order on the way out, which the default action of the system does not do."""


def main() -> None:
    """Entry point of the command `parasol`."""
    gc.set_threshold(50_000)  # imports make many objects and no garbage: a tenth of the time of a short command
    status: str | int | None = 0
    try:
        _run(sys.argv[1:])
    except SystemExit as end:
        status = end.code
    except KeyboardInterrupt:  # before the command has begun
        status = fail("interrupted", 130).code
    with one_line_errors(), output():
        pass  # what is left in the buffer may meet a full disk
    sys.exit(status)


def _run(words: list[str]) -> None:
    """Run a command; typer, which takes as long to import as NumPy, is asked only where the words leave questions."""
    if words[:1] == ["--debug"]:
        os.environ[DEBUG] = "1"
        words = sys.argv[1:] = words[1:]
    name, rest = (words[0], words[1:]) if words else ("", [])
    begins(name)
    if not words and _COMPLETION not in os.environ:
        with one_line_errors(), output():
            print(_WELCOME, end="")
        return
    if any(name in names for names in OWN.values()) and _COMPLETION not in os.environ:
        from parasol.cli.reading import command_function, read_words

        command = command_function(name)
        given = read_words(command, rest)
        if given is not None:
            with one_line_errors(), orderly_termination():
                command(**given)
            return
    from parasol.cli.group import app

    app(prog_name="parasol")


@contextmanager
def output() -> Iterator[None]:
    """What is printed in here is out afterwards, or nobody wants it: who has read enough is no reason to end otherwise."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
    except OSError as error:
        _drop_output()
        raise WriteFailed(f"cannot write the output: {error.strerror or error}. Choose another place.") from None


def _drop_output() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


@contextmanager
def orderly_termination() -> Iterator[None]:
    """SIGTERM raises `Terminated` in here, so that the cursor comes back, locks go and what is kept can be said.

    A training that Ctrl-C would only shorten ends, for `Terminated` is no KeyboardInterrupt. A second SIGTERM ends the
    process at once.
    """
    # a handler can only be set in the main thread; one that is there, or a signal that is ignored, stays as it is
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    process = os.getpid()

    def terminate(number: int, _) -> None:
        if os.getpid() != process:  # a forked worker, which has inherited this handler: its parent does the talking
            os._exit(128 + number)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        ending.set()
        raise Terminated(128 + number)

    def stumbled(args) -> None:
        """The thread that looks after workers may fall over their end, which the signal brings them too: that is no news."""
        if not ending.wait(0.5):
            usual(args)

    def swallowed(args) -> None:
        """Python drops what is raised while it collects garbage, where JAX has a callback: the signal is given again."""
        number = {KeyboardInterrupt: signal.SIGINT, Terminated: signal.SIGTERM}.get(args.exc_type)
        if number is None:
            unraisable(args)
            return
        if number == signal.SIGTERM:
            signal.signal(signal.SIGTERM, terminate)
        threading.Timer(0.05, _thread.interrupt_main, [number]).start()

    ending, usual, unraisable = threading.Event(), threading.excepthook, sys.unraisablehook
    signal.signal(signal.SIGTERM, terminate)
    threading.excepthook, sys.unraisablehook = stumbled, swallowed
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        threading.excepthook, sys.unraisablehook = usual, unraisable


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn what goes wrong into one line on stderr and an exit status."""
    try:
        yield
    except KeyboardInterrupt:
        raise fail("interrupted", 130) from None
    except Terminated as end:
        raise fail("terminated", end.code) from None  # type: ignore[arg-type]
    except WriteFailed as error:
        raise fail(str(error), 1, error) from None
    except OSError as error:
        where = f" {str(error.filename)!r}" if error.filename else ""
        raise fail(f"cannot read or write{where}: {error.strerror or error}", 1, error) from None
    except MemoryError as error:
        raise fail("not enough memory. Use fewer nodes or fewer stored times", 1, error) from None
    except ParasolError as error:
        raise fail(in_options(str(error)), 2, error) from None
    except (Exception, SystemExit) as error:  # one of a user's file is theirs to mend; one of ours needs its traceback
        place = place_of(error)
        if not place or hasattr(error, "format_message"):  # the latter is about words of the command line
            raise
        raise fail(f"{place}: {type(error).__name__}: {error}", 2, error) from None


def begins(name: str, given_by: Mapping[str, str] | None = None) -> None:
    """From now on messages are those of this command; `given_by` is for one that is not ours."""

    def own() -> Mapping[str, str]:
        from parasol.cli.reading import words_of_python

        return words_of_python(name) if any(name in names for names in OWN.values()) else {}

    _running[:] = [own if given_by is None else lambda: given_by]


def in_options(message: str) -> str:
    """A message as the running command should tell it: what Python calls `extrapolate=True` is its --extrapolate."""
    return reworded(message, _running[0]()) if _running else message


def fail(message: str, status: int, error: BaseException | None = None) -> SystemExit:
    """The exit with this status, after one line on stderr; the traceback of the error before it where that is wanted."""
    if error is not None and os.environ.get(DEBUG, "0") not in ("", "0"):
        import traceback

        traceback.print_exception(error)
    print(f"parasol: {' '.join(message.split())}", file=sys.stderr)
    return SystemExit(status)
